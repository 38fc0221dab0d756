"""Laws learned from samples: the bounds hold as often as they say, and learning privately is charged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope import discrete_laplace
from tightrope.accounting.neighbors import Neighbors
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import TableMechanism
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.randomness.bits import InsecureSeeded
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.learned_distributions import (
    LearnedLaw,
    approximate_knowledge,
    learn_laws,
    learn_laws_privately,
)

TRUE = {"a": np.array([0.5, 0.3, 0.15, 0.05]), "b": np.array([0.1, 0.2, 0.3, 0.4])}
LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))


def holds(learned: LearnedLaw, truth: np.ndarray) -> bool:
    inside = np.all((learned.lower <= truth) & (truth <= learned.upper))
    apart = np.abs(truth - learned.law).sum() / 2 <= learned.total_variation
    deltas = all(
        np.maximum(truth - math.exp(e) * learned.law, 0).sum() <= learned.max_divergence_deltas(e)[0]
        and np.maximum(learned.law - math.exp(e) * truth, 0).sum() <= learned.max_divergence_deltas(e)[1]
        for e in (0.0, 0.05, 0.2)
    )
    return bool(inside and apart and deltas)


@pytest.mark.parametrize("private", [False, True])
def test_all_bounds_hold_together_as_often_as_promised(private: bool) -> None:
    rng, failures, tries, noise = np.random.default_rng(31), 0, 400, discrete_laplace(scale=2)
    for _ in range(tries):
        counts = {group: rng.multinomial(500, law) for group, law in TRUE.items()}
        learned = learn_laws_privately(counts, noise, failure=0.2) if private else learn_laws(counts, failure=0.2)
        failures += not all(holds(learned.groups[group], TRUE[group]) for group in TRUE)
    assert failures <= 0.2 * tries + 4 * math.sqrt(0.16 * tries)


def test_bounds_are_not_vacuous_and_a_wrong_law_is_caught() -> None:
    counts = {group: np.round(law * 10_000).astype(int) for group, law in TRUE.items()}
    learned = learn_laws(counts)
    assert learned.groups["a"].total_variation < 0.03
    assert learned.one_draw(0.2).delta < 1e-3
    assert not holds(learned.groups["a"], TRUE["b"])


def test_the_weissman_bound_is_the_least_or_equalled() -> None:
    """√((d log 2 + log(S/β)) / (2n)), β = half of ``failure``, and what smoothing moves."""
    counts = {"a": np.full(200, 5), "b": np.full(200, 5)}
    weissman = math.sqrt((200 * math.log(2) + math.log(2 / 0.025)) / (2 * 1000))
    found = learn_laws(counts, failure=0.05, smoothing=1e-9).groups["a"].total_variation
    assert found == pytest.approx(weissman, rel=1e-6)


def test_what_smoothing_moves_is_counted() -> None:
    learned = learn_laws({"a": [1000, 0]}, smoothing=1000).groups["a"]
    assert learned.law[0] == pytest.approx(2 / 3)
    assert 1 / 3 < learned.total_variation < 0.4


def test_bounds_hold_for_every_noise_within_the_width() -> None:
    """Noise that is always ±20: the corners of what the counts may have been must be covered."""
    always = TableMechanism(NoiseTable(0, (0,) * 19 + (1 << 127,)))
    rng = np.random.default_rng(35)
    for _ in range(60):
        counts = {group: rng.multinomial(4000, law) for group, law in TRUE.items()}
        learned = learn_laws_privately(counts, always, failure=1e-6)
        assert all(holds(learned.groups[group], TRUE[group]) for group in TRUE)
        exact = learn_laws(counts, failure=1e-6 * 2 / 3)
        for group, part in learned.groups.items():
            assert np.all(part.lower <= exact.groups[group].lower)
            assert np.all(part.upper >= exact.groups[group].upper)


def test_one_draw_bounds_what_the_true_laws_show() -> None:
    rng = np.random.default_rng(33)
    counts = {group: rng.multinomial(2000, law) for group, law in TRUE.items()}
    learned = learn_laws(counts, failure=1e-6)
    mechanism = CouplingMechanism.fit(learned.laws_by_group, LINE)
    sides = [(("a", TRUE["a"]), ("b", TRUE["b"]))]
    for epsilon in (0.0, 0.05, 0.1, 0.3):
        bound = learned.one_draw(epsilon)
        assert distribution_privacy(mechanism, sides, "approximate_max", delta=bound.delta).epsilon <= bound.epsilon
        assert distribution_privacy(mechanism, sides, "total_variation").epsilon <= bound.total_variation


def test_learning_privately_is_charged_by_the_relation() -> None:
    counts, noise = {"a": [50, 10], "b": [20, 30]}, discrete_laplace(scale=4)
    once = learn_laws_privately(counts, noise, randomness=InsecureSeeded(1))
    twice = learn_laws_privately(counts, noise, neighbors=Neighbors.REPLACE_ONE, randomness=InsecureSeeded(1))
    assert once.loss is not None
    assert twice.loss is not None
    assert once.loss.delta(0.25) < 1e-12 < once.loss.delta(0.24)
    assert twice.loss.delta(0.5) < 1e-12 < twice.loss.delta(0.48)
    assert once.loss.neighbors is Neighbors.ADD_REMOVE
    assert twice.loss.neighbors is Neighbors.REPLACE_ONE
    assert learn_laws(counts).loss is None


def test_noise_is_really_added_and_widens_the_bounds() -> None:
    counts, noise = {"a": [500, 100], "b": [200, 300]}, discrete_laplace(scale=10)
    exact = learn_laws(counts)
    noisy = [learn_laws_privately(counts, noise) for _ in range(8)]
    assert (
        len({tuple(learned.laws_by_group["a"]) for learned in noisy}) >= 5
    )  # two may agree by chance, five apart hardly
    for learned in noisy:
        assert np.all(learned.groups["a"].upper - learned.groups["a"].lower > 0.05)
        assert learned.groups["a"].total_variation > exact.groups["a"].total_variation


def test_few_samples_under_much_noise_say_nothing_and_say_so() -> None:
    learned = learn_laws_privately({"a": [0, 1], "b": [0, 0]}, discrete_laplace(scale=100))
    assert all(part.total_variation <= 1 for part in learned.groups.values())
    assert np.all(learned.groups["b"].upper == 1)
    assert learned.one_draw(0.1).total_variation <= 1


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({}, "mapping from the name"),
        ({"a": [1, -1]}, "counts of 'a'"),
        ({"a": [0.5, 1.0]}, "counts of 'a'"),
        ({"a": [1, 2], "b": [1]}, "common support"),
        ({"a": [0, 0]}, "leave these groups out"),
        ({"a": []}, "counts of 'a'"),
    ],
)
def test_bad_counts_teach(counts: dict[str, list[float]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        learn_laws(counts)


def test_bad_settings_teach() -> None:
    with pytest.raises(InputError, match="failure"):
        learn_laws({"a": [1]}, failure=0)
    with pytest.raises(InputError, match="smoothing"):
        learn_laws({"a": [1]}, smoothing=math.nan)
    with pytest.raises(InputError, match="neighbors"):
        learn_laws_privately({"a": [1]}, discrete_laplace(scale=1), neighbors=Neighbors.LOCAL)
    with pytest.raises(InputError, match="epsilon"):
        learn_laws({"a": [1]}).one_draw(-1)


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.2, 5.0])
def test_delta_is_never_above_the_total_variation(epsilon: float) -> None:
    learned = learn_laws({"a": [500, 500], "b": [250, 750], "c": [3, 9]})
    drawn = learned.one_draw(epsilon)
    assert drawn.delta <= drawn.total_variation
    fitted = CouplingMechanism.fit({"a": [0.5, 0.5], "b": [0.25, 0.75]}, [[0, 1], [1, 0]], target=[0.4, 0.6])
    near = approximate_knowledge(fitted, {"a": [1.0, 0.0], "b": [0.25, 0.75]})
    assert near.delta <= near.total_variation
