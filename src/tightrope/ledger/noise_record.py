"""The noise of a release as data, and the loss that it has: what ``check`` computes every guarantee from again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

from tightrope.accounting.distributions.gaussian import gaussian_reach
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.loss_pmf import Masses, Window
from tightrope.accounting.neighbors import Neighbours
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, at_most
from tightrope.ledger.chain import canonical
from tightrope.mechanisms.discrete.box_table import AnyTable, table_of
from tightrope.noise.worst_split import Choice, Contribution, ShiftLoss, Spend, Unit, total_loss

FARTHER = 4
"""A plan's lattice holds 1.7 times its ε; what lies beyond four times that has no mass to speak of."""

OWN_POINTS, FARTHEST_POINT = 640, 12_000
"""Lattice points that the ε of one release among many should span, and how far a lattice reaches at most for that."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Units with the table of every noisy vector, and the lattice on which their losses were composed.

    ``window`` is None for a single count that one row of a person enters: its loss is that of its table.
    ``alternatives`` and ``spare`` are what the plan says of other noise.
    """

    units: tuple[Unit, ...]
    choices: tuple[tuple[Choice, ...], ...]
    window: Window | None
    alternatives: Mapping[str, float] = field(default_factory=dict)
    spare: float | None = None

    @property
    def text(self) -> str:
        """As canonical JSON."""
        window = None if self.window is None else [repr(self.window.step), self.window.reach]
        pairs = zip(self.units, self.choices, strict=True)
        units = [_unit_data(unit, choices) for unit, choices in pairs]
        said = {"alternatives": dict(self.alternatives), "spare": self.spare}
        return canonical({"window": window, "units": units, **said})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The recipe that ``text`` wrote."""
        data = json.loads(text)
        pairs = [_unit(unit) for unit in data["units"]]
        step_reach = data["window"]
        window = None if step_reach is None else Window(float(step_reach[0]), int(step_reach[1]))
        units, choices = (tuple(parts) for parts in zip(*pairs, strict=True))
        return cls(units, choices, window, data["alternatives"], data["spare"])

    def masses(self, window: Window, times: int = 1) -> Masses:
        """The composed law of ``times`` such releases on a lattice: an upper bound whatever the lattice is."""
        return masses([(self, times)], window)

    def loss(self, times: int = 1) -> PrivacyLoss:
        """The loss of ``times`` such releases, noise fixed in advance; neighbours: add or remove one person."""
        if self.window is None:
            ((choice,),) = self.choices
            law = choice.table.atoms(choice.shift)
            return times * PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)
        law = self.masses(self.window, times).atoms()
        return PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)

    def closer(self, delta: float) -> Self:
        """The same noise on a lattice that is fine for one release: a plan's is for many, whose ε is larger.

        ``delta`` is where the ε of one release is looked at. What holds on the lattice before holds on this one.
        """
        if self.window is None:
            return self
        epsilon, step, reach = self.loss().epsilon(delta), self.window.step, self.window.reach
        wanted = math.ceil(OWN_POINTS * step / epsilon) if 0 < epsilon < math.inf else 1
        parts = max(1, min(wanted, FARTHEST_POINT // reach))
        return replace(self, window=Window(step / parts, reach * parts))

    def releases(self, times: int = 1) -> PrivacyLoss:
        """The same loss as so many laws, each on a lattice that reaches further: little of it counts as infinite."""
        if self.window is None:
            return self.loss(times)
        law = self.masses(Window(self.window.step, self.window.reach * FARTHER)).atoms()
        return times * PrivacyLoss.of(law, reverse=law, neighbours=Neighbours.ADD_REMOVE)


def masses(recipes: Sequence[tuple[Recipe, int]], window: Window) -> Masses:
    """The composed law of several releases, each so many times, had they been declared together."""
    exact = cache(_exact)
    units = [unit for recipe, times in recipes for unit in recipe.units * times]
    chosen = [choice for recipe, times in recipes for own in recipe.choices * times for choice in own]
    return total_loss(units, [exact(choice.table) for choice in chosen], [choice.shift for choice in chosen], window)


def _exact(table: AnyTable) -> ShiftLoss:
    """The loss from the integer weights; what rounding may have taken from a loss is added to it."""

    def cells(shift: int) -> Cells:
        return table.atoms(shift).raised().cells(0.0)

    return cells


def _unit_data(unit: Unit, choices: Sequence[Choice]) -> dict[str, Any]:
    bounds = unit.contribution
    return {
        "rows": [bounds.rows, bounds.rows_per_group, bounds.groups],
        "noise": [_choice_data(choice) for choice in choices],
    }


def _choice_data(choice: Choice) -> dict[str, Any]:
    spend = choice.spend
    return {
        "spend": [spend.statistic, spend.eighths, spend.whole_rows, spend.bounded, *_unusual(spend)],
        "family": choice.family, "shift": choice.shift, "table": choice.table.to_data(),
    }  # fmt: skip


def _unusual(spend: Spend) -> list[Any]:
    """What few spends are: written where it is not what it is by default, so that older texts stay what they were."""
    return [spend.chooses, spend.dimension, spend.asked] if spend.dimension > 1 else [True] if spend.chooses else []


def _unit(data: dict[str, Any]) -> tuple[Unit, tuple[Choice, ...]]:
    choices = tuple(map(_choice, data["noise"]))
    return Unit(tuple(choice.spend for choice in choices), Contribution(*data["rows"])), choices


def _choice(data: dict[str, Any]) -> Choice:
    return Choice(Spend(*data["spend"]), data["family"], data["shift"], table_of(data["table"]))


# What the same releases would have spent, had they been declared together before the first: the price of not doing
# so.
#
# It is a comparison and no guarantee: releases that were chosen after seeing answers do not compose like that.

CURVE_POINTS = 2000
"""Lattice points for the budget's largest ε, or for what stands for it beside a large δ."""
CURVE_REACH = 1.5
"""The lattice reaches so many times the largest ε, or as far as losses add to a large δ."""
CLOSE_SHARE = 1e-4
"""How near the least share or ε is approached."""


def together(recipes: Sequence[tuple[Recipe, int]], budget: Budget) -> float | None:
    """The least share of a budget that the exact composition keeps, an upper bound; None where the whole does not do.

    Each recipe ran so many times. Where no ε is asked for, there is no lattice to compose on: None, too.
    """
    total = _composed(recipes, budget)
    return None if total is None else _smallest_passing(lambda share: _keeps(total, budget, share), 1.0)


def epsilon_together(recipes: Sequence[tuple[Recipe, int]], budget: Budget) -> float | None:
    """The least ε that the exact composition keeps at the δ of the budget's largest, an upper bound; None as above."""
    total, (largest, delta) = _composed(recipes, budget), max(budget.checked_points)
    if total is None:
        return None
    return _smallest_passing(lambda epsilon: total.delta(epsilon) <= at_most(delta), CURVE_REACH * float(largest))


def _composed(recipes: Sequence[tuple[Recipe, int]], budget: Budget) -> Masses | None:
    largest = max((float(epsilon) for epsilon, _ in budget.checked_points), default=0.0)
    if not recipes or largest <= 0:
        return None
    reaches = (gaussian_reach(float(e), float(d)) for e, d in budget.checked_points if e and d)
    reach = max([CURVE_REACH * largest, *reaches])
    step = reach / (CURVE_REACH * CURVE_POINTS)
    return masses(recipes, Window(step, math.ceil(reach / step)))


def _smallest_passing(does: Callable[[float], bool], most: float) -> float | None:
    """The least value up to ``most`` that does, from above; None where ``most`` does not."""
    if not does(most):
        return None
    low, high = 0.0, most
    while high - low > CLOSE_SHARE * most:
        middle = (low + high) / 2
        low, high = (low, middle) if does(middle) else (middle, high)
    return high


def _keeps(total: Masses, budget: Budget, share: float) -> bool:
    """Whether the law keeps a share of every point."""
    pairs = [(total.delta(share * float(e)), share * float(d)) for e, d in budget.checked_points]
    return all(found <= allowed for found, allowed in [*pairs, (total.infinite_mass, share * float(budget.delta))])
