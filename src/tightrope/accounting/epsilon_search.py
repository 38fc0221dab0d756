"""Smallest ε at a given δ, rounded to the requested side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import scipy

from tightrope.accounting.methods.method import DeltaGuess, Method
from tightrope.errors import PrecisionError

FARTHEST_EPSILON = 1e300
"""Largest ε, in nats, that is searched."""
SMALLEST = 1e-300
MOST_SECANTS = 12
INSIDE = 1e-14
"""Secants aim inside the target by this relative amount so that they end on the requested side, and stop this close."""
SECANTS_STALL = 1e-10
"""Secants also stop at this gap when they no longer help: rounding makes the value jump."""
RIVAL = 0.9
"""A direction whose guess is at least this fraction of the answer is solved as well."""


def solve_from_guess(engines: Sequence[Method], target: float, *, private: bool) -> float | None:
    """Return the smallest ε with δ ≤ ``target`` from the methods' guesses, rounded as requested; None without a guess.

    The smallest ε of a pair is the larger of the two directions'. For an upper bound, each direction must be shown to
    meet the target there; for a lower bound, either one suffices. The first direction (removal) is usually the worse.
    """
    found = 0.0
    for engine in engines:
        if (
            private
            and found > 0
            and (engine.cheap_upper_bound(found) <= target or engine.delta_upper_bound(found) <= target)
        ):
            continue
        guess = engine.approximate_epsilon(target)
        if guess is None:
            return None
        if private or not guess.epsilon < RIVAL * found:
            root = _epsilon_near_guess(engine, guess, target, private=private)
            if root is None:
                return None
            found = max(found, root)
    return found


def _epsilon_near_guess(engine: Method, guess: DeltaGuess, target: float, *, private: bool) -> float | None:
    value = engine.delta_upper_bound if private else lambda epsilon: engine.delta(epsilon)[0]
    root = _solve_by_secants(value, guess, target * (1 - INSIDE if private else 1 + INSIDE))
    return None if root is None else step_to_side(value, target, root, private=private)


def _solve_by_secants(value: Callable[[float], float], guess: DeltaGuess, target: float) -> float | None:
    """Return the point where log of the value equals log of the target; None if secants do not converge."""
    here, slope, before = guess.epsilon, -guess.rate, None
    for _ in range(MOST_SECANTS):
        found = value(here)
        if not found > 0:
            return None
        excess = math.log(found / target)
        stuck = before is not None and abs(excess) < SECANTS_STALL and abs(excess) > abs(before[1]) / 4
        if abs(excess) <= INSIDE or stuck:
            return here
        if before is not None and before[0] != here and before[1] != excess:
            slope = (excess - before[1]) / (here - before[0])
        before, move = (here, excess), -excess / slope
        if abs(move) <= 1e-15 * here:
            return here
        here += move
        if not (slope < 0 and here > 0):
            return None
    return None


def least_epsilon(delta_at: Callable[[float], float], target: float, *, private: bool, near: float = 1.0) -> float:
    """Return the smallest ε ≥ 0 with ``delta_at(ε) <= target``, searching from ``near``; ∞ if none exists.

    ``private``: the ε returned satisfies the inequality; otherwise it is just below the smallest one.
    """
    if delta_at(0.0) <= target:
        return 0.0
    low, high = (0.0, near) if delta_at(near) <= target else (near, math.inf)
    stride = 1.5
    while high == math.inf:
        if low * stride > FARTHEST_EPSILON:
            return math.inf
        low, high = (low, low * stride) if delta_at(low * stride) <= target else (low * stride, math.inf)
        stride *= stride
    stride = 1.5
    while low == 0 and high / stride > SMALLEST:
        low, high = (0.0, high / stride) if delta_at(high / stride) <= target else (high / stride, high)
        stride *= stride
    return step_to_side(delta_at, target, _solve_crossing(delta_at, target, low, high), private=private)


def _solve_crossing(delta_at: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return the crossing of log δ, up to rounding; δ = 0 counts as far below."""

    def log_delta_excess(epsilon: float) -> float:
        value = delta_at(epsilon)
        return math.log(value) - math.log(target) if value > 0 and target > 0 else (800.0 if value > target else -800.0)

    if log_delta_excess(high) == 0:
        return high
    return float(scipy.optimize.brentq(log_delta_excess, low, high, xtol=max(1e-14 * high, 5e-324), rtol=1e-14))


def step_to_side(delta_at: Callable[[float], float], target: float, root: float, *, private: bool) -> float:
    """Step away from the root, in growing steps, until the inequality holds (private) or fails (not private)."""
    step = 4e-16 * max(root, 1e-300)
    for _ in range(60):
        if (delta_at(root) <= target) == private:
            return max(root, 0.0)
        root, step = (root + step if private else root - step), 2 * step
        if root <= 0 and not private:
            return 0.0
    raise PrecisionError(f"no epsilon near {root!r} could be shown to reach delta={target!r}")
