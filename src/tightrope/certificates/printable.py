"""Names as they may be shown: column names and keys come from data, and a terminal obeys what it is sent."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: object) -> str:
    r"""The text without control characters, escapes, changes of direction and other letters that nobody can see.

    >>> printable("Oslo\x1b[2J"), printable("a\u202eb\nc")
    ('Oslo�[2J', 'a�b�c')
    """
    return "".join(letter if letter.isprintable() else "�" for letter in str(text))


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
