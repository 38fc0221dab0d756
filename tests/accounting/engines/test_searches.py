"""Few sampled steps at small rates: a search shares what it computes, and grids see the losses that matter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian
from tightrope.accounting.methods import lattice, smoothing

TWO = 2 * tr.gaussian(scale=1.13).loss.poisson_sample(2.65e-4)
SUBSETS = 3 * tr.gaussian(scale=2.11).loss.subset_sample(36, 18_200)


def _fresh(loss: tr.PrivacyLoss) -> tr.PrivacyLoss:
    """With nothing known yet."""
    return tr.PrivacyLoss(loss.remove, loss.add, loss.neighbors)


@pytest.mark.parametrize(
    ("loss", "search", "most"),
    [
        (TWO, lambda loss: loss.epsilon(1e-6), 20),
        (SUBSETS, lambda loss: loss.epsilon(1e-5), 24),
        (6 * tr.laplace(scale=0.802).loss.poisson_sample(0.131), lambda loss: loss.tradeoff(0.00707), 36),
        (54 * tr.gaussian(scale=5.99).loss.poisson_sample(0.00306), lambda loss: loss.tradeoff(0.621), 6),
        (54 * tr.gaussian(scale=5.99).loss.poisson_sample(0.00306), lambda loss: loss.true_positive_rate(1e-3), 6),
    ],
    ids=["two", "subsets", "laplace", "far", "rare"],
)
def test_a_search_takes_few_convolutions_and_lines(
    loss: tr.PrivacyLoss, search: Callable[[tr.PrivacyLoss], float], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There were 78 of one kind and 34 of the other: one for each ε, or nearly."""
    made: list[str] = []
    convolved, lined = lattice._compose_by_transform, smoothing.smooth_line
    monkeypatch.setattr(lattice, "_compose_by_transform", lambda *a: made.append("sum") or convolved(*a))
    monkeypatch.setattr(smoothing, "smooth_line", lambda *a: made.append("line") or lined(*a))
    assert math.isfinite(search(_fresh(loss)))
    assert len(made) <= most, made


@pytest.mark.parametrize("epsilon", [0.002, 0.00307, 0.02, 0.5])
def test_two_steps_hold_the_integral_of_one_profile_over_the_other_law(epsilon: float) -> None:
    """δ₂(ε) = ∫ δ₁(ε − l(x)) P(dx), by a rule that converges beyond all orders."""
    bounds = _fresh(TWO).delta_bounds(epsilon)
    exact = _two_steps(epsilon)
    assert bounds.lower <= exact * (1 + 1e-10)
    assert exact * (1 - 1e-10) <= bounds.upper
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper


def _two_steps(epsilon: float) -> float:
    law = TWO.remove.laws[0]
    assert isinstance(law, PoissonGaussian)
    x = 2.0**-12 * np.arange(-(12 << 12), 14 << 12)
    removed, kept = np.exp(-((x - law.mu) ** 2) / 2), np.exp(-(x**2) / 2)
    masses = (law.rate * removed + (1 - law.rate) * kept) * 2.0**-12 / math.sqrt(2 * math.pi)
    inner = law.profile(epsilon - law.loss_at_outcome(x))
    assert inner is not None
    return math.fsum(masses * inner)


def test_folding_is_weighed_from_below() -> None:
    """Upper and lower ends hold each other at neighboring ε, in windows of different ends."""
    loss = _fresh(SUBSETS)
    epsilons = np.geomspace(1e-4, 0.03, 8)
    bounds = loss.delta_bounds(epsilons)
    assert np.all(bounds.lower <= bounds.upper)
    assert np.all(bounds.lower[1:] <= bounds.upper[:-1])
    assert np.all(np.diff(bounds.upper) <= 0)
