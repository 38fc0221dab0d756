"""How far a coupling mechanism moves the values of one group: from the tables that are drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tightrope.transport.costs.costs import CostLike, as_cost
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism, Group

NEGLIGIBLE_MASS = 2e-12
"""Mass that does not count: roundings of a plan of least average move as much, anywhere, and leave as much behind."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Distance of a value from its output: on average, and at most but for 2e−12 of the mass.

    ``kept``: the share of values that stay where they are, 0 where it is no more than that mass.
    """

    mean: float
    largest: float
    kept: float


def moves(mechanism: CouplingMechanism, group: Group, cost: CostLike) -> Moves:
    """E d(X, Y), the least t with P(d(X, Y) > t) ≤ 2e−12, and P(X = Y) beyond 2e−12, for X of the law of the fit.

    >>> mechanism = CouplingMechanism.fit({"a": [0.5, 0.5]}, [[0, 1], [1, 0]], target=[0.25, 0.75])
    >>> moves(mechanism, "a", [[0, 1], [1, 0]])
    Moves(mean=0.25, largest=1.0, kept=0.75)
    """
    rows, columns, shares = flows(mechanism, group)
    costs = as_cost(cost).pairs(rows, columns)
    dearest = np.argsort(-costs, kind="stable")
    beyond = costs[dearest][np.cumsum(shares[dearest]) > NEGLIGIBLE_MASS]
    kept = math.fsum(shares[rows == columns].tolist())
    stays = min(1.0, kept) if kept > NEGLIGIBLE_MASS else 0.0
    return Moves(math.fsum((costs * shares).tolist()), float(beyond[0]), stays)


def flows(
    mechanism: CouplingMechanism, group: Group
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The plan γ[x, y] = λ[x] P(y | x) as its entries: x, y and the mass, shape [k] each, by x and y."""
    entries = sparse.coo_array(mechanism.table(group))
    return entries.row.astype(np.int64), entries.col.astype(np.int64), np.asarray(entries.data)
