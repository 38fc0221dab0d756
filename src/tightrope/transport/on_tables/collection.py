"""A coupling on tables of any size: each row's value is replaced by a draw for its value and group, batch by batch.

Points are named (``PointNames``) or cells of numbers (``Cells``): only finding and writing them differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.numerics.arrays import Integers
from tightrope.tables import Labels, Table, folded, open_source
from tightrope.tables.jobs import written_in_order
from tightrope.tables.labels import Name
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.supports import Cells

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class PointNames:
    """Names of the source points and of the target points of a mechanism, in order.

    >>> len(PointNames.of(["west", "east"]).targets), len(PointNames.of([10, 20], [1, 2, 3]).targets)
    (2, 3)
    """

    sources: Labels
    targets: Labels

    @classmethod
    def of(cls, sources: Sequence[Name], targets: Sequence[Name] | None = None) -> Self:
        """From names in order; the same ones for the targets unless given. Raises like ``Labels.of``."""
        named = Labels.of(sources)
        return cls(named, named if targets is None else Labels.of(targets))


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
    """Write, for each row of a table, a draw for its value and group under the name of the value; the number of rows.

    Parameters:
        source: a ``Table``, or whatever ``open_source`` takes.
        value, group: the columns with the names of points and of the mechanism's groups, text or whole numbers.
        destination: a ``.parquet`` file, on Spark a folder; it must not exist.
        points: the names of the source points in order, as they stand in the column; ``PointNames`` where the target
            has points of its own.
        keep: columns to write beside the draws, never ``value`` or ``group``. They are not hidden. No other is written.
        progress: told how many rows are done.

    **One value, one draw**: each call, and each row, is a fresh one. Two draws for one value of a person show more than
    one (``CouplingMechanism``): a table with several rows of one person and value, and a second file of the same table,
    are repeated releases. Rows are sorted by what is written, so that their places tell nothing; on Spark they stand as
    Spark has them: sort them before they are published.

    Raises ``InputError`` where groups are not the mechanism's or values are not among the points (NULL is not): it says
    how many, shows none, and nothing is left at the destination. A value that is a point but excluded by the law of its
    group is no error, see ``CouplingMechanism``. ``SchemaError`` for columns that are missing or of another kind.

    >>> import pyarrow, tempfile
    >>> coin = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [1.0, 0.0]}, [[0, 1], [1, 0]], target=[0.5, 0.5])
    >>> people = pyarrow.table({"home": ["east", "west"] * 500, "sex": ["a", "b"] * 500})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apply_table(coin, people, "home", "sex", f"{folder}/out.parquet", points=["west", "east"])
    ...     open_source(f"{folder}/out.parquet").schema.names
    1000
    ('home',)
    """
    table = source if isinstance(source, Table) else open_source(source)
    names = points if isinstance(points, PointNames) else PointNames.of(points)
    return _applied(table, Drawing.of(mechanism, Named(value, names), group), destination, keep, progress)


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
    """Write, for each row, the centre of a cell drawn for its own cell and group; the number of rows.

    The columns of the axes are written under their names, and those to ``keep``, which are not hidden; no other. What
    lies outside the bounds counts as the nearest cell. Each row is one fresh draw: a second run releases every value
    again. Rows are sorted by what is written, so that their places tell nothing; on Spark they stand as Spark has them:
    sort them before they are published.

    Raises ``InputError`` where a value is NULL or NaN, a group is none of the mechanism's, or ``keep`` names what is
    hidden (how many rows, no value); ``SchemaError`` for columns that are missing or not numeric.

    >>> import pyarrow, tempfile
    >>> from tightrope.tables import open_source
    >>> from tightrope.tables.labels import Axis
    >>> ages = Cells((Axis("age", 0, 100, 2),))
    >>> coin = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [1.0, 0.0]}, ages.cost(), target=[0.5, 0.5])
    >>> people = open_source(pyarrow.table({"age": [30.0, 70.0] * 50, "sex": ["b", "a"] * 50}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     apply_cells(coin, people, ages, "sex", f"{folder}/out.parquet")
    100
    """
    return _applied(table, Drawing.of(mechanism, Celled(cells), group), destination, keep, progress)


class StrayRowsError(InputError):
    """Rows whose group the mechanism does not know, or whose value is not among the points. Shows none of them."""


@dataclass(frozen=True, slots=True)
class Named:
    """Points that stand in one column under their names."""

    column: str
    names: PointNames
    remedy: ClassVar[str] = "give the support every value that can occur, or map the others to it; NULL is no value"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many source and target points there are."""
        return len(self.names.sources), len(self.names.targets)

    def check(self, table: Table) -> None:
        """Raises ``SchemaError`` where the column does not hold what names are."""
        _check_named(table, self.column, self.names.sources)

    def numbers(self, columns: Sequence[Any]) -> Integers:
        """The points of Arrow columns, shape [n]; −1 for strays."""
        return self.names.sources.numbers(columns[0])

    def arrow_columns(self, drawn: Integers) -> list[Any]:
        """Target points as Arrow columns."""
        return [self.names.targets.named(drawn)]


@dataclass(frozen=True, slots=True)
class Celled:
    """Cells that columns of numbers fall into; their centres are written."""

    cells: Cells
    remedy: ClassVar[str] = "NULL and NaN have no cell: leave these rows out first"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.cells.columns

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.cells), len(self.cells)

    def check(self, table: Table) -> None:
        for column in self.columns:
            kind = table.schema.column(column).kind
            if kind not in ("integer", "number"):
                raise SchemaError("column", column, f"numeric to be cut into cells, but it is {kind}", "cast it first")

    def numbers(self, columns: Sequence[Any]) -> Integers:
        return self.cells.numbers([_floats(column) for column in columns])

    def arrow_columns(self, drawn: Integers) -> list[Any]:
        import pyarrow

        return [pyarrow.array(centres) for centres in self.cells.centres(drawn)]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Work on a batch of values and groups: a draw for each row. Randomness is drawn where the work is done."""

    mechanism: CouplingMechanism
    points: Named | Celled
    group: str
    groups: Labels

    @classmethod
    def of(cls, mechanism: CouplingMechanism, points: Named | Celled, group: str) -> Self:
        """The work, without the mechanism's memory: that is as secret as the values."""
        sizes = mechanism.tables.points, len(mechanism.target)
        if points.sizes != sizes:
            expected = f"{sizes}, as in the mechanism"
            raise InputError("number of source and target points", points.sizes, expected, "see PointNames")
        return cls(dataclasses.replace(mechanism, memory={}), points, group, Labels.of(list(mechanism.groups)))

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads: the values, then the group."""
        return (*self.points.columns, self.group)

    @property
    def schema(self) -> Any:
        """The Arrow schema of the draws."""
        import pyarrow

        example = self.points.arrow_columns(np.zeros(1, dtype=np.int64))
        return pyarrow.schema([(name, part.type) for name, part in zip(self.points.columns, example, strict=True)])

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        values, groups = self.numbers(batch)
        self.refuse(_strays(values, groups))
        drawn = self.mechanism.tables.draw(groups, values)
        return pyarrow.RecordBatch.from_arrays(self.points.arrow_columns(drawn), schema=self.schema)

    def numbers(self, batch: Any) -> tuple[Integers, Integers]:
        """Numbers of points and of groups, shape [n] each; −1 for strays."""
        return self.points.numbers(batch.columns[:-1]), self.groups.numbers(batch.column(batch.num_columns - 1))

    def refuse(self, found: Integers) -> None:
        """Raises ``StrayRowsError`` unless ``_strays`` found none."""
        total, groups, values = found.tolist()
        if groups:
            remedy = "leave them out, or name the groups that the mechanism was fitted with"
            raise StrayRowsError("rows of unknown groups", groups, f"0 of {total}", remedy)
        if values:
            raise StrayRowsError("rows with values outside the points", values, f"0 of {total}", self.points.remedy)


@dataclass(frozen=True, slots=True)
class Strays:
    """Work on the same batches that draws nothing: ``_strays`` of each."""

    drawing: Drawing

    def __call__(self, batch: Any) -> Integers:
        return _strays(*self.drawing.numbers(batch))


def _applied(
    table: Table, work: Drawing, destination: str | Path, keep: Sequence[str], progress: Progress | None
) -> int:
    if set(work.columns) & set(keep):
        expected = f"columns other than {work.columns}"
        raise InputError("keep", tuple(keep), expected, "beside a draw they undo what it hides")
    work.points.check(table)
    _check_named(table, work.group, work.groups)
    try:
        return written_in_order(table, work.columns, work, work.schema, destination, keep=keep, progress=progress)
    except (StrayRowsError, EngineError):
        work.refuse(folded(table, work.columns, Strays(work), 3))  # an engine may not say what stopped it
        raise


def _check_named(table: Table, column: str, labels: Labels) -> None:
    wanted = "text" if isinstance(labels.names[0], str) else "integer"
    kind = table.schema.column(column).kind
    if kind != wanted:
        raise SchemaError("column", column, f"of kind {wanted} like its names, but it is {kind}", "cast the column")


def _strays(values: Integers, groups: Integers) -> Integers:
    """How many rows there are, how many of unknown groups, how many without a point."""
    return np.array([len(values), np.count_nonzero(groups < 0), np.count_nonzero(values < 0)], dtype=np.int64)


def _floats(column: Any) -> NDArray[np.float64]:
    """An Arrow column of numbers; NULL is NaN."""
    import pyarrow

    found: NDArray[np.float64] = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found
