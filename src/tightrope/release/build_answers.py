"""Turn exact integers from the table into answers; noise is added only here."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.documents.document import BudgetPart, PackedTable, plain_data
from tightrope.documents.release import (
    RELEASES,
    ChoicePart,
    Profile,
    PublicTablePart,
    Rates,
    ReleaseCertificate,
    ReleasedMechanism,
    SharedTables,
)
from tightrope.mechanisms.discrete.box_table import BoxTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.queries.count import count as count_query
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import Noise, NoisyStatistic, draw_joint_points
from tightrope.release.answers import Answer, Answers
from tightrope.release.bias_check import estimate_bias
from tightrope.release.settings import guarantee_data, neighbors_data
from tightrope.tables.request import GroupTotals, MarginalRequest, table_name

if TYPE_CHECKING:
    from tightrope.mechanisms.exponential import QuantileChoice
    from tightrope.queries.query import Query
    from tightrope.release.draft import NoisePlan
    from tightrope.release.marginals import MarginalFit
    from tightrope.tables import Table
    from tightrope.tables.request import Request

PROFILE_POINTS = 25
"""Number of values of ε in a certificate's privacy profile."""
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
WEIGHTS_ARGUMENT = (
    "The privacy loss of each mechanism is computed from the integer weights in the certificate, the same weights "
    "from which the noise was sampled."
)
SPLIT_ARGUMENT = (
    "For each answer, the privacy profile is maximized over all ways to divide the rows of one privacy unit among "
    "groups."
)
COMPOSITION_ARGUMENT = "The losses are composed on a grid, with all rounding upward."
FIXED_ARGUMENT = "Parameters were fixed before the release."
DISJOINT_ARGUMENT = (
    "A row, and so a person, meets at most one of the conditions of the mechanisms with the same number 'disjoint': "
    "these cost as much as those of the worst one of the conditions."
)


def certificate_of(draft: NoisePlan) -> ReleaseCertificate:
    """Return the certificate: guarantee, mechanisms with their tables, neighbors, bounds, methods and versions.

    It is plain data from which the privacy claim can be verified, independent of the table's rows. It is parsed before
    the budget is charged, so that a released certificate is always readable.
    """
    # The profile and the attacker's best rates, all upper bounds.
    largest_epsilon = max(float(epsilon) for epsilon, _ in draft.budget.points) or draft.loss.epsilon(
        float(draft.budget.delta)
    )
    epsilons = tuple(largest_epsilon * 1.25 * i / (PROFILE_POINTS - 1) for i in range(PROFILE_POINTS))
    rates = draft.loss.true_positive_rate(list(FALSE_POSITIVE_RATES)).tolist()
    profile, tradeoff = (
        Profile(epsilon=epsilons, delta=tuple(draft.loss.delta(list(epsilons)).tolist())),
        Rates(false_positive_rate=FALSE_POSITIVE_RATES, true_positive_rate=tuple(rates)),
    )
    public_tables = [
        PublicTablePart(
            name=table.name,
            on=dict(table.key_pairs),
            columns=table.added_schema.column_names,
            rows=table.rows.num_rows,
            sha256=table.content_digest,
        )
        for table in draft.public
    ]
    mechanisms, tables = _mechanism_records(draft)
    data = {
        "document": "release certificate",
        "version": 4,
        **guarantee_data(draft.loss, draft.budget),
        "budget": plain_data(BudgetPart.from_budget(draft.budget)),
        "budget_fraction": str(draft.share),
        "neighbors": neighbors_data(draft.privacy_unit),
        "public_tables": [plain_data(table) for table in public_tables],
        "mechanisms": [plain_data(mechanism) for mechanism in mechanisms],
        "tables": [plain_data(table) for table in tables.numbered_tables()],
        "consistent": [fitted.certificate_data() for fitted in draft.consistent_fits],
        **(
            {"marginals": plain_data(draft.marginal_fit.certificate_part())}
            if draft.query_groups[0].is_marginal
            else {}
        ),
        "profile": plain_data(profile),
        "tradeoff": plain_data(tradeoff),
        "alternatives": draft.noise_alternatives,
        "computed": {
            "method": draft.loss.method,
            "argument": _privacy_argument(draft),
            "rounding": "upper bounds throughout",
        },
        "versions": {name: metadata.version(name) for name in ("tightrope", "numpy", "scipy")},
        "ledger": "not recorded in a ledger",
    }
    return RELEASES.convert_data(data, ReleaseCertificate)


def _choice_part(noise: Noise, choice: QuantileChoice, cells: int) -> ChoicePart:
    """Return the record of a random choice among cells."""
    root = noise.choice_distribution.root
    target = None if choice.around is None else str(choice.target_excess(noise.choice_distribution, cells))
    left_out = str(choice.left_out) if choice.is_extreme else None
    return ChoicePart(below=str(choice.below), cells=cells, root=str(root), target=target, left_out=left_out)


def _privacy_argument(draft: NoisePlan) -> str:
    """Return how the privacy loss is computed; splits of rows and composition are named if there are several."""
    sentences = [
        WEIGHTS_ARGUMENT,
        *([] if draft.privacy_unit.column is None else [SPLIT_ARGUMENT]),
        *([DISJOINT_ARGUMENT] if draft.excluded_answers else []),
        *([COMPOSITION_ARGUMENT] if draft.allocation.loss_lattice is not None else []),
        FIXED_ARGUMENT,
    ]
    return " ".join(sentences)


def _mechanism_records(draft: NoisePlan) -> tuple[list[ReleasedMechanism], SharedTables]:
    """Return the records of the mechanisms of all noisy vectors, in the order of the draws, and their tables."""
    next_number, records = count(1), list[ReleasedMechanism]()
    shared, packed_tables = SharedTables(), dict[NoiseTable, PackedTable]()
    for query_group, noises in zip(draft.query_groups, draft.noises_by_query_group, strict=True):
        # each set composes as one unit
        numbers_by_set = {vector_set: next(next_number) for vector_set in query_group.composition_sets}
        for noise in noises:
            vector, choice, cells = noise.vector, noise.choice, query_group.cells_per_group
            vector_set = next(vector_set for vector_set in numbers_by_set if vector in vector_set)
            contribution = query_group.set_contribution(vector_set)
            # The table that is sampled: the noise of a number, or the half-widths of a box.
            box: int | None = None
            if isinstance(noise.table, BoxTable):
                sampled, box = noise.table.radii, noise.table.dimension
            else:
                sampled = noise.table
            if sampled not in packed_tables:
                packed_tables[sampled] = sampled.packed()
            by = query_group.grouping_terms(vector) if query_group.is_marginal else query_group.by
            record = ReleasedMechanism(
                answers=query_group.answered_by(vector),
                statistic=vector.noise_spec.statistic,
                column=" and ".join(map(str, vector.measure.measured_terms)) or None,
                by=() if vector.over_all_groups else tuple(map(str, by)),
                where=None if query_group.where is None else str(query_group.where),
                family=noise.family,
                unit=vector.exact_step,
                sensitivity_per_row=str(vector.sensitivity),
                table_steps_per_row=noise.steps_per_row,
                rows=contribution.rows,
                max_rows_per_group=contribution.max_rows_per_group,
                groups=contribution.groups,
                factor=str(noise.noise_mechanism.factor),
                table=shared.number_of(packed_tables[sampled]),
                exclusive=vector.disjoint_set,
                together=numbers_by_set[vector_set],
                choice=None if choice is None or cells is None else _choice_part(noise, choice, cells),
                box=box,
                disjoint=None if query_group.alternative is None else query_group.alternative.set_number + 1,
            )
            records.append(record)
    return records, shared


Key = tuple[object, ...]
NoisyGroup = tuple[Key, dict["NoisyStatistic", Any]]
"""A group's key and its noisy integers: one per vector, or one per block if the group is counted in cells."""


class AnswerBuilder:
    """Turns the exact integers of a draft, by query group, into answers: adds noise, suppresses groups, post-processes.

    The parts that are independent of the integers are computed at once, and an empty result is serialized, so that
    errors occur before the budget is charged.
    """

    def __init__(self, draft: NoisePlan, certificate: ReleaseCertificate) -> None:
        self.draft, self.certificate = draft, certificate
        self.accuracies = {accuracy.question: accuracy for accuracy in draft.query_accuracies}
        self.empty_answers = {
            question: Answer(
                rows=[],
                about=draft.answer_data(self.accuracies[question]),
                question=question,
                grid_width=question.asked.round_to,
                noises=self.accuracies[question].noises_by_name,
            )
            for question in draft.questions
        }
        Answers(tuple(self.empty_answers.values()), certificate).result()
        self.consistent_names = {name for fit in draft.consistent_fits for name in fit.joined.answers}

    def build_answers(self, exact: Sequence[GroupTotals]) -> Answers:
        """Return the answers with new noise."""
        draft = self.draft
        answers: dict[Query, Answer] = {}
        integers_by_key: dict[Query, dict[Key, int]] = {}
        counts: list[dict[NoisyStatistic, int]] = []
        if draft.query_groups[0].is_marginal:
            return self._build_tables(draft.marginal_fit, exact)
        for query_group, query_group_noises, integers in zip(
            draft.query_groups, draft.noises_by_query_group, exact, strict=True
        ):
            group_noises = tuple(noise for noise in query_group_noises if not noise.vector.over_all_groups)
            groups = (
                _noisy_groups(query_group, group_noises, integers)
                if query_group.cells_per_group is None
                else _noisy_cells_by_group(query_group.cells_per_group, group_noises, integers)
            )
            suppressed = _suppressed_group_count(query_group, query_group_noises, integers, groups)
            for question in query_group.ordered_queries:
                shown_groups = suppressed if question.counts_suppressed_groups else groups
                answers[question] = self._answer_to(question, shown_groups)
                if question.asked.name in self.consistent_names:
                    (vector,) = query_group.vectors_by_query[question].values()
                    integers_by_key[question] = {key: noisy[vector] for key, noisy in groups}
            # The diagnostic counts are over all groups, including suppressed ones.
            diagnostic_counts = {
                noise.vector: _add_noise(noise, (sum(integers.values[noise.vector.statistic_name]),))[0]
                for noise in query_group_noises
                if noise.vector in query_group.diagnostic_counts
            }
            counts.append(diagnostic_counts)
        answers |= self._consistent_answers(answers, integers_by_key)
        _suppress_empty_quantiles(draft.query_groups, answers)
        return Answers(
            tuple(answers[question] for question in self.empty_answers),
            self.certificate,
            estimate_bias(draft.query_groups, draft.noises_by_query_group, counts, draft.privacy_unit),
            draft.comparisons,
        )

    def _consistent_answers(
        self, answers: Mapping[Query, Answer], integers_by_key: Mapping[Query, Mapping[Key, int]]
    ) -> dict[Query, Answer]:
        """Return the answers about the same rows after least squares, computed only from noisy integers."""
        question_by_name = {question.asked.name: question for question in integers_by_key}
        fitted = {}
        for fit in self.draft.consistent_fits:
            records = fit.fitted_records({name: integers_by_key[question_by_name[name]] for name in fit.joined.answers})
            for question in map(question_by_name.__getitem__, fit.joined.answers):
                keyed = zip(integers_by_key[question], records[question.asked.name], strict=True)
                rows = [{**dict(zip(question.key_columns, key, strict=True)), **record} for key, record in keyed]
                fitted[question] = replace(answers[question], rows=rows)
        return fitted

    def _build_tables(self, fit: MarginalFit, exact: Sequence[GroupTotals]) -> Answers:
        """Return the tables of a ``marginals`` question: noisy integers of each measurement, then least squares."""
        ((totals,), integers) = exact, dict[NoisyStatistic, list[int]]()
        exact_integers = fit.group.measured_integers(totals)
        for noise in fit.noises:
            integers[noise.vector] = _add_noise(noise, exact_integers[noise.vector])
        rows = fit.answer_rows(integers)
        answers = tuple(replace(answer, rows=rows[question]) for question, answer in self.empty_answers.items())
        return Answers(answers, self.certificate, measured=fit.measured_integers(integers))

    def _answer_to(self, question: Query, groups: list[NoisyGroup]) -> Answer:
        """Return the answer with one record per shown group: its key, value, lower, upper."""
        accuracy = self.accuracies[question]
        records = [accuracy.estimate(integers) for _, integers in groups]
        rows = [
            {**dict(zip(question.key_columns, groups[index][0], strict=True)), **record}
            for index, record in question.select_shown_groups(
                records, accuracy.noises_by_name, [key for key, _ in groups]
            )
        ]
        if not question.comparable:
            return replace(self.empty_answers[question], rows=rows)
        named_integers = tuple(
            {name: integers[noise.vector] for name, noise in accuracy.noises_by_name.items()} for _, integers in groups
        )
        return replace(self.empty_answers[question], rows=rows, integers=named_integers)

    def rehearse_on_zeros(self, requests: Sequence[Request]) -> None:
        """Run all arithmetic that follows the charge on zeros, so that errors occur before the budget is charged.

        One group is enough, unless answers are made consistent by their keys. A discovered group gets missing values
        as its key, and enough rows to be shown.
        """
        query_groups = zip(self.draft.query_groups, self.draft.noises_by_query_group, requests, strict=True)
        self.build_answers(
            [self._zeros_of_query_group(query_group, noises, request) for query_group, noises, request in query_groups]
        )

    def _zeros_of_query_group(self, query_group: QueryGroup, noises: Sequence[Noise], request: Request) -> GroupTotals:
        if isinstance(request, MarginalRequest):
            sizes = zip(request.tables, request.table_sizes, strict=True)
            return GroupTotals((), {table_name(table): (0,) * size for table, size in sizes})
        steps = tuple((step,) for step in request.row_count_steps)
        all_keys = steps or request.keys or ((None,) * len(request.by),)
        needs_all_keys = any(question.asked.name in self.consistent_names for question in query_group.ordered_queries)
        keys = all_keys if needs_all_keys else all_keys[: query_group.cells_per_group or 1]
        shown_counts = {noise.vector.statistic_name: 2 * (noise.key_threshold or 0) for noise in noises}
        return GroupTotals(
            keys, {measure.name: (shown_counts.get(measure.name, 0),) * len(keys) for measure in request.measures}
        )


@dataclass(frozen=True, slots=True, eq=False)
class TableRelease:
    """The release of a draft from a table, apart from its charge.

    Whether reading fails can depend on the rows, so reading follows the charge (``docs/proofs/reading.md``). Releases
    share a connection, so one reads at a time, under the lock ``turn``.
    """

    draft: NoisePlan
    table: Table
    turn: threading.Lock

    def prepare_answers(self) -> AnswerBuilder:
        """Check what is independent of the rows, before the charge: all that can fail without reading them.

        These are the certificate, the arithmetic of every answer on zeros, and that the source exists and is the one
        that was opened.
        """
        builder = AnswerBuilder(self.draft, certificate_of(self.draft))
        requests = [query_group.table_request for query_group in self.draft.query_groups]
        builder.rehearse_on_zeros(requests)
        with self.turn:
            self.table.check_readable(requests)
        return builder

    def read_and_draw(self, builder: AnswerBuilder) -> Answers:
        """Read the rows once, count them, draw noise and return the answers; only after the charge."""
        requests = [query_group.table_request for query_group in self.draft.query_groups]
        with self.turn, self.table.open_snapshot(requests) as rows:
            exact = [rows.collect_totals(request) for request in requests]
        return builder.build_answers(exact)


def _noisy_groups(query_group: QueryGroup, noises: tuple[Noise, ...], exact: GroupTotals) -> list[NoisyGroup]:
    """Return noisy integers by group; discovered groups whose noisy count is below the threshold are suppressed."""
    joint_noises = tuple(noise for noise in noises if noise.vector.joint_noise)
    columns = {
        noise.vector: _add_noise(noise, exact.values[noise.vector.statistic_name])
        for noise in noises
        if noise not in joint_noises
    }
    columns |= _add_joint_noise(joint_noises, exact) if joint_noises else {}
    groups = [
        (key, dict(zip(columns, integers, strict=True)))
        for key, *integers in zip(exact.keys, *columns.values(), strict=True)
    ]
    thresholds = {
        noise.vector: int(noise.noise_mechanism.worst_error)
        for noise in noises
        if noise.vector == query_group.key_count
    }
    return [
        group
        for group in groups
        if all(group[1][vector] > largest_noise for vector, largest_noise in thresholds.items())
    ]


def _noisy_cells_by_group(cells: int, noises: tuple[Noise, ...], exact: GroupTotals) -> list[NoisyGroup]:
    """Return, by group, the noisy counts of blocks of cells, or the cells that were selected.

    The cells of a group are listed in order. Selections run one after the other, because a later one may use earlier
    results.
    """
    groups: list[NoisyGroup] = [(key[:-1], {}) for key in exact.keys[::cells]]
    for noise in noises:
        exact_counts = np.asarray(exact.values[noise.vector.statistic_name], dtype=object)
        if noise.vector.choice is not None:
            for (_, results), counts in zip(groups, exact_counts.reshape(-1, cells), strict=True):
                results[noise.vector] = noise.choose_cell(counts, results)
            continue
        block = noise.vector.block or 1
        noisy = _add_noise(noise, tuple(exact_counts.reshape(-1, block).sum(axis=1)))
        for group_index, (_, results) in enumerate(groups):
            first = group_index * cells // block
            results[noise.vector] = tuple(noisy[first : first + cells // block])
    return groups


def _counts_by_rows(
    query_groups: Sequence[QueryGroup], answers: Mapping[Query, Answer]
) -> dict[tuple[str, tuple[str, ...]], list[dict[str, Any]]]:
    """Return the records of released counts, by their condition and groups."""
    return {
        (str(query_group.where), tuple(map(str, query_group.by))): answers[question].rows
        for query_group in query_groups
        for question in query_group.ordered_queries
        if isinstance(question, count_query)
    }


def _suppress_empty_quantiles(query_groups: Sequence[QueryGroup], answers: dict[Query, Answer]) -> None:
    """Suppress selected quantiles of groups that may be empty, by released counts of the same rows.

    A selection has a value even for no rows, and its interval is the whole range only 19 times in 20. The interval of a
    suppressed one is the whole range, so its coverage does not decrease. A minimum or maximum is suppressed, too, if
    all rows may be among those that it leaves out.
    """
    selected = [
        (query_group, question, question.range_without_rows)
        for query_group in query_groups
        for question in query_group.ordered_queries
        if question.range_without_rows is not None
    ]
    counts_by_rows = _counts_by_rows(query_groups, answers) if selected else {}
    for query_group, question, (low, high) in selected:
        fewest_rows = question.resolve_noise(answers[question].noises).rows_without_value
        # Counts of all groups together, and of each group: the last term of ``by`` is the cell.
        for by in {(), tuple(map(str, query_group.by[:-1]))}:
            columns = question.key_columns[: len(by)]
            counts = {
                tuple(row[column] for column in columns): row["lower"]
                for row in counts_by_rows.get((str(query_group.where), by), [])
            }
            rows = []
            for row in answers[question].rows:
                lower = counts.get(tuple(row[column] for column in columns))
                may_be_empty = lower is not None and lower <= fewest_rows
                rows.append({**row, "value": None, "lower": low, "upper": high} if may_be_empty else row)
            answers[question] = replace(answers[question], rows=rows)


def _suppressed_group_count(
    query_group: QueryGroup, noises: Sequence[Noise], exact: GroupTotals, shown: list[NoisyGroup]
) -> list[NoisyGroup]:
    """Return one group without a key: a noisy integer per vector that counts the rows of all suppressed groups."""
    shown_keys = {key for key, _ in shown}
    suppressed_indexes = [index for index, key in enumerate(exact.keys) if key not in shown_keys]
    noises_over_groups = [
        noise for noise in noises if noise.vector.over_all_groups and noise.vector not in query_group.diagnostic_counts
    ]
    sums = {
        noise: sum(exact.values[noise.vector.statistic_name][index] for index in suppressed_indexes)
        for noise in noises_over_groups
    }
    return [((), {noise.vector: _add_noise(noise, (total,))[0] for noise, total in sums.items()})]


def _add_noise(noise: Noise, exact: tuple[int, ...]) -> list[int]:
    """Return the exact integers, each plus a new noise draw."""
    draws = noise.noise_mechanism.sample(len(exact))
    return [value + int(draw) for value, draw in zip(exact, np.asarray(draws).tolist(), strict=True)]


def _add_joint_noise(noises: tuple[Noise, ...], exact: GroupTotals) -> dict[NoisyStatistic, list[int]]:
    """Return exact integers plus, for every group, a new draw of the box's point, which has a coordinate per vector."""
    noisy = {}
    for noise, draws in zip(noises, draw_joint_points(noises, len(exact.keys)), strict=True):
        integers = exact.values[noise.vector.statistic_name]
        noisy[noise.vector] = [value + int(draw) for value, draw in zip(integers, draws.tolist(), strict=True)]
    return noisy
