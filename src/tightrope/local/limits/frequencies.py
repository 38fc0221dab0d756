"""Lower bounds on the squared error of all frequencies: van Trees with a Dirichlet prior, and a prior of rare spikes.

The first is asymptotically the error of the best mechanisms; the second is larger for few people and many categories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy import optimize
from scipy.special import expit

from tightrope.channels import suprema
from tightrope.documents.budget import Guarantee
from tightrope.local.limits.bayes import largest_guess_probability
from tightrope.local.limits.fisher_information import (
    SINGLE_SIZES,
    ChannelColumns,
    ProportionLimit,
    dirichlet_prior_information,
    independent_trace_bound,
    mean_reciprocal_of_beta,
    open_answer_trace,
    risk_near_uniform,
    search_prior_concentration,
)
from tightrope.local.limits.limit import LOWERING_FACTOR, Limit, fewest_people, lower_bound, people_not_excluded
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_positive

# The spike prior: L blocks of B categories have mass 1/L each. In each block one random category, the spike, has θ/L,
# and the others have equal parts of the rest. An estimate with a small error identifies many spikes
# (``docs/proofs/shares.md``).

SPIKE_HEIGHTS = np.linspace(0.05, 1.0, 20)
"""Values of θ that are tried: each gives a valid bound."""
SHARE_CELLS = 400
TRIED_BLOCK_COUNTS = 40
QUADRATURE_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class SpikePrior:
    """The bound E Σ_j (p̂_j − p_j)² ≥ (θ²/L)(1 − s), s an upper bound on the probability of identifying a spike.

    s is the largest with KL(s‖1/B) ≤ the information of n reports about one block. For δ = 0 also s ≤ rⁿ/(rⁿ + B − 1),
    r = 1 + θ(e^ε − 1)/L: a report changes the odds of two positions of a spike by a factor of at most r.
    """

    guarantee: Guarantee
    k: int
    interactive: bool

    def risk(self, people: int) -> float:
        """Return the largest bound over L and θ."""
        blocks = np.unique(np.geomspace(1, self.k // 2, TRIED_BLOCK_COUNTS).astype(int)).astype(np.float64)[:, None]
        information = report_information(self.guarantee, self.k)
        if not self.interactive and self.guarantee.delta == 0:
            information = np.minimum(information, independent_divergence(self.guarantee.epsilon, self.k) / blocks)
        sizes = np.floor(self.k / blocks)
        success = largest_guess_probability(people * information / blocks, 1 / sizes)
        if self.guarantee.delta == 0:
            success = np.minimum(success, spike_posterior(self.guarantee.epsilon, people, blocks, sizes))
        return float(np.max(SPIKE_HEIGHTS**2 / blocks * (1 - success)))


def spike_posterior(epsilon: float, people: int, blocks: Floats, sizes: Floats) -> Floats:
    """Return rⁿ/(rⁿ + B − 1), shape [L, θ], the largest posterior probability of a position of a spike."""
    if epsilon == math.inf:
        return np.ones_like(sizes)
    # log r without overflow: r = e^ε (θ/L + (1 − θ/L) e^{−ε}).
    share = SPIKE_HEIGHTS / blocks
    if epsilon > 1:
        log_ratio = epsilon + np.log(share + (1 - share) * math.exp(-epsilon))
    else:
        log_ratio = np.log1p(share * math.expm1(epsilon))
    return np.asarray(expit(people * log_ratio * QUADRATURE_ROUNDING - np.log(sizes - 1)))


@lru_cache(maxsize=256)
def report_information(guarantee: Guarantee, k: int) -> Floats:
    """Return an upper bound on one report's information about all spikes in nats, for each θ.

    It is the KL divergence from the report at uniform frequencies, which are at total variation ≤ θ.
    """
    return (
        np.array([suprema.kl_bound(guarantee, height * (1 - 1 / k)) for height in SPIKE_HEIGHTS.tolist()])
        * QUADRATURE_ROUNDING
    )


@lru_cache(maxsize=256)
def independent_divergence(epsilon: float, k: int) -> Floats:
    """Return L times a bound on the information of one report about a spike of L categories (non-interactive, δ = 0).

    It is max_s ψ(1 − θg) θ² (1−s) g²/s with g = s(e^ε−1)/(1 + s(e^ε−1)).

    s is the share of categories in a two-level column, at least 1/k. In each cell of s, ψ and g are taken at the upper
    end and (1−s)/s at the lower one. For ε = ∞ this is ∞, and ``report_information`` is the smaller bound.

    >>> bool(0.9 < independent_divergence(1.0, 1000)[-1] / 0.156 < 1.1)
    True
    """
    ends = np.geomspace(1 / k, 1.0, SHARE_CELLS + 1)
    shrunk, grown = math.exp(-epsilon), -math.expm1(-epsilon)
    growth = ends * grown / (shrunk + ends * grown)
    spread = (1 - ends[:-1]) / ends[:-1] * growth[1:] ** 2
    curvature = divergence_curvature(1 - SPIKE_HEIGHTS[:, None] * growth[1:])
    return np.asarray(np.max(curvature * spread, axis=1) * SPIKE_HEIGHTS**2 * QUADRATURE_ROUNDING)


def divergence_curvature(ratio: Floats) -> Floats:
    """Return ψ(r) = (r log r − r + 1)/(1 − r)², 0 ≤ r < 1, which decreases to ½; near 1 by its series, rounded up.

    >>> divergence_curvature(np.array([0.0, 0.5, 1.0 - 1e-9])).round(4).tolist()
    [1.0, 0.6137, 0.5]
    """
    gap = 1 - ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (np.where(ratio > 0, ratio * np.log(ratio), 0.0) + gap) / gap**2
    series = 0.5 + gap / 6 + gap**2 / 6
    return np.asarray(np.where(gap < 1e-2, series, exact * QUADRATURE_ROUNDING))


# An upper bound on the expected information of a report of a person who sees all earlier reports. Then the best column
# may depend on the frequencies p, and the maximum over channels is inside the expectation.
#
# Prices q(p) of the categories with ``Σ_x q_x w_x ≥`` information of w, for every column w, bound the information of
# every channel by Σ_x q_x, because the columns of a channel add up to 1. Here ``q_x = α + β p_x + γ/(v + p_x)``, whose
# expectation has a closed bound. A linear program proposes α, β, γ; then α is raised until the prices are sufficient
# for every p, so the bound is valid for every proposal (``docs/proofs/shares.md``).

CELL_WIDTH = 0.02
"""Relative width of the cells on which prices are checked."""
SMALLEST_U = 1e-5
"""For smaller u (ε > 11.5) the information of the value itself is used."""
SMALLEST_U_WITH_LIMIT = 1e-9
"""Replaces ``SMALLEST_U`` if the total variation is limited too: ε > 20."""
BEND_FACTOR = 0.7
"""v is this times u / d, with d the best size at uniform frequencies."""
COEFFICIENT_LIMITS = (1.0, 30.0, 1e4)
"""Bounds on α, β, γ in the linear program's units that are tried: at small ε its rows are nearly parallel."""
MAX_PROPOSAL_CONCENTRATION = 1000.0
"""Largest a for which prices are proposed: for a larger a their curvature is too large for the cells."""
GRID_SIZES = 32
"""Number of sizes in the grid of the linear program."""
PRICE_ROUNDS = 12
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Corners of a cell: (1 for the last size else the first, 1 for the right end of the shares else the left)."""
PRICE_MARGIN = 1e-9
"""Relative margin of prices, for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPrices:
    """Coefficients of α, β, γ in the price of a column, and the information that the price must reach.

    A column is a set A of d categories with total share x. The least price ``Σ_A q + u Σ q`` for given d and x is at
    shares that are equal within A and outside it, since q is convex. ``price`` is the multiplier ν of the total
    variation.
    """

    columns: ChannelColumns
    price: float
    v: float

    def price_coefficients(self, sizes: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the coefficients of α, β, γ in the least price; all are jointly convex in (d, x)."""
        u, m = self.columns.u, self.columns.m
        inside = (1 + u) * sizes**2 / (sizes * self.v + shares)
        outside = u * (m - sizes) ** 2 / ((m - sizes) * self.v + 1 - shares)
        constant, linear = np.broadcast_arrays(sizes + u * m, shares + u)
        return constant, linear, np.asarray(inside + outside)

    def gamma_slopes(self, sizes: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of the coefficient of γ with respect to d and to x."""
        u, m, v = self.columns.u, self.columns.m, self.v
        near, far = shares + sizes * v, 1 - shares + (m - sizes) * v
        by_size = (1 + u) * sizes * (sizes * v + 2 * shares) / near**2
        by_size = by_size - u * (m - sizes) * ((m - sizes) * v + 2 * (1 - shares)) / far**2
        by_share = u * ((m - sizes) / far) ** 2 - (1 + u) * (sizes / near) ** 2
        return np.asarray(by_size), np.asarray(by_share)

    def information_coefficient(self, sizes: Floats, shares: Floats) -> Floats:
        """Return 1/(u + x) − ν/(m−1), convex in x; at least 0 for sizes in blocks, whose bound requires it."""
        value = 1 / (self.columns.u + shares) - self.price / (self.columns.m - 1)
        return np.asarray(np.where(sizes < 2 * SINGLE_SIZES, value, np.maximum(value, 0.0)))


@lru_cache(maxsize=4096)
def interactive_trace_bound(columns: ChannelColumns, a: float) -> float:
    """Return an upper bound on E max_channels tr I(p), p ~ Dirichlet(a, …, a): for people who may see earlier reports.

    >>> from tightrope.documents.budget import Guarantee
    >>> seven = ChannelColumns.from_guarantee(Guarantee(1.0), 7)
    >>> 1 < interactive_trace_bound(seven, 9.0) / independent_trace_bound(seven, 9.0).upper_bound < 1.02
    True
    """
    if columns.u == math.inf:
        return 0.0
    open_answers = open_answer_trace(columns, a)
    if columns.u < (SMALLEST_U if columns.eta >= 1 else SMALLEST_U_WITH_LIMIT):
        return open_answers
    bounds = [open_answers]
    for coefficient_limit in COEFFICIENT_LIMITS:
        # E Σ_x q_x(p), and the price of the total variation.
        prices, coefficients = sufficient_prices(columns, a, coefficient_limit)
        totals = _expected_sums(prices, a)
        total = float(totals @ coefficients + PRICE_MARGIN * totals @ np.abs(coefficients))
        bounds.append(total + prices.price * prices.columns.eta * (1 + PRICE_MARGIN))
    return min(bounds)


def sufficient_prices(columns: ChannelColumns, a: float, coefficient_limit: float) -> tuple[ColumnPrices, Floats]:
    """Return prices that are sufficient for every p, and their α, β, γ, with a small expectation over the prior."""
    m, u = columns.m, columns.u
    best_size = float(np.clip(m * u * (np.sqrt(1 + 1 / u) - 1), 1, m - 1))
    prices = ColumnPrices(columns, independent_trace_bound(columns, a).price, BEND_FACTOR * u / best_size)
    # The α, β, γ with the least expectation that are sufficient on a grid of (d, x). The linear program begins with few
    # rows of the grid; each round adds the rows that are violated most.
    totals = _expected_sums(prices, min(a, MAX_PROPOSAL_CONCENTRATION))
    first, _ = prices.columns.size_blocks
    sizes = first[np.unique(np.geomspace(1, len(first), GRID_SIZES).astype(int)) - 1][:, None]
    shares = _share_nodes(prices)[None, ::4]
    scale = (prices.columns.u + shares) / prices.columns.projected_square_norm(sizes)
    rows = np.stack(
        [np.broadcast_to(part, scale.shape) * scale for part in prices.price_coefficients(sizes, shares)], axis=-1
    )
    required = (prices.information_coefficient(sizes, shares) * (prices.columns.u + shares)).ravel()
    rows = rows.reshape(-1, 3)
    units = np.max(rows, axis=0)
    rows, is_used = rows / units, np.zeros(len(rows), dtype=bool)
    is_used[:: max(1, len(rows) // 60)] = True
    objective = totals / units
    bounds = [
        (-coefficient_limit, coefficient_limit),
        (-coefficient_limit, coefficient_limit),
        (0.0, coefficient_limit),
    ]
    coefficients: Floats = np.zeros(3)
    for _ in range(PRICE_ROUNDS):
        solution = optimize.linprog(
            objective / np.max(objective), A_ub=-rows[is_used], b_ub=-required[is_used], bounds=bounds, method="highs"
        )
        coefficients = np.zeros(3) if solution.x is None else np.asarray(solution.x)
        missing = required - rows @ coefficients
        if np.max(missing) <= PRICE_MARGIN:
            break
        is_used[np.argsort(missing)[-8:]] = True
    return prices, raise_alpha(prices, np.asarray(coefficients / units))


def _expected_sums(prices: ColumnPrices, a: float) -> Floats:
    """Return upper bounds on the expectations of Σ_x 1, Σ_x p_x and Σ_x 1/(v + p_x)."""
    m = prices.columns.m
    return np.array([float(m), 1.0, m * float(mean_reciprocal_of_beta(prices.v, a, (m - 1) * a))])


def raise_alpha(prices: ColumnPrices, proposed: Floats) -> Floats:
    """Return α, β, γ with α raised until the prices are sufficient for every column at every p; γ is at least 0.

    On a cell of sizes and shares the least price is above its tangent plane at the middle, and the information is below
    the product of the tangent in d and the chord in x. The difference of these two is bilinear: it is largest at a
    corner.
    """
    alpha, beta, gamma = proposed[0], proposed[1], max(float(proposed[2]), 0.0)
    missing = max(_alpha_shortfall(prices, (alpha, beta, gamma), corner) for corner in CORNERS)
    # Constant columns have no information; their price must be at least 0.
    m = prices.columns.m
    constant = -(m * alpha + beta + gamma * m / (prices.v + 1 / m)) / m
    raised = alpha + max(missing, constant, 0.0)
    return np.array([raised, beta, gamma])


def _alpha_shortfall(prices: ColumnPrices, proposed: tuple[float, float, float], corner: tuple[int, int]) -> float:
    """Return the largest amount by which α is too small at one corner of a cell, over all cells."""
    (alpha, beta, gamma), (at_last, to_right) = proposed, corner
    ends, nodes = np.stack(prices.columns.size_blocks), _share_nodes(prices)
    middle, center = ends.mean(axis=0)[:, None], ((nodes[1:] + nodes[:-1]) / 2)[None, :]
    sizes, shares = ends[at_last][:, None], nodes[to_right : len(nodes) - 1 + to_right][None, :]
    by_size, by_share = prices.gamma_slopes(middle, center)
    gamma_plane = (
        prices.price_coefficients(middle, center)[2] + by_size * (sizes - middle) + by_share * (shares - center)
    )
    constant, linear, _ = prices.price_coefficients(sizes, shares)
    m = prices.columns.m
    square_norm = prices.columns.projected_square_norm(middle) + (1 - 2 * middle / m) * (sizes - middle)
    required = square_norm * prices.information_coefficient(ends[0][:, None], shares)
    offered = alpha * constant + beta * linear + gamma * gamma_plane
    return float(np.max((required - offered) / constant))


def _share_nodes(prices: ColumnPrices) -> Floats:
    """Return the ends of the cells of shares, from 0 to 1: widths are at most about ``CELL_WIDTH`` (x + v)."""
    v = prices.v
    count = int(np.ceil(np.log((1 + v) / v) / CELL_WIDTH))
    return np.concatenate([[0.0], np.geomspace(v, 1 + v, count + 2)[1:-1] - v, [1.0]])


SIZES_PER_ROUND = 10
"""Number of values of m ≤ k in each round of the search for the best number of categories."""
NEIGHBOR_RATIO = 1.1
"""The search ends if the neighbors of the best m are within this ratio: the bound hardly changes between them."""
CONCENTRATION_FACTORS = (1.0, 1.4, 2.0)
"""Factors of a that are tried for interactive mechanisms, relative to the best a for others."""
SIZE_FACTORS = (1.0, 0.7)
"""Factors of m that are tried for interactive mechanisms."""

Score = Callable[[int, float, float], float]
"""A bound as a function of m, the trace and the prior's information."""


@dataclass(frozen=True, slots=True)
class FrequenciesLimit(Limit):
    """E Σ_j (p̂_j − p_j)² over k frequencies, worst case over p: the best bound over m ≤ k and a.

    ``(m−1)²/(n T_m(a) + J_m(a))``, Dirichlet(a, …, a) on m categories: J its information, T the largest trace of
    information of one report, averaged over it (``docs/proofs/shares.md``). For non-interactive mechanisms:
    each person may use another mechanism, but does not see reports. With ``interactive`` for sequentially interactive
    ones: each person may see all earlier reports. For δ > 0 weaker bounds around the uniform distribution. The result
    is at least the bound by ``SpikePrior``, which is larger for few people and many categories.
    """

    guarantee: Guarantee
    k: int
    interactive: bool = False

    def __post_init__(self) -> None:
        check_integer("k", self.k, at_least=2, remedy="k is the number of values")

    @property
    def guess_risk(self) -> float:
        """The worst risk of the constant estimate 1/k for every frequency, without any reports."""
        return 1 - 1 / self.k

    def risk(self, people: int) -> float:
        count = check_integer("people", people)
        if self.guarantee.delta > 0:
            by_van_trees = self._near_uniform(count)
        else:
            by_van_trees = self._best_score(lambda m, trace, prior: (m - 1) ** 2 / (count * trace + prior))
        return max(lower_bound(by_van_trees), lower_bound(self._spike_prior.risk(count)))

    @property
    def _spike_prior(self) -> SpikePrior:
        return SpikePrior(self.guarantee, self.k, self.interactive)

    def people(self, risk: float) -> int:
        target = check_positive("risk", risk)
        if target >= self.guess_risk:
            return 0
        least = fewest_people(self._spike_prior.risk, target / LOWERING_FACTOR)
        if self.guarantee.delta > 0:
            return fewest_people(self.risk, target, from_=least)

        def excluded_people(m: int, trace: float, prior: float) -> float:
            """Return the n up to which the bound excludes the risk; with a trace of 0 all n, or only negative ones."""
            remaining = (m - 1) ** 2 / target - prior
            if trace > 0:
                return remaining / trace
            return np.inf if remaining > 0 else 0.0

        return max(least, people_not_excluded(self._best_score(excluded_people), target))

    def _best_score(self, score: Score) -> float:
        m, a = best_prior(self.guarantee, self.k, score)
        if not self.interactive:
            return _score_sizes(self.guarantee, score, m, a)
        concentrations = [a * factor for factor in CONCENTRATION_FACTORS]
        best_a = max(concentrations, key=lambda candidate: self._interactive_score(score, m, candidate))
        sizes = {max(2, round(m * factor)) for factor in SIZE_FACTORS}
        return max(self._interactive_score(score, size, best_a) for size in sizes)

    def _interactive_score(self, score: Score, m: int, a: float) -> float:
        return score(
            m,
            interactive_trace_bound(ChannelColumns.from_guarantee(self.guarantee, m), a),
            dirichlet_prior_information(m, a),
        )

    def _near_uniform(self, people: int) -> float:
        """Return the best bound around the uniform distribution, or twice that of a proportion θ (two categories)."""
        sizes = {self.k, *np.unique(np.geomspace(2, self.k, 60).astype(int)).tolist()}
        near = partial(risk_near_uniform, self.guarantee, people=people, interactive=self.interactive)
        return max(2 * ProportionLimit(self.guarantee).risk(people), *(near(m) for m in sizes))


def best_prior(guarantee: Guarantee, k: int, score: Score) -> tuple[int, float]:
    """Return the m and the a with the largest score that was found, for non-interactive mechanisms."""
    tried: dict[int, tuple[float, float]] = {}
    for sizes in _search_sizes(k, tried):
        for m in sizes:
            a = search_prior_concentration(partial(_score_sizes, guarantee, score, m))
            tried[m] = (_score_sizes(guarantee, score, m, a), a)
    best = max(tried, key=lambda m: tried[m])
    return best, tried[best][1]


def _search_sizes(k: int, tried: dict[int, tuple[float, float]]) -> Iterator[list[int]]:
    """Yield values of m from 2 … k, then repeatedly between the neighbors of the best m in ``tried``."""
    low, high = 2, k
    while True:
        untried = [
            m
            for m in np.unique(np.geomspace(low, high, SIZES_PER_ROUND).round().astype(int)).tolist()
            if m not in tried
        ]
        if not untried:
            return
        yield untried
        sizes = sorted(tried)
        at = sizes.index(max(tried, key=lambda m: tried[m]))
        low, high = sizes[max(0, at - 1)], sizes[min(len(sizes) - 1, at + 1)]
        if high <= low * NEIGHBOR_RATIO:
            return


def _score_sizes(guarantee: Guarantee, score: Score, m: int, a: float) -> float:
    return score(
        m,
        independent_trace_bound(ChannelColumns.from_guarantee(guarantee, m), a).upper_bound,
        dirichlet_prior_information(m, a),
    )
