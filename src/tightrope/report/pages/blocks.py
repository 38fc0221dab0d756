"""What a page about one document is made of: a few blocks, which every kind of document fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tightrope.certificates.words.explained import Explained
from tightrope.certificates.words.guesses import Guesses
from tightrope.report.pages.attached import Attached
from tightrope.report.pictures.curves import Curve
from tightrope.report.pictures.hundred import Dots, hundred
from tightrope.report.words.method import Method

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
    def shown(self) -> Sequence[Sequence[str]]:
        """As many lines as anybody reads."""
        return self.rows[:MOST_LINES]

    @property
    def hidden(self) -> int:
        """How many lines are left out."""
        return len(self.rows) - len(self.shown)

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
