"""The privacy loss of a widened table at a shift between its steps, from the law that is sampled.

X = mY + U₁ − U₂ has the weights g(my + s) = (m − s) w_y + s w_{y+1} (0 ≤ s < m, of m² 2¹²⁸), linear between multiples
of m. With d = qm + r both g(x) and g(x − d) are linear in x between neighbours of the set B of all my and my + r.
A point between two of them is a mixture of these two, so the pair on B alone, with m/2 times the weights, can imitate
the whole: it dominates (``docs/proofs/exact-sampling.md``). The mirror x → d − x turns it into its reverse. All
masses are exact; the losses have a relative error below 2⁻⁵⁰ (``integer_losses``). A point that only one of the two
laws can reach is mass at infinite loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.tables.integer_losses import LOSS_ROUNDING, log_ratios
from tightrope.privacy.laws.atoms import Atoms
from tightrope.randomness.choice import TOTAL

if TYPE_CHECKING:
    from tightrope.mechanisms.tables.table import NoiseTable
    from tightrope.privacy.loss import PrivacyLoss

MOST_SHIFT_STEPS = 1 << 17
"""A shift of more steps than this is refused."""


def linear_loss(table: NoiseTable, factor: int, shift: int) -> PrivacyLoss:
    """The loss of the pair (X, X + shift); both directions have one law."""
    from tightrope.privacy.loss import PrivacyLoss

    atoms = linear_atoms(table, factor, shift)
    return PrivacyLoss.of(atoms, reverse=atoms)


def linear_atoms(table: NoiseTable, factor: int, shift: int) -> Atoms:
    """Atoms at the points of B, for a table that ends.

    Raises ``InputError`` for a shift of more than 2¹⁷ steps.
    """
    if not shift <= MOST_SHIFT_STEPS * factor:
        raise InputError(
            "sensitivity", shift, f"at most {MOST_SHIFT_STEPS} times the factor {factor}", "add more noise"
        )
    points = list(_points(table, factor, shift))
    both = [(p, q) for p, q in points if p and q]
    masses: defaultdict[float, int] = defaultdict(int)
    for loss, (p, _) in zip(log_ratios(both).tolist(), both, strict=True):
        masses[loss] += p
    whole = 2 * factor * TOTAL
    infinite = sum(p for p, q in points if not q) / whole
    values = np.array(sorted(masses))
    shares = np.array([masses[loss] / whole for loss in values.tolist()])
    slack = LOSS_ROUNDING * float(np.max(np.abs(values), initial=0.0))
    return Atoms(values, shares, infinite, infinite, slack, inexact=2.3e-16)


def _points(table: NoiseTable, factor: int, shift: int) -> Iterator[tuple[int, int]]:
    """g(x) and g(x − d) at the points my, then my + r, of every cell where X can be."""
    steps, rest = divmod(shift, factor)
    weights = [0] * (steps + 2) + [*table.half[::-1], table.centre, *table.half] + [0]

    def at(cell: int, place: int) -> int:
        return (factor - place) * weights[cell] + place * weights[cell + 1]

    for cell in range(steps + 1, len(weights) - 1):
        yield at(cell, 0), at(cell - steps - 1, factor - rest)
        yield at(cell, rest), at(cell - steps, 0)
