"""log(1 + z) of complex numbers with all digits: numpy's goes through |1 + z| and keeps only absolute ones near 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEAR_MINUS_ONE = -0.75
"""Where |1 + z|² − 1 is below this, |1 + z| itself has more digits."""
VANISHING = 1e-300
"""|1 + z| is taken as no less: the logarithm stays finite, so that a multiple of it is no NaN."""


def log1p(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """log(1 + z) = ½ log(1 + 2a + a² + b²) + i atan2(b, 1 + a), z = a + ib, to a few units in the last place.

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
