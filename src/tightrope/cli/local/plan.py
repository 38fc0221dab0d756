"""``tightrope local plan``: how many people a study takes; writes the study that people and collector share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tightrope.cli.options import AsJson, Force, Page, check_report_path, parse_bounds
from tightrope.cli.output import echo_lines, print_json, show_spinner, writable_folder, write_file
from tightrope.documents.numbers import UP, percent_text, significant_text
from tightrope.errors import InputError
from tightrope.local.studies.planning import plan as planned
from tightrope.local.studies.study import Study, study_document, study_text
from tightrope.reporting import Table, document_html

if TYPE_CHECKING:
    from tightrope.documents.study import Question as Asks
    from tightrope.local.studies.planning import Plan

STUDY_EXAMPLE = """\b
Example, which browser 200 000 people use, out of 16; then the same with names, as a study that can be run:
  tightrope local plan distribution --k 16 --epsilon 1 --people 200000
  tightrope local plan distribution --categories firefox,chrome,safari,other --epsilon 1 --error 0.01 --out study.toml
"""
Question = Annotated[
    str, typer.Argument(metavar="QUESTION", help="'distribution' of K categories, 'mean', or 'vector'.")
]
Epsilon = Annotated[float, typer.Option(metavar="E", help="How much one report may tell about a person; 1 is usual.")]
Count = Annotated[int | None, typer.Option("--k", metavar="K", help="How many categories there are.")]
Dimension = Annotated[
    int | None,
    typer.Option(
        metavar="D", help="How many coordinates the vectors have, of length 1 at most, whose mean is options."
    ),
]
People = Annotated[int | None, typer.Option(metavar="N", help="How many people take part: shows the error.")]
Error = Annotated[
    float | None, typer.Option(metavar="X", help="The error that will do: shows how many people it takes.")
]
Eta = Annotated[float | None, typer.Option(metavar="T", help="Also cap the total variation of a report.")]
Names = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="The categories by name; whole numbers where all of them are numbers."),
]
NamesFile = Annotated[Path | None, typer.Option(metavar="FILE", help="The same from a text file, one a line.")]
Between = Annotated[str | None, typer.Option(metavar="LOW,HIGH", help="The bounds of a mean [default: -1,1].")]
Title = Annotated[str, typer.Option(metavar="TEXT", help="The heading of the study's report.")]
Out = Annotated[
    Path | None, typer.Option(metavar="STUDY", help="Write the study there: TOML, for perturb and estimate.")
]
ONCE = "give --categories or --categories-from, once"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """The values of the options."""

    question: Question
    epsilon: Epsilon
    k: Count = None
    dimension: Dimension = None
    people: People = None
    error: Error = None
    total_variation: Eta = None
    categories: Names = None
    categories_from: NamesFile = None
    bounds: Between = None
    title: Title = ""
    out: Out = None
    report: Page = None
    force: Force = False
    as_json: AsJson = False


def plan(options: StudyOptions) -> None:
    """How many people a study takes, and how many any study would.

    The best mechanism by exact variance, beside what no mechanism can do. With --out, the study that people and
    collector share.
    """
    study = _load_study(options)
    unit = 1.0 if study is None else study.error_unit
    with show_spinner("Comparing mechanisms ..."):
        k = options.k if study is None else study.k
        error = None if options.error is None else options.error / unit
        found = planned(
            options.question,
            epsilon=options.epsilon,
            people=options.people,
            error=error,
            k=k,
            dimension=options.dimension,
            total_variation=options.total_variation,
        )
    if options.out is not None and study is not None:
        write_file(options.out, study_text(study))
    if options.report is not None and study is not None:
        write_file(options.report, _study_page(study, found, unit))
    if options.as_json:
        written = {} if options.out is None else {"study": str(options.out)}
        print_json({
            "epsilon": options.epsilon,
            "question": found.question,
            "mechanism": found.option.name,
            "people": found.people,
            "error": found.error * unit,
            "least_people": found.least_people,
            "least_error": found.least_error * unit,
            "least_people_interactive": found.in_turn.people,
            "least_error_interactive": found.in_turn.error * unit,
            "error_without_reports": found.guess * unit,
            "report_bits": found.option.bits,
            **written,
        })  # fmt: skip
        return
    echo_lines(*_output_lines(found, unit))
    if options.out is not None:
        echo_lines(f"\nWrote {options.out}. Share it with the people who are options, then:")
        echo_lines(f"  tightrope local perturb {options.out} DATA --column ANSWER --out reports.parquet")
    if options.report is not None:
        echo_lines(f"Written: {options.report}")


def _load_study(options: StudyOptions) -> Study | None:
    """Return the study if its answers are named; raise if it could not be run."""
    names = _parse_names(options)
    if names is None and options.bounds is None:
        for name, path in (("out", options.out), ("report", options.report)):
            if path is not None:
                remedy = "--categories a,b,c or --bounds LOW,HIGH: a study must say what may be answered"
                raise InputError(name, str(path), "left out without the answers", remedy)
        return None
    if options.k is not None and options.k != len(names or ()):
        wanted = "left out for a mean" if names is None else f"left out, or {len(names)} like the categories"
        raise InputError("k", options.k, wanted, "leave --k out")
    _check_out(options)
    check_report_path(options.report, replace=options.force)
    eta, given, question = options.total_variation, names or (), cast("Asks", options.question)
    bounds = None if options.bounds is None else parse_bounds(options.bounds)
    return Study(question, options.epsilon, given, bounds, total_variation=eta, title=options.title)


def _check_out(options: StudyOptions) -> None:

    if options.out is None:
        return
    if options.out.suffix != ".toml":
        raise InputError("out", str(options.out), "a name that ends in .toml")
    if options.out.exists() and not options.force:
        raise InputError("out", str(options.out), "a file that does not exist yet", "--force replaces it")
    writable_folder(options.out.parent)


def _parse_names(options: StudyOptions) -> tuple[str | int, ...] | None:
    """The names on the command line or in the file; blanks around them do not count."""
    path = options.categories_from
    if options.categories is not None:
        if path is not None:
            raise InputError("categories", options.categories, "given once", ONCE)
        names = [name.strip() for name in options.categories.split(",")]
    elif path is None:
        return None
    else:
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except OSError as problem:
            raise InputError("categories-from", str(path), "a file that can be read", str(problem.strerror)) from None
        except UnicodeDecodeError:
            raise InputError("categories-from", str(path), "a text file in UTF-8, one name a line") from None
        names = [line.strip() for line in lines if line.strip()]
    if not all(names):
        raise InputError(
            "categories", options.categories, "names between commas", "write '' into the study for no text"
        )
    return tuple(map(int, names)) if all(map(_is_whole, names)) else tuple(names)


def _is_whole(name: str) -> bool:
    """Return whether the text is an integer in canonical form: 7 or -7, not 07 or +7.

    >>> _is_whole("-7"), _is_whole("07"), _is_whole("7.0")
    (True, False, False)
    """
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(name)) == name


def _study_page(study: Study, found: Plan, unit: float) -> str:
    """The study and what it takes, as a page."""
    error = significant_text(found.error * unit, 4, UP)
    limits = {
        "Any mechanism, if people do not see each other's reports: at least": found.least_people,
        "Any mechanism, if people may see earlier reports: at least": found.in_turn.people,
    }
    known = [[name, f"{people:,}"] for name, people in limits.items() if not found.guess_suffices]
    rows = [[f"This study: {found.option.name}", f"{found.people:,}"], *known]
    taken = Table(f"People it takes for an error of {error}, whatever the population", ("Mechanism", "People"), rows)
    own = study.guarantee
    kept = Table(
        f"What one report by {found.option.name} says, as it is sampled",
        ("One report", "At most"),
        [
            ["Privacy loss ε", significant_text(own.epsilon, 6, UP)],
            ["Total variation η", significant_text(own.total_variation, 6, UP)],
            ["A guess between two answers is right", percent_text(own.attack_success, UP)],
        ],
    )
    return document_html(study_document(study), tables=[taken, kept])


def _output_lines(found: Plan, unit: float) -> list[str]:
    people = "1 person" if found.people == 1 else f"{found.people:,} people"
    errors = [f"{least * unit:.4g}" for least in (found.least_error, found.in_turn.error)]
    below = errors[0] if errors[0] == errors[1] else f"{errors[0]} ({errors[1]} where they see earlier reports)"
    return [
        *found.describe_plan(unit),
        f"Reports of {found.option.bits} bit{'s' if found.option.bits > 1 else ''}; with {people} "
        f"no error is below {below}.",
    ]
