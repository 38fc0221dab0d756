"""Which integers to count for marginals, with how much noise: the convex program, its proof, and its integer noise.

Component B gets the part ρ_B of the budget μ², ρ = F θ: θ_A is the part of measurement A, and column A of F says how it
is divided among components. Every column adds up to 1, whatever is counted. The weighted variance Σ_B b_B / ρ_B is
convex in θ ≥ 0, Σ θ_A = μ² (theory §4.4; ``docs/proofs/marginals.md``).

Lower bounds: for any prices y ≥ 0 the variance is at least (Σ_B √(b_B y_B))² / (μ² max_A Σ_B F_BA y_B). Equal prices
bound every linear mechanism with Gaussian noise, since Σ_B ρ_B ≤ μ² for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy.optimize
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve_triangular

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.allocation import NoiseAllocation, allocate_noise, gaussian_guess
from tightrope.noise.families import ShapedFamily, registered_families
from tightrope.noise.marginals.workload import Columns, MarginalWorkload, Measurement, subsets
from tightrope.noise.worst_split import EIGHTHS, CompositionGroup, NoiseSpec, SplitBounds
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.rounding import ROUND_OFF

# 1. The convex program and its proof.

MOST_CHANGES = 4
"""One row changes at most this many integers of a measurement, unless another limit is given."""
LEAST_PART = 1e-3
"""First guess of a part that the closed form sets below this, relative to equal parts."""
MAX_ITERATIONS, CORRECTIONS = 500, 30
"""Iterations and memory of the search for logarithms, in one round."""
LEAST_SEARCHED = 1e-16
"""Smallest part in a search."""
SEARCH_ROUNDS, WARM_STEPS, SEARCH_GAP = 8, 60, 1e-7
"""Rounds of the search, multiplicative steps in each, and the proven relative gap of the variance at which it ends."""
DROPPED_PARTS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Smaller parts of the budget, relative to equal ones, may be dropped: the largest of these that costs little."""
DROPPING_COST = 1e-5
"""Relative increase of the weighted variance by dropping parts."""


@dataclass(frozen=True)  # not slotted: cached properties
class MeasurementPlan:
    """Measurements with their parts of μ², which add up to 1, and the prices of the components that prove them best."""

    workload: MarginalWorkload
    measurements: tuple[Measurement, ...]
    parts: tuple[float, ...]
    prices: tuple[float, ...]

    @cached_property
    def information(self) -> Floats:
        """ρ_B at μ = 1, in the order of the workload's components."""
        return np.asarray(share_matrix(self.workload, self.measurements) @ np.array(self.parts))

    @property
    def weighted_variance(self) -> float:
        """Σ_A w_A times the variance of a cell of marginal A, for Gaussian noise at μ = 1."""
        return float(np.sum(_float_costs(self.workload) / self.information))

    @property
    def gaussian_limit(self) -> float:
        """Lower bound on the weighted variance of every linear mechanism with Gaussian noise at μ = 1."""
        return variance_lower_bound(self.workload)

    @property
    def reachable_limit(self) -> float:
        """Lower bound on the weighted variance of all parts of these measurements at μ = 1."""
        proven = variance_lower_bound(self.workload, self.measurements, self.prices)
        return max(proven, self.gaussian_limit)

    @property
    def gap(self) -> float:
        """By how much the standard deviation may exceed the least one of linear mechanisms with Gaussian noise."""
        return math.sqrt(self.weighted_variance / self.gaussian_limit) - 1

    def without_small_parts(self) -> MeasurementPlan:
        """Return the plan without parts that contribute little."""
        most = self.weighted_variance * (1 + DROPPING_COST)
        for relative in DROPPED_PARTS:
            kept = [i for i, part in enumerate(self.parts) if part >= relative / len(self.parts)]
            total = math.fsum(self.parts[i] for i in kept)
            less = replace(
                self,
                measurements=tuple(self.measurements[i] for i in kept),
                parts=tuple(self.parts[i] / total for i in kept),
            )
            if np.all(less.information > 0) and less.weighted_variance <= most:
                return less
        return self

    def cell_deviation(self, columns: Columns, mu: float = 1.0) -> float:
        """Return the standard deviation of each cell of a marginal at μ."""
        workload, positions = self.workload, self.workload.component_positions
        variance = math.fsum(
            workload.dimension_of(component) ** 2 / float(self.information[positions[component]])
            for component in subsets(columns)
        )
        return math.sqrt(variance) / workload.cells_of(columns) / check_positive("mu", mu)

    def root_mean_square_deviation(self, mu: float = 1.0) -> float:
        """Return the root of the mean variance over all cells of all marginals, at μ."""
        workload = self.workload
        total = math.fsum(workload.cells_of(a) * self.cell_deviation(a, mu) ** 2 for a in workload.marginals)
        return math.sqrt(total / workload.cell_count)


def plan_measurements(workload: MarginalWorkload, *, most_changes: int = MOST_CHANGES) -> MeasurementPlan:
    """Return the measurements and the parts of the budget with the least weighted variance.

    Measurements count differences along every set of columns with which a row changes at most ``most_changes``
    integers. A larger limit brings the optimum of all linear mechanisms nearer, but needs more integers.

    >>> plan = plan_measurements(MarginalWorkload.from_orders([2, 2, 5, 8, 16, 50], [1, 2]))
    >>> round(plan.root_mean_square_deviation(), 3), plan.gap < 1e-9
    (2.702, True)
    """
    limit, costs = check_integer("most_changes", most_changes), _float_costs(workload)
    measurements = [Measurement.with_parities(workload, columns) for columns in workload.components]
    shares = share_matrix(workload, measurements)
    # F is triangular in this order. ρ_B in proportion to √b_B is best of all: if F θ = ρ has a solution θ ≥ 0, use it.
    best = np.sqrt(costs) / np.sum(np.sqrt(costs))
    parts = np.asarray(spsolve_triangular(shares, best, lower=False))
    if not np.all(parts >= 0):
        others = [measurement for parity in measurements for measurement in parity.with_more_differences(limit)]
        start = np.concatenate([np.maximum(parts, 0.0), np.zeros(len(others))]) + LEAST_PART / len(parts)
        measurements += others
        shares = share_matrix(workload, measurements)
        parts = _search_parts(shares, costs, start)
    parts /= np.sum(parts)
    prices = costs / (shares @ parts) ** 2
    plan = MeasurementPlan(
        workload, tuple(measurements), tuple(parts.tolist()), tuple((prices / np.max(prices)).tolist())
    )
    return plan.without_small_parts()


def share_matrix(workload: MarginalWorkload, measurements: Sequence[Measurement]) -> csr_array:
    """Return F, shape [components, measurements]: how the part of each measurement is divided among components."""
    rows, columns, values = [], [], []
    for position, measurement in enumerate(measurements):
        per_row = 1 / Fraction(measurement.counts_per_row)
        for component, factor in measurement.component_factors.items():
            if component in workload.component_positions:
                rows.append(workload.component_positions[component])
                columns.append(position)
                values.append(float(factor * workload.dimension_of(component) * per_row))
    return csr_array((values, (rows, columns)), shape=(len(workload.components), len(measurements)))


def _float_costs(workload: MarginalWorkload) -> Floats:
    return np.array([float(cost) for cost in workload.component_costs])


def _search_parts(shares: csr_array, costs: Floats, start: Floats) -> Floats:
    """Return the parts with the least Σ_B b_B / ρ_B: multiplicative steps, and a search for their logarithms.

    A step multiplies each part by the root of its derivative, which never increases the variance. Rounds of both go on
    until the prices of the parts prove them best, or the limit of rounds is reached.
    """
    transposed = csr_array(shares.T)

    def variance_and_worth(trial: Floats) -> tuple[float, Floats]:
        information = shares @ trial
        return float(np.sum(costs / information)), np.asarray(transposed @ (costs / information**2))

    def log_variance(logs: Floats) -> tuple[float, Floats]:
        trial = np.exp(logs) / np.sum(np.exp(logs))
        variance, worth = variance_and_worth(trial)
        return math.log(variance), trial * (1 - worth / variance)

    parts = start / np.sum(start)
    for _ in range(SEARCH_ROUNDS):
        for _ in range(WARM_STEPS):
            variance, worth = variance_and_worth(parts)
            parts = parts * np.sqrt(worth)
            parts = np.maximum(parts / np.sum(parts), LEAST_SEARCHED)
        variance, worth = variance_and_worth(parts / np.sum(parts))
        if np.max(worth) <= variance * (1 + SEARCH_GAP):
            break
        logs = np.log(parts / np.max(parts))
        bounds = [(math.log(LEAST_SEARCHED), 1.0)] * len(logs)
        found = scipy.optimize.minimize(
            log_variance,
            logs,
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": MAX_ITERATIONS, "maxcor": CORRECTIONS, "ftol": 1e-15, "gtol": 1e-10},
        )
        trial = np.exp(found.x) / np.sum(np.exp(found.x))
        if variance_and_worth(trial)[0] < variance:
            parts = trial
    return np.asarray(parts / np.sum(parts))


def variance_lower_bound(
    workload: MarginalWorkload, measurements: Sequence[Measurement] = (), prices: Sequence[float] = ()
) -> float:
    """Return a lower bound on the weighted variance at μ = 1, rounding included.

    Without measurements: of every unbiased linear mechanism with Gaussian noise. With measurements and prices ≥ 0, one
    for each component: of all divisions of the budget among these. It holds for any prices; best are b_B / ρ_B² of
    the best parts. Raises ``InputError`` for negative prices or another number of them.

    >>> variance_lower_bound(MarginalWorkload.from_orders([2], [0, 1], weights="tables")) < 1.5 + 2**0.5 < 2.915
    True
    """
    costs = _float_costs(workload)
    # Sums of positive terms, each with some ten roundings.
    margin = 1 - (len(costs) + 32) * 4 * ROUND_OFF
    if not measurements:
        return float(np.sum(np.sqrt(costs))) ** 2 * margin
    each = np.asarray(prices, dtype=np.float64)
    if each.shape != costs.shape or not np.all((each >= 0) & np.isfinite(each)) or not np.any(each > 0):
        raise InputError("prices", each.tolist(), f"{len(costs)} finite numbers >= 0, not all 0")
    most = float(np.max(share_matrix(workload, measurements).T @ each))
    return float(np.sum(np.sqrt(costs * each))) ** 2 / most * margin


# 2. Integer noise: sizes that are available, and the exact composition.

LARGEST_SIZES = (math.inf, 72.0, 36.0, 18.0, 9.0)
"""Measurements with larger sizes, in eighths after multiplication by the common factor, may be dropped."""
LOG_RANGE = 8.0
"""Logarithms of the parts are searched at most this far from those of the plan."""
LOSS_POWERS = (2.0, 1.7, 1.4, 1.1)
"""How the loss may grow as noise becomes smaller, tried in this order."""
MANY_MEASUREMENTS = 300
"""With more measurements Gaussian noise is within 1 % of the least one: other families and powers are not tried."""
LARGER_SIZE = 0.01
"""If noise for several rows is larger by more than this than that for one row in proportion, families are compared."""
HOPELESS_INCREASE = 0.02
"""If a power increases the variance by more than this, relative to the least one, smaller powers are not tried."""
ANCHORS = 60
"""How many common factors of the sizes are tried before they are rounded, over a factor of eight."""
TRIED_CHANGES = (1, 4, 16)
"""Limits on the integers of a measurement that a row changes, of which the one with the least error is chosen."""
SMALL_GAP = 1e-3
"""A plan this near to the optimum is not improved by more differences."""
MOST_INTEGERS = 4
"""Plans with more than this many times as many integers as cells are not tried."""


@dataclass(frozen=True)  # not slotted: cached properties
class MarginalNoise:
    """The integer noise of each measurement, and the exact loss of all of them together.

    ``allocation`` has one group for each measurement; its certificate and its ledger record are those of any release.
    """

    workload: MarginalWorkload
    measurements: tuple[Measurement, ...]
    allocation: NoiseAllocation
    budget: Budget

    @property
    def sizes(self) -> tuple[int, ...]:
        """The relative size of the noise of each measurement, in eighths."""
        return tuple(selected.noise_spec.eighths for (selected,) in self.allocation.selections)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss, composed from the tables that are sampled."""
        return self.allocation.loss

    @cached_property
    def tables(self) -> tuple[NoiseTable, ...]:
        """The noise of each integer of each measurement."""
        return tuple(selected.scalar_table for (selected,) in self.allocation.selections)

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The exact variance of the noise of each measurement's integers."""
        return tuple(table.exact_mean_squared for table in self.tables)

    @cached_property
    def weighted_variance(self) -> float:
        """Σ_A w_A times the variance of a cell of marginal A after least squares."""
        parts = [
            measurement.counts_per_row / float(variance)
            for measurement, variance in zip(self.measurements, self.variances, strict=True)
        ]
        information = share_matrix(self.workload, self.measurements) @ np.array(parts)
        return float(np.sum(_float_costs(self.workload) / information))


def noise_groups(
    measurements: Sequence[Measurement], sizes: Sequence[int], max_rows: int = 1
) -> list[CompositionGroup]:
    """Return the composition group of each measurement; ``sizes``: of its noise, in eighths."""
    rows = check_integer("max_rows", max_rows)
    return [
        CompositionGroup((NoiseSpec("marginal", size, whole_rows=True),), measurement_contribution(measurement, rows))
        for measurement, size in zip(measurements, sizes, strict=True)
    ]


def measurement_contribution(measurement: Measurement, rows: int) -> SplitBounds:
    """Return the contribution of a person with ``rows`` rows to the integers of a measurement.

    A row changes ``counts_per_row`` integers by one each, so all rows change them by at most that many times as much
    together, and each one by at most ``rows``: every such split is covered.
    """
    return SplitBounds(rows * measurement.counts_per_row, rows, math.prod(measurement.shape))


def round_sizes(plan: MeasurementPlan, power: float = 2.0) -> tuple[tuple[Measurement, ...], tuple[int, ...]]:
    """Return the measurements and the sizes of their noise in eighths, of the available ones with the least variance.

    Sizes s_A share the budget as if Σ t_A / s_A^power were limited, t_A the integers that a row changes: power 2 is
    right for Gaussian noise, 1 for Laplace noise. The best sizes are rounded after multiplication by each of several
    common factors, and the largest ones are dropped, if the others inform about every component.
    """
    shares, costs = share_matrix(plan.workload, plan.measurements), _float_costs(plan.workload)
    changes = np.array([float(measurement.counts_per_row) for measurement in plan.measurements])
    ideal = _sizes_for_power(plan, shares, changes, power)
    available = np.array(EIGHTHS, dtype=np.float64)
    borders = np.sqrt(available[1:] * available[:-1])
    best: tuple[float, Floats] | None = None
    for factor in np.geomspace(1.0, 8.0, ANCHORS) / np.min(ideal):
        rounded = available[np.searchsorted(borders, ideal * factor)]
        for largest in LARGEST_SIZES:
            kept = np.where(ideal * factor <= largest, rounded, math.inf)
            information = shares @ (changes / kept**2)
            if np.all(information > 0):
                variance = float(np.sum(costs / information)) * float(np.sum(changes / kept**power)) ** (2 / power)
                best = (variance, kept) if best is None or variance < best[0] else best
    assert best is not None  # noqa: S101 - with all sizes kept there is information
    used = [i for i, size in enumerate(best[1].tolist()) if math.isfinite(size)]
    return tuple(plan.measurements[i] for i in used), tuple(int(best[1][i]) for i in used)


def _sizes_for_power(plan: MeasurementPlan, shares: csr_array, changes: Floats, power: float) -> Floats:
    """Return the relative sizes with the least variance if Σ t_A / s_A^power is limited, near those of the plan."""
    transposed, costs = csr_array(shares.T), _float_costs(plan.workload)
    start = np.log(np.array(plan.parts))
    if power == 2:
        return np.asarray(np.sqrt(changes) * np.exp(-start / 2))

    def log_variance(logs: Floats) -> tuple[float, Floats]:
        parts = np.exp(logs)  # t / s²
        information = shares @ parts
        variance = float(np.sum(costs / information))
        used = changes ** (1 - power / 2) * parts ** (power / 2)
        gradient = used / np.sum(used) - parts * (transposed @ (costs / information**2)) / variance
        return math.log(variance) + 2 / power * math.log(float(np.sum(used))), gradient

    found = scipy.optimize.minimize(
        log_variance,
        start,
        jac=True,
        bounds=[(log - LOG_RANGE, log + LOG_RANGE) for log in start.tolist()],
        method="L-BFGS-B",
        options={"maxiter": MAX_ITERATIONS},
    )
    return np.asarray(np.sqrt(changes) * np.exp(-found.x / 2))


def allocate_marginal_noise(workload: MarginalWorkload, budget: Budget, *, max_rows: int = 1) -> MarginalNoise:
    """Return the least integer noise for these marginals that meets every point of the budget.

    Families of noise are compared, and how many integers of a measurement a row may change: more bring the optimum of
    Gaussian noise nearer, but fewer are better for other noise. The loss is the exact composition of what is sampled,
    with **parameters fixed in advance**; neighbors: add or remove one person with at most ``max_rows`` rows. Raises
    ``InsufficientBudgetError`` if no noise meets the budget.

    Measurements and their relative sizes are chosen for persons with one row: r rows need nearly r times their noise,
    whatever is measured, and one loss that composes every split takes seconds.

    >>> noise = allocate_marginal_noise(MarginalWorkload.from_orders([2, 3], [1, 2]), Budget(epsilon=1, delta=1e-6))
    >>> noise.loss.delta(1.0) <= 1e-6, len(noise.measurements)
    (True, 2)
    """
    best: MarginalNoise | None = None
    for most_changes in TRIED_CHANGES:
        plan = plan_measurements(workload, most_changes=most_changes)
        integers = sum(math.prod(measurement.shape) for measurement in plan.measurements)
        if best is not None and integers > MOST_INTEGERS * workload.cell_count:
            break
        found = _allocate_plan(plan, budget, max_rows)
        if best is not None and _expected_variance(found, max_rows) >= _expected_variance(best, max_rows):
            break
        best = found
        if plan.gap <= SMALL_GAP:
            break
    assert best is not None  # noqa: S101 - there are limits
    return best if max_rows == 1 else _for_several_rows(best, budget, max_rows)


def _allocate_plan(plan: MeasurementPlan, budget: Budget, max_rows: int) -> MarginalNoise:
    """Return the noise for persons with one row that promises the least error for ``max_rows``, of several powers."""
    best: tuple[float, MarginalNoise] | None = None
    is_nearly_gaussian = len(plan.measurements) > MANY_MEASUREMENTS and budget.delta > 0
    for power in LOSS_POWERS[:1] if is_nearly_gaussian else LOSS_POWERS:
        measurements, sizes = round_sizes(plan, power)
        groups = noise_groups(measurements, sizes)
        guess = gaussian_guess(groups, budget) if is_nearly_gaussian else None
        allocation = allocate_noise(groups, budget, compare=False, like=guess)
        found = MarginalNoise(plan.workload, measurements, allocation, budget)
        variance = _expected_variance(found, max_rows)
        if best is not None and variance > best[0] * (1 + HOPELESS_INCREASE):
            break
        best = (variance, found) if best is None or variance < best[0] else best
    assert best is not None  # noqa: S101 - there are powers
    return best[1]


def _expected_variance(noise: MarginalNoise, max_rows: int) -> float:
    """Return the weighted variance that noise for one row promises for several, in proportion.

    If splits of a person's rows are bounded together, only Laplace and Gaussian noise have a bound near the truth.
    """
    if not _bounds_splits(noise.measurements, noise.sizes, max_rows):
        return noise.weighted_variance
    shaped = {family.name for family in registered_families() if isinstance(family, ShapedFamily)}
    ratios = (ratio for name, ratio in noise.allocation.alternatives.items() if name not in shaped)
    return noise.weighted_variance * min(ratios, default=1.0) ** 2


def _bounds_splits(measurements: Sequence[Measurement], sizes: Sequence[int], max_rows: int) -> bool:
    """Return whether a person's rows may be split in too many ways to compose each."""
    groups = noise_groups(measurements, sizes, max_rows)
    return any(group.with_fast_bound().bounds_splits or not group.composes_every_split for group in groups)


def _for_several_rows(one_row: MarginalNoise, budget: Budget, max_rows: int) -> MarginalNoise:
    """Return the noise for persons with several rows, of the family that is best for one row if that keeps its promise.

    Other families are compared if splits are bounded together, or if noise of that family is larger than expected.
    """
    measurements, sizes, previous = one_row.measurements, one_row.sizes, one_row.allocation
    groups = noise_groups(measurements, sizes, max_rows)
    expected = previous.normalized_size * max_rows
    if math.isfinite(expected) and not _bounds_splits(measurements, sizes, max_rows):
        allocation = allocate_noise(groups, budget, compare=False, like=replace(previous, normalized_size=expected))
        if allocation.normalized_size <= expected * (1 + LARGER_SIZE):
            return replace(one_row, allocation=allocation)
    return replace(one_row, allocation=allocate_noise(groups, budget, compare=False))
