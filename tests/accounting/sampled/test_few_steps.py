"""Two steps of a sampled Gaussian: one integral over the first loss of the closed form of the second."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate
from scipy.special import ndtr

import tightrope as tr


def two_steps(scale, rate, epsilon):
    """E δ₁(ε − L) of removing a record, by quadrature over the first outcome in units of the noise."""
    law = tr.gaussian(scale=scale).loss.poisson_sample(rate).remove.laws[0]
    mu = 1 / scale

    def integrand(x):
        density = ((1 - rate) * math.exp(-(x**2) / 2) + rate * math.exp(-((x - mu) ** 2) / 2)) / math.sqrt(2 * math.pi)
        return density * float(law.profile(epsilon - law.loss_at_outcome(np.array([x])))[0])

    edges = np.linspace(-12, 12 + mu, 200)
    parts = [integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pairwise(edges)]
    return math.fsum(parts)


@pytest.mark.parametrize(
    ("scale", "rate", "epsilon", "width"),
    [
        (4.05, 0.01, 0.01877, 1e-8),
        (8.0, 0.1, 0.05, 1e-8),
        (2.0, 0.02, 0.1, 1e-8),
        (1.0, 0.3, 1.0, 1e-8),
        (4.05, 0.01, 0.0302, 1e-5),  # 9e-11: 1.1e-6 wide
        (6.0, 1e-3, 0.002, 1e-3),  # 1.4e-13: the saddle is far from what counts
    ],
)
def test_two_steps_are_known(scale, rate, epsilon, width):
    bounds = (2 * tr.gaussian(scale=scale).loss.poisson_sample(rate)).delta_bounds(epsilon)
    assert bounds.upper - bounds.lower <= width * bounds.upper
    truth = two_steps(scale, rate, epsilon)
    assert bounds.lower * (1 - 1e-9) <= truth <= bounds.upper * (1 + 1e-9)


def test_the_normal_law_of_the_oracle():
    """The oracle itself, where two steps are one: at rate one δ is that of a Gaussian with √2 μ."""
    mu = math.sqrt(2) / 3
    exact = float(ndtr(mu / 2 - 1.0 / mu) - math.e * ndtr(-mu / 2 - 1.0 / mu))
    assert two_steps(3.0, 1 - 1e-15, 1.0) == pytest.approx(exact, rel=1e-10)
