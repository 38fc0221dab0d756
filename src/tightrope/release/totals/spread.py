"""How far a weighted sum of independent noises lies from zero: intervals from the exact laws, not from a normal one.

Z = Σ w_j X_j. Each w_j X_j is rounded to a grid of width h; the rounded ones are added up exactly, by one Fourier
transform. What rounding leaves is a sum of n independent numbers within ± h/2 whose means are zero, because the laws
are symmetric: it exceeds s at most 2 exp(−2 s² / (n h²)) of the time (Hoeffding). So do all other liberties enter, each
as a probability that is taken from the 5 %: noise beyond the list, sums that the transform wraps around (bounded by
their log moments), floats. ``docs/proofs/intervals.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tightrope.mechanisms.integer.widened import Widened
from tightrope.numerics.arrays import Floats
from tightrope.release.questions.widths.intervals import OUTSIDE
from tightrope.release.questions.widths.tails import Tails

GRID_POINTS = 400
"""Points of the grid in a standard deviation at least, over the root of the number of noises."""
LISTED_DEVIATIONS = 10
"""Standard deviations that are listed on either side."""
BEYOND_ROUNDING = 1e-4
"""How often rounding to the grid may come to more than is allowed for."""
FLOATS, TRANSFORM = 1e-10, 2e-14
"""Relative errors of tail probabilities; of a transform, in the 2-norm."""
MOMENT_SLOPES = (0.5, 1.0, 1.25, 1.75, 2.5, 4.0)
"""Of log moments, over the standard deviation."""
MOST_LOST = 1e-2
"""Where more than this is not accounted for, nothing is said."""

Noisy = tuple[Widened, Fraction, int]
"""A noise, its weight, and how many there are of it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """``half``: |Z| exceeds it 5 % of the time at most. ``expected``: E|Z|. ``worst``: the largest |Z|.

    Units of the noises; each is ∞ where it has no bound, or none was found.
    """

    half: float
    expected: float
    worst: float


@lru_cache(maxsize=512)
def spread(terms: frozenset[Noisy]) -> Spread:
    """Of a sum of these noises, all independent and symmetric; the same in every process."""
    ordered = sorted(terms, key=lambda one: (one[1], one[2], one[0].mean_squared_error))
    noises = sum(count for *_, count in ordered)
    variance = sum(count * float(weight) ** 2 * noise.mean_squared_error for noise, weight, count in ordered)
    worst = sum(count * abs(float(weight)) * noise.worst_error for noise, weight, count in ordered)
    if variance == 0:
        return Spread(0.0, 0.0, worst)
    deviation = math.sqrt(variance)
    points = 1 << math.ceil(math.log2(2 * LISTED_DEVIATIONS * GRID_POINTS * math.sqrt(noises)))
    step = 2 * LISTED_DEVIATIONS * deviation / points
    laws = [(_on_grid(noise, abs(float(weight)) / step, points // 2), count) for noise, weight, count in ordered]
    sums = _added(laws, points)
    places = np.arange(len(sums))
    slack = step * math.sqrt(noises * math.log(2 / BEYOND_ROUNDING) / 2)
    lost = _lost(laws, points, deviation / step) + noises * (math.sqrt(points) * TRANSFORM + FLOATS) + BEYOND_ROUNDING
    held = np.cumsum(sums) - lost
    if lost > MOST_LOST or not held[-1] >= 1 - OUTSIDE:
        return Spread(math.inf, math.inf, worst)
    half = float(np.searchsorted(held, 1 - OUTSIDE)) * step + slack
    return Spread(min(half, worst) * (1 + FLOATS), float(places @ sums) * step, worst)


def _on_grid(noise: Widened, scale: float, points: int) -> Floats:
    """P(K = 0), P(|K| = 1), … of K = the whole number nearest to ``scale`` · X, up to ``points``; the rest is lost."""
    tails = Tails.of(noise)
    last = min(points, math.ceil(scale * tails.factor * (len(tails.table) + 1)) + 1)
    edges = np.ceil((np.arange(1, last + 2) - 0.5) / scale) - 1
    beyond = tails.beyond(edges)
    law: Floats = np.concatenate([[1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])])
    return np.maximum(law, 0.0)


def _added(laws: list[tuple[Floats, int]], points: int) -> Floats:
    """P(|sum| = 0), P(|sum| = 1), … up to half of ``points``, where sums are taken modulo ``points``."""
    product = np.ones(points // 2 + 1)
    for law, count in laws:
        around = np.zeros(points)
        around[: len(law)] = law / 2
        around[1:] += around[:0:-1].copy()  # those below zero; zero itself is there once
        around[0] = law[0]
        product = product * np.fft.rfft(around).real ** count
    found = np.fft.irfft(product, points)
    half: Floats = np.concatenate([[found[0]], found[1 : points // 2] * 2])
    return np.maximum(half, 0.0)


def _lost(laws: list[tuple[Floats, int]], points: int, deviation: float) -> float:
    """What is beyond the lists, and how often a sum is so large that it comes round to where intervals end."""
    missing = sum(count * max(0.0, 1 - float(law.sum())) for law, count in laws)
    wraps = [_chernoff(laws, slope / deviation, 0.75 * points) for slope in MOMENT_SLOPES]
    return missing + min(1.0, *wraps)


def _chernoff(laws: list[tuple[Floats, int]], slope: float, beyond: float) -> float:
    """A bound on P(|sum| > ``beyond``): 2 e^{Σ log M(θ) − θ t}."""
    moments = (count * math.log(_moment(law, slope)) for law, count in laws)
    exponent = sum(moments) - slope * beyond
    return 2 * math.exp(min(exponent, 0.0))


def _moment(law: Floats, slope: float) -> float:
    """E e^{θ K} = Σ P(|K| = k) cosh(θ k)."""
    with np.errstate(over="ignore"):
        return float(law @ np.cosh(slope * np.arange(len(law))))
