"""``tightrope couple``: hide the group that somebody is from; fit a coupling, apply it, check it."""

from __future__ import annotations

import typer

from tightrope.cli import couple_apply, couple_check, couple_fit
from tightrope.cli.options import from_fields

group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
group.command("fit", epilog=couple_fit.EXAMPLE)(from_fields(couple_fit.Asked, couple_fit.fit))
group.command("apply", epilog=couple_apply.EXAMPLE)(from_fields(couple_apply.Asked, couple_apply.apply))
group.command("check", epilog=couple_check.EXAMPLE)(couple_check.check)
