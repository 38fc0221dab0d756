"""Tables as the text of a TOML file: what ``tomllib`` reads back is what was written."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import singledispatch
from typing import Any

from tightrope.release.documents.starter import quoted

BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(tables: Mapping[str, Any]) -> str:
    """The text; sections in the order of the keys, lists of tables as ``[[double]]`` ones.

    >>> print(toml_text({"title": "a", "budget": {"epsilon": Decimal("0.1")}, "question": [{"by": ["x", "y"]}]}))
    title = "a"
    <BLANKLINE>
    [budget]
    epsilon = 0.1
    <BLANKLINE>
    [[question]]
    by = ["x", "y"]
    <BLANKLINE>
    """
    plain = {key: value for key, value in tables.items() if not (_is_table(value) or _are_tables(value))}
    parts = [_lines(plain)] if plain else []
    parts += [f"[{_key(key)}]\n{_lines(value)}" for key, value in tables.items() if _is_table(value)]
    parts += [f"[[{_key(key)}]]\n{_lines(one)}" for key, value in tables.items() if _are_tables(value) for one in value]
    return "\n".join(parts)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else quoted(key)


@singledispatch
def _value(value: object) -> str:
    raise TypeError(f"no TOML value: {type(value).__name__}")


@_value.register
def _(value: bool) -> str:
    return "true" if value else "false"


@_value.register(int)
@_value.register(float)
@_value.register(Decimal)
def _(value: object) -> str:
    return str(value)


@_value.register
def _(value: str) -> str:
    return quoted(value)


@_value.register(datetime.date)
@_value.register(datetime.time)
def _(value: datetime.date | datetime.time) -> str:
    return value.isoformat()


@_value.register(list)
@_value.register(tuple)
def _(value: Sequence[object]) -> str:
    return f"[{', '.join(map(_value, value))}]"


@_value.register(dict)
def _(value: Mapping[str, object]) -> str:
    return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())} }}"
