"""Groups of queries that share a pass over the table, and the noisy vectors that each query needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Self

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.noise.worst_split import Alternative, CompositionGroup, SplitBounds
from tightrope.queries.column_query import ALL_ROWS
from tightrope.queries.options import MOST_KEYS, Keys
from tightrope.queries.query import Query
from tightrope.queries.statistics import NoisyStatistic, row_count
from tightrope.tables.expressions.disjoint import condition_alternatives, exclude_each_other
from tightrope.tables.expressions.expression import Term, resolve_term, term_facts
from tightrope.tables.expressions.leaves import TIME_KINDS, PersonValue, find_person_value
from tightrope.tables.group_keys import check_key_kinds
from tightrope.tables.request import ContributionBounds, DistinctCount, Request
from tightrope.tables.schema import Kind, Schema

FLOAT_KINDS = (None, "number")
"""The kinds of values among which there may be floats."""
NUMERIC_KINDS = ("integer", "number", "boolean")
MAX_QUESTIONS = 100
"""Maximum number of queries in a plan: planning that many takes half a minute."""
KEY_COUNT = "rows"
"""Name of the statistic that determines which discovered keys are shown."""


@dataclass(frozen=True, eq=False)  # not slotted: for cached properties
class QueryGroup:
    """Queries over the same groups with the same bounds: one pass over the table, composed jointly."""

    is_marginal: ClassVar[bool] = False
    """True for the tables of a ``marginals`` question (``MarginalGroup``)."""

    vectors_by_query: Mapping[Query, Mapping[str, NoisyStatistic]]
    """The vectors of each query, by their name in the query."""
    by: tuple[Term, ...]
    keys: tuple[tuple[object, ...], ...] | None
    bounds: ContributionBounds
    where: Term | None
    cells_per_group: int | None
    """The number of cells in which each group is counted; None if groups are not divided into cells."""
    key_count: NoisyStatistic | None
    """The count that determines which discovered keys are shown; charged once, and shared by every count of rows."""
    diagnostic_counts: tuple[NoisyStatistic, ...] = ()
    """Vectors over all groups (``over_all_groups``) that measure the bias from bounding and clamping."""
    queries_by_diagnostic: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the queries that each of ``diagnostic_counts`` is about."""
    row_count_steps: tuple[int, ...] = ()
    """For counts of people by their number of rows: these numbers, which are the keys; empty for other queries."""
    person_value: PersonValue | None = None
    """The value of each person that the queries are about; None if they are about rows."""
    query_positions: tuple[int, ...] = ()
    """Original index of each query in the plan; answers are returned in that order."""
    alternative: Alternative | None = None
    """If each row is a person: which set of conditions that exclude each other has ``where``, and at which position."""

    @classmethod
    def from_queries(
        cls,
        queries_by_position: Mapping[int, Query],
        privacy_unit: PrivacyUnit,
        person_term: Term | None,
        *,
        weighted: bool,
        share_sums: Container[Query] = (),
    ) -> Self:
        """Return the group of these resolved queries, which have the same rows, groups, keys and bounds.

        ``person_term`` is the column or expression that identifies the person of a row. ``weighted``: as in
        ``group_queries``. ``share_sums``: the queries that may use statistics of others (``share_statistics``).
        """
        questions, positions = tuple(queries_by_position.values()), tuple(queries_by_position)
        first = questions[0]
        keys, key_count = _counted_keys(first), None
        if keys is None:
            # The count that decides which keys are shown has the least noise among the row counts of the queries.
            sizes = [
                vector.noise_spec.eighths
                for query in questions
                for vector in _statistics_of(query, weighted=weighted)
                if vector.counts_rows
            ]
            usual_count = row_count(KEY_COUNT, 1.0)
            spec = replace(
                usual_count.noise_spec, eighths=min(sizes, default=usual_count.noise_spec.eighths), needs_bound=True
            )
            key_count = replace(usual_count, noise_spec=spec)
        questions = tuple(
            (question.share_statistics(questions) if question in share_sums else question).specialize(questions)
            for question in questions
        )
        bounds = replace(bounds_for_query(privacy_unit, first), person_column=person_term)
        where = first.asked.row_condition
        vectors_by_query: dict[Query, Mapping[str, NoisyStatistic]] = {}
        for number, question in enumerate(questions):
            vectors: dict[str, NoisyStatistic] = {}
            for statistic in _statistics_of(question, weighted=weighted):
                vector = statistic
                if statistic.over_all_groups:  # a person contributes all of their rows
                    vector = replace(vector, sensitivity=statistic.sensitivity * bounds.max_rows)
                if statistic.block is None:  # counts of cells are shared by all queries that use the same ones
                    vector = vector.with_name(f"{number} {statistic.statistic_name}")
                vectors[statistic.statistic_name] = key_count if key_count and statistic.counts_rows else vector
            vectors_by_query[question] = MappingProxyType(vectors)
        vectors_by_query = vectors_by_query if weighted else _with_shared_statistics(vectors_by_query)
        cells = None if first.cell_expression is None else first.cell_expression.cell_count
        return cls(
            MappingProxyType(vectors_by_query),
            _grouping_terms(first),
            keys,
            bounds,
            where,
            cells,
            key_count,
            row_count_steps=first.row_count_steps,
            person_value=None if first.asked.per_person is None else _person_value(first),
            query_positions=positions,
        )

    @cached_property
    def ordered_queries(self) -> tuple[Query, ...]:
        """The queries, in order."""
        return tuple(self.vectors_by_query)

    @property
    def measured_text(self) -> str:
        """What the vectors count, beyond their groups, for digests of plans; empty for all but ``MarginalGroup``."""
        return ""

    @property
    def counts_persons(self) -> bool:
        """Return whether each person is one row, computed from all of theirs: no row is left out."""
        return bool(self.row_count_steps) or self.person_value is not None

    @cached_property
    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Every noisy vector once, in the order of the draws: key count, vectors by query, ``diagnostic_counts``."""
        key_counts = () if self.key_count is None else (self.key_count,)
        query_vectors = (vector for vectors in self.vectors_by_query.values() for vector in vectors.values())
        return tuple(dict.fromkeys((*key_counts, *query_vectors, *self.diagnostic_counts)))

    def answered_by(self, vector: NoisyStatistic) -> tuple[str, ...]:
        """Return the names of the queries that use a vector, or that a diagnostic count is about.

        All queries use the key count.
        """
        names = (
            query.asked.name
            for query, vectors in self.vectors_by_query.items()
            if vector in (self.key_count, *vectors.values())
        )
        return self.queries_by_diagnostic.get(vector.statistic_name) or tuple(names)

    @cached_property
    def table_request(self) -> Request:
        """The request to the table backend."""
        measures = tuple(vector.measure for vector in self.noisy_statistics)
        keys = ((),) if self.row_count_steps else self.keys
        return Request(self.by, keys, self.bounds, measures, self.where, self.row_count_steps, self.person_value)

    def grouping_terms(self, vector: NoisyStatistic) -> tuple[Term, ...]:
        """Return the columns of the groups in which a vector is counted: ``by``, except in a ``MarginalGroup``."""
        del vector
        return self.by

    def group_contribution(self, cells: int = 1) -> SplitBounds:
        """Return the contribution of one person to the groups, each with ``cells`` cells."""
        groups = 1 if not self.by else self.bounds.max_groups
        return SplitBounds(self.bounds.max_rows, self.bounds.max_rows_per_group, groups * cells)

    def set_contribution(self, vector_set: Sequence[NoisyStatistic]) -> SplitBounds:
        """Return the contribution of one person to the groups of a composition set.

        If the set counts all groups together, a person changes one vector of the set, by at most the sensitivity of
        that vector. A choice depends on all cells of a group, regardless of the cells that contain a person's rows.
        """
        if vector_set[0].over_all_groups:
            return SplitBounds(1, 1, len(vector_set))
        if vector_set[0].choice is not None:
            return SplitBounds(
                self.bounds.max_rows,
                self.bounds.max_rows_per_group,
                min(self.bounds.max_groups, self.choice_group_count),
            )
        return self.group_contribution(1 if vector_set[0].disjoint_set is None else len(vector_set))

    @property
    def choice_group_count(self) -> int:
        """The number of groups in which a choice is made; the keys list each group once per cell."""
        return 1 if self.keys is None or self.cells_per_group is None else len(self.keys) // self.cells_per_group

    @cached_property
    def composition_sets(self) -> tuple[tuple[NoisyStatistic, ...], ...]:
        """The vectors of each composition group: those that one row changes together, and each disjoint set."""
        labels = dict.fromkeys(vector.disjoint_set for vector in self.noisy_statistics)
        first_label = [None] if None in labels else []
        ordered_labels = (*first_label, *(label for label in labels if label is not None))
        return tuple(tuple(v for v in self.noisy_statistics if v.disjoint_set == label) for label in ordered_labels)

    @cached_property
    def joint_draws_by_set(self) -> tuple[tuple[tuple[NoisyStatistic, ...], ...], ...]:
        """The vectors of each of ``composition_sets`` by noise draw: a single vector, a disjoint set, or one box."""
        draws_by_set: list[tuple[tuple[NoisyStatistic, ...], ...]] = []
        for vector_set in self.composition_sets:
            joint_vectors = tuple(vector for vector in vector_set if vector.joint_noise)
            separate_draws = tuple(
                joint_vectors if vector.joint_noise else (vector,)
                for vector in vector_set
                if vector not in joint_vectors[1:]
            )
            draws_by_set.append((vector_set,) if vector_set[0].disjoint_set is not None else separate_draws)
        return tuple(draws_by_set)

    @cached_property
    def composition_groups(self) -> tuple[CompositionGroup, ...]:
        """The composition groups, one per set; m vectors of a disjoint set count as one with m cells per group."""
        groups = []
        for vector_set, draws in zip(self.composition_sets, self.joint_draws_by_set, strict=True):
            # A box is one noise of several numbers; each row enters only one vector of a disjoint set.
            noise_specs = tuple(
                draw[0].noise_spec.to_joint_noise(len(draw)) if draw[0].joint_noise else draw[0].noise_spec
                for draw in draws
            )
            contribution = self.set_contribution(vector_set)
            groups.append(CompositionGroup(noise_specs, contribution, alternative=self.alternative))
        return tuple(groups)


def _statistics_of(query: Query, *, weighted: bool) -> tuple[NoisyStatistic, ...]:
    """Return the noisy vectors of a query, with the relative sizes of its own weight or of weight 1."""
    asked = query.asked if weighted else replace(query.asked, weight=1.0)
    return query.with_fields(asked=asked).noisy_statistics()


def _with_shared_statistics(
    vectors_by_query: Mapping[Query, Mapping[str, NoisyStatistic]],
) -> dict[Query, Mapping[str, NoisyStatistic]]:
    """Return the vectors of all queries, those of equal measures merged into one with their smallest noise size.

    Each row changes the merged one once, so that it is charged once. Answers that add up keep vectors of their own,
    because least squares needs independent noise; so do numbers that may share the noise of a box.
    """
    shared: dict[object, NoisyStatistic] = {}
    for question, vectors in vectors_by_query.items():
        for vector in vectors.values():
            if (key := _sharing_key(question, vector)) is not None:
                first = shared.setdefault(key, vector)
                eighths = min(first.noise_spec.eighths, vector.noise_spec.eighths)
                shared[key] = replace(first, noise_spec=replace(first.noise_spec, eighths=eighths))
    return {
        question: MappingProxyType(
            {name: shared.get(_sharing_key(question, vector), vector) for name, vector in vectors.items()}
        )
        for question, vectors in vectors_by_query.items()
    }


def _sharing_key(question: Query, vector: NoisyStatistic) -> object:
    """Return a key that is equal for vectors of equal integers, or None for a vector that is not shared."""
    has_own_draw = vector.choice is not None or vector.block is not None or vector.disjoint_set is not None
    is_separate = question.adds_up or question.boxes or vector.over_all_groups or has_own_draw
    if is_separate or vector.counts_rows:
        return None
    measure = vector.measure
    return type(measure), measure.column, measure.fixed_point, measure.second_column, vector.sensitivity


def declared_bounds(privacy_unit: PrivacyUnit) -> ContributionBounds:
    """Return the contribution bounds of a session. Raises ``InputError`` if the privacy unit lacks one of them."""
    if privacy_unit.max_rows is None or privacy_unit.max_rows_per_group is None or privacy_unit.max_groups is None:
        raise InputError.from_text("privacy_unit", "max_rows, max_rows_per_group and max_groups must all be given")
    return ContributionBounds(
        privacy_unit.column, privacy_unit.max_rows, privacy_unit.max_rows_per_group, privacy_unit.max_groups
    )


def bounds_for_query(privacy_unit: PrivacyUnit, question: Query) -> ContributionBounds:
    """Return the bounds of one query: without groups, the table is one group; listed keys limit their number."""
    declared = declared_bounds(privacy_unit)
    if privacy_unit.column is None or question.row_count_steps:
        return ContributionBounds(privacy_unit.column, 1, 1, 1)
    if question.asked.per_person is not None:
        return _person_value_bounds(privacy_unit, declared, question)
    if question.is_marginal:
        return ContributionBounds(privacy_unit.column, declared.max_rows, declared.max_rows, declared.max_rows)
    per_group = min(question.asked.max_rows_per_group or declared.max_rows_per_group, declared.max_rows)
    if question.cell_expression is not None:  # the rows may be in any cells
        max_rows = declared.max_rows if question.asked.by else per_group
        return ContributionBounds(privacy_unit.column, max_rows, max_rows, max_rows)
    if not question.asked.by:
        return ContributionBounds(privacy_unit.column, per_group, per_group, 1)
    listed_groups = declared.max_rows if question.asked.keys is None else len(question.asked.keys)
    groups = min(question.asked.max_groups or declared.max_groups, declared.max_rows, listed_groups)
    return ContributionBounds(privacy_unit.column, min(declared.max_rows, per_group * groups), per_group, groups)


def _person_value(question: Query) -> PersonValue | None:
    """Return the value of persons that a resolved query with ``per_person`` is about."""
    measured = (term for vector in question.noisy_statistics() for term in vector.measure.measured_terms)
    terms = (*measured, *_grouping_terms(question))
    return next((value for value in map(find_person_value, terms) if value is not None), None)


def _person_value_bounds(
    privacy_unit: PrivacyUnit, declared: ContributionBounds, question: Query
) -> ContributionBounds:
    """Return the bounds of a statistic of persons: a person is one row in each of their groups."""
    groups = min(question.asked.max_groups or declared.max_groups, declared.max_rows)
    groups = min(groups, listed_group_count(question) or groups)
    return ContributionBounds(privacy_unit.column, groups, 1, groups)


def listed_group_count(question: Query) -> int | None:
    """Return the number of groups of a statistic of persons, apart from bins of their values; None if discovered."""
    group_terms = [term for term in question.asked.terms if find_person_value(term) is None]
    if not group_terms:
        return 1
    return None if question.asked.keys is None else len({key[: len(group_terms)] for key in question.asked.keys})


def group_queries(
    questions: Sequence[Query],
    privacy_unit: PrivacyUnit,
    schema: Schema,
    where: Term | None = None,
    *,
    weighted: bool = True,
    shares_sums: bool = False,
) -> tuple[QueryGroup, ...]:
    """Return the queries, resolved, checked and grouped by rows, groups, keys and bounds; ``where`` applies to all.

    ``weighted``: relative noise sizes are those of the weights; otherwise all are those of weight 1.
    ``shares_sums``: a sum uses the statistics of a mean of the same values. A sum of which another query group has
    parts or the total does not: least squares makes these consistent, and needs independent noise.
    Raises ``SchemaError`` for a column that is missing or of the wrong type, ``PlanError`` for repeated names,
    ``InputError`` for an expression that cannot be parsed.
    """
    _check_questions(questions)
    person_term = None if privacy_unit.column is None else unit_term(privacy_unit, schema)
    queries_by_group: dict[object, dict[int, Query]] = {}
    for position, unresolved in enumerate(questions):
        try:
            if unresolved.asked.per_person is not None and privacy_unit.column is None:
                text = "each row is one person, so that a person has one value; leave it out"
                raise PlanError.from_text("per_person", text)
            _check_numbers(unresolved, schema)
            question = unresolved.resolve(schema, where)
            _check_groups(question, person_term, schema)
            keys = _counted_keys(question)
        except InputError as error:
            parameter = f"{error.name} of {escape_control_chars(unresolved.asked.name)}"
            raise type(error).from_error(error, parameter) from None
        group_key = (
            _grouping_terms(question),
            keys,
            bounds_for_query(privacy_unit, question),
            question.asked.row_condition,
            question.cell_expression,
            None if question.asked.per_person is None else _person_value(question),
        )
        queries_by_group.setdefault(group_key, {})[position] = question
    for queries_by_position in queries_by_group.values():
        together = tuple(queries_by_position.values())
        if all(question.counts_suppressed_groups for question in together):
            remedy = "ask tr.count too, with the same by, where, max_rows_per_group and max_groups"
            raise PlanError("questions", together[0].asked.name, "another question, whose groups are shown", remedy)
    lone_sums = _lone_sums(queries_by_group.values()) if shares_sums else ()
    return tuple(
        QueryGroup.from_queries(queries_by_position, privacy_unit, person_term, weighted=weighted, share_sums=lone_sums)
        for queries_by_position in queries_by_group.values()
    )


def _check_questions(questions: Sequence[Query]) -> None:
    """Raise ``PlanError`` unless these are queries with different names, from one to ``MAX_QUESTIONS``."""
    expected = "a list of questions such as tr.count and tr.mean"
    if isinstance(questions, Query):
        raise PlanError("questions", str(questions), expected, "put it in brackets: [tr.count()]")
    if not isinstance(questions, Sequence) or isinstance(questions, str):
        raise PlanError("questions", type(questions).__name__, expected, "put it in brackets: [tr.count()]")
    if not all(isinstance(item, Query) for item in questions) or len(questions) == 0:
        raise PlanError("questions", questions, expected)
    if len(questions) > MAX_QUESTIONS:
        remedy = 'by="city" asks for many groups in one question; or make several plans, each with a budget_fraction'
        raise PlanError("questions", len(questions), f"at most {MAX_QUESTIONS} of them", remedy)
    names = [question.asked.name for question in questions]
    for name in names:
        if names.count(name) > 1:
            raise PlanError("name", name, "a different name for each question", "give one of them name='...'")


def _lone_sums(groups: Iterable[Mapping[int, Query]]) -> list[Query]:
    """Return the queries that are neither the total nor a part of another sum of the same values."""
    resolved = [question for queries in groups for question in queries.values()]
    summed = Counter(question.number_terms for question in resolved if question.adds_up)
    return [question for question in resolved if summed[question.number_terms] == 1]


def with_alternatives(query_groups: Sequence[QueryGroup], schema: Schema) -> tuple[QueryGroup, ...]:
    """Return the query groups, each with its set of conditions that exclude each other, if each row is a person.

    A row then enters the query groups of at most one condition of each set. A condition joins the first set all of
    whose members it excludes.
    """
    each_row = [
        query_group
        for query_group in query_groups
        if query_group.bounds.person_column is None and query_group.where is not None
    ]
    conditions = dict.fromkeys(query_group.where for query_group in each_row)
    alternatives = {where: condition_alternatives(where, schema) for where in conditions}
    sets: list[list[Term | None]] = []
    for where in conditions:
        for members in sets:
            if all(exclude_each_other(alternatives[where], alternatives[member]) for member in members):
                members.append(where)
                break
        else:
            sets.append([where])
    alternative_by_condition = {
        where: Alternative(number, member)
        for number, members in enumerate(members for members in sets if len(members) > 1)
        for member, where in enumerate(members)
    }
    return tuple(
        replace(query_group, alternative=alternative_by_condition.get(query_group.where))
        if query_group.bounds.person_column is None
        else query_group
        for query_group in query_groups
    )


def unit_term(privacy_unit: PrivacyUnit, schema: Schema) -> Term | None:
    """Return the column, or the expression, that a privacy unit names."""
    if privacy_unit.column is None or privacy_unit.column in schema.column_names or privacy_unit.column.isidentifier():
        return privacy_unit.column
    return resolve_term(privacy_unit.column, schema)


def _check_numbers(question: Query, schema: Schema) -> None:
    """Raise ``SchemaError`` for a column of neither numbers nor truth values if the query needs numbers."""
    if question.asked.per_person not in (None, "sum"):
        return  # the number of a person's rows, or a condition
    for given in question.number_terms:
        if given == ALL_ROWS:
            continue
        term = resolve_term(given, schema)
        kind, shown = term_facts(term, schema).kind, escape_control_chars(str(term))
        if kind not in NUMERIC_KINDS:
            needs_quotes = isinstance(term, str) and not term.isidentifier()
            remedy = question.remedy_for_times if kind in TIME_KINDS else question.remedy_for_texts
            remedy = remedy.format(column=f'column("{shown}")' if needs_quotes else shown)
            text = f"{shown!r} is a column of {kind}, but {question.kind!r} needs numbers; {remedy}"
            raise SchemaError.from_text("column", text)


def _check_groups(question: Query, person_term: Term | None, schema: Schema) -> None:
    """Check the groups, and what is counted in them.

    Refused are columns of types that cannot be grouped by; distinct values of the person column, since a count of
    people has less noise; a count of suppressed rows with listed or known groups, which are all shown; and discovered
    groups of a query that counts in cells.
    """
    for term in _grouping_terms(question):
        if isinstance(term, str):
            schema.find_column(term).refuse_other_kind("by", "be a group")
    _check_keys(question, person_term, schema)
    distinct_counts = [
        vector.measure for vector in question.noisy_statistics() if isinstance(vector.measure, DistinctCount)
    ]
    if person_term is not None and any(measure.column == person_term for measure in distinct_counts):
        remedy = "leave it out: then persons are counted, each once in a group, with less noise"
        raise PlanError("column", str(person_term), "not the column of the person", remedy)
    if question.cell_expression is not None and question.asked.by and question.asked.keys is None:
        # The noisy counts of cells are shown without a threshold, so that a discovered group would reveal its key.
        remedy = f"list the groups with keys=[...]: groups of {question.kind}s cannot be discovered"
        raise PlanError("keys", None, "given", remedy)
    if question.counts_suppressed_groups and question.asked.keys is not None:
        remedy = "count the rest by a condition, such as where=\"not (city in ('Oslo', 'Rome'))\""
        raise PlanError("by", question.asked.by, "groups that are discovered; here all are listed, and shown", remedy)


def _check_keys(question: Query, person_term: Term | None, schema: Schema) -> None:
    """Check that listed keys have the kinds of their columns, and that discovered groups are not single persons."""
    if question.row_count_steps:
        return
    if question.asked.keys is not None:
        check_key_kinds(question.asked.keys, question.asked.terms, schema)
    elif person_term is not None and person_term in _grouping_terms(question):
        remedy = "a group of one person is never large enough to be shown; group by something that many have in common"
        raise PlanError("by", str(person_term), "another column than the person's if groups are discovered", remedy)


def _grouping_terms(question: Query) -> tuple[Term, ...]:
    """Return the group-by terms of a resolved query; the cells of its groups come last."""
    return (
        question.asked.terms if question.cell_expression is None else (*question.asked.terms, question.cell_expression)
    )


def _counted_keys(question: Query) -> Keys | None:
    """Return the keys that are counted: each group, or each cell of each group in order."""
    keys = question.asked.keys if question.asked.by else ((),)
    if keys is None or question.cell_expression is None:
        return keys
    if (key_count := len(keys) * question.cell_expression.cell_count) > MOST_KEYS:
        expected = f"at most {MOST_KEYS // question.cell_expression.cell_count:,} groups"
        raise PlanError(
            "keys", f"{key_count // question.cell_expression.cell_count:,} groups", expected, "ask for fewer at once"
        )
    return tuple((*key, cell) for key in keys for cell in range(question.cell_expression.cell_count))


def rows_used(bounds: ContributionBounds, privacy_unit: PrivacyUnit, by: tuple[str, ...]) -> str:
    """Return a description of the rows that an answer uses.

    >>> rows_used(ContributionBounds("tail", 12, 12, 1), PrivacyUnit("tail", 12, 12, 12, "an aircraft"), ())
    'at most 12 rows per aircraft'
    >>> rows_used(ContributionBounds("id", 4, 2, 3), PrivacyUnit("id", 4, 2, 3), ("city",))
    'at most 4 rows per person, at most 2 per group, in at most 3 groups'
    >>> rows_used(ContributionBounds(None, 1, 1, 1), PrivacyUnit(None, 1, 1, 1), ())
    'each row is one person'
    """
    if bounds.person_column is None:
        return f"each row is one {privacy_unit.unit_noun}"
    parts = [f"at most {bounds.max_rows:,} row{'s' if bounds.max_rows > 1 else ''} per {privacy_unit.unit_noun}"]
    if by and bounds.max_rows_per_group < bounds.max_rows:
        parts.append(f"at most {bounds.max_rows_per_group:,} per group")
    if by and bounds.max_groups < bounds.max_rows:
        parts.append(f"in at most {bounds.max_groups:,} group{'s' if bounds.max_groups > 1 else ''}")
    return ", ".join(parts)


def persons_used(bounds: ContributionBounds, privacy_unit: PrivacyUnit) -> str:
    """Return a description of the persons that a statistic of persons uses.

    >>> persons_used(ContributionBounds("tail", 1, 1, 1), PrivacyUnit("tail", 12, 12, 12, "an aircraft"))
    'each aircraft counts once'
    >>> persons_used(ContributionBounds("id", 3, 1, 3), PrivacyUnit("id", 12))
    'each person counts once in each of at most 3 groups'
    """
    if bounds.max_groups == 1:
        return f"each {privacy_unit.unit_noun} counts once"
    return f"each {privacy_unit.unit_noun} counts once in each of at most {bounds.max_groups:,} groups"


def person_value_notes(bounds: ContributionBounds, privacy_unit: PrivacyUnit) -> list[str]:
    """Return notes on the persons that a statistic of persons is about."""
    noun = privacy_unit.unit_noun
    notes = [
        f"All rows of each {noun} are used; then the value of each {noun} is clamped, and counts once.",
        "Those without a row that meets the condition of the question have no value, and are not counted.",
    ]
    if bounds.max_groups > 1:
        notes.append(
            f"The value of each {noun} in a group is computed from the rows in this group; in groups beyond the limit, "
            "it is left out."
        )
    return notes


def bounded_notes(
    bounds: ContributionBounds,
    privacy_unit: PrivacyUnit,
    by: tuple[str, ...],
    person_kind: Kind | None = None,
    *,
    leaves_out: bool,
) -> list[str]:
    """Return notes on the rows left out, beyond the bound or without a person, and on queries without groups.

    ``person_kind``: the kind of the values that identify a person, if it is known. ``leaves_out``: whether rows beyond
    the bound would change the answer.
    """
    if bounds.person_column is None:
        return []
    column = escape_control_chars(str(bounds.person_column))
    or_inexact = ", or a float that is not an integer below 2^53," if person_kind in FLOAT_KINDS else ""
    notes = [f"Rows whose {column} is missing{or_inexact} are left out."]
    if leaves_out:
        text = (
            f"If {escape_control_chars(privacy_unit.means)} has more rows than the limit, the additional rows are left "
            "out: the answer describes the rows used, not the whole table."
        )
        notes.insert(0, text)
    if not by and bounds.max_rows < declared_bounds(privacy_unit).max_rows:
        notes.append(f"Without groups, the whole table is one group: max_rows_per_group = {bounds.max_rows} limits it.")
    return notes
