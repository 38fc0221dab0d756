"""How near the two bounds come in each regime (GDGK, "Tightness of the lower and upper bounds")."""

from __future__ import annotations

import math
from collections.abc import Callable

from tightrope.reproduce.gdgk.bounds import law_of, lower
from tightrope.reproduce.gdgk.printed import GDGK
from tightrope.reproduce.item import Compute, Effort, Item
from tightrope.reproduce.judges import within

SMALL, TINY = 2e-4, 1e-12
"""What stands for the limit 0, of ε and of δ."""
DELTAS, EPSILONS = (0.02, 0.1, 0.25), (0.25, 1.0, 3.0)
NEAR = 2e-3


def amplitudes(epsilon: float, delta: float) -> float:
    """V1 lower over V1 upper."""
    return lower(epsilon, delta, "absolute") / law_of(epsilon, delta).mean_absolute_error


def powers(epsilon: float, delta: float) -> float:
    """V2 lower over V2 upper."""
    return lower(epsilon, delta, "squared") / law_of(epsilon, delta).mean_squared_error


def _limit(name: str, statement: str, ours: Compute, theirs: Compute) -> Item:
    call = "noise_limits(...): 'GDGK tail sums' / truncated_laplace(...)"
    return Item(GDGK, name, statement, call, ours, theirs, within(NEAR))


def _small_epsilon(ratio: Callable[[float, float], float]) -> Compute:
    return lambda effort: [ratio(SMALL, delta) for delta in DELTAS]


def _small_delta(ratio: Callable[[float, float], float]) -> Compute:
    return lambda effort: [ratio(epsilon, TINY) for epsilon in EPSILONS]


def _both_small(ratio: Callable[[float, float], float]) -> Compute:
    return lambda effort: ratio(SMALL, SMALL)


def _power_at_small_delta(effort: Effort) -> list[float]:
    return [e * e * (1 + math.exp(e)) / (2 * math.expm1(e) ** 2) for e in EPSILONS]


items = (
    _limit(
        "Tightness 1",
        "V1 lower/upper as ε → 0 is 1 − 2δ",
        _small_epsilon(amplitudes),
        lambda effort: [1 - 2 * d for d in DELTAS],
    ),
    _limit(
        "Tightness 2",
        "V1 lower/upper as δ → 0 is ε/(e^ε − 1)",
        _small_delta(amplitudes),
        lambda effort: [e / math.expm1(e) for e in EPSILONS],
    ),
    _limit("Tightness 3", "V1 lower/upper as ε = δ → 0 is 1", _both_small(amplitudes), lambda effort: 1.0),
    _limit(
        "Tightness 4",
        "V2 lower/upper as ε → 0 is (1 − δ)(1 − 2δ)",
        _small_epsilon(powers),
        lambda effort: [(1 - d) * (1 - 2 * d) for d in DELTAS],
    ),
    _limit(
        "Tightness 5",
        "V2 lower/upper as δ → 0 is ε²(1 + e^ε)/(2(e^ε − 1)²)",
        _small_delta(powers),
        _power_at_small_delta,
    ),
    _limit("Tightness 6", "V2 lower/upper as ε = δ → 0 is 1", _both_small(powers), lambda effort: 1.0),
)
