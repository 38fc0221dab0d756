"""Every text that leaves passes here: one way to escape for each place that a text can go to.

Column names and keys come from data, and people write data. A terminal, and ``cat`` on a file, obeys control
characters; a spreadsheet computes what begins like a formula; a page runs markup. ``printable`` is for terminals,
``html_text`` for pages (the templates of ``report`` escape by themselves, and pass ``printable_lines``), ``csv_text``
for cells of CSV, ``json_text`` for JSON and ``toml_value`` for TOML. JSON and Parquet hold the exact text; the others
are for eyes. tests/documents/test_texts_that_leave.py tries every code point, and refuses any other module that
writes one of these forms.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any


def printable(text: object) -> str:
    r"""The text without control characters, escapes, changes of direction and other letters that nobody can see.

    >>> printable("Oslo\x1b[2J"), printable("a\u202eb\nc")
    ('Oslo�[2J', 'a�b�c')
    """
    return "".join(letter if letter.isprintable() else "�" for letter in str(text))


def printable_lines(text: str) -> str:
    """The same for a text of several lines: line feeds stay."""
    return "\n".join(map(printable, text.split("\n")))


def html_text(text: object) -> str:
    """The text for HTML, in an element or an attribute.

    >>> html_text("<b>")
    '&lt;b&gt;'
    """
    return html.escape(printable(text))


def json_text(data: object, *, ascii_only: bool = False, indent: int | None = None, compact: bool = False) -> str:
    r"""JSON that reads back exactly; what a terminal obeys, and letters that nobody sees, as ``\uXXXX``.

    Raises ``ValueError`` for NaN and infinities.

    >>> print(json_text(["Zürich", "a\u202eb\x9b"]))
    ["Zürich", "a\u202eb\u009b"]
    """
    marks = (",", ":") if compact else None
    text = json.dumps(data, allow_nan=False, ensure_ascii=ascii_only, indent=indent, separators=marks)
    return text if text.isascii() and "\x7f" not in text else _UNSEEN_IN_JSON.sub(_json_escapes, text)


_UNSEEN_IN_JSON = re.compile(r"[^\n -~]")


def _json_escapes(found: re.Match[str]) -> str:
    letter = found[0]
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def toml_value(value: object) -> str:
    r"""Text, a number or a list of them in TOML, on one line, which reads back exactly: JSON but for its escapes.

    >>> print(toml_value('say "a"\x9b'))
    "say \"a\"\u009b"
    """
    quoted = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNSEEN_IN_JSON.sub(lambda found: found[0] if found[0].isprintable() else _visible(found[0]), quoted)


QUOTE = "'"
"""What a spreadsheet takes for "this is text", and does not show."""
NUMBER = re.compile(r"-[0-9]+(\.[0-9]+)?")
"""A number less than nothing is no formula."""
SEPARATORS = ",;|"
"""Where a spreadsheet, as it is set up, may begin a new cell; a tab does too, and is escaped."""
BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that look like a space."""


def csv_table(columns: Mapping[str, Iterable[Any]]) -> str:
    """The columns as CSV: texts in quotes and escaped by ``csv_text``, numbers with every digit."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(map(csv_text, columns))
    writer.writerows(map(_cell, row) for row in zip(*columns.values(), strict=True))
    return file.getvalue()


def _cell(value: Any) -> Any:
    return csv_text(value) if isinstance(value, str) else value


def csv_text(text: str) -> str:
    r"""The text for a cell of CSV that no spreadsheet computes, however it splits lines into cells.

    An apostrophe comes before what begins like a formula (also behind spaces, quotes and letters that nobody sees), at
    the beginning and after each of ``SEPARATORS``, and before a text that begins with an apostrophe. Unseen letters
    but spaces are written as ``\uXXXX``. Not made to be undone: JSON and Parquet hold the exact text.

    >>> csv_text("=1+1"), csv_text("-5.0"), csv_text("-5+1"), csv_text("Oslo"), csv_text("x;=1+1;")
    ("'=1+1", '-5.0', "'-5+1", 'Oslo', "x;'=1+1;")
    >>> print(csv_text("a\tb\x1b[2J"), csv_text("\xa0=1"))
    a\u0009b\u001b[2J '\u00a0=1
    """
    if NUMBER.fullmatch(text):
        return text
    parts, start = [], 0
    ends = [place + 1 for place, letter in enumerate(text) if letter in SEPARATORS or letter in "\t\r\n"]
    for end in (*ends, len(text)):
        # What may become a cell of its own, behind an apostrophe where it begins like a formula.
        part = text[start:end]
        shown = "".join(letter if letter == " " or letter.isprintable() else _visible(letter) for letter in part)
        first = next((letter for letter in part if not _skipped(letter)), "")
        parts.append(QUOTE + shown if first and _begins_formula(first) else shown)
        start = end
    whole = "".join(parts)
    return QUOTE + whole if text.startswith(QUOTE) else whole


def _visible(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) <= _SHORT else f"\\U{ord(letter):08x}"


_SHORT = 0xFFFF


@cache
def _skipped(letter: str) -> bool:
    """Whether a spreadsheet, or what cleans a text before it, may look past the letter; marks join nothing before."""
    return letter == '"' or letter in BLANK or unicodedata.category(letter)[0] in "CMZ"


@cache
def _begins_formula(letter: str) -> bool:
    """Also full-width, small, raised and lowered forms of = + - @, and the minus sign."""
    return unicodedata.normalize("NFKC", letter)[0] in "=+-@−"


A_PERSON = "a person"
"""What a person is, unless it is said otherwise."""


def part_named(key: object, edges: Sequence[object]) -> str:
    """A part of a range by both of its ends; ``key`` is the edge where it begins, None for what is missing or below.

    >>> part_named(-60, [-60, 0, 30.5]), part_named(30.5, [-60, 0, 30.5]), part_named(None, [-60, 0])
    ('−60 to 0', '30.5 and above', 'missing or below −60')
    """
    if key is None:
        return f"missing or below {_end(edges[0])}"
    place = next((place for place, edge in enumerate(edges) if edge == key), None)
    if place is None:
        return _end(key)
    return f"{_end(key)} to {_end(edges[place + 1])}" if place + 1 < len(edges) else f"{_end(key)} and above"


def _end(edge: object) -> str:
    if isinstance(edge, bool) or not isinstance(edge, int | float):
        return printable(edge)
    whole = isinstance(edge, float) and edge.is_integer() and abs(edge) < _LONG
    return (str(int(edge)) if whole else str(edge)).replace("-", "−", 1)


_LONG = 1e15
"""From here on a float is shown with its power of ten."""


def noun(means: str) -> str:
    """What a person is, without its article.

    >>> noun("an aircraft"), noun("a person")
    ('aircraft', 'person')
    """
    return means.partition(" ")[2] or means
