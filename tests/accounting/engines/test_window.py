"""Losses that are folded onto a window: rare and far ones make no long grid, and nothing is gained unseen."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.methods.grid import GridMethod

Law = tuple[float, float, float, float, float]
"""The share of the first loss, three losses (the first one below 0), the mass of the last one."""
NEAR = ((0.632, 1.428e-4, 3.1e-4, 10.399, 1e-5), (0.71, 1.733e-4, 4.5e-4, 9.1, 1e-5), (0.55, 1.1e-4, 2e-4, 8.3, 1e-5))
WIDER = (
    (0.632, 1.428e-4, 0.0129144, 10.399, 4e-5),
    (0.71, 1.733e-4, 0.0171717, 9.1, 3e-5),
    (0.55, 1.1e-4, 0.0111, 8.3, 2e-5),
)


def loss(law: Law) -> tr.PrivacyLoss:
    share, below, above, far, rare = law
    masses = np.array([share * (1 - rare), (1 - share) * (1 - rare), rare])
    other = masses * np.exp([below, -above, -far])
    return tr.from_pair([*masses, 0.0], [*other, 1 - other.sum()]).loss


def one_way(laws: tuple[Law, ...], count: int) -> tr.PrivacyLoss:
    total = sum(count * loss(law) for law in laws)
    return tr.PrivacyLoss(total.remove, total.remove)


def sums(law: tr.PrivacyLoss, count: int) -> tuple[np.ndarray, np.ndarray]:
    """All sums of so many losses, and how probable each is, in long doubles."""
    (atoms,) = law.remove.laws
    losses, masses = atoms.losses.astype(np.longdouble), atoms.masses.astype(np.longdouble)
    ways = [n for n in product(range(count + 1), repeat=len(losses)) if sum(n) == count]
    chances = [
        math.factorial(count) * np.prod([m**k / math.factorial(k) for m, k in zip(masses, n, strict=True)])
        for n in ways
    ]
    return np.array([np.dot(n, losses) for n in ways]), np.array(chances)


def enumerated(laws: tuple[Law, ...], count: int, epsilon: float) -> float:
    total, chance = np.zeros(1, np.longdouble), np.ones(1, np.longdouble)
    for law in laws:
        losses, masses = sums(loss(law), count)
        total, chance = np.add.outer(total, losses).ravel(), np.multiply.outer(chance, masses).ravel()
    above = total > epsilon
    return float(np.sum(chance[above] * -np.expm1(epsilon - total[above])))


@pytest.mark.parametrize("epsilon", [0.0, 0.002, 0.005])
def test_what_is_folded_is_weighed_from_below_to_the_last_digit(epsilon: float) -> None:
    """A part in 1e13 of what is folded goes to infinity, and was not taken off the lower end."""
    total = one_way(WIDER, 14)
    exact = enumerated(WIDER, 14, epsilon)
    for low, high in (GridMethod(total.remove).delta(epsilon), total.delta_bounds(epsilon)):
        assert low <= exact * (1 + 1e-15) <= high * (1 + 3e-15)


@pytest.mark.parametrize("epsilon", [0.0, 0.002])
def test_far_atoms_do_not_make_the_grid_long(epsilon: float) -> None:
    """They were folded onto the nearest of them, at nine nats, of a step that was made for a window of a hundredth."""
    total = one_way(NEAR, 30)
    low, high = GridMethod(total.remove).delta(epsilon)
    assert high - low <= 1e-6 * high
    bounds = total.delta_bounds(epsilon)
    assert bounds.upper - bounds.lower <= 1e-6 * bounds.upper
    assert max(low, bounds.lower) <= min(high, bounds.upper)
