"""Divergences between the outputs of two distributions, and relations between distributions.

DistP, and XDistP relative to W_p (KM Defs. 11, 12); lifted relations, diameter and stability (KM §IV, V).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import numeric_array
from tightrope.numerics.checks import Real, check_nonempty, check_probability
from tightrope.numerics.distributions import normalize_distribution, normalize_stochastic_matrix
from tightrope.transport.costs.costs import CostLike, as_cost, raise_cost_to_power
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution, least_mass_outside
from tightrope.transport.guarantees.divergences import divergence_upper_bound as divergence_of
from tightrope.transport.guarantees.divergences import round_up
from tightrope.transport.solvers.optimal import check_order, coupling, wasserstein

Probabilities = list[Fraction]
Side = Any
DISTANCE_ERROR = 1e-10
"""Relative error of the sums in a proven distance; distances are reduced by it before they are divisors."""
PROBABILITY_ERROR = 2.0**-51
"""Twice the relative error of each probability of a float distribution, per point."""


@dataclass(frozen=True, slots=True)
class DistributionPrivacy:
    """(epsilon, divergence)-DistP for the given pairs; with ``order`` p, ε·W_p-XDistP.

    ``values`` has one number for each pair, the larger of both directions, rounded up; ``epsilon`` is their maximum and
    ``worst_pair`` its index. Valid for one output per value.
    """

    divergence: str
    values: tuple[float, ...]
    order: float | None = None

    @property
    def epsilon(self) -> float:
        """The least ε for which the guarantee holds on these pairs, rounded up."""
        return max(self.values)

    @property
    def worst_pair(self) -> int:
        """Index of the pair with the largest value."""
        return self.values.index(self.epsilon)


def distribution_privacy(
    mechanism: Any, pairs: Sequence[tuple[Side, Side]], divergence: str, *, delta: float = 0.0
) -> DistributionPrivacy:
    """Return D(A#λ₀‖A#λ₁) or D(A#λ₁‖A#λ₀), the larger, for each pair; the lifting is A#λ[y] = Σ_x λ[x] A(x)[y].

    ``mechanism``: a fitted ``CouplingMechanism``, a channel (anything with a ``matrix``) or a matrix, shape [n, m]. A
    side of a pair is a distribution over its inputs; for a coupling mechanism the name of a group, with its fitted
    distribution, or (name, distribution) for another one. ``divergence``: see ``guarantees.divergences``. Everything is
    computed in rationals from the actual sampling weights; only logarithms and roots are rounded, up. Raises
    ``InputError`` for an empty list, unknown groups and invalid distributions.

    >>> response = [[0.75, 0.25], [0.25, 0.75]]
    >>> distribution_privacy(response, [([1.0, 0.0], [0.5, 0.5])], "total_variation").values[0] >= 0.25
    True
    """
    check_nonempty("pairs", pairs, "give a list of pairs of groups or of laws")
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError("pairs", pair, "a list of pairs")
    sides = [(first, second) for first, second in pairs]
    # The output distribution of each side; repeated sides are computed once.
    laws: dict[int, Probabilities] = {}
    for side in chain.from_iterable(sides):
        if id(side) not in laws:
            laws[id(side)] = output_law(mechanism, side)
    values = []
    for first, second in sides:
        p, q = laws[id(first)], laws[id(second)]
        values.append(max(divergence_of(divergence, p, q, delta=delta), divergence_of(divergence, q, p, delta=delta)))
    return DistributionPrivacy(divergence, tuple(values))


def extended_distribution_privacy(
    mechanism: Any,
    pairs: Sequence[tuple[Side, Side]],
    divergence: str,
    cost: CostLike,
    *,
    p: float = 1,
    delta: float = 0.0,
) -> DistributionPrivacy:
    """Return the least ε with D(A#λ₀‖A#λ₁) ≤ ε W_p(λ₀, λ₁) both ways, for each pair (XDistP, KM Def. 12); p is 1 or ∞.

    For pairs of equal distributions ε is 0 if their outputs are equal, otherwise ∞. Raises ``InputError`` as
    ``distribution_privacy`` does.

    >>> pairs = [([1.0, 0.0], [0.0, 1.0])]
    >>> found = extended_distribution_privacy([[0.75, 0.25], [0.25, 0.75]], pairs, "max", [[0, 2], [2, 0]])
    >>> round(found.epsilon, 6)
    0.549306
    """
    if p not in (1, math.inf):
        raise InputError("p", p, "1 or math.inf")
    checked_cost, divergences = as_cost(cost), distribution_privacy(mechanism, pairs, divergence, delta=delta).values
    size = checked_cost.matrix_shape[0]
    values = []
    for value, pair in zip(divergences, pairs, strict=True):
        first, second = (_input_law(mechanism, side, size) for side in pair)
        distance = 0.0
        if first != second:
            # W_1 changes by at most the largest cost times the rounding of the distributions.
            distance = coupling(first.float_masses, second.float_masses, checked_cost, p=p).lower_bound * (
                1 - DISTANCE_ERROR
            )
            if p != math.inf:
                distance = max(0.0, distance - checked_cost.cost_upper_bound() * (size + 8) * PROBABILITY_ERROR)
        values.append(0.0 if not value else round_up(value / distance) if distance > 0 else math.inf)
    return DistributionPrivacy(divergence, tuple(values), p)


def output_law(mechanism: Any, side: Side) -> Probabilities:
    """Return A#λ in rationals, shape [m]; for the arguments see ``distribution_privacy``."""
    if isinstance(mechanism, CouplingMechanism):
        group, law = _group_and_law(side)
        return mechanism.exact_output_distribution(group, law)
    expected = "a CouplingMechanism, a channel or a matrix of shape [n, m]"
    matrix = numeric_array("mechanism", getattr(mechanism, "matrix", mechanism), expected)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iuf":
        raise InputError("mechanism", mechanism, expected)
    rows = matrix.astype(np.float64)
    law = ExactDistribution.from_probabilities("law", side, len(rows))
    channel = [ExactDistribution.from_probabilities(f"row {x}", rows[x]) for x in range(len(rows))]
    totals = [Fraction(0)] * rows.shape[1]
    for x in law.support_points.tolist():
        for y in channel[x].support_points.tolist():
            totals[y] += law[x] * channel[x][y]
    return totals


def _group_and_law(side: Side) -> tuple[Any, Any]:
    """Return the group's name and the distribution of a side; None if it has no distribution."""
    if isinstance(side, tuple) and len(side) == 2 and not np.isscalar(side[1]):
        return side
    return side, None


def _input_law(mechanism: Any, side: Side, size: int) -> ExactDistribution:
    if not isinstance(mechanism, CouplingMechanism):
        return ExactDistribution.from_probabilities("law", side, size)
    group, law = _group_and_law(side)
    return mechanism.groups[group] if law is None else ExactDistribution.from_probabilities("law", law, size)


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
    allowed = numeric_array("relation", relation, expected)
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
    allowed = numeric_array("relation", relation, "truth values")
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
