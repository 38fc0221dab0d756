"""From what the page says to the tables of a plan file, which every number is computed from."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tightrope.certificates.printable import A_PERSON
from tightrope.engines import Column
from tightrope.errors import PlanError, SchemaError, listed, nearest
from tightrope.studio.offers import KINDS, TYPES, Kind
from tightrope.studio.opened import Opened
from tightrope.studio.wishes import Promise, Who, Wish, Wishes

FIRST, LAST = ("document", "version", "title", "description", "origin", "publisher", "date", "contact"), ("question",)
PROMISES = "epsilon", "delta", "attack_success", "points"


def drafted(opened: Opened, wishes: Wishes) -> dict[str, Any]:
    """The tables of the plan: those that were opened, with what the page says in place of theirs.

    Raises ``PlanError`` or ``SchemaError`` for what the schema or the plan does not have: the page chooses from names
    that are there, and nothing that it says is read as an expression.
    """
    own = opened.tables
    said = {
        "title": wishes.title,
        "expected_rows": wishes.expected_rows,
        "source": _source(opened, wishes),
        "person": _person(opened, wishes.who),
        "budget": _budget(own.get("budget", {}), wishes.promise, wishes.share),
        "question": _questions(opened, wishes),
    }
    tables = {name: value for name, value in {**own, **said}.items() if value is not None}
    order = sorted(tables, key=lambda name: (name not in FIRST, name in LAST))
    return {name: tables[name] for name in order}


def _source(opened: Opened, wishes: Wishes) -> dict[str, Any]:
    source = dict(opened.tables["source"])
    if not opened.typeless:
        return source
    for name, kind in wishes.types.items():
        _column(opened, name)
        if kind not in TYPES:
            raise PlanError("types", kind, f"one of {listed(TYPES)}", nearest(kind, TYPES))
    declared = {name: kind for name, kind in wishes.types.items() if kind != "text"}
    source.pop("types", None)
    return source | ({"types": declared} if declared else {})


def _person(opened: Opened, who: Who) -> dict[str, Any]:
    if (who.column is None) != who.each_row:
        expected = "a column that says whose row it is, or that each row is a person"
        raise PlanError("person", who.column, expected, "choose one of them under 1: all else follows from it")
    if who.column is None:
        said = {"each_row": True, "means": who.means}
    else:
        _column(opened, who.column)
        said = {name: getattr(who, name) for name in ("column", "rows", "rows_per_group", "groups", "means")}
    return {name: value for name, value in said.items() if value not in (None, A_PERSON)}


def _budget(own: Mapping[str, Any], promise: Promise | None, share: Decimal | None) -> dict[str, Any]:
    kept = {name: value for name, value in own.items() if promise is None or name not in PROMISES}
    kept = {name: value for name, value in kept.items() if name != "share"}
    part = {} if share in (None, Decimal(1)) else {"share": share}
    if promise is None:
        return kept | part
    if promise.said == "total_variation":  # a plan file says the same as the success of a guess: (1 + eta) / 2
        return {"attack_success": (1 + promise.value) / 2, "delta": promise.delta, **part, **kept}
    return {promise.said: promise.value, "delta": promise.delta, **part, **kept}


def _questions(opened: Opened, wishes: Wishes) -> list[dict[str, Any]]:
    if not wishes.questions:
        raise PlanError("question", None, "given, once or more", "add a question")
    return [_kept(opened, wish) if wish.kept is not None else _chosen(opened, wish) for wish in wishes.questions]


def _kept(opened: Opened, wish: Wish) -> dict[str, Any]:
    """A question of the plan that was opened, with another weight where one is said."""
    own = opened.tables.get("question", []) if opened.given else []
    if wish.kept is None or not 0 <= wish.kept < len(own):
        expected = f"the number of one of the plan's {len(own)} questions"
        raise PlanError("kept", wish.kept, expected, "load the page again")
    return dict(own[wish.kept]) | ({} if wish.weight is None else {"weight": wish.weight})


def _chosen(opened: Opened, wish: Wish) -> dict[str, Any]:
    kind = next((kind for kind in KINDS if kind.kind == wish.kind), None)
    if kind is None:
        raise PlanError("kind", wish.kind, f"one of {listed(tuple(kind.kind for kind in KINDS))}")
    said = {name: _field(opened, wish, name) for name in kind.fields}
    said |= {"by": [_column(opened, name) for name in wish.by], "keys": list(wish.keys), "weight": wish.weight}
    entry = {name: value for name, value in said.items() if value not in (None, [], 1.0)}
    return {"kind": kind.kind, **entry, **_named(kind, wish)}


def _field(opened: Opened, wish: Wish, name: str) -> Any:
    given = getattr(wish, name)
    if name == "column":
        return _column(opened, given or "")
    return list(given) if isinstance(given, tuple) else given


def _column(opened: Opened, name: str) -> str:
    """The name of a column that is there; how the table's own schema says it is not."""
    names = tuple(column.name for column in opened.columns)
    if name not in names:
        raise SchemaError("column", name, f"one of {listed(names)}", nearest(name, names))
    return name


def _named(kind: Kind, wish: Wish) -> dict[str, str]:
    """Quantiles of one column differ by their q: the name says which."""
    if kind.kind != "quantile" or wish.q is None:
        return {}
    what = "median" if wish.q == 0.5 else f"quantile_{wish.q:g}"
    return {"name": "_".join([what, wish.column or "", *(["by", *wish.by] if wish.by else [])])}


def plain_columns(columns: tuple[Column, ...]) -> list[dict[str, str]]:
    """Names and types: all that the page is told of a table."""
    return [{"name": column.name, "kind": column.kind} for column in columns]
