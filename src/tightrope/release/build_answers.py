"""From the engine's integers to answers: noise is added here and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib import metadata
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.documents.document import BudgetPart, TablePart, plain
from tightrope.documents.release import (
    RELEASES,
    ChoicePart,
    Profile,
    PublicTablePart,
    RanMechanism,
    Rates,
    ReleaseCertificate,
)
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.queries.query_group import Task
from tightrope.queries.statistics import Noise, Vector, drawn_points
from tightrope.release.answers import Answer, Answers
from tightrope.release.bias_check import costs_found
from tightrope.release.settings import guarantee_data, neighbours_data
from tightrope.tables.request import Grouped

if TYPE_CHECKING:
    from tightrope.queries.accuracy import Accuracy
    from tightrope.queries.query import Question
    from tightrope.release.consistency import Fitted
    from tightrope.release.draft import Draft
    from tightrope.tables import PublicTable, Table
    from tightrope.tables.request import Request

# The certificate: inert data with which anybody can check the claim, and nothing that depends on the data.

EPSILONS = 25
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
ARGUMENT = (
    "Each mechanism's privacy loss is computed from the integer weights below, which are the ones that are sampled. "
    "For every answer the whole profile is maximised over all ways in which one person's rows may fall into groups; "
    "the maxima are composed on a lattice on which every rounding raises the loss. Parameters were fixed before "
    "anything was released."
)


def certificate_of(draft: Draft) -> ReleaseCertificate:
    """Guarantee, every mechanism with its table, neighbours, bounds, how each number was computed, versions.

    It is read back before anything is spent: what could not be read is never promised.
    """
    # The profile and the attacker's best rates, all upper bounds.
    top = max(float(epsilon) for epsilon, _ in draft.budget.points) or draft.loss.epsilon(float(draft.budget.delta))
    epsilons = tuple(top * 1.25 * i / (EPSILONS - 1) for i in range(EPSILONS))
    rates = draft.loss.true_positive_rate(list(FALSE_POSITIVE_RATES)).tolist()
    profile, tradeoff = (
        Profile(epsilon=epsilons, delta=tuple(draft.loss.delta(list(epsilons)).tolist())),
        Rates(false_positive_rate=FALSE_POSITIVE_RATES, true_positive_rate=tuple(rates)),
    )
    data = {
        "document": "release certificate",
        "version": 2,
        **guarantee_data(draft.loss, draft.budget),
        "budget": plain(BudgetPart.of(draft.budget)),
        "share": str(draft.share),
        "neighbours": neighbours_data(draft.person),
        "public_tables": [plain(_public(table)) for table in draft.public],
        "mechanisms": [plain(mechanism) for mechanism in _mechanisms(draft)],
        "consistent": [fitted.data() for fitted in draft.fitted()],
        "profile": plain(profile),
        "tradeoff": plain(tradeoff),
        "alternatives": draft.alternatives,
        "computed": {"engine": draft.loss.engine, "argument": ARGUMENT, "rounding": "upper bounds throughout"},
        "versions": {name: metadata.version(name) for name in ("tightrope", "numpy", "scipy")},
        "ledger": "not recorded in a ledger",
    }
    return RELEASES.data(data, ReleaseCertificate)


def _mechanisms(draft: Draft) -> list[RanMechanism]:
    """Every noisy vector, in the order in which noise is drawn."""
    number, found = count(1), []
    for task, noises in zip(draft.tasks, draft.noises(), strict=True):
        together = {own: next(number) for own in task.sets}
        found += [_mechanism(task, noise, together) for noise in noises]
    return found


def _mechanism(task: Task, noise: Noise, together: Mapping[tuple[Vector, ...], int]) -> RanMechanism:
    """One noisy vector; ``together`` numbers the sets of the task that share a unit of privacy."""
    measure, label = noise.vector.measure, noise.vector.exclusive
    own = next(own for own in together if noise.vector in own)
    contribution = task.shifted(own)
    return RanMechanism(
        answers=task.answered_by(noise.vector),
        statistic=noise.vector.spend.statistic,
        column=" and ".join(map(str, measure.columns)) or None,
        by=() if noise.vector.whole else tuple(map(str, task.by)),
        where=None if task.where is None else str(task.where),
        family=noise.family,
        unit=noise.vector.unit,
        sensitivity_per_row=str(noise.vector.sensitivity),
        table_steps_per_row=noise.shift,
        rows=contribution.rows,
        rows_per_group=contribution.rows_per_group,
        groups=contribution.groups,
        factor=str(noise.mechanism.factor),
        table=RELEASES.data(_weights(noise.table).to_data(), TablePart),
        exclusive=label,
        together=together[own],
        choice=_choice(task, noise),
        box=noise.table.dimension if isinstance(noise.table, BoxTable) else None,
    )


def _weights(table: AnyTable) -> NoiseTable:
    """What is drawn from: the noise of a number, or the half-widths of a box."""
    return table.radii if isinstance(table, BoxTable) else table


def _choice(task: Task, noise: Noise) -> ChoicePart | None:
    """What is chosen, in place of a number with noise."""
    choice, cells = noise.vector.choice, task.cells
    if choice is None or cells is None:
        return None
    target = None if choice.around is None else str(choice.target(noise.law, cells))
    return ChoicePart(below=str(choice.below), cells=cells, root=str(noise.law.root), target=target)


def _public(table: PublicTable) -> PublicTablePart:
    """Which public table rows looked something up in."""
    return PublicTablePart(
        name=table.name, on=dict(table.on), columns=table.added.names, rows=table.rows.num_rows, sha256=table.digest
    )


Key = tuple[object, ...]
Group = tuple[Key, dict["Vector", Any]]
"""A key, and the noisy integers of its group: one a vector, or, where the group is counted in cells, one a block."""


def answering(draft: Draft, certificate: ReleaseCertificate) -> Callable[[Sequence[Grouped]], Answers]:
    """What turns exact integers, task by task, into answers: add noise, withhold, compute from noisy integers only.

    Whatever can be computed without the integers is computed now, and the answers are written out once without a
    record: what no document can hold fails here, before it is paid for. What is left draws and adds up.
    """
    accuracies = {accuracy.question: accuracy for accuracy in draft.accuracies()}
    blank = {question: Answer(question, [], draft.answer_data(accuracies[question])) for question in draft.questions}
    Answers(tuple(blank.values()), certificate).result()
    noises, fitted = draft.noises(), draft.fitted()
    joined = {name for one in fitted for name in one.joined.answers}

    def answers(exact: Sequence[Grouped]) -> Answers:
        found: dict[Question, Answer] = {}
        drawn: dict[Question, dict[Key, int]] = {}
        counts: list[dict[Vector, int]] = []
        for task, every, integers in zip(draft.tasks, noises, exact, strict=True):
            own = tuple(noise for noise in every if not noise.vector.whole)
            groups = _noisy(task, own, integers) if task.cells is None else _in_cells(task.cells, own, integers)
            rest = _left_over(task, every, integers, groups)
            for one in task.questions:
                shown = rest if one.left_over else groups
                found[one] = replace(blank[one], rows=_rows(accuracies[one], shown))
                if one.asked.name in joined:
                    drawn[one] = _integers_by_group(task, one, groups)
            counts.append(_over_all_groups([noise for noise in every if noise.vector in task.tallies], integers))
        for one, rows in _consistent(fitted, drawn):
            found[one] = replace(found[one], rows=rows)
        return Answers(
            tuple(found[question] for question in blank),
            certificate,
            costs_found(draft.tasks, noises, counts, draft.person),
        )

    return answers


def prepared(
    draft: Draft, table: Table, turn: threading.Lock
) -> Callable[[], AbstractContextManager[Callable[[], Answers]]]:
    """Return what checks everything that does not depend on the rows, and gives the work that is to be paid for.

    The work reads the rows once, counts them and draws. Whether reading fails can depend on the rows, so it happens
    after the charge (``docs/proofs/reading.md``). Before the charge: the certificate, the arithmetic of every answer
    on zeros, and that the source is there and is what was opened. One release reads at a time, because releases share
    a connection; ``turn`` is the lock.
    """

    @contextmanager
    def checked() -> Iterator[Callable[[], Answers]]:
        answer = answering(draft, certificate_of(draft))
        requests = [task.request for task in draft.tasks]
        _rehearse(draft, requests, answer)
        with turn:
            table.check(requests)

        def read_and_draw() -> Answers:
            with turn, table.snapshot(requests) as rows:
                exact = [rows.collect(request) for request in requests]
            return answer(exact)

        yield read_and_draw

    return checked


def _noisy(task: Task, noises: tuple[Noise, ...], exact: Grouped) -> list[Group]:
    """Noisy integers by group. Discovered keys whose noisy count stays within the noise's reach are withheld."""
    box = tuple(noise for noise in noises if noise.vector.boxed)
    columns = {noise.vector: _add(noise, exact.values[noise.vector.name]) for noise in noises if noise not in box}
    columns |= _add_point(box, exact)
    groups = [
        (key, dict(zip(columns, integers, strict=True)))
        for key, *integers in zip(exact.keys, *columns.values(), strict=True)
    ]
    threshold = {noise.vector: int(noise.mechanism.worst_error) for noise in noises if noise.vector == task.key_count}
    return [group for group in groups if all(group[1][vector] > reach for vector, reach in threshold.items())]


def _in_cells(cells: int, noises: tuple[Noise, ...], exact: Grouped) -> list[Group]:
    """Noisy counts of blocks of cells, one after the other, by group: the cells of a group are listed in order.

    Or what is chosen among them: one after the other, for a later choice may look at an earlier one.
    """
    groups: list[Group] = [(key[:-1], {}) for key in exact.keys[::cells]]
    for noise in noises:
        counted = np.asarray(exact.values[noise.vector.name], dtype=object)
        if noise.vector.choice is not None:
            for (_, found), counts in zip(groups, counted.reshape(-1, cells), strict=True):
                found[noise.vector] = noise.chosen(counts, found)
            continue
        block = noise.vector.block or 1
        noisy = _add(noise, tuple(counted.reshape(-1, block).sum(axis=1)))
        for place, (_, found) in enumerate(groups):
            first = place * cells // block
            found[noise.vector] = tuple(noisy[first : first + cells // block])
    return groups


def _over_all_groups(noises: Sequence[Noise], exact: Grouped) -> dict[Vector, int]:
    """One noisy integer a vector, whatever the groups are, and whichever of them are shown."""
    return {noise.vector: _add(noise, (sum(exact.values[noise.vector.name]),))[0] for noise in noises}


def _integers_by_group(task: Task, question: Question, groups: list[Group]) -> dict[Key, int]:
    """The noisy integers of a question that has one vector, by key."""
    (vector,) = task.served[question].values()
    return {key: integers[vector] for key, integers in groups}


def _consistent(
    fitted: Sequence[Fitted], drawn: Mapping[Question, Mapping[Key, int]]
) -> Iterator[tuple[Question, list[dict[str, Any]]]]:
    """The records of answers about the same rows after least squares: nothing but arithmetic on what was drawn."""
    named = {question.asked.name: question for question in drawn}
    for one in fitted:
        records = one.records({name: drawn[named[name]] for name in one.joined.answers})
        for question in map(named.__getitem__, one.joined.answers):
            keyed = zip(drawn[question], records[question.asked.name], strict=True)
            yield question, [{**dict(zip(question.columns, key, strict=True)), **record} for key, record in keyed]


def _rehearse(draft: Draft, requests: Sequence[Request], answer: Callable[[Sequence[Grouped]], Answers]) -> None:
    """Do all arithmetic that follows the charge on zeros: what would fail there fails before it is paid for.

    One group is enough, but where answers are made consistent by their keys. A group whose key is discovered is taken
    to have no value in its key columns, and enough rows to be shown.
    """
    joined = {name for one in draft.fitted() for name in one.joined.answers}
    zeros = []
    for task, noises, request in zip(draft.tasks, draft.noises(), requests, strict=True):
        given = tuple((step,) for step in request.steps) or request.keys or ((None,) * len(request.by),)
        every = any(one.asked.name in joined for one in task.questions)
        keys = given if every else given[: task.cells or 1]
        shown = {noise.vector.name: 2 * (noise.threshold or 0) for noise in noises}
        values = {measure.name: (shown.get(measure.name, 0),) * len(keys) for measure in request.measures}
        zeros.append(Grouped(keys, values))
    answer(zeros)


def _left_over(task: Task, noises: Sequence[Noise], exact: Grouped, shown: list[Group]) -> list[Group]:
    """One noisy integer a vector that counts what is left over: the groups that are not among those shown."""
    seen = {key for key, _ in shown}
    places = [place for place, key in enumerate(exact.keys) if key not in seen]
    own = [noise for noise in noises if noise.vector.whole and noise.vector not in task.tallies]
    sums = {noise: sum(exact.values[noise.vector.name][place] for place in places) for noise in own}
    return [((), {noise.vector: _add(noise, (total,))[0] for noise, total in sums.items()})]


def _add(noise: Noise, exact: tuple[int, ...]) -> list[int]:
    """One fresh draw for every group."""
    draws = noise.mechanism.sample(len(exact))
    return [value + int(draw) for value, draw in zip(exact, np.asarray(draws).tolist(), strict=True)]


def _add_point(noises: tuple[Noise, ...], exact: Grouped) -> dict[Vector, list[int]]:
    """One fresh point of the box for every group, one number of it a vector."""
    found = {}
    for noise, draws in zip(noises, drawn_points(noises, len(exact.keys)) if noises else (), strict=True):
        integers = exact.values[noise.vector.name]
        found[noise.vector] = [value + int(draw) for value, draw in zip(integers, draws.tolist(), strict=True)]
    return found


def _rows(accuracy: Accuracy, groups: list[Group]) -> list[dict[str, Any]]:
    """A record a group that is answered: its key, value, lower, upper."""
    by, records = accuracy.question.columns, [accuracy.record(integers) for _, integers in groups]
    shown = accuracy.question.shown(records, accuracy.named)
    return [{**dict(zip(by, groups[place][0], strict=True)), **record} for place, record in shown]
