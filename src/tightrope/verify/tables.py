"""Integer noise from a table of weights out of 2¹²⁸, and its privacy loss under a shift of some steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

from flint import arb, fmpq

from tightrope.verify.claims import BrokenError, require_affordable, with_time_checks
from tightrope.verify.loss_grid import Atom, Grid, GridDistribution

TOTAL_WEIGHT = 1 << 128
MIDDLE_CELLS = 64
"""Number of cells near 0 from which the spacing of the losses is estimated."""
MAX_BOX_DIMENSION = 64
"""Maximum number of values with joint noise."""
MAX_CELLS = 1 << 21
"""Limit on the cells of a table, over all shifts."""
RUN_OF_WEIGHTS = re.compile(r"(0|[1-9a-f][0-9a-f]{0,32})(?:\*([2-9]|[1-9][0-9]{1,6}))?")
"""A weight in hexadecimal, and how often it occurs in a row."""


def unpack_weights(text: str) -> list[int]:
    """Return the weights of a text such as "a5*3 10": a5, a5, a5 and 10 in hexadecimal.

    Raises ``BrokenError`` for another text, and ``WorkLimitError`` for more than ``MAX_CELLS`` weights.
    """
    weights: list[int] = []
    runs = text.split(" ", MAX_CELLS) if text else []
    require_affordable(len(runs), MAX_CELLS, "weights of a table")
    for run in with_time_checks(runs):
        match = RUN_OF_WEIGHTS.fullmatch(run)
        if match is None or (weights and weights[-1] == int(match[1], 16)):
            raise BrokenError("weights that are not hexadecimal numbers, equal neighbors once with their number")
        count = int(match[2] or 1)
        require_affordable(len(weights) + count, MAX_CELLS, "weights of a table")
        weights += [int(match[1], 16)] * count
    return weights


def with_own_tables(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return a release certificate whose mechanisms have their tables of integers instead of the ids of tables."""
    listed = certificate.get("tables", [])
    forms = {type(mechanism["table"]) for mechanism in certificate["mechanisms"]}
    if forms != {int if listed else dict} or (certificate["version"] > 3 and not listed):
        raise BrokenError("mechanisms without a table of the certificate")
    if [table["id"] for table in listed] != [*range(1, len(listed) + 1)]:
        raise BrokenError("tables whose ids are not 1, 2, ... in order")
    if not listed:
        return certificate
    tables: list[dict[str, Any]] = []
    cells = 0
    for table in listed:
        tail, half = table["tail"], unpack_weights(table["half"])
        if tail is not None:
            weights = {name: int(tail[name], 16) for name in ("escape_in", "escape")}
            tail = {"block": unpack_weights(tail["block"]), **weights}
        tables.append({"centre": int(table["center"], 16), "half": half, "tail": tail, "steps": table["steps"]})
        cells += len(half) + (len(tail["block"]) if tail else 0)
        require_affordable(cells, MAX_CELLS, "weights of all tables")
    if {mechanism["table"] for mechanism in certificate["mechanisms"]} != {*range(1, len(tables) + 1)}:
        raise BrokenError("mechanisms without a table, or a table without mechanisms")
    mechanisms = [{**mechanism, "table": tables[mechanism["table"] - 1]} for mechanism in certificate["mechanisms"]]
    return {**certificate, "mechanisms": mechanisms}


class Noise:
    """Noise Y with P(Y = 0) = center and P(Y = ±x) = half[x−1], and possibly an endless tail; all out of 2¹²⁸.

    The tail on each side has probability ``escape_in``. It repeats ``block``: after each one, it continues with
    probability ``escape``.
    """

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
        self._probabilities: dict[int, tuple[Any, Any] | None] = {}

    @property
    def mean_squared(self) -> float:
        """E Y², in floats; an endless tail contributes Σ (x + t b)² ρ^t over its repetitions t."""
        found = 2 * sum(x * x * w for x, w in enumerate(self.half, start=1)) / TOTAL_WEIGHT
        again, turn = self.escape / TOTAL_WEIGHT, len(self.block)
        for x, weight in enumerate(self.block, start=self.reach + 1):
            turns = x * x / (1 - again) + 2 * x * turn * again / (1 - again) ** 2
            turns += turn * turn * again * (1 + again) / (1 - again) ** 3
            found += 2 * (self.escape_in / TOTAL_WEIGHT) * (weight / TOTAL_WEIGHT) * turns
        return found

    @property
    def mean_absolute(self) -> float:
        """E |Y|, in floats; an endless tail contributes Σ (x + t b) ρ^t over its repetitions t."""
        found = 2 * sum(x * w for x, w in enumerate(self.half, start=1)) / TOTAL_WEIGHT
        again, turn = self.escape / TOTAL_WEIGHT, len(self.block)
        for x, weight in enumerate(self.block, start=self.reach + 1):
            turns = x / (1 - again) + turn * again / (1 - again) ** 2
            found += 2 * (self.escape_in / TOTAL_WEIGHT) * (weight / TOTAL_WEIGHT) * turns
        return found

    @property
    def probability_at_zero(self) -> float:
        """P(Y = 0), in floats."""
        return self.center / TOTAL_WEIGHT

    @property
    def is_unimodal(self) -> bool:
        """Whether weights never increase away from 0: then δ(ε) increases with the shift, at every ε."""
        head = [self.center, *self.half, *([self._weight_at(self.reach + 1)] if self.block else [])]
        blocks = [fmpq(w) for w in self.block] + [fmpq(w) * self.escape / TOTAL_WEIGHT for w in self.block[:1]]
        return all(a >= b for part in (head, blocks) for a, b in pairwise(with_time_checks(part)))

    def _weight_at(self, x: int) -> Any:
        """Return the weight of x ≥ 0 out of 2¹²⁸; exact except in later repetitions of a tail."""
        if x <= self.reach:
            return fmpq(self.half[x - 1] if x else self.center)
        if not self.block:
            return fmpq(0)
        turn, position = divmod(x - self.reach - 1, len(self.block))
        first = fmpq(self.escape_in) * fmpq(self.block[position], TOTAL_WEIGHT)
        return arb(first) * (arb(self.escape) / TOTAL_WEIGHT) ** turn if turn else first

    def probability_at(self, y: int) -> tuple[Any, Any] | None:
        """Return the probability of y and its logarithm; None for probability 0."""
        x = abs(y)
        if x not in self._probabilities:
            weight = self._weight_at(x)
            value = arb(weight) / TOTAL_WEIGHT
            self._probabilities[x] = (value, value.log()) if weight > 0 else None
        return self._probabilities[x]

    @property
    def tail_ratio(self) -> Any:
        """Return the mean ratio of consecutive probabilities in an endless tail; 0 without a tail."""
        return (arb(self.escape) / TOTAL_WEIGHT).root(len(self.block)) if self.block else arb(0)

    def is_lighter_than_laplace(self, ratio: Any) -> bool:
        """Return whether P(Y > x) ≤ r^{x+1} / (1 + r) for all x ≥ 0, r = ``ratio``: lighter than discrete Laplace."""
        if not self.block or not 0 < ratio < 1 or not arb(fmpq(self.escape, TOTAL_WEIGHT)) <= ratio ** len(self.block):
            return False
        beyond, bound = fmpq(sum(self.half) + self.escape_in, TOTAL_WEIGHT), ratio / (1 + ratio)
        for x in with_time_checks(range(self.reach + len(self.block))):
            if not arb(beyond) <= bound:
                return False
            beyond, bound = beyond - fmpq(self._weight_at(x + 1)) / TOTAL_WEIGHT, bound * ratio
        return True

    def shifted_cells(self, shift: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield, for each outcome, its cell under P and under Q, and a divisor for both probabilities.

        A cell is (probability, logarithm), None for Q's probability 0. One repetition of an endless tail stands for
        all, because its losses repeat: its probabilities are divided by the probability that the tail ends.
        """
        low, high, block_length = -self.reach, self.reach, len(self.block)
        require_affordable(2 * self.reach + shift + 2 * block_length, MAX_CELLS, "cells of a table under one shift")
        end_probability = 1 - arb(self.escape) / TOTAL_WEIGHT
        if block_length:
            low, high = low - block_length, high + shift + block_length
        for y in with_time_checks(range(low, high + 1)):
            cell = self.probability_at(y)
            if cell is not None:
                yield (
                    cell,
                    self.probability_at(y - shift),
                    end_probability if block_length and (y < -self.reach or y > self.reach + shift) else 1,
                )

    def shifted_pairs(self, shift: int) -> Iterator[Atom]:
        """Yield (P(Y = y), P(Y = y − shift), loss) for all y at which both are positive."""
        for cell, shifted_cell, divisor in self.shifted_cells(shift):
            if shifted_cell is not None:
                yield cell[0] / divisor, shifted_cell[0] / divisor, cell[1] - shifted_cell[1]

    def one_sided_mass(self, shift: int) -> Any:
        """Return the probability of outputs of probability 0 under the shift; exactly 0 if the supports agree."""
        masses = (
            cell[0] / divisor for cell, shifted_cell, divisor in self.shifted_cells(shift) if shifted_cell is None
        )
        return sum(masses, arb(0))

    @property
    def log_ratios(self) -> list[Any]:
        """The decreases of the logarithm from one cell to the next near 0, if positive."""
        logs = [cell[1] for x in range(min(self.reach, MIDDLE_CELLS)) if (cell := self.probability_at(x))]
        return [a - b for a, b in pairwise(logs) if a - b > 2.0**-20]

    def largest_loss(self, shift: int) -> Any:
        """Return the largest finite loss under a shift."""
        return max((loss.upper() for *_, loss in self.shifted_pairs(shift)), default=arb(0))

    def delta(self, epsilon: Any, shift: int) -> Any:
        """Return δ(ε) of one draw: the maximum of Σ (P(y) − e^ε P(y − s))⁺ over all shifts s up to this one."""
        growth = epsilon.exp()
        require_affordable(
            shift * (2 * self.reach + shift + 2 * len(self.block)), MAX_CELLS, "cells of a table, for all shifts"
        )

        def delta_for_shift(s: int) -> Any:
            return sum((arb(0).max(p - growth * q) for p, q, _ in self.shifted_pairs(s)), self.one_sided_mass(s))

        return reduce(arb.max, (delta_for_shift(s) for s in range(1, shift + 1)))

    def loss_on_grid(self, grid: Grid, shift: int) -> GridDistribution:
        """Return an upper bound on the loss over all shifts up to this one: the largest shift for unimodal noise."""
        if self.is_unimodal or not grid.up:
            return grid.from_atoms(self.shifted_pairs(shift), self.one_sided_mass(shift))
        return grid.pointwise_worst(
            [grid.from_atoms(self.shifted_pairs(s), self.one_sided_mass(s)) for s in range(1, shift + 1)]
        )


class BoxNoise(Noise):
    """Joint noise Y_1, …, Y_d: R = |S| from the table of S, then each Y_i uniform on −R..R, independently given R.

    The loss is that of a shift of all coordinates by s, which is the worst: in each coordinate, given the others, both
    densities decrease from their centers, so that their overlap shrinks as the shift grows.
    """

    def __init__(self, data: dict[str, Any], dimension: int) -> None:
        super().__init__(data)
        if not 1 < dimension <= MAX_BOX_DIMENSION:
            raise BrokenError(f"a box of {dimension} numbers")
        self.dimension, self.weights, rest = dimension, [self.center, *(2 * w for w in self.half)], 2 * self.escape_in
        while rest and self.block:  # P(R = r) out of 2^128, in the tail rounded down
            self.weights += [rest * w // TOTAL_WEIGHT for w in self.block]
            rest = rest * self.escape // TOTAL_WEIGHT
            require_affordable(len(self.weights), MAX_CELLS, "cells of a box")
        self._points: dict[int, tuple[list[Any], int, Any]] = {}

    is_unimodal = True

    def _listed_points(self, shift: int) -> tuple[list[Any], int, Any]:
        """Return the probability of a point and its logarithm by largest coordinate, and how many are counted.

        An endless table is counted to where P(R is larger) < 2^-90, the last value, and listed beyond the shift.
        """
        key = shift if self.block else 0
        if key not in self._points:
            weights: list[Any] = [self.center, *(2 * w for w in self.half)]
            rest, far, count, end = arb(2 * self.escape_in), arb(0), len(weights), len(weights)
            if self.block:
                while rest > arb(2) ** 38:
                    weights, rest = self._append_block(weights, rest)
                count, far = len(weights), rest / TOTAL_WEIGHT
                last = rest * arb(2) ** -80
                while len(weights) < count + shift or rest > last:
                    last = rest * arb(2) ** -80 if len(weights) < count + shift else last
                    weights, rest = self._append_block(weights, rest)
                end = len(weights)
            left, points = (rest / 2 / (2 * end + 1) ** self.dimension).union(arb(0)), []
            for r, weight in with_time_checks(reversed(list(enumerate(weights)))):
                left += arb(weight) / (2 * r + 1) ** self.dimension
                points.append(left / TOTAL_WEIGHT)
            self._points[key] = [(p, p.log()) for p in with_time_checks(reversed(points)) if p > 0], count, far
        return self._points[key]

    def _append_block(self, weights: list[Any], rest: Any) -> tuple[list[Any], Any]:
        require_affordable(len(weights), MAX_CELLS, "cells of a box")
        return weights + [rest * w / TOTAL_WEIGHT for w in self.block], rest * self.escape / TOTAL_WEIGHT

    @property
    def mean_squared(self) -> float:
        """E Y_i² = E R (R + 1) / 3."""
        return sum(r * (r + 1) * w for r, w in enumerate(self.weights)) / TOTAL_WEIGHT / 3

    @property
    def mean_absolute(self) -> float:
        """E |Y_i| = E R (R + 1) / (2R + 1)."""
        return sum(r * (r + 1) * w / (2 * r + 1) for r, w in enumerate(self.weights)) / TOTAL_WEIGHT

    @property
    def probability_at_zero(self) -> float:
        """P(Y_i = 0) = E 1 / (2R + 1)."""
        return sum(w / (2 * r + 1) for r, w in enumerate(self.weights)) / TOTAL_WEIGHT

    def shifted_cells(self, shift: int) -> Iterator[tuple[Any, Any, Any]]:
        """Yield all points, grouped by their largest coordinate a and that of the shifted point, b, as cells.

        Of an endless table: those with a and b among the counted ones.
        """
        points, counted, _ = self._listed_points(shift)
        count = counted if self.block else len(points)
        require_affordable(count * (2 * shift + 1), MAX_CELLS, "cells of a box under one shift")
        for a, cell in with_time_checks(enumerate(points[:count])):
            for b in with_time_checks(range(max(0, a - shift), a + shift + 1)):
                if (b < count or not self.block) and (number := self._count_points(a, b, shift)):
                    shifted_cell = points[b] if b < count else None
                    scaled_shifted = None if shifted_cell is None else (number * shifted_cell[0], shifted_cell[1])
                    yield (number * cell[0], cell[1]), scaled_shifted, 1

    def shifted_pairs(self, shift: int) -> Iterator[Atom]:
        """Yield the pairs of cells; of an endless table also an upper bound on all others.

        Those have equal probability under both distributions, so their two largest losses dominate. From half-width r
        on, the probability of a point falls by at most the ratio of P(R = r) to P(R = r + 1), times ((2r + 3) /
        (2r + 1))^d.
        """
        yield from super().shifted_pairs(shift)
        if not self.block:
            return
        points, count, mass = self._listed_points(shift)
        ratios = [arb(b) / a for a, b in pairwise(self.block)]
        ratios.append(arb(self.block[0]) * self.escape / self.block[-1] / TOTAL_WEIGHT)
        least = reduce(arb.min, ratios) * (arb(2 * count + 1) / (2 * count + 3)) ** self.dimension
        steps = (points[a][1] - points[a + shift][1] for a in range(count))
        growth = reduce(arb.max, steps, -least.log() * shift).exp()
        for a in range(max(0, count - shift), count):
            outer = (self._count_points(a, b, shift) for b in range(count, a + shift + 1))
            mass += sum(outer) * points[a][0]
        high, low = mass * growth / (1 + growth), mass / (1 + growth)
        yield high, low, growth.log()
        yield low, high, -growth.log()

    def loss_on_grid(self, grid: Grid, shift: int) -> GridDistribution:
        """Return an upper bound on the loss, or a lower one, without the points that are not counted."""
        pairs = self.shifted_pairs(shift) if grid.up else super().shifted_pairs(shift)
        return grid.from_atoms(pairs, self.one_sided_mass(shift))

    def _count_points(self, a: int, b: int, shift: int) -> int:
        """Count the points with largest coordinates a and, shifted, b, by inclusion and exclusion."""
        all_points, smaller_a, smaller_b, both_smaller = (
            self._points_in_both_boxes(a - i, b - j, shift) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))
        )
        return all_points - smaller_a - smaller_b + both_smaller

    def _points_in_both_boxes(self, a: int, b: int, shift: int) -> int:
        """Count the points of the box of half-width a that lie in the shifted box of half-width b."""
        length = min(a, shift + b) - max(-a, shift - b) + 1
        return length**self.dimension if min(a, b) >= 0 and length > 0 else 0

    @property
    def log_ratios(self) -> list[Any]:
        """The decreases of the logarithm from one half-width to the next near 0, if positive."""
        logs = [log for _, log in self._listed_points(0)[0][:MIDDLE_CELLS]]
        return [a - b for a, b in pairwise(logs) if a - b > 2.0**-20]
