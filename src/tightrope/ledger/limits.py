"""Limits of a dataset: promises with a name, for all releases or for those of one audience, for good or a year each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from tightrope.certificates.budget import Budget, Point
from tightrope.errors import InputError

PERIODS = {"year": 4, "month": 7}
"""How many letters of a date name the period."""
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``budget`` in all, or ``every`` year or month anew; for everybody, or for what one ``audience`` sees.

    Raises ``InputError`` for a budget without points, a period that is none, or a name that cannot be printed.
    """

    name: str
    budget: Budget
    every: str | None = None
    audience: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name and self.name.isprintable() and len(self.name) <= 100):
            raise InputError("limit", self.name, "a name of 1 to 100 letters", "say name='press'")
        if self.every is not None and self.every not in PERIODS:
            raise InputError("every", self.every, f"one of {', '.join(PERIODS)}, or left out")
        self.budget.share(1)

    def cost(self, kept: Budget) -> Fraction | None:
        """The least share of the budget that covers a guarantee; None where no share does.

        A share s covers it where every point (ε, δ) of the budget has a point of the guarantee with ε' ≤ sε, δ' ≤ sδ.
        So shares of adaptively chosen guarantees add up, point by point: ``docs/proofs/composition.md``.

        >>> limit = Limit("total", Budget(epsilon=1, delta="1e-6"))
        >>> limit.cost(Budget(epsilon="0.1", delta="1e-7")), limit.cost(Budget(epsilon="0.1", delta="1e-6"))
        (Fraction(1, 10), Fraction(1, 1))
        """
        ways = [[_covering(point, own) for own in kept.stated] for point in self.budget.stated]
        needed = [min((share for share in row if share is not None), default=None) for row in ways]
        needed.append(_ratio(Fraction(kept.delta), Fraction(self.budget.delta)))
        return None if None in needed else max(share for share in needed if share is not None)

    def slot(self, time: str) -> str:
        """Under which name the limit is spent at a time.

        >>> Limit("press", Budget(epsilon=1, delta="1e-6"), every="year").slot("2026-03-01T12:00:00.000+00:00")
        'press 2026'
        """
        return self.name if self.every is None else f"{self.name} {time[: PERIODS[self.every]]}"

    def applies(self, audience: str | None) -> bool:
        """Whether a release for these people is charged to it; what everybody sees is seen by every audience."""
        return self.audience is None or audience is None or self.audience == audience

    def to_data(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"name": self.name, **self.budget.to_data(), "every": self.every, "audience": self.audience}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The limit that ``to_data`` wrote."""
        budget = Budget(delta=data["delta"], points=[(epsilon, delta) for epsilon, delta in data["points"]])
        return cls(data["name"], budget, data["every"], data["audience"])


def _covering(asked: Point, own: Point) -> Fraction | None:
    parts = [_ratio(Fraction(mine), Fraction(allowed)) for mine, allowed in zip(own, asked, strict=True)]
    return None if None in parts else max(part for part in parts if part is not None)


def _ratio(mine: Fraction, allowed: Fraction) -> Fraction | None:
    if allowed > 0:
        return mine / allowed
    return None if mine > 0 else Fraction(0)
