"""Composition: commutative, associative, never lowers δ; post-processing never raises it; sampling never hurts."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.laws.losses import EPSILONS, GAUSSIANS, LAPLACES, SINGLE, STAIRCASES, pairs, point_lists, triples

FEW = settings(max_examples=25)
LEEWAY = 1e-12


def overlap(first: tr.PrivacyLoss, second: tr.PrivacyLoss, epsilon: float) -> None:
    """The two brackets hold one truth."""
    a, b = first.delta_bounds(epsilon), second.delta_bounds(epsilon)
    assert max(a.lower, b.lower) <= min(a.upper, b.upper)


def at_most(first: tr.PrivacyLoss, second: tr.PrivacyLoss, epsilon: float) -> None:
    """No contradiction to δ_first(ε) ≤ δ_second(ε); inputs are rounded floats."""
    low, high = first.delta_bounds(epsilon).lower, second.delta_bounds(epsilon).upper
    assert low <= high * (1 + LEEWAY) + 1e-15, (first.method, second.method)


@FEW
@given(SINGLE, SINGLE, EPSILONS)
def test_commutative(first: tr.PrivacyLoss, second: tr.PrivacyLoss, epsilon: float) -> None:
    overlap(first + second, second + first, epsilon)


@FEW
@given(GAUSSIANS, STAIRCASES, LAPLACES, EPSILONS)
def test_associative(a: tr.PrivacyLoss, b: tr.PrivacyLoss, c: tr.PrivacyLoss, epsilon: float) -> None:
    overlap((a + b) + c, a + (b + c), epsilon)


@given(st.one_of(triples(), GAUSSIANS), st.integers(1, 12), st.integers(0, 12), EPSILONS)
def test_copies_add_up(step: tr.PrivacyLoss, first: int, second: int, epsilon: float) -> None:
    overlap(first * step + second * step, (first + second) * step, epsilon)
    overlap(first * (second * step), (first * second) * step, epsilon)


@given(st.lists(triples(), min_size=1, max_size=4), EPSILONS)
def test_sum_starts_from_nothing(steps: list[tr.PrivacyLoss], epsilon: float) -> None:
    whole = sum(steps)
    nothing = 0 * steps[0]
    overlap(nothing + whole, whole, epsilon)
    assert nothing.delta(epsilon) <= max(0.0, -math.expm1(epsilon)) * (1 + 1e-12) + 1e-300


@FEW
@given(SINGLE, SINGLE, EPSILONS)
def test_never_lowers_delta(first: tr.PrivacyLoss, second: tr.PrivacyLoss, epsilon: float) -> None:
    at_most(first, first + second, epsilon)


@FEW
@given(triples(), triples())
def test_at_most_the_sum_of_epsilons_and_deltas(first: tr.PrivacyLoss, second: tr.PrivacyLoss) -> None:
    """Basic composition is an upper bound."""
    tops = [loss.remove.largest_loss for loss in (first, second)]
    whole = first + second
    assert whole.delta_bounds(sum(tops)).lower <= first.infinite_mass + second.infinite_mass + 1e-15


@given(pairs(), st.data(), EPSILONS)
def test_merging_outcomes_never_raises_delta(
    both: tuple[list[float], list[float]], data: st.DataObject, epsilon: float
) -> None:
    """Post-processing: a deterministic map of the outcomes."""
    p, q = both
    places = data.draw(st.lists(st.integers(0, 2), min_size=len(p), max_size=len(p)))
    merged = [[math.fsum(m for m, at in zip(law, places, strict=True) if at == i) for i in range(3)] for law in (p, q)]
    at_most(tr.from_pair(*merged).loss, tr.from_pair(p, q).loss, epsilon)


@given(pairs(), st.floats(0, 1), EPSILONS)
def test_a_random_answer_instead_never_raises_delta(
    both: tuple[list[float], list[float]], share: float, epsilon: float
) -> None:
    """Post-processing: with probability ``share`` the outcome is replaced by a fixed one."""
    mixed = [[(1 - share) * m + share * (i == 0) for i, m in enumerate(law)] for law in both]
    at_most(tr.from_pair(*mixed).loss, tr.from_pair(*both).loss, epsilon)


@given(point_lists(), EPSILONS)
def test_from_points_passes_through_no_more_than_its_points(points: list[tuple[float, float]], epsilon: float) -> None:
    loss = tr.from_points(points).loss
    for at, delta in points:
        assert loss.delta_bounds(at).lower <= delta * (1 + 1e-12) + 1e-15
        overlap_with_weaker = tr.approx_dp(at, delta=delta).loss
        at_most(loss, overlap_with_weaker, epsilon)


@given(st.floats(0.05, 4), st.floats(1e-9, 0.3))
def test_one_point_is_the_pair_of_epsilon_and_delta(epsilon: float, delta: float) -> None:
    one, other = tr.from_points([(epsilon, delta)]).loss, tr.approx_dp(epsilon, delta=delta).loss
    for at in (-2.0, -epsilon, 0.0, epsilon / 2, epsilon, 2 * epsilon):
        overlap(one, other, at)
    assert abs(one.delta(epsilon) - delta) <= 1e-12


@given(SINGLE, st.floats(0.05, 6))
def test_every_loss_is_dominated_by_what_it_guarantees(loss: tr.PrivacyLoss, epsilon: float) -> None:
    """(ε, δ(ε), η) is true of it, so the triple's profile lies above, everywhere."""
    weaker = tr.approx_dp(epsilon, delta=loss.delta(epsilon), total_variation=loss.total_variation()).loss
    for at in (-1.0, 0.0, epsilon / 2, epsilon, 2 * epsilon):
        at_most(loss, weaker, at)


@given(st.floats(0.1, 50), st.floats(1, 3), EPSILONS)
def test_more_noise_never_raises_delta(scale: float, factor: float, epsilon: float) -> None:
    for family in (tr.gaussian, tr.laplace):
        at_most(family(scale=scale * factor).loss, family(scale=scale).loss, epsilon)


@given(st.floats(0.1, 3), st.floats(1e-6, 0.2), EPSILONS)
def test_truncated_laplace_lies_below_its_promise(epsilon: float, delta: float, at: float) -> None:
    at_most(tr.truncated_laplace(epsilon=epsilon, delta=delta).loss, tr.approx_dp(epsilon, delta=delta).loss, at)


RATES = st.sampled_from([0.05, 0.3, 0.9, 1.0])
FINITE_STEPS = st.one_of(triples(), pairs().map(lambda both: tr.from_pair(*both).loss))


@FEW
@given(FINITE_STEPS, RATES, EPSILONS)
def test_poisson_sampling_never_raises_delta(step: tr.PrivacyLoss, rate: float, epsilon: float) -> None:
    at_most(step.poisson_sample(rate), step, epsilon)


@FEW
@given(FINITE_STEPS, RATES, RATES, EPSILONS)
def test_a_larger_sample_reveals_more(step: tr.PrivacyLoss, first: float, second: float, epsilon: float) -> None:
    low, high = sorted((first, second))
    at_most(step.poisson_sample(low), step.poisson_sample(high), epsilon)


@FEW
@given(st.floats(0.7, 3), RATES, RATES, st.sampled_from([0.0, 0.5, 2.0]))
def test_many_sampled_steps(sigma: float, first: float, second: float, epsilon: float) -> None:
    low, high = sorted((first, second))
    step = tr.gaussian(scale=sigma).loss
    at_most(300 * step.poisson_sample(low), 300 * step.poisson_sample(high), epsilon)
    at_most(300 * step.poisson_sample(low), 300 * step, epsilon)
