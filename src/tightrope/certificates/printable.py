"""Names as they may be shown: column names and keys come from data, and a terminal obeys what it is sent."""

from __future__ import annotations


def printable(text: object) -> str:
    r"""The text without control characters, escapes, changes of direction and other letters that nobody can see.

    >>> printable("Oslo\x1b[2J"), printable("a\u202eb\nc")
    ('Oslo�[2J', 'a�b�c')
    """
    return "".join(letter if letter.isprintable() else "�" for letter in str(text))


def noun(means: str) -> str:
    """What a person is, without its article.

    >>> noun("an aircraft"), noun("a person")
    ('aircraft', 'person')
    """
    return means.partition(" ")[2] or means
