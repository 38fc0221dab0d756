"""``tightrope local perturb``: what each person does to their own answer before it leaves the device."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.options import AsJson, Force, Page, check_report_path
from tightrope.cli.output import (
    check_new_parquet_path,
    echo_heading,
    echo_lines,
    print_json,
    print_table,
    show_spinner,
    write_file,
)
from tightrope.documents.document import plain_data
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, percent_text, significant_text
from tightrope.errors import SchemaError
from tightrope.local.collection import perturb_table, tally_table
from tightrope.local.studies.findings import Findings
from tightrope.local.studies.study import load_study
from tightrope.reporting import study_html
from tightrope.reporting.wording.study import (
    effort_words,
    estimate_lines,
    interval_words,
    privacy_words,
    repeated_words,
)

if TYPE_CHECKING:
    from tightrope.documents.study import FindingsDocument
    from tightrope.local.studies.study import Study

PERTURB_EXAMPLE = """\b
Example:
  tightrope local perturb study.toml answers.parquet --column browser --out reports.parquet
"""
StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study that everybody shares; see docs/local.md.")]
Data = Annotated[str, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file, a row for each person.")]
Column = Annotated[str, typer.Option(metavar="COLUMN", help="The column with the answers.")]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table, in a .duckdb file.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the reports: Parquet.")]
MATCHED = "Categories are matched exactly, capitals and spaces included; whatever is none of them reports a random one."
AGAIN = "send the reports that were made, or remove the file if nobody has seen it: each run draws new ones"


def perturb(
    study: StudyPath,
    data: Data,
    column: Column,
    out: Out,
    table: TableName = None,
    as_json: AsJson = False,
) -> None:
    """Make one report for each row: all that a collector may see.

    Every row makes one: a value that is missing or unknown as a random category, or as the middle of the range; numbers
    beyond the bounds as the nearer one. No other column is written. The order of rows may change: that is no shuffling.
    """
    from tightrope.tables import open_source

    check_new_parquet_path(out, AGAIN)
    asked = load_study(study)
    with show_spinner("Drawing reports ..."):
        source = open_source(data, table=table)
        source.schema.find_column(column)
        if Path(data).suffix.lower() == ".csv":
            kind = _csv_column_kind(asked)
            if kind != "text":
                _refuse_text(Path(data), column)
            source = open_source(data, types={column: kind})
        made = perturb_table(asked.mechanism, source, column, out, categories=asked.categories or None)
    told = asked.guarantee
    facts = {
        "mechanism": asked.with_mechanism_name.choice,
        "report_bits": asked.mechanism.report_bits,
        "epsilon": told.epsilon,
        "total_variation": told.total_variation,
        "attack_success": told.attack_success,
    }
    if as_json:
        print_json({"reports": str(out), "count": made, **facts})
        return
    echo_lines(f"{made:,} report{'' if made == 1 else 's'} by {asked.with_mechanism_name.choice}: {out}")
    # The guarantee of a report, printed because the study may have been written by others.

    success = percent_text(told.attack_success, UP)
    echo_lines(
        f"Each says at most epsilon {significant_text(told.epsilon, 4, UP)} about a person: "
        f"a guess between two answers is right at most {success} of the time."
    )
    if _csv_column_kind(asked) == "text":
        echo_lines(MATCHED)
    echo_lines("Send these and nothing else. Who is asked the same again sends the same report again, not a fresh one.")


def _refuse_text(path: Path, column: str) -> None:
    """``SchemaError`` where a CSV file's column has text and not one number: no row would report what it has.

    A value that is missing, or is not a number in a column of numbers, is replaced: it is reported as the middle of the
    range, or as a random category.
    """
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        filled = False
        for row in csv.DictReader(lines):
            cell = (row.get(column) or "").strip()
            try:
                float(cell)
            except ValueError:
                filled = filled or bool(cell)
            else:
                return
    if filled:
        raise SchemaError("column", column, "of numbers for this study, but it has text alone", "name another column")


def _csv_column_kind(asked: Study) -> str:
    """The kind of values in a CSV column, since CSV files have no types."""
    if asked.bounds is not None:
        return "number"
    return "text" if isinstance(asked.categories[0], str) else "integer"


# ``tightrope local estimate``: from reports to shares or a mean, with intervals; what it took, what it tells.

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
class EstimateOptions:
    """The values of the options."""

    study: StudyPath
    reports: Reports
    confidence: Confidence = 0.95
    simultaneous: Simultaneous = False
    consistent: Consistent = False
    report: Page = None
    force: Force = False
    as_json: AsJson = False


def estimate(asked: EstimateOptions) -> None:
    """Estimate shares, or a mean, from reports.

    Unbiased, with intervals that speak of those who reported; and what one report says about a person.
    """
    check_report_path(asked.report, replace=asked.force)
    with show_spinner("Counting reports ..."):
        study = load_study(asked.study)
        tally = tally_table(study.mechanism, asked.reports)
        found = Findings.from_counts(
            study, tally, confidence=asked.confidence, simultaneous=asked.simultaneous, consistent=asked.consistent
        ).to_document()
    if asked.report is not None:
        write_file(asked.report, study_html(found))
    if asked.as_json:
        print_json(plain_data(found))
        return
    # Estimates first, then what they took, then what a report tells.
    echo_lines(*([escape_control_chars(found.title)] if found.title else []))
    silent = found.reports - found.answered
    echo_lines(
        f"{found.reports:,} report{'' if found.reports == 1 else 's'}"
        + (f", {silent:,} of them silent" if silent else "")
    )
    _show_estimates(found)
    echo_heading("What it took")
    echo_lines(effort_words(found))
    echo_heading("What one report says about a person")
    echo_lines(*privacy_words(found), *repeated_words(found))
    if asked.report is not None:
        echo_lines(f"\nWritten: {asked.report}")


def _show_estimates(found: FindingsDocument) -> None:

    told = estimate_lines(found)
    shaped = found.estimates[0].consistent is not None
    people = found.estimates_shares
    columns = ["category", "share"] if people else ["", "mean"]
    columns += ["from", "to", *(["people"] if people else []), *(["consistent"] if shaped else [])]
    rows = [
        [line.name, line.value, line.lower, line.upper, *([line.people] if people else []), *line.consistent_share]
        for line in told[:PRINTED_ROWS]
    ]
    print_table(columns, rows)
    if len(told) > PRINTED_ROWS:
        echo_lines(f"... and {len(told) - PRINTED_ROWS} more with --json or in the --report")
    echo_lines(interval_words(found))
    if shaped:
        echo_lines(
            "Consistent: moved to shares >= 0 that add up to 1. Biased (rare categories upwards), without intervals."
        )
