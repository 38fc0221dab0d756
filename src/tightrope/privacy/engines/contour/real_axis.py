"""K on the real axis, at points that are kept: for saddles, for the plan of a line and for Chernoff's bounds.

For c > 0 δ₀(ε) ≤ e^{K(c) − cε} c^c/(1+c)^{1+c}; for −1 < c < 0 1 − δ(ε) ≤ e^{K(c) − cε} (``docs/proofs/contour.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

FINENESS = 16
"""Points are c = e^{i/16}; between the poles c = −1/(1 + e^{−(i + ½)/16})."""
FARTHEST_INDEX = 40 * FINENESS
ALL_POINTS = np.exp(np.arange(-FARTHEST_INDEX, FARTHEST_INDEX) / FINENESS)
BLOCK = FINENESS
"""So many neighbours are computed at once."""
STRIDES = (FINENESS, 4, 1)
"""A saddle is looked for in strides of so many points, one after the other."""
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


class Source(Protocol):
    """What a contour integral asks for: of a composition, or of a part of one."""

    @property
    def slack(self) -> float:
        """A bound on the rounding error of the summed loss, in nats."""

    def moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """K on a line of equal Re z, or at real z, and a bound on its error at each."""

    def log_decay(self, c: float, y: float) -> float:
        """Log of a bound on |M(c + iy')| / M(c) for |y'| ≥ y."""


@dataclass(frozen=True, slots=True, eq=False)
class RealAxis:
    """One half of it: c > 0, or ``between`` the poles −1 and 0."""

    source: Source
    between: bool
    known: dict[int, tuple[float, float]] = field(default_factory=dict)
    latest: list[int] = field(default_factory=list)

    def points(self, indices: Indices) -> Floats:
        """The c that belong to indices [n]."""
        if self.between:
            return np.asarray(-1 / (1 + np.exp(-(indices + 0.5) / FINENESS)))
        return np.exp(indices / FINENESS)

    def cumulants(self, indices: Indices) -> Floats:
        """K there [n]; ∞ where it is not finite or cannot be had."""
        self._learn(indices)
        return np.array([self.known[i][0] for i in indices.tolist()])

    def errors(self, indices: Indices) -> Floats:
        """Bounds on what K is off by there [n]."""
        self._learn(indices)
        return np.array([self.known[i][1] for i in indices.tolist()])

    def _learn(self, indices: Indices) -> None:
        """Whole blocks of neighbours at once: they share what they cost."""
        new = sorted({i // BLOCK for i in indices.tolist() if i not in self.known})
        if new:
            self._learn_all((BLOCK * np.array(new)[:, None] + np.arange(BLOCK)).ravel())

    def _learn_all(self, new: Indices) -> None:
        try:
            found, error = self.source.moments(self.points(new).astype(np.complex128))
        except PrecisionError:
            if len(new) > 1:
                for half in np.array_split(new, 2):
                    self._learn_all(half)
                return
            found, error = np.array([complex(math.inf)]), np.zeros(1)
        good = np.isfinite(found.real) & np.isfinite(error)
        values = np.where(good, found.real, np.inf)
        self.known.update(zip(new.tolist(), zip(values.tolist(), error.tolist(), strict=True), strict=True))

    def learn_alone(self, indices: Indices) -> None:
        """These and no neighbours: many that lie far apart."""
        new = np.unique(indices[[i not in self.known for i in indices.tolist()]])
        if len(new):
            self._learn_all(new)

    def heights(self, indices: Indices, epsilon: float) -> Floats:
        """K(c) − cε − log |c| − log(1 + c): the logarithm of the integrand at c; convex."""
        c = self.points(indices)
        return np.asarray(self.cumulants(indices) - c * epsilon - np.log(np.abs(c)) - np.log1p(c))

    def begin(self, index: int) -> None:
        """Look for the first saddle from here on."""
        if not self.latest:
            self.latest[:] = [index]

    def saddle(self, epsilon: float) -> int:
        """Where that is least: from the last one, in strides, then between the strides."""
        here, strides = (self.latest[0], STRIDES[1:]) if self.latest else (self._first(epsilon), STRIDES)
        if here and not math.isfinite(float(self.heights(np.array([here]), epsilon)[0])):
            here, strides = 0, STRIDES
        for stride in strides:
            here = self._descended(here, stride, epsilon)
        if not math.isfinite(float(self.heights(np.array([here]), epsilon)[0])):
            raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}")
        self.latest[:] = [here]
        return here

    def _descended(self, here: int, stride: int, epsilon: float) -> int:
        while True:
            around = here + stride * np.arange(-2, 3)
            around = around[np.abs(around) <= FARTHEST_INDEX]
            if stride >= BLOCK:
                self.learn_alone(around)
            heights = self.heights(around, epsilon)
            best = int(around[np.argmin(heights)])
            if best == here or not np.min(heights) < heights[around == here][0]:
                return here
            here = best

    def guess(self, log_target: float) -> tuple[float, int] | None:
        """About the ε where the saddle-point formula says e^{log_target}, and the index of its saddle; None if none.

        ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there the formula falls as c grows.
        """
        block, stride = (self.latest[0] if self.latest else self._as_gaussian(log_target)) // BLOCK, 1
        low, high = -math.inf, math.inf
        while high - low > 1 and abs(block) <= FARTHEST_INDEX // BLOCK:
            epsilons, logs = self._formula(block * BLOCK + np.arange(BLOCK + 1))
            known = bool(np.all(np.isfinite(logs)))
            if known and logs[-1] <= log_target <= logs[0]:
                place = float(np.interp(-log_target, -logs, np.arange(BLOCK + 1)))
                self.latest[:] = [block * BLOCK + round(place)]
                return float(np.interp(place, np.arange(BLOCK + 1), epsilons)), self.latest[0]
            if known and logs[-1] > log_target:
                low = block
            else:  # beyond a wall K is infinite
                high = block
            block, stride = _next(low, high, stride), 2 * stride
        return None

    def _first(self, epsilon: float) -> int:
        """Where the saddle would be, were K like that of a Gaussian."""
        variance = 0.0 if self.between else self._variance
        if not variance:
            return 0
        c = ALL_POINTS
        return int(np.argmin(variance * c * (1 + c) / 2 - c * epsilon - np.log(c) - np.log1p(c))) - FARTHEST_INDEX

    @property
    def _variance(self) -> float:
        """That of the Gaussian with the same K(1) = variance; 0 where there is none."""
        self.learn_alone(np.array([0]))
        variance = self.known[0][0]
        return variance if 0 < variance < math.inf else 0.0

    def _as_gaussian(self, log_target: float) -> int:
        """The index of the saddle, were K like that of a Gaussian: K(1) c (1 + c)/2."""
        variance, c = self._variance, ALL_POINTS
        if not variance:
            return 0
        bend = variance + 1 / c**2 + 1 / (1 + c) ** 2
        logs = 2 - variance * c**2 / 2 - np.log(c) - np.log1p(c) - np.log(2 * math.pi * bend) / 2
        return int(np.argmax(logs < log_target)) - FARTHEST_INDEX

    def _formula(self, indices: Indices) -> tuple[Floats, Floats]:
        """ε(c) and log of the saddle-point formula at indices [n], by differences of K in log c."""
        wider = np.arange(indices[0] - 1, indices[-1] + 2)
        self.learn_alone(wider)
        values = self.cumulants(wider)
        c = self.points(indices)
        with np.errstate(invalid="ignore", divide="ignore"):  # K may be infinite beyond a wall
            slope = (values[2:] - values[:-2]) * FINENESS / 2
            bend = (values[2:] - 2 * values[1:-1] + values[:-2]) * FINENESS**2
            epsilons = slope / c - 1 / c - 1 / (1 + c)
            curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
            logs = values[1:-1] - c * epsilons - np.log(c) - np.log1p(c) - np.log(2 * math.pi * curvature) / 2
        return np.asarray(epsilons), np.asarray(logs)

    def chernoff(self, epsilon: float) -> float:
        """The logarithm of the best of Chernoff's bounds that was found; ∞ where there is none."""
        try:
            return float(self.log_bounds(np.array([self.saddle(epsilon)]), epsilon)[0])
        except PrecisionError:
            return math.inf

    def log_bounds(self, indices: Indices, epsilon: float) -> Floats:
        """Logarithms of Chernoff's bounds [n], rounding and the slack of the losses included."""
        c, cumulants, errors = self.points(indices), self.cumulants(indices), self.errors(indices)
        peaks = np.zeros_like(c) if self.between else c * np.log(c) - (1 + c) * np.log1p(c)
        rounding = 16 * ROUND_OFF * (np.abs(cumulants) + np.abs(c * epsilon) + np.abs(c) + 64)
        return np.asarray(cumulants - c * epsilon + peaks + errors + np.abs(c) * self.source.slack + rounding)


def _next(low: float, high: float, stride: int) -> int:
    """The block to try: beyond the only end that is known, or between both."""
    if high == math.inf:
        return int(low) + stride
    return int(high) - stride if low == -math.inf else int(low + high) // 2
