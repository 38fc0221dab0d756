"""What every question says, whatever it asks: which rows, by which groups, how important, under which bounds."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast, get_type_hints

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


def texts(asking: Mapping[str, Any]) -> dict[str, str]:
    """Those that were given; raises ``PlanError`` for what is no text."""
    found = {name: asking[name] for name in TEXTS if asking.get(name) is not None}
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
Maker = TypeVar("Maker", bound=Callable[..., Any])
MOST_KNOWN = 10_000
"""So many groups are listed without being asked for at most; more are discovered."""
RESERVED = (*MEASURES, *PAID)
"""Names of the columns of an answer: no key may be called so."""
ENTRIES = ("where", "by", "keys", "weight", "name", "rows_per_group", "groups", "within", *TEXTS)
"""The keys of a plan file that every question has."""
RENAMED = {"groups_per_person": "groups"}
"""The keywords that are called otherwise there."""


class Asking(TypedDict, total=False):
    """The keywords that every question takes.

    ``where``: a condition; only rows for which it is true count, and others take nothing from a person's allowance.
    ``by``: columns to group by, or expressions, also as ``{name: expression}``. ``keys`` lists the groups (values of
    one column, tuples of several, or column → values for every combination); left out, they are discovered, or listed
    where the expressions have few values (months, parts of a range). ``weight=4`` asks for half the noise of weight 1,
    to the nearest size that is used. ``rows_per_group`` and ``groups_per_person`` override the session's bounds.
    ``within=50`` asks for the least budget with which 95 % of answers are within ± 50 (``Session.plan``). ``title``,
    ``description``, ``unit`` and ``means`` (what a value is, in place of the kind's own words) are shown to readers.
    """

    where: Given | None
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]]
    keys: object
    weight: float
    name: str | None
    rows_per_group: int | None
    groups_per_person: int | None
    within: float | str | None
    title: str | None
    description: str | None
    unit: str | None
    means: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """The same, checked. ``keys=None`` with ``by``: the groups are discovered, or known from the expressions.

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
    def of(cls, *what: str, **asking: Unpack[Asking]) -> Self:
        """The keywords checked; ``what`` makes the usual name. Raises ``PlanError`` naming what is wrong.

        >>> Asked.of("mean", "age", by=["city", "sex"]).name
        'mean_age_by_city_sex'
        """
        for key in asking:
            if key not in Asking.__annotations__:
                raise TypeError(f"a question takes {', '.join(Asking.__annotations__)}, not {key}")
        named = _named(asking.get("by", ()))
        by, where = tuple(named), asking.get("where")
        if not (where is None or (isinstance(where, (str, Expression)) and str(where).strip())):
            raise PlanError("where", type(where).__name__, "a condition", 'such as where="distance > 500"')
        rows, groups = asking.get("rows_per_group"), asking.get("groups_per_person")
        return cls(
            by=by,
            keys=listed_keys(asking.get("keys"), by),
            weight=positive("weight", asking.get("weight", 1.0), "1 is the usual weight, 4 asks for half the noise"),
            name=_name(asking.get("name"), [*what, *(["by", *by] if by else [])]),
            rows_per_group=None if rows is None else whole("rows_per_group", rows),
            groups_per_person=None if groups is None else whole("groups_per_person", groups),
            terms=tuple(named.values()),
            where=() if where is None else (unwrapped(where),),
            within=None if asking.get("within") is None else Within.of(asking["within"]),
            said=texts(asking),
        )

    @property
    def size(self) -> float:
        """The size of the noise that the weight asks for, relative to the other questions'."""
        return float(self.weight**-0.5)

    @property
    def groups(self) -> str:
        """The groups, and which rows count, in words; nothing where there are none and all do."""
        by = f" by {', '.join(map(_said, self.by, self.terms))}" if self.by else ""
        return by + (f" where {printable(str(self.condition))}" if self.where else "")

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


def spelled_out(maker: Maker) -> Maker:
    """The maker of a question, with the keywords of ``Asking`` one by one in the signature that ``help`` shows."""
    given = inspect.signature(maker)
    own = [p for p in given.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    defaults = {"by": (), "weight": 1.0}
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=annotation)
        for name, annotation in get_type_hints(Asking).items()
    ]
    maker.__signature__ = given.replace(parameters=[*own, *common])  # type: ignore[attr-defined]
    return maker


def asking(entry: Mapping[str, Any]) -> Asking:
    """The keywords in an entry of a plan file (plain values)."""
    named = {name: RENAMED.get(name, name) for name in Asking.__annotations__}
    keywords: Any = {name: entry[key] for name, key in named.items() if key in entry}
    return cast(Asking, keywords)


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
