"""From the engine's integers to answers: noise is added here and nowhere else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.release.answers import Answer, Answers
from tightrope.release.questions.accuracy import Accuracy, Noise, mean_interval

if TYPE_CHECKING:
    from tightrope.certificates.release import ReleaseCertificate
    from tightrope.engines import Table
    from tightrope.engines.request import Grouped
    from tightrope.release.plan import Plan
    from tightrope.release.questions.tasks import Task

Key = tuple[object, ...]
Noisy = dict[str, list[int]]


def answer_tasks(plan: Plan, table: Table, certificate: ReleaseCertificate) -> Answers:
    """Read, add noise, withhold, and compute every answer from noisy integers only."""
    accuracies = iter(plan.accuracies())
    answers = []
    for task, noises in zip(plan.tasks, plan.noises(), strict=True):
        keys, noisy = _noisy(task, noises, table.collect(task.request))
        for _ in task.questions:
            accuracy = next(accuracies)
            answers.append(Answer(accuracy.question, _rows(accuracy, keys, noisy), plan.answer_data(accuracy)))
    return Answers(tuple(answers), certificate)


def _noisy(task: Task, noises: tuple[Noise, ...], exact: Grouped) -> tuple[list[Key], Noisy]:
    """Noisy integers by measure. Discovered keys whose noisy count stays within the noise's reach are withheld."""
    noisy = {noise.vector.measure.name: _add(noise, exact.values[noise.vector.measure.name]) for noise in noises}
    if not task.discovered:
        return list(exact.keys), noisy
    first = noises[0]
    threshold = int(first.mechanism.worst_error)
    shown = [i for i, value in enumerate(noisy[first.vector.measure.name]) if value > threshold]
    return [exact.keys[i] for i in shown], {name: [values[i] for i in shown] for name, values in noisy.items()}


def _add(noise: Noise, exact: tuple[int, ...]) -> list[int]:
    """One fresh draw for every group."""
    draws = noise.mechanism.sample(len(exact))
    return [value + int(draw) for value, draw in zip(exact, np.asarray(draws).tolist(), strict=True)]


def _rows(accuracy: Accuracy, keys: list[Key], noisy: Noisy) -> list[dict[str, Any]]:
    """A record a group: its key, value, lower, upper."""
    columns = [noisy[noise.vector.measure.name] for noise in accuracy.noises]
    by = accuracy.question.by
    return [
        {**dict(zip(by, key, strict=True)), **_record(accuracy, integers)}
        for key, *integers in zip(keys, *columns, strict=True)
    ]


def _record(accuracy: Accuracy, integers: list[int]) -> dict[str, Any]:
    noise = accuracy.noises[0]
    if accuracy.question.kind == "mean":
        return _mean(accuracy, integers)
    width = noise.half_width()
    if accuracy.question.kind == "count":
        return {"value": integers[0], "lower": integers[0] - int(width), "upper": integers[0] + int(width)}
    value = integers[0] * noise.step
    return {
        "value": value,
        "lower": math.nextafter(value - width, -math.inf),
        "upper": math.nextafter(value + width, math.inf),
    }


def _mean(accuracy: Accuracy, integers: list[int]) -> dict[str, Any]:
    """Midpoint + noisy centred sum / noisy count, inside the range; withheld where the noisy count is below 1."""
    low, high = accuracy.question.between or (0.0, 0.0)
    fixed, step = accuracy.noises[0].vector.measure.fixed_point, accuracy.noises[0].step
    middle = (fixed.centre if fixed else 0) * step
    reach = max(high - middle, middle - low)
    total, usable = integers[0] * step, float(integers[1])
    below, above = mean_interval(total, usable, accuracy.noises, reach)
    ends = {"lower": max(low, middle + below), "upper": min(high, middle + above)}
    if usable < 1:
        return {"value": None, "lower": low, "upper": high}
    return {"value": min(max(middle + total / usable, low), high), **ends}
