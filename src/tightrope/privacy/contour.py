"""δ(ε) as a contour integral through the saddle point: full relative accuracy at any δ, cost free of k (theory §3).

δ(ε) = δ_∞ + (1/2πi) ∫ e^{K(z) − zε} / (z(z+1)) dz over Re z = c > 0. The trapezoidal rule with step h aliases by
Σ_{n≠0} e^{2πnc/h} δ₀(ε + 2πn/h), all terms positive; each is bounded by Chernoff at every c', the best of which is
taken, and h shrinks until the bound passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from tightrope.errors import PrecisionError
from tightrope.privacy.composition import Composition
from tightrope.privacy.law import Complexes, Floats

ROUND_OFF = 2.0**-53
TOLERANCE = 1e-14
"""Aliasing and truncation allowed, relative to δ."""
FIRST_BLOCK, LAST_BLOCK = 64, 512
MOST_NODES = 1 << 17
UNDERFLOW = -760.0
"""E to this power is 0 in double precision, with room for rounding."""
NEAR = 1.5 ** -np.arange(2.0, 18.0)
RATIOS = np.sort(np.concatenate([np.exp(np.linspace(-7, 2.5, 20)), 1 + NEAR, 1 - NEAR]))
"""Where the Chernoff bound is tried, as multiples of the saddle: dense around it, because K may rise like a wall."""


@dataclass(frozen=True, slots=True)
class Saddle:
    """The point c, the height K(c) − cε, and Chernoff data on a grid of other real points."""

    c: float
    height: float
    others: Floats
    log_bounds: Floats

    def alias(self, step: float) -> float:
        """Log of a bound on the aliasing, relative to e^{height}: both signs, geometric sums over n ≥ 1."""
        shift = 2 * math.pi / step
        total = -math.inf
        for sign in (1, -1):
            good = (self.others - self.c) * sign > 1e-12
            rate = np.abs(self.others[good] - self.c) * shift
            terms = self.log_bounds[good] - self.height - rate - np.log(-np.expm1(-rate))
            total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
        return total


def applies(total: Composition) -> bool:
    """Whether every moment is known and the integrand dies within the nodes we are ready to pay for."""
    if not total.laws or total.log_moment(np.array([1.0 + 0j])) is None:
        return False
    return total.log_decay(0.01, 3e4) < -34


def delta(total: Composition, epsilon: float) -> tuple[float, float]:
    """δ(ε) and a bound on its absolute error."""
    infinite = total.infinite_mass
    if epsilon >= total.largest:
        return infinite, 4 * ROUND_OFF * infinite
    if _vanishes(total, epsilon):
        return infinite, math.ulp(0.0) + 4 * ROUND_OFF * infinite
    saddle = _saddle(total, epsilon)
    step, alias = _step(saddle)
    mean, size, rest = _integral(total, epsilon, saddle, step)
    scale = math.exp(saddle.height)
    cumulant = abs(saddle.height) + abs(saddle.c * epsilon)
    rounding = (cumulant + 256) * ROUND_OFF * 4 + total.moment_error(saddle.c)
    error = scale * (math.exp(alias) + rest + size * rounding)
    if error == 0 and mean > 0:  # δ − δ_∞ is below the smallest double
        return infinite, math.ulp(0.0) + 4 * ROUND_OFF * infinite
    if not scale * mean > 2 * error:
        raise PrecisionError(f"the integral keeps no digit at epsilon={epsilon!r}: {scale * mean!r} within {error!r}")
    return infinite + scale * mean, error + 4 * ROUND_OFF * infinite


def _vanishes(total: Composition, epsilon: float) -> bool:
    """Whether some δ − δ_∞ ≤ e^{K(c) − cε} proves it to be below the smallest double, before a far saddle is sought."""
    for c in (1.0, 4.0, 16.0, 64.0):
        moment = float(_real_moment(total, np.array([c]))[0])
        if moment - c * epsilon < UNDERFLOW:
            return True
        if moment > c * epsilon:
            return False
    return False


def _real_moment(total: Composition, points: Floats) -> Floats:
    moment = total.log_moment(points.astype(np.complex128))
    if moment is None:
        raise PrecisionError(f"one of the {len(total.laws)} laws has no moment function")
    return np.asarray(moment.real)


def _saddle(total: Composition, epsilon: float) -> Saddle:
    """Minimise K(c) − cε − log c − log(1+c), and tabulate log(e^{K − c'ε} c'^c' / (1+c')^{1+c'}) around it."""

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        return float(_real_moment(total, np.array([c]))[0]) - c * epsilon - log_c - math.log1p(c)

    try:
        found = optimize.minimize_scalar(height, bracket=_bracket(height), options={"xtol": 1e-3})
    except ValueError:
        raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}") from None
    c = math.exp(float(found.x))
    others = c * RATIOS
    moments = _real_moment(total, others) - others * epsilon
    peaks = others * np.log(others) - (1 + others) * np.log1p(others)
    at_c = float(_real_moment(total, np.array([c]))[0]) - c * epsilon
    return Saddle(c, at_c, others, np.where(np.isfinite(moments), moments + peaks, np.inf))


def _bracket(height: Callable[[float], float]) -> tuple[float, float, float]:
    """Three values of log c with the middle one lowest."""
    low, here, high = -1.0, 0.0, 1.0
    below, value, above = height(low), height(here), height(high)
    while below < value and low > -40:
        low, here, high, value, above = low - 2, low, here, below, value
        below = height(low)
    while above < value and high < 40:
        low, here, high, value = here, high, high + 1, above
        above = height(high)
    return low, here, high


def _step(saddle: Saddle) -> tuple[float, float]:
    """The widest step whose aliasing passes, with that aliasing (log, relative to e^{height})."""
    # δ is about e^{height} / (c(c+1) · width), so ask for the tolerance relative to that.
    width = 20.0 * (1 + saddle.c)
    allowed = math.log(TOLERANCE) - math.log(saddle.c) - math.log1p(saddle.c) - math.log(width)
    step = 4.0 * (1 + saddle.c)
    alias = saddle.alias(step)
    while alias > allowed:
        step *= 0.8
        alias = saddle.alias(step)
        if step < 1e-9:
            raise PrecisionError(f"no step keeps the aliasing below {TOLERANCE} at saddle c={saddle.c:.3g}")
    return step, alias


def _integrand(total: Composition, z: Complexes, epsilon: float, height: float) -> Complexes:
    moment = total.log_moment(z)
    if moment is None:
        raise PrecisionError(f"one of the {len(total.laws)} laws has no moment function")
    return np.asarray(np.exp(moment - z * epsilon - height) / (z * (z + 1)))


def _integral(total: Composition, epsilon: float, saddle: Saddle, step: float) -> tuple[float, float, float]:
    """(h/2π) Σ over c + ihn: the value, the sum of moduli, and a bound on what lies beyond the last node.

    Beyond |Im z| = T the integrand is at most decay(c, T)/|z(z+1)|, so the rest is below decay/T · (1 + h/T)/π.
    """
    value, size, start, block = 0.0, 0.0, 0, FIRST_BLOCK
    if total.log_decay(saddle.c, step * MOST_NODES) > math.log(TOLERANCE):
        raise PrecisionError(f"the integrand does not die within {MOST_NODES} nodes of width {step:.3g}")
    while start < MOST_NODES:
        nodes = np.asarray(saddle.c + 1j * step * np.arange(start, start + block), dtype=np.complex128)
        terms = _integrand(total, nodes, epsilon, saddle.height) * step / math.pi
        terms[0] /= 2 if start == 0 else 1
        value += math.fsum(terms.real)
        size += float(np.sum(np.abs(terms)))
        start, block = start + block, min(2 * block, LAST_BLOCK)
        reach = step * start
        rest = math.exp(total.log_decay(saddle.c, reach)) / reach * (1 + step / reach) / math.pi
        if rest < TOLERANCE * abs(value):
            return value, size, rest
    raise PrecisionError(f"the integrand has not died after {MOST_NODES} nodes of width {step:.3g}")
