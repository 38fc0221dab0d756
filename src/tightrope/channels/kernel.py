"""What every channel says, however it is stored: privacy, contraction, divergences and information of one report."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from tightrope.certificates.guarantee import Guarantee
from tightrope.channels.envelope import Curve, dominating_loss, least_epsilon
from tightrope.channels.information import entropy
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import non_negative, probability
from tightrope.numerics.divergences import Convex, Divergence, divergence
from tightrope.numerics.laws import law
from tightrope.privacy.curves.bounds import Bounds
from tightrope.privacy.curves.elementwise import each
from tightrope.privacy.loss import PrivacyLoss


class Kernel(ABC):
    """A channel from ``inputs`` to ``outputs``: the law of one report for each true value (AAC §II, theory §5).

    Suprema are over ordered pairs of inputs: neighbours are "local". Losses in nats.
    """

    __slots__ = ()
    __array_ufunc__ = None  # ``channel @ array`` is refused instead of tried entry by entry

    @property
    @abstractmethod
    def inputs(self) -> int:
        """How many values a person may have."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many reports there are, those that never happen included."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Least ε with (ε, 0)-LDP: the largest log-ratio within a column; ∞ where a report rules an input out."""

    @property
    @abstractmethod
    def kl_contraction(self) -> float:
        """η_KL = η_χ² = max over pairs of rows of max_β LC_β: how much of a KL divergence can get through."""

    @abstractmethod
    def push(self, p: Floats) -> Floats:
        """The law of the report when the input has law ``p``, shape [inputs] → [outputs]."""

    @abstractmethod
    def _curve(self) -> Curve:
        """γ ↦ max over ordered pairs of E_γ."""

    @abstractmethod
    def _information(self, p: Floats) -> float:
        """I(X; Z) in nats for X of law ``p``."""

    @abstractmethod
    def capacity(self) -> Bounds:
        """``Bounds`` around the most information a report can carry, max over priors of I(X; Z), in nats."""

    def profile(self, epsilon: ArrayLike) -> float | Floats:
        """δ(ε) = max over ordered pairs of rows of E_{e^ε} (AAC Theorem 3), for any real ε; arrays give arrays.

        To a few units in the last place of 1; for a bound on the safe side ask ``.loss`` or ``.guarantee``. Raises
        ``InputError`` where ε is not finite.

        >>> from tightrope.channels import Channel
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).profile([0.0, 2.0]).tolist()
        [0.5, 0.0]
        """
        at = self._curve().at
        return each("epsilon", epsilon, lambda e: np.array([at(math.exp(min(x, 709.0)))[0] for x in e.tolist()]))

    @property
    def loss(self) -> PrivacyLoss:
        """A dominating pair of every pair of rows: its profile is the pointwise maximum of theirs, up to rounding and,
        for large matrices, chords over a convex curve. Neighbours: local; ``k * loss`` is k reports of one person.

        >>> from tightrope.channels import Channel
        >>> round((2 * Channel([[0.75, 0.25], [0.25, 0.75]]).loss).total_variation(), 12)
        0.5
        """
        return dominating_loss(self._curve())

    def contraction(self, gamma: float) -> float:
        """η_γ = max over pairs of E_γ, γ ≥ 0: for γ ≥ 1 the contraction coefficient of E_γ (AAC Theorem 3).

        >>> from tightrope.channels import Channel
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).contraction(2)
        0.25
        """
        return self._curve().at(non_negative("gamma", gamma))[0]

    @property
    def total_variation(self) -> float:
        """Dobrushin's coefficient: the largest total variation between two rows. Every f-divergence contracts by it."""
        return self.contraction(1)

    def guarantee(self, delta: float) -> Guarantee:
        """The triple (ε, δ, η) that holds of this channel: least ε at this δ, rounded up, and its total variation.

        ε = ∞ where δ is below the mass of reports that rule an input out; a δ above η becomes η. Raises ``InputError``
        unless 0 ≤ δ ≤ 1.

        >>> from tightrope.channels import Channel
        >>> round(Channel([[0.75, 0.25], [0.25, 0.75]]).guarantee(0.25).epsilon, 12)
        0.69314718056
        """
        curve = self._curve()
        target = probability("delta", delta)
        eta = min(1.0, curve.at(1.0)[0] + curve.error)
        return Guarantee(least_epsilon(curve, target), target, eta)

    def divergence(self, f: str | Convex | Divergence, p0: ArrayLike, p1: ArrayLike) -> float:
        """D_f(p0 K ‖ p1 K): what reports still say of two laws of the inputs, shape [inputs] each.

        ``f``: kl, reverse_kl, total_variation, chi_squared, hellinger (squared, in [0, 2]), a convex function of
        t = p/q, or a ``Divergence`` with its limits at 0 and ∞. Raises ``InputError`` for laws that are none, or
        where a limit is needed that was not given.

        >>> from tightrope.channels import Channel
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).divergence("chi_squared", [1, 0], [0.5, 0.5])
        0.25
        """
        first, second = self._law("p0", p0), self._law("p1", p1)
        return divergence(f).between(self.push(first), self.push(second))

    def mutual_information(self, prior: ArrayLike) -> float:
        """I(X; Z) in nats: what a report says about the value, on average, for somebody who knows the prior.

        >>> from tightrope.channels import Channel
        >>> round(Channel([[0.75, 0.25], [0.25, 0.75]]).mutual_information([0.5, 0.5]), 12)
        0.130812035941
        """
        return self._information(self._law("prior", prior))

    def information_limit(self, prior: ArrayLike) -> float:
        """κ H(X) ≥ I(X; Z), κ = ``kl_contraction`` (AAC Corollary 5 with the coefficient of this channel)."""
        return self.kl_contraction * entropy(self._law("prior", prior))

    def _law(self, name: str, values: ArrayLike) -> Floats:
        return law(name, values, self.inputs)


def checked_inputs(outputs: int, inputs: int) -> None:
    """The outputs of the first channel are the inputs of the second; ``InputError`` where they are not."""
    if outputs != inputs:
        raise InputError(
            "inputs of the second channel",
            inputs,
            f"{outputs}, the outputs of the first",
            "first @ second: left to right",
        )
