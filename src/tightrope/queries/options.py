"""Options shared by all queries: rows, groups, weight and contribution bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self, get_args

from tightrope.documents.budget import exact_decimal
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.release import MEASURES, PAID
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.tables import Expression
from tightrope.tables.expressions.conditions import join_conditions
from tightrope.tables.expressions.expression import Term, resolve_term, term_facts
from tightrope.tables.expressions.leaves import ColumnRef, PersonAggregate
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.request import MAX_GROUPING_COLUMNS
from tightrope.tables.schema import Schema

Keys = tuple[tuple[object, ...], ...]
NESTED_TYPES = (list, tuple, dict, set, frozenset)
MOST_KEYS = 1_000_000
"""Maximum number of keys in a plan: each is a row of the answer."""
MAX_WEIGHT = 64
"""Largest weight, and the inverse of the smallest: relative errors reach from an eighth to eight times the usual."""


def listed_keys(keys: object, by: tuple[str, ...]) -> Keys | None:
    """Return the groups, one value for each of ``by``; None without ``keys``. Raises ``PlanError``."""
    if keys is None:
        return None
    if not by:
        raise PlanError("keys", keys, "left out if by is left out", 'add the column of the keys: by="city"')
    key_list = _key_combinations(keys, by) if isinstance(keys, Mapping) else _keys_in_list(keys, by)
    if not all(
        isinstance(value, Hashable) and not isinstance(value, NESTED_TYPES) for key in key_list for value in key
    ):
        expected = f"a list of {'values' if len(by) == 1 else f'lists of {len(by)} values'}, none of them a list itself"
        raise PlanError(
            "keys", _describe_key_type(keys), expected, "say keys = [0, 1]" if len(by) == 1 else 'say keys = [["a", 1]]'
        )
    if len(distinct_keys := dict.fromkeys(key_list)) < len(key_list):
        expected_keys = f"different keys, but {len(key_list) - len(distinct_keys)} of {len(key_list)} equal others"
        raise PlanError(
            "keys", _describe_key_type(keys), expected_keys, "list each group once; 1, 1.0 and true are one"
        )
    return tuple(distinct_keys)


def _key_combinations(keys: Mapping[object, object], by: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Return all combinations of the values of each column."""
    if set(keys) != set(by):
        raise PlanError("keys", list(keys), f"values for exactly the columns {list(by)}")
    columns = [_key_values(keys[column]) for column in by]
    if (combinations := math.prod(map(len, columns))) > MOST_KEYS:
        expected = f"at most {MOST_KEYS:,} combinations"
        raise PlanError("keys", f"{combinations:,} combinations", expected, "list those that matter, or leave keys out")
    return list(itertools.product(*columns))


def _keys_in_list(keys: object, by: tuple[str, ...]) -> list[tuple[object, ...]]:
    """Return the keys of a list, which may leave out the brackets around a single value."""
    key_list = [tuple(key) if isinstance(key, (tuple, list)) else (key,) for key in _key_values(keys)]
    for index, key in enumerate(key_list):
        if len(key) != len(by):
            raise PlanError("keys", f"{len(key)} in key {index + 1}", f"one value for each of {list(by)}")
    return key_list


_LIST_TYPES = (list, tuple, range, set, frozenset)
_OTHER_LIST_CLASSES = (("numpy", "ndarray"), ("pandas", "Index"))
"""Classes of lists in other libraries, by library and name. A column of a data frame is not accepted: it is data."""


def _key_values(values: object) -> list[object]:
    is_other_list = any(
        (cls.__module__.partition(".")[0], cls.__name__) in _OTHER_LIST_CLASSES for cls in type(values).__mro__
    )
    is_other_list = is_other_list and getattr(values, "ndim", 1) == 1
    entries = list(values) if isinstance(values, _LIST_TYPES) or is_other_list else []  # type: ignore[call-overload]
    if not entries:
        remedy = "list them in the plan, or leave keys out to discover them; keys read from the data disclose data"
        raise PlanError("keys", _describe_key_type(values), "a list with at least one key", remedy)
    return entries


def _describe_key_type(keys: object) -> str:
    """Return the type and length of invalid keys for an error, without the keys, which may be data."""
    return f"{type(keys).__name__} of {len(keys)}" if isinstance(keys, (*_LIST_TYPES, Mapping)) else type(keys).__name__


TEXT_OPTIONS = ("title", "description", "unit", "means")
"""The options that are texts for readers; ``means`` describes a value, in place of the default description."""
MAX_TEXT_LENGTH = 2_000


def option_texts(options: QueryOptions) -> dict[str, str]:
    """Return the texts for readers that were given, by option; raises ``PlanError`` for a value that is not a text."""
    texts = {name: getattr(options, name) for name in TEXT_OPTIONS if getattr(options, name) is not None}
    for name, text in texts.items():
        if not (isinstance(text, str) and text.strip() and len(text) <= MAX_TEXT_LENGTH):
            shown = text[:50] if isinstance(text, str) else type(text).__name__
            raise PlanError(name, shown, f"a text of at most {MAX_TEXT_LENGTH:,} characters", "it is shown to readers")
    return texts


MARGIN_ADVICE = 'say margin_of_error=50, in the units of the answer, or margin_of_error="5%" of the rows of a group'


@dataclass(frozen=True, slots=True)
class MarginOfError:
    """A margin of error: ± ``half_width`` at 95 %; ``relative``: ± that fraction of the rows of the group."""

    half_width: Decimal
    relative: bool = False

    @classmethod
    def from_option(cls, option: object) -> Self:
        """Return the margin of error, checked; raises ``PlanError``.

        >>> MarginOfError.from_option(50)
        MarginOfError(half_width=Decimal('50'), relative=False)
        >>> MarginOfError.from_option("2.5 %")
        MarginOfError(half_width=Decimal('0.025'), relative=True)
        """
        text = option.strip() if isinstance(option, str) else None
        relative = text is not None and text.endswith("%")
        try:
            number = exact_decimal("margin_of_error", text.removesuffix("%").strip() if text is not None else option)
        except InputError:
            raise PlanError("margin_of_error", option, "a number above 0", MARGIN_ADVICE) from None
        if not number > 0:
            raise PlanError("margin_of_error", option, "a number above 0", MARGIN_ADVICE)
        return cls(number.scaleb(-2) if relative else number, relative)

    def __str__(self) -> str:
        return f"{self.half_width.scaleb(2).normalize():f}%" if self.relative else f"{self.half_width.normalize():f}"

    def half_width_at(self, rows: int | None) -> float:
        """Return the half-width in a group with ``rows`` rows."""
        return float(self.half_width) * (rows or 1) if self.relative else float(self.half_width)


def person_aggregate(per_person: object) -> PersonAggregate | None:
    """Return how the value of a person is computed from their rows; raises ``PlanError`` for another text."""
    aggregates: tuple[PersonAggregate, ...] = get_args(PersonAggregate)
    found = next((name for name in aggregates if name == per_person), None)
    if found is None and per_person is not None:
        raise PlanError("per_person", per_person, "count, sum or any")
    return found


def grid_width(round_to: object) -> Decimal | None:
    """Return the width of the grid to which values are rounded, as an exact decimal; raises ``PlanError``.

    >>> grid_width(0.05), grid_width(None)
    (Decimal('0.05'), None)
    """
    if round_to is None:
        return None
    try:
        width = exact_decimal("round_to", round_to)
    except InputError:
        width = Decimal(0)
    if not (width > 0 and math.isfinite(float(width)) and float(width) > 0):
        raise PlanError("round_to", round_to, "a positive number", "10 rounds to tens, 0.1 to tenths")
    return width


def rounding_notes(width: Decimal | None) -> list[str]:
    """Return the note for readers on values that are rounded to a grid; none without a width."""
    return [f"Values are rounded to multiples of {width.normalize():f}, ends of intervals outwards."] if width else []


def round_record(record: Mapping[str, Any], width: Decimal | None) -> dict[str, Any]:
    """Return a record with its value rounded to a multiple of ``width``, and its ends rounded outwards.

    >>> round_record({"value": 1234, "lower": 1201, "upper": 1267.5}, Decimal(50))
    {'value': 1250, 'lower': 1200, 'upper': 1300}
    >>> round_record({"value": 0.123, "lower": None, "upper": 0.151}, Decimal("0.05"))
    {'value': 0.1, 'lower': None, 'upper': 0.2}
    """
    if width is None:
        return dict(record)
    rounded, step = dict(record), Fraction(width)
    for name, direction in (("value", round), ("lower", math.floor), ("upper", math.ceil)):
        number = rounded[name]
        if number is not None and math.isfinite(number):
            # The nearest double of a multiple beyond an end is beyond it, too: rounding to doubles is monotone.
            multiple = direction(Fraction(number) / step) * step
            rounded[name] = int(multiple) if multiple.denominator == 1 else float(multiple)
    return rounded


Given = str | Expression
"""A column name or an expression; a text is a column name if the table has that column."""
MAX_KNOWN_GROUPS = 10_000
"""Maximum number of groups that are listed automatically; if there are more, groups are discovered."""
RESERVED_KEY_NAMES = (*MEASURES, *PAID)
"""Names of the columns of an answer, which keys must not use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The keywords of every query, as they were given. Each kind of query inherits them as its fields.

    >>> QueryOptions(by="city", weight=4).by
    'city'
    """

    where: Given | None = field(default=None, compare=False)
    """A condition. Only rows for which it is true count; other rows do not use up a person's bounds."""
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] = field(default=(), compare=False)
    """Columns or expressions to group by, also as ``{name: expression}``."""
    keys: object = field(default=None, compare=False)
    """The groups: values of one column, tuples of several, or column → values for every combination.

    If left out, they are discovered, or listed if the expressions have few values (months, parts of a range).
    """
    weight: float = field(default=1.0, compare=False)
    """Importance, from 1/64 to 64: 4 asks for half the error of weight 1, both relative to the errors alone."""
    name: str | None = field(default=None, compare=False)
    """The query's name, unique in a plan; by default made of its kind, columns and groups."""
    max_rows_per_group: int | None = field(default=None, compare=False)
    """The most rows of a person in one group; by default the session's bound."""
    max_groups: int | None = field(default=None, compare=False)
    """The most groups in which a person is counted; by default the session's bound."""
    margin_of_error: float | str | None = field(default=None, compare=False)
    """The target half-width of 95 % intervals (``Session.plan`` minimizes the budget): 50, or "5%" of the rows."""
    title: str | None = field(default=None, compare=False)
    """A heading for readers."""
    description: str | None = field(default=None, compare=False)
    """A paragraph for readers."""
    unit: str | None = field(default=None, compare=False)
    """The unit of the values, for readers."""
    means: str | None = field(default=None, compare=False)
    """A description of the value for readers, in place of the default."""
    per_person: str | None = field(default=None, compare=False)
    """"count", "sum" or "any": the statistic is of persons, each with a value that is computed from all their rows."""
    round_to: float | None = field(default=None, compare=False)
    """The width of the grid to which values are rounded for readers; ends of intervals are rounded outwards."""


ENTRIES = tuple(option.name for option in fields(QueryOptions))
"""The plan file keys that every query has: the keywords of ``QueryOptions``."""


@dataclass(frozen=True, slots=True)
class CheckedOptions:
    """``QueryOptions``, checked.

    ``by``: the names of the keys. ``terms``: their columns or expressions. ``keys=None`` with ``by``: the groups are
    discovered, or follow from the expressions. ``where``: all conditions that apply.
    """

    by: tuple[str, ...]
    keys: Keys | None
    weight: float
    name: str
    max_rows_per_group: int | None
    max_groups: int | None
    terms: tuple[Term, ...]
    where: tuple[Term, ...]
    keys_from_expressions: bool = False
    """True if the groups are listed because they follow from the expressions."""
    part_edges: tuple[bool | int | float | str, ...] = ()
    """The lower edges of the bins that are the last key, as they were given; empty if groups are not bins."""
    margin_of_error: MarginOfError | None = None
    reader_texts: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    """The given texts, by their name in ``TEXT_OPTIONS``."""
    per_person: PersonAggregate | None = None
    """How the value of a person is computed from their rows; None for statistics of rows."""
    round_to: Decimal | None = None
    """The width of the grid to which values are rounded for readers."""

    @classmethod
    def from_options(cls, options: QueryOptions, *words: str) -> Self:
        """Return the options, checked; ``words`` form the default name. Raises ``PlanError`` for an invalid parameter.

        >>> CheckedOptions.from_options(QueryOptions(by=["city", "sex"]), "mean", "age").name
        'mean_age_by_city_sex'
        """
        term_by_name = _terms_by_key_name(options.by)
        by, where = tuple(term_by_name), options.where
        if not (where is None or (isinstance(where, (str, Expression)) and str(where).strip())):
            raise PlanError("where", type(where).__name__, "a condition", 'such as where="distance > 500"')
        max_rows_per_group, max_groups = options.max_rows_per_group, options.max_groups
        keys = listed_keys(options.keys, by)
        weight = check_positive("weight", options.weight, "1 is the usual weight, 4 asks for half the relative error")
        if not 1 / MAX_WEIGHT <= weight <= MAX_WEIGHT:
            remedy = "errors are an eighth to eight times those of weight 1; ask fewer questions, or use two plans"
            raise PlanError("weight", options.weight, f"from 1/{MAX_WEIGHT} to {MAX_WEIGHT}", remedy)
        return cls(
            by=by,
            keys=keys,
            weight=weight,
            name=query_name(options.name, words, by),
            max_rows_per_group=None
            if max_rows_per_group is None
            else check_integer("max_rows_per_group", max_rows_per_group),
            max_groups=None if max_groups is None else check_integer("max_groups", max_groups),
            terms=tuple(term_by_name.values()),
            where=() if where is None else (unwrap_expression(where),),
            margin_of_error=None
            if options.margin_of_error is None
            else MarginOfError.from_option(options.margin_of_error),
            reader_texts=option_texts(options),
            per_person=None if options.per_person is None else person_aggregate(options.per_person),
            round_to=None if options.round_to is None else grid_width(options.round_to),
        )

    @property
    def relative_noise_size(self) -> float:
        """The size of the noise for this weight, relative to weight 1."""
        return float(self.weight**-0.5)

    @property
    def groups_text(self) -> str:
        """The groups and the condition in words; empty without either."""
        names = []
        for name, term in zip(self.by, self.terms, strict=False):
            # The expression is shown, too, if it differs from the name by more than quotes and spaces.
            text = str(term)
            is_same = name == text or name.replace('"', "'").replace(" ", "") == text.replace('"', "'").replace(" ", "")
            names.append(
                escape_control_chars(name)
                if is_same
                else f"{escape_control_chars(name)} ({escape_control_chars(text)})"
            )
        condition = f" where {escape_control_chars(str(self.row_condition))}" if self.where else ""
        return (f" by {', '.join(names)}" if self.by else "") + condition

    def without_groups(self, names: Sequence[str]) -> Self:
        """Return the options without these key columns, for titles."""
        kept = [(name, term) for name, term in zip(self.by, self.terms, strict=False) if name not in names]
        return replace(self, by=tuple(name for name, _ in kept), terms=tuple(term for _, term in kept))

    @property
    def row_condition(self) -> Term | None:
        """The condition for rows to count; after ``resolve``, all conditions combined."""
        return self.where[0] if self.where else None

    def resolve(self, schema: Schema, everywhere: Term | None = None) -> Self:
        """Return the options with every text parsed; groups that follow from their expressions are listed.

        ``everywhere`` is a further condition. Raises ``SchemaError`` and ``InputError`` if the table lacks a column.
        """
        terms = tuple(resolve_term(term, schema) for term in self.terms)
        try:
            conditions = [
                resolve_term(condition, schema) for condition in (everywhere, *self.where) if condition is not None
            ]
        except InputError as error:  # the parameter is the condition
            raise type(error).from_error(error, "where") from None
        for condition in conditions:
            if (kind := term_facts(condition, schema).kind) != "boolean":
                raise SchemaError("where", str(condition), f"a condition, but it is {kind}", "such as distance > 500")
        condition_trees = [
            ColumnRef(condition) if isinstance(condition, str) else condition for condition in conditions
        ]
        combined = (
            ()
            if not conditions
            else (conditions[0],)
            if len(conditions) == 1
            else (join_conditions("and", *condition_trees),)
        )
        keys = _enumerable_keys(terms, schema) if self.keys is None else None
        return replace(
            self, terms=terms, where=combined, keys=keys or self.keys, keys_from_expressions=keys is not None
        )


def query_name(name: object, words: Sequence[str], by: Sequence[str]) -> str:
    """Return the given name, or the default one: made of the words and the groups."""
    if name is None:
        return "_".join([*words, *(["by", *by] if by else [])])
    if not isinstance(name, str) or not name.strip():
        raise PlanError("name", name, "a non-empty text")
    return name


def unwrap_expression(given: Given | ExpressionTree) -> Term:
    """Return the tree of an expression; a text stays unparsed until the schema is available."""
    return given.tree if isinstance(given, Expression) else given


def _enumerable_keys(terms: tuple[Term, ...], schema: Schema) -> Keys | None:
    """Return all combinations of values if a key is an expression and all keys have few known values, else None."""
    known_values = [term_facts(term, schema).possible_keys for term in terms]
    listed_values = [keys for keys in known_values if keys is not None]
    has_expression = any(isinstance(term, ExpressionTree) for term in terms)
    if (
        not has_expression
        or len(listed_values) < len(known_values)
        or math.prod(map(len, listed_values)) > MAX_KNOWN_GROUPS
    ):
        return None
    return tuple(itertools.product(*listed_values))


def _terms_by_key_name(by: object) -> dict[str, Term]:
    """Return the columns and expressions of the keys by name; an unnamed expression is named after its text."""
    pairs: list[tuple[Any, Any]] = []
    for entry in by if isinstance(by, (list, tuple)) else [by]:
        pairs += entry.items() if isinstance(entry, Mapping) else [(str(entry), entry)]
    if not all(isinstance(term, (str, Expression)) and isinstance(name, str) and name for name, term in pairs):
        expected = "a column's name, an expression, {name: expression}, or a list of them"
        raise PlanError("by", type(by).__name__ if isinstance(by, Expression) else by, expected)
    columns = [name for name, _ in pairs]
    if len(columns) > MAX_GROUPING_COLUMNS:
        remedy = "ask several questions, each with the columns that belong together"
        expected = f"at most {MAX_GROUPING_COLUMNS} columns or expressions"
        raise PlanError("by", f"{len(columns)} columns", expected, remedy)
    if len(set(columns)) < len(columns):
        raise PlanError("by", columns, "different columns", "each column can be named once")
    for column in columns:
        if column in RESERVED_KEY_NAMES:
            raise PlanError(
                "by", column, f"not one of {RESERVED_KEY_NAMES}", "answers use these names; rename the column"
            )
    return {name: unwrap_expression(term) for name, term in pairs}
