"""Which answers are about the same rows, so that parts add up to totals whatever the table holds, and which are not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

from tightrope.certificates.printable import printable
from tightrope.engines.schema import Schema
from tightrope.release.questions.node import Question
from tightrope.release.questions.tasks import Task
from tightrope.release.questions.vector import Vector
from tightrope.release.totals.axes import Axis, axes_of

MOST_JOINED, MOST_AXES, MOST_COLUMNS = 20_000, 30, 4
"""Groups and key columns of all answers that are made consistent with each other; key columns of one of them."""
DISCOVERED = "groups that are discovered may be withheld, and then the sum lacks them"
BOUNDED = "where a person has more rows than count, others of them may count in the one than in the other"
TOO_MANY = "together they have too many groups or key columns"


@dataclass(frozen=True, slots=True)
class Joined:
    """Answers about the same rows, by name. ``shared``: "groups" agree wherever they overlap, or only the "total" does.

    ``axes`` are what they divide the rows by: all values of each. ``own`` says which of them each answer has, by their
    places (no text tells them apart: columns may be called anything): one a key column, or, where they share the total
    alone, one for its whole key.
    """

    answers: tuple[str, ...]
    shared: Literal["groups", "total"]
    axes: tuple[tuple[object, ...], ...]
    own: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Sums:
    """What is made consistent, and why other answers that look like totals and parts are not: notes, by name."""

    joined: tuple[Joined, ...] = ()
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One answer whose values add up: its task, its vector, its axes (None: its groups are no full grid)."""

    question: Question
    task: Task
    vector: Vector
    axes: tuple[Axis, ...] | None

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def measured(self) -> object:
        measure = self.vector.measure
        return measure.column, measure.fixed_point, measure.beside, self.task.where

    @property
    def free(self) -> bool:
        """Whether each row is a person, so that no bound leaves out any."""
        return self.task.bounds.person is None

    @property
    def evenly(self) -> bool:
        """Whether as many rows of a person count as they have, up to one bound over all groups."""
        bounds, groups = self.task.bounds, 1 if self.task.keys is None else len(self.task.keys)
        return bounds.rows_per_group >= bounds.rows and bounds.groups >= min(bounds.rows, groups)

    @property
    def rows(self) -> object:
        """Answers with the same are about the same rows; None where that cannot be known.

        Each row a person: what passes the condition and is listed. Else the number of a person's rows that count is
        the same where nothing but one bound decides it – though which rows these are may differ.
        """
        if self.axes is None:
            return None
        if self.free:
            return self.measured, frozenset(axis for axis in self.axes if not axis.whole)
        counted = self.vector.measure.column is None and self.evenly and all(axis.whole for axis in self.axes)
        return (self.measured, self.task.bounds.rows) if counted else None


def related(tasks: Sequence[Task], schema: Schema) -> Sums:
    """What is proven from the schema, the questions and the bounds, before a row is read."""
    sides = list(_sides(tasks, schema))
    gathered: dict[object, list[_Side]] = {}
    for side in sides:
        if side.rows is not None:
            gathered.setdefault(side.rows, []).append(side)
    found = [_joined(own) for alike in gathered.values() for own in _connected(alike)]
    joined = tuple(one for one in found if _small(one))
    return Sums(joined, _apart(sides, joined))


def _sides(tasks: Sequence[Task], schema: Schema) -> Iterator[_Side]:
    for task in tasks:
        for question, vectors in task.served.items():
            if question.adds_up:
                (vector,) = vectors.values()
                yield _Side(question, task, vector, axes_of(question, schema))


def _connected(alike: list[_Side]) -> Iterator[list[_Side]]:
    """Those that hang together by one being a total of another; where only totals agree, with the total alone."""
    if not alike[0].free:
        if {bool(side.axes) for side in alike} == {True, False}:
            yield alike
        return
    left = list(alike)
    while left:
        own = [left.pop(0)]
        for side in own:  # grows
            near = [other for other in left if _nested(side, other) or _nested(other, side)]
            left = [other for other in left if other not in near]
            own += near
        if len(own) > 1:
            yield own


def _nested(total: _Side, parts: _Side) -> bool:
    return set(total.axes or ()) < set(parts.axes or ())


def _joined(own: list[_Side]) -> Joined:
    answers = tuple(side.name for side in own)
    if not own[0].free:
        divided = [side for side in own if side.question.keys]
        each = tuple((divided.index(side),) if side in divided else () for side in own)
        return Joined(answers, "total", tuple(tuple(side.question.keys or ()) for side in divided), each)
    places: dict[Axis, int] = {}
    for axis in (axis for side in own for axis in side.axes or ()):
        places.setdefault(axis, len(places))
    values = tuple(tuple(axis.values) for axis in places)
    return Joined(answers, "groups", values, tuple(tuple(places[a] for a in side.axes or ()) for side in own))


def _small(joined: Joined) -> bool:
    sizes = list(map(len, joined.axes))
    groups = sum(math.prod(sizes[axis] for axis in own) for own in joined.own)
    return groups <= MOST_JOINED and len(sizes) <= MOST_AXES and max(map(len, joined.own)) <= MOST_COLUMNS


def _apart(sides: Sequence[_Side], joined: Sequence[Joined]) -> dict[str, tuple[str, ...]]:
    """Notes on parts whose total is asked for, too, and is left alone."""
    found: dict[str, tuple[str, ...]] = {}
    for one, other in combinations(sides, 2):
        total, parts = (one, other) if len(one.question.by) < len(other.question.by) else (other, one)
        nested = set(total.question.asked.terms) < set(parts.question.asked.terms)
        together = any(total.name in own.answers and parts.name in own.answers for own in joined)
        if nested and total.measured == parts.measured and not together:
            note = f"its groups are not made to add up to {printable(total.name)}: {_why(total, parts)}"
            found[parts.name] = (*found.get(parts.name, ()), note)
    return found


def _why(total: _Side, parts: _Side) -> str:
    if any(side.question.by and side.question.keys is None for side in (total, parts)):
        return DISCOVERED
    if total.axes is None or parts.axes is None:
        return "the groups that are listed are not all combinations of their values"
    if total.rows is not None and total.rows == parts.rows:
        return TOO_MANY if total.free or not total.axes else BOUNDED
    loose = [axis for axis in parts.axes if not axis.whole and axis not in total.axes]
    if loose:
        return "; ".join(filter(None, ("rows of other groups count there", loose[0].remedy)))
    return BOUNDED if not total.free else "they list other groups"
