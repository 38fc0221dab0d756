"""The barycenter of several distributions: the common target of least total cost (theory §6, choosing μ).

The linear programs may be solved inexactly: a solution is normalized, each group is coupled to it with a proof, and the
multipliers are converted to feasible potentials, hence to a lower bound on the cost of every distribution.

1. Linear programs over pairs of points or over the edges of a graph.
2. The barycenter.
3. The partial barycenter: all but a mass δ of each group gets a common distribution (docs/proofs/transport.md).
4. Its least cost as a function of δ (``delta_frontier``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import block_diag, coo_array, csr_array, eye_array, hstack, kron, vstack

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real, check_integer, check_probability
from tightrope.numerics.distributions import normalize_distribution
from tightrope.transport.costs.costs import Cost, CostLike, as_cost, group_weights, raise_cost_to_power
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.points import Line
from tightrope.transport.solvers.closed_form import DiscreteCost, median_law
from tightrope.transport.solvers.optimal import check_order, coupling, coupling_of_tiny_cost
from tightrope.transport.solvers.result import DUAL_ROUNDING, Coupling, rounding_margin

# 1. Linear programs of the barycenter: over pairs of points, or over the edges of a graph. Solved by HiGHS.

SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """Minimize ``costs`` · x for x ≥ 0 with ``table`` x = ``right_sides``; the first ``targets`` variables are the law.

    The multipliers of the rows ``potential_rows`` [groups, targets], times ``sign``, are the potentials of the targets,
    weighted by group.
    """

    costs: Floats
    table: csr_array
    right_sides: Floats
    targets: int
    potential_rows: np.ndarray[tuple[int, int], np.dtype[np.intp]]
    sign: int


def solve_barycenter(groups: Floats, cost: Cost, shares: Floats) -> tuple[Floats, Floats]:
    """Return the distribution of least weighted cost, and potentials v [groups, targets], within solver tolerance."""
    if isinstance(cost, DiscreteCost):
        return median_law(groups, shares)
    positive_groups = np.flatnonzero(shares)
    program = cost_program(groups[positive_groups], shares[positive_groups], cost)
    variables, multipliers = _solve_program(program, np.full(program.table.shape[1], np.inf))
    prices = np.zeros((len(groups), program.targets))
    prices[positive_groups] = program.sign * multipliers[program.potential_rows] / shares[positive_groups, None]
    masses = np.maximum(variables[: program.targets], 0)
    return masses / masses.sum(), prices


def cost_program(groups: Floats, shares: Floats, cost: Cost) -> LinearProgram:
    """Return the program over edges if the cost is the metric of a graph or path, otherwise over pairs."""
    if isinstance(cost, Graph):
        return edges_program(groups, shares, cost)
    # A line with equal sources and targets is a path.
    if isinstance(cost, Line) and cost.exponent == 1 and cost.x is cost.y and len(np.unique(cost.x)) == len(cost.x):
        order = np.argsort(cost.x)
        return edges_program(groups, shares, Graph(len(order), order[:-1], order[1:], np.diff(cost.x[order])))
    return pairs_program(groups, shares, cost)


def _solve_program(program: LinearProgram, upper: Floats) -> tuple[Floats, Floats]:
    """Return an optimal solution with 0 ≤ x ≤ ``upper``, and the multipliers of the rows."""
    unit = float(program.costs.max()) or 1.0
    options = {"primal_feasibility_tolerance": SOLVER_TOLERANCE, "dual_feasibility_tolerance": SOLVER_TOLERANCE}
    solve: Any = linprog  # its stubs lack sparse tables
    solution = solve(
        program.costs / unit,
        A_eq=program.table,
        b_eq=program.right_sides,
        bounds=np.column_stack([np.zeros(len(upper)), upper]),
        method="highs",
        options=options,
    )
    if solution.status != 0:
        raise PrecisionError(f"no barycenter found ({solution.message}); give fewer points, or a grid or graph as cost")
    return solution.x, solution.eqlin.marginals * unit


def pairs_program(groups: Floats, shares: Floats, cost: Cost) -> LinearProgram:
    """Return the program over pairs. Rows: Σ_j γ_sij = λ_si, and Σ_i γ_sij − μ_j = 0. Columns: μ, then γ."""
    (count, n), m = groups.shape, cost.matrix_shape[1]
    row_sums = kron(eye_array(count * n), np.ones((1, m)))
    column_sums = kron(eye_array(count), kron(np.ones((1, n)), eye_array(m)))
    target_columns = kron(np.ones((count, 1)), -eye_array(m))
    table = vstack([hstack([csr_array((count * n, m)), row_sums]), hstack([target_columns, column_sums])])
    costs = np.concatenate([np.zeros(m), np.outer(shares, cost.to_matrix().ravel()).ravel()])
    right_sides = np.concatenate([groups.ravel(), np.zeros(count * m)])
    potential_rows = count * n + np.arange(count * m).reshape(count, m)
    return LinearProgram(costs, csr_array(table), right_sides, m, potential_rows, 1)


def edges_program(groups: Floats, shares: Floats, graph: Graph) -> LinearProgram:
    """Return the program over edges. Rows: outflow − inflow + μ = λ_s at a node. Columns: μ, then flows both ways."""
    count, nodes = groups.shape
    edges = len(graph.lengths)
    nodes_and_edges = np.concatenate([graph.tails, graph.heads]), np.tile(np.arange(edges), 2)
    incidence = coo_array((np.repeat([1.0, -1.0], edges), nodes_and_edges), shape=(nodes, edges))
    flows = block_diag([hstack([incidence, -incidence])] * count)
    target_columns = kron(np.ones((count, 1)), eye_array(nodes))
    both_lengths = np.concatenate([graph.lengths, graph.lengths])
    costs = np.concatenate([np.zeros(nodes), np.outer(shares, both_lengths).ravel()])
    potential_rows = np.arange(count * nodes).reshape(count, nodes)
    return LinearProgram(costs, csr_array(hstack([target_columns, flows])), groups.ravel(), nodes, potential_rows, -1)


# 2. The barycenter.


@dataclass(frozen=True, slots=True, eq=False)
class Barycenter:
    """``law`` [m] on the targets of the cost, and a coupling of each group's distribution with it, in the given order.

    ``cost`` = Σ_s w_s W_p(λ_s, law)^p, and every distribution costs at least ``lower``, rounding included.
    """

    law: Floats
    cost: float
    lower: float
    couplings: tuple[Coupling, ...]

    @property
    def gap(self) -> float:
        """``cost`` − ``lower``."""
        return self.cost - self.lower


def barycenter(
    laws: Sequence[ArrayLike], cost: CostLike, *, weights: Sequence[float] | None = None, p: Real = 1
) -> Barycenter:
    """Return the μ on the targets of ``cost`` with least Σ_s w_s W_p(λ_s, μ)^p; weights are equal by default.

    A linear program with a variable for each group and pair of points, or for each group and edge on a graph or grid
    with p = 1. Any μ is as private; this one costs least. Raises ``InputError`` for an empty list, weights that are not
    fractions of the groups, or p = ∞; ``PrecisionError`` if the solver fails.

    >>> from tightrope import transport
    >>> found = barycenter([[1, 0, 0], [0, 0, 1], [0, 1, 0]], transport.line([0, 1, 2]))
    >>> found.law.round(9).tolist(), round(found.cost, 9)
    ([0.0, 1.0, 0.0], 0.666666667)
    """
    checked_cost, order = as_cost(cost), check_order(p)
    if math.isinf(order):
        raise InputError("p", p, "a finite number >= 1", "there is no barycenter for the largest cost: give a target")
    groups = _stack_laws(laws, checked_cost)
    shares = group_weights(weights, len(groups))
    powered_cost = raise_cost_to_power(checked_cost, order)
    law, potentials = solve_barycenter(groups, powered_cost, shares)
    couplings = tuple(coupling(group, law, checked_cost, p=order) for group in groups)
    total_cost = float(sum(share * group.cost for share, group in zip(shares, couplings, strict=True)))
    # Σ_s w_s Σ_i u_si λ_si + min_j Σ_s w_s v_sj for u_s = c-transform of v_s: a bound for every distribution.
    source_potentials = np.stack(
        [powered_cost.row_potentials(v) - rounding_margin(powered_cost.row_potentials(v), v) for v in potentials]
    )
    terms = shares[:, None] * source_potentials * groups
    least_target_term = float((shares[:, None] * potentials).sum(axis=0).min())
    magnitude = float(np.abs(terms).sum() + (shares[:, None] * np.abs(potentials)).sum(axis=0).max())
    return Barycenter(
        law,
        total_cost,
        float(terms.sum()) + least_target_term - (len(groups) + 8) * DUAL_ROUNDING * magnitude,
        couplings,
    )


def _stack_laws(laws: Sequence[ArrayLike], cost: Cost) -> Floats:
    """Return the distributions as rows, [groups, n]; raises ``InputError`` for invalid ones."""
    if not isinstance(laws, (Sequence, np.ndarray)) or isinstance(laws, str) or len(laws) == 0:
        raise InputError("laws", laws, "a list of laws, one a group", "for example [[0.2, 0.8], [0.5, 0.5]]")
    size = cost.matrix_shape[0]
    return np.stack([normalize_distribution(f"laws[{s}]", values, size) for s, values in enumerate(laws)])


# 3. The partial barycenter: output distributions with a common part of mass 1 − δ.

NEGLIGIBLE_MASS = 1e-12
"""Masses of a solution below this, divided by the number of points, are rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class CommonPartDual:
    """A lower bound on the cost of every δ: feasible potentials v [groups, m] ≥ 0, times the weights.

    If output distributions P_s have a common part ν ≤ P_s of mass 1 − δ, below ``cap`` [m] if given, then
    Σ_s w_s W_1(λ_s, P_s) ≥ ``base`` + min_ν Σ_y ν(y) Σ_s v_s(y), with base = Σ_s Σ_x λ_s(x) min_y (w_s c(x, y) −
    v_s(y)).
    """

    v: Floats
    base: float
    cap: Floats | None

    def lower_bound(self, delta: float) -> float:
        """Return the lower bound at this δ, rounded down; never negative."""
        return max(0.0, self._common_part_value(1.0 - delta)[0])

    def slope(self, delta: float) -> float:
        """Return a slope of the bound at this δ: minus the largest price of the common part's mass."""
        return -self._common_part_value(1.0 - delta)[1]

    def _common_part_value(self, mass: float) -> tuple[float, float]:
        """Return the bound for a common part of this mass, at the cheapest points first, and the last price."""
        prices = self.v.sum(axis=0)
        order = np.argsort(prices, kind="stable")
        if self.cap is None:
            used, last = np.array([mass]), order[:1]
        else:
            filled = np.cumsum(self.cap[order])
            count = min(int(np.searchsorted(filled, mass)) + 1, len(order))
            last = order[:count]
            used = np.diff(np.minimum(filled[:count], mass), prepend=0.0)
        terms = used * prices[last]
        magnitude = abs(self.base) + float(np.abs(terms).sum()) + float(np.abs(self.v).sum(axis=0).max())
        rounding = (len(self.v) + 8) * DUAL_ROUNDING * magnitude
        return self.base + math.fsum(terms.tolist()) - rounding, float(prices[last[-1]])


@dataclass(frozen=True, slots=True, eq=False)
class PartialBarycenter:
    """Output distributions with a common part ``common`` [m] of mass 1 − ``delta``, plus ``rests`` [groups, m].

    Any two of the ``laws`` therefore differ in total variation by at most ``delta``. ``cost`` = Σ_s w_s W_1(λ_s,
    laws[s]), ``couplings`` are optimal ones, and every choice with such a common part costs at least ``lower``
    (``dual``), rounding included.
    """

    delta: float
    common: Floats
    rests: Floats
    cost: float
    lower: float
    couplings: tuple[Coupling, ...]
    dual: CommonPartDual

    @property
    def laws(self) -> Floats:
        """The output distributions, [groups, m]."""
        return np.asarray(self.common + self.rests, dtype=np.float64)

    @property
    def gap(self) -> float:
        """``cost`` − ``lower``."""
        return self.cost - self.lower


def partial_barycenter(
    laws: Sequence[ArrayLike],
    cost: CostLike,
    *,
    delta: float,
    target: ArrayLike | None = None,
    weights: Sequence[float] | None = None,
) -> PartialBarycenter:
    """Return output distributions P_s with a common part of mass 1 − δ and the least Σ_s w_s W_1(λ_s, P_s).

    Any two P_s are then within δ in total variation; for two groups the converse holds as well, so that the cost is the
    least at this total variation (docs/proofs/transport.md). δ = 0 is ``barycenter``; with a δ of at least the total
    variation of two groups, both stay as they are. ``target``: a distribution [m] that the common part must be below,
    so that all P_s are within δ of it; by default the common part is free. ``weights``: equal by default.

    Raises ``InputError`` for a δ outside [0, 1] and as ``barycenter`` does; ``PrecisionError`` if the solver fails.

    >>> from tightrope import transport
    >>> found = partial_barycenter([[1, 0, 0], [0.5, 0, 0.5]], transport.line([0, 1, 2]), delta=0.25)
    >>> round(found.cost, 9), round(found.lower, 9), round(float(found.common.sum()), 9)
    (0.25, 0.25, 0.75)
    """
    checked_cost = as_cost(cost)
    groups, delta = _stack_laws(laws, checked_cost), check_probability("delta", delta)
    shares = group_weights(weights, len(groups))
    cap = None if target is None else normalize_distribution("target", target, checked_cost.matrix_shape[1])
    return _solve_partial_barycenter(groups, checked_cost, shares, delta, cap)


def _solve_partial_barycenter(
    groups: Floats, cost: Cost, shares: Floats, delta: float, cap: Floats | None
) -> PartialBarycenter:
    """Return the optimal distributions, and the dual from the multipliers."""
    count, m = len(groups), cost.matrix_shape[1]
    program = _common_part_program(groups, shares, cost, delta)
    # Only targets hold mass: a program over edges can have more nodes.
    target_caps = np.zeros(program.targets)
    target_caps[:m] = np.inf if cap is None else cap
    rest_caps = np.zeros((count, program.targets))
    rest_caps[:, :m] = np.inf
    flow_caps = np.full(program.table.shape[1] - program.targets * (count + 1), np.inf)
    upper = np.concatenate([target_caps, rest_caps.ravel(), flow_caps])
    variables, multipliers = _solve_program(program, upper)
    common = _remove_rounding(variables[:m], 1.0 - delta, cap)
    rests = variables[program.targets : program.targets * (count + 1)].reshape(count, program.targets)[:, :m]
    rests = np.stack([_remove_rounding(rest, delta, None) for rest in rests])
    couplings = tuple(coupling_of_tiny_cost(law, common + rest, cost) for law, rest in zip(groups, rests, strict=True))
    total_cost = float(sum(share * found.cost for share, found in zip(shares, couplings, strict=True)))
    prices = program.sign * multipliers[program.potential_rows][:, :m]
    dual = common_part_dual(groups, cost, shares, tight_potentials(cost, shares, np.maximum(prices, 0.0)), cap)
    return PartialBarycenter(delta, common, rests, total_cost, dual.lower_bound(delta), couplings, dual)


def _common_part_program(groups: Floats, shares: Floats, cost: Cost, delta: float) -> LinearProgram:
    """Return the program of a common part ν and rests R_s ≥ 0 with P_s = ν + R_s. Columns: ν, R, then γ or flows."""
    if isinstance(cost, DiscreteCost):
        # The metric of a star: every point is half a unit from an additional node.
        groups = np.column_stack([groups, np.zeros(len(groups))])
        points = np.arange(cost.count)
        cost = Graph(cost.count + 1, points, np.full(cost.count, cost.count), np.full(cost.count, 0.5))
    program = cost_program(groups, shares, cost)
    targets, rows = program.targets, program.table.shape[0]
    cells = np.arange(program.potential_rows.size)
    entries = np.full(len(cells), -float(program.sign))
    rests = coo_array((entries, (program.potential_rows.ravel(), cells)), shape=(rows, len(cells)))
    table = hstack([program.table[:, :targets], rests, program.table[:, targets:]])
    total = coo_array((np.ones(targets), (np.zeros(targets, int), np.arange(targets))), shape=(1, table.shape[1]))
    costs = np.concatenate([program.costs[:targets], np.zeros(len(cells)), program.costs[targets:]])
    return LinearProgram(
        costs,
        csr_array(vstack([table, total])),
        np.append(program.right_sides, 1.0 - delta),
        targets,
        program.potential_rows,
        program.sign,
    )


def _remove_rounding(masses: Floats, total: float, cap: Floats | None) -> Floats:
    """Return masses without the solver's rounding: nonnegative, at most ``cap``, and with this sum."""
    cleaned = np.where(masses > NEGLIGIBLE_MASS / len(masses), masses, 0.0)
    cleaned = cleaned if cap is None else np.minimum(cleaned, cap)
    missing = total - float(cleaned.sum())
    free = cleaned if cap is None or missing < 0 else cap - cleaned
    if not float(free.sum()) > 0:
        free = np.ones(len(masses)) if cap is None else cap
    scaled: Floats = cleaned + missing * (free / free.sum())
    return np.where(scaled > 0, scaled, 0.0)


def tight_potentials(cost: Cost, shares: Floats, v: Floats) -> Floats:
    """Return potentials with a bound at least as large, 0 ≤ v_s ≤ w_s max c: the c-transform twice, shifted to 0."""
    tight = np.zeros_like(v)
    for s, share in enumerate(shares):
        if share > 0:
            raised = share * cost.column_potentials(cost.row_potentials(v[s] / share))
            tight[s] = np.clip(raised - raised.min(), 0.0, share * cost.cost_upper_bound())
    return tight


def common_part_dual(groups: Floats, cost: Cost, shares: Floats, v: Floats, cap: Floats | None) -> CommonPartDual:
    """Return the certificate of potentials v ≥ 0 [groups, m], its base rounded down."""
    terms = np.empty_like(groups)
    for s, share in enumerate(shares):
        if share > 0:
            unscaled = v[s] / share
            u = cost.row_potentials(unscaled)
            terms[s] = share * (u - rounding_margin(u, unscaled)) * groups[s]
        else:
            terms[s] = -float(v[s].max()) * groups[s]
    base = math.fsum(terms.ravel().tolist()) - (len(groups) + 8) * DUAL_ROUNDING * float(np.abs(terms).sum())
    return CommonPartDual(v, base, cap)


# 4. The frontier: the least cost as a function of δ is convex, decreasing and piecewise linear. Tangents are lower
# bounds, and chords upper bounds: the mechanism of a chord chooses one of two others at random.

FRONTIER_TOLERANCE = 1e-7
"""The frontier is finished if its two sides differ by at most this part of its largest cost."""


@dataclass(frozen=True, slots=True, eq=False)
class DeltaFrontier:
    """Partial barycenters by increasing δ, from 0 to 1: both sides of the least cost at every δ.

    ``is_exact``: the sides agree everywhere, up to 1e−7 of the largest cost; then ``points`` include all corners.
    """

    points: tuple[PartialBarycenter, ...]
    is_exact: bool

    def cost_bounds(self, delta: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the least cost at this δ: tangents below, chords above."""
        delta = check_probability("delta", delta)
        upper = float(np.interp(delta, [point.delta for point in self.points], [point.cost for point in self.points]))
        return min(upper, max(point.dual.lower_bound(delta) for point in self.points)), upper


def delta_frontier(
    laws: Sequence[ArrayLike],
    cost: CostLike,
    *,
    target: ArrayLike | None = None,
    weights: Sequence[float] | None = None,
    max_points: int = 65,
) -> DeltaFrontier:
    """Return the least cost of ``partial_barycenter`` for all δ at once, from at most ``max_points`` solutions.

    Between two solutions, the tangents meet at the δ that is solved next, where the two sides differ most; if they
    agree there, it is a corner (Eisner and Severance 1976). Arguments and errors as in ``partial_barycenter``.

    >>> from tightrope import transport
    >>> frontier = delta_frontier([[1, 0, 0], [0.5, 0, 0.5]], transport.line([0, 1, 2]))
    >>> frontier.is_exact, [round(bound, 9) for bound in frontier.cost_bounds(0.125)]
    (True, [0.375, 0.375])
    """
    checked_cost, most = as_cost(cost), check_integer("max_points", max_points, at_least=2)
    groups = _stack_laws(laws, checked_cost)
    shares = group_weights(weights, len(groups))
    cap = None if target is None else normalize_distribution("target", target, checked_cost.matrix_shape[1])

    def solve(delta: float) -> PartialBarycenter:
        return _solve_partial_barycenter(groups, checked_cost, shares, delta, cap)

    points = [solve(0.0), solve(1.0)]
    tolerance = FRONTIER_TOLERANCE * points[0].cost
    while True:
        gaps = [_widest_gap(left, right) for left, right in pairwise(points)]
        # A gap at a solution itself cannot be reduced by solving there again.
        open_gaps = [
            (gap, index)
            for index, ((gap, delta), left, right) in enumerate(zip(gaps, points, points[1:], strict=False))
            if gap > tolerance and left.delta < delta < right.delta
        ]
        if not open_gaps or len(points) >= most:
            return DeltaFrontier(tuple(points), all(gap <= tolerance for gap, _ in gaps))
        _, index = max(open_gaps)
        points.insert(index + 1, solve(gaps[index][1]))


def _widest_gap(left: PartialBarycenter, right: PartialBarycenter) -> tuple[float, float]:
    """Return the largest distance between the chord of two points and their tangents, and its δ."""
    fall, rise = left.dual.slope(left.delta), right.dual.slope(right.delta)
    width = right.delta - left.delta
    if not rise > fall:
        return 0.0, left.delta
    step = min(max((right.lower - rise * width - left.lower) / (fall - rise), 0.0), width)
    chord = left.cost + (right.cost - left.cost) * step / width
    return chord - max(left.lower + fall * step, right.lower - rise * (width - step)), left.delta + step
