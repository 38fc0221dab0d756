"""Other notions of nearby distributions: diameter, optimal couplings on a relation, stability (KM §IV, V)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import array_of
from tightrope.numerics.checks import Real, check_probability
from tightrope.numerics.distributions import normalize_distribution, normalize_stochastic_matrix
from tightrope.transport.costs.costs import CostLike, as_cost, raise_cost_to_power
from tightrope.transport.exact.plan import ExactDistribution, least_mass_outside
from tightrope.transport.solvers.optimal import check_order, coupling, wasserstein

# Lifted relations: pairs of distributions with a coupling on neighboring points only (KM Def. 14).


def lifted(relation: ArrayLike, source: ArrayLike, target: ArrayLike, *, outside: float = 0.0) -> bool:
    """Return whether (source, target) ∈ Φ#: some coupling has all its mass on Φ. Decided in integers.

    ``relation``: Φ as a Boolean matrix, shape [n, m]. For such pairs, a guarantee between the points of Φ is one
    between the distributions (KM Thm 1). Distributions are the exact rationals of their floats; to ignore their
    rounding, allow a mass ``outside`` of Φ, and add it to δ: divergences without a δ may then be infinite. Raises
    ``InputError`` for invalid distributions and a relation of another shape.

    >>> near = [[True, True, False], [True, True, True], [False, True, True]]
    >>> lifted(near, [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]), lifted(near, [1.0, 0.0, 0.0], [0.5, 0.0, 0.5])
    (True, False)
    """
    return _mass_outside(relation, source, target) <= Fraction(check_probability("outside", outside))


def mass_outside(relation: ArrayLike, source: ArrayLike, target: ArrayLike) -> float:
    """Return the least mass outside Φ of a coupling of the two: 0 exactly on Φ# (Strassen), else rounded.

    If Φ is equality, this is the total variation.

    >>> mass_outside([[True, False], [False, True]], [1.0, 0.0], [0.75, 0.25])
    0.25
    """
    return float(_mass_outside(relation, source, target))


def _mass_outside(relation: ArrayLike, source: ArrayLike, target: ArrayLike) -> Fraction:
    """Return ``mass_outside`` exactly."""
    source_law, target_law = (
        ExactDistribution.from_probabilities("source", source),
        ExactDistribution.from_probabilities("target", target),
    )
    expected = f"truth values of shape {(len(source_law), len(target_law))}"
    allowed = array_of("relation", relation, expected)
    if allowed.dtype != np.bool_ or allowed.shape != (len(source_law), len(target_law)):
        raise InputError("relation", f"{allowed.dtype} of shape {allowed.shape}", expected)
    plan = coupling(source_law.float_masses, target_law.float_masses, np.where(allowed, 0.0, 1.0)).plan
    return least_mass_outside(allowed, source_law, target_law, plan)


COST_TOLERANCE = 1e-9
"""Costs that differ by less than this, relative to the largest cost, count as equal."""


def diameter(source: ArrayLike, target: ArrayLike, cost: CostLike) -> float:
    """Return the largest c_ij between points with mass in ``source`` and in ``target`` (KM §V-B): at least W_∞.

    For arguments and errors see ``coupling``.

    >>> diameter([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    2.0
    """
    checked_cost = as_cost(cost)
    source_masses, target_masses = (
        normalize_distribution("source", source, checked_cost.matrix_shape[0]),
        normalize_distribution("target", target, checked_cost.matrix_shape[1]),
    )
    return float(checked_cost.to_matrix()[np.ix_(source_masses > 0, target_masses > 0)].max())


def optimally_lifted(relation: ArrayLike, source: ArrayLike, target: ArrayLike, cost: CostLike, *, p: Real = 1) -> bool:
    """Return whether (source, target) ∈ Φ_{W_p}#: some coupling on Φ alone is optimal among all couplings (KM Thm 2).

    ``relation``: Φ as a Boolean matrix, shape [n, m]. Costs are compared to 1e−9 of the largest one. Raises
    ``InputError`` as ``lifted`` and ``coupling`` do.

    >>> near = [[True, True, False], [True, True, True], [False, True, True]]
    >>> cost = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    >>> optimally_lifted(near, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5], cost)
    True
    >>> optimally_lifted(near, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], cost)
    False
    """
    checked_cost, order = as_cost(cost), check_order(p)
    if not lifted(relation, source, target):
        return False
    allowed = array_of("relation", relation, "truth values")
    values = checked_cost.to_matrix()
    if math.isinf(order):
        within_radius = allowed & (values <= wasserstein(source, target, checked_cost, p=order) * (1 + COST_TOLERANCE))
        return lifted(within_radius, source, target)
    # Pairs outside Φ cost more than any coupling on Φ; compare the optimal values of both programs.
    powered_cost = raise_cost_to_power(checked_cost, order)
    powered_values = powered_cost.to_matrix()
    largest = float(powered_values.max()) or 1.0
    forbidden_outside = np.where(allowed, powered_values, 4 * largest / COST_TOLERANCE)
    return (
        coupling(source, target, forbidden_outside).cost
        <= coupling(source, target, powered_values).cost + COST_TOLERANCE * largest
    )


def stability(transformation: ArrayLike, cost: CostLike) -> float:
    """Return the least c with W_1(Tλ, Tλ′) ≤ c W_1(λ, λ′) for all λ, λ′: T is (c, W_1)-stable (KM Def. 13).

    ``transformation``: T as a channel on the points of a metric, shape [n, n]; T is linear, so the worst case is two
    points: max W_1(T(x), T(x′))/d(x, x′). Raises ``InputError`` for rows that are not distributions, or another shape.

    >>> stability([[1, 0, 0], [0, 0, 1], [0, 0, 1]], [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    2.0
    """
    rows, table = normalize_stochastic_matrix(transformation), as_cost(cost)
    if not rows.shape == table.matrix_shape or len(rows) != rows.shape[1]:
        raise InputError(
            "transformation", rows.shape, f"a channel on the points of the metric, shape {table.matrix_shape}"
        )
    distances = table.to_matrix()
    pairs = [(x, y) for x in range(len(rows)) for y in range(x) if (rows[x] != rows[y]).any()]
    worst = 0.0
    for x, y in pairs:
        output_distance, distance = wasserstein(rows[x], rows[y], table), float(distances[x, y])
        worst = max(worst, output_distance / distance if distance > 0 else math.inf)
    return worst
