"""The least integer noise for a sensitivity above 1, with a bound on its optimality gap: two linear programs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.discrete.integer_tables import staircase_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.program.dual import Costs, DualMultiplier, improve_multipliers, proven_least
from tightrope.noise.program.linear_program import NoiseProgram, ProgramSolution, normalize_reference, solve_program
from tightrope.noise.program.repair import MOST_PROGRAM_CELLS, ReferenceWeights, TableRepair, repair_share
from tightrope.noise.program.request import PrivacyTarget, Shape
from tightrope.noise.program.steep_noise import MOST_STAIRS, MOST_STEEP_CELLS, STEEP, SteepNoise
from tightrope.numerics.arrays import Floats

# The window of a program: cells outside which mass cannot reduce the cost.

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9)
"""Margins by which every δ is reduced, until the solver's optimum meets the guarantee: the accountant's own rounding is
below the first. A δ costs some hundred times the least cost at most, so this is some 1e−10 of it."""
RELATIVE = 2.0**-40
OUTWARD = 1e-6
"""A larger excess is not rounding: weights rise outwards somewhere, and rows are missing."""
WIDENINGS = 8
WIDER = 2
"""If errors of any size cost less than privacy does, windows grow by this factor ..."""
LEAST_WIDER = 1.25
"""... or by this one at least ..."""
TOO_LITTLE_GAINED = 1e-4
"""... until one gains less than this fraction of the cost ..."""
MOST_FLAT_ROWS = 4_500
"""... or has more rows than this: a second."""
MOST_OPEN_ROWS = 9_000
"""Maximal rows of the relaxation with mass outside: seconds."""
SPREAD = 0.01
"""Fraction of the mass that such distributions are assumed to have far out: it scales the program."""
MOST_PROGRAM_ROWS = 30_000
"""Rows of a program that is solved for all shifts: seconds. Larger ones are proven on a coarser lattice."""


@dataclass(frozen=True, slots=True)
class WindowSolution:
    """A program, its optimum, and whether mass outside its window provably cannot reduce the cost."""

    program: NoiseProgram
    solution: ProgramSolution
    is_wide_enough: bool

    def open_program(self, costs: Costs) -> NoiseProgram:
        """The relaxation with unconstrained mass outside: every distribution costs at least its optimum."""
        program = replace(self.program, include_outward_rows=True)
        cells = max(program.cell_count, _max_cells(program, MOST_OPEN_ROWS))
        wide = _pad_program(program, costs(cells), SPREAD / cells)
        return replace(wide, outside_cost=float(costs(cells + 1)[-1]))


def solve_wide_enough(program: NoiseProgram, costs: Costs) -> WindowSolution:
    """Return the optimum on a window outside which mass cannot, or hardly, reduce the cost, as far as time permits.

    With multipliers w beyond the window the guarantee leaves c_k − ½ Σ (e^ε − 1) w there (``dual``); a cost that
    stays below the optimum's, w δ included, allows mass at any distance.
    """
    found = _solve_window(program)
    for _ in range(WIDENINGS):
        if found.is_wide_enough:
            break
        wide = _widen_program(found, costs)
        if wide is None:
            break
        before, found = found, _solve_window(wide)
        if _costs_stay_below(found, costs) and _solution_cost(found) > _solution_cost(before) * (1 - TOO_LITTLE_GAINED):
            break
    return found


def _solve_window(program: NoiseProgram) -> WindowSolution:
    solution = solve_stricter(program)
    return WindowSolution(program, solution, bool(program.costs[-1] >= _boundary_cost(program, solution)))


def _solution_cost(found: WindowSolution) -> float:
    """Σ p_x c_|x|."""
    doubled = 2 * float(np.dot(found.program.costs, found.solution.weights))
    return doubled - float(found.program.costs[0] * found.solution.weights[0])


def _boundary_cost(program: NoiseProgram, solution: ProgramSolution) -> float:
    """Return the cost of an error from which mass cannot reduce the total cost."""
    paid = sum((math.expm1(m.epsilon) / 2 * m.left_value) + m.delta * m.cap for m in solution.multipliers)
    return _solution_cost(WindowSolution(program, solution, False)) + paid


def _costs_stay_below(found: WindowSolution, costs: Costs) -> bool:
    """Return whether all errors within the largest window cost less than required to bound the window."""
    return bool(costs(MOST_PROGRAM_CELLS)[-1] < _boundary_cost(found.program, found.solution))


def _widen_program(found: WindowSolution, costs: Costs) -> NoiseProgram | None:
    """Return the same program on a wider window; None if it would be too large."""
    program, most = found.program, MOST_PROGRAM_CELLS
    if _costs_stay_below(found, costs):
        program = replace(program, include_outward_rows=program.shape == "any")
        cells = min(WIDER * program.cell_count, most, _max_cells(program, MOST_FLAT_ROWS))
        least = SPREAD / cells
    else:
        far = costs(min(2 * program.cell_count, most))
        enough = int(np.searchsorted(far, _boundary_cost(program, found.solution))) + program.sensitivity
        cells, least = min(max(enough, program.cell_count + 1), len(far) - 1), 0.0
    if not cells > (LEAST_WIDER if _costs_stay_below(found, costs) else 1) * found.program.cell_count:
        return None
    wide = _pad_program(program, costs(cells), least)
    return wide if wide.row_count <= MOST_PROGRAM_ROWS else None


def _max_cells(program: NoiseProgram, rows: int) -> int:
    """Return the number of cells of a program with this many rows."""
    each = program.row_count / (program.cell_count + program.sensitivity // 2)
    return int(rows / each) - program.sensitivity


def _pad_program(program: NoiseProgram, costs: Floats, least: float) -> NoiseProgram:
    scale = np.pad(program.reference, (0, len(costs) - 1 - program.cell_count))
    return replace(
        program, costs=costs, reference=normalize_reference(scale, least) if least else normalize_reference(scale)
    )


def solve_stricter(program: NoiseProgram) -> ProgramSolution:
    """The optimum of a slightly stricter guarantee, so that solver errors stay within the requested one."""
    both = program.include_outward_rows
    for margin in MARGINS:
        points = tuple((e, d - min(d / 4, d * RELATIVE + margin)) for e, d in program.points)
        solution = solve_program(replace(program, points=points, include_outward_rows=both))
        over = repair_share(solution.weights, program.points, program.sensitivity)
        if over > OUTWARD and program.shape == "any" and not both:
            both = True
            solution = solve_program(replace(program, points=points, include_outward_rows=both))
            over = repair_share(solution.weights, program.points, program.sensitivity)
        if over == 0:
            break
    return solution


Points = tuple[tuple[float, float], ...]

LARGEST_SEARCHED = 24.0
"""A larger ε is searched as this one: the error is below 1e−9 there, and e^ε too large a coefficient for a solver."""
TINY_DELTA = 1e-10
"""A δ below this is searched as 0 (the distribution is unbounded then): it costs less than 1e−8 more."""
FAINTEST = 1e-16
FOLLOWED_NATS = 40.0
"""Nats down to which a staircase is computed."""


@dataclass(frozen=True, slots=True, eq=False)
class LeastTable:
    """A table that meets the guarantee, and multipliers that bound the least cost among distributions of its shape."""

    table: NoiseTable
    multipliers: tuple[DualMultiplier, ...]


def least_table(promise: PrivacyTarget, sensitivity: int, costs: Costs, shape: Shape) -> LeastTable:
    """The table with the least Σ p_x c_|x|, up to the solver's tolerance; it meets every point at every shift.

    For a large ε the closed form (``steep_noise``), without a program if it is proven to be as good; it is always
    tried, so that the result costs at most as much even if the solver is inaccurate for large e^ε.

    Raises ``InputError`` where the noise would need too many cells (with ``shape="any"``: rows).

    >>> from tightrope.documents import Budget
    >>> target = PrivacyTarget.from_budget(Budget(epsilon=1, delta=1e-6))
    >>> found = least_table(target, 3, lambda n: np.arange(n + 1.0), "unimodal")
    >>> round(found.table.mean_absolute, 6)
    2.860785
    """
    steep = steep_noise(promise, sensitivity, costs)
    if steep.table is not None and steep.is_tight:
        return LeastTable(steep.table, ())
    points = searchable_points(promise)
    law = ReferenceWeights.from_points(points, sensitivity)
    program = _build_program(points, sensitivity, costs, shape, law)
    if shape == "any" and not program.row_count <= MOST_PROGRAM_ROWS:
        raise InputError("shape", shape, "'unimodal' for noise this wide", "or measure in coarser units")
    # The best staircase, to the last bit, where the only point has δ = 0; it is the optimum there.
    if len(points) > 1 or points[0][1] > 0:
        known = []
    else:
        epsilon = points[0][0]
        _, high = best_staircase(epsilon, sensitivity, costs(sensitivity * (math.ceil(FOLLOWED_NATS / epsilon) + 1)))
        known = [staircase_table(epsilon, sensitivity, high)]
    tables = known + ([] if steep.table is None else [steep.table])
    multipliers: tuple[DualMultiplier, ...] = ()
    try:
        solution = solve_wide_enough(program, costs).solution
        tables.append(TableRepair(points, sensitivity, shape == "unimodal", law).repair_table(solution.weights))
        multipliers = _multipliers_for_target(solution, promise)
        multipliers = multipliers if shape == "unimodal" else improve_multipliers(multipliers, costs)
    except PrecisionError:
        if not tables:
            raise
    if shape == "any":
        tables.append(least_table(promise, sensitivity, costs, "unimodal").table)
    return LeastTable(min(tables, key=lambda found: _approximate_cost(found, costs)), multipliers)


def steep_noise(promise: PrivacyTarget, sensitivity: int, costs: Costs) -> SteepNoise:
    """The closed form of a large ε, with the best first plateau of an unbounded staircase, and its bound."""
    if not sensitivity * MOST_STAIRS <= MOST_STEEP_CELLS:  # too wide for a list of its costs
        return SteepNoise(None, math.inf, 0.0)
    steepest = max(epsilon for epsilon, _ in promise.points)
    steps = math.ceil(FOLLOWED_NATS / steepest) + 1 if steepest >= STEEP else 0
    first = best_staircase(steepest, sensitivity, costs(sensitivity * steps))[1] if steps else 1
    return SteepNoise.from_points(promise.points, promise.without_cap.points, sensitivity, costs, first)


def _approximate_cost(table: NoiseTable, costs: Costs) -> float:
    """φ(0) + 2 Σ (φ(k) − φ(k−1)) P(X ≥ k) up to where the tail is ``FAINTEST``: to choose between tables."""
    last = 1
    while table.survival_probability(last) > FAINTEST:
        last *= 2
    values = costs(last)
    tails = np.array([float(table.survival_probability(k)) for k in range(last)])
    return float(values[0] + 2 * np.dot(np.diff(values), tails))


def best_staircase(epsilon: float, period: int, costs: Floats) -> tuple[float, int]:
    """Return (E c, r) of the best staircase: flat on |k| < r, 1 ≤ r ≤ period, falling by e^{−ε} every ``period`` cells.

    In floats, from c_0..c_N; weights beyond N are left out. It is optimal for δ = 0 (Geng and Viswanath).

    >>> cost, high = best_staircase(1.0, 3, np.arange(300.0))
    >>> round(cost, 6), high
    (2.860832, 2)
    """
    both = np.where(np.arange(len(costs)) == 0, 1.0, 2.0)
    sums = np.concatenate([[[0.0, 0.0]], np.cumsum(np.array([both * costs, both]), axis=1).T])
    steps = len(costs) // period
    highs = np.arange(1, period + 1)
    edges = highs[:, None] + period * np.arange(steps)
    edges = np.concatenate([np.zeros((period, 1), dtype=np.int64), np.minimum(edges, len(costs))], axis=1)
    total = np.einsum("j,rjc->rc", np.exp(-epsilon * np.arange(steps)), np.diff(sums[edges], axis=1))
    means = total[:, 0] / total[:, 1]
    return float(means.min()), int(np.argmin(means)) + 1


def proving_multipliers(promise: PrivacyTarget, sensitivity: int, costs: Costs) -> tuple[DualMultiplier, ...]:
    """Numbers that prove a bound on every noise, of any shape: from all shifts, or from a coarser lattice of them."""
    promise = promise.without_cap
    points = searchable_points(promise)
    # How many cells make one of the lattice: 1 where the program is small enough, else what loses least.
    # A lattice of c cells a shift loses about 0.1/c², and the part of the sensitivity that its cells do not make up.
    levels = len(ReferenceWeights.from_points(points, 1).weights)

    def estimated_rows(factor_coarse: int) -> int:
        return len(points) * factor_coarse * factor_coarse * (levels + 1)

    def precision_loss(factor: int) -> float:
        factor_coarse = sensitivity // factor
        return 1 - factor_coarse * factor / sensitivity + 0.1 / factor_coarse**2

    possible = [f for f in range(1, sensitivity + 1) if estimated_rows(sensitivity // f) <= MOST_PROGRAM_ROWS]
    factor = 1 if possible[0] == 1 else min(possible, key=precision_loss)
    coarse = sensitivity // factor

    def coarse_costs(n: int) -> Floats:
        return costs(n * factor)[::factor]

    program = _build_program(points, coarse, coarse_costs, "any", ReferenceWeights.from_points(points, coarse))
    window = solve_wide_enough(program, coarse_costs)
    found = improve_multipliers(_multipliers_for_target(window.solution, promise), coarse_costs)
    if not window.is_wide_enough:
        # The multipliers of the optimum, or of the relaxation with mass outside: the larger bound.
        opened = _multipliers_for_target(solve_program(window.open_program(coarse_costs)), promise)
        found = max(found, opened, key=lambda multipliers: proven_least(multipliers, coarse_costs, "any"))
    return found if factor == 1 else tuple(m.stretch_cells(factor) for m in found)


def searchable_points(promise: PrivacyTarget) -> Points:
    """Return the points for the search: ε at most ``LARGEST_SEARCHED``, a tiny δ replaced by 0."""
    return tuple((min(e, LARGEST_SEARCHED), 0.0 if d < TINY_DELTA else d) for e, d in promise.points)


def _build_program(points: Points, sensitivity: int, costs: Costs, shape: Shape, law: ReferenceWeights) -> NoiseProgram:
    endless = any(delta == 0 for _, delta in points)
    scale = normalize_reference(law.relative_weights)
    return NoiseProgram(points, sensitivity, costs(len(scale) - 1), scale, shape, endless)


def _multipliers_for_target(solution: ProgramSolution, promise: PrivacyTarget) -> tuple[DualMultiplier, ...]:
    """Return the multipliers with the stated δ and ε: if larger than searched, they weaken the bound accordingly."""
    deltas = {min(e, LARGEST_SEARCHED): (e, d) for e, d in promise.points}
    return tuple(m.with_point(*deltas[m.epsilon]) for m in solution.multipliers if math.isfinite(m.cap))
