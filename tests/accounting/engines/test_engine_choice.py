"""Which engine answers, and that two engines that both can agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods import contour, grid
from tightrope.accounting.methods.grid import GridMethod
from tightrope.accounting.methods.select import choose_method

G, L, T = tr.gaussian(scale=1).loss, tr.laplace(scale=1).loss, tr.approx_dp(1, delta=1e-6).loss


@pytest.mark.parametrize(
    ("loss", "engine"),
    [
        (G, "closed form"),
        (1000 * G, "closed form"),
        (G + tr.gaussian(scale=3).loss, "closed form"),
        (L, "closed form"),
        (tr.from_pair([0.5, 0.5], [0.3, 0.7]).loss, "closed form"),
        (tr.from_points([(1, 1e-6), (0.5, 1e-3)]).loss, "closed form"),
        (10 * T, "recurrence"),
        (10 * tr.staircase(epsilon=0.5).loss, "recurrence"),
        (T + tr.approx_dp(0.5).loss, "lattice"),
        (5 * tr.from_points([(1, 1e-6), (0.5, 1e-3)]).loss, "lattice"),
        (tr.gaussian(scale=100).loss, "closed form"),
        (G + L, "contour"),
        (1000 * L, "contour"),
        (1000 * G.poisson_sample(0.01), "contour"),
        (2 * L, "exact sum"),
        (T + tr.approx_dp(math.pi / 10).loss, "enumeration"),
        (10 * T.poisson_sample(0.1), "enumeration"),
        (300 * T.poisson_sample(0.1), "smoothed contour"),
        (50 * G.subset_sample(1, 100), "contour"),
        (T.poisson_sample(1), "closed form"),
    ],
)
def test_the_engine_that_fits(loss: tr.PrivacyLoss, engine: str) -> None:
    assert loss.method == engine


@pytest.mark.parametrize("mu", [0.3, 0.7, 3.0])
@pytest.mark.parametrize("epsilon", [-2.0, 0.0, 0.3, 2.0, 9.0])
def test_contour_against_the_closed_form_of_a_gaussian(mu: float, epsilon: float) -> None:
    total = tr.gaussian(scale=1, sensitivity=mu).loss.remove
    first = contour.ContourMethod(total, GridMethod(total)).delta(epsilon)
    lower, upper = choose_method(total).delta(epsilon)
    assert first[0] <= upper
    assert first[1] >= lower
    assert first[1] - first[0] <= 1e-9 * first[0] + 1e-300


@pytest.mark.parametrize("count", [1, 3, 40, 1000])
@pytest.mark.parametrize("share", [-0.2, 0.0, 0.05, 0.3, 0.9])
def test_the_grid_brackets_exact_triples(count: int, share: float) -> None:
    """The lattice above lies above the exact profile and the one below below, on a step that fits nothing."""
    step_loss = 0.25
    total = (count * tr.approx_dp(step_loss, delta=1e-7, total_variation=0.05).loss).remove
    epsilon = share * count * step_loss
    exact = choose_method(total).delta(epsilon)
    low, high = grid.compose_on_grid(total, 300).delta(epsilon)
    assert low <= exact[1]
    assert high >= exact[0]
    assert high - low <= 1e-2 * count


def test_splitting_keeps_both_masses() -> None:
    """Each atom goes to the lattice points around it with its mass under P and under Q."""
    rng = np.random.default_rng(1)
    losses, step = rng.normal(0, 2, 200), 0.037
    masses = rng.dirichlet(np.ones(200))
    offsets, moved = grid.split_to_lattice(losses, masses, step)
    assert np.all(moved >= 0)
    np.testing.assert_allclose(moved[:200] + moved[200:], masses, rtol=1e-14)
    under_q = moved * np.exp(-offsets * step)
    np.testing.assert_allclose(under_q[:200] + under_q[200:], masses * np.exp(-losses), rtol=1e-12)
    assert np.all(np.abs(offsets * step - np.concatenate([losses, losses])) <= step * (1 + 1e-9))


@pytest.mark.parametrize(
    "loss",
    [
        G,
        L,
        T,
        tr.truncated_laplace(epsilon=1, delta=1e-3).loss,
        tr.from_pair([0.6, 0.4], [0.3, 0.7]).loss,
        G.poisson_sample(0.2),
        L.poisson_sample(0.2),
    ],
)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_cells_hold_all_the_mass(loss: tr.PrivacyLoss, direction: str) -> None:
    """P and Q each sum to one with their infinite mass, and each cell's loss lies between its ends."""
    (law,) = getattr(loss, direction).laws
    cells = law.loss_cells(0.01)
    assert math.fsum(cells.p_masses) + cells.infinite_mass == pytest.approx(1, abs=1e-12)
    assert math.fsum(cells.q_masses) + cells.reverse_infinity_mass == pytest.approx(1, abs=1e-12)
    held = cells.q_masses > 1e-280
    mean = np.log(cells.p_masses[held] / cells.q_masses[held])
    assert np.all(cells.lower[held] - 1e-6 <= mean)
    assert np.all(mean <= cells.upper[held] + 1e-6)
    assert np.all(cells.upper - cells.lower <= 0.01 * (1 + 1e-6))


@pytest.mark.parametrize(
    "law",
    [
        L.remove.laws[0],
        G.remove.laws[0],
        T.remove.laws[0],
        tr.truncated_laplace(epsilon=2, delta=0.01).loss.remove.laws[0],
        G.poisson_sample(0.1).remove.laws[0],
        G.poisson_sample(0.1).add.laws[0],
    ],
)
def test_moments_are_the_transform_of_the_cells(law: object) -> None:
    """M(z) = Σ p e^{zl} over fine cells, at complex z."""
    z = np.array([0.3 + 0j, 1.0 + 0.7j, 2.0 - 3.0j, 0.05 + 5j])
    cells = law.loss_cells(1e-4)
    middle = (cells.lower + cells.upper) / 2
    held = cells.p_masses > 1e-60
    expected = np.exp(z[:, None] * middle[held]) @ cells.p_masses[held]
    np.testing.assert_allclose(np.exp(law.log_moment(z)), expected, rtol=2e-6)


@pytest.mark.parametrize(
    "law",
    [
        L.remove.laws[0],
        G.remove.laws[0],
        tr.laplace(scale=0.05).loss.remove.laws[0],
        tr.truncated_laplace(epsilon=2, delta=0.01).loss.remove.laws[0],
        tr.truncated_laplace(epsilon=0.1, delta=0.3).loss.remove.laws[0],
    ],
)
@pytest.mark.parametrize("c", [0.01, 0.7, 5.0])
def test_the_decay_is_a_bound_further_out(law: object, c: float) -> None:
    """|M(c + iy')| / M(c) ≤ decay(c, y) for every y' ≥ y."""
    heights = np.concatenate([np.linspace(0, 30, 3001), np.geomspace(30, 1e4, 500)])
    moments = law.log_moment(c + 1j * heights).real
    sizes = np.exp(moments - moments[0])
    for start in (0, 10, 100, 777, 2500, 3200):
        assert np.max(sizes[start:]) <= law.moment_decay_bound(c, float(heights[start])) * (1 + 1e-9)


def test_equal_laws_are_counted_and_gaussians_merge() -> None:
    total = (2 * L + 3 * tr.laplace(scale=1).loss + G + tr.gaussian(scale=0.5).loss).remove
    assert sorted(total.counts) == [1, 5]
    assert total.laws[1].mu == pytest.approx(math.sqrt(5))


def test_reversing_twice_changes_nothing() -> None:
    total = (3 * T + 2 * tr.from_pair([0.5, 0.3, 0.2], [0.2, 0.5, 0.3]).loss).remove
    again = total.reverse_distribution().reverse_distribution()
    assert isinstance(again, Composition)
    for epsilon in (-1.0, 0.0, 0.4):
        first, second = choose_method(total).delta(epsilon), choose_method(again).delta(epsilon)
        assert max(first[0], second[0]) <= min(first[1], second[1])


def test_the_infinite_mass_of_many_steps_does_not_cancel() -> None:
    loss = 10**6 * tr.approx_dp(0.1, delta=1e-18).loss
    assert loss.infinite_mass == pytest.approx(1e-12, rel=1e-9)
    assert (10**6 * tr.approx_dp(0.1, delta=0.5).loss).infinite_mass == 1


@pytest.mark.parametrize("count", [100, 1000])
@pytest.mark.parametrize("epsilon", [-3.0, 0.0, 0.5, 4.0, 20.0])
def test_chernoff_brackets_what_the_contour_knows(count: int, epsilon: float) -> None:
    """What is left where the integral cancels is still on the safe side, from above and from below."""
    total = (count * tr.bounded_range(epsilon=0.3).loss).remove
    engine = contour.ContourMethod(total, GridMethod(total))
    low, high = engine.delta(epsilon)
    least, most = engine._fallback_bounds(epsilon, (0.0, 1.0))
    assert least <= high
    assert low <= most


def test_a_certain_loss_is_known_to_be_certain() -> None:
    lower, upper = (10**6 * tr.bounded_range(epsilon=1).loss).delta_bounds(1.0)
    assert lower >= 1 - 1e-12
    assert upper == 1
