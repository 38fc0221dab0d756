"""Several columns as one vector: with a noise of its own for each it costs what they cost one by one, and no less.

What each column's range allows, all allow at once: one person may shift every number to the end of its range. So the
worst shift of the vector is that of all its numbers together, which is what composition composes. Less is only where
columns exclude each other (parts of a histogram), or where the noise is not independent: ``docs/questions.md``.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.release.questions.vector import Noise

FAINT = 1e-13
COLUMNS = ["a", "b", "c", "d"]
EPSILONS = [0.1, 0.5, 1.0, 2.0]


def planned(columns: int) -> tr.Plan:
    table = pd.DataFrame({name: [0.5] for name in COLUMNS})
    session = tr.Session(table, person=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    return session.plan([tr.sum(name, between=(-1, 1)) for name in COLUMNS[:columns]])


@pytest.mark.parametrize("columns", [2, 4])
def test_gaussian_noise_on_a_vector_costs_what_its_columns_cost_together(columns):
    alone, vector = tr.gaussian(scale=3.0).loss, tr.gaussian(scale=3.0, sensitivity=math.sqrt(columns)).loss
    together = alone * columns
    assert together.delta(EPSILONS) == pytest.approx(vector.delta(EPSILONS), rel=1e-9)


@pytest.mark.parametrize("columns", [2, 4])
def test_pure_noise_on_a_vector_costs_what_its_columns_cost_together(columns):
    """The largest loss: ε = columns · shift / scale, whichever way it is said."""
    together, vector = tr.laplace(scale=4.0).loss * columns, tr.laplace(scale=4.0, sensitivity=columns).loss
    assert together.epsilon(0.0) == pytest.approx(vector.epsilon(0.0), rel=1e-9)


def test_the_planner_composes_exactly_the_loss_of_the_vector_at_the_corner_of_the_box():
    """δ(ε) of the two-dimensional law and its shift by the ends of both ranges, summed outcome by outcome."""
    plan = planned(2)
    masses = [weights(noise) for noises in plan.noises() for noise in noises]
    (one, shift), (other, also) = masses
    here, there = np.outer(one[shift:], other[also:]), np.outer(one[:-shift], other[:-also])
    lost = 1 - here.sum()
    for epsilon in EPSILONS[1:3]:
        wanted = np.maximum(here - math.exp(epsilon) * there, 0.0).sum() + lost
        assert plan.loss.delta(epsilon) == pytest.approx(wanted, rel=1e-6, abs=1e-11)


def weights(noise: Noise) -> tuple[np.ndarray, int]:
    """P(Y = −n), …, P(Y = n) of the table that runs, but for a faint rest, and by how many steps a row shifts it."""
    beyond = noise.tails.table
    half = -np.diff(beyond[beyond > FAINT])
    return np.concatenate([half[::-1], [1 - 2 * beyond[0]], half]), noise.shift


def test_parts_that_exclude_each_other_cost_one_count():
    table = pd.DataFrame({"a": [0.5]})
    session = tr.Session(table, person=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    parts = session.plan([tr.histogram("a", edges=[0, 1, 2, 3])]).accuracies()[0].at(1)
    alone = session.plan([tr.count()]).accuracies()[0].at(1)
    assert parts == alone


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_dependent_noise_in_the_shape_of_the_box_would_be_cheaper(columns):
    """What is left to gain: P(x) ∝ exp(−ε max |x_i| / s) on whole vectors is ε-private for every shift up to s.

    For max |x_i + v_i| ≤ max |x_i| + s. E|x_i| is about (d + 1)/2 · s/ε where independent noise has d · s/ε.
    """
    steps, epsilon = 40, 1.0
    reach = np.arange(1, 60 * steps)
    cells = (2.0 * reach + 1) ** columns - (2.0 * reach - 1) ** columns
    shell = np.concatenate([[1.0], cells * np.exp(-epsilon * reach / steps)])
    face = 2.0 * (2 * reach + 1) ** (columns - 1)  # x_1 = ± r; else |x_1| < r is uniform
    inner = (cells - face) * (reach * (reach - 1.0)) / (2 * reach - 1)
    mean = np.concatenate([[0.0], (face * reach + inner) * np.exp(-epsilon * reach / steps)]).sum() / shell.sum()
    independent = planned(columns).accuracies()[0].at(1)["expected_absolute_error"]
    assert mean / steps == pytest.approx((columns + 1) / 2, rel=0.02)
    assert mean / steps < {2: 0.77, 3: 0.68, 4: 0.64}[columns] * independent
