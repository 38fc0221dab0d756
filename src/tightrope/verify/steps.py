"""The privacy loss of one step: its profile in closed form, with sampling and erasure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, combinations
from typing import Any

from flint import arb, fmpz

from tightrope.verify.claims import BrokenError, require_affordable
from tightrope.verify.laws import Grid, GridDistribution
from tightrope.verify.promises import exact_interval

# Profiles of pairs of laws, as intervals: closed forms, lists of weights under a shift, hulls of points.

Profile = Callable[[Any], Any]
"""δ(ε) at every real ε, as intervals, of the pair with and without a person."""
MAX_WEIGHTS = 1 << 18
"""Weights of a list on one side at most."""


def gaussian_profile(mu: Any) -> Profile:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    return lambda e: normal_cdf(mu / 2 - e / mu) - e.exp() * normal_cdf(-mu / 2 - e / mu)


def normal_cdf(x: Any) -> Any:
    """Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


def laplace_profile(size: Any) -> Profile:
    """The largest of 1 − e^((ε − size)/2), 0 (above size) and 1 − e^ε (below −size)."""
    return lambda e: arb(0).max((1 - e.exp()).max(1 - ((e - size) / 2).exp()))


def atoms_profile(pairs: list[tuple[Any, Any]], infinite: Any) -> Profile:
    """Return the profile of finitely many outcomes: masses with and without a person, and the mass only with."""
    return lambda e: sum((arb(0).max(p - e.exp() * q) for p, q in pairs), infinite)


def triple_profile(epsilon: Any, delta: Any, eta: Any) -> Profile:
    """The dominating pair of (ε, δ) with total variation η: losses ε, 0, −ε, and δ at infinity."""
    active = ((eta - delta) / ((1 - delta) * (epsilon / 2).tanh())).min(arb(1))
    top = (1 - delta) * active / (1 + (-epsilon).exp())
    back = top * (-epsilon).exp()
    rest = (1 - delta) * (1 - active)
    return atoms_profile([(top, back), (rest, rest), (back, top)], delta)


def staircase_profile(epsilon: Any, gamma: Any) -> Profile:
    """Staircase noise under a shift of one period: losses ε, 0, −ε; η is the mass within half a period.

    A period holds a share g of its mass on its first part of length γ, evenly, and the rest on the other.
    """
    fall = (-epsilon).exp()
    low = fall * (1 - gamma)
    whole = gamma + low
    inside = gamma.min(arb("0.5")) + fall * (arb("0.5") - gamma).max(arb(0))
    return triple_profile(epsilon, arb(0), (1 - fall) * inside / whole)


def truncated_laplace_profile(epsilon: Any, delta: Any) -> Profile:
    """Density e^(−|x|) on [−a, a] under a shift by ε, a = log(1 + (e^ε − 1)/(2 δ)) ≥ ε: only with P, with both.

    The best set is everything below y = (ε − e)/2, or the common support.
    """
    if not epsilon > 0:
        return atoms_profile([(1 - delta, 1 - delta)], delta)
    end = 1 / (1 + (epsilon.exp() - 1) / (2 * delta))
    norm = 2 * (1 - end)

    def delta_at(e: Any) -> Any:
        y = arb(0).max(epsilon.min((epsilon - e) / 2))
        below = (2 - end - (-y).exp() - e.exp() * ((y - epsilon).exp() - end)) / norm
        return delta.max(below).max(1 - e.exp() * (1 - delta))

    return delta_at


def shifted_weights_profile(half: Sequence[Any], shift: int) -> Profile:
    """Weights at 0, ±1, … (``half``, above 0), moved by ``shift``, where the ratio of neighbors falls outwards.

    Then losses fall from left to right, the largest shift loses most, and the best set is all below some place.
    """
    require_affordable(len(half) + shift, MAX_WEIGHTS, "weights of a list")
    weights = [*reversed(half[1:]), *half]
    logs = [weight.log() for weight in weights]
    losses = [logs[k] - logs[k - shift] for k in range(shift, len(weights))]
    total = sum(weights, arb(0))
    sums = [one / total for one in accumulate(weights, initial=arb(0))]

    def delta_at(e: Any) -> Any:
        low, high = 0, len(losses)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if losses[middle] > e else (low, middle)
        return sums[min(low + shift, len(weights))] - e.exp() * sums[low]

    return delta_at if shift < len(weights) else atoms_profile([], arb(1))


def convex_hull_profile(points: Sequence[tuple[Any, Any]]) -> Profile:
    """The largest convex profile below points (γ = e^ε, δ), ascending; constant after the last.

    It is the lowest chord over each place, and it never rises.
    """

    def delta_at(e: Any) -> Any:
        place = e.exp()
        found = arb(1)
        for (left, here), (right, there) in combinations(points, 2):
            if not (place < left or place > right):  # an end that cannot be told from the place is one
                found = found.min(here + (there - here) * (place - left) / (right - left))
        for left, here in points:
            found = found if place < left else found.min(here)
        return found

    return delta_at


MASS_ROUNDING_UNITS = 1 << 24
"""Most units that rounding of a mass on a grid adds."""
MAX_FALL_NATS = 40
"""Nats from one cell to the next, at most."""
MAX_FINITE_LOSS = 64
"""Nats beyond which a loss counts as infinite."""


def step_profile(step: dict[str, Any]) -> Profile | None:
    """Return the profile of one run of a step; None without a known closed form."""
    return _known_profile(json.dumps({**step, "count": 1}, sort_keys=True))


@lru_cache(maxsize=64)
def _known_profile(text: str) -> Profile | None:
    """Of a step as text: grids that are made finer, and documents that say the same, ask at the same places again."""
    step = json.loads(text)
    maker = PROFILE_MAKERS.get(step["mechanism"])
    if maker is None:
        return None
    profile = maker(step)
    if step["poisson_rate"] is not None:
        profile = poisson_sampled_profile(profile, exact_interval(step["poisson_rate"]))
    if step["subset"] is not None:
        profile = subset_sampled_profile(profile, exact_interval(step["subset"][0]) / exact_interval(step["subset"][1]))
    return cached_profile(profile if step["erase"] is None else erased_profile(profile, exact_interval(step["erase"])))


def cached_profile(profile: Profile) -> Profile:
    """The same profile, computed once at each place that is exact."""
    known: dict[Any, Any] = {}

    def delta_at(e: Any) -> Any:
        if not e.is_exact():
            return profile(e)
        place = e.man_exp()
        if place not in known:
            known[place] = profile(e)
        return known[place]

    return delta_at


@lru_cache(maxsize=64)
def composed_gaussians_profile(steps: tuple[tuple[int, float | int, float | int], ...]) -> Profile:
    """Return the profile of Gaussian steps (count, sensitivity, scale) together, exactly: their μ² add up."""
    square = sum((count * (exact_interval(size) / exact_interval(scale)) ** 2 for count, size, scale in steps), arb(0))
    return cached_profile(gaussian_profile(square.sqrt()))


def scaled_distance(step: dict[str, Any]) -> Any:
    """Sensitivity over scale."""
    if not step["scale"] > 0:
        raise BrokenError("a scale that is not above 0")
    return exact_interval(step["sensitivity"] or 1) / exact_interval(step["scale"])


def _approx_dp_profile(step: dict[str, Any]) -> Profile:
    epsilon, delta = exact_interval(step["epsilon"]), exact_interval(step["delta"] or 0)
    eta = exact_interval(1 if step["total_variation"] is None else step["total_variation"])
    if not epsilon > 0 or not delta < 1:
        return atoms_profile([(1 - delta, 1 - delta)], delta)
    return triple_profile(epsilon, delta.min(eta), eta)


def _randomized_response_profile(step: dict[str, Any]) -> Profile:
    odds, k = exact_interval(step["epsilon"]).exp(), int(step["k"] or 2)
    keep, other = odds / (odds + k - 1), 1 / (odds + k - 1)
    return atoms_profile([(keep, other), (other, keep), ((k - 2) * other, (k - 2) * other)], arb(0))


def _pair_profile(step: dict[str, Any]) -> Profile:
    p, q = ([exact_interval(x) for x in step[name]] for name in "pq")
    first, second = sum(p, arb(0)), sum(q, arb(0))
    both = [(a / first, b / second) for a, b in zip(p, q, strict=True)]
    return atoms_profile(both, arb(0))


def _discrete_laplace_profile(step: dict[str, Any]) -> Profile:
    """Weights e^(−|x|/scale): the losses between the two centers, and one atom for each side."""
    ratio, shift = (-1 / exact_interval(step["scale"])).exp(), int(step["sensitivity"] or 1)
    center = (1 - ratio) / (1 + ratio)
    side = center / (1 - ratio)
    bounds = [(center * ratio**y, center * ratio ** (shift - y)) for y in range(1, shift)]
    return atoms_profile([(side, side * ratio**shift), *bounds, (side * ratio**shift, side)], arb(0))


def _staircase_step_profile(step: dict[str, Any]) -> Profile:
    """Return the staircase profile; γ defaults to 1/(1 + e^(ε/2))."""
    epsilon = _above_zero(step)
    best = 1 / (1 + (epsilon / 2).exp())
    return staircase_profile(epsilon, best if step["gamma"] is None else exact_interval(step["gamma"]))


def _above_zero(step: dict[str, Any]) -> Any:
    if not step["epsilon"] > 0:
        raise BrokenError("an epsilon that is not above 0")
    return exact_interval(step["epsilon"])


def _integer_shift(step: dict[str, Any]) -> int:
    """Return the shift of the noise in cells."""
    size = step["sensitivity"] or 1
    if int(size) != size:
        raise BrokenError("a sensitivity that is not an integer, for integer noise")
    require_affordable(int(size), MAX_WEIGHTS, "cells of a shift")
    return int(size)


def _discrete_stairs(step: dict[str, Any]) -> Profile:
    """Levels e^(−iε), i one more every ``size`` cells from ``first`` on: η is the mass of the cells around 0."""
    epsilon, size = _above_zero(step).min(arb(MAX_FALL_NATS)), _integer_shift(step)
    fall = (-epsilon).exp()

    def expected_cost(first: int) -> float:
        mass = first + fall * (size - first)
        inner = (first * (first - 1) + fall * (size * (size - 1) - first * (first - 1))) / 2
        return float((inner + size * fall * mass / (1 - fall)) / (2 * mass - (1 - fall)))

    if step["gamma"] is None:  # the least E|X|
        first = min(range(1, size + 1), key=expected_cost)
    else:
        first = max(1, math.floor(step["gamma"] * size + 0.5))
    total = 2 * (first + fall * (size - first)) / (1 - fall) - 1
    around = sum((arb(1) if abs(y) < first else fall for y in range(-(size // 2), (size + 1) // 2)), arb(0))
    return triple_profile(epsilon, arb(0), around / total)


def _discrete_gaussian(step: dict[str, Any]) -> Profile:
    """E^(−x²/(2 scale²)) as far out as its probability is at least 2^−128."""
    scale, shift = exact_interval(step["scale"]), _integer_shift(step)
    require_affordable(math.ceil(14 * step["scale"]), MAX_WEIGHTS, "weights of a list")
    half = [(-(arb(x) ** 2) / (2 * scale**2)).exp() for x in range(math.ceil(14 * step["scale"]) + 2)]
    faint = (2 * sum(half, arb(0)) - 1) / arb(2) ** 128
    return shifted_weights_profile([weight for weight in half if not weight < faint], shift)


def _discrete_cut(step: dict[str, Any]) -> Profile:
    """R^|x|, r = e^(−ε/size), for |x| < n and a part of that at ±n: the first n at which δ allows to stop."""
    epsilon, delta, size = _above_zero(step), exact_interval(step["delta"]), _integer_shift(step)
    ratio = (-(epsilon / size).min(arb(MAX_FALL_NATS))).exp()
    half, above = [arb(1)], [arb(0), arb(1)]  # above[n]: the sum of the first n powers
    while len(half) <= size or not above[-1] - above[-1 - size] <= delta * (2 * above[-1] - 1):
        require_affordable(len(half), MAX_WEIGHTS, "weights of a list")
        half.append(half[-1] * ratio)
        above.append(above[-1] + half[-1])
    end = len(half) - 1
    missing = above[end] - above[end - size] - delta * (2 * above[end] - 1)
    part = missing / (half[end - size] - half[end] + 2 * delta * half[end])
    return shifted_weights_profile([*half[:end], part * half[end]], size)


def _mirrored_points_profile(step: dict[str, Any]) -> Profile:
    """The points up to the one with the least δ, their mirrors (1/γ, 1 − (1 − δ)/γ), and (0, 1)."""
    last = min(step["points"], key=lambda point: (point[1], point[0]))
    used = sorted((e, d) for e, d in step["points"] if e <= last[0])
    ahead = [(exact_interval(e).exp(), exact_interval(d)) for e, d in used]
    mirrored = [(1 / growth, 1 - (1 - delta) / growth) for growth, delta in reversed(ahead)]
    return convex_hull_profile([(arb(0), arb(1)), *mirrored, *ahead])


PROFILE_MAKERS: dict[str, Callable[[dict[str, Any]], Profile]] = {
    "gaussian": lambda step: gaussian_profile(scaled_distance(step)),
    "laplace": lambda step: laplace_profile(scaled_distance(step)),
    "discrete_laplace": _discrete_laplace_profile,
    "approx_dp": _approx_dp_profile,
    "randomized_response": _randomized_response_profile,
    "from_pair": _pair_profile,
    "from_points": _mirrored_points_profile,
    "staircase": _staircase_step_profile,
    "truncated_laplace": lambda step: truncated_laplace_profile(
        exact_interval(step["epsilon"]), exact_interval(step["delta"])
    ),
    "discrete_staircase": _discrete_stairs,
    "discrete_gaussian": _discrete_gaussian,
    "discrete_truncated_laplace": _discrete_cut,
}


def poisson_sampled_profile(profile: Profile, rate: Any) -> Profile:
    """(1 − q) Q + q P against Q: q δ(log((e^ε − 1 + q)/q)), and 1 − e^ε below log(1 − q)."""

    def delta_at(e: Any) -> Any:
        inside = (e.exp() - 1 + rate) / rate
        if inside > 0:
            return rate * profile(inside.log())
        return 1 - e.exp() if inside <= 0 else (1 - e.exp()).union(rate)

    return delta_at if rate > 0 else (lambda e: arb(0).max(1 - e.exp()))


def subset_sampled_profile(profile: Profile, rate: Any) -> Profile:
    """Rate δ(log(1 + (e^ε − 1)/rate)) for ε ≥ 0, and its mirror image below: pairs that are their own reverse."""

    def delta_at(e: Any) -> Any:
        return rate * profile((1 + (e.exp() - 1) / rate).log()) if rate > 0 else arb(0)

    return lambda e: delta_at(e) if e >= 0 else 1 - e.exp() + e.exp() * delta_at(-e)


def erased_profile(profile: Profile, probability: Any) -> Profile:
    """Return the profile if the output is erased with this probability."""
    return lambda e: (1 - probability) * profile(e) + probability * arb(0).max(1 - e.exp())


def reversed_profile(profile: Profile) -> Profile:
    """The profile without a person against with: e^ε δ(−ε) + 1 − e^ε."""
    return lambda e: e.exp() * profile(-e) + 1 - e.exp()


def profile_on_grid(grid: Grid, profile: Profile) -> GridDistribution:
    """The law above a profile, as far as that is not faint; or one below it, every loss less by at most two steps."""
    low, high = -_support_length(grid, reversed_profile(profile)), _support_length(grid, profile)
    if grid.up:
        return grid.from_profile(profile, low, high)
    above = grid.upwards.from_profile(profile, low, high)
    masses = [max(fmpz(0), mass - MASS_ROUNDING_UNITS) for mass in above.masses]
    lifted = grid.faint if above.low > low else above.masses[0]
    masses[0] = max(fmpz(0), masses[0] - lifted)
    masses[-1] += max(fmpz(0), above.infinite - MASS_ROUNDING_UNITS)
    return GridDistribution(above.low - 1, masses, fmpz(0))


def _support_length(grid: Grid, profile: Profile) -> int:
    """Steps up to where no more than what is infinite, and something faint, is left; twice as many, for its mass."""
    left, reach = profile(arb(MAX_FINITE_LOSS)).upper() + arb(grid.faint) / grid.one, 1
    while reach * grid.step < MAX_FINITE_LOSS and profile(grid.step * reach).upper() > left:
        reach *= 2
    return 2 * reach
