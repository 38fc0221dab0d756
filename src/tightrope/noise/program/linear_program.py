"""The linear program of the least integer noise for a sensitivity above 1 (theory §4.2).

Variables: p_x for x = 0..N, standing for ±x, and slacks. For every point (ε, δ) and shift d, row k says
p_k − e^ε p_{k−d} ≤ s_k, and Σ s_k ≤ δ. Rows with k < d/2 do where weights do not rise outwards by e^ε; ``both`` adds
the others. Where some δ = 0 the law never ends: its rows that look beyond N are left out, and the repaired law
goes on by itself. ``shape="unimodal"`` adds p_x ≥ p_{x+1}; then shift Δ says all.

With ``outside`` the program asks for less than the promise: mass beyond N costs that much and is not looked at, nor are
rows that look there. Its optimum is below every law's cost, and its multipliers prove it, however far laws reach.

Weights fall by many orders of magnitude, so p_x = a_x q_x with a reference law a that keeps the same points, and row k
is divided by a_k: the solver's absolute tolerances become relative ones. Nothing here is trusted: the primal is
repaired and certified by the accountant (``noise_repair``), the dual by ``noise_dual``.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.noise.program.dual import Multiplier
from tightrope.noise.program.request import Shape
from tightrope.numerics.arrays import Floats

LEAST_SHARE = 2e-9
"""No share of the reference law is below this: the solver drops coefficients below 1e−9."""
LEAST_ENTRY = 1e-5
"""Slack enters its row with at least this coefficient, for the same reason."""
SOLVER_TOLERANCE = 1e-10
SHARPER = 1e5
"""Costs are multiplied by this: the solver's tolerance for prices is absolute, and far cells are cheap."""
CLOSED = 1e-6
"""Beside this δ the weight beyond N of an endless law is nothing: its rows count that weight as lost."""
MANY_ROWS = 2500
"""From here on the interior-point method is faster than the dual simplex, twentyfold on flat laws."""
PULSE = 0.05
"""Seconds between looks at the solver: how long Ctrl-C takes."""

Integers = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What to minimise: Σ c_x p_x over |x| ≤ N under the points, for shifts up to ``sensitivity``."""

    points: tuple[tuple[float, float], ...]
    sensitivity: int
    costs: Floats
    reference: Floats
    """a_x > 0, a law of about the right decay, normalised over |x| ≤ N."""
    shape: Shape
    endless: bool
    both: bool = False
    outside: float | None = None
    """What mass beyond N costs at least, where such mass is left open; None where there is none."""

    @property
    def cells(self) -> int:
        """N."""
        return len(self.costs) - 1

    @property
    def shifts(self) -> range:
        """All shifts, or the one that binds for unimodal laws."""
        return range(self.sensitivity if self.shape == "unimodal" else 1, self.sensitivity + 1)

    @property
    def size(self) -> int:
        """About how many rows there are."""
        return len(self.points) * len(self.shifts) * (self.cells + self.sensitivity // 2) * (2 if self.both else 1)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Float weights p_0..p_N that nearly keep the points, and the multipliers of the rows."""

    weights: Floats
    multipliers: tuple[Multiplier, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The rows of one point and shift: k of each row in ascending order, and 1/a_k."""

    epsilon: float
    delta: float
    shift: int
    k: Integers
    scale: Floats
    open: bool
    """Whether rows that look beyond N are left out."""


def solve(program: Program) -> Solution:
    """The optimum in floats; Ctrl-C ends the wait. Raises ``PrecisionError`` where the solver finds none.

    >>> ends = np.exp(-np.arange(60.0) / 3)
    >>> found = solve(Program(((1.0, 1e-6),), 3, np.arange(60.0), reference(ends), "any", False))
    >>> round(2 * float(np.dot(np.arange(60), found.weights)), 6)
    2.860785
    """
    blocks = [_block(program, *point, shift) for point in program.points for shift in program.shifts]
    shares = np.where(np.arange(program.cells + 1) == 0, 1.0, 2.0) * program.reference
    objective = shares * program.costs
    if program.outside is not None:
        shares, objective = np.append(shares, 1.0), np.append(objective, program.outside)
    matrix, scale = _Matrix.of(program, blocks), float(objective.sum()) or 1.0
    # Scales of the costs and methods, the usual one first: solvers give up now and then, rarely on the same.
    usual, other = ("highs-ds", "highs-ipm") if matrix.height < MANY_ROWS else ("highs-ipm", "highs-ds")
    for sharper, method in [(SHARPER, usual), (SHARPER, other), (1.0, usual), (1.0, other)]:
        unit = scale / sharper
        # The program in the words of `scipy.optimize.linprog`.
        arguments_objective = objective / unit
        from scipy import sparse

        index = (np.concatenate(matrix.rows), np.concatenate(matrix.columns))
        pad = np.zeros(matrix.width - len(shares))
        result = _waited(
            {
                "c": np.concatenate([arguments_objective, pad]),
                "A_ub": sparse.csr_array((np.concatenate(matrix.values), index), shape=(matrix.height, matrix.width)),
                "b_ub": np.concatenate(matrix.above),
                "A_eq": sparse.csr_array(np.concatenate([shares, pad])[None, :]),
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
    weights = program.reference * result.x[: program.cells + 1]
    weights /= 2 * weights.sum() - weights[0]
    # Y_k = marginal of row k in the units of p, clipped to [0, w]; see `noise_dual`.
    marginals = -unit * np.asarray(result.ineqlin.marginals)
    out, row = [], 0
    for block in blocks:
        end = row + len(block.k)
        start = int(block.k[0])
        values = np.zeros(int(block.k[-1]) - start + 1)
        values[block.k - start] = np.maximum(marginals[row:end] * block.scale, 0.0)
        largest = float(values.max(initial=0.0))
        cap = max(0.0, float(marginals[end]) / block.delta) if block.delta > 0 else largest
        left = 0.0 if block.open else cap
        out.append(Multiplier(block.epsilon, block.delta, block.shift, cap, start, np.minimum(values, cap), left))
        row = end + 1
    return Solution(weights, tuple(out))


def reference(weights: Floats, least: float = LEAST_SHARE) -> Floats:
    """Weights of 0..N, none below a share of the whole, normalised over −N..N."""
    raised = np.maximum(weights, least * weights.sum())
    return np.asarray(raised / (2 * raised.sum() - raised[0]), dtype=np.float64)


def _block(program: Program, epsilon: float, delta: float, shift: int) -> _Block:
    open_ended = program.outside is not None or (program.endless and delta < CLOSED)
    first = shift - program.cells if open_ended else -program.cells
    last = program.cells if program.both else min((shift - 1) // 2, program.cells)
    k = np.arange(first, last + 1)
    k = k[2 * k != shift]  # there both weights are the same
    return _Block(epsilon, delta, shift, k, 1 / program.reference[np.abs(k)], open_ended)


@dataclass(slots=True)
class _Matrix:
    """Entries of the rows ≤ ``above``, gathered block by block: cells first, then a column for every slack."""

    rows: list[Integers]
    columns: list[Integers]
    values: list[Floats]
    above: list[Floats]
    height: int
    width: int

    @classmethod
    def of(cls, program: Program, blocks: list[_Block]) -> Self:
        """All rows of the program."""
        matrix = cls([], [], [], [], 0, program.cells + (1 if program.outside is None else 2))
        for block in blocks:
            matrix.add(program, block)
        if program.shape == "unimodal":
            matrix.fall(program)
        return matrix

    def put(self, rows: Integers, columns: Integers, values: Floats) -> None:
        """Entries at (row, column)."""
        self.rows.append(rows)
        self.columns.append(columns)
        self.values.append(values)

    def grow(self, above: Floats) -> Integers:
        """Numbers of new rows with these right-hand sides."""
        here = self.height + np.arange(len(above))
        self.above.append(above)
        self.height += len(above)
        return here

    def add(self, program: Program, block: _Block) -> None:
        """Rows p_k − e^ε p_{k−d} − s_k ≤ 0 divided by a_k, and Σ s_k ≤ δ divided by δ."""
        rows, total = self.grow(np.zeros(len(block.k))), self.grow(np.ones(1))
        other = np.abs(block.k - block.shift)
        inside = other <= program.cells
        ratio = program.reference[np.minimum(other, program.cells)] * block.scale
        self.put(rows, np.abs(block.k), np.ones(len(rows)))
        self.put(rows[inside], other[inside], (-math.exp(block.epsilon) * ratio)[inside])
        if block.delta > 0:
            share = block.delta * block.scale
            entry = np.maximum(share, LEAST_ENTRY)
            slacks = self.width + np.arange(len(rows))
            self.put(rows, slacks, -entry)
            self.put(np.repeat(total, len(rows)), slacks, entry / share)
            self.width += len(rows)

    def fall(self, program: Program) -> None:
        """Rows p_{x+1} ≤ p_x, divided by a_x."""
        rows, x = self.grow(np.zeros(program.cells)), np.arange(program.cells)
        self.put(rows, x, -np.ones(program.cells))
        self.put(rows, x + 1, program.reference[1:] / program.reference[:-1])


def _waited(arguments: dict[str, Any]) -> Any:
    """The solver's answer, from a thread: C++ does not hear Ctrl-C, a waiting Python does."""
    from scipy import optimize

    found: list[Any] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(optimize.linprog(**arguments))
        except BaseException as error:  # handed over to the thread that asked
            failed.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(PULSE)
    if failed:
        raise failed[0]
    return found[0]
