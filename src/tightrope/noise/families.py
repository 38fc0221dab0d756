"""Families of integer noise, as used by the planner, comparison, calibration and composition.

A new family derives from ``NoiseFamily`` and must define only ``float_weights``: float weights at a size. Everything
else has defaults that a family may override: its own mechanism, distributions whose losses lie on a lattice, a
real-valued counterpart. ``register_family`` adds it to the families that searches try.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np
from scipy.special import log_ndtr, ndtr

from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism, TableMechanism
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.gaussian import gaussian, tabulated_gaussian
from tightrope.mechanisms.laplace import discrete_laplace, laplace
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.staircase import discrete_staircase, staircase
from tightrope.mechanisms.truncated_laplace import discrete_truncated_laplace, truncated_laplace
from tightrope.noise.family_weights import LISTED_NATS, FloatWeights, NoiseRequirement, noise_cell_count
from tightrope.numerics.arrays import Floats

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]

SEARCHED_NATS = 54.0
"""Weights below e^{−54} of the largest are not listed: rounded to multiples of 2⁻¹²⁸ their losses leave the lattice."""
EXTRA_TAIL_NATS = 14.0
"""While searching, tails end this many nats below δ/k, for k releases."""
NORMAL_DEVIATION_RATIO = math.sqrt(math.pi / 2)
"""σ / E|X| of a normal distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeHeights:
    """Weights e^{−heights[|x|]/(parts·size)} with integer heights: all losses are multiples of 1/(parts·size)."""

    heights_at: Callable[[float], Indices]
    parts: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class SizedWeights:
    """Weights of 0, 1, … at a size, and an initial size.

    ``lattice_at(size)`` returns (size', heights) such that the weights are e^{−heights/size'}; None without a lattice.
    """

    weights_at: Callable[[float], Floats]
    size_guess: float
    lattice_at: Callable[[float], tuple[float, Indices]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedReleases:
    """Equal releases under one guarantee, as passed to families.

    - ``shift``: how much one person changes each answer.
    - ``least_delta``: the smallest δ of the guarantee.
    - ``gaussian_scale``: σ of the Gaussian noise that meets it.
    - ``least_lattice_size(heights)``: the least size at which that distribution meets it.
    """

    shift: int
    releases: int
    least_delta: float
    gaussian_scale: float
    least_lattice_size: Callable[[LatticeHeights], float]

    @property
    def tail_depth(self) -> float:
        """Nats below the largest weight at which tails end while searching."""
        return min(SEARCHED_NATS, EXTRA_TAIL_NATS + math.log(self.releases / self.least_delta))


@dataclass(frozen=True, slots=True)
class RealTwin:
    """The real-valued counterpart of a family.

    ``make_mechanism(size, sensitivity, delta)`` returns its mechanism; larger sizes are more private.
    """

    name: str
    make_mechanism: Callable[[float, int, float], Mechanism]


class NoiseFamily(ABC):
    """A named family of symmetric distributions with one parameter, its size: larger is more private and costs more."""

    __slots__ = ()

    name: ClassVar[str]
    has_bound: ClassVar[bool] = False
    """True if the noise has a largest value: outcomes beyond it have infinite loss, so the family needs δ > 0."""
    hides_keys: ClassVar[bool] = False
    """True if the largest value is small enough to be the threshold above which discovered keys are shown."""
    used_in_plans: ClassVar[bool] = True
    """True if plans of several queries try this family."""
    hides_many_rows: ClassVar[bool] = True
    """False if the family needs far more noise where a person's rows are too many to compose each of their splits."""
    smallest_shift: ClassVar[int] = 1
    """Smallest shift at which the family differs from the others: at smaller ones it is not tried."""
    fills_boxes: ClassVar[bool] = False
    """True if weights are the powers of one ratio: noise that several numbers share can then be unbounded."""
    max_releases: ClassVar[int | None] = None
    """Maximal number of releases for which the family is tried; None for no maximum."""
    real_twin: ClassVar[RealTwin | None] = None

    @abstractmethod
    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        """Return the distribution whose E|X| is about ``size`` times the shift of one row."""

    @property
    def plan_variants(self) -> Sequence[NoiseFamily]:
        """The variants that a plan tries: the family itself, or several settings of other parameters than its size."""
        return (self,)

    def make_noise(self, size: float, need: NoiseRequirement) -> IntegerMechanism:
        """Return the noise of one answer, from the integer table of that size."""
        return TableMechanism(self.float_weights(size, need).integer_table(), need.shift)

    def guess_size(self, epsilon: float, need: NoiseRequirement) -> float:
        """Return an initial size for ``make_noise``."""
        return 1 / epsilon

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[LatticeHeights | SizedWeights]:
        """Return the candidate distributions for several releases, each to be scaled to its least size."""
        need = NoiseRequirement(problem.shift, (1,), problem.least_delta / problem.releases)
        start = problem.gaussian_scale / (NORMAL_DEVIATION_RATIO * problem.shift)
        return (SizedWeights(lambda size: self.float_weights(size, need).half_weights, start),)


class ShapedFamily(NoiseFamily):
    """A family with a second parameter, its shape, that is tuned together with the size."""

    __slots__ = ()

    shape_bounds: ClassVar[tuple[float, float]]
    """The range of shapes that is searched."""
    shape_grid: ClassVar[tuple[float, ...]]
    """The shapes that are tried first."""
    neighbor_family: ClassVar[str]
    """Name of a similar family: if its noise is far from the best, no shape of this family is tried."""

    @abstractmethod
    def with_shape(self, shape: float) -> Self:
        """Return the family with this shape."""

    @abstractmethod
    def listed_weights(self, scale: float, nats: float) -> Floats:
        """Return the weights of 0, 1, … down to e^{−nats}, at a scale in units of the answer."""

    @property
    @abstractmethod
    def relative_deviation(self) -> float:
        """√(E X²) / scale."""


# Discrete Laplace: e^{−|x|/t}.


@dataclass(frozen=True, slots=True)
class LaplaceFamily(NoiseFamily):
    """Two-sided geometric noise: the least noise of one answer for δ = 0."""

    name: ClassVar[str] = "discrete Laplace"
    fills_boxes: ClassVar[bool] = True
    real_twin: ClassVar[RealTwin | None] = RealTwin(
        "Laplace", lambda size, sensitivity, delta: laplace(scale=size, sensitivity=sensitivity)
    )

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        scale = max(size * need.shift, 0.026)
        count = max(2, math.ceil(need.listing_depth * scale))
        return FloatWeights(np.exp(-np.arange(count) / scale), head_length=1, tail_ratio=math.exp(-1 / scale))

    def make_noise(self, size: float, need: NoiseRequirement) -> IntegerMechanism:
        return discrete_laplace(scale=size, sensitivity=need.shift)

    def guess_size(self, epsilon: float, need: NoiseRequirement) -> float:
        return need.shift / epsilon

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[LatticeHeights]:
        return (LatticeHeights(lambda size: np.arange(noise_cell_count(SEARCHED_NATS * size))),)


# Discrete Gaussian: e^{−x²/2σ²}; nearly optimal for many answers.


@dataclass(frozen=True, slots=True)
class GaussianFamily(NoiseFamily):
    """Discrete Gaussian noise; its losses lie on the lattice 1/2σ²."""

    name: ClassVar[str] = "discrete Gaussian"
    has_bound: ClassVar[bool] = True
    real_twin: ClassVar[RealTwin | None] = RealTwin(
        "analytic Gaussian", lambda size, sensitivity, delta: gaussian(scale=size, sensitivity=sensitivity)
    )

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        scale = max(size * need.shift * NORMAL_DEVIATION_RATIO, 0.1)
        count = max(2, math.ceil(math.sqrt(2 * LISTED_NATS) * scale))
        return FloatWeights(np.exp(-((np.arange(count) / scale) ** 2) / 2))

    def make_noise(self, size: float, need: NoiseRequirement) -> IntegerMechanism:
        return tabulated_gaussian(scale=size, sensitivity=need.shift)

    def guess_size(self, epsilon: float, need: NoiseRequirement) -> float:
        return max(0.2, need.shift * math.sqrt(2 * math.log(1.25 / need.infinite_mass)) / epsilon / 2)

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[SizedWeights]:
        reach = math.sqrt(2 * problem.tail_depth)
        return (
            SizedWeights(
                lambda size: np.exp(-((np.arange(noise_cell_count(reach * size)) / size) ** 2) / 2),
                problem.gaussian_scale,
                lambda size: (
                    2 * size**2,
                    np.arange(noise_cell_count(math.sqrt(2 * SEARCHED_NATS) * size), dtype=np.int64) ** 2,
                ),
            ),
        )


# Rounded Gaussian: the integer nearest to a Gaussian; optimal for one release and a Gaussian trade-off (theory §4.1).

ROUNDED_GAUSSIAN_REACH = 13.2
"""Standard deviations beyond which a rounded Gaussian has a probability below 2⁻¹²⁸."""


@dataclass(frozen=True, slots=True)
class RoundedGaussianFamily(NoiseFamily):
    """The rounded Gaussian; plans use the discrete Gaussian instead, which for wide noise is nearly the same."""

    name: ClassVar[str] = "rounded Gaussian"
    has_bound: ClassVar[bool] = True
    used_in_plans: ClassVar[bool] = False

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        return FloatWeights(_rounded_gaussian_cells(size * need.shift * NORMAL_DEVIATION_RATIO))

    def make_noise(self, size: float, need: NoiseRequirement) -> IntegerMechanism:
        return TableMechanism(NoiseTable.from_probabilities(_rounded_gaussian_cells(size)), need.shift)

    def guess_size(self, epsilon: float, need: NoiseRequirement) -> float:
        return float(need.shift)

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[SizedWeights]:
        reach = math.sqrt(2 * problem.tail_depth)

        def rounded_weights(size: float) -> Floats:
            edges = log_ndtr((0.5 - np.arange(1, noise_cell_count(reach * size) + 1)) / size)  # P(X ≥ k), k = 1, 2, …
            inner = np.exp(edges[:-1]) * -np.expm1(edges[1:] - edges[:-1])
            return np.concatenate([[1 - 2 * math.exp(edges[0])], inner])

        return (SizedWeights(rounded_weights, problem.gaussian_scale),)


def _rounded_gaussian_cells(scale: float) -> Floats:
    """Return P(X = 0), P(X = 1), …"""
    edges = (np.arange(math.ceil(ROUNDED_GAUSSIAN_REACH * scale) + 2) - 0.5) / scale
    tails = ndtr(-edges)
    return np.asarray(tails[:-1] - tails[1:])


# Staircase: plateaus as wide as the shift, each with e^{−ε} times the weight of the one before.

MAX_FIRST_WIDTHS = 12
"""About how many widths of the first plateau are tried."""


@dataclass(frozen=True, slots=True)
class StaircaseFamily(NoiseFamily):
    """Staircase noise.

    In plans the plateaus are as wide as the largest part's shift, and the width of the first one gives the least E|X|
    (γ = 1/(1 + e^{ε/2})).
    """

    name: ClassVar[str] = "discrete staircase"
    hides_many_rows: ClassVar[bool] = False
    smallest_shift: ClassVar[int] = 2
    real_twin: ClassVar[RealTwin | None] = RealTwin(
        "staircase", lambda size, sensitivity, delta: staircase(epsilon=sensitivity / size, sensitivity=sensitivity)
    )

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        period = need.shift * max(need.part_rows)
        epsilon = min(period / (size * need.shift), 38.0)
        high = min(period, max(1, round(period / (1 + math.exp(epsilon / 2)))))
        plateaus = max(2, math.ceil(need.listing_depth / epsilon))
        levels = np.exp(-epsilon * np.arange(plateaus))
        half = np.concatenate([np.full(high, 1.0), np.repeat(levels[1:], period)])
        return FloatWeights(half, head_length=high, tail_ratio=math.exp(-epsilon), tail_width=period)

    def make_noise(self, size: float, need: NoiseRequirement) -> IntegerMechanism:
        return discrete_staircase(epsilon=1 / size, sensitivity=need.shift)

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[LatticeHeights]:
        """Return a distribution for every width of the first plateau."""
        shift = problem.shift

        def staircase_heights(high: int, size: float) -> Indices:
            return shift * ((np.arange(noise_cell_count(SEARCHED_NATS * size)) + shift - high) // shift)

        return [
            LatticeHeights(partial(staircase_heights, high)) for high in first_plateau_widths(shift, MAX_FIRST_WIDTHS)
        ]


def first_plateau_widths(shift: int, most: int) -> list[int]:
    """Return the widths of the first plateau that are tried: about ``most`` of 1..shift.

    >>> first_plateau_widths(3, 12)
    [1, 2, 3]
    """
    return sorted({1 + round(i * (shift - 1) / most) for i in range(most + 1)})


# Truncated Laplace: e^{−|x|/t} up to a largest value, which uses part of δ.

DELTA_FRACTIONS = (0.999999, 0.5)
"""Fractions of the allowed infinite-loss mass that plans spend on the end of the distribution."""
STEP_PARTS = 64
"""The last step of a truncated distribution is partial: its height is a multiple of 1/64 of a step."""
END_OFFSETS = (0.0, 0.3, 0.7, 1.2, 2.0, 3.5, 6.0, 10.0)
"""Ends of truncated distributions that are tried, in nats beyond the end that uses up δ."""


@dataclass(frozen=True, slots=True)
class TruncatedLaplaceFamily(NoiseFamily):
    """Truncated Laplace noise whose end uses at most the fraction ``delta_share`` of δ.

    In plans a shift of one uses the optimal closed form of theory §4.1.
    """

    delta_share: float = 0.5
    name: ClassVar[str] = "discrete truncated Laplace"
    has_bound: ClassVar[bool] = True
    hides_keys: ClassVar[bool] = True
    real_twin: ClassVar[RealTwin | None] = RealTwin(
        "truncated Laplace",
        lambda size, sensitivity, delta: truncated_laplace(
            epsilon=sensitivity / size, delta=min(delta, 0.5), sensitivity=sensitivity
        ),
    )

    @property
    def plan_variants(self) -> Sequence[NoiseFamily]:
        return tuple(map(TruncatedLaplaceFamily, DELTA_FRACTIONS))

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        allowed = need.infinite_mass * self.delta_share
        if need.shift == 1 and need.part_rows == (1,):
            # p_0 = tanh(ε/2) + 2δ/(1 + e^ε), then e^{−ε} a step, with one last partial step (theory §4.1).
            epsilon = 1 / size
            optimal_first = (1 - allowed) / (1 + math.exp(epsilon))
            tails: list[float] = []
            while optimal_first > 0 and len(tails) < 1 << 16:
                tails.append(optimal_first)
                optimal_first = math.exp(-epsilon) * (optimal_first - allowed)
            optimal_ends = np.array([*tails, 0.0])
            return FloatWeights(np.concatenate([[1 - 2 * tails[0]], optimal_ends[:-1] - optimal_ends[1:]]))
        scale = max(size * need.shift, 0.026)
        count = math.ceil(need.listing_depth * scale) + need.shift * max(need.part_rows)  # cells lost at the end
        listed = np.exp(-np.arange(count) / scale)
        # Least N for which the parts' top masses P(X > N − shift) add up to at most `allowed`.
        total = 2 * math.fsum(listed.tolist()) - 1.0
        last = len(listed) - 1
        cumulative = np.concatenate([[0.0], np.cumsum(listed)])
        largest_lost = np.zeros(last + 1)
        ends = np.arange(last + 1)
        for part, times in Counter(need.part_rows).items():
            shift = part * need.shift
            top_mass = (
                cumulative[ends + 1] - cumulative[np.maximum(ends + 1 - shift, 0)] + np.where(ends < shift, total, 0.0)
            )
            largest_lost += times * top_mass
        fitting_ends = np.flatnonzero(largest_lost / total <= allowed * (1 - 1e-9))
        return FloatWeights(listed[: (int(fitting_ends[0]) if len(fitting_ends) else last) + 1])

    def make_noise(self, size: float, need: NoiseRequirement) -> IntegerMechanism:
        return discrete_truncated_laplace(epsilon=1 / size, delta=need.infinite_mass, sensitivity=need.shift)

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[LatticeHeights]:
        """Return two distributions for every end: with a partial last step, and with a full one.

        Heights are in 1/``STEP_PARTS`` of a step; that of the last cell, ⌊end⌋, is up to a few steps higher.
        """

        def truncated_heights(end: float, size: float) -> Indices:
            del size
            heights = STEP_PARTS * np.arange(noise_cell_count(end) + 1, dtype=np.int64)
            heights[-1] += round(-STEP_PARTS * math.log(max(end - math.floor(end), 1e-3)))
            return heights

        size = problem.least_lattice_size(*LaplaceFamily().candidate_noise_distributions(problem))
        lost_ratio = problem.releases * math.tanh(problem.shift / size / 2) / problem.least_delta
        first_end = max(math.log(max(lost_ratio, 1.0)) * size, 1.0 * problem.shift)
        ends = [first_end + nats * size for nats in END_OFFSETS]
        exact_ends = (exact_end for end in ends for exact_end in sorted({end, math.floor(end) + 0.999}))
        return [LatticeHeights(partial(truncated_heights, end), STEP_PARTS) for end in exact_ends]


# Exponential power: e^{−(|x|/s)^q}, 1 ≤ q ≤ 2: Laplace for q = 1, Gaussian for q = 2.
#
# Where those two need the same noise, it attains nine tenths of the possible gain over them (theory §4.3).


@dataclass(frozen=True, slots=True)
class ExponentialPowerFamily(ShapedFamily):
    """Exponential power noise; the shape is the power q."""

    power: float = 1.5
    name: ClassVar[str] = "exponential power"
    has_bound: ClassVar[bool] = True
    max_releases: ClassVar[int | None] = 300  # for more, noise between Laplace and Gaussian gains less than 0.05 %
    shape_bounds: ClassVar[tuple[float, float]] = (1.0, 2.0)
    shape_grid: ClassVar[tuple[float, ...]] = (1.9, 1.75, 1.6, 1.5, 1.4, 1.3, 1.2, 1.15, 1.1, 1.05, 1.02)
    neighbor_family: ClassVar[str] = "discrete Gaussian"

    def with_shape(self, shape: float) -> Self:
        return type(self)(shape)

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        mean_absolute = math.exp(math.lgamma(2 / self.power) - math.lgamma(1 / self.power))  # E|X|/s = Γ(2/q)/Γ(1/q)
        scale = max(size * need.shift / mean_absolute, 0.1)
        count = max(2, math.ceil(LISTED_NATS ** (1 / self.power) * scale))
        return FloatWeights(np.exp(-((np.arange(count) / scale) ** self.power)))

    def listed_weights(self, scale: float, nats: float) -> Floats:
        reach = np.arange(noise_cell_count(scale * nats ** (1 / self.power)) + 1)
        return np.asarray(np.exp(-((reach / scale) ** self.power)), dtype=np.float64)

    @property
    def relative_deviation(self) -> float:
        """√(E X²)/s = √(Γ(3/q)/Γ(1/q)).

        >>> round(ExponentialPowerFamily(2.0).relative_deviation ** 2, 12)
        0.5
        """
        return math.exp((math.lgamma(3 / self.power) - math.lgamma(1 / self.power)) / 2)

    def candidate_noise_distributions(self, problem: RepeatedReleases) -> Sequence[SizedWeights]:
        return (
            SizedWeights(
                lambda scale: self.listed_weights(scale, problem.tail_depth),
                problem.gaussian_scale / self.relative_deviation,
            ),
        )


# Registration: these families are offered, in the order in which they are shown, and then the registered ones.

_OFFERED: dict[str, NoiseFamily] = {
    family.name: family
    for family in (
        TruncatedLaplaceFamily(),
        LaplaceFamily(),
        StaircaseFamily(),
        ExponentialPowerFamily(),
        GaussianFamily(),
        RoundedGaussianFamily(),
    )
}


def registered_families() -> tuple[NoiseFamily, ...]:
    """Return all families that plans, comparisons and searches try."""
    return tuple(_OFFERED.values())


def register_family(family: NoiseFamily) -> None:
    """Register a further family; ``InputError`` for anything but a ``NoiseFamily``, and for a name that is taken."""
    if not isinstance(family, NoiseFamily):
        raise InputError("family", family, "a NoiseFamily", "derive it from tightrope.noise.families.NoiseFamily")
    if family.name in _OFFERED:
        raise InputError("family", family.name, "a new name", f"taken are {', '.join(_OFFERED)}")
    _OFFERED[family.name] = family
