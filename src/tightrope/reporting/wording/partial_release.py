"""Read JSON objects that may lack fields of a release document: an absent or invalid field is None or empty.

The partial types have the field names of ``documents.release``, so that pages and charts take either. A complete
document is read as its own type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeVar, get_args

from msgspec import Struct
from msgspec.structs import fields

from tightrope.documents.release import RELEASES, PublisherPart, ReleaseCertificate, ReleaseResult
from tightrope.errors import InputError

Json = Mapping[str, object]
P = TypeVar("P", bound=Struct)

LARGEST_NUMBER = 1e300


class PartialNeighbors(Struct, frozen=True, kw_only=True):
    """The privacy unit, as far as it is stated."""

    relation: str = ""
    privacy_unit: str | None = None
    noun: str = ""
    max_rows: float | None = None
    max_groups: float | None = None
    max_rows_per_group: float | None = None
    statement: str = ""


class PartialMechanism(Struct, frozen=True, kw_only=True):
    """A noisy statistic, as far as it is stated."""

    answers: tuple[str, ...] = ()
    statistic: str = ""
    column: str | None = None
    by: tuple[str, ...] = ()
    family: str = ""
    unit: str = ""
    sensitivity_per_row: str = ""
    rows: str = ""


class PartialBudget(Struct, frozen=True, kw_only=True):
    """The requested guarantee, as far as it is stated, with points (ε, δ) as text."""

    delta: str = ""
    points: tuple[tuple[str, str], ...] = ()


class PartialProfile(Struct, frozen=True, kw_only=True):
    """Numbers ε and δ; those at the same index belong together."""

    epsilon: tuple[float | None, ...] = ()
    delta: tuple[float | None, ...] = ()


class PartialRates(Struct, frozen=True, kw_only=True):
    """False- and true-positive rates; those at the same index belong together."""

    false_positive_rate: tuple[float | None, ...] = ()
    true_positive_rate: tuple[float | None, ...] = ()


class PartialAlternative(Struct, frozen=True, kw_only=True):
    """A family of noise and its relative error, as far as they are stated."""

    family: str = ""
    relative_error: float | None = None


class PartialComputation(Struct, frozen=True, kw_only=True):
    """The method by which the guarantee was computed, as far as it is stated."""

    method: str = ""
    argument: str = ""


class PartialCertificate(Struct, frozen=True, kw_only=True):
    """A guarantee, as far as it is stated."""

    epsilon: float | None = None
    epsilon_exact: str = ""
    delta: float | None = None
    delta_exact: str = ""
    total_variation: float | None = None
    attack_success: float | None = None
    budget: PartialBudget = PartialBudget()
    neighbors: PartialNeighbors = PartialNeighbors()
    mechanisms: tuple[PartialMechanism, ...] = ()
    profile: PartialProfile = PartialProfile()
    tradeoff: PartialRates = PartialRates()
    alternatives: tuple[PartialAlternative, ...] = ()
    computed: PartialComputation = PartialComputation()
    versions: Mapping[str, str] = {}
    ledger: str = ""


class PartialErrorAtSize(Struct, frozen=True, kw_only=True):
    """Errors for a group of ``rows`` rows, as far as they are stated."""

    rows: float | None = None
    expected_absolute_error: float | None = None
    half_width_95: float | None = None
    suppressed: float | None = None


class PartialErrors(Struct, frozen=True, kw_only=True):
    """Errors of an answer, as far as they are stated."""

    expected_absolute_error: float | None = None
    half_width_95: float | None = None
    worst_error: float | None = None
    by_group_size: tuple[PartialErrorAtSize, ...] = ()
    statement: str = ""


class PartialNoise(Struct, frozen=True, kw_only=True):
    """The noise in a statistic, as far as it is stated."""

    statistic: str = ""
    family: str = ""
    why: str = ""
    mean_absolute_error: float | None = None
    half_width_95: float | None = None
    worst_error: float | None = None
    unit: str = ""


class PartialAnswer(Struct, frozen=True, kw_only=True):
    """An answer, as far as it is stated; ``keys`` is empty if the document does not state how groups were found."""

    name: str = ""
    question: str = ""
    kind: str = ""
    meaning: str = ""
    over: str = ""
    additive: bool = False
    by: tuple[str, ...] = ()
    keys: object = None
    noise: tuple[PartialNoise, ...] = ()
    error: PartialErrors = PartialErrors()
    notes: tuple[str, ...] = ()
    edges: tuple[object, ...] = ()
    title: str | None = None
    description: str | None = None
    unit: str | None = None
    label: str = ""
    bands: Mapping[str, tuple[object, ...]] = {}
    k: float | None = None
    clamping: str = ""
    rows: tuple[Json, ...] = ()


class PartialBias(Struct, frozen=True, kw_only=True):
    """The effect of bounding and clamping in a sentence, and the names of the answers."""

    answers: tuple[str, ...] = ()
    kind: str = ""
    share: float | None = None
    lower: float | None = None
    upper: float | None = None
    statement: str = ""


class PartialRelease(Struct, frozen=True, kw_only=True):
    """A release, as far as it is stated; ``certificate`` has its own type if it is complete."""

    title: str | None = None
    answers: tuple[PartialAnswer, ...] = ()
    comparisons: tuple[PartialAnswer, ...] = ()
    certificate: ReleaseCertificate | PartialCertificate = PartialCertificate()
    bias: tuple[PartialBias, ...] = ()
    about: PublisherPart = PublisherPart()


def read_release(source: ReleaseResult | PartialRelease | Json) -> ReleaseResult | PartialRelease:
    """Return the release that a JSON object describes: the typed result if it is complete, else its stated parts."""
    if isinstance(source, ReleaseResult | PartialRelease):
        return source
    try:
        return RELEASES.convert_data(dict(source), ReleaseResult)
    except InputError:
        return read_stated_part(source, PartialRelease)


def read_certificate(source: object) -> ReleaseCertificate | PartialCertificate:
    """Return the certificate that a JSON object describes: the typed one if it is complete, else its stated parts."""
    if isinstance(source, ReleaseCertificate):
        return source
    try:
        return RELEASES.convert_data(dict(source) if isinstance(source, Mapping) else source, ReleaseCertificate)
    except InputError:
        return read_stated_part(source, PartialCertificate)


def read_stated_part(source: object, kind: type[P]) -> P:
    """Return the fields of a JSON object that are stated, each read by its type.

    >>> read_stated_part({"relation": " add-remove ", "max_rows": "3"}, PartialNeighbors).relation
    'add-remove'
    """
    table = source if isinstance(source, Mapping) else {}
    values: dict[str, object] = {}
    for field in fields(kind):
        value, expected = table.get(field.name), field.type
        if expected in _READERS:
            values[field.name] = _READERS[expected](value)
        elif isinstance(expected, type) and issubclass(expected, Struct):
            values[field.name] = read_stated_part(value, expected)
        else:  # a list of parts; other items are dropped
            item_type, _ = get_args(expected)
            parts = (read_stated_part(item, item_type) for item in _list_items(value) if isinstance(item, Mapping))
            values[field.name] = tuple(parts)
    return kind(**values)


def stated_number(value: object) -> float | None:
    """Return ``value`` as a float; None for other types, NaN, ±∞, booleans, and numbers too large to draw (over 1e300).

    >>> stated_number(3), stated_number(float("nan")), stated_number(True), stated_number("3")
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):
        return None
    return found if abs(found) <= LARGEST_NUMBER else None


def stated_text(value: object) -> str:
    """Return a text without white space around it; numbers as they print; empty for other types.

    >>> stated_text(" x "), stated_text(3), stated_text(None)
    ('x', '3', '')
    """
    if isinstance(value, str):
        return value.strip()
    return "" if stated_number(value) is None else str(value)


def _list_items(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


_READERS: dict[Any, Callable[[object], object]] = {
    object: lambda value: value,
    bool: lambda value: value is True,
    str: stated_text,
    str | None: lambda value: stated_text(value) or None,
    float | None: stated_number,
    ReleaseCertificate | PartialCertificate: read_certificate,
    tuple[str, ...]: lambda value: tuple(item for item in _list_items(value) if isinstance(item, str)),
    tuple[float | None, ...]: lambda value: tuple(map(stated_number, _list_items(value))),
    tuple[object, ...]: lambda value: tuple(_list_items(value)),
    tuple[Json, ...]: lambda value: tuple(item for item in _list_items(value) if isinstance(item, Mapping)),
    tuple[tuple[str, str], ...]: lambda value: tuple(
        (str(item[0]), str(item[1])) for item in _list_items(value) if isinstance(item, list | tuple) and len(item) == 2
    ),
    Mapping[str, tuple[object, ...]]: lambda value: (
        {str(key): tuple(_list_items(edges)) for key, edges in value.items()} if isinstance(value, Mapping) else {}
    ),
    Mapping[str, str]: lambda value: (
        {str(key): stated_text(text) for key, text in value.items()} if isinstance(value, Mapping) else {}
    ),
}
"""Functions that read a value, by the type of its field."""


def stated_number_pairs(firsts: Iterable[float | None], seconds: Iterable[float | None]) -> list[tuple[float, float]]:
    """Return two parallel lists of numbers as pairs; a pair with a missing number is dropped.

    >>> stated_number_pairs([0.0, 1.0, 2.0], [5.0, None])
    [(0.0, 5.0)]
    """
    pairs = zip(firsts, seconds, strict=False)
    return [(first, second) for first, second in pairs if first is not None and second is not None]
