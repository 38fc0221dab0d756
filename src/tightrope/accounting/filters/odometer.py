"""A running statement, valid at all times at once, when parameters are chosen adaptively and no total was declared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.filters.filter import ROOM, Gate
from tightrope.accounting.filters.moments import log_moments
from tightrope.accounting.neighbors import Neighbours
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import BudgetRefused, InputError
from tightrope.numerics.checks import filled, inner_probability, non_negative, positive

ODOMETER_ORDERS = tuple(2.0**j for j in range(-2, 9))
"""Orders that share the failure probability equally unless others are given."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Sums of one direction: log moments at every order, the largest finite losses, the infinite masses."""

    moments: tuple[Fraction, ...]
    largest: float
    infinite_mass: Fraction

    @classmethod
    def of(cls, total: Composition, orders: tuple[float, ...]) -> Direction:
        """What one charge adds, rounded up."""
        found = log_moments(total, orders)
        slack = math.fsum(n * law.slack for law, n in zip(total.laws, total.counts, strict=True))
        moments = tuple(Fraction(float(value)) for value in found.values)
        return cls(moments, max(0.0, total.largest + slack), Fraction(found.infinite_mass))

    def __add__(self, other: Direction) -> Direction:
        moments = tuple(a + b for a, b in zip(self.moments, other.moments, strict=True))
        largest = math.nextafter(self.largest + other.largest, math.inf)
        return Direction(moments, largest, self.infinite_mass + other.infinite_mass)


@final
class Odometer(Gate[tuple[Direction, Direction]]):
    """Charge anything, chosen in any way; ``reading`` bounds the privacy loss so far, at all times at once.

    With z_1..z_m = ``orders`` and δ' = ``delta`` − ``infinite_mass``, the reading is, for the worse direction,
    u = min{Σ largest_i, min_j (Σ K_i(z_j) + log(m/δ')) / z_j}. **Theorem** (``docs/proofs/filters.md``; in the manner
    of Rogers et al. 2016): for every time τ at which somebody stops after seeing the outputs, and every set A of
    transcripts, P(A) ≤ ∫_A e^{u_τ} dQ + δ. So P(A) ≤ e^ε Q(A) + δ for every A of transcripts with a reading of at
    most ε, for all ε together. Without infinite masses, moreover, the realised loss of the transcript exceeds the
    reading at *some* time with probability at most δ.

    The reading depends on outputs where parameters do: it is a statement about this run and no (ε, δ) of the whole
    procedure, which a filter gives. Nothing is refused but infinite masses beyond the declared sum. Neighbours: as
    declared, or those of the first charge. Raises ``InputError`` unless 0 ≤ infinite_mass < delta < 1 and all z > 0.

    >>> from tightrope import gaussian, laplace
    >>> odometer = Odometer(delta=1e-6)
    >>> odometer.reading
    0.0
    >>> odometer.charge(laplace(scale=10).loss)
    >>> round(odometer.reading, 3)
    0.1
    >>> odometer.charge(gaussian(scale=10).loss)
    >>> round(odometer.reading, 3)
    0.668
    """

    def __init__(
        self,
        *,
        delta: float,
        infinite_mass: float = 0.0,
        orders: Sequence[float] = ODOMETER_ORDERS,
        neighbours: Neighbours = Neighbours.UNSPECIFIED,
    ) -> None:
        self._delta = inner_probability("delta", delta, "well below one over the number of people")
        self._infinite = non_negative("infinite_mass", infinite_mass) * ROOM
        if not self._infinite < self._delta:
            raise InputError("infinite_mass", infinite_mass, f"below delta={delta!r}", "delta pays for both")
        filled("orders", orders, "leave it out for powers of two from 1/4 to 256")
        self._orders = tuple(positive("order", order) for order in orders)
        nothing = Direction((Fraction(0),) * len(self._orders), 0.0, Fraction(0))
        self._sums = (nothing, nothing)
        super().__init__(neighbours)

    @property
    def delta(self) -> float:
        """The probability with which the readings may fail, declared beforehand."""
        return self._delta

    @property
    def reading(self) -> float:
        """Nats: bound on the privacy loss of everything charged so far, valid at all times at once."""
        with self._lock:
            sums = self._sums
        return max(self._reading(direction) for direction in sums)

    def _reading(self, direction: Direction) -> float:
        """Every term rounded up."""
        failure = math.nextafter(self._delta - self._infinite, 0.0)
        spent = math.log(len(self._orders) / failure) * (1 + 4e-16)
        pairs = zip(direction.moments, self._orders, strict=True)
        return min(direction.largest, *((float(moment) + spent) / z * (1 + 1e-15) for moment, z in pairs))

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction and without a budget: except with probability "
            f"{self._delta:.12g} the privacy loss stays below the reading at all times, now {self.reading:.6g}; this "
            f"speaks of the run so far and is no (epsilon, delta) of the whole procedure"
        )

    def _cost(self, loss: PrivacyLoss) -> tuple[Direction, Direction]:
        remove, add = (log_moments(direction, self._orders).values for direction in (loss.remove, loss.add))
        if not all(map(math.isfinite, [*remove, *add])):
            raise BudgetRefused(
                f"this loss has no finite moment of order {max(self._orders)!r}; declare smaller orders"
            )
        return Direction.of(loss.remove, self._orders), Direction.of(loss.add, self._orders)

    def _refusal(self, cost: tuple[Direction, Direction]) -> str:
        needed = max((spent + more).infinite_mass for spent, more in zip(self._sums, cost, strict=True))
        if needed <= self._infinite:
            return ""
        return (
            f"the infinite masses would add up to {float(needed):.6g}, and infinite_mass={self._infinite:.6g} was "
            f"declared; make the odometer with a larger one (below delta), or use a mechanism without"
        )

    def _spend(self, cost: tuple[Direction, Direction]) -> None:
        self._sums = (self._sums[0] + cost[0], self._sums[1] + cost[1])
