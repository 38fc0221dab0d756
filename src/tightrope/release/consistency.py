"""Find answers about the same rows, whose parts add up to totals in every table, and make them consistent."""

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
from tightrope.tables.expressions.expression import Term, term_facts
from tightrope.tables.expressions.leaves import ColumnRef
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.schema import Schema

# The axes of an answer: its key columns, and whether every counted row has one of the listed values.
#
# Listed keys may be incomplete. An axis is ``covers_all_rows`` only if the schema or the condition proves it: an
# expression with a known set of values (bins with both open ends, months, cases, booleans, each with the missing
# value), or a condition that excludes all other values.

EXACTLY_COMPARED_KINDS = ("text", "integer")
"""Kinds for which a condition and a key compare values in the same way, if all listed values are of that kind, too.

With numbers, timestamps, or integers mixed with numbers, one of the two comparisons may round and the other not.
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key column: its term, its listed values, and whether each counted row has one of them (``covers_all_rows``).

    ``remedy``: a sentence with a condition that would make it cover all rows; empty if none is proven to.
    """

    term: Term
    values: frozenset[object]
    covers_all_rows: bool
    remedy: str = field(compare=False)


def axes_of(question: Query, schema: Schema) -> tuple[Axis, ...] | None:
    """Return one axis per key column of a resolved question.

    None if its groups are discovered, divided into cells, or not all combinations of their values.
    """
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
        facts, expression, remedy = term_facts(term, schema), _as_tree(term), ""
        if facts.possible_keys is not None and set(facts.possible_keys) - values == {None}:
            remedy = f"where='{escape_control_chars(str(Not(Missing(expression))))}' in both leaves them out"
        elif facts.kind in EXACTLY_COMPARED_KINDS and None not in values:
            remedy = f"where='{escape_control_chars(str(expression))} in [...]' with that list in both leaves them out"
        axes.append(Axis(term, values, covers_all_rows, remedy))
    return tuple(axes)


def _as_tree(term: Term) -> ExpressionTree:
    return ColumnRef(term) if isinstance(term, str) else term


def _covers_all_rows(term: Term, values: frozenset[object], condition: Term | None, schema: Schema) -> bool:
    """Return whether all rows for which the condition is true have one of these values."""
    facts, tests = term_facts(term, schema), _joined_conditions(condition)
    expression = _as_tree(term)
    if facts.possible_keys is not None:
        possible_values = (
            facts.possible_keys
            if Not(Missing(expression)) not in tests
            else facts.possible_keys[not facts.never_missing :]
        )
        if values.issuperset(possible_values):
            return True
    if facts.kind not in EXACTLY_COMPARED_KINDS:
        return False
    listed_values = (test.listed for test in tests if isinstance(test, Member) and test.part == expression)
    return any(
        all(literal.value in values and term_facts(literal, schema).kind == facts.kind for literal in listed)
        for listed in listed_values
    )


def _joined_conditions(condition: Term | None) -> list[ExpressionTree]:
    """Return the conditions that every counted row meets."""
    if isinstance(condition, Logic) and condition.word == "and":
        return list(condition.conditions)
    return [condition] if isinstance(condition, ExpressionTree) else []


MAX_GROUPS, MAX_AXES, MAX_KEY_COLUMNS = 20_000, 30, 4
"""Limits for a set of consistent answers: its groups, its different key columns, the key columns of one answer."""
DISCOVERED_REASON = "discovered groups can be suppressed, and would then be missing from the sum"
BOUNDED_REASON = "where a person has more rows than the bound, the two may use different rows of that person"
TOO_MANY_REASON = "together they have too many groups or key columns"


@dataclass(frozen=True, slots=True)
class ConsistentAnswers:
    """A set of answers about the same rows, by name.

    ``agreement_level``: "groups" if the answers agree in every group that they share, "total" if only in the total.
    ``axes``: the divisions of the rows, each with all its values. ``axes_by_answer``: the axes of each answer, as
    indexes into ``axes`` (names may be ambiguous): one per key column, or one for the whole key if only the total is
    shared.
    """

    answers: tuple[str, ...]
    agreement_level: Literal["groups", "total"]
    axes: tuple[tuple[object, ...], ...]
    axes_by_answer: tuple[tuple[int, ...], ...]

    @classmethod
    def from_connected(cls, connected: list[_AdditiveAnswer]) -> ConsistentAnswers:
        """Return the set of answers that are about the same rows; one is a total of another."""
        names = tuple(answer.query_name for answer in connected)
        if not connected[0].each_row_counts:
            return cls._from_total(names, connected)
        axis_indexes: dict[Axis, int] = {}
        for axis in (axis for answer in connected for axis in answer.axes or ()):
            axis_indexes.setdefault(axis, len(axis_indexes))
        values = tuple(tuple(axis.values) for axis in axis_indexes)
        return cls(
            names, "groups", values, tuple(tuple(axis_indexes[a] for a in answer.axes or ()) for answer in connected)
        )

    @classmethod
    def _from_total(cls, names: tuple[str, ...], connected: list[_AdditiveAnswer]) -> ConsistentAnswers:
        """Return the set of a total and of answers with groups, each of which adds up to the total."""
        grouped_answers = [answer for answer in connected if answer.question.asked.keys]
        keys = tuple(tuple(answer.question.asked.keys or ()) for answer in grouped_answers)
        axes = tuple((grouped_answers.index(answer),) if answer in grouped_answers else () for answer in connected)
        return cls(names, "total", keys, axes)

    @property
    def is_small_enough(self) -> bool:
        """Return whether the numbers of groups and of key columns are within the limits."""
        sizes = list(map(len, self.axes))
        groups = sum(math.prod(sizes[axis] for axis in axes) for axes in self.axes_by_answer)
        return groups <= MAX_GROUPS and len(sizes) <= MAX_AXES and max(map(len, self.axes_by_answer)) <= MAX_KEY_COLUMNS


@dataclass(frozen=True, slots=True)
class ConsistencyPlan:
    """The sets of answers to make consistent, and notes, by name, why other totals and parts are left unchanged."""

    joined: tuple[ConsistentAnswers, ...] = ()
    notes_by_answer: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _AdditiveAnswer:
    """An answer whose values add up, with its axes (None if ``axes_of`` finds none)."""

    question: Query
    query_group: QueryGroup
    vector: NoisyStatistic
    axes: tuple[Axis, ...] | None

    @property
    def query_name(self) -> str:
        return self.question.asked.name

    @property
    def measured_quantity(self) -> object:
        measure = self.vector.measure
        return measure.column, measure.fixed_point, measure.second_column, self.query_group.where

    @property
    def each_row_counts(self) -> bool:
        """Return whether each row is a person, so that all rows are used."""
        return self.query_group.bounds.person_column is None

    @property
    def bounded_by_rows_only(self) -> bool:
        """Return whether ``max_rows`` is the only bound on a person's rows that has an effect."""
        bounds, groups = self.query_group.bounds, 1 if self.query_group.keys is None else len(self.query_group.keys)
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
        counts_bounded_rows = (
            self.vector.measure.column is None
            and self.bounded_by_rows_only
            and all(axis.covers_all_rows for axis in self.axes)
        )
        return (self.measured_quantity, self.query_group.bounds.max_rows) if counts_bounded_rows else None

    def is_total_of(self, parts: _AdditiveAnswer) -> bool:
        """Return whether the other answer divides the rows of this one further."""
        return set(self.axes or ()) < set(parts.axes or ())

    def reason_against_sum(self, parts: _AdditiveAnswer) -> str:
        """Return why the groups of ``parts`` need not add up to this answer."""
        if any(side.question.asked.by and side.question.asked.keys is None for side in (self, parts)):
            return DISCOVERED_REASON
        if self.axes is None or parts.axes is None:
            return "the listed groups are not all combinations of their values"
        if self.row_set_key is not None and self.row_set_key == parts.row_set_key:
            return TOO_MANY_REASON if self.each_row_counts or not self.axes else BOUNDED_REASON
        incomplete_axes = [axis for axis in parts.axes if not axis.covers_all_rows and axis not in self.axes]
        if incomplete_axes:
            return "; ".join(filter(None, ("rows of other groups count there", incomplete_axes[0].remedy)))
        return BOUNDED_REASON if not self.each_row_counts else "they list other groups"


def find_related_answers(query_groups: Sequence[QueryGroup], schema: Schema) -> ConsistencyPlan:
    """Return the answers proven to be about the same rows, from the schema, the questions and the bounds only."""
    additive_answers: list[_AdditiveAnswer] = []
    for query_group in query_groups:
        for question, vectors in query_group.vectors_by_query.items():
            # Rounded answers would not add up after rounding, and persons are not rows.
            if question.adds_up and question.asked.round_to is None and question.asked.per_person is None:
                (vector,) = vectors.values()
                additive_answers.append(_AdditiveAnswer(question, query_group, vector, axes_of(question, schema)))
    answers_by_rows: dict[object, list[_AdditiveAnswer]] = {}
    for additive_answer in additive_answers:
        if additive_answer.row_set_key is not None:
            answers_by_rows.setdefault(additive_answer.row_set_key, []).append(additive_answer)
    answer_sets = [
        ConsistentAnswers.from_connected(connected)
        for same_rows in answers_by_rows.values()
        for connected in _connected_answers(same_rows)
    ]
    consistent_sets = tuple(answer_set for answer_set in answer_sets if answer_set.is_small_enough)
    return ConsistencyPlan(consistent_sets, _inconsistency_notes(additive_answers, consistent_sets))


def _connected_answers(same_rows: list[_AdditiveAnswer]) -> Iterator[list[_AdditiveAnswer]]:
    """Yield sets of answers with equal ``row_set_key``, connected because one is a total of another.

    If each person can have several rows, only totals agree: then all of them are one set.
    """
    if not same_rows[0].each_row_counts:
        if {bool(answer.axes) for answer in same_rows} == {True, False}:
            yield same_rows
        return
    unconnected = list(same_rows)
    while unconnected:
        connected = [unconnected.pop(0)]
        for answer in connected:  # grows
            related = [other for other in unconnected if answer.is_total_of(other) or other.is_total_of(answer)]
            unconnected = [other for other in unconnected if other not in related]
            connected += related
        if len(connected) > 1:
            yield connected


def _inconsistency_notes(
    additive_answers: Sequence[_AdditiveAnswer], consistent_sets: Sequence[ConsistentAnswers]
) -> dict[str, tuple[str, ...]]:
    """Return notes on parts that are not made consistent with a total in the same plan."""
    notes_by_name: dict[str, tuple[str, ...]] = {}
    for first, second in combinations(additive_answers, 2):
        total, parts = (
            (first, second) if len(first.question.asked.by) < len(second.question.asked.by) else (second, first)
        )
        is_nested = set(total.question.asked.terms) < set(parts.question.asked.terms)
        is_consistent = any(
            total.query_name in answer_set.answers and parts.query_name in answer_set.answers
            for answer_set in consistent_sets
        )
        if is_nested and total.measured_quantity == parts.measured_quantity and not is_consistent:
            note = (
                f"Its groups need not add up to {escape_control_chars(total.query_name)}: "
                f"{total.reason_against_sum(parts)}."
            )
            notes_by_name[parts.query_name] = (*notes_by_name.get(parts.query_name, ()), note)
    return notes_by_name


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
"""The grid covers this many standard deviations of the sum on either side."""
ROUNDING_PROBABILITY = 1e-4
"""Maximum probability that rounding to the grid exceeds its allowance."""
FLOAT_ERROR, TRANSFORM_ERROR = 1e-10, 2e-14
"""Relative error bounds: of tail probabilities, and of a Fourier transform in the 2-norm."""
MOMENT_SLOPES = (0.5, 1.0, 1.25, 1.75, 2.5, 4.0)
"""Slopes θ at which the log moments are computed, times the standard deviation of the sum."""
MAX_LOST_PROBABILITY = 1e-2
"""If more probability than this is unaccounted for, no interval is given."""

WeightedNoise = tuple[WidenedNoise, Fraction, int]
"""A noise, its weight, and its multiplicity."""


@dataclass(frozen=True, slots=True)
class SumSpread:
    """The spread of a sum Z of noises, in their units; ∞ if unbounded, or if no bound was found.

    ``half_width``: |Z| exceeds it with probability at most 5 %. ``expected_error``: E|Z|. ``worst_error``: the largest
    |Z|.
    """

    half_width: float
    expected_error: float
    worst_error: float


@lru_cache(maxsize=512)
def spread_of_sum(terms: frozenset[WeightedNoise]) -> SumSpread:
    """Return the spread of a sum of these independent, symmetric noises; identical in every process."""
    ordered = sorted(terms, key=lambda term: (term[1], term[2], term[0].mean_squared_error))
    noise_count = sum(count for *_, count in ordered)
    variance = sum(count * float(weight) ** 2 * noise.mean_squared_error for noise, weight, count in ordered)
    worst_error = sum(count * abs(float(weight)) * noise.worst_error for noise, weight, count in ordered)
    if variance == 0:
        return SumSpread(0.0, 0.0, worst_error)
    deviation = math.sqrt(variance)
    points = 1 << math.ceil(math.log2(2 * LISTED_DEVIATIONS * GRID_POINTS * math.sqrt(noise_count)))
    step = 2 * LISTED_DEVIATIONS * deviation / points
    distributions = [
        (_on_grid(noise, abs(float(weight)) / step, points // 2), count) for noise, weight, count in ordered
    ]
    # P(|sum| = 0), P(|sum| = 1), … up to half of `points`, where sums are taken modulo `points`.
    product = np.ones(points // 2 + 1)
    for probabilities, added_count in distributions:
        circular = np.zeros(points)
        circular[: len(probabilities)] = probabilities / 2
        circular[1:] += circular[:0:-1].copy()  # negative values; zero occurs once
        circular[0] = probabilities[0]
        product = product * np.fft.rfft(circular).real ** added_count
    sum_probabilities = np.fft.irfft(product, points)
    half_probabilities: Floats = np.concatenate([[sum_probabilities[0]], sum_probabilities[1 : points // 2] * 2])
    magnitude_probabilities = np.maximum(half_probabilities, 0.0)
    magnitudes = np.arange(len(magnitude_probabilities))
    rounding_allowance = step * math.sqrt(noise_count * math.log(2 / ROUNDING_PROBABILITY) / 2)
    # The probability beyond the grid, and a bound on sums so large that they wrap around to the ends of intervals.
    lost_deviation = deviation / step
    missing = sum(count * max(0.0, 1 - float(probabilities.sum())) for probabilities, count in distributions)
    wraps = [_chernoff_bound(distributions, slope / lost_deviation, 0.75 * points) for slope in MOMENT_SLOPES]
    lost = (
        (missing + min(1.0, *wraps))
        + noise_count * (math.sqrt(points) * TRANSFORM_ERROR + FLOAT_ERROR)
        + ROUNDING_PROBABILITY
    )
    covered = np.cumsum(magnitude_probabilities) - lost
    if lost > MAX_LOST_PROBABILITY or not covered[-1] >= 1 - OUTSIDE:
        return SumSpread(math.inf, math.inf, worst_error)
    half = float(np.searchsorted(covered, 1 - OUTSIDE)) * step + rounding_allowance
    return SumSpread(
        min(half, worst_error) * (1 + FLOAT_ERROR), float(magnitudes @ magnitude_probabilities) * step, worst_error
    )


def _on_grid(noise: WidenedNoise, scale: float, points: int) -> Floats:
    """Return P(K = 0), P(|K| = 1), … of K = the integer nearest to ``scale`` · X, truncated at ``points``."""
    tails = NoiseTails.from_noise(noise)
    last_point = min(points, math.ceil(scale * tails.factor * (len(tails.table) + 1)) + 1)
    edges = np.ceil((np.arange(1, last_point + 2) - 0.5) / scale) - 1
    beyond = tails.tail_probability(edges)
    probabilities: Floats = np.concatenate([[1 - 2 * beyond[0]], 2 * (beyond[:-1] - beyond[1:])])
    return np.maximum(probabilities, 0.0)


def _chernoff_bound(distributions: list[tuple[Floats, int]], slope: float, beyond: float) -> float:
    """Return a bound on P(|sum| > ``beyond``): 2 e^{Σ log M(θ) − θ t}, with M(θ) = Σ P(|K| = k) cosh(θ k)."""
    with np.errstate(over="ignore"):
        moments = [
            count * math.log(float(probabilities @ np.cosh(slope * np.arange(len(probabilities)))))
            for probabilities, count in distributions
        ]
    exponent = sum(moments) - slope * beyond
    return 2 * math.exp(min(exponent, 0.0))


# Weighted least squares between tables of noisy numbers that count the same rows by different axes.
#
# Table q has axes S_q and independent noise of variance v_q in every cell. Its part along a set U ⊆ S_q is its margin
# over U minus all means along axes of U. Parts along different U are orthogonal, and every table with U ⊆ S_q
# estimates the same part along U, with a variance proportional to v_q · Π_{i ∈ S_q − U} d_i. So least squares weights
# each part by the inverse of that variance and adds the parts up again, exactly, in fractions.

ZERO = Fraction(0)
Axes = frozenset[int]
Table = NDArray[Any]
"""Fractions with one dimension per axis, of length 1 for axes that the table lacks."""


@dataclass(frozen=True, slots=True)
class LeastSquares:
    """The least-squares problem of tables over axes of these ``sizes``, with the axes and noise variance of each."""

    sizes: tuple[int, ...]
    axes_by_table: tuple[Axes, ...]
    variances: tuple[Fraction, ...]

    def fit_tables(self, tables: Sequence[Table]) -> list[Table]:
        """Return the consistent tables nearest to these."""
        parts = {
            along: self._agreed_part(tables, along)
            for along in {along for axes in self.axes_by_table for along in _all_subsets(axes)}
        }
        return [
            _sum_tables(parts[along] / self._cell_count(own_axes - along) for along in _all_subsets(own_axes))
            for own_axes in self.axes_by_table
        ]

    def _agreed_part(self, tables: Sequence[Table], along: Axes) -> Table:
        weights = self._precision_weights(along)
        return _sum_tables(
            weight * self._project_axes(tables[table_index], table_index, along)
            for table_index, weight in weights.items()
        )

    def _project_axes(self, table: Table, table_index: int, along: Axes) -> Table:
        for axis in self.axes_by_table[table_index]:
            total = table.sum(axis=axis, keepdims=True)
            table = table - total / self.sizes[axis] if axis in along else total
        return table

    def _precision_weights(self, along: Axes) -> dict[int, Fraction]:
        """Return, for each table that has the axes ``along``, its weight in the estimate of the part along them."""
        precisions = {
            table_index: 1 / (variance * self._cell_count(table_axes - along))
            for table_index, (table_axes, variance) in enumerate(zip(self.axes_by_table, self.variances, strict=True))
            if along <= table_axes
        }
        return {table_index: weight / sum(precisions.values()) for table_index, weight in precisions.items()}

    def noise_influences(self, table_index: int) -> Iterator[tuple[int, Fraction, int]]:
        """Yield the weights of all noises in a fitted number of one table: (table, weight, number of cells).

        They are the same for every fitted number: the weight of a noisy cell depends only on the shared axes on which
        it has the same values.
        """
        weights = {along: self._precision_weights(along) for along in _all_subsets(self.axes_by_table[table_index])}
        for other in range(len(self.axes_by_table)):
            shared, cells_of_extra_axes = (
                self.axes_by_table[table_index] & self.axes_by_table[other],
                self._cell_count(self.axes_by_table[other] - self.axes_by_table[table_index]),
            )
            for same in _all_subsets(shared):
                parts = (
                    self._explained_share(table_index, along, same) * weights[along][other]
                    for along in _all_subsets(shared)
                )
                weight = sum(parts, start=ZERO)
                cells = cells_of_extra_axes * math.prod(self.sizes[axis] - 1 for axis in shared - same)
                if weight and cells:
                    yield other, weight, cells

    def _explained_share(self, table_index: int, along: Axes, same: Axes) -> Fraction:
        """Return the coefficient of a noisy cell in the part ``along`` of a cell that agrees with it on ``same``."""
        coefficient = reduce(
            mul, (Fraction((axis in same) * self.sizes[axis] - 1, self.sizes[axis]) for axis in along), Fraction(1)
        )
        return coefficient / self._cell_count(self.axes_by_table[table_index] - along)

    def _cell_count(self, axes: Axes) -> int:
        return math.prod(self.sizes[axis] for axis in axes)


def zero_table(sizes: Sequence[int], table_axes: Axes) -> Table:
    """Return a table of zeros with these axes."""
    return np.full([size if axis in table_axes else 1 for axis, size in enumerate(sizes)], ZERO, dtype=object)


def _sum_tables(tables: Iterable[Table]) -> Table:
    return reduce(add, tables)


def _all_subsets(axes: Axes) -> Iterator[Axes]:
    """Yield every subset."""
    return map(frozenset, chain.from_iterable(combinations(sorted(axes), size) for size in range(len(axes) + 1)))


# Consistent answers about the same rows: their errors before the release, their records after it.

SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_EVEN)
MAX_LENGTHENING = 1.02
"""Maximum lengthening of an interval, as a ratio: adding noise that is nearly always zero lengthens all intervals."""
DOUBLE_ROUNDING = 2.0**-50
"""Relative widening of an interval for the rounding of doubles."""
NOT_ADJUSTED_NOTE = "Not adjusted to add up with totals or parts: its intervals would become longer."
Key = tuple[object, ...]
FITTED_STATEMENT = (
    "Weighted least squares on the noisy numbers makes these answers add up: each value is a weighted sum of the noisy "
    "numbers, with weights from the variances. This uses no privacy budget. The intervals are computed for that sum."
)


@dataclass(frozen=True, eq=False)  # not slotted: for cached properties
class ConsistentFit:
    """Least squares for one set of answers, with one noise per answer."""

    joined: ConsistentAnswers
    noises: tuple[Noise, ...]

    @cached_property
    def noise_variances(self) -> tuple[Decimal, ...]:
        """The noise variances in squared steps, to six digits: any weights are valid, these are nearly optimal."""
        variances = (noise.noise_mechanism.mean_squared_error for noise in self.noises)
        return tuple(SIX_DIGITS.create_decimal_from_float(variance) for variance in variances)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The least-squares problem, with axes identified by index."""
        axes_by_answer = tuple(map(frozenset, self.joined.axes_by_answer))
        return LeastSquares(
            tuple(map(len, self.joined.axes)), axes_by_answer, tuple(map(Fraction, self.noise_variances))
        )

    @cached_property
    def spreads_by_answer(self) -> dict[str, SumSpread]:
        """The spread of the noise that remains in each answer, by name, in steps."""
        return {name: self._fitted_spread(answer_index) for answer_index, name in enumerate(self.joined.answers)}

    def _fitted_spread(self, answer_index: int) -> SumSpread:
        terms: Counter[tuple[WidenedNoise, Fraction]] = Counter()
        for other, weight, cells in self.least_squares.noise_influences(answer_index):
            terms[self.noises[other].noise_mechanism, abs(weight)] += cells
        return spread_of_sum(frozenset((*noise, cells) for noise, cells in terms.items()))

    @property
    def shortens_intervals(self) -> bool:
        """Return whether some interval becomes shorter, and each at most ``MAX_LENGTHENING`` times as long."""
        if not all(self.noise_variances):
            return False
        widths = [
            (spread.half_width, noise.half_width() / noise.step_size) for spread, noise in self._spreads_and_noises
        ]
        return all(new <= MAX_LENGTHENING * old for new, old in widths) and any(new < old for new, old in widths)

    @property
    def _spreads_and_noises(self) -> list[tuple[SumSpread, Noise]]:
        return list(zip(self.spreads_by_answer.values(), self.noises, strict=True))

    def remaining_noise(self, name: str) -> FittedNoise:
        """Return the noise that remains in one answer."""
        answer_index = self.joined.answers.index(name)
        others = tuple(other for other in self.joined.answers if other != name)
        return FittedNoise(self.spreads_by_answer[name], self.noises[answer_index].step_size, others)

    def fitted_records(self, noisy: Mapping[str, Mapping[Key, int]]) -> dict[str, list[Record]]:
        """Return the records of each answer, in the order of its noisy integers, which are given by key."""
        tables = [self._noisy_table(answer_index, noisy[name]) for answer_index, name in enumerate(self.joined.answers)]
        records_by_name: dict[str, list[Record]] = {}
        for answer_index, (name, table) in enumerate(
            zip(self.joined.answers, self.least_squares.fit_tables(tables), strict=True)
        ):
            remaining_noise = self.remaining_noise(name)
            records_by_name[name] = [
                remaining_noise.fitted_record(table[self._cell_index(answer_index, key)], integer)
                for key, integer in noisy[name].items()
            ]
        return records_by_name

    def _noisy_table(self, answer_index: int, noisy: Mapping[Key, int]) -> Table:
        table = zero_table(self.least_squares.sizes, self.least_squares.axes_by_table[answer_index])
        for key, integer in noisy.items():
            table[self._cell_index(answer_index, key)] = Fraction(integer)
        return table

    def _cell_index(self, answer_index: int, key: Key) -> tuple[int, ...]:
        """Return the array index of a key."""
        answer_axes = self.joined.axes_by_answer[answer_index]
        value_by_axis = dict(zip(answer_axes, key if self.joined.agreement_level == "groups" else (key,), strict=False))
        return tuple(
            index_by_value[value_by_axis[axis]] if axis in value_by_axis else 0
            for axis, index_by_value in enumerate(self._axis_positions)
        )

    @cached_property
    def _axis_positions(self) -> tuple[dict[object, int], ...]:
        return tuple({value: index for index, value in enumerate(values)} for values in self.joined.axes)

    def certificate_data(self) -> dict[str, Any]:
        """Return the entry for the certificate."""
        return {
            "answers": list(self.joined.answers),
            "shared": self.joined.agreement_level,
            "divided_by": [list(axes) for axes in self.joined.axes_by_answer],
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
        value, half_width = float(fitted) * self.step, self.spread.half_width * self.step
        rounding = abs(value) * DOUBLE_ROUNDING
        lower, upper = value - half_width - rounding, value + half_width + rounding
        noisy_value = noisy if self.step == 1 else noisy * self.step
        interval = {"lower": math.nextafter(lower, -math.inf), "upper": math.nextafter(upper, math.inf)}
        return {"value": value, **interval, "noisy": noisy_value}


def with_remaining_noise(
    sums: ConsistencyPlan, accuracies: Sequence[Accuracy], fits: Sequence[ConsistentFit]
) -> list[Accuracy]:
    """Return the accuracies with the noise that remains after least squares, and with notes on unchanged answers."""
    noise_by_name = {
        name: fit.remaining_noise(name) for fit in fits if fit.shortens_intervals for name in fit.joined.answers
    }
    notes_by_name = {
        name: (NOT_ADJUSTED_NOTE,) for fit in fits if not fit.shortens_intervals for name in fit.joined.answers
    }
    return [
        replace(
            accuracy,
            remaining_noise=noise_by_name.get(name),
            related_notes=(*notes_by_name.get(name, ()), *sums.notes_by_answer.get(name, ())),
        )
        for name, accuracy in zip((accuracy.question.asked.name for accuracy in accuracies), accuracies, strict=True)
    ]
