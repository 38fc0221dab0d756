"""Options that several commands share, so that they are called and explained the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
PlanPath = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file; see docs/plan-file.md.")]
