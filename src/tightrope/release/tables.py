"""Answers as tables for other programs: Parquet for data frames, HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.certificates.printable import html_text, part_named
from tightrope.certificates.release import MEASURES, PAID, AnswerDocument, ReleaseResult
from tightrope.certificates.results import MISSING, QUESTION, results_columns

SHOWN_ROWS = 60
"""A notebook shows so many groups of an answer at most."""


def results_parquet(result: ReleaseResult) -> bytes:
    """The same table as a Parquet file: measures are doubles, keys what they are, or text where kinds differ."""
    from pyarrow import BufferOutputStream, float64, string, table
    from pyarrow.parquet import write_table

    columns = results_columns(result)
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


def answer_html(answer: AnswerDocument) -> str:
    """A table with the keys, the value and its interval; what people wrote is shown as text, whatever it is."""
    names = (*answer.by, *MEASURES, *(name for name in PAID if any(name in row for row in answer.rows)))
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    shown = (_cells(_fields(_with_part(answer, row), names)) for row in answer.rows[:SHOWN_ROWS])
    more = len(answer.rows) - SHOWN_ROWS
    rest = f"<p>... and {more:,} more groups in .frame</p>" if more > 0 else ""
    caption = f"{_text(answer.name)}: {_text(answer.question)}; 95 % intervals"
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{''.join(shown)}</table>{rest}"


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
    return html_text(text)
