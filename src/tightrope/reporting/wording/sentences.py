"""Sentences about one answer: its question, the choice of its groups, and the effect of the noise."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import MISSING, UP, percent_text, significant_text
from tightrope.reporting.wording.answers import Answer
from tightrope.reporting.wording.document import Json, number_at, objects_at, text_at, texts_at

NOTHING_SHOWN = "No group is large enough to be shown."
LEAST_CHANCE, LEAST_MORE = 1e-6, 1e-3
"""Probabilities and ratios below these are printed as these, or as less: too small to matter for planning."""
SURELY = 1e-4
"""A group that is suppressed with a probability within this of 1 is printed as "above 99.99 %"."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """The effect of the noise on a group of ``rows`` rows."""

    rows: str
    expected: str
    half_width: str
    suppressed: str


def bias_statements(document: Json) -> list[tuple[str, str]]:
    """Return one sentence for each effect of bounding and clamping, with the names of the answers it concerns."""
    said: dict[str, list[str]] = {}
    for cost in objects_at(document, "bias"):
        said.setdefault(text_at(cost, "statement"), []).extend(texts_at(cost, "answers"))
    return [
        (escape_control_chars(statement[:1].upper() + statement[1:]) + ".", ", ".join(dict.fromkeys(names)))
        for statement, names in said.items()
        if statement
    ]


def answer_heading(answer: Answer) -> str:
    """Return the question with a capital letter, else the name.

    >>> from tightrope.reporting.wording.answers import read_answer
    >>> answer_heading(read_answer({"question": "mean of x by educ"}))
    'Mean of x by educ'
    """
    shown = escape_control_chars(answer.title or answer.question or answer.name.replace("_", " ") or "Answer")
    return shown[0].upper() + shown[1:]


def question_sentence(answer: Answer) -> str:
    """Return one or two sentences: meaning of the numbers, their groups, and how the groups were found."""
    groups = " and ".join(f"“{escape_control_chars(name)}”" for name in answer.by)
    each = f", for each {groups}" if groups else ""
    each = f", in {escape_control_chars(answer.unit)}{each}" if answer.unit else each
    over = f", over {escape_control_chars(answer.over)}" if answer.over else ""
    origin = ""
    if groups and answer.discovered:
        origin = "The groups were found in the data; those with too few rows are left out."
    elif groups and answer.discovered is not None:
        origin = "The groups were listed beforehand; one that is missing from the data shows noise alone."
    return f"{escape_control_chars(answer.meaning)}{each}{over}. {origin}".strip()


def error_rows(answer: Answer) -> list[ErrorRow]:
    """Return errors by group size; empty if they are independent of it and no group is suppressed."""
    error = answer.error
    if number_at(error, "half_width_95") is not None and not answer.discovered:
        return []
    return [
        ErrorRow(
            rows=significant_text(number_at(source, "rows")),
            expected=significant_text(number_at(source, "expected_absolute_error"), 2, UP),
            half_width=significant_text(number_at(source, "half_width_95"), 2, UP),
            suppressed=suppression_text(number_at(source, "suppressed")),
        )
        for source in objects_at(error, "by_group_size")
        if number_at(source, "rows") is not None
    ]


def typical_error(error: Json) -> str:
    """Return a sentence on the errors that are independent of a group's size; empty if they are not stated."""
    expected, half, worst = (
        number_at(error, key) for key in ("expected_absolute_error", "half_width_95", "worst_error")
    )
    said = [f"moves a value by {significant_text(expected, 2, UP)} on average"] if expected is not None else []
    said += [f"by at most {significant_text(half, 3, UP)} in 95 % of cases"] if half is not None else []
    said += [f"never by more than {significant_text(worst, 3, UP)}"] if worst is not None else []
    if not said:
        return ""
    start = "The noise " if said[0].startswith("moves") or said[0].startswith("never") else "The noise moves a value "
    listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    return f"{start}{listed}."


def noise_lines(answer: Answer) -> list[dict[str, str]]:
    """Return one line for each noise: its statistic, its family, the reason for it, and its size."""
    return [
        {
            "statistic": text_at(noise, "statistic") or MISSING,
            "family": text_at(noise, "family") or MISSING,
            "why": text_at(noise, "why"),
            "typical": significant_text(number_at(noise, "mean_absolute_error"), 2, UP),
            "half_width": significant_text(number_at(noise, "half_width_95"), 2, UP),
            "worst": "no limit" if worst is None else significant_text(worst, 3, UP),
            "unit": text_at(noise, "unit"),
        }
        for noise in answer.noise
        for worst in [number_at(noise, "worst_error")]
    ]


def suppression_text(probability: float | None) -> str:
    """Return the probability that a group is suppressed, as text, rounded up.

    >>> tuple(suppression_text(probability) for probability in (0.0, 0.00026, 1e-9, 0.969, 0.999999, None))
    ('never', '0.026 %', 'below 0.0001 %', '96.9 %', 'above 99.99 %', '–')
    """
    if probability is None:
        return MISSING
    if probability <= 0:
        return "never"
    if probability < LEAST_CHANCE:
        return f"below {percent_text(LEAST_CHANCE)}"
    return f"above {percent_text(1 - SURELY)}" if 1 - SURELY < probability < 1 else percent_text(probability, UP)


def more_error(relative: float) -> str:
    """Return how much more error this family has than the chosen one.

    >>> more_error(1.0), more_error(1.0000003), more_error(1.613)
    ('chosen', '< 0.1 % more error', '61 % more error')
    """
    if relative <= 1:
        return "chosen"
    more = relative - 1
    return "< 0.1 % more error" if more < LEAST_MORE else f"{significant_text(100 * more, 2)} % more error"
