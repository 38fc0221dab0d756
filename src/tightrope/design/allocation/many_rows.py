"""A person with so many rows that their splits cannot be gone through: one law above all of them, for each noise alone.

Two bounds, and what lies below both (``docs/proofs/many-rows.md``). A part with c rows loses at most c times what one
row can lose: all parts together are a pair of that ε, with the δ that they can lose altogether. And each part lies
below a normal pair μ_c apart, so a split lies below one √(Σ μ_c²) apart. The first is near the truth for Laplace-like
noise, the second for Gaussian noise, whose worst split is one group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri_exp

from tightrope.design.allocation.contributions import Contribution
from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.laws.loss_cells import Cells
from tightrope.privacy.masses import Masses, Window, least

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

    def most(self, amounts: Sequence[float], contribution: Contribution) -> float:
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
    delta = _lost(parts[0], contribution)
    linear = _linear(parts[-1], parts[0], delta, contribution, window)
    return least([linear, _normal(parts, sizes, delta, contribution, window)])


def _lost(fullest: Cells, contribution: Contribution) -> float:
    """What all parts may lose for certain: the ends of the law, which grow at least as the rows do."""
    parts = min(float(contribution.groups), contribution.most_rows / contribution.largest_part)
    return min(1.0, parts * fullest.infinite_mass * (1 + RAISED))


def _linear(one_row: Cells, fullest: Cells, delta: float, contribution: Contribution, window: Window) -> Masses:
    """(ε, δ) for all parts together: losses add up, the largest of c rows is at most c times that of one."""
    most = min(contribution.groups * _top(fullest), contribution.most_rows * _top(one_row))
    epsilon = most * (1 + RAISED)
    high = (1 - delta) / (1 + math.exp(-epsilon))
    law = Cells.atoms(np.array([-epsilon, epsilon]), np.array([1 - delta - high, high]), delta, delta)
    return Masses.of(law, window)


def _top(part: Cells) -> float:
    """The largest finite loss; 0 where there is none."""
    losses, masses = part.ends()
    return float(np.max(losses[masses > 0], initial=0.0)) + part.slack


def _normal(parts: Sequence[Cells], sizes: Sizes, delta: float, contribution: Contribution, window: Window) -> Masses:
    """A normal pair for all parts together, and what they may lose."""
    normals = [_normal_part(part) for part in parts]
    mu = math.sqrt(sizes.most([normal.mu**2 for normal in normals], contribution))
    given_up = max(normal.lost - part.infinite_mass for normal, part in zip(normals, parts, strict=True))
    lost = min(1.0, delta + min(contribution.groups, contribution.most_rows) * given_up)
    law = Masses.of(GaussianLaw(mu).cells(window.step), window)
    return law * Masses(window, 0, np.array([1 - lost]), lost)


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
    return Normal(_apart(p, q) * (1 + RAISED) + 1e-11, lost)


def _apart(p: Floats, q: Floats) -> float:
    """The largest Φ⁻¹(p) − Φ⁻¹(q) of the corners up to the first beyond the middle p + q = 1."""
    last = int(np.searchsorted(p + q, 1.0)) + 1
    p, q = np.minimum(p[:last] * (1 + 1e-12), 1 - 1e-15), np.minimum(q[:last] * (1 - 1e-12), 1 - 1e-15)
    return float(np.max(ndtri_exp(np.log(p)) - ndtri_exp(np.log(q)), initial=0.0))
