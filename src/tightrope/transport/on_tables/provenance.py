"""Where the laws of a saved coupling came from, as was stated: the one thing in the file that nobody can recompute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tightrope.errors import InputError
from tightrope.numerics import checks
from tightrope.transport.on_tables.saved_fields import AGAIN, Fields

SECRECY = {
    "table": "as secret as the table: it holds the laws of its groups as they are",
    "public": "as public as the laws that it was given",
    "private": "no more secret than what was spent on it allows",
}
TRIPLE = ("epsilon", "delta", "total_variation")


@dataclass(frozen=True, slots=True)
class Learning:
    """Laws that were learned privately: ε spent, by whom a ``person`` is known, and what one draw then tells.

    ``left`` holds (ε, δ, η) of which each is true, all of them together with the ``confidence``.
    """

    epsilon: float
    person: str
    confidence: float
    left: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.inner_probability("confidence", self.confidence)
        for epsilon, delta, total_variation in self.left:
            checks.non_negative("epsilon", epsilon)
            checks.probability("delta", delta)
            checks.probability("total_variation", total_variation)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        left = [dict(zip(TRIPLE, one, strict=True)) for one in self.left]
        return {"epsilon": self.epsilon, "person": self.person, "confidence": self.confidence, "left": left}

    @classmethod
    def of(cls, own: Fields) -> Self:
        """From ``to_data``; raises ``InputError`` where something is missing or of another kind."""
        entries = own.listed("left", lambda one: isinstance(one, Mapping), "tables")
        rows = [Fields.of(f"{own.place} left[{place}]", one) for place, one in enumerate(entries)]
        left = tuple((row.number("epsilon"), row.number("delta"), row.number("total_variation")) for row in rows)
        return cls(own.number("epsilon"), own.text("person"), own.number("confidence"), left)


@dataclass(frozen=True, slots=True)
class Origin:
    """``kind``: "table" (its own shares), "public" (laws that were given) or "private" (learned: see ``learning``).

    ``target`` is the name of the target that was asked for.

    >>> Origin.of(Fields.of("origin", Origin("table", "uniform").to_data())).secrecy[:23]
    'as secret as the table:'
    """

    kind: str
    target: str
    learning: Learning | None = None

    def __post_init__(self) -> None:
        if self.kind not in SECRECY or (self.learning is None) != (self.kind != "private"):
            raise InputError("origin kind", self.kind, f"one of {list(SECRECY)}, learned if private", AGAIN)

    @property
    def secrecy(self) -> str:
        """Whom the file may be shown to."""
        return SECRECY[self.kind]

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        learning = {} if self.learning is None else {"learning": self.learning.to_data()}
        return {"kind": self.kind, "secrecy": self.secrecy, "target": self.target, **learning}

    @classmethod
    def of(cls, own: Fields) -> Self:
        """From ``to_data``; raises ``InputError`` where something is missing or of another kind."""
        learning = Learning.of(own.inner("learning")) if own.entries.get("kind") == "private" else None
        return cls(own.text("kind"), own.text("target"), learning)
