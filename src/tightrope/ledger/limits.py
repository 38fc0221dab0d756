"""Limits of a dataset: named budgets for all releases or for one audience, in total or for each year or month.

The rule by which releases add up under a limit never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from tightrope.documents.budget import Budget
from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer

if TYPE_CHECKING:
    from tightrope.ledger.moments import Moments

PERIODS = {"year": 4, "month": 7}
"""The number of characters of a date that identify the period."""
MAIN_LIMIT = "total"
BASIC, MOMENTS = RULES = ("basic", "moments")
"""Fractions of ε and δ add up (theory §2, F5), or log moments of the noise do (F3)."""
BASIC_PREFIX = "+"
"""A limit by moments has a second balance under this prefix + its name, which adds up ε and δ (basic composition): for
comparison, not enforced."""
MOST_RELEASES = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """A budget for all time or renewed ``every`` year or month, for all releases or for one ``audience``.

    ``rule``: "basic" adds up the guarantees of releases; "moments" adds up log moments of their noise, of an order
    fixed here, best for about ``releases`` equal releases, and costs less for many small ones. Both hold
    for releases chosen after seeing earlier answers. Raises ``InputError`` for a budget without points, a wrong period
    or rule, or a name that cannot be printed.

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
    """The moment budget of a limit with the rule "moments"; chosen automatically if it is None."""

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name and self.name.isprintable() and len(self.name) <= 100):
            raise InputError("limit", self.name, "a name of 1 to 100 characters", "for example name='press'")
        if self.name.startswith(BASIC_PREFIX):
            raise InputError(
                "limit", self.name, f"a name that does not begin with {BASIC_PREFIX!r}", "for example name='press'"
            )
        if self.every is not None and self.every not in PERIODS:
            raise InputError("every", self.every, f"one of {', '.join(PERIODS)}, or left out")
        self.budget.scale_by(1)
        self._set_rule()

    def _set_rule(self) -> None:
        """Check the rule, and set its moment budget."""
        if self.rule not in RULES:
            raise InputError("rule", self.rule, f"one of {', '.join(RULES)}")
        if (self.rule == BASIC) != (self.releases is None):
            text = "missing: rule='moments' needs the expected number of equal releases, such as releases=12"
            raise InputError.from_text("releases", "only allowed with rule='moments'" if self.rule == BASIC else text)
        if self.releases is None:
            object.__setattr__(self, "moments", None)
            return
        count = check_integer("releases", self.releases)
        if count > MOST_RELEASES:
            raise InputError("releases", count, f"at most {MOST_RELEASES}", "larger numbers give the same moment order")
        from tightrope.ledger.moments import Moments  # loads the accounting, which basic limits do not need

        fixed = self.moments or Moments.choose_for(self.budget, count)
        if not fixed.keeps_budget(self.budget):
            text = f"they do not meet {self.budget}; leave them out, they are chosen automatically"
            raise InputError.from_text("moments", text)
        object.__setattr__(self, "moments", fixed)

    @property
    def rule_text(self) -> str:
        """Return the budget and the rule in words."""
        rule = "" if self.releases is None else f", by moments for about {self.releases} releases"
        again = "" if self.every is None else f", every {self.every}"
        return f"{self.budget}{again}{rule}" + ("" if self.audience is None else f", for {self.audience!r}")

    def required_fraction(self, guarantee: Budget) -> Fraction | None:
        """Return the smallest fraction of the budget that covers a guarantee; None if the whole budget does not.

        A fraction s covers it if for every point (ε, δ) of the budget the guarantee has a point (ε', δ') with ε' ≤ sε
        and δ' ≤ sδ. Fractions of adaptively chosen guarantees then add up: ``docs/proofs/composition.md``.

        >>> limit = Limit("total", Budget(epsilon=1, delta="1e-6"))
        >>> limit.required_fraction(Budget(epsilon="0.1", delta="1e-7"))
        Fraction(1, 10)
        >>> limit.required_fraction(Budget(epsilon="0.1", delta="1e-6"))
        Fraction(1, 1)
        """
        needed = []
        for point in self.budget.checked_points:
            ratios = (
                [_ratio_to_budget(*pair) for pair in zip(own_point, point, strict=True)]
                for own_point in guarantee.checked_points
            )
            covering = [fraction for fraction in map(_largest_fraction, ratios) if fraction is not None]
            needed.append(min(covering, default=None))
        return _largest_fraction([*needed, _ratio_to_budget(guarantee.delta, self.budget.delta)])

    def slot_at(self, time: str) -> str:
        """Return the name of the balance from which the limit is spent at a time: the limit's, with its current period.

        >>> Limit("press", Budget(epsilon=1, delta="1e-6"), every="year").slot_at("2026-03-01T12:00:00.000+00:00")
        'press 2026'
        """
        return self.name if self.every is None else f"{self.name} {time[: PERIODS[self.every]]}"

    def is_a_period(self, name: str) -> bool:
        """Return whether this is the name of one of its periods: another limit with that name would share its balance.

        >>> Limit("press", Budget(epsilon=1, delta="1e-6"), every="year").is_a_period("press 2026")
        True
        """
        period = name.removeprefix(f"{self.name} ")
        digits = period.replace("-", "", 1) if self.every == "month" else period
        return self.every is not None and period != name and len(period) == PERIODS[self.every] and digits.isdigit()

    def applies_to(self, audience: str | None) -> bool:
        """Return whether a release for this audience is charged to the limit; a public one counts for all audiences."""
        return self.audience is None or audience is None or self.audience == audience

    def to_data(self) -> dict[str, Any]:
        """Return the limit as data for JSON."""
        data = {"name": self.name, **self.budget.to_data(), "every": self.every, "audience": self.audience}
        if self.moments is None:
            return data
        return {**data, "rule": self.rule, "releases": self.releases, "moments": self.moments.to_data()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the limit from the data of ``to_data``."""
        budget = Budget(delta=data["delta"], points=[(epsilon, delta) for epsilon, delta in data["points"]])
        common = (data["name"], budget, data["every"], data["audience"])
        if "rule" not in data:
            return cls(*common)
        from tightrope.ledger.moments import Moments

        return cls(*common, data["rule"], data["releases"], Moments.from_data(data["moments"]))


def _largest_fraction(fractions: Sequence[Fraction | None]) -> Fraction | None:
    """Return the largest fraction; None if one is None, since no fraction covers that one."""
    return None if None in fractions else max(fraction for fraction in fractions if fraction is not None)


def _ratio_to_budget(needed: Decimal, allowed: Decimal) -> Fraction | None:
    """Return ``needed`` divided by ``allowed``; None if it is infinite."""
    if allowed > 0:
        return Fraction(needed) / Fraction(allowed)
    return None if needed > 0 else Fraction(0)
