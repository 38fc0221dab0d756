"""The form of the page, as frozen types: unknown keys and expressions are rejected; and plans as TOML.

``toml_text`` keeps each list on one line, as people write plans, which ``tomli-w`` cannot.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from tightrope.documents.budget import exact_decimal
from tightrope.documents.document import Counted, Part
from tightrope.documents.escaping import toml_value
from tightrope.documents.plan_ledger import PLAN_FILE
from tightrope.documents.reader import Reader
from tightrope.errors import InputError
from tightrope.release.plan_file import PlanFile, load_plan_file, parse_plan_document
from tightrope.release.plan_sections import DATABASE_PREFIXES
from tightrope.tables import Column, open_source

WISHES = Reader("what the page says", "load the page again")
Plain = Annotated[str, Meta(min_length=1, max_length=1_000)]
Many = 200
"""Maximum number of questions, groups or columns."""
Said = Literal["attack_success", "total_variation", "epsilon"]
SAID: tuple[Said, ...] = ("attack_success", "total_variation", "epsilon")


class PrivacyUnitForm(Part, frozen=True, kw_only=True):
    """The privacy unit: a column with contribution bounds, or each row; both unset until the user chooses."""

    column: Plain | None = None
    each_row: bool = False
    max_rows: Counted | None = None
    max_rows_per_group: Counted | None = None
    max_groups: Counted | None = None
    noun: Plain | None = None


class PromiseForm(Part, frozen=True, kw_only=True):
    """A promise set with the sliders; absent if the plan's own promise is kept."""

    said: Said
    value: Decimal
    delta: Decimal

    def __post_init__(self) -> None:
        exact_decimal("value", self.value)
        exact_decimal("delta", self.delta)

    def is_at_least_as_strict(self, other: PromiseForm) -> bool:
        """Return whether this promise implies the other one, because it is at least as strict."""
        return self.said == other.said and self.value <= other.value and self.delta <= other.delta


class QuestionForm(Part, frozen=True, kw_only=True):
    """One question: built from the schema, or (``kept``) the index of a question of the opened plan."""

    kept: int | None = None
    kind: Plain | None = None
    column: Plain | None = None
    bounds: tuple[float, float] | None = None
    q: float | None = None
    width: float | None = None
    by: Annotated[tuple[Plain, ...], Meta(max_length=4)] = ()
    keys: Annotated[tuple[str | int | bool, ...], Meta(max_length=Many)] = ()
    weight: float | None = None


class PlanForm(Part, frozen=True, kw_only=True):
    """The complete form of the page."""

    title: Plain | None = None
    who: PrivacyUnitForm
    promise: PromiseForm | None = None
    budget_fraction: Decimal | None = None
    questions: Annotated[tuple[QuestionForm, ...], Meta(max_length=Many)] = ()
    types: Annotated[dict[Plain, Plain], Meta(max_length=5_000)] = field(default_factory=dict)
    expected_rows: Counted | None = None

    def __post_init__(self) -> None:
        if self.budget_fraction is not None:
            exact_decimal("budget_fraction", self.budget_fraction)


class ReleaseConsent(Part, frozen=True, kw_only=True):
    """The user's consent to a release after reading its cost."""

    ticket: Plain
    agreed: bool

    def __post_init__(self) -> None:
        if not self.agreed:
            raise InputError("agreed", self.agreed, "true", "read what it spends, and agree to it")


# Tables as the text of a TOML file: ``tomllib`` reads back exactly what was written.

BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(tables: Mapping[str, Any]) -> str:
    """Return the text; sections in the order of the keys, lists of tables as ``[[double]]`` ones.

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
    parts = [_table_lines(plain)] if plain else []
    parts += [f"[{_toml_key(key)}]\n{_table_lines(value)}" for key, value in tables.items() if _is_table(value)]
    parts += [
        f"[[{_toml_key(key)}]]\n{_table_lines(one)}"
        for key, value in tables.items()
        if _are_tables(value)
        for one in value
    ]
    return "\n".join(parts)


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _table_lines(table: Mapping[str, Any]) -> str:
    return "".join(f"{_toml_key(key)} = {_toml_value(value)}\n" for key, value in table.items())


def _toml_key(key: str) -> str:
    return key if BARE.fullmatch(key) else toml_value(key)


def _toml_value(value: Any) -> str:
    """Return a value on one line; raises ``KeyError`` for types that TOML lacks."""
    return _WRITERS[type(value)](value)


def _toml_list(values: Sequence[object]) -> str:
    return f"[{', '.join(map(_toml_value, values))}]"


_WRITERS: dict[type, Callable[[Any], str]] = {
    bool: toml_value,
    str: toml_value,
    int: str,
    float: str,
    Decimal: str,
    datetime.date: datetime.date.isoformat,
    datetime.time: datetime.time.isoformat,
    datetime.datetime: datetime.datetime.isoformat,
    list: _toml_list,
    tuple: _toml_list,
    dict: lambda table: (
        f"{{ {', '.join(f'{_toml_key(key)} = {_toml_value(inner)}' for key, inner in table.items())} }}"
    ),
}
"""Functions that write a value, by its type."""


# The opened input: the tables of a plan, given or started for a data file, and the path to save it.

USUAL = PromiseForm(said="attack_success", value=Decimal("0.6"), delta=Decimal("1e-8"))
COSTS = Decimal("0.02")
"""Fraction of the budget for the bias check, the same default as in ``tightrope init``."""


@dataclass(frozen=True)
class EditorState:
    """A plan's ``tables`` as in its file, the ``columns`` of its table, and the output path.

    ``has_plan``: True if a plan was opened, so that its own questions can be kept. Contains no data values.
    """

    tables: Mapping[str, Any]
    output_path: Path
    columns: tuple[Column, ...]
    has_plan: bool

    @property
    def needs_column_types(self) -> bool:
        """Return whether column types must be declared: only for CSV files."""
        return str(self.tables["source"].get("path", "")).lower().endswith(".csv")

    def to_plan_file(self, tables: Mapping[str, Any]) -> PlanFile:
        """Return the plan for these tables, as if it were saved."""
        return PlanFile(parse_plan_document(tables), self.output_path.parent)

    @cached_property
    def question_texts(self) -> tuple[str, ...]:
        """Return the plan's own questions, in words."""
        return tuple(map(str, parse_plan_document(self.tables).make_queries())) if self.has_plan else ()

    @cached_property
    def initial_form(self) -> PlanForm:
        """Return the initial form: the plan's values, or one count under a default promise without a privacy unit."""
        if not self.has_plan:
            return PlanForm(
                title=self.tables["title"],
                who=PrivacyUnitForm(),
                promise=USUAL,
                questions=(QuestionForm(kind="count"),),
                budget_fraction=Decimal(1),
            )
        document = parse_plan_document(self.tables)
        unit = document.privacy_unit
        # The plan's promise if a slider can express it: not several points.
        budget = document.budget
        said = [name for name in SAID if getattr(budget, name, None) is not None]
        if len(said) != 1 or budget.points is not None or budget.delta is None:
            promise = None
        else:
            promise = PromiseForm(said=said[0], value=getattr(budget, said[0]), delta=budget.delta)
        return PlanForm(
            title=document.title,
            who=PrivacyUnitForm(
                column=unit.column,
                each_row=unit.column is None,
                max_rows=unit.max_rows,
                max_rows_per_group=unit.max_rows_per_group,
                max_groups=unit.max_groups,
                noun=unit.noun,
            ),
            promise=promise,
            budget_fraction=document.budget.budget_fraction,
            questions=tuple(QuestionForm(kept=number) for number in range(len(document.question))),
            types=document.source.types or {},
            expected_rows=document.expected_rows,
        )

    @property
    def form_with_likely_unit(self) -> PlanForm:
        """Return the form with each row as the privacy unit if none is chosen, to start computing early."""
        unsaid = self.initial_form.who == PrivacyUnitForm()
        return replace(self.initial_form, who=PrivacyUnitForm(each_row=True)) if unsaid else self.initial_form


def open_editor_state(given: str, out: str | None, *, table: str | None = None) -> EditorState:
    """Open a plan (``.toml``) or a table: reads its schema, but no values. Raises ``InputError``."""
    if given.lower().endswith(".toml"):
        if table is not None:
            raise InputError("table", table, "left out with a plan", "the plan names its table")
        path = Path(given)
        file = load_plan_file(path)
        if file.document.marginals:
            text = "it has [[marginals]], which the editor cannot show; edit the plan in a text editor"
            raise InputError.from_text("plan", text)
        target = path.with_name(f"{path.stem}-studio.toml") if out is None else Path(out)
        if target.absolute().parent != path.absolute().parent:
            raise InputError("out", str(target), f"a file in {path.parent}", "paths in a plan are relative to it")
        return EditorState(PLAN_FILE.parse_toml(path), target, file.open_session().schema.columns, has_plan=True)
    data_out = Path(out or "plan.toml")
    columns = open_source(given, table=table).schema.columns
    if given.startswith(DATABASE_PREFIXES):
        source, title = {"postgres": given}, table or "table"
    else:
        try:
            path_text = Path(os.path.relpath(given, data_out.parent)).as_posix()
        except ValueError:  # the plan is on another drive
            path_text = Path(given).absolute().as_posix()
        source, title = {"path": path_text}, PurePath(given).stem
    if table is not None:
        source["table"] = table
    return EditorState(
        {"title": title, "source": source, "budget": {"bias_check": COSTS}}, data_out, columns, has_plan=False
    )
