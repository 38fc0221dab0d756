"""Noisy moments of a group, and the plausible means, variances and covariances of centered values.

Derivation in ``docs/proofs/intervals.md``: at the true parameters, a certain sum of moments is zero, so its noisy
value is pure noise; all parameters at which it is within the noise's width are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np
from scipy import fft

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import bisect_real
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.queries.intervals import OUTSIDE, NoiseTails, half_width, product_width
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import Noise, NoisyStatistic
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import Factor, FixedPoint, FixedProduct, Measure

# Width of a weighted sum of several noises, which it exceeds with at most a given probability.
#
# Proof that every width is large enough: ``docs/proofs/intervals.md``.

CELLS_PER_WIDTH, LATTICE_WIDTHS = 40, 2
"""Lattice cells per width of the heaviest noise, and the extent of the lattice in widths of the sum."""
WEIGHT_LEVELS = 48
"""Weights are rounded up to multiples of the heaviest weight divided by this, so that similar groups share a width."""
JOINT_ROUNDING = 1e-11
"""Bound on the error of sums of probabilities in floats."""


@dataclass(frozen=True, eq=False)  # not slotted: caches what all groups share
class NoiseSum:
    """Widths of weighted sums Σ c_i X_i of independent, symmetric, unimodal noises X_i."""

    tails: tuple[NoiseTails, ...]

    @classmethod
    @lru_cache(maxsize=256)
    def from_noises(cls, noises: tuple[Noise, ...]) -> NoiseSum:
        """Return the joint noise, computed once for all groups."""
        return cls(tuple(noise.noise_tails for noise in noises))

    @cached_property
    def approximate_half_widths(self) -> tuple[float, ...]:
        """The approximate width of each noise, the unit of its weight."""
        return tuple(half_width(tails, OUTSIDE) for tails in self.tails)

    def weighted_sum_width(self, weights: Sequence[float], outside: float) -> float:
        """Return a width that the sum exceeds with probability at most ``outside``, for all |c_i| up to ``weights``."""
        scaled_weights = [
            abs(weight) * half for weight, half in zip(weights, self.approximate_half_widths, strict=True)
        ]
        largest_weight = max(scaled_weights)
        if not 0 < largest_weight < math.inf:
            return largest_weight
        width = largest_weight * _lattice_width(
            self, tuple(math.ceil(WEIGHT_LEVELS * weight / largest_weight) for weight in scaled_weights), outside
        )
        return width if math.isfinite(width) else self._sum_of_widths(weights, outside)

    def _sum_of_widths(self, weights: Sequence[float], outside: float) -> float:
        """Return the sum of the widths of the single noises (union bound), for use if the lattice is too short."""
        weighted_tails = [(abs(weight), tails) for weight, tails in zip(weights, self.tails, strict=True) if weight]
        outside_each = outside * (1 - JOINT_ROUNDING) / len(weighted_tails)
        return math.fsum(weight * half_width(tails, outside_each) for weight, tails in weighted_tails) * (1 + 1e-12)


@lru_cache(maxsize=1 << 14)
def _lattice_width(joint: NoiseSum, levels: tuple[int, ...], outside: float) -> float:
    """Return the width of the sum, from the distributions on a lattice of all c (X + V), V uniform on (−½, ½).

    Within a cell of the lattice the mass is spread evenly, which does not make a distribution more peaked. All
    distributions are symmetric, so their transforms are real. P(|Σ| > t) is convex in t: it is at most its chord
    between two ends of cells.
    """
    used_noises = [index for index, level in enumerate(levels) if level]
    noise_count = len(used_noises)
    cells = math.ceil(CELLS_PER_WIDTH * LATTICE_WIDTHS * math.sqrt(noise_count))
    cell = max(1.0, math.log(OUTSIDE / outside) / 3) / CELLS_PER_WIDTH
    transforms = [_noise_transform(joint, index, levels[index], cells, cell, noise_count) for index in used_noises]
    transform = math.prod(transforms, start=_cell_sum_transform(noise_count, cells))
    # P(n < |Σ| ≤ n + 1), in cells
    masses = np.maximum(fft.dct(transform, type=3), 0.0) / noise_count / cells
    beyond = 1 - np.cumsum(masses)
    sufficient = np.flatnonzero(beyond <= outside * (1 - JOINT_ROUNDING) - JOINT_ROUNDING)
    if len(sufficient) == 0:
        return math.inf
    last = int(sufficient[0])
    missing = max(beyond[last] + masses[last] - (outside * (1 - JOINT_ROUNDING) - JOINT_ROUNDING), 0.0)
    width = (last + min(float(missing / masses[last]), 1.0)) * cell if masses[last] > 0 else (last + 1) * cell
    return (
        width
        + math.fsum(levels[index] / WEIGHT_LEVELS / joint.approximate_half_widths[index] for index in used_noises) / 2
    ) * (1 + 1e-12)


@lru_cache(maxsize=1 << 11)
def _noise_transform(
    joint: NoiseSum, noise_index: int, level: int, cells: int, cell: float, noise_count: int
) -> Floats:
    """Return the cosine transform of the mass of c (X + V) in ``cells`` cells on each side; the rest is left out.

    The lattice of the sum has ``noise_count`` times as many cells, so that nothing is wrapped around its ends.
    """
    width = cell * WEIGHT_LEVELS / level * joint.approximate_half_widths[noise_index]
    beyond = joint.tails[noise_index].smoothed_tail_probability(np.arange(cells + 1, dtype=np.float64) * width)
    masses = np.zeros(noise_count * cells)
    masses[:cells] = np.maximum(beyond[:-1] - beyond[1:], 0.0)
    transform: Floats = fft.dct(masses, type=2)
    return transform


@lru_cache(maxsize=16)
def _cell_sum_transform(noise_count: int, cells: int) -> Floats:
    """Return the transform of the probabilities of the cells in which the sum of ``noise_count`` uniform numbers lies.

    The numbers are uniform on one cell each, and the sum is centered.
    """
    cell_masses = [1.0]
    for count in range(1, noise_count):  # Eulerian numbers, divided by factorials
        before = [0.0, *cell_masses, 0.0]
        cell_masses = [
            ((index + 1) * before[index + 1] + (count + 1 - index) * before[index]) / (count + 1)
            for index in range(count + 1)
        ]
    frequencies = np.pi / (noise_count * cells) * np.arange(noise_count * cells)
    centers = np.arange(noise_count) - (noise_count - 1) / 2
    transform: Floats = np.cos(frequencies[:, None] * centers) @ np.array(cell_masses)
    return transform


@dataclass(frozen=True, slots=True)
class Span:
    """All numbers from ``low`` to ``high``; the ends of results are rounded to the nearest double.

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
        low, high = (other.low, other.high) if isinstance(other, Span) else (other, other)
        ends = [self.low * low, self.low * high, self.high * low, self.high * high]
        if math.inf in (abs(low), abs(high), abs(self.low), abs(self.high)):  # 0 times ∞ is 0
            ends = [0.0 if math.isnan(end) else end for end in ends]
        return Span(min(ends), max(ends))

    def clip_to_span(self, other: Span) -> Span:
        """Return the intersection with another span; if empty, the other's nearest end."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low <= high:
            return Span(low, high)
        nearest_end = other.low if self.high < other.low else other.high
        return Span(nearest_end, nearest_end)

    def divide_by_positive(self, positive: Span) -> Span:
        """Return all quotients by positive numbers; unbounded if the divisor may be zero."""
        if not positive.low > 0:
            return Span(-math.inf, math.inf)
        return self * Span(1 / positive.high, 1 / positive.low)

    def squared_span(self) -> Span:
        """Return all squares."""
        smallest = 0.0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
        return Span(smallest, self.largest_magnitude**2)


END_STEPS, END_TOLERANCE = 8, 2e-2
"""Most steps that narrow one end of an interval, and the change, relative to its distance, at which they stop."""


def narrow_end(observed: float, end: float, plausible_in: Callable[[Span], Span]) -> float:
    """Return an end that is nearer to the observed parameter, between which and ``end`` no parameter is plausible.

    Of ``plausible_in(piece)``, a range, only the part in ``piece`` is used: it contains all plausible parameters there.
    First the whole range is examined, then in each step the half of the remaining range that is farther from the
    observed parameter.
    """
    for step in range(END_STEPS):
        distance, middle = abs(end - observed), (observed + end) / 2 if step else observed
        piece = Span(min(middle, end), max(middle, end))
        plausible = plausible_in(piece)
        following = max(min(end, plausible.high), middle) if end >= observed else min(max(end, plausible.low), middle)
        is_small_step = step > 0 and abs(end - following) <= END_TOLERANCE * distance
        end = following
        if is_small_step:
            break
    return end


def span_around(middle: float, width: float) -> Span:
    """Return ``middle`` ± ``width``."""
    return Span(middle - width, middle + width)


def _as_span(other: Span | float) -> Span:
    return other if isinstance(other, Span) else Span(other, other)


USABLE, X, Y, XX, YY, XY = "usable", "x", "y", "xx", "yy", "xy"
NUISANCE_PROBABILITY = 1e-3
"""The maximum probability that a nuisance parameter lies outside its own interval."""
SMALLEST_EXPONENT, EXPONENT_TOLERANCE = -9.0, 0.05
"""Decimal logarithms of probabilities: the smallest one that is distinguished from 0, and the tolerance."""
NARROWING_STEPS = 3
"""Iterations: in each, the range of a parameter narrows the weights of the noise, and these narrow the range."""

Weights = Mapping[str, Span | float]
"""The factor of each noise, by name, or the range of that factor."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisySample:
    """The noisy centered moments of a group in natural units: ``sums`` by name, and the number of complete rows."""

    noises: Noises
    sums: Mapping[str, float]
    usable: int
    outside: float = OUTSIDE
    """The largest probability with which an interval may miss."""

    @classmethod
    def from_integers(cls, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> NoisySample:
        """Return the moments from noisy integers, plus the constants that were subtracted from each square."""
        usable = integers[USABLE]
        sums = {
            name: integers[name] * noises[name].step_size + usable * square_offset(noises[name])
            for name in noises
            if name != USABLE
        }
        return cls(noises, sums, usable, outside)

    def main_error_probability(self, nuisances: int) -> float:
        """Return the part of ``outside`` for the parameter itself; the rest is for its nuisances and the row count."""
        return self.outside - NUISANCE_PROBABILITY * (nuisances + 1)

    def centered_value_bound(self, name: str) -> float:
        """Return the largest magnitude of a centered value, rounded up."""
        return abs(self.noises[name].vector.sensitivity) * self.noises[name].step_size * (1 + 4 * ROUND_OFF)

    @property
    def largest_rows(self) -> float:
        """The noisy number of rows plus a width that its noise exceeds with ``NUISANCE_PROBABILITY``."""
        return self.usable + _noise_half_width(self.noises[USABLE])

    def noise_width(self, weights: Weights, outside: float) -> float:
        """Return the width of the weighted noises plus the rounding to grids: at most one step per row in each sum.

        The number of rows is at most ``largest_rows``.
        """
        used_weights = {name: weights[name] for name in self.noises if name in weights}
        weights_in_steps = {
            name: (weight.largest_magnitude if isinstance(weight, Span) else abs(weight)) * self.noises[name].step_size
            for name, weight in used_weights.items()
        }
        noise = NoiseSum.from_noises(tuple(self.noises[name] for name in weights_in_steps)).weighted_sum_width(
            tuple(weights_in_steps.values()), outside
        )
        return noise + self.largest_rows * math.fsum(
            weight_in_steps for name, weight_in_steps in weights_in_steps.items() if name != USABLE
        )

    def estimate_mean(self, name: str) -> NoisyMean:
        """Return the mean, with a span that misses it with probability at most ``NUISANCE_PROBABILITY``."""
        value_bound = self.centered_value_bound(name)
        span, noisy_mean = Span(-value_bound, value_bound), self.sums[name] / self.usable
        for _ in range(NARROWING_STEPS):
            noise_bound = self.noise_width({name: 1.0, USABLE: span}, NUISANCE_PROBABILITY) / self.usable
            span = span_around(noisy_mean, noise_bound).clip_to_span(span)
        return NoisyMean(noisy_mean, noise_bound, span)

    def product_of_mean_errors(self, x: NoisyMean, y: NoisyMean) -> float:
        """Return a bound on |n times the product of the errors of both means|.

        It is exceeded with probability at most ``NUISANCE_PROBABILITY``, and at most the product of both noise bounds.
        """
        rows, step_x, step_y = self.largest_rows, self.noises[X].step_size, self.noises[Y].step_size
        width = product_width(
            self.noises[X].noise_tails,
            self.noises[Y].noise_tails,
            self.noises[USABLE].noise_tails,
            (x.span.largest_magnitude / step_x, y.span.largest_magnitude / step_y),
            NUISANCE_PROBABILITY,
        )
        # Both sums are rounded by at most one step a row.
        rounding = rows * (step_x * y.noise_bound + step_y * x.noise_bound + rows / self.usable * step_x * step_y)
        largest = self.usable * x.noise_bound * y.noise_bound
        return min(width * step_x * step_y / self.usable + rounding, largest)


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """An observed mean, its largest plausible error, and the span of plausible means."""

    value: float
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
    span, noisy_value = Span(0.0, sample.centered_value_bound(name) ** 2), noisy_variance(sample, name)
    for _ in range(NARROWING_STEPS):
        count_weight = mean.span.squared_span() + square_offset(sample.noises[name * 2]) - span
        width = sample.noise_width({name * 2: 1.0, name: mean.span * 2, USABLE: count_weight}, outside)
        low, high = (noisy_value - width) / sample.usable, (noisy_value + width) / sample.usable + mean.noise_bound**2
        span = Span(low, high).clip_to_span(span)
    return span


def covariance_span(
    sample: NoisySample, means: tuple[NoisyMean, NoisyMean], product_of_errors: float, outside: float
) -> Span:
    """Return the plausible covariances c: Sxy − m Sy − k Sx + m k N − c N is Xxy − m Xy − k Xx + (m k − c) Y.

    ``product_of_errors``: see ``NoisySample.product_of_mean_errors``.
    """
    largest_covariance, noisy_value = (
        sample.centered_value_bound(X) * sample.centered_value_bound(Y),
        noisy_covariance(sample),
    )
    span = Span(-largest_covariance, largest_covariance)
    for _ in range(NARROWING_STEPS):
        width = sample.noise_width(covariance_noise(means, span), outside)
        half_width = (width + product_of_errors) / sample.usable
        span = span_around(noisy_value / sample.usable, half_width).clip_to_span(span)
    return span


def hidden_variance_probability(sample: NoisySample, name: str, needed: float) -> float:
    """Return a bound on P(the noisy n times the variance is below ``needed``), if the noise-free moments are these."""
    margin = noisy_variance(sample, name) - needed
    if not margin > 0:
        return 1.0
    mean = sample.estimate_mean(name).span
    weights: Weights = {
        name * 2: 1.0,
        name: mean * 2,
        USABLE: mean.squared_span() + square_offset(sample.noises[name * 2]),
    }

    def is_exceeded_rarely(exponent: float) -> bool:
        """Return whether the noise exceeds the margin with probability at most 10 to this power."""
        return sample.noise_width(weights, math.pow(10, exponent)) <= margin

    exponent = SMALLEST_EXPONENT
    if not is_exceeded_rarely(exponent):
        exponent = bisect_real(is_exceeded_rarely, exponent, 0.0, side="passes", within=EXPONENT_TOLERANCE)
    return math.pow(10, exponent) / 2


def covariance_noise(means: tuple[NoisyMean, NoisyMean], covariance: Span | float) -> Weights:
    """Return the weights of the noises in n times the covariance."""
    x, y = (mean.span for mean in means)
    return {XY: 1.0, Y: x, X: y, USABLE: x * y - covariance}


def square_offset(noise: Noise) -> float:
    """Return the constant subtracted from each row's square to halve the sensitivity."""
    fixed_point = noise.vector.measure.fixed_point
    return fixed_point.center * noise.step_size if isinstance(fixed_point, FixedPoint | FixedProduct) else 0.0


@lru_cache(maxsize=64)
def _noise_half_width(noise: Noise) -> float:
    return noise.half_width(1 - NUISANCE_PROBABILITY)


TYPICAL_MEAN_SQUARE = 1 / 9
"""The mean square of centered values for which errors are stated, relative to the largest square."""
ASSUMED_CORRELATION = 0.5
"""The correlation for which errors are stated."""
MEAN_TO_WIDTH = 0.41
"""E|X| divided by the 95 % half-width, for a normal distribution; less for heavier tails."""
TYPICAL_VALUES_NOTE = (
    "Errors are stated for values around the middle of their range, with a standard deviation of a sixth of it."
)
MISSING_VALUES_NOTE = "Rows in which either value is missing are left out."


def expected_error_of_record(record: Record) -> tuple[float, float]:
    """Return E|error| (approximate) and the 95 % half-width, from the record of noise-free values; ∞ if unbounded."""
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
"""Decimal digits of the largest value that are kept: a row adds less than 2⁴⁰, the limit for scaled noise."""
NARROWEST_RANGE, MAX_FIXED_POINT = 1e-100, 1e100
"""Limits of ranges whose squares, and quotients of squares, fit into a double."""


def centered_factor(name: str, bounds: tuple[float, float]) -> Factor:
    """Return values counted from the middle of their range; raises ``PlanError`` if squares do not fit a double."""
    low, high = bounds
    if not (max(abs(low), abs(high)) <= MAX_FIXED_POINT and high - low >= NARROWEST_RANGE):
        expected = f"a range from {NARROWEST_RANGE:g} wide, within {MAX_FIXED_POINT:g} of zero"
        raise PlanError(name, bounds, expected, "measure in other units, so that the numbers are about one")
    return Factor(low, high, low + (high - low) / 2)


def centered_bound(factor: Factor) -> float:
    """Return the largest magnitude of a centered value."""
    return max(map(abs, factor.factor_range))


def usable_rows(name: str, column: Term, other_column: Term | None, size: float) -> NoisyStatistic:
    """Return the number of rows in which no value is NULL or NaN."""
    return NoisyStatistic(
        Measure(name, column, None, other_column), NoiseSpec("usable rows", nearest_eighths(size), True), 1
    )


def centered_sum(name: str, column: Term, factor: Factor, other_column: Term | None, size: float) -> NoisyStatistic:
    """Return the sum of centered values."""
    fixed_point = FixedProduct((factor,), _decimal_step(centered_bound(factor)))
    return _moment_statistic(
        f"sum of {escape_control_chars(str(column))}", Measure(name, column, fixed_point, other_column), size
    )


def centered_squares(name: str, column: Term, factor: Factor, other_column: Term | None, size: float) -> NoisyStatistic:
    """Return the sum of squares, each minus half of its maximum, which halves the sensitivity."""
    half_maximum = centered_bound(factor) ** 2 / 2
    step = _decimal_step(half_maximum)
    fixed_point = FixedProduct((factor,), step, center=math.floor(half_maximum / float(step) + 0.5), squared=True)
    return _moment_statistic(
        f"sum of squares of {escape_control_chars(str(column))}", Measure(name, column, fixed_point, other_column), size
    )


def centered_products(
    name: str, columns: tuple[Term, Term], factors: tuple[Factor, Factor], size: float
) -> NoisyStatistic:
    """Return the sum of products of two centered values."""
    column, other_column = columns
    fixed_point = FixedProduct(factors, _decimal_step(centered_bound(factors[0]) * centered_bound(factors[1])))
    statistic = f"sum of products of {escape_control_chars(str(column))} and {escape_control_chars(str(other_column))}"
    return _moment_statistic(statistic, Measure(name, column, fixed_point, other_column), size)


def _decimal_step(largest: float) -> Decimal:
    """Return a power of ten such that the largest value is at most 10¹² steps."""
    return Decimal(1).scaleb(math.floor(math.log10(largest)) - KEPT_DIGITS)


def _moment_statistic(statistic: str, measure: Measure, size: float) -> NoisyStatistic:
    smallest, largest = measure.fixed_point.units_range if measure.fixed_point else (0, 1)
    return NoisyStatistic(
        measure, NoiseSpec(statistic, nearest_eighths(size), False), max(abs(smallest), abs(largest), 1)
    )
