"""Load group distributions for ``tightrope couple`` from tables and CSV files; parse options for points and groups."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.cli.options import is_finite_number, open_csv_file, parse_bounds
from tightrope.errors import InputError, quoted_names, suggest_nearest
from tightrope.tables.labels import Axis, Labels, Name
from tightrope.transport.on_tables.saved import KnownLaws, laws_from_counts, laws_from_entries, private_laws_from_counts
from tightrope.transport.on_tables.supports import Categories, Cells, Population, Support, count_points

if TYPE_CHECKING:
    from tightrope.cli.couple.fit import FitOptions
    from tightrope.tables import Table
    from tightrope.transport.on_tables.saved import SavedCoupling

CSV_COLUMNS = ["point", "group", "mass"]
NAMES_REQUIRED_REMEDY = "names that are read from the table would be private"


def load_group_distributions(options: FitOptions) -> KnownLaws:
    """Return each group's distribution, from a table or from --laws.

    Raises ``InputError`` if options conflict, or if there is only one group.
    """
    if (options.data is None) == (options.laws is None):
        given = "neither is given" if options.data is None else "both are given"
        raise InputError.from_text("DATA, --laws", f"{given}; give exactly one")
    if options.group in options.value:
        raise InputError.from_text(f"--group {options.group}", "must be another column than --value")
    cells = _parse_cells(options)
    if options.laws is None:
        group_distributions = _distributions_from_table(options, cells)
    else:
        table_options = {
            "--epsilon": options.epsilon,
            "--privacy-unit": options.privacy_unit,
            "--groups": options.groups,
            "--table": options.table,
        }
        for name, value in table_options.items():
            if value is not None:
                raise InputError.from_text(name, "cannot be combined with --laws; it is for a table")
        group_distributions = laws_from_entries(read_distributions_csv(options.laws), cells, options.value[0])
    if len(group_distributions.laws) < 2:
        raise InputError.from_text("--group", f"at least 2 groups are needed; found {len(group_distributions.laws)}")
    return group_distributions


def _distributions_from_table(options: FitOptions, cells: Cells | None) -> KnownLaws:
    """Return the proportions of the table's groups, or estimates with noise if --epsilon is given."""
    numeric = cells.column_names if cells is not None else ()
    table = open_table_with_types(options.data, options.table, {})
    _check_columns(options, table)
    if numeric:
        table = open_table_with_types(options.data, options.table, dict.fromkeys(numeric, "number"))
    groups = None if options.groups is None else _parse_label_list("groups", options.groups, table, options.group)
    population = Population(group=options.group, person=options.privacy_unit, groups=groups)
    # The cells, the listed categories, or the column whose categories are read from the table.
    points: Support | str = options.value[0] if cells is None else cells
    if isinstance(points, str) and options.points is not None:
        names = _parse_label_list("points", options.points, table, points)
        points = Categories(points, Labels.from_names(names))
    if options.epsilon is None:
        group_distributions = laws_from_counts(count_points(table, points, population))
        if isinstance(points, str):
            _check_categories_are_not_numbers(options, table, group_distributions.support)
        return group_distributions
    if groups is None:
        raise InputError.from_text("--groups", f"is required with --epsilon; {NAMES_REQUIRED_REMEDY}")
    if isinstance(points, str):
        raise InputError.from_text("--points", f"is required with --epsilon for categories; {NAMES_REQUIRED_REMEDY}")
    counts = count_points(table, points, population)
    return private_laws_from_counts(counts, options.epsilon, person=options.privacy_unit, mechanism_delta=options.delta)


def _check_columns(options: FitOptions, table: Table) -> None:
    """Raise ``InputError`` with the name of the option if a column does not exist."""
    names = table.schema.column_names
    columns = [*(("--value", column) for column in options.value), ("--group", options.group)]
    if options.privacy_unit is not None:
        columns.append(("--privacy-unit", options.privacy_unit))
    for option, column in columns:
        if column not in names:
            advice = suggest_nearest(column, names) or f"the columns are {quoted_names(names)}"
            raise InputError.from_text(option, f"no column {column!r} in {options.data}; {advice}")


def _check_categories_are_not_numbers(options: FitOptions, table: Table, support: Support) -> None:
    """Raise ``InputError`` if a text column has only numbers: as categories, all of them are equally far apart."""
    column = options.value[0]
    names = support.point_names
    if options.metric is not None or table.schema.find_column(column).kind != "text" or len(names) <= 2:
        return
    if all(is_finite_number(str(name)) for name in names):
        raise InputError.from_text(
            f"--value {column}",
            f"column {column!r} has only numbers, {len(names)} different ones; give --bins N --bounds LOW,HIGH, or "
            "--metric discrete to treat them as categories",
        )


def open_table_with_types(path: Path | None, name: str | None, types: dict[str, str]) -> Table:
    """Open the table in a file. Column types are used for CSV files only, which have no schema."""
    from tightrope.tables import open_source
    from tightrope.tables.sources.csv import is_csv_path

    return open_source(path, table=name, types=types if path is not None and is_csv_path(path) else None)


def open_table_for_mechanism(coupling: SavedCoupling, path: Path, name: str | None) -> Table:
    """Open the table that a mechanism is applied to; columns of a CSV file get the types used when fitting."""
    is_numeric = isinstance(coupling.support, Cells)
    types = dict.fromkeys(coupling.support.column_names, "number") if is_numeric else {}
    first_label_by_column = {coupling.group: next(iter(coupling.mechanism.groups))}
    if not is_numeric:
        first_label_by_column[coupling.support.column_names[0]] = coupling.support.point_names[0]
    integers = {column: "integer" for column, label in first_label_by_column.items() if isinstance(label, int)}
    return open_table_with_types(path, name, {**types, **integers})


def _parse_cells(options: FitOptions) -> Cells | None:
    """Return the cells of --bins or --grid; None for categories."""
    sizes, bounds = _cells_per_axis(options), options.bounds or []
    if not sizes:
        if bounds:
            raise InputError.from_text("--bounds", "needs --bins N, or --grid ROWSxCOLUMNS for two --value columns")
        if len(options.value) != 1:
            raise InputError.from_text(
                "--value", f"{len(options.value)} columns need --grid ROWSxCOLUMNS; categories have one column"
            )
        return None
    if not len(options.value) == len(bounds) == len(sizes):
        option, columns = ("--bins", "one --value column") if len(sizes) == 1 else ("--grid", "two --value columns")
        needed = "one --bounds LOW,HIGH" if len(sizes) == 1 else "two --bounds LOW,HIGH"
        given = f"{len(options.value)} and {len(bounds)} are given"
        raise InputError.from_text(option, f"needs {columns} and {needed}; {given}")
    if options.points is not None:
        raise InputError.from_text("--points", "cannot be combined with --bins or --grid: the cells are the points")
    columns_bounds_sizes = zip(options.value, map(parse_bounds, bounds), sizes, strict=True)
    return Cells(tuple(Axis(column, *ends, size) for column, ends, size in columns_bounds_sizes))


def _cells_per_axis(options: FitOptions) -> list[int]:
    """Return the number of cells along each axis."""
    if options.bins is not None and options.grid is not None:
        raise InputError.from_text("--grid", "cannot be combined with --bins: --bins is for one column, --grid for two")
    if options.bins is not None:
        return [options.bins]
    if options.grid is None:
        return []
    rows, _, columns = options.grid.lower().partition("x")
    if not (rows.isdecimal() and columns.isdecimal()):
        raise InputError.from_text(f"--grid {options.grid}", "write ROWSxCOLUMNS, two integers, for example 15x36")
    return [int(rows), int(columns)]


def _parse_label_list(option: str, text: str, table: Table, column: str) -> tuple[Name, ...]:
    """Split comma-separated names; convert them to int if the column is an integer column."""
    names = [part.strip() for part in text.split(",")]
    if table.schema.find_column(column).kind != "integer":
        return Labels.from_names(names).names
    try:
        return Labels.from_names([int(name) for name in names]).names
    except ValueError:
        raise InputError.from_text(f"--{option} {text}", f"write integers, as in column {column!r}") from None


def read_distributions_csv(path: Path) -> list[tuple[str, str, float]]:
    """Return (point, group, mass) for each line of a CSV file that has exactly these columns.

    Errors give the line number, never its contents.
    """
    entries: list[tuple[str, str, float]] = []
    with open_csv_file(path) as file:
        reader = csv.DictReader(file)
        if sorted(reader.fieldnames or []) != sorted(CSV_COLUMNS):
            raise InputError.from_text(str(path), f"line 1 must name the columns {', '.join(CSV_COLUMNS)}")
        for row in reader:
            line = f"line {reader.line_num} of {path}"
            if None in row or None in row.values():  # surplus entries are under None, missing ones are None
                raise InputError.from_text(line, f"expected three entries ({', '.join(CSV_COLUMNS)})")
            try:
                entries.append((str(row["point"] or ""), str(row["group"] or ""), float(row["mass"] or "")))
            except ValueError:
                raise InputError.from_text(line, "the mass is not a number") from None
    return entries
