"""Lifted relations: laws with a coupling that sits on neighbouring points only (KM Def. 14)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import array_of
from tightrope.numerics.checks import probability
from tightrope.transport.exact.exact_flow import mass_that_stays_out
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.solvers.optimal import coupling


def lifted(relation: ArrayLike, source: ArrayLike, target: ArrayLike, *, outside: float = 0.0) -> bool:
    """Whether (source, target) ∈ Φ#: some coupling has all its mass on Φ. Decided in whole numbers.

    ``relation``: Φ as a matrix of truth values, shape [n, m]. For such pairs, a guarantee between the points of Φ is
    one between the laws (KM Thm 1). Laws are read as the rationals that their floats are; where roundings in them
    must not count, allow a mass ``outside`` of Φ, and add it to δ: divergences without a δ may then be infinite.
    Raises ``InputError`` for laws that are none and a relation of another shape.

    >>> near = [[True, True, False], [True, True, True], [False, True, True]]
    >>> lifted(near, [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]), lifted(near, [1.0, 0.0, 0.0], [0.5, 0.0, 0.5])
    (True, False)
    """
    return _mass_outside(relation, source, target) <= Fraction(probability("outside", outside))


def mass_outside(relation: ArrayLike, source: ArrayLike, target: ArrayLike) -> float:
    """The least mass that a coupling of the two laws has outside Φ: 0 exactly on Φ# (Strassen), else rounded.

    It is the total variation of the laws where Φ is equality.

    >>> mass_outside([[True, False], [False, True]], [1.0, 0.0], [0.75, 0.25])
    0.25
    """
    return float(_mass_outside(relation, source, target))


def _mass_outside(relation: ArrayLike, source: ArrayLike, target: ArrayLike) -> Fraction:
    first, second = Law.of("source", source), Law.of("target", target)
    expected = f"truth values of shape {(len(first), len(second))}"
    allowed = array_of("relation", relation, expected)
    if allowed.dtype != np.bool_ or allowed.shape != (len(first), len(second)):
        raise InputError("relation", f"{allowed.dtype} of shape {allowed.shape}", expected)
    guess = coupling(first.floats, second.floats, np.where(allowed, 0.0, 1.0)).plan
    return mass_that_stays_out(allowed, first, second, guess)
