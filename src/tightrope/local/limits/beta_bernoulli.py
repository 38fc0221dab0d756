"""A coin of unknown bias with a Beta prior: what n open throws say about it, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from tightrope.local.limits.bayes_problem import RISK_MARGIN, BayesProblem, Cells, log_choose
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import positive, whole

BISECTIONS = 60
MOST_COUNTED = 5000
"""With more people what open values say is bounded by 1, and log(n + 1) nats: it is privacy that limits then."""


@dataclass(frozen=True, slots=True)
class BetaBernoulli(BayesProblem):
    """Θ ~ Beta(a, b), each value a coin that shows 1 with probability Θ: closed forms. a = b = 1 is the uniform prior.

    >>> round(float(BetaBernoulli().shared(np.array([4 / 3]), 1)[0]) * 9, 9)  # (1 − γ/2)² at γ = 4/3
    1.0
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        positive("a", self.a)
        positive("b", self.b)

    @property
    def spread(self) -> float:
        return 0.5

    def ball(self, radius: Floats) -> Floats:
        """2ζ for the uniform prior; else the largest window over a fine grid, widened by its step."""
        if self.a == self.b == 1:
            return np.minimum(1.0, 2 * radius)
        edges = np.linspace(0.0, 1.0, 4097)
        upper = special.betainc(self.a, self.b, np.minimum(edges[1:, None] + radius, 1.0))
        lower = special.betainc(self.a, self.b, np.maximum(edges[:-1, None] - radius, 0.0))
        return np.asarray(np.minimum(1.0, np.max(upper - lower, axis=0) + RISK_MARGIN))

    def shared(self, gammas: Floats, people: int) -> Floats:
        """Σ_s ∫ (P(s|θ) − γ P(s))₊ dπ: each s has one interval of θ around s/n, found by bisection."""
        count = whole("people", people)
        if count > MOST_COUNTED:
            return np.ones(len(gammas))
        ones, marginal = np.arange(count + 1.0), np.exp(self._log_marginal(count))
        values = [self._shared(float(gamma), count, ones, marginal) for gamma in gammas]
        return np.minimum(1.0, np.array(values) + RISK_MARGIN)

    def mutual_information(self, people: int) -> float:
        """Σ_s P(s) (E[log P(s|Θ) | s] − log P(s)), with digammas; for very many people log(n + 1) ≥ H(s)."""
        count = whole("people", people)
        if count > MOST_COUNTED:
            return float(np.log1p(count))
        s, log_marginal = np.arange(count + 1.0), self._log_marginal(count)
        total = special.digamma(count + self.a + self.b)
        inner = s * (special.digamma(s + self.a) - total) + (count - s) * (special.digamma(count - s + self.b) - total)
        return (
            max(0.0, float(np.exp(log_marginal) @ (inner + log_choose(count) - log_marginal))) * (1 + RISK_MARGIN)
            + RISK_MARGIN
        )

    def cut(self, count: int) -> Cells:
        return Cells.of(_Beta(self.a, self.b), lambda theta: np.stack([1 - theta, theta], axis=1), cells=count)

    def _log_marginal(self, count: int) -> Floats:
        s = np.arange(count + 1.0)
        joint = special.betaln(s + self.a, count - s + self.b) - special.betaln(self.a, self.b)
        return np.asarray(log_choose(count) + joint)

    def _shared(self, gamma: float, count: int, s: Floats, marginal: Floats) -> float:
        level = np.log(gamma) + np.log(marginal) - log_choose(count)
        top = s / count
        low = _crossing(s, count, level, np.zeros_like(s), top)
        high = _crossing(s, count, level, np.ones_like(s), top)
        posterior = special.betainc(s + self.a, count - s + self.b, high) - special.betainc(
            s + self.a, count - s + self.b, low
        )
        prior = special.betainc(self.a, self.b, high) - special.betainc(self.a, self.b, low)
        return float(marginal @ np.maximum(posterior - gamma * prior, 0.0))


def _crossing(s: Floats, count: int, level: Floats, outer: Floats, inner: Floats) -> Floats:
    """Where log θ^s (1−θ)^{n−s} crosses ``level`` between ``outer`` (below it) and its peak at ``inner``."""
    for _ in range(BISECTIONS):
        middle = (outer + inner) / 2
        above = special.xlogy(s, middle) + special.xlog1py(count - s, -middle) > level
        inner, outer = np.where(above, middle, inner), np.where(above, outer, middle)
    return outer


@dataclass(frozen=True, slots=True)
class _Beta:
    """The quantiles of a Beta law."""

    a: float
    b: float

    def ppf(self, q: Floats) -> Floats:
        return np.asarray(special.betaincinv(self.a, self.b, q))
