"""Least ε at a given δ, ending on the side that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

from tightrope.errors import PrecisionError

LARGEST = 1e7
"""No ε beyond this many nats is searched: e^{−1e7} protects nobody."""


def least_epsilon(delta_at: Callable[[float], float], target: float, *, private: bool) -> float:
    """The least ε ≥ 0 with ``delta_at(ε) <= target``; ∞ where none is.

    ``private``: the ε returned satisfies the inequality; otherwise it is just below the least one.
    """
    if delta_at(0.0) <= target:
        return 0.0
    high = 1.0
    while delta_at(high) > target:
        high *= 2
        if high > LARGEST:
            return math.inf
    low = high / 2 if high > 1 else 0.0
    root = _root(delta_at, target, low, high)
    return _settle(delta_at, target, root, private=private)


def _root(delta_at: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The crossing of log δ, to rounding; δ = 0 counts as far below."""

    def excess(epsilon: float) -> float:
        value = delta_at(epsilon)
        return math.log(value) - math.log(target) if value > 0 and target > 0 else (800.0 if value > target else -800.0)

    if excess(high) == 0:
        return high
    return float(optimize.brentq(excess, low, high, xtol=1e-14 * high, rtol=1e-14))


def _settle(delta_at: Callable[[float], float], target: float, root: float, *, private: bool) -> float:
    """Step off the root, in growing steps, until the inequality holds (private) or fails (not private)."""
    step = 4e-16 * max(root, 1e-300)
    for _ in range(60):
        if (delta_at(root) <= target) == private:
            return max(root, 0.0)
        root, step = (root + step if private else root - step), 2 * step
        if root <= 0 and not private:
            return 0.0
    raise PrecisionError(f"no epsilon near {root!r} could be shown to reach delta={target!r}")
