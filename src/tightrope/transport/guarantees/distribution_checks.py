"""Divergences between the outputs of two distributions: DistP, and XDistP relative to W_p (KM Defs. 11, 12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import array_of
from tightrope.numerics.checks import check_nonempty
from tightrope.transport.costs.costs import CostLike, as_cost
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution
from tightrope.transport.guarantees.divergences import divergence_upper_bound as divergence_of
from tightrope.transport.guarantees.divergences import round_up
from tightrope.transport.solvers.optimal import coupling

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
        return mechanism.exact_output_law(group, law)
    expected = "a CouplingMechanism, a channel or a matrix of shape [n, m]"
    matrix = array_of("mechanism", getattr(mechanism, "matrix", mechanism), expected)
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
