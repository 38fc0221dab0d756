"""The least noise of several equal releases: families tuned by the exact composed curve, then the table itself.

Under composition the best law changes (theory §4.3): Laplace for few releases, Gaussian for many, and where the two
cross a law between them needs 14–16 % less variance than either. All candidates are tuned in floats; the best ones
become integer tables, are certified from those, and the cheapest certified table is the answer. So it never costs more
than a classic family. Optimality is local: for two releases or more the problem is not convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from tightrope.documents.budget import Budget
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.discrete.integer_tables import optimal_table, staircase_table
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.composed.candidates import LAW_WITHIN, Candidate, Question, at_least_size, candidate, several
from tightrope.noise.composed.composed_curve import normalised, shifted
from tightrope.noise.composed.lattice_table import HEIGHT_VARIANCE, LatticeLaw, keeps, polished
from tightrope.noise.families import Family, Laplace, Shaped, Sized, Staircase, first_widths, offered
from tightrope.noise.program.request import Cost, Promise
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import whole
from tightrope.randomness.alias_sampler import TOTAL

# The best shape of a family with two knobs, and the least size for it.

COMPETING_WITHIN = 1e-6
"""How near the least size is approached while shapes compete."""
NEAREST = 2e-3
"""How near the best shape is approached."""


def tuned(question: Question, family: Shaped) -> tuple[float, Candidate]:
    """The best shape and its law. Raises ``BudgetRefused`` where no shape will do."""
    found: dict[float, Candidate] = {}

    def at(shape: float) -> float:
        try:
            # The size with the standard deviation of the nearest shape that is known, or of the Gaussian.
            wanted = family.at(shape).deviation
            if not found:
                guess = question.gaussian_scale / wanted
            else:
                nearest = min(found, key=lambda other: abs(other - shape))
                guess = found[nearest].size * family.at(nearest).deviation / wanted
            found[shape] = sized(question, family.at(shape), guess, COMPETING_WITHIN)
        except BudgetRefused:
            return math.inf
        return found[shape].cost

    if not math.isfinite(min(map(at, family.grid))):
        raise BudgetRefused(f"no {family.name} keeps {list(question.points)}; measure in coarser units")
    low, high = family.ends
    ordered = sorted({low, *family.grid, high}, reverse=True)
    place = ordered.index(min(found, key=lambda shape: found[shape].cost))
    around = (ordered[min(place + 1, len(ordered) - 1)], ordered[max(place - 1, 0)])
    scipy.optimize.minimize_scalar(at, bounds=around, method="bounded", options={"xatol": NEAREST})
    best = min(found, key=lambda shape: found[shape].cost)
    return best, sized(question, family.at(best), found[best].size)


def sized(question: Question, family: Shaped, guess: float, within: float = LAW_WITHIN) -> Candidate:
    """The law of this shape at its least size."""
    depth = several(question).depth
    return at_least_size(question, family.name, Sized(lambda scale: family.listed(scale, depth), guess), within)


# Least noise of several releases where some δ_i = 0: every loss is bounded, and the noise never ends.
#
# k releases keep (ε, 0) exactly if no loss of any of them exceeds ε/k: each is (ε/k, 0)-private by itself. For that
# the staircase is best (geometric noise at sensitivity 1, theory §4.1), unless a further point asks for more.

HALVINGS = 60
PURE_WITHIN = 1e-9
MOST_COMPOSED_STAIRS = 32
UNLIKELY = 1e-40
"""Costs of what is rarer than this are left out; costs grow at most like x⁴."""


def pure_noise(question: Question) -> tuple[str, NoiseTable]:
    """The name and the table of the cheapest staircase that keeps all points."""
    tables = [_of_width(question, high) for high in first_widths(question.shift, MOST_COMPOSED_STAIRS)]
    name = Laplace.name if question.shift < Staircase.smallest_shift else Staircase.name
    return name, min(tables, key=lambda table: expected_cost(table, question.cost))


def _of_width(question: Question, high: int) -> NoiseTable:
    """The steepest staircase with this first width: no steeper than ε/k, and less where another point binds."""
    top = min(epsilon for epsilon, delta in question.points if delta == 0) / question.releases

    def at(epsilon: float) -> NoiseTable:
        return staircase_table(epsilon, question.shift, high)

    if keeps(at(top), question):
        return at(top)
    good, bad = top / 2, top
    for _ in range(HALVINGS):
        if keeps(at(good), question):
            break
        good, bad = good / 2, good
    else:
        raise BudgetRefused(f"no endless noise keeps {list(question.points)} after {question.releases} releases")
    while bad > good * (1 + PURE_WITHIN):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if keeps(at(middle), question) else (good, middle)
    return at(good)


def expected_cost(table: NoiseTable, cost: Cost) -> float:
    """E φ(|X|) from the integer weights: exact for |x| and x², else summed as far as it matters."""
    if cost.power == 1:
        return table.mean_absolute
    if cost.power == 2:
        return table.mean_squared
    last = int(table.worst) if table.tail is None else _last(table, cost)
    above = np.array([float(table.survival(x)) for x in range(last)])
    values = cost.at(np.arange(last + 1, dtype=np.float64))
    return float(values[0] + 2 * np.dot(np.diff(values), above))


def _last(table: NoiseTable, cost: Cost) -> int:
    """Where an endless law is no more likely than ``UNLIKELY``."""
    cost.check_growth(1.0 + table.mean_absolute)
    last = len(table.half) + 1
    while table.survival(last) > UNLIKELY:
        last *= 2
    return last


# Two releases: δ is piecewise quadratic in the weights, with kinks where two losses add up to ε.
#
# Good laws sit on the kinks (losses of ε/2), where Newton's method of ``polish`` does not see them. With D(x, y) =
# p_x p_y − e^ε p_{x−Δ} p_{y−Δ} δ is Σ D₊ over all pairs. Each step makes every D linear and keeps the positive parts:
# a linear program in a box around p. The law is then made flatter or steeper until it keeps the points, exactly but
# for rounding; a step is taken if it costs less. So the result is no worse than the start; the optimum is local.

MOST_PAIR_CELLS = 45
"""Laws of more cells a side have too many pairs."""
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


def paired(question: Question, half: Floats) -> Floats | None:
    """Weights of 0, 1, … that keep the points at less cost than ``half``, tempered; None where that keeps nothing."""
    law = tempered_exactly(question, half)
    if law is None or not len(law) <= MOST_PAIR_CELLS:
        return law
    box, best = FIRST, question.expected(law)
    for _ in range(MOST_STEPS):
        # The optimum of the linear program around the law, tempered.
        program = _Program.around(question, law, box)
        found = scipy.optimize.linprog(**program.arguments(question, law, box), method="highs")
        if found.x is None:
            tried = None
        else:
            tried = tempered_exactly(question, np.maximum(law + found.x[: len(law)], FAINT_MASS))
        cost = math.inf if tried is None else question.expected(tried)
        if tried is None or not cost < best * (1 - LEAST_GAIN):
            box /= NARROWER
        else:
            law, best, box = tried, cost, min(box * WIDER, WIDEST)
        if box < NARROWEST:
            break
    return law


def tempered_exactly(question: Question, half: Floats) -> Floats | None:
    """p^τ with the largest τ, of those that are tried, that keeps the points; None where none does."""
    logs = np.log(np.maximum(half, FAINT_MASS) / half[0])

    def keeps(power: float) -> bool:
        keeps_half = normalised(np.exp(logs * power))
        p, q = shifted(keeps_half, question.shift)
        both, other = np.outer(p, p), np.outer(q, q)
        return all(
            float(np.maximum(both - math.exp(epsilon) * other, 0).sum()) <= delta * KEPT_OF_DELTA
            for epsilon, delta in question.points
        )

    if keeps(TEMPERS[0]):
        return normalised(np.exp(logs * TEMPERS[0]))
    ends = next(((high, low) for high, low in pairwise(TEMPERS) if keeps(low)), None)
    return None if ends is None else normalised(np.exp(logs * _last_halving(keeps, *ends)))


def _last_halving(keeps: Callable[[float], bool], high: float, low: float) -> float:
    """A power that keeps the points near one, above it, that does not."""
    for _ in range(TWO_RELEASES_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """Rows: D linear less its slack ≤ 0 for pairs that may be positive, Σ slacks ≤ δ for each point."""

    matrix: scipy.sparse.csr_array
    above: Floats
    slacks: int

    @classmethod
    def around(cls, question: Question, half: Floats, box: float) -> _Program:
        blocks = [_block(half, question.shift, box, *point) for point in question.points]
        changes = scipy.sparse.vstack([block[0] for block in blocks])
        slacks = scipy.sparse.block_diag([block[1] for block in blocks])
        above = np.concatenate([block[2] for block in blocks])
        matrix = scipy.sparse.csr_array(scipy.sparse.hstack([changes, slacks]))
        if question.shift > 1:
            # And p_{x+1} ≤ p_x: then the largest shift says all.
            shape = (len(half) - 1, matrix.shape[1])
            falls = scipy.sparse.eye_array(*shape, k=1) - scipy.sparse.eye_array(*shape)
            matrix, above = (
                scipy.sparse.csr_array(scipy.sparse.vstack([matrix, falls])),
                np.append(above, -np.diff(half)),
            )
        return cls(matrix, above, slacks.shape[1])

    def arguments(self, question: Question, half: Floats, box: float) -> dict[str, Any]:
        """In the words of ``scipy.optimize.linprog``."""
        count, pad = len(half), np.zeros(self.slacks)
        ways = np.where(np.arange(count) == 0, 1.0, 2.0)
        costs = ways * question.cost.at(np.arange(count, dtype=np.float64))
        room = box * (half + FRESH * question.least_delta)
        bounds = [(max(-most, -weight), most) for most, weight in zip(room.tolist(), half.tolist(), strict=True)]
        return {
            "c": np.concatenate([costs, pad]),
            "A_ub": self.matrix,
            "b_ub": self.above,
            "A_eq": np.concatenate([ways, pad])[None, :],
            "b_eq": [0.0],
            "bounds": bounds + [(0, None)] * self.slacks,
        }


def _block(
    half: Floats, shift: int, box: float, epsilon: float, delta: float
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, Floats]:
    """Coefficients of the changes of weights and of the slacks, and right-hand sides, of one point."""
    cells, gamma = len(half), math.exp(epsilon)
    # |x| and |x − shift| for x = −N..N, N + 1 for what is outside.
    x = np.arange(1 - cells, cells)
    near, far = np.abs(x), np.minimum(np.where(x - shift < 1 - cells, cells, np.abs(x - shift)), cells)
    first, second = np.triu_indices(2 * cells - 1)
    wide = np.append(half, 0.0)  # the last stands for what is outside
    mine, theirs = wide[near[first]] * wide[near[second]], gamma * wide[far[first]] * wide[far[second]]
    may = np.flatnonzero(mine * (1 + box) ** 2 + FAINT_MASS > theirs * (1 - box) ** 2)
    i, j = first[may], second[may]
    rows = np.tile(np.arange(len(may)), 4)
    columns = np.concatenate([near[i], near[j], far[i], far[j]])
    values = [wide[near[j]], wide[near[i]], -gamma * wide[far[j]], -gamma * wide[far[i]]]
    changes = scipy.sparse.csr_array((np.concatenate(values), (rows, columns)), shape=(len(may) + 1, cells + 1))[
        :, :cells
    ]
    twice = np.where(i == j, 1.0, 2.0)
    slacks = scipy.sparse.vstack([-scipy.sparse.eye_array(len(may)), scipy.sparse.csr_array(twice[None, :])])
    return changes, scipy.sparse.csr_array(slacks), np.append(theirs[may] - mine[may], delta)


MOST_RELEASES = 10**6
MOST_POLISHED = 300
"""For more releases the weights themselves gain less than 0.05 %: they are not optimised."""
MOST_POLISHED_CELLS = 4000
"""Tables of more cells a side, times the sensitivity, are not optimised: their family is all there is."""
NEAR_BEST = 1e-4
"""Candidates this close to the best one, relatively, are compared as certified tables."""
POLISHED = "optimised table"
CLOSED_FORM = "least noise (closed form)"
STARTS, FIRST_DELTA = (0.4, 0.45, 0.5, 0.55), 0.3
"""Two releases are searched from the optima of one at these parts of ε and δ ..."""
DROP = 2.0
"""... and two more cells, each e² times less likely."""
FINER = 16
"""Weights of two releases are rounded to a lattice so many times as fine: their losses stay where they add up to ε."""
NEVER = 1e-22
"""A δ below this for each release is taken as 0: a table of 128 bits could hardly tell."""


@dataclass(frozen=True, slots=True)
class ComposedNoise:
    """The table of one release, E φ(|X|) of it, the family it is from, and what every candidate costs – or why none.

    ``polished``: no family but the weights themselves were optimised.
    """

    table: NoiseTable
    family: str
    cost: float
    candidates: dict[str, float | str]
    polished: bool


def composed_noise(
    budget: Budget, *, releases: int, sensitivity: int = 1, cost: str | Callable[[float], float] = "squared"
) -> ComposedNoise:
    """Noise for each of ``releases`` answers so that together δ(ε_i) ≤ δ_i holds for every point of the budget.

    Certified: ``(releases * table.loss(sensitivity)).delta(ε_i) <= δ_i``, rounding included. ``cost``: "absolute",
    "squared", or a non-decreasing function of |x|. At most the cost of Laplace, truncated Laplace, staircase and
    Gaussian noise. One release of sensitivity 1 gets the closed form of theory §4.1, which no integer noise beats.
    With δ_i = 0 (or below 10⁻²² a release) every loss is bounded by ε_i/k: a staircase without end. ε above 40 a
    release is taken as that. The costs of other candidates are searched in floats, right to about 1e−5.

    Neighbours: whatever the sensitivity speaks of; releases may be adaptive, with this noise fixed in advance. Raises
    ``InputError`` for nonsense, ``BudgetRefused`` where no table of whole numbers will do.

    >>> found = composed_noise(Budget(epsilon=1, delta=1e-6), releases=10)
    >>> found.family, found.cost < 158.61, found.cost < 0.89 * found.candidates["discrete Gaussian"]
    ('optimised table', True, True)
    >>> (10 * found.table.loss()).delta(1.0) <= 1e-6
    True
    """
    # What is asked, checked.
    question_releases = releases
    question_releases = whole("releases", question_releases)
    if not question_releases <= MOST_RELEASES:
        raise InputError(
            "releases", question_releases, f"at most {MOST_RELEASES}", "Gaussian noise is best for so many"
        )
    points = tuple(_point(point, question_releases) for point in Promise.of(budget).points)
    question = Question(points, question_releases, whole("sensitivity", sensitivity), Cost.of(cost))
    if question.releases == 1 and question.shift == 1:
        table = optimal_table(question.points)
        return _only(CLOSED_FORM, table, question)
    if any(delta == 0 for _, delta in question.points):
        return _only(*pure_noise(question), question)
    found, refused = _candidates(question)
    if not found:
        raise BudgetRefused("; ".join(sorted({str(reason) for reason in refused.values()})))
    best = min(found, key=lambda one: one.cost)
    # Whether the weights themselves are optimised: not for endless tables, nor for so many releases.
    if question.releases <= MOST_POLISHED and len(best.half) * question.shift <= MOST_POLISHED_CELLS:
        found.append(_optimised(question, best))
    winner, table = _certified(question, sorted(found, key=lambda one: one.cost))
    costs: dict[str, float | str] = {one.name: one.cost for one in found}
    realised = expected_cost(table, question.cost)
    return ComposedNoise(table, winner, realised, {**costs, **refused, winner: realised}, winner == POLISHED)


def _point(point: tuple[float, float], releases: int) -> tuple[float, float]:
    """ε no larger than tables can tell, and a δ that is next to nothing taken as 0."""
    epsilon, delta = point
    if delta >= NEVER * releases:
        return min(epsilon, LARGEST_STEP * releases), delta
    if not epsilon > 0:
        raise InputError("epsilon", epsilon, "above 0 where delta = 0", "no noise keeps it; try epsilon=1")
    return min(epsilon, LARGEST_STEP * releases), 0.0


def _only(name: str, table: NoiseTable, question: Question) -> ComposedNoise:
    """The one answer."""
    realised = expected_cost(table, question.cost)
    return ComposedNoise(table, name, realised, {name: realised}, False)


def _candidates(question: Question) -> tuple[list[Candidate], dict[str, str]]:
    """Every family at its least size, and why others have none."""
    found, refused = [], {}
    for family in offered():
        if not _sought(family, question):
            continue
        try:
            found.append(tuned(question, family)[1] if isinstance(family, Shaped) else candidate(question, family))
        except BudgetRefused as error:
            refused[family.name] = str(error)
    return found, refused


def _sought(family: Family, question: Question) -> bool:
    """Whether the family declares itself for this shift and so many releases."""
    most = family.most_releases
    return question.shift >= family.smallest_shift and (most is None or question.releases <= most)


def _optimised(question: Question, best: Candidate) -> Candidate:
    """The best weights found from the best law; for two releases on a lattice that has ε/2."""
    half = polished(question, best.half)
    if question.releases != 2:
        return Candidate(POLISHED, half, question.expected(half), math.inf)
    starts = [half, *_first_tables(question)]
    laws = [law for start in starts if (law := paired(question, start)) is not None]
    half = min([half, *laws], key=question.expected)
    main = max(question.points)[0] / 2
    step = question.step(HEIGHT_VARIANCE) / FINER
    step = main / math.ceil(main / step) if main > 0 else step
    return Candidate(POLISHED, half, question.expected(half), 1 / step, LatticeLaw.rounded(half, step).heights)


def _first_tables(question: Question) -> Iterator[Floats]:
    """Optima of one release at about half the promise, plateaus as wide as the shift, with room to grow."""
    for share in STARTS:
        table = optimal_table([(epsilon * share, delta * FIRST_DELTA) for epsilon, delta in question.points])
        if table.tail is not None or len(table.half) * question.shift > MOST_PAIR_CELLS - 2:
            continue
        levels = np.array([table.centre, *table.half], dtype=np.float64) / TOTAL
        places = (np.arange(len(levels) * question.shift) + question.shift // 2) // question.shift
        half = levels[np.minimum(places, len(levels) - 1)]
        yield np.concatenate([half, half[-1] * np.exp(-DROP * np.arange(1.0, 3.0))])


def _certified(question: Question, ordered: Sequence[Candidate]) -> tuple[str, NoiseTable]:
    """The cheapest certified table among the candidates that are nearly the best."""
    tables: list[tuple[float, str, NoiseTable]] = []
    for found in ordered:
        if tables and found.cost > min(tables)[0] * (1 + NEAR_BEST):
            break
        try:
            table = LatticeLaw.of_candidate(question, found).tuned(question).certified(question)
        except BudgetRefused:
            continue
        tables.append((expected_cost(table, question.cost), found.name, table))
    if not tables:
        raise BudgetRefused(f"no integer table keeps {list(question.points)}; raise delta")
    _, name, table = min(tables, key=lambda one: one[:2])
    return name, table
