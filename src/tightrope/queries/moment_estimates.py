"""Noisy moments of a group, and the plausible means, variances and covariances of centered values.

Derivation in ``docs/proofs/intervals.md``: at the true parameters, a certain sum of moments is zero, so its noisy
value is pure noise; all parameters at which it is within the noise's width are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.queries.intervals import OUTSIDE, NoiseTails, half_width
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import Noise, NoisyStatistic
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import Factor, FixedPoint, FixedProduct, Measure

# Width of a weighted sum of several noises: exceeded with at most a given probability.
#
# Proof that every width is large enough: ``docs/proofs/intervals.md``.

CELLS, REACH = 160, 4
"""Lattice cells per width of the heaviest noise, and the extent of the lattice in widths of the sum."""
LEVELS = 48
"""Weights are rounded up to multiples of the heaviest weight over this, so that similar groups share one width."""
JOINT_ROUNDING = 1e-11
"""Bound on the error of sums of probabilities in floats."""


@dataclass(frozen=True, eq=False)  # not slotted: caches what all groups share
class NoiseSum:
    """|Σ c_i X_i| of independent symmetric unimodal noises X_i."""

    tails: tuple[NoiseTails, ...]

    @cached_property
    def approximate_half_widths(self) -> tuple[float, ...]:
        """The approximate width of each noise, the unit of its weight."""
        return tuple(half_width(tails, OUTSIDE) for tails in self.tails)

    def weighted_sum_width(self, weights: Sequence[float], outside: float) -> float:
        """Return a width exceeded with probability at most ``outside``, for all weights up to these in magnitude."""
        heavy = [abs(weight) * half for weight, half in zip(weights, self.approximate_half_widths, strict=True)]
        heaviest = max(heavy)
        if not 0 < heaviest < math.inf:
            return heaviest
        found = heaviest * _lattice_width(self, tuple(math.ceil(LEVELS * one / heaviest) for one in heavy), outside)
        return found if math.isfinite(found) else self._sum_of_widths(weights, outside)

    def _sum_of_widths(self, weights: Sequence[float], outside: float) -> float:
        """Return the sum of the noises' own widths (union bound), used if the lattice is too short."""
        used = [(abs(weight), tails) for weight, tails in zip(weights, self.tails, strict=True) if weight]
        each = outside * (1 - JOINT_ROUNDING) / len(used)
        return math.fsum(weight * half_width(tails, each) for weight, tails in used) * (1 + 1e-12)


@lru_cache(maxsize=1 << 14)
def _lattice_width(joint: NoiseSum, levels: tuple[int, ...], outside: float) -> float:
    """Return the width on a lattice: each c (X + V), V uniform on (−½, ½), flattened within cells, not more peaked."""
    many, used = sum(level > 0 for level in levels), [place for place, level in enumerate(levels) if level]
    far = math.ceil(CELLS * REACH * math.sqrt(many))
    cell = max(1.0, math.log(OUTSIDE / outside) / 3) / CELLS
    laws = [_noise_transform(joint, place, levels[place], far, cell, many) for place in used]
    inside = np.maximum(np.fft.irfft(np.prod(laws, axis=0), _transform_size(many, far)), 0.0)
    # the sum lies in (s, s + k) cells for k terms and an integer s: it is inside ± n if −n ≤ s ≤ n − k
    middle, sums = many * far, np.concatenate([[0.0], np.cumsum(inside)])
    n = np.arange(many, middle + 1)
    held = sums[middle + n - many + 1] - sums[middle - n]
    enough = np.flatnonzero(1 - held <= outside * (1 - JOINT_ROUNDING) - JOINT_ROUNDING)
    wide = math.inf if len(enough) == 0 else float(n[enough[0]]) * cell
    return (wide + math.fsum(levels[place] / LEVELS / joint.approximate_half_widths[place] for place in used) / 2) * (
        1 + 1e-12
    )


@lru_cache(maxsize=256)
def _noise_transform(
    joint: NoiseSum, place: int, level: int, far: int, cell: float, many: int
) -> NDArray[np.complex128]:
    """Return the transform of the mass of c (X + V) in ``far`` cells on each side; mass beyond counts as outside."""
    width = cell * LEVELS / level * joint.approximate_half_widths[place]
    beyond = joint.tails[place].smoothed_tail_probability(np.arange(far + 1, dtype=np.float64) * width)
    half = np.maximum(beyond[:-1] - beyond[1:], 0.0)
    return np.fft.rfft(np.concatenate([half[::-1], half]), _transform_size(many, far))


def _transform_size(many: int, far: int) -> int:
    """Return a power of two large enough for the sum of ``many`` distributions of 2 · ``far`` cells."""
    return 1 << (2 * many * far).bit_length()


# Interval arithmetic for the weights of the noises; ends are rounded to the nearest double.


@dataclass(frozen=True, slots=True)
class Span:
    """All numbers from ``low`` to ``high``.

    >>> (Span(-1, 2) * Span(3, 4) - 1).largest_magnitude
    7.0
    """

    low: float
    high: float

    @property
    def largest_magnitude(self) -> float:
        """The largest absolute value."""
        return float(max(abs(self.low), abs(self.high)))

    def __add__(self, other: Span | float) -> Span:
        second = _as_span(other)
        return Span(self.low + second.low, self.high + second.high)

    def __neg__(self) -> Span:
        return Span(-self.high, -self.low)

    def __sub__(self, other: Span | float) -> Span:
        return self + -_as_span(other)

    def __mul__(self, other: Span | float) -> Span:
        second = _as_span(other)
        ends = [(0.0 if a == 0 or b == 0 else a * b) for a in (self.low, self.high) for b in (second.low, second.high)]
        return Span(min(ends), max(ends))

    def clip_to_span(self, other: Span) -> Span:
        """Return the intersection with another span; if empty, the other's nearest end."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low <= high:
            return Span(low, high)
        end = other.low if self.high < other.low else other.high
        return Span(end, end)

    def divide_by_positive(self, positive: Span) -> Span:
        """Return all quotients by positive numbers; unbounded if the divisor may be zero."""
        if not positive.low > 0:
            return Span(-math.inf, math.inf)
        return self * Span(1 / positive.high, 1 / positive.low)

    def squared_span(self) -> Span:
        """Return all squares."""
        least = 0.0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
        return Span(least, self.largest_magnitude**2)


def span_around(middle: float, width: float) -> Span:
    """Return ``middle`` ± ``width``."""
    return Span(middle - width, middle + width)


def _as_span(other: Span | float) -> Span:
    return other if isinstance(other, Span) else Span(other, other)


USABLE, X, Y, XX, YY, XY = "usable", "x", "y", "xx", "yy", "xy"
NUISANCE = 1e-3
"""The probability that a nuisance parameter lies outside its own interval."""
RAREST, FINENESS = -9.0, 0.05
"""Powers of ten: the smallest probability that is resolved, and the resolution."""
NARROWINGS = 3
"""The number of iterations in which a range narrows the weights of the noise, and these narrow the range."""

Weights = Mapping[str, Span | float]
"""The factor of each noise, or the range of that factor."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisySample:
    """The noisy centered moments of a group in natural units: ``sums`` by name, and the number of complete rows."""

    noises: Noises
    sums: Mapping[str, float]
    usable: int

    @classmethod
    def from_integers(cls, integers: Integers, noises: Noises) -> NoisySample:
        """Return the moments from noisy integers; adds back the constant that was subtracted from each square."""
        usable = integers[USABLE]
        sums = {
            name: integers[name] * noises[name].step_size + usable * square_offset(noises[name])
            for name in noises
            if name != USABLE
        }
        return cls(noises, sums, usable)

    def centered_value_bound(self, name: str) -> float:
        """Return the largest magnitude of a centered value."""
        return abs(self.noises[name].vector.sensitivity) * self.noises[name].step_size

    def noise_width(self, weights: Weights, outside: float) -> float:
        """Return the width of the weighted noises plus the rounding to grids: at most a step per row and sum.

        Adds to the number of rows the width that its noise exceeds with probability ``NUISANCE``.
        """
        heavy = {name: weights[name] for name in self.noises if name in weights}
        reaches = {
            name: (weight.largest_magnitude if isinstance(weight, Span) else abs(weight)) * self.noises[name].step_size
            for name, weight in heavy.items()
        }
        noise = _cached_noise_sum(tuple(self.noises[name] for name in reaches)).weighted_sum_width(
            tuple(reaches.values()), outside
        )
        rows = self.usable + _noise_half_width(self.noises[USABLE])
        return noise + rows * math.fsum(reach for name, reach in reaches.items() if name != USABLE)

    def estimate_mean(self, name: str) -> NoisyMean:
        """Return the mean with a span that misses it with probability at most ``NUISANCE``."""
        reach = self.centered_value_bound(name)
        found, seen = Span(-reach, reach), self.sums[name] / self.usable
        for _ in range(NARROWINGS):
            off = self.noise_width({name: 1.0, USABLE: found}, NUISANCE) / self.usable
            found = span_around(seen, off).clip_to_span(found)
        return NoisyMean(seen, off, found)


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """An observed mean, its largest plausible error, and the span of plausible means."""

    seen: float
    noise_bound: float
    span: Span


def noisy_variance(sample: NoisySample, name: str) -> float:
    """Return N v̂ = Sxx − Sx²/N."""
    return sample.sums[name * 2] - sample.sums[name] ** 2 / sample.usable


def noisy_covariance(sample: NoisySample) -> float:
    """Return N ĉ = Sxy − Sx Sy/N."""
    return sample.sums[XY] - sample.sums[X] * sample.sums[Y] / sample.usable


def variance_span(sample: NoisySample, name: str, mean: NoisyMean, outside: float) -> Span:
    """Return the plausible variances v: Sxx − 2m Sx + m² N − v N is pure noise, Xxx − 2m Xx + (m² + q − v) Y."""
    found, seen = Span(0.0, sample.centered_value_bound(name) ** 2), noisy_variance(sample, name)
    for _ in range(NARROWINGS):
        count = mean.span.squared_span() + square_offset(sample.noises[name * 2]) - found
        width = sample.noise_width({name * 2: 1.0, name: mean.span * 2, USABLE: count}, outside)
        low, high = (seen - width) / sample.usable, (seen + width) / sample.usable + mean.noise_bound**2
        found = Span(low, high).clip_to_span(found)
    return found


def covariance_span(sample: NoisySample, means: tuple[NoisyMean, NoisyMean], outside: float) -> Span:
    """Return the plausible covariances c: Sxy − m Sy − k Sx + m k N − c N is Xxy − m Xy − k Xx + (m k − c) Y."""
    most, seen = sample.centered_value_bound(X) * sample.centered_value_bound(Y), noisy_covariance(sample)
    found = Span(-most, most)
    for _ in range(NARROWINGS):
        width = sample.noise_width(covariance_noise(means, found), outside)
        off = width / sample.usable + means[0].noise_bound * means[1].noise_bound
        found = span_around(seen / sample.usable, off).clip_to_span(found)
    return found


def hidden_variance_probability(sample: NoisySample, name: str, needed: float) -> float:
    """Return a bound on P(the noisy n times the variance is below ``needed``), for typical moments."""
    left = noisy_variance(sample, name) - needed
    if not left > 0:
        return 1.0
    mean = sample.estimate_mean(name).span
    weights: Weights = {
        name * 2: 1.0,
        name: mean * 2,
        USABLE: mean.squared_span() + square_offset(sample.noises[name * 2]),
    }
    often, seldom = 0.0, RAREST  # powers of ten
    if sample.noise_width(weights, math.pow(10, seldom)) <= left:
        return math.pow(10, seldom) / 2
    while often - seldom > FINENESS:
        middle = (often + seldom) / 2
        often, seldom = (
            (middle, seldom) if sample.noise_width(weights, math.pow(10, middle)) <= left else (often, middle)
        )
    return math.pow(10, often) / 2


def covariance_noise(means: tuple[NoisyMean, NoisyMean], covariance: Span | float) -> Weights:
    """Return the weights of the noises in n times the covariance."""
    x, y = (mean.span for mean in means)
    return {XY: 1.0, Y: x, X: y, USABLE: x * y - covariance}


def square_offset(noise: Noise) -> float:
    """Return the constant subtracted from each row's square to halve the sensitivity."""
    fixed = noise.vector.measure.fixed_point
    return fixed.center * noise.step_size if isinstance(fixed, FixedPoint | FixedProduct) else 0.0


def main_error_probability(nuisances: int) -> float:
    """Return the part of the 5 % for the parameter itself, after this many nuisances and the number of rows."""
    return OUTSIDE - NUISANCE * (nuisances + 1)


@lru_cache(maxsize=256)
def _cached_noise_sum(noises: tuple[Noise, ...]) -> NoiseSum:
    """Return the joint noise, computed once for all groups."""
    return NoiseSum(tuple(noise.noise_tails for noise in noises))


@lru_cache(maxsize=64)
def _noise_half_width(noise: Noise) -> float:
    return noise.half_width(1 - NUISANCE)


# Shared by all queries of several moments: their expected errors and the probability of suppression.

TYPICAL = 1 / 9
"""The mean square of centered values for which errors are stated, relative to the largest square."""
ASSUMED_CORRELATION = 0.5
"""The correlation for which errors are stated."""
MEAN_TO_WIDTH = 0.41
"""E|X| over the 95 % half-width of a normal distribution; less for heavier tails."""
EVEN = "Errors are stated for values around the middle of their range, with a standard deviation of a sixth of it."
PAIRS = "Rows in which either value is missing are left out."


def expected_error_of_record(record: Record) -> tuple[float, float]:
    """Return E|error| (approximate) and the 95 % half-width for noise-free values; ∞ if unbounded."""
    low, high = record["lower"], record["upper"]
    if low is None or high is None:
        return math.inf, math.inf
    return MEAN_TO_WIDTH * (high - low) / 2, (high - low) / 2


def low_count_probability(usable: Noise, people: int) -> float:
    """Return P(the noisy count is below 1)."""
    return usable.lower_tail_probability(-people)


def finite_or_none(number: float) -> float | None:
    """Return the number, or None if it is infinite."""
    return number if math.isfinite(number) else None


# Vectors of moments: sums of centered values, of their squares and products, over the complete rows.

KEPT_DIGITS = 11
"""Decimal digits kept of the largest value: a row adds less than 2⁴⁰, the limit for scaled noise."""
NARROWEST, WIDEST = 1e-100, 1e100
"""Limits of ranges whose squares, and quotients of squares, fit into a double."""


def centered_factor(name: str, bounds: tuple[float, float]) -> Factor:
    """Return values counted from the middle of their range; raises ``PlanError`` if squares do not fit a double."""
    low, high = bounds
    if not (max(abs(low), abs(high)) <= WIDEST and high - low >= NARROWEST):
        expected = f"a range from {NARROWEST:g} wide, within {WIDEST:g} of zero"
        raise PlanError(name, bounds, expected, "measure in other units, so that the numbers are about one")
    return Factor(low, high, low + (high - low) / 2)


def centered_bound(of: Factor) -> float:
    """Return the largest magnitude of a centered value."""
    return max(map(abs, of.factor_range))


def usable_rows(name: str, column: Term, beside: Term | None, size: float) -> NoisyStatistic:
    """Return the number of rows in which no value is NULL or NaN."""
    return NoisyStatistic(Measure(name, column, None, beside), NoiseSpec("usable rows", nearest_eighths(size), True), 1)


def centered_sum(name: str, column: Term, of: Factor, beside: Term | None, size: float) -> NoisyStatistic:
    """Return the sum of centered values."""
    fixed = FixedProduct((of,), _decimal_step(centered_bound(of)))
    return _moment_statistic(f"sum of {escape_control_chars(str(column))}", Measure(name, column, fixed, beside), size)


def centered_squares(name: str, column: Term, of: Factor, beside: Term | None, size: float) -> NoisyStatistic:
    """Return the sum of squares, each minus half of its maximum, which halves the sensitivity."""
    half = centered_bound(of) ** 2 / 2
    step = _decimal_step(half)
    fixed = FixedProduct((of,), step, center=math.floor(half / float(step) + 0.5), squared=True)
    return _moment_statistic(
        f"sum of squares of {escape_control_chars(str(column))}", Measure(name, column, fixed, beside), size
    )


def centered_products(name: str, columns: tuple[Term, Term], of: tuple[Factor, Factor], size: float) -> NoisyStatistic:
    """Return the sum of products of two centered values."""
    column, beside = columns
    fixed = FixedProduct(of, _decimal_step(centered_bound(of[0]) * centered_bound(of[1])))
    statistic = f"sum of products of {escape_control_chars(str(column))} and {escape_control_chars(str(beside))}"
    return _moment_statistic(statistic, Measure(name, column, fixed, beside), size)


def _decimal_step(largest: float) -> Decimal:
    """Return a power of ten such that the largest value is at most 10¹² of it."""
    return Decimal(1).scaleb(math.floor(math.log10(largest)) - KEPT_DIGITS)


def _moment_statistic(statistic: str, measure: Measure, size: float) -> NoisyStatistic:
    least, most = measure.fixed_point.units_range if measure.fixed_point else (0, 1)
    return NoisyStatistic(measure, NoiseSpec(statistic, nearest_eighths(size), False), max(abs(least), abs(most), 1))
