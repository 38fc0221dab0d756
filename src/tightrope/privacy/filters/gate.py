"""What every filter and odometer shares: a charge is checked before the mechanism runs, and fits or costs nothing."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from typing import Generic, NoReturn, TypeVar

from tightrope.errors import BudgetRefused, InputError
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours

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
