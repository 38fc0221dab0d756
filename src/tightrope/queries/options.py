"""What every question says, whatever it asks: which rows, by which groups, how important, under which bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from typing import Any, Self

from tightrope.documents.budget import decimal
from tightrope.documents.escaping import printable
from tightrope.documents.release import MEASURES, PAID
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.numerics.checks import positive, whole
from tightrope.tables import Expression
from tightrope.tables.expressions.conditions import logic
from tightrope.tables.expressions.expression import Term, facts_of, term_of
from tightrope.tables.expressions.leaves import Column
from tightrope.tables.expressions.tree import Tree
from tightrope.tables.request import MOST_BY
from tightrope.tables.schema import Schema

# The groups that a question lists: values of one column, tuples of several, or values by column.

Keys = tuple[tuple[object, ...], ...]
NESTED = (list, tuple, dict, set, frozenset)
MOST_KEYS = 1_000_000
"""So many keys are planned at most: each is a row of the answer."""


def listed_keys(keys: object, by: tuple[str, ...]) -> Keys | None:
    """The groups, one value for each of ``by``; None where none are listed. Raises ``PlanError``."""
    if keys is None:
        return None
    if not by:
        raise PlanError("keys", keys, "left out where by is", 'say which column they are of: by="city"')
    listed = _product(keys, by) if isinstance(keys, Mapping) else _listed(keys, by)
    if not all(isinstance(value, Hashable) and not isinstance(value, NESTED) for key in listed for value in key):
        expected = f"a list of {'values' if len(by) == 1 else f'lists of {len(by)} values'}, none of them a list itself"
        raise PlanError("keys", _kind(keys), expected, "say keys = [0, 1]" if len(by) == 1 else 'say keys = [["a", 1]]')
    if len(once := dict.fromkeys(listed)) < len(listed):
        different = f"different keys, but {len(listed) - len(once)} of {len(listed)} equal others"
        raise PlanError("keys", _kind(keys), different, "list each group once; 1, 1.0 and true are one")
    return tuple(once)


def _listed(keys: object, by: tuple[str, ...]) -> list[tuple[object, ...]]:
    listed = [tuple(key) if isinstance(key, (tuple, list)) else (key,) for key in _values(keys)]
    for place, key in enumerate(listed):
        if len(key) != len(by):
            raise PlanError("keys", f"{len(key)} in key {place + 1}", f"one value for each of {list(by)}")
    return listed


def _product(keys: Mapping[object, object], by: tuple[str, ...]) -> list[tuple[object, ...]]:
    if set(keys) != set(by):
        raise PlanError("keys", list(keys), f"values for exactly the columns {list(by)}")
    columns = [_values(keys[column]) for column in by]
    if (size := math.prod(map(len, columns))) > MOST_KEYS:
        expected = f"at most {MOST_KEYS:,} combinations"
        raise PlanError("keys", f"{size:,} combinations", expected, "list those that matter, or leave keys out")
    return list(itertools.product(*columns))


_PLAIN = (list, tuple, range, set, frozenset)
_OTHERS = (("numpy", "ndarray"), ("pandas", "Index"))
"""Lists of other libraries, by library and class. A column of a frame is not among them: it is data."""


def _values(values: object) -> list[object]:
    others = any((cls.__module__.partition(".")[0], cls.__name__) in _OTHERS for cls in type(values).__mro__)
    others = others and getattr(values, "ndim", 1) == 1
    entries = list(values) if isinstance(values, _PLAIN) or others else []  # type: ignore[call-overload]
    if not entries:
        remedy = "list them in the plan, or leave keys out to discover them; keys that are read from the data are data"
        raise PlanError("keys", _kind(values), "a list with at least one key", remedy)
    return entries


def _kind(keys: object) -> str:
    """What is shown of keys that cannot be: not they, for they may have been read from the data."""
    return f"{type(keys).__name__} of {len(keys)}" if isinstance(keys, (*_PLAIN, Mapping)) else type(keys).__name__


# What people are told of a question, in the plan's own words.

TEXTS = ("title", "description", "unit", "means")
"""``means`` says what a value is, in place of the words of its kind."""
LONGEST_TEXT = 2_000


def texts(options: QueryOptions) -> dict[str, str]:
    """The texts that were given; raises ``PlanError`` for a value that is not a text."""
    found = {name: getattr(options, name) for name in TEXTS if getattr(options, name) is not None}
    for name, text in found.items():
        if not (isinstance(text, str) and text.strip() and len(text) <= LONGEST_TEXT):
            shown = text[:50] if isinstance(text, str) else type(text).__name__
            raise PlanError(name, shown, f"a text of at most {LONGEST_TEXT:,} letters", "it is shown to readers")
    return found


# How accurate an answer must be: the half-width of its 95 % interval, as a number or as a share of the rows.

REMEDY = 'say within=50, in the units of the answer, or within="5%" of the rows of a group'


@dataclass(frozen=True, slots=True)
class Within:
    """95 % of answers within ± ``half``; ``relative``: ± that share of the rows of the group."""

    half: Decimal
    relative: bool = False

    @classmethod
    def of(cls, wanted: object) -> Self:
        """What was asked for, checked; raises ``PlanError``.

        >>> Within.of(50), Within.of("2.5 %")
        (Within(half=Decimal('50'), relative=False), Within(half=Decimal('0.025'), relative=True))
        """
        text = wanted.strip() if isinstance(wanted, str) else None
        relative = text is not None and text.endswith("%")
        try:
            number = decimal("within", text.removesuffix("%").strip() if text is not None else wanted)
        except InputError:
            raise PlanError("within", wanted, "a number above 0", REMEDY) from None
        if not number > 0:
            raise PlanError("within", wanted, "a number above 0", REMEDY)
        return cls(number.scaleb(-2) if relative else number, relative)

    def __str__(self) -> str:
        return f"{self.half.scaleb(2).normalize():f}%" if self.relative else f"{self.half.normalize():f}"

    def at(self, rows: int | None) -> float:
        """The half-width in a group of so many rows."""
        return float(self.half) * (rows or 1) if self.relative else float(self.half)


Given = str | Expression
"""A column's name, or an expression, also as text: which of them a text is, the table's own names tell."""
MOST_KNOWN = 10_000
"""So many groups are listed without being asked for at most; more are discovered."""
RESERVED = (*MEASURES, *PAID)
"""Names of the columns of an answer: no key may be called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The keywords that every question takes, as they were given. Each kind of question inherits them as its fields.

    >>> QueryOptions(by="city", weight=4).by
    'city'
    """

    where: Given | None = field(default=None, compare=False)
    """A condition. Only rows for which it is true count; other rows take nothing from a person's allowance."""
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] = field(default=(), compare=False)
    """Columns to group by, or expressions, also as ``{name: expression}``."""
    keys: object = field(default=None, compare=False)
    """The groups: values of one column, tuples of several, or column → values for every combination.

    Left out, they are discovered, or listed where the expressions have few values (months, parts of a range).
    """
    weight: float = field(default=1.0, compare=False)
    """Importance: 4 asks for half the noise of weight 1, to the nearest size that is used."""
    name: str | None = field(default=None, compare=False)
    """The question's name among those of a plan; by default made of its kind, its columns and its groups."""
    rows_per_group: int | None = field(default=None, compare=False)
    """A bound on the rows of a person in one group; by default the session's."""
    groups_per_person: int | None = field(default=None, compare=False)
    """A bound on the groups that a person is counted in; by default the session's."""
    within: float | str | None = field(default=None, compare=False)
    """The half-width of 95 % intervals to plan the least budget for (``Session.plan``): 50, or "5%" of the rows."""
    title: str | None = field(default=None, compare=False)
    """A heading for readers."""
    description: str | None = field(default=None, compare=False)
    """A paragraph for readers."""
    unit: str | None = field(default=None, compare=False)
    """The unit of the values, for readers."""
    means: str | None = field(default=None, compare=False)
    """What a value is, for readers, in place of the words of the kind."""


RENAMED = {"groups_per_person": "groups"}
"""The keywords that a plan file calls otherwise."""
KEYS_BY_OPTION = {option.name: RENAMED.get(option.name, option.name) for option in fields(QueryOptions)}
"""The key in a plan file of each keyword of ``QueryOptions``."""
ENTRIES = tuple(KEYS_BY_OPTION.values())
"""The keys of a plan file that every question has."""


@dataclass(frozen=True, slots=True)
class Asked:
    """``QueryOptions``, checked. ``keys=None`` with ``by``: the groups are discovered, or known from the expressions.

    ``by`` are the names of the keys, ``terms`` what each is computed from; ``where`` all conditions that must be true.
    """

    by: tuple[str, ...]
    keys: Keys | None
    weight: float
    name: str
    rows_per_group: int | None
    groups_per_person: int | None
    terms: tuple[Term, ...]
    where: tuple[Term, ...]
    known: bool = False
    """Whether the groups are listed because they follow from the expressions."""
    within: Within | None = None
    said: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    """Those of ``TEXTS`` that were given."""

    @classmethod
    def of(cls, options: QueryOptions, *words: str) -> Self:
        """The options, checked; ``words`` make the default name. Raises ``PlanError`` naming what is wrong.

        >>> Asked.of(QueryOptions(by=["city", "sex"]), "mean", "age").name
        'mean_age_by_city_sex'
        """
        named = _named(options.by)
        by, where = tuple(named), options.where
        if not (where is None or (isinstance(where, (str, Expression)) and str(where).strip())):
            raise PlanError("where", type(where).__name__, "a condition", 'such as where="distance > 500"')
        rows, groups = options.rows_per_group, options.groups_per_person
        return cls(
            by=by,
            keys=listed_keys(options.keys, by),
            weight=positive("weight", options.weight, "1 is the usual weight, 4 asks for half the noise"),
            name=_name(options.name, [*words, *(["by", *by] if by else [])]),
            rows_per_group=None if rows is None else whole("rows_per_group", rows),
            groups_per_person=None if groups is None else whole("groups_per_person", groups),
            terms=tuple(named.values()),
            where=() if where is None else (unwrapped(where),),
            within=None if options.within is None else Within.of(options.within),
            said=texts(options),
        )

    @property
    def size(self) -> float:
        """The size of the noise that the weight asks for, relative to the other questions'."""
        return float(self.weight**-0.5)

    @property
    def groups(self) -> str:
        """The groups, and which rows count, in words; nothing where there are none and all do."""
        return (f" by {', '.join(map(_said, self.by, self.terms))}" if self.by else "") + self.rows_that_count

    @property
    def rows_that_count(self) -> str:
        """The condition in words; empty where all rows count."""
        return f" where {printable(str(self.condition))}" if self.where else ""

    @property
    def condition(self) -> Term | None:
        """What must be true of a row: one condition, or all of them once they are ``settled``."""
        return self.where[0] if self.where else None

    def settled(self, schema: Schema, everywhere: Term | None = None) -> Self:
        """The same with every text read; groups that are known from their expressions are listed.

        ``everywhere`` must be true, too. Raises ``SchemaError`` and ``InputError`` for what the table does not have.
        """
        terms = tuple(term_of(term, schema) for term in self.terms)
        where = [term_of(one, schema) for one in (everywhere, *self.where) if one is not None]
        for one in where:
            if (kind := facts_of(one, schema).kind) != "boolean":
                raise SchemaError("where", str(one), f"a condition, but it is {kind}", "such as distance > 500")
        joined = [Column(one) if isinstance(one, str) else one for one in where]
        both = () if not where else (where[0],) if len(where) == 1 else (logic("and", *joined),)
        keys = _known(terms, schema) if self.keys is None else None
        return replace(self, terms=terms, where=both, keys=keys or self.keys, known=keys is not None)


def unwrapped(given: Given | Tree) -> Term:
    """The tree of an expression; a text stays one until there is a table to read it for."""
    return given.tree if isinstance(given, Expression) else given


def _said(name: str, term: Term) -> str:
    """The key's name, and what it is where that says more: quotes and blanks do not."""
    said = str(term)
    same = name == said or name.replace('"', "'").replace(" ", "") == said.replace('"', "'").replace(" ", "")
    return printable(name) if same else f"{printable(name)} ({printable(said)})"


def _known(terms: tuple[Term, ...], schema: Schema) -> Keys | None:
    """All combinations of values, where there is an expression and few values are known of each; None otherwise."""
    every = [facts_of(term, schema).keys for term in terms]
    found = [keys for keys in every if keys is not None]
    computed = any(isinstance(term, Tree) for term in terms)
    if not computed or len(found) < len(every) or math.prod(map(len, found)) > MOST_KNOWN:
        return None
    return tuple(itertools.product(*found))


def _named(by: object) -> dict[str, Term]:
    """What groups are made of, by the names of the keys: an expression is called what it says, or as it is named."""
    listed = list(by) if isinstance(by, (list, tuple)) else [by]
    pairs: list[tuple[Any, Any]] = []
    for one in listed:
        pairs += one.items() if isinstance(one, Mapping) else [(str(one), one)]
    if not all(isinstance(term, (str, Expression)) and isinstance(name, str) and name for name, term in pairs):
        expected = "a column's name, an expression, {name: expression}, or a list of them"
        raise PlanError("by", type(by).__name__ if isinstance(by, Expression) else by, expected)
    columns = [name for name, _ in pairs]
    if len(columns) > MOST_BY:
        remedy = "ask several questions, each with the columns that belong together"
        raise PlanError("by", f"{len(columns)} columns", f"at most {MOST_BY} columns or expressions", remedy)
    if len(set(columns)) < len(columns):
        raise PlanError("by", columns, "different columns", "each column can be named once")
    for column in columns:
        if column in RESERVED:
            raise PlanError("by", column, f"not one of {RESERVED}", "answers use these names; rename the column")
    return {name: unwrapped(term) for name, term in pairs}


def _name(name: str | None, usual: Sequence[str]) -> str:
    if name is None:
        return "_".join(usual)
    if not isinstance(name, str) or not name.strip():
        raise PlanError("name", name, "a non-empty text")
    return name
