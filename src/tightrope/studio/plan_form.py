"""What the page says, as frozen types: no key but these, and no expression anywhere."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, singledispatch
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from tightrope.documents.budget import decimal
from tightrope.documents.document import Counted, Part
from tightrope.documents.reader import Reader
from tightrope.errors import InputError
from tightrope.release.plan_file import PLAN_FILE, PlanFile, load, parsed
from tightrope.release.plan_sections import DATABASES, quoted
from tightrope.tables import Column, open_source

WISHES = Reader("what the page says", "load the page again")
Plain = Annotated[str, Meta(min_length=1, max_length=1_000)]
Many = 200
"""So many questions, groups or columns at most."""
Said = Literal["attack_success", "total_variation", "epsilon"]
SAID: tuple[Said, ...] = ("attack_success", "total_variation", "epsilon")


class Who(Part, frozen=True, kw_only=True):
    """Who a person is: a column and the rows of one person that count, or each row; neither before it is said."""

    column: Plain | None = None
    each_row: bool = False
    rows: Counted | None = None
    rows_per_group: Counted | None = None
    groups: Counted | None = None
    means: Plain | None = None


class Promise(Part, frozen=True, kw_only=True):
    """A promise as it is said; none is said where the plan's own is kept."""

    said: Said
    value: Decimal
    delta: Decimal

    def __post_init__(self) -> None:
        decimal("value", self.value)
        decimal("delta", self.delta)

    def keeps(self, other: Promise) -> bool:
        """Whether what keeps this promise keeps the other one, because it is as strict or stricter."""
        return self.said == other.said and self.value <= other.value and self.delta <= other.delta


class Wish(Part, frozen=True, kw_only=True):
    """One question: chosen from the schema, or (``kept``) one of those of the plan that was opened, by its number."""

    kept: int | None = None
    kind: Plain | None = None
    column: Plain | None = None
    between: tuple[float, float] | None = None
    q: float | None = None
    width: float | None = None
    by: Annotated[tuple[Plain, ...], Meta(max_length=4)] = ()
    keys: Annotated[tuple[str | int | bool, ...], Meta(max_length=Many)] = ()
    weight: float | None = None


class Wishes(Part, frozen=True, kw_only=True):
    """All that the page says."""

    title: Plain | None = None
    who: Who
    promise: Promise | None = None
    share: Decimal | None = None
    questions: Annotated[tuple[Wish, ...], Meta(max_length=Many)] = ()
    types: Annotated[dict[Plain, Plain], Meta(max_length=5_000)] = field(default_factory=dict)
    expected_rows: Counted | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            decimal("share", self.share)


class Agreed(Part, frozen=True, kw_only=True):
    """That somebody read what a release spends, and wants it."""

    ticket: Plain
    agreed: bool

    def __post_init__(self) -> None:
        if not self.agreed:
            raise InputError("agreed", self.agreed, "true", "read what it spends, and agree to it")


# Tables as the text of a TOML file: what ``tomllib`` reads back is what was written.

BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(tables: Mapping[str, Any]) -> str:
    """The text; sections in the order of the keys, lists of tables as ``[[double]]`` ones.

    >>> print(toml_text({"title": "a", "budget": {"epsilon": Decimal("0.1")}, "question": [{"by": ["x", "y"]}]}))
    title = "a"
    <BLANKLINE>
    [budget]
    epsilon = 0.1
    <BLANKLINE>
    [[question]]
    by = ["x", "y"]
    <BLANKLINE>
    """
    plain = {key: value for key, value in tables.items() if not (_is_table(value) or _are_tables(value))}
    parts = [_lines(plain)] if plain else []
    parts += [f"[{_key(key)}]\n{_lines(value)}" for key, value in tables.items() if _is_table(value)]
    parts += [f"[[{_key(key)}]]\n{_lines(one)}" for key, value in tables.items() if _are_tables(value) for one in value]
    return "\n".join(parts)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items())


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else quoted(key)


@singledispatch
def _value(value: object) -> str:
    raise TypeError(f"no TOML value: {type(value).__name__}")


@_value.register
def _(value: bool) -> str:
    return "true" if value else "false"


@_value.register(int)
@_value.register(float)
@_value.register(Decimal)
def _(value: object) -> str:
    return str(value)


@_value.register
def _(value: str) -> str:
    return quoted(value)


@_value.register(datetime.date)
@_value.register(datetime.time)
def _(value: datetime.date | datetime.time) -> str:
    return value.isoformat()


@_value.register(list)
@_value.register(tuple)
def _(value: Sequence[object]) -> str:
    return f"[{', '.join(map(_value, value))}]"


@_value.register(dict)
def _(value: Mapping[str, object]) -> str:
    return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())} }}"


# What the studio was opened on: the tables of a plan, given or begun for a file of data, and where it is saved.

USUAL = Promise(said="attack_success", value=Decimal("0.6"), delta=Decimal("1e-8"))
COSTS = Decimal("0.02")
"""The part of the budget that counts what bounds left out, as ``tightrope init`` has it."""


@dataclass(frozen=True)
class Opened:
    """A plan's ``tables`` as its file has them, the ``columns`` of its table, and the file ``out`` to be saved.

    ``given``: whether there was a plan, whose own questions can then be kept. Nothing here is a value of the data.
    """

    tables: Mapping[str, Any]
    out: Path
    columns: tuple[Column, ...]
    given: bool

    @property
    def typeless(self) -> bool:
        """Whether the types of columns have to be declared: it is a CSV file."""
        return str(self.tables["source"].get("path", "")).lower().endswith(".csv")

    def file(self, tables: Mapping[str, Any]) -> PlanFile:
        """The plan that these tables are, as if it were saved."""
        return PlanFile(parsed(tables), self.out.parent)

    @cached_property
    def question_words(self) -> tuple[str, ...]:
        """The plan's own questions, in words."""
        return tuple(map(str, parsed(self.tables).questions())) if self.given else ()

    @cached_property
    def wishes(self) -> Wishes:
        """What the page shows at first: what the plan says, or one count under a usual promise of nobody yet."""
        if not self.given:
            return Wishes(
                title=self.tables["title"], who=Who(), promise=USUAL, questions=(Wish(kind="count"),), share=Decimal(1)
            )
        document = parsed(self.tables)
        person = document.person
        # The plan's promise where a slider can say it: not several points.
        budget = document.budget
        said = [name for name in SAID if getattr(budget, name, None) is not None]
        if len(said) != 1 or budget.points is not None or budget.delta is None:
            promise = None
        else:
            promise = Promise(said=said[0], value=getattr(budget, said[0]), delta=budget.delta)
        return Wishes(
            title=document.title,
            who=Who(
                column=person.column,
                each_row=person.column is None,
                rows=person.rows,
                rows_per_group=person.rows_per_group,
                groups=person.groups,
                means=person.means,
            ),
            promise=promise,
            share=document.budget.share,
            questions=tuple(Wish(kept=number) for number in range(len(document.question))),
            types=document.source.types or {},
            expected_rows=document.expected_rows,
        )

    @property
    def with_likely_unit(self) -> Wishes:
        """The same with each row a person where nobody said who is one: to be computed before it is said."""
        unsaid = self.wishes.who == Who()
        return replace(self.wishes, who=Who(each_row=True)) if unsaid else self.wishes


def opened(given: str, out: str | None, *, table: str | None = None) -> Opened:
    """A plan (``.toml``) or a table opened: its schema is read, never a value. Raises ``InputError``."""
    if given.lower().endswith(".toml"):
        if table is not None:
            raise InputError("table", table, "left out beside a plan", "the plan names its table")
        path = Path(given)
        file = load(path)
        target = path.with_name(f"{path.stem}-studio.toml") if out is None else Path(out)
        if target.absolute().parent != path.absolute().parent:
            raise InputError("out", str(target), f"a file in {path.parent}", "paths in a plan are relative to it")
        return Opened(PLAN_FILE.tables(path), target, file.session().schema.columns, given=True)
    data_out = Path(out or "plan.toml")
    columns = open_source(given, table=table).schema.columns
    in_database = given.startswith(DATABASES)
    named = {} if table is None else {"table": table}
    source = {"postgres": given, **named} if in_database else {"path": _relative(given, data_out), **named}
    title = (table or "table") if in_database else PurePath(given).stem
    return Opened({"title": title, "source": source, "budget": {"costs": COSTS}}, data_out, columns, given=False)


def _relative(data: str, plan: Path) -> str:
    """The path of the data as the plan will have it: relative to the plan, or absolute on another drive."""
    try:
        return Path(os.path.relpath(data, plan.parent)).as_posix()
    except ValueError:
        return Path(data).absolute().as_posix()
