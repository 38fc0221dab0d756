"""log(1 + z) of small complex numbers with all digits: numpy's goes through |1 + z| and keeps only absolute ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEARLY = -1 + 1e-16
"""At z = −1 the logarithm is cut off at −18: finite, so that a multiple of it is no NaN."""


def log1p(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """log(1 + z) = ½ log(1 + 2a + a² + b²) + i atan2(b, 1 + a), z = a + ib, to a few units in the last place.

    >>> round(float(log1p(np.array([1e-9 + 0j]))[0].real) * 1e9, 12)
    0.9999999995
    """
    a, b = z.real, z.imag
    result = np.empty_like(z)
    result.real = np.log1p(np.maximum(a * (2 + a) + b * b, NEARLY)) / 2
    result.imag = np.arctan2(b, 1 + a)
    return result
