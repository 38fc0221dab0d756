"""``tightrope plan``: the privacy guarantee and the accuracy of a planned release. Spends no budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.errors import interrupt_without_charge
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import echo_heading, echo_lines, print_document, print_table, show_progress
from tightrope.documents import Budget
from tightrope.documents.escaping import escape_control_chars, toml_value
from tightrope.documents.numbers import (
    MISSING,
    UP,
    compact_text,
    fixed_text,
    percent_text,
    significant_text,
    terminal_text,
)
from tightrope.documents.release import BudgetRow, PlannedAnswer, PlannedRelease, displayed_title
from tightrope.errors import InputError
from tightrope.reporting.wording.sentences import (
    MARGIN,
    error_text,
    expected_error_label,
    family_text,
    meaning_text,
    more_error,
    noise_label,
    suppression_text,
)

if TYPE_CHECKING:
    from tightrope.release.plan_file import LedgerForecast

PLAN_EXAMPLE = """\b
Example:
  tightrope plan examples/census/plan.toml --table
"""
Budgets = Annotated[bool, typer.Option("--table", help="Show the accuracy for seven values of epsilon from 0.1 to 10.")]
Within = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=50",
        help="Use the smallest budget for which the answer NAME has a 95 % margin of error of 50. For counts also "
        "NAME=5%, of the expected_rows of the question.",
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Print only an explanation of the privacy guarantee in plain words.")
]
TYPICAL_SIZE, MOST_LABEL = "1000", 28
"""The group size whose errors the table shows, and the longest name that stands in a line with its numbers."""


@interrupt_without_charge()
def plan(
    path: PlanPath,
    budgets: Budgets = False,
    margin_of_error: Within = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Show a plan's privacy guarantee and its accuracy.

    With --margin-of-error, find the smallest budget that reaches an accuracy. With --explain, describe the guarantee
    in plain words. Reads only the names and types of the columns, and spends no budget.
    """
    from tightrope.release.plan_file import forecast_release, load_plan_file

    if explain and (as_json or budgets):
        raise InputError.from_text("plan", "--explain cannot be combined with --json or --table")
    file = load_plan_file(path)
    wanted = _margins_by_question(margin_of_error)
    with show_progress("Looking for the smallest budget ..." if wanted else "Choosing the noise ..."):
        chosen = file.make_plan(wanted)
    if explain:
        echo_lines(*chosen.explain().split("\n"))
        return
    with show_progress("Trying other budgets ..." if budgets else "Computing the errors ..."):
        usual = None
        if budgets:
            from tightrope.release.draft import TABLE_EPSILONS

            usual = [Budget(epsilon=epsilon, delta=chosen.budget.delta) for epsilon in TABLE_EPSILONS]
        document = chosen.document(file.document.title, usual)
    if as_json:
        print_document(document)
        return
    if document.table is None:
        forecast = forecast_release(file, chosen)
        _print_result(document, forecast, path)
        echo_lines("\nThis command spent no budget.")
        if not forecast.would_refuse:
            echo_lines(*_next_step(path, wanted))
        return
    _show_budgets(document.table, file.document.title)
    echo_lines("This command spent no budget.")


def _margins_by_question(within: Sequence[str] | None) -> dict[str, str]:
    """Half-widths by question, the last one where a name comes twice."""
    margins: dict[str, str] = {}
    for entry in within or ():
        name, equals, half = entry.rpartition("=")
        if not equals:
            text = f"{entry!r} must be NAME=50, where NAME is the name of a question in the plan"
            raise InputError.from_text("--margin-of-error", text)
        margins[name] = half
    return margins


def _next_step(path: str, margins: Mapping[str, str]) -> list[str]:
    """Return how to release the plan shown: targets given as options have to be in the plan file first."""
    if not margins:
        return ["To release:", f"  tightrope release {path}"]
    settings = [
        f"  margin_of_error = {toml_value(half) if half.endswith('%') else half}   (in the question {name!r})"
        for name, half in margins.items()
    ]
    return ["To release with this budget, first write into the plan file:", *map(escape_control_chars, settings),
            f"then:  tightrope release {path}"]  # fmt: skip


def _print_result(document: PlannedRelease, forecast: LedgerForecast, path: str) -> None:
    from tightrope.release.plan_text import bias_check_lines, neighbors_text, row_bound_lines, shared_answer_notes

    echo_lines(*([escape_control_chars(document.title)] if document.title else []))
    epsilon, delta = terminal_text(document.epsilon, 3, UP), terminal_text(document.delta, 2, UP)
    echo_lines(f"Privacy guarantee: epsilon {epsilon} at delta {delta}.")
    echo_lines(_budget_sentence(Fraction(document.budget_fraction), forecast))
    echo_lines(*(_unused_rows_warning(document, path) or row_bound_lines(document)))
    echo_lines(document.attacker, neighbors_text(document.neighbors))
    shared = shared_answer_notes(document.answers)
    if document.answers[0].kind == "marginals":
        _show_tables(document.answers)
    else:
        for answer in document.answers:
            _show_answer(answer, document, shared)
    if shared:
        echo_heading("All answers")
        echo_lines(*(f"note: {note}" for note in shared))
    if len(document.alternatives) > 1:
        echo_heading("Noise families compared (one family for all answers; expected error relative to this plan)")
        ordered = sorted(document.alternatives, key=lambda other: other.relative_error)
        print_table(["family", "error"], [[family_text(a.family), more_error(a.relative_error)] for a in ordered])
        if any(answer.keys == "discovered" for answer in document.answers):
            echo_lines(
                "Counts that decide which groups are shown need noise with a largest value: there, discrete truncated "
                "Laplace replaces families without one."
            )
    echo_heading("Bias")
    echo_lines(*bias_check_lines(document.bias_check, document.answers[0].kind))
    ledger = forecast.sentences
    echo_lines(*([] if not ledger else ["", *map(escape_control_chars, ledger)]))


def _budget_sentence(fraction: Fraction, forecast: LedgerForecast) -> str:
    """Return how much of the whole budget a release takes, and how much remains after it."""
    from tightrope.ledger.state import fraction_text

    taken, left = "the whole budget" if fraction == 1 else f"{fraction_text(fraction)} of the whole budget", ""
    if forecast.budget_left < 1:
        left = f"; {fraction_text(forecast.budget_left)} is left now"
    remaining = forecast.budget_left - fraction
    after = f"{fraction_text(remaining)} would remain" if remaining >= 0 else "that is not enough"
    return f"A release of this plan takes {taken}{left}; {after}{' for later releases' if remaining > 0 else ''}."


def _unused_rows_warning(document: PlannedRelease, path: str) -> list[str]:
    """Return a warning that rows beyond the first of a person are left out, if the plan uses one row of each."""
    from tightrope.release.plan_text import leaves_out_rows

    neighbors = document.neighbors
    if neighbors.max_rows != 1 or not leaves_out_rows(document):
        return []
    return [
        "Warning: max_rows = 1, so one row of each person is used, and all others are left out of every answer. If a "
        f"person can have more rows, choose max_rows, or try:  tightrope suggest {path}"
    ]


def _show_answer(answer: PlannedAnswer, document: PlannedRelease, shared: Sequence[str]) -> None:
    from tightrope.release.plan_text import alone_text

    noun = document.neighbors.noun
    echo_heading(f"{escape_control_chars(answer.name)}: {displayed_title(answer)}")
    echo_lines(f"{meaning_text(answer.meaning, answer.over)}.", *([answer.clamping] if answer.clamping else []))
    noises = (
        f"{noise_label(noise, answer, document.answers, noun)}: {family_text(noise.family)}" for noise in answer.noise
    )
    echo_lines(f"noise on the {'; on the '.join(noises)}")
    error = answer.error
    if error.half_width_95 is not None:
        limit = "" if error.worst_error is None else f", maximum error ± {significant_text(error.worst_error, 3, UP)}"
        echo_lines(f"{MARGIN} ± {significant_text(error.half_width_95, 3, UP)}{limit}")
    if error.half_width_95 is None or answer.keys == "discovered":
        # Errors at each group size, and the probability that the group is suppressed.
        expected = expected_error_label(answer)
        columns = ["rows in a group" if answer.by else "rows", expected, "95 % margin ±", "P(suppressed)"]
        rows = [
            [
                fixed_text(size.rows, 0),
                error_text(size.expected_absolute_error, size.suppressed),
                error_text(size.half_width_95, size.suppressed),
                suppression_text(size.suppressed),
            ]
            for size in error.by_group_size
        ]
        print_table(*(columns, rows), left=0)
    echo_lines(*(line for line in [alone_text(answer)] if line))
    echo_lines(*(f"note: {note}" for note in answer.notes if note not in shared))


def _show_tables(tables: Sequence[PlannedAnswer]) -> None:
    """Print the margin of error of each table of ``marginals``, next to what it would be alone."""
    echo_heading("Tables that add up to each other" if len(tables) > 1 else displayed_title(tables[0]))
    echo_lines(f"{meaning_text(tables[0].meaning, tables[0].over)}.")
    rows = [
        [
            escape_control_chars(table.name),
            significant_text(table.error.half_width_95 or 0.0, 3, UP),
            "" if table.alone is None else significant_text(table.alone.alone, 3, UP),
        ]
        for table in tables
    ]
    print_table(["answer", "95 % margin of error ±", "as the only question ±"], rows)


def _show_budgets(table: Sequence[BudgetRow], title: str | None) -> None:
    """Print the margin of error under each budget: one line per question, for groups of a typical size."""
    echo_lines(*([escape_control_chars(title)] if title else []))
    margins = [_half_widths(row) for row in table]
    labels = dict.fromkeys(chain.from_iterable(margins))
    body = [[label, *(compact_text(by_label.get(label)) for by_label in margins)] for label in labels]
    body.append(
        ["attacker's success, at most", *(percent_text(row.attack_success, UP).replace(" %", "%") for row in table)]
    )
    head = ["95 % margin of error     ε", *(significant_text(row.epsilon) for row in table)]
    names, *columns = zip(head, *body, strict=True)
    first = max(len(head[0]), min(MOST_LABEL, max(map(len, names))))
    widths = [max(map(len, column)) for column in columns]
    lines = [""]
    for label, *cells in (head, *body):
        numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines += [f"{label:{first}}{numbers}"] if len(label) <= first else [label, f"{'':{first}}{numbers}"]
    typer.echo("\n".join(lines))
    notes = ["The attacker guesses whether a person is in the data; random guessing is right 50 % of the time."]
    if {label.endswith(" rows)") for label in labels} == {True, False}:
        notes.append("Where no number of rows is shown, the margin of error does not depend on it.")
    if MISSING in body[-1]:
        notes.append(f"{MISSING}: no noise meets this budget.")
    echo_lines("", *notes)


def _half_widths(row: BudgetRow) -> dict[str, float | None]:
    """Margins of error under one budget, by question and the group size that is shown."""
    lines: dict[str, float | None] = {}
    for name, margin in (row.answers or {}).items():
        if isinstance(margin, Mapping):
            size = TYPICAL_SIZE if TYPICAL_SIZE in margin else max(margin, key=int)
            lines[f"{escape_control_chars(name)} ({int(size):,} rows)"] = margin[size]
        else:
            lines[escape_control_chars(name)] = margin
    return lines


app = command_app(plan, example=PLAN_EXAMPLE)
