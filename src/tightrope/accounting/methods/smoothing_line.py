"""A line Re z = c, with all sums that the smoothed integral needs for every ε (``docs/proofs/smoothed.md``).

With R = M less the moment of the separately summed atoms, s(z) = e^{μ²(z + z²)/2} and nodes z = c + ihn,
    value = ±(h/π) Σ' Re R s e^{−zε} / (z(z+1)),   gain = μ² e^{μ²/8} (h/π) Σ' Re R s e^{−zε}:
the first is δ (or 1 − δ, between the poles) of the loss with a normal one of variance μ² added, and some more, and
adding it has changed δ by no more than the second. Both are kept without the factor M(c) e^{−cε}.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import log1p
from tightrope.numerics.rounding import ROUND_OFF

# Moments of one law on a line Re z = c, relative to M(c): the characteristic function φ of the law tilted by e^{cl}.
#
# Nodes come in rows: y = start + along, so that the phases of a finite law are an outer product. For a finite law φ −
# 1 is summed from e^{iy(l − m)} − 1, m the tilted mean, so that log φ is known relative to itself near y = 0.

MAX_STEP_HALVINGS = 40
MOMENT_ROUNDING = 1e-13
"""Rounding of moments whose differences bound a variance."""
SMALLEST_MODULUS = 1e-300
NODES_CHUNK = 1 << 18
"""Phases held at once: 4 MiB of complex numbers."""
MAX_DIRECT_EXPONENT = 600.0


class LineDistribution(ABC):
    """One distribution on the line through c."""

    __slots__ = ()

    cumulant: float
    """K(c)."""
    error: float
    """A bound on the error of K(c)."""
    variance: float
    """A bound on E (L − m)² under the tilted distribution, for some m."""

    @abstractmethod
    def log_characteristic(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        """Return log φ, on any branch, and a bound on its error: shape [rows, nodes of a row]."""

    def modulus_upper_bounds(self, starts: Floats, along: Floats) -> Floats:
        """Return upper bounds on |φ|."""
        logs, errors = self.log_characteristic(starts, along)
        return np.exp(np.minimum(logs.real + errors, 0.0))


MIN_REDUCED_TURNS, MAX_REDUCED_TURNS = 1e3, 2.0**26
TURN = math.ldexp(math.floor(math.ldexp(2 * math.pi, 24)), -24)
TURN_REST = 2 * math.pi - TURN + 2.4492935982947064e-16
"""2π less ``TURN``; a double of 2π lacks the last term."""


@dataclass(frozen=True, slots=True, eq=False)
class FiniteLineDistribution(LineDistribution):
    """A finite distribution: tilted masses, which sum to one, at the centered losses."""

    cumulant: float
    error: float
    mean: float
    losses: Floats
    masses: Floats
    variance: float
    mass_error: float
    """Relative error of the masses."""
    slack: float
    """Expected rounding error of the losses, if given for each loss."""
    c: float

    @classmethod
    def from_law(cls, law: Atoms, c: float) -> FiniteLineDistribution:
        """Compute K(c) = log(1 − δ_∞ + Σ p (e^{cl} − 1)), with the largest exponent factored out if that overflows."""
        exponent = c * law.losses
        top = float(np.max(exponent)) if len(exponent) else 0.0
        weights = law.masses * np.exp(exponent - top)
        total = float(np.sum(weights))
        if abs(top) < MAX_DIRECT_EXPONENT:
            growth = np.expm1(exponent)
            excess = float(np.dot(law.masses, growth)) - law.infinite_mass
            size = float(np.dot(law.masses, np.abs(growth))) + law.infinite_mass
            error = (ROUND_OFF * (len(growth) + 8) + law.relative_mass_error) * size / max(1 + excess, ROUND_OFF)
            cumulant = math.log1p(max(excess, -1 + ROUND_OFF))
            error += ROUND_OFF * 4 * abs(cumulant)
        else:
            cumulant = math.log(total) + top
            error = ROUND_OFF * 4 * (abs(cumulant) + (abs(top) + len(weights)))
        tilted = weights / total
        mean = float(np.dot(tilted, law.losses))
        centered = law.losses - mean
        variance = float(np.dot(tilted, centered**2)) * (1 + 1e-9)
        slack = 0.0 if law.rounding_error_bounds is None else float(np.dot(tilted, law.rounding_error_bounds))
        error += abs(c) * slack * (1 + 1e-9)
        return cls(
            cumulant, error, mean, centered, tilted, variance, law.relative_mass_error + 4 * ROUND_OFF, slack, abs(c)
        )

    def log_characteristic(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        rows = max(1, NODES_CHUNK // len(self.losses))
        inner = _rotation_minus_one(np.multiply.outer(along, self.losses)).T
        parts = [self._characteristic_minus_one(starts[i : i + rows], inner) for i in range(0, len(starts), rows)]
        excess = np.concatenate(parts)
        y = starts[:, None] + along
        logs = log1p(excess)
        size = np.abs(y) * float(np.dot(self.masses, np.abs(self.losses)))
        error = (
            self.slack * (np.abs(y) + 2 * self.c) * (1 + 1e-6)
            + ROUND_OFF * size
            + (ROUND_OFF * (len(self.losses) + 16) + self.mass_error) * np.minimum(size, 2.0)
        )
        log_error = error / np.maximum(np.abs(1 + excess), SMALLEST_MODULUS)
        log_error = log_error + 4 * ROUND_OFF * (np.abs(logs) + np.abs(self.mean * y))
        return logs + 1j * self.mean * y, log_error

    def _characteristic_minus_one(self, starts: Floats, inner: Complexes) -> Complexes:
        """Return φ − 1 = Σ w (e^{iyl} − 1) from e^{i(y+h)l} − 1 = (e^{iyl} − 1) + e^{iyl} (e^{ihl} − 1)."""
        outer = _rotation_minus_one(np.multiply.outer(starts, self.losses))
        return np.asarray((outer @ self.masses)[:, None] + ((outer + 1) * self.masses) @ inner)


def _rotation_minus_one(angle: Floats) -> Complexes:
    """Return e^{ia} − 1 = −2 sin²(a/2) + i sin a.

    Large angles are reduced first, since their sines take ten times as long: k · 2π is exact except for its last bits,
    as k has 26 bits and the upper part of 2π 27.
    """
    turns = np.rint(angle / (2 * math.pi))
    if MIN_REDUCED_TURNS < float(np.max(np.abs(turns), initial=0.0)) < MAX_REDUCED_TURNS:
        angle = (angle - turns * TURN) - turns * TURN_REST
    result = np.empty(angle.shape, dtype=np.complex128)
    sine, cosine = np.sin(angle / 2), np.cos(angle / 2)
    result.real = -2 * sine * sine
    result.imag = 2 * sine * cosine
    return result


@dataclass(frozen=True, slots=True, eq=False)
class MomentLineDistribution(LineDistribution):
    """A distribution with a formula for K."""

    law: LossDistribution
    c: float
    cumulant: float
    error: float
    variance: float

    @classmethod
    def from_law(cls, law: LossDistribution, c: float) -> MomentLineDistribution:
        """Return the distribution on the line; raises ``PrecisionError`` if K is unknown.

        (L − m)² ≤ 2 (cosh s(L − m) − 1)/s², and E cosh s(L − m) = e^{(K(c+s) + K(c−s))/2 − K(c)} for the best m.
        """
        (cumulant,), (error,) = _log_moment_values(law, np.array([complex(c)]))
        s = min(abs(c), abs(1 + c)) / 2
        for _ in range(MAX_STEP_HALVINGS):
            try:
                moments, errors = _log_moment_values(law, np.array([c + s + 0j, c - s + 0j]))
            except PrecisionError:
                moments, errors = np.full(2, np.inf + 0j), np.zeros(2)
            bend = float(np.sum(moments.real + errors)) / 2 - float(cumulant.real)
            if bend < 1:
                variance = 2 * math.expm1(max(bend, 0.0) + MOMENT_ROUNDING) / s**2
                return cls(law, c, float(cumulant.real), float(error), variance)
            s /= 2
        raise PrecisionError(f"the losses of {law!r} tilted by c={c:.3g} have no variance")

    def log_characteristic(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        z = np.asarray(self.c + 1j * (starts[:, None] + along), dtype=np.complex128)
        moments, errors = _log_moment_values(self.law, z.ravel())
        return (moments - self.cumulant).reshape(z.shape), (errors + self.error).reshape(z.shape)


def _log_moment_values(law: LossDistribution, z: Complexes) -> tuple[Complexes, Floats]:
    enclosure = law.enclose_cumulant(z)
    if enclosure is None:
        raise PrecisionError(f"{law!r} has no moment function")
    return enclosure


def uniform_slack(law: LossDistribution) -> float:
    """Return a bound on the error of every loss, beyond the part that ``distribution_on_line`` accounts for."""
    return 0.0 if isinstance(law, Atoms) and law.rounding_error_bounds is not None else law.rounding_error_bound


def distribution_on_line(law: LossDistribution, c: float) -> LineDistribution:
    """Return the distribution on the line through c."""
    return (
        FiniteLineDistribution.from_law(law, c) if isinstance(law, Atoms) else MomentLineDistribution.from_law(law, c)
    )


# The parts of a line on which the moment of many losses is not negligible.
#
# |φ| of one loss exceeds the larger of its values at two points d apart by at most d² E(L − m)²/8 between them, for
# any m (``docs/proofs/sampled-gaussian.md``). Intervals whose product of bounds is not negligible are halved.

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
LOG_NEGLIGIBLE = -40.0
"""Log of the largest negligible modulus, relative to M(c)."""
MAX_INTERVALS = 1 << 17
"""Largest number of intervals examined at one width."""
LONG_ROW = 64
"""Equidistant nodes of a row."""
WIDEST_INTERVAL = 2.0
"""Intervals are no wider than this over the largest deviation at first."""


class CostLimitError(PrecisionError):
    """An affordable number is exceeded at least by the factor ``ratio``."""

    def __init__(self, found: int, most: int, what: str) -> None:
        super().__init__(f"there are {found} {what}, more than {most}")
        self.ratio = found / max(most, 1)


def live_intervals(
    laws: Sequence[LineDistribution], counts: Sequence[int], row: float, rows: int, most: int = MAX_INTERVALS
) -> Indices:
    """Return the intervals, of ``rows`` of width ``row`` from 0 on, in which |M| may exceed e^``LOG_NEGLIGIBLE`` M(c),
    ascending. At most ``most`` are examined at each width.
    """
    # Number of times a row is doubled for the widest intervals.
    variance = max(law.variance for law in laws)
    widest = min(WIDEST_INTERVAL / variance**0.5 / row, rows) if variance > 0 else rows
    doublings = max(0, min(int(np.log2(max(widest, 1.0))), int(np.log2(rows))))
    wide = 1 << doublings
    if -(-rows // wide) > most:
        raise CostLimitError(-(-rows // wide), most, "intervals of a line to look at")
    first = np.arange(0, rows, wide)
    if len(first) == rows:
        return first
    # |φ| of each distribution at multiples of the width.
    width = row * wide
    count = len(first) + 1
    starts = np.asarray(LONG_ROW * width * np.arange(-(-count // LONG_ROW)), dtype=np.float64)
    along = np.asarray(width * np.arange(LONG_ROW), dtype=np.float64)
    edges = np.stack([law.modulus_upper_bounds(starts, along).ravel()[:count] for law in laws])
    left, right = edges[:, :-1], edges[:, 1:]
    while True:
        # Log of a bound on |M|/M(c) on each interval.
        ends = np.maximum(left, right)
        bounds_width = row * wide
        bent = np.array([bounds_width**2 * law.variance / 8 for law in laws])[:, None]
        live = np.asarray(np.array(counts, dtype=np.float64) @ np.log(np.minimum(ends + bent, 1.0))) > LOG_NEGLIGIBLE
        first, left, right = first[live], left[:, live], right[:, live]
        if wide == 1 or not len(first):
            return first[first < rows]
        wide //= 2
        y = np.asarray(row * (first + wide), dtype=np.float64)
        middle = np.stack([law.modulus_upper_bounds(y, np.zeros(1))[:, 0] for law in laws])
        first = np.stack([first, first + wide], axis=1).ravel()
        left = np.stack([left, middle], axis=2).reshape(len(laws), -1)
        right = np.stack([middle, right], axis=2).reshape(len(laws), -1)
        if len(first) > most:
            raise CostLimitError(len(first), most, "intervals of a line alive")


Pair = tuple[float, float]
ROW_LENGTH = 16
"""Nodes of a row."""
NODE_RANGE = 5.0
"""Nodes go as far as this over μ."""
ROWS_CHUNK = 1 << 12
"""Rows at once."""


@dataclass(frozen=True, slots=True, eq=False)
class LineComponent:
    """Distributions on the line, the number of copies of each, and the log of a factor."""

    laws: Sequence[LineDistribution]
    counts: Sequence[int]
    log_factor: float

    def product_at(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        """Return the product, and a bound on its error."""
        total = np.full((len(starts), len(along)), self.log_factor, dtype=np.complex128)
        error = np.zeros(total.shape)
        for law, count in zip(self.laws, self.counts, strict=True):
            logs, log_error = law.log_characteristic(starts, along)
            total, error = total + count * logs, error + count * log_error
        product = np.exp(total)
        error = error + ROUND_OFF * (4 + 2 * len(self.laws)) * (1 + np.abs(total))
        return product, np.abs(product) * np.expm1(np.minimum(error, 600.0))


@dataclass(frozen=True, slots=True, eq=False)
class SmoothLine:
    """Terms of both sums at the nodes of all live rows; their errors at ε = 0, and the increase a nat; bounds on the
    omitted terms.
    """

    step: float
    starts: Floats
    terms: tuple[Complexes, Complexes]
    off: Pair
    more: Pair
    missing: Pair

    def sums_at(self, epsilon: float) -> tuple[Pair, Pair]:
        """Return value and gain at ε, each with its error."""
        along = np.exp(-1j * epsilon * self.step * np.arange(ROW_LENGTH))
        across = np.exp(-1j * epsilon * self.starts)
        sums = (float(np.sum(((terms @ along) * across).real)) for terms in self.terms)
        errors = (a + b * abs(epsilon) + m for a, b, m in zip(self.off, self.more, self.missing, strict=True))
        return next(zip(sums, errors, strict=False)), next(zip(sums, errors, strict=False))


def smooth_line(
    c: float, parts: tuple[LineComponent, LineComponent | None], step: float, smooth: float, most: int
) -> SmoothLine:
    """The line through c: of the first part less the second, on nodes of this step, smoothed by ``smooth`` = μ."""
    all_losses, only_atoms = parts
    rows = math.ceil(NODE_RANGE / smooth / (step * ROW_LENGTH))
    max_intervals = min(MAX_INTERVALS, most // 4)
    live = live_intervals(all_losses.laws, all_losses.counts, step * ROW_LENGTH, rows, max_intervals)
    if only_atoms is not None:
        live = np.union1d(
            live, live_intervals(only_atoms.laws, only_atoms.counts, step * ROW_LENGTH, rows, max_intervals)
        )
    if len(live) * ROW_LENGTH > most:
        raise CostLimitError(len(live) * ROW_LENGTH, most, f"nodes of the line at c={c:.3g} alive")
    starts = step * ROW_LENGTH * live.astype(np.float64)
    along = np.asarray(step * np.arange(ROW_LENGTH), dtype=np.float64)
    row_blocks = [starts[i : i + ROWS_CHUNK] for i in range(0, len(starts), ROWS_CHUNK)]
    blocks = [_sum_terms(c, parts, row_block, along, smooth) for row_block in row_blocks]
    values, gains, errors, errors_per_nat = zip(*blocks, strict=True)
    # Bound on the omitted nodes: |M| is at most M(c) beyond all rows, and negligible in between.
    skipped = rows > len(live)
    normal_factor = math.exp(smooth**2 * (c + c * c) / 2)
    end = step * ROW_LENGTH * rows
    tail = math.exp(-((smooth * end) ** 2) / 2) / math.pi * (1 / (smooth**2 * end) + step)
    negligible = math.exp(LOG_NEGLIGIBLE) * skipped / math.pi
    first = step * ROW_LENGTH
    value = tail / end**2 + negligible * (1 + step / first) / first
    gain = smooth**2 * math.exp(smooth**2 / 8) * (tail + negligible * (math.sqrt(math.pi / 2) / smooth + step))
    return SmoothLine(
        step,
        starts,
        (np.concatenate(values), np.concatenate(gains)),
        _both_sums(errors),
        _both_sums(errors_per_nat),
        (2 * normal_factor * value, 2 * normal_factor * gain),
    )


def _both_sums(pairs: Sequence[Pair]) -> Pair:
    return math.fsum(first for first, _ in pairs), math.fsum(second for _, second in pairs)


def _sum_terms(
    c: float, parts: tuple[LineComponent, LineComponent | None], starts: Floats, along: Floats, smooth: float
) -> tuple[Complexes, Complexes, Pair, Pair]:
    """Return terms of both sums, and their errors."""
    all_losses, only_atoms = parts
    difference, error = all_losses.product_at(starts, along)
    if only_atoms is not None:
        atom_product, atom_error = only_atoms.product_at(starts, along)
        difference, error = difference - atom_product, error + atom_error + ROUND_OFF * np.abs(atom_product)
    y = starts[:, None] + along
    z = c + 1j * y
    factor = np.exp(smooth**2 * (z + z * z) / 2) * ((along[1] - along[0]) / math.pi * np.where(y == 0, 0.5, 1.0))
    gains = difference * factor * (smooth**2 * math.exp(smooth**2 / 8))
    values = difference * factor / (z * (z + 1)) * math.copysign(1.0, c)
    sizes = np.abs(factor) / np.abs(z * (z + 1)), np.abs(factor) * (smooth**2 * math.exp(smooth**2 / 8))
    roundings = error + np.abs(difference) * ROUND_OFF * (80 + 2 * ROW_LENGTH)
    phase_error = ROUND_OFF * 3 * np.abs(y) * np.abs(difference)
    errors = float(np.vdot(sizes[0], roundings)), float(np.vdot(sizes[1], roundings))
    errors_per_nat = float(np.vdot(sizes[0], phase_error)), float(np.vdot(sizes[1], phase_error))
    return values, gains, errors, errors_per_nat
