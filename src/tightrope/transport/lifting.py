"""Lifted relations: laws with a coupling that sits on neighbouring points only (KM Def. 14)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.transport import solving
from tightrope.transport.exact_laws import TOLERANCE, Law


def lifted(relation: ArrayLike, source: ArrayLike, target: ArrayLike) -> bool:
    """Whether (source, target) ∈ Φ#: some coupling has all its mass on Φ, to 1e−9 of it.

    ``relation``: Φ as a matrix of truth values, shape [n, m]. For such pairs, a guarantee between the points of Φ is
    one between the laws (KM Thm 1). Raises ``InputError`` for laws that are none and a relation of another shape.

    >>> near = [[True, True, False], [True, True, True], [False, True, True]]
    >>> lifted(near, [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]), lifted(near, [1.0, 0.0, 0.0], [0.5, 0.0, 0.5])
    (True, False)
    """
    return mass_outside(relation, source, target) <= TOLERANCE


def mass_outside(relation: ArrayLike, source: ArrayLike, target: ArrayLike) -> float:
    """The least mass that a coupling of the two laws has outside Φ: 0 on Φ# (Strassen); a lower bound, to 1e−12.

    It is the total variation of the laws where Φ is equality.

    >>> round(mass_outside([[True, False], [False, True]], [1.0, 0.0], [0.75, 0.25]), 9)
    0.25
    """
    first, second = Law.of("source", source), Law.of("target", target)
    allowed: NDArray[np.bool_] = np.asarray(relation)
    if allowed.dtype != np.bool_ or allowed.shape != (len(first), len(second)):
        shown = f"{allowed.dtype} of shape {allowed.shape}"
        raise InputError("relation", shown, f"truth values of shape {(len(first), len(second))}")
    return solving.proven_distance(first.floats, second.floats, np.where(allowed, 0.0, 1.0), 1)
