"""The privacy-loss distribution of (X, X + d) from integer weights: exact masses, losses within a relative 2⁻⁵⁰.

Outcome x has P-weight w(x) and Q-weight w(x − d). Its mirror d − x has these weights exchanged, so x > d/2 suffices:
with near = w(x − d) and far = w(x), mass ``near`` at +log(near/far), mass ``far`` at −log(near/far). In the tail both
weights shrink by escape / 2¹²⁸ a period, so all periods share their losses and their masses add up to one geometric
series: the number of atoms is finite without truncation.

**Rounding.** t = (large − small) / small is a quotient of integers, correctly rounded by Python; log1p(t), t ≥ 0,
multiplies a relative error of t by t / ((1 + t) log1p(t)) ≤ 1, and its own error is below 6 units of 2⁻⁵³. So each loss
has a relative error below 2⁻⁵⁰. Losses that lie within 2⁻⁵⁰ (relative) of a multiple of an ideal step are moved there.
The slack is the largest move plus 2⁻⁵⁰ times the largest loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.randomness.alias_sampler import BITS, TOTAL

if TYPE_CHECKING:
    from tightrope.mechanisms.discrete.noise_table import NoiseTable

LOSS_ROUNDING = 2.0**-50
SMALLEST_TABLE_LOSS = 1e-25
"""Smaller losses come from weights that differ by about one unit: they are set to 0, so as not to form a lattice."""
MAX_SHIFT = 1 << 17
MAX_PERIODS = 64


@dataclass(frozen=True, slots=True)
class Overlap:
    """Integer weights (of ``whole``) for the outcomes x > d/2: near = w(x − d), far = w(x); middle = w(d/2)."""

    near: list[int]
    far: list[int]
    middle: int
    whole: int


def loss_atoms(table: NoiseTable, shift: int) -> Atoms:
    """Return the distribution of log P/Q under P, for X ~ P and X + shift ~ Q; the reverse pair has the same one.

    Raises ``InputError`` if the shift is far larger than the noise: such a release has no meaningful privacy.
    """
    if not shift <= MAX_SHIFT:
        raise InputError("sensitivity", shift, f"at most {MAX_SHIFT}", "measure in coarser units")
    # The weights of 0..N + shift (+ one period of the tail) on a common scale, and the total for probability 1.
    weights, whole = [table.center, *table.half], TOTAL
    if table.tail is None:
        weights += [0] * shift
    else:
        period = len(table.tail.block)
        periods = -(-shift // period) + 1
        if not periods <= MAX_PERIODS:
            most = (MAX_PERIODS - 1) * period
            raise InputError("sensitivity", shift, f"at most {most} for this noise", "add more noise")
        lifted = [w << BITS * periods for w in weights] + table.tail.block_weights(periods)
        weights, whole = lifted[: len(weights) + shift + period], TOTAL << BITS * periods
    first, last = shift // 2 + 1, len(table.half) + shift
    overlap_near = [weights[abs(x - shift)] for x in range(first, len(weights))]
    overlap_far = weights[first:]
    middle = weights[shift // 2] if shift % 2 == 0 else 0
    if table.tail is None:
        overlap = Overlap(overlap_near, overlap_far, middle, whole)
    else:
        stay, head = sum(table.tail.block), last - first + 1  # the last period represents all: times 2^128 / stay
        overlap = Overlap(
            _sum_tail_periods(overlap_near, head, stay),
            _sum_tail_periods(overlap_far, head, stay),
            middle * stay,
            whole * stay,
        )
    common = [(n, f) for n, f in zip(overlap.near, overlap.far, strict=True) if n and f]
    losses, slack = snap_losses(weight_log_ratios(common), table.steps)
    losses, slack = np.where(np.abs(losses) < SMALLEST_TABLE_LOSS, 0.0, losses), slack + SMALLEST_TABLE_LOSS
    masses: defaultdict[float, int] = defaultdict(int, {0.0: overlap.middle} if overlap.middle else {})
    for loss, (near, far) in zip(losses.tolist(), common, strict=True):
        masses[loss] += near
        masses[-loss] += far
    without_partner = sum(overlap.near) + sum(overlap.far) - sum(n + f for n, f in common)
    values = np.array(sorted(masses))
    probabilities = np.array([masses[loss] / overlap.whole for loss in values.tolist()])
    infinite = without_partner / overlap.whole
    return Atoms(values, probabilities, infinite, infinite, slack, relative_mass_error=2.3e-16)


def _sum_tail_periods(weights: list[int], head: int, stay: int) -> list[int]:
    return [w * stay for w in weights[:head]] + [w << BITS for w in weights[head:]]


def weight_log_ratios(pairs: list[tuple[int, int]]) -> Floats:
    """Return log(near / far) for positive integers."""
    try:
        quotients = [(n - f) / f if n >= f else (n - f) / n for n, f in pairs]
    except OverflowError:  # a ratio above 1e308: no cancellation
        return np.array([math.log(n) - math.log(f) for n, f in pairs])
    ratios = np.array(quotients, dtype=np.float64)
    return np.asarray(np.copysign(np.log1p(np.abs(ratios)), ratios))


def snap_losses(losses: Floats, steps: tuple[float, ...]) -> tuple[Floats, float]:
    """Return the losses moved to ideal multiples, and a bound on the error of each."""
    if not len(losses):
        return losses, 0.0
    snapped = losses.copy()
    for step in steps:
        ideal = np.rint(losses / step) * step
        close = np.abs(ideal - losses) <= LOSS_ROUNDING * np.abs(losses)
        snapped[close] = ideal[close]
    largest_move = float(np.max(np.abs(snapped - losses)))
    return snapped, largest_move + LOSS_ROUNDING * float(np.max(np.abs(losses)))


MAX_VALUES = 1 << 26
"""Maximum number of distributions times nodes: half a gigabyte of floats."""

Node = tuple[float, float]
"""ε and the value of a profile there."""


def dominating_atoms(laws: Sequence[Atoms]) -> Atoms:
    """Return the distribution whose profile is the maximum of self-mirrored ones: exact up to rounding, never less.

    Every profile is convex and piecewise linear in γ = e^ε, so their maximum is, too; its kinks are their kinks and the
    points where two of them cross. The pairs (X, X + d) of a symmetric distribution are their own mirrors, so ε ≥ 0
    suffices. Node values are rounded up before their lower hull is taken: the true maximum M is convex, so chords
    between points on or above M stay above M. Masses from differences of slopes lose digits to cancellation, so their
    profile is recomputed from positive terms and all masses are raised by the largest shortfall; the distribution's
    ``relative_mass_error`` declares twice the amount added. Raises ``InputError`` if there are too many losses to
    compare.

    >>> flat = Atoms(np.array([0.0]), np.array([0.9]), 0.1, 0.1)
    >>> steep = Atoms(np.array([-1.0, 1.0]), np.array([0.25, 0.75]), 0.0, 0.0)
    >>> both = dominating_atoms([flat, steep])
    >>> bool(both.profile(np.array([2.0]))[0] >= 0.1), bool(both.profile(np.array([0.5]))[0] >= 0.295)
    (True, True)
    """
    curves = [Profile.from_atoms(law) for law in laws]
    nodes = np.unique(np.concatenate([[0.0], *(curve.losses for curve in curves)]))
    if not len(nodes) * len(curves) <= MAX_VALUES:
        raise InputError("sensitivity", len(laws), "a smaller one for a law that is not unimodal", "make it unimodal")
    values = np.array([curve.delta_at_epsilon(nodes) for curve in curves])
    # The nodes of the maximum: the common ones, and the crossings between them. A linear curve that is highest at both
    # ends of an interval is highest throughout.
    highest = values.max(axis=0)
    maximum = list(zip(nodes.tolist(), highest.tolist(), strict=True))
    without_crossing = np.any((values[:, :-1] == highest[:-1]) & (values[:, 1:] == highest[1:]), axis=0)
    for j in np.flatnonzero(~without_crossing).tolist():
        maximum += _find_crossings((nodes[j], nodes[j + 1]), values[:, j], values[:, j + 1])
    highest_at: dict[float, float] = {}
    for epsilon, value in maximum:  # a crossing may round to a node
        highest_at[epsilon] = max(value, highest_at.get(epsilon, 0.0))
    # Vertices of the lower convex hull in γ; after the last node the profile is the infinite mass.
    factor = 1 + ROUND_OFF * (4 * len(nodes) + 64)
    infinite = max(law.infinite_mass for law in laws)
    hull: list[Node] = []
    for node in [*((e, v * factor) for e, v in sorted(highest_at.items())), (math.inf, infinite * factor)]:
        while len(hull) > 1 and _left_slope(hull[-2], hull[-1]) >= _right_slope(hull[-1], node):
            hull.pop()
        hull.append(node)
    return _atoms_from_hull(hull[:-1], laws)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """δ(ε), ε ≥ 0: at losses l_j the sums A_j = Σ_{l ≥ l_j} p (1 − e^{l_j − l}), B_j = Σ_{l ≥ l_j} p e^{l_j − l}."""

    losses: Floats
    gains: Floats
    weights: Floats
    infinite_mass: float

    @classmethod
    def from_atoms(cls, law: Atoms) -> Self:
        """Return the profile from the positive losses: sums of positive terms only, from the largest loss down."""
        positive = law.losses > 0
        losses, masses = law.losses[positive], law.masses[positive]
        gains, weights = np.zeros(len(losses) + 1), np.zeros(len(losses) + 1)
        steps = np.append(np.diff(losses), 0.0)
        for j in range(len(losses) - 1, -1, -1):
            gains[j] = gains[j + 1] - weights[j + 1] * math.expm1(-steps[j])
            weights[j] = masses[j] + weights[j + 1] * math.exp(-steps[j])
        return cls(losses, gains, weights, law.infinite_mass)

    def delta_at_epsilon(self, epsilons: Floats) -> Floats:
        """Return δ(ε) = δ_∞ + A_j + B_j (1 − e^{ε − l_j}) with l_j the first loss above ε."""
        places = np.searchsorted(self.losses, epsilons, side="right")
        above = np.append(self.losses, np.inf)[places]
        return np.asarray(self.infinite_mass + self.gains[places] - self.weights[places] * np.expm1(epsilons - above))


def _find_crossings(ends: tuple[float, float], left: Floats, right: Floats) -> list[Node]:
    """Return the points where the highest line changes; t is the fraction of the way in γ from left to right."""
    crossings: list[Node] = []
    t, current = 0.0, int(np.lexsort((right, left))[-1])
    rise = right - left
    width = float(ends[1] - ends[0])
    while True:
        steeper = np.flatnonzero(rise > rise[current])
        if not len(steeper):
            return crossings
        meeting = (left[current] - left[steeper]) / (rise[steeper] - rise[current])
        nearest = int(np.lexsort((-rise[steeper], np.maximum(meeting, t)))[0])
        t, current = float(max(meeting[nearest], t)), int(steeper[nearest])
        if not t < 1:
            return crossings
        # log(1 + t (e^width − 1)) without overflow.
        large = max(0.0, width + math.log(t)) if t > 0 else 0.0
        offset = math.log1p(t * math.expm1(width)) if width < 700 else large
        crossings.append((float(ends[0]) + offset, float(np.max(left + t * rise))))


def _left_slope(left: Node, middle: Node) -> float:
    """Return γ times the left derivative in γ."""
    return (middle[1] - left[1]) / -math.expm1(left[0] - middle[0])


def _right_slope(middle: Node, right: Node) -> float:
    """Return γ times the right derivative in γ."""
    width = right[0] - middle[0]
    return (right[1] - middle[1]) / math.expm1(width) if width < 700 else 0.0


def _atoms_from_hull(hull: list[Node], laws: Sequence[Atoms]) -> Atoms:
    """Return masses γ (jump of the slope) at every kink, mirrored below 0, raised until the hull is dominated."""
    infinite, slack = max(law.infinite_mass for law in laws), max(law.rounding_error_bound for law in laws)
    mass_error = max(law.relative_mass_error for law in laws)
    ends = [*hull, (math.inf, hull[-1][1])]
    kinks = zip(hull, hull[1:], ends[2:], strict=False)
    masses = {node[0]: max(0.0, _right_slope(node, right) - _left_slope(left, node)) for left, node, right in kinks}
    raw = _symmetric_atoms(masses, infinite, slack, 1.0)
    deltas = Profile.from_atoms(raw).delta_at_epsilon(np.array([epsilon for epsilon, _ in hull]))
    targets = np.array([value for _, value in hull])
    positive = (targets > infinite) & (deltas > 0)
    shortfall = float(np.max(targets[positive] / deltas[positive] - 1, initial=0.0))
    increase = max(0.0, shortfall) + ROUND_OFF * (4 * len(hull) + 64)
    infinite = min(1.0, infinite * (1 + increase))
    return _symmetric_atoms(masses, infinite, slack, 1 + increase, mass_error + 2 * increase)


def _symmetric_atoms(
    masses: dict[float, float], infinite: float, slack: float, factor: float, mass_error: float = 0.0
) -> Atoms:
    losses = np.array(list(masses), dtype=np.float64)
    above = np.array(list(masses.values()), dtype=np.float64) * factor
    below = above * np.exp(-losses)
    center = max(0.0, 1 - infinite - math.fsum(above) - math.fsum(below))
    all_losses = np.concatenate([-losses, [0.0], losses])
    atoms = Atoms.merge_losses(all_losses, np.concatenate([below, [center], above]), infinite_mass=infinite)
    rounding = 4 * ROUND_OFF * float(np.max(losses, initial=0.0))  # losses at crossings
    return Atoms(atoms.losses, atoms.masses, infinite, infinite, slack + rounding, mass_error)
