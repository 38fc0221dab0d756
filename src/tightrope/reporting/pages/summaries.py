"""Summaries of objects as a short text and as HTML tables, for terminals and notebooks; all texts are escaped."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.display import Rounded, Shown, Summary
from tightrope.documents.escaping import escape_control_chars, html_text
from tightrope.documents.numbers import DOWN, NEAREST, UP, terminal_text

MOST_ROWS_IN_TEXT = 8
"""Rows of a table that are shown in a terminal."""
MOST_ROWS_IN_NOTEBOOK = 60
"""Rows of a table, such as groups of an answer, that are shown in a notebook."""
MOST_CHARACTERS = 400
"""Longer texts are cut."""
DIGITS = 4
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
        return terminal_text(number, DIGITS, DECIMAL_ROUNDING[shown.direction])
    if isinstance(shown, int):
        return f"{shown:,}"
    if shown is None:
        return "–"
    text = escape_control_chars(" ".join(shown.split("\n")))
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 3] + "..."
