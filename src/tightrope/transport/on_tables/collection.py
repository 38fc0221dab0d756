"""A coupling on tables of any size: each row's value is replaced by a draw for its value and group, batch by batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.engines import Labels, Table, folded, open_source
from tightrope.engines.jobs.ordering import written_in_order
from tightrope.engines.labels import ABSENT, Name
from tightrope.errors import EngineError, InputError, SchemaError
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism

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
    work = _coupling(mechanism, value, points if isinstance(points, PointNames) else PointNames.of(points))
    _check(table, work, (value, group), keep)
    try:
        return written_in_order(table, (value, group), work, work.schema, destination, keep=keep, progress=progress)
    except (StrayRowsError, EngineError):
        _refuse_strays(table, work, (value, group))  # on Spark an error of the work does not say what it was
        raise


class StrayRowsError(InputError):
    """Rows whose group the mechanism does not know, or whose value is not among the points. Shows none of them."""


@dataclass(frozen=True, slots=True)
class Coupling:
    """Work on a batch of values and groups: a draw for each row. Randomness is drawn where the work is done."""

    mechanism: CouplingMechanism
    name: str
    points: PointNames
    groups: Labels

    @property
    def schema(self) -> Any:
        """The Arrow schema of the draws."""
        import pyarrow

        return pyarrow.schema([(self.name, self.points.targets.named(np.zeros(1, dtype=np.int64)).type)])

    def __call__(self, batch: Any) -> Any:
        import pyarrow

        values, groups = self.numbers(batch)
        _refuse(len(values), _absent(groups), _absent(values))
        drawn = self.mechanism.tables.draw(groups, values)
        return pyarrow.RecordBatch.from_arrays([self.points.targets.named(drawn)], schema=self.schema)

    def numbers(self, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of points and of groups, shape [n] each; −1 for strays."""
        return self.points.sources.numbers(batch.column(0)), self.groups.numbers(batch.column(1))


@dataclass(frozen=True, slots=True)
class Strays:
    """Work on the same batches: how many rows there are, with stray groups, and with stray values."""

    coupling: Coupling

    def __call__(self, batch: Any) -> NDArray[np.int64]:
        values, groups = self.coupling.numbers(batch)
        return np.array([len(values), _absent(groups), _absent(values)], dtype=np.int64)


def _coupling(mechanism: CouplingMechanism, name: str, points: PointNames) -> Coupling:
    """The work, without the mechanism's memory: that is as secret as the values."""
    sizes = mechanism.tables.points, len(mechanism.target)
    if (len(points.sources), len(points.targets)) != sizes:
        found = (len(points.sources), len(points.targets))
        raise InputError("number of source and target points", found, f"{sizes}, as in the mechanism", "see PointNames")
    return Coupling(dataclasses.replace(mechanism, memory={}), name, points, Labels.of(list(mechanism.tables)))


def _check(table: Table, work: Coupling, columns: tuple[str, str], keep: Sequence[str]) -> None:
    if set(columns) & set(keep):
        raise InputError("keep", tuple(keep), f"columns other than {columns}", "beside a draw they undo what it hides")
    for name, labels in zip(columns, (work.points.sources, work.groups), strict=True):
        wanted = "text" if isinstance(labels.names[0], str) else "integer"
        kind = table.schema.column(name).kind
        if kind != wanted:
            raise SchemaError("column", name, f"of kind {wanted} like its names, but it is {kind}", "cast the column")


def _refuse_strays(table: Table, work: Coupling, columns: tuple[str, str]) -> None:
    total, groups, values = folded(table, columns, Strays(work), 3).tolist()
    _refuse(total, groups, values)


def _refuse(total: int, groups: int, values: int) -> None:
    if groups:
        known = "the groups that the mechanism was fitted with"
        raise StrayRowsError("rows of unknown groups", groups, f"0 of {total}", f"leave them out, or name {known}")
    if values:
        remedy = "give the support every value that can occur, or map the others to it; NULL is no value"
        raise StrayRowsError("rows with values outside the points", values, f"0 of {total}", remedy)


def _absent(numbers: NDArray[np.int64]) -> int:
    return int(np.count_nonzero(numbers == ABSENT))
