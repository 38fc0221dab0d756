"""What terminals and notebooks show: summaries of objects as text and HTML tables, and progress; texts are escaped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tightrope.display import Rounded, Shown, Summary
from tightrope.documents.escaping import escape_control_chars, html_text
from tightrope.documents.numbers import DOWN, NEAREST, UP, terminal_text
from tightrope.numerics.progress import listen_to_progress

MOST_ROWS_IN_TEXT = 8
"""Rows of a table that are shown in a terminal."""
MOST_ROWS_IN_NOTEBOOK = 60
"""Rows of a table, such as groups of an answer, that are shown in a notebook."""
MOST_CHARACTERS = 400
"""Longer texts are cut."""
SHOWN_DIGITS = 4
DECIMAL_ROUNDING = {"up": UP, "down": DOWN, "nearest": NEAREST}


def summary_text(kind: str, summary: Summary) -> str:
    r"""Return the title and the facts, one on a line, and the first rows of the table.

    >>> print(summary_text("Coupling", Summary("2 points", [("cost", Rounded(0.3)), ("method", "a\x1b[2J")])))
    <Coupling: 2 points
      cost: 0.3
      method: a�[2J>
    """
    lines = [_caption(kind, summary)]
    lines += [f"  {_plain_text(name)}: {_plain_text(shown)}" for name, shown in summary.facts]
    if summary.rows:
        shown_rows = [list(map(_plain_text, row)) for row in summary.rows[:MOST_ROWS_IN_TEXT]]
        table = [list(map(_plain_text, summary.columns)), *shown_rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    hidden = len(summary.rows) - MOST_ROWS_IN_TEXT
    lines += [f"  ... and {hidden:,} more"] if hidden > 0 else []
    return "<" + "\n".join(lines) + ">"


def summary_html(kind: str, summary: Summary) -> str:
    """Return an HTML table of the facts, and one of the rows; all texts are escaped.

    >>> summary_html("Budget", Summary("<b>", [("epsilon", Rounded(1.0))]))
    '<table><caption>Budget: &lt;b&gt;</caption><tr><th scope="row">epsilon</th><td>1</td></tr></table>'
    """
    facts = [
        f'<tr><th scope="row">{html_text(name)}</th><td>{html_text(_plain_text(shown))}</td></tr>'
        for name, shown in summary.facts
    ]
    caption = _caption(kind, summary)
    table = html_table("" if facts else caption, summary.columns, summary.rows) if summary.columns else ""
    if not facts and table:
        return table
    return f"<table><caption>{html_text(caption)}</caption>{''.join(facts)}</table>{table}"


def html_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Shown]], more: str = "") -> str:
    """Return an HTML table of the first rows, with the number of the others; ``more`` says where these are.

    >>> html_table("a & b", ["x"], [["<i>"], [None]])
    '<table><caption>a &amp; b</caption><tr><th>x</th></tr><tr><td>&lt;i&gt;</td></tr><tr><td>–</td></tr></table>'
    """
    header = "".join(f"<th>{html_text(name)}</th>" for name in columns)
    lines = (
        f"<tr>{''.join(f'<td>{html_text(_plain_text(shown))}</td>' for shown in row)}</tr>"
        for row in rows[:MOST_ROWS_IN_NOTEBOOK]
    )
    hidden = len(rows) - MOST_ROWS_IN_NOTEBOOK
    note = f"<p>... and {hidden:,} more{html_text(more)}</p>" if hidden > 0 else ""
    title = f"<caption>{html_text(caption)}</caption>" if caption else ""
    return f"<table>{title}<tr>{header}</tr>{''.join(lines)}</table>{note}"


def _caption(kind: str, summary: Summary) -> str:
    return f"{kind}: {_plain_text(summary.title)}" if summary.title else kind


def _plain_text(shown: Shown) -> str:
    """Return what is shown as one line without control characters, numbers with their rounding."""
    if isinstance(shown, Rounded):
        number = float(shown.value)
        if not abs(number) < float("inf"):
            return str(number)
        return terminal_text(number, SHOWN_DIGITS, DECIMAL_ROUNDING[shown.direction])
    if isinstance(shown, int):
        return f"{shown:,}"
    if shown is None:
        return "–"
    text = escape_control_chars(" ".join(shown.split("\n")))
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 3] + "..."


# Progress. It depends on the questions and the budget alone, never on the data.

SECONDS_BETWEEN_UPDATES = 0.1
"""The time between two pictures of a bar in a notebook."""


@contextmanager
def progress_bar(task: str) -> Iterator[None]:
    """Show how far planning is: within this context, in a notebook below the cell, and in a terminal on standard error.

    Elsewhere, for example in a log, nothing is shown.

    >>> with progress_bar("Choosing the noise"):
    ...     pass
    """
    if "ipykernel" in sys.modules:
        with _notebook_bar(task):
            yield
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            shown = bar.add_task(escape_control_chars(task), total=1)
            with listen_to_progress(lambda fraction: bar.update(shown, completed=fraction)):
                yield
    else:
        yield


@dataclass(slots=True)
class NotebookBar:
    """A bar of a page, without widgets: the completed fraction of a task."""

    task: str
    fraction: float = 0.0

    def __repr__(self) -> str:
        return f"{escape_control_chars(self.task)}: {100 * self.fraction:.0f} %"

    def _repr_html_(self) -> str:
        return f'<progress max="1" value="{self.fraction:.3f}"></progress> {html_text(self.task)}'


@contextmanager
def _notebook_bar(task: str) -> Iterator[None]:
    from IPython.display import display

    bar, last_update = NotebookBar(task), time.monotonic()
    handle = display(bar, display_id=True)

    def update_bar(fraction: float) -> None:
        nonlocal last_update
        bar.fraction = fraction
        if time.monotonic() - last_update >= SECONDS_BETWEEN_UPDATES:
            last_update = time.monotonic()
            handle.update(bar)

    with listen_to_progress(update_bar):
        yield
    bar.fraction = 1.0
    handle.update(bar)
