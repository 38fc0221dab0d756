"""The shapes of our documents, every version that is known."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

# What a part of a document may be: no other key, no other type, no number out of range. What is not so is no
# document.
#
# Whoever reads a document sees every key of it: one that no claim is about would be believed because the others are.

Shape = Callable[[str, Any], None]
"""Takes the name of a place and what stands there; raises ``MalformedError``."""
LARGEST_WHOLE = 1 << 53


class MalformedError(ValueError):
    """Something that no writer of ours writes."""


def expect(holds: bool, name: str, words: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise MalformedError(f"{name}: expected {words}")


def anything(_name: str, _value: Any) -> None:
    """What nothing is computed from."""


def word(name: str, value: Any) -> None:
    """Text."""
    expect(isinstance(value, str), name, "text")


def true_or_false(name: str, value: Any) -> None:
    """A truth value."""
    expect(isinstance(value, bool), name, "true or false")


def number(least: float = -sys.float_info.max, most: float = sys.float_info.max) -> Shape:
    """A number of that range, both ends included."""

    def shape(name: str, value: Any) -> None:
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        expect(plain and least <= value <= most, name, f"a number in [{least:g}, {most:g}]")

    return shape


def positive(name: str, value: Any) -> None:
    """A number above 0."""
    number(0)(name, value)
    expect(value > 0, name, "a number above 0")


def whole(least: int = 0, most: int = LARGEST_WHOLE) -> Shape:
    """A whole number of that range: 1.0 is none."""

    def shape(name: str, value: Any) -> None:
        plain = isinstance(value, int) and not isinstance(value, bool)
        expect(plain and least <= value <= most, name, f"a whole number in [{least}, {most}]")

    return shape


def spelled_as(pattern: str, words: str) -> Shape:
    """Text of this pattern alone."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None, name, words)

    return shape


def one_of(*values: object) -> Shape:
    """One of these, and of the same type."""

    def shape(name: str, value: Any) -> None:
        same = any(type(value) is type(one) and value == one for one in values)
        expect(same, name, f"one of {', '.join(map(repr, values))}")

    return shape


def maybe(part: Shape) -> Shape:
    """That, or nothing."""

    def shape(name: str, value: Any) -> None:
        if value is not None:
            part(name, value)

    return shape


def many(part: Shape, least: int = 0, most: int = 1 << 20) -> Shape:
    """A list of these."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, list) and least <= len(value) <= most, name, f"a list of {least} to {most}")
        for place, one in enumerate(value):
            part(f"{name}[{place}]", one)

    return shape


def row_of(*parts: Shape) -> Shape:
    """A list of exactly these."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, list) and len(value) == len(parts), name, f"a list of {len(parts)}")
        for place, (part, one) in enumerate(zip(parts, value, strict=True)):
            part(f"{name}[{place}]", one)

    return shape


def table(needed: dict[str, Shape], more: dict[str, Shape] | None = None, *, others: bool = False) -> Shape:
    """A table with these keys, and maybe some ``more``; with ``others`` besides only where nothing is read of them."""
    known = {**needed, **(more or {})}

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, dict), name, "a table")
        missing, extra = [key for key in needed if key not in value], [key for key in value if key not in known]
        expect(not missing, name, f"the key {missing[:1]}")
        expect(others or not extra, name, f"no key but its own; it has {extra[:1]!a}")
        for key, own in value.items():
            known.get(key, anything)(f"{name}.{key}", own)

    return shape


def names_to(part: Shape) -> Shape:
    """A table of any keys to these."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, dict), name, "a table")
        for key, own in value.items():
            part(f"{name}.{key!a}", own)

    return shape


def tagged(key: str, forms: dict[str, Shape]) -> Shape:
    """A table whose ``key`` says which of the forms it has."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, dict), name, "a table")
        tag = value.get(key)
        expect(isinstance(tag, str) and tag in forms, f"{name}.{key}", f"one of {', '.join(forms)}")
        forms[tag](name, {own: inner for own, inner in value.items() if own != key})

    return shape


SIZE, SHARE, COUNT = number(0), number(0, 1), whole(1)
POINTS, LISTED, CELLS = 256, 10_000, 1 << 21
"""How long lists are at most: points of a curve, answers and mechanisms, weights of a table. Writers write fewer."""
FEW = whole(1, 1 << 20)
DECIMAL = spelled_as(r"[0-9]{1,400}(\.[0-9]{1,1200})?([eE][+-]?[0-9]{1,3})?", "a number >= 0 as decimal text")
SQUARE = spelled_as(r"[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", "a number >= 0 as decimal text")
DIGITS = spelled_as(r"[0-9]{1,4300}", "a whole number >= 0 as decimal text")
HEXADECIMAL = spelled_as(r"[0-9a-f]{1,8192}", "a whole number >= 0 as hexadecimal text")
FRACTION = spelled_as(r"[0-9]{1,4300}/[0-9]{1,4300}", "a fraction as decimal text")
HASH = spelled_as(r"[0-9a-f]{64}", "a SHA-256")
TABLE = table({
    "centre": DIGITS,
    "half": many(DIGITS, 0, CELLS),
    "tail": maybe(table({"block": many(DIGITS, 1, CELLS), "escape_in": DIGITS, "escape": DIGITS})),
    "steps": many(number(), 0, LISTED),
})  # fmt: skip
CHOICE = table({"below": DIGITS, "cells": FEW, "root": DIGITS, "target": maybe(DIGITS)})
MECHANISM = table(
    {
        "answers": many(word, 1, LISTED), "statistic": word, "column": maybe(word), "by": many(word, 0, LISTED),
        "family": word, "unit": DECIMAL, "sensitivity_per_row": DIGITS, "table_steps_per_row": FEW, "rows": FEW,
        "rows_per_group": COUNT, "groups": COUNT, "factor": DIGITS, "table": TABLE,
    },
    {"where": maybe(word), "exclusive": maybe(word), "together": maybe(COUNT), "choice": maybe(CHOICE),
     "box": maybe(FEW)},
)  # fmt: skip
NEIGHBOURS = table({
    "relation": one_of("add-remove"), "person": maybe(word), "means": word, "rows_per_person": COUNT,
    "rows_per_group": COUNT, "groups_per_person": COUNT, "statement": word,
})  # fmt: skip
CONSISTENT = table({
    "answers": many(word, 2, 100), "shared": one_of("groups", "total"),
    "divided_by": many(many(whole(0, 1 << 20), 0, 100), 2, 100), "variances": many(SQUARE, 2, 100), "statement": word,
})  # fmt: skip
RELEASE = table(
    {
        "document": one_of("release certificate"), "version": one_of(1, 2), "epsilon": SIZE, "epsilon_exact": DECIMAL,
        "delta": SHARE, "delta_exact": DECIMAL, "total_variation": SHARE, "total_variation_exact": DECIMAL,
        "attack_success": SHARE,
        "budget": table({"delta": DECIMAL, "points": many(row_of(DECIMAL, DECIMAL), 0, POINTS)}),
        "share": DECIMAL, "neighbours": NEIGHBOURS, "mechanisms": many(MECHANISM, 1, LISTED),
        "profile": table({"epsilon": many(SIZE, 1, POINTS), "delta": many(SHARE, 1, POINTS)}),
        "tradeoff": table({
            "false_positive_rate": many(SHARE, 0, POINTS), "true_positive_rate": many(SHARE, 0, POINTS)
        }),
        "alternatives": many(table({"family": word, "relative_error": positive}), 0, POINTS),
        "computed": table({"engine": word, "argument": word, "rounding": word}), "versions": names_to(word),
        "ledger": word,
    },
    {"entry": anything, "public_tables": anything, "consistent": many(CONSISTENT, 0, 100)},
)  # fmt: skip
NOISE_USED = table({
    "statistic": word, "family": word, "why": word, "mean_absolute_error": SIZE, "half_width_95": SIZE,
    "worst_error": maybe(SIZE), "unit": word,
})  # fmt: skip
ANSWER = table({
    "name": word, "by": many(word, 0, LISTED), "keys": one_of("none", "given", "discovered"), "rows_per_person": COUNT,
    "rows_per_group": COUNT, "groups_per_person": COUNT, "noise": many(NOISE_USED, 1, LISTED),
    "rows": many(table({}, others=True)),
}, others=True)  # fmt: skip
RESULT = table(
    {"document": one_of("release result"), "version": one_of(1), "title": maybe(word),
     "answers": many(ANSWER, 1, LISTED), "certificate": RELEASE},
    {"costs": anything, "about": anything},
)  # fmt: skip

MULTIPLIER = table({
    "epsilon": SIZE, "delta": SHARE, "shift": FEW, "cap": SIZE, "start": whole(-(1 << 20), 1 << 20), "left": SIZE,
    "values": many(SIZE),
})  # fmt: skip
NUMBERS = table({}, {"multipliers": many(MULTIPLIER, 0, 100), "points": many(row_of(SIZE, SHARE), 1, 100)}, others=True)
NOISE = table(
    {
        "document": one_of("noise certificate"), "version": one_of(1, 2), "lower": SIZE, "upper": SIZE,
        "gap": maybe(SIZE), "guarantee": table({"epsilon": SIZE, "delta": SHARE, "total_variation": SHARE}),
        "realised": many(row_of(SIZE, SHARE, SHARE), 0, POINTS), "cost": word, "sensitivity": positive, "shape": word,
        "releases": COUNT, "mean_absolute_error": SIZE, "mean_squared_error": SIZE, "worst_error": maybe(SIZE),
        "shape_lower": maybe(SIZE), "unimodal_price": maybe(number()),
        "argument": table({"kind": word, "statement": word, "numbers": NUMBERS}),
    },
    {"table": maybe(TABLE)},
)  # fmt: skip

RUN = {
    "count": COUNT, "poisson_rate": maybe(SHARE), "subset": maybe(row_of(COUNT, COUNT)), "erase": maybe(SHARE)
}  # fmt: skip
SCALED = table({**RUN, "scale": positive, "sensitivity": maybe(positive)})
WHOLE_SCALED = table({**RUN, "scale": positive, "sensitivity": maybe(FEW)})
STAIRS = table({**RUN, "epsilon": SIZE, "sensitivity": maybe(positive), "gamma": maybe(SHARE)})
CUT = table({**RUN, "epsilon": SIZE, "delta": SHARE, "sensitivity": maybe(positive)})
STEP = tagged("mechanism", {
    "gaussian": SCALED,
    "laplace": SCALED,
    "discrete_gaussian": SCALED,
    "discrete_laplace": WHOLE_SCALED,
    "staircase": STAIRS,
    "discrete_staircase": STAIRS,
    "truncated_laplace": CUT,
    "discrete_truncated_laplace": CUT,
    "randomized_response": table({**RUN, "epsilon": SIZE, "k": maybe(whole(2))}),
    "approx_dp": table({**RUN, "epsilon": SIZE, "delta": maybe(SHARE), "total_variation": maybe(SHARE)}),
    "from_points": table({**RUN, "points": many(row_of(SIZE, SHARE), 1, 1000)}),
    "from_pair": table({**RUN, "p": many(SIZE, 1), "q": many(SIZE, 1)}),
})  # fmt: skip
GAINED = {
    "total_variation": SHARE, "attack_success": SHARE,
    "attack": many(table({"false_positive_rate": SHARE, "true_positive_rate": SHARE}), 0, POINTS),
    "neighbours": one_of("unspecified", "add-remove", "replace-one", "local"), "engine": word, "statement": word,
}  # fmt: skip
BRACKET = {
    "delta": SHARE, "epsilon": maybe(SIZE), "lower": maybe(SIZE), "upper": maybe(SIZE), "relative_width": maybe(SHARE)
}  # fmt: skip
DELTA_BRACKET = {"epsilon": number(), "delta": SHARE, "lower": SHARE, "upper": SHARE, "relative_width": SHARE}
ACCOUNT = table({
    "document": one_of("account"), "version": one_of(1), **GAINED, "steps": many(STEP, 1, LISTED),
    "epsilon_at_delta": many(table(BRACKET), 0, POINTS), "delta_at_epsilon": many(table(DELTA_BRACKET), 0, POINTS),
})  # fmt: skip
TRAINING = table(
    {
        "document": one_of("training account"), "version": one_of(1), **GAINED, **BRACKET, "examples": COUNT,
        "batch": COUNT, "sampling": one_of("poisson", "subset"), "sampling_rate": SHARE, "noise_multiplier": positive,
        "steps": COUNT,
    },
    {"comparison": anything, "picture": maybe(word)},
)  # fmt: skip

PLACES, MASSES = many(whole(), 1), many(HEXADECIMAL, 1)
GROUP = table({
    "law": MASSES, "loss": number(), "tables": many(table({"outcomes": PLACES, "weights": MASSES}), 1), "rows": PLACES
})  # fmt: skip
AXIS = table({"column": word, "lower": number(), "upper": number(), "cells": COUNT})
SUPPORT = tagged("kind", {
    "categories": table({"column": word, "names": many(anything, 1), "metric": word}),
    "cells": table({"axes": many(AXIS, 1, 100), "metric": word}),
})  # fmt: skip
LEARNED = table({
    "epsilon": positive, "person": word, "confidence": SHARE,
    "left": many(table({"epsilon": SIZE, "delta": SHARE, "total_variation": SHARE}), 1, POINTS),
})  # fmt: skip
ORIGIN = table({
    "kind": one_of("table", "public", "private"), "secrecy": word, "target": word, "learning": maybe(LEARNED)
})  # fmt: skip
COUPLING = table({
    "document": one_of("coupling"), "version": one_of(1), "support": SUPPORT,
    "group": table({"column": word, "names": many(anything, 1)}), "objective": one_of("expected", "worst"),
    "target": MASSES, "stray": row_of(HEXADECIMAL, HEXADECIMAL), "groups": many(GROUP, 1), "origin": ORIGIN,
})  # fmt: skip
ENTRY = table({
    "number": COUNT, "dataset": word, "kind": word, "key": maybe(word), "time": word,
    "body": table({}, others=True), "state": table({}, others=True), "previous": HASH, "hash": HASH,
})  # fmt: skip
LEDGER = table({
    "document": one_of("ledger"), "version": one_of(1), "ledger": word, "entries": many(ENTRY, 1),
    "documents": names_to(word),
})  # fmt: skip
TOLD = {"epsilon": SIZE, "delta": SHARE, "total_variation": SHARE, "attack_success": SHARE}
FINDINGS = table(
    {
        "document": one_of("findings"), "version": one_of(1), "title": word, "question": word, "between": anything,
        "reports": COUNT, "answered": whole(), "confidence": SHARE, "simultaneous": true_or_false,
        "estimates": anything, "effort": anything,
        "privacy": table({**TOLD, "repeated": many(table({**TOLD, "reports": COUNT}))}),
        "mechanism": table({
        "name": word, "report_bits": COUNT,
        "probabilities": many(table({"meaning": word, "exact": FRACTION, "value": SHARE})),
    }),
    }
)  # fmt: skip
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
