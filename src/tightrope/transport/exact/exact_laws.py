"""Laws over a finite support as whole numbers: what a float says exactly, so that a check leaves no rounding over."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

SUM_TOLERANCE = 1e-9
"""How far from one a sum may be: such a law is renormalised, any other is refused."""


@dataclass(frozen=True, slots=True)
class Law:
    """P(x) = masses[x] / total, exactly; every float is a whole number over a power of two."""

    masses: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, name: str, values: ArrayLike, size: int | None = None) -> Self:
        """From probabilities of shape [n], divided by their exact sum; raises ``InputError`` unless it is 1 ± 1e−9.

        >>> Law.of("law", [0.25, 0.75])
        Law(masses=(1, 3), total=4)
        """
        masses = whole_masses(probabilities(name, values, size))
        return cls(tuple(masses), sum(masses))

    def __len__(self) -> int:
        return len(self.masses)

    def __getitem__(self, x: int) -> Fraction:
        return Fraction(self.masses[x], self.total)

    @property
    def floats(self) -> Floats:
        """The nearest doubles, shape [n]."""
        return np.array([mass / self.total for mass in self.masses])

    @property
    def support(self) -> NDArray[np.int64]:
        """Where the mass is positive."""
        return np.flatnonzero(np.array([mass > 0 for mass in self.masses]))


def probabilities(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """``values`` as floats of shape [n]; raises ``InputError`` unless all are ≥ 0 and they add up to 1 ± 1e−9."""
    law = _numbers(name, values)
    if size is not None and len(law) != size:
        raise InputError(name, f"{len(law)} probabilities", f"of {size} probabilities, one for each point of the cost")
    if not bool(np.all(law >= 0)):
        raise InputError(name, float(law[~(law >= 0)][0]), "made of probabilities >= 0", "NaN is no probability")
    total = float(np.sum(law))
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise InputError(f"sum of {name}", total, f"1, to {SUM_TOLERANCE:g}", "divide counts by their sum")
    return law


def array_of(name: str, values: ArrayLike, expected: str) -> NDArray[Any]:
    """``values`` as an array; raises ``InputError``, without them, for lists of lists of unequal lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(name, "lists of unequal lengths", expected) from None


def _numbers(name: str, values: ArrayLike) -> Floats:
    expected = "a list of probabilities, one a point of the support"
    array = array_of(name, values, expected)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise InputError(name, f"{array.dtype} of shape {array.shape}", expected, "lists of lists are no laws")
    if not len(array):
        raise InputError(name, values, expected, "an empty support holds no law")
    return array.astype(np.float64)


def whole_masses(values: Floats) -> list[int]:
    """Whole numbers in exactly the proportions of non-negative floats, with no common factor 2."""
    mantissas, exponents = np.frexp(values)
    wholes = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    lowest = int(exponents[values > 0].min())
    shifted = [w << (e - lowest) if w else 0 for w, e in zip(wholes, exponents.tolist(), strict=True)]
    common = min((mass & -mass).bit_length() - 1 for mass in shifted if mass)
    return [mass >> common for mass in shifted]
