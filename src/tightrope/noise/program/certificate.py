"""Certificates of least noise: built on demand from the sampled table."""

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
from tightrope.noise.program.closed_form import SteepNoise, cost_from_tails, least_noise_tails, round_up
from tightrope.noise.program.dual import Costs, DualMultiplier, proven_least_cost
from tightrope.noise.program.request import DOUBLINGS, MAX_GROWTH, ErrorCost, PrivacyTarget, Shape
from tightrope.noise.program.search import least_table, proving_multipliers, steep_noise
from tightrope.numerics.arrays import Floats
from tightrope.randomness.alias_sampler import TOTAL

# The cost of a table: E φ(|X|) from the sampled integer weights, rounded up.

SMALL_TAIL = Fraction(1, 1 << 60)
"""The sum of costs is exact up to an error with at most this tail probability, and bounded beyond it."""


def certified_cost(table: NoiseTable, cost: ErrorCost) -> float:
    """Return E φ(|X|), rounded up; ``InputError`` if the cost grows too fast for unbounded noise.

    >>> certified_cost(NoiseTable(2**127, (2**126,)), ErrorCost.from_argument("absolute"))
    0.5
    """
    if cost.power == 1:
        return round_up(table.exact_mean_absolute)
    if cost.power == 2:
        return round_up(table.exact_mean_squared)
    if table.tail is None:
        return round_up(finite_table_cost(table, cost.values_at(np.arange(table.largest_magnitude + 1))))
    # φ(0) + 2 Σ_k (φ(k) − φ(k−1)) P(X ≥ k) up to M, and beyond it 2 Σ_j 16^{j+1} φ(M) P(X > 2^j M), j = 0, 1, …
    # φ grows at most sixteenfold where the error doubles (checked), and the tail is geometric: the last term of the
    # sum, taken twice, covers all further ones.
    last = 1
    while table.survival_probability(last) > SMALL_TAIL:
        last *= 2
    cost.check_growth(float(last))
    values = [Fraction(value) for value in cost.values_at(np.arange(last + 1.0)).tolist()]
    inner_sum = sum((b - a) * table.survival_probability(k) for k, (a, b) in enumerate(pairwise(values)))
    outer_terms = [
        Fraction(int(MAX_GROWTH)) ** (j + 1) * table.survival_probability(last << j) for j in range(DOUBLINGS // 2)
    ]
    return round_up(values[0] + 2 * inner_sum + 2 * values[-1] * (sum(outer_terms) + outer_terms[-1]))


def finite_table_cost(table: NoiseTable, values: Floats) -> Fraction:
    """Return the exact Σ p_x c_|x| of a bounded table, from the float costs c_0..c_N."""
    costs = [Fraction(value) for value in values.tolist()]
    return Fraction(sum(2 * w * c for w, c in zip(table.half, costs[1:], strict=True)) + table.center * costs[0], TOTAL)


# Certificates: the bound on the cost, its argument, and the realized guarantee.

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


class CertifiedMechanism(Mechanism):
    """A mechanism with a certificate of near-optimality."""

    __slots__ = ()

    certificate: NoiseCertificate


class CertificateBuilder(ABC):
    """The data from which the certificate of a noise is built, on demand."""

    @abstractmethod
    def build_certificate(self, table: NoiseTable) -> NoiseCertificate:
        """Return the certificate of the table that is sampled."""


@dataclass(frozen=True)
class CostBound:
    """A lower bound on the cost of every integer noise that meets a guarantee."""

    privacy_target: PrivacyTarget
    sensitivity: int
    cost: ErrorCost

    @cached_property
    def dual_multipliers(self) -> tuple[DualMultiplier, ...]:
        """Multipliers that prove the bound for a sensitivity above 1, from the linear program over all shifts."""
        return proving_multipliers(self.privacy_target, self.sensitivity, self.error_costs)

    def error_costs(self, last: int) -> Floats:
        """Return the costs c_0..c_last."""
        return self.cost.values_at(np.arange(last + 1.0))

    @cached_property
    def steep_closed_form(self) -> SteepNoise:
        """The closed form for large ε and its bound, where multipliers in floats are too inaccurate."""
        return steep_noise(self.privacy_target, self.sensitivity, self.error_costs)

    @cached_property
    def _dual_bound(self) -> float:
        """The lower bound proven by the multipliers; 0 if the closed form is already tight."""
        return (
            0.0
            if self.steep_closed_form.is_tight
            else proven_least_cost(self.dual_multipliers, self.error_costs, "any")
        )

    @cached_property
    def lower_bound(self) -> float:
        """The lower bound on the cost, rounded down."""
        if self.sensitivity == 1:
            return cost_from_tails(least_noise_tails(self.privacy_target.without_cap_point.points), self.cost)
        return max(self._dual_bound, self.steep_closed_form.lower_bound)

    @property
    def bound_argument(self) -> Argument:
        """The reason why the bound holds."""
        numbers = {"points": [list(point) for point in self.privacy_target.without_cap_point.points]}
        if self.sensitivity == 1:
            return Argument("theorem", THEOREM, numbers)
        if self.steep_closed_form.lower_bound >= self._dual_bound and self.steep_closed_form.lower_bound > 0:
            return Argument("theorem", STEEP_BOUND, numbers)
        return dual_argument(self.dual_multipliers, self.error_costs)


@dataclass(frozen=True)
class SingleReleaseProof(CertificateBuilder):
    """Builds the certificate of noise for one release.

    ``shape_multipliers`` are those of the linear program for noise of this shape; empty without a program.
    """

    bound: CostBound
    shape: Shape
    shape_multipliers: tuple[DualMultiplier, ...] = ()

    def build_certificate(self, table: NoiseTable) -> NoiseCertificate:
        upper = certified_cost(table, self.bound.cost)
        bound_and_argument = (self.bound.lower_bound, self.bound.bound_argument)
        certificate = table_certificate(
            table, self.bound, bound_and_argument, upper, self.shape, self._unimodal_price(upper)
        )
        return replace(certificate, shape_lower=min(upper, max(certificate.lower, self._shape_lower)))

    @property
    def _shape_lower(self) -> float:
        """A lower bound on the cost of noise of the same shape; 0 without multipliers."""
        return (
            proven_least_cost(self.shape_multipliers, self.bound.error_costs, self.shape)
            if self.shape_multipliers
            else 0.0
        )

    def _unimodal_price(self, upper: float) -> float:
        """Return an upper bound on the relative additional cost of the best unimodal noise."""
        bound = self.bound
        if bound.sensitivity == 1:
            return 0.0
        unimodal_cost = upper if self.shape == "unimodal" else certified_cost(self._least_unimodal_table(), bound.cost)
        if bound.lower_bound > 0:
            return unimodal_cost / bound.lower_bound - 1
        return 0.0 if unimodal_cost == 0 else math.inf

    def _least_unimodal_table(self) -> NoiseTable:
        return least_table(self.bound.privacy_target, self.bound.sensitivity, self.bound.error_costs, "unimodal").table


def dual_argument(multipliers: Sequence[DualMultiplier], costs: Costs) -> Argument:
    """Return the argument of a dual bound: its multipliers, and the costs of the errors up to their reach."""
    reach = max((m.index_reach for m in multipliers), default=1)
    numbers = {"costs": costs(reach + 1).tolist(), "multipliers": [m.to_data() for m in multipliers]}
    return Argument("dual", DUAL, numbers)


def table_certificate(
    table: NoiseTable,
    bound: CostBound,
    bound_and_argument: tuple[float, Argument],
    upper: float,
    shape: str,
    price: float | None = None,
    releases: int = 1,
) -> NoiseCertificate:
    """Return the certificate of a table for one or more releases; ``bound_and_argument`` is the proven lower bound.

    ``shape`` is what was asked for; a table that is not unimodal, which one step of sensitivity permits, is stated as
    of any shape.
    """
    guarantee, realized = realized_guarantee(releases * table.loss(bound.sensitivity), bound.privacy_target)
    return NoiseCertificate(
        lower=min(bound_and_argument[0], upper),
        upper=upper,
        guarantee=guarantee,
        realized=realized,
        cost=bound.cost.name,
        sensitivity=bound.sensitivity,
        shape=shape if table.is_unimodal else "any",
        mean_absolute_error=table.mean_absolute,
        mean_squared_error=table.mean_squared,
        worst_error=table.largest_magnitude,
        argument=bound_and_argument[1],
        unimodal_price=price,
        releases=releases,
        table=table_document(table),
    )


def table_document(table: NoiseTable) -> TablePart:
    """Return the table in its serialized form."""
    return NOISES.convert_data(table.to_data(), TablePart)


def realized_guarantee(
    loss: PrivacyLoss, target: PrivacyTarget
) -> tuple[Guarantee, tuple[tuple[float, float, float], ...]]:
    """Return the realized (ε, δ, η) at the main point's ε, and (ε, requested δ, realized δ) of every point."""
    realized = tuple((epsilon, delta, float(loss.delta(epsilon))) for epsilon, delta in target.points)
    epsilon = target.main_point[0]
    return Guarantee(epsilon, float(loss.delta(epsilon)), loss.total_variation()), realized
