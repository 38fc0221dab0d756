"""Enumeration of all sums of losses, for few copies of small finite distributions."""

from __future__ import annotations

import math

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.composition import Composition, any_of

MOST_SUMS = 1 << 15
"""Largest number of sums that are enumerated."""
MOST_SUMMANDS = 1000
SAME_SUM = 1e-13
"""Sums this close, relative to the largest, are merged; their distance is added to the rounding bound."""


def enumerate_composition(total: Composition) -> Atoms | None:
    """Return the composed distribution as atoms; None if there are too many, or a distribution is not finite."""
    laws = [law for law in total.laws if isinstance(law, Atoms)]
    if (
        len(laws) < len(total.laws)
        or sum(total.counts) > MOST_SUMMANDS
        or not _multiset_count(laws, total.counts) <= MOST_SUMS
    ):
        return None
    losses, masses, moved = np.zeros(1), np.ones(1), 0.0
    for law, count in zip(laws, total.counts, strict=True):
        for _ in range(count):
            added = np.add.outer(losses, law.losses).ravel()
            # Ascending losses, near ones merged at the first of them, and the largest distance moved.
            merged_losses = added
            merged_masses = np.multiply.outer(masses, law.masses).ravel()
            order = np.argsort(merged_losses)
            merged_losses, merged_masses = merged_losses[order], merged_masses[order]
            merged_apart = np.diff(merged_losses) > SAME_SUM * max(1e-300, float(np.max(np.abs(merged_losses))))
            starts = np.flatnonzero(np.append(True, merged_apart))
            kept = merged_losses[starts]
            merged_moved = float(
                np.max(merged_losses - np.repeat(kept, np.diff(np.append(starts, len(merged_losses)))))
            )
            losses, masses, apart = kept, np.add.reduceat(merged_masses, starts), merged_moved
            moved += apart
    opposite = any_of((law.opposite_mass, n) for law, n in zip(laws, total.counts, strict=True))
    steps = sum(total.counts)
    slack = total.rounding_bound + moved + 2.0**-53 * steps * float(np.max(np.abs(losses), initial=0.0))
    return Atoms(
        losses,
        masses,
        total.infinite_mass,
        opposite,
        slack,
        relative_mass_error=total.relative_mass_error + 4e-16 * (steps + 1),
    )


def enumerate_reverse_composition(total: Composition) -> Atoms | None:
    """Return the reverse-order composition, from the reversed distributions: masses may underflow on one side.

    Return None if the masses of a single distribution have underflowed.
    """
    known = all(isinstance(law, Atoms) and law.has_exact_reverse for law in total.laws)
    return enumerate_composition(total.reverse_distribution()) if known else None


def _multiset_count(laws: list[Atoms], counts: tuple[int, ...]) -> int:
    """Return the number of multisets of atoms."""
    return math.prod(math.comb(n + len(law.losses) - 1, n) for law, n in zip(laws, counts, strict=True))
