"""PostgreSQL's types as ours: which Arrow type a column becomes, and what each written value means there.

Every rule looks at one value. What the type cannot say is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.engines.guard import load

Rule = Callable[[Any, Any], Any]
"""A column of text and an Arrow type become a column of that type."""

A_DAY = r"^\d{4}-\d\d-\d\d$"
AN_INSTANT = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?$"
IN_UTC, IN_HEX = "+00", "\\x"
"""Days and instants of the years 1 to 9999, as PostgreSQL writes them; 'infinity' and 'BC' look otherwise."""
WHOLE = r"^-?\d+(\.0*)?$"
WIDEST_NUMERIC = 38
NUMERIC = 1700


@dataclass(frozen=True, slots=True)
class Form:
    """The Arrow type of a column, by its name (``decimal`` has two numbers beside it), and the rule for its values.

    Without a rule Arrow's reader of CSV takes PostgreSQL's spelling as it is.
    """

    arrow: str
    rule: Rule | None = None
    digits: tuple[int, int] | None = None

    @property
    def type(self) -> Any:
        """The Arrow type."""
        arrow = load("pyarrow")
        if self.arrow == "decimal":
            return arrow.decimal128(*(self.digits or (WIDEST_NUMERIC, 0)))
        return arrow.timestamp("us", tz="UTC") if self.arrow == "instant" else arrow.type_for_alias(self.arrow)


def form_of(oid: int, modifier: int) -> Form:
    """The form of a type, by its number and modifier (that of a domain is its base type's).

    >>> form_of(20, -1).arrow, form_of(NUMERIC, (10 << 16 | 2) + 4).digits, form_of(NUMERIC, -1).arrow
    ('int64', (10, 2), 'double')
    """
    return _numeric(modifier) if oid == NUMERIC else _FORMS.get(oid, UNREAD)


def _numeric(modifier: int) -> Form:
    """Exact where digits are declared and fit; otherwise the nearest double."""
    digits, places = (modifier - 4) >> 16, ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
    if modifier >= 4 and 0 <= places <= digits <= WIDEST_NUMERIC:
        return Form("decimal", _decimals, (digits, places))
    return Form("double", _doubles)


def _text(column: Any, _: Any) -> Any:
    return column


def _padded(column: Any, _: Any) -> Any:
    """Spaces at the end of a ``char(n)`` mean nothing, in PostgreSQL's comparisons neither."""
    return load("pyarrow.compute").utf8_rtrim(column, characters=" ")


def _decimals(column: Any, wanted: Any) -> Any:
    """NaN is missing."""
    return _where(_like(column, WHOLE.replace("0*", r"\d*")), column).cast(wanted)


def _doubles(column: Any, wanted: Any) -> Any:
    """The nearest double; beyond all doubles infinity. What is no whole number is none as a double either.

    Two people with 3 and 2.99999999999999999999 would be one.
    """
    doubles = column.cast(wanted)
    values = doubles.fill_null(0).to_numpy(zero_copy_only=False)
    fraction = ~np.asarray(_like(column, WHOLE).fill_null(True))
    stray = fraction & np.isfinite(values) & (np.floor(values) == values)
    if not np.any(stray):
        return doubles
    aside = np.nextafter(values, np.where(values == 0, 1.0, 0.0))
    return load("pyarrow").array(np.where(stray, aside, values), wanted, mask=np.asarray(column.is_null()))


def _days(column: Any, wanted: Any) -> Any:
    return _where(_like(column, A_DAY), column).cast(wanted)


def _instants(column: Any, wanted: Any) -> Any:
    return _where(_like(column, AN_INSTANT), column).cast(wanted)


def _zoned(column: Any, wanted: Any) -> Any:
    """Written in UTC, for that is our connection's zone; in any other zone a value is missing."""
    compute, arrow = load("pyarrow.compute"), load("pyarrow")
    bare = _where(compute.ends_with(column, IN_UTC), compute.utf8_slice_codeunits(column, 0, -len(IN_UTC)))
    return _instants(bare, arrow.timestamp("us")).view(wanted)


def _bytes(column: Any, wanted: Any) -> Any:
    """Written in hexadecimal, for that is what our connection asks for."""
    raw = [None if text is None or text[:2] != IN_HEX else bytes.fromhex(text[2:]) for text in column.to_pylist()]
    return load("pyarrow").array(raw, wanted)


def _like(column: Any, pattern: str) -> Any:
    return load("pyarrow.compute").match_substring_regex(column, pattern)


def _where(test: Any, column: Any) -> Any:
    return load("pyarrow.compute").if_else(test, column, load("pyarrow").scalar(None, column.type))


TEXT = Form("string", _text)
UNREAD = Form("binary")
"""Arrays, json, times of day, intervals, ranges, composites: neither a person, a key nor a value."""
_FORMS = {
    16: Form("bool"),
    17: Form("binary", _bytes),
    21: Form("int16"),
    23: Form("int32"),
    20: Form("int64"),
    700: Form("float"),
    701: Form("double"),
    25: TEXT,
    1043: TEXT,
    1042: Form("string", _padded),
    19: TEXT,
    2950: TEXT,
    1082: Form("date32", _days),
    1114: Form("timestamp[us]", _instants),
    1184: Form("instant", _zoned),
}
"""By the numbers that PostgreSQL has given its own types for good: bool, bytea, int2, int4, int8, float4, float8,
text, varchar, char(n), name, uuid, date, timestamp, timestamptz. Bytes are for jobs; they are no key."""
