"""Tables with losses on a lattice by construction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InsufficientBudgetError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.composed.candidates import Candidate, CompositionProblem
from tightrope.noise.composed.lattice_table import LatticeWeights, relative_delta_excess, table_keeps_points
from tightrope.noise.program.request import ErrorCost

QUESTION = CompositionProblem(((1.0, 1e-6),), 10, 1, ErrorCost.from_argument("squared"))


@given(heights=st.lists(st.integers(0, 4000), min_size=1, max_size=30), step=st.floats(1e-4, 0.01))
def test_weights_are_powers_of_the_step(heights, step):
    table = LatticeWeights(np.array([0, *heights]), step).integer_table()
    weights = np.array([float(w) for w in (table.center, *table.half)])
    expected = np.exp(-step * np.array([0, *heights], dtype=float))
    assert weights / weights[0] == pytest.approx(expected[: len(weights)], rel=1e-11)


def test_losses_are_multiples_of_the_step_to_rounding():
    law = LatticeWeights.from_rounded_weights(np.exp(-((np.arange(150) / 14.5) ** 1.5)), 2e-4)
    losses = law.integer_table().atoms_for_shift(1).losses
    wholes = np.rint(losses / 2e-4)
    assert np.array_equal(losses, wholes * 2e-4)


def test_rounding_moves_logarithms_by_half_a_step():
    half = np.exp(-((np.arange(60) / 5.0) ** 1.3))
    law = LatticeWeights.from_rounded_weights(half, 0.01)
    moved = -0.01 * (law.heights - law.heights[0]) - np.log(half)
    assert np.max(np.abs(moved)) <= 0.005 * (1 + 1e-9)


def test_the_center_shares_its_level_with_no_other_cell():
    """It takes the remainder of all rounding: beside an equal cell it would have a loss of 2^-128."""
    law = LatticeWeights.from_rounded_weights(np.exp(-((np.arange(400) / 100.0) ** 2)), 0.01)
    assert law.heights[1] > law.heights[0]
    assert np.min(np.abs(law.integer_table().atoms_for_shift(1).losses)) in {0.0, 0.01}


def test_certified_ends_on_the_private_side_and_close_to_it():
    law = LatticeWeights.from_rounded_weights(
        np.exp(-((np.arange(146) / 14.53) ** 1.5)), QUESTION.lattice_step(1e-6)
    ).with_largest_step(QUESTION)
    table = law.certified_table(QUESTION)
    assert -1e-5 < relative_delta_excess(table, QUESTION) <= 0
    assert not table_keeps_points(LatticeWeights(law.heights, law.lattice_step * 1.001).integer_table(), QUESTION)


def test_laws_that_lose_too_much_are_refused():
    with pytest.raises(InsufficientBudgetError, match="use a larger delta"):
        LatticeWeights(np.array([0, 1]), 0.01).certified_table(QUESTION)


def test_a_law_that_is_not_unimodal_has_no_proof_at_larger_shifts():
    question = CompositionProblem(((1.0, 1e-6),), 2, 2, ErrorCost.from_argument("squared"))
    table = NoiseTable.from_probabilities([1.0, 2.0, 1.0])
    assert relative_delta_excess(table, question) == math.inf


def test_a_lattice_that_is_too_fine_is_left():
    question = CompositionProblem(((1.0, 1e-6),), 10**5, 1, ErrorCost.from_argument("squared"))
    heights = np.arange(5000) ** 2
    found = Candidate("discrete Gaussian", np.exp(-heights / 3.6e6), 1.8e6, 3.6e6, heights)
    assert LatticeWeights.from_candidate(question, found).lattice_step > 1 / 3.6e6
    assert LatticeWeights.from_candidate(QUESTION, Candidate("a", np.ones(2), 1.0, 357.0, heights)).heights is heights
