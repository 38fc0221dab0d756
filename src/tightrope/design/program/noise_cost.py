"""What an error costs: any non-decreasing function of its size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

GROWTH = 16.0
"""A cost is taken to grow at most by this factor where the error doubles (like x⁴), where noise never ends."""
DOUBLINGS = 12
NAMED: dict[str, tuple[Callable[[float], float], int]] = {
    "absolute": (lambda size: size, 1),
    "squared": (lambda size: size * size, 2),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """φ(|x|), non-decreasing and ≥ 0; ``power`` is p for |x|^p, None for any other function.

    That a callable does not decrease is checked wherever it is evaluated, and taken on trust beyond.
    """

    name: str
    function: Callable[[float], float] = field(repr=False)
    power: int | None

    @classmethod
    def of(cls, cost: Any) -> Self:
        """From "absolute", "squared" or a function; raises ``InputError`` for anything else.

        >>> Cost.of("squared").at(np.array([0.0, 3.0])).tolist()
        [0.0, 9.0]
        """
        if isinstance(cost, str) and cost in NAMED:
            return cls(cost, *NAMED[cost])
        if not callable(cost):
            raise InputError("cost", cost, "'absolute', 'squared' or a function of |x|", "try cost=lambda x: x**1.5")
        return cls(str(getattr(cost, "__name__", "callable")), cost, None)

    def at(self, sizes: Floats) -> Floats:
        """φ at ascending sizes ≥ 0, shape [n]; raises ``InputError`` where it decreases, or is no number ≥ 0."""
        if self.power is not None:
            return np.asarray(sizes**self.power, dtype=np.float64)
        values = np.array([self._value(size) for size in sizes.tolist()], dtype=np.float64)
        falls = np.flatnonzero(~(np.diff(values) >= 0))
        if len(falls):
            where = float(sizes[falls[0]])
            raise InputError(
                "cost", where, f"non-decreasing: it falls after |x| = {where:g}", "larger errors cost no less"
            )
        return values

    def scaled(self, width: float) -> Cost:
        """The cost of x as φ(width · x)."""
        return Cost(self.name, lambda size: self.function(width * size), None)

    def check_growth(self, size: float) -> None:
        """Raises ``InputError`` where φ more than sixteenfolds as the error doubles, from ``size`` on."""
        if self.power is not None:
            return
        values = self.at(size * np.exp2(np.arange(DOUBLINGS, dtype=np.float64)))
        if not np.all(values[1:] <= GROWTH * values[:-1]):
            raise InputError("cost", self.name, "one that grows at most like x**4 where delta = 0", "ask for a delta")

    def _value(self, size: float) -> float:
        try:
            value = float(self.function(size))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InputError("cost", self.name, f"a function with a number at |x| = {size:g}", str(error)) from None
        if not 0 <= value < math.inf:
            raise InputError("cost", value, f"a finite number >= 0 at |x| = {size:g}")
        return value
