"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tightrope.cli.output import writable_folder
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.accounting import PrivacyLoss

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlanPath = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file; see docs/plan-file.md.")]


def from_fields(asked: type[Any], command: Callable[[Any], None]) -> Callable[..., None]:
    """A command for typer with one option for each field of a dataclass, for commands with many."""
    hints = get_type_hints(asked, include_extras=True)

    def run_command(**values: Any) -> None:
        command(asked(**values))

    run_command.__doc__, run_command.__annotations__ = command.__doc__, hints
    signature = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(asked)
    ]
    run_command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return run_command


def command_app(command: Callable[..., None], *, example: str) -> typer.Typer:
    """The application of one command, whose help ends with the example."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(epilog=example)(command)
    return app


def ends_of(text: str) -> tuple[float, float]:
    """The two numbers of a --bounds; ``InputError`` unless they are finite.

    >>> ends_of("-60,90")
    (-60.0, 90.0)
    """
    try:
        lower, upper = map(float, text.split(","))
    except ValueError:
        raise InputError("bounds", text, "two numbers with a comma between them", "say --bounds 0,100") from None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InputError("bounds", text, "two finite numbers", "say --bounds 0,100")
    return lower, upper


# What ``--report`` means in every command: an .html file that replaces nothing, checked before any work is done.

Page = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a page for people, as an .html file.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
POINTS, USUAL = 25, 1.0
BEHIND = 1.25
"""The distance that the curve extends beyond the stated ε."""


def check_page(path: Path | None, *, replace: bool) -> None:
    """Raise ``InputError`` for a page that could not be written, or that would replace a file."""
    if path is None:
        return
    if path.suffix != ".html":
        raise InputError("report", str(path), "a name that ends in .html")
    if path.is_dir() or (path.exists() and not replace):
        raise InputError("report", str(path), "a file that does not exist yet", "--force replaces it")
    writable_folder(path.parent)


def check_picture_name(picture: Path | None) -> None:
    """Raise ``InputError`` for the name of a picture that cannot be drawn."""
    if picture is not None and picture.suffix not in {".png", ".svg", ".pdf"}:
        raise InputError("plot", str(picture), "a name that ends in .png, .svg or .pdf")


def curve_of(loss: PrivacyLoss, epsilon: float) -> list[tuple[float, float]]:
    """Points (ε, δ) of a loss from 0 to beyond the stated ε, each of them an upper bound."""
    top = BEHIND * (epsilon if 0 < epsilon < math.inf else USUAL)
    epsilons = [top * place / (POINTS - 1) for place in range(POINTS)]
    return list(zip(epsilons, loss.delta(epsilons).tolist(), strict=True))
