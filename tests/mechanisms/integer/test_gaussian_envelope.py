"""The envelope of the large discrete Gaussian: every weight and every chance against 60 digits."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from tightrope.mechanisms.discrete.gaussian_sampling import Envelope
from tightrope.randomness.alias_sampler import TOTAL

SCALES = [64.0, 64.7, 127.999, 128.0, 1000.0, 12345.678, 1e5 + 0.1, 2.0**29, 1e9 - 0.5, 1e9]
ENVELOPES = {scale: Envelope(scale) for scale in SCALES}
scales = st.sampled_from(SCALES)


def rho(scale, x):
    return mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2))


def real(fraction):
    return mpf(fraction.numerator) / fraction.denominator


@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_covers_its_points(scale):
    envelope = ENVELOPES[scale]
    weights, width = envelope._cell_weights, 1 << envelope.cell_bits
    assert sum(weights) == TOTAL
    assert len(weights) == envelope.cell_count + 2 <= 2048
    with mp.workdps(60):
        for j in range(envelope.cell_count):
            needed = envelope.weight_scale * rho(scale, j * width)
            assert needed <= weights[j] <= needed * (1 + mpf(2) ** -60)
        lift = 2 << (envelope.tail_bits - envelope.cell_bits)
        needed = envelope.weight_scale * lift * rho(scale, envelope.tail_start)
        assert needed <= weights[-2] <= needed * (1 + mpf(2) ** -60)
    assert 0 <= weights[-1] < TOTAL >> 100  # hardly anything is spare


@pytest.mark.parametrize("scale", SCALES)
def test_sizes(scale):
    envelope = ENVELOPES[scale]
    width, long = 1 << envelope.cell_bits, 1 << envelope.tail_bits
    assert 64 * width <= scale < 128 * width * (1 + 1 / 64)
    assert 8 * scale <= envelope.tail_start <= 8 * scale + 2 * width + 8
    assert envelope.tail_start * long >= 0.6932 * scale**2 > mp.log(2) * scale**2
    largest_fall = real(
        envelope.density_exponent(envelope.tail_start - 1) - envelope.density_exponent(envelope.tail_start - width)
    )
    assert largest_fall <= mpf(1) / 7


@given(scales, st.floats(0, 1, exclude_max=True))
@settings(deadline=None)
def test_points_in_cells_are_kept_in_proportion(scale, where):
    envelope = ENVELOPES[scale]
    x = int(where * envelope.tail_start)
    low, high = envelope.acceptance_bounds(x, 50)
    weight = envelope._cell_weights[x >> envelope.cell_bits]
    with mp.workdps(60):
        assert real(low) <= envelope.weight_scale * rho(scale, x) / weight <= real(high) <= 1 + mpf(10) ** -40
    assert high - low <= Fraction(1, 10**44)


@given(scales, st.integers(0, 12), st.floats(0, 1, exclude_max=True))
@settings(deadline=None)
def test_points_in_the_tail_are_kept_in_proportion(scale, period, where):
    envelope = ENVELOPES[scale]
    long = 1 << envelope.tail_bits
    x = envelope.tail_start + period * long + int(where * long)
    low, high = envelope.tail_acceptance_bounds(x, period, 50)
    with mp.workdps(60):
        proposed = mpf(envelope._cell_weights[-2]) * mpf(2) ** -(period + 1) * (1 << envelope.cell_bits) / long
        assert real(low) * proposed <= envelope.weight_scale * rho(scale, x) <= real(high) * proposed
        assert real(high) <= 1 + mpf(10) ** -40
