"""A filter: everything that it lets through, however chosen, keeps one guarantee that is known beforehand."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from tightrope.privacy.filters.gate import Cost, Gate
from tightrope.privacy.loss import PrivacyLoss


class Guarantee(Protocol):
    """Upper bounds in both directions of use: a ``PrivacyLoss`` is one."""

    def delta(self, epsilon: float, /) -> float: ...

    def epsilon(self, delta: float, /) -> float: ...


class Filter(Gate[Cost]):
    """``charge`` each loss before its mechanism runs; the guarantee is that of the declared budget (theory §2).

    It covers every mechanism that was let through, each chosen after seeing all earlier outputs – the mechanism and
    its parameters – stopping at any time, in both directions of the neighbouring relation. It is never the sum that
    was really charged: that sum depends on outputs, and reporting it would need an ``Odometer``.
    """

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Bound of everything that may pass, from the declared budget."""

    def delta(self, epsilon: float) -> float:
        """Upper bound on δ(ε) of everything that may pass. Raises ``InputError`` where ε is not finite."""
        return self.guarantee.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Least ε ≥ 0 proven at δ, an upper bound; ∞ where there is none. ``InputError`` unless 0 ≤ δ < 1."""
        return self.guarantee.epsilon(delta)


class Dominated(Filter[Cost]):
    """A filter whose budget is one loss."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """A loss that dominates everything that may pass.

        It composes with losses of fixed parameters, also where their mechanisms run between the steps.
        """

    @property
    def guarantee(self) -> Guarantee:
        return self.loss
