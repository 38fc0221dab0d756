"""Read documents: JSON and TOML become immutable types, or an error with the path of the problem."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
_TYPE_NAMES: dict[type, str] = {
    int: "int", float: "float", str: "str", bool: "bool", type(None): "null", list: "array", dict: "object",
    Decimal: "decimal",
}  # fmt: skip
_TABLES = (inspect.StructType, inspect.DictType)


FormerKeys = Mapping[tuple[str, ...], Mapping[str, str]]
"""For each path ("*" is every item of a list), the new keys of its tables by the old ones."""


def rename_document_keys(data: Any, former: FormerKeys) -> Any:
    """Return a copy of the data of an older version in which keys have their new names, outer tables first.

    >>> rename_document_keys({"a": [{"b": 1}]}, {("a", "*"): {"b": "c"}})
    {'a': [{'c': 1}]}
    """

    def rename_keys(value: Any, path: tuple[str, ...], names: Mapping[str, str]) -> Any:
        if not path:
            return {names.get(key, key): item for key, item in value.items()} if isinstance(value, dict) else value
        if path[0] == "*":
            return [rename_keys(item, path[1:], names) for item in value] if isinstance(value, list | tuple) else value
        if not isinstance(value, dict) or path[0] not in value:
            return value
        return {**value, path[0]: rename_keys(value[path[0]], path[1:], names)}

    for path, names in former.items():
        data = rename_keys(data, path, names)
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
        """Return the content of a TOML file, with exact decimals for numbers with a point. Raises ``error``."""
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
        """Return the document in a JSON text. Raises ``error``, also for repeated keys and NaN."""
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
        """Return the document that parsed data describes; raises ``error`` with the path of the first problem.

        Decimals that are NaN or infinite are refused, too.
        """
        data = data if self.upgrade is None else self.upgrade(data)
        try:
            document = msgspec.convert(data, kind)
        except msgspec.ValidationError as problem:
            raise self._input_error(problem, data, kind) from None
        steps = _path_to_non_finite(document)
        if steps is not None:  # decimals are text, and "NaN" and "Infinity" are texts of decimals
            value = str(_value_at(data, steps))
            raise self.error(self._place_text(steps, kind, data), value, "a finite number", self.remedy)
        return document

    def _input_error(self, problem: msgspec.ValidationError, data: object, kind: type[Any]) -> InputError:
        message, _, path = str(problem).partition(" - at `")
        # The path ($.answers[0].name) omits keys of free tables, None here: insert the first key whose value has the
        # type in the message.
        steps: list[Step | None] = [
            key or (int(index) if index else None) for key, index in _STEP.findall(path.removesuffix("`"))
        ]
        actual_type = message.rpartition("got `")[2].removesuffix("`")
        for depth, step in enumerate(steps):
            table = _value_at(data, steps[:depth])
            if step is None and isinstance(table, Mapping):
                steps[depth] = next(
                    (key for key, value in table.items() if _TYPE_NAMES.get(type(value)) == actual_type), None
                )
        value, expected_type = _value_at(data, steps), _type_at(kind, steps, data)
        path_text = self._place_text(steps, kind, data)
        if self.secret and steps and isinstance(steps[-1], int):
            value = type(value).__name__
        if isinstance(problem.__cause__, InputError):
            cause = problem.__cause__
            cause.value = self._printable_value(cause.value)
            return self.error.from_error(cause, f"{path_text} {cause.name}".strip())
        key = re.search(r"(unknown|required) field `(.*)`", message)
        if key is None:
            expected = _expected_text(message, expected_type).removesuffix(" or nothing" if self.by_hand else "")
            return self.error(
                path_text, self._printable_value(value), expected, self._suggestion_for(value, expected_type)
            )
        return self._key_error(path_text, expected_type, missing=key[1] == "required", key=key[2], table_data=value)

    def _key_error(
        self, where: str, table: inspect.Type | None, *, missing: bool, key: str, table_data: object
    ) -> InputError:
        if missing:
            field_type = _inner_type(table, key)
            values, tip = _expected_values(field_type), self._suggestion_for(None, field_type)
            text = f"missing{f' ({values})' if values else ''}{f'; {tip}' if tip else ''}"
            return self.error.from_text(f"{where} {key}".strip(), text)
        tag, tag_field = getattr(table, "tag", None), getattr(table, "tag_field", None)
        table_name = f"{where or self.name} ({tag})" if tag else where or self.name
        known = (*([tag_field] if tag_field else []), *(field.encode_name for field in _struct_fields(table)))
        is_section = not where and isinstance(table_data, Mapping) and isinstance(table_data.get(key), Mapping | list)
        return unknown_key_error(self.error, table_name, key, known, word="section" if is_section else "key")

    def _place_text(self, steps: Sequence[Step | None], kind: type[Any], data: object) -> str:
        """Return the path in words; in a file that people write, tables are in brackets and it has no name."""
        if not self.by_hand:
            return " ".join([self.name, *map(_path_text, steps)])
        depth = 0
        while depth < len(steps) and isinstance(_without_metadata(_type_at(kind, steps[: depth + 1], data)), _TABLES):
            depth += 1
        table_path = [f"[{'.'.join(map(_path_text, steps[:depth]))}]"] if depth else []
        return " ".join([*table_path, *map(_path_text, steps[depth:])])

    def _suggestion_for(self, value: object, expected_type: inspect.Type | None) -> str:
        return (
            suggest_nearest(value, _allowed_texts(expected_type))
            or _field_tip(expected_type)
            or ("" if self.by_hand else self.remedy)
        )

    def _printable_value(self, value: object) -> object:
        """Return the value as it is typed; in documents that programs write, only the size of a list or table."""
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


def unknown_key_error(
    kind: type[InputError], place: str, key: str, known: tuple[str, ...], *, word: str = "key"
) -> InputError:
    """Return the error for an unknown key, with the nearest known one.

    >>> print(unknown_key_error(InputError, "question 3 (mean)", "bound", ("column", "bounds")))
    question 3 (mean): unknown key 'bound'; did you mean 'bounds'?
    """
    advice = suggest_nearest(key, known) or f"known keys: {quoted_names(known)}"
    return kind.from_text(place, f"unknown {word} {key!r}; {advice}")


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
"""Maximum number of characters of a number: Python's limit for integers."""


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
    """Return a JSON object; raises ``ValueError`` for a repeated key, of which two readers could use different ones."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key occurs twice")
    return table


def _path_text(step: Step | None) -> str:
    """Return a step of a path in words; positions are counted from 1."""
    return str(step + 1) if isinstance(step, int) else step or "of a key"


def _path_to_non_finite(value: object) -> list[Step] | None:
    """Return the path to the first decimal in a document that is NaN or infinite; None if all are finite."""
    items: Iterable[tuple[Step, object]]
    if isinstance(value, Decimal):
        return None if value.is_finite() else []
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        items = ((key, getattr(value, name)) for key, name in names)
    elif isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return None
    for step, item in items:
        path = _path_to_non_finite(item)
        if path is not None:
            return [step, *path]
    return None


def _value_at(data: Any, steps: Sequence[Step | None]) -> Any:
    """Return the value at a path."""
    for step in steps:
        has_step = (isinstance(step, int) and isinstance(data, Sequence)) or (
            isinstance(data, Mapping) and step in data
        )
        if not has_step:
            return None
        data = data[step]
    return data


def _type_at(kind: type[Any], steps: Sequence[Step | None], data: object) -> inspect.Type | None:
    """Return the expected type at a path; of tagged tables, the one that the data name."""
    current: inspect.Type | None = inspect.type_info(kind)
    for depth, step in enumerate(steps, start=1):
        inner = _inner_type(current, step)
        value = _value_at(data, steps[:depth])
        tagged = _tagged_types(inner) if isinstance(value, Mapping) else ()
        current = next(
            (table for table in tagged if isinstance(value, Mapping) and value.get(table.tag_field) == table.tag), inner
        )
    return current


def _tagged_types(outer: inspect.Type | None) -> tuple[inspect.StructType, ...]:
    """Return the tables that a tag distinguishes."""
    members = outer.types if isinstance(outer, inspect.UnionType) else ()
    return tuple(member for member in members if isinstance(member, inspect.StructType) and member.tag is not None)


def _without_metadata(outer: inspect.Type | None) -> inspect.Type | None:
    """Return the type without its field metadata; for an optional table, the table."""
    inner = outer.type if isinstance(outer, inspect.Metadata) else outer
    members = inner.types if isinstance(inner, inspect.UnionType) else ()
    return next((table for member in members if isinstance(table := _without_metadata(member), _TABLES)), inner)


def _field_tip(outer: inspect.Type | None) -> str:
    """Return the advice in a field's metadata, also for an optional field."""
    if isinstance(outer, inspect.Metadata):
        return str((outer.extra or {}).get("tip", ""))
    members = outer.types if isinstance(outer, inspect.UnionType) else ()
    return next((tip for member in members if (tip := _field_tip(member))), "")


def _inner_type(outer: inspect.Type | None, step: Step | None) -> inspect.Type | None:
    outer = outer.type if isinstance(outer, inspect.Metadata) else outer
    tagged = _tagged_types(outer)
    if tagged and step == tagged[0].tag_field:
        return inspect.LiteralType(tuple(str(member.tag) for member in tagged))
    if isinstance(outer, inspect.UnionType):
        return next((inner for member in outer.types if (inner := _inner_type(member, step)) is not None), None)
    if isinstance(outer, inspect.DictType):
        return outer.value_type
    if isinstance(outer, inspect.TupleType) and isinstance(step, int):
        return outer.item_types[step]
    return getattr(outer, "item_type", None) or next(
        (field.type for field in _struct_fields(outer) if field.encode_name == step), None
    )


def _struct_fields(outer: inspect.Type | None) -> Sequence[inspect.Field]:
    """Return the fields of a table, also of an optional one; empty for other types."""
    table = _without_metadata(outer)
    return table.fields if isinstance(table, inspect.StructType) else ()


def _allowed_texts(expected_type: inspect.Type | None) -> tuple[str, ...]:
    """Return the allowed texts of a choice; empty for other types."""
    return tuple(map(str, expected_type.values)) if isinstance(expected_type, inspect.LiteralType) else ()


def _expected_values(expected_type: inspect.Type | None) -> str:
    """Return "one of ..." for a choice between several texts, else an empty text."""
    choices = _allowed_texts(expected_type)
    return f"one of {quoted_names(choices)}" if len(choices) > 1 else ""


def _expected_text(message: str, expected_type: inspect.Type | None) -> str:
    """Return the expected value in words.

    >>> _expected_text("Expected `float | null`, got `str`", None), _expected_text("Expected `int` >= 1", None)
    ('a number or nothing', 'an integer >= 1')
    """
    if isinstance(expected_type, inspect.LiteralType):
        return _expected_values(expected_type) or repr(expected_type.values[0])
    if not message.startswith("Expected "):  # the validator's words for a text that it tried to read
        # The type in words, without that it is optional.
        members = expected_type.types if isinstance(expected_type, inspect.UnionType) else (expected_type,)
        names = [type(_without_metadata(member)).__name__.removesuffix("Type").lower() for member in members]
        return " or ".join(_WORDS[name] for name in names if name in _WORDS) or "another value"
    expected = message.removeprefix("Expected ").partition(", got")[0].replace("int | float", "float")
    in_words = re.sub(
        r"`([a-z| ]+)`", lambda match: " or ".join(_WORDS.get(word, word) for word in match[1].split(" | ")), expected
    )
    return in_words[0].lower() + in_words[1:]


# Errors of Python functions, reworded for a file that people write: with the names of its keys and their tables.

Names = Mapping[str, str]
"""Names of parameters that differ in the file: ``{"max_rows": "[privacy_unit] max_rows"}``."""
SAME_NAMES: Names = MappingProxyType({})
_ASSIGNMENT = re.compile(r"(?<![\w<>!])([a-z_]+)=(?![=\s])")


@contextmanager
def reword_key_errors(place: str, names: Names = SAME_NAMES) -> Iterator[None]:
    """Reword errors from the block: parameters become keys of the file, with the place where they are written.

    ``InputError`` becomes ``PlanError``; the types of ``SchemaError`` and ``InsufficientBudgetError`` are kept.
    """
    try:
        yield
    except InputError as error:
        kind = SchemaError if isinstance(error, SchemaError) else PlanError
        # Only the parameter is replaced in a name such as ``dialect delimiter``.
        parameter, space, part = error.name.partition(" ")
        where = f"{place} {names.get(parameter, parameter)}{space}{part}".strip()
        raise kind.from_error(error, where, lambda text: parameters_as_lines(text, names)) from None
    except InsufficientBudgetError as error:
        raise InsufficientBudgetError(parameters_as_lines(str(error), names)) from None


def parameters_as_lines(text: str, names: Names) -> str:
    """Return the text with every ``parameter=value`` as a line of the file.

    >>> parameters_as_lines("fewer, such as max_groups=1", {"max_groups": "[privacy_unit] groups"})
    'fewer, such as groups = 1'
    """
    return _ASSIGNMENT.sub(lambda match: f"{names.get(match[1], match[1]).rpartition(' ')[2]} = ", text)
