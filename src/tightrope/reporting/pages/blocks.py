"""Blocks of a page about one document, the same for every kind of document, and the environment of the templates."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec import Struct

from tightrope.documents.document import plain_data
from tightrope.documents.escaping import escape_control_chars_in_lines, json_text
from tightrope.documents.numbers import Guesses
from tightrope.documents.release import ReleaseCertificate, ReleaseResult, results_csv
from tightrope.documents.wording import Explanation
from tightrope.errors import MissingExtraError
from tightrope.reporting.charts.page_charts import Curve, GuessDots, guess_dots
from tightrope.reporting.wording.method import MethodAppendix
from tightrope.reporting.wording.partial_release import PartialRelease

if TYPE_CHECKING:
    from jinja2 import Environment

# Files inside the page: the results as CSV and the certificate as JSON, each behind a link that saves it.

KEPT = "/:;,[]{}()!$*@=+?|~"
"""Characters allowed unescaped in a quoted URL: no quotes, and no start of a tag or a reference."""
LONGEST_ADDRESS = 250_000
"""A file whose data URL is longer is not embedded in the page of a release, so that the page can be mailed."""
CSV, JSON = "text/csv;charset=utf-8", "application/json;charset=utf-8"


@dataclass(frozen=True, slots=True)
class EmbeddedFile:
    """A file: its name, description, size, and a data URL with its contents."""

    name: str
    description: str
    size: str
    address: str


def embedded_files(document: ReleaseResult | PartialRelease) -> list[EmbeddedFile]:
    """Return the results and the certificate as files; one with a missing field, or one that is too long, is left out.

    Tables of noise can take megabytes: the certificate is then only the file next to the page.
    """
    files: list[EmbeddedFile] = []
    if isinstance(document, ReleaseResult):
        files.append(embed_file("results.csv", "all results, with all digits", CSV, results_csv(document)))
    if isinstance(document.certificate, ReleaseCertificate):
        files.append(document_file(document.certificate, "certificate.json", "the certificate, on one line"))
    return [file for file in files if len(file.address) <= LONGEST_ADDRESS]


def document_file(document: Struct, name: str, said: str) -> EmbeddedFile:
    """Return a typed document as JSON on one line; the file next to a page is indented, and larger."""
    text = json_text(plain_data(document), compact=True)
    return embed_file(name, said, JSON, text)


def embed_file(name: str, said: str, kind: str, text: str) -> EmbeddedFile:
    """Return a file with this text."""
    return EmbeddedFile(name, said, size_words(len(text.encode())), f"data:{kind},{quote(text, safe=KEPT)}")


def size_words(octets: int) -> str:
    """Return the file size in words.

    >>> size_words(812), size_words(170_276), size_words(2_400_000)
    ('812 bytes', '170 kB', '2.4 MB')
    """
    if octets < 1_000:
        return f"{octets} bytes"
    return f"{octets / 1_000:.0f} kB" if octets < 1_000_000 else f"{octets / 1_000_000:.1f} MB"


SCROLLS_FROM, MOST_LINES, NARROW = 25, 2_000, 4


@dataclass(frozen=True, slots=True)
class Table:
    """Text in columns, the first ``left`` of them words and the others numbers; ``caption`` names the contents."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    left: int = 1
    bars: Sequence[float] = ()
    """A bar for each row, in percent of the longest; empty without a chart."""

    @property
    def visible_rows(self) -> Sequence[Sequence[str]]:
        """The rows that are displayed, up to a readable number."""
        return self.rows[:MOST_LINES]

    @property
    def hidden_row_count(self) -> int:
        """The number of rows left out."""
        return len(self.rows) - len(self.visible_rows)

    @property
    def is_scrollable(self) -> bool:
        """Return whether the table is too long to fit on a screen."""
        return len(self.rows) >= SCROLLS_FROM

    @property
    def has_few_columns(self) -> bool:
        """Return whether the table has few columns."""
        return len(self.columns) <= NARROW


@dataclass(frozen=True, slots=True)
class Card:
    """One number at the top: its label, its symbol, and its meaning."""

    term: str
    symbol: str
    figure: str
    meaning: str


@dataclass(frozen=True, slots=True)
class AttackCurves:
    """Both curves of the best attacker, and a few points: false alarms, people found, ratio to a blind guess."""

    tradeoff: Curve | None
    profile: Curve | None
    attack_rates: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: text, named parameters, tables, and optional curves of an attacker."""

    anchor: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    curves: AttackCurves | None = None


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """The whole page of a document."""

    kind: str
    title: str
    explained: Explanation
    cards: tuple[Card, ...]
    sections: tuple[Section, ...]
    method: MethodAppendix
    embedded_files: tuple[EmbeddedFile, ...]
    verified: str
    """Statement of what ``tightrope verify`` checks in this kind of document."""
    limits: tuple[tuple[str, str], ...]
    independent: bool = True
    """True if ``tightrope verify`` can confirm the document."""
    secret: bool = False
    """True if access to the page must be restricted."""
    guess_dots: list[GuessDots] = field(init=False)

    def __post_init__(self) -> None:
        guesses = self.explained.guesses
        object.__setattr__(self, "guess_dots", [] if guesses is None else guess_dots(guesses))

    @property
    def attack_guesses(self) -> Guesses | None:
        """The probabilities that the picture shows."""
        return self.explained.guesses

    @property
    def document_filename(self) -> str:
        """The name of the document inside the page."""
        return self.embedded_files[0].name


# The only script and style that a page may run and load: its own, verified by their digests.


def content_security_policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy that allows only these two, by their SHA-256: injected code is not executed.

    >>> content_security_policy("p { color: red }", "alert(1)").split("; ")[0]
    "default-src 'none'"
    """
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    allowed = f"style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def template_environment() -> Environment:
    """Return the templates of this package, with autoescaping; an undefined name is an error."""
    try:
        import jinja2  # noqa: F401 - refused here: a cached environment would hide that it is missing
    except ImportError as missing:
        raise MissingExtraError("jinja2", "release") from missing
    return _cached_environment()


@cache
def _cached_environment() -> Environment:
    """Return the environment, made once a process: compiling the templates takes as long as rendering a page."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(_read_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Invisible characters are escaped in every field: a column name may reverse the direction of a text.
        finalize=lambda value: escape_control_chars_in_lines(value) if type(value) is str else value,
    )
    environment.filters["at"] = _percent_position
    # The style and the script of every page, and the policy that allows only these two.
    style, script = _read_template("report.css"), _read_template("sort.js")
    assets = {"style": Markup(style), "script": Markup(script)}  # noqa: S704 - files of this package
    environment.globals |= {**assets, "policy": content_security_policy(style, script)}
    return environment


def _read_template(name: str) -> str:
    return (resources.files("tightrope.reporting") / "templates" / name).read_text(encoding="utf-8")


def _percent_position(position: float) -> str:
    """Return a position in a chart, to a hundredth of a percent.

    >>> _percent_position(33.3333), _percent_position(50.0)
    ('33.33%', '50%')
    """
    return f"{position:.2f}".rstrip("0").rstrip(".") + "%"
