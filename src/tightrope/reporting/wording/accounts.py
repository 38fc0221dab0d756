"""Steps, bounds and accounting methods as text: the same for the terminal and for the HTML report."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.documents.account import ApproxDp, ComparisonAccount, DeltaBracket, EpsilonBracket, FromPoints, Step
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import (
    DOWN,
    MISSING,
    NEAREST,
    UP,
    percent_text,
    significant_text,
    terminal_text,
)

STEP_COLUMNS = ("mechanism", "parameters", "sampling", "P(no output)", "count")
METHOD_COLUMNS = ("method", "kind", "epsilon", "total variation")
NEIGHBOR_TEXT = {
    "poisson": "one example is added or removed",
    "subset": "one example is replaced: the sum of clipped gradients changes by up to twice the clipping norm",
}
"""Neighbors of a training run, by sampling scheme."""
METHOD_NAMES = {
    "contour": "contour integration",
    "smoothed contour": "contour integration, smoothed",
    "exact": "Tightrope",
    "GI Theorem 2": "Ghazi and Issa 2024, Theorem 2",
    "Gaussian limit": "central limit theorem",
}
"""Names of methods in documents, as they are displayed; others are displayed unchanged."""


def method_text(name: str) -> str:
    """Return the name of an accounting method as it is displayed.

    >>> method_text("contour"), method_text("moments accountant")
    ('contour integration', 'moments accountant')
    """
    return METHOD_NAMES.get(name, name)


def bound_text(value: float | None, count: int, rounding: str) -> str:
    """Return the number with ``count`` digits; None means that there is no upper bound."""
    return "∞ (no bound)" if value is None else significant_text(value, count, rounding)


def guarantee_steps_text(steps: Sequence[Step]) -> str:
    """Return which mechanism has the true value if steps are stated only by their guarantee; empty without such steps.

    >>> from tightrope.documents.account import ApproxDp, Gaussian
    >>> guarantee_steps_text([Gaussian(scale=1)])
    ''
    >>> print(guarantee_steps_text([ApproxDp(epsilon=1)]))
    For a step stated by its guarantee alone, it is the value of the worst mechanism, such as randomized response.
    """
    if not any(isinstance(step, (ApproxDp, FromPoints)) for step in steps):
        return ""
    return (
        "For a step stated by its guarantee alone, it is the value of the worst mechanism, such as randomized response."
    )


def relative_width(width: float | None) -> str:
    """Return the width of an interval relative to its upper end; None if only the upper end is infinite.

    >>> relative_width(1e-3), relative_width(0.0)
    ('1e-03', '0')
    """
    return MISSING if width is None else f"{width:.0e}" if width else "0"


def step_line(step: Step) -> list[str]:
    """Return the columns of a step: mechanism, parameters, sampling, probability of no output, number of runs."""
    parameters = ", ".join(f"{name} {_parameter_text(value)}" for name, value in step.maker_arguments.items())
    erased = MISSING if step.erase is None else percent_text(step.erase)
    if step.subset is not None:
        sampling = "subset, {:,} of {:,}".format(*step.subset)
    else:
        sampling = "none" if step.poisson_rate is None else f"Poisson, rate {step.poisson_rate:g}"
    return [step.mechanism_name, escape_control_chars(parameters), sampling, erased, f"{step.count:,}"]


def _parameter_text(value: object) -> str:
    """Return a parameter as in the file: lists in square brackets."""
    return f"[{', '.join(map(_parameter_text, value))}]" if isinstance(value, tuple) else str(value)


def bound_line(given: float, upper: float | None, row: EpsilonBracket | DeltaBracket) -> list[str]:
    """Return the upper bound rounded up, and the interval rounded outwards."""
    interval = f"{bound_text(row.lower, 12, DOWN)} … {bound_text(row.upper, 12, UP)}"
    return [terminal_text(given, 6), bound_text(upper, 6, UP), interval, relative_width(row.relative_width)]


def comparison_line(account: ComparisonAccount) -> list[str]:
    """Return the columns of a method: bounds are rounded up, an approximation to the nearest."""
    rounding = NEAREST if "not a bound" in account.statement else UP
    epsilon = "∞" if account.epsilon is None else significant_text(account.epsilon, 6, rounding)
    eta = significant_text(account.total_variation, 6, rounding)
    return [method_text(account.name), account.statement, epsilon, eta]
