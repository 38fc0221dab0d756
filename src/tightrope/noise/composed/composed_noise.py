"""The least noise of several equal releases: families tuned by the exact composed curve, then the table itself.

Under composition the best distribution changes (theory §4.3): Laplace for few releases, Gaussian for many, and where
the two cross a distribution between them needs 14–16 % less variance than either. All candidates are tuned in floats;
the best ones become integer tables, are certified from those, and the cheapest certified table is the answer. So it
never costs more than a classic family. Optimality is local: for two releases or more the problem is not convex.
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
from tightrope.noise.composed.lattice_table import HEIGHT_VARIANCE, LatticeWeights, polish_weights, table_keeps_points
from tightrope.noise.families import (
    LaplaceFamily,
    ShapedFamily,
    SizedWeights,
    StaircaseFamily,
    first_widths,
    registered_families,
)
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer
from tightrope.randomness.alias_sampler import TOTAL

# The best shape of a family with two knobs, and the least size for it.

COMPETING_WITHIN = 1e-6
"""Relative tolerance of the least size while shapes are compared."""
NEAREST = 2e-3
"""Tolerance of the best shape."""


def best_shape(question: CompositionProblem, family: ShapedFamily) -> tuple[float, Candidate]:
    """Return the best shape and its distribution; ``InsufficientBudgetError`` if all shapes fail."""
    found: dict[float, Candidate] = {}

    def cost_at_shape(shape: float) -> float:
        try:
            # The size with the standard deviation of the nearest shape that is known, or of the Gaussian.
            wanted = family.with_shape(shape).relative_deviation
            if not found:
                guess = question.gaussian_scale / wanted
            else:
                nearest = min(found, key=lambda other: abs(other - shape))
                guess = found[nearest].size * family.with_shape(nearest).relative_deviation / wanted
            found[shape] = law_at_least_size(question, family.with_shape(shape), guess, COMPETING_WITHIN)
        except InsufficientBudgetError:
            return math.inf
        return found[shape].cost

    if not math.isfinite(min(map(cost_at_shape, family.shape_grid))):
        raise InsufficientBudgetError(f"no {family.name} keeps {list(question.points)}; measure in coarser units")
    low, high = family.shape_bounds
    ordered = sorted({low, *family.shape_grid, high}, reverse=True)
    place = ordered.index(min(found, key=lambda shape: found[shape].cost))
    around = (ordered[min(place + 1, len(ordered) - 1)], ordered[max(place - 1, 0)])
    scipy.optimize.minimize_scalar(cost_at_shape, bounds=around, method="bounded", options={"xatol": NEAREST})
    best = min(found, key=lambda shape: found[shape].cost)
    return best, law_at_least_size(question, family.with_shape(best), found[best].size)


def law_at_least_size(
    question: CompositionProblem, family: ShapedFamily, guess: float, within: float = SIZE_TOLERANCE
) -> Candidate:
    """The distribution of this shape at its least size."""
    depth = repeated_releases(question).tail_depth
    return candidate_at_least_size(
        question, family.name, SizedWeights(lambda scale: family.listed_weights(scale, depth), guess), within
    )


# Least noise of several releases where some δ_i = 0: every loss is bounded, and the noise never ends.
#
# k releases keep (ε, 0) exactly if no loss of any of them exceeds ε/k: each is (ε/k, 0)-private by itself. For that
# the staircase is best (geometric noise at sensitivity 1, theory §4.1), unless a further point asks for more.

HALVINGS = 60
PURE_WITHIN = 1e-9
MOST_COMPOSED_STAIRS = 32
UNLIKELY = 1e-40
"""Costs of rarer errors are left out; costs grow at most like x⁴."""


def cheapest_staircase(question: CompositionProblem) -> tuple[str, NoiseTable]:
    """The name and the table of the cheapest staircase that meets all points."""
    tables = [_steepest_staircase(question, high) for high in first_widths(question.shift, MOST_COMPOSED_STAIRS)]
    name = LaplaceFamily.name if question.shift < StaircaseFamily.smallest_shift else StaircaseFamily.name
    return name, min(tables, key=lambda table: expected_cost(table, question.cost))


def _steepest_staircase(question: CompositionProblem, high: int) -> NoiseTable:
    """Return the steepest staircase with this first width: at most ε/k, and less where another point binds."""
    top = min(epsilon for epsilon, delta in question.points if delta == 0) / question.releases

    def staircase_at(epsilon: float) -> NoiseTable:
        return staircase_table(epsilon, question.shift, high)

    if table_keeps_points(staircase_at(top), question):
        return staircase_at(top)
    good, bad = top / 2, top
    for _ in range(HALVINGS):
        if table_keeps_points(staircase_at(good), question):
            break
        good, bad = good / 2, good
    else:
        raise InsufficientBudgetError(
            f"no endless noise keeps {list(question.points)} after {question.releases} releases"
        )
    while bad > good * (1 + PURE_WITHIN):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if table_keeps_points(staircase_at(middle), question) else (good, middle)
    return staircase_at(good)


def expected_cost(table: NoiseTable, cost: ErrorCost) -> float:
    """E φ(|X|) from the integer weights: exact for |x| and x², otherwise summed up to negligible terms."""
    if cost.power == 1:
        return table.mean_absolute
    if cost.power == 2:
        return table.mean_squared
    if table.tail is None:
        last = int(table.largest_magnitude)
    else:
        cost.check_growth(1.0 + table.mean_absolute)
        last = len(table.half) + 1
        while table.survival_probability(last) > UNLIKELY:
            last *= 2
    above = np.array([float(table.survival_probability(x)) for x in range(last)])
    values = cost.values_at(np.arange(last + 1, dtype=np.float64))
    return float(values[0] + 2 * np.dot(np.diff(values), above))


# Two releases: δ is piecewise quadratic in the weights, with kinks where two losses add up to ε.
#
# Good distributions sit on the kinks (losses of ε/2), where Newton's method of ``polish_weights`` does not see them.
# With D(x,
# y) = p_x p_y − e^ε p_{x−Δ} p_{y−Δ} δ is Σ D₊ over all pairs. Each step makes every D linear and keeps the positive
# parts: a linear program in a box around p. The distribution is then made flatter or steeper until it meets the points,
# exactly but for rounding; a step is taken if it costs less. So the result is at least as good as the start; the
# optimum is local.

MOST_PAIR_CELLS = 45
"""Distributions with more cells per side have too many pairs."""
MOST_STEPS = 20
WIDEST, NARROWEST = 0.5, 1e-5
"""Sides of the box, in parts of the weights."""
FIRST, WIDER, NARROWER = 0.3, 1.5, 3.0
LEAST_GAIN = 1e-6
FRESH = 1e-3
"""Weights may also grow by this part of the least δ, however small they are."""
FAINT_MASS = 1e-30
TEMPERS = (1.6, 1.3, 1.15, 1.07, 1.03, 1.01, 1.003, 1.001, 1.0, 0.999, 0.997, 0.99, 0.97, 0.93, 0.87, 0.8, 0.7, 0.6)
TWO_RELEASES_HALVINGS = 40
KEPT_OF_DELTA = 1 - 1e-12
"""This part of every δ is kept in floats."""


def optimize_pair(question: CompositionProblem, half: Floats) -> Floats | None:
    """Return tempered weights of 0, 1, … that meet the points at less cost than ``half``; None if tempering fails."""
    law = temper_exactly(question, half)
    if law is None or not len(law) <= MOST_PAIR_CELLS:
        return law
    box, best = FIRST, question.cost_of_weights(law)
    for _ in range(MOST_STEPS):
        # The optimum of the linear program around the distribution, tempered.
        program = _PairProgram.around_weights(question, law, box)
        found = scipy.optimize.linprog(**program.linprog_arguments(question, law, box), method="highs")
        moved = None if found.x is None else np.maximum(law + found.x[: len(law)], FAINT_MASS)
        tried = None if moved is None else temper_exactly(question, moved)
        cost = math.inf if tried is None else question.cost_of_weights(tried)
        if tried is None or not cost < best * (1 - LEAST_GAIN):
            box /= NARROWER
        else:
            law, best, box = tried, cost, min(box * WIDER, WIDEST)
        if box < NARROWEST:
            break
    return law


def temper_exactly(question: CompositionProblem, half: Floats) -> Floats | None:
    """Return p^τ with the largest τ tried that meets the points; None if all fail."""
    logs = np.log(np.maximum(half, FAINT_MASS) / half[0])

    def power_keeps_points(power: float) -> bool:
        keeps_half = normalize_half_weights(np.exp(logs * power))
        p, q = shifted_pair(keeps_half, question.shift)
        both, other = np.outer(p, p), np.outer(q, q)
        return all(
            float(np.maximum(both - math.exp(epsilon) * other, 0).sum()) <= delta * KEPT_OF_DELTA
            for epsilon, delta in question.points
        )

    if power_keeps_points(TEMPERS[0]):
        return normalize_half_weights(np.exp(logs * TEMPERS[0]))
    ends = next(((high, low) for high, low in pairwise(TEMPERS) if power_keeps_points(low)), None)
    if ends is None:
        return None
    high, low = ends
    for _ in range(TWO_RELEASES_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if power_keeps_points(middle) else (low, middle)
    return normalize_half_weights(np.exp(logs * low))


@dataclass(frozen=True, slots=True, eq=False)
class _PairProgram:
    """Rows: D linear less its slack ≤ 0 for pairs that may be positive, Σ slacks ≤ δ for each point."""

    constraint_matrix: scipy.sparse.csr_array
    right_sides: Floats
    slack_count: int

    @classmethod
    def around_weights(cls, question: CompositionProblem, half: Floats, box: float) -> _PairProgram:
        cells, shift = len(half), question.shift
        # |x| and |x − shift| for x = −N..N, N + 1 for what is outside; its weight, 0, is the last of ``wide``.
        x = np.arange(1 - cells, cells)
        near, far = np.abs(x), np.minimum(np.where(x - shift < 1 - cells, cells, np.abs(x - shift)), cells)
        first, second = np.triu_indices(2 * cells - 1)
        wide = np.append(half, 0.0)
        mine = wide[near[first]] * wide[near[second]]
        # Of each point: coefficients of the changes of weights and of the slacks, and right-hand sides.
        blocks: list[tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, Floats]] = []
        for epsilon, delta in question.points:
            gamma = math.exp(epsilon)
            theirs = gamma * wide[far[first]] * wide[far[second]]
            may = np.flatnonzero(mine * (1 + box) ** 2 + FAINT_MASS > theirs * (1 - box) ** 2)
            i, j = first[may], second[may]
            entries = np.concatenate([wide[near[j]], wide[near[i]], -gamma * wide[far[j]], -gamma * wide[far[i]]])
            rows, columns = np.tile(np.arange(len(may)), 4), np.concatenate([near[i], near[j], far[i], far[j]])
            change_rows = scipy.sparse.csr_array((entries, (rows, columns)), shape=(len(may) + 1, cells + 1))[:, :cells]
            twice = scipy.sparse.csr_array(np.where(i == j, 1.0, 2.0)[None, :])
            slack_rows = scipy.sparse.csr_array(scipy.sparse.vstack([-scipy.sparse.eye_array(len(may)), twice]))
            blocks.append((change_rows, slack_rows, np.append(theirs[may] - mine[may], delta)))
        changes = scipy.sparse.vstack([block[0] for block in blocks])
        slacks = scipy.sparse.block_diag([block[1] for block in blocks])
        above = np.concatenate([block[2] for block in blocks])
        matrix = scipy.sparse.csr_array(scipy.sparse.hstack([changes, slacks]))
        if shift > 1:
            # And p_{x+1} ≤ p_x: then the largest shift says all.
            shape = (len(half) - 1, matrix.shape[1])
            falls = scipy.sparse.eye_array(*shape, k=1) - scipy.sparse.eye_array(*shape)
            matrix, above = (
                scipy.sparse.csr_array(scipy.sparse.vstack([matrix, falls])),
                np.append(above, -np.diff(half)),
            )
        return cls(matrix, above, slacks.shape[1])

    def linprog_arguments(self, question: CompositionProblem, half: Floats, box: float) -> dict[str, Any]:
        """Return the arguments for ``scipy.optimize.linprog``."""
        count, pad = len(half), np.zeros(self.slack_count)
        ways = np.where(np.arange(count) == 0, 1.0, 2.0)
        costs = ways * question.cost.values_at(np.arange(count, dtype=np.float64))
        room = box * (half + FRESH * question.least_delta)
        bounds = [(max(-most, -weight), most) for most, weight in zip(room.tolist(), half.tolist(), strict=True)]
        return {
            "c": np.concatenate([costs, pad]),
            "A_ub": self.constraint_matrix,
            "b_ub": self.right_sides,
            "A_eq": np.concatenate([ways, pad])[None, :],
            "b_eq": [0.0],
            "bounds": bounds + [(0, None)] * self.slack_count,
        }


MOST_RELEASES = 10**6
MOST_POLISHED = 300
"""Weights are not optimized for more releases: the gain is below 0.05 %."""
MOST_POLISHED_CELLS = 4000
"""Tables with more cells per side, times the sensitivity, are not optimized: the best family is used."""
NEAR_BEST = 1e-4
"""Candidates this close to the best one, relatively, are compared as certified tables."""
POLISHED = "optimized table"
CLOSED_FORM = "least noise (closed form)"
STARTS, FIRST_DELTA = (0.4, 0.45, 0.5, 0.55), 0.3
"""Two releases are searched from the optima of one at these parts of ε and δ ..."""
DROP = 2.0
"""... and two more cells, each e² times less likely."""
FINER = 16
"""Weights of two releases are rounded to a lattice this many times as fine: losses that add up to ε keep doing so."""
NEVER = 1e-22
"""A smaller δ per release is replaced by 0: it is below the precision of 128-bit tables."""


@dataclass(frozen=True, slots=True)
class ComposedNoise:
    """The table of one release, E φ(|X|) of it, the family it is from, and each candidate's cost or reason of failure.

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

    Certified: ``(releases * table.loss(sensitivity)).delta(ε_i) <= δ_i``, rounding included. ``cost``: "absolute",
    "squared", or a non-decreasing function of |x|. At most the cost of Laplace, truncated Laplace, staircase and
    Gaussian noise. One release of sensitivity 1 gets the optimal closed form of theory §4.1.
    With δ_i = 0 (or below 10⁻²² a release) every loss is bounded by ε_i/k: an unbounded staircase. ε above 40 a
    release is replaced by that. The costs of other candidates are searched in floats, right to about 1e−5.

    Neighbors: as defined by the sensitivity; releases may be adaptive, with this noise fixed in advance. Raises
    ``InputError`` for invalid arguments, ``InsufficientBudgetError`` if no integer table meets the budget.

    >>> found = composed_noise(Budget(epsilon=1, delta=1e-6), releases=10)
    >>> found.family, found.cost < 158.61, found.cost < 0.89 * found.candidates["discrete Gaussian"]
    ('optimized table', True, True)
    >>> (10 * found.table.loss()).delta(1.0) <= 1e-6
    True
    """
    releases = check_integer("releases", releases)
    if not releases <= MOST_RELEASES:
        raise InputError("releases", releases, f"at most {MOST_RELEASES}", "for more releases, use Gaussian noise")
    points = tuple(_supported_point(point, releases) for point in PrivacyTarget.from_budget(budget).points)
    question = CompositionProblem(
        points, releases, check_integer("sensitivity", sensitivity), ErrorCost.from_argument(cost)
    )
    if question.releases == 1 and question.shift == 1:
        table = optimal_table(question.points)
        return _single_candidate(CLOSED_FORM, table, question)
    if any(delta == 0 for _, delta in question.points):
        return _single_candidate(*cheapest_staircase(question), question)
    found, refused = _family_candidates(question)
    if not found:
        raise InsufficientBudgetError("; ".join(sorted({str(reason) for reason in refused.values()})))
    best = min(found, key=lambda one: one.cost)
    # The weights themselves are optimized only for finite tables and few releases.
    if question.releases <= MOST_POLISHED and len(best.half_weights) * question.shift <= MOST_POLISHED_CELLS:
        found.append(_optimized_candidate(question, best))
    winner, table = _cheapest_certified(question, sorted(found, key=lambda one: one.cost))
    costs: dict[str, float | str] = {one.family_name: one.cost for one in found}
    realized = expected_cost(table, question.cost)
    return ComposedNoise(table, winner, realized, {**costs, **refused, winner: realized}, winner == POLISHED)


def _supported_point(point: tuple[float, float], releases: int) -> tuple[float, float]:
    """Return the question with ε within the precision of tables, and a negligible δ replaced by 0."""
    epsilon, delta = point
    if delta >= NEVER * releases:
        return min(epsilon, LARGEST_STEP * releases), delta
    if not epsilon > 0:
        raise InputError("epsilon", epsilon, "above 0 where delta = 0", "no noise keeps it; try epsilon=1")
    return min(epsilon, LARGEST_STEP * releases), 0.0


def _single_candidate(name: str, table: NoiseTable, question: CompositionProblem) -> ComposedNoise:
    """Return the result for a single candidate."""
    realized = expected_cost(table, question.cost)
    return ComposedNoise(table, name, realized, {name: realized}, False)


def _family_candidates(question: CompositionProblem) -> tuple[list[Candidate], dict[str, str]]:
    """Return every family at its least size, and the reasons why others failed."""
    found, refused = [], {}
    for family in registered_families():
        most = family.max_releases
        if question.shift < family.smallest_shift or (most is not None and question.releases > most):
            continue
        try:
            found.append(
                best_shape(question, family)[1]
                if isinstance(family, ShapedFamily)
                else best_candidate(question, family)
            )
        except InsufficientBudgetError as error:
            refused[family.name] = str(error)
    return found, refused


def _optimized_candidate(question: CompositionProblem, best: Candidate) -> Candidate:
    """The best weights found from the best distribution; for two releases on a lattice that has ε/2."""
    half = polish_weights(question, best.half_weights)
    if question.releases != 2:
        return Candidate(POLISHED, half, question.cost_of_weights(half), math.inf)
    # Further starts: optima of one release at about half the guarantee, plateaus as wide as the shift, with room to
    # grow.
    starts = [half]
    for share in STARTS:
        table = optimal_table([(epsilon * share, delta * FIRST_DELTA) for epsilon, delta in question.points])
        if table.tail is not None or len(table.half) * question.shift > MOST_PAIR_CELLS - 2:
            continue
        levels = np.array([table.center, *table.half], dtype=np.float64) / TOTAL
        places = (np.arange(len(levels) * question.shift) + question.shift // 2) // question.shift
        start = levels[np.minimum(places, len(levels) - 1)]
        starts.append(np.concatenate([start, start[-1] * np.exp(-DROP * np.arange(1.0, 3.0))]))
    laws = [law for start in starts if (law := optimize_pair(question, start)) is not None]
    half = min([half, *laws], key=question.cost_of_weights)
    main = max(question.points)[0] / 2
    step = question.lattice_step(HEIGHT_VARIANCE) / FINER
    step = main / math.ceil(main / step) if main > 0 else step
    return Candidate(
        POLISHED,
        half,
        question.cost_of_weights(half),
        1 / step,
        LatticeWeights.from_rounded_weights(half, step).heights,
    )


def _cheapest_certified(question: CompositionProblem, ordered: Sequence[Candidate]) -> tuple[str, NoiseTable]:
    """The cheapest certified table among the candidates that are nearly the best."""
    tables: list[tuple[float, str, NoiseTable]] = []
    for found in ordered:
        if tables and found.cost > min(tables)[0] * (1 + NEAR_BEST):
            break
        try:
            table = LatticeWeights.from_candidate(question, found).with_largest_step(question).certified_table(question)
        except InsufficientBudgetError:
            continue
        tables.append((expected_cost(table, question.cost), found.family_name, table))
    if not tables:
        raise InsufficientBudgetError(f"no integer table keeps {list(question.points)}; raise delta")
    _, name, table = min(tables, key=lambda one: one[:2])
    return name, table
