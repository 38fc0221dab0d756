"""What a page about one document is made of: a few blocks, which every kind of document fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

from msgspec import Struct

from tightrope.documents.document import plain
from tightrope.documents.escaping import json_text
from tightrope.documents.numbers import Guesses
from tightrope.documents.release import RELEASES, ReleaseCertificate, ReleaseResult, results_csv
from tightrope.documents.wording import Explained
from tightrope.errors import InputError
from tightrope.reporting.charts.page_charts import Curve, Dots, hundred
from tightrope.reporting.wording.document import Json, object_at
from tightrope.reporting.wording.method import Method

# Files inside the page: the results as CSV and the certificate as JSON, each behind a link that saves it.

D = TypeVar("D")
KEPT = "/:;,[]{}()!$*@=+?|~"
"""What may stand in an address inside quotes as it is: neither quotes nor what begins a tag or a reference."""
CSV, JSON = "text/csv;charset=utf-8", "application/json;charset=utf-8"


@dataclass(frozen=True, slots=True)
class Attached:
    """A file: its name, what it is, how large, and an address that holds all of it."""

    name: str
    said: str
    size: str
    address: str


def attached(document: Json) -> list[Attached]:
    """What a document holds whole: one that lacks a field is offered neither as results nor as a certificate."""
    result = _whole(lambda: RELEASES.data(dict(document), ReleaseResult))
    found = (
        None if result is None else file_of("results.csv", "all results, every digit", CSV, results_csv(result)),
        _certificate(object_at(document, "certificate")),
    )
    return [one for one in found if one is not None]


def _certificate(document: Json) -> Attached | None:
    certificate = _whole(lambda: RELEASES.data(dict(document), ReleaseCertificate))
    if certificate is None:
        return None
    return document_file(certificate, "certificate.json", "the certificate")


def document_file(document: Struct, name: str, said: str) -> Attached:
    """A typed document as JSON in one line, and called so: the same beside a page has lines, and is larger."""
    text = json_text(plain(document), compact=True)
    return file_of(name, f"{said}, in one line", JSON, text)


def _whole(read: Callable[[], D]) -> D | None:
    try:
        return read()
    except InputError:
        return None


def file_of(name: str, said: str, kind: str, text: str) -> Attached:
    """A file that holds the text."""
    return Attached(name, said, size_words(len(text.encode())), f"data:{kind},{quote(text, safe=KEPT)}")


def size_words(octets: int) -> str:
    """How large a file is.

    >>> size_words(812), size_words(170_276), size_words(2_400_000)
    ('812 bytes', '170 kB', '2.4 MB')
    """
    if octets < 1_000:
        return f"{octets} bytes"
    return f"{octets / 1_000:.0f} kB" if octets < 1_000_000 else f"{octets / 1_000_000:.1f} MB"


SCROLLS_FROM, MOST_LINES, NARROW = 25, 2_000, 4


@dataclass(frozen=True, slots=True)
class Table:
    """Texts in columns, of which the first ``left`` are words and the others numbers; ``caption`` says of what."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    left: int = 1
    bars: Sequence[float] = ()
    """A bar a line, in percent of the longest; none where nothing is drawn."""

    @property
    def visible_rows(self) -> Sequence[Sequence[str]]:
        """As many lines as anybody reads."""
        return self.rows[:MOST_LINES]

    @property
    def hidden(self) -> int:
        """How many lines are left out."""
        return len(self.rows) - len(self.visible_rows)

    @property
    def scrolls(self) -> bool:
        """Whether the table is too long to stand in full on a screen."""
        return len(self.rows) >= SCROLLS_FROM

    @property
    def narrow(self) -> bool:
        """Whether there is little in it."""
        return len(self.columns) <= NARROW


@dataclass(frozen=True, slots=True)
class Card:
    """One number at the top: what it is, its sign, and what it means."""

    term: str
    symbol: str
    figure: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Curves:
    """Both curves of the best attacker, and a few points: false alarms, found, times a blind guess."""

    tradeoff: Curve | None
    profile: Curve | None
    catches: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: words, parameters by their names, tables, and the curves of an attacker where it has some."""

    place: str
    heading: str
    said: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    curves: Curves | None = None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """The whole page of a document."""

    kind: str
    title: str
    explained: Explained
    cards: tuple[Card, ...]
    sections: tuple[Section, ...]
    method: Method
    attached: tuple[Attached, ...]
    verified: str
    """What ``tightrope verify`` says of this kind of document."""
    limits: tuple[tuple[str, str], ...]
    independent: bool = True
    """Whether there is something to confirm."""
    secret: bool = False
    """Whether not everybody may see the page."""
    hundred: list[Dots] = field(init=False)

    def __post_init__(self) -> None:
        guesses = self.explained.guesses
        object.__setattr__(self, "hundred", [] if guesses is None else hundred(guesses))

    @property
    def guesses(self) -> Guesses | None:
        """What the picture shows."""
        return self.explained.guesses

    @property
    def checked(self) -> str:
        """The name of the document inside the page."""
        return self.attached[0].name
