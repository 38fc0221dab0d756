"""Distributions and couplings in integers, so that marginals and checks are exact.

1. Distributions (``ExactDistribution``).
2. A float plan as an exact coupling (``exact_plan``).
3. The largest mass on allowed pairs, by a maximum flow (``coupling_plan_within``).
4. Distributions that share all but a mass δ (``distributions_with_common_part``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.distributions import check_probabilities

# 1. Distributions over a finite support as integers: the exact values of the floats.


@dataclass(frozen=True, slots=True)
class ExactDistribution:
    """P(x) = masses[x] / total, exactly; every float is an integer over a power of two."""

    masses: tuple[int, ...]
    total: int

    @classmethod
    def from_probabilities(cls, name: str, values: ArrayLike, size: int | None = None) -> Self:
        """Return probabilities of shape [n], divided by their exact sum; raises ``InputError`` unless it is 1 ± 1e−9.

        >>> ExactDistribution.from_probabilities("law", [0.25, 0.75])
        ExactDistribution(masses=(1, 3), total=4)
        """
        masses = proportional_integers(check_probabilities(name, values, size))
        return cls(tuple(masses), sum(masses))

    def __len__(self) -> int:
        return len(self.masses)

    def __getitem__(self, x: int) -> Fraction:
        return Fraction(self.masses[x], self.total)

    @property
    def float_masses(self) -> Floats:
        """The nearest doubles, shape [n]."""
        return np.array([mass / self.total for mass in self.masses])

    @property
    def support_points(self) -> NDArray[np.int64]:
        """Indices of positive masses."""
        return np.flatnonzero(np.array([mass > 0 for mass in self.masses]))


def proportional_integers(values: Floats) -> list[int]:
    """Return integers in exactly the proportions of non-negative floats, with no common factor 2."""
    mantissas, exponents = np.frexp(values)
    integers = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    smallest_exponent = int(exponents[values > 0].min())
    shifted = [w << (e - smallest_exponent) if w else 0 for w, e in zip(integers, exponents.tolist(), strict=True)]
    common_zeros = min((mass & -mass).bit_length() - 1 for mass in shifted if mass)
    return [mass >> common_zeros for mass in shifted]


# 2. A float plan as an exact coupling.

MAX_MISSING_MASS = 1e-9
"""Largest mass that may be missing from a float plan; otherwise the solver failed."""

Entries = dict[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """γ[x, y] = entries[x, y] / total, with row sums ``source`` and column sums ``target`` to the last unit.

    ``unplanned_mass`` is the mass on pairs that the float plan did not use: the rounding remainder, below 1e−9.
    """

    entries: Entries
    total: int
    unplanned_mass: Fraction

    def weights_by_source(self, size: int) -> list[dict[int, int]]:
        """Return the targets of each source point with their weights."""
        weights: list[dict[int, int]] = [{} for _ in range(size)]
        for (x, y), weight in self.entries.items():
            weights[x][y] = weight
        return weights


def exact_plan(plan: Any, source: ExactDistribution, target: ExactDistribution) -> ExactPlan:
    """Return the sparse float ``plan``, shape [n, m], as an exact coupling of two distributions.

    Rows, then columns, that exceed their bounds are scaled down; the missing mass is put on pairs that the plan uses,
    and the rest – rounding, about 1e−16 – on others, by the north-west rule. Raises ``PrecisionError`` if the plan
    misses the marginals by more than 1e−9.

    >>> from scipy.sparse import coo_array
    >>> half = ExactDistribution.from_probabilities("law", [0.5, 0.5])
    >>> exact_plan(coo_array([[0.5, 0.0], [0.0, 0.5]]), half, half).entries
    {(0, 0): 2, (1, 1): 2}
    """
    total = source.total * target.total
    rows = [mass * target.total for mass in source.masses]
    columns = [mass * source.total for mass in target.masses]
    entries = float_entries(plan, total)
    for axis, bounds in ((0, rows), (1, columns)):
        shrink_to_bounds(entries, axis, bounds)
    rows, columns = missing_masses(entries, 0, rows), missing_masses(entries, 1, columns)
    if not sum(rows) <= Fraction(MAX_MISSING_MASS) * total:
        missing = float(Fraction(sum(rows), total))
        raise PrecisionError(f"the plan misses its marginals by {missing:.3g} of the mass; expected at most 1e-9")
    for x, y in entries:
        fill_missing_mass(entries, (x, y), rows, columns)
    unplanned_mass = Fraction(sum(rows), total)
    north_west_x = north_west_y = 0
    while north_west_x < len(rows) and north_west_y < len(columns):
        fill_missing_mass(entries, (north_west_x, north_west_y), rows, columns)
        north_west_x, north_west_y = (
            (north_west_x + 1, north_west_y) if not rows[north_west_x] else (north_west_x, north_west_y + 1)
        )
    return ExactPlan({pair: weight for pair, weight in entries.items() if weight}, total, unplanned_mass)


def float_entries(plan: Any, total: int) -> Entries:
    """Return the positive entries of a sparse matrix in units of 1 / total, rounded down."""
    sparse = plan.tocoo()
    triples = zip(sparse.row.tolist(), sparse.col.tolist(), sparse.data.tolist(), strict=True)
    entries: Entries = {}
    for x, y, value in triples:
        if value > 0:
            numerator, denominator = value.as_integer_ratio()
            entries[x, y] = entries.get((x, y), 0) + numerator * total // denominator
    return entries


def _marginal_sums(entries: Entries, axis: int, size: int) -> list[int]:
    """Return the sum of each row (``axis`` 0) or column."""
    sums = [0] * size
    for pair, weight in entries.items():
        sums[pair[axis]] += weight
    return sums


def shrink_to_bounds(entries: Entries, axis: int, bounds: list[int]) -> None:
    """Scale down the rows (``axis`` 0) or columns that exceed their bounds, rounding down."""
    sums = _marginal_sums(entries, axis, len(bounds))
    for pair, weight in entries.items():
        index = pair[axis]
        if sums[index] > bounds[index]:
            entries[pair] = weight * bounds[index] // sums[index]


def missing_masses(entries: Entries, axis: int, bounds: list[int]) -> list[int]:
    """Return the shortfall of each row or column from its bound."""
    return [bound - mass for bound, mass in zip(bounds, _marginal_sums(entries, axis, len(bounds)), strict=True)]


def fill_missing_mass(entries: Entries, pair: tuple[int, int], rows: list[int], columns: list[int]) -> None:
    """Add to this pair, in place, the smaller of its row's and its column's missing mass; reduce both by it."""
    x, y = pair
    added = min(rows[x], columns[y])
    if added:
        entries[pair] = entries.get(pair, 0) + added
        rows[x] -= added
        columns[y] -= added


# 3. The largest mass on allowed pairs: a maximum flow in integers, exact to the last unit, from a float plan.

Allowed = NDArray[np.bool_]
FlowPath = list[tuple[int, int]]
"""Pairs (x₀, y₀), (x₁, y₀), (x₁, y₁), …: mass is added to the first, third, … and removed from the others."""


def least_mass_outside(allowed: Allowed, source: ExactDistribution, target: ExactDistribution, plan: Any) -> Fraction:
    """Return the least mass outside ``allowed`` of a coupling, exactly; ``plan`` is an initial guess for speed.

    Ford and Fulkerson's augmenting paths, shortest first (Edmonds and Karp 1972): without an augmenting path the flow
    is maximal, and by Strassen's theorem the remainder is the mass that every coupling leaves outside.

    >>> from scipy.sparse import csr_array
    >>> half, none = ExactDistribution.from_probabilities("law", [0.5, 0.5]), csr_array((2, 2))
    >>> least_mass_outside(np.eye(2, dtype=bool), half, ExactDistribution.from_probabilities("law", [0.25, 0.75]), none)
    Fraction(1, 4)
    """
    _, missing_rows, _ = _largest_allowed_flow(allowed, source, target, plan)
    return Fraction(sum(missing_rows), source.total * target.total)


def coupling_plan_within(
    allowed: Allowed, source: ExactDistribution, target: ExactDistribution, plan: Any
) -> ExactPlan | None:
    """Return ``plan`` as an exact coupling on ``allowed`` pairs; None if no coupling exists on them.

    ``unplanned_mass`` is the mass on pairs that the plan does not use.

    >>> from scipy.sparse import csr_array
    >>> half = ExactDistribution.from_probabilities("law", [0.5, 0.5])
    >>> coupling_plan_within(np.ones((2, 2), dtype=bool), half, half, csr_array(np.eye(2) / 2)).unplanned_mass
    Fraction(0, 1)
    """
    entries, missing_rows, _ = _largest_allowed_flow(allowed, source, target, plan)
    if any(missing_rows):
        return None
    total = source.total * target.total
    used = {pair for pair, weight in float_entries(plan, total).items() if weight}
    unplanned_mass = sum(weight for pair, weight in entries.items() if pair not in used)
    return ExactPlan(
        {pair: weight for pair, weight in entries.items() if weight}, total, Fraction(unplanned_mass, total)
    )


def _largest_allowed_flow(
    allowed: Allowed, source: ExactDistribution, target: ExactDistribution, plan: Any
) -> tuple[Entries, list[int], list[int]]:
    """Return a maximum flow on allowed pairs, and the remaining mass of rows and columns."""
    total = source.total * target.total
    rows = [mass * target.total for mass in source.masses]
    columns = [mass * source.total for mass in target.masses]
    entries = {pair: weight for pair, weight in float_entries(plan, total).items() if weight and allowed[pair]}
    for axis, bounds in ((0, rows), (1, columns)):
        shrink_to_bounds(entries, axis, bounds)
    rows, columns = missing_masses(entries, 0, rows), missing_masses(entries, 1, columns)
    for pair in list(entries):
        fill_missing_mass(entries, pair, rows, columns)
    allowed_columns = [np.flatnonzero(row).tolist() for row in allowed]
    while path := _shortest_path(allowed_columns, entries, rows, columns):
        # The largest amount that the ends and the reduced pairs of the path allow.
        (first, _), (_, last) = path[0], path[-1]
        amount = min(rows[first], columns[last], *(entries[pair] for pair in path[1::2]))
        for number, pair in enumerate(path):
            entries[pair] = entries.get(pair, 0) + (-amount if number % 2 else amount)
        rows[first] -= amount
        columns[last] -= amount
    return entries, rows, columns


def _shortest_path(allowed_columns: list[list[int]], entries: Entries, rows: list[int], columns: list[int]) -> FlowPath:
    """Return a shortest path from a row with mass left to a column that lacks some; empty if none exists."""
    # The rows that send mass to each column.
    rows_by_column: dict[int, set[int]] = {}
    for (x, y), weight in entries.items():
        if weight:
            rows_by_column.setdefault(y, set()).add(x)
    predecessors: dict[int, tuple[int, int | None]] = {}  # column -> (row before it, column before that)
    waiting: deque[tuple[int, int | None]] = deque((x, None) for x, mass in enumerate(rows) if mass)
    seen = {x for x, _ in waiting}
    while waiting:
        x, previous_column = waiting.popleft()
        for y in allowed_columns[x]:
            if y in predecessors:
                continue
            predecessors[y] = (x, previous_column)
            if columns[y]:
                return _trace_path(predecessors, y)
            new_rows = rows_by_column.get(y, set()) - seen
            seen |= new_rows
            waiting.extend((other, y) for other in sorted(new_rows))
    return []


def _trace_path(predecessors: dict[int, tuple[int, int | None]], end: int) -> FlowPath:
    """Return the path that ends in column ``end``."""
    path: FlowPath = []
    column: int | None = end
    while column is not None:
        x, previous_column = predecessors[column]
        path += [(x, column)] if previous_column is None else [(x, column), (x, previous_column)]
        column = previous_column
    return path[::-1]


# 4. Distributions that share all but a mass δ, exactly, from the floats of a solver.

COMMON_PART_BITS = 120
"""These distributions are integers over 2¹²⁰."""


def exact_delta(delta: float) -> Fraction:
    """Return the smaller of the float's exact value and the decimal that it is written as.

    >>> exact_delta(0.1) == Fraction(1, 10) < Fraction(0.1), exact_delta(0.3) == Fraction(0.3) < Fraction(3, 10)
    (True, True)
    """
    return min(Fraction(delta), Fraction(repr(float(delta))))


def distributions_with_common_part(
    common: Floats, rests: Floats, delta: float, target: ExactDistribution | None
) -> tuple[ExactDistribution, list[ExactDistribution]]:
    """Return the target and exact distributions near ``common`` + ``rests``[s], shapes [m] and [groups, m].

    All of them and the target share a mass of at least 1 − δ + m 2⁻¹²⁰: sampling tables, which are off by less than
    2⁻¹²⁸ at each point, then share 1 − δ. The target is by default the common part, divided by its mass; one that is
    given bounds the common part at every point.

    >>> half = np.array([0.25, 0.25])
    >>> _, (first, second) = distributions_with_common_part(half, np.array([[0.5, 0], [0, 0.5]]), 0.5, None)
    >>> sum(map(min, first.masses, second.masses)) - 2**119, first.total == second.total == 2**120
    (2, True)
    """
    total = 1 << COMMON_PART_BITS
    shared_mass = min(total, total - int(exact_delta(delta) * total) + len(common))
    limits = [total] * len(common) if target is None else [mass * total // target.total for mass in target.masses]
    shared = _integers_with_sum(common, shared_mass, limits)
    remainders = [_integers_with_sum(rest, total - shared_mass, [total] * len(common)) for rest in rests]
    laws = [
        ExactDistribution(tuple(mass + extra for mass, extra in zip(shared, remainder, strict=True)), total)
        for remainder in remainders
    ]
    return target or ExactDistribution(tuple(shared), shared_mass), laws


def _integers_with_sum(values: Floats, total: int, limits: list[int]) -> list[int]:
    """Return integers in nearly the proportions of ``values``, at most ``limits``, with this sum."""
    weights = proportional_integers(values) if values.any() else limits
    weight_sum = sum(weights)
    integers = [min(weight * total // weight_sum, most) for weight, most in zip(weights, limits, strict=True)]
    missing = total - sum(integers)
    for index in sorted(range(len(integers)), key=lambda index: -weights[index]):
        added = min(missing, limits[index] - integers[index])
        integers[index] += added
        missing -= added
    return integers
