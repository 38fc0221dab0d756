"""Noisy moments of a group and what they leave likely: means, variances, covariances of centred values.

``docs/proofs/intervals.md`` has the derivation: at the true parameters a sum of moments is zero, so that its noisy
value is noise alone, and all parameters for which it is no larger than noise is are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tightrope.documents.escaping import printable
from tightrope.errors import PlanError
from tightrope.noise.worst_split import Spend, eighths
from tightrope.queries.intervals import OUTSIDE, Tails, half_width
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import Noise, Vector
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import Factor, FixedPoint, FixedProduct, Measure

# How far a weighted sum of several noises lies from zero: the width that holds it all but some of the time.
#
# ``docs/proofs/intervals.md`` has the directions: no width is too small.

CELLS, REACH = 160, 4
"""Cells of the lattice for the width of the heaviest noise, and how many widths of all together it reaches."""
LEVELS = 48
"""What each noise weighs is rounded up to so many parts of the heaviest: widths serve all groups that are alike."""
JOINT_ROUNDING = 1e-11
"""What sums of probabilities in floats may be off by."""


@dataclass(frozen=True, eq=False)  # not slotted: what all groups share is kept
class Joint:
    """|Σ c_i X_i| of independent symmetric unimodal noises X_i."""

    tails: tuple[Tails, ...]

    @cached_property
    def halves(self) -> tuple[float, ...]:
        """About how far each noise reaches: what its weight is measured by."""
        return tuple(half_width(tails, OUTSIDE) for tails in self.tails)

    def width(self, weights: Sequence[float], outside: float) -> float:
        """A width that is exceeded at most ``outside`` of the time, for all weights up to these in absolute value."""
        heavy = [abs(weight) * half for weight, half in zip(weights, self.halves, strict=True)]
        heaviest = max(heavy)
        if not 0 < heaviest < math.inf:
            return heaviest
        found = heaviest * _width(self, tuple(math.ceil(LEVELS * one / heaviest) for one in heavy), outside)
        return found if math.isfinite(found) else self._added(weights, outside)

    def _added(self, weights: Sequence[float], outside: float) -> float:
        """One width for each noise, which it rarely exceeds: what is left where the lattice ends before they do."""
        used = [(abs(weight), tails) for weight, tails in zip(weights, self.tails, strict=True) if weight]
        each = outside * (1 - JOINT_ROUNDING) / len(used)
        return math.fsum(weight * half_width(tails, each) for weight, tails in used) * (1 + 1e-12)


@lru_cache(maxsize=1 << 14)
def _width(joint: Joint, levels: tuple[int, ...], outside: float) -> float:
    """On a lattice: each c (X + V), V uniform on (−½, ½), evened out inside its cells, which makes none more peaked."""
    many, used = sum(level > 0 for level in levels), [place for place, level in enumerate(levels) if level]
    far = math.ceil(CELLS * REACH * math.sqrt(many))
    cell = max(1.0, math.log(OUTSIDE / outside) / 3) / CELLS
    laws = [_transformed(joint, place, levels[place], far, cell, many) for place in used]
    inside = np.maximum(np.fft.irfft(np.prod(laws, axis=0), _size(many, far)), 0.0)
    # the sum lies in (s, s + k) cells for k parts and a whole s: it is inside ± n where −n ≤ s ≤ n − k
    middle, sums = many * far, np.concatenate([[0.0], np.cumsum(inside)])
    n = np.arange(many, middle + 1)
    held = sums[middle + n - many + 1] - sums[middle - n]
    enough = np.flatnonzero(1 - held <= outside * (1 - JOINT_ROUNDING) - JOINT_ROUNDING)
    wide = math.inf if len(enough) == 0 else float(n[enough[0]]) * cell
    return (wide + math.fsum(levels[place] / LEVELS / joint.halves[place] for place in used) / 2) * (1 + 1e-12)


@lru_cache(maxsize=256)
def _transformed(joint: Joint, place: int, level: int, far: int, cell: float, many: int) -> NDArray[np.complex128]:
    """The transform of the mass of c (X + V) in so many cells to both sides; what is further counts as outside."""
    width = cell * LEVELS / level * joint.halves[place]
    beyond = joint.tails[place].smooth(np.arange(far + 1, dtype=np.float64) * width)
    half = np.maximum(beyond[:-1] - beyond[1:], 0.0)
    return np.fft.rfft(np.concatenate([half[::-1], half]), _size(many, far))


def _size(many: int, far: int) -> int:
    """A power of two that holds the sum of so many laws of 2 · ``far`` cells."""
    return 1 << (2 * many * far).bit_length()


# Ranges of numbers and their arithmetic, for what noise is weighted with; ends are rounded as doubles are.


@dataclass(frozen=True, slots=True)
class Span:
    """All numbers from ``low`` to ``high``.

    >>> (Span(-1, 2) * Span(3, 4) - 1).reach
    7.0
    """

    low: float
    high: float

    @property
    def reach(self) -> float:
        """The largest absolute value."""
        return float(max(abs(self.low), abs(self.high)))

    def __add__(self, other: Span | float) -> Span:
        second = _span(other)
        return Span(self.low + second.low, self.high + second.high)

    def __neg__(self) -> Span:
        return Span(-self.high, -self.low)

    def __sub__(self, other: Span | float) -> Span:
        return self + -_span(other)

    def __mul__(self, other: Span | float) -> Span:
        second = _span(other)
        ends = [(0.0 if a == 0 or b == 0 else a * b) for a in (self.low, self.high) for b in (second.low, second.high)]
        return Span(min(ends), max(ends))

    def within(self, other: Span) -> Span:
        """The part inside another one; where there is none, its nearest end."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high) if low <= high else _nearest(self, other)

    def over(self, positive: Span) -> Span:
        """All quotients by numbers above zero; without limit where the divisor may be zero."""
        if not positive.low > 0:
            return Span(-math.inf, math.inf)
        return self * Span(1 / positive.high, 1 / positive.low)

    def square(self) -> Span:
        """All squares."""
        least = 0.0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
        return Span(least, self.reach**2)


def around(middle: float, width: float) -> Span:
    """``middle`` ± ``width``."""
    return Span(middle - width, middle + width)


def _span(other: Span | float) -> Span:
    return other if isinstance(other, Span) else Span(other, other)


def _nearest(span: Span, other: Span) -> Span:
    end = other.low if span.high < other.low else other.high
    return Span(end, end)


USABLE, X, Y, XX, YY, XY = "usable", "x", "y", "xx", "yy", "xy"
NUISANCE = 1e-3
"""How often a number that is not asked for, and that the interval needs, may lie outside its own."""
RAREST, FINENESS = -9.0, 0.05
"""Powers of ten: rarer is not told apart, and how finely a chance is found."""
NARROWINGS = 3
"""How often a range narrows the weights of the noise, and these the range."""

Weights = Mapping[str, Span | float]
"""What each noise is multiplied with, at least and at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The noisy moments of a group in natural units, centred: ``sums`` by name, and how many rows have all values."""

    noises: Noises
    sums: Mapping[str, float]
    usable: int

    @classmethod
    def of(cls, integers: Integers, noises: Noises) -> Sample:
        """From noisy integers; the sums of squares with what each was less."""
        usable = integers[USABLE]
        sums = {
            name: integers[name] * noises[name].step + usable * lessened(noises[name])
            for name in noises
            if name != USABLE
        }
        return cls(noises, sums, usable)

    def reach(self, name: str) -> float:
        """How far a centred value lies from zero at most."""
        return abs(self.noises[name].vector.sensitivity) * self.noises[name].step

    def width(self, weights: Weights, outside: float) -> float:
        """How far the weighted noises reach, and what rounding to grids adds: at most a step a row and a sum.

        Raises the number of rows by what its noise hides but ``NUISANCE`` of the time.
        """
        heavy = {name: weights[name] for name in self.noises if name in weights}
        reaches = {
            name: (weight.reach if isinstance(weight, Span) else abs(weight)) * self.noises[name].step
            for name, weight in heavy.items()
        }
        noise = _joint(tuple(self.noises[name] for name in reaches)).width(tuple(reaches.values()), outside)
        rows = self.usable + _hidden(self.noises[USABLE])
        return noise + rows * math.fsum(reach for name, reach in reaches.items() if name != USABLE)

    def mean(self, name: str) -> Mean:
        """The mean, at most ``NUISANCE`` of the time elsewhere."""
        reach = self.reach(name)
        found, seen = Span(-reach, reach), self.sums[name] / self.usable
        for _ in range(NARROWINGS):
            off = self.width({name: 1.0, USABLE: found}, NUISANCE) / self.usable
            found = around(seen, off).within(found)
        return Mean(seen, off, found)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean as it is seen, how far it may be off, and where it may be."""

    seen: float
    off: float
    span: Span


def variance_seen(sample: Sample, name: str) -> float:
    """N v̂ = Sxx − Sx²/N."""
    return sample.sums[name * 2] - sample.sums[name] ** 2 / sample.usable


def covariance_seen(sample: Sample) -> float:
    """N ĉ = Sxy − Sx Sy/N."""
    return sample.sums[XY] - sample.sums[X] * sample.sums[Y] / sample.usable


def variance_span(sample: Sample, name: str, mean: Mean, outside: float) -> Span:
    """Where the variance is, from Sxx − 2m Sx + m² N − v N, which is noise: Xxx − 2m Xx + (m² + q − v) Y."""
    found, seen = Span(0.0, sample.reach(name) ** 2), variance_seen(sample, name)
    for _ in range(NARROWINGS):
        count = mean.span.square() + lessened(sample.noises[name * 2]) - found
        width = sample.width({name * 2: 1.0, name: mean.span * 2, USABLE: count}, outside)
        low, high = (seen - width) / sample.usable, (seen + width) / sample.usable + mean.off**2
        found = Span(low, high).within(found)
    return found


def covariance_span(sample: Sample, means: tuple[Mean, Mean], outside: float) -> Span:
    """Where the covariance is, from Sxy − m Sy − k Sx + m k N − c N, noise: Xxy − m Xy − k Xx + (m k − c) Y."""
    most, seen = sample.reach(X) * sample.reach(Y), covariance_seen(sample)
    found = Span(-most, most)
    for _ in range(NARROWINGS):
        width = sample.width(covariance_noise(means, found), outside)
        off = width / sample.usable + means[0].off * means[1].off
        found = around(seen / sample.usable, off).within(found)
    return found


def hidden(sample: Sample, name: str, needed: float) -> float:
    """How often, at most, noise leaves less than ``needed`` of n times the variance to be seen; typical moments."""
    left = variance_seen(sample, name) - needed
    if not left > 0:
        return 1.0
    mean = sample.mean(name).span
    weights: Weights = {name * 2: 1.0, name: mean * 2, USABLE: mean.square() + lessened(sample.noises[name * 2])}
    often, seldom = 0.0, RAREST  # powers of ten
    if sample.width(weights, math.pow(10, seldom)) <= left:
        return math.pow(10, seldom) / 2
    while often - seldom > FINENESS:
        middle = (often + seldom) / 2
        often, seldom = (middle, seldom) if sample.width(weights, math.pow(10, middle)) <= left else (often, middle)
    return math.pow(10, often) / 2


def covariance_noise(means: tuple[Mean, Mean], covariance: Span | float) -> Weights:
    """The weights of the noise in n times the covariance."""
    x, y = (mean.span for mean in means)
    return {XY: 1.0, Y: x, X: y, USABLE: x * y - covariance}


def lessened(noise: Noise) -> float:
    """What each row's square was less, so that it costs half."""
    fixed = noise.vector.measure.fixed_point
    return fixed.centre * noise.step if isinstance(fixed, FixedPoint | FixedProduct) else 0.0


def main(nuisances: int) -> float:
    """What is left of the 5 % for the parameter itself, beside so many nuisances and the number of rows."""
    return OUTSIDE - NUISANCE * (nuisances + 1)


@lru_cache(maxsize=256)
def _joint(noises: tuple[Noise, ...]) -> Joint:
    """Once for all groups."""
    return Joint(tuple(noise.tails for noise in noises))


@lru_cache(maxsize=64)
def _hidden(noise: Noise) -> float:
    return noise.half_width(1 - NUISANCE)


# What kinds of several moments have in common: their errors before spending, and when they are withheld.

TYPICAL = 1 / 9
"""The mean square of centred values for which errors are stated, over the largest square."""
ASSUMED_CORRELATION = 0.5
"""The correlation for which errors are stated."""
MEAN_TO_WIDTH = 0.41
"""E|X| over the half-width of 95 %: of a normal law; of laws with heavier tails it is less."""
EVEN = "errors are stated for values around the middle of their range, with a standard deviation of a sixth of it"
PAIRS = "rows in which either value is missing are left out"


def expected(record: Record) -> tuple[float, float]:
    """E|error|, about, and the half-width of 95 % where all numbers came out without noise; ∞ without a limit."""
    low, high = record["lower"], record["upper"]
    if low is None or high is None:
        return math.inf, math.inf
    return MEAN_TO_WIDTH * (high - low) / 2, (high - low) / 2


def withheld_below(usable: Noise, people: int) -> float:
    """P(the noisy count is below 1)."""
    return usable.at_most(-people)


def finite(number: float) -> float | None:
    """The number; nothing where it has no limit."""
    return number if math.isfinite(number) else None


# Vectors of moments: sums of centred values, of their squares and products, over the rows that have all of them.

KEPT_DIGITS = 11
"""Decimal digits of the largest value that are kept: a row adds less than 2⁴⁰, as far as noise is stretched."""
NARROWEST, WIDEST = 1e-100, 1e100
"""Ranges whose squares, and quotients of these, a double holds with room to spare."""


def factor(name: str, between: tuple[float, float]) -> Factor:
    """Values counted from the middle of their range; raises ``PlanError`` where squares leave the doubles."""
    low, high = between
    if not (max(abs(low), abs(high)) <= WIDEST and high - low >= NARROWEST):
        expected = f"a range from {NARROWEST:g} wide, within {WIDEST:g} of zero"
        raise PlanError(name, between, expected, "measure in other units, so that the numbers are about one")
    return Factor(low, high, low + (high - low) / 2)


def reach(of: Factor) -> float:
    """How far a centred value lies from zero at most."""
    return max(map(abs, of.ends))


def usable_rows(name: str, column: Term, beside: Term | None, size: float) -> Vector:
    """The number of rows in which no value is NULL or NaN."""
    return Vector(Measure(name, column, None, beside), Spend("usable rows", eighths(size), True), 1)


def total(name: str, column: Term, of: Factor, beside: Term | None, size: float) -> Vector:
    """The sum of centred values."""
    fixed = FixedProduct((of,), _step(reach(of)))
    return _vector(f"sum of {printable(str(column))}", Measure(name, column, fixed, beside), size)


def squares(name: str, column: Term, of: Factor, beside: Term | None, size: float) -> Vector:
    """The sum of their squares, each less half of what it can be: half the sensitivity."""
    half = reach(of) ** 2 / 2
    step = _step(half)
    fixed = FixedProduct((of,), step, centre=math.floor(half / float(step) + 0.5), squared=True)
    return _vector(f"sum of squares of {printable(str(column))}", Measure(name, column, fixed, beside), size)


def products(name: str, columns: tuple[Term, Term], of: tuple[Factor, Factor], size: float) -> Vector:
    """The sum of products of two centred values."""
    column, beside = columns
    fixed = FixedProduct(of, _step(reach(of[0]) * reach(of[1])))
    statistic = f"sum of products of {printable(str(column))} and {printable(str(beside))}"
    return _vector(statistic, Measure(name, column, fixed, beside), size)


def _step(largest: float) -> Decimal:
    """A power of ten of which the largest value has up to 10¹²."""
    return Decimal(1).scaleb(math.floor(math.log10(largest)) - KEPT_DIGITS)


def _vector(statistic: str, measure: Measure, size: float) -> Vector:
    least, most = measure.fixed_point.extremes if measure.fixed_point else (0, 1)
    return Vector(measure, Spend(statistic, eighths(size), False), max(abs(least), abs(most), 1))
