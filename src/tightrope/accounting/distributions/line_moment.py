"""K(z) = log M(z) at many z on one line, from nodes (weights w, losses l), with an error bound for each.

At small sampling rates M is nearly one, and the relevant part is M − 1 = Σ w E(zl) + λ z, E(v) = e^v − 1 − v, with the
linear term λ known separately. Equidistant z are split into rows, z = z_s + ijh, by
E(v + w) = E(v) + E(w) + (e^v − 1)(e^w − 1): a matrix product without cancellation. If e^{zl} leaves double
precision, the sum is taken with its peak pulled out (``docs/proofs/sampled-gaussian.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import expm1, exponential_rest, log1p, real_exponential_rest
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

LONGEST_ROW = 64
"""Number of nodes in a row."""
FEWEST_NODES = 16
"""From this many on, equidistant z are taken in rows."""
BLOCK = 1 << 13
"""Number of z computed at once."""
FAR = 100.0
"""Beyond e^100 a weight is moved into the exponent."""
UNKNOWN = 1e300
"""Replaces values that are not finite."""
Enclosed = tuple[Complexes, Floats]
"""K [n] and a bound on the modulus of its error [n]; ∞ if only the real part of K is valid, as an upper bound."""


@dataclass(frozen=True, slots=True, eq=False)
class MomentLine:
    """M(z) = still + Σ w e^{zl} = 1 − cut + Σ w E(zl) + λ z, nodes [k].

    ``blurred`` bounds the relative rounding of w and of a sum of k terms, ``moved`` the absolute rounding of l, both in
    units of 2⁻⁵³. ``missing`` is the quadrature's error and the part cut off, per unit of M(c) + 1 + |z|, where
    ``log_moment`` is log M(c), or NaN for real z, for which M(c) is the result itself.
    """

    log_weight: Complexes
    loss: Complexes
    blurred: Floats
    moved: Floats
    linear: complex
    linear_error: float
    still: float
    missing: float
    log_moment: float
    cut: float = 0.0
    """One minus the sum of the weights."""
    whole: bool = True
    """True if M is nearly one; otherwise it is a small part of a distribution, and ``missing`` is per unit of M(c)."""

    @property
    def node_weights(self) -> Complexes:
        return np.exp(self.log_weight)

    def enclose_cumulants(self, z: Complexes) -> Enclosed:
        """K at z [n], which share their real part or are real."""
        blocks = [self._enclose_block(z[i : i + BLOCK]) for i in range(0, len(z), BLOCK)]
        return np.concatenate([k for k, _ in blocks]), np.concatenate([error for _, error in blocks])

    def _enclose_block(self, z: Complexes) -> Enclosed:
        ends = np.array([np.min(z.real), np.max(z.real)])
        if not (self.whole and float(np.max(self.log_weight.real + ends[:, None] * self.loss.real)) < OVERFLOW):
            return self._with_peak(z)
        excess, error = self._on_axis(z.real) if not np.any(z.imag) else self._expm1_excess(z)
        at_c = np.abs(1 + excess) if math.isnan(self.log_moment) else math.exp(self.log_moment)
        return log_one_plus(excess, error + self.missing * (at_c + 1 + np.abs(z)))

    def _expm1_excess(self, z: Complexes) -> tuple[Complexes, Floats]:
        """M − 1 and its rounding error."""
        first, along = _row_sizes(z)
        grown, rest = self._weighted_terms(first)
        inner = expm1(along[:, None] * self.loss)
        inner_rest = exponential_rest(along[:, None] * self.loss, inner)
        weight = self.node_weights
        total = (np.sum(rest, axis=1)[:, None] + (inner_rest @ weight)[None, :] + grown @ inner.T).ravel()[: len(z)]
        outer, crossed = np.abs(grown), np.abs(inner)
        # The errors of w, E and the product; and dE(zl) = (e^{zl} − 1) z dl, with the largest |z| of all.
        size, moved = np.abs(weight), float(np.max(np.abs(z))) * self.moved
        both = self.blurred + moved
        blur = (np.abs(rest) @ self.blurred + outer @ moved)[:, None] + (outer * both) @ crossed.T
        blur += np.abs(inner_rest) @ (size * self.blurred) + crossed @ (size * moved)
        error = ROUND_OFF * blur.ravel()[: len(z)]
        error += np.abs(z) * (self.linear_error + 4 * ROUND_OFF * abs(self.linear)) + 1e-13 * self.cut
        return total + z * self.linear - self.cut, error

    def _on_axis(self, z: Floats) -> tuple[Complexes, Floats]:
        """The same for z on the real axis, in real arithmetic."""
        loss, log_weight = self.loss.real, self.log_weight.real
        exponent = z[:, None] * loss
        weight, far = np.exp(log_weight), exponent > FAR
        held = np.where(far, 0.0, exponent)
        grown = np.expm1(held)
        rest = real_exponential_rest(held, grown) * weight
        grown *= weight
        if np.any(far):
            light = np.broadcast_to(weight, far.shape)[far]
            grown[far] = np.exp(np.broadcast_to(log_weight, far.shape)[far] + exponent[far]) - light
            rest[far] = grown[far] - light * exponent[far]
        blur = np.abs(rest) @ self.blurred + np.abs(z) * (np.abs(grown) @ self.moved)
        linear = self.linear.real if isinstance(self.linear, complex) else self.linear
        error = ROUND_OFF * blur + np.abs(z) * (self.linear_error + 4 * ROUND_OFF * abs(linear)) + 1e-13 * self.cut
        return (np.sum(rest, axis=1) + z * linear - self.cut).astype(np.complex128), error

    def _weighted_terms(self, z: Complexes) -> tuple[Complexes, Complexes]:
        """Terms w (e^v − 1) and w E(v) for v = zl, shape [len(z), k]; the weight in the exponent where e^v is large."""
        exponent = z[:, None] * self.loss
        far = exponent.real > FAR
        held = np.where(far, 0.0, exponent)
        grown = expm1(held)
        rest = exponential_rest(held, grown)
        weight = self.node_weights
        grown, rest = grown * weight, rest * weight
        if np.any(far):
            light = np.broadcast_to(weight, far.shape)[far]
            grown[far] = np.exp(np.broadcast_to(self.log_weight, far.shape)[far] + exponent[far]) - light
            rest[far] = grown[far] - light * exponent[far]
        return grown, rest

    def _with_peak(self, z: Complexes) -> Enclosed:
        """Σ w e^{zl} with the largest exponent pulled out: M may have any size and need not be near one."""
        if not np.any(z.imag):
            return self._outer_exponentials(z.real[:, None] * self.loss.real + self.log_weight.real, None, z)
        first, along = _row_sizes(z)
        inner = np.exp(along[:, None] * self.loss)
        return self._outer_exponentials(first[:, None] * self.loss + self.log_weight, inner, z)

    def _outer_exponentials(self, exponent: Complexes | Floats, inner: Complexes | None, z: Complexes) -> Enclosed:
        """Sum from the exponents at the start of a row [s, k] and the factors along it [j, k]."""
        peak = np.max(exponent.real, axis=1)
        terms = np.exp(exponent - peak[:, None])
        sizes = np.abs(terms)
        if inner is None:
            total, size, blur = np.sum(terms, axis=1), np.sum(sizes, axis=1), sizes @ self.blurred
            move = sizes @ (self.moved + 8 * np.abs(self.loss))
        else:
            crossed = np.abs(inner).T
            total, size = (terms @ inner.T).ravel(), (sizes @ crossed).ravel()
            off = self.blurred + float(np.max(np.abs(z))) * (self.moved + 8 * np.abs(self.loss))
            blur, move = ((sizes * off) @ crossed).ravel(), np.zeros(len(total))
            peak = np.repeat(peak, len(inner))
        total, size, blur, move, peak = (part[: len(z)] for part in (total, size, blur, move, peak))
        scale = np.exp(np.minimum(-peak, 700.0))
        at_c = size if math.isnan(self.log_moment) else self._missing_factor(self.log_moment - peak)
        with np.errstate(over="ignore"):  # an error of ∞ means unknown, and is handled below
            wrong = ROUND_OFF * (blur + np.abs(z) * move + 4 * np.abs(peak) * size)
            lost = self.missing * (at_c + self.whole * (1 + np.abs(z)) * scale) + 1e-12 * self.still * scale
        cumulant, error = log_one_plus(np.asarray(total + self.still * scale - 1, dtype=np.complex128), wrong + lost)
        return cumulant + peak, error + 4 * ROUND_OFF * np.abs(peak)

    def _missing_factor(self, height: Floats) -> Floats:
        """e^height, clipped wherever its factor is 0."""
        beyond = math.inf if self.missing > 0 else 0.0
        return np.where(height < 700, np.exp(np.minimum(height, 700.0)), beyond)


def log_one_plus(excess: Complexes, error: Floats) -> Enclosed:
    """log(1 + excess). If the error is at least half of |1 + excess|, it is ∞ and the real part an upper bound."""
    if not np.any(excess.imag) and np.all(np.isfinite(error)) and np.all(2 * error < 1 + excess.real):
        cumulant = np.log1p(excess.real)
        relative = error / (1 + excess.real)
        return cumulant.astype(np.complex128), -np.log1p(-relative) + 4 * ROUND_OFF * np.abs(cumulant)
    known = np.isfinite(error) & np.isfinite(excess)
    excess, error = np.where(known, excess, 0.0), np.where(known, error, UNKNOWN)
    size = np.abs(1 + excess)
    inside = error < size / 2
    with np.errstate(divide="ignore"):  # log 0 = −∞ is correct here
        cumulant = np.where(inside, log1p(np.where(inside, excess, 0.0)), np.log(size + error))
    relative = np.where(inside, error, 0.0) / np.where(inside, size, 1.0)
    return cumulant, np.where(inside, -np.log1p(-relative), np.inf) + 4 * ROUND_OFF * np.abs(cumulant)


def _row_sizes(z: Complexes) -> tuple[Complexes, Complexes]:
    """Return the z that start a row, and the offsets within a row; every z by itself if they are not equidistant."""
    steps = np.diff(z)
    even = len(z) >= FEWEST_NODES and bool(np.all(np.abs(steps - steps[0]) <= 1e-12 * np.max(np.abs(z))))
    if not even:
        return z, np.zeros(1, dtype=np.complex128)
    length = min(LONGEST_ROW, math.isqrt(len(z)))
    return z[::length], (z[-1] - z[0]) / (len(z) - 1) * np.arange(length)
