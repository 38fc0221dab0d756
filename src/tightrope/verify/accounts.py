"""Claims of accounts and of training accounts, and privacy profiles δ(ε) of their steps, as intervals.

A profile is a closed form, a sum over shifted weights or a hull; sampling and erasure change it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, combinations
from typing import Any, NamedTuple

from flint import arb, fmpz

from tightrope.verify.claims import (
    CONFIRMED,
    NOT_CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    WorkLimitError,
    equality_claim,
    needs_no_finer_grid,
    require_affordable,
    shortest_float_text,
    unchecked_claim,
    upper_bound_claim,
)
from tightrope.verify.loss_grid import Curve, Grid, GridDistribution, compose_all
from tightrope.verify.promises import build_grids, exact_interval, smallest_positive

Profile = Callable[[Any], Any]
"""δ(ε) for real ε, as intervals, of the output with one person against the output without."""
MAX_WEIGHTS = 1 << 18
"""Maximum number of weights on one side."""
MASS_ROUNDING_UNITS = 1 << 24
"""Upper bound, in units, on what rounding adds to a mass on a grid."""
MAX_FALL_NATS = 40
"""A larger ε of a discrete staircase is replaced by this."""
MAX_FINITE_LOSS = 64
"""Losses beyond this many nats count as infinite."""


def gaussian_profile(mu: Any) -> Profile:
    """Return the Gaussian profile Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    return lambda e: normal_cdf(mu / 2 - e / mu) - e.exp() * normal_cdf(-mu / 2 - e / mu)


def normal_cdf(x: Any) -> Any:
    """Return the standard normal distribution function Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


def laplace_profile(size: Any) -> Profile:
    """Return the Laplace profile max(1 − e^((ε − size)/2), 0, 1 − e^ε), where size is sensitivity/scale."""
    return lambda e: arb(0).max((1 - e.exp()).max(1 - ((e - size) / 2).exp()))


def atoms_profile(pairs: list[tuple[Any, Any]], infinite: Any) -> Profile:
    """Return the profile of finitely many outcomes: (P, Q) masses, and the P mass of outcomes with Q mass 0."""
    return lambda e: sum((arb(0).max(p - e.exp() * q) for p, q in pairs), infinite)


def triple_profile(epsilon: Any, delta: Any, eta: Any) -> Profile:
    """Return the profile that dominates (ε, δ) with total variation η: losses ε, 0, −ε, and δ at infinity."""
    active = ((eta - delta) / ((1 - delta) * (epsilon / 2).tanh())).min(arb(1))
    top = (1 - delta) * active / (1 + (-epsilon).exp())
    bottom = top * (-epsilon).exp()
    middle = (1 - delta) * (1 - active)
    return atoms_profile([(top, bottom), (middle, middle), (bottom, top)], delta)


def staircase_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of staircase noise under a shift of one period: losses ε, 0, −ε.

    The density is constant on the first part of a period, of length γ, and smaller by e^−ε on the rest; γ defaults to
    1/(1 + e^(ε/2)). The total variation follows from the mass within half a period of 0.
    """
    epsilon = _positive_epsilon(step)
    gamma = 1 / (1 + (epsilon / 2).exp()) if step["gamma"] is None else exact_interval(step["gamma"])
    fall = (-epsilon).exp()
    low = fall * (1 - gamma)
    total = gamma + low
    inside = gamma.min(arb("0.5")) + fall * (arb("0.5") - gamma).max(arb(0))
    return triple_profile(epsilon, arb(0), (1 - fall) * inside / total)


def truncated_laplace_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of the density ∝ e^(−|x|) on [−a, a] under a shift by ε, a = log(1 + (e^ε − 1)/(2 δ)) ≥ ε.

    The optimal event is everything below y = (ε − e)/2, the part without overlap, or the support of P.
    """
    epsilon, delta = exact_interval(step["epsilon"]), exact_interval(step["delta"])
    if not epsilon > 0:
        return atoms_profile([(1 - delta, 1 - delta)], delta)
    edge = 1 / (1 + (epsilon.exp() - 1) / (2 * delta))
    norm = 2 * (1 - edge)

    def delta_at_epsilon(e: Any) -> Any:
        y = arb(0).max(epsilon.min((epsilon - e) / 2))
        below = (2 - edge - (-y).exp() - e.exp() * ((y - epsilon).exp() - edge)) / norm
        return delta.max(below).max(1 - e.exp() * (1 - delta))

    return delta_at_epsilon


def shifted_weights_profile(half: Sequence[Any], shift: int) -> Profile:
    """Return the profile of noise with weights ``half`` > 0 at 0, ±1, … under a shift, for log-concave weights.

    Losses then decrease from left to right, so the optimal event is everything below some cell.
    """
    require_affordable(len(half) + shift, MAX_WEIGHTS, "weights of a list")
    weights = [*reversed(half[1:]), *half]
    logs = [weight.log() for weight in weights]
    losses = [logs[k] - logs[k - shift] for k in range(shift, len(weights))]
    total = sum(weights, arb(0))
    sums = [partial_sum / total for partial_sum in accumulate(weights, initial=arb(0))]

    def delta_at_epsilon(e: Any) -> Any:
        low, high = 0, len(losses)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if losses[middle] > e else (low, middle)
        return sums[min(low + shift, len(weights))] - e.exp() * sums[low]

    return delta_at_epsilon if shift < len(weights) else atoms_profile([], arb(1))


def step_profile(step: dict[str, Any]) -> Profile | None:
    """Return the profile of one run of a step; None without a known closed form."""
    return _cached_step_profile(json.dumps({**step, "count": 1}, sort_keys=True))


@lru_cache(maxsize=64)
def _cached_step_profile(text: str) -> Profile | None:
    """Return the profile of a step given as JSON text, cached: finer grids evaluate it at the same points again."""
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
    """Return the profile with a cache for exact arguments."""
    values: dict[Any, Any] = {}

    def delta_at_epsilon(e: Any) -> Any:
        if not e.is_exact():
            return profile(e)
        key = e.man_exp()
        if key not in values:
            values[key] = profile(e)
        return values[key]

    return delta_at_epsilon


@lru_cache(maxsize=64)
def composed_gaussians_profile(steps: tuple[tuple[int, float | int, float | int], ...]) -> Profile:
    """Return the profile of Gaussian steps (count, sensitivity, scale) together, exactly: their μ² add up."""
    square = sum((count * (exact_interval(size) / exact_interval(scale)) ** 2 for count, size, scale in steps), arb(0))
    return cached_profile(gaussian_profile(square.sqrt()))


def scaled_distance(step: dict[str, Any]) -> Any:
    """Return the sensitivity divided by the scale; raises ``BrokenError`` unless the scale is above 0."""
    if not step["scale"] > 0:
        raise BrokenError("a scale that is not above 0")
    return exact_interval(step["sensitivity"] or 1) / exact_interval(step["scale"])


def approx_dp_profile(step: dict[str, Any]) -> Profile:
    """Return the profile that dominates every mechanism with this ε, δ and total variation."""
    epsilon, delta = exact_interval(step["epsilon"]), exact_interval(step["delta"] or 0)
    eta = exact_interval(1 if step["total_variation"] is None else step["total_variation"])
    if not epsilon > 0 or not delta < 1:
        return atoms_profile([(1 - delta, 1 - delta)], delta)
    return triple_profile(epsilon, delta.min(eta), eta)


def randomized_response_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of a response among k values: the true one is kept with odds e^ε."""
    odds, k = exact_interval(step["epsilon"]).exp(), int(step["k"] or 2)
    keep, other = odds / (odds + k - 1), 1 / (odds + k - 1)
    return atoms_profile([(keep, other), (other, keep), ((k - 2) * other, (k - 2) * other)], arb(0))


def pair_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of a stated pair of distributions, each divided by its sum."""
    p, q = ([exact_interval(x) for x in step[name]] for name in "pq")
    p_total, q_total = sum(p, arb(0)), sum(q, arb(0))
    pairs = [(a / p_total, b / q_total) for a, b in zip(p, q, strict=True)]
    return atoms_profile(pairs, arb(0))


def discrete_laplace_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of weights e^(−|x|/scale): one atom for each cell between the centers, and for each side."""
    ratio, shift = (-1 / exact_interval(step["scale"])).exp(), int(step["sensitivity"] or 1)
    center = (1 - ratio) / (1 + ratio)
    side = center / (1 - ratio)
    bounds = [(center * ratio**y, center * ratio ** (shift - y)) for y in range(1, shift)]
    return atoms_profile([(side, side * ratio**shift), *bounds, (side * ratio**shift, side)], arb(0))


def _positive_epsilon(step: dict[str, Any]) -> Any:
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


def discrete_staircase_profile(step: dict[str, Any]) -> Profile:
    """Return the discrete staircase profile: weights e^(−iε), i increasing every ``size`` cells from ``first`` on.

    η is the mass of the ``size`` cells around 0.
    """
    epsilon, size = _positive_epsilon(step).min(arb(MAX_FALL_NATS)), _integer_shift(step)
    fall = (-epsilon).exp()

    def expected_cost(first: int) -> float:
        mass = first + fall * (size - first)
        head = (first * (first - 1) + fall * (size * (size - 1) - first * (first - 1))) / 2
        return float((head + size * fall * mass / (1 - fall)) / (2 * mass - (1 - fall)))

    if step["gamma"] is None:  # the smallest E|X|
        first = min(range(1, size + 1), key=expected_cost)
    else:
        first = max(1, math.floor(step["gamma"] * size + 0.5))
    total = 2 * (first + fall * (size - first)) / (1 - fall) - 1
    middle_mass = sum((arb(1) if abs(y) < first else fall for y in range(-(size // 2), (size + 1) // 2)), arb(0))
    return triple_profile(epsilon, arb(0), middle_mass / total)


def discrete_gaussian_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of weights e^(−x²/(2 scale²)), without those of probability below 2^−128."""
    scale, shift = exact_interval(step["scale"]), _integer_shift(step)
    require_affordable(math.ceil(14 * step["scale"]), MAX_WEIGHTS, "weights of a list")
    half = [(-(arb(x) ** 2) / (2 * scale**2)).exp() for x in range(math.ceil(14 * step["scale"]) + 2)]
    faint = (2 * sum(half, arb(0)) - 1) / arb(2) ** 128
    return shifted_weights_profile([weight for weight in half if not weight < faint], shift)


def discrete_truncated_laplace_profile(step: dict[str, Any]) -> Profile:
    """Return the profile of weights r^|x|, r = e^(−ε/size), for |x| < n, and a part of r^n at ±n.

    n is the first at which δ allows to stop.
    """
    epsilon, delta, size = _positive_epsilon(step), exact_interval(step["delta"]), _integer_shift(step)
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


def points_profile(step: dict[str, Any]) -> Profile:
    """Return the lower convex hull of points (γ = e^ε, δ).

    The points are those up to the one with the least δ, their mirrors (1/γ, 1 − (1 − δ)/γ), and (0, 1). The value of
    the hull is the minimum over all chords at γ, and over all points to the left.
    """
    last = min(step["points"], key=lambda point: (point[1], point[0]))
    used = sorted((e, d) for e, d in step["points"] if e <= last[0])
    ahead = [(exact_interval(e).exp(), exact_interval(d)) for e, d in used]
    mirrored = [(1 / growth, 1 - (1 - delta) / growth) for growth, delta in reversed(ahead)]
    points = [(arb(0), arb(1)), *mirrored, *ahead]

    def delta_at_epsilon(e: Any) -> Any:
        gamma = e.exp()
        delta = arb(1)
        for (left, left_delta), (right, right_delta) in combinations(points, 2):
            if not (gamma < left or gamma > right):  # an endpoint that overlaps γ counts as inside
                delta = delta.min(left_delta + (right_delta - left_delta) * (gamma - left) / (right - left))
        for left, left_delta in points:
            delta = delta if gamma < left else delta.min(left_delta)
        return delta

    return delta_at_epsilon


PROFILE_MAKERS: dict[str, Callable[[dict[str, Any]], Profile]] = {
    "gaussian": lambda step: gaussian_profile(scaled_distance(step)),
    "laplace": lambda step: laplace_profile(scaled_distance(step)),
    "discrete_laplace": discrete_laplace_profile,
    "approx_dp": approx_dp_profile,
    "randomized_response": randomized_response_profile,
    "from_pair": pair_profile,
    "from_points": points_profile,
    "staircase": staircase_profile,
    "truncated_laplace": truncated_laplace_profile,
    "discrete_staircase": discrete_staircase_profile,
    "discrete_gaussian": discrete_gaussian_profile,
    "discrete_truncated_laplace": discrete_truncated_laplace_profile,
}


def poisson_sampled_profile(profile: Profile, rate: Any) -> Profile:
    """Return the profile of (1 − q) Q + q P against Q: q δ(log((e^ε − 1 + q)/q)), and 1 − e^ε below log(1 − q)."""

    def delta_at_epsilon(e: Any) -> Any:
        ratio = (e.exp() - 1 + rate) / rate
        if ratio > 0:
            return rate * profile(ratio.log())
        return 1 - e.exp() if ratio <= 0 else (1 - e.exp()).union(rate)

    return delta_at_epsilon if rate > 0 else (lambda e: arb(0).max(1 - e.exp()))


def subset_sampled_profile(profile: Profile, rate: Any) -> Profile:
    """Return rate · δ(log(1 + (e^ε − 1)/rate)) for ε ≥ 0, and its reflection for ε < 0: the pair is symmetric."""

    def delta_at_epsilon(e: Any) -> Any:
        return rate * profile((1 + (e.exp() - 1) / rate).log()) if rate > 0 else arb(0)

    return lambda e: delta_at_epsilon(e) if e >= 0 else 1 - e.exp() + e.exp() * delta_at_epsilon(-e)


def erased_profile(profile: Profile, probability: Any) -> Profile:
    """Return the profile if the output is erased with this probability."""
    return lambda e: (1 - probability) * profile(e) + probability * arb(0).max(1 - e.exp())


def reversed_profile(profile: Profile) -> Profile:
    """Return the profile of the exchanged pair: e^ε δ(−ε) + 1 − e^ε."""
    return lambda e: e.exp() * profile(-e) + 1 - e.exp()


def profile_on_grid(grid: Grid, profile: Profile) -> GridDistribution:
    """Return a distribution whose profile is above this one, or below it if the grid rounds down."""
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
    """Return twice the number of steps beyond which only infinite losses and a negligible mass remain."""
    limit, reach = profile(arb(MAX_FINITE_LOSS)).upper() + arb(grid.faint) / grid.one, 1
    while reach * grid.step < MAX_FINITE_LOSS and profile(grid.step * reach).upper() > limit:
        reach *= 2
    return 2 * reach


# The claims.

ACCOUNT_GRID_EXPONENTS = (6, 8, 10, 12)
MAX_CURVE_POINTS = 1 << 18
"""No finer grid is tried after a distribution with more grid points than this."""
ACCOUNT_TOLERANCE = 1e-2
"""Relative tolerance of δ for long compositions; the finding states it."""
UNSAMPLED_FIELDS = {"poisson_rate": None, "subset": None, "erase": None}


def account_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of an account."""
    return StatedAccount(data, data["steps"], data["epsilon_at_delta"], data["delta_at_epsilon"]).all_claims()


def training_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of the account of a training run: Gaussian steps on samples."""
    step = {**UNSAMPLED_FIELDS, "mechanism": "gaussian", "scale": data["noise_multiplier"], "count": data["steps"]}
    if data["sampling"] == "poisson":
        step |= {"sensitivity": 1, "poisson_rate": data["sampling_rate"]}
    else:
        step |= {"sensitivity": 2, "subset": [data["batch"], data["examples"]]}
    rate = equality_claim("sampling_rate", data["sampling_rate"], data["batch"] / data["examples"])
    unchecked = unchecked_claim("comparison, picture", "results of other methods, and a file name")
    neighbors = equality_claim(
        "neighbors", data["neighbors"], "add-remove" if data["sampling"] == "poisson" else "replace-one"
    )
    return [rate, neighbors, *StatedAccount(data, [step], [data], []).all_claims(), unchecked]


class StatedAccount(NamedTuple):
    """The numbers of an account: its document, its steps, and the rows of ε at stated δ and of δ at stated ε."""

    data: dict[str, Any]
    steps: Any
    epsilons: Any
    deltas: Any

    def all_claims(self) -> list[Claim]:
        """Return every claim: the stated widths first, then the bounds, recomputed from the profiles of the steps."""
        data = self.data
        claims = [
            equality_claim("attack_success", data["attack_success"], (1 + data["total_variation"]) / 2),
            *self._bracket_width_claims(),
            unchecked_claim("neighbors, method, statement", "descriptions of how it was made"),
        ]
        # All Gaussian steps without sampling or erasure are one step with the same profile, and symmetric.
        gaussians: list[tuple[int, float | int, float | int]] = []
        runs: list[tuple[Profile, int]] = []
        unknown = set[str]()
        for step in self.steps:
            profile = step_profile(step)
            if profile is None:
                unknown.add(step["mechanism"])
            elif step["mechanism"] == "gaussian" and {**step, **UNSAMPLED_FIELDS} == step:
                gaussians.append((step["count"], step["sensitivity"] or 1, step["scale"]))
            else:
                runs.append((profile, step["count"]))
        if unknown:
            why = "not recomputed: no closed form is available"
            return [*claims, Claim("steps", ", ".join(sorted(unknown)), why, NOT_CONFIRMED)]
        merged = [(composed_gaussians_profile(tuple(gaussians)), 1)] if gaussians else []
        is_symmetric = all(step["poisson_rate"] is None and step["mechanism"] != "from_pair" for step in self.steps)
        directions = [merged + runs]
        if not is_symmetric:
            directions.append(merged + [(reversed_profile(profile), count) for profile, count in runs])
        return claims + self._refined_claims(directions)

    def _bracket_width_claims(self) -> Iterator[Claim]:
        """Check that each stated value is the upper end of its bracket, and the stated relative width."""
        for rows, name in ((self.epsilons, "epsilon"), (self.deltas, "delta")):
            for number, row in enumerate(rows):
                path, lower, upper = f"{name}_at[{number}]", row["lower"], row["upper"]
                yield equality_claim(f"{path}.{name}", row[name], upper)
                if name == "epsilon" and upper is None:
                    yield unchecked_claim(f"{path}", "no bound is claimed")
                if lower is not None and upper is not None:
                    width = 0.0 if lower == upper else (upper - lower) / upper
                    yield equality_claim(f"{path}.relative_width", row["relative_width"], width)

    def _refined_claims(self, directions: list[list[tuple[Profile, int]]]) -> list[Claim]:
        """Return the claims of every bound, on finer grids while one is not confirmed or needs a tolerance."""
        least = smallest_positive(*(row["delta"] for row in (*self.epsilons, *self.deltas)))

        def composed_curve(grid: Grid, runs: list[tuple[Profile, int]]) -> Curve:
            powers = [grid.convolve_power(profile_on_grid(grid, profile), count) for profile, count in runs]
            return Curve(grid, compose_all(grid, powers))

        claims: list[Claim] = []
        for exponent in ACCOUNT_GRID_EXPONENTS:
            try:
                lows, highs = (
                    [composed_curve(grid, runs) for runs in directions] for grid in build_grids(exponent, least)
                )
            except WorkLimitError as problem:
                return claims or [Claim("everything", "", str(problem), NOT_CONFIRMED)]
            claims = [*self._bound_claims(lows, highs)]
            improvable = any(
                one.verdict == NOT_CONFIRMED or one.finding.endswith(("times 1.01", "times 1.001")) for one in claims
            )
            large = max(len(curve.values) for curve in highs) > MAX_CURVE_POINTS
            if needs_no_finer_grid(claims) or large or not improvable:
                break
        return claims

    def _bound_claims(self, lows: list[Curve], highs: list[Curve]) -> Iterator[Claim]:
        """Yield the claims of every bracket and attack rate, from profiles below (``lows``) and above (``highs``)."""

        def delta_interval(epsilon: Any) -> tuple[Any, Any]:
            low, high = (max(curve.delta(epsilon) for curve in curves) for curves in (lows, highs))
            return low, high

        for number, row in enumerate(self.epsilons):
            name, delta = f"epsilon_at_delta[{number}]", exact_interval(row["delta"])
            if row["upper"] is not None:
                claim = upper_bound_claim(
                    name, delta, *delta_interval(exact_interval(row["upper"])), tight=False, close=ACCOUNT_TOLERANCE
                )
                yield claim._replace(name=f"{name}: delta({row['upper']})")
            if row["lower"] is not None:
                found = delta_interval(exact_interval(row["lower"]))
                yield _lower_end(f"{name}.lower: delta({row['lower']})", delta, *found, above=True)
        for number, row in enumerate(self.deltas):
            name = f"delta_at_epsilon[{number}]: delta({row['epsilon']})"
            found = delta_interval(exact_interval(row["epsilon"]))
            yield upper_bound_claim(name, exact_interval(row["upper"]), *found, close=ACCOUNT_TOLERANCE)
            yield _lower_end(f"delta_at_epsilon[{number}].lower", exact_interval(row["lower"]), *found, above=False)
        stated, found = exact_interval(self.data["total_variation"]), delta_interval(arb(0))
        yield upper_bound_claim("total_variation: delta(0)", stated, *found, close=ACCOUNT_TOLERANCE)
        for number, row in enumerate(self.data["attack"]):
            rate = exact_interval(row["false_positive_rate"])
            low, high = (max(curve.power_at(rate) for curve in curves) for curves in (lows, highs))
            yield upper_bound_claim(
                f"attack[{number}]", exact_interval(row["true_positive_rate"]), low, high, close=ACCOUNT_TOLERANCE
            )


def _lower_end(name: str, stated: Any, low: Any, high: Any, *, above: bool) -> Claim:
    """Check the lower end of a bracket of ε (``above``: δ(ε) ≥ δ at that ε) or of δ."""
    found = f"in [{shortest_float_text(low, -1)}, {shortest_float_text(high, 1)}]"
    if high < stated * (1 - (1e-9 if above else 0)):
        return Claim(name, shortest_float_text(stated), f"{found}: the true value is below the stated bound", REFUTED)
    if low >= stated:
        return Claim(name, shortest_float_text(stated), found, CONFIRMED)
    return unchecked_claim(name, f"{found}: a lower bound (not a privacy claim) that the grid does not reach")
