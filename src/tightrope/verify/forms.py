"""Forms of documents, for every version: the exact keys, types and ranges. Other input is not a Tightrope document.

Keys without a form are rejected: a reader would believe them because the other keys are confirmed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

Shape = Callable[[str, Any], None]
"""Checks a value, given its path in the document; raises ``MalformedError``."""
MAX_INTEGER = 1 << 53


class MalformedError(ValueError):
    """A value that a Tightrope writer never produces."""


def require_form(holds: bool, name: str, expected: str) -> None:
    """Raise ``MalformedError`` unless the condition holds."""
    if not holds:
        raise MalformedError(f"{name}: expected {expected}")


def any_form(_name: str, _value: Any) -> None:
    """Accept any value: the form of fields that enter no computation."""


def text_form(name: str, value: Any) -> None:
    """Require text."""
    require_form(isinstance(value, str), name, "text")


def boolean_form(name: str, value: Any) -> None:
    """Require true or false."""
    require_form(isinstance(value, bool), name, "true or false")


def number_form(least: float = -sys.float_info.max, most: float = sys.float_info.max) -> Shape:
    """Return the form of a number in this range, ends included."""

    def check_document_form(name: str, value: Any) -> None:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        require_form(is_number and least <= value <= most, name, f"a number in [{least:g}, {most:g}]")

    return check_document_form


def positive_form(name: str, value: Any) -> None:
    """Require a number above 0."""
    number_form(0)(name, value)
    require_form(value > 0, name, "a number above 0")


def integer_form(least: int = 0, most: int = MAX_INTEGER) -> Shape:
    """Return the form of an integer in this range, ends included; 1.0 is rejected."""

    def check_document_form(name: str, value: Any) -> None:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        require_form(is_integer and least <= value <= most, name, f"a whole number in [{least}, {most}]")

    return check_document_form


def pattern_form(pattern: str, words: str) -> Shape:
    """Return the form of a text that matches the pattern as a whole."""

    def check_document_form(name: str, value: Any) -> None:
        require_form(isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None, name, words)

    return check_document_form


def choice_form(*values: object) -> Shape:
    """Return the form of a value that equals one of these and has its type."""

    def check_document_form(name: str, value: Any) -> None:
        matches = any(type(value) is type(allowed) and value == allowed for allowed in values)
        require_form(matches, name, f"one of {', '.join(map(repr, values))}")

    return check_document_form


def optional_form(form: Shape) -> Shape:
    """Return the form of a value of this form, or null."""

    def check_document_form(name: str, value: Any) -> None:
        if value is not None:
            form(name, value)

    return check_document_form


def list_form(item_form: Shape, least: int = 0, most: int = 1 << 20) -> Shape:
    """Return the form of a list of values of one form."""

    def check_document_form(name: str, value: Any) -> None:
        require_form(isinstance(value, list) and least <= len(value) <= most, name, f"a list of {least} to {most}")
        for index, item in enumerate(value):
            item_form(f"{name}[{index}]", item)

    return check_document_form


def tuple_form(*parts: Shape) -> Shape:
    """Return the form of a list with one value of each form."""

    def check_document_form(name: str, value: Any) -> None:
        require_form(isinstance(value, list) and len(value) == len(parts), name, f"a list of {len(parts)}")
        for index, (part, item) in enumerate(zip(parts, value, strict=True)):
            part(f"{name}[{index}]", item)

    return check_document_form


def table_form(required: dict[str, Shape], optional: dict[str, Shape] | None = None, *, others: bool = False) -> Shape:
    """Return the form of a table with required and optional keys; ``others`` permits more keys, which are not read."""
    fields = {**required, **(optional or {})}

    def check_document_form(name: str, value: Any) -> None:
        require_form(isinstance(value, dict), name, "a table")
        missing, unknown = [key for key in required if key not in value], [key for key in value if key not in fields]
        require_form(not missing, name, f"the key {missing[:1]}")
        require_form(others or not unknown, name, f"no key but its own; it has {unknown[:1]!a}")
        for key, item in value.items():
            fields.get(key, any_form)(f"{name}.{key}", item)

    return check_document_form


def mapping_form(item_form: Shape) -> Shape:
    """Return the form of a table with any keys and values of one form."""

    def check_document_form(name: str, value: Any) -> None:
        require_form(isinstance(value, dict), name, "a table")
        for key, item in value.items():
            item_form(f"{name}.{key!a}", item)

    return check_document_form


def tagged_form(key: str, forms: dict[str, Shape]) -> Shape:
    """Return the form of a table whose entry ``key`` names its form."""

    def check_document_form(name: str, value: Any) -> None:
        require_form(isinstance(value, dict), name, "a table")
        tag = value.get(key)
        require_form(isinstance(tag, str) and tag in forms, f"{name}.{key}", f"one of {', '.join(forms)}")
        forms[tag](name, {own: inner for own, inner in value.items() if own != key})

    return check_document_form


NONNEGATIVE, UNIT_INTERVAL, COUNT = number_form(0), number_form(0, 1), integer_form(1)
MAX_POINTS, MAX_LISTED, MAX_TABLE_CELLS = 256, 10_000, 1 << 21
"""Maximum lengths of lists (points of a curve; answers or mechanisms; weights of a table), above what is written."""
SMALL_COUNT = integer_form(1, 1 << 20)
DECIMAL = pattern_form(r"[0-9]{1,400}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?", "a number >= 0 as decimal text")
SHORT_DECIMAL = pattern_form(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", "a number >= 0 as decimal text")
DIGITS = pattern_form(r"[0-9]{1,4300}", "a whole number >= 0 as decimal text")
HEXADECIMAL = pattern_form(r"[0-9a-f]{1,8192}", "a whole number >= 0 as hexadecimal text")
FRACTION = pattern_form(r"[0-9]{1,4300}/[0-9]{1,4300}", "a fraction as decimal text")
HASH = pattern_form(r"[0-9a-f]{64}", "a SHA-256")
TABLE = table_form({
    "centre": DIGITS, "half": list_form(DIGITS, 0, MAX_TABLE_CELLS),
    "tail": optional_form(table_form({
        "block": list_form(DIGITS, 1, MAX_TABLE_CELLS), "escape_in": DIGITS, "escape": DIGITS,
    })),
    "steps": list_form(number_form(), 0, MAX_LISTED),
})  # fmt: skip
WEIGHT = pattern_form(r"0|[1-9a-f][0-9a-f]{0,32}", "a whole number >= 0 as hexadecimal text")
PACKED_WEIGHTS = pattern_form(r"[0-9a-f* ]*", "hexadecimal weights")
SHARED_TABLE = table_form({
    "id": SMALL_COUNT, "center": WEIGHT, "half": PACKED_WEIGHTS,
    "tail": optional_form(table_form({"block": PACKED_WEIGHTS, "escape_in": WEIGHT, "escape": WEIGHT})),
    "steps": list_form(number_form(), 0, MAX_LISTED),
})  # fmt: skip
CHOICE_KEYS = {"below": DIGITS, "cells": SMALL_COUNT, "root": DIGITS, "target": optional_form(DIGITS)}
CHOICE = table_form(CHOICE_KEYS, {"left_out": optional_form(DIGITS)})


def table_or_id_form(name: str, value: Any) -> None:
    """Require a table, as certificates up to version 3 have, or the id of one."""
    (TABLE if isinstance(value, dict) else SMALL_COUNT)(name, value)


MECHANISM = table_form(
    {
        "answers": list_form(text_form, 1, MAX_LISTED), "statistic": text_form, "column": optional_form(text_form),
        "by": list_form(text_form, 0, MAX_LISTED), "family": text_form, "unit": DECIMAL,
        "sensitivity_per_row": DIGITS, "table_steps_per_row": SMALL_COUNT, "rows": SMALL_COUNT,
        "max_rows_per_group": COUNT, "groups": COUNT, "factor": DIGITS, "table": table_or_id_form,
    },
    {
        "where": optional_form(text_form), "exclusive": optional_form(text_form), "together": optional_form(COUNT),
        "choice": optional_form(CHOICE), "box": optional_form(SMALL_COUNT), "disjoint": optional_form(COUNT),
    },
)  # fmt: skip
NEIGHBORS = table_form({
    "relation": choice_form("add-remove"), "privacy_unit": optional_form(text_form), "noun": text_form,
    "max_rows": COUNT, "max_rows_per_group": COUNT, "max_groups": COUNT, "statement": text_form,
})  # fmt: skip
CONSISTENT = table_form({
    "answers": list_form(text_form, 2, 100), "shared": choice_form("groups", "total"),
    "divided_by": list_form(list_form(integer_form(0, 1 << 20), 0, 100), 2, 100),
    "variances": list_form(SHORT_DECIMAL, 2, 100), "statement": text_form,
})  # fmt: skip
POSITIONS = list_form(integer_form(0, 1 << 10), 0, 100)
MARGINALS = table_form({
    "columns": list_form(text_form, 1, 100), "sizes": list_form(integer_form(2, 1 << 20), 1, 100),
    "tables": list_form(table_form({
        "answer": text_form, "columns": POSITIONS, "weight": FRACTION, "half_width_95": NONNEGATIVE,
    }), 1, MAX_LISTED),
    "measurements": list_form(table_form({
        "mechanism": COUNT, "columns": POSITIONS, "differences": POSITIONS, "precision": FRACTION,
    }), 1, MAX_LISTED),
    "gap": NONNEGATIVE, "statement": text_form,
})  # fmt: skip
RELEASE = table_form(
    {
        "document": choice_form("release certificate"), "version": choice_form(1, 2, 3, 4), "epsilon": NONNEGATIVE,
        "epsilon_exact": DECIMAL, "delta": UNIT_INTERVAL, "delta_exact": DECIMAL, "total_variation": UNIT_INTERVAL,
        "total_variation_exact": DECIMAL, "attack_success": UNIT_INTERVAL,
        "budget": table_form({"delta": DECIMAL, "points": list_form(tuple_form(DECIMAL, DECIMAL), 0, MAX_POINTS)}),
        "budget_fraction": DECIMAL, "neighbors": NEIGHBORS, "mechanisms": list_form(MECHANISM, 1, MAX_LISTED),
        "profile": table_form({
            "epsilon": list_form(NONNEGATIVE, 1, MAX_POINTS), "delta": list_form(UNIT_INTERVAL, 1, MAX_POINTS),
        }),
        "tradeoff": table_form({
            "false_positive_rate": list_form(UNIT_INTERVAL, 0, MAX_POINTS),
            "true_positive_rate": list_form(UNIT_INTERVAL, 0, MAX_POINTS),
        }),
        "alternatives": list_form(table_form({"family": text_form, "relative_error": positive_form}), 0, MAX_POINTS),
        "computed": table_form({"method": text_form, "argument": text_form, "rounding": text_form}),
        "versions": mapping_form(text_form), "ledger": text_form,
    },
    {
        "entry": any_form, "public_tables": any_form, "consistent": list_form(CONSISTENT, 0, 100),
        "tables": list_form(SHARED_TABLE, 1, MAX_LISTED), "marginals": MARGINALS,
    },
)  # fmt: skip
NOISE_USED = table_form({
    "statistic": text_form, "family": text_form, "why": text_form, "mean_absolute_error": NONNEGATIVE,
    "half_width_95": NONNEGATIVE, "worst_error": optional_form(NONNEGATIVE), "unit": text_form,
})  # fmt: skip
ANSWER = table_form({
    "name": text_form, "by": list_form(text_form, 0, MAX_LISTED), "keys": choice_form("none", "given", "discovered"),
    "max_rows": COUNT, "max_rows_per_group": COUNT, "max_groups": COUNT,
    "noise": list_form(NOISE_USED, 1, MAX_LISTED), "rows": list_form(table_form({}, others=True)),
}, others=True)  # fmt: skip
RESULT = table_form(
    {
        "document": choice_form("release result"), "version": choice_form(1, 2), "title": optional_form(text_form),
        "answers": list_form(ANSWER, 1, MAX_LISTED), "certificate": RELEASE,
    },
    {
        "bias": any_form, "about": any_form, "comparisons": any_form,
        "measured": list_form(list_form(integer_form(-MAX_INTEGER)), 1, MAX_LISTED),
    },
)  # fmt: skip

MULTIPLIER = table_form({
    "epsilon": NONNEGATIVE, "delta": UNIT_INTERVAL, "shift": SMALL_COUNT, "cap": NONNEGATIVE,
    "start": integer_form(-(1 << 20), 1 << 20), "left": NONNEGATIVE, "values": list_form(NONNEGATIVE),
})  # fmt: skip
NUMBERS = table_form(
    {},
    {
        "multipliers": list_form(MULTIPLIER, 0, 100),
        "points": list_form(tuple_form(NONNEGATIVE, UNIT_INTERVAL), 1, 100),
        "count": SMALL_COUNT, "together": COUNT, "centre": list_form(UNIT_INTERVAL), "half": list_form(UNIT_INTERVAL),
    },
    others=True,
)  # fmt: skip
NOISE = table_form(
    {
        "document": choice_form("noise certificate"), "version": choice_form(1, 2), "lower": NONNEGATIVE,
        "upper": NONNEGATIVE, "gap": optional_form(NONNEGATIVE),
        "guarantee": table_form({"epsilon": NONNEGATIVE, "delta": UNIT_INTERVAL, "total_variation": UNIT_INTERVAL}),
        "realised": list_form(tuple_form(NONNEGATIVE, UNIT_INTERVAL, UNIT_INTERVAL), 0, MAX_POINTS),
        "cost": text_form, "sensitivity": positive_form, "shape": text_form, "releases": COUNT,
        "mean_absolute_error": NONNEGATIVE, "mean_squared_error": NONNEGATIVE,
        "worst_error": optional_form(NONNEGATIVE), "shape_lower": optional_form(NONNEGATIVE),
        "unimodal_price": optional_form(number_form()),
        "argument": table_form({"kind": text_form, "statement": text_form, "numbers": NUMBERS}),
    },
    {"table": optional_form(TABLE)},
)  # fmt: skip

RUN_FIELDS = {
    "count": COUNT, "poisson_rate": optional_form(UNIT_INTERVAL), "subset": optional_form(tuple_form(COUNT, COUNT)),
    "erase": optional_form(UNIT_INTERVAL),
}  # fmt: skip
SCALED = table_form({**RUN_FIELDS, "scale": positive_form, "sensitivity": optional_form(positive_form)})
INTEGER_SCALED = table_form({**RUN_FIELDS, "scale": positive_form, "sensitivity": optional_form(SMALL_COUNT)})
STAIRCASE = table_form(
    {
        **RUN_FIELDS,
        "epsilon": NONNEGATIVE,
        "sensitivity": optional_form(positive_form),
        "gamma": optional_form(UNIT_INTERVAL),
    }
)
TRUNCATED = table_form(
    {**RUN_FIELDS, "epsilon": NONNEGATIVE, "delta": UNIT_INTERVAL, "sensitivity": optional_form(positive_form)}
)
STEP = tagged_form("mechanism", {
    "gaussian": SCALED,
    "laplace": SCALED,
    "discrete_gaussian": SCALED,
    "discrete_laplace": INTEGER_SCALED,
    "staircase": STAIRCASE,
    "discrete_staircase": STAIRCASE,
    "truncated_laplace": TRUNCATED,
    "discrete_truncated_laplace": TRUNCATED,
    "randomized_response": table_form({**RUN_FIELDS, "epsilon": NONNEGATIVE, "k": optional_form(integer_form(2))}),
    "approx_dp": table_form({
        **RUN_FIELDS, "epsilon": NONNEGATIVE, "delta": optional_form(UNIT_INTERVAL),
        "total_variation": optional_form(UNIT_INTERVAL),
    }),
    "from_points": table_form({**RUN_FIELDS, "points": list_form(tuple_form(NONNEGATIVE, UNIT_INTERVAL), 1, 1000)}),
    "from_pair": table_form({**RUN_FIELDS, "p": list_form(NONNEGATIVE, 1), "q": list_form(NONNEGATIVE, 1)}),
})  # fmt: skip
ATTACK_FIELDS = {
    "total_variation": UNIT_INTERVAL, "attack_success": UNIT_INTERVAL,
    "attack": list_form(table_form({
        "false_positive_rate": UNIT_INTERVAL, "true_positive_rate": UNIT_INTERVAL,
    }), 0, MAX_POINTS),
    "neighbors": choice_form("unspecified", "add-remove", "replace-one", "zero-out", "local"),
    "method": text_form, "statement": text_form,
}  # fmt: skip
EPSILON_BRACKET = {
    "delta": UNIT_INTERVAL, "epsilon": optional_form(NONNEGATIVE), "lower": optional_form(NONNEGATIVE),
    "upper": optional_form(NONNEGATIVE), "relative_width": optional_form(UNIT_INTERVAL),
}  # fmt: skip
DELTA_BRACKET = {
    "epsilon": number_form(),
    "delta": UNIT_INTERVAL,
    "lower": UNIT_INTERVAL,
    "upper": UNIT_INTERVAL,
    "relative_width": UNIT_INTERVAL,
}
ACCOUNT = table_form({
    "document": choice_form("account"), "version": choice_form(1, 2), **ATTACK_FIELDS,
    "steps": list_form(STEP, 1, MAX_LISTED),
    "epsilon_at_delta": list_form(table_form(EPSILON_BRACKET), 0, MAX_POINTS),
    "delta_at_epsilon": list_form(table_form(DELTA_BRACKET), 0, MAX_POINTS),
})  # fmt: skip
TRAINING = table_form(
    {
        "document": choice_form("training account"), "version": choice_form(1, 2), **ATTACK_FIELDS, **EPSILON_BRACKET,
        "examples": COUNT, "batch": COUNT, "sampling": choice_form("poisson", "subset"),
        "sampling_rate": UNIT_INTERVAL, "noise_multiplier": positive_form, "steps": COUNT,
    },
    {"comparison": any_form, "picture": optional_form(text_form)},
)  # fmt: skip

INDICES, MASSES = list_form(integer_form(), 1), list_form(HEXADECIMAL, 1)
GROUP = table_form({
    "law": MASSES, "loss": number_form(),
    "tables": list_form(table_form({"outcomes": INDICES, "weights": MASSES}), 1), "rows": INDICES,
})  # fmt: skip
AXIS = table_form({"column": text_form, "lower": number_form(), "upper": number_form(), "cells": COUNT})
SUPPORT = tagged_form("kind", {
    "categories": table_form({"column": text_form, "names": list_form(any_form, 1), "metric": text_form}),
    "cells": table_form({"axes": list_form(AXIS, 1, 100), "metric": text_form}),
})  # fmt: skip
LEARNED = table_form({
    "epsilon": positive_form, "person": text_form, "confidence": UNIT_INTERVAL,
    "left": list_form(table_form({
        "epsilon": NONNEGATIVE, "delta": UNIT_INTERVAL, "total_variation": UNIT_INTERVAL,
    }), 1, MAX_POINTS),
})  # fmt: skip
ORIGIN = table_form({
    "kind": choice_form("table", "public", "private"), "secrecy": text_form, "target": text_form,
    "learning": optional_form(LEARNED),
})  # fmt: skip
COMMON_PART = table_form({
    "delta": UNIT_INTERVAL, "weights": list_form(UNIT_INTERVAL, 1),
    "potentials": list_form(list_form(NONNEGATIVE, 1), 1), "lower": NONNEGATIVE, "fixed_target": boolean_form,
})  # fmt: skip
COUPLING = table_form({
    "document": choice_form("coupling"), "version": choice_form(1), "support": SUPPORT,
    "group": table_form({"column": text_form, "names": list_form(any_form, 1)}),
    "objective": choice_form("expected", "worst"), "target": MASSES, "stray": tuple_form(HEXADECIMAL, HEXADECIMAL),
    "groups": list_form(GROUP, 1), "origin": ORIGIN,
}, {"common_part": optional_form(COMMON_PART)})  # fmt: skip
ENTRY = table_form({
    "number": COUNT, "dataset": text_form, "kind": text_form, "key": optional_form(text_form), "time": text_form,
    "body": table_form({}, others=True), "state": table_form({}, others=True), "previous": HASH, "hash": HASH,
})  # fmt: skip
LEDGER = table_form({
    "document": choice_form("ledger"), "version": choice_form(1), "ledger": text_form, "entries": list_form(ENTRY, 1),
    "documents": mapping_form(text_form),
})  # fmt: skip
PRIVACY_FIELDS = {
    "epsilon": NONNEGATIVE,
    "delta": UNIT_INTERVAL,
    "total_variation": UNIT_INTERVAL,
    "attack_success": UNIT_INTERVAL,
}
FINDINGS = table_form({
    "document": choice_form("findings"), "version": choice_form(1, 2), "title": text_form, "question": text_form,
    "bounds": any_form, "reports": COUNT, "answered": integer_form(), "confidence": UNIT_INTERVAL,
    "simultaneous": boolean_form, "estimates": any_form, "effort": any_form,
    "privacy": table_form({
        **PRIVACY_FIELDS, "repeated": list_form(table_form({**PRIVACY_FIELDS, "reports": COUNT})),
    }),
    "mechanism": table_form({
        "name": text_form, "report_bits": COUNT,
        "probabilities": list_form(table_form({"meaning": text_form, "exact": FRACTION, "value": UNIT_INTERVAL})),
    }),
})  # fmt: skip
# Keys that older versions name differently, by kind: the last version that does, and for each path ("*" is every item
# of a list) the new names by the old ones.
BOUND_KEYS = {"rows_per_person": "max_rows", "groups_per_person": "max_groups", "rows_per_group": "max_rows_per_group"}
ACCOUNT_KEYS: dict[tuple[str, ...], dict[str, str]] = {(): {"neighbours": "neighbors", "engine": "method"}}
FORMER_KEYS: dict[str, tuple[int, dict[tuple[str, ...], dict[str, str]]]] = {
    "release certificate": (2, {
        (): {"share": "budget_fraction", "neighbours": "neighbors"},
        ("neighbors",): {"person": "privacy_unit", "means": "noun", **BOUND_KEYS},
        ("mechanisms", "*"): BOUND_KEYS,
        ("computed",): {"engine": "method"},
    }),
    "release result": (1, {(): {"costs": "bias"}, ("answers", "*"): BOUND_KEYS}),
    "account": (1, ACCOUNT_KEYS),
    "training account": (1, ACCOUNT_KEYS),
    "findings": (1, {(): {"between": "bounds"}}),
}  # fmt: skip


def rename_keys(value: Any, path: tuple[str, ...], names: dict[str, str]) -> Any:
    """Return the data with renamed keys in the tables at a path; a key stays if its new name exists already."""
    if not path and isinstance(value, dict):
        return {name if (name := names.get(key, key)) not in value else key: item for key, item in value.items()}
    if path and path[0] == "*" and isinstance(value, list):
        return [rename_keys(item, path[1:], names) for item in value]
    if path and isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: rename_keys(value[path[0]], path[1:], names)}
    return value


def upgrade_keys(data: Any) -> Any:
    """Return the data of a document with the keys of the newest version of its kind."""
    kind = data.get("document") if isinstance(data, dict) else None
    last, former = FORMER_KEYS.get(kind, (0, {})) if isinstance(kind, str) else (0, {})
    for path, names in former.items() if last and data.get("version") in range(1, last + 1) else ():
        data = rename_keys(data, path, names)
    certificate = data.get("certificate") if kind == "release result" else None
    if isinstance(certificate, dict) and certificate.get("document") == "release certificate":
        return {**data, "certificate": upgrade_keys(certificate)}
    return data


FORMS: dict[str, Shape] = {
    "release certificate": RELEASE,
    "noise certificate": NOISE,
    "account": ACCOUNT,
    "coupling": COUPLING,
    "ledger": LEDGER,
    "findings": FINDINGS,
    "training account": TRAINING,
    "release result": RESULT,
}


def parse_document(text: str) -> tuple[str, dict[str, Any], list[str] | None]:
    """Return the kind of a document, its data with the keys of the newest version, and what surrounds it.

    The document may be the certificate inside the output of ``tightrope noise --json``; the last item lists the other
    names of that output, and is None if the text is the document. Raises ``ValueError`` for other input.
    """

    def reject_constant(constant: str) -> None:
        raise ValueError(f"{constant} is not a number")

    def reject_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key occurs twice in one table")
        return dict(pairs)

    try:
        data = json.loads(text, parse_constant=reject_constant, object_pairs_hook=reject_repeated_keys)
    except RecursionError:
        raise ValueError("nested too deeply: not a Tightrope document") from None
    other_names = None
    if isinstance(data, dict) and "document" not in data and isinstance(data.get("certificate"), dict):
        other_names = [name for name in data if name != "certificate"]
        data = data["certificate"]
    data = upgrade_keys(data)
    kind = data["document"] if isinstance(data, dict) and isinstance(data.get("document"), str) else None
    if kind not in FORMS:
        raise ValueError(f"expected a document of one of {', '.join(FORMS)}; got {kind!a}")
    FORMS[kind](kind, data)
    return kind, data, other_names
