"""Moments of a sampled Laplace-type distribution: one Gauss–Legendre rule over the base's losses per line.

With A the distribution without the record and l the base's loss, the sampled loss is g(l) = log(1 − q + q e^l), and

    E_A (1 − q + q e^l)^w − 1 = ∫ (e^{w g(l)} − 1) dA(l),

w = z + 1 if the record is removed and w = −z if it is added. The integrand is analytic in the strip |Im l| < π.
On the ellipse with foci at the ends that reaches b < π/2 from the real axis |e^{wg} − 1| ≤ |w g| max(1, |e^{wg}|), with
g enclosed by its values at the ellipse's ends; that bounds the rule's error (``docs/proofs/sampled-flat.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from tightrope.accounting.distributions.base import BoundArrays, FlatForm
from tightrope.accounting.distributions.loss_cells import HALF
from tightrope.accounting.distributions.moment_quadrature import CumulantEnclosure, log_one_plus
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

MIXTURE_ROUNDING = 16 * ROUND_OFF
"""Relative error of a mapped loss log(1 − q + q e^l), and of the inverse, with the error of a rounded rate.

Elementary functions are assumed to be accurate to two units in the last place (4u). Then e^l − 1, its product or
quotient with q, and log1p of that are off by at most 12u in total: x / ((1 + x) log1p(x)) ≤ 1 does not amplify errors.
"""
MIN_ABSOLUTE_ERROR = 4 * 5e-324
"""Absolute error in addition to ``MIXTURE_ROUNDING``, for numbers below double precision."""
STEEP_LOSS = 30.0
"""Beyond this, e^l − 1 equals e^l up to a few roundings of the logarithm."""
OVERFLOW = 1e290
EXPONENT_SHIFT = 2.0**300
"""Powers of two are exact: intermediate results below double precision keep their digits."""


def log_mixture(loss: Floats, rate: float) -> Floats:
    """Return log(1 − q + q e^l), to ``MIXTURE_ROUNDING`` of itself, for any finite l and 0 < q < 1.

    >>> log_mixture(np.array([-50.0, 0.0, 1e-20, 1e3]), 1 - 2.0**-30).round(9).tolist()
    [-20.794415417, 0.0, 0.0, 999.999999999]
    """
    loss = np.asarray(loss, dtype=np.float64)
    with np.errstate(over="ignore"):
        half = np.exp(loss / 2)
        large_growth = (rate * EXPONENT_SHIFT) * half * (half / EXPONENT_SHIFT) - rate
        growth = np.where(loss > STEEP_LOSS, large_growth, rate * np.expm1(np.minimum(loss, STEEP_LOSS)))
    overflows = growth > OVERFLOW
    uses_log1p = (growth > -HALF) | (rate <= HALF)
    by_log1p = np.log1p(np.where(~overflows & uses_log1p, growth, 0.0))
    by_log = np.log(
        np.where(uses_log1p, 1.0, (1 - rate) + rate * np.square(np.minimum(half, 1.0)))
    )  # only for losses below 0
    return np.where(overflows, loss + math.log(rate), np.where(uses_log1p, by_log1p, by_log))


def log_mixture_slope(loss: float, rate: float) -> float:
    """Return the largest derivative of the sampled loss at or below ``loss``: q e^l / (1 − q + q e^l) ≤ 1."""
    odds = loss + math.log(rate) - math.log1p(-rate) if rate < 1 else math.inf
    return 1.0 if odds > 0 else math.exp(max(odds, -740.0))


def base_epsilon_above(epsilon: BoundArrays, rate: float) -> BoundArrays:
    """Return bounds on ε' = log(1 + (e^ε − 1)/q), ε ≥ 0: the point where a sampled distribution evaluates its base."""
    low = _base_epsilon(epsilon[0], rate)
    high = low if epsilon[0] is epsilon[1] else _base_epsilon(epsilon[1], rate)
    return _relative_interval(low)[0], _relative_interval(high)[1]


def _base_epsilon(epsilon: Floats, rate: float) -> Floats:
    with np.errstate(over="ignore"):
        ratio = np.expm1(np.minimum(epsilon, STEEP_LOSS)) / rate
    direct = np.log1p(np.minimum(ratio, OVERFLOW))
    overflows = (epsilon > STEEP_LOSS) | (ratio > OVERFLOW)
    if not overflows.any():
        return np.asarray(direct)
    with np.errstate(divide="ignore"):
        at_tiny_rate = epsilon + np.log(-np.expm1(-epsilon)) - math.log(rate)
    at_large_epsilon = epsilon - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(epsilon, STEEP_LOSS)))
    return np.where(epsilon > STEEP_LOSS, at_large_epsilon, np.where(overflows, at_tiny_rate, direct))


def base_weight_and_epsilon(epsilon: BoundArrays, rate: float) -> tuple[BoundArrays, BoundArrays]:
    """Return bounds on w = 1 − e^ε (1 − q) = q (1 − y), y = (e^ε − 1)(1 − q)/q, and on ε' = ε − log(1 − y), for ε ≥ 0.

    If y ≥ 1, w is 0 and ε' has no meaning.
    """
    with np.errstate(over="ignore"):
        low_ratio, high_ratio = (
            _relative_interval(np.expm1(np.minimum(end, 700.0)) / rate * (1 - rate))[side]
            for side, end in enumerate(epsilon)
        )
        low_weight = rate * np.maximum(1 - high_ratio, 0.0) * (1 - MIXTURE_ROUNDING)
        high_weight = rate * np.maximum(1 - low_ratio, 0.0) * (1 + MIXTURE_ROUNDING)
    low, high = (
        _relative_interval(end - np.log1p(-np.where(y < 1, y, 0.0)))[side]
        for side, (end, y) in enumerate(zip(epsilon, (low_ratio, high_ratio), strict=True))
    )
    return (low_weight, high_weight), (low, high)


def _relative_interval(value: Floats) -> BoundArrays:
    """Return bounds on a number ≥ 0 from a value that is off by ``MIXTURE_ROUNDING`` of itself."""
    return np.maximum(value * (1 - MIXTURE_ROUNDING) - MIN_ABSOLUTE_ERROR, 0.0), np.asarray(
        value * (1 + MIXTURE_ROUNDING) + MIN_ABSOLUTE_ERROR
    )


RULE_SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Sizes of the rule that are tried."""
ELLIPSE_DISTANCES = (0.02, 0.1, 0.2, 0.5, 0.9, 1.3)
"""Distances from the real axis of the ellipses that are tried; also these, in halves of the interval:"""
RELATIVE_DISTANCES = (0.3, 1.0, 3.0, 10.0)
MAX_PLAIN_EXPONENT = 200.0
"""Logarithms of powers beyond this are computed with the largest one pulled out."""
MAX_FLAT_EPSILON = 300.0
"""Bases with larger losses are not tried."""
MAX_LOG_ERROR = 500.0
"""Logarithms of errors are clipped here, beyond any use."""
TERMS_CHUNK = 1 << 21
"""Number of powers computed at once."""
CumulantFunction = Callable[[Complexes], CumulantEnclosure]
"""K and its error at z."""


@dataclass(frozen=True, slots=True)
class FlatMoment:
    """The part of a base between ``low`` and its largest loss, sampled at ``rate``; ``opposite``: A's mass at −∞."""

    flat: FlatForm
    rate: float
    low: float
    opposite: float = 0.0

    @classmethod
    def from_base(
        cls, flat: FlatForm | None, rate: float, *, above: bool = False, opposite: float = 0.0
    ) -> FlatMoment | None:
        """Use all of a base, or its losses above 0; None if it is not of Laplace type or needs too many nodes."""
        if flat is None or not (rate < 1 and flat.epsilon < MAX_FLAT_EPSILON):
            return None
        moment = cls(flat, rate, 0.0 if above else -flat.epsilon, opposite)
        try:
            moment._quadrature_rule(np.array([2.0, -1.0], dtype=np.complex128))
        except PrecisionError:
            return None
        return moment

    def moment_excess(self, w: Complexes) -> CumulantEnclosure:
        """Return ∫ (e^{wg} − 1) dA at powers w, and a bound on the error; for moderate powers."""
        growth, weights, rule_error = self._quadrature_rule(w)
        value, total = np.empty(len(w), dtype=np.complex128), np.empty(len(w))
        rows = max(1, TERMS_CHUNK // len(growth))
        for start in range(0, len(w), rows):
            part = slice(start, start + rows)
            terms = np.expm1(np.multiply.outer(w[part], growth))
            value[part], total[part] = terms @ weights, np.abs(terms) @ weights
        shift = np.abs(w) * float(np.dot(weights, np.abs(growth))) + total * np.abs(w) * float(np.max(np.abs(growth)))
        return value, ROUND_OFF * ((len(growth) + 24) * total + 24 * shift) + np.abs(w) * rule_error

    def log_power(self, w: Complexes) -> CumulantEnclosure:
        """Return log E_A e^{wg} over all of A: log(1 + ``moment_excess``) unless powers are steep."""
        if self.largest_exponent(w) < MAX_PLAIN_EXPONENT:
            value, error = self.moment_excess(w)
            return log_one_plus(value, error)
        growth, weights, rule_error = self._quadrature_rule(w)
        exponents = np.multiply.outer(w, growth) + np.log(np.maximum(weights, 5e-324))
        peak = np.max(exponents.real, axis=1)
        terms = np.exp(exponents - peak[:, None])
        total, size = np.sum(terms, axis=1), np.sum(np.abs(terms), axis=1)
        rounding = ROUND_OFF * (len(growth) + 24 + 24 * np.max(np.abs(exponents), axis=1)) * size
        value, error = log_one_plus(total - 1, rounding + np.abs(w) * rule_error * np.exp(-np.minimum(peak, 700.0)))
        return value + peak, error

    def largest_exponent(self, w: Complexes) -> float:
        """Return about the largest real part of w g."""
        return float(np.max(np.abs(np.multiply.outer(w.real, self.sampled_loss_range)), initial=0.0))

    def sampled_loss(self, loss: Floats) -> Floats:
        """Return the sampled losses for base losses."""
        return log_mixture(loss, self.rate)

    @property
    def sampled_loss_range(self) -> Floats:
        """The smallest and the largest sampled loss."""
        low, high = self.sampled_loss(np.array([self.low, self.flat.epsilon])).tolist()
        return np.array([math.log1p(-self.rate) if self.opposite else low, high])

    @property
    def sampled_loss_span(self) -> float:
        """Largest distance between two sampled losses."""
        return float(self.sampled_loss_range[1] - self.sampled_loss_range[0])

    @property
    def conditional_mass(self) -> float:
        """A's mass."""
        flat, difference = self.flat, math.exp(-self.low / 2) - math.exp(-self.flat.epsilon / 2)
        return flat.spread / flat.epsilon * difference + self.atom_moment(0.0)

    def atom_moment(self, power: float) -> float:
        """Return ∫ e^{wg} dA over the atoms, w real."""
        flat, ends = self.flat, np.array([self.flat.epsilon, self.low])
        with np.errstate(over="ignore"):  # ∞ is a valid bound, but 0 · ∞ is not
            atoms = np.exp(power * self.sampled_loss(ends) - ends / 2) * flat.atom if flat.atom else np.zeros(2)
        lower_atom = float(atoms[1]) if self.low == -flat.epsilon else 0.0
        opposite = self.opposite * math.exp(power * math.log1p(-self.rate)) if self.opposite else 0.0
        return float(atoms[0]) + lower_atom + opposite

    def oscillation_bound(self, power: float) -> float:
        """Return a bound on y |∫ e^{(w + iy)g} over the density|: both ends and the total variation of F = f e^{wg}/g'.

        Log F = (w + 1) g − 3l/2 + const is convex or falls, so it has no maximum inside.
        """
        flat, ends = self.flat, np.array([self.low, self.flat.epsilon])
        if not flat.spread:
            return 0.0
        turn = 3 / (2 * (power + 1)) if power > -1 else 1.0  # the slope changes its sign where g' = turn
        minimum = math.log(turn * (1 - self.rate) / (self.rate * (1 - turn))) if 0 < turn < 1 else flat.epsilon
        points = np.append(ends, min(max(minimum, self.low), flat.epsilon))
        with np.errstate(over="ignore"):
            heights = np.exp((power + 1) * self.sampled_loss(points) - 1.5 * points) * flat.spread
        heights /= 2 * flat.epsilon * self.rate
        if not np.all(np.isfinite(heights)):
            return math.inf
        return 2 * float(heights[0] + heights[1] - np.min(heights)) * (1 + 1e-9)

    def _quadrature_rule(self, w: Complexes) -> tuple[Floats, Floats, float]:
        """Return sampled losses at nodes and atoms, A's masses there, and the rule's error relative to |w|."""
        powers, reach = (float(np.min(w.real)), float(np.max(w.real))), float(np.max(np.abs(w.imag), initial=0.0))
        ends = self.sampled_loss(np.array([self.low, self.flat.epsilon]))
        scale = float(np.max(np.abs(ends)))
        least = max(0.0, float(np.min(np.max(np.multiply.outer(w.real, ends), axis=1))))
        half = (self.flat.epsilon - self.low) / 2
        reaches = [*ELLIPSE_DISTANCES, *(b * half for b in RELATIVE_DISTANCES if b * half < ELLIPSE_DISTANCES[-1])]
        for size in RULE_SIZES:
            log_error = min(self._log_error(size, b, powers, reach) for b in reaches)
            if log_error <= math.log(ROUND_OFF * scale) + least or not self.flat.spread:
                growth, weights = _nodes_and_masses(self, size)
                return growth, weights, math.exp(min(log_error, MAX_LOG_ERROR)) if self.flat.spread else 0.0
        raise PrecisionError(f"powers up to {powers[1]:.3g} ± {reach:.3g}i of a sampled loss need too many nodes")

    def _log_error(self, size: int, b: float, powers: tuple[float, float], reach: float) -> float:
        """Return log of a bound on the error of the rule of this size, over |w|, for the ellipse with distance b."""
        half, middle = (self.flat.epsilon - self.low) / 2, (self.flat.epsilon + self.low) / 2
        ratio = b / half + math.hypot(1, b / half)
        out = half * (ratio + 1 / ratio) / 2
        right, left, q = min(middle + out, 700.0), max(middle - out, -700.0), self.rate
        above = math.log1p(q * math.expm1(right))
        below = math.log1p(q * (math.exp(left) * math.cos(b) - 1))
        angle = math.atan2(q * math.exp(right) * math.sin(b), 1 - q + q * math.exp(right) * math.cos(b))
        steep = max(0.0, *(power * end for power in powers for end in (above, below))) + reach * angle
        height = math.log(max(abs(above), abs(below)) + angle) + steep - left / 2
        density = math.log(max(self.flat.spread, 5e-324) / (2 * self.flat.epsilon) * half)
        return math.log(64 / 15) + height + density - 2 * (size - 1) * math.log(ratio) - math.log1p(-(ratio**-2))


def relative_modulus_bound(
    cumulants: CumulantFunction, point: complex, atoms: float, oscillation: float, span: float
) -> float:
    """Return a bound on |M(c + iy')| / M(c) for y' ≥ y, at the point c + iy.

    While y · span ≤ π the modulus decreases: |M|² is E cos(yD), D the difference of two losses. Beyond, the atoms do
    not decay, and the density adds at most ``oscillation`` / y.
    """
    c, y = point.real, point.imag
    (cumulant,), (error,) = cumulants(np.array([complex(c)]))
    if not (math.isfinite(error) and abs(cumulant.real) < MAX_PLAIN_EXPONENT):
        return 1.0
    moment, largest_y = math.exp(cumulant.real - error), math.pi / span
    beyond = min(1.0, (atoms + oscillation / max(y, largest_y)) / moment * (1 + 1e-9))
    if y >= largest_y:
        return beyond
    (at_point,), (point_error,) = cumulants(np.array([point]))
    return max(beyond, math.exp(min(0.0, at_point.real + point_error - cumulant.real + error)))


@lru_cache(maxsize=64)
def _nodes_and_masses(moment: FlatMoment, size: int) -> tuple[Floats, Floats]:
    """Return sampled losses at the rule's nodes and at the atoms, and A's masses."""
    flat, low = moment.flat, moment.low
    points, weights = special.roots_legendre(size)
    half, middle = (flat.epsilon - low) / 2, (flat.epsilon + low) / 2
    losses = middle + half * points
    masses = weights * half * flat.spread / (2 * flat.epsilon) * np.exp(-losses / 2)
    atoms = np.array([flat.epsilon, -flat.epsilon] if low == -flat.epsilon else [flat.epsilon])
    growth = moment.sampled_loss(np.concatenate([losses, atoms]))
    all_masses = np.concatenate([masses, flat.atom * np.exp(-atoms / 2)])
    if moment.opposite:
        growth, all_masses = np.append(growth, math.log1p(-moment.rate)), np.append(all_masses, moment.opposite)
    return growth[all_masses > 0], all_masses[all_masses > 0]
