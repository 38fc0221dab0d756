"""All answers of a release as one table, a line a group; and as CSV, for spreadsheets and for the page itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tightrope.certificates.printable import csv_table
from tightrope.certificates.release import MEASURES, PAID, AnswerDocument, ReleaseResult

QUESTION, MISSING = "question", "missing"


def results_csv(result: ReleaseResult) -> str:
    """One line a group; texts in quotes, numbers with every digit, nothing where there is nothing.

    A total has no keys. Where a group is that of what is missing, ``missing`` names the columns that it is missing in.
    Texts are escaped for spreadsheets and terminals (``csv_text``): JSON and Parquet hold the exact keys.
    """
    return csv_table(results_columns(result))


def results_columns(result: ReleaseResult) -> dict[str, list[Any]]:
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


def _key_column(name: str) -> str:
    """A key column that is called as the column of questions is marked as a key, and so is what looks marked.

    >>> _key_column("question"), _key_column("by question"), _key_column("city")
    ('by question', 'by by question', 'city')
    """
    return f"by {name}" if name in (QUESTION, MISSING) or name.startswith("by ") else name
