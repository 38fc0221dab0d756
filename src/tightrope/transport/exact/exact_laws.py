"""Laws over a finite support as whole numbers: what a float says exactly, so that a check leaves no rounding over."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.numerics.arrays import Floats
from tightrope.numerics.laws import probabilities


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


def whole_masses(values: Floats) -> list[int]:
    """Whole numbers in exactly the proportions of non-negative floats, with no common factor 2."""
    mantissas, exponents = np.frexp(values)
    wholes = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    lowest = int(exponents[values > 0].min())
    shifted = [w << (e - lowest) if w else 0 for w, e in zip(wholes, exponents.tolist(), strict=True)]
    common = min((mass & -mass).bit_length() - 1 for mass in shifted if mass)
    return [mass >> common for mass in shifted]
