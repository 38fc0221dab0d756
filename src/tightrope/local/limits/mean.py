"""Worst-case limits for estimation problems of the papers: a mean with a bounded moment, a mean in a ball."""

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
from tightrope.local.limits.fisher_information import mean_on_sphere
from tightrope.local.limits.limit import COSTS, Cost, Hypotheses, Limit, falls_to
from tightrope.local.limits.testing import Assouad, LeCam, best_risk
from tightrope.local.limits.van_trees import ProportionLimit
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite, check_integer, check_positive, check_probability, non_negative
from tightrope.numerics.distributions import normalize_stochastic_matrix
from tightrope.numerics.root_finding import find_crossing

# Fano's method: many parameters, one of which was drawn, and reports that say too little about which.


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """M laws of one person's value, one for each parameter, any two parameters at least a separation apart.

    ``log_count`` = log M, nats; ``information`` an upper bound on I(V; X) of a uniform V, ``capacity`` on any V;
    ``distance`` an upper bound on TV(P_v, R) to one reference R for every v. Made by ``from_distributions`` from laws,
    shape [M, values], or from numbers where there are too many.

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
        """From the laws; the reference is their average."""
        rows = normalize_stochastic_matrix(laws)
        if len(rows) < 2:
            raise InputError("laws", rows.shape, "at least two laws, shape [M, values]")
        center = rows.mean(axis=0)
        prior = np.full(len(rows), 1 / len(rows))
        shared = kernel.mutual_information(rows, prior)
        capacity = float(kernel.capacity_bounds(rows).upper)
        distance = min(1.0, float(np.max(np.abs(rows - center).sum(axis=1)) / 2))
        return cls(math.log(len(rows)), shared, capacity, distance, rows)

    @classmethod
    def from_numbers(cls, *, log_count: float, information: float, distance: float) -> Packing:
        """From numbers: ``information`` bounds KL(P_v‖R) for every v, so the capacity too."""
        shown = non_negative("information", information)
        return cls(non_negative("log_count", log_count), shown, shown, check_probability("distance", distance))


@dataclass(frozen=True, slots=True)
class Fano(Limit):
    """ℓ(τ) p ≤ risk, p the least probability of a wrong guess of V that Fano's inequality allows (AAC Lemma 4).

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
        """An upper bound on I(V; Zⁿ), nats."""
        count = check_integer("people", people)
        kappa, packing = self.constraint.kl_contraction, self.packing
        one = packing.capacity if self.interactive else packing.information
        bounds = [count * kappa * one, count * self.constraint.report_kl_bound(packing.distance, packing.laws)]
        if not self.interactive:
            contracted = 1.0 if kappa >= 1 else -math.expm1(count * math.log1p(-kappa))
            bounds.append(contracted * min(packing.log_count, count * one))
        return min(packing.log_count, *bounds)

    def risk(self, people: int) -> float:
        return falls_to(
            self.cost(self.separation / 2) * least_error(self.packing.log_count, self.information_upper_bound(people))
        )


def least_error(log_count: float, information: float) -> float:
    """The least p ≥ 0 with h(p) + p log(M−1) ≥ log M − I, from below.

    >>> round(least_error(math.log(4), 0.0), 6), least_error(math.log(2), 1.0)
    (0.75, 0.0)
    """
    missing = log_count - information
    if not missing > 0:
        return 0.0
    count_less_one = log_count + math.log1p(-math.exp(-log_count)) if log_count < 40 else log_count

    def information_gap(p: float) -> float:
        return missing - float(entr(p) + entr(1 - p)) - p * count_less_one

    return find_crossing(information_gap, 0.0, -math.expm1(-log_count), side="fails", relative=1e-14)


CHANCES = np.geomspace(1.0, 1e-9, 91).tolist()
"""Tried distances between the distributions of a family: any of them gives a valid bound."""
TRIED_DIMENSIONS = 12


@dataclass(frozen=True, slots=True)
class MomentLimit(Limit):
    """E (mean̂ − mean)² over all laws with E|X|^k ≤ 1 (AAC Example 2), k > 1; k = ∞: values in [−1, 1].

    Le Cam with X = ∓ω^{−1/k} with probability ω and 0 else: means 2ω^{1−1/k} apart, total variation ω. The best ω.
    The rate is (nε²)^{−(k−1)/k}, for every ε and δ. Values of ±1 have every moment: no less than ``limits.mean`` of
    [−1, 1], and at k = ∞ just that.
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
        """Of 0, without any report."""
        return 1.0

    def risk(self, people: int) -> float:
        bounded = self._bounded_problem().risk(people)
        if self.moment == math.inf:
            return bounded
        return max(bounded, best_risk([self._hypotheses_at(chance) for chance in CHANCES], people))

    def people(self, risk: float) -> int:
        """As for every limit; for bounded values equal to ``limits.mean``."""
        return (
            self._bounded_problem().people(risk) if self.moment == math.inf else super(MomentLimit, self).people(risk)
        )

    def _bounded_problem(self) -> ProportionLimit:
        return ProportionLimit(self.guarantee, 2.0)

    def _hypotheses_at(self, chance: float) -> Assouad:
        """The laws agree at 0 alone: Σ (√P₀ − √P₁)² = 2ω."""
        pair = Hypotheses(chance, hellinger=2 * chance)
        separation = 2 * chance ** (1 - 1 / self.moment)
        return Assouad(1, LeCam(AnyMechanism(self.guarantee).report_divergence(pair), separation, COSTS["squared"]))


@dataclass(frozen=True, slots=True)
class BallLimit(Limit):
    """E ‖mean̂ − mean‖² over all laws in the ℓ₂ ball of a radius in ℝ^d (AAC Example 3): the best of several methods.

    Two take a random axis j ≤ k and ±r e_j with odds (1 ± ω v_j)/2, v in the cube. Fano over a packing of the cube
    (AAC Corollary 2, Gilbert's bound on its size); Assouad over all of the cube (ours): a coordinate is a two-point
    problem with total variation ω/k, which has the rate d/(nε²). For δ = 0 van Trees has the constant, too (ours).
    """

    guarantee: Guarantee
    dimension: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension)
        check_positive("radius", self.radius)

    @property
    def guess_risk(self) -> float:
        """Of the center, without any report."""
        return self.radius**2

    def risk(self, people: int) -> float:
        """The best of ``by_fano``, ``by_assouad``, ``by_sphere`` and the mean of numbers on one axis."""
        axis = ProportionLimit(self.guarantee, 2 * self.radius).risk(people)
        return max(axis, self.by_sphere(people), self.by_fano(people), self.by_assouad(people))

    def by_sphere(self, people: int) -> float:
        """Van Trees with values on the sphere: the constant of the best random cap as n → ∞.

        The best over spheres in k ≤ d dimensions; 0 for δ > 0 or d = 1.
        """
        if self.guarantee.delta > 0 or self.dimension == 1:
            return 0.0
        found = [mean_on_sphere(self.guarantee.epsilon, k, people) for k in self._candidate_sizes if k > 1]
        return falls_to(self.radius**2 * max(found))

    def by_assouad(self, people: int) -> float:
        """Σ_j ½ (ωr/k)² (1 − TV_j): the best over k ≤ d and ω ≤ 1."""
        return best_risk(
            [self._risk_by_assouad(k, omega) for k in self._candidate_sizes for omega in CHANCES[:60:3]], people
        )

    def by_fano(self, people: int) -> float:
        """(ωr/k)² h p: packings of the cube with h differing signs, p the error that Fano leaves."""
        return max(
            (
                self._risk_by_fano(k, share, omega, people)
                for k in self._candidate_sizes
                for share in (0.1, 0.2, 0.3)
                for omega in CHANCES[:60:4]
            ),
            default=0.0,
        )

    @property
    def _candidate_sizes(self) -> list[int]:
        return sorted({*np.geomspace(1, self.dimension, TRIED_DIMENSIONS).astype(int).tolist(), self.dimension})

    def _risk_by_assouad(self, k: int, omega: float) -> Assouad:
        t = omega / k
        # Flipping v_j swaps (1 ± ω)/2k between r e_j and −r e_j: H² = 2 (1 − √(1−ω²))/k, without cancellation.
        pair = Hypotheses(t, hellinger=2 * omega**2 / (1 + math.sqrt((1 - omega) * (1 + omega))) / k)
        one = AnyMechanism(self.guarantee).report_divergence(pair)
        return Assouad(k, LeCam(one, 2 * omega * self.radius / k, COSTS["squared"]))

    def _risk_by_fano(self, k: int, share: float, omega: float, people: int) -> float:
        distance = max(1, math.floor(share * k))
        shown = float(rel_entr(1 + omega, 1.0) + rel_entr(1 - omega, 1.0)) / 2
        packing = Packing.from_numbers(log_count=log_packing(k, distance), information=shown, distance=omega / 2)
        separation = 2 * omega * self.radius / k * math.sqrt(distance)
        return Fano(AnyMechanism(self.guarantee), packing, separation, COSTS["squared"], interactive=True).risk(people)


def log_packing(k: int, distance: int) -> float:
    """A lower bound on the log of how many points of {−1, 1}^k are pairwise ``distance`` apart (Gilbert 1952).

    ``2^k / Σ_{i<distance} C(k, i)``, lowered for rounding; 0 where that says nothing.

    >>> round(math.exp(log_packing(10, 3)), 1)  # 1024 / 56
    18.3
    """
    i = np.arange(distance)
    volume = float(logsumexp(gammaln(k + 1.0) - gammaln(i + 1.0) - gammaln(k - i + 1.0)))
    return max(0.0, falls_to(k * math.log(2) - volume))
