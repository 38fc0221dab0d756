"""Which answers are about the same rows, so that parts add up to totals whatever the table holds, and which are not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import chain, combinations
from operator import add, mul
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tightrope.documents.escaping import printable
from tightrope.mechanisms.discrete.scaled_noise import Widened
from tightrope.numerics.arrays import Floats
from tightrope.queries.accuracy import Accuracy
from tightrope.queries.intervals import OUTSIDE, Tails
from tightrope.queries.query import Question, Record
from tightrope.queries.query_group import Task
from tightrope.queries.statistics import Noise, Vector
from tightrope.tables.expressions.conditions import Logic, Member, Missing, Not
from tightrope.tables.expressions.expression import Term, facts_of
from tightrope.tables.expressions.leaves import Column
from tightrope.tables.expressions.tree import Tree
from tightrope.tables.schema import Schema

# What an answer's groups divide: each key column as an axis, and whether every row that counts is on it.
#
# Keys that are listed need not be all there are. An axis is ``whole`` only where the schema or the condition says so:
# an expression whose values are known (parts of a range with both open ends, months, cases, truth values, each with
# what is missing), or a condition that lets no other value pass.

COMPARED_ALIKE = ("text", "integer")
"""Kinds in which a condition and a key compare alike, where all that is listed is of that kind, too: of numbers and
instants, and of integers beside numbers, one may round and the other not.
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key column: what it is computed from, its groups, and whether each row that counts is in one of them.

    ``remedy``: in words, the condition that would make it so; none where none is proven to.
    """

    term: Term
    values: frozenset[object]
    whole: bool
    remedy: str = field(compare=False)


def axes_of(question: Question, schema: Schema) -> tuple[Axis, ...] | None:
    """An axis a key column of a settled question; None where groups are discovered or are no full grid of values."""
    if not question.asked.by:
        return ()
    if question.asked.keys is None or question.cell is not None or question.steps:
        return None
    columns = [frozenset(column) for column in zip(*question.asked.keys, strict=True)]
    if math.prod(map(len, columns)) != len(question.asked.keys):
        return None
    condition = question.asked.condition
    return tuple(
        Axis(term, values, _whole(term, values, condition, schema), _remedy(term, values, schema))
        for term, values in zip(question.asked.terms, columns, strict=True)
    )


def _remedy(term: Term, values: frozenset[object], schema: Schema) -> str:
    facts, own = facts_of(term, schema), _tree(term)
    if facts.keys is not None and set(facts.keys) - values == {None}:
        return f"where='{printable(str(Not(Missing(own))))}' in both leaves them out"
    if facts.kind in COMPARED_ALIKE and None not in values:
        return f"where='{printable(str(own))} in [...]' with that list in both leaves them out"
    return ""


def _tree(term: Term) -> Tree:
    return Column(term) if isinstance(term, str) else term


def _whole(term: Term, values: frozenset[object], condition: Term | None, schema: Schema) -> bool:
    """Whether no row for which the condition is true has another value than these."""
    facts, tests = facts_of(term, schema), list(_tests(condition))
    own = _tree(term)
    if facts.keys is not None:
        kept = facts.keys if Not(Missing(own)) not in tests else facts.keys[not facts.sure :]
        if values.issuperset(kept):
            return True
    if facts.kind not in COMPARED_ALIKE:
        return False
    members = (test.listed for test in tests if isinstance(test, Member) and test.part == own)
    return any(
        all(one.value in values and facts_of(one, schema).kind == facts.kind for one in listed) for listed in members
    )


def _tests(condition: Term | None) -> Iterator[Tree]:
    """Conditions that are all true of a row that counts."""
    if isinstance(condition, Logic) and condition.word == "and":
        yield from condition.conditions
    elif isinstance(condition, Tree):
        yield condition


MOST_JOINED, MOST_AXES, MOST_COLUMNS = 20_000, 30, 4
"""Groups and key columns of all answers that are made consistent with each other; key columns of one of them."""
DISCOVERED = "groups that are discovered may be withheld, and then the sum lacks them"
BOUNDED = "where a person has more rows than count, others of them may count in the one than in the other"
TOO_MANY = "together they have too many groups or key columns"


@dataclass(frozen=True, slots=True)
class Joined:
    """Answers about the same rows, by name. ``shared``: "groups" agree wherever they overlap, or only the "total" does.

    ``axes`` are what they divide the rows by: all values of each. ``own`` says which of them each answer has, by their
    places (no text tells them apart: columns may be called anything): one a key column, or, where they share the total
    alone, one for its whole key.
    """

    answers: tuple[str, ...]
    shared: Literal["groups", "total"]
    axes: tuple[tuple[object, ...], ...]
    own: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Sums:
    """What is made consistent, and why other answers that look like totals and parts are not: notes, by name."""

    joined: tuple[Joined, ...] = ()
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One answer whose values add up: its task, its vector, its axes (None: its groups are no full grid)."""

    question: Question
    task: Task
    vector: Vector
    axes: tuple[Axis, ...] | None

    @property
    def name(self) -> str:
        return self.question.asked.name

    @property
    def measured(self) -> object:
        measure = self.vector.measure
        return measure.column, measure.fixed_point, measure.beside, self.task.where

    @property
    def free(self) -> bool:
        """Whether each row is a person, so that no bound leaves out any."""
        return self.task.bounds.person is None

    @property
    def evenly(self) -> bool:
        """Whether as many rows of a person count as they have, up to one bound over all groups."""
        bounds, groups = self.task.bounds, 1 if self.task.keys is None else len(self.task.keys)
        return bounds.rows_per_group >= bounds.rows and bounds.groups >= min(bounds.rows, groups)

    @property
    def rows(self) -> object:
        """Answers with the same are about the same rows; None where that cannot be known.

        Each row a person: what passes the condition and is listed. Else the number of a person's rows that count is
        the same where nothing but one bound decides it – though which rows these are may differ.
        """
        if self.axes is None:
            return None
        if self.free:
            return self.measured, frozenset(axis for axis in self.axes if not axis.whole)
        counted = self.vector.measure.column is None and self.evenly and all(axis.whole for axis in self.axes)
        return (self.measured, self.task.bounds.rows) if counted else None


def related(tasks: Sequence[Task], schema: Schema) -> Sums:
    """What is proven from the schema, the questions and the bounds, before a row is read."""
    sides = list(_sides(tasks, schema))
    gathered: dict[object, list[_Side]] = {}
    for side in sides:
        if side.rows is not None:
            gathered.setdefault(side.rows, []).append(side)
    found = [_joined(own) for alike in gathered.values() for own in _connected(alike)]
    joined = tuple(one for one in found if _small(one))
    return Sums(joined, _apart(sides, joined))


def _sides(tasks: Sequence[Task], schema: Schema) -> Iterator[_Side]:
    for task in tasks:
        for question, vectors in task.served.items():
            if question.adds_up:
                (vector,) = vectors.values()
                yield _Side(question, task, vector, axes_of(question, schema))


def _connected(alike: list[_Side]) -> Iterator[list[_Side]]:
    """Those that hang together by one being a total of another; where only totals agree, with the total alone."""
    if not alike[0].free:
        if {bool(side.axes) for side in alike} == {True, False}:
            yield alike
        return
    left = list(alike)
    while left:
        own = [left.pop(0)]
        for side in own:  # grows
            near = [other for other in left if _nested(side, other) or _nested(other, side)]
            left = [other for other in left if other not in near]
            own += near
        if len(own) > 1:
            yield own


def _nested(total: _Side, parts: _Side) -> bool:
    return set(total.axes or ()) < set(parts.axes or ())


def _joined(own: list[_Side]) -> Joined:
    answers = tuple(side.name for side in own)
    if not own[0].free:
        divided = [side for side in own if side.question.asked.keys]
        each = tuple((divided.index(side),) if side in divided else () for side in own)
        return Joined(answers, "total", tuple(tuple(side.question.asked.keys or ()) for side in divided), each)
    places: dict[Axis, int] = {}
    for axis in (axis for side in own for axis in side.axes or ()):
        places.setdefault(axis, len(places))
    values = tuple(tuple(axis.values) for axis in places)
    return Joined(answers, "groups", values, tuple(tuple(places[a] for a in side.axes or ()) for side in own))


def _small(joined: Joined) -> bool:
    sizes = list(map(len, joined.axes))
    groups = sum(math.prod(sizes[axis] for axis in own) for own in joined.own)
    return groups <= MOST_JOINED and len(sizes) <= MOST_AXES and max(map(len, joined.own)) <= MOST_COLUMNS


def _apart(sides: Sequence[_Side], joined: Sequence[Joined]) -> dict[str, tuple[str, ...]]:
    """Notes on parts whose total is asked for, too, and is left alone."""
    found: dict[str, tuple[str, ...]] = {}
    for one, other in combinations(sides, 2):
        total, parts = (one, other) if len(one.question.asked.by) < len(other.question.asked.by) else (other, one)
        nested = set(total.question.asked.terms) < set(parts.question.asked.terms)
        together = any(total.name in own.answers and parts.name in own.answers for own in joined)
        if nested and total.measured == parts.measured and not together:
            note = f"its groups are not made to add up to {printable(total.name)}: {_why(total, parts)}"
            found[parts.name] = (*found.get(parts.name, ()), note)
    return found


def _why(total: _Side, parts: _Side) -> str:
    if any(side.question.asked.by and side.question.asked.keys is None for side in (total, parts)):
        return DISCOVERED
    if total.axes is None or parts.axes is None:
        return "the groups that are listed are not all combinations of their values"
    if total.rows is not None and total.rows == parts.rows:
        return TOO_MANY if total.free or not total.axes else BOUNDED
    loose = [axis for axis in parts.axes if not axis.whole and axis not in total.axes]
    if loose:
        return "; ".join(filter(None, ("rows of other groups count there", loose[0].remedy)))
    return BOUNDED if not total.free else "they list other groups"


# How far a weighted sum of independent noises lies from zero: intervals from the exact laws, not from a normal one.
#
# Z = Σ w_j X_j. Each w_j X_j is rounded to a grid of width h; the rounded ones are added up exactly, by one Fourier
# transform. What rounding leaves is a sum of n independent numbers within ± h/2 whose means are zero, because the
# laws are symmetric: it exceeds s at most 2 exp(−2 s² / (n h²)) of the time (Hoeffding). So do all other liberties
# enter, each as a probability that is taken from the 5 %: noise beyond the list, sums that the transform wraps around
# (bounded by their log moments), floats. ``docs/proofs/intervals.md``.

GRID_POINTS = 400
"""Points of the grid in a standard deviation at least, over the root of the number of noises."""
LISTED_DEVIATIONS = 10
"""Standard deviations that are listed on either side."""
BEYOND_ROUNDING = 1e-4
"""How often rounding to the grid may come to more than is allowed for."""
FLOATS, TRANSFORM = 1e-10, 2e-14
"""Relative errors of tail probabilities; of a transform, in the 2-norm."""
MOMENT_SLOPES = (0.5, 1.0, 1.25, 1.75, 2.5, 4.0)
"""Of log moments, over the standard deviation."""
MOST_LOST = 1e-2
"""Where more than this is not accounted for, nothing is said."""

Noisy = tuple[Widened, Fraction, int]
"""A noise, its weight, and how many there are of it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """``half``: |Z| exceeds it 5 % of the time at most. ``expected``: E|Z|. ``worst``: the largest |Z|.

    Units of the noises; each is ∞ where it has no bound, or none was found.
    """

    half: float
    expected: float
    worst: float


@lru_cache(maxsize=512)
def spread(terms: frozenset[Noisy]) -> Spread:
    """Of a sum of these noises, all independent and symmetric; the same in every process."""
    ordered = sorted(terms, key=lambda one: (one[1], one[2], one[0].mean_squared_error))
    noises = sum(count for *_, count in ordered)
    variance = sum(count * float(weight) ** 2 * noise.mean_squared_error for noise, weight, count in ordered)
    worst = sum(count * abs(float(weight)) * noise.worst_error for noise, weight, count in ordered)
    if variance == 0:
        return Spread(0.0, 0.0, worst)
    deviation = math.sqrt(variance)
    points = 1 << math.ceil(math.log2(2 * LISTED_DEVIATIONS * GRID_POINTS * math.sqrt(noises)))
    step = 2 * LISTED_DEVIATIONS * deviation / points
    laws = [(_on_grid(noise, abs(float(weight)) / step, points // 2), count) for noise, weight, count in ordered]
    # P(|sum| = 0), P(|sum| = 1), … up to half of `points`, where sums are taken modulo `points`.
    product = np.ones(points // 2 + 1)
    for law, added_count in laws:
        around = np.zeros(points)
        around[: len(law)] = law / 2
        around[1:] += around[:0:-1].copy()  # those below zero; zero itself is there once
        around[0] = law[0]
        product = product * np.fft.rfft(around).real ** added_count
    found = np.fft.irfft(product, points)
    added_half: Floats = np.concatenate([[found[0]], found[1 : points // 2] * 2])
    sums = np.maximum(added_half, 0.0)
    places = np.arange(len(sums))
    slack = step * math.sqrt(noises * math.log(2 / BEYOND_ROUNDING) / 2)
    # What is beyond the lists, and how often a sum is so large that it comes round to where intervals end.
    lost_deviation = deviation / step
    missing = sum(count * max(0.0, 1 - float(law.sum())) for law, count in laws)
    wraps = [_chernoff(laws, slope / lost_deviation, 0.75 * points) for slope in MOMENT_SLOPES]
    lost = (missing + min(1.0, *wraps)) + noises * (math.sqrt(points) * TRANSFORM + FLOATS) + BEYOND_ROUNDING
    held = np.cumsum(sums) - lost
    if lost > MOST_LOST or not held[-1] >= 1 - OUTSIDE:
        return Spread(math.inf, math.inf, worst)
    half = float(np.searchsorted(held, 1 - OUTSIDE)) * step + slack
    return Spread(min(half, worst) * (1 + FLOATS), float(places @ sums) * step, worst)


def _on_grid(noise: Widened, scale: float, points: int) -> Floats:
    """P(K = 0), P(|K| = 1), … of K = the whole number nearest to ``scale`` · X, up to ``points``; the rest is lost."""
    tails = Tails.of(noise)
    last = min(points, math.ceil(scale * tails.factor * (len(tails.table) + 1)) + 1)
    edges = np.ceil((np.arange(1, last + 2) - 0.5) / scale) - 1
    beyond = tails.beyond(edges)
    law: Floats = np.concatenate([[1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])])
    return np.maximum(law, 0.0)


def _chernoff(laws: list[tuple[Floats, int]], slope: float, beyond: float) -> float:
    """A bound on P(|sum| > ``beyond``): 2 e^{Σ log M(θ) − θ t}."""
    moments = (count * math.log(_moment(law, slope)) for law, count in laws)
    exponent = sum(moments) - slope * beyond
    return 2 * math.exp(min(exponent, 0.0))


def _moment(law: Floats, slope: float) -> float:
    """E e^{θ K} = Σ P(|K| = k) cosh(θ k)."""
    with np.errstate(over="ignore"):
        return float(law @ np.cosh(slope * np.arange(len(law))))


# Weighted least squares between tables of noisy numbers that count the same rows by different axes.
#
# Table q has axes S_q and independent noise of variance v_q in every cell. Its part along a set U ⊆ S_q is what is
# left of its margin over U when all means along axes of U are taken off. Parts along different U are orthogonal, and
# every table with U ⊆ S_q says the same of the part along U, with a variance in proportion to v_q · Π_{i ∈ S_q − U}
# d_i. So least squares weighs part by part, by one over that, and puts the parts together again: exactly, in
# fractions.

NO_WEIGHT = Fraction(0)
Axes = frozenset[int]
Table = NDArray[Any]
"""Fractions in one dimension an axis, of length 1 where a table does not have it."""


@dataclass(frozen=True, slots=True)
class Squares:
    """Tables over axes of these ``sizes``: which axes each has, and the variance of its noise."""

    sizes: tuple[int, ...]
    own: tuple[Axes, ...]
    variances: tuple[Fraction, ...]

    def fitted(self, tables: Sequence[Table]) -> list[Table]:
        """The tables that agree with each other and are nearest to these."""
        parts = {
            along: self._agreed(tables, along) for along in {along for axes in self.own for along in _within(axes)}
        }
        return [_sum(parts[along] / self._cells(own - along) for along in _within(own)) for own in self.own]

    def _agreed(self, tables: Sequence[Table], along: Axes) -> Table:
        weights = self._weights(along)
        return _sum(weight * self._project_axes(tables[place], place, along) for place, weight in weights.items())

    def _project_axes(self, table: Table, place: int, along: Axes) -> Table:
        for axis in self.own[place]:
            total = table.sum(axis=axis, keepdims=True)
            table = table - total / self.sizes[axis] if axis in along else total
        return table

    def _weights(self, along: Axes) -> dict[int, Fraction]:
        """How much each table that has these axes says of the part along them."""
        precise = {
            place: 1 / (variance * self._cells(own - along))
            for place, (own, variance) in enumerate(zip(self.own, self.variances, strict=True))
            if along <= own
        }
        return {place: weight / sum(precise.values()) for place, weight in precise.items()}

    def influences(self, place: int) -> Iterator[tuple[int, Fraction, int]]:
        """With which weights noise enters a fitted number of table ``place``: (table, weight, of how many cells).

        The same for every cell: what counts is on which of the shared axes another cell agrees with it.
        """
        weights = {along: self._weights(along) for along in _within(self.own[place])}
        for other in range(len(self.own)):
            shared, more = self.own[place] & self.own[other], self._cells(self.own[other] - self.own[place])
            for same in _within(shared):
                parts = (self._explained_share(place, along, same) * weights[along][other] for along in _within(shared))
                weight = sum(parts, start=NO_WEIGHT)
                cells = more * math.prod(self.sizes[axis] - 1 for axis in shared - same)
                if weight and cells:
                    yield other, weight, cells

    def _explained_share(self, place: int, along: Axes, same: Axes) -> Fraction:
        """What a cell's part along these axes says of another that agrees with it on the same ones."""
        kept = reduce(
            mul, (Fraction((axis in same) * self.sizes[axis] - 1, self.sizes[axis]) for axis in along), Fraction(1)
        )
        return kept / self._cells(self.own[place] - along)

    def _cells(self, axes: Axes) -> int:
        return math.prod(self.sizes[axis] for axis in axes)


def blank(sizes: Sequence[int], own: Axes) -> Table:
    """A table of zeros with these axes."""
    return np.full([size if axis in own else 1 for axis, size in enumerate(sizes)], NO_WEIGHT, dtype=object)


def _sum(tables: Iterable[Table]) -> Table:
    return reduce(add, tables)


def _within(axes: Axes) -> Iterator[Axes]:
    """Every subset."""
    return map(frozenset, chain.from_iterable(combinations(sorted(axes), size) for size in range(len(axes) + 1)))


# Noisy numbers of answers about the same rows, made consistent: their errors beforehand, their records afterwards.

SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_EVEN)
MUCH_LONGER = 1.02
"""How many times as long an interval may become: where noise is nearly always nothing, mixing it makes all longer."""
IN_DOUBLES = 2.0**-50
"""Of a value, by how much its interval is wider for what doubles round."""
LONE = "it is not made to agree with totals or parts: intervals would become longer"
Key = tuple[object, ...]
FITTED_STATEMENT = (
    "Least squares on what was released made these answers consistent: each value is its noisy number moved by known "
    "multiples of the others, weighted by one over the variances. It spends nothing. Intervals are those of that sum."
)


@dataclass(frozen=True, eq=False)  # not slotted: what is computed once is kept
class Fitted:
    """Least squares for one set of answers with these noises, one an answer."""

    joined: Joined
    noises: tuple[Noise, ...]

    @cached_property
    def variances(self) -> tuple[Decimal, ...]:
        """Those of the noises in squared steps, to six digits: any weights are right, these are nearly the best."""
        every = (noise.mechanism.mean_squared_error for noise in self.noises)
        return tuple(SIX_DIGITS.create_decimal_from_float(one) for one in every)

    @cached_property
    def squares(self) -> Squares:
        """The arithmetic, on axes by their places."""
        own = tuple(map(frozenset, self.joined.own))
        return Squares(tuple(map(len, self.joined.axes)), own, tuple(map(Fraction, self.variances)))

    @cached_property
    def spreads(self) -> dict[str, Spread]:
        """The noise in every number of each answer, in steps."""
        return {name: self._spread(place) for place, name in enumerate(self.joined.answers)}

    def _spread(self, place: int) -> Spread:
        terms: Counter[tuple[Widened, Fraction]] = Counter()
        for other, weight, cells in self.squares.influences(place):
            terms[self.noises[other].mechanism, abs(weight)] += cells
        return spread(frozenset((*noise, cells) for noise, cells in terms.items()))

    @property
    def helps(self) -> bool:
        """Whether some interval becomes shorter, and none much longer."""
        if not all(self.variances):
            return False
        widths = [(fitted.half, noise.half_width() / noise.step) for fitted, noise in self._spreads_and_noises]
        return all(new <= MUCH_LONGER * old for new, old in widths) and any(new < old for new, old in widths)

    @property
    def _spreads_and_noises(self) -> list[tuple[Spread, Noise]]:
        return list(zip(self.spreads.values(), self.noises, strict=True))

    def remaining_noise(self, name: str) -> FittedNoise:
        """What is left of the noise in one answer."""
        place = self.joined.answers.index(name)
        others = tuple(other for other in self.joined.answers if other != name)
        return FittedNoise(self.spreads[name], self.noises[place].step, others)

    def records(self, noisy: Mapping[str, Mapping[Key, int]]) -> dict[str, list[Record]]:
        """The records of each answer, in the order of its noisy integers, given by key."""
        tables = [self._table(place, noisy[name]) for place, name in enumerate(self.joined.answers)]
        found: dict[str, list[Record]] = {}
        for place, (name, table) in enumerate(zip(self.joined.answers, self.squares.fitted(tables), strict=True)):
            own = self.remaining_noise(name)
            found[name] = [own.record(table[self._cell(place, key)], integer) for key, integer in noisy[name].items()]
        return found

    def _table(self, place: int, noisy: Mapping[Key, int]) -> Table:
        table = blank(self.squares.sizes, self.squares.own[place])
        for key, integer in noisy.items():
            table[self._cell(place, key)] = Fraction(integer)
        return table

    def _cell(self, place: int, key: Key) -> tuple[int, ...]:
        """Where a key lies: on each axis that its answer has."""
        own = self.joined.own[place]
        entries = dict(zip(own, key if self.joined.shared == "groups" else (key,), strict=False))
        return tuple(places[entries[axis]] if axis in entries else 0 for axis, places in enumerate(self._places))

    @cached_property
    def _places(self) -> tuple[dict[object, int], ...]:
        return tuple({value: at for at, value in enumerate(values)} for values in self.joined.axes)

    def data(self) -> dict[str, Any]:
        """For the certificate."""
        return {
            "answers": list(self.joined.answers),
            "shared": self.joined.shared,
            "divided_by": [list(own) for own in self.joined.own],
            "variances": [str(variance) for variance in self.variances],
            "statement": FITTED_STATEMENT,
        }


@dataclass(frozen=True, slots=True)
class FittedNoise:
    """The noise that is left in each number of one answer, in its steps, and the answers that it agrees with."""

    spread: Spread
    step: float
    others: tuple[str, ...]

    @property
    def errors(self) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval, in natural units."""
        return self.spread.expected * self.step, self.spread.half * self.step

    @property
    def worst(self) -> float:
        """The largest error; ∞ without a bound."""
        return self.spread.worst * self.step

    @property
    def note(self) -> str:
        """What a reader must know."""
        others = " and ".join(map(printable, self.others))
        return f"least squares made it consistent with {others}: values need not be whole, 'noisy' is what was drawn"

    def record(self, fitted: Fraction, noisy: int) -> Record:
        """The fitted number as the nearest double, its interval rounded outwards, and the number as it was drawn."""
        value, half = float(fitted) * self.step, self.spread.half * self.step
        slack = abs(value) * IN_DOUBLES
        lower, upper = value - half - slack, value + half + slack
        drawn = noisy if self.step == 1 else noisy * self.step
        ends = {"lower": math.nextafter(lower, -math.inf), "upper": math.nextafter(upper, math.inf)}
        return {"value": value, **ends, "noisy": drawn}


def fitted(sums: Sums, accuracies: Sequence[Accuracy]) -> list[Fitted]:
    """Least squares for each set of answers about the same rows, whether it helps or not."""
    noises = {one.question.asked.name: one.noises[0] for one in accuracies}
    return [Fitted(joined, tuple(noises[name] for name in joined.answers)) for joined in sums.joined]


def lessened(sums: Sums, accuracies: Sequence[Accuracy]) -> list[Accuracy]:
    """The same with what least squares leave of the noise, and with notes on answers that they leave alone."""
    every = fitted(sums, accuracies)
    helped = {name: one.remaining_noise(name) for one in every if one.helps for name in one.joined.answers}
    lone = {name: (LONE,) for one in every if not one.helps for name in one.joined.answers}
    return [
        replace(one, lessened=helped.get(name), beside=(*lone.get(name, ()), *sums.apart.get(name, ())))
        for name, one in zip((one.question.asked.name for one in accuracies), accuracies, strict=True)
    ]
