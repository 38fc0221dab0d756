"""How many rows of each group have each value: what group laws are learned from, counted in the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.engines import Measure, PersonBounds, Request, Table
from tightrope.engines.axis_cells import CELL, with_cells
from tightrope.engines.labels import Labels, Name
from tightrope.engines.schema import Kind
from tightrope.engines.snapshot.keys import rank
from tightrope.errors import InputError, SchemaError
from tightrope.numerics.arrays import Integers
from tightrope.transport.on_tables.supports import Categories, Cells, Support

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
    >>> from tightrope.engines import open_source
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
