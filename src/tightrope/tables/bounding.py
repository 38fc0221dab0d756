"""Contribution bounding: selection of the rows of each person that are used.

Which rows of a person are used depends on the plan and that person's rows only. Then adding or removing a person
changes every total by exactly that person's used rows. Therefore rows are ordered by a hash of their own content; the
order of the scan, row numbers and other people's rows have no effect. Rows are dropped only for persons who exceed a
bound, and whether a person does also depends on that person's rows alone.

Bounding works on projected rows: ``person``, ``key0, key1, ...`` (or ``number``, the index of a listed key) and one
small contribution per measure, ``value0, value1, ...``. Users' column names do not occur after ``project_rows``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from operator import add, and_, or_
from typing import TYPE_CHECKING

from tightrope.errors import SchemaError
from tightrope.tables.backends.column_types import DIGEST_LENGTH, is_wide, person_identity, shorten_texts, to_comparable
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.expression import Term, engine_column, term_columns, term_facts
from tightrope.tables.expressions.leaves import PERSON_VALUE_COLUMN, PersonValue, double_literal
from tightrope.tables.expressions.tree import SourceRows
from tightrope.tables.group_keys import GivenKeys, resolve_given_keys
from tightrope.tables.request import (
    ContributionBounds,
    DistinctCount,
    Factor,
    FixedPoint,
    FixedProduct,
    MarginalRequest,
    Measure,
    Request,
)
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

WIDE_TYPE = "decimal(38, 0)"
"""The type of all totals, 128 bits: a width chosen by the number of rows would reveal that number."""
MAX_PERSON_STEPS = 2**50
"""Largest magnitude, in steps of the fixed-point grid, of a person's sum and of each value in it: exact in doubles."""
COLUMNS_PER_TEXT = 16
"""Most columns that are encoded in one text, because the intermediate texts grow with the square of their number."""


@dataclass(frozen=True, slots=True)
class ProjectedRows:
    """The projected rows of a request: their table, and the names of the key and the contribution columns."""

    table: ir.Table
    keys: tuple[str, ...]
    values: tuple[str, ...]

    def with_table(self, table: ir.Table) -> ProjectedRows:
        """Return the same columns of another table."""
        return ProjectedRows(table, self.keys, self.values)

    def with_given_keys(self, given: GivenKeys) -> ProjectedRows:
        """Return the rows that have a given key, with one key column: the key's ``number``. NULL equals NULL."""
        table, keys = self.table, given.to_engine_table()
        equal_keys = [table[name].identical_to(keys[name]) for name in self.keys]
        joined = table.inner_join(keys, equal_keys)
        other_columns = [table[name] for name in table.columns if name not in self.keys]
        return ProjectedRows(joined.select(*other_columns, keys["number"]), ("number",), self.values)

    def with_all_cells(self) -> ProjectedRows:
        """Return the rows that are in a cell, if the one key column is the cell's number."""
        return self.with_table(self.table.filter(self.table[self.keys[0]].notnull()))

    def with_listed_values(self, given: GivenKeys, name: str, order: Sequence[object]) -> ProjectedRows:
        """Return the rows with one of the listed values in a key column, replaced by its position in ``order``."""
        positions = {value: position for position, value in enumerate(order)}
        given = replace(given, numbers=tuple(positions[key[0]] for key in given.keys))
        keys = given.to_engine_table()
        joined = self.table.inner_join(keys, self.table[name].identical_to(keys["key0"]))
        columns = [keys["number"].name(name) if column == name else self.table[column] for column in self.table.columns]
        return self.with_table(joined.select(*columns))


def used_columns(request: Request) -> tuple[str, ...]:
    """Return the columns of the user's table that a request reads, each once, in a fixed order."""
    person = () if request.bounds.person_column is None else (request.bounds.person_column,)
    measured = (term for measure in request.measures for term in measure.measured_terms)
    return term_columns(*person, *request.by, request.where, *measured)


def check_request(schema: Schema, request: Request) -> None:
    """Raise ``SchemaError`` unless the columns exist and have suitable kinds, and the condition is boolean."""
    person = (request.bounds.person_column,) if request.bounds.person_column is not None else ()
    for name in (*person, *request.by):
        term_facts(name, schema)
    if request.where is not None and (kind := term_facts(request.where, schema).kind) != "boolean":
        text = f"{request.where} must be a condition such as distance > 500, but it is {kind}"
        raise SchemaError.from_text("where", text)
    for measure in request.measures:
        for term in measure.measured_terms:
            kind = term_facts(term, schema).kind
            if not isinstance(measure, DistinctCount) and kind not in ("integer", "number", "boolean"):
                text = (
                    f"{str(term)!r} must be numeric, but it is {kind}; cast it first; for CSV and pandas "
                    f"objects declare types={{...: 'number'}}"
                )
                raise SchemaError.from_text("column", text)


def check_listed_keys(request: Request, types: Mapping[str, dt.DataType]) -> None:
    """Raise the errors of ``project_rows`` for given keys that do not fit the types of their columns; reads no table.

    Keys of expressions are checked when they are planned, by ``check_key_kinds``.
    """
    if request.keys is not None and request.by and all(isinstance(term, str) for term in request.by):
        key_types = tuple(types[str(term)] for term in request.by)
        resolve_given_keys(request.keys, tuple(map(str, request.by)), key_types)
    if isinstance(request, MarginalRequest):
        for term, values in zip(request.by, request.column_values, strict=True):
            if isinstance(term, str):
                resolve_given_keys(zip(values, strict=True), (term,), (types[term],))


def project_rows(
    source: SourceRows, types: Mapping[str, dt.DataType], request: Request, *, wide: bool = False
) -> tuple[ProjectedRows, GivenKeys | None]:
    """Return the rows that a request uses, before bounding, and its given keys.

    ``types`` are the source's types, in which keys are given. Contributions have 128 bits if ``wide``. Rows without a
    person, and rows for which the condition is not true, are dropped. With given keys, rows of other keys are dropped
    and the key columns are replaced by one, the key's number; if the keys are all cells, cells are these numbers. For a
    ``MarginalRequest``, rows with a value that is not listed are dropped, and each key column holds the position of its
    value.
    """
    source, names = filter_source(source, request), tuple(f"key{index}" for index in range(len(request.by)))
    source, columns, keys = with_key_columns(source, request, names, wide=wide)
    table = source.table
    values = _contribution_columns(source, request, wide)
    if not columns and not values:
        columns["row"] = load_library("ibis").literal(1)  # SQL has no table without columns
    projected = table.select(**columns, **values)
    if request.bounds.person_column is not None:
        projected = projected.filter(projected["person"].notnull())
    rows = ProjectedRows(projected, names, tuple(values))
    if request.keys is not None and request.lists_all_cells:
        return rows.with_all_cells(), None
    key_types = tuple(
        types[term] if isinstance(term, str) else keys[name].type()
        for name, term in zip(names, request.by, strict=True)
    )
    return rows_with_request_keys(rows, request, key_types)


def with_key_columns(
    source: SourceRows, request: Request, names: Sequence[str], *, wide: bool
) -> tuple[SourceRows, dict[str, ir.Column], dict[str, ir.Column]]:
    """Return the rows, those of persons for a per-person value; the columns of keys and person; and the keys alone.

    The columns are as rows are grouped by them; the keys have their own types.
    """
    value = request.person_value
    # Keys that use a per-person value are computed after that value; all other keys are computed from the rows.
    keys = {
        name: engine_column(term, source)
        for name, term in zip(names, request.by, strict=True)
        if value is None or term in request.group_terms
    }
    columns = {name: shorten_texts(to_comparable(key)) for name, key in keys.items()}
    if request.bounds.person_column is not None:
        columns["person"] = person_identity(engine_column(request.bounds.person_column, source))
    if value is not None:
        source = replace(source, table=person_rows(source, value, columns, wide=wide))
        cells = {
            name: engine_column(term, source) for name, term in zip(names, request.by, strict=True) if name not in keys
        }
        columns = {name: source.table[name] for name in columns} | {n: to_comparable(cell) for n, cell in cells.items()}
        keys |= cells
    return source, columns, keys


def rows_with_request_keys(
    rows: ProjectedRows, request: Request, key_types: tuple[dt.DataType, ...]
) -> tuple[ProjectedRows, GivenKeys | None]:
    """Return the rows whose keys the request lists, in these types, and the given keys; all rows if it lists none."""
    if isinstance(request, MarginalRequest):
        for name, term, key_type, listed in zip(rows.keys, request.by, key_types, request.column_values, strict=True):
            given = resolve_given_keys(zip(listed, strict=True), (str(term),), (key_type,))
            rows = rows.with_listed_values(given, name, listed)
        return rows, None
    if request.keys is None or not request.by:
        return rows, None
    given = resolve_given_keys(request.keys, tuple(map(str, request.by)), key_types)
    return rows.with_given_keys(given), given


def person_rows(source: SourceRows, value: PersonValue, columns: Mapping[str, ir.Column], *, wide: bool) -> ir.Table:
    """Return one row per person and group (``columns``), with the person's value, from their rows there alone.

    Sums are of integers: exact in any order, so that all engines get the same number.
    """
    ibis = load_library("ibis")
    row_value = None if value.part is None else engine_column(value.part, source)
    grid = FixedPoint(
        -MAX_PERSON_STEPS * float(value.step), MAX_PERSON_STEPS * float(value.step), Decimal(value.step), 0
    )
    if row_value is None:
        contribution = ibis.literal(1, "int8")
    elif value.aggregate == "sum":
        has_value = row_value.notnull() & ~row_value.isnan() if row_value.type().is_floating() else row_value.notnull()
        steps = fixed_point_units(row_value.cast("float64"), grid)
        contribution = ibis.ifelse(
            has_value, steps.cast(WIDE_TYPE) if wide else steps, ibis.null(WIDE_TYPE if wide else "int64")
        )
    else:
        is_true = ibis.ifelse(row_value, ibis.literal(1, "int8"), ibis.literal(0, "int8"))
        contribution = ibis.ifelse(row_value.notnull(), is_true, ibis.null("int8"))
    rows = source.table.select(**columns, contribution=contribution)
    rows = rows.filter(rows["person"].notnull())
    if value.aggregate == "any":
        summary = rows["contribution"].max() == 1
    elif value.aggregate == "count":
        summary = rows["contribution"].sum().fill_null(0).cast("int64")
    else:
        total = rows["contribution"].sum()
        clamped = ibis.least(ibis.greatest(total, -MAX_PERSON_STEPS), MAX_PERSON_STEPS)
        summary = clamped.cast("int64").cast("float64") * double_literal(float(value.step))
    return rows.group_by(list(columns)).agg(**{PERSON_VALUE_COLUMN: summary})


def filter_source(source: SourceRows, request: Request) -> SourceRows:
    """Return the rows for which the request's condition is true, neither false nor missing."""
    if request.where is None:
        return source
    return replace(source, table=source.table.filter(engine_column(request.where, source)))


def totals_by_group(rows: ProjectedRows, request: Request) -> ir.Table:
    """Return one row per group: its keys, ``rows`` (their number) and ``total0, total1, ...``, one per measure."""
    table = rows.table
    sums = {}
    for index, measure in enumerate(request.measures):
        if measure.column is None:
            total = table.count()
        elif measure.fixed_point is None:
            total = table[f"value{index}"].count()
        else:
            total = table[f"value{index}"].sum().fill_null(0)
        sums[f"total{index}"] = total.cast(WIDE_TYPE)
    sums["rows"] = table.count().cast(WIDE_TYPE)
    return table.group_by(list(rows.keys)).agg(**sums) if rows.keys else table.agg(**sums)


def with_value_key(rows: ProjectedRows, name: str) -> ProjectedRows:
    """Return the rows that have the named value, with that value as a further key and without contributions."""
    return ProjectedRows(rows.table.filter(rows.table[name].notnull()), (*rows.keys, name), ())


def texts_with_digests(source: SourceRows, term: Term, digests: Sequence[str]) -> ir.Table:
    """Return the texts (column ``text``) that have these digests (column ``digest``), each once.

    Rows are joined with the digests before they are grouped, so that texts of other rows are not kept in memory.
    """
    all_texts = source.table.select(text=to_comparable(engine_column(term, source)))
    long_texts = all_texts.filter(all_texts["text"].length() >= DIGEST_LENGTH)
    with_digests = long_texts.select(digest=long_texts["text"].hexdigest("sha256"), text=long_texts["text"])
    wanted = load_library("ibis").memtable(load_library("pyarrow").table({"digest": list(digests)}))
    matches = with_digests.semi_join(wanted, "digest")
    return matches.group_by("digest").agg(text=matches["text"].min())


def _contribution_columns(source: SourceRows, request: Request, wide: bool) -> dict[str, ir.Column]:
    """Return the contribution columns by name; if ``wide``, in 128 bits except for values of distinct counts."""
    values = {
        f"value{index}": _row_contribution(source, measure)
        for index, measure in enumerate(request.measures)
        if measure.column is not None
    }
    if not wide:
        return values
    counted_values = distinct_value_names(request)
    return {name: value if name in counted_values else value.cast(WIDE_TYPE) for name, value in values.items()}


def distinct_value_names(request: Request) -> tuple[str, ...]:
    """Return the names of the contribution columns that hold the values of distinct counts."""
    measures = enumerate(request.measures)
    return tuple(f"value{index}" for index, measure in measures if isinstance(measure, DistinctCount))


def _row_contribution(source: SourceRows, measure: Measure) -> ir.Column:
    """Return a row's contribution: 1, x or a product in fixed point, or a value to count; NULL if x is NULL or NaN."""
    ibis, columns = load_library("ibis"), [engine_column(term, source) for term in measure.measured_terms]
    if isinstance(measure, DistinctCount):
        return shorten_texts(to_comparable(columns[0]))
    usable = reduce(
        and_,
        [column.notnull() & ~column.isnan() if column.type().is_floating() else column.notnull() for column in columns],
    )
    if measure.fixed_point is None:
        return ibis.ifelse(usable, ibis.literal(1, "int8"), ibis.null("int8"))
    values = [column.cast("float64") for column in columns]
    fixed = measure.fixed_point
    units = fixed_point_units(values[0], fixed) if isinstance(fixed, FixedPoint) else fixed_product_units(values, fixed)
    return ibis.ifelse(usable, units, ibis.null("int64"))


def fixed_point_units(x: ir.Column, fixed_point: FixedPoint) -> ir.Column:
    """Compute ``FixedPoint.to_units`` in the engine.

    For NaN the result is an arbitrary number, not an error: callers replace it with NULL.
    """
    step = double_literal(float(fixed_point.step))
    return ((clamp_column(x, fixed_point) / step) + 0.5).floor().cast("int64") - fixed_point.center


def fixed_product_units(values: Sequence[ir.Column], fixed: FixedProduct) -> ir.Column:
    """Compute ``FixedProduct.to_units`` in the engine; ``values`` without a factor are ignored."""
    first, *second = (
        clamp_column(x, factor) - double_literal(factor.middle)
        for x, factor in zip(values, fixed.factors, strict=False)
    )
    product = first * (first if fixed.squared else second[0]) if fixed.squared or second else first
    return ((product / double_literal(float(fixed.step))) + 0.5).floor().cast("int64") - fixed.center


def clamp_column(x: ir.Column, fixed_point: FixedPoint | Factor) -> ir.Column:
    """Return ``min(max(x, lower), upper)``."""
    ibis = load_library("ibis")
    return ibis.least(ibis.greatest(x, double_literal(fixed_point.lower)), double_literal(fixed_point.upper))


def persons_over_bound(rows: ProjectedRows, bounds: ContributionBounds) -> ir.Table:
    """Return the persons (column ``person``) who exceed a bound.

    If ``max_rows_implies_other_bounds``, rows are counted by person. Otherwise they are counted by person and group,
    and these counts, which are fewer, are combined by person. Either way the rows are read once.
    """
    table = rows.table
    if max_rows_implies_other_bounds(bounds, grouped=bool(rows.keys)):
        counts = table.group_by("person").agg(rows=table.count())
        return counts.filter(counts["rows"] > bounds.max_rows).select("person")
    by_group = table.group_by(["person", *rows.keys]).agg(rows=table.count())
    counts = by_group.group_by("person").agg(
        rows=by_group["rows"].sum(), largest_group=by_group["rows"].max(), groups=by_group.count()
    )
    exceeded = [
        counts["rows"] > bounds.max_rows,
        counts["largest_group"] > bounds.max_rows_per_group,
        counts["groups"] > bounds.max_groups,
    ]
    return counts.filter(reduce(or_, exceeded)).select("person")


def max_rows_implies_other_bounds(bounds: ContributionBounds, *, grouped: bool) -> bool:
    """Return whether persons with at most ``max_rows`` rows meet the other two bounds as well."""
    return not (_limits_rows_in_group(bounds) or (grouped and bounds.max_groups < bounds.max_rows))


def order_rows_of_persons(rows: ProjectedRows) -> ProjectedRows:
    """Return the rows with a ``position``: 0, 1, ... among the rows of their person, by a hash of person and content.

    ``rows`` must contain all rows of each person in it.
    """
    # Identical rows of a person are distinguished by a running number, `copy`. Without it a hundred equal rows would
    # be used or dropped together, and rare rows be used far too often. Which of the equal rows has which number has
    # no effect, because they are equal.
    table, content = rows.table, ("person", *rows.keys, *rows.values)
    copies = table.mutate(copy=load_library("ibis").row_number().over(group_by=[table[name] for name in content]))
    hashed = copies.mutate(row_hash=_hash_columns([copies[name] for name in (*content, "copy")]))
    return renumber_positions(rows.with_table(hashed), row_order(hashed, rows))


def renumber_positions(rows: ProjectedRows, order: Sequence[ir.Column] = ()) -> ProjectedRows:
    """Return the rows with the positions 0, 1, ... of each person's rows, in this order or that of their positions."""
    table = rows.table
    position = load_library("ibis").row_number().over(group_by=table["person"], order_by=[*order] or table["position"])
    columns = {name: table[name] for name in ("person", *rows.keys, *rows.values)}
    return rows.with_table(table.select(**columns, position=position))


def select_dropped_rows(rows: ProjectedRows, bounds: ContributionBounds) -> ir.Table:
    """Return the rows that are not used; ``rows`` must contain all rows of each person in it, with their positions.

    Used are, for each person, the first ``max_groups`` groups by the hash of person and group; in each of these the
    first ``max_rows_per_group`` rows by position; and of those the first ``max_rows``.
    """
    ibis, table = load_library("ibis"), rows.table
    # Rows that exceed a bound on groups, if there is such a bound, come after all others of their person.
    within_bounds = []
    if rows.keys and bounds.max_groups < bounds.max_rows:
        table = table.mutate(group_hash=_hash_columns([table[name] for name in ("person", *rows.keys)]))
        group_rank = ibis.dense_rank().over(group_by=table["person"], order_by=group_order(table, rows))
        within_bounds.append(group_rank < bounds.max_groups)
    if _limits_rows_in_group(bounds):
        group = [table[name] for name in ("person", *rows.keys)]
        rank_in_group = ibis.row_number().over(group_by=group, order_by=table["position"])
        within_bounds.append(rank_in_group < bounds.max_rows_per_group)
    if not within_bounds:
        return table.filter(table["position"] >= bounds.max_rows)
    marked = table.mutate(beyond_group_bounds=~reduce(and_, within_bounds))
    order = [marked["beyond_group_bounds"], marked["position"]]
    ranked = marked.mutate(rank=ibis.row_number().over(group_by=marked["person"], order_by=order))
    return ranked.filter((ranked["rank"] >= bounds.max_rows) | ranked["beyond_group_bounds"])


def row_order(table: ir.Table, rows: ProjectedRows) -> list[ir.Column]:
    """Return the sort columns of a person's rows: the row's hash, then its content, so that ties are identical rows."""
    return [table["row_hash"], *(table[name] for name in (*rows.keys, *rows.values, "copy"))]


def group_order(table: ir.Table, rows: ProjectedRows) -> list[ir.Column]:
    """Return the sort columns of a person's groups: the hash of person and group, then the group."""
    return [table["group_hash"], *(table[name] for name in rows.keys)]


def encode_columns(columns: Sequence[ir.Column]) -> ir.StringColumn:
    """Encode several values as one text, the same in every engine and different for different values of these types.

    Each value marks its own end: an integer is ``digits,``, any other value ``length:text``, and NULL is ``n``, with
    which neither digits nor a length begin: texts of different values differ, also after they are joined. Engines write
    floats differently, so a float is encoded as two integers; very large or very close floats may share them.
    """
    return reduce(add, map(_encode_column, columns))


def _hash_columns(columns: Sequence[ir.Column]) -> ir.StringColumn:
    """Return the MD5 of ``encode_columns``; more than ``COLUMNS_PER_TEXT`` columns are first hashed in parts."""
    if len(columns) <= COLUMNS_PER_TEXT:
        return encode_columns(columns).hexdigest("md5")
    parts = [columns[start : start + COLUMNS_PER_TEXT] for start in range(0, len(columns), COLUMNS_PER_TEXT)]
    return _hash_columns([_hash_columns(part) for part in parts])


def _encode_column(column: ir.Column) -> ir.StringColumn:
    if column.type().is_floating():
        # ⌊x⌋, clamped to 64 bits, and x − ⌊x⌋ in units of 2⁻⁵³, which is NULL for large x. Large x become NULL before
        # ``floor``, because Spark fails to floor values outside 64-bit integers.
        ibis = load_library("ibis")
        small = ibis.ifelse(column.abs() < 2**53, column, ibis.null("float64"))
        clamped = ibis.least(ibis.greatest(column, -(2**62)), 2**62).cast("int64")
        floor = small.floor()
        integer_part = ibis.coalesce(floor.cast("int64"), clamped)
        fraction_units = ((small - floor) * 2**53).floor().cast("int64")
        return _encode_column(integer_part) + _encode_column(fraction_units)
    text = column.cast("string")
    if column.type().is_timestamp():
        text = text.replace("+00", "")  # only some engines append the offset of UTC
    encoded = (
        text + ","
        if column.type().is_integer() or is_wide(column.type())
        else text.length().cast("string") + ":" + text
    )
    return encoded.fill_null("n")


def _limits_rows_in_group(bounds: ContributionBounds) -> bool:
    """Return whether the bound on rows in a group is tighter than the bound on rows."""
    return bounds.max_rows_per_group < bounds.max_rows
