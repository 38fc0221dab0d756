"""Few copies of small finite laws: every sum of losses, one by one."""

from __future__ import annotations

import math

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.composition import Composition, any_of

MOST_SUMS = 1 << 15
"""Sums that are still listed."""
MOST_SUMMANDS = 1000
SAME_SUM = 1e-13
"""Sums this close to each other are one, relative to the largest; their distance joins the slack."""


def enumerated(total: Composition) -> Atoms | None:
    """The composed law as atoms; None where there are too many, or a law is not finite."""
    laws = [law for law in total.laws if isinstance(law, Atoms)]
    if len(laws) < len(total.laws) or sum(total.counts) > MOST_SUMMANDS or not _sums(laws, total.counts) <= MOST_SUMS:
        return None
    losses, masses, moved = np.zeros(1), np.ones(1), 0.0
    for law, count in zip(laws, total.counts, strict=True):
        for _ in range(count):
            added = np.add.outer(losses, law.losses).ravel()
            # Ascending losses, near ones joined at the first of them, and how far one was moved.
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
    slack = total.slack + moved + 2.0**-53 * steps * float(np.max(np.abs(losses), initial=0.0))
    return Atoms(losses, masses, total.infinite_mass, opposite, slack, inexact=total.inexact + 4e-16 * (steps + 1))


def mirrored(total: Composition) -> Atoms | None:
    """The composed law of the reverse order, from the reversed laws: products of masses may underflow on one side.

    None where a law's own masses have.
    """
    known = all(isinstance(law, Atoms) and law.reversible for law in total.laws)
    return enumerated(total.reverse()) if known else None


def _sums(laws: list[Atoms], counts: tuple[int, ...]) -> int:
    """How many multisets of atoms there are."""
    return math.prod(math.comb(n + len(law.losses) - 1, n) for law, n in zip(laws, counts, strict=True))
