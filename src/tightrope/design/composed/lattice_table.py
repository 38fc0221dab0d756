"""Integer tables whose privacy losses lie on a lattice by construction: P(X = x) ∝ e^{−h·n(x)} with whole heights n.

All losses are whole multiples of h, so any number of releases is certified by the exact lattice engine in one
transform. A law is brought here by rounding its logarithms to multiples of h – losses then move by less than h, at
random, which adds h²/6 a release to the variance of the loss – and h itself is the size that is tuned afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tightrope.design.composed.candidates import Candidate
from tightrope.design.composed.composed_curve import Indices, Released
from tightrope.design.composed.composed_question import Question
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.tables.integer_weights import DIGITS, ONE, exponential
from tightrope.mechanisms.tables.table import NoiseTable, tabulate
from tightrope.numerics.arrays import Floats

HEIGHT_VARIANCE = 1e-6
"""Share of the variance of the loss that rounding the logarithms of weights may add."""
MOST_LOSS_POINTS = 1 << 15
"""Lattice points for the standard deviation of the total loss at most: exact lattices that are finer are coarsened."""
TINY_DELTA = 1e-16
"""For a δ below this weights off the lattice by rounding, up to 10⁻²³, matter: the accountant's grid is nearer then."""
TABLE_WITHIN = 1e-13
BITS = 30
"""Binary digits of h: multiples up to 2²³ of it are exact, and so are the differences from which it is found."""
FIRST_MARGIN, LAST_MARGIN = 1e-11, 0.1
"""h is made smaller by the first, relatively, then by what the certificate lacks, until it is certified."""
LESS = 0.1
"""Log δ falls about 1/0.1 times as fast as log h, or faster; where it does not, the margin doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeLaw:
    """Weights e^{−step·heights[x]} of 0, ±1, …; heights ≥ 0."""

    heights: Indices
    step: float

    @classmethod
    def of_candidate(cls, question: Question, found: Candidate) -> Self:
        """The candidate's own lattice where it has one that is not too fine; else rounded."""
        own = 1 / found.size
        if found.heights is not None and question.mu < own * MOST_LOSS_POINTS:
            return cls(found.heights, own)
        return cls.rounded(found.half, question.step(HEIGHT_VARIANCE))

    @classmethod
    def rounded(cls, half: Floats, step: float) -> Self:
        """Logarithms of the weights rounded to multiples of the step; weights of 0 end the law.

        The centre, which takes the remainder of all rounding, is a step above every other cell: equal to one but for
        the remainder it would have a loss of 2⁻¹²⁸ there, on no lattice.
        """
        held = half[: int(np.flatnonzero(half > 0)[-1]) + 1]
        logs = np.log(held, where=held > 0, out=np.full(len(held), -math.inf))
        heights = np.rint((np.max(logs) - np.maximum(logs, -700.0)) / step).astype(np.int64)
        if len(heights) > 1 and heights[0] == heights[1]:
            heights[1:] += 1
        return cls(heights, step)

    def tuned(self, question: Question) -> Self:
        """The largest step that keeps the points, in floats."""
        size = question.least_size(
            lambda size: Released.of_heights(self.heights, question.shift, 1 / size), 1 / self.step, TABLE_WITHIN, 1e-4
        )
        return type(self)(self.heights, 1 / size)

    def certified(self, question: Question) -> NoiseTable:
        """The integer table, its step smaller by the first margin for which the exact accountant proves the points.

        Raises ``BudgetRefused`` where it proves them for none.
        """
        for short in (True,) if question.least_delta > TINY_DELTA else (False, True):
            table = self._shrunk(question, short)
            if table is not None:
                return table
        raise BudgetRefused(f"no integer table near this law keeps {list(question.points)}; raise delta")

    def _shrunk(self, question: Question, short: bool) -> NoiseTable | None:
        """The first table that is certified, its step in few digits or as it is."""
        margin = FIRST_MARGIN
        while margin < LAST_MARGIN:
            step = self.step * (1 - margin)
            table = type(self)(self.heights, _short(step) if short else step).table()
            lacking = beyond(table, question)
            if lacking <= 0:
                return table
            margin = max(2 * margin, margin + LESS * lacking)
        return None

    def table(self) -> NoiseTable:
        """The integer table nearest below: powers of e^{−step} in fixed point."""
        ratio = exponential(Fraction(self.step))
        powers: dict[int, int] = {}
        raw, height, weights = ONE, 0, []
        for up in np.diff(self.heights, prepend=0).tolist():
            height += up
            if up >= 0:
                powers.setdefault(up, _power(ratio, up))
                raw = raw * powers[up] >> DIGITS
            else:
                raw = _power(ratio, height)
            weights.append(raw)
        return tabulate(weights, steps=(self.step,))


def keeps(table: NoiseTable, question: Question) -> bool:
    """Whether the exact accountant proves every point for the integer weights, rounding included."""
    return beyond(table, question) <= 0


def beyond(table: NoiseTable, question: Question) -> float:
    """The largest δ(ε_i)/δ_i − 1 that the exact accountant proves; positive for a law without a proof."""
    if not (question.shift == 1 or table.is_unimodal):
        return math.inf
    total = question.releases * table.loss(question.shift)
    return max(_beyond(total.delta(epsilon), delta) for epsilon, delta in question.points)


def _beyond(found: float, allowed: float) -> float:
    """With the sign of found − allowed, whatever the rounding."""
    if found <= allowed:
        return min(0.0, found - allowed)
    return found / allowed - 1 + 1e-16 if allowed > 0 else math.inf


def _short(step: float) -> float:
    """The step rounded down to ``BITS``: its whole multiples are exact floats, and the accountant finds it in them."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(math.ldexp(mantissa, BITS)), exponent - BITS)


def _power(ratio: int, exponent: int) -> int:
    """ratio^exponent in fixed point, by squaring."""
    result = ONE
    for bit in f"{exponent:b}":
        result = result * result >> DIGITS
        if bit == "1":
            result = result * ratio >> DIGITS
    return result
