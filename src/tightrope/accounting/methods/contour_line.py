"""δ(ε) of one composed direction by contour integrals: choice of the integral, and error bounds (theory §3).

Above the mean loss and around it δ − δ_∞ is the integral to the right of 0; far below it 1 − δ is the integral
between the poles; below the mean under Q the reverse direction is mirrored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# K on the real axis, at cached points: for saddles, for the plan of a line and for Chernoff's bounds.
#
# For c > 0 δ₀(ε) ≤ e^{K(c) − cε} c^c/(1+c)^{1+c}; for −1 < c < 0 1 − δ(ε) ≤ e^{K(c) − cε}
# (``docs/proofs/contour.md``).

FINENESS = 16
"""Points are c = e^{i/16}; between the poles c = −1/(1 + e^{−(i + ½)/16})."""
MAX_INDEX = 40 * FINENESS
ALL_POINTS = np.exp(np.arange(-MAX_INDEX, MAX_INDEX) / FINENESS)
BLOCK_SIZE = FINENESS
"""Number of neighboring points computed at once."""
STRIDES: tuple[int, ...] = (FINENESS, 4, 1)
"""Strides of a saddle search, in points, one after the other."""
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


class MomentSource(Protocol):
    """Functions that a contour integral needs, of a composition or of a part of one."""

    @property
    def rounding_error_bound(self) -> float:
        """A bound on the rounding error of the summed loss, in nats."""

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K on a line of equal Re z, or at real z, and a bound on its error at each point."""

    def log_decay(self, c: float, y: float) -> float:
        """Return log of a bound on |M(c + iy')| / M(c) for |y'| ≥ y."""


@dataclass(frozen=True, slots=True, eq=False)
class RealAxis:
    """One part of the real axis: c > 0, or ``between_poles``: between the poles −1 and 0."""

    source: MomentSource
    between_poles: bool
    evaluated: dict[int, tuple[float, float]] = field(default_factory=dict)
    latest: list[int] = field(default_factory=list)

    def points_at(self, indices: Indices) -> Floats:
        """Return the points c at indices [n]."""
        if self.between_poles:
            return np.asarray(-1 / (1 + np.exp(-(indices + 0.5) / FINENESS)))
        return np.exp(indices / FINENESS)

    def cumulants_at(self, indices: Indices) -> Floats:
        """Return K at the indices [n]; ∞ if it is infinite or unknown."""
        self._evaluate_blocks(indices)
        return np.array([self.evaluated[i][0] for i in indices.tolist()])

    def cumulant_errors(self, indices: Indices) -> Floats:
        """Return bounds on the error of K at the indices [n]."""
        self._evaluate_blocks(indices)
        return np.array([self.evaluated[i][1] for i in indices.tolist()])

    def _evaluate_blocks(self, indices: Indices) -> None:
        """Evaluate whole blocks of neighbors at once, which share most of the work."""
        new = sorted({i // BLOCK_SIZE for i in indices.tolist() if i not in self.evaluated})
        if new:
            self._evaluate_points((BLOCK_SIZE * np.array(new)[:, None] + np.arange(BLOCK_SIZE)).ravel())

    def _evaluate_points(self, new: Indices) -> None:
        try:
            cumulant, error = self.source.log_moments(self.points_at(new).astype(np.complex128))
        except PrecisionError:
            if len(new) > 1:
                for half in np.array_split(new, 2):
                    self._evaluate_points(half)
                return
            cumulant, error = np.array([complex(math.inf)]), np.zeros(1)
        is_finite = np.isfinite(cumulant.real) & np.isfinite(error)
        values = np.where(is_finite, cumulant.real, np.inf)
        self.evaluated.update(zip(new.tolist(), zip(values.tolist(), error.tolist(), strict=True), strict=True))

    def evaluate_separately(self, indices: Indices) -> None:
        """Evaluate only these points, not whole blocks: for points that lie far apart."""
        new = np.unique(indices[[i not in self.evaluated for i in indices.tolist()]])
        if len(new):
            self._evaluate_points(new)

    def log_integrand(self, indices: Indices, epsilon: float) -> Floats:
        """Return the logarithm of the integrand at c, K(c) − cε − log |c| − log(1 + c), a convex function."""
        c = self.points_at(indices)
        return np.asarray(self.cumulants_at(indices) - c * epsilon - np.log(np.abs(c)) - np.log1p(c))

    def start_search_at(self, index: int) -> None:
        """Start the search for the first saddle at this index."""
        if not self.latest:
            self.latest[:] = [index]

    def find_saddle(self, epsilon: float) -> int:
        """Return the index of the smallest integrand, searched from the last saddle with decreasing strides."""
        index = self.latest[0] if self.latest else self._gaussian_saddle_index(epsilon)
        strides = STRIDES[1:] if self.latest else STRIDES
        if index and not math.isfinite(float(self.log_integrand(np.array([index]), epsilon)[0])):
            index, strides = 0, STRIDES
        for stride in strides:
            index = self._descend_to_minimum(index, stride, epsilon)
        if not math.isfinite(float(self.log_integrand(np.array([index]), epsilon)[0])):
            raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}")
        self.latest[:] = [index]
        return index

    def _descend_to_minimum(self, index: int, stride: int, epsilon: float) -> int:
        while True:
            neighbors = index + stride * np.arange(-2, 3)
            neighbors = neighbors[np.abs(neighbors) <= MAX_INDEX]
            if stride >= BLOCK_SIZE:
                self.evaluate_separately(neighbors)
            heights = self.log_integrand(neighbors, epsilon)
            best = int(neighbors[np.argmin(heights)])
            if best == index or not np.min(heights) < heights[neighbors == index][0]:
                return index
            index = best

    def approximate_epsilon_at(self, log_target: float) -> tuple[float, int] | None:
        """Return an ε where the saddle-point formula gives about e^{log_target}, and the index of its saddle, or None.

        ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there the formula falls as c grows.
        """
        block, stride = (self.latest[0] if self.latest else self._gaussian_index_for_value(log_target)) // BLOCK_SIZE, 1
        low, high = -math.inf, math.inf
        while high - low > 1 and abs(block) <= MAX_INDEX // BLOCK_SIZE:
            epsilons, logs = self._saddle_point_formula(block * BLOCK_SIZE + np.arange(BLOCK_SIZE + 1))
            all_finite = bool(np.all(np.isfinite(logs)))
            if all_finite and logs[-1] <= log_target <= logs[0]:
                position = float(np.interp(-log_target, -logs, np.arange(BLOCK_SIZE + 1)))
                self.latest[:] = [block * BLOCK_SIZE + round(position)]
                return float(np.interp(position, np.arange(BLOCK_SIZE + 1), epsilons)), self.latest[0]
            if all_finite and logs[-1] > log_target:
                low = block
            else:  # beyond a wall K is infinite
                high = block
            # The block to try: beyond the only end found so far, or between both.
            if high == math.inf:
                next_block = int(low) + stride
            else:
                next_block = int(high) - stride if low == -math.inf else int(low + high) // 2
            block, stride = next_block, 2 * stride
        return None

    def _gaussian_saddle_index(self, epsilon: float) -> int:
        """Return the index of the saddle of a Gaussian with about the same K."""
        variance = 0.0 if self.between_poles else self._matched_variance
        if not variance:
            return 0
        c = ALL_POINTS
        return int(np.argmin(variance * c * (1 + c) / 2 - c * epsilon - np.log(c) - np.log1p(c))) - MAX_INDEX

    @property
    def _matched_variance(self) -> float:
        """The variance of the Gaussian with the same K(1) = variance; 0 if K(1) is unusable."""
        self.evaluate_separately(np.array([0]))
        variance = self.evaluated[0][0]
        return variance if 0 < variance < math.inf else 0.0

    def _gaussian_index_for_value(self, log_target: float) -> int:
        """Return the index of the saddle of a Gaussian, K(1) c (1 + c)/2."""
        variance, c = self._matched_variance, ALL_POINTS
        if not variance:
            return 0
        bend = variance + 1 / c**2 + 1 / (1 + c) ** 2
        logs = 2 - variance * c**2 / 2 - np.log(c) - np.log1p(c) - np.log(2 * math.pi * bend) / 2
        return int(np.argmax(logs < log_target)) - MAX_INDEX

    def _saddle_point_formula(self, indices: Indices) -> tuple[Floats, Floats]:
        """Return ε(c) and log of the saddle-point formula at indices [n], by differences of K in log c."""
        with_neighbors = np.arange(indices[0] - 1, indices[-1] + 2)
        self.evaluate_separately(with_neighbors)
        values = self.cumulants_at(with_neighbors)
        c = self.points_at(indices)
        with np.errstate(invalid="ignore", divide="ignore"):  # K may be infinite beyond a wall
            slope = (values[2:] - values[:-2]) * FINENESS / 2
            bend = (values[2:] - 2 * values[1:-1] + values[:-2]) * FINENESS**2
            epsilons = slope / c - 1 / c - 1 / (1 + c)
            curvature = (bend - slope) / c**2 + 1 / c**2 + 1 / (1 + c) ** 2
            logs = values[1:-1] - c * epsilons - np.log(c) - np.log1p(c) - np.log(2 * math.pi * curvature) / 2
        return np.asarray(epsilons), np.asarray(logs)

    def log_chernoff_bound(self, epsilon: float) -> float:
        """Return the logarithm of the best Chernoff bound that was found; ∞ without a saddle."""
        try:
            return float(self.log_bounds(np.array([self.find_saddle(epsilon)]), epsilon)[0])
        except PrecisionError:
            return math.inf

    def log_bounds(self, indices: Indices, epsilon: float) -> Floats:
        """Return logarithms of Chernoff's bounds [n], including rounding errors of the bounds and of the losses."""
        c, cumulants, errors = self.points_at(indices), self.cumulants_at(indices), self.cumulant_errors(indices)
        peaks = np.zeros_like(c) if self.between_poles else c * np.log(c) - (1 + c) * np.log1p(c)
        rounding = 16 * ROUND_OFF * (np.abs(cumulants) + np.abs(c * epsilon) + np.abs(c) + 64)
        return np.asarray(
            cumulants - c * epsilon + peaks + errors + np.abs(c) * self.source.rounding_error_bound + rounding
        )


# Choice of the line Re z = c of the contour integral, its step, and its nodes (theory §3, §3.1).
#
# The trapezoidal rule with step h on Re z = c is off by Σ_{n≠0} e^{2πnc/h} δ₀(ε + 2πn/h), and each term is at most
# e^{B(c') − 2π|c' − c|/h}, log B Chernoff's bound at any c' on the side of n. So 2π/h must reach the larger of
# min_{c'} (B(c') − t)/|c' − c| over the two sides, t the logarithm of the tolerance. Any c is valid; one next to the
# saddle loses e^{height(c) − height(saddle)} of the digits, and if K rises like a wall just beyond the saddle, as
# it does at small sampling rates, it allows a step many times as long.

TOLERANCE = 1e-14
"""Aliasing allowed, relative to δ."""
MAX_EXTRA_HEIGHT = 6.0
"""Nats of height above the saddle traded for a longer step: six digits of rounding become three and a half."""
ACCURATE, NATS_PER_STEP = 1e-10, 0.35
"""If the integrand's relative error exceeds the first number, each nat more must make the step e^0.35 as long."""
MAX_DEPTH = 4 * FINENESS
"""Largest depth of candidate lines: down to e^{−4} of the saddle."""
NEAR_POINTS, FAR_STRIDE = FINENESS // 2, 4
"""Below the nearest points only every fourth is tried, since K is not steep there."""
MAX_ABOVE = 2 * FINENESS
"""Chernoff's bounds are tried up to e^2 of the saddle."""
STEPS_AN_OCTAVE = 8
"""Steps are 2^{j/8}."""
FIRST_BLOCK, LAST_BLOCK = 64, 1 << 13


class LinePlan(NamedTuple):
    """The line of an index, the step 2^{j/8}, and the logarithm of the aliasing."""

    line: int
    step: int
    alias: float

    @property
    def step_width(self) -> float:
        """The step itself."""
        return float(2.0 ** (self.step / STEPS_AN_OCTAVE))


def plan_line(axis: RealAxis, epsilon: float, saddle: int, log_value: float) -> LinePlan:
    """Return the line with about the longest step that keeps enough digits; ``log_value`` is about log δ."""
    candidates = saddle - np.arange(0, MAX_DEPTH, 2)
    axis.evaluate_separately(np.concatenate([candidates, _chernoff_indices(saddle)]))
    heights = axis.log_integrand(candidates, epsilon)
    affordable = heights - heights[0] <= MAX_EXTRA_HEIGHT
    candidates, excess = candidates[affordable], heights[affordable] - log_value - math.log(ACCURATE)
    excess += np.log(axis.cumulant_errors(candidates) + 64 * ROUND_OFF)
    indices = _chernoff_indices(saddle)
    bounds = axis.log_bounds(indices, epsilon)
    allowed = log_value + math.log(TOLERANCE)
    distance = axis.points_at(indices)[None, :] - axis.points_at(candidates)[:, None]
    # The least 2π/h for each candidate, on the side that needs more, with a margin for the sum over n.
    nats = np.maximum(bounds - allowed, 1.0) + 1e-3
    rates = np.zeros(len(candidates))
    for sign in (1, -1):
        with np.errstate(divide="ignore", invalid="ignore"):
            side = np.where((sign * distance > 0) & np.isfinite(bounds - allowed), nats / (sign * distance), np.inf)
        rates = np.maximum(rates, np.min(side, axis=1))
    best = int(np.argmin(np.log(rates) + NATS_PER_STEP * np.maximum(excess, 0.0)))
    if not math.isfinite(rates[best]):
        raise PrecisionError(f"no step keeps the aliasing below {TOLERANCE} of delta at epsilon={epsilon!r}")
    step = math.floor(STEPS_AN_OCTAVE * math.log2(2 * math.pi / rates[best]))
    return LinePlan(int(candidates[best]), step, log_alias_bound(axis, epsilon, saddle, (int(candidates[best]), step)))


def log_alias_bound(axis: RealAxis, epsilon: float, saddle: int, plan: tuple[int, int]) -> float:
    """Return log of a bound on the aliasing of a line and step: both sides, geometric sums over n ≥ 1."""
    indices = _chernoff_indices(saddle)
    distance = axis.points_at(indices) - float(axis.points_at(np.array([plan[0]]))[0])
    shift, total = 2 * math.pi / 2.0 ** (plan[1] / STEPS_AN_OCTAVE), -math.inf
    bounds = axis.log_bounds(indices, epsilon)
    for sign in (1, -1):
        usable = (sign * distance > 0) & np.isfinite(bounds)
        rate = np.abs(distance[usable]) * shift
        terms = bounds[usable] - rate - np.log(-np.expm1(-rate))
        total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
    return total


def _chernoff_indices(saddle: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return indices to try Chernoff's bounds at: dense near the saddle, since K may be steep, and far below it."""
    near = np.arange(saddle - NEAR_POINTS, saddle + MAX_ABOVE)
    below = saddle - np.arange(NEAR_POINTS + FAR_STRIDE, MAX_DEPTH, FAR_STRIDE)
    return np.concatenate([near, below, saddle - np.arange(MAX_DEPTH, 3 * MAX_DEPTH, 4 * FAR_STRIDE)])


@dataclass(slots=True, eq=False)
class LineNodes:
    """Nodes z = c + ihn of one line and step, K there and a bound on its error, evaluated on demand."""

    source: MomentSource
    c: float
    width: float
    z: Complexes = field(default_factory=lambda: np.zeros(0, dtype=np.complex128))
    cumulant: Complexes = field(default_factory=lambda: np.zeros(0, dtype=np.complex128))
    error: Floats = field(default_factory=lambda: np.zeros(0))
    decays: dict[float, float] = field(default_factory=dict)

    def log_decay(self, y: float) -> float:
        """Return the log of a bound on |M(c + iy')| / M(c) for |y'| ≥ y, cached for later ε."""
        if y not in self.decays:
            self.decays[y] = self.source.log_decay(self.c, y)
        return self.decays[y]

    def evaluate_nodes(self, count: int) -> None:
        """Evaluate nodes until there are at least ``count``."""
        while len(self.z) < count:
            start = len(self.z)
            new = np.arange(start, start + next_block(start))
            z = np.asarray(self.c + 1j * self.width * new, dtype=np.complex128)
            parts = [z[:1], z[1:]] if start == 0 else [z]
            enclosures = [self.source.log_moments(part) for part in parts]
            self.cumulant = np.concatenate([self.cumulant, *(cumulant for cumulant, _ in enclosures)])
            self.error = np.concatenate([self.error, *(error for _, error in enclosures)])
            self.z = np.concatenate([self.z, z])


def next_block(start: int) -> int:
    """Return the number of nodes evaluated at once after the first ``start``."""
    return min(max(FIRST_BLOCK, start), LAST_BLOCK)


# The contour integral near the saddle point: full relative accuracy at any δ, cost independent of k (theory §3).
#
# δ(ε) = δ_∞ + (1/2πi) ∫ e^{K(z) − zε} / (z(z+1)) dz over Re z = c > 0, and 1 − δ(ε) is minus the same for −1 < c < 0,
# and better far below the mean loss. Lines and steps are chosen by ``contour_line`` and cached: neighboring ε
# share the moments, which dominate the cost. Aliasing, the part beyond the last node, rounding and the errors
# of the moments are enclosed (``docs/proofs/contour.md``).

TRUNCATION = 1e-14
"""Size of the part beyond the last node, relative to δ."""
MAX_NODES = 1 << 18
MAX_LOG_ERROR = 0.5
"""Largest usable error of a moment's logarithm; beyond it only a bound on its modulus is used."""
ACCEPTED_TRUNCATION = 1e-9
"""The truncation error accepted if the smaller one takes too many nodes."""
MAX_HEIGHT = 600.0
CACHED_LINES = 6
"""Lines whose nodes are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class LineIntegral:
    """The line integral of a source's moments; raises ``PrecisionError`` if all digits are lost."""

    source: MomentSource
    right: RealAxis
    between_poles: RealAxis
    nodes: dict[tuple[bool, int, int], LineNodes] = field(default_factory=dict)
    latest: dict[bool, LinePlan] = field(default_factory=dict)

    @classmethod
    def for_source(cls, source: MomentSource, near: int | None = None) -> LineIntegral:
        """Return a new integral; ``near`` is an approximate index of a saddle on the right, if available."""
        start = [] if near is None else [near]
        return cls(source, RealAxis(source, between_poles=False, latest=start), RealAxis(source, between_poles=True))

    def approximate_log_value(self, epsilon: float, saddle: int, *, between_poles: bool = False) -> float:
        """Return the approximate log of the integral, by the saddle-point formula: it only sets the accuracy."""
        axis = self._real_axis(between_poles=between_poles)
        near = axis.log_integrand(saddle + np.array([-4, 0, 4]), epsilon)
        bend = float(near[0] - 2 * near[1] + near[2]) / (4 / FINENESS) ** 2
        bend = max(bend, 1e-3) if math.isfinite(bend) else 1.0
        c = float(axis.points_at(np.array([saddle]))[0])
        size = abs(c) * (1 + c) if between_poles else c
        return min(0.0, float(near[1]) + math.log(size) - math.log(2 * math.pi * bend) / 2)

    def matches_target(self, epsilon: float, target: float, factor: float, width: float) -> bool:
        """Return whether the integral confirms that δ is ``target`` at ε, to this factor; its nodes are reused later.

        ``width`` is the largest relative error. Near a wall K bends so sharply around the saddle that the saddle-point
        formula is useless: then the integral would lose all digits, and is skipped.
        """
        try:
            if self.approximate_log_value(epsilon, self.right.find_saddle(epsilon)) < math.log(target / factor):
                return False
            value, error = self.integrate_line(epsilon, between_poles=False)
        except PrecisionError:
            return False
        return error <= width * value and target / factor < value < target * factor

    def _real_axis(self, *, between_poles: bool) -> RealAxis:
        return self.between_poles if between_poles else self.right

    def _plan_for_epsilon(self, epsilon: float, saddle: int, log_value: float, *, between_poles: bool) -> LinePlan:
        """Return the plan of the last ε if it is still valid, else a new one."""
        axis, last = self._real_axis(between_poles=between_poles), self.latest.get(between_poles)
        if last is not None and abs(last.line - saddle) < 3 * FINENESS:
            heights = axis.log_integrand(np.array([last.line, saddle]), epsilon)
            alias = log_alias_bound(axis, epsilon, saddle, (last.line, last.step))
            if heights[0] - heights[1] <= 8.0 and alias <= log_value - 29.0:
                return LinePlan(last.line, last.step, alias)
        self.latest[between_poles] = plan_line(axis, epsilon, saddle, log_value)
        return self.latest[between_poles]

    def integrate_line(self, epsilon: float, *, between_poles: bool, aim: float = -math.inf) -> tuple[float, float]:
        """Return the integral over a line on one side of 0, positive, and a bound on its error.

        If it is added to a number of about e^{aim}, the accuracy is relative to that number: all digits may be lost.
        """
        axis = self._real_axis(between_poles=between_poles)
        saddle = axis.find_saddle(epsilon)
        log_value = self.approximate_log_value(epsilon, saddle, between_poles=between_poles)
        if between_poles:
            log_value = min(log_value, self.approximate_log_value(epsilon, self.right.find_saddle(epsilon)))
        plan = self._plan_for_epsilon(epsilon, saddle, max(log_value, aim), between_poles=between_poles)
        nodes = self._nodes_of_plan(plan, between_poles=between_poles)
        height = float(axis.cumulants_at(np.array([plan.line]))[0]) - nodes.c * epsilon
        if not height < MAX_HEIGHT:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        value, rounding, rest = self._sum_nodes(nodes, epsilon, height, math.exp(min(aim - height, 700.0)))
        # Losses off by the slack move δ by no more than slack · P(L > ε − slack), and Chernoff bounds that.
        slack_error = self.source.rounding_error_bound * math.exp(
            min(abs(nodes.c) * self.source.rounding_error_bound, 700.0)
        )
        error = math.exp(min(plan.alias - height, 700.0)) + rest + rounding + slack_error
        if not math.isfinite(error):
            raise PrecisionError(f"the error of the integral is unknown at epsilon={epsilon!r}")
        if aim > -math.inf and not value > 2 * error:
            return max(value, 0.0) * math.exp(height), (error + max(-value, 0.0)) * math.exp(height)
        if not value > 2 * error:
            raise PrecisionError(
                f"all digits are lost at epsilon={epsilon!r}: {value!r} within {error!r} of e^{height:.4g}"
            )
        integral = math.exp(height + math.log(value))  # e^height alone may be below double precision
        underflow = 2 * math.ulp(0.0) * (integral < SUBNORMAL)
        return integral, integral * (error / value + 4 * ROUND_OFF * (abs(height) + 4)) + underflow

    def _nodes_of_plan(self, plan: LinePlan, *, between_poles: bool) -> LineNodes:
        key = (between_poles, plan.line, plan.step)
        if key not in self.nodes:
            while len(self.nodes) >= CACHED_LINES:
                self.nodes.pop(next(iter(self.nodes)))
            c = float(self._real_axis(between_poles=between_poles).points_at(np.array([plan.line]))[0])
            self.nodes[key] = LineNodes(self.source, c, plan.step_width)
        return self.nodes[key]

    def _sum_nodes(self, nodes: LineNodes, epsilon: float, height: float, aim: float) -> tuple[float, float, float]:
        """Return (h/2π) Σ over c + ihn: the value, its rounding, and a bound on the part beyond the last node.

        Beyond |Im z| = T the integrand is at most decay(c, T)/|z(z+1)|, so the rest is below decay/T · (1 + h/T)/π.
        """
        step, c = nodes.width, nodes.c
        value, rounding, rest, start = 0.0, 0.0, math.inf, 0
        sign = math.copysign(1.0, c)
        while start < MAX_NODES:
            stop = start + next_block(start)
            nodes.evaluate_nodes(stop)
            z, cumulant, error = (part[start:stop] for part in (nodes.z, nodes.cumulant, nodes.error))
            weight = (sign * step / math.pi) / (z * (z + 1))
            weight[0] /= 2 if start == 0 else 1
            inaccurate = error > MAX_LOG_ERROR
            terms = weight * np.exp(np.where(inaccurate, 0.0, cumulant - z * epsilon - height)) * ~inaccurate
            value += math.fsum(terms.real)
            exponents = np.abs(cumulant) + np.abs(z) * abs(epsilon) + abs(height) + 64
            relative_error = np.expm1(np.where(inaccurate, 0.0, error))
            rounding += float(np.dot(np.abs(terms), 2 * ROUND_OFF * exponents + relative_error))
            if np.any(inaccurate):
                # Terms whose moments are smaller than their errors: their sizes from logarithms, and from the first on
                # at most the decay bound of the modulus there.
                sizes = cumulant.real + np.where(np.isfinite(error), error, 0.0) - nodes.c * epsilon - height
                decay = self.source.log_decay(nodes.c, float(z[inaccurate].imag[0]))
                bound = np.exp(np.minimum(sizes[inaccurate], decay))
                sum_bound = float(np.dot(np.minimum(bound, 1.0), np.abs(weight[inaccurate])))
                rounding += (1 + ACCEPTED_TRUNCATION) * sum_bound
            start, reach = stop, step * stop
            rest = math.exp(nodes.log_decay(reach)) / reach * (1 + step / reach) / math.pi
            if rest < max(TRUNCATION * max(abs(value), aim), 1e-3 * rounding):
                return value, rounding, rest
            if stop == FIRST_BLOCK:
                self._require_decay(nodes)
        if rest < ACCEPTED_TRUNCATION * max(abs(value), aim):
            return value, rounding, rest
        raise PrecisionError(f"the integrand has not decayed after {MAX_NODES} nodes of width {step:.3g}")

    def _require_decay(self, nodes: LineNodes) -> None:
        """Raise unless ``MAX_NODES`` nodes leave a tail below ``ACCEPTED_TRUNCATION`` of e^{height}/|c (1 + c)|."""
        reach = nodes.width * MAX_NODES
        log_tail = nodes.log_decay(reach) + math.log(abs(nodes.c) * (1 + nodes.c) / reach)
        if log_tail > math.log(ACCEPTED_TRUNCATION):
            raise PrecisionError(f"the integrand does not decay within {MAX_NODES} nodes of width {nodes.width:.3g}")


LOG_UNDERFLOW = -760.0
"""E to this power is 0 in double precision, with room for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class ContourIntegral:
    """δ of one composed direction; raises ``PrecisionError`` if all digits are lost."""

    total: Composition
    lines: LineIntegral
    mirror: list[ContourIntegral] = field(default_factory=list)

    @classmethod
    def for_source(
        cls, total: Composition, source: MomentSource | None = None, near: int | None = None
    ) -> ContourIntegral:
        """Return a new integral; ``source`` computes the moments of ``total``, and a saddle is ``near`` this index."""
        return cls(total, LineIntegral.for_source(total if source is None else source, near))

    def delta(self, epsilon: float) -> Interval:
        """Return an interval that contains δ(ε)."""
        if epsilon >= self.total.largest_loss + self.total.rounding_error_bound:
            return self.total.infinite_bounds
        if self._underflows_to_zero(epsilon):
            return probability_error_bounds(self.total.infinite_mass, math.ulp(0.0) + self._infinite_error)
        return self._integrate_stably(epsilon)

    def chernoff_bounds(self, epsilon: float) -> Interval:
        """Return Chernoff's bounds, which always hold.

        δ₀ ≤ e^{K(c) − cε} c^c/(1+c)^{1+c} for c > 0, and 1 − δ ≤ e^{K(c) − cε} for −1 < c < 0.
        """
        between_poles = self.lines.between_poles.log_chernoff_bound(epsilon)
        below = probability_error_bounds(-math.expm1(min(between_poles, 0.0)), 8 * ROUND_OFF)[0]
        return max(below, self.total.infinite_bounds[0]), self.chernoff_upper_bound(epsilon)

    def chernoff_upper_bound(self, epsilon: float) -> float:
        """Return the upper Chernoff bound."""
        above = self.total.infinite_mass + math.exp(min(self.lines.right.log_chernoff_bound(epsilon), 0.0))
        return probability_error_bounds(above, 8 * ROUND_OFF * above + self._infinite_error)[1]

    @property
    def _infinite_error(self) -> float:
        """The rounding error of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _integrate_stably(self, epsilon: float) -> Interval:
        """Integrate δ − δ_∞, or 1 − δ far below the mean loss, or the reverse direction's δ below the mean under Q."""
        if epsilon < 0 and epsilon < self._approximate_mean(-1.0):
            return self._mirrored_delta(epsilon)
        saddle = self.lines.right.find_saddle(epsilon)
        log_value = self.lines.approximate_log_value(epsilon, saddle)
        if log_value > -1 and epsilon < self._approximate_mean(0.0) and self._estimate_between(epsilon) < -1:
            value, error = self.lines.integrate_line(epsilon, between_poles=True)
            return probability_error_bounds(1 - value, error + 4 * ROUND_OFF)
        value, error = self.lines.integrate_line(epsilon, between_poles=False)
        low, high = probability_error_bounds(self.total.infinite_mass + value, error + self._infinite_error)
        return max(low, self.total.infinite_bounds[0]), high

    def _mirrored_delta(self, epsilon: float) -> Interval:
        if not self.mirror:
            self.mirror.append(ContourIntegral.for_source(self.total.reverse_distribution()))
        low, high = self.mirror[0].delta(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        low, _ = probability_error_bounds(base + factor * low, 8 * ROUND_OFF * base)
        _, high = probability_error_bounds(base + factor * high, 8 * ROUND_OFF)
        return low, high

    def _approximate_mean(self, at: float) -> float:
        """Return K'(0) = E_P L or K'(−1) = E_Q L, approximately: used only to choose between methods."""
        small = math.exp(min(self.lines.right.latest[0] if self.lines.right.latest else 0, 0) / FINENESS) * 1e-3
        end = at - small if at == 0 else at + small
        cumulant, _ = self.total.log_moments(np.array([complex(end)]))
        return float(cumulant[0].real) / (end - at)

    def _estimate_between(self, epsilon: float) -> float:
        try:
            return self.lines.approximate_log_value(
                epsilon, self.lines.between_poles.find_saddle(epsilon), between_poles=True
            )
        except PrecisionError:
            return 0.0

    def _underflows_to_zero(self, epsilon: float) -> bool:
        """Return whether some δ − δ_∞ ≤ e^{K(c) − cε} proves it to be below the smallest double."""
        return self.lines.right.log_chernoff_bound(epsilon) < LOG_UNDERFLOW
