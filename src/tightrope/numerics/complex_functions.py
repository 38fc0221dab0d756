"""e^z − 1, e^z − 1 − z and log(1 + a) − a of complex numbers, accurate relative to the result near 0."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tightrope.numerics.arrays import Complexes, Floats

Numbers = TypeVar("Numbers", Floats, Complexes)
EXPONENTIAL_SERIES_WITHIN = 0.5
"""Below this modulus the exponential's remainder is summed as a series."""
EXPONENTIAL = 1 / np.array([math.factorial(n) for n in range(15, 1, -1)])
LOGARITHM_SERIES_WITHIN = 0.25
"""The series of the logarithm is used below this |z|."""
LOGARITHM = np.array([(-1) ** (n + 1) / n for n in range(27, 1, -1)])


def expm1(z: Complexes) -> Complexes:
    """Return e^z − 1, to a few units in the last place of its modulus, by products of real functions.

    >>> complex(expm1(np.array([1e-20 + 1e-20j]))[0]) == 1e-20 + 1e-20j
    True
    """
    growth, half = np.expm1(z.real), z.imag / 2
    sine = np.sin(half)
    result = np.empty(z.shape, dtype=np.complex128)
    result.real = growth - 2 * (1 + growth) * sine**2
    result.imag = 2 * (1 + growth) * sine * np.cos(half)
    return result


def expm1_minus_argument(z: Complexes, exp_minus_one: Complexes) -> Complexes:
    """Return e^z − 1 − z, shape [...], from z and e^z − 1.

    >>> z = np.array([1e-9j])
    >>> round(float(expm1_minus_argument(z, expm1(z))[0].real) * 1e18, 12)
    -0.5
    """
    near = np.abs(z.real) + np.abs(z.imag) < EXPONENTIAL_SERIES_WITHIN
    result = np.asarray(exp_minus_one - z)
    result[near] = _horner_series(EXPONENTIAL, z[near])
    return result


def real_expm1_minus_argument(x: Floats, exp_minus_one: Floats) -> Floats:
    """Return e^x − 1 − x for real x, shape [...], from x and e^x − 1."""
    near = np.abs(x) < EXPONENTIAL_SERIES_WITHIN
    result = np.asarray(exp_minus_one - x)
    result[near] = _horner_series(EXPONENTIAL, x[near])
    return result


def log1p_minus_argument(a: Complexes, log: Complexes) -> Complexes:
    """Return log(1 + a) − a, shape [...], from a and ``log`` = log(1 + a)."""
    near = np.abs(a.real) + np.abs(a.imag) < LOGARITHM_SERIES_WITHIN
    result = np.asarray(log - a)
    result[near] = _horner_series(LOGARITHM, a[near])
    return result


def _horner_series(coefficients: Floats, x: Numbers) -> Numbers:
    """Return x² times the polynomial [k], by Horner's scheme in place."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:].tolist():
        total *= x
        total += coefficient
    total *= x
    total *= x
    return total


# numpy's log(1 + z) of complex numbers goes through |1 + z|: near 0 its error is small only absolutely.

NEAR_MINUS_ONE = -0.75
"""If |1 + z|² − 1 is below this, |1 + z| is more accurate and is used instead."""
VANISHING = 1e-300
"""Lower bound on |1 + z|: it keeps the logarithm finite, so that a multiple of it is not NaN."""


def log1p(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return log(1 + z) = ½ log(1 + 2a + a² + b²) + i atan2(b, 1 + a), z = a + ib, to a few units in the last place.

    Near z = −1 the real part is log |1 + z|, off by no more than the roundings of 1 + z.

    >>> round(float(log1p(np.array([1e-9 + 0j]))[0].real) * 1e9, 12)
    0.9999999995
    """
    a, b = z.real, z.imag
    beyond = a * (2 + a) + b * b
    result = np.empty_like(z)
    result.real = np.log1p(np.maximum(beyond, NEAR_MINUS_ONE)) / 2
    small = beyond < NEAR_MINUS_ONE
    if np.any(small):
        result.real[small] = np.log(np.maximum(np.hypot(1 + a[small], b[small]), VANISHING))
    result.imag = np.arctan2(b, 1 + a)
    return result


def power_by_squaring(base: Complexes, count: int) -> Complexes:
    """Return base^count, shape [...], by repeated squaring: at most 2 log₂ count products, so 2 count roundings."""
    result = None
    while True:
        if count & 1:
            result = base if result is None else result * base
        count >>= 1
        if not count:
            return np.ones_like(base) if result is None else result
        base = base * base
