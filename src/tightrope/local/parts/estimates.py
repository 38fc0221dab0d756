"""Estimated shares or means with intervals, their projection on distributions, and counts of reports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from tightrope.display import Displayed, Rounded, Summary
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_inner_probability, check_integer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shares(Displayed):
    """Unbiased estimates with the ends of their intervals, shape [k] each (one number each for a mean).

    They estimate the shares of the ``people`` who reported: only the mechanism is random. ``confidence`` holds for
    each interval, or for all together where ``simultaneous``. A value may be below 0 or above 1, which keeps
    averages and sums of estimates unbiased; ``local.on_simplex`` returns a distribution, which is biased.
    """

    value: Floats
    lower: Floats
    upper: Floats
    people: int
    confidence: float = 0.95
    simultaneous: bool = False

    def __len__(self) -> int:
        return len(self.value)

    def text_summary(self) -> Summary:
        """Return the estimates with their intervals."""
        ends = zip(*(np.atleast_1d(end).tolist() for end in (self.value, self.lower, self.upper)), strict=True)
        rows = [
            (str(index), Rounded(value), Rounded(lower, "down"), Rounded(upper, "up"))
            for index, (value, lower, upper) in enumerate(ends)
        ]
        kind = "simultaneous intervals" if self.simultaneous else "intervals"
        title = f"reports of {self.people:,} people, {100 * self.confidence:g} % {kind}"
        return Summary(title, (), ("category", "value", "lower", "upper"), rows)


def simultaneous_z_score(confidence: float, of: int = 1) -> float:
    """Return the half-width in standard deviations of ``of`` two-sided intervals that hold together (Bonferroni).

    >>> round(simultaneous_z_score(0.95), 6), round(simultaneous_z_score(0.95, of=1024), 4)
    (1.959964, 4.0612)
    """
    missed = (1 - check_inner_probability("confidence", confidence)) / of
    return float(-ndtri(missed / 2))


def tail_interval(counts: NDArray[np.int64], people: int, confidence: float, of: int | Floats) -> tuple[Floats, Floats]:
    """Return Clopper and Pearson's intervals for the probability of being counted, exact; ``of`` hold together.

    ``counts`` of this many ``people``, shape [k]; Bonferroni. They hold for independent people with equal
    probabilities, and also with fixed, unequal ones, whose sum is at most as far from its mean (Hoeffding 1956).

    >>> [round(float(end[0]), 6) for end in tail_interval(np.array([5]), 10, 0.95, 1)]
    [0.187086, 0.812914]
    """
    missed = (1 - check_inner_probability("confidence", confidence)) / (2 * of)
    some, not_all = np.maximum(counts, 1), np.minimum(counts, people - 1)
    lower = np.where(counts > 0, betaincinv(some, people - some + 1, missed), 0.0)
    upper = np.where(counts < people, betaincinv(not_all + 1, people - not_all, 1 - missed), 1.0)
    return lower, upper


def binomial_tail_chance(counts: NDArray[np.int64], people: int, chance: float) -> Floats:
    """Return P(Bin(people, chance) ≥ count), shape [k].

    If it is below the error of a lower end of ``tail_interval``, this end is above ``chance``.

    >>> binomial_tail_chance(np.array([0, 1, 2]), 2, 0.5).tolist()
    [1.0, 0.75, 0.25]
    """
    some = np.maximum(counts, 1)
    return np.asarray(np.where(counts > 0, betainc(some, people - some + 1, chance), 1.0))


def score_interval(value: Floats, people: int, variances: tuple[float, float], width: float) -> tuple[Floats, Floats]:
    """Return the ends of the shares f with |value − f| ≤ width · √(V(f) / people), V(f) = (1 − f) v₀ + f v₁ (Wilson).

    The variance is that of the hypothesized share, not of the observed one: so the interval keeps its coverage if few
    reports support a value. ``variances`` are (v₀, v₁), the variances of one report of a person with another value, and
    with this value. The ends solve (value − f)² = width² V(f) / people.
    """
    other, own = variances
    scaled = width * width / people
    center = value + scaled * (own - other) / 2
    square = center**2 - value**2 + scaled * other
    half = np.sqrt(np.maximum(square, 0.0))
    return np.minimum(center - half, value), np.maximum(center + half, value)


@dataclass(frozen=True, slots=True, eq=False)
class BiasedEstimates:
    """Shares ≥ 0 that add up to 1, shape [k]: **biased**, upwards for rare values, so there are no intervals.

    Do not average these over groups or days: average the unbiased ones, then project.
    """

    value: Floats


def on_simplex(shares: Shares) -> BiasedEstimates:
    """Return the distribution nearest to the estimates: (f − t)₊ with t such that it adds up to 1.

    Its squared error is at most the squared error of the estimates, for every true distribution, since a projection
    on a convex set does not increase distances. It is computed from the reports and has no privacy loss.

    Raises ``InputError`` unless ``shares`` are estimates, at least one, all finite.

    >>> on_simplex(Shares(np.array([0.9, 0.4, -0.3]), np.zeros(3), np.ones(3), 100)).value.round(9).tolist()
    [0.75, 0.25, 0.0]
    """
    if not isinstance(shares, Shares) or np.ndim(shares.value) != 1 or not np.size(shares.value):
        raise InputError("type of shares", type(shares).__name__, "estimated Shares of one value or more")
    infinite = int(np.count_nonzero(~np.isfinite(shares.value)))
    if infinite:
        raise InputError("shares that are not finite", infinite, f"0 of {len(shares.value)}")
    falling = np.sort(shares.value)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    threshold = excess[np.flatnonzero(falling > excess)[-1]]
    return BiasedEstimates(np.maximum(shares.value - threshold, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of reports: ``people`` reports in all, ``answered`` that are not silent, and for each value v, shape [k],
    the number ``counts[v]`` of reports that support v (for means: that are the report v).

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
