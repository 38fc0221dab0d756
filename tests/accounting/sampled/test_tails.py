"""Tails that are set apart: each moment beside its exact value, and body and tail beside the whole law."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian, tail_cutoff
from tightrope.accounting.distributions.subset import SubsetGaussian
from tightrope.accounting.methods.grid import compose_on_grid

SCALES = st.floats(math.log(0.3), math.log(8)).map(math.exp)
RATES = st.floats(math.log(1e-6), math.log(0.95)).map(math.exp)
MASSES = st.floats(-90, -3).map(lambda power: 10.0**power)


def exact_tail(mu: float, rate: float, cut: float, power: int) -> mp.mpf:
    """∫ φ g^p beyond the cut for whole p, term by term."""
    with mp.workdps(60):
        m, q, c = mp.mpf(mu), mp.mpf(rate), mp.mpf(cut)
        terms = (
            mp.binomial(power, k) * (1 - q) ** (power - k) * q**k * mp.exp((k * k - k) * m * m / 2)
            * mp.erfc((c - k * m) / mp.sqrt(2)) / 2
            for k in range(power + 1)
        )  # fmt: skip
        return mp.log(mp.fsum(terms))


@settings(max_examples=60, deadline=None)
@given(SCALES, RATES, MASSES, st.integers(2, 300))
def test_a_tail_is_all_there_wherever_its_peak_is(scale, rate, mass, power):
    """Beside the whole law next to nothing, a peak far beyond the cut may hold nearly all of the tail."""
    mu, cut = 1 / scale, tail_cutoff(mass, 1 / scale, rate)
    found, error = PoissonGaussian(mu, rate, remove=True, cut=cut).log_tail_integral(np.array([complex(power - 1)]))
    assert abs(float(found[0].real - exact_tail(mu, rate, cut, power))) <= error[0] < 1e-8


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([PoissonGaussian, SubsetGaussian]), SCALES, RATES, MASSES, st.floats(0.01, 3), st.floats(0.0, 3))
def test_body_and_tail_are_the_whole(law, scale, rate, mass, c, y):
    whole = law(1 / scale, rate, True) if law is PoissonGaussian else law(1 / scale, rate)
    body = replace(whole, cut=tail_cutoff(mass, whole.mu, rate))
    z = np.array([complex(c, y)])
    (total, off), (inner, lost), (outer, gone) = (
        whole.enclose_cumulant(z),
        body.enclose_cumulant(z),
        body.log_tail_integral(z),
    )
    top = max(total[0].real, inner[0].real, outer[0].real)
    one, two, three = (np.exp(value[0] - top) for value in (total, inner, outer))
    errors = [abs(size) * math.expm1(min(error[0], 700.0)) for size, error in ((one, off), (two, lost), (three, gone))]
    assert abs(two + three - one) <= sum(errors) * (1 + 1e-9) + 1e-15


def test_more_copies_hide_no_less():
    """Of many copies the mass of the tails was off by 2e-5 of itself: 15 had 1 − δ a thousand times that of 12."""
    one = tr.gaussian(scale=0.13331106585917915).loss.subset_sample(9, 10)
    assert (12 * one).delta_bounds(0.031).lower <= (15 * one).delta(0.031)


@pytest.mark.parametrize("epsilon", [2.0, 2.5, 2.78, 3.0])
def test_far_out_one_step_does_it(epsilon):
    """Six sampled steps at δ of 1e-200 and less: the loss comes from one of them, and the bounds do not contradict."""
    step = tr.gaussian(scale=4.6).loss.poisson_sample(0.00801)
    found, single = (6 * step).delta_bounds(epsilon), step.delta_bounds(epsilon)
    assert 6 * single.lower < found.lower <= found.upper < 10 * single.upper
    assert found.upper - found.lower < 1e-7 * found.upper


@pytest.mark.parametrize("epsilon", [40.0, 700.0, 1e5])
@pytest.mark.parametrize(
    "loss",
    [
        3 * tr.gaussian(scale=11.17).loss.poisson_sample(0.5),
        3 * tr.gaussian(scale=10.0).loss.poisson_sample(0.999),
        10**6 * tr.gaussian(scale=97.6).loss.subset_sample(1, 1000),
    ],
    ids=["half", "nearly all", "subset"],
)
def test_beyond_every_moment_a_bound_is_left(loss, epsilon):
    lower, upper = loss.delta_bounds(epsilon)
    assert 0 <= lower <= upper < 1e-30


def test_the_masses_of_very_many_copies_do_not_get_lost():
    """Each lost 1e-15 by rounding, ten thousand together 1e-11 of an upper bound on δ."""
    step = tr.truncated_laplace(epsilon=10.741972569635182, delta=2.6133528692199672e-12).loss.poisson_sample(0.5)
    loss = 10_000 * step
    for points in (32, 256):
        assert compose_on_grid(loss.remove, points).delta(16239.8)[1] >= 1 - 1e-15
