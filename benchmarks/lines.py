"""Results of the benchmarks in one form: one number per line, next to the best peer's; losses come first.

Only the standard library is used, because workers in the peers' environments import this module, too.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

NAN = math.nan
EQUAL_TOLERANCE = 1e-6
"""Numbers with a relative difference below this are equal."""


@dataclass(frozen=True)
class Line:
    """One number of one job, and the number of the best peer with the same privacy promise.

    ``peer_caveat`` says how the peer's promise is weaker (it is looser, or treats something as public); it is empty
    unless all peers have a weaker promise. A line without a goal has the ``goal_met`` None.
    """

    area: str
    job: str
    measured: str
    ours: float
    peer: str = ""
    peer_value: float = NAN
    peer_caveat: str = ""
    larger_is_better: bool = False
    goal: str = ""
    goal_met: bool | None = None
    note: str = ""

    def with_peer(self, peer: str, value: float, caveat: str = "") -> Line:
        """Return this line with a peer's number; an empty name leaves it as it is."""
        return replace(self, peer=peer, peer_value=value, peer_caveat=caveat) if peer else self

    def with_goal(self, goal: str, *, met: bool) -> Line:
        """Return this line with a goal; an empty text leaves it as it is."""
        return replace(self, goal=goal, goal_met=met) if goal else self

    @property
    def ratio(self) -> float:
        """How many times better Tightrope is; NaN without two numbers to compare."""
        better, worse = (self.ours, self.peer_value) if self.larger_is_better else (self.peer_value, self.ours)
        if math.isnan(better) or math.isnan(worse):
            return NAN
        if math.isclose(better, worse, rel_tol=EQUAL_TOLERANCE):
            return 1.0
        return better / worse if worse else math.inf

    @property
    def is_loss(self) -> bool:
        """Whether a peer is better, or Tightrope has no answer."""
        return self.ratio < 1 or math.isnan(self.ours)

    @property
    def sort_key(self) -> tuple[int, float]:
        """Losses first, then lines that miss their goal, then the rest; each by ratio, those without one last."""
        tier = 0 if self.is_loss else 1 if self.goal_met is False else 2
        return tier, math.inf if math.isnan(self.ratio) else self.ratio


@dataclass(frozen=True)
class AreaResults:
    """The lines of an area, and notes: peers that are missing, failed, or report wrong bounds."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())


def sort_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the lines with losses first."""
    return sorted(lines, key=lambda line: line.sort_key)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json FILE``, which every script has."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the lines as JSON (see lines.py)")


def write_results(path: Path | None, lines: Sequence[Line], notes: Sequence[str] = ()) -> None:
    """Write lines and notes as JSON; without a path this does nothing."""
    if path is not None:
        text = json.dumps({"lines": [asdict(line) for line in lines], "notes": list(notes)}, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")


def read_results(path: Path) -> AreaResults:
    """Return what ``write_results`` wrote."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return AreaResults(tuple(Line(**line) for line in document["lines"]), tuple(document["notes"]))


def exit_status(lines: Sequence[Line]) -> int:
    """Return the exit code of a script: 1 if Tightrope has no finite number in a line, or if there are no lines.

    The lines without a number are printed to standard error.
    """
    missing = [line for line in lines if not math.isfinite(line.ours)]
    for line in missing:
        print(f"no answer: {line.job}, {line.measured}: {line.note or line.ours}", file=sys.stderr)
    if not lines:
        print("no answer: the script measured nothing", file=sys.stderr)
    return int(bool(missing) or not lines)


# ------------------------------------------------------------------ tables


COLUMN_TITLES = ("job", "measured", "Tightrope", "best other", "which", "ahead", "goal")


def number_text(value: float) -> str:
    """Return the number with three digits."""
    if math.isnan(value):
        return "–"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.3g}"


def ratio_text(line: Line) -> str:
    """Return how many times better Tightrope is, in words; near 1 with enough digits to see which one is better."""
    if math.isnan(line.ratio):
        return "no answer" if math.isnan(line.ours) else "–"
    if line.ratio == 1:
        return "equal"
    if math.isinf(line.ratio):
        return "∞ ×"
    near = abs(line.ratio - 1) < 0.01
    return f"{line.ratio:.6g} ×" if near else f"{number_text(line.ratio)} ×"


def table_cells(line: Line) -> tuple[str, ...]:
    """Return the cells of a line, in the order of ``COLUMN_TITLES``."""
    goal = f"{line.goal} {'met' if line.goal_met else 'missed'}" if line.goal_met is not None else line.goal or "–"
    mark = "†" if line.peer_caveat else ""
    peer_value = number_text(line.peer_value) + mark if line.peer else "–"
    peer = f"{line.peer}: {line.peer_caveat}" if line.peer_caveat else line.peer or "–"
    return (line.job, line.measured, number_text(line.ours), peer_value, peer, ratio_text(line), goal)


def notes_of_lines(lines: Iterable[Line]) -> list[str]:
    """Return the notes to print below a table, each once."""
    return list(dict.fromkeys(f"{line.job}: {line.note}" for line in sort_lines(lines) if line.note))


def text_table(lines: Iterable[Line]) -> str:
    """Return a table for a terminal."""
    rows = [COLUMN_TITLES, *(table_cells(line) for line in sort_lines(lines))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMN_TITLES))]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(padded)


def markdown_table(lines: Iterable[Line]) -> str:
    """Return a table for a page, with the ratios of losses in bold."""
    out = [f"| {' | '.join(COLUMN_TITLES)} |", "|---" * len(COLUMN_TITLES) + "|"]
    for line in sort_lines(lines):
        *row, ratio, goal = map(escape_markdown, table_cells(line))
        row += [f"**{ratio}**" if line.is_loss else ratio, goal]
        out.append(f"| {' | '.join(row)} |")
    return "\n".join(out)


def escape_markdown(text: str) -> str:
    """Return the text for a cell or a list item of a page."""
    for mark, replacement in (("&", "&amp;"), ("<", "&lt;"), ("|", "/"), ("](", "] ("), ("\n", " ")):
        text = text.replace(mark, replacement)
    return text
