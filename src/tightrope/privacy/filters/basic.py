"""F5: ε and δ add up, whatever is chosen."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import numpy as np

from tightrope.errors import BudgetRefused, InputError
from tightrope.numerics.checks import non_negative
from tightrope.privacy.filters.filter import Dominated
from tightrope.privacy.filters.gate import ROOM
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours


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
