"""Smallest ε at a given δ, rounded to the requested side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import scipy

from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.errors import PrecisionError

MAX_EPSILON = 1e300
"""Largest ε, in nats, that is searched."""
MIN_EPSILON = 1e-300
MAX_SECANT_STEPS = 12
AIM_MARGIN = 1e-14
"""Relative margin by which the secant method aims past the target, so that it ends on the requested side; also its
stopping tolerance."""
STALL_TOLERANCE = 1e-10
"""The secant method also stops at this gap once its steps no longer help: rounding makes the value jump."""
SECOND_DIRECTION_FRACTION = 0.9
"""For a lower bound, the second direction is solved only if its guess is at least this fraction of the first's ε."""


def solve_from_guess(methods: Sequence[Method], target: float, *, upper_bound: bool) -> float | None:
    """Return a bound on the smallest ε with δ ≤ ``target``, an upper or a lower one, from the methods' guesses.

    ``methods`` has one entry per direction; the first (removal) is usually the worse. The smallest ε of a pair is the
    larger of the two directions': for an upper bound, each must be shown to meet the target at the ε returned; for a
    lower bound, either one suffices. Returns None if a method has no guess or the secants fail.
    """
    bound = 0.0
    for method in methods:
        if (
            upper_bound
            and bound > 0
            and (method.cheap_delta_bound(bound) <= target or method.delta_upper_bound(bound) <= target)
        ):
            continue
        guess = method.approximate_epsilon(target)
        if guess is None:
            return None
        if upper_bound or not guess.epsilon < SECOND_DIRECTION_FRACTION * bound:
            delta_at = method.delta_upper_bound if upper_bound else method.delta_lower_bound
            root = _solve_by_secants(delta_at, guess, target * (1 - AIM_MARGIN if upper_bound else 1 + AIM_MARGIN))
            if root is None:
                return None
            bound = max(bound, round_root_to_side(delta_at, target, root, upper_bound=upper_bound))
    return bound


def _solve_by_secants(delta_at: Callable[[float], float], guess: EpsilonGuess, target: float) -> float | None:
    """Return the ε where log δ equals log of the target; None if secants do not converge."""
    epsilon, slope = guess.epsilon, -guess.decay_rate
    previous: tuple[float, float] | None = None  # ε and log of the ratio of δ to the target
    for _ in range(MAX_SECANT_STEPS):
        delta = delta_at(epsilon)
        if not delta > 0:
            return None
        excess = math.log(delta / target)
        has_stalled = previous is not None and abs(excess) < STALL_TOLERANCE and abs(excess) > abs(previous[1]) / 4
        if abs(excess) <= AIM_MARGIN or has_stalled:
            return epsilon
        if previous is not None and previous[0] != epsilon and previous[1] != excess:
            slope = (excess - previous[1]) / (epsilon - previous[0])
        previous, step = (epsilon, excess), -excess / slope
        if abs(step) <= 1e-15 * epsilon:
            return epsilon
        epsilon += step
        if not (slope < 0 and epsilon > 0):
            return None
    return None


def least_epsilon(delta_at: Callable[[float], float], target: float, *, upper_bound: bool, start: float = 1.0) -> float:
    """Return the smallest ε ≥ 0 with ``delta_at(ε) <= target``, searching from ``start``; ∞ if it fails everywhere.

    ``upper_bound``: the ε returned satisfies the inequality; otherwise it violates it, and is below the smallest ε by
    no more than rounding.
    """
    if delta_at(0.0) <= target:
        return 0.0
    low, high = (0.0, start) if delta_at(start) <= target else (start, math.inf)
    stride = 1.5
    while high == math.inf:
        if low * stride > MAX_EPSILON:
            return math.inf
        low, high = (low, low * stride) if delta_at(low * stride) <= target else (low * stride, math.inf)
        stride *= stride
    stride = 1.5
    while low == 0 and high / stride > MIN_EPSILON:
        low, high = (0.0, high / stride) if delta_at(high / stride) <= target else (high / stride, high)
        stride *= stride
    root = _solve_in_bracket(delta_at, target, low, high)
    return round_root_to_side(delta_at, target, root, upper_bound=upper_bound)


def _solve_in_bracket(delta_at: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return the ε where log δ equals log of the target; δ = 0 counts as e^{−800} of the target."""

    def log_delta_excess(epsilon: float) -> float:
        value = delta_at(epsilon)
        return math.log(value) - math.log(target) if value > 0 and target > 0 else (800.0 if value > target else -800.0)

    if log_delta_excess(high) == 0:
        return high
    return float(scipy.optimize.brentq(log_delta_excess, low, high, xtol=max(1e-14 * high, 5e-324), rtol=1e-14))


def round_root_to_side(delta_at: Callable[[float], float], target: float, root: float, *, upper_bound: bool) -> float:
    """Step away from the root, in growing steps, until ``delta_at(ε) <= target`` holds (upper bound) or fails."""
    step = 4e-16 * max(root, 1e-300)
    for _ in range(60):
        if (delta_at(root) <= target) == upper_bound:
            return max(root, 0.0)
        root, step = (root + step if upper_bound else root - step), 2 * step
        if root <= 0 and not upper_bound:
            return 0.0
    raise PrecisionError(f"epsilon near {root:.6g} could not be certified for delta={target!r}; ask for a larger delta")
