"""Sampled Gaussians at tiny δ or with little noise: brackets that contain the truth, are narrow, and come quickly.

The δ of two to five steps is checked by nested quadrature (``tests/oracle/nested_sampled_gaussian.py``).
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.oracle.nested_sampled_gaussian import nested_delta
from tightrope.accounting.methods.contour import ContourMethod
from tightrope.accounting.methods.grid import GridMethod
from tightrope.accounting.methods.tilted_cells import LatticeCells, LineLaw, Outline, TiltedLattice, place_anchor
from tightrope.accounting.methods.tilted_grid import LEVELS, TiltedGridMethod
from tightrope.errors import PrecisionError

CASES = [
    (0.05, 0.01, 10, 1e-5, 635.869686),
    (0.1, 0.01, 100, 1e-5, 354.196091),
    (0.15, 0.01, 100, 1e-5, 146.6930586),
    (0.2, 0.01, 100, 1e-5, 75.09699722),
    (0.3, 0.01, 10, 1e-6, 18.14532619),
    (0.05, 0.5, 100, 1e-5, 14200.82354691),
    (0.05, 0.001, 1000, 1e-5, 1469.574622),
    (1.0, 1e-6, 300, 1e-60, 2.48993513),
    (1.0, 1e-6, 7, 1e-300, 24.68734156),
    (1.0, 0.01, 5000, 1e-300, 94.130695),
    (2.0, 0.001, 10_000, 1e-100, 3.90489417),
    (0.8, 0.01, 3000, 1e-300, 152.553298),
]
CPU_LIMIT = 8.0
"""Seconds; on a busy machine the slowest takes 5."""


def loss_of(sigma: float, rate: float, steps: int) -> tr.PrivacyLoss:
    return steps * tr.gaussian(scale=sigma).loss.poisson_sample(rate)


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "truth"), CASES)
def test_epsilon_is_enclosed_quickly(sigma: float, rate: float, steps: int, delta: float, truth: float) -> None:
    start = time.process_time()
    bounds = loss_of(sigma, rate, steps).epsilon_bounds(delta)
    assert time.process_time() - start < CPU_LIMIT
    assert bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-6)
    assert bounds.upper == pytest.approx(truth, rel=1e-6)


def two_step_delta(sigma: float, rate: float, epsilon: float) -> float:
    return math.exp(nested_delta([(sigma, rate)] * 2, epsilon))


@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"),
    [
        (1, 1e-6, 20.0),
        (1, 0.01, 3.0),
        (0.3, 0.01, 14.0),
        (0.05, 0.01, 300.0),
        (0.8, 1e-3, 30.0),
        (2, 1e-4, 5.0),
        (0.3, 0.2, 6.0),  # large losses have a probability of 4 %
        (0.05, 0.01, 600.0),  # both losses are large
    ],
)
def test_two_steps_agree_with_an_integral(sigma: float, rate: float, epsilon: float) -> None:
    method = TiltedGridMethod.from_composition(loss_of(sigma, rate, 2).remove)
    assert method is not None
    low, high = method.delta(epsilon)
    truth = two_step_delta(sigma, rate, epsilon)
    assert low <= truth * (1 + 1e-9) and high >= truth * (1 - 1e-9)
    assert high <= low * (1 + 1e-6 * 27 * epsilon)  # 1e-6 of ε: there δ falls by up to 27 nats for each


def composed(steps: Sequence[tuple[float, float]]) -> tr.PrivacyLoss:
    return sum((loss_of(sigma, rate, 1) for sigma, rate in steps[1:]), loss_of(*steps[0], 1))


def grid_of(steps: Sequence[tuple[float, float]]) -> TiltedGridMethod:
    method = TiltedGridMethod.from_composition(composed(steps).remove)
    assert method is not None
    return method


@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [
        ([(1, 0.01)] * 3, 4.0),
        ([(1, 1e-3)] * 3, 10.0),
        ([(0.3, 0.01)] * 3, 20.0),
        ([(0.15, 0.01)] * 3, 80.0),
        ([(0.02, 1e-6)] * 2, 1500.0),
        ([(1, 1e-6)] * 3, 15.0),
        ([(0.3, 0.2)] * 3, 8.0),
        ([(3, 0.5)] * 3, 1.0),
        ([(20, 0.9)] * 5, 0.3),
        ([(1, 0.01)] * 5, 4.0),
        ([(0.8, 1e-4)] * 5, 8.0),
        ([(0.5, 1e-4), (1, 0.01), (2, 0.1)], 6.0),
        ([(0.2, 1e-3), (0.25, 1e-2), (4, 0.5), (4, 0.5)], 12.0),
    ],
)
def test_three_and_more_steps_agree_with_nested_integrals(steps: list[tuple[float, float]], epsilon: float) -> None:
    low, high = grid_of(steps).delta(epsilon)
    truth = nested_delta(steps, epsilon)
    tolerance = 1e-9 + 1e-14 * abs(truth)
    assert math.log(low) <= truth + tolerance and math.log(high) >= truth - tolerance
    assert high <= low * (1 + 1e-6 * 40 * epsilon)


def random_steps(seed: int, count: int) -> Iterator[tuple[list[tuple[float, float]], float, int]]:
    """Two steps with sigma from 0.02 to 20 and rates from 1e-6 to 0.97, an ε, and a level of the lattice."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        steps = [(float(10 ** rng.uniform(-1.7, 1.3)), min(float(10 ** rng.uniform(-6, 0)), 0.97)) for _ in range(2)]
        steps = steps[:1] * 2 if rng.random() < 0.6 else steps
        sizes = [1 / (2 * s * s) if s < 0.04 else math.log1p(q * math.expm1(1 / (s * s))) for s, q in steps]
        yield steps, float(10 ** rng.uniform(-2.5, 0.6)) * max(*sizes, 1e-3), int(rng.integers(0, 4))


def violations(cases: Iterator[tuple[list[tuple[float, float]], float, int]]) -> tuple[int, int, int]:
    """Return how many brackets were compared, and how many lower and upper ends are on the wrong side of the truth."""
    compared = too_high = too_low = 0
    for steps, epsilon, level in cases:
        truth = nested_delta(steps, epsilon)
        if not (math.isfinite(truth) and truth > -690):
            continue
        try:
            low, high = grid_of(steps).compose_near(epsilon, LEVELS[level]).delta(epsilon)
        except PrecisionError:
            continue
        tolerance = 3e-9 + 1e-14 * abs(truth)
        compared += 1
        too_high += low > 0 and math.log(low) > truth + tolerance
        too_low += high <= 0 or math.log(high) < truth - tolerance
    return compared, too_high, too_low


def test_random_steps_are_enclosed() -> None:
    compared, too_high, too_low = violations(random_steps(seed=41, count=200))
    assert compared >= 120
    assert (too_high, too_low) == (0, 0)


def test_rounding_to_the_nearest_point_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: outcomes are moved to the nearest lattice point, neither up nor down."""
    original = TiltedLattice.cells

    def nearest_cells(self: TiltedLattice, *arguments: object) -> LatticeCells:
        cells = original(self, *arguments)  # type: ignore[arg-type]
        return cells._replace(split=cells.merged)

    monkeypatch.setattr(TiltedLattice, "cells", nearest_cells)
    monkeypatch.setattr(LatticeCells, "dominated_masses", lambda cells, lattice: cells.merged)
    compared, too_high, too_low = violations(random_steps(seed=41, count=40))
    assert compared >= 20
    assert too_high >= 3 and too_low >= 3


def test_a_missing_tail_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: far too many outcomes are dropped, and no bound on their mass is added."""
    monkeypatch.setattr("tightrope.accounting.methods.tilted_grid.DROPPED_NATS", 8.0)
    monkeypatch.setattr("tightrope.accounting.methods.tilted_cells.LineLaw.log_tail", lambda *_, **__: -math.inf)
    _, _, too_low = violations(random_steps(seed=41, count=40))
    assert too_low >= 3


def random_compositions(seed: int, count: int) -> Iterator[tuple[tr.PrivacyLoss, bool, float]]:
    """One to three distributions with up to 3,000 steps each, a direction, and log₁₀ of a δ."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        losses = [
            loss_of(
                float(10 ** rng.uniform(-1, 1.3)), float(10 ** rng.uniform(-4, 0)), int(10 ** rng.uniform(0.4, 3.4))
            )
            for _ in range(int(rng.choice([1, 1, 2, 3])))
        ]
        yield sum(losses[1:], losses[0]), bool(rng.random() < 0.7), -float(rng.uniform(0.3, 40))


def test_brackets_intersect_those_of_the_integral() -> None:
    narrow = compared = 0
    for loss, remove, log_delta in random_compositions(seed=42, count=100):
        total = loss.remove if remove else loss.add
        grid, integral = TiltedGridMethod.from_composition(total), ContourMethod(total, GridMethod(total))
        assert grid is not None
        guess = integral.approximate_epsilon_at(10**log_delta)
        if guess is None:
            continue
        low, high, _ = integral._integrate_levels(guess.epsilon)
        try:
            below, above = grid.compose_near(guess.epsilon, LEVELS[1]).delta(guess.epsilon)
        except PrecisionError:
            continue
        compared += 1
        assert max(low, below) <= min(high, above) * (1 + 1e-14)
        narrow += high - low <= 1e-6 * high and above - below <= 1e-2 * above
    assert narrow >= compared / 3 >= 20


@settings(max_examples=25, deadline=None)
@given(
    sigma=st.floats(0.3, 3),
    log_rate=st.floats(-14, -1),
    epsilon=st.floats(0.5, 20),
    level=st.integers(0, 5),
)
def test_coarse_and_fine_lattices_enclose_two_steps(sigma: float, log_rate: float, epsilon: float, level: int) -> None:
    rate = math.exp(log_rate)
    method = TiltedGridMethod.from_composition(loss_of(sigma, rate, 2).remove)
    assert method is not None
    truth = two_step_delta(sigma, rate, epsilon)
    if truth > 1e-290:
        low, high = method.compose_near(epsilon, LEVELS[level]).delta(epsilon)
        assert low <= truth * (1 + 1e-8) and truth * (1 - 1e-8) <= high


@settings(max_examples=15, deadline=None)
@given(
    sigma=st.floats(0.6, 2),
    log_rate=st.floats(-7, -2),
    log_steps=st.floats(0.7, 8),
    log_delta=st.floats(-690, -12),
)
def test_random_epsilon_is_enclosed(sigma: float, log_rate: float, log_steps: float, log_delta: float) -> None:
    loss, delta = loss_of(sigma, math.exp(log_rate), int(math.exp(log_steps))), math.exp(log_delta)
    bounds = loss.epsilon_bounds(delta)
    assert bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-6)
    if bounds.lower > 0:
        assert loss.delta_bounds(bounds.lower).upper >= delta * (1 - 1e-9)
        assert loss.delta_bounds(bounds.upper).lower <= delta


@pytest.mark.parametrize("remove", [True, False])
def test_grid_agrees_with_the_integral(remove: bool) -> None:
    loss = loss_of(1.0, 0.05, 50)
    total = loss.remove if remove else loss.add
    method = TiltedGridMethod.from_composition(total)
    assert method is not None
    for epsilon in (0.1, 1.0, 2.0):
        low, high = method.delta(epsilon)
        single = tr.PrivacyLoss(total, total).delta_bounds(epsilon)
        assert low <= single.upper and single.lower <= high <= low * (1 + 1e-5)


def test_outcomes_that_reach_far_are_merged_in_little_memory() -> None:
    """At ε = 0, outcomes of a step with scale 0.02 and rate 1e-6 reach so far that 33 GB were needed for panels."""
    law = LineLaw(50.0, 1e-6, -1)
    outline = Outline.from_law(law, 1_000.0, math.inf)
    tracemalloc.start()
    anchor = place_anchor(law, outline, TiltedLattice(1e6, 1e-6))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert math.isfinite(anchor) and most < 50_000_000


@pytest.mark.parametrize(("sigma", "rate", "steps"), [(0.02, 0.97, 1_000), (0.1, 0.97, 10**6), (0.02, 0.01, 10**6)])
@pytest.mark.parametrize("epsilon", [1.0, 700.0])
def test_steps_without_privacy_have_a_delta_of_one(sigma: float, rate: float, steps: int, epsilon: float) -> None:
    """Losses of millions of nats: a lattice has steps of hundreds, whose exponentials overflow."""
    bounds = loss_of(sigma, rate, steps).delta_bounds(epsilon)
    assert 1 - 1e-12 <= bounds.lower <= bounds.upper == 1


def test_plain_and_sampled_gaussians_together() -> None:
    loss = 20 * tr.gaussian(scale=1).loss.poisson_sample(0.01) + tr.gaussian(scale=2).loss
    method = TiltedGridMethod.from_composition(loss.remove)
    assert method is not None
    low, high = method.delta(2.0)
    bounds = tr.PrivacyLoss(loss.remove, loss.remove).delta_bounds(2.0)
    assert low <= bounds.upper and bounds.lower <= high <= low * (1 + 1e-5)


def test_other_distributions_are_left_to_other_methods() -> None:
    assert TiltedGridMethod.from_composition(tr.laplace(scale=1).loss.remove) is None
