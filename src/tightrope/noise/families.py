"""What a family of whole-number noise declares; planner, comparison, calibration and composition read it from here.

``weights`` is all that a new family must say: float weights at a size. Everything else follows from it, and is declared
where a family knows better: a mechanism of its own, laws whose losses lie on a lattice, a real-valued twin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import log_ndtr, ndtr

from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism, Tabulated
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.gaussian import gaussian, tabulated_gaussian
from tightrope.mechanisms.laplace import discrete_laplace, laplace
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.staircase import discrete_staircase, staircase
from tightrope.mechanisms.truncated_laplace import discrete_truncated_laplace, truncated_laplace
from tightrope.noise.family_weights import LISTED_NATS, Need, Weights, cells
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


# e^{−|x|/t} on the whole numbers.


@dataclass(frozen=True, slots=True)
class Laplace(Family):
    """Geometric on either side: the least noise of one answer where δ = 0."""

    name: ClassVar[str] = "discrete Laplace"
    real: ClassVar[RealTwin | None] = RealTwin(
        "Laplace", lambda size, sensitivity, delta: laplace(scale=size, sensitivity=sensitivity)
    )

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift, 0.026)
        count = max(2, math.ceil(need.depth * scale))
        return Weights(np.exp(-np.arange(count) / scale), head=1, ratio=math.exp(-1 / scale))

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return discrete_laplace(scale=size, sensitivity=need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        return need.shift / epsilon

    def laws(self, asked: Several) -> Sequence[Heights]:
        return (Heights(lambda size: np.arange(cells(SEARCHED_NATS * size))),)


# e^{−x²/2σ²} on the whole numbers: near the best for many answers.


@dataclass(frozen=True, slots=True)
class Gaussian(Family):
    """Its losses lie on the lattice 1/2σ²."""

    name: ClassVar[str] = "discrete Gaussian"
    bounded: ClassVar[bool] = True
    real: ClassVar[RealTwin | None] = RealTwin(
        "analytic Gaussian", lambda size, sensitivity, delta: gaussian(scale=size, sensitivity=sensitivity)
    )

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift * NORMAL, 0.1)
        count = max(2, math.ceil(math.sqrt(2 * LISTED_NATS) * scale))
        return Weights(np.exp(-((np.arange(count) / scale) ** 2) / 2))

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return tabulated_gaussian(scale=size, sensitivity=need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        return max(0.2, need.shift * math.sqrt(2 * math.log(1.25 / need.infinite_mass)) / epsilon / 2)

    def laws(self, asked: Several) -> Sequence[Sized]:
        reach = math.sqrt(2 * asked.depth)
        return (
            Sized(
                lambda size: np.exp(-((np.arange(cells(reach * size)) / size) ** 2) / 2), asked.gaussian_scale, _lattice
            ),
        )


def _lattice(size: float) -> tuple[float, Indices]:
    return 2 * size**2, np.arange(cells(math.sqrt(2 * SEARCHED_NATS) * size), dtype=np.int64) ** 2


# The whole number nearest to a Gaussian: the optimum of one release for Gaussian trade-offs (theory §4.1).

TAIL = 13.2
"""Deviations beyond which a rounded Gaussian has less than 2⁻¹²⁸."""


@dataclass(frozen=True, slots=True)
class RoundedGaussian(Family):
    """In plans the discrete Gaussian stands for it: where plans are wide, they are alike."""

    name: ClassVar[str] = "rounded Gaussian"
    bounded: ClassVar[bool] = True
    planned: ClassVar[bool] = False

    def weights(self, size: float, need: Need) -> Weights:
        return Weights(_cells(size * need.shift * NORMAL))

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return Tabulated(NoiseTable.from_probabilities(_cells(size)), need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        return float(need.shift)

    def laws(self, asked: Several) -> Sequence[Sized]:
        reach = math.sqrt(2 * asked.depth)

        def weights(size: float) -> Floats:
            edges = log_ndtr((0.5 - np.arange(1, cells(reach * size) + 1)) / size)  # P(X ≥ k), k = 1, 2, …
            inner = np.exp(edges[:-1]) * -np.expm1(edges[1:] - edges[:-1])
            return np.concatenate([[1 - 2 * math.exp(edges[0])], inner])

        return (Sized(weights, asked.gaussian_scale),)


def _cells(scale: float) -> Floats:
    edges = (np.arange(math.ceil(TAIL * scale) + 2) - 0.5) / scale
    tails = ndtr(-edges)
    return np.asarray(tails[:-1] - tails[1:])


# Plateaus as wide as the shift, each e^{−ε} times the one before.

MOST_STAIRS = 12


@dataclass(frozen=True, slots=True)
class Staircase(Family):
    """In plans the plateaus are as wide as a worst part's shift, the first one for the least E|X|
    (γ = 1/(1 + e^{ε/2})).
    """

    name: ClassVar[str] = "discrete staircase"
    smallest_shift: ClassVar[int] = 2
    real: ClassVar[RealTwin | None] = RealTwin(
        "staircase", lambda size, sensitivity, delta: staircase(epsilon=sensitivity / size, sensitivity=sensitivity)
    )

    def weights(self, size: float, need: Need) -> Weights:
        period = need.shift * max(need.parts)
        epsilon = min(period / (size * need.shift), 38.0)
        high = min(period, max(1, round(period / (1 + math.exp(epsilon / 2)))))
        plateaus = max(2, math.ceil(need.depth / epsilon))
        levels = np.exp(-epsilon * np.arange(plateaus))
        half = np.concatenate([np.full(high, 1.0), np.repeat(levels[1:], period)])
        return Weights(half, head=high, ratio=math.exp(-epsilon), width=period)

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return discrete_staircase(epsilon=1 / size, sensitivity=need.shift)

    def laws(self, asked: Several) -> Sequence[Heights]:
        """A law for every width of the first plateau."""
        return [_of_width(asked.shift, high) for high in first_widths(asked.shift, MOST_STAIRS)]


def first_widths(shift: int, most: int) -> list[int]:
    """Widths of the first plateau that are tried: about ``most`` of 1..shift.

    >>> first_widths(3, 12)
    [1, 2, 3]
    """
    return sorted({1 + round(i * (shift - 1) / most) for i in range(most + 1)})


def _of_width(shift: int, high: int) -> Heights:
    return Heights(lambda size: shift * ((np.arange(cells(SEARCHED_NATS * size)) + shift - high) // shift))


# e^{−|x|/t} up to a largest value, which uses part of δ.

SHARES = (0.999999, 0.5)
"""Parts of the mass that may be lost which plans let the end of the law use."""
STEP_PARTS = 64
"""The last, partial step of a truncated law has a height in this many parts of a step."""
ENDS = (0.0, 0.3, 0.7, 1.2, 2.0, 3.5, 6.0, 10.0)
"""Where a truncated law may end, in nats beyond the end that uses δ up."""


@dataclass(frozen=True, slots=True)
class TruncatedLaplace(Family):
    """It loses no more than ``share`` of the mass that may be lost.

    In plans a shift of one is served by the closed-form optimum of theory §4.1, which no integer noise beats.
    """

    share: float = 0.5
    name: ClassVar[str] = "discrete truncated Laplace"
    bounded: ClassVar[bool] = True
    hides_keys: ClassVar[bool] = True
    real: ClassVar[RealTwin | None] = RealTwin(
        "truncated Laplace",
        lambda size, sensitivity, delta: truncated_laplace(
            epsilon=sensitivity / size, delta=min(delta, 0.5), sensitivity=sensitivity
        ),
    )

    @property
    def variants(self) -> Sequence[Family]:
        return tuple(map(TruncatedLaplace, SHARES))

    def weights(self, size: float, need: Need) -> Weights:
        allowed = need.infinite_mass * self.share
        if need.shift == 1 and need.parts == (1,):
            # p_0 = tanh(ε/2) + 2δ/(1 + e^ε), then e^{−ε} a step, with one last partial step (theory §4.1).
            epsilon = 1 / size
            optimal_first = (1 - allowed) / (1 + math.exp(epsilon))
            tails: list[float] = []
            while optimal_first > 0 and len(tails) < 1 << 16:
                tails.append(optimal_first)
                optimal_first = math.exp(-epsilon) * (optimal_first - allowed)
            optimal_ends = np.array([*tails, 0.0])
            return Weights(np.concatenate([[1 - 2 * tails[0]], optimal_ends[:-1] - optimal_ends[1:]]))
        scale = max(size * need.shift, 0.026)
        count = math.ceil(need.depth * scale) + need.shift * max(need.parts)  # so many cells are lost at the end
        listed = np.exp(-np.arange(count) / scale)
        # Least N for which the parts' top masses P(X > N − shift) together stay within `allowed`.
        total = 2 * math.fsum(listed.tolist()) - 1.0
        reach = len(listed) - 1
        below = np.concatenate([[0.0], np.cumsum(listed)])
        largest_lost = np.zeros(reach + 1)
        ends = np.arange(reach + 1)
        for part, times in Counter(need.parts).items():
            shift = part * need.shift
            top = below[ends + 1] - below[np.maximum(ends + 1 - shift, 0)] + np.where(ends < shift, total, 0.0)
            largest_lost += times * top
        kept = np.flatnonzero(largest_lost / total <= allowed * (1 - 1e-9))
        return Weights(listed[: (int(kept[0]) if len(kept) else reach) + 1])

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return discrete_truncated_laplace(epsilon=1 / size, delta=need.infinite_mass, sensitivity=need.shift)

    def laws(self, asked: Several) -> Sequence[Heights]:
        """A law for every end; at the end itself the weight is less than a step down, or not."""
        size = asked.least(*Laplace().laws(asked))
        lost = asked.releases * math.tanh(asked.shift / size / 2) / asked.least_delta
        first = max(math.log(max(lost, 1.0)) * size, 1.0 * asked.shift)
        places = [first + nats * size for nats in ENDS]
        return [_ending(end) for place in places for end in sorted({place, math.floor(place) + 0.999})]


def _ending(end: float) -> Heights:
    return Heights(lambda size: _ended(end), STEP_PARTS)


def _ended(end: float) -> Indices:
    """Heights, in ``STEP_PARTS`` of a step, up to the cell ⌊end⌋, which is higher by up to a few steps."""
    heights = STEP_PARTS * np.arange(cells(end) + 1, dtype=np.int64)
    heights[-1] += round(-STEP_PARTS * math.log(max(end - math.floor(end), 1e-3)))
    return heights


# e^{−(|x|/s)^q}, 1 ≤ q ≤ 2: the Laplace law at one end, the Gaussian at the other.
#
# It takes nine tenths of what there is to gain over the classic families where those two cross (theory §4.3).


@dataclass(frozen=True, slots=True)
class ExponentialPower(Shaped):
    """The shape is the power q."""

    power: float = 1.5
    name: ClassVar[str] = "exponential power"
    bounded: ClassVar[bool] = True
    most_releases: ClassVar[int | None] = 300  # for more, noise between Laplace and Gaussian gains less than 0.05 %
    ends: ClassVar[tuple[float, float]] = (1.0, 2.0)
    grid: ClassVar[tuple[float, ...]] = (1.9, 1.75, 1.6, 1.5, 1.4, 1.3, 1.2, 1.15, 1.1, 1.05, 1.02)
    near: ClassVar[str] = "discrete Gaussian"

    def at(self, shape: float) -> Self:
        return type(self)(shape)

    def weights(self, size: float, need: Need) -> Weights:
        scale = max(size * need.shift / _mean_absolute(self.power), 0.1)
        count = max(2, math.ceil(LISTED_NATS ** (1 / self.power) * scale))
        return Weights(np.exp(-((np.arange(count) / scale) ** self.power)))

    def listed(self, scale: float, nats: float) -> Floats:
        reach = np.arange(cells(scale * nats ** (1 / self.power)) + 1)
        return np.asarray(np.exp(-((reach / scale) ** self.power)), dtype=np.float64)

    @property
    def deviation(self) -> float:
        return _deviation(self.power)

    def laws(self, asked: Several) -> Sequence[Sized]:
        return (Sized(lambda scale: self.listed(scale, asked.depth), asked.gaussian_scale / self.deviation),)


def _mean_absolute(power: float) -> float:
    """E|X|/s = Γ(2/q)/Γ(1/q).

    >>> _mean_absolute(1.0)
    1.0
    """
    return math.exp(math.lgamma(2 / power) - math.lgamma(1 / power))


def _deviation(power: float) -> float:
    """√(E X²)/s = √(Γ(3/q)/Γ(1/q)).

    >>> round(_deviation(2.0) ** 2, 12)
    0.5
    """
    return math.exp((math.lgamma(3 / power) - math.lgamma(1 / power)) / 2)


# The families that are offered, in the order in which they are shown; further ones are registered.

_OFFERED: dict[str, Family] = {
    family.name: family
    for family in (
        TruncatedLaplace(),
        Laplace(),
        Staircase(),
        ExponentialPower(),
        Gaussian(),
        RoundedGaussian(),
    )
}


def offered() -> tuple[Family, ...]:
    """All families that plans, comparisons and searches go through."""
    return tuple(_OFFERED.values())


def register(family: Family) -> None:
    """Offers a further family from now on; raises ``InputError`` for what is none, and for a name that is taken."""
    if not isinstance(family, Family):
        raise InputError("family", family, "a Family", "derive it from mechanisms.families.family.Family")
    if family.name in _OFFERED:
        raise InputError("family", family.name, "a new name", f"taken are {', '.join(_OFFERED)}")
    _OFFERED[family.name] = family
