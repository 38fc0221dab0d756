"""What ``--report`` means in every command: an .html file that replaces nothing, checked before any work is done."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tightrope.privacy import PrivacyLoss

Page = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a page for people, as an .html file.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]
POINTS, USUAL = 25, 1.0
BEHIND = 1.25
"""How far the curve goes on behind the stated ε."""


def check_page(path: Path | None, *, replace: bool) -> None:
    """Raise ``InputError`` for a page that could not be written, or that would replace a file."""
    from tightrope.cli.output import writable
    from tightrope.errors import InputError

    if path is None:
        return
    if path.suffix != ".html":
        raise InputError("report", str(path), "a name that ends in .html")
    if path.is_dir() or (path.exists() and not replace):
        raise InputError("report", str(path), "a file that does not exist yet", "--force replaces it")
    writable(path.parent)


def curve_of(loss: PrivacyLoss, epsilon: float) -> list[tuple[float, float]]:
    """Points (ε, δ) of a loss from 0 to beyond the stated ε, each of them an upper bound."""
    top = BEHIND * (epsilon if 0 < epsilon < math.inf else USUAL)
    epsilons = [top * place / (POINTS - 1) for place in range(POINTS)]
    return list(zip(epsilons, loss.delta(epsilons).tolist(), strict=True))
