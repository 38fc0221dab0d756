"""A channel as a matrix: numbers against definitions, composition, erasure, bad input."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from tests.channels.random_channels import channel, law
from tightrope.accounting.neighbors import Neighbors
from tightrope.channels import Channel
from tightrope.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)
EPSILONS = [-3.0, -0.2, 0.0, 0.1, 1.0, 4.0]


def drawn(seed: int) -> tuple[Channel, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return channel(rng), rng


def slow_profile(matrix: np.ndarray, epsilon: float) -> float:
    pairs = permutations(matrix, 2)
    return max(math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in zip(a, b, strict=True)) for a, b in pairs)


def slow_contraction(matrix: np.ndarray) -> float:
    """Golden-section search of LC_β for each pair, in its subtractive form."""
    best = 0.0
    for a, b in permutations(matrix, 2):
        some = (a > 0) & (b > 0)
        p, q = a[some], b[some]
        low, high = 0.0, 1.0
        for _ in range(120):
            first, second = low + 0.382 * (high - low), low + 0.618 * (high - low)
            values = [1 - np.sum(p * q / (beta * p + (1 - beta) * q)) for beta in (first, second)]
            low, high = (first, high) if values[0] < values[1] else (low, second)
        best = max(best, *values)
    return best


@given(SEEDS)
def test_profile_epsilon_and_contraction_are_their_definitions(seed: int) -> None:
    made, _ = drawn(seed)
    assert made.profile(EPSILONS) == pytest.approx([slow_profile(made.matrix, e) for e in EPSILONS], abs=1e-14)
    assert made.kl_contraction == pytest.approx(slow_contraction(made.matrix), abs=1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.log(a / b)[a > 0] for a, b in permutations(made.matrix, 2)]
    assert made.epsilon == pytest.approx(max(0.0, *(ratio.max() for ratio in ratios)), rel=1e-14)


@given(SEEDS)
def test_the_loss_dominates_every_pair_and_is_no_larger_than_their_maximum(seed: int) -> None:
    made, rng = drawn(seed)
    loss = made.loss
    assert loss.neighbors is Neighbors.LOCAL
    asked = np.concatenate([EPSILONS, rng.uniform(0, min(made.epsilon, 20.0), 20)])
    exact = np.maximum(
        np.array([slow_profile(made.matrix, e) for e in asked.tolist()]), -np.expm1(np.minimum(asked, 0))
    )
    told = loss.delta(asked)
    rounding = 1e-15  # of the reference itself, a sum of doubles up to 1
    assert np.all(told >= exact - rounding)
    assert told == pytest.approx(exact, abs=1e-13)


@given(SEEDS)
def test_composed_loss_dominates_the_composed_channel(seed: int) -> None:
    made, rng = drawn(seed)
    twice, loss = made.product_with(made), 2 * made.loss
    for epsilon in (0.0, 0.3, float(rng.uniform(0, 4))):
        assert loss.delta(epsilon) >= float(twice.profile(epsilon)) - 1e-15


@given(SEEDS)
def test_guarantees_hold_and_are_tight(seed: int) -> None:
    made, rng = drawn(seed)
    for delta in (0.0, 1e-6, float(rng.uniform(0, made.total_variation))):
        told = made.guarantee(delta)
        if told.epsilon == math.inf:
            assert made.epsilon == math.inf
            assert delta < float(made.profile(600.0)) * (1 + 1e-12)
            continue
        assert slow_profile(made.matrix, told.epsilon) <= delta + 1e-16
        assert told.total_variation >= min(made.total_variation, told.largest_total_variation) - 1e-16
        if told.epsilon > 1e-9:
            assert float(made.profile(told.epsilon * (1 - 1e-9))) > delta - 1e-13


def test_more_delta_than_total_variation_needs_no_epsilon() -> None:
    told = Channel([[0.75, 0.25], [0.25, 0.75]]).guarantee(0.6)
    assert told.epsilon == 0
    assert told.delta == told.total_variation == pytest.approx(0.5)


@given(SEEDS)
def test_composition_is_processing(seed: int) -> None:
    first, rng = drawn(seed)
    second = Channel(rng.dirichlet(np.ones(4), first.output_count))
    both = first @ second
    assert both.matrix == pytest.approx(first.matrix @ second.matrix, abs=1e-15)
    assert both.kl_contraction <= first.kl_contraction * second.kl_contraction * (1 + 1e-11) + 1e-15
    assert both.total_variation <= first.total_variation * second.total_variation * (1 + 1e-12) + 1e-15
    for gamma in (1.0, 1.5, 4.0):
        assert both.contraction(gamma) <= min(first.contraction(gamma), second.contraction(gamma)) + 1e-15


@given(SEEDS)
def test_every_divergence_contracts_by_theorem_3(seed: int) -> None:
    made, rng = drawn(seed)
    p0, p1 = law(rng, made.input_count), law(rng, made.input_count)
    for gamma in (1.0, 1.3, 3.0):
        before = float(np.maximum(p0 - gamma * p1, 0).sum())
        after = float(np.maximum(made.output_distribution(p0) - gamma * made.output_distribution(p1), 0).sum())
        assert after <= made.contraction(gamma) * before * (1 + 1e-12) + 1e-15
        # Equation 28 of AAC.
        assert 1 - gamma * (1 - made.total_variation) <= made.contraction(gamma) * (1 + 1e-12) + 1e-15


@given(SEEDS, st.sampled_from([0.0, 0.25, 1.0]))
def test_erasure_scales_everything(seed: int, alpha: float) -> None:
    made, rng = drawn(seed)
    kept = made.erase(alpha)
    p0, p1 = law(rng, made.input_count), law(rng, made.input_count)
    assert kept.output_count == made.output_count + 1
    assert kept.kl_contraction == pytest.approx((1 - alpha) * made.kl_contraction, abs=1e-14)
    for name in ("total_variation", "hellinger"):
        assert kept.output_divergence(name, p0, p1) == pytest.approx(
            (1 - alpha) * made.output_divergence(name, p0, p1), abs=1e-14
        )
    assert kept.mutual_information(p0) == pytest.approx((1 - alpha) * made.mutual_information(p0), abs=1e-13)
    assert kept.epsilon == (0.0 if alpha == 1 else pytest.approx(made.epsilon, rel=1e-12))


def test_products() -> None:
    rng = np.random.default_rng(5)
    first, second = Channel(rng.dirichlet(np.ones(3), 2)), Channel(rng.dirichlet(np.ones(2), 4))
    both = first.product_with(second)
    assert (both.input_count, both.output_count) == (8, 6)
    assert both.matrix[1 * 4 + 3, 2 * 2 + 1] == pytest.approx(first.matrix[1, 2] * second.matrix[3, 1])
    assert both.epsilon == pytest.approx(first.epsilon + second.epsilon, rel=1e-12)
    with pytest.raises(InputError, match="more than 67,108,864"):
        Channel(np.eye(100)).product_with(Channel(np.eye(100)))
    with pytest.raises(InputError, match="other"):
        first.product_with([[1.0]])  # type: ignore[arg-type]


def test_a_zero_column_is_kept_and_counts_for_nothing() -> None:
    plain, padded = Channel([[0.7, 0.3], [0.4, 0.6]]), Channel([[0.7, 0, 0.3], [0.4, 0, 0.6]])
    assert padded.output_count == 3
    assert padded.epsilon == plain.epsilon
    assert padded.kl_contraction == plain.kl_contraction
    assert padded.guarantee(0.1) == plain.guarantee(0.1)
    assert padded.output_divergence("kl", [1, 0], [0, 1]) == plain.output_divergence("kl", [1, 0], [0, 1])
    assert padded.channel_capacity() == pytest.approx(plain.channel_capacity(), rel=1e-9)


def test_channels_that_say_nothing_or_everything() -> None:
    silent, loud, single = Channel([[0.3, 0.7]] * 3), Channel(np.eye(3)), Channel([[0.2, 0.8]])
    for made in (silent, single):
        assert (made.epsilon, made.total_variation, made.kl_contraction) == (0, 0, 0)
        assert made.loss.delta(0.0) <= 1e-14
        assert made.channel_capacity().upper <= 1e-13
    assert (loud.epsilon, loud.total_variation, loud.kl_contraction) == (math.inf, 1, 1)
    assert loud.guarantee(0.5).epsilon == math.inf
    assert loud.loss.delta(3.0) == 1
    assert loud.channel_capacity() == pytest.approx((math.log(3),) * 2, rel=1e-9)


def test_sums_within_1e_9_are_renormalized() -> None:
    made = Channel([[0.5, 0.5 + 5e-10], [1 / 3, 2 / 3]])
    assert np.all(np.abs(made.matrix.sum(axis=1) - 1) <= 3e-16)
    assert not made.matrix.flags.writeable


def test_the_caller_s_array_is_left_alone() -> None:
    mine = np.array([[0.5, 0.5 + 5e-10], [0.25, 0.75]])
    kept = mine.copy()
    Channel(mine)
    assert np.array_equal(mine, kept)
    mine[0, 0] = 9.0


@pytest.mark.parametrize(
    ("matrix", "told"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], r"sum of matrix\[0\].*1.1"),
        ([[0.5, 0.5], [0.0, 0.0]], r"sum of matrix\[1\].*0.0"),
        ([[0.5, 0.5 + 1e-8]], "1 within 1e-9"),
        ([[1.5, -0.5]], r"matrix\[0, 1\]"),
        ([[math.nan, 1.0]], "NaN"),
        ([[math.inf, 0.0]], "probability"),
        ([], "at least 1"),
        ([[]], "at least 1"),
        ([0.5, 0.5], "one row an input"),
        ([[[1.0]]], "one row an input"),
        ([[0.5, 0.5], [1.0]], "matrix of probabilities"),
        ("half", "matrix of probabilities"),
        (None, "probability|one row"),
        ([[1j, 1]], "matrix of probabilities"),
    ],
)
def test_bad_matrices_are_explained(matrix: object, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Channel(matrix)  # type: ignore[arg-type]


def test_bad_questions_are_explained() -> None:
    made = Channel([[0.75, 0.25], [0.25, 0.75]])
    for wrong in (math.nan, math.inf, "1", None):
        with pytest.raises(InputError, match="epsilon"):
            made.profile(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="gamma"):
        made.contraction(-1)
    for wrong_delta in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="delta"):
            made.guarantee(wrong_delta)
    with pytest.raises(InputError, match="one probability for each of 2"):
        made.output_divergence("kl", [1, 0, 0], [0, 1])
    with pytest.raises(InputError, match="kl, reverse_kl"):
        made.output_divergence("renyi", [1, 0], [0, 1])
    with pytest.raises(InputError, match="sum of prior"):
        made.mutual_information([0.5, 0.6])
    with pytest.raises(InputError, match="alpha"):
        made.erase(1.5)
    with pytest.raises(InputError, match="outputs of the first"):
        made @ Channel(np.eye(3))
    with pytest.raises(TypeError):
        made @ np.eye(2)  # type: ignore[operator]


def test_delta_one_is_answered() -> None:
    assert Channel(np.eye(2)).guarantee(1.0).epsilon == 0


@pytest.mark.parametrize("concentration", [0.05, 1.0, 20.0])
def test_two_hundred_rows_take_seconds(concentration: float) -> None:
    """Processor time; the contraction coefficient against a search of its best pairs."""
    made = Channel(np.random.default_rng(1).dirichlet(np.full(200, concentration), 200))
    start = time.process_time()
    kappa, told = made.kl_contraction, made.guarantee(0.01)
    assert time.process_time() - start < 5
    some = Channel(made.matrix[:20])
    assert some.kl_contraction == pytest.approx(slow_contraction(some.matrix), abs=1e-12)
    assert some.kl_contraction <= kappa
    assert told.epsilon >= some.guarantee(0.01).epsilon


def test_tiny_differences_lose_no_digits() -> None:
    gap = 1e-9
    made = Channel([[0.5 + gap, 0.5 - gap], [0.5 - gap, 0.5 + gap]])
    assert made.kl_contraction == pytest.approx(4 * gap * gap, rel=1e-6)
    assert made.output_divergence("kl", [1, 0], [0, 1]) == pytest.approx(8 * gap * gap, rel=1e-6)


def test_nearly_equal_tiny_entries_have_an_exact_ratio() -> None:
    made = Channel([[1e-300, 1.0], [1.0001e-300, 1.0]])
    assert made.epsilon == pytest.approx(math.log(1.0001), rel=1e-12)


def test_extreme_ratios() -> None:
    made = Channel([[1e-300, 1.0], [1.0, 1e-300]])
    assert made.epsilon == pytest.approx(690.7755, abs=1e-3)
    assert made.profile([600.0, 709.0]) == pytest.approx([1.0, 0.0], abs=1e-12)
    assert made.guarantee(0.5).epsilon == pytest.approx(690.7755, abs=1)
    assert made.loss.delta(1.0) == pytest.approx(1.0)
    assert Channel([[5e-324, 1.0], [1.0, 0.0]]).kl_contraction == pytest.approx(1.0)


def test_guarantees_hold_of_the_exact_rows() -> None:
    """Rows as fractions that sum to one exactly: also where they hardly differ, or δ is 0 or 1."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        rows = rng.dirichlet(np.full(5, rng.choice([0.3, 1.0, 30.0, 1e6])), 3)
        made = Channel(rows)
        exact = [[Fraction(p) / sum(map(Fraction, row)) for p in row] for row in made.matrix.tolist()]
        for delta in (0.0, 1e-6, 0.1):
            found = made.guarantee(delta)
            with mp.workdps(40):
                gamma = Fraction(int(mp.floor(mp.exp(found.epsilon) * 2**120)), 2**120)
            worst = max(sum(max(p - gamma * q, 0) for p, q in zip(a, b, strict=True)) for a in exact for b in exact)
            assert worst <= Fraction(found.delta)
            tv = max(sum(max(p - q, 0) for p, q in zip(a, b, strict=True)) for a in exact for b in exact)
            assert tv <= Fraction(found.total_variation)


def test_a_delta_of_one_needs_no_epsilon() -> None:
    for rows in ([[1.0, 0.0], [0.0, 1.0]], [[0.3, 0.7, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9], [0.2, 0.8, 0.0, 0.0]]):
        assert Channel(rows).guarantee(1.0).epsilon == 0
