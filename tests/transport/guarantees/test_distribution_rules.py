"""KM Propositions 3–10 on random maps: what the rules promise is what the definitions give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.divergences import WEAKER_DIVERGENCES, DistributionGuarantee

RNG = np.random.default_rng(21)
N = 3
FIRST = RNG.dirichlet(np.ones(4), N)
SECOND = RNG.dirichlet(np.ones(2), (4, N))
"""One map for each first output, shape [4, N, 2]."""
POINTS = [(np.eye(N)[x], np.eye(N)[y]) for x in range(N) for y in range(x)]
POINTS_OF_TWO = [(np.array([1.0, 0.0]), np.array([0.0, 1.0]))]
ADDITIVE = ["kl", "reverse_kl", "total_variation", "hellinger", "max"]
LAWS = [tuple(RNG.dirichlet(np.ones(N), 2)) for _ in range(30)]


def least(channel: np.ndarray, name: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> float:
    return distribution_privacy(channel, pairs, name).epsilon


def shared() -> np.ndarray:
    """A₁ ⊙ A₀ with both outputs seen, shape [N, 8]."""
    return np.einsum("xy,yxz->xyz", FIRST, SECOND).reshape(N, -1)


def fresh(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Law of both outputs of A₁ • A₀ for independent inputs of these laws, shape [8]."""
    return np.einsum("y,yz->yz", first @ FIRST, np.einsum("x,yxz->yz", second, SECOND)).ravel()


@pytest.mark.parametrize("name", ADDITIVE)
def test_shared_input_adds_up_from_points(name: str) -> None:
    """Props. 3, 4."""
    one = DistributionGuarantee.from_points(least(FIRST, name, POINTS), name)
    two = DistributionGuarantee.from_points(max(least(s, name, POINTS) for s in SECOND), name)
    both = one.with_same_input(two)
    assert least(shared(), name, POINTS) <= both.epsilon
    assert least(shared(), name, LAWS) <= both.epsilon


def test_shared_input_does_not_add_up_between_laws() -> None:
    """The coin of theory §6: no single output tells the groups apart, two do – so the rule asks for points."""
    coin = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    groups = (np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.0, 0.5]))
    twice = np.einsum("xy,xz->xyz", coin, coin).reshape(3, 4)
    assert least(coin, "kl", [groups]) == 0 < least(twice, "total_variation", [groups])
    laws_only = DistributionGuarantee(0.0, "kl")
    with pytest.raises(InputError, match="between points"):
        laws_only.with_same_input(laws_only)


@pytest.mark.parametrize("name", ADDITIVE)
def test_independent_inputs_add_up_between_laws(name: str) -> None:
    """Props. 5, 6."""
    for one, two in zip(LAWS, reversed(LAWS), strict=True):
        first, second = least(FIRST, name, [one]), max(least(s, name, [two]) for s in SECOND)
        both = DistributionGuarantee(first, name).with_fresh_input(DistributionGuarantee(second, name))
        outputs = np.stack([fresh(one[0], two[0]), fresh(one[1], two[1])])
        assert least(outputs, name, [(np.array([1.0, 0.0]), np.array([0.0, 1.0]))]) <= both.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", ["kl", "reverse_kl", "total_variation", "chi_squared", "hellinger", "max"])
def test_processing_of_outputs_loses_nothing(name: str) -> None:
    """Prop. 7."""
    given = DistributionGuarantee(least(FIRST, name, LAWS), name)
    for _ in range(10):
        after = RNG.dirichlet(np.full(3, 0.3), 4)
        assert least(FIRST @ after, name, LAWS) <= given.post_process().epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", ["total_variation", "max"])
def test_chains_of_laws_add_up_where_there_is_a_triangle(name: str) -> None:
    """Prop. 8 for a relation."""
    chain = RNG.dirichlet(np.ones(N), 4)
    steps = [(chain[i], chain[i + 1]) for i in range(3)]
    given = DistributionGuarantee(least(FIRST, name, steps), name).pre_process(3)
    assert least(FIRST, name, [(chain[0], chain[3])]) <= given.epsilon


def test_chains_do_not_add_up_for_kl() -> None:
    """Prop. 8 as printed fails for KL: three equal steps have far more than three times the divergence of one."""
    line = np.array([[0.5 + 0.1 * k, 0.5 - 0.1 * k] for k in range(4)])
    steps = [(np.eye(4)[k], np.eye(4)[k + 1]) for k in range(3)]
    assert least(line, "kl", [(np.eye(4)[0], np.eye(4)[3])]) > 1.5 * 3 * least(line, "kl", steps) / 2
    first = least(line, "kl", [steps[0]])
    assert least(line, "kl", [(np.eye(4)[0], np.eye(4)[2])]) > 2 * first
    with pytest.raises(InputError, match="for a chain"):
        DistributionGuarantee(0.1, "kl").pre_process(2)
    assert DistributionGuarantee(0.1, "kl").pre_process(1).epsilon == 0.1
    assert DistributionGuarantee(0.1, "kl", "W1").pre_process(2).epsilon == 0.2


def test_distances_weaken_one_way() -> None:
    """Prop. 9."""
    assert DistributionGuarantee(0.5, "kl", "W1").by_worst_distance().metric == "Winf"
    with pytest.raises(InputError, match="metric=None"):
        DistributionGuarantee(0.5, "kl").by_worst_distance()


@pytest.mark.parametrize(("larger", "smaller"), [(a, b) for a, under in WEAKER_DIVERGENCES.items() for b in under])
def test_divergences_are_ordered(larger: str, smaller: str) -> None:
    """Prop. 10, both ways, for laws near and far."""
    for pair in LAWS:
        channel = RNG.dirichlet(np.full(4, 0.5), N) * 0.999 + 0.00025
        assert least(channel, smaller, [pair]) <= least(channel, larger, [pair])
    assert DistributionGuarantee(0.5, larger).weaken_to(smaller).epsilon == 0.5


def test_no_divergence_is_weakened_to_a_larger_one() -> None:
    for larger, smaller in [("kl", "max"), ("total_variation", "hellinger")]:
        with pytest.raises(InputError, match=f"never larger than '{larger}'"):
            DistributionGuarantee(0.5, larger).weaken_to(smaller)


def test_from_points_takes_the_distance_that_convexity_allows() -> None:
    assert DistributionGuarantee.from_points(1, "max", metric=True).metric == "Winf"
    assert DistributionGuarantee.from_points(1, "chi_squared", metric=True).metric == "W1"
    assert DistributionGuarantee.from_points(1, "chi_squared").metric is None


def test_bad_guarantees_teach() -> None:
    one = DistributionGuarantee.from_points(1, "kl")
    squares = DistributionGuarantee(1, "chi_squared")
    calls = (
        lambda: DistributionGuarantee(math.nan, "kl"),
        lambda: DistributionGuarantee(1, "renyi"),
        lambda: DistributionGuarantee(1, "kl", "W2"),  # type: ignore[arg-type]
        lambda: one.with_same_input(DistributionGuarantee.from_points(1, "max")),
        lambda: squares.with_fresh_input(squares),
    )
    for bad in calls:
        with pytest.raises(InputError):
            bad()


def test_the_sum_of_total_variations_is_nearly_reached() -> None:
    """Each map speaks one time of ten thousand, and then tells all."""
    tell = np.array([[0.9999, 0.0001, 0.0], [0.9999, 0.0, 0.0001]])
    both = np.einsum("xy,xz->xyz", tell, tell).reshape(2, 9)
    one = DistributionGuarantee.from_points(least(tell, "total_variation", POINTS_OF_TWO), "total_variation")
    found = least(both, "total_variation", POINTS_OF_TWO)
    assert 0.9999 * one.with_same_input(one).epsilon <= found <= one.with_same_input(one).epsilon


def test_chi_squared_does_not_add_up() -> None:
    bit = DistributionGuarantee.from_points(1.0, "chi_squared")
    for way in (bit.with_same_input, bit.with_fresh_input):
        with pytest.raises(InputError, match="hellinger"):
            way(bit)
