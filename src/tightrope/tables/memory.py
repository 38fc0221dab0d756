"""The most memory that one row can take in a request, for any contents: computed from the request alone.

An engine processes some thousand rows at a time, and their intermediate values are outside the memory limit that it
enforces. So a request for which one row could take too much memory is rejected when it is planned. Otherwise it could
fail on a table with one person and succeed on the table without.
"""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.errors import InputError
from tightrope.tables.backends.column_types import DIGEST_LENGTH
from tightrope.tables.bounding import used_columns
from tightrope.tables.expressions.expression import Term, term_facts
from tightrope.tables.expressions.tree import FIXED_SIZE_BYTES, MAX_TEXT_BYTES, ExpressionTree
from tightrope.tables.request import DistinctCount, Request
from tightrope.tables.schema import Schema

MAX_ROW_BYTES = 1_000_000
"""Most bytes that a row may take."""
SHORT_TEXT_BYTES = FIXED_SIZE_BYTES + 4 * (DIGEST_LENGTH - 1)
"""Largest size of a text after ``shorten_texts``: 63 characters of four bytes, or a digest."""
COPIES_WHILE_SORTING = 33
"""Number of copies of each value of a row while a person's rows are sorted.

Each of four window functions holds the value as a sort key and as part of the row. For each of two hashes it is written
with its length (three copies), and is part of the texts of up to 16 columns, which are built up column by column (8.5
copies on average).
"""
KEY_MENTIONS, VALUE_MENTIONS, PERSON_MENTIONS = 3, 4, 12
"""Number of times the query uses a key (its length, itself, its digest), a value (whether it is present, whether it is
a number, itself, itself again if squared) and a person (a key, once to find who exceeds a bound and once to count; a
float is compared with 2^53 and with its floor, too)."""


def row_memory_bytes(request: Request, schema: Schema) -> int:
    """Return the most bytes for one row: its columns, its expressions, and the copies while rows are sorted."""
    values = [term for measure in request.measures for term in measure.measured_terms]
    persons = () if request.bounds.person_column is None else (request.bounds.person_column,)
    expressions = (
        KEY_MENTIONS * _expression_memory(request.by) + VALUE_MENTIONS * _expression_memory(values)
        + PERSON_MENTIONS * _expression_memory(persons)
        + _expression_memory(() if request.where is None else (request.where,))
    )  # fmt: skip
    shortened = [*persons, *request.by]
    shortened += [measure.column for measure in request.measures if isinstance(measure, DistinctCount)]
    projected = FIXED_SIZE_BYTES * len(request.measures) + sum(
        (SHORT_TEXT_BYTES if term_facts(term, schema).kind == "text" else FIXED_SIZE_BYTES)
        for term in shortened
        if term is not None
    )
    columns = sum(
        (FIXED_SIZE_BYTES + (MAX_TEXT_BYTES if schema.find_column(name).kind == "text" else 0))
        for name in used_columns(request)
    )
    return columns + expressions + COPIES_WHILE_SORTING * projected


def check_row_memory(request: Request, schema: Schema) -> None:
    """Raise ``InputError`` if a row of the request can take more than ``MAX_ROW_BYTES`` bytes."""
    needed = row_memory_bytes(request, schema)
    if not needed <= MAX_ROW_BYTES:
        text = f"a row may take {needed:,} bytes of memory while it is counted, but the limit is {MAX_ROW_BYTES:,}"
        remedy = (
            f"each text column counts {MAX_TEXT_BYTES:,}, and lower(), concat() and others what they can make of it, "
            "several times; name fewer texts, or prepare them as columns of the table"
        )
        raise InputError.from_text("questions", f"{text}; {remedy}")


def _expression_memory(terms: Sequence[Term]) -> int:
    return sum(term.memory_bytes for term in terms if isinstance(term, ExpressionTree))
