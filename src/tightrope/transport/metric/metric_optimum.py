"""The ε·d private map of least expected distance for a known law: a linear program, repaired and certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import finite, positive
from tightrope.transport.costs.costs import CostLike, as_cost
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.metric.metric_privacy import MetricMechanism, certified, expected_loss

Arcs = tuple[NDArray[np.int64], NDArray[np.int64]]

MOST_PLACES = 150
"""n² unknowns and a row for each arc and output: HiGHS takes about a minute at the end of it."""
EPSILON_MARGIN = 1e-9
"""Relative: how much less than ε the program uses, so that its roundings need little mixing."""
LARGEST_STRETCH = 50.0
"""Largest ε times diameter: smaller probabilities are below what 2⁻¹²⁸ can hold to a part in a billion."""
STIFFEST = 20.0
"""Logarithm of the largest coefficient: HiGHS errs beyond; e^20 where more is allowed costs 1e−8 of the diameter."""


@dataclass(frozen=True, slots=True)
class OptimalMetric:
    """The certified mechanism, its expected distance under the law it was made for, and the optimum of the program.

    ``optimum`` is the solver's value for ``dilation`` 1 (to its tolerance of 1e−7): no ε·d private map on these points
    does better. With a larger dilation it is the optimum of the narrower program.
    """

    mechanism: MetricMechanism
    loss: float
    optimum: float
    constraints: int


def optimal_metric(law: ArrayLike, cost: CostLike, epsilon: float, *, dilation: float = 1.0) -> OptimalMetric:
    """Minimise Σ_x law[x] Σ_y P(y|x) d(x, y) subject to P(y|x) ≤ e^{ε d(x, x′)} P(y|x′).

    Only pairs without a point in between need a constraint (a 1-spanner): on a grid with the cityblock metric the
    edges. ``dilation`` t > 1 keeps the arcs of a greedy t-spanner only, at ε/t along them: faster, a little worse, as
    private. The solution is mixed with what makes its integer table pass the check for ε itself.

    Raises ``InputError`` for laws that are none, a metric with d = 0 between two points, more than 150 points, and
    ε·diameter above 50; ``PrecisionError`` where the solver fails.

    >>> best = optimal_metric([0.5, 0.5], [[0, 1], [1, 0]], 1.0)
    >>> round(best.loss, 6), best.mechanism.epsilon <= 1.0
    (0.268941, True)
    """
    distances = _metric(cost)
    weights = Law.of("law", law, len(distances)).floats
    epsilon, stretch = positive("epsilon", epsilon), finite("dilation", dilation)
    if not stretch >= 1:
        raise InputError("dilation", dilation, "at least 1")
    if not epsilon * float(distances.max()) <= LARGEST_STRETCH:
        raise InputError("epsilon", epsilon, f"at most {LARGEST_STRETCH / float(distances.max()):g} on these points")
    arcs = _between(distances) if stretch == 1 else _spanner(distances, stretch)
    matrix, optimum = _solved(weights, distances, arcs, epsilon / stretch * (1 - EPSILON_MARGIN))
    mechanism = certified(matrix, distances, epsilon, exponential_rows(distances, epsilon / 2))
    return OptimalMetric(mechanism, expected_loss(mechanism.matrix, weights, distances), optimum, 2 * len(arcs[0]))


def exponential_rows(distances: Floats, epsilon: float) -> Floats:
    """P(y|x) ∝ e^{−ε d(x, y) / 2}: ε·d private on any metric, shape [n, n]."""
    rows = np.exp(-epsilon / 2 * distances)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _metric(cost: CostLike) -> Floats:
    distances = as_cost(cost).matrix()
    size = len(distances)
    if distances.shape != (size, size) or size < 2 or not size <= MOST_PLACES:
        raise InputError("cost", distances.shape, f"a metric on 2 to {MOST_PLACES} points", "take larger cells")
    apart = distances[~np.eye(size, dtype=bool)]
    if not (apart.min() > 0 and np.array_equal(distances, distances.T) and not np.any(np.diag(distances))):
        raise InputError("cost", cost, "a metric: symmetric, 0 on the diagonal and positive elsewhere")
    return distances


def _between(distances: Floats) -> Arcs:
    """Pairs x < x′ with no third point on a shortest way from one to the other."""
    size = len(distances)
    direct = np.triu(np.ones((size, size), dtype=bool), 1)
    for z in range(size):
        through = distances[:, z, None] + distances[None, z, :] <= distances  # exact ties only: more arcs are safe
        through[z, :] = through[:, z] = False
        direct &= ~through
    first, second = np.nonzero(direct)
    return first, second


def _spanner(distances: Floats, stretch: float) -> Arcs:
    """Greedy: an arc is kept where the ways so far are more than ``stretch`` times as long (Althöfer et al. 1993)."""
    size = len(distances)
    ways = np.where(np.eye(size, dtype=bool), 0.0, np.inf)
    kept = []
    order = np.argsort(distances, axis=None, kind="stable")
    for x, other in zip(*np.unravel_index(order, distances.shape), strict=True):
        if x < other and not ways[x, other] <= stretch * distances[x, other]:
            kept.append((x, other))
            step = distances[x, other]
            ways = np.minimum(ways, ways[:, x, None] + step + ways[None, other, :])
            ways = np.minimum(ways, ways[:, other, None] + step + ways[None, x, :])
    first, second = np.array(kept).T
    return first, second


def _solved(law: Floats, distances: Floats, arcs: Arcs, epsilon: float) -> tuple[Floats, float]:
    """The program in HiGHS: unknown x·n + y is P(y|x)."""
    from scipy.optimize import linprog

    size, (first, second) = len(law), arcs
    pairs = np.concatenate([np.stack([first, second]), np.stack([second, first])], axis=1)
    left = (pairs[0][:, None] * size + np.arange(size)).ravel()
    right = (pairs[1][:, None] * size + np.arange(size)).ravel()
    factors = np.repeat(np.exp(np.minimum(epsilon * distances[pairs[0], pairs[1]], STIFFEST)), size)
    rows = np.arange(len(left))
    entries = (np.concatenate([np.ones(len(left)), -factors]), (np.tile(rows, 2), np.concatenate([left, right])))
    inequalities: Any = sparse.csr_array(entries, shape=(len(left), size * size))
    sums: Any = sparse.csr_array(sparse.kron(sparse.eye_array(size), np.ones((1, size))))
    result = linprog(
        (law[:, None] * distances).ravel(), inequalities, np.zeros(len(left)), sums, np.ones(size), method="highs"
    )
    if result.status != 0 or result.x is None or result.fun is None:
        raise PrecisionError(f"the program could not be solved: {result.message}")
    return result.x.reshape(size, size), float(result.fun)
