"""Vectors of moments: sums of centred values, of their squares and products, over the rows that have all of them."""

from __future__ import annotations

import math
from decimal import Decimal

from tightrope.certificates.printable import printable
from tightrope.design.allocation.units import Spend, eighths
from tightrope.engines.expressions.terms import Term
from tightrope.engines.request import Factor, FixedProduct, Measure
from tightrope.errors import PlanError
from tightrope.release.questions.vector import Vector

KEPT_DIGITS = 11
"""Decimal digits of the largest value that are kept: a row adds less than 2⁴⁰, as far as noise is stretched."""
NARROWEST, WIDEST = 1e-100, 1e100
"""Ranges whose squares, and quotients of these, a double holds with room to spare."""


def factor(name: str, between: tuple[float, float]) -> Factor:
    """Values counted from the middle of their range; raises ``PlanError`` where squares leave the doubles."""
    low, high = between
    if not (max(abs(low), abs(high)) <= WIDEST and high - low >= NARROWEST):
        expected = f"a range from {NARROWEST:g} wide, within {WIDEST:g} of zero"
        raise PlanError(name, between, expected, "measure in other units, so that the numbers are about one")
    return Factor(low, high, low + (high - low) / 2)


def reach(of: Factor) -> float:
    """How far a centred value lies from zero at most."""
    return max(map(abs, of.ends))


def usable_rows(name: str, column: Term, beside: Term | None, size: float) -> Vector:
    """The number of rows in which no value is NULL or NaN."""
    return Vector(Measure(name, column, None, beside), Spend("usable rows", eighths(size), True), 1)


def total(name: str, column: Term, of: Factor, beside: Term | None, size: float) -> Vector:
    """The sum of centred values."""
    fixed = FixedProduct((of,), _step(reach(of)))
    return _vector(f"sum of {printable(str(column))}", Measure(name, column, fixed, beside), size)


def squares(name: str, column: Term, of: Factor, beside: Term | None, size: float) -> Vector:
    """The sum of their squares, each less half of what it can be: half the sensitivity."""
    half = reach(of) ** 2 / 2
    step = _step(half)
    fixed = FixedProduct((of,), step, centre=math.floor(half / float(step) + 0.5), squared=True)
    return _vector(f"sum of squares of {printable(str(column))}", Measure(name, column, fixed, beside), size)


def products(name: str, columns: tuple[Term, Term], of: tuple[Factor, Factor], size: float) -> Vector:
    """The sum of products of two centred values."""
    column, beside = columns
    fixed = FixedProduct(of, _step(reach(of[0]) * reach(of[1])))
    statistic = f"sum of products of {printable(str(column))} and {printable(str(beside))}"
    return _vector(statistic, Measure(name, column, fixed, beside), size)


def _step(largest: float) -> Decimal:
    """A power of ten of which the largest value has up to 10¹²."""
    return Decimal(1).scaleb(math.floor(math.log10(largest)) - KEPT_DIGITS)


def _vector(statistic: str, measure: Measure, size: float) -> Vector:
    least, most = measure.fixed_point.extremes if measure.fixed_point else (0, 1)
    return Vector(measure, Spend(statistic, eighths(size), False), max(abs(least), abs(most), 1))
