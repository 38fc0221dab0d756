"""Sentences about one answer: its question, the choice of its groups, and the effect of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import MISSING, UP, percent_text, significant_text
from tightrope.documents.privacy_unit import unit_count_text
from tightrope.documents.release import NoiseUsed, PlannedAnswer, ReleaseResult, displayed_title
from tightrope.documents.wording import share_text
from tightrope.reporting.wording.answers import Answer, rounded_answer_row
from tightrope.reporting.wording.partial_release import PartialRelease

FORMER_TOO_NOISY = "the noise is too large"
"""The beginning of statements up to version 0.2.0 that say that the noise is too large to say anything."""
SAME_STATEMENT = "As above: ± covers the noise only, not the sampling error of a study."
"""The statement on intervals of an answer that has the same one as an answer before it."""
NOTHING_SHOWN = "Every group is suppressed: none is large enough."
MARGIN = "95 % margin of error"
STATISTICS = {
    "count": "number of rows",
    "usable values": "number of non-missing values",
    "usable rows": "number of rows without missing values",
    "ones or zeros": "numbers of true and of false rows",
    "different values": "number of different values",
    "rows by block": "number of rows in each block of cells",
    "rows by cell": "number of rows in each cell",
    "rows in groups that are not shown": "number of rows in suppressed groups",
    "choice of the value, in rows below it": "choice of the value (error: rows below it)",
    "choice of the width, in rows below its ends": "choice of the interval (error: rows below its ends)",
    "rows, used": "number of rows used",
    "rows, all": "number of all rows",
}
"""Statistics as displayed, by their names in certificates; others are displayed unchanged."""
MEAN_STATISTICS = {"sum", "usable values"}
"""The statistics of a mean; the sum is centered if an answer has both."""
CENTERED_SUM = "centered sum"
"""The sum of a mean as displayed: of the values minus the middle of their range, which halves the sensitivity."""
CENTERED_SUM_MEANING = (
    "the sum of the differences from the middle of the range; the mean is the middle plus this sum divided by the "
    "number of values"
)
DIAGNOSTICS = {
    "below": "number of values of {} below the range",
    "above": "number of values of {} above the range",
    "missing": "number of missing values of {}",
}
FAMILIES = {"least noise (closed form)": "optimal noise for one count (closed form)"}
"""Noise families as displayed, by their names in certificates; others are displayed unchanged."""
LEAST_CHANCE, LEAST_MORE = 1e-6, 1e-3
"""Probabilities and ratios below these are printed as these, or as less: too small to matter for planning."""
SURELY = 1e-4
"""A group that is suppressed with a probability within this of 1 is printed as "above 99.99 %"."""
PROBABLY = 0.5
"""Above this probability of suppression, the errors of a group are not printed: they do not describe a shown value."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """The effect of the noise on a group of ``rows`` rows."""

    rows: str
    expected: str
    half_width: str
    suppressed: str


def bias_statements(document: ReleaseResult | PartialRelease) -> list[tuple[str, str]]:
    """Return one sentence for each effect of bounding and clamping, with the names of the answers it concerns.

    Effects about which the noise leaves nothing to say are one sentence together, the last one.
    """
    names_by_statement: dict[str, list[str]] = {}
    for bias in document.bias:
        statement = "" if bias.statement.startswith(FORMER_TOO_NOISY) else bias.statement
        names_by_statement.setdefault(statement, []).extend(bias.answers)
    too_noisy = names_by_statement.pop("", None)
    sentences = [
        (escape_control_chars(statement[:1].upper() + statement[1:]) + ".", ", ".join(dict.fromkeys(names)))
        for statement, names in names_by_statement.items()
    ]
    if too_noisy:
        text = f"The noise is too large to say how many {'other ' if sentences else ''}rows or values this concerns."
        sentences.append((text, ", ".join(dict.fromkeys(too_noisy))))
    return sentences


def bias_heading(document: ReleaseResult | PartialRelease) -> str:
    """Return the heading of the sentences on bias, which names the sources that the release estimates."""
    kinds = {bias.kind for bias in document.bias}
    sources = {
        "limiting rows": "left out" in kinds,
        "clamping values": bool(kinds & {"below", "above"}),
        "missing values": "missing" in kinds,
    }
    present = [name for name, is_present in sources.items() if is_present]
    return f"Bias from {' and '.join(filter(None, [', '.join(present[:-1]), *present[-1:]]))}" if present else "Bias"


UNKNOWN_SHARE = "The noise is too large to say how many of its rows were left out."


def left_out_text(document: ReleaseResult | PartialRelease, name: str) -> str:
    """Return the estimated share of the rows of an answer that were left out, as a sentence; empty if not estimated."""
    for bias in document.bias:
        if bias.kind == "left out" and name in bias.answers:
            if bias.share is None or bias.lower is None or bias.upper is None:
                return UNKNOWN_SHARE
            text = share_text(bias.share, bias.lower, bias.upper, "its rows were left out")
            return f"{text[:1].upper()}{text[1:]}." if text else UNKNOWN_SHARE
    return ""


def answer_heading(answer: Answer) -> str:
    """Return the title of an answer, which states the bound on a person's rows.

    >>> from tightrope.reporting.wording.answers import shown_answer
    >>> from tightrope.reporting.wording.partial_release import PartialAnswer
    >>> answer_heading(shown_answer(PartialAnswer(question="mean of x by educ")))
    'Mean of x by educ'
    """
    return escape_control_chars(displayed_title(answer))


def question_sentence(answer: Answer) -> str:
    """Return one or two sentences: meaning of the numbers, their groups, and how the groups were found."""
    groups = " and ".join(f"“{escape_control_chars(name)}”" for name in answer.by)
    # A ranking has several values of its columns, a mode one value of the last column.
    names = {"top_k": (), "mode": answer.by[:-1]}.get(answer.kind, answer.by)
    each = f", for each {' and '.join(f'“{escape_control_chars(name)}”' for name in names)}" if names else ""
    unit = "percent" if answer.in_percent else answer.unit
    each = f", in {unit}{each}" if unit else each
    origin = ""
    if groups and answer.discovered:
        origin = "The groups were discovered in the data; groups with too few rows are suppressed."
    elif groups and answer.discovered is not None:
        origin = (
            "The groups were listed in the plan; a listed group without rows is shown, too, and its value is only "
            "noise."
        )
    return f"{meaning_text(answer.meaning + each, answer.over)}. {origin}".strip()


def meaning_text(meaning: str, over: str) -> str:
    """Return the meaning of the numbers and the rows that are used; ``over`` as documents state it.

    >>> meaning_text("The mean", "at most 8 rows per person"), meaning_text("The mean", "each row is one person")
    ('The mean, using at most 8 rows per person', 'The mean (each row is one person)')
    """
    if over.startswith("each "):
        return escape_control_chars(f"{meaning} ({over})")
    # Documents of version 0.1 begin with "rows, ".
    joint = "" if not over else ", over " if over[:5] == "rows," else ", using "
    return escape_control_chars(f"{meaning}{joint}{over}")


def statistic_text(name: str) -> str:
    """Return a statistic as displayed.

    >>> statistic_text("usable values"), statistic_text("rows, below of age, over all groups"), statistic_text("sum")
    ('number of non-missing values', 'number of values of age below the range', 'sum')
    """
    name = name.removesuffix(", over all groups")
    counted, of, column = name.removeprefix("rows, ").partition(" of ")
    if of and counted in DIAGNOSTICS and name.startswith("rows, "):
        return DIAGNOSTICS[counted].format(column)
    return STATISTICS.get(name, name)


def has_centered_sum(answer: Answer | PlannedAnswer) -> bool:
    """Return whether an answer is a mean: a sum of distances from the middle of a range, over the number of values."""
    return {noise.statistic for noise in answer.noise} >= MEAN_STATISTICS


def noise_statistic_text(name: str, answer: Answer | PlannedAnswer, unit_label: str) -> str:
    """Return a statistic of an answer as displayed: the sum of a mean is of distances from the middle of its range.

    ``unit_label`` is the noun of the privacy unit with its article: a count of units is named after it.
    """
    if name == "count" and answer.kind == "count_distinct":
        return unit_count_text(unit_label)
    return CENTERED_SUM if name == "sum" and has_centered_sum(answer) else statistic_text(name)


def noise_label(noise: NoiseUsed, answer: PlannedAnswer, answers: Sequence[PlannedAnswer], unit_label: str) -> str:
    """Return the statistic of a planned answer as displayed; the first centered sum among the answers is explained."""
    label = noise_statistic_text(noise.statistic, answer, unit_label)
    if label != CENTERED_SUM or answer is not next(filter(has_centered_sum, answers)):
        return label
    return f"{label} ({CENTERED_SUM_MEANING})"


def family_text(name: str) -> str:
    """Return a noise family as displayed."""
    return FAMILIES.get(name, name)


def error_rows(answer: Answer) -> list[ErrorRow]:
    """Return errors by group size; empty if they are independent of it and no group is suppressed."""
    error = answer.error
    if error.half_width_95 is not None and not answer.discovered:
        return []
    return [
        ErrorRow(
            rows=significant_text(float(size.rows)),
            expected=error_text(size.expected_absolute_error, size.suppressed),
            half_width=error_text(size.half_width_95, size.suppressed),
            suppressed=suppression_text(size.suppressed),
        )
        for size in error.by_group_size
        if size.rows is not None
    ]


def error_text(error: float | None, suppressed: float | None) -> str:
    """Return an error for a group size, rounded up; "suppressed" if such a group probably is.

    >>> error_text(2.13, 0.01), error_text(2.13, 0.9), error_text(None, 0.0)
    ('2.2', 'suppressed', '–')
    """
    return "suppressed" if (suppressed or 0.0) > PROBABLY else significant_text(error, 2, UP)


def missing_groups_text(answer: Answer) -> str:
    """Return why fewer of the largest groups are shown than were asked for; empty if all are shown."""
    shown = len(answer.rows)
    if answer.k is None or shown >= answer.k:
        return ""
    if answer.discovered:
        return f"{shown} of {answer.k:,} groups are shown: all others have too few rows and are suppressed."
    return f"{shown} of {answer.k:,} groups are shown: the plan lists no more."


def typical_error(answer: Answer) -> str:
    """Return a sentence on the errors that are independent of a group's size; empty if they are not stated.

    The margin of error is the one that stands in the table, in its digits.
    """
    error = answer.error
    expected, half, worst = error.expected_absolute_error, error.half_width_95, error.worst_error
    said = [f"expected absolute error {significant_text(expected, 2, UP)}"] if expected is not None else []
    said += [f"{MARGIN} ± {_margin_text(answer, half)}"] if half is not None else []
    said += [f"maximum error ± {significant_text(worst, 3, UP)}"] if worst is not None else []
    listed = ", ".join(said)
    return f"{listed[:1].upper()}{listed[1:]}." if said else ""


def _margin_text(answer: Answer, half_width: float) -> str:
    """Return a margin of error with the digits of the table if one of its margins is the same up to rounding."""
    decimals = answer.decimal_places
    last_digit = 10.0**-decimals
    shown = {
        row.half_width: rounded_answer_row(row, decimals).plus_minus
        for row in answer.rows
        if row.half_width is not None and abs(row.half_width - half_width) <= last_digit
    }
    same = [text for _, text in sorted(shown.items()) if text and text[0].isdigit()]
    return same[-1] if same else significant_text(half_width, 3, UP)


def expected_error_label(answer: Answer | PlannedAnswer) -> str:
    """Return the name of the expected errors of an answer: those of a mean are upper bounds."""
    return "expected absolute error, at most" if has_centered_sum(answer) else "expected absolute error"


def noise_lines(answer: Answer, unit_label: str) -> list[dict[str, str]]:
    """Return one line for each noise: its statistic, its family, the reason for it, and its size."""
    return [
        {
            "statistic": noise_statistic_text(noise.statistic, answer, unit_label) or MISSING,
            "family": family_text(noise.family) or MISSING,
            "why": noise.why,
            "typical": significant_text(noise.mean_absolute_error, 2, UP),
            "half_width": significant_text(noise.half_width_95, 2, UP),
            "worst": "unbounded" if noise.worst_error is None else significant_text(noise.worst_error, 3, UP),
            "unit": noise.unit.replace("e-0", "e-"),
        }
        for noise in answer.noise
    ]


def suppression_text(probability: float | None) -> str:
    """Return the probability that a group is suppressed, as text, rounded up.

    >>> tuple(suppression_text(probability) for probability in (0.0, 0.00026, 1e-9, 0.969, 0.999999, None))
    ('0', '0.026 %', 'below 0.0001 %', '96.9 %', 'above 99.99 %', '–')
    """
    if probability is None:
        return MISSING
    if probability <= 0:
        return "0"
    if probability < LEAST_CHANCE:
        return f"below {percent_text(LEAST_CHANCE)}"
    return f"above {percent_text(1 - SURELY)}" if 1 - SURELY < probability < 1 else percent_text(probability, UP)


def more_error(relative: float) -> str:
    """Return how much more error the plan would have with this noise.

    >>> more_error(1.0), more_error(1.0000003), more_error(1.613), more_error(0.99996)
    ('used here', '< 0.1 % more error', '61 % more error', 'nearly the same error')
    """
    if relative == 1:
        return "used here"
    if relative < 1:  # the first of nearly equal families is used
        return "nearly the same error"
    more = relative - 1
    return "< 0.1 % more error" if more < LEAST_MORE else f"{significant_text(100 * more, 2)} % more error"
