"""Steps, brackets and ways to account in words: the same for the terminal and for the page."""

from __future__ import annotations

from tightrope.documents.account import DeltaBracket, EpsilonBracket, Way
from tightrope.documents.escaping import printable
from tightrope.documents.numbers import DOWN, MISSING, NEAREST, UP, percent, significant
from tightrope.documents.steps import Step

STEP_COLUMNS = ("mechanism", "parameters", "each run sees", "erased", "count")
WAY_COLUMNS = ("way", "what it is", "epsilon", "total variation")
WHO = {
    "poisson": "one example is added or removed",
    "subset": "one example is replaced: the clipped sum moves by up to twice the clip norm",
}
"""Neighbours of a training run, by the way of sampling."""


def digits(value: float | None, count: int, rounding: str) -> str:
    """The number with so many digits; None: there is no bound."""
    return "∞ (no bound)" if value is None else significant(value, count, rounding)


def relative_width(width: float | None) -> str:
    """How wide a bracket is, relative to its upper end; None where only that is infinite.

    >>> relative_width(1e-3), relative_width(0.0)
    ('1e-03', '0')
    """
    return MISSING if width is None else f"{width:.0e}" if width else "0"


def step_line(step: Step) -> list[str]:
    """A step: mechanism, parameters, sample, erasure, runs."""
    parameters = ", ".join(f"{name} {_typed(value)}" for name, value in step.parameters.items())
    erased = MISSING if step.erase is None else percent(step.erase)
    # Which records take part in a run.
    if step.subset is not None:
        sample = "{:,} of {:,}".format(*step.subset)
    else:
        sample = "everybody" if step.poisson_rate is None else f"each with chance {step.poisson_rate:g}"
    return [step.mechanism, printable(parameters), sample, erased, f"{step.count:,}"]


def _typed(value: object) -> str:
    """A parameter as in the file: lists in square brackets."""
    return f"[{', '.join(map(_typed, value))}]" if isinstance(value, tuple) else str(value)


def bound_line(given: float, safe: float | None, row: EpsilonBracket | DeltaBracket) -> list[str]:
    """The number rounded to the private side, and its bracket rounded outwards."""
    bracket = f"{digits(row.lower, 12, DOWN)} … {digits(row.upper, 12, UP)}"
    return [f"{given:g}", digits(safe, 6, UP), bracket, relative_width(row.relative_width)]


def way_line(way: Way) -> list[str]:
    """Bounds are rounded up, the limit to the nearest."""
    rounding = NEAREST if "not a bound" in way.statement else UP
    epsilon = "∞" if way.epsilon is None else significant(way.epsilon, 6, rounding)
    return [way.name, way.statement, epsilon, significant(way.total_variation, 6, rounding)]
