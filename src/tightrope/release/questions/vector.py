"""Noisy vectors: one integer per group, what the engine computes for it, what one row can change, and its noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from tightrope.design.allocation.units import Spend, eighths
from tightrope.engines.expressions.terms import Term
from tightrope.engines.request import FixedPoint, Measure
from tightrope.mechanisms.choices.exponential import ExponentialChoice
from tightrope.mechanisms.choices.quantile import PARTS, Counts, QuantileChoice
from tightrope.mechanisms.integer.integer_mechanism import Integers
from tightrope.mechanisms.integer.widened import Widened
from tightrope.mechanisms.tables.box_table import AnyTable, BoxTable
from tightrope.randomness.stream import Stream
from tightrope.release.questions.fixed_point import row_sensitivity
from tightrope.release.questions.widths.intervals import OUTSIDE, shown_interval
from tightrope.release.questions.widths.tails import Tails
from tightrope.release.questions.widths.two_noises import Independent, InOneBox, TwoNoises

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
