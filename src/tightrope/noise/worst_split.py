"""The privacy loss of noisy vectors, at the worst way in which one person's rows may fall into groups.

1. The worst split by enumeration (``SplitBounds``, ``worst_split``).
2. A distribution that dominates every split, where they are too many to enumerate (``dominate_every_split``).
3. Noisy vectors (``NoiseSpec``), grouped by which of them one person's rows shift together (``CompositionGroup``), and
   their total loss (``worst_split_loss``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import NamedTuple, Self, TypeVar

import numpy as np
from scipy.special import ndtri_exp

from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.loss_pmf import LossLattice, LossPMF, greatest_dominated_pmf, maximum_profile_pmf
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.family_weights import NoiseRequirement
from tightrope.numerics.checks import check_integer

# 1. One person in a grouped answer: the worst way in which their rows may fall into groups (theory §4.3).
#
# A person with at most r rows, at most s in a group and in at most g groups may put c_1 + c_2 + … ≤ r rows into
# groups. The loss of a split is the composition of the losses of its parts, and the answer is dominated by the
# pointwise maximum of whole profiles over the splits: fixing one worst split is unsafe, because other answers shift
# the ε that matters. The maximum is built row by row, F_n = max_c L_c + F_{n−c}: it covers every split, and any order
# of groups.

MOST_COMPOSITIONS = 2500
"""Maximal number of compositions for one person's worst split; above, it is bounded (docs/proofs/many-rows.md)."""
FEW_COMPOSITIONS = 400
"""With more compositions a round than this (20 rows in any groups), the bound is used if it costs little."""
MOST_ROWS = 10_000
"""Maximal number of rows of one person if they may fall into groups in several ways."""


@dataclass(frozen=True, slots=True)
class SplitBounds:
    """Bounds on one person: at most ``rows`` rows, ``max_rows_per_group`` in one group, in ``groups`` groups.

    They differ from ``ContributionBounds``, which the database enforces: a group is anything that has noise of its own,
    such as a cell, so that there may be many times as many; and the splits must be few enough to be composed.
    """

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
        """Number of passes over all rows: ``groups``, or one if any number of groups is allowed or used as a bound."""
        compositions_per_round = self.most_rows * self.largest_part
        counts_groups = self.groups < self.most_rows and self.groups * compositions_per_round <= MOST_COMPOSITIONS
        return self.groups if counts_groups else 1

    @property
    def composes_every_split(self) -> bool:
        """True if every split is composed; otherwise they are bounded together."""
        return self.has_one_split or self.composition_rounds * self.most_rows * self.largest_part <= MOST_COMPOSITIONS


def fullest_split(part: Callable[[int], LossPMF], contribution: SplitBounds) -> LossPMF:
    """Return the loss of the split with as many largest parts as possible: a lower bound on the worst loss."""
    return part(contribution.largest_part) ** (contribution.most_rows // contribution.largest_part)


def worst_split(part: Callable[[int], LossPMF], contribution: SplitBounds, window: LossLattice) -> LossPMF:
    """Return the loss that dominates every split of a contribution; ``part(c)`` is the loss of a group of c rows.

    Losses of more rows must dominate losses of fewer (true for unimodal noise), so only full splits count. If limiting
    the number of groups would take too long, any number of groups is allowed instead: this dominates.
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
    no_rows = LossPMF.zero_loss(window)
    few_groups_best = [no_rows, *parts, *[parts[-1]] * (rows - len(parts))]
    for g in range(2, contribution.groups):
        reachable = range(1, min(rows, g * len(parts)) + 1)
        few_groups_best = [no_rows, *(_worst_last_part(parts, few_groups_best, n) for n in reachable)]
        few_groups_best += [few_groups_best[-1]] * (rows + 1 - len(few_groups_best))
    return _worst_last_part(parts, few_groups_best, rows)


def _worst_last_part(parts: list[LossPMF], best: list[LossPMF], rows: int) -> LossPMF:
    """Return the maximum over the size c of the last part, composed with ``best`` for the other rows − c rows."""
    return maximum_profile_pmf([part * best[rows - c] for c, part in enumerate(parts[:rows], start=1)])


# 2. A person with too many rows to enumerate their splits: one dominating distribution for all splits, for each noise
# separately.
#
# It is the minimum of two bounds (docs/proofs/many-rows.md). First, the largest loss of a part with c rows is at most c
# times that of one row, so all parts together are dominated by an (ε, δ) pair. Second, each part is dominated by a
# normal pair with distance μ_c, so a split is dominated by one with distance √(Σ μ_c²). The first is close for
# Laplace-like noise, the second for Gaussian noise, whose worst split is one group.

TRIMMED_MASS = 1e-28
"""Outcomes with a smaller probability count as infinite loss: there an integer table has too few digits."""
ENUMERATED_SIZES = 8
"""Sizes of parts up to here are enumerated one by one."""
MIRROR_TOLERANCE = 1e-9
"""Relative distance within which a loss counts as the mirror of the largest one."""
ROUNDING_MARGIN = 1e-9
"""Relative margin for the rounding of sums and quantiles."""


class NormalBound(NamedTuple):
    """A part is dominated by a normal pair with distance ``mu``, except for an infinite loss of ``lost_mass``."""

    mu: float
    lost_mass: float

    @classmethod
    def from_cells(cls, part: LossCells) -> Self:
        """Return the least μ for which the ROC curve of a normal pair lies above every corner of the part's ROC curve.

        The largest losses, of total mass ``TRIMMED_MASS``, are removed under P, and the smallest ones under Q. What
        remains, normalized, is a symmetric pair: the corners up to its middle suffice.
        """
        losses, masses = part.dominating_atoms()
        order = np.argsort(-losses, kind="stable")
        losses, masses = losses[order] + part.slack, masses[order]
        is_likely = np.cumsum(masses) > TRIMMED_MASS
        smallest_loss = -losses[is_likely][0] if np.any(is_likely) else math.inf
        # A loss that is less than its mirror only by rounding is raised to it.
        is_used = is_likely & (losses >= smallest_loss - MIRROR_TOLERANCE * abs(smallest_loss))
        losses = np.maximum(losses, smallest_loss) if np.any(is_used) else losses
        lost_mass = min(1.0, part.infinite_mass + float(np.sum(masses[~is_used])) * (1 + ROUNDING_MARGIN))
        if lost_mass == 1 or not np.any(is_used):
            return cls(0.0, 1.0)
        p, q = (
            np.cumsum(masses[is_used]) / (1 - lost_mass),
            np.cumsum(masses[is_used] * np.exp(-losses[is_used])) / (1 - lost_mass),
        )
        # The largest Φ⁻¹(p) − Φ⁻¹(q) of the corners up to the first beyond the middle p + q = 1.
        count = int(np.searchsorted(p + q, 1.0)) + 1
        p, q = np.minimum(p[:count] * (1 + 1e-12), 1 - 1e-15), np.minimum(q[:count] * (1 - 1e-12), 1 - 1e-15)
        mu = float(np.max(ndtri_exp(np.log(p)) - ndtri_exp(np.log(q)), initial=0.0))
        return cls(mu * (1 + ROUNDING_MARGIN) + 1e-11, lost_mass)


@dataclass(frozen=True, slots=True)
class PartSizes:
    """Ranges of part sizes: range i has more than ``lower_edges[i]`` and at most ``upper_edges[i]`` rows.

    Small sizes, and the largest one, have a range of their own; between them, ranges become longer for smaller sizes.
    Amounts that increase as the square of the rows still have the largest value per row at the largest part.
    """

    lower_edges: tuple[int, ...]
    upper_edges: tuple[int, ...]

    @classmethod
    def from_largest(cls, most: int) -> PartSizes:
        """Return the ranges for parts of up to ``most`` rows, largest first.

        >>> PartSizes.from_largest(20)  # doctest: +NORMALIZE_WHITESPACE
        PartSizes(lower_edges=(19, 18, 16, 12, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                  upper_edges=(20, 19, 18, 16, 12, 8, 7, 6, 5, 4, 3, 2, 1))
        """
        lower_edges, upper_edges = [most - 1], [most]
        while (size := lower_edges[-1]) > 0:
            upper_edges.append(size)
            longer = max(size**2 // most, ENUMERATED_SIZES)
            lower_edges.append(size - 1 if size <= ENUMERATED_SIZES else min(size - 1, longer))
        return cls(tuple(lower_edges), tuple(upper_edges))

    def largest_split_sum(self, amounts: Sequence[float], contribution: SplitBounds) -> float:
        """Return an upper bound on the sum, over the parts of any split, of an amount that increases with their rows.

        ``amounts[i]`` is the amount of a part with ``upper_edges[i]`` rows.
        """
        amount_per_row = max(amount / (edge + 1) for amount, edge in zip(amounts, self.lower_edges, strict=True))
        return min(contribution.groups * amounts[0], contribution.most_rows * amount_per_row) * (1 + ROUNDING_MARGIN)


def dominate_every_split(cells: Callable[[int], LossCells], contribution: SplitBounds, window: LossLattice) -> LossPMF:
    """Return a loss that dominates every split; ``cells(c)`` is the loss of the noise under the shift of c rows.

    The noise must be symmetric and unimodal: then more rows dominate fewer, and both directions have the same loss.
    """
    sizes = PartSizes.from_largest(contribution.largest_part)
    parts = [cells(rows) for rows in sizes.upper_edges]
    largest_part, one_row = parts[0], parts[-1]
    # The infinite loss of all parts: the mass at the ends, which grows at least in proportion to the rows.
    part_count = min(float(contribution.groups), contribution.most_rows / contribution.largest_part)
    delta = min(1.0, part_count * largest_part.infinite_mass * (1 + ROUNDING_MARGIN))
    # (ε, δ) for all parts together: losses add up, the largest loss of c rows is at most c times the loss of one.
    max_loss = min(
        contribution.groups * _largest_finite_loss(largest_part),
        contribution.most_rows * _largest_finite_loss(one_row),
    )
    epsilon = max_loss * (1 + ROUNDING_MARGIN)
    high = (1 - delta) / (1 + math.exp(-epsilon))
    linear_cells = LossCells.from_atoms(np.array([-epsilon, epsilon]), np.array([1 - delta - high, high]), delta, delta)
    linear = LossPMF.from_cells(linear_cells, window)
    # A normal pair for all parts together, and their total infinite loss.
    normal_bounds = [NormalBound.from_cells(part) for part in parts]
    mu = math.sqrt(sizes.largest_split_sum([bound.mu**2 for bound in normal_bounds], contribution))
    trimmed_mass = max(bound.lost_mass - part.infinite_mass for bound, part in zip(normal_bounds, parts, strict=True))
    lost_mass = min(1.0, delta + min(contribution.groups, contribution.most_rows) * trimmed_mass)
    normal_pmf = LossPMF.from_cells(GaussianLossDistribution(mu).loss_cells(window.step), window)
    return greatest_dominated_pmf([linear, normal_pmf * LossPMF(window, 0, np.array([1 - lost_mass]), lost_mass)])


def _largest_finite_loss(part: LossCells) -> float:
    """Return the largest finite loss, or 0."""
    losses, masses = part.dominating_atoms()
    return float(np.max(losses[masses > 0], initial=0.0)) + part.slack


# 3. Noisy vectors and their total loss.

RESOLUTION = 64
"""Number of integer steps that the noise should extend over: finer steps only make the tables longer."""
MOST_ROW_STEPS = 256
"""Maximal number of integer steps per row: if the noise is smaller than a row, finer steps change it negligibly."""
EIGHTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Relative noise sizes that are used, in eighths: few and commensurate, so that all losses share one lattice."""
BOX_STEPS, BOX_RESOLUTION, MOST_BOX_CELLS = 32, 16, 400_000
"""Limits for numbers that share their noise (``box_table``): integer steps of all rows in a group, integer steps that
the noise should extend over (long shifts have many losses), and cells that one evaluation of a size visits."""
COMMON = math.lcm(*EIGHTHS)
"""Common multiple of all eighths; statistics with much coarser steps need a larger one."""

ShiftLoss = Callable[[int], LossCells]
"""The loss of one noisy integer under a shift."""


@dataclass(frozen=True, slots=True)
class NoiseSpec:
    """One noisy vector: the size of its noise relative to that of the others, in eighths, and how a row shifts it.

    ``whole_rows``: the answer counts rows, so one row shifts it by exactly one; otherwise the step can be chosen.
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
        """Return the spec of ``dimension`` such numbers: E|X_i| of a box is about (d + 1)/2 times its profile's."""
        return replace(
            self,
            eighths=nearest_eighths(2 * self.noise_size / (dimension + 1)),
            dimension=dimension,
            requested_eighths=self.eighths,
        )


def nearest_eighths(size: float) -> int:
    """Return the relative size in ``EIGHTHS`` that is nearest by ratio.

    >>> nearest_eighths(1.0), nearest_eighths(0.7), nearest_eighths(2.3)
    (8, 6, 16)
    """
    return min(EIGHTHS, key=lambda candidate: abs(math.log(8 * size / candidate)))


class Alternative(NamedTuple):
    """A member of a set of which a person's row enters at most one member, because of their conditions."""

    set_number: int
    member: int


@dataclass(frozen=True, slots=True)
class CompositionGroup:
    """Noisy vectors over the same groups that one person's rows shift together.

    ``bounds_splits``: all splits are bounded together even if they are few enough to be composed, and losses of long
    tables are bounded in cells: much faster.
    ``alternative``: a person has one row, which shifts the groups of at most one member of each set. The groups of one
    member compose; the members of a set cost as much as the worst one (docs/proofs/disjoint-conditions.md).
    """

    noise_specs: tuple[NoiseSpec, ...]
    split_bounds: SplitBounds
    bounds_splits: bool = False
    alternative: Alternative | None = None

    def __post_init__(self) -> None:
        if self.alternative is not None and self.split_bounds.rows != 1:
            raise InputError("rows", self.split_bounds.rows, "1 where a row enters one of several groups")

    @property
    def composes_every_split(self) -> bool:
        """True if every split is composed; otherwise they are bounded together."""
        return self.split_bounds.composes_every_split and not self.bounds_splits

    def with_fast_bound(self) -> Self:
        """Return the group with ``bounds_splits``, unless its compositions are few or numbers share their noise."""
        bounds = self.split_bounds
        is_small = bounds.has_one_split or bounds.most_rows * bounds.largest_part <= FEW_COMPOSITIONS
        has_boxes = any(spec.dimension > 1 for spec in self.noise_specs)
        return self if is_small or has_boxes else replace(self, bounds_splits=True)


def repeat_groups(releases: Sequence[tuple[Sequence[CompositionGroup], int]]) -> list[CompositionGroup]:
    """Return the groups of several releases, each the given number of times.

    Each time has sets of its own: a person's row may have changed between two releases, and meet another condition.
    """
    groups: list[CompositionGroup] = []
    first_free = 0
    for release, times in releases:
        set_numbers = {group.alternative.set_number for group in release if group.alternative is not None}
        for _ in range(times if set_numbers else 0):
            renumbered = {number: first_free + index for index, number in enumerate(sorted(set_numbers))}
            groups += [
                replace(group, alternative=Alternative(renumbered[one.set_number], one.member)) if one else group
                for group in release
                for one in (group.alternative,)
            ]
            first_free += len(set_numbers)
        groups += [] if set_numbers else [*release] * times
    return groups


Item = TypeVar("Item")


def by_alternative(groups: Sequence[CompositionGroup], items: Sequence[Item]) -> list[list[list[Item]]]:
    """Return the items of the groups by set and by member; a group without ``alternative`` is a set of its own."""
    sets: dict[object, dict[int, list[Item]]] = {}
    for index, (group, item) in enumerate(zip(groups, items, strict=True)):
        one = group.alternative
        key, member = (("alone", index), 0) if one is None else (one.set_number, one.member)
        sets.setdefault(key, {}).setdefault(member, []).append(item)
    return [list(members.values()) for members in sets.values()]


def largest_total(groups: Sequence[CompositionGroup], amounts: Sequence[float]) -> float:
    """Return the largest sum of the groups' amounts that one person's rows can meet: of each set, one member's.

    >>> counts = [CompositionGroup((NoiseSpec("count", 8, True),), SplitBounds(1, 1, 1), False, Alternative(0, i))
    ...           for i in range(2)]
    >>> largest_total([*counts, replace(counts[0], alternative=None)], [1.0, 2.0, 5.0])
    7.0
    """
    return math.fsum(max(map(math.fsum, members)) for members in by_alternative(groups, amounts))


def linear_losses(groups: Sequence[CompositionGroup]) -> list[float]:
    """Return the loss of each group with Laplace noise of size 1 by basic composition, at its relative sizes."""
    return [math.fsum(group.split_bounds.most_rows / spec.noise_size for spec in group.noise_specs) for group in groups]


@dataclass(frozen=True, slots=True)
class SelectedNoise:
    """The noise selected for one vector: the family, integer steps per row, the table that is sampled and certified."""

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
    """Return the noise specs of all units, in order."""
    return [spend for unit in units for spend in unit.noise_specs]


def lattice_unit(units: Sequence[CompositionGroup], size: float) -> int:
    """Return an integer A that a·s divides for every vector of relative size a/8 and shift s.

    So all losses of distributions that fall by 1/(size·s) a step are multiples of 8/(A·size).
    """
    specs = all_noise_specs(units)
    common_multiple = math.lcm(*(spec.eighths for spec in specs))
    if all(spec.whole_rows for spec in specs):
        return common_multiple
    if not all(_has_usual_size(spec) for spec in specs):
        wanted_units = (_wanted_steps(spec, size) * spec.eighths for spec in specs if not spec.whole_rows)
        return common_multiple * max(1, math.ceil(max(wanted_units) / common_multiple))
    wanted_steps = min(RESOLUTION / size, MOST_ROW_STEPS)
    return common_multiple * max(1, math.ceil(8 * wanted_steps / common_multiple))


def _has_usual_size(spec: NoiseSpec) -> bool:
    """Return whether the relative size is a power of 2, or 3 times one, in eighths: as all of ``EIGHTHS``."""
    return spec.eighths // (spec.eighths & -spec.eighths) in (1, 3)


def _wanted_steps(spec: NoiseSpec, size: float) -> float:
    """Return the number of steps per row over which the noise of a vector should extend."""
    return min(RESOLUTION / (size * spec.noise_size), MOST_ROW_STEPS)


def noise_requirements(units: Sequence[CompositionGroup], size: float, delta: float) -> list[NoiseRequirement]:
    """Return the requirements of each vector at the common size ``size`` if ``delta`` may be lost in total."""
    vector_count = largest_total(units, [len(group.noise_specs) for group in units])
    delta_per_spec, unit = delta / vector_count, lattice_unit(units, size)
    max_steps = math.inf if unit <= COMMON else 4 * min(RESOLUTION / size, MOST_ROW_STEPS)
    max_box_steps = BOX_RESOLUTION / size
    all_usual = all(map(_has_usual_size, all_noise_specs(units)))
    requirements = []
    for group in units:
        bounds = group.split_bounds
        full, remainder = divmod(bounds.most_rows, bounds.largest_part)
        parts = (bounds.largest_part,) * full + (remainder,) * (remainder > 0)
        for spec in group.noise_specs:
            # A divisor of the lattice's unit, halved while it would make the table too long.
            steps = unit // spec.eighths
            while steps > max_steps and steps % 2 == 0:
                steps //= 2
            if not all_usual:
                most_steps = max(1, min(steps, math.floor(4 * _wanted_steps(spec, size))))
                steps = next(divisor for divisor in range(most_steps, 0, -1) if steps % divisor == 0)
            if spec.dimension > 1:
                max_steps_of_box = math.floor(min(BOX_STEPS / bounds.largest_part, max_box_steps / spec.noise_size))
                # The largest divisor of the steps that is not too many for the box, at least 1.
                most = max(1, min(max_steps_of_box, steps))
                steps = next(divisor for divisor in range(most, 0, -1) if steps % divisor == 0)
            requirements.append(NoiseRequirement(1 if spec.whole_rows else steps, parts, delta_per_spec))
    return requirements


def estimated_box_cells(units: Sequence[CompositionGroup], size: float, delta: float) -> float:
    """Return about how many cells of boxes an evaluation of this size visits: 0 without boxes."""
    requirements, cells = iter(noise_requirements(units, size, delta)), 0.0
    for unit in units:
        parts = range(1, unit.split_bounds.largest_part + 1)
        shifts = parts[-1:] if unit.split_bounds.has_one_split else parts
        for spec, need in zip(unit.noise_specs, requirements, strict=False):
            listed = need.listing_depth * size * spec.noise_size * need.shift
            cells += listed * sum(2 * c * need.shift + 1 for c in shifts) if spec.dimension > 1 else 0.0
    return cells


def worst_split_loss(
    units: Sequence[CompositionGroup],
    losses: Sequence[ShiftLoss],
    shifts: Sequence[int],
    window: LossLattice,
    *,
    fullest: bool = False,
) -> LossPMF:
    """Return the composed loss of all units, each at the worst split of one person's rows for all its vectors together.

    Of a set of alternatives (``CompositionGroup.alternative``) it is the pointwise maximum over the members.
    ``losses[i](s)`` is the loss of the i-th vector's noise under a shift by s; one row shifts it by ``shifts[i]``.
    Equal units with the same losses are computed once. If ``fullest``, a single split is used where they are too many
    to enumerate: then the result is a lower bound instead of an upper bound.
    """

    def loss_by_rows(loss: ShiftLoss, shift: int) -> ShiftLoss:
        return lambda rows: loss(rows * shift)

    pairs = iter(zip(losses, shifts, strict=True))
    # More groups than rows allow the same splits.
    unit_losses = [
        (
            bounds if bounds.groups <= bounds.most_rows else replace(bounds, groups=bounds.most_rows),
            unit.composes_every_split,
            tuple(next(pairs) for _ in unit.noise_specs),
        )
        for unit in units
        for bounds in (unit.split_bounds,)
    ]

    @cache
    def unit_pmf(unit_loss: tuple[SplitBounds, bool, tuple[tuple[ShiftLoss, int], ...]]) -> LossPMF:
        contribution, composes_every_split, losses_and_shifts = unit_loss
        part = _group_loss(losses_and_shifts, window)
        if composes_every_split:
            return worst_split(part, contribution, window)
        if fullest:
            return fullest_split(part, contribution)
        # One dominating distribution for each vector; equal vectors have the same one.
        bounds = (
            dominate_every_split(loss_by_rows(loss, shift), contribution, window) ** times
            for (loss, shift), times in Counter(losses_and_shifts).items()
        )
        return reduce(LossPMF.__mul__, bounds)

    # Equal members of a set, and equal sets, are computed once.
    sets = Counter(
        tuple(dict.fromkeys(tuple(Counter(member).items()) for member in members))
        for members in by_alternative(units, unit_losses)
    )
    pmfs = []
    for members, count in sets.items():
        member_pmfs = [
            reduce(LossPMF.__mul__, [unit_pmf(unit_loss) ** times for unit_loss, times in member]) for member in members
        ]
        pmfs.append(maximum_profile_pmf(member_pmfs) ** count)
    return reduce(LossPMF.__mul__, pmfs)


def _group_loss(losses_and_shifts: Sequence[tuple[ShiftLoss, int]], window: LossLattice) -> Callable[[int], LossPMF]:
    """Return the loss of one group as a function of the person's rows: equal vectors are composed at once."""
    counted = Counter(losses_and_shifts).items()

    def loss_of_rows(rows: int) -> LossPMF:
        pmfs = (LossPMF.from_cells(loss(rows * shift), window) ** count for (loss, shift), count in counted)
        return reduce(LossPMF.__mul__, pmfs)

    return loss_of_rows
