"""Limits as AAC and Xu–Raginsky print them, to compare with ``LeCam`` and, for the cost |Θ̂ − Θ|, with ``Bayes``."""

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
from tightrope.local.limits.bayes import BayesProblem
from tightrope.local.limits.bayes_limit import Bayes
from tightrope.local.limits.constraint import make_constraint
from tightrope.local.limits.frequencies import FrequenciesLimit
from tightrope.local.limits.limit import Cost, Hypotheses, cost_of, make_hypotheses
from tightrope.local.limits.mean import BallLimit, Fano, MomentLimit, Packing
from tightrope.local.limits.testing import Assouad, LeCam, Testing
from tightrope.local.limits.van_trees import ProportionLimit
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite, check_integer, check_positive
from tightrope.numerics.distributions import normalize_distribution

RADII = 2000


def by_two_points(
    pair: Hypotheses, people: int, guarantee: Guarantee, *, separation: float, cost: str | Cost = "squared"
) -> float:
    """AAC Lemma 3 as printed: ½ ℓ(τ) (1 − √(nφ KL/2)), φ = 1 − (1−δ)e^{−ε}, 2τ the separation; 0 if it is negative.

    >>> pair = Hypotheses.from_distributions([0.6, 0.4], [0.4, 0.6])
    >>> round(by_two_points(pair, 10, Guarantee(1.0), separation=0.2), 6)
    0.002469
    """
    known = printed_contraction(guarantee) * min(pair.kl, pair.reverse_kl)
    spared = 1 - math.sqrt(people * known / 2) if known < math.inf else 0.0
    return max(0.0, cost_of(cost)(separation / 2) * spared / 2)


def by_information(problem: BayesProblem, people: int, contraction: float = 1.0) -> float:
    """The best of ζ (1 − (c I(Θ; Xⁿ) + log 2)/log(1/L(ζ))): c = 1 is Xu–Raginsky (15), c = φ_n AAC Corollary 3.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(by_information(BetaBernoulli(), 1), 6)  # AAC print 0.0456
    0.045659
    """
    known = contraction * problem.mutual_information(people) + math.log(2)

    def bound_at_radius(radius: Floats) -> Floats:
        ball = problem.small_ball_probability(radius)
        room = np.where(ball < 1, -np.log(np.minimum(ball, 1 - 1e-16)), 1e-300)
        return np.asarray(radius * (1 - known / room))

    return _best_score(bound_at_radius, problem.covering_radius)


def by_contraction(problem: BayesProblem, people: int, guarantee: Guarantee) -> float:
    """AAC Theorem 2 as printed: ζ (1 − c I_γ(Θ; Xⁿ) − γ L(ζ)) at γ = e^ε alone, c = δ for one person, φ_n for more.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(by_contraction(BetaBernoulli(), 1, Guarantee(math.log(2), 0.1)), 9)  # I_2 = 0
    0.0625
    """
    gamma = math.exp(guarantee.epsilon)
    share = guarantee.delta if people == 1 else printed_contraction(guarantee, people)
    spared = 1 - share * float(problem.shared_information(np.array([gamma]), people)[0])
    return _best_score(
        lambda radius: np.asarray(radius * (spared - gamma * problem.small_ball_probability(radius))),
        problem.covering_radius,
    )


def _best_score(value: Callable[[Floats], Floats], spread: float) -> float:
    """The largest value over radii, polished; 0 where none is positive."""
    grid = np.linspace(0.0, spread, RADII + 1)[1:]
    found = value(grid)
    at = int(np.argmax(found))
    ends = (float(grid[max(0, at - 1)]), float(grid[min(RADII - 1, at + 1)]))
    polished = optimize.minimize_scalar(lambda z: -float(value(np.array([z]))[0]), bounds=ends, method="bounded")
    return max(0.0, float(found[at]), -float(polished.fun))


# What no mechanism and no estimator can beat: Le Cam, Assouad, Fano, Bayes, testing, information; worked problems.
#
# ``privacy`` is a ``Guarantee(epsilon, delta, total_variation)`` – the limit then holds for every mechanism within it
# – or a channel that everybody uses. Each limit has ``.risk(people)``, a lower bound, and ``.people(risk)``: with
# fewer people no mechanism whatsoever reaches the risk.

Privacy = Guarantee | Kernel


def le_cam(
    privacy: Privacy,
    p0: ArrayLike | Hypotheses,
    p1: ArrayLike | None = None,
    *,
    separation: float,
    cost: str | Cost = "squared",
) -> LeCam:
    """Two laws of one person's value whose parameters are ``separation`` apart: worst-case risk (AAC Lemma 3).

    ``p0`` and ``p1`` of shape [values], or ``Hypotheses`` alone. ``cost``: "absolute", "squared" or a function of the
    error. Raises ``InputError`` for laws that are none, or that a given channel cannot read.

    >>> limit = le_cam(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6], separation=0.2)
    >>> limit.people(0.001), limit.risk(limit.people(0.001) - 1) > 0.001
    (121, True)
    """
    one = make_constraint(privacy).report_divergence(make_hypotheses(p0, p1))
    return LeCam(one, check_positive("separation", separation), cost_of(cost))


def assouad(
    privacy: Privacy, pair: Hypotheses, *, coordinates: int, separation: float, cost: str | Cost = "squared"
) -> Assouad:
    """A cube of parameters, each coordinate a two-point problem for any values of the others; costs add up.

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
    """Many laws, shape [M, values], whose parameters are pairwise ``separation`` apart: worst-case risk (AAC Lemma 4).

    >>> laws = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]]
    >>> fano(Guarantee(1.0), laws, separation=0.14).risk(10) > 0.002
    True
    """
    made = packing if isinstance(packing, Packing) else Packing.from_distributions(packing)
    return Fano(make_constraint(privacy), made, check_positive("separation", separation), cost_of(cost), interactive)


def bayes(privacy: Privacy, problem: BayesProblem, *, cost: str | Cost = "absolute") -> Bayes:
    """A parameter with a prior: the risk on average over it (AAC Theorem 2 for the whole curve, and sharper).

    ``problem``: ``BetaBernoulli(a, b)``, or ``Cells.from_prior(prior, likelihood)`` with a ``scipy.stats`` distribution
    or samples. Non-interactive mechanisms.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(bayes(Guarantee(math.inf, 0, 1), BetaBernoulli()).one_step(1) * 27, 6)  # Remark 1
    2.0
    """
    if not isinstance(problem, BayesProblem):
        raise InputError("problem", problem, "a BayesProblem", "BetaBernoulli(a, b) or Cells.of(prior, likelihood)")
    return Bayes(make_constraint(privacy), problem, cost_of(cost))


def testing(privacy: Privacy, p0: ArrayLike | Hypotheses, p1: ArrayLike | None = None) -> Testing:
    """Every test of ``p0`` against ``p1``: exponent, errors at finite n, how many people (AAC Corollary 4).

    >>> private = testing(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6])
    >>> private.people(0.05, 0.05) > 190
    True
    """
    return Testing(make_constraint(privacy).report_divergence(make_hypotheses(p0, p1)))


def mutual_information(privacy: Privacy, prior: ArrayLike) -> float:
    """An upper bound on I(X; Z) in nats: what one report says about a value with this prior (AAC Corollary 5).

    The least of κ H(X) and Σ_x p(x) η (1−p(x)) log(1 + (1−p(x))(e^ε−1)) (ours); for a channel I(X; Z) itself.

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
    """The mean of values in an interval, squared error: asymptotically what randomized response reaches (ours).

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
    return ProportionLimit(_privacy_constraint(privacy), check_positive("width of bounds", high - low))


def frequencies(privacy: Guarantee, *, k: int, interactive: bool = False) -> FrequenciesLimit:
    """The frequencies of k values, Σ of squared errors: asymptotically what subset selection reaches (ours).

    For people who do not see each other's reports (non-interactive mechanisms); with ``interactive`` for people who may
    see all reports before their own (sequentially interactive ones).

    >>> frequencies(Guarantee(1.0), k=7).people(7 * 0.01**2)  # subset selection takes 27,104
    25758
    >>> frequencies(Guarantee(1.0), k=7, interactive=True).people(7 * 0.01**2) > 25_000
    True
    """
    return FrequenciesLimit(_privacy_constraint(privacy), k, interactive)


def moment_mean(privacy: Guarantee, *, moment: float) -> MomentLimit:
    """The mean of values with E|X|^moment ≤ 1, squared error (AAC Example 2).

    >>> limit = moment_mean(Guarantee(1.0), moment=2)
    >>> round(limit.risk(40_000) / limit.risk(10_000), 2)  # n^(−1/2)
    0.5
    """
    return MomentLimit(_privacy_constraint(privacy), moment)


def ball_mean(privacy: Guarantee, *, dimension: int, radius: float = 1.0) -> BallLimit:
    """The mean of vectors in an ℓ₂ ball, squared error (AAC Example 3).

    >>> ball_mean(Guarantee(1.0), dimension=16).risk(10_000) > 1e-4
    True
    """
    return BallLimit(_privacy_constraint(privacy), dimension, radius)


def _privacy_constraint(privacy: object) -> Guarantee:
    if not isinstance(privacy, Guarantee):
        raise InputError(
            "privacy", privacy, "a Guarantee", "for one channel, use le_cam or fano with laws over its inputs"
        )
    return privacy
