"""A table of integer noise as it is written: weights out of 2¹²⁸ as decimal text."""

from __future__ import annotations

from tightrope.certificates.document import Digits, Finite, Part


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
