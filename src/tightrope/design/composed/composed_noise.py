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

import numpy as np

from tightrope.certificates.budget import Budget
from tightrope.design.composed.candidates import Candidate, candidate
from tightrope.design.composed.composed_question import Question
from tightrope.design.composed.lattice_table import HEIGHT_VARIANCE, LatticeLaw
from tightrope.design.composed.polish import polished
from tightrope.design.composed.pure_composed import expected_cost, pure_noise
from tightrope.design.composed.shapes import tuned
from tightrope.design.composed.two_releases import MOST_PAIR_CELLS, paired
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_request import Promise
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.families.family import Family, Shaped
from tightrope.mechanisms.families.registry import offered
from tightrope.mechanisms.tables.integer_optimum import optimal_table
from tightrope.mechanisms.tables.integer_weights import LARGEST_STEP
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import whole
from tightrope.randomness.choice import TOTAL

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
    question = _question(budget, releases, sensitivity, cost)
    if question.releases == 1 and question.shift == 1:
        table = optimal_table(question.points)
        return _only(CLOSED_FORM, table, question)
    if any(delta == 0 for _, delta in question.points):
        return _only(*pure_noise(question), question)
    found, refused = _candidates(question)
    if not found:
        raise BudgetRefused("; ".join(sorted({str(reason) for reason in refused.values()})))
    best = min(found, key=lambda one: one.cost)
    if _worth_polishing(question, best):
        found.append(_optimised(question, best))
    winner, table = _certified(question, sorted(found, key=lambda one: one.cost))
    costs: dict[str, float | str] = {one.name: one.cost for one in found}
    realised = expected_cost(table, question.cost)
    return ComposedNoise(table, winner, realised, {**costs, **refused, winner: realised}, winner == POLISHED)


def _question(budget: Budget, releases: int, sensitivity: int, cost: str | Callable[[float], float]) -> Question:
    """What is asked, checked."""
    releases = whole("releases", releases)
    if not releases <= MOST_RELEASES:
        raise InputError("releases", releases, f"at most {MOST_RELEASES}", "Gaussian noise is best for so many")
    points = tuple(_point(point, releases) for point in Promise.of(budget).points)
    return Question(points, releases, whole("sensitivity", sensitivity), Cost.of(cost))


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


def _worth_polishing(question: Question, best: Candidate) -> bool:
    """Whether the weights themselves are optimised: not for endless tables, nor for so many releases."""
    return question.releases <= MOST_POLISHED and len(best.half) * question.shift <= MOST_POLISHED_CELLS


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
