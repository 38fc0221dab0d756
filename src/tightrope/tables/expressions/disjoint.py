"""Conditions that no row meets together, proven from their expressions and the kinds of columns alone.

A condition is turned into alternatives, each a list of tests of one expression against literals that must all be true.
Two conditions are disjoint if each two of their alternatives have tests of the same expression that no value meets:
different texts, ranges without a common point, a missing value and any other test. What is not understood is left out,
which makes the set of rows larger, never smaller. The proof that this is sound, also for missing values, mixed kinds of
numbers and several engines, is in ``docs/proofs/disjoint-conditions.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from tightrope.tables.expressions.conditions import COMPARISONS, Compare, Logic, Member, Missing, Not
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.leaves import TIME_KINDS, ColumnRef, Value, common_kind
from tightrope.tables.expressions.tree import EXACT_INTEGER_END, NUMBERS, ExpressionTree
from tightrope.tables.schema import Schema

MAX_ALTERNATIVES = 16
"""Most alternatives of a condition; of one with more, nothing is proven."""
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparison of b with a for that of a with b."""


USUAL_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?)?")
TIME_FORMS = {len("2024-12-31"): "day", len("2024-12-31T18:00"): "minute", len("2024-12-31T18:00:00"): "second"}
ISO_START, UNUSUAL = re.compile(r"\d{4}-?[\dW]"), "unusual"
"""The beginning of every text that Python reads as a day or an instant."""


class ValueTest(NamedTuple):
    """A test of the value of an expression, false for a missing one: a comparison with each of some values.

    ``operator`` is "in", "not in" or a comparison with the single value; "missing" without values is the one test that
    is true for missing values only, and "not in" without values is true for all others.
    """

    expression: ExpressionTree
    operator: str
    values: tuple[Any, ...]

    @property
    def time_forms(self) -> set[str]:
        """The forms of the values that are texts of times (``literal_form``)."""
        return {literal_form(value) for value in self.values if isinstance(value, str)} - {"text"}

    def holds_for(self, value: Any) -> bool:
        """Return whether a value that is not missing meets the test."""
        if self.operator in ("in", "not in"):
            return (value in self.values) == (self.operator == "in")
        return bool(COMPARISONS[self.operator](value, self.values[0]))


Alternatives = tuple[tuple[ValueTest, ...], ...]


def condition_alternatives(condition: Term | None, schema: Schema) -> Alternatives | None:
    """Return tests such that every row that meets the condition meets all tests of one alternative; None if too many.

    >>> from tightrope.tables.schema import Column
    >>> from tightrope.tables.expressions.parsing import parse_expression
    >>> table = Schema((Column("age", "integer"),))
    >>> [(str(e), *test) for e, *test in condition_alternatives(parse_expression("not 3 <= age < 5"), table)[1]]
    [('age', '>=', (5.0,))]
    """
    if condition is None:
        return ((),)
    tree = ColumnRef(condition) if isinstance(condition, str) else condition
    return _alternatives_of(tree, schema, is_true=True)


def exclude_each_other(one: Alternatives | None, other: Alternatives | None) -> bool:
    """Return whether it is proven that no row meets both conditions, given by their alternatives."""
    if one is None or other is None:
        return False
    return all(_have_contradiction((*tests, *others)) for tests, others in product(one, other))


def _alternatives_of(tree: ExpressionTree, schema: Schema, *, is_true: bool) -> Alternatives | None:
    """Return the alternatives of a condition, or with ``is_true=False`` of its being false (and not missing)."""
    if isinstance(tree, Not):
        return _alternatives_of(tree.part, schema, is_true=not is_true)
    if not isinstance(tree, Logic):
        return (_tests_of(tree, schema, is_true=is_true),)
    parts = [_alternatives_of(part, schema, is_true=is_true) for part in tree.conditions]
    joined: Alternatives = ((),) if (tree.word == "and") == is_true else ()
    for part in parts:
        if part is None:
            return None
        if (tree.word == "and") == is_true:  # by De Morgan, not (a or b) is: not a, and not b
            joined = tuple((*tests, *others) for tests, others in product(joined, part))
        else:
            joined = (*joined, *part)
        if len(joined) > MAX_ALTERNATIVES:
            return None
    return joined


def _tests_of(tree: ExpressionTree, schema: Schema, *, is_true: bool) -> tuple[ValueTest, ...]:
    """Return the tests that a condition without "and", "or" and "not" consists of; none if it is not understood."""
    if isinstance(tree, Missing):
        test: ValueTest | None = ValueTest(tree.part, *(("missing", ()) if is_true else ("not in", ())))
    elif isinstance(tree, Member):
        test = _literal_test(tree.part, "in", tree.listed, schema)
    elif isinstance(tree, Compare):
        left, right, operator = tree.left, tree.right, tree.comparison
        if isinstance(left, Value):
            left, right, operator = right, left, MIRRORED[operator]
        literals = (right,) if isinstance(right, Value) else ()
        test = _literal_test(left, operator, literals, schema)
    else:
        test = None
    if test is None:
        test = ValueTest(tree, "in", (is_true,))
    elif not (is_true or isinstance(tree, Missing)):
        test = test._replace(operator=NEGATED[test.operator])
    return (test,) if _is_exact(test.expression) else ()


def _literal_test(
    expression: ExpressionTree, operator: str, literals: Sequence[Value], schema: Schema
) -> ValueTest | None:
    """Return the test of an expression against literals; None for other comparisons, and for rounded integers."""
    if not literals or isinstance(expression, Value):
        return None
    kind = common_kind((expression, *literals), schema)
    if kind == "text" and operator not in ("==", "!=", "in"):
        return None  # engines agree on which texts are equal, not on their order
    if kind in NUMBERS:
        is_integer = expression.infer_column_facts(schema).kind == "integer"
        exact = [abs(float(one.value)) < EXACT_INTEGER_END for one in literals if is_integer or one.kind == "integer"]
        if not all(exact):
            return None
        values: list[Any] = [float(one.value) for one in literals]
    else:
        values = [str(one.value) if kind in TIME_KINDS else one.value for one in literals]
    if any(isinstance(value, str) and literal_form(value) == UNUSUAL for value in values):
        return None
    names = {"==": "in", "!=": "not in"}
    return ValueTest(expression, names.get(operator, operator), tuple(values))


def literal_form(text: str) -> str:
    """Return whether a text is a day, minute or second in its usual form, an unusual form of one, or another text.

    Two texts of the same usual form are equal as texts if and only if they are equal as days or instants, and have the
    same order: so it does not matter of which kind the column is, which a certificate does not state.

    >>> literal_form("2024-12-31"), literal_form("2024-12-31T18:00:00"), literal_form("20241231"), literal_form("Oslo")
    ('day', 'second', 'unusual', 'text')
    """
    if USUAL_TIME.fullmatch(text):
        return TIME_FORMS[len(text)]
    return UNUSUAL if ISO_START.match(text) else "text"


def _is_exact(tree: ExpressionTree) -> bool:
    """Return whether an expression has no arithmetic, so that a row has one value of it in every query."""
    return tree.is_exact and all(map(_is_exact, tree.child_nodes))


def _have_contradiction(tests: Sequence[ValueTest]) -> bool:
    """Return whether the tests of some expression cannot all be true."""
    by_expression: dict[ExpressionTree, list[ValueTest]] = {}
    for test in tests:
        by_expression.setdefault(test.expression, []).append(test)
    return any(not _can_all_hold(own) for own in by_expression.values())


def _can_all_hold(tests: Sequence[ValueTest]) -> bool:
    """Return False if no value meets these tests of one expression."""
    operators = {test.operator for test in tests}
    if "missing" in operators:
        return operators == {"missing"}
    # A day is also its first second, but not the same text: only times of one form are compared, and other texts.
    forms = {form for test in tests for form in test.time_forms}
    if len(forms) > 1:
        return all(_can_all_hold([test for test in tests if test.time_forms <= {form}]) for form in forms)
    listed = [test.values for test in tests if test.operator == "in"]
    if listed:
        return any(_meets_all(value, tests) for value in listed[0])
    lowest: Any = max((test.values[0] for test in tests if test.operator in (">", ">=")), default=None)
    highest: Any = min((test.values[0] for test in tests if test.operator in ("<", "<=")), default=None)
    if None in (lowest, highest) or lowest < highest:
        return True
    return bool(lowest == highest) and _meets_all(lowest, tests)


def _meets_all(value: Any, tests: Sequence[ValueTest]) -> bool:
    return all(test.holds_for(value) for test in tests)
