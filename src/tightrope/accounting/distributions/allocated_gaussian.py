"""Random allocation: Gaussian noise in each of t steps, and every example in exactly one of them, at random.

The dominating pair of an epoch is the mean of N(e_i, σ²I) over i against N(0, σ²I) in t dimensions. Under the second
one its ratio is S = (1/t) Σ W_i with W = e^{μz − μ²/2}, z normal and μ = 1/σ, so δ is the price of an option on S:
E(S − K)₊ at K = e^ε if a record is removed, e^ε E(e^{−ε} − S)₊ if it is added. Prices are integrals of
e^{sK} φ(s/t)^t/s², φ(s) = E e^{−sW}, by the trapezoidal rule on Re s = c, in extended precision where the processor has
it: errors are enclosed by what the arithmetic has (``docs/proofs/allocation.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tightrope.accounting.distributions.base import (
    BoundArrays,
    LossDistribution,
    bounds_by_sign_of_epsilon,
    bounds_midpoint,
    relative_half_width,
)
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells, loss_step_multiples
from tightrope.accounting.distributions.profile import kink_masses
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats

Reals = NDArray[np.longdouble]
LongComplexes = NDArray[np.clongdouble]
UNIT = float(np.finfo(np.longdouble).eps)
PI = np.longdouble("3.14159265358979323846264338327950288")
SMALL_EXPONENT, SERIES_TERMS = 0.5, 26
"""Exponents up to which e^a − 1 − a is a series; so many terms leave less than 1e-29 of it."""
MAX_LIFT, LIFTS_PER_UNIT, MAX_STRIP = 1.5, 16, 3.0
"""Largest distance of the line of the normal variable from the real axis, and of the strip around it."""
RANGE = 11.0
"""Values of the normal variable beyond this are left out."""
QUADRATURE_NATS, REAL_NATS = 56.0, 44.0
"""The quadrature is off by e to minus this; that of bounds by e to minus the second one."""
ALIAS_NATS = 29.0
TAIL_NATS = 50.0
"""What is beyond the last node is at most about e to minus this."""
MAX_CONTROL_DEVIATION = 0.25
MAX_INTEGRAL_NODES, MAX_STEEPER = 1 << 14, 3
MAX_ROTATION, ROTATIONS = 12.0, 65
"""Lines of the normal variable that are tried for a bound on a modulus."""
NODES_AT_ONCE, DISTANCES_AT_ONCE = 1 << 15, 64
LINES_OF_PUTS = 60
NORMAL_ERROR, ROUNDING = 1e-13, 4e-16
"""Relative errors of a price under the normal law, and of conversions to double precision."""
TABLE_ERROR, LAST_ERROR, LEAST_TABULATED = 1e-11, 0.02, 1e-25
"""Relative errors of δ in cells, and at their last loss; δ at the last loss at least."""
SMALLEST_END, MAX_TABLE = 1e-6, 1 << 14
KNOWN = 1e-10
"""Chernoff's bounds use lines on which the transform is known this well."""
LARGEST_EPSILON, MAX_TILT = 40.0, 600.0


def expm1_less_argument(a: LongComplexes) -> LongComplexes:
    """Return e^a − 1 − a with full relative accuracy."""
    is_small = np.abs(a) < SMALL_EXPONENT
    result = np.exp(np.where(is_small, 0, a)) - 1 - a
    small = a[is_small]
    term = small * small / 2
    total = term.copy()
    for power in range(3, SERIES_TERMS):
        term = term * small / power
        total += term
    result[is_small] = total
    return result


def expm1(a: LongComplexes) -> LongComplexes:
    """Return e^a − 1."""
    return np.asarray(np.where(np.abs(a) < SMALL_EXPONENT, expm1_less_argument(a) + a, np.exp(a) - 1))


def log1p(x: LongComplexes) -> LongComplexes:
    """Return log(1 + x)."""
    return np.asarray(np.log1p(2 * x.real + x.real**2 + x.imag**2) / 2 + 1j * np.arctan2(x.imag, 1 + x.real))


def laplace_excess(mu: float, orders: LongComplexes) -> tuple[LongComplexes, Floats]:
    """Return E e^{−s(W − 1)} − 1 at orders s with 0 < Re s, Im s ≥ 0, and bounds on its error.

    The normal variable runs on a line below the real axis, on which W has nearly the angle opposite to s; E(W − 1) = 0,
    so that only e^a − 1 − a is summed, with a = −s(W − 1).
    """
    angle = np.arctan2(orders.imag, orders.real).astype(np.float64)
    lift = np.floor(np.minimum(angle / mu, MAX_LIFT) * LIFTS_PER_UNIT) / LIFTS_PER_UNIT  # few different ones
    strip = np.minimum((math.pi / 2 - (angle - mu * lift)) / mu * (1 - 1e-6), MAX_STRIP)
    nats = QUADRATURE_NATS + float(np.max(orders.real))
    step = float(np.min(2 * math.pi * strip / (nats + (lift + strip) ** 2 / 2 + 1)))
    z = step * np.arange(math.floor(-RANGE / step), math.ceil((RANGE + mu) / step) + 1).astype(np.longdouble)
    values, errors = np.zeros(len(orders), dtype=np.clongdouble), np.zeros(len(orders))
    lifts, positions = np.unique(lift, return_inverse=True)
    lines = z[None, :] - 1j * lifts[:, None].astype(np.longdouble)
    densities = np.exp(-lines * lines / 2) * (np.longdouble(step) / np.sqrt(2 * PI))
    ratios, sizes = np.exp(np.longdouble(mu) * lines - np.longdouble(mu) ** 2 / 2), np.abs(lines).astype(np.float64)
    weights = np.abs(densities).astype(np.float64)
    spreads = np.abs(ratios).astype(np.float64) * (4 * mu * (sizes + mu) + 16)
    rows = max(1, NODES_AT_ONCE // len(z))
    for first in range(0, len(orders), rows):
        part = slice(first, first + rows)
        s, line = orders[part, None], positions[part]
        exponent = -s * (ratios[line] - 1)
        growth = expm1_less_argument(exponent)
        values[part] = np.sum(densities[line] * growth, axis=1)
        # Rounding of the density, of the exponent and of the sum.
        moved = np.abs(s).astype(np.float64) * spreads[line] * np.abs(growth + exponent).astype(np.float64)
        grown = np.abs(growth).astype(np.float64) * (4 * sizes[line] ** 2 + 48)
        errors[part] = UNIT * np.sum(weights[line] * (grown + moved), axis=1)
    real, size = orders.real.astype(np.float64), np.abs(orders).astype(np.float64)
    lifted, factor = np.exp(lift**2 / 2), np.exp(real)
    outside = lifted * (special.ndtr(-RANGE) * (4 + 4 * size) + factor * outside_mass(mu, real))
    return values, errors + outside + 3 * math.exp(-nats) * factor * (1 + size)


def outside_mass(mu: float, orders: Floats) -> Floats:
    """Return bounds on E e^{−rW} over values of the normal variable below −R, at real r ≥ 0 [n]; ∞ if it is not small.

    W is convex in z, so that −rW is below its tangent at −R, of slope −g: the rest is e^{−R²/2 − rW}/(R − g) at most.
    """
    edge = math.exp(-mu * RANGE - mu**2 / 2)
    gap = RANGE - orders * mu * edge
    mass = np.exp(-RANGE * RANGE / 2 - orders * edge) / math.sqrt(2 * math.pi)
    return np.where(gap > 1, mass / np.maximum(gap, 1.0), np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class AllocationLine:
    """Nodes s = c + ihn of one line; the logarithm of the transform at each, its error, and a bound on the rest."""

    c: float
    period: float
    """2π/h: strikes of aliases are multiples of it away."""
    orders: LongComplexes
    exponents: LongComplexes
    errors: Floats
    """Relative errors of the transform."""
    log_peak: float
    log_tail: float
    """Log of a bound on |transform| beyond the last node."""

    @classmethod
    def from_contour(cls, mu: float, steps: int, c: float, period: float) -> AllocationLine:
        """Return the nodes up to the height at which a bound on the transform is small."""
        base = float(laplace_excess(mu, np.array([c / steps], dtype=np.clongdouble))[0].real[0])
        log_peak = steps * math.log1p(base)
        height = steps * truncation_height(mu, c / steps, math.log1p(base) - c / steps, TAIL_NATS / steps)
        count = math.ceil(height * period / (2 * math.pi)) + 1
        if not count <= MAX_INTEGRAL_NODES:
            raise PrecisionError(f"the integral needs {count} nodes, more than {MAX_INTEGRAL_NODES}")
        orders = np.longdouble(c) + 1j * (2 * PI / np.longdouble(period)) * np.arange(count).astype(np.longdouble)
        excess, errors = laplace_excess(mu, orders / steps)
        size = np.abs(1 + excess).astype(np.float64)
        is_known = errors < size / 2
        bound = steps * np.log(size + errors)  # where the error is as large as the value
        exponents = np.where(is_known, steps * log1p(np.where(is_known, excess, 0)), bound)
        absolute = steps * errors / np.where(is_known, size, 1.0) * 1.5 + 8 * UNIT * np.abs(exponents).astype(
            np.float64
        )
        relative = np.where(is_known, np.expm1(np.minimum(absolute, 50.0)), 2.0)
        return cls(c, period, orders, exponents, relative, log_peak, log_peak + 1e-9 - TAIL_NATS)

    @property
    def truncation_factor(self) -> float:
        """A factor of a bound on the sum beyond the last node."""
        height = float(self.orders[-1].imag)
        return (1 + 2 * math.pi / (self.period * height)) / (math.pi * height)

    def powers(self, distances: Reals) -> LongComplexes:
        """Return e^{i d Im s} for distances [k] at each node [n], shape [k, n], as products of two powers."""
        count = len(self.orders)
        row = math.isqrt(count) + 1
        step = 2 * PI / np.longdouble(self.period)
        fine = np.exp(1j * step * np.arange(row).astype(np.longdouble) * distances[:, None])
        coarse = np.exp(1j * step * row * np.arange(count // row + 1) * distances[:, None])
        return np.asarray((coarse[:, :, None] * fine[:, None, :]).reshape(len(distances), -1)[:, :count])

    def integrate(self, integrand: LongComplexes, errors: Floats, distances: Reals) -> tuple[Reals, Floats]:
        """Return (h/2π) Σ over all nodes of the integrand e^{i d Im s}/s² [k], and bounds on the rounding.

        ``errors``: of the integrand at each node; both are for half of the nodes, which are conjugate in pairs.
        """
        weights = np.full(len(self.orders), 2 / np.longdouble(self.period))
        weights[0] /= 2
        scaled, size = integrand / self.orders**2 * weights, np.abs(self.orders).astype(np.float64)
        moved = float(np.sum(errors / size**2 * weights.astype(np.float64)))
        absolute = np.abs(scaled).astype(np.float64)
        slope, level = 4 * UNIT * float(np.dot(absolute, size)), 80 * UNIT * float(np.sum(absolute))
        values = []
        for first in range(0, len(distances), DISTANCES_AT_ONCE):
            powers = self.powers(distances[first : first + DISTANCES_AT_ONCE])
            values.append(np.sum(np.ascontiguousarray((powers * scaled).real), axis=1))
        return np.concatenate(values), moved + level + slope * np.abs(distances).astype(np.float64)


def log_modulus_bound(mu: float, c: float, y: float) -> float:
    """Return log of a bound on |E e^{−sW}| for all s = c + iy' with y' ≥ y.

    On the line Im z = −θ it is at most e^{θ²/2} E e^{−rW}, r = c cos μθ + y sin μθ, for every θ in [0, π/2μ].
    """
    theta = np.geomspace(1e-4, 1.0, ROTATIONS) * min(math.pi / (2 * mu), MAX_ROTATION)
    real = c * np.cos(mu * theta) + y * np.sin(mu * theta)
    return float(np.min(theta**2 / 2 + log_real_transform(mu, real))) + 1e-12


def log_real_transform(mu: float, orders: Floats) -> Floats:
    """Return upper bounds on log E e^{−rW} at real r ≥ 0 [n].

    In a strip of half-width d around the real line the integrand's modulus integrates to e^{d²/2} E e^{−r cos(μd) W}.
    """
    strip = min(math.pi / (2 * mu), MAX_STRIP)
    step = 2 * math.pi * strip / (REAL_NATS + strip**2 / 2)
    z = step * np.arange(math.floor(-RANGE / step), math.ceil(RANGE / step) + 1)
    ratio, density = np.exp(mu * z - mu**2 / 2), np.exp(-z * z / 2) * step / math.sqrt(2 * math.pi)
    with np.errstate(under="ignore"):
        sums = np.exp(-orders[:, None] * ratio) @ density
        aliases = np.exp(-orders[:, None] * max(math.cos(mu * strip), 0.0) * ratio) @ density
        beyond = special.ndtr(-RANGE) * np.exp(-orders * math.exp(mu * RANGE - mu**2 / 2))
        bound = sums * (1 + 1e-13) + 3 * math.exp(-REAL_NATS) * (aliases + 3 * math.exp(-REAL_NATS))
        bound += outside_mass(mu, orders) + beyond
    return np.asarray(np.log(bound))


def truncation_height(mu: float, c: float, log_size: float, nats: float) -> float:
    """Return a height from which on the modulus is below e^{``log_size`` − nats}."""
    low, high = 0.0, 1e-3
    while log_modulus_bound(mu, c, high) > log_size - nats:
        low, high = high, 2 * high
        if not high < 1e9:
            raise PrecisionError("the transform of a random allocation decays too slowly")
    for _ in range(5):
        middle = (low + high) / 2
        low, high = (middle, high) if log_modulus_bound(mu, c, middle) > log_size - nats else (low, middle)
    return high


@dataclass(frozen=True, slots=True)
class MeanRatioPrices:
    """Prices of options on S, the mean of t independent ratios W."""

    mu: float
    steps: int

    @property
    def deviation(self) -> float:
        """The standard deviation of S, or a large number."""
        return math.sqrt(math.expm1(min(self.mu**2, 600.0)) / self.steps)

    def call(self, excess: Reals) -> tuple[Reals, Floats]:
        """Return E(S − 1 − x)₊ at x ≥ 0 [k] and bounds on its error.

        The price under a normal S of the same mean is subtracted: its integrand has the same pole at 0.
        """
        control = min(self.deviation, MAX_CONTROL_DEVIATION)
        halvings = np.ceil(np.log2(np.maximum(excess.astype(np.float64) / (2 * control), 1.0))).astype(int)
        values, errors = np.zeros_like(excess), np.zeros(len(excess))
        for halving in np.unique(halvings).tolist():
            chosen = halvings == halving
            errors[chosen] = math.inf
            for steeper in range(min(MAX_STEEPER, halving) + 1):  # a longer step, at a loss of digits; c ≤ 1/τ
                try:
                    values[chosen], errors[chosen] = self._call_on_line(excess[chosen], control, (halving, steeper))
                    break
                except PrecisionError:
                    continue
        return values, errors

    def _call_on_line(self, excess: Reals, control: float, place: tuple[int, int]) -> tuple[Reals, Floats]:
        """Return the calls on the line of c = 2^{−halving + steeper}/τ, at strikes with cx up to 2^{1 + steeper}."""
        halving, steeper = place
        c = 0.5 ** (halving - steeper) / control
        line = _cached_line(self.mu, self.steps, c, max(ALIAS_NATS / c, 1 + 2.0 ** (1 + steeper) / c))
        normal = line.orders**2 * (np.longdouble(control) ** 2 / 2)
        difference, base, transform = line.exponents - normal, np.exp(normal), np.exp(line.exponents)
        near = np.abs(difference) < SMALL_EXPONENT
        integrand = np.where(near, base * expm1(np.where(near, difference, 0)), transform - base)
        error = np.abs(transform).astype(np.float64) * line.errors
        error += np.abs(base).astype(np.float64) * (8 * UNIT * np.abs(normal).astype(np.float64))
        error += np.abs(integrand).astype(np.float64) * (8 * UNIT)
        values, errors = line.integrate(integrand, error, excess)
        scale = np.exp(c * excess)
        values, errors = values * scale, errors * scale.astype(np.float64)
        x = excess.astype(np.float64)
        aliases = [_normal_price(x + n * line.period, control, -n * c * line.period) for n in range(-2, 3)]
        normal_prices = np.sum(aliases, axis=0)
        values = values + normal_prices
        height = float(line.orders[-1].imag)
        tails = math.exp(line.log_tail) + math.exp((c * c - height * height) * control**2 / 2)
        errors += np.exp(c * x) * line.truncation_factor * tails + normal_prices * NORMAL_ERROR
        # Aliases of the price itself are positive and at most this part of it.
        errors += np.abs(values).astype(np.float64) * 1.01 * math.exp(-c * line.period)
        return values, errors

    def put(self, shortfall: Reals) -> tuple[Reals, Floats]:
        """Return E(1 − x − S)₊ at 0 ≤ x < 1 [k]: values, and bounds on their errors.

        Where no line has a digit, the value is half of Chernoff's bound, and so is the error.
        """
        orders, periods, log_sizes = _put_lines(self.mu, self.steps)
        x = shortfall.astype(np.float64)
        heights = log_sizes[None, :] - x[:, None] * orders
        best = np.argmin(heights, axis=1)
        chernoff = np.min(heights + np.log(orders) - 1 + 1e-9, axis=1)  # (K − S)₊ ≤ e^{c(K − S)}/(ec)
        values = np.exp(chernoff.astype(np.longdouble)) / 2
        errors = values.astype(np.float64) * (1 + 1e-12)
        for index in np.unique(best).tolist():
            chosen = best == index
            try:
                line = _cached_line(self.mu, self.steps, float(orders[index]), float(periods[index]))
            except PrecisionError:
                continue
            transform = np.exp(line.exponents - line.log_peak)
            sums, error = line.integrate(
                transform, np.abs(transform).astype(np.float64) * line.errors, -shortfall[chosen]
            )
            scale = np.exp(line.log_peak - line.c * shortfall[chosen])
            rate = line.c * line.period
            error = (error + math.exp(line.log_tail - line.log_peak) * line.truncation_factor) * scale.astype(
                np.float64
            )
            scales = 8 * UNIT * (abs(line.log_peak) + line.c * x[chosen] + 8)
            error += np.abs(sums * scale).astype(np.float64) * scales
            error += (1 + line.period) * math.exp(-rate) / math.expm1(-rate) ** 2
            better = np.isfinite(error) & (error < errors[chosen])
            values[chosen] = np.where(better, sums * scale, values[chosen])
            errors[chosen] = np.where(better, error, errors[chosen])
        return values, errors


@lru_cache(maxsize=64)
def _cached_line(mu: float, steps: int, c: float, period: float) -> AllocationLine:
    return AllocationLine.from_contour(mu, steps, c, period)


@lru_cache(maxsize=16)
def _put_lines(mu: float, steps: int) -> tuple[Floats, Floats, Floats]:
    """Return lines c of puts, their periods, and the logarithm of the integrand at c without the strike.

    The period is long enough for the strike whose saddle is near c, by the slope of the integrand.
    """
    deviation = math.sqrt(math.expm1(min(mu**2, 600.0)) / steps)
    orders = np.exp(np.arange(-4, LINES_OF_PUTS) * math.log(2) / 4) / max(deviation, 1e-3)
    orders = orders[orders <= MAX_TILT * steps]
    values, errors = laplace_excess(mu, (orders / steps).astype(np.clongdouble))
    is_known = steps * errors < KNOWN * np.abs(1 + values).astype(np.float64)
    orders, values = orders[is_known], values[is_known]
    log_sizes = steps * np.log1p(values.real.astype(np.float64)) - 2 * np.log(orders)
    strikes = np.gradient(log_sizes, orders)
    nats = ALIAS_NATS + np.maximum(0.0, orders * strikes - log_sizes) + np.log1p(orders)
    return orders, np.maximum(nats / orders, 1.0), log_sizes


def _normal_price(x: Floats, deviation: float, log_factor: float) -> Floats:
    """Return e^{``log_factor``} E(Z − |x|)₊ for a normal Z with mean 0, without overflow."""
    d = np.abs(x) / deviation
    mills = math.sqrt(math.pi / 2) * special.erfcx(d / math.sqrt(2))
    density = np.exp(np.clip(log_factor - d * d / 2, -745.0, 700.0)) / math.sqrt(2 * math.pi)
    return np.asarray(deviation * density * np.maximum(1 - d * mills, 0.0))


@dataclass(frozen=True, slots=True)
class AllocatedGaussian(LossDistribution):
    """The loss of one epoch of random allocation in one direction: removing a record if ``remove``, else adding one."""

    mu: float
    steps: int
    remove: bool

    @property
    def infinite_mass(self) -> float:
        return 0.0

    @property
    def reverse_infinity_mass(self) -> float:
        return 0.0

    @property
    def largest_loss(self) -> float:
        return math.inf

    @property
    def zcdp_ceiling(self) -> float:
        """That of one Gaussian step: e^{K} is convex in the pair, and all t pairs have the same."""
        return GaussianLossDistribution(self.mu).zcdp_ceiling

    def reverse_distribution(self) -> AllocatedGaussian:
        return AllocatedGaussian(self.mu, self.steps, not self.remove)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays:
        """Return bounds on δ at ε ≥ 0, at most those of a single Gaussian step, of which the pair is a mean."""
        first, last = epsilon
        low, high = self._prices(last), self._prices(first) if last is not first else None
        lower, upper = low[0], (high or low)[1]
        step = GaussianLossDistribution(self.mu).compute_deltas((first, first))[1]
        return np.minimum(lower, step), np.minimum(upper, step)

    def _prices(self, epsilon: Floats) -> BoundArrays:
        """Return bounds on δ; [0, 1] where the integral has no digit or fails."""
        flat = np.minimum(epsilon.astype(np.longdouble), np.longdouble(LARGEST_EPSILON))
        prices, factor = MeanRatioPrices(self.mu, self.steps), np.ones_like(flat)
        with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
            if self.remove:
                values, errors = prices.call(np.expm1(flat))
            else:
                factor = np.exp(flat)
                values, errors = prices.put(-np.expm1(-flat))
            low, high = (values - errors) * factor, (values + errors) * factor
        is_known = np.isfinite(low) & np.isfinite(high)
        low, high = np.where(is_known, np.maximum(low, 0), 0), np.where(is_known, np.maximum(high, 0), 1)
        lower = np.nextafter(low.astype(np.float64) * (1 - ROUNDING), 0.0)
        upper = np.nextafter(high.astype(np.float64) * (1 + ROUNDING), 2.0)
        return np.where(epsilon > LARGEST_EPSILON, 0.0, lower), np.minimum(upper, 1.0)

    def loss_cells(self, step: float) -> LossCells:
        """Return cells between the kinks of the hull of upper bounds on δ at multiples of the step, or of a longer one.

        The error of the bounds counts as an infinite loss, except for a part ``TABLE_ERROR`` of δ.
        """
        above, below = (_table_end(self.mu, self.steps, remove=remove) for remove in (self.remove, not self.remove))
        if math.isfinite(step):
            step = max(step, (above + below) / MAX_TABLE)
        return _cells_of_bounds(self, (below, above), step)

    @property
    def relative_mass_error(self) -> float:
        return TABLE_ERROR

    def profile(self, epsilon: Floats) -> Floats:
        reverse = self.reverse_distribution().compute_deltas
        return np.asarray(bounds_midpoint(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, reverse)))

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        reverse = self.reverse_distribution().compute_deltas
        return relative_half_width(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, reverse), np.shape(epsilon))


@lru_cache(maxsize=64)
def _table_end(mu: float, steps: int, *, remove: bool) -> float:
    """Return the ε up to which δ is known to ``LAST_ERROR`` and at least ``LEAST_TABULATED``."""
    law, last, factor = AllocatedGaussian(mu, steps, remove), SMALLEST_END, 2.0
    while factor > 1.01:
        at = np.array([last * factor])
        low, high = law.compute_deltas((at, at))
        if last * factor < LARGEST_EPSILON and high[0] - low[0] <= LAST_ERROR * high[0] and high[0] > LEAST_TABULATED:
            last *= factor
        else:
            factor = math.sqrt(factor)
    return last


@lru_cache(maxsize=16)
def _cells_of_bounds(law: AllocatedGaussian, ends: tuple[float, float], step: float) -> LossCells:
    """Return cells up to these losses below and above 0: of each half the kinks of the hull, as for any profile."""
    edges = loss_step_multiples(-ends[0], ends[1], step)
    halves, errors = [], []
    for direction, end, points in ((law, ends[1], edges), (law.reverse_distribution(), ends[0], -edges)):
        epsilons = np.unique(np.concatenate([[0.0], points[(points > 0) & (points < end)], [end]]))
        low, high = direction.compute_deltas((epsilons, epsilons))
        middle = low / 2 + high / 2
        error = max(0.0, float(np.max(high - middle * (1 + TABLE_ERROR))))  # the same everywhere: it stays convex
        halves.append((epsilons, np.minimum(middle * (1 + TABLE_ERROR) + error, 1.0)))
        errors.append(2 * error)
    start = min(float(halves[0][1][0]), float(halves[1][1][0]))
    losses, masses, outside = kink_masses(halves[0], halves[1], start)
    fractions = np.full(len(losses), 0.5)
    fractions[0] = fractions[-1] = 1.0
    masses = np.maximum(masses, 0.0) * fractions
    infinite = [mass + error for mass, error in zip(outside, errors, strict=True)]
    return LossCells(losses[:-1], losses[1:], masses[:-1], masses[1:], *infinite)
