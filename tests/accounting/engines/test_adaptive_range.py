"""Bounded range, composed adaptively: the bracket holds the worst strategy, and no strategy is above it."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from scipy.stats import binom

import tightrope as tr
from tests.oracle.range_pair import range_pair
from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.methods import adaptive_range
from tightrope.errors import PrecisionWarning

ROUNDING = 1e-12
Profile = Callable[[float], float]


def steps_of(*ranges: float) -> tr.PrivacyLoss:
    return sum(tr.bounded_range(epsilon=length).loss for length in ranges)


def pairs_of(*ranges: float) -> tr.PrivacyLoss:
    return sum(range_pair(epsilon=length).loss for length in ranges)


def no_steps(epsilon: float) -> float:
    return max(0.0, -math.expm1(epsilon))


def one_step(length: float, epsilon: float) -> float:
    """Dong, Durfee and Rogers: δ of the worst mechanism of this range."""
    if abs(epsilon) >= length:
        return no_steps(epsilon)
    return math.expm1((epsilon - length) / 2) ** 2 / -math.expm1(-length)


def after_offset(later: Profile, length: float, offset: float, epsilon: float) -> float:
    """δ of the response with losses t and t − e, and the later steps after either outcome."""
    p = math.expm1(length - offset) / math.expm1(length) * math.exp(offset)
    return p * later(epsilon - offset) + (1 - p) * later(epsilon - offset + length)


def best_offset(later: Profile, length: float, epsilon: float) -> float:
    """The largest δ over all offsets: a coarse search, then a fine one."""
    grid = np.linspace(0, length, 81)
    coarse = [after_offset(later, length, float(t), epsilon) for t in grid]
    at = int(np.argmax(coarse))
    low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, 80)])
    negated = lambda t: -after_offset(later, length, t, epsilon)  # noqa: E731
    fine = minimize_scalar(negated, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return max(coarse[at], -float(fine.fun))


def dense_program(length: float, count: int, points: int = 200) -> Profile:
    """The same program by splines and a search at every point: another method, accurate to about 1e−7."""
    later: Profile = lambda epsilon: one_step(length, epsilon)  # noqa: E731
    for done in range(2, count + 1):
        grid = np.linspace(0, done * length, points)
        spline = CubicSpline(grid, [best_offset(later, length, float(x)) for x in grid])

        def later(epsilon: float, spline: CubicSpline = spline, end: float = done * length) -> float:
            if epsilon >= end:
                return 0.0
            if epsilon < 0:
                return -math.expm1(epsilon) + math.exp(epsilon) * later_at(spline, end, -epsilon)
            return float(spline(epsilon))

    return later


def later_at(spline: CubicSpline, end: float, epsilon: float) -> float:
    return 0.0 if epsilon >= end else float(spline(epsilon))


def random_strategy(draw: random.Random, lengths: Sequence[float], epsilon: float, *, any_order: bool = False) -> float:
    """δ of one adaptive strategy: an offset (and a next step) drawn after each history, by enumeration."""
    if not lengths:
        return no_steps(epsilon)
    at = draw.randrange(len(lengths)) if any_order else 0
    rest = [*lengths[:at], *lengths[at + 1 :]]
    offset = lengths[at] * draw.choice([draw.random(), 0.5, 0.4, 0.6])
    return after_offset(lambda e: random_strategy(draw, rest, e, any_order=any_order), lengths[at], offset, epsilon)


def greedy_strategy(lengths: Sequence[float], epsilon: float) -> float:
    """Each offset as if it were the last: adaptive, and not optimal."""
    if len(lengths) == 1:
        return one_step(lengths[0], epsilon)
    grid = np.linspace(0, lengths[0], 9)
    best = max(grid, key=lambda t: after_offset(lambda e: one_step(sum(lengths[1:]), e), lengths[0], float(t), epsilon))
    return after_offset(lambda e: greedy_strategy(lengths[1:], e), lengths[0], float(best), epsilon)


def best_fixed_offset(length: float, count: int, epsilon: float) -> float:
    """Dong, Durfee and Rogers, Theorem 2: the worst composition with offsets fixed in advance, all the same."""

    def delta(offset: float) -> float:
        p = math.expm1(length - offset) / math.expm1(length) * math.exp(offset)
        near = np.arange(count + 1)
        losses = near * offset + (count - near) * (offset - length)
        return float(np.sum(binom.pmf(near, count, p) * np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0)))))

    return max(delta(float(offset)) for offset in np.linspace(0, length, 400))


@pytest.mark.parametrize(
    ("count", "length", "epsilon", "delta"),
    [
        (10, 0.1, 0.3, 2.311360e-3),
        (10, 1.0, 3.0, 6.783180e-2),
        (40, 0.2, 1.0, 2.532812e-2),
        (10, 0.1, 0.0, 6.501547e-2),
    ],
)
def test_known_values(count: int, length: float, epsilon: float, delta: float) -> None:
    loss = count * tr.bounded_range(epsilon=length).loss
    bounds = loss.delta_bounds(epsilon)
    assert loss.method == "dynamic program"
    assert bounds.lower == pytest.approx(delta, rel=3e-7)
    assert bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-7)
    assert loss.delta(epsilon) < 0.57 * (count * range_pair(epsilon=length).loss).delta(epsilon) or epsilon == 0


@pytest.mark.parametrize("epsilon", [-1.0, -0.3, 0.0, 0.4, 0.9, 1.0, 2.0])
def test_a_single_step_is_exact(epsilon: float) -> None:
    loss = tr.bounded_range(epsilon=1).loss
    assert loss.method == "closed form"
    assert loss.delta(epsilon) == pytest.approx(one_step(1.0, epsilon), rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("length", [1e-3, 0.1, 1.0, 6.0])
@pytest.mark.parametrize("share", [-0.5, 0.0, 0.2, 0.5, 0.8, 0.97])
def test_two_steps_against_a_search_over_offsets(length: float, share: float) -> None:
    epsilon = 2 * share * length
    truth = best_offset(lambda e: one_step(length, e), length, epsilon)
    lower, upper = (2 * tr.bounded_range(epsilon=length).loss).delta_bounds(epsilon)
    assert lower * (1 - ROUNDING) <= truth * (1 + 1e-10)
    assert truth <= upper * (1 + ROUNDING)
    assert upper - lower <= (1e-8 if share < 0.9 else 1e-6) * upper


@pytest.mark.parametrize(("count", "length"), [(3, 0.5), (4, 2.0), (6, 0.05)])
def test_more_steps_against_another_program(count: int, length: float) -> None:
    truth, loss = dense_program(length, count), count * tr.bounded_range(epsilon=length).loss
    for share in (0.0, 0.1, 0.3, 0.6):
        epsilon = share * count * length
        assert loss.delta(epsilon) == pytest.approx(truth(epsilon), rel=5e-6)


@pytest.mark.parametrize("lengths", [(0.3,) * 6, (2.0,) * 4, (1.0, 0.5, 0.5, 1.0), (0.7, 0.31, 0.11)])
def test_no_strategy_is_above(lengths: tuple[float, ...]) -> None:
    loss, draw = steps_of(*lengths), random.Random(41)
    for share in (0.0, 0.15, 0.4, 0.7):
        epsilon = share * sum(lengths)
        upper = loss.delta(epsilon) * (1 + ROUNDING)
        assert max(random_strategy(draw, lengths, epsilon) for _ in range(15)) <= upper
        assert max(random_strategy(draw, lengths, epsilon, any_order=True) for _ in range(15)) <= upper
        assert greedy_strategy(lengths, epsilon) <= upper
        assert greedy_strategy(lengths[::-1], epsilon) <= upper


@pytest.mark.parametrize(("count", "length"), [(2, 1.0), (10, 0.1), (30, 0.5), (200, 0.02)])
def test_fixed_offsets_are_below_and_pairs_above(count: int, length: float) -> None:
    loss, pairs = count * tr.bounded_range(epsilon=length).loss, count * range_pair(epsilon=length).loss
    for share in (0.0, 0.05, 0.2, 0.4):
        epsilon = share * count * length
        fixed, upper = best_fixed_offset(length, count, epsilon), loss.delta(epsilon)
        assert fixed <= upper * (1 + ROUNDING)
        assert upper <= pairs.delta(epsilon) * (1 + ROUNDING)


def test_adaptive_offsets_gain() -> None:
    """Near the middle a fixed offset is as good; away from it, one that depends on the past is better."""
    loss = 10 * tr.bounded_range(epsilon=1).loss
    assert loss.delta_bounds(3.0).lower > 1.01 * best_fixed_offset(1.0, 10, 3.0)


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.35), (2.0, 0.5), (0.2, 0.1), (1.0, 0.9)])
def test_two_ranges_in_the_worse_order(first: float, second: float) -> None:
    loss = steps_of(first, second)
    for share in (-0.2, 0.0, 0.2, 0.5, 0.8):
        epsilon = share * (first + second)
        orders = [
            best_offset(lambda e, last=last: one_step(last, e), start, epsilon)
            for start, last in ((first, second), (second, first))
        ]
        lower, upper = loss.delta_bounds(epsilon)
        assert lower * (1 - ROUNDING) <= max(orders) * (1 + 1e-9)
        assert max(orders) <= upper * (1 + ROUNDING)
        assert upper - lower <= 2e-7 * upper


def test_the_order_of_addition_is_irrelevant() -> None:
    a, b = 2 * tr.bounded_range(epsilon=0.3).loss, 3 * tr.bounded_range(epsilon=0.5).loss
    assert (a + b).delta(0.7) == (b + a).delta(0.7)


@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.3, 1.0, 1.9])
def test_a_response_and_adaptive_steps(epsilon: float) -> None:
    """The response comes first: the offsets may depend on it. Its δ is then an average over two outcomes."""
    size, length, count = 0.8, 0.4, 3
    later = (count * tr.bounded_range(epsilon=length).loss).delta_bounds
    chance = 1 / (1 + math.exp(-size))
    low, high = (chance * later(epsilon - size)[end] + (1 - chance) * later(epsilon + size)[end] for end in (0, 1))
    lower, upper = (count * tr.bounded_range(epsilon=length).loss + tr.approx_dp(size).loss).delta_bounds(epsilon)
    assert lower * (1 - ROUNDING) <= high
    assert low <= upper * (1 + ROUNDING)
    assert upper - lower <= 1e-3 * upper
    # Not below the response in the middle, or last.
    draw = random.Random(1)
    last: Profile = lambda e: chance * no_steps(e - size) + (1 - chance) * no_steps(e + size)  # noqa: E731

    def strategy(left: int, e: float) -> float:
        if left == 0:
            return last(e)
        return after_offset(lambda x: strategy(left - 1, x), length, length * draw.random(), e)

    assert max(strategy(count, epsilon) for _ in range(100)) <= upper * (1 + ROUNDING)


@pytest.mark.parametrize(
    "other",
    [
        tr.laplace(scale=4).loss,
        tr.gaussian(scale=3).loss,
        100 * tr.gaussian(scale=2).loss.poisson_sample(0.01),
        tr.approx_dp(0.1, delta=1e-6).loss,
        tr.discrete_laplace(scale=3).loss,
    ],
    ids=["laplace", "gaussian", "sampled", "triple", "integer"],
)
def test_other_mechanisms(other: tr.PrivacyLoss) -> None:
    """Between a single step, which is exact, and the pairs; and well below these."""
    one, pairs = tr.bounded_range(epsilon=0.2).loss, 5 * range_pair(epsilon=0.2).loss + other
    loss = 5 * one + other
    for epsilon in (0.0, 0.5, 1.0):
        lower, upper = loss.delta_bounds(epsilon)
        assert max((one + other).delta_bounds(epsilon).lower, (5 * one).delta_bounds(epsilon).lower) <= upper
        assert upper <= pairs.delta(epsilon) * (1 + ROUNDING)
        assert lower <= upper <= lower * (1 + 1e-3)
    assert loss.delta(1.0) < 0.95 * pairs.delta(1.0)


def test_epsilon_and_curves() -> None:
    loss = 10 * tr.bounded_range(epsilon=0.1).loss
    for delta in (1e-2, 1e-6, 1e-10):
        lower, upper = loss.epsilon_bounds(delta)
        assert lower <= upper <= lower * (1 + 1e-6)
        assert loss.delta(upper) <= delta
        assert loss.delta_bounds(lower).upper >= delta
    assert loss.total_variation() == loss.delta(0)
    assert loss.epsilon(0) == pytest.approx(1.0, rel=1e-15)
    for rate in (0.01, 0.1, 0.5):
        least, most = loss.tradeoff_bounds(rate)
        points = np.linspace(-1, 1, 81)
        chords = 1 - np.asarray(loss.delta(points)) - np.exp(points) * rate
        assert np.max(chords) <= most + 1e-12
        assert np.max(chords) == pytest.approx(least, rel=1e-3)


def test_calibration_ends_on_the_private_side() -> None:
    budget = tr.Budget(epsilon=1, delta="1e-2")
    steps = lambda length: 5 * tr.bounded_range(epsilon=length).loss  # noqa: E731
    found = tr.calibrate(steps, budget, increasing=True, tolerance=1e-4, largest=10)
    assert found.loss.delta(1.0) <= 1e-2
    assert steps(found.parameter * 1.001).delta(1.0) > 1e-2
    pairs = tr.calibrate(lambda length: 5 * range_pair(epsilon=length).loss, budget, increasing=True)
    assert found.parameter > 1.05 * pairs.parameter


def test_what_the_bounds_enclose() -> None:
    one = tr.bounded_range(epsilon=0.1).loss
    worst, pairs = TrueValueOf.GUARANTEES.value, TrueValueOf.PAIRS.value
    assert one.true_value_of == (10 * one).delta_bounds(0.3).true_value_of == worst
    assert (one + tr.gaussian(scale=3).loss).true_value_of == worst
    assert (4 * one + tr.gaussian(scale=3).loss).epsilon_bounds(1e-5).true_value_of == worst
    assert (2000 * one).delta_bounds(20).true_value_of == pairs
    assert (2 * one.poisson_sample(0.1)).true_value_of == pairs
    assert one.poisson_sample(0.1).true_value_of == worst
    assert (3 * tr.approx_dp(0.1).loss).total_variation_bounds().true_value_of == worst
    assert (3 * tr.laplace(scale=2).loss).true_value_of == TrueValueOf.MECHANISMS.value
    bounds = (2 * one).delta_bounds(0.1)
    lower, upper = bounds
    assert (lower, upper) == bounds == copy.deepcopy(bounds)
    assert copy.copy(bounds).true_value_of == copy.deepcopy(bounds).true_value_of == worst


def test_many_ranges_are_rounded_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = [0.1, 0.11, 0.3, 0.32, 0.5]
    exact = steps_of(*lengths).delta_bounds(0.5)
    monkeypatch.setattr(adaptive_range, "MAX_CHORDS", 40)
    steps = adaptive_range.RangeSteps(tuple(lengths), (1,) * 5)
    assert steps.round_lengths() == adaptive_range.RangeSteps((0.11, 0.32, 0.5), (2, 2, 1))
    with pytest.warns(PrecisionWarning):
        lower, upper = steps_of(*lengths).delta_bounds(0.5)
    assert lower <= exact.upper <= upper
    assert 0.99 * exact.lower < lower
    assert upper <= steps_of(0.11, 0.11, 0.32, 0.32, 0.5).delta(0.5) * (1 + ROUNDING)
    assert upper <= pairs_of(*lengths).delta(0.5)


def test_many_steps() -> None:
    """The program ends at a thousand steps; beyond that the pairs bound it."""
    loss, more = 1000 * tr.bounded_range(epsilon=0.01).loss, 1001 * tr.bounded_range(epsilon=0.01).loss
    assert loss.method == "dynamic program"
    assert more.method == "contour"
    assert best_fixed_offset(0.01, 1000, 0.3) <= loss.delta(0.3) < 0.7 * more.delta(0.3)


def test_a_coarse_lattice_is_a_bound_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brackets of all lattices hold each other's."""
    monkeypatch.setattr(adaptive_range, "GOAL", 1.0)
    steps = adaptive_range.RangeSteps((0.25, 1.0), (3, 2))
    lattices = adaptive_range.lattices_by_work(steps, math.inf)
    epsilons = np.array([0.0, 0.1, 0.9, 1.7, 2.6])
    ends = [adaptive_range.compose_ranges(steps, lattice).delta_bounds_at(epsilons) for lattice in lattices]
    assert len(ends) >= 3
    highest_lower = np.max([low for low, _ in ends], axis=0)
    assert all(np.all(highest_lower <= high * (1 + ROUNDING)) for _, high in ends)
    widths = [float(np.max(high / low)) for low, high in ends]
    assert widths == sorted(widths, reverse=True)


ranges = st.floats(1e-3, 5.0)


@settings(max_examples=15, deadline=None)
@given(length=ranges, count=st.integers(2, 6), share=st.floats(-0.9, 0.99), more=st.floats(1.0, 1.5))
def test_laws(length: float, count: int, share: float, more: float) -> None:
    epsilon = share * count * length
    loss = count * tr.bounded_range(epsilon=length).loss
    lower, upper = loss.delta_bounds(epsilon)
    assert max(0.0, -math.expm1(epsilon)) * (1 - ROUNDING) <= upper <= 1
    assert 0 <= lower <= upper
    longer = (count * tr.bounded_range(epsilon=more * length).loss).delta_bounds(epsilon)
    longest = ((count + 1) * tr.bounded_range(epsilon=length).loss).delta_bounds(epsilon)
    assert lower <= longer.upper
    assert lower <= longest.upper
    assert upper <= (count * range_pair(epsilon=length).loss).delta(epsilon) * (1 + 1e-9)
    draw = random.Random(count)
    assert random_strategy(draw, [length] * count, epsilon) <= upper * (1 + ROUNDING)
    if share > 0:
        mirrored = loss.delta_bounds(-epsilon)
        assert mirrored.upper == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * upper, rel=1e-12)


@settings(max_examples=10, deadline=None)
@given(lengths=st.lists(ranges, min_size=2, max_size=4), share=st.floats(0.0, 0.9))
def test_laws_of_mixed_ranges(lengths: list[float], share: float) -> None:
    epsilon = share * sum(lengths)
    lower, upper = steps_of(*lengths).delta_bounds(epsilon)
    draw = random.Random(len(lengths))
    assert max(random_strategy(draw, lengths, epsilon, any_order=True) for _ in range(20)) <= upper * (1 + ROUNDING)
    assert lower <= upper <= pairs_of(*lengths).delta(epsilon) * (1 + 1e-9)
    assert upper <= (len(lengths) * tr.bounded_range(epsilon=max(lengths)).loss).delta(epsilon) * (1 + 1e-9)
    assert lower * (1 - 1e-9) <= (len(lengths) * tr.bounded_range(epsilon=max(lengths)).loss).delta(epsilon)


@pytest.mark.parametrize("distance", [1e-17, 1e-12, 1e-3, 0.099, 0.1, 0.1001])
def test_near_the_largest_loss(distance: float) -> None:
    """In closed form, which agrees with the program next to it; without a warning."""
    steps = adaptive_range.RangeSteps((0.1, 0.5), (3, 2))
    epsilon = 1.3 - distance
    bounds = steps_of(0.1, 0.1, 0.1, 0.5, 0.5).delta_bounds(epsilon)
    exact = float(steps.exact_sum - Fraction(epsilon))
    near = -math.expm1(-exact / 6)
    value = near**6 / (math.expm1(-0.1) ** 3 * math.expm1(-0.5) ** 2)
    assert bounds.lower == pytest.approx(-value, rel=1e-3 if exact > 0.1 else 1e-12)
    assert bounds.lower <= bounds.upper <= bounds.lower * (1 + (1e-4 if exact > 0.1 else 1e-12))
    lattice = adaptive_range.lattices_by_work(steps, math.inf)[2]
    low, high = adaptive_range.compose_ranges(steps, lattice).delta_bounds_at(np.array([epsilon]))
    assert low[0] <= bounds.upper
    assert bounds.lower <= high[0]
