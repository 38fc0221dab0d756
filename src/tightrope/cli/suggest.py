"""``tightrope suggest``: a bound on the rows of a person, from noisy counts that are charged to the plan's ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from tightrope.cli.errors import Interrupted
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import echo_lines, print_json, show_progress
from tightrope.cli.release import ledger_summary
from tightrope.documents.document import plain_data
from tightrope.errors import NOTHING_SPENT, InputError

SUGGEST_EXAMPLE = """\b
Example:
  tightrope suggest visits.toml
  tightrope suggest visits.toml --largest-rows 366

Exit codes: 0 done; 2 bad input, 3 not enough budget left: nothing was charged. If the command is stopped after the
charge, the next run finishes it at no cost.
"""
Fraction = Annotated[
    str | None,
    typer.Option("--budget-fraction", metavar="NUMBER", help="The part of the whole budget to charge [default: 0.05]."),
]
LargestRows = Annotated[
    int | None,
    typer.Option(
        "--largest-rows", min=1, help="The most rows of any person, from public knowledge; adds upper limits on rows."
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="Name of this suggestion; repeating it prints the same one without a new charge."
    ),
]


def suggest(
    path: PlanPath,
    budget_fraction: Fraction = None,
    largest_rows: LargestRows = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Suggest max_rows for a plan: how many rows of one person to use, at most.

    Counts the people of the table by their number of rows, privately, and charges the plan's ledger for it. Prints the
    smallest limit that keeps all rows of about 90 % of the people, and how many rows the table has and the limit
    leaves out. Does not change the plan: copy the number that you choose into [privacy_unit].
    """
    from tightrope.release.plan_file import load_plan_file
    from tightrope.release.plan_sections import SUGGESTION_FRACTION

    try:
        file = load_plan_file(path)
        if file.document.privacy_unit.each_row:
            raise InputError.from_text("each_row", "each row is a person, so each person has one row")
        entries_before = file.last_ledger_entry()
        with show_progress("Counting people by their number of rows ..."):
            suggested = file.open_ledger_session().suggest_max_rows(
                budget_fraction=SUGGESTION_FRACTION if budget_fraction is None else budget_fraction,
                where=file.document.where,
                largest_rows=largest_rows,
                key=key,
            )
    except KeyboardInterrupt as stop:  # from the charge on, its text says what became of the budget
        raise Interrupted(str(stop) or NOTHING_SPENT) from None
    certificate, size = suggested.answers.certificate_data, suggested.size
    if as_json:
        limits = {"persons": size.persons, "rows": size.rows, "share_left_out": size.left_out}
        shares = {"max_rows": suggested.max_rows, "share_of_persons_with_all_rows": suggested.at_least}
        print_json({**shares, **limits, "warning": suggested.warning, "certificate": plain_data(certificate)})
        return
    if suggested.max_rows is None:
        echo_lines(f"No suggestion: {suggested.warning}.")
    else:
        echo_lines(
            f"Suggested: max_rows = {suggested.max_rows}", f"{suggested.warning[:1].upper()}{suggested.warning[1:]}."
        )
    echo_lines(f"{size}.", "", *ledger_summary(certificate, entries_before))
    if suggested.max_rows is not None:
        echo_lines(
            f"To use it, write max_rows = {suggested.max_rows} under [privacy_unit]; then:  tightrope plan {path}"
        )


app = command_app(suggest, example=SUGGEST_EXAMPLE)
