"""Constraints on reports: all mechanisms with a guarantee (ε, δ, η), or one given channel."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.channels import suprema
from tightrope.channels.kernel import Kernel, information_gains
from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.local.limits.limit import Hypotheses
from tightrope.mechanisms.pairs import approx_dp, from_pair
from tightrope.numerics.arrays import Floats
from tightrope.numerics.divergences import HELLINGER, KL


@dataclass(frozen=True, slots=True)
class ReportDivergence:
    """Bounds on one report under two hypotheses: KL in both orders, Σ (√M₀ − √M₁)², a dominating pair."""

    kl: float
    reverse_kl: float
    hellinger: float
    loss: PrivacyLoss


class Constraint(ABC):
    """Upper bounds on how much one report reveals about a person's value."""

    __slots__ = ()

    @property
    @abstractmethod
    def kl_contraction(self) -> float:
        """κ: the KL, χ² or Hellinger divergence of reports is at most κ times that of the values."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """The loss of a pair that dominates the reports of any two values."""

    @abstractmethod
    def report_divergence(self, pair: Hypotheses) -> ReportDivergence:
        """Return bounds on the divergences between the distributions of a report for two distributions of the value."""

    @abstractmethod
    def report_kl_bound(self, distance: float, laws: Floats | None) -> float:
        """Return an upper bound on KL(M_v‖M_R) for every v.

        ``distance`` is at least TV(P_v, R) for every v; ``laws`` has the P_v, shape [M, values]; R is their average.
        """


@dataclass(frozen=True, slots=True)
class AnyMechanism(Constraint):
    """Every (ε, δ, η)-LDP mechanism; each person's may depend on earlier reports (sequentially interactive).

    Bounds hold conditionally on earlier reports, and then by the chain rule: KL adds up, affinities 1 − H²/2 multiply,
    and a dominating pair composes, because the triple is fixed in advance.
    """

    guarantee: Guarantee

    @property
    def kl_contraction(self) -> float:
        return suprema.kl_contraction(self.guarantee)

    @property
    def loss(self) -> PrivacyLoss:
        return _dominating_pair(self.guarantee)

    def report_divergence(self, pair: Hypotheses) -> ReportDivergence:
        triple = suprema.between_outputs(self.guarantee, pair.total_variation)
        kappa, kl_limit = self.kl_contraction, suprema.divergence_of_rows(KL, triple)
        hellinger_limit = suprema.divergence_of_rows(HELLINGER, triple)
        return ReportDivergence(
            min(_zero_safe_product(kappa, pair.kl), kl_limit),
            min(_zero_safe_product(kappa, pair.reverse_kl), kl_limit),
            min(kappa * pair.hellinger, hellinger_limit),
            _dominating_pair(triple),
        )

    def report_kl_bound(self, distance: float, laws: Floats | None) -> float:
        del laws
        return suprema.kl_bound(self.guarantee, distance)


@dataclass(frozen=True, slots=True, eq=False)
class GivenChannel(Constraint):
    """One channel that everyone uses: exact divergences if the hypotheses have distributions over its inputs."""

    channel: Kernel

    @property
    def kl_contraction(self) -> float:
        return self.channel.kl_contraction

    @property
    def loss(self) -> PrivacyLoss:
        return self.channel.loss

    def report_divergence(self, pair: Hypotheses) -> ReportDivergence:
        if pair.laws is None or pair.laws.shape[1] != self.channel.input_count:
            expected = f"two distributions over the {self.channel.input_count} inputs of the channel"
            raise InputError("hypotheses", pair, expected, "or pass a Guarantee instead of a channel")
        first, second = (self.channel.output_distribution(law) for law in pair.laws)
        loss = from_pair(np.minimum(first, 1.0), np.minimum(second, 1.0)).loss
        hellinger = HELLINGER.divergence_between(first, second)
        return ReportDivergence(
            KL.divergence_between(first, second), KL.divergence_between(second, first), hellinger, loss
        )

    def report_kl_bound(self, distance: float, laws: Floats | None) -> float:
        del distance
        if laws is None or laws.shape[1] != self.channel.input_count:
            return math.inf
        rows = np.stack([self.channel.output_distribution(law) for law in laws])
        return float(np.max(information_gains(rows, np.full(len(rows), 1 / len(rows)))))


@singledispatch
def make_constraint(privacy: object) -> Constraint:
    """Return the constraint of a ``Guarantee`` (all mechanisms with it) or of a channel; else raise ``InputError``.

    >>> make_constraint(Guarantee(1.0)).kl_contraction == math.tanh(0.5) ** 2
    True
    """
    raise InputError("privacy", privacy, "a Guarantee(epsilon, delta, total_variation) or a channel")


@make_constraint.register
def guarantee_constraint(privacy: Guarantee) -> Constraint:
    """Return the constraint of all mechanisms with a guarantee."""
    return AnyMechanism(privacy)


@make_constraint.register
def channel_constraint(privacy: Kernel) -> Constraint:
    """Return the constraint of one given channel."""
    return GivenChannel(privacy)


def _dominating_pair(triple: Guarantee) -> PrivacyLoss:
    """Return the loss of the dominating pair; with ε = ∞ it is infinite with probability η."""
    if triple.epsilon == math.inf:
        return approx_dp(0.0, delta=triple.total_variation).loss
    return approx_dp(triple.epsilon, delta=triple.delta, total_variation=triple.total_variation).loss


def _zero_safe_product(factor: float, value: float) -> float:
    """Multiply with 0 · ∞ = 0: a blocked report carries zero information."""
    return 0.0 if factor == 0 else factor * value
