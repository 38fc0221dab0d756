"""Contribution bounding: which rows of a person are not used.

The promise: what is kept of a person depends on that person's own rows only. Then adding or removing a person changes
every total by that person's own bounded rows, and nothing else. So rows are ordered by a hash of their own content;
the order of the scan, row numbers and other people's rows never matter. Only persons who exceed a bound are looked at
closely, and whether one does is again a matter of that person's rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, and_, or_
from typing import TYPE_CHECKING

from tightrope.errors import SchemaError
from tightrope.tables.backends.column_types import DIGEST, is_wide, person_identity, shorten_texts, to_comparable
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.expression import Term, engine_column, facts_of, term_columns
from tightrope.tables.expressions.tree import SourceRows as Source
from tightrope.tables.group_keys import GivenKeys, resolve_given_keys
from tightrope.tables.request import (
    ContributionBounds,
    DistinctCount,
    Factor,
    FixedPoint,
    FixedProduct,
    Measure,
    Request,
)
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

# The narrow rows of a request: person, keys and one small contribution a measure, and nothing else of the table.
#
# Everything after this works on columns ``person``, ``key0, key1, ...`` (or ``number`` for given keys) and ``value0,
# value1, ...``: users' column names end here.

CAST_FIRST = "cast times of day, intervals, bytes and lists to text first; of pandas objects, say types={...: 'text'}"
WIDE_TOTAL = "decimal(38, 0)"
"""Totals are 128 bits wide always: a width taken from the number of rows would tell it."""


@dataclass(frozen=True, slots=True)
class ProjectedRows:
    """Narrow rows: the table, the names of its key columns and of its contributions."""

    table: ir.Table
    keys: tuple[str, ...]
    values: tuple[str, ...]

    def with_table(self, table: ir.Table) -> ProjectedRows:
        """The same columns of another table."""
        return ProjectedRows(table, self.keys, self.values)

    def with_given_keys(self, given: GivenKeys) -> ProjectedRows:
        """Only the rows of given keys, whose keys become their number; NULL equals NULL."""
        table, keys = self.table, given.to_engine_table()
        same = [table[name].identical_to(keys[name]) for name in self.keys]
        joined = table.inner_join(keys, same)
        kept = [table[name] for name in table.columns if name not in self.keys]
        return ProjectedRows(joined.select(*kept, keys["number"]), ("number",), self.values)


def used_columns(request: Request) -> tuple[str, ...]:
    """The columns of the user's table that a request reads, each once, in a fixed order."""
    person = () if request.bounds.person_column is None else (request.bounds.person_column,)
    measured = (term for measure in request.measures for term in measure.measured_terms)
    return term_columns(*person, *request.by, request.where, *measured)


def check_request(schema: Schema, request: Request) -> None:
    """``SchemaError`` unless the person, the keys, the values and the condition exist and have kinds that can serve."""
    keys = (request.bounds.person_column,) if request.bounds.person_column is not None else ()
    for name in (*keys, *request.by):
        if facts_of(name, schema).kind == "other":
            expected = "a number, text, boolean, date or timestamp to serve as a person or key"
            raise SchemaError("column", str(name), expected, CAST_FIRST)
    if request.where is not None and (kind := facts_of(request.where, schema).kind) != "boolean":
        raise SchemaError("where", str(request.where), f"a condition, but it is {kind}", "such as distance > 500")
    for measure in request.measures:
        for term in measure.measured_terms:
            check_measured_kind = facts_of(term, schema).kind
            if isinstance(measure, DistinctCount) and check_measured_kind == "other":
                raise SchemaError(
                    "column", str(term), "a column of plain values to count the different ones", CAST_FIRST
                )
            if not isinstance(measure, DistinctCount) and check_measured_kind not in ("integer", "number", "boolean"):
                remedy = "cast it first; for CSV and pandas objects declare types={...: 'number'}"
                raise SchemaError(
                    "column", str(term), f"numeric to be measured, but it is {check_measured_kind}", remedy
                )


def check_given_keys(request: Request, types: Mapping[str, dt.DataType]) -> None:
    """Raise what ``project_rows`` raises for given keys that the types of their columns refuse, without a table.

    Keys of expressions are checked by kind when they are planned.
    """
    if request.keys is not None and request.by and all(isinstance(term, str) for term in request.by):
        kinds = tuple(types[str(term)] for term in request.by)
        resolve_given_keys(request.keys, tuple(map(str, request.by)), kinds)


def project_rows(
    source: Source, types: Mapping[str, dt.DataType], request: Request, *, wide: bool = False
) -> tuple[ProjectedRows, GivenKeys | None]:
    """The rows that a request uses, before bounding, and its given keys; contributions in 128 bits where ``wide``.

    ``types`` are the source's types, in which keys are given. Rows without a person are dropped, and those for which
    the condition is not true. With given keys, rows of other keys are dropped and the key columns become one, the
    key's number.
    """
    source = filter_source(source, request)
    table, names = source.table, tuple(f"key{place}" for place in range(len(request.by)))
    found = [engine_column(term, source) for term in request.by]
    columns = {name: shorten_texts(to_comparable(column)) for name, column in zip(names, found, strict=True)}
    if request.bounds.person_column is not None:
        columns["person"] = person_identity(table[request.bounds.person_column])
    values = _contribution_columns(source, request, wide)
    if not columns and not values:
        columns["row"] = load_library("ibis").literal(1)  # SQL has no table without columns
    slim = table.select(**columns, **values)
    kept = slim if request.bounds.person_column is None else slim.filter(slim["person"].notnull())
    rows = ProjectedRows(kept, names, tuple(values))
    if request.keys is None or not request.by:
        return rows, None
    kinds = (types[term] if isinstance(term, str) else key.type() for term, key in zip(request.by, found, strict=True))
    given = resolve_given_keys(request.keys, tuple(map(str, request.by)), tuple(kinds))
    return rows.with_given_keys(given), given


def filter_source(source: Source, request: Request) -> Source:
    """The rows for which the request's condition is true."""
    # Only the rows for which the condition is true: neither false nor missing.
    return (
        source
        if request.where is None
        else replace(source, table=source.table.filter(engine_column(request.where, source)))
    )


def totals_by_group(rows: ProjectedRows, request: Request) -> ir.Table:
    """One row a group: its keys, ``rows`` (how many there are) and ``total0, total1, ...``, one a measure."""
    table = rows.table
    sums = {}
    for place, measure in enumerate(request.measures):
        if measure.column is None:
            total = table.count()
        elif measure.fixed_point is None:
            total = table[f"value{place}"].count()
        else:
            total = table[f"value{place}"].sum().fill_null(0)
        sums[f"total{place}"] = total.cast(WIDE_TOTAL)
    sums["rows"] = table.count().cast(WIDE_TOTAL)
    return table.group_by(list(rows.keys)).agg(**sums) if rows.keys else table.agg(**sums)


def with_value_key(rows: ProjectedRows, name: str) -> ProjectedRows:
    """The rows that have a value, by their groups and that value."""
    return ProjectedRows(rows.table.filter(rows.table[name].notnull()), (*rows.keys, name), ())


def select_digests(found: Iterable[object]) -> tuple[str, ...]:
    """Return the keys that are digests of texts."""
    return tuple(key for key in dict.fromkeys(found) if isinstance(key, str) and len(key) == DIGEST)


def long_texts(source: Source, term: Term, found: Sequence[str]) -> ir.Table:
    """The texts (column ``text``) that have these digests (column ``digest``), each once.

    Digests are looked for first: of all other rows no text is held.
    """
    text = to_comparable(engine_column(term, source))
    every = source.table.select(text=text)
    long = every.filter(every["text"].length() >= DIGEST)
    named = long.select(digest=long["text"].hexdigest("sha256"), text=long["text"])
    wanted = load_library("ibis").memtable(load_library("pyarrow").table({"digest": list(found)}))
    met = named.semi_join(wanted, "digest")
    return met.group_by("digest").agg(text=met["text"].min())


def _contribution_columns(source: Source, request: Request, wide: bool) -> dict[str, ir.Column]:
    values = {
        f"value{place}": _row_contribution(source, measure)
        for place, measure in enumerate(request.measures)
        if measure.column is not None
    }
    if not wide:
        return values
    apart = distinct_value_names(request)
    return {name: value if name in apart else value.cast(WIDE_TOTAL) for name, value in values.items()}


def distinct_value_names(request: Request) -> tuple[str, ...]:
    """The contributions that are values, of which the different ones are counted."""
    return tuple(f"value{place}" for place, one in enumerate(request.measures) if isinstance(one, DistinctCount))


def _row_contribution(source: Source, measure: Measure) -> ir.Column:
    """Return a row's contribution: 1, R(x), a product or its value; NULL if a value is NULL or NaN."""
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
    found = fixed_point_units(values[0], fixed) if isinstance(fixed, FixedPoint) else fixed_product_units(values, fixed)
    return ibis.ifelse(usable, found, ibis.null("int64"))


def fixed_point_units(x: ir.Column, fixed_point: FixedPoint) -> ir.Column:
    """``FixedPoint.to_units`` in the engine. Defined (but meaningless) for NaN: ``least`` takes the other bound."""
    step = _double_literal(float(fixed_point.step))
    return ((clamp_column(x, fixed_point) / step) + 0.5).floor().cast("int64") - fixed_point.center


def fixed_product_units(values: Sequence[ir.Column], fixed: FixedProduct) -> ir.Column:
    """``FixedProduct.to_units`` in the engine; values without a factor only decide which rows are usable."""
    first, *second = (
        clamp_column(x, factor) - _double_literal(factor.middle)
        for x, factor in zip(values, fixed.factors, strict=False)
    )
    product = first * (first if fixed.squared else second[0]) if fixed.squared or second else first
    return ((product / _double_literal(float(fixed.step))) + 0.5).floor().cast("int64") - fixed.center


def clamp_column(x: ir.Column, fixed_point: FixedPoint | Factor) -> ir.Column:
    """``min(max(x, lower), upper)``."""
    ibis = load_library("ibis")
    return ibis.least(ibis.greatest(x, _double_literal(fixed_point.lower)), _double_literal(fixed_point.upper))


def _double_literal(number: float) -> ir.Scalar:
    """The double with exactly these bits: SQL reads 0.1 as a decimal, text it parses to the nearest double."""
    return load_library("ibis").literal(repr(float(number))).cast("float64")


COLUMNS_PER_TEXT = 16
"""Columns that are written into one text: with more of them, the texts on the way grow with their square."""


def persons_over_bound(rows: ProjectedRows, bounds: ContributionBounds) -> ir.Table:
    """The persons (column ``person``) who exceed a bound.

    One pass over the rows: when a group can hold all rows that a person may have, counting rows a person decides; else
    rows are counted by person and group, and those counts, which are fewer, by person.
    """
    table = rows.table
    if row_bound_decides(bounds, grouped=bool(rows.keys)):
        counted = table.group_by("person").agg(most=table.count())
        return counted.filter(counted["most"] > bounds.max_rows).select("person")
    pairs = table.group_by(["person", *rows.keys]).agg(most=table.count())
    counted = pairs.group_by("person").agg(rows=pairs["most"].sum(), most=pairs["most"].max(), groups=pairs.count())
    exceeded = [
        counted["rows"] > bounds.max_rows,
        counted["most"] > bounds.max_rows_per_group,
        counted["groups"] > bounds.max_groups,
    ]
    return counted.filter(reduce(or_, exceeded)).select("person")


def row_bound_decides(bounds: ContributionBounds, *, grouped: bool) -> bool:
    """Return whether the number of a person's rows decides whether they exceed a bound."""
    return not (_limits_in_group(bounds) or (grouped and bounds.max_groups < bounds.max_rows))


def select_dropped_rows(rows: ProjectedRows, bounds: ContributionBounds) -> ir.Table:
    """The rows that are not used, of persons whose rows are all here.

    Of each person, ``groups`` groups stay, by the hash of person and group; in each, ``max_rows_per_group`` rows by the
    hash of the row; of those, ``rows``, by the hash again.
    """
    # The rows with their hashes. Identical rows of a person are distinguished by a running number, `copy`.
    # Without it a hundred equal rows would be kept or dropped as one, and rare rows be kept far too often. Which of
    # the equal rows has which number is of no consequence: they are equal.
    table = rows.table
    content = [table[name] for name in ("person", *rows.keys, *rows.values)]
    copies = table.mutate(copy=load_library("ibis").row_number().over(group_by=content))
    names = ("person", *rows.keys, *rows.values, "copy")
    hashed = copies.mutate(
        row_hash=_hash_columns([copies[name] for name in names]),
        group_hash=_hash_columns([copies[name] for name in ("person", *rows.keys)]),
    )
    # Whether a row's group stays, and the row in it; None when the bound on rows alone decides.
    allowed_rows = rows.with_table(hashed)
    ibis, allowed_table = load_library("ibis"), allowed_rows.table
    tests = []
    if allowed_rows.keys and bounds.max_groups < bounds.max_rows:
        allowed_place = ibis.dense_rank().over(
            group_by=allowed_table["person"], order_by=group_order(allowed_table, allowed_rows)
        )
        tests.append(allowed_place < bounds.max_groups)
    if _limits_in_group(bounds):
        group = [allowed_table[name] for name in ("person", *allowed_rows.keys)]
        allowed_place = ibis.row_number().over(group_by=group, order_by=row_order(allowed_table, allowed_rows))
        tests.append(allowed_place < bounds.max_rows_per_group)
    allowed = reduce(and_, tests) if tests else None
    ranked = hashed if allowed is None else hashed.mutate(beyond=~allowed)
    first = () if allowed is None else (ranked["beyond"],)
    place = (
        load_library("ibis").row_number().over(group_by=ranked["person"], order_by=[*first, *row_order(ranked, rows)])
    )
    placed = ranked.mutate(place=place)
    excess = placed["place"] >= bounds.max_rows
    return placed.filter(excess if allowed is None else excess | placed["beyond"])


def row_order(table: ir.Table, rows: ProjectedRows) -> list[ir.Column]:
    """The order of a person's rows: the hash of the row, then its content, so that ties are identical rows."""
    return [table["row_hash"], *(table[name] for name in (*rows.keys, *rows.values, "copy"))]


def group_order(table: ir.Table, rows: ProjectedRows) -> list[ir.Column]:
    """The order of a person's groups: the hash of person and group, then the group."""
    return [table["group_hash"], *(table[name] for name in rows.keys)]


def encode_columns(columns: Sequence[ir.Column]) -> ir.StringColumn:
    """One text for several values, the same in every engine and different for different values of these types.

    Each value marks its own end: an integer is ``digits,``, anything else ``length:text``, and NULL is ``n``. Floats,
    which engines spell in ways of their own, are two integers; those that differ further out or in may share them.
    """
    return reduce(add, map(_encode_column, columns))


def _hash_columns(columns: Sequence[ir.Column]) -> ir.StringColumn:
    """The MD5 of ``encode_columns``; of more than 16 columns, first of each 16, because each + of an engine copies."""
    if len(columns) <= COLUMNS_PER_TEXT:
        return encode_columns(columns).hexdigest("md5")
    parts = [columns[start : start + COLUMNS_PER_TEXT] for start in range(0, len(columns), COLUMNS_PER_TEXT)]
    return _hash_columns([_hash_columns(part) for part in parts])


def _encode_column(column: ir.Column) -> ir.StringColumn:
    if column.type().is_floating():
        # ⌊x⌋, held within 64 bits, and what is left of x in units of 2⁻⁵³; NULL where x is far from zero.
        # Near comes first: Spark fails to floor values outside 64-bit integers.
        ibis = load_library("ibis")
        near = ibis.ifelse(column.abs() < 2**53, column, ibis.null("float64"))
        far = ibis.least(ibis.greatest(column, -(2**62)), 2**62).cast("int64")
        whole = near.floor()
        return reduce(
            add,
            map(
                _encode_column,
                (ibis.coalesce(whole.cast("int64"), far), ((near - whole) * 2**53).floor().cast("int64")),
            ),
        )
    text = column.cast("string")
    if column.type().is_timestamp():
        text = text.replace("+00", "")  # instants are in UTC, which only some engines say
    closed = (
        text + ","
        if column.type().is_integer() or is_wide(column.type())
        else text.length().cast("string") + ":" + text
    )
    return closed.fill_null("n")


def _limits_in_group(bounds: ContributionBounds) -> bool:
    """Return whether the bound on rows in a group is tighter than the bound on rows."""
    return bounds.max_rows_per_group < bounds.max_rows
