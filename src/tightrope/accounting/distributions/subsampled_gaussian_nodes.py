"""Quadrature nodes for the moments of the Poisson-subsampled Gaussian on a contour Im x = b; a bound on |M(c + iy)|.

M(z) = ∫ φ(x) g(x)^p dx at z = c + iy, with g = 1 + a, a = q (e^u − 1), u = μx − μ²/2, and p = z + 1 (removing a
record) or −z (adding one). For large y the integrand oscillates quickly on the real line. On the line Im x = b, above
the axis for removing and below it for adding, so that Im p · arg g > 0, it decays in y away from its peak: one rule,
whose step does not depend on y, works for every y ≥ 0. For real z the line is the real one, on which all terms have
one sign. If the tail of a distribution is integrated separately (``trim_tail``), both parts have an endpoint on the
real axis, the cut; they use curves that leave the axis there at an angle and level off. Proofs:
``docs/proofs/sampled-gaussian.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.distributions.moment_quadrature import MomentQuadrature
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import expm1, log1p, log1p_minus_argument
from tightrope.numerics.root_finding import find_root
from tightrope.numerics.rounding import ROUND_OFF

QUADRATURE_NATS = 56.0
"""The step is chosen for errors of about e^{−56} of the integral; each ``truncation_error`` has the exact factors."""
NORMAL_TAIL_WIDTH = 13.0
"""Standard deviations beyond which a normal distribution has a mass below e^{−84}."""
TRUNCATION_NATS = 75.0
"""The grid ends where the integrand is this many nats below its peak."""
MAX_LINE_HEIGHT = 1.5
"""Largest distance from the real line: there the normal density grows by at most e^{1.5²/2}."""
MAX_LOG_INTEGRAND = 1e13
"""Above this, the rounding error of log φ g^p exceeds 0.01, and ``PrecisionError`` is raised."""
LARGE_EXPONENT = 30.0
"""From this u on, log g is computed as u + log q plus a remainder."""
STEP_GRID = 2.0**-30
"""Steps and shifts are rounded to multiples of this, so that step · k is exact in floating point."""
CURVE_ANGLE = math.pi / 4
"""α: the nodes lie on Im τ = α, the middle of the strip 0 < Im τ < 2α."""
CUT_APPROACH_NATS = 44.0
"""Beyond the cut, τ starts at −44; ``truncation_error`` includes the omitted part, about e^{−44} of the integral."""
LARGEST_BETA = 1.9
"""A curve that leaves the real axis levels off at height βα; on the strip's upper edge φ is larger by e^{(2βα)²/2}."""
MAX_NODES = 1 << 17
"""Largest number of quadrature nodes; beyond it ``PrecisionError`` is raised."""
PATH_CELLS = 2000
"""Number of cells of a ``LiftedPath``."""
MAX_PATH_HEIGHT = 1.5
"""Largest height of a path of ``LiftedPath``; it is also at most π/(2μ)."""
TRIED_PATH_SCALES = (0.125, 0.5, 1.0)
"""Values of s / y that are tried."""
LIMIT_FACTORS = (1.0, 30.0, 1000.0)
"""Upper limits of s, as multiples of ``LiftedPath.reference_scale``."""
MIN_EXCESS = -1 + 1e-15
"""Lower limit of (sum − 1) before log1p, in case rounding makes the sum zero or negative."""
MASS_OUTSIDE_CELLS = 1e-21
"""Upper bound on the mass beyond the cells, on any path."""


@dataclass(frozen=True, slots=True)
class MomentIntegrand:
    """The integrand φ g^p with Re p = ``real_exponent`` and Im p = ``sign_of_y`` · y."""

    mu: float
    rate: float
    real_exponent: float
    sign_of_y: int
    cut: float = math.inf
    """Upper end of the integral."""

    def log_values(self, x: Floats) -> Floats:
        """Return log(φ(x) g(x)^p) at real x, shape [n]."""
        return np.asarray(-(x**2) / 2 - math.log(2 * math.pi) / 2 + self.real_exponent * self.log_g(x))

    def log_g(self, x: Floats) -> Floats:
        """Return log g(x) at real x, shape [n]."""
        return np.asarray(np.logaddexp(math.log(self.rate) + self.mu * x - self.mu**2 / 2, self.log_zero_weight))

    @property
    def log_zero_weight(self) -> float:
        """The infimum of log g: the log of the probability that the record is not sampled."""
        return math.log1p(-self.rate)

    def integration_range(self) -> tuple[float, float]:
        """Return (low, high): the part of ∫ |φ g^p| outside is below e^{−TRUNCATION_NATS} of it, on every contour."""
        return self._range_for_positive_exponent() if self.real_exponent >= 0 else self._range_for_negative_exponent()

    def _range_for_positive_exponent(self) -> tuple[float, float]:
        """Return the range for p ≥ 0: a second peak may be near pμ, or at the cut; (log φ g^p)'' is at least −1."""
        low, high = -NORMAL_TAIL_WIDTH, min(NORMAL_TAIL_WIDTH + self.mu, self.cut)
        last = min(self.real_exponent * self.mu + NORMAL_TAIL_WIDTH, self.cut)
        if last <= high:
            return low, high
        if last < self.cut and self.log_values(np.array(self.real_exponent * self.mu)) > 0:
            return low, last  # a second peak near pμ, not negligible relative to the rest
        x = np.linspace(low, last, math.ceil(4 * (last - low)) + 1)
        return low, max(high, min(self._end_of_support(x, self.log_values(x)), last))

    def _end_of_support(self, x: Floats, log_values: Floats) -> float:
        """Return the grid point after the last one whose integrand is within ``TRUNCATION_NATS`` of the peak."""
        if not np.max(np.abs(log_values)) < MAX_LOG_INTEGRAND:
            raise PrecisionError(f"{self.describe_moment()} exceeds double precision; use more noise or fewer steps")
        relevant = np.flatnonzero(log_values > np.max(log_values) - TRUNCATION_NATS)
        return float(x[min(relevant[-1] + 1, len(x) - 1)])

    def describe_moment(self) -> str:
        """Return the moment's order and the mechanism as text for an error message."""
        order = self.real_exponent - 1 if self.sign_of_y > 0 else -self.real_exponent
        return f"the moment of order {order:.3g} of a sampled Gaussian ({self.describe_law()})"

    def describe_law(self) -> str:
        """Return the parameters of the mechanism as text for an error message."""
        return f"scale {1 / self.mu:.3g}, rate {self.rate:.3g}"

    def end_of_tail(self) -> float:
        """Return the x beyond which the tail integral (x > cut) is negligible. Requires p ≥ 0.

        Right of pμ, and of the cut, log φ g^p decreases at least as fast as a normal log density right of its mean.
        """
        last = max(self.cut, self.real_exponent * self.mu) + NORMAL_TAIL_WIDTH
        if last <= self.cut + NORMAL_TAIL_WIDTH or self.log_values(np.array(self.real_exponent * self.mu)) > 0:
            return last
        x = np.linspace(self.cut, last, math.ceil(4 * (last - self.cut)) + 1)
        return max(self.cut + NORMAL_TAIL_WIDTH, self._end_of_support(x, self.log_values(x)))

    def _range_for_negative_exponent(self) -> tuple[float, float]:
        """Return the range for p < 0: |g| ≥ 1 − q on the left, |g| ≥ 1 on the right where e^u cos(μ Im x) ≥ 1.

        The linear term needs ∫ φ a, which is concentrated near μ: the range includes μ if it is at most
        2 · ``NORMAL_TAIL_WIDTH`` away; otherwise ``to_quadrature`` adds it in closed form.
        """

        def negative_log_slope(x: float) -> float:
            """Return −(log φ g^p)'(x); log φ g^p is concave."""
            return x - self.real_exponent * float(self.phases_at(np.array([x])).slope[0])

        mode = find_root(negative_log_slope, self.real_exponent * self.mu - 1, 1.0, within=1e-3)
        peak = float(self.log_values(np.array(mode)))
        nats = TRUNCATION_NATS - peak - self.real_exponent * -self.log_zero_weight
        right = NORMAL_TAIL_WIDTH + (self.mu if self.mu < 2 * NORMAL_TAIL_WIDTH else 0.0)
        return -math.sqrt(2 * max(nats, TRUNCATION_NATS)), right

    def ratio_on_curve(self, x: Complexes, x_minus_half_mu: Complexes | None) -> tuple[Complexes, Complexes, Floats]:
        """Return log g and g − 1 at x [k], and the absolute rounding error of log g in units of 2⁻⁵³."""
        mu, rate = self.mu, self.rate
        exponent = np.asarray(mu * x - mu**2 / 2 if x_minus_half_mu is None else mu * x_minus_half_mu)
        loss, g_minus_one = log_g_and_g_minus_one(exponent, rate)
        # The rounding error of u is a few units of its terms, or a few units of u itself if x − μ/2 is given.
        if x_minus_half_mu is None:
            u_error = 4 * np.abs(mu * x) + mu**2 + 6
        else:
            u_error = 8 * np.abs(exponent) + 6 * (np.minimum(np.abs(g_minus_one), rate) / rate)
        # q e^u / g, the posterior probability of B, is the derivative of log g by u.
        sigma = np.abs(np.exp(np.minimum(math.log(rate) + exponent.real - loss.real, 700.0)))
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.abs(g_minus_one) * np.exp(np.minimum(-loss.real, 700.0))
        direct_error = np.where(relative < 1 + sigma, relative, 1 + sigma)
        return loss, g_minus_one, np.asarray(u_error * sigma + 6 * direct_error + 6 * np.abs(loss))

    @property
    def shrinking_exponent(self) -> float:
        """The exponent of the ratio of which |g| / g(x) shrinks off the real axis, if it is negative; otherwise 0."""
        return min(self.real_exponent, 0.0)

    def log_reference(self, x: Complexes) -> tuple[Complexes, Floats | float]:
        """Return the log of the density that g refers to, at x [k], and its rounding error in units of 2⁻⁵³."""
        return -x * x / 2 - math.log(2 * math.pi) / 2, 0.0

    def reference_beyond(self, end: float) -> float:
        """Return the mass of the density that g refers to beyond a point."""
        return float(special.ndtr(-end))

    def log_growth_at_cut(self) -> float:
        """Return log of a bound on what the integrand grows by above the cut, without the normal density's part."""
        return 0.0

    def real_axis_frequency(self) -> float:
        """Return 2π/step of a rule for real z: the strip is symmetric about the real axis."""
        half_width = np.minimum(np.linspace(0.02, 0.95, 40) * math.pi / self.mu, 20.0)
        log_growth = self.shrinking_exponent * np.log(np.cos(half_width * self.mu / 2))
        return float(np.min(half_width / 2 + (QUADRATURE_NATS + log_growth) / half_width))

    def curve_scale(self, largest: float) -> tuple[float, float]:
        """Return the β, up to ``largest``, of curves that leave the real axis at the cut, and the growth there."""
        return min(largest, 2 / self.mu), 0.0

    def excess_beyond(self, end: float) -> float:
        """Return ∫ φ (g − 1) beyond a point."""
        return self.rate * float(special.ndtr(self.mu - end) - special.ndtr(-end))

    def phases_at(self, x: Floats) -> Phases:
        """Return the slope and the argument of g above points x [n + 1] of the real axis."""
        log_odds = self.mu * x - self.mu**2 / 2 + math.log(self.rate) - math.log1p(-self.rate)
        return TwoPointPhases(self.mu, np.asarray(special.expit(log_odds)))

    def choose_line_height(self, log_moment: float) -> tuple[float, float]:
        """Return (θ, 2π/step) of the line |Im x| = θ/μ with the fewest nodes; g^p is analytic for 0 ≤ |Im x| ≤ 2θ/μ."""
        best = (0.0, math.inf)
        angle = min(math.pi / 2, MAX_LINE_HEIGHT * self.mu)
        for _ in range(8 if self.real_exponent < 0 else 1):
            width = angle / self.mu
            log_loss = (2 * width) ** 2 / 2 + self._log_strip_growth(2 * angle, log_moment)
            frequency = (QUADRATURE_NATS + log_loss) / width
            best = min(best, (angle, frequency), key=lambda candidate: candidate[1])
            angle /= 2
        return best

    def _log_strip_growth(self, angle: float, log_moment: float) -> float:
        """Return log of a bound on ∫ φ |g|^p along the strip's upper edge, divided by e^{angle²/2μ²} M.

        For p ≥ 0 it is 0, since |g(x + ib)| ≤ g(x).
        """
        if self.real_exponent >= 0:
            return 0.0
        bound_from_angle = self.real_exponent * math.log(math.cos(angle / 2)) if angle < math.pi else math.inf
        left_limit = self.real_exponent * self.log_zero_weight
        bound_from_left_limit = left_limit - log_moment if angle <= math.pi / 2 else math.inf
        return max(0.0, min(bound_from_angle, bound_from_left_limit))


def build_quadrature(integrand: MomentIntegrand, log_moment: float | None) -> MomentQuadrature:
    """Return the quadrature of ∫ φ g^p up to the cut.

    With ``log_moment`` = log M(c), its nodes are valid for every z = c + iy, y > 0; with None, for real z only.
    """
    if integrand.cut < math.inf:
        return quadrature_up_to_cut(integrand, log_moment)
    low, high = integrand.integration_range()
    if log_moment is None:  # the real line, with a strip on both sides of it
        angle, frequency = 0.0, integrand.real_axis_frequency()
    else:
        angle, frequency = integrand.choose_line_height(log_moment)
    step = math.floor(2 * math.pi / frequency / STEP_GRID) * STEP_GRID
    node_count = (high - low) / step if step > 0 else (high - low) * frequency / (2 * math.pi)
    if not (step > 0 and node_count <= MAX_NODES):
        raise node_limit_error(integrand, node_count)
    distance = math.floor(angle / integrand.mu / STEP_GRID) * STEP_GRID
    shift = integrand.sign_of_y * distance if log_moment is not None else 0.0
    x = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)
    curve = IntegrandCurve.from_points(
        integrand, np.asarray(x + 1j * shift), np.full(len(x), math.log(step), dtype=np.complex128)
    )
    # e^{shift²/2} bounds the truncated tails on this line; the growth on the edges of the strip is already in the step.
    truncation_error = 8 * math.exp(-QUADRATURE_NATS) * math.exp(shift**2 / 2)
    return curve.to_quadrature(integrand, high, truncation_error, log_moment)


def node_limit_error(integrand: MomentIntegrand, count: float) -> PrecisionError:
    """Return the error for a quadrature that would need this many nodes."""
    needed = f"{integrand.describe_moment()} needs {count:.3g} quadrature nodes, more than {MAX_NODES:,}"
    return PrecisionError(f"{needed}; use more noise or fewer steps")


def quadrature_up_to_cut(integrand: MomentIntegrand, log_moment: float | None) -> MomentQuadrature:
    """Return the nodes on x = cut − β log(1 + e^{−τ − iα}), which leaves the real axis at the cut and levels off."""
    beta, log_growth = integrand.curve_scale(LARGEST_BETA)
    strip_height = math.pi * beta / 2
    start = integrand.integration_range()[0]
    # Log of the largest ratio of the integrand near the cut to the integral.
    # The slope of log φ g^p is at most pμ + |x|, so the integral is at least the peak divided by that.
    slope_bound = integrand.real_exponent * integrand.mu + abs(integrand.cut) + NORMAL_TAIL_WIDTH
    peak_near_cut = float(np.max(integrand.log_values(integrand.cut - beta * np.linspace(0, 1, 65))))
    peak = max(peak_near_cut, float(np.max(integrand.log_values(np.linspace(start, integrand.cut, 257)))))
    log_ratio = peak_near_cut - peak + math.log(1 + slope_bound)
    nats = QUADRATURE_NATS + strip_height**2 / 2 + max(log_ratio, 0.0) + 4 + log_growth
    step = _strip_factor(log_moment) * 2 * math.pi * CURVE_ANGLE / nats
    largest_tau = max(QUADRATURE_NATS + log_ratio + math.log(beta) + log_growth, 1.0)
    node_count = (largest_tau + (integrand.cut - start) / beta) / step
    if not node_count <= MAX_NODES:
        raise node_limit_error(integrand, node_count)
    tau = step * np.arange(math.floor((start - integrand.cut) / beta / step), math.ceil(largest_tau / step) + 1)
    exponent = np.asarray(-tau - complex(0.0, 0.0 if log_moment is None else CURVE_ANGLE), dtype=np.complex128)
    distance = complex_softplus(exponent)
    log_dx = math.log(step * beta) + exponent - distance
    curve = IntegrandCurve.from_points(integrand, integrand.cut - beta * distance, log_dx)
    truncation_error = 16 * math.exp(-QUADRATURE_NATS) * math.exp((beta * CURVE_ANGLE) ** 2 / 2)
    return curve.to_quadrature(integrand, integrand.cut, truncation_error, log_moment)


def complex_softplus(w: Complexes) -> Complexes:
    """Return log(1 + e^w)."""
    is_large = w.real > LARGE_EXPONENT
    large = w + np.exp(-np.where(is_large, w, LARGE_EXPONENT))
    return np.asarray(np.where(is_large, large, log1p(np.exp(np.where(is_large, 0.0, w)))))


def _strip_factor(log_moment: float | None) -> int:
    """Return the factor of the step: 2 for real z, whose strip is symmetric about the real axis; otherwise 1."""
    return 2 if log_moment is None else 1


def quadrature_beyond_cut(integrand: MomentIntegrand, log_moment: float | None) -> MomentQuadrature:
    """Return the nodes for x > cut, on x = cut + β log(1 + e^{τ + iα}); ``log_moment`` is that of this part."""
    beta, log_growth = integrand.curve_scale(LARGEST_BETA)
    strip_height = math.pi * beta / 2
    nats = QUADRATURE_NATS + strip_height**2 / 2 + 2 * math.log(integrand.cut + 2) + 4 + log_growth
    step = _strip_factor(log_moment) * 2 * math.pi * CURVE_ANGLE / nats
    length = (integrand.end_of_tail() - integrand.cut) / beta
    node_count = (CUT_APPROACH_NATS + length) / step
    if not node_count <= MAX_NODES:
        raise node_limit_error(integrand, node_count)
    tau = step * np.arange(math.floor(-CUT_APPROACH_NATS / step), math.ceil((length + 2) / step) + 1)
    exponent = np.asarray(tau + complex(0.0, 0.0 if log_moment is None else CURVE_ANGLE), dtype=np.complex128)
    distance = complex_softplus(exponent)
    log_dx = math.log(step * beta) + exponent - distance
    curve = IntegrandCurve.from_points(integrand, integrand.cut + beta * distance, log_dx)
    end_errors = math.exp(-QUADRATURE_NATS) + math.exp(-CUT_APPROACH_NATS) * integrand.cut
    return MomentQuadrature(
        curve.log_weight,
        curve.loss,
        curve.weight_error,
        curve.loss_error,
        linear=0.0,
        linear_error=0.0,
        zero_loss_mass=0.0,
        truncation_error=16 * end_errors * math.exp((beta * CURVE_ANGLE) ** 2 / 2 + log_growth),
        log_moment=math.nan if log_moment is None else log_moment,
        near_one=False,
    )


@dataclass(frozen=True, slots=True, eq=False)
class IntegrandCurve:
    """Points x [k] of a contour with the weights of a quadrature rule and the values of g."""

    x: Complexes
    log_weight: Complexes
    """Log of step · (dx/dτ) · φ(x), or with another density that g refers to."""
    loss: Complexes
    """Log g."""
    g_minus_one: Complexes
    loss_error: Floats
    """Absolute rounding error of log g, in units of 2⁻⁵³."""
    weight_error: Floats
    """Relative rounding error of the weight, in units of 2⁻⁵³."""

    @classmethod
    def from_points(
        cls, integrand: MomentIntegrand, x: Complexes, log_dx: Complexes, x_minus_half_mu: Complexes | None = None
    ) -> IntegrandCurve:
        """Return the points x with weights dx · φ(x), dx = step · dx/dτ.

        Pass ``x_minus_half_mu`` if x − μ/2 is known without cancellation: u = μ (x − μ/2) is computed from it.
        """
        log_density, density_error = integrand.log_reference(x)
        log_weight = log_dx + log_density
        weight_error = 4 * np.abs(x) ** 2 + len(x) + 64 + 16 * np.abs(log_weight) + density_error
        return cls(x, log_weight, *integrand.ratio_on_curve(x, x_minus_half_mu), weight_error=weight_error)

    def to_quadrature(
        self, integrand: MomentIntegrand, end: float, truncation_error: float, log_moment: float | None
    ) -> MomentQuadrature:
        """Return the quadrature of M = ∫ φ g^p up to the cut, from points up to ``end``.

        The linear term beyond the end is added in closed form.
        """
        weight = np.exp(self.log_weight)
        with np.errstate(over="ignore", invalid="ignore"):  # for large x, a overflows to ∞, and so does the error
            remainder, size = log1p_minus_argument(self.g_minus_one, self.loss), np.abs(weight)
            # With E(v) = e^v − 1 − v and L = log g: d(E(pL) + p (L − a)) = p (e^{pL} − 1 − a) dL. So an error dL
            # changes the part of a node in the linear term by at most |a| dL.
            node_error = np.abs(remainder) * self.weight_error + np.abs(self.g_minus_one) * self.loss_error
            linear_error = float(node_error @ size) * ROUND_OFF
            linear = complex(np.dot(remainder, weight))
        # ∫ φ a is 0 over the whole line.
        linear -= integrand.excess_beyond(end)
        return MomentQuadrature(
            self.log_weight,
            self.loss,
            self.weight_error,
            self.loss_error,
            linear=linear,
            linear_error=linear_error,
            zero_loss_mass=0.0,
            truncation_error=truncation_error,
            log_moment=math.nan if log_moment is None else log_moment,
            mass_beyond_cut=integrand.reference_beyond(integrand.cut),
        )


def log_g_and_g_minus_one(exponent: Complexes, rate: float) -> tuple[Complexes, Complexes]:
    """Return log g and a = g − 1 = q (e^u − 1) at u.

    Where |a| > 1/2, log g is computed from g directly; g stays in one half-plane, so the principal branch is right.
    """
    is_large = exponent.real > LARGE_EXPONENT
    clipped = np.where(is_large, LARGE_EXPONENT + 1j * exponent.imag, exponent)
    g_minus_one = rate * expm1(clipped)
    loss = log1p(g_minus_one)
    uses_direct_log = np.abs(g_minus_one) > 0.5
    loss[uses_direct_log] = np.log((1 - rate) + rate * np.exp(clipped[uses_direct_log]))
    large_u = exponent[is_large]
    with np.errstate(over="ignore", invalid="ignore"):
        remainder = np.asarray((1 - rate) / rate * np.exp(-large_u), dtype=np.complex128)
        loss[is_large] = large_u + math.log(rate) + log1p(remainder)
        g_minus_one[is_large] = rate * np.exp(large_u)
    return loss, g_minus_one


class LiftedCells(NamedTuple):
    """Bounds on g in cells [n] of a path above the real axis, on which g is g(x) at its foot x, turned and shrunk."""

    arg_lower: Floats
    """Lower bounds on arg g."""
    squared_loss: Floats
    """Upper bounds on 1 − (|g| / g(x))²."""

    def log_modulus_growth(self, exponent: float) -> Floats | float:
        """Return log of a bound on (|g| / g(x))^exponent; 0 if exponent ≥ 0, as |g| is at most g(x)."""
        if exponent >= 0:
            return 0.0
        return np.asarray(exponent / 2 * np.log1p(-self.squared_loss))


class Phases(Protocol):
    """The posterior probabilities of the components of g = Σ p e^{sx − s²/2} at points x [n + 1]."""

    @property
    def slope(self) -> Floats:
        """(log g)' at x."""

    def power_slope(self, exponent: float) -> Floats:
        """Return bounds on the slope of log g^p, and of the density that g refers to over φ, in the cells [n]."""

    def lift(self, height: Floats) -> LiftedCells:
        """Return g on the path x + i·height, which rises from point to point; at most π/2 over the largest shift."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoPointPhases:
    """Posterior probabilities for g = 1 − q + q e^u."""

    mu: float
    sigma: Floats
    """q e^u / g at x."""

    @property
    def slope(self) -> Floats:
        return np.asarray(self.mu * self.sigma)

    def power_slope(self, exponent: float) -> Floats:
        """Return the bounds: the slope rises with x."""
        return abs(exponent) * self.slope[1:]

    def lift(self, height: Floats) -> LiftedCells:
        """Return the bounds: |g|² = g² (1 − 2σ(1 − σ)(1 − cos angle))."""
        angle = self.mu * height
        odds = self.sigma / (1 - self.sigma + 1e-300)  # q e^u / (1 − q)
        arg_g = np.arctan2(odds * np.sin(angle), 1 + odds * np.cos(angle))
        bernoulli_variance = self.sigma * (1 - self.sigma)
        max_variance = np.maximum(bernoulli_variance[1:], bernoulli_variance[:-1])
        max_variance[(self.sigma[:-1] < 0.5) & (self.sigma[1:] > 0.5)] = 0.25
        return LiftedCells(arg_g[:-1], np.asarray(2 * max_variance * (1 - np.cos(angle[1:]))))


@dataclass(frozen=True, slots=True, eq=False)
class TiltedCells:
    """φ g^exponent / M(c) in cells [n] between points x [n + 1]: bounds on their masses."""

    exponent: float
    """Exponent of the ratio that shrinks off the real axis, or 0."""
    mass_lower: Floats
    mass_upper: Floats

    @classmethod
    def from_losses(
        cls, x: Floats, log_values: Floats, phases: Phases, integrand: MomentIntegrand, log_moment_at_c: float
    ) -> TiltedCells:
        """Return the cells from log φ g^p at x, whose slope is p (log g)' − x, and log M(c).

        In the cell with the cut, ``mass_upper`` is the full mass and ``mass_lower`` is 0; later cells are empty.
        """
        width = np.diff(x)
        slope_bound = phases.power_slope(integrand.real_exponent)
        slope_bound = slope_bound + np.maximum(np.abs(x[1:]), np.abs(x[:-1]))
        log_density = log_values - log_moment_at_c
        high = np.maximum(log_density[1:], log_density[:-1]) + slope_bound * width / 2
        low = np.minimum(log_density[1:], log_density[:-1]) - slope_bound * width / 2
        mass_lower = np.where(x[1:] <= integrand.cut, np.exp(np.minimum(low, 600.0)) * width, 0.0)
        mass_upper = np.where(x[:-1] < integrand.cut, np.exp(np.minimum(high, 600.0)) * width, 0.0)
        return cls(integrand.shrinking_exponent, mass_lower, mass_upper)


@dataclass(frozen=True, slots=True, eq=False)
class LiftedPath:
    """Paths above the real axis, and the bound on |M(c + iy')| / M(c), y' ≥ y, from the modulus integrated along them.

    By conjugate symmetry take Im p = y ≥ 0. M(c + iy) = ∫ φ g^p is the same on x + i b(x), where
    |g^p| = |g|^{Re p} e^{−y arg g}: it decreases as y grows.
    The integral is a sum over cells of the tilted density φ g^{Re p} / M(c): each cell contributes at most its mass
    times exp(b²/2 + ½ log(1 + b'²) + log (|g|/g)^{Re p} − y arg g), with every term of the exponent taken at the end of
    the cell where it is largest. Summing (factor − 1) instead of the factor avoids cancellation where the ratio is near
    one. With b = y κ, where −(w κ')' + w κ = w l' for the tilted density w and l = log g, the bound is exact to second
    order in y (for one integral; approximately for the two of a trimmed tail): ``docs/proofs/sampled-gaussian.md``.
    """

    x: Floats
    path_shape: Floats
    """κ at x; a path is b = s κ, up to ``MAX_PATH_HEIGHT``."""
    phases: Phases
    mu: float
    parts: tuple[TiltedCells, ...]
    """The cells of each integral: one, or two for a trimmed tail."""
    zero_loss_mass: float
    cut_contribution: float
    reference_scale: float
    """The s with which the path reaches ``MAX_PATH_HEIGHT`` at the 99 % quantile of the distribution."""

    @classmethod
    def from_exponents(
        cls,
        integrand: MomentIntegrand,
        exponents: tuple[float, ...],
        log_moment_lower_bound: float,
        zero_loss_mass: float = 0.0,
    ) -> LiftedPath:
        """Return the paths; with two exponents, c + 1 and −c, they start at the point μ/2 of the real axis.

        ``log_moment_lower_bound`` bounds log M(c) from below. ``zero_loss_mass`` bounds the mass with loss 0, divided
        by M(c); it does not decay. The integral of the first exponent ends at the cut; the second runs to infinity.
        """
        low, high = integrand.integration_range()
        if len(exponents) > 1:
            low, high = integrand.mu / 2, max(high, NORMAL_TAIL_WIDTH + integrand.mu)
        x = np.linspace(low, high, PATH_CELLS + 1)
        phases = integrand.phases_at(x)
        integrands = [
            replace(integrand, real_exponent=exponent, cut=integrand.cut if i == 0 else math.inf)
            for i, exponent in enumerate(exponents)
        ]
        values = [part.log_values(x) for part in integrands]
        parts = tuple(
            TiltedCells.from_losses(x, log_values, phases, part, log_moment_lower_bound)
            for log_values, part in zip(values, integrands, strict=True)
        )
        log_density = np.asarray(np.logaddexp.reduce(values))
        log_modulus_at_cut = -math.inf
        if integrand.cut < math.inf:
            # There a path returns to the real axis, along which the integrand need not decay.
            log_at_cut = float(integrand.log_values(np.array(integrand.cut)))
            log_modulus_at_cut = MAX_PATH_HEIGHT**2 / 2 + log_at_cut - log_moment_lower_bound
            log_modulus_at_cut += integrand.log_growth_at_cut()
        # beyond e^700 the bound is useless anyway
        cut_contribution = MAX_PATH_HEIGHT * math.exp(min(log_modulus_at_cut, 700.0))
        path_shape = _best_path_shape(x, log_density, phases.slope, starts_on_axis=len(exponents) > 1)
        masses = np.cumsum(sum(part.mass_upper for part in parts))
        quantile_index = int(np.searchsorted(masses, 0.99 * masses[-1]))
        reference_scale = MAX_PATH_HEIGHT / max(float(path_shape[quantile_index]), 1e-300)
        return cls(x, path_shape, phases, integrand.mu, parts, zero_loss_mass, cut_contribution, reference_scale)

    def log_bound(self, y: float) -> float:
        """Return log of the bound, at most 0: the best of several paths, whose bounds decrease with y."""
        scales = {
            min(factor * y, self.reference_scale * limit) for factor in TRIED_PATH_SCALES for limit in LIMIT_FACTORS
        }
        return min(0.0, *(self._log_bound_at_scale(y, scale) for scale in scales))

    def _log_bound_at_scale(self, y: float, scale: float) -> float:
        """Return log of the smaller of two bounds for the path s = ``scale``.

        1 + Σ mass (e^{…} − 1) is accurate near 1; cells with a negative bracket use the lower bound of their mass.
        Σ mass e^{…} is accurate near 0.
        """
        height = np.minimum(scale * self.path_shape, min(MAX_PATH_HEIGHT, math.pi / 2 / self.mu))
        rise = np.diff(height) / np.diff(self.x)
        lifted = self.phases.lift(height)
        exponent = height[1:] ** 2 / 2 + np.log1p(rise**2) / 2 - y * lifted.arg_lower * (1 - 1e-12)
        excess = MASS_OUTSIDE_CELLS + self.cut_contribution
        total = self.zero_loss_mass + MASS_OUTSIDE_CELLS + self.cut_contribution
        for part in self.parts:
            bracket = np.expm1(np.minimum(exponent + lifted.log_modulus_growth(part.exponent), 700.0))
            excess += float(np.dot(np.where(bracket > 0, part.mass_upper, part.mass_lower), bracket))
            total += float(np.dot(part.mass_upper, bracket + 1))
        return min(math.log1p(max(excess, MIN_EXCESS)), math.log(total))


def _best_path_shape(x: Floats, log_density: Floats, slope: Floats, *, starts_on_axis: bool) -> Floats:
    """Return the running maximum of the κ at x that minimizes ∫ w ((κ² + κ'²)/2 − l' κ); l' is ``slope``.

    κ solves −(w κ')' + w κ = w l'. At free ends κ' is 0; at a first point on the real axis κ is 0.
    """
    width = float(x[1] - x[0])
    upper_band, lower_band = np.zeros_like(x), np.zeros_like(x)
    # w between x_i and x_{i+1}, divided by w_i
    upper_band[:-1] = np.exp(np.clip(np.diff(log_density) / 2, -600.0, 600.0))
    lower_band[1:] = np.exp(np.clip(-np.diff(log_density) / 2, -600.0, 600.0))
    right_hand_side = width**2 * slope
    if starts_on_axis:
        upper_band[0], right_hand_side[0] = 0.0, 0.0
    bands = np.zeros((3, len(x)))
    bands[0, 1:], bands[2, :-1] = -upper_band[:-1], -lower_band[1:]
    bands[1] = upper_band + lower_band + width**2
    path_shape = scipy.linalg.solve_banded((1, 1), bands, right_hand_side)
    return np.asarray(np.maximum.accumulate(np.maximum(path_shape, 0.0)))
