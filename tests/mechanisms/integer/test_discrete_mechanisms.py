"""The public integer mechanisms: what each promises."""

import math

import numpy as np
import pytest

from tightrope.accounting.neighbors import Neighbors
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import TableMechanism
from tightrope.mechanisms.discrete.integer_tables import optimal_table, staircase_table
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.mechanisms.gaussian import discrete_gaussian
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.mechanisms.randomized_response import randomized_response
from tightrope.mechanisms.staircase import best_step, discrete_staircase
from tightrope.mechanisms.truncated_laplace import discrete_truncated_laplace
from tightrope.randomness.bits import InsecureSeeded

NOTHING = 1e-300
"""δ = 0 after rounding up."""

MECHANISMS = [
    discrete_laplace(scale=2.5),
    discrete_laplace(scale=40, sensitivity=3),
    discrete_gaussian(scale=4),
    discrete_staircase(epsilon=1, sensitivity=4),
    discrete_staircase(epsilon=0.5, sensitivity=3, gamma=1),
    discrete_truncated_laplace(epsilon=1, delta=1e-6, sensitivity=3),
    TableMechanism(optimal_table([(0, 0.3), (1, 1e-6)])),
    WidenedNoise(optimal_table([(1, 1e-6)]), 10),
]


@pytest.mark.parametrize("noise", MECHANISMS, ids=str)
def test_every_mechanism_keeps_the_contract(noise):
    draws = noise.sample(60_000, InsecureSeeded(1))
    assert draws.shape == (60_000,)
    assert abs(np.abs(draws).mean() / noise.mean_absolute_error - 1) < 0.03
    assert abs((draws.astype(float) ** 2).mean() / noise.mean_squared_error - 1) < 0.06
    assert np.abs(draws).max() <= noise.worst_error
    assert abs((np.abs(draws) <= noise.half_width(0.9)).mean() - 0.9) < 0.08
    assert noise.quantile(0.975) == -noise.quantile(0.025) or noise.quantile(0.975) == 1 - noise.quantile(0.025)
    assert 0 < noise.loss.total_variation() < 1


@pytest.mark.parametrize("noise", MECHANISMS, ids=str)
def test_release_adds_whole_numbers_only(noise):
    assert isinstance(noise.release(7), int)
    assert isinstance(noise.release(np.int32(7)), int)
    table = noise.release(np.arange(6).reshape(2, 3))
    assert table.shape == (2, 3)
    assert noise.release(np.zeros(0, dtype=np.int64)).shape == (0,)
    huge = noise.release(np.array([2**63 - 1, -(2**63)]))
    assert abs(int(huge[0]) - (2**63 - 1)) < 10**5 > abs(int(huge[1]) + 2**63)
    unsigned = noise.release(np.array([2**64 - 1], dtype=np.uint64))
    assert abs(int(unsigned[0]) - (2**64 - 1)) < 10**5


@pytest.mark.parametrize("noise", MECHANISMS, ids=str)
@pytest.mark.parametrize(
    "value", [1.0, "1", None, True, np.array([1.0]), [1, 2], np.array([True]), float("nan")], ids=repr
)
def test_release_refuses_what_has_no_exact_sum(noise, value):
    with pytest.raises(InputError, match="value"):
        noise.release(value)


def test_release_does_not_write_into_the_argument():
    values = np.arange(4)
    discrete_laplace(scale=3).release(values)
    assert values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("scale", "sensitivity"), [(1, 1), (2.5, 1), (10, 7), (0.1, 1)])
def test_laplace_has_pure_privacy(scale, sensitivity):
    loss = discrete_laplace(scale=scale, sensitivity=sensitivity).loss
    epsilon = sensitivity / scale
    assert loss.infinite_mass == 0.0
    assert loss.delta(epsilon) < NOTHING
    assert loss.delta(epsilon * (1 - 1e-9)) > NOTHING


def test_laplace_total_variation():
    loss = discrete_laplace(scale=2).loss
    assert math.isclose(loss.total_variation(), math.tanh(0.25), rel_tol=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.0, 100.0])
@pytest.mark.parametrize("sensitivity", [1, 2, 5, 30])
def test_staircase_has_pure_privacy_and_the_best_step(epsilon, sensitivity):
    noise = discrete_staircase(epsilon=epsilon, sensitivity=sensitivity)
    assert noise.loss.infinite_mass == 0.0
    assert noise.loss.delta(epsilon) < NOTHING
    steps = range(1, sensitivity + 1)
    costs = [staircase_table(epsilon, sensitivity, step).mean_absolute for step in steps]
    assert math.isclose(noise.mean_absolute_error, min(costs), rel_tol=1e-12)


def test_staircase_of_sensitivity_one_is_the_laplace():
    staircase, laplace = discrete_staircase(epsilon=0.5), discrete_laplace(scale=2)
    assert math.isclose(staircase.mean_squared_error, laplace.mean_squared_error, rel_tol=1e-12)


@pytest.mark.parametrize(("gamma", "step"), [(0, 1), (0.1, 1), (0.3, 3), (0.25, 3), (0.5, 5), (1, 10)])
def test_gamma_is_rounded_to_cells(gamma, step):
    assert discrete_staircase(epsilon=1, sensitivity=10, gamma=gamma).step == step


def test_best_step_tends_to_the_real_optimum():
    assert abs(best_step(1.0, 10_000) / 10_000 - 1 / (1 + math.exp(0.5))) < 1e-3


def test_gaussian_profile_is_the_known_one():
    scale, epsilon = 30.0, 0.1
    from scipy.stats import norm

    mu = 1 / scale
    known = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    assert math.isclose(discrete_gaussian(scale=scale).loss.delta(epsilon), known, rel_tol=2e-3)


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 2), (0.2, 5), (4.0, 1000), (30.0, 3), (500.0, 4)])
def test_randomized_response(epsilon, k):
    survey = randomized_response(epsilon=epsilon, k=k)
    assert survey.keep + (k - 1) * survey.other == 2**128
    assert survey.loss.neighbors is Neighbors.LOCAL
    assert survey.loss.delta(epsilon) < NOTHING
    e = math.exp(min(epsilon, 40))
    assert math.isclose(survey.mean_absolute_error, (k - 1) / (e + k - 1), rel_tol=1e-10)
    assert math.isclose(survey.loss.total_variation(), (e - 1) / (e + k - 1), rel_tol=1e-10)
    assert survey.worst_error == 1.0


def test_reports_are_categories():
    survey = randomized_response(epsilon=0.5, k=4)
    reports = survey.release(np.full(8000, 3), InsecureSeeded(2))
    shares = np.bincount(reports, minlength=4) / 8000
    assert len(shares) == 4
    assert abs(shares[3] - survey.keep / 2**128) < 0.02
    assert survey.release(2) in range(4)


def test_offsets_have_quantiles():
    survey = randomized_response(epsilon=math.log(3), k=3)  # 0.6, 0.2, 0.2
    assert [survey.quantile(p) for p in (0.1, 0.59, 0.61, 0.79, 0.81)] == [0, 0, 1, 1, 2]
    assert [survey.half_width(c) for c in (0.5, 0.7)] == [0, 1]


@pytest.mark.parametrize("value", [-1, 4, 1.0, "1", True, np.array([0, 4]), np.array([0.5])], ids=repr)
def test_categories_must_exist(value):
    with pytest.raises(InputError, match="value"):
        randomized_response(epsilon=1, k=4).release(value)


NONSENSE = [0, -1, float("nan"), float("inf"), -float("inf"), "1", None, True, 1j, [1]]


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
@pytest.mark.parametrize(
    ("law", "name", "rest"),
    [
        (discrete_laplace, "scale", {}),
        (discrete_laplace, "sensitivity", {"scale": 1}),
        (discrete_gaussian, "scale", {}),
        (discrete_gaussian, "sensitivity", {"scale": 1}),
        (discrete_staircase, "epsilon", {}),
        (discrete_staircase, "sensitivity", {"epsilon": 1}),
        (discrete_truncated_laplace, "epsilon", {"delta": 0.1}),
        (discrete_truncated_laplace, "delta", {"epsilon": 1}),
        (discrete_truncated_laplace, "sensitivity", {"epsilon": 1, "delta": 0.1}),
        (randomized_response, "epsilon", {}),
        (randomized_response, "k", {"epsilon": 1}),
    ],
)
def test_nonsense_arguments(law, name, rest, value):
    with pytest.raises(InputError, match=name):
        law(**{name: value}, **rest)


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan"), "1", True])
def test_nonsense_gammas(gamma):
    with pytest.raises(InputError, match="gamma"):
        discrete_staircase(epsilon=1, gamma=gamma)


@pytest.mark.parametrize(
    ("law", "arguments"),
    [
        (discrete_laplace, {"scale": 1e7}),
        (discrete_laplace, {"scale": 0.001}),
        (discrete_laplace, {"scale": 1, "sensitivity": 1.5}),
        (discrete_gaussian, {"scale": 1e10}),
        (discrete_gaussian, {"scale": 0.01}),
        (discrete_staircase, {"epsilon": 1e-9}),
        (discrete_staircase, {"epsilon": 1, "sensitivity": 10**9}),
        (discrete_truncated_laplace, {"epsilon": 1, "delta": 1e-40}),
        (discrete_truncated_laplace, {"epsilon": 1, "delta": 0.6}),
        (discrete_truncated_laplace, {"epsilon": 1e-9, "delta": 1e-9}),
        (discrete_truncated_laplace, {"epsilon": 1, "delta": 1e-6, "sensitivity": 10**9}),
        (randomized_response, {"epsilon": 1, "k": 1}),
        (randomized_response, {"epsilon": 1, "k": 2**40}),
    ],
)
def test_absurd_sizes_are_refused_with_a_remedy(law, arguments):
    with pytest.raises(InputError, match=";"):
        law(**arguments)
