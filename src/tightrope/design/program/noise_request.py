"""What the least noise is asked for, checked once: points of a profile, a sensitivity, a cost, a shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Self

from tightrope.errors import InputError
from tightrope.numerics.checks import Real, filled, non_negative, probability

Shape = Literal["unimodal", "any"]
Points = Sequence[tuple[Real, Real]]
Tradeoff = Callable[[float], float]

SHAPES = ("unimodal", "any")


@dataclass(frozen=True, slots=True)
class Promise:
    """δ(ε_i) ≤ δ_i for all points, ε_i ≥ 0 ascending; (0, η) is a total variation of η. ``main`` is what is stated.

    Decimals and fractions are rounded down: what is kept is at least what was asked.
    """

    points: tuple[tuple[float, float], ...]
    main: tuple[float, float]

    @classmethod
    def of(cls, epsilon: Real | None, delta: Real, total_variation: Real | None, points: Points | None = None) -> Self:
        """(ε, δ), (0, η) and every further point; δ is no larger than η (theory §1), implied points are left out.

        Raises ``InputError`` for numbers out of range, and where nothing is promised or nothing can keep it.

        >>> Promise.of(1, 0.01, 0.001).points
        ((0.0, 0.001),)
        """
        eta = 1.0 if total_variation is None else below("total_variation", total_variation, probability)
        asked = [(0.0, eta)] if eta < 1 else []
        if epsilon is not None:
            asked.append((below("epsilon", epsilon, non_negative), below("delta", delta, probability)))
        if points is not None:
            filled("points", points if isinstance(points, list) else list(points), "say [(1, 1e-6)]")
            asked += [_pair(point) for point in points]
        if not asked:
            raise InputError("epsilon", epsilon, "a number >= 0", "or give points=[(1, 1e-6)], or tradeoff=f")
        return cls._checked([(e, min(d, eta)) for e, d in asked])

    @classmethod
    def _checked(cls, asked: list[tuple[float, float]]) -> Self:
        for epsilon, delta in asked:
            if not delta < 1:
                raise InputError("delta", delta, "below 1", "delta = 1 promises nothing")
            if not (epsilon > 0 or delta > 0):
                raise InputError("epsilon", epsilon, "above 0 where delta = 0", "no noise keeps it; try epsilon=1")
        main = min(asked, key=lambda point: (point[1], point[0]))
        return cls(tuple(sorted({point for point in asked if not _implied(point, asked)})), main)

    @property
    def endless(self) -> bool:
        """Whether the noise has no largest value: some δ_i = 0."""
        return any(delta == 0 for _, delta in self.points)

    @property
    def slowest(self) -> float:
        """The least positive ε_i, 0 where there is none: weights fall by it a sensitivity, about."""
        return min((epsilon for epsilon, _ in self.points if epsilon > 0), default=0.0)


def _implied(point: tuple[float, float], asked: list[tuple[float, float]]) -> bool:
    """Whether another point (ε, δ) alone implies it: δ' + (1−δ') tanh(ε'/2) ≤ δ at ε = 0, else ε' ≤ ε and δ' ≤ δ."""
    others = [other for other in asked if other != point]
    if point[0] == 0:
        return any(d + (1 - d) * math.tanh(e / 2) * (1 + 1e-15) < point[1] for e, d in others)
    return any(e <= point[0] and d <= point[1] for e, d in others)


def _pair(point: Any) -> tuple[float, float]:
    if not (isinstance(point, (tuple, list)) and len(point) == 2):
        raise InputError("point", point, "a pair (epsilon, delta)", "say points=[(1, 1e-6), (0.5, 1e-3)]")
    return below("epsilon", point[0], non_negative), below("delta", point[1], probability)


def below(name: str, value: Any, check: Callable[[str, object], float]) -> float:
    """The largest float not above the number, after the check.

    >>> from decimal import Decimal
    >>> Fraction(below("delta", Decimal("1e-6"), probability)) <= Fraction(1, 10**6)
    True
    """
    number = check(name, value)
    exact = value if isinstance(value, (int, float, Decimal, Fraction)) else number
    return number if Fraction(number) <= Fraction(exact) else math.nextafter(number, 0.0)


def shape_of(shape: object) -> Shape:
    """Which shape was asked for; raises ``InputError`` for anything else."""
    if shape == "unimodal":
        return "unimodal"
    if shape == "any":
        return "any"
    raise InputError("shape", shape, "'unimodal' or 'any'", "unimodal noise usually costs less than a percent more")
