"""``tightrope release``: charge the budget, draw the noise, print the answers, write the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson, PlanPath

if TYPE_CHECKING:
    from tightrope.certificates.release import ReleaseResult
    from tightrope.report.words.answers import Answer

RELEASE_EXAMPLE = """\b
Example:
  tightrope release examples/census/plan.toml --out /tmp/census
"""
Out = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Where to write report.html and certificate.json [default: beside PLAN]."),
]
PRINTED_ROWS = 20
REPORT, CERTIFICATE = "report.html", "certificate.json"


def release(path: PlanPath, out: Out = None, as_json: AsJson = False) -> None:
    """Draw the noise and write private answers and a report.

    Spends the budget of the plan, each time: no ledger remembers an earlier run yet.
    """
    from tightrope.certificates.document import plain
    from tightrope.cli.output import print_document, working, writable
    from tightrope.release.documents.plan_file import load
    from tightrope.report import html

    file = load(path)
    folder = writable(file.folder if out is None else Path(out))
    html({})  # a report that cannot be made must fail before anything is spent
    with working("Choosing the least noise ..."):
        plan = file.plan()
    with working("Reading the table and drawing noise ..."):
        answers = plan.release()
    result = answers.result(file.title)
    if as_json:
        print_document(result)
    else:
        _show(plain(result), file.title, folder)
    with working("Writing the report ..."):
        _write(folder, result)


def _write(folder: Path, result: ReleaseResult) -> None:
    from tightrope.certificates.document import written
    from tightrope.cli.output import write
    from tightrope.report import html

    write(folder / CERTIFICATE, written(result.certificate))
    write(folder / REPORT, html(result))


def _show(document: Mapping[str, Any], title: str | None, folder: Path) -> None:
    """Answers first, then what is promised, then where everything is."""
    from tightrope.cli.output import printable, say
    from tightrope.report.words.answers import read_answers

    say(*([printable(title)] if title else []))
    for answer in read_answers(document):
        _show_answer(answer, folder / REPORT)
    _show_promise(document["certificate"])
    say(f"\nWritten: {folder / REPORT} and {folder / CERTIFICATE}")
    say(
        f"{document['certificate'].get('ledger', 'not recorded in a ledger')}: releasing again spends the budget again."
    )


def _show_answer(answer: Answer, report: Path) -> None:
    from tightrope.cli.output import heading, print_table, say
    from tightrope.report.words.wording import heading as asked

    heading(asked(answer))
    shown = [[*row.labels, *_value(answer, row.value, row.half_width)] for row in answer.rows[:PRINTED_ROWS]]
    print_table([*answer.by, "value", "95 % within"], shown, left=len(answer.by))
    if len(answer.rows) > PRINTED_ROWS:
        say(f"... and {len(answer.rows) - PRINTED_ROWS} more in {report}")


def _value(answer: Answer, value: float | None, half_width: float | None) -> list[str]:
    from tightrope.report.words.digits import UP, fixed

    if value is None:
        return ["withheld", ""]
    return [fixed(value, answer.decimals), "" if half_width is None else f"± {fixed(half_width, answer.decimals, UP)}"]


def _show_promise(certificate: Mapping[str, Any]) -> None:
    from tightrope.cli.output import heading, say
    from tightrope.report.words.promise import promise

    words = promise(certificate)
    heading("The promise")
    say(f"An attacker who guesses whether you are in the data is right at most {words.success} of the time.")
    say(f"epsilon {words.epsilon}: {words.epsilon_meaning}", f"delta {words.delta}: {words.delta_meaning}")
    say(*([f"{words.protected}."] if words.protected else []), *words.facts)
