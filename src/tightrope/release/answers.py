"""What a release hands over: a table an answer, and one certificate."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.documents.document import plain, to_json_text
from tightrope.documents.escaping import html_text, part_named, printable
from tightrope.documents.release import (
    MEASURES,
    MISSING,
    PAID,
    QUESTION,
    RELEASES,
    About,
    AnswerDocument,
    Cost,
    ReleaseCertificate,
    ReleaseResult,
    results_columns,
    results_csv,
)
from tightrope.errors import InputError
from tightrope.queries.query import Question
from tightrope.release.plan_text import rounded_up

if TYPE_CHECKING:
    import pandas as pd

# Answers as tables for other programs: Parquet for data frames, HTML for notebooks.

SHOWN_ROWS = 60
"""A notebook shows so many groups of an answer at most."""


def results_parquet(result: ReleaseResult) -> bytes:
    """The same table as a Parquet file: measures are doubles, keys what they are, or text where kinds differ."""
    from pyarrow import BufferOutputStream, float64, string, table
    from pyarrow.parquet import write_table

    columns = results_columns(result)
    arrays = {}
    for name, found in columns.items():
        mixed = len({type(value) for value in found if value is not None}) > 1
        number = name in (*MEASURES, *PAID)
        kind = float64() if number else string() if name in (QUESTION, MISSING) or mixed else None
        arrays[name] = _array([str(v) if mixed and not number and v is not None else v for v in found], kind)
    sink = BufferOutputStream()
    write_table(table(arrays), sink)
    return bytes(sink.getvalue())


def _array(found: list[Any], kind: Any) -> Any:
    """What no type of Arrow holds is text: nothing that was paid for fails to be written."""
    from pyarrow import ArrowException, array

    try:
        return array(found, kind)
    except (ArrowException, OverflowError):
        return array([None if value is None else str(value) for value in found])


def answer_html(answer: AnswerDocument) -> str:
    """A table with the keys, the value and its interval; what people wrote is shown as text, whatever it is."""
    names = (*answer.by, *MEASURES, *(name for name in PAID if any(name in row for row in answer.rows)))
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    shown = (_cells(_fields(_with_part(answer, row), names)) for row in answer.rows[:SHOWN_ROWS])
    more = len(answer.rows) - SHOWN_ROWS
    rest = f"<p>... and {more:,} more groups in .frame</p>" if more > 0 else ""
    caption = f"{_text(answer.name)}: {_text(answer.question)}; 95 % intervals"
    return f"<table><caption>{caption}</caption><tr>{head}</tr>{''.join(shown)}</table>{rest}"


def _fields(row: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [row.get(name) for name in names]


def _with_part(answer: AnswerDocument, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with a part of a histogram called by both of its ends."""
    return {**row, answer.by[-1]: part_named(row[answer.by[-1]], answer.edges)} if answer.edges else row


def _cells(fields: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<td>{_cell_text(field)}</td>' for field in fields)}</tr>"


def _cell_text(field: object) -> str:
    if field is None:
        return "–"
    return f"{field:.6g}" if isinstance(field, float) else _text(str(field))


def _text(text: str) -> str:
    return html_text(text)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """One question's records (keys, ``value``, ``lower``, ``upper``: a 95 % interval) and its error statement."""

    question: Question
    rows: list[dict[str, Any]]
    about: dict[str, Any]

    def __repr__(self) -> str:
        groups = f"{len(self.rows)} group{'s' if len(self.rows) != 1 else ''}" if self.question.columns else "one value"
        return f"<Answer {printable(self.name)!r}: {self.question}; {groups} in .frame>"

    @property
    def name(self) -> str:
        """The question's name."""
        return self.question.asked.name

    @property
    def frame(self) -> pd.DataFrame:
        """The records as a pandas data frame, in the order of the keys; integers stay integers beside a missing key."""
        import pandas as pd

        paid = [name for name in PAID if any(name in row for row in self.rows)]
        columns = {name: [row.get(name) for row in self.rows] for name in (*self.question.columns, *MEASURES, *paid)}
        return pd.DataFrame({name: pd.array(found, dtype=_dtype(found)) for name, found in columns.items()})

    def _repr_html_(self) -> str:
        return answer_html(self.document)

    @property
    def document(self) -> AnswerDocument:
        """The answer as it is written: dates as text, no NaN, no infinity."""
        rows = [{name: _json_value(name, value) for name, value in row.items()} for row in self.rows]
        return RELEASES.data({**self.about, "rows": rows}, AnswerDocument)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answers:
    """All answers of a plan, by position or by name, and the certificate that holds for all of them together."""

    answers: tuple[Answer, ...]
    certificate_data: ReleaseCertificate
    costs: tuple[Cost, ...] = ()
    """What bounding and clamping left out or moved, where the plan paid for knowing it."""

    def __repr__(self) -> str:
        held = self.certificate_data
        promise = f"epsilon {rounded_up(held.epsilon, 3)} at delta {held.delta:.3g}"
        costs = [f"<Cost {cost.statement}>" for cost in self.costs]
        return "\n".join([f"<Answers: {promise}, .certificate holds the proof>", *map(repr, self.answers), *costs])

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, which: int | str) -> Answer:
        if isinstance(which, int):
            return self.answers[which]
        names = [answer.name for answer in self.answers]
        if which not in names:
            raise InputError("name", which, f"one of {names}")
        return self.answers[names.index(which)]

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return plain(self.certificate_data)

    def result(self, title: str | None = None, about: About | None = None) -> ReleaseResult:
        """All of it as one typed document: what ``tightrope release --json`` prints and the report shows."""
        return ReleaseResult(
            document="release result",
            version=1,
            title=title,
            answers=tuple(answer.document for answer in self.answers),
            certificate=self.certificate_data,
            costs=self.costs,
            about=about,
        )

    def to_data(self) -> dict[str, Any]:
        """``result`` as plain data."""
        return plain(self.result())

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """All answers as one CSV table, a line a group: the question, keys, value, ends and what else was paid for.

        Key columns are those of all questions; a field that a question does not have is empty. Texts stand in quotes.
        With a ``path`` the text is written there, too, in UTF-8. Raises ``InputError`` where no file can be there.
        """
        text = results_csv(self.result())
        if path is not None:
            _keep(path, text.encode())
        return text

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """The same table as a Parquet file; keys of several kinds under one name are text.

        Raises ``InputError`` where no file can be there.
        """
        _keep(path, results_parquet(self.result()))

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """The page that ``tightrope release`` writes: one HTML file that needs nothing beside itself.

        Raises ``InputError`` where no file can be there.
        """
        from tightrope.reporting import html

        _keep(path, html(self.result(title)).encode())

    def to_json(self) -> str:
        """``result`` as JSON; never NaN."""
        return to_json_text(self.result())


def _keep(path: str | os.PathLike[str], content: bytes) -> None:
    """Write the file; ``InputError`` says why it cannot be there: paid answers can be kept elsewhere."""
    if not isinstance(path, str | os.PathLike):
        raise InputError("path", path, "a path", "say 'results.csv'")
    place = Path(path)
    if "\0" in os.fsdecode(place):
        raise InputError("path", str(place), "a path without a NUL", "say 'results.csv'")
    if os.path.isdir(place):  # noqa: PTH112 - says no where it may not look
        raise InputError("path", str(place), "a file, not a folder", f"say {str(place / 'results')!r}")
    if not os.path.isdir(place.parent):  # noqa: PTH112
        raise InputError("path", str(place), "a file in a folder that exists", f"make {place.parent} first")
    try:
        place.write_bytes(content)
    except OSError as error:
        raise InputError("path", str(place), f"a file that can be written ({error.strerror})", "try another") from None


EXACT = 2**53
"""Whole numbers up to it are doubles."""


def _dtype(found: list[Any]) -> Any:
    """Whole numbers and truth values stay what they are beside a missing key; None lets pandas choose."""
    kinds = {type(value) for value in found if value is not None}
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in found if value is not None):
        return "Int64" if None in found else "int64"
    if kinds == {bool}:
        return "boolean" if None in found else "bool"
    exact = all(abs(value) <= EXACT for value in found if isinstance(value, int))
    return "float64" if kinds <= {int, float} and exact else object


def _json_value(name: str, value: object) -> Any:
    """A key or a number as JSON can hold it; a number of ours without limit is nothing."""
    if name in MEASURES and isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
