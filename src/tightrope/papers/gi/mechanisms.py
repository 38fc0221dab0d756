"""Subsampling, and the total variation of the usual mechanisms (GI §IV, §VI-A–C, App. C–F, Figs. 6 and 7)."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.special import ndtr

from tightrope import Guarantee, PrivacyLoss, approx_dp, from_pair, gaussian, laplace, staircase
from tightrope.channels import extremal
from tightrope.numerics.arrays import Floats
from tightrope.papers.gi.composition import silent_mass, theorem_2_delta
from tightrope.papers.gi.regions import GI, TRIPLES, Triple
from tightrope.papers.item import (
    Effort,
    Item,
    agrees_to_digits,
    agrees_within,
    bound_attained,
    paper_is_wrong,
    printed_number,
)
from tightrope.reporting.charts.panels import Drawing, Line, Panel

STAIRCASES = tuple(product((0.3, 1.0, 2.5), (0.0, 0.0139, 0.2, 0.377, 0.5, 0.8, 1.0)))
SUBSET_FRACTIONS = (0.01, 0.3, 0.9)
FACTORS = (0.2, 1.0, 3.0)


def staircase_variation(epsilon: float, gamma: float) -> float:
    """Return the total variation of the staircase distribution (VI-C)."""
    b = math.exp(-epsilon)
    below = 2 * (gamma + b * (1 - gamma))
    return (1 - b) * (2 * gamma * (1 - b) + b) / below if gamma < 0.5 else (1 - b) / below


def sample_mechanism(triple: Triple, share: float) -> PrivacyLoss:
    """Return the mechanism on a random subset."""
    epsilon, delta, eta = triple
    return approx_dp(epsilon, delta=delta, total_variation=eta).loss.subset_sample(round(1000 * share), 1000)


def subsampled_guarantees(effort: Effort) -> list[float]:
    """Return δ at the new ε, and the total variation, of subsampled mechanisms."""
    values = []
    for triple in TRIPLES:
        for p in SUBSET_FRACTIONS:
            loss, epsilon = sample_mechanism(triple, p), math.log1p(p * math.expm1(triple[0]))
            values += [loss.delta(epsilon), loss.total_variation()]
    return values


def printed_subsampled(effort: Effort) -> list[float]:
    """Return pδ and pη (Proposition 1)."""
    return [value for _, delta, eta in TRIPLES for p in SUBSET_FRACTIONS for value in (p * delta, p * eta)]


def mixture_guarantees(effort: Effort) -> list[float]:
    """Return ε and η of the dominating pair with a fraction p of one row mixed into the other, (48)–(50)."""
    values = []
    for epsilon, _, eta in TRIPLES[:1]:
        rows = extremal.dominating_channel(Guarantee(epsilon, 0.0, eta)).matrix
        for p in SUBSET_FRACTIONS:
            loss = from_pair(p * rows[0] + (1 - p) * rows[1], rows[1]).loss
            values += [loss.epsilon(0.0), loss.total_variation()]
    return values


def printed_mixtures(effort: Effort) -> list[float]:
    """Return the values that Proposition 1 allows."""
    return [
        value for epsilon, _, eta in TRIPLES[:1] for p in SUBSET_FRACTIONS
        for value in (math.log1p(p * math.expm1(epsilon)), p * eta)
    ]  # fmt: skip


def staircase_region(effort: Effort) -> list[float]:
    """Return δ at ε/2 of one staircase release, and of five."""
    return [
        (k * staircase(epsilon=e, gamma=g).loss).delta(e / 2)
        for e, g in STAIRCASES for k in (1, 5)
    ]  # fmt: skip


def triple_region(effort: Effort) -> list[float]:
    """Return the same δ for the triples, by Theorem 2: between its points δ is linear in e^ε."""
    deltas = []
    for epsilon, gamma in STAIRCASES:
        triple = (epsilon, 0.0, staircase_variation(epsilon, gamma))
        fraction = math.expm1(epsilon / 2) / math.expm1(epsilon)
        for k in (1, 5):
            low, high = (theorem_2_delta(triple, k, j) for j in (0, 1))
            deltas.append(low + fraction * (high - low))
    return deltas


def staircase_density(epsilon: float, gamma: float, x: Floats) -> Floats:
    """Return the staircase density as the paper defines it, Δ = 1."""
    step, fraction = np.floor(np.abs(x)), np.abs(x) % 1.0
    b = math.exp(-epsilon)
    a = (1 - b) / (2 * (gamma + b * (1 - gamma)))
    return np.asarray(a * b**step * np.where(fraction < gamma, 1.0, b))


def shifted_overlap(epsilon: float, gamma: float) -> float:
    """Return ∫ (f(x) − f(x − 1))₊ dx, exactly from midpoints: both densities are constant between the kinks."""
    kinks = np.unique([k + s * gamma for k in range(-60, 61) for s in (-1, 0, 1)])
    middle, width = (kinks[1:] + kinks[:-1]) / 2, np.diff(kinks)
    return float(
        np.maximum(staircase_density(epsilon, gamma, middle) - staircase_density(epsilon, gamma, middle - 1), 0.0)
        @ width
    )


def draw_shift(gamma: float, figure: int) -> list[Drawing]:
    """Draw Figures 6 and 7: the distribution, and the same distribution shifted by the sensitivity."""
    x = np.linspace(-2.0, 3.0, 2001)
    lines = [
        Line("the law", x.tolist(), staircase_density(1.0, gamma, x).tolist()),
        Line("shifted by Δ", x.tolist(), staircase_density(1.0, gamma, x - 1).tolist()),
    ]
    return [Panel(f"GI Fig. {figure}: staircase laws, γ = {gamma:g}, ε = 1", "output / Δ", "density", lines)]


def _shift_item(figure: int, gamma: float) -> Item:
    return Item(
        GI,
        f"Figure {figure}",
        f"area between two staircase laws a sensitivity apart, γ = {gamma:g}, is the total variation",
        "staircase(epsilon, gamma).total_variation",
        lambda effort: [staircase(epsilon=e, gamma=gamma).total_variation for e in (0.7, 1.0, 2.5)],
        lambda effort: [shifted_overlap(e, gamma) for e in (0.7, 1.0, 2.5)],
        agrees_to_digits(9),
        lambda effort: draw_shift(gamma, figure),
    )


items = (
    Item(
        GI,
        "Proposition 1",
        "on a subset of a share p: (log(1 + p(e^ε − 1)), pδ) and pη; four triples, three shares",
        "approx_dp(...).loss.subset_sample",
        subsampled_guarantees,
        printed_subsampled,
        agrees_to_digits(7),
    ),
    Item(
        GI,
        "Proposition 1, tightness (48)-(50)",
        "the dominating pair, mixed, attains both parameters at once",
        "extremal.dominating_channel, from_pair",
        mixture_guarantees,
        printed_mixtures,
        bound_attained(7),
    ),
    Item(
        GI,
        "VI-A and Appendix D",
        "total variation of Laplace noise: 1 − e^(−ε/2)",
        "laplace(scale).loss.total_variation",
        lambda effort: [laplace(scale=1 / e).loss.total_variation() for e in FACTORS],
        lambda effort: [1 - math.exp(-e / 2) for e in FACTORS],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "VI-B, (16), Appendix E (51)",
        "total variation of Gaussian noise: 2Φ(μ/2) − 1",
        "gaussian(scale).loss.total_variation",
        lambda effort: [gaussian(scale=1 / mu).loss.total_variation() for mu in FACTORS],
        lambda effort: [2 * float(ndtr(mu / 2)) - 1 for mu in FACTORS],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "VI-C and Appendix F1",
        "total variation of staircase noise, 21 settings with γ on both sides of ½",
        "staircase(epsilon, gamma).loss.total_variation",
        lambda effort: [staircase(epsilon=e, gamma=g).loss.total_variation() for e, g in STAIRCASES],
        lambda effort: [staircase_variation(e, g) for e, g in STAIRCASES],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "VI-C and Appendix F2: the region",
        "staircase noise has exactly the region of its triple, once and five times: δ(ε/2) in 21 settings",
        "(k * staircase(...).loss).delta",
        staircase_region,
        triple_region,
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "VI-C: γ = ½",
        "its total variation is the largest that ε allows",
        "staircase(epsilon, gamma=.5).total_variation",
        lambda effort: [staircase(epsilon=e, gamma=0.5).total_variation for e in FACTORS],
        lambda effort: [math.tanh(e / 2) for e in FACTORS],
        agrees_to_digits(9),
    ),
    Item(
        GI,
        "VI-C: γ = 0.0139",
        "is the mechanism of Figure 4: α of its triple",
        "staircase(epsilon=1, gamma=.0139).total_variation",
        lambda effort: silent_mass((1.0, 0.0, staircase(epsilon=1, gamma=0.0139).total_variation)),
        printed_number(0.3),
        agrees_within(5e-4),
    ),
    Item(
        GI,
        "Appendix F1: area on (−γ, γ]",
        "total variation at γ = 0.2, ε = 1, from the two areas as they are printed",
        "staircase(epsilon=1, gamma=.2).total_variation",
        lambda effort: staircase(epsilon=1, gamma=0.2).total_variation,
        lambda effort: float(staircase_density(1.0, 0.2, np.zeros(1))[0]) * (math.exp(-1) + 0.4 * (1 - math.e)),
        paper_is_wrong("the second area has 1 − e^(−ε), not 1 − e^ε, which is negative"),
    ),
    Item(
        GI,
        "Equation (17)",
        "δ(1) of a Gaussian with μ = 1",
        "gaussian(scale=1).loss.delta",
        lambda effort: gaussian(scale=1).loss.delta(1.0),
        lambda effort: float(ndtr(-0.5) - math.e * ndtr(1.0 - 0.5)),
        paper_is_wrong("the second argument is −ε/μ − μ/2, without a second minus before ε"),
    ),
    Item(
        GI,
        "Equation (18)",
        "total variation of a step used at ε = 1 with μ = 1",
        "gaussian(scale=1).loss.total_variation",
        lambda effort: gaussian(scale=1).loss.total_variation(),
        lambda effort: float(ndtr(0.5) - math.e * ndtr(-0.5)),
        paper_is_wrong("e^ε is 1 at ε = 0"),
    ),
    _shift_item(6, 0.2),
    _shift_item(7, 0.8),
)
