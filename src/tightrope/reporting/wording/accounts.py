"""Steps, brackets and accounting methods in words: the same for the terminal and for the page."""

from __future__ import annotations

from tightrope.documents.account import ComparisonAccount, DeltaBracket, EpsilonBracket
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import DOWN, MISSING, NEAREST, UP, percent_text, significant_text
from tightrope.documents.steps import Step

STEP_COLUMNS = ("mechanism", "parameters", "each run sees", "erased", "count")
WAY_COLUMNS = ("way", "what it is", "epsilon", "total variation")
WHO = {
    "poisson": "one example is added or removed",
    "subset": "one example is replaced: the clipped sum moves by up to twice the clip norm",
}
"""Neighbors of a training run, by sampling scheme."""


def bound_text(value: float | None, count: int, rounding: str) -> str:
    """Return the number with ``count`` digits; None means that there is no upper bound."""
    return "∞ (no bound)" if value is None else significant_text(value, count, rounding)


def relative_width(width: float | None) -> str:
    """Return the width of a bracket relative to its upper end; None if only the upper end is infinite.

    >>> relative_width(1e-3), relative_width(0.0)
    ('1e-03', '0')
    """
    return MISSING if width is None else f"{width:.0e}" if width else "0"


def step_line(step: Step) -> list[str]:
    """Return the columns of a step: mechanism, parameters, sample, erasure, runs."""
    parameters = ", ".join(f"{name} {_parameter_text(value)}" for name, value in step.maker_arguments.items())
    erased = MISSING if step.erase is None else percent_text(step.erase)
    # The records that take part in a run.
    if step.subset is not None:
        sample = "{:,} of {:,}".format(*step.subset)
    else:
        sample = "everybody" if step.poisson_rate is None else f"each with chance {step.poisson_rate:g}"
    return [step.mechanism_name, escape_control_chars(parameters), sample, erased, f"{step.count:,}"]


def _parameter_text(value: object) -> str:
    """Return a parameter as in the file: lists in square brackets."""
    return f"[{', '.join(map(_parameter_text, value))}]" if isinstance(value, tuple) else str(value)


def bound_line(given: float, safe: float | None, row: EpsilonBracket | DeltaBracket) -> list[str]:
    """Return the number rounded to the safe side, and its bracket rounded outwards."""
    bracket = f"{bound_text(row.lower, 12, DOWN)} … {bound_text(row.upper, 12, UP)}"
    return [f"{given:g}", bound_text(safe, 6, UP), bracket, relative_width(row.relative_width)]


def comparison_line(way: ComparisonAccount) -> list[str]:
    """Return the columns of a method: bounds rounded up, the limit to the nearest."""
    rounding = NEAREST if "not a bound" in way.statement else UP
    epsilon = "∞" if way.epsilon is None else significant_text(way.epsilon, 6, rounding)
    return [way.name, way.statement, epsilon, significant_text(way.total_variation, 6, rounding)]
