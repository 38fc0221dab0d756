"""The one reader of written documents: JSON and TOML become frozen types, or an error that names the place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from tightrope.errors import InputError, listed, nearest

D = TypeVar("D")
Step = str | int
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_WORDS = {
    "float": "number", "decimal": "number", "int": "whole number", "str": "text", "array": "list",
    "object": "table of keys and values", "bool": "true or false", "null": "nothing",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reader:
    """How the errors of one sort of document read: its name, what to try, and which error is raised.

    ``secret``: what stands in its lists is not shown.
    """

    name: str
    remedy: str
    error: type[InputError] = InputError
    secret: bool = False

    def json(self, text: str, kind: type[D]) -> D:
        """The document in a JSON text; no key twice in a table, no NaN. Raises ``error``."""
        try:
            data = json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
        except (ValueError, RecursionError) as problem:
            why = f"{self.remedy} ({' '.join(str(problem).split())})"
            raise self.error(self.name, f"{len(text)} characters", "valid JSON", why) from None
        return self.data(data, kind)

    def data(self, data: object, kind: type[D]) -> D:
        """The document that parsed data describes; raises ``error`` with the place of the first thing that is wrong."""
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as problem:
            raise self._explained(problem, data, kind) from None

    def _explained(self, problem: msgspec.ValidationError, data: object, kind: type[Any]) -> InputError:
        said, _, place = str(problem).partition(" - at `")
        steps = _steps(place.removesuffix("`"))
        where, spoken = " ".join([self.name, *map(_spoken, steps)]), _type(kind, steps, data)
        value = _value(data, steps)
        if self.secret and steps and isinstance(steps[-1], int):
            value = type(value).__name__
        if isinstance(problem.__cause__, InputError):
            own = problem.__cause__
            return self.error(f"{where} {own.name}", own.value, own.expected, own.remedy)
        key = re.search(r"(unknown|required) field `(.*)`", said)
        if key is None:
            return self.error(where, value, _expected(said, spoken), self._hint(value, spoken))
        if key[1] == "unknown":
            known = tuple(field.encode_name for field in _fields(spoken))
            return self.error(f"key in {where}", key[2], f"one of {listed(known)}", nearest(key[2], known))
        return self.error(f"{where} {key[2]}", None, "given", self.remedy)

    def _hint(self, value: object, spoken: inspect.Type | None) -> str:
        known = spoken.values if isinstance(spoken, inspect.LiteralType) else ()
        return nearest(value, tuple(map(str, known))) or self.remedy


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The keys of a JSON object, none twice: two readers could take a different one of two."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _steps(place: str) -> list[Step | None]:
    """``$.answers[0].name`` as keys and positions; None for the value under some key of a free table."""
    return [key or (int(at) if at else None) for key, at in _STEP.findall(place)]


def _spoken(step: Step | None) -> str:
    """Positions are counted from 1."""
    return str(step + 1) if isinstance(step, int) else step or "of a key"


def _value(data: Any, steps: Sequence[Step | None]) -> Any:
    """What stands at a place; lists and tables by their size alone: they may be long, and hold data."""
    for step in steps:
        data = _below(data, step)
    return f"{len(data)} entries" if isinstance(data, list | tuple | Mapping) else data


def _below(data: Any, step: Step | None) -> Any:
    inner = (isinstance(step, int) and isinstance(data, Sequence)) or (isinstance(data, Mapping) and step in data)
    return data[step] if inner else None


def _type(kind: type[Any], steps: Sequence[Step | None], data: object) -> inspect.Type | None:
    """What is expected at a place."""
    found: inspect.Type | None = inspect.type_info(kind)
    for step in steps:
        data = _below(data, step)
        found = _chosen(_inner(found, step), data)
    return found


def _tagged(outer: inspect.Type | None) -> list[inspect.StructType]:
    """Tables of which one is chosen by its tag."""
    types = outer.types if isinstance(outer, inspect.UnionType) else ()
    return [one for one in types if isinstance(one, inspect.StructType) and one.tag_field is not None]


def _chosen(outer: inspect.Type | None, data: object) -> inspect.Type | None:
    return next((one for one in _tagged(outer) if one.tag == _below(data, one.tag_field)), outer)


def _inner(outer: inspect.Type | None, step: Step | None) -> inspect.Type | None:
    tags = tuple(one.tag for one in _tagged(outer) if one.tag_field == step)
    if tags:
        return inspect.LiteralType(tags)
    if isinstance(outer, inspect.UnionType):
        return next((found for one in outer.types if (found := _inner(one, step)) is not None), None)
    if isinstance(outer, inspect.DictType):
        return outer.value_type
    if isinstance(outer, inspect.TupleType) and isinstance(step, int):
        return outer.item_types[step]
    return getattr(outer, "item_type", None) or next((f.type for f in _fields(outer) if f.encode_name == step), None)


def _fields(outer: inspect.Type | None) -> Sequence[inspect.Field]:
    """The fields of a table, also of one that may be left out."""
    if isinstance(outer, inspect.UnionType):
        return next((found for one in outer.types if (found := _fields(one))), ())
    return outer.fields if isinstance(outer, inspect.StructType) else ()


def _expected(said: str, spoken: inspect.Type | None) -> str:
    """What would have been right, in words.

    >>> _expected("Expected `float | null`, got `str`", None), _expected("Expected `int` >= 1", None)
    ('number or nothing', 'whole number >= 1')
    """
    if isinstance(spoken, inspect.LiteralType):
        return f"one of {listed(tuple(map(str, spoken.values)))}" if len(spoken.values) > 1 else repr(spoken.values[0])
    wanted = said.removeprefix("Expected ").partition(", got")[0]
    named = re.sub(r"`([a-z| ]+)`", lambda found: " or ".join(_WORDS.get(w, w) for w in found[1].split(" | ")), wanted)
    return named[0].lower() + named[1:]
