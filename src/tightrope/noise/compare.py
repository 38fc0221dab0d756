"""Comparison of all noise families and the least noise at one budget, for integer and real-valued answers."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.documents.noise import NoiseCertificate
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism, TableMechanism
from tightrope.mechanisms.discrete.integer_tables import COARSER_UNITS, largest_excess, meets_points, optimal_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.pairs import approx_dp
from tightrope.noise.calibrate import calibrate
from tightrope.noise.composed.candidates import CompositionProblem
from tightrope.noise.composed.composed_noise import best_shape
from tightrope.noise.families import NoiseFamily, RealTwin, ShapedFamily, registered_families
from tightrope.noise.family_weights import LISTED_NATS, NoiseRequirement
from tightrope.noise.least_noise import LeastNoise, least_noise
from tightrope.noise.noise_limits import NoiseLimits, noise_limits
from tightrope.noise.program.repair import estimated_levels
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_nonempty

# The cost of Gaussian noise relative to the least noise, over the plane of ε and δ (GDGK).

SCALE_TOLERANCE = 1e-9
"""Relative tolerance of the least scale."""


@dataclass(frozen=True, slots=True)
class GaussianPrice:
    """Bounds ``lower`` and ``upper`` on the ratio of the least Gaussian noise's cost to the least cost of any noise."""

    epsilon: float
    delta: float
    lower: float
    upper: float


def gaussian_price(
    *, epsilon: Sequence[float], delta: Sequence[float], cost: str = "absolute"
) -> tuple[tuple[GaussianPrice, ...], ...]:
    """A row for each δ, a price for each ε: real-valued noise of sensitivity 1, cost "absolute" or "squared".

    The scale of the Gaussian is the least one, by its exact profile, not by the classical formula. The result does not
    depend on the sensitivity. ``tr.reporting.plots.gaussian_price`` draws it. Raises ``InputError`` for empty lists and
    another cost.

    >>> ((price,),) = gaussian_price(epsilon=[1.0], delta=[1e-6], cost="squared")
    >>> 9.30 < price.lower <= price.upper < 9.32
    True
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'")
    check_nonempty("epsilon", list(epsilon), "say [0.5, 1, 2]")
    check_nonempty("delta", list(delta), "say [1e-6, 1e-9]")
    prices = []
    for d, e in itertools.product(delta, epsilon):
        budget = Budget(epsilon=e, delta=d)
        limits = noise_limits(budget, cost=cost)
        scale = calibrate(lambda size: gaussian(scale=size).loss, budget, tolerance=SCALE_TOLERANCE).parameter
        paid = scale * math.sqrt(2 / math.pi) if cost == "absolute" else scale**2
        prices.append(GaussianPrice(e, d, paid * (1 - 3 * SCALE_TOLERANCE) / limits.upper, paid / limits.lower))
    width = len(epsilon)
    return tuple(tuple(prices[i : i + width]) for i in range(0, len(prices), width))


# The frontier between privacy and error: for each promise the least error of any noise, and noise that has it.

MOST_PROMISES = 10_000
"""Maximal number of guarantees of one frontier."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One guarantee: requested and realized, the noise's expected cost, and a proven lower bound on any noise's cost.

    ``epsilon`` is the requested ε at ``delta``, 0 if not requested.

    ``relative_error`` is the cost per person where the number of people was given: for a count of all of them and cost
    "absolute", the relative error.
    """

    epsilon: float
    delta: float
    asked_total_variation: float | None
    people: int | None
    total_variation: float
    cost: float
    limit: float

    @property
    def relative_error(self) -> float | None:
        """Cost over people."""
        return None if self.people is None else self.cost / self.people

    def to_data(self) -> dict[str, Any]:
        """Plain data, one row of a table."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "asked_total_variation": self.asked_total_variation,
            "total_variation": self.total_variation,
            "people": self.people,
            "cost": self.cost,
            "limit": self.limit,
            "relative_error": self.relative_error,
        }


@dataclass(frozen=True, slots=True)
class Frontier:
    """All points, in the order of the budgets, then of the people; ``cost_name`` describes ``cost``."""

    points: tuple[FrontierPoint, ...]
    cost_name: str
    sensitivity: int
    releases: int

    def to_data(self) -> list[dict[str, Any]]:
        """A list of rows: ``pandas.DataFrame(found.to_data())``."""
        return [point.to_data() for point in self.points]


def frontier(
    budgets: Sequence[Budget],
    *,
    people: int | Sequence[int] | None = None,
    sensitivity: int = 1,
    cost: str | Callable[[float], float] = "absolute",
    releases: int = 1,
) -> Frontier:
    """Return the least noise and the proven limit for every budget, with every number of people.

    ``cost`` of a point is an upper end, computed from a table that can be sampled; ``limit`` a lower bound for
    every integer noise (theory §4). Neighbors: as defined by the sensitivity. ``tr.reporting.plots.frontier`` draws it.
    Raises ``InputError`` for invalid arguments and for more than 10 000 combinations.

    >>> found = frontier([Budget(epsilon=epsilon, delta=1e-6) for epsilon in (0.5, 1, 2)], people=1000)
    >>> [round(point.cost, 3) for point in found.points], all(p.limit <= p.cost for p in found.points)
    ([1.919, 0.851, 0.276], True)
    """
    asked, crowds = list(budgets), list[int | None]([None])
    if people is not None:
        numbers = list(people) if isinstance(people, Sequence) else [people]
        check_nonempty("people", numbers, "give at least one number")
        crowds = [check_integer("people", number) for number in numbers]
    check_nonempty("budgets", asked, "say [Budget(epsilon=1, delta=1e-6)]")
    if not len(asked) * len(crowds) <= MOST_PROMISES:
        count = len(asked) * len(crowds)
        raise InputError("budgets", count, f"at most {MOST_PROMISES} combinations", "draw fewer lines at once")
    found: list[FrontierPoint] = []
    for budget in asked:
        proven = least_noise(budget, sensitivity=sensitivity, cost=cost, releases=releases).certificate
        epsilon, eta = budget.epsilon, budget.total_variation
        found += [
            FrontierPoint(
                epsilon=0.0 if epsilon is None else float(epsilon),
                delta=float(budget.delta),
                asked_total_variation=None if eta is None else float(eta),
                people=crowd,
                total_variation=proven.guarantee.total_variation,
                cost=proven.upper,
                limit=proven.lower,
            )
            for crowd in crowds
        ]
    name = cost if isinstance(cost, str) else getattr(cost, "__name__", "cost")
    return Frontier(tuple(found), name, sensitivity, releases)


# The least noise of each family under one budget, for one answer: bisected, and ending on the private side.

SIZE_WITHIN = 1e-6
"""Relative tolerance of the least size."""
MOST_HALVINGS = 120
"""Maximal number of halvings: searches end long before."""
USUAL_DOUBLINGS = 8
"""Doublings tried in any case: most guesses are off by less."""
HELPS = 0.75
"""Each later doubling must reduce the excess to at most this fraction: 128-bit tables cannot meet tiny δ."""
CLOSED_FORM = "least noise (closed form)"
Points = Sequence[tuple[float, float]]
Build = Callable[[float], IntegerMechanism]


@dataclass(frozen=True, slots=True)
class CalibratedFamily:
    """A family at one budget: its noise, or the reason why it has no noise."""

    family_name: str
    mechanism: IntegerMechanism | None
    failure_reason: str = ""


def calibrate_families(budget: Budget, *, sensitivity: int = 1) -> list[CalibratedFamily]:
    """Return every family of integer noise at its least size for one answer that changes by ``sensitivity``.

    All points of the budget hold for the integer table that is sampled, rounding included, at every shift up to the
    sensitivity. Sensitivity 1 adds the closed form, optimal among integer noise (theory §4.1).
    Neighbors: as defined by the sensitivity. Raises ``InputError`` unless it is an integer ≥ 1.

    >>> [found.family_name for found in calibrate_families(Budget(epsilon=1, delta=0)) if found.mechanism]
    ['least noise (closed form)', 'discrete Laplace', 'discrete staircase']
    """
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    points = PrivacyTarget.from_budget(budget).points
    closed = [_try_calibration(CLOSED_FORM, lambda: TableMechanism(optimal_table(points)))] if sensitivity == 1 else []
    pure = min(delta for _, delta in points) == 0
    found = [
        _try_calibration(family.name, partial(_calibrated_noise, family, points, sensitivity))
        for family in registered_families()
        if not (pure and family.has_bound)
    ]
    missing = [
        CalibratedFamily(family.name, None, "needs delta > 0")
        for family in registered_families()
        if pure and family.has_bound
    ]
    return [*closed, *found, *missing]


def least_sufficient_noise(build: Build, points: Points, guess: float) -> IntegerMechanism:
    """Return the noise ``build(size)`` of the least size that meets every (ε, δ): larger sizes must be more private.

    Searched from ``guess`` by doubling, then bisected to ``SIZE_WITHIN``; the end that was shown to meet the points is
    returned. Sizes outside what ``build`` accepts raise its ``InputError``; ``InsufficientBudgetError`` if all
    sizes fail.
    """
    # The first of guess, 2 guess, 4 guess, … that meets the points; `InputError` of `build` ends it.
    size, before = guess, math.inf
    for doublings in count():
        noise = build(size)
        left = largest_excess(noise.table.atoms_for_shift(noise.sensitivity), points)
        if left <= 0:
            break
        if doublings >= USUAL_DOUBLINGS and not left <= HELPS * before:
            raise InsufficientBudgetError(f"no size of this noise keeps {list(points)}; raise epsilon or delta")
        size, before = 2 * size, left
    high = size
    low, best = high / 2, build(high)
    for _ in range(MOST_HALVINGS):
        smaller = _noise_within_budget(build, points, low)
        if smaller is None:
            break
        low, high, best = low / 2, low, smaller
    while high > low * (1 + SIZE_WITHIN):
        middle = math.sqrt(low * high)
        found = _noise_within_budget(build, points, middle)
        low, high, best = (middle, high, best) if found is None else (low, middle, found)
    return best


def _noise_within_budget(build: Build, points: Points, size: float) -> IntegerMechanism | None:
    """The noise of this size if it meets the points; sizes too small to build do not."""
    try:
        noise = build(size)
    except InputError:
        return None
    return noise if table_keeps_points(noise, points) else None


def table_keeps_points(noise: IntegerMechanism, points: Points) -> bool:
    """Return whether the sampled table meets every point, rounding included."""
    return meets_points(noise.table.atoms_for_shift(noise.sensitivity), points)


def _try_calibration(name: str, search: Callable[[], IntegerMechanism]) -> CalibratedFamily:
    try:
        return CalibratedFamily(name, search())
    except (InputError, InsufficientBudgetError) as error:
        return CalibratedFamily(name, None, str(error))


def _calibrated_noise(family: NoiseFamily, points: Points, sensitivity: int) -> IntegerMechanism:
    """The family's noise of the least size for one answer; of several shapes the one with the least E|X|."""
    if not isinstance(family, ShapedFamily):
        # From the most demanding single point; a total variation is treated as about its ε.
        need = NoiseRequirement(sensitivity, (1,), min(delta for _, delta in points))
        guess = max(family.guess_size(epsilon or delta, need) for epsilon, delta in points)
        return least_sufficient_noise(lambda size: family.make_noise(size, need), points, guess)
    # Shape and scale in floats; the scale then grows until the table meets the points.
    shape, found = best_shape(
        CompositionProblem(tuple(points), 1, sensitivity, ErrorCost.from_argument("absolute")), family
    )
    law = family.with_shape(shape)

    def build_shaped_noise(scale: float) -> IntegerMechanism:
        return TableMechanism(NoiseTable.from_probabilities(law.listed_weights(scale, LISTED_NATS)), sensitivity)

    size, further = found.size, SIZE_WITHIN
    while not table_keeps_points(build_shaped_noise(size), points):
        size, further = size * (1 + further), 2 * further
    return build_shaped_noise(size)


MOST_COMPARED_CELLS = 1 << 15
"""Each family needs tens of tables: for wider ones the search takes minutes."""


@dataclass(frozen=True, slots=True)
class FamilyComparison:
    """Integer noise of every family and the least one with its certificate; real-valued distributions and their limits.

    ``certificate.lower`` is proven for every integer noise, ``limits.lower`` for every real-valued one.
    """

    integer_families: tuple[CalibratedFamily, ...]
    certificate: NoiseCertificate
    real_mechanisms: tuple[tuple[str, Mechanism], ...]
    limits: NoiseLimits
    cost_name: str

    def expected_cost(self, noise: Mechanism) -> float:
        """E|X| or E X²."""
        return noise.mean_absolute_error if self.cost_name == "absolute" else noise.mean_squared_error


def compare(budget: Budget, *, sensitivity: int = 1, cost: str = "absolute") -> FamilyComparison:
    """Compare all families at a budget for one answer, with proven bounds; ``cost`` is "absolute" or "squared".

    Integer noise is given by the tables that would be sampled, rounding included. Real-valued noise is for comparison
    only, without a sampler. Neighbors: as defined by the sensitivity. Raises ``InputError`` for another cost, and if
    the noise would be so wide that families take minutes.

    >>> found = compare(Budget(epsilon=1, delta=1e-6))
    >>> found.integer_families[0].family_name, round(found.certificate.upper / found.certificate.lower, 9)
    ('least noise (closed form)', 1.0)
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'", "least_noise takes any non-decreasing function")
    points = PrivacyTarget.from_budget(budget).points
    width = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    widest = max((estimated_levels(*point) for point in points if point[1] > 0), default=0.0)
    if not widest * width <= MOST_COMPARED_CELLS:
        raise InputError(
            "epsilon", points[-1][0], f"enough for noise of {MOST_COMPARED_CELLS} cells a side", COARSER_UNITS
        )
    least = least_noise(budget, sensitivity=sensitivity, cost=cost)
    laws = list(calibrate_families(budget, sensitivity=sensitivity))
    if sensitivity > 1 and isinstance(least, LeastNoise):
        laws.insert(0, CalibratedFamily("least noise (program)", TableMechanism(least.table, sensitivity)))
    return FamilyComparison(
        tuple(laws),
        least.certificate,
        tuple(_real_twins(budget, points, sensitivity)),
        noise_limits(budget, sensitivity=sensitivity, cost=cost),
        cost,
    )


def _real_twins(budget: Budget, points: Points, sensitivity: int) -> list[tuple[str, Mechanism]]:
    """Return the families' real-valued counterparts at their least size."""
    delta = min(delta for _, delta in points)
    twins = [
        family.real_twin for family in registered_families() if family.real_twin and (delta > 0 or not family.has_bound)
    ]
    found = []
    for twin in twins:

        def make_twin(size: float, twin: RealTwin = twin) -> Mechanism:
            return twin.make_mechanism(size, sensitivity, delta)

        try:
            size = calibrate(lambda size, make=make_twin: make(size).loss, budget, smallest=sensitivity / 500).parameter  # type: ignore[misc]
        except (InputError, InsufficientBudgetError):
            continue
        found.append((twin.name, make_twin(size)))
    return found


# Ways to account for many equal steps, side by side: the comparison of GI Fig. 5, each way at its best.
#
# Kairouz–Oh–Viswanath one (ε, δ) of a step, composed exactly GI Theorem 2 one (ε, δ, η) of a step, composed exactly
# moments accountant Rényi divergences at every real order, with the optimal conversion Gaussian limit the central
# limit theorem: approximate, **not a bound** exact the loss itself
#
# Each of the bounds holds for every triple, or order: the searches only make it tight.

DELTA_SHARES = np.log(10) * np.array(
    [-0.3, -1, -2, -3, -4, -5, -6, -7, -8, -10, -12, -16, -22, -30, -50, -80, -140, -250]
)
"""Logs of the total δ spent through the δ of each step: the initial grid of the search for the best triple."""
MOST_TRIPLE_STEPS = 200_000
"""The recurrence for a triple takes a second for this many steps."""
HUGE = 1e9
"""Stand-in for infinity in a search: more than any ε."""
CELL = 2e-5
"""Width of the cells of a distribution without known moments; the error of K is of second order in it."""
CONVERSION_ROUNDING = 1e-12
"""Relative rounding of a sum of moments and of its conversion, with a large margin."""
MOMENT_ROUNDING = 1e-14
"""Absolute rounding of log Σ m e^{zl} of a distribution without known moments."""
LOWEST, HIGHEST = -20.0, 12.0
"""Range of log z."""


class AccountingMethod(ABC):
    """A method that bounds a composed loss."""

    name: str
    statement = "upper bound"

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return the ε proven at δ; ∞ without a proof."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the δ proven at ε ≥ 0."""

    def total_variation(self) -> float:
        """Return the proven total variation: δ at ε = 0."""
        return self.delta(0.0)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One line of the comparison; ``statement`` says whether it is a bound."""

    name: str
    statement: str
    epsilon: float
    total_variation: float


def accounting_methods(step: PrivacyLoss, count: int) -> tuple[AccountingMethod, ...]:
    """Compare the five methods, loosest first, exact last. Raises ``InputError`` unless ``count`` is an integer ≥ 1.

    >>> step = gaussian(scale=10).loss
    >>> [way.name for way in accounting_methods(step, 100)][::4]
    ['Kairouz-Oh-Viswanath', 'exact']
    """
    count = check_integer("count", count)
    loss = count * step
    triples: tuple[AccountingMethod, ...] = (
        TripleMethod(step, count, uses_total_variation=False),
        TripleMethod(step, count, uses_total_variation=True),
    )
    return (
        *(triples if count <= MOST_TRIPLE_STEPS else ()),
        MomentsMethod(loss),
        GaussianLimitMethod(loss),
        ExactMethod(loss),
    )


def compare_methods(ways: tuple[AccountingMethod, ...], delta: float) -> tuple[MethodResult, ...]:
    """ε at δ, and the total variation, by every way.

    >>> rows = compare_methods(accounting_methods(gaussian(scale=10).loss, 100), 1e-5)
    >>> [round(row.epsilon, 2) for row in rows]
    [28.46, 10.07, 4.73, 4.38, 4.38]
    """
    if not 0 < delta < 1:
        raise InputError("delta", delta, "a number in (0, 1)", "no way but the exact one proves anything at 0")
    return tuple(MethodResult(way.name, way.statement, way.epsilon(delta), way.total_variation()) for way in ways)


@dataclass(frozen=True, slots=True)
class ExactMethod(AccountingMethod):
    """The loss itself: the upper ends of its brackets."""

    loss: PrivacyLoss
    name = "exact"
    statement = "upper bound, tight"

    def epsilon(self, delta: float) -> float:
        return self.loss.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self.loss.delta(epsilon)


@dataclass(frozen=True, slots=True)
class GaussianLimitMethod(AccountingMethod):
    """G_μ with the μ of the central limit theorem (GI Thm 3); for finitely many steps it may err on either side."""

    loss: PrivacyLoss
    name = "Gaussian limit"
    statement = "approximate, not a bound"

    @property
    def _gaussian_limit(self) -> PrivacyLoss:
        return gaussian(scale=1 / self.loss.gaussian_limit().mu).loss

    def epsilon(self, delta: float) -> float:
        return self._gaussian_limit.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self._gaussian_limit.delta(epsilon)


@dataclass(frozen=True, slots=True)
class TripleMethod(AccountingMethod):
    """Exact composition of (ε₁, δ₁) of one step, with its total variation if it is ``known`` (GI Thm 2).

    The best ε₁ for each query, by a grid over the δ that the steps lose through δ₁ and a search around its best.
    """

    step: PrivacyLoss
    count: int
    uses_total_variation: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        """Without the total variation it is the theorem of Kairouz, Oh and Viswanath."""
        return "GI Theorem 2" if self.uses_total_variation else "Kairouz-Oh-Viswanath"

    def epsilon(self, delta: float) -> float:
        return self._best_triple_value(lambda loss: loss.epsilon(delta), math.log(delta))

    def delta(self, epsilon: float) -> float:
        return self._best_triple_value(lambda loss: loss.delta(epsilon), 0.0)

    def _best_triple_value(self, answer: Callable[[PrivacyLoss], float], top: float) -> float:
        """Return the best bound over all triples whose steps lose at most e^top through their δ."""

        def value_at_share(share: float) -> float:
            return answer(_composed_triple(self.step, self.count, share, self.uses_total_variation))

        grid = [
            float(share) for share in np.unique([*(top + np.log([0.2, 0.5, 0.9])), *DELTA_SHARES[top > DELTA_SHARES]])
        ]
        found = [value_at_share(share) for share in grid]
        best = int(np.argmin(found))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        refined = scipy.optimize.minimize_scalar(
            lambda share: min(value_at_share(share), HUGE),
            bounds=(low, high),
            method="bounded",
            options={"maxiter": 12},
        )
        return min(found[best], float(refined.fun)) if math.isfinite(found[best]) else found[best]


@lru_cache(maxsize=256)
def _composed_triple(step: PrivacyLoss, count: int, share: float, known: bool) -> PrivacyLoss:
    """``count`` copies of the triple of a step whose δ is e^share / count."""
    epsilon = step.epsilon(min(math.exp(share) / count, 0.999))
    if math.isinf(epsilon):
        return approx_dp(0.0, delta=1.0).loss
    eta = step.total_variation() if known else None
    return count * approx_dp(epsilon, delta=step.delta(epsilon), total_variation=eta).loss


@dataclass(frozen=True, slots=True)
class MomentsMethod(AccountingMethod):
    """Rényi divergences K(z)/z of order 1 + z, at every z > 0, and δ ≤ δ_∞ + e^{K(z) − zε} z^z/(1+z)^{1+z} (theory §2).

    The conversion is the best one from one moment; the moments accountant of Abadi et al. lacks its last factor.
    """

    loss: PrivacyLoss
    name = "moments accountant"

    def epsilon(self, delta: float) -> float:
        left = delta - self.loss.infinite_mass
        return max(self._proven_epsilon(side, left) for side in self._distinct_directions()) if left > 0 else math.inf

    def delta(self, epsilon: float) -> float:
        log = max(self._log_delta(side, epsilon) for side in self._distinct_directions())
        return min(1.0, self.loss.infinite_mass + math.exp(min(0.0, log)) * (1 + CONVERSION_ROUNDING))

    def _distinct_directions(self) -> tuple[Composition, ...]:
        same = self.loss.remove.laws == self.loss.add.laws and self.loss.remove.counts == self.loss.add.counts
        return (self.loss.remove,) if same else (self.loss.remove, self.loss.add)

    @staticmethod
    def _log_delta(side: Composition, epsilon: float) -> float:
        return _least_over_orders(lambda z: _log_moment_bound(side, z) - z * epsilon + _log_conversion(z))

    @staticmethod
    def _proven_epsilon(side: Composition, delta: float) -> float:
        least = _least_over_orders(lambda z: (_log_moment_bound(side, z) + _log_conversion(z) - math.log(delta)) / z)
        return max(0.0, least * (1 + CONVERSION_ROUNDING))


def _log_conversion(z: float) -> float:
    """Log z^z/(1+z)^{1+z}."""
    return -z * math.log1p(1 / z) - math.log1p(z)


def _log_moment_bound(total: Composition, z: float) -> float:
    """Upper bound on K(z) at real z > 0."""
    at, parts = np.array([complex(z)]), []
    for law, copies in zip(total.laws, total.counts, strict=True):
        known = law.log_moment(at)
        if known is None:
            moment = _log_sum(*_dominating_atoms(law), z, law.infinite_mass)
        else:
            moment = float(known[0].real + law.moment_error(at, known)[0])
        parts.append(copies * moment)
    return math.fsum(parts) * (1 + CONVERSION_ROUNDING)


@lru_cache(maxsize=8)
def _dominating_atoms(law: LossDistribution) -> tuple[Floats, Floats]:
    """Losses and masses of atoms whose every moment is at least the distribution's: M is a mixture of hockey-sticks."""
    cells = law.loss_cells(CELL)
    losses, masses = cells.dominating_atoms()
    return losses[masses > 0] + law.rounding_bound, masses[masses > 0]


def _log_sum(losses: Floats, masses: Floats, z: float, infinite: float) -> float:
    """Log Σ m e^{zl}: near one as 1 − δ_∞ + Σ m (e^{zl} − 1), far from it with the peak pulled out."""
    if z * float(np.max(np.abs(losses))) < 300:
        return math.log1p(math.fsum(masses * np.expm1(z * losses)) - infinite) + MOMENT_ROUNDING
    return float(special.logsumexp(z * losses + np.log(masses))) + MOMENT_ROUNDING


def _least_over_orders(height: Callable[[float], float]) -> float:
    """Return the minimum of a function of z > 0 that falls and then rises; any z is valid, but less tight."""

    def height_at(place: float) -> float:
        return height(math.exp(place))

    low, here, high = 0.0, math.log(8.0), math.log(64.0)
    below, value, above = height_at(low), height_at(here), height_at(high)
    while below < value and low > LOWEST:
        low, here, high, below, value, above = low - 2, low, here, height_at(low - 2), below, value
    while above < value and high < HIGHEST:
        low, here, high, value, above = here, high, high + 1, above, height_at(high + 1)
    found = scipy.optimize.minimize_scalar(height_at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return min(value, below, above, float(found.fun))
