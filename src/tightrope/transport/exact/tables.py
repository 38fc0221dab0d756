"""A randomized map on a finite set, as integer weights: one alias table per row, sampled for all rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.numerics.arrays import Integers
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE, Columns, build_alias_table, build_constant_table
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import Wide
from tightrope.randomness.loops import Loop, compiled_loop

# The loop of row-wise choice, for numba if installed (see ``randomness.loops``).


def choose_by_row(words: Words, rows: NDArray[np.int64], layout: tuple[Any, ...], out: NDArray[np.int64]) -> int:
    """Write one outcome of each row's alias table into ``out``; return how many words equal an edge.

    ``layout`` is (first column and shift of each row; edge, own and other outcome of each column).
    """
    starts, shifts, edges, own, other = layout
    ties = np.uint64(0)
    for i in range(len(words)):
        word, row = words[i], np.uint64(rows[i])
        column = starts[row] + (word >> shifts[row])
        edge, below, above = edges[column], own[column], other[column]
        ties += np.uint64(word == edge)
        out[i] = below if word < edge else above
    return int(ties)


Row = tuple[tuple[int, ...], Columns]
Layout = tuple[Words, Words, Words, NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class RowTables:
    """Row x gives outcome y with probability weight / 2¹²⁸; rows may share one table.

    Row x owns the columns starts[x], …, starts[x] + 2^(64 − shifts[x]) − 1. A word chooses one by its first bits; the
    outcome is ``own`` below the column's edge (128 bits: ``edges``) and ``other`` from there on.
    """

    starts: Words
    shifts: Words
    edges: Wide
    own: NDArray[np.int32]
    other: NDArray[np.int32]
    outcomes: int

    @classmethod
    def from_weights(cls, rows: Sequence[Mapping[int, int]], outcomes: int) -> Self:
        """Return tables from the weights of each row, outcome → integer, in any proportion; see ``quantize_weights``.

        >>> tables = RowTables.from_weights([{0: 1, 2: 3}, {1: 5}], outcomes=3)
        >>> tables.row_weights(0) == {0: 2**126, 2: 3 * 2**126}, tables.draw_outcomes(np.array([1, 1])).tolist()
        (True, [1, 1])
        """
        table_by_weights: dict[tuple[tuple[int, int], ...], int] = {}
        tables: list[Row] = []
        table_by_row: dict[int, int] = {}  # by identity: mechanisms repeat one long row for all points without mass
        for row in rows:
            if id(row) in table_by_row:
                continue
            weights = quantize_weights(row)
            key = tuple(weights.items())
            if key not in table_by_weights:
                table_by_weights[key] = len(tables)
                row_weights = list(weights.values())
                tables.append(
                    (
                        tuple(weights),
                        build_constant_table(0)
                        if len(row_weights) == 1
                        else build_alias_table(Wide.from_integers(row_weights)),
                    )
                )
            table_by_row[id(row)] = table_by_weights[key]
        # Concatenate the tables; each row gets the start and shift of its table.
        numbers = np.array([table_by_row[id(row)] for row in rows])
        layout_bits = np.array([columns.bits for _, columns in tables])
        layout_starts = np.concatenate([[0], np.cumsum(1 << layout_bits)[:-1]]).astype(np.uint64)
        layout_edges = Wide(
            np.concatenate([columns.edges.high for _, columns in tables]),
            np.concatenate([columns.edges.low for _, columns in tables]),
        )
        layout_outcomes = [np.array(row_outcomes, dtype=np.int32) for row_outcomes, _ in tables]
        layout_own, layout_other = [], []
        for row_outcomes, (_, columns) in zip(layout_outcomes, tables, strict=True):
            # Padding columns have an empty lower part.
            positions = np.arange(1 << columns.bits)
            other_outcomes = row_outcomes[columns.other]
            layout_own.append(
                np.where(
                    positions < len(row_outcomes),
                    row_outcomes[np.minimum(positions, len(row_outcomes) - 1)],
                    other_outcomes,
                )
            )
            layout_other.append(other_outcomes)
        layout_shifts = (64 - layout_bits).astype(np.uint64)
        return cls(
            *(
                layout_starts[numbers],
                layout_shifts[numbers],
                layout_edges,
                np.concatenate(layout_own),
                np.concatenate(layout_other),
            ),
            outcomes=outcomes,
        )

    def __len__(self) -> int:
        return len(self.starts)

    def row_weights(self, row: int) -> dict[int, int]:
        """Return outcome → weight of one row, summed over the sampling columns; they sum to 2¹²⁸."""
        bits = 64 - int(self.shifts[row])
        columns = slice(int(self.starts[row]), int(self.starts[row]) + (1 << bits))
        capacity = TOTAL >> bits
        totals: dict[int, int] = {}
        parts = (self.edges.high[columns], self.edges.low[columns], self.own[columns], self.other[columns])
        ends = zip(*(part.tolist() for part in parts), strict=True)
        for number, (high, low, own, other) in enumerate(ends):
            below = (high << 64) + low - number * capacity
            totals[own] = totals.get(own, 0) + below
            totals[other] = totals.get(other, 0) + capacity - below
        return {outcome: weight for outcome, weight in sorted(totals.items()) if weight}

    def draw_outcomes(self, rows: Integers, randomness: Source | None = None) -> Integers:
        """Return one independent outcome for each of ``rows`` (row indices, shape [n]), exactly by the weights."""
        randomness = randomness or Stream()
        out, loop = np.empty(len(rows), dtype=np.int64), compiled_loop(choose_by_row, len(rows))
        for start in range(0, len(rows), WORDS_AT_ONCE):
            part = slice(start, start + WORDS_AT_ONCE)
            self._fill_outcomes(out[part], rows[part], randomness, loop)
        return out

    def _fill_outcomes(self, out: Integers, rows: Integers, randomness: Source, loop: Loop | None) -> None:
        words = randomness.random_words(len(rows))
        layout = (self.starts, self.shifts, self.edges.high, self.own, self.other)
        choose = loop if loop is not None and words.flags.writeable else choose_by_row_numpy
        if choose(words, rows, layout, out):
            self._resolve_ties(out, rows, words, randomness)

    def _resolve_ties(self, out: Integers, rows: Integers, words: Words, randomness: Source) -> None:
        """Resolve words whose high part equals the edge, by their low part."""
        columns = self.starts[rows] + (words >> self.shifts[rows])
        tied = np.flatnonzero(words == self.edges.high[columns])
        columns = columns[tied]
        below = randomness.random_words(len(tied)) < self.edges.low[columns]
        out[tied] = np.where(below, self.own[columns], self.other[columns])


def quantize_weights(row: Mapping[int, int]) -> dict[int, int]:
    """Return weights that sum to 2¹²⁸, proportional to ``row`` within one unit; the largest remainders are rounded up.

    Raises ``InputError`` for a row without weight or with a negative one.
    """
    total = sum(row.values())
    if not row or not total > 0 or not min(row.values()) >= 0:
        raise InputError("row", dict(row), "weights >= 0, at least one of them > 0")
    divided = {outcome: divmod(weight * TOTAL, total) for outcome, weight in sorted(row.items())}
    missing_units = TOTAL - sum(quotient for quotient, _ in divided.values())
    rounded_up = set(sorted(divided, key=lambda outcome: -divided[outcome][1])[:missing_units])
    weights = {outcome: quotient + (outcome in rounded_up) for outcome, (quotient, _) in divided.items()}
    return {outcome: weight for outcome, weight in weights.items() if weight}


def choose_by_row_numpy(
    words: Words,
    rows: Integers,
    layout: tuple[Words, Words, Words, NDArray[np.int32], NDArray[np.int32]],
    out: Integers,
) -> int:
    """Write the same outcomes as ``choose_by_row``, with NumPy."""
    starts, shifts, edges, own, other = layout
    columns = (starts[rows] + (words >> shifts[rows])).astype(np.int64)
    edge = edges[columns]
    np.copyto(out, np.where(words < edge, own[columns], other[columns]))
    return int(np.count_nonzero(words == edge))


# The concatenated tables of all groups of a mechanism: outcomes for values of many groups are drawn at once.

Group = Any


@dataclass(frozen=True, slots=True, eq=False)
class GroupTables(Mapping[Group, RowTables]):
    """``tables[group]`` has a row for each of ``points``; row g · points + x of ``joined`` is row x of group number g.

    The tables of single groups are views, without copies.
    """

    numbers: Mapping[Group, int]
    joined: RowTables
    points: int

    @classmethod
    def from_tables(cls, tables: Mapping[Group, RowTables]) -> Self:
        """Return the concatenation of one table per group, all with the same numbers of rows and outcomes.

        >>> one, two = RowTables.from_weights([{0: 1}, {1: 1}], 2), RowTables.from_weights([{1: 1}, {0: 1}], 2)
        >>> joined = GroupTables.from_tables({"a": one, "b": two})
        >>> drawn = joined.draw_outcomes(np.array([0, 1]), np.array([1, 1]))
        >>> joined["b"].row_weights(0) == two.row_weights(0), drawn.tolist()
        (True, [1, 0])
        """
        parts = list(tables.values())
        numbers = {group: number for number, group in enumerate(tables)}
        columns = np.cumsum([0, *(len(part.own) for part in parts[:-1])]).astype(np.uint64)
        starts = [part.starts + first for part, first in zip(parts, columns, strict=True)]
        edges = Wide(
            np.concatenate([part.edges.high for part in parts]), np.concatenate([part.edges.low for part in parts])
        )
        return cls(
            numbers,
            RowTables(
                starts=np.concatenate(starts),
                shifts=np.concatenate([part.shifts for part in parts]),
                edges=edges,
                own=np.concatenate([part.own for part in parts]),
                other=np.concatenate([part.other for part in parts]),
                outcomes=parts[0].outcomes,
            ),
            len(parts[0]),
        )

    def __getitem__(self, group: Group) -> RowTables:
        rows = slice(self.numbers[group] * self.points, (self.numbers[group] + 1) * self.points)
        return replace(self.joined, starts=self.joined.starts[rows], shifts=self.joined.shifts[rows])

    def __iter__(self) -> Iterator[Group]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def draw_outcomes(self, groups: NDArray[Any], points: Integers, randomness: Source | None = None) -> Integers:
        """Return one independent outcome for each value; ``groups`` and ``points`` are unchecked indices, shape [k]."""
        return self.joined.draw_outcomes(groups.astype(np.int64) * self.points + points, randomness)
