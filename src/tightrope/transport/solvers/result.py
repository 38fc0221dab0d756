"""Results: the plan of a coupling, its cost, and the proof that it is optimal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost

# 1. Proofs that a coupling is optimal: dual potentials for a sum of costs, a cut for the largest cost.
#
# They do not depend on the solver: that u_i + v_j ≤ c_ij for all pairs, or that the targets near a set of sources have
# less mass than the set, can be checked in exact arithmetic with a few lines of code.

DUAL_ROUNDING = 2.0**-52
DEKKER_FACTOR = 2.0**27 + 1
UNDERFLOW_ERROR = 2.0**-1070
"""Upper bound on the underflow of a product and its halves."""


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """Potentials u [n], v [m] with u_i + v_j ≤ c_ij for every pair, exactly (Kantorovich duality).

    ``value`` is at most Σ u_i source_i + Σ v_j target_j, rounding included: a lower bound on the cost of every
    coupling.
    """

    u: Floats
    v: Floats
    value: float


def certify_dual(u: Floats, v: Floats, source: Floats, target: Floats) -> Dual:
    """Return the certificate of feasible potentials, its value rounded down.

    >>> law = np.array([0.5, 0.5])
    >>> 1.5 - 1e-14 < certify_dual(np.array([1.0, 2.0]), np.array([0.0, 0.0]), law, law).value < 1.5
    True
    """
    potentials, masses = np.concatenate([u, v]), np.concatenate([source, target])
    is_used = (potentials != 0) & (masses != 0)
    if not is_used.any():
        return Dual(u, v, 0.0)
    _, exponent = math.frexp(float(np.abs(potentials[is_used]).max()))
    # Numbers whose sum is the value, up to underflow: products and their rounding errors. Factors are at most 1,
    # split into halves of 26 bits (Dekker 1971), so that potentials far above the cost, which cancel in the sum,
    # do not reduce its precision.
    scaled_potentials = np.ldexp(potentials[is_used], -exponent)
    used_masses = masses[is_used]
    product = scaled_potentials * used_masses
    (high, low), (mass_high, mass_low) = _split_halves(scaled_potentials), _split_halves(used_masses)
    product_errors = ((high * mass_high - product) + high * mass_low + low * mass_high) + low * mass_low
    terms = np.concatenate([product, product_errors])
    value = math.fsum(terms) - UNDERFLOW_ERROR * len(terms)
    return Dual(u, v, math.nextafter(math.ldexp(math.nextafter(value, -math.inf), exponent), -math.inf))


def _split_halves(values: Floats) -> tuple[Floats, Floats]:
    wide = values * DEKKER_FACTOR
    high = wide - (wide - values)
    return high, values - high


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A set S of sources with more mass than all targets nearer than ``value``: some mass moves ``value`` or further.

    ``sources`` [n] marks S, ``targets`` [m] marks at least every target (with mass) with a cost below ``value`` from a
    source in S, and ``surplus`` = source(S) − target(marked) is positive (Hall's condition, or the minimum cut).
    """

    sources: np.ndarray[tuple[int], np.dtype[np.bool_]]
    targets: np.ndarray[tuple[int], np.dtype[np.bool_]]
    surplus: float
    value: float


# 2. Couplings, and the repair of their marginals.

MARGINAL_TOLERANCE = 1e-12
"""Tolerance of the marginals, summed over all points."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coupling(Displayed):
    """A coupling of least cost.

    ``plan`` [n, m], sparse: the mass that moves from i to j; row and column sums are the distributions to 1e−12.
    ``cost``: Σ plan_ij c_ij^p, and for p = ∞ the largest c_ij with mass. ``dual``: the proof of optimality, a ``Dual``,
    and for p = ∞ a ``Cut``. ``method``: the algorithm used.
    """

    plan: csr_array
    cost: float
    dual: Dual | Cut
    p: float
    method: str

    def text_summary(self) -> Summary:
        """Return the cost, its lower bound and the size of the plan."""
        facts: list[tuple[str, Shown]] = [
            ("cost", Rounded(self.cost, "up")),
            ("cost of every coupling, at least", Rounded(self.lower_bound, "down")),
            ("pairs with mass", self.plan.nnz),
            ("method", self.method),
        ]
        return Summary(f"{self.plan.shape[0]:,} × {self.plan.shape[1]:,} points, p = {self.p:g}", facts)

    @property
    def wasserstein_distance(self) -> float:
        """The Wasserstein distance W_p = cost^(1/p)."""
        return self.cost if math.isinf(self.p) else self.cost ** (1 / self.p)

    @property
    def gap(self) -> float:
        """``cost`` minus the proven lower bound (at least 0), in units of ``cost``."""
        return self.cost - max(0.0, self.dual.value)

    @property
    def lower_bound(self) -> float:
        """Lower bound on the cost of every coupling, in units of ``cost``; never above it."""
        return max(0.0, min(self.cost, self.dual.value))


def sparse_plan(rows: Integers, columns: Integers, masses: Floats, shape: tuple[int, int]) -> csr_array:
    """Return a sparse plan from its entries; duplicates are added, entries without mass omitted."""
    is_positive = masses > 0
    return csr_array(coo_array((masses[is_positive], (rows[is_positive], columns[is_positive])), shape=shape))


def plan_cost(cost: Cost, plan: csr_array) -> float:
    """Return Σ plan_ij c_ij."""
    entries = coo_array(plan)
    return float((entries.data * cost.pair_costs(*entry_indices(entries))).sum(dtype=np.longdouble))


def entry_indices(entries: coo_array) -> tuple[Integers, Integers]:
    """Return rows and columns of the entries, as 64-bit integers."""
    return entries.row.astype(np.int64), entries.col.astype(np.int64)


def repair_marginals(plan: csr_array, source: Floats, target: Floats) -> csr_array:
    """Return ``plan`` with correct marginals, removing the solver's rounding errors.

    Rows are scaled to their marginals. If the columns then differ by more than 1e−12 in total, rows and columns with
    too much mass are scaled down, and the missing mass is added by the north-west corner rule (Altschuler, Weed and
    Rigollet 2017, algorithm 2): the moved mass equals the error; its cost is part of the gap to the dual.
    """
    entries = coo_array(plan)
    rows, columns = entry_indices(entries)
    row_sums = _marginal_sums(rows, entries.data, len(source))
    masses = entries.data * (source / np.where(row_sums > 0, row_sums, 1.0))[rows]
    column_error = np.abs(_marginal_sums(columns, masses, len(target)) - target).sum() + source[row_sums == 0].sum()
    return (
        sparse_plan(rows, columns, masses, plan.shape)
        if column_error <= MARGINAL_TOLERANCE
        else refill_marginals(entries, source, target)
    )


def refill_marginals(entries: coo_array, source: Floats, target: Floats) -> csr_array:
    """Return entries scaled down to the marginals; the missing mass is added by the north-west corner rule."""
    rows, columns = entry_indices(entries)
    masses = entries.data * _shrink_factors(_marginal_sums(rows, entries.data, len(source)), source)[rows]
    masses = masses * _shrink_factors(_marginal_sums(columns, masses, len(target)), target)[columns]
    # The north-west corner rule on the remainder; tiny negative values are rounding.
    supply = source - _marginal_sums(rows, masses, len(source))
    demand = target - _marginal_sums(columns, masses, len(target))
    fill_rows, fill_columns = np.flatnonzero(supply > 0), np.flatnonzero(demand > 0)
    if not (len(fill_rows) and len(fill_columns)):
        added = fill_rows[:0], fill_columns[:0], np.zeros(0)
    else:
        supply_ends, demand_ends = np.cumsum(supply[fill_rows]), np.cumsum(demand[fill_columns])
        all_ends = np.sort(np.concatenate([supply_ends, demand_ends]))
        all_ends = all_ends[all_ends <= min(supply_ends[-1], demand_ends[-1])]
        i = np.searchsorted(supply_ends, all_ends, side="left")
        j = np.searchsorted(demand_ends, all_ends, side="left")
        added = fill_rows[i], fill_columns[j], np.diff(all_ends, prepend=0.0)
    starts, ends, mass = (np.concatenate(pair) for pair in zip((rows, columns, masses), added, strict=True))
    return sparse_plan(starts, ends, mass, (len(source), len(target)))


def _marginal_sums(index: Integers, masses: Floats, count: int) -> Floats:
    return np.bincount(index, masses, count).astype(np.float64, copy=False)


def _shrink_factors(sums: Floats, marginals: Floats) -> Floats:
    return np.where(sums > marginals, marginals / np.where(sums > 0, sums, 1), 1.0)


# 3. Potentials that are feasible for every pair, in exact arithmetic, from a solver's potentials.
#
# A solver's potentials have rounding errors and omit points without mass. The c-transform gives the largest potentials
# of the other side. Costs are first lowered by a small fraction of themselves, so that float errors at a pair of huge
# cost do not affect the potentials of others.

COST_REDUCTION = 8 * DUAL_ROUNDING
"""Relative reduction of costs: more than the rounding error of a distance in floats."""


def feasible_dual(cost: Cost, rows: Integers, u: Floats, source: Floats, target: Floats) -> Dual:
    """Return the certificate from potentials ``u`` of the sources ``rows``: v by c-transform, then all of u.

    Two passes over all pairs. u_i + v_j ≤ c_ij holds exactly for the c_ij that ``cost`` computes, and for distances in
    real arithmetic, which floats miss by a few roundings: rounding is monotone, so the float below the smallest
    difference is below each of them.
    """
    source_potentials = np.full(cost.matrix_shape[0], -np.inf)
    source_potentials[rows] = u - np.median(u)
    v = cost.column_potentials(source_potentials, 2 * COST_REDUCTION)
    return certify_dual(np.nextafter(cost.row_potentials(v, COST_REDUCTION), -np.inf), v, source, target)


def rounding_margin(u: Floats, v: Floats) -> float:
    """Return the rounding error of u_i + v_j − c_ij for a c-transform u of v: c_ij ≤ max u + max v at the minimum."""
    return 8 * DUAL_ROUNDING * float(np.abs(u).max() + np.abs(v).max())
