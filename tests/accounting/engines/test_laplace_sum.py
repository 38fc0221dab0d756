"""A few Laplace-type losses: brackets of 1e−11 that hold the truth, by partial fractions in many digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import tightrope as tr
from tests.oracle.range_pair import range_pair
from tests.oracle.slow_composition import pole
from tightrope.accounting.methods.grid import GridMethod


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
    assert loss.method == "exact sum"
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
    low, high = loss.remove.infinite_mass, loss.remove.largest_loss
    for share in (-0.2, 0.0, 0.1, 0.5, 0.9):
        epsilon = share * high
        lower, upper = loss.delta_bounds(epsilon)
        below, above = GridMethod(loss.remove).delta(epsilon)
        assert max(lower, below) <= min(upper, above)
        assert low * (1 - 1e-14) <= lower
        assert upper - lower <= 1e-10 * upper


def test_epsilon_ends_on_either_side():
    loss = 10 * tr.laplace(scale=2).loss
    lower, upper = loss.epsilon_bounds(1e-3)
    assert lower <= 4.521308127047448 <= upper
    assert upper - lower <= 1e-11 * upper
    assert loss.delta(upper) <= 1e-3


def laplace(epsilon: float) -> dict[str, Any]:
    return {"law": "laplace", "scale": 1, "sensitivity": epsilon}


CUT = {"law": "truncated_laplace", "epsilon": 1.5, "delta": 2.0**-10}
RANGE = {"law": "bounded_range", "epsilon": 0.75}
MAKERS = {"laplace": tr.laplace, "truncated_laplace": tr.truncated_laplace, "bounded_range": range_pair}


def sum_of(steps: list[tuple[int, dict[str, Any]]]) -> tr.PrivacyLoss:
    return sum(n * MAKERS[step["law"]](**{k: v for k, v in step.items() if k != "law"}).loss for n, step in steps)


SEVERAL = {
    "halves": [(3, laplace(1.0)), (2, laplace(0.5))],
    "thirds": [(2, laplace(1.0)), (2, laplace(1 / 3))],
    "far apart": [(2, laplace(2.0)), (3, laplace(0.01))],
    "cut": [(2, CUT), (1, laplace(0.7))],
    "range": [(2, RANGE), (2, laplace(0.25)), (1, CUT)],
    "four": [(1, laplace(1.0)), (1, laplace(0.7)), (1, laplace(0.3)), (2, laplace(0.1))],
    "many": [(7, laplace(0.5)), (5, laplace(0.375))],
    "tiny": [(2, laplace(1e-6)), (1, laplace(3e-7))],
}


@pytest.mark.parametrize("share", [-1.0, -0.3, 0.0, 0.2, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_scales_against_partial_fractions(name: str, share: float) -> None:
    loss = sum_of(SEVERAL[name])
    epsilon = share * loss.remove.largest_loss
    lower, upper = loss.delta_bounds(epsilon)
    with mp.workdps(80):
        truth = pole(SEVERAL[name], mpf(epsilon))
        assert loss.method == "exact sum"
        assert lower <= truth <= upper
    assert upper - lower <= 2e-11 * upper


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 4.0 - 1e-9])
def test_at_an_atom_of_two_lattices(epsilon: float) -> None:
    """Brackets were 1e−5 wide there, in 15 seconds."""
    loss = sum_of(SEVERAL["halves"])
    lower, upper = loss.delta_bounds(epsilon)
    with mp.workdps(60):
        assert lower <= pole(SEVERAL["halves"], mpf(epsilon)) <= upper
    assert upper - lower <= (1e-11 + 1e-14 / (4 - epsilon)) * upper


def test_far_into_the_tail_of_several_scales() -> None:
    """Once [3.9999877, 4.0000000] after half a minute; the mass of the largest loss is 2⁻⁵."""
    lower, upper = sum_of(SEVERAL["halves"]).epsilon_bounds(1e-14)
    truth = 4 + mpmath.log1p(-32 * mpf(1e-14))
    assert lower <= truth <= upper <= lower + 1e-13


def test_one_scale_is_a_case_of_several() -> None:
    from tightrope.accounting.methods.laplace_sum import MultiScaleSum, SingleScaleSum

    flat = tr.laplace(scale=2).loss.remove.laws[0].flat_form
    for theta in (-3.0, 0.25, 1.875, 7.5):
        scale, value, error = SingleScaleSum(flat, 9).scaled_delta_at(theta)
        other, halves, _ = MultiScaleSum((flat, flat), (4, 5)).scaled_delta_at(theta)
        assert np.exp(scale) * value == pytest.approx(np.exp(other) * halves, rel=20 * error)


def test_rounded_widths_join_the_slack() -> None:
    from tightrope.accounting.methods.laplace_sum import MultiScaleSum

    flats = tuple(tr.laplace(scale=1, sensitivity=e).loss.remove.laws[0].flat_form for e in (0.7, 0.3, 0.1))
    sums = MultiScaleSum(flats, (2, 3, 4))
    pairs = zip(flats, sums.integer_widths, (2, 3, 4), strict=True)
    moved = sum(n * abs(Fraction(f.epsilon) - Fraction(w) * Fraction(0.7)) for f, w, n in pairs)
    assert 0 < moved <= Fraction(sums.rounding_error_bound) <= Fraction(1e-13)
    assert MultiScaleSum(flats[:1] * 2, (2, 3)).rounding_error_bound == 0


def test_far_out_the_grid_or_chernoff_answers():
    loss = 400 * tr.laplace(scale=1, sensitivity=0.01).loss
    lower, upper = loss.delta_bounds(3.9)
    assert 0 <= lower <= upper < 1e-100
