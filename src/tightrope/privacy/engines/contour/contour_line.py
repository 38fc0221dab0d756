"""Which line Re z = c the contour integral takes, with which step, and its nodes (theory §3, §3.1).

The trapezoidal rule with step h on Re z = c is off by Σ_{n≠0} e^{2πnc/h} δ₀(ε + 2πn/h), and each term is at most
e^{B(c') − 2π|c' − c|/h}, log B Chernoff's bound at any c' on the side of n. So 2π/h must reach the larger of
min_{c'} (B(c') − t)/|c' − c| over the two sides, t the logarithm of what is allowed. Any c is right; one beside the
saddle costs e^{height(c) − height(saddle)} of the digits, and where K rises like a wall just beyond the saddle, as it
does at small sampling rates, it buys a step many times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.contour.real_axis import FINENESS, RealAxis, Source

TOLERANCE = 1e-14
"""Aliasing allowed, relative to δ."""
DEAR = 6.0
"""Nats of height above the saddle that are paid for a longer step: six digits of rounding become three and a half."""
EXACT, WORTH = 1e-10, 0.35
"""Where the integrand's error is more than this part of δ, each nat more is paid for only by steps e^0.35 as long."""
DEEPEST = 4 * FINENESS
"""Lines down to e^{−4} of the saddle are looked at."""
NEAREST, COARSE = FINENESS // 2, 4
"""Below the nearest points only every fourth: there nothing is steep."""
HIGHEST = 2 * FINENESS
"""And Chernoff's bounds up to e^2 of it."""
STEPS_AN_OCTAVE = 8
"""Steps are 2^{j/8}."""
FIRST_BLOCK, LAST_BLOCK = 64, 1 << 13


class Plan(NamedTuple):
    """The line of an index, the step 2^{j/8}, and the logarithm of the aliasing."""

    line: int
    step: int
    alias: float

    @property
    def width(self) -> float:
        """The step itself."""
        return float(2.0 ** (self.step / STEPS_AN_OCTAVE))


def planned(axis: RealAxis, epsilon: float, saddle: int, log_value: float) -> Plan:
    """The line with about the longest step among those that keep enough digits, ``log_value`` being about log δ."""
    candidates = saddle - np.arange(0, DEEPEST, 2)
    axis.learn_alone(np.concatenate([candidates, _around(saddle)]))
    heights = axis.heights(candidates, epsilon)
    paid = heights - heights[0] <= DEAR
    candidates, over = candidates[paid], heights[paid] - log_value - math.log(EXACT)
    over += np.log(axis.errors(candidates) + 64 * ROUND_OFF)
    indices = _around(saddle)
    bounds = axis.log_bounds(indices, epsilon)
    allowed = log_value + math.log(TOLERANCE)
    away = axis.points(indices)[None, :] - axis.points(candidates)[:, None]
    rates = np.max([_rates(bounds - allowed, sign * away) for sign in (1, -1)], axis=0)
    best = int(np.argmin(np.log(rates) + WORTH * np.maximum(over, 0.0)))
    if not math.isfinite(rates[best]):
        raise PrecisionError(f"no step keeps the aliasing below {TOLERANCE} of delta at epsilon={epsilon!r}")
    step = math.floor(STEPS_AN_OCTAVE * math.log2(2 * math.pi / rates[best]))
    return Plan(int(candidates[best]), step, alias(axis, epsilon, saddle, (int(candidates[best]), step)))


def alias(axis: RealAxis, epsilon: float, saddle: int, plan: tuple[int, int]) -> float:
    """Log of a bound on the aliasing of a line and step: both sides, geometric sums over n ≥ 1."""
    indices = _around(saddle)
    away = axis.points(indices) - float(axis.points(np.array([plan[0]]))[0])
    shift, total = 2 * math.pi / 2.0 ** (plan[1] / STEPS_AN_OCTAVE), -math.inf
    bounds = axis.log_bounds(indices, epsilon)
    for sign in (1, -1):
        good = (sign * away > 0) & np.isfinite(bounds)
        rate = np.abs(away[good]) * shift
        terms = bounds[good] - rate - np.log(-np.expm1(-rate))
        total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
    return total


def _around(saddle: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where Chernoff's bounds are tried: dense around the saddle, since K may rise like a wall, and far below it."""
    near = np.arange(saddle - NEAREST, saddle + HIGHEST)
    below = saddle - np.arange(NEAREST + COARSE, DEEPEST, COARSE)
    return np.concatenate([near, below, saddle - np.arange(DEEPEST, 3 * DEEPEST, 4 * COARSE)])


def _rates(excess: Floats, away: Floats) -> Floats:
    """The least 2π/h for each candidate, on the side where ``away`` is positive; a little more, for the sum over n."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where((away > 0) & np.isfinite(excess), (np.maximum(excess, 1.0) + 1e-3) / away, np.inf)
    return np.asarray(np.min(rates, axis=1))


@dataclass(slots=True, eq=False)
class Nodes:
    """Nodes z = c + ihn of one line and step, K there and a bound on its error, as far as they were needed."""

    source: Source
    c: float
    width: float
    z: Complexes = field(default_factory=lambda: np.zeros(0, dtype=np.complex128))
    cumulant: Complexes = field(default_factory=lambda: np.zeros(0, dtype=np.complex128))
    error: Floats = field(default_factory=lambda: np.zeros(0))
    decays: dict[float, float] = field(default_factory=dict)

    def log_decay(self, y: float) -> float:
        """Log of a bound on |M(c + iy')| / M(c) for |y'| ≥ y: asked again for every ε."""
        if y not in self.decays:
            self.decays[y] = self.source.log_decay(self.c, y)
        return self.decays[y]

    def reach(self, count: int) -> None:
        """Know at least ``count`` nodes."""
        while len(self.z) < count:
            start = len(self.z)
            new = np.arange(start, start + next_block(start))
            z = np.asarray(self.c + 1j * self.width * new, dtype=np.complex128)
            parts = [z[:1], z[1:]] if start == 0 else [z]
            found = [self.source.moments(part) for part in parts]
            self.cumulant = np.concatenate([self.cumulant, *(cumulant for cumulant, _ in found)])
            self.error = np.concatenate([self.error, *(error for _, error in found)])
            self.z = np.concatenate([self.z, z])


def next_block(start: int) -> int:
    """How many nodes are taken at once after the first ``start``."""
    return min(max(FIRST_BLOCK, start), LAST_BLOCK)
