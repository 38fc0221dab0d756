"""Finding a loss among those declared beforehand: equal laws in both directions, atom by atom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.errors import InputError
from tightrope.privacy.filters.gate import checked
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.law import LossLaw
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours


def declared(name: str, losses: object) -> list[PrivacyLoss]:
    """The losses of a non-empty list, all of one relation; raises ``InputError`` otherwise."""
    if not isinstance(losses, (list, tuple)) or not losses:
        raise InputError(name, losses, "a list of at least one PrivacyLoss", "say [tr.laplace(scale=1).loss]")
    found = [checked(name, loss) for loss in losses]
    relation(found)
    return found


def relation(losses: Sequence[PrivacyLoss]) -> Neighbours:
    """The neighbouring relation of all of them."""
    common = Neighbours.UNSPECIFIED
    for loss in losses:
        common = common.with_other(loss.neighbours)
    return common


def place(loss: PrivacyLoss, among: Sequence[PrivacyLoss]) -> int | None:
    """Where an equal loss stands; None where none does."""
    return next((i for i, other in enumerate(among) if same(loss, other)), None)


def same(one: PrivacyLoss, other: PrivacyLoss) -> bool:
    """Whether both directions have equal laws and counts, in the same order."""
    return one is other or (_same(one.remove, other.remove) and _same(one.add, other.add))


def _same(one: Composition, other: Composition) -> bool:
    return one.counts == other.counts and all(map(_same_law, one.laws, other.laws))


def _same_law(one: LossLaw, other: LossLaw) -> bool:
    if one == other:
        return True
    return isinstance(one, Atoms) and isinstance(other, Atoms) and _same_atoms(one, other)


def _same_atoms(one: Atoms, other: Atoms) -> bool:
    numbers = ((a.infinite_mass, a.opposite_mass, a.slack) for a in (one, other))
    arrays = np.array_equal(one.losses, other.losses) and np.array_equal(one.masses, other.masses)
    return len(set(numbers)) == 1 and arrays
