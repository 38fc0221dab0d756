"""F1: a declared list of losses, each spent at most once, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import final

from tightrope.errors import BudgetRefused
from tightrope.privacy.filters.declared import declared, place, relation
from tightrope.privacy.filters.filter import Dominated
from tightrope.privacy.loss import PrivacyLoss


@final
class TokenFilter(Dominated[int]):
    """Tokens declared beforehand, each spent at most once, in any adaptively chosen order, stopping at any time.

    δ(ε) is that of the fixed composition of all tokens (theory §2, F1; ``docs/proofs/filters.md``): a declared plan
    may be executed in any order and abandoned. ``tokens`` may repeat a loss: ``3 * [loss]``. Neighbours: those of the
    tokens. Raises ``InputError`` for an empty list, or for losses of different relations.

    >>> from tightrope import approx_dp
    >>> strong, weak = approx_dp(1).loss, approx_dp(0.1).loss
    >>> filter = TokenFilter([strong, weak, weak])
    >>> filter.charge(weak)
    >>> filter.charge(strong)
    >>> filter.admits(strong), filter.admits(weak)
    (False, True)
    >>> filter.delta(0.5) == (strong + 2 * weak).delta(0.5)
    True
    """

    def __init__(self, tokens: Sequence[PrivacyLoss]) -> None:
        listed = declared("tokens", tokens)
        self._kinds: list[PrivacyLoss] = []
        self._counts: list[int] = []
        for token in listed:
            self._declare(token)
        self._left = list(self._counts)
        super().__init__(relation(self._kinds))

    def _declare(self, token: PrivacyLoss) -> None:
        kind = place(token, self._kinds)
        if kind is None:
            self._kinds.append(token)
            self._counts.append(1)
        else:
            self._counts[kind] += 1

    @cached_property
    def loss(self) -> PrivacyLoss:
        """The fixed composition of all declared tokens."""
        first, *others = (count * kind for kind, count in zip(self._kinds, self._counts, strict=True))
        return sum(others, first)

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively among {sum(self._counts)} declared losses, each spent at most once, "
            f"in any order, stopping at any time: delta(epsilon) is that of the composition of all of them"
        )

    def _cost(self, loss: PrivacyLoss) -> int:
        kind = place(loss, self._kinds)
        if kind is None:
            raise BudgetRefused(
                f"this loss is none of the {len(self._kinds)} kinds of declared tokens; declare it beforehand, "
                f"or charge a MomentFilter, which takes any loss"
            )
        return kind

    def _refusal(self, cost: int) -> str:
        if self._left[cost]:
            return ""
        spent, left = self._counts[cost], sum(self._left)
        return f"all {spent} tokens of this kind are spent, {left} of other kinds are left; use those, or stop"

    def _spend(self, cost: int) -> None:
        self._left[cost] -= 1
