"""The least noise of several equal releases: families tuned by the exact composed curve, then the table itself.

Under composition the best distribution changes (theory §4.3): Laplace for few releases, Gaussian for many, and where
both need the same noise a distribution between them needs 14–16 % less variance than either. All candidates are tuned
in floats; the best ones are converted to integer tables and certified, and the result is the cheapest certified table.
So it never costs more than a classic family. Optimality is local: for two releases or more the problem is not convex.

1. Families with a shape (``best_composed_shape``).
2. Releases with δ = 0 (``cheapest_staircase``).
3. The weights for two releases (``optimize_pair``).
4. The choice among all candidates (``composed_noise``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.integer_tables import optimal_table, staircase_table
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.composed.candidates import (
    SIZE_TOLERANCE,
    Candidate,
    CompositionProblem,
    best_candidate,
    candidate_at_least_size,
    repeated_releases,
)
from tightrope.noise.composed.composed_curve import normalize_half_weights, shifted_pair
from tightrope.noise.composed.lattice_table import (
    HEIGHT_VARIANCE,
    LatticeWeights,
    polish_noise_weights,
    table_keeps_points,
)
from tightrope.noise.families import (
    LaplaceFamily,
    ShapedFamily,
    SizedWeights,
    StaircaseFamily,
    first_plateau_widths,
    registered_families,
)
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer
from tightrope.numerics.root_finding import bisect_real, bracket_by_doubling
from tightrope.randomness.alias_sampler import TOTAL

# 1. The best shape of a family with two parameters, and the least size for it.

TRIAL_TOLERANCE = 1e-6
"""Relative tolerance of the least size while shapes are compared."""
SHAPE_TOLERANCE = 2e-3
"""Tolerance of the best shape."""


def best_composed_shape(problem: CompositionProblem, family: ShapedFamily) -> tuple[float, Candidate]:
    """Return the best shape and its distribution; ``InsufficientBudgetError`` if all shapes fail."""
    candidates: dict[float, Candidate] = {}

    def cost_at_shape(shape: float) -> float:
        try:
            # Start with the standard deviation of the nearest evaluated shape, or of the Gaussian.
            deviation = family.with_shape(shape).relative_deviation
            if not candidates:
                guess = problem.gaussian_scale / deviation
            else:
                nearest_shape = min(candidates, key=lambda other: abs(other - shape))
                guess = candidates[nearest_shape].size * family.with_shape(nearest_shape).relative_deviation / deviation
            candidates[shape] = law_at_least_size(problem, family.with_shape(shape), guess, TRIAL_TOLERANCE)
        except InsufficientBudgetError:
            return math.inf
        return candidates[shape].cost

    if not math.isfinite(min(map(cost_at_shape, family.shape_grid))):
        raise InsufficientBudgetError(f"no {family.name} noise meets {list(problem.points)}; use coarser units")
    low, high = family.shape_bounds
    ordered = sorted({low, *family.shape_grid, high}, reverse=True)
    best_index = ordered.index(min(candidates, key=lambda shape: candidates[shape].cost))
    bounds = (ordered[min(best_index + 1, len(ordered) - 1)], ordered[max(best_index - 1, 0)])
    scipy.optimize.minimize_scalar(cost_at_shape, bounds=bounds, method="bounded", options={"xatol": SHAPE_TOLERANCE})
    best = min(candidates, key=lambda shape: candidates[shape].cost)
    return best, law_at_least_size(problem, family.with_shape(best), candidates[best].size)


def law_at_least_size(
    problem: CompositionProblem, family: ShapedFamily, guess: float, within: float = SIZE_TOLERANCE
) -> Candidate:
    """Return the distribution of this shape at its least size."""
    depth = repeated_releases(problem).tail_depth
    return candidate_at_least_size(
        problem, family.name, SizedWeights(lambda scale: family.listed_weights(scale, depth), guess), within
    )


# 2. The least noise of several releases if some δ_i = 0: every loss is bounded, and the noise is unbounded.
#
# k releases meet (ε, 0) exactly if each is (ε/k, 0)-private. For that the staircase is best (geometric noise at
# sensitivity 1, theory §4.1), unless a further point requires more noise.

SMALLEST_EPSILON_FRACTION = 2.0**-60
EPSILON_TOLERANCE = 1e-9
MAX_FIRST_WIDTHS = 32
NEGLIGIBLE_TAIL = 1e-40
"""Costs of rarer errors are left out; costs grow at most like x⁴."""


def cheapest_staircase(problem: CompositionProblem) -> tuple[str, NoiseTable]:
    """Return the name and the table of the cheapest staircase that meets all points."""
    tables = [_steepest_staircase(problem, high) for high in first_plateau_widths(problem.shift, MAX_FIRST_WIDTHS)]
    name = LaplaceFamily.name if problem.shift < StaircaseFamily.smallest_shift else StaircaseFamily.name
    return name, min(tables, key=lambda table: expected_cost(table, problem.cost))


def _steepest_staircase(problem: CompositionProblem, high: int) -> NoiseTable:
    """Return the steepest staircase with this first width: ε/k, or less if another point binds."""
    max_epsilon = min(epsilon for epsilon, delta in problem.points if delta == 0) / problem.releases

    def staircase_at(epsilon: float) -> NoiseTable:
        return staircase_table(epsilon, problem.shift, high)

    def keeps_points_at(epsilon: float) -> bool:
        return table_keeps_points(staircase_at(epsilon), problem)

    if keeps_points_at(max_epsilon):
        return staircase_at(max_epsilon)
    bracket = bracket_by_doubling(
        keeps_points_at, max_epsilon, max_epsilon / 2, limit=max_epsilon * SMALLEST_EPSILON_FRACTION, factor=0.5
    )
    if bracket is None:
        raise InsufficientBudgetError(
            f"no unbounded noise meets {list(problem.points)} after {problem.releases} releases"
        )
    return staircase_at(
        bisect_real(keeps_points_at, *bracket, side="passes", relative=EPSILON_TOLERANCE, geometric=True)
    )


def expected_cost(table: NoiseTable, cost: ErrorCost) -> float:
    """Return E φ(|X|) from the integer weights: exact for |x| and x², otherwise without negligible terms."""
    if cost.power == 1:
        return table.mean_absolute
    if cost.power == 2:
        return table.mean_squared
    if table.tail is None:
        last = int(table.largest_magnitude)
    else:
        cost.check_growth(1.0 + table.mean_absolute)
        last = len(table.half) + 1
        while table.survival_probability(last) > NEGLIGIBLE_TAIL:
            last *= 2
    above = np.array([float(table.survival_probability(x)) for x in range(last)])
    values = cost.values_at(np.arange(last + 1, dtype=np.float64))
    return float(values[0] + 2 * np.dot(np.diff(values), above))


# 3. Two releases: δ is piecewise quadratic in the weights, with kinks where two losses add up to ε.
#
# Good distributions are at the kinks (losses of ε/2), where Newton's method of ``polish_noise_weights`` fails. With
# D(x, y) = p_x p_y − e^ε p_{x−Δ} p_{y−Δ}, δ is the sum of max(D, 0) over all pairs. Each step linearizes every D: a
# linear program in a box around p. The distribution is then tempered (p → p^τ) until it meets the points, exactly but
# for rounding; the step is accepted if the cost decreases. So the result costs at most as much as the start; it is a
# local optimum.

MAX_PAIR_CELLS = 45
"""Distributions with more cells per side have too many pairs."""
MAX_PAIR_STEPS = 20
WIDEST_BOX, NARROWEST_BOX = 0.5, 1e-5
"""Largest and smallest half-width of the box, relative to the weights; the search ends at the smallest."""
FIRST_BOX, BOX_GROWTH, BOX_SHRINKAGE = 0.3, 1.5, 3.0
"""Initial half-width of the box, its factor after an accepted step, and its divisor after a rejected one."""
MIN_GAIN = 1e-6
"""Relative decrease of the cost for which a step is accepted."""
GROWTH_ALLOWANCE = 1e-3
"""The box is wider by this fraction of the least δ, so that weights near 0 can grow."""
SMALLEST_WEIGHT = 1e-30
"""Smallest weight of a cell."""
TEMPER_POWERS = (
    1.6,
    1.3,
    1.15,
    1.07,
    1.03,
    1.01,
    1.003,
    1.001,
    1.0,
    0.999,
    0.997,
    0.99,
    0.97,
    0.93,
    0.87,
    0.8,
    0.7,
    0.6,
)
"""The values of τ that are tried, before bisection between two neighbors."""
TEMPER_HALVINGS = 40
DELTA_FACTOR = 1 - 1e-12
"""Every δ is multiplied by this, as a margin for rounding in floats."""


def optimize_pair(problem: CompositionProblem, half: Floats) -> Floats | None:
    """Return tempered weights of 0, 1, … that meet the points and cost at most as much as ``half``, tempered.

    Returns None if tempering fails, and the tempered ``half`` if it has too many cells.
    """
    weights = temper_exactly(problem, half)
    if weights is None or not len(weights) <= MAX_PAIR_CELLS:
        return weights
    box, best = FIRST_BOX, problem.cost_of_weights(weights)
    for _ in range(MAX_PAIR_STEPS):
        # The optimum of the linear program around the distribution, tempered.
        program = _PairProgram.around_weights(problem, weights, box)
        solution = scipy.optimize.linprog(**program.linprog_arguments(problem, weights, box), method="highs")
        moved = None if solution.x is None else np.maximum(weights + solution.x[: len(weights)], SMALLEST_WEIGHT)
        tempered = None if moved is None else temper_exactly(problem, moved)
        cost = math.inf if tempered is None else problem.cost_of_weights(tempered)
        if tempered is None or not cost < best * (1 - MIN_GAIN):
            box /= BOX_SHRINKAGE
        else:
            weights, best, box = tempered, cost, min(box * BOX_GROWTH, WIDEST_BOX)
        if box < NARROWEST_BOX:
            break
    return weights


def temper_exactly(problem: CompositionProblem, half: Floats) -> Floats | None:
    """Return p^τ with the largest τ tried that meets the points; None if all fail."""
    logs = np.log(np.maximum(half, SMALLEST_WEIGHT) / half[0])

    def power_meets_points(power: float) -> bool:
        tempered = normalize_half_weights(np.exp(logs * power))
        p, q = shifted_pair(tempered, problem.shift)
        pair_p, pair_q = np.outer(p, p), np.outer(q, q)
        return all(
            float(np.maximum(pair_p - math.exp(epsilon) * pair_q, 0).sum()) <= delta * DELTA_FACTOR
            for epsilon, delta in problem.points
        )

    if power_meets_points(TEMPER_POWERS[0]):
        return normalize_half_weights(np.exp(logs * TEMPER_POWERS[0]))
    bracket = next(((high, low) for high, low in pairwise(TEMPER_POWERS) if power_meets_points(low)), None)
    if bracket is None:
        return None
    power = bisect_real(power_meets_points, *bracket, side="passes", halvings=TEMPER_HALVINGS)
    return normalize_half_weights(np.exp(logs * power))


@dataclass(frozen=True, slots=True, eq=False)
class _PairProgram:
    """The linear program: linearized D − slack ≤ 0 for pairs whose D may be positive, Σ slacks ≤ δ for each point."""

    constraint_matrix: scipy.sparse.csr_array
    right_sides: Floats
    slack_count: int

    @classmethod
    def around_weights(cls, problem: CompositionProblem, half: Floats, box: float) -> _PairProgram:
        cells, shift = len(half), problem.shift
        # |x| and |x − shift| for x = −N..N, or N + 1 outside; its weight, 0, is the last of ``padded``.
        x = np.arange(1 - cells, cells)
        near, far = np.abs(x), np.minimum(np.where(x - shift < 1 - cells, cells, np.abs(x - shift)), cells)
        first, second = np.triu_indices(2 * cells - 1)
        padded = np.append(half, 0.0)
        products_p = padded[near[first]] * padded[near[second]]
        # For each point: coefficients of the weight changes and of the slacks, and right-hand sides.
        blocks: list[tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, Floats]] = []
        for epsilon, delta in problem.points:
            gamma = math.exp(epsilon)
            products_q = gamma * padded[far[first]] * padded[far[second]]
            possible = np.flatnonzero(products_p * (1 + box) ** 2 + SMALLEST_WEIGHT > products_q * (1 - box) ** 2)
            i, j = first[possible], second[possible]
            entries = np.concatenate(
                [padded[near[j]], padded[near[i]], -gamma * padded[far[j]], -gamma * padded[far[i]]]
            )
            rows, columns = np.tile(np.arange(len(possible)), 4), np.concatenate([near[i], near[j], far[i], far[j]])
            change_rows = scipy.sparse.csr_array((entries, (rows, columns)), shape=(len(possible) + 1, cells + 1))[
                :, :cells
            ]
            multiplicities = scipy.sparse.csr_array(np.where(i == j, 1.0, 2.0)[None, :])
            slack_rows = scipy.sparse.csr_array(
                scipy.sparse.vstack([-scipy.sparse.eye_array(len(possible)), multiplicities])
            )
            blocks.append((change_rows, slack_rows, np.append(products_q[possible] - products_p[possible], delta)))
        changes = scipy.sparse.vstack([block[0] for block in blocks])
        slacks = scipy.sparse.block_diag([block[1] for block in blocks])
        above = np.concatenate([block[2] for block in blocks])
        matrix = scipy.sparse.csr_array(scipy.sparse.hstack([changes, slacks]))
        if shift > 1:
            # And p_{x+1} ≤ p_x: then the largest shift dominates all others.
            shape = (len(half) - 1, matrix.shape[1])
            unimodality = scipy.sparse.eye_array(*shape, k=1) - scipy.sparse.eye_array(*shape)
            matrix, above = (
                scipy.sparse.csr_array(scipy.sparse.vstack([matrix, unimodality])),
                np.append(above, -np.diff(half)),
            )
        return cls(matrix, above, slacks.shape[1])

    def linprog_arguments(self, problem: CompositionProblem, half: Floats, box: float) -> dict[str, Any]:
        """Return the arguments for ``scipy.optimize.linprog``."""
        count, pad = len(half), np.zeros(self.slack_count)
        multiplicities = np.where(np.arange(count) == 0, 1.0, 2.0)
        costs = multiplicities * problem.cost.values_at(np.arange(count, dtype=np.float64))
        box_sizes = box * (half + GROWTH_ALLOWANCE * problem.least_delta)
        bounds = [
            (max(-largest, -weight), largest) for largest, weight in zip(box_sizes.tolist(), half.tolist(), strict=True)
        ]
        return {
            "c": np.concatenate([costs, pad]),
            "A_ub": self.constraint_matrix,
            "b_ub": self.right_sides,
            "A_eq": np.concatenate([multiplicities, pad])[None, :],
            "b_eq": [0.0],
            "bounds": bounds + [(0, None)] * self.slack_count,
        }


# 4. The choice among all candidates.

MAX_RELEASES = 10**6
MAX_POLISHED_RELEASES = 300
"""Weights are not optimized for more releases: the gain is below 0.05 %."""
MAX_POLISHED_CELLS = 4000
"""Tables with more cells per side, times the sensitivity, are not optimized: the best family is used."""
COMPARED_GAP = 1e-4
"""Candidates this close to the best one, relatively, are compared as certified tables."""
POLISHED = "optimized table"
CLOSED_FORM = "least noise (closed form)"
START_FRACTIONS, FIRST_DELTA = (0.4, 0.45, 0.5, 0.55), 0.3
"""The search for two releases starts from the optima of one release at these multiples of ε and δ ..."""
EXTRA_CELL_NATS = 2.0
"""... with two more cells, each e² times less likely than the one before."""
LATTICE_REFINEMENT = 16
"""Weights for two releases are rounded to a lattice this many times as fine, so that losses of ε/2 stay exact."""
NEGLIGIBLE_DELTA = 1e-22
"""A smaller δ per release is replaced by 0: it is below the precision of 128-bit tables."""


@dataclass(frozen=True, slots=True)
class ComposedNoise:
    """The table of one release, its family, its cost E φ(|X|), and each candidate's cost or the reason why it failed.

    ``weights_optimized``: the weights themselves were optimized.
    """

    table: NoiseTable
    family: str
    cost: float
    candidates: dict[str, float | str]
    weights_optimized: bool


def composed_noise(
    budget: Budget, *, releases: int, sensitivity: int = 1, cost: str | Callable[[float], float] = "squared"
) -> ComposedNoise:
    """Return noise for each of ``releases`` answers so that together δ(ε_i) ≤ δ_i for every point of the budget.

    Certified: ``(releases * table.loss(sensitivity)).delta(ε_i) <= δ_i``, rounding included. ``cost`` is "absolute",
    "squared", or a non-decreasing function of |x|; it is at most that of Laplace, truncated Laplace, staircase and
    Gaussian noise. One release of sensitivity 1 gets the optimal closed form of theory §4.1. If δ_i = 0 (or below 10⁻²²
    per release), every loss is bounded by ε_i/k, and the noise is an unbounded staircase. ε above 40 per release is
    replaced by 40. The costs of other candidates are computed in floats, with a relative error of about 1e−5.

    Two datasets are neighbors if each answer differs by at most ``sensitivity``; releases may be adaptive, with this
    noise fixed in advance. Raises ``InputError`` for invalid arguments, ``InsufficientBudgetError`` if no integer table
    meets the budget.

    >>> found = composed_noise(Budget(epsilon=1, delta=1e-6), releases=10)
    >>> found.family, found.cost < 158.61, found.cost < 0.89 * found.candidates["discrete Gaussian"]
    ('optimized table', True, True)
    >>> (10 * found.table.loss()).delta(1.0) <= 1e-6
    True
    """
    releases = check_integer("releases", releases)
    if not releases <= MAX_RELEASES:
        raise InputError("releases", releases, f"at most {MAX_RELEASES}", "for more releases, use Gaussian noise")
    points = tuple(_supported_point(point, releases) for point in PrivacyTarget.from_budget(budget).points)
    problem = CompositionProblem(
        points, releases, check_integer("sensitivity", sensitivity), ErrorCost.from_argument(cost)
    )
    if problem.releases == 1 and problem.shift == 1:
        table = optimal_table(problem.points)
        return _single_candidate(CLOSED_FORM, table, problem)
    if any(delta == 0 for _, delta in problem.points):
        return _single_candidate(*cheapest_staircase(problem), problem)
    # Every family at its least size, and the reasons why others fail.
    candidates: list[Candidate] = []
    failures: dict[str, str] = {}
    for family in registered_families():
        max_releases = family.max_releases
        if problem.shift < family.smallest_shift or (max_releases is not None and problem.releases > max_releases):
            continue
        try:
            candidates.append(
                best_composed_shape(problem, family)[1]
                if isinstance(family, ShapedFamily)
                else best_candidate(problem, family)
            )
        except InsufficientBudgetError as error:
            failures[family.name] = str(error)
    if not candidates:
        raise InsufficientBudgetError("; ".join(sorted(set(failures.values()))))
    best = min(candidates, key=lambda candidate: candidate.cost)
    # The weights themselves are optimized only for finite tables and few releases.
    if problem.releases <= MAX_POLISHED_RELEASES and len(best.half_weights) * problem.shift <= MAX_POLISHED_CELLS:
        candidates.append(_optimized_candidate(problem, best))
    winner, table = _cheapest_certified(problem, sorted(candidates, key=lambda candidate: candidate.cost))
    costs: dict[str, float | str] = {candidate.family_name: candidate.cost for candidate in candidates}
    realized = expected_cost(table, problem.cost)
    return ComposedNoise(table, winner, realized, {**costs, **failures, winner: realized}, winner == POLISHED)


def _supported_point(point: tuple[float, float], releases: int) -> tuple[float, float]:
    """Return the point with ε within the precision of tables, and a negligible δ replaced by 0."""
    epsilon, delta = point
    if delta >= NEGLIGIBLE_DELTA * releases:
        return min(epsilon, LARGEST_STEP * releases), delta
    if not epsilon > 0:
        raise InputError("epsilon", epsilon, "above 0 if delta = 0", "no noise meets it; try epsilon=1")
    return min(epsilon, LARGEST_STEP * releases), 0.0


def _single_candidate(name: str, table: NoiseTable, problem: CompositionProblem) -> ComposedNoise:
    """Return the result for a single candidate."""
    realized = expected_cost(table, problem.cost)
    return ComposedNoise(table, name, realized, {name: realized}, False)


def _optimized_candidate(problem: CompositionProblem, best: Candidate) -> Candidate:
    """Return the best weights found from the best candidate; for two releases on a lattice that contains ε/2."""
    half = polish_noise_weights(problem, best.half_weights)
    if problem.releases != 2:
        return Candidate(POLISHED, half, problem.cost_of_weights(half), math.inf)
    # Further starts: optima of one release at about half the guarantee, stretched to the shift, with two more cells.
    starts = [half]
    for fraction in START_FRACTIONS:
        table = optimal_table([(epsilon * fraction, delta * FIRST_DELTA) for epsilon, delta in problem.points])
        if table.tail is not None or len(table.half) * problem.shift > MAX_PAIR_CELLS - 2:
            continue
        levels = np.array([table.center, *table.half], dtype=np.float64) / TOTAL
        indices = (np.arange(len(levels) * problem.shift) + problem.shift // 2) // problem.shift
        start = levels[np.minimum(indices, len(levels) - 1)]
        starts.append(np.concatenate([start, start[-1] * np.exp(-EXTRA_CELL_NATS * np.arange(1.0, 3.0))]))
    optimized = [weights for start in starts if (weights := optimize_pair(problem, start)) is not None]
    half = min([half, *optimized], key=problem.cost_of_weights)
    half_epsilon = max(problem.points)[0] / 2
    step = problem.lattice_step(HEIGHT_VARIANCE) / LATTICE_REFINEMENT
    step = half_epsilon / math.ceil(half_epsilon / step) if half_epsilon > 0 else step
    return Candidate(
        POLISHED,
        half,
        problem.cost_of_weights(half),
        1 / step,
        LatticeWeights.from_rounded_weights(half, step).heights,
    )


def _cheapest_certified(problem: CompositionProblem, candidates: Sequence[Candidate]) -> tuple[str, NoiseTable]:
    """Return the cheapest certified table, and its family, among the candidates that are nearly the best."""
    tables: list[tuple[float, str, NoiseTable]] = []
    for candidate in candidates:
        if tables and candidate.cost > min(tables)[0] * (1 + COMPARED_GAP):
            break
        try:
            table = (
                LatticeWeights.from_candidate(problem, candidate).with_largest_step(problem).certified_table(problem)
            )
        except InsufficientBudgetError:
            continue
        tables.append((expected_cost(table, problem.cost), candidate.family_name, table))
    if not tables:
        raise InsufficientBudgetError(f"no integer table meets {list(problem.points)}; use a larger delta")
    _, name, table = min(tables, key=lambda entry: entry[:2])
    return name, table
