"""Privacy losses of long noise tables in about a thousand cells, for any shift: certified, and much faster than atoms.

A cell is an interval of outcomes: its exact masses under P and Q and the range of its losses give two end atoms that
dominate it (``docs/proofs/chords.md``). Sums and logarithms of the weights are computed once; each shift then needs
only the masses between the edges of the cells. All rounding errors raise losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.mechanisms.discrete.box_table import AnyTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.family_weights import FloatWeights
from tightrope.numerics.arrays import Floats
from tightrope.randomness.alias_sampler import TOTAL

MAX_COARSE_CELLS = 1024
"""Maximum number of cells; shorter noise has a cell for each outcome."""
UNIT_ROUNDING = 2.0**-52
"""Relative rounding error of a sum, a logarithm or an exponential in double precision."""

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)  # not slotted: cached properties
class GeometricTail:
    """Weights beyond the listed ones: periods of cells, each e^{−``period_step``} times the one before."""

    log_weights: Floats
    """Logarithms of the weights of the first period."""
    sums_above: Floats
    """P(X ≥ x) for x in the first period."""
    period_step: float

    @property
    def period(self) -> int:
        """Number of cells of a period."""
        return len(self.log_weights)


@dataclass(frozen=True, eq=False)  # not slotted: cached properties
class CoarseLosses:
    """A symmetric distribution of integers with non-increasing weights: logarithms and sums of the weights.

    Each logarithm and sum has a relative error of a few roundings. Beyond the listed weights of 0..N there are none, or
    those of the ``tail``.
    """

    log_weights: Floats
    """log P(X = x), x = 0..N; all finite."""
    sums_above: Floats
    """P(X ≥ x), x = 0..N + 1; only P(X > N) is used of the last one, if there is no tail."""
    tail: GeometricTail | None = None
    is_search: bool = False
    """True for log-concave float weights, in searches: losses increase with the outcome, and rounding is ignored."""

    @classmethod
    def from_weights(cls, weights: FloatWeights) -> CoarseLosses | None:
        """Return the losses of log-concave float weights, for searches; None if their tail has plateaus."""
        if weights.tail_ratio is not None and weights.tail_width > 1:
            return None
        half = weights.half_probabilities[: np.flatnonzero(weights.half_probabilities)[-1] + 1]
        sums = np.append(np.cumsum(half[::-1])[::-1], 0.0)
        if weights.tail_ratio is None:
            return cls(np.log(half), sums, is_search=True)
        head = weights.head_length
        tail = GeometricTail(np.log(half[head : head + 1]), sums[head : head + 1], -math.log(weights.tail_ratio))
        return cls(np.log(half[:head]), sums[: head + 1], tail, is_search=True)

    @classmethod
    def from_table(cls, table: NoiseTable) -> CoarseLosses | None:
        """Return the certified losses of an integer table; None if it is not unimodal."""
        if not table.is_unimodal:
            return None
        beyond = 0 if table.tail is None else table.tail.escape_in
        sums = list(accumulate(reversed(table.half), initial=beyond))[::-1]
        sums_above = np.array([(sums[0] + table.center) / TOTAL, *(value / TOTAL for value in sums)])
        logs = np.log(np.array([weight / TOTAL for weight in (table.center, *table.half)]))
        if table.tail is None:
            return cls(logs, sums_above)
        block, escape = table.tail.block, table.tail.escape
        block_sums = list(accumulate(reversed(block), initial=escape))[:0:-1]
        entry = beyond / TOTAL
        tail = GeometricTail(
            math.log(entry) + np.log(np.array([weight / TOTAL for weight in block])),
            entry * np.array([value / TOTAL for value in block_sums]),
            _negative_log(escape),
        )
        return cls(logs, sums_above, tail)

    @property
    def _last(self) -> int:
        """N, the last outcome that is listed."""
        return len(self.log_weights) - 1

    @property
    def _ends(self) -> int:
        """The last outcome before all losses repeat: N, or the end of the tail's first period."""
        return self._last + (0 if self.tail is None else self.tail.period)

    def loss_cells(self, shift: int) -> LossCells:
        """Return cells that dominate the loss of (X, X + shift) and of the reverse pair."""
        # Outcomes x with weights at x and x + shift; with a tail, losses repeat outside.
        last = self._ends
        first, end = (-last, last - shift + 1) if self.tail is None else (-last - shift, last + 1)
        if end <= first:
            return LossCells.from_atoms(np.zeros(1), np.zeros(1), 1.0, 1.0)
        count = min(end - first, MAX_COARSE_CELLS)
        edges = np.unique(np.linspace(first, end, count + 1).astype(np.int64))
        lower, upper = self._loss_ranges(shift, edges)
        p, p_error = self._masses_between(edges[:-1], edges[1:])
        q, q_error = self._masses_between(edges[:-1] + shift, edges[1:] + shift)
        infinite = 0.0
        if self.tail is None:
            lost, error = self._masses_between(np.array([end]), np.array([last + 1]))
            infinite = min(1.0, float(lost[0] + error[0]))
        else:
            # The outcomes beyond both ends, whose losses are those of one period.
            outcomes = np.arange(self._last + 1, last + 1)
            losses = self._log_at(outcomes) - self._log_at(outcomes + shift)
            least, largest = float(np.min(losses)), float(np.max(losses))
            lower, upper = np.append(lower, [-largest, least]), np.append(upper, [-least, largest])
            outer = self._sum_from(np.array([1 - first, end, 1 - first - shift, end + shift]))
            errors = self._sum_error(end + shift) * outer
            p, p_error = np.append(p, outer[:2]), np.append(p_error, errors[:2])
            q, q_error = np.append(q, outer[2:]), np.append(q_error, errors[2:])
        return _end_atoms(
            lower, upper, (p + p_error, np.maximum(q - q_error, 0.0)), infinite, self._loss_rounding(shift)
        )

    def _loss_rounding(self, shift: int) -> float:
        """Return a bound on the rounding error of a loss."""
        return 8 * UNIT_ROUNDING * (1 + self._largest_log + self._periods_to(self._ends + shift))

    @cached_property
    def _largest_log(self) -> float:
        logs = self.log_weights if self.tail is None else np.append(self.log_weights, self.tail.log_weights)
        return float(np.max(np.abs(logs)))

    def _periods_to(self, outcome: int) -> float:
        """Return the nats by which the tail falls to this outcome."""
        if self.tail is None:
            return 0.0
        return self.tail.period_step * (max(outcome - self._last, 0) // self.tail.period + 1)

    def _loss_ranges(self, shift: int, edges: Indices) -> tuple[Floats, Floats]:
        """Return the smallest and the largest log P(X = x) − log P(X = x + shift) between the edges."""
        if self.is_search:
            lower, upper = (self._log_at(x) - self._log_at(x + shift) for x in (edges[:-1], edges[1:] - 1))
            return lower, np.maximum(lower, upper)
        logs = self._log_at(np.arange(edges[0], edges[-1] + shift))
        losses = logs[: len(logs) - shift] - logs[shift:]
        starts = edges[:-1] - edges[0]
        return np.minimum.reduceat(losses, starts), np.maximum.reduceat(losses, starts)

    def _log_at(self, outcomes: Indices) -> Floats:
        """Return log P(X = x); beyond a table without a tail, that of its end."""
        magnitudes = np.abs(outcomes)
        listed = self.log_weights[np.minimum(magnitudes, self._last)]
        if self.tail is None:
            return np.asarray(listed)
        periods, cells = np.divmod(np.maximum(magnitudes - self._last - 1, 0), self.tail.period)
        beyond = self.tail.log_weights[cells] - periods * self.tail.period_step
        return np.where(magnitudes <= self._last, listed, beyond)

    def _sum_from(self, outcomes: Indices) -> Floats:
        """Return P(X ≥ x), x ≥ 0."""
        listed = self.sums_above[np.minimum(outcomes, self._last + 1)]
        if self.tail is None:
            return np.asarray(listed)
        periods, cells = np.divmod(np.maximum(outcomes - self._last - 1, 0), self.tail.period)
        beyond = self.tail.sums_above[cells] * np.exp(-periods * self.tail.period_step)
        return np.where(outcomes <= self._last, listed, beyond)

    def _sum_error(self, reach: int) -> float:
        """Return a bound on the relative rounding error of a sum up to this outcome."""
        return 0.0 if self.is_search else 8 * UNIT_ROUNDING * (1 + self._periods_to(reach))

    def _masses_between(self, starts: Indices, ends: Indices) -> tuple[Floats, Floats]:
        """Return P(start ≤ X < end), and bounds on the rounding errors."""
        positive, negative = starts >= 1, ends <= 0
        near = self._sum_from(np.where(positive, starts, np.where(negative, 1 - ends, ends)).clip(0))
        far = self._sum_from(np.where(positive, ends, 1 - starts).clip(0))
        masses = np.where(positive | negative, near - far, 1 - near - far)
        scale = np.where(positive | negative, near, 1.0)
        return masses, self._sum_error(int(max(abs(starts[0]), abs(ends[-1])))) * scale


def _negative_log(weight: int) -> float:
    """Return −log(weight / 2¹²⁸) with a relative error of a few roundings: a formula for each side of ½."""
    return math.log(TOTAL / weight) if 2 * weight < TOTAL else -math.log1p(-((TOTAL - weight) / TOTAL))


def _end_atoms(
    lower: Floats, upper: Floats, masses: tuple[Floats, Floats], infinite: float, rounding: float
) -> LossCells:
    """Return the cells with the P-mass p at two ends, widened by rounding, with a Q-mass of at most q."""
    lower, upper, (p, q) = lower - rounding, upper + rounding, masses
    width = np.maximum(upper - lower, rounding)
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.expm1(np.log(q / p) + lower)
        fraction = missing / np.expm1(-width) + 8 * UNIT_ROUNDING * (1 + np.abs(lower) + np.abs(missing)) / width
    fraction = np.where((q > 0) & (p > 0), np.clip(fraction, 0.0, 1.0), 1.0)
    return LossCells(lower, upper, p * (1 - fraction), p * fraction, infinite, infinite)


def certified_noise_loss(table: AnyTable, fast: bool) -> Callable[[int], LossCells]:
    """Return the loss under a shift from the integer weights, raised by its rounding errors.

    ``fast``: in coarse cells, if the table has them.
    """
    coarse = CoarseLosses.from_table(table) if fast and isinstance(table, NoiseTable) else None
    if coarse is not None:
        return coarse.loss_cells
    return lambda shift: table.atoms_for_shift(shift).raise_losses().loss_cells(0.0)
