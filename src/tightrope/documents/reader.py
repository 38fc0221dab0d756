"""Read documents: JSON and TOML become immutable types, or an error with the path of the problem."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from tightrope.errors import InputError, InsufficientBudgetError, PlanError, SchemaError, quoted_names, suggest_nearest

D = TypeVar("D")
Step = str | int
_SCHEME, _PASSWORD = re.compile(r"[A-Za-z0-9+.-]*$"), re.compile(r":[^@]*@|password\s*=", re.IGNORECASE)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_WORDS = {
    "float": "a number", "decimal": "a number", "int": "an integer", "str": "text", "array": "a list",
    "object": "a table of keys and values", "bool": "true or false", "null": "nothing",
}  # fmt: skip
_CAME: dict[type, str] = {
    int: "int", float: "float", str: "str", bool: "bool", type(None): "null", list: "array", dict: "object",
    Decimal: "decimal",
}  # fmt: skip
_TABLES = (inspect.StructType, inspect.DictType)


FormerKeys = Mapping[tuple[str, ...], Mapping[str, str]]
"""For each path ("*" is every entry of a list): old key -> new key of the tables there."""


def with_new_keys(data: Any, former: FormerKeys) -> Any:
    """Return a copy of the data of an older version in which keys have their new names, outer tables first.

    >>> with_new_keys({"a": [{"b": 1}]}, {("a", "*"): {"b": "c"}})
    {'a': [{'c': 1}]}
    """

    def renamed(value: Any, path: tuple[str, ...], names: Mapping[str, str]) -> Any:
        if not path:
            return {names.get(key, key): item for key, item in value.items()} if isinstance(value, dict) else value
        if path[0] == "*":
            return [renamed(item, path[1:], names) for item in value] if isinstance(value, list | tuple) else value
        if not isinstance(value, dict) or path[0] not in value:
            return value
        return {**value, path[0]: renamed(value[path[0]], path[1:], names)}

    for path, names in former.items():
        data = renamed(data, path, names)
    return data


@dataclass(frozen=True, slots=True)
class Reader:
    """Settings for the errors of one kind of document: its name, the remedy and the error class.

    ``by_hand``: a TOML file that people write. Its places are spelled as they are typed (``[source.types] age``), its
    lists are shown, and the fields contain the advice (``missing_field_tip``). ``secret``: the contents of its lists
    are hidden. ``upgrade`` turns the data of an older version into the current version.
    """

    name: str
    remedy: str
    error: type[InputError] = InputError
    by_hand: bool = False
    secret: bool = False
    upgrade: Callable[[Any], Any] | None = None

    def parse_toml(self, path: Path) -> dict[str, Any]:
        """The tables of a TOML file, numbers with a point as exact decimals. Raises ``error``."""
        try:
            return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=_as_typed)
        except OSError as problem:
            why = (problem.strerror or type(problem).__name__).lower()
            raise self.error.from_text(str(path), f"{why}; {self.remedy}") from None
        except InputError as problem:
            raise self.error.from_error(problem, problem.name) from None
        except UnicodeDecodeError:
            raise self.error.from_text(str(path), f"not a text file (TOML in UTF-8); {self.remedy}") from None
        except (ValueError, InvalidOperation, RecursionError) as problem:  # also of numbers of 5 000 digits
            raise self.error.from_text(str(path), f"not valid TOML: {' '.join(str(problem).split())}") from None

    def parse_json(self, text: str, kind: type[D]) -> D:
        """The document in a JSON text; no key twice in a table, no NaN. Raises ``error``."""
        try:
            data = json.loads(
                text,
                parse_float=lambda literal: float(_as_typed(literal)),  # numbers of JSON are doubles
                parse_constant=_reject_constant,
                object_pairs_hook=_reject_repeated_keys,
            )
        except InputError as problem:
            raise self.error(f"number in {self.name}", problem.value, problem.expected, problem.remedy) from None
        except (ValueError, RecursionError) as problem:
            why = " ".join(str(problem).split())
            raise self.error.from_text(self.name, f"not valid JSON ({why}); {self.remedy}") from None
        return self.convert_data(data, kind)

    def convert_data(self, data: object, kind: type[D]) -> D:
        """The document that parsed data describes; raises ``error`` with the place of the first thing that is wrong."""
        data = data if self.upgrade is None else self.upgrade(data)
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as problem:
            raise self._input_error(problem, data, kind) from None

    def _input_error(self, problem: msgspec.ValidationError, data: object, kind: type[Any]) -> InputError:
        said, _, place = str(problem).partition(" - at `")
        # The steps with the key in a free table that they leave open: the first one with what came.
        steps = _path_steps(place.removesuffix("`"))
        came = said.rpartition("got `")[2].removesuffix("`")
        for named_deep, step in enumerate(steps):
            named_table = _value_at(data, steps[:named_deep])
            if step is None and isinstance(named_table, Mapping):
                steps[named_deep] = next(
                    (key for key, value in named_table.items() if _CAME.get(type(value)) == came), None
                )
        value, spoken = _value_at(data, steps), _type_at(kind, steps, data)
        where = self._place_text(steps, kind, data)
        if self.secret and steps and isinstance(steps[-1], int):
            value = type(value).__name__
        if isinstance(problem.__cause__, InputError):
            own = problem.__cause__
            own.value = self._printable_value(own.value)
            return self.error.from_error(own, f"{where} {own.name}".strip())
        key = re.search(r"(unknown|required) field `(.*)`", said)
        if key is None:
            expected = _expected_text(said, spoken).removesuffix(" or nothing" if self.by_hand else "")
            return self.error(where, self._printable_value(value), expected, self._suggestion_for(value, spoken))
        return self._of_key(where, spoken, missing=key[1] == "required", key=key[2])

    def _of_key(self, where: str, table: inspect.Type | None, *, missing: bool, key: str) -> InputError:
        if missing:
            wanted = _inner_type(table, key)
            values, tip = _expected_values(wanted), self._suggestion_for(None, wanted)
            text = f"missing{f' ({values})' if values else ''}{f'; {tip}' if tip else ''}"
            return self.error.from_text(f"{where} {key}".strip(), text)
        tag, told_by = getattr(table, "tag", None), getattr(table, "tag_field", None)
        named = f"{where or self.name} ({tag})" if tag else where or self.name
        known = (*([told_by] if told_by else []), *(field.encode_name for field in _struct_fields(table)))
        return unknown_key_error(self.error, named, key, known)

    def _place_text(self, steps: Sequence[Step | None], kind: type[Any], data: object) -> str:
        """The place in words; in a file that people write, tables stand in brackets and the whole needs no name."""
        if not self.by_hand:
            return " ".join([self.name, *map(_path_text, steps)])
        deep = 0
        while deep < len(steps) and isinstance(_without_metadata(_type_at(kind, steps[: deep + 1], data)), _TABLES):
            deep += 1
        within = [f"[{'.'.join(map(_path_text, steps[:deep]))}]"] if deep else []
        return " ".join([*within, *map(_path_text, steps[deep:])])

    def _suggestion_for(self, value: object, spoken: inspect.Type | None) -> str:
        return (
            suggest_nearest(value, _allowed_texts(spoken))
            or _field_tip(spoken)
            or ("" if self.by_hand else self.remedy)
        )

    def _printable_value(self, value: object) -> object:
        """The value as it is typed; in documents that programs write, lists and tables by their size alone."""
        if isinstance(value, list | tuple | Mapping) and not self.by_hand:
            return f"{len(value)} entries"
        if isinstance(value, list | tuple):
            return [self._printable_value(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self._printable_value(item) for key, item in value.items()}
        if isinstance(value, str):
            return redact_secret(value)
        if isinstance(value, Decimal):
            return int(value) if value.is_finite() and value.as_tuple().exponent == 0 else float(value)
        return value


def unknown_key_error(kind: type[InputError], place: str, key: str, known: tuple[str, ...]) -> InputError:
    """Return the error for an unknown key, with the nearest known one.

    >>> print(unknown_key_error(InputError, "question 3 (mean)", "bound", ("column", "bounds")))
    question 3 (mean): unknown key 'bound'; did you mean 'bounds'?
    """
    advice = suggest_nearest(key, known) or f"known keys: {quoted_names(known)}"
    return kind.from_text(place, f"unknown key {key!r}; {advice}")


def redact_secret(text: str) -> str:
    """Return the text for an error: only the scheme of a URL, and "..." if it may contain a password.

    >>> names = ("postgresql://anna:hush@localhost/x", "anna:hush@localhost", "visits.parquet")
    >>> tuple(redact_secret(name) for name in names)
    ('postgresql://...', '...', 'visits.parquet')
    """
    before, mark, _ = text.partition("://")
    if mark:
        return f"{_SCHEME.findall(before)[0]}://..."
    return "..." if _PASSWORD.search(text) else text


def missing_field_tip(remedy: str) -> msgspec.Meta:
    """Return the advice for a missing or wrong field."""
    return msgspec.Meta(extra={"tip": remedy})


def _as_typed(literal: str) -> Decimal:
    """Return the number; ``InputError`` if it is not 0 but its nearest double is 0."""
    if len(literal) > MOST_LETTERS:
        raise InputError("number", f"{len(literal)} characters", f"a number of at most {MOST_LETTERS} characters")
    exact = Decimal(literal)
    if underflows_to_zero(exact):
        raise InputError("number", literal, APART_FROM_ZERO, "it would be rounded to 0")
    if exact.is_finite() and math.isinf(float(exact)):
        raise InputError("number", literal, "at most 1.7e308", "it would be rounded to infinity")
    return exact


MOST_LETTERS = 4_300
"""The most characters of a number: Python's limit for integers."""


def underflows_to_zero(exact: Decimal) -> bool:
    """Return whether the nearest double is 0 although the number is not.

    >>> underflows_to_zero(Decimal("1e-400")), underflows_to_zero(Decimal("1e-300")), underflows_to_zero(Decimal(0))
    (True, False, False)
    """
    return bool(exact) and float(exact) == 0


APART_FROM_ZERO = "0, or no nearer to 0 than 5e-324"
"""The condition for a number that a double can distinguish from 0."""


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The keys of a JSON object, none twice: two readers could take a different one of two."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _path_steps(place: str) -> list[Step | None]:
    """``$.answers[0].name`` as keys and positions; None for the value under some key of a free table."""
    return [key or (int(at) if at else None) for key, at in _STEP.findall(place)]


def _path_text(step: Step | None) -> str:
    """Positions are counted from 1."""
    return str(step + 1) if isinstance(step, int) else step or "of a key"


def _value_at(data: Any, steps: Sequence[Step | None]) -> Any:
    """Return the value at a path."""
    for step in steps:
        inner = (isinstance(step, int) and isinstance(data, Sequence)) or (isinstance(data, Mapping) and step in data)
        if not inner:
            return None
        data = data[step]
    return data


def _type_at(kind: type[Any], steps: Sequence[Step | None], data: object) -> inspect.Type | None:
    """Return the expected type at a path; of tagged tables, the one that the data name."""
    found: inspect.Type | None = inspect.type_info(kind)
    for deep, step in enumerate(steps, start=1):
        outer = _inner_type(found, step)
        value = _value_at(data, steps[:deep])
        tagged = _tagged_types(outer) if isinstance(value, Mapping) else ()
        found = next(
            (one for one in tagged if isinstance(value, Mapping) and value.get(one.tag_field) == one.tag), outer
        )
    return found


def _tagged_types(outer: inspect.Type | None) -> tuple[inspect.StructType, ...]:
    """Return the tables that a tag distinguishes."""
    several = outer.types if isinstance(outer, inspect.UnionType) else ()
    return tuple(one for one in several if isinstance(one, inspect.StructType) and one.tag is not None)


def _without_metadata(outer: inspect.Type | None) -> inspect.Type | None:
    """Return the type without its field metadata; for an optional table, the table."""
    inner = outer.type if isinstance(outer, inspect.Metadata) else outer
    several = inner.types if isinstance(inner, inspect.UnionType) else ()
    return next((table for one in several if isinstance(table := _without_metadata(one), _TABLES)), inner)


def _field_tip(outer: inspect.Type | None) -> str:
    """Return the advice in a field's metadata, also for an optional field."""
    if isinstance(outer, inspect.Metadata):
        return str((outer.extra or {}).get("tip", ""))
    several = outer.types if isinstance(outer, inspect.UnionType) else ()
    return next((said for one in several if (said := _field_tip(one))), "")


def _inner_type(outer: inspect.Type | None, step: Step | None) -> inspect.Type | None:
    outer = outer.type if isinstance(outer, inspect.Metadata) else outer
    tagged = _tagged_types(outer)
    if tagged and step == tagged[0].tag_field:
        return inspect.LiteralType(tuple(str(one.tag) for one in tagged))
    if isinstance(outer, inspect.UnionType):
        return next((found for one in outer.types if (found := _inner_type(one, step)) is not None), None)
    if isinstance(outer, inspect.DictType):
        return outer.value_type
    if isinstance(outer, inspect.TupleType) and isinstance(step, int):
        return outer.item_types[step]
    return getattr(outer, "item_type", None) or next(
        (f.type for f in _struct_fields(outer) if f.encode_name == step), None
    )


def _struct_fields(outer: inspect.Type | None) -> Sequence[inspect.Field]:
    """The fields of a table, also of one that may be left out."""
    table = _without_metadata(outer)
    return table.fields if isinstance(table, inspect.StructType) else ()


def _allowed_texts(spoken: inspect.Type | None) -> tuple[str, ...]:
    """The texts among which a value is to be chosen."""
    return tuple(map(str, spoken.values)) if isinstance(spoken, inspect.LiteralType) else ()


def _expected_values(spoken: inspect.Type | None) -> str:
    """One of the choices, where there are some."""
    choices = _allowed_texts(spoken)
    return f"one of {quoted_names(choices)}" if len(choices) > 1 else ""


def _expected_text(said: str, spoken: inspect.Type | None) -> str:
    """Return the expected value in words.

    >>> _expected_text("Expected `float | null`, got `str`", None), _expected_text("Expected `int` >= 1", None)
    ('a number or nothing', 'an integer >= 1')
    """
    if isinstance(spoken, inspect.LiteralType):
        return _expected_values(spoken) or repr(spoken.values[0])
    if not said.startswith("Expected "):  # the validator's words for a text that it tried to read
        # What a type is in words, without that it may be left out.
        several = spoken.types if isinstance(spoken, inspect.UnionType) else (spoken,)
        names = [type(_without_metadata(one)).__name__.removesuffix("Type").lower() for one in several]
        return " or ".join(_WORDS[name] for name in names if name in _WORDS) or "another value"
    wanted = said.removeprefix("Expected ").partition(", got")[0].replace("int | float", "float")
    named = re.sub(r"`([a-z| ]+)`", lambda found: " or ".join(_WORDS.get(w, w) for w in found[1].split(" | ")), wanted)
    return named[0].lower() + named[1:]


# Errors of Python functions in the words of a file that people write: the names of its keys, and where they stand.

Names = Mapping[str, str]
"""Names of parameters that differ in the file: ``{"max_rows": "[privacy_unit] max_rows"}``."""
SAME: Names = MappingProxyType({})
_GIVEN = re.compile(r"(?<![\w<>!])([a-z_]+)=(?![=\s])")


@contextmanager
def named_keys(place: str, names: Names = SAME) -> Iterator[None]:
    """Errors from within name keys of a file, and say where they stand; texts give keys as they are typed there.

    They leave as ``PlanError``; a ``SchemaError`` and a refused budget stay what they are.
    """
    try:
        yield
    except InputError as error:
        kind = SchemaError if isinstance(error, SchemaError) else PlanError
        # The key of a parameter; of what belongs to one (``dialect delimiter``), what belongs to the key.
        parameter, blank, part = error.name.partition(" ")
        where = f"{place} {names.get(parameter, parameter)}{blank}{part}".strip()
        raise kind.from_error(error, where, lambda text: parameters_as_lines(text, names)) from None
    except InsufficientBudgetError as error:
        raise InsufficientBudgetError(parameters_as_lines(str(error), names)) from None


def parameters_as_lines(text: str, names: Names) -> str:
    """The text with every ``parameter=value`` as a line of the file.

    >>> parameters_as_lines("fewer, such as max_groups=1", {"max_groups": "[privacy_unit] groups"})
    'fewer, such as groups = 1'
    """
    return _GIVEN.sub(lambda found: f"{names.get(found[1], found[1]).rpartition(' ')[2]} = ", text)
