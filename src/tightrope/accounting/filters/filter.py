"""A filter: everything that it lets through, however chosen, keeps one guarantee that is known beforehand."""

from __future__ import annotations

import math
import os
import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Generic, NoReturn, Protocol, TypeVar, final

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.neighbors import Neighbours
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import BudgetRefused, InputError
from tightrope.numerics.checks import non_negative

# What every filter and odometer shares: a charge is checked before the mechanism runs, and fits or costs nothing.

Cost = TypeVar("Cost")
ROOM = 1 + 2.0**-40
"""Declared sums are enlarged by this factor, so that ten charges of 0.1 fit into 1; guarantees say the enlarged sum."""


class Gate(ABC, Generic[Cost]):
    """Charges are atomic, of one neighbouring relation, and taken in the process that made the gate.

    What is refused depends on the declared parameters and on what was charged before, never on data.
    """

    def __init__(self, neighbours: Neighbours) -> None:
        if not isinstance(neighbours, Neighbours):
            raise InputError("neighbours", neighbours, "a member of Neighbours", "say Neighbours.ADD_REMOVE")
        self._neighbours = neighbours
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    @abstractmethod
    def statement(self) -> str:
        """What holds, in one sentence; it says that parameters may be chosen adaptively, and from what."""

    @abstractmethod
    def _cost(self, loss: PrivacyLoss) -> Cost:
        """What a loss takes; raises ``BudgetRefused`` for one that this gate can never let through."""

    @abstractmethod
    def _refusal(self, cost: Cost) -> str:
        """Why a cost does not fit now; empty where it does. Called under the lock."""

    @abstractmethod
    def _spend(self, cost: Cost) -> None:
        """Take a cost that fits. Called under the lock."""

    @property
    def neighbours(self) -> Neighbours:
        """The relation that was declared, or that the first charge with a relation brought."""
        return self._neighbours

    def admits(self, loss: PrivacyLoss) -> bool:
        """Whether ``charge(loss)`` would pass now; charges nothing.

        Raises ``InputError`` for what is not a ``PrivacyLoss``, or is one of another neighbouring relation.
        """
        relation = self._relation(loss)
        try:
            cost = self._cost(loss)
        except BudgetRefused:
            return False
        with self._lock:
            return bool(relation) and os.getpid() == self._process and not self._refusal(cost)

    def charge(self, loss: PrivacyLoss) -> None:
        """Take the loss of a mechanism **before** it runs.

        Raises ``BudgetRefused`` where it does not fit – then nothing is charged and the mechanism must not run – and
        ``InputError`` for what is not a ``PrivacyLoss``, or is one of another neighbouring relation.
        """
        self._relation(loss)
        cost = self._cost(loss)
        with self._lock:
            relation = self._relation(loss)
            reason = self._foreign() or self._refusal(cost)
            if reason:
                raise BudgetRefused(reason)
            self._spend(cost)
            self._neighbours = relation

    def _relation(self, loss: PrivacyLoss) -> Neighbours:
        return self._neighbours.with_other(checked("loss", loss).neighbours)

    def _foreign(self) -> str:
        if os.getpid() == self._process:
            return ""
        return (
            f"this {type(self).__name__} was made in process {self._process}, and a forked copy would spend its "
            f"budget again; charge in the process that made it"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """No copies, no pickles: each would spend the same budget."""
        raise InputError(
            "copy", type(self).__name__, "left alone", "a copy would spend the same budget again; share it"
        )


def checked(name: str, loss: object) -> PrivacyLoss:
    """A privacy loss, or ``InputError``."""
    if not isinstance(loss, PrivacyLoss):
        raise InputError(name, loss, "a PrivacyLoss", "a mechanism has it as .loss, such as tr.laplace(scale=1).loss")
    return loss


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


# F5: ε and δ add up, whatever is chosen.


@final
class BasicFilter(Dominated[tuple[Fraction, Fraction]]):
    """Σε_i ≤ ``epsilon`` and Σδ_i ≤ ``delta``: together (ε, δ)-private (theory §2, F5; Rogers et al. 2016, Thm 3.6).

    δ_i is the loss's infinite mass plus ``each``, and ε_i the least ε at that δ_i; with ``each=0`` the largest finite
    loss, so an unbounded loss (Gaussian) needs ``each > 0``. Sums are exact and may be larger by a factor 1 + 2⁻⁴⁰ for
    rounding; so is the guarantee. Neighbours: as declared, or those of the first charge. Raises ``InputError``
    unless ε ≥ 0, 0 ≤ δ < 1, each ≥ 0.

    >>> from tightrope import approx_dp
    >>> filter = BasicFilter(epsilon=1, delta=1e-6)
    >>> filter.charge(approx_dp(0.7, delta=1e-7).loss)
    >>> filter.admits(approx_dp(0.4).loss), filter.admits(approx_dp(0.3).loss)
    (False, True)
    >>> round(filter.epsilon(2e-6), 4)
    1.0
    """

    def __init__(
        self, *, epsilon: float, delta: float, each: float = 0.0, neighbours: Neighbours = Neighbours.UNSPECIFIED
    ) -> None:
        self._epsilon = non_negative("epsilon", epsilon) * ROOM
        self._delta = non_negative("delta", delta) * ROOM
        if not self._delta < 1:
            raise InputError("delta", delta, "a number in [0, 1)", "well below one over the number of people")
        self._each = non_negative("each", each, "the delta at which the epsilon of every charge is read")
        self._spent = (Fraction(0), Fraction(0))
        super().__init__(neighbours)

    @property
    def loss(self) -> PrivacyLoss:
        """The dominating pair of every (ε, δ)-private mechanism with the declared sums."""
        e, d = self._epsilon, self._delta
        losses, masses = np.array([e, -e]), (1 - d) / (1 + np.exp(np.array([-e, e])))
        law = Atoms.gather(losses, masses, infinite_mass=d, opposite_mass=d, slack=4e-16 * e)
        return PrivacyLoss.of(law, reverse=law, neighbours=self.neighbours)

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction while the sum of epsilons is at most "
            f"{self._epsilon:.12g} and the sum of deltas at most {self._delta:.12g}: together that is what is spent"
        )

    def _cost(self, loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
        delta = min(1.0, (loss.infinite_mass + self._each) * (1 + 1e-15))
        if delta >= 1:
            raise BudgetRefused(f"this loss is infinite with probability {delta!r}: no sum of deltas below 1 holds it")
        epsilon = loss.epsilon(delta) if self._each else max(_largest(loss.remove), _largest(loss.add), 0.0)
        if not math.isfinite(epsilon):
            raise BudgetRefused(
                f"this loss has no epsilon at delta={delta!r}; make the filter with each=1e-8, say, "
                f"or use a MomentFilter"
            )
        return Fraction(epsilon), Fraction(delta)

    def _refusal(self, cost: tuple[Fraction, Fraction]) -> str:
        needed = [spent + more for spent, more in zip(self._spent, cost, strict=True)]
        if needed[0] <= self._epsilon and needed[1] <= self._delta:
            return ""
        left = (self._epsilon - float(self._spent[0]), self._delta - float(self._spent[1]))
        return (
            f"this charge needs epsilon={float(cost[0]):.6g} and delta={float(cost[1]):.6g}; left are "
            f"epsilon={left[0]:.6g} and delta={left[1]:.6g}; add more noise, or stop"
        )

    def _spend(self, cost: tuple[Fraction, Fraction]) -> None:
        self._spent = (self._spent[0] + cost[0], self._spent[1] + cost[1])


def _largest(direction: Composition) -> float:
    """Supremum of the finite loss, its rounding error included."""
    slack = math.fsum(n * law.slack for law, n in zip(direction.laws, direction.counts, strict=True))
    return direction.largest + slack
