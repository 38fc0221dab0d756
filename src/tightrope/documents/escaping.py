"""Escape texts for output: one function for each format.

Column names and keys come from data, and people write data. A terminal, and ``cat`` on a file, obeys control
characters; a spreadsheet computes what begins like a formula; a page runs markup. ``escape_control_chars`` is for
terminals, ``html_text`` for pages (the templates of ``report`` escape by themselves, and pass
``escape_control_chars_in_lines``), ``escape_csv_formula`` for cells of CSV, ``json_text`` for JSON and ``toml_value``
for TOML. JSON and Parquet hold the exact text; the others are for eyes. tests/documents/test_texts_that_leave.py tries
every code point, and refuses any other module that writes one of these forms.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.documents.numbers import shortest_text


def escape_control_chars(text: object) -> str:
    r"""Return the text with control characters, escapes, bidirectional marks and invisible characters replaced.

    >>> escape_control_chars("Oslo\x1b[2J"), escape_control_chars("a\u202eb\nc")
    ('Oslo�[2J', 'a�b�c')
    """
    return "".join(char if char.isprintable() else "�" for char in str(text))


def escape_control_chars_in_lines(text: str) -> str:
    """Return ``escape_control_chars`` of each line of the text."""
    return "\n".join(map(escape_control_chars, text.split("\n")))


def html_text(text: object) -> str:
    """Return the text escaped for HTML, in an element or an attribute.

    >>> html_text("<b>")
    '&lt;b&gt;'
    """
    return html.escape(escape_control_chars(text))


def json_text(data: object, *, ascii_only: bool = False, indent: int | None = None, compact: bool = False) -> str:
    r"""Return JSON that reads back exactly; terminal controls and invisible characters become ``\uXXXX``.

    Raises ``ValueError`` for NaN and infinities.

    >>> print(json_text(["Zürich", "a\u202eb\x9b"]))
    ["Zürich", "a\u202eb\u009b"]
    """
    marks = (",", ":") if compact else None
    text = json.dumps(data, allow_nan=False, ensure_ascii=ascii_only, indent=indent, separators=marks)
    return text if text.isascii() and "\x7f" not in text else _UNSAFE_IN_JSON.sub(_json_escapes, text)


_UNSAFE_IN_JSON = re.compile(r"[^\n -~]")


def _json_escapes(match: re.Match[str]) -> str:
    char = match[0]
    if char.isprintable():
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))


def toml_value(value: object) -> str:
    r"""Return text, a number or a list of them in TOML, on one line; it reads back exactly.

    >>> print(toml_value('say "a"\x9b'))
    "say \"a\"\u009b"
    """
    quoted = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNSAFE_IN_JSON.sub(lambda match: match[0] if match[0].isprintable() else _escape_sequence(match[0]), quoted)


QUOTE = "'"
"""The mark by which a spreadsheet reads a cell as text; it is not displayed."""
FORMULA_STARTS = "=+-@−"
"""Characters with which a formula begins, also as full-width, small, raised or lowered forms; − is a minus sign."""
NUMBER = re.compile(r"-[0-9]+(\.[0-9]+)?")
"""A negative number is not a formula."""
SEPARATORS = ",;|"
"""Characters at which a spreadsheet may begin a new cell, depending on its settings; a tab is also escaped."""
BLANK = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that look like a space."""


def csv_table(columns: Mapping[str, Iterable[Any]]) -> str:
    """The columns as CSV: texts in quotes and escaped by ``escape_csv_formula``, numbers with every digit."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(map(escape_csv_formula, columns))
    for row in zip(*columns.values(), strict=True):
        writer.writerow([escape_csv_formula(value) if isinstance(value, str) else value for value in row])
    return file.getvalue()


def escape_csv_formula(text: str) -> str:
    r"""Return the text for a CSV cell that a spreadsheet never computes, however it splits lines into cells.

    An apostrophe comes before the start of a formula (also after spaces, quotes and invisible characters), at
    the beginning and after each of ``SEPARATORS``, and before a text that begins with an apostrophe. Invisible ones
    except spaces are written as ``\uXXXX``. The escaping is not reversible: JSON and Parquet hold the exact text.

    >>> tuple(escape_csv_formula(text) for text in ("=1+1", "-5.0", "-5+1", "Oslo", "x;=1+1;"))
    ("'=1+1", '-5.0', "'-5+1", 'Oslo', "x;'=1+1;")
    >>> print(escape_csv_formula("a\tb\x1b[2J"), escape_csv_formula("\xa0=1"))
    a\u0009b\u001b[2J '\u00a0=1
    """
    if NUMBER.fullmatch(text):
        return text
    cells, start = [], 0
    ends = [index + 1 for index, char in enumerate(text) if char in SEPARATORS or char in "\t\r\n"]
    for end in (*ends, len(text)):
        # A spreadsheet may read this part as a cell; an apostrophe precedes it if it begins like a formula.
        cell = text[start:end]
        escaped = "".join(char if char == " " or char.isprintable() else _escape_sequence(char) for char in cell)
        # Quotes and invisible characters may be skipped; combining marks join to what precedes.
        visible = (char for char in cell if char != '"' and char not in BLANK)
        first_visible = next((char for char in visible if unicodedata.category(char)[0] not in "CMZ"), "")
        begins_formula = first_visible and unicodedata.normalize("NFKC", first_visible)[0] in FORMULA_STARTS
        cells.append(QUOTE + escaped if begins_formula else escaped)
        start = end
    escaped_text = "".join(cells)
    return QUOTE + escaped_text if text.startswith(QUOTE) else escaped_text


def _escape_sequence(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= _MAX_FOUR_DIGITS else f"\\U{ord(char):08x}"


_MAX_FOUR_DIGITS = 0xFFFF


A_PERSON = "a person"
"""The default noun of the privacy unit."""


def range_part_text(key: object, edges: Sequence[object]) -> str:
    """Return a part of a range by both ends; ``key`` is its lower edge, None for what is missing or below.

    >>> range_part_text(-60, [-60, 0, 30.5]), range_part_text(30.5, [-60, 0, 30.5]), range_part_text(None, [-60, 0])
    ('−60 to 0', '30.5 and above', 'missing or below −60')
    """
    if key is None:
        return f"missing or below {_edge_text(edges[0])}"
    index = next((index for index, edge in enumerate(edges) if edge == key), None)
    if index is None:
        return _edge_text(key)
    return (
        f"{_edge_text(key)} to {_edge_text(edges[index + 1])}"
        if index + 1 < len(edges)
        else f"{_edge_text(key)} and above"
    )


def _edge_text(edge: object) -> str:
    if isinstance(edge, bool) or not isinstance(edge, int | float):
        return escape_control_chars(edge)
    return shortest_text(edge).replace("-", "−", 1)


def unit_noun(means: str) -> str:
    """Return the noun of the privacy unit without its article.

    >>> unit_noun("an aircraft"), unit_noun("a person")
    ('aircraft', 'person')
    """
    return means.partition(" ")[2] or means
