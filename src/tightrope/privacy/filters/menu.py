"""F2 and F6: an adaptive choice from a fixed menu, for a fixed number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import final

from tightrope.errors import BudgetRefused, InputError
from tightrope.numerics.checks import positive, whole
from tightrope.privacy.filters.adaptive import window_for, worst
from tightrope.privacy.filters.declared import declared, place, relation
from tightrope.privacy.filters.dominating import pair
from tightrope.privacy.filters.filter import Dominated
from tightrope.privacy.loss import PrivacyLoss

MOST_MENU_STEPS = 1000
"""Steps that the dynamic programme of F2 goes through."""
COARSEST = 50.0
"""Lattice steps above this many nats say nothing."""


class OnMenu(Dominated[None]):
    """``steps`` charges, each a loss of the menu."""

    def __init__(self, menu: Sequence[PrivacyLoss], *, steps: int, step: float | None = None) -> None:
        self._menu = declared("menu", menu)
        self._steps = whole("steps", steps, remedy="how many mechanisms may run at most?")
        self._step = None if step is None else positive("step", step, "the lattice step in nats; None chooses it")
        if not (self._step or 0) <= COARSEST:
            raise InputError("step", step, f"at most {COARSEST} nats", "finer is tighter; None chooses a fine one")
        self._left = self._steps
        super().__init__(relation(self._menu))

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively from a declared menu of {len(self._menu)} losses, at most "
            f"{self._steps} times, stopping at any time: delta(epsilon) is that of the worst adaptive choice"
        )

    def _cost(self, loss: PrivacyLoss) -> None:
        if place(loss, self._menu) is None:
            raise BudgetRefused(
                f"this loss is none of the {len(self._menu)} on the declared menu; declare it beforehand, or charge "
                f"a MomentFilter, which takes any loss"
            )

    def _refusal(self, cost: None) -> str:
        del cost
        return "" if self._left else f"all {self._steps} steps are taken; declare more steps beforehand, or stop"

    def _spend(self, cost: None) -> None:
        del cost
        self._left -= 1

    def _worst(self, steps: int) -> PrivacyLoss:
        """Both directions of the worst adaptive choice; one law where all menu entries are their own reverse."""
        removals, additions = [loss.remove for loss in self._menu], [loss.add for loss in self._menu]
        window = window_for([*removals, *additions], steps, self._step)
        remove = worst(removals, steps, window)
        add = remove if all(map(_symmetric, self._menu)) else worst(additions, steps, window)
        law, reverse = pair(remove, add)
        return PrivacyLoss.of(law, reverse=reverse, neighbours=relation(self._menu))


@final
class MenuFilter(OnMenu):
    """The worst adaptive choice of ``steps`` losses from a menu, and no more (theory §2, F2).

    D_k(ε) = max_o E_o[D_{k−1}(ε − L_o)], D_0(ε) = (1 − e^ε)₊, per direction: valid, and tight – some adaptive choice
    attains it. Computed on a lattice of ``step`` nats (default: that of the menu's atoms, refined) and rounded up;
    exact where all losses lie on the lattice, otherwise of order k·step² above. At most 1000 steps;
    ``EnvelopeFilter`` has no such limit. Neighbours: those of the menu. Raises ``InputError`` for an empty menu,
    losses of different relations, or steps out of range.

    Between these two, choosing adaptively is worse than every choice made beforehand:

    >>> from tightrope import approx_dp
    >>> menu = [approx_dp(1, total_variation=0.02).loss, approx_dp(0.2).loss]
    >>> fixed = [(j * menu[0] + (3 - j) * menu[1]).delta(1.2) for j in range(4)]
    >>> round(max(fixed), 6), round(MenuFilter(menu, steps=3).delta(1.2), 6)
    (0.001734, 0.002465)
    """

    def __init__(self, menu: Sequence[PrivacyLoss], *, steps: int, step: float | None = None) -> None:
        super().__init__(menu, steps=steps, step=step)
        if not self._steps <= MOST_MENU_STEPS:
            raise InputError("steps", steps, f"at most {MOST_MENU_STEPS}", "EnvelopeFilter takes any number of steps")

    @cached_property
    def loss(self) -> PrivacyLoss:
        return self._worst(self._steps)


@final
class EnvelopeFilter(OnMenu):
    """``steps`` copies of one pair that dominates every loss of the menu (theory §2, F6).

    Its profile is the pointwise maximum of the menu's at lattice points ``step`` nats apart, rounded up. Never below
    ``MenuFilter``, equal where one loss dominates all others (noise scales of one family); cheap for many steps.
    Neighbours and errors as there.

    >>> from tightrope import approx_dp
    >>> menu = [approx_dp(1, total_variation=0.02).loss, approx_dp(0.2).loss]
    >>> filter = EnvelopeFilter(menu, steps=3)
    >>> filter.charge(menu[1])
    >>> filter.delta(1.2) > MenuFilter(menu, steps=3).delta(1.2)
    True
    """

    @cached_property
    def loss(self) -> PrivacyLoss:
        return self._steps * self._worst(1)


def _symmetric(loss: PrivacyLoss) -> bool:
    return loss.remove.laws == loss.add.laws and loss.remove.counts == loss.add.counts
