"""ε·d privacy (metric privacy): the closer two points, the less distinguishable their outputs.

1. Certified mechanisms (``MetricMechanism``).
2. Planar Laplace noise on a grid (``planar_laplace``).
3. The mechanism of least expected distance, by a linear program (``optimal_metric``).
4. A comparison with the coupling mechanism (``compare_on_grid``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats, Integers, numeric_array
from tightrope.numerics.checks import check_finite, check_integer, check_positive
from tightrope.numerics.rounding import round_outward
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.randomness.bits import Source
from tightrope.transport.costs.costs import CostLike, as_cost
from tightrope.transport.costs.graphs import grid
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution
from tightrope.transport.exact.tables import RowTables
from tightrope.transport.guarantees.distribution_checks import distribution_privacy

LOG_ERROR = 2.0**-51
"""Relative error of the logarithm of a weight; a difference of two has both errors."""
QUOTIENT_ERROR = 1e-15
"""Relative rounding error of a difference, a quotient and a product together."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricMechanism:
    """A map on the points of a metric d, and an ε such that log P(y|x)/P(y|x′) ≤ ε d(x, x′) is proven.

    ``epsilon`` is computed from the actual sampling weights and rounded up. It covers one draw: k draws for one value
    have k times this ε.
    """

    tables: RowTables
    epsilon: float

    @classmethod
    def from_channel(cls, matrix: ArrayLike, cost: CostLike) -> Self:
        """Return the channel ``matrix``, shape [n, m], as an exact sampler certified for the metric ``cost``, [n, n].

        Raises ``InputError`` if a row is not a distribution, or the sizes differ.

        >>> fair = MetricMechanism.from_channel([[0.75, 0.25], [0.25, 0.75]], [[0, 2], [2, 0]])
        >>> round(fair.epsilon, 12)
        0.549306144334
        """
        rows = numeric_array("matrix", matrix, "a channel of shape [n, m]")
        if rows.ndim != 2 or not rows.size:
            raise InputError("matrix", rows.shape, "a channel of shape [n, m]")
        laws = [ExactDistribution.from_probabilities(f"row {x}", row) for x, row in enumerate(rows)]
        tables = RowTables.from_weights([dict(enumerate(law.masses)) for law in laws], rows.shape[1])
        return cls(tables, metric_epsilon(tables, cost))

    @property
    def matrix(self) -> Floats:
        """P(y | x), shape [n, m], each correctly rounded."""
        out = np.zeros((len(self.tables), self.tables.outcomes))
        for x in range(len(self.tables)):
            for y, weight in self.tables.row_weights(x).items():
                out[x, y] = weight / TOTAL
        return out

    def apply(self, values: ArrayLike, randomness: Source | None = None) -> Integers:
        """Return a fresh draw for each of ``values`` (indices of points, shape [k])."""
        points = numeric_array("values", values, "whole numbers of shape [k]")
        if points.ndim != 1 or points.dtype.kind not in "iu" or not np.all((points >= 0) & (points < len(self.tables))):
            shown = f"{points.dtype} of shape {points.shape}"
            raise InputError("values", shown, f"whole numbers in 0..{len(self.tables) - 1}, shape [k]")
        return self.tables.draw_outcomes(points.astype(np.int64), randomness)

    def loss(self, law: ArrayLike, cost: CostLike) -> float:
        """Return the expected distance Σ_x law[x] Σ_y P(y|x) d(x, y)."""
        return expected_loss(
            self.matrix, ExactDistribution.from_probabilities("law", law, len(self.tables)).float_masses, cost
        )


def metric_epsilon(tables: RowTables, cost: CostLike) -> float:
    """Return the maximum over x, x′, y of (log P(y|x) − log P(y|x′)) / d(x, x′), rounded up, from the sampling weights.

    ∞ if only one of two points can produce an output, and if points at distance 0 have unequal rows. n² m subtractions.
    Raises ``InputError`` unless ``cost`` is of shape [n, n].

    >>> metric_epsilon(RowTables.from_weights([{0: 1, 1: 1}, {0: 1, 1: 1}], 2), [[0, 1], [1, 0]])
    0.0
    """
    distances, logs = as_cost(cost).to_matrix(), log_weights(tables)
    if distances.shape != (len(logs), len(logs)):
        raise InputError("cost", distances.shape, f"a metric on the inputs, shape {(len(logs), len(logs))}")
    worst = 0.0
    for x in range(len(logs)):
        others = np.flatnonzero(tables.starts != tables.starts[x])  # equal rows share one table
        # The largest log-ratio of one row to others.
        row_logs = logs[x]
        other_logs = logs[others]
        other_distances = distances[x, others]
        possible = np.isfinite(row_logs)
        possible_logs, compared_logs = row_logs[possible], other_logs[:, possible]
        differences = (
            possible_logs
            - compared_logs
            + LOG_ERROR * (np.abs(possible_logs) + np.where(np.isfinite(compared_logs), np.abs(compared_logs), 0.0))
        )
        with np.errstate(divide="ignore"):
            ratios = np.max(differences, axis=1, initial=0.0) / other_distances
        worst = max(worst, round_outward(float(np.max(ratios, initial=0.0)), "up", error=QUOTIENT_ERROR))
    return worst


def log_weights(tables: RowTables) -> Floats:
    """Return logarithms of the sampling weights, shape [n, m]; −∞ for weight 0."""
    out = np.full((len(tables), tables.outcomes), -math.inf)
    for x in range(len(tables)):
        for y, weight in tables.row_weights(x).items():
            out[x, y] = math.log(weight)
    return out


def expected_loss(matrix: Floats, law: Floats, cost: CostLike) -> float:
    """Return Σ_x law[x] Σ_y matrix[x, y] d(x, y)."""
    distances = as_cost(cost).to_matrix()
    return float(np.sum(law[:, None] * matrix * distances))


def mix_until_private(matrix: Floats, cost: CostLike, epsilon: float, private: Floats) -> MetricMechanism:
    """Return ``matrix`` mixed with the smallest tried fraction of ``private`` whose integer table is ε·d private.

    Both have shape [n, m]; rows are normalized first. ``private`` must be more private than ε: its fraction doubles
    from 1e−12 to at most 1 until the integer check passes. Raises ``InputError`` if ``private`` itself does not pass.
    """
    normalized = np.maximum(matrix, 0.0)
    normalized = normalized / normalized.sum(axis=1, keepdims=True)
    fraction = 1e-12
    while True:
        mixed = normalized * (1 - fraction) + fraction * private
        mechanism = MetricMechanism.from_channel(mixed / mixed.sum(axis=1, keepdims=True), cost)
        if mechanism.epsilon <= epsilon:
            return mechanism
        if fraction >= 1:
            raise InputError("epsilon", epsilon, f"at least {mechanism.epsilon!r}, because of the table's rounding")
        fraction = min(1.0, 2 * fraction)


# 2. Planar Laplace noise on a grid: exactly ε·d private, certified from the sampling integers.

EPSILON_MARGIN = 1e-9
"""ε of the kernel is reduced by this fraction, so that the rounded table meets ε."""
KERNEL_REACH = 45.0
"""The kernel extends beyond the grid by 45/ε: outside is at most e^−45 of its mass, for each point."""
MAX_EPSILON_DIAMETER = 50.0
"""Largest ε times diameter: weights stay above 2³⁰ units of 2⁻¹²⁸."""
MAX_CELLS, MAX_REACH = 900, 3000
"""Maximal number of cells of a grid, and maximal extent of the kernel in cells."""
METRICS = ("euclidean", "cityblock")


def planar_laplace(shape: tuple[int, int], epsilon: float, *, metric: str = "euclidean") -> MetricMechanism:
    """Return the map x ↦ the nearest grid point to x + Z with P(Z = z) ∝ e^{−ε ‖z‖} on all of ℤ².

    The normalizer is the same at every x, so log-ratios are at most ε d(x, x′): the full ε, not half of it as for the
    exponential mechanism on the grid alone. Points outside are clamped to the edge, coordinate by coordinate
    (post-processing). Points are numbered row by row; distances count cells.

    Raises ``InputError`` for shapes other than two numbers, more than 900 cells, ε times the diameter above 50 (the
    noise would never cross the grid: use a coarser one), and an ε so small that the kernel covers over 3000 cells.

    >>> noisy = planar_laplace((3, 4), 1.0)
    >>> noisy.epsilon <= 1.0, noisy.matrix.shape
    (True, (12, 12))
    """
    height, width = _check_shape(shape)
    if not 2 <= height * width <= MAX_CELLS:
        raise InputError("shape", shape, f"2 to {MAX_CELLS} cells", "use larger cells")
    epsilon = check_positive("epsilon", epsilon)
    cost = grid_distances((height, width), metric)
    if not epsilon * float(cost.max()) <= MAX_EPSILON_DIAMETER:
        raise InputError("epsilon", epsilon, f"at most {MAX_EPSILON_DIAMETER / float(cost.max()):g} on this grid")
    # e^{−ε‖z‖} for |z| up to the grid's size plus the reach, shape [2R + 1, 2R + 1].
    kernel_epsilon = epsilon * (1 - EPSILON_MARGIN)
    reach = max(height, width) + math.ceil(KERNEL_REACH / kernel_epsilon)
    if not reach <= MAX_REACH:
        remedy = "use larger cells: epsilon is per cell"
        raise InputError(
            "epsilon", kernel_epsilon, f"at least {KERNEL_REACH / (MAX_REACH - max(height, width)):g}", remedy
        )
    axis = np.arange(-reach, reach + 1, dtype=np.float64)
    down = axis[:, None]
    right = axis[None, :]
    # P(y | x) for x, y on the grid: sums of the kernel over the points clamped to y, shape [n, n].
    kernel = np.exp(
        -kernel_epsilon * np.asarray(np.hypot(down, right) if metric == "euclidean" else np.abs(down) + np.abs(right))
    )
    by_rows = _sums_by_shift(kernel, height)
    sums = _sums_by_shift(np.moveaxis(by_rows, 2, 0).reshape(len(kernel), -1), width)
    cells = sums.reshape(width, width, height, height).transpose(2, 0, 3, 1).reshape(height * width, height * width)
    matrix = np.asarray(cells / cells.sum(axis=1, keepdims=True))
    mechanism = MetricMechanism.from_channel(matrix, cost)
    if not mechanism.epsilon <= epsilon:
        raise InputError("epsilon", epsilon, f"at least {mechanism.epsilon!r}, because of the table's rounding")
    return mechanism


def grid_distances(shape: tuple[int, int], metric: str = "euclidean") -> Floats:
    """Return distances between the points of a grid, numbered row by row, in cells, shape [n, n].

    ``metric``: "euclidean" or "cityblock"; raises ``InputError`` for another.

    >>> grid_distances((1, 3)).tolist()[0]
    [0.0, 1.0, 2.0]
    """
    if metric not in METRICS:
        raise InputError("metric", metric, f"one of {list(METRICS)}")
    return grid(_check_shape(shape), metric=metric).to_matrix()


def _check_shape(shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise InputError("shape", shape, "a pair of whole numbers (height, width)")
    return check_integer("height", shape[0]), check_integer("width", shape[1])


def _sums_by_shift(kernel: Floats, size: int) -> Floats:
    """Return the kernel summed over all moves along its first axis that lead from a to b, shape [size, size, …].

    Moves are on a line of ``size`` points and clamped to its ends; the first axes of the result are a and b.
    """
    reach, sums = len(kernel) // 2, np.empty((size, size, kernel.shape[1]))
    for a in range(size):
        for b in range(size):
            low = 0 if b == 0 else reach + b - a
            high = len(kernel) if b == size - 1 else reach + b - a + 1
            sums[a, b] = kernel[low:high].sum(axis=0)
    return sums


# 3. The ε·d private map of least expected distance for a known distribution: a linear program, repaired and certified.

Arcs = tuple[NDArray[np.int64], NDArray[np.int64]]

MAX_POINTS = 150
"""Maximal number n of points: with n² unknowns and a row for each arc and output, HiGHS takes about a minute."""
PROGRAM_EPSILON_MARGIN = 1e-9
"""ε of the program is reduced by this fraction, so that little mixing is needed after rounding."""
PROGRAM_MAX_EPSILON_DIAMETER = 50.0
"""Largest ε times diameter: 2⁻¹²⁸ resolves the smallest probabilities to a part in a billion."""
MAX_LOG_COEFFICIENT = 20.0
"""Logarithm of the largest coefficient, the limit of HiGHS's accuracy; capping at e^20 costs 1e−8 of the diameter."""


@dataclass(frozen=True, slots=True)
class OptimalMetric:
    """The certified mechanism, its expected distance under its design distribution, and the optimum of the program.

    ``optimum`` is the solver's value for ``dilation`` 1 (to its tolerance of 1e−7): a lower bound for every ε·d private
    map on these points. With a larger dilation it is the optimum of the narrower program.
    """

    mechanism: MetricMechanism
    loss: float
    optimum: float
    constraints: int


def optimal_metric(law: ArrayLike, cost: CostLike, epsilon: float, *, dilation: float = 1.0) -> OptimalMetric:
    """Minimize Σ_x law[x] Σ_y P(y|x) d(x, y) subject to P(y|x) ≤ e^{ε d(x, x′)} P(y|x′).

    Only pairs without a point in between need a constraint (a 1-spanner): on a grid with the cityblock metric the
    edges. ``dilation`` t > 1 keeps only the arcs of a greedy t-spanner, at ε/t along them: faster, slightly worse, as
    private. The solution is mixed until its integer table passes the check for ε itself.

    Raises ``InputError`` for invalid distributions, a metric with d = 0 between two points, more than 150 points, and
    ε·diameter above 50; ``PrecisionError`` if the solver fails.

    >>> best = optimal_metric([0.5, 0.5], [[0, 1], [1, 0]], 1.0)
    >>> round(best.loss, 6), best.mechanism.epsilon <= 1.0
    (0.268941, True)
    """
    distances = as_cost(cost).to_matrix()
    size = len(distances)
    if distances.shape != (size, size) or size < 2 or not size <= MAX_POINTS:
        raise InputError("cost", distances.shape, f"a metric on 2 to {MAX_POINTS} points", "use larger cells")
    off_diagonal = distances[~np.eye(size, dtype=bool)]
    if not (off_diagonal.min() > 0 and np.array_equal(distances, distances.T) and not np.any(np.diag(distances))):
        raise InputError("cost", cost, "a metric: symmetric, 0 on the diagonal and positive elsewhere")
    weights = ExactDistribution.from_probabilities("law", law, len(distances)).float_masses
    epsilon, stretch = check_positive("epsilon", epsilon), check_finite("dilation", dilation)
    if not stretch >= 1:
        raise InputError("dilation", dilation, "at least 1")
    if not epsilon * float(distances.max()) <= PROGRAM_MAX_EPSILON_DIAMETER:
        raise InputError(
            "epsilon", epsilon, f"at most {PROGRAM_MAX_EPSILON_DIAMETER / float(distances.max()):g} on these points"
        )
    if stretch == 1:
        # Pairs x < x′ without a third point on a shortest path between them.
        is_direct = np.triu(np.ones((size, size), dtype=bool), 1)
        for z in range(size):
            # Equality without tolerance: superfluous arcs only cost time.
            through = distances[:, z, None] + distances[None, z, :] <= distances
            through[z, :] = through[:, z] = False
            is_direct &= ~through
        first, second = np.nonzero(is_direct)
        arcs: Arcs = first, second
    else:
        arcs = _greedy_spanner(distances, stretch)
    matrix, optimum = _solve_program(weights, distances, arcs, epsilon / stretch * (1 - PROGRAM_EPSILON_MARGIN))
    mechanism = mix_until_private(matrix, distances, epsilon, exponential_rows(distances, epsilon / 2))
    return OptimalMetric(mechanism, expected_loss(mechanism.matrix, weights, distances), optimum, 2 * len(arcs[0]))


def exponential_rows(distances: Floats, epsilon: float) -> Floats:
    """Return P(y|x) ∝ e^{−ε d(x, y) / 2}: ε·d private on any metric, shape [n, n]."""
    rows = np.exp(-epsilon / 2 * distances)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _greedy_spanner(distances: Floats, stretch: float) -> Arcs:
    """Return a greedy spanner: keep arcs if all paths so far exceed ``stretch`` times their length (Althöfer 1993)."""
    size = len(distances)
    path_lengths = np.where(np.eye(size, dtype=bool), 0.0, np.inf)
    arcs = []
    order = np.argsort(distances, axis=None, kind="stable")
    for x, other in zip(*np.unravel_index(order, distances.shape), strict=True):
        if x < other and not path_lengths[x, other] <= stretch * distances[x, other]:
            arcs.append((x, other))
            step = distances[x, other]
            path_lengths = np.minimum(path_lengths, path_lengths[:, x, None] + step + path_lengths[None, other, :])
            path_lengths = np.minimum(path_lengths, path_lengths[:, other, None] + step + path_lengths[None, x, :])
    first, second = np.array(arcs).T
    return first, second


def _solve_program(law: Floats, distances: Floats, arcs: Arcs, epsilon: float) -> tuple[Floats, float]:
    """Return the solution P(y|x) of the program, and its value, by HiGHS; unknown x·n + y is P(y|x)."""
    from scipy.optimize import linprog

    size, (first, second) = len(law), arcs
    pairs = np.concatenate([np.stack([first, second]), np.stack([second, first])], axis=1)
    left_unknowns = (pairs[0][:, None] * size + np.arange(size)).ravel()
    right_unknowns = (pairs[1][:, None] * size + np.arange(size)).ravel()
    factors = np.repeat(np.exp(np.minimum(epsilon * distances[pairs[0], pairs[1]], MAX_LOG_COEFFICIENT)), size)
    rows = np.arange(len(left_unknowns))
    entries = (
        np.concatenate([np.ones(len(left_unknowns)), -factors]),
        (np.tile(rows, 2), np.concatenate([left_unknowns, right_unknowns])),
    )
    inequalities: Any = sparse.csr_array(entries, shape=(len(left_unknowns), size * size))
    sums: Any = sparse.csr_array(sparse.kron(sparse.eye_array(size), np.ones((1, size))))
    result = linprog(
        (law[:, None] * distances).ravel(),
        inequalities,
        np.zeros(len(left_unknowns)),
        sums,
        np.ones(size),
        method="highs",
    )
    if result.status != 0 or result.x is None or result.fun is None:
        raise PrecisionError(f"the program could not be solved: {result.message}")
    return result.x.reshape(size, size), float(result.fun)


# 4. Coupling, optimal metric map and planar Laplace on the same data: distances and guarantees.


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One mechanism: its expected distance over all people, ``loss``, and how distinguishable points and groups are.

    ``point_epsilon`` is the ε per cell of ε·d privacy, for a coupling within the worst group (∞ if an output can
    exclude a point). ``group_total_variation`` and ``group_epsilon`` (D_∞) are for one draw and any two groups.
    """

    name: str
    loss: float
    point_epsilon: float
    group_total_variation: float
    group_epsilon: float


def compare_on_grid(
    groups: Mapping[Any, ArrayLike], shape: tuple[int, int], epsilon: float, *, metric: str = "euclidean"
) -> list[ComparisonRow]:
    """Return the three mechanisms for groups of equal size on a grid (row by row), with one ε per cell of distance.

    The coupling hides only the group; the metric maps hide the location, and the group as far as ε does. Raises
    ``InputError`` as the mechanisms do, and for fewer than two groups.

    >>> rows = compare_on_grid({"a": [0.6, 0.2, 0.2, 0.0], "b": [0.0, 0.2, 0.2, 0.6]}, (2, 2), 1.0)
    >>> [row.name for row in rows], round(rows[0].group_total_variation, 12)
    (['coupling', 'optimal', 'planar laplace'], 0.0)
    """
    if not isinstance(groups, Mapping) or len(groups) < 2:
        raise InputError("groups", groups, "a mapping with the distributions of at least two groups")
    cost = grid_distances(shape, metric)
    laws = {
        group: ExactDistribution.from_probabilities(f"the distribution of {group!r}", law, len(cost)).float_masses
        for group, law in groups.items()
    }
    everyone = np.mean(list(laws.values()), axis=0)
    best = optimal_metric(everyone / everyone.sum(), cost, epsilon)
    maps = {"optimal": best.mechanism, "planar laplace": planar_laplace(shape, epsilon, metric=metric)}
    rows = []
    for name, metric_map in maps.items():
        separation = _group_separation(metric_map.matrix, list(laws.values()))
        rows.append(
            ComparisonRow(name, expected_loss(metric_map.matrix, everyone, cost), metric_map.epsilon, *separation)
        )
    mechanism = CouplingMechanism.fit(laws, cost)
    loss = float(np.mean(list(mechanism.cost_by_group.values())))
    point_epsilon = max(metric_epsilon(tables, cost) for tables in mechanism.tables.values())
    return [
        ComparisonRow("coupling", loss, point_epsilon, *_group_separation(mechanism, list(mechanism.groups))),
        *rows,
    ]


def _group_separation(mechanism: Any, sides: list[Any]) -> tuple[float, float]:
    """Return the largest total variation and D_∞ between the outputs of any two of ``sides``."""
    pairs = list(combinations(sides, 2))
    names = ("total_variation", "max")
    variation, largest = (distribution_privacy(mechanism, pairs, name).epsilon for name in names)
    return variation, largest
