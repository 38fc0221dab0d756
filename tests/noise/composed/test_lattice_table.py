"""Tables with losses on a lattice by construction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import BudgetRefused
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.composed.candidates import Candidate, Question
from tightrope.noise.composed.lattice_table import LatticeLaw, keeps, relative_excess
from tightrope.noise.program.request import Cost

QUESTION = Question(((1.0, 1e-6),), 10, 1, Cost.of("squared"))


@given(heights=st.lists(st.integers(0, 4000), min_size=1, max_size=30), step=st.floats(1e-4, 0.01))
def test_weights_are_powers_of_the_step(heights, step):
    table = LatticeLaw(np.array([0, *heights]), step).table()
    weights = np.array([float(w) for w in (table.centre, *table.half)])
    expected = np.exp(-step * np.array([0, *heights], dtype=float))
    assert weights / weights[0] == pytest.approx(expected[: len(weights)], rel=1e-11)


def test_losses_are_multiples_of_the_step_to_rounding():
    law = LatticeLaw.rounded(np.exp(-((np.arange(150) / 14.5) ** 1.5)), 2e-4)
    losses = law.table().atoms(1).losses
    wholes = np.rint(losses / 2e-4)
    assert np.array_equal(losses, wholes * 2e-4)


def test_rounding_moves_logarithms_by_half_a_step():
    half = np.exp(-((np.arange(60) / 5.0) ** 1.3))
    law = LatticeLaw.rounded(half, 0.01)
    moved = -0.01 * (law.heights - law.heights[0]) - np.log(half)
    assert np.max(np.abs(moved)) <= 0.005 * (1 + 1e-9)


def test_the_centre_shares_its_level_with_no_other_cell():
    """It takes the remainder of all rounding: beside an equal cell it would have a loss of 2^-128."""
    law = LatticeLaw.rounded(np.exp(-((np.arange(400) / 100.0) ** 2)), 0.01)
    assert law.heights[1] > law.heights[0]
    assert np.min(np.abs(law.table().atoms(1).losses)) in {0.0, 0.01}


def test_certified_ends_on_the_private_side_and_close_to_it():
    law = LatticeLaw.rounded(np.exp(-((np.arange(146) / 14.53) ** 1.5)), QUESTION.step(1e-6)).tuned(QUESTION)
    table = law.certified(QUESTION)
    assert -1e-5 < relative_excess(table, QUESTION) <= 0
    assert not keeps(LatticeLaw(law.heights, law.step * 1.001).table(), QUESTION)


def test_laws_that_lose_too_much_are_refused():
    with pytest.raises(BudgetRefused, match="raise delta"):
        LatticeLaw(np.array([0, 1]), 0.01).certified(QUESTION)


def test_a_law_that_is_not_unimodal_has_no_proof_at_larger_shifts():
    question = Question(((1.0, 1e-6),), 2, 2, Cost.of("squared"))
    table = NoiseTable.from_probabilities([1.0, 2.0, 1.0])
    assert relative_excess(table, question) == math.inf


def test_a_lattice_that_is_too_fine_is_left():
    question = Question(((1.0, 1e-6),), 10**5, 1, Cost.of("squared"))
    heights = np.arange(5000) ** 2
    found = Candidate("discrete Gaussian", np.exp(-heights / 3.6e6), 1.8e6, 3.6e6, heights)
    assert LatticeLaw.of_candidate(question, found).step > 1 / 3.6e6
    assert LatticeLaw.of_candidate(QUESTION, Candidate("a", np.ones(2), 1.0, 357.0, heights)).heights is heights
