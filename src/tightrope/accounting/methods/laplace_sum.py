"""Exact sums of a few Laplace-type losses, from positive terms only (``docs/proofs/laplace-sum.md``)."""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from scipy.special import gammaln

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.base import FlatForm
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.method import EpsilonGuess, Method, approximate_epsilon_at, interpolate_epsilon
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
Counts = tuple[int, ...]
LOG_NEGLIGIBLE = -44.0
"""Log of a bound on the omitted powers, relative to the sum."""
RARE_PROBABILITY = 1e-18
"""Largest probability that the number of uniform losses exceeds the largest number considered."""
STEPS_PER_DOUBLING = 4.0
"""Reaches are rounded up to powers of 2^(1/4), so that values that depend on them are reused for neighboring ε."""
MAX_STATES = 600
"""Largest number of ways to choose how many losses of each group are uniform."""
MAX_POSITIONS = 30_000
"""Largest number of points t over all of them."""
MAX_REACH = 300.0
MIN_SCALE = 1e-6
"""The least scale, relative to the largest: rounding leaves it nine digits."""
MAX_COPIES = 500
MAX_NATS = 300.0
"""k ε beyond which powers leave double precision."""
TINY_SUM = 1e-290
CACHED_SUMS = 32


def powers_for(reach: float) -> int:
    """Return the number of significant odd powers p besides x in Σ x^p/p!, for 0 ≤ x ≤ reach, and a little beyond."""
    quarter = math.ceil(STEPS_PER_DOUBLING * math.log2(max(reach, 1e-300)))
    return _integer_powers(2.0 ** (quarter / STEPS_PER_DOUBLING))


@lru_cache(maxsize=256)
def _integer_powers(reach: float) -> int:
    p = np.arange(1.0, 4 * reach + 60, 2)
    is_significant = (p - 1) * math.log(reach) - gammaln(p + 1) > LOG_NEGLIGIBLE
    return max(2, int(np.count_nonzero(is_significant)) + 2)


def odd_numbers(count: int) -> Floats:
    """Return 1, 3, 5, …: shape [count]."""
    return np.arange(1.0, 2 * count, 2)


def over_factorials(x: Floats, count: int) -> Floats:
    """Return x^p/p! for the odd p, shape [n, count]: each from the one before."""
    p = odd_numbers(count)
    steps = np.multiply.outer(x * x, 1 / np.concatenate([[1.0], p[1:] * (p[1:] - 1)]))
    steps[:, 0] = x
    return np.asarray(np.cumprod(steps, axis=1))


def single_moments(half_width: float, count: int) -> Floats:
    """Return E U^r/r! for r = 0, 2, 4, …, U uniform on ±half_width: h^r/(r+1)!."""
    r = np.arange(2.0, 2 * count, 2)
    return np.cumprod(np.concatenate([[1.0], half_width**2 / (r * (r + 1))]))


def shifted_moment_matrix(moments: Floats) -> Floats:
    """Return for each row of moments the matrix [s, p] of E Y^r/r! at r = p − s, 0 for negative r: [n, s, p]."""
    count = moments.shape[1]
    padded = np.concatenate([np.zeros((len(moments), count - 1)), moments], axis=1)
    return np.lib.stride_tricks.sliding_window_view(padded, count, axis=1)[:, ::-1]


def combine_powers(powers: Floats, matrices: Floats) -> Floats:
    """Return Σ_r E Y^r/r! · x^{p−r}/(p−r)! from x^s/s!, s odd, and ``shifted_moment_matrix`` moments, row by row.

    Shape [n, count].
    """
    return np.asarray(np.einsum("ns,nsp->np", powers, matrices))


def binomial_probabilities(count: int, odds: float) -> Floats:
    """Return probabilities of 0..count successes, by positive ratios from the likeliest; ``odds`` may be 0 or ∞."""
    if not 0 < odds < math.inf:
        certain = np.zeros(count + 1)
        certain[0 if odds == 0 else -1] = 1.0
        return certain
    j = np.arange(count)
    ratios = (count - j) / (j + 1) * odds
    mode = int(np.count_nonzero(ratios > 1))
    above, below = np.cumprod(ratios[mode:]), np.cumprod(1 / ratios[:mode][::-1])[::-1]
    weights = np.concatenate([below, [1.0], above])
    return np.asarray(weights / np.sum(weights))


def largest_likely_count(chances: Floats) -> int:
    """Return the largest count that is reached with a probability above ``RARE_PROBABILITY``."""
    return int(np.count_nonzero(np.cumsum(chances[::-1])[::-1] > RARE_PROBABILITY)) - 1


@lru_cache(maxsize=64)
def coin_probabilities(count: int, fewer: int) -> Floats:
    """Return probabilities of j heads in count − n tosses, shape [fewer + 1, count + 2], a row for each n; 0 beyond."""
    tosses, j = count - np.arange(fewer + 1)[:, None], np.arange(count + 1)[None, :]
    ratios = np.maximum(tosses - j, 0) / (j + 1)
    return np.asarray(np.cumprod(np.concatenate([np.exp2(-tosses.astype(np.float64)), ratios], axis=1), axis=1))


@dataclass(frozen=True)
class MultiScaleSum:
    """``counts`` copies of the ``flats``; positions are in units of the widest ε.

    Of group i, of width w_i (in units of the widest), n_i of k_i losses are uniform, W = Σ n_i w_i, N = Σ n_i.
    With Y their sum and S_{n,p}(t) = (u/2)^p E (Y − t)₊^p / p!, u the unit,

        S_{n,p}(t) = Σ_i n_i ((W − t) S_{n−e_i,p}(t − w_i) + (W + t) S_{n−e_i,p}(t + w_i)) / (2W (N + p)),

    positive terms for |t| < W. For t ≤ −W it is a moment, for t ≥ W it is 0. Widths are rounded so that every t is
    exact. Proofs: ``docs/proofs/laplace-sum.md``.
    """

    flats: tuple[FlatForm, ...]
    counts: Counts

    @property
    def nats_per_unit(self) -> float:
        return max(flat.epsilon for flat in self.flats)

    @property
    def units_per_scale(self) -> float:
        """Positions are multiples of one over this: four times the sum of all widths still has 53 binary digits."""
        return 2.0 ** (51 - math.ceil(math.log2(sum(self.counts))))

    @cached_property
    def integer_widths(self) -> tuple[float, ...]:
        """The scales as integer positions."""
        return tuple(
            round(flat.epsilon / self.nats_per_unit * self.units_per_scale) / self.units_per_scale
            for flat in self.flats
        )

    @cached_property
    def rounding_error_bound(self) -> float:
        """Nats by which rounding the widths may move the sum."""
        pairs = zip(self.flats, self.integer_widths, self.counts, strict=True)
        change = sum(
            n * abs(Fraction(flat.epsilon) - Fraction(w) * Fraction(self.nats_per_unit)) for flat, w, n in pairs
        )
        return float(change) * (1 + 2 * ROUND_OFF)

    def scaled_delta_at(self, theta: float) -> tuple[float, float, float]:
        """Return the log of a factor, the number to multiply it by for δ₀ at θ units, and the relative error."""
        logs = [k * math.log(flat.tilted_mass) for flat, k in zip(self.flats, self.counts, strict=True)]
        log_scale = math.fsum(logs) + theta * self.nats_per_unit / 2
        reach = math.fsum(k * w for k, w in zip(self.counts, self.integer_widths, strict=True)) - theta
        if reach <= 0:
            return log_scale, 0.0, 0.0
        powers = powers_for(reach * self.nats_per_unit / 2)
        sums: list[Floats] = []
        total = 0.0
        for state in _build_states(self.flats, self.counts, self.integer_widths, powers):
            t = theta + state.shifts
            sums.append(state.sums_at_positions(t, sums))
            total += state.expected_excess(t, sums[-1])
        copies = sum(self.counts)
        roundings = copies * (powers + 2 * len(logs) + 32) + 8 * powers + 200
        return log_scale, total, ROUND_OFF * (roundings + 4 * abs(log_scale) + 4 * math.fsum(map(abs, logs)))


@dataclass(frozen=True, slots=True, eq=False)
class _StateTransition:
    """Transition from a state with one uniform loss less: ``copies`` n_i, and the rows of t − w_i and t + w_i."""

    state: int
    copies: int
    down: Indices
    up: Indices


@dataclass(frozen=True, slots=True, eq=False)
class _UniformCountState:
    """Terms for given numbers of uniform losses: positions t − θ of the others, probabilities, and uniform moments."""

    unit: float
    shifts: Floats
    chances: Floats
    half_width: float
    """W."""
    growth: float
    """E e^{uY/2}."""
    moments: Floats
    inverse: Floats
    """1/(N + p)."""
    links: tuple[_StateTransition, ...]

    def sums_at_positions(self, t: Floats, previous: list[Floats]) -> Floats:
        """Return S at every t, shape [positions, powers], from those of the states with fewer uniform losses."""
        beyond = t <= -self.half_width
        sums = np.zeros((len(t), len(self.inverse)))
        sums[beyond] = over_factorials(-t[beyond] * self.unit / 2, len(self.inverse)) @ self.moments
        rows = np.flatnonzero(np.abs(t) < self.half_width)
        if len(rows):
            low, high = (self.half_width - t[rows])[:, None], (self.half_width + t[rows])[:, None]
            total = np.zeros((len(rows), len(self.inverse)))
            for link in self.links:
                last = previous[link.state]
                total += link.copies * (low * last[link.down[rows]] + high * last[link.up[rows]])
            sums[rows] = total * (self.inverse / (2 * self.half_width))
        return sums

    def expected_excess(self, t: Floats, sums: Floats) -> float:
        """Return E 2 sinh(u (S − θ)/2)₊ with this many uniform losses, times the probability of this number."""
        never_negative = self.growth * 2 * np.sinh(np.maximum(-t, 0.0) * self.unit / 2)
        return float(self.chances @ np.where(t <= -self.half_width, never_negative, 2 * np.sum(sums, axis=1)))


@lru_cache(maxsize=8)
def _build_states(
    flats: tuple[FlatForm, ...], counts: Counts, widths: tuple[float, ...], powers: int
) -> tuple[_UniformCountState, ...]:
    """Build the θ-independent part of every choice; each after those with fewer uniform losses."""
    unit = max(flat.epsilon for flat in flats)
    chances = [binomial_probabilities(k, flat.density_odds) for flat, k in zip(flats, counts, strict=True)]
    choices = itertools.product(*(range(largest_likely_count(row) + 1) for row in chances))
    index = {n: i for i, n in enumerate(choices)}
    singles, growths = [], []
    for w in widths:
        half_width = w * unit / 2
        singles.append(single_moments(half_width, powers))
        growths.append(math.sinh(half_width) / half_width)
    # E (uY/2)^r/r!, r even, for every choice.
    moments = {(0,) * len(counts): np.eye(1, powers)[0]}
    for n in itertools.islice(index, 1, None):
        group = int(np.flatnonzero(n)[0])
        moments[n] = np.convolve(moments[_one_less(n, group)], singles[group])[:powers]
    states = []
    for n in index:
        rest = tuple(map(operator.sub, counts, n))
        # For every number of minus signs, group by group: the sum of signs times widths, and the probability.
        shifts, sign_chances = np.zeros(1), np.ones(1)
        for w, k in zip(widths, rest, strict=True):
            shifts = np.add.outer(shifts, np.asarray(w * (k - 2 * np.arange(k + 1)), dtype=np.float64)).ravel()
            sign_chances = np.multiply.outer(sign_chances, binomial_probabilities(k, 1.0)).ravel()
        # To the states with a sign for a uniform loss: t − w has one more minus sign, t + w as many.
        signs = np.indices([k + 1 for k in rest]).reshape(len(rest), -1)
        links = []
        for group in np.flatnonzero(n).tolist():
            shape = [k + 1 + (i == group) for i, k in enumerate(rest)]
            one_more = signs + (np.arange(len(rest)) == group)[:, None]
            down, up = (np.ravel_multi_index(tuple(rows), shape) for rows in (one_more, signs))
            links.append(_StateTransition(index[_one_less(n, group)], n[group], down, up))
        states.append(
            _UniformCountState(
                unit,
                shifts,
                math.prod(float(row[m]) for row, m in zip(chances, n, strict=True)) * sign_chances,
                half_width=math.fsum(map(operator.mul, n, widths)),
                growth=math.prod(map(pow, growths, n)),
                moments=shifted_moment_matrix(moments[n][None, :])[0].copy(),
                inverse=1 / (sum(n) + odd_numbers(powers)),
                links=tuple(links),
            )
        )
    return tuple(states)


def _one_less(n: Counts, group: int) -> Counts:
    return (*n[:group], n[group] - 1, *n[group + 1 :])


def fits_many_scales(flats: tuple[FlatForm, ...], counts: Counts) -> bool:
    """Return whether double precision and a fraction of a second suffice."""
    states = math.prod(k + 1 for k in counts)
    positions = math.prod((k + 1) * (k + 2) // 2 for k in counts)
    reach = math.fsum(k * flat.epsilon for flat, k in zip(flats, counts, strict=True))
    scales = [flat.epsilon for flat in flats]
    similar = min(scales) >= MIN_SCALE * max(scales)
    return similar and states <= MAX_STATES and positions <= MAX_POSITIONS and reach <= MAX_REACH


@dataclass(frozen=True, slots=True)
class SingleScaleSum:
    """``count`` copies of one flat distribution; positions are in units of its ε.

    With n of k losses uniform, Y their sum in units of ε, and θ = q/ε,

        δ₀(q) = m^k e^{q/2} Σ_n Bin(n) Σ_j Bin(j) H_n(θ + k − n − 2j),   H_n(t) = E 2 sinh(ε(Y − t)/2)₊.

    H is Σ_p odd 2 S_{n,p}(t), S_{n,p} = (ε/2)^p E (Y − t)₊^p / p!, and divided differences of truncated powers give

        S_{n,p}(t) = ((n − t) S_{n−1,p}(t − 1) + (n + t) S_{n−1,p}(t + 1)) / (2(n + p)),

    positive terms for |t| < n. For t ≤ −n it is a moment, for t ≥ n it is 0. θ is rounded so that every t is exact.
    Proofs: ``docs/proofs/laplace-sum.md``.
    """

    flat: FlatForm
    count: int

    @property
    def nats_per_unit(self) -> float:
        return self.flat.epsilon

    @property
    def units_per_scale(self) -> float:
        """Positions are multiples of one over this: 3k of them still have 53 binary digits."""
        return 2.0 ** (51 - math.ceil(math.log2(self.count)))

    @property
    def rounding_error_bound(self) -> float:
        """Zero, since the scale is exact."""
        return 0.0

    def scaled_delta_at(self, theta: float) -> tuple[float, float, float]:
        """Return the log of a factor, the number to multiply it by for δ₀ at θε, and the relative error."""
        flat, k = self.flat, self.count
        log_scale = k * math.log(flat.tilted_mass) + theta * flat.epsilon / 2
        if theta >= k:
            return log_scale, 0.0, 0.0
        moments = _moments_of_count(flat, k, powers_for((k - theta) * flat.epsilon / 2))
        value = moments.inner_part(theta) + moments.lower_part(theta)
        n, powers = len(moments.weights) - 1, len(moments.inverse[0])
        roundings = n * (powers + 8) + 24 * k + 8 * powers + 200
        return log_scale, value, ROUND_OFF * (roundings + 4 * abs(log_scale) + 4 * k * abs(math.log(flat.tilted_mass)))


@dataclass(frozen=True, slots=True, eq=False)
class _PrecomputedMoments:
    """Quantities that do not depend on θ."""

    count: int
    epsilon: float
    weights: Floats
    """Probabilities of n uniform losses and j minus signs, shape [n, j]."""
    exponential_weights: Floats
    """The same, times E e^{εY/2}."""
    moments: Floats
    """Moments of n uniform losses."""
    inverse: Floats
    """1/(2(n + p)) for n ≥ 1."""

    def inner_part(self, theta: float) -> float:
        """Return the part of all t in (−n, n): t = θ + k − n − 2j, and t + n is the same for all n at the same j."""
        last = math.ceil((theta + self.count) / 2) - 1
        if last < 0:
            return 0.0
        start = theta + self.count - 2 * last  # in (0, 2], exactly
        n, powers = np.arange(1, len(self.weights)), self.inverse.shape[1]
        below = combine_powers(over_factorials((1 + n - start) * self.epsilon / 2, powers), self.moments[: len(n)])
        up = (start + 2 * np.arange(len(n)))[:, None]
        rows, total = np.zeros((len(n) + 2, powers)), np.zeros(powers)
        for m in range(1, len(n) + 1):
            rows[0] = below[m - 1]
            sums = (2 * m - up[:m]) * rows[:m]
            sums += up[:m] * rows[1 : m + 1]
            sums *= self.inverse[m - 1]
            terms = min(m, last + 1)
            total += self.weights[m, last - terms + 1 : last + 1][::-1] @ sums[:terms]
            rows[1 : m + 1] = sums
        return 2 * float(np.sum(total))

    def lower_part(self, theta: float) -> float:
        """Return the part of all t ≤ −n, at which Y − t is never negative."""
        weights = self.exponential_weights
        n, j = np.arange(len(weights))[:, None], np.arange(weights.shape[1])[None, :]
        t = theta + self.count - n - 2 * j
        return float(np.vdot(weights, np.where(t <= -n, 2 * np.sinh(np.maximum(-t, 0.0) * self.epsilon / 2), 0.0)))


@lru_cache(maxsize=32)
def _moments_of_count(flat: FlatForm, count: int, powers: int) -> _PrecomputedMoments:
    chances = binomial_probabilities(count, flat.density_odds)
    largest = largest_likely_count(chances)
    single, moments = single_moments(flat.epsilon / 2, powers), [np.eye(1, powers)[0]]
    for _ in range(largest):
        moments.append(np.convolve(moments[-1], single)[:powers])
    weights = chances[: largest + 1, None] * coin_probabilities(count, largest)
    growth = (math.sinh(flat.epsilon / 2) / (flat.epsilon / 2)) ** np.arange(largest + 1)[:, None]
    return _PrecomputedMoments(
        count,
        flat.epsilon,
        weights,
        exponential_weights=weights * growth,
        moments=shifted_moment_matrix(np.stack(moments)),
        inverse=1 / (2 * (np.arange(1, max(largest, 1) + 1)[:, None] + odd_numbers(powers))),
    )


def fits_one_scale(flat: FlatForm, count: int) -> bool:
    """Return whether double precision and a fraction of a second suffice."""
    return count <= MAX_COPIES and count * flat.epsilon <= MAX_NATS


class PositiveSum(Protocol):
    """A sum of flat losses, with δ₀ as the log of a factor, a number to multiply it by, and the relative error."""

    @property
    def nats_per_unit(self) -> float:
        """Nats in one unit."""

    @property
    def units_per_scale(self) -> float:
        """Positions are multiples of one over this."""

    @property
    def rounding_error_bound(self) -> float:
        """A bound on the rounding of the sum, in nats."""

    def scaled_delta_at(self, theta: float) -> tuple[float, float, float]: ...


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceSumMethod(Method):
    """The exact sum of flat losses; ``fallback`` is used outside the range of double precision."""

    flats: tuple[FlatForm, ...]
    sum: PositiveSum
    total: Composition
    fallback: Method
    cached: dict[float, Interval] = field(default_factory=dict)
    """Values and errors by position."""
    name = "exact sum"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest_loss + self._rounding_bound(epsilon):
            return self.total.infinite_bounds
        try:
            low, under = self._delta_at_unit(-self._round_down_to_unit(-epsilon - self._rounding_bound(epsilon)))
        except PrecisionError:
            return self.fallback.delta(epsilon)
        low, under = low * (1 - self.total.relative_mass_error), under + self._infinite_error
        return probability_error_bounds(self.total.infinite_mass + low, under)[0], self.delta_upper_bound(epsilon)

    def delta_upper_bound(self, epsilon: float) -> float:
        if epsilon >= self.total.largest_loss + self._rounding_bound(epsilon):
            return self.total.infinite_bounds[1]
        try:
            high, over = self._delta_at_unit(self._round_down_to_unit(epsilon - self._rounding_bound(epsilon)))
        except PrecisionError:
            return self.fallback.delta_upper_bound(epsilon)
        high, over = high * (1 + self.total.relative_mass_error), over + self._infinite_error
        return probability_error_bounds(self.total.infinite_mass + high, over)[1]

    def _rounding_bound(self, epsilon: float) -> float:
        return self.total.rounding_error_bound + self.sum.rounding_error_bound + 4 * ROUND_OFF * abs(epsilon)

    def _round_down_to_unit(self, epsilon: float) -> float:
        """Return the nearest position that is certainly no larger, despite the rounded quotient."""
        theta, fineness = epsilon / self.sum.nats_per_unit, self.sum.units_per_scale
        return math.floor((theta - 2 * ROUND_OFF * abs(theta)) * fineness) / fineness

    @property
    def _infinite_error(self) -> float:
        """The rounding error of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _delta_at_unit(self, theta: float) -> Interval:
        """Return δ₀ at a position, and its error."""
        if theta not in self.cached:
            if len(self.cached) >= CACHED_SUMS:
                self.cached.clear()
            log_scale, value, error = self.sum.scaled_delta_at(theta)
            if not log_scale < 600 or not value > TINY_SUM:
                at = theta * self.sum.nats_per_unit
                raise PrecisionError(f"the sum of {sum(self.total.counts)} losses leaves double precision at {at!r}")
            delta = math.exp(log_scale) * value
            self.cached[theta] = delta, delta * error
        return self.cached[theta]

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return a guess from the saddle point or the largest atom, refined by inverse interpolation."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        rough = approximate_epsilon_at(self._real_cumulant, math.log(rest)) or self._guess_near_maximum(rest)
        return rough and interpolate_epsilon(self.delta_upper_bound, rough, target, self.total.largest_loss)

    def _guess_near_maximum(self, rest: float) -> EpsilonGuess | None:
        """Return a guess just below the largest loss, where only its atom a matters: δ = a (1 − e^{ε − l})."""
        pairs = zip(self.flats, self.total.counts, strict=True)
        atom = math.exp(
            math.fsum(n * (math.log(f.atom) + f.epsilon / 2) if f.atom > 0 else -math.inf for f, n in pairs)
        )
        if not rest < atom:
            return None
        return EpsilonGuess(self.total.largest_loss + math.log1p(-rest / atom), atom / rest)

    def _real_cumulant(self, c: Floats) -> Floats:
        """Return K on the real axis: log of m(c + ½)^k with m(w) = 2a cosh wε + b sinh(wε)/wε."""
        cumulant = np.zeros_like(c)
        for flat, count in zip(self.flats, self.total.counts, strict=True):
            w = (c + 0.5) * flat.epsilon
            down = np.exp(-2 * w)
            cumulant += count * (w + np.log(flat.atom * (1 + down) + flat.spread * (1 - down) / (2 * w)))
        return cumulant


def laplace_sum_method(total: Composition, fallback: Method) -> LaplaceSumMethod | None:
    """Return the exact sum if every distribution is flat and they are few, else None."""
    flats = tuple(law.flat_form for law in total.laws if law.flat_form is not None)
    if not flats or len(flats) < len(total.laws):
        return None
    if len(flats) == 1:
        fits = fits_one_scale(flats[0], total.counts[0])
        return LaplaceSumMethod(flats, SingleScaleSum(flats[0], total.counts[0]), total, fallback) if fits else None
    fits = fits_many_scales(flats, total.counts)
    return LaplaceSumMethod(flats, MultiScaleSum(flats, total.counts), total, fallback) if fits else None
