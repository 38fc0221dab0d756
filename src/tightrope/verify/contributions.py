"""Claims about the effect of one row, and of one person, on each mechanism, derived from the stated statistics.

The numbers are redundant: an altered sensitivity, bound or number of groups contradicts the others, or the statistic.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, combinations
from typing import Any

from tightrope.verify.claims import (
    CONFIRMED,
    NOT_CONFIRMED,
    REFUTED,
    Claim,
    equality_claim,
    limit_claim,
    unchecked_claim,
    with_time_checks,
)

COUNT_STATISTICS = (
    "count",
    "usable values",
    "usable rows",
    "different values",
    "ones or zeros",
    "rows by block",
    "rows by cell",
)
"""Statistics to which a row adds one or zero."""
MARGINAL_STATISTICS = "rows by cell of a table", "differences of rows by cell of a table"
"""Statistics of the integers of ``marginals``, of which a row changes several by one (``verify.marginals``)."""
CELL_STATISTICS = "rows by block", "rows by cell"
"""Statistics for which one person's rows may fall into the cells in any way."""
SUM_STATISTICS = "sum", "sum of ", "sum of squares of ", "sum of products of "
"""Statistics of numbers: their sensitivity follows from a range, which the document does not contain."""
CHOICE_STATISTICS = "choice of the value, in rows below it", "choice of the width, in rows below its ends"
SUPPRESSED_ROWS = "rows in groups that are not shown"
BIAS_COUNT = re.compile(r"rows, (used|all|below|above|missing)( of (.*))?, over all groups", re.DOTALL)
ROW_FACTORS = {"all": 16}
"""How many times the rows used a person may add to a count of this kind."""
COMPARISONS = {"below": " < ", "above": " > ", "missing": " is None"}
NUMBER_PATTERN = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[+-]?[0-9]{1,3})?", re.ASCII)
LOOSE_OPERATOR = re.compile(r"[<>=!,]|\b(and|or|not|in|is|if|else|lambda)\b")
"""Operators that bind less tightly than a comparison."""
EXCLUSIVE_SET_FIELDS = "table", "table_steps_per_row", "unit", "sensitivity_per_row", "factor", "by", "where", "family"
"""Fields shared by the mechanisms of an exclusive set, which act as one mechanism over that many times the groups."""
ROUNDING_FACTOR = Decimal(1) - Decimal(10) ** -6
Mechanism = dict[str, Any]
MAX_CONDITION_LENGTH, MAX_ALTERNATIVES = 100_000, 16
"""Limits of conditions that are read: characters, and alternatives, as in "a or b"."""
OPERATORS = {
    "Eq": ("in", "not in"), "NotEq": ("not in", "in"), "In": ("in", "not in"), "NotIn": ("not in", "in"),
    "Lt": ("<", ">="), "GtE": (">=", "<"), "Gt": (">", "<="), "LtE": ("<=", ">"),
}  # fmt: skip
"""The test that a comparison is, and that of its being false."""
MIRRORED = {"Lt": "Gt", "Gt": "Lt", "LtE": "GtE", "GtE": "LtE"}
"""The comparison of b with a for that of a with b."""
RANK_TESTS: dict[str, Callable[[int, set[int]], bool]] = {
    "in": lambda rank, ranked: rank in ranked, "not in": lambda rank, ranked: rank not in ranked,
    "<": lambda rank, ranked: rank < min(ranked), "<=": lambda rank, ranked: rank <= min(ranked),
    ">": lambda rank, ranked: rank > max(ranked), ">=": lambda rank, ranked: rank >= max(ranked),
}  # fmt: skip
"""Tests of a value by its rank among the values that tests mention; even ranks lie between these or beyond."""
Test = tuple[str, str, tuple[Any, ...]]
"""A test of the value of an expression, false for a missing one: "in" some values, "not in" them, or a comparison with
one; "missing" is true for missing values only. An expression that cannot be taken apart is tested for being true."""


def mechanisms_by_group(mechanisms: Sequence[Mechanism]) -> list[list[Mechanism]]:
    """Group the mechanisms by ``together``; without it (version 1) each is a group."""
    groups: dict[Any, list[Mechanism]] = {}
    for index, mechanism in enumerate(mechanisms):
        groups.setdefault(mechanism.get("together") or f"alone {index}", []).append(mechanism)
    return list(groups.values())


def covers_all_groups(mechanism: Mechanism) -> bool:
    """Return whether a mechanism counts all groups together: a person adds at most its sensitivity, once."""
    return mechanism["statistic"] == SUPPRESSED_ROWS or BIAS_COUNT.fullmatch(mechanism["statistic"]) is not None


def contribution_claims(mechanisms: Sequence[Mechanism], neighbors: Mechanism) -> Iterator[Claim]:
    """Check rows, groups and sensitivities of all mechanisms against the bounds on a person in ``neighbors``."""
    groups = mechanisms_by_group(mechanisms)
    set_sizes = exclusive_set_sizes(mechanisms)
    rows: dict[str, set[int]] = {}
    row_limits: dict[str, set[str]] = {}
    for mechanism in mechanisms:
        is_checked_here = not (covers_all_groups(mechanism) or mechanism["statistic"] in MARGINAL_STATISTICS)
        for answer in mechanism["answers"] if is_checked_here else ():
            rows.setdefault(answer, set()).add(mechanism["rows"])
            limits = [
                mechanism["by"],
                mechanism.get("where"),
                mechanism["rows"],
                mechanism["max_rows_per_group"],
                mechanism["groups"] / set_sizes[id(mechanism)],
            ]
            row_limits.setdefault(answer, set()).add(json.dumps(limits))
    yield equality_claim(
        "mechanisms of one answer with different rows or groups",
        ", ".join(answer for answer in row_limits if len(row_limits[answer]) > 1) or "none",
        "none",
    )
    for index, mechanism in enumerate(mechanisms):
        name = f"mechanisms[{index}]"
        if covers_all_groups(mechanism):
            yield from _bias_count_claims(name, mechanism, rows, set_sizes[id(mechanism)])
        elif mechanism["statistic"] not in MARGINAL_STATISTICS:
            yield from _row_limit_claims(name, mechanism, neighbors, set_sizes[id(mechanism)])
            yield from _sensitivity_claims(name, mechanism)
    for group in groups:
        where = {json.dumps([mechanism["by"], mechanism.get("where")]) for mechanism in group}
        yield equality_claim(f"together {group[0].get('together')!a}: one by and where", len(where), 1)
        if group[0].get("exclusive") is not None:
            yield from _exclusive_set_claims(group)
    if any(mechanism.get("disjoint") is not None for mechanism in mechanisms):
        yield from CLAIMS_BY_FIELD["disjoint"](mechanisms, neighbors)
    yield from _sum_sensitivity_claims(mechanisms)
    yield from _power_sensitivity_claims(mechanisms)


def _exclusive_set_claims(parts: Sequence[Mechanism]) -> Iterator[Claim]:
    """Check that the parts of an exclusive set have equal noise, and that no row is in two of them."""
    name = f"exclusive set {parts[0]['exclusive']!a}"
    fields = {json.dumps([part.get(field) for field in EXCLUSIVE_SET_FIELDS], sort_keys=True) for part in parts}
    yield equality_claim(f"{name}: one table, unit, sensitivity, by and where", len(fields), 1)
    yield Claim(f"{name}: no row is in two of its parts", str(len(parts)), *disjoint_parts_claim(parts))


def _disjoint_condition_claims(mechanisms: Sequence[Mechanism], neighbors: Mechanism) -> Iterator[Claim]:
    """Check that no row meets two conditions of the mechanisms with the same number ``disjoint``, and is a person."""
    sets: dict[int, dict[str, None]] = {}
    for mechanism in mechanisms:
        if mechanism.get("disjoint") is not None:
            sets.setdefault(mechanism["disjoint"], {})[mechanism.get("where") or ""] = None
    for number, conditions in sets.items():
        name = f"disjoint {number}: no row meets two of its conditions"
        yield equality_claim(
            f"disjoint {number}: each row is a person", (neighbors["privacy_unit"], neighbors["max_rows"]), (None, 1)
        )
        alternatives = [condition_alternatives(condition) for condition in with_time_checks(conditions)]
        if None in alternatives:
            verdict = NOT_CONFIRMED if all(conditions) else REFUTED  # without a condition, all rows are counted
            yield Claim(name, str(len(conditions)), "a condition that is missing or could not be read", verdict)
            continue
        overlapping = [
            f"{one!a} and {other!a}"
            for (one, first), (other, second) in with_time_checks(
                combinations(zip(conditions, alternatives, strict=True), 2)
            )
            if not all(has_contradiction([*tests, *others]) for tests in first or () for others in second or ())
        ]
        reason = f"may hold together: {overlapping[0]}" if overlapping else "tests of one expression exclude each other"
        yield Claim(name, str(len(conditions)), reason, REFUTED if overlapping else CONFIRMED)


TIME_FORM = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?)?")
CLAIMS_BY_FIELD = {"disjoint": _disjoint_condition_claims}
"""Claims of a field that few documents have: an extract of this program for others lacks them, and fails with it."""


def condition_alternatives(condition: str) -> list[list[Test]] | None:
    """Return tests such that a row that meets the condition meets all tests of one list; None if it is not read.

    >>> condition_alternatives("not (age < 5 or flag)")
    [[("Name(id='age', ctx=Load())", '>=', (5.0,)), ("Name(id='flag', ctx=Load())", 'in', (False,))]]
    """
    if len(condition) > MAX_CONDITION_LENGTH:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):
            return _alternatives_of(ast.parse(condition, mode="eval").body, holds=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _alternatives_of(node: ast.expr, *, holds: bool) -> list[list[Test]]:
    """Return the alternatives of a condition, or of its being false; raises ``ValueError`` for too many."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _alternatives_of(node.operand, holds=not holds)
    if not isinstance(node, ast.BoolOp):
        return [[_test_of(node, holds=holds)]]
    parts = [_alternatives_of(value, holds=holds) for value in node.values]
    if isinstance(node.op, ast.And) != holds:  # not (a and b) is: not a, or not b
        return [tests for part in parts for tests in part]
    joined: list[list[Test]] = [[]]
    for part in parts:
        joined = [[*tests, *others] for tests in joined for others in part]
        if len(joined) > MAX_ALTERNATIVES:
            raise ValueError("too many alternatives")
    return joined


def _test_of(node: ast.expr, *, holds: bool) -> Test:
    """Return the test that a condition without "and", "or" and "not" is: of an expression, or else of itself."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right, name = node.left, node.comparators[0], type(node.ops[0]).__name__
        if _is_literal(left) and name in ("Eq", "NotEq", *MIRRORED):
            left, right, name = right, left, MIRRORED.get(name, name)
        if name in ("Is", "IsNot") and isinstance(right, ast.Constant) and right.value is None:
            return ast.dump(left), "missing" if (name == "Is") == holds else "not in", ()
        values = _literal_values(right, name)
        if values is not None and name in OPERATORS:
            return ast.dump(left), OPERATORS[name][0 if holds else 1], values
    return ast.dump(node), "in", (holds,)


def _is_literal(node: ast.expr) -> bool:
    number = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(number, ast.Constant)


def _literal_values(node: ast.expr, operator: str) -> tuple[Any, ...] | None:
    """Return literals as values that are equal only if an engine may find them equal; None for anything else.

    Numbers become doubles, except integers from 2^53 on. Texts that are days or instants are read in their usual form
    only, in which the texts are equal and ordered as the times: the document does not say of which kind a column is.
    Other texts are not ordered.
    """
    try:
        literal = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    is_list = operator in ("In", "NotIn")
    values = [_comparable_value(value) for value in (literal if isinstance(literal, list) else [literal])]
    is_ordered_text = operator in MIRRORED and any(value_forms([value]) == {"text"} for value in values)
    is_read = isinstance(literal, list) == is_list and values and None not in values and not is_ordered_text
    return tuple(values) if is_read else None


def _comparable_value(value: object) -> object:
    """Return a number as a double; None for what is not compared exactly, or is an unusual form of a time."""
    if isinstance(value, str):
        return None if literal_form(value) == "unusual" else value
    if isinstance(value, bool):
        return value
    is_exact = isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**53)
    return float(value) if is_exact else None  # type: ignore[arg-type]


def literal_form(text: str) -> str:
    """Return the form of a day, minute or second in its usual form, "unusual" for other times, or "text"."""
    other = "unusual" if re.match(r"\d{4}-?[\dW]", text) else "text"
    return f"{len(text)} characters" if TIME_FORM.fullmatch(text) else other


def value_forms(values: Sequence[Any]) -> set[str]:
    """Return the forms of the texts among the values."""
    return {literal_form(value) for value in values if isinstance(value, str)}


def has_contradiction(tests: Sequence[Test]) -> bool:
    """Return whether no value meets all tests of some expression: no number mentioned, none between two, none beyond.

    >>> has_contradiction([("x", "<", (5.0,)), ("x", ">=", (5.0,))]), has_contradiction([("x", "<=", (5.0,))] * 2)
    (True, False)
    """
    by_term: dict[str, list[Test]] = {}
    for test in tests:
        by_term.setdefault(test[0], []).append(test)
    return any(map(exclude_every_value, by_term.values()))


def exclude_every_value(tests: Sequence[Test]) -> bool:
    """Return whether no value meets these tests of one expression; False if values of several kinds are compared."""
    operators = {operator for _, operator, _ in tests}
    if "missing" in operators:
        return len(operators) > 1
    mentioned = list(dict.fromkeys(chain.from_iterable(values for _, _, values in tests)))
    # A day is also its first second, but not the same text: only times of one form are compared, and other texts.
    forms = value_forms(mentioned) - {"text"}
    if len(forms) > 1:
        return any(
            exclude_every_value([one for one in tests if value_forms(one[2]) <= {form, "text"}]) for form in forms
        )
    if not operators <= {"in", "not in"}:
        if len(set(map(type, mentioned))) != 1:
            return False
        mentioned.sort()
    ranks = {value: 2 * place + 1 for place, value in enumerate(mentioned)}
    places = [(operator, {ranks[value] for value in values}) for _, operator, values in tests]
    return not any(all(RANK_TESTS[operator](rank, ranked) for operator, ranked in places)
                   for rank in range(2 * len(mentioned) + 1))  # fmt: skip


def exclusive_set_sizes(mechanisms: Sequence[Mechanism]) -> dict[int, int]:
    """Return the size of the exclusive set of each mechanism, by the mechanism's id; 1 without a set."""
    sets: dict[str, list[int]] = {}
    for index, mechanism in enumerate(mechanisms):
        label, number = mechanism.get("exclusive"), mechanism.get("together")
        shared = (
            [mechanism["answers"], mechanism["by"], mechanism["rows"], mechanism["groups"]]
            if number is None
            else number
        )
        sets.setdefault(json.dumps([index] if label is None else [label, shared]), []).append(id(mechanism))
    return {mechanism_id: len(members) for members in sets.values() for mechanism_id in members}


def _bias_count_claims(name: str, mechanism: Mechanism, rows: dict[str, set[int]], set_size: int) -> Iterator[Claim]:
    """Check a count over all groups: a person adds to one part, once, at most their rows used for its answers."""
    stated = (
        mechanism["by"],
        mechanism["rows"],
        mechanism["max_rows_per_group"],
        mechanism["groups"],
        Decimal(mechanism["unit"]) == 1,
    )
    expected: tuple[list[str], int, int, int, bool] = ([], 1, 1, set_size, True)
    yield equality_claim(f"{name}: by, rows, rows per group, groups, unit 1 of a count of all groups", stated, expected)
    match = BIAS_COUNT.fullmatch(mechanism["statistic"])
    factor = 1 if match is None else ROW_FACTORS.get(match[1], 1)
    person_rows = [
        factor * limit
        for limit in sorted(set.union(set(), *(rows.get(answer, set()) for answer in mechanism["answers"])))
    ]
    yield equality_claim(
        f"{name}.sensitivity_per_row: the rows of a person", [int(mechanism["sensitivity_per_row"])], person_rows
    )
    if mechanism.get("exclusive") is None:
        yield Claim(f"{name}.exclusive", "null", "a set of its own", REFUTED)


def _row_limit_claims(name: str, mechanism: Mechanism, neighbors: Mechanism, set_size: int) -> Iterator[Claim]:
    """Check that the rows and groups of a mechanism follow from the bounds on a person, or are smaller."""
    rows, per_group, groups = mechanism["rows"], mechanism["max_rows_per_group"], mechanism["groups"] // set_size
    max_rows, max_groups = neighbors["max_rows"], neighbors["max_groups"]
    yield equality_claim(
        f"{name}.groups: remainder after division by the number of parts per group ({set_size})",
        mechanism["groups"] % set_size if groups > 0 else "no groups",
        0,
    )
    if not mechanism["by"]:
        yield equality_claim(f"{name}.groups: without a by", groups, 1)
    per_person = min(max_rows, per_group * groups)
    yield equality_claim(
        f"{name}.rows: rows per person",
        f"{rows}, fewer than per group ({per_group})" if per_group > max_rows else rows,
        per_person,
    )
    if mechanism["statistic"] in CELL_STATISTICS:
        yield equality_claim(f"{name}: rows fall into cells in any way", (per_group, groups), (rows, rows))
    if mechanism.get("choice") is not None:
        yield equality_claim(f"{name}.max_rows_per_group: rows fall into cells in any way", per_group, rows)
        yield limit_claim(f"{name}.groups: of all but the cells", groups, 1, len(mechanism["by"]) > 1 or groups == 1)
    if len(mechanism["by"]) > 1 and (mechanism["statistic"] in CELL_STATISTICS or mechanism.get("choice") is not None):
        yield equality_claim(f"{name}.rows: no group of its cells is bounded by itself", rows, max_rows)
    if per_group < min(max_rows, neighbors["max_rows_per_group"]):
        why = (
            f"{per_group} of up to {neighbors['max_rows_per_group']}: that no more rows of a person are used per group"
        )
        yield unchecked_claim(f"{name}.max_rows_per_group", why)
    if mechanism["by"] and groups < min(max_groups, rows):
        yield unchecked_claim(f"{name}.groups", f"{groups} of up to {max_groups}: that there are no more groups")


def _sensitivity_claims(name: str, mechanism: Mechanism) -> Iterator[Claim]:
    """Check the sensitivity: one row for a count; a stated value above 0 for a sum."""
    statistic, size = mechanism["statistic"], int(mechanism["sensitivity_per_row"])
    if statistic in COUNT_STATISTICS:
        yield equality_claim(
            f"{name}: one row changes the count by",
            size if Decimal(mechanism["unit"]) == 1 else f"{size} steps of {mechanism['unit']}",
            1,
        )
        if statistic == "count":
            yield equality_claim(f"{name}.column: rows are counted", mechanism["column"], None)
    elif mechanism.get("choice") is not None or statistic.startswith(CHOICE_STATISTICS):
        yield equality_claim(
            f"{name}.statistic of a choice",
            (statistic in CHOICE_STATISTICS, mechanism.get("choice") is not None),
            (True, True),
        )
    elif statistic.startswith(SUM_STATISTICS):
        holds = size >= 1 and mechanism["column"] is not None and Decimal(mechanism["unit"]) > 0
        yield limit_claim(f"{name}.sensitivity_per_row: of a sum", "1", size, holds)
    else:
        yield Claim(f"{name}.statistic", statistic, "an unknown statistic", NOT_CONFIRMED)


def disjoint_parts_claim(parts: Sequence[Mechanism]) -> tuple[str, str]:
    """Return the reason and the verdict on whether no row is in two of these parts, from their statistics.

    Disjoint are a single part, the ones and the zeros of a column, and its values below, above and missing.
    """
    if len(parts) == 1:
        return "one part", CONFIRMED
    first = parts[0]
    if [(mechanism["statistic"], mechanism["column"]) for mechanism in parts] == [
        ("ones or zeros", first["column"])
    ] * 2:
        held = first["column"] is not None
        return ("the ones and the zeros of one column", CONFIRMED) if held else ("counts of no column", REFUTED)
    matches = [BIAS_COUNT.fullmatch(mechanism["statistic"]) for mechanism in parts]
    kinds = [match[1] for match in matches if match is not None and match[1] in COMPARISONS]
    columns = {match[3] for match in matches if match is not None}
    if not len(kinds) == len(parts) == len(set(kinds)) or len(columns) != 1:
        return "statistics that one row may enter together", REFUTED
    return _disjoint_conditions([str(mechanism["column"]) for mechanism in parts], kinds)


def _disjoint_conditions(columns: Sequence[str], kinds: Sequence[str]) -> tuple[str, str]:
    """Return the reason and the verdict on whether conditions exclude each other: < a, > b with b ≥ a, or missing."""
    conditions = [parse_condition(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    if None in conditions:
        return "conditions that could not be read", NOT_CONFIRMED
    by_kind = {kind: mechanism for kind, mechanism in zip(kinds, conditions, strict=True) if mechanism is not None}
    terms = {term for kind, (term, _) in by_kind.items() if kind != "missing"}
    term = next(iter(terms), "")
    missing = by_kind.get("missing", (term, None))[0]
    same = len(terms) < 2 and term in (missing, f"case({missing}, 1, not {missing}, 0, None)")
    bounds = [by_kind[kind][1] for kind in ("below", "above") if kind in by_kind]
    ordered = len(bounds) < 2 or bool(bounds[0] <= bounds[1])  # type: ignore[operator]
    return ("values of one column", CONFIRMED if same and ordered else REFUTED)


def parse_condition(column: str, kind: str) -> tuple[str, Decimal | None] | None:
    """Return the expression and the number of a condition of this kind; None for a text that no writer produces.

    >>> parse_condition("case(age < 0.0, 1, None)", "below")
    ('age', Decimal('0.0'))
    >>> parse_condition("case(age is None, 1, None)", "missing")
    ('age', None)
    >>> parse_condition("case(a < 3 or b < 0.0, 1, None)", "below")
    """
    start, end = "case(", ", 1, None)"
    if not (column.startswith(start) and column.endswith(end)):
        return None
    term, sign, number = column[len(start) : -len(end)].rpartition(COMPARISONS[kind])
    if not sign or not is_single_expression(term):
        return None
    if kind == "missing":
        return None if number else (term, None)
    return (term, Decimal(number)) if NUMBER_PATTERN.fullmatch(number) else None


def is_single_expression(term: str) -> bool:
    """Return whether an expression is one operand of a comparison: no looser operator outside brackets and quotes.

    >>> [is_single_expression(text) for text in ("age", "case(a < 3, 1, 0)", "column('a or b') + 1", "a or b", "f('")]
    [True, True, True, False, False]
    """
    outside, depth, quote, escaped = [], 0, "", False
    for char in term:
        if quote:
            quote, escaped = ("" if char == quote and not escaped else quote), char == "\\" and not escaped
            continue
        quote = char if char in "'\"" else ""
        depth += (char in "([") - (char in ")]")
        if depth < 0:
            return False
        outside.append(char if not depth and char not in ")]'\"" else " ")
    return bool(term) and not quote and not depth and LOOSE_OPERATOR.search("".join(outside)) is None


def _bounds_by_answer(mechanisms: Sequence[Mechanism]) -> dict[str, dict[str, dict[str, Decimal]]]:
    """Return the ends of columns' ranges by answer, column and end, from the counts of values outside."""
    bounds: dict[str, dict[str, dict[str, Decimal]]] = {}
    for mechanism in mechanisms:
        match = BIAS_COUNT.fullmatch(mechanism["statistic"])
        if match is None or match[1] not in COMPARISONS:
            continue
        column, end = parse_condition(str(mechanism["column"]), match[1]) or ("", None)
        if end is None:
            continue
        for answer in mechanism["answers"]:
            bounds.setdefault(answer, {}).setdefault(column, {}).setdefault(match[1], end)
    return bounds


def _sum_sensitivity_claims(mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    """Check that a row adds at least max(|a|, |b|) to a sum of values from a to b; (b − a)/2 if it is centered."""
    bounds = _bounds_by_answer(mechanisms)
    centered = {name for one in mechanisms if one["statistic"] == "usable values" for name in one["answers"]}
    for index, mechanism in enumerate(mechanisms):
        is_plain_sum = mechanism["statistic"] == SUM_STATISTICS[0]
        column = str(mechanism["column"]) if is_plain_sum else _summed_column(mechanism)
        for answer in mechanism["answers"]:
            ends = _bounds_of_column(column, bounds.get(answer, {}))
            if len(ends) == 2:
                is_centered = not is_plain_sum or answer in centered
                required = (ends["above"] - ends["below"]) / 2 if is_centered else max(map(abs, ends.values()))
                yield _sensitivity_claim(index, mechanism, required, "of a range this wide")


def _summed_column(mechanism: Mechanism) -> str:
    """Return the column in the name of a sum; empty for other statistics."""
    statistic: str = mechanism["statistic"]
    is_sum = statistic.startswith(SUM_STATISTICS[1]) and not statistic.startswith(SUM_STATISTICS[2:])
    return statistic.removeprefix(SUM_STATISTICS[1]) if is_sum else ""


def _sensitivity_claim(index: int, mechanism: Mechanism, required: Decimal, reason: str) -> Claim:
    """Return the claim that a mechanism's largest effect of one row is at least what its bounds require."""
    needed, effect = required * ROUNDING_FACTOR, _largest_row_effect(mechanism)
    return limit_claim(f"mechanisms[{index}].sensitivity_per_row: {reason}", needed, effect, needed <= effect)


def _bounds_of_column(column: str, bounds: dict[str, dict[str, Decimal]]) -> dict[str, Decimal]:
    """Return the bounds of a column; for the name of a product, those of its first column."""
    if column in bounds or len(bounds) != 2:
        return bounds.get(column, {})
    first, second = bounds
    names = {f"{first} and {second}": first, f"{second} and {first}": second}
    return bounds.get(names.get(column, ""), {})


def _power_sensitivity_claims(mechanisms: Sequence[Mechanism]) -> Iterator[Claim]:
    """Check squares and products of an answer against its sums: half the squared reach, or the product of reaches."""
    reaches: dict[str, dict[str, Decimal]] = {}
    for mechanism in mechanisms:
        column, size = _summed_column(mechanism), _largest_row_effect(mechanism)
        for answer in mechanism["answers"] if column else ():
            answer_reaches = reaches.setdefault(answer, {})
            answer_reaches[column] = min(size, answer_reaches.get(column, size))
    for index, mechanism in enumerate(mechanisms):
        for answer in mechanism["answers"] if mechanism["statistic"].startswith(SUM_STATISTICS[2:]) else ():
            required = _required_power_reach(mechanism["statistic"], reaches.get(answer, {}))
            if required is not None:
                yield _sensitivity_claim(index, mechanism, required, "of sums that reach so far")


def _required_power_reach(statistic: str, reaches: dict[str, Decimal]) -> Decimal | None:
    """Return the smallest valid effect of a row on this sum of squares or products; None without the sums."""
    square_reach = reaches.get(statistic.removeprefix(SUM_STATISTICS[2]))
    if statistic.startswith(SUM_STATISTICS[2]):
        return None if square_reach is None else square_reach * square_reach / 2
    for column, size in reaches.items():
        start = f"{SUM_STATISTICS[3]}{column} and "
        other_reach = reaches.get(statistic.removeprefix(start)) if statistic.startswith(start) else None
        if other_reach is not None:
            return size * other_reach
    return None


def _largest_row_effect(mechanism: Mechanism) -> Decimal:
    """Return the largest effect of a row, in the unit of the answer."""
    return int(mechanism["sensitivity_per_row"]) * Decimal(mechanism["unit"])
