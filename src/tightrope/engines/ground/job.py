"""What is done to the rows of a table, batch by batch: plain data that travels to wherever the rows are.

A job holds no engine and no source of randomness: whatever it draws, it draws in the process that works on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.engines.guard import guarded, load
from tightrope.errors import EngineError

Totals = NDArray[np.int64]
Work = Callable[[Any], Any]
"""An Arrow record batch becomes another one with as many rows, or whole numbers of shape [length]."""
Progress = Callable[[int], None]
"""Told how many rows are done."""

ROWS = 1 << 19
"""Rows of a batch, at most."""


@dataclass(frozen=True, slots=True)
class Writing:
    """``work`` on each batch of ``columns`` gives a batch of ``schema``; ``keep`` columns go beside it unchanged."""

    columns: tuple[str, ...]
    keep: tuple[str, ...]
    work: Work
    schema: Any
    rows: int = ROWS

    def done(self, batch: Any) -> list[Any]:
        """The columns that are written for a batch.

        Raises ``EngineError``, without a value of the data, where the work fails or does not keep to its schema;
        a ``TightropeError`` of the work passes.
        """
        given = batch.select(list(self.columns))
        made = guarded("work on a batch of rows", lambda: self.work(given))
        if made.schema != self.schema or len(made) != len(batch):
            raise EngineError("a job gave other rows or columns than it promised; nothing was written")
        return [*made.columns, *(batch.column(name) for name in self.keep)]


@dataclass(frozen=True, slots=True)
class Folding:
    """``work`` on each batch of ``columns`` gives whole numbers, shape [length], that are added up."""

    columns: tuple[str, ...]
    work: Work
    length: int
    rows: int = ROWS

    def total(self, batches: Iterable[Any]) -> Totals:
        """The sum over all batches, exactly (it must fit in 64 bits, as counts do); raises like ``Writing.done``."""
        total = np.zeros(self.length, dtype=np.int64)
        for batch in portions(batches, self.rows):
            total += self._part(batch.select(list(self.columns)))
        return total

    def _part(self, batch: Any) -> Totals:
        part: Totals = guarded("work on a batch of rows", lambda: self.work(batch))
        if part.dtype != np.int64 or part.shape != (self.length,):
            raise EngineError("a job gave other numbers than it promised; nothing was added up")
        return part


def portions(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in batches of at most ``rows``; none is copied."""
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)


def record_batch(columns: list[Any], schema: Any) -> Any:
    """A record batch of these columns."""
    return load("pyarrow").RecordBatch.from_arrays(columns, schema=schema)
