"""Files inside the page: the results as CSV and the certificate as JSON, each behind a link that saves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from msgspec import Struct

from tightrope.certificates.document import plain
from tightrope.certificates.printable import json_text
from tightrope.certificates.release import RELEASES, ReleaseCertificate, ReleaseResult
from tightrope.certificates.results import results_csv
from tightrope.errors import InputError
from tightrope.report.words.document import Json, part

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
    found = (_results(document), _certificate(part(document, "certificate")))
    return [one for one in found if one is not None]


def _results(document: Json) -> Attached | None:
    result = _whole(lambda: RELEASES.data(dict(document), ReleaseResult))
    return None if result is None else file_of("results.csv", "all results, every digit", CSV, results_csv(result))


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
