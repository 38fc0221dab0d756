"""The most informative reports about shares: columns of a channel with two levels, 1 and e^ε, by size.

A report is a column w of the channel; its information, averaged over a prior, is convex and homogeneous in w, and so
largest where w is 1 on some categories and e^ε on d others (``docs/proofs/shares.md``). Divided by e^ε − 1 these are
``u + 1`` on d categories and ``u`` on the others, u = 1/(e^ε − 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize
from scipy.special import betainc, gammaln, jn_zeros

from tightrope.documents.budget import Guarantee
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import find_crossing

SINGLE_SIZES = 256
"""Sizes d that are looked at one by one; larger ones in blocks of a relative width of 1/SINGLE_SIZES."""


@dataclass(frozen=True, slots=True)
class ChannelColumns:
    """All reports about ``m`` categories under (ε, 0, η): ``u`` = 1/(e^ε − 1), ``eta`` = 1 adds no constraint."""

    m: int
    u: float
    eta: float

    @classmethod
    def from_guarantee(cls, privacy: Guarantee, m: int) -> ChannelColumns:
        """Of a guarantee with δ = 0.

        >>> round(ChannelColumns.from_guarantee(Guarantee(1.0), 3).u, 6)
        0.581977
        """
        free = privacy.total_variation >= math.tanh(privacy.epsilon / 2)
        return cls(m, inverse_growth(privacy.epsilon), 1.0 if free else privacy.total_variation)

    @property
    def size_blocks(self) -> tuple[Floats, Floats]:
        """First and last size of each block, shape [blocks]: all of 1 … m − 1, one by one up to ``SINGLE_SIZES``."""
        first = [1]
        while first[-1] < self.m:
            first.append(first[-1] + max(1, first[-1] // SINGLE_SIZES))
        starts = np.array(first[:-1], dtype=np.float64)
        return starts, np.append(starts[1:] - 1, float(self.m - 1))

    def projected_square_norm(self, sizes: Floats) -> Floats:
        """|Pw|² of a column with this many high entries, P onto the directions that keep the sum: d (m − d)/m."""
        return np.asarray(sizes * (self.m - sizes) / self.m)

    def max_information_density(self, first: Floats, last: Floats) -> Floats:
        """The largest ``apart(d)/(u + d/m)`` with d in each block: concave in d, so at its top or at the nearer end."""
        top = self.m * (math.sqrt(self.u * (1 + self.u)) - self.u)
        sizes = np.clip(top, first, last)
        return np.asarray(self.projected_square_norm(sizes) / (self.u + sizes / self.m))


def inverse_growth(epsilon: float) -> float:
    """1/(e^ε − 1) without overflow, rounded down: towards the larger class. 0 for ε = ∞, ∞ for ε = 0."""
    return math.exp(-epsilon) / -math.expm1(-epsilon) * (1 - 1e-15) if epsilon > 0 else math.inf


# E 1/(u + S) for a Beta law, from above: by its continued fraction, whose ends enclose it.
#
# ``scipy.special.hyp2f1`` is wrong for large parameters, and on the unsafe side.

MOST_TERM_PAIRS = 80
"""Pairs of terms. Every number of them gives an upper bound; fewer will do unless u is tiny."""
CONTRACTED = 1 + 1e-12
"""Additions, products and quotients of positive numbers, contracted at each step: a few hundred units of round-off."""


def mean_reciprocal(u: float, alpha: Floats | float, beta: Floats | float) -> Floats:
    """An upper bound on E 1/(u + S), S ~ Beta(alpha, beta), ``u`` ≥ 0, alpha > 1; shapes broadcast.

    The least of the fraction ``1/(u + ζ₁/(1 + ζ₂/(u + ζ₃/(1 + …))))`` truncated where that is larger, ζ the products of
    the canonical moments of the distribution, and of E 1/S. ``docs/proofs/shares.md``.

    >>> round(float(mean_reciprocal(1.0, 2.0, 2.0)), 9)  # ∫ 6 s (1 − s)/(1 + s) ds = 9 − 12 log 2
    0.682233833
    """
    first, second = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64))
    total = first + second
    outer = (total - 1) / (first - 1)
    if u in (0, math.inf):
        return np.asarray(outer * CONTRACTED if u == 0 else np.zeros_like(outer))
    tail = np.full_like(total, u)
    # A pair shrinks what is left by ((√(1+1/u) − 1)/(√(1+1/u) + 1))² or more: to about 1e−13.
    for pair in range(min(MOST_TERM_PAIRS, 2 + math.ceil(7.5 / math.atanh(math.sqrt(u / (1 + u))))), 0, -1):
        # ζ_{2j−1} = q_{2j−2} p_{2j−1}; the first has no factor before it.
        before = (total + pair - 2) / (total + 2 * pair - 3) if pair > 1 else 1.0
        tail = u + np.asarray(before * (first + pair - 1) / (total + 2 * pair - 2)) / (
            1 + _even_coefficients(second, total, pair) / tail
        )
    return np.asarray(np.minimum(1 / tail, outer) * CONTRACTED)


def _even_coefficients(beta: Floats, total: Floats, pair: int) -> Floats:
    """ζ_{2j} = q_{2j−1} p_{2j}."""
    return np.asarray((beta + pair - 1) / (total + 2 * pair - 2) * pair / (total + 2 * pair - 1))


# The most information of a report whose maker has seen no other report: the maximum outside the expectation.


@dataclass(frozen=True, slots=True)
class InformationTrace:
    """``most``: an upper bound on the trace, averaged over the prior; ``price``: of a unit of total variation, ≥ 0."""

    most: float
    price: float


@lru_cache(maxsize=4096)
def independent_trace_bound(columns: ChannelColumns, a: float) -> InformationTrace:
    """T_m(a) for people on their own: the prior is Dirichlet(a, …, a), a > 2.

    ``max_d d(m−d)/m · E 1/(u + S) / (u + d/m)``, S ~ Beta(da, (m−d)a); under a total variation the least over ν ≥ 0 of
    ``νη + max_d d(m−d)/m · (E 1/(u + S) − ν/(m−1))₊ / (u + d/m)``. Any ν gives a bound.

    >>> from tightrope.documents.budget import Guarantee
    >>> columns = ChannelColumns.from_guarantee(Guarantee(1.0), 7)
    >>> round(independent_trace_bound(columns, 1e6).most, 6)  # 7 s(1−s)(e−1)²/(1+s(e−1))² at s = 2/7
    1.897456
    """
    if columns.u == math.inf:
        return InformationTrace(0.0, 0.0)
    first, last = columns.size_blocks
    dense = columns.max_information_density(first, last)
    telling = mean_reciprocal(columns.u, first * a, (columns.m - first) * a)
    free = float(np.max(dense * telling))
    if columns.eta >= 1:
        return InformationTrace(free, 0.0)
    highest = (columns.m - 1) * float(telling[0])
    found = optimize.minimize_scalar(
        lambda price: _price_columns(columns, dense, telling, price), bounds=(0.0, highest), method="bounded",
        options={"xatol": 1e-9 * highest},
    )  # fmt: skip
    priced = [
        InformationTrace(_price_columns(columns, dense, telling, price), price)
        for price in (0.0, float(found.x), highest)
    ]
    return min(priced, key=lambda one: one.most)


def _price_columns(columns: ChannelColumns, dense: Floats, telling: Floats, price: float) -> float:
    left = float(np.max(dense * (telling - price / (columns.m - 1))))
    return price * columns.eta + max(0.0, left)


# Dirichlet(a, …, a) on m shares as the prior: what it knows itself.

DIRICHLET_CONTRACTED = 1 + 1e-12
CONCENTRATIONS = (0.05, 1e9)
"""a − 2 of the priors that are tried: any of them gives a valid bound."""


def best_concentration(score: Callable[[float], float]) -> float:
    """The largest score(a) found."""
    return score(search_concentration(score))


def search_concentration(score: Callable[[float], float]) -> float:
    """The a > 2 with the largest score that was found; scores have one top.

    >>> round(search_concentration(lambda a: -(a - 5.0) ** 2), 1)
    5.0
    """
    ends = (math.log(CONCENTRATIONS[0]), math.log(CONCENTRATIONS[1]))
    found = optimize.minimize_scalar(
        lambda x: -score(2 + math.exp(float(x))), bounds=ends, method="bounded", options={"xatol": 3e-3}
    )
    return 2 + math.exp(float(found.x))


def prior_information(m: int, a: float) -> float:
    """E |P ∇ log π|² = (m−1)(ma−1)(ma−2)/(a−2), a > 2, P onto the directions that keep the sum of the shares.

    >>> round(prior_information(2, 4.0), 6)
    21.0
    """
    return (m - 1) * (m * a - 1) * (m * a - 2) / (a - 2) * DIRICHLET_CONTRACTED


def of_open_answers(columns: ChannelColumns, a: float) -> float:
    """The trace of the answer itself, Σ (1 − 1/m) E 1/p: an upper bound for every report of it, interactive or not.

    >>> of_open_answers(ChannelColumns(3, 0.0, 1.0), 3.0)
    8.000000000008
    """
    return (columns.m - 1) * (columns.m * a - 1) / (a - 1) * DIRICHLET_CONTRACTED


# Limits on shares for δ > 0: van Trees around the uniform law, by the information there and how far it can rise.
#
# The information about k frequencies at the uniform law has a trace of at most ``(k−1)(1−1/k) J(1/k)``; at laws
# within a factor 1 ± r of it at most 1/(1 − r) times that (``docs/proofs/channels.md``).

WINDOWS: list[float] = np.linspace(0.01, 0.99, 99).tolist()
"""Shares of the largest prior that are tried: any prior gives a valid bound."""


def risk_near_uniform(guarantee: Guarantee, m: int, people: int, *, interactive: bool) -> float:
    """E Σ_j (p̂_j − p_j)² ≥ this, worst case over p on m values: two priors, the better one.

    A ball in all d = m − 1 directions at once; and, for people on their own, ⌊m/2⌋ pairs that trade mass independently,
    whose share of the trace is on average pairs/d.
    """
    trace, d, pairs = trace_of_information(guarantee, m), m - 1, m // 2
    ball = 4 * first_zero(d) ** 2 * m * d
    best = max(d * d / (people * trace / (1 - r) + ball / r**2) for r in WINDOWS)
    if interactive:
        return best
    return max(
        best,
        *(pairs / (people * trace / d / (1 - r) + math.pi**2 * m * m / (2 * r * r)) for r in WINDOWS),
    )


def fisher_information(guarantee: Guarantee, theta: float) -> float:
    """J(θ) = Σ (p − q)²/(θp + (1−θ)q) of the dominating pair: the most one report can say of a proportion.

    ``δ/θ + δ/(1−θ) + (η−δ)(e^ε−1)(1/(1+θ(e^ε−1)) + 1/(1+(1−θ)(e^ε−1)))``.

    >>> round(fisher_information(Guarantee(1.0), 0.5), 12) == round(4 * math.tanh(0.5) ** 2, 12)
    True
    """
    exclusive = guarantee.delta / theta + guarantee.delta / (1 - theta)
    shrunk = math.exp(-guarantee.epsilon)
    sides = sum(-math.expm1(-guarantee.epsilon) / (share + (1 - share) * shrunk) for share in (theta, 1 - theta))
    return exclusive + (guarantee.total_variation - guarantee.delta) * sides


def trace_of_information(guarantee: Guarantee, m: int) -> float:
    """An upper bound on Σ_x χ²(K(x)‖K̄), K̄ the average of m rows: m − 1 directions at the uniform law.

    ``(m − 1) J(1/m) (1 − 1/m)``.

    >>> round(trace_of_information(Guarantee(1.0), 2), 12) == round(2 * math.tanh(0.5) ** 2, 12)
    True
    """
    return (m - 1) * (1 - 1 / m) * fisher_information(guarantee, 1 / m)


def first_zero(d: int) -> float:
    """The first zero of the Bessel function of order d/2 − 1, or above it: the least informative prior on a ball.

    At even d by its name; at odd d the value of the next order, and beyond order 1000 a bound: both are larger.

    >>> round(first_zero(2), 6)
    2.404826
    """
    order = (d - 1) // 2
    return float(jn_zeros(order, 1)[0]) if order <= 1000 else order + 2.0 * order ** (1 / 3) + 2.0


# The information that private reports about a direction can carry: values on a sphere, the mean of a ball.

RADII: list[float] = np.geomspace(1e-7, 0.9, 60).tolist()
"""Radii of the prior, in its largest."""
QUADRATURE_ROUNDING = 1 + 1e-9


def mean_on_sphere(epsilon: float, dimension: int, people: int) -> float:
    """E ‖μ̂ − μ‖² ≥ this in the unit ball, d > 1, δ = 0: ``d²/(n G (1 + ρ²/(1−ρ)) + 4j²/r²)``, ρ = r √G, the best r.

    Values on the sphere with density 1 + d μ·x; G = d² M², M the longest mean of a report (``max_tilted_mean``); the
    prior is the square of the first eigenfunction of the ball of radius r ≤ 1/d. For sequentially interactive
    mechanisms, too (``docs/proofs/shares.md``). As n → ∞ it is 1/(n M²), which a random cap around the value reaches.
    """
    most = dimension * max_tilted_mean(epsilon, dimension)
    zero = first_zero(dimension)
    return max(_value_at(dimension, people, most, zero, share / dimension) for share in RADII)


def _value_at(d: int, people: int, most: float, zero: float, radius: float) -> float:
    bent = radius * most
    if not bent < 1:
        return 0.0
    return d * d / (people * most**2 * (1 + bent**2 / (1 - bent)) + 4 * (zero / radius) ** 2)


@lru_cache(maxsize=256)
def max_tilted_mean(epsilon: float, dimension: int) -> float:
    """Max |∫ w x|/∫ w over w within a factor e^ε, x uniform on the unit sphere in d > 1 dimensions; from above.

    The least τ with ``E (x₁ − τ)₊ ≤ u τ``, u = 1/(e^ε − 1).

    >>> round(max_tilted_mean(1.0, 2), 4), max_tilted_mean(30.0, 3) <= 1
    (0.3083, True)
    """
    u = inverse_growth(epsilon)
    if u == math.inf:
        return 0.0
    if u == 0:
        return 1.0
    found = find_crossing(
        lambda tau: expected_excess(tau, dimension) - u * tau, 0.0, 1.0, side="passes", relative=1e-12
    )
    return min(1.0, found * QUADRATURE_ROUNDING)


def expected_excess(tau: float, dimension: int) -> float:
    """E (x₁ − τ)₊, 0 ≤ τ ≤ 1, from the area and the first moment of a cap.

    >>> round(expected_excess(0.0, 3), 6)
    0.25
    """
    half = (dimension - 1) / 2
    left = (1 - tau) * (1 + tau)
    scale = math.exp(gammaln(dimension / 2) - gammaln(half)) / math.sqrt(math.pi)
    return float(scale * left**half / (2 * half)) - tau * float(betainc(half, 0.5, left)) / 2
