"""Mechanisms under a cap on their total variation: with the largest ε that keeps it, or silent as often as it takes.

η = tanh(ε/2) is the most that an ε-LDP report can have (theory §5); most mechanisms for many categories have far less,
so the ε that goes with a given η is their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tightrope.local.mechanisms.duchi import duchi
from tightrope.local.mechanisms.known import DISTRIBUTION, MEAN
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.mechanisms.response import response_with_erasure
from tightrope.local.parts.losses import Declared
from tightrope.local.studies.comparison import Option
from tightrope.local.vectors.ball import ball_mean
from tightrope.numerics.checks import whole
from tightrope.numerics.search import crossing

SMALLER = 1 - 1e-12
EPSILON_WITHIN = 1e-9
Made = TypeVar("Made", bound=Declared)


def capped(make: Callable[[float], Made], epsilon: float, total_variation: float) -> Made:
    """``make`` of the largest ε' ≤ ε, to 10⁻⁹ of it, whose realised total variation is at most η.

    The cap is kept in any case: the search starts from ε' = 2 artanh η, where every mechanism keeps it, and goes only
    where the mechanism that is made does. Raises what ``make`` raises.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> tight = capped(lambda epsilon: k_randomized_response(epsilon, 51), 3.0, 0.2)
    >>> round(tight.epsilon, 6), tight.guarantee.total_variation <= 0.2
    (2.621039, True)
    """
    free = make(epsilon)
    if free.guarantee.total_variation <= total_variation:
        return free
    kept = 2 * math.atanh(total_variation) * SMALLER

    def excess(tried: float) -> float:
        return make(tried).guarantee.total_variation - total_variation

    return make(crossing(excess, epsilon, kept, side="passes", relative=EPSILON_WITHIN))


def options_within(question: str, epsilon: float, total_variation: float, k: int | None) -> list[Option]:
    """Every mechanism for the question that keeps both bounds; η in (0, 1)."""
    if question == "mean":
        numeric: dict[str, MeanOracle] = {name: capped(make, epsilon, total_variation) for name, make in MEAN.items()}
        numeric["duchi"] = duchi(epsilon, total_variation=total_variation)
        return [Option(name, one, one.worst_variance, one.report_bits) for name, one in numeric.items()]
    size = whole("k", k, 2)
    made = {name: capped(partial(_sized, name, size), epsilon, total_variation) for name in DISTRIBUTION} | {
        "response_with_erasure": response_with_erasure(epsilon, total_variation, size)
    }
    return [Option(name, one, one.mean_variance, one.report_bits) for name, one in made.items()]


def of_vectors(epsilon: float, dimension: int, total_variation: float | None) -> Option:
    """``ball_mean`` in the unit ball; by its squared error, which is that of drawing people, too: E|z − mean|² of a
    report z is the square of its length less |mean|². A cap in (0, 1) is kept by a smaller ε.

    >>> option = of_vectors(1.0, 100, None)
    >>> option.name, option.people(0.1), option.bits
    ('ball_mean', 64566, 69)
    """
    make = partial(ball_mean, dimension=dimension)
    one = make(epsilon) if total_variation is None else capped(make, epsilon, total_variation)
    return Option("ball_mean", one, one.worst_squared_error, one.report_bits)


def _sized(name: str, k: int, epsilon: float) -> FrequencyOracle:
    return DISTRIBUTION[name](epsilon, k)
