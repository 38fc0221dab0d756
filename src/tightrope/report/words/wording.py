"""Sentences about one answer: what was asked, how its groups came about, what the noise costs."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.printable import printable
from tightrope.report.words.answers import Answer
from tightrope.report.words.digits import MISSING, UP, percent, significant
from tightrope.report.words.document import Json, number, parts, text


@dataclass(frozen=True, slots=True)
class Cost:
    """What the noise does to a group of so many rows."""

    rows: str
    expected: str
    half_width: str
    suppressed: str


def heading(answer: Answer) -> str:
    """The question with a capital letter, else the name.

    >>> from tightrope.report.words.answers import read_answer
    >>> heading(read_answer({"question": "mean of x by educ"}))
    'Mean of x by educ'
    """
    shown = printable(answer.question or answer.name.replace("_", " ") or "Answer")
    return shown[0].upper() + shown[1:]


def asked(answer: Answer) -> str:
    """One plain sentence or two: what the numbers are, for which groups, and how these were found."""
    groups = " and ".join(f"“{printable(name)}”" for name in answer.by)
    each = f", for each {groups}" if groups else ""
    over = f", over {printable(answer.over)}" if answer.over else ""
    return f"{printable(answer.meaning)}{each}{over}. {_keys(answer) if groups else ''}".strip()


def costs(error: Json) -> list[Cost]:
    """The table of errors by group size; empty where there is none."""
    return [_cost(source) for source in parts(error, "by_group_size") if number(source, "rows") is not None]


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
        suppressed=_rarely(suppressed),
    )


def _rarely(suppressed: float | None) -> str:
    if suppressed is not None and suppressed < 0.001:
        return "never" if suppressed <= 0 else "< 0.1 %"
    return percent(suppressed, UP)


def _listed(said: list[str]) -> str:
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
