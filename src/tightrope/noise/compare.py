"""Noise compared at given budgets, in four parts.

1. The error of Gaussian noise relative to that of the best noise, over the plane of ε and δ (``gaussian_price``).
2. The least error of any integer noise for each budget, with a proven lower bound (``frontier``).
3. The least noise of each integer family for one budget (``calibrate_families``).
4. All families and the best noise at one budget, for integer and for real-valued answers (``compare``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tightrope.documents.budget import Budget
from tightrope.documents.noise import NoiseCertificate
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism, TableMechanism
from tightrope.mechanisms.discrete.integer_tables import (
    COARSER_UNITS,
    largest_delta_excess,
    optimal_table,
    table_meets_points,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.noise.calibrate import calibrate
from tightrope.noise.composed.candidates import CompositionProblem
from tightrope.noise.composed.composed_noise import best_composed_shape
from tightrope.noise.families import NoiseFamily, RealTwin, ShapedFamily, registered_families
from tightrope.noise.family_weights import LISTED_NATS, NoiseRequirement
from tightrope.noise.least_noise import LeastNoise, least_noise
from tightrope.noise.noise_limits import NoiseLimits, noise_limits
from tightrope.noise.program.repair import estimated_levels
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.numerics.checks import check_integer, check_nonempty
from tightrope.numerics.root_finding import bisect_real, bracket_by_doubling

# 1. The error of Gaussian noise relative to that of the best noise, over the plane of ε and δ (GDGK).

SCALE_TOLERANCE = 1e-9
"""Relative tolerance of the least scale: the one that is found is at most this much too large."""


@dataclass(frozen=True, slots=True)
class GaussianPrice:
    """Bounds on the ratio of two expected costs at one (ε, δ): of the best Gaussian and of the best noise."""

    epsilon: float
    delta: float
    lower: float
    upper: float


def gaussian_price(
    *, epsilon: Sequence[float], delta: Sequence[float], cost: str = "absolute"
) -> tuple[tuple[GaussianPrice, ...], ...]:
    """Return, for each δ (rows) and ε (columns), how much more the best Gaussian costs than the best real-valued noise.

    ``cost`` is "absolute" (E|X|) or "squared" (E X²). The scale of the Gaussian is the least one, by its exact profile,
    not by the classical formula. The ratio does not depend on the sensitivity. ``tr.reporting.plots.gaussian_price``
    draws it. Raises ``InputError`` for empty lists and another ``cost``.

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
        gaussian_cost = scale * math.sqrt(2 / math.pi) if cost == "absolute" else scale**2
        # The scale is at most SCALE_TOLERANCE too large; 3 covers the square and rounding.
        prices.append(
            GaussianPrice(e, d, gaussian_cost * (1 - 3 * SCALE_TOLERANCE) / limits.upper, gaussian_cost / limits.lower)
        )
    width = len(epsilon)
    return tuple(tuple(prices[i : i + width]) for i in range(0, len(prices), width))


# 2. The frontier between privacy and error: for each budget a lower bound on any noise's error, and the best noise.

MAX_FRONTIER_POINTS = 10_000
"""Maximal number of points of one frontier: budgets times numbers of people."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The best noise for one budget: its expected ``cost``, and ``limit``, a lower bound on the cost of any noise.

    ``epsilon`` is the requested ε at ``delta``, 0 if none was requested; ``asked_total_variation`` the requested total
    variation, ``total_variation`` that of the noise.
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
        """``cost / people``, for a count of all people and cost "absolute" the relative error; None without people."""
        return None if self.people is None else self.cost / self.people

    def to_data(self) -> dict[str, Any]:
        """Return the point as plain data: one row of a table."""
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
    """All points, sorted as the budgets, then as the numbers of people; ``cost_name`` describes their ``cost``."""

    points: tuple[FrontierPoint, ...]
    cost_name: str
    sensitivity: int
    releases: int

    def to_data(self) -> list[dict[str, Any]]:
        """Return the points as a list of rows, for ``pandas.DataFrame(found.to_data())``."""
        return [point.to_data() for point in self.points]


def frontier(
    budgets: Sequence[Budget],
    *,
    people: int | Sequence[int] | None = None,
    sensitivity: int = 1,
    cost: str | Callable[[float], float] = "absolute",
    releases: int = 1,
) -> Frontier:
    """Return the cost of the best integer noise, with a lower bound, for every budget and every number of people.

    - ``people``: one or several numbers of people, for the relative error of a count.
    - ``sensitivity``: the largest difference of one answer between neighbors.
    - ``cost``: "absolute" (E|X|), "squared" (E X²) or a non-decreasing function of |X|.
    - ``releases``: the number of answers that the budget is for; costs are those of one answer.

    ``cost`` of a point is an upper bound, computed from a table that can be sampled; ``limit`` is a lower bound for
    every integer noise (theory §4). Two datasets are neighbors if the answer differs by at most
    ``sensitivity``. ``tr.reporting.plots.frontier`` draws the result.
    Raises ``InputError`` for invalid arguments and for more than 10 000 combinations.

    >>> found = frontier([Budget(epsilon=epsilon, delta=1e-6) for epsilon in (0.5, 1, 2)], people=1000)
    >>> [round(point.cost, 3) for point in found.points], all(p.limit <= p.cost for p in found.points)
    ([1.919, 0.851, 0.276], True)
    """
    budgets, people_counts = list(budgets), list[int | None]([None])
    if people is not None:
        numbers = list(people) if isinstance(people, Sequence) else [people]
        check_nonempty("people", numbers, "give at least one number")
        people_counts = [check_integer("people", number) for number in numbers]
    check_nonempty("budgets", budgets, "say [Budget(epsilon=1, delta=1e-6)]")
    point_count = len(budgets) * len(people_counts)
    if not point_count <= MAX_FRONTIER_POINTS:
        remedy = "pass fewer budgets or fewer numbers of people"
        raise InputError("budgets", point_count, f"at most {MAX_FRONTIER_POINTS} combinations", remedy)
    points: list[FrontierPoint] = []
    for budget in budgets:
        certificate = least_noise(budget, sensitivity=sensitivity, cost=cost, releases=releases).certificate
        epsilon, eta = budget.epsilon, budget.total_variation
        points += [
            FrontierPoint(
                epsilon=0.0 if epsilon is None else float(epsilon),
                delta=float(budget.delta),
                asked_total_variation=None if eta is None else float(eta),
                people=people_count,
                total_variation=certificate.guarantee.total_variation,
                cost=certificate.upper,
                limit=certificate.lower,
            )
            for people_count in people_counts
        ]
    name = cost if isinstance(cost, str) else getattr(cost, "__name__", "cost")
    return Frontier(tuple(points), name, sensitivity, releases)


# 3. The least noise of each integer family for one budget and one answer; searches end on the private side.

COMPARED_SIZE_TOLERANCE = 1e-6
"""Relative tolerance of the least size."""
SMALLEST_SIZE_FRACTION = 2.0**-120
"""Fraction of the first size that meets the points, to which it is halved at most: searches end long before."""
FREE_DOUBLINGS = 8
"""Doublings of the guess that need not show progress: most guesses are off by less."""
REQUIRED_PROGRESS = 0.75
"""Each later doubling must reduce the excess of δ to at most this fraction: 128-bit tables cannot meet tiny δ."""
CLOSED_FORM_NAME = "least noise (closed form)"
PrivacyPoints = Sequence[tuple[float, float]]
MechanismBuilder = Callable[[float], IntegerMechanism]


@dataclass(frozen=True, slots=True)
class CalibratedFamily:
    """A family's least noise for one budget, or the reason why it cannot meet the budget."""

    family_name: str
    mechanism: IntegerMechanism | None
    failure_reason: str = ""


def calibrate_families(budget: Budget, *, sensitivity: int = 1) -> list[CalibratedFamily]:
    """Return every family of integer noise at its least size for one answer that changes by up to ``sensitivity``.

    All points of the budget hold for the integer table that is sampled, rounding included, at every shift up to
    ``sensitivity``. For ``sensitivity=1`` the closed form, which is optimal among integer noise, comes first
    (theory §4.1). Two datasets are neighbors if the answer differs by at most ``sensitivity``.
    Raises ``InputError`` unless ``sensitivity`` is an integer ≥ 1.

    >>> [found.family_name for found in calibrate_families(Budget(epsilon=1, delta=0)) if found.mechanism]
    ['least noise (closed form)', 'discrete Laplace', 'discrete staircase']
    """
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    points = PrivacyTarget.from_budget(budget).points
    closed_form = []
    if sensitivity == 1:
        closed_form.append(_try_calibration(CLOSED_FORM_NAME, lambda: TableMechanism(optimal_table(points))))
    is_pure = min(delta for _, delta in points) == 0
    calibrated = [
        _try_calibration(family.name, partial(_calibrate_family, family, points, sensitivity))
        for family in registered_families()
        if not (is_pure and family.has_bound)
    ]
    impossible = [
        CalibratedFamily(family.name, None, "needs delta > 0")
        for family in registered_families()
        if is_pure and family.has_bound
    ]
    return [*closed_form, *calibrated, *impossible]


def find_least_noise(build: MechanismBuilder, points: PrivacyPoints, guess: float) -> IntegerMechanism:
    """Return the noise ``build(size)`` of the least size that meets every (ε, δ): larger sizes must be more private.

    The size is doubled from ``guess`` until it meets the points, then bisected to ``COMPARED_SIZE_TOLERANCE``; the
    returned size was shown to meet the points. While doubling, an ``InputError`` of ``build`` is raised; while
    bisecting, a size that ``build`` rejects counts as too small. Raises ``InsufficientBudgetError`` if doubling does
    not help.
    """
    size, previous_excess = guess, math.inf
    for doublings in itertools.count():
        noise = build(size)
        excess = largest_delta_excess(noise.table.atoms_for_shift(noise.sensitivity), points)
        if excess <= 0:
            break
        if doublings >= FREE_DOUBLINGS and not excess <= REQUIRED_PROGRESS * previous_excess:
            budget_text = " and ".join(f"epsilon {epsilon:g} at delta {delta:g}" for epsilon, delta in points)
            raise InsufficientBudgetError(f"no size of this noise meets {budget_text}; use a larger epsilon or delta")
        size, previous_excess = 2 * size, excess

    def is_too_small(size: float) -> bool:
        try:
            return not meets_privacy_points(build(size), points)
        except InputError:
            return True

    # Sufficient sizes fail here, and are halved until one is too small.
    bracket = bracket_by_doubling(is_too_small, size, size / 2, limit=size * SMALLEST_SIZE_FRACTION, factor=0.5)
    if bracket is None:
        return build(size * SMALLEST_SIZE_FRACTION)
    return build(bisect_real(is_too_small, *bracket, side="fails", relative=COMPARED_SIZE_TOLERANCE, geometric=True))


def meets_privacy_points(noise: IntegerMechanism, points: PrivacyPoints) -> bool:
    """Return whether the sampled table meets every point, rounding included."""
    return table_meets_points(noise.table.atoms_for_shift(noise.sensitivity), points)


def _try_calibration(name: str, search: Callable[[], IntegerMechanism]) -> CalibratedFamily:
    """Return the noise that ``search`` finds, or the text of its error as the reason."""
    try:
        return CalibratedFamily(name, search())
    except (InputError, InsufficientBudgetError) as error:
        return CalibratedFamily(name, None, str(error))


def _calibrate_family(family: NoiseFamily, points: PrivacyPoints, sensitivity: int) -> IntegerMechanism:
    """Return the family's noise of the least size for one answer; of several shapes the one with the least E|X|."""
    if not isinstance(family, ShapedFamily):
        # Start from the largest size that a single point needs; a total variation, (0, η), is treated as (η, δ).
        least_delta = min(delta for _, delta in points)
        need = NoiseRequirement(shift=sensitivity, part_rows=(1,), infinite_mass=least_delta)
        guess = max(family.guess_size(epsilon or delta, need) for epsilon, delta in points)
        return find_least_noise(lambda size: family.make_noise(size, need), points, guess)
    # Shape and scale are searched in floats; the scale then grows until the table meets the points.
    shape, candidate = best_composed_shape(
        CompositionProblem(tuple(points), 1, sensitivity, ErrorCost.from_argument("absolute")), family
    )
    shaped_family = family.with_shape(shape)

    def build_shaped_noise(scale: float) -> IntegerMechanism:
        return TableMechanism(
            NoiseTable.from_probabilities(shaped_family.listed_weights(scale, LISTED_NATS)), sensitivity
        )

    size, relative_step = candidate.size, COMPARED_SIZE_TOLERANCE
    while not meets_privacy_points(build_shaped_noise(size), points):
        size, relative_step = size * (1 + relative_step), 2 * relative_step
    return build_shaped_noise(size)


# 4. All families and the best noise at one budget.

MAX_COMPARED_WIDTH = 1 << 15
"""Widest noise that is compared, in cells on each side: each family builds tens of tables, which then takes minutes."""


@dataclass(frozen=True, slots=True)
class FamilyComparison:
    """Every integer family's least noise with a certificate of the best one; real-valued noise with bounds on the best.

    ``certificate.lower`` is proven for every integer noise, ``limits.lower`` for every real-valued one.
    """

    integer_families: tuple[CalibratedFamily, ...]
    certificate: NoiseCertificate
    real_mechanisms: tuple[tuple[str, Mechanism], ...]
    limits: NoiseLimits
    cost_name: str

    def expected_cost(self, noise: Mechanism) -> float:
        """Return the compared cost of this noise: E|X| or E X²."""
        return noise.mean_absolute_error if self.cost_name == "absolute" else noise.mean_squared_error


def compare(budget: Budget, *, sensitivity: int = 1, cost: str = "absolute") -> FamilyComparison:
    """Compare all families at a budget for one answer, with proven bounds; ``cost`` is "absolute" or "squared".

    Integer noise is given by the tables that would be sampled, rounding included. Real-valued noise is for comparison
    only, without a sampler. Two datasets are neighbors if the answer differs by at most ``sensitivity``. Raises
    ``InputError`` for another ``cost``, and if the noise would extend over more than 32 768 values on each side,
    since the search would take minutes.

    >>> found = compare(Budget(epsilon=1, delta=1e-6))
    >>> found.integer_families[0].family_name, round(found.certificate.upper / found.certificate.lower, 9)
    ('least noise (closed form)', 1.0)
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'", "least_noise takes any non-decreasing function")
    points = PrivacyTarget.from_budget(budget).points
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    widest_levels = max((estimated_levels(*point) for point in points if point[1] > 0), default=0.0)
    if not widest_levels * sensitivity <= MAX_COMPARED_WIDTH:
        text = f"this needs noise of more than {MAX_COMPARED_WIDTH:,} values on each side"
        raise InputError.from_text("budget", f"{text}; use a larger budget, or {COARSER_UNITS}")
    least = least_noise(budget, sensitivity=sensitivity, cost=cost)
    families = list(calibrate_families(budget, sensitivity=sensitivity))
    if sensitivity > 1 and isinstance(least, LeastNoise):
        families.insert(0, CalibratedFamily("least noise (linear program)", TableMechanism(least.table, sensitivity)))
    return FamilyComparison(
        tuple(families),
        least.certificate,
        tuple(_calibrate_real_twins(budget, points, sensitivity)),
        noise_limits(budget, sensitivity=sensitivity, cost=cost),
        cost,
    )


def _calibrate_real_twins(budget: Budget, points: PrivacyPoints, sensitivity: int) -> list[tuple[str, Mechanism]]:
    """Return the names and the least noise of the families' real-valued counterparts that can meet the budget."""
    delta = min(delta for _, delta in points)
    twins = [
        family.real_twin for family in registered_families() if family.real_twin and (delta > 0 or not family.has_bound)
    ]
    mechanisms = []

    def calibrate_twin(twin: RealTwin) -> Mechanism:
        size = calibrate(
            lambda size: twin.make_mechanism(size, sensitivity, delta).loss, budget, smallest=sensitivity / 500
        ).parameter
        return twin.make_mechanism(size, sensitivity, delta)

    for twin in twins:
        try:
            mechanisms.append((twin.name, calibrate_twin(twin)))
        except (InputError, InsufficientBudgetError):
            continue
    return mechanisms
