"""What can be asked of a table: counts, sums and means, for everybody or by group."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tightrope.errors import PlanError
from tightrope.numerics.checks import finite, positive, whole

Kind = Literal["count", "sum", "mean"]
Keys = tuple[tuple[object, ...], ...]
RESERVED = ("value", "lower", "upper")
"""Names of the columns of an answer: no key may be called so."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question; made by ``count``, ``sum`` and ``mean``, which check it.

    ``keys=None`` with ``by``: the groups are discovered. ``rows_per_group`` and ``groups_per_person`` override the
    session's bounds for this question.
    """

    kind: Kind
    column: str | None
    between: tuple[float, float] | None
    by: tuple[str, ...]
    keys: Keys | None
    weight: float
    name: str
    rows_per_group: int | None = None
    groups_per_person: int | None = None

    def __str__(self) -> str:
        groups = f" by {', '.join(self.by)}" if self.by else ""
        if self.kind == "count":
            return f"number of rows{groups}"
        low, high = self.between or (0.0, 0.0)
        return f"{self.kind} of {self.column} between {low:g} and {high:g}{groups}"


def count(
    *,
    by: str | Sequence[str] = (),
    keys: object = None,
    weight: float = 1.0,
    name: str | None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
) -> Question:
    """How many rows there are, by the groups of ``by``.

    ``keys`` lists the groups (values of one column, tuples of several, or column → values for every combination);
    left out, they are discovered. ``weight=4`` asks for half the noise of weight 1, to the nearest size that is used.
    Raises ``PlanError`` naming what is wrong.

    >>> count(by="city").name
    'count_by_city'
    """
    return _question("count", None, None, by, (keys, weight, name), (rows_per_group, groups_per_person))


def sum(
    column: str,
    *,
    between: tuple[float, float],
    by: str | Sequence[str] = (),
    keys: object = None,
    weight: float = 1.0,
    name: str | None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
) -> Question:
    """The sum of a column, each value clamped to ``between`` (required: it bounds what one row can change).

    >>> str(sum("income", between=(0, 200_000)))
    'sum of income between 0 and 200000'
    """
    return _question("sum", column, between, by, (keys, weight, name), (rows_per_group, groups_per_person))


def mean(
    column: str,
    *,
    between: tuple[float, float],
    by: str | Sequence[str] = (),
    keys: object = None,
    weight: float = 1.0,
    name: str | None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
) -> Question:
    """The mean of a column, each value clamped to ``between``; a noisy centred sum over a noisy count, charged jointly.

    >>> mean("age", between=(0, 120), by=["city", "sex"]).name
    'mean_age_by_city_sex'
    """
    return _question("mean", column, between, by, (keys, weight, name), (rows_per_group, groups_per_person))


def _question(
    kind: Kind,
    column: str | None,
    between: object,
    by: str | Sequence[str],
    labels: tuple[object, float, str | None],
    bounds: tuple[int | None, int | None],
) -> Question:
    keys, weight, name = labels
    columns = _columns(by)
    if kind != "count" and not (isinstance(column, str) and column):
        raise PlanError("column", column, "the name of a column", f"say tr.{kind}('income', between=(0, 200_000))")
    rows, groups = (
        None if b is None else whole(n, b) for n, b in zip(("rows_per_group", "groups_per_person"), bounds, strict=True)
    )
    return Question(
        kind,
        column,
        None if kind == "count" else _between(between),
        columns,
        _keys(keys, columns),
        positive("weight", weight, "1 is the usual weight, 4 asks for half the noise"),
        _name(name, kind, column, columns),
        rows,
        groups,
    )


def _columns(by: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(by, (str, list, tuple)):
        raise PlanError("by", by, "a column name or a list of them")
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not all(isinstance(column, str) and column for column in columns):
        raise PlanError("by", by, "a column name or a list of them")
    if len(set(columns)) < len(columns):
        raise PlanError("by", by, "different columns", "each column can be named once")
    for column in columns:
        if column in RESERVED:
            raise PlanError("by", column, f"not one of {RESERVED}", "answers use these names; rename the column")
    return columns


def _between(between: object) -> tuple[float, float]:
    remedy = "say between=(lowest, highest), from what is publicly known and not from the data"
    if not isinstance(between, (tuple, list)) or len(between) != 2:
        raise PlanError("between", between, "a pair of numbers", remedy)
    low, high = finite("between[0]", between[0], remedy), finite("between[1]", between[1], remedy)
    if not low < high:
        raise PlanError("between", between, "a pair (lowest, highest) with lowest < highest", remedy)
    return low, high


def _keys(keys: object, by: tuple[str, ...]) -> Keys | None:
    if keys is None:
        return None
    if not by:
        raise PlanError("keys", keys, "left out when by= is", "say by= which column they are of")
    if isinstance(keys, Mapping):
        return _product(keys, by)
    if isinstance(keys, str) or not isinstance(keys, (list, tuple, range, set, frozenset)) or len(keys) == 0:
        raise PlanError("keys", keys, "a list with at least one key", "leave it out to discover the keys")
    listed = [key if isinstance(key, tuple) else tuple(key) if isinstance(key, list) else (key,) for key in keys]
    for key in listed:
        if len(key) != len(by):
            raise PlanError("keys", key, f"one value for each of {list(by)}")
    return tuple(dict.fromkeys(listed))


def _product(keys: Mapping[object, object], by: tuple[str, ...]) -> Keys:
    if set(keys) != set(by):
        raise PlanError("keys", list(keys), f"values for exactly the columns {list(by)}")
    return tuple(dict.fromkeys(itertools.product(*(_values(keys[column]) for column in by))))


def _values(values: object) -> list[object]:
    if isinstance(values, str) or not isinstance(values, (list, tuple, range)) or len(values) == 0:
        raise PlanError("keys", values, "a list with at least one value")
    return list(values)


def _name(name: str | None, kind: str, column: str | None, by: tuple[str, ...]) -> str:
    if name is None:
        return "_".join([part for part in (kind, column) if part] + (["by", *by] if by else []))
    if not isinstance(name, str) or not name.strip():
        raise PlanError("name", name, "a non-empty text")
    return name
