"""Sums of several columns: with noise of their own, or as one point of a box, whichever has the smaller error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import MappingProxyType

from tightrope.certificates.budget import Budget
from tightrope.design.allocation.allocation import Allocation, allocate
from tightrope.design.allocation.units import BOX_STEPS, Unit
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.tables.box_table import MOST_DIMENSIONS
from tightrope.release.questions.tasks import Task

Tasks = tuple[Task, ...]
APART, TOGETHER = "each sum by itself", "sums in one box"


def arrangements(tasks: Tasks, fitted: Collection[str]) -> tuple[Tasks, ...]:
    """The tasks as they are; then, where that is another way, with boxes for all sums that may share their noise.

    ``fitted`` names questions that are made consistent with others: their noise stays independent.
    """
    boxed = tuple(_boxed(task, fitted) for task in tasks)
    return (tasks,) if boxed == tasks else (tasks, boxed)


def allocated(
    ways: Sequence[Tasks],
    budget: Budget,
    *,
    compare: bool = True,
    like: tuple[Tasks, Allocation] | None = None,
    times: int = 1,
) -> tuple[Tasks, Allocation]:
    """The way with the least error and its noise. Raises ``BudgetRefused`` where no noise keeps the budget.

    ``like`` what another budget took: its way and its families alone. ``times``: so many releases keep it together.
    """
    if like is not None:
        return like[0], allocate(units_of(like[0]), budget, compare=compare, like=like[1])
    (plain, *others), found = ways, []
    found.append((plain, allocate(units_of(plain) * times, budget, compare=compare)))
    for tasks in others if budget.delta > 0 else ():
        try:
            found.append((tasks, allocate(units_of(tasks) * times, budget, compare=False)))
        except BudgetRefused:
            continue
    tasks, best = min(found, key=lambda pair: pair[1].error)
    beside = {_called(other): one.error / best.error for other, one in found if other is not tasks}
    return tasks, replace(best, alternatives={**beside, **best.alternatives})


def units_of(tasks: Sequence[Task]) -> list[Unit]:
    """The units of privacy of all tasks, in their order."""
    return [unit for task in tasks for unit in task.units]


def _called(tasks: Tasks) -> str:
    return TOGETHER if any(vector.boxed for task in tasks for vector in task.vectors) else APART


def _boxed(task: Task, fitted: Collection[str]) -> Task:
    """The same task with its sums in one box: those of the most common relative size, if there are several."""
    bounds = task.contribution()
    ours = [
        vector
        for question, own in task.served.items()
        if question.boxes and question.name not in fitted
        for vector in own.values()
    ]
    sizes = Counter(vector.spend.eighths for vector in ours)
    size, many = max(sizes.items(), key=lambda item: item[1], default=(0, 0))
    if not (many > 1 and bounds.exact and bounds.largest_part <= BOX_STEPS):
        return task
    chosen = [vector for vector in ours if vector.spend.eighths == size][:MOST_DIMENSIONS]
    served = {
        question: MappingProxyType({name: replace(v, boxed=v in chosen) for name, v in own.items()})
        for question, own in task.served.items()
    }
    return replace(task, served=MappingProxyType(served))
