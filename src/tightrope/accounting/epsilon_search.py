"""Smallest ε at a given δ, rounded to the requested side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.errors import PrecisionError
from tightrope.numerics.root_finding import find_root

MAX_EPSILON = 1e300
"""Largest ε, in nats, that is searched."""
SMALLEST_BRACKET_END = 1e-300
"""The upper end of the bracket is not reduced below this, in nats."""
MAX_SECANT_STEPS = 12
TARGET_MARGIN = 1e-14
"""Relative margin by which the secant method aims past the target δ, so that it ends on the requested side."""
SECANT_TOLERANCE = 1e-14
"""The secant method stops when |log(δ/target)| is at most this."""
STALL_TOLERANCE = 1e-10
"""If |log(δ/target)| is below this and no longer shrinks, the rest is rounding: the secant method stops."""
SECOND_DIRECTION_FRACTION = 0.9
"""For a lower bound on ε, the second direction is solved only if its guess is at least this fraction of the first's ε.

Skipping it is valid, because a lower bound for one direction is one for the mechanism.
"""


def solve_from_guess(methods: Sequence[Method], target: float, *, upper_bound: bool) -> float | None:
    """Return an upper or a lower bound on the smallest ε whose δ is at most ``target``, in nats.

    ``methods`` has one entry per direction (removing, adding a record); removing usually has the larger ε. The search
    starts at the approximate ε of each. The ε of a mechanism is the larger of the two directions', so an upper bound
    must meet the target in both, and a lower bound for either one is sufficient. Returns None if a method has no
    approximate ε or the secant method fails.
    """
    bound = 0.0
    for method in methods:
        if bound > 0 and (
            method.quick_delta_upper_bound(bound) <= target
            or (upper_bound and method.delta_upper_bound(bound) <= target)
        ):
            continue  # the smallest ε of this direction is at most the bound
        guess = method.approximate_epsilon_at(target)
        if guess is None:
            return None
        if upper_bound or not guess.epsilon < SECOND_DIRECTION_FRACTION * bound:
            delta_at_epsilon = method.delta_upper_bound if upper_bound else method.delta_lower_bound
            root = _solve_by_secants(
                delta_at_epsilon, guess, target * (1 - TARGET_MARGIN if upper_bound else 1 + TARGET_MARGIN)
            )
            if root is None:
                return None
            bound = max(bound, round_root_to_side(delta_at_epsilon, target, root, upper_bound=upper_bound))
    return bound


def _solve_by_secants(delta_at_epsilon: Callable[[float], float], guess: EpsilonGuess, target: float) -> float | None:
    """Return the ε where log δ equals log of the target; None if δ becomes 0 or the steps do not converge."""
    epsilon, slope = guess.epsilon, -guess.decay_rate
    previous: tuple[float, float] | None = None  # ε and log of the ratio of δ to the target
    for _ in range(MAX_SECANT_STEPS):
        delta = delta_at_epsilon(epsilon)
        if not delta > 0:
            return None
        log_excess = math.log(delta / target)
        has_stalled = (
            previous is not None and abs(log_excess) < STALL_TOLERANCE and abs(log_excess) > abs(previous[1]) / 4
        )
        if abs(log_excess) <= SECANT_TOLERANCE or has_stalled:
            return epsilon
        if previous is not None and previous[0] != epsilon and previous[1] != log_excess:
            slope = (log_excess - previous[1]) / (epsilon - previous[0])
        previous, step = (epsilon, log_excess), -log_excess / slope
        if abs(step) <= 1e-15 * epsilon:
            return epsilon
        epsilon += step
        if not (slope < 0 and epsilon > 0):
            return None
    return None


def least_epsilon(
    delta_at_epsilon: Callable[[float], float], target: float, *, upper_bound: bool, start: float = 1.0
) -> float:
    """Return the smallest ε ≥ 0 with ``delta_at_epsilon(ε) <= target``, searched from ``start``; ∞ if all fail.

    With ``upper_bound``, the ε returned satisfies the inequality. Otherwise it is a lower bound: 0, or an ε that
    violates the inequality and is below the smallest ε by no more than rounding. ∞ is also returned if the smallest ε
    exceeds ``MAX_EPSILON``.
    """
    if delta_at_epsilon(0.0) <= target:
        return 0.0
    low, high = (0.0, start) if delta_at_epsilon(start) <= target else (start, math.inf)
    stride = 1.5
    while high == math.inf:
        if low * stride > MAX_EPSILON:
            return math.inf
        low, high = (low, low * stride) if delta_at_epsilon(low * stride) <= target else (low * stride, math.inf)
        stride *= stride
    stride = 1.5
    while low == 0 and high / stride > SMALLEST_BRACKET_END:
        low, high = (0.0, high / stride) if delta_at_epsilon(high / stride) <= target else (high / stride, high)
        stride *= stride

    def log_delta_excess(epsilon: float) -> float:
        """Return the log of δ minus that of the target; ± 800 (beyond the log of any float) if one of them is 0."""
        value = delta_at_epsilon(epsilon)
        return math.log(value) - math.log(target) if value > 0 and target > 0 else (800.0 if value > target else -800.0)

    root = high
    if log_delta_excess(high) != 0:
        root = find_root(log_delta_excess, low, high, within=max(1e-14 * high, 5e-324), relative=1e-14)
    return round_root_to_side(delta_at_epsilon, target, root, upper_bound=upper_bound)


def round_root_to_side(
    delta_at_epsilon: Callable[[float], float], target: float, root: float, *, upper_bound: bool
) -> float:
    """Return an ε near ``root`` at which ``delta_at_epsilon(ε) <= target`` holds (upper bound) or fails (lower bound).

    At most 60 steps away from the root, each twice the last; a lower bound that would be negative is 0. Raises
    ``PrecisionError`` if none of them succeeds.
    """
    step = 4e-16 * max(root, 1e-300)  # about two to four times the spacing of floats near the root
    for _ in range(60):
        if (delta_at_epsilon(root) <= target) == upper_bound:
            return max(root, 0.0)
        root, step = (root + step if upper_bound else root - step), 2 * step
        if root <= 0 and not upper_bound:
            return 0.0
    raise PrecisionError(
        f"epsilon near {root:.6g} could not be computed reliably at delta={target!r}; use a larger delta"
    )
