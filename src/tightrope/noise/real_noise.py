"""The least noise for real-valued answers: a step density, and a lower bound for all real-valued noise; no sampler.

1. Lattices of cells, which turn the real-valued problem into an integer one (``RealLattice``).
2. The noise and its certificate (``least_real_noise``).
"""

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
from tightrope.mechanisms.discrete.integer_weights import first_survival_at_most
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
from tightrope.noise.program.dual import DualMultiplier, proven_least_cost
from tightrope.noise.program.repair import ReferenceWeights
from tightrope.noise.program.request import ErrorCost, PrivacyTarget, Shape
from tightrope.noise.program.search import best_staircase, least_table, proving_multipliers, searchable_budget_points
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real, check_positive

# 1. Real-valued noise is bounded by two integer problems on a lattice of m cells per sensitivity (theory §4.2).
#
# **Upper bound.** Let K be unimodal integer noise that meets every point (ε, δ) of the target for shifts 1..m, U
# uniform on (−½, ½), and X = h(K + U), h = Δ/m. A shift by h(d + t), 0 ≤ t < 1, compares cells at distance d with
# probability 1 − t and d + 1 with probability t, so X meets the points at every real shift up to Δ. Its cost is
# Σ p_k E φ(h|k + U|).
#
# **Lower bound.** Let y be the multipliers at the nodes hℤ for shifts hd (``program.dual``), and linear between nodes.
# The proof there also holds for real noise x, with the reduced cost r(x) = φ(|x|) + Σ (y(x) − e^ε y(x + hd)) and its
# infimum over the real line. If φ is linear between nodes, so is r, and the nodes suffice; x² is at least its chord
# less h²/4; any non-decreasing φ is at least the chord of its values one node before.

CELL_PARTS = 16
"""A cost other than |x| and x² is bounded on each of this many pieces of a cell by its value at the outer end."""
FOLLOWED_NATS = 40.0
"""A staircase is computed down to e^{−40} of its largest weight."""
MIN_CELLS, MAX_CELLS = 4, 64
"""Smallest and largest number of cells per sensitivity."""


@dataclass(frozen=True, slots=True)
class RealLattice:
    """Cells of width h = Δ/m, m = ``cell_count``. Costs |x|^p are in units of h^p, other costs in their own unit."""

    sensitivity: float
    cell_count: int
    cost: ErrorCost

    @property
    def cell_width(self) -> float:
        """The width h = Δ/m."""
        return self.sensitivity / self.cell_count

    @property
    def cost_unit(self) -> float:
        """The unit of costs."""
        return self.cell_width**self.cost.power if self.cost.power is not None else 1.0

    def costs_above(self, last: int) -> Floats:
        """Return E φ(h|k + U|) for k = 0..last, or slightly more."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return np.where(k == 0, 0.25, k)
        if self.cost.power == 2:
            return np.asarray(k * k + 1 / 12)
        return np.array([self.cell_cost(cell) for cell in k.tolist()])

    def cell_cost(self, k: float) -> float:
        """Return an upper bound on E φ(h|k + U|) for other costs than |x| and x², from the outer ends of the pieces."""
        parts = np.arange(1, CELL_PARTS + 1) / CELL_PARTS
        ends = parts / 2 if k == 0 else k - 0.5 + parts
        return float(self.cost.values_at(self.cell_width * ends).mean()) * (1 + 2.0**-48)

    def costs_below(self, last: int) -> Floats:
        """Return values at nodes k = 0..last whose linear interpolation is nowhere above the cost."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return k
        if self.cost.power == 2:
            return np.asarray(k * k - 0.25)
        return self.cost.values_at(self.cell_width * np.maximum(k - 1, 0.0))


def best_lattice(cost: ErrorCost, sensitivity: float, epsilon: float, most: int, *, above: bool) -> RealLattice:
    """Return the lattice of at most ``most`` cells per sensitivity with the best bound for staircase noise of this ε.

    The bound depends on whether the staircase's steps are at nodes or between them: so a finer lattice can be worse.
    For ε = 0, the finest lattice is returned. ``above`` selects the upper bound, otherwise it is the lower one.
    """
    choices = range(MIN_CELLS, max(MIN_CELLS, min(most, MAX_CELLS)) + 1)
    lattices = [RealLattice(sensitivity, cells, cost) for cells in choices]
    if not epsilon > 0:
        return lattices[-1]
    if above:
        return min(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=True))
    return max(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=False))


def staircase_cost(lattice: RealLattice, epsilon: float, *, above: bool) -> float:
    """Return the least cost, over r = 1..m, of weights that are equal on |k| < r and fall by e^{−ε} every m cells.

    >>> fine = RealLattice(1.0, 48, ErrorCost.from_argument("absolute"))
    >>> round(staircase_cost(fine, 1.0, above=True), 3)  # e^{ε/2} / (e^ε − 1) = 0.9595...
    0.96
    """
    last = lattice.cell_count * (math.ceil(FOLLOWED_NATS / epsilon) + 2)
    costs = lattice.costs_above(last) if above else lattice.costs_below(last)
    return best_staircase(epsilon, lattice.cell_count, costs)[0] * lattice.cost_unit


# 2. The noise and its certificate.

CLOSE_GAP = 1e-3
"""The lattice of the lower bound is refined until the relative gap is at most this."""
MOST_REAL_CELLS = 1500
"""Maximal number of cells of the program for a unimodal distribution, which is solved in milliseconds."""
LARGEST_LATTICE_EPSILON = 7.0
"""For larger ε lattices are too coarse, and staircase noise is within 6 % of the least cost, closer as ε grows."""
MOST_ANY_ROWS = 3_500
"""Maximal number of rows of the program for a distribution of any shape, which is solved in a second."""
BOUND_ROWS = (4_000, 10_000)
"""Maximal numbers of rows of the programs for the bound, tried in this order until the gap is small enough."""
LINEAR_BETWEEN_NODES = (
    " Errors are real here: with h = sensitivity / cells, k stands for the error h k, y is linear between integers k, "
    "and the linear interpolation of c_k times unit is nowhere above the cost; the bound is in the same unit."
)
PACKING = (
    "Let phi be the cost, (epsilon, delta) one of the points, and 0 < b < sensitivity / 2. If 2 e^-epsilon integral "
    "over t = 2b..sensitivity of (phi(t - b) - phi(b)) is at least the integral over x = -b..b of (phi(b) - phi(x)), "
    "every real noise that keeps delta at epsilon for all shifts up to the sensitivity costs at least phi(b) - delta "
    "(phi(b) - phi(0)). The bound is the largest over b and the points. Proof: docs/proofs/optimal-noise.md."
)
FORMULA_MARGIN = 1e-12
"""Relative margin for formulas in floats."""
PROOF_ROUNDING = 1e-9
"""By rounding, a lower bound may exceed a cost that equals it by this relative amount."""


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is cached
class LeastRealNoise(ContinuousMechanism, CertifiedMechanism):
    """X = h (K + U): K from a table, U uniform on (−½, ½), h = sensitivity / cells.

    ``certificate`` is computed at first access.
    """

    table: NoiseTable
    privacy_target: PrivacyTarget
    lattice: RealLattice
    shape: Shape
    integer_counterpart = "least_noise with integer=True"

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
        """The largest |X|: h (N + ½), N the largest |K|; ∞ if the noise is unbounded."""
        return (self.table.largest_magnitude + 0.5) * self.lattice.cell_width

    @property
    def _exact_cell_width(self) -> Fraction:
        return Fraction(self.lattice.sensitivity) / self.lattice.cell_count

    @property
    def _center_probability(self) -> Fraction:
        return 1 - 2 * self.table.survival_probability(0)

    def _upper_quantile(self, tail: float) -> float:
        """Return the x with P(X > x) = ``tail``: P(X > h(k + ½)) is P(K > k), and linear within a cell."""
        exact_tail = Fraction(tail)
        cell = first_survival_at_most(self.table.survival_probability, exact_tail)
        beyond = self.table.survival_probability(cell)
        cell_mass = self.table.survival_probability(cell - 1) - beyond if cell else self._center_probability
        distance_from_end = (exact_tail - beyond) / cell_mass if cell_mass else Fraction(0)
        return float(self._exact_cell_width * (cell + Fraction(1, 2) - distance_from_end))

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


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is cached
class LeastRealStaircase(ContinuousMechanism, CertifiedMechanism):
    """Staircase noise, used if it is the cheapest found: at large ε every lattice is too coarse."""

    staircase_law: Staircase
    privacy_target: PrivacyTarget
    lattice: RealLattice
    integer_counterpart = "least_noise with integer=True"

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


def least_real_noise(target: PrivacyTarget, sensitivity: Real, cost: ErrorCost, shape: Shape = "unimodal") -> RealNoise:
    """Return the cheapest distribution found for real-valued answers: mostly within a thousandth of the least cost.

    The candidates are a unimodal distribution on the best lattice found, staircase noise, and, with ``shape="any"``, a
    distribution of any shape on a coarser lattice. Raises ``InputError`` unless the sensitivity is positive, and if the
    noise would need too many cells.

    >>> from tightrope.documents import Budget
    >>> target = PrivacyTarget.from_budget(Budget(epsilon=3, delta=1e-6))
    >>> noise = least_real_noise(target, 1, ErrorCost.from_argument("absolute"))
    >>> noise.mean_absolute_error < 0.2349, noise.certificate.gap < 2e-3
    (True, True)
    """
    largest_shift = check_positive("sensitivity", sensitivity)
    best_staircase_noise = best_real_staircase(target, largest_shift, cost)
    candidates = (
        []
        if best_staircase_noise is None
        else [LeastRealStaircase(best_staircase_noise, target, RealLattice(largest_shift, 1, cost))]
    )
    if candidates and target.smallest_positive_epsilon > LARGEST_LATTICE_EPSILON:
        return candidates[0]
    noise_width = _estimated_width(target)
    all_candidates: list[RealNoise] = [
        *candidates,
        _least_on_lattice(target, largest_shift, cost, MOST_REAL_CELLS // noise_width, "unimodal"),
    ]
    if shape == "any":
        max_cells = int((MOST_ANY_ROWS / (len(target.points) * noise_width)) ** 0.5)
        all_candidates.append(_least_on_lattice(target, largest_shift, cost, max_cells, "any"))
    return min(all_candidates, key=lambda noise: noise.cost_upper_bound)


def best_real_staircase(target: PrivacyTarget, sensitivity: float, cost: ErrorCost) -> Staircase | None:
    """Return staircase noise of the smallest ε with the best γ, if it meets the guarantee; only for |x| and x²."""
    points = target.without_cap_point.points
    epsilon = min((e for e, _ in points if e > 0), default=0.0)
    if cost.power is None or not epsilon > 0:
        return None
    epsilon *= 1 - FORMULA_MARGIN  # so that the rounded loss does not exceed the target
    noise = staircase(epsilon=epsilon, sensitivity=sensitivity)
    if cost.power == 2:
        staircase_with = partial(staircase, epsilon=epsilon, sensitivity=sensitivity)
        log_gamma = math.log(noise.gamma)
        minimum = scipy.optimize.minimize_scalar(
            lambda log: math.log(staircase_with(gamma=math.exp(log)).mean_squared_error),
            bounds=(log_gamma, 0.0),
            method="bounded",
        )
        noise = staircase_with(gamma=math.exp(float(minimum.x)))
    eta = next((delta for at, delta in points if at == 0), 1.0)
    return noise if eta == 1 or noise.total_variation * (1 + FORMULA_MARGIN) <= eta else None


def _least_on_lattice(
    target: PrivacyTarget, sensitivity: float, cost: ErrorCost, most: int, shape: Shape
) -> LeastRealNoise:
    lattice = best_lattice(cost, sensitivity, target.smallest_positive_epsilon, most, above=True)
    return LeastRealNoise(
        least_table(target, lattice.cell_count, lattice.costs_above, shape).table, target, lattice, shape
    )


def _noise_certificate(
    noise: RealNoise, target: PrivacyTarget, lattice: RealLattice, upper: float, shape: Shape
) -> NoiseCertificate:
    lower, argument = _best_lower_bound(target, lattice, upper)
    guarantee, realized = realized_guarantee(noise.loss, target)
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


def real_bound(target: PrivacyTarget, lattice: RealLattice) -> tuple[float, tuple[DualMultiplier, ...]]:
    """Return a lower bound on the cost of real noise that meets the guarantee, with the multipliers that prove it."""
    multipliers = proving_multipliers(target, lattice.cell_count, lattice.costs_below)
    bound = proven_least_cost(multipliers, lattice.costs_below, "any") * lattice.cost_unit
    return max(
        float(np.nextafter(bound * (1 - 2.0**-50), -np.inf)), float(lattice.cost.values_at(np.zeros(1))[0])
    ), multipliers


def _best_lower_bound(target: PrivacyTarget, lattice: RealLattice, upper: float) -> tuple[float, Argument]:
    """Return the best lower bound found and its argument; the lattice is refined until it is near ``upper``."""
    power = lattice.cost.power
    best = 0.0 if power is None else packing_bound(target, lattice.sensitivity, power)
    argument = Argument("theorem", PACKING, {"points": [list(point) for point in target.without_cap_point.points]})
    if best > 0 and target.smallest_positive_epsilon > LARGEST_LATTICE_EPSILON:
        return _cap_at_cost(best, upper), argument
    for rows in BOUND_ROWS if lattice.cost.power is not None else BOUND_ROWS[:1]:
        if upper <= best * (1 + CLOSE_GAP):
            break
        max_cells = int((rows / (len(target.points) * _estimated_width(target))) ** 0.5)
        finer_lattice = best_lattice(
            lattice.cost, lattice.sensitivity, target.smallest_positive_epsilon, max_cells, above=False
        )
        bound, multipliers = real_bound(target, finer_lattice)
        if bound >= best:
            dual_part = dual_argument(multipliers, finer_lattice.costs_below)
            numbers = {
                "cells": finer_lattice.cell_count,
                "width": finer_lattice.cell_width,
                "unit": finer_lattice.cost_unit,
                **dual_part.numbers,
            }
            best, argument = bound, Argument("dual", DUAL + LINEAR_BETWEEN_NODES, numbers)
    return _cap_at_cost(best, upper), argument


def _cap_at_cost(bound: float, cost: float) -> float:
    """Return the bound, at most ``cost``; ``PrecisionError`` if it exceeds ``cost`` by more than rounding."""
    if bound > cost * (1 + PROOF_ROUNDING):
        raise PrecisionError(f"the computed lower bound {bound!r} exceeds a cost that was reached, {cost!r}")
    return min(bound, cost)


def _estimated_width(target: PrivacyTarget) -> int:
    """Return the approximate width of the noise in sensitivities."""
    return len(ReferenceWeights.from_points(searchable_budget_points(target), 1).weights)
