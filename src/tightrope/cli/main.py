"""The command ``tightrope``: one module a command, imported when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tightrope import __version__
from tightrope.cli.errors import one_line, spends_nothing
from tightrope.errors import INTERRUPTED

COMMANDS = {
    "init": ("init", "Write a commented plan for your own table."),
    "plan": ("plan", "Show what a plan promises and how accurate it will be."),
    "release": ("release", "Draw the noise and write private answers and a report."),
    "studio": ("studio", "Make a plan by eye, on a page of this machine."),
    "noise": ("noise", "Compare every family of noise with the least there is."),
    "account": ("account", "Add up what the steps in a file cost together."),
    "dpsgd": ("dpsgd", "Account for DP-SGD, or find its noise."),
    "audit": ("audit", "Prove lower bounds on what a mechanism gives away."),
    "verify": ("verify", "Check every claim of a document from the document alone."),
    "reproduce": ("papers", "Run what the five papers state, and compare."),
    "ledger": ("ledger", "What was promised about a dataset, and what is spent of it."),
    "local": ("local.local", "Collect without being trusted: plan a study, report, estimate."),
    "couple": ("couple.commands", "Hide the group somebody is from: fit, apply, check a coupling."),
}
"""The module of each command in ``tightrope.cli``, with its Typer ``app``, and its line in ``tightrope --help``."""


class Commands(TyperGroup):
    """The group of commands; every error becomes one line and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the module of a command and return the command; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(f"tightrope.cli.{COMMANDS[cmd_name][0]}").app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that was typed; the error for an unknown name suggests the nearest ones."""
        if args and args[0] not in COMMANDS and (close := get_close_matches(args[0], COMMANDS)):
            verb = "is" if len(close) == 1 else "are"
            ctx.fail(f"{args[0]!r} is not a command, but {' and '.join(map(repr, close))} {verb}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def make_context(self, *given: Any, **settings: Any) -> Any:
        """Arguments are being parsed: no command has begun."""
        with spends_nothing():
            return super().make_context(*given, **settings)

    def main(self, args: Sequence[str] | None = None, *_: Any, **settings: Any) -> Any:
        """Run the command line and exit; ``--debug``, anywhere in it, shows tracebacks instead."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        # Standard streams that were closed go to the null device, so that another file cannot take their descriptors.
        for name in ("stdin", "stdout", "stderr"):
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        for stream in (sys.stdout, sys.stderr):
            # Letters that the stream's encoding lacks are replaced: an old terminal must not lose an answer that was
            # paid.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        with one_line(debug=debug):
            words = [word for word in given if word != "--debug"]
            code = super().main(words, **{**settings, "prog_name": "tightrope", "standalone_mode": False})
            if code == INTERRUPTED:  # what typer makes of a Ctrl-C
                raise KeyboardInterrupt
            sys.stdout.flush()
        sys.exit(code or 0)


COMMANDS_EXAMPLE = """\b
Example, from a table to a private release:
  tightrope init visits.parquet --privacy-unit user_id   writes plan.toml
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


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tightrope {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    __: Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")] = False,
) -> None:
    """Private statistics with the least noise for the privacy you promise, and the proof."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the console script."""
    app()
