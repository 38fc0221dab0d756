"""From questions to work: which questions share a pass over the table, and which noisy vectors each one needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.design.allocation.contributions import Contribution
from tightrope.design.allocation.units import Spend, Unit, eighths
from tightrope.engines.request import FixedPoint, Measure, PersonBounds, Request
from tightrope.engines.schema import Schema
from tightrope.errors import PlanError, SchemaError
from tightrope.release.questions.fixed_point import grid, row_sensitivity
from tightrope.release.questions.question import Question

VALUES = ("integer", "number", "boolean")
COUNT_NOISE = 2.0
"""The count in a mean gets twice the relative noise of the sum: values seldom lie at the ends of their range."""
KEY_COUNT = "rows"


@dataclass(frozen=True, slots=True)
class Vector:
    """One integer per group that will be made noisy: what the engine computes, and what one row can change."""

    measure: Measure
    spend: Spend
    sensitivity: int


@dataclass(frozen=True, slots=True)
class Task:
    """Questions over the same groups with the same bounds: one pass over the table, one unit of privacy."""

    questions: tuple[Question, ...]
    by: tuple[str, ...]
    keys: tuple[tuple[object, ...], ...] | None
    bounds: PersonBounds
    vectors: tuple[Vector, ...]

    @property
    def discovered(self) -> bool:
        """Whether the groups come from the data."""
        return self.keys is None

    @property
    def request(self) -> Request:
        """What the engine is asked."""
        return Request(self.by, self.keys, self.bounds, tuple(vector.measure for vector in self.vectors))

    @property
    def unit(self) -> Unit:
        """One person's rows fall into the groups once, and shift all the task's vectors together."""
        groups = 1 if not self.by else self.bounds.groups
        contribution = Contribution(self.bounds.rows, self.bounds.rows_per_group, groups)
        return Unit(tuple(vector.spend for vector in self.vectors), contribution)


@dataclass(frozen=True, slots=True)
class Person:
    """What a person is, and how many of their rows count: the session's bounds."""

    column: str | None
    rows: int
    rows_per_group: int
    groups: int

    def bounds(self, question: Question) -> PersonBounds:
        """The bounds of one question; a question without groups has one group."""
        if self.column is None:
            return PersonBounds(None, 1, 1, 1)
        per_group = min(question.rows_per_group or self.rows_per_group, self.rows)
        if not question.by:
            return PersonBounds(self.column, per_group, per_group, 1)
        groups = min(question.groups_per_person or self.groups, self.rows)
        return PersonBounds(self.column, min(self.rows, per_group * groups), per_group, groups)


def tasks_of(questions: Sequence[Question], person: Person, schema: Schema) -> tuple[Task, ...]:
    """Questions checked against the schema and gathered by groups, keys and bounds.

    Raises ``SchemaError`` for a column that is missing or of the wrong type, ``PlanError`` for repeated names.
    """
    if isinstance(questions, Question) or not all(isinstance(q, Question) for q in questions) or len(questions) == 0:
        raise PlanError("questions", questions, "a list of tr.count, tr.sum and tr.mean questions")
    names = [question.name for question in questions]
    for name in names:
        if names.count(name) > 1:
            raise PlanError("name", name, "a different name for each question", "give one of them name='...'")
    gathered: dict[object, list[Question]] = {}
    for question in questions:
        _check(question, schema)
        keys = question.keys if question.by else ((),)
        gathered.setdefault((question.by, keys, person.bounds(question)), []).append(question)
    return tuple(_task(own, person) for own in gathered.values())


def _check(question: Question, schema: Schema) -> None:
    for column in question.by:
        if schema.column(column).kind == "other":
            raise SchemaError("by", column, "a column of plain values", "lists and structs cannot be keys")
    if question.column is not None and (kind := schema.column(question.column).kind) not in VALUES:
        raise SchemaError(
            "column", question.column, f"a column of numbers, not of {kind}", "cast it, or declare its type"
        )


def _task(questions: list[Question], person: Person) -> Task:
    first = questions[0]
    keys = first.keys if first.by else ((),)
    vectors = [
        vector for number, question in enumerate(questions) for vector in _vectors(question, number, keys is None)
    ]
    if keys is None:
        vectors = [_key_vector(questions), *vectors]
    return Task(tuple(questions), first.by, keys, person.bounds(first), tuple(vectors))


def _key_vector(questions: list[Question]) -> Vector:
    """The count that shows which keys there are: charged once, and the answer of every count question."""
    weight = max((q.weight for q in questions if q.kind == "count"), default=1.0)
    return Vector(Measure(KEY_COUNT, None, None), Spend("count", eighths(weight**-0.5), True, bounded=True), 1)


def _vectors(question: Question, number: int, discovered: bool) -> list[Vector]:
    size = question.weight**-0.5
    if question.kind == "count":
        return (
            []
            if discovered
            else [Vector(Measure(f"{number} rows", None, None), Spend("count", eighths(size), True), 1)]
        )
    fixed = grid(question.between or (0.0, 0.0), centred=question.kind == "mean")
    total = Measure(f"{number} sum", question.column, fixed)
    vectors = [Vector(total, Spend("sum", eighths(size), False), row_sensitivity(fixed))]
    if question.kind == "mean":
        usable = Spend("usable values", eighths(size * COUNT_NOISE), True)
        vectors.append(Vector(Measure(f"{number} usable", question.column, None), usable, 1))
    return vectors


def step_of(fixed: FixedPoint | None) -> float:
    """Natural units of one integer unit."""
    return 1.0 if fixed is None else float(fixed.step)


def factor(sensitivity: int, shift: int) -> int:
    """Integer units of one step of a table in which one row moves by ``shift`` steps."""
    return math.ceil(sensitivity / shift)
