"""Sums of products over the rows that have both values: the same integers in every engine."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from tests.tables.questions import COUNT, ask, per_person
from tightrope.errors import SchemaError
from tightrope.tables import Factor, FixedPoint, FixedProduct, Measure

NAN, INF = float("nan"), float("inf")
X, Y = Factor(0.0, 10.0, 5.0), Factor(-1.0, 1.0, 0.0)
STEP = Decimal("0.001")
SQUARE = FixedProduct((X,), STEP, center=12_500, squared=True)
PRODUCT = FixedProduct((X, Y), STEP)
MEASURES = (
    COUNT,
    Measure("both", "x", None, "y"),
    Measure("x", "x", FixedProduct((X,), STEP), "y"),
    Measure("y", "y", FixedProduct((Y,), STEP), "x"),
    Measure("plain", "x", FixedPoint(0.0, 10.0, STEP, 0), "y"),
    Measure("xx", "x", SQUARE, "y"),
    Measure("alone", "x", SQUARE),
    Measure("xy", "x", PRODUCT, "y"),
)
COLUMNS = {
    "x": [1.0, None, NAN, INF, 3.3, -7.0, 9.75, 2.5],
    "y": [0.3, 0.5, 0.1, -INF, None, 0.7, NAN, -0.25],
    "k": ["a", "a", "a", "a", "a", "b", "b", "b"],
    "person": [1, 2, 3, 4, 5, 6, 7, 8],
}
PAIRS = {"a": [(1.0, 0.3), (INF, -INF)], "b": [(-7.0, 0.7), (2.5, -0.25)]}
USABLE = {"a": [1.0, INF, 3.3], "b": [-7.0, 9.75, 2.5]}


def expected(key: str) -> tuple[int, ...]:
    pairs = PAIRS[key]
    x, y = (FixedProduct((factor,), STEP) for factor in (X, Y))
    return (
        COLUMNS["k"].count(key),
        len(pairs),
        sum(x.to_units(a) for a, _ in pairs),
        sum(y.to_units(b) for _, b in pairs),
        sum(FixedPoint(0.0, 10.0, STEP, 0).to_units(a) for a, _ in pairs),
        sum(SQUARE.to_units(a) for a, _ in pairs),
        sum(SQUARE.to_units(a) for a in USABLE[key]),
        sum(PRODUCT.to_units(*pair) for pair in pairs),
    )


@pytest.mark.parametrize("bounded", [False, True])
def test_a_row_counts_where_both_values_are_there(opened, bounded):
    bounds = {"bounds": per_person(2)} if bounded else {}
    answer = opened(pa.table(COLUMNS)).collect_totals(ask("k", measures=MEASURES, **bounds))
    found = dict(zip(answer.keys, zip(*answer.values.values(), strict=True), strict=True))
    assert found == {(key,): expected(key) for key in PAIRS}


def test_whole_numbers_and_truth_values_are_numbers(opened):
    table = opened(pa.table({"x": [1, 2, 30], "y": [True, False, None]}))
    (both, product) = table.collect_totals(ask(measures=MEASURES[1:2] + MEASURES[-1:])).values.values()
    assert (both, product) == ((2,), (PRODUCT.to_units(1, 1) + PRODUCT.to_units(2, 0),))


def test_a_second_column_is_checked_as_the_first_is(opened):
    table = opened(pa.table({"x": [1.0], "y": ["a"]}))
    with pytest.raises(SchemaError, match="'y'"):
        table.collect_totals(ask(measures=MEASURES[1:2]))


def test_values_too_small_for_a_product_are_zero(opened):
    """A database may refuse what a double cannot hold: one person's value would stop everybody's answer."""
    tiny, wide = Factor(-1.0, 1.0, 0.0), Factor(-1e50, 1e50, 0.0)
    large = Decimal(1).scaleb(40)
    measures = (
        Measure("square", "x", FixedProduct((tiny,), STEP, squared=True)),
        Measure("product", "x", FixedProduct((tiny, wide), large), "y"),
        Measure("total", "y", FixedProduct((wide,), large)),
    )
    table = opened(pa.table({"x": [5e-324, -1e-200, 1.0], "y": [1e-300, 5e-324, 1e50]}))
    found = table.collect_totals(ask(measures=measures)).values
    assert found == {"square": (1000,), "product": (10**10,), "total": (10**10,)}
