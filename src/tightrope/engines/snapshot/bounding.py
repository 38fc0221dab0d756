"""Contribution bounding: which rows of a person are not used.

The promise: what is kept of a person depends on that person's own rows only. Then adding or removing a person changes
every total by that person's own bounded rows, and nothing else. So rows are ordered by a hash of their own content;
the order of the scan, row numbers and other people's rows never matter. Only persons who exceed a bound are looked at
closely, and whether one does is again a matter of that person's rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, and_, or_
from typing import TYPE_CHECKING

from tightrope.engines.backends.column_types import is_wide
from tightrope.engines.guard import load
from tightrope.engines.request import PersonBounds
from tightrope.engines.snapshot.rows import Rows

if TYPE_CHECKING:
    import ibis.expr.types as ir

AT_ONCE = 16
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
    hashed = _hashed(rows)
    allowed = _allowed(rows.replaced(hashed), bounds)
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
    if len(columns) <= AT_ONCE:
        return encoded(columns).hexdigest("md5")
    parts = [columns[start : start + AT_ONCE] for start in range(0, len(columns), AT_ONCE)]
    return _digest([_digest(part) for part in parts])


def _marked(column: ir.Column) -> ir.StringColumn:
    if column.type().is_floating():
        return reduce(add, map(_marked, _whole_and_rest(column)))
    text = column.cast("string")
    if column.type().is_timestamp():
        text = text.replace("+00", "")  # instants are in UTC, which only some engines say
    closed = (
        text + ","
        if column.type().is_integer() or is_wide(column.type())
        else text.length().cast("string") + ":" + text
    )
    return closed.fill_null("n")


def _whole_and_rest(x: ir.Column) -> tuple[ir.Column, ir.Column]:
    """⌊x⌋, held within 64 bits, and what is left of x in units of 2⁻⁵³; NULL where x is far from zero.

    Near comes first: Spark fails to floor what is no 64-bit integer.
    """
    ibis = load("ibis")
    near = ibis.ifelse(x.abs() < 2**53, x, ibis.null("float64"))
    far = ibis.least(ibis.greatest(x, -(2**62)), 2**62).cast("int64")
    whole = near.floor()
    return ibis.coalesce(whole.cast("int64"), far), ((near - whole) * 2**53).floor().cast("int64")


def _hashed(rows: Rows) -> ir.Table:
    """The rows with their hashes. Identical rows of a person are told apart by a running number, ``copy``.

    Without it a hundred equal rows would be kept or dropped as one, and rare rows be kept far too often. Which of the
    equal rows has which number is of no consequence: they are equal.
    """
    table = rows.table
    content = [table[name] for name in ("person", *rows.keys, *rows.values)]
    copies = table.mutate(copy=load("ibis").row_number().over(group_by=content))
    names = ("person", *rows.keys, *rows.values, "copy")
    return copies.mutate(
        row_hash=_digest([copies[name] for name in names]),
        group_hash=_digest([copies[name] for name in ("person", *rows.keys)]),
    )


def _allowed(rows: Rows, bounds: PersonBounds) -> ir.BooleanColumn | None:
    """Whether a row's group stays, and the row in it; None when the bound on rows alone decides."""
    ibis, table = load("ibis"), rows.table
    tests = []
    if rows.keys and bounds.groups < bounds.rows:
        place = ibis.dense_rank().over(group_by=table["person"], order_by=group_order(table, rows))
        tests.append(place < bounds.groups)
    if _limits_in_group(bounds):
        group = [table[name] for name in ("person", *rows.keys)]
        place = ibis.row_number().over(group_by=group, order_by=row_order(table, rows))
        tests.append(place < bounds.rows_per_group)
    return reduce(and_, tests) if tests else None


def _limits_in_group(bounds: PersonBounds) -> bool:
    """Whether the bound on rows in a group says more than the bound on rows."""
    return bounds.rows_per_group < bounds.rows
