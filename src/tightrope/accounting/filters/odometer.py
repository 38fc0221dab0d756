"""An odometer: a running bound, valid at all times at once, for adaptive parameters without a declared total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.filters.filter import ROUNDING_ALLOWANCE, LossAccount
from tightrope.accounting.filters.moments import log_moments
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.numerics.checks import check_nonempty, check_positive, inner_probability, non_negative

ODOMETER_ORDERS = tuple(2.0**j for j in range(-2, 9))
"""Default orders; each has an equal part of the failure probability."""


@dataclass(frozen=True, slots=True)
class DirectionSums:
    """Sums over the charges of one direction: log moments at each order, largest finite losses, infinite masses."""

    moments: tuple[Fraction, ...]
    largest: float
    infinite_mass: Fraction

    @classmethod
    def from_loss(cls, total: Composition, orders: tuple[float, ...]) -> DirectionSums:
        """Return the amounts that one charge adds, rounded up."""
        bounds = log_moments(total, orders)
        rounding = math.fsum(n * law.rounding_bound for law, n in zip(total.laws, total.counts, strict=True))
        moments = tuple(Fraction(float(value)) for value in bounds.values)
        return cls(moments, max(0.0, total.largest_loss + rounding), Fraction(bounds.infinite_mass))

    def __add__(self, other: DirectionSums) -> DirectionSums:
        moments = tuple(a + b for a, b in zip(self.moments, other.moments, strict=True))
        largest = math.nextafter(self.largest + other.largest, math.inf)
        return DirectionSums(moments, largest, self.infinite_mass + other.infinite_mass)


@final
class Odometer(LossAccount[tuple[DirectionSums, DirectionSums]]):
    """Charge any losses, chosen in any way; ``reading`` bounds the privacy loss so far, at all times at once.

    With z_1..z_m = ``orders`` and δ' = ``delta`` − ``infinite_mass``, the reading is, for the worse direction,
    u = min{Σ largest_i, min_j (Σ K_i(z_j) + log(m/δ')) / z_j}. **Theorem** (``docs/proofs/filters.md``; in the manner
    of Rogers et al. 2016): for every stopping time τ, which may depend on the outputs, and every set A of
    transcripts, P(A) ≤ ∫_A e^{u_τ} dQ + δ. So P(A) ≤ e^ε Q(A) + δ for every A of transcripts with a reading of at
    most ε, for all ε together. Without infinite masses, moreover, the realized loss of the transcript exceeds the
    reading at *some* time with probability at most δ.

    The reading depends on outputs if parameters do: it is a statement about this run, not an (ε, δ) of the whole
    procedure, which a filter gives. Only infinite masses beyond the declared sum are refused. Neighbors: as
    declared, or as in the first charge. Raises ``InputError`` unless 0 ≤ infinite_mass < delta < 1 and all z > 0.

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
        neighbors: Neighbors = Neighbors.UNSPECIFIED,
    ) -> None:
        self._delta = inner_probability("delta", delta, "much smaller than 1/(number of people)")
        self._infinite = non_negative("infinite_mass", infinite_mass) * ROUNDING_ALLOWANCE
        if not self._infinite < self._delta:
            raise InputError("infinite_mass", infinite_mass, f"below delta={delta!r}", "delta covers both")
        check_nonempty("orders", orders, "leave it out for powers of two from 1/4 to 256")
        self._orders = tuple(check_positive("order", order) for order in orders)
        zero = DirectionSums((Fraction(0),) * len(self._orders), 0.0, Fraction(0))
        self._sums = (zero, zero)
        super().__init__(neighbors)

    @property
    def delta(self) -> float:
        """The probability with which the readings may fail, declared beforehand."""
        return self._delta

    @property
    def reading(self) -> float:
        """Bound in nats on the privacy loss of everything charged so far, valid at all times at once."""
        with self._lock:
            sums = self._sums
        return max(self._rounded_reading(direction) for direction in sums)

    def _rounded_reading(self, direction: DirectionSums) -> float:
        """Return the reading of one direction, with every term rounded up."""
        failure = math.nextafter(self._delta - self._infinite, 0.0)
        penalty = math.log(len(self._orders) / failure) * (1 + 4e-16)
        pairs = zip(direction.moments, self._orders, strict=True)
        return min(direction.largest, *((float(moment) + penalty) / z * (1 + 1e-15) for moment, z in pairs))

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction and without a budget: except with probability "
            f"{self._delta:.12g} the privacy loss stays below the reading at all times, now {self.reading:.6g}; this "
            f"holds for this run so far and is no (epsilon, delta) of the whole procedure"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> tuple[DirectionSums, DirectionSums]:
        remove, add = (log_moments(direction, self._orders).values for direction in (loss.remove, loss.add))
        if not all(map(math.isfinite, [*remove, *add])):
            raise InsufficientBudgetError(
                f"this loss has no finite moment of order {max(self._orders)!r}; declare smaller orders"
            )
        return DirectionSums.from_loss(loss.remove, self._orders), DirectionSums.from_loss(loss.add, self._orders)

    def _refusal_reason(self, cost: tuple[DirectionSums, DirectionSums]) -> str:
        needed = max((spent + added).infinite_mass for spent, added in zip(self._sums, cost, strict=True))
        if needed <= self._infinite:
            return ""
        return (
            f"the infinite masses would add up to {float(needed):.6g}, and infinite_mass={self._infinite:.6g} was "
            f"declared; create the odometer with a larger one (below delta), or use a mechanism without infinite mass"
        )

    def _spend_cost(self, cost: tuple[DirectionSums, DirectionSums]) -> None:
        self._sums = (self._sums[0] + cost[0], self._sums[1] + cost[1])
