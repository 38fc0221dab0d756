"""Upper bounds on the Fisher information of one report about frequencies, and van Trees bounds from them.

A report is a column w of the channel; its information, averaged over a prior, is convex and homogeneous in w. So it is
largest for a column with two levels: 1 for some categories and e^ε for d others (``docs/proofs/shares.md``). Divided by
e^ε − 1 the levels are ``u + 1`` for d categories and ``u`` for the others, u = 1/(e^ε − 1).
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
from tightrope.local.limits.constraint import AnyMechanism
from tightrope.local.limits.limit import COSTS, Hypotheses, Limit, fewest_people, lower_bound, people_not_excluded
from tightrope.local.limits.testing import LeCam
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.root_finding import find_crossing

SINGLE_SIZES = 256
"""Sizes d up to this are blocks of their own; larger ones are in blocks of relative width 1/SINGLE_SIZES."""


@dataclass(frozen=True, slots=True)
class ChannelColumns:
    """All columns for ``m`` categories under (ε, 0, η): ``u`` = 1/(e^ε − 1), ``eta`` = η; 1 if η adds no constraint."""

    m: int
    u: float
    eta: float

    @classmethod
    def from_guarantee(cls, privacy: Guarantee, m: int) -> ChannelColumns:
        """Return the columns under a guarantee with δ = 0.

        >>> round(ChannelColumns.from_guarantee(Guarantee(1.0), 3).u, 6)
        0.581977
        """
        is_unconstrained = privacy.total_variation >= math.tanh(privacy.epsilon / 2)
        return cls(m, inverse_growth(privacy.epsilon), 1.0 if is_unconstrained else privacy.total_variation)

    @property
    def size_blocks(self) -> tuple[Floats, Floats]:
        """First and last size of each block, shape [blocks] each; the blocks cover 1 … m − 1."""
        first = [1]
        while first[-1] < self.m:
            first.append(first[-1] + max(1, first[-1] // SINGLE_SIZES))
        starts = np.array(first[:-1], dtype=np.float64)
        return starts, np.append(starts[1:] - 1, float(self.m - 1))

    def projected_square_norm(self, sizes: Floats) -> Floats:
        """Return |Pw|² = d (m − d)/m for columns with d high entries; P projects onto vectors with sum 0."""
        return np.asarray(sizes * (self.m - sizes) / self.m)

    def max_information_density(self, first: Floats, last: Floats) -> Floats:
        """Return the largest ``|Pw|²/(u + d/m)`` in each block; it is concave in d: at its peak or the nearer end."""
        peak = self.m * (math.sqrt(self.u * (1 + self.u)) - self.u)
        sizes = np.clip(peak, first, last)
        return np.asarray(self.projected_square_norm(sizes) / (self.u + sizes / self.m))


def inverse_growth(epsilon: float) -> float:
    """Return 1/(e^ε − 1) without overflow, rounded down: towards a larger ε. 0 for ε = ∞, ∞ for ε = 0."""
    return math.exp(-epsilon) / -math.expm1(-epsilon) * (1 - 1e-15) if epsilon > 0 else math.inf


MAX_TERM_PAIRS = 80
"""Pairs of terms of the continued fraction. Every number of pairs gives an upper bound; this many are for tiny u."""
FRACTION_ROUNDING = 1 + 1e-12
"""Factor for rounding: sums, products and quotients of positive numbers, a few hundred units of round-off."""


def mean_reciprocal_of_beta(u: float, alpha: Floats | float, beta: Floats | float) -> Floats:
    """Return an upper bound on E 1/(u + S), S ~ Beta(alpha, beta), ``u`` ≥ 0, alpha > 1; shapes broadcast.

    The smaller of E 1/S and the continued fraction ``1/(u + ζ₁/(1 + ζ₂/(u + ζ₃/(1 + …))))``, truncated after a term
    that makes it too large; ζ are products of the canonical moments of S (``docs/proofs/shares.md``).
    ``scipy.special.hyp2f1`` is wrong, and too small, for large parameters.

    >>> round(float(mean_reciprocal_of_beta(1.0, 2.0, 2.0)), 9)  # ∫ 6 s (1 − s)/(1 + s) ds = 9 − 12 log 2
    0.682233833
    """
    first, second = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64))
    total = first + second
    mean_inverse = (total - 1) / (first - 1)
    if u in (0, math.inf):
        return np.asarray(mean_inverse * FRACTION_ROUNDING if u == 0 else np.zeros_like(mean_inverse))
    tail = np.full_like(total, u)
    # A pair shrinks the truncation error by ((√(1+1/u) − 1)/(√(1+1/u) + 1))² or more: to about 1e−13.
    for pair in range(min(MAX_TERM_PAIRS, 2 + math.ceil(7.5 / math.atanh(math.sqrt(u / (1 + u))))), 0, -1):
        # ζ_{2j−1} = q_{2j−2} p_{2j−1}, q_0 = 1; ζ_{2j} = q_{2j−1} p_{2j}.
        before = (total + pair - 2) / (total + 2 * pair - 3) if pair > 1 else 1.0
        odd = np.asarray(before * (first + pair - 1) / (total + 2 * pair - 2))
        even = np.asarray((second + pair - 1) / (total + 2 * pair - 2) * pair / (total + 2 * pair - 1))
        tail = u + odd / (1 + even / tail)
    return np.asarray(np.minimum(1 / tail, mean_inverse) * FRACTION_ROUNDING)


@dataclass(frozen=True, slots=True)
class TraceBound:
    """``upper_bound`` on the trace averaged over the prior; ``price`` ≥ 0: the multiplier ν of the total variation."""

    upper_bound: float
    price: float


@lru_cache(maxsize=4096)
def independent_trace_bound(columns: ChannelColumns, a: float) -> TraceBound:
    """Return T_m(a) for people who do not see other reports; the prior is Dirichlet(a, …, a), a > 2.

    ``max_d d(m−d)/m · E 1/(u + S) / (u + d/m)``, S ~ Beta(da, (m−d)a); with a limit η on the total variation, the
    least over ν ≥ 0 of
    ``νη + max_d d(m−d)/m · (E 1/(u + S) − ν/(m−1))₊ / (u + d/m)``. Any ν gives a bound.

    >>> from tightrope.documents.budget import Guarantee
    >>> columns = ChannelColumns.from_guarantee(Guarantee(1.0), 7)
    >>> round(independent_trace_bound(columns, 1e6).upper_bound, 6)  # 7 s(1−s)(e−1)²/(1+s(e−1))² at s = 2/7
    1.897456
    """
    if columns.u == math.inf:
        return TraceBound(0.0, 0.0)
    first, last = columns.size_blocks
    density = columns.max_information_density(first, last)
    reciprocal = mean_reciprocal_of_beta(columns.u, first * a, (columns.m - first) * a)
    if columns.eta >= 1:
        return TraceBound(float(np.max(density * reciprocal)), 0.0)

    def bound_at_price(price: float) -> float:
        remaining = float(np.max(density * (reciprocal - price / (columns.m - 1))))
        return price * columns.eta + max(0.0, remaining)

    highest = (columns.m - 1) * float(reciprocal[0])
    search = optimize.minimize_scalar(
        bound_at_price, bounds=(0.0, highest), method="bounded", options={"xatol": 1e-9 * highest}
    )
    candidates = [TraceBound(bound_at_price(price), price) for price in (0.0, float(search.x), highest)]
    return min(candidates, key=lambda candidate: candidate.upper_bound)


DIRICHLET_ROUNDING = 1 + 1e-12
CONCENTRATION_EXCESSES = (0.05, 1e9)
"""Smallest and largest a − 2 of the priors that are tried: each of them gives a valid bound."""


def best_prior_concentration(score: Callable[[float], float]) -> float:
    """Return the largest score(a) that was found, a > 2."""
    return score(search_prior_concentration(score))


def search_prior_concentration(score: Callable[[float], float]) -> float:
    """Return the a > 2 with the largest score that was found, for scores with one local maximum.

    >>> round(search_prior_concentration(lambda a: -(a - 5.0) ** 2), 1)
    5.0
    """
    ends = (math.log(CONCENTRATION_EXCESSES[0]), math.log(CONCENTRATION_EXCESSES[1]))
    search = optimize.minimize_scalar(
        lambda x: -score(2 + math.exp(float(x))), bounds=ends, method="bounded", options={"xatol": 3e-3}
    )
    return 2 + math.exp(float(search.x))


def dirichlet_prior_information(m: int, a: float) -> float:
    """Return E |P ∇ log π|² = (m−1)(ma−1)(ma−2)/(a−2) for π = Dirichlet(a, …, a) on m shares, a > 2.

    P projects onto vectors with sum 0.

    >>> round(dirichlet_prior_information(2, 4.0), 6)
    21.0
    """
    return (m - 1) * (m * a - 1) * (m * a - 2) / (a - 2) * DIRICHLET_ROUNDING


def open_answer_trace(columns: ChannelColumns, a: float) -> float:
    """Return the trace of the value itself, Σ (1 − 1/m) E 1/p: an upper bound for every report, interactive or not.

    >>> open_answer_trace(ChannelColumns(3, 0.0, 1.0), 3.0)
    8.000000000008
    """
    return (columns.m - 1) * (columns.m * a - 1) / (a - 1) * DIRICHLET_ROUNDING


RELATIVE_RADII: list[float] = np.linspace(0.01, 0.99, 99).tolist()
"""Radii r of the priors that are tried, relative to the largest one: each prior gives a valid bound."""


def risk_near_uniform(guarantee: Guarantee, m: int, people: int, *, interactive: bool) -> float:
    """Return a lower bound on E Σ_j (p̂_j − p_j)², worst case over p on m values, from the better of two priors; δ ≥ 0.

    The trace of the information is at most ``(m−1)(1−1/m) J(1/m)`` at the uniform distribution, and at most 1/(1 − r)
    times that at distributions within a factor 1 ± r of it (``docs/proofs/channels.md``). The priors: a ball in all d =
    m − 1 directions; and, for non-interactive mechanisms, ⌊m/2⌋ pairs of values that exchange mass independently, which
    have on average the fraction pairs/d of the trace.
    """
    trace, d, pairs = trace_of_information(guarantee, m), m - 1, m // 2
    ball = 4 * first_bessel_zero(d) ** 2 * m * d
    best = max(d * d / (people * trace / (1 - r) + ball / r**2) for r in RELATIVE_RADII)
    if interactive:
        return best
    return max(
        best,
        *(pairs / (people * trace / d / (1 - r) + math.pi**2 * m * m / (2 * r * r)) for r in RELATIVE_RADII),
    )


def fisher_information(guarantee: Guarantee, theta: float) -> float:
    """Return J(θ) = Σ (p − q)²/(θp + (1−θ)q) of the dominating pair, the largest information of a report about θ.

    ``δ/θ + δ/(1−θ) + (η−δ)(e^ε−1)(1/(1+θ(e^ε−1)) + 1/(1+(1−θ)(e^ε−1)))``.

    >>> round(fisher_information(Guarantee(1.0), 0.5), 12) == round(4 * math.tanh(0.5) ** 2, 12)
    True
    """
    exclusive = guarantee.delta / theta + guarantee.delta / (1 - theta)
    shrunk = math.exp(-guarantee.epsilon)
    sides = sum(-math.expm1(-guarantee.epsilon) / (x + (1 - x) * shrunk) for x in (theta, 1 - theta))
    return exclusive + (guarantee.total_variation - guarantee.delta) * sides


def trace_of_information(guarantee: Guarantee, m: int) -> float:
    """Return (m − 1) J(1/m) (1 − 1/m), an upper bound on Σ_x χ²(K(x)‖K̄), K̄ the average of the m rows.

    This is the trace of the information at the uniform distribution, over m − 1 directions.

    >>> round(trace_of_information(Guarantee(1.0), 2), 12) == round(2 * math.tanh(0.5) ** 2, 12)
    True
    """
    return (m - 1) * (1 - 1 / m) * fisher_information(guarantee, 1 / m)


def first_bessel_zero(d: int) -> float:
    """Return the first zero of the Bessel function of order d/2 − 1, or a larger number.

    It gives the least informative prior on a ball. Exact for even d; for odd d the zero for d + 1 is returned, and
    above order 1000 an upper bound.

    >>> round(first_bessel_zero(2), 6)
    2.404826
    """
    order = (d - 1) // 2
    return float(jn_zeros(order, 1)[0]) if order <= 1000 else order + 2.0 * order ** (1 / 3) + 2.0


RADII: list[float] = np.geomspace(1e-7, 0.9, 60).tolist()
"""Radii of the priors that are tried, relative to the largest one."""
QUADRATURE_ROUNDING = 1 + 1e-9


def mean_on_sphere(epsilon: float, dimension: int, people: int) -> float:
    """Return a lower bound on E ‖μ̂ − μ‖² in the unit ball, d > 1, δ = 0, also for sequentially interactive mechanisms.

    ``d²/(n G (1 + ρ²/(1−ρ)) + 4j²/r²)`` with ρ = r √G for the best r: values on the sphere have density 1 + d μ·x; G =
    d² M², M = ``largest_report_mean``; the prior is the square of the first eigenfunction of the ball of radius r ≤
    1/d, j is ``first_bessel_zero`` (``docs/proofs/shares.md``). As n → ∞ it is 1/(n M²), which a random cap around the
    value reaches.
    """
    d, root_information = dimension, dimension * largest_report_mean(epsilon, dimension)
    zero = first_bessel_zero(d)
    bounds = [0.0]
    for radius in (relative / d for relative in RADII):
        rho = radius * root_information
        if rho < 1:
            information = people * root_information**2 * (1 + rho**2 / (1 - rho))
            bounds.append(d * d / (information + 4 * (zero / radius) ** 2))
    return max(bounds)


@lru_cache(maxsize=256)
def largest_report_mean(epsilon: float, dimension: int) -> float:
    """Return max |∫ w x|/∫ w, rounded up, over weights w on the unit sphere whose largest ratio is e^ε, d > 1.

    It is the smallest τ with ``E (x₁ − τ)₊ ≤ u τ``, u = 1/(e^ε − 1).

    >>> round(largest_report_mean(1.0, 2), 4), largest_report_mean(30.0, 3) <= 1
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
    """Return E (x₁ − τ)₊, 0 ≤ τ ≤ 1, x uniform on the sphere, from the area and the first moment of a cap.

    >>> round(expected_excess(0.0, 3), 6)
    0.25
    """
    half = (dimension - 1) / 2
    left = (1 - tau) * (1 + tau)
    scale = math.exp(gammaln(dimension / 2) - gammaln(half)) / math.sqrt(math.pi)
    return float(scale * left**half / (2 * half)) - tau * float(betainc(half, 0.5, left)) / 2


# A lower bound on the squared error of a proportion or a mean: van Trees with a Beta prior.
#
# For few people, Le Cam's bound with the two ends of the interval is larger and is used too.

FEW_PEOPLE = 64
"""Largest number of people for which Le Cam's bound is computed too."""


@dataclass(frozen=True, slots=True)
class ProportionLimit(Limit):
    """E (θ̂ − θ)² ``width``² for a proportion θ in [0, 1], hence for the mean of values in an interval of this width.

    ``1/(n E J(θ) + I_a)`` for the best a, with θ ~ Beta(a, a) and I_a the information of that prior (van Trees);
    ``J(θ)`` is the largest Fisher information of one report, reached by randomized response. Sequentially interactive
    mechanisms are covered: J bounds every channel at every θ, and the information of reports adds up, conditionally on
    earlier ones. ``docs/proofs/shares.md``.
    """

    guarantee: Guarantee
    width: float = 1.0

    def __post_init__(self) -> None:
        check_positive("width", self.width)

    @property
    def guess_risk(self) -> float:
        """The worst risk of the middle as a constant estimate, without any reports."""
        return self.width**2 / 4

    def risk(self, people: int) -> float:
        count = check_integer("people", people)
        best = best_prior_concentration(
            lambda a: 1 / (count * mean_information(self.guarantee, a) + _beta_information(a))
        )
        by_van_trees = lower_bound(self.width**2 * best)
        return max(by_van_trees, self._end_points_limit().risk(count)) if count <= FEW_PEOPLE else by_van_trees

    def people(self, risk: float) -> int:
        target = check_positive("risk", risk) / self.width**2
        if target >= self.guess_risk / self.width**2:
            return 0
        if self.guarantee.total_variation == 0:
            return fewest_people(self.risk, risk)
        excluded = best_prior_concentration(
            lambda a: (1 / target - _beta_information(a)) / mean_information(self.guarantee, a)
        )
        least = people_not_excluded(excluded, risk)
        return least if least > FEW_PEOPLE else max(least, fewest_people(self._end_points_limit().risk, risk))

    def _end_points_limit(self) -> LeCam:
        """Return Le Cam's bound for two hypotheses: all people have the smallest value, or all have the largest."""
        divergence = AnyMechanism(self.guarantee).report_divergence(Hypotheses(1.0, hellinger=2.0))
        return LeCam(divergence, self.width, COSTS["squared"])


def _beta_information(a: float) -> float:
    """Return the information of Beta(a, a) about θ: twice that along the unit vector (1, −1)/√2."""
    return 2 * dirichlet_prior_information(2, a)


def mean_information(guarantee: Guarantee, a: float) -> float:
    """Return E J(θ), θ ~ Beta(a, a), rounded up; J(θ) is the largest Fisher information of a report about θ.

    J(θ) = Σ (p − q)²/(θp + (1−θ)q) of the dominating pair
    = ``δ/θ + δ/(1−θ) + (η−δ)(1/(u + θ) + 1/(u + 1 − θ))``, u = 1/(e^ε − 1).

    >>> import math
    >>> round(mean_information(Guarantee(1.0), 1e9), 6) == round(4 * math.tanh(0.5) ** 2, 6)
    True
    """
    u = inverse_growth(guarantee.epsilon)
    exclusive = guarantee.delta * (2 * a - 1) / (a - 1)
    shared = (guarantee.total_variation - guarantee.delta) * float(mean_reciprocal_of_beta(u, a, a))
    return 2 * (exclusive + shared)
