"""Columns as numbers 0, 1, …: names of categories as ``Labels``, and ranges of numbers cut into cells by ``Axis``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError, SchemaError
from tightrope.numerics import checks
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.leaves import double_literal
from tightrope.tables.schema import Column, Schema
from tightrope.tables.table import Table

if TYPE_CHECKING:
    import ibis.expr.types as ir

Name = str | int
ABSENT = -1
"""The number of an entry that is NULL or not among the names."""
CELL = "tightrope_cell"
"""The column that ``add_cell_column`` adds."""
MAX_GRID_CELLS = 10_000_000
"""Most cells of one axis."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of categories or points; ``names[v]`` belongs to number v. All text or all 64-bit integers, distinct."""

    names: tuple[Name, ...]

    @classmethod
    def from_names(cls, names: Sequence[Name]) -> Self:
        """Build from the names in order; ``InputError`` for an empty list, and for repeated, mixed or other names.

        >>> Labels.from_names(["Bergen", "Oslo"]).names
        ('Bergen', 'Oslo')
        """
        plain_names = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
        kinds = {type(name) for name in plain_names}
        if kinds not in ({str}, {int}):
            raise InputError("labels", [kind.__name__ for kind in kinds], "all text or all whole numbers, at least one")
        if len(set(plain_names)) != len(plain_names):
            raise InputError(
                "labels", f"{len(plain_names) - len(set(plain_names))} repeated", "a list without repetitions"
            )
        if kinds == {int} and not all(-(1 << 63) <= int(name) < 1 << 63 for name in plain_names):
            raise InputError("labels", plain_names, "whole numbers of 64 bits", "name them by text")
        return cls(plain_names)

    def __len__(self) -> int:
        return len(self.names)

    def label_numbers(self, column: Any) -> NDArray[np.int64]:
        """Return the number of each entry of an Arrow column, shape [n]; −1 if it is NULL or not a name.

        Raises ``SchemaError`` if the column has another kind than the names.

        >>> import pyarrow
        >>> Labels.from_names(["Bergen", "Oslo"]).label_numbers(pyarrow.array(["Oslo", None, "Rome"])).tolist()
        [1, -1, -1]
        """
        column = self._comparable_column(column)
        compute = load_library("pyarrow.compute")
        numbers = compute.index_in(column, value_set=self._arrow_names(), skip_nulls=True)
        return to_numpy_array(numbers.fill_null(ABSENT))

    def names_by_number(self, numbers: NDArray[Any]) -> Any:
        """Return the names of numbers in 0..k − 1, shape [n], as an Arrow array.

        >>> Labels.from_names(["Bergen", "Oslo"]).names_by_number(np.array([1, 1, 0])).to_pylist()
        ['Oslo', 'Oslo', 'Bergen']
        """
        return self._arrow_names().take(load_library("pyarrow").array(numbers))

    def _arrow_names(self) -> Any:
        arrow = load_library("pyarrow")
        return arrow.array(self.names, arrow.string() if isinstance(self.names[0], str) else arrow.int64())

    def _comparable_column(self, column: Any) -> Any:
        arrow = load_library("pyarrow")
        kind = column.type.value_type if arrow.types.is_dictionary(column.type) else column.type
        is_text = arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
        if isinstance(self.names[0], str) != is_text or not (is_text or arrow.types.is_integer(kind)):
            kind_of_names = "text" if isinstance(self.names[0], str) else "whole numbers"
            raise SchemaError("column", str(column.type), f"of {kind_of_names}, like the labels", "cast the column")
        return column.cast(arrow.string()) if is_text else to_int64_column(column)


def to_int64_column(column: Any) -> Any:
    """Return a column of integers or booleans as int64.

    Numbers from 2⁶³ on become NULL: no name has one, and a cast would fail with an error that quotes a value.
    """
    arrow, compute = load_library("pyarrow"), load_library("pyarrow.compute")
    column = column.cast(column.type.value_type) if arrow.types.is_dictionary(column.type) else column
    if arrow.types.is_uint64(column.type):
        fits = compute.less(column, arrow.scalar(1 << 63, arrow.uint64()))
        column = compute.if_else(fits, column, arrow.scalar(None, arrow.uint64()))
    return column.cast(arrow.int64())


def to_numpy_array(column: Any) -> NDArray[Any]:
    """Return an Arrow array or chunked array without NULLs as a numpy array."""
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())


@dataclass(frozen=True, slots=True)
class Axis:
    """``cells`` equal parts of [lower, upper]; cell = ⌊(clip(x, lower, upper) − lower) / width⌋, at most cells − 1.

    Values outside, infinities too, are clamped to the nearest end; NULL and NaN have no cell. The bounds must be
    public, not taken from the data. The engine and numpy compute the same cells.

    >>> Axis("age", 0, 100, 10).cell_numbers(np.array([-5.0, 39.9, 40.0, 100.0, math.nan])).tolist()
    [0, 3, 4, 9, -1]
    """

    column: str
    lower: float
    upper: float
    cells: int

    def __post_init__(self) -> None:
        lower, upper = checks.check_finite("lower", self.lower), checks.check_finite("upper", self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        checks.check_integer("cells", self.cells)
        if not (lower < upper and upper - lower < math.inf):
            raise InputError("upper", self.upper, f"above lower={self.lower!r}")
        if not (
            self.cells <= MAX_GRID_CELLS and lower + self.cell_width / 2 > lower and upper - self.cell_width / 2 < upper
        ):
            raise InputError("cells", self.cells, "a number of cells that the range can hold", "take fewer cells")

    @property
    def cell_width(self) -> float:
        """The width of one cell."""
        return (self.upper - self.lower) / self.cells

    @property
    def cell_centers(self) -> NDArray[np.float64]:
        """The middle of each cell, shape [cells]."""
        middles: NDArray[np.float64] = self.lower + (np.arange(self.cells, dtype=np.float64) + 0.5) * self.cell_width
        return middles

    def cell_numbers(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell of each value, shape [n]; −1 for NaN."""
        is_number = ~np.isnan(values)
        clipped = np.clip(np.where(is_number, values, self.lower), self.lower, self.upper)
        cells = np.minimum(np.floor((clipped - self.lower) / self.cell_width).astype(np.int64), self.cells - 1)
        return np.where(is_number, cells, -1)

    def cell_expression(self, column: ir.Column) -> ir.Column:
        """Compute ``cell_numbers`` in the engine, by the same operations on doubles, with NULL in place of −1."""
        ibis, lower, upper = load_library("ibis"), double_literal(self.lower), double_literal(self.upper)
        x = column.cast("float64")
        clipped = ibis.least(ibis.greatest(x, lower), upper)
        cell = ibis.least(((clipped - lower) / double_literal(self.cell_width)).floor().cast("int64"), self.cells - 1)
        return ibis.ifelse(x.notnull() & ~x.isnan(), cell, ibis.null("int64"))


def add_cell_column(table: Table, axes: Sequence[Axis]) -> Table:
    """Return the table with a column ``tightrope_cell``, the number of the cell in the product of the axes.

    Cells are numbered as numpy flattens an array (C order); a row without a cell on some axis has NULL. Raises
    ``SchemaError`` if a column is missing or not numeric.

    >>> import pyarrow
    >>> from tightrope.tables import open_source
    >>> add_cell_column(open_source(pyarrow.table({"age": [39.9]})), [Axis("age", 0, 100, 10)]).schema.column_names
    ('age', 'tightrope_cell')
    """
    for axis in axes:
        kind = table.schema.find_column(axis.column).kind
        if kind not in ("integer", "number"):
            raise SchemaError("column", axis.column, f"numeric to be cut into cells, but it is {kind}", "cast it first")
    schema = Schema((*table.schema.columns, Column(CELL, "integer")))

    def load_rows(names: Sequence[str]) -> Any:
        read_columns = dict.fromkeys([*(name for name in names if name != CELL), *(axis.column for axis in axes)])
        rows = table._load_rows(list(read_columns))
        cells = [axis.cell_expression(rows[axis.column]) for axis in axes]
        number = 0 * cells[0]
        for axis, cell in zip(axes, cells, strict=True):
            number = number * axis.cells + cell
        ibis, all_present = load_library("ibis"), reduce(and_, [cell.notnull() for cell in cells])
        return rows.mutate(**{CELL: ibis.ifelse(all_present, number, ibis.null("int64"))})

    return Table(schema, table.source_kind, table._open_connection, load_rows, _hold_connection=table._hold_connection)
