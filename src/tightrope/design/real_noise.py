"""The least noise for real-valued answers: a law with steps, a bound that no real noise beats, and no sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from scipy import optimize

from tightrope.certificates.noise import Argument, NoiseCertificate
from tightrope.design.program.noise_certificate import DUAL, Certified, dual_argument, kept
from tightrope.design.program.noise_closed_form import rounded_up
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_dual import Multiplier, proven_least
from tightrope.design.program.noise_expense import expense
from tightrope.design.program.noise_reference import Reference
from tightrope.design.program.noise_request import Promise, Shape
from tightrope.design.program.noise_search import least_table, proving_multipliers, searched
from tightrope.design.program.packing_bound import packing_bound
from tightrope.design.program.real_lattice import Lattice, finest
from tightrope.errors import PrecisionError
from tightrope.mechanisms.continuous.continuous import Continuous
from tightrope.mechanisms.continuous.staircase import Staircase, staircase
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.mechanisms.tables.tails import first_at_most
from tightrope.numerics.checks import Real, positive
from tightrope.privacy.loss import PrivacyLoss

CLOSE_GAP = 1e-3
"""The relative gap at which refining ends."""
MOST_REAL_CELLS = 1500
"""Cells of the program for the law: milliseconds."""
LARGEST_LATTICE_EPSILON = 7.0
"""Beyond, staircase noise costs at most 6 % more than any noise may, less for larger ε, and lattices are too coarse."""
MOST_ANY_ROWS = 3_500
"""Rows of the program for a law of any shape: a second."""
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
class LeastRealNoise(Continuous, Certified):
    """X = h (K + U): K from a table, U uniform on (−½, ½), h = sensitivity / cells (``real_lattice``).

    ``certificate`` is made when it is first asked for.
    """

    table: NoiseTable
    promise: Promise
    lattice: Lattice
    shape: Shape
    twin = "least_noise with integer=True"

    @property
    def sensitivity(self) -> float:
        """How much one person can change the answer."""
        return self.lattice.sensitivity

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all real shifts up to the sensitivity."""
        return self.table.loss(self.lattice.cells)

    @property
    def mean_absolute_error(self) -> float:
        """E|X| = h (E|K| + P(K = 0)/4)."""
        return rounded_up(self._width * (self.table.exact_mean_absolute + self._centre / 4))

    @property
    def mean_squared_error(self) -> float:
        """E X² = h² (E K² + 1/12)."""
        return rounded_up(self._width**2 * (self.table.exact_mean_squared + Fraction(1, 12)))

    @property
    def worst_error(self) -> float:
        """H (N + ½); ∞ where the tail never ends."""
        return (self.table.worst + 0.5) * self.lattice.width

    @property
    def _width(self) -> Fraction:
        return Fraction(self.lattice.sensitivity) / self.lattice.cells

    @property
    def _centre(self) -> Fraction:
        return 1 - 2 * self.table.survival(0)

    def _upper_quantile(self, tail: float) -> float:
        """P(X > h(k + ½)) is P(K > k); within a cell it is linear."""
        left = Fraction(tail)
        cell = first_at_most(self.table.survival, left)
        beyond = self.table.survival(cell)
        inside = self.table.survival(cell - 1) - beyond if cell else self._centre
        back = (left - beyond) / inside if inside else Fraction(0)
        return float(self._width * (cell + Fraction(1, 2) - back))

    @property
    def upper(self) -> float:
        """The expected cost, rounded up."""
        cost = self.lattice.cost
        if cost.power == 1:
            return self.mean_absolute_error
        if cost.power == 2:
            return self.mean_squared_error
        return expense(self.table, Cost(cost.name, self.lattice.of_cell, None))

    @cached_property
    def certificate(self) -> NoiseCertificate:  # type: ignore[override]
        """Bounds on the least cost of any real noise, the realised guarantee, and why the bound holds."""
        return _certified(self, self.promise, self.lattice, self.upper, self.shape)


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is kept
class LeastRealStaircase(Continuous, Certified):
    """Staircase noise where nothing that was found costs less: at large ε the finest lattice is too coarse."""

    law: Staircase
    promise: Promise
    lattice: Lattice
    twin = "least_noise with integer=True"

    @property
    def sensitivity(self) -> float:
        """How much one person can change the answer."""
        return self.law.sensitivity

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates all real shifts up to the sensitivity."""
        return self.law.loss

    @property
    def mean_absolute_error(self) -> float:
        """E|X| and a margin for rounding."""
        return self.law.mean_absolute_error * (1 + FORMULA_MARGIN)

    @property
    def mean_squared_error(self) -> float:
        """E X² and a margin for rounding."""
        return self.law.mean_squared_error * (1 + FORMULA_MARGIN)

    @property
    def worst_error(self) -> float:
        return math.inf

    def _upper_quantile(self, tail: float) -> float:
        return self.law._upper_quantile(tail)

    @property
    def upper(self) -> float:
        """The expected cost."""
        return self.mean_absolute_error if self.lattice.cost.power == 1 else self.mean_squared_error

    @cached_property
    def certificate(self) -> NoiseCertificate:  # type: ignore[override]
        """Bounds on the least cost of any real noise, the realised guarantee, and why the bound holds."""
        return _certified(self, self.promise, self.lattice, self.upper, "unimodal")


RealNoise = LeastRealNoise | LeastRealStaircase


def least_real_noise(promise: Promise, sensitivity: Real, cost: Cost, shape: Shape = "unimodal") -> RealNoise:
    """The cheapest law found for real-valued answers: mostly within a thousandth of the least cost of any.

    On the finest lattice a unimodal law, with ``shape="any"`` also one of any shape on a coarser lattice, and staircase
    noise. Raises ``InputError`` unless the sensitivity is positive, and where the noise would need too many cells.

    >>> from tightrope.certificates import Budget
    >>> noise = least_real_noise(Promise.of(Budget(epsilon=3, delta=1e-6)), 1, Cost.of("absolute"))
    >>> noise.mean_absolute_error < 0.2349, noise.certificate.gap < 2e-3
    (True, True)
    """
    width = positive("sensitivity", sensitivity)
    law = best_stairs(promise, width, cost)
    stairs = [] if law is None else [LeastRealStaircase(law, promise, Lattice(width, 1, cost))]
    if stairs and promise.slowest > LARGEST_LATTICE_EPSILON:
        return stairs[0]
    levels = _levels(promise)
    found: list[RealNoise] = [*stairs, _on_lattice(promise, width, cost, MOST_REAL_CELLS // levels, "unimodal")]
    if shape == "any":
        most = int((MOST_ANY_ROWS / (len(promise.points) * levels)) ** 0.5)
        found.append(_on_lattice(promise, width, cost, most, "any"))
    return min(found, key=lambda noise: noise.upper)


def best_stairs(promise: Promise, width: float, cost: Cost) -> Staircase | None:
    """Staircase noise of the smallest ε with the γ of the least cost, if it keeps the promise; of |x| and x² alone."""
    points = promise.uncapped.points
    epsilon = min((e for e, _ in points if e > 0), default=0.0)
    if cost.power is None or not epsilon > 0:
        return None
    epsilon *= 1 - FORMULA_MARGIN  # so that no rounding of the loss exceeds what was asked
    law = staircase(epsilon=epsilon, sensitivity=width)
    if cost.power == 2:
        shaped = partial(staircase, epsilon=epsilon, sensitivity=width)
        far = math.log(law.gamma)
        best = optimize.minimize_scalar(
            lambda log: math.log(shaped(gamma=math.exp(log)).mean_squared_error), bounds=(far, 0.0), method="bounded"
        )
        law = shaped(gamma=math.exp(float(best.x)))
    eta = next((delta for at, delta in points if at == 0), 1.0)
    return law if eta == 1 or law.total_variation * (1 + FORMULA_MARGIN) <= eta else None


def _on_lattice(promise: Promise, width: float, cost: Cost, most: int, shape: Shape) -> LeastRealNoise:
    lattice = finest(cost, width, promise.slowest, most, above=True)
    return LeastRealNoise(least_table(promise, lattice.cells, lattice.above, shape).table, promise, lattice, shape)


def _certified(noise: RealNoise, promise: Promise, lattice: Lattice, upper: float, shape: Shape) -> NoiseCertificate:
    lower, argument = _proven(promise, lattice, upper)
    guarantee, realised = kept(noise.loss, promise)
    return NoiseCertificate(
        lower=lower,
        upper=upper,
        guarantee=guarantee,
        realised=realised,
        cost=lattice.cost.name,
        sensitivity=lattice.sensitivity,
        shape=shape,
        mean_absolute_error=noise.mean_absolute_error,
        mean_squared_error=noise.mean_squared_error,
        worst_error=noise.worst_error,
        argument=argument,
    )


def real_bound(promise: Promise, lattice: Lattice) -> tuple[float, tuple[Multiplier, ...]]:
    """No real noise that keeps the promise costs less; and the numbers that prove it."""
    multipliers = proving_multipliers(promise, lattice.cells, lattice.below)
    found = proven_least(multipliers, lattice.below, "any") * lattice.unit
    return max(
        float(np.nextafter(found * (1 - 2.0**-50), -np.inf)), float(lattice.cost.at(np.zeros(1))[0])
    ), multipliers


def _proven(promise: Promise, lattice: Lattice, upper: float) -> tuple[float, Argument]:
    """The best bound found, refining the lattice until it is near ``upper``."""
    best, why = _packed(promise, lattice)
    if best > 0 and promise.slowest > LARGEST_LATTICE_EPSILON:
        return _at_most(best, upper), why
    for rows in BOUND_ROWS if lattice.cost.power is not None else BOUND_ROWS[:1]:
        if upper <= best * (1 + CLOSE_GAP):
            break
        most = int((rows / (len(promise.points) * _levels(promise))) ** 0.5)
        finer = finest(lattice.cost, lattice.sensitivity, promise.slowest, most, above=False)
        found, multipliers = real_bound(promise, finer)
        if found >= best:
            best, why = found, _argument(finer, multipliers)
    return _at_most(best, upper), why


def _at_most(bound: float, cost: float) -> float:
    """The bound, which rounding may lift above a cost that meets it; a bound that refutes the cost is a fault."""
    if bound > cost * (1 + PROOF_ROUNDING):
        raise PrecisionError(f"a lower bound of {bound!r} contradicts a cost of {cost!r} that is reached")
    return min(bound, cost)


def _packed(promise: Promise, lattice: Lattice) -> tuple[float, Argument]:
    power = lattice.cost.power
    found = 0.0 if power is None else packing_bound(promise, lattice.sensitivity, power)
    return found, Argument("theorem", PACKING, {"points": [list(point) for point in promise.uncapped.points]})


def _levels(promise: Promise) -> int:
    """About how many sensitivities the noise is wide."""
    return len(Reference.of(searched(promise), 1).weights)


def _argument(lattice: Lattice, multipliers: tuple[Multiplier, ...]) -> Argument:
    plain = dual_argument(multipliers, lattice.below)
    numbers = {"cells": lattice.cells, "width": lattice.width, "unit": lattice.unit, **plain.numbers}
    return Argument("dual", DUAL + BETWEEN, numbers)
