"""The privacy loss of a widened table at a shift between its steps, from the law that is sampled.

X = mY + U₁ − U₂ has the weights g(my + s) = (m − s) w_y + s w_{y+1} (0 ≤ s < m, of m² 2¹²⁸), linear between multiples
of m. With d = qm + r the weights g(x) and g(x − d) are both linear in x on each of the runs s < r and s ≥ r of a cell.
A point of a run is a mixture of the run's two end points, so the ends alone, each with half of the run, can imitate
the run: their pair dominates (``docs/proofs/exact-sampling.md``). All masses are exact; the losses have a relative
error below 2⁻⁵⁰ (``integer_losses``). An end that only one of the two laws can reach is mass at infinite loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.integer_losses import ROUNDING, log_ratios
from tightrope.privacy.atoms import Atoms
from tightrope.randomness.choice import TOTAL

if TYPE_CHECKING:
    from tightrope.mechanisms.table import NoiseTable
    from tightrope.privacy.loss import PrivacyLoss

MOST_STEPS = 1 << 17
"""A shift of more steps than this is refused."""
End = tuple[int, int, int]
"""Points in the run, and the weights g(x), g(x − d) at its end."""


def linear_loss(table: NoiseTable, factor: int, shift: int) -> PrivacyLoss:
    """The loss of the pair (X, X + shift), which the mirror x → shift − x turns into its own reverse."""
    from tightrope.privacy.loss import PrivacyLoss

    atoms = linear_atoms(table, factor, shift)
    return PrivacyLoss.of(atoms, reverse=atoms)


def linear_atoms(table: NoiseTable, factor: int, shift: int) -> Atoms:
    """Atoms at the ends of all runs, for a table that ends.

    Raises ``InputError`` for a shift of more than 2¹⁷ steps.
    """
    if not shift <= MOST_STEPS * factor:
        raise InputError("sensitivity", shift, f"at most {MOST_STEPS} times the factor {factor}", "add more noise")
    ends = list(_ends(table, factor, shift))
    both = [end for end in ends if end[1] and end[2]]
    losses = log_ratios([(p, q) for _, p, q in both])
    masses: defaultdict[float, int] = defaultdict(int)
    for loss, (count, p, _) in zip(losses.tolist(), both, strict=True):
        masses[loss] += count * p
    whole = 2 * factor * factor * TOTAL  # twice: an end stands for half of its run
    infinite = sum(count * p for count, p, q in ends if not q) / whole
    values = np.array(sorted(masses))
    shares = np.array([masses[loss] / whole for loss in values.tolist()])
    slack = ROUNDING * float(np.max(np.abs(values), initial=0.0))
    return Atoms(values, shares, infinite, infinite, slack, inexact=2.3e-16)


def _ends(table: NoiseTable, factor: int, shift: int) -> Iterator[End]:
    """The two ends of every run where X can be."""
    steps, rest = divmod(shift, factor)
    weights = [0] * (steps + 2) + [*table.half[::-1], table.centre, *table.half] + [0]

    def at(cell: int, place: int) -> int:
        return (factor - place) * weights[cell] + place * weights[cell + 1]

    for cell in range(steps + 1, len(weights) - 1):
        for first, last, back in ((0, rest, 1), (rest, factor, 0)):
            for place in (first, last - 1) if first < last else ():
                yield last - first, at(cell, place), at(cell - steps - back, place - rest + back * factor)
