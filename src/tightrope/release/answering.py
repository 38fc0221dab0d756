"""From the engine's integers to answers: noise is added here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.release.answers import Answer, Answers

if TYPE_CHECKING:
    from tightrope.certificates.release import ReleaseCertificate
    from tightrope.engines import Snapshot
    from tightrope.engines.request import Grouped
    from tightrope.release.draft import Draft
    from tightrope.release.questions.accuracy import Accuracy
    from tightrope.release.questions.tasks import Task
    from tightrope.release.questions.vector import Noise, Vector

Key = tuple[object, ...]
Group = tuple[Key, dict["Vector", int]]
"""A key, and the noisy integers of its group."""


def answer_tasks(draft: Draft, rows: Snapshot, certificate: ReleaseCertificate) -> Answers:
    """Add noise, withhold, and compute every answer from noisy integers only."""
    accuracies = {accuracy.question: accuracy for accuracy in draft.accuracies()}
    answers: list[Answer] = []
    for task, noises in zip(draft.tasks, draft.noises(), strict=True):
        groups = _noisy(task, noises, rows.collect(task.request))
        answers += [
            Answer(question, _rows(accuracies[question], groups), draft.answer_data(accuracies[question]))
            for question in task.questions
        ]
    return Answers(tuple(answers), certificate)


def _noisy(task: Task, noises: tuple[Noise, ...], exact: Grouped) -> list[Group]:
    """Noisy integers by group. Discovered keys whose noisy count stays within the noise's reach are withheld."""
    columns = {noise.vector: _add(noise, exact.values[noise.vector.name]) for noise in noises}
    groups = [
        (key, dict(zip(columns, integers, strict=True)))
        for key, *integers in zip(exact.keys, *columns.values(), strict=True)
    ]
    threshold = {noise.vector: int(noise.mechanism.worst_error) for noise in noises if noise.vector == task.key_count}
    return [group for group in groups if all(group[1][vector] > reach for vector, reach in threshold.items())]


def _add(noise: Noise, exact: tuple[int, ...]) -> list[int]:
    """One fresh draw for every group."""
    draws = noise.mechanism.sample(len(exact))
    return [value + int(draw) for value, draw in zip(exact, np.asarray(draws).tolist(), strict=True)]


def _rows(accuracy: Accuracy, groups: list[Group]) -> list[dict[str, Any]]:
    """A record a group: its key, value, lower, upper."""
    by = accuracy.question.by
    return [{**dict(zip(by, key, strict=True)), **accuracy.record(integers)} for key, integers in groups]
