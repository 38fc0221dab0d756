"""Enumeration of all sums of losses, for few copies of small finite distributions."""

from __future__ import annotations

import math

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.composition import Composition, probability_of_any

MAX_SUMS = 1 << 15
"""Largest number of sums that are enumerated."""
MAX_SUMMANDS = 1000
SAME_SUM = 1e-13
"""Sums this close, relative to the largest, are merged; their distance is added to the rounding bound."""


def enumerate_composition(total: Composition) -> Atoms | None:
    """Return the composed distribution as atoms; None if there are too many, or a distribution is not finite."""
    laws = [law for law in total.laws if isinstance(law, Atoms)]
    if len(laws) < len(total.laws) or sum(total.counts) > MAX_SUMMANDS:
        return None
    # The number of multisets of atoms.
    sum_count = math.prod(math.comb(n + len(law.losses) - 1, n) for law, n in zip(laws, total.counts, strict=True))
    if sum_count > MAX_SUMS:
        return None
    losses, masses, merge_distance = np.zeros(1), np.ones(1), 0.0
    for law, count in zip(laws, total.counts, strict=True):
        for _ in range(count):
            # Ascending sums; near ones are merged at the first of them.
            sums, sum_masses = np.add.outer(losses, law.losses).ravel(), np.multiply.outer(masses, law.masses).ravel()
            order = np.argsort(sums)
            sums, sum_masses = sums[order], sum_masses[order]
            differs = np.diff(sums) > SAME_SUM * max(1e-300, float(np.max(np.abs(sums))))
            starts = np.flatnonzero(np.append(True, differs))
            losses, masses = sums[starts], np.add.reduceat(sum_masses, starts)
            merge_distance += float(np.max(sums - np.repeat(losses, np.diff(np.append(starts, len(sums))))))
    opposite = probability_of_any((law.reverse_infinity_mass, n) for law, n in zip(laws, total.counts, strict=True))
    steps = sum(total.counts)
    slack = total.rounding_error_bound + merge_distance + 2.0**-53 * steps * float(np.max(np.abs(losses), initial=0.0))
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
    exact = all(isinstance(law, Atoms) and law.has_exact_reverse for law in total.laws)
    return enumerate_composition(total.reverse_distribution()) if exact else None
