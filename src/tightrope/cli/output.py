"""Output of commands: JSON, tables, a spinner, files. Plain text if the stream is not a terminal."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tightrope.documents.document import to_json_text
from tightrope.documents.escaping import escape_control_chars, escape_control_chars_in_lines
from tightrope.documents.escaping import json_text as escaped_json
from tightrope.errors import InputError
from tightrope.numerics.progress import listen_to_progress

if TYPE_CHECKING:
    from msgspec import Struct

PAGE = 110
"""Width of text in columns if standard output is not a terminal."""


def print_json(data: Mapping[str, Any]) -> None:
    """One JSON object on standard output; infinities and NaN are null."""
    sys.stdout.write(json_text(data, ensure_ascii=True) + "\n")


def print_document(document: Struct) -> None:
    """One typed document as JSON on standard output."""
    sys.stdout.write(to_json_text(document, ascii_only=True))


def json_text(data: Mapping[str, Any], *, ensure_ascii: bool = False) -> str:
    r"""The data as JSON that every parser accepts.

    >>> json_text({"worst": math.inf}, ensure_ascii=True)
    '{\n  "worst": null\n}'
    """
    return escaped_json(_finite_values(data), ascii_only=ensure_ascii, indent=2)


def _finite_values(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def echo_lines(*lines: str) -> None:
    """Lines of text on standard output, wrapped between words where they are long."""
    page = _stdout_console()
    for line in lines:
        page.print(escape_control_chars_in_lines(line))


def echo_heading(line: str) -> None:
    """A line that stands out, with space above it."""
    _stdout_console().print(f"\n{escape_control_chars_in_lines(line)}", style="bold")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, words: int = 0) -> None:
    """A table of texts: the first ``left`` columns are keys, the last ``words`` sentences, those between are numbers.

    Nothing is cut: keys and sentences wrap. Where the page is too narrow for the numbers, each row is a block of lines.
    """
    page, (head, *body) = _stdout_console(), [[escape_control_chars(text) for text in row] for row in (columns, *rows)]
    texts = TableTexts(head, body, left, words)
    table = as_table(texts, page.width)
    for part in as_blocks(texts) if table is None else (table,):
        page.print(part)


def _stdout_console() -> Console:
    """Standard output as it is now: colored on a terminal, plain text elsewhere. Nothing in a text is markup."""
    terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout, force_terminal=terminal, width=None if terminal else PAGE,
        markup=False, highlight=False, emoji=False,
    )  # fmt: skip


@contextmanager
def show_spinner(task: str) -> Iterator[None]:
    """Show a spinner on standard error during long work, only if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return

    with Console(stderr=True).status(task):
        yield


SECONDS_BEFORE_BAR = 1.0
"""The time after which long work shows a bar and the seconds so far."""


class LateColumn(ProgressColumn):
    """A column of a progress bar that appears after ``SECONDS_BEFORE_BAR``."""

    def __init__(self, column: ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: Task) -> RenderableType:
        """Return the column, or an empty text before it appears."""
        return self._column.render(task) if (task.elapsed or 0.0) >= SECONDS_BEFORE_BAR else Text()


@contextmanager
def show_progress(task: str) -> Iterator[None]:
    """Show a spinner on standard error, and after a second a bar, only if it is a terminal.

    The bar shows the completed fraction of loops that report it (``with_progress``); without one it only moves.
    """
    if not sys.stderr.isatty():
        yield
        return

    columns = SpinnerColumn(), TextColumn("{task.description}"), *map(LateColumn, (BarColumn(), TimeElapsedColumn()))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(task, total=None)
        with listen_to_progress(lambda fraction: bar.update(shown, completed=fraction, total=1)):
            yield


def writable_folder(folder: Path) -> Path:
    """The folder, made if need be; ``InputError`` where nothing can be written. Asked before a budget is spent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        remedy = "choose another one with --out"
        raise InputError("folder", str(folder), f"one that can be written to ({error.strerror})", remedy) from None
    return folder


def check_new_parquet_path(out: Path, remedy: str) -> None:
    """Raise ``InputError`` unless a new Parquet file of this name can be written; called before any work is done."""
    if out.suffix.lower() != ".parquet":
        raise InputError.from_text(f"--out {out}", "the name must end in .parquet; other formats can be made from it")
    if out.exists():
        raise InputError.from_text(f"--out {out}", f"the file exists already; {remedy}")
    writable_folder(out.parent)


def write_file(path: Path, text: str) -> None:
    """The file with exactly this text: whole or not at all, also when the program is stopped half-way."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(part).chmod(file_mode())
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def file_mode() -> int:
    """The permissions that new files get: mkstemp makes files that only their owner can read."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


# Tables on a terminal of any width: words wrap, and a number, which may decide about money, is never cut.

GAP = 3
"""Blanks between two columns."""
NARROWEST_KEY = 20
"""A key that is longer and has no blanks is broken: keys come from data, and may have no end."""


@dataclass(frozen=True, slots=True)
class TableTexts:
    """The texts of a table: the first ``left`` columns are keys, the last ``words`` sentences, all others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int
    words: int

    def is_number(self, number: int) -> bool:
        """Return whether a column's texts must not wrap."""
        return self.left <= number < len(self.columns) - self.words

    def column_texts(self, number: int) -> list[str]:
        """Return the column's name and its texts."""
        return [self.columns[number], *(row[number] for row in self.rows)]

    def narrowest_width(self, number: int) -> int:
        """Minimum width of a column: the longest word for sentences, since they may contain numbers."""
        column = self.column_texts(number)
        if self.is_number(number):
            return _display_width(column)
        word = _display_width([word for text in column for word in text.split()])
        return min(word, NARROWEST_KEY) if number < self.left else word


def as_table(texts: TableTexts, page: int) -> Table | None:
    """The table with every column as wide as it must be; None if this many characters a line are too few."""
    found = column_widths(texts, page)
    if found is None:
        return None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, (column, width) in enumerate(zip(texts.columns, found, strict=True)):
        whole = texts.is_number(number)
        table.add_column(column, justify="right" if whole else "left", no_wrap=whole, overflow="fold", width=width)
    for row in texts.rows:
        table.add_row(*row)
    return table


def as_blocks(texts: TableTexts) -> Iterator[str]:
    r"""Each row as a block: its first text, and a line for each of the others.

    >>> print(*as_blocks(TableTexts(["limit", "spent", "left"], [["total", "1/3", "2/3"]], 1, 0)), sep="\n")
    limit: total
      spent: 1/3
      left: 2/3
    """
    for row in texts.rows:
        for number, (column, text) in enumerate(zip(texts.columns, row, strict=True)):
            yield f"{'  ' if number else ''}{column}: {text}"


def column_widths(texts: TableTexts, page: int) -> list[int] | None:
    """Column widths: the longest text of each; if the sum is too wide, text wraps, in the widest columns first.

    >>> column_widths(TableTexts(["limit", "left", "which is"], [["total", "0.25", "all there is"]], 1, 1), 25)
    [5, 4, 10]
    >>> column_widths(TableTexts(["limit", "left", "which is"], [["total", "0.25", "all there is"]], 1, 1), 19) is None
    True
    """
    every = range(len(texts.columns))
    found = [_display_width(texts.column_texts(number)) for number in every]
    least = [texts.narrowest_width(number) for number in every]
    excess = sum(found) + GAP * (len(found) - 1) - page
    for number in sorted(every, key=lambda n: least[n] - found[n]):
        cut = max(0, min(excess, found[number] - least[number]))
        found[number], excess = found[number] - cut, excess - cut
    return None if excess > 0 else found


def _display_width(found: Sequence[str]) -> int:
    """Width in terminal cells; some characters take two."""
    return max(map(cell_len, found), default=0) or 1
