"""Local privacy on tables of any size: values are randomized to reports, and reports are counted, in batches.

Reports are stored as Arrow arrays; ``pyarrow`` is loaded on first use.
"""

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
from tightrope.local.parts.kernels import WORD_BITS, check_packed_rows, words_for_bits
from tightrope.local.parts.values import check_domain_size, smallest_type
from tightrope.numerics.arrays import Floats
from tightrope.randomness.integers import uniform_below
from tightrope.tables import Labels, Table, open_source, sum_over_batches, write_columns
from tightrope.tables.labels import ABSENT, Name, to_int64_column, to_numpy_array

# ``Categories`` and ``Numbers`` convert every entry of a column to a valid value. Missing and unknown entries are
# replaced, not dropped: whether a person reports must not depend on the value.


@dataclass(frozen=True, slots=True)
class Categories:
    """Conversion of names of ``labels``, or of integers, to categories 0..k − 1; others become uniformly random."""

    k: int
    labels: Labels | None

    @property
    def column_kinds(self) -> tuple[str, ...]:
        """Kinds of columns that can be converted."""
        if self.labels is not None:
            return ("text",) if isinstance(self.labels.names[0], str) else ("integer",)
        return ("integer", "boolean") if self.k == 2 else ("integer",)

    def column_values(self, column: Any) -> NDArray[np.int64]:
        """Return the category of each entry of an Arrow array, shape [n].

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
        if self.labels is not None:
            return self.labels.label_numbers(column)
        return to_numpy_array(to_int64_column(column).fill_null(ABSENT))


@dataclass(frozen=True, slots=True)
class Numbers:
    """Conversion to numbers in [lower, upper]: NULL and NaN become the middle, other numbers the nearest end."""

    lower: float
    upper: float

    @property
    def column_kinds(self) -> tuple[str, ...]:
        """Kinds of columns that can be converted."""
        return ("integer", "number", "boolean")

    def column_values(self, column: Any) -> Floats:
        """Return the number of each entry of an Arrow array, shape [n].

        >>> import pyarrow
        >>> Numbers(0.0, 10.0).column_values(pyarrow.array([3.0, None, 99.0])).tolist()
        [3.0, 5.0, 10.0]
        """
        import pyarrow

        middle = self.lower + (self.upper - self.lower) / 2
        numbers = to_numpy_array(column.cast(pyarrow.float64(), safe=False).fill_null(middle))
        return np.clip(np.where(np.isnan(numbers), middle, numbers), self.lower, self.upper)


def check_column(table: Table, name: str, values: Categories | Numbers) -> None:
    """Raise ``SchemaError`` unless the column exists and has a kind that can be converted."""
    kind = table.schema.find_column(name).kind
    if kind not in values.column_kinds:
        expected = f"of kind {' or '.join(values.column_kinds)}, but it is {kind}"
        raise SchemaError("column", name, expected, "name its categories, or cast the column")


MAX_ARROW_BITS = 1 << 20


def to_arrow(reports: NDArray[Any]) -> Any:
    """Return report numbers, shape [n], as an Arrow array of the same type.

    Raises ``InputError`` for rows: use ``bits_to_arrow`` for packed bits, and convert each column of a table alone.

    >>> to_arrow(np.array([1, 2], dtype=np.uint16)).type
    DataType(uint16)
    """
    if not isinstance(reports, np.ndarray) or reports.ndim != 1 or reports.dtype.kind != "u":
        form = (str(getattr(reports, "dtype", type(reports))), np.shape(reports))
        raise InputError("reports", form, "unsigned numbers of shape [n]", "packed bits: local.bits_to_arrow")
    return _import_pyarrow().array(reports)


def from_arrow(column: Any) -> NDArray[Any]:
    """Return the report numbers of ``to_arrow`` arrays, also chunked; ``InputError`` for other types or nulls."""
    arrow = _import_pyarrow()
    if not arrow.types.is_unsigned_integer(column.type) or column.null_count:
        raise InputError("column", (str(column.type), column.null_count), "unsigned integers without nulls")
    return np.asarray(column.to_numpy(zero_copy_only=False) if _is_single_array(column) else column.to_numpy())


def bits_to_arrow(rows: NDArray[np.uint64], k: int) -> Any:
    """Return rows of k packed bits as an Arrow array of ⌈k/8⌉ bytes each, the lowest bit first.

    >>> from tightrope.local.mechanisms.unary import unary_encoding
    >>> bits_to_arrow(unary_encoding(1.0, 20).perturb([3, 4]), 20).type
    FixedSizeBinaryType(fixed_size_binary[3])
    """
    size = check_domain_size(k, MAX_ARROW_BITS, "hash the categories: local.hashing")
    packed = np.ascontiguousarray(check_packed_rows("rows", rows, size).astype("<u8")).view(np.uint8)
    row_bytes = np.ascontiguousarray(packed[:, : -(-size // 8)])
    arrow = _import_pyarrow()
    return arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(row_bytes.shape[1]), len(row_bytes), [None, arrow.py_buffer(row_bytes.tobytes())]
    )


def bits_from_arrow(column: Any, k: int) -> NDArray[np.uint64]:
    """Return the packed bits of ``bits_to_arrow``; raises ``InputError`` for other types, nulls, or bits from k on."""
    size, arrow = check_domain_size(k, MAX_ARROW_BITS, "hash the categories: local.hashing"), _import_pyarrow()
    count = -(-size // 8)
    if not column.type.equals(arrow.binary(count)) or column.null_count:
        expected = f"fixed_size_binary[{count}] without nulls for {size} values"
        raise InputError("column", (str(column.type), column.null_count), expected)
    chunks = [column] if _is_single_array(column) else column.chunks
    parts = []
    for chunk in chunks:
        if len(chunk):  # a chunk may be a slice of a longer buffer
            start = chunk.offset * count
            parts.append(bytes(memoryview(chunk.buffers()[1])[start : start + len(chunk) * count]))
    rows = np.zeros((len(column), words_for_bits(size) * WORD_BITS // 8), dtype=np.uint8)
    rows[:, :count] = np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, count)
    return check_packed_rows("column", rows.view("<u8").astype(np.uint64), size)


def _is_single_array(column: Any) -> bool:
    return not hasattr(column, "chunks")


def _import_pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("pyarrow", "release") from None
    return pyarrow


Oracle = FrequencyOracle | MeanOracle
REPORT_COLUMN = "report"
"""The name of the column."""


def report_bytes(mechanism: Oracle) -> int:
    """Return the bytes of one report in a column.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> report_bytes(k_randomized_response(1.0, 1000))
    2
    """
    count = mechanism.possible_report_count
    return smallest_type(count).itemsize if count is not None else -(-mechanism.report_bits // 8)


def report_schema(mechanism: Oracle) -> Any:
    """Return the Arrow schema of a table of reports: one column, the smallest unsigned type, or ⌈k/8⌉ bytes for bits.

    >>> from tightrope.local.mechanisms.unary import unary_encoding
    >>> report_schema(unary_encoding(1.0, 20)).field("report").type
    FixedSizeBinaryType(fixed_size_binary[3])
    """
    import pyarrow

    count = mechanism.possible_report_count
    packed = pyarrow.binary(report_bytes(mechanism))
    report_type = packed if count is None else pyarrow.from_numpy_dtype(smallest_type(count))
    return pyarrow.schema([pyarrow.field(REPORT_COLUMN, report_type)])


def reports_to_arrow(mechanism: Oracle, reports: NDArray[Any]) -> Any:
    """Return reports of ``perturb`` as an Arrow array of the type in ``report_schema``."""
    if mechanism.possible_report_count is None:
        return bits_to_arrow(reports, mechanism.report_bits)
    return to_arrow(reports.astype(smallest_type(mechanism.possible_report_count), copy=False))


def reports_from_arrow(mechanism: Oracle, column: Any) -> NDArray[Any]:
    """Return the reports in a column of ``reports_to_arrow``; any integer type and any binary type are accepted.

    ``mechanism.tally`` checks that the mechanism can produce the reports. Raises ``InputError`` for other
    types, for NULLs and for bits of another length.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> import pyarrow
    >>> reports_from_arrow(k_randomized_response(1.0, 4), pyarrow.array([3, 0])).tolist()
    [3, 0]
    """
    import pyarrow

    if mechanism.possible_report_count is None:
        count, can_convert = report_bytes(mechanism), True
        try:
            column = column.cast(pyarrow.binary(count))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            can_convert = False
        if not can_convert or column.null_count:
            expected = f"binary of {count} bytes a report without NULLs"
            remedy = "use the mechanism that made the reports"
            raise InputError("column of reports", _type_and_nulls(column), expected, remedy)
        return bits_from_arrow(column, mechanism.report_bits)
    if not pyarrow.types.is_integer(column.type) or column.null_count:
        raise InputError(
            "column of reports", _type_and_nulls(column), "whole numbers without NULLs", "read the right column"
        )
    return np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "offset") else column.to_numpy())


def _type_and_nulls(column: Any) -> tuple[str, int]:
    return str(column.type), column.null_count


Progress = Callable[[int], None]
MAX_BATCH_BYTES = 1 << 25
"""Approximate bytes of the reports of a batch; perturbing temporarily needs a few times as many."""
MAX_BATCH_ROWS = 1 << 19


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
    """Write one report for each row of a table, for its value in ``column``, and return the number of reports.

    Parameters:
        source: a ``Table``, or anything ``open_source`` accepts. Each row is a person: one with r rows makes r reports,
            with r times the loss.
        destination: a ``.parquet`` file, on Spark a folder; its column of reports is named "report" and has the type of
            ``report_schema`` (on Spark the next wider signed one). It must not exist.
        categories: the k names of the values in order, all text or all whole numbers; by default the column holds the
            numbers 0..k − 1 (or truth values, for k = 2). Not for means.
        keep: columns to write next to the reports, never ``column`` itself. They are not private. No other is written.
        progress: called with the number of rows that are done.

    **Every row makes a report** with the distribution of a valid value: a missing or marked report would reveal an
    invalid value. A value that is NULL or none of the categories is replaced by a uniformly random category before
    it is perturbed, so it adds 1/k to every estimate. Intervals for the people who reported do not include this
    randomness: they are too narrow if many values are unknown and ε is large; simultaneous ones include it. For means,
    NULL and NaN count as the middle of the range, and values beyond an end as that end.

    **Each call draws new reports**: two files of reports of one table have twice the loss. The order of rows may
    change; do not rely on this as shuffling. See ``tables.files`` for what can remain after a crash or a disk failure.

    Raises ``SchemaError`` if the column is missing or of another kind than the mechanism needs, ``InputError`` if the
    destination exists or there are not k categories, and ``EngineError``, whose text has no value of the data.

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
        remedy = "next to its report the value itself would be published"
        raise InputError("keep", tuple(keep), f"columns other than {column!r}", remedy)
    values = _value_reader(mechanism, categories)
    check_column(table, column, values)
    rows = _batch_rows(mechanism)
    perturb_batch = ColumnPerturber(mechanism, values)
    return write_columns(
        table, [column], perturb_batch, report_schema(mechanism), destination, keep=keep, rows=rows, progress=progress
    )


def tally_table(
    mechanism: Oracle, source: object, *, column: str = REPORT_COLUMN, progress: Progress | None = None
) -> Tally:
    """Return the counts of all reports in a table, for ``mechanism.estimate_tally``.

    ``source`` is a ``Table``, or accepted by ``open_source``: a file or folder that ``perturb_table`` wrote, or any
    other table with a column of reports. Only a batch and the counts are in memory.

    Raises ``InputError`` for reports that this mechanism cannot produce (on Spark, where messages may quote the
    data, an ``EngineError``), ``SchemaError`` if the column is missing.
    """
    length = 1 + (mechanism.possible_report_count or mechanism.report_bits)
    counts = sum_over_batches(
        _open_table(source), [column], ReportCounter(mechanism), length, rows=_batch_rows(mechanism), progress=progress
    )
    return mechanism.tally_of_reports(int(counts[0]), counts[1:])


@dataclass(frozen=True, slots=True)
class ColumnPerturber:
    """Callable that returns a batch with a report for each value of a batch; it draws randomness where it runs."""

    mechanism: Oracle
    values: Categories | Numbers

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        reports = self.mechanism.perturb(self.values.column_values(batch.column(0)))
        column = reports_to_arrow(self.mechanism, reports)
        return pyarrow.RecordBatch.from_arrays([column], schema=report_schema(self.mechanism))


@dataclass(frozen=True, slots=True)
class ReportCounter:
    """Callable that returns the number of reports of a batch, then the mechanism's counts of them."""

    mechanism: Oracle

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        reports = reports_from_arrow(self.mechanism, batch.column(0))
        return np.concatenate([[np.int64(len(reports))], self.mechanism.count_reports(reports)])


def _open_table(source: object) -> Table:
    return source if isinstance(source, Table) else open_source(source)


def _batch_rows(mechanism: Oracle) -> int:
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_BYTES // report_bytes(mechanism)))


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
        raise InputError("number of categories", len(labels), f"k={mechanism.k}", "create the mechanism for this many")
    return Categories(mechanism.k, labels)
