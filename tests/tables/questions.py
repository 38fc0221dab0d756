"""Short spellings for requests."""

from __future__ import annotations

from decimal import Decimal

from tightrope.tables import ContributionBounds, FixedPoint, Measure, Request

ROW_IS_PERSON = ContributionBounds(None, 1, 1, 1)
COUNT = Measure("rows", None, None)


def mean(column: str, lower: float = 0, upper: float = 10, step: str = "1", center: int = 0) -> tuple[Measure, Measure]:
    return Measure("usable", column, None), Measure("sum", column, FixedPoint(lower, upper, Decimal(step), center))


def ask(
    *by: str,
    keys: list[tuple[object, ...]] | None = None,
    bounds: ContributionBounds = ROW_IS_PERSON,
    measures: tuple[Measure, ...] = (COUNT,),
) -> Request:
    return Request(by, None if keys is None else tuple(keys), bounds, measures)


def per_person(rows: int = 3, in_group: int | None = None, groups: int | None = None) -> ContributionBounds:
    return ContributionBounds(
        "person", rows, rows if in_group is None else in_group, rows if groups is None else groups
    )
