"""Bayes risk under local privacy (AAC §V, Fig. 1, Remark 1)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy import special

from tightrope import Guarantee
from tightrope.channels import suprema
from tightrope.local import limits
from tightrope.local.limits import methods
from tightrope.numerics.arrays import Floats
from tightrope.papers.aac.contraction import AAC
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_holds,
    printed_number,
    sharper_bound,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

COIN = limits.BetaBernoulli()
"""Θ uniform, X a coin that shows 1 with probability Θ: Example 4."""
THETA = (np.arange(40_000) + 0.5) / 40_000
"""Midpoints for quadrature, independent of the library's closed forms."""
PEOPLE = (1, 2, 5, 10, 20)
WEAK = Guarantee(0.3, 1e-4)
OPEN = Guarantee(math.inf, 0.0, 1.0)
SHOWN_PEOPLE, SHOWN_DELTA = 20, 1e-4
"""Parameters of Figure 1: they are missing in the stored text, so these are ours."""


@lru_cache(maxsize=32)
def ones_probabilities(people: int) -> Floats:
    """Return P(s | θ) for the number s of ones, shape [nodes, people + 1]."""
    s = np.arange(people + 1.0)
    choose = special.gammaln(people + 1) - special.gammaln(s + 1) - special.gammaln(people - s + 1)
    return np.exp(choose + special.xlogy(s, THETA[:, None]) + special.xlogy(people - s, 1 - THETA[:, None]))


def gamma_information(gamma: float, people: int) -> float:
    """Return the E_γ information of the parameter and n samples: Σ_s ∫ (P(s|θ) − γ/(n + 1))₊ dθ."""
    return float(np.maximum(ones_probabilities(people) - gamma / (people + 1), 0.0).sum(axis=1).mean())


def mutual_information(people: int) -> float:
    """Return I(Θ; Xⁿ) = Σ_s ∫ P(s|θ) log((n + 1) P(s|θ)) dθ."""
    p = ones_probabilities(people)
    return float(special.xlogy(p, (people + 1) * p).sum(axis=1).mean())


def theorem_2(people: int, guarantee: Guarantee) -> float:
    """Return the maximum over ζ of ζ (1 − c I_γ − 2γζ), (1 − c I_γ)²/(8γ); c = δ for one person, φ_n for more."""
    gamma = math.exp(guarantee.epsilon)
    contraction = (
        guarantee.delta if people == 1 else 1 - math.exp(-people * guarantee.epsilon) * (1 - guarantee.delta) ** people
    )
    factor = 1 - contraction * gamma_information(gamma, people)
    return factor * factor / (8 * gamma)


def corollary_3(people: int, contraction: float) -> float:
    """Return the maximum over ζ of ζ (1 − (c I + log 2)/log(1/2ζ))."""
    zeta = (np.arange(400_000) + 0.5) / 800_000
    return max(
        0.0, float(np.max(zeta * (1 - (contraction * mutual_information(people) + math.log(2)) / -np.log(2 * zeta))))
    )


def phi_bound(people: int, guarantee: Guarantee) -> float:
    """Return φ_n = 1 − e^(−nε) (1 − δ)^n."""
    return 1 - math.exp(-people * guarantee.epsilon) * (1 - guarantee.delta) ** people


def response_risk(epsilon: float) -> float:
    """Return the exact Bayes risk of one randomized response: the posterior medians, by quadrature."""
    lie_probability = 1 / (1 + math.exp(epsilon))
    report_probability = lie_probability + (1 - 2 * lie_probability) * THETA
    risk = 0.0
    for weights in (report_probability / len(THETA), (1 - report_probability) / len(THETA)):
        # ∫ |θ − median| of a density that is not normalized.
        cumulative = np.cumsum(weights)
        median = THETA[np.searchsorted(cumulative, cumulative[-1] / 2)]
        risk += float(weights @ np.abs(THETA - median))
    return risk


def draw_bayes_bounds(effort: Effort) -> list[Drawing]:
    """Draw Figure 1: both bounds as functions of ε, and ours."""
    x = np.geomspace(0.01, 1.0, 4 * effort.grid).tolist()
    few = np.geomspace(0.01, 1.0, 5).tolist()
    settings = [Guarantee(e, SHOWN_DELTA) for e in x]
    lines = [
        Line("ours", few, [limits.bayes(Guarantee(e, SHOWN_DELTA), COIN).risk(SHOWN_PEOPLE) for e in few]),
        Line("Theorem 2", x, [methods.by_contraction(COIN, SHOWN_PEOPLE, one) for one in settings]),
        Line(
            "Corollary 3",
            x,
            [
                methods.by_information(COIN, SHOWN_PEOPLE, suprema.printed_contraction(one, SHOWN_PEOPLE))
                for one in settings
            ],
        ),
    ]
    title = f"AAC Fig. 1: Bayes risk from {SHOWN_PEOPLE} reports, δ = {SHOWN_DELTA:g}"
    return [Panel(title, "ε", "E |estimate − Θ|, at least", lines, log_x=True)]


items = (
    Item(
        AAC,
        "Equations (13) and (14)",
        "how often a guess without data is within ζ of a uniform Θ: 2ζ",
        "local.limits.BetaBernoulli().small_ball_probability",
        lambda effort: COIN.small_ball_probability(np.array([0.05, 0.2, 0.7])).tolist(),
        printed_number(0.1, 0.4, 1.0),
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Equation (15), Xu-Raginsky",
        "best value for one open coin, as Remark 1 quotes it",
        "local.limits.methods.by_information",
        lambda effort: methods.by_information(COIN, 1),
        printed_number(0.0456),
        agrees_within(1e-4),
    ),
    Item(
        AAC,
        "Corollary 3",
        "the bound with φ_n, n = 1, ..., 20, beside this page's own quadrature",
        "local.limits.methods.by_information",
        lambda effort: [methods.by_information(COIN, n, suprema.printed_contraction(WEAK, n)) for n in PEOPLE],
        lambda effort: [corollary_3(n, phi_bound(n, WEAK)) for n in PEOPLE],
        agrees_to_digits(5),
    ),
    Item(
        AAC,
        "E_γ-information",
        "I_γ(Θ; Xⁿ) at γ = 1, 1.3, 2 for n = 1, ..., 20",
        "local.limits.BetaBernoulli().shared_information",
        lambda effort: [float(v) for n in PEOPLE for v in COIN.shared_information(np.array([1.0, 1.3, 2.0]), n)],
        lambda effort: [gamma_information(gamma, n) for n in PEOPLE for gamma in (1.0, 1.3, 2.0)],
        agrees_to_digits(5),
    ),
    Item(
        AAC,
        "Theorem 2, (49)",
        "the bound, n = 1, ..., 20, beside its maximum in closed form",
        "local.limits.methods.by_contraction",
        lambda effort: [methods.by_contraction(COIN, n, WEAK) for n in PEOPLE],
        lambda effort: [theorem_2(n, WEAK) for n in PEOPLE],
        agrees_to_digits(5),
    ),
    Item(
        AAC,
        "Theorem 2, sharper",
        "least Bayes risk at (0.3, 1e-4), n = 1, 5, 20: the whole curve and windows beside one γ",
        "local.limits.bayes(...).risk",
        lambda effort: [limits.bayes(WEAK, COIN).risk(n) for n in (1, 5, 20)],
        lambda effort: [theorem_2(n, WEAK) for n in (1, 5, 20)],
        sharper_bound("higher"),
    ),
    Item(
        AAC,
        "Theorem 2 beside a mechanism",
        "no bound exceeds the exact risk of randomized response with one person: ε = 0.3, 1, 3; printed and ours",
        "methods.by_contraction, limits.bayes(...).risk",
        lambda effort: [
            *(methods.by_contraction(COIN, 1, Guarantee(e)) for e in (0.3, 1.0, 3.0)),
            *(limits.bayes(Guarantee(e), COIN).risk(1) for e in (0.3, 1.0, 3.0)),
        ],
        lambda effort: [response_risk(e) for e in (0.3, 1.0, 3.0)] * 2,
        bound_holds(),
    ),
    Item(
        AAC,
        "Example 4: marginals and (16)",
        "the number of ones is uniform on 0, ..., n: I(Θ; Xⁿ) in closed form, n = 1, ..., 20",
        "local.limits.BetaBernoulli().mutual_information",
        lambda effort: [COIN.mutual_information(n) for n in PEOPLE],
        lambda effort: [mutual_information(n) for n in PEOPLE],
        agrees_to_digits(5),
    ),
    Item(
        AAC,
        "Figure 1",
        "at small ε Theorem 2 is above Corollary 3 (20 people, δ = 1e-4, ε = 0.01, 0.02, 0.05; the symbols of the "
        "figure are lost in the stored text)",
        "methods.by_contraction, .by_information",
        lambda effort: [
            methods.by_information(COIN, 20, suprema.printed_contraction(Guarantee(e, 1e-4), 20))
            for e in (0.01, 0.02, 0.05)
        ],
        lambda effort: [theorem_2(20, Guarantee(e, 1e-4)) for e in (0.01, 0.02, 0.05)],
        bound_holds(),
        draw_bayes_bounds,
    ),
    Item(
        AAC,
        "Remark 1, (17)",
        "best bound for one open coin: 2/27, at γ = 4/3",
        "local.limits.bayes(Guarantee(inf, 0, 1), BetaBernoulli()).one_step",
        lambda effort: limits.bayes(OPEN, COIN).one_step(1),
        printed_number(2 / 27),
        agrees_to_digits(6),
    ),
    Item(
        AAC,
        "Remark 1, (18)",
        "E_γ-information of one coin: (1 − γ/2)² at γ = 1, 4/3, 1.8",
        "local.limits.BetaBernoulli().shared_information",
        lambda effort: COIN.shared_information(np.array([1.0, 4 / 3, 1.8]), 1).tolist(),
        lambda effort: [(1 - gamma / 2) ** 2 for gamma in (1.0, 4 / 3, 1.8)],
        agrees_to_digits(8),
    ),
    Item(
        AAC,
        "Remark 1, information",
        "I(Θ; X) = log 2 − 1/2 nats",
        "local.limits.BetaBernoulli().mutual_information(1)",
        lambda effort: COIN.mutual_information(1),
        printed_number(math.log(2) - 0.5),
        agrees_to_digits(9),
    ),
    Item(
        AAC,
        "Remark 1, the comparison",
        "least risk for one open coin: (17) beside (15)",
        "limits.bayes(...).one_step, methods.by_information",
        lambda effort: limits.bayes(OPEN, COIN).one_step(1),
        lambda effort: corollary_3(1, 1.0),
        sharper_bound("higher"),
    ),
)
