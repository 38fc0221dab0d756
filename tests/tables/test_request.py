"""Requests check themselves; fixed point is the same arithmetic in Python and in the engine, bit for bit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.tables.questions import COUNT
from tightrope.errors import InputError
from tightrope.tables import ContributionBounds, Factor, FixedPoint, FixedProduct, Measure, Request
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.bounding import fixed_point_units, fixed_product_units
from tightrope.tables.engine_calls import load_library

NAN, INF = float("nan"), float("inf")
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
STEPS = st.one_of(
    st.integers(-12, 6).map(lambda e: Decimal(10) ** e),
    st.decimals(min_value="1e-9", max_value="1e9", places=9).filter(bool),
)
BACKEND = open_connection()


@st.composite
def fixed_points(draw: st.DrawFn) -> FixedPoint:
    lower, upper = sorted(draw(st.tuples(FINITE, FINITE)))
    step = draw(STEPS)
    assume(lower < upper and max(abs(lower), abs(upper)) / float(step) < 2.0**60)
    return FixedPoint(lower, upper, step, draw(st.integers(-(2**60), 2**60)))


def near(bound: float) -> list[float]:
    return [bound, math.nextafter(bound, INF), math.nextafter(bound, -INF)]


@settings(max_examples=150, deadline=None)
@given(fixed_points(), st.lists(st.floats(allow_nan=False), max_size=20))
def test_python_and_engine_round_to_the_same_integer(fixed_point, values):
    halves = [(k + 0.5) * float(fixed_point.step) for k in range(-3, 3)]
    xs = [*values, *near(fixed_point.lower), *near(fixed_point.upper), *halves, INF, -INF, 0.0, -0.0]
    table = load_library("ibis").memtable(pa.table({"x": xs}))
    answer = BACKEND.to_pyarrow(table.select(units=fixed_point_units(table["x"], fixed_point)))["units"].to_pylist()
    assert answer == [fixed_point.to_units(x) for x in xs]


@given(fixed_points(), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_fixed_point_is_monotone_and_within_the_end_points(fixed_point, x, y):
    low, high = sorted((x, y))
    ends = fixed_point.to_units(fixed_point.lower), fixed_point.to_units(fixed_point.upper)
    assert ends[0] <= fixed_point.to_units(low) <= fixed_point.to_units(high) <= ends[1]


@given(fixed_points(), FINITE)
def test_fixed_point_is_within_half_a_step(fixed_point, x):
    clipped = Fraction(min(max(x, fixed_point.lower), fixed_point.upper))
    step = Fraction(float(fixed_point.step))
    error = abs((fixed_point.to_units(x) + fixed_point.center) * step - clipped)
    assert error <= step / 2 + abs(clipped) * Fraction(2, 2**52) + step * Fraction(1, 2**52)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lower": NAN}, "lower=nan"),
        ({"upper": INF}, "upper=inf"),
        ({"lower": 10, "upper": 10}, "above lower=10"),
        ({"step": Decimal(0)}, "step=Decimal"),
        ({"step": Decimal("NaN")}, "step=Decimal"),
        ({"step": Decimal("1e-400")}, "finite number > 0"),
        ({"step": Decimal("1e-300")}, "below 2\\*\\*62"),
        ({"step": Decimal("1e-18")}, "below 2\\*\\*62"),
        ({"center": 0.5}, "center=0.5"),
        ({"center": 2**63}, "below 2\\*\\*62"),
    ],
)
def test_fixed_points_that_are_refused(change, says):
    with pytest.raises(InputError, match=says):
        FixedPoint(**({"lower": 0.0, "upper": 10.0, "step": Decimal(1), "center": 0} | change))


def test_nan_has_no_units():
    with pytest.raises(InputError, match="x=nan"):
        FixedPoint(0, 1, Decimal(1), 0).to_units(NAN)


@pytest.mark.parametrize(
    "bounds", [("p", 0, 1, 1), ("p", 1, -1, 1), ("p", 1, 1, 1.5), ("p", True, 1, 1), (None, 2, 1, 1)]
)
def test_bounds_that_are_refused(bounds):
    with pytest.raises(InputError):
        ContributionBounds(*bounds)


@pytest.mark.parametrize(
    ("by", "keys", "measures"),
    [
        (("a", "a"), None, (COUNT,)),
        (("a",), (), (COUNT,)),
        (("a",), (("x", "y"),), (COUNT,)),
        (("a",), ("x",), (COUNT,)),
        (("a",), None, ()),
        (("a",), None, (COUNT, COUNT)),
    ],
)
def test_requests_that_are_refused(by, keys, measures):
    with pytest.raises(InputError):
        Request(by, keys, ContributionBounds(None, 1, 1, 1), measures)


def test_a_measure_with_fixed_point_needs_a_column():
    with pytest.raises(InputError, match="column=None"):
        Measure("sum", None, FixedPoint(0, 1, Decimal(1), 0))


MODERATE = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)


@st.composite
def factors(draw: st.DrawFn) -> Factor:
    lower, upper = sorted(draw(st.tuples(MODERATE, MODERATE)))
    assume(upper - lower > 1e-3)
    return Factor(lower, upper, draw(st.sampled_from([lower, lower + (upper - lower) / 2, upper])))


@st.composite
def fixed_products(draw: st.DrawFn) -> FixedProduct:
    many = draw(st.integers(1, 2))
    squared = draw(st.booleans()) and many == 1
    center = draw(st.integers(-(2**40), 2**40))
    return FixedProduct(tuple(draw(factors()) for _ in range(many)), draw(st.sampled_from(SMALL)), center, squared)


SMALL = [Decimal("0.1"), Decimal("0.03"), Decimal(7)]
PAIRS = st.lists(st.tuples(st.floats(allow_nan=False), st.floats(allow_nan=False)), min_size=1, max_size=20)


@settings(max_examples=150, deadline=None)
@given(fixed_products(), PAIRS)
def test_products_are_the_same_integers_in_python_and_engine_and_within_their_extremes(fixed, pairs):
    corners = [
        (x, y)
        for x in (-INF, *fixed.factors[0].factor_range, INF)
        for y in (-INF, *fixed.factors[-1].factor_range, INF)
    ]
    xs, ys = zip(*pairs, *corners, strict=True)
    table = load_library("ibis").memtable(pa.table({"x": xs, "y": ys}))
    answer = BACKEND.to_pyarrow(table.select(units=fixed_product_units([table["x"], table["y"]], fixed)))[
        "units"
    ].to_pylist()
    expected = [fixed.to_units(*pair[: len(fixed.factors)]) for pair in zip(xs, ys, strict=True)]
    assert answer == expected
    least, most = fixed.units_range
    assert least <= min(expected) and max(expected) <= most
    assert fixed.squared or {least, most} <= set(expected)


def test_a_square_is_least_in_the_middle():
    fixed = FixedProduct((Factor(0.0, 10.0, 5.0),), Decimal(1), center=12, squared=True)
    assert (fixed.units_range, fixed.to_units(5), fixed.to_units(0)) == ((-12, 13), -12, 13)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FixedProduct((), Decimal(1)),
        lambda: FixedProduct((Factor(0, 1, 0.5),) * 2, Decimal(1), squared=True),
        lambda: FixedProduct((Factor(0, 1e9, 0.0),) * 2, Decimal("0.01")),
        lambda: FixedProduct((Factor(0, 1, 0.5),), Decimal(0)),
        lambda: Factor(0, 1, 2.0),
        lambda: Factor(1, 1, 1.0),
        lambda: Factor(0, 1, 0.5).evaluate_at(NAN),
        lambda: Measure("m", "x", FixedProduct((Factor(0, 1, 0.5),) * 2, Decimal(1))),
        lambda: Measure("m", None, None, "y"),
    ],
)
def test_products_that_cannot_be_are_refused(make):
    with pytest.raises(InputError):
        make()
