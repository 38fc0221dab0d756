"""The least noise for real-valued answers: a step density and a lower bound for all real noise; no sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
import scipy

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.noise import Argument, NoiseCertificate
from tightrope.errors import PrecisionError
from tightrope.mechanisms.discrete.integer_weights import first_at_most
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.mechanism import ContinuousMechanism
from tightrope.mechanisms.staircase import Staircase, staircase
from tightrope.noise.program.certificate import (
    DUAL,
    CertifiedMechanism,
    certified_cost,
    dual_argument,
    realized_guarantee,
)
from tightrope.noise.program.closed_form import packing_bound, round_up
from tightrope.noise.program.dual import DualMultiplier, proven_least
from tightrope.noise.program.repair import ReferenceWeights
from tightrope.noise.program.request import ErrorCost, PrivacyTarget, Shape
from tightrope.noise.program.search import best_staircase, least_table, proving_multipliers, searchable_points
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real, check_positive

# Real-valued noise between two lattices of m cells a sensitivity (theory §4.2): costs of cells, costs of nodes.
#
# **Above.** An integer K that meets the points for shifts 1..m, unimodal, and U uniform on (−½, ½) give X = h(K +
# U), h = Δ/m. A shift by h(d + t), 0 ≤ t < 1, compares cells at distance d with probability 1 − t and d + 1 with
# probability t, so X meets the points at every real shift up to Δ. Its cost is Σ p_k E φ(h|k + U|).
#
# **Below.** Let y solve the program at the nodes hℤ for shifts hd and be linear between them. For every real noise
# the bound of ``dual`` holds with the infimum of r over the real line. Where φ is linear between nodes r is,
# too, and nodes suffice; x² is at least its chord less h²/4; any non-decreasing φ is at least the chord of its values
# one node before.

CELL_PARTS = 16
"""Pieces of a cell over which a cost without a formula is bounded by its value at the outer end."""
FOLLOWED_NATS = 40.0
"""Nats down to which a staircase is computed."""
COARSEST, FINEST = 4, 64


@dataclass(frozen=True, slots=True)
class RealLattice:
    """Cells of width Δ/m. Costs are in units of h^p for |x|^p, else as they are."""

    sensitivity: float
    cell_count: int
    cost: ErrorCost

    @property
    def cell_width(self) -> float:
        """H = Δ/m."""
        return self.sensitivity / self.cell_count

    @property
    def cost_unit(self) -> float:
        """The unit of costs."""
        return self.cell_width**self.cost.power if self.cost.power is not None else 1.0

    def costs_above(self, last: int) -> Floats:
        """E φ(h|k + U|) for k = 0..last, or a little more."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return np.where(k == 0, 0.25, k)
        if self.cost.power == 2:
            return np.asarray(k * k + 1 / 12)
        return np.array([self.cell_cost(cell) for cell in k.tolist()])

    def cell_cost(self, k: float) -> float:
        """E φ(h|k + U|), or a little more, for a cost without a formula: pieces cost what their outer end costs."""
        parts = np.arange(1, CELL_PARTS + 1) / CELL_PARTS
        ends = parts / 2 if k == 0 else k - 0.5 + parts
        return float(self.cost.values_at(self.cell_width * ends).mean()) * (1 + 2.0**-48)

    def costs_below(self, last: int) -> Floats:
        """Node values k = 0..last of a function, linear between nodes, that is nowhere above the cost."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return k
        if self.cost.power == 2:
            return np.asarray(k * k - 0.25)
        return self.cost.values_at(self.cell_width * np.maximum(k - 1, 0.0))


def best_lattice(cost: ErrorCost, sensitivity: float, epsilon: float, most: int, *, above: bool) -> RealLattice:
    """The lattice of at most ``most`` cells that suits best: judged by the best staircase of ε alone.

    Its steps fall on nodes or between them, as the number of cells decides; ε = 0 takes the finest.
    """
    choices = range(COARSEST, max(COARSEST, min(most, FINEST)) + 1)
    lattices = [RealLattice(sensitivity, cells, cost) for cells in choices]
    if not epsilon > 0:
        return lattices[-1]
    if above:
        return min(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=True))
    return max(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=False))


def staircase_cost(lattice: RealLattice, epsilon: float, *, above: bool) -> float:
    """The least cost of a distribution that is flat on |k| < r and then falls by e^{−ε} every m cells, over r = 1..m.

    >>> fine = RealLattice(1.0, 48, ErrorCost.from_argument("absolute"))
    >>> round(staircase_cost(fine, 1.0, above=True), 3)  # e^{ε/2} / (e^ε − 1) = 0.9595...
    0.96
    """
    last = lattice.cell_count * (math.ceil(FOLLOWED_NATS / epsilon) + 2)
    costs = lattice.costs_above(last) if above else lattice.costs_below(last)
    return best_staircase(epsilon, lattice.cell_count, costs)[0] * lattice.cost_unit


CLOSE_GAP = 1e-3
"""The relative gap at which refining ends."""
MOST_REAL_CELLS = 1500
"""Cells of the program for the distribution: milliseconds."""
LARGEST_LATTICE_EPSILON = 7.0
"""Above, staircase noise is within 6 % of the least cost, less for larger ε, and lattices are too coarse."""
MOST_ANY_ROWS = 3_500
"""Rows of the program for a distribution of any shape: a second."""
BOUND_ROWS = (4_000, 10_000)
"""Rows of the programs for the bound: tried in this order until the gap is small enough."""
BETWEEN = (
    " Errors are real here: with h = sensitivity / cells, k stands for the error h k, y is linear between whole k, and "
    "c_k times unit is nowhere above the cost, linearly interpolated; the bound is in the same unit."
)
PACKING = (
    "If 2 e^-epsilon integral over 2b..sensitivity of (phi(t - b) - phi(b)) is at least the integral over -b..b of "
    "(phi(b) - phi), every real noise that keeps delta at epsilon for all shifts up to the sensitivity costs at least "
    "phi(b) - delta (phi(b) - phi(0)). Proof: docs/proofs/optimal-noise.md."
)
FORMULA_MARGIN = 1e-12
"""Relative margin for formulas in floats."""
PROOF_ROUNDING = 1e-9
"""Relative margin by which floats may lift a lower bound above a cost that meets it."""


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is kept
class LeastRealNoise(ContinuousMechanism, CertifiedMechanism):
    """X = h (K + U): K from a table, U uniform on (−½, ½), h = sensitivity / cells.

    ``certificate`` is computed at first access.
    """

    table: NoiseTable
    privacy_target: PrivacyTarget
    lattice: RealLattice
    shape: Shape
    twin = "least_noise with integer=True"

    @property
    def sensitivity(self) -> float:
        """Largest change of the answer by one person."""
        return self.lattice.sensitivity

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all real shifts up to the sensitivity."""
        return self.table.loss(self.lattice.cell_count)

    @property
    def mean_absolute_error(self) -> float:
        """E|X| = h (E|K| + P(K = 0)/4)."""
        return round_up(self._exact_cell_width * (self.table.exact_mean_absolute + self._center_probability / 4))

    @property
    def mean_squared_error(self) -> float:
        """E X² = h² (E K² + 1/12)."""
        return round_up(self._exact_cell_width**2 * (self.table.exact_mean_squared + Fraction(1, 12)))

    @property
    def worst_error(self) -> float:
        """H (N + ½); ∞ where the tail never ends."""
        return (self.table.largest_magnitude + 0.5) * self.lattice.cell_width

    @property
    def _exact_cell_width(self) -> Fraction:
        return Fraction(self.lattice.sensitivity) / self.lattice.cell_count

    @property
    def _center_probability(self) -> Fraction:
        return 1 - 2 * self.table.survival_probability(0)

    def _upper_quantile(self, tail: float) -> float:
        """P(X > h(k + ½)) is P(K > k); within a cell it is linear."""
        left = Fraction(tail)
        cell = first_at_most(self.table.survival_probability, left)
        beyond = self.table.survival_probability(cell)
        inside = self.table.survival_probability(cell - 1) - beyond if cell else self._center_probability
        back = (left - beyond) / inside if inside else Fraction(0)
        return float(self._exact_cell_width * (cell + Fraction(1, 2) - back))

    @property
    def cost_upper_bound(self) -> float:
        """The expected cost, rounded up."""
        cost = self.lattice.cost
        if cost.power == 1:
            return self.mean_absolute_error
        if cost.power == 2:
            return self.mean_squared_error
        return certified_cost(self.table, ErrorCost(cost.name, self.lattice.cell_cost, None))

    @cached_property
    def certificate(self) -> NoiseCertificate:  # type: ignore[override]
        """Bounds on the least cost of any real noise, the realized guarantee, and why the bound holds."""
        return _noise_certificate(self, self.privacy_target, self.lattice, self.cost_upper_bound, self.shape)


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is kept
class LeastRealStaircase(ContinuousMechanism, CertifiedMechanism):
    """Staircase noise, used if it is the cheapest found: at large ε the finest lattice is too coarse."""

    staircase_law: Staircase
    privacy_target: PrivacyTarget
    lattice: RealLattice
    twin = "least_noise with integer=True"

    @property
    def sensitivity(self) -> float:
        """Largest change of the answer by one person."""
        return self.staircase_law.sensitivity

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all real shifts up to the sensitivity."""
        return self.staircase_law.loss

    @property
    def mean_absolute_error(self) -> float:
        """E|X| and a margin for rounding."""
        return self.staircase_law.mean_absolute_error * (1 + FORMULA_MARGIN)

    @property
    def mean_squared_error(self) -> float:
        """E X² and a margin for rounding."""
        return self.staircase_law.mean_squared_error * (1 + FORMULA_MARGIN)

    @property
    def worst_error(self) -> float:
        return math.inf

    def _upper_quantile(self, tail: float) -> float:
        return self.staircase_law._upper_quantile(tail)

    @property
    def cost_upper_bound(self) -> float:
        """The expected cost."""
        return self.mean_absolute_error if self.lattice.cost.power == 1 else self.mean_squared_error

    @cached_property
    def certificate(self) -> NoiseCertificate:  # type: ignore[override]
        """Bounds on the least cost of any real noise, the realized guarantee, and why the bound holds."""
        return _noise_certificate(self, self.privacy_target, self.lattice, self.cost_upper_bound, "unimodal")


RealNoise = LeastRealNoise | LeastRealStaircase


def least_real_noise(
    promise: PrivacyTarget, sensitivity: Real, cost: ErrorCost, shape: Shape = "unimodal"
) -> RealNoise:
    """The cheapest distribution found for real-valued answers: mostly within a thousandth of the least cost of any.

    On the finest lattice a unimodal distribution, with ``shape="any"`` also one of any shape on a coarser lattice, and
    staircase noise. Raises ``InputError`` unless the sensitivity is positive, and where the noise would need too many
    cells.

    >>> from tightrope.documents import Budget
    >>> target = PrivacyTarget.from_budget(Budget(epsilon=3, delta=1e-6))
    >>> noise = least_real_noise(target, 1, ErrorCost.from_argument("absolute"))
    >>> noise.mean_absolute_error < 0.2349, noise.certificate.gap < 2e-3
    (True, True)
    """
    width = check_positive("sensitivity", sensitivity)
    law = best_real_staircase(promise, width, cost)
    stairs = [] if law is None else [LeastRealStaircase(law, promise, RealLattice(width, 1, cost))]
    if stairs and promise.smallest_positive_epsilon > LARGEST_LATTICE_EPSILON:
        return stairs[0]
    levels = _estimated_levels(promise)
    found: list[RealNoise] = [*stairs, _least_on_lattice(promise, width, cost, MOST_REAL_CELLS // levels, "unimodal")]
    if shape == "any":
        most = int((MOST_ANY_ROWS / (len(promise.points) * levels)) ** 0.5)
        found.append(_least_on_lattice(promise, width, cost, most, "any"))
    return min(found, key=lambda noise: noise.cost_upper_bound)


def best_real_staircase(promise: PrivacyTarget, width: float, cost: ErrorCost) -> Staircase | None:
    """Return staircase noise of the smallest ε with the best γ, if it meets the guarantee; only for |x| and x²."""
    points = promise.without_cap.points
    epsilon = min((e for e, _ in points if e > 0), default=0.0)
    if cost.power is None or not epsilon > 0:
        return None
    epsilon *= 1 - FORMULA_MARGIN  # so that no rounding of the loss exceeds what was asked
    law = staircase(epsilon=epsilon, sensitivity=width)
    if cost.power == 2:
        shaped = partial(staircase, epsilon=epsilon, sensitivity=width)
        far = math.log(law.gamma)
        best = scipy.optimize.minimize_scalar(
            lambda log: math.log(shaped(gamma=math.exp(log)).mean_squared_error), bounds=(far, 0.0), method="bounded"
        )
        law = shaped(gamma=math.exp(float(best.x)))
    eta = next((delta for at, delta in points if at == 0), 1.0)
    return law if eta == 1 or law.total_variation * (1 + FORMULA_MARGIN) <= eta else None


def _least_on_lattice(promise: PrivacyTarget, width: float, cost: ErrorCost, most: int, shape: Shape) -> LeastRealNoise:
    lattice = best_lattice(cost, width, promise.smallest_positive_epsilon, most, above=True)
    return LeastRealNoise(
        least_table(promise, lattice.cell_count, lattice.costs_above, shape).table, promise, lattice, shape
    )


def _noise_certificate(
    noise: RealNoise, promise: PrivacyTarget, lattice: RealLattice, upper: float, shape: Shape
) -> NoiseCertificate:
    lower, argument = _best_lower_bound(promise, lattice, upper)
    guarantee, realized = realized_guarantee(noise.loss, promise)
    return NoiseCertificate(
        lower=lower,
        upper=upper,
        guarantee=guarantee,
        realized=realized,
        cost=lattice.cost.name,
        sensitivity=lattice.sensitivity,
        shape=shape,
        mean_absolute_error=noise.mean_absolute_error,
        mean_squared_error=noise.mean_squared_error,
        worst_error=noise.worst_error,
        argument=argument,
    )


def real_bound(promise: PrivacyTarget, lattice: RealLattice) -> tuple[float, tuple[DualMultiplier, ...]]:
    """A lower bound on the cost of real noise that meets the guarantee, with the numbers that prove it."""
    multipliers = proving_multipliers(promise, lattice.cell_count, lattice.costs_below)
    found = proven_least(multipliers, lattice.costs_below, "any") * lattice.cost_unit
    return max(
        float(np.nextafter(found * (1 - 2.0**-50), -np.inf)), float(lattice.cost.values_at(np.zeros(1))[0])
    ), multipliers


def _best_lower_bound(promise: PrivacyTarget, lattice: RealLattice, upper: float) -> tuple[float, Argument]:
    """The best bound found, refining the lattice until it is near ``upper``."""
    power = lattice.cost.power
    packed_found = 0.0 if power is None else packing_bound(promise, lattice.sensitivity, power)
    best, why = (
        packed_found,
        Argument("theorem", PACKING, {"points": [list(point) for point in promise.without_cap.points]}),
    )
    if best > 0 and promise.smallest_positive_epsilon > LARGEST_LATTICE_EPSILON:
        return _cap_at_cost(best, upper), why
    for rows in BOUND_ROWS if lattice.cost.power is not None else BOUND_ROWS[:1]:
        if upper <= best * (1 + CLOSE_GAP):
            break
        most = int((rows / (len(promise.points) * _estimated_levels(promise))) ** 0.5)
        finer = best_lattice(lattice.cost, lattice.sensitivity, promise.smallest_positive_epsilon, most, above=False)
        found, multipliers = real_bound(promise, finer)
        if found >= best:
            plain = dual_argument(multipliers, finer.costs_below)
            numbers = {"cells": finer.cell_count, "width": finer.cell_width, "unit": finer.cost_unit, **plain.numbers}
            best, why = found, Argument("dual", DUAL + BETWEEN, numbers)
    return _cap_at_cost(best, upper), why


def _cap_at_cost(bound: float, cost: float) -> float:
    """Return the bound, lowered if rounding lifts it above a cost that attains it; raise if it exceeds that."""
    if bound > cost * (1 + PROOF_ROUNDING):
        raise PrecisionError(f"a lower bound of {bound!r} contradicts a cost of {cost!r} that is reached")
    return min(bound, cost)


def _estimated_levels(promise: PrivacyTarget) -> int:
    """Return the approximate width of the noise in sensitivities."""
    return len(ReferenceWeights.from_points(searchable_points(promise), 1).weights)
