"""Validated requests for least noise: points of a privacy profile, and a shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from tightrope.documents.budget import Budget, float_at_most
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

Shape = Literal["unimodal", "any"]

CERTAIN_LOSS = 16.0
"""In noise design a loss above this many nats (odds of nine million to one) counts as infinite: the noise grows by less
than a millionth, and solvers cannot handle much larger losses."""


@dataclass(frozen=True, slots=True)
class PrivacyTarget:
    """The points (ε_i, δ_i) that noise must meet, ε_i ≥ 0 ascending; (0, η) is a total variation of η.

    ``main_point`` is the one at which certificates state the guarantee.

    Decimals are rounded down: the realized guarantee is at least as strong as requested.
    """

    points: tuple[tuple[float, float], ...]
    main_point: tuple[float, float]
    cap_point: tuple[float, float] | None = None
    """The point of the cap on infinite loss: noise meets it, lower bounds omit it."""

    @classmethod
    def from_budget(cls, budget: Budget) -> Self:
        """Return the budget's points, without those that others imply.

        The cap on infinite loss, if no point implies it, is the point (``CERTAIN_LOSS``, δ).

        Raises ``InputError`` for anything but a budget of points, and for infeasible budgets.

        >>> PrivacyTarget.from_budget(Budget(epsilon=1, delta=0.5, total_variation=0.25)).points
        ((0.0, 0.25),)
        """
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
        points, cap = list(budget.rounded_points), float_at_most(budget.delta)
        cap_point = None
        if not any(delta <= cap for _, delta in points):
            cap_point = max(CERTAIN_LOSS, *(epsilon for epsilon, _ in points)), cap
            points.append(cap_point)
        if (0.0, 0.0) in points:
            raise InputError("epsilon", 0.0, "above 0 if delta = 0", "no noise meets it; try epsilon=1")
        main_point = min(points, key=lambda point: (point[1], point[0]))
        # Another point implies this one if δ' + (1−δ') tanh(ε'/2) < δ, for ε = 0, otherwise if ε' ≤ ε and δ' ≤ δ.
        strongest = set(points)
        for epsilon, delta in points:
            others = [point for point in points if point != (epsilon, delta)]
            if any(
                d + (1 - d) * math.tanh(e / 2) * (1 + 1e-15) < delta if epsilon == 0 else e <= epsilon and d <= delta
                for e, d in others
            ):
                strongest.discard((epsilon, delta))
        return cls(tuple(sorted(strongest)), main_point, cap_point)

    @property
    def is_endless(self) -> bool:
        """True if the noise must be unbounded: some δ_i = 0."""
        return any(delta == 0 for _, delta in self.points)

    @property
    def without_cap_point(self) -> Self:
        """The target without ``cap_point``: it is weaker, so lower bounds for it hold for the budget."""
        return replace(self, points=tuple(p for p in self.points if p != self.cap_point) or self.points, cap_point=None)

    @property
    def smallest_positive_epsilon(self) -> float:
        """The least positive ε_i, or 0: weights fall by about e^{−ε_i} per sensitivity."""
        return min((epsilon for epsilon, _ in self.without_cap_point.points if epsilon > 0), default=0.0)


def parse_noise_shape(shape: object) -> Shape:
    """Return the shape; raises ``InputError`` for anything but "unimodal" and "any"."""
    if shape == "unimodal":
        return "unimodal"
    if shape == "any":
        return "any"
    raise InputError("shape", shape, "'unimodal' or 'any'", "unimodal noise usually costs less than a percent more")


# The cost of an error: any non-decreasing function of its size.

MAX_GROWTH = 16.0
"""Assumed maximal growth of a cost when the error doubles (like x⁴), for unbounded noise."""
DOUBLINGS = 12
"""Number of doublings for which the growth is checked."""
NAMED_COSTS: dict[str, tuple[Callable[[float], float], int]] = {
    "absolute": (lambda size: size, 1),
    "squared": (lambda size: size * size, 2),
}


@dataclass(frozen=True, slots=True)
class ErrorCost:
    """A cost φ(|x|), non-decreasing and ≥ 0; ``power`` is p for |x|^p, None for any other function.

    A callable is checked to be non-decreasing at the points where it is evaluated.
    """

    name: str
    function: Callable[[float], float] = field(repr=False)
    power: int | None

    @classmethod
    def from_argument(cls, cost: Any) -> Self:
        """Return the cost for "absolute", "squared" or a function; raises ``InputError`` for anything else.

        >>> ErrorCost.from_argument("squared").values_at(np.array([0.0, 3.0])).tolist()
        [0.0, 9.0]
        """
        if isinstance(cost, str) and cost in NAMED_COSTS:
            return cls(cost, *NAMED_COSTS[cost])
        if not callable(cost):
            raise InputError("cost", cost, "'absolute', 'squared' or a function of |x|", "try cost=lambda x: x**1.5")
        return cls(str(getattr(cost, "__name__", "callable")), cost, None)

    def values_at(self, sizes: Floats) -> Floats:
        """Return φ at ascending sizes ≥ 0, shape [n]; raises ``InputError`` if it decreases, or is not a number ≥ 0."""
        if self.power is not None:
            return np.asarray(sizes**self.power, dtype=np.float64)
        values = np.array([self._value_at(size) for size in sizes.tolist()], dtype=np.float64)
        decreases = np.flatnonzero(~(np.diff(values) >= 0))
        if len(decreases):
            where = float(sizes[decreases[0]])
            raise InputError(
                "cost", where, f"non-decreasing: it falls after |x| = {where:g}", "larger errors cost no less"
            )
        return values

    def scaled_by(self, width: float) -> ErrorCost:
        """Return the cost x ↦ φ(width · x)."""
        return ErrorCost(self.name, lambda size: self.function(width * size), None)

    def check_growth(self, size: float) -> None:
        """Raise ``InputError`` if φ grows more than sixteenfold when an error ≥ ``size`` doubles."""
        if self.power is not None:
            return
        values = self.values_at(size * np.exp2(np.arange(DOUBLINGS, dtype=np.float64)))
        if not np.all(values[1:] <= MAX_GROWTH * values[:-1]):
            raise InputError("cost", self.name, "one that grows at most like x**4 if delta = 0", "use a positive delta")

    def _value_at(self, size: float) -> float:
        try:
            value = float(self.function(size))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InputError("cost", self.name, f"a function with a number at |x| = {size:g}", str(error)) from None
        if not 0 <= value < math.inf:
            raise InputError("cost", value, f"a finite number >= 0 at |x| = {size:g}")
        return value
