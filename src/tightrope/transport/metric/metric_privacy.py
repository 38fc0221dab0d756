"""ε·d privacy: a map whose outputs for two points tell them apart the less, the nearer they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, array_of
from tightrope.numerics.rounding import rounded
from tightrope.randomness.choice import TOTAL
from tightrope.randomness.source import Source
from tightrope.transport.costs.costs import CostLike, as_cost
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.row_tables import RowTables

LOG_ERROR = 2.0**-51
"""Relative: what a logarithm of a weight may be off; their difference is off by that of both."""
DIVIDED = 1e-15
"""Relative: the roundings of a difference, a quotient and a product."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricMechanism:
    """A map on the points of a metric d, and the ε for which log P(y|x)/P(y|x′) ≤ ε d(x, x′) is certain.

    ``epsilon`` is computed from the integer weights that are drawn from and rounded up. It speaks of one draw: k draws
    for one value spend k times as much.
    """

    tables: RowTables
    epsilon: float

    @classmethod
    def of(cls, matrix: ArrayLike, cost: CostLike) -> Self:
        """Any channel, shape [n, m], as one that is drawn from exactly and certified for the metric ``cost``, [n, n].

        Raises ``InputError`` where a row is no law, or the sizes differ.

        >>> fair = MetricMechanism.of([[0.75, 0.25], [0.25, 0.75]], [[0, 2], [2, 0]])
        >>> round(fair.epsilon, 12)
        0.549306144334
        """
        rows = array_of("matrix", matrix, "a channel of shape [n, m]")
        if rows.ndim != 2 or not rows.size:
            raise InputError("matrix", rows.shape, "a channel of shape [n, m]")
        laws = [Law.of(f"row {x}", row) for x, row in enumerate(rows)]
        tables = RowTables.of([dict(enumerate(law.masses)) for law in laws], rows.shape[1])
        return cls(tables, metric_epsilon(tables, cost))

    @property
    def matrix(self) -> Floats:
        """P(y | x), shape [n, m], each correctly rounded."""
        out = np.zeros((len(self.tables), self.tables.outcomes))
        for x in range(len(self.tables)):
            for y, weight in self.tables.weights(x).items():
                out[x, y] = weight / TOTAL
        return out

    def apply(self, values: ArrayLike, randomness: Source | None = None) -> Integers:
        """A fresh draw for each of ``values`` (numbers of points, shape [k])."""
        places = array_of("values", values, "whole numbers of shape [k]")
        if places.ndim != 1 or places.dtype.kind not in "iu" or not np.all((places >= 0) & (places < len(self.tables))):
            shown = f"{places.dtype} of shape {places.shape}"
            raise InputError("values", shown, f"whole numbers in 0..{len(self.tables) - 1}, shape [k]")
        return self.tables.draw(places.astype(np.int64), randomness)

    def loss(self, law: ArrayLike, cost: CostLike) -> float:
        """Σ_x law[x] Σ_y P(y|x) d(x, y): the expected distance."""
        return expected_loss(self.matrix, Law.of("law", law, len(self.tables)).floats, cost)


def metric_epsilon(tables: RowTables, cost: CostLike) -> float:
    """The largest, over x, x′, y, of (log P(y|x) − log P(y|x′)) / d(x, x′), rounded up, from the weights drawn from.

    ∞ where only one of two points can give an output, and where points at distance 0 have unequal rows. n² m
    subtractions. Raises ``InputError`` unless ``cost`` is of shape [n, n].

    >>> metric_epsilon(RowTables.of([{0: 1, 1: 1}, {0: 1, 1: 1}], 2), [[0, 1], [1, 0]])
    0.0
    """
    distances, logs = as_cost(cost).matrix(), log_weights(tables)
    if distances.shape != (len(logs), len(logs)):
        raise InputError("cost", distances.shape, f"a metric on the inputs, shape {(len(logs), len(logs))}")
    worst = 0.0
    for x in range(len(logs)):
        others = np.flatnonzero(tables.starts != tables.starts[x])  # equal rows share one table
        worst = max(worst, _row_epsilon(logs[x], logs[others], distances[x, others]))
    return worst


def _row_epsilon(own: Floats, others: Floats, distances: Floats) -> float:
    """The worst of one row against others, its logs less theirs."""
    possible = np.isfinite(own)
    mine, theirs = own[possible], others[:, possible]
    gaps = mine - theirs + LOG_ERROR * (np.abs(mine) + np.where(np.isfinite(theirs), np.abs(theirs), 0.0))
    with np.errstate(divide="ignore"):
        ratios = np.max(gaps, axis=1, initial=0.0) / distances
    return rounded(float(np.max(ratios, initial=0.0)), "up", error=DIVIDED)


def log_weights(tables: RowTables) -> Floats:
    """Logarithms of the weights that are drawn from, shape [n, m]; −∞ for none."""
    out = np.full((len(tables), tables.outcomes), -math.inf)
    for x in range(len(tables)):
        for y, weight in tables.weights(x).items():
            out[x, y] = math.log(weight)
    return out


def expected_loss(matrix: Floats, law: Floats, cost: CostLike) -> float:
    """Σ_x law[x] Σ_y matrix[x, y] d(x, y)."""
    distances = as_cost(cost).matrix()
    return float(np.sum(law[:, None] * matrix * distances))


def certified(matrix: Floats, cost: CostLike, epsilon: float, private: Floats) -> MetricMechanism:
    """``matrix`` mixed with as little of ``private`` as makes its integer table ε·d private; both of shape [n, m].

    Rows are made laws first. ``private`` must be more private than ε: its share doubles from 1e−12 until the check of
    the integers passes, at the latest at 1. Raises ``InputError`` where ``private`` itself does not pass.
    """
    clean = np.maximum(matrix, 0.0)
    clean = clean / clean.sum(axis=1, keepdims=True)
    share = 1e-12
    while True:
        mixed = clean * (1 - share) + share * private
        found = MetricMechanism.of(mixed / mixed.sum(axis=1, keepdims=True), cost)
        if found.epsilon <= epsilon:
            return found
        if share >= 1:
            raise InputError("epsilon", epsilon, f"at least {found.epsilon!r}, what the table's rounding allows")
        share = min(1.0, 2 * share)
