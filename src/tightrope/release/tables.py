"""Answers as tables for other programs: CSV for spreadsheets, HTML for notebooks."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.certificates.printable import printable
from tightrope.certificates.release import MEASURES, PAID, AnswerDocument, ReleaseResult

QUESTION = "question"
SHOWN_ROWS = 60
"""A notebook shows so many groups of an answer at most."""


def results_csv(result: ReleaseResult) -> str:
    """One line a group; texts in quotes, numbers with every digit, nothing where there is nothing."""
    keys = dict.fromkeys(name for answer in result.answers for name in answer.by)
    paid = [name for name in PAID if any(name in row for answer in result.answers for row in answer.rows)]
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow([QUESTION, *(_key_column(name) for name in keys), *MEASURES, *paid])
    for answer in result.answers:
        writer.writerows([answer.name, *_fields(row, (*keys, *MEASURES, *paid))] for row in answer.rows)
    return file.getvalue()


def answer_html(answer: AnswerDocument) -> str:
    """A table with the keys, the value and its interval; what people wrote is shown as text, whatever it is."""
    names = (*answer.by, *MEASURES, *(name for name in PAID if any(name in row for row in answer.rows)))
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    shown = (_cells(_fields(row, names)) for row in answer.rows[:SHOWN_ROWS])
    more = len(answer.rows) - SHOWN_ROWS
    rest = f"<p>... and {more:,} more groups in .frame</p>" if more > 0 else ""
    caption = f"{_text(answer.name)}: {_text(answer.question)}; 95 % intervals"
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{''.join(shown)}</table>{rest}"


def _key_column(name: str) -> str:
    """A key column that is called as the column of questions is marked as a key.

    >>> _key_column("question"), _key_column("city")
    ('by question', 'city')
    """
    return f"by {name}" if name == QUESTION else name


def _fields(row: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [row.get(name) for name in names]


def _cells(fields: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<td>{_shown(field)}</td>' for field in fields)}</tr>"


def _shown(field: object) -> str:
    if field is None:
        return "–"
    return f"{field:.6g}" if isinstance(field, float) else _text(str(field))


def _text(text: str) -> str:
    return html.escape(printable(text))
