"""The contour integral of a composition with far tails split off: paths with one or two losses from them are added.

With each step's distribution split into a body and a far tail, M_i = B_i + T_i, a composition is Σ_j B e_j(T/B),
B = Π B_i and e_j the elementary symmetric sums over steps: one term for each number j of losses from tails. At small
sampling rates δ consists of j = 0 and a little of j = 1 and 2, each with its own saddle; all other paths have mass
t³/3! at most, t the mass of all tails (theory §3.1, ``docs/proofs/contour.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from tightrope.accounting.bounds import Interval
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.contour_line import ContourIntegral, LineIntegral
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

MAX_JUMPS = 2
"""Largest number of jumps (losses from tails) in a path that is integrated."""
CACHED_BLOCKS = 64
"""Blocks of real points whose moments are cached, since bodies and jumps use the same ones."""
MAX_LOG_RATIO = 300.0
"""Cutoff for logs of ratios and errors, beyond which they are useless: products of two stay finite."""
UNKNOWN_LOG = 1e300
"""Logarithm that stands for an unknown upper bound."""
CumulantsByLaw = list[tuple[Complexes, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class BodyMoments:
    """Moments of a trimmed composition, in which every loss comes from a body."""

    total: Composition
    cached: dict[bytes, CumulantsByLaw] = field(default_factory=dict)

    @property
    def rounding_error_bound(self) -> float:
        return self.total.rounding_error_bound

    def cumulants_by_law(self, z: Complexes) -> CumulantsByLaw:
        """Return K of every distribution, and its error."""
        key = z.tobytes()
        if key in self.cached:
            return self.cached[key]
        enclosures = [law.enclose_cumulant(z) for law in self.total.laws]
        cumulants = [enclosure for enclosure in enclosures if enclosure is not None]
        if not np.any(z.imag):
            while len(self.cached) >= CACHED_BLOCKS:
                self.cached.pop(next(iter(self.cached)))
            self.cached[key] = cumulants
        return cumulants

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        return self.sum_steps(self.cumulants_by_law(z))

    def sum_steps(self, cumulants: CumulantsByLaw) -> tuple[Complexes, Floats]:
        """Return the sum over all steps, and its error."""
        value, error = np.zeros_like(cumulants[0][0]), np.zeros_like(cumulants[0][1])
        for (law_value, law_error), count in zip(cumulants, self.total.counts, strict=True):
            value, error = value + count * law_value, error + count * law_error
        return value, error

    def log_decay(self, c: float, y: float) -> float:
        return self.total.log_decay(c, y)


@dataclass(frozen=True, slots=True, eq=False)
class TailJumpMoments:
    """Moments of the paths with one or two losses from tails: K = log B + log(e_1 + e_2)."""

    bodies: BodyMoments

    @property
    def rounding_error_bound(self) -> float:
        return self.bodies.rounding_error_bound

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K and its error, which for log(e_1 + e_2) is relative to the sum that is left after cancellation."""
        cumulants = self.bodies.cumulants_by_law(z)
        total, error = self.bodies.sum_steps(cumulants)
        log_ratios, ratio_errors, counts = self._log_tail_ratios(z, cumulants)
        top = np.max(log_ratios.real, axis=0)
        ratios = np.exp(log_ratios - top)
        sizes = np.abs(ratios)
        single, square, size = counts @ ratios, counts @ ratios**2, counts @ sizes
        single_error = np.sum(sizes * ratio_errors * counts[:, None], axis=0) + 1e-14 * size
        scale = np.exp(np.minimum(top, MAX_LOG_RATIO))
        value = single + scale * (single**2 - square) / 2
        value_error = single_error * (1 + scale * size)
        relative = value_error / np.maximum(np.abs(value), 1e-300)
        unknown = (top >= MAX_LOG_RATIO) | (np.max(ratio_errors, axis=0) >= math.expm1(MAX_LOG_RATIO))
        inaccurate = unknown | (relative >= 0.5)
        bound = np.where(inaccurate, np.abs(value) + value_error + 1e-300, value)
        log = np.log(bound) + np.where(unknown, UNKNOWN_LOG, top)
        return total + log, error + np.where(inaccurate, np.inf, -np.log1p(-np.where(inaccurate, 0.0, relative)))

    def _log_tail_ratios(self, z: Complexes, cumulants: CumulantsByLaw) -> tuple[Complexes, Floats, Floats]:
        """Return log T_i/B_i of the distributions [laws, n], their relative errors, and counts."""
        ratios, errors, counts = [], [], []
        for law, count, body in zip(self.bodies.total.laws, self.bodies.total.counts, cumulants, strict=True):
            tail = law.log_tail_integral(z)
            if tail is not None:
                ratios.append(tail[0] - body[0])
                errors.append(np.expm1(np.minimum(tail[1] + body[1], MAX_LOG_RATIO)))
                counts.append(float(count))
        return np.array(ratios), np.array(errors), np.array(counts)

    def log_decay(self, c: float, y: float) -> float:
        """Return the bodies' decay without up to two bodies replaced by tails, whose moments peak on the real axis."""
        log_decays = [math.log(max(law.moment_decay_bound(c, y), 5e-324)) for law in self.bodies.total.laws]
        return min(0.0, self.bodies.log_decay(c, y) - MAX_JUMPS * min(log_decays))


@dataclass(frozen=True, slots=True, eq=False)
class TailSplit:
    """A composition with tails of some mass split off: its body, and the paths with one or two losses from them."""

    body: ContourIntegral
    jumps: LineIntegral | None
    tail_mass: float
    """A bound on the mass of all tails."""

    @classmethod
    def from_tail_mass(cls, total: Composition, mass: float, near: int | None) -> TailSplit:
        """Return the level with tails of at most this mass; saddles are searched from index ``near``."""
        trimmed = total.trim_tail(mass) if mass > 0 else total
        if all(body is law for body, law in zip(trimmed.laws, total.laws, strict=True)):
            return cls(ContourIntegral.for_source(total, None, near), None, 0.0)
        tail_mass = math.fsum(
            count * (body.infinite_mass - law.infinite_mass)
            for body, law, count in zip(trimmed.laws, total.laws, total.counts, strict=True)
        )
        bodies = BodyMoments(trimmed)
        return cls(
            ContourIntegral.for_source(trimmed, bodies, near),
            LineIntegral.for_source(TailJumpMoments(bodies), near),
            tail_mass * (1 + 1e-9) + 1e-300,
        )

    def delta(self, epsilon: float, aim: float) -> Interval:
        """Return bounds on δ less the infinite mass, for a δ of about e^{aim}."""
        value, error = self.body.lines.integrate_line(epsilon, between_poles=False, aim=aim)
        if self.jumps is not None:
            # Search well below the bodies' saddle: where jumps have a relevant probability, K has not reached its wall.
            self.jumps.right.start_search_at(self.body.lines.right.latest[0] // 2)
            jump_value, jump_error = self.jumps.integrate_line(epsilon, between_poles=False, aim=aim)
            value, error = value + jump_value, error + jump_error
        return value - error, value + error + self.tail_mass ** (MAX_JUMPS + 1) / math.factorial(MAX_JUMPS + 1)


NEGLIGIBLE_PART = 1e-11
"""Fraction of δ that may be omitted."""


def negligible_tail_mass(delta: float) -> float:
    """Return the mass t of tails for which paths with more jumps, t³/3!, are negligible compared with δ.

    It is rounded down to a power of ten, so that levels are reused for other ε.
    """
    mass = float((math.factorial(MAX_JUMPS + 1) * NEGLIGIBLE_PART * delta) ** (1 / (MAX_JUMPS + 1)))
    return float(10.0 ** max(math.floor(math.log10(mass)), -300))


# Losses from tails that outweigh all that the other losses may take away: the sum is above ε on each such path.

FOLDING_ERROR = 1e-14
"""Relative error of the probability of a normal tail, for each nat of its logarithm."""


class FoldedPaths(NamedTuple):
    """The paths with some loss above a top: logs of their probabilities under P and under Q.

    ``log_missed``: log of a bound on the probability under Q of those with a sum below ε.
    """

    log_p: float
    log_q: float
    log_missed: float

    @classmethod
    def from_tails(cls, tails: Sequence[tuple[int, tuple[float, float]]], log_rest: float) -> Self:
        """Return the paths with some loss from these tails: counts, and logs of masses under P and under Q.

        ``log_rest``: log of a bound on the probability, under Q, that all other losses take too much away.
        """
        if not tails:
            return cls(-math.inf, -math.inf, -math.inf)
        log_p, log_q = (_log_any([(count, logs[i]) for count, logs in tails]) for i in (0, 1))
        log_count = float(special.logsumexp([math.log(count) + logs[1] for count, logs in tails]))
        return cls(log_p, log_q, log_count + log_rest + FOLDING_ERROR * (1 + abs(log_count)))

    def delta(self, epsilon: float, sign: int) -> float:
        """Return a bound on what these paths add to δ(ε): a lower one if the sign is negative."""
        if self.log_p == -math.inf:
            return 0.0
        value = -math.expm1(min(epsilon + self.log_q - self.log_p, 0.0)) + sign * FOLDING_ERROR * (1 + abs(self.log_q))
        missed = 1.001 * math.exp(min(epsilon + self.log_missed, 0.0)) if sign > 0 else 0.0
        return max(math.exp(self.log_p) * value, 0.0) + missed


def _log_any(tails: Sequence[tuple[int, float]]) -> float:
    """Return log(1 − Π (1 − p)^count) for pairs of count and log p.

    >>> math.exp(_log_any([(2, math.log(0.5)), (1, math.log(0.2))]))
    0.8
    """
    log_rates = [
        math.log(count) + (log_p if log_p < -40 else math.log(-math.log1p(-min(math.exp(log_p), 1 - ROUND_OFF))))
        for count, log_p in tails
    ]
    log_sum = float(special.logsumexp(log_rates))
    return log_sum if log_sum < -40 else math.log(-math.expm1(-math.exp(log_sum)))
