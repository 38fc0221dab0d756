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
from tightrope.cli.errors import exit_on_error, interrupt_without_charge
from tightrope.errors import INTERRUPTED

COMMANDS = {
    "init": ("init", "Write a commented plan for your own table."),
    "suggest": ("suggest", "Suggest max_rows, the most rows used per person; charges the budget."),
    "plan": ("plan", "Show a plan's privacy guarantee and its accuracy."),
    "release": ("release", "Charge the budget, sample the noise, write answers and a report."),
    "studio": ("studio", "Build a plan interactively in a local web page."),
    "noise": ("noise", "Compare the error of noise distributions with the proven minimum."),
    "account": ("account", "Compute the total privacy loss of the mechanisms in a file."),
    "dpsgd": ("dpsgd", "Compute the privacy of a DP-SGD run, or the noise it needs."),
    "audit": ("audit", "Compute lower confidence bounds on a mechanism's privacy loss."),
    "verify": ("verify", "Verify a certificate without access to the data."),
    "reproduce": ("papers", "Reproduce the results of the papers that Tightrope implements."),
    "ledger": ("ledger", "Show and check the privacy budget of a dataset."),
    "local": ("local.local", "Local DP: plan a study, randomize answers, compute estimates."),
    "couple": ("couple", "Hide group membership by optimal transport: fit, apply, check."),
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
        """Parse the arguments; an interrupt here spends no budget."""
        with interrupt_without_charge():
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
            # Replace characters that the stream's encoding lacks: an answer that was charged must not be lost.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        with exit_on_error(debug=debug):
            words = [word for word in given if word != "--debug"]
            code = super().main(words, **{**settings, "prog_name": "tightrope", "standalone_mode": False})
            if code == INTERRUPTED:  # typer's exit code for Ctrl-C
                raise KeyboardInterrupt
            sys.stdout.flush()
        sys.exit(code or 0)


COMMANDS_EXAMPLE = """\b
Example, from a table to a private release:
  tightrope init visits.parquet --privacy-unit user_id   writes plan.toml
  tightrope suggest plan.toml                      suggests max_rows from the table; charges 5 % of the budget
  tightrope plan plan.toml                         shows the expected accuracy; spends no budget
  tightrope release plan.toml                      charges the budget, writes report.html

Exit codes: 0 done; 1 a certificate or a claimed epsilon is refuted (verify, audit), or another error;
2 bad input; 3 not enough budget; 4 not confirmed (verify); 130 Ctrl-C; 143 terminated.
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
def run_root(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    __: Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")] = False,
) -> None:
    """Compute differentially private statistics with certified privacy and near-minimal noise."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the console script."""
    app()
