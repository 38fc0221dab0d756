"""Methods for atoms on one lattice: sums of discrete Gaussians, the recurrence of a triple, the tilted transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
import scipy
from scipy.special import logsumexp

from tightrope.accounting.bounds import Interval, join_bounds, probability_error_bounds
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import GaussianForm, mirror_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution, mills_ratio
from tightrope.accounting.methods.lattice import MAX_POINTS, TINY_MASS, Lattice, LatticePart
from tightrope.accounting.methods.method import EpsilonGuess, Method, approximate_epsilon_at
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

# Copies of one discrete Gaussian: σ and d are its scale and its shift, k the number of copies. Their loss depends on
# the sum of the outputs alone, and at every integer n the sum has the density of N(0, kσ²), up to a factor that is 1
# for σ ≥ 10. So δ is the sum over n > τ of h(n) = f(n) (1 − e^{−(d/σ²)(n − τ)}), with f this density and
# τ = εσ²/d − kd/2: a sum of positive terms, or the integral (δ of the Gaussian) with the Euler–Maclaurin correction
# (``docs/proofs/gaussian-sum.md``).

MIN_SUM_SCALE = 10.0
"""For smaller scales the lattice of the exact weights is as fast."""
MAX_ROUNDED_PART = 1e-9
"""Largest effect of the rounded weights, relative to δ; otherwise the lattice of the exact weights is used, too."""
MAX_SUM_TERMS = 1 << 21
SUMMED_NATS = 60.0
"""Terms are added until the density has fallen by this many nats."""
MAX_STEP_RATIO = 0.25
"""The correction is used if the log of the density changes by less than this between neighboring integers."""
MAX_CORRECTION_ERROR = 1e-13
"""Largest error of the correction, relative to delta."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianSumMethod(Method):
    """``count`` copies of a discrete Gaussian; ``fallback`` returns the method of the exact weights."""

    form: GaussianForm
    count: int
    fallback: Callable[[], Method]
    name = "exact sum"

    def delta(self, epsilon: float) -> Interval:
        if epsilon < 0:
            reverse = [np.array([end]) for end in self.delta(-epsilon)]
            mirrored = mirror_bounds(np.array([epsilon]), (reverse[0], reverse[1]))
            return float(mirrored[0][0]), float(mirrored[1][0])
        low, high = self._unrounded_delta(epsilon)
        # A set gains at most k times the distance in probability under P, and loses no more under Q.
        error = 1.001 * self.count * self.form.distance * (1 + math.exp(min(epsilon, 700.0)))
        least, most = join_bounds(low, high, error)
        if not error <= MAX_ROUNDED_PART * low:
            low, high = self.fallback().delta(epsilon)
            least, most = max(least, low), min(most, high)
        return least, most

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        square = self._mu**2
        if not target > 0:
            return None
        return approximate_epsilon_at(lambda c: square * (c + c * c) / 2, math.log(target))

    @property
    def _mu(self) -> float:
        """The distance of the two sums in standard deviations."""
        return math.sqrt(self.count) * self.form.shift / self.form.scale

    def _unrounded_delta(self, epsilon: float) -> Interval:
        """Return bounds on δ of copies of the discrete Gaussian itself, for ε ≥ 0; (0, 1) if they take too long."""
        variance = Fraction(self.form.scale) ** 2
        threshold = Fraction(epsilon) * variance / self.form.shift - Fraction(self.count * self.form.shift, 2)
        first = math.ceil(threshold)
        corrected = self._corrected_integral(epsilon, float(threshold), float(first - threshold))
        return corrected or self._sum_of_terms(first, float(first - threshold), variance) or (0.0, 1.0)

    def _corrected_integral(self, epsilon: float, threshold: float, gap: float) -> Interval | None:
        """Return bounds by the Euler–Maclaurin formula of order six at τ; None if its error is too large.

        ``gap`` is the distance of the first integer from the threshold τ.
        """
        mu, deviation = self._mu, self.form.scale * math.sqrt(self.count)
        a = threshold / deviation
        largest = max(a, 0.0) + mu + 2
        if not largest <= MAX_STEP_RATIO * deviation:
            return None
        low, high = (float(end[0]) for end in GaussianLossDistribution(mu).compute_deltas((np.array([epsilon]),) * 2))
        density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        correction = mu * density * _euler_maclaurin_terms(a, mu, gap, deviation)
        # The remainder, |B_6|/6! times the integral of the sixth derivative, and the rounding of the correction.
        moment = largest**6 + 3 * largest**4 + 9 * largest**2 + 15
        integral = moment * (high if a >= 0 else min(1.0, mu * (mu + 2)))
        integral += 6 * mu * density * float(mills_ratio(np.array(a + mu))) * moment ** (5 / 6)
        error = 1.001 * integral / (30240 * deviation**6)
        error += 0.2 * mu * density * (256 + 4 * a * a) * ROUND_OFF / deviation**2
        if not error <= MAX_CORRECTION_ERROR * low:
            return None
        return join_bounds(low + correction, high + correction, error)

    def _sum_of_terms(self, first: int, gap: float, variance: Fraction) -> Interval | None:
        """Return bounds from the sum of h(n) over n ≥ ``first``; None if there are too many terms."""
        square = float(self.count * variance)
        deviation = math.sqrt(square)
        start = max(first, -math.ceil(40 * deviation))  # smaller n have less than e^{-800} of the mass
        reach = math.sqrt(2 * SUMMED_NATS) * deviation
        terms = math.ceil(math.hypot(first, reach)) - first if first >= 0 else math.ceil(reach) - start
        if not terms + 3 <= MAX_SUM_TERMS:
            return None
        steps = np.arange(terms + 3, dtype=np.float64)
        peak = max(first, 0)
        # n^2 - peak^2 for n = start + step
        squares = steps * (2.0 * first + steps) if first >= 0 else (start + steps) ** 2
        exponents = squares / (2 * square)
        distances = (start - first) + gap + steps
        summands = np.exp(-exponents) * -np.expm1(-float(self.form.shift / variance) * distances)
        total = float(np.sum(summands))
        last = start + terms + 2
        rest = math.exp(-exponents[-1]) / -math.expm1(-last / square)
        log_peak = float(Fraction(peak) ** 2 / (2 * self.count * variance))
        scale = math.exp(-log_peak) / (deviation * math.sqrt(2 * math.pi))
        rounding = ROUND_OFF * (80 + 2 * log_peak) * total + 4 * ROUND_OFF * float(np.dot(summands, exponents))
        return join_bounds(scale * total, scale * total, scale * (rounding + rest) + TINY_MASS)


def _euler_maclaurin_terms(a: float, mu: float, gap: float, deviation: float) -> float:
    """Return the correction divided by μ φ(a): −Σ_j B_j(gap)/j! H^{(j−1)}(a) / deviation^j for j = 2..6.

    H^{(m)}(a) = (−1)^m φ(a) (He_m(a) − He_m(a + μ)), by Taylor's formula −(−1)^m φ(a) Σ_i C(m, i) μ^i He_{m−i}(a).
    """
    hermite = [1.0, a, a * a - 1, a * (a * a - 3), (a * a - 6) * a * a + 3]
    t = gap * (1 - gap)
    bernoulli = {
        2: 1 / 6 - t,
        3: t * (0.5 - gap),
        4: t * t - 1 / 30,
        5: -t * (0.5 - gap) * (t + 1 / 3),
        6: 1 / 42 - t * t / 2 - t**3,
    }
    total = 0.0
    for j, value in bernoulli.items():
        m = j - 1
        difference = sum(math.comb(m, i) * mu ** (i - 1) * hermite[m - i] for i in range(1, m + 1))
        total += value / math.factorial(j) * (-1) ** m * difference / deviation**j
    return total


def gaussian_sum_method(total: Composition, fallback: Callable[[], Method]) -> GaussianSumMethod | None:
    """Return the sum if every distribution is a discrete Gaussian of the same scale and shift, else None."""
    forms = [law.gaussian_form for law in total.laws]
    first = forms[0]
    if first is None or not first.scale >= MIN_SUM_SCALE:
        return None
    if any(form is None or (form.scale, form.shift) != (first.scale, first.shift) for form in forms):
        return None
    return GaussianSumMethod(first, sum(total.counts), cache(fallback))


# The lattice that contains a set of losses, up to rounding.

SNAP_TOLERANCE = 1e-11
"""Losses this close to a lattice, relative to its step, count as on it; the distance is added to the rounding."""


def common_loss_step(all_losses: Sequence[Floats]) -> float | None:
    """Return the greatest number of which all losses are integer multiples, up to rounding; None if it is too small."""
    losses = np.unique(np.abs(np.concatenate([np.zeros(0), *all_losses])))
    losses = losses[losses > 0]
    if len(losses) == 0:
        return 1.0
    step = float(losses[0])
    for _ in range(64):
        distance = np.abs(losses - np.rint(losses / step) * step)
        largest = float(np.max(distance))
        tolerance = lattice_tolerance(step, losses)
        if largest <= tolerance:
            return step
        step = float(np.min(distance[distance > tolerance]))
        if step < losses[-1] / (1 << 20):
            return None
    return None


def lattice_tolerance(step: float, losses: Floats) -> float:
    """Return the distance that lattice rounding may move a loss; never more than a thousandth of the step."""
    rounding = 1e-15 * float(np.max(np.abs(losses), initial=0.0)) + 1e-16
    return min(max(SNAP_TOLERANCE * step, rounding), 1e-3 * step)


LOG_ROUNDINGS = 6
"""Roundings of a mass's logarithm, each relative to it."""
MIN_GROWTH = 1e-300
"""Smallest growth factor assumed where a recurrence ends."""
MAX_PLAIN_STEP = 600.0
MAX_COPIES = 300_000
"""Copies beyond which a transform is faster."""


@dataclass(frozen=True, slots=True, eq=False)
class ThreePointSum:
    """k-fold sum of {+step: A, 0: α, −step: c} with A = c e^{step}; its total mass, and δ at j·step for j = −k..k."""

    step: float
    count: int
    mass: float
    profile: Floats

    def relative_error(self, delta: Floats) -> Floats:
        """Return the relative error of each δ: from the masses, and from computing them from their logarithms."""
        logs = -np.log(np.maximum(delta, np.finfo(float).tiny))
        return np.asarray((13 * self.count + 64 + LOG_ROUNDINGS * logs) * ROUND_OFF)

    def delta(self, epsilon: Floats) -> Floats:
        """Return δ(ε) at any ε, shape [n]: linear in e^ε between the lattice points."""
        lattice_point = np.clip(np.floor(epsilon / self.step), -self.count, self.count - 1)
        rest = np.minimum(epsilon - lattice_point * self.step, self.step)
        large = self.step > MAX_PLAIN_STEP  # e^step alone may overflow
        weight = np.clip(np.exp(rest - self.step) if large else np.expm1(rest) / math.expm1(self.step), 0.0, 1.0)
        index = lattice_point.astype(np.int64) + self.count
        inside = (1 - weight) * self.profile[index] + weight * self.profile[index + 1]
        below = np.minimum(epsilon + self.count * self.step, 0.0)
        delta = np.exp(below) * inside - self.mass * np.expm1(below)
        return np.where(epsilon < self.count * self.step, delta, 0.0)


@lru_cache(maxsize=64)
def three_point(step: float, masses: tuple[float, float], missing: float, count: int) -> ThreePointSum:
    """Compose ``count`` steps with ``masses`` at +step and 0, and e^{−step} times the first mass at −step (GI Thm 2).

    With A = c e^ε, U_n = [x^{2k−n}] (c + αx + Ax²)^k satisfies A(n+1) U_{n+1} = α(k−n) U_n + c(2k−n+1) U_{n−1}: all
    terms are positive for n < k, so each mass has a relative error of at most 9ku, in the far tail too (theory §2).
    So has the profile: with S_j = P(L > jh), δ_{j−1} = e^{−h} δ_j + (1 − e^{−h}) S_{j−1}. The total mass
    (1 − missing)^count is known exactly, so it fixes the scale.
    """
    from scipy import signal  # slow to load, and used only here

    top, middle = masses
    bottom = top * math.exp(-step)
    # Log U_0..U_k up to a common constant: U_n is the mass at loss (k − n)·step.
    # U spans thousands of orders of magnitude: it is scaled by powers of two that grow as the recurrence would with
    # constant coefficients; this scaling is exact.
    n = np.arange(count, dtype=np.float64)
    last, before = middle * (count - n) / (top * (n + 1)), bottom * (2 * count - n + 1) / (top * (n + 1))
    growth = last / 2 + np.sqrt(last * last / 4 + before)
    powers = np.rint(np.cumsum(np.append(0.0, np.log2(np.maximum(growth, MIN_GROWTH))))).astype(np.int64)
    bands = np.ones((3, count + 1), order="F")
    bands[1, :-1] = -np.ldexp(last, powers[:-1] - powers[1:])
    bands[2, :-2] = -np.ldexp(before[1:], powers[:-2] - powers[2:])
    values = scipy.linalg.blas.dtbsv(2, bands, np.eye(1, count + 1)[0], lower=1, diag=1)
    upper_half_logs = np.log(values, where=values > 0, out=np.full(count + 1, -np.inf))
    positive = np.asarray(upper_half_logs + math.log(2) * (powers - powers.max()))[::-1]
    logs = np.concatenate([positive[:0:-1] - step * np.arange(count, 0, -1), positive])
    log_mass = count * math.log1p(-missing)
    composed = np.exp(logs - float(logsumexp(logs)) + log_mass)
    above = np.cumsum(composed[:0:-1])
    profile, _ = signal.lfilter([-math.expm1(-step)], [1.0, -math.exp(-step)], above, zi=[0.0])
    return ThreePointSum(step, count, math.exp(log_mass), np.append(profile[::-1], 0.0))


Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
NEGLIGIBLE_ATOM = 1e-22
"""Atoms below this mass are ignored in the choice of the lattice."""

MAX_EXACT_INTEGER = 2.0**52
"""Number of lattice points beyond which integers are not exact."""


@dataclass(frozen=True, slots=True)
class RecurrenceMethod(Method):
    """Copies of one three-point distribution, with an infinite mass."""

    law: ThreePointSum
    infinite_mass: float
    slack: float
    inexact: float
    name = "recurrence"

    def delta(self, epsilon: float) -> Interval:
        low, high = self.delta_bounds_at(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def delta_bounds_at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        rest = 1e-15 + self.inexact
        low, high = self.law.delta(epsilons + self.slack), self.law.delta(epsilons - self.slack)
        low = low * (1 - self.law.relative_error(low) - self.inexact) + self.infinite_mass * (1 - rest)
        high = high * (1 + self.law.relative_error(high) + self.inexact) + self.infinite_mass * (1 + rest)
        return np.maximum(low - TINY_MASS, 0.0), np.minimum(high + TINY_MASS * (high > 0), 1.0)


@dataclass(frozen=True, slots=True)
class LatticeMethod(Method):
    """A lattice sum, exact up to rounding of its masses and losses."""

    lattice: Lattice
    slack: float
    inexact: float = 0.0
    """Relative error of the masses, all together."""
    name = "lattice"

    def delta(self, epsilon: float) -> Interval:
        high, error = self.lattice.delta(epsilon - self.slack)
        low, other = self.lattice.delta(epsilon + self.slack) if self.slack else (high, error)
        return join_bounds(low, high, max(error, other) + self.inexact * high)

    def delta_upper_bound(self, epsilon: float) -> float:
        high, error = self.lattice.delta(epsilon - self.slack)
        return probability_error_bounds(high, error + self.inexact * high)[1]

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        return self.lattice.approximate_epsilon_at(target)


@dataclass(frozen=True, slots=True)
class TwoSidedLatticeMethod(Method):
    """One lattice for the upper bound and one for the lower."""

    above: Lattice
    below: Lattice
    slack: float
    inexact: float
    name: str

    def delta(self, epsilon: float) -> Interval:
        low, under = self.below.delta(epsilon + self.slack)
        return probability_error_bounds(low, under + self.inexact * low)[0], self.delta_upper_bound(epsilon)

    def delta_upper_bound(self, epsilon: float) -> float:
        high, over = self.above.delta(epsilon - self.slack)
        return probability_error_bounds(high, over + self.inexact * high)[1]

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        return self.above.approximate_epsilon_at(target)


def lattice_method_if_exact(total: Composition) -> Method | None:
    """Return a recurrence for one triple, a lattice for atoms on a common lattice, else None.

    Atoms of negligible mass off the lattice (rounded tails of integer tables) count as lost in the upper bound and as
    zero in the lower one.
    """
    laws, counts = [law for law in total.laws if isinstance(law, Atoms)], total.counts
    if len(laws) < len(total.laws):
        return None
    step = common_loss_step([law.losses[law.masses > NEGLIGIBLE_ATOM] for law in laws])
    if step is None or not _fits_lattice(laws, counts, step):
        return None
    parts, moves, off_lattice_masses = [], [], []
    for law, n in zip(laws, counts, strict=True):
        nearest = np.rint(law.losses / step)
        distance = np.abs(law.losses - nearest * step)
        on = distance <= lattice_tolerance(step, law.losses)
        parts.append(LatticePart.from_masses(nearest[on].astype(np.int64), law.masses[on], n, law.infinite_mass))
        moves.append(n * float(np.max(distance[on], initial=0.0)))
        off_lattice_masses.append(n * math.fsum(law.masses[~on]))
    slack, off_lattice = total.rounding_error_bound + math.fsum(moves), math.fsum(off_lattice_masses)
    infinite, mass_error = total.infinite_mass, total.relative_mass_error
    if off_lattice > 0:
        above, below = (Lattice(step, tuple(parts), infinite + lost) for lost in (off_lattice, 0.0))
        return TwoSidedLatticeMethod(above, below, slack, mass_error, "lattice")
    # The recurrence, for one symmetric triple on −step, 0, +step.
    masses = {int(j): float(m) for j, m in zip(parts[0].offsets, parts[0].masses, strict=True)}
    if (
        len(parts) == 1
        and parts[0].count <= MAX_COPIES
        and {-1, 1} <= set(masses) <= {-1, 0, 1}
        and math.isclose(masses[-1], masses[1] * math.exp(-step), rel_tol=1e-15)
    ):
        triple = three_point(step, (masses[1], masses.get(0, 0.0)), parts[0].missing, parts[0].count)
        return RecurrenceMethod(triple, infinite, slack, mass_error)
    return LatticeMethod(Lattice(step, tuple(parts), infinite), slack, mass_error)


def _fits_lattice(laws: list[Atoms], counts: tuple[int, ...], step: float) -> bool:
    """Return whether the sum needs few enough lattice points, and its losses are exact as integers."""
    # The extent of the relevant losses of the sum: all of them, or 80 deviations.
    spans = [float(law.losses[-1] - law.losses[0]) if len(law.losses) else 0.0 for law in laws]
    variances = [float(np.dot(law.masses, law.losses**2)) for law in laws]
    deviation = math.sqrt(math.fsum(n * v for n, v in zip(counts, variances, strict=True)))
    extent = min(math.fsum(n * span for n, span in zip(counts, spans, strict=True)), 80 * deviation)
    if not extent <= MAX_POINTS * step:
        return False
    # The largest distance of the sum from 0, including atoms of negligible mass.
    ends = [float(np.max(np.abs(law.losses), initial=0.0)) for law in laws]
    return math.fsum(n * end for n, end in zip(counts, ends, strict=True)) <= MAX_EXACT_INTEGER * step
