"""The table of one answer: keys, value, ± and interval, rounded outwards to the digits that the noise leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.report.pictures.dots import Dot
from tightrope.report.words.answers import Answer, Row
from tightrope.report.words.further import further
from tightrope.report.words.interval import Shown, shown


@dataclass(frozen=True, slots=True)
class Line:
    """One group as it is written. ``first``: where a new first key begins in a table of several keys."""

    keys: tuple[str, ...]
    shown: Shown
    dot: Dot | None
    withheld: bool
    first: bool
    further: tuple[str, ...] = ()
    """What else was paid for, as text."""


def lines(answer: Answer, dots: Sequence[Dot | None] = ()) -> list[Line]:
    """One line a group, in the order of the keys, each with its dot where there is a list chart."""
    decimals, drawn = answer.decimals, dots or [None] * len(answer.rows)
    before = [None, *(row.keys[:1] for row in answer.rows)]
    every = zip(answer.rows, drawn, before, further(answer)[1], strict=False)
    return [_line(row, decimals, dot, (row.keys[:1] != previous, said)) for row, dot, previous, said in every]


def narrower_than_dots(dots: Sequence[Dot | None]) -> bool:
    """Whether most intervals hide behind their dots, which a reader should be told."""
    drawn = [dot for dot in dots if dot is not None]
    return bool(drawn) and sum(dot.upper - dot.lower < 1.5 for dot in drawn) > len(drawn) / 2


def _line(row: Row, decimals: int, dot: Dot | None, besides: tuple[bool, tuple[str, ...]]) -> Line:
    return Line(
        keys=row.labels,
        shown=shown(row, decimals),
        dot=dot,
        withheld=row.value is None,
        first=besides[0],
        further=besides[1],
    )
