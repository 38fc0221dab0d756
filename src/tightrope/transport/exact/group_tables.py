"""The tables of all groups of a mechanism, one after the other: values of many groups are drawn in one go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.numerics.arrays import Integers
from tightrope.randomness.source import Source
from tightrope.randomness.wide import Wide
from tightrope.transport.exact.row_tables import RowTables

Group = Any


@dataclass(frozen=True, slots=True, eq=False)
class GroupTables(Mapping[Group, RowTables]):
    """``tables[group]`` has a row for each of ``points``; row g · points + x of ``joined`` is row x of group number g.

    The tables of single groups are views: nothing is held twice.
    """

    numbers: Mapping[Group, int]
    joined: RowTables
    points: int

    @classmethod
    def of(cls, tables: Mapping[Group, RowTables]) -> Self:
        """From a table a group, all with as many rows and outcomes.

        >>> one, two = RowTables.of([{0: 1}, {1: 1}], 2), RowTables.of([{1: 1}, {0: 1}], 2)
        >>> joined = GroupTables.of({"a": one, "b": two})
        >>> joined["b"].weights(0) == two.weights(0), joined.draw(np.array([0, 1]), np.array([1, 1])).tolist()
        (True, [1, 0])
        """
        parts = list(tables.values())
        numbers = {group: number for number, group in enumerate(tables)}
        return cls(numbers, _joined(parts), len(parts[0]))

    def __getitem__(self, group: Group) -> RowTables:
        rows = slice(self.numbers[group] * self.points, (self.numbers[group] + 1) * self.points)
        return replace(self.joined, starts=self.joined.starts[rows], shifts=self.joined.shifts[rows])

    def __iter__(self) -> Iterator[Group]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def draw(self, groups: NDArray[Any], places: Integers, randomness: Source | None = None) -> Integers:
        """One independent outcome for each value: ``groups`` and ``places`` are numbers, shape [k], and not checked."""
        return self.joined.draw(groups.astype(np.int64) * self.points + places, randomness)


def _joined(parts: list[RowTables]) -> RowTables:
    columns = np.cumsum([0, *(len(part.own) for part in parts[:-1])]).astype(np.uint64)
    starts = [part.starts + first for part, first in zip(parts, columns, strict=True)]
    edges = Wide(
        np.concatenate([part.edges.high for part in parts]), np.concatenate([part.edges.low for part in parts])
    )
    return RowTables(
        starts=np.concatenate(starts),
        shifts=np.concatenate([part.shifts for part in parts]),
        edges=edges,
        own=np.concatenate([part.own for part in parts]),
        other=np.concatenate([part.other for part in parts]),
        outcomes=parts[0].outcomes,
    )
