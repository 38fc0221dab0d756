"""Integer noise: a table of weights out of 2¹²⁸, and the privacy loss of adding it to values some steps apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

from flint import arb, fmpq

from tightrope.verify.claims import BrokenError, affordable, timed
from tightrope.verify.laws import Atom, Grid, Law

TOTAL = 1 << 128
MIDDLE = 64
"""Cells that show what the losses are multiples of."""
MOST_TOGETHER = 64
"""Numbers that share their noise."""
MOST_CELLS = 1 << 21
"""Cells of a table that are gone through, over all shifts that are tried."""


class Noise:
    """P(Y = 0) = centre, P(Y = ±x) = half[x−1], then ``escape_in`` for an endless tail of blocks; all out of 2¹²⁸."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.centre, self.half, tail = int(data["centre"]), [int(w) for w in data["half"]], data["tail"]
        self.block = [] if tail is None else [int(w) for w in tail["block"]]
        self.escape_in, self.escape = (0, 0) if tail is None else (int(tail["escape_in"]), int(tail["escape"]))
        if self.centre + 2 * sum(self.half) + 2 * self.escape_in != TOTAL:
            raise BrokenError("weights that do not add up to 2^128: the table was altered")
        if tail is not None and not sum(self.block):
            raise BrokenError("a tail that never ends in a number")
        if tail is not None and sum(self.block) + self.escape != TOTAL:
            raise BrokenError("weights of a tail that do not add up to 2^128: the table was altered")
        if min([self.centre, *self.half, *self.block, self.escape_in, self.escape]) < 0:
            raise BrokenError("a weight below 0")
        self.reach = len(self.half)
        self._known: dict[int, tuple[Any, Any] | None] = {}

    @property
    def squared(self) -> float:
        """E Y², nearly: of an endless tail the sum over all turns of (x + t b)² ρ^t."""
        found = 2 * sum(x * x * w for x, w in enumerate(self.half, start=1)) / TOTAL
        again, turn = self.escape / TOTAL, len(self.block)
        for x, weight in enumerate(self.block, start=self.reach + 1):
            turns = x * x / (1 - again) + 2 * x * turn * again / (1 - again) ** 2
            turns += turn * turn * again * (1 + again) / (1 - again) ** 3
            found += 2 * (self.escape_in / TOTAL) * (weight / TOTAL) * turns
        return found

    @property
    def absolute(self) -> float:
        """E |Y|, nearly: of an endless tail the sum over all turns of (x + t b) ρ^t."""
        found = 2 * sum(x * w for x, w in enumerate(self.half, start=1)) / TOTAL
        again, turn = self.escape / TOTAL, len(self.block)
        for x, weight in enumerate(self.block, start=self.reach + 1):
            turns = x / (1 - again) + turn * again / (1 - again) ** 2
            found += 2 * (self.escape_in / TOTAL) * (weight / TOTAL) * turns
        return found

    @property
    def at_zero(self) -> float:
        """P(Y = 0), nearly."""
        return self.centre / TOTAL

    @property
    def unimodal(self) -> bool:
        """Whether no weight is above one nearer to 0: then a larger shift loses more at every ε."""
        head = [self.centre, *self.half, *([self._weight(self.reach + 1)] if self.block else [])]
        blocks = [fmpq(w) for w in self.block] + [fmpq(w) * self.escape / TOTAL for w in self.block[:1]]
        return all(a >= b for part in (head, blocks) for a, b in pairwise(timed(part)))

    def _weight(self, x: int) -> Any:
        """Out of 2¹²⁸, of x ≥ 0; exactly, but for later turns of a tail."""
        if x <= self.reach:
            return fmpq(self.half[x - 1] if x else self.centre)
        if not self.block:
            return fmpq(0)
        turn, place = divmod(x - self.reach - 1, len(self.block))
        first = fmpq(self.escape_in) * fmpq(self.block[place], TOTAL)
        return arb(first) * (arb(self.escape) / TOTAL) ** turn if turn else first

    def at(self, y: int) -> tuple[Any, Any] | None:
        """The probability of y and its logarithm; None where it is 0."""
        x = abs(y)
        if x not in self._known:
            weight = self._weight(x)
            value = arb(weight) / TOTAL
            self._known[x] = (value, value.log()) if weight > 0 else None
        return self._known[x]

    @property
    def fall(self) -> Any:
        """By what probabilities fall in a step of an endless tail, on average; 0 where there is none."""
        return (arb(self.escape) / TOTAL).root(len(self.block)) if self.block else arb(0)

    def lighter(self, fall: Any) -> bool:
        """Whether P(Y > x) ≤ r^{x+1} / (1 + r) at all x ≥ 0, r the ``fall``: no heavier than discrete Laplace."""
        if not self.block or not 0 < fall < 1 or not arb(fmpq(self.escape, TOTAL)) <= fall ** len(self.block):
            return False
        beyond, most = fmpq(sum(self.half) + self.escape_in, TOTAL), fall / (1 + fall)
        for x in timed(range(self.reach + len(self.block))):
            if not arb(beyond) <= most:
                return False
            beyond, most = beyond - fmpq(self._weight(x + 1)) / TOTAL, most * fall
        return True

    def cells(self, shift: int) -> Iterator[tuple[Any, Any, Any]]:
        """What comes out with P, beside Q: (probability, logarithm) or None, and what the probability is divided by.

        The whole line is gone through: endless tails as one turn that stands for all, for their losses repeat.
        """
        low, high, turn = -self.reach, self.reach, len(self.block)
        affordable(2 * self.reach + shift + 2 * turn, MOST_CELLS, "cells of a table under one shift")
        again = 1 - arb(self.escape) / TOTAL
        if turn:
            low, high = low - turn, high + shift + turn
        for y in timed(range(low, high + 1)):
            here = self.at(y)
            if here is not None:
                yield here, self.at(y - shift), again if turn and (y < -self.reach or y > self.reach + shift) else 1

    def pairs(self, shift: int) -> Iterator[Atom]:
        """P(Y = y) beside P(Y = y − shift), where both can be."""
        for here, there, repeats in self.cells(shift):
            if there is not None:
                yield here[0] / repeats, there[0] / repeats, here[1] - there[1]

    def never(self, shift: int) -> Any:
        """The probability of an output that only one of both sides can have; 0 exactly where there is none."""
        alone = (here[0] / repeats for here, there, repeats in self.cells(shift) if there is None)
        return sum(alone, arb(0))

    @property
    def falls(self) -> list[Any]:
        """By how much the logarithm falls from one cell to the next, where it does, near the middle."""
        logs = [cell[1] for x in range(min(self.reach, MIDDLE)) if (cell := self.at(x))]
        return [a - b for a, b in pairwise(logs) if a - b > 2.0**-20]

    def largest(self, shift: int) -> Any:
        """The largest finite loss."""
        return max((loss.upper() for *_, loss in self.pairs(shift)), default=arb(0))

    def delta(self, epsilon: Any, shift: int) -> Any:
        """δ(ε) of one draw: Σ (P(y) − e^ε P(y − s))⁺, the largest over every shift s up to this one."""
        growth = epsilon.exp()
        affordable(
            shift * (2 * self.reach + shift + 2 * len(self.block)), MOST_CELLS, "cells of a table, for all shifts"
        )

        def at(s: int) -> Any:
            return sum((arb(0).max(p - growth * q) for p, q, _ in self.pairs(s)), self.never(s))

        return reduce(arb.max, (at(s) for s in range(1, shift + 1)))

    def law(self, grid: Grid, shift: int) -> Law:
        """The loss of all shifts up to this one: of the largest where the noise is unimodal, else of the worst."""
        if self.unimodal or not grid.up:
            return grid.law(self.pairs(shift), self.never(shift))
        return grid.worst([grid.law(self.pairs(s), self.never(s)) for s in range(1, shift + 1)])


class Box(Noise):
    """Y_1, …, Y_d: |S| = R from the table of S, then each uniform on −R..R, independently given R.

    A shift of all by s. By coordinates: whatever the others are, both densities fall from their middles, so that what
    they share, level by level, shrinks as one moves away from the other: smaller shifts of any of them lose less.
    """

    def __init__(self, data: dict[str, Any], dimension: int) -> None:
        super().__init__(data)
        if self.block or not 1 < dimension <= MOST_TOGETHER:
            raise BrokenError(f"a box of {dimension} numbers, or one without an end")
        self.dimension, left = dimension, arb(0)
        points = []
        for r, weight in timed(reversed(list(enumerate([self.centre, *(2 * w for w in self.half)])))):
            left += arb(fmpq(weight, (2 * r + 1) ** dimension))
            points.append(left / TOTAL)
        self.points = [(p, p.log()) for p in timed(reversed(points)) if p > 0]

    unimodal = True

    @property
    def squared(self) -> float:
        """E Y_i² = E R (R + 1) / 3."""
        return 2 * sum(r * (r + 1) * w for r, w in enumerate(self.half, start=1)) / TOTAL / 3

    @property
    def absolute(self) -> float:
        """E |Y_i| = E R (R + 1) / (2R + 1)."""
        return sum(2 * r * (r + 1) * w / (2 * r + 1) for r, w in enumerate(self.half, start=1)) / TOTAL

    @property
    def at_zero(self) -> float:
        """P(Y_i = 0) = E 1 / (2R + 1)."""
        return (self.centre + sum(2 * w / (2 * r + 1) for r, w in enumerate(self.half, start=1))) / TOTAL

    def cells(self, shift: int) -> Iterator[tuple[Any, Any, Any]]:
        """All points by their largest coordinate a, and b that of the point less the shift: as those of one number."""
        affordable(len(self.points) * (2 * shift + 1), MOST_CELLS, "cells of a box under one shift")
        for a, here in timed(enumerate(self.points)):
            for b in timed(range(max(0, a - shift), a + shift + 1)):
                if many := self._many(a, b, shift):
                    there = self.points[b] if b < len(self.points) else None
                    scaled = None if there is None else (many * there[0], there[1])
                    yield (many * here[0], here[1]), scaled, 1

    def _many(self, a: int, b: int, shift: int) -> int:
        """How many points have these: all within both, less those within less."""
        own, less, fewer, both = (self._within(a - i, b - j, shift) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)))
        return own - less - fewer + both

    def _within(self, a: int, b: int, shift: int) -> int:
        """Points of the box of half-width a that are in that of half-width b around the shift."""
        length = min(a, shift + b) - max(-a, shift - b) + 1
        return length**self.dimension if min(a, b) >= 0 and length > 0 else 0

    @property
    def falls(self) -> list[Any]:
        """By how much the logarithm falls from one half-width to the next, where it does, near the middle."""
        logs = [log for _, log in self.points[:MIDDLE]]
        return [a - b for a, b in pairwise(logs) if a - b > 2.0**-20]
