"""The linear program of the least integer noise for a sensitivity above 1 (theory §4.2).

Variables: p_x for x = 0..N, standing for ±x, and slacks. For every point (ε, δ) and shift d, row k is
p_k − e^ε p_{k−d} ≤ s_k, and Σ s_k ≤ δ. Rows with k < d/2 suffice if weights do not rise outwards by a factor of e^ε;
``include_outward_rows`` adds the others. If some δ = 0, the noise is unbounded: rows that involve cells beyond N are
omitted, and the repair extends the noise. ``shape="unimodal"`` adds p_x ≥ p_{x+1}; then shift Δ suffices.

With ``outside_cost`` the program is a relaxation: mass beyond N has that cost and is not constrained, and rows that
involve it are omitted. Its optimum is a lower bound on every distribution's cost, proven by its multipliers.

Weights fall by many orders of magnitude, so p_x = a_x q_x with a reference distribution a that meets the same points,
and row k is divided by a_k: the solver's absolute tolerances become relative ones. Its results are checked: the primal
is repaired and certified by the accountant (``repair``), the dual by ``dual``.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.noise.program.dual import DualMultiplier
from tightrope.noise.program.request import Shape
from tightrope.numerics.arrays import Floats

MIN_REFERENCE = 2e-9
"""Smallest probability of the reference distribution: the solver drops coefficients below 1e−9."""
MIN_SLACK_COEFFICIENT = 1e-5
"""Smallest coefficient of a slack in its row, for the same reason."""
SOLVER_TOLERANCE = 1e-10
COST_SCALE = 1e5
"""Costs are multiplied by this: the solver's dual tolerance is absolute, and the multipliers of far cells are small."""
CLOSED_DELTA = 1e-6
"""Above this δ, the weight of an unbounded distribution beyond N is negligible: rows count it as infinite loss."""
INTERIOR_POINT_ROWS = 2500
"""From this many rows the interior-point method is faster than dual simplex, 20 times for flat distributions."""
POLL_SECONDS = 0.05
"""Interval at which Python checks whether the solver is done: the delay of Ctrl-C."""

Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class NoiseProgram:
    """The program: minimize Σ c_x p_x over |x| ≤ N under the points, for shifts up to ``sensitivity``."""

    points: tuple[tuple[float, float], ...]
    sensitivity: int
    costs: Floats
    reference: Floats
    """a_x > 0, a distribution of about the right decay, normalized over |x| ≤ N."""
    shape: Shape
    is_endless: bool
    include_outward_rows: bool = False
    outside_cost: float | None = None
    """Lower bound on the cost of mass beyond N, if such mass is allowed; otherwise None."""

    @property
    def cell_count(self) -> int:
        """The largest |x|, N."""
        return len(self.costs) - 1

    @property
    def binding_shifts(self) -> range:
        """All shifts, or the one that binds for unimodal distributions."""
        return range(self.sensitivity if self.shape == "unimodal" else 1, self.sensitivity + 1)

    @property
    def row_count(self) -> int:
        """Approximate number of rows."""
        return (
            len(self.points)
            * len(self.binding_shifts)
            * (self.cell_count + self.sensitivity // 2)
            * (2 if self.include_outward_rows else 1)
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProgramSolution:
    """Float weights p_0..p_N that nearly meet the points, and the multipliers of the rows."""

    weights: Floats
    multipliers: tuple[DualMultiplier, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _ConstraintBlock:
    """The rows of one point and shift: ``row_positions`` has the k of each row, ascending, ``row_scale`` has 1/a_k."""

    epsilon: float
    delta: float
    shift: int
    row_positions: Integers
    row_scale: Floats
    is_open_ended: bool
    """True if rows that involve cells beyond N are omitted."""

    @classmethod
    def from_point(cls, program: NoiseProgram, epsilon: float, delta: float, shift: int) -> Self:
        """Return the rows of the program for (ε, δ) at this shift."""
        open_ended = program.outside_cost is not None or (program.is_endless and delta < CLOSED_DELTA)
        first = shift - program.cell_count if open_ended else -program.cell_count
        last = program.cell_count if program.include_outward_rows else min((shift - 1) // 2, program.cell_count)
        k = np.arange(first, last + 1)
        k = k[2 * k != shift]  # there both weights are the same
        return cls(epsilon, delta, shift, k, 1 / program.reference[np.abs(k)], open_ended)


def solve_linear_program(program: NoiseProgram) -> ProgramSolution:
    """Return the optimum in floats; Ctrl-C interrupts it. Raises ``PrecisionError`` if the solver fails.

    >>> ends = np.exp(-np.arange(60.0) / 3)
    >>> program = NoiseProgram(((1.0, 1e-6),), 3, np.arange(60.0), normalize_reference(ends), "any", False)
    >>> found = solve_linear_program(program)
    >>> round(2 * float(np.dot(np.arange(60), found.weights)), 6)
    2.860785
    """
    blocks = [
        _ConstraintBlock.from_point(program, *point, shift)
        for point in program.points
        for shift in program.binding_shifts
    ]
    point_weights = np.where(np.arange(program.cell_count + 1) == 0, 1.0, 2.0) * program.reference
    objective = point_weights * program.costs
    if program.outside_cost is not None:
        point_weights, objective = np.append(point_weights, 1.0), np.append(objective, program.outside_cost)
    matrix, scale = _ConstraintMatrix.from_blocks(program, blocks), float(objective.sum()) or 1.0
    # The cost scales and methods that are tried: each solver sometimes fails, but rarely on the same program.
    methods = ("highs-ds", "highs-ipm") if matrix.height < INTERIOR_POINT_ROWS else ("highs-ipm", "highs-ds")
    for cost_scale, method in product((COST_SCALE, 1.0), methods):
        unit = scale / cost_scale
        scaled_objective = objective / unit
        from scipy import sparse

        index = (np.concatenate(matrix.rows), np.concatenate(matrix.columns))
        pad = np.zeros(matrix.width - len(point_weights))
        result = _solve_in_thread(
            {
                "c": np.concatenate([scaled_objective, pad]),
                "A_ub": sparse.csr_array((np.concatenate(matrix.values), index), shape=(matrix.height, matrix.width)),
                "b_ub": np.concatenate(matrix.right_sides),
                "A_eq": sparse.csr_array(np.concatenate([point_weights, pad])[None, :]),
                "b_eq": [1.0],
                "bounds": (0, None),
                "method": method,
                "options": {
                    "primal_feasibility_tolerance": SOLVER_TOLERANCE,
                    "dual_feasibility_tolerance": SOLVER_TOLERANCE,
                },
            }
        )
        if result.status == 0:
            break
    else:
        raise PrecisionError(f"the linear program of the least noise was not solved: {result.message}")
    weights = program.reference * result.x[: program.cell_count + 1]
    weights /= 2 * weights.sum() - weights[0]
    # Y_k = marginal of row k in the units of p, clipped to [0, w]; see `dual`.
    marginals = -unit * np.asarray(result.ineqlin.marginals)
    multipliers, row = [], 0
    for block in blocks:
        end = row + len(block.row_positions)
        start = int(block.row_positions[0])
        values = np.zeros(int(block.row_positions[-1]) - start + 1)
        values[block.row_positions - start] = np.maximum(marginals[row:end] * block.row_scale, 0.0)
        largest = float(values.max(initial=0.0))
        cap = max(0.0, float(marginals[end]) / block.delta) if block.delta > 0 else largest
        left = 0.0 if block.is_open_ended else cap
        multipliers.append(
            DualMultiplier(block.epsilon, block.delta, block.shift, cap, start, np.minimum(values, cap), left)
        )
        row = end + 1
    return ProgramSolution(weights, tuple(multipliers))


def normalize_reference(weights: Floats, least: float = MIN_REFERENCE) -> Floats:
    """Return weights of 0..N, raised to at least a fraction of their sum and normalized over −N..N."""
    raised = np.maximum(weights, least * weights.sum())
    return np.asarray(raised / (2 * raised.sum() - raised[0]), dtype=np.float64)


@dataclass(slots=True)
class _ConstraintMatrix:
    """The sparse rows ≤ ``right_sides``, added block by block; the columns are the cells, then the slacks."""

    rows: list[Integers]
    columns: list[Integers]
    values: list[Floats]
    right_sides: list[Floats]
    height: int
    width: int

    @classmethod
    def from_blocks(cls, program: NoiseProgram, blocks: list[_ConstraintBlock]) -> Self:
        """Return the matrix with all rows of the program."""
        matrix = cls([], [], [], [], 0, program.cell_count + (1 if program.outside_cost is None else 2))
        for block in blocks:
            matrix.add_block(program, block)
        if program.shape == "unimodal":
            matrix.add_unimodality(program)
        return matrix

    def put_entries(self, rows: Integers, columns: Integers, values: Floats) -> None:
        """Add entries at (row, column)."""
        self.rows.append(rows)
        self.columns.append(columns)
        self.values.append(values)

    def append_rows(self, right_sides: Floats) -> Integers:
        """Append rows with these right-hand sides and return their indices."""
        rows = self.height + np.arange(len(right_sides))
        self.right_sides.append(right_sides)
        self.height += len(right_sides)
        return rows

    def add_block(self, program: NoiseProgram, block: _ConstraintBlock) -> None:
        """Add rows p_k − e^ε p_{k−d} − s_k ≤ 0 divided by a_k, and Σ s_k ≤ δ divided by δ."""
        rows, total = self.append_rows(np.zeros(len(block.row_positions))), self.append_rows(np.ones(1))
        shifted = np.abs(block.row_positions - block.shift)
        inside = shifted <= program.cell_count
        ratio = program.reference[np.minimum(shifted, program.cell_count)] * block.row_scale
        self.put_entries(rows, np.abs(block.row_positions), np.ones(len(rows)))
        self.put_entries(rows[inside], shifted[inside], (-math.exp(block.epsilon) * ratio)[inside])
        if block.delta > 0:
            exact_entry = block.delta * block.row_scale
            entry = np.maximum(exact_entry, MIN_SLACK_COEFFICIENT)
            slacks = self.width + np.arange(len(rows))
            self.put_entries(rows, slacks, -entry)
            self.put_entries(np.repeat(total, len(rows)), slacks, entry / exact_entry)
            self.width += len(rows)

    def add_unimodality(self, program: NoiseProgram) -> None:
        """Add rows p_{x+1} ≤ p_x, divided by a_x."""
        rows, x = self.append_rows(np.zeros(program.cell_count)), np.arange(program.cell_count)
        self.put_entries(rows, x, -np.ones(program.cell_count))
        self.put_entries(rows, x + 1, program.reference[1:] / program.reference[:-1])


def _solve_in_thread(arguments: dict[str, Any]) -> Any:
    """Return the solver's result, computed in a thread: Ctrl-C interrupts Python, but not C++ code."""
    from scipy import optimize

    results: list[Any] = []
    errors: list[BaseException] = []

    def run_solver() -> None:
        try:
            results.append(optimize.linprog(**arguments))
        except BaseException as error:  # re-raised in the calling thread
            errors.append(error)

    worker = threading.Thread(target=run_solver, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(POLL_SECONDS)
    if errors:
        raise errors[0]
    return results[0]
