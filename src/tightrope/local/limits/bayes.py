"""A parameter with a prior, and what n values that were never hidden would say about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from tightrope.channels import kernel
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.distributions import normalize_stochastic_matrix

NODES = 4
"""Gauss–Legendre nodes within a cell of equal prior probability."""
LARGEST_TABLE = 1 << 24
RISK_MARGIN = 1e-12


@runtime_checkable
class Prior(Protocol):
    """The interface of a frozen ``scipy.stats`` distribution."""

    def ppf(self, q: Any) -> Any:
        """Quantiles."""


class BayesProblem(ABC):
    """Θ ~ prior, n values drawn given Θ. Everything here is an upper bound, so that limits are on the safe side."""

    __slots__ = ()

    @abstractmethod
    def small_ball_probability(self, radius: Floats) -> Floats:
        """L(ζ) = sup_t P(|Θ − t| ≤ ζ), shape [m]: how often a guess without data is that close."""

    @property
    @abstractmethod
    def covering_radius(self) -> float:
        """A radius from which on ``small_ball_probability`` is 1."""

    @abstractmethod
    def shared_information(self, gammas: Floats, people: int) -> Floats:
        """I_γ(Θ; Xⁿ) = E_γ(joint‖product), γ ≥ 1, shape [m]."""

    @abstractmethod
    def mutual_information(self, people: int) -> float:
        """I(Θ; Xⁿ) in nats."""

    @abstractmethod
    def discretized_problem(self, count: int) -> Cells | None:
        """The problem in this many cells of equal prior probability; None where the prior is known by samples alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells(BayesProblem):
    """Any prior, cut into cells of known probability; the data depend on the cell only by its average distribution.

    An answer within ζ of Θ is within ζ of its cell; so P(hit) ≤ γ L + I_γ(cell; Xⁿ), L the probability of the cells
    that one window touches: a valid bound at any number of cells, which costs about 2/cells in L
    (``docs/proofs/channels.md``). ``low``, ``high``: ends of each cell, ascending; ``laws``: what one value says, at
    ``nodes`` points a cell, shape [cells, nodes, values].
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
        """From a frozen ``scipy.stats`` distribution, or from samples, which are then the prior themselves.

        ``likelihood``: parameters, shape [m], to laws of one value, shape [m, values].
        Raises ``InputError`` for samples or laws that are none.

        >>> from scipy import stats
        >>> problem = Cells.from_prior(stats.uniform(), lambda p: np.stack([1 - p, p], axis=1))
        >>> round(float(problem.small_ball_probability(np.array([0.25]))[0]), 2)
        0.5
        """
        if isinstance(prior, Prior):
            return cls._of_distribution(prior, likelihood, check_integer("cells", cells, at_least=2))
        try:
            samples_points = np.asarray(prior, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "type of prior", type(prior).__name__, "a scipy.stats distribution or samples, shape [m]"
            ) from None
        if samples_points.ndim != 1 or samples_points.size == 0:
            raise InputError("shape of prior", samples_points.shape, "samples, shape [m], at least one")
        strange = int(np.count_nonzero(~np.isfinite(samples_points)))
        if strange:  # samples may be people's values: how many, not which
            raise InputError(
                "samples of prior that are not finite", strange, f"0 of {samples_points.size}", "leave them out"
            )
        points, counts = np.unique(samples_points, return_counts=True)
        laws = _outcome_distributions(likelihood, points)[:, None, :]
        return cls(points, points, counts / counts.sum(), laws)

    @classmethod
    def _of_distribution(cls, prior: Prior, likelihood: Callable[[Floats], ArrayLike], cells: int) -> Cells:
        edges = np.asarray(prior.ppf(np.arange(cells + 1) / cells), dtype=np.float64)
        if np.any(np.isnan(edges)) or np.any(np.diff(edges) < 0):
            raise InputError("prior", prior, "a distribution with rising quantiles, such as scipy.stats.norm(0, 1)")
        nodes = (np.arange(cells)[:, None] + special.roots_sh_legendre(NODES)[0]) / cells
        points = np.asarray(prior.ppf(nodes.ravel()), dtype=np.float64)
        laws = _outcome_distributions(likelihood, points).reshape(cells, NODES, -1)
        finer = partial(cls._of_distribution, prior, likelihood)
        return cls(edges[:-1], edges[1:], np.full(cells, 1 / cells), laws, finer)

    def discretized_problem(self, count: int) -> Cells | None:
        return self.finer(count) if self.finer is not None else None

    @property
    def covering_radius(self) -> float:
        finite = np.concatenate([self.low, self.high])
        finite = finite[np.isfinite(finite)]
        return float(np.ptp(finite)) / 2 if len(finite) else 1.0

    def small_ball_probability(self, radius: Floats) -> Floats:
        """The probability of all cells that a window of width 2ζ touches, the worst window."""
        reached = np.concatenate([[0.0], np.cumsum(self.weights)])
        ends = np.searchsorted(self.low, self.high[:, None] + 2 * radius * (1 + RISK_MARGIN), side="right")
        starts = np.arange(len(self.low))[:, None]
        return np.asarray(np.minimum(1.0, np.max(reached[ends] - reached[starts], axis=0) + RISK_MARGIN))

    def shared_information(self, gammas: Floats, people: int) -> Floats:
        """By the law of the counts for two values, exactly for one person; else Pinsker's √(n I/2) for every γ."""
        laws = self._joint_distribution(check_integer("people", people))
        if laws is None:
            return np.full(len(gammas), min(1.0, np.sqrt(people * self.mutual_information(1) / 2)))
        center = self.weights @ laws
        values = [float(self.weights @ np.maximum(laws - gamma * center, 0.0).sum(axis=1)) for gamma in gammas]
        return np.minimum(1.0, np.array(values) + RISK_MARGIN)

    def mutual_information(self, people: int) -> float:
        """Of Θ and one value, by quadrature; of the cell and n values, at most n times that.

        Given a cell the values are not independent: n values need the information about Θ itself.
        """
        laws = self._joint_distribution(people) if check_integer("people", people) > 1 else None
        if laws is not None:
            return kernel.mutual_information(laws, self.weights) * (1 + RISK_MARGIN) + RISK_MARGIN
        nodes = (self.weights[:, None] * self.node_weights).ravel()
        one = kernel.mutual_information(self.laws.reshape(len(nodes), -1), nodes)
        return people * (one * (1 + RISK_MARGIN) + RISK_MARGIN)

    @property
    def node_weights(self) -> Floats:
        """The weight of each node in its cell."""
        return special.roots_sh_legendre(NODES)[1] if self.laws.shape[1] > 1 else np.ones(1)

    def _joint_distribution(self, people: int) -> Floats | None:
        """The law of what n values say in each cell, shape [cells, outcomes]; None where there are too many."""
        if people == 1:
            return np.asarray(np.einsum("cnv,n->cv", self.laws, self.node_weights))
        if self.laws.shape[2] != 2 or self.laws.shape[0] * self.laws.shape[1] * (people + 1) > LARGEST_TABLE:
            return None
        s = np.arange(people + 1.0)
        counts = special.xlogy(s, self.laws[..., 1:]) + special.xlogy(people - s, self.laws[..., :1])
        joint: Floats = np.einsum("cns,n->cs", np.exp(counts + log_choose(people)), self.node_weights)
        return joint


def log_choose(count: int) -> Floats:
    """Log C(n, s) for s in 0..n, shape [n + 1]."""
    s = np.arange(count + 1.0)
    return np.asarray(special.gammaln(count + 1.0) - special.gammaln(s + 1) - special.gammaln(count - s + 1))


def _outcome_distributions(likelihood: Callable[[Floats], ArrayLike], points: Floats) -> Floats:
    laws = normalize_stochastic_matrix(likelihood(points))
    if len(laws) != len(points):
        raise InputError("likelihood", laws.shape, f"one law for each of {len(points)} parameters")
    return laws


# A coin of unknown bias with a Beta prior: what n open throws say about it, in closed form.

BISECTIONS = 60
MOST_COUNTED = 5000
"""With more people what open values say is bounded by 1, and log(n + 1) nats: it is privacy that limits then."""


@dataclass(frozen=True, slots=True)
class BetaBernoulli(BayesProblem):
    """Θ ~ Beta(a, b), each value a coin that shows 1 with probability Θ: closed forms. a = b = 1 is the uniform prior.

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
        """2ζ for the uniform prior; else the largest window over a fine grid, widened by its step."""
        if self.a == self.b == 1:
            return np.minimum(1.0, 2 * radius)
        edges = np.linspace(0.0, 1.0, 4097)
        upper = special.betainc(self.a, self.b, np.minimum(edges[1:, None] + radius, 1.0))
        lower = special.betainc(self.a, self.b, np.maximum(edges[:-1, None] - radius, 0.0))
        return np.asarray(np.minimum(1.0, np.max(upper - lower, axis=0) + RISK_MARGIN))

    def shared_information(self, gammas: Floats, people: int) -> Floats:
        """Σ_s ∫ (P(s|θ) − γ P(s))₊ dπ: each s has one interval of θ around s/n, found by bisection."""
        count = check_integer("people", people)
        if count > MOST_COUNTED:
            return np.ones(len(gammas))
        ones, marginal = np.arange(count + 1.0), np.exp(self._log_marginal(count))
        values = [self._divergence_sum(float(gamma), count, ones, marginal) for gamma in gammas]
        return np.minimum(1.0, np.array(values) + RISK_MARGIN)

    def mutual_information(self, people: int) -> float:
        """Σ_s P(s) (E[log P(s|Θ) | s] − log P(s)), with digammas; for very many people log(n + 1) ≥ H(s)."""
        count = check_integer("people", people)
        if count > MOST_COUNTED:
            return float(np.log1p(count))
        s, log_marginal = np.arange(count + 1.0), self._log_marginal(count)
        total = special.digamma(count + self.a + self.b)
        inner = s * (special.digamma(s + self.a) - total) + (count - s) * (special.digamma(count - s + self.b) - total)
        return (
            max(0.0, float(np.exp(log_marginal) @ (inner + log_choose(count) - log_marginal))) * (1 + RISK_MARGIN)
            + RISK_MARGIN
        )

    def discretized_problem(self, count: int) -> Cells:
        return Cells.from_prior(_Beta(self.a, self.b), lambda theta: np.stack([1 - theta, theta], axis=1), cells=count)

    def _log_marginal(self, count: int) -> Floats:
        s = np.arange(count + 1.0)
        joint = special.betaln(s + self.a, count - s + self.b) - special.betaln(self.a, self.b)
        return np.asarray(log_choose(count) + joint)

    def _divergence_sum(self, gamma: float, count: int, s: Floats, marginal: Floats) -> float:
        level = np.log(gamma) + np.log(marginal) - log_choose(count)
        top = s / count
        low = _level_crossing(s, count, level, np.zeros_like(s), top)
        high = _level_crossing(s, count, level, np.ones_like(s), top)
        posterior = special.betainc(s + self.a, count - s + self.b, high) - special.betainc(
            s + self.a, count - s + self.b, low
        )
        prior = special.betainc(self.a, self.b, high) - special.betainc(self.a, self.b, low)
        return float(marginal @ np.maximum(posterior - gamma * prior, 0.0))


def _level_crossing(s: Floats, count: int, level: Floats, outer: Floats, inner: Floats) -> Floats:
    """The point where log θ^s (1−θ)^{n−s} crosses ``level`` between ``outer`` (below it) and its peak at ``inner``."""
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
