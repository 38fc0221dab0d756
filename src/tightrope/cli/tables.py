"""Tables on a terminal of any width: words wrap, and a number, which may decide about money, is never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""Blanks between two columns."""
NARROWEST_KEY = 20
"""A key that is longer and has no blanks is broken: keys come from data, and may have no end."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What stands in a table: the first ``left`` columns are keys, the last ``words`` sentences, all others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int
    words: int

    def is_number(self, number: int) -> bool:
        """Whether a column holds what must stand on one line."""
        return self.left <= number < len(self.columns) - self.words

    def column(self, number: int) -> list[str]:
        """Its name and all that stands in it."""
        return [self.columns[number], *(row[number] for row in self.rows)]


def as_table(texts: Texts, page: int) -> Table | None:
    """The table with every column as wide as it must be; None where so many letters a line are too few."""
    from rich import box
    from rich.table import Table

    found = widths(texts, page)
    if found is None:
        return None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, (column, width) in enumerate(zip(texts.columns, found, strict=True)):
        whole = texts.is_number(number)
        table.add_column(column, justify="right" if whole else "left", no_wrap=whole, overflow="fold", width=width)
    for row in texts.rows:
        table.add_row(*row)
    return table


def as_blocks(texts: Texts) -> Iterator[str]:
    r"""Each row as a block: its first text, and a line for each of the others.

    >>> print(*as_blocks(Texts(["limit", "spent", "left"], [["total", "1/3", "2/3"]], 1, 0)), sep="\n")
    limit: total
      spent: 1/3
      left: 2/3
    """
    for row in texts.rows:
        for number, (column, text) in enumerate(zip(texts.columns, row, strict=True)):
            yield f"{'  ' if number else ''}{column}: {text}"


def widths(texts: Texts, page: int) -> list[int] | None:
    """How wide each column is: as its longest text, and where that is too much, words wrap, the longest ones first.

    >>> widths(Texts(["limit", "left", "which is"], [["total", "0.25", "all there is"]], 1, 1), 25)
    [5, 4, 10]
    >>> widths(Texts(["limit", "left", "which is"], [["total", "0.25", "all there is"]], 1, 1), 19) is None
    True
    """
    every = range(len(texts.columns))
    found, least = [_longest(texts.column(n)) for n in every], [_least(texts, n) for n in every]
    excess = sum(found) + GAP * (len(found) - 1) - page
    for number in sorted(every, key=lambda n: least[n] - found[n]):
        cut = max(0, min(excess, found[number] - least[number]))
        found[number], excess = found[number] - cut, excess - cut
    return None if excess > 0 else found


def _least(texts: Texts, number: int) -> int:
    """How narrow a column can be: sentences as their longest word, for numbers may stand in them."""
    column = texts.column(number)
    if texts.is_number(number):
        return _longest(column)
    word = _longest([word for text in column for word in text.split()])
    return min(word, NARROWEST_KEY) if number < texts.left else word


def _longest(found: Sequence[str]) -> int:
    """In places of a terminal, of which some letters take two."""
    from rich.cells import cell_len

    return max(map(cell_len, found), default=0) or 1
