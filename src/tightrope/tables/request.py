"""Requests for exact integers by group, and their results: plain data, independent of engines."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from decimal import Decimal

from tightrope.errors import InputError
from tightrope.numerics import checks
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.leaves import PersonValue, find_person_value
from tightrope.tables.expressions.rounding import Cell

MAX_FIXED_POINT = 2**62
"""Largest fixed-point value of one row: the difference of any two still fits in 64 bits."""
MAX_PRODUCT = 2**50
"""Largest product of one row: doubles hold all integers up to this, and their halves."""
MAX_GROUPING_COLUMNS = 16
"""Most columns that a question may group by, because the memory for one row grows with their number."""


@dataclass(frozen=True, slots=True)
class ContributionBounds:
    """At most ``max_rows`` rows of a person count, ``max_rows_per_group`` in a group, in ``max_groups`` groups.

    ``person_column`` is the column, or the expression, that identifies the person of a row. If it is None, each row is
    a person, and all three bounds are 1.
    """

    person_column: Term | None
    max_rows: int
    max_rows_per_group: int
    max_groups: int

    def __post_init__(self) -> None:
        for name in ("max_rows", "max_rows_per_group", "max_groups"):
            checks.check_integer(name, getattr(self, name))
        if self.person_column is None and (self.max_rows, self.max_rows_per_group, self.max_groups) != (1, 1, 1):
            bounds = (self.max_rows, self.max_rows_per_group, self.max_groups)
            raise InputError("bounds", bounds, "(1, 1, 1) when each row is a person", "or name the person column")


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """A number as an integer: ``R(x) = floor(clip(x, lower, upper) / step + 1/2) - center``, in units of ``step``.

    The arithmetic is IEEE doubles with ``float(step)``, here and in the engine: the same bits, so that a
    sensitivity computed from ``to_units`` of the end points is the one that the engine's integers have. Half is
    rounded up always: rounding half to even doubles the sensitivity of some sums (theory 4.3). ``R`` is monotone.

    >>> cents = FixedPoint(lower=0, upper=100, step=Decimal("0.01"), center=5_000)
    >>> cents.to_units(0), cents.to_units(12.345), cents.to_units(1e9)
    (-5000, -3765, 5000)
    """

    lower: float
    upper: float
    step: Decimal
    center: int

    def __post_init__(self) -> None:
        checks.check_finite("lower", self.lower)
        checks.check_finite("upper", self.upper)
        checks.check_positive("step", self.step)
        if not self.lower < self.upper:
            raise InputError("upper", self.upper, f"above lower={self.lower!r}")
        if not float(self.step) > 0:
            raise InputError("step", self.step, "a step that a double can hold", "use a larger step")
        if isinstance(self.center, bool) or not isinstance(self.center, int):
            raise InputError("center", self.center, "a whole number of steps")
        # every intermediate value of every row must fit in 64 bits, for all data
        largest_quotient = max(abs(bound / float(self.step)) for bound in (self.lower, self.upper))
        largest_units = math.inf
        if largest_quotient < MAX_FIXED_POINT:
            largest_units = max(abs(self.center), *(abs(self.to_units(end)) for end in (self.lower, self.upper)))
        if not largest_units <= MAX_FIXED_POINT:
            raise InputError("step", self.step, "large enough that values stay below 2**62 steps", "use a larger step")

    def to_units(self, x: float) -> int:
        """Return ``R(x)`` as the engine computes it. Infinities are clamped; NaN raises ``InputError``."""
        if math.isnan(x):
            raise InputError("x", x, "a number", "rows with NaN are dropped before they reach fixed point")
        clipped = min(max(float(x), float(self.lower)), float(self.upper))
        return math.floor(clipped / float(self.step) + 0.5) - self.center

    @property
    def units_range(self) -> tuple[int, int]:
        """The smallest and the largest integer that a row can add."""
        return self.to_units(self.lower), self.to_units(self.upper)


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a product: ``clip(x, lower, upper) - middle``, one operation on doubles after clamping.

    It is monotone in x, rounding included. So a product of factors is monotone in each of them, and its extremes lie at
    the ends of their ranges.
    """

    lower: float
    upper: float
    middle: float

    def __post_init__(self) -> None:
        checks.check_finite("lower", self.lower)
        checks.check_finite("upper", self.upper)
        if not self.lower < self.upper:
            raise InputError("upper", self.upper, f"above lower={self.lower!r}")
        if not self.lower <= self.middle <= self.upper:
            raise InputError("middle", self.middle, f"from {self.lower!r} to {self.upper!r}")

    def evaluate_at(self, x: float) -> float:
        """Return the factor as the engine computes it. Infinities are clamped; NaN raises ``InputError``."""
        if math.isnan(x):
            raise InputError("x", x, "a number", "rows with NaN are dropped before they are counted")
        return min(max(float(x), float(self.lower)), float(self.upper)) - float(self.middle)

    @property
    def factor_range(self) -> tuple[float, float]:
        """The smallest and the largest value of the factor."""
        return self.evaluate_at(self.lower), self.evaluate_at(self.upper)


@dataclass(frozen=True, slots=True)
class FixedProduct:
    """A factor, its square or a product of two as an integer: ``floor(f / step + 1/2) - center``, in units of ``step``.

    The arithmetic is IEEE doubles, here and in the engine: the same bits. The product is rounded once, to a multiple of
    ``step``; rounding each factor first would cost half of the digits.

    >>> square = FixedProduct((Factor(0, 10, 5.0),), Decimal("0.1"), center=125, squared=True)
    >>> square.to_units(2), square.to_units(99), square.units_range
    (-35, 125, (-125, 125))
    """

    factors: tuple[Factor, ...]
    step: Decimal
    center: int = 0
    squared: bool = False

    def __post_init__(self) -> None:
        checks.check_positive("step", self.step)
        if not 1 <= len(self.factors) <= 2 - self.squared:
            raise InputError("factors", len(self.factors), "one or two; one where it is squared")
        if not float(self.step) > 0:
            raise InputError("step", self.step, "a step that a double can hold", "use a larger step")
        largest = self._multiply_factors(*(max(map(abs, factor.factor_range)) for factor in self.factors)) / float(
            self.step
        )
        if not (largest <= MAX_PRODUCT and abs(self.center) <= MAX_PRODUCT):
            raise InputError("step", self.step, "large enough that values stay below 2**50 steps", "use a larger step")

    def _multiply_factors(self, first: float, second: float | None = None) -> float:
        if second is None:
            return first * first if self.squared else first
        return first * second

    def _round_to_units(self, *factors: float) -> int:
        return math.floor(self._multiply_factors(*factors) / float(self.step) + 0.5) - self.center

    def to_units(self, *values: float) -> int:
        """Return the integer of a row with these values, one for each factor, as the engine computes it."""
        return self._round_to_units(*(factor.evaluate_at(x) for factor, x in zip(self.factors, values, strict=True)))

    @property
    def units_range(self) -> tuple[int, int]:
        """The smallest and the largest integer that a row can add; a square is smallest at the middle."""
        ends = [
            self._round_to_units(*corner)
            for corner in itertools.product(*(factor.factor_range for factor in self.factors))
        ]
        return min([*ends, *([-self.center] if self.squared else [])]), max(ends)


@dataclass(frozen=True, slots=True)
class Measure:
    """One integer per group.

    ``column=None``: the number of rows. A column, or an expression, without ``fixed_point``: the number of usable
    values (neither NULL nor NaN). With both: the sum of ``R(x)`` over the usable values.

    With a ``second_column``, a row is usable if neither value is NULL or NaN, and the second factor of a product comes
    from it. So counts, sums and products of two columns use the same rows.
    """

    name: str
    column: Term | None
    fixed_point: FixedPoint | FixedProduct | None
    second_column: Term | None = None

    def __post_init__(self) -> None:
        if self.column is None and not (self.fixed_point is None and self.second_column is None):
            raise InputError("column", self.column, "a column's name, because fixed_point or second_column is given")
        if (
            isinstance(self.fixed_point, FixedProduct)
            and len(self.fixed_point.factors) == 2
            and self.second_column is None
        ):
            raise InputError("second_column", self.second_column, "the name of the column that the second factor is of")

    @property
    def measured_terms(self) -> tuple[Term, ...]:
        """The one or two columns, or expressions, that are measured; none for the number of rows."""
        return tuple(term for term in (self.column, self.second_column) if term is not None)


@dataclass(frozen=True, slots=True)
class DistinctCount(Measure):
    """The number of distinct usable values of a column among the rows that are used.

    It is not a sum over rows: a value that several persons have is counted once. A person changes the number by at most
    the number of that person's rows.
    """

    def __post_init__(self) -> None:
        if self.column is None or self.fixed_point is not None or self.second_column is not None:
            raise InputError("column", self.column, "one column or expression, without fixed_point and second_column")


@dataclass(frozen=True, slots=True)
class Request:
    """The counts and sums to compute, their keys, and the bounds on one person.

    ``keys=None``: the groups are those that have a row after bounding. With ``keys``, rows of other groups are dropped
    *before* bounding, so that they do not count towards a person's bounds; so are rows for which ``where`` is not true.
    """

    by: tuple[Term, ...]
    keys: tuple[tuple[object, ...], ...] | None
    bounds: ContributionBounds
    measures: tuple[Measure, ...]
    where: Term | None = None
    row_count_steps: tuple[int, ...] = ()
    """If given, persons are counted by their number of rows, each once: at the largest of these increasing numbers that
    is not above it. No bounds are needed."""

    person_value: PersonValue | None = field(default=None, repr=False)
    """If given, the value of each person in a group, from all of their rows there, that measures or cells are about.

    Then a person is one row in each of their groups, and that row is what is bounded.
    """

    def __post_init__(self) -> None:
        self._check_row_count_steps()
        if self.person_value is not None and self.bounds.person_column is None:
            raise InputError("bounds", self.bounds, "a person column, for values of persons")
        _check_distinct("by", tuple(map(str, self.by)))
        if len(self.by) > MAX_GROUPING_COLUMNS + 1:  # quantiles and histograms add the number of a cell
            raise InputError("by", f"{len(self.by)} columns", f"at most {MAX_GROUPING_COLUMNS}, and one of cells")
        checks.check_nonempty("measures", self.measures)
        _check_distinct("measures", tuple(measure.name for measure in self.measures))
        if self.keys is None:
            return
        checks.check_nonempty("keys", self.keys, "leave keys out to have them discovered")
        for key in self.keys:
            if not (isinstance(key, tuple) and len(key) == len(self.by)):
                raise InputError("key", key, f"a tuple with one entry for each of by={self.by!r}")

    @property
    def group_terms(self) -> tuple[Term, ...]:
        """The terms of ``by`` that are values of rows, not of persons."""
        return tuple(term for term in self.by if find_person_value(term) is None)

    @property
    def lists_all_cells(self) -> bool:
        """Return whether the keys are the numbers of all cells of one term, which has no other values but NULL."""
        cell = self.by[0] if len(self.by) == 1 else None
        return isinstance(cell, Cell) and self.keys == tuple(zip(range(cell.cell_count)))

    @property
    def keeps_all_keys(self) -> bool:
        """Return whether no row is dropped for its key."""
        return not self.by or self.keys is None or self.lists_all_cells

    def _check_row_count_steps(self) -> None:
        steps = self.row_count_steps
        is_increasing = steps == tuple(sorted(set(steps))) and steps[:1] in ((), (1,))
        counts_persons_only = (
            not self.by
            and self.bounds == ContributionBounds(self.bounds.person_column, 1, 1, 1)
            and len(self.measures) == 1
        )
        if not is_increasing or (steps and not (counts_persons_only and self.bounds.person_column is not None)):
            raise InputError(
                "row_count_steps",
                self.row_count_steps,
                "rising whole numbers from 1 on, with one measure of persons alone",
            )


@dataclass(frozen=True, slots=True)
class MarginalRequest(Request):
    """The number of rows in each cell of several tables, all of the same rows after bounding.

    ``by`` are the columns of all tables, ``column_values`` the listed values of each; ``keys`` is None. A row with
    another value in one of the columns is in no table: it is dropped before bounding. ``tables`` are the columns of
    each table, by position; the totals of a table have the name ``table_name``, cells in row-major order.
    """

    column_values: tuple[tuple[object, ...], ...] = ()
    tables: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        Request.__post_init__(self)
        if self.keys is not None or self.person_value is not None or len(self.measures) != 1:
            raise InputError("keys", self.keys, "left out, with one measure of rows", "give column_values")
        if len(self.column_values) != len(self.by) or not all(self.column_values):
            raise InputError("column_values", len(self.column_values), f"values for each of {len(self.by)} columns")
        for table in self.tables:
            if not (table == tuple(sorted(set(table))) and all(0 <= column < len(self.by) for column in table)):
                raise InputError("tables", table, f"different positions below {len(self.by)}, ascending")

    @property
    def table_sizes(self) -> tuple[int, ...]:
        """The number of cells of each table."""
        return tuple(math.prod(len(self.column_values[column]) for column in table) for table in self.tables)


def table_name(columns: tuple[int, ...]) -> str:
    """Return the name of the totals of the table on these columns.

    >>> table_name((0, 3)), table_name(())
    ('table 0 3', 'table')
    """
    return " ".join(["table", *map(str, columns)])


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """The integers of every group: ``values[measure][i]`` belongs to ``keys[i]``.

    Groups are sorted by key, ``None`` first. Those of a ``MarginalRequest`` have no keys. The integers are exact,
    private data: noise must be added before they are published.
    """

    keys: tuple[tuple[object, ...], ...]
    values: dict[str, tuple[int, ...]]


def _check_distinct(name: str, values: tuple[str, ...]) -> None:
    if len(set(values)) != len(values):
        raise InputError(name, values, "a list without repetitions")
