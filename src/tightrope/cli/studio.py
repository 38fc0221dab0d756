"""``tightrope studio``: build a plan interactively in a local web page, and release it."""

from __future__ import annotations

import atexit
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.errors import explain_error
from tightrope.cli.options import AsJson, command_app, command_from_dataclass
from tightrope.cli.output import echo_lines, print_json, write_file
from tightrope.documents.escaping import html_text
from tightrope.errors import INTERRUPTED, InputError

if TYPE_CHECKING:
    from tightrope.studio.plan_editor import HostCallbacks

STUDIO_EXAMPLE = """\b
Example:
  tightrope studio visits.parquet               saves plan.toml
  tightrope studio examples/census/plan.toml    saves examples/census/plan-studio.toml

The printed link opens the page, on this machine only, until Ctrl-C ends the command. No budget is spent before you
agree to the sentence on the page that states what a release spends.
"""
Given = Annotated[
    str, typer.Argument(metavar="DATA|PLAN", help="A .parquet, .csv or .duckdb file, a postgresql:// URL, or a plan.")
]
TableName = Annotated[str | None, typer.Option(metavar="NAME", help="The table, in a .duckdb file or a database.")]
Out = Annotated[
    str | None,
    typer.Option(metavar="PLAN", help="Where to save the plan [default: plan.toml, or in the folder of PLAN]."),
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="The port on 127.0.0.1; 0 takes a free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioOptions:
    """The command line."""

    given: Given
    table: TableName = None
    out: Out = None
    port: Port = 0
    browser: Open = False
    as_json: AsJson = False


def studio(options: StudioOptions) -> None:
    """Build a plan interactively in a local web page.

    Choose the privacy unit, the questions and the budget, and see the expected accuracy. Reads only the names and
    types of columns until you agree to a release.
    """
    from tightrope.studio.plan_form import open_editor_state
    from tightrope.studio.server import serve_studio

    found = open_editor_state(options.given, options.out, table=options.table)
    if found.output_path.exists():
        raise InputError.from_text("--out", f"{found.output_path} already exists; choose another file with --out PLAN")

    def announce_link(link: str) -> None:
        """Print the link at once, also where standard output is a pipe."""
        if options.as_json:
            print_json({"link": link})
        else:
            echo_lines("The studio runs on this machine only. Keep its link private:", f"  {link}")
            echo_lines("Ctrl-C ends it.")
        sys.stdout.flush()
        if options.browser:
            # Through a file that only its owner can read: all users of a machine can see a browser's arguments.
            import webbrowser

            with tempfile.NamedTemporaryFile(
                "w", prefix="tightrope-", suffix=".html", delete=False, encoding="utf-8"
            ) as page:
                page.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html_text(link)}">')
            path = Path(page.name)
            atexit.register(path.unlink, missing_ok=True)
            webbrowser.open(path.as_uri())

    try:
        serve_studio(found, host_callbacks(), port=options.port, ready=announce_link)
    except KeyboardInterrupt:  # how it is meant to end
        raise SystemExit(INTERRUPTED) from None


def host_callbacks() -> HostCallbacks:
    """The callbacks of the command line that the page uses."""
    from tightrope.cli.release import release_saved_plan
    from tightrope.studio.plan_editor import HostCallbacks

    return HostCallbacks(
        write_file=write_file, run_release=release_saved_plan, describe_error=lambda error: explain_error(error)[1]
    )


app = command_app(command_from_dataclass(StudioOptions, studio), example=STUDIO_EXAMPLE)
