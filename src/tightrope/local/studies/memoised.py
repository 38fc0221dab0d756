"""Repeated collection: the same person gives the same report for the same value."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.numerics.checks import whole
from tightrope.randomness.source import Source

if TYPE_CHECKING:
    from tightrope.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Memoised:
    """One person's side of a collection that asks again and again; ``memory`` maps values to reports.

    Fresh reports of one value could be averaged: k of them spend k times the loss. A report that is made once and
    repeated is a copy, which says nothing new: any number of repetitions spends what one report does, and c different
    values spend c times that. **This hides what the values are, not when they change**: another report proves another
    value. So ``loss`` compares two histories that repeat themselves at the same times; against a history with other
    repetitions – a value that never changed against one that did – nothing is promised, at any ε. Where changes are
    sensitive, report afresh and pay for every report. The memory is as secret as the values are; without it (a new
    device) values are reported afresh, and that counts as a new value.
    """

    mechanism: FrequencyOracle | MeanOracle
    memory: dict[int | float, NDArray[Any]] = field(default_factory=dict, repr=False)

    def report(self, value: float, randomness: Source | None = None) -> NDArray[Any]:
        """The report for ``value``, of shape [1] or [1, words]; made on the first call with this value.

        Raises ``InputError`` unless it is one number that the mechanism takes; the message does not show it.

        >>> from tightrope.local.mechanisms.response import k_randomized_response
        >>> person = Memoised(k_randomized_response(1.0, 1000))
        >>> len({int(person.report(7)[0]) for _ in range(100)})
        1
        """
        if not isinstance(value, numbers.Real):
            raise InputError("type of value", type(value).__name__, "one number", "one person reports one value a call")
        if value not in self.memory:
            self.memory[value] = self.mechanism.perturb([value], randomness)
        return self.memory[value].copy()

    def loss(self, distinct: int) -> PrivacyLoss:
        """The privacy loss of any number of reports: two histories of at most so many ``distinct`` values each, equal
        values at the same times in both. Histories that differ in *when* the value changes are not covered.
        """
        return whole("distinct", distinct) * self.mechanism.loss

    @property
    def spent(self) -> PrivacyLoss:
        """The loss of what this person has reported so far, by the number of values in memory; as ``loss`` says.

        Of private state: it is for the person's own eyes.
        """
        return len(self.memory) * self.mechanism.loss
