"""Noisy stochastic gradient descent, accounted for in five ways (GI §VI-D, Fig. 5)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from tightrope import PrivacyLoss, approx_dp, gaussian
from tightrope.noise.calibrate import DpSgd
from tightrope.papers.gi.printed import GI
from tightrope.papers.gi.regions import ALARMS, MISSED
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

EXAMPLES, BATCH, NOISE, STEPS, DELTA = 60_000, 256, 1.3, 3515, 1e-5
"""15 epochs of the figure; a step is 1/1.3-GDP on its batch."""
RATE = BATCH / EXAMPLES
EPSILONS_DRAWN = tuple(round(0.5 + i / 10, 1) for i in range(30))
"""The ε of a step for which the paper applies Theorem 2."""
RATES = np.linspace(0.0, 1.0, 41)


def single_step_loss() -> PrivacyLoss:
    """Return the loss of one step on a subset of the examples; neighbors differ by one replaced example."""
    return gaussian(scale=NOISE).loss.subset_sample(BATCH, EXAMPLES)


@lru_cache(maxsize=1)
def exact_loss() -> PrivacyLoss:
    """Return the exact loss of all steps."""
    return STEPS * single_step_loss()


@lru_cache(maxsize=2)
def composed_triples(*, known: bool) -> tuple[PrivacyLoss, ...]:
    """Return the compositions by Theorem 2 (with ``known``, the total variation) or by Kairouz, Oh, Viswanath."""
    one = gaussian(scale=NOISE).loss
    eta = RATE * one.total_variation() if known else None
    return tuple(
        STEPS * approx_dp(math.log1p(RATE * math.expm1(at)), delta=RATE * one.delta(at), total_variation=eta).loss
        for at in EPSILONS_DRAWN
    )


def least_variation(losses: tuple[PrivacyLoss, ...]) -> float:
    """Return the total variation of the intersection of the regions."""
    return min(loss.total_variation() for loss in losses)


def moments_epsilon() -> float:
    """Return ε by the conversion of Abadi et al., min over orders of (K(z) − log δ)/z, for Poisson batches."""
    law = DpSgd(EXAMPLES, BATCH, NOISE, 1).loss.remove

    def converted_epsilon(z: float) -> float:
        moment = law.laws[0].log_moment(np.array([complex(z)]))
        return math.inf if moment is None else (STEPS * float(moment[0].real) - math.log(DELTA)) / z

    return min(converted_epsilon(float(order)) for order in range(1, 33))  # they use the orders 1 to 32


def asymptotic_mu() -> float:
    """Return μ by Dong, Roth, Su, Corollary 5.4: √2 c √(e^{1/σ²} Φ(1.5/σ) + 3Φ(−0.5/σ) − 2), c = p√T."""
    inner = math.exp(NOISE**-2) * ndtr(1.5 / NOISE) + 3 * ndtr(-0.5 / NOISE) - 2
    return math.sqrt(2) * RATE * math.sqrt(STEPS) * math.sqrt(inner)


def highest_tradeoff(losses: tuple[PrivacyLoss, ...]) -> list[float]:
    """Return the highest of several trade-off functions: each is a lower bound."""
    highest = np.max([np.asarray(loss.tradeoff(RATES)) for loss in losses], axis=0)
    return [float(missed) for missed in highest]


def by_moment_region() -> list[float]:
    """Return the region of (ε, δ) of the moments accountant at every ε: its δ = e^{K − zε} at the best whole order."""
    law = DpSgd(EXAMPLES, BATCH, NOISE, 1).loss.remove.laws[0]
    orders = np.arange(1, 65)
    moments = [
        STEPS * float(known[0].real) for z in orders if (known := law.log_moment(np.array([complex(z)]))) is not None
    ]
    levels = np.linspace(0.0, 3.0, 121)
    deltas = [math.exp(min(0.0, *(m - z * e for z, m in zip(orders, moments, strict=False)))) for e in levels]
    return [
        max(
            0.0,
            *(max(1 - d - math.exp(e) * t, math.exp(-e) * (1 - d - t)) for e, d in zip(levels, deltas, strict=True)),
        )
        for t in RATES.tolist()
    ]


def draw_figure_curves(effort: Effort) -> list[Drawing]:
    """Return the five curves of the figure, and the exact one."""
    every = 10 if effort.coarse else 5
    mu, x = asymptotic_mu(), RATES.tolist()
    lines = [
        Line("exact", x, np.asarray(exact_loss().tradeoff(RATES)).tolist()),
        Line("asymptotic (Dong et al.)", x, ndtr(ndtri(1 - RATES) - mu).tolist()),
        Line("Theorem 2", x, highest_tradeoff(composed_triples(known=True)[::every])),
        Line("moments accountant", x, by_moment_region()),
        Line("Kairouz et al.", x, highest_tradeoff(composed_triples(known=False)[::every])),
    ]
    return [Panel("GI Fig. 5: DP-SGD, 15 epochs, σ = 1.3, batch 256 of 60 000", ALARMS, MISSED, lines)]


items = (
    Item(
        GI,
        "Figure 5: moments accountant",
        "ε at δ = 10⁻⁵ by the conversion of Abadi et al., Poisson batches",
        "DpSgd(60000, 256, 1.3, 1).loss.remove.laws[0].log_moment",
        lambda effort: moments_epsilon(),
        printed_number(1.19),
        agrees_within(0.005),
    ),
    Item(
        GI,
        "Figure 5: Theorem 2 and Kairouz et al.",
        "total variation of 3515 steps: Theorem 2 with η of the step beside (ε, δ) alone, both at the paper's ε",
        "3515 * approx_dp(...).loss",
        lambda effort: least_variation(composed_triples(known=True)),
        lambda effort: least_variation(composed_triples(known=False)),
        sharper_bound(),
        draw_figure_curves,
    ),
    Item(
        GI,
        "Figure 5: the exact curve",
        "total variation of 3515 steps: exact beside Theorem 2 at the paper's ε",
        "(3515 * gaussian(...).loss.subset_sample(256, 60000)).total_variation()",
        lambda effort: exact_loss().total_variation(),
        lambda effort: least_variation(composed_triples(known=True)),
        sharper_bound(),
    ),
    Item(
        GI,
        "Figure 5: asymptotic curve",
        "μ of the Gaussian limit of 3515 steps, and Corollary 5.4 of Dong et al. that the figure draws",
        "(3515 * ...).gaussian_limit().mu",
        lambda effort: exact_loss().gaussian_limit().mu,
        lambda effort: asymptotic_mu(),
        agrees_to_digits(2),
    ),
    Item(
        GI,
        "Figure 5: looser than the asymptotic region",
        "total variation of the asymptotic curve is at most that of Theorem 2, as the text says",
        "gaussian(scale=1/mu).loss.total_variation()",
        lambda effort: gaussian(scale=1 / asymptotic_mu()).loss.total_variation(),
        lambda effort: least_variation(composed_triples(known=True)),
        bound_holds(),
    ),
)
