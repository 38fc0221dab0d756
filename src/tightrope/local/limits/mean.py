"""Worst-case limits: Fano's method for many distributions, a mean with a bounded moment, a mean in a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, gammaln, logsumexp, rel_entr

from tightrope.channels import kernel
from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.local.limits.constraint import AnyMechanism, Constraint
from tightrope.local.limits.fisher_information import ProportionLimit, mean_on_sphere
from tightrope.local.limits.limit import COSTS, Cost, Hypotheses, Limit, lower_bound
from tightrope.local.limits.testing import Assouad, LeCam, best_risk
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite, check_integer, check_non_negative, check_positive, check_probability
from tightrope.numerics.distributions import normalize_stochastic_matrix
from tightrope.numerics.root_finding import find_crossing


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """M distributions P_v of one person's value; any two of their parameters are at least a separation apart.

    ``log_count`` is log M in nats; ``information`` an upper bound on I(V; X) for a uniform V, and ``capacity`` one for
    every distribution of V; ``distance`` an upper bound on TV(P_v, R) to one reference R for every v; ``laws`` has the
    P_v, shape [M, values], if it was made by ``from_distributions``. If M is too large for that, use ``from_numbers``.

    >>> packing = Packing.from_distributions([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]])
    >>> round(packing.log_count, 9), round(packing.distance, 12)
    (1.098612289, 0.1)
    """

    log_count: float
    information: float
    capacity: float
    distance: float
    laws: Floats | None = None

    @classmethod
    def from_distributions(cls, laws: ArrayLike) -> Packing:
        """Return the packing of these distributions, shape [M, values]; the reference R is their average."""
        rows = normalize_stochastic_matrix(laws)
        if len(rows) < 2:
            raise InputError("laws", rows.shape, "at least two distributions, shape [M, values]")
        center = rows.mean(axis=0)
        prior = np.full(len(rows), 1 / len(rows))
        information = kernel.mutual_information(rows, prior)
        capacity = float(kernel.capacity_bounds(rows).upper)
        distance = min(1.0, float(np.max(np.abs(rows - center).sum(axis=1)) / 2))
        return cls(math.log(len(rows)), information, capacity, distance, rows)

    @classmethod
    def from_numbers(cls, *, log_count: float, information: float, distance: float) -> Packing:
        """Return a packing from bounds; ``information`` ≥ KL(P_v‖R) for every v, so it also bounds the capacity."""
        divergence = check_non_negative("information", information)
        count = check_non_negative("log_count", log_count)
        return cls(count, divergence, divergence, check_probability("distance", distance))


@dataclass(frozen=True, slots=True)
class Fano(Limit):
    """Fano's bound ℓ(τ) p ≤ risk, with p the least probability of a wrong guess of V (AAC Lemma 4).

    ``h(p) + p log(M−1) ≥ log M − I(V; Zⁿ)``, solved for p instead of weakened. The information of n reports is at most
    n κ I(V; X), n max_v KL(M_v‖M_R) for a reference R (golden formula), and (1 − (1−κ)ⁿ) log M. With ``interactive``
    mechanisms (each may depend on earlier reports) I(V; X) is replaced by its maximum over priors, and the last bound
    is left out.
    """

    constraint: Constraint
    packing: Packing
    separation: float
    cost: Cost
    interactive: bool = False

    def information_upper_bound(self, people: int) -> float:
        """Return an upper bound on I(V; Zⁿ), in nats."""
        count = check_integer("people", people)
        kappa, packing = self.constraint.kl_contraction, self.packing
        per_value = packing.capacity if self.interactive else packing.information
        bounds = [count * kappa * per_value, count * self.constraint.report_kl_bound(packing.distance, packing.laws)]
        if not self.interactive:
            contracted = 1.0 if kappa >= 1 else -math.expm1(count * math.log1p(-kappa))
            bounds.append(contracted * min(packing.log_count, count * per_value))
        return min(packing.log_count, *bounds)

    def risk(self, people: int) -> float:
        error = least_error_probability(self.packing.log_count, self.information_upper_bound(people))
        return lower_bound(self.cost(self.separation / 2) * error)


def least_error_probability(log_count: float, information: float) -> float:
    """Return the smallest p ≥ 0 with h(p) + p log(M−1) ≥ log M − I (Fano's inequality), rounded down.

    >>> round(least_error_probability(math.log(4), 0.0), 6), least_error_probability(math.log(2), 1.0)
    (0.75, 0.0)
    """
    missing = log_count - information
    if not missing > 0:
        return 0.0
    count_less_one = log_count + math.log1p(-math.exp(-log_count)) if log_count < 40 else log_count

    def information_gap(p: float) -> float:
        return missing - float(entr(p) + entr(1 - p)) - p * count_less_one

    return find_crossing(information_gap, 0.0, -math.expm1(-log_count), side="fails", relative=1e-14)


TRIED_DISTANCES = np.geomspace(1.0, 1e-9, 91).tolist()
"""Distances (ω) between the two distributions of a pair that are tried: each of them gives a valid bound."""
TRIED_DIMENSIONS = 12
"""Number of dimensions k ≤ d that are tried."""


@dataclass(frozen=True, slots=True)
class MomentLimit(Limit):
    """E (mean̂ − mean)² over all distributions with E|X|^k ≤ 1 (AAC Example 2), k > 1; k = ∞: values in [−1, 1].

    Le Cam's method with X = ∓ω^{−1/k} with probability ω and X = 0 otherwise, for the best ω: the two means are
    2ω^{1−1/k} apart, the total variation is ω. The rate is (nε²)^{−(k−1)/k}, for every ε and δ. Since values of ±1
    have every moment, the bound is at least ``limits.mean`` of [−1, 1]; for k = ∞ it equals that.
    """

    guarantee: Guarantee
    moment: float

    def __post_init__(self) -> None:
        if self.moment != math.inf and not check_finite("moment", self.moment) > 1:
            raise InputError(
                "moment", self.moment, "a number above 1", "2 is a bounded variance, math.inf a bounded value"
            )

    @property
    def guess_risk(self) -> float:
        """The worst risk of the constant estimate 0, without any reports."""
        return 1.0

    def risk(self, people: int) -> float:
        bounded = self._bounded_problem().risk(people)
        if self.moment == math.inf:
            return bounded
        return max(bounded, best_risk([self._two_point_limit(chance) for chance in TRIED_DISTANCES], people))

    def people(self, risk: float) -> int:
        """Return ``Limit.people``; for bounded values it equals ``limits.mean``."""
        if self.moment == math.inf:
            return self._bounded_problem().people(risk)
        return super(MomentLimit, self).people(risk)

    def _bounded_problem(self) -> ProportionLimit:
        return ProportionLimit(self.guarantee, 2.0)

    def _two_point_limit(self, chance: float) -> Assouad:
        """Return Le Cam's bound for ω = ``chance``; the supports share only 0, so that Σ (√P₀ − √P₁)² = 2ω."""
        pair = Hypotheses(chance, hellinger=2 * chance)
        separation = 2 * chance ** (1 - 1 / self.moment)
        return Assouad(1, LeCam(AnyMechanism(self.guarantee).report_divergence(pair), separation, COSTS["squared"]))


@dataclass(frozen=True, slots=True)
class BallLimit(Limit):
    """E ‖mean̂ − mean‖² over all distributions on an ℓ₂ ball in ℝ^d (AAC Example 3): the best of four bounds.

    Fano and Assouad use values ±r e_j with probabilities (1 ± ω v_j)/2 on a uniformly random axis j ≤ k, where v is a
    vertex of the cube {−1, 1}^k. Fano's method takes a packing of the vertices (AAC Corollary 2, Gilbert's bound on its
    size). Assouad's method takes all vertices (ours): each coordinate is a two-point problem with total variation ω/k,
    which gives the rate d/(nε²). For δ = 0 van Trees also gives the constant (ours). The fourth bound is the one for
    numbers on one axis.
    """

    guarantee: Guarantee
    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension)
        check_positive("radius", self.radius)

    @property
    def guess_risk(self) -> float:
        """The worst risk of the center as a constant estimate, without any reports."""
        return self.radius**2

    def risk(self, people: int) -> float:
        """Return the largest of ``by_fano``, ``by_assouad``, ``by_sphere`` and the bound for numbers on one axis."""
        axis = ProportionLimit(self.guarantee, 2 * self.radius).risk(people)
        return max(axis, self.by_sphere(people), self.by_fano(people), self.by_assouad(people))

    def by_sphere(self, people: int) -> float:
        """Return van Trees' bound for values on a sphere, the best of spheres in k ≤ d dimensions; 0 if δ > 0 or d = 1.

        As n → ∞ it has the constant of the best random cap.
        """
        if self.guarantee.delta > 0 or self.dimension == 1:
            return 0.0
        bounds = [mean_on_sphere(self.guarantee.epsilon, k, people) for k in self._candidate_dimensions if k > 1]
        return lower_bound(self.radius**2 * max(bounds))

    def by_assouad(self, people: int) -> float:
        """Return Σ_j ½ (ωr/k)² (1 − TV_j) for the best k ≤ d and ω ≤ 1."""
        return best_risk(
            [self._assouad_limit(k, omega) for k in self._candidate_dimensions for omega in TRIED_DISTANCES[:60:3]],
            people,
        )

    def by_fano(self, people: int) -> float:
        """Return (ωr/k)² h p for the best packing with at least h different signs; p: ``least_error_probability``."""
        return max(
            (
                self._risk_by_fano(k, fraction, omega, people)
                for k in self._candidate_dimensions
                for fraction in (0.1, 0.2, 0.3)
                for omega in TRIED_DISTANCES[:60:4]
            ),
            default=0.0,
        )

    @property
    def _candidate_dimensions(self) -> list[int]:
        return sorted({*np.geomspace(1, self.dimension, TRIED_DIMENSIONS).astype(int).tolist(), self.dimension})

    def _assouad_limit(self, k: int, omega: float) -> Assouad:
        # Flipping v_j swaps (1 ± ω)/2k between r e_j and −r e_j: H² = 2 (1 − √(1−ω²))/k, without cancellation.
        pair = Hypotheses(omega / k, hellinger=2 * omega**2 / (1 + math.sqrt((1 - omega) * (1 + omega))) / k)
        divergence = AnyMechanism(self.guarantee).report_divergence(pair)
        return Assouad(k, LeCam(divergence, 2 * omega * self.radius / k, COSTS["squared"]))

    def _risk_by_fano(self, k: int, fraction: float, omega: float, people: int) -> float:
        """Return Fano's bound for a packing of {−1, 1}^k: points differ in at least this fraction of the signs."""
        distance = max(1, math.floor(fraction * k))
        information = float(rel_entr(1 + omega, 1.0) + rel_entr(1 - omega, 1.0)) / 2
        packing = Packing.from_numbers(log_count=log_packing(k, distance), information=information, distance=omega / 2)
        separation = 2 * omega * self.radius / k * math.sqrt(distance)
        return Fano(AnyMechanism(self.guarantee), packing, separation, COSTS["squared"], interactive=True).risk(people)


def log_packing(k: int, distance: int) -> float:
    """Return a lower bound on log of how many points of {−1, 1}^k pairwise differ in ``distance`` signs (Gilbert 1952).

    log(2^k / Σ_{i<distance} C(k, i)), lowered for rounding; 0 if that is negative.

    >>> round(math.exp(log_packing(10, 3)), 1)  # 1024 / 56
    18.3
    """
    i = np.arange(distance)
    volume = float(logsumexp(gammaln(k + 1.0) - gammaln(i + 1.0) - gammaln(k - i + 1.0)))
    return max(0.0, lower_bound(k * math.log(2) - volume))
