"""A few Laplace-type losses, summed exactly: only positive terms (``docs/proofs/laplace-sum.md``)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.closer import closer
from tightrope.privacy.engines.engine import Engine
from tightrope.privacy.engines.saddle import Guess, guess
from tightrope.privacy.engines.sums import many_scales, one_scale
from tightrope.privacy.engines.sums.many_scales import ManyScales
from tightrope.privacy.engines.sums.one_scale import OneScale
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.flat import Flat
from tightrope.privacy.laws.interval import Interval, outward

TINY_SUM = 1e-290
MOST_SUMS_KEPT = 32


class PositiveSum(Protocol):
    """A sum of flat losses: ``at`` gives δ₀ as the log of a factor, what it multiplies, and the relative error."""

    @property
    def unit(self) -> float:
        """Nats of one place."""

    @property
    def fineness(self) -> float:
        """Places are multiples of one over this."""

    @property
    def slack(self) -> float:
        """Nats by which the sum may have been moved."""

    def at(self, theta: float) -> tuple[float, float, float]: ...


@dataclass(frozen=True, slots=True, eq=False)
class FlatSum(Engine):
    """Copies of flat laws; ``instead`` where double precision does not reach."""

    flats: tuple[Flat, ...]
    sum: PositiveSum
    total: Composition
    instead: Engine
    seen: dict[float, Interval] = field(default_factory=dict)
    """Values and errors by place."""
    name = "exact sum"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest + self._slack(epsilon):
            return self.total.infinite_bounds
        try:
            low, under = self._at(-self._below(-epsilon - self._slack(epsilon)))
        except PrecisionError:
            return self.instead.delta(epsilon)
        low, under = low * (1 - self.total.inexact), under + self._infinite_error
        return outward(self.total.infinite_mass + low, under)[0], self.upper(epsilon)

    def upper(self, epsilon: float) -> float:
        if epsilon >= self.total.largest + self._slack(epsilon):
            return self.total.infinite_bounds[1]
        try:
            high, over = self._at(self._below(epsilon - self._slack(epsilon)))
        except PrecisionError:
            return self.instead.upper(epsilon)
        high, over = high * (1 + self.total.inexact), over + self._infinite_error
        return outward(self.total.infinite_mass + high, over)[1]

    def _slack(self, epsilon: float) -> float:
        return self.total.slack + self.sum.slack + 4 * ROUND_OFF * abs(epsilon)

    def _below(self, epsilon: float) -> float:
        """The nearest place that is certainly no larger, the quotient having been rounded."""
        theta, fineness = epsilon / self.sum.unit, self.sum.fineness
        return math.floor((theta - 2 * ROUND_OFF * abs(theta)) * fineness) / fineness

    @property
    def _infinite_error(self) -> float:
        """Of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _at(self, theta: float) -> Interval:
        """δ₀ at a place and its error."""
        if theta not in self.seen:
            if len(self.seen) >= MOST_SUMS_KEPT:
                self.seen.clear()
            log_scale, value, error = self.sum.at(theta)
            if not log_scale < 600 or not value > TINY_SUM:
                at = theta * self.sum.unit
                raise PrecisionError(f"the sum of {sum(self.total.counts)} losses leaves double precision at {at!r}")
            found = math.exp(log_scale) * value
            self.seen[theta] = found, found * error
        return self.seen[theta]

    def guess(self, target: float) -> Guess | None:
        """From the saddle point, or the largest atom, and then by parabolas through what was found."""
        rest = target - self.total.infinite_mass
        rough = (guess(self._cumulant, math.log(rest)) or self._last(rest)) if rest > 0 else None
        return rough and closer(self.upper, rough, target, self.total.largest)

    def _last(self, rest: float) -> Guess | None:
        """Just below the largest loss only its atom a counts: δ = a (1 − e^{ε − l})."""
        pairs = zip(self.flats, self.total.counts, strict=True)
        atom = math.exp(
            math.fsum(n * (math.log(f.atom) + f.epsilon / 2) if f.atom > 0 else -math.inf for f, n in pairs)
        )
        if not rest < atom:
            return None
        return Guess(self.total.largest + math.log1p(-rest / atom), atom / rest)

    def _cumulant(self, c: Floats) -> Floats:
        """K on the real axis: log of m(c + ½)^k with m(w) = 2a cosh wε + b sinh(wε)/wε."""
        found = np.zeros_like(c)
        for flat, count in zip(self.flats, self.total.counts, strict=True):
            w = (c + 0.5) * flat.epsilon
            down = np.exp(-2 * w)
            found += count * (w + np.log(flat.atom * (1 + down) + flat.spread * (1 - down) / (2 * w)))
        return found


def flat_sum(total: Composition, instead: Engine) -> FlatSum | None:
    """The exact sum, where every law is flat and there are not too many."""
    flats = tuple(law.flat for law in total.laws if law.flat is not None)
    if not flats or len(flats) < len(total.laws):
        return None
    if len(flats) == 1:
        fits = one_scale.fits(flats[0], total.counts[0])
        return FlatSum(flats, OneScale(flats[0], total.counts[0]), total, instead) if fits else None
    fits = many_scales.fit(flats, total.counts)
    return FlatSum(flats, ManyScales(flats, total.counts), total, instead) if fits else None
