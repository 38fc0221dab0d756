"""The least noise for real-valued answers: a law with steps, a bound that no real noise beats, and no sampler."""

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
from tightrope.mechanisms.mechanism import Continuous
from tightrope.mechanisms.staircase import Staircase, staircase
from tightrope.noise.program.certificate import DUAL, Certified, dual_argument, expense, realized_guarantee
from tightrope.noise.program.closed_form import packing_bound, rounded_up
from tightrope.noise.program.dual import Multiplier, proven_least
from tightrope.noise.program.repair import Reference
from tightrope.noise.program.request import Cost, Promise, Shape
from tightrope.noise.program.search import best_staircase, least_table, proving_multipliers, searched
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import Real, positive

# Real-valued noise between two lattices of m cells a sensitivity (theory §4.2): costs of cells, costs of nodes.
#
# **Above.** A whole number K that keeps the points for shifts 1..m, unimodal, and U uniform on (−½, ½) give X = h(K +
# U), h = Δ/m. A shift by h(d + t), 0 ≤ t < 1, compares cells at distance d with probability 1 − t and d + 1 with
# probability t, so X keeps the points at every real shift up to Δ. Its cost is Σ p_k E φ(h|k + U|).
#
# **Below.** Let y solve the program at the nodes hℤ for shifts hd and be linear between them. For every real noise
# the bound of ``noise_dual`` holds with the infimum of r over the real line. Where φ is linear between nodes r is,
# too, and nodes suffice; x² is at least its chord less h²/4; any non-decreasing φ is at least the chord of its values
# one node before.

CELL_PARTS = 16
"""Pieces of a cell over which a cost without a formula is bounded by its value at the outer end."""
FOLLOWED_NATS = 40.0
"""Nats that a staircase is followed down."""
COARSEST, FINEST = 4, 64


@dataclass(frozen=True, slots=True)
class Lattice:
    """Cells of width Δ/m. Costs are in units of h^p for |x|^p, else as they are."""

    sensitivity: float
    cells: int
    cost: Cost

    @property
    def width(self) -> float:
        """H = Δ/m."""
        return self.sensitivity / self.cells

    @property
    def unit(self) -> float:
        """What costs are multiples of."""
        return self.width**self.cost.power if self.cost.power is not None else 1.0

    def above(self, last: int) -> Floats:
        """E φ(h|k + U|) for k = 0..last, or a little more."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return np.where(k == 0, 0.25, k)
        if self.cost.power == 2:
            return np.asarray(k * k + 1 / 12)
        return np.array([self.of_cell(cell) for cell in k.tolist()])

    def of_cell(self, k: float) -> float:
        """E φ(h|k + U|), or a little more, for a cost without a formula: pieces cost what their outer end costs."""
        parts = np.arange(1, CELL_PARTS + 1) / CELL_PARTS
        ends = parts / 2 if k == 0 else k - 0.5 + parts
        return float(self.cost.at(self.width * ends).mean()) * (1 + 2.0**-48)

    def below(self, last: int) -> Floats:
        """Node values k = 0..last of a function, linear between nodes, that is nowhere above the cost."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return k
        if self.cost.power == 2:
            return np.asarray(k * k - 0.25)
        return self.cost.at(self.width * np.maximum(k - 1, 0.0))


def finest(cost: Cost, sensitivity: float, epsilon: float, most: int, *, above: bool) -> Lattice:
    """The lattice of at most ``most`` cells that suits best: judged by the best staircase of ε alone.

    Its steps fall on nodes or between them, as the number of cells decides; ε = 0 takes the finest.
    """
    choices = range(COARSEST, max(COARSEST, min(most, FINEST)) + 1)
    lattices = [Lattice(sensitivity, cells, cost) for cells in choices]
    if not epsilon > 0:
        return lattices[-1]
    if above:
        return min(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=True))
    return max(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=False))


def staircase_cost(lattice: Lattice, epsilon: float, *, above: bool) -> float:
    """The least cost of a law that is flat on |k| < r and then falls by e^{−ε} every m cells, over r = 1..m.

    >>> fine = Lattice(1.0, 48, Cost.of("absolute"))
    >>> round(staircase_cost(fine, 1.0, above=True), 3)  # e^{ε/2} / (e^ε − 1) = 0.9595...
    0.96
    """
    last = lattice.cells * (math.ceil(FOLLOWED_NATS / epsilon) + 2)
    costs = lattice.above(last) if above else lattice.below(last)
    return best_staircase(epsilon, lattice.cells, costs)[0] * lattice.unit


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

    >>> from tightrope.documents import Budget
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
        best = scipy.optimize.minimize_scalar(
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
    guarantee, realised = realized_guarantee(noise.loss, promise)
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
    power = lattice.cost.power
    packed_found = 0.0 if power is None else packing_bound(promise, lattice.sensitivity, power)
    best, why = (
        packed_found,
        Argument("theorem", PACKING, {"points": [list(point) for point in promise.uncapped.points]}),
    )
    if best > 0 and promise.slowest > LARGEST_LATTICE_EPSILON:
        return _at_most(best, upper), why
    for rows in BOUND_ROWS if lattice.cost.power is not None else BOUND_ROWS[:1]:
        if upper <= best * (1 + CLOSE_GAP):
            break
        most = int((rows / (len(promise.points) * _levels(promise))) ** 0.5)
        finer = finest(lattice.cost, lattice.sensitivity, promise.slowest, most, above=False)
        found, multipliers = real_bound(promise, finer)
        if found >= best:
            plain = dual_argument(multipliers, finer.below)
            numbers = {"cells": finer.cells, "width": finer.width, "unit": finer.unit, **plain.numbers}
            best, why = found, Argument("dual", DUAL + BETWEEN, numbers)
    return _at_most(best, upper), why


def _at_most(bound: float, cost: float) -> float:
    """The bound, which rounding may lift above a cost that meets it; a bound that refutes the cost is a fault."""
    if bound > cost * (1 + PROOF_ROUNDING):
        raise PrecisionError(f"a lower bound of {bound!r} contradicts a cost of {cost!r} that is reached")
    return min(bound, cost)


def _levels(promise: Promise) -> int:
    """About how many sensitivities the noise is wide."""
    return len(Reference.of(searched(promise), 1).weights)
