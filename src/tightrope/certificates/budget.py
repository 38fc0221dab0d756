"""What may be spent: exact decimals, and a list of points that must all hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from tightrope.errors import InputError

Number = int | float | str | Decimal
Point = tuple[Decimal, Decimal]
TYPICAL = "state how improbable a complete failure must be: well below one over the number of people, such as 1e-8"


@dataclass(frozen=True, slots=True)
class Budget:
    """Everything that a release must keep: an ε, an attack success, a list of (ε, δ) points, or several of them.

    ``delta`` is always required: it also caps the probability of an output that gives somebody away with certainty.
    ``attack_success=0.55`` says that an attacker who guesses whether you are in the data, at even odds, is right at
    most 55 % of the time: total variation at most 0.10. Numbers are exact decimals (0.1 is one tenth). Raises
    ``InputError`` where nothing is asked, or a number is out of range.

    >>> Budget(epsilon=1, delta=1e-8).points
    ((Decimal('1'), Decimal('1E-8')),)
    >>> Budget(attack_success=0.55, delta="1e-8").points
    ((Decimal('0'), Decimal('0.10')),)
    """

    points: tuple[Point, ...]
    delta: Decimal

    def __init__(
        self,
        *,
        delta: Number | None = None,
        epsilon: Number | None = None,
        attack_success: Number | None = None,
        points: Sequence[tuple[Number, Number]] | None = None,
    ) -> None:
        asked: list[Point] = [_point(pair) for pair in _listed(points)]
        cap = _delta(delta, asked)
        if epsilon is not None:
            asked.append((_epsilon(epsilon), cap))
        if attack_success is not None:
            asked.append((Decimal(0), 2 * _between("attack_success", attack_success, "0.5", "1") - 1))
        if not asked:
            raise InputError(
                "budget", None, "an epsilon, an attack_success or points", "try Budget(epsilon=1, delta=1e-8)"
            )
        object.__setattr__(self, "points", tuple(asked))
        object.__setattr__(self, "delta", cap)

    def share(self, fraction: Number) -> Budget:
        """The same promise with every ε and δ multiplied by ``fraction``: shares that add up to one spend the whole.

        >>> Budget(epsilon=1, delta=1e-8).share("0.25").points
        ((Decimal('0.25'), Decimal('2.5E-9')),)
        """
        part = _fraction(fraction)
        return Budget(
            points=[(epsilon * part, delta * part) for epsilon, delta in self.points], delta=self.delta * part
        )

    @property
    def epsilon(self) -> Decimal | None:
        """The ε asked for at ``delta``, or None when none was."""
        return next((e for e, d in self.points if d == self.delta and e > 0), None)

    def to_data(self) -> dict[str, Any]:
        """Plain data with decimals as strings."""
        return {"delta": str(self.delta), "points": [[str(epsilon), str(delta)] for epsilon, delta in self.points]}

    def __str__(self) -> str:
        asked = [f"delta({epsilon}) <= {delta}" for epsilon, delta in self.points]
        return " and ".join([*asked, f"certain failure <= {self.delta}"])


def decimal(name: str, value: object) -> Decimal:
    """The decimal that the user typed: floats by their shortest text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Fraction)):
        raise InputError(name, value, "a number")
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise InputError(name, value, "a number") from None
    if not exact.is_finite():
        raise InputError(name, value, "a finite number")
    return exact


def _listed(points: Sequence[tuple[Number, Number]] | None) -> Sequence[tuple[Number, Number]]:
    if points is not None and not (isinstance(points, (list, tuple)) and len(points) > 0):
        raise InputError("points", points, "a list of at least one pair (epsilon, delta)")
    return points or ()


def _point(pair: object) -> Point:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError("point", pair, "a pair (epsilon, delta)")
    epsilon = decimal("epsilon", pair[0])
    if not 0 <= epsilon <= 10_000:
        raise InputError("epsilon", pair[0], "a number in [0, 10000]")
    return epsilon, _between("delta", pair[1], "0", "1")


def _epsilon(value: object) -> Decimal:
    exact = decimal("epsilon", value)
    if not 0 < exact <= 10_000:
        raise InputError("epsilon", value, "a number in (0, 10000]", "a typical value is 1")
    return exact


def _delta(value: object, points: list[Point]) -> Decimal:
    if value is None and points:
        return min(delta for _, delta in points)
    if value is None:
        raise InputError("delta", value, "a number in [0, 1)", TYPICAL)
    exact = decimal("delta", value)
    if not 0 <= exact < 1:
        raise InputError("delta", value, "a number in [0, 1)", TYPICAL)
    return exact


def _between(name: str, value: object, low: str, high: str) -> Decimal:
    exact = decimal(name, value)
    if not Decimal(low) <= exact < Decimal(high):
        raise InputError(name, value, f"a number in [{low}, {high})")
    return exact


def _fraction(value: object) -> Decimal:
    exact = decimal("share", value)
    if not 0 < exact <= 1:
        raise InputError("share", value, "a share of the budget in (0, 1]", "0.5 spends half")
    return exact
