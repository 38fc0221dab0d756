"""Plans: the people of a study beside what no mechanism can do, and the command that prints them."""

from __future__ import annotations

import math

import pytest

import tightrope as tr
from tightrope.documents.numbers import UP, significant_text
from tightrope.errors import InputError

plan = tr.local.plan


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 16, 300])
def test_limits_lie_below(epsilon, k):
    found = plan("distribution", epsilon=epsilon, k=k, error=0.005)
    assert 1 <= found.least_people <= found.people
    assert 0 < found.least_error <= found.error
    assert found.option.variance / found.people <= 0.005**2
    assert found.option.variance / (found.people - 1) > 0.005**2


def test_users_and_error_are_two_sides():
    by_error = plan("mean", epsilon=1.0, error=0.02)
    by_people = plan("mean", epsilon=1.0, people=by_error.people)
    assert by_people.error <= 0.02
    assert by_people.error == pytest.approx(0.02, rel=1e-3)
    *_, heading, bound = str(by_error).split("\n")
    assert "Lower bounds that hold for every mechanism" in heading
    assert "sequentially interactive" in bound  # that of a mean holds for both


def test_both_limits_are_named():
    found = plan("distribution", epsilon=1.0, k=7, error=0.01)
    *_, alone, in_turn = str(found).split("\n")
    assert "25,758 people if people do not see each other's reports (non-interactive)" in alone
    assert f"{found.in_turn.people:,} people if people may see earlier reports (sequentially interactive)" in in_turn
    assert 25_000 < found.in_turn.people < found.least_people == 25_758
    assert found.in_turn.error < found.least_error < found.error
    assert "gap" not in str(found)


def test_what_is_not_known_is_said():
    found = plan("distribution", epsilon=1.0, k=1000, error=0.001)
    assert f"gap: factor {significant_text(found.people / found.least_people, 2, UP)}" in str(found)


@pytest.mark.parametrize(("question", "k", "error"), [("distribution", 10_000, 0.0101), ("mean", None, 1.2)])
def test_nobody_need_be_asked_where_a_guess_will_do(question, k, error):
    found = plan(question, epsilon=1.0, k=k, error=error)
    assert found.guess_suffices
    assert found.least_people == found.in_turn.people == 0
    assert found.least_error <= found.guess <= error
    assert "No participants are needed" in str(found)
    assert not plan(question, epsilon=1.0, k=k, error=0.9 * found.guess).guess_suffices
    few = plan(question, epsilon=0.1, k=k, people=3)
    assert few.guess_suffices


@pytest.mark.parametrize("eta", [0.01, 0.1, 0.4])
def test_a_total_variation_is_kept(eta):
    for question, k in (("distribution", 2), ("distribution", 8), ("mean", None)):
        found = plan(question, epsilon=2.0, people=10_000, k=k, total_variation=eta)
        assert found.option.mechanism.loss.total_variation() <= eta * (1 + 1e-9)
        assert found.option.mechanism.loss.epsilon(1e-300) <= 2.0 + 1e-9
        assert found.least_error <= found.error
    free = plan("distribution", epsilon=2.0, people=10_000, k=8)
    assert plan("distribution", epsilon=2.0, people=10_000, k=8, total_variation=eta).error >= free.error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"question": "mean", "epsilon": 1.0}, "people"),
        ({"question": "mean", "epsilon": 1.0, "people": 10, "error": 0.1}, "people"),
        ({"question": "mode", "epsilon": 1.0, "people": 10}, "question"),
        ({"question": "distribution", "epsilon": 1.0, "people": 10}, "k"),
        ({"question": "mean", "epsilon": 0.0, "people": 10}, "epsilon"),
        ({"question": "mean", "epsilon": math.inf, "people": 10}, "epsilon"),
        ({"question": "mean", "epsilon": 1.0, "error": math.nan}, "error"),
        ({"question": "mean", "epsilon": 1.0, "people": 10, "total_variation": 0.0}, "total_variation"),
    ],
)
def test_nonsense(words, said):
    with pytest.raises(InputError, match=said):
        plan(**words)


@pytest.mark.parametrize("error", [1e300, 1e-300, 1e-9])
def test_errors_out_of_reach_are_explained(error):
    with pytest.raises(InputError, match=r"error|risk"):
        plan("mean", epsilon=1.0, error=error)


def test_silence_costs_a_mean_fewer_people_than_a_smaller_epsilon():
    """Variances 1 / (η tanh ½) and 1 / η²; and the limit is near."""
    found = plan("mean", epsilon=1.0, error=0.02, total_variation=0.1)
    assert found.people == pytest.approx(10 / math.tanh(0.5) / 0.02**2, rel=1e-3)
    assert found.people < 1.1 * found.least_people


@pytest.mark.parametrize("dimension", [1, 20])
def test_vectors(dimension):
    found = plan("vector", epsilon=1.0, dimension=dimension, error=0.2)
    assert found.option.name == "ball_mean"
    assert found.option.variance == tr.local.ball_mean(1.0, dimension).worst_squared_error
    assert 1 <= found.least_people <= found.people == math.ceil(found.option.variance / 0.2**2)
    assert plan("vector", epsilon=1.0, dimension=dimension, people=found.people).error <= 0.2


def test_vectors_under_a_cap_on_the_total_variation():
    careful = plan("vector", epsilon=1.0, dimension=2, people=1000, total_variation=0.1)
    assert careful.option.mechanism.guarantee.total_variation <= 0.1
    assert careful.least_people <= careful.people
    assert careful.error > plan("vector", epsilon=1.0, dimension=2, people=1000).error


def test_a_size_that_would_be_ignored_is_refused():
    for sizes in ({"k": 7}, {"dimension": 3}):
        with pytest.raises(InputError, match="leave it out for the question 'mean'"):
            plan("mean", epsilon=1.0, error=0.1, **sizes)
    with pytest.raises(InputError, match="leave it out for the question 'distribution'"):
        plan("distribution", epsilon=1.0, error=0.1, k=3, dimension=3)
    with pytest.raises(InputError, match="leave it out for the question 'vector'"):
        plan("vector", epsilon=1.0, error=0.1, k=3, dimension=3)
    with pytest.raises(InputError, match="dimension"):
        plan("vector", epsilon=1.0, error=0.1)
    with pytest.raises(InputError, match="question"):
        plan("median", epsilon=1.0, error=0.1)
