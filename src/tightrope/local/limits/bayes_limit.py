"""The least Bayes risk: no estimator of Θ from private reports is close to it more often than this (AAC Theorem 2).

With many people the risk is at least the risk given the window that contains Θ.
Cut into windows of width about 1/√(nκ), n reports say little about where in its window Θ is, however much they say
about the window: this keeps the rate 1/√(nκ), where the bound for the whole prior falls back to that of open values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import rel_entr

from tightrope.local.limits.bayes import BayesProblem, Cells
from tightrope.local.limits.constraint import Constraint
from tightrope.local.limits.limit import Cost, Limit, falls_to
from tightrope.local.limits.testing import COMPOSED
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer

# How often an event may happen when it would be rare without information (data processing of KL).

DIVERGENCE_ROUNDING = 1e-15
"""Of the divergence, whose terms are at most about 1 where it matters: p is never too small for it."""


def largest_share(information: float | Floats, share: Floats) -> Floats:
    """The largest p ≥ b with KL(p‖b) ≤ I, b = ``share`` in (0, 1], by bisection from above; shapes broadcast.

    >>> float(largest_share(0.6931471805599453, np.array([0.5]))[0])
    1.0
    """
    known, base = np.broadcast_arrays(np.asarray(information, dtype=np.float64), share)
    low, high = base, np.ones_like(base)
    for _ in range(60):
        middle = (low + high) / 2
        small = rel_entr(middle, base) + rel_entr(1 - middle, 1 - base) <= known + DIVERGENCE_ROUNDING
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return high


RADII = 250
GAMMAS = 1 + np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 80)])
SMALLEST_RADIUS = 1e-6
"""The smallest radius, relative to the spread of the prior."""
CELLS_A_WINDOW = 32
"""Cells a window."""
WIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Windows tried, times √(nκ)."""
MOST_WINDOWS = 1 << 15


@dataclass(frozen=True, slots=True)
class Bayes(Limit):
    """E ℓ(|Θ̂ − Θ|) ≥ ∫ (1 − p(ζ))₊ dℓ(ζ), p(ζ) an upper bound on P(|Θ̂ − Θ| ≤ ζ) (ours; AAC: one step ζ(1 − p(ζ))).

    ``p(ζ)`` is the least over γ ≥ 1 of ``γ L(ζ) + η_γ(Kⁿ) I_γ(Θ; Xⁿ)``, the whole curve η_γ of the composed reports,
    and of the largest p with ``KL(p‖L(ζ)) ≤ I(Θ; Zⁿ)``, ``I(Θ; Zⁿ) ≤ min(nκ I(Θ; X), (1−(1−κ)ⁿ) I(Θ; Xⁿ))``.
    Non-interactive mechanisms.
    """

    constraint: Constraint
    problem: BayesProblem
    cost: Cost

    def success_upper_bound(self, radius: Floats, people: int) -> Floats:
        """p(ζ): an upper bound on how often any estimate is within ζ, shape [m]."""
        count = check_integer("people", people)
        ball = self.problem.small_ball_probability(radius)
        lines = GAMMAS[:, None] * ball + self._contracted_information(GAMMAS, count)[:, None]
        return np.asarray(np.minimum(np.min(lines, axis=0), largest_share(self.information_upper_bound(count), ball)))

    def information_upper_bound(self, people: int) -> float:
        """An upper bound on I(Θ; Zⁿ), nats."""
        count, kappa = check_integer("people", people), self.constraint.kl_contraction
        many = 1.0 if kappa >= 1 else -math.expm1(count * math.log1p(-kappa))
        return min(count * kappa * self.problem.mutual_information(1), many * self.problem.mutual_information(count))

    def risk(self, people: int) -> float:
        """The better of ``over_prior`` and ``within_windows``."""
        return max(self.over_prior(people), self.within_windows(people))

    def over_prior(self, people: int) -> float:
        """∫ (1 − p(ζ))₊ dℓ(ζ) by steps of ζ, each at its far end: below the integral."""
        radius = np.geomspace(SMALLEST_RADIUS, 1.0, RADII) * self.problem.covering_radius
        radius = np.concatenate([radius, np.linspace(0.0, self.problem.covering_radius, RADII)[1:]])
        radius = np.unique(radius)
        missed = np.maximum.accumulate(np.maximum(1 - self.success_upper_bound(radius, people), 0.0)[::-1])[::-1]
        costs = np.array([self.cost(value) for value in (0.0, *radius.tolist())])
        return falls_to(float(np.diff(costs) @ missed))

    def within_windows(self, people: int) -> float:
        """The risk given the window of Θ (``risk_within``), the best number; 0 for priors of samples."""
        known = check_integer("people", people) * self.constraint.kl_contraction
        found = [0.0]
        for count in windows_for(known):
            cells = self.problem.discretized_problem(count * CELLS_A_WINDOW)
            if cells is not None:
                found.append(risk_within(cells, count, known, self.cost))
        return falls_to(max(found))

    def one_step(self, people: int) -> float:
        """The best over ζ, γ of ζ (1 − γ L(ζ) − η_γ(Kⁿ) I_γ(Θ; Xⁿ)): Theorem 2 for the whole curve, cost |Θ̂ − Θ|."""
        count = check_integer("people", people)

        contracted = self._contracted_information(GAMMAS, count)
        pairs = zip(GAMMAS.tolist(), contracted.tolist(), strict=True)
        found = [_best_step(1 - value, gamma, self.problem) for gamma, value in pairs]
        at = int(np.argmax(found))
        ends = (float(GAMMAS[max(0, at - 1)]), float(GAMMAS[min(len(GAMMAS) - 1, at + 1)]))
        polished = optimize.minimize_scalar(
            lambda gamma: -_best_step(1 - float(self._contracted_information(np.array([gamma]), count)[0]), gamma,
            self.problem), bounds=ends, method="bounded", options={"xatol": 1e-9},
        )  # fmt: skip
        return falls_to(max(found[at], -float(polished.fun)))

    def _contracted_information(self, gammas: Floats, people: int) -> Floats:
        """η_γ(Kⁿ) I_γ(Θ; Xⁿ)."""
        whole_curve = (people * self.constraint.loss).delta(np.log(gammas)) if people <= COMPOSED else 1.0
        return np.asarray(whole_curve * self.problem.shared_information(gammas, people))


def _best_step(spared: float, gamma: float, problem: BayesProblem) -> float:
    """The largest ζ (spared − γ L(ζ)), on a grid of ζ and then near the best; 0 where none is positive."""
    grid = np.geomspace(SMALLEST_RADIUS, 1.0, RADII) * problem.covering_radius
    found = grid * (spared - gamma * problem.small_ball_probability(grid))
    at = int(np.argmax(found))
    if not found[at] > 0:
        return 0.0
    ends = (float(grid[max(0, at - 1)]), float(grid[min(RADII - 1, at + 1)]))
    polished = optimize.minimize_scalar(
        lambda z: -z * (spared - gamma * float(problem.small_ball_probability(np.array([z]))[0])),
        bounds=ends, method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    return max(float(found[at]), -float(polished.fun))


def risk_within(cells: Cells, windows: int, information: float, cost: Cost) -> float:
    """Σ_w P(w) E ℓ, each at least Σ_j (ℓ(ζ_j) − ℓ(ζ_{j−1})) (1 − p_j): any window of width 2ζ < 2ζ_j touches at most j
    of its cells, and p_j is the largest p with KL(p‖j/cells) ≤ ``information`` · I(Θ; X | w).

    ``cells``: a multiple of ``windows``, all of equal weight; ``information`` = nκ.
    """
    low, high = cells.low.reshape(windows, -1), cells.high.reshape(windows, -1)
    count = low.shape[1]
    # I(Θ; X | window) in nats, shape [windows], from all nodes of its cells.
    laws = cells.laws.reshape(windows, -1, cells.laws.shape[2])
    weights = np.tile(cells.node_weights, cells.laws.shape[0] // windows)
    weights = weights / weights.sum()
    center = np.einsum("wnv,n->wv", laws, weights)[:, None, :]
    ratio = np.log(np.where(laws > 0, laws, 1.0)) - np.log(np.where(laws > 0, center, 1.0))
    shared_unrounded: Floats = np.einsum("wnv,n->w", laws * ratio, weights)
    shared = information * (np.maximum(shared_unrounded, 0.0) * (1 + 1e-9) + 1e-15)
    touched = np.arange(1, count)
    reach = np.stack([np.min(low[:, j:] - high[:, :-j], axis=1) for j in touched], axis=1) / 2
    # One cell may be touched at any radius, j + 1 only from the reach of j on. Infinite outer ends are not used.
    missed = 1 - largest_share(shared[:, None], np.broadcast_to(touched / count, reach.shape))
    costs = np.array([cost(max(value, 0.0)) for value in reach.ravel().tolist()]).reshape(reach.shape)
    steps = np.diff(costs, axis=1, prepend=cost(0.0))
    return float(np.sum(np.maximum(steps, 0.0) * np.maximum(missed, 0.0)) / windows)


def windows_for(information: float) -> list[int]:
    """Numbers of windows worth trying when nκ is this."""
    counts = {int(np.clip(factor * np.sqrt(information), 1, MOST_WINDOWS)) for factor in WIDTHS}
    return sorted(counts)
