"""Lifted relations are decided exactly: against Strassen's condition for every set of points, in rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tightrope.errors import InputError
from tightrope.transport.exact.plan import ExactDistribution, least_mass_outside
from tightrope.transport.guarantees.distribution_checks import lifted, mass_outside


def strassen(allowed: np.ndarray, source: ExactDistribution, target: ExactDistribution) -> Fraction:
    """max over sets of sources of their mass less that of all their neighbors."""
    n, m = allowed.shape
    parts = chain.from_iterable(combinations(range(n), size) for size in range(n + 1))
    surplus = (
        sum((source[x] for x in part), Fraction(0))
        - sum((target[y] for y in range(m) if any(allowed[x, y] for x in part)), Fraction(0))
        for part in parts
    )
    return max(surplus)


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_the_least_mass_outside_is_strassens(seed: int, n: int, m: int, helped: bool) -> None:
    rng = np.random.default_rng(seed)
    allowed = rng.random((n, m)) < 0.5
    source, target = (ExactDistribution.from_probabilities("law", rng.dirichlet(np.full(size, 0.3))) for size in (n, m))
    guess = csr_array(rng.dirichlet(np.ones(n * m)).reshape(n, m)) if helped else csr_array((n, m))
    wanted = strassen(allowed, source, target)
    assert least_mass_outside(allowed, source, target, guess) == wanted
    assert mass_outside(allowed, source.float_masses, target.float_masses) == pytest.approx(float(wanted), abs=1e-15)


def test_a_trace_of_mass_outside_is_not_lifted() -> None:
    """With 1e−10 of the mass elsewhere, the largest divergence of two laws related by equality is infinite."""
    same = np.eye(2, dtype=bool)
    assert not lifted(same, [1.0, 0.0], [1 - 1e-10, 1e-10])
    assert lifted(same, [1.0, 0.0], [1 - 1e-10, 1e-10], outside=1e-9)
    assert not lifted(same, [0.5, 0.5], [0.5 + 2**-53, 0.5 - 2**-53])
    with pytest.raises(InputError, match="outside"):
        lifted(same, [0.5, 0.5], [0.5, 0.5], outside=-1)


def test_laws_with_room_are_lifted_whatever_their_roundings() -> None:
    rng = np.random.default_rng(8)
    near = np.abs(np.subtract.outer(np.arange(60), np.arange(60))) <= 20
    for _ in range(10):
        source, target = rng.dirichlet(np.full(60, 50.0), 2)
        assert lifted(near, source, target)
