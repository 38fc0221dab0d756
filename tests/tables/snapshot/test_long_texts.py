"""Texts enter keys as digests: what is released is the text, and one that is too long is missing, on every engine."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable

import pyarrow

from tightrope.tables import (
    ContributionBounds,
    DistinctCount,
    GroupTotals,
    Measure,
    Request,
    Table,
    attach_public_tables,
    column,
    public_table,
)
from tightrope.tables.expressions.tree import MAX_TEXT_BYTES

HUGE = int(os.environ.get("TIGHTROPE_HUGE_TEXT", "2000000"))
"""Letters of the text that must not stop the others; 250000000 is the whole test."""
EACH_ROW = ContributionBounds(None, 1, 1, 1)
ROWS = Measure("rows", None, None)
Opened = Callable[[pyarrow.Table], Table]

LONG = "ü" * 70
COMPOSED, APART = "é" * 64, unicodedata.normalize("NFD", "é" * 64)
DIGEST = hashlib.sha256(LONG.encode()).hexdigest()
LONGEST, TOO_LONG = "y" * MAX_TEXT_BYTES, "x" * (MAX_TEXT_BYTES + 1)
WIDE = "漢" * 3_334
"""Longer in bytes than in letters."""
TEXTS = [
    LONG, LONG, LONG + "a", COMPOSED, APART, DIGEST, LONGEST, TOO_LONG, WIDE, "", None, "n" * 63, "n" * 64,
    LONG.upper(),
]  # fmt: skip
EXPECTED = {
    None: 3, "": 1, LONG: 2, LONG + "a": 1, COMPOSED: 1, APART: 1, DIGEST: 1, LONGEST: 1, "n" * 63: 1, "n" * 64: 1,
    LONG.upper(): 1,
}  # fmt: skip


def counted(found: GroupTotals) -> dict[object, int]:
    return dict(zip((key for (key,) in found.keys), found.values["rows"], strict=True))


def test_a_long_key_is_shown_as_its_text_and_one_that_is_too_long_is_missing(opened: Opened) -> None:
    table = opened(pyarrow.table({"text": TEXTS, "person": TEXTS, "weight": [1.0] * len(TEXTS)}))
    found = table.collect_totals(Request(("text",), None, EACH_ROW, (ROWS, DistinctCount("different", "text", None))))
    assert counted(found) == EXPECTED
    assert list(found.keys) == sorted(found.keys, key=lambda key: (key[0] is not None, key[0] or ""))
    assert found.values["different"] == tuple(int(key is not None) for (key,) in found.keys)
    persons = table.collect_totals(Request(("text",), None, ContributionBounds("person", 1, 1, 1), (ROWS,)))
    assert counted(persons) == {text: 1 for text in EXPECTED if text is not None}


def test_long_keys_that_are_given_are_found(opened: Opened) -> None:
    table = opened(pyarrow.table({"text": TEXTS}))
    keys = tuple((text,) for text in (*EXPECTED, TOO_LONG, "n" * 65))
    found = counted(table.collect_totals(Request(("text",), keys, EACH_ROW, (ROWS,))))
    assert found == {**EXPECTED, TOO_LONG: 0, "n" * 65: 0}


def test_computed_and_looked_up_keys_are_shown_as_their_texts(opened: Opened) -> None:
    private = opened(pyarrow.table({"text": [LONG.upper(), TOO_LONG, "Ab"], "k": [1, 2, 3]}))
    public = pyarrow.table({"k": [1, 2], "said": [LONGEST[:9_000], "short"]})
    table = attach_public_tables(private, public_table(public, on="k"))
    by = (column("text").lower().tree, "said")
    found = table.collect_totals(Request(by, None, EACH_ROW, (ROWS,)))
    assert found.keys == ((None, "short"), ("ab", None), (LONG, LONGEST[:9_000]))


def test_rows_of_a_person_with_long_texts_are_bounded(opened: Opened) -> None:
    """More columns than are written into one text at a time, persons and keys that are digests."""
    many = {f"k{place}": [f"{row % 3}" * 200 for row in range(30)] for place in range(16)}
    table = opened(pyarrow.table({"person": [LONG] * 29 + ["other"], **many}))
    request = Request(
        tuple(many), None, ContributionBounds("person", 2, 1, 2), (ROWS, DistinctCount("different", "k0", None))
    )
    found = table.collect_totals(request)
    assert sum(found.values["rows"]) == 3
    assert all(len(set(key)) == 1 and len(str(key[0])) == 200 for key in found.keys)


def test_one_huge_text_stops_nobody(opened: Opened) -> None:
    """Not as a key, and not as a person."""
    texts = ["a", "x" * HUGE, "a"]
    table = opened(pyarrow.table({"text": texts, "same": pyarrow.array(texts).dictionary_encode()}))
    found = table.collect_totals(Request(("text", "same"), None, EACH_ROW, (ROWS,)))
    assert (found.keys, found.values["rows"]) == (((None, None), ("a", "a")), (1, 2))
    persons = table.collect_totals(Request((), None, ContributionBounds("text", 1, 1, 1), (ROWS,)))
    assert persons.values["rows"] == (1,)


def test_a_dictionary_of_huge_texts_is_not_spelled_out() -> None:
    from tightrope.tables import open_source

    codes = pyarrow.array([0] * 100_000 + [1], "int32")
    texts = pyarrow.DictionaryArray.from_arrays(codes, ["x" * 1_000_000, "a"])
    found = open_source(pyarrow.table({"text": texts})).collect_totals(Request(("text",), None, EACH_ROW, (ROWS,)))
    assert counted(found) == {None: 100_000, "a": 1}
