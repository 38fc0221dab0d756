"""The base of all documents: immutable parts with fixed keys, numbers with bounds, and one writer.

A document states what it is (``document``) and its ``version``. NaN and infinity are excluded: "no limit"
is None. Integers beyond 2⁵³ and exact decimals are text, so that readers of JSON do not round them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, to_builtins

from tightrope.display import Displayed, Summary
from tightrope.documents.budget import Budget
from tightrope.documents.escaping import json_text
from tightrope.errors import InputError, short_repr

_MAX = sys.float_info.max
Finite = Annotated[float, Meta(ge=-_MAX, le=_MAX)]
Size = Annotated[float, Meta(ge=0, le=_MAX)]
Positive = Annotated[float, Meta(gt=0, le=_MAX)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Natural = Annotated[int, Meta(ge=0)]
Counted = Annotated[int, Meta(ge=1)]
Digits = Annotated[str, Meta(pattern="^[0-9]{1,4300}$")]
"""An integer ≥ 0 as decimal text."""
Hexadecimal = Annotated[str, Meta(pattern="^(0|[1-9a-f][0-9a-f]{0,32})$")]
"""A weight out of 2¹²⁸ as hexadecimal text."""
PackedWeights = Annotated[str, Meta(pattern="^[0-9a-f* ]*$")]
"""Weights out of 2¹²⁸ in hexadecimal, separated by spaces; ``a5*3`` is the weight a5 three times (``pack_weights``)."""
MAX_TABLE_CELLS = 1 << 21
"""Largest number of weights in one table."""
WRITTEN = {"center": "centre", "realized": "realised"}
"""Keys in documents and ledgers, by field, where Python has another name."""


class Part(Displayed, Struct, frozen=True, forbid_unknown_fields=True):
    """A table of keys and values in a document: no key but its own.

    As text, it shows the sizes of its lists and tables, which may hold thousands of integers.
    """

    def __repr__(self) -> str:
        shown = (f"{name}={_short_value(value)}" for name, value in _stated_fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"

    def notebook_summary(self) -> Summary:
        """Return each field; of lists and tables their sizes."""
        return Summary("", [(name, _short_value(value)) for name, value in _stated_fields(self)])


def _stated_fields(part: Struct) -> list[tuple[str, Any]]:
    """Return the names and the values of the fields that are stated."""
    fields = ((name, getattr(part, name)) for name in part.__struct_fields__)
    return [(name, value) for name, value in fields if value is not None and value is not UNSET]


def _short_value(value: object) -> str:
    if isinstance(value, Struct):
        return type(value).__name__
    if isinstance(value, tuple | list | dict):
        return f"<{len(value):,} {'entry' if len(value) == 1 else 'entries'}>"
    return short_repr(value)


class Triple(Part, frozen=True, kw_only=True):
    """(ε, δ)-privacy with total variation η."""

    epsilon: Size
    delta: Probability
    total_variation: Probability


class BudgetPart(Part, frozen=True, kw_only=True):
    """The budget: δ(ε) ≤ δ at every one of the ``points``, and an infinite loss with probability at most ``delta``."""

    delta: Decimal
    points: tuple[tuple[Decimal, Decimal], ...]

    def __post_init__(self) -> None:
        self.to_budget()

    @classmethod
    def from_budget(cls, budget: Budget) -> BudgetPart:
        """Return the budget as data."""
        return cls(delta=budget.delta, points=budget.points)

    def to_budget(self) -> Budget:
        """Return the budget; raises ``InputError`` for an empty budget or a number out of range."""
        return Budget(delta=self.delta, points=self.points)


class ReleasePromise(Part, frozen=True, kw_only=True):
    """The guarantee of a release: the numbers as shown, and the exact ones that they were rounded up from."""

    epsilon: Size
    epsilon_exact: Decimal
    delta: Probability
    delta_exact: Decimal
    total_variation: Probability
    total_variation_exact: Decimal
    attack_success: Probability
    budget: BudgetPart
    budget_fraction: Decimal


def plain_data(part: Struct) -> dict[str, Any]:
    """Return the part as dictionaries, tuples, text and numbers (decimals as text), ``document`` first."""
    data: dict[str, Any] = to_builtins(part)
    return {name: data[name] for name in ("document", "version") if name in data} | data


def to_json_text(document: Struct, *, ascii_only: bool = False) -> str:
    """Return the document as JSON; raises ``ValueError`` for NaN and infinities."""
    return json_text(plain_data(document), ascii_only=ascii_only, indent=2) + "\n"


class TailPart(Part, frozen=True, kw_only=True):
    """The endless end of a table: weights of a block that repeats, and the weights of getting there and on."""

    block: tuple[Digits, ...]
    escape_in: Digits
    escape: Digits


class TablePart(Part, frozen=True, kw_only=True, rename=WRITTEN):
    """P(Y = 0) = center / 2¹²⁸, P(Y = ±x) = half[x−1] / 2¹²⁸; ``steps`` are ideal spacings of losses in nats."""

    center: Digits
    half: tuple[Digits, ...]
    tail: TailPart | None
    steps: tuple[Finite, ...]

    def packed(self) -> PackedTable:
        """Return the table with its weights in hexadecimal, equal neighbors once."""
        tail = None
        if self.tail is not None:
            tail = tuple(map(int, self.tail.block)), int(self.tail.escape_in), int(self.tail.escape)
        return PackedTable.from_weights(int(self.center), tuple(map(int, self.half)), tail, self.steps)


class PackedTail(Part, frozen=True, kw_only=True):
    """A ``TailPart`` in hexadecimal."""

    block: PackedWeights
    escape_in: Hexadecimal
    escape: Hexadecimal

    def __post_init__(self) -> None:
        if not unpack_weights("block", self.block):
            raise InputError("block", "", "at least one weight")


class PackedTable(Part, frozen=True, kw_only=True):
    """A ``TablePart`` in hexadecimal: P(Y = 0) = center / 2¹²⁸, P(Y = ±x) = the x-th weight of ``half`` / 2¹²⁸."""

    center: Hexadecimal
    half: PackedWeights
    tail: PackedTail | None
    steps: tuple[Finite, ...]

    def __post_init__(self) -> None:
        unpack_weights("half", self.half)

    @classmethod
    def from_weights(
        cls,
        center: int,
        half: tuple[int, ...],
        tail: tuple[tuple[int, ...], int, int] | None,
        steps: tuple[float, ...],
    ) -> PackedTable:
        """Return the table with these weights; ``tail`` is its block and the weights of getting there and on."""
        packed_tail = None
        if tail is not None:
            block, escape_in, escape = tail
            packed_tail = PackedTail(block=pack_weights(block), escape_in=f"{escape_in:x}", escape=f"{escape:x}")
        return PackedTable(center=f"{center:x}", half=pack_weights(half), tail=packed_tail, steps=steps)

    def unpacked(self) -> TablePart:
        """Return the table with one decimal text for each weight."""
        tail = None
        if self.tail is not None:
            block = tuple(map(str, unpack_weights("block", self.tail.block)))
            escape_in, escape = (str(int(text, 16)) for text in (self.tail.escape_in, self.tail.escape))
            tail = TailPart(block=block, escape_in=escape_in, escape=escape)
        half = tuple(map(str, unpack_weights("half", self.half)))
        return TablePart(center=str(int(self.center, 16)), half=half, tail=tail, steps=self.steps)


def pack_weights(weights: Iterable[int]) -> str:
    """Return weights as text: hexadecimal, separated by spaces, and ``*n`` after a weight that occurs n times in a row.

    >>> pack_weights([165, 165, 165, 16, 0])
    'a5*3 10 0'
    """
    runs = ((weight, sum(1 for _ in run)) for weight, run in groupby(weights))
    return " ".join(f"{weight:x}" if count == 1 else f"{weight:x}*{count}" for weight, count in runs)


def unpack_weights(name: str, text: str) -> tuple[int, ...]:
    """Return the weights that ``pack_weights`` turned into text.

    Raises ``InputError``, which names the field, for any text that it does not return, and for more than
    ``MAX_TABLE_CELLS`` weights.

    >>> unpack_weights("half", "a5*3 10 0")
    (165, 165, 165, 16, 0)
    """
    weights: list[int] = []
    for run in text.split(" ", MAX_TABLE_CELLS) if text else ():
        match = _RUN_OF_WEIGHTS.fullmatch(run)
        count = int(match[2] or 1) if match else 0
        if match is None or (weights and weights[-1] == int(match[1], 16)):
            raise InputError(name, run[:40], "hexadecimal weights, equal neighbors once with their number")
        if not len(weights) + count <= MAX_TABLE_CELLS:
            raise InputError(name, f"{len(weights) + count} weights", f"at most {MAX_TABLE_CELLS}")
        weights += [int(match[1], 16)] * count
    return tuple(weights)


_RUN_OF_WEIGHTS = re.compile(r"(0|[1-9a-f][0-9a-f]{0,32})(?:\*([2-9]|[1-9][0-9]{1,6}))?")
