"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlanPath = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file; see docs/plan-file.md.")]


def from_fields(asked: type[Any], command: Callable[[Any], None]) -> Callable[..., None]:
    """A command for typer with one option for each field of a dataclass, for commands with many."""
    hints = get_type_hints(asked, include_extras=True)

    def run(**values: Any) -> None:
        command(asked(**values))

    run.__doc__, run.__annotations__ = command.__doc__, hints
    signature = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(asked)
    ]
    run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return run


def ends_of(text: str) -> tuple[float, float]:
    """The two numbers of a --between; ``InputError`` unless they are finite.

    >>> ends_of("-60,90")
    (-60.0, 90.0)
    """
    from tightrope.errors import InputError

    try:
        lower, upper = map(float, text.split(","))
    except ValueError:
        raise InputError("between", text, "two numbers with a comma between them", "say --between 0,100") from None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise InputError("between", text, "two finite numbers", "say --between 0,100")
    return lower, upper
