"""The privacy loss of noise in the shape of a box, at the corner of all shifts, from whole weights.

P(x) = v(‖x‖), ‖x‖ the largest |x_i|, v falling. Of all shifts by at most s in each coordinate the corner s·(1, …, 1)
loses most at every ε (docs/proofs/box.md), and all corners are alike. Points are gathered by (‖x‖, ‖x − corner‖), which
``box_points`` counts; the pair that is mirrored has the loss of the other sign.

**Rounding.** v(a) = Σ_{r ≥ a} P(R = r) / (2r+1)^d in units so fine that what is rounded down is below 2⁻¹⁰⁰ of it.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.tables.box_points import shared
from tightrope.mechanisms.tables.integer_losses import NOTHING, log_ratios, snapped
from tightrope.privacy.laws.atoms import Atoms
from tightrope.randomness.choice import BITS

GUARD = 128
"""Binary digits beyond those of the smallest weight."""
MOST_PAIRS = 1 << 22
"""Pairs of distances that are gone through: half a minute."""


def point_weights(radii: list[int], dimension: int) -> tuple[list[int], int]:
    """v(0), v(1), …, v(N), rounded down, and what stands for probability 1; ``radii`` out of 2¹²⁸."""
    lift = GUARD + dimension * (2 * len(radii) + 1).bit_length()
    each = [(weight << lift) // (2 * r + 1) ** dimension for r, weight in enumerate(radii)]
    return list(accumulate(reversed(each)))[::-1], 1 << (BITS + lift)


def box_atoms(radii: list[int], dimension: int, shift: int) -> Atoms:
    """Law of log P/Q under P for P = law of X, Q = law of X + shift·(1, …, 1); the reverse pair has the same law.

    Raises ``InputError`` where the shift is so large that there are too many pairs of distances.
    """
    if not len(radii) * shift <= MOST_PAIRS:
        raise InputError("sensitivity", shift, f"at most {MOST_PAIRS // len(radii)} for this noise", "coarser units")
    weights, whole = point_weights(radii, dimension)
    last = len(radii) - 1
    masses: defaultdict[int, int] = defaultdict(int)
    pairs: list[tuple[int, int]] = []
    near, far = [], []
    infinite = 0
    for apart in range(shift + 1):
        counts = _counts(last, apart, shift, dimension)
        for a, many in enumerate(counts):
            if a + apart > last:
                infinite += many * weights[a]
            elif apart == 0:
                masses[0] += many * weights[a]
            elif many:
                pairs.append((weights[a], weights[a + apart]))
                near.append(many * weights[a])
                far.append(many * weights[a + apart])
    return _law(pairs, near, far, masses[0], infinite, whole)


def _counts(last: int, apart: int, shift: int, dimension: int) -> list[int]:
    """The points at distances a = 0..N from 0 and a + ``apart`` from the corner."""
    lengths = [2 * a + apart - shift + 1 for a in range(last + 1)]
    return shared(lengths, dimension, one_end=apart == shift)


def _law(
    pairs: list[tuple[int, int]], near: list[int], far: list[int], middle: int, infinite: int, whole: int
) -> Atoms:
    """Mass ``near`` at +log, its mirror ``far`` at −log; ``middle`` at 0."""
    losses, slack = snapped(log_ratios(pairs), ())
    losses, slack = np.where(np.abs(losses) < NOTHING, 0.0, losses), slack + NOTHING
    masses: defaultdict[float, int] = defaultdict(int, {0.0: middle} if middle else {})
    for loss, more, less in zip(losses.tolist(), near, far, strict=True):
        masses[loss] += more
        masses[-loss] += less
    values = np.array(sorted(masses))
    shares = np.array([masses[loss] / whole for loss in values.tolist()])
    lost = infinite / whole
    return Atoms(values, shares, lost, lost, slack, inexact=2.3e-16)
