"""Local privacy on tables of any size: each row's value becomes a report, and reports are counted, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.engines import Labels, Table, folded, open_source, written
from tightrope.engines.labels import Name
from tightrope.errors import InputError
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.on_tables.columns import Categories, Numbers, check_column
from tightrope.local.on_tables.reports import (
    REPORT_COLUMN,
    Oracle,
    report_bytes,
    report_schema,
    reports_from_arrow,
    reports_to_arrow,
)
from tightrope.local.parts.tally import Tally

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
        source: a ``Table``, or whatever ``open_source`` takes. Each row is a person: one with r rows makes r reports,
            which spend r times the loss.
        destination: a ``.parquet`` file, on Spark a folder; its column of reports is named "report" and has the type of
            ``report_schema`` (on Spark the next wider signed one). It must not exist.
        categories: the k names of the values in order, all text or all whole numbers; by default the column holds the
            numbers 0..k − 1 (or truth values, for k = 2). Not for means.
        keep: columns to write beside the reports, never ``column`` itself. They are not private. No other is written.
        progress: told how many rows are done.

    **Every row makes a report**, and its law is that of a value: a crash, a gap or a mark would tell. A value that is
    NULL or none of the categories is replaced by a uniformly random category before it is perturbed, so it adds 1/k to
    every estimate. That draw is not in intervals for the people who reported, which are too narrow where many values
    are unknown and ε is large; simultaneous ones hold it. For means, NULL and NaN count as the middle of the range, and
    values beyond an end as that end.

    **Each call draws new reports**: two files of reports of one table spend twice the loss. The order of rows may
    change, which is no shuffling. What a crash or a failing disk can leave behind, ``engines.written`` says.

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
    table = _opened(source)
    if column in keep:
        raise InputError(
            "keep", tuple(keep), f"columns other than {column!r}", "a value beside its report is no secret"
        )
    values = _values(mechanism, categories)
    check_column(table, column, values)
    rows = _rows(mechanism)
    work = Perturbing(mechanism, values)
    return written(
        table, [column], work, report_schema(mechanism), destination, keep=keep, rows=rows, progress=progress
    )


def tally_table(
    mechanism: Oracle, source: object, *, column: str = REPORT_COLUMN, progress: Progress | None = None
) -> Tally:
    """The counts of all reports in a table, for ``mechanism.estimate_tally``.

    ``source`` is a ``Table``, or whatever ``open_source`` takes: a file or folder that ``perturb_table`` wrote, or any
    other table with a column of reports. In memory are a batch and the counts.

    Raises ``InputError`` for reports that nobody can have made with this mechanism (on Spark, where messages may quote
    the data, an ``EngineError``), ``SchemaError`` where the column is missing.
    """
    length = 1 + (mechanism.letters or mechanism.report_bits)
    counts = folded(_opened(source), [column], Counting(mechanism), length, rows=_rows(mechanism), progress=progress)
    return mechanism.tally_of(int(counts[0]), counts[1:])


@dataclass(frozen=True, slots=True)
class Perturbing:
    """Work on a batch of one column: a report for each value. Randomness is drawn where the work is done."""

    mechanism: Oracle
    values: Categories | Numbers

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        reports = self.mechanism.perturb(self.values.of(batch.column(0)))
        column = reports_to_arrow(self.mechanism, reports)
        return pyarrow.RecordBatch.from_arrays([column], schema=report_schema(self.mechanism))


@dataclass(frozen=True, slots=True)
class Counting:
    """Work on a batch of reports: how many there are, then the mechanism's counts."""

    mechanism: Oracle

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        reports = reports_from_arrow(self.mechanism, batch.column(0))
        return np.concatenate([[np.int64(len(reports))], self.mechanism.counts(reports)])


def _opened(source: object) -> Table:
    return source if isinstance(source, Table) else open_source(source)


def _rows(mechanism: Oracle) -> int:
    return max(1, min(MOST_BATCH_ROWS, MOST_BYTES // report_bytes(mechanism)))


def _values(mechanism: Oracle, names: Sequence[Name] | None) -> Categories | Numbers:
    if isinstance(mechanism, MeanOracle):
        if names is not None:
            raise InputError("categories", f"{len(names)} names", "None for the mean of numbers", "leave it out")
        return Numbers(mechanism.lower, mechanism.upper)
    if not isinstance(mechanism, FrequencyOracle):
        raise InputError(
            "mechanism", type(mechanism).__name__, "a mechanism of tightrope.local with reports of one column"
        )
    labels = None if names is None else Labels.of(names)
    if labels is not None and len(labels) != mechanism.k:
        raise InputError("number of categories", len(labels), f"k={mechanism.k}", "make the mechanism for as many")
    return Categories(mechanism.k, labels)
