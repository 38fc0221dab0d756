"""The limit on the squared error of all shares that meets the mechanisms: van Trees with a Dirichlet prior."""

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
from tightrope.local.limits.bayes_limit import largest_share
from tightrope.local.limits.fisher_information import (
    SINGLE_SIZES,
    ChannelColumns,
    independent_trace_bound,
    mean_reciprocal,
    of_open_answers,
    prior_information,
    risk_near_uniform,
    search_concentration,
)
from tightrope.local.limits.limit import LOWERED, Limit, falls_to, fewest_people, people_beyond
from tightrope.local.limits.van_trees import ProportionLimit
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_positive

# Limits on shares where people are too few for all categories: which few of many categories are frequent?
#
# L blocks of B of the categories; in each one category, drawn at random, holds θ/L, and the others share the rest of
# 1/L. An estimate that is good for all has found many of these. ``docs/proofs/shares.md``.

HEIGHTS = np.linspace(0.05, 1.0, 20)
"""θ: any of them gives a valid bound."""
CELLS = 400
BLOCKS = 40
QUADRATURE_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class SpikePrior:
    """E Σ_j (p̂_j − p_j)² ≥ (θ²/L)(1 − s), s the largest with KL(s‖1/B) ≤ what n reports say of one block.

    For δ = 0 also s ≤ rⁿ/(rⁿ + B − 1), r = 1 + θ(e^ε − 1)/L: no report changes the odds of two places by more than r.
    """

    guarantee: Guarantee
    k: int
    interactive: bool

    def risk(self, people: int) -> float:
        """The best over L and θ."""
        blocks = np.unique(np.geomspace(1, self.k // 2, BLOCKS).astype(int)).astype(np.float64)[:, None]
        of_all = report_information(self.guarantee, self.k)
        if not self.interactive and self.guarantee.delta == 0:
            of_all = np.minimum(of_all, independent_divergence(self.guarantee.epsilon, self.k) / blocks)
        sizes = np.floor(self.k / blocks)
        found = largest_share(people * of_all / blocks, 1 / sizes)
        if self.guarantee.delta == 0:
            found = np.minimum(found, spike_posterior(self.guarantee.epsilon, people, blocks, sizes))
        return float(np.max(HEIGHTS**2 / blocks * (1 - found)))


def spike_posterior(epsilon: float, people: int, blocks: Floats, sizes: Floats) -> Floats:
    """rⁿ/(rⁿ + B − 1), shape [L, θ]."""
    if epsilon == math.inf:
        return np.ones_like(sizes)
    # log r without overflow: r = e^ε (θ/L + (1 − θ/L) e^{−ε}).
    share = HEIGHTS / blocks
    large = epsilon + np.log(share + (1 - share) * math.exp(-epsilon))
    changed = large if epsilon > 1 else np.log1p(share * math.expm1(epsilon))
    return np.asarray(expit(people * changed * QUADRATURE_ROUNDING - np.log(sizes - 1)))


@lru_cache(maxsize=256)
def report_information(guarantee: Guarantee, k: int) -> Floats:
    """One report's information on all L places, nats: KL to the report of uniform shares, at total variation ≤ θ."""
    return (
        np.array([suprema.kl_bound(guarantee, height * (1 - 1 / k)) for height in HEIGHTS.tolist()])
        * QUADRATURE_ROUNDING
    )


@lru_cache(maxsize=256)
def independent_divergence(epsilon: float, k: int) -> Floats:
    """The same for people on their own, times L: max_s ψ(1 − θg) θ² (1−s) g²/s, g = s(e^ε−1)/(1 + s(e^ε−1)).

    s is the share of categories in a two-level column, at least 1/k. On cells of s: ψ and g at their far ends, (1−s)/s
    at the near one. Infinite ε say as much as the answer itself, for which ``report_information`` is used.

    >>> bool(0.9 < independent_divergence(1.0, 1000)[-1] / 0.156 < 1.1)
    True
    """
    ends = np.geomspace(1 / k, 1.0, CELLS + 1)
    shrunk, grown = math.exp(-epsilon), -math.expm1(-epsilon)
    growth = ends * grown / (shrunk + ends * grown)
    spread = (1 - ends[:-1]) / ends[:-1] * growth[1:] ** 2
    bent = divergence_curvature(1 - HEIGHTS[:, None] * growth[1:])
    return np.asarray(np.max(bent * spread, axis=1) * HEIGHTS**2 * QUADRATURE_ROUNDING)


def divergence_curvature(ratio: Floats) -> Floats:
    """ψ(r) = (r log r − r + 1)/(1 − r)², 0 ≤ r < 1: ½ at 1, 1 at 0, falling; by its series near 1, from above.

    >>> divergence_curvature(np.array([0.0, 0.5, 1.0 - 1e-9])).round(4).tolist()
    [1.0, 0.6137, 0.5]
    """
    gap = 1 - ratio
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (np.where(ratio > 0, ratio * np.log(ratio), 0.0) + gap) / gap**2
    series = 0.5 + gap / 6 + gap**2 / 6
    return np.asarray(np.where(gap < 1e-2, series, exact * QUADRATURE_ROUNDING))


# The most information of a report whose maker saw all earlier ones: the maximum inside the expectation.
#
# Earlier reports know something of the shares p, so the best column may depend on p. Prices q(p) of the categories
# with ``Σ_x q_x w_x ≥`` information of w, for every column w, bound the information of every channel by Σ_x q_x,
# because the columns of a channel add up to 1. Here ``q_x = α + β p_x + γ/(v + p_x)``, whose expectation has a closed
# enclosure; α, β, γ come from a linear program that is not trusted: α is raised until the prices suffice everywhere.
# ``docs/proofs/shares.md``.

SPACING = 0.02
"""Relative width of the cells on which prices are checked."""
SMALLEST_U = 1e-5
"""Below it (ε > 11.5) the information of the open answers is as good."""
SMALLEST_CAPPED_U = 1e-9
"""The same where the total variation is bounded, too: ε > 20."""
BEND = 0.7
"""v = this · u / d, d the best size for uniform shares: with 1 the prices follow the information of a set of equals."""
BOXES = (1.0, 30.0, 1e4)
"""Largest α, β, γ of the program in its units: at small ε its rows are nearly parallel, and large ones are noise."""
FLATTEST = 1000.0
"""Prices are proposed for priors no narrower than this: else they bend more than cells can follow."""
PROPOSED = 32
PRICE_ROUNDS = 12
CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Of a cell: at its last size or not, at its right end or not."""
SPARE = 1e-9
"""Added to every price, relative to what it is made of: rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnPrices:
    """The price that α, β, γ give a set of d categories with total share x, and its least valid price.

    The least of ``Σ_A q + u Σ q`` over p is at shares that are equal within the set and outside it: q is convex.
    """

    columns: ChannelColumns
    price: float
    v: float

    def price_coefficients(self, sizes: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Coefficients of α, β, γ in what is offered; all are convex in (d, x) jointly."""
        u, m = self.columns.u, self.columns.m
        inside = (1 + u) * sizes**2 / (sizes * self.v + shares)
        outside = u * (m - sizes) ** 2 / ((m - sizes) * self.v + 1 - shares)
        constant, linear = np.broadcast_arrays(sizes + u * m, shares + u)
        return constant, linear, np.asarray(inside + outside)

    def gamma_slopes(self, sizes: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Of the coefficient of γ, in d and in x."""
        u, m, v = self.columns.u, self.columns.m, self.v
        near, far = shares + sizes * v, 1 - shares + (m - sizes) * v
        by_size = (1 + u) * sizes * (sizes * v + 2 * shares) / near**2
        by_size = by_size - u * (m - sizes) * ((m - sizes) * v + 2 * (1 - shares)) / far**2
        by_share = u * ((m - sizes) / far) ** 2 - (1 + u) * (sizes / near) ** 2
        return np.asarray(by_size), np.asarray(by_share)

    def information_coefficient(self, sizes: Floats, shares: Floats) -> Floats:
        """1/(u + x) − ν/(m−1), convex in x; not below 0 for the sizes of blocks, whose bound needs that."""
        told = 1 / (self.columns.u + shares) - self.price / (self.columns.m - 1)
        return np.asarray(np.where(sizes < 2 * SINGLE_SIZES, told, np.maximum(told, 0.0)))


@lru_cache(maxsize=4096)
def in_turn(columns: ChannelColumns, a: float) -> float:
    """An upper bound on E max_channels tr I(p): for people who may see all earlier reports; prior Dirichlet(a, …, a).

    >>> from tightrope.documents.budget import Guarantee
    >>> seven = ChannelColumns.from_guarantee(Guarantee(1.0), 7)
    >>> 1 < in_turn(seven, 9.0) / independent_trace_bound(seven, 9.0).most < 1.02
    True
    """
    if columns.u == math.inf:
        return 0.0
    open_answers = of_open_answers(columns, a)
    if columns.u < (SMALLEST_U if columns.eta >= 1 else SMALLEST_CAPPED_U):
        return open_answers
    return min(open_answers, *(_expected_total(*sufficient_prices(columns, a, box), a) for box in BOXES))


def sufficient_prices(columns: ChannelColumns, a: float, box: float) -> tuple[ColumnPrices, Floats]:
    """Prices that suffice at every p, and their α, β, γ: cheap on average over the prior."""
    m, u = columns.m, columns.u
    best = float(np.clip(m * u * (np.sqrt(1 + 1 / u) - 1), 1, m - 1))
    prices = ColumnPrices(columns, independent_trace_bound(columns, a).price, BEND * u / best)
    # α, β, γ of least expectation that suffice on a grid: by rows that were violated, a few more each
    # round.
    totals = _expected_sums(prices, min(a, FLATTEST))
    first, _ = prices.columns.size_blocks
    sizes = first[np.unique(np.geomspace(1, len(first), PROPOSED).astype(int)) - 1][:, None]
    shares = _share_nodes(prices)[None, ::4]
    scale = (prices.columns.u + shares) / prices.columns.projected_square_norm(sizes)
    rows = np.stack(
        [np.broadcast_to(one, scale.shape) * scale for one in prices.price_coefficients(sizes, shares)], axis=-1
    )
    wanted = (prices.information_coefficient(sizes, shares) * (prices.columns.u + shares)).ravel()
    rows = rows.reshape(-1, 3)
    units = np.max(rows, axis=0)
    rows, kept = rows / units, np.zeros(len(rows), dtype=bool)
    kept[:: max(1, len(rows) // 60)] = True
    found: Floats = np.zeros(3)
    for _ in range(PRICE_ROUNDS):
        # The linear program; nothing rests on how well it was solved.
        least_totals = totals / units
        least_rows = rows[kept]
        least_wanted = wanted[kept]
        bounds = [(-box, box), (-box, box), (0.0, box)]
        solved = optimize.linprog(
            least_totals / np.max(least_totals), A_ub=-least_rows, b_ub=-least_wanted, bounds=bounds, method="highs"
        )
        found = np.zeros(3) if solved.x is None else np.asarray(solved.x)
        missing = wanted - rows @ found
        if np.max(missing) <= SPARE:
            break
        kept[np.argsort(missing)[-8:]] = True
    return prices, raise_alpha(prices, np.asarray(found / units))


def _expected_total(prices: ColumnPrices, found: Floats, a: float) -> float:
    """E Σ_x q_x(p) and what the total variation costs."""
    totals = _expected_sums(prices, a)
    return float(totals @ found + SPARE * totals @ np.abs(found)) + prices.price * prices.columns.eta * (1 + SPARE)


def _expected_sums(prices: ColumnPrices, a: float) -> Floats:
    """Of Σ_x 1, Σ_x p_x and Σ_x 1/(v + p_x), from above."""
    m = prices.columns.m
    return np.array([float(m), 1.0, m * float(mean_reciprocal(prices.v, a, (m - 1) * a))])


def raise_alpha(prices: ColumnPrices, proposed: Floats) -> Floats:
    """The same with α raised until every column of every channel costs enough at every p: any γ ≥ 0 will do.

    On a cell of sizes and shares what is offered lies above its tangent plane at the middle, what is asked below the
    product of the tangent in d and the chord in x; their difference is bilinear, so largest at a corner.
    """
    alpha, beta, gamma = proposed[0], proposed[1], max(float(proposed[2]), 0.0)
    missing = max(_alpha_shortfall(prices, (alpha, beta, gamma), corner) for corner in CORNERS)
    # Columns of one level say nothing and must cost nothing less.
    m = prices.columns.m
    constant = -(m * alpha + beta + gamma * m / (prices.v + 1 / m)) / m
    raised = alpha + max(missing, constant, 0.0)
    return np.array([raised, beta, gamma])


def _alpha_shortfall(prices: ColumnPrices, proposed: tuple[float, float, float], corner: tuple[int, int]) -> float:
    """By how much α is too small for one corner of all cells, the largest."""
    (alpha, beta, gamma), (at_last, to_right) = proposed, corner
    ends, nodes = np.stack(prices.columns.size_blocks), _share_nodes(prices)
    middle, center = ends.mean(axis=0)[:, None], ((nodes[1:] + nodes[:-1]) / 2)[None, :]
    sizes, shares = ends[at_last][:, None], nodes[to_right : len(nodes) - 1 + to_right][None, :]
    by_size, by_share = prices.gamma_slopes(middle, center)
    curved = prices.price_coefficients(middle, center)[2] + by_size * (sizes - middle) + by_share * (shares - center)
    constant, linear, _ = prices.price_coefficients(sizes, shares)
    m = prices.columns.m
    apart = prices.columns.projected_square_norm(middle) + (1 - 2 * middle / m) * (sizes - middle)
    asked = apart * prices.information_coefficient(ends[0][:, None], shares)
    offered = alpha * constant + beta * linear + gamma * curved
    return float(np.max((asked - offered) / constant))


def _share_nodes(prices: ColumnPrices) -> Floats:
    """Ends of the cells of shares: 0 and 1, and between them steps that are small relative to x + the smallest bend."""
    start = prices.v
    count = int(np.ceil(np.log((1 + start) / start) / SPACING))
    return np.concatenate([[0.0], np.geomspace(start, 1 + start, count + 2)[1:-1] - start, [1.0]])


TRIED = 10
"""Numbers of categories m ≤ k that are tried first; then as many around the best."""
CLOSE_NEIGHBORS = 1.1
"""Neighbors within this ratio are not parted further: the bound hardly changes between them."""
NARROWER = (1.0, 1.4, 2.0)
FEWER = (1.0, 0.7)
"""The bound for interactive reports, whose best prior is narrower and on fewer categories: times a and m."""

Score = Callable[[int, float, float], float]
"""Of m, the trace and the prior's information."""


@dataclass(frozen=True, slots=True)
class FrequenciesLimit(Limit):
    """E Σ_j (p̂_j − p_j)² over k frequencies, worst case over p: the best over m ≤ k and a of a bound for m of them.

    ``(m−1)²/(n T_m(a) + J_m(a))``, Dirichlet(a, …, a) on m categories: J its information, T the largest trace of
    information of one report, averaged over it (``docs/proofs/shares.md``). Non-interactive mechanisms: each person
    may run another one, but does not see the others' reports. With ``interactive`` sequentially interactive ones: each
    may see all reports before the own. For δ > 0 weaker bounds around the uniform law. With few people and many
    categories ``SpikePrior`` is larger; the better bound is taken.
    """

    guarantee: Guarantee
    k: int
    interactive: bool = False

    def __post_init__(self) -> None:
        check_integer("k", self.k, at_least=2, remedy="k is the number of values")

    @property
    def guess_risk(self) -> float:
        """Of 1/k for every share; worst where one share is 1."""
        return 1 - 1 / self.k

    def risk(self, people: int) -> float:
        count = check_integer("people", people)
        return max(self._risk_by_van_trees(count), falls_to(self._risk_by_spikes().risk(count)))

    def _risk_by_van_trees(self, people: int) -> float:
        """By van Trees: shares that are all alike."""
        if self.guarantee.delta > 0:
            return falls_to(self._near_uniform(people))
        return falls_to(self._best_score(lambda m, trace, known: (m - 1) ** 2 / (people * trace + known)))

    def _risk_by_spikes(self) -> SpikePrior:
        return SpikePrior(self.guarantee, self.k, self.interactive)

    def people(self, risk: float) -> int:
        target = check_positive("risk", risk)
        if target >= self.guess_risk:
            return 0
        least = fewest_people(self._risk_by_spikes().risk, target / LOWERED)
        if self.guarantee.delta > 0:
            return fewest_people(self.risk, target, from_=least)
        excluded = self._best_score(lambda m, trace, known: _excluded_numbers((m - 1) ** 2 / target - known, trace))
        return max(least, people_beyond(excluded, target))

    def _best_score(self, score: Score) -> float:
        m, a = best_prior(self.guarantee, self.k, score)
        if not self.interactive:
            return _score_sizes(self.guarantee, score, m, a)
        narrower = max((a * factor for factor in NARROWER), key=lambda one: self._in_turn(score, m, one))
        sizes = {max(2, round(m * factor)) for factor in FEWER}
        return max(self._in_turn(score, size, narrower) for size in sizes)

    def _in_turn(self, score: Score, m: int, a: float) -> float:
        return score(m, in_turn(ChannelColumns.from_guarantee(self.guarantee, m), a), prior_information(m, a))

    def _near_uniform(self, people: int) -> float:
        """Two categories are a proportion θ: their error is twice the error of θ."""
        sizes = {self.k, *np.unique(np.geomspace(2, self.k, 60).astype(int)).tolist()}
        near = partial(risk_near_uniform, self.guarantee, people=people, interactive=self.interactive)
        return max(2 * ProportionLimit(self.guarantee).risk(people), *(near(m) for m in sizes))


def best_prior(guarantee: Guarantee, k: int, score: Score) -> tuple[int, float]:
    """The number of categories and the a with the largest score for people on their own, as far as was tried."""
    tried: dict[int, tuple[float, float]] = {}
    for sizes in _search_sizes(k, tried):
        for m in sizes:
            a = search_concentration(partial(_score_sizes, guarantee, score, m))
            tried[m] = (_score_sizes(guarantee, score, m, a), a)
    best = max(tried, key=lambda m: tried[m])
    return best, tried[best][1]


def _search_sizes(k: int, tried: dict[int, tuple[float, float]]) -> Iterator[list[int]]:
    """Over 2 … k; then between the neighbors of the best, until they are next to it or close."""
    low, high = 2, k
    while True:
        fresh = [m for m in np.unique(np.geomspace(low, high, TRIED).round().astype(int)).tolist() if m not in tried]
        if not fresh:
            return
        yield fresh
        known = sorted(tried)
        at = known.index(max(tried, key=lambda m: tried[m]))
        low, high = known[max(0, at - 1)], known[min(len(known) - 1, at + 1)]
        if high <= low * CLOSE_NEIGHBORS:
            return


def _score_sizes(guarantee: Guarantee, score: Score, m: int, a: float) -> float:
    return score(
        m, independent_trace_bound(ChannelColumns.from_guarantee(guarantee, m), a).most, prior_information(m, a)
    )


def _excluded_numbers(left: float, trace: float) -> float:
    """left/trace; a report that says nothing leaves all numbers excluded, or none."""
    if trace > 0:
        return left / trace
    return np.inf if left > 0 else 0.0
