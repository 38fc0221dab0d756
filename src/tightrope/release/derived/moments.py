"""Noisy moments of a group and what they leave likely: means, variances, covariances of centred values.

``docs/proofs/intervals.md`` has the derivation: at the true parameters a sum of moments is zero, so that its noisy
value is noise alone, and all parameters for which it is no larger than noise is are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tightrope.engines.request import FixedPoint, FixedProduct
from tightrope.release.derived.joint import Joint
from tightrope.release.derived.spans import Span, around
from tightrope.release.questions.node import Integers, Noises
from tightrope.release.questions.vector import Noise
from tightrope.release.questions.widths.intervals import OUTSIDE

USABLE, X, Y, XX, YY, XY = "usable", "x", "y", "xx", "yy", "xy"
NUISANCE = 1e-3
"""How often a number that is not asked for, and that the interval needs, may lie outside its own."""
RAREST, FINENESS = -9.0, 0.05
"""Powers of ten: rarer is not told apart, and how finely a chance is found."""
NARROWINGS = 3
"""How often a range narrows the weights of the noise, and these the range."""

Weights = Mapping[str, Span | float]
"""What each noise is multiplied with, at least and at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The noisy moments of a group in natural units, centred: ``sums`` by name, and how many rows have all values."""

    noises: Noises
    sums: Mapping[str, float]
    usable: int

    @classmethod
    def of(cls, integers: Integers, noises: Noises) -> Sample:
        """From noisy integers; the sums of squares with what each was less."""
        usable = integers[USABLE]
        sums = {
            name: integers[name] * noises[name].step + usable * lessened(noises[name])
            for name in noises
            if name != USABLE
        }
        return cls(noises, sums, usable)

    def reach(self, name: str) -> float:
        """How far a centred value lies from zero at most."""
        return abs(self.noises[name].vector.sensitivity) * self.noises[name].step

    def width(self, weights: Weights, outside: float) -> float:
        """How far the weighted noises reach, and what rounding to grids adds: at most a step a row and a sum.

        Raises the number of rows by what its noise hides but ``NUISANCE`` of the time.
        """
        heavy = {name: weights[name] for name in self.noises if name in weights}
        reaches = {name: _reach(weight) * self.noises[name].step for name, weight in heavy.items()}
        noise = _joint(tuple(self.noises[name] for name in reaches)).width(tuple(reaches.values()), outside)
        rows = self.usable + _hidden(self.noises[USABLE])
        return noise + rows * math.fsum(reach for name, reach in reaches.items() if name != USABLE)

    def mean(self, name: str) -> Mean:
        """The mean, at most ``NUISANCE`` of the time elsewhere."""
        reach = self.reach(name)
        found, seen = Span(-reach, reach), self.sums[name] / self.usable
        for _ in range(NARROWINGS):
            off = self.width({name: 1.0, USABLE: found}, NUISANCE) / self.usable
            found = around(seen, off).within(found)
        return Mean(seen, off, found)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean as it is seen, how far it may be off, and where it may be."""

    seen: float
    off: float
    span: Span


def variance_seen(sample: Sample, name: str) -> float:
    """N v̂ = Sxx − Sx²/N."""
    return sample.sums[name * 2] - sample.sums[name] ** 2 / sample.usable


def covariance_seen(sample: Sample) -> float:
    """N ĉ = Sxy − Sx Sy/N."""
    return sample.sums[XY] - sample.sums[X] * sample.sums[Y] / sample.usable


def variance_span(sample: Sample, name: str, mean: Mean, outside: float) -> Span:
    """Where the variance is, from Sxx − 2m Sx + m² N − v N, which is noise: Xxx − 2m Xx + (m² + q − v) Y."""
    found, seen = Span(0.0, sample.reach(name) ** 2), variance_seen(sample, name)
    for _ in range(NARROWINGS):
        count = mean.span.square() + lessened(sample.noises[name * 2]) - found
        width = sample.width({name * 2: 1.0, name: mean.span * 2, USABLE: count}, outside)
        low, high = (seen - width) / sample.usable, (seen + width) / sample.usable + mean.off**2
        found = Span(low, high).within(found)
    return found


def covariance_span(sample: Sample, means: tuple[Mean, Mean], outside: float) -> Span:
    """Where the covariance is, from Sxy − m Sy − k Sx + m k N − c N, noise: Xxy − m Xy − k Xx + (m k − c) Y."""
    most, seen = sample.reach(X) * sample.reach(Y), covariance_seen(sample)
    found = Span(-most, most)
    for _ in range(NARROWINGS):
        width = sample.width(covariance_noise(means, found), outside)
        off = width / sample.usable + means[0].off * means[1].off
        found = around(seen / sample.usable, off).within(found)
    return found


def hidden(sample: Sample, name: str, needed: float) -> float:
    """How often, at most, noise leaves less than ``needed`` of n times the variance to be seen; typical moments."""
    left = variance_seen(sample, name) - needed
    if not left > 0:
        return 1.0
    mean = sample.mean(name).span
    weights: Weights = {name * 2: 1.0, name: mean * 2, USABLE: mean.square() + lessened(sample.noises[name * 2])}
    often, seldom = 0.0, RAREST  # powers of ten
    if sample.width(weights, math.pow(10, seldom)) <= left:
        return math.pow(10, seldom) / 2
    while often - seldom > FINENESS:
        middle = (often + seldom) / 2
        often, seldom = (middle, seldom) if sample.width(weights, math.pow(10, middle)) <= left else (often, middle)
    return math.pow(10, often) / 2


def covariance_noise(means: tuple[Mean, Mean], covariance: Span | float) -> Weights:
    """The weights of the noise in n times the covariance."""
    x, y = (mean.span for mean in means)
    return {XY: 1.0, Y: x, X: y, USABLE: x * y - covariance}


def lessened(noise: Noise) -> float:
    """What each row's square was less, so that it costs half."""
    fixed = noise.vector.measure.fixed_point
    return fixed.centre * noise.step if isinstance(fixed, FixedPoint | FixedProduct) else 0.0


def main(nuisances: int) -> float:
    """What is left of the 5 % for the parameter itself, beside so many nuisances and the number of rows."""
    return OUTSIDE - NUISANCE * (nuisances + 1)


def _reach(weight: Span | float) -> float:
    return weight.reach if isinstance(weight, Span) else abs(weight)


@lru_cache(maxsize=256)
def _joint(noises: tuple[Noise, ...]) -> Joint:
    """Once for all groups."""
    return Joint(tuple(noise.tails for noise in noises))


@lru_cache(maxsize=64)
def _hidden(noise: Noise) -> float:
    return noise.half_width(1 - NUISANCE)
