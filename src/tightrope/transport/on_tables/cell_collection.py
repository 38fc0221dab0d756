"""A coupling of cells on tables of any size: numbers become cells, a cell is drawn, its centre is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.engines import Table, folded
from tightrope.engines.jobs.ordering import written_in_order
from tightrope.engines.labels import Labels
from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.numerics.arrays import Integers
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism
from tightrope.transport.on_tables.supports import Cells


def apply_cells(
    mechanism: CouplingMechanism,
    table: Table,
    cells: Cells,
    group: str,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write, for each row, the centre of a cell drawn for its own cell and group; the number of rows.

    The columns of the axes are written under their names, and those to ``keep``, which are not hidden; no other. What
    lies outside the bounds counts as the nearest cell. Each row is one fresh draw: a second run releases every value
    again. Rows are sorted by what is written, so that their places tell nothing; on Spark they stand as Spark has them:
    sort them before they are published.

    Raises ``InputError`` where a value is NULL or NaN, a group is none of the mechanism's, or ``keep`` names what is
    hidden (how many rows, no value); ``SchemaError`` for columns that are missing or not numeric.

    >>> import pyarrow, tempfile
    >>> from tightrope.engines import open_source
    >>> from tightrope.engines.axis_cells import Axis
    >>> ages = Cells((Axis("age", 0, 100, 2),))
    >>> coin = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [1.0, 0.0]}, ages.cost(), target=[0.5, 0.5])
    >>> people = open_source(pyarrow.table({"age": [30.0, 70.0] * 50, "sex": ["b", "a"] * 50}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apply_cells(coin, people, ages, "sex", f"{folder}/out.parquet")
    100
    """
    _check(table, cells, group, keep)
    work = DrawnCells(dataclasses.replace(mechanism, memory={}), cells, Labels.of(list(mechanism.groups)))
    columns = [*cells.columns, group]
    try:
        return written_in_order(table, columns, work, work.schema, destination, keep=keep, progress=progress)
    except (StrayRowsError, EngineError):
        _refuse_strays(folded(table, columns, Strays(work), 3))  # an engine may not say what stopped it
        raise


class StrayRowsError(InputError):
    """Rows without a cell, or of groups that the mechanism does not know. Shows none of them."""


@dataclass(frozen=True, slots=True)
class DrawnCells:
    """Work on a batch of coordinates and groups: the centre of a drawn cell for each row."""

    mechanism: CouplingMechanism
    cells: Cells
    groups: Labels

    @property
    def schema(self) -> Any:
        """The Arrow schema of the draws: one number an axis."""
        import pyarrow

        return pyarrow.schema([(column, pyarrow.float64()) for column in self.cells.columns])

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        places, groups = self.numbers(batch)
        _refuse_strays(_strays(places, groups))
        centres = self.cells.centres(self.mechanism.tables.draw(groups, places))
        return pyarrow.RecordBatch.from_arrays([pyarrow.array(part) for part in centres], schema=self.schema)

    def numbers(self, batch: Any) -> tuple[Integers, Integers]:
        """Numbers of cells and of groups, shape [n] each; −1 for strays."""
        axes = len(self.cells.axes)
        places = self.cells.numbers([_floats(batch.column(axis)) for axis in range(axes)])
        return places, self.groups.numbers(batch.column(axes))


@dataclass(frozen=True, slots=True)
class Strays:
    """Work on the same batches that draws nothing: ``_strays`` of each."""

    drawn: DrawnCells

    def __call__(self, batch: Any) -> Integers:
        return _strays(*self.drawn.numbers(batch))


def _floats(column: Any) -> NDArray[np.float64]:
    """An Arrow column of numbers; NULL is NaN."""
    import pyarrow

    found: NDArray[np.float64] = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found


def _strays(places: Integers, groups: Integers) -> Integers:
    """How many rows there are, how many of unknown groups, how many without a cell."""
    return np.array([len(places), np.count_nonzero(groups < 0), np.count_nonzero(places < 0)], dtype=np.int64)


def _refuse_strays(found: Integers) -> None:
    total, unknown, missing = found.tolist()
    if unknown:
        raise StrayRowsError("rows of unknown groups", unknown, f"0 of {total}", "leave them out first")
    if missing:
        remedy = "NULL and NaN have no cell: leave these rows out first"
        raise StrayRowsError("rows without a value", missing, f"0 of {total}", remedy)


def _check(table: Table, cells: Cells, group: str, keep: Sequence[str]) -> None:
    hidden = {*cells.columns, group} & set(keep)
    if hidden:
        raise InputError("keep", sorted(hidden), "other columns", "beside a draw they undo what it hides")
    for column in cells.columns:
        kind = table.schema.column(column).kind
        if kind not in ("integer", "number"):
            raise SchemaError("column", column, f"numeric to be cut into cells, but it is {kind}", "cast it first")
