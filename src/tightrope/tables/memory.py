"""The most memory that one row can take in a request, for any contents: computed from the request alone.

An engine works on some thousand rows at a time, and what it makes of them on the way is outside the limits that it has
for its memory. So a request for which one row can take much is refused when it is planned: otherwise it could fail
where one person is there, and be answered where they are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.errors import InputError
from tightrope.tables.backends.column_types import DIGEST
from tightrope.tables.bounding import used_columns
from tightrope.tables.expressions.expression import Term, facts_of
from tightrope.tables.expressions.tree import FIXED_SIZE_BYTES, MAX_TEXT_BYTES, ExpressionTree
from tightrope.tables.request import DistinctCount, Request
from tightrope.tables.schema import Schema

MOST_MEMORY = 1_000_000
"""Bytes that a row may take at most."""
SHORT = FIXED_SIZE_BYTES + 4 * (DIGEST - 1)
"""A key, a person or a value for distinct counts: 63 characters of four bytes, or a digest."""
COPIES_WHILE_SORTING = 33
"""Number of copies of each value of a row while a person's rows are sorted.

Four windows hold it as what they sort by and as what they carry; for each of two hashes it is written with its length
(three times), and stands in the texts of up to 16 columns as they grow, one after the other (8.5 times on average).
"""
KEY_MENTIONS, VALUE_MENTIONS = 3, 4
"""Number of times the query uses a key (its length, itself, its digest) and a value (whether it is present,
whether it is a number, itself, itself again if squared)."""


def row_memory_bytes(request: Request, schema: Schema) -> int:
    """Bytes: what is read of the row, what its expressions make, and what is held while it is put in order."""
    values = [term for measure in request.measures for term in measure.measured_terms]
    made = (
        KEY_MENTIONS * _expression_memory(request.by) + VALUE_MENTIONS * _expression_memory(values)
        + _expression_memory(() if request.where is None else (request.where,))
    )  # fmt: skip
    short = [request.bounds.person_column, *request.by]
    short += [measure.column for measure in request.measures if isinstance(measure, DistinctCount)]
    kept = sum(
        (SHORT if facts_of(term, schema).kind == "text" else FIXED_SIZE_BYTES) for term in short if term is not None
    ) + FIXED_SIZE_BYTES * len(request.measures)
    return (
        sum(
            (FIXED_SIZE_BYTES + (MAX_TEXT_BYTES if schema.find_column(name).kind == "text" else 0))
            for name in used_columns(request)
        )
        + made
        + COPIES_WHILE_SORTING * kept
    )


def check_row_memory(request: Request, schema: Schema) -> None:
    """Raise ``InputError`` where a row of the request can take more than ``MOST_MEMORY``."""
    needed = row_memory_bytes(request, schema)
    if not needed <= MOST_MEMORY:
        expected = f"at most {MOST_MEMORY:,} bytes that one row can take while it is counted"
        remedy = (
            f"each text column counts {MAX_TEXT_BYTES:,}, and lower() and prefix() what they can make of it, several "
            "times; name fewer texts, or prepare them as columns of the table"
        )
        raise InputError("questions", f"{needed:,} bytes", expected, remedy)


def _expression_memory(terms: Sequence[Term]) -> int:
    return sum(term.memory_bytes for term in terms if isinstance(term, ExpressionTree))
