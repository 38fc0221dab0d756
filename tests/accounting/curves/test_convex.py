"""The least value of a function that is convex in e^ε: where it is sought, and that the bracket holds it."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tightrope.accounting.tradeoff import HIGHEST, SinhScale, _minimizing_epsilon, bracket_minimum, least_value

WIDTH = 1e-15
FLOOR = -40.0
RATE = 1e-3


def _laplace(epsilon: float) -> float:
    """δ(ε) + e^ε RATE of a Laplace law with losses to 3 nats: least at log(1/RATE) − 3 or where δ falls fastest."""
    delta = 0.0 if epsilon >= 3 else -math.expm1(max(epsilon, -3.0) / 2 - 1.5) if epsilon > -3 else -math.expm1(epsilon)
    return delta + math.exp(epsilon) * RATE


def _hyperbola(epsilon: float) -> float:
    """e^{−ε} + e^ε RATE, which is least at −log(RATE)/2."""
    return math.exp(min(-epsilon, 700.0)) + math.exp(min(epsilon, 700.0)) * RATE


@pytest.mark.parametrize(
    ("value", "exact"), [(_hyperbola, 2 * math.sqrt(RATE)), (_laplace, math.exp(3.0) * RATE)], ids=["smooth", "kink"]
)
@pytest.mark.parametrize("moved", [None, 0.0, 0.3, -2.0, 30.0, -20.0])
def test_the_bracket_holds_the_least_value_wherever_it_is_sought_from(
    value: Callable[[float], float], exact: float, moved: float | None
) -> None:
    asked: list[float] = []

    def both(epsilon: float) -> tuple[float, float]:
        asked.append(epsilon)
        return value(epsilon) * (1 - WIDTH), value(epsilon) * (1 + WIDTH)

    rough = None if moved is None else lambda epsilon: 5 * value(epsilon - moved)
    found = least_value(both, -math.log(RATE), math.log, FLOOR, rough)
    assert found.low <= exact <= found.high
    assert found.high - found.low <= 1e-12 * exact
    assert len(asked) == len(set(asked)), "nothing is asked twice"


def test_a_hint_saves_evaluations() -> None:
    counts = []
    for rough in (None, lambda epsilon: 5 * _hyperbola(epsilon - 0.1)):
        asked: list[float] = []

        def both(epsilon: float, asked: list[float] = asked) -> tuple[float, float]:
            asked.append(epsilon)
            return _hyperbola(epsilon) * (1 - WIDTH), _hyperbola(epsilon) * (1 + WIDTH)

        least_value(both, 300.0, math.log, FLOOR, rough)
        counts.append(len(asked))
    assert counts[1] < counts[0], counts


@pytest.mark.parametrize("least_at", [-0.4, 0.0, 0.4])
def test_where_it_rises_on_both_sides_of_the_start_both_are_searched(least_at: float) -> None:
    """Only the right one was: a least value just left of the start was missed, and its bracket was wide."""
    low, middle, high = bracket_minimum(lambda place: (place - least_at) ** 2, 0.0, -50.0, 50.0)
    assert low < least_at < high
    assert low < middle < high


def test_a_value_that_falls_to_the_end_ends_there() -> None:
    assert _minimizing_epsilon(lambda epsilon: -epsilon, SinhScale(), (1.0, FLOOR), 1e-3) >= HIGHEST * (1 - 1e-6)
    assert _minimizing_epsilon(lambda epsilon: epsilon, SinhScale(1.0, 0.1), (1.0, FLOOR), 1e-3) == pytest.approx(FLOOR)
