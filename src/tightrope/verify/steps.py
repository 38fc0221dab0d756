"""What one step loses: its profile in closed form, and what sampling and erasing make of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from flint import arb, fmpz

from tightrope.verify.claims import BrokenError
from tightrope.verify.laws import Grid, Law
from tightrope.verify.promises import exactly

Profile = Callable[[Any], Any]
"""δ(ε) at every real ε, as intervals, of the pair with and without a person."""
ROUNDED = 1 << 24
"""Units that the rounding of a mass on a grid comes to, at most."""
WIDEST = 64
"""Nats beyond which a loss counts as infinite."""


def profile_of(step: dict[str, Any]) -> Profile | None:
    """The profile of one run of a step; None where no closed form is known here."""
    return _known(json.dumps({**step, "count": 1}, sort_keys=True))


@lru_cache(maxsize=64)
def _known(text: str) -> Profile | None:
    """Of a step as text: grids that are made finer, and documents that say the same, ask at the same places again."""
    step = json.loads(text)
    maker = MAKERS.get(step["mechanism"])
    if maker is None:
        return None
    profile = maker(step)
    if step["poisson_rate"] is not None:
        profile = poisson(profile, exactly(step["poisson_rate"]))
    if step["subset"] is not None:
        profile = subset(profile, exactly(step["subset"][0]) / exactly(step["subset"][1]))
    return remembered(profile if step["erase"] is None else erased(profile, exactly(step["erase"])))


def remembered(profile: Profile) -> Profile:
    """The same profile, computed once at each place that is exact."""
    known: dict[Any, Any] = {}

    def told(e: Any) -> Any:
        if not e.is_exact():
            return profile(e)
        place = e.man_exp()
        if place not in known:
            known[place] = profile(e)
        return known[place]

    return told


@lru_cache(maxsize=64)
def gaussians(steps: tuple[tuple[int, float | int, float | int], ...]) -> Profile:
    """Of Gaussian steps (count, sensitivity, scale) together, exactly: their μ² add up."""
    square = sum((count * (exactly(size) / exactly(scale)) ** 2 for count, size, scale in steps), arb(0))
    return remembered(gaussian(square.sqrt()))


def apart(step: dict[str, Any]) -> Any:
    """Sensitivity over scale."""
    if not step["scale"] > 0:
        raise BrokenError("a scale that is not above 0")
    return exactly(step["sensitivity"] or 1) / exactly(step["scale"])


def gaussian(mu: Any) -> Profile:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    return lambda e: normal(mu / 2 - e / mu) - e.exp() * normal(-mu / 2 - e / mu)


def normal(x: Any) -> Any:
    """Φ(x)."""
    return (-x / arb(2).sqrt()).erfc() / 2


def laplace(size: Any) -> Profile:
    """The largest of 1 − e^((ε − size)/2), 0 (above size) and 1 − e^ε (below −size)."""
    return lambda e: arb(0).max((1 - e.exp()).max(1 - ((e - size) / 2).exp()))


def atoms(pairs: list[tuple[Any, Any]], infinite: Any) -> Profile:
    """Of finitely many outcomes: their masses with and without a person, and the mass of those only with."""
    return lambda e: sum((arb(0).max(p - e.exp() * q) for p, q in pairs), infinite)


def triple(epsilon: Any, delta: Any, eta: Any) -> Profile:
    """The dominating pair of (ε, δ) with total variation η: losses ε, 0, −ε, and δ at infinity."""
    active = ((eta - delta) / ((1 - delta) * (epsilon / 2).tanh())).min(arb(1))
    top = (1 - delta) * active / (1 + (-epsilon).exp())
    back = top * (-epsilon).exp()
    rest = (1 - delta) * (1 - active)
    return atoms([(top, back), (rest, rest), (back, top)], delta)


def _claimed(step: dict[str, Any]) -> Profile:
    epsilon, delta = exactly(step["epsilon"]), exactly(step["delta"] or 0)
    eta = exactly(1 if step["total_variation"] is None else step["total_variation"])
    if not epsilon > 0 or not delta < 1:
        return atoms([(1 - delta, 1 - delta)], delta)
    return triple(epsilon, delta.min(eta), eta)


def _response(step: dict[str, Any]) -> Profile:
    odds, k = exactly(step["epsilon"]).exp(), int(step["k"] or 2)
    keep, other = odds / (odds + k - 1), 1 / (odds + k - 1)
    return atoms([(keep, other), (other, keep), ((k - 2) * other, (k - 2) * other)], arb(0))


def _pair(step: dict[str, Any]) -> Profile:
    p, q = ([exactly(x) for x in step[name]] for name in "pq")
    first, second = sum(p, arb(0)), sum(q, arb(0))
    both = [(a / first, b / second) for a, b in zip(p, q, strict=True)]
    return atoms(both, arb(0))


def _discrete(step: dict[str, Any]) -> Profile:
    """Weights e^(−|x|/scale): the losses between the two centres, and one atom for each side."""
    ratio, shift = (-1 / exactly(step["scale"])).exp(), int(step["sensitivity"] or 1)
    centre = (1 - ratio) / (1 + ratio)
    side = centre / (1 - ratio)
    between = [(centre * ratio**y, centre * ratio ** (shift - y)) for y in range(1, shift)]
    return atoms([(side, side * ratio**shift), *between, (side * ratio**shift, side)], arb(0))


MAKERS: dict[str, Callable[[dict[str, Any]], Profile]] = {
    "gaussian": lambda step: gaussian(apart(step)),
    "laplace": lambda step: laplace(apart(step)),
    "discrete_laplace": _discrete,
    "approx_dp": _claimed,
    "randomized_response": _response,
    "from_pair": _pair,
}


def poisson(profile: Profile, rate: Any) -> Profile:
    """(1 − q) Q + q P against Q: q δ(log((e^ε − 1 + q)/q)), and 1 − e^ε below log(1 − q)."""

    def sampled(e: Any) -> Any:
        inside = (e.exp() - 1 + rate) / rate
        if inside > 0:
            return rate * profile(inside.log())
        return 1 - e.exp() if inside <= 0 else (1 - e.exp()).union(rate)

    return sampled if rate > 0 else (lambda e: arb(0).max(1 - e.exp()))


def subset(profile: Profile, rate: Any) -> Profile:
    """Rate δ(log(1 + (e^ε − 1)/rate)) for ε ≥ 0, and its mirror image below: pairs that are their own reverse."""

    def sampled(e: Any) -> Any:
        return rate * profile((1 + (e.exp() - 1) / rate).log()) if rate > 0 else arb(0)

    return lambda e: sampled(e) if e >= 0 else 1 - e.exp() + e.exp() * sampled(-e)


def erased(profile: Profile, probability: Any) -> Profile:
    """Nothing comes out with this probability."""
    return lambda e: (1 - probability) * profile(e) + probability * arb(0).max(1 - e.exp())


def turned(profile: Profile) -> Profile:
    """The profile without a person against with: e^ε δ(−ε) + 1 − e^ε."""
    return lambda e: e.exp() * profile(-e) + 1 - e.exp()


def law_of(grid: Grid, profile: Profile) -> Law:
    """The law above a profile, as far as that is not faint; or one below it, every loss less by at most two steps."""
    low, high = -_reach(grid, turned(profile)), _reach(grid, profile)
    if grid.up:
        return grid.of_curve(profile, low, high)
    above = grid.upwards.of_curve(profile, low, high)
    masses = [max(fmpz(0), mass - ROUNDED) for mass in above.masses]
    lifted = grid.faint if above.low > low else above.masses[0]
    masses[0] = max(fmpz(0), masses[0] - lifted)
    masses[-1] += max(fmpz(0), above.infinite - ROUNDED)
    return Law(above.low - 1, masses, fmpz(0))


def _reach(grid: Grid, profile: Profile) -> int:
    """Steps up to where no more than what is infinite, and something faint, is left; twice as many, for its mass."""
    left, reach = profile(arb(WIDEST)).upper() + arb(grid.faint) / grid.one, 1
    while reach * grid.step < WIDEST and profile(grid.step * reach).upper() > left:
        reach *= 2
    return 2 * reach
