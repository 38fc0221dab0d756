"""Integer noise: a table of weights out of 2¹²⁸, and the privacy loss of adding it to values some steps apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

from flint import arb, fmpq

from tightrope.verify.claims import BrokenError, require_affordable, with_time_checks
from tightrope.verify.laws import Atom, Grid, GridDistribution

TOTAL_WEIGHT = 1 << 128
MIDDLE_CELLS = 64
"""Cells that show what the losses are multiples of."""
MAX_BOX_DIMENSION = 64
"""Numbers that share their noise."""
MAX_CELLS = 1 << 21
"""Cells of a table that are gone through, over all shifts that are tried."""


class Noise:
    """P(Y = 0) = center, P(Y = ±x) = half[x−1], then ``escape_in`` for an endless tail of blocks; all out of 2¹²⁸."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.center, self.half, tail = int(data["centre"]), [int(w) for w in data["half"]], data["tail"]
        self.block = [] if tail is None else [int(w) for w in tail["block"]]
        self.escape_in, self.escape = (0, 0) if tail is None else (int(tail["escape_in"]), int(tail["escape"]))
        if self.center + 2 * sum(self.half) + 2 * self.escape_in != TOTAL_WEIGHT:
            raise BrokenError("weights that do not add up to 2^128: the table was altered")
        if tail is not None and not sum(self.block):
            raise BrokenError("a tail without a finite sum")
        if tail is not None and sum(self.block) + self.escape != TOTAL_WEIGHT:
            raise BrokenError("weights of a tail that do not add up to 2^128: the table was altered")
        if min([self.center, *self.half, *self.block, self.escape_in, self.escape]) < 0:
            raise BrokenError("a weight below 0")
        self.reach = len(self.half)
        self._known: dict[int, tuple[Any, Any] | None] = {}

    @property
    def mean_squared(self) -> float:
        """E Y², nearly: of an endless tail the sum over all turns of (x + t b)² ρ^t."""
        found = 2 * sum(x * x * w for x, w in enumerate(self.half, start=1)) / TOTAL_WEIGHT
        again, turn = self.escape / TOTAL_WEIGHT, len(self.block)
        for x, weight in enumerate(self.block, start=self.reach + 1):
            turns = x * x / (1 - again) + 2 * x * turn * again / (1 - again) ** 2
            turns += turn * turn * again * (1 + again) / (1 - again) ** 3
            found += 2 * (self.escape_in / TOTAL_WEIGHT) * (weight / TOTAL_WEIGHT) * turns
        return found

    @property
    def mean_absolute(self) -> float:
        """E |Y|, nearly: of an endless tail the sum over all turns of (x + t b) ρ^t."""
        found = 2 * sum(x * w for x, w in enumerate(self.half, start=1)) / TOTAL_WEIGHT
        again, turn = self.escape / TOTAL_WEIGHT, len(self.block)
        for x, weight in enumerate(self.block, start=self.reach + 1):
            turns = x / (1 - again) + turn * again / (1 - again) ** 2
            found += 2 * (self.escape_in / TOTAL_WEIGHT) * (weight / TOTAL_WEIGHT) * turns
        return found

    @property
    def at_zero(self) -> float:
        """P(Y = 0), nearly."""
        return self.center / TOTAL_WEIGHT

    @property
    def is_unimodal(self) -> bool:
        """Return whether weights never increase away from 0: then a larger shift loses more at every ε."""
        head = [self.center, *self.half, *([self._weight_at(self.reach + 1)] if self.block else [])]
        blocks = [fmpq(w) for w in self.block] + [fmpq(w) * self.escape / TOTAL_WEIGHT for w in self.block[:1]]
        return all(a >= b for part in (head, blocks) for a, b in pairwise(with_time_checks(part)))

    def _weight_at(self, x: int) -> Any:
        """Return the weight of x ≥ 0 out of 2¹²⁸; exact except in later turns of a tail."""
        if x <= self.reach:
            return fmpq(self.half[x - 1] if x else self.center)
        if not self.block:
            return fmpq(0)
        turn, place = divmod(x - self.reach - 1, len(self.block))
        first = fmpq(self.escape_in) * fmpq(self.block[place], TOTAL_WEIGHT)
        return arb(first) * (arb(self.escape) / TOTAL_WEIGHT) ** turn if turn else first

    def probability_at(self, y: int) -> tuple[Any, Any] | None:
        """Return the probability of y and its logarithm; None for probability 0."""
        x = abs(y)
        if x not in self._known:
            weight = self._weight_at(x)
            value = arb(weight) / TOTAL_WEIGHT
            self._known[x] = (value, value.log()) if weight > 0 else None
        return self._known[x]

    @property
    def tail_ratio(self) -> Any:
        """Return the mean ratio of consecutive probabilities in an endless tail; 0 without a tail."""
        return (arb(self.escape) / TOTAL_WEIGHT).root(len(self.block)) if self.block else arb(0)

    def is_lighter_than_laplace(self, fall: Any) -> bool:
        """Return whether P(Y > x) ≤ r^{x+1} / (1 + r) for all x ≥ 0, r = ``fall``: no heavier than discrete Laplace."""
        if not self.block or not 0 < fall < 1 or not arb(fmpq(self.escape, TOTAL_WEIGHT)) <= fall ** len(self.block):
            return False
        beyond, most = fmpq(sum(self.half) + self.escape_in, TOTAL_WEIGHT), fall / (1 + fall)
        for x in with_time_checks(range(self.reach + len(self.block))):
            if not arb(beyond) <= most:
                return False
            beyond, most = beyond - fmpq(self._weight_at(x + 1)) / TOTAL_WEIGHT, most * fall
        return True

    def shifted_cells(self, shift: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield each outcome of P with Q's: (probability, logarithm) or None, and the divisor of the probability.

        The whole line is gone through: endless tails as one turn that stands for all, for their losses repeat.
        """
        low, high, turn = -self.reach, self.reach, len(self.block)
        require_affordable(2 * self.reach + shift + 2 * turn, MAX_CELLS, "cells of a table under one shift")
        again = 1 - arb(self.escape) / TOTAL_WEIGHT
        if turn:
            low, high = low - turn, high + shift + turn
        for y in with_time_checks(range(low, high + 1)):
            here = self.probability_at(y)
            if here is not None:
                yield (
                    here,
                    self.probability_at(y - shift),
                    again if turn and (y < -self.reach or y > self.reach + shift) else 1,
                )

    def shifted_pairs(self, shift: int) -> Iterator[Atom]:
        """Yield P(Y = y) with P(Y = y − shift) if both are positive."""
        for here, there, repeats in self.shifted_cells(shift):
            if there is not None:
                yield here[0] / repeats, there[0] / repeats, here[1] - there[1]

    def one_sided_mass(self, shift: int) -> Any:
        """Return the probability of outputs that only one side can have; exactly 0 if the supports agree."""
        alone = (here[0] / repeats for here, there, repeats in self.shifted_cells(shift) if there is None)
        return sum(alone, arb(0))

    @property
    def log_ratios(self) -> list[Any]:
        """Return the decreases of the logarithm from one cell to the next near the middle, if positive."""
        logs = [cell[1] for x in range(min(self.reach, MIDDLE_CELLS)) if (cell := self.probability_at(x))]
        return [a - b for a, b in pairwise(logs) if a - b > 2.0**-20]

    def largest_loss(self, shift: int) -> Any:
        """The largest finite loss."""
        return max((loss.upper() for *_, loss in self.shifted_pairs(shift)), default=arb(0))

    def delta(self, epsilon: Any, shift: int) -> Any:
        """δ(ε) of one draw: Σ (P(y) − e^ε P(y − s))⁺, the largest over every shift s up to this one."""
        growth = epsilon.exp()
        require_affordable(
            shift * (2 * self.reach + shift + 2 * len(self.block)), MAX_CELLS, "cells of a table, for all shifts"
        )

        def delta_for_shift(s: int) -> Any:
            return sum((arb(0).max(p - growth * q) for p, q, _ in self.shifted_pairs(s)), self.one_sided_mass(s))

        return reduce(arb.max, (delta_for_shift(s) for s in range(1, shift + 1)))

    def loss_on_grid(self, grid: Grid, shift: int) -> GridDistribution:
        """Return the loss of all shifts up to this one: of the largest for unimodal noise, else of the worst."""
        if self.is_unimodal or not grid.up:
            return grid.from_atoms(self.shifted_pairs(shift), self.one_sided_mass(shift))
        return grid.pointwise_worst(
            [grid.from_atoms(self.shifted_pairs(s), self.one_sided_mass(s)) for s in range(1, shift + 1)]
        )


class BoxNoise(Noise):
    """Y_1, …, Y_d: |S| = R from the table of S, then each uniform on −R..R, independently given R.

    A shift of all by s. By coordinates: given the others, both densities fall from their middles, so that what
    they share, level by level, shrinks as one moves away from the other: smaller shifts of any of them lose less.
    """

    def __init__(self, data: dict[str, Any], dimension: int) -> None:
        super().__init__(data)
        if self.block or not 1 < dimension <= MAX_BOX_DIMENSION:
            raise BrokenError(f"a box of {dimension} numbers, or one without an end")
        self.dimension, left = dimension, arb(0)
        points = []
        for r, weight in with_time_checks(reversed(list(enumerate([self.center, *(2 * w for w in self.half)])))):
            left += arb(fmpq(weight, (2 * r + 1) ** dimension))
            points.append(left / TOTAL_WEIGHT)
        self.points = [(p, p.log()) for p in with_time_checks(reversed(points)) if p > 0]

    is_unimodal = True

    @property
    def mean_squared(self) -> float:
        """E Y_i² = E R (R + 1) / 3."""
        return 2 * sum(r * (r + 1) * w for r, w in enumerate(self.half, start=1)) / TOTAL_WEIGHT / 3

    @property
    def mean_absolute(self) -> float:
        """E |Y_i| = E R (R + 1) / (2R + 1)."""
        return sum(2 * r * (r + 1) * w / (2 * r + 1) for r, w in enumerate(self.half, start=1)) / TOTAL_WEIGHT

    @property
    def at_zero(self) -> float:
        """P(Y_i = 0) = E 1 / (2R + 1)."""
        return (self.center + sum(2 * w / (2 * r + 1) for r, w in enumerate(self.half, start=1))) / TOTAL_WEIGHT

    def shifted_cells(self, shift: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all points by their largest coordinate a, and b of the shifted point: in the one-dimensional format."""
        require_affordable(len(self.points) * (2 * shift + 1), MAX_CELLS, "cells of a box under one shift")
        for a, here in with_time_checks(enumerate(self.points)):
            for b in with_time_checks(range(max(0, a - shift), a + shift + 1)):
                if many := self._count_points(a, b, shift):
                    there = self.points[b] if b < len(self.points) else None
                    scaled = None if there is None else (many * there[0], there[1])
                    yield (many * here[0], here[1]), scaled, 1

    def _count_points(self, a: int, b: int, shift: int) -> int:
        """Count the points with these half-widths, by inclusion and exclusion."""
        own, less, fewer, both = (
            self._points_in_both_boxes(a - i, b - j, shift) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))
        )
        return own - less - fewer + both

    def _points_in_both_boxes(self, a: int, b: int, shift: int) -> int:
        """Count the points of the box of half-width a that lie in the shifted box of half-width b."""
        length = min(a, shift + b) - max(-a, shift - b) + 1
        return length**self.dimension if min(a, b) >= 0 and length > 0 else 0

    @property
    def log_ratios(self) -> list[Any]:
        """Return the decreases of the logarithm from one half-width to the next near the middle, if positive."""
        logs = [log for _, log in self.points[:MIDDLE_CELLS]]
        return [a - b for a, b in pairwise(logs) if a - b > 2.0**-20]
