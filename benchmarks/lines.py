"""What every benchmark says in one form: a line a number, ours beside the best peer's; where we lose comes first.

Standard library only: workers in the peers' environments load this, too.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAN = math.nan
EQUAL = 1e-6
"""Numbers that are closer than this are equal."""


@dataclass(frozen=True)
class Line:
    """One number of one job, and that of the peer which is best among those that promise as much.

    ``less``: in which way that peer promises less (it is looser, it takes something for public); then no other promises
    as much. ``larger``: larger numbers are better. ``met``: whether the ``goal`` is; None where there is none.
    """

    area: str
    job: str
    measured: str
    ours: float
    peer: str = ""
    theirs: float = NAN
    less: str = ""
    larger: bool = False
    goal: str = ""
    met: bool | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times better ours is; NaN where there is nothing to compare."""
        better, worse = (self.ours, self.theirs) if self.larger else (self.theirs, self.ours)
        if math.isnan(better) or math.isnan(worse):
            return NAN
        if math.isclose(better, worse, rel_tol=EQUAL):
            return 1.0
        return better / worse if worse else math.inf

    @property
    def lost(self) -> bool:
        """Whether a peer is better, or ours has no answer."""
        return self.ratio < 1 or math.isnan(self.ours)

    @property
    def place(self) -> tuple[int, float]:
        """What sorts: lost, then short of the goal, then the rest; the smallest ratio first, none last."""
        tier = 0 if self.lost else 1 if self.met is False else 2
        return tier, math.inf if math.isnan(self.ratio) else self.ratio


@dataclass(frozen=True)
class Findings:
    """An area's lines, and what else is to be said: peers that are missing, that failed or say what is not true."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())


def ordered(lines: Iterable[Line]) -> list[Line]:
    """Where we lose first."""
    return sorted(lines, key=lambda line: line.place)


def option(parser: argparse.ArgumentParser) -> None:
    """``--json FILE``, for every script."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows in the common form (lines.py), too")


def write(path: Path | None, lines: Sequence[Line], notes: Sequence[str] = ()) -> None:
    """Where a file is asked for."""
    if path is not None:
        text = json.dumps({"lines": [asdict(line) for line in lines], "notes": list(notes)}, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")


def read(path: Path) -> Findings:
    said: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Findings(tuple(Line(**line) for line in said["lines"]), tuple(said["notes"]))


# ------------------------------------------------------------------ how they look


HEAD = ("job", "measured", "Tightrope", "best other", "which", "ahead", "goal")


def number(value: float) -> str:
    """Three digits."""
    if math.isnan(value):
        return "–"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.3g}"


def ahead(line: Line) -> str:
    if math.isnan(line.ratio):
        return "no answer" if math.isnan(line.ours) else "–"
    if line.ratio == 1:
        return "equal"
    if math.isinf(line.ratio):
        return "∞ ×"
    near = abs(line.ratio - 1) < 0.01
    return f"{line.ratio:.6g} ×" if near else f"{number(line.ratio)} ×"


def cells(line: Line) -> tuple[str, ...]:
    """As in ``HEAD``."""
    goal = f"{line.goal} {'met' if line.met else 'missed'}" if line.met is not None else line.goal or "–"
    mark = "†" if line.less else ""
    theirs = number(line.theirs) + mark if line.peer else "–"
    which = f"{line.peer}: {line.less}" if line.less else line.peer or "–"
    return (line.job, line.measured, number(line.ours), theirs, which, ahead(line), goal)


def remarks(lines: Iterable[Line]) -> list[str]:
    """What stands below a table: the notes, each once."""
    return list(dict.fromkeys(f"{line.job}: {line.note}" for line in ordered(lines) if line.note))


def in_text(lines: Iterable[Line]) -> str:
    """A table for a terminal."""
    rows = [HEAD, *(cells(line) for line in ordered(lines))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(padded)


def in_markdown(lines: Iterable[Line]) -> str:
    """The same for a page; where we lose ``ahead`` is bold."""
    out = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for line in ordered(lines):
        *row, ratio, goal = map(plain, cells(line))
        row += [f"**{ratio}**" if line.lost else ratio, goal]
        out.append(f"| {' | '.join(row)} |")
    return "\n".join(out)


def plain(text: str) -> str:
    """As text, in a cell or an item of a page."""
    for mark, instead in (("&", "&amp;"), ("<", "&lt;"), ("|", "/"), ("](", "] ("), ("\n", " ")):
        text = text.replace(mark, instead)
    return text
