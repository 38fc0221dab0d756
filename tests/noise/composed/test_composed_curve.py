"""The fast accountant of searches: right to what its lattice allows, and so are its slopes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope as tr
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.composed.composed_curve import (
    ComposedCurve,
    ReleaseLosses,
    composed_curve_derivatives,
    normalize_half_weights,
)


def power_law(scale: float, power: float, cells: int):
    return normalize_half_weights(np.exp(-((np.arange(cells) / scale) ** power)))


@pytest.mark.parametrize(("epsilon", "count", "scale"), [(1.0, 10, 13.36), (0.1, 100, 40.0), (3.0, 2, 1.5)])
def test_gaussians_on_their_own_lattice_agree_with_the_exact_accountant(epsilon, count, scale):
    heights = np.arange(int(13.3 * scale)) ** 2
    fast = ComposedCurve(ReleaseLosses.from_heights(heights, 1, 1 / (2 * scale**2)), count).log_delta(epsilon)
    exact = (count * tr.discrete_gaussian(scale=scale).loss).delta(epsilon)
    assert math.exp(fast) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("shift", [1, 3])
def test_any_law_to_second_order_in_the_step(shift):
    half = power_law(14.5, 1.5, 150)
    exact = (10 * NoiseTable.from_probabilities(half).loss(shift)).delta(1.0)
    errors = [
        math.exp(ComposedCurve(ReleaseLosses.from_weights(half, shift, step), 10).log_delta(1.0)) / exact - 1
        for step in (2e-3, 1e-3)
    ]
    assert 0 < errors[1] < errors[0] < 2e-3  # moved losses only ever add
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.3)


def test_infinite_loss_alone_is_left_above_the_largest_sum():
    law = ReleaseLosses.from_heights(np.array([0, 10, 20]), 1, 0.1)
    curve = ComposedCurve(law, 3)
    assert law.largest_loss == pytest.approx(1.0)
    assert curve.log_delta(3.5) == pytest.approx(math.log(1 - (1 - law.infinite_mass) ** 3), rel=1e-12)
    assert curve.log_delta(2.5) > curve.log_delta(3.0)


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("cell", [0, 2, 10, 30])
def test_the_gradient_is_that_of_log_delta(shift, cell):
    half, step = power_law(14.5 * shift, 1.5, 150 * shift), 1e-4
    cell *= shift
    found = composed_curve_derivatives(half, shift, step, 10, 1.0)

    def at(factor: float) -> float:
        changed = half.copy()
        changed[cell] *= factor
        return ComposedCurve(ReleaseLosses.from_weights(changed, shift, step), 10).log_delta(1.0)

    difference = (at(1.001) - at(0.999)) / 2e-3
    assert half[cell] * found.gradient[cell] == pytest.approx(difference, rel=0.02)


def test_the_gradient_along_a_smooth_change():
    half = power_law(14.5, 1.5, 150)
    places = np.arange(150)
    change = np.cos(places / 7) * np.exp(-places / 40)
    found = composed_curve_derivatives(half, 1, 1e-4, 10, 1.0)
    up, down = (
        ComposedCurve(ReleaseLosses.from_weights(half * np.exp(e * change), 1, 1e-4), 10).log_delta(1.0)
        for e in (0.003, -0.003)
    )
    assert float(found.gradient @ (half * change)) == pytest.approx((up - down) / 0.006, rel=1e-3)


def test_curvature_is_a_sum_of_squares():
    """It is positive semidefinite, and leaves (P, Q) in fixed ratio alone."""
    half = power_law(5.0, 1.5, 40)
    band = composed_curve_derivatives(half, 2, 1e-3, 5, 1.0).curvature_band
    size = len(half)
    dense = sum(np.diag(band[2 - j, j:], j) + (np.diag(band[2 - j, j:], -j) if j else 0) for j in range(3))
    relative = dense * half[:, None] * half
    assert relative.shape == (size, size)
    assert np.linalg.eigvalsh(relative).min() > -1e-9 * np.linalg.eigvalsh(relative).max()
    assert np.abs(relative @ np.ones(size)).max() < 1e-9 * np.abs(relative).max()
