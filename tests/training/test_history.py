"""Equal steps are counts; the loss of a history is that of its steps."""

from __future__ import annotations

import math

import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.training.history import compose_history, record_steps


def test_equal_steps_are_counted_and_others_are_not() -> None:
    history = []
    for noise, rate in [(1.0, 0.1)] * 3 + [(2.0, 0.1)] + [(2.0, 0.2)] * 2 + [(1.0, 0.1)]:
        history = record_steps(history, noise, rate)
    assert history == [(1.0, 0.1, 3), (2.0, 0.1, 1), (2.0, 0.2, 2), (1.0, 0.1, 1)]


def test_the_argument_is_left_alone() -> None:
    history = [(1.0, 0.1, 3)]
    assert record_steps(history, 1.0, 0.1) == [(1.0, 0.1, 4)]
    assert history == [(1.0, 0.1, 3)]


def test_a_history_after_json_goes_on() -> None:
    assert record_steps([[1.0, 0.1, 3]], 1.0, 0.1) == [(1.0, 0.1, 4)]


def test_the_loss_is_that_of_the_steps() -> None:
    expected = 4 * tr.gaussian(scale=1.0).loss.poisson_sample(0.1) + 2 * tr.gaussian(scale=3.0).loss
    found = compose_history([(1.0, 0.1, 3), (3.0, 1.0, 2), (1.0, 0.1, 1)])
    assert found.remove.counts == (4, 1)
    assert set(found.remove.laws) == set(expected.remove.laws)
    assert found.delta(2.0) == pytest.approx(expected.delta(2.0), rel=1e-9)
    assert found.neighbors.value == "add-remove"


def test_nothing_done_tells_nothing() -> None:
    assert (compose_history([]).epsilon(0.0), compose_history([]).total_variation()) == (0.0, 0.0)


def test_without_noise_everybody_in_the_batch_is_given_away() -> None:
    loss = compose_history([(0.0, 0.01, 1)])
    assert math.isinf(loss.epsilon(1e-5))
    assert loss.total_variation() == pytest.approx(0.01, rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "rate", "count"),
    [(math.nan, 0.1, 1), (-1.0, 0.1, 1), (math.inf, 0.1, 1), ("1", 0.1, 1), (1.0, 0.0, 1), (1.0, 1.5, 1),
     (1.0, math.nan, 1), (1.0, 0.1, 0), (1.0, 0.1, 1.5), (True, 0.1, 1)],
)  # fmt: skip
def test_nonsense_is_refused(noise: float, rate: float, count: int) -> None:
    with pytest.raises(InputError):
        record_steps([], noise, rate, count)
