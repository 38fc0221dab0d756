"""The command ``tightrope``: one module a command; what is heavy loads inside the command that needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tightrope import __version__
from tightrope.cli import account, audit, dpsgd, init, ledger, noise, papers, plan, release, studio, verify
from tightrope.cli.couple import group
from tightrope.cli.errors import one_line, spends_nothing
from tightrope.cli.local import local
from tightrope.cli.options import from_fields
from tightrope.errors import INTERRUPTED


class Commands(TyperGroup):
    """The group of commands; whatever goes wrong becomes one line and an exit code."""

    def make_context(self, *given: Any, **settings: Any) -> Any:
        """What is typed is taken apart: no command has begun."""
        with spends_nothing():
            return super().make_context(*given, **settings)

    def main(self, args: Sequence[str] | None = None, *_: Any, **settings: Any) -> Any:
        """Run the command line and exit; ``--debug``, anywhere in it, shows tracebacks instead."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        _open_streams()
        for stream in (sys.stdout, sys.stderr):
            _forgiving(stream)
        with one_line(debug=debug):
            words = [word for word in given if word != "--debug"]
            code = super().main(words, **{**settings, "prog_name": "tightrope", "standalone_mode": False})
            if code == INTERRUPTED:  # what typer makes of a Ctrl-C
                raise KeyboardInterrupt
            sys.stdout.flush()
        sys.exit(code or 0)


def _open_streams() -> None:
    """Standard streams that were closed lead nowhere: no file of ours may be opened in their place."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123


def _forgiving(stream: Any) -> None:
    """Letters that the stream's encoding lacks are replaced: an old terminal must not lose an answer that was paid."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")


COMMANDS_EXAMPLE = """\b
Example, from a table to a private release:
  tightrope init visits.parquet --person user_id   writes plan.toml
  tightrope plan plan.toml                         how accurate it will be; spends nothing
  tightrope release plan.toml                      draws the noise, writes report.html

Exit codes: 0 done, 2 bad input, 3 budget refused, 4 neither confirmed nor refuted,
130 Ctrl-C, 143 terminated, 1 anything else.
"""
app = typer.Typer(
    name="tightrope",
    cls=Commands,
    epilog=COMMANDS_EXAMPLE,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init", epilog=init.INIT_EXAMPLE)(from_fields(init.Asked, init.init))
app.command("plan", epilog=plan.PLAN_EXAMPLE)(plan.plan)
app.command("release", epilog=release.RELEASE_EXAMPLE)(release.release)
app.command("studio", epilog=studio.STUDIO_EXAMPLE)(from_fields(studio.Asked, studio.studio))
app.command("noise", epilog=noise.NOISE_EXAMPLE)(from_fields(noise.Asked, noise.noise))
app.command("account", epilog=account.ACCOUNT_EXAMPLE)(account.account)
app.command("dpsgd", epilog=dpsgd.DPSGD_EXAMPLE)(from_fields(dpsgd.Asked, dpsgd.dpsgd))
app.command("audit", epilog=audit.AUDIT_EXAMPLE)(from_fields(audit.Asked, audit.audit))
app.command("verify", epilog=verify.VERIFY_EXAMPLE)(verify.verify)
app.command("reproduce", epilog=papers.REPRODUCE_EXAMPLE)(papers.reproduce)

app.add_typer(ledger.group, name="ledger", help="What was promised about a dataset, and what is spent of it.")
app.add_typer(local.group, name="local", help="Collect without being trusted: plan a study, report, estimate.")
app.add_typer(group.group, name="couple", help="Hide the group somebody is from: fit, apply, check a coupling.")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"tightrope {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    __: Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")] = False,
) -> None:
    """Private statistics with the least noise for the privacy you promise, and the proof."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """What the console script runs."""
    app()
