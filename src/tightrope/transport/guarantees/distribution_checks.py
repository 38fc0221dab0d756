"""How far apart the outputs of two laws are: DistP, and XDistP by the distance of the laws (KM Defs. 11, 12)."""

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
from tightrope.numerics.checks import filled
from tightrope.transport.costs.costs import Cost, CostLike, as_cost
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import Law
from tightrope.transport.guarantees.divergences import divergence as divergence_of
from tightrope.transport.guarantees.divergences import raised
from tightrope.transport.solvers.optimal import coupling

Shares = list[Fraction]
Side = Any
ROUNDED_SUMS = 1e-10
"""Relative: what the sums in a proven distance may be off; it is taken off before it divides."""
UNIT = 2.0**-51
"""Twice what each probability of a law may be off, relatively, per point: laws in floats are no exact laws."""


@dataclass(frozen=True, slots=True)
class DistributionPrivacy:
    """(epsilon, divergence)-DistP for the given pairs; with ``order`` p, ε·W_p-XDistP.

    ``values`` holds one number a pair, the larger of both directions, rounded up; ``epsilon`` is their largest and
    ``worst`` its place. It speaks of one output a value.
    """

    divergence: str
    values: tuple[float, ...]
    order: float | None = None

    @property
    def epsilon(self) -> float:
        """The least ε for which the guarantee holds on these pairs, rounded up."""
        return max(self.values)

    @property
    def worst(self) -> int:
        """Which pair needs it."""
        return self.values.index(self.epsilon)


def distribution_privacy(
    mechanism: Any, pairs: Sequence[tuple[Side, Side]], divergence: str, *, delta: float = 0.0
) -> DistributionPrivacy:
    """D(A#λ₀‖A#λ₁) and D(A#λ₁‖A#λ₀), worst of both, for each pair; the lifting is A#λ[y] = Σ_x λ[x] A(x)[y].

    ``mechanism``: a fitted ``CouplingMechanism``, a channel (anything with a ``matrix``) or a matrix, shape [n, m].
    A side of a pair is a law over its inputs; for a coupling mechanism the name of a group, which then has the law it
    was fitted with, or (name, law) for the law that it really has. ``divergence``: see ``divergences.divergence``.
    Everything is computed in rationals from the weights that are drawn from; only logarithms and roots round, up.
    Raises ``InputError`` for an empty list, unknown groups and laws that are none.

    >>> response = [[0.75, 0.25], [0.25, 0.75]]
    >>> distribution_privacy(response, [([1.0, 0.0], [0.5, 0.5])], "total_variation").values[0] >= 0.25
    True
    """
    values = [_both_ways(divergence, p, q, delta) for p, q in _lifted(mechanism, _pairs(pairs))]
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
    """The least ε with D(A#λ₀‖A#λ₁) ≤ ε W_p(λ₀, λ₁) both ways, for each pair (XDistP, KM Def. 12); p is 1 or ∞.

    Pairs of equal laws need 0 where their outputs are equal, else ∞. Raises ``InputError`` as above.

    >>> pairs = [([1.0, 0.0], [0.0, 1.0])]
    >>> found = extended_distribution_privacy([[0.75, 0.25], [0.25, 0.75]], pairs, "max", [[0, 2], [2, 0]])
    >>> round(found.epsilon, 6)
    0.549306
    """
    if p not in (1, math.inf):
        raise InputError("p", p, "1 or math.inf")
    table, apart = as_cost(cost), distribution_privacy(mechanism, pairs, divergence, delta=delta).values
    near = [_distance(mechanism, pair, table, p) for pair in pairs]
    return DistributionPrivacy(divergence, tuple(map(_per_unit, apart, near)), p)


def output_law(mechanism: Any, side: Side) -> Shares:
    """A#λ in rationals, shape [m]; see ``distribution_privacy`` for what the arguments may be."""
    if isinstance(mechanism, CouplingMechanism):
        group, law = _group_and_law(side)
        return mechanism.exact_output_law(group, law)
    expected = "a CouplingMechanism, a channel or a matrix of shape [n, m]"
    matrix = array_of("mechanism", getattr(mechanism, "matrix", mechanism), expected)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iuf":
        raise InputError("mechanism", mechanism, expected)
    rows = matrix.astype(np.float64)
    law = Law.of("law", side, len(rows))
    channel = [Law.of(f"row {x}", rows[x]) for x in range(len(rows))]
    totals = [Fraction(0)] * rows.shape[1]
    for x in law.support.tolist():
        for y in channel[x].support.tolist():
            totals[y] += law[x] * channel[x][y]
    return totals


def _group_and_law(side: Side) -> tuple[Any, Any]:
    """A group's name with None, or a name with a law."""
    if isinstance(side, tuple) and len(side) == 2 and not np.isscalar(side[1]):
        return side
    return side, None


def _pairs(pairs: Sequence[tuple[Side, Side]]) -> list[tuple[Side, Side]]:
    filled("pairs", pairs, "give a list of pairs of groups or of laws")
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError("pairs", pair, "a list of pairs")
    return [(first, second) for first, second in pairs]


def _lifted(mechanism: Any, pairs: list[tuple[Side, Side]]) -> list[tuple[Shares, Shares]]:
    """The output laws of both sides; a side that stands in many pairs is lifted once."""
    known: dict[int, Shares] = {}
    for side in chain.from_iterable(pairs):
        if id(side) not in known:
            known[id(side)] = output_law(mechanism, side)
    return [(known[id(first)], known[id(second)]) for first, second in pairs]


def _both_ways(name: str, p: Shares, q: Shares, delta: float) -> float:
    return max(divergence_of(name, p, q, delta=delta), divergence_of(name, q, p, delta=delta))


def _input_law(mechanism: Any, side: Side, size: int) -> Law:
    if not isinstance(mechanism, CouplingMechanism):
        return Law.of("law", side, size)
    group, law = _group_and_law(side)
    return mechanism.groups[group] if law is None else Law.of("law", law, size)


def _distance(mechanism: Any, pair: tuple[Side, Side], cost: Cost, p: float) -> float:
    """A lower bound on W_p: W_1 moves by at most the largest cost times what the laws move when they become floats."""
    size = cost.shape[0]
    first, second = (_input_law(mechanism, side, size) for side in pair)
    if first == second:
        return 0.0
    proven = coupling(first.floats, second.floats, cost, p=p).at_least * (1 - ROUNDED_SUMS)
    return proven if p == math.inf else max(0.0, proven - cost.ceiling() * (size + 8) * UNIT)


def _per_unit(apart: float, distance: float) -> float:
    if not apart:
        return 0.0
    return raised(apart / distance) if distance > 0 else math.inf
