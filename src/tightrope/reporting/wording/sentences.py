"""Sentences about one answer: what was asked, how its groups came about, what the noise costs."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.documents.escaping import printable
from tightrope.documents.numbers import MISSING, UP, percent, significant
from tightrope.reporting.wording.answers import Answer
from tightrope.reporting.wording.document import Json, number, objects_at, text, texts

NOTHING_SHOWN = "No group is large enough to be shown."
LEAST_CHANCE, LEAST_MORE = 1e-6, 1e-3
"""Shares below these are stated as these, or as less: nobody plans with them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the noise does to a group of so many rows."""

    rows: str
    expected: str
    half_width: str
    suppressed: str


def left_out(document: Json) -> list[tuple[str, str]]:
    """What bounding and clamping cost, one sentence each, said once, and the answers that it is about."""
    said: dict[str, list[str]] = {}
    for cost in objects_at(document, "costs"):
        said.setdefault(text(cost, "statement"), []).extend(texts(cost, "answers"))
    return [
        (printable(statement[:1].upper() + statement[1:]) + ".", ", ".join(dict.fromkeys(names)))
        for statement, names in said.items()
        if statement
    ]


def heading(answer: Answer) -> str:
    """The question with a capital letter, else the name.

    >>> from tightrope.reporting.wording.answers import read_answer
    >>> heading(read_answer({"question": "mean of x by educ"}))
    'Mean of x by educ'
    """
    shown = printable(answer.title or answer.question or answer.name.replace("_", " ") or "Answer")
    return shown[0].upper() + shown[1:]


def question_sentence(answer: Answer) -> str:
    """One plain sentence or two: what the numbers are, for which groups, and how these were found."""
    groups = " and ".join(f"“{printable(name)}”" for name in answer.by)
    each = f", for each {groups}" if groups else ""
    each = f", in {printable(answer.unit)}{each}" if answer.unit else each
    over = f", over {printable(answer.over)}" if answer.over else ""
    return f"{printable(answer.meaning)}{each}{over}. {_keys(answer) if groups else ''}".strip()


def costs(answer: Answer) -> list[Cost]:
    """The table of errors by group size; empty where they do not depend on it and no group is withheld."""
    error = answer.error
    if number(error, "half_width_95") is not None and not answer.discovered:
        return []
    return [_cost(source) for source in objects_at(error, "by_group_size") if number(source, "rows") is not None]


def typical_error(error: Json) -> str:
    """The errors that do not depend on a group's size, as one sentence; empty where none is stated."""
    expected, half, worst = (number(error, key) for key in ("expected_absolute_error", "half_width_95", "worst_error"))
    said = [f"moves a value by {significant(expected, 2, UP)} on average"] if expected is not None else []
    said += [f"by at most {significant(half, 3, UP)} in 95 % of cases"] if half is not None else []
    said += [f"never by more than {significant(worst, 3, UP)}"] if worst is not None else []
    if not said:
        return ""
    start = "The noise " if said[0].startswith("moves") or said[0].startswith("never") else "The noise moves a value "
    return f"{start}{_listed(said)}."


def noise_lines(answer: Answer) -> list[dict[str, str]]:
    """One line a noise: what it was added to, which family, why, and how large it is."""
    return [
        {
            "statistic": text(noise, "statistic") or MISSING,
            "family": text(noise, "family") or MISSING,
            "why": text(noise, "why"),
            "typical": significant(number(noise, "mean_absolute_error"), 2, UP),
            "half_width": significant(number(noise, "half_width_95"), 2, UP),
            "worst": "no limit" if worst is None else significant(worst, 3, UP),
            "unit": text(noise, "unit"),
        }
        for noise in answer.noise
        for worst in [number(noise, "worst_error")]
    ]


def withheld(share: float | None) -> str:
    """How often a group is not shown.

    >>> withheld(0.0), withheld(0.00026), withheld(1e-9), withheld(0.969), withheld(None)
    ('never', '0.026 %', '0.0001 %', '96.9 %', '–')
    """
    return "never" if share is not None and share <= 0 else percent(share and max(share, LEAST_CHANCE), UP)


def more_error(relative: float) -> str:
    """How much more error than the chosen family.

    >>> more_error(1.0), more_error(1.0000003), more_error(1.613)
    ('chosen', '< 0.1 % more error', '61 % more error')
    """
    if relative <= 1:
        return "chosen"
    more = relative - 1
    return "< 0.1 % more error" if more < LEAST_MORE else f"{significant(100 * more, 2)} % more error"


def _keys(answer: Answer) -> str:
    if answer.discovered is None:
        return ""
    if answer.discovered:
        return "The groups were found in the data; those with too few rows are left out."
    return "The groups were listed beforehand; one that is missing from the data shows noise alone."


def _cost(source: Json) -> Cost:
    suppressed = number(source, "suppressed")
    return Cost(
        rows=significant(number(source, "rows")),
        expected=significant(number(source, "expected_absolute_error"), 2, UP),
        half_width=significant(number(source, "half_width_95"), 2, UP),
        suppressed=withheld(suppressed),
    )


def _listed(said: list[str]) -> str:
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
