"""Certificates of least noise: built when they are asked for, from the table that is sampled."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Guarantee
from tightrope.documents.document import TablePart
from tightrope.documents.noise import NOISES, Argument, NoiseCertificate
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.noise.program.closed_form import least_cost, least_tails, rounded_up
from tightrope.noise.program.dual import Costs, Multiplier, proven_least
from tightrope.noise.program.request import DOUBLINGS, GROWTH, Cost, Promise, Shape
from tightrope.noise.program.search import least_table, proving_multipliers, steep_noise
from tightrope.noise.program.steep_noise import Steep
from tightrope.numerics.arrays import Floats
from tightrope.randomness.alias_sampler import TOTAL

# What a table costs: E φ(|X|) from the whole-number weights that are sampled, rounded up.

DEEP = Fraction(1, 1 << 60)


def expense(table: NoiseTable, cost: Cost) -> float:
    """E φ(|X|), rounded up. Raises ``InputError`` for a cost that grows too fast where the noise never ends.

    >>> expense(NoiseTable(2**127, (2**126,)), Cost.of("absolute"))
    0.5
    """
    if cost.power == 1:
        return rounded_up(table.exact_mean_absolute)
    if cost.power == 2:
        return rounded_up(table.exact_mean_squared)
    if table.tail is None:
        return rounded_up(finite_expense(table, cost.at(np.arange(table.worst + 1))))
    # φ(0) + 2 Σ_k (φ(k) − φ(k−1)) P(X ≥ k) up to M, and beyond it 2 Σ_j 16^{j+1} φ(M) P(X > 2^j M), j = 0, 1, …
    # φ grows at most sixteenfold where the error doubles (checked), and the tail is geometric: the last term of the
    # sum, taken twice, covers all further ones.
    last = 1
    while table.survival(last) > DEEP:
        last *= 2
    cost.check_growth(float(last))
    values = [Fraction(value) for value in cost.at(np.arange(last + 1.0)).tolist()]
    inside = sum((b - a) * table.survival(k) for k, (a, b) in enumerate(pairwise(values)))
    terms = [Fraction(int(GROWTH)) ** (j + 1) * table.survival(last << j) for j in range(DOUBLINGS // 2)]
    return rounded_up(values[0] + 2 * inside + 2 * values[-1] * (sum(terms) + terms[-1]))


def finite_expense(table: NoiseTable, values: Floats) -> Fraction:
    """Σ p_x c_|x| for a table that ends, exactly, from the float costs c_0..c_N."""
    costs = [Fraction(value) for value in values.tolist()]
    return Fraction(sum(2 * w * c for w, c in zip(table.half, costs[1:], strict=True)) + table.centre * costs[0], TOTAL)


THEOREM = (
    "For every noise that keeps the points at shift 1, P(|X| >= k) >= 2 G_k with G_1 = max_i (1 - delta_i) / "
    "(1 + e^epsilon_i) and G_(k+1) = max_i e^-epsilon_i (G_k - delta_i); so it costs at least phi(0) + 2 sum_k "
    "(phi(k) - phi(k-1)) G_k. Proof: docs/proofs/optimal-noise.md."
)
DUAL = (
    "With y_k = values[k - start] (left before, 0 behind), 0 <= y_k <= cap, every noise that keeps delta at epsilon "
    "for each shift costs at least min_k (r_k + r_-k)/2 - sum cap delta with r_k = c_k + sum (y_k - e^epsilon "
    "y_(k+shift)), c_k the cost of the error k. Proof: docs/proofs/optimal-noise.md."
)
STEEP_BOUND = (
    "Of every noise that keeps delta at epsilon for all shifts up to the sensitivity, P(X = 0) <= e^epsilon P(X = d) + "
    "delta, so it costs at least c_0 + (1 - delta) level with level = 2 sum_d (c_d - c_0) / (e^epsilon + 2 "
    "sensitivity), d = 1..sensitivity, where level <= c_1 - c_0. Proof: docs/proofs/optimal-noise.md."
)


class Certified(Mechanism):
    """A mechanism with a certificate of how good it is."""

    __slots__ = ()

    certificate: NoiseCertificate


class Proof(ABC):
    """What is known about one noise: enough to write its certificate."""

    @abstractmethod
    def certificate(self, table: NoiseTable) -> NoiseCertificate:
        """The certificate of the table that is sampled."""


@dataclass(frozen=True)
class Bound:
    """A lower bound on the cost of every integer noise that keeps a promise."""

    promise: Promise
    sensitivity: int
    cost: Cost

    @cached_property
    def multipliers(self) -> tuple[Multiplier, ...]:
        """Numbers that prove it for a sensitivity above 1: the linear program over all shifts."""
        return proving_multipliers(self.promise, self.sensitivity, self.costs)

    def costs(self, last: int) -> Floats:
        """c_0..c_last."""
        return self.cost.at(np.arange(last + 1.0))

    @cached_property
    def steep(self) -> Steep:
        """The closed form of a large ε and its bound, which no multipliers in floats could prove."""
        return steep_noise(self.promise, self.sensitivity, self.costs)

    @cached_property
    def _dual(self) -> float:
        """What the multipliers prove; nothing where the closed form leaves no room."""
        return 0.0 if self.steep.tight else proven_least(self.multipliers, self.costs, "any")

    @cached_property
    def value(self) -> float:
        """The bound, rounded down."""
        if self.sensitivity == 1:
            return least_cost(least_tails(self.promise.uncapped.points), self.cost)
        return max(self._dual, self.steep.bound)

    @property
    def argument(self) -> Argument:
        """Why it holds."""
        numbers = {"points": [list(point) for point in self.promise.uncapped.points]}
        if self.sensitivity == 1:
            return Argument("theorem", THEOREM, numbers)
        if self.steep.bound >= self._dual and self.steep.bound > 0:
            return Argument("theorem", STEEP_BOUND, numbers)
        return dual_argument(self.multipliers, self.costs)


@dataclass(frozen=True)
class LeastProof(Proof):
    """One release: the bound, the shape of the noise, and the numbers of its own program where there was one."""

    bound: Bound
    shape: Shape
    multipliers: tuple[Multiplier, ...] = ()

    def certificate(self, table: NoiseTable) -> NoiseCertificate:
        upper = expense(table, self.bound.cost)
        proven = (self.bound.value, self.bound.argument)
        found = certified(table, self.bound, proven, upper, self.shape, self._price(upper))
        return replace(found, shape_lower=min(upper, max(found.lower, self._shape_lower)))

    @property
    def _shape_lower(self) -> float:
        """No noise of the same shape costs less: what the program's own multipliers prove."""
        return proven_least(self.multipliers, self.bound.costs, self.shape) if self.multipliers else 0.0

    def _price(self, upper: float) -> float:
        """How much more the least unimodal noise costs, at most."""
        bound = self.bound
        if bound.sensitivity == 1:
            return 0.0
        own = self.shape == "unimodal"
        other = upper if own else expense(self._unimodal(), bound.cost)
        return other / bound.value - 1 if bound.value > 0 else (0.0 if other == 0 else math.inf)

    def _unimodal(self) -> NoiseTable:
        return least_table(self.bound.promise, self.bound.sensitivity, self.bound.costs, "unimodal").table


def dual_argument(multipliers: Sequence[Multiplier], costs: Costs) -> Argument:
    """The numbers of a dual bound, with the costs of the errors that they look at."""
    reach = max((m.reach for m in multipliers), default=1)
    numbers = {"costs": costs(reach + 1).tolist(), "multipliers": [m.to_data() for m in multipliers]}
    return Argument("dual", DUAL, numbers)


def certified(
    table: NoiseTable,
    bound: Bound,
    proven: tuple[float, Argument],
    upper: float,
    shape: str,
    price: float | None = None,
    releases: int = 1,
) -> NoiseCertificate:
    """The certificate of a table for one or more releases of what ``bound`` asks; ``proven`` is its lower bound."""
    guarantee, realised = realized_guarantee(releases * table.loss(bound.sensitivity), bound.promise)
    return NoiseCertificate(
        lower=min(proven[0], upper),
        upper=upper,
        guarantee=guarantee,
        realised=realised,
        cost=bound.cost.name,
        sensitivity=bound.sensitivity,
        shape=shape,
        mean_absolute_error=table.mean_absolute,
        mean_squared_error=table.mean_squared,
        worst_error=table.worst,
        argument=proven[1],
        unimodal_price=price,
        releases=releases,
        table=written_table(table),
    )


def written_table(table: NoiseTable) -> TablePart:
    """The table as it is written."""
    return NOISES.data(table.to_data(), TablePart)


def realized_guarantee(loss: PrivacyLoss, promise: Promise) -> tuple[Guarantee, tuple[tuple[float, float, float], ...]]:
    """The triple that a loss realises at the promised ε, and (ε, δ promised, δ realised) for every point."""
    realised = tuple((epsilon, delta, float(loss.delta(epsilon))) for epsilon, delta in promise.points)
    epsilon = promise.main[0]
    return Guarantee(epsilon, float(loss.delta(epsilon)), loss.total_variation()), realised
