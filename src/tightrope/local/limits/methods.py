"""The public functions of ``local.limits``, and the limits as AAC and Xu–Raginsky print them, for comparison.

AAC: Asoodeh, Aliakbarpour, Calmon (docs/papers.md). φ_n = 1 − (e^{−ε}(1 − δ))^n is their contraction of n reports, η
the total variation of the guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from tightrope.channels import suprema
from tightrope.channels.kernel import Kernel, shannon_entropy
from tightrope.channels.suprema import printed_contraction
from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.local.limits.bayes import Bayes, BayesProblem
from tightrope.local.limits.constraint import make_constraint
from tightrope.local.limits.fisher_information import ProportionLimit
from tightrope.local.limits.frequencies import FrequenciesLimit
from tightrope.local.limits.limit import Cost, Hypotheses, make_hypotheses, resolve_cost_function
from tightrope.local.limits.mean import BallLimit, Fano, MomentLimit, Packing
from tightrope.local.limits.testing import Assouad, LeCam, Testing
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite, check_integer, check_positive
from tightrope.numerics.distributions import normalize_distribution

RADII = 2000
"""Number of radii ζ that are tried."""


def by_two_points(
    pair: Hypotheses, people: int, guarantee: Guarantee, *, separation: float, cost: str | Cost = "squared"
) -> float:
    """Return AAC Lemma 3 as printed: ½ ℓ(τ) (1 − √(nφ KL/2)), φ = 1 − (1−δ)e^{−ε}, 2τ the separation; at least 0.

    >>> pair = Hypotheses.from_distributions([0.6, 0.4], [0.4, 0.6])
    >>> round(by_two_points(pair, 10, Guarantee(1.0), separation=0.2), 6)
    0.002469
    """
    report_kl = printed_contraction(guarantee) * min(pair.kl, pair.reverse_kl)
    overlap = 1 - math.sqrt(people * report_kl / 2) if report_kl < math.inf else 0.0
    return max(0.0, resolve_cost_function(cost)(separation / 2) * overlap / 2)


def by_information(problem: BayesProblem, people: int, contraction: float = 1.0) -> float:
    """Return the largest ζ (1 − (c I(Θ; Xⁿ) + log 2)/log(1/L(ζ))): c = 1 is Xu–Raginsky (15), c = φ_n AAC Corollary 3.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(by_information(BetaBernoulli(), 1), 6)  # AAC print 0.0456
    0.045659
    """
    information = contraction * problem.mutual_information(people) + math.log(2)

    def bound_at_radius(radius: Floats) -> Floats:
        ball = problem.small_ball_probability(radius)
        log_ratio = np.where(ball < 1, -np.log(np.minimum(ball, 1 - 1e-16)), 1e-300)
        return np.asarray(radius * (1 - information / log_ratio))

    return _best_score(bound_at_radius, problem.covering_radius)


def by_contraction(problem: BayesProblem, people: int, guarantee: Guarantee) -> float:
    """Return AAC Theorem 2 as printed: ζ (1 − c I_γ(Θ; Xⁿ) − γ L(ζ)) at γ = e^ε only, c = δ for one person, else φ_n.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(by_contraction(BetaBernoulli(), 1, Guarantee(math.log(2), 0.1)), 9)  # I_2 = 0
    0.0625
    """
    gamma = math.exp(guarantee.epsilon)
    contraction = guarantee.delta if people == 1 else printed_contraction(guarantee, people)
    factor = 1 - contraction * float(problem.shared_information(np.array([gamma]), people)[0])
    return _best_score(
        lambda radius: np.asarray(radius * (factor - gamma * problem.small_ball_probability(radius))),
        problem.covering_radius,
    )


def _best_score(score: Callable[[Floats], Floats], largest_radius: float) -> float:
    """Return the largest score of the radii up to ``largest_radius``: a grid, then a local search; at least 0."""
    grid = np.linspace(0.0, largest_radius, RADII + 1)[1:]
    scores = score(grid)
    at = int(np.argmax(scores))
    ends = (float(grid[max(0, at - 1)]), float(grid[min(RADII - 1, at + 1)]))
    polished = optimize.minimize_scalar(lambda z: -float(score(np.array([z]))[0]), bounds=ends, method="bounded")
    return max(0.0, float(scores[at]), -float(polished.fun))


# Below, ``privacy`` is a ``Guarantee(epsilon, delta, total_variation)``: then the limit holds for every mechanism with
# this guarantee; or it is a channel that everyone uses. Each limit has ``.risk(people)``, a lower bound, and
# ``.people(risk)``: every mechanism needs at least this many people for the risk.

Privacy = Guarantee | Kernel


def le_cam(
    privacy: Privacy,
    p0: ArrayLike | Hypotheses,
    p1: ArrayLike | None = None,
    *,
    separation: float,
    cost: str | Cost = "squared",
) -> LeCam:
    """Return Le Cam's worst-case bound for two distributions whose parameters are ``separation`` apart (AAC Lemma 3).

    ``p0`` and ``p1`` are distributions of one person's value, shape [values], or ``p0`` is ``Hypotheses``. ``cost``:
    "absolute", "squared" or a function of the error. Raises ``InputError`` for invalid distributions, or if a given
    channel has another number of inputs.

    >>> limit = le_cam(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6], separation=0.2)
    >>> limit.people(0.001), limit.risk(limit.people(0.001) - 1) > 0.001
    (121, True)
    """
    divergence = make_constraint(privacy).report_divergence(make_hypotheses(p0, p1))
    return LeCam(divergence, check_positive("separation", separation), resolve_cost_function(cost))


def assouad(
    privacy: Privacy, pair: Hypotheses, *, coordinates: int, separation: float, cost: str | Cost = "squared"
) -> Assouad:
    """Return Assouad's lower bound on the risk: a two-point problem for each coordinate; their costs add up.

    >>> each = Hypotheses(0.1)
    >>> assouad(Guarantee(1.0), each, coordinates=8, separation=0.2).risk(10) > 0.02
    True
    """
    return Assouad(check_integer("coordinates", coordinates), le_cam(privacy, pair, separation=separation, cost=cost))


def fano(
    privacy: Privacy,
    packing: ArrayLike | Packing,
    *,
    separation: float,
    cost: str | Cost = "squared",
    interactive: bool = False,
) -> Fano:
    """Return Fano's worst-case bound for many distributions, shape [M, values], or a ``Packing`` (AAC Lemma 4).

    Their parameters are pairwise ``separation`` apart.

    >>> laws = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    >>> fano(Guarantee(1.0), laws, separation=0.14).risk(10) > 0.002
    True
    """
    made = packing if isinstance(packing, Packing) else Packing.from_distributions(packing)
    return Fano(
        make_constraint(privacy),
        made,
        check_positive("separation", separation),
        resolve_cost_function(cost),
        interactive,
    )


def bayes(privacy: Privacy, problem: BayesProblem, *, cost: str | Cost = "absolute") -> Bayes:
    """Return a bound on the average risk over a prior (AAC Theorem 2 at every γ ≥ 1, and sharper).

    ``problem``: ``BetaBernoulli(a, b)``, or ``Cells.from_prior(prior, likelihood)`` with a ``scipy.stats`` distribution
    or samples. Non-interactive mechanisms.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(bayes(Guarantee(math.inf, 0, 1), BetaBernoulli()).one_step(1) * 27, 6)  # 2/27: AAC Remark 1
    2.0
    """
    if not isinstance(problem, BayesProblem):
        remedy = "BetaBernoulli(a, b) or Cells.from_prior(prior, likelihood)"
        raise InputError("problem", problem, "a BayesProblem", remedy)
    return Bayes(make_constraint(privacy), problem, resolve_cost_function(cost))


def testing(privacy: Privacy, p0: ArrayLike | Hypotheses, p1: ArrayLike | None = None) -> Testing:
    """Return limits on every test of ``p0`` against ``p1``: exponent, errors at finite n, people (AAC Corollary 4).

    >>> private = testing(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6])
    >>> private.people(0.05, 0.05) > 190
    True
    """
    return Testing(make_constraint(privacy).report_divergence(make_hypotheses(p0, p1)))


def mutual_information(privacy: Privacy, prior: ArrayLike) -> float:
    """Return an upper bound on I(X; Z) in nats, the information of a report about a value (AAC Corollary 5).

    The smaller of κ H(X) and Σ_x p(x) η (1−p(x)) log(1 + (1−p(x))(e^ε−1)) (ours); for a channel I(X; Z) itself.

    >>> mutual_information(Guarantee(1.0), [0.5, 0.5]) < math.tanh(0.5) ** 2 * math.log(2)
    True
    """
    if isinstance(privacy, Kernel):
        return privacy.mutual_information(prior)
    kappa = make_constraint(privacy).kl_contraction
    weights = normalize_distribution("prior", prior)
    spread = math.fsum(p * suprema.kl_bound(privacy, 1 - p) for p in weights.tolist() if p > 0)
    return min(kappa * shannon_entropy(weights), spread)


def mean(privacy: Guarantee, *, bounds: tuple[float, float] = (0.0, 1.0)) -> ProportionLimit:
    """Return a bound for the mean of values in an interval, squared error.

    Ours. For many people, randomized response attains it.

    >>> limit = mean(Guarantee(1.0))
    >>> n = limit.people(1e-4)
    >>> reached = 0.25 / math.tanh(0.5) ** 2 / 1e-4
    >>> round(n / reached, 2)
    0.98
    """
    try:
        low, high = (check_finite("bounds", end) for end in bounds)
    except (TypeError, ValueError):
        raise InputError("bounds", bounds, "two finite numbers, the least and the largest value") from None
    return ProportionLimit(_check_guarantee(privacy), check_positive("width of bounds", high - low))


def frequencies(privacy: Guarantee, *, k: int, interactive: bool = False) -> FrequenciesLimit:
    """Return a bound for the frequencies of k values, Σ of squared errors.

    Ours. For people who do not see each other's reports (non-interactive mechanisms); with ``interactive`` for people
    who may see all earlier reports (sequentially interactive ones). For many people, subset selection attains it.

    >>> frequencies(Guarantee(1.0), k=7).people(7 * 0.01**2)  # subset selection takes 27,104
    25758
    >>> frequencies(Guarantee(1.0), k=7, interactive=True).people(7 * 0.01**2) > 25_000
    True
    """
    return FrequenciesLimit(_check_guarantee(privacy), k, interactive)


def moment_mean(privacy: Guarantee, *, moment: float) -> MomentLimit:
    """Return a bound for the mean of values with E|X|^moment ≤ 1, squared error (AAC Example 2).

    >>> limit = moment_mean(Guarantee(1.0), moment=2)
    >>> round(limit.risk(40_000) / limit.risk(10_000), 2)  # n^(−1/2)
    0.5
    """
    return MomentLimit(_check_guarantee(privacy), moment)


def ball_mean(privacy: Guarantee, *, dimension: int, radius: float = 1.0) -> BallLimit:
    """Return a bound for the mean of vectors in an ℓ₂ ball, squared error (AAC Example 3).

    >>> ball_mean(Guarantee(1.0), dimension=16).risk(10_000) > 1e-4
    True
    """
    return BallLimit(_check_guarantee(privacy), dimension, radius)


def _check_guarantee(privacy: object) -> Guarantee:
    if not isinstance(privacy, Guarantee):
        raise InputError(
            "privacy", privacy, "a Guarantee", "for one channel, use le_cam or fano with distributions over its inputs"
        )
    return privacy
