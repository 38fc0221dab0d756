"""The least integer noise for a sensitivity above 1, with a bound on its optimality gap: two linear programs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.discrete.integer_tables import staircase_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.program.closed_form import MOST_STAIRS, MOST_STEEP_CELLS, STEEP, SteepNoise, approximate_cost
from tightrope.noise.program.dual import Costs, DualMultiplier, improve_dual_multipliers, proven_least_cost
from tightrope.noise.program.linear_program import (
    NoiseProgram,
    ProgramSolution,
    normalize_reference,
    solve_linear_program,
)
from tightrope.noise.program.repair import MOST_PROGRAM_CELLS, ReferenceWeights, TableRepair, repair_mixing_fraction
from tightrope.noise.program.request import PrivacyTarget, Shape
from tightrope.numerics.arrays import Floats

# 1. The window of a program: cells outside which mass cannot reduce the cost.

DELTA_MARGINS = (1e-12, 1e-11, 1e-10, 1e-9)
"""Margins by which every δ is reduced, tried until the solver's optimum meets the guarantee: the accountant's rounding
is below the first. The cost increases by about 1e−10 of itself."""
RELATIVE_DELTA_MARGIN = 2.0**-40
"""δ is also reduced by this fraction of itself."""
MAX_ROUNDING_EXCESS = 1e-6
"""A larger excess is not a rounding error: weights increase outwards somewhere, and outward rows are needed."""
MAX_WIDENINGS = 8
WINDOW_GROWTH = 2
"""If the cost never reaches the size that would bound the window, the window grows by this factor ..."""
MIN_WINDOW_GROWTH = 1.25
"""... or by this one at least ..."""
MIN_WINDOW_GAIN = 1e-4
"""... until the cost decreases by less than this fraction ..."""
MAX_FLAT_ROWS = 4_500
"""... or the program has more rows than this: a second."""
MAX_OPEN_ROWS = 9_000
"""Maximal rows of the relaxation with mass outside: seconds."""
OUTSIDE_FRACTION = 0.01
"""Fraction of the mass that such distributions are assumed to have far from 0: it scales the program."""
MAX_PROGRAM_ROWS = 30_000
"""Maximal rows of a program for all shifts: seconds. For larger ones, the bound is proven on a coarser lattice."""


@dataclass(frozen=True, slots=True)
class WindowSolution:
    """A program, its optimum, and whether mass outside its window provably cannot reduce the cost."""

    program: NoiseProgram
    solution: ProgramSolution
    is_wide_enough: bool

    def open_program(self, costs: Costs) -> NoiseProgram:
        """Return the relaxation with unconstrained mass outside: every distribution costs at least its optimum."""
        program = replace(self.program, include_outward_rows=True)
        cells = max(program.cell_count, _max_cells(program, MAX_OPEN_ROWS))
        padded = _pad_program(program, costs(cells), OUTSIDE_FRACTION / cells)
        return replace(padded, outside_cost=float(costs(cells + 1)[-1]))


def solve_wide_enough(program: NoiseProgram, costs: Costs) -> WindowSolution:
    """Return the optimum on a window outside which mass can reduce the cost only negligibly, as far as time permits.

    With multipliers w the reduced cost beyond the window is c_k − ½ Σ (e^ε − 1) w (``dual``). The window is wide enough
    if this is at least the optimum plus Σ w δ; for some costs it never is.
    """
    window = _solve_window(program)
    for _ in range(MAX_WIDENINGS):
        if window.is_wide_enough:
            break
        wider = _widen_program(window, costs)
        if wider is None:
            break
        previous, window = window, _solve_window(wider)
        if _needs_unbounded_window(window, costs) and _solution_cost(window) > _solution_cost(previous) * (
            1 - MIN_WINDOW_GAIN
        ):
            break
    return window


def _solve_window(program: NoiseProgram) -> WindowSolution:
    solution = solve_stricter(program)
    return WindowSolution(program, solution, bool(program.costs[-1] >= _boundary_cost(program, solution)))


def _solution_cost(found: WindowSolution) -> float:
    """Return the expected cost Σ p_x c_|x|."""
    doubled = 2 * float(np.dot(found.program.costs, found.solution.weights))
    return doubled - float(found.program.costs[0] * found.solution.weights[0])


def _boundary_cost(program: NoiseProgram, solution: ProgramSolution) -> float:
    """Return the cost of an error at which mass cannot reduce the total cost."""
    multiplier_sum = sum((math.expm1(m.epsilon) / 2 * m.left_value) + m.delta * m.cap for m in solution.multipliers)
    return _solution_cost(WindowSolution(program, solution, False)) + multiplier_sum


def _needs_unbounded_window(found: WindowSolution, costs: Costs) -> bool:
    """Return whether no window is wide enough: all errors in the largest one cost less than ``_boundary_cost``."""
    return bool(costs(MOST_PROGRAM_CELLS)[-1] < _boundary_cost(found.program, found.solution))


def _widen_program(window: WindowSolution, costs: Costs) -> NoiseProgram | None:
    """Return the same program on a wider window; None if it would be too large."""
    program, max_cells = window.program, MOST_PROGRAM_CELLS
    if _needs_unbounded_window(window, costs):
        program = replace(program, include_outward_rows=program.shape == "any")
        cells = min(WINDOW_GROWTH * program.cell_count, max_cells, _max_cells(program, MAX_FLAT_ROWS))
        min_fraction = OUTSIDE_FRACTION / cells
    else:
        wide_costs = costs(min(2 * program.cell_count, max_cells))
        needed_cells = int(np.searchsorted(wide_costs, _boundary_cost(program, window.solution))) + program.sensitivity
        cells, min_fraction = min(max(needed_cells, program.cell_count + 1), len(wide_costs) - 1), 0.0
    if not cells > (MIN_WINDOW_GROWTH if _needs_unbounded_window(window, costs) else 1) * window.program.cell_count:
        return None
    wider = _pad_program(program, costs(cells), min_fraction)
    return wider if wider.row_count <= MAX_PROGRAM_ROWS else None


def _max_cells(program: NoiseProgram, rows: int) -> int:
    """Return the number of cells of a program with this many rows."""
    rows_per_cell = program.row_count / (program.cell_count + program.sensitivity // 2)
    return int(rows / rows_per_cell) - program.sensitivity


def _pad_program(program: NoiseProgram, costs: Floats, min_fraction: float) -> NoiseProgram:
    """Return the program on as many cells as there are costs, each at least ``min_fraction`` of the reference."""
    reference = np.pad(program.reference, (0, len(costs) - 1 - program.cell_count))
    return replace(
        program,
        costs=costs,
        reference=normalize_reference(reference, min_fraction) if min_fraction else normalize_reference(reference),
    )


def solve_stricter(program: NoiseProgram) -> ProgramSolution:
    """Return the optimum of a slightly stricter guarantee, so that it meets the requested one despite solver errors."""
    outward_rows = program.include_outward_rows
    for margin in DELTA_MARGINS:
        points = tuple((e, d - min(d / 4, d * RELATIVE_DELTA_MARGIN + margin)) for e, d in program.points)
        solution = solve_linear_program(replace(program, points=points, include_outward_rows=outward_rows))
        excess = repair_mixing_fraction(solution.weights, program.points, program.sensitivity)
        if excess > MAX_ROUNDING_EXCESS and program.shape == "any" and not outward_rows:
            outward_rows = True
            solution = solve_linear_program(replace(program, points=points, include_outward_rows=outward_rows))
            excess = repair_mixing_fraction(solution.weights, program.points, program.sensitivity)
        if excess == 0:
            break
    return solution


# 2. The table of least cost, and multipliers that prove a lower bound.

Points = tuple[tuple[float, float], ...]

LARGEST_SEARCHED_EPSILON = 24.0
"""A larger ε is replaced by this one in the search: the noise is below 1e−9, and e^ε too large for a solver."""
TINY_DELTA = 1e-10
"""A δ below this is replaced by 0 in the search (the noise is then unbounded): it costs less than 1e−8 more."""
SMALLEST_SEARCHED_TAIL = 1e-16
"""Approximate costs are summed until the tail is this small."""
FOLLOWED_NATS = 40.0
"""A staircase is computed down to e^{−40} of its largest weight."""


@dataclass(frozen=True, slots=True, eq=False)
class LeastTable:
    """A table that meets the guarantee, and multipliers that bound the least cost among distributions of its shape."""

    table: NoiseTable
    multipliers: tuple[DualMultiplier, ...]


def least_table(target: PrivacyTarget, sensitivity: int, costs: Costs, shape: Shape) -> LeastTable:
    """Return the table with the least Σ p_x c_|x|, up to the solver's tolerance, that meets every point at every shift.

    The closed form for large ε (``steep_noise``) is always a candidate, so that the result costs at most as much even
    if the solver is inaccurate for large e^ε; if it is proven to be optimal, no program is solved.

    Raises ``InputError`` if the noise would need too many cells (with ``shape="any"``: rows).

    >>> from tightrope.documents import Budget
    >>> target = PrivacyTarget.from_budget(Budget(epsilon=1, delta=1e-6))
    >>> found = least_table(target, 3, lambda n: np.arange(n + 1.0), "unimodal")
    >>> round(found.table.mean_absolute, 6)
    2.860785
    """
    closed_form = steep_noise(target, sensitivity, costs)
    if closed_form.table is not None and closed_form.is_tight:
        return LeastTable(closed_form.table, ())
    points = searchable_budget_points(target)
    reference = ReferenceWeights.from_points(points, sensitivity)
    program = _build_program(points, sensitivity, costs, shape, reference)
    if shape == "any" and not program.row_count <= MAX_PROGRAM_ROWS:
        raise InputError("shape", shape, "'unimodal' for noise this wide", "or measure in coarser units")
    # If the only point has δ = 0, the best staircase is the optimum, exactly.
    if len(points) > 1 or points[0][1] > 0:
        staircases = []
    else:
        epsilon = points[0][0]
        _, high = best_staircase(epsilon, sensitivity, costs(sensitivity * (math.ceil(FOLLOWED_NATS / epsilon) + 1)))
        staircases = [staircase_table(epsilon, sensitivity, high)]
    tables = staircases + ([] if closed_form.table is None else [closed_form.table])
    multipliers: tuple[DualMultiplier, ...] = ()
    try:
        solution = solve_wide_enough(program, costs).solution
        tables.append(TableRepair(points, sensitivity, shape == "unimodal", reference).repair_table(solution.weights))
        multipliers = _multipliers_for_target(solution, target)
        multipliers = multipliers if shape == "unimodal" else improve_dual_multipliers(multipliers, costs)
    except PrecisionError:
        if not tables:
            raise
    if shape == "any":
        tables.append(least_table(target, sensitivity, costs, "unimodal").table)

    def searched_cost(table: NoiseTable) -> float:
        return approximate_cost(table, costs, smallest_tail=SMALLEST_SEARCHED_TAIL)

    return LeastTable(min(tables, key=searched_cost), multipliers)


def steep_noise(target: PrivacyTarget, sensitivity: int, costs: Costs) -> SteepNoise:
    """Return the closed form for large ε, with the best first plateau of an unbounded staircase, and its bound."""
    if not sensitivity * MOST_STAIRS <= MOST_STEEP_CELLS:  # too wide for a list of its costs
        return SteepNoise(None, math.inf, 0.0)
    steepest = max(epsilon for epsilon, _ in target.points)
    steps = math.ceil(FOLLOWED_NATS / steepest) + 1 if steepest >= STEEP else 0
    first = best_staircase(steepest, sensitivity, costs(sensitivity * steps))[1] if steps else 1
    return SteepNoise.from_points(target.points, target.without_cap_point.points, sensitivity, costs, first)


def best_staircase(epsilon: float, period: int, costs: Floats) -> tuple[float, int]:
    """Return (E c, r) of the best staircase: flat on |k| < r, 1 ≤ r ≤ period, falling by e^{−ε} every ``period`` cells.

    Computed in floats from c_0..c_N, without weights beyond N. It is optimal for δ = 0 (Geng and Viswanath).

    >>> cost, high = best_staircase(1.0, 3, np.arange(300.0))
    >>> round(cost, 6), high
    (2.860832, 2)
    """
    multiplicities = np.where(np.arange(len(costs)) == 0, 1.0, 2.0)
    sums = np.concatenate([[[0.0, 0.0]], np.cumsum(np.array([multiplicities * costs, multiplicities]), axis=1).T])
    steps = len(costs) // period
    highs = np.arange(1, period + 1)
    edges = highs[:, None] + period * np.arange(steps)
    edges = np.concatenate([np.zeros((period, 1), dtype=np.int64), np.minimum(edges, len(costs))], axis=1)
    cost_and_mass = np.einsum("j,rjc->rc", np.exp(-epsilon * np.arange(steps)), np.diff(sums[edges], axis=1))
    means = cost_and_mass[:, 0] / cost_and_mass[:, 1]
    return float(means.min()), int(np.argmin(means)) + 1


def proving_multipliers(target: PrivacyTarget, sensitivity: int, costs: Costs) -> tuple[DualMultiplier, ...]:
    """Return multipliers that prove a bound on every noise of any shape, from all shifts or from a coarser lattice."""
    target = target.without_cap_point
    points = searchable_budget_points(target)
    # ``factor`` cells are merged into one: 1 if the program is small enough, otherwise the factor with the least loss.
    # A lattice of c cells per shift loses about 0.1/c², and the part of the sensitivity that its cells do not cover.
    levels = len(ReferenceWeights.from_points(points, 1).weights)

    def estimated_rows(coarse_sensitivity: int) -> int:
        return len(points) * coarse_sensitivity * coarse_sensitivity * (levels + 1)

    def precision_loss(factor: int) -> float:
        coarse_sensitivity = sensitivity // factor
        return 1 - coarse_sensitivity * factor / sensitivity + 0.1 / coarse_sensitivity**2

    possible_factors = [f for f in range(1, sensitivity + 1) if estimated_rows(sensitivity // f) <= MAX_PROGRAM_ROWS]
    factor = 1 if possible_factors[0] == 1 else min(possible_factors, key=precision_loss)
    coarse_sensitivity = sensitivity // factor

    def coarse_costs(n: int) -> Floats:
        return costs(n * factor)[::factor]

    program = _build_program(
        points, coarse_sensitivity, coarse_costs, "any", ReferenceWeights.from_points(points, coarse_sensitivity)
    )
    window = solve_wide_enough(program, coarse_costs)
    multipliers = improve_dual_multipliers(_multipliers_for_target(window.solution, target), coarse_costs)
    if not window.is_wide_enough:
        # Take the larger bound of these multipliers and those of the relaxation with mass outside.
        open_multipliers = _multipliers_for_target(solve_linear_program(window.open_program(coarse_costs)), target)
        multipliers = max(
            multipliers, open_multipliers, key=lambda multipliers: proven_least_cost(multipliers, coarse_costs, "any")
        )
    return multipliers if factor == 1 else tuple(m.stretch_cells(factor) for m in multipliers)


def searchable_budget_points(target: PrivacyTarget) -> Points:
    """Return the points for the search: ε at most ``LARGEST_SEARCHED_EPSILON``, and 0 for a tiny δ."""
    return tuple((min(e, LARGEST_SEARCHED_EPSILON), 0.0 if d < TINY_DELTA else d) for e, d in target.points)


def _build_program(
    points: Points, sensitivity: int, costs: Costs, shape: Shape, reference: ReferenceWeights
) -> NoiseProgram:
    is_endless = any(delta == 0 for _, delta in points)
    weights = normalize_reference(reference.relative_weights)
    return NoiseProgram(points, sensitivity, costs(len(weights) - 1), weights, shape, is_endless)


def _multipliers_for_target(solution: ProgramSolution, target: PrivacyTarget) -> tuple[DualMultiplier, ...]:
    """Return the multipliers with the stated ε and δ: if these are larger than in the search, the bound is lower."""
    point_by_epsilon = {min(e, LARGEST_SEARCHED_EPSILON): (e, d) for e, d in target.points}
    return tuple(m.with_point(*point_by_epsilon[m.epsilon]) for m in solution.multipliers if math.isfinite(m.cap))
