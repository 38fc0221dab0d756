"""Sampled and plain Gaussians on a lattice, composed by a transform that is tilted to the saddle point: brackets on δ.

One lattice law dominates the true one, another is dominated by it (``tilted_cells.py``); losses above ε plus all that
the others can take away are added in closed form. Proof: ``docs/proofs/tilted-grid.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.lattice import LatticePoints, TiltedSum, TiltShape, raise_to_power
from tightrope.accounting.methods.method import Method
from tightrope.accounting.methods.tail_jumps import FoldedPaths
from tightrope.accounting.methods.tilted_cells import LineLaw, Outline, TiltedLattice, place_anchor
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF

DROPPED_NATS = 52.0
"""Outcomes whose tilted density is this many nats below its peak are dropped; a bound on their mass is added."""
ESCAPING_NATS = 40.0
"""The tilted mass outside the transform is at most about e^{−40} on either side."""
MAX_BLOCKS = 1000
"""Number of blocks of neighboring points that are merged, at their outer end, for Chernoff's bound."""
TILT_RATES = 2.0 ** np.arange(-4, 12, 0.5)
"""Chernoff's bounds are tried at these, over the deviation of the sum."""
MAX_SUM_POINTS = 3 << 22
TRANSFORM_UNITS = 8.0
"""Roundings of each value of a transform, for each doubling of its length (radix 2 to 5: at most 5.7)."""
POWER_UNITS = 16.0
"""Roundings of a power of a transform and of products, for each factor."""
LEAST_SUM = 1e-322
"""Rounding error of sums below double precision."""
LEAST_NORM = 1e-300
"""Divisor in place of 0."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeTerm:
    """``count`` copies of normalized tilted masses [n] at the points first + i."""

    first: int
    masses: Floats
    count: int

    @property
    def mean(self) -> float:
        return self.first + float(np.dot(self.masses, np.arange(len(self.masses))))

    def variance_about(self, mean: float) -> float:
        """Return the second moment about a number."""
        return float(np.dot(self.masses, (self.first + np.arange(len(self.masses)) - mean) ** 2))

    def log_moments(self, rates: Floats, mean: float, sign: int) -> Floats:
        """Return bounds on log E e^{rate·sign·(j − mean)} at the rates [r], from blocks merged at their outer ends."""
        block = max(1, len(self.masses) // MAX_BLOCKS)
        starts = np.arange(0, len(self.masses), block)
        ends = starts if sign < 0 else np.minimum(starts + block, len(self.masses)) - 1
        exponent = sign * rates[:, None] * (self.first + ends - mean)
        with np.errstate(divide="ignore"):
            logs = np.log(np.add.reduceat(self.masses, starts))
        return np.asarray(special.logsumexp(exponent + logs, axis=1))


def compose_terms(terms: Sequence[LatticeTerm], step: float, tilt: float, log_scale: float) -> TiltedSum:
    """Compose by a transform that is just long enough for all but a negligible tilted mass."""
    means = [term.mean for term in terms]
    counts = np.array([term.count for term in terms], dtype=np.float64)
    mean = float(np.dot(counts, means))
    variance = float(np.dot(counts, [term.variance_about(at) for term, at in zip(terms, means, strict=True)]))
    rates = TILT_RATES / math.sqrt(variance + 1)
    reaches = []
    for sign in (-1, 1):
        logs = counts @ np.array([term.log_moments(rates, at, sign) for term, at in zip(terms, means, strict=True)])
        reaches.append(math.ceil(float(np.min((logs + ESCAPING_NATS) / rates))) + 2)
    first = round(mean) - reaches[0]
    points = scipy.fft.next_fast_len(reaches[0] + reaches[1] + 1, real=True)
    if not points <= MAX_SUM_POINTS:
        raise PrecisionError(f"the composed loss needs {points} lattice points, more than {MAX_SUM_POINTS}")
    centers = [round(at) for at in means]
    shift = first - sum(term.count * center for term, center in zip(terms, centers, strict=True))
    transform, modulus = np.ones(points // 2 + 1, dtype=np.complex128), np.ones(points // 2 + 1)
    relative = np.zeros(points // 2 + 1)
    for term, center in zip(terms, centers, strict=True):
        offsets = np.mod(term.first - center + np.arange(len(term.masses)), points)
        single = scipy.fft.rfft(np.bincount(offsets, weights=term.masses, minlength=points))
        # Each value is a sum of masses that add up to 1, in levels of additions and after those of wrapped masses.
        error = (TRANSFORM_UNITS * math.log2(points) + len(term.masses) / points + 4) * ROUND_OFF
        bound = np.abs(single) + error
        transform, modulus = transform * raise_to_power(single, term.count)[0], modulus * bound**term.count
        relative += term.count * (error / bound + POWER_UNITS * ROUND_OFF)
    masses = np.roll(scipy.fft.irfft(transform, points), -shift)
    # Parseval; half the spectrum is stored.
    norms = float(np.linalg.norm(modulus * relative)), float(np.linalg.norm(masses))
    rounding = 1.01 * math.sqrt(2 / points) * norms[0] / max(norms[1], LEAST_NORM)
    rounding += TRANSFORM_UNITS * math.log2(points) * ROUND_OFF
    shape = TiltShape(tilt, step * mean, step**2 * variance, log_scale)
    return TiltedSum(shape, LatticePoints(step, first, 1), masses, rounding, 2.5 * math.exp(-ESCAPING_NATS), 0.0)


class ComposedBracket(NamedTuple):
    """Tilted sums of the dominating and the dominated laws, for δ(ε) at ε up to ``last``."""

    upper: TiltedSum
    lower: TiltedSum
    anchor: float
    """The sum of all anchors."""
    dropped: float
    slack: float
    mass_error: float
    rounding: float
    """Relative rounding error of the sums' scale e^{K}."""
    folded: FoldedPaths
    last: float

    def delta(self, epsilon: float) -> Interval:
        """Return bounds on δ(ε)."""
        slack = self.slack + 8 * ROUND_OFF * (abs(epsilon) + abs(self.anchor))
        high = self._one_side(self.upper, epsilon - slack, 1) * (1 + self.mass_error)
        low = self._one_side(self.lower, epsilon + slack, -1) * (1 - self.mass_error)
        return max(low + self.folded.delta(epsilon, -1), 0.0), high + self.folded.delta(epsilon, 1)

    def rounding_share(self, epsilon: float) -> float:
        """Return the error of the transform relative to the part of δ that it computes."""
        value, error = self.upper.delta_above(epsilon - self.anchor)
        return error / value if value > 0 else math.inf

    def _one_side(self, tilted: TiltedSum, epsilon: float, sign: int) -> float:
        value, error = tilted.delta_above(epsilon - self.anchor)
        shape = tilted.shape
        log_factor = shape.log_scale - shape.tilt * (epsilon - self.anchor)
        total = value + sign * (error + (self.dropped if sign > 0 else 0.0))
        rounding = self.rounding + (8 * abs(shape.tilt * (epsilon - self.anchor)) + 1024) * ROUND_OFF
        return math.exp(min(log_factor + math.log(total), 0.0)) * (1 + sign * rounding) if total > 0 else 0.0


TOP_FACTOR = 1.1
"""Losses above this multiple of ε, plus what all other losses may take away, are folded."""
REST_NATS = 60.0
"""All other losses take more away with a probability of at most e^{−60} under Q."""
REUSE_RANGE = 0.1
"""Relative change of ε within which cached sums are reused: the parabola of a saddle does not hold far from it."""
TILT_NATS = 3.0
"""Nats above the saddle at which cached sums are reused: each costs a factor e of rounding."""
LEVELS = tuple(1 << i for i in range(13, 24))
"""Lattice points for the sum."""
COARSE_LEVELS = (0, 3, 6)
FINE_WIDTHS, ABSOLUTE_WIDTH = (1e-9, 1e-8), 1e-6
"""Relative width of a bracket on ε at which no finer lattice is tried: that of an absolute one, between these two."""
NARROW_WIDTH = 1e-7
"""Relative width of a bracket on ε that other methods need not improve."""
COARSE_WIDTH = 2e-7
"""Relative width of a bracket on ε from which on the finest lattice of all is tried."""
REST_RATES = np.array([0.3, 1.0, 3.0])
"""Chernoff's bound is tried at these, over the rate that were best for a normal sum."""
CACHED_SUMS = 6
ROUNDING_PARTS = 6.0
"""A bracket at most so many times as wide as the transform's error would hardly become narrower on a finer lattice."""
LEAST_GAIN = 0.7
"""A finer lattice must make the bracket narrower by this factor, or it is the last."""
MAX_TILT_A_STEP = 5.0
"""Nats by which the tilt may change from one lattice point to the next."""
MAX_RELATIVE_ERROR = 0.01
"""Largest error of masses by rounding, or by outcomes that are dropped."""
MAX_POWER = 1e7
"""Largest order of a moment at the saddle."""
LOG_TILT_RANGE = (-16.0, 20.0)


@dataclass(frozen=True)
class TiltedGridMethod(Method):
    """Lattices, from coarse to fine, until the bracket is narrow."""

    laws: tuple[LineLaw, ...]
    counts: tuple[int, ...]
    name = "tilted grid"
    brackets: dict[tuple[float, int], ComposedBracket] = field(default_factory=dict)

    @classmethod
    def from_composition(cls, total: Composition) -> Self | None:
        """Return the method if all losses are those of plain or sampled Gaussians, else None."""
        laws = [LineLaw.from_distribution(law) for law in total.laws]
        known = tuple(law for law in laws if law is not None)
        return cls(known, total.counts) if known and len(known) == len(laws) else None

    def delta(self, epsilon: float) -> Interval:
        return self.bracket_delta(epsilon)[:2]

    def bracket_delta(self, epsilon: float) -> tuple[float, float, bool]:
        """Return bounds on δ(ε), and whether they are narrow: ε is known to 1e-7, relative; [0, 1] if ε is negative."""
        if not epsilon >= 0:
            return 0.0, 1.0, False
        low, high, level, width, is_narrow = 0.0, 1.0, 0, math.inf, False
        fine = min(max(ABSOLUTE_WIDTH / max(epsilon, 1.0), FINE_WIDTHS[0]), FINE_WIDTHS[1])
        while level < len(LEVELS):
            try:
                bracket = self._bracket_near(epsilon, level)
            except PrecisionError:
                break
            below, above = bracket.delta(epsilon)
            low, high = max(low, below), min(high, above)
            steepness = max(1.0, bracket.upper.shape.tilt * epsilon) * high
            is_fine, is_narrow = (high - low <= part * steepness for part in (fine, NARROW_WIDTH))
            last = len(LEVELS) - (1 if high - low > COARSE_WIDTH * steepness else 2)
            is_rounding = high - low <= ROUNDING_PARTS * bracket.rounding_share(epsilon) * high
            if is_fine or is_rounding or level >= last or not high - low < width * LEAST_GAIN:
                break
            width = high - low
            finer = level + max(1, math.ceil(math.log2(width / (fine * steepness)) / 2))
            level = min(finer, max(len(LEVELS) - 2, level + 1))
        return probability_error_bounds(low, 0.0)[0], probability_error_bounds(high, LEAST_SUM)[1], is_narrow

    def coarse_bracket(self, epsilon: float, width: float) -> Interval:
        """Return bounds on δ(ε) from the coarsest lattice whose bracket has at most this relative width, if one has."""
        low, high = 0.0, 1.0
        for level in COARSE_LEVELS:
            try:
                below, above = self._bracket_near(epsilon, level).delta(epsilon)
            except PrecisionError:
                break
            low, high = max(low, below), min(high, above)
            if high - low <= width * high:
                break
        return low, high

    @cached_property
    def _drop(self) -> tuple[float, float]:
        """What all losses together take away from the sum at most, and the log of the probability of more, under Q.

        Σ k_i r_i if each loss is at least −r_i, or Chernoff's bound from E_Q e^{−tL} = E_P e^{−(1+t)L}.
        """
        most = -math.fsum(count * law.least_loss for law, count in zip(self.laws, self.counts, strict=True))
        drop, log_rest = most, -math.inf
        outlines = [Outline.from_law(law, 4.0, math.inf) for law in self.laws]
        variance = math.fsum(n * outline.reverse_variance for outline, n in zip(outlines, self.counts, strict=True))
        for rate in REST_RATES * math.sqrt(2 * REST_NATS / max(variance, LEAST_NORM)):
            total = math.fsum(
                n * max(_reverse_log_moment(law, float(rate)), 0.0)
                for law, n in zip(self.laws, self.counts, strict=True)
            )
            if (total + REST_NATS) / rate < drop:
                drop, log_rest = (total + REST_NATS) / rate, -REST_NATS
        return drop, log_rest

    def _bracket_near(self, epsilon: float, level: int) -> ComposedBracket:
        """Return the finest cached sums that are tilted nearly to the saddle of ε, or new ones of this level."""
        usable = [
            (made, bracket)
            for (center, made), bracket in self.brackets.items()
            if made >= level
            and abs(epsilon - center) <= REUSE_RANGE * center
            and epsilon <= bracket.last
            and bracket.upper.saddle_excess(epsilon - bracket.anchor) <= TILT_NATS
        ]
        if usable:
            return max(usable, key=lambda pair: pair[0])[1]
        while len(self.brackets) >= CACHED_SUMS:
            self.brackets.pop(next(iter(self.brackets)))
        self.brackets[epsilon, level] = self.compose_near(epsilon, LEVELS[level])
        return self.brackets[epsilon, level]

    def compose_near(self, epsilon: float, points: int) -> ComposedBracket:
        """Return the sums tilted to the saddle of ε, on a lattice with about so many points for the sum."""
        last = TOP_FACTOR * epsilon
        drop, log_rest = self._drop
        top = (last + drop) * (1 + 1e-12)  # above, however it is rounded
        ends = [
            float(law.outcome_at_loss(np.array(top))) if top < math.inf and law.sign > 0 else math.inf
            for law in self.laws
        ]
        outlines, tilt = self._outlines_and_tilt(epsilon, ends)
        step, bounds = self._step_and_bounds(outlines, tilt, ends, points)
        if not (step * tilt <= MAX_TILT_A_STEP and step <= OVERFLOW):
            raise PrecisionError(f"a lattice of step {step:.3g} is too coarse at epsilon={epsilon!r}")
        lattice = TiltedLattice(step, tilt)
        uppers, lowers, anchors, log_scales = [], [], [], []
        dropped = slack = mass_error = rounding = 0.0
        tail_masses = []
        for law, count, outline, span, end in zip(self.laws, self.counts, outlines, bounds, ends, strict=True):
            anchor = place_anchor(law, outline, lattice)
            shift = outline.log_moment(tilt) - tilt * anchor
            cells = lattice.cells(law, anchor, span, shift)
            above, below = cells.split, cells.dominated_masses(lattice)
            totals = float(np.sum(above)), float(np.sum(below))
            if not min(totals) > 0:
                raise PrecisionError(f"a lattice of step {step:.3g} has no masses at epsilon={epsilon!r}")
            uppers.append(LatticeTerm(cells.first, above / totals[0], count))
            lowers.append(LatticeTerm(cells.first, below / totals[1], count))
            log_scales.append([count * (shift + math.log(total)) for total in totals])
            rounding += 8 * count * (abs(shift) + abs(math.log(totals[0])) + abs(math.log(totals[1]))) * ROUND_OFF
            anchors.append(count * anchor)
            tails = [law.log_tail(span[0], tilt, above=False)]
            tails += [law.log_tail(span[1], tilt, above=True, end=end)] if span[1] < end else []
            # At most OVERFLOW, where the sums are rejected anyway; the factor is for rounding.
            logs = [min(tail - shift - tilt * anchor, OVERFLOW) for tail in tails]
            dropped += 1.001 * count * math.fsum(math.exp(log) for log in logs) / totals[0]
            tail_masses += [(count, law.log_tail_masses(end))] if end < math.inf else []
            slack += count * cells.loss_error
            mass_error += count * cells.mass_error
        if not max(dropped, mass_error) <= MAX_RELATIVE_ERROR:
            raise PrecisionError(f"rounding, or outcomes dropped, are {max(dropped, mass_error):.3g} of delta")
        return ComposedBracket(
            compose_terms(uppers, step, tilt, math.fsum(above for above, _ in log_scales)),
            compose_terms(lowers, step, tilt, math.fsum(below for _, below in log_scales)),
            math.fsum(anchors),
            math.expm1(dropped),
            slack,
            math.expm1(mass_error),
            rounding,
            FoldedPaths.from_tails(tail_masses, log_rest),
            last,
        )

    def _outlines_and_tilt(self, epsilon: float, ends: Sequence[float]) -> tuple[list[Outline], float]:
        """Return outlines that reach far enough for the saddle of ε, and the saddle."""
        power = 4.0
        while True:
            outlines = [Outline.from_law(law, power, end) for law, end in zip(self.laws, ends, strict=True)]

            def log_integrand(log_c: float, outlines: list[Outline] = outlines) -> float:
                c = math.exp(log_c)
                return self._cumulant(outlines, c) - c * epsilon - log_c - math.log1p(c)

            found = scipy.optimize.minimize_scalar(
                log_integrand, bounds=LOG_TILT_RANGE, method="bounded", options={"xatol": 1e-3}
            )
            tilt = math.exp(float(found.x))
            if tilt + 2 <= power:
                return outlines, tilt
            power *= 4
            if not power <= MAX_POWER:
                raise PrecisionError(f"the saddle of epsilon={epsilon!r} is beyond order {MAX_POWER:g}")

    def _cumulant(self, outlines: Sequence[Outline], c: float) -> float:
        return math.fsum(n * outline.log_moment(c) for outline, n in zip(outlines, self.counts, strict=True))

    def _step_and_bounds(
        self, outlines: Sequence[Outline], tilt: float, ends: Sequence[float], points: int
    ) -> tuple[float, list[tuple[float, float]]]:
        """Return the grid step for about so many points of the sum, and the kept range of each distribution."""
        at_tilt = self._cumulant(outlines, tilt)
        spread = tilt * 2.0 ** np.arange(-8, 4, 0.5)
        above = [(self._cumulant(outlines, tilt + r) - at_tilt + ESCAPING_NATS) / r for r in spread]
        below = [(at_tilt - self._cumulant(outlines, tilt - r) - ESCAPING_NATS) / r for r in spread]
        nats = DROPPED_NATS + math.log(sum(self.counts))
        bounds = []
        for outline, end in zip(outlines, ends, strict=True):
            low, high = outline.relevant_range(tilt, nats)
            bounds.append((low, min(high, end)))
        return max(min(above) - max(below), 1e-12) / points, bounds


def _reverse_log_moment(law: LineLaw, t: float) -> float:
    """Return an upper bound on log E e^{−tL} under Q, that of the reverse pair at t; ∞ if t is out of range."""
    try:
        enclosure = law.reverse_distribution().enclose_cumulant(np.array([t + 0j]))
    except PrecisionError:
        return math.inf
    if enclosure is None:
        return math.inf
    value, error = float(enclosure[0][0].real), float(enclosure[1][0])
    return value + error if math.isfinite(error) else value
