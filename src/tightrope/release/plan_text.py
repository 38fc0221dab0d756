"""A plan as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, positional_text, terminal_text
from tightrope.documents.release import (
    ErrorAtSize,
    Neighbors,
    PlannedAnswer,
    PlannedCosts,
    PlannedRelease,
    displayed_title,
)
from tightrope.reporting.wording.sentences import (
    MARGIN,
    PROBABLY,
    family_text,
    meaning_text,
    noise_label,
    statistic_text,
    suppression_text,
)

LARGE_TABLE_ROWS = 10_000
"""The largest group for which errors are stated; bias estimates with a larger error are summarized in one line."""
BIAS_NOT_ESTIMATED = (
    "Not estimated: the bias from limiting rows and clamping values. To estimate it with 2 % of this budget, set "
    "bias_check = 0.02 (in a plan file under [budget])."
)
MARGINALS_BIAS = "Not estimated: how many rows are left out, and how many values clamped. Marginals have no bias check."


def plan_text(document: PlannedRelease) -> str:
    """Return the budget and the accuracy of each planned answer as text."""
    epsilon, delta = positional_text(document.epsilon, 3, UP), terminal_text(document.delta, 2, UP)
    header = [
        f"Privacy guarantee: epsilon {epsilon} at delta {delta}, total variation {document.total_variation:.4g}.",
        document.attacker,
        neighbors_text(document.neighbors),
        *row_bound_lines(document),
    ]
    notes_of_all = shared_answer_notes(document.answers)
    if document.answers[0].kind == "marginals":
        answers = [_tables_text(document.answers)]
    else:
        answers = [_answer_text(answer, document, notes_of_all) for answer in document.answers]
    notes = [f"\nAll answers: {' '.join(notes_of_all)}"] if notes_of_all else []
    bias = bias_check_lines(document.bias_check, document.answers[0].kind)
    return "\n".join([*header, *answers, *notes, *bias, "Planning spends no budget."])


def neighbors_text(neighbors: Neighbors) -> str:
    """Return a sentence on the neighboring tables."""
    statement = neighbors.statement
    return f"Neighboring tables: {statement[:1].lower()}{statement[1:]}."


def leaves_out_rows(document: PlannedRelease) -> bool:
    """Return whether an answer leaves rows of a privacy unit out: not if all are about persons with all their rows."""
    is_of_rows = any(not answer.over.startswith("each ") for answer in document.answers)
    return document.neighbors.privacy_unit is not None and is_of_rows


def row_bound_lines(document: PlannedRelease) -> list[str]:
    """Return a line on the rows beyond ``max_rows``, and how to find a bound; empty if no answer leaves rows out."""
    neighbors = document.neighbors
    if not leaves_out_rows(document):
        return []
    noun = neighbors.protected_unit.unit_noun
    return [
        f"Rows beyond the limits (max_rows = {neighbors.max_rows:,} per {noun}) are left out; if these are most rows, "
        "answers describe a small part of the table. `tightrope suggest` (session.suggest_max_rows) suggests a limit, "
        "and charges the budget for it."
    ]


def bias_check_lines(costs: PlannedCosts | None, answer_kind: str = "count") -> list[str]:
    """Return lines about the planned estimate of the bias, or how to add one to answers of ``answer_kind``."""
    if costs is None:
        return [MARGINALS_BIAS if answer_kind == "marginals" else BIAS_NOT_ESTIMATED]
    if not costs.counts:
        return ["Limits cause no bias in this plan: no row is left out, and no value is clamped."]
    percent = 100 * Decimal(costs.budget_fraction)
    header = (
        f"At most {percent.normalize():f} % of this budget estimates the bias from limiting rows and clamping values:"
    )
    useful = [count for count in costs.counts if count.half_width_95 <= LARGE_TABLE_ROWS]
    counts = (
        f"  {statistic_text(count.statistic)} ({escape_control_chars(', '.join(count.answers))}): "
        f"± {positional_text(count.half_width_95, 2, UP)}"
        for count in useful
    )
    noisy = [count.half_width_95 for count in costs.counts if count.half_width_95 > LARGE_TABLE_ROWS]
    if not noisy:
        return [header, *dict.fromkeys(counts)]
    others = f"{len(noisy)} {'other ' if useful else ''}{'count' if len(noisy) == 1 else 'counts'}"
    summary = (
        f"  {others} of rows or values: ± {positional_text(min(noisy), 2, UP)}"
        f"{' or more' if max(noisy) > min(noisy) else ''}. In a smaller table this says nothing; set bias_check = 0 to "
        "use this part of the budget for the answers."
    )
    return [header, *dict.fromkeys(counts), summary]


def alone_text(answer: PlannedAnswer) -> str:
    """Return a line on the error that a question would have alone, and what a larger weight buys; empty if unknown.

    It is empty, too, where other questions hardly change the error.
    """
    part = answer.alone
    if part is None:
        return ""
    parts = []
    if part.rows is not None:
        parts.append(f"with {part.rows:,} rows: ± {positional_text(part.half_width_95, 2, UP)}")
    parts.append(f"if it were the only question of the plan: ± {positional_text(part.alone, 2, UP)}")
    if part.weight > answer.weight:
        weighted, times = positional_text(part.weighted, 2, UP), positional_text(part.others_times, 3, UP)
        parts.append(
            f"with weight = {part.weight:g} in place of {answer.weight:g}: about ± {weighted}, and the errors of the "
            f"other questions {times} times as large"
        )
    return "; ".join(parts)


def shared_answer_notes(answers: Sequence[PlannedAnswer]) -> list[str]:
    """Return the notes that all of several answers share: they are shown once, below the answers."""
    first = answers[0].notes if len(answers) > 1 else ()
    return [note for note in first if all(note in answer.notes for answer in answers)]


def _size_line(size: ErrorAtSize, *, shows_suppression: bool) -> str:
    """Return the line on the margin of error of groups with this number of rows."""
    width = "unbounded" if size.half_width_95 is None else f"± {positional_text(size.half_width_95, 2, UP)}"
    shown = f"{MARGIN} {width}" if size.suppressed <= PROBABLY else "probably suppressed"
    suppression = f", probability of suppression: {suppression_text(size.suppressed)}" if shows_suppression else ""
    return f"  with {size.rows:,} rows: {shown}{suppression}"


def _tables_text(tables: Sequence[PlannedAnswer]) -> str:
    """Return the margin of error of each table of ``marginals``, next to what it would be alone."""
    first, noises = tables[0], [noise for table in tables for noise in table.noise]
    errors = sorted(noise.mean_absolute_error for noise in noises)
    families = ", ".join(dict.fromkeys(family_text(noise.family) for noise in noises))
    sizes = dict.fromkeys(positional_text(error, 2, UP) for error in (errors[0], errors[-1]))
    lines = [
        f"\n{len(tables):,} {'table' if len(tables) == 1 else 'tables that add up to each other'}",
        f"  {meaning_text(first.meaning, first.over)}.",
        f"  noise on the numbers that are measured: {families}, expected absolute error {' to '.join(sizes)}",
    ]
    width = max(len(escape_control_chars(table.name)) for table in tables)
    for table in tables:
        name = escape_control_chars(table.name).ljust(width)
        margin = positional_text(table.error.half_width_95 or 0.0, 3, UP)
        alone = "" if table.alone is None else f", as the only question ± {positional_text(table.alone.alone, 2, UP)}"
        lines.append(f"  {name}  {MARGIN} ± {margin}{alone}")
    return "\n".join(lines)


def _answer_text(answer: PlannedAnswer, document: PlannedRelease, notes_of_all: Sequence[str]) -> str:
    noun = document.neighbors.noun
    lines = [
        f"\n{escape_control_chars(answer.name)}: {escape_control_chars(displayed_title(answer))}",
        f"  {meaning_text(answer.meaning, answer.over)}.",
        *([f"  {answer.clamping}"] if answer.clamping else []),
    ]
    lines += [
        f"  noise on the {noise_label(noise, answer, document.answers, noun)}: {family_text(noise.family)}, "
        f"expected absolute error {positional_text(noise.mean_absolute_error, 2, UP)}"
        for noise in answer.noise
    ]
    error = answer.error
    if error.half_width_95 is not None:
        worst = error.worst_error
        maximum = "" if worst is None else f", maximum error ± {positional_text(worst, 3, UP)}"
        lines.append(f"  {MARGIN} ± {positional_text(error.half_width_95, 3, UP)}{maximum}")
    # Show errors by group size if they differ, or if small groups are suppressed.
    discovered = answer.keys == "discovered"
    for size in error.by_group_size if error.half_width_95 is None or discovered else ():
        lines.append(_size_line(size, shows_suppression=size.suppressed > 0 or discovered))
    lines += [f"  {alone}" for alone in [alone_text(answer)] if alone]
    return "\n".join([*lines, *(f"  {note}" for note in answer.notes if note not in notes_of_all)])
