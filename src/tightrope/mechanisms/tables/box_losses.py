"""The privacy loss of noise in the shape of a box, at the corner of all shifts, from whole weights.

P(x) = v(‖x‖), ‖x‖ the largest |x_i|, v falling. Of all shifts by at most s in each coordinate the corner s·(1, …, 1)
loses most at every ε (docs/proofs/box.md), and all corners are alike. Points are gathered by (‖x‖, ‖x − corner‖), which
``box_points`` counts; the pair that is mirrored has the loss of the other sign.

**Rounding.** v(a) = Σ_{r ≥ a} P(R = r) / (2r+1)^d in units so fine that what is rounded down is below 2⁻¹⁰⁰ of it;
losses are logarithms of quotients of these whole numbers (``integer_losses``). Masses are products of two doubles, each
right to a few units in the last place, and sums of such, one after the other: within ``MASS_ROUNDING`` and a unit for
each term of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.tables.box_points import shared_floats
from tightrope.mechanisms.tables.integer_losses import NOTHING, log_ratios, snapped
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.atoms import Atoms
from tightrope.randomness.choice import BITS

GUARD = 128
"""Binary digits beyond those of the smallest weight."""
MOST_PAIRS = 1 << 22
"""Pairs of distances that are gone through: half a minute."""
MASS_ROUNDING = 2e-14
"""Relative error of a mass, within sixteen units of 2⁻⁵³, and what sums in pairs of up to 2²² of them add."""


def point_weights(radii: list[int], dimension: int) -> tuple[list[int], int]:
    """v(0), v(1), …, v(N), rounded down, and what stands for probability 1; ``radii`` out of 2¹²⁸."""
    lift = GUARD + dimension * (2 * len(radii) + 1).bit_length()
    each = [(weight << lift) // (2 * r + 1) ** dimension for r, weight in enumerate(radii)]
    return list(accumulate(reversed(each)))[::-1], 1 << (BITS + lift)


@dataclass(frozen=True, eq=False)  # not slotted: what all shifts share is kept
class BoxLosses:
    """Of the chances ``radii`` of half-widths, out of 2¹²⁸, in so many dimensions."""

    radii: list[int]
    dimension: int
    _known: dict[int, tuple[Floats, float]] = field(default_factory=dict)

    @cached_property
    def _weights(self) -> tuple[list[int], Floats]:
        """V in fine units, and as probabilities."""
        weights, whole = point_weights(self.radii, self.dimension)
        return weights, np.array([weight / whole for weight in weights])

    def atoms(self, shift: int) -> Atoms:
        """Law of log P/Q under P for P = law of X, Q = law of X + shift·(1, …, 1); the reverse pair has the same law.

        Raises ``InputError`` where the shift is so large that there are too many pairs of distances.
        """
        count = len(self.radii)
        if not count * shift <= MOST_PAIRS:
            raise InputError("sensitivity", shift, f"at most {MOST_PAIRS // count} for this noise", "coarser units")
        chances, reached = self._weights[1], range(min(shift, count - 1) + 1)
        points = [self._points(apart, shift) for apart in range(shift + 1)]
        falls = [self._falls(apart) for apart in reached]
        near = [points[apart][: count - apart] * chances[: count - apart] for apart in reached]
        far = [points[apart][: count - apart] * chances[apart:] for apart in reached[1:]]
        losses = np.concatenate([fall for fall, _ in falls] + [-fall for fall, _ in falls[1:]])
        lost = sum(float(np.dot(own[max(count - apart, 0) :], chances[max(count - apart, 0) :]))
                   for apart, own in enumerate(points))  # fmt: skip
        slack = max(slack for _, slack in falls) + NOTHING
        found = Atoms.gather(losses, np.concatenate([*near, *far]), infinite_mass=lost, opposite_mass=lost, slack=slack)
        return Atoms(found.losses, found.masses, lost, lost, slack, inexact=MASS_ROUNDING + len(near[0]) * ROUND_OFF)

    def _points(self, apart: int, shift: int) -> Floats:
        """How many points are at distance a = 0..N from 0 and a + ``apart`` from the corner."""
        lengths = 2 * np.arange(len(self.radii), dtype=np.float64) + (apart - shift + 1)
        return shared_floats(lengths, self.dimension, one_end=apart == shift)

    def _falls(self, apart: int) -> tuple[Floats, float]:
        """Log v(a) / v(a + apart) for a = 0..N − apart, and what rounding may have done to them."""
        if apart not in self._known:
            weights = self._weights[0]
            pairs = list(zip(weights[: len(weights) - apart], weights[apart:], strict=True))
            losses, slack = snapped(log_ratios(pairs), ())
            self._known[apart] = np.where(np.abs(losses) < NOTHING, 0.0, losses), slack
        return self._known[apart]
