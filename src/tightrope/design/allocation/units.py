"""What is to be made private: noisy vectors, and which of them one person's rows shift together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tightrope.design.allocation.contributions import Contribution, fullest_split, worst_split
from tightrope.design.allocation.many_rows import every_split
from tightrope.mechanisms.families.weights import Need
from tightrope.mechanisms.tables.box_table import AnyTable, BoxTable
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.privacy.laws.loss_cells import Cells
from tightrope.privacy.masses import Masses, Window

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
    def wanted(self) -> float:
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
    part = _part(own, window)
    if contribution.exact:
        return worst_split(part, contribution, window)
    if fullest:
        return fullest_split(part, contribution)
    return reduce(Masses.__mul__, (every_split(_rows(*spend), contribution, window) for spend in own))


def _rows(loss: ShiftLoss, shift: int) -> ShiftLoss:
    """The loss by rows instead of steps."""
    return lambda rows: loss(rows * shift)


def _part(own: Sequence[tuple[ShiftLoss, int]], window: Window) -> Callable[[int], Masses]:
    """The law of one group with some rows of the person: its spends side by side, those that are alike at once."""
    counted = Counter(own).items()

    def law(rows: int) -> Masses:
        alike = (Masses.of(loss(rows * shift), window) ** count for (loss, shift), count in counted)
        return reduce(Masses.__mul__, alike)

    return law
