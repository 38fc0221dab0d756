"""The privacy-loss law of (X, X + d) from integer weights: exact masses, losses right to a few units in the last place.

Outcome x has P-weight w(x) and Q-weight w(x − d). Its mirror d − x has these weights exchanged, so x > d/2 says all:
with near = w(x − d) and far = w(x), mass ``near`` at +log(near/far), mass ``far`` at −log(near/far). In the tail both
weights shrink by escape / 2¹²⁸ a period, so all periods share their losses and their masses add up to one geometric
series: the number of atoms is finite and nothing is cut off.

**Rounding.** t = (large − small) / small is a quotient of whole numbers, correctly rounded by Python; log1p(t), t ≥ 0,
passes a relative error of t on with a factor t / ((1 + t) log1p(t)) ≤ 1, and its own is below 6 units of 2⁻⁵³.
So each loss has a relative error below 2⁻⁵⁰. Losses that lie within 2⁻⁵⁰ (relative) of a multiple of an ideal step are
moved there. The slack is the largest move plus 2⁻⁵⁰ times the largest loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.atoms import Atoms
from tightrope.randomness.choice import BITS, TOTAL

if TYPE_CHECKING:
    from tightrope.mechanisms.tables.table import NoiseTable

LOSS_ROUNDING = 2.0**-50
NOTHING = 1e-25
"""A loss below this comes from weights that differ by a unit or so: it is 0, lest it be taken for a lattice."""
LARGEST_SHIFT = 1 << 17
MOST_PERIODS = 64


@dataclass(frozen=True, slots=True)
class Overlap:
    """Whole-number weights (of ``whole``) for the outcomes x > d/2: near = w(x − d), far = w(x); middle = w(d/2)."""

    near: list[int]
    far: list[int]
    middle: int
    whole: int


def loss_atoms(table: NoiseTable, shift: int) -> Atoms:
    """Law of log P/Q under P for P = law of X, Q = law of X + shift; the reverse pair has the same law.

    Raises ``InputError`` where the shift is far beyond the noise: such a release has no privacy to compute.
    """
    overlap = _overlap(table, shift)
    both = [(n, f) for n, f in zip(overlap.near, overlap.far, strict=True) if n and f]
    losses, slack = snapped(log_ratios(both), table.steps)
    losses, slack = np.where(np.abs(losses) < NOTHING, 0.0, losses), slack + NOTHING
    masses: defaultdict[float, int] = defaultdict(int, {0.0: overlap.middle} if overlap.middle else {})
    for loss, (near, far) in zip(losses.tolist(), both, strict=True):
        masses[loss] += near
        masses[-loss] += far
    lonely = sum(overlap.near) + sum(overlap.far) - sum(n + f for n, f in both)
    values = np.array(sorted(masses))
    shares = np.array([masses[loss] / overlap.whole for loss in values.tolist()])
    infinite = lonely / overlap.whole
    return Atoms(values, shares, infinite, infinite, slack, inexact=2.3e-16)


def _overlap(table: NoiseTable, shift: int) -> Overlap:
    weights, whole = _unrolled(table, shift)
    first, last = shift // 2 + 1, len(table.half) + shift
    near = [weights[abs(x - shift)] for x in range(first, len(weights))]
    far = weights[first:]
    middle = weights[shift // 2] if shift % 2 == 0 else 0
    if table.tail is None:
        return Overlap(near, far, middle, whole)
    stay, head = sum(table.tail.block), last - first + 1  # the last period stands for all: times 2^128 / stay
    return Overlap(_closed(near, head, stay), _closed(far, head, stay), middle * stay, whole * stay)


def _closed(weights: list[int], head: int, stay: int) -> list[int]:
    return [w * stay for w in weights[:head]] + [w << BITS for w in weights[head:]]


def _unrolled(table: NoiseTable, shift: int) -> tuple[list[int], int]:
    """Weights of 0..N + shift (+ one period of the tail) on a common scale, and what stands for probability 1."""
    if not shift <= LARGEST_SHIFT:
        raise InputError("sensitivity", shift, f"at most {LARGEST_SHIFT}", "measure in coarser units")
    head = [table.centre, *table.half]
    if table.tail is None:
        return head + [0] * shift, TOTAL
    period = len(table.tail.block)
    periods = -(-shift // period) + 1
    if not periods <= MOST_PERIODS:
        raise InputError(
            "sensitivity", shift, f"at most {(MOST_PERIODS - 1) * period} for this noise", "add more noise"
        )
    lift = BITS * periods
    weights = [w << lift for w in head] + table.tail.weights(periods)
    return weights[: len(head) + shift + period], TOTAL << lift


def log_ratios(pairs: list[tuple[int, int]]) -> Floats:
    """log(near / far) for positive whole numbers."""
    try:
        quotients = [(n - f) / f if n >= f else (n - f) / n for n, f in pairs]
    except OverflowError:  # a ratio above 1e308: no cancellation to fear
        return np.array([math.log(n) - math.log(f) for n, f in pairs])
    ratios = np.array(quotients, dtype=np.float64)
    return np.asarray(np.copysign(np.log1p(np.abs(ratios)), ratios))


def snapped(losses: Floats, steps: tuple[float, ...]) -> tuple[Floats, float]:
    """Losses moved to ideal multiples, and a bound on the error of each."""
    if not len(losses):
        return losses, 0.0
    out = losses.copy()
    for step in steps:
        ideal = np.rint(losses / step) * step
        close = np.abs(ideal - losses) <= LOSS_ROUNDING * np.abs(losses)
        out[close] = ideal[close]
    moved = float(np.max(np.abs(out - losses)))
    return out, moved + LOSS_ROUNDING * float(np.max(np.abs(losses)))
