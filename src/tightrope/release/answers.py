"""The results of a release: one table per answer, and one certificate."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.escaping import escape_control_chars, range_part_text
from tightrope.documents.numbers import TIME_UNITS, UP, Rounding, positional_text, time_from_days
from tightrope.documents.release import (
    MEASURES,
    MISSING,
    PAID,
    QUESTION,
    RELEASES,
    STATISTIC,
    AnswerDocument,
    BiasPart,
    PublisherPart,
    ReleaseCertificate,
    ReleaseResult,
    results_columns,
    results_csv,
)
from tightrope.documents.wording import title_with_bound
from tightrope.errors import InputError, MissingExtraError, UnknownAnswerError
from tightrope.queries.accuracy import interval_statement
from tightrope.queries.comparisons import NoisyAnswer, comparison, comparison_interval_note
from tightrope.queries.options import grid_width, round_record, rounding_notes
from tightrope.queries.query import Noises, Query

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tightrope.display import Figure

TEXT_COLUMNS = QUESTION, STATISTIC, MISSING
MAX_EXACT_INTEGER = 2**53
"""Integers up to this size are exact as doubles."""


def results_parquet(result: ReleaseResult) -> bytes:
    """Return all answers as a Parquet file: measures are doubles; keys keep their type, or are text if types differ."""
    from pyarrow import BufferOutputStream, float64, string, table
    from pyarrow.parquet import write_table

    columns = results_columns(result)
    arrays = {}
    for name, values in columns.items():
        is_number = name in (*MEASURES, *PAID)
        has_mixed_types = not is_number and len({type(value) for value in values if value is not None}) > 1
        arrow_type = float64() if is_number else string() if name in TEXT_COLUMNS or has_mixed_types else None
        arrays[name] = _arrow_array([str(v) if has_mixed_types and v is not None else v for v in values], arrow_type)
    sink = BufferOutputStream()
    write_table(table(arrays), sink)
    return bytes(sink.getvalue())


def _arrow_array(values: list[Any], arrow_type: Any = None) -> Any:
    """Return an Arrow array; if a value does not fit into it, all become text, so that paid answers can be written."""
    from pyarrow import ArrowException, array

    try:
        return array(values, arrow_type)
    except (ArrowException, OverflowError):
        return array([None if value is None else str(value) for value in values])


def answer_html(answer: AnswerDocument) -> str:
    """Return an HTML table with the keys, the value and its interval; all names and keys are escaped."""
    from tightrope.reporting import html_table

    names = (*answer.by, *MEASURES, *(name for name in PAID if any(name in row for row in answer.rows)))
    table_rows = []
    for row in answer.rows:
        # Bins and bands are labeled by both of their edges.
        edges_by_name = {**answer.bands, **({answer.by[-1]: answer.edges} if answer.edges else {})}
        labeled = {**row, **{name: range_part_text(row[name], edges) for name, edges in edges_by_name.items()}}
        labeled = labeled | {name: _shown_measure(row[name], name, answer.unit) for name in MEASURES}
        table_rows.append([_cell_text(labeled.get(name)) for name in names])
    caption = f"{answer.name}: {answer.label}; 95 % intervals"
    return str(html_table(caption, names, table_rows, " groups in .to_pandas()"))


def _cell_text(field: object) -> str | None:
    return f"{field:.6g}" if isinstance(field, float) else None if field is None else str(field)


Measured = float | datetime.date | None
"""A released number, or a date if the unit says so; None if it was suppressed, or an end is unbounded."""
ROUNDING_BY_MEASURE: dict[str, Rounding] = {"value": "nearest", "lower": "down", "upper": "up"}
"""Directions in which values are rounded to dates."""


def _shown_measure(number: Any, measure: str, unit: str | None) -> Any:
    """Return a measure as a date or an instant if its unit says so; otherwise unchanged."""
    if number is None or unit not in TIME_UNITS:
        return number
    return time_from_days(number, unit, ROUNDING_BY_MEASURE[measure])


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ReleasedTable:
    """Released numbers: records with keys, ``value`` and a 95 % interval from ``lower`` to ``upper``."""

    rows: list[dict[str, Any]]
    """The records before rounding for readers."""
    about: dict[str, Any]

    grid_width: Decimal | None = None
    """The width of the grid to which values are rounded for readers; None if they are not rounded."""

    @property
    def published_rows(self) -> list[dict[str, Any]]:
        """The records, rounded if the question says so."""
        return self.rows if self.grid_width is None else [round_record(row, self.grid_width) for row in self.rows]

    def __repr__(self) -> str:
        groups = f"{len(self.rows)} group{'s' if len(self.rows) != 1 else ''}" if self.key_columns else "one value"
        kind = type(self).__name__
        return f"<{kind} {escape_control_chars(self.name)!r}: {self.title}; {groups} in .to_pandas()>"

    @property
    def name(self) -> str:
        """The name of the question or of the comparison."""
        return str(self.about["name"])

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key columns; empty for one number."""
        return tuple(self.about["by"])

    @property
    def title(self) -> str:
        """The title for readers, which says how many rows of a person are used if more can be left out."""
        return escape_control_chars(self.about["label"])

    @property
    def value(self) -> Measured:
        """The released number or date of an answer without groups; None if it was suppressed.

        Raises ``InputError`` for an answer with groups.
        """
        return self._single_measure("value")

    @property
    def lower(self) -> Measured:
        """The lower end of the 95 % interval of an answer without groups; None if it is unbounded."""
        return self._single_measure("lower")

    @property
    def upper(self) -> Measured:
        """The upper end of the 95 % interval of an answer without groups; None if it is unbounded."""
        return self._single_measure("upper")

    def _single_measure(self, measure: str) -> Measured:
        if self.key_columns or len(self.rows) != 1:
            text = f"the answer {self.name!r} has groups: use to_pandas(), to_polars() or to_arrow()"
            raise InputError.from_text(measure, text)
        shown: Measured = _shown_measure(self.published_rows[0].get(measure), measure, self.about["unit"])
        return shown

    def _answer_columns(self) -> dict[str, list[Any]]:
        rows = self.published_rows
        paid = [name for name in PAID if any(name in row for row in rows)]
        columns = {name: [row.get(name) for row in rows] for name in (*self.key_columns, *MEASURES, *paid)}
        unit = self.about["unit"]
        return columns | {name: [_shown_measure(number, name, unit) for number in columns[name]] for name in MEASURES}

    def to_pandas(self) -> pd.DataFrame:
        """Return the records as a pandas data frame, in the order of the keys.

        Integers stay integers next to a missing key.
        """
        import pandas as pd

        columns = self._answer_columns().items()
        return pd.DataFrame({name: pd.array(values, dtype=_pandas_dtype(values)) for name, values in columns})

    def to_arrow(self) -> pa.Table:
        """Return the records as an Arrow table; a key column of several types, or beyond 64 bits, holds text."""
        import pyarrow as pa

        return pa.table({name: _arrow_array(values) for name, values in self._answer_columns().items()})

    def to_polars(self) -> Any:
        """Return the records as a polars data frame; raises ``MissingExtraError`` if polars is not installed."""
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        return pl.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the records through the Arrow C stream interface, which polars, DuckDB and others read."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return answer_html(self.document)

    def plot(self) -> Figure:
        """Draw the values with their 95 % intervals as a matplotlib figure.

        Raises ``InputError`` if no value is published, and ``MissingExtraError`` without matplotlib.
        """
        from tightrope.reporting import plots

        return plots.answers_chart(self.document)

    @property
    def document(self) -> AnswerDocument:
        """The answer in serializable form: dates as text, no NaN, no infinity."""
        published_rows = self.rows if self.grid_width is None else self.published_rows
        rows = [{name: _json_value(name, value) for name, value in row.items()} for row in published_rows]
        return RELEASES.convert_data({**self.about, "rows": rows}, AnswerDocument)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Answer(ReleasedTable):
    """One answer: its records and its error statement.

    ``integers``: the noisy integers of each record, by statistic, from which comparisons are computed; None for kinds
    that cannot be compared, and for releases of earlier versions.
    """

    question: Query
    noises: Noises
    integers: tuple[Mapping[str, int], ...] | None = None

    @property
    def noisy_answer(self) -> NoisyAnswer:
        """The noisy integers by group. Raises ``InputError`` without them."""
        if self.integers is None:
            text = f"{self.name!r} has no noisy integers to compare: it was released by an earlier version"
            raise InputError.from_text("first", text)
        keys = tuple(tuple(row[column] for column in self.key_columns) for row in self.rows)
        return NoisyAnswer(self.question, keys, self.integers, self.noises)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Comparison(ReleasedTable):
    """The difference or the ratio of answers, or of groups of an answer."""


class Certificate(Displayed, dict[str, Any]):
    """A certificate as a dictionary."""

    __slots__ = ("_certificate",)

    def __init__(self, data: dict[str, Any], certificate: ReleaseCertificate) -> None:
        super().__init__(data)
        self._certificate = certificate

    def text_summary(self) -> Summary:
        """Return the guarantee, and the numbers of noisy values and of tables of noise."""
        stated = self._certificate
        facts: list[tuple[str, Shown]] = [
            ("epsilon", Rounded(stated.epsilon, "up")),
            ("delta", Rounded(stated.delta, "up")),
            ("total variation", Rounded(stated.total_variation, "up")),
            ("neighboring tables", stated.neighbors.statement),
            ("mechanisms", len(stated.mechanisms)),
            ("tables of noise", len(stated.tables)),
            ("ledger", stated.ledger),
        ]
        return Summary(f"version {stated.version}", facts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answers:
    """All answers of a plan, by position or by name, and the certificate that holds for all of them together."""

    answers: tuple[Answer, ...]
    certificate_data: ReleaseCertificate
    bias: tuple[BiasPart, ...] = ()
    """The bias of bounding and clamping, if the plan spends part of its budget to measure it."""
    planned_comparisons: tuple[comparison, ...] = ()
    """The comparisons that the plan declares."""
    measured: tuple[tuple[int, ...], ...] = ()
    """The noisy integers of each measurement of a question ``marginals``, from which its tables are computed."""

    def __repr__(self) -> str:
        certificate = self.certificate_data
        promise = f"epsilon {positional_text(certificate.epsilon, 3, UP)} at delta {certificate.delta:.3g}"
        bias_lines = [f"<Bias: {part.statement}>" for part in self.bias if part.statement]
        return "\n".join(
            [f"<Answers: {promise}, .certificate holds the guarantee>", *map(repr, self.answers), *bias_lines]
        )

    def _repr_html_(self) -> str:
        return "".join(answer._repr_html_() for answer in self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, which: int | str) -> Answer:
        if isinstance(which, int):
            return self.answers[which]
        names = tuple(answer.name for answer in self.answers)
        if which not in names:
            raise UnknownAnswerError(which, names)
        return self.answers[names.index(which)]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The comparisons that the plan declares, computed from the released noisy integers."""
        return tuple(map(self.compare, self.planned_comparisons))

    def difference(
        self,
        first: str,
        second: str | None = None,
        *,
        between: Mapping[str, Sequence[object]] | None = None,
        name: str | None = None,
        title: str | None = None,
    ) -> Comparison:
        """Return the difference of two answers, or of two groups of one answer, with its 95 % interval.

        The parameters are those of ``tr.comparison``: ``between={"after": (1, 0), "treated": (1, 0)}`` is a difference
        in differences. Costs no budget. Raises ``PlanError`` for answers that cannot be compared.
        """
        return self.compare(comparison("difference", first, second, between or {}, name=name, title=title))

    def ratio(
        self,
        first: str,
        second: str | None = None,
        *,
        between: Mapping[str, Sequence[object]] | None = None,
        name: str | None = None,
        title: str | None = None,
    ) -> Comparison:
        """Return the ratio of two answers, or of two groups of one answer, with its 95 % interval.

        The parameters are those of ``tr.comparison``. Costs no budget. Where the denominator may be zero, the ratio is
        suppressed. Raises ``PlanError`` for answers that cannot be compared.
        """
        return self.compare(comparison("ratio", first, second, between or {}, name=name, title=title))

    def compare(self, compared: comparison) -> Comparison:
        """Return a comparison of released answers, at no further cost. Raises ``PlanError`` if it is impossible."""
        compared.check_answers([answer.question for answer in self.answers])
        answer_by_name = {answer.name: answer for answer in self.answers}
        first, second = answer_by_name[compared.first], answer_by_name.get(compared.second or "")
        parts = [first] if second is None else [first, second]
        abouts = [part.about for part in parts]
        noisy_answers = {part.name: part.noisy_answer for part in parts}
        columns, rows = compared.compare_answers(noisy_answers)
        notes = [
            f"{COMPARISON_NOTE} {comparison_interval_note(list(noisy_answers.values()))}",
            *([UNADJUSTED_NOTE] if any("noisy" in row for part in parts for row in part.rows) else []),
            *rounding_notes(grid_width(compared.round_to)),
        ]
        statement = interval_statement(
            [part.question for part in parts],
            compared=True,
            leaves_out=any(about["label"] != title_of_statement(about) for about in abouts),
        )
        about = _comparison_data(compared, columns, abouts, statement, notes)
        return Comparison(rows=rows, about=about, grid_width=grid_width(compared.round_to))

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate as plain data; as text, it shows the sizes of its tables instead of their integers."""
        return Certificate(plain_data(self.certificate_data), self.certificate_data)

    def result(self, title: str | None = None, about: PublisherPart | None = None) -> ReleaseResult:
        """Return all of it as one typed document: the output of ``tightrope release --json`` and the report's data."""
        return ReleaseResult(
            document="release result",
            version=2,
            title=title,
            answers=tuple(answer.document for answer in self.answers),
            certificate=self.certificate_data,
            bias=self.bias,
            about=about,
            comparisons=tuple(self.compare(compared).document for compared in self.planned_comparisons),
            measured=self.measured or UNSET,
        )

    def to_data(self) -> dict[str, Any]:
        """Return ``result`` as plain data."""
        return plain_data(self.result())

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return all answers as one CSV table, one line per group: question, statistic, keys, value, interval, more.

        It has the key columns of all questions; fields that do not apply to a question are empty. Text is quoted.
        With a ``path`` the table is also written there, in UTF-8. Raises ``InputError`` if it cannot be written.
        """
        text = results_csv(self.result())
        if path is not None:
            _write_file(path, text.encode())
        return text

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the same table as a Parquet file; a key column with values of several types holds text.

        Raises ``InputError`` if the file cannot be written.
        """
        _write_file(path, results_parquet(self.result()))

    def report(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Write the report of ``tightrope release``: one self-contained HTML file.

        Raises ``InputError`` if the file cannot be written.
        """
        from tightrope.reporting import html

        _write_file(path, html(self.result(title)).encode())

    def to_json(self) -> str:
        """Return ``result`` as JSON, without NaN."""
        return to_json_text(self.result())


COMPARISON_NOTE = "Computed from the released noisy numbers, at no further cost."
UNADJUSTED_NOTE = "The compared numbers are the noisy ones, before they were made consistent with other answers."


def title_of_statement(about: Mapping[str, Any]) -> str:
    """Return the title of an answer as its label begins: with a capital letter, without the bound on rows."""
    return title_with_bound(about["title"] or about["question"], "")


def _comparison_label(compared: comparison, statements: Sequence[dict[str, Any]]) -> str:
    """Return the title of a comparison; the bound on a person's rows is stated once if all answers have the same."""
    titles = [about["title"] or about["question"] for about in statements]
    bounds = [about["label"][len(title) :] for about, title in zip(statements, titles, strict=True)]
    if len(set(bounds)) == 1:
        return f"{title_with_bound(compared.title or compared.text_of(titles), '')}{bounds[0]}"
    return compared.title or compared.text_of([about["label"] for about in statements])


def _comparison_data(
    compared: comparison,
    columns: tuple[str, ...],
    statements: Sequence[dict[str, Any]],
    interval_text: str,
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return the statement of a comparison, from those of its one or two answers."""
    first = statements[0]
    names = ("over", "max_rows", "max_rows_per_group", "max_groups")
    return {
        **{name: first[name] for name in names},
        "edges": first["edges"] if list(columns) == first["by"] else [],
        "bands": {name: edges for name, edges in first["bands"].items() if name in columns},
        "name": compared.name,
        "question": compared.text_of([about["question"] for about in statements]),
        "kind": compared.kind,
        "meaning": compared.meaning,
        "title": compared.title,
        "description": compared.description,
        "unit": compared.unit or (first["unit"] if compared.kind == "difference" else None),
        "label": _comparison_label(compared, statements),
        "additive": False,
        "by": list(columns),
        "keys": first["keys"] if columns else "none",
        "weight": 1.0,
        "noise": [],
        "error": {
            **dict.fromkeys(("expected_absolute_error", "half_width_95", "worst_error")),
            "by_group_size": [],
            "statement": interval_text,
        },
        "k": None,
        "notes": list(notes),
    }


def _write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write the file; raises ``InputError`` with the reason if it cannot be written, so that callers can retry."""
    if not isinstance(path, str | os.PathLike):
        raise InputError("path", path, "a path", "say 'results.csv'")
    target = Path(path)
    if "\0" in os.fsdecode(target):
        raise InputError("path", str(target), "a path without a NUL", "say 'results.csv'")
    if os.path.isdir(target):  # noqa: PTH112 - says no where it may not look
        raise InputError.from_text("path", f"{target} is a folder; choose a file, such as {str(target / 'results')!r}")
    if not os.path.isdir(target.parent):  # noqa: PTH112
        raise InputError.from_text("path", f"the folder {target.parent} does not exist")
    try:
        target.write_bytes(content)
    except OSError as error:
        raise InputError.from_text("path", f"{target} cannot be written ({error.strerror})") from None


def _pandas_dtype(values: list[Any]) -> Any:
    """Return the pandas dtype; integers and booleans keep their type next to missing keys."""
    types = {type(value) for value in values if value is not None}
    if types == {int} and all(-(2**63) <= value < 2**63 for value in values if value is not None):
        return "Int64" if None in values else "int64"
    if types == {bool}:
        return "boolean" if None in values else "bool"
    all_exact = all(abs(value) <= MAX_EXACT_INTEGER for value in values if isinstance(value, int))
    return "float64" if types <= {int, float} and all_exact else object


def _json_value(name: str, value: object) -> Any:
    """Return a key or a measure in JSON form; a measure that is not finite becomes None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if name in MEASURES or math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
