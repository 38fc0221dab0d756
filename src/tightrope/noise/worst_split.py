"""What is to be made private: noisy vectors, and which of them one person's rows shift together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri_exp

from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.loss_pmf import Masses, Window, greatest_lower_bound, worst
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.box_table import AnyTable, BoxTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.family_weights import Need
from tightrope.numerics.checks import whole

# One person in a grouped answer: the worst way their rows may fall into groups (theory §4.3).
#
# A person with at most r rows, at most s in a group and in at most g groups may put c_1 + c_2 + … ≤ r rows into
# groups. The loss of a split is the composition of the losses of its parts, and the answer is dominated by the
# pointwise maximum of whole profiles over the splits: fixing one worst split is unsafe, because other answers shift
# the ε that matters. The maximum is built row by row, F_n = max_c L_c + F_{n−c}: it covers every split, and any order
# of groups.

MOST_COMPOSITIONS = 2500
"""Compositions that one person's worst split may take; where it would take more, it is bounded (``many_rows``)."""
MOST_ROWS = 10_000
"""Rows of one person, where they may fall in several ways."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """At most ``rows`` rows of a person, ``rows_per_group`` in one group, ``groups`` groups."""

    rows: int
    rows_per_group: int
    groups: int

    def __post_init__(self) -> None:
        for name in ("rows", "rows_per_group", "groups"):
            whole(name, getattr(self, name))
        if not (self.one_way or self.most_rows <= MOST_ROWS):
            raise InputError(
                "rows_per_person",
                self.rows,
                f"at most {MOST_ROWS} where they may fall into groups in several ways",
                "bound the person further: rows_per_group=1, groups_per_person=1, or fewer rows",
            )

    @property
    def largest_part(self) -> int:
        """Most rows in one group."""
        return min(self.rows, self.rows_per_group)

    @property
    def most_rows(self) -> int:
        """Most rows that count at all."""
        return min(self.rows, self.largest_part * self.groups)

    @property
    def one_way(self) -> bool:
        """Whether there is but one full split."""
        return self.groups == 1 or self.largest_part == 1

    @property
    def levels(self) -> int:
        """How often all rows are gone through: once where any number of groups is allowed, or stands for fewer."""
        one = self.most_rows * self.largest_part
        few = self.groups < self.most_rows and self.groups * one <= MOST_COMPOSITIONS
        return self.groups if few else 1

    @property
    def exact(self) -> bool:
        """Whether every split is composed; else they are bounded together."""
        return self.one_way or self.levels * self.most_rows * self.largest_part <= MOST_COMPOSITIONS


def fullest_split(part: Callable[[int], Masses], contribution: Contribution) -> Masses:
    """The law of one split, as many of the largest parts as there can be: no noise that keeps less will do."""
    return part(contribution.largest_part) ** (contribution.most_rows // contribution.largest_part)


def worst_split(part: Callable[[int], Masses], contribution: Contribution, window: Window) -> Masses:
    """The law that dominates every split of an ``exact`` contribution; ``part(c)`` is that of one group with c rows.

    Laws for more rows must dominate those for fewer (so they do for unimodal noise), so only full splits count.
    Where few groups would take too long, any number of groups stands for them: it dominates.
    """
    rows, largest = contribution.most_rows, contribution.largest_part
    if contribution.groups == 1:
        return part(largest)
    if largest == 1:
        return part(1) ** rows
    parts = [part(c) for c in range(1, largest + 1)]
    if contribution.levels == 1:
        # F_n = max over c of part c and F_{n−c}, n = 1..rows.
        best = [Masses.certain(window)]
        for n in range(1, rows + 1):
            best.append(_worst_last(parts, best, n))
        return best[rows]
    # The same with at most `groups` ≥ 2 parts: F_{g,n} = max over c of part c and F_{g−1,n−c}, F_{1,n} = part n.
    certain = Masses.certain(window)
    few_groups_best = [certain, *parts, *[parts[-1]] * (rows - len(parts))]
    for g in range(2, contribution.groups):
        reachable = range(1, min(rows, g * len(parts)) + 1)
        few_groups_best = [certain, *(_worst_last(parts, few_groups_best, n) for n in reachable)]
        few_groups_best += [few_groups_best[-1]] * (rows + 1 - len(few_groups_best))
    return _worst_last(parts, few_groups_best, rows)


def _worst_last(parts: list[Masses], best: list[Masses], rows: int) -> Masses:
    """The maximum over the size of the last part; the others are ``best`` with the rows that it leaves."""
    return worst([part * best[rows - c] for c, part in enumerate(parts[:rows], start=1)])


# A person with so many rows that their splits cannot be gone through: one law above all of them, for each noise
# alone.
#
# Two bounds, and what lies below both (``docs/proofs/many-rows.md``). A part with c rows loses at most c times what
# one row can lose: all parts together are a pair of that ε, with the δ that they can lose altogether. And each part
# lies below a normal pair μ_c apart, so a split lies below one √(Σ μ_c²) apart. The first is near the truth for
# Laplace-like noise, the second for Gaussian noise, whose worst split is one group.

TRIMMED = 1e-28
"""Outcomes that a part has less often than this count as lost: there an integer table has too few digits."""
ONE_BY_ONE = 8
"""Sizes of parts up to here are gone through one by one."""
RAISED = 1e-9
"""Relative margin for the rounding of sums and quantiles."""


class Normal(NamedTuple):
    """A part lies below a normal pair ``mu`` apart, once ``lost`` of it is given up."""

    mu: float
    lost: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of parts in ranges: ``largest`` of each, and one less than its smallest.

    Small sizes, and the largest, have a range of their own; from there ranges double in length downwards. What rises as
    the square of the rows is largest a row at the largest part even so.
    """

    below: tuple[int, ...]
    largest: tuple[int, ...]

    @classmethod
    def up_to(cls, most: int) -> Sizes:
        """
        >>> Sizes.up_to(20)
        Sizes(below=(19, 18, 16, 12, 7, 6, 5, 4, 3, 2, 1, 0), largest=(20, 19, 18, 16, 12, 7, 6, 5, 4, 3, 2, 1))
        """
        below, largest = [most - 1], [most]
        while (size := below[-1]) > 0:
            largest.append(size)
            below.append(size - 1 if size <= ONE_BY_ONE else min(size - 1, size**2 // most))
        return cls(tuple(below), tuple(largest))

    def largest_split_sum(self, amounts: Sequence[float], contribution: Contribution) -> float:
        """The largest sum over a split, at most, of an amount that does not fall with the rows of a part.

        ``amounts`` are those of ``largest``: a part in a range has at most that, and more rows than lie below it.
        """
        a_row = max(amount / (below + 1) for amount, below in zip(amounts, self.below, strict=True))
        return min(contribution.groups * amounts[0], contribution.most_rows * a_row) * (1 + RAISED)


def every_split(cells: Callable[[int], Cells], contribution: Contribution, window: Window) -> Masses:
    """A law that dominates every split; ``cells(c)`` is the loss of the noise under the shift of c rows.

    The noise must be symmetric and unimodal: then more rows dominate fewer, and both directions have one law.
    """
    sizes = Sizes.up_to(contribution.largest_part)
    parts = [cells(rows) for rows in sizes.largest]
    # What all parts may lose for certain: the ends of the law, which grow at least as the rows do.
    fullest = parts[0]
    lost_parts = min(float(contribution.groups), contribution.most_rows / contribution.largest_part)
    delta = min(1.0, lost_parts * fullest.infinite_mass * (1 + RAISED))
    # (ε, δ) for all parts together: losses add up, the largest of c rows is at most c times that of one.
    one_row = parts[-1]
    linear_fullest = parts[0]
    most = min(contribution.groups * _top(linear_fullest), contribution.most_rows * _top(one_row))
    epsilon = most * (1 + RAISED)
    high = (1 - delta) / (1 + math.exp(-epsilon))
    law = Cells.atoms(np.array([-epsilon, epsilon]), np.array([1 - delta - high, high]), delta, delta)
    linear = Masses.of(law, window)
    # A normal pair for all parts together, and what they may lose.
    normals = [_normal_part(part) for part in parts]
    mu = math.sqrt(sizes.largest_split_sum([normal.mu**2 for normal in normals], contribution))
    given_up = max(normal.lost - part.infinite_mass for normal, part in zip(normals, parts, strict=True))
    lost = min(1.0, delta + min(contribution.groups, contribution.most_rows) * given_up)
    normal_law = Masses.of(GaussianLaw(mu).cells(window.step), window)
    return greatest_lower_bound([linear, normal_law * Masses(window, 0, np.array([1 - lost]), lost)])


def _top(part: Cells) -> float:
    """The largest finite loss; 0 where there is none."""
    losses, masses = part.ends()
    return float(np.max(losses[masses > 0], initial=0.0)) + part.slack


def _normal_part(part: Cells) -> Normal:
    """The least μ for which the receiver's curve of a normal pair passes above every corner of the part's.

    The largest losses, with less than ``TRIMMED``, are given up under P, and their mirrors under Q. What is left, each
    side divided by its mass, is a symmetric pair: the corners up to its middle say all.
    """
    losses, masses = part.ends()
    order = np.argsort(-losses, kind="stable")
    losses, masses = losses[order] + part.slack, masses[order]
    held = np.cumsum(masses) > TRIMMED
    last = -losses[held][0] if np.any(held) else math.inf
    kept = held & (losses >= last)
    lost = min(1.0, part.infinite_mass + float(np.sum(masses[~kept])) * (1 + RAISED))
    if lost == 1 or not np.any(kept):
        return Normal(0.0, 1.0)
    p, q = np.cumsum(masses[kept]) / (1 - lost), np.cumsum(masses[kept] * np.exp(-losses[kept])) / (1 - lost)
    # The largest Φ⁻¹(p) − Φ⁻¹(q) of the corners up to the first beyond the middle p + q = 1.
    apart_p = p
    apart_q = q
    apart_last = int(np.searchsorted(apart_p + apart_q, 1.0)) + 1
    apart_p, apart_q = (
        np.minimum(apart_p[:apart_last] * (1 + 1e-12), 1 - 1e-15),
        np.minimum(apart_q[:apart_last] * (1 - 1e-12), 1 - 1e-15),
    )
    return Normal(
        float(np.max(ndtri_exp(np.log(apart_p)) - ndtri_exp(np.log(apart_q)), initial=0.0)) * (1 + RAISED) + 1e-11, lost
    )


RESOLUTION = 64
"""Integer steps that the noise should span: finer ones change nothing but the length of the tables."""
MOST_ROW_STEPS = 256
"""Integer steps of one row at most: where the noise is smaller than a row, finer ones change next to nothing."""
EIGHTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Relative sizes of noise, in eighths: few and commensurate, so that the losses of all spends share one lattice."""
BOX_STEPS, BOX_RESOLUTION, MOST_BOX_CELLS = 32, 16, 400_000
"""Where numbers share their noise: integer steps of all rows in a group, and those that the noise should span, at most,
for long shifts have many losses; and cells that one evaluation of a size goes through."""
COMMON = math.lcm(*EIGHTHS)
"""What all of them divide; spends that are much coarser make a larger one."""

ShiftLoss = Callable[[int], Cells]
"""The loss of one noisy integer under a shift."""


@dataclass(frozen=True, slots=True)
class Spend:
    """One noisy vector: the size of its noise relative to the others', in eighths, and what its unit is.

    ``whole_rows``: the answer counts rows, so one row shifts it by exactly one; otherwise the step is free to choose.
    ``bounded``: the noise must have a largest value, because a threshold beyond it decides which keys are shown.
    ``chooses``: it stands for a choice by the exponential mechanism, which only Laplace noise is sure to dominate.
    ``dimension``: it stands for so many numbers, each of which a row shifts by as much, and that share their noise
    (``box_table``); then ``eighths`` are those of the profile of the box, ``asked`` those of each number (0: the same).
    """

    statistic: str
    eighths: int
    whole_rows: bool
    bounded: bool = False
    chooses: bool = False
    dimension: int = 1
    asked: int = 0

    @property
    def size(self) -> float:
        """Relative size of the noise."""
        return self.eighths / 8

    @property
    def relative_size(self) -> float:
        """Relative size that the error of each number was to have."""
        return (self.asked or self.eighths) / 8

    def together(self, dimension: int) -> Spend:
        """So many numbers like this one: E|X_i| of a box is about (d + 1)/2 times the size of its profile."""
        return replace(self, eighths=eighths(2 * self.size / (dimension + 1)), dimension=dimension, asked=self.eighths)


def eighths(size: float) -> int:
    """The nearest relative size that is used (by ratio).

    >>> eighths(1.0), eighths(0.7), eighths(2.3)
    (8, 6, 16)
    """
    return min(EIGHTHS, key=lambda candidate: abs(math.log(8 * size / candidate)))


@dataclass(frozen=True, slots=True)
class Unit:
    """Noisy vectors over the same groups that one person's rows shift together."""

    spends: tuple[Spend, ...]
    contribution: Contribution


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for one spend: the family, integer steps a row, the table that is sampled and certified."""

    spend: Spend
    family: str
    shift: int
    table: AnyTable

    @property
    def plain(self) -> NoiseTable:
        """The table of one number; raises ``TypeError`` for a box."""
        if isinstance(self.table, BoxTable):
            raise TypeError(f"{self.table!r} is noise for several numbers")
        return self.table


def all_spends(units: Sequence[Unit]) -> list[Spend]:
    """The spends of all units, in order."""
    return [spend for unit in units for spend in unit.spends]


def lattice_unit(units: Sequence[Unit], size: float) -> int:
    """A whole number A: every spend of size a/8 and shift s has a·s dividing A, so all losses of laws that fall by
    1/(size·s) a step are multiples of 8/(A·size).
    """
    spends = all_spends(units)
    whole = math.lcm(*(spend.eighths for spend in spends))
    if all(spend.whole_rows for spend in spends):
        return whole
    wanted = min(RESOLUTION / size, MOST_ROW_STEPS)
    return whole * max(1, math.ceil(8 * wanted / whole))


def needs(units: Sequence[Unit], size: float, delta: float) -> list[Need]:
    """What each spend must hide when the common size is ``size`` and ``delta`` may be lost altogether."""
    share, unit = delta / len(all_spends(units)), lattice_unit(units, size)
    fine = math.inf if unit <= COMMON else 4 * min(RESOLUTION / size, MOST_ROW_STEPS)
    boxed = BOX_RESOLUTION / size
    return [
        _need(u.contribution, spend, _steps(unit // spend.eighths, fine), share, boxed)
        for u in units
        for spend in u.spends
    ]


def box_cells(units: Sequence[Unit], size: float, delta: float) -> float:
    """About how many cells of boxes an evaluation of this size goes through: nothing where there is none."""
    wanted, found = iter(needs(units, size, delta)), 0.0
    for unit in units:
        parts = range(1, unit.contribution.largest_part + 1)
        shifts = parts[-1:] if unit.contribution.one_way else parts
        for spend, need in zip(unit.spends, wanted, strict=False):
            listed = need.depth * size * spend.size * need.shift
            found += listed * sum(2 * c * need.shift + 1 for c in shifts) if spend.dimension > 1 else 0.0
    return found


def _steps(most: int, fine: float) -> int:
    """Steps of a row: a divisor of ``most``, halved where a coarse spend beside it would make the table long."""
    while most > fine and most % 2 == 0:
        most //= 2
    return most


def _need(contribution: Contribution, spend: Spend, steps: int, share: float, boxed: float) -> Need:
    full, rest = divmod(contribution.most_rows, contribution.largest_part)
    parts = (contribution.largest_part,) * full + ((rest,) if rest else ())
    if spend.dimension > 1:
        steps = _divisor(steps, math.floor(min(BOX_STEPS / contribution.largest_part, boxed / spend.size)))
    return Need(1 if spend.whole_rows else steps, parts, share)


def _divisor(number: int, most: int) -> int:
    """The largest divisor up to ``most``; 1 at least.

    >>> _divisor(24, 7), _divisor(7, 0)
    (6, 1)
    """
    return next(part for part in range(max(1, min(most, number)), 0, -1) if number % part == 0)


def total_loss(
    units: Sequence[Unit], losses: Sequence[ShiftLoss], shifts: Sequence[int], window: Window, *, fullest: bool = False
) -> Masses:
    """The composed law of all units: each at the worst split of one person's rows, spends of a unit shifted together.

    ``losses[i](s)`` is the loss of the i-th spend's noise under a shift by s; one row shifts it by ``shifts[i]``. Units
    that are alike, with the very same losses, are composed once. ``fullest`` puts one split for those that are too many
    to go through: no upper bound, but what the noise must hide at least.
    """
    pairs = iter(zip(losses, shifts, strict=True))
    owned = [(unit.contribution, tuple(next(pairs) for _ in unit.spends)) for unit in units]
    counted = Counter(owned).items()
    laws = [_unit_law(contribution, own, window, fullest) ** count for (contribution, own), count in counted]
    return reduce(Masses.__mul__, laws)


def _unit_law(
    contribution: Contribution, own: Sequence[tuple[ShiftLoss, int]], window: Window, fullest: bool
) -> Masses:
    """Every split gone through, or one law above all of them for each spend."""
    part = _group_masses(own, window)
    if contribution.exact:
        return worst_split(part, contribution, window)
    if fullest:
        return fullest_split(part, contribution)
    return reduce(Masses.__mul__, (every_split(_rows(*spend), contribution, window) for spend in own))


def _rows(loss: ShiftLoss, shift: int) -> ShiftLoss:
    """The loss by rows instead of steps."""
    return lambda rows: loss(rows * shift)


def _group_masses(own: Sequence[tuple[ShiftLoss, int]], window: Window) -> Callable[[int], Masses]:
    """The law of one group with some rows of the person: its spends side by side, those that are alike at once."""
    counted = Counter(own).items()

    def law(rows: int) -> Masses:
        alike = (Masses.of(loss(rows * shift), window) ** count for (loss, shift), count in counted)
        return reduce(Masses.__mul__, alike)

    return law
