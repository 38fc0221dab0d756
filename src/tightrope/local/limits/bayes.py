"""A parameter with a prior, and the information about it in n values without privacy."""

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
