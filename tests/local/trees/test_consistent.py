"""Least squares over a tree: against a general solver, and the variances against weights by hand."""

import numpy as np
import pytest

from tightrope.local.quantile_tree import LevelNoise, edge_variances, shares_below_edges

NOISES = [LevelNoise(0.5, 1.0), LevelNoise(2.0, 0.0), LevelNoise(3.0, 5.0), LevelNoise(0.7, 2.0)]


def weights(noises):
    """What each estimate weighs in each edge, by levels: [edges, nodes] each."""
    sizes = [2 << level for level in range(len(noises))]
    zero = shares_below_edges([np.zeros(size) for size in sizes], noises)
    out = []
    for level, size in enumerate(sizes):
        shares = [[np.zeros(s) for s in sizes] for _ in range(size)]
        for node in range(size):
            shares[node][level][node] = 1.0
        out.append(np.stack([shares_below_edges(one, noises) - zero for one in shares], axis=1))
    return zero, out


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_it_is_weighted_least_squares(depth):
    noises, rng = NOISES[:depth], np.random.default_rng(depth)
    shares = [rng.normal(size=2 << level) for level in range(depth)]
    bins = 2**depth
    rows, targets = [], []
    for share, noise in zip(shares, noises, strict=True):
        rows.append(np.kron(np.eye(len(share)), np.ones(bins // len(share))) / np.sqrt(noise.base))
        targets.append(share / np.sqrt(noise.base))
    matrix, target = np.vstack(rows), np.concatenate(targets)
    free = np.vstack([np.eye(bins - 1), -np.ones(bins - 1)])  # the last bin is the rest of 1
    fixed = np.eye(bins)[-1]
    solved = np.linalg.lstsq(matrix @ free, target - matrix @ fixed, rcond=None)[0]
    assert shares_below_edges(shares, noises) == pytest.approx(np.cumsum(solved), abs=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_variances_are_those_of_the_weights(depth):
    noises = NOISES[:depth]
    bins = np.random.default_rng(depth).dirichlet(np.full(2**depth, 0.5))
    exact = np.zeros(2**depth - 1)
    for level, weight in enumerate(weights(noises)[1]):
        shares = bins.reshape(2 << level, -1).sum(axis=1)
        exact += weight**2 @ (noises[level].base + noises[level].slope * shares)
    assert edge_variances(bins, noises) == pytest.approx(exact, rel=1e-12)


def test_shares_of_one_law_stay_what_they_are():
    bins = np.random.default_rng(1).dirichlet(np.ones(16))
    shares = [bins.reshape(size, -1).sum(axis=1) for size in (2, 4, 8, 16)]
    assert shares_below_edges(shares, NOISES) == pytest.approx(np.cumsum(bins)[:-1], abs=1e-14)
