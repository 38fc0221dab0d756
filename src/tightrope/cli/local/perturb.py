"""``tightrope local perturb``: what each person does to their own answer before it leaves the device."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.options import AsJson

if TYPE_CHECKING:
    from tightrope.certificates import Guarantee
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
    from tightrope.cli.output import new_parquet, print_json, say, working
    from tightrope.local.studies.study_file import load_study

    new_parquet(out, AGAIN)
    asked = load_study(study)
    with working("Drawing reports ..."):
        made = _perturbed(asked, data, column, out, table)
    told = asked.guarantee
    facts = {
        "mechanism": asked.settled.choice,
        "report_bits": asked.mechanism.report_bits,
        "epsilon": told.epsilon,
        "total_variation": told.total_variation,
        "attack_success": told.attack_success,
    }
    if as_json:
        print_json({"reports": str(out), "count": made, **facts})
        return
    say(f"{made:,} report{'' if made == 1 else 's'} by {asked.settled.choice}: {out}")
    say(_price(told))
    if _kind(asked) == "text":
        say(MATCHED)
    say("Send these and nothing else. Who is asked the same again sends the same report again, not a fresh one.")


def _price(told: Guarantee) -> str:
    """What a report says about a person: whoever runs a study that others wrote sees what it asks for."""
    from tightrope.certificates.words.digits import UP, percent, significant

    success = percent(told.attack_success, UP)
    return (
        f"Each says at most epsilon {significant(told.epsilon, 4, UP)} about a person: "
        f"a guess between two answers is right at most {success} of the time."
    )


def _perturbed(asked: Study, data: str, column: str, out: Path, table: str | None) -> int:
    from tightrope.engines import open_source
    from tightrope.local.on_tables.collection import perturb_table

    source = open_source(data, table=table)
    source.schema.column(column)
    if Path(data).suffix.lower() == ".csv":
        kind = _kind(asked)
        if kind != "text":
            _refuse_text(Path(data), column)
        source = open_source(data, types={column: kind})
    return perturb_table(asked.mechanism, source, column, out, categories=asked.categories or None)


def _refuse_text(path: Path, column: str) -> None:
    """``SchemaError`` where a CSV file's column has text and not one number: no row would report what it has.

    A value that is missing, or is no number among some that are, says nothing: it is reported as the middle of the
    range, or as a random category.
    """
    from tightrope.errors import SchemaError

    with path.open(newline="", encoding="utf-8-sig", errors="replace") as lines:
        filled = False
        for row in csv.DictReader(lines):
            cell = (row.get(column) or "").strip()
            if _is_number(cell):
                return
            filled = filled or bool(cell)
    if filled:
        raise SchemaError("column", column, "of numbers for this study, but it has text alone", "name another column")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _kind(asked: Study) -> str:
    """What a CSV file's column holds, which has no types."""
    if asked.between is not None:
        return "number"
    return "text" if isinstance(asked.categories[0], str) else "integer"
