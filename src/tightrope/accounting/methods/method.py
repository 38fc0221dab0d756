"""Base class of the accounting methods, which return an interval that contains δ(ε)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tightrope.accounting.bounds import Interval
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import find_root

# Saddle-point approximation of the ε at which δ(ε) reaches a target: a first guess without a guarantee (theory §3).

DIFFERENCE_STEP = 0.02
"""Half the distance, in log c, over which K is differentiated."""
MAX_LOG_SADDLE = 16.0
"""Saddle points are sought between e^{−16} and e^{16}."""


class EpsilonGuess(NamedTuple):
    """An ε at which δ is about the target; there δ falls by the factor e^{−decay_rate} a nat."""

    epsilon: float
    decay_rate: float


def approximate_epsilon_at(cumulant: Callable[[Floats], Floats], log_target: float) -> EpsilonGuess | None:
    """Return ε with log δ(ε) about ``log_target``, from K on the real axis, shape [n] to [n]; None if the search fails.

    ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there δ ≈ e^{K(c) − cε} / (c (1+c) √(2π K'')), with K'' that
    of the whole exponent. Both fall or rise with c, so c is found by bracketing.
    """

    def log_excess(log_c: float) -> float:
        return _saddle_point_values(cumulant, log_c)[1] - log_target

    try:
        # Walk from c = e to two neighboring steps of log c between which the excess changes sign.
        position, first_excess = 1.0, log_excess(1.0)
        step = 1.0 if first_excess > 0 else -1.0
        while not log_excess(position + step) * first_excess <= 0:
            position += step
            if abs(position) >= MAX_LOG_SADDLE:
                return None
        low, high = min(position, position + step), max(position, position + step)
        log_c = find_root(log_excess, low, high, within=1e-4)
        epsilon, _ = _saddle_point_values(cumulant, log_c)
    except (PrecisionError, ValueError, OverflowError):
        return None
    return EpsilonGuess(epsilon, math.exp(log_c)) if math.isfinite(epsilon) and epsilon > 0 else None


def _saddle_point_values(cumulant: Callable[[Floats], Floats], log_c: float) -> tuple[float, float]:
    """Return ε(c) and log δ there, approximately."""
    c = math.exp(log_c)
    below, middle, above = cumulant(c * np.exp([-DIFFERENCE_STEP, 0.0, DIFFERENCE_STEP])).tolist()
    slope, bend = (above - below) / (2 * DIFFERENCE_STEP), (above - 2 * middle + below) / DIFFERENCE_STEP**2
    epsilon = slope / c - 1 / c - 1 / (1 + c)
    curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
    return epsilon, middle - c * epsilon - log_c - math.log1p(c) - math.log(2 * math.pi * curvature) / 2


NEGLIGIBLE_PART = 1e-18
"""An addend of at most this relative size does not change a sum."""


class Method(ABC):
    """Computes δ(ε) of one composed direction as an interval that contains the true value."""

    name: str

    @abstractmethod
    def delta(self, epsilon: float) -> Interval: ...

    def delta_upper_bound(self, epsilon: float) -> float:
        """Return a valid upper bound on δ(ε), possibly cheaper and less tight than the end of ``delta``."""
        return self.delta(epsilon)[1]

    def delta_lower_bound(self, epsilon: float) -> float:
        """Return the lower end of ``delta``."""
        return self.delta(epsilon)[0]

    def quick_delta_upper_bound(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε) at negligible cost; 1 by default."""
        del epsilon
        return 1.0

    def delta_to_precision(self, epsilon: float, size: float) -> Interval:
        """Return an interval for δ(ε), as narrow as matters if δ is added to a number of this size."""
        upper = self.quick_delta_upper_bound(epsilon)
        return (0.0, upper) if upper <= NEGLIGIBLE_PART * size else self.delta(epsilon)

    def precision_limit(self, epsilon: float) -> str:
        """Return what limited the width of the bracket at ε, or an empty text."""
        del epsilon
        return ""

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε with δ(ε) about ``target``; None by default, and if no approximation exists."""
        del target
        return None

    def delta_bounds_at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return both ends at many ε."""
        ends = np.array([self.delta(epsilon) for epsilon in epsilons.tolist()]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]


MAX_STEPS = 12
AIM_MARGIN = 1e-14
"""Relative margin by which the guess aims below the target, so that it stays below despite rounding."""
STOP_MARGIN = 1e-13
"""Relative distance from the target at which the iteration stops."""


def interpolate_epsilon(
    delta_at_epsilon: Callable[[float], float], rough: EpsilonGuess, target: float, largest: float
) -> EpsilonGuess:
    """Refine a rough guess of the ε at which δ equals the target, in few evaluations.

    Inverse interpolation of log δ at the last three points, bracketed once both sides are found. Returns the rough
    guess itself if the iteration misses the target.
    """
    points: list[tuple[float, float]] = []  # log of the ratio of δ to the target, and ε
    epsilon, low, high = rough.epsilon, 0.0, largest
    while len(points) < MAX_STEPS:
        delta = delta_at_epsilon(epsilon)
        if not delta > 0:
            return rough
        excess = math.log(delta / (target * (1 - AIM_MARGIN)))
        points.append((excess, epsilon))
        if abs(excess) <= STOP_MARGIN:
            break
        low, high = (epsilon, high) if excess > 0 else (low, epsilon)
        following = _zero_of_excess(points[-3:], rough.decay_rate)
        if not low < following < high:  # the midpoint; while one side is unbounded, twice or half the last point
            following = 2 * epsilon if math.isinf(high) else (low + high) / 2 if low > 0 else epsilon / 2
        if not abs(following - epsilon) > 2e-16 * epsilon:
            break
        epsilon = following
    excess, epsilon = min(points, key=lambda point: abs(point[0]))
    return EpsilonGuess(epsilon, rough.decay_rate) if abs(excess) < 1 else rough


def _zero_of_excess(points: list[tuple[float, float]], decay_rate: float) -> float:
    """Return the ε of zero excess from up to three points (excess, ε).

    By the slope −``decay_rate`` from one point, else by Neville's scheme for ε as a function of the excess.
    """
    if len(points) == 1:
        ((excess, epsilon),) = points
        return epsilon + excess / decay_rate
    (x, a), (y, b), *third = points
    line = (a * y - b * x) / (y - x) if x != y else b
    if not third or third[0][0] in (x, y):
        return line
    ((z, c),) = third
    other = (b * z - c * y) / (z - y)
    return (line * z - other * x) / (z - x)


# Smallest ε at a given δ, rounded to the requested side.

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
