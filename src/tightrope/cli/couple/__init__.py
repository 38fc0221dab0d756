"""``tightrope couple``: hide a person's group; fit a coupling, apply it, check it."""

from __future__ import annotations

import typer

from tightrope.cli.couple import apply, check, fit
from tightrope.cli.options import command_from_dataclass

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    help="Hide which group a person belongs to, with optimal-transport mechanisms (couplings).",
)
app.command("fit", epilog=fit.FIT_EXAMPLE)(command_from_dataclass(fit.FitOptions, fit.fit))
app.command("apply", epilog=apply.APPLY_EXAMPLE)(command_from_dataclass(apply.ApplyOptions, apply.apply))
app.command("check", epilog=check.CHECK_EXAMPLE)(check.check)
