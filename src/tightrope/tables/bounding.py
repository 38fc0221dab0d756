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
from tightrope.tables.backends.column_types import DIGEST, comparable, identity, is_wide, short
from tightrope.tables.engine_calls import load
from tightrope.tables.expressions.expression import Term, computed, facts_of, reads
from tightrope.tables.expressions.tree import Rows as Source
from tightrope.tables.group_keys import GivenKeys, given_keys
from tightrope.tables.request import Distinct, Factor, FixedPoint, FixedProduct, Measure, PersonBounds, Request
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
class Rows:
    """Narrow rows: the table, the names of its key columns and of its contributions."""

    table: ir.Table
    keys: tuple[str, ...]
    values: tuple[str, ...]

    def replaced(self, table: ir.Table) -> Rows:
        """The same columns of another table."""
        return Rows(table, self.keys, self.values)


def used_columns(request: Request) -> tuple[str, ...]:
    """The columns of the user's table that a request reads, each once, in a fixed order."""
    person = () if request.bounds.person is None else (request.bounds.person,)
    measured = (term for measure in request.measures for term in measure.columns)
    return reads(*person, *request.by, request.where, *measured)


def check(schema: Schema, request: Request) -> None:
    """``SchemaError`` unless the person, the keys, the values and the condition exist and have kinds that can serve."""
    keys = (request.bounds.person,) if request.bounds.person is not None else ()
    for name in (*keys, *request.by):
        if facts_of(name, schema).kind == "other":
            expected = "a number, text, boolean, date or timestamp to serve as a person or key"
            raise SchemaError("column", str(name), expected, CAST_FIRST)
    if request.where is not None and (kind := facts_of(request.where, schema).kind) != "boolean":
        raise SchemaError("where", str(request.where), f"a condition, but it is {kind}", "such as distance > 500")
    for measure in request.measures:
        for term in measure.columns:
            check_measured_kind = facts_of(term, schema).kind
            if isinstance(measure, Distinct) and check_measured_kind == "other":
                raise SchemaError(
                    "column", str(term), "a column of plain values to count the different ones", CAST_FIRST
                )
            if not isinstance(measure, Distinct) and check_measured_kind not in ("integer", "number", "boolean"):
                remedy = "cast it first; for CSV and pandas objects declare types={...: 'number'}"
                raise SchemaError(
                    "column", str(term), f"numeric to be measured, but it is {check_measured_kind}", remedy
                )


def check_given(request: Request, types: Mapping[str, dt.DataType]) -> None:
    """Raise what ``narrow`` raises for given keys that the types of their columns refuse, without a table.

    Keys of expressions are checked by kind when they are planned.
    """
    if request.keys is not None and request.by and all(isinstance(term, str) for term in request.by):
        kinds = tuple(types[str(term)] for term in request.by)
        given_keys(request.keys, tuple(map(str, request.by)), kinds)


def narrow(
    source: Source, types: Mapping[str, dt.DataType], request: Request, *, wide: bool = False
) -> tuple[Rows, GivenKeys | None]:
    """The rows that a request uses, before bounding, and its given keys; contributions in 128 bits where ``wide``.

    ``types`` are those of the source, which keys are given in. Rows without a person are dropped, and those for which
    the condition is not true. With given keys, rows of other keys are dropped and the key columns become one, the
    key's number.
    """
    source = filtered_source(source, request)
    table, names = source.table, tuple(f"key{place}" for place in range(len(request.by)))
    found = [computed(term, source) for term in request.by]
    columns = {name: short(comparable(column)) for name, column in zip(names, found, strict=True)}
    if request.bounds.person is not None:
        columns["person"] = identity(table[request.bounds.person])
    values = _contributions(source, request, wide)
    if not columns and not values:
        columns["row"] = load("ibis").literal(1)  # SQL has no table without columns
    slim = table.select(**columns, **values)
    kept = slim if request.bounds.person is None else slim.filter(slim["person"].notnull())
    rows = Rows(kept, names, tuple(values))
    if request.keys is None or not request.by:
        return rows, None
    kinds = (types[term] if isinstance(term, str) else key.type() for term, key in zip(request.by, found, strict=True))
    given = given_keys(request.keys, tuple(map(str, request.by)), tuple(kinds))
    return _numbered(rows, given), given


def filtered_source(source: Source, request: Request) -> Source:
    """The rows for which the request's condition is true."""
    # Only the rows for which the condition is true: neither false nor missing.
    return (
        source if request.where is None else replace(source, table=source.table.filter(computed(request.where, source)))
    )


def totals(rows: Rows, request: Request) -> ir.Table:
    """One row a group: its keys, ``rows`` (how many there are) and ``total0, total1, ...``, one a measure."""
    table = rows.table
    sums = {f"total{place}": _total(table, place, measure) for place, measure in enumerate(request.measures)}
    sums["rows"] = table.count().cast(WIDE_TOTAL)
    return table.group_by(list(rows.keys)).agg(**sums) if rows.keys else table.agg(**sums)


def by_value(rows: Rows, name: str) -> Rows:
    """The rows that have a value, by their groups and that value."""
    return Rows(rows.table.filter(rows.table[name].notnull()), (*rows.keys, name), ())


def digests(found: Iterable[object]) -> tuple[str, ...]:
    """Those of these keys that are digests of texts."""
    return tuple(key for key in dict.fromkeys(found) if isinstance(key, str) and len(key) == DIGEST)


def long_texts(source: Source, term: Term, found: Sequence[str]) -> ir.Table:
    """The texts (column ``text``) that have these digests (column ``digest``), each once.

    Digests are looked for first: of all other rows no text is held.
    """
    text = comparable(computed(term, source))
    every = source.table.select(text=text)
    long = every.filter(every["text"].length() >= DIGEST)
    named = long.select(digest=long["text"].hexdigest("sha256"), text=long["text"])
    wanted = load("ibis").memtable(load("pyarrow").table({"digest": list(found)}))
    met = named.semi_join(wanted, "digest")
    return met.group_by("digest").agg(text=met["text"].min())


def _contributions(source: Source, request: Request, wide: bool) -> dict[str, ir.Column]:
    values = {
        f"value{place}": _contribution(source, measure)
        for place, measure in enumerate(request.measures)
        if measure.column is not None
    }
    if not wide:
        return values
    apart = distinct(request)
    return {name: value if name in apart else value.cast(WIDE_TOTAL) for name, value in values.items()}


def distinct(request: Request) -> tuple[str, ...]:
    """The contributions that are values, of which the different ones are counted."""
    return tuple(f"value{place}" for place, one in enumerate(request.measures) if isinstance(one, Distinct))


def _contribution(source: Source, measure: Measure) -> ir.Column:
    """What a row adds to a measure: 1, R(x), a product or its value, and NULL where a value is NULL or NaN."""
    ibis, columns = load("ibis"), [computed(term, source) for term in measure.columns]
    if isinstance(measure, Distinct):
        return short(comparable(columns[0]))
    usable = reduce(and_, map(_usable, columns))
    if measure.fixed_point is None:
        return ibis.ifelse(usable, ibis.literal(1, "int8"), ibis.null("int8"))
    values = [column.cast("float64") for column in columns]
    fixed = measure.fixed_point
    found = units(values[0], fixed) if isinstance(fixed, FixedPoint) else products(values, fixed)
    return ibis.ifelse(usable, found, ibis.null("int64"))


def _usable(column: ir.Column) -> ir.BooleanColumn:
    return column.notnull() & ~column.isnan() if column.type().is_floating() else column.notnull()


def units(x: ir.Column, fixed_point: FixedPoint) -> ir.Column:
    """``FixedPoint.to_units`` in the engine. Defined (but meaningless) for NaN: ``least`` takes the other bound."""
    step = _double(float(fixed_point.step))
    return ((clamped(x, fixed_point) / step) + 0.5).floor().cast("int64") - fixed_point.centre


def products(values: Sequence[ir.Column], fixed: FixedProduct) -> ir.Column:
    """``FixedProduct.to_units`` in the engine; values without a factor only decide which rows are usable."""
    first, *second = (
        clamped(x, factor) - _double(factor.middle) for x, factor in zip(values, fixed.factors, strict=False)
    )
    product = first * (first if fixed.squared else second[0]) if fixed.squared or second else first
    return ((product / _double(float(fixed.step))) + 0.5).floor().cast("int64") - fixed.centre


def clamped(x: ir.Column, fixed_point: FixedPoint | Factor) -> ir.Column:
    """``min(max(x, lower), upper)``."""
    ibis = load("ibis")
    return ibis.least(ibis.greatest(x, _double(fixed_point.lower)), _double(fixed_point.upper))


def _double(number: float) -> ir.Scalar:
    """The double with exactly these bits: SQL reads 0.1 as a decimal, text it parses to the nearest double."""
    return load("ibis").literal(repr(float(number))).cast("float64")


def _total(table: ir.Table, place: int, measure: Measure) -> ir.Column:
    if measure.column is None:
        return table.count().cast(WIDE_TOTAL)
    value = table[f"value{place}"]
    if measure.fixed_point is None:
        return value.count().cast(WIDE_TOTAL)
    return value.sum().fill_null(0).cast(WIDE_TOTAL)


def _numbered(rows: Rows, given: GivenKeys) -> Rows:
    """Only the rows of given keys, whose keys become their number; NULL equals NULL."""
    table, keys = rows.table, given.table()
    same = [table[name].identical_to(keys[name]) for name in rows.keys]
    joined = table.inner_join(keys, same)
    kept = [table[name] for name in table.columns if name not in rows.keys]
    return Rows(joined.select(*kept, keys["number"]), ("number",), rows.values)


COLUMNS_PER_TEXT = 16
"""Columns that are written into one text: with more of them, the texts on the way grow with their square."""


def over_bound(rows: Rows, bounds: PersonBounds) -> ir.Table:
    """The persons (column ``person``) who exceed a bound.

    One pass over the rows: when a group can hold all rows that a person may have, counting rows a person decides; else
    rows are counted by person and group, and those counts, which are fewer, by person.
    """
    table = rows.table
    if rows_alone(bounds, grouped=bool(rows.keys)):
        counted = table.group_by("person").agg(most=table.count())
        return counted.filter(counted["most"] > bounds.rows).select("person")
    pairs = table.group_by(["person", *rows.keys]).agg(most=table.count())
    counted = pairs.group_by("person").agg(rows=pairs["most"].sum(), most=pairs["most"].max(), groups=pairs.count())
    exceeded = [
        counted["rows"] > bounds.rows,
        counted["most"] > bounds.rows_per_group,
        counted["groups"] > bounds.groups,
    ]
    return counted.filter(reduce(or_, exceeded)).select("person")


def rows_alone(bounds: PersonBounds, *, grouped: bool) -> bool:
    """Whether the number of a person's rows decides whether they exceed a bound."""
    return not (_limits_in_group(bounds) or (grouped and bounds.groups < bounds.rows))


def dropped(rows: Rows, bounds: PersonBounds) -> ir.Table:
    """The rows that are not used, of persons whose rows are all here.

    Of each person, ``groups`` groups stay, by the hash of person and group; in each, ``rows_per_group`` rows by the
    hash of the row; of those, ``rows``, by the hash again.
    """
    # The rows with their hashes. Identical rows of a person are told apart by a running number, `copy`.
    # Without it a hundred equal rows would be kept or dropped as one, and rare rows be kept far too often. Which of
    # the equal rows has which number is of no consequence: they are equal.
    table = rows.table
    content = [table[name] for name in ("person", *rows.keys, *rows.values)]
    copies = table.mutate(copy=load("ibis").row_number().over(group_by=content))
    names = ("person", *rows.keys, *rows.values, "copy")
    hashed = copies.mutate(
        row_hash=_digest([copies[name] for name in names]),
        group_hash=_digest([copies[name] for name in ("person", *rows.keys)]),
    )
    # Whether a row's group stays, and the row in it; None when the bound on rows alone decides.
    allowed_rows = rows.replaced(hashed)
    ibis, allowed_table = load("ibis"), allowed_rows.table
    tests = []
    if allowed_rows.keys and bounds.groups < bounds.rows:
        allowed_place = ibis.dense_rank().over(
            group_by=allowed_table["person"], order_by=group_order(allowed_table, allowed_rows)
        )
        tests.append(allowed_place < bounds.groups)
    if _limits_in_group(bounds):
        group = [allowed_table[name] for name in ("person", *allowed_rows.keys)]
        allowed_place = ibis.row_number().over(group_by=group, order_by=row_order(allowed_table, allowed_rows))
        tests.append(allowed_place < bounds.rows_per_group)
    allowed = reduce(and_, tests) if tests else None
    ranked = hashed if allowed is None else hashed.mutate(beyond=~allowed)
    first = () if allowed is None else (ranked["beyond"],)
    place = load("ibis").row_number().over(group_by=ranked["person"], order_by=[*first, *row_order(ranked, rows)])
    placed = ranked.mutate(place=place)
    excess = placed["place"] >= bounds.rows
    return placed.filter(excess if allowed is None else excess | placed["beyond"])


def row_order(table: ir.Table, rows: Rows) -> list[ir.Column]:
    """The order of a person's rows: the hash of the row, then its content, so that ties are identical rows."""
    return [table["row_hash"], *(table[name] for name in (*rows.keys, *rows.values, "copy"))]


def group_order(table: ir.Table, rows: Rows) -> list[ir.Column]:
    """The order of a person's groups: the hash of person and group, then the group."""
    return [table["group_hash"], *(table[name] for name in rows.keys)]


def encoded(columns: Sequence[ir.Column]) -> ir.StringColumn:
    """One text for several values, the same in every engine and different for different values of these types.

    Each value marks its own end: an integer is ``digits,``, anything else ``length:text``, and NULL is ``n``. Floats,
    which engines spell in ways of their own, are two integers; those that differ further out or in may share them.
    """
    return reduce(add, map(_marked, columns))


def _digest(columns: Sequence[ir.Column]) -> ir.StringColumn:
    """The MD5 of ``encoded``; of more than 16 columns that of each 16 first, for each + of an engine writes anew."""
    if len(columns) <= COLUMNS_PER_TEXT:
        return encoded(columns).hexdigest("md5")
    parts = [columns[start : start + COLUMNS_PER_TEXT] for start in range(0, len(columns), COLUMNS_PER_TEXT)]
    return _digest([_digest(part) for part in parts])


def _marked(column: ir.Column) -> ir.StringColumn:
    if column.type().is_floating():
        # ⌊x⌋, held within 64 bits, and what is left of x in units of 2⁻⁵³; NULL where x is far from zero.
        # Near comes first: Spark fails to floor what is no 64-bit integer.
        ibis = load("ibis")
        near = ibis.ifelse(column.abs() < 2**53, column, ibis.null("float64"))
        far = ibis.least(ibis.greatest(column, -(2**62)), 2**62).cast("int64")
        whole = near.floor()
        return reduce(
            add, map(_marked, (ibis.coalesce(whole.cast("int64"), far), ((near - whole) * 2**53).floor().cast("int64")))
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


def _limits_in_group(bounds: PersonBounds) -> bool:
    """Whether the bound on rows in a group says more than the bound on rows."""
    return bounds.rows_per_group < bounds.rows
