"""Every noise at one budget, side by side with the least there is: for whole-number and for real-valued answers."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.documents.noise import NoiseCertificate
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism, Tabulated
from tightrope.mechanisms.discrete.integer_tables import COARSER, excess, keeps, optimal_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.pairs import approx_dp
from tightrope.noise.calibrate import calibrate
from tightrope.noise.composed.candidates import Question
from tightrope.noise.composed.composed_noise import tuned
from tightrope.noise.families import Family, RealTwin, Shaped, offered
from tightrope.noise.family_weights import LISTED_NATS, Need
from tightrope.noise.least_noise import LeastNoise, least_noise
from tightrope.noise.noise_limits import NoiseLimits, noise_limits
from tightrope.noise.program.repair import levels_of
from tightrope.noise.program.request import Cost, Promise
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import filled, whole

# What Gaussian noise costs beside the least noise there is, over the plane of ε and δ (GDGK).

SCALE_TOLERANCE = 1e-9
"""How near the least scale is found, relatively."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of the least Gaussian over that of the least noise lies between ``lower`` and ``upper``."""

    epsilon: float
    delta: float
    lower: float
    upper: float


def gaussian_price(
    *, epsilon: Sequence[float], delta: Sequence[float], cost: str = "absolute"
) -> tuple[tuple[Price, ...], ...]:
    """A row for each δ, a price for each ε: real-valued noise of sensitivity 1, cost "absolute" or "squared".

    The scale of the Gaussian is the least one, by its exact profile, not by the classical formula. Sensitivity does not
    matter. ``report.plots.gaussian_price`` draws it. Raises ``InputError`` for empty lists and another cost.

    >>> ((price,),) = gaussian_price(epsilon=[1.0], delta=[1e-6], cost="squared")
    >>> 9.30 < price.lower <= price.upper < 9.32
    True
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'")
    filled("epsilon", list(epsilon), "say [0.5, 1, 2]")
    filled("delta", list(delta), "say [1e-6, 1e-9]")
    found = [_price(e, d, cost) for d, e in itertools.product(delta, epsilon)]
    width = len(epsilon)
    return tuple(tuple(found[i : i + width]) for i in range(0, len(found), width))


def _price(epsilon: float, delta: float, cost: str) -> Price:
    budget = Budget(epsilon=epsilon, delta=delta)
    limits = noise_limits(budget, cost=cost)
    scale = calibrate(lambda size: gaussian(scale=size).loss, budget, tolerance=SCALE_TOLERANCE).parameter
    paid = scale * math.sqrt(2 / math.pi) if cost == "absolute" else scale**2
    return Price(epsilon, delta, paid * (1 - 3 * SCALE_TOLERANCE) / limits.upper, paid / limits.lower)


# The frontier between privacy and error: for each promise the least error of any noise, and noise that has it.

MOST_PROMISES = 10_000
"""Promises of one frontier."""


@dataclass(frozen=True, slots=True)
class Point:
    """One promise: what was asked, what the noise realises, its expected cost, and the proven limit on that of any.

    ``epsilon`` is the ε asked for at ``delta``, 0 where none was.

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
    """All points, in the order of the budgets, then of the people; ``cost_name`` says what ``cost`` is."""

    points: tuple[Point, ...]
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
    """The least noise and the proven limit for every budget, with every number of people.

    ``cost`` of a point is an upper end, computed from a table that can be sampled; ``limit`` a lower bound on that of
    every integer noise (theory §4). Neighbours: whatever the sensitivity speaks of. ``report.plots.frontier`` draws it.
    Raises ``InputError`` for nonsense and for more than 10 000 combinations.

    >>> found = frontier([Budget(epsilon=epsilon, delta=1e-6) for epsilon in (0.5, 1, 2)], people=1000)
    >>> [round(point.cost, 3) for point in found.points], all(p.limit <= p.cost for p in found.points)
    ([1.919, 0.851, 0.276], True)
    """
    asked, crowds = list(budgets), _crowds(people)
    filled("budgets", asked, "say [Budget(epsilon=1, delta=1e-6)]")
    if not len(asked) * len(crowds) <= MOST_PROMISES:
        count = len(asked) * len(crowds)
        raise InputError("budgets", count, f"at most {MOST_PROMISES} combinations", "draw fewer lines at once")
    found: list[Point] = []
    for budget in asked:
        proven = least_noise(budget, sensitivity=sensitivity, cost=cost, releases=releases).certificate
        found += [_point(budget, crowd, proven) for crowd in crowds]
    name = cost if isinstance(cost, str) else getattr(cost, "__name__", "cost")
    return Frontier(tuple(found), name, sensitivity, releases)


def _crowds(people: int | Sequence[int] | None) -> list[int | None]:
    """A list of one for a number or None."""
    if people is None:
        return [None]
    asked = list(people) if isinstance(people, Sequence) else [people]
    filled("people", asked, "give at least one number")
    return [whole("people", number) for number in asked]


def _point(budget: Budget, people: int | None, certificate: NoiseCertificate) -> Point:
    epsilon, eta = budget.epsilon, budget.total_variation
    return Point(
        0.0 if epsilon is None else float(epsilon),
        float(budget.delta),
        None if eta is None else float(eta),
        people,
        certificate.guarantee.total_variation,
        certificate.upper,
        certificate.lower,
    )


# The least noise of each family under one budget, for one answer: bisected, and ending on the private side.

SIZE_WITHIN = 1e-6
"""How near, relatively, the least size is approached."""
MOST_HALVINGS = 120
"""Halvings tried at most: each search ends long before."""
USUAL_DOUBLINGS = 8
"""Doublings tried whatever they bring: most guesses are off by less."""
HELPS = 0.75
"""What a doubling must leave at most of the excess from then on: tables of 128 bits keep no δ below, however wide."""
CLOSED_FORM = "least noise (closed form)"
Points = Sequence[tuple[float, float]]
Build = Callable[[float], IntegerMechanism]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A family at one budget: its noise, or why there is none."""

    family: str
    mechanism: IntegerMechanism | None
    reason: str = ""


def families(budget: Budget, *, sensitivity: int = 1) -> list[Calibrated]:
    """Every family of integer noise, as small as the budget allows, for one answer that changes by ``sensitivity``.

    All points of the budget hold for the integer table that is sampled, rounding included, at every shift up to the
    sensitivity. Sensitivity 1 adds the closed-form optimum, which no integer noise beats (theory §4.1).
    Neighbours: whatever the sensitivity speaks of. Raises ``InputError`` unless it is a whole number ≥ 1.

    >>> [found.family for found in families(Budget(epsilon=1, delta=0)) if found.mechanism]
    ['least noise (closed form)', 'discrete Laplace', 'discrete staircase']
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    points = Promise.of(budget).points
    closed = [_tried(CLOSED_FORM, lambda: Tabulated(optimal_table(points)))] if sensitivity == 1 else []
    pure = min(delta for _, delta in points) == 0
    found = [_calibrated_family(family, points, sensitivity) for family in offered() if not (pure and family.bounded)]
    missing = [Calibrated(family.name, None, "needs delta > 0") for family in offered() if pure and family.bounded]
    return [*closed, *found, *missing]


def least_size(build: Build, points: Points, guess: float) -> IntegerMechanism:
    """The noise ``build(size)`` of the least size that keeps every (ε, δ): larger sizes must keep more.

    Searched from ``guess`` by doubling, then bisected to ``SIZE_WITHIN``; the end that was shown to keep the points is
    returned. Sizes outside what ``build`` accepts raise its ``InputError``; ``BudgetRefused`` where no size will do.
    """
    # The first of guess, 2 guess, 4 guess, … that keeps the points; `InputError` of `build` ends it.
    size, before = guess, math.inf
    for doublings in count():
        noise = build(size)
        left = excess(noise.table.atoms(noise.sensitivity), points)
        if left <= 0:
            break
        if doublings >= USUAL_DOUBLINGS and not left <= HELPS * before:
            raise BudgetRefused(f"no size of this noise keeps {list(points)}; raise epsilon or delta")
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
    """The noise of this size if it keeps the points; sizes too small to build do not."""
    try:
        noise = build(size)
    except InputError:
        return None
    return noise if keeps_all(noise, points) else None


def keeps_all(noise: IntegerMechanism, points: Points) -> bool:
    """Whether the table that is sampled keeps every point, rounding included."""
    return keeps(noise.table.atoms(noise.sensitivity), points)


def _tried(name: str, search: Callable[[], IntegerMechanism]) -> Calibrated:
    try:
        return Calibrated(name, search())
    except (InputError, BudgetRefused) as error:
        return Calibrated(name, None, str(error))


def _calibrated_family(family: Family, points: Points, sensitivity: int) -> Calibrated:
    if isinstance(family, Shaped):
        return _tried(family.name, lambda: _shaped(family, points, sensitivity))
    return _tried(family.name, lambda: _sized(family, points, sensitivity))


def _sized(family: Family, points: Points, sensitivity: int) -> IntegerMechanism:
    """Searched from the point that asks for most by itself; a total variation is about its ε."""
    need = Need(sensitivity, (1,), min(delta for _, delta in points))
    guess = max(family.guess(epsilon or delta, need) for epsilon, delta in points)
    return least_size(lambda size: family.noise(size, need), points, guess)


def _shaped(family: Shaped, points: Points, sensitivity: int) -> IntegerMechanism:
    """Shape and scale for the least E|X| in floats; the scale then grows until the table keeps the points."""
    shape, found = tuned(Question(tuple(points), 1, sensitivity, Cost.of("absolute")), family)
    law = family.at(shape)

    def build(scale: float) -> IntegerMechanism:
        return Tabulated(NoiseTable.from_probabilities(law.listed(scale, LISTED_NATS)), sensitivity)

    size, further = found.size, SIZE_WITHIN
    while not keeps_all(build(size), points):
        size, further = size * (1 + further), 2 * further
    return build(size)


MOST_COMPARED_CELLS = 1 << 15
"""Families are searched through some tens of tables each: for wider ones that takes minutes."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whole-number noise of every family and the least one with its certificate; real-valued laws and their limits.

    ``certificate.lower`` is proven for every whole-number noise, ``limits.lower`` for every real-valued one.
    """

    whole: tuple[Calibrated, ...]
    certificate: NoiseCertificate
    real: tuple[tuple[str, Mechanism], ...]
    limits: NoiseLimits
    cost: str

    def cost_of(self, noise: Mechanism) -> float:
        """E|X| or E X²."""
        return noise.mean_absolute_error if self.cost == "absolute" else noise.mean_squared_error


def compare(budget: Budget, *, sensitivity: int = 1, cost: str = "absolute") -> Comparison:
    """All families at a budget for one answer, with the proven limits; ``cost`` is "absolute" or "squared".

    Whole-number laws are the tables that would be sampled, rounding included. Real-valued laws are for comparison: they
    have no sampler. Neighbours: whatever the sensitivity speaks of. Raises ``InputError`` for another cost, and where
    the noise would be so wide that families take minutes.

    >>> found = compare(Budget(epsilon=1, delta=1e-6))
    >>> found.whole[0].family, round(found.certificate.upper / found.certificate.lower, 9)
    ('least noise (closed form)', 1.0)
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'", "least_noise takes any non-decreasing function")
    points = Promise.of(budget).points
    width = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    widest = max((levels_of(*point) for point in points if point[1] > 0), default=0.0)
    if not widest * width <= MOST_COMPARED_CELLS:
        raise InputError("epsilon", points[-1][0], f"enough for noise of {MOST_COMPARED_CELLS} cells a side", COARSER)
    least = least_noise(budget, sensitivity=sensitivity, cost=cost)
    laws = list(families(budget, sensitivity=sensitivity))
    if sensitivity > 1 and isinstance(least, LeastNoise):
        laws.insert(0, Calibrated("least noise (program)", Tabulated(least.table, sensitivity)))
    return Comparison(
        tuple(laws),
        least.certificate,
        tuple(_real_laws(budget, points, sensitivity)),
        noise_limits(budget, sensitivity=sensitivity, cost=cost),
        cost,
    )


def _real_laws(budget: Budget, points: Points, sensitivity: int) -> list[tuple[str, Mechanism]]:
    """The families' real-valued twins at their least size."""
    delta = min(delta for _, delta in points)
    twins = [family.real for family in offered() if family.real and (delta > 0 or not family.bounded)]
    found = []
    for twin in twins:

        def make(size: float, twin: RealTwin = twin) -> Mechanism:
            return twin.make(size, sensitivity, delta)

        try:
            size = calibrate(lambda size, make=make: make(size).loss, budget, smallest=sensitivity / 500).parameter  # type: ignore[misc]
        except (InputError, BudgetRefused):
            continue
        found.append((twin.name, make(size)))
    return found


# Ways to account for many equal steps, side by side: the comparison of GI Fig. 5, each way at its best.
#
# Kairouz–Oh–Viswanath one (ε, δ) of a step, composed exactly GI Theorem 2 one (ε, δ, η) of a step, composed exactly
# moments accountant Rényi divergences at every real order, with the optimal conversion Gaussian limit the central
# limit theorem: approximate, **not a bound** exact the loss itself
#
# Each of the bounds holds whatever the triple, or the order, that it is made from: the searches only make it tight.

DELTA_SHARES = np.log(10) * np.array(
    [-0.3, -1, -2, -3, -4, -5, -6, -7, -8, -10, -12, -16, -22, -30, -50, -80, -140, -250]
)
"""Log of the δ that all steps together may give away through the δ of each: where the best triple is sought first."""
MOST_TRIPLE_STEPS = 200_000
"""The recurrence behind a triple takes a second for so many."""
HUGE = 1e9
"""What stands for infinity in a search: more than any ε."""
CELL = 2e-5
"""Width of the cells of a law that does not know its moments; the error of K is of second order in it."""
CONVERSION_ROUNDING = 1e-12
"""Relative rounding of a sum of moments and of its conversion, many times over."""
MOMENT_ROUNDING = 1e-14
"""Absolute rounding of log Σ m e^{zl} of a law without known moments."""
LOWEST, HIGHEST = -20.0, 12.0
"""Log of the z that are tried at most."""


class Method(ABC):
    """One way to bound what a loss adds up to."""

    name: str
    statement = "upper bound"

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """The ε that this way proves at δ; ∞ where it proves none."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The δ that this way proves at ε ≥ 0."""

    def total_variation(self) -> float:
        """The total variation that this way proves: δ at 0."""
        return self.delta(0.0)


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of the comparison; ``statement`` says whether it is a bound."""

    name: str
    statement: str
    epsilon: float
    total_variation: float


def methods(step: PrivacyLoss, count: int) -> tuple[Method, ...]:
    """The five ways, loosest first; the exact one last. Raises ``InputError`` unless ``count`` is a whole number ≥ 1.

    >>> step = gaussian(scale=10).loss
    >>> [way.name for way in methods(step, 100)][::4]
    ['Kairouz-Oh-Viswanath', 'exact']
    """
    count = whole("count", count)
    loss = count * step
    triples: tuple[Method, ...] = (Triples(step, count, known=False), Triples(step, count, known=True))
    return (*(triples if count <= MOST_TRIPLE_STEPS else ()), Moments(loss), Limit(loss), Exact(loss))


def compared(ways: tuple[Method, ...], delta: float) -> tuple[Compared, ...]:
    """ε at δ, and the total variation, by every way.

    >>> rows = compared(methods(gaussian(scale=10).loss, 100), 1e-5)
    >>> [round(row.epsilon, 2) for row in rows]
    [28.46, 10.07, 4.73, 4.38, 4.38]
    """
    if not 0 < delta < 1:
        raise InputError("delta", delta, "a number in (0, 1)", "no way but the exact one proves anything at 0")
    return tuple(Compared(way.name, way.statement, way.epsilon(delta), way.total_variation()) for way in ways)


@dataclass(frozen=True, slots=True)
class Exact(Method):
    """The loss itself: the upper ends of its brackets."""

    loss: PrivacyLoss
    name = "exact"
    statement = "upper bound, tight"

    def epsilon(self, delta: float) -> float:
        return self.loss.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self.loss.delta(epsilon)


@dataclass(frozen=True, slots=True)
class Limit(Method):
    """G_μ with the μ of the central limit theorem (GI Thm 3); for finitely many steps it may err on either side."""

    loss: PrivacyLoss
    name = "Gaussian limit"
    statement = "approximate, not a bound"

    @property
    def _limit(self) -> PrivacyLoss:
        return gaussian(scale=1 / self.loss.gaussian_limit().mu).loss

    def epsilon(self, delta: float) -> float:
        return self._limit.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self._limit.delta(epsilon)


@dataclass(frozen=True, slots=True)
class Triples(Method):
    """(ε₁, δ₁) of one step – with its total variation where it is ``known`` – composed exactly (GI Thm 2).

    The best ε₁ for each question, by a grid over the δ that the steps lose through δ₁ and a search around its best.
    """

    step: PrivacyLoss
    count: int
    known: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        """Without the total variation it is the theorem of Kairouz, Oh and Viswanath."""
        return "GI Theorem 2" if self.known else "Kairouz-Oh-Viswanath"

    def epsilon(self, delta: float) -> float:
        return self._best(lambda loss: loss.epsilon(delta), math.log(delta))

    def delta(self, epsilon: float) -> float:
        return self._best(lambda loss: loss.delta(epsilon), 0.0)

    def _best(self, answer: Callable[[PrivacyLoss], float], top: float) -> float:
        """The least answer of all triples whose steps lose at most e^top through their δ."""

        def at(share: float) -> float:
            return answer(_composed(self.step, self.count, share, self.known))

        grid = [
            float(share) for share in np.unique([*(top + np.log([0.2, 0.5, 0.9])), *DELTA_SHARES[top > DELTA_SHARES]])
        ]
        found = [at(share) for share in grid]
        best = int(np.argmin(found))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        refined = scipy.optimize.minimize_scalar(
            lambda share: min(at(share), HUGE), bounds=(low, high), method="bounded", options={"maxiter": 12}
        )
        return min(found[best], float(refined.fun)) if math.isfinite(found[best]) else found[best]


@lru_cache(maxsize=256)
def _composed(step: PrivacyLoss, count: int, share: float, known: bool) -> PrivacyLoss:
    """``count`` copies of the triple of a step whose δ is e^share / count."""
    epsilon = step.epsilon(min(math.exp(share) / count, 0.999))
    if math.isinf(epsilon):
        return approx_dp(0.0, delta=1.0).loss
    eta = step.total_variation() if known else None
    return count * approx_dp(epsilon, delta=step.delta(epsilon), total_variation=eta).loss


@dataclass(frozen=True, slots=True)
class Moments(Method):
    """Rényi divergences K(z)/z of order 1 + z, at every z > 0, and δ ≤ δ_∞ + e^{K(z) − zε} z^z/(1+z)^{1+z} (theory §2).

    The conversion is the best there is from one moment; the moments accountant of Abadi et al. lacks its last factor.
    """

    loss: PrivacyLoss
    name = "moments accountant"

    def epsilon(self, delta: float) -> float:
        left = delta - self.loss.infinite_mass
        return max(self._proven(side, left) for side in self._sides()) if left > 0 else math.inf

    def delta(self, epsilon: float) -> float:
        log = max(self._log_delta(side, epsilon) for side in self._sides())
        return min(1.0, self.loss.infinite_mass + math.exp(min(0.0, log)) * (1 + CONVERSION_ROUNDING))

    def _sides(self) -> tuple[Composition, ...]:
        same = self.loss.remove.laws == self.loss.add.laws and self.loss.remove.counts == self.loss.add.counts
        return (self.loss.remove,) if same else (self.loss.remove, self.loss.add)

    @staticmethod
    def _log_delta(side: Composition, epsilon: float) -> float:
        return _accountant_comparison_least(lambda z: _moment(side, z) - z * epsilon + _conversion(z))

    @staticmethod
    def _proven(side: Composition, delta: float) -> float:
        least = _accountant_comparison_least(lambda z: (_moment(side, z) + _conversion(z) - math.log(delta)) / z)
        return max(0.0, least * (1 + CONVERSION_ROUNDING))


def _conversion(z: float) -> float:
    """Log z^z/(1+z)^{1+z}."""
    return -z * math.log1p(1 / z) - math.log1p(z)


def _moment(total: Composition, z: float) -> float:
    """Upper bound on K(z) at real z > 0."""
    parts = [n * _law_moment(law, z) for law, n in zip(total.laws, total.counts, strict=True)]
    return math.fsum(parts) * (1 + CONVERSION_ROUNDING)


def _law_moment(law: LossLaw, z: float) -> float:
    """K(z) of one law and its rounding error, or of the atoms that dominate it."""
    at = np.array([complex(z)])
    known = law.log_moment(at)
    if known is not None:
        return float(known[0].real + law.moment_error(at, known)[0])
    losses, masses = _dominating(law)
    return _log_sum(losses, masses, z, law.infinite_mass)


@lru_cache(maxsize=8)
def _dominating(law: LossLaw) -> tuple[Floats, Floats]:
    """Losses and masses of atoms whose every moment is at least the law's: M is a mixture of hockey-sticks."""
    cells = law.cells(CELL)
    losses, masses = cells.ends()
    return losses[masses > 0] + law.slack, masses[masses > 0]


def _log_sum(losses: Floats, masses: Floats, z: float, infinite: float) -> float:
    """Log Σ m e^{zl}: near one as 1 − δ_∞ + Σ m (e^{zl} − 1), far from it with the peak pulled out."""
    if z * float(np.max(np.abs(losses))) < 300:
        return math.log1p(math.fsum(masses * np.expm1(z * losses)) - infinite) + MOMENT_ROUNDING
    return float(special.logsumexp(z * losses + np.log(masses))) + MOMENT_ROUNDING


def _accountant_comparison_least(height: Callable[[float], float]) -> float:
    """The least of a function of z > 0 that falls and then rises; any z is as valid, only less tight."""

    def at(place: float) -> float:
        return height(math.exp(place))

    low, here, high = 0.0, math.log(8.0), math.log(64.0)
    below, value, above = at(low), at(here), at(high)
    while below < value and low > LOWEST:
        low, here, high, below, value, above = low - 2, low, here, at(low - 2), below, value
    while above < value and high < HIGHEST:
        low, here, high, value, above = here, high, high + 1, above, at(high + 1)
    found = scipy.optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return min(value, below, above, float(found.fun))
