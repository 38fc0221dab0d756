"""What a release asks of an engine, and what comes back: plain data that names no engine."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from decimal import Decimal

from tightrope.errors import InputError
from tightrope.numerics import checks
from tightrope.tables.expressions.expression import Term

WIDEST_VALUE = 2**62
"""Largest fixed-point value of one row: the difference of any two still fits in 64 bits."""
WIDEST_PRODUCT = 2**50
"""Largest product of one row: doubles hold every whole number up to there, and halves."""
MOST_BY = 16
"""Columns that a question may group by: what a row takes in memory grows with them."""


@dataclass(frozen=True, slots=True)
class PersonBounds:
    """How much of one person is used: at most ``rows`` rows, ``rows_per_group`` in a group, and ``groups`` groups.

    ``person`` names the column that says whose row it is. ``person=None``: each row is a person, nothing needs
    bounding, and all three bounds are 1.
    """

    person: str | None
    rows: int
    rows_per_group: int
    groups: int

    def __post_init__(self) -> None:
        for name in ("rows", "rows_per_group", "groups"):
            checks.whole(name, getattr(self, name))
        if self.person is None and (self.rows, self.rows_per_group, self.groups) != (1, 1, 1):
            bounds = (self.rows, self.rows_per_group, self.groups)
            raise InputError("bounds", bounds, "(1, 1, 1) when each row is a person", "or name the person column")


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A number as an integer: ``R(x) = floor(clip(x, lower, upper) / step + 1/2) - centre``, in units of ``step``.

    The arithmetic is that of IEEE doubles with ``float(step)``, here and in the engine: the same bits, so that a
    sensitivity computed from ``to_units`` of the end points is the one that the engine's integers have. Half is
    rounded up always: rounding half to even doubles the sensitivity of some sums (theory 4.3). ``R`` is monotone.

    >>> cents = FixedPoint(lower=0, upper=100, step=Decimal("0.01"), centre=5_000)
    >>> cents.to_units(0), cents.to_units(12.345), cents.to_units(1e9)
    (-5000, -3765, 5000)
    """

    lower: float
    upper: float
    step: Decimal
    centre: int

    def __post_init__(self) -> None:
        checks.finite("lower", self.lower)
        checks.finite("upper", self.upper)
        checks.positive("step", self.step)
        if not self.lower < self.upper:
            raise InputError("upper", self.upper, f"above lower={self.lower!r}")
        if not float(self.step) > 0:
            raise InputError("step", self.step, "a step that a double can hold", "use a larger step")
        if isinstance(self.centre, bool) or not isinstance(self.centre, int):
            raise InputError("centre", self.centre, "a whole number of steps")
        self._refuse_overflow()

    def _refuse_overflow(self) -> None:
        """Every intermediate of every row fits in 64 bits, whatever the data."""
        extremes = [abs(bound / float(self.step)) for bound in (self.lower, self.upper)]
        if not (max(extremes) < WIDEST_VALUE and abs(self.centre) <= WIDEST_VALUE and self._largest() <= WIDEST_VALUE):
            raise InputError("step", self.step, "large enough that values stay below 2**62 steps", "use a larger step")

    def _largest(self) -> int:
        return max(abs(self.to_units(self.lower)), abs(self.to_units(self.upper)))

    def to_units(self, x: float) -> int:
        """``R(x)``, as the engine computes it. Infinities are clamped; NaN, which the engine drops, is refused."""
        if math.isnan(x):
            raise InputError("x", x, "a number", "rows with NaN are dropped before they reach fixed point")
        clipped = min(max(float(x), float(self.lower)), float(self.upper))
        return math.floor(clipped / float(self.step) + 0.5) - self.centre

    @property
    def extremes(self) -> tuple[int, int]:
        """The least and the largest integer that a row can add."""
        return self.to_units(self.lower), self.to_units(self.upper)


@dataclass(frozen=True, slots=True)
class Factor:
    """A value counted from ``middle``: ``clip(x, lower, upper) - middle``, one operation on doubles after clamping.

    Monotone in x, rounding included: so are products of factors in each of them, and their extremes lie at the ends.
    """

    lower: float
    upper: float
    middle: float

    def __post_init__(self) -> None:
        checks.finite("lower", self.lower)
        checks.finite("upper", self.upper)
        if not self.lower < self.upper:
            raise InputError("upper", self.upper, f"above lower={self.lower!r}")
        if not self.lower <= self.middle <= self.upper:
            raise InputError("middle", self.middle, f"from {self.lower!r} to {self.upper!r}")

    def of(self, x: float) -> float:
        """The factor, as the engine computes it. Infinities are clamped; NaN, which the engine drops, is refused."""
        if math.isnan(x):
            raise InputError("x", x, "a number", "rows with NaN are dropped before they are counted")
        return min(max(float(x), float(self.lower)), float(self.upper)) - float(self.middle)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest."""
        return self.of(self.lower), self.of(self.upper)


@dataclass(frozen=True, slots=True)
class FixedProduct:
    """A factor, its square or a product of two as an integer: ``floor(f / step + 1/2) - centre``, in units of ``step``.

    The arithmetic is that of IEEE doubles, here and in the engine: the same bits. The product is rounded once, when
    it is put on the grid: rounding each factor to a grid of its own first would cost half the digits.

    >>> square = FixedProduct((Factor(0, 10, 5.0),), Decimal("0.1"), centre=125, squared=True)
    >>> square.to_units(2), square.to_units(99), square.extremes
    (-35, 125, (-125, 125))
    """

    factors: tuple[Factor, ...]
    step: Decimal
    centre: int = 0
    squared: bool = False

    def __post_init__(self) -> None:
        checks.positive("step", self.step)
        if not 1 <= len(self.factors) <= 2 - self.squared:
            raise InputError("factors", len(self.factors), "one or two; one where it is squared")
        if not float(self.step) > 0:
            raise InputError("step", self.step, "a step that a double can hold", "use a larger step")
        largest = self._value(*(max(map(abs, factor.ends)) for factor in self.factors)) / float(self.step)
        if not (largest <= WIDEST_PRODUCT and abs(self.centre) <= WIDEST_PRODUCT):
            raise InputError("step", self.step, "large enough that values stay below 2**50 steps", "use a larger step")

    def _value(self, first: float, second: float | None = None) -> float:
        if second is None:
            return first * first if self.squared else first
        return first * second

    def _units(self, *factors: float) -> int:
        return math.floor(self._value(*factors) / float(self.step) + 0.5) - self.centre

    def to_units(self, *values: float) -> int:
        """The integer of a row with these values, one a factor, as the engine computes it."""
        return self._units(*(factor.of(x) for factor, x in zip(self.factors, values, strict=True)))

    @property
    def extremes(self) -> tuple[int, int]:
        """The least and the largest integer that a row can add: at the ends, and at the middle where it is squared."""
        ends = [self._units(*corner) for corner in itertools.product(*(factor.ends for factor in self.factors))]
        return min([*ends, *([-self.centre] if self.squared else [])]), max(ends)


@dataclass(frozen=True, slots=True)
class Measure:
    """One integer per group.

    ``column=None``: the number of rows. A column, or an expression, without ``fixed_point``: the number of usable
    values (neither NULL nor NaN). With both: the sum of ``R(x)`` over the usable values.

    ``beside`` is a second column: then a row is usable where neither value is NULL or NaN, and a product takes its
    second factor from there. So counts, sums and products of two columns speak of the same rows.
    """

    name: str
    column: Term | None
    fixed_point: FixedPoint | FixedProduct | None
    beside: Term | None = None

    def __post_init__(self) -> None:
        if self.column is None and not (self.fixed_point is None and self.beside is None):
            raise InputError("column", self.column, "a column's name, because fixed_point or beside is given")
        if isinstance(self.fixed_point, FixedProduct) and len(self.fixed_point.factors) == 2 and self.beside is None:
            raise InputError("beside", self.beside, "the name of the column that the second factor is of")

    @property
    def columns(self) -> tuple[Term, ...]:
        """The columns, or expressions, that it is of."""
        return tuple(term for term in (self.column, self.beside) if term is not None)


@dataclass(frozen=True, slots=True)
class Distinct(Measure):
    """How many different usable values a column has among the rows that are used.

    Not a sum over rows: a value that others have, too, is counted once. A person's rows change it by at most as many as
    they are.
    """

    def __post_init__(self) -> None:
        if self.column is None or self.fixed_point is not None or self.beside is not None:
            raise InputError("column", self.column, "one column or expression, without fixed_point and beside")


@dataclass(frozen=True, slots=True)
class Request:
    """What to count and sum, by which keys, and how much of one person to use.

    ``keys=None``: the groups are discovered: those that hold a row after bounding. ``keys`` given: rows of other
    groups are dropped *before* bounding, so that they take nothing from a person's allowance. So are rows for which
    ``where`` is not true.
    """

    by: tuple[Term, ...]
    keys: tuple[tuple[object, ...], ...] | None
    bounds: PersonBounds
    measures: tuple[Measure, ...]
    where: Term | None = None
    steps: tuple[int, ...] = ()
    """Where given, persons are counted by how many rows they have: under the largest of these rising numbers that they
    reach. Each is counted once, so there is nothing to bound."""

    def __post_init__(self) -> None:
        self._check_steps()
        _distinct("by", tuple(map(str, self.by)))
        if len(self.by) > MOST_BY + 1:  # quantiles and histograms add the number of a cell
            raise InputError("by", f"{len(self.by)} columns", f"at most {MOST_BY}, and one of cells")
        checks.filled("measures", self.measures)
        _distinct("measures", tuple(measure.name for measure in self.measures))
        if self.keys is None:
            return
        checks.filled("keys", self.keys, "leave keys out to have them discovered")
        for key in self.keys:
            if not (isinstance(key, tuple) and len(key) == len(self.by)):
                raise InputError("key", key, f"a tuple with one entry for each of by={self.by!r}")

    def _check_steps(self) -> None:
        rising = self.steps == tuple(sorted(set(self.steps))) and self.steps[:1] in ((), (1,))
        alone = not self.by and self.bounds == PersonBounds(self.bounds.person, 1, 1, 1) and len(self.measures) == 1
        if not rising or (self.steps and not (alone and self.bounds.person is not None)):
            raise InputError("steps", self.steps, "rising whole numbers from 1 on, with one measure of persons alone")


@dataclass(frozen=True, slots=True)
class Grouped:
    """The integers of every group: ``values[measure][i]`` belongs to ``keys[i]``.

    Groups are sorted by key, ``None`` first. They are exact and private data: nothing but noise may be added to them
    before anyone sees them.
    """

    keys: tuple[tuple[object, ...], ...]
    values: dict[str, tuple[int, ...]]


def _distinct(name: str, values: tuple[str, ...]) -> None:
    if len(set(values)) != len(values):
        raise InputError(name, values, "a list without repetitions")
