"""A plan as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, typed_text
from tightrope.reporting.wording.sentences import (
    MARGIN,
    PROBABLY,
    family_text,
    meaning_text,
    noise_statistic_text,
    statistic_text,
    suppression_text,
)

LARGE_TABLE_ROWS = 10_000
"""The largest group for which errors are stated; larger errors of the bias estimates are reported as too noisy."""
BIAS_NOT_ESTIMATED = (
    "Not estimated: the bias from limiting rows and clamping values. To estimate it with 2 % of this budget, set "
    "bias_check = 0.02 (in a plan file under [budget])."
)


def plan_text(data: Mapping[str, Any]) -> str:
    """Return the budget and the accuracy of each planned answer as text."""
    header = [
        f"Privacy guarantee: epsilon {rounded_up(data['epsilon'], 3)} at delta {typed_text(data['delta'], 2, UP)}, "
        f"total variation {data['total_variation']:.4g}.",
        data["attacker"],
        neighbors_text(data["neighbors"]),
    ]
    notes_of_all = shared_notes(data["answers"])
    answers = (_answer_text(answer, notes_of_all) for answer in data["answers"])
    notes = [f"\nAll answers: {' '.join(notes_of_all)}"] if notes_of_all else []
    return "\n".join([*header, *answers, *notes, *costs_lines(data["bias_check"]), "Planning spends no budget."])


def neighbors_text(neighbors: Mapping[str, Any]) -> str:
    """Return a sentence on the neighboring tables."""
    statement = neighbors["statement"]
    return f"Neighboring tables: {statement[:1].lower()}{statement[1:]}."


def costs_lines(costs: Mapping[str, Any] | None) -> list[str]:
    """Return lines about the planned estimate of the bias, or how to add one."""
    if costs is None:
        return [BIAS_NOT_ESTIMATED]
    percent = 100 * Decimal(costs["budget_fraction"])
    header = (
        f"At most {percent.normalize():f} % of this budget estimates the bias from limiting rows and clamping values:"
    )
    counts = (
        f"{statistic_text(count['statistic'])}: ± {rounded_up(count['half_width_95'], 2)}" for count in costs["counts"]
    )
    is_too_noisy = any(count["half_width_95"] > LARGE_TABLE_ROWS for count in costs["counts"])
    advice = [
        f"For a table of about {LARGE_TABLE_ROWS:,} rows these estimates are too noisy: with bias_check = 0 it is used "
        "for answers."
    ]
    return [header, *(f"  {line}" for line in dict.fromkeys(counts)), *(advice if is_too_noisy else [])]


def shared_notes(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the notes that all of several answers share: they are shown once, below the answers."""
    first = answers[0]["notes"] if len(answers) > 1 else ()
    return [note for note in first if all(note in answer["notes"] for answer in answers)]


def _answer_text(answer: Mapping[str, Any], notes_of_all: Sequence[str]) -> str:
    lines = [
        f"\n{escape_control_chars(answer['name'])}: {answer['question']}",
        f"  {meaning_text(answer['meaning'], answer['over'])}.",
    ]
    lines += [
        f"  noise on the {noise_statistic_text(noise['statistic'], answer['kind'])}: {family_text(noise['family'])}, "
        f"expected absolute error {rounded_up(noise['mean_absolute_error'], 2)}"
        for noise in answer["noise"]
    ]
    error = answer["error"]
    if error["half_width_95"] is not None:
        maximum = "" if error["worst_error"] is None else f", maximum error ± {rounded_up(error['worst_error'], 3)}"
        lines.append(f"  {MARGIN} ± {rounded_up(error['half_width_95'], 3)}{maximum}")
    # Show errors by group size if they differ, or if small groups are suppressed.
    discovered = answer["keys"] == "discovered"
    for size in error["by_group_size"] if error["half_width_95"] is None or discovered else ():
        half_width, suppression = size["half_width_95"], ""
        if size["suppressed"] > 0 or discovered:
            suppression = f", probability of suppression: {suppression_text(size['suppressed'])}"
        width = "unbounded" if half_width is None else f"± {rounded_up(half_width, 2)}"
        shown = f"{MARGIN} {width}" if size["suppressed"] <= PROBABLY else "probably suppressed"
        lines.append(f"  with {size['rows']:,} rows: {shown}{suppression}")
    return "\n".join([*lines, *(f"  {note}" for note in answer["notes"] if note not in notes_of_all)])


def rounded_up(value: float, digits: int) -> str:
    """Return the value with at least ``digits`` digits, rounded up, with thousands separators, without exponents.

    >>> rounded_up(5912499.3, 3), rounded_up(32.836, 2), rounded_up(0.00206, 2)
    ('5,912,500', '33', '0.0021')
    """
    exact = Decimal(repr(value))
    rounded = Context(prec=max(digits, exact.adjusted() + 1), rounding=ROUND_CEILING).plus(exact)
    return f"{rounded.normalize(Context(prec=400)):,f}"
