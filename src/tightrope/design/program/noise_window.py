"""How far a program has to look: a window of cells outside which nothing would cost less."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.design.program.noise_dual import Costs
from tightrope.design.program.noise_program import Program, Solution, reference, solve
from tightrope.design.program.noise_reference import MOST_PROGRAM_CELLS
from tightrope.design.program.noise_repair import excess
from tightrope.numerics.arrays import Floats

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
