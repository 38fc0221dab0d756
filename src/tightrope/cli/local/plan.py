"""``tightrope local plan``: sample size of a study; writes the study file for participants and collector."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tightrope.cli.options import AsJson, Force, HtmlReport, check_report_path, parse_bounds
from tightrope.cli.output import echo_lines, print_json, show_spinner, write_file
from tightrope.documents.numbers import DOWN, UP, percent_text, significant_text, terminal_text
from tightrope.errors import InputError, suggest_nearest
from tightrope.local.studies.planning import plan as find_best_plan
from tightrope.local.studies.study import Study, study_document, study_text
from tightrope.reporting import Table, document_html

if TYPE_CHECKING:
    from tightrope.documents.study import Question as QuestionKind
    from tightrope.local.studies.planning import Plan

STUDY_EXAMPLE = """\b
Example: estimate the proportions of 16 browsers from 200,000 people. The second command also writes a study file:
  tightrope local plan distribution --k 16 --epsilon 1 --people 200000
  tightrope local plan distribution --categories firefox,chrome,safari,other --epsilon 1 --error 0.01 --out study.toml
"""
INTEGER_NAME = re.compile("0|-?[1-9][0-9]{0,17}")
"""An integer in canonical form: 7 or -7, not 07 or +7."""
QUESTIONS = ("distribution", "mean", "vector")
Question = Annotated[
    str,
    typer.Argument(
        metavar="QUESTION",
        help="'distribution' (proportions of K categories), 'mean' (of numbers) or 'vector' (mean of vectors).",
    ),
]
Epsilon = Annotated[float, typer.Option(metavar="E", help="epsilon of one report (epsilon-LDP), for example 1.")]
NumCategories = Annotated[int | None, typer.Option("--k", metavar="K", help="Number of categories.")]
Dimension = Annotated[
    int | None,
    typer.Option(
        metavar="D", help="Dimension of the vectors whose mean is estimated; each has a Euclidean norm of at most 1."
    ),
]
People = Annotated[int | None, typer.Option(metavar="N", help="Number of participants; prints the error.")]
Error = Annotated[
    float | None,
    typer.Option(metavar="X", help="Target root mean square error; prints the required number of participants."),
]
TotalVariation = Annotated[float | None, typer.Option(metavar="T", help="Also limit the total variation of a report.")]
CategoryNames = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Names of the categories. If all are integers, answers are read as integers."),
]
CategoriesFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Names of the categories from a text file, one per line.")
]
Bounds = Annotated[
    str | None, typer.Option(metavar="LOW,HIGH", help="Bounds of the numbers whose mean is estimated [default: -1,1].")
]
Title = Annotated[str, typer.Option(metavar="TEXT", help="Title of the study and of its report.")]
Out = Annotated[Path | None, typer.Option(metavar="STUDY", help="Write a study file (.toml) for perturb and estimate.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """Options of ``tightrope local plan``."""

    question: Question
    epsilon: Epsilon
    k: NumCategories = None
    dimension: Dimension = None
    people: People = None
    error: Error = None
    total_variation: TotalVariation = None
    categories: CategoryNames = None
    categories_from: CategoriesFile = None
    bounds: Bounds = None
    title: Title = ""
    out: Out = None
    report: HtmlReport = None
    force: Force = False
    as_json: AsJson = False

    def __post_init__(self) -> None:
        if self.question not in QUESTIONS:
            advice = suggest_nearest(self.question, QUESTIONS) or f"give one of {', '.join(QUESTIONS)}"
            raise InputError.from_text("QUESTION", f"unknown question {self.question!r}; {advice}")
        if (self.people is None) == (self.error is None):
            given = "neither is given" if self.people is None else "both are given"
            raise InputError.from_text("--people, --error", f"{given}; give exactly one; the other is computed")

    def build_study(self) -> Study | None:
        """Return the study, or None if neither categories nor bounds are given.

        Raises ``InputError`` for options that conflict and for output paths that cannot be written.
        """
        names = self.category_names()
        if names is None and self.bounds is None:
            for name, path in (("--out", self.out), ("--report", self.report)):
                if path is not None:
                    advice = "--categories (or --categories-from), or --bounds for a mean"
                    raise InputError.from_text(name, f"needs the possible answers: give {advice}")
            return None
        if self.k is not None and self.k != len(names or ()):
            if names is not None:
                text = f"differs from the number of categories, {len(names)}; leave --k out"
                raise InputError.from_text(f"--k {self.k}", text)
            if self.question == "distribution":
                text = "is only for 'mean'; for a distribution give --categories"
                raise InputError.from_text(f"--bounds {self.bounds}", text)
            raise InputError.from_text(f"--k {self.k}", "is only for 'distribution'; leave --k out")
        check_report_path(self.out, replace=self.force, name="--out", suffix=".toml")
        check_report_path(self.report, replace=self.force)
        bounds = None if self.bounds is None else parse_bounds(self.bounds)
        return Study(
            cast("QuestionKind", self.question),
            self.epsilon,
            names or (),
            bounds,
            total_variation=self.total_variation,
            title=self.title,
        )

    def category_names(self) -> tuple[str | int, ...] | None:
        """Return the names on the command line or in the file, without surrounding spaces; None if there are none."""
        path = self.categories_from
        if self.categories is not None:
            if path is not None:
                raise InputError.from_text("--categories", "cannot be combined with --categories-from")
            names = [name.strip() for name in self.categories.split(",")]
        elif path is None:
            return None
        else:
            try:
                lines = path.read_text(encoding="utf-8").split("\n")
            except OSError as problem:
                option = f"--categories-from {path}"
                raise InputError.from_text(option, f"cannot be read ({problem.strerror})") from None
            except UnicodeDecodeError:
                option = f"--categories-from {path}"
                raise InputError.from_text(option, "expected a text file in UTF-8 with one name per line") from None
            names = [line.strip() for line in lines if line.strip()]
        if not all(names):
            text = "a name between two commas is empty; to use the empty text as a category, write '' in the study file"
            raise InputError.from_text(f"--categories {self.categories}", text)
        return tuple(map(int, names)) if all(map(INTEGER_NAME.fullmatch, names)) else tuple(names)


def plan(options: StudyOptions) -> None:
    """Compute the sample size of a study.

    Chooses the mechanism with the smallest variance and compares it with a lower bound for every mechanism. With --out,
    writes the study file that participants and collector share.
    """
    study = options.build_study()
    # Errors are computed for numbers in [−1, 1].
    error_scale = 1.0 if study is None else study.error_unit
    with show_spinner("Comparing mechanisms ..."):
        k = options.k if study is None else study.k
        error = None if options.error is None else options.error / error_scale
        best_plan = find_best_plan(
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
        write_file(options.report, _study_page(study, best_plan, error_scale))
    if options.as_json:
        written = {} if options.out is None else {"study": str(options.out)}
        print_json({
            "epsilon": options.epsilon,
            "question": best_plan.question,
            "mechanism": best_plan.option.name,
            "people": best_plan.people,
            "error": best_plan.error * error_scale,
            "least_people": best_plan.least_people,
            "least_error": best_plan.least_error * error_scale,
            "least_people_interactive": best_plan.in_turn.people,
            "least_error_interactive": best_plan.in_turn.error * error_scale,
            "error_without_reports": best_plan.guess * error_scale,
            "report_bits": best_plan.option.bits,
            **written,
        })  # fmt: skip
        return
    echo_lines(*_output_lines(best_plan, error_scale))
    if options.out is not None:
        echo_lines(f"\nWritten: {options.out}. Share it with the participants. To randomize a column of answers:")
        echo_lines(f"  tightrope local perturb {options.out} DATA --column ANSWER --out reports.parquet")
    if options.report is not None:
        echo_lines(f"Written: {options.report}")


def _study_page(study: Study, best_plan: Plan, error_scale: float) -> str:
    """Return the HTML report: the study, its sample size and the privacy of one report."""
    error = significant_text(best_plan.error * error_scale, 4, UP)
    lower_bounds = {
        "Lower bound for every mechanism, if people do not see each other's reports": best_plan.least_people,
        "Lower bound for every mechanism, if people may see earlier reports": best_plan.in_turn.people,
    }
    rows = [[f"This study: {best_plan.option.name}", f"{best_plan.people:,}"]]
    if not best_plan.guess_suffices:  # otherwise both lower bounds are 0
        rows += [[name, f"{people:,}"] for name, people in lower_bounds.items()]
    caption = f"Participants for a root mean square error of at most {error}, for every population"
    sample_size = Table(caption, ("Mechanism", "People"), rows)
    guarantee = study.guarantee
    privacy = Table(
        f"Privacy of one report by {best_plan.option.name}, including rounding",
        ("One report", "At most"),
        [
            ["Privacy loss ε", significant_text(guarantee.epsilon, 6, UP)],
            ["Total variation η", significant_text(guarantee.total_variation, 6, UP)],
            ["Success rate of a guess between two equally likely answers", percent_text(guarantee.attack_success, UP)],
        ],
    )
    return document_html(study_document(study), tables=[sample_size, privacy])


def _output_lines(best_plan: Plan, error_scale: float) -> list[str]:
    """Return the printed lines: the plan, the size of a report, and the lower bound on the error."""
    people = "1 person" if best_plan.people == 1 else f"{best_plan.people:,} people"
    lower_bounds = (best_plan.least_error, best_plan.in_turn.error)
    errors = [terminal_text(bound * error_scale, 4, DOWN) for bound in lower_bounds]
    alternative = "" if errors[0] == errors[1] else f" ({errors[1]} if people may see earlier reports)"
    return [
        *best_plan.describe_plan(error_scale),
        f"With {people}, every mechanism has an error of at least {errors[0]}{alternative}.",
        f"Size of a report: {best_plan.option.bits} bit{'s' if best_plan.option.bits > 1 else ''}.",
    ]
