"""f-divergences: names, functions, limits where laws differ in their support."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError
from tightrope.numerics.divergences import NAMED, Divergence, resolve_divergence
from tightrope.transport.guarantees import divergences as rational

SLOW = {
    "kl": lambda p, q: p * mpmath.log(p / q),
    "reverse_kl": lambda p, q: q * mpmath.log(q / p),
    "total_variation": lambda p, q: abs(p - q) / 2,
    "chi_squared": lambda p, q: (p - q) ** 2 / q,
    "hellinger": lambda p, q: (mpmath.sqrt(p) - mpmath.sqrt(q)) ** 2,
}


def laws(seed: int, size: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))


@pytest.mark.parametrize("name", sorted(NAMED))
@given(seed=st.integers(0, 10_000))
def test_named_divergences_are_their_sums(name: str, seed: int) -> None:
    p, q = laws(seed)
    with mpmath.workdps(40):
        exact = float(
            sum(SLOW[name](mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(p.tolist(), q.tolist(), strict=True))
        )
    # Sums of the laws are one to a few u, which the shifted terms see.
    assert resolve_divergence(name).divergence_between(p, q) == pytest.approx(exact, rel=1e-13, abs=5e-16)


@pytest.mark.parametrize("name", sorted(NAMED))
@given(seed=st.integers(0, 1000))
def test_names_and_functions_agree(name: str, seed: int) -> None:
    p, q = laws(seed)
    known = NAMED[name]
    assert Divergence("mine", known.f).divergence_between(p, q) == pytest.approx(
        known.divergence_between(p, q), rel=1e-9, abs=1e-13
    )
    assert resolve_divergence(known.f).divergence_between(p, q) == pytest.approx(
        known.divergence_between(p, q), rel=1e-9, abs=1e-13
    )


@pytest.mark.parametrize("name", sorted(NAMED))
def test_limits_at_zero_and_infinity_are_those_of_the_function(name: str) -> None:
    known = NAMED[name]
    for limit, near in [(known.at_zero, known.f(1e-12)), (known.slope, known.f(1e12) / 1e12)]:
        assert near > 20 if limit == math.inf else near == pytest.approx(limit, abs=1e-4)
    assert known.f(1.0) == 0


def test_laws_with_different_support() -> None:
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    found = {name: NAMED[name].divergence_between(p, q) for name in NAMED}
    assert found == {
        "kl": math.inf, "reverse_kl": math.inf, "total_variation": 0.5, "chi_squared": math.inf, "hellinger": 1.0
    }  # fmt: skip
    half = np.array([0.0, 1.0, 0.0])
    assert NAMED["kl"].divergence_between(half, q) == pytest.approx(math.log(2), rel=1e-12)
    with pytest.raises(InputError, match="at_zero="):
        Divergence("mine", lambda t: (t - 1) ** 2).divergence_between(half, q)
    with pytest.raises(InputError, match="slope="):
        Divergence("mine", lambda t: (t - 1) ** 2, at_zero=1.0).divergence_between(q, half)


def test_equal_and_nearly_equal_laws() -> None:
    p = np.array([0.1, 0.2, 0.7])
    assert all(known.divergence_between(p, p) == 0 for known in NAMED.values())
    q = p + np.array([1e-10, -1e-10, 0])
    assert NAMED["kl"].divergence_between(p, q) == pytest.approx(1e-20 / 2 * (1 / 0.1 + 1 / 0.2), rel=1e-5)


def test_unknown_names() -> None:
    for wrong in ("entropy", 3, None):
        with pytest.raises(InputError, match="one of kl"):
            resolve_divergence(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(NAMED))
@given(seed=st.integers(0, 1000))
def test_exact_laws_have_the_same_divergences(name: str, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(1, 1 << 20, (2, 5)).tolist()
    p, q = ([Fraction(w, sum(row)) for w in row] for row in weights)
    floats = [np.array([float(x) for x in law]) for law in (p, q)]
    assert rational.divergence_upper_bound(name, p, q) == pytest.approx(
        NAMED[name].divergence_between(*floats), rel=1e-9
    )


def test_squared_hellinger_is_not_halved() -> None:
    p, q = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    assert NAMED["hellinger"].divergence_between(p, q) == pytest.approx(2 - math.sqrt(2))
    assert NAMED["hellinger"].divergence_between(p, p[::-1]) == 2
