"""Local privacy on tables of any size: each row's value becomes a report, and reports are counted, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError, MissingExtraError, SchemaError
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.estimates import Tally
from tightrope.local.parts.kernels import WORD_BITS, checked_rows, packed_words
from tightrope.local.parts.values import check_domain_size, smallest_type
from tightrope.numerics.arrays import Floats
from tightrope.randomness.integers import uniform_below
from tightrope.tables import Labels, Table, open_source, sum_over_batches, write_columns
from tightrope.tables.labels import ABSENT, Name, to_int64_column, to_numpy_array

# Values in columns of tables as what mechanisms perturb: every entry becomes a legal one.
#
# An entry that is missing or unknown is replaced, not dropped: whether a person reports must not depend on the value.


@dataclass(frozen=True, slots=True)
class Categories:
    """Names of ``labels``, or whole numbers, as categories 0..k − 1; others as uniformly random ones."""

    k: int
    labels: Labels | None

    @property
    def column_kinds(self) -> tuple[str, ...]:
        """The kinds of column that it reads."""
        if self.labels is not None:
            return ("text",) if isinstance(self.labels.names[0], str) else ("integer",)
        return ("integer", "boolean") if self.k == 2 else ("integer",)

    def column_values(self, column: Any) -> NDArray[np.int64]:
        """The category of each entry of an Arrow array, shape [n].

        >>> import pyarrow
        >>> Categories(2, Labels.from_names(["no", "yes"])).column_values(pyarrow.array(["yes", "no"])).tolist()
        [1, 0]
        """
        numbers = self._as_numbers(column)
        unknown = np.flatnonzero((numbers < 0) | (numbers >= self.k))
        if not len(unknown):
            return numbers
        numbers = numbers.copy()
        numbers[unknown] = uniform_below(self.k, len(unknown))
        return numbers

    def _as_numbers(self, column: Any) -> NDArray[np.int64]:
        return (
            to_numpy_array(to_int64_column(column).fill_null(ABSENT))
            if self.labels is None
            else self.labels.label_numbers(column)
        )


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers in [lower, upper]: NULL and NaN are the middle, what lies beyond an end is that end."""

    lower: float
    upper: float

    @property
    def column_kinds(self) -> tuple[str, ...]:
        """The kinds of column that it reads."""
        return ("integer", "number", "boolean")

    def column_values(self, column: Any) -> Floats:
        """Each entry of an Arrow array, shape [n].

        >>> import pyarrow
        >>> Numbers(0.0, 10.0).column_values(pyarrow.array([3.0, None, 99.0])).tolist()
        [3.0, 5.0, 10.0]
        """
        import pyarrow

        middle = self.lower + (self.upper - self.lower) / 2
        numbers = to_numpy_array(column.cast(pyarrow.float64(), safe=False).fill_null(middle))
        return np.clip(np.where(np.isnan(numbers), middle, numbers), self.lower, self.upper)


def check_column(table: Table, name: str, values: Categories | Numbers) -> None:
    """``SchemaError`` unless the column is there and has a kind that the values can be read from."""
    kind = table.schema.find_column(name).kind
    if kind not in values.column_kinds:
        expected = f"of kind {' or '.join(values.column_kinds)}, but it is {kind}"
        raise SchemaError("column", name, expected, "name its categories, or cast the column")


# Reports as Arrow arrays: compact, typed, and read by every language; ``pyarrow`` is loaded on first use.

MOST_ARROW_BITS = 1 << 20


def to_arrow(reports: NDArray[Any]) -> Any:
    """Numbers, shape [n], as an Arrow array of the same type.

    Raises ``InputError`` for rows: packed bits go through ``bits_to_arrow``, columns of a table one by one.

    >>> to_arrow(np.array([1, 2], dtype=np.uint16)).type
    DataType(uint16)
    """
    if not isinstance(reports, np.ndarray) or reports.ndim != 1 or reports.dtype.kind != "u":
        found = (str(getattr(reports, "dtype", type(reports))), np.shape(reports))
        raise InputError("reports", found, "unsigned numbers of shape [n]", "packed bits: local.bits_to_arrow")
    return _to_arrow().array(reports)


def from_arrow(column: Any) -> NDArray[Any]:
    """The inverse of ``to_arrow``, for arrays and chunked arrays; raises ``InputError`` for other types or nulls."""
    arrow = _to_arrow()
    if not arrow.types.is_unsigned_integer(column.type) or column.null_count:
        raise InputError("column", (str(column.type), column.null_count), "unsigned integers without nulls")
    return np.asarray(column.to_numpy(zero_copy_only=False) if _is_plain(column) else column.to_numpy())


def bits_to_arrow(rows: NDArray[np.uint64], k: int) -> Any:
    """Rows of k packed bits as binary of ⌈k/8⌉ bytes each, the lowest bit first.

    >>> from tightrope.local.mechanisms.unary import unary_encoding
    >>> bits_to_arrow(unary_encoding(1.0, 20).perturb([3, 4]), 20).type
    FixedSizeBinaryType(fixed_size_binary[3])
    """
    size = check_domain_size(k, MOST_ARROW_BITS, "hash the categories: local.hashing")
    packed = np.ascontiguousarray(checked_rows("rows", rows, size).astype("<u8")).view(np.uint8)
    kept = np.ascontiguousarray(packed[:, : -(-size // 8)])
    arrow = _to_arrow()
    return arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(kept.shape[1]), len(kept), [None, arrow.py_buffer(kept.tobytes())]
    )


def bits_from_arrow(column: Any, k: int) -> NDArray[np.uint64]:
    """The inverse of ``bits_to_arrow``; raises ``InputError`` for other types, nulls, or bits from k on."""
    size, arrow = check_domain_size(k, MOST_ARROW_BITS, "hash the categories: local.hashing"), _to_arrow()
    count = -(-size // 8)
    if not column.type.equals(arrow.binary(count)) or column.null_count:
        expected = f"fixed_size_binary[{count}] without nulls for {size} values"
        raise InputError("column", (str(column.type), column.null_count), expected)
    chunks = [column] if _is_plain(column) else column.chunks
    data = b"".join(_chunk_bytes(chunk, count) for chunk in chunks)
    rows = np.zeros((len(column), packed_words(size) * WORD_BITS // 8), dtype=np.uint8)
    rows[:, :count] = np.frombuffer(data, dtype=np.uint8).reshape(-1, count)
    return checked_rows("column", rows.view("<u8").astype(np.uint64), size)


def _chunk_bytes(chunk: Any, count: int) -> bytes:
    """The values of a chunk, which may be a slice of a longer one."""
    start = chunk.offset * count
    return bytes(memoryview(chunk.buffers()[1])[start : start + len(chunk) * count]) if len(chunk) else b""


def _is_plain(column: Any) -> bool:
    return not hasattr(column, "chunks")


def _to_arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "release") from None
    return pyarrow


# The column of reports of each mechanism: its Arrow type, and the way there and back.

Oracle = FrequencyOracle | MeanOracle
REPORT_COLUMN = "report"
"""The name of the column."""


def report_bytes(mechanism: Oracle) -> int:
    """Bytes of one report in a column.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> report_bytes(k_randomized_response(1.0, 1000))
    2
    """
    letters = mechanism.report_count
    return smallest_type(letters).itemsize if letters is not None else -(-mechanism.report_bits // 8)


def report_schema(mechanism: Oracle) -> Any:
    """The Arrow schema of a table of reports: one column, of the smallest unsigned type, or of ⌈k/8⌉ bytes for bits.

    >>> from tightrope.local.mechanisms.unary import unary_encoding
    >>> report_schema(unary_encoding(1.0, 20)).field("report").type
    FixedSizeBinaryType(fixed_size_binary[3])
    """
    import pyarrow

    letters = mechanism.report_count
    packed = pyarrow.binary(report_bytes(mechanism))
    form = packed if letters is None else pyarrow.from_numpy_dtype(smallest_type(letters))
    return pyarrow.schema([pyarrow.field(REPORT_COLUMN, form)])


def reports_to_arrow(mechanism: Oracle, reports: NDArray[Any]) -> Any:
    """Reports as ``perturb`` makes them, as an Arrow array of the type in ``report_schema``."""
    if mechanism.report_count is None:
        return bits_to_arrow(reports, mechanism.report_bits)
    return to_arrow(reports.astype(smallest_type(mechanism.report_count), copy=False))


def reports_from_arrow(mechanism: Oracle, column: Any) -> NDArray[Any]:
    """The inverse of ``reports_to_arrow``, also where an engine made the type wider: any whole numbers, any binary.

    ``mechanism.tally`` checks that the mechanism can produce the reports. Raises ``InputError`` for other
    types, for NULLs and for bits of another length.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> import pyarrow
    >>> reports_from_arrow(k_randomized_response(1.0, 4), pyarrow.array([3, 0])).tolist()
    [3, 0]
    """
    import pyarrow

    if mechanism.report_count is None:
        return bits_from_arrow(_fixed_size_binary(column, report_bytes(mechanism)), mechanism.report_bits)
    if not pyarrow.types.is_integer(column.type) or column.null_count:
        raise InputError(
            "column of reports", _type_and_nulls(column), "whole numbers without NULLs", "read the right column"
        )
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())


def _fixed_size_binary(column: Any, count: int) -> Any:
    """Convert any binary column to a fixed number of bytes a report."""
    import pyarrow

    wanted, failed = f"binary of {count} bytes a report without NULLs", False
    try:
        column = column.cast(pyarrow.binary(count))
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        failed = True
    if failed or column.null_count:
        raise InputError(
            "column of reports", _type_and_nulls(column), wanted, "use the mechanism that made the reports"
        )
    return column


def _type_and_nulls(column: Any) -> tuple[str, int]:
    return str(column.type), column.null_count


Progress = Callable[[int], None]
MOST_BYTES = 1 << 25
"""Bytes of the reports of a batch, about; perturbing takes a few times as many for a moment."""
MOST_BATCH_ROWS = 1 << 19


def perturb_table(
    mechanism: Oracle,
    source: object,
    column: str,
    destination: str | Path,
    *,
    categories: Sequence[Name] | None = None,
    keep: Sequence[str] = (),
    progress: Progress | None = None,
) -> int:
    """Write one report for each row of a table, made from its value in ``column``; the number of reports.

    Parameters:
        source: a ``Table``, or anything ``open_source`` accepts. Each row is a person: one with r rows makes r reports,
            which spend r times the loss.
        destination: a ``.parquet`` file, on Spark a folder; its column of reports is named "report" and has the type of
            ``report_schema`` (on Spark the next wider signed one). It must not exist.
        categories: the k names of the values in order, all text or all whole numbers; by default the column holds the
            numbers 0..k − 1 (or truth values, for k = 2). Not for means.
        keep: columns to write next to the reports, never ``column`` itself. They are not private. No other is written.
        progress: told how many rows are done.

    **Every row makes a report**, and its law is that of a value: a crash, a gap or a mark would tell. A value that is
    NULL or none of the categories is replaced by a uniformly random category before it is perturbed, so it adds 1/k to
    every estimate. That draw is not in intervals for the people who reported, which are too narrow where many values
    are unknown and ε is large; simultaneous ones hold it. For means, NULL and NaN count as the middle of the range, and
    values beyond an end as that end.

    **Each call draws new reports**: two files of reports of one table spend twice the loss. The order of rows may
    change, which is no shuffling. What a crash or a failing disk can leave behind, ``tables.files`` says.

    Raises ``SchemaError`` where the column is missing or not of the kind that the mechanism perturbs, ``InputError``
    for a destination that exists and categories that are not k, ``EngineError`` without a value of the data.

    >>> import pyarrow, tempfile
    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> survey, people = k_randomized_response(1.0, 3), pyarrow.table({"vote": ["yes", "no", None] * 1000})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = perturb_table(survey, people, "vote", f"{folder}/r.parquet", categories=["no", "yes", "empty"])
    ...     tally = tally_table(survey, f"{folder}/r.parquet")
    >>> rows, tally.people, survey.estimate_tally(tally).value.shape
    (3000, 3000, (3,))
    """
    table = _open_table(source)
    if column in keep:
        raise InputError(
            "keep", tuple(keep), f"columns other than {column!r}", "a value beside its report is no secret"
        )
    values = _value_reader(mechanism, categories)
    check_column(table, column, values)
    rows = _report_rows(mechanism)
    work = ColumnPerturber(mechanism, values)
    return write_columns(
        table, [column], work, report_schema(mechanism), destination, keep=keep, rows=rows, progress=progress
    )


def tally_table(
    mechanism: Oracle, source: object, *, column: str = REPORT_COLUMN, progress: Progress | None = None
) -> Tally:
    """The counts of all reports in a table, for ``mechanism.estimate_tally``.

    ``source`` is a ``Table``, or accepted by ``open_source``: a file or folder that ``perturb_table`` wrote, or any
    other table with a column of reports. In memory are a batch and the counts.

    Raises ``InputError`` for reports that this mechanism cannot produce (on Spark, where messages may quote the
    data, an ``EngineError``), ``SchemaError`` where the column is missing.
    """
    length = 1 + (mechanism.report_count or mechanism.report_bits)
    counts = sum_over_batches(
        _open_table(source), [column], ReportCounter(mechanism), length, rows=_report_rows(mechanism), progress=progress
    )
    return mechanism.tally_of(int(counts[0]), counts[1:])


@dataclass(frozen=True, slots=True)
class ColumnPerturber:
    """Work on a batch of one column: a report for each value. Randomness is drawn where the work is done."""

    mechanism: Oracle
    values: Categories | Numbers

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        reports = self.mechanism.perturb(self.values.column_values(batch.column(0)))
        column = reports_to_arrow(self.mechanism, reports)
        return pyarrow.RecordBatch.from_arrays([column], schema=report_schema(self.mechanism))


@dataclass(frozen=True, slots=True)
class ReportCounter:
    """Work on a batch of reports: how many there are, then the mechanism's counts."""

    mechanism: Oracle

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        reports = reports_from_arrow(self.mechanism, batch.column(0))
        return np.concatenate([[np.int64(len(reports))], self.mechanism.count_reports(reports)])


def _open_table(source: object) -> Table:
    return source if isinstance(source, Table) else open_source(source)


def _report_rows(mechanism: Oracle) -> int:
    return max(1, min(MOST_BATCH_ROWS, MOST_BYTES // report_bytes(mechanism)))


def _value_reader(mechanism: Oracle, names: Sequence[Name] | None) -> Categories | Numbers:
    if isinstance(mechanism, MeanOracle):
        if names is not None:
            raise InputError("categories", f"{len(names)} names", "None for the mean of numbers", "leave it out")
        return Numbers(mechanism.lower, mechanism.upper)
    if not isinstance(mechanism, FrequencyOracle):
        raise InputError(
            "mechanism", type(mechanism).__name__, "a mechanism of tightrope.local with reports of one column"
        )
    labels = None if names is None else Labels.from_names(names)
    if labels is not None and len(labels) != mechanism.k:
        raise InputError("number of categories", len(labels), f"k={mechanism.k}", "make the mechanism for as many")
    return Categories(mechanism.k, labels)
