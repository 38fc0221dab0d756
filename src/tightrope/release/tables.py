"""Answers as tables for other programs: CSV for spreadsheets, HTML for notebooks."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.certificates.printable import part_named, printable
from tightrope.certificates.release import MEASURES, PAID, AnswerDocument, ReleaseResult

QUESTION, MISSING = "question", "missing"
SHOWN_ROWS = 60
"""A notebook shows so many groups of an answer at most."""


def results_csv(result: ReleaseResult) -> str:
    """One line a group; texts in quotes, numbers with every digit, nothing where there is nothing.

    A total has no keys. Where a group is that of what is missing, ``missing`` names the columns that it is missing in.
    """
    columns = _columns(result)
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue()


def results_parquet(result: ReleaseResult) -> bytes:
    """The same table as a Parquet file: measures are doubles, keys what they are, or text where kinds differ."""
    from pyarrow import BufferOutputStream, float64, string, table
    from pyarrow.parquet import write_table

    columns = _columns(result)
    arrays = {}
    for name, found in columns.items():
        mixed = len({type(value) for value in found if value is not None}) > 1
        number = name in (*MEASURES, *PAID)
        kind = float64() if number else string() if name in (QUESTION, MISSING) or mixed else None
        arrays[name] = _array([str(v) if mixed and not number and v is not None else v for v in found], kind)
    sink = BufferOutputStream()
    write_table(table(arrays), sink)
    return bytes(sink.getvalue())


def _array(found: list[Any], kind: Any) -> Any:
    """What no type of Arrow holds is text: nothing that was paid for fails to be written."""
    from pyarrow import ArrowException, array

    try:
        return array(found, kind)
    except (ArrowException, OverflowError):
        return array([None if value is None else str(value) for value in found])


def _columns(result: ReleaseResult) -> dict[str, list[Any]]:
    """The columns of the table of all answers, one value a group."""
    keys = dict.fromkeys(name for answer in result.answers for name in answer.by)
    every = [(answer, row) for answer in result.answers for row in answer.rows]
    paid = [name for name in PAID if any(name in row for _, row in every)]
    missing = [_missing(answer, row) or None for answer, row in every]
    return {
        QUESTION: [answer.name for answer, _ in every],
        **{_key_column(name): [row.get(name) for _, row in every] for name in keys},
        **{name: [row.get(name) for _, row in every] for name in (*MEASURES, *paid)},
        **({MISSING: missing} if any(missing) else {}),
    }


def _missing(answer: AnswerDocument, row: Mapping[str, Any]) -> str:
    """The key columns in which a group is that of what is missing."""
    return ", ".join(name for name in answer.by if row[name] is None)


def answer_html(answer: AnswerDocument) -> str:
    """A table with the keys, the value and its interval; what people wrote is shown as text, whatever it is."""
    names = (*answer.by, *MEASURES, *(name for name in PAID if any(name in row for row in answer.rows)))
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    shown = (_cells(_fields(_with_part(answer, row), names)) for row in answer.rows[:SHOWN_ROWS])
    more = len(answer.rows) - SHOWN_ROWS
    rest = f"<p>... and {more:,} more groups in .frame</p>" if more > 0 else ""
    caption = f"{_text(answer.name)}: {_text(answer.question)}; 95 % intervals"
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{''.join(shown)}</table>{rest}"


def _key_column(name: str) -> str:
    """A key column that is called as the column of questions is marked as a key, and so is what looks marked.

    >>> _key_column("question"), _key_column("by question"), _key_column("city")
    ('by question', 'by by question', 'city')
    """
    return f"by {name}" if name in (QUESTION, MISSING) or name.startswith("by ") else name


def _fields(row: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [row.get(name) for name in names]


def _with_part(answer: AnswerDocument, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with a part of a histogram called by both of its ends."""
    return {**row, answer.by[-1]: part_named(row[answer.by[-1]], answer.edges)} if answer.edges else row


def _cells(fields: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<td>{_shown(field)}</td>' for field in fields)}</tr>"


def _shown(field: object) -> str:
    if field is None:
        return "–"
    return f"{field:.6g}" if isinstance(field, float) else _text(str(field))


def _text(text: str) -> str:
    return html.escape(printable(text))
