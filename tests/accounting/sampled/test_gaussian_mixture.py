"""Mixtures of Gaussians and groups of records in Poisson samples, against mpmath and other code of their own."""

from __future__ import annotations

import math
import random
import time

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.accounting.distributions.gaussian_mixture import (
    GaussianMixture,
    binomial_log_weights,
    mixture_distribution,
)
from tightrope.accounting.filters import BasicFilter, MenuFilter
from tightrope.accounting.neighbors import Neighbors
from tightrope.errors import InputError

Weights = list[tuple[float, float]]
"""Shifts in standard deviations, and their probabilities."""


PARTS = st.tuples(st.just(0.0) | st.floats(1e-10, 3), st.floats(0.01, 1))


def binomial(size: int, rate: float, mu: float) -> Weights:
    return [(i * mu, math.comb(size, i) * rate**i * (1 - rate) ** (size - i)) for i in range(size + 1)]


def ratio(mixture: Weights, x: mp.mpf) -> mp.mpf:
    return mp.fsum(mp.mpf(p) * mp.exp(mp.mpf(s) * x - mp.mpf(s) ** 2 / 2) for s, p in mixture)


def outcome(mixture: Weights, level: mp.mpf) -> mp.mpf:
    """Return the x where the ratio is ``level``, by bisection."""
    low, high = mp.mpf(-128), mp.mpf(128)
    for _ in range(int(3.4 * mp.mp.dps) + 8):  # to all digits
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(mixture, middle) < level else (low, middle)
    return low


def one_step(mixture: Weights, epsilon: mp.mpf, remove: bool) -> mp.mpf:
    """Return δ(ε) of one step at any real ε, from masses beyond the threshold."""
    if remove:
        if mixture[0][0] == 0 and mp.exp(epsilon) <= mixture[0][1]:
            return 1 - mp.exp(epsilon)
        x = outcome(mixture, mp.exp(epsilon))
        return mp.fsum(p * mp.ncdf(s - x) for s, p in mixture) - mp.exp(epsilon) * mp.ncdf(-x)
    if mixture[0][0] == 0 and mp.exp(-epsilon) <= mixture[0][1]:
        return mp.mpf(0)
    x = outcome(mixture, mp.exp(-epsilon))
    return mp.ncdf(x) - mp.exp(epsilon) * mp.fsum(p * mp.ncdf(x - s) for s, p in mixture)


def two_steps(mixture: Weights, epsilon: float, remove: bool) -> mp.mpf:
    """Return δ(ε) of two steps: the average over outcomes of the first one of δ at the ε that is left."""

    def part(x: mp.mpf) -> mp.mpf:
        g = ratio(mixture, x)
        loss = mp.log(g) if remove else -mp.log(g)
        return mp.npdf(x) * (g if remove else 1) * one_step(mixture, epsilon - loss, remove)

    top = max(s for s, _ in mixture)
    kink = outcome(mixture, mp.exp(epsilon if remove else -epsilon) / mixture[0][1])
    return mp.quad(part, sorted([kink, *(mp.mpf(v) for v in np.arange(-8.0, 8.5 + top, 2.0))]), maxdegree=4)


def many_steps(mixture: Weights, count: int, epsilon: float) -> float:
    """Return δ(ε) of ``count`` removals by a contour integral with fixed steps, in plain double precision."""
    top = max(s for s, _ in mixture)
    x = np.linspace(-12, 12 + 40 * top, 20_001)
    log_g = np.logaddexp.reduce([math.log(p) + s * x - s * s / 2 for s, p in mixture])
    log_weight = -(x**2) / 2 - math.log(2 * math.pi) / 2 + math.log(x[1] - x[0])

    def exponent(z: complex) -> complex:
        terms = log_weight + (z + 1) * log_g
        peak = np.max(terms.real)
        return count * complex(peak + np.log(np.sum(np.exp(terms - peak)))) - z * epsilon

    c = min(np.geomspace(0.5, 60, 300), key=lambda c: exponent(c).real - math.log(c) - math.log1p(c))
    step = 2 * math.pi * c / 200
    total = 0.5 * math.exp(exponent(c).real) / (c * (c + 1))
    for n in range(1, 20_000):
        z = complex(c, n * step)
        term = np.exp(exponent(z)) / (z * (z + 1))
        total += term.real
        if abs(term) < 1e-17 * abs(total):
            break
    return step / math.pi * total


def contains(bounds: tr.Bounds, truth: mp.mpf | float) -> bool:
    return bool(mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper))


@pytest.mark.parametrize("number", range(12))
def test_one_step_contains_the_exact_value(number: int) -> None:
    draw = random.Random(number)
    sensitivities = sorted({0.0, *(10 ** draw.uniform(-2, 1) for _ in range(draw.randint(1, 5)))})[draw.randint(0, 1) :]
    weights = [10 ** draw.uniform(-6, 0) for _ in sensitivities]
    weights = [w / math.fsum(weights) for w in weights]
    scale, epsilon = 10 ** draw.uniform(-0.5, 1.5), draw.choice([0.0, 10 ** draw.uniform(-4, 1)])
    bounds = tr.mixture_of_gaussians(sensitivities, weights, scale=scale).loss.delta_bounds(epsilon)
    with mp.workdps(300):
        total = mp.fsum(weights)
        mixture = [(mp.mpf(s) / mp.mpf(scale), w / total) for s, w in zip(sensitivities, weights, strict=True)]
        truth = max(one_step(mixture, mp.mpf(epsilon), remove) for remove in (True, False))
    assert contains(bounds, truth)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper + 1e-300


@pytest.mark.parametrize(("epsilon", "remove"), [(0.0, False), (0.05, True), (0.4, True)])
def test_two_steps_of_a_group_contain_the_exact_value(epsilon: float, remove: bool) -> None:
    mixture = binomial(3, 0.1, 0.5)
    law = mixture_distribution([s for s, _ in mixture], binomial_log_weights(3, 0.1), remove=remove)
    one_direction = tr.PrivacyLoss.from_distribution(law, reverse=law)
    bounds = (2 * one_direction).delta_bounds(epsilon)
    with mp.workdps(15):
        truth = two_steps(mixture, epsilon, remove)
    assert abs(bounds.upper - truth) <= 1e-9 * truth
    assert abs(bounds.lower - truth) <= 1e-9 * truth


@pytest.mark.parametrize(
    ("size", "rate", "scale", "count", "epsilon"),
    [(4, 0.01, 4.0, 1000, 0.5), (4, 0.01, 4.0, 1000, 2.0), (3, 0.05, 2.0, 50, 1.0), (8, 0.02, 6.0, 300, 1.5)],
)
def test_many_steps_of_a_group_agree_with_a_plain_contour(
    size: int, rate: float, scale: float, count: int, epsilon: float
) -> None:
    loss = count * tr.gaussian(scale=scale).loss.poisson_sample(rate).group(size)
    bounds, truth = loss.delta_bounds(epsilon), many_steps(binomial(size, rate, 1 / scale), count, epsilon)
    assert abs(bounds.upper / truth - 1) <= 1e-9
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper


def test_four_examples_a_user_are_narrow_and_fast() -> None:
    """The bracket that profiles of single steps left was 7.4e-11 to 8.3e-11."""
    (1000 * tr.gaussian(scale=4).loss.poisson_sample(0.0101).group(4)).delta(2)  # loads modules
    start = time.process_time()
    bounds = (1000 * tr.gaussian(scale=4).loss.poisson_sample(0.01).group(4)).delta_bounds(2)
    assert time.process_time() - start < 0.1
    assert bounds.upper == pytest.approx(8.3022296645e-11, rel=1e-10)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper


@pytest.mark.parametrize("epsilon", [0.0, 0.03, 1.0])
@pytest.mark.parametrize("count", [1, 2, 400])
def test_a_group_of_one_and_its_mixture_are_the_sampled_gaussian(count: int, epsilon: float) -> None:
    """The mixture has code of its own for the same pair."""
    step = tr.gaussian(scale=2).loss.poisson_sample(0.02)
    mixture = tr.mixture_of_gaussians([0, 1], [0.98, 0.02], scale=2).loss
    assert (count * step.group(1)).delta(epsilon) == (count * step).delta(epsilon)
    ours, theirs = (count * mixture).delta_bounds(epsilon), (count * step).delta_bounds(epsilon)
    assert max(ours.lower, theirs.lower) <= min(ours.upper, theirs.upper)
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-6)


def test_mixtures_compose_with_other_losses() -> None:
    """With Gaussians and Laplace noise, as a sampled Gaussian does, which has code of its own."""
    mixture = tr.mixture_of_gaussians([0, 1], [0.95, 0.05], scale=1).loss
    sampled = tr.gaussian(scale=1).loss.poisson_sample(0.05)
    for other in (tr.gaussian(scale=8).loss, 3 * tr.laplace(scale=4).loss):
        ours, theirs = (5 * mixture + other).delta_bounds(0.7), (5 * sampled + other).delta_bounds(0.7)
        assert max(ours.lower, theirs.lower) <= min(ours.upper, theirs.upper)
        assert ours.upper == pytest.approx(theirs.upper, rel=1e-6)
    grouped = 200 * tr.gaussian(scale=3).loss.poisson_sample(0.02).group(3)
    assert grouped.total_variation() == grouped.delta(0)
    rates = grouped.true_positive_rate_bounds([0.01, 0.1])
    assert np.all(rates.upper - rates.lower <= 1e-6)
    assert np.all(rates.upper + grouped.tradeoff([0.01, 0.1]) == pytest.approx(1, abs=1e-9))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.floats(1e-4, 0.3), st.floats(0.7, 20.0), st.sampled_from([0.0, 0.01, 0.2, 1.0, 4.0]))
def test_a_group_loses_at_least_what_smaller_ones_lose_and_at_most_what_certain_shifts_lose(
    size: int, rate: float, scale: float, epsilon: float
) -> None:
    step = tr.gaussian(scale=scale).loss.poisson_sample(rate)
    bounds = step.group(size).delta_bounds(epsilon)
    assert step.group(size - 1).delta_bounds(epsilon).lower <= bounds.upper
    assert bounds.lower <= tr.gaussian(scale=scale, sensitivity=size).loss.delta(epsilon)
    # One random number decides for all: a mixture of none and all shifts, with the rate of any of them.
    together = tr.gaussian(scale=scale, sensitivity=size).loss.poisson_sample(-math.expm1(size * math.log1p(-rate)))
    assert bounds.lower <= together.delta(epsilon) * (1 + 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.lists(PARTS, min_size=2, max_size=5), st.floats(0, 2))
def test_larger_shifts_lose_more(parts: list[tuple[float, float]], epsilon: float) -> None:
    shifts, weights = [s for s, _ in parts], np.array([w for _, w in parts])
    weights = weights / math.fsum(weights)
    small = tr.mixture_of_gaussians(shifts, weights, scale=1).loss.delta_bounds(epsilon)
    large = tr.mixture_of_gaussians([s + 0.1 for s in shifts], weights, scale=1).loss.delta_bounds(epsilon)
    assert small.lower <= large.upper
    assert 0 <= small.lower <= small.upper <= 1


def test_vectors_lose_at_most_what_their_norms_lose() -> None:
    """Kahane's inequality, in the plane: outcomes on a grid of two dimensions."""
    grid = np.linspace(-9, 9, 601)
    x, y = np.meshgrid(grid, grid)
    normal = np.exp(-(x**2 + y**2) / 2) / (2 * math.pi) * (grid[1] - grid[0]) ** 2
    weights, norms, angles = [0.5, 0.3, 0.2], [0.0, 0.8, 1.5], [0.0, 0.4, 2.0]
    density = sum(
        p * np.exp(s * (x * math.cos(a) + y * math.sin(a)) - s * s / 2)
        for p, s, a in zip(weights, norms, angles, strict=True)
    )
    loss = tr.mixture_of_gaussians(norms, weights, scale=1).loss
    for epsilon in (0.0, 0.5, 1.5):
        gamma = math.exp(epsilon)
        plane = max(
            np.sum(normal * np.maximum(density - gamma, 0)), np.sum(normal * np.maximum(1 - gamma * density, 0))
        )
        assert 0.2 * loss.delta(epsilon) < plane < loss.delta(epsilon)


def test_groups_of_plain_and_composed_gaussians() -> None:
    plain = tr.gaussian(scale=3).loss
    assert plain.group(4).delta(0.5) == tr.gaussian(scale=3, sensitivity=4).loss.delta(0.5)
    step = plain.poisson_sample(0.1)
    composed = (10 * step + plain).group(2)
    assert composed.delta(1) == pytest.approx((10 * step.group(2) + plain.group(2)).delta(1), rel=1e-9)
    assert composed.neighbors == Neighbors.ADD_REMOVE


def test_sampled_mixtures_are_mixtures() -> None:
    mixture = tr.mixture_of_gaussians([1, 2], [0.25, 0.75], scale=2).loss
    sampled = tr.mixture_of_gaussians([0, 1, 2], [0.75, 0.0625, 0.1875], scale=2).loss
    assert (7 * mixture.poisson_sample(0.25)).delta(0.3) == pytest.approx((7 * sampled).delta(0.3), rel=1e-9)


def test_probabilities_below_double_precision_count() -> None:
    """Fifty examples at a rate of 1e-8: the chance of all is e^{-921}, and far out it decides."""
    law = mixture_distribution([float(i) for i in range(51)], binomial_log_weights(50, 1e-8), remove=True)
    assert isinstance(law, GaussianMixture)
    assert law.components.log_weights[-1] == pytest.approx(50 * math.log(1e-8), rel=1e-12)
    (value,) = law.loss_at_outcome(np.array([200.0]))
    assert value == pytest.approx(50 * math.log(1e-8) + 50 * 200 - 1250, abs=1e-9)


def test_wrong_groups_are_refused() -> None:
    step = tr.gaussian(scale=4).loss.poisson_sample(0.01)
    with pytest.raises(InputError, match="one of single records"):
        step.group(2).group(2)
    with pytest.raises(InputError, match="Gaussian steps"):
        tr.laplace(scale=1).loss.poisson_sample(0.1).group(2)
    with pytest.raises(InputError, match="group with the same size"):
        step.group(2) + step
    assert (step.group(2) + tr.gaussian(scale=9).loss).delta(1) > step.group(2).delta(1)
    with pytest.raises(InputError, match="below 1000"):
        step.group(1000)
    with pytest.raises(InputError, match="size"):
        step.group(0)


def test_filters_keep_to_one_size_of_groups() -> None:
    step = tr.gaussian(scale=4).loss.poisson_sample(0.01)
    account = BasicFilter(epsilon=5, delta=1e-3, each=1e-6)
    account.charge(step.group(2))
    account.charge(tr.gaussian(scale=50).loss)
    with pytest.raises(InputError, match="group with the same size"):
        account.charge(step)
    with pytest.raises(InputError, match="group with the same size"):
        MenuFilter([step.group(2), step], steps=3)


@pytest.mark.parametrize(
    ("sensitivities", "probabilities", "name"),
    [
        ([0, 1], [0.5, 0.4], "sum of probabilities"),
        ([0, -1], [0.5, 0.5], "sensitivities"),
        ([0, math.nan], [0.5, 0.5], "sensitivities"),
        ([0, 1, 2], [0.5, 0.5], "sensitivities"),
        ([0, 5000], [0.5, 0.5], "sensitivities"),
        ([0, 1e-20], [0.5, 0.5], "sensitivities"),
    ],
)
def test_wrong_mixtures_are_refused(sensitivities: list[float], probabilities: list[float], name: str) -> None:
    with pytest.raises(InputError) as caught:
        tr.mixture_of_gaussians(sensitivities, probabilities, scale=1)
    assert caught.value.name == name
