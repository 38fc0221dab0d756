"""A parameter with a prior, and the information about it in n values without privacy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special
from scipy.special import rel_entr

from tightrope.channels import kernel
from tightrope.errors import InputError
from tightrope.local.limits.constraint import Constraint
from tightrope.local.limits.limit import Cost, Limit, lower_bound
from tightrope.local.limits.testing import MAX_COMPOSED_REPORTS
from tightrope.numerics.arrays import Bools, Floats
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.distributions import normalize_stochastic_matrix
from tightrope.numerics.root_finding import bisect_arrays

NODES = 4
"""Gauss–Legendre nodes within a cell of equal prior probability."""
MAX_TABLE_ENTRIES = 1 << 24
RISK_MARGIN = 1e-12


@runtime_checkable
class Prior(Protocol):
    """The interface of a frozen ``scipy.stats`` distribution."""

    def ppf(self, q: Any) -> Any:
        """Quantiles."""


class BayesProblem(ABC):
    """Θ ~ prior and n values drawn given Θ. All methods return upper bounds, which keep limits valid."""

    __slots__ = ()

    @abstractmethod
    def small_ball_probability(self, radius: Floats) -> Floats:
        """Return L(ζ) = sup_t P(|Θ − t| ≤ ζ), shape [m]: how often the best constant estimate is within ζ."""

    @property
    @abstractmethod
    def covering_radius(self) -> float:
        """A radius at which ``small_ball_probability`` is 1."""

    @abstractmethod
    def shared_information(self, gammas: Floats, people: int) -> Floats:
        """Return I_γ(Θ; Xⁿ) = E_γ(joint‖product), γ ≥ 1, shape [m]."""

    @abstractmethod
    def mutual_information(self, people: int) -> float:
        """Return I(Θ; Xⁿ) in nats."""

    @abstractmethod
    def discretized_problem(self, count: int) -> Cells | None:
        """Return the problem in this many cells of equal prior probability; None if the prior is given by samples."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells(BayesProblem):
    """Any prior, cut into cells of known probability.

    An estimate within ζ of Θ is within ζ of the cell of Θ; so P(hit) ≤ γ L + I_γ(cell; Xⁿ), with L the largest
    probability of the cells that a window of width 2ζ meets. This is valid for every number of cells; L is too large by
    about 2/cells (``docs/proofs/channels.md``).

    ``low``, ``high``: ends of each cell, ascending; ``weights``: the probability of each cell; ``laws``: the
    distribution of one value at the nodes of each cell, shape [cells, nodes, values].
    """

    low: Floats
    high: Floats
    weights: Floats
    laws: Floats
    finer: Callable[[int], Cells] | None = None
    """The same problem in another number of cells."""

    @classmethod
    def from_prior(
        cls, prior: Prior | ArrayLike, likelihood: Callable[[Floats], ArrayLike], *, cells: int = 2000
    ) -> Cells:
        """Return the problem for a frozen ``scipy.stats`` distribution or for samples (the prior is uniform on them).

        ``likelihood`` maps parameters, shape [m], to distributions of one value, shape [m, values].
        Raises ``InputError`` for invalid samples or distributions.

        >>> from scipy import stats
        >>> problem = Cells.from_prior(stats.uniform(), lambda p: np.stack([1 - p, p], axis=1))
        >>> round(float(problem.small_ball_probability(np.array([0.25]))[0]), 2)
        0.5
        """
        if isinstance(prior, Prior):
            return cls._from_distribution(prior, likelihood, check_integer("cells", cells, at_least=2))
        try:
            samples = np.asarray(prior, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "type of prior", type(prior).__name__, "a scipy.stats distribution or samples, shape [m]"
            ) from None
        if samples.ndim != 1 or samples.size == 0:
            raise InputError("shape of prior", samples.shape, "samples, shape [m], at least one")
        infinite = int(np.count_nonzero(~np.isfinite(samples)))
        if infinite:  # samples may be people's values: the message has their number only
            raise InputError("samples of prior that are not finite", infinite, f"0 of {samples.size}", "leave them out")
        points, counts = np.unique(samples, return_counts=True)
        laws = _outcome_distributions(likelihood, points)[:, None, :]
        return cls(points, points, counts / counts.sum(), laws)

    @classmethod
    def _from_distribution(cls, prior: Prior, likelihood: Callable[[Floats], ArrayLike], cells: int) -> Cells:
        edges = np.asarray(prior.ppf(np.arange(cells + 1) / cells), dtype=np.float64)
        if np.any(np.isnan(edges)) or np.any(np.diff(edges) < 0):
            raise InputError("prior", prior, "a distribution with rising quantiles, such as scipy.stats.norm(0, 1)")
        nodes = (np.arange(cells)[:, None] + special.roots_sh_legendre(NODES)[0]) / cells
        points = np.asarray(prior.ppf(nodes.ravel()), dtype=np.float64)
        laws = _outcome_distributions(likelihood, points).reshape(cells, NODES, -1)
        finer = partial(cls._from_distribution, prior, likelihood)
        return cls(edges[:-1], edges[1:], np.full(cells, 1 / cells), laws, finer)

    def discretized_problem(self, count: int) -> Cells | None:
        return self.finer(count) if self.finer is not None else None

    @property
    def covering_radius(self) -> float:
        finite = np.concatenate([self.low, self.high])
        finite = finite[np.isfinite(finite)]
        return float(np.ptp(finite)) / 2 if len(finite) else 1.0

    def small_ball_probability(self, radius: Floats) -> Floats:
        """Return the largest probability of the cells that a window of width 2ζ meets."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.weights)])
        ends = np.searchsorted(self.low, self.high[:, None] + 2 * radius * (1 + RISK_MARGIN), side="right")
        starts = np.arange(len(self.low))[:, None]
        return np.asarray(np.minimum(1.0, np.max(cumulative[ends] - cumulative[starts], axis=0) + RISK_MARGIN))

    def shared_information(self, gammas: Floats, people: int) -> Floats:
        """Return I_γ from the joint distribution of the values (``_joint_distribution``), or Pinsker's √(n I/2)."""
        laws = self._joint_distribution(check_integer("people", people))
        if laws is None:
            return np.full(len(gammas), min(1.0, np.sqrt(people * self.mutual_information(1) / 2)))
        center = self.weights @ laws
        values = [float(self.weights @ np.maximum(laws - gamma * center, 0.0).sum(axis=1)) for gamma in gammas]
        return np.minimum(1.0, np.array(values) + RISK_MARGIN)

    def mutual_information(self, people: int) -> float:
        """Return I(cell; Xⁿ) from the joint distribution of n > 1 values, or n I(Θ; X), by quadrature.

        The latter needs the information about Θ itself, since the values are not independent given the cell.
        """
        laws = self._joint_distribution(people) if check_integer("people", people) > 1 else None
        if laws is not None:
            return kernel.mutual_information(laws, self.weights) * (1 + RISK_MARGIN) + RISK_MARGIN
        nodes = (self.weights[:, None] * self.node_weights).ravel()
        per_value = kernel.mutual_information(self.laws.reshape(len(nodes), -1), nodes)
        return people * (per_value * (1 + RISK_MARGIN) + RISK_MARGIN)

    @property
    def node_weights(self) -> Floats:
        """The weight of each node in its cell."""
        return special.roots_sh_legendre(NODES)[1] if self.laws.shape[1] > 1 else np.ones(1)

    def _joint_distribution(self, people: int) -> Floats | None:
        """Return the distribution of n values in each cell, shape [cells, outcomes].

        For binary values, n > 1: of the number of ones. None for other values, or if the table would be too large.
        """
        if people == 1:
            return np.asarray(np.einsum("cnv,n->cv", self.laws, self.node_weights))
        if self.laws.shape[2] != 2 or self.laws.shape[0] * self.laws.shape[1] * (people + 1) > MAX_TABLE_ENTRIES:
            return None
        s = np.arange(people + 1.0)
        counts = special.xlogy(s, self.laws[..., 1:]) + special.xlogy(people - s, self.laws[..., :1])
        joint: Floats = np.einsum("cns,n->cs", np.exp(counts + log_choose(people)), self.node_weights)
        return joint


def log_choose(count: int) -> Floats:
    """Return log C(n, s) for s in 0..n, shape [n + 1]."""
    s = np.arange(count + 1.0)
    return np.asarray(special.gammaln(count + 1.0) - special.gammaln(s + 1) - special.gammaln(count - s + 1))


def _outcome_distributions(likelihood: Callable[[Floats], ArrayLike], points: Floats) -> Floats:
    laws = normalize_stochastic_matrix(likelihood(points))
    if len(laws) != len(points):
        raise InputError("likelihood", laws.shape, f"one distribution for each of {len(points)} parameters")
    return laws


BISECTIONS = 60
MAX_COUNTED_VALUES = 5000
"""With more values, the information in them is bounded by 1 and by log(n + 1) nats: then privacy is the limit."""


@dataclass(frozen=True, slots=True)
class BetaBernoulli(BayesProblem):
    """Θ ~ Beta(a, b), and each value is 1 with probability Θ, else 0: closed forms. a = b = 1 is the uniform prior.

    >>> round(float(BetaBernoulli().shared_information(np.array([4 / 3]), 1)[0]) * 9, 9)  # (1 − γ/2)² at γ = 4/3
    1.0
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        check_positive("a", self.a)
        check_positive("b", self.b)

    @property
    def covering_radius(self) -> float:
        return 0.5

    def small_ball_probability(self, radius: Floats) -> Floats:
        """Return 2ζ for the uniform prior; otherwise the largest over windows on a grid, widened by its step."""
        if self.a == self.b == 1:
            return np.minimum(1.0, 2 * radius)
        edges = np.linspace(0.0, 1.0, 4097)
        upper = special.betainc(self.a, self.b, np.minimum(edges[1:, None] + radius, 1.0))
        lower = special.betainc(self.a, self.b, np.maximum(edges[:-1, None] - radius, 0.0))
        return np.asarray(np.minimum(1.0, np.max(upper - lower, axis=0) + RISK_MARGIN))

    def shared_information(self, gammas: Floats, people: int) -> Floats:
        """Return Σ_s ∫ (P(s|θ) − γ P(s))₊ dπ; for each s the integrand is positive on one interval around s/n."""
        count = check_integer("people", people)
        if count > MAX_COUNTED_VALUES:
            return np.ones(len(gammas))
        ones, marginal = np.arange(count + 1.0), np.exp(self._log_marginal(count))
        values = [self._divergence_sum(float(gamma), count, ones, marginal) for gamma in gammas]
        return np.minimum(1.0, np.array(values) + RISK_MARGIN)

    def mutual_information(self, people: int) -> float:
        """Return Σ_s P(s) (E[log P(s|Θ) | s] − log P(s)), with digammas; for very many people log(n + 1) ≥ H(s)."""
        count = check_integer("people", people)
        if count > MAX_COUNTED_VALUES:
            return float(np.log1p(count))
        s, log_marginal = np.arange(count + 1.0), self._log_marginal(count)
        total = special.digamma(count + self.a + self.b)
        inner = s * (special.digamma(s + self.a) - total) + (count - s) * (special.digamma(count - s + self.b) - total)
        information = float(np.exp(log_marginal) @ (inner + log_choose(count) - log_marginal))
        return max(0.0, information) * (1 + RISK_MARGIN) + RISK_MARGIN

    def discretized_problem(self, count: int) -> Cells:
        return Cells.from_prior(_Beta(self.a, self.b), lambda theta: np.stack([1 - theta, theta], axis=1), cells=count)

    def _log_marginal(self, count: int) -> Floats:
        s = np.arange(count + 1.0)
        joint = special.betaln(s + self.a, count - s + self.b) - special.betaln(self.a, self.b)
        return np.asarray(log_choose(count) + joint)

    def _divergence_sum(self, gamma: float, count: int, s: Floats, marginal: Floats) -> float:
        """Return Σ_s ∫ (P(s|θ) − γ P(s))₊ dπ for one γ."""
        level = np.log(gamma) + np.log(marginal) - log_choose(count)
        top = s / count
        low = _level_crossing(s, count, level, np.zeros_like(s), top)
        high = _level_crossing(s, count, level, np.ones_like(s), top)
        a, b = s + self.a, count - s + self.b
        posterior = special.betainc(a, b, high) - special.betainc(a, b, low)
        prior = special.betainc(self.a, self.b, high) - special.betainc(self.a, self.b, low)
        return float(marginal @ np.maximum(posterior - gamma * prior, 0.0))


def _level_crossing(s: Floats, count: int, level: Floats, outer: Floats, inner: Floats) -> Floats:
    """Return θ where log θ^s (1−θ)^{n−s} crosses ``level``, between ``outer`` (below it) and the peak at ``inner``."""

    def is_above(theta: Floats) -> Bools:
        return np.asarray(special.xlogy(s, theta) + special.xlog1py(count - s, -theta) > level)

    return bisect_arrays(is_above, outer, inner, side="fails", halvings=BISECTIONS)


@dataclass(frozen=True, slots=True)
class _Beta:
    """A Beta distribution as a ``Prior``."""

    a: float
    b: float

    def ppf(self, q: Floats) -> Floats:
        return np.asarray(special.betaincinv(self.a, self.b, q))


# Lower bounds on the Bayes risk, from how often an estimate of Θ from private reports can be close (AAC Theorem 2).
#
# With many people the bound is the risk if the window that contains Θ is known. For windows of width about 1/√(nκ), n
# reports contain little information about the position of Θ in its window: this bound has the rate 1/√(nκ), whereas the
# bound for the whole prior has only the rate without privacy.


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
