"""The formulas of the paper, written down from its text; sensitivity 1 unless a width is given."""

from __future__ import annotations

import math
from itertools import product

GDGK = "GDGK"
Setting = tuple[float, float, float]
SETTINGS: tuple[Setting, ...] = tuple(
    product((0.1, 0.5, 1.0, 2.0, 4.0, 8.0), (1e-9, 1e-6, 1e-3, 0.05), (0.5, 1.0, 3.0))
)
"""(ε, δ, Δ): 72 of them, every formula in every regime."""


def odds(epsilon: float, delta: float) -> float:
    """(e^ε − 1)/(2δ)."""
    return math.expm1(epsilon) / (2 * delta)


def end(epsilon: float, delta: float, width: float = 1.0) -> float:
    """A: where the density is cut off."""
    return width / epsilon * math.log1p(odds(epsilon, delta))


def amplitude(epsilon: float, delta: float, width: float = 1.0) -> float:
    """V1 upper."""
    r = odds(epsilon, delta)
    return width / epsilon * (1 - math.log1p(r) / r)


def power(epsilon: float, delta: float, width: float = 1.0) -> float:
    """V2 upper."""
    r = odds(epsilon, delta)
    grown = math.log1p(r)
    return 2 * width**2 / epsilon**2 * (1 - (grown * grown / 2 + grown) / r)


def delta_of(epsilon: float, n: int) -> float:
    """The δ for which Σ_{k<n} a b^k = ½, as Theorems 4 and 5 assume of their integer n."""
    b = math.exp(-epsilon)
    a = (1 - b) / (2 * (1 - b**n))
    return a / b - math.expm1(epsilon) / 2


def least_amplitude(epsilon: float, n: int) -> float:
    """Theorem 4 in its closed form."""
    a, b = _ab(epsilon, n)
    return 2 * a * ((b - b**n) / (1 - b) ** 2 - (n - 1) * b**n / (1 - b))


def least_power(epsilon: float, n: int) -> float:
    """Theorem 5 in its closed form."""
    a, b = _ab(epsilon, n)
    inner = b * (1 - b ** (n - 1)) / (1 - b) ** 2 - (n - 1) * b**n / (1 - b)
    return 2 * a / (1 - b) * (-b + 2 * inner - b * b * (1 - b ** (n - 2)) / (1 - b) - (n - 1) ** 2 * b**n)


def _ab(epsilon: float, n: int) -> tuple[float, float]:
    return (delta_of(epsilon, n) + math.expm1(epsilon) / 2) * math.exp(-epsilon), math.exp(-epsilon)
