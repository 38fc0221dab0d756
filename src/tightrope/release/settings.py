"""The privacy unit of a session, and the guarantee of a release as data and in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypedDict

from tightrope.documents.budget import Budget, attack_success_of, float_at_most, printed_float_at_most
from tightrope.documents.escaping import A_PERSON, escape_control_chars
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.wording import DELTA_SIZE_ADVICE, DELTA_TOO_LARGE, AttackWording, large_delta_text
from tightrope.errors import InputError, SchemaError, suggest_nearest
from tightrope.noise.allocation import MOST_EPSILON
from tightrope.numerics.checks import check_integer
from tightrope.queries.options import Given
from tightrope.queries.query_group import QueryGroup
from tightrope.tables import Expression
from tightrope.tables.expressions.expression import Term, resolve_term, term_columns
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.tables import PublicTableSource

BOUND_NAMES = ("max_rows", "max_rows_per_group", "max_groups")
MAX_ROWS_ADVICE = "missing; set the maximum number of rows of one person that are used, such as max_rows=1"
MAX_BOUND = 10**9
"""Maximum for bounds on a person's rows and groups: with more, the noise would exceed the counts of any table."""
NOUN_PATTERN = re.compile(r"^an? [^ ].{0,60}$")
"""A noun with its article: ``an aircraft``."""

UnitSpec = Given | tuple[Given | None, str] | None
"""The privacy unit's column, or an expression, as a pair with a noun if the unit is not a human; None if each row is
one unit."""


def privacy_unit_with_bounds(unit: UnitSpec, limits: tuple[int | None, int | None, int | None]) -> PrivacyUnit:
    """Return the privacy unit with its bounds (``limits`` in the order of ``BOUND_NAMES``); raises ``InputError``."""
    column, noun = unit if isinstance(unit, tuple) and len(unit) == 2 else (unit, A_PERSON)
    if not (isinstance(noun, str) and NOUN_PATTERN.fullmatch(noun) and noun.isprintable()):
        raise InputError("privacy_unit", noun, "a noun with its article after the column", "('tail', 'an aircraft')")
    rows, per_group, groups = limits
    if column is None:
        for name, value in zip(BOUND_NAMES, limits, strict=True):
            if value not in (None, 1):
                text = f"remove {name}={value}: with privacy_unit=None each row is a person; or name a column"
                raise InputError.from_text(name, text)
        return PrivacyUnit(None, 1, 1, 1, noun)
    if not isinstance(column, (str, Expression)) or not str(column):
        expected = "the name of a column, an expression, or None when each row is a person"
        raise InputError("privacy_unit", column, expected)
    if rows is None:
        raise InputError.from_text("max_rows", MAX_ROWS_ADVICE)
    rows = _checked_bound("max_rows", rows)
    return PrivacyUnit(
        str(column),
        rows,
        rows if per_group is None else _checked_bound("max_rows_per_group", per_group),
        rows if groups is None else _checked_bound("max_groups", groups),
        noun,
    )


def resolve_privacy_unit(unit: PrivacyUnit, schema: Schema, *, is_expression: bool = False) -> PrivacyUnit:
    """Return the privacy unit with its column checked; a text that is not a column's name is read as an expression.

    Raises ``SchemaError`` for a missing column, ``InputError`` for an expression that cannot identify people: one that
    is a condition, is the same for every row, or reads as the name of another column.
    """
    if unit.column is None:
        return unit
    if unit.column in schema.column_names and not is_expression:
        schema.find_column(unit.column).refuse_other_kind("privacy_unit", "identify people")
        return unit
    try:
        term: Term = parse_expression(unit.column) if is_expression else resolve_term(unit.column, schema)
        term = resolve_term(term, schema)
    except InputError as error:
        if "(" not in unit.column and suggest_nearest(unit.column, schema.column_names):
            schema.find_column(unit.column)
        raise error if isinstance(error, SchemaError) else InputError.from_error(error, "privacy_unit") from None
    if isinstance(term, str):
        return replace(unit, column=term)
    shown = escape_control_chars(str(term))
    refuse_column_name(shown, schema)
    if term.infer_column_facts(schema).kind == "boolean" or not term_columns(term):
        expected = "a column, or an expression such as lower(patient), that differs from person to person"
        raise InputError("privacy_unit", shown, expected)
    return replace(unit, column=str(term))


def refuse_column_name(text: str, schema: Schema) -> None:
    """Raise ``InputError`` if the text of an expression is also a column's name, as which it would be read."""
    if text in schema.column_names:
        remedy = f"{text!r} is also the name of a column; rename that column, or take it as the privacy unit"
        raise InputError.from_text("privacy_unit", remedy)


def _checked_bound(name: str, value: int) -> int:
    if check_integer(name, value) > MAX_BOUND:
        raise InputError.from_text(name, f"must be at most {MAX_BOUND:,}")
    return int(value)


class Settings(TypedDict):
    """The keyword parameters of ``Session`` that a plan file sets, before the privacy unit is checked."""

    privacy_unit: UnitSpec
    budget: Budget
    max_rows: int | None
    max_rows_per_group: int | None
    max_groups: int | None
    public_tables: Sequence[PublicTableSource]


# The guarantee of a release as data and in words: the budget met, an attacker's gain, and the neighbors.


def attack_success_of_loss(loss: PrivacyLoss) -> float:
    """Return an attacker's probability to guess right, (1 + η)/2 with the total variation η, rounded up."""
    return attack_success_of(loss.total_variation(), is_bound=True)


def attacker_wording(loss: PrivacyLoss, privacy_unit: PrivacyUnit) -> str:
    """Return an attacker's possible gain in words; percentages are rounded up."""
    return str(AttackWording.from_guess(privacy_unit.guess_text, attack_success_of_loss(loss)))


def guarantee_data(loss: PrivacyLoss, budget: Budget) -> dict[str, Any]:
    """Return ε at the stated δ, η and attack success: rounded conservatively, and as exact decimal strings.

    The printed ε and δ are at most those of the budget, compared as decimals.
    """
    nearest = float(budget.delta)
    is_printed_above = Decimal(repr(nearest)) > budget.delta
    delta = printed_float_at_most(budget.delta) if is_printed_above else nearest
    delta_below = min(delta, float_at_most(budget.delta))
    # ε at δ, at most the requested ε that the loss meets: a numerical search ends slightly above it.
    met_epsilons = [
        epsilon
        for epsilon, point_delta in (
            (printed_float_at_most(epsilon), delta) for epsilon, delta in budget.checked_points
        )
        if point_delta <= budget.delta and loss.delta(epsilon) <= min(delta_below, float_at_most(point_delta))
    ]
    epsilon, eta = min([loss.epsilon(delta_below), *met_epsilons]), loss.total_variation()
    return {
        "epsilon": epsilon,
        "epsilon_exact": str(Decimal(epsilon)),
        "delta": delta,
        "delta_exact": str(budget.delta),
        "total_variation": eta,
        "total_variation_exact": str(Decimal(eta)),
        "attack_success": attack_success_of_loss(loss),
    }


def neighbors_data(privacy_unit: PrivacyUnit) -> Mapping[str, Any]:
    """Return the neighboring relation as data and in a sentence."""
    if privacy_unit.column is None:
        return {
            "relation": "add-remove",
            "privacy_unit": None,
            "noun": privacy_unit.means,
            "max_rows": 1,
            "max_rows_per_group": 1,
            "max_groups": 1,
            "statement": f"Adding or removing one row (each row is {privacy_unit.means})",
        }
    whose = "their rows" if privacy_unit.is_human else "its rows"
    return {
        "relation": "add-remove",
        "privacy_unit": privacy_unit.column,
        "noun": privacy_unit.means,
        "max_rows": privacy_unit.max_rows,
        "max_rows_per_group": privacy_unit.max_rows_per_group,
        "max_groups": privacy_unit.max_groups,
        "statement": f"Adding or removing one {privacy_unit.unit_noun} (a value of "
        f"{escape_control_chars(privacy_unit.column)}) with all {whose}",
    }


# Guarantees that are too weak: refused, or with a warning.

REFUSED_DELTA, WARNED_DELTA = Decimal("0.1"), Decimal("1e-4")
"""The smallest δ that is refused, and the smallest δ with a warning."""


def check_delta(budget: Budget, query_groups: Sequence[QueryGroup]) -> None:
    """Raise ``InputError`` for a δ without meaningful protection, and for δ = 0 if groups are discovered."""
    if not budget.delta < REFUSED_DELTA:
        remedy = f"{DELTA_TOO_LARGE}; {DELTA_SIZE_ADVICE}"
        raise InputError("delta", float(budget.delta), f"below {REFUSED_DELTA} for a release", remedy)
    discovered = [
        question.asked.name
        for query_group in query_groups
        if query_group.key_count is not None
        for question in query_group.ordered_queries
    ]
    if discovered and not budget.delta > 0:
        text = (
            f"0 is possible only if all groups are listed; list the groups of {discovered[0]} with keys=[...], or use "
            f"delta=1e-12: about the same noise as a larger delta, but a higher threshold for showing groups"
        )
        raise InputError.from_text("delta", text)


def large_delta_warning(budget: Budget) -> str | None:
    """Return a warning for a δ of at least one over the population of a small town, else None."""
    if budget.delta < WARNED_DELTA:
        return None
    return f"{large_delta_text(budget.delta)}; {DELTA_SIZE_ADVICE}"


def large_epsilon_warning(budget: Budget) -> str | None:
    """Return a warning for an ε above ``MOST_EPSILON``, the largest for which noise is made, else None."""
    largest = max(epsilon for epsilon, _ in budget.checked_points)
    if largest <= MOST_EPSILON:
        return None
    return (
        f"epsilon {float(largest):g} gives no meaningful protection; the noise is that of epsilon {MOST_EPSILON:g}, "
        "next to none; a typical value is 1"
    )
