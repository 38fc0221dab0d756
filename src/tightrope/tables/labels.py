"""Names of finitely many things – categories, groups, places – and their numbers 0, 1, …, in columns of a table."""

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
from tightrope.tables.schema import Column, Schema
from tightrope.tables.table import Table

if TYPE_CHECKING:
    import ibis.expr.types as ir

Name = str | int
ABSENT = -1


@dataclass(frozen=True, slots=True)
class Labels:
    """``names[v]`` is the name of number v: all text, or all whole numbers of 64 bits, none twice."""

    names: tuple[Name, ...]

    @classmethod
    def from_names(cls, names: Sequence[Name]) -> Self:
        """From names in order; ``InputError`` for none, repeated, mixed or other ones.

        >>> Labels.from_names(["Bergen", "Oslo"]).names
        ('Bergen', 'Oslo')
        """
        found = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
        kinds = {type(name) for name in found}
        if kinds not in ({str}, {int}):
            raise InputError("labels", [kind.__name__ for kind in kinds], "all text or all whole numbers, at least one")
        if len(set(found)) != len(found):
            raise InputError("labels", f"{len(found) - len(set(found))} repeated", "a list without repetitions")
        if kinds == {int} and not all(-(1 << 63) <= int(name) < 1 << 63 for name in found):
            raise InputError("labels", found, "whole numbers of 64 bits", "name them by text")
        return cls(found)

    def __len__(self) -> int:
        return len(self.names)

    def label_numbers(self, column: Any) -> NDArray[np.int64]:
        """The number of each entry of an Arrow column, shape [n]; −1 if it is NULL or not a name.

        Raises ``SchemaError`` where the column is not of the names' kind.

        >>> import pyarrow
        >>> Labels.from_names(["Bergen", "Oslo"]).label_numbers(pyarrow.array(["Oslo", None, "Rome"])).tolist()
        [1, -1, -1]
        """
        column = self._comparable_column(column)
        places = (
            load_library("pyarrow.compute")
            .index_in(column, value_set=self._arrow_names(), skip_nulls=True)
            .fill_null(ABSENT)
        )
        return to_numpy_array(places)

    def names_by_number(self, numbers: NDArray[Any]) -> Any:
        """The names of numbers in 0..k − 1, shape [n], as an Arrow array.

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
        text = arrow.types.is_string(kind) or arrow.types.is_large_string(kind)
        if isinstance(self.names[0], str) != text or not (text or arrow.types.is_integer(kind)):
            wanted = "text" if isinstance(self.names[0], str) else "whole numbers"
            raise SchemaError("column", str(column.type), f"of {wanted}, like the labels", "cast the column")
        return column.cast(arrow.string()) if text else to_int64_column(column)


def to_int64_column(column: Any) -> Any:
    """A column of whole numbers, or of truth values, as int64; numbers from 2⁶³ on, which no name has, are NULL.

    A cast would fail on them with an error that quotes one.
    """
    arrow, compute = load_library("pyarrow"), load_library("pyarrow.compute")
    column = column.cast(column.type.value_type) if arrow.types.is_dictionary(column.type) else column
    if arrow.types.is_uint64(column.type):
        fits = compute.less(column, arrow.scalar(1 << 63, arrow.uint64()))
        column = compute.if_else(fits, column, arrow.scalar(None, arrow.uint64()))
    return column.cast(arrow.int64())


def to_numpy_array(column: Any) -> NDArray[Any]:
    """An Arrow array or chunked array without NULLs as a numpy array."""
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())


# Numbers as cells: the range of one column or of several, cut into equal parts, in the engine and in numpy alike.

CELL = "tightrope_cell"
"""The column that ``add_cell_column`` adds."""
MOST_CELLS = 10_000_000


@dataclass(frozen=True, slots=True)
class Axis:
    """``cells`` equal parts of [lower, upper]; cell = ⌊(clip(x, lower, upper) − lower) / width⌋, at most cells − 1.

    What lies outside is clamped to the nearest end, infinities too; NULL and NaN have no cell. The bounds must be
    publicly known and not taken from the data.

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
            self.cells <= MOST_CELLS and lower + self.cell_width / 2 > lower and upper - self.cell_width / 2 < upper
        ):
            raise InputError("cells", self.cells, "a number of cells that the range can hold", "take fewer cells")

    @property
    def cell_width(self) -> float:
        """Of one cell."""
        return (self.upper - self.lower) / self.cells

    @property
    def cell_centers(self) -> NDArray[np.float64]:
        """The middle of each cell, shape [cells]."""
        middles: NDArray[np.float64] = self.lower + (np.arange(self.cells, dtype=np.float64) + 0.5) * self.cell_width
        return middles

    def cell_numbers(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value, shape [n]; −1 for NaN."""
        known = ~np.isnan(values)
        clipped = np.clip(np.where(known, values, self.lower), self.lower, self.upper)
        cells = np.minimum(np.floor((clipped - self.lower) / self.cell_width).astype(np.int64), self.cells - 1)
        return np.where(known, cells, -1)

    def cell_expression(self, column: ir.Column) -> ir.Column:
        """``numbers`` in the engine, with NULL in place of −1: the same operations on the same doubles."""
        ibis, lower, upper = load_library("ibis"), _double_literal(self.lower), _double_literal(self.upper)
        x = column.cast("float64")
        clipped = ibis.least(ibis.greatest(x, lower), upper)
        cell = ibis.least(((clipped - lower) / _double_literal(self.cell_width)).floor().cast("int64"), self.cells - 1)
        return ibis.ifelse(x.notnull() & ~x.isnan(), cell, ibis.null("int64"))


def add_cell_column(table: Table, axes: Sequence[Axis]) -> Table:
    """The table with a column ``tightrope_cell``: cells numbered as numpy flattens an array; NULL where one is NULL.

    Raises ``SchemaError`` where a column is missing or not numeric.

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
        wanted = dict.fromkeys([*(name for name in names if name != CELL), *(axis.column for axis in axes)])
        rows = table._load_rows(list(wanted))
        # i·columns + j, in any dimension.
        parts = [axis.cell_expression(rows[axis.column]) for axis in axes]
        number = reduce(
            lambda so_far, pair: so_far * pair[0].cells + pair[1], zip(axes, parts, strict=True), 0 * parts[0]
        )
        known = reduce(and_, [part.notnull() for part in parts])
        return rows.mutate(**{CELL: load_library("ibis").ifelse(known, number, load_library("ibis").null("int64"))})

    return Table(schema, table.source_kind, table._open_backend, load_rows)


def _double_literal(number: float) -> ir.Scalar:
    """The double with exactly these bits: SQL reads 0.1 as a decimal, text it parses to the nearest double."""
    return load_library("ibis").literal(repr(float(number))).cast("float64")
