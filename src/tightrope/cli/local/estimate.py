"""``tightrope local estimate``: from reports to shares or a mean, with intervals; what it took, what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.local.perturb import StudyPath
from tightrope.cli.options import AsJson
from tightrope.cli.pages import Force, Page

if TYPE_CHECKING:
    from tightrope.certificates.study import FindingsDocument
    from tightrope.local.studies.findings import Findings

ESTIMATE_EXAMPLE = """\b
Example:
  tightrope local estimate study.toml reports.parquet --simultaneous --report report.html
"""
Reports = Annotated[Path, typer.Argument(metavar="REPORTS", help="The Parquet file of reports.")]
Confidence = Annotated[float, typer.Option(metavar="P", help="How often an interval holds the truth.")]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="All intervals hold together that often: wider.")]
Consistent = Annotated[
    bool, typer.Option("--consistent", help="Also shares that are >= 0 and add up to 1: biased, without intervals.")
]
PRINTED_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the options said."""

    study: StudyPath
    reports: Reports
    confidence: Confidence = 0.95
    simultaneous: Simultaneous = False
    consistent: Consistent = False
    report: Page = None
    force: Force = False
    as_json: AsJson = False


def estimate(asked: Asked) -> None:
    """Estimate shares, or a mean, from reports.

    Unbiased, with intervals that speak of those who reported; and what one report says about a person.
    """
    from tightrope.certificates.document import plain
    from tightrope.cli.output import print_json, working, write
    from tightrope.cli.pages import check_page

    check_page(asked.report, replace=asked.force)
    with working("Counting reports ..."):
        found = _found(asked).document()
    if asked.report is not None:
        from tightrope.report import study_html

        write(asked.report, study_html(found))
    if asked.as_json:
        print_json(plain(found))
        return
    _show(found)
    if asked.report is not None:
        _say(f"\nWritten: {asked.report}")


def _found(asked: Asked) -> Findings:
    from tightrope.local.on_tables.collection import tally_table
    from tightrope.local.studies.findings import Findings
    from tightrope.local.studies.study_file import load_study

    study = load_study(asked.study)
    tally = tally_table(study.mechanism, asked.reports)
    return Findings.of(
        study, tally, confidence=asked.confidence, simultaneous=asked.simultaneous, consistent=asked.consistent
    )


def _say(*lines: str) -> None:
    from tightrope.cli.output import say

    say(*lines)


def _show(found: FindingsDocument) -> None:
    """Estimates first, then what they took, then what a report tells."""
    from tightrope.certificates.printable import printable
    from tightrope.cli.output import heading
    from tightrope.report.words.study import effort_words, privacy_words, repeated_words

    _say(*([printable(found.title)] if found.title else []))
    silent = found.reports - found.answered
    _say(
        f"{found.reports:,} report{'' if found.reports == 1 else 's'}"
        + (f", {silent:,} of them silent" if silent else "")
    )
    _show_estimates(found)
    heading("What it took")
    _say(effort_words(found))
    heading("What one report says about a person")
    _say(*privacy_words(found), *repeated_words(found))


def _show_estimates(found: FindingsDocument) -> None:
    from tightrope.cli.output import print_table
    from tightrope.report.words.study import interval_words, lines

    told = lines(found)
    shaped = found.estimates[0].consistent is not None
    people = found.shares
    columns = ["category", "share"] if people else ["", "mean"]
    columns += ["from", "to", *(["people"] if people else []), *(["consistent"] if shaped else [])]
    rows = [
        [line.name, line.value, line.lower, line.upper, *([line.people] if people else []), *line.shaped]
        for line in told[:PRINTED_ROWS]
    ]
    print_table(columns, rows)
    if len(told) > PRINTED_ROWS:
        _say(f"... and {len(told) - PRINTED_ROWS} more with --json or in the --report")
    _say(interval_words(found))
    if shaped:
        _say("Consistent: moved to shares >= 0 that add up to 1. Biased (rare categories upwards), without intervals.")
