"""The base of all documents: immutable parts with fixed keys, numbers with bounds, and one writer.

A document states what it is (``document``) and its ``version``. NaN and infinity are excluded: "no limit"
is None. Integers beyond 2⁵³ and exact decimals are text, so that readers of JSON do not round them.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins

from tightrope.documents.budget import Budget
from tightrope.documents.escaping import json_text

_MAX = sys.float_info.max
Finite = Annotated[float, Meta(ge=-_MAX, le=_MAX)]
Size = Annotated[float, Meta(ge=0, le=_MAX)]
Positive = Annotated[float, Meta(gt=0, le=_MAX)]
Probability = Annotated[float, Meta(ge=0, le=1)]
Natural = Annotated[int, Meta(ge=0)]
Counted = Annotated[int, Meta(ge=1)]
Digits = Annotated[str, Meta(pattern="^[0-9]{1,4300}$")]
"""An integer ≥ 0 as decimal text."""
WRITTEN = {"center": "centre", "realized": "realised"}
"""Keys in documents and ledgers, by field, where Python has another name."""


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of keys and values in a document: no key but its own."""


class Triple(Part, frozen=True, kw_only=True):
    """(ε, δ)-privacy with total variation η."""

    epsilon: Size
    delta: Probability
    total_variation: Probability


class BudgetPart(Part, frozen=True, kw_only=True):
    """The budget: δ(ε) ≤ δ at every one of the ``points``, and certain failure at most ``delta``."""

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
