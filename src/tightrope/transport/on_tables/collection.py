"""Apply a coupling to tables of any size: each value is replaced by a draw for its value and group, in batches.

Points are given by names (``PointNames``) or are cells of numeric columns (``Cells``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tightrope.errors import EngineError, InputError, SchemaError, quoted_names
from tightrope.numerics.arrays import Integers
from tightrope.tables import Labels, Table, open_source, sum_over_batches
from tightrope.tables.jobs import write_sorted_columns
from tightrope.tables.labels import Name
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.supports import Cells

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class PointNames:
    """Names of the source points and of the target points of a mechanism, in order.

    >>> len(PointNames.from_names(["west", "east"]).targets), len(PointNames.from_names([10, 20], [1, 2, 3]).targets)
    (2, 3)
    """

    sources: Labels
    targets: Labels

    @classmethod
    def from_names(cls, sources: Sequence[Name], targets: Sequence[Name] | None = None) -> Self:
        """Return names in order; targets default to the same names. Raises like ``Labels.from_names``."""
        named = Labels.from_names(sources)
        return cls(named, named if targets is None else Labels.from_names(targets))


def apply_table(
    mechanism: CouplingMechanism,
    source: object,
    value: str,
    group: str,
    destination: str | Path,
    *,
    points: PointNames | Sequence[Name],
    keep: Sequence[str] = (),
    progress: Progress | None = None,
) -> int:
    """Write, for each row of a table, the name of a draw for its value and group; return the number of rows.

    Parameters:
        source: a ``Table``, or any argument of ``open_source``.
        value, group: the columns with the names of points and of the mechanism's groups, text or integers.
        destination: a ``.parquet`` file, on Spark a folder; it must not exist.
        points: the names of the source points in order, as they stand in the column; ``PointNames`` if the target
            has points of its own.
        keep: columns to write with the draws, never ``value`` or ``group``. They are not hidden. Others are dropped.
        progress: called with the number of finished rows.

    **One value, one draw**: each call, and each row, is a fresh draw. Two draws for one value of a person reveal more
    than one (``CouplingMechanism``): a table with several rows of one person and value, and a second file of the same
    table, are repeated releases. Rows are sorted by the written columns, so that their order reveals no more; on Spark
    they are unsorted: sort them before publishing.

    Raises ``InputError`` if groups are not the mechanism's or values (or NULLs) are not among the points: it reports
    only how many, and the destination is not created. A value that is a point but excluded by the distribution of its
    group is valid, see ``CouplingMechanism``. ``SchemaError`` for columns that are missing or of another kind.

    >>> import pyarrow, tempfile
    >>> coin = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [1.0, 0.0]}, [[0, 1], [1, 0]], target=[0.5, 0.5])
    >>> people = pyarrow.table({"home": ["east", "west"] * 500, "sex": ["a", "b"] * 500})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apply_table(coin, people, "home", "sex", f"{folder}/out.parquet", points=["west", "east"])
    ...     open_source(f"{folder}/out.parquet").schema.column_names
    1000
    ('home',)
    """
    table = source if isinstance(source, Table) else open_source(source)
    names = points if isinstance(points, PointNames) else PointNames.from_names(points)
    return _apply_job(
        table, DrawJob.from_mechanism(mechanism, NamedPoints(value, names), group), destination, keep, progress
    )


def apply_cells(
    mechanism: CouplingMechanism,
    table: Table,
    cells: Cells,
    group: str,
    destination: str | Path,
    *,
    keep: Sequence[str] = (),
    progress: Progress | None = None,
) -> int:
    """Write, for each row, the center of a cell drawn for its own cell and group; return the number of rows.

    Only the columns of the axes are written, under their names, and those to ``keep``, which are not hidden. Values
    outside the bounds are moved to the nearest cell. Each row is one fresh draw: a second run releases every value
    again. Rows are sorted by the written columns, so that their order reveals no more; on Spark they are unsorted: sort
    them before publishing.

    Raises ``InputError`` if a value is NULL or NaN, a group is not the mechanism's, or ``keep`` names a hidden column
    (reporting the number of rows, but no values); ``SchemaError`` for columns that are missing or not numeric.

    >>> import pyarrow, tempfile
    >>> from tightrope.tables import open_source
    >>> from tightrope.tables.labels import Axis
    >>> ages = Cells((Axis("age", 0, 100, 2),))
    >>> coin = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [1.0, 0.0]}, ages.transport_cost(), target=[0.5, 0.5])
    >>> people = open_source(pyarrow.table({"age": [30.0, 70.0] * 50, "sex": ["b", "a"] * 50}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apply_cells(coin, people, ages, "sex", f"{folder}/out.parquet")
    100
    """
    return _apply_job(table, DrawJob.from_mechanism(mechanism, CellPoints(cells), group), destination, keep, progress)


class StrayRowsError(InputError):
    """Rows with an unknown group, or with a value that is not among the points. Reports only their number."""


@dataclass(frozen=True, slots=True)
class NamedPoints:
    """Points given by names in one column."""

    column: str
    names: PointNames
    remedy: ClassVar[str] = "list them with --points when fitting, or recode them; NULL values are refused"

    @property
    def column_names(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def point_counts(self) -> tuple[int, int]:
        """Numbers of source and target points."""
        return len(self.names.sources), len(self.names.targets)

    def check_table(self, table: Table) -> None:
        """Raise ``SchemaError`` if the column does not have the kind of the names."""
        _check_named(table, self.column, self.names.sources)

    def point_numbers(self, columns: Sequence[Any]) -> Integers:
        """Return the points of Arrow columns, shape [n]; −1 for strays."""
        return self.names.sources.label_numbers(columns[0])

    def arrow_columns(self, drawn: Integers) -> list[Any]:
        """Return target points as Arrow columns."""
        return [self.names.targets.names_by_number(drawn)]


@dataclass(frozen=True, slots=True)
class CellPoints:
    """Points given by cells of numeric columns; their centers are written."""

    cells: Cells
    remedy: ClassVar[str] = "NULL and NaN have no cell: remove these rows first"

    @property
    def column_names(self) -> tuple[str, ...]:
        return self.cells.column_names

    @property
    def point_counts(self) -> tuple[int, int]:
        return len(self.cells), len(self.cells)

    def check_table(self, table: Table) -> None:
        for column in self.column_names:
            kind = table.schema.find_column(column).kind
            if kind not in ("integer", "number"):
                text = f"must be numeric to be cut into cells, but it is {kind}; cast the column"
                raise SchemaError.from_text(f"column {column!r}", text)

    def point_numbers(self, columns: Sequence[Any]) -> Integers:
        import pyarrow

        # As floats, where NULL becomes NaN.
        casts = [column.cast(pyarrow.float64(), safe=False) for column in columns]
        return self.cells.cell_numbers([cast.to_numpy(zero_copy_only=False) for cast in casts])

    def arrow_columns(self, drawn: Integers) -> list[Any]:
        import pyarrow

        return [pyarrow.array(centers) for centers in self.cells.cell_centers(drawn)]


@dataclass(frozen=True, slots=True)
class DrawJob:
    """Job on a batch of values and groups: return a draw for each row. Randomness is drawn on the worker."""

    mechanism: CouplingMechanism
    points: NamedPoints | CellPoints
    group: str
    groups: Labels

    @classmethod
    def from_mechanism(cls, mechanism: CouplingMechanism, points: NamedPoints | CellPoints, group: str) -> Self:
        """Return the job without the mechanism's memory, because that is as secret as the values."""
        sizes = mechanism.tables.points, len(mechanism.target)
        if points.point_counts != sizes:
            expected = f"{sizes}, as in the mechanism"
            raise InputError("number of source and target points", points.point_counts, expected, "see PointNames")
        return cls(dataclasses.replace(mechanism, memory={}), points, group, Labels.from_names(list(mechanism.groups)))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns to read: the values, then the group."""
        return (*self.points.column_names, self.group)

    @property
    def draw_schema(self) -> Any:
        """The Arrow schema of the draws."""
        import pyarrow

        example = self.points.arrow_columns(np.zeros(1, dtype=np.int64))
        return pyarrow.schema([(name, part.type) for name, part in zip(self.points.column_names, example, strict=True)])

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        values, groups = self.point_and_group_numbers(batch)
        self.check_strays(_count_strays(values, groups))
        drawn = self.mechanism.tables.draw_outcomes(groups, values)
        return pyarrow.RecordBatch.from_arrays(self.points.arrow_columns(drawn), schema=self.draw_schema)

    def point_and_group_numbers(self, batch: Any) -> tuple[Integers, Integers]:
        """Return indices of points and of groups, shape [n] each; −1 for strays."""
        return self.points.point_numbers(batch.columns[:-1]), self.groups.label_numbers(
            batch.column(batch.num_columns - 1)
        )

    def check_strays(self, counts: Integers) -> None:
        """Raise ``StrayRowsError`` if ``_count_strays`` found any."""
        total, groups, values = counts.tolist()
        if groups:
            text = f"{groups} of {total} rows have unknown groups, for which the mechanism was not fitted"
            raise StrayRowsError.from_text("group", f"{text}; remove or recode these rows")
        if values:
            text = f"{values} of {total} rows have values that are not among the points of the mechanism"
            raise StrayRowsError.from_text("value", f"{text}; {self.points.remedy}")


@dataclass(frozen=True, slots=True)
class StrayCountJob:
    """Job on the same batches without draws: return ``_count_strays`` of each."""

    draw_job: DrawJob

    def __call__(self, batch: Any) -> Integers:
        return _count_strays(*self.draw_job.point_and_group_numbers(batch))


def _apply_job(
    table: Table, job: DrawJob, destination: str | Path, keep: Sequence[str], progress: Progress | None
) -> int:
    if set(job.column_names) & set(keep):
        hidden = quoted_names(tuple(job.column_names))
        raise InputError.from_text("keep", f"cannot include a value column or the group column ({hidden})")
    job.points.check_table(table)
    _check_named(table, job.group, job.groups)
    try:
        return write_sorted_columns(
            table, job.column_names, job, job.draw_schema, destination, keep=keep, progress=progress
        )
    except (StrayRowsError, EngineError):
        job.check_strays(
            sum_over_batches(table, job.column_names, StrayCountJob(job), 3)
        )  # the backend may not report the cause
        raise


def _check_named(table: Table, column: str, labels: Labels) -> None:
    expected_kind = "text" if isinstance(labels.names[0], str) else "integer"
    kind = table.schema.find_column(column).kind
    if kind != expected_kind:
        text = f"must be of type {expected_kind}, as when the mechanism was fitted, but it is {kind}; cast the column"
        raise SchemaError.from_text(f"column {column!r}", text)


def _count_strays(values: Integers, groups: Integers) -> Integers:
    """Return the numbers of all rows, of rows with an unknown group, and of rows with a value outside the points."""
    return np.array([len(values), np.count_nonzero(groups < 0), np.count_nonzero(values < 0)], dtype=np.int64)
