"""What is asked of a ledger: to charge one release, or to reserve a series of equal ones."""

from __future__ import annotations

import re
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
        _check_key(self.key, LONGEST_KEY)


@dataclass(frozen=True, slots=True)
class SeriesClaim:
    """``times`` releases of one plan, declared together: all of them together keep ``kept``, composed exactly."""

    key: str
    plan: str
    kept: Budget
    times: int
    recipe: str
    audience: str | None = None

    def __post_init__(self) -> None:
        _check_key(self.key, LONGEST_KEY - len(f" {self.times}/{self.times}"))

    def dates(self) -> list[str]:
        """The keys of its releases.

        >>> SeriesClaim("monthly", "", Budget(epsilon=1, delta="1e-6"), 2, "").dates()
        ['monthly 1/2', 'monthly 2/2']
        """
        return [date_of_series(self.key, place, self.times) for place in range(1, self.times + 1)]


def date_of_series(key: str, place: int, times: int) -> str:
    """The key of one release of a series."""
    return f"{key} {place}/{times}"


def series_of_date(key: str) -> str | None:
    """The series whose release may have this key.

    >>> series_of_date("monthly 1/2"), series_of_date("March")
    ('monthly', None)
    """
    found = re.fullmatch(r"(.+) [0-9]+/[0-9]+", key)
    return None if found is None else found[1]


def _check_key(key: object, longest: int) -> None:
    if not (isinstance(key, str) and 0 < len(key) <= longest and key.isprintable()):
        raise InputError("key", key, f"a text of 1 to {longest} letters", "say key='visits, March 2026'")
