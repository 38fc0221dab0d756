"""Noisy vectors, one integer per group: the measure computed from the table, its sensitivity, and its noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tightrope.errors import PlanError
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.integer_mechanism import Integers
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.queries.intervals import (
    OUTSIDE,
    IndependentPair,
    JointBoxPair,
    NoisePair,
    NoiseTails,
    interval_given_shown,
)
from tightrope.randomness.bits import Stream
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import FixedPoint, Measure

if TYPE_CHECKING:
    from tightrope.mechanisms.exponential import Counts, ExponentialChoice, QuantileChoice

# The grid on which a column's values are summed: fine enough for a negligible error, coarse enough not to overflow.

RANGE_DIGITS = 8
"""Decimal digits of half the range kept in a value: the rounding to the grid is below 1e−8 of it."""
NARROWEST_RANGE = 1e-250
"""The narrowest range whose grid step is large enough for a double."""
MAX_FIXED_POINT = 1e290
"""The largest value for which sums of many rows and their errors fit into a double."""
ROUNDING_ULPS = 8
"""The rounding error of a value converted to the grid and back, in units in the last place of the larger bound."""
MAX_GRID_POINTS = 2.0**60
"""Maximum number of grid points from zero to the larger bound."""


def column_grid(bounds: tuple[float, float], *, centered: bool) -> FixedPoint:
    """Return the fixed-point grid of a column clamped to ``bounds``, with a decimal step to represent decimals exactly.

    ``centered``: integers are counted from the midpoint (for means: half the sensitivity).
    """
    lower, upper = bounds
    largest_magnitude = (upper - lower) / 2 if centered else max(abs(lower), abs(upper))
    if not max(abs(lower), abs(upper)) <= MAX_FIXED_POINT:
        expected = f"a range within {MAX_FIXED_POINT:g} of zero"
        raise PlanError("bounds", bounds, expected, "measure in larger units, so that the numbers are smaller")
    if not largest_magnitude >= NARROWEST_RANGE:
        expected = f"a range that reaches to {NARROWEST_RANGE:g} at least"
        raise PlanError("bounds", bounds, expected, "measure in smaller units, so that the numbers are larger")
    smallest_exponent = math.ceil(math.log10(max(abs(lower), abs(upper)) / MAX_GRID_POINTS))
    step = Decimal(1).scaleb(max(math.floor(math.log10(largest_magnitude)) - RANGE_DIGITS, smallest_exponent))
    uncentered = FixedPoint(lower, upper, step, 0)
    center = (uncentered.to_units(lower) + uncentered.to_units(upper)) // 2 if centered else 0
    return FixedPoint(lower, upper, step, center)


def rounding_error(bounds: tuple[float, float]) -> float:
    """Return the rounding error of a value converted to a centered grid and back, by which intervals are widened."""
    return ROUNDING_ULPS * math.ulp(max(map(abs, bounds)))


CONFIDENCE = 0.95
WHY_CHOSEN = "a choice costs no more than Laplace noise in the number of rows below, however many cells there are"


@dataclass(frozen=True, slots=True)
class NoisyStatistic:
    """One integer per group that noise will be added to; ``sensitivity`` is the most that one row adds to it.

    A *vector* in names and comments of queries and releases is such a statistic: its integers, one per group.

    Vectors of a query with the same ``disjoint_set`` label have the same form, and each row adds to only one of them:
    they act as one vector over that many times the groups, with the noise of one.
    """

    measure: Measure
    noise_spec: NoiseSpec
    sensitivity: int
    disjoint_set: str | None = None
    block: int | None = None
    """The number of neighboring cells (``Query.cell_expression``) that are counted together before noise is added."""
    over_all_groups: bool = False
    """True if all groups are counted together before noise is added; then it has a ``disjoint_set`` label."""
    choice: QuantileChoice | None = None
    """A choice among the cells of a group, in place of noise; ``sensitivity`` is twice its distances' sensitivity."""
    joint_noise: bool = False
    """True if the noise of all such vectors of a set is drawn together, as one point of a box (``box_table``)."""

    @property
    def statistic_name(self) -> str:
        """The name of the vector, unique in its query."""
        return self.measure.name

    @property
    def counts_rows(self) -> bool:
        """Return whether the vector is the number of rows, which the key count provides for discovered keys."""
        return self.measure.column is None and not self.over_all_groups

    @property
    def step_size(self) -> float:
        """The value of one integer step in natural units."""
        return float(self.exact_step)

    @property
    def exact_step(self) -> Decimal:
        """The exact ``step_size``: the grid step of a sum, or the unit of a choice's distances, in rows."""
        if self.choice is not None:
            from tightrope.mechanisms.exponential import PARTS

            return Decimal(1) / PARTS
        return Decimal(1) if self.measure.fixed_point is None else self.measure.fixed_point.step

    def with_name(self, name: str) -> NoisyStatistic:
        """Return the same vector under another name."""
        prefix, choice = name.removesuffix(self.statistic_name), self.choice
        label = None if self.disjoint_set is None else f"{prefix}{self.disjoint_set}"
        if choice is not None and choice.around is not None:
            choice = replace(choice, around=f"{prefix}{choice.around}")
        return replace(self, measure=replace(self.measure, name=name), disjoint_set=label, choice=choice)


def row_count(name: str, size: float) -> NoisyStatistic:
    """Return the number of rows, with noise of this relative size."""
    return NoisyStatistic(Measure(name, None, None), NoiseSpec("count", nearest_eighths(size), True), 1)


def value_count(name: str, column: Term, size: float) -> NoisyStatistic:
    """Return the number of values of a column that are neither NULL nor NaN."""
    return NoisyStatistic(Measure(name, column, None), NoiseSpec("usable values", nearest_eighths(size), True), 1)


def value_sum(name: str, column: Term, fixed: FixedPoint, size: float) -> NoisyStatistic:
    """Return the sum of a column's values on a grid; its sensitivity follows from the integers at both ends."""
    sensitivity = max(abs(fixed.to_units(fixed.lower)), abs(fixed.to_units(fixed.upper)), 1)
    return NoisyStatistic(Measure(name, column, fixed), NoiseSpec("sum", nearest_eighths(size), False), sensitivity)


def cell_choice(name: str, choice: QuantileChoice, size: float) -> NoisyStatistic:
    """Return a choice among the cells of a group, charged as Laplace noise of twice its distances' sensitivity."""
    noise_spec = NoiseSpec(name, nearest_eighths(size), whole_rows=False, is_selection=True)
    return NoisyStatistic(Measure(name, None, None), noise_spec, 2 * choice.distance_sensitivity, choice=choice)


def noise_pair(top: Noise, bottom: Noise) -> NoisePair:
    """Return the joint noise of two numbers of one group."""
    if not (isinstance(top.table, BoxTable) and top.table is bottom.table):
        return IndependentPair(top.noise_tails, bottom.noise_tails)
    return JointBoxPair(
        top.table.radius_probabilities(), (float(top.noise_mechanism.factor), float(bottom.noise_mechanism.factor))
    )


def draw_joint_points(noises: Sequence[Noise], size: int) -> list[Integers]:
    """Return ``size`` joint draws for the numbers of one box; separate draws would not be private."""
    table, randomness = noises[0].table, Stream()
    if not (isinstance(table, BoxTable) and table.dimension == len(noises)):
        raise TypeError(f"{len(noises)} numbers for {table!r}")
    steps_by_number = table.draw_points(size, randomness).T
    return [
        noise.noise_mechanism.stretch_draws(draws, randomness)
        for noise, draws in zip(noises, steps_by_number, strict=True)
    ]


@dataclass(frozen=True, eq=False, repr=False)  # not slotted: caches what all groups share
class Noise:
    """The noise of one vector: the integer distribution that is sampled, and the size of its unit.

    ``discovers``: the vector decides which keys are shown, so its integer is shown only if it exceeds
    ``key_threshold``.
    """

    vector: NoisyStatistic
    family: str
    table: AnyTable
    steps_per_row: int
    discovers: bool = False
    choice: QuantileChoice | None = None
    """The vector's choice; for a minimum or maximum, with the number of rows that its noise makes it leave out."""

    def __repr__(self) -> str:
        return f"<Noise of {self.vector.statistic_name!r}: {self.family}, {self.table!r}>"

    @cached_property
    def noise_mechanism(self) -> WidenedNoise:
        """The table scaled to the vector's units: ``steps_per_row`` of its steps cover the sensitivity of a row."""
        return WidenedNoise(self.table, math.ceil(self.vector.sensitivity / self.steps_per_row))

    @cached_property
    def choice_distribution(self) -> ExponentialChoice:
        """The mechanism of a choice; raises ``InputError`` unless the vector's noise dominates the choice."""
        if isinstance(self.table, BoxTable):
            raise TypeError(self.vector.statistic_name)
        from tightrope.mechanisms.exponential import ExponentialChoice

        return ExponentialChoice.from_table(self.table, self.noise_mechanism.factor)

    def choose_cell(self, counts: Counts, previous_results: Mapping[NoisyStatistic, Any]) -> int:
        """Return a choice among the cells of one group, given ``previous_results``."""
        choice = self.choice
        if choice is None:
            raise TypeError(self.vector.statistic_name)
        center = next(
            (index for vector, index in previous_results.items() if vector.statistic_name == choice.around), 0
        )
        return choice.choose_index(counts, self.choice_distribution, center)

    @property
    def key_threshold(self) -> int | None:
        """The largest value of the noise if the vector discovers keys, which are shown above it; otherwise None."""
        return int(self.noise_mechanism.worst_error) if self.discovers else None

    @cached_property
    def noise_tails(self) -> NoiseTails:
        """The tail probabilities in floats."""
        return NoiseTails.from_noise(self.noise_mechanism)

    @cached_property
    def _half_width_steps(self) -> int:
        return self.noise_mechanism.half_width(CONFIDENCE)

    def confidence_interval(self, value: int, outside: float = OUTSIDE) -> tuple[int, int]:
        """Return an interval that misses the true integer with probability ≤ ``outside``, given that it is shown."""
        # beyond three times the threshold, every plausible count is always shown
        if self.key_threshold is None or value > 3 * self.key_threshold:
            half_width = self._half_width_steps if outside == OUTSIDE else self.noise_mechanism.half_width(1 - outside)
            return value - half_width, value + half_width
        return interval_given_shown(self.noise_tails, value, self.key_threshold, outside)

    @property
    def step_size(self) -> float:
        """The value of one integer step in natural units."""
        return self.vector.step_size

    @property
    def mean_absolute(self) -> float:
        """E|X| in natural units."""
        return self.noise_mechanism.mean_absolute_error * self.step_size

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Return the half-width in natural units that contains the noise with probability ``confidence``."""
        if confidence == CONFIDENCE:
            return self._half_width_steps * self.step_size
        return self.noise_mechanism.half_width(confidence) * self.step_size

    @property
    def worst_error(self) -> float:
        """The largest |X| in natural units; ∞ if unbounded."""
        return self.noise_mechanism.worst_error * self.step_size

    def lower_tail_probability(self, x: int) -> float:
        """Return P(X ≤ x) for the noise X of a count."""
        mechanism = self.noise_mechanism
        return float(1 - mechanism.survival_probability(x)) if x >= 0 else float(mechanism.survival_probability(-x - 1))

    def to_data(self, why: str) -> dict[str, Any]:
        """Return the noise as plain data for plans and reports."""
        return {
            "statistic": self.vector.noise_spec.statistic,
            "family": self.family,
            "why": why if self.vector.choice is None else WHY_CHOSEN,
            "mean_absolute_error": self.mean_absolute,
            "half_width_95": self.half_width(),
            "worst_error": self.worst_error if math.isfinite(self.worst_error) else None,
            "unit": f"{self.step_size:g}",
        }


def with_choices(noises: Sequence[Noise], cells: int | None) -> tuple[Noise, ...]:
    """Return the noises of a query group, each choice among ``cells`` with the number of rows that it leaves out.

    For a minimum or maximum, that number follows from the noise of both choices, and is the same for both.
    """
    by_name = {noise.vector.statistic_name: noise for noise in noises}
    left_out = dict[str, int]()
    for noise in noises:
        choice = noise.vector.choice
        if cells is not None and choice is not None and choice.is_extreme and choice.around is not None:
            from tightrope.mechanisms.exponential import rows_to_leave_out

            value = by_name[choice.around]
            number = rows_to_leave_out(value.choice_distribution, noise.choice_distribution, cells)
            left_out |= dict.fromkeys((choice.around, noise.vector.statistic_name), number)
    return tuple(
        noise
        if noise.vector.choice is None
        else replace(noise, choice=replace(noise.vector.choice, left_out=left_out.get(noise.vector.statistic_name, 0)))
        for noise in noises
    )
