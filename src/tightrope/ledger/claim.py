"""What is asked of a ledger: to charge one release, or to reserve a series of equal ones."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.budget import Budget
from tightrope.errors import InputError

LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """One release that keeps ``kept``. Under one ``key`` a plan is charged once, however often it is tried.

    ``plan`` is the digest of all that was planned: a key cannot be used for another plan. ``recipe`` is the noise as
    data (``ledger.recipe``), from which ``check`` computes the guarantee again; empty where there is none.
    ``audience``: who sees the answers, None for everybody.
    """

    key: str
    plan: str
    kept: Budget
    recipe: str = ""
    audience: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.key, str) and 0 < len(self.key) <= LONGEST_KEY and self.key.isprintable()):
            raise InputError("key", self.key, f"a text of 1 to {LONGEST_KEY} letters", "say key='visits, March 2026'")


@dataclass(frozen=True, slots=True)
class SeriesClaim:
    """``times`` releases of one plan, declared together: all of them together keep ``kept``, composed exactly."""

    key: str
    plan: str
    kept: Budget
    times: int
    recipe: str
    audience: str | None = None
