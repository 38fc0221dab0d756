"""The most information of a report whose maker saw all earlier ones: the maximum inside the expectation.

Earlier reports know something of the shares p, so the best column may depend on p. Prices q(p) of the categories with
``Σ_x q_x w_x ≥`` information of w, for every column w, bound the information of every channel by Σ_x q_x, because the
columns of a channel add up to 1. Here ``q_x = α + β p_x + γ/(v + p_x)``, whose expectation has a closed enclosure;
α, β, γ come from a linear program that is not trusted: α is raised until the prices suffice everywhere.
``docs/proofs/shares.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize

from tightrope.local.limits.fisher.alone import alone
from tightrope.local.limits.fisher.columns import SINGLE_SIZES, Columns
from tightrope.local.limits.fisher.dirichlet import of_open_answers
from tightrope.local.limits.fisher.stieltjes import mean_reciprocal
from tightrope.numerics.arrays import Floats

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
class Prices:
    """What a set of d categories with shares x together is offered by α, β, γ, and what it must be.

    The least of ``Σ_A q + u Σ q`` over p is at shares that are equal within the set and outside it: q is convex.
    """

    columns: Columns
    price: float
    v: float

    def offered(self, sizes: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
        """Coefficients of α, β, γ in what is offered; all are convex in (d, x) jointly."""
        u, m = self.columns.u, self.columns.m
        inside = (1 + u) * sizes**2 / (sizes * self.v + shares)
        outside = u * (m - sizes) ** 2 / ((m - sizes) * self.v + 1 - shares)
        constant, linear = np.broadcast_arrays(sizes + u * m, shares + u)
        return constant, linear, np.asarray(inside + outside)

    def slopes(self, sizes: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Of the coefficient of γ, in d and in x."""
        u, m, v = self.columns.u, self.columns.m, self.v
        near, far = shares + sizes * v, 1 - shares + (m - sizes) * v
        by_size = (1 + u) * sizes * (sizes * v + 2 * shares) / near**2
        by_size = by_size - u * (m - sizes) * ((m - sizes) * v + 2 * (1 - shares)) / far**2
        by_share = u * ((m - sizes) / far) ** 2 - (1 + u) * (sizes / near) ** 2
        return np.asarray(by_size), np.asarray(by_share)

    def telling(self, sizes: Floats, shares: Floats) -> Floats:
        """1/(u + x) − ν/(m−1), convex in x; not below 0 for the sizes of blocks, whose bound needs that."""
        told = 1 / (self.columns.u + shares) - self.price / (self.columns.m - 1)
        return np.asarray(np.where(sizes < 2 * SINGLE_SIZES, told, np.maximum(told, 0.0)))


@lru_cache(maxsize=4096)
def in_turn(columns: Columns, a: float) -> float:
    """An upper bound on E max_channels tr I(p): for people who may see all earlier reports; prior Dirichlet(a, …, a).

    >>> from tightrope.certificates.guarantee import Guarantee
    >>> seven = Columns.of(Guarantee(1.0), 7)
    >>> 1 < in_turn(seven, 9.0) / alone(seven, 9.0).most < 1.02
    True
    """
    if columns.u == math.inf:
        return 0.0
    open_answers = of_open_answers(columns, a)
    if columns.u < (SMALLEST_U if columns.eta >= 1 else SMALLEST_CAPPED_U):
        return open_answers
    return min(open_answers, *(_expectation(*priced(columns, a, box), a) for box in BOXES))


def priced(columns: Columns, a: float, box: float) -> tuple[Prices, Floats]:
    """Prices that suffice at every p, and their α, β, γ: cheap on average over the prior."""
    m, u = columns.m, columns.u
    best = float(np.clip(m * u * (np.sqrt(1 + 1 / u) - 1), 1, m - 1))
    prices = Prices(columns, alone(columns, a).price, BEND * u / best)
    return prices, repaired(prices, _proposed(prices, _expected(prices, min(a, FLATTEST)), box))


def _expectation(prices: Prices, found: Floats, a: float) -> float:
    """E Σ_x q_x(p) and what the total variation costs."""
    totals = _expected(prices, a)
    return float(totals @ found + SPARE * totals @ np.abs(found)) + prices.price * prices.columns.eta * (1 + SPARE)


def _expected(prices: Prices, a: float) -> Floats:
    """Of Σ_x 1, Σ_x p_x and Σ_x 1/(v + p_x), from above."""
    m = prices.columns.m
    return np.array([float(m), 1.0, m * float(mean_reciprocal(prices.v, a, (m - 1) * a))])


def _proposed(prices: Prices, totals: Floats, box: float) -> Floats:
    """α, β, γ of least expectation that suffice on a grid: by rows that were violated, a few more each round."""
    first, _ = prices.columns.blocks
    sizes = first[np.unique(np.geomspace(1, len(first), PROPOSED).astype(int)) - 1][:, None]
    shares = _nodes(prices)[None, ::4]
    scale = (prices.columns.u + shares) / prices.columns.apart(sizes)
    rows = np.stack([np.broadcast_to(one, scale.shape) * scale for one in prices.offered(sizes, shares)], axis=-1)
    wanted = (prices.telling(sizes, shares) * (prices.columns.u + shares)).ravel()
    rows = rows.reshape(-1, 3)
    units = np.max(rows, axis=0)
    rows, kept = rows / units, np.zeros(len(rows), dtype=bool)
    kept[:: max(1, len(rows) // 60)] = True
    found: Floats = np.zeros(3)
    for _ in range(PRICE_ROUNDS):
        found = _least(totals / units, rows[kept], wanted[kept], box)
        missing = wanted - rows @ found
        if np.max(missing) <= SPARE:
            break
        kept[np.argsort(missing)[-8:]] = True
    return np.asarray(found / units)


def _least(totals: Floats, rows: Floats, wanted: Floats, box: float) -> Floats:
    """The linear program; nothing rests on how well it was solved."""
    bounds = [(-box, box), (-box, box), (0.0, box)]
    solved = optimize.linprog(totals / np.max(totals), A_ub=-rows, b_ub=-wanted, bounds=bounds, method="highs")
    return np.zeros(3) if solved.x is None else np.asarray(solved.x)


def repaired(prices: Prices, proposed: Floats) -> Floats:
    """The same with α raised until every column of every channel costs enough at every p: any γ ≥ 0 will do.

    On a cell of sizes and shares what is offered lies above its tangent plane at the middle, what is asked below the
    product of the tangent in d and the chord in x; their difference is bilinear, so largest at a corner.
    """
    alpha, beta, gamma = proposed[0], proposed[1], max(float(proposed[2]), 0.0)
    missing = max(_missing(prices, (alpha, beta, gamma), corner) for corner in CORNERS)
    # Columns of one level say nothing and must cost nothing less.
    m = prices.columns.m
    constant = -(m * alpha + beta + gamma * m / (prices.v + 1 / m)) / m
    raised = alpha + max(missing, constant, 0.0)
    return np.array([raised, beta, gamma])


def _missing(prices: Prices, proposed: tuple[float, float, float], corner: tuple[int, int]) -> float:
    """By how much α is too small for one corner of all cells, the largest."""
    (alpha, beta, gamma), (at_last, to_right) = proposed, corner
    ends, nodes = np.stack(prices.columns.blocks), _nodes(prices)
    middle, centre = ends.mean(axis=0)[:, None], ((nodes[1:] + nodes[:-1]) / 2)[None, :]
    sizes, shares = ends[at_last][:, None], nodes[to_right : len(nodes) - 1 + to_right][None, :]
    by_size, by_share = prices.slopes(middle, centre)
    curved = prices.offered(middle, centre)[2] + by_size * (sizes - middle) + by_share * (shares - centre)
    constant, linear, _ = prices.offered(sizes, shares)
    m = prices.columns.m
    apart = prices.columns.apart(middle) + (1 - 2 * middle / m) * (sizes - middle)
    asked = apart * prices.telling(ends[0][:, None], shares)
    offered = alpha * constant + beta * linear + gamma * curved
    return float(np.max((asked - offered) / constant))


def _nodes(prices: Prices) -> Floats:
    """Ends of the cells of shares: 0 and 1, and between them in steps that are small beside x + the smallest bend."""
    start = prices.v
    count = int(np.ceil(np.log((1 + start) / start) / SPACING))
    return np.concatenate([[0.0], np.geomspace(start, 1 + start, count + 2)[1:-1] - start, [1.0]])
