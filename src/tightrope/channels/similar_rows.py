"""Channels whose rows all differ in the same way: one pair of laws stands for every pair of rows."""

from __future__ import annotations

from abc import abstractmethod

from tightrope.channels.channel import Channel
from tightrope.channels.envelope import Curve
from tightrope.channels.kernel import Kernel


class Alike(Kernel):
    """Any two different rows are ``pair`` up to the names of the outputs, or are dominated by it."""

    __slots__ = ()

    @property
    @abstractmethod
    def pair(self) -> Channel:
        """Two rows over few outputs; outputs with equal ratio are one."""

    @property
    def epsilon(self) -> float:
        return self.pair.epsilon

    @property
    def kl_contraction(self) -> float:
        return self.pair.kl_contraction

    def _curve(self) -> Curve:
        return self.pair._curve()
