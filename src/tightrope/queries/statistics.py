"""Noisy vectors: one integer per group, what the engine computes for it, what one row can change, and its noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from tightrope.errors import PlanError
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.integer_mechanism import Integers
from tightrope.mechanisms.discrete.scaled_noise import Widened
from tightrope.mechanisms.exponential import PARTS, Counts, ExponentialChoice, QuantileChoice
from tightrope.noise.worst_split import Spend, eighths
from tightrope.queries.intervals import OUTSIDE, Independent, InOneBox, Tails, TwoNoises, shown_interval
from tightrope.randomness.bits import Stream
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import FixedPoint, Measure

# The grid on which a column's values are added up: fine enough to cost nothing, coarse enough never to overflow.

RANGE_DIGITS = 8
"""Decimal digits of half the range that a value keeps: rounding to the grid is below 1e−8 of it."""
NARROWEST_RANGE = 1e-250
"""Below it, a step that is fine enough is too small for a double."""
WIDEST_VALUE = 1e290
"""Beyond it, sums of many rows and their errors are too large for a double."""
ROUNDINGS = 8
"""Units in the last place of the farther bound that a value counted on the grid and brought back may be off by."""
WIDEST_GRID = 2.0**60
"""Grid points from zero to the farther bound, at most."""


def grid(between: tuple[float, float], *, centred: bool) -> FixedPoint:
    """The fixed point of a column clamped to ``between``; a decimal step, so that decimal data lie on it exactly.

    ``centred``: integers are counted from the midpoint (for means: half the sensitivity).
    """
    low, high = between
    reach = (high - low) / 2 if centred else max(abs(low), abs(high))
    if not max(abs(low), abs(high)) <= WIDEST_VALUE:
        expected = f"a range within {WIDEST_VALUE:g} of zero"
        raise PlanError("between", between, expected, "measure in larger units, so that the numbers are smaller")
    if not reach >= NARROWEST_RANGE:
        expected = f"a range that reaches to {NARROWEST_RANGE:g} at least"
        raise PlanError("between", between, expected, "measure in smaller units, so that the numbers are larger")
    finest = math.ceil(math.log10(max(abs(low), abs(high)) / WIDEST_GRID))
    step = Decimal(1).scaleb(max(math.floor(math.log10(reach)) - RANGE_DIGITS, finest))
    plain = FixedPoint(low, high, step, 0)
    centre = (plain.to_units(low) + plain.to_units(high)) // 2 if centred else 0
    return FixedPoint(low, high, step, centre)


def rounding(between: tuple[float, float]) -> float:
    """How far doubles may move what is counted from a middle and brought back: intervals are wider by it."""
    return ROUNDINGS * math.ulp(max(map(abs, between)))


def row_sensitivity(fixed: FixedPoint) -> int:
    """Most that one row, added or removed, changes the integer sum: the larger end, from the integers themselves."""
    return max(abs(fixed.to_units(fixed.lower)), abs(fixed.to_units(fixed.upper)), 1)


CONFIDENCE = 0.95
WHY_CHOSEN = "a choice costs no more than Laplace noise in the number of rows below, however many cells there are"


@dataclass(frozen=True, slots=True)
class Vector:
    """One integer per group that will be made noisy; ``sensitivity`` is the most that one row adds to it.

    Vectors of a question with one ``exclusive`` label are alike, and each row adds to one of them only: they are one
    vector over so many times the groups, and get the noise of one.
    """

    measure: Measure
    spend: Spend
    sensitivity: int
    exclusive: str | None = None
    block: int | None = None
    """Where keys are counted together before the noise: so many neighbouring cells of its question (``Question.cell``).
    """
    whole: bool = False
    """Whether all groups are counted together before the noise; then it has an ``exclusive`` label."""
    choice: QuantileChoice | None = None
    """What is chosen among the cells of a group, in place of noise; ``sensitivity`` is twice that of its distances."""
    boxed: bool = False
    """Whether it shares its noise with the others of its set that are: one point of a box (``box_table``)."""

    @property
    def name(self) -> str:
        """What the question calls it; different for each of its vectors."""
        return self.measure.name

    @property
    def counts_rows(self) -> bool:
        """Whether it is the number of rows, which a discovered key has a count of already."""
        return self.measure.column is None and not self.whole

    @property
    def step(self) -> float:
        """Natural units of one integer."""
        return float(self.unit)

    @property
    def unit(self) -> Decimal:
        """The same, exactly: of a sum its grid, of a choice the parts of a row that its distances have."""
        if self.choice is not None:
            return Decimal(1) / PARTS
        return Decimal(1) if self.measure.fixed_point is None else self.measure.fixed_point.step

    def named(self, name: str) -> Vector:
        """The same vector under another name."""
        before, choice = name.removesuffix(self.name), self.choice
        label = None if self.exclusive is None else f"{before}{self.exclusive}"
        if choice is not None and choice.around is not None:
            choice = replace(choice, around=f"{before}{choice.around}")
        return replace(self, measure=replace(self.measure, name=name), exclusive=label, choice=choice)


def row_count(name: str, size: float) -> Vector:
    """The number of rows, with noise of this relative size."""
    return Vector(Measure(name, None, None), Spend("count", eighths(size), True), 1)


def value_count(name: str, column: Term, size: float) -> Vector:
    """The number of values of a column that are neither NULL nor NaN."""
    return Vector(Measure(name, column, None), Spend("usable values", eighths(size), True), 1)


def value_sum(name: str, column: Term, fixed: FixedPoint, size: float) -> Vector:
    """The sum of a column's values on a grid; its sensitivity comes from the integers at the ends of the range."""
    return Vector(Measure(name, column, fixed), Spend("sum", eighths(size), False), row_sensitivity(fixed))


def cell_choice(name: str, choice: QuantileChoice, size: float) -> Vector:
    """A choice among the cells of a group: charged as Laplace noise of twice the sensitivity of its distances."""
    spend = Spend(name, eighths(size), whole_rows=False, chooses=True)
    return Vector(Measure(name, None, None), spend, 2 * choice.sensitivity, choice=choice)


def together(top: Noise, bottom: Noise) -> TwoNoises:
    """The noise of two numbers of one group."""
    if not (isinstance(top.table, BoxTable) and top.table is bottom.table):
        return Independent(top.tails, bottom.tails)
    return InOneBox(top.table.half_widths(), (float(top.mechanism.factor), float(bottom.mechanism.factor)))


def drawn_points(noises: Sequence[Noise], size: int) -> list[Integers]:
    """``size`` draws for each of the numbers of one box, all of them together: one by one they would not be private."""
    table, randomness = noises[0].table, Stream()
    if not (isinstance(table, BoxTable) and table.dimension == len(noises)):
        raise TypeError(f"{len(noises)} numbers for {table!r}")
    steps = table.draw(size, randomness).T
    return [noise.mechanism.stretched(own, randomness) for noise, own in zip(noises, steps, strict=True)]


@dataclass(frozen=True, eq=False)  # not slotted: what all groups share is kept
class Noise:
    """The noise of one vector: the integer law that runs, and the size of its unit.

    ``discovers``: the vector shows which keys there are, so its integer is seen only where it exceeds ``threshold``.
    """

    vector: Vector
    family: str
    table: AnyTable
    shift: int
    discovers: bool = False

    @cached_property
    def mechanism(self) -> Widened:
        """The table stretched to the vector's units: its steps, ``shift`` a row, cover the row's sensitivity."""
        return Widened(self.table, math.ceil(self.vector.sensitivity / self.shift))

    @cached_property
    def law(self) -> ExponentialChoice:
        """How a choice is made, where the vector is one: raises ``InputError`` unless its noise dominates that."""
        if isinstance(self.table, BoxTable):
            raise TypeError(self.vector.name)
        return ExponentialChoice.of(self.table, self.mechanism.factor)

    def chosen(self, counts: Counts, found: Mapping[Vector, Any]) -> int:
        """A choice among the cells of one group, beside what was ``found`` before."""
        choice = self.vector.choice
        if choice is None:
            raise TypeError(self.vector.name)
        named = next((place for vector, place in found.items() if vector.name == choice.around), 0)
        return choice.chosen(counts, self.law, named)

    @property
    def threshold(self) -> int | None:
        """The largest value of the noise, where the vector discovers keys: they are shown beyond it."""
        return int(self.mechanism.worst_error) if self.discovers else None

    @cached_property
    def tails(self) -> Tails:
        """Its tail probabilities in floats."""
        return Tails.of(self.mechanism)

    @cached_property
    def _half(self) -> int:
        return self.mechanism.half_width(CONFIDENCE)

    def interval(self, value: int, outside: float = OUTSIDE) -> tuple[int, int]:
        """Integers that hold the true one but ``outside`` of the time, given the noisy one, and that it is seen."""
        if self.threshold is None or value > 3 * self.threshold:  # beyond, every likely count is always seen
            half = self._half if outside == OUTSIDE else self.mechanism.half_width(1 - outside)
            return value - half, value + half
        return shown_interval(self.tails, value, self.threshold, outside)

    @property
    def step(self) -> float:
        """Natural units of one integer."""
        return self.vector.step

    @property
    def mean_absolute(self) -> float:
        """E|X| in natural units."""
        return self.mechanism.mean_absolute_error * self.step

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Natural units within which the noise stays that often."""
        if confidence == CONFIDENCE:
            return self._half * self.step
        return self.mechanism.half_width(confidence) * self.step

    @property
    def worst(self) -> float:
        """Largest |X| in natural units; ∞ without a bound."""
        return self.mechanism.worst_error * self.step

    def at_most(self, x: int) -> float:
        """P(X ≤ x) of a count's noise."""
        law = self.mechanism
        return float(1 - law.survival(x)) if x >= 0 else float(law.survival(-x - 1))

    def to_data(self, why: str) -> dict[str, Any]:
        """For plans and reports."""
        return {
            "statistic": self.vector.spend.statistic,
            "family": self.family,
            "why": why if self.vector.choice is None else WHY_CHOSEN,
            "mean_absolute_error": self.mean_absolute,
            "half_width_95": self.half_width(),
            "worst_error": self.worst if math.isfinite(self.worst) else None,
            "unit": f"{self.step:g}",
        }
