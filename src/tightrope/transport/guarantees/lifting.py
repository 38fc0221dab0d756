"""Other ways in which laws may be near each other: diameter, optimal couplings on a relation, stability (KM §IV, V)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import array_of
from tightrope.numerics.checks import Real, probability
from tightrope.numerics.distributions import law, stochastic
from tightrope.transport.costs.costs import CostLike, as_cost, powered
from tightrope.transport.exact.plan import Law, mass_that_stays_out
from tightrope.transport.solvers.optimal import coupling, exponent, wasserstein

# Lifted relations: laws with a coupling that sits on neighbouring points only (KM Def. 14).


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


SAME = 1e-9
"""Costs that differ by less, relative to the largest cost, count as equal."""


def diameter(source: ArrayLike, target: ArrayLike, cost: CostLike) -> float:
    """The largest c_ij between a point with mass in ``source`` and one in ``target`` (KM §V-B): at least W_∞.

    Arguments and errors are those of ``coupling``.

    >>> diameter([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    2.0
    """
    table = as_cost(cost)
    begin, end = law("source", source, table.shape[0]), law("target", target, table.shape[1])
    return float(table.matrix()[np.ix_(begin > 0, end > 0)].max())


def optimally_lifted(relation: ArrayLike, source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> bool:
    """Whether (source, target) ∈ Φ_{W_p}#: some coupling on Φ alone costs no more than the best of all (KM Thm 2).

    ``relation``: Φ as a matrix of truth values, shape [n, m]. Costs are compared to 1e−9 of the largest one. Raises
    ``InputError`` as ``lifted`` and ``coupling`` do.

    >>> near = [[True, True, False], [True, True, True], [False, True, True]]
    >>> cost = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> optimally_lifted(near, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], cost)
    True
    >>> optimally_lifted(near, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], cost)
    False
    """
    table, order = as_cost(cost), exponent(p)
    if not lifted(relation, source, target):
        return False
    allowed = array_of("relation", relation, "truth values")
    values = table.matrix()
    if math.isinf(order):
        within = allowed & (values <= wasserstein(source, target, table, p=order) * (1 + SAME))
        return lifted(within, source, target)
    # Pairs outside cost more than any coupling on Φ could; then both programs have the same value or not.
    on_relation_cost = powered(table, order)
    on_relation_values = on_relation_cost.matrix()
    largest = float(on_relation_values.max()) or 1.0
    barred = np.where(allowed, on_relation_values, 4 * largest / SAME)
    return coupling(source, target, barred).cost <= coupling(source, target, on_relation_values).cost + SAME * largest


def stability(transformation: ArrayLike, cost: CostLike) -> float:
    """The least c with W_1(Tλ, Tλ′) ≤ c W_1(λ, λ′) for all laws: T is (c, W_1)-stable (KM Def. 13).

    ``transformation``: T as a channel on the points of a metric, shape [n, n]; T moves laws linearly, so the worst laws
    are two points: max W_1(T(x), T(x′))/d(x, x′). Raises ``InputError`` for rows that are no laws, or another shape.

    >>> stability([[1, 0, 0], [0, 0, 1], [0, 0, 1]], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    2.0
    """
    rows, table = stochastic(transformation), as_cost(cost)
    if not rows.shape == table.shape or len(rows) != rows.shape[1]:
        raise InputError("transformation", rows.shape, f"a channel on the points of the metric, shape {table.shape}")
    distances = table.matrix()
    pairs = [(x, y) for x in range(len(rows)) for y in range(x) if (rows[x] != rows[y]).any()]
    return max((_per_unit(wasserstein(rows[x], rows[y], table), float(distances[x, y])) for x, y in pairs), default=0.0)


def _per_unit(moved: float, distance: float) -> float:
    return moved / distance if distance > 0 else math.inf
