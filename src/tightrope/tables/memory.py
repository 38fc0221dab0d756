"""The most memory that one row can take in a request, whatever is in the row: computed from the request alone.

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
from tightrope.tables.expressions.tree import FIXED_SIZE_BYTES, LONGEST_TEXT, Tree
from tightrope.tables.request import Distinct, Request
from tightrope.tables.schema import Schema

MOST_MEMORY = 1_000_000
"""Bytes that a row may take at most."""
SHORT = FIXED_SIZE_BYTES + 4 * (DIGEST - 1)
"""A key, a person or a value whose different ones are counted: 63 letters of four bytes, or a digest."""
COPIES_WHILE_SORTING = 33
"""How often each value of a row is held while a person's rows are put in order.

Four windows hold it as what they sort by and as what they carry; for each of two hashes it is written with its length
(three times), and stands in the texts of up to 16 columns as they grow, one after the other (8.5 times on average).
"""
KEY_MENTIONS, VALUE_MENTIONS = 3, 4
"""How often the query says what a key is (how long it is, itself, its digest) and what a value is (whether it is there,
whether it is a number, itself, itself again where it is squared)."""


def memory_of_row(request: Request, schema: Schema) -> int:
    """Bytes: what is read of the row, what its expressions make, and what is held while it is put in order."""
    values = [term for measure in request.measures for term in measure.columns]
    made = (
        KEY_MENTIONS * _expression_memory(request.by) + VALUE_MENTIONS * _expression_memory(values)
        + _expression_memory(() if request.where is None else (request.where,))
    )  # fmt: skip
    short = [request.bounds.person, *request.by]
    short += [measure.column for measure in request.measures if isinstance(measure, Distinct)]
    kept = sum(
        (SHORT if facts_of(term, schema).kind == "text" else FIXED_SIZE_BYTES) for term in short if term is not None
    ) + FIXED_SIZE_BYTES * len(request.measures)
    return (
        sum(
            (FIXED_SIZE_BYTES + (LONGEST_TEXT if schema.column(name).kind == "text" else 0))
            for name in used_columns(request)
        )
        + made
        + COPIES_WHILE_SORTING * kept
    )


def refuse_large(request: Request, schema: Schema) -> None:
    """Raise ``InputError`` where a row of the request can take more than ``MOST_MEMORY``."""
    needed = memory_of_row(request, schema)
    if not needed <= MOST_MEMORY:
        expected = f"at most {MOST_MEMORY:,} bytes that one row can take while it is counted"
        remedy = (
            f"each text column counts {LONGEST_TEXT:,}, and lower() and prefix() what they can make of it, several "
            "times; name fewer texts, or prepare them as columns of the table"
        )
        raise InputError("questions", f"{needed:,} bytes", expected, remedy)


def _expression_memory(terms: Sequence[Term]) -> int:
    return sum(term.memory for term in terms if isinstance(term, Tree))
