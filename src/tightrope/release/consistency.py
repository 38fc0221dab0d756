"""Find answers about the same rows, whose parts add up to totals for any table, and make them consistent."""

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

from tightrope.documents.escaping import escape_control_chars
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.numerics.arrays import Floats
from tightrope.queries.accuracy import Accuracy
from tightrope.queries.intervals import OUTSIDE, NoiseTails
from tightrope.queries.query import Query, Record
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import Noise, NoisyStatistic
from tightrope.tables.expressions.conditions import Logic, Member, Missing, Not
from tightrope.tables.expressions.expression import Term, facts_of
from tightrope.tables.expressions.leaves import ColumnRef
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.schema import Schema

# The axes of an answer: its key columns, and whether every counted row has one of the listed values.
#
# Listed keys may be incomplete. An axis is ``covers_all_rows`` only if the schema or the condition proves it: an
# expression with a known set of values (bins with both open ends, months, cases, booleans, each with the missing
# value), or a condition that excludes all other values.

COMPARED_ALIKE = ("text", "integer")
"""Kinds for which a condition and a key compare values equally, if all listed values are of that kind, too. With
numbers, timestamps, or integers mixed with numbers, one of the two comparisons may round and the other not.
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key column: its term, its listed values, and whether each counted row has one of them (``covers_all_rows``).

    ``remedy``: a sentence with the condition that would make it whole; empty if no such condition is proven to.
    """

    term: Term
    values: frozenset[object]
    covers_all_rows: bool
    remedy: str = field(compare=False)


def axes_of(question: Query, schema: Schema) -> tuple[Axis, ...] | None:
    """Return one axis per key column of a resolved question; None if groups are discovered or not a full grid."""
    if not question.asked.by:
        return ()
    if question.asked.keys is None or question.cell_expression is not None or question.row_count_steps:
        return None
    columns = [frozenset(column) for column in zip(*question.asked.keys, strict=True)]
    if math.prod(map(len, columns)) != len(question.asked.keys):
        return None
    axes = []
    for term, values in zip(question.asked.terms, columns, strict=True):
        covers_all_rows = _covers_all_rows(term, values, question.asked.row_condition, schema)
        facts, own, remedy = facts_of(term, schema), _as_tree(term), ""
        if facts.possible_keys is not None and set(facts.possible_keys) - values == {None}:
            remedy = f"where='{escape_control_chars(str(Not(Missing(own))))}' in both leaves them out"
        elif facts.kind in COMPARED_ALIKE and None not in values:
            remedy = f"where='{escape_control_chars(str(own))} in [...]' with that list in both leaves them out"
        axes.append(Axis(term, values, covers_all_rows, remedy))
    return tuple(axes)


def _as_tree(term: Term) -> ExpressionTree:
    return ColumnRef(term) if isinstance(term, str) else term


def _covers_all_rows(term: Term, values: frozenset[object], condition: Term | None, schema: Schema) -> bool:
    """Return whether all rows for which the condition is true have one of these values."""
    facts, tests = facts_of(term, schema), list(_required_conditions(condition))
    own = _as_tree(term)
    if facts.possible_keys is not None:
        kept = facts.possible_keys if Not(Missing(own)) not in tests else facts.possible_keys[not facts.never_missing :]
        if values.issuperset(kept):
            return True
    if facts.kind not in COMPARED_ALIKE:
        return False
    members = (test.listed for test in tests if isinstance(test, Member) and test.part == own)
    return any(
        all(one.value in values and facts_of(one, schema).kind == facts.kind for one in listed) for listed in members
    )


def _required_conditions(condition: Term | None) -> Iterator[ExpressionTree]:
    """Yield the conditions that every counted row meets."""
    if isinstance(condition, Logic) and condition.word == "and":
        yield from condition.conditions
    elif isinstance(condition, ExpressionTree):
        yield condition


MOST_JOINED, MOST_AXES, MOST_COLUMNS = 20_000, 30, 4
"""Limits for answers that are made consistent: their groups, their key columns, and the key columns of one answer."""
DISCOVERED = "discovered groups can be suppressed, and would then be missing from the sum"
BOUNDED = "where a person has more rows than the bound, the two may use different rows of that person"
TOO_MANY = "together they have too many groups or key columns"


@dataclass(frozen=True, slots=True)
class ConsistentAnswers:
    """Answers about the same rows, by name.

    ``agreement_level``: "groups" agree where they overlap, or only the "total".

    ``axes`` are the divisions of the rows, each with all its values. ``own`` lists the axes of each answer by their
    indexes (names may be ambiguous): one per key column, or one for the whole key if only the total is shared.
    """

    answers: tuple[str, ...]
    agreement_level: Literal["groups", "total"]
    axes: tuple[tuple[object, ...], ...]
    axes_by_answer: tuple[tuple[int, ...], ...]

    @property
    def is_small_enough(self) -> bool:
        """Return whether the numbers of groups and of key columns are within the limits."""
        sizes = list(map(len, self.axes))
        groups = sum(math.prod(sizes[axis] for axis in own) for own in self.axes_by_answer)
        return groups <= MOST_JOINED and len(sizes) <= MOST_AXES and max(map(len, self.axes_by_answer)) <= MOST_COLUMNS


@dataclass(frozen=True, slots=True)
class ConsistencyPlan:
    """The sets of answers to make consistent, and notes, by name, why other totals and parts are left unchanged."""

    joined: tuple[ConsistentAnswers, ...] = ()
    notes_by_answer: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _AdditiveAnswer:
    """One answer whose values add up: its task, its vector, its axes (None if its groups are not a full grid)."""

    question: Query
    task: QueryGroup
    vector: NoisyStatistic
    axes: tuple[Axis, ...] | None

    @property
    def query_name(self) -> str:
        return self.question.asked.name

    @property
    def measured_quantity(self) -> object:
        measure = self.vector.measure
        return measure.column, measure.fixed_point, measure.second_column, self.task.where

    @property
    def each_row_counts(self) -> bool:
        """Return whether each row is a person, so that all rows are kept."""
        return self.task.bounds.person_column is None

    @property
    def bounded_by_rows_only(self) -> bool:
        """Return whether all rows of a person count, up to one bound over all groups."""
        bounds, groups = self.task.bounds, 1 if self.task.keys is None else len(self.task.keys)
        return bounds.max_rows_per_group >= bounds.max_rows and bounds.max_groups >= min(bounds.max_rows, groups)

    @property
    def row_set_key(self) -> object:
        """Return a key that is equal for answers about the same rows; None if that cannot be proven.

        If each row is a person: the rows that pass the condition and are listed. Otherwise the number of a person's
        counted rows is equal if only one bound limits it, although the rows themselves may differ.
        """
        if self.axes is None:
            return None
        if self.each_row_counts:
            return self.measured_quantity, frozenset(axis for axis in self.axes if not axis.covers_all_rows)
        counted = (
            self.vector.measure.column is None
            and self.bounded_by_rows_only
            and all(axis.covers_all_rows for axis in self.axes)
        )
        return (self.measured_quantity, self.task.bounds.max_rows) if counted else None

    def is_total_of(self, parts: _AdditiveAnswer) -> bool:
        """Return whether the other answer divides the rows of this one further."""
        return set(self.axes or ()) < set(parts.axes or ())

    def reason_against_sum(self, parts: _AdditiveAnswer) -> str:
        """Return why the groups of ``parts`` need not add up to this answer."""
        if any(side.question.asked.by and side.question.asked.keys is None for side in (self, parts)):
            return DISCOVERED
        if self.axes is None or parts.axes is None:
            return "the listed groups are not all combinations of their values"
        if self.row_set_key is not None and self.row_set_key == parts.row_set_key:
            return TOO_MANY if self.each_row_counts or not self.axes else BOUNDED
        loose = [axis for axis in parts.axes if not axis.covers_all_rows and axis not in self.axes]
        if loose:
            return "; ".join(filter(None, ("rows of other groups count there", loose[0].remedy)))
        return BOUNDED if not self.each_row_counts else "they list other groups"


def find_related_answers(tasks: Sequence[QueryGroup], schema: Schema) -> ConsistencyPlan:
    """Return the answers proven to be about the same rows, from the schema, the questions and the bounds only."""
    sides: list[_AdditiveAnswer] = []
    for task in tasks:
        for question, vectors in task.vectors_by_query.items():
            if question.adds_up:
                (vector,) = vectors.values()
                sides.append(_AdditiveAnswer(question, task, vector, axes_of(question, schema)))
    gathered: dict[object, list[_AdditiveAnswer]] = {}
    for side in sides:
        if side.row_set_key is not None:
            gathered.setdefault(side.row_set_key, []).append(side)
    found = [_join_answers(own) for alike in gathered.values() for own in _connected_answers(alike)]
    joined = tuple(one for one in found if one.is_small_enough)
    return ConsistencyPlan(joined, _inconsistency_notes(sides, joined))


def _connected_answers(alike: list[_AdditiveAnswer]) -> Iterator[list[_AdditiveAnswer]]:
    """Yield sets of answers connected by one being a total of another; if only totals agree, all of them at once."""
    if not alike[0].each_row_counts:
        if {bool(side.axes) for side in alike} == {True, False}:
            yield alike
        return
    left = list(alike)
    while left:
        own = [left.pop(0)]
        for side in own:  # grows
            near = [other for other in left if side.is_total_of(other) or other.is_total_of(side)]
            left = [other for other in left if other not in near]
            own += near
        if len(own) > 1:
            yield own


def _join_answers(own: list[_AdditiveAnswer]) -> ConsistentAnswers:
    answers = tuple(side.query_name for side in own)
    if not own[0].each_row_counts:
        divided = [side for side in own if side.question.asked.keys]
        each = tuple((divided.index(side),) if side in divided else () for side in own)
        return ConsistentAnswers(
            answers, "total", tuple(tuple(side.question.asked.keys or ()) for side in divided), each
        )
    places: dict[Axis, int] = {}
    for axis in (axis for side in own for axis in side.axes or ()):
        places.setdefault(axis, len(places))
    values = tuple(tuple(axis.values) for axis in places)
    return ConsistentAnswers(
        answers, "groups", values, tuple(tuple(places[a] for a in side.axes or ()) for side in own)
    )


def _inconsistency_notes(
    sides: Sequence[_AdditiveAnswer], joined: Sequence[ConsistentAnswers]
) -> dict[str, tuple[str, ...]]:
    """Return notes on parts that are not made consistent with a total in the same plan."""
    found: dict[str, tuple[str, ...]] = {}
    for one, other in combinations(sides, 2):
        total, parts = (one, other) if len(one.question.asked.by) < len(other.question.asked.by) else (other, one)
        nested = set(total.question.asked.terms) < set(parts.question.asked.terms)
        together = any(total.query_name in own.answers and parts.query_name in own.answers for own in joined)
        if nested and total.measured_quantity == parts.measured_quantity and not together:
            note = (
                f"Its groups need not add up to {escape_control_chars(total.query_name)}: "
                f"{total.reason_against_sum(parts)}."
            )
            found[parts.query_name] = (*found.get(parts.query_name, ()), note)
    return found


# Quantiles of a weighted sum of independent noises: from the exact distributions, without a normal approximation.
#
# Z = Σ w_j X_j. Each w_j X_j is rounded to a grid of width h; the rounded terms are added up exactly, by one Fourier
# transform. The rounding error is a sum of n independent numbers within ± h/2 with mean zero, because the
# distributions are symmetric: it exceeds s with probability at most 2 exp(−2 s² / (n h²)) (Hoeffding). The other
# errors are also subtracted, as probabilities, from the 5 %: noise beyond the list, sums that the transform wraps
# around (bounded by their log moments), floating-point errors. ``docs/proofs/intervals.md``.

GRID_POINTS = 400
"""Minimum number of grid points per standard deviation, divided by the square root of the number of noises."""
LISTED_DEVIATIONS = 10
"""The list covers this many standard deviations on either side."""
BEYOND_ROUNDING = 1e-4
"""Maximum probability that rounding to the grid exceeds its allowance."""
FLOATS, TRANSFORM = 1e-10, 2e-14
"""Relative error bounds: of tail probabilities, and of a transform in the 2-norm."""
MOMENT_SLOPES = (0.5, 1.0, 1.25, 1.75, 2.5, 4.0)
"""Slopes of the log moments, times the standard deviation."""
MOST_LOST = 1e-2
"""If more probability than this is unaccounted for, no interval is given."""

Noisy = tuple[WidenedNoise, Fraction, int]
"""A noise, its weight, and its multiplicity."""


@dataclass(frozen=True, slots=True)
class SumSpread:
    """``half_width``: |Z| exceeds it in at most 5 %. ``expected_error``: E|Z|. ``worst_error``: the largest |Z|.

    In units of the noises; ∞ if unbounded, or if no bound was found.
    """

    half_width: float
    expected_error: float
    worst_error: float


@lru_cache(maxsize=512)
def spread_of_sum(terms: frozenset[Noisy]) -> SumSpread:
    """Return the spread of a sum of these independent, symmetric noises; identical in every process."""
    ordered = sorted(terms, key=lambda one: (one[1], one[2], one[0].mean_squared_error))
    noises = sum(count for *_, count in ordered)
    variance = sum(count * float(weight) ** 2 * noise.mean_squared_error for noise, weight, count in ordered)
    worst = sum(count * abs(float(weight)) * noise.worst_error for noise, weight, count in ordered)
    if variance == 0:
        return SumSpread(0.0, 0.0, worst)
    deviation = math.sqrt(variance)
    points = 1 << math.ceil(math.log2(2 * LISTED_DEVIATIONS * GRID_POINTS * math.sqrt(noises)))
    step = 2 * LISTED_DEVIATIONS * deviation / points
    laws = [(_on_grid(noise, abs(float(weight)) / step, points // 2), count) for noise, weight, count in ordered]
    # P(|sum| = 0), P(|sum| = 1), … up to half of `points`, where sums are taken modulo `points`.
    product = np.ones(points // 2 + 1)
    for law, added_count in laws:
        around = np.zeros(points)
        around[: len(law)] = law / 2
        around[1:] += around[:0:-1].copy()  # negative values; zero occurs once
        around[0] = law[0]
        product = product * np.fft.rfft(around).real ** added_count
    found = np.fft.irfft(product, points)
    added_half: Floats = np.concatenate([[found[0]], found[1 : points // 2] * 2])
    sums = np.maximum(added_half, 0.0)
    places = np.arange(len(sums))
    slack = step * math.sqrt(noises * math.log(2 / BEYOND_ROUNDING) / 2)
    # The probability beyond the lists, and a bound on sums so large that they wrap around to the ends of intervals.
    lost_deviation = deviation / step
    missing = sum(count * max(0.0, 1 - float(law.sum())) for law, count in laws)
    wraps = [_chernoff_bound(laws, slope / lost_deviation, 0.75 * points) for slope in MOMENT_SLOPES]
    lost = (missing + min(1.0, *wraps)) + noises * (math.sqrt(points) * TRANSFORM + FLOATS) + BEYOND_ROUNDING
    held = np.cumsum(sums) - lost
    if lost > MOST_LOST or not held[-1] >= 1 - OUTSIDE:
        return SumSpread(math.inf, math.inf, worst)
    half = float(np.searchsorted(held, 1 - OUTSIDE)) * step + slack
    return SumSpread(min(half, worst) * (1 + FLOATS), float(places @ sums) * step, worst)


def _on_grid(noise: WidenedNoise, scale: float, points: int) -> Floats:
    """Return P(K = 0), P(|K| = 1), … of K = the integer nearest to ``scale`` · X, truncated at ``points``."""
    tails = NoiseTails.from_noise(noise)
    last = min(points, math.ceil(scale * tails.factor * (len(tails.table) + 1)) + 1)
    edges = np.ceil((np.arange(1, last + 2) - 0.5) / scale) - 1
    beyond = tails.tail_probability(edges)
    law: Floats = np.concatenate([[1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])])
    return np.maximum(law, 0.0)


def _chernoff_bound(laws: list[tuple[Floats, int]], slope: float, beyond: float) -> float:
    """Return a bound on P(|sum| > ``beyond``): 2 e^{Σ log M(θ) − θ t}, with M(θ) = Σ P(|K| = k) cosh(θ k)."""
    with np.errstate(over="ignore"):
        moments = [count * math.log(float(law @ np.cosh(slope * np.arange(len(law))))) for law, count in laws]
    exponent = sum(moments) - slope * beyond
    return 2 * math.exp(min(exponent, 0.0))


# Weighted least squares between tables of noisy numbers that count the same rows by different axes.
#
# Table q has axes S_q and independent noise of variance v_q in every cell. Its part along a set U ⊆ S_q is its margin
# over U minus all means along axes of U. Parts along different U are orthogonal, and every table with U ⊆ S_q
# estimates the same part along U, with a variance proportional to v_q · Π_{i ∈ S_q − U} d_i. So least squares weights
# each part by the inverse of that variance and adds the parts up again, exactly, in fractions.

NO_WEIGHT = Fraction(0)
Axes = frozenset[int]
Table = NDArray[Any]
"""Fractions with one dimension per axis, of length 1 for axes that the table lacks."""


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """Tables over axes of these ``sizes``, with the axes and the noise variance of each."""

    sizes: tuple[int, ...]
    own: tuple[Axes, ...]
    variances: tuple[Fraction, ...]

    def fit_tables(self, tables: Sequence[Table]) -> list[Table]:
        """Return the consistent tables nearest to these."""
        parts = {
            along: self._agreed_part(tables, along)
            for along in {along for axes in self.own for along in _all_subsets(axes)}
        }
        return [
            _sum_tables(parts[along] / self._cell_count(own - along) for along in _all_subsets(own)) for own in self.own
        ]

    def _agreed_part(self, tables: Sequence[Table], along: Axes) -> Table:
        weights = self._precision_weights(along)
        return _sum_tables(
            weight * self._project_axes(tables[place], place, along) for place, weight in weights.items()
        )

    def _project_axes(self, table: Table, place: int, along: Axes) -> Table:
        for axis in self.own[place]:
            total = table.sum(axis=axis, keepdims=True)
            table = table - total / self.sizes[axis] if axis in along else total
        return table

    def _precision_weights(self, along: Axes) -> dict[int, Fraction]:
        """Return the weight of each table that has these axes in the estimate of the part along them."""
        precise = {
            place: 1 / (variance * self._cell_count(own - along))
            for place, (own, variance) in enumerate(zip(self.own, self.variances, strict=True))
            if along <= own
        }
        return {place: weight / sum(precise.values()) for place, weight in precise.items()}

    def noise_influences(self, place: int) -> Iterator[tuple[int, Fraction, int]]:
        """Yield the weights of the noise in a fitted number of table ``place``: (table, weight, number of cells).

        They are equal for every cell: they depend only on the shared axes on which another cell agrees with it.
        """
        weights = {along: self._precision_weights(along) for along in _all_subsets(self.own[place])}
        for other in range(len(self.own)):
            shared, more = self.own[place] & self.own[other], self._cell_count(self.own[other] - self.own[place])
            for same in _all_subsets(shared):
                parts = (
                    self._explained_share(place, along, same) * weights[along][other] for along in _all_subsets(shared)
                )
                weight = sum(parts, start=NO_WEIGHT)
                cells = more * math.prod(self.sizes[axis] - 1 for axis in shared - same)
                if weight and cells:
                    yield other, weight, cells

    def _explained_share(self, place: int, along: Axes, same: Axes) -> Fraction:
        """Return a cell's coefficient in the part along these axes of a cell with the same values on ``same``."""
        kept = reduce(
            mul, (Fraction((axis in same) * self.sizes[axis] - 1, self.sizes[axis]) for axis in along), Fraction(1)
        )
        return kept / self._cell_count(self.own[place] - along)

    def _cell_count(self, axes: Axes) -> int:
        return math.prod(self.sizes[axis] for axis in axes)


def zero_table(sizes: Sequence[int], own: Axes) -> Table:
    """Return a table of zeros with these axes."""
    return np.full([size if axis in own else 1 for axis, size in enumerate(sizes)], NO_WEIGHT, dtype=object)


def _sum_tables(tables: Iterable[Table]) -> Table:
    return reduce(add, tables)


def _all_subsets(axes: Axes) -> Iterator[Axes]:
    """Yield every subset."""
    return map(frozenset, chain.from_iterable(combinations(sorted(axes), size) for size in range(len(axes) + 1)))


# Consistent answers about the same rows: their errors before the release, their records after it.

SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_EVEN)
MUCH_LONGER = 1.02
"""Maximum growth of an interval, as a ratio: mixing noise that is nearly always zero makes all intervals longer."""
IN_DOUBLES = 2.0**-50
"""Relative widening of an interval for the rounding of doubles."""
LONE = "Not adjusted to add up with totals or parts: its intervals would become longer."
Key = tuple[object, ...]
FITTED_STATEMENT = (
    "Weighted least squares on the noisy numbers makes these answers add up: each value is a weighted sum of the noisy "
    "numbers, with weights from the variances. This uses no privacy budget. The intervals are computed for that sum."
)


@dataclass(frozen=True, eq=False)  # not slotted: what is computed once is kept
class ConsistentFit:
    """Least squares for one set of answers, with one noise per answer."""

    joined: ConsistentAnswers
    noises: tuple[Noise, ...]

    @cached_property
    def noise_variances(self) -> tuple[Decimal, ...]:
        """The noise variances in squared steps, to six digits: any weights are valid, these are nearly optimal."""
        every = (noise.noise_mechanism.mean_squared_error for noise in self.noises)
        return tuple(SIX_DIGITS.create_decimal_from_float(one) for one in every)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The least-squares problem, with axes identified by index."""
        own = tuple(map(frozenset, self.joined.axes_by_answer))
        return LeastSquares(tuple(map(len, self.joined.axes)), own, tuple(map(Fraction, self.noise_variances)))

    @cached_property
    def spreads_by_answer(self) -> dict[str, SumSpread]:
        """The distribution summary of the fitted noise of each answer, by name, in steps."""
        return {name: self._fitted_spread(place) for place, name in enumerate(self.joined.answers)}

    def _fitted_spread(self, place: int) -> SumSpread:
        terms: Counter[tuple[WidenedNoise, Fraction]] = Counter()
        for other, weight, cells in self.least_squares.noise_influences(place):
            terms[self.noises[other].noise_mechanism, abs(weight)] += cells
        return spread_of_sum(frozenset((*noise, cells) for noise, cells in terms.items()))

    @property
    def shortens_intervals(self) -> bool:
        """Return whether some interval becomes shorter, and each at most ``MUCH_LONGER`` times as long."""
        if not all(self.noise_variances):
            return False
        widths = [
            (fitted.half_width, noise.half_width() / noise.step_size) for fitted, noise in self._spreads_and_noises
        ]
        return all(new <= MUCH_LONGER * old for new, old in widths) and any(new < old for new, old in widths)

    @property
    def _spreads_and_noises(self) -> list[tuple[SumSpread, Noise]]:
        return list(zip(self.spreads_by_answer.values(), self.noises, strict=True))

    def remaining_noise(self, name: str) -> FittedNoise:
        """Return the noise that remains in one answer."""
        place = self.joined.answers.index(name)
        others = tuple(other for other in self.joined.answers if other != name)
        return FittedNoise(self.spreads_by_answer[name], self.noises[place].step_size, others)

    def fitted_records(self, noisy: Mapping[str, Mapping[Key, int]]) -> dict[str, list[Record]]:
        """Return the records of each answer, in the order of its noisy integers, which are given by key."""
        tables = [self._noisy_table(place, noisy[name]) for place, name in enumerate(self.joined.answers)]
        found: dict[str, list[Record]] = {}
        for place, (name, table) in enumerate(
            zip(self.joined.answers, self.least_squares.fit_tables(tables), strict=True)
        ):
            own = self.remaining_noise(name)
            found[name] = [
                own.fitted_record(table[self._cell_index(place, key)], integer) for key, integer in noisy[name].items()
            ]
        return found

    def _noisy_table(self, place: int, noisy: Mapping[Key, int]) -> Table:
        table = zero_table(self.least_squares.sizes, self.least_squares.own[place])
        for key, integer in noisy.items():
            table[self._cell_index(place, key)] = Fraction(integer)
        return table

    def _cell_index(self, place: int, key: Key) -> tuple[int, ...]:
        """Return the array index of a key."""
        own = self.joined.axes_by_answer[place]
        entries = dict(zip(own, key if self.joined.agreement_level == "groups" else (key,), strict=False))
        return tuple(
            places[entries[axis]] if axis in entries else 0 for axis, places in enumerate(self._axis_positions)
        )

    @cached_property
    def _axis_positions(self) -> tuple[dict[object, int], ...]:
        return tuple({value: at for at, value in enumerate(values)} for values in self.joined.axes)

    def certificate_data(self) -> dict[str, Any]:
        """Return the entry for the certificate."""
        return {
            "answers": list(self.joined.answers),
            "shared": self.joined.agreement_level,
            "divided_by": [list(own) for own in self.joined.axes_by_answer],
            "variances": [str(variance) for variance in self.noise_variances],
            "statement": FITTED_STATEMENT,
        }


@dataclass(frozen=True, slots=True)
class FittedNoise:
    """The noise that remains in each number of one answer, in its steps, and the answers that it agrees with."""

    spread: SumSpread
    step: float
    others: tuple[str, ...]

    @property
    def expected_error(self) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval, in natural units."""
        return self.spread.expected_error * self.step, self.spread.half_width * self.step

    @property
    def worst_error(self) -> float:
        """The largest possible error, or ∞."""
        return self.spread.worst_error * self.step

    @property
    def reader_note(self) -> str:
        """The note that is shown with the answer."""
        others = " and ".join(map(escape_control_chars, self.others))
        return f"Adjusted to add up to {others}, so it can be a fraction; the raw noisy number is in 'noisy'."

    def fitted_record(self, fitted: Fraction, noisy: int) -> Record:
        """Return the fitted number as the nearest double, its interval rounded outwards, and the raw noisy number."""
        value, half = float(fitted) * self.step, self.spread.half_width * self.step
        slack = abs(value) * IN_DOUBLES
        lower, upper = value - half - slack, value + half + slack
        drawn = noisy if self.step == 1 else noisy * self.step
        ends = {"lower": math.nextafter(lower, -math.inf), "upper": math.nextafter(upper, math.inf)}
        return {"value": value, **ends, "noisy": drawn}


def fit_consistent_answers(sums: ConsistencyPlan, accuracies: Sequence[Accuracy]) -> list[ConsistentFit]:
    """Return the least-squares fit for each set of answers about the same rows, including fits that do not help."""
    noises = {one.question.asked.name: one.own_noises[0] for one in accuracies}
    return [ConsistentFit(joined, tuple(noises[name] for name in joined.answers)) for joined in sums.joined]


def with_remaining_noise(sums: ConsistencyPlan, accuracies: Sequence[Accuracy]) -> list[Accuracy]:
    """Return the accuracies with the noise that remains after least squares, and with notes on unchanged answers."""
    every = fit_consistent_answers(sums, accuracies)
    helped = {name: one.remaining_noise(name) for one in every if one.shortens_intervals for name in one.joined.answers}
    lone = {name: (LONE,) for one in every if not one.shortens_intervals for name in one.joined.answers}
    return [
        replace(
            one, remaining_noise=helped.get(name), beside=(*lone.get(name, ()), *sums.notes_by_answer.get(name, ()))
        )
        for name, one in zip((one.question.asked.name for one in accuracies), accuracies, strict=True)
    ]
