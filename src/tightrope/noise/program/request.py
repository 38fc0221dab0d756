"""What the least noise is asked for, checked once: points of a profile, and a shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from tightrope.documents.budget import Budget, at_most
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

Shape = Literal["unimodal", "any"]

CERTAIN = 16.0
"""A loss beyond this many nats, odds of nine million to one, counts as certain failure where noise is made: it costs
less than a millionth, and solvers take no much larger ones."""


@dataclass(frozen=True, slots=True)
class Promise:
    """δ(ε_i) ≤ δ_i for all points, ε_i ≥ 0 ascending; (0, η) is a total variation of η. ``main`` is what is stated.

    Decimals are rounded down: what is kept is at least what was asked.
    """

    points: tuple[tuple[float, float], ...]
    main: tuple[float, float]
    cap: tuple[float, float] | None = None
    """The point that stands for the cap on certain failure: noise keeps it, bounds do without."""

    @classmethod
    def of(cls, budget: Budget) -> Self:
        """The budget's points, without those that others imply; its cap on certain failure, where no point implies it,
        is the point (``CERTAIN``, δ).

        Raises ``InputError`` for anything but a budget of points, and where no noise can keep it.

        >>> Promise.of(Budget(epsilon=1, delta=0.5, total_variation=0.25)).points
        ((0.0, 0.25),)
        """
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
        asked, cap = list(budget.rounded), at_most(budget.delta)
        implied = any(delta <= cap for _, delta in asked)
        certain = None if implied else (max(CERTAIN, *(epsilon for epsilon, _ in asked)), cap)
        asked += [certain] if certain else []
        if (0.0, 0.0) in asked:
            raise InputError("epsilon", 0.0, "above 0 where delta = 0", "no noise keeps it; try epsilon=1")
        main = min(asked, key=lambda point: (point[1], point[0]))
        return cls(tuple(sorted({point for point in asked if not _implied(point, asked)})), main, certain)

    @property
    def endless(self) -> bool:
        """Whether the noise has no largest value: some δ_i = 0."""
        return any(delta == 0 for _, delta in self.points)

    @property
    def uncapped(self) -> Self:
        """Without the point that stands for the cap: less is asked, so a bound for this is one for the budget."""
        return replace(self, points=tuple(p for p in self.points if p != self.cap) or self.points, cap=None)

    @property
    def slowest(self) -> float:
        """The least positive ε_i, 0 where there is none: weights fall by it a sensitivity, about."""
        return min((epsilon for epsilon, _ in self.uncapped.points if epsilon > 0), default=0.0)


def _implied(point: tuple[float, float], asked: list[tuple[float, float]]) -> bool:
    """Whether another point (ε, δ) alone implies it: δ' + (1−δ') tanh(ε'/2) ≤ δ at ε = 0, else ε' ≤ ε and δ' ≤ δ."""
    others = [other for other in asked if other != point]
    if point[0] == 0:
        return any(d + (1 - d) * math.tanh(e / 2) * (1 + 1e-15) < point[1] for e, d in others)
    return any(e <= point[0] and d <= point[1] for e, d in others)


def shape_of(shape: object) -> Shape:
    """Which shape was asked for; raises ``InputError`` for anything else."""
    if shape == "unimodal":
        return "unimodal"
    if shape == "any":
        return "any"
    raise InputError("shape", shape, "'unimodal' or 'any'", "unimodal noise usually costs less than a percent more")


# What an error costs: any non-decreasing function of its size.

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
