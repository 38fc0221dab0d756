"""δ of a few steps of sampled Gaussians by nested quadrature in doubles, in logarithms: nothing here is from ``src``.

δ_k(ε) = ∫ p(x) δ_{k−1}(ε − l(x)) dx for removing a record, one step at a time, and δ of one step from normal tails.
log δ_{k−1} is tabulated at Chebyshev points of panels that become narrow toward its kink, Σ log(1 − q), below which it
is 1 − e^ε. All terms are positive, so δ is as accurate at 1e-300 as at 1. Good to about ten digits, or to 16 ulps of
log δ where that is more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
LogDelta = Callable[[Floats], Floats]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
DEGREE = 20
GRADES = 2.0 ** np.arange(-46, 5, 2)
"""Distances from a kink at which panels of x end."""
RATIO = 1.15
"""Growth of the panels of a table, with the distance from its kink."""


def log_loss(sigma: float, rate: float, x: Floats) -> Floats:
    """log(1 − q + q e^{μx − μ²/2})."""
    exponent = (x - 1 / (2 * sigma)) / sigma
    near = np.log1p(rate * np.expm1(np.minimum(exponent, 30.0)))
    far = math.log(rate) + exponent + np.log1p((1 - rate) / rate * np.exp(-np.maximum(exponent, 30.0)))
    return np.where(exponent > 30, far, near)


def outcome_at(sigma: float, rate: float, loss: float) -> float:
    """The x with this loss; −∞ if there is none."""
    if loss > 30:
        exponent = loss - math.log(rate) + math.log1p((rate - 1) * math.exp(-loss))
    else:
        exponent = math.log1p(math.expm1(loss) / rate) if math.expm1(loss) > -rate else -math.inf
    return sigma * exponent + 1 / (2 * sigma)


def log_one_step(sigma: float, rate: float, epsilon: Floats) -> Floats:
    """log of E_γ((1−q)A + qB ‖ A) = q E_γ'(B ‖ A), γ' = (γ − 1 + q)/q, from logarithms of normal tails."""
    mu = 1 / sigma
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        inner = np.where(
            epsilon > 30,
            epsilon - math.log(rate) + np.log1p((rate - 1) * np.exp(-np.maximum(epsilon, 30.0))),
            np.log1p(np.expm1(np.minimum(epsilon, 30.0)) / rate),
        )
        x = inner / mu + mu / 2
        log_b, log_a = special.log_ndtr(mu - x), inner + special.log_ndtr(-x)
        above = math.log(rate) + log_b + np.log(-np.expm1(np.minimum(log_a - log_b, -1e-300)))
        below = np.log(-np.expm1(np.minimum(epsilon, -1e-300)))
    return np.where(np.isfinite(inner), above, below)


def add_step(sigma: float, rate: float, previous: LogDelta, kink: float) -> Callable[[float], float]:
    """log δ after one more step, with the kink of the steps before."""
    mu = 1 / sigma

    def log_delta(epsilon: float) -> float:
        at = outcome_at(sigma, rate, epsilon - kink)
        most = max(at, 0.0) + mu + 40.0
        width = min(0.25, 0.5 / mu)
        edges = [np.arange(-14.0, most, width)]
        centers = [at, outcome_at(sigma, rate, epsilon), mu / 2]
        edges += [center + sign * GRADES for center in centers if math.isfinite(center) for sign in (-1, 1)]
        edges.append(np.array([center for center in centers if math.isfinite(center)]))
        sorted_edges = np.unique(np.concatenate(edges))
        sorted_edges = sorted_edges[(sorted_edges >= -14) & (sorted_edges <= most)]
        panel = np.diff(sorted_edges)[:, None]
        x = sorted_edges[:-1, None] + panel * (1 + NODES) / 2
        loss = log_loss(sigma, rate, x)
        terms = -(x**2) / 2 + loss + previous(epsilon - loss) + np.log(panel * WEIGHTS / 2)
        return float(special.logsumexp(terms)) - math.log(2 * math.pi) / 2

    return log_delta


def tabulate(log_delta: Callable[[float], float], kink: float, most: float) -> LogDelta:
    """An interpolant of log δ between the kink and ``most``; below it δ = 1 − e^ε."""
    start = 1e-4 * max(abs(kink), 1e-12)
    count = math.ceil(math.log((most - kink) / start) / math.log(RATIO)) + 1
    edges = kink + np.concatenate([[0.0], start * RATIO ** np.arange(count)])
    points = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    tables = [
        chebyshev.chebfit(points, [log_delta(low + (high - low) * (1 + t) / 2) for t in points.tolist()], DEGREE)
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    coefficients = np.array(tables).T

    def interpolate(epsilon: Floats) -> Floats:
        index = np.clip(np.searchsorted(edges, epsilon) - 1, 0, len(edges) - 2)
        t = 2 * (epsilon - edges[index]) / (edges[index + 1] - edges[index]) - 1
        ahead, after = np.zeros_like(epsilon), np.zeros_like(epsilon)
        for row in coefficients[:0:-1]:
            ahead, after = row[index] + 2 * t * ahead - after, ahead
        value = coefficients[0][index] + t * ahead - after
        below = np.log(-np.expm1(np.minimum(epsilon, -1e-300)))
        return np.where(epsilon <= kink, below, value)

    return interpolate


def nested_delta(steps: Sequence[tuple[float, float]], epsilon: float) -> float:
    """log δ(ε) of steps (sigma, rate), each at most once in this list per step; ε ≥ 0, rates below 1."""
    (sigma, rate), *others = steps
    kink = math.log1p(-rate)

    def previous(at: Floats, sigma: float = sigma, rate: float = rate) -> Floats:
        return log_one_step(sigma, rate, at)

    for index, (sigma_next, rate_next) in enumerate(others):
        following = add_step(sigma_next, rate_next, previous, kink)
        if index == len(others) - 1:
            return following(epsilon)
        kink += math.log1p(-rate_next)
        rest = sum(math.log1p(-q) for _, q in others[index + 1 :])
        previous = tabulate(following, kink, epsilon - rest + 1e-9)
    return float(previous(np.array([epsilon]))[0])
