"""The released statistics: noisy vectors, grouped by which of them one person's rows shift together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtri_exp

from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.loss_pmf import LossLattice, LossPMF, greatest_lower_bound, pointwise_maximum
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.family_weights import NoiseRequirement
from tightrope.numerics.checks import check_integer

# One person in a grouped answer: the worst way their rows may fall into groups (theory §4.3).
#
# A person with at most r rows, at most s in a group and in at most g groups may put c_1 + c_2 + … ≤ r rows into
# groups. The loss of a split is the composition of the losses of its parts, and the answer is dominated by the
# pointwise maximum of whole profiles over the splits: fixing one worst split is unsafe, because other answers shift
# the ε that matters. The maximum is built row by row, F_n = max_c L_c + F_{n−c}: it covers every split, and any order
# of groups.

MOST_COMPOSITIONS = 2500
"""Maximal compositions for one person's worst split; above, it is bounded (``docs/proofs/many-rows.md``)."""
MOST_ROWS = 10_000
"""Rows of one person, where they may fall in several ways."""


@dataclass(frozen=True, slots=True)
class SplitBounds:
    """At most ``rows`` rows of a person, ``max_rows_per_group`` in one group, ``groups`` groups."""

    rows: int
    max_rows_per_group: int
    groups: int

    def __post_init__(self) -> None:
        for name in ("rows", "max_rows_per_group", "groups"):
            check_integer(name, getattr(self, name))
        if not (self.has_one_split or self.most_rows <= MOST_ROWS):
            raise InputError(
                "max_rows",
                self.rows,
                f"at most {MOST_ROWS} where they may fall into groups in several ways",
                "bound the person further: max_rows_per_group=1, max_groups=1, or fewer rows",
            )

    @property
    def largest_part(self) -> int:
        """Largest number of rows in one group."""
        return min(self.rows, self.max_rows_per_group)

    @property
    def most_rows(self) -> int:
        """Largest number of rows that count in total."""
        return min(self.rows, self.largest_part * self.groups)

    @property
    def has_one_split(self) -> bool:
        """True if only one full split exists."""
        return self.groups == 1 or self.largest_part == 1

    @property
    def composition_rounds(self) -> int:
        """Number of passes over all rows: one if any number of groups is allowed, or is used as a bound for fewer."""
        one = self.most_rows * self.largest_part
        few = self.groups < self.most_rows and self.groups * one <= MOST_COMPOSITIONS
        return self.groups if few else 1

    @property
    def composes_every_split(self) -> bool:
        """True if every split is composed; otherwise they are bounded together."""
        return self.has_one_split or self.composition_rounds * self.most_rows * self.largest_part <= MOST_COMPOSITIONS


def fullest_split(part: Callable[[int], LossPMF], contribution: SplitBounds) -> LossPMF:
    """Return the loss of one split, with as many largest parts as possible: a necessary condition on the noise."""
    return part(contribution.largest_part) ** (contribution.most_rows // contribution.largest_part)


def worst_split(part: Callable[[int], LossPMF], contribution: SplitBounds, window: LossLattice) -> LossPMF:
    """Return the loss that dominates every split of a contribution; ``part(c)``: loss of a group of c rows.

    Losses of more rows must dominate losses of fewer (true for unimodal noise), so only full splits count.
    Where few groups would take too long, any number of groups is allowed instead: it dominates.
    """
    rows, largest = contribution.most_rows, contribution.largest_part
    if contribution.groups == 1:
        return part(largest)
    if largest == 1:
        return part(1) ** rows
    parts = [part(c) for c in range(1, largest + 1)]
    if contribution.composition_rounds == 1:
        # F_n = max over c of part c and F_{n−c}, n = 1..rows.
        best = [LossPMF.zero_loss(window)]
        for n in range(1, rows + 1):
            best.append(_worst_last_part(parts, best, n))
        return best[rows]
    # The same with at most `groups` ≥ 2 parts: F_{g,n} = max over c of part c and F_{g−1,n−c}, F_{1,n} = part n.
    certain = LossPMF.zero_loss(window)
    few_groups_best = [certain, *parts, *[parts[-1]] * (rows - len(parts))]
    for g in range(2, contribution.groups):
        reachable = range(1, min(rows, g * len(parts)) + 1)
        few_groups_best = [certain, *(_worst_last_part(parts, few_groups_best, n) for n in reachable)]
        few_groups_best += [few_groups_best[-1]] * (rows + 1 - len(few_groups_best))
    return _worst_last_part(parts, few_groups_best, rows)


def _worst_last_part(parts: list[LossPMF], best: list[LossPMF], rows: int) -> LossPMF:
    """The maximum over the size of the last part; the others are ``best`` with the rows that it leaves."""
    return pointwise_maximum([part * best[rows - c] for c, part in enumerate(parts[:rows], start=1)])


# A person with too many rows to enumerate their splits: one dominating distribution for all splits, for each noise
# separately.
#
# Two bounds, and what lies below both (``docs/proofs/many-rows.md``). A part with c rows loses at most c times what
# one row can lose: all parts together are a pair of that ε, with the δ that they can lose altogether. And each part
# lies below a normal pair μ_c apart, so a split lies below one √(Σ μ_c²) apart. The first is near the truth for
# Laplace-like noise, the second for Gaussian noise, whose worst split is one group.

TRIMMED = 1e-28
"""Outcomes with a smaller probability count as lost: there an integer table has too few digits."""
ONE_BY_ONE = 8
"""Sizes of parts up to here are enumerated one by one."""
RAISED = 1e-9
"""Relative margin for the rounding of sums and quantiles."""


class NormalBound(NamedTuple):
    """A part is dominated by a normal pair ``mu`` apart, except for a mass of ``lost``."""

    mu: float
    lost_mass: float

    @classmethod
    def from_cells(cls, part: LossCells) -> Self:
        """Return the least μ for which the ROC curve of a normal pair lies above every corner of the part's ROC curve.

        The largest losses, with less than ``TRIMMED``, are removed under P, and their mirrors under Q. The rest, each
        side divided by its mass, is a symmetric pair: the corners up to its middle suffice.
        """
        losses, masses = part.dominating_atoms()
        order = np.argsort(-losses, kind="stable")
        losses, masses = losses[order] + part.slack, masses[order]
        held = np.cumsum(masses) > TRIMMED
        last = -losses[held][0] if np.any(held) else math.inf
        kept = held & (losses >= last)
        lost = min(1.0, part.infinite_mass + float(np.sum(masses[~kept])) * (1 + RAISED))
        if lost == 1 or not np.any(kept):
            return cls(0.0, 1.0)
        p, q = np.cumsum(masses[kept]) / (1 - lost), np.cumsum(masses[kept] * np.exp(-losses[kept])) / (1 - lost)
        # The largest Φ⁻¹(p) − Φ⁻¹(q) of the corners up to the first beyond the middle p + q = 1.
        count = int(np.searchsorted(p + q, 1.0)) + 1
        p, q = np.minimum(p[:count] * (1 + 1e-12), 1 - 1e-15), np.minimum(q[:count] * (1 - 1e-12), 1 - 1e-15)
        apart = float(np.max(ndtri_exp(np.log(p)) - ndtri_exp(np.log(q)), initial=0.0))
        return cls(apart * (1 + RAISED) + 1e-11, lost)


@dataclass(frozen=True, slots=True)
class PartSizes:
    """Sizes of parts in ranges: ``largest`` of each, and one less than its smallest.

    Small sizes, and the largest, have a range of their own; from there ranges double in length downwards. Amounts
    that rise as the square of the rows still have the largest value per row at the largest part.
    """

    lower_edges: tuple[int, ...]
    upper_edges: tuple[int, ...]

    @classmethod
    def from_largest(cls, most: int) -> PartSizes:
        """
        >>> PartSizes.from_largest(20)  # doctest: +NORMALIZE_WHITESPACE
        PartSizes(lower_edges=(19, 18, 16, 12, 7, 6, 5, 4, 3, 2, 1, 0),
                  upper_edges=(20, 19, 18, 16, 12, 7, 6, 5, 4, 3, 2, 1))
        """
        below, largest = [most - 1], [most]
        while (size := below[-1]) > 0:
            largest.append(size)
            below.append(size - 1 if size <= ONE_BY_ONE else min(size - 1, size**2 // most))
        return cls(tuple(below), tuple(largest))

    def largest_split_sum(self, amounts: Sequence[float], contribution: SplitBounds) -> float:
        """Return an upper bound on the sum over any split of an amount that does not fall with the rows of a part.

        ``amounts`` belong to ``largest``: a part in a range has at most that amount, and more rows than ``below``.
        """
        a_row = max(amount / (below + 1) for amount, below in zip(amounts, self.lower_edges, strict=True))
        return min(contribution.groups * amounts[0], contribution.most_rows * a_row) * (1 + RAISED)


def dominate_every_split(cells: Callable[[int], LossCells], contribution: SplitBounds, window: LossLattice) -> LossPMF:
    """Return a loss that dominates every split; ``cells(c)`` is the loss of the noise under the shift of c rows.

    The noise must be symmetric and unimodal: then more rows dominate fewer, and both directions have one distribution.
    """
    sizes = PartSizes.from_largest(contribution.largest_part)
    parts = [cells(rows) for rows in sizes.upper_edges]
    # The infinite loss of all parts: the ends of the distribution, which grow at least in proportion to the rows.
    fullest = parts[0]
    lost_parts = min(float(contribution.groups), contribution.most_rows / contribution.largest_part)
    delta = min(1.0, lost_parts * fullest.infinite_mass * (1 + RAISED))
    # (ε, δ) for all parts together: losses add up, the largest loss of c rows is at most c times the loss of one.
    one_row = parts[-1]
    linear_fullest = parts[0]
    most = min(
        contribution.groups * _largest_finite_loss(linear_fullest),
        contribution.most_rows * _largest_finite_loss(one_row),
    )
    epsilon = most * (1 + RAISED)
    high = (1 - delta) / (1 + math.exp(-epsilon))
    law = LossCells.from_atoms(np.array([-epsilon, epsilon]), np.array([1 - delta - high, high]), delta, delta)
    linear = LossPMF.from_cells(law, window)
    # A normal pair for all parts together, and what they may lose.
    normals = [NormalBound.from_cells(part) for part in parts]
    mu = math.sqrt(sizes.largest_split_sum([normal.mu**2 for normal in normals], contribution))
    given_up = max(normal.lost_mass - part.infinite_mass for normal, part in zip(normals, parts, strict=True))
    lost = min(1.0, delta + min(contribution.groups, contribution.most_rows) * given_up)
    normal_law = LossPMF.from_cells(GaussianLossDistribution(mu).loss_cells(window.step), window)
    return greatest_lower_bound([linear, normal_law * LossPMF(window, 0, np.array([1 - lost]), lost)])


def _largest_finite_loss(part: LossCells) -> float:
    """Return the largest finite loss, or 0."""
    losses, masses = part.dominating_atoms()
    return float(np.max(losses[masses > 0], initial=0.0)) + part.slack


RESOLUTION = 64
"""Integer steps that the noise should span: finer ones only make the tables longer."""
MOST_ROW_STEPS = 256
"""Maximal integer steps of one row: where the noise is smaller than a row, finer ones have a negligible effect."""
EIGHTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Relative sizes of noise, in eighths: few and commensurate, so that the losses of all spends share one lattice."""
BOX_STEPS, BOX_RESOLUTION, MOST_BOX_CELLS = 32, 16, 400_000
"""Limits for numbers that share their noise: integer steps of all rows in a group, integer steps that the noise should
span (long shifts have many losses), and cells that one evaluation of a size visits."""
COMMON = math.lcm(*EIGHTHS)
"""Common multiple of all eighths; much coarser spends need a larger one."""

ShiftLoss = Callable[[int], LossCells]
"""The loss of one noisy integer under a shift."""


@dataclass(frozen=True, slots=True)
class NoiseSpec:
    """One noisy vector: the size of its noise relative to the others', in eighths, and what its unit is.

    ``whole_rows``: the answer counts rows, so one row shifts it by exactly one; otherwise the step is free to choose.
    ``needs_bound``: the noise must have a largest value, because a threshold beyond it decides which keys are shown.
    ``is_selection``: a selection by the exponential mechanism, which only Laplace noise is certain to dominate.
    ``dimension``: number of integers that share their noise (``box_table``), each shifted equally by a row; then
    ``eighths`` is the size of the profile of the box, ``requested_eighths`` the size of each number (0: the same).
    """

    statistic: str
    eighths: int
    whole_rows: bool
    needs_bound: bool = False
    is_selection: bool = False
    dimension: int = 1
    requested_eighths: int = 0

    @property
    def noise_size(self) -> float:
        """Relative size of the noise."""
        return self.eighths / 8

    @property
    def requested_size(self) -> float:
        """Requested relative size of the error of each number."""
        return (self.requested_eighths or self.eighths) / 8

    def to_joint_noise(self, dimension: int) -> NoiseSpec:
        """Return the spend of ``dimension`` such numbers: E|X_i| of a box is about (d + 1)/2 times its profile."""
        return replace(
            self,
            eighths=nearest_eighths(2 * self.noise_size / (dimension + 1)),
            dimension=dimension,
            requested_eighths=self.eighths,
        )


def nearest_eighths(size: float) -> int:
    """The nearest relative size that is used (by ratio).

    >>> nearest_eighths(1.0), nearest_eighths(0.7), nearest_eighths(2.3)
    (8, 6, 16)
    """
    return min(EIGHTHS, key=lambda candidate: abs(math.log(8 * size / candidate)))


@dataclass(frozen=True, slots=True)
class CompositionGroup:
    """Noisy vectors over the same groups that one person's rows shift together."""

    noise_specs: tuple[NoiseSpec, ...]
    split_bounds: SplitBounds


@dataclass(frozen=True, slots=True)
class SelectedNoise:
    """The noise selected for one spend: the family, integer steps per row, the table that is sampled and certified."""

    noise_spec: NoiseSpec
    family_name: str
    steps_per_row: int
    table: AnyTable

    @property
    def scalar_table(self) -> NoiseTable:
        """The table of one number; raises ``TypeError`` for a box."""
        if isinstance(self.table, BoxTable):
            raise TypeError(f"{self.table!r} is noise for several numbers")
        return self.table


def all_noise_specs(units: Sequence[CompositionGroup]) -> list[NoiseSpec]:
    """The spends of all units, in order."""
    return [spend for unit in units for spend in unit.noise_specs]


def lattice_unit(units: Sequence[CompositionGroup], size: float) -> int:
    """An integer A: every spend of size a/8 and shift s has a·s dividing A, so all losses of distributions that fall by
    1/(size·s) a step are multiples of 8/(A·size).
    """
    spends = all_noise_specs(units)
    whole = math.lcm(*(spend.eighths for spend in spends))
    if all(spend.whole_rows for spend in spends):
        return whole
    wanted = min(RESOLUTION / size, MOST_ROW_STEPS)
    return whole * max(1, math.ceil(8 * wanted / whole))


def noise_requirements(units: Sequence[CompositionGroup], size: float, delta: float) -> list[NoiseRequirement]:
    """Return the requirements of each spend at the common size ``size`` if ``delta`` may be lost in total."""
    share, unit = delta / len(all_noise_specs(units)), lattice_unit(units, size)
    fine = math.inf if unit <= COMMON else 4 * min(RESOLUTION / size, MOST_ROW_STEPS)
    boxed = BOX_RESOLUTION / size
    found = []
    for group in units:
        bounds = group.split_bounds
        full, rest = divmod(bounds.most_rows, bounds.largest_part)
        parts = (bounds.largest_part,) * full + ((rest,) if rest else ())
        for spend in group.noise_specs:
            # A divisor of the lattice's unit, halved while a coarser spend would make the table long.
            steps = unit // spend.eighths
            while steps > fine and steps % 2 == 0:
                steps //= 2
            if spend.dimension > 1:
                most = math.floor(min(BOX_STEPS / bounds.largest_part, boxed / spend.noise_size))
                steps = _largest_divisor(steps, most)
            found.append(NoiseRequirement(1 if spend.whole_rows else steps, parts, share))
    return found


def estimated_box_cells(units: Sequence[CompositionGroup], size: float, delta: float) -> float:
    """Return about how many cells of boxes an evaluation of this size visits: 0 without boxes."""
    wanted, found = iter(noise_requirements(units, size, delta)), 0.0
    for unit in units:
        parts = range(1, unit.split_bounds.largest_part + 1)
        shifts = parts[-1:] if unit.split_bounds.has_one_split else parts
        for spend, need in zip(unit.noise_specs, wanted, strict=False):
            listed = need.listing_depth * size * spend.noise_size * need.shift
            found += listed * sum(2 * c * need.shift + 1 for c in shifts) if spend.dimension > 1 else 0.0
    return found


def _largest_divisor(number: int, most: int) -> int:
    """The largest divisor up to ``most``; 1 at least.

    >>> _largest_divisor(24, 7), _largest_divisor(7, 0)
    (6, 1)
    """
    return next(part for part in range(max(1, min(most, number)), 0, -1) if number % part == 0)


def total_loss(
    units: Sequence[CompositionGroup],
    losses: Sequence[ShiftLoss],
    shifts: Sequence[int],
    window: LossLattice,
    *,
    fullest: bool = False,
) -> LossPMF:
    """Return the composed loss of all units: each at the worst split of one person's rows, a unit's spends together.

    ``losses[i](s)`` is the loss of the i-th spend's noise under a shift by s; one row shifts it by ``shifts[i]``. Units
    that are alike, with the very same losses, are composed once. ``fullest`` uses one split
    where splits are too many to enumerate: then the result is a lower bound instead of an upper bound.
    """
    pairs = iter(zip(losses, shifts, strict=True))
    owned = [(unit.split_bounds, tuple(next(pairs) for _ in unit.noise_specs)) for unit in units]
    laws = []
    for (contribution, own), count in Counter(owned).items():
        part = _group_masses(own, window)
        if contribution.composes_every_split:
            law = worst_split(part, contribution, window)
        elif fullest:
            law = fullest_split(part, contribution)
        else:
            # One dominating distribution for each spend.
            bounds = (dominate_every_split(_loss_by_rows(*spend), contribution, window) for spend in own)
            law = reduce(LossPMF.__mul__, bounds)
        laws.append(law**count)
    return reduce(LossPMF.__mul__, laws)


def _loss_by_rows(loss: ShiftLoss, shift: int) -> ShiftLoss:
    """The loss by rows instead of steps."""
    return lambda rows: loss(rows * shift)


def _group_masses(own: Sequence[tuple[ShiftLoss, int]], window: LossLattice) -> Callable[[int], LossPMF]:
    """Return the loss of one group as a function of the person's rows: equal spends are composed at once."""
    counted = Counter(own).items()

    def loss_of_rows(rows: int) -> LossPMF:
        alike = (LossPMF.from_cells(loss(rows * shift), window) ** count for (loss, shift), count in counted)
        return reduce(LossPMF.__mul__, alike)

    return loss_of_rows
