"""The noise of a release as data, from which ``check`` recomputes its privacy loss and every guarantee."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

from msgspec import convert, to_builtins

from tightrope.accounting.distributions.gaussian import gaussian_reach
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, float_at_most
from tightrope.documents.document import PackedTable
from tightrope.errors import InputError, LedgerError
from tightrope.ledger.chain import CORRUPT, canonical_json
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable, table_from_data
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.coarse_losses import certified_noise_loss
from tightrope.noise.worst_split import (
    Alternative,
    CompositionGroup,
    NoiseSpec,
    SelectedNoise,
    SplitBounds,
    by_alternative,
    repeat_groups,
    worst_split_loss,
)
from tightrope.numerics.checks import check_integer, check_nonempty, check_positive
from tightrope.numerics.root_finding import bisect_real

WIDER_REACH = 4
"""A plan's lattice reaches 1.7 times its ε; beyond four times that, the mass is negligible."""
POINTS_PER_EPSILON = 640
"""Lattice points that the ε of a single release should span."""
MAX_LATTICE_REACH = 12_000
"""Largest reach, in points, of a lattice that is refined for a single release."""
CURVE_POINTS = 2000
"""Lattice points for the budget's largest ε, or for its substitute if δ is large."""
CURVE_REACH = 1.5
"""Reach of the lattice as a multiple of the largest ε, or as far as losses add to a large δ."""
FRACTION_TOLERANCE = 1e-4
"""Precision of the smallest fraction or ε, relative to the largest candidate."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseRecord:
    """Composition groups with the noise table of each statistic, and the lattice on which their losses were composed.

    ``window``, the lattice, is None for a single count of at most one row of each person, or several with equal noise
    of which a row enters one: the table gives the loss.
    ``alternatives`` and ``avoidable_noise`` are those of the ``NoiseAllocation``.
    """

    units: tuple[CompositionGroup, ...]
    choices: tuple[tuple[SelectedNoise, ...], ...]
    window: LossLattice | None
    alternatives: Mapping[str, float] = field(default_factory=dict)
    avoidable_noise: float | None = None
    bounds_splits: bool = False
    """As in the ``NoiseAllocation``: how the losses of persons with many rows are bounded."""
    planning_rule: int = 1
    """The rule by which relative noise sizes were planned: entries before rule 2 do not state it."""

    @property
    def composed_units(self) -> tuple[CompositionGroup, ...]:
        """The groups with the bound that was certified."""
        return tuple(unit.with_fast_bound() for unit in self.units) if self.bounds_splits else self.units

    @property
    def to_text(self) -> str:
        """Return the record as canonical JSON."""
        window = None if self.window is None else [repr(self.window.step), self.window.reach]
        units, numbers = [], dict[AnyTable, int]()
        for unit, choices in zip(self.units, self.choices, strict=True):
            bounds = unit.split_bounds
            rows = [bounds.rows, bounds.max_rows_per_group, bounds.groups]
            noise = []
            for choice in choices:
                spend = choice.noise_spec
                fields: list[Any] = [spend.statistic, spend.eighths, spend.whole_rows, spend.needs_bound]
                # Fields with their defaults are left out, so that older texts stay as they are.
                if spend.dimension > 1:
                    fields += [spend.is_selection, spend.dimension, spend.requested_eighths]
                elif spend.is_selection:
                    fields.append(True)
                named = {"family": choice.family_name, "shift": choice.steps_per_row}
                number = numbers.setdefault(choice.table, len(numbers) + 1)
                noise.append({"spend": fields, **named, "table": number})
            alternative = {} if unit.alternative is None else {"alternative": list(unit.alternative)}
            units.append({"rows": rows, "noise": noise, **alternative})
        figures = {"alternatives": dict(self.alternatives), "spare": self.avoidable_noise}
        # Left out if False, so that older texts stay as they are.
        figures |= {"bounds_splits": True} if self.bounds_splits else {}
        figures |= {"planning_rule": self.planning_rule} if self.planning_rule > 1 else {}
        tables = [_table_data(table) for table in numbers]
        return canonical_json({"window": window, "units": units, "tables": tables, **figures})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the record from the text of ``to_text``. Raises ``LedgerError`` for any other text."""
        try:
            data = json.loads(text)
            tables, pairs = [_table_from_data(table) for table in data.get("tables", ())], []
            for unit in data["units"]:
                selected = tuple(
                    SelectedNoise(
                        NoiseSpec(*one["spend"]),
                        one["family"],
                        check_integer("shift", one["shift"]),
                        _table_of_entry(one["table"], tables),
                    )
                    for one in unit["noise"]
                )
                check_nonempty("noise", selected)
                specs, alternative = tuple(choice.noise_spec for choice in selected), None
                if "alternative" in unit:
                    set_number, member = (check_integer("alternative", one, 0) for one in unit["alternative"])
                    alternative = Alternative(set_number, member)
                pairs.append((CompositionGroup(specs, SplitBounds(*unit["rows"]), False, alternative), selected))
            if tables:
                used = dict.fromkeys(one["table"] for unit in data["units"] for one in unit["noise"])
                if list(used) != list(range(1, len(tables) + 1)) or len(set(tables)) != len(tables):
                    raise InputError("tables", len(tables), "different tables, in the order of their first use")
            window = None
            if data["window"] is not None:
                step, reach = data["window"]
                window = LossLattice(check_positive("step", float(step)), check_integer("reach", reach))
            units, choices = (tuple(parts) for parts in zip(*pairs, strict=True))
            figures = data["alternatives"], data["spare"], data.get("bounds_splits", False)
            return cls(units, choices, window, *figures, check_integer("planning_rule", data.get("planning_rule", 1)))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise LedgerError(f"a record of noise in the ledger was changed after it was written; {CORRUPT}") from error

    def compose_loss_pmf(self, window: LossLattice, times: int = 1) -> LossPMF:
        """Return the composed distribution of ``times`` such releases on a lattice, with losses rounded up."""
        return compose_records([(self, times)], window)

    def composed_loss(self, times: int = 1) -> PrivacyLoss:
        """Return the privacy loss of ``times`` such releases with this noise; neighbors: add or remove one person."""
        if self.window is None:
            (members,) = by_alternative(self.units, self.choices)
            # One vector in each member, with the same noise.
            ((table, shift),) = {(choice.table, choice.steps_per_row) for ((choice,),) in members}
            law = table.atoms_for_shift(shift)
            return times * PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)
        law = self.compose_loss_pmf(self.window, times).to_atoms()
        return PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)

    def on_finer_lattice(self, delta: float) -> Self:
        """Return the same noise with a lattice fine enough for the ε of one release at ``delta``.

        A plan's lattice suits the larger ε of many releases. The finer lattice contains the points of the old one, so
        bounds only get tighter.
        """
        if self.window is None:
            return self
        epsilon, step, reach = self.composed_loss().epsilon(delta), self.window.step, self.window.reach
        needed = math.ceil(POINTS_PER_EPSILON * step / epsilon) if 0 < epsilon < math.inf else 1
        parts = max(1, min(needed, MAX_LATTICE_REACH // reach))
        return replace(self, window=LossLattice(step / parts, reach * parts))

    def loss_of_separate_releases(self, times: int = 1) -> PrivacyLoss:
        """Return the same loss as ``times`` distributions on wider lattices, where less mass becomes infinite."""
        if self.window is None:
            return self.composed_loss(times)
        law = self.compose_loss_pmf(LossLattice(self.window.step, self.window.reach * WIDER_REACH)).to_atoms()
        return times * PrivacyLoss.from_distribution(law, reverse=law, neighbors=Neighbors.ADD_REMOVE)


def _table_data(table: AnyTable) -> dict[str, Any]:
    """Return a table as plain data: weights in hexadecimal, equal neighbors once."""
    if isinstance(table, BoxTable):
        return {**to_builtins(table.radii.packed()), "dimension": table.dimension}
    data: dict[str, Any] = to_builtins(table.packed())
    return data


def _table_from_data(data: dict[str, Any]) -> AnyTable:
    """Return the table from the output of ``_table_data``."""
    table = NoiseTable.from_packed(convert({name: data[name] for name in data if name != "dimension"}, PackedTable))
    return BoxTable(table, data["dimension"]) if "dimension" in data else table


def _table_of_entry(entry: int | dict[str, Any], tables: Sequence[AnyTable]) -> AnyTable:
    """Return the table with this number; a record without tables is older, and has the table itself in each place."""
    if not tables and isinstance(entry, dict):
        return table_from_data(entry)
    return tables[check_integer("table", entry) - 1]


def has_same_noise(text: str, other: str) -> bool:
    """Return whether two records, as text, have equal tables for equal groups, and the same lattice."""
    one, two = NoiseRecord.from_text(text), NoiseRecord.from_text(other)
    return all(getattr(one, name) == getattr(two, name) for name in ("units", "choices", "window", "bounds_splits"))


def compose_records(records: Sequence[tuple[NoiseRecord, int]], window: LossLattice) -> LossPMF:
    """Return the composed distribution of several releases, each run the given number of times, declared together."""
    loss_from_weights = cache(certified_noise_loss)
    units = repeat_groups([(record.composed_units, times) for record, times in records])
    groups_of_vectors = [unit for unit in units for _ in unit.noise_specs]
    choices = [choice for record, times in records for group in record.choices * times for choice in group]
    losses, steps = (
        [
            loss_from_weights(choice.table, unit.bounds_splits)
            for choice, unit in zip(choices, groups_of_vectors, strict=True)
        ],
        [choice.steps_per_row for choice in choices],
    )
    return worst_split_loss(units, losses, steps, window)


# The cost of the same releases if they had been declared together before the first one. It is a comparison, not a
# guarantee: releases that were chosen after seeing answers do not compose like that.


def composed_budget_fraction(records: Sequence[tuple[NoiseRecord, int]], budget: Budget) -> float | None:
    """Return an upper bound on the smallest budget fraction that covers the exact composition; None if it exceeds 1.

    Each record ran the given number of times. Also None without records, or if the budget has no ε > 0.
    """
    total = _compose_for_budget(records, budget)
    if total is None:
        return None

    def covers(fraction: float) -> bool:
        pairs = [(total.delta(fraction * float(e)), fraction * float(d)) for e, d in budget.checked_points]
        pairs.append((total.infinite_mass, fraction * float(budget.delta)))
        return all(delta <= allowed for delta, allowed in pairs)

    return _smallest_passing(covers, 1.0)


def epsilon_together(records: Sequence[tuple[NoiseRecord, int]], budget: Budget) -> float | None:
    """Return an upper bound on the ε of the exact composition, at the δ of the largest budget point."""
    total, (largest, delta) = _compose_for_budget(records, budget), max(budget.checked_points)
    if total is None:
        return None
    return _smallest_passing(lambda epsilon: total.delta(epsilon) <= float_at_most(delta), CURVE_REACH * float(largest))


def _compose_for_budget(records: Sequence[tuple[NoiseRecord, int]], budget: Budget) -> LossPMF | None:
    """Return the composed distribution, on a lattice for the budget; None without records or an ε > 0."""
    largest = max((float(epsilon) for epsilon, _ in budget.checked_points), default=0.0)
    if not records or largest <= 0:
        return None
    reaches = (gaussian_reach(float(e), float(d)) for e, d in budget.checked_points if e and d)
    reach = max([CURVE_REACH * largest, *reaches])
    step = reach / (CURVE_REACH * CURVE_POINTS)
    return compose_records(records, LossLattice(step, math.ceil(reach / step)))


def _smallest_passing(passes: Callable[[float], bool], largest: float) -> float | None:
    """Return an upper bound on the smallest value that passes, at most ``largest``; None if ``largest`` fails."""
    if not passes(largest):
        return None
    return bisect_real(passes, 0.0, largest, side="passes", within=FRACTION_TOLERANCE * largest)
