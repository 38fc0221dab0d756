"""Limits of a dataset: promises with a name, for all releases or for those of one audience, for good or a year each.

Each has one rule for life by which releases add up under it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from tightrope.documents.budget import Budget, Point
from tightrope.errors import InputError
from tightrope.ledger.moments import Moments
from tightrope.numerics.checks import whole

PERIODS = {"year": 4, "month": 7}
"""How many letters of a date name the period."""
MAIN_LIMIT = "total"
BASIC, MOMENTS = RULES = ("basic", "moments")
"""Shares of ε and δ add up (theory §2, F5), or log moments of the noise do (F3)."""
ADDED = "+"
"""Before the name of a limit: what its releases would have taken if it were a basic one. It limits nothing."""
MOST_RELEASES = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``budget`` in all, or ``every`` year or month anew; for everybody, or for what one ``audience`` sees.

    ``rule``: "basic" adds up what releases promise; "moments" adds up log moments of their noise, of an order that is
    fixed here, best for about so many equal ``releases``, and costs less where there are many small ones. Either holds
    whatever is released after seeing earlier answers. Raises ``InputError`` for a budget without points, a period or a
    rule that is none, or a name that cannot be printed.

    >>> Limit("total", Budget(epsilon=1, delta="1e-6"), rule="moments", releases=52).moments.order
    Decimal('20.75')
    """

    name: str
    budget: Budget
    every: str | None = None
    audience: str | None = None
    rule: str = BASIC
    releases: int | None = None
    moments: Moments | None = field(default=None, compare=False)
    """Of a limit with the rule "moments": what was fixed, chosen where it is not given."""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name and self.name.isprintable() and len(self.name) <= 100):
            raise InputError("limit", self.name, "a name of 1 to 100 letters", "say name='press'")
        if self.name.startswith(ADDED):
            raise InputError("limit", self.name, f"a name that does not begin with {ADDED!r}", "say name='press'")
        if self.every is not None and self.every not in PERIODS:
            raise InputError("every", self.every, f"one of {', '.join(PERIODS)}, or left out")
        self.budget.share(1)
        self._rule()

    def _rule(self) -> None:
        """Check the rule, and fix what it needs."""
        if self.rule not in RULES:
            raise InputError("rule", self.rule, f"one of {', '.join(RULES)}")
        if (self.rule == BASIC) != (self.releases is None):
            remedy = "releases=12 says for about how many equal ones the order of the moments is chosen"
            raise InputError("releases", self.releases, "given exactly where rule='moments'", remedy)
        if self.releases is None:
            object.__setattr__(self, "moments", None)
            return
        count = whole("releases", self.releases)
        if count > MOST_RELEASES:
            raise InputError("releases", count, f"at most {MOST_RELEASES}", "for more the order is the same")
        fixed = self.moments or Moments.chosen(self.budget, count)
        if not fixed.keeps(self.budget):
            raise InputError("moments", self.name, f"what keeps {self.budget}", "leave it out: it is chosen")
        object.__setattr__(self, "moments", fixed)

    @property
    def words(self) -> str:
        """What is promised and by which rule, for people."""
        rule = "" if self.releases is None else f", by moments for about {self.releases} releases"
        again = "" if self.every is None else f", every {self.every}"
        return f"{self.budget}{again}{rule}" + ("" if self.audience is None else f", for {self.audience!r}")

    def cost(self, kept: Budget) -> Fraction | None:
        """The least share of the budget that covers a guarantee; None where no share does.

        A share s covers it where every point (ε, δ) of the budget has a point of the guarantee with ε' ≤ sε, δ' ≤ sδ.
        So shares of adaptively chosen guarantees add up, point by point: ``docs/proofs/composition.md``.

        >>> limit = Limit("total", Budget(epsilon=1, delta="1e-6"))
        >>> limit.cost(Budget(epsilon="0.1", delta="1e-7")), limit.cost(Budget(epsilon="0.1", delta="1e-6"))
        (Fraction(1, 10), Fraction(1, 1))
        """
        ways = [[_covering(point, own) for own in kept.checked_points] for point in self.budget.checked_points]
        needed = [min((share for share in row if share is not None), default=None) for row in ways]
        needed.append(_ratio(Fraction(kept.delta), Fraction(self.budget.delta)))
        return None if None in needed else max(share for share in needed if share is not None)

    def slot(self, time: str) -> str:
        """Under which name the limit is spent at a time.

        >>> Limit("press", Budget(epsilon=1, delta="1e-6"), every="year").slot("2026-03-01T12:00:00.000+00:00")
        'press 2026'
        """
        return self.name if self.every is None else f"{self.name} {time[: PERIODS[self.every]]}"

    def is_a_period(self, name: str) -> bool:
        """Whether one of its periods is called so: no other limit can be, for they would share one balance.

        >>> Limit("press", Budget(epsilon=1, delta="1e-6"), every="year").is_a_period("press 2026")
        True
        """
        period = name.removeprefix(f"{self.name} ")
        digits = period.replace("-", "", 1) if self.every == "month" else period
        return self.every is not None and period != name and len(period) == PERIODS[self.every] and digits.isdigit()

    def applies(self, audience: str | None) -> bool:
        """Whether a release for these people is charged to it; what everybody sees is seen by every audience."""
        return self.audience is None or audience is None or self.audience == audience

    def to_data(self) -> dict[str, Any]:
        """As JSON can hold it."""
        data = {"name": self.name, **self.budget.to_data(), "every": self.every, "audience": self.audience}
        if self.moments is None:
            return data
        return {**data, "rule": self.rule, "releases": self.releases, "moments": self.moments.to_data()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The limit that ``to_data`` wrote."""
        budget = Budget(delta=data["delta"], points=[(epsilon, delta) for epsilon, delta in data["points"]])
        usual = (data["name"], budget, data["every"], data["audience"])
        if "rule" not in data:
            return cls(*usual)
        return cls(*usual, data["rule"], data["releases"], Moments.from_data(data["moments"]))


def _covering(asked: Point, own: Point) -> Fraction | None:
    parts = [_ratio(Fraction(mine), Fraction(allowed)) for mine, allowed in zip(own, asked, strict=True)]
    return None if None in parts else max(part for part in parts if part is not None)


def _ratio(mine: Fraction, allowed: Fraction) -> Fraction | None:
    if allowed > 0:
        return mine / allowed
    return None if mine > 0 else Fraction(0)
