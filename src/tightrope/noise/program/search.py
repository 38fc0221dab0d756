"""The least integer noise for a sensitivity above 1, and how much less any other could cost: two linear programs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.discrete.integer_tables import staircase_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.program.dual import Costs, Multiplier, lifted, proven_least
from tightrope.noise.program.linear_program import Program, Solution, reference, solve
from tightrope.noise.program.repair import MOST_PROGRAM_CELLS, Reference, Repair, excess
from tightrope.noise.program.request import Promise, Shape
from tightrope.noise.program.steep_noise import MOST_STAIRS, MOST_STEEP_CELLS, STEEP, Steep
from tightrope.numerics.arrays import Floats

# How far a program has to look: a window of cells outside which nothing would cost less.

MARGINS = (1e-12, 1e-11, 1e-10, 1e-9)
"""By how much every δ is made smaller, until the solver's optimum keeps the promise: the accountant's own rounding is
below the first. A δ costs some hundred times the least cost at most, so this is some 1e−10 of it."""
RELATIVE = 2.0**-40
OUTWARD = 1e-6
"""An excess above this is no rounding: weights rise outwards somewhere, and rows are missing."""
WIDENINGS = 8
WIDER = 2
"""Where errors of any size cost less than what is paid for privacy, windows grow by this factor ..."""
LEAST_WIDER = 1.25
"""... or by this one at least ..."""
TOO_LITTLE_GAINED = 1e-4
"""... until one gains less than this share of the cost ..."""
MOST_FLAT_ROWS = 4_500
"""... or has more rows than this: a second."""
MOST_OPEN_ROWS = 9_000
"""Rows of the program that leaves open what is outside: seconds."""
SPREAD = 0.01
"""Share of the mass that such laws are taken to have far out: it scales the program."""
MOST_PROGRAM_ROWS = 30_000
"""Rows of a program that is solved for all shifts: seconds. Larger ones are proven on a coarser lattice."""


@dataclass(frozen=True, slots=True)
class Window:
    """A program, its optimum, and whether it is proven that no mass outside its window would cost less."""

    program: Program
    solution: Solution
    all_inside: bool

    def opened(self, costs: Costs) -> Program:
        """The program that leaves open what is outside: no law costs less than its optimum."""
        program = replace(self.program, both=True)
        cells = max(program.cells, _most_cells(program, MOST_OPEN_ROWS))
        wide = _padded(program, costs(cells), SPREAD / cells)
        return replace(wide, outside=float(costs(cells + 1)[-1]))


def wide_enough(program: Program, costs: Costs) -> Window:
    """The optimum on a window outside which nothing can cost less, or hardly anything, or as far as there is time for.

    With multipliers w beyond the window the promise leaves c_k − ½ Σ (e^ε − 1) w there (``noise_dual``); a cost that
    never reaches what the optimum pays, w δ included, lets mass go as far as it likes.
    """
    found = _looked(program)
    for _ in range(WIDENINGS):
        if found.all_inside:
            break
        wide = _wider(found, costs)
        if wide is None:
            break
        before, found = found, _looked(wide)
        if _never(found, costs) and _cost(found) > _cost(before) * (1 - TOO_LITTLE_GAINED):
            break
    return found


def _looked(program: Program) -> Window:
    solution = nearly_kept(program)
    return Window(program, solution, bool(program.costs[-1] >= _needed(program, solution)))


def _cost(found: Window) -> float:
    """Σ p_x c_|x|."""
    doubled = 2 * float(np.dot(found.program.costs, found.solution.weights))
    return doubled - float(found.program.costs[0] * found.solution.weights[0])


def _needed(program: Program, solution: Solution) -> float:
    """Mass where errors cost as much gains nothing."""
    paid = sum((math.expm1(m.epsilon) / 2 * m.left) + m.delta * m.cap for m in solution.multipliers)
    return _cost(Window(program, solution, False)) + paid


def _never(found: Window, costs: Costs) -> bool:
    """Whether no error that is looked at costs so much."""
    return bool(costs(MOST_PROGRAM_CELLS)[-1] < _needed(found.program, found.solution))


def _wider(found: Window, costs: Costs) -> Program | None:
    """The same program on a wider window; None where it would be too large."""
    program, most = found.program, MOST_PROGRAM_CELLS
    if _never(found, costs):
        program = replace(program, both=program.shape == "any")
        cells = min(WIDER * program.cells, most, _most_cells(program, MOST_FLAT_ROWS))
        least = SPREAD / cells
    else:
        far = costs(min(2 * program.cells, most))
        enough = int(np.searchsorted(far, _needed(program, found.solution))) + program.sensitivity
        cells, least = min(max(enough, program.cells + 1), len(far) - 1), 0.0
    if not cells > (LEAST_WIDER if _never(found, costs) else 1) * found.program.cells:
        return None
    wide = _padded(program, costs(cells), least)
    return wide if wide.size <= MOST_PROGRAM_ROWS else None


def _most_cells(program: Program, rows: int) -> int:
    """Cells of a program with so many rows."""
    each = program.size / (program.cells + program.sensitivity // 2)
    return int(rows / each) - program.sensitivity


def _padded(program: Program, costs: Floats, least: float) -> Program:
    scale = np.pad(program.reference, (0, len(costs) - 1 - program.cells))
    return replace(program, costs=costs, reference=reference(scale, least) if least else reference(scale))


def nearly_kept(program: Program) -> Solution:
    """The optimum of a promise a little stricter, so that what the solver overshoots is within the one asked for."""
    both = program.both
    for margin in MARGINS:
        points = tuple((e, d - min(d / 4, d * RELATIVE + margin)) for e, d in program.points)
        solution = solve(replace(program, points=points, both=both))
        over = excess(solution.weights, program.points, program.sensitivity)
        if over > OUTWARD and program.shape == "any" and not both:
            both = True
            solution = solve(replace(program, points=points, both=both))
            over = excess(solution.weights, program.points, program.sensitivity)
        if over == 0:
            break
    return solution


Points = tuple[tuple[float, float], ...]

LARGEST_SEARCHED = 24.0
"""A larger ε is searched as this one: the error is below 1e−9 there, and e^ε too large a coefficient for a solver."""
TINY_DELTA = 1e-10
"""A δ below this is searched as 0 (the law is endless then): it costs less than 1e−8 more."""
FAINTEST = 1e-16
FOLLOWED_NATS = 40.0
"""Nats that a staircase is followed down."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The table that keeps the promise, and multipliers that prove how good it is among laws of its shape."""

    table: NoiseTable
    multipliers: tuple[Multiplier, ...]


def least_table(promise: Promise, sensitivity: int, costs: Costs, shape: Shape) -> Found:
    """The table with the least Σ p_x c_|x|, up to the solver's tolerance; it keeps every point at every shift.

    Of a large ε the closed form (``steep_noise``), without a program where that is proven to be as good; it is always
    tried, so that what a solver does where e^ε is large never costs more than it.

    Raises ``InputError`` where the noise would need too many cells (with ``shape="any"``: rows).

    >>> from tightrope.documents import Budget
    >>> found = least_table(Promise.of(Budget(epsilon=1, delta=1e-6)), 3, lambda n: np.arange(n + 1.0), "unimodal")
    >>> round(found.table.mean_absolute, 6)
    2.860785
    """
    steep = steep_noise(promise, sensitivity, costs)
    if steep.table is not None and steep.tight:
        return Found(steep.table, ())
    points = searched(promise)
    law = Reference.of(points, sensitivity)
    program = _program(points, sensitivity, costs, shape, law)
    if shape == "any" and not program.size <= MOST_PROGRAM_ROWS:
        raise InputError("shape", shape, "'unimodal' for noise this wide", "or measure in coarser units")
    # The best staircase, to the last bit, where the only point has δ = 0; it is the optimum there.
    if len(points) > 1 or points[0][1] > 0:
        known = []
    else:
        epsilon = points[0][0]
        _, high = best_staircase(epsilon, sensitivity, costs(sensitivity * (math.ceil(FOLLOWED_NATS / epsilon) + 1)))
        known = [staircase_table(epsilon, sensitivity, high)]
    tables = known + ([] if steep.table is None else [steep.table])
    multipliers: tuple[Multiplier, ...] = ()
    try:
        solution = wide_enough(program, costs).solution
        tables.append(Repair(points, sensitivity, shape == "unimodal", law).table(solution.weights))
        multipliers = _promised(solution, promise)
        multipliers = multipliers if shape == "unimodal" else lifted(multipliers, costs)
    except PrecisionError:
        if not tables:
            raise
    if shape == "any":
        tables.append(least_table(promise, sensitivity, costs, "unimodal").table)
    return Found(min(tables, key=lambda found: _float_expense(found, costs)), multipliers)


def steep_noise(promise: Promise, sensitivity: int, costs: Costs) -> Steep:
    """The closed form of a large ε, with the best first plateau of an endless staircase, and its bound."""
    if not sensitivity * MOST_STAIRS <= MOST_STEEP_CELLS:  # too wide for a list of its costs
        return Steep(None, math.inf, 0.0)
    steepest = max(epsilon for epsilon, _ in promise.points)
    steps = math.ceil(FOLLOWED_NATS / steepest) + 1 if steepest >= STEEP else 0
    first = best_staircase(steepest, sensitivity, costs(sensitivity * steps))[1] if steps else 1
    return Steep.of(promise.points, promise.uncapped.points, sensitivity, costs, first)


def _float_expense(table: NoiseTable, costs: Costs) -> float:
    """φ(0) + 2 Σ (φ(k) − φ(k−1)) P(X ≥ k) up to where the tail is ``FAINTEST``: to choose between tables."""
    last = 1
    while table.survival(last) > FAINTEST:
        last *= 2
    values = costs(last)
    tails = np.array([float(table.survival(k)) for k in range(last)])
    return float(values[0] + 2 * np.dot(np.diff(values), tails))


def best_staircase(epsilon: float, period: int, costs: Floats) -> tuple[float, int]:
    """(E c, r) of the best law that is flat on |k| < r, 1 ≤ r ≤ period, and falls by e^{−ε} every ``period`` cells.

    In floats, from c_0..c_N; weights beyond N are left out. No noise with δ = 0 costs less (Geng and Viswanath).

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


def proving_multipliers(promise: Promise, sensitivity: int, costs: Costs) -> tuple[Multiplier, ...]:
    """Numbers that prove a bound on every noise, of any shape: from all shifts, or from a coarser lattice of them."""
    promise = promise.uncapped
    points = searched(promise)
    # How many cells make one of the lattice: 1 where the program is small enough, else what loses least.
    # A lattice of c cells a shift loses about 0.1/c², and the part of the sensitivity that its cells do not make up.
    levels = len(Reference.of(points, 1).weights)

    def rows(factor_coarse: int) -> int:
        return len(points) * factor_coarse * factor_coarse * (levels + 1)

    def loss(factor: int) -> float:
        factor_coarse = sensitivity // factor
        return 1 - factor_coarse * factor / sensitivity + 0.1 / factor_coarse**2

    possible = [f for f in range(1, sensitivity + 1) if rows(sensitivity // f) <= MOST_PROGRAM_ROWS]
    factor = 1 if possible[0] == 1 else min(possible, key=loss)
    coarse = sensitivity // factor

    def coarser(n: int) -> Floats:
        return costs(n * factor)[::factor]

    program = _program(points, coarse, coarser, "any", Reference.of(points, coarse))
    found = _proving(wide_enough(program, coarser), promise, coarser)
    return found if factor == 1 else tuple(m.stretched(factor) for m in found)


def _proving(searched: Window, promise: Promise, costs: Costs) -> tuple[Multiplier, ...]:
    """The multipliers of the optimum, or those of the program that leaves open what is outside: what proves more."""
    closed = lifted(_promised(searched.solution, promise), costs)
    if searched.all_inside:
        return closed
    opened = _promised(solve(searched.opened(costs)), promise)
    return max(closed, opened, key=lambda found: proven_least(found, costs, "any"))


def searched(promise: Promise) -> Points:
    """The points as they are searched: ε at most ``LARGEST_SEARCHED``, a tiny δ as 0."""
    return tuple((min(e, LARGEST_SEARCHED), 0.0 if d < TINY_DELTA else d) for e, d in promise.points)


def _program(points: Points, sensitivity: int, costs: Costs, shape: Shape, law: Reference) -> Program:
    endless = any(delta == 0 for _, delta in points)
    scale = reference(law.floats)
    return Program(points, sensitivity, costs(len(scale) - 1), scale, shape, endless)


def _promised(solution: Solution, promise: Promise) -> tuple[Multiplier, ...]:
    """The multipliers with the δ and ε that were promised: larger ones than searched weaken the bound honestly."""
    deltas = {min(e, LARGEST_SEARCHED): (e, d) for e, d in promise.points}
    return tuple(m.for_point(*deltas[m.epsilon]) for m in solution.multipliers if math.isfinite(m.cap))
