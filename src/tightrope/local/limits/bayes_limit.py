"""Lower bounds on the Bayes risk, from how often an estimate of Θ from private reports can be close (AAC Theorem 2).

With many people the bound is the risk if the window that contains Θ is known. For windows of width about 1/√(nκ), n
reports contain little information about the position of Θ in its window: this bound has the rate 1/√(nκ), whereas the
bound for the whole prior has only the rate without privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import rel_entr

from tightrope.local.limits.bayes import BayesProblem, Cells
from tightrope.local.limits.constraint import Constraint
from tightrope.local.limits.limit import Cost, Limit, lower_bound
from tightrope.local.limits.testing import MAX_COMPOSED_REPORTS
from tightrope.numerics.arrays import Bools, Floats
from tightrope.numerics.checks import check_integer
from tightrope.numerics.root_finding import bisect_arrays

DIVERGENCE_ROUNDING = 1e-15
"""Added to the information, for the rounding of the divergence, whose terms are at most about 1 where it matters."""


def largest_guess_probability(information: float | Floats, base: Floats) -> Floats:
    """Return the largest p ≥ b with KL(p‖b) ≤ I, b = ``base`` in (0, 1], rounded up; shapes broadcast.

    An event of probability b has at most this probability given I nats of information (data processing of KL).

    >>> float(largest_guess_probability(0.6931471805599453, np.array([0.5]))[0])
    1.0
    """
    limit, base = np.broadcast_arrays(np.asarray(information, dtype=np.float64), base)

    def fits(p: Floats) -> Bools:
        return rel_entr(p, base) + rel_entr(1 - p, 1 - base) <= limit + DIVERGENCE_ROUNDING

    return bisect_arrays(fits, np.ones_like(base), base, side="fails", halvings=60)


RADII = 250
GAMMAS = 1 + np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 80)])
SMALLEST_RADIUS = 1e-6
"""The smallest radius, relative to the spread of the prior."""
CELLS_PER_WINDOW = 32
WINDOW_FACTORS = (0.25, 0.5, 1.0, 2.0)
"""Numbers of windows that are tried, divided by √(nκ)."""
MOST_WINDOWS = 1 << 15


@dataclass(frozen=True, slots=True)
class Bayes(Limit):
    """The bound E ℓ(|Θ̂ − Θ|) ≥ ∫ (1 − p(ζ))₊ dℓ(ζ), with p(ζ) ≥ P(|Θ̂ − Θ| ≤ ζ) (ours; AAC: one step ζ(1 − p(ζ))).

    ``p(ζ)`` is the smaller of two bounds: the least over γ ≥ 1 of ``γ L(ζ) + η_γ(Kⁿ) I_γ(Θ; Xⁿ)``, with the whole curve
    η_γ of the composed reports, and the largest p with ``KL(p‖L(ζ)) ≤ I(Θ; Zⁿ)``, where
    ``I(Θ; Zⁿ) ≤ min(nκ I(Θ; X), (1−(1−κ)ⁿ) I(Θ; Xⁿ))``.
    Non-interactive mechanisms.
    """

    constraint: Constraint
    problem: BayesProblem
    cost: Cost

    def success_upper_bound(self, radius: Floats, people: int) -> Floats:
        """Return p(ζ), an upper bound on the probability that an estimate is within ζ of Θ, shape [m]."""
        count = check_integer("people", people)
        ball = self.problem.small_ball_probability(radius)
        lines = GAMMAS[:, None] * ball + self._contracted_information(GAMMAS, count)[:, None]
        by_information = largest_guess_probability(self.information_upper_bound(count), ball)
        return np.asarray(np.minimum(np.min(lines, axis=0), by_information))

    def information_upper_bound(self, people: int) -> float:
        """Return an upper bound on I(Θ; Zⁿ), in nats."""
        count, kappa = check_integer("people", people), self.constraint.kl_contraction
        contracted = 1.0 if kappa >= 1 else -math.expm1(count * math.log1p(-kappa))
        by_value = count * kappa * self.problem.mutual_information(1)
        return min(by_value, contracted * self.problem.mutual_information(count))

    def risk(self, people: int) -> float:
        """Return the larger of ``risk_over_prior`` and ``risk_within_windows``."""
        return max(self.risk_over_prior(people), self.risk_within_windows(people))

    def risk_over_prior(self, people: int) -> float:
        """Return a lower sum for ∫ (1 − p(ζ))₊ dℓ(ζ): in each step of ζ, p is taken at the far end."""
        radius = np.geomspace(SMALLEST_RADIUS, 1.0, RADII) * self.problem.covering_radius
        radius = np.concatenate([radius, np.linspace(0.0, self.problem.covering_radius, RADII)[1:]])
        radius = np.unique(radius)
        missed = np.maximum.accumulate(np.maximum(1 - self.success_upper_bound(radius, people), 0.0)[::-1])[::-1]
        costs = np.array([self.cost(value) for value in (0.0, *radius.tolist())])
        return lower_bound(float(np.diff(costs) @ missed))

    def risk_within_windows(self, people: int) -> float:
        """Return ``risk_within_window`` for the best number of windows; 0 for priors of samples."""
        information = check_integer("people", people) * self.constraint.kl_contraction
        risks = [0.0]
        for count in window_counts(information):
            cells = self.problem.discretized_problem(count * CELLS_PER_WINDOW)
            if cells is not None:
                risks.append(risk_within_window(cells, count, information, self.cost))
        return lower_bound(max(risks))

    def one_step(self, people: int) -> float:
        """Return the largest ζ (1 − γ L(ζ) − η_γ(Kⁿ) I_γ(Θ; Xⁿ)): AAC Theorem 2 at the best ζ and γ, cost |Θ̂ − Θ|."""
        count = check_integer("people", people)
        contracted = self._contracted_information(GAMMAS, count)
        pairs = zip(GAMMAS.tolist(), contracted.tolist(), strict=True)
        steps = [_best_step(1 - value, gamma, self.problem) for gamma, value in pairs]
        at = int(np.argmax(steps))
        ends = (float(GAMMAS[max(0, at - 1)]), float(GAMMAS[min(len(GAMMAS) - 1, at + 1)]))
        polished = optimize.minimize_scalar(
            lambda gamma: -_best_step(1 - float(self._contracted_information(np.array([gamma]), count)[0]), gamma,
            self.problem), bounds=ends, method="bounded", options={"xatol": 1e-9},
        )  # fmt: skip
        return lower_bound(max(steps[at], -float(polished.fun)))

    def _contracted_information(self, gammas: Floats, people: int) -> Floats:
        """Return η_γ(Kⁿ) I_γ(Θ; Xⁿ), shape [m]."""
        whole_curve = (people * self.constraint.loss).delta(np.log(gammas)) if people <= MAX_COMPOSED_REPORTS else 1.0
        return np.asarray(whole_curve * self.problem.shared_information(gammas, people))


def _best_step(limit: float, gamma: float, problem: BayesProblem) -> float:
    """Return the largest ζ (limit − γ L(ζ)), searched on a grid of ζ and then near the best; 0 if none is positive."""
    grid = np.geomspace(SMALLEST_RADIUS, 1.0, RADII) * problem.covering_radius
    values = grid * (limit - gamma * problem.small_ball_probability(grid))
    at = int(np.argmax(values))
    if not values[at] > 0:
        return 0.0
    ends = (float(grid[max(0, at - 1)]), float(grid[min(RADII - 1, at + 1)]))
    polished = optimize.minimize_scalar(
        lambda z: -z * (limit - gamma * float(problem.small_ball_probability(np.array([z]))[0])),
        bounds=ends, method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    return max(float(values[at]), -float(polished.fun))


def risk_within_window(cells: Cells, windows: int, information: float, cost: Cost) -> float:
    """Return a lower bound on the risk if the window w of Θ is known: the mean of Σ_j (ℓ(ζ_j) − ℓ(ζ_{j−1})) (1 − p_j).

    An interval of width 2ζ < 2ζ_j meets at most j cells of the window; p_j is the largest p with KL(p‖j/cells) ≤
    ``information`` · I(Θ; X | w). ``cells``: a multiple of ``windows``, all of equal weight; ``information`` = nκ.
    """
    low, high = cells.low.reshape(windows, -1), cells.high.reshape(windows, -1)
    count = low.shape[1]
    # I(Θ; X | window) in nats, shape [windows], from all nodes of its cells.
    laws = cells.laws.reshape(windows, -1, cells.laws.shape[2])
    weights = np.tile(cells.node_weights, cells.laws.shape[0] // windows)
    weights = weights / weights.sum()
    center = np.einsum("wnv,n->wv", laws, weights)[:, None, :]
    ratio = np.log(np.where(laws > 0, laws, 1.0)) - np.log(np.where(laws > 0, center, 1.0))
    value_information: Floats = np.einsum("wnv,n->w", laws * ratio, weights)
    report_information = information * (np.maximum(value_information, 0.0) * (1 + 1e-9) + 1e-15)
    touched = np.arange(1, count)
    reach = np.stack([np.min(low[:, j:] - high[:, :-j], axis=1) for j in touched], axis=1) / 2
    # An interval of any radius may meet one cell, but j + 1 cells only if its radius is at least reach[j - 1].
    # Infinite outer ends are not used.
    missed = 1 - largest_guess_probability(report_information[:, None], np.broadcast_to(touched / count, reach.shape))
    costs = np.array([cost(max(value, 0.0)) for value in reach.ravel().tolist()]).reshape(reach.shape)
    steps = np.diff(costs, axis=1, prepend=cost(0.0))
    return float(np.sum(np.maximum(steps, 0.0) * np.maximum(missed, 0.0)) / windows)


def window_counts(information: float) -> list[int]:
    """Return the numbers of windows that are tried if nκ = ``information``, ascending."""
    counts = {int(np.clip(factor * np.sqrt(information), 1, MOST_WINDOWS)) for factor in WINDOW_FACTORS}
    return sorted(counts)
