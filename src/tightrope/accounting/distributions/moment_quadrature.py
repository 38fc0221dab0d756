"""Evaluate K(z) = log M(z), M(z) = Σ w e^{zl}, at many z on one line, with an error bound for each value.

At small sampling rates M is nearly one, and the relevant part is M − 1 = Σ w E(zl) + λ z, E(v) = e^v − 1 − v; the
linear term λz is computed separately, without cancellation. Equidistant z are split into rows, z = z_s + ijh, by
E(v + w) = E(v) + E(w) + (e^v − 1)(e^w − 1): a matrix product without cancellation. If e^{zl} leaves double
precision, the sum is taken with its peak pulled out (``docs/proofs/sampled-gaussian.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import expm1, expm1_minus_argument, log1p, real_expm1_minus_argument
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

MAX_ROW_LENGTH = 64
"""Most z values in a row."""
MIN_Z_FOR_ROWS = 16
"""Fewer equidistant z than this are evaluated one by one."""
Z_BLOCK_SIZE = 1 << 13
"""Number of z computed at once."""
MAX_PLAIN_EXPONENT = 100.0
"""If Re(zl) exceeds this, w e^{zl} is computed as e^{zl + log w}."""
UNKNOWN_ERROR = 1e300
"""Stand-in for an error bound that is not finite."""
CumulantEnclosure = tuple[Complexes, Floats]
"""K [n] and a bound on the modulus of its error [n]; ∞ if only the real part of K is valid, as an upper bound."""


@dataclass(frozen=True, slots=True, eq=False)
class MomentQuadrature:
    """M(z) = s + Σ w e^{zl} = 1 − t + Σ w E(zl) + λ z with nodes [k], s = ``zero_loss_mass``, t = ``mass_beyond_cut``.

    z is the power of e^l: for the moments of a sampled Gaussian it is the exponent p of g.
    """

    log_weight: Complexes
    """Log w."""
    loss: Complexes
    """l."""
    weight_error: Floats
    """Bound on the relative rounding of w and of a sum of k terms, in units of 2⁻⁵³."""
    loss_error: Floats
    """Bound on the absolute rounding of l, in units of 2⁻⁵³."""
    linear: complex
    """λ."""
    linear_error: float
    zero_loss_mass: float
    truncation_error: float
    """Error of the quadrature and of cutting off the tails, divided by M(c) + 1 + |z|; by M(c) unless ``near_one``."""
    log_moment: float
    """Log M(c); NaN for real z, for which M(c) is the result itself."""
    mass_beyond_cut: float = 0.0
    """One minus the sum of the weights."""
    near_one: bool = True
    """True for a full distribution, whose M is near 1; False for its tail."""

    @property
    def node_weights(self) -> Complexes:
        return np.exp(self.log_weight)

    def enclose_cumulants(self, z: Complexes) -> CumulantEnclosure:
        """Return K and its error bound at z [n]. All z must have the same real part, or all be real."""
        blocks = [self._enclose_block(z[i : i + Z_BLOCK_SIZE]) for i in range(0, len(z), Z_BLOCK_SIZE)]
        return np.concatenate([k for k, _ in blocks]), np.concatenate([error for _, error in blocks])

    def _enclose_block(self, z: Complexes) -> CumulantEnclosure:
        ends = np.array([np.min(z.real), np.max(z.real)])
        largest = float(np.max(self.log_weight.real + ends[:, None] * self.loss.real))
        if not (self.near_one and largest < OVERFLOW and math.hypot(self.linear.real, self.linear.imag) < math.inf):
            return self._enclose_scaled(z)
        excess, error = self._real_moment_minus_one(z.real) if not np.any(z.imag) else self._moment_minus_one(z)
        moment_at_c = np.abs(1 + excess) if math.isnan(self.log_moment) else math.exp(self.log_moment)
        return log_one_plus(excess, error + self.truncation_error * (moment_at_c + 1 + np.abs(z)))

    def _moment_minus_one(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return M − 1 and its rounding error."""
        row_starts, offsets = _split_into_rows(z)
        exp_minus_one, remainder = self._weighted_terms(row_starts)
        inner = expm1(offsets[:, None] * self.loss)
        inner_remainder = expm1_minus_argument(offsets[:, None] * self.loss, inner)
        weight = self.node_weights
        total = np.sum(remainder, axis=1)[:, None] + (inner_remainder @ weight)[None, :] + exp_minus_one @ inner.T
        abs_outer, abs_inner = np.abs(exp_minus_one), np.abs(inner)
        # The errors of w, E and the product; and dE(zl) = (e^{zl} − 1) z dl, with |z| replaced by its maximum.
        size, exponent_error = np.abs(weight), float(np.max(np.abs(z))) * self.loss_error
        node_error = self.weight_error + exponent_error
        rounding = (np.abs(remainder) @ self.weight_error + abs_outer @ exponent_error)[:, None]
        rounding = rounding + (abs_outer * node_error) @ abs_inner.T
        rounding += np.abs(inner_remainder) @ (size * self.weight_error) + abs_inner @ (size * exponent_error)
        error = ROUND_OFF * rounding.ravel()[: len(z)]
        error += np.abs(z) * (self.linear_error + 4 * ROUND_OFF * abs(self.linear)) + 1e-13 * self.mass_beyond_cut
        return total.ravel()[: len(z)] + z * self.linear - self.mass_beyond_cut, error

    def _real_moment_minus_one(self, z: Floats) -> tuple[Complexes, Floats]:
        """Return M − 1 and its rounding error for real z, in real arithmetic."""
        loss, log_weight = self.loss.real, self.log_weight.real
        exponent = z[:, None] * loss
        weight, is_large = np.exp(log_weight), exponent > MAX_PLAIN_EXPONENT
        clipped = np.where(is_large, 0.0, exponent)
        exp_minus_one = np.expm1(clipped)
        remainder = real_expm1_minus_argument(clipped, exp_minus_one) * weight
        exp_minus_one *= weight
        if np.any(is_large):
            node_weight = np.broadcast_to(weight, is_large.shape)[is_large]
            log_term = np.broadcast_to(log_weight, is_large.shape)[is_large] + exponent[is_large]
            exp_minus_one[is_large] = np.exp(log_term) - node_weight
            remainder[is_large] = exp_minus_one[is_large] - node_weight * exponent[is_large]
        rounding = np.abs(remainder) @ self.weight_error + np.abs(z) * (np.abs(exp_minus_one) @ self.loss_error)
        linear = self.linear.real if isinstance(self.linear, complex) else self.linear
        error = ROUND_OFF * rounding + np.abs(z) * (self.linear_error + 4 * ROUND_OFF * abs(linear))
        error = error + 1e-13 * self.mass_beyond_cut
        return (np.sum(remainder, axis=1) + z * linear - self.mass_beyond_cut).astype(np.complex128), error

    def _weighted_terms(self, z: Complexes) -> tuple[Complexes, Complexes]:
        """Return w (e^v − 1) and w E(v) for v = zl, shape [len(z), k]; large e^v w as one exponential."""
        exponent = z[:, None] * self.loss
        is_large = exponent.real > MAX_PLAIN_EXPONENT
        clipped = np.where(is_large, 0.0, exponent)
        exp_minus_one = expm1(clipped)
        remainder = expm1_minus_argument(clipped, exp_minus_one)
        weight = self.node_weights
        exp_minus_one, remainder = exp_minus_one * weight, remainder * weight
        if np.any(is_large):
            node_weight = np.broadcast_to(weight, is_large.shape)[is_large]
            log_term = np.broadcast_to(self.log_weight, is_large.shape)[is_large] + exponent[is_large]
            exp_minus_one[is_large] = np.exp(log_term) - node_weight
            remainder[is_large] = exp_minus_one[is_large] - node_weight * exponent[is_large]
        return exp_minus_one, remainder

    def _enclose_scaled(self, z: Complexes) -> CumulantEnclosure:
        """Return K and its error from Σ w e^{zl} divided by its largest term: M may have any size."""
        if not np.any(z.imag):
            return self._enclose_from_exponents(z.real[:, None] * self.loss.real + self.log_weight.real, None, z)
        row_starts, offsets = _split_into_rows(z)
        inner = np.exp(offsets[:, None] * self.loss)
        return self._enclose_from_exponents(row_starts[:, None] * self.loss + self.log_weight, inner, z)

    def _enclose_from_exponents(
        self, exponent: Complexes | Floats, inner: Complexes | None, z: Complexes
    ) -> CumulantEnclosure:
        """Return K and its error, from exponents at the row starts [rows, k] and factors e^{offset·l} in a row [j, k].

        ``inner`` is None if each z is its own row.
        """
        peak = np.max(exponent.real, axis=1)
        terms = np.exp(exponent - peak[:, None])
        sizes = np.abs(terms)
        if inner is None:
            total, size, blur = np.sum(terms, axis=1), np.sum(sizes, axis=1), sizes @ self.weight_error
            shift = sizes @ (self.loss_error + 8 * np.abs(self.loss))
        else:
            abs_inner = np.abs(inner).T
            total, size = (terms @ inner.T).ravel(), (sizes @ abs_inner).ravel()
            node_error = self.weight_error + float(np.max(np.abs(z))) * (self.loss_error + 8 * np.abs(self.loss))
            blur, shift = ((sizes * node_error) @ abs_inner).ravel(), np.zeros(len(total))
            peak = np.repeat(peak, len(inner))
        total, size, blur, shift, peak = (part[: len(z)] for part in (total, size, blur, shift, peak))
        scale = np.exp(np.minimum(-peak, 700.0))
        if math.isnan(self.log_moment):
            moment_at_c = size
        else:  # e^height; from 700 on ∞, or 0 if its factor is 0, so that the product is never 0 · ∞
            height = self.log_moment - peak
            overflow = math.inf if self.truncation_error > 0 else 0.0
            moment_at_c = np.where(height < 700, np.exp(np.minimum(height, 700.0)), overflow)
        with np.errstate(over="ignore"):  # an error of ∞ means unknown, and is handled below
            rounding_error = ROUND_OFF * (blur + np.abs(z) * shift + 4 * np.abs(peak) * size)
            unit = moment_at_c + ((1 + np.abs(z)) * scale if self.near_one else 0.0)
            truncation_error = self.truncation_error * unit + 1e-12 * self.zero_loss_mass * scale
        excess = np.asarray(total + self.zero_loss_mass * scale - 1, dtype=np.complex128)
        cumulant, error = log_one_plus(excess, rounding_error + truncation_error)
        return cumulant + peak, error + 4 * ROUND_OFF * np.abs(peak)


def log_one_plus(excess: Complexes, error: Floats) -> CumulantEnclosure:
    """Return log(1 + excess) and its error bound.

    Where ``error`` ≥ |1 + excess|/2, the returned error is ∞ and the real part is an upper bound.
    """
    if not np.any(excess.imag) and np.all(np.isfinite(error)) and np.all(2 * error < 1 + excess.real):
        cumulant = np.log1p(excess.real)
        relative = error / (1 + excess.real)
        return cumulant.astype(np.complex128), -np.log1p(-relative) + 4 * ROUND_OFF * np.abs(cumulant)
    is_finite = np.isfinite(error) & np.isfinite(excess)
    excess, error = np.where(is_finite, excess, 0.0), np.where(is_finite, error, UNKNOWN_ERROR)
    size = np.abs(1 + excess)
    is_accurate = error < size / 2
    with np.errstate(divide="ignore"):  # log 0 = −∞ is correct here
        cumulant = np.where(is_accurate, log1p(np.where(is_accurate, excess, 0.0)), np.log(size + error))
    relative = np.where(is_accurate, error, 0.0) / np.where(is_accurate, size, 1.0)
    return cumulant, np.where(is_accurate, -np.log1p(-relative), np.inf) + 4 * ROUND_OFF * np.abs(cumulant)


def _split_into_rows(z: Complexes) -> tuple[Complexes, Complexes]:
    """Return the z at the row starts and the offsets within a row; z that are not equidistant are rows of their own."""
    steps = np.diff(z)
    if not (len(z) >= MIN_Z_FOR_ROWS and np.all(np.abs(steps - steps[0]) <= 1e-12 * np.max(np.abs(z)))):
        return z, np.zeros(1, dtype=np.complex128)
    length = min(MAX_ROW_LENGTH, math.isqrt(len(z)))
    return z[::length], (z[-1] - z[0]) / (len(z) - 1) * np.arange(length)
