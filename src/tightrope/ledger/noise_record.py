"""The noise of a release as data, and the loss that it has: what ``check`` computes every guarantee from again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

from tightrope.accounting.distributions.gaussian import gaussian_reach
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, at_most
from tightrope.ledger.chain import canonical_json
from tightrope.mechanisms.discrete.box_table import AnyTable, table_from_data
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SelectedNoise, ShiftLoss, SplitBounds, total_loss

FARTHER = 4
"""A plan's lattice holds 1.7 times its ε; what lies beyond four times that has no mass to speak of."""

OWN_POINTS, FARTHEST_POINT = 640, 12_000
"""Lattice points that the ε of one release among many should span, and how far a lattice reaches at most for that."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseRecord:
    """Composition groups with the table of every noisy vector, and the lattice on which their losses were composed.

    ``window`` is None for a single count with one row of each person: its loss follows from its table.
    ``alternatives`` and ``spare`` are the plan's figures for other noise.
    """

    units: tuple[CompositionGroup, ...]
    choices: tuple[tuple[SelectedNoise, ...], ...]
    window: LossLattice | None
    alternatives: Mapping[str, float] = field(default_factory=dict)
    spare: float | None = None

    @property
    def to_text(self) -> str:
        """Return the record as canonical JSON."""
        window = None if self.window is None else [repr(self.window.step), self.window.reach]
        units = []
        for unit, choices in zip(self.units, self.choices, strict=True):
            bounds = unit.split_bounds
            rows = [bounds.rows, bounds.max_rows_per_group, bounds.groups]
            units.append({"rows": rows, "noise": [_choice_data(choice) for choice in choices]})
        said = {"alternatives": dict(self.alternatives), "spare": self.spare}
        return canonical_json({"window": window, "units": units, **said})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The recipe that ``text`` wrote."""
        data = json.loads(text)
        pairs = []
        for unit in data["units"]:
            own = tuple(
                SelectedNoise(NoiseSpec(*one["spend"]), one["family"], one["shift"], table_from_data(one["table"]))
                for one in unit["noise"]
            )
            group = CompositionGroup(tuple(choice.noise_spec for choice in own), SplitBounds(*unit["rows"]))
            pairs.append((group, own))
        step_reach = data["window"]
        window = None if step_reach is None else LossLattice(float(step_reach[0]), int(step_reach[1]))
        units, choices = (tuple(parts) for parts in zip(*pairs, strict=True))
        return cls(units, choices, window, data["alternatives"], data["spare"])

    def compose_loss_pmf(self, window: LossLattice, times: int = 1) -> LossPMF:
        """Return the composed distribution of ``times`` such releases: an upper bound on every lattice."""
        return compose_records([(self, times)], window)

    def composed_loss(self, times: int = 1) -> PrivacyLoss:
        """The loss of ``times`` such releases, noise fixed in advance; neighbors: add or remove one person."""
        if self.window is None:
            ((choice,),) = self.choices
            law = choice.table.atoms_for_shift(choice.steps_per_row)
            return times * PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)
        law = self.compose_loss_pmf(self.window, times).to_atoms()
        return PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)

    def on_finer_lattice(self, delta: float) -> Self:
        """The same noise on a lattice that is fine for one release: a plan's is for many, whose ε is larger.

        ``delta`` is where the ε of one release is looked at. What holds on the lattice before holds on this one.
        """
        if self.window is None:
            return self
        epsilon, step, reach = self.composed_loss().epsilon(delta), self.window.step, self.window.reach
        wanted = math.ceil(OWN_POINTS * step / epsilon) if 0 < epsilon < math.inf else 1
        parts = max(1, min(wanted, FARTHEST_POINT // reach))
        return replace(self, window=LossLattice(step / parts, reach * parts))

    def loss_of_separate_releases(self, times: int = 1) -> PrivacyLoss:
        """Return the same loss as ``times`` distributions on wider lattices, where less mass becomes infinite."""
        if self.window is None:
            return self.composed_loss(times)
        law = self.compose_loss_pmf(LossLattice(self.window.step, self.window.reach * FARTHER)).to_atoms()
        return times * PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)


def has_same_noise(text: str, other: str) -> bool:
    """Return whether two records, as text, have equal tables for equal groups, and the same lattice."""
    one, two = json.loads(text), json.loads(other)
    return (one["units"], one["window"]) == (two["units"], two["window"])


def compose_records(recipes: Sequence[tuple[NoiseRecord, int]], window: LossLattice) -> LossPMF:
    """Return the composed distribution of several releases, each repeated, as if declared together."""

    @cache
    def loss_from_weights(table: AnyTable) -> ShiftLoss:
        # What rounding may have taken from a loss is added to it.
        return lambda shift: table.atoms_for_shift(shift).raise_losses().loss_cells(0.0)

    units = [unit for recipe, times in recipes for unit in recipe.units * times]
    chosen = [choice for recipe, times in recipes for own in recipe.choices * times for choice in own]
    losses, steps = [loss_from_weights(choice.table) for choice in chosen], [choice.steps_per_row for choice in chosen]
    return total_loss(units, losses, steps, window)


def _choice_data(choice: SelectedNoise) -> dict[str, Any]:
    spend = choice.noise_spec
    fields: list[Any] = [spend.statistic, spend.eighths, spend.whole_rows, spend.needs_bound]
    # Fields with their defaults are left out, so that older texts stay as they are.
    if spend.dimension > 1:
        fields += [spend.is_selection, spend.dimension, spend.requested_eighths]
    elif spend.is_selection:
        fields.append(True)
    return {
        "spend": fields,
        "family": choice.family_name, "shift": choice.steps_per_row, "table": choice.table.to_data(),
    }  # fmt: skip


# What the same releases would have spent, had they been declared together before the first: the price of not doing
# so.
#
# It is a comparison and no guarantee: releases that were chosen after seeing answers do not compose like that.

CURVE_POINTS = 2000
"""Lattice points for the budget's largest ε, or for its substitute if δ is large."""
CURVE_REACH = 1.5
"""Reach of the lattice as a multiple of the largest ε, or as far as losses add to a large δ."""
CLOSE_SHARE = 1e-4
"""Precision of the smallest share or ε."""


def composed_budget_share(recipes: Sequence[tuple[NoiseRecord, int]], budget: Budget) -> float | None:
    """Return the least budget share that the exact composition meets, an upper bound; None if the whole is too small.

    Each record ran that many times. Without a requested ε, losses have no lattice to compose on: also None.
    """
    total = _compose_for_budget(recipes, budget)
    if total is None:
        return None

    def meets_share(share: float) -> bool:
        pairs = [(total.delta(share * float(e)), share * float(d)) for e, d in budget.checked_points]
        return all(found <= allowed for found, allowed in [*pairs, (total.infinite_mass, share * float(budget.delta))])

    return _smallest_passing(meets_share, 1.0)


def epsilon_together(recipes: Sequence[tuple[NoiseRecord, int]], budget: Budget) -> float | None:
    """The least ε that the exact composition keeps at the δ of the budget's largest, an upper bound; None as above."""
    total, (largest, delta) = _compose_for_budget(recipes, budget), max(budget.checked_points)
    if total is None:
        return None
    return _smallest_passing(lambda epsilon: total.delta(epsilon) <= at_most(delta), CURVE_REACH * float(largest))


def _compose_for_budget(recipes: Sequence[tuple[NoiseRecord, int]], budget: Budget) -> LossPMF | None:
    largest = max((float(epsilon) for epsilon, _ in budget.checked_points), default=0.0)
    if not recipes or largest <= 0:
        return None
    reaches = (gaussian_reach(float(e), float(d)) for e, d in budget.checked_points if e and d)
    reach = max([CURVE_REACH * largest, *reaches])
    step = reach / (CURVE_REACH * CURVE_POINTS)
    return compose_records(recipes, LossLattice(step, math.ceil(reach / step)))


def _smallest_passing(does: Callable[[float], bool], most: float) -> float | None:
    """Return the least passing value up to ``most``, from above; None if ``most`` does not pass."""
    if not does(most):
        return None
    low, high = 0.0, most
    while high - low > CLOSE_SHARE * most:
        middle = (low + high) / 2
        low, high = (low, middle) if does(middle) else (middle, high)
    return high
