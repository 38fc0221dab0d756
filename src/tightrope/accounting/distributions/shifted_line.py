"""Nodes for moments of a sampled Gaussian, on a line parallel to the real one (``docs/proofs/sampled-gaussian.md``).

M(z) = ∫ φ(x) g(x)^p dx, g = 1 + a, a = q (e^u − 1), u = μx − μ²/2, and p = z + 1 (removing a record) or −z (adding
one). On the real line g^{iy} rotates ever faster as y = Im z grows. On Im x = b with the sign for which y arg g > 0
the far part decays instead, so one rule, whose step does not depend on y, works for every y ≥ 0. For real z the
line is the real one, on which all terms have one sign. A distribution whose tail is split off ends at a point of the
real axis, and the tail begins there: these parts use curves that leave the axis at an angle and level off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.distributions.line_moment import MomentLine
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import expm1, log1p, logarithm_rest
from tightrope.numerics.rounding import ROUND_OFF

QUADRATURE_NATS = 56.0
"""Errors of the trapezoidal rule and of the cut-off are below e^{−56} of the integral of the modulus on its strip."""
TAIL = 13.0
"""Standard deviations beyond which a normal distribution has a mass below e^{−84}."""
CUT_OFF_NATS = 75.0
"""Integrands are cut off when they are this many nats below their peak."""
WIDEST_SHIFT = 1.5
"""Largest distance from the real line: there the normal density grows by at most e^{1.5²/2}."""
LARGEST_SIZE = 1e13
"""Logarithms of integrands above this are off by more than a hundredth, so they are not used."""
STEEP_VALUE = 30.0
"""From this u on, log g is computed as u + log q plus a remainder."""
FINE = 2.0**-30
"""Steps and shifts are multiples of this: their multiples are exact."""
ANGLE = math.pi / 4
"""τ is taken on the line Im τ = α in the middle of a strip."""
SHORT = 44.0
"""τ from which on x is distinguished from the cut, where relative errors of e^{−44} are small enough."""
LEVEL = 1.9
"""β: a curve that leaves the real axis levels off at height βα; at the strip's top φ has grown by e^{(2βα)²/2}."""
MOST_NODES = 1 << 17


@dataclass(frozen=True, slots=True)
class PowerIntegrand:
    """The integrand φ g^p with Re p = ``real`` and Im p = ``sign`` · y."""

    mu: float
    rate: float
    real: float
    sign: int
    cut: float = math.inf
    """Upper end of the integral."""

    def log_size(self, x: Floats) -> Floats:
        """Log φ g^p at real x."""
        return np.asarray(-(x**2) / 2 - math.log(2 * math.pi) / 2 + self.real * self.log_g(x))

    def log_g(self, x: Floats) -> Floats:
        """Log g at real x."""
        keep = math.log1p(-self.rate)
        return np.asarray(np.logaddexp(math.log(self.rate) + self.mu * x - self.mu**2 / 2, keep))

    def integration_range(self) -> tuple[float, float]:
        """Return ends beyond which the integrand holds less than e^{−CUT_OFF_NATS} of it, on every line used."""
        return self._range_rising_power() if self.real >= 0 else self._range_falling_power()

    def _range_rising_power(self) -> tuple[float, float]:
        """Ends for p ≥ 0: a second peak may be near pμ, or at the cut; (log φ g^p)'' is at least −1."""
        low, high = -TAIL, min(TAIL + self.mu, self.cut)
        last = min(self.real * self.mu + TAIL, self.cut)
        if last <= high:
            return low, high
        if last < self.cut and self.log_size(np.array(self.real * self.mu)) > 0:
            return low, last  # a second peak near pμ, not negligible relative to the rest
        x = np.linspace(low, last, math.ceil(4 * (last - low)) + 1)
        sizes = self.log_size(x)
        return low, max(high, min(self._last_visible_point(x, sizes), last))

    def _last_visible_point(self, x: Floats, sizes: Floats) -> float:
        """Return the first place after the last one at which the integrand is not negligible relative to its peak."""
        if not np.max(np.abs(sizes)) < LARGEST_SIZE:
            raise PrecisionError(f"a moment of {self!r} is too large for double precision")
        seen = np.flatnonzero(sizes > np.max(sizes) - CUT_OFF_NATS)
        return float(x[min(seen[-1] + 1, len(x) - 1)])

    def tail_end(self) -> float:
        """The end beyond which the part after the cut holds less than e^{−CUT_OFF_NATS} of itself, p ≥ 0.

        Right of pμ, and of the cut, log φ g^p decreases at least as fast as a normal log density right of its mean.
        """
        last = max(self.cut, self.real * self.mu) + TAIL
        if last <= self.cut + TAIL or self.log_size(np.array(self.real * self.mu)) > 0:
            return last
        x = np.linspace(self.cut, last, math.ceil(4 * (last - self.cut)) + 1)
        return max(self.cut + TAIL, self._last_visible_point(x, self.log_size(x)))

    def _range_falling_power(self) -> tuple[float, float]:
        """Ends for p < 0: |g| ≥ 1 − q on the left, and |g| ≥ 1 on the right where e^u cos θ ≥ 1.

        The linear term needs ∫ φ a up to the end, whose mass is around μ: all of it is included, or none if μ is far.
        """
        peak = float(self.log_size(np.array(self._mode_position())))
        out = CUT_OFF_NATS - peak - self.real * -math.log1p(-self.rate)
        return -math.sqrt(2 * max(out, CUT_OFF_NATS)), TAIL + self.mu * (self.mu < 2 * TAIL)

    def _mode_position(self) -> float:
        """Return the x that maximizes the log-concave φ g^p, p < 0."""
        odds = math.log(self.rate) - math.log1p(-self.rate)

        def log_slope(x: float) -> float:
            return x - self.real * self.mu * float(special.expit(self.mu * x - self.mu**2 / 2 + odds))

        return float(scipy.optimize.brentq(log_slope, self.real * self.mu - 1, 1.0, xtol=1e-3))

    def analytic_strip(self, log_moment: float) -> tuple[float, float]:
        """Angle θ of the line and 2π over its step: the strip from the real line to 2θ is free of singularities."""
        best = (0.0, math.inf)
        angle = min(math.pi / 2, WIDEST_SHIFT * self.mu)
        for _ in range(8 if self.real < 0 else 1):
            width = angle / self.mu
            log_loss = (2 * width) ** 2 / 2 + self._log_strip_growth(2 * angle, log_moment)
            frequency = (QUADRATURE_NATS + log_loss) / width
            best = min(best, (angle, frequency), key=lambda found: found[1])
            angle /= 2
        return best

    def _log_strip_growth(self, angle: float, log_moment: float) -> float:
        """Log of a bound on ∫ φ |g|^p on the far side of the strip, over e^{angle²/2μ²} M: |g| ≤ g, so 0 for p ≥ 0."""
        if self.real >= 0:
            return 0.0
        narrow = self.real * math.log(math.cos(angle / 2)) if angle < math.pi else math.inf
        flat = self.real * math.log1p(-self.rate) - log_moment if angle <= math.pi / 2 else math.inf
        return max(0.0, min(narrow, flat))


def build_moment_line(power: PowerIntegrand, log_moment: float | None) -> MomentLine:
    """Nodes for real z without ``log_moment``; with ``log_moment`` = log M(c), for all z = c + iy, y > 0."""
    if power.cut < math.inf:
        return cut_line(power, log_moment)
    low, high = power.integration_range()
    angle, frequency = _real_strip(power) if log_moment is None else power.analytic_strip(log_moment)
    step = math.floor(2 * math.pi / frequency / FINE) * FINE
    if not (step > 0 and (high - low) / step <= MOST_NODES):
        raise PrecisionError(f"a moment of {power!r} needs {(high - low) * frequency / 6.28:.3g} points")
    shift = power.sign * math.floor(angle / power.mu / FINE) * FINE if log_moment is not None else 0.0
    x = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)
    curve = IntegrandCurve.from_points(
        power, np.asarray(x + 1j * shift), np.full(len(x), math.log(step), dtype=np.complex128)
    )
    # e^{shift²/2} covers the part beyond the ends on this line; the strip's own growth is included in the step.
    missing = 8 * math.exp(-QUADRATURE_NATS) * math.exp(shift**2 / 2)
    return curve.tilted_mass(power, high, missing, log_moment)


def cut_line(power: PowerIntegrand, log_moment: float | None) -> MomentLine:
    """The same up to ``power.cut``: x = cut − β log(1 + e^{−τ − iα}) leaves the real axis there, and levels off."""
    beta = min(LEVEL, 2 / power.mu)
    top = math.pi * beta / 2
    start = power.integration_range()[0]
    # Log of the largest ratio of the integrand near the cut to the integral.
    # The slope of log φ g^p is at most pμ + |x|, so the integral is at least the peak divided by that.
    steep = power.real * power.mu + abs(power.cut) + TAIL
    near_cut_near = power.log_size(power.cut - min(LEVEL, 2 / power.mu) * np.linspace(0, 1, 65))
    peak = max(float(np.max(near_cut_near)), float(np.max(power.log_size(np.linspace(start, power.cut, 257)))))
    near = float(np.max(near_cut_near)) - peak + math.log(1 + steep)
    step = _strip_factor(log_moment) * 2 * math.pi * ANGLE / (QUADRATURE_NATS + top**2 / 2 + max(near, 0.0) + 4)
    nearest = max(QUADRATURE_NATS + near + math.log(beta), 1.0)
    if not (nearest + (power.cut - start) / beta) / step <= MOST_NODES:
        raise PrecisionError(f"a moment of {power!r} needs {(power.cut - start) / beta / step:.3g} points")
    tau = step * np.arange(math.floor((start - power.cut) / beta / step), math.ceil(nearest / step) + 1)
    exponent = np.asarray(-tau - complex(0.0, 0.0 if log_moment is None else ANGLE), dtype=np.complex128)
    away = complex_softplus(exponent)
    curve = IntegrandCurve.from_points(power, power.cut - beta * away, math.log(step * beta) + exponent - away)
    missing = 16 * math.exp(-QUADRATURE_NATS) * math.exp((beta * ANGLE) ** 2 / 2)
    return curve.tilted_mass(power, power.cut, missing, log_moment)


def complex_softplus(w: Complexes) -> Complexes:
    """Return log(1 + e^w)."""
    held = np.where(w.real > STEEP_VALUE, 0.0, w)
    return np.asarray(
        np.where(w.real > STEEP_VALUE, w + np.exp(-np.where(w.real > STEEP_VALUE, w, STEEP_VALUE)), log1p(np.exp(held)))
    )


def _strip_factor(log_moment: float | None) -> int:
    """Return 2 for real z, where the strip may extend below the real axis as far as above it; otherwise 1."""
    return 2 if log_moment is None else 1


def tail_line(power: PowerIntegrand, log_moment: float | None) -> MomentLine:
    """The part beyond ``power.cut``, given its log M(c): x = cut + β log(1 + e^{τ + iα})."""
    beta = min(LEVEL, 2 / power.mu)
    top = math.pi * beta / 2
    step = (
        _strip_factor(log_moment)
        * 2
        * math.pi
        * ANGLE
        / (QUADRATURE_NATS + top**2 / 2 + 2 * math.log(power.cut + 2) + 4)
    )
    last = power.tail_end()
    if not (SHORT + (last - power.cut) / beta) / step <= MOST_NODES:
        raise PrecisionError(f"a moment of {power!r} needs {(last - power.cut) / beta / step:.3g} points")
    tau = step * np.arange(math.floor(-SHORT / step), math.ceil(((last - power.cut) / beta + 2) / step) + 1)
    exponent = np.asarray(tau + complex(0.0, 0.0 if log_moment is None else ANGLE), dtype=np.complex128)
    away = complex_softplus(exponent)
    curve = IntegrandCurve.from_points(power, power.cut + beta * away, math.log(step * beta) + exponent - away)
    missing = 16 * (math.exp(-QUADRATURE_NATS) + math.exp(-SHORT) * power.cut) * math.exp((beta * ANGLE) ** 2 / 2)
    at_c = math.nan if log_moment is None else log_moment
    return MomentLine(
        curve.log_weight, curve.loss, curve.blurred, curve.moved, 0.0, 0.0, 0.0, missing, at_c, 0.0, whole=False
    )


@dataclass(frozen=True, slots=True, eq=False)
class IntegrandCurve:
    """Points x [k], logarithms of weights, log g, g − 1, and the rounding errors of weights and of log g."""

    x: Complexes
    log_weight: Complexes
    loss: Complexes
    gain: Complexes
    blurred: Floats
    moved: Floats

    @classmethod
    def from_points(
        cls, power: PowerIntegrand, x: Complexes, log_step: Complexes, away: Complexes | None = None
    ) -> IntegrandCurve:
        """With weights step · φ(x); ``away`` is a more accurate x − μ/2, if available."""
        mu = power.mu
        exponent = np.asarray(mu * x - mu**2 / 2 if away is None else mu * away)
        log_weight = log_step - x * x / 2 - math.log(2 * math.pi) / 2
        loss, gain = log_g(exponent, power.rate)
        blurred = 4 * np.abs(x) ** 2 + len(x) + 64 + 16 * np.abs(log_weight)
        # u is off by some units of its parts; if x is given relative to μ/2, by some units of itself.
        own = np.minimum(np.abs(gain), power.rate) / power.rate
        off = 4 * np.abs(mu * x) + mu**2 + 6 if away is None else 8 * np.abs(exponent) + 6 * own
        # The error of log g, in units of 2⁻⁵³, if u is off by `off` of them.
        share = np.abs(np.exp(np.minimum(math.log(power.rate) + exponent.real - loss.real, 700.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.abs(gain) * np.exp(np.minimum(-loss.real, 700.0))
        moved_own = np.where(relative < 1 + share, relative, 1 + share)
        return cls(x, log_weight, loss, gain, blurred, np.asarray(off * share + 6 * moved_own + 6 * np.abs(loss)))

    def tilted_mass(self, power: PowerIntegrand, end: float, missing: float, log_moment: float | None) -> MomentLine:
        """M = ∫ φ g^p up to the cut, from points up to ``end``."""
        weight = np.exp(self.log_weight)
        with np.errstate(over="ignore", invalid="ignore"):  # far out a is ∞; then the error is, too
            rest, size = logarithm_rest(self.gain, self.loss), np.abs(weight)
            # d(E(pL) + p (L − a)) = p (e^{pL} − 1 − a) dL, so a node's share of the linear term is off by a times dL.
            off = float((np.abs(rest) * self.blurred + np.abs(self.gain) * self.moved) @ size) * ROUND_OFF
            linear = complex(np.dot(rest, weight))
        beyond = float(special.ndtr(-power.cut))
        # ∫ φ a is 0, and the part beyond the end is known in closed form.
        linear -= power.rate * float(special.ndtr(power.mu - end) - special.ndtr(-end))
        at_c = math.nan if log_moment is None else log_moment
        return MomentLine(self.log_weight, self.loss, self.blurred, self.moved, linear, off, 0.0, missing, at_c, beyond)


def _real_strip(power: PowerIntegrand) -> tuple[float, float]:
    """The same for the real line and real z: a strip on both sides of it."""
    a = np.minimum(np.linspace(0.02, 0.95, 40) * math.pi / power.mu, 20.0)
    swollen = min(power.real, 0.0) * np.log(np.cos(a * power.mu / 2))
    return 0.0, float(np.min(a / 2 + (QUADRATURE_NATS + swollen) / a))


def log_g(exponent: Complexes, rate: float) -> tuple[Complexes, Complexes]:
    """Return log g and a = g − 1 = q (e^u − 1) at u; far from 1, log g is computed from g, a sum in one half-plane."""
    held = np.where(exponent.real > STEEP_VALUE, STEEP_VALUE + 1j * exponent.imag, exponent)
    gain = rate * expm1(held)
    loss = log1p(gain)
    far = np.abs(gain) > 0.5
    loss[far] = np.log((1 - rate) + rate * np.exp(held[far]))
    steep = exponent.real > STEEP_VALUE
    beyond = exponent[steep]
    with np.errstate(over="ignore", invalid="ignore"):
        loss[steep] = (
            beyond + math.log(rate) + log1p(np.asarray((1 - rate) / rate * np.exp(-beyond), dtype=np.complex128))
        )
        gain[steep] = rate * np.exp(beyond)
    return loss, gain


# A bound on |M(c + iy')| / M(c) for every y' ≥ y: the integral of the modulus on a path above the real axis.
#
# M(c + iy) = ∫ φ g^p is the same on x + i b(x), where |g^p| ≤ |g|^{Re p} e^{−|y| arg g}: it decreases as y grows. It is
# bounded with cells of the distribution tilted by c: cell i contributes at most its mass times exp(b²/2 + ½ log(1 +
# b'²) + more − y arg g) at its worst ends, so that the sum minus M(c) keeps its sign and digits however near to one the
# modulus is. With b = s κ, s = y, where −(w κ')' + w κ = w l' for the tilted density w, the bound is exact to second
# order in y (for one part; approximately for two): ``docs/proofs/sampled-gaussian.md``.

PATH_CELLS = 2000
FARTHEST = 1.5
"""Height at which the path levels off."""
SLOPES = (0.125, 0.5, 1.0)
"""Multiples of y that are tried for s."""
STEEPER = (1.0, 30.0, 1000.0)
"""Upper limits of s, as multiples of the s that lifts nearly all of the distribution to ``FARTHEST``."""
NEARLY_ALL = -1 + 1e-15
"""Lower limit of a sum of rounded parts minus one, so that it stays positive."""
BEYOND = 1e-21
"""Upper bound on the mass beyond the cells, on any path."""


@dataclass(frozen=True, slots=True, eq=False)
class TiltedCells:
    """φ g^power / M(c) in cells [n] between points x [n + 1]: bounds on their masses."""

    power: float
    least: Floats
    most: Floats

    @classmethod
    def from_losses(cls, x: Floats, loss: Floats, share: Floats, power: PowerIntegrand, at_c: float) -> TiltedCells:
        """Build it from log g and σ = (log g)'/μ at x, and log M(c). The slope of the log is pμσ − x.

        A cell that contains the cut counts fully if its term is positive, and as 0 if negative; later cells are empty.
        """
        apart = np.diff(x)
        steepness = abs(power.real) * power.mu * share[1:] + np.maximum(np.abs(x[1:]), np.abs(x[:-1]))
        logs = power.real * loss - x**2 / 2 - math.log(2 * math.pi) / 2 - at_c
        high = np.maximum(logs[1:], logs[:-1]) + steepness * apart / 2
        low = np.minimum(logs[1:], logs[:-1]) - steepness * apart / 2
        least = np.where(x[1:] <= power.cut, np.exp(np.minimum(low, 600.0)) * apart, 0.0)
        return cls(power.real, least, np.where(x[:-1] < power.cut, np.exp(np.minimum(high, 600.0)) * apart, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class LiftedPath:
    """Data for a path's bound: points x, the shape of b, log g's exponent and the parts of the tilted distribution."""

    x: Floats
    kernel: Floats
    share: Floats
    mu: float
    parts: tuple[TiltedCells, ...]
    still: float
    drop: float
    steep: float
    """The s that lifts all but one percent to the height at which paths level off."""

    @classmethod
    def from_powers(
        cls, power: PowerIntegrand, powers: tuple[float, ...], at_c: float, still: float = 0.0
    ) -> LiftedPath:
        """Build the path for the integrand's power; for two, c + 1 and −c, from the point μ/2 of the real axis on.

        ``still`` bounds the mass with loss 0, which does not decay, over M(c) = e^{at_c}. Only the first power is cut.
        """
        low, high = power.integration_range()
        if len(powers) > 1:
            low, high = power.mu / 2, max(high, TAIL + power.mu)
        x = np.linspace(low, high, PATH_CELLS + 1)
        loss, cut = power.log_g(x), power.cut < math.inf
        share = np.asarray(
            special.expit(power.mu * x - power.mu**2 / 2 + math.log(power.rate) - math.log1p(-power.rate))
        )
        each = [replace(power, real=real, cut=power.cut if i == 0 else math.inf) for i, real in enumerate(powers)]
        parts = tuple(TiltedCells.from_losses(x, loss, share, one, at_c) for one in each)
        logs = np.logaddexp.reduce([one.real * loss - x**2 / 2 for one in each])
        # At the cut a path returns to the real axis, along which the integrand need not decay.
        at_cut = FARTHEST**2 / 2 + float(power.log_size(np.array(power.cut))) - at_c if cut else -math.inf
        drop = FARTHEST * math.exp(min(at_cut, 700.0))  # e^700 is as uninformative as ∞
        # The b that minimizes ∫ w ((b² + b'²)/2 − l' b), w = e^{logs}: −(w b')' + w b = w l'; then made nondecreasing.
        # Free ends have b' = 0; `pinned` has b = 0 at the first point, where the path must leave the real axis.
        kernel_logs = np.asarray(logs)
        kernel_slope = power.mu * share
        pinned = len(powers) > 1
        apart = float(x[1] - x[0])
        up, down = np.zeros_like(x), np.zeros_like(x)
        up[:-1] = np.exp(np.clip(np.diff(kernel_logs) / 2, -600.0, 600.0))  # w between x_i and x_{i+1}, over w_i
        down[1:] = np.exp(np.clip(-np.diff(kernel_logs) / 2, -600.0, 600.0))
        right = apart**2 * kernel_slope
        if pinned:
            up[0], right[0] = 0.0, 0.0
        bands = np.zeros((3, len(x)))
        bands[0, 1:], bands[1], bands[2, :-1] = -up[:-1], up + down + apart**2, -down[1:]
        kernel = np.asarray(np.maximum.accumulate(np.maximum(scipy.linalg.solve_banded((1, 1), bands, right), 0.0)))
        masses = np.cumsum(sum(part.most for part in parts))
        steep = FARTHEST / max(float(kernel[int(np.searchsorted(masses, 0.99 * masses[-1]))]), 1e-300)
        return cls(x, kernel, share, power.mu, parts, still, drop, steep)

    def log_bound(self, y: float) -> float:
        """Log of the bound, at most 0: the best of several paths, each of which gives a bound that decreases with y."""
        paths = {min(slope * y, self.steep * more) for slope in SLOPES for more in STEEPER}
        return min(0.0, *(self._log_bound_on_path(y, path) for path in paths))

    def _log_bound_on_path(self, y: float, slope: float) -> float:
        """Bound for the path s = ``slope``: Σ mass (e^{…} − 1), with M(c) subtracted from the start, where cells with a
        negative bracket count with their smallest possible mass; or Σ mass e^{…}, a better bound if little is left.
        """
        height = np.minimum(slope * self.kernel, min(FARTHEST, math.pi / 2 / self.mu))
        rise = np.diff(height) / np.diff(self.x)
        angle = self.mu * height
        odds = self.share / (1 - self.share + 1e-300)  # q e^u / (1 − q)
        turned = np.arctan2(odds * np.sin(angle), 1 + odds * np.cos(angle))
        common = height[1:] ** 2 / 2 + np.log1p(rise**2) / 2 - y * turned[:-1] * (1 - 1e-12)
        excess, left = BEYOND + self.drop, self.still + BEYOND + self.drop
        for part in self.parts:
            bracket = np.expm1(np.minimum(common + self._log_modulus_growth(part.power, angle), 700.0))
            excess += float(np.dot(np.where(bracket > 0, part.most, part.least), bracket))
            left += float(np.dot(part.most, bracket + 1))
        return min(math.log1p(max(excess, NEARLY_ALL)), math.log(left))

    def _log_modulus_growth(self, power: float, angle: Floats) -> Floats | float:
        """Log of a bound on (|g|/g)^power: |g|² = g² (1 − 2σ(1 − σ)(1 − cos angle)); 0 if power ≥ 0."""
        if power >= 0:
            return 0.0
        spread = self.share * (1 - self.share)
        most = np.maximum(spread[1:], spread[:-1])
        most[(self.share[:-1] < 0.5) & (self.share[1:] > 0.5)] = 0.25
        return np.asarray(power / 2 * np.log1p(-2 * most * (1 - np.cos(angle[1:]))))
