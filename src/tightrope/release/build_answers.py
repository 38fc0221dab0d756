"""Turn exact integers from the table into answers; noise is added only here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib import metadata
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.documents.document import BudgetPart, TablePart, plain_data
from tightrope.documents.release import (
    RELEASES,
    ChoicePart,
    Profile,
    PublicTablePart,
    Rates,
    ReleaseCertificate,
    ReleasedMechanism,
)
from tightrope.mechanisms.discrete.box_table import BoxTable
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import Noise, NoisyStatistic, draw_joint_points
from tightrope.release.answers import Answer, Answers
from tightrope.release.bias_check import diagnostics
from tightrope.release.settings import guarantee_data, neighbors_data
from tightrope.tables.request import GroupTotals

if TYPE_CHECKING:
    from tightrope.queries.accuracy import Accuracy
    from tightrope.queries.query import Query
    from tightrope.release.consistency import ConsistentFit
    from tightrope.release.draft import NoisePlan
    from tightrope.tables import Table
    from tightrope.tables.request import Request

# The certificate: inert data from which the privacy claim can be verified, independent of the table's rows.

EPSILONS = 25
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
ARGUMENT = (
    "Each mechanism's privacy loss is computed from the integer weights below, which are the ones that are sampled. "
    "For every answer the whole profile is maximized over all ways in which one person's rows may fall into groups; "
    "the maxima are composed on a lattice on which every rounding raises the loss. Parameters were fixed before "
    "anything was released."
)


def certificate_of(draft: NoisePlan) -> ReleaseCertificate:
    """Return the certificate: guarantee, mechanisms with their tables, neighbors, bounds, methods and versions.

    It is parsed before the budget is charged, so that a released certificate is always readable.
    """
    # The profile and the attacker's best rates, all upper bounds.
    top = max(float(epsilon) for epsilon, _ in draft.budget.points) or draft.loss.epsilon(float(draft.budget.delta))
    epsilons = tuple(top * 1.25 * i / (EPSILONS - 1) for i in range(EPSILONS))
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
    data = {
        "document": "release certificate",
        "version": 3,
        **guarantee_data(draft.loss, draft.budget),
        "budget": plain_data(BudgetPart.from_budget(draft.budget)),
        "budget_fraction": str(draft.share),
        "neighbors": neighbors_data(draft.person),
        "public_tables": [plain_data(table) for table in public_tables],
        "mechanisms": [plain_data(mechanism) for mechanism in _mechanism_records(draft)],
        "consistent": [fitted.certificate_data() for fitted in draft.consistent_fits()],
        "profile": plain_data(profile),
        "tradeoff": plain_data(tradeoff),
        "alternatives": draft.noise_alternatives,
        "computed": {"method": draft.loss.method, "argument": ARGUMENT, "rounding": "upper bounds throughout"},
        "versions": {name: metadata.version(name) for name in ("tightrope", "numpy", "scipy")},
        "ledger": "not recorded in a ledger",
    }
    return RELEASES.convert_data(data, ReleaseCertificate)


def _mechanism_records(draft: NoisePlan) -> list[ReleasedMechanism]:
    """Return the mechanism of every noisy vector, in the order of the draws."""
    number, records = count(1), []
    for task, noises in zip(draft.tasks, draft.noises(), strict=True):
        numbers_by_set = {own: next(number) for own in task.composition_sets}  # each set composes as one unit
        for noise in noises:
            vector, cells = noise.vector, task.cells_per_group
            own = next(own for own in numbers_by_set if vector in own)
            contribution = task.set_contribution(own)
            # The table that is sampled: the noise of a number, or the half-widths of a box.
            box: int | None = None
            if isinstance(noise.table, BoxTable):
                sampled, box = noise.table.radii, noise.table.dimension
            else:
                sampled = noise.table
            choice, selection = vector.choice, None
            if choice is not None and cells is not None:
                root = noise.choice_distribution.root
                target = None if choice.around is None else str(choice.target_excess(noise.choice_distribution, cells))
                selection = ChoicePart(below=str(choice.below), cells=cells, root=str(root), target=target)
            record = ReleasedMechanism(
                answers=task.answered_by(vector),
                statistic=vector.noise_spec.statistic,
                column=" and ".join(map(str, vector.measure.measured_terms)) or None,
                by=() if vector.over_all_groups else tuple(map(str, task.by)),
                where=None if task.where is None else str(task.where),
                family=noise.family,
                unit=vector.exact_step,
                sensitivity_per_row=str(vector.sensitivity),
                table_steps_per_row=noise.shift,
                rows=contribution.rows,
                max_rows_per_group=contribution.max_rows_per_group,
                groups=contribution.groups,
                factor=str(noise.noise_mechanism.factor),
                table=RELEASES.convert_data(sampled.to_data(), TablePart),
                exclusive=vector.disjoint_set,
                together=numbers_by_set[own],
                choice=selection,
                box=box,
            )
            records.append(record)
    return records


Key = tuple[object, ...]
Group = tuple[Key, dict["NoisyStatistic", Any]]
"""A key and its group's noisy integers: one per vector, or one per block if the group is counted in cells."""


def build_answers(draft: NoisePlan, certificate: ReleaseCertificate) -> Callable[[Sequence[GroupTotals]], Answers]:
    """Return a function from exact integers, by task, to answers: it adds noise, suppresses groups and post-processes.

    The parts that are independent of the integers are computed now, and an empty result is serialized first, so that
    errors occur before the budget is charged.
    """
    accuracies = {accuracy.question: accuracy for accuracy in draft.accuracies()}
    blank = {question: Answer(question, [], draft.answer_data(accuracies[question])) for question in draft.questions}
    Answers(tuple(blank.values()), certificate).result()
    noises, fitted = draft.noises(), draft.consistent_fits()
    joined = {name for one in fitted for name in one.joined.answers}

    def answers_from_exact(exact: Sequence[GroupTotals]) -> Answers:
        found: dict[Query, Answer] = {}
        drawn: dict[Query, dict[Key, int]] = {}
        counts: list[dict[NoisyStatistic, int]] = []
        for task, every, integers in zip(draft.tasks, noises, exact, strict=True):
            own = tuple(noise for noise in every if not noise.vector.over_all_groups)
            groups = (
                _noisy_groups(task, own, integers)
                if task.cells_per_group is None
                else _in_cells(task.cells_per_group, own, integers)
            )
            rest = _suppressed_group_count(task, every, integers, groups)
            for one in task.ordered_queries:
                shown = rest if one.counts_suppressed_groups else groups
                found[one] = replace(blank[one], rows=_answer_rows(accuracies[one], shown))
                if one.asked.name in joined:
                    (vector,) = task.vectors_by_query[one].values()
                    drawn[one] = {key: noisy[vector] for key, noisy in groups}
            # The tallies are over all groups, including suppressed ones.
            tallies = {
                noise.vector: _add_noise(noise, (sum(integers.values[noise.vector.statistic_name]),))[0]
                for noise in every
                if noise.vector in task.diagnostic_counts
            }
            counts.append(tallies)
        for one, rows in _consistent_records(fitted, drawn):
            found[one] = replace(found[one], rows=rows)
        return Answers(
            tuple(found[question] for question in blank),
            certificate,
            diagnostics(draft.tasks, noises, counts, draft.person),
        )

    return answers_from_exact


def prepare_release(
    draft: NoisePlan, table: Table, turn: threading.Lock
) -> Callable[[], AbstractContextManager[Callable[[], Answers]]]:
    """Return a context manager that checks what is independent of the rows and yields the function to charge for.

    That function reads the rows once, counts them and draws noise. Whether reading fails can depend on the rows, so it
    runs after the charge (``docs/proofs/reading.md``). Before the charge: the certificate, the arithmetic of every
    answer on zeros, and a check that the source exists and is the one that was opened. Releases share a connection, so
    one reads at a time, under the lock ``turn``.
    """

    @contextmanager
    def checked_release() -> Iterator[Callable[[], Answers]]:
        answer = build_answers(draft, certificate_of(draft))
        requests = [task.table_request for task in draft.tasks]
        _dry_run_answers(draft, requests, answer)
        with turn:
            table.check_readable(requests)

        def read_and_draw() -> Answers:
            with turn, table.open_snapshot(requests) as rows:
                exact = [rows.collect_totals(request) for request in requests]
            return answer(exact)

        yield read_and_draw

    return checked_release


def _noisy_groups(task: QueryGroup, noises: tuple[Noise, ...], exact: GroupTotals) -> list[Group]:
    """Return noisy integers by group; discovered groups whose noisy count is below the threshold are suppressed."""
    box = tuple(noise for noise in noises if noise.vector.joint_noise)
    columns = {
        noise.vector: _add_noise(noise, exact.values[noise.vector.statistic_name])
        for noise in noises
        if noise not in box
    }
    columns |= _add_joint_noise(box, exact)
    groups = [
        (key, dict(zip(columns, integers, strict=True)))
        for key, *integers in zip(exact.keys, *columns.values(), strict=True)
    ]
    threshold = {
        noise.vector: int(noise.noise_mechanism.worst_error) for noise in noises if noise.vector == task.key_count
    }
    return [group for group in groups if all(group[1][vector] > reach for vector, reach in threshold.items())]


def _in_cells(cells: int, noises: tuple[Noise, ...], exact: GroupTotals) -> list[Group]:
    """Return noisy counts of blocks of cells, or the cells selected among them, by group.

    The cells of a group are listed in order. Selections run one after the other, because a later one may use earlier
    results.
    """
    groups: list[Group] = [(key[:-1], {}) for key in exact.keys[::cells]]
    for noise in noises:
        counted = np.asarray(exact.values[noise.vector.statistic_name], dtype=object)
        if noise.vector.choice is not None:
            for (_, found), counts in zip(groups, counted.reshape(-1, cells), strict=True):
                found[noise.vector] = noise.choose_cell(counts, found)
            continue
        block = noise.vector.block or 1
        noisy = _add_noise(noise, tuple(counted.reshape(-1, block).sum(axis=1)))
        for place, (_, found) in enumerate(groups):
            first = place * cells // block
            found[noise.vector] = tuple(noisy[first : first + cells // block])
    return groups


def _consistent_records(
    fitted: Sequence[ConsistentFit], drawn: Mapping[Query, Mapping[Key, int]]
) -> Iterator[tuple[Query, list[dict[str, Any]]]]:
    """Yield the records of answers about the same rows after least squares, computed only from noisy integers."""
    named = {question.asked.name: question for question in drawn}
    for one in fitted:
        records = one.fitted_records({name: drawn[named[name]] for name in one.joined.answers})
        for question in map(named.__getitem__, one.joined.answers):
            keyed = zip(drawn[question], records[question.asked.name], strict=True)
            yield question, [{**dict(zip(question.key_columns, key, strict=True)), **record} for key, record in keyed]


def _dry_run_answers(
    draft: NoisePlan, requests: Sequence[Request], answer: Callable[[Sequence[GroupTotals]], Answers]
) -> None:
    """Run all arithmetic that follows the charge on zeros, so that errors occur before the budget is charged.

    One group is enough, unless answers are made consistent by their keys. A discovered group has missing values in
    its key columns here, and enough rows to be shown.
    """
    joined = {name for one in draft.consistent_fits() for name in one.joined.answers}
    zeros = []
    for task, noises, request in zip(draft.tasks, draft.noises(), requests, strict=True):
        given = tuple((step,) for step in request.row_count_steps) or request.keys or ((None,) * len(request.by),)
        every = any(one.asked.name in joined for one in task.ordered_queries)
        keys = given if every else given[: task.cells_per_group or 1]
        shown = {noise.vector.statistic_name: 2 * (noise.key_threshold or 0) for noise in noises}
        values = {measure.name: (shown.get(measure.name, 0),) * len(keys) for measure in request.measures}
        zeros.append(GroupTotals(keys, values))
    answer(zeros)


def _suppressed_group_count(
    task: QueryGroup, noises: Sequence[Noise], exact: GroupTotals, shown: list[Group]
) -> list[Group]:
    """Return one noisy integer per vector that counts over the groups that are not shown."""
    seen = {key for key, _ in shown}
    places = [place for place, key in enumerate(exact.keys) if key not in seen]
    own = [noise for noise in noises if noise.vector.over_all_groups and noise.vector not in task.diagnostic_counts]
    sums = {noise: sum(exact.values[noise.vector.statistic_name][place] for place in places) for noise in own}
    return [((), {noise.vector: _add_noise(noise, (total,))[0] for noise, total in sums.items()})]


def _add_noise(noise: Noise, exact: tuple[int, ...]) -> list[int]:
    """Return the exact integers plus a fresh noise draw for every group."""
    draws = noise.noise_mechanism.sample(len(exact))
    return [value + int(draw) for value, draw in zip(exact, np.asarray(draws).tolist(), strict=True)]


def _add_joint_noise(noises: tuple[Noise, ...], exact: GroupTotals) -> dict[NoisyStatistic, list[int]]:
    """Return exact integers plus a fresh point of the box for every group, with one coordinate per vector."""
    found = {}
    for noise, draws in zip(noises, draw_joint_points(noises, len(exact.keys)) if noises else (), strict=True):
        integers = exact.values[noise.vector.statistic_name]
        found[noise.vector] = [value + int(draw) for value, draw in zip(integers, draws.tolist(), strict=True)]
    return found


def _answer_rows(accuracy: Accuracy, groups: list[Group]) -> list[dict[str, Any]]:
    """Return one record per shown group: its key, value, lower, upper."""
    by, records = accuracy.question.key_columns, [accuracy.estimate(integers) for _, integers in groups]
    shown = accuracy.question.select_shown_groups(records, accuracy.named)
    return [{**dict(zip(by, groups[place][0], strict=True)), **record} for place, record in shown]
