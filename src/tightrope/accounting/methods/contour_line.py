"""δ(ε) of one composed direction by contour integrals: which one, and how it becomes an interval (theory §3).

Above the mean loss and around it δ − δ_∞ is the integral to the right of 0; far below it 1 − δ is that between the
poles; below the mean under Q the reverse direction is mirrored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tightrope.accounting.bounds import Interval, outward
from tightrope.accounting.distributions.composition import Composition
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# K on the real axis, at points that are kept: for saddles, for the plan of a line and for Chernoff's bounds.
#
# For c > 0 δ₀(ε) ≤ e^{K(c) − cε} c^c/(1+c)^{1+c}; for −1 < c < 0 1 − δ(ε) ≤ e^{K(c) − cε}
# (``docs/proofs/contour.md``).

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
            # The block to try: beyond the only end that is known, or between both.
            if high == math.inf:
                next_block = int(low) + stride
            else:
                next_block = int(high) - stride if low == -math.inf else int(low + high) // 2
            block, stride = next_block, 2 * stride
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


# Which line Re z = c the contour integral takes, with which step, and its nodes (theory §3, §3.1).
#
# The trapezoidal rule with step h on Re z = c is off by Σ_{n≠0} e^{2πnc/h} δ₀(ε + 2πn/h), and each term is at most
# e^{B(c') − 2π|c' − c|/h}, log B Chernoff's bound at any c' on the side of n. So 2π/h must reach the larger of
# min_{c'} (B(c') − t)/|c' − c| over the two sides, t the logarithm of what is allowed. Any c is right; one beside the
# saddle costs e^{height(c) − height(saddle)} of the digits, and where K rises like a wall just beyond the saddle, as
# it does at small sampling rates, it buys a step many times as long.

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


# The contour integral beside the saddle point: full relative accuracy at any δ, cost free of k (theory §3).
#
# δ(ε) = δ_∞ + (1/2πi) ∫ e^{K(z) − zε} / (z(z+1)) dz over Re z = c > 0, and 1 − δ(ε) is minus the same for −1 < c < 0,
# which is better far below the mean loss. Lines and steps are chosen by ``contour_line`` and kept: neighbouring ε
# share the moments, which are all that costs. What aliases, what lies beyond the last node, rounding and the errors
# of the moments are enclosed (``docs/proofs/contour.md``).

TRUNCATION = 1e-14
"""What lies beyond the last node, relative to δ."""
NODES_PAID = 1 << 18
LOST = 0.5
"""A moment whose logarithm is off by more says nothing; a bound on its modulus may."""
ENOUGH = 1e-9
"""And where that takes more nodes than we are ready to pay for."""
STEEPEST = 600.0
KEPT_LINES = 6
"""Lines whose nodes are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class LineIntegral:
    """Of a source's moments; ``PrecisionError`` where no digit is kept."""

    source: Source
    right: RealAxis
    between: RealAxis
    nodes: dict[tuple[bool, int, int], Nodes] = field(default_factory=dict)
    latest: dict[bool, Plan] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, near: int | None = None) -> LineIntegral:
        """With nothing known yet, but perhaps an index on the right that a saddle is ``near``."""
        start = [] if near is None else [near]
        return cls(source, RealAxis(source, between=False, latest=start), RealAxis(source, between=True))

    def estimate(self, epsilon: float, saddle: int, *, between: bool = False) -> float:
        """About log of the integral, by the saddle-point formula: it only tells how fine to be."""
        axis = self._axis(between=between)
        near = axis.heights(saddle + np.array([-4, 0, 4]), epsilon)
        bend = float(near[0] - 2 * near[1] + near[2]) / (4 / FINENESS) ** 2
        c = float(axis.points(np.array([saddle]))[0])
        bent = max(bend, 1e-3) if math.isfinite(bend) else 1.0
        size = abs(c) * (1 + c) if between else c
        return min(0.0, float(near[1]) + math.log(size) - math.log(2 * math.pi * bent) / 2)

    def _axis(self, *, between: bool) -> RealAxis:
        return self.between if between else self.right

    def _plan(self, epsilon: float, saddle: int, log_value: float, *, between: bool) -> Plan:
        """The plan of the last ε, where it still serves; else a new one."""
        axis, last = self._axis(between=between), self.latest.get(between)
        if last is not None and abs(last.line - saddle) < 3 * FINENESS:
            lost = axis.heights(np.array([last.line, saddle]), epsilon)
            again = alias(axis, epsilon, saddle, (last.line, last.step))
            if lost[0] - lost[1] <= 8.0 and again <= log_value - 29.0:
                return Plan(last.line, last.step, again)
        self.latest[between] = planned(axis, epsilon, saddle, log_value)
        return self.latest[between]

    def value(self, epsilon: float, *, between: bool, aim: float = -math.inf) -> tuple[float, float]:
        """The integral over a line on one side of 0, positive, and a bound on its error.

        Where it only adds to a number of about e^{aim}, it is taken as fine as that asks for, and may keep no digit.
        """
        axis = self._axis(between=between)
        saddle = axis.saddle(epsilon)
        log_value = self.estimate(epsilon, saddle, between=between)
        if between:
            log_value = min(log_value, self.estimate(epsilon, self.right.saddle(epsilon)))
        plan = self._plan(epsilon, saddle, max(log_value, aim), between=between)
        nodes = self._nodes(plan, between=between)
        height = float(axis.cumulants(np.array([plan.line]))[0]) - nodes.c * epsilon
        if not height < STEEPEST:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        value, wobble, rest = self._sum(nodes, epsilon, height, math.exp(min(aim - height, 700.0)))
        # Losses off by the slack move δ by no more than slack · P(L > ε − slack), and Chernoff bounds that.
        moved = self.source.slack * math.exp(min(abs(nodes.c) * self.source.slack, 700.0))
        error = math.exp(min(plan.alias - height, 700.0)) + rest + wobble + moved
        if not math.isfinite(error):
            raise PrecisionError(f"no error of the integral is known at epsilon={epsilon!r}")
        if aim > -math.inf and not value > 2 * error:
            return max(value, 0.0) * math.exp(height), (error + max(-value, 0.0)) * math.exp(height)
        if not value > 2 * error:
            raise PrecisionError(
                f"no digit is kept at epsilon={epsilon!r}: {value!r} within {error!r} of e^{height:.4g}"
            )
        found = math.exp(height + math.log(value))  # e^height alone may be below double precision
        lost = 2 * math.ulp(0.0) * (found < SUBNORMAL)
        return found, found * (error / value + 4 * ROUND_OFF * (abs(height) + 4)) + lost

    def _nodes(self, plan: Plan, *, between: bool) -> Nodes:
        key = (between, plan.line, plan.step)
        if key not in self.nodes:
            while len(self.nodes) >= KEPT_LINES:
                self.nodes.pop(next(iter(self.nodes)))
            c = float(self._axis(between=between).points(np.array([plan.line]))[0])
            self.nodes[key] = Nodes(self.source, c, plan.width)
        return self.nodes[key]

    def _sum(self, nodes: Nodes, epsilon: float, height: float, aim: float) -> tuple[float, float, float]:
        """(h/2π) Σ over c + ihn: the value, its rounding, and a bound on what lies beyond the last node.

        Beyond |Im z| = T the integrand is at most decay(c, T)/|z(z+1)|, so the rest is below decay/T · (1 + h/T)/π.
        """
        step, c = nodes.width, nodes.c
        value, wobble, rest, start = 0.0, 0.0, math.inf, 0
        sign = math.copysign(1.0, c)
        while start < NODES_PAID:
            stop = start + next_block(start)
            nodes.reach(stop)
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
            wobble += self._unknown(nodes.c, z[lost].imag, sizes[lost], np.abs(weight[lost]))
            start, reach = stop, step * stop
            rest = math.exp(nodes.log_decay(reach)) / reach * (1 + step / reach) / math.pi
            if rest < max(TRUNCATION * max(abs(value), aim), 1e-3 * wobble):
                return value, wobble, rest
            if stop == FIRST_BLOCK:
                self._must_die(nodes)
        if rest < ENOUGH * max(abs(value), aim):
            return value, wobble, rest
        raise PrecisionError(f"the integrand has not died after {NODES_PAID} nodes of width {step:.3g}")

    def _unknown(self, c: float, y: Floats, sizes: Floats, weight: Floats) -> float:
        """A bound on terms at c + iy whose moments are lost in their errors: logarithms of their sizes at most, and
        from the first on no more than the modulus by then.
        """
        if not len(y):
            return 0.0
        bound = np.exp(np.minimum(sizes, self.source.log_decay(c, float(y[0]))))
        return (1 + ENOUGH) * float(np.dot(np.minimum(bound, 1.0), weight))

    def _must_die(self, nodes: Nodes) -> None:
        """Within the nodes that we are ready to pay for, beside a value of about e^{height}/|c (1 + c)| or far less."""
        reach = nodes.width * NODES_PAID
        left = nodes.log_decay(reach) + math.log(abs(nodes.c) * (1 + nodes.c) / reach)
        if left > math.log(ENOUGH):
            raise PrecisionError(f"the integrand does not die within {NODES_PAID} nodes of width {nodes.width:.3g}")


UNDERFLOW = -760.0
"""E to this power is 0 in double precision, with room for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Integral:
    """Of one composed direction; ``PrecisionError`` where no digit is kept."""

    total: Composition
    lines: LineIntegral
    mirror: list[Integral] = field(default_factory=list)

    @classmethod
    def of(cls, total: Composition, source: Source | None = None, near: int | None = None) -> Integral:
        """With nothing known yet; ``source`` knows the moments of ``total``, and a saddle is ``near`` this index."""
        return cls(total, LineIntegral.of(total if source is None else source, near))

    def delta(self, epsilon: float) -> Interval:
        """An interval that holds δ(ε)."""
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        if self._vanishes(epsilon):
            return outward(self.total.infinite_mass, math.ulp(0.0) + self._infinite_error)
        return self._within(epsilon)

    def chernoff(self, epsilon: float) -> Interval:
        """Chernoff's bounds, which always hold.

        δ₀ ≤ e^{K(c) − cε} c^c/(1+c)^{1+c} for c > 0, and 1 − δ ≤ e^{K(c) − cε} for −1 < c < 0.
        """
        between = self.lines.between.chernoff(epsilon)
        below = outward(-math.expm1(min(between, 0.0)), 8 * ROUND_OFF)[0]
        return max(below, self.total.infinite_bounds[0]), self.ceiling(epsilon)

    def ceiling(self, epsilon: float) -> float:
        """The upper one."""
        above = self.total.infinite_mass + math.exp(min(self.lines.right.chernoff(epsilon), 0.0))
        return outward(above, 8 * ROUND_OFF * above + self._infinite_error)[1]

    @property
    def _infinite_error(self) -> float:
        """Of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _within(self, epsilon: float) -> Interval:
        """By δ − δ_∞, or far below the mean loss by 1 − δ; below the mean under Q by the reverse direction's δ."""
        if epsilon < 0 and epsilon < self._mean(-1.0):
            return self._mirrored(epsilon)
        saddle = self.lines.right.saddle(epsilon)
        log_value = self.lines.estimate(epsilon, saddle)
        if log_value > -1 and epsilon < self._mean(0.0) and self._estimate_between(epsilon) < -1:
            value, error = self.lines.value(epsilon, between=True)
            return outward(1 - value, error + 4 * ROUND_OFF)
        value, error = self.lines.value(epsilon, between=False)
        low, high = outward(self.total.infinite_mass + value, error + self._infinite_error)
        return max(low, self.total.infinite_bounds[0]), high

    def _mirrored(self, epsilon: float) -> Interval:
        if not self.mirror:
            self.mirror.append(Integral.of(self.total.reverse()))
        low, high = self.mirror[0].delta(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return outward(base + factor * low, 8 * ROUND_OFF * base)[0], outward(base + factor * high, 8 * ROUND_OFF)[1]

    def _mean(self, at: float) -> float:
        """About K'(0) = E_P L or K'(−1) = E_Q L: it only decides between methods."""
        small = math.exp(min(self.lines.right.latest[0] if self.lines.right.latest else 0, 0) / FINENESS) * 1e-3
        end = at - small if at == 0 else at + small
        found, _ = self.total.moments(np.array([complex(end)]))
        return float(found[0].real) / (end - at)

    def _estimate_between(self, epsilon: float) -> float:
        try:
            return self.lines.estimate(epsilon, self.lines.between.saddle(epsilon), between=True)
        except PrecisionError:
            return 0.0

    def _vanishes(self, epsilon: float) -> bool:
        """Whether some δ − δ_∞ ≤ e^{K(c) − cε} proves it to be below the smallest double."""
        return self.lines.right.chernoff(epsilon) < UNDERFLOW
