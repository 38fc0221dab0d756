"""What the points of a coupling stand for in a table: categories, cells of a line, or cells of a map."""

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
from tightrope.tables import Measure, PersonBounds, Request, Table
from tightrope.tables.group_keys import rank
from tightrope.tables.labels import CELL, MOST_CELLS, Axis, Labels, Name, with_cells
from tightrope.tables.schema import Kind
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.graphs import grid
from tightrope.transport.costs.points import line
from tightrope.transport.solvers.discrete import Discrete

DISCRETE = "discrete"
MOST_CATEGORIES = 10_000
"""Their distances are written out where the largest move is to be small."""


@dataclass(frozen=True, slots=True)
class Categories:
    """The point v is the category ``labels.names[v]`` of one column."""

    column: str
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold a value."""
        return (self.column,)

    @property
    def names(self) -> tuple[Name, ...]:
        """What each point is called in a table of laws."""
        return self.labels.names

    def unit(self, metric: str) -> str:
        """What distances are measured in."""
        return "1 where the category changes" if metric == DISCRETE else f"units of {self.column}"

    @property
    def metric(self) -> str:
        """The usual distance: that of whole numbers, or 1 between any two texts."""
        return "cityblock" if isinstance(self.names[0], int) else DISCRETE

    def cost(self, metric: str | None = None) -> Cost:
        """|x − y| between whole numbers ("cityblock"), or 1 between any two ("discrete").

        >>> Categories("city", Labels.of(["Bergen", "Oslo"])).cost().matrix().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        chosen = self.metric if metric is None else metric
        if chosen == DISCRETE:
            if not len(self) <= MOST_CATEGORIES:
                raise InputError("categories", len(self), f"at most {MOST_CATEGORIES}", "group rare ones together")
            return Discrete(len(self))
        if chosen != "cityblock" or self.metric == DISCRETE:
            known = "'discrete', or 'cityblock' for whole numbers"
            raise InputError("metric", chosen, known, "texts have no distances")
        return line([float(name) for name in self.names])

    def document_part(self, metric: str) -> CategoriesPart:
        """As part of a document."""
        return CategoriesPart(column=self.column, names=self.names, metric=metric)


@dataclass(frozen=True, slots=True)
class Cells:
    """The point v is a cell of one column's range, or of a map of several: numbered as numpy flattens an array."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if not self.axes or len({axis.column for axis in self.axes}) < len(self.axes):
            raise InputError("axes", [axis.column for axis in self.axes], "one axis or more, each of its own column")
        if not prod(self.shape) <= MOST_CELLS:
            raise InputError("cells", self.shape, f"at most {MOST_CELLS} in all", "take larger ones")

    def __len__(self) -> int:
        return prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(axis.cells for axis in self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold a value, one an axis."""
        return tuple(axis.column for axis in self.axes)

    @property
    def names(self) -> tuple[Name, ...]:
        """What each point is called in a table of laws: its number."""
        return tuple(range(len(self)))

    @property
    def metric(self) -> str:
        """The usual distance."""
        return "cityblock"

    def unit(self, metric: str) -> str:
        """What distances are measured in: the column's own units on a line, cells on a map."""
        if len(self.axes) == 1:
            return f"units of {self.axes[0].column}"
        squares = "squares of " if metric == "sqeuclidean" else ""
        return f"{squares}cells of " + " by ".join(f"{axis.width:.6g} {axis.column}" for axis in self.axes)

    def cost(self, metric: str | None = None) -> Cost:
        """Between the centres on a line; between cells at distance 1 on a map, by "cityblock", "euclidean", ….

        >>> Cells((Axis("age", 0, 100, 2),)).cost().matrix().tolist()
        [[0.0, 50.0], [50.0, 0.0]]
        """
        chosen = self.metric if metric is None else metric
        if len(self.axes) > 1:
            return grid(self.shape, metric=chosen)
        if chosen not in ("cityblock", "euclidean"):
            raise InputError("metric", chosen, "'cityblock' (or 'euclidean', which is the same) on a line")
        return line(self.axes[0].centres)

    def numbers(self, values: list[NDArray[np.float64]]) -> Integers:
        """The cell of each value, one array an axis, shape [n] each; −1 where one of them is NaN."""
        parts = [axis.numbers(column) for axis, column in zip(self.axes, values, strict=True)]
        known = np.all([part >= 0 for part in parts], axis=0)
        joined = np.ravel_multi_index(tuple(np.maximum(part, 0) for part in parts), self.shape)
        return np.where(known, joined, -1)

    def centres(self, numbers: Integers) -> list[NDArray[np.float64]]:
        """The middle of each cell, one array an axis, shape [n] each."""
        places = np.unravel_index(numbers, self.shape)
        return [axis.centres[place] for axis, place in zip(self.axes, places, strict=True)]

    def document_part(self, metric: str) -> CellsPart:
        """As part of a document."""
        axes = (AxisPart(column=a.column, lower=a.lower, upper=a.upper, cells=a.cells) for a in self.axes)
        return CellsPart(axes=tuple(axes), metric=metric)


Support = Categories | Cells


def support_of(part: CategoriesPart | CellsPart) -> Support:
    """The points that a document names; raises ``InputError`` for names and cells that cannot be."""
    if isinstance(part, CategoriesPart):
        return Categories(part.column, Labels.of(part.names))
    return Cells(tuple(Axis(a.column, a.lower, a.upper, a.cells) for a in part.axes))


# How many rows of each group have each value: what group laws are learned from, counted in the engine.

MOST_GROUPS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """``cells[group]``: how many people of the group have each point of ``support``, shape [d]. Private data."""

    support: Support
    cells: Mapping[Name, Integers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """Whose values they are: the column of groups, and of persons where one may have several rows.

    Of each person one row counts, chosen by a hash of that person's rows. ``groups``: the names that count; they must
    be given where the counts are protected, because what groups a table has is private, too.
    """

    group: str
    person: str | None = None
    groups: tuple[Name, ...] | None = None


def counted(table: Table, support: Cells | str | Categories, population: Population) -> Counts:
    """Counts per point and group; ``support`` is the cells, the categories, or a column whose categories are found.

    Rows whose value or group is NULL or NaN do not count, nor do those of groups and categories that were not named.
    Raises ``InputError`` where nothing is left or a group has no row, ``SchemaError`` for columns that cannot serve.

    >>> import pyarrow
    >>> from tightrope.tables import open_source
    >>> rows = open_source(pyarrow.table({"city": ["Oslo", "Bergen", "Oslo"], "sex": ["f", "m", "m"]}))
    >>> counted(rows, "city", Population(group="sex")).cells["m"].tolist()
    [1, 1]
    """
    binned = with_cells(table, support.axes) if isinstance(support, Cells) else table
    column = CELL if isinstance(support, Cells) else support if isinstance(support, str) else support.column
    for name in (column, population.group):
        _nameable(name, binned.schema.column(name).kind)
    found = _collected(binned, column, population)
    groups = _groups(found, population)
    known = Categories(support, _labels(column, [point for point, _ in found])) if isinstance(support, str) else support
    places = {name: place for place, name in enumerate(known.names)}
    cells = {group: np.zeros(len(known), dtype=np.int64) for group in groups}
    for (point, group), count in found.items():
        if group in cells and point in places:
            cells[group][places[point]] = count
    return Counts(known, cells)


def _collected(table: Table, column: str, population: Population) -> dict[tuple[Any, Any], int]:
    """(point, group) → rows; what is NULL is left out."""
    bounds = PersonBounds(population.person, 1, 1, 1)
    request = Request((column, population.group), None, bounds, (Measure("rows", None, None),))
    grouped = table.collect(request)
    pairs = zip(grouped.keys, grouped.values["rows"], strict=True)
    return {(point, group): rows for (point, group), rows in pairs if point is not None and group is not None}


def _nameable(name: str, kind: Kind) -> None:
    if kind not in ("text", "integer"):
        remedy = "cut numbers into cells with --bins or --grid" if kind == "number" else "cast the column first"
        raise SchemaError("column", name, f"text or whole numbers, but it is {kind}", remedy)


def _groups(found: Mapping[tuple[Any, Any], int], population: Population) -> tuple[Name, ...]:
    if population.groups is not None:
        return Labels.of(population.groups).names
    names = _labels(population.group, [group for _, group in found])
    if not len(names) <= MOST_GROUPS:
        remedy = "is this the column of groups? Name some with --groups"
        raise InputError("groups", len(names), f"at most {MOST_GROUPS}", remedy)
    return names.names


def _labels(column: str, entries: Sequence[Name]) -> Labels:
    if not entries:
        raise InputError("rows", 0, f"at least one with a value and a group, in column {column!r} too")
    return Labels.of([name for (name,) in sorted({(entry,) for entry in entries}, key=rank)])
