"""Estimated shares, or means, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, inner_probability


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """Unbiased estimates with the ends of their intervals, shape [k] each (floats where one number was asked for).

    They estimate the shares of the ``people`` who reported: only the mechanism is random. ``confidence`` holds for
    each interval, or for all together where ``simultaneous``. A value may be below 0 or above 1: that is what makes
    averages and sums of estimates right; ``local.on_simplex`` makes a distribution of them, which is biased.
    """

    value: Floats
    lower: Floats
    upper: Floats
    people: int
    confidence: float = 0.95
    simultaneous: bool = False

    def __len__(self) -> int:
        return len(self.value)


def simultaneous_z_score(confidence: float, of: int = 1) -> float:
    """Half-width, in standard deviations, of two-sided intervals that all ``of`` hold (Bonferroni).

    >>> round(simultaneous_z_score(0.95), 6), round(simultaneous_z_score(0.95, of=1024), 4)
    (1.959964, 4.0612)
    """
    missed = (1 - inner_probability("confidence", confidence)) / of
    return float(-ndtri(missed / 2))


def tail_interval(counts: NDArray[np.int64], people: int, confidence: float, of: int | Floats) -> tuple[Floats, Floats]:
    """Chances of being counted whose intervals all ``of`` hold: Clopper and Pearson's, no approximation (Bonferroni).

    ``counts`` of this many ``people``, shape [k]. They are right for independent people with equal chances, and a sum
    over people with fixed, unequal chances is at most as far from its mean (Hoeffding 1956).

    >>> [round(float(end[0]), 6) for end in tail_interval(np.array([5]), 10, 0.95, 1)]
    [0.187086, 0.812914]
    """
    missed = (1 - inner_probability("confidence", confidence)) / (2 * of)
    some, not_all = np.maximum(counts, 1), np.minimum(counts, people - 1)
    lower = np.where(counts > 0, betaincinv(some, people - some + 1, missed), 0.0)
    upper = np.where(counts < people, betaincinv(not_all + 1, people - not_all, 1 - missed), 1.0)
    return lower, upper


def tail_chance(counts: NDArray[np.int64], people: int, chance: float) -> Floats:
    """P(Bin(people, chance) ≥ count), shape [k]: below what a lower end of ``tail_interval`` misses, the end is above.

    >>> tail_chance(np.array([0, 1, 2]), 2, 0.5).tolist()
    [1.0, 0.75, 0.25]
    """
    some = np.maximum(counts, 1)
    return np.asarray(np.where(counts > 0, betainc(some, people - some + 1, chance), 1.0))


def score_interval(value: Floats, people: int, variances: tuple[float, float], width: float) -> tuple[Floats, Floats]:
    """The shares f with |value − f| ≤ width · √(V(f) / people), V(f) = (1 − f) v₀ + f v₁ (Wilson's interval).

    The variance belongs to the hypothesized share, not to the observed one: so the interval keeps its
    coverage where few reports support a value. ``variances`` are (v₀, v₁), the variances of one report on
    another and on the own value. The ends solve (value − f)² = width² V(f) / people.
    """
    other, own = variances
    scaled = width * width / people
    center = value + scaled * (own - other) / 2
    square = center**2 - value**2 + scaled * other
    half = np.sqrt(np.maximum(square, 0.0))
    return np.minimum(center - half, value), np.maximum(center + half, value)


# From unbiased estimates to a distribution: what is gained in shape is lost in truth on average.


@dataclass(frozen=True, slots=True, eq=False)
class BiasedEstimates:
    """Shares ≥ 0 that add up to 1, shape [k]: **biased**, rare values upwards, so it has no intervals.

    Do not average these over groups or days: average the unbiased ones, then project.
    """

    value: Floats


def on_simplex(shares: Shares) -> BiasedEstimates:
    """The distribution nearest to the estimates: (f − t)₊ with t such that it adds up to 1.

    Its squared error is at most the squared error of the estimates, for every true distribution, since a projection
    on a convex set only brings things together. A function of the reports: it costs no privacy.

    Raises ``InputError`` for anything but estimates, at least one and all finite.

    >>> on_simplex(Shares(np.array([0.9, 0.4, -0.3]), np.zeros(3), np.ones(3), 100)).value.round(9).tolist()
    [0.75, 0.25, 0.0]
    """
    if not isinstance(shares, Shares) or np.ndim(shares.value) != 1 or not np.size(shares.value):
        raise InputError("type of shares", type(shares).__name__, "estimated Shares of one value or more")
    strange = int(np.count_nonzero(~np.isfinite(shares.value)))
    if strange:
        raise InputError("shares that are not finite", strange, f"0 of {len(shares.value)}")
    falling = np.sort(shares.value)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    threshold = excess[np.flatnonzero(falling > excess)[-1]]
    return BiasedEstimates(np.maximum(shares.value - threshold, 0.0))


# What a collector keeps of reports: counts that add up, so that any number of reports fits into little memory.


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """``people`` reports, of which ``answered`` say anything, and ``counts[v]``, shape [k], support the value v
    (for means: are the report v).

    Raises ``InputError`` unless 0 ≤ counts ≤ answered ≤ people, all whole numbers. Tallies of disjoint reports add up:

    >>> both = Tally(2, 2, np.array([1, 1])) + Tally(1, 0, np.array([0, 0]))
    >>> both.people, both.answered, both.counts.tolist()
    (3, 2, [1, 1])
    """

    people: int
    answered: int
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        people = check_integer("people", self.people, at_least=0)
        answered = check_integer("answered", self.answered, at_least=0)
        if not answered <= people:
            raise InputError("answered", answered, f"at most people={people}")
        counts = np.asarray(self.counts)
        if counts.ndim != 1 or counts.dtype.kind not in "iu":
            raise InputError("type and shape of counts", (str(counts.dtype), counts.shape), "whole numbers, shape [k]")
        if counts.size and not 0 <= int(counts.min()) <= int(counts.max()) <= answered:
            ends = (int(counts.min()), int(counts.max()))
            raise InputError("least and largest count", ends, f"from 0 to answered={answered}")
        object.__setattr__(self, "counts", counts)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if len(self.counts) != len(other.counts):
            raise InputError("tally", len(other.counts), f"of {len(self.counts)} values like the other one")
        return Tally(self.people + other.people, self.answered + other.answered, self.counts + other.counts)
