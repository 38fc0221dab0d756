"""A training run as data."""

from __future__ import annotations

import math

import pytest

import tightrope as tr
from tightrope.documents import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.noise.calibrate import DpSgd, Sampling, least_noise_multiplier, steps_in_epochs

RUN = {"examples": 60_000, "batch": 256, "noise": 1.3, "steps": 3515}


def test_poisson_batches_are_sampled_gaussians_of_sensitivity_one() -> None:
    run = DpSgd(**RUN)
    expected = tr.gaussian(scale=1.3).loss.poisson_sample(256 / 60_000)
    assert (run.loss.remove.laws, run.loss.add.laws) == (expected.remove.laws, expected.add.laws)
    assert run.loss.remove.counts == (3515,)
    assert run.loss.epsilon(1e-5) == pytest.approx(0.86440991689, rel=1e-10)


def test_replacing_an_example_moves_the_sum_by_twice_the_norm() -> None:
    """With the whole data in every batch nothing but the sensitivity differs: μ = 2/σ against 1/σ."""
    whole = {"examples": 10, "batch": 10, "noise": 4.0, "steps": 1}
    replaced, removed = DpSgd(**whole, sampling=Sampling.SUBSET).loss, DpSgd(**whole).loss
    assert replaced.total_variation() == pytest.approx(math.erf(2 / 4 / 2 / math.sqrt(2)), rel=1e-9)
    assert removed.total_variation() == pytest.approx(math.erf(1 / 4 / 2 / math.sqrt(2)), rel=1e-9)
    assert (replaced.neighbors.value, removed.neighbors.value) == ("replace-one", "add-remove")


def test_a_subset_is_one_of_the_named_size() -> None:
    """GI Prop. 1: a step's total variation is p times that of the whole."""
    step = DpSgd(examples=1000, batch=10, noise=1.0, steps=5, sampling="subset").step_loss
    assert step.total_variation() == pytest.approx(0.01 * math.erf(1 / math.sqrt(2)), rel=1e-9)


def test_losses_of_different_samplings_do_not_add_up() -> None:
    with pytest.raises(InputError, match="neighbors"):
        DpSgd(**RUN).loss + DpSgd(**RUN, sampling=Sampling.SUBSET).loss


@pytest.mark.parametrize(
    ("epochs", "examples", "batch", "steps"),
    [(15, 60_000, 256, 3515), ("0.29", 100, 1, 29), (1, 10, 3, 3), ("0.01", 100, 100, 1), (2.5, 4, 2, 5)],
)
def test_steps_are_whole_batches_of_exact_decimals(epochs, examples, batch, steps) -> None:
    assert steps_in_epochs(epochs, examples=examples, batch=batch) == steps


@pytest.mark.parametrize("epochs", [0, -1, math.nan, math.inf, "many", 1e10])
def test_epochs_that_are_none(epochs) -> None:
    with pytest.raises(InputError, match="epochs"):
        steps_in_epochs(epochs, examples=10, batch=1)


def test_the_least_noise_is_private_and_no_larger_than_needed() -> None:
    sizes = {"examples": 60_000, "batch": 256, "steps": 3515}
    run = least_noise_multiplier(Budget(epsilon=1, delta="1e-5"), **sizes)
    assert run.loss.delta(1.0) <= 1e-5
    assert DpSgd(**sizes, noise=run.noise * (1 - 1e-8)).loss.delta(1.0) > 1e-5


def test_noise_that_no_multiplier_gives() -> None:
    with pytest.raises(InsufficientBudgetError):
        least_noise_multiplier(Budget(epsilon=1, delta=0), examples=10, batch=10, steps=1)


@pytest.mark.parametrize(
    "wrong",
    [{"examples": 0}, {"examples": 1.5}, {"batch": 0}, {"batch": 60_001}, {"noise": 0}, {"noise": math.nan},
     {"noise": -1}, {"noise": "1"}, {"steps": 0}, {"steps": 2.5}, {"sampling": "shuffle"}, {"sampling": None}],
)  # fmt: skip
def test_nonsense(wrong) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        DpSgd(**{**RUN, **wrong})
