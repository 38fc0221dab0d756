"""What an answer's groups divide: each key column as an axis, and whether every row that counts is on it.

Keys that are listed need not be all there are. An axis is ``whole`` only where the schema or the condition says so: an
expression whose values are known (parts of a range with both open ends, months, cases, truth values, each with what is
missing), or a condition that lets no other value pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tightrope.engines.expressions.conditions import Logic, Member, Missing, Not
from tightrope.engines.expressions.leaves import Column
from tightrope.engines.expressions.terms import Term, facts_of
from tightrope.engines.expressions.tree import Tree
from tightrope.engines.schema import Schema
from tightrope.release.questions.node import Question

COMPARED_ALIKE = ("text", "integer")
"""Kinds in which a condition and a key compare alike: of numbers and instants, one may round and the other not."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key column: what it is computed from, its groups, and whether each row that counts is in one of them."""

    term: Term
    values: frozenset[object]
    whole: bool


def axes_of(question: Question, schema: Schema) -> tuple[Axis, ...] | None:
    """An axis a key column of a settled question; None where groups are discovered or are no full grid of values."""
    if not question.by:
        return ()
    if question.keys is None or question.cell is not None or question.steps:
        return None
    columns = [frozenset(column) for column in zip(*question.keys, strict=True)]
    if math.prod(map(len, columns)) != len(question.keys):
        return None
    condition = question.asked.condition
    return tuple(
        Axis(term, values, _whole(term, values, condition, schema))
        for term, values in zip(question.asked.terms, columns, strict=True)
    )


def _whole(term: Term, values: frozenset[object], condition: Term | None, schema: Schema) -> bool:
    """Whether no row for which the condition is true has another value than these."""
    facts, tests = facts_of(term, schema), list(_tests(condition))
    own: Tree = Column(term) if isinstance(term, str) else term
    if facts.keys is not None:
        kept = facts.keys if Not(Missing(own)) not in tests else facts.keys[not facts.sure :]
        if values.issuperset(kept):
            return True
    if facts.kind not in COMPARED_ALIKE:
        return False
    members = (test for test in tests if isinstance(test, Member) and test.part == own)
    return any(values.issuperset(value.value for value in test.listed) for test in members)


def _tests(condition: Term | None) -> Iterator[Tree]:
    """Conditions that are all true of a row that counts."""
    if isinstance(condition, Logic) and condition.word == "and":
        yield from condition.conditions
    elif isinstance(condition, Tree):
        yield condition
