"""How δ of many releases changes with each weight of their common law: gradient and curvature of log δ.

With the other k − 1 factors held, δ_k = Σ_x Q_x φ(P_x / Q_x), φ(r) = r δ_{k−1}(ε − log r): an f-divergence, convex in
(P, Q). So with S the loss of the others, r = P_x/Q_x and u = ε − log r

    ∂δ/∂P_x = k P(S > u),    ∂δ/∂Q_x = −k E[e^{ε − S}; S > u],    curvature k f_S(u) (dP_x − r dQ_x)² / P_x.

The gradient is that of all k factors; the curvature leaves out what they do to each other. Both are read from a
lattice, and are not those of the number that ``composed_curve`` computes on one: that has kinks where losses cross
lattice points, and a search that follows them fits the lattice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.design.composed.composed_curve import ComposedCurve, Indices, Released, Sum, shifted
from tightrope.numerics.arrays import Floats

LIKELY = 1e-9
"""Tail probabilities above this are read from the sum that is not tilted."""
SMOOTHED = 0.05
"""The density of S is averaged over this many of its standard deviations."""


@dataclass(frozen=True, slots=True, eq=False)
class Slopes:
    """Log δ(ε), its gradient [N + 1] in the weights of 0, ±1, …, and its curvature as a band matrix [Δ + 1, N + 1].

    Row Δ − j of the band holds the entries (i − j, i) (``scipy.linalg.solveh_banded``).
    """

    log_delta: float
    gradient: Floats
    band: Floats


def slopes(half: Floats, shift: int, step: float, count: int, epsilon: float) -> Slopes:
    """At normalised weights ``half``; the losses of the others on a lattice of width ``step``."""
    curve = ComposedCurve(Released.of_weights(half, shift, step), count)
    log_delta = curve.log_delta(epsilon)
    p, q = shifted(half, shift)
    both = (p > 0) & (q > 0)
    losses = np.log(p[both]) - np.log(q[both])
    others, scale = _Others.of(curve, epsilon), count / math.exp(log_delta)
    over_p, over_q = np.where(q > 0, 0.0, scale), np.zeros_like(q)
    above, below = others.tails(epsilon - losses)
    over_p[both], over_q[both] = scale * above, -scale * below
    reach = len(half) - 1
    outcomes = np.arange(-reach, reach + shift + 1)
    rows, columns = np.abs(outcomes), np.abs(outcomes - shift)
    gradient = _folded(rows, over_p, reach) + _folded(columns, over_q, reach)
    dense = scale * others.density(epsilon - losses) / p[both]
    band = _band(rows[both], columns[both], dense, p[both] / q[both], (shift + 1, reach + 1))
    return Slopes(log_delta, gradient, band)


def _folded(places: Indices, values: Floats, reach: int) -> Floats:
    """Values added up over x and −x."""
    inside = places <= reach
    return np.bincount(places[inside], weights=values[inside], minlength=reach + 1).astype(np.float64)


def _band(rows: Indices, columns: Indices, dense: Floats, ratio: Floats, shape: tuple[int, int]) -> Floats:
    """The upper band of Σ dense (e_row − ratio e_column)(…)ᵀ."""
    band = np.zeros(shape)
    last = shape[0] - 1
    apart, right = np.abs(rows - columns), np.maximum(rows, columns)
    cross = -dense * ratio * np.where(apart == 0, 2.0, 1.0)
    np.add.at(band, (np.full_like(rows, last), rows), dense)
    np.add.at(band, (np.full_like(rows, last), columns), dense * ratio**2)
    np.add.at(band, (last - apart, right), cross)
    return band


@dataclass(frozen=True, slots=True, eq=False)
class _Others:
    """The loss of k − 1 releases: tilted to the saddle, where masses near ε are precise, and not tilted."""

    tilted: Sum
    plain: Sum
    epsilon: float

    @classmethod
    def of(cls, curve: ComposedCurve, epsilon: float) -> _Others:
        count = curve.count - 1
        return cls(curve.sum_at(curve.saddle(epsilon), count), curve.sum_at(0.0, count), epsilon)

    def density(self, u: Floats) -> Floats:
        """Of S at u, averaged over a short interval."""
        masses, losses = self.plain.masses, self.plain.losses
        mean = float(np.dot(masses, losses))
        wide = SMOOTHED * math.sqrt(max(float(np.dot(masses, (losses - mean) ** 2)), 1e-300))
        held = self.tails(u - wide)[0] - self.tails(u + wide)[0]
        return np.asarray(np.maximum(held, 0.0) / (2 * wide))

    def tails(self, u: Floats) -> tuple[Floats, Floats]:
        """P(S > u) and E[e^{ε − S}; S > u]."""
        near, plain = _tails(self.tilted, self.epsilon, u), _tails(self.plain, self.epsilon, u)
        likely = plain[0] > LIKELY
        return np.where(likely, plain[0], near[0]), np.where(likely, plain[1], near[1])


def _tails(total: Sum, epsilon: float, u: Floats) -> tuple[Floats, Floats]:
    masses = total.masses
    places = np.searchsorted(total.losses, u, side="right")
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    weighted = masses * np.exp(np.minimum(epsilon - total.losses, 300.0))
    below = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)
    return above[places], below[places]
