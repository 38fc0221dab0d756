"""The noise of counts below an edge: bounds that hold, and estimates that are right without noise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.queries.cell_counts import NO_MOMENT, EdgeExcess, _log_moment, _noise_variance
from tightrope.queries.statistics import Noise

BLOCKS, CELLS = 6, 5


@pytest.fixture(
    scope="module", params=[{"epsilon": 1, "delta": 1e-8}, {"epsilon": 2, "delta": 0}, {"epsilon": 0.3, "delta": 1e-3}]
)
def noise(request: pytest.FixtureRequest) -> Noise:
    session = tr.Session(pd.DataFrame({"x": [1.0]}), privacy_unit=None, budget=tr.Budget(**request.param))
    return session.plan([tr.count()]).noises()[0][0]


def draws(noise: Noise, *shape: int) -> np.ndarray:
    return np.asarray(noise.noise_mechanism.sample(int(np.prod(shape))), dtype=float).reshape(shape)


def test_moments_are_those_of_the_noise(noise: Noise) -> None:
    found = draws(noise, 200_000)
    assert _noise_variance(noise.noise_tails) == pytest.approx(found.var(), rel=0.05)
    slopes = np.array([0.05, 0.2]) / found.std()
    for moment, slope in zip(_log_moment(noise.noise_tails, slopes, 1.0), slopes, strict=True):
        assert moment == pytest.approx(np.log(np.cosh(slope * found).mean()), rel=0.05)


def test_a_slope_beyond_the_tail_has_no_moment(noise: Noise) -> None:
    endless = noise.noise_tails.table[-1] > 0
    assert (_log_moment(noise.noise_tails, np.array([4.0]), 1.0)[0] == NO_MOMENT) == endless


@pytest.mark.parametrize("q", [0.1, 0.5, 0.99])
def test_the_reach_of_every_edge_holds_and_is_not_far_off(noise: Noise, q: float) -> None:
    """Exceeded 2.5 % of the time at most on each side; Chernoff's bound is not much wider than it must be."""
    edges = EdgeExcess.from_tails(noise.noise_tails, noise.noise_tails, q, BLOCKS, CELLS)
    blocks, cells = draws(noise, 4_000, BLOCKS), draws(noise, 4_000, BLOCKS, CELLS)
    errors = np.stack([edges.estimate_excess(own, inner) for own, inner in zip(blocks, cells, strict=True)])
    assert np.all((errors > edges.reach).mean(axis=0) <= 0.032)
    assert np.all((errors < -edges.reach).mean(axis=0) <= 0.032)
    assert errors.std(axis=0) == pytest.approx(edges.spread, rel=0.1)
    assert np.all(edges.reach < 4 * edges.spread + 4)
    assert (blocks.sum(axis=1) <= -40).mean() <= edges.lower_tail_bound(40) + 0.01


@pytest.mark.parametrize("q", [0.1, 0.5, 0.99])
def test_the_exact_reach_is_exceeded_about_as_rarely_as_it_says(noise: Noise, q: float, runs: int = 20_000) -> None:
    """2.5 % on each side; a reach of three quarters is seen to be too short, and Chernoff's is a fifth longer."""
    edges = EdgeExcess.from_tails(noise.noise_tails, noise.noise_tails, q, BLOCKS, CELLS)
    blocks, cells = draws(noise, runs, BLOCKS), draws(noise, runs, BLOCKS, CELLS)
    errors = np.stack([edges.estimate_excess(own, inner) for own, inner in zip(blocks, cells, strict=True)])
    exact = np.array([[edges.exact_reach(i, k) for k in range(CELLS + 1)] for i in range(BLOCKS)])
    exceeded = (np.abs(errors) > exact).mean(axis=0)
    assert np.all(exceeded <= 0.05 + 5 * 0.0016) and exceeded.mean() >= 0.02
    assert (np.abs(errors) > 0.7 * exact).mean() > 0.06
    assert exact.mean() <= 0.85 * edges.reach.mean()


def test_without_noise_the_estimate_is_the_count(noise: Noise) -> None:
    counts = np.arange(BLOCKS * CELLS, dtype=float).reshape(BLOCKS, CELLS) % 7
    edges = EdgeExcess.from_tails(noise.noise_tails, noise.noise_tails, 0.5, BLOCKS, CELLS)
    excess = edges.estimate_excess(counts.sum(axis=1), counts)
    below = np.concatenate([[0], np.cumsum(counts.ravel())])
    assert excess[:, :-1].ravel() == pytest.approx(below[:-1] - below[-1] / 2)
    place = edges.zero_crossing(excess)
    assert np.interp(place, np.arange(len(below)), below) == pytest.approx(below[-1] / 2)
    first, last = edges.likely_cells(excess)
    assert first <= place <= last + 1


@pytest.mark.parametrize("at", [0, BLOCKS * CELLS - 1, 7])
@pytest.mark.parametrize("rows", [0, 1, 30, 3_000])
def test_the_true_cell_is_held(noise: Noise, at: int, rows: int) -> None:
    """Also where all values lie in one cell, at an end, or where there are hardly any."""
    counts = np.zeros(BLOCKS * CELLS)
    counts[at] = rows
    exact = counts.reshape(BLOCKS, CELLS)
    edges = EdgeExcess.from_tails(noise.noise_tails, noise.noise_tails, 0.5, BLOCKS, CELLS)
    held = 0
    for own, inner in zip(draws(noise, 400, BLOCKS), draws(noise, 400, BLOCKS, CELLS), strict=True):
        first, last = edges.likely_cells(edges.estimate_excess(exact.sum(axis=1) + own, exact + inner))
        held += first <= at <= last
    assert held >= 0.92 * 400
