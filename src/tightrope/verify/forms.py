"""The shapes of our documents, every version that is known."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

# Forms of the parts of a document: exact keys, types and ranges. Other input is not a
# Tightrope document.
#
# A reader of a document sees every key of it: one without a claim would be believed because the others are.

Shape = Callable[[str, Any], None]
"""Takes the name of a place and what stands there; raises ``MalformedError``."""
LARGEST_WHOLE = 1 << 53


class MalformedError(ValueError):
    """A value that a Tightrope writer never produces."""


def require_form(holds: bool, name: str, words: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise MalformedError(f"{name}: expected {words}")


def any_value(_name: str, _value: Any) -> None:
    """Accept any value; for fields that enter no computation."""


def text_form(name: str, value: Any) -> None:
    """Text."""
    require_form(isinstance(value, str), name, "text")


def true_or_false(name: str, value: Any) -> None:
    """A truth value."""
    require_form(isinstance(value, bool), name, "true or false")


def number_form(least: float = -sys.float_info.max, most: float = sys.float_info.max) -> Shape:
    """A number of that range, both ends included."""

    def check_form(name: str, value: Any) -> None:
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        require_form(plain and least <= value <= most, name, f"a number in [{least:g}, {most:g}]")

    return check_form


def positive_form(name: str, value: Any) -> None:
    """A number above 0."""
    number_form(0)(name, value)
    require_form(value > 0, name, "a number above 0")


def integer_form(least: int = 0, most: int = LARGEST_WHOLE) -> Shape:
    """Return the form of an integer of that range: 1.0 is rejected."""

    def check_form(name: str, value: Any) -> None:
        plain = isinstance(value, int) and not isinstance(value, bool)
        require_form(plain and least <= value <= most, name, f"a whole number in [{least}, {most}]")

    return check_form


def pattern_form(pattern: str, words: str) -> Shape:
    """Text of this pattern alone."""

    def check_form(name: str, value: Any) -> None:
        require_form(isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None, name, words)

    return check_form


def choice_form(*values: object) -> Shape:
    """One of these, and of the same type."""

    def check_form(name: str, value: Any) -> None:
        same = any(type(value) is type(one) and value == one for one in values)
        require_form(same, name, f"one of {', '.join(map(repr, values))}")

    return check_form


def optional_form(part: Shape) -> Shape:
    """That, or nothing."""

    def check_form(name: str, value: Any) -> None:
        if value is not None:
            part(name, value)

    return check_form


def list_form(part: Shape, least: int = 0, most: int = 1 << 20) -> Shape:
    """A list of these."""

    def check_form(name: str, value: Any) -> None:
        require_form(isinstance(value, list) and least <= len(value) <= most, name, f"a list of {least} to {most}")
        for place, one in enumerate(value):
            part(f"{name}[{place}]", one)

    return check_form


def tuple_form(*parts: Shape) -> Shape:
    """A list of exactly these."""

    def check_form(name: str, value: Any) -> None:
        require_form(isinstance(value, list) and len(value) == len(parts), name, f"a list of {len(parts)}")
        for place, (part, one) in enumerate(zip(parts, value, strict=True)):
            part(f"{name}[{place}]", one)

    return check_form


def table_form(needed: dict[str, Shape], more: dict[str, Shape] | None = None, *, others: bool = False) -> Shape:
    """Return the form of a table with these keys and optionally ``more``; ``others`` only for unread keys."""
    known = {**needed, **(more or {})}

    def check_form(name: str, value: Any) -> None:
        require_form(isinstance(value, dict), name, "a table")
        missing, extra = [key for key in needed if key not in value], [key for key in value if key not in known]
        require_form(not missing, name, f"the key {missing[:1]}")
        require_form(others or not extra, name, f"no key but its own; it has {extra[:1]!a}")
        for key, own in value.items():
            known.get(key, any_value)(f"{name}.{key}", own)

    return check_form


def mapping_form(part: Shape) -> Shape:
    """A table of any keys to these."""

    def check_form(name: str, value: Any) -> None:
        require_form(isinstance(value, dict), name, "a table")
        for key, own in value.items():
            part(f"{name}.{key!a}", own)

    return check_form


def tagged_form(key: str, forms: dict[str, Shape]) -> Shape:
    """A table whose ``key`` says which of the forms it has."""

    def check_form(name: str, value: Any) -> None:
        require_form(isinstance(value, dict), name, "a table")
        tag = value.get(key)
        require_form(isinstance(tag, str) and tag in forms, f"{name}.{key}", f"one of {', '.join(forms)}")
        forms[tag](name, {own: inner for own, inner in value.items() if own != key})

    return check_form


SIZE, SHARE, COUNT = number_form(0), number_form(0, 1), integer_form(1)
POINTS, LISTED, CELLS = 256, 10_000, 1 << 21
"""Largest lengths of lists: points of a curve, answers and mechanisms, weights of a table. Writers write fewer."""
FEW = integer_form(1, 1 << 20)
DECIMAL = pattern_form(r"[0-9]{1,400}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?", "a number >= 0 as decimal text")
SQUARE = pattern_form(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", "a number >= 0 as decimal text")
DIGITS = pattern_form(r"[0-9]{1,4300}", "a whole number >= 0 as decimal text")
HEXADECIMAL = pattern_form(r"[0-9a-f]{1,8192}", "a whole number >= 0 as hexadecimal text")
FRACTION = pattern_form(r"[0-9]{1,4300}/[0-9]{1,4300}", "a fraction as decimal text")
HASH = pattern_form(r"[0-9a-f]{64}", "a SHA-256")
TABLE = table_form({
    "centre": DIGITS,
    "half": list_form(DIGITS, 0, CELLS),
    "tail": optional_form(table_form({"block": list_form(DIGITS, 1, CELLS), "escape_in": DIGITS, "escape": DIGITS})),
    "steps": list_form(number_form(), 0, LISTED),
})  # fmt: skip
CHOICE = table_form({"below": DIGITS, "cells": FEW, "root": DIGITS, "target": optional_form(DIGITS)})
MECHANISM = table_form(
    {
        "answers": list_form(text_form, 1, LISTED), "statistic": text_form, "column": optional_form(text_form), "by":
        list_form(text_form, 0, LISTED), "family": text_form, "unit": DECIMAL, "sensitivity_per_row": DIGITS,
        "table_steps_per_row": FEW, "rows": FEW, "max_rows_per_group": COUNT, "groups": COUNT, "factor": DIGITS,
        "table": TABLE,
    },
    {"where": optional_form(text_form), "exclusive": optional_form(text_form), "together": optional_form(COUNT),
    "choice": optional_form(CHOICE),
     "box": optional_form(FEW)},
)  # fmt: skip
NEIGHBORS = table_form({
    "relation": choice_form("add-remove"), "privacy_unit": optional_form(text_form), "noun": text_form, "max_rows":
    COUNT, "max_rows_per_group": COUNT, "max_groups": COUNT, "statement": text_form,
})  # fmt: skip
CONSISTENT = table_form({
    "answers": list_form(text_form, 2, 100), "shared": choice_form("groups", "total"),
    "divided_by": list_form(list_form(integer_form(0, 1 << 20), 0, 100), 2, 100), "variances": list_form(SQUARE, 2,
    100), "statement": text_form,
})  # fmt: skip
RELEASE = table_form(
    {
        "document": choice_form("release certificate"), "version": choice_form(1, 2, 3), "epsilon": SIZE,
        "epsilon_exact": DECIMAL, "delta": SHARE, "delta_exact": DECIMAL, "total_variation": SHARE,
        "total_variation_exact": DECIMAL, "attack_success": SHARE, "budget": table_form({"delta": DECIMAL, "points":
        list_form(tuple_form(DECIMAL, DECIMAL), 0, POINTS)}), "budget_fraction": DECIMAL, "neighbors": NEIGHBORS,
        "mechanisms": list_form(MECHANISM, 1, LISTED), "profile": table_form({"epsilon": list_form(SIZE, 1, POINTS),
        "delta": list_form(SHARE, 1, POINTS)}), "tradeoff": table_form({
            "false_positive_rate": list_form(SHARE, 0, POINTS), "true_positive_rate": list_form(SHARE, 0, POINTS)
        }),
        "alternatives": list_form(table_form({"family": text_form, "relative_error": positive_form}), 0, POINTS),
        "computed": table_form({"method": text_form, "argument": text_form, "rounding": text_form}), "versions":
        mapping_form(text_form), "ledger": text_form,
    },
    {"entry": any_value, "public_tables": any_value, "consistent": list_form(CONSISTENT, 0, 100)},
)  # fmt: skip
NOISE_USED = table_form({
    "statistic": text_form, "family": text_form, "why": text_form, "mean_absolute_error": SIZE, "half_width_95": SIZE,
    "worst_error": optional_form(SIZE), "unit": text_form,
})  # fmt: skip
ANSWER = table_form({
    "name": text_form, "by": list_form(text_form, 0, LISTED), "keys": choice_form("none", "given", "discovered"),
    "max_rows": COUNT, "max_rows_per_group": COUNT, "max_groups": COUNT, "noise": list_form(NOISE_USED, 1, LISTED),
    "rows": list_form(table_form({}, others=True)),
}, others=True)  # fmt: skip
RESULT = table_form(
    {"document": choice_form("release result"), "version": choice_form(1, 2), "title": optional_form(text_form),
     "answers": list_form(ANSWER, 1, LISTED), "certificate": RELEASE},
    {"bias": any_value, "about": any_value},
)  # fmt: skip

MULTIPLIER = table_form({
    "epsilon": SIZE, "delta": SHARE, "shift": FEW, "cap": SIZE, "start": integer_form(-(1 << 20), 1 << 20), "left":
    SIZE, "values": list_form(SIZE),
})  # fmt: skip
NUMBERS = table_form(
    {},
    {"multipliers": list_form(MULTIPLIER, 0, 100), "points": list_form(tuple_form(SIZE, SHARE), 1, 100)},
    others=True,
)
NOISE = table_form(
    {
        "document": choice_form("noise certificate"), "version": choice_form(1, 2), "lower": SIZE, "upper": SIZE,
        "gap": optional_form(SIZE), "guarantee": table_form({"epsilon": SIZE, "delta": SHARE, "total_variation":
        SHARE}), "realised": list_form(tuple_form(SIZE, SHARE, SHARE), 0, POINTS), "cost": text_form, "sensitivity":
        positive_form, "shape": text_form, "releases": COUNT, "mean_absolute_error": SIZE, "mean_squared_error": SIZE,
        "worst_error": optional_form(SIZE), "shape_lower": optional_form(SIZE), "unimodal_price":
        optional_form(number_form()), "argument": table_form({"kind": text_form, "statement": text_form, "numbers":
        NUMBERS}),
    },
    {"table": optional_form(TABLE)},
)  # fmt: skip

RUN = {
    "count": COUNT, "poisson_rate": optional_form(SHARE), "subset": optional_form(tuple_form(COUNT, COUNT)), "erase":
    optional_form(SHARE)
}  # fmt: skip
SCALED = table_form({**RUN, "scale": positive_form, "sensitivity": optional_form(positive_form)})
WHOLE_SCALED = table_form({**RUN, "scale": positive_form, "sensitivity": optional_form(FEW)})
STAIRS = table_form(
    {**RUN, "epsilon": SIZE, "sensitivity": optional_form(positive_form), "gamma": optional_form(SHARE)}
)
CUT = table_form({**RUN, "epsilon": SIZE, "delta": SHARE, "sensitivity": optional_form(positive_form)})
STEP = tagged_form("mechanism", {
    "gaussian": SCALED,
    "laplace": SCALED,
    "discrete_gaussian": SCALED,
    "discrete_laplace": WHOLE_SCALED,
    "staircase": STAIRS,
    "discrete_staircase": STAIRS,
    "truncated_laplace": CUT,
    "discrete_truncated_laplace": CUT,
    "randomized_response": table_form({**RUN, "epsilon": SIZE, "k": optional_form(integer_form(2))}),
    "approx_dp": table_form({**RUN, "epsilon": SIZE, "delta": optional_form(SHARE), "total_variation":
    optional_form(SHARE)}), "from_points": table_form({**RUN, "points": list_form(tuple_form(SIZE, SHARE), 1, 1000)}),
    "from_pair": table_form({**RUN, "p": list_form(SIZE, 1), "q": list_form(SIZE, 1)}),
})  # fmt: skip
GAINED = {
    "total_variation": SHARE, "attack_success": SHARE,
    "attack": list_form(table_form({"false_positive_rate": SHARE, "true_positive_rate": SHARE}), 0, POINTS),
    "neighbors": choice_form("unspecified", "add-remove", "replace-one", "local"), "method": text_form, "statement":
    text_form,
}  # fmt: skip
BRACKET = {
    "delta": SHARE, "epsilon": optional_form(SIZE), "lower": optional_form(SIZE), "upper": optional_form(SIZE),
    "relative_width": optional_form(SHARE)
}  # fmt: skip
DELTA_BRACKET = {"epsilon": number_form(), "delta": SHARE, "lower": SHARE, "upper": SHARE, "relative_width": SHARE}
ACCOUNT = table_form({
    "document": choice_form("account"), "version": choice_form(1, 2), **GAINED, "steps": list_form(STEP, 1, LISTED),
    "epsilon_at_delta": list_form(table_form(BRACKET), 0, POINTS), "delta_at_epsilon":
    list_form(table_form(DELTA_BRACKET), 0, POINTS),
})  # fmt: skip
TRAINING = table_form(
    {
        "document": choice_form("training account"), "version": choice_form(1, 2), **GAINED, **BRACKET, "examples":
        COUNT, "batch": COUNT, "sampling": choice_form("poisson", "subset"), "sampling_rate": SHARE, "noise_multiplier":
        positive_form, "steps": COUNT,
    },
    {"comparison": any_value, "picture": optional_form(text_form)},
)  # fmt: skip

PLACES, MASSES = list_form(integer_form(), 1), list_form(HEXADECIMAL, 1)
GROUP = table_form({
    "law": MASSES, "loss": number_form(), "tables": list_form(table_form({"outcomes": PLACES, "weights": MASSES}), 1),
    "rows": PLACES
})  # fmt: skip
AXIS = table_form({"column": text_form, "lower": number_form(), "upper": number_form(), "cells": COUNT})
SUPPORT = tagged_form("kind", {
    "categories": table_form({"column": text_form, "names": list_form(any_value, 1), "metric": text_form}),
    "cells": table_form({"axes": list_form(AXIS, 1, 100), "metric": text_form}),
})  # fmt: skip
LEARNED = table_form({
    "epsilon": positive_form, "person": text_form, "confidence": SHARE,
    "left": list_form(table_form({"epsilon": SIZE, "delta": SHARE, "total_variation": SHARE}), 1, POINTS),
})  # fmt: skip
ORIGIN = table_form({
    "kind": choice_form("table", "public", "private"), "secrecy": text_form, "target": text_form, "learning":
    optional_form(LEARNED)
})  # fmt: skip
COUPLING = table_form({
    "document": choice_form("coupling"), "version": choice_form(1), "support": SUPPORT,
    "group": table_form({"column": text_form, "names": list_form(any_value, 1)}), "objective": choice_form("expected",
    "worst"), "target": MASSES, "stray": tuple_form(HEXADECIMAL, HEXADECIMAL), "groups": list_form(GROUP, 1), "origin":
    ORIGIN,
})  # fmt: skip
ENTRY = table_form({
    "number": COUNT, "dataset": text_form, "kind": text_form, "key": optional_form(text_form), "time": text_form,
    "body": table_form({}, others=True), "state": table_form({}, others=True), "previous": HASH, "hash": HASH,
})  # fmt: skip
LEDGER = table_form({
    "document": choice_form("ledger"), "version": choice_form(1), "ledger": text_form, "entries": list_form(ENTRY, 1),
    "documents": mapping_form(text_form),
})  # fmt: skip
TOLD = {"epsilon": SIZE, "delta": SHARE, "total_variation": SHARE, "attack_success": SHARE}
FINDINGS = table_form(
    {
        "document": choice_form("findings"), "version": choice_form(1, 2), "title": text_form, "question": text_form,
        "bounds": any_value, "reports": COUNT, "answered": integer_form(), "confidence": SHARE, "simultaneous":
        true_or_false, "estimates": any_value, "effort": any_value, "privacy": table_form({**TOLD, "repeated":
        list_form(table_form({**TOLD, "reports": COUNT}))}), "mechanism": table_form({ "name": text_form, "report_bits":
        COUNT, "probabilities": list_form(table_form({"meaning": text_form, "exact": FRACTION, "value": SHARE})),
    }),
    }
)  # fmt: skip
# The keys that older versions call otherwise: by kind, the last version that does, and for each path ("*": every
# entry of a list) old key -> new key.
BOUNDS = {"rows_per_person": "max_rows", "groups_per_person": "max_groups", "rows_per_group": "max_rows_per_group"}
ACCOUNT_KEYS: dict[tuple[str, ...], dict[str, str]] = {(): {"neighbours": "neighbors", "engine": "method"}}
FORMER_KEYS: dict[str, tuple[int, dict[tuple[str, ...], dict[str, str]]]] = {
    "release certificate": (2, {
        (): {"share": "budget_fraction", "neighbours": "neighbors"},
        ("neighbors",): {"person": "privacy_unit", "means": "noun", **BOUNDS},
        ("mechanisms", "*"): BOUNDS,
        ("computed",): {"engine": "method"},
    }),
    "release result": (1, {(): {"costs": "bias"}, ("answers", "*"): BOUNDS}),
    "account": (1, ACCOUNT_KEYS),
    "training account": (1, ACCOUNT_KEYS),
    "findings": (1, {(): {"between": "bounds"}}),
}  # fmt: skip


def renamed(value: Any, path: tuple[str, ...], names: dict[str, str]) -> Any:
    """The data with other names of the keys of the tables at a path; a name that is taken stays what it is."""
    if not path and isinstance(value, dict):
        return {name if (name := names.get(key, key)) not in value else key: item for key, item in value.items()}
    if path and path[0] == "*" and isinstance(value, list):
        return [renamed(item, path[1:], names) for item in value]
    if path and isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: renamed(value[path[0]], path[1:], names)}
    return value


def upgraded(data: Any) -> Any:
    """The data of a document with the keys of the last version of its kind."""
    kind = data.get("document") if isinstance(data, dict) else None
    last, former = FORMER_KEYS.get(kind, (0, {})) if isinstance(kind, str) else (0, {})
    if not last or data.get("version") not in range(1, last + 1):
        return data
    for path, names in former.items():
        data = renamed(data, path, names)
    return {**data, "certificate": upgraded(data["certificate"])} if "certificate" in data else data


FORMS: dict[str, Shape] = {
    "release certificate": RELEASE,
    "release result": RESULT,
    "noise certificate": NOISE,
    "account": ACCOUNT,
    "training account": TRAINING,
    "coupling": COUPLING,
    "ledger": LEDGER,
    "findings": FINDINGS,
}
