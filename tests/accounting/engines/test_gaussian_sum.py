"""Copies of a discrete Gaussian: the sum, the corrected integral and the exact weights agree, far in the tail too."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import signal

import tightrope as tr
from tightrope.accounting.distributions.base import GaussianForm
from tightrope.accounting.methods.lattice_method import GaussianSumMethod
from tightrope.mechanisms.discrete.integer_tables import gaussian_table


def unreachable() -> None:
    raise AssertionError("the fallback is not needed here")


def unrounded(scale: float, shift: int, count: int) -> GaussianSumMethod:
    """The method for ideal weights, without a fallback."""
    return GaussianSumMethod(GaussianForm(scale, shift, 0.0), count, unreachable)


def definition(scale: float, shift: int, count: int, epsilon: float) -> mpmath.mpf:
    """Sum over integers of (P − e^ε Q)₊ with the densities of N(0, kσ²), from many digits."""
    with mp.workdps(40):
        variance = count * mpf(scale) ** 2
        threshold = Fraction(epsilon) * Fraction(scale) ** 2 / shift - Fraction(count * shift, 2)
        n, total = max(math.ceil(threshold), -math.ceil(12 * mp.sqrt(variance))), mpf(0)
        while True:
            p = mp.exp(-(mpf(n) ** 2) / (2 * variance))
            term = p - mp.exp(mpf(epsilon) - mpf(n + count * shift) ** 2 / (2 * variance))
            if n > max(0, math.ceil(threshold) + 2) and p < total * mpf(10) ** -22:
                return total / mp.sqrt(2 * mp.pi * variance)
            total, n = total + max(term, mpf(0)), n + 1


@pytest.mark.parametrize(
    ("scale", "shift", "count", "epsilon"),
    [
        (10.0, 1, 2, 0.0), (10.0, 1, 2, 0.5), (12.5, 3, 7, 1.0), (10.0, 20, 3, 9.0), (10.0, 1, 2, 2.59),
        (30.0, 1, 10, 0.1), (30.0, 1, 10, 1.7), (20.0, 1, 100, 0.3), (60.0, 3, 10, 0.05), (300.0, 2, 4, 0.01),
        (40.0, 1, 100, 2.0), (333.25, 7, 12, 0.0), (64.0, 1, 16, 0.00390625), (64.0, 64, 16, 8.0), (100.0, 1, 9, 1.11),
    ],
)  # fmt: skip
def test_the_definition_is_inside(scale: float, shift: int, count: int, epsilon: float) -> None:
    lower, upper = unrounded(scale, shift, count).delta(epsilon)
    truth = definition(scale, shift, count, epsilon)
    assert lower <= truth <= upper
    assert upper - lower <= 3e-12 * upper


def test_delta_of_1e_300() -> None:
    """δ may be as small as a double: the sum has no absolute error."""
    lower, upper = unrounded(30.0, 1, 10).delta(3.9)
    assert 1e-304 < lower <= definition(30.0, 1, 10, 3.9) <= upper < 1e-296
    assert upper - lower <= 3e-12 * upper


@pytest.mark.parametrize("case", range(12))
def test_both_formulas_agree(case: int) -> None:
    """Where both apply, the sum of terms and the corrected integral overlap; neither is wide."""
    draw = random.Random(case)
    scale, count, shift = math.exp(draw.uniform(5, 8)), draw.randint(2, 500), draw.choice([1, 1, 2, 5, 40])
    mu = math.sqrt(count) * shift / scale
    variance = Fraction(scale) ** 2
    method = unrounded(scale, shift, count)
    checked = 0
    for _ in range(40):
        epsilon = max(0.0, mu * mu / 2 + draw.uniform(-1, 9) * mu)
        threshold = Fraction(epsilon) * variance / shift - Fraction(count * shift, 2)
        first = math.ceil(threshold)
        gap = float(first - threshold)
        integral = method._corrected_integral(epsilon, float(threshold), gap)
        terms = method._sum_of_terms(first, gap, variance)
        if integral is None or terms is None:
            continue
        checked += 1
        assert max(integral[0], terms[0]) <= min(integral[1], terms[1])
        assert integral[1] - integral[0] <= 2e-12 * integral[1]
    assert checked


@pytest.mark.parametrize("case", range(40))
def test_the_exact_weights_agree(case: int) -> None:
    """The lattice of the table's own weights, with sensitivity above 1 and at kinks, gives overlapping bounds."""
    draw = random.Random(case)
    scale = float(draw.choice([10, 16, 25, draw.uniform(10, 40)]))
    count, shift = round(math.exp(draw.uniform(math.log(2), math.log(1000)))), draw.choice([1, 1, 2, 3, 8])
    (method,) = (count * tr.discrete_gaussian(scale=scale, sensitivity=shift).loss)._method_pair()
    assert isinstance(method, GaussianSumMethod)
    mu = math.sqrt(count) * shift / scale
    epsilon = mu * mu / 2 + draw.uniform(-2, 6) * mu
    if draw.random() < 0.3:
        epsilon = round(epsilon * scale**2 / shift) * shift / scale**2
    epsilon = min(epsilon, 200.0)
    lower, upper = method.delta(epsilon)
    least, most = method.fallback().delta(epsilon)
    assert max(lower, least) <= min(upper, most)


@pytest.mark.parametrize(("scale", "count"), [(1.0, 2), (1.0, 3), (1.0, 8), (0.8, 5), (2.0, 12), (3.0, 100)])
def test_sums_have_a_normal_density(scale: float, count: int) -> None:
    """P(S = n) / g(n) has period k and is within T of 1, as the proof says (here at small scales, where T matters)."""
    reach = math.ceil(14 * scale)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    single, probabilities = weights / weights.sum(), np.ones(1)
    for _ in range(count):
        probabilities = signal.convolve(probabilities, single, method="direct")
    n = np.arange(len(probabilities)) - count * reach
    middle = np.abs(n) <= 4 * scale * math.sqrt(count)
    ratio = probabilities[middle] * math.sqrt(2 * math.pi * count) * scale
    ratio /= np.exp(-(n[middle] ** 2) / (2 * count * scale**2))
    bound = (1 + 2 * math.exp(-((math.pi * scale) ** 2)) / (1 - math.exp(-3 * (math.pi * scale) ** 2))) ** count
    assert np.all(ratio <= bound + 1e-12)
    assert np.all(ratio >= (2 - bound) / bound - 1e-12)
    if middle.sum() > count:
        np.testing.assert_allclose(ratio[count:], ratio[:-count], rtol=1e-11)
    if scale <= 1:
        assert np.max(np.abs(ratio - 1)) > 1e-9


@pytest.mark.parametrize("scale", [0.1, 0.7, 3.0, 10.0, 33.3])
def test_the_table_is_as_near_as_stated(scale: float) -> None:
    table = gaussian_table(scale)
    form = table.atoms_for_shift(1).gaussian_form
    assert form is not None
    with mp.workdps(80):
        reach = math.ceil(20 * scale) + 2
        weights = [mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2)) for x in range(reach)]
        total = 2 * sum(weights) - 1
        given = [table.center, *table.half, *[0] * reach][:reach]
        gaps = [abs(mpf(w) / 2**128 - p / total) for w, p in zip(given, weights, strict=True)]
        distance = (2 * sum(gaps) - gaps[0]) / 2
        assert 0 < distance <= form.distance
        assert form.distance <= 50 * distance + mpf(2) ** -125


def test_a_planted_error_is_seen() -> None:
    """A density with the wrong scale, or a threshold that is off by a cell, leaves the bounds."""
    truth = definition(30.0, 1, 10, 0.1)
    for method, epsilon in ((unrounded(30.0 * (1 + 1e-10), 1, 10), 0.1), (unrounded(30.0, 1, 10), 0.1 + 1e-11)):
        lower, upper = method.delta(epsilon)
        assert not lower <= truth <= upper


def test_tables_of_documents_and_other_scales_use_the_exact_weights() -> None:
    table = gaussian_table(20.0)
    copy = type(table).from_packed(table.packed())
    assert copy == table
    assert (5 * copy.loss(1)).method == "lattice"
    assert (5 * table.loss(1)).method == "exact sum"
    assert (5 * tr.discrete_gaussian(scale=9.0).loss).method == "lattice"
    mixed = 5 * table.loss(1) + gaussian_table(20.0).loss(2)
    assert mixed.method == "lattice"
    merged = 5 * table.loss(1) + 3 * gaussian_table(20.0).loss(1)
    assert merged.method == "exact sum"
    assert merged.delta(0.3) == pytest.approx((8 * copy.loss(1)).delta(0.3), rel=1e-9)


@pytest.mark.filterwarnings("ignore::tightrope.errors.PrecisionWarning")
def test_tiny_deltas_also_use_the_exact_weights() -> None:
    """Below 2^-128 the rounding of the weights matters: the bounds include it, and are not wider than the lattice's."""
    table = gaussian_table(20.0)
    loss, exact = 6 * table.loss(1), 6 * type(table).from_packed(table.packed()).loss(1)
    for epsilon in (1.5, 2.5, 30.0):
        (lower, upper), (least, most) = loss.delta_bounds(epsilon), exact.delta_bounds(epsilon)
        assert least <= lower <= upper <= most
    assert loss.delta(1.5) < 1e-33
    assert loss.delta(math.inf) == exact.delta(math.inf) > 0


@pytest.mark.parametrize(("count", "scale", "epsilon"), [(50, 5000, 0.003), (50, 17_000, 0.001), (10**6, 4e4, 0.05)])
def test_large_scales_are_close_to_the_continuous_gaussian(count: int, scale: float, epsilon: float) -> None:
    """It costs at least nearly the Gaussian of its own scale and at most the one of scale √(σ² − ½)."""
    loss = count * tr.discrete_gaussian(scale=scale).loss
    lower, upper = loss.delta_bounds(epsilon)
    assert upper - lower <= 2e-12 * upper
    narrower = count * tr.gaussian(scale=math.sqrt(scale**2 - 0.5)).loss
    assert upper <= narrower.delta(epsilon)
    assert lower == pytest.approx((count * tr.gaussian(scale=scale).loss).delta(epsilon), rel=1e-7)
    assert loss.epsilon(upper) == pytest.approx(epsilon, rel=1e-9)
    assert loss.delta(-epsilon) == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * upper, rel=1e-12)
