"""The points of a coupling in a table: categories, cells of a line, or cells of a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.documents.coupling import AxisPart, CategoriesPart, CellsPart
from tightrope.errors import InputError, SchemaError
from tightrope.numerics.arrays import Integers
from tightrope.tables import ContributionBounds, Measure, Request, Table
from tightrope.tables.group_keys import key_sort_order
from tightrope.tables.labels import CELL, MAX_GRID_CELLS, Axis, Labels, Name, add_cell_column
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.graphs import grid
from tightrope.transport.costs.points import line
from tightrope.transport.solvers.closed_form import DiscreteCost

DISCRETE = "discrete"
MAX_CATEGORIES = 10_000
"""Maximal number of categories: a least maximum cost requires a table of all distances."""


@dataclass(frozen=True, slots=True)
class Categories:
    """The point v is the category ``labels.names[v]`` of one column."""

    column: str
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that hold a value."""
        return (self.column,)

    @property
    def point_names(self) -> tuple[Name, ...]:
        """The name of each point in a table of distributions."""
        return self.labels.names

    def distance_unit(self, metric: str) -> str:
        """Return the unit of distances."""
        return "1 where the category changes" if metric == DISCRETE else f"units of {self.column}"

    @property
    def default_metric(self) -> str:
        """The default distance: absolute difference of integers, or 1 between different texts."""
        return "cityblock" if isinstance(self.point_names[0], int) else DISCRETE

    def transport_cost(self, metric: str | None = None) -> Cost:
        """Return the cost |x − y| between integers ("cityblock"), or 1 between different values ("discrete").

        >>> Categories("city", Labels.from_names(["Bergen", "Oslo"])).transport_cost().to_matrix().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        chosen_metric = self.default_metric if metric is None else metric
        if chosen_metric == DISCRETE:
            if not len(self) <= MAX_CATEGORIES:
                raise InputError("categories", len(self), f"at most {MAX_CATEGORIES}", "group rare ones together")
            return DiscreteCost(len(self))
        if chosen_metric != "cityblock" or self.default_metric == DISCRETE:
            expected = "'discrete', or 'cityblock' for whole numbers"
            raise InputError("metric", chosen_metric, expected, "text has only the discrete distance")
        return line([float(name) for name in self.point_names])

    def document_part(self, metric: str) -> CategoriesPart:
        """Return the part of a document."""
        return CategoriesPart(column=self.column, names=self.point_names, metric=metric)


@dataclass(frozen=True, slots=True)
class Cells:
    """The point v is a cell of one column's range, or of a map of several: numbered as numpy flattens an array."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes or len({axis.column for axis in self.axes}) < len(self.axes):
            raise InputError("axes", [axis.column for axis in self.axes], "at least one axis, each with another column")
        if not prod(self.grid_shape) <= MAX_GRID_CELLS:
            raise InputError("cells", self.grid_shape, f"at most {MAX_GRID_CELLS} in total", "use larger cells")

    def __len__(self) -> int:
        return prod(self.grid_shape)

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that hold a value, one an axis."""
        return tuple(axis.column for axis in self.axes)

    @property
    def point_names(self) -> tuple[Name, ...]:
        """The name of each point in a table of distributions: its number."""
        return tuple(range(len(self)))

    @property
    def default_metric(self) -> str:
        """The default distance."""
        return "cityblock"

    def distance_unit(self, metric: str) -> str:
        """Return the unit of distances: the column's own unit on a line, cells on a map."""
        if len(self.axes) == 1:
            return f"units of {self.axes[0].column}"
        squares = "squares of " if metric == "sqeuclidean" else ""
        return f"{squares}cells of " + " by ".join(f"{axis.cell_width:.6g} {axis.column}" for axis in self.axes)

    def transport_cost(self, metric: str | None = None) -> Cost:
        """Return the cost between centers on a line, or between cells on a map ("cityblock", "euclidean", …).

        >>> Cells((Axis("age", 0, 100, 2),)).transport_cost().to_matrix().tolist()
        [[0.0, 50.0], [50.0, 0.0]]
        """
        chosen_metric = self.default_metric if metric is None else metric
        if len(self.axes) > 1:
            return grid(self.grid_shape, metric=chosen_metric)
        if chosen_metric not in ("cityblock", "euclidean"):
            raise InputError("metric", chosen_metric, "'cityblock' or the equivalent 'euclidean' on a line")
        return line(self.axes[0].cell_centers)

    def cell_numbers(self, values: list[NDArray[np.float64]]) -> Integers:
        """Return the cell of each value, one array an axis, shape [n] each; −1 if one of them is NaN."""
        parts = [axis.cell_numbers(column) for axis, column in zip(self.axes, values, strict=True)]
        has_cell = np.all([part >= 0 for part in parts], axis=0)
        numbers = np.ravel_multi_index(tuple(np.maximum(part, 0) for part in parts), self.grid_shape)
        return np.where(has_cell, numbers, -1)

    def cell_centers(self, numbers: Integers) -> list[NDArray[np.float64]]:
        """Return the center of each cell, one array an axis, shape [n] each."""
        indices = np.unravel_index(numbers, self.grid_shape)
        return [axis.cell_centers[index] for axis, index in zip(self.axes, indices, strict=True)]

    def document_part(self, metric: str) -> CellsPart:
        """Return the part of a document."""
        axes = (AxisPart(column=a.column, lower=a.lower, upper=a.upper, cells=a.cells) for a in self.axes)
        return CellsPart(axes=tuple(axes), metric=metric)


Support = Categories | Cells


def support_from_document(part: CategoriesPart | CellsPart) -> Support:
    """Return the points of a document; raises ``InputError`` for invalid names and cells."""
    if isinstance(part, CategoriesPart):
        return Categories(part.column, Labels.from_names(part.names))
    return Cells(tuple(Axis(a.column, a.lower, a.upper, a.cells) for a in part.axes))


# Number of rows of each group with each value, counted by the backend: the input for learning distributions.

MAX_GROUPS = 1000
"""Maximal number of groups that are read from a table."""


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """``cells[group]``: the number of people of the group at each point of ``support``, shape [d]. Private data.

    ``unused_rows`` of ``total_rows`` are not counted: their value or group is missing or not listed.
    """

    support: Support
    cells: Mapping[Name, Integers]
    unused_rows: int = 0
    total_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The population: the column of groups, and the column of persons if one person may have several rows.

    One row of each person counts, chosen by a hash of that person's rows. Only ``groups`` count; they are required if
    the counts are protected, because the set of groups in a table is private, too.
    """

    group: str
    person: str | None = None
    groups: tuple[Name, ...] | None = None


def count_points(table: Table, support: Cells | str | Categories, population: Population) -> Counts:
    """Return counts per point and group; ``support`` is cells, categories, or a column whose categories are read.

    Rows with a NULL or NaN value or group do not count, nor do rows of unlisted groups and categories. Raises
    ``InputError`` if no rows remain or a group has no row, ``SchemaError`` for unsuitable columns.

    >>> import pyarrow
    >>> from tightrope.tables import open_source
    >>> rows = open_source(pyarrow.table({"city": ["Oslo", "Bergen", "Oslo"], "sex": ["f", "m", "m"]}))
    >>> count_points(rows, "city", Population(group="sex")).cells["m"].tolist()
    [1, 1]
    """
    prepared_table = add_cell_column(table, support.axes) if isinstance(support, Cells) else table
    column = CELL if isinstance(support, Cells) else support if isinstance(support, str) else support.column
    counts, missing = _collect_counts(prepared_table, column, population)
    groups = _group_names(counts, population)
    points = (
        Categories(support, _sorted_labels(column, [point for point, _ in counts]))
        if isinstance(support, str)
        else support
    )
    index_by_name = {name: index for index, name in enumerate(points.point_names)}
    cells = {group: np.zeros(len(points), dtype=np.int64) for group in groups}
    for (point, group), count in counts.items():
        if group in cells and point in index_by_name:
            cells[group][index_by_name[point]] = count
    total = missing + sum(counts.values())
    used = sum(int(one.sum()) for one in cells.values())
    return Counts(points, cells, total - used, total)


def _collect_counts(table: Table, column: str, population: Population) -> tuple[dict[tuple[Any, Any], int], int]:
    """Return (point, group) → rows, and the number of rows with NULL in one of them.

    Raises ``SchemaError`` unless both columns are text or integers.
    """
    for name in (column, population.group):
        kind = table.schema.find_column(name).kind
        if kind not in ("text", "integer"):
            advice = "cut numbers into cells with --bins or --grid" if kind == "number" else "cast the column first"
            raise SchemaError.from_text(f"column {name!r}", f"must be text or integers, but it is {kind}; {advice}")
    bounds = ContributionBounds(population.person, 1, 1, 1)
    request = Request((column, population.group), None, bounds, (Measure("rows", None, None),))
    grouped = table.collect_totals(request)
    pairs = list(zip(grouped.keys, grouped.values["rows"], strict=True))
    found = {(point, group): rows for (point, group), rows in pairs if point is not None and group is not None}
    return found, sum(int(rows) for _, rows in pairs) - sum(map(int, found.values()))


def _group_names(counts: Mapping[tuple[Any, Any], int], population: Population) -> tuple[Name, ...]:
    if population.groups is not None:
        return Labels.from_names(population.groups).names
    names = _sorted_labels(population.group, [group for _, group in counts])
    if not len(names) <= MAX_GROUPS:
        text = f"{len(names)} groups, at most {MAX_GROUPS} are possible; check the column, or list groups with --groups"
        raise InputError.from_text(f"column {population.group!r}", text)
    return names.names


def _sorted_labels(column: str, entries: Sequence[Name]) -> Labels:
    if not entries:
        raise InputError.from_text(f"column {column!r}", "no row has both a value and a group")
    return Labels.from_names([name for (name,) in sorted({(entry,) for entry in entries}, key=key_sort_order)])
