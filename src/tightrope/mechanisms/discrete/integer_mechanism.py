"""Mechanisms with integer noise, defined by a table of weights."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.checks import check_integer
from tightrope.randomness.bits import Source

Integers = NDArray[np.int64] | NDArray[np.object_]

WIDEST_SUMMAND = 1 << 62
"""Sums of two numbers below this fit into 64 bits; larger ones become Python integers."""


def add_noise(value: Any, noise: Integers) -> Any:
    """Return value + noise of the same size: an int for an int, an array for an array of integers; never overflows.

    Raises ``InputError`` for other types: floats have no exact sum.
    """
    if isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)):
        return int(value) + int(noise[0])
    wholes = _require_integers(value)
    small = _largest_magnitude(wholes) < WIDEST_SUMMAND and _largest_magnitude(noise) < WIDEST_SUMMAND
    kind = np.int64 if small else np.object_
    total: Integers = wholes.astype(kind) + noise.astype(kind).reshape(wholes.shape)  # type: ignore[operator]
    return total


def count_entries(value: Any) -> int:
    """Return the number of noise draws for ``value``; raises ``InputError`` unless it consists of integers."""
    if isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)):
        return 1
    return _require_integers(value).size


def _require_integers(value: Any) -> NDArray[Any]:
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value
    raise InputError(
        "value", value, "an integer or a numpy array of integers", "round to fixed point first: floor(x / unit + 0.5)"
    )


def _largest_magnitude(values: NDArray[Any]) -> int:
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


class IntegerMechanism(Mechanism):
    """A mechanism backed by one table: its privacy, its errors and its samples come from the same integers.

    ``table`` is the distribution of the noise, ``sensitivity`` the largest change of the true answer that the loss
    covers.
    """

    __slots__ = ()

    table: NoiseTable
    sensitivity: int

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss that dominates every shift 1..sensitivity."""
        return self.table.loss(self.sensitivity)

    @property
    def mean_absolute_error(self) -> float:
        """E|X|, correctly rounded from the exact fraction."""
        return self.table.mean_absolute

    @property
    def mean_squared_error(self) -> float:
        """E X², correctly rounded from the exact fraction."""
        return self.table.mean_squared

    @property
    def worst_error(self) -> float:
        """The largest |X|; ∞ if the tail is infinite."""
        return self.table.largest_magnitude

    def quantile(self, p: float) -> int:
        """Return the smallest x with P(X ≤ x) ≥ p, exactly; 1e−30 ≤ p < 1."""
        return self.table.quantile(p)

    def half_width(self, confidence: float) -> int:
        """Return the smallest w with P(|X| ≤ w) ≥ confidence, exactly."""
        return self.table.half_width(confidence)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """Return ``size`` independent draws of X, shape [size], exactly from the weights."""
        return self.table.sample(size, randomness)

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Return value + X for an integer or an array of integers; raises ``InputError`` for other types."""
        return add_noise(value, self.sample(count_entries(value), randomness))


@dataclass(frozen=True, slots=True)
class TableMechanism(IntegerMechanism):
    """A mechanism from any table.

    >>> from tightrope.mechanisms.discrete.integer_tables import optimal_table
    >>> TableMechanism(optimal_table([(1, 1e-6)])).worst_error
    14.0
    """

    table: NoiseTable
    sensitivity: int = 1

    def __post_init__(self) -> None:
        check_integer("sensitivity", self.sensitivity)
