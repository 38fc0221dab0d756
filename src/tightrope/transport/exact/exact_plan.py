"""From a float plan to a coupling in whole numbers whose marginals are those of the laws, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tightrope.errors import PrecisionError
from tightrope.transport.exact.exact_laws import Law

MOST_MOVED = 1e-9
"""Mass that may be missing from a float plan; a solver that loses more gave no coupling."""

Entries = dict[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """γ[x, y] = entries[x, y] / total, with row sums ``source`` and column sums ``target`` to the last unit.

    ``stray`` is the mass on pairs that the float plan did not use: what rounding left over, below 1e−9.
    """

    entries: Entries
    total: int
    stray: Fraction

    def rows(self, size: int) -> list[dict[int, int]]:
        """For each source point, its targets and their weights."""
        out: list[dict[int, int]] = [{} for _ in range(size)]
        for (x, y), weight in self.entries.items():
            out[x][y] = weight
        return out


def exact_plan(plan: Any, source: Law, target: Law) -> ExactPlan:
    """The sparse float ``plan``, shape [n, m], as an exact coupling of two laws.

    Rows, then columns, that hold too much are scaled down; what is then missing is put on pairs that the plan uses,
    and the rest – rounding, some 1e−16 – on others, by the north-west rule. Raises ``PrecisionError`` where the plan
    misses the marginals by more than 1e−9.

    >>> from scipy.sparse import coo_array
    >>> half = Law.of("law", [0.5, 0.5])
    >>> exact_plan(coo_array([[0.5, 0.0], [0.0, 0.5]]), half, half).entries
    {(0, 0): 2, (1, 1): 2}
    """
    total = source.total * target.total
    rows = [mass * target.total for mass in source.masses]
    columns = [mass * source.total for mass in target.masses]
    entries = float_entries(plan, total)
    for axis, bounds in ((0, rows), (1, columns)):
        shrink(entries, axis, bounds)
    rows, columns = missing(entries, 0, rows), missing(entries, 1, columns)
    if not sum(rows) <= Fraction(MOST_MOVED) * total:
        lost = float(Fraction(sum(rows), total))
        raise PrecisionError(f"the plan misses its marginals by {lost:.3g} of the mass; expected at most 1e-9")
    for x, y in entries:
        pour(entries, (x, y), rows, columns)
    stray = Fraction(sum(rows), total)
    _north_west(entries, rows, columns)
    return ExactPlan({pair: weight for pair, weight in entries.items() if weight}, total, stray)


def float_entries(plan: Any, total: int) -> Entries:
    """The positive entries of a sparse matrix in units of 1 / total, rounded down."""
    found = plan.tocoo()
    triples = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    out: Entries = {}
    for x, y, value in triples:
        if value > 0:
            top, bottom = value.as_integer_ratio()
            out[x, y] = out.get((x, y), 0) + top * total // bottom
    return out


def _sums(entries: Entries, axis: int, size: int) -> list[int]:
    out = [0] * size
    for pair, weight in entries.items():
        out[pair[axis]] += weight
    return out


def shrink(entries: Entries, axis: int, bounds: list[int]) -> None:
    """Scale down the rows (``axis`` 0) or columns that hold more than their bounds, rounding down."""
    sums = _sums(entries, axis, len(bounds))
    for pair, weight in entries.items():
        place = pair[axis]
        if sums[place] > bounds[place]:
            entries[pair] = weight * bounds[place] // sums[place]


def missing(entries: Entries, axis: int, bounds: list[int]) -> list[int]:
    """What rows or columns hold less than their bounds."""
    return [bound - held for bound, held in zip(bounds, _sums(entries, axis, len(bounds)), strict=True)]


def pour(entries: Entries, pair: tuple[int, int], rows: list[int], columns: list[int]) -> None:
    """In place: as much onto this pair as both its row and its column lack."""
    x, y = pair
    more = min(rows[x], columns[y])
    if more:
        entries[pair] = entries.get(pair, 0) + more
        rows[x] -= more
        columns[y] -= more


def _north_west(entries: Entries, rows: list[int], columns: list[int]) -> None:
    x = y = 0
    while x < len(rows) and y < len(columns):
        pour(entries, (x, y), rows, columns)
        x, y = (x + 1, y) if not rows[x] else (x, y + 1)
