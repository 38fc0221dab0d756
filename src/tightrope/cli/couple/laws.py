"""Sources of distributions for ``tightrope couple``: options for points and groups, tables, distribution files."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.options import parse_bounds
from tightrope.errors import InputError
from tightrope.tables.labels import Axis, Labels, Name
from tightrope.transport.on_tables.saved import KnownLaws, laws_from_counts, laws_from_entries, private_laws_from_counts
from tightrope.transport.on_tables.supports import Categories, Cells, Population, Support, count_points

if TYPE_CHECKING:
    from tightrope.cli.couple.fit import FitOptions
    from tightrope.tables import Table
    from tightrope.transport.on_tables.saved import SavedCoupling

COLUMNS = ["point", "group", "mass"]
PUBLIC = "what a table holds is private: only public names may be used"


def load_group_distributions(options: FitOptions) -> KnownLaws:
    """The laws that the options ask for. Raises ``InputError`` where they contradict each other, or hide nothing."""
    if (options.data is None) == (options.laws is None):
        raise InputError("DATA", options.data and str(options.data), "given, or --laws instead of it", "one of the two")
    if options.group in options.value:
        raise InputError("group", options.group, "another column than --value", "a value cannot hide itself")
    cells = _parse_cells(options)
    if options.laws is None:
        known = _of_table(options, cells)
    else:
        misplaced = {
            "epsilon": options.epsilon,
            "privacy_unit": options.privacy_unit,
            "groups": options.groups,
            "table": options.table,
        }
        given = [name for name, value in misplaced.items() if value is not None]
        if given:
            raise InputError(given[0], misplaced[given[0]], "left out with --laws", "public laws are used as they are")
        known = laws_from_entries(read_distributions_csv(options.laws), cells, options.value[0])
    if len(known.laws) < 2:
        raise InputError("groups", len(known.laws), "at least 2", "one group alone has nothing to hide among")
    return known


def _of_table(options: FitOptions, cells: Cells | None) -> KnownLaws:
    numeric = cells.column_names if cells is not None else ()
    table = open_table_with_types(options.data, options.table, dict.fromkeys(numeric, "number"))
    groups = None if options.groups is None else _typed_names("groups", options.groups, table, options.group)
    population = Population(group=options.group, person=options.privacy_unit, groups=groups)
    if options.epsilon is None:
        return laws_from_counts(count_points(table, _parse_points(options, cells, table), population))
    if groups is None:
        raise InputError("groups", None, "the names of the groups, with --epsilon", PUBLIC)
    points = _parse_points(options, cells, table)
    if isinstance(points, str):
        raise InputError("points", None, "the names of the categories, with --epsilon", PUBLIC)
    return private_laws_from_counts(
        count_points(table, points, population), options.epsilon, person=options.privacy_unit
    )


def open_table_with_types(path: Path | None, name: str | None, types: dict[str, str]) -> Table:
    """The table in a file; the kinds of a CSV file's columns are declared, since it has none."""
    from tightrope.tables import open_source

    is_csv = path is not None and path.suffix.lower() == ".csv"
    return open_source(path, table=name, types=types if is_csv else None)


def open_table_for_mechanism(saved: SavedCoupling, path: Path, name: str | None) -> Table:
    """The table to a mechanism; of a CSV file, the columns in the kinds that the mechanism was fitted with."""
    numeric = isinstance(saved.support, Cells)
    types = dict.fromkeys(saved.support.column_names, "number") if numeric else {}
    named = {saved.group: next(iter(saved.mechanism.groups))}
    if not numeric:
        named[saved.support.column_names[0]] = saved.support.point_names[0]
    whole = {column: "integer" for column, first in named.items() if isinstance(first, int)}
    return open_table_with_types(path, name, {**types, **whole})


def _parse_cells(options: FitOptions) -> Cells | None:
    """The cells of --bins or --grid; None for categories."""
    sizes, bounds = _axis_sizes(options), options.bounds or []
    if not sizes:
        if bounds or len(options.value) != 1:
            raise InputError("value", options.value, "one column of categories", "cells need --bins or --grid")
        return None
    if not len(options.value) == len(bounds) == len(sizes):
        expected = f"{len(sizes)} columns, each with a --bounds"
        raise InputError("value", f"{len(options.value)} columns with {len(bounds)} --bounds", expected)
    if options.points is not None:
        raise InputError("points", options.points, "left out with --bins and --grid", "cells are the points")
    named = zip(options.value, map(parse_bounds, bounds), sizes, strict=True)
    return Cells(tuple(Axis(column, *ends, size) for column, ends, size in named))


def _axis_sizes(options: FitOptions) -> list[int]:
    """The number of cells along each axis."""
    if options.bins is not None and options.grid is not None:
        raise InputError("grid", options.grid, "left out with --bins", "one column has --bins, two have --grid")
    if options.bins is not None:
        return [options.bins]
    if options.grid is None:
        return []
    rows, _, columns = options.grid.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise InputError("grid", options.grid, "ROWSxCOLUMNS, two whole numbers", "say 15x36")
    return [int(rows), int(columns)]


def _parse_points(options: FitOptions, cells: Cells | None, table: Table) -> Support | str:
    if cells is not None:
        return cells
    column = options.value[0]
    if options.points is None:
        return column
    return Categories(column, Labels.from_names(_typed_names("points", options.points, table, column)))


def _typed_names(option: str, text: str, table: Table, column: str) -> tuple[Name, ...]:
    """Names with commas between them, as whole numbers where the column holds those."""
    names = [part.strip() for part in text.split(",")]
    if table.schema.find_column(column).kind != "integer":
        return Labels.from_names(names).names
    try:
        return Labels.from_names([int(name) for name in names]).names
    except ValueError:
        raise InputError(option, text, f"whole numbers, as column {column!r} holds", "say 0,1,2") from None


def read_distributions_csv(path: Path) -> list[tuple[str, str, float]]:
    """(point, group, mass) of each line of a CSV file with these columns."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            if sorted(reader.fieldnames or []) != sorted(COLUMNS):
                shown = (reader.fieldnames or [])[:10]
                raise InputError("laws", shown, f"a CSV file with the columns {', '.join(COLUMNS)}")
            return [_parse_distribution_line(row, reader.line_num) for row in reader]
    except OSError as problem:
        raise InputError("laws", str(path), "a file that can be read", str(problem.strerror)) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError("laws", str(path), "a CSV file in UTF-8") from None


def _parse_distribution_line(row: Mapping[str | None, str | None], line: int) -> tuple[str, str, float]:
    """One line of laws; no value of it is shown in an error."""
    if None in row:  # where the reader puts what it has no column for
        raise InputError("laws", f"line {line}", "three entries in every line")
    try:
        return str(row["point"] or ""), str(row["group"] or ""), float(row["mass"] or "")
    except ValueError:
        raise InputError("mass", f"line {line}", "a number in every line of the laws") from None
