"""Where ``tightrope couple`` gets laws from: the options that name points and groups, tables, and files of laws."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.options import ends_of
from tightrope.errors import InputError
from tightrope.tables.labels import Axis, Labels, Name
from tightrope.transport.on_tables.saved import KnownLaws, of_counts, of_entries, of_private_counts
from tightrope.transport.on_tables.supports import Categories, Cells, Population, Support, counted

if TYPE_CHECKING:
    from tightrope.cli.couple.fit import Asked
    from tightrope.tables import Table
    from tightrope.transport.on_tables.saved import SavedCoupling

COLUMNS = ["point", "group", "mass"]
PUBLIC = "what a table holds is private: only public names may be used"


def known_laws(asked: Asked) -> KnownLaws:
    """The laws that the options ask for. Raises ``InputError`` where they contradict each other, or hide nothing."""
    if (asked.data is None) == (asked.laws is None):
        raise InputError("DATA", asked.data and str(asked.data), "given, or --laws instead of it", "one of the two")
    if asked.group in asked.value:
        raise InputError("group", asked.group, "another column than --value", "a value cannot hide itself")
    cells = _cells(asked)
    known = _of_table(asked, cells) if asked.laws is None else _of_file(asked, asked.laws, cells)
    if len(known.laws) < 2:
        raise InputError("groups", len(known.laws), "at least 2", "one group alone has nothing to hide among")
    return known


def _of_file(asked: Asked, laws: Path, cells: Cells | None) -> KnownLaws:
    misplaced = {"epsilon": asked.epsilon, "person": asked.person, "groups": asked.groups, "table": asked.table}
    given = [name for name, value in misplaced.items() if value is not None]
    if given:
        raise InputError(given[0], misplaced[given[0]], "left out with --laws", "public laws are used as they are")
    return of_entries(law_entries(laws), cells, asked.value[0])


def _of_table(asked: Asked, cells: Cells | None) -> KnownLaws:
    numeric = cells.columns if cells is not None else ()
    table = opened(asked.data, asked.table, dict.fromkeys(numeric, "number"))
    groups = None if asked.groups is None else _typed("groups", asked.groups, table, asked.group)
    population = Population(group=asked.group, person=asked.person, groups=groups)
    if asked.epsilon is None:
        return of_counts(counted(table, _points(asked, cells, table), population))
    if groups is None:
        raise InputError("groups", None, "the names of the groups, with --epsilon", PUBLIC)
    points = _points(asked, cells, table)
    if isinstance(points, str):
        raise InputError("points", None, "the names of the categories, with --epsilon", PUBLIC)
    return of_private_counts(counted(table, points, population), asked.epsilon, person=asked.person)


def opened(path: Path | None, name: str | None, types: dict[str, str]) -> Table:
    """The table in a file; the kinds of a CSV file's columns are declared, since it has none."""
    from tightrope.tables import open_source

    is_csv = path is not None and path.suffix.lower() == ".csv"
    return open_source(path, table=name, types=types if is_csv else None)


def fitting_table(saved: SavedCoupling, path: Path, name: str | None) -> Table:
    """The table to a mechanism; of a CSV file, the columns in the kinds that the mechanism was fitted with."""
    numeric = isinstance(saved.support, Cells)
    types = dict.fromkeys(saved.support.columns, "number") if numeric else {}
    named = {saved.group: next(iter(saved.mechanism.groups))}
    if not numeric:
        named[saved.support.columns[0]] = saved.support.names[0]
    whole = {column: "integer" for column, first in named.items() if isinstance(first, int)}
    return opened(path, name, {**types, **whole})


def _cells(asked: Asked) -> Cells | None:
    """The cells of --bins or --grid; None for categories."""
    sizes, bounds = _sizes(asked), asked.between or []
    if not sizes:
        if bounds or len(asked.value) != 1:
            raise InputError("value", asked.value, "one column of categories", "cells need --bins or --grid")
        return None
    if not len(asked.value) == len(bounds) == len(sizes):
        expected = f"{len(sizes)} columns, each with a --between"
        raise InputError("value", f"{len(asked.value)} columns with {len(bounds)} --between", expected)
    if asked.points is not None:
        raise InputError("points", asked.points, "left out with --bins and --grid", "cells are the points")
    named = zip(asked.value, map(ends_of, bounds), sizes, strict=True)
    return Cells(tuple(Axis(column, *ends, size) for column, ends, size in named))


def _sizes(asked: Asked) -> list[int]:
    """How many cells along each axis."""
    if asked.bins is not None and asked.grid is not None:
        raise InputError("grid", asked.grid, "left out with --bins", "one column has --bins, two have --grid")
    if asked.bins is not None:
        return [asked.bins]
    return [] if asked.grid is None else _shape(asked.grid)


def _shape(text: str) -> list[int]:
    rows, _, columns = text.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise InputError("grid", text, "ROWSxCOLUMNS, two whole numbers", "say 15x36")
    return [int(rows), int(columns)]


def _points(asked: Asked, cells: Cells | None, table: Table) -> Support | str:
    if cells is not None:
        return cells
    column = asked.value[0]
    if asked.points is None:
        return column
    return Categories(column, Labels.of(_typed("points", asked.points, table, column)))


def _typed(option: str, text: str, table: Table, column: str) -> tuple[Name, ...]:
    """Names with commas between them, as whole numbers where the column holds those."""
    names = [part.strip() for part in text.split(",")]
    if table.schema.column(column).kind != "integer":
        return Labels.of(names).names
    try:
        return Labels.of([int(name) for name in names]).names
    except ValueError:
        raise InputError(option, text, f"whole numbers, as column {column!r} holds", "say 0,1,2") from None


def law_entries(path: Path) -> list[tuple[str, str, float]]:
    """(point, group, mass) of each line of a CSV file with these columns."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            if sorted(reader.fieldnames or []) != sorted(COLUMNS):
                shown = (reader.fieldnames or [])[:10]
                raise InputError("laws", shown, f"a CSV file with the columns {', '.join(COLUMNS)}")
            return [_entry(row, reader.line_num) for row in reader]
    except OSError as problem:
        raise InputError("laws", str(path), "a file that can be read", str(problem.strerror)) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError("laws", str(path), "a CSV file in UTF-8") from None


def _entry(row: Mapping[str | None, str | None], line: int) -> tuple[str, str, float]:
    """One line of laws; no value of it is shown in an error."""
    if None in row:  # where the reader puts what it has no column for
        raise InputError("laws", f"line {line}", "three entries in every line")
    try:
        return str(row["point"] or ""), str(row["group"] or ""), float(row["mass"] or "")
    except ValueError:
        raise InputError("mass", f"line {line}", "a number in every line of the laws") from None
