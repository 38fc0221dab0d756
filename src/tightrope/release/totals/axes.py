"""What an answer's groups divide: each key column as an axis, and whether every row that counts is on it.

Keys that are listed need not be all there are. An axis is ``whole`` only where the schema or the condition says so: an
expression whose values are known (parts of a range with both open ends, months, cases, truth values, each with what is
missing), or a condition that lets no other value pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from tightrope.certificates.printable import printable
from tightrope.engines.expressions.conditions import Logic, Member, Missing, Not
from tightrope.engines.expressions.leaves import Column
from tightrope.engines.expressions.terms import Term, facts_of
from tightrope.engines.expressions.tree import Tree
from tightrope.engines.schema import Schema
from tightrope.release.questions.node import Question

COMPARED_ALIKE = ("text", "integer")
"""Kinds in which a condition and a key compare alike, where all that is listed is of that kind, too: of numbers and
instants, and of integers beside numbers, one may round and the other not.
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key column: what it is computed from, its groups, and whether each row that counts is in one of them.

    ``remedy``: in words, the condition that would make it so; none where none is proven to.
    """

    term: Term
    values: frozenset[object]
    whole: bool
    remedy: str = field(compare=False)


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
        Axis(term, values, _whole(term, values, condition, schema), _remedy(term, values, schema))
        for term, values in zip(question.asked.terms, columns, strict=True)
    )


def _remedy(term: Term, values: frozenset[object], schema: Schema) -> str:
    facts, own = facts_of(term, schema), _tree(term)
    if facts.keys is not None and set(facts.keys) - values == {None}:
        return f"where='{printable(str(Not(Missing(own))))}' in both leaves them out"
    if facts.kind in COMPARED_ALIKE and None not in values:
        return f"where='{printable(str(own))} in [...]' with that list in both leaves them out"
    return ""


def _tree(term: Term) -> Tree:
    return Column(term) if isinstance(term, str) else term


def _whole(term: Term, values: frozenset[object], condition: Term | None, schema: Schema) -> bool:
    """Whether no row for which the condition is true has another value than these."""
    facts, tests = facts_of(term, schema), list(_tests(condition))
    own = _tree(term)
    if facts.keys is not None:
        kept = facts.keys if Not(Missing(own)) not in tests else facts.keys[not facts.sure :]
        if values.issuperset(kept):
            return True
    if facts.kind not in COMPARED_ALIKE:
        return False
    members = (test.listed for test in tests if isinstance(test, Member) and test.part == own)
    return any(
        all(one.value in values and facts_of(one, schema).kind == facts.kind for one in listed) for listed in members
    )


def _tests(condition: Term | None) -> Iterator[Tree]:
    """Conditions that are all true of a row that counts."""
    if isinstance(condition, Logic) and condition.word == "and":
        yield from condition.conditions
    elif isinstance(condition, Tree):
        yield condition
