"""A line Re z = c, with all that the smoothed integral needs there for every ε (``docs/proofs/smoothed.md``).

With R = M less the moment of what was set apart, s(z) = e^{μ²(z + z²)/2} and nodes z = c + ihn,
    value = ±(h/π) Σ' Re R s e^{−zε} / (z(z+1)),   gain = μ² e^{μ²/8} (h/π) Σ' Re R s e^{−zε}:
the first is δ (or 1 − δ, between the poles) of the loss with a normal one of variance μ² added, and some more, and
adding it has changed δ by no more than the second. Both are kept without the factor M(c) e^{−cε}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.smoothing.alive import DEAD, MOST_INTERVALS, TooManyError, alive
from tightrope.privacy.engines.smoothing.nodes import OnLine

Pair = tuple[float, float]
ROW = 16
"""Nodes of a row."""
REACH = 5.0
"""Nodes go as far as this over μ."""
CHUNK = 1 << 12
"""Rows at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Laws on the line, how many copies of each, and the log of a factor."""

    laws: Sequence[OnLine]
    counts: Sequence[int]
    log_factor: float

    def at(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        """The product, and a bound on its error."""
        total = np.full((len(starts), len(along)), self.log_factor, dtype=np.complex128)
        error = np.zeros(total.shape)
        for law, count in zip(self.laws, self.counts, strict=True):
            logs, off = law.logs(starts, along)
            total, error = total + count * logs, error + count * off
        found = np.exp(total)
        error = error + ROUND_OFF * (4 + 2 * len(self.laws)) * (1 + np.abs(total))
        return found, np.abs(found) * np.expm1(np.minimum(error, 600.0))


@dataclass(frozen=True, slots=True, eq=False)
class SmoothLine:
    """Terms of both sums at the nodes of all rows alive; what they are off by, at ε = 0 and more a nat; what is left
    out.
    """

    step: float
    starts: Floats
    terms: tuple[Complexes, Complexes]
    off: Pair
    more: Pair
    missing: Pair

    def sums(self, epsilon: float) -> tuple[Pair, Pair]:
        """Value and gain at ε, each with its error."""
        along = np.exp(-1j * epsilon * self.step * np.arange(ROW))
        across = np.exp(-1j * epsilon * self.starts)
        found = (float(np.sum(((terms @ along) * across).real)) for terms in self.terms)
        errors = (a + b * abs(epsilon) + m for a, b, m in zip(self.off, self.more, self.missing, strict=True))
        return next(zip(found, errors, strict=False)), next(zip(found, errors, strict=False))


def smooth_line(c: float, parts: tuple[Part, Part | None], step: float, smooth: float, most: int) -> SmoothLine:
    """The line through c: of the first part less the second, on nodes of this step, smoothed by ``smooth`` = μ."""
    whole, apart = parts
    rows = math.ceil(REACH / smooth / (step * ROW))
    looked = min(MOST_INTERVALS, most // 4)
    live = alive(whole.laws, whole.counts, step * ROW, rows, looked)
    if apart is not None:
        live = np.union1d(live, alive(apart.laws, apart.counts, step * ROW, rows, looked))
    if len(live) * ROW > most:
        raise TooManyError(len(live) * ROW, most, f"nodes of the line at c={c:.3g} alive")
    starts, along = step * ROW * live.astype(np.float64), np.asarray(step * np.arange(ROW), dtype=np.float64)
    blocks = [_terms(c, parts, starts[i : i + CHUNK], along, smooth) for i in range(0, len(starts), CHUNK)]
    values, gains, off, more = zip(*blocks, strict=True)
    return SmoothLine(
        step,
        starts,
        (np.concatenate(values), np.concatenate(gains)),
        _both(off),
        _both(more),
        _missing(c, rows > len(live), step, smooth, rows),
    )


def _both(pairs: Sequence[Pair]) -> Pair:
    return math.fsum(first for first, _ in pairs), math.fsum(second for _, second in pairs)


def _terms(
    c: float, parts: tuple[Part, Part | None], starts: Floats, along: Floats, smooth: float
) -> tuple[Complexes, Complexes, Pair, Pair]:
    """Terms of both sums, and their errors."""
    whole, apart = parts
    rest, error = whole.at(starts, along)
    if apart is not None:
        less, other = apart.at(starts, along)
        rest, error = rest - less, error + other + ROUND_OFF * np.abs(less)
    y = starts[:, None] + along
    z = c + 1j * y
    factor = np.exp(smooth**2 * (z + z * z) / 2) * ((along[1] - along[0]) / math.pi * np.where(y == 0, 0.5, 1.0))
    gains = rest * factor * (smooth**2 * math.exp(smooth**2 / 8))
    values = rest * factor / (z * (z + 1)) * math.copysign(1.0, c)
    sizes = np.abs(factor) / np.abs(z * (z + 1)), np.abs(factor) * (smooth**2 * math.exp(smooth**2 / 8))
    roundings = error + np.abs(rest) * ROUND_OFF * (80 + 2 * ROW)
    turned = ROUND_OFF * 3 * np.abs(y) * np.abs(rest)
    off = float(np.vdot(sizes[0], roundings)), float(np.vdot(sizes[1], roundings))
    more = float(np.vdot(sizes[0], turned)), float(np.vdot(sizes[1], turned))
    return values, gains, off, more


def _missing(c: float, skipped: bool, step: float, smooth: float, rows: int) -> Pair:
    """What nodes that were not looked at may add, |M| being no more than M(c) beyond all rows and dead between."""
    lifted = math.exp(smooth**2 * (c + c * c) / 2)
    end = step * ROW * rows
    tail = math.exp(-((smooth * end) ** 2) / 2) / math.pi * (1 / (smooth**2 * end) + step)
    dead = math.exp(DEAD) * skipped / math.pi
    first = step * ROW
    value = tail / end**2 + dead * (1 + step / first) / first
    gain = smooth**2 * math.exp(smooth**2 / 8) * (tail + dead * (math.sqrt(math.pi / 2) / smooth + step))
    return 2 * lifted * value, 2 * lifted * gain
