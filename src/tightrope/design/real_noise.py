"""The least noise for real-valued answers: a law with steps, a bound that no real noise beats, and no sampler."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.certificates.noise import Argument, NoiseCertificate
from tightrope.design.program.noise_certificate import DUAL, Certified, dual_argument, kept
from tightrope.design.program.noise_closed_form import rounded_up
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_dual import Multiplier, proven_least
from tightrope.design.program.noise_expense import expense
from tightrope.design.program.noise_reference import Reference
from tightrope.design.program.noise_request import Promise
from tightrope.design.program.noise_search import least_table, proving_multipliers, searched
from tightrope.design.program.real_lattice import Lattice, finest
from tightrope.mechanisms.continuous.continuous import Continuous
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.mechanisms.tables.tails import first_at_most
from tightrope.numerics.checks import Real, positive
from tightrope.privacy.loss import PrivacyLoss

CLOSE_GAP = 1e-3
"""The relative gap at which refining ends."""
MOST_REAL_CELLS = 1500
"""Cells of the program for the law: milliseconds."""
BOUND_ROWS = (4_000, 10_000, 20_000)
"""Rows of the programs for the bound: tried in this order until the gap is small enough."""
BETWEEN = (
    " Errors are real here: with h = sensitivity / cells, k stands for the error h k, y is linear between whole k, and "
    "c_k times unit is nowhere above the cost, linearly interpolated; the bound is in the same unit."
)


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is kept
class LeastRealNoise(Continuous, Certified):
    """X = h (K + U): K from a table, U uniform on (−½, ½), h = sensitivity / cells (``real_lattice``).

    ``certificate`` is made when it is first asked for.
    """

    table: NoiseTable
    promise: Promise
    lattice: Lattice
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
    def _upper(self) -> float:
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
        upper = self._upper
        lower, argument = _proven(self.promise, self.lattice, upper)
        guarantee, realised = kept(self.loss, self.promise)
        return NoiseCertificate(
            lower=lower,
            upper=upper,
            guarantee=guarantee,
            realised=realised,
            cost=self.lattice.cost.name,
            sensitivity=self.lattice.sensitivity,
            shape="unimodal",
            mean_absolute_error=self.mean_absolute_error,
            mean_squared_error=self.mean_squared_error,
            worst_error=self.worst_error,
            argument=argument,
        )


def least_real_noise(promise: Promise, sensitivity: Real, cost: Cost) -> LeastRealNoise:
    """A law within about a thousandth of the least cost of any real-valued noise that keeps the promise.

    Raises ``InputError`` unless the sensitivity is positive, and where the noise would need too many cells.

    >>> from tightrope.certificates import Budget
    >>> noise = least_real_noise(Promise.of(Budget(epsilon=3, delta=1e-6)), 1, Cost.of("absolute"))
    >>> noise.mean_absolute_error < 0.2349, noise.certificate.gap < 2e-3
    (True, True)
    """
    width = positive("sensitivity", sensitivity)
    most = MOST_REAL_CELLS // _levels(promise)
    lattice = finest(cost, width, promise.slowest, most, above=True)
    table = least_table(promise, lattice.cells, lattice.above, "unimodal").table
    return LeastRealNoise(table, promise, lattice)


def real_bound(promise: Promise, lattice: Lattice) -> tuple[float, tuple[Multiplier, ...]]:
    """No real noise that keeps the promise costs less; and the numbers that prove it."""
    multipliers = proving_multipliers(promise, lattice.cells, lattice.below)
    found = proven_least(multipliers, lattice.below, "any") * lattice.unit
    return max(
        float(np.nextafter(found * (1 - 2.0**-50), -np.inf)), float(lattice.cost.at(np.zeros(1))[0])
    ), multipliers


def _proven(promise: Promise, lattice: Lattice, upper: float) -> tuple[float, Argument]:
    """The best bound found, refining the lattice until it is near ``upper``."""
    best, why = 0.0, Argument("dual", DUAL, {})
    for rows in BOUND_ROWS if lattice.cost.power is not None else BOUND_ROWS[:1]:
        most = int((rows / (len(promise.points) * _levels(promise))) ** 0.5)
        finer = finest(lattice.cost, lattice.sensitivity, promise.slowest, most, above=False)
        found, multipliers = real_bound(promise, finer)
        if found >= best:
            best, why = found, _argument(finer, multipliers)
        if upper <= best * (1 + CLOSE_GAP):
            break
    return min(best, upper), why


def _levels(promise: Promise) -> int:
    """About how many sensitivities the noise is wide."""
    return len(Reference.of(searched(promise), 1).weights)


def _argument(lattice: Lattice, multipliers: tuple[Multiplier, ...]) -> Argument:
    plain = dual_argument(multipliers, lattice.below)
    numbers = {"cells": lattice.cells, "width": lattice.width, "unit": lattice.unit, **plain.numbers}
    return Argument("dual", DUAL + BETWEEN, numbers)
