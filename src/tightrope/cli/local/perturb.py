"""``tightrope local perturb`` randomizes answers on the device; ``estimate`` estimates from the reports.

``estimate`` computes proportions or a mean, with intervals, accuracy and privacy.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.options import AsJson, Force, HtmlReport, check_report_path
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
from tightrope.documents.numbers import UP, percent_text, terminal_text
from tightrope.errors import SchemaError
from tightrope.local.collection import perturb_table, tally_table
from tightrope.local.studies.study import Findings, load_study
from tightrope.reporting import study_html
from tightrope.reporting.wording.study import (
    accuracy_sentences,
    estimate_lines,
    interval_words,
    privacy_words,
    repeated_words,
)
from tightrope.tables.sources.csv import is_csv_path, open_binary_file

if TYPE_CHECKING:
    from tightrope.documents.study import FindingsDocument
    from tightrope.local.studies.study import Study

PERTURB_EXAMPLE = """\b
Example:
  tightrope local perturb study.toml answers.parquet --column browser --out reports.parquet
"""
StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file of 'local plan'; see docs/local.md.")]
DataPath = Annotated[str, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file, one row per person.")]
AnswerColumn = Annotated[str, typer.Option(metavar="COLUMN", help="The column with the answers.")]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table in a .duckdb file.")]
ReportsOutput = Annotated[
    Path, typer.Option(metavar="FILE", help="Write the reports there; a .parquet file that does not exist.")
]
MATCHING_TEXT = (
    "Categories are matched exactly, capitals and spaces included; any other value is replaced with a random category."
)
REPORTS_EXIST_REMEDY = (
    "send the existing reports, or delete the file if it was not shared: each run makes new random reports"
)


def perturb(
    study_path: StudyPath,
    data: DataPath,
    column: AnswerColumn,
    out: ReportsOutput,
    table: TableName = None,
    as_json: AsJson = False,
) -> None:
    """Randomize answers: write one randomized report per row; no other column is copied.

    Missing or unknown values are reported as a random category, or as the middle of the range; out-of-range numbers are
    clamped. The order of rows may change; do not count on this for shuffle-model amplification.
    """
    from tightrope.tables import open_source

    check_new_parquet_path(out, REPORTS_EXIST_REMEDY)
    study = load_study(study_path).with_mechanism_name
    with show_spinner("Randomizing answers ..."):
        source = open_source(data, table=table)
        try:
            source.schema.find_column(column)
        except SchemaError as error:
            raise SchemaError.from_text("--column", str(error).removeprefix("column: ")) from None
        if is_csv_path(data):
            kind = _csv_column_kind(study)
            if kind != "text":
                _check_column_has_numbers(Path(data), column)
            source = open_source(data, types={column: kind})
        count = perturb_table(study.mechanism, source, column, out, categories=study.categories or None)
    guarantee = study.guarantee
    facts = {
        "mechanism": study.choice,
        "report_bits": study.mechanism.report_bits,
        "epsilon": guarantee.epsilon,
        "total_variation": guarantee.total_variation,
        "attack_success": guarantee.attack_success,
    }
    if as_json:
        print_json({"reports": str(out), "count": count, **facts})
        return
    echo_lines(f"{count:,} report{'' if count == 1 else 's'} by {study.choice}: {out}")
    # Print the guarantee: the participant may not be the author of the study.
    success, epsilon = percent_text(guarantee.attack_success, UP), terminal_text(guarantee.epsilon, 4, UP)
    echo_lines(
        f"Each report has a privacy loss of at most epsilon {epsilon}: a guess between two answers is right at most "
        f"{success} of the time."
    )
    if _csv_column_kind(study) == "text":
        echo_lines(MATCHING_TEXT)
    echo_lines(
        "Send only these reports. If people are asked the same question again, send these reports again instead of "
        "making new ones."
    )


def _check_column_has_numbers(path: Path, column: str) -> None:
    """Raise ``SchemaError`` if a CSV file's column has text and no number: every row would report a replacement.

    A missing value, or text in a column of numbers, is reported as the middle of the range or as a random category.
    """
    delimiter = "\t" if ".tsv" in path.suffixes[-2:] else ","
    with io.TextIOWrapper(open_binary_file(path), newline="", encoding="utf-8-sig", errors="replace") as file:
        has_text = False
        for row in csv.DictReader(file, delimiter=delimiter):
            cell = (row.get(column) or "").strip()
            try:
                float(cell)
            except ValueError:
                has_text = has_text or bool(cell)
            else:
                return
    if has_text:
        raise SchemaError.from_text(
            f"column {column!r}", "this study needs numbers, but the column has only text; name another column"
        )


def _csv_column_kind(study: Study) -> str:
    """Return the type of the answers in a CSV column, since CSV files have no types."""
    if study.bounds is not None:
        return "number"
    return "text" if isinstance(study.categories[0], str) else "integer"


ESTIMATE_EXAMPLE = """\b
Example:
  tightrope local estimate study.toml reports.parquet --simultaneous --report report.html
"""
ReportsPath = Annotated[Path, typer.Argument(metavar="REPORTS", help="The Parquet file of reports.")]
Confidence = Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")]
Simultaneous = Annotated[bool, typer.Option("--simultaneous", help="Simultaneous intervals, which are wider.")]
Consistent = Annotated[
    bool,
    typer.Option(
        "--consistent", help="Also print proportions that are >= 0 and add up to 1; they are biased, without intervals."
    ),
]
MAX_PRINTED_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """Options of ``tightrope local estimate``."""

    study: StudyPath
    reports: ReportsPath
    confidence: Confidence = 0.95
    simultaneous: Simultaneous = False
    consistent: Consistent = False
    report: HtmlReport = None
    force: Force = False
    as_json: AsJson = False


def estimate(options: EstimateOptions) -> None:
    """Estimate proportions, or a mean, from reports.

    Prints unbiased estimates with confidence intervals for the respondents, and the privacy loss of one report.
    """
    check_report_path(options.report, replace=options.force)
    with show_spinner("Counting reports ..."):
        study = load_study(options.study)
        try:
            tally = tally_table(study.mechanism, options.reports)
        except SchemaError as error:
            advice = "give a file written by: tightrope local perturb"
            text = str(error).removeprefix("column: ")
            raise SchemaError.from_text(str(options.reports), f"{text}; {advice}") from None
        findings = Findings.from_counts(
            study,
            tally,
            confidence=options.confidence,
            simultaneous=options.simultaneous,
            consistent=options.consistent,
        ).to_document()
    if options.report is not None:
        write_file(options.report, study_html(findings))
    if options.as_json:
        print_json(plain_data(findings))
        return
    echo_lines(*([escape_control_chars(findings.title)] if findings.title else []))
    missing_count = findings.reports - findings.answered
    echo_lines(
        f"{findings.reports:,} report{'' if findings.reports == 1 else 's'}"
        + (f", {missing_count:,} of them without an answer" if missing_count else "")
    )
    _print_estimates(findings)
    echo_heading("Accuracy")
    echo_lines(accuracy_sentences(findings))
    echo_heading("Privacy of one report")
    echo_lines(*privacy_words(findings), *repeated_words(findings))
    if options.report is not None:
        echo_lines(f"\nWritten: {options.report}")


def _print_estimates(findings: FindingsDocument) -> None:
    """Print the estimates with their intervals."""
    estimates = estimate_lines(findings)
    has_consistent = findings.estimates[0].consistent is not None
    has_categories = findings.estimates_proportions
    columns = ["category", "proportion"] if has_categories else ["", "mean"]
    columns += ["from", "to", *(["people"] if has_categories else []), *(["consistent"] if has_consistent else [])]
    rows = [
        [
            line.name,
            line.value,
            line.lower,
            line.upper,
            *([line.people] if has_categories else []),
            *line.consistent_share,
        ]
        for line in estimates[:MAX_PRINTED_ROWS]
    ]
    print_table(columns, rows)
    if len(estimates) > MAX_PRINTED_ROWS:
        echo_lines(f"... and {len(estimates) - MAX_PRINTED_ROWS} more with --json or in the --report")
    echo_lines(interval_words(findings))
    if has_consistent:
        echo_lines(
            "Consistent: projected onto proportions that are >= 0 and add up to 1. Biased (rare categories upwards), "
            "without intervals."
        )
