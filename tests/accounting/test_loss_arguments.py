"""Nonsense never passes and never crashes: our own error names the value and what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting import Neighbors
from tightrope.errors import InputError, TightropeError

NOT_NUMBERS = [math.nan, math.inf, -math.inf, True, "1", None, 1j, [], [None], {}, ..., b"1", 10**400]
INFINITE = (math.inf, -math.inf)
STEP = tr.gaussian(scale=1).loss
MAKERS: dict[str, tuple[Callable[[object], object], list[object]]] = {
    "gaussian scale": (lambda x: tr.gaussian(scale=x), [-1, 1e301]),
    "gaussian sensitivity": (lambda x: tr.gaussian(scale=1, sensitivity=x), [0, -1]),
    "laplace scale": (lambda x: tr.laplace(scale=x), [-1, 1e301]),
    "laplace sensitivity": (lambda x: tr.laplace(scale=1, sensitivity=x), [0, -1]),
    "staircase epsilon": (lambda x: tr.staircase(epsilon=x), [0, -1, 1e-301]),
    "staircase sensitivity": (lambda x: tr.staircase(epsilon=1, sensitivity=x), [0, -1]),
    "staircase gamma": (lambda x: tr.staircase(epsilon=1, gamma=0.5 if x is None else x), [-0.1, 1.1]),
    "truncated epsilon": (lambda x: tr.truncated_laplace(epsilon=x, delta=0.1), [-1, 1e-301]),
    "truncated delta": (lambda x: tr.truncated_laplace(epsilon=1, delta=x), [0, 1, 0.51, -0.1]),
    "truncated sensitivity": (lambda x: tr.truncated_laplace(epsilon=1, delta=0.1, sensitivity=x), [0, -1]),
    "triple epsilon": (tr.approx_dp, [-1]),
    "triple delta": (lambda x: tr.approx_dp(1, delta=x), [-0.1, 1.1]),
    "triple eta": (lambda x: tr.approx_dp(1, total_variation=2 if x is None else x), [-0.1, 1.1]),
    "points": (tr.from_points, [0, 1, (), (1, 2), [(1,)], [(1, 2, 3)], [(1, -0.1)], [(1, 1.1)]]),
    "point epsilon": (lambda x: tr.from_points([(x, 0.1)]), []),
    "point delta": (lambda x: tr.from_points([(1, x)]), [-0.1, 1.1]),
    "p": (lambda x: tr.from_pair(x, [1.0]), [0, [0.5], [2.0], [[1.0]], [-1.0, 2.0], [math.nan], ["a"], [1j]]),
    "q": (lambda x: tr.from_pair([1.0], x), [0, [0.5], [0.5, 0.5], [-1.0, 2.0]]),
    "count": (lambda x: x * STEP if not isinstance(x, list) else STEP * x, [1.5, -1, 2.0, Fraction(1, 2), Decimal(2)]),
    "rate": (STEP.poisson_sample, [-0.1, 1.1]),
    "m": (lambda x: STEP.subset_sample(x, 10), [-1, 11, 1.5]),
    "n": (lambda x: STEP.subset_sample(0, x), [0, -1, 1.5]),
    "probability": (STEP.erase, [-0.1, 1.1]),
    "delta(epsilon)": (STEP.delta, []),
    "delta_bounds(epsilon)": (STEP.delta_bounds, []),
    "epsilon(delta)": (STEP.epsilon, [-0.1, 1.5]),
    "epsilon_bounds(delta)": (STEP.epsilon_bounds, [-0.1, 1.5]),
    "tradeoff": (STEP.tradeoff, [-0.1, 1.1]),
    "true_positive_rate": (STEP.true_positive_rate, [-0.1, 1.1]),
    "quantile": (tr.gaussian(scale=1).quantile, [0, 1, -0.1, 1.1]),
    "half_width": (tr.laplace(scale=1).half_width, [0, 1, -0.1, 1.1]),
}
CASES = [
    (name, make, bad)
    for name, (make, wrong) in MAKERS.items()
    for bad in [*NOT_NUMBERS, *wrong]
    if not (name == "count" and bad == 10**400)
    and not (name in {"delta(epsilon)", "delta_bounds(epsilon)"} and bad in INFINITE)
]


@pytest.mark.parametrize(("name", "make", "bad"), CASES, ids=[f"{name}={bad!r}"[:50] for name, _, bad in CASES])
def test_nonsense_is_refused(name: str, make: Callable[[object], object], bad: object) -> None:
    if name in {"staircase gamma", "triple eta"} and bad is None:
        bad = "none"
    with pytest.raises(InputError) as refused:
        make(bad)
    assert "expected" in str(refused.value)
    assert "got" in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("ask", [STEP.delta, STEP.epsilon, STEP.tradeoff, STEP.delta_bounds, STEP.epsilon_bounds])
def test_one_bad_entry_of_an_array_is_refused(ask: Callable[[object], object], wrong: float) -> None:
    wrong = math.nan if ask in {STEP.delta, STEP.delta_bounds} else wrong  # every other epsilon has an answer
    with pytest.raises(InputError):
        ask([0.5, wrong])
    with pytest.raises(InputError):
        ask(np.array([wrong]))
    with pytest.raises(InputError):
        ask([[0.1, 0.2], [0.3]])


@pytest.mark.parametrize("text", [["a"], np.array(["1"]), np.array([True]), np.array([1j]), np.array([None])])
def test_arrays_of_something_else_are_refused(text: object) -> None:
    with pytest.raises(InputError):
        STEP.delta(text)


@pytest.mark.parametrize("count", [10**30, 10**400, 2**63])
def test_more_runs_than_anybody_makes(count: int) -> None:
    """Refused as an argument or answered: everything is known."""
    try:
        for step in (STEP, tr.laplace(scale=1).loss, tr.approx_dp(0.1).loss):
            lower, upper = (count * step).delta_bounds(1)
            assert 0 <= lower <= upper <= 1
            assert upper > 0.999
    except TightropeError as refused:
        assert str(refused)


@pytest.mark.parametrize("other", [3, 1.5, "loss", None, ...])
def test_only_losses_add_up(other: object) -> None:
    with pytest.raises((TypeError, InputError)):
        STEP + other
    with pytest.raises((TypeError, InputError)):
        other + STEP


def test_zero_is_the_start_of_a_sum_and_true_is_not() -> None:
    assert sum([STEP, STEP]).delta(1) == (2 * STEP).delta(1)
    with pytest.raises((TypeError, InputError)):
        STEP * "2"
    with pytest.raises((TypeError, InputError)):
        STEP * STEP


def test_relations_do_not_mix() -> None:
    local = tr.PrivacyLoss.from_distribution(STEP.remove.laws[0], neighbors=Neighbors.LOCAL)
    sampled = STEP.poisson_sample(0.5)
    assert sampled.neighbors is Neighbors.ADD_REMOVE
    assert (STEP + sampled).neighbors is Neighbors.ADD_REMOVE
    assert (2 * local).neighbors is Neighbors.LOCAL
    with pytest.raises(InputError, match="neighbor"):
        local + sampled
    with pytest.raises(InputError, match="neighbor"):
        sampled + local
    with pytest.raises(InputError, match="neighbor"):
        local.poisson_sample(0.5)


@pytest.mark.parametrize(
    "one", [1, 1.0, np.float64(1), np.float32(1), np.int64(1), np.int8(1), Fraction(1), Decimal(1)]
)
def test_every_real_number_is_welcome(one: object) -> None:
    assert tr.gaussian(scale=one).loss.delta(one) == STEP.delta(1)
    assert tr.approx_dp(one).loss.delta(0) == tr.approx_dp(1).loss.delta(0)
    assert STEP.delta(np.array(1.0)) == STEP.delta(1)


@pytest.mark.parametrize("count", [2, np.int64(2), np.uint8(2)])
def test_every_whole_number_counts(count: int) -> None:
    assert (count * STEP).delta(1) == (STEP + STEP).delta(1)
    assert (STEP * count).delta(1) == (STEP + STEP).delta(1)


def test_scalars_give_floats_and_arrays_give_arrays() -> None:
    assert type(STEP.delta(1)) is float
    assert type(STEP.epsilon(1e-3)) is float
    assert type(STEP.tradeoff(0.1)) is float
    assert type(STEP.total_variation()) is float
    grid = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert STEP.delta(grid).shape == (2, 2)
    assert STEP.delta_bounds([0.0, 1.0]).lower.shape == (2,)
    assert grid.tolist() == [[0.0, 1.0], [2.0, 3.0]]


def test_continuous_laws_refuse_to_sample_and_name_their_twin() -> None:
    for law in (
        tr.gaussian(scale=1),
        tr.laplace(scale=1),
        tr.staircase(epsilon=1),
        tr.truncated_laplace(epsilon=1, delta=0.1),
    ):
        with pytest.raises(InputError, match=f"discrete_{type(law).__name__.lower()[:5]}"):
            law.sample(3)
        with pytest.raises(InputError, match="tightrope"):
            law.release(1.0)
