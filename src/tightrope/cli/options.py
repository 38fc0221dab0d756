"""Options that several commands share, with the same names and the same help everywhere."""

from __future__ import annotations

import csv
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, get_type_hints

import typer

from tightrope.cli.output import writable_folder
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.accounting import PrivacyLoss

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlanPath = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file; see docs/plan-file.md.")]


def command_from_dataclass(options_class: type[Any], command: Callable[[Any], None]) -> Callable[..., None]:
    """Return a function for typer that has one option for each field of a dataclass, and calls ``command`` with it."""
    hints = get_type_hints(options_class, include_extras=True)

    def run_command(**values: Any) -> None:
        command(options_class(**values))

    run_command.__doc__, run_command.__annotations__ = command.__doc__, hints
    signature = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(options_class)
    ]
    run_command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return run_command


def command_app(command: Callable[..., None], *, example: str) -> typer.Typer:
    """Return the application of one command, whose help ends with the example."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(epilog=example)(command)
    return app


@contextmanager
def open_csv_file(path: Path, remedy: str = "") -> Iterator[TextIO]:
    """Open a CSV file in UTF-8; raises ``InputError`` if it cannot be read, also while it is read within."""
    advice = f"; {remedy}" if remedy else ""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield file
    except OSError as problem:
        raise InputError.from_text(str(path), f"cannot be read ({problem.strerror}){advice}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError.from_text(str(path), f"not a CSV file in UTF-8{advice}") from None


def is_finite_number(text: str) -> bool:
    """Return whether the text is a finite number.

    >>> is_finite_number("1e3"), is_finite_number("inf"), is_finite_number("12 km")
    (True, False, False)
    """
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def parse_bounds(text: str) -> tuple[float, float]:
    """Return the two numbers of a --bounds; ``InputError`` unless they are finite and in ascending order.

    >>> parse_bounds("-60,90")
    (-60.0, 90.0)
    """
    option = f"--bounds {text}"
    try:
        lower, upper = map(float, text.split(","))
    except ValueError:
        raise InputError.from_text(option, "write two numbers with a comma between them, such as 0,100") from None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InputError.from_text(option, "both bounds must be finite, such as 0,100")
    if not lower < upper:
        raise InputError.from_text(option, "write the lower bound first; it must be below the upper one")
    return lower, upper


# ``--report`` in every command: an .html file, checked before any work is done.

HtmlReport = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write an HTML report.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
CURVE_POINTS = 25
CURVE_EPSILON = 1.0
"""The ε up to which a curve is drawn if the stated ε is 0 or infinite."""
CURVE_EXTENSION = 1.25
"""A curve ends at this times the stated ε."""


def check_report_path(path: Path | None, *, replace: bool, name: str = "--report", suffix: str = ".html") -> None:
    """Raise ``InputError`` for a report, or another file, that could not be written or that would replace a file."""
    if path is None:
        return
    option = f"{name} {path}"
    if path.suffix != suffix:
        raise InputError.from_text(option, f"the name must end in {suffix}")
    if path.is_dir():
        raise InputError.from_text(option, "is a folder; name a file")
    if path.exists() and not replace:
        raise InputError.from_text(option, "the file exists already; --force overwrites it")
    writable_folder(path.parent)


def check_picture_path(picture: Path | None) -> None:
    """Raise ``InputError`` unless the name of a picture has a supported ending."""
    if picture is not None and picture.suffix not in {".png", ".svg", ".pdf"}:
        raise InputError.from_text(f"--plot {picture}", "the name must end in .png, .svg or .pdf")


def privacy_curve_points(loss: PrivacyLoss, epsilon: float) -> list[tuple[float, float]]:
    """Return points (ε, δ) of a loss from 0 to beyond the stated ε; each δ is an upper bound."""
    top = CURVE_EXTENSION * (epsilon if 0 < epsilon < math.inf else CURVE_EPSILON)
    epsilons = [top * index / (CURVE_POINTS - 1) for index in range(CURVE_POINTS)]
    return list(zip(epsilons, loss.delta(epsilons).tolist(), strict=True))
