"""Tables on a terminal: no text is cut, however narrow the page and whatever stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tightrope.cli.output import TableTexts, as_blocks, as_table, column_widths

NUMBER = st.from_regex(r"[0-9]{1,30}(\.[0-9]{1,9})?", fullmatch=True)
WORDS = st.lists(st.from_regex(r"[a-z]{1,30}", fullmatch=True), min_size=1, max_size=6).map(" ".join)
ROWS = st.lists(st.tuples(WORDS, NUMBER, NUMBER, WORDS), min_size=1, max_size=4)


def printed(rows: list[tuple[str, ...]], page: int) -> list[str]:
    """The lines that are printed on a page of so many letters."""
    texts = TableTexts(["key", "spent", "left", "which is"], rows, 1, 1)
    console = Console(width=page, color_system=None, markup=False, highlight=False, emoji=False)
    table = as_table(texts, page)
    with console.capture() as held:
        for part in as_blocks(texts) if table is None else (table,):
            console.print(part)
    return held.get().splitlines()


@given(ROWS, st.integers(20, 200))
def test_every_number_stands_whole_on_one_line(rows: list[tuple[str, ...]], page: int) -> None:
    lines = printed(rows, page)
    assert max(map(len, lines)) <= page
    for _, spent, left, _ in rows:
        for number in (spent, left):
            assert len(number) > page - 20 or any(number in line for line in lines)
    assert not any("…" in line for line in lines)


@given(ROWS, st.integers(20, 200))
def test_no_letter_is_lost(rows: list[tuple[str, ...]], page: int) -> None:
    held = sorted("".join("".join(printed(rows, page)).replace("─", "").split()))
    need = sorted("".join("".join(row) for row in rows).replace(" ", ""))
    assert all(held.count(letter) >= need.count(letter) for letter in set(need))


def test_a_table_is_as_wide_as_what_is_in_it() -> None:
    texts = TableTexts(["key", "n"], [["Łódź", "12"], ["東京", "3"]], 1, 0)
    assert column_widths(texts, 110) == [4, 2]
    assert column_widths(texts, 9) == [4, 2]
    assert column_widths(texts, 8) is None


@pytest.mark.parametrize("left", [0, 1])
def test_no_rows_are_a_head(left: int) -> None:
    assert column_widths(TableTexts(["key", "n"], [], left, 0), 80) == [3, 1]
