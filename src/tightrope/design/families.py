"""Families of integer noise to choose from: each a curve of laws with one knob, its size in units of one row's shift.

A law is a list of float weights for 0, 1, 2, …; searches look at the floats, what is sampled and certified is the
integer table made from them (``NoiseTable.from_probabilities``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tightrope.design.power_law import mean_absolute
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.loss_cells import Cells

LISTED_NATS = 90.0
"""Float weights are never listed beyond e^{−90}: there an integer table of 128 bits has nothing either."""
DEEPER = 25.0
"""Float weights are listed until e^{−25} of the mass that may be lost."""
NORMAL = math.sqrt(math.pi / 2)
"""σ over E|X| of a normal law."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a noise law must hide: ``shift`` for one row, the parts of a worst person, and the mass it may lose."""

    shift: int
    parts: tuple[int, ...]
    infinite_mass: float

    @property
    def depth(self) -> float:
        """−log of the weight at which listing ends."""
        return min(LISTED_NATS, DEEPER - math.log(max(self.infinite_mass, 1e-300)))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Float weights of 0..N (each for x and −x).

    Endless laws say how they go on after the first ``head`` weights: ``ratio`` times for every ``width`` cells.
    """

    half: Floats
    head: int = 0
    ratio: float | None = None
    width: int = 1

    def table(self) -> NoiseTable:
        """The integer table that runs."""
        if self.ratio is None:
            return NoiseTable.from_probabilities(self.half)
        return NoiseTable.from_probabilities(self.half[: self.head], tail_ratio=self.ratio, tail_width=self.width)

    @property
    def _shares(self) -> Floats:
        return self.half / (2 * math.fsum(self.half) - float(self.half[0]))

    @property
    def mean_absolute(self) -> float:
        """E|X| of the listed weights."""
        return 2 * float(np.dot(self._shares, np.arange(len(self.half))))

    def cells(self, shift: int) -> Cells:
        """The loss of (X, X + shift) in floats, for searching; weights past the listed ones count as lost."""
        shares = self._shares
        whole = np.concatenate([shares[:0:-1], shares])
        pad = np.zeros(shift)
        p, q = np.concatenate([pad, whole]), np.concatenate([whole, pad])
        both = (p > 0) & (q > 0)
        losses = np.log(p[both]) - np.log(q[both])
        lost = 0.0 if self.ratio is not None else math.fsum(p[~both])
        return Cells.atoms(losses, p[both], lost, lost)


class Family(ABC):
    """A named curve of laws."""

    name: str
    bounded: bool = False
    """Whether the noise has a largest value: what discovered keys need."""

    @abstractmethod
    def weights(self, size: float, need: Need) -> Weights:
        """The law whose E|X| is about ``size`` times the shift of one row."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Family):
    """e^{−|x|/t}."""

    name = "discrete Laplace"

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift, 0.026)
        count = max(2, math.ceil(need.depth * scale))
        return Weights(np.exp(-np.arange(count) / scale), head=1, ratio=math.exp(-1 / scale))


@dataclass(frozen=True, slots=True)
class DiscreteStaircase(Family):
    """Plateaus as wide as a worst part's shift, each e^{−ε} times the one before, with the first one's width chosen
    for the least E|X| (γ = 1/(1 + e^{ε/2})).
    """

    name = "discrete staircase"

    def weights(self, size: float, need: Need) -> Weights:
        period = need.shift * max(need.parts)
        epsilon = min(period / (size * need.shift), 38.0)
        high = min(period, max(1, round(period / (1 + math.exp(epsilon / 2)))))
        plateaus = max(2, math.ceil(need.depth / epsilon))
        levels = np.exp(-epsilon * np.arange(plateaus))
        half = np.concatenate([np.full(high, 1.0), np.repeat(levels[1:], period)])
        return Weights(half, head=high, ratio=math.exp(-epsilon), width=period)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Family):
    """e^{−x²/2σ²}."""

    name = "discrete Gaussian"
    bounded = True

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift * NORMAL, 0.1)
        count = max(2, math.ceil(math.sqrt(2 * LISTED_NATS) * scale))
        return Weights(np.exp(-((np.arange(count) / scale) ** 2) / 2))


@dataclass(frozen=True, slots=True)
class ExponentialPower(Family):
    """e^{−(|x|/s)^q}, 1 < q < 2: between Laplace and Gaussian, where these two cross (theory §4.3)."""

    power: float
    name = "exponential power"
    bounded = True

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift / mean_absolute(self.power), 0.1)
        count = max(2, math.ceil(LISTED_NATS ** (1 / self.power) * scale))
        return Weights(np.exp(-((np.arange(count) / scale) ** self.power)))


@dataclass(frozen=True, slots=True)
class TruncatedLaplace(Family):
    """e^{−|x|/t} up to the largest value that loses no more than ``share`` of the mass that may be lost.

    A shift of one is served by the closed-form optimum of theory §4.1, which no integer noise beats.
    """

    share: float = 0.5
    name = "discrete truncated Laplace"
    bounded = True

    def weights(self, size: float, need: Need) -> Weights:
        allowed = need.infinite_mass * self.share
        if need.shift == 1 and need.parts == (1,):
            return Weights(_optimal(1 / size, allowed))
        scale = max(size * need.shift, 0.026)
        count = max(2, math.ceil(need.depth * scale))
        listed = np.exp(-np.arange(count) / scale)
        return Weights(listed[: _largest(listed, need, allowed) + 1])


def _largest(listed: Floats, need: Need, allowed: float) -> int:
    """Least N for which the parts' top masses P(X > N − shift) together stay within ``allowed``."""
    total = 2 * math.fsum(listed) - 1.0
    reach = len(listed) - 1
    below = np.concatenate([[0.0], np.cumsum(listed)])
    lost = np.zeros(reach + 1)
    for part in need.parts:
        shift = part * need.shift
        ends = np.arange(reach + 1)
        lost += below[ends + 1] - below[np.maximum(ends + 1 - shift, 0)] + np.where(ends < shift, total, 0.0)
    kept = np.flatnonzero(lost / total <= allowed * (1 - 1e-9))
    return int(kept[0]) if len(kept) else reach


def _optimal(epsilon: float, delta: float) -> Floats:
    """p_0 = tanh(ε/2) + 2δ/(1 + e^ε), then e^{−ε} a step, with one last partial step (theory §4.1)."""
    first = (1 - delta) / (1 + math.exp(epsilon))
    tails: list[float] = []
    while first > 0 and len(tails) < 1 << 16:
        tails.append(first)
        first = math.exp(-epsilon) * (first - delta)
    ends = np.array([*tails, 0.0])
    return np.concatenate([[1 - 2 * tails[0]], ends[:-1] - ends[1:]])
