"""How many rows lie below each edge of a grid, from noisy counts of blocks and of the cells in them.

A group of n rows is counted in B blocks of b cells: y_i = Y_i + X_i for blocks and z_ik = Z_ik + X_ik for cells, with
independent symmetric noise. The excess at an edge, k cells into block i, is how many more rows lie below it than the
quantile wants:

    D = #below − q n = (1 − q) Σ_{j<i} Y_j − q Σ_{j≥i} Y_j + Σ_{l<k} Z_il.

Its estimate puts y for Y, and for the rows of block i below the edge what least squares makes of both levels where
they are equally noisy: Σ_{l<k} z_il + k/(b + 1) · (y_i − Σ_l z_il). All of it is linear in the noise, so the error of D
has the log moment L(θ) = Σ log M(θ w) over its weights w, and P(error > t) ≤ exp(L(θ) − θ t) for all θ ≥ 0 (Chernoff).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import isotonic_regression

from tightrope.numerics.arrays import Floats
from tightrope.release.questions.widths.intervals import OUTSIDE, ROUNDING
from tightrope.release.questions.widths.tails import Tails

SLOPES, FIRST, LAST = 48, 1e-3, 30.0
"""Values of θ that are tried: over the standard deviation of one noise, and so far apart at either end."""

NO_MOMENT = 1e290
"""In place of a log moment that is infinite or cannot be computed: no bound comes of it, and zero times it is zero."""
NEGLIGIBLE, REST = 1e-12, 1e-6
"""Of a moment: what the end of an endless list may add to it; and what all that is beyond adds to all log moments."""
AROUND, FAR_MORE, BEYOND_NOISE = 8, 4.0, 8.0
"""A heap: a cell beside so many on either side, how many times their mean it must have, and how far above noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The noise of the excess at every edge: ``reach[i, k]`` is exceeded 2.5 % of the time at most, on either side.

    ``spread[i, k]``: its standard deviation. ``total``: log moments of the sum of all blocks, at ``slopes``.
    """

    q: float
    reach: Floats
    spread: Floats
    slopes: Floats
    total: Floats

    @classmethod
    def of(cls, block: Tails, cell: Tails, q: float, blocks: int, cells: int) -> Self:
        """For quantile q; blocks and cells have noises of their own."""
        deviation = math.sqrt(max(_variance(block), _variance(cell), 1e-12))
        slopes = np.geomspace(FIRST, LAST, SLOPES) / deviation
        i, k = np.arange(blocks)[:, None], np.arange(cells + 1)
        part = k / (cells + 1)
        outer = i * _log_moment(block, slopes, 1 - q)[:, None, None]
        outer = outer + (blocks - 1 - i) * _log_moment(block, slopes, q)[:, None, None]
        inner = np.stack([_log_moment(block, slopes, abs(w - q)) for w in part], axis=1)
        inner += k * np.stack([_log_moment(cell, slopes, 1 - w) for w in part], axis=1)
        inner += (cells - k) * np.stack([_log_moment(cell, slopes, w) for w in part], axis=1)
        moments = outer + inner[:, None, :]
        bounds = (moments + math.log(2 / OUTSIDE) + REST) / slopes[:, None, None]
        weights = (part - q) ** 2 + i * (1 - q) ** 2 + (blocks - 1 - i) * q**2
        variance = weights * _variance(block) + (k * (1 - part) ** 2 + (cells - k) * part**2) * _variance(cell)
        total = blocks * _log_moment(block, slopes, 1.0)
        return cls(q, bounds.min(axis=0) * (1 + ROUNDING), np.sqrt(variance), slopes, total)

    def excess(self, blocks: Floats, cells: Floats) -> Floats:
        """The estimate at every edge, shape [B, b + 1], from noisy counts [B] and [B, b]."""
        inside = np.concatenate([np.zeros((len(blocks), 1)), np.cumsum(cells, axis=1)], axis=1)
        missed = (blocks - inside[:, -1])[:, None] * np.arange(inside.shape[1]) / inside.shape[1]
        below = np.concatenate([[0.0], np.cumsum(blocks)])
        found: Floats = below[:-1, None] - self.q * below[-1] + inside + missed
        return found

    def held(self, excess: Floats) -> tuple[int, int]:
        """The first and the last cell that may hold the quantile: none of its ends speaks clearly against it.

        The excess of the true cell is below 0 at its left end and at least 0 at its right one, so that it is left out
        5 % of the time at most.
        """
        left, right = excess[:, :-1].ravel(), excess[:, 1:].ravel()
        may = (left < self.reach[:, :-1].ravel()) & (right >= -self.reach[:, 1:].ravel())
        places = np.flatnonzero(may)
        return (int(places[0]), int(places[-1])) if len(places) else (0, len(may) - 1)

    def place(self, excess: Floats) -> float:
        """Where the rising excess crosses zero, in cells from the left end."""
        joined = np.append(excess[:, :-1].ravel(), excess[-1, -1])
        rising: Floats = isotonic_regression(joined).x
        above = int(np.searchsorted(rising, 0.0, side="left"))
        if above in (0, len(rising)):
            return float(min(above, len(rising) - 1))
        low, high = rising[above - 1], rising[above]
        return float(above - 1 + (-low / (high - low) if high > low else 0.5))

    def at_most(self, rows: float) -> float:
        """A bound on P(the sum of the noises of all blocks ≤ −``rows``), ``rows`` > 0."""
        return min(1.0, float(np.exp((self.total - self.slopes * rows).min() + REST)))


def heaped(cells: Floats, place: int, noise: float) -> bool:
    """Whether a cell has far more rows than those around it, by noisy counts with this mean absolute noise.

    Its values then lie at one number rather than all over it.
    """
    first, place = max(place - AROUND, 0), min(place, len(cells) - 1)
    others = np.delete(cells[first : place + AROUND + 1], place - first)
    return bool(cells[place] > FAR_MORE * max(float(others.mean()), 0.0) + BEYOND_NOISE * noise)


def _variance(tails: Tails) -> float:
    """E X² = 2 Σ_{x ≥ 0} (2x + 1) P(X > x)."""
    places = np.arange(len(tails.table), dtype=np.float64)
    return float(2 * ((2 * places + 1) * tails.table).sum())


def _log_moment(tails: Tails, slopes: Floats, weight: float) -> Floats:
    """Log E e^{θ w X} at every θ, shape [θ]; X is symmetric and what lies beyond its list is put at its end.

    E cosh(s X) = 1 + 2 Σ_{x ≥ 0} P(X > x) (cosh(s (x + 1)) − cosh(s x)). Where the noise has no end, the rest of the
    list is negligible only for slopes at which the terms have died down; elsewhere there is ``NO_MOMENT``.
    """
    places = np.arange(len(tails.table), dtype=np.float64)
    slope = slopes[:, None] * weight
    with np.errstate(over="ignore", invalid="ignore"):
        terms = tails.table * 2 * np.sinh(slope * (places + 0.5)) * np.sinh(slope / 2)
        moment = 1 + 2 * terms.sum(axis=1)
    endless = tails.table[-1] > 0
    dying = terms[:, -1] < NEGLIGIBLE * moment if endless else np.isfinite(moment)
    known = dying & np.isfinite(moment)
    return np.where(known, np.log(np.where(known, moment, 1.0)), NO_MOMENT)
