"""δ(ε) of one composed direction by contour integrals: choice of the integral, and error bounds (theory §3).

Above the mean loss and around it δ − δ_∞ is the integral to the right of 0; far below it 1 − δ is the integral
between the poles; below the mean under Q the reverse direction is mirrored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tightrope.accounting.bounds import Interval, round_outward
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
FARTHEST_INDEX = 40 * FINENESS
ALL_POINTS = np.exp(np.arange(-FARTHEST_INDEX, FARTHEST_INDEX) / FINENESS)
BLOCK = FINENESS
"""Number of neighboring points computed at once."""
STRIDES = (FINENESS, 4, 1)
"""Strides of a saddle search, in points, one after the other."""
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


class MomentSource(Protocol):
    """Functions that a contour integral needs, of a composition or of a part of one."""

    @property
    def rounding_bound(self) -> float:
        """A bound on the rounding error of the summed loss, in nats."""

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K on a line of equal Re z, or at real z, and a bound on its error at each point."""

    def log_decay(self, c: float, y: float) -> float:
        """Log of a bound on |M(c + iy')| / M(c) for |y'| ≥ y."""


@dataclass(frozen=True, slots=True, eq=False)
class RealAxis:
    """One part of the real axis: c > 0, or ``between_poles``: between the poles −1 and 0."""

    source: MomentSource
    between_poles: bool
    known: dict[int, tuple[float, float]] = field(default_factory=dict)
    latest: list[int] = field(default_factory=list)

    def points_at(self, indices: Indices) -> Floats:
        """Return the points c at indices [n]."""
        if self.between_poles:
            return np.asarray(-1 / (1 + np.exp(-(indices + 0.5) / FINENESS)))
        return np.exp(indices / FINENESS)

    def cumulants_at(self, indices: Indices) -> Floats:
        """Return K at the indices [n]; ∞ if it is infinite or unknown."""
        self._evaluate_blocks(indices)
        return np.array([self.known[i][0] for i in indices.tolist()])

    def cumulant_errors(self, indices: Indices) -> Floats:
        """Return bounds on the error of K at the indices [n]."""
        self._evaluate_blocks(indices)
        return np.array([self.known[i][1] for i in indices.tolist()])

    def _evaluate_blocks(self, indices: Indices) -> None:
        """Evaluate whole blocks of neighbors at once, which share most of the work."""
        new = sorted({i // BLOCK for i in indices.tolist() if i not in self.known})
        if new:
            self._learn_all((BLOCK * np.array(new)[:, None] + np.arange(BLOCK)).ravel())

    def _learn_all(self, new: Indices) -> None:
        try:
            found, error = self.source.log_moments(self.points_at(new).astype(np.complex128))
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
        """Evaluate only these points, not whole blocks: for points that lie far apart."""
        new = np.unique(indices[[i not in self.known for i in indices.tolist()]])
        if len(new):
            self._learn_all(new)

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
        here, strides = (
            (self.latest[0], STRIDES[1:]) if self.latest else (self._gaussian_saddle_index(epsilon), STRIDES)
        )
        if here and not math.isfinite(float(self.log_integrand(np.array([here]), epsilon)[0])):
            here, strides = 0, STRIDES
        for stride in strides:
            here = self._descend_to_minimum(here, stride, epsilon)
        if not math.isfinite(float(self.log_integrand(np.array([here]), epsilon)[0])):
            raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}")
        self.latest[:] = [here]
        return here

    def _descend_to_minimum(self, here: int, stride: int, epsilon: float) -> int:
        while True:
            around = here + stride * np.arange(-2, 3)
            around = around[np.abs(around) <= FARTHEST_INDEX]
            if stride >= BLOCK:
                self.learn_alone(around)
            heights = self.log_integrand(around, epsilon)
            best = int(around[np.argmin(heights)])
            if best == here or not np.min(heights) < heights[around == here][0]:
                return here
            here = best

    def approximate_epsilon(self, log_target: float) -> tuple[float, int] | None:
        """Return an ε where the saddle-point formula gives about e^{log_target}, and the index of its saddle, or None.

        ε(c) = K'(c) − 1/c − 1/(1+c) has its saddle at c, and there the formula falls as c grows.
        """
        block, stride = (self.latest[0] if self.latest else self._as_gaussian(log_target)) // BLOCK, 1
        low, high = -math.inf, math.inf
        while high - low > 1 and abs(block) <= FARTHEST_INDEX // BLOCK:
            epsilons, logs = self._saddle_point_formula(block * BLOCK + np.arange(BLOCK + 1))
            known = bool(np.all(np.isfinite(logs)))
            if known and logs[-1] <= log_target <= logs[0]:
                place = float(np.interp(-log_target, -logs, np.arange(BLOCK + 1)))
                self.latest[:] = [block * BLOCK + round(place)]
                return float(np.interp(place, np.arange(BLOCK + 1), epsilons)), self.latest[0]
            if known and logs[-1] > log_target:
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
        return int(np.argmin(variance * c * (1 + c) / 2 - c * epsilon - np.log(c) - np.log1p(c))) - FARTHEST_INDEX

    @property
    def _matched_variance(self) -> float:
        """The variance of the Gaussian with the same K(1) = variance; 0 if K(1) is unusable."""
        self.learn_alone(np.array([0]))
        variance = self.known[0][0]
        return variance if 0 < variance < math.inf else 0.0

    def _as_gaussian(self, log_target: float) -> int:
        """Return the index of the saddle of a Gaussian, K(1) c (1 + c)/2."""
        variance, c = self._matched_variance, ALL_POINTS
        if not variance:
            return 0
        bend = variance + 1 / c**2 + 1 / (1 + c) ** 2
        logs = 2 - variance * c**2 / 2 - np.log(c) - np.log1p(c) - np.log(2 * math.pi * bend) / 2
        return int(np.argmax(logs < log_target)) - FARTHEST_INDEX

    def _saddle_point_formula(self, indices: Indices) -> tuple[Floats, Floats]:
        """ε(c) and log of the saddle-point formula at indices [n], by differences of K in log c."""
        wider = np.arange(indices[0] - 1, indices[-1] + 2)
        self.learn_alone(wider)
        values = self.cumulants_at(wider)
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
        return np.asarray(cumulants - c * epsilon + peaks + errors + np.abs(c) * self.source.rounding_bound + rounding)


# Choice of the line Re z = c of the contour integral, its step, and its nodes (theory §3, §3.1).
#
# The trapezoidal rule with step h on Re z = c is off by Σ_{n≠0} e^{2πnc/h} δ₀(ε + 2πn/h), and each term is at most
# e^{B(c') − 2π|c' − c|/h}, log B Chernoff's bound at any c' on the side of n. So 2π/h must reach the larger of
# min_{c'} (B(c') − t)/|c' − c| over the two sides, t the logarithm of the tolerance. Any c is valid; one next to the
# saddle loses e^{height(c) − height(saddle)} of the digits, and if K rises like a wall just beyond the saddle, as
# it does at small sampling rates, it allows a step many times as long.

TOLERANCE = 1e-14
"""Aliasing allowed, relative to δ."""
DEAR = 6.0
"""Nats of height above the saddle traded for a longer step: six digits of rounding become three and a half."""
EXACT, WORTH = 1e-10, 0.35
"""If the integrand's relative error exceeds the first number, each nat more must make the step e^0.35 as long."""
DEEPEST = 4 * FINENESS
"""Largest depth of candidate lines: down to e^{−4} of the saddle."""
NEAREST, COARSE = FINENESS // 2, 4
"""Below the nearest points only every fourth is tried, since K is not steep there."""
HIGHEST = 2 * FINENESS
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
    candidates = saddle - np.arange(0, DEEPEST, 2)
    axis.learn_alone(np.concatenate([candidates, _chernoff_indices(saddle)]))
    heights = axis.log_integrand(candidates, epsilon)
    paid = heights - heights[0] <= DEAR
    candidates, over = candidates[paid], heights[paid] - log_value - math.log(EXACT)
    over += np.log(axis.cumulant_errors(candidates) + 64 * ROUND_OFF)
    indices = _chernoff_indices(saddle)
    bounds = axis.log_bounds(indices, epsilon)
    allowed = log_value + math.log(TOLERANCE)
    away = axis.points_at(indices)[None, :] - axis.points_at(candidates)[:, None]
    rates = np.max([_least_rates(bounds - allowed, sign * away) for sign in (1, -1)], axis=0)
    best = int(np.argmin(np.log(rates) + WORTH * np.maximum(over, 0.0)))
    if not math.isfinite(rates[best]):
        raise PrecisionError(f"no step keeps the aliasing below {TOLERANCE} of delta at epsilon={epsilon!r}")
    step = math.floor(STEPS_AN_OCTAVE * math.log2(2 * math.pi / rates[best]))
    return LinePlan(int(candidates[best]), step, log_alias_bound(axis, epsilon, saddle, (int(candidates[best]), step)))


def log_alias_bound(axis: RealAxis, epsilon: float, saddle: int, plan: tuple[int, int]) -> float:
    """Log of a bound on the aliasing of a line and step: both sides, geometric sums over n ≥ 1."""
    indices = _chernoff_indices(saddle)
    away = axis.points_at(indices) - float(axis.points_at(np.array([plan[0]]))[0])
    shift, total = 2 * math.pi / 2.0 ** (plan[1] / STEPS_AN_OCTAVE), -math.inf
    bounds = axis.log_bounds(indices, epsilon)
    for sign in (1, -1):
        good = (sign * away > 0) & np.isfinite(bounds)
        rate = np.abs(away[good]) * shift
        terms = bounds[good] - rate - np.log(-np.expm1(-rate))
        total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
    return total


def _chernoff_indices(saddle: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return indices to try Chernoff's bounds at: dense near the saddle, since K may be steep, and far below it."""
    near = np.arange(saddle - NEAREST, saddle + HIGHEST)
    below = saddle - np.arange(NEAREST + COARSE, DEEPEST, COARSE)
    return np.concatenate([near, below, saddle - np.arange(DEEPEST, 3 * DEEPEST, 4 * COARSE)])


def _least_rates(excess: Floats, away: Floats) -> Floats:
    """Return the least 2π/h for each candidate, where ``away`` is positive, with a margin for the sum over n."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where((away > 0) & np.isfinite(excess), (np.maximum(excess, 1.0) + 1e-3) / away, np.inf)
    return np.asarray(np.min(rates, axis=1))


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
            found = [self.source.log_moments(part) for part in parts]
            self.cumulant = np.concatenate([self.cumulant, *(cumulant for cumulant, _ in found)])
            self.error = np.concatenate([self.error, *(error for _, error in found)])
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
NODES_PAID = 1 << 18
LOST = 0.5
"""Largest usable error of a moment's logarithm; beyond it only a bound on its modulus is used."""
ENOUGH = 1e-9
"""The truncation error accepted if the smaller one takes too many nodes."""
STEEPEST = 600.0
KEPT_LINES = 6
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
        """Return a new integral; ``near`` is an approximate index of a saddle on the right, if known."""
        start = [] if near is None else [near]
        return cls(source, RealAxis(source, between_poles=False, latest=start), RealAxis(source, between_poles=True))

    def approximate_log_value(self, epsilon: float, saddle: int, *, between_poles: bool = False) -> float:
        """Return the approximate log of the integral, by the saddle-point formula: it only sets the accuracy."""
        axis = self._real_axis(between_poles=between_poles)
        near = axis.log_integrand(saddle + np.array([-4, 0, 4]), epsilon)
        bend = float(near[0] - 2 * near[1] + near[2]) / (4 / FINENESS) ** 2
        c = float(axis.points_at(np.array([saddle]))[0])
        bent = max(bend, 1e-3) if math.isfinite(bend) else 1.0
        size = abs(c) * (1 + c) if between_poles else c
        return min(0.0, float(near[1]) + math.log(size) - math.log(2 * math.pi * bent) / 2)

    def _real_axis(self, *, between_poles: bool) -> RealAxis:
        return self.between_poles if between_poles else self.right

    def _plan_for_epsilon(self, epsilon: float, saddle: int, log_value: float, *, between_poles: bool) -> LinePlan:
        """Return the plan of the last ε if it is still valid, else a new one."""
        axis, last = self._real_axis(between_poles=between_poles), self.latest.get(between_poles)
        if last is not None and abs(last.line - saddle) < 3 * FINENESS:
            lost = axis.log_integrand(np.array([last.line, saddle]), epsilon)
            again = log_alias_bound(axis, epsilon, saddle, (last.line, last.step))
            if lost[0] - lost[1] <= 8.0 and again <= log_value - 29.0:
                return LinePlan(last.line, last.step, again)
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
        if not height < STEEPEST:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        value, wobble, rest = self._sum_nodes(nodes, epsilon, height, math.exp(min(aim - height, 700.0)))
        # Losses off by the slack move δ by no more than slack · P(L > ε − slack), and Chernoff bounds that.
        moved = self.source.rounding_bound * math.exp(min(abs(nodes.c) * self.source.rounding_bound, 700.0))
        error = math.exp(min(plan.alias - height, 700.0)) + rest + wobble + moved
        if not math.isfinite(error):
            raise PrecisionError(f"the error of the integral is unknown at epsilon={epsilon!r}")
        if aim > -math.inf and not value > 2 * error:
            return max(value, 0.0) * math.exp(height), (error + max(-value, 0.0)) * math.exp(height)
        if not value > 2 * error:
            raise PrecisionError(
                f"all digits are lost at epsilon={epsilon!r}: {value!r} within {error!r} of e^{height:.4g}"
            )
        found = math.exp(height + math.log(value))  # e^height alone may be below double precision
        lost = 2 * math.ulp(0.0) * (found < SUBNORMAL)
        return found, found * (error / value + 4 * ROUND_OFF * (abs(height) + 4)) + lost

    def _nodes_of_plan(self, plan: LinePlan, *, between_poles: bool) -> LineNodes:
        key = (between_poles, plan.line, plan.step)
        if key not in self.nodes:
            while len(self.nodes) >= KEPT_LINES:
                self.nodes.pop(next(iter(self.nodes)))
            c = float(self._real_axis(between_poles=between_poles).points_at(np.array([plan.line]))[0])
            self.nodes[key] = LineNodes(self.source, c, plan.step_width)
        return self.nodes[key]

    def _sum_nodes(self, nodes: LineNodes, epsilon: float, height: float, aim: float) -> tuple[float, float, float]:
        """Return (h/2π) Σ over c + ihn: the value, its rounding, and a bound on the part beyond the last node.

        Beyond |Im z| = T the integrand is at most decay(c, T)/|z(z+1)|, so the rest is below decay/T · (1 + h/T)/π.
        """
        step, c = nodes.width, nodes.c
        value, wobble, rest, start = 0.0, 0.0, math.inf, 0
        sign = math.copysign(1.0, c)
        while start < NODES_PAID:
            stop = start + next_block(start)
            nodes.evaluate_nodes(stop)
            z, cumulant, error = (part[start:stop] for part in (nodes.z, nodes.cumulant, nodes.error))
            weight = (sign * step / math.pi) / (z * (z + 1))
            weight[0] /= 2 if start == 0 else 1
            lost = error > LOST
            terms = weight * np.exp(np.where(lost, 0.0, cumulant - z * epsilon - height)) * ~lost
            value += math.fsum(terms.real)
            exponents = np.abs(cumulant) + np.abs(z) * abs(epsilon) + abs(height) + 64
            moved = np.expm1(np.where(lost, 0.0, error))
            wobble += float(np.dot(np.abs(terms), 2 * ROUND_OFF * exponents + moved))
            sizes = cumulant.real + np.where(np.isfinite(error), error, 0.0) - nodes.c * epsilon - height
            wobble += self._unresolved_terms_bound(nodes.c, z[lost].imag, sizes[lost], np.abs(weight[lost]))
            start, reach = stop, step * stop
            rest = math.exp(nodes.log_decay(reach)) / reach * (1 + step / reach) / math.pi
            if rest < max(TRUNCATION * max(abs(value), aim), 1e-3 * wobble):
                return value, wobble, rest
            if stop == FIRST_BLOCK:
                self._must_die(nodes)
        if rest < ENOUGH * max(abs(value), aim):
            return value, wobble, rest
        raise PrecisionError(f"the integrand has not decayed after {NODES_PAID} nodes of width {step:.3g}")

    def _unresolved_terms_bound(self, c: float, y: Floats, sizes: Floats, weight: Floats) -> float:
        """Return a bound on terms at c + iy whose moments are smaller than their errors: their sizes from logarithms,
        and from the first on at most the decay bound of the modulus there.
        """
        if not len(y):
            return 0.0
        bound = np.exp(np.minimum(sizes, self.source.log_decay(c, float(y[0]))))
        return (1 + ENOUGH) * float(np.dot(np.minimum(bound, 1.0), weight))

    def _must_die(self, nodes: LineNodes) -> None:
        """Raise unless NODES_PAID nodes suffice for a tail below ENOUGH, relative to about e^{height}/|c (1 + c)|."""
        reach = nodes.width * NODES_PAID
        left = nodes.log_decay(reach) + math.log(abs(nodes.c) * (1 + nodes.c) / reach)
        if left > math.log(ENOUGH):
            raise PrecisionError(f"the integrand does not decay within {NODES_PAID} nodes of width {nodes.width:.3g}")


UNDERFLOW = -760.0
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
        if epsilon >= self.total.largest_loss + self.total.rounding_bound:
            return self.total.infinite_bounds
        if self._underflows_to_zero(epsilon):
            return round_outward(self.total.infinite_mass, math.ulp(0.0) + self._infinite_error)
        return self._integrate_stably(epsilon)

    def chernoff_bounds(self, epsilon: float) -> Interval:
        """Chernoff's bounds, which always hold.

        δ₀ ≤ e^{K(c) − cε} c^c/(1+c)^{1+c} for c > 0, and 1 − δ ≤ e^{K(c) − cε} for −1 < c < 0.
        """
        between_poles = self.lines.between_poles.log_chernoff_bound(epsilon)
        below = round_outward(-math.expm1(min(between_poles, 0.0)), 8 * ROUND_OFF)[0]
        return max(below, self.total.infinite_bounds[0]), self.chernoff_upper_bound(epsilon)

    def chernoff_upper_bound(self, epsilon: float) -> float:
        """Return the upper Chernoff bound."""
        above = self.total.infinite_mass + math.exp(min(self.lines.right.log_chernoff_bound(epsilon), 0.0))
        return round_outward(above, 8 * ROUND_OFF * above + self._infinite_error)[1]

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
            return round_outward(1 - value, error + 4 * ROUND_OFF)
        value, error = self.lines.integrate_line(epsilon, between_poles=False)
        low, high = round_outward(self.total.infinite_mass + value, error + self._infinite_error)
        return max(low, self.total.infinite_bounds[0]), high

    def _mirrored_delta(self, epsilon: float) -> Interval:
        if not self.mirror:
            self.mirror.append(ContourIntegral.for_source(self.total.reverse_distribution()))
        low, high = self.mirror[0].delta(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return round_outward(base + factor * low, 8 * ROUND_OFF * base)[0], round_outward(
            base + factor * high, 8 * ROUND_OFF
        )[1]

    def _approximate_mean(self, at: float) -> float:
        """Return K'(0) = E_P L or K'(−1) = E_Q L, approximately: used only to choose between methods."""
        small = math.exp(min(self.lines.right.latest[0] if self.lines.right.latest else 0, 0) / FINENESS) * 1e-3
        end = at - small if at == 0 else at + small
        found, _ = self.total.log_moments(np.array([complex(end)]))
        return float(found[0].real) / (end - at)

    def _estimate_between(self, epsilon: float) -> float:
        try:
            return self.lines.approximate_log_value(
                epsilon, self.lines.between_poles.find_saddle(epsilon), between_poles=True
            )
        except PrecisionError:
            return 0.0

    def _underflows_to_zero(self, epsilon: float) -> bool:
        """Return whether some δ − δ_∞ ≤ e^{K(c) − cε} proves it to be below the smallest double."""
        return self.lines.right.log_chernoff_bound(epsilon) < UNDERFLOW
