"""Profiles of pairs of laws, as intervals: closed forms, lists of weights under a shift, hulls of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, combinations
from typing import Any

from flint import arb

from tightrope.verify.claims import affordable

Profile = Callable[[Any], Any]
"""δ(ε) at every real ε, as intervals, of the pair with and without a person."""
MOST_WEIGHTS = 1 << 18
"""Weights of a list on one side at most."""


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


def stairs(epsilon: Any, gamma: Any) -> Profile:
    """Staircase noise under a shift of one period: losses ε, 0, −ε; η is the mass within half a period.

    A period holds a share g of its mass on its first part of length γ, evenly, and the rest on the other.
    """
    fall = (-epsilon).exp()
    low = fall * (1 - gamma)
    whole = gamma + low
    inside = gamma.min(arb("0.5")) + fall * (arb("0.5") - gamma).max(arb(0))
    return triple(epsilon, arb(0), (1 - fall) * inside / whole)


def cut_laplace(epsilon: Any, delta: Any) -> Profile:
    """Density e^(−|x|) on [−a, a] under a shift by ε, a = log(1 + (e^ε − 1)/(2 δ)) ≥ ε: only with P, with both.

    The best set is all below y = (ε − e)/2, or all that both have.
    """
    if not epsilon > 0:
        return atoms([(1 - delta, 1 - delta)], delta)
    end = 1 / (1 + (epsilon.exp() - 1) / (2 * delta))
    norm = 2 * (1 - end)

    def told(e: Any) -> Any:
        y = arb(0).max(epsilon.min((epsilon - e) / 2))
        below = (2 - end - (-y).exp() - e.exp() * ((y - epsilon).exp() - end)) / norm
        return delta.max(below).max(1 - e.exp() * (1 - delta))

    return told


def listed(half: Sequence[Any], shift: int) -> Profile:
    """Weights at 0, ±1, … (``half``, above 0), moved by ``shift``, where the ratio of neighbours falls outwards.

    Then losses fall from left to right, the largest shift loses most, and the best set is all below some place.
    """
    affordable(len(half) + shift, MOST_WEIGHTS, "weights of a list")
    weights = [*reversed(half[1:]), *half]
    logs = [weight.log() for weight in weights]
    losses = [logs[k] - logs[k - shift] for k in range(shift, len(weights))]
    total = sum(weights, arb(0))
    sums = [one / total for one in accumulate(weights, initial=arb(0))]

    def told(e: Any) -> Any:
        low, high = 0, len(losses)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if losses[middle] > e else (low, middle)
        return sums[min(low + shift, len(weights))] - e.exp() * sums[low]

    return told if shift < len(weights) else atoms([], arb(1))


def hull(points: Sequence[tuple[Any, Any]]) -> Profile:
    """The largest convex profile below points (γ = e^ε, δ), ascending; constant after the last.

    It is the lowest chord over each place, and it never rises.
    """

    def told(e: Any) -> Any:
        place = e.exp()
        found = arb(1)
        for (left, here), (right, there) in combinations(points, 2):
            if not (place < left or place > right):  # an end that cannot be told from the place is one
                found = found.min(here + (there - here) * (place - left) / (right - left))
        for left, here in points:
            found = found if place < left else found.min(here)
        return found

    return told
