"""What every written document shares: frozen parts that know all their keys, numbers with bounds, and one writer.

A document states what it is (``document``) and its ``version``. There is neither NaN nor infinity in one: "no limit"
is None. Whole numbers beyond 2⁵³ and exact decimals are text, which no reader of JSON rounds.
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
"""A whole number ≥ 0 as decimal text."""


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of keys and values in a document: no key but its own."""


class Triple(Part, frozen=True, kw_only=True):
    """(ε, δ)-privacy with total variation η."""

    epsilon: Size
    delta: Probability
    total_variation: Probability


class BudgetPart(Part, frozen=True, kw_only=True):
    """What was promised: δ(ε) ≤ δ at every one of the ``points``, and certain failure at most ``delta``."""

    delta: Decimal
    points: tuple[tuple[Decimal, Decimal], ...]

    def __post_init__(self) -> None:
        self.budget()

    @classmethod
    def of(cls, budget: Budget) -> BudgetPart:
        """The budget as data."""
        return cls(delta=budget.delta, points=budget.points)

    def budget(self) -> Budget:
        """The budget; raises ``InputError`` where it promises nothing or a number is out of range."""
        return Budget(delta=self.delta, points=self.points)


class Promised(Part, frozen=True, kw_only=True):
    """What a release promises: the numbers as shown, and the exact ones that they were rounded up from."""

    epsilon: Size
    epsilon_exact: Decimal
    delta: Probability
    delta_exact: Decimal
    total_variation: Probability
    total_variation_exact: Decimal
    attack_success: Probability
    budget: BudgetPart
    share: Decimal


def plain(part: Struct) -> dict[str, Any]:
    """The part as dictionaries, tuples, text and numbers; decimals are text. What a document is comes first."""
    data: dict[str, Any] = to_builtins(part)
    return {name: data[name] for name in ("document", "version") if name in data} | data


def to_json_text(document: Struct, *, ascii_only: bool = False) -> str:
    """The document as JSON; raises ``ValueError`` for NaN and infinities."""
    return json_text(plain(document), ascii_only=ascii_only, indent=2) + "\n"


# A table of integer noise as it is written: weights out of 2¹²⁸ as decimal text.


class TailPart(Part, frozen=True, kw_only=True):
    """The endless end of a table: weights of a block that repeats, and the weights of getting there and on."""

    block: tuple[Digits, ...]
    escape_in: Digits
    escape: Digits


class TablePart(Part, frozen=True, kw_only=True):
    """P(Y = 0) = centre / 2¹²⁸, P(Y = ±x) = half[x−1] / 2¹²⁸; ``steps`` are ideal spacings of losses in nats."""

    centre: Digits
    half: tuple[Digits, ...]
    tail: TailPart | None
    steps: tuple[Finite, ...]
