"""What is counted beside the questions: rows with and without the bound, values beyond each end, missing fields."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

from tightrope.certificates.budget import Number, decimal
from tightrope.certificates.printable import printable
from tightrope.design.allocation.units import Spend, Unit
from tightrope.engines.expressions.choices import Case
from tightrope.engines.expressions.conditions import Compare, Missing, Not
from tightrope.engines.expressions.leaves import Column, literal
from tightrope.engines.expressions.terms import Term
from tightrope.engines.expressions.tree import Tree
from tightrope.engines.request import Measure, PersonBounds
from tightrope.engines.schema import Schema
from tightrope.errors import InputError, PlanError
from tightrope.release.questions.tasks import Task
from tightrope.release.questions.vector import Vector

What = Literal["used", "all", "below", "above", "missing"]
MANY_TIMES = 16
"""All rows of a person are counted up to so many times the bound: beyond it even this count needs one."""
MOST_OF_BUDGET = Decimal("0.5")
"""The part of the budget that they may take stays below it."""
NOISE_SIZES = tuple(sorted({factor * 2**power for power in range(3, 12) for factor in (2, 3)}))
"""Relative sizes of their noise, in eighths: they share a lattice, and larger ones would make all tables long."""
MORE = 4
"""So many times as much is spent on a count of all rows."""
Range = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Tally:
    """What a vector counts, over all groups together; ``column`` where it is about the values of one."""

    what: What
    column: Term | None
    limits: Range


def with_tallies(tasks: Sequence[Task], part: Decimal, schema: Schema) -> tuple[Task, ...]:
    """The tasks with tallies that take at most this part of the budget, by the loss of a person's rows.

    A tally is one integer over all groups. A person adds to it at most the rows that the engine keeps of them:
    ``bounds.rows``, or ``MANY_TIMES`` times as many where all are counted. Where that is one row, it is in one tally
    of a column only. Raises ``PlanError`` for a part that is too small for so many tallies.
    """
    if not part:
        return tuple(tasks)
    spent = sum(_weight(unit) for task in tasks for unit in task.units)
    every = [*tasks, *{rows_of(found): found for found in map(every_row, bounded(tasks))}.values()]
    return _sized(_each_once(every, schema), spent * float(part / (1 - part)))


def bounded(tasks: Sequence[Task]) -> list[Task]:
    """Those in which a person may have more rows than count."""
    return [task for task in tasks if task.bounds.person is not None and not task.steps]


def sliver(costs: Number) -> Decimal:
    """The part of the budget as it was asked for; raises ``InputError`` unless it is from 0 on and below a half."""
    part = decimal("costs", costs)
    if not 0 <= part < MOST_OF_BUDGET:
        raise InputError("costs", costs, f"from 0, which counts nothing, to below {MOST_OF_BUDGET}", "0.02 is usual")
    return part


def tallies_of(task: Task) -> tuple[Tally, ...]:
    """All that are counted beside the questions of a task."""
    if not task.served or task.steps:
        return ()
    used = () if task.bounds.person is None else (Tally("used", None, None),)
    ranges = dict.fromkeys(pair for question in task.questions for pair in question.ranges)
    return (*used, *(tally for term, limits in ranges for tally in _of_column(term, limits, task)))


def _of_column(term: Term, limits: Range, task: Task) -> tuple[Tally, ...]:
    """Both ends where there are some; missing fields, but in cells, where rows without a value have no place."""
    ends = () if limits is None else (Tally("below", term, limits), Tally("above", term, limits))
    return (*ends, *(() if task.cells is not None else (Tally("missing", term, limits),)))


def _each_once(tasks: Sequence[Task], schema: Schema) -> list[Task]:
    """Every tally in the first task that has it, about the questions of all that have it."""
    about: dict[object, list[str]] = {}
    for task in tasks:
        for tally in tallies_of(task):
            about.setdefault(place_of(tally, task), []).extend(_about(tally, task))
    left, found = dict(about), []
    for task in tasks:
        own = [(tally, left.pop(place)) for tally in tallies_of(task) if (place := place_of(tally, task)) in left]
        vectors = tuple(_vector(tally, task.bounds.rows, _counted(tally, schema)) for tally, _ in own)
        names = {vector.name: tuple(said) for vector, (_, said) in zip(vectors, own, strict=True)}
        found.append(replace(task, tallies=(*task.tallies, *vectors), about={**task.about, **names}))
    return found


def _about(tally: Tally, task: Task) -> list[str]:
    """The questions whose answers it says something of: for the values of a column those that read it so."""
    pair = (tally.column, tally.limits)
    return [question.name for question in task.questions if tally.column is None or pair in question.ranges]


def place_of(tally: Tally, task: Task) -> object:
    """What decides which rows it counts: for the values of a column, not by what they are grouped in cells."""
    return tally, used_by(task) if tally.column is None else (task.where, _chosen(task), _groups(task))


def used_by(task: Task) -> object:
    """What decides which rows a task uses: which there are, and which of a person's are chosen."""
    return rows_of(every_row(task)), _chosen(task)


def _chosen(task: Task) -> object:
    """What decides which rows of a person count: the groups, too, where they bound more than the rows do."""
    bounds = task.bounds
    by_group = bounds.rows_per_group < bounds.rows or (bool(task.by) and bounds.groups < bounds.rows)
    return bounds.rows, (task.by, bounds) if by_group else None


def _groups(task: Task) -> object:
    """The groups that are listed; None where none are, so that every row is in one."""
    by = task.by if task.cells is None else task.by[:-1]
    if task.keys is None or not by:
        return None
    return by, task.keys if task.cells is None else tuple(dict.fromkeys(key[:-1] for key in task.keys))


def every_row(task: Task) -> Task:
    """The rows of the same groups under a bound so many times as large, and nothing but their number."""
    most = task.bounds.rows * MANY_TIMES
    listed = task.keys is not None and bool(task.by)
    by, keys, cells = (task.by, task.keys, task.cells) if listed else ((), ((),), None)
    bounds = PersonBounds(task.bounds.person, most, most, most if listed else 1)
    vector = _vector(Tally("all", None, None), most, None)
    about = {vector.name: tuple(question.name for question in task.questions)}
    return Task(MappingProxyType({}), by, keys, bounds, task.where, cells, None, tallies=(vector,), about=about)


def rows_of(task: Task) -> object:
    """What decides which rows a count of all of them is of."""
    return task.by, task.keys, task.where, task.bounds


def _vector(tally: Tally, rows: int, counted: Tree | None) -> Vector:
    """The count; those of one column share the noise of one where a person has one row, which is in one of them."""
    column = "" if tally.column is None else f" of {printable(str(tally.column))}"
    spend = Spend(f"rows, {tally.what}{column}, over all groups", NOISE_SIZES[-1], True)
    alone = tally.column is None or rows > 1
    label = name_of(tally) if alone else f"values {_of(tally)}"
    return Vector(Measure(name_of(tally), counted, None), spend, rows, exclusive=label, whole=True)


def name_of(tally: Tally) -> str:
    """What its vector is called."""
    return tally.what if tally.column is None else f"{tally.what} {_of(tally)}"


def _of(tally: Tally) -> str:
    """Which column and ends it is about, as no other has it: texts that are shown may be alike where columns differ."""
    return hashlib.sha256(repr((tally.column, tally.limits)).encode()).hexdigest()[:32]


def _counted(tally: Tally, schema: Schema) -> Tree | None:
    """Return an expression that has a value in the rows that are counted, and none in others.

    Truth values are compared as the numbers 0 and 1 that they add to a sum.
    """
    if tally.column is None:
        return None
    own = tally.column if isinstance(tally.column, Tree) else Column(tally.column)
    if tally.what == "missing" or tally.limits is None:
        return Case((Missing(own),), (literal(1), None))
    if own.facts(schema).kind == "boolean":
        own = Case((own, Not(own)), (literal(1), literal(0), None))
    sign, end = ("<", tally.limits[0]) if tally.what == "below" else (">", tally.limits[1])
    return Case((Compare(sign, own, literal(float(end))),), (literal(1), None))


def _weight(unit: Unit) -> float:
    """The loss of one person's rows, relative to others'."""
    return sum(unit.contribution.most_rows / spend.size for spend in unit.spends)


def _sized(tasks: Sequence[Task], spent: float) -> tuple[Task, ...]:
    """The tallies with the noise of what may be spent; a count of all rows, whose noise is largest, gets more of it."""
    shares = sum(_share(own) for task in tasks for own in task.sets if own[0].whole)
    return tuple(_with_noise(task, shares / spent) for task in tasks)


def _share(own: Sequence[Vector]) -> int:
    return MORE if own[0].name == name_of(Tally("all", None, None)) else 1


def _with_noise(task: Task, size: float) -> Task:
    tallies = tuple(_with_size(vector, 8 * size / _share((vector,))) for vector in task.tallies)
    return replace(task, tallies=tallies)


def _with_size(vector: Vector, wanted: float) -> Vector:
    """Relative noise of the next size that is used, in eighths."""
    found = next((size for size in NOISE_SIZES if size >= wanted), None)
    if found is None:
        times = math.ceil(10 * wanted / NOISE_SIZES[-1]) / 10
        expected = "large enough for the counts of so many questions"
        raise PlanError("costs", "too little", expected, f"say {times:g} times as much, or ask fewer questions")
    return replace(vector, spend=replace(vector.spend, eighths=found))
