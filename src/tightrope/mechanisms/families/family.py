"""What a family of whole-number noise declares; planner, comparison, calibration and composition read it from here.

``weights`` is all that a new family must say: float weights at a size. Everything else follows from it, and is declared
where a family knows better: a mechanism of its own, laws whose losses lie on a lattice, a real-valued twin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tightrope.mechanisms.families.weights import Need, Weights
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism, Tabulated
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.arrays import Floats

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]

SEARCHED_NATS = 54.0
"""Weights below e^{−54} of the largest are not listed: in whole numbers of 2⁻¹²⁸ they have losses off the lattice."""
BEYOND = 14.0
"""Nats below δ/k at which tails end while searching."""
NORMAL = math.sqrt(math.pi / 2)
"""σ over E|X| of a normal law."""


@dataclass(frozen=True, slots=True, eq=False)
class Heights:
    """e^{−heights[|x|]/(parts·size)}, heights whole: all its losses are multiples of 1/(parts·size)."""

    heights: Callable[[float], Indices]
    parts: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """Weights of 0, 1, … at a size, and a size to start from; ``lattice(size)`` is the law as e^{−heights/size'}."""

    weights: Callable[[float], Floats]
    guess: float
    lattice: Callable[[float], tuple[float, Indices]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """Equal releases under one promise, as a family sees them; ``least(law)`` is the least size that keeps it."""

    shift: int
    releases: int
    least_delta: float
    gaussian_scale: float
    least: Callable[[Heights], float]

    @property
    def depth(self) -> float:
        """−log of the weight at which tails end while searching."""
        return min(SEARCHED_NATS, BEYOND + math.log(self.releases / self.least_delta))


@dataclass(frozen=True, slots=True)
class RealTwin:
    """The real-valued law beside a family: ``make(size, sensitivity, delta)``; larger sizes keep more."""

    name: str
    make: Callable[[float, int, float], Mechanism]


class Family(ABC):
    """A named curve of symmetric laws with one knob, its size: larger sizes keep more, and cost more."""

    __slots__ = ()

    name: ClassVar[str]
    bounded: ClassVar[bool] = False
    """Whether the noise has a largest value: there the loss is infinite, so the family needs a δ."""
    hides_keys: ClassVar[bool] = False
    """Whether its largest value is small: discovered keys are shown beyond it."""
    planned: ClassVar[bool] = True
    """Whether plans of several questions try it."""
    smallest_shift: ClassVar[int] = 1
    """Below this shift it is the same law as another family."""
    most_releases: ClassVar[int | None] = None
    """For more releases it is not sought; None: for any number."""
    real: ClassVar[RealTwin | None] = None

    @abstractmethod
    def weights(self, size: float, need: Need) -> Weights:
        """The law whose E|X| is about ``size`` times the shift of one row."""

    @property
    def variants(self) -> Sequence[Family]:
        """What a plan tries: the family itself, or several settings of what is not its size."""
        return (self,)

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        """The noise of one answer, from the integer table of that size."""
        return Tabulated(self.weights(size, need).table(), need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        """A size of ``noise`` to start from."""
        return 1 / epsilon

    def laws(self, asked: Several) -> Sequence[Heights | Sized]:
        """The laws that compete for several releases, each at its own least size."""
        need = Need(asked.shift, (1,), asked.least_delta / asked.releases)
        start = asked.gaussian_scale / (NORMAL * asked.shift)
        return (Sized(lambda size: self.weights(size, need).half, start),)


class Shaped(Family):
    """A family with a second knob, its shape, that is tuned beside the size."""

    __slots__ = ()

    ends: ClassVar[tuple[float, float]]
    """Between these shapes the best is sought."""
    grid: ClassVar[tuple[float, ...]]
    """Where it is sought first."""
    near: ClassVar[str]
    """Where this family's noise is hopelessly large, no shape is tried."""

    @abstractmethod
    def at(self, shape: float) -> Self:
        """The family of this shape."""

    @abstractmethod
    def listed(self, scale: float, nats: float) -> Floats:
        """Weights of 0, 1, … down to e^{−nats}, at a scale in units of the answer."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """√(E X²) over the scale."""
