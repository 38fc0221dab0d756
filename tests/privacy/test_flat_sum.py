"""A few Laplace-type losses: brackets of 1e−11 that hold the truth, by theory §3's sum in many digits."""

from __future__ import annotations

import mpmath
import pytest

import tightrope as tr
from tightrope.privacy.gridded import Gridded


def residue_sum(epsilon: str, count: int, q: str) -> mpmath.mpf:
    """Theory §3, tool 1: a residue for each j, with a Taylor coefficient of (w+½)^{k−j−1} (w−½)^{j−1} e^{a_j w}."""
    with mpmath.workdps(60 + 2 * count):
        e, at, half = mpmath.mpf(epsilon), mpmath.mpf(q), mpmath.mpf(1) / 2
        total = mpmath.mpf(0)
        for j in range(count + 1):
            a = e * (count - 2 * j) - at
            if a <= 0:
                continue
            series = mpmath.taylor(
                lambda w, j=j, a=a: (w + half) ** (count - j - 1) * (w - half) ** (j - 1) * mpmath.exp(a * w),
                0,
                count - 1,
            )
            inner = (1 if j == 0 else 0) + mpmath.mpf(2) ** -count * mpmath.exp(-a / 2) * series[count - 1]
            total += mpmath.binomial(count, j) * mpmath.exp(-j * e) * inner
        return total


@pytest.mark.parametrize(
    ("epsilon", "count", "q"),
    [
        ("1", 2, "0.5"), ("1", 2, "1.75"), ("0.5", 5, "0.25"), ("0.25", 12, "1.5"), ("2", 7, "9.5"),
        ("0.125", 20, "0.75"), ("0.0009765625", 3, "0.001953125"), ("4", 3, "0.5"),
    ],
)  # fmt: skip
def test_the_bracket_holds_the_residue_sum(epsilon, count, q):
    loss = count * tr.laplace(scale=1, sensitivity=float(epsilon)).loss
    lower, upper = loss.delta_bounds(float(q))
    truth = residue_sum(epsilon, count, q)
    assert loss.engine == "exact sum"
    assert lower <= truth <= upper
    assert upper - lower <= 1e-11 * upper


@pytest.mark.parametrize("count", [2, 9, 60])
@pytest.mark.parametrize(
    "step",
    [
        tr.truncated_laplace(epsilon=1, delta=1e-4).loss,
        tr.truncated_laplace(epsilon=0.3, delta=0.2).loss,
        tr.laplace(scale=7).loss,
        tr.laplace(scale=0.5).loss,
    ],
)
def test_the_grid_agrees(step, count):
    loss = count * step
    low, high = loss.remove.infinite_mass, loss.remove.largest
    for share in (-0.2, 0.0, 0.1, 0.5, 0.9):
        epsilon = share * high
        lower, upper = loss.delta_bounds(epsilon)
        below, above = Gridded(loss.remove).delta(epsilon)
        assert max(lower, below) <= min(upper, above)
        assert low * (1 - 1e-14) <= lower
        assert upper - lower <= 1e-10 * upper


def test_epsilon_ends_on_either_side():
    loss = 10 * tr.laplace(scale=2).loss
    lower, upper = loss.epsilon_bounds(1e-3)
    assert lower <= 4.521308127047448 <= upper
    assert upper - lower <= 1e-11 * upper
    assert loss.delta(upper) <= 1e-3


def test_far_out_the_grid_or_chernoff_answers():
    loss = 400 * tr.laplace(scale=1, sensitivity=0.01).loss
    lower, upper = loss.delta_bounds(3.9)
    assert 0 <= lower <= upper < 1e-100
