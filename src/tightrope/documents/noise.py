"""Certificates of noise: its guarantee, its cost, and a proven lower bound on the cost of any noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from msgspec import structs

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.budget import Guarantee
from tightrope.documents.document import WRITTEN, Counted, Finite, Part, Positive, Probability, Size, TablePart, Triple
from tightrope.documents.reader import Reader
from tightrope.documents.wording import ErrorWording, Explanation, explain_noise
from tightrope.errors import InputError

NOISES = Reader(
    "noise certificate", "write it with tightrope.documents.document.to_json_text(noise.certificate.to_document())"
)


class Argument(Part, frozen=True):
    """The proof of ``lower``: a theorem, or numbers that can be checked with additions and multiplications.

    ``statement`` says what to compute, ``numbers`` what from: floats are exact, whole numbers beyond 2⁵³ are decimal
    text.
    """

    kind: Literal["theorem", "dual", "single release"]
    statement: str
    numbers: dict[str, Any]

    def __repr__(self) -> str:
        return f"Argument({self.kind!r}, {self.statement!r}, …)"  # the numbers fill pages


class NoiseDocument(Part, frozen=True, kw_only=True, rename=WRITTEN):
    """A ``NoiseCertificate`` as written; ``worst_error`` and ``gap`` are None if infinite.

    ``table`` is what is sampled, None for real-valued noise; version 1 does not say it.
    """

    document: Literal["noise certificate"]
    version: Literal[1, 2]
    lower: Size
    upper: Size
    gap: Size | None
    guarantee: Triple
    realized: tuple[tuple[Size, Probability, Probability], ...]
    cost: str
    sensitivity: Positive
    shape: str
    releases: Counted
    mean_absolute_error: Size
    mean_squared_error: Size
    worst_error: Size | None
    shape_lower: Size | None
    unimodal_price: Finite | None
    argument: Argument
    table: TablePart | None = None

    @property
    def explanation_parts(self) -> Explanation:
        """The parts of the text of ``explain``."""
        guarantee, lower_bound = self.guarantee, self.lower if self.cost == "absolute" else None
        errors = ErrorWording(self.mean_absolute_error, lower_bound, self.worst_error, self.table is not None)
        return explain_noise(
            (guarantee.epsilon, guarantee.delta, guarantee.total_variation), self.sensitivity, self.releases, errors
        )

    def explain(self) -> str:
        """Return the guarantee of answers with this noise in one plain paragraph; every number is rounded up."""
        return str(self.explanation_parts)


@dataclass(frozen=True, slots=True, repr=False)
class NoiseCertificate(Displayed):
    """The least expected cost of noise that keeps a promise lies between ``lower`` and ``upper``.

    ``upper`` is what the noise at hand costs, from the integer table that is sampled, rounded up; ``lower`` holds for
    *every* noise of any shape, rounded down. ``guarantee`` is what the table realizes; ``realized`` has a triple
    (ε, δ promised, δ realized) for every point.

    >>> triple = Guarantee(1.0, 1e-6)
    >>> why = Argument("theorem", "stochastically smallest", {})
    >>> found = NoiseCertificate(0.5, 0.5, triple, (), "absolute", 1, "any", 0.5, 1.0, 9.0, why)
    >>> found.gap, found.unimodal_price
    (0.0, None)
    """

    lower: float
    upper: float
    guarantee: Guarantee
    realized: tuple[tuple[float, float, float], ...]
    cost: str
    sensitivity: float
    shape: str
    mean_absolute_error: float
    mean_squared_error: float
    worst_error: float
    argument: Argument
    unimodal_price: float | None = None
    """Least cost of unimodal noise over the least cost of any noise, minus one, at most; None if not computed."""
    shape_lower: float | None = None
    """No noise of the same shape costs less; at least ``lower``."""
    releases: int = 1
    table: TablePart | None = field(default=None, repr=False)
    """The sampled table; None for real-valued noise, and in a certificate of version 1."""

    @property
    def gap(self) -> float:
        """Upper / lower − 1: the cost exceeds the smallest possible cost by at most this fraction."""
        if self.upper == self.lower:
            return 0.0
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf

    def text_summary(self) -> Summary:
        """Return the proven bounds, the errors and the guarantee."""
        guarantee = self.guarantee
        facts: list[tuple[str, Shown]] = [
            ("cost of this noise, at most", Rounded(self.upper, "up")),
            ("cost of every noise, at least", Rounded(self.lower, "down")),
            ("above the least, at most", f"{100 * self.gap:.2g} %"),
            ("epsilon", Rounded(guarantee.epsilon, "up")),
            ("delta", Rounded(guarantee.delta, "up")),
            ("total variation", Rounded(guarantee.total_variation, "up")),
            ("proof", self.argument.kind),
        ]
        return Summary(f"{self.cost} error, sensitivity {self.sensitivity:g}", facts)

    def explain(self) -> str:
        """Return the guarantee of answers with this noise in one plain paragraph; every number is rounded up."""
        return self.to_document().explain()

    def to_document(self) -> NoiseDocument:
        """Return the certificate as a document; ``read_noise`` reads its text."""
        unchanged = {item.name: getattr(self, item.name) for item in fields(self)}
        guarantee = self.guarantee
        converted = {
            "gap": _finite_or_none(self.gap),
            "guarantee": Triple(
                epsilon=guarantee.epsilon, delta=guarantee.delta, total_variation=guarantee.total_variation
            ),
            "worst_error": _finite_or_none(self.worst_error),
        }
        return NoiseDocument(document="noise certificate", version=2, **{**unchanged, **converted})


def read_noise(text: str) -> NoiseCertificate:
    """Return the certificate in a JSON text.

    Raises ``InputError`` with the path of the problem, and for a gap or a total variation that does not follow
    from the other numbers. ``lower`` is not checked here: that needs the argument.
    """
    document = NOISES.parse_json(text, NoiseDocument)
    unchanged = {item.name: getattr(document, item.name) for item in fields(NoiseCertificate)}
    guarantee = document.guarantee
    converted = {
        "guarantee": Guarantee(guarantee.epsilon, guarantee.delta, guarantee.total_variation),
        "worst_error": math.inf if document.worst_error is None else document.worst_error,
    }
    certificate = NoiseCertificate(**{**unchanged, **converted})
    if structs.replace(certificate.to_document(), version=document.version) != document:
        raise InputError("noise certificate gap", document.gap, f"{certificate.gap!r}, and an admissible guarantee")
    return certificate


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
