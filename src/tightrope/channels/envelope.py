"""The upper envelope of the profiles of all pairs of rows, as few points of it as say everything.

The envelope g(γ) is convex and piecewise linear. Tangents at both ends of an interval meet at a point c between them:
where g(c) lies on the tangents, c is the only kink inside and the interval is done; else c splits it, the widest gap
first. Points on a convex curve, connected by chords, lie on or above it: whenever the search stops, what it has found
dominates (``docs/proofs/channels.md``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

from tightrope.mechanisms.pairs import from_points
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours

ROOT_STEPS = 200
FLAT = 1e-14
"""A kink whose chord is this close to the curve is not looked for."""
LARGEST_LOSS = 600.0
"""Losses beyond count as infinite."""
LEAST_LOSS = 1e-12
"""Losses below are raised to it: the points of a hull must be apart."""
ROUNDED_UP = 1 + 4e-15
SHIFT = 1e-15
"""What normalising two rows may add to a log-ratio: some units of 2⁻⁵³ each."""

Evaluate = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Curve:
    """The envelope as γ ↦ (value, slope), and what is known of it."""

    at: Evaluate
    largest: float
    """The largest finite loss, in nats: beyond it the envelope is ``exclusive``."""
    exclusive: float
    """The largest probability of a report that rules the other input out."""
    error: float
    """A bound on the rounding of each value."""
    most: int
    """Points that may be visited; more kinks than that are bridged by chords: dominating, less tight."""


@dataclass(frozen=True, slots=True, order=True)
class _Point:
    """γ with the value and a slope of the envelope there."""

    gamma: float
    value: float
    slope: float


def dominating_loss(curve: Curve) -> PrivacyLoss:
    """The loss whose profile is the envelope, for both directions; neighbours are local."""
    top = min(max(curve.largest * ROUNDED_UP, LEAST_LOSS), LARGEST_LOSS) if curve.largest > 0 else 0.0
    end = _end(curve, top)
    points = _kinks(curve, _Point(1.0, *curve.at(1.0)), end)
    raised = [(math.log(p.gamma) * ROUNDED_UP, min(1.0, p.value + curve.error)) for p in points if p.gamma < end.gamma]
    known = from_points([*raised, (top, end.value)]).loss
    return PrivacyLoss(known.remove, known.add, Neighbours.LOCAL)


def least_epsilon(curve: Curve, delta: float) -> float:
    """Least ε ≥ 0 with envelope ≤ δ, rounded up; ∞ where δ is below the exclusive mass.

    Newton's steps from γ = 1 stay below the root of a convex falling curve, and reach it where it is linear.
    """
    if delta >= 1:
        return 0.0
    if delta < curve.exclusive * ROUNDED_UP:
        return _raised(curve.largest) if curve.exclusive <= delta else math.inf
    gamma = 1.0
    for _ in range(ROOT_STEPS):
        value, slope = curve.at(gamma)
        excess = value + curve.error - delta
        if excess <= 0:
            return math.log(gamma) * ROUNDED_UP
        if slope == 0 or math.log(gamma) >= curve.largest:
            break
        gamma *= 1 + max(1e-15, excess / -slope / gamma)
    return _raised(curve.largest)


def _raised(largest: float) -> float:
    """A log-ratio of entries that were divided by the sums of their rows; equal rows stay equal."""
    return largest * ROUNDED_UP + SHIFT if largest > 0 else 0.0


def _end(curve: Curve, top: float) -> _Point:
    """The last point: nothing but the exclusive mass is left there, unless losses go further than ``LARGEST_LOSS``."""
    gamma = math.exp(top)
    if top < LARGEST_LOSS:
        return _Point(gamma, min(1.0, curve.exclusive * ROUNDED_UP), 0.0)
    return _Point(gamma, min(1.0, curve.at(gamma)[0] + curve.error), 0.0)


def _kinks(curve: Curve, start: _Point, end: _Point) -> list[_Point]:
    """Points of the curve from ``start`` to ``end`` with every kink among them, or as many as may be visited."""
    found = [start]
    open_ = _interval(start, end)
    while open_ and len(found) < curve.most:
        _, meeting, left, right = heapq.heappop(open_)
        here = _Point(meeting, *curve.at(meeting))
        found.append(here)
        if here.value - (left.value + left.slope * (meeting - left.gamma)) > FLAT:
            for part in _interval(left, here) + _interval(here, right):
                heapq.heappush(open_, part)
    return found


def _interval(left: _Point, right: _Point) -> list[tuple[float, float, _Point, _Point]]:
    """(− gap, γ, ends) with γ where the tangents at both ends meet and the gap to the chord there; none if flat."""
    width, bend = right.gamma - left.gamma, right.slope - left.slope
    rise = right.value - left.value
    if not bend > 0:
        return []
    along = (right.slope * width - rise) / bend
    gap = along * (rise / width - left.slope)
    inside = left.gamma * (1 + 1e-15) < left.gamma + along < right.gamma * (1 - 1e-15)
    return [(-gap, left.gamma + along, left, right)] if inside and gap > FLAT else []
