"""The one definition of each f-divergence of two laws: D_f(p‖q) = Σ q f(p/q), with p f'(∞) where q = 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

Convex = Callable[[float], float]

INFINITE_EPSILON = 700.0
"""Beyond, e^ε is as good as infinite."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A convex f on (0, ∞) with f(1) = 0; ``at_zero`` is f(0⁺), ``slope`` the limit of f(t)/t as t grows.

    The limits count where one law is zero and the other is not. ``None`` means "not told": an ``InputError`` where
    it is needed. Convexity is not checked; everything that is proven of f-divergences needs it.

    >>> triangle = Divergence("triangle", lambda t: (t - 1) ** 2 / (t + 1), at_zero=1.0, slope=1.0)
    >>> round(triangle.between(np.array([1.0, 0.0]), np.array([0.5, 0.5])), 12)
    0.666666666667
    """

    name: str
    f: Convex
    at_zero: float | None = None
    slope: float | None = None

    def between(self, p: Floats, q: Floats) -> float:
        """D_f(p‖q) of two laws of shape [n]; sums terms as they come: a few units in the last place of Σ |terms|."""
        both = (p > 0) & (q > 0)
        inner = math.fsum(y * self.f(x / y) for x, y in zip(p[both].tolist(), q[both].tolist(), strict=True))
        gone = float(np.sum(q[(p == 0)]))
        new = float(np.sum(p[(q == 0)]))
        return inner + self.exclusive(new, gone)

    def exclusive(self, p: float, q: float) -> float:
        """What masses that only one of the laws has add: p f'(∞) + q f(0)."""
        return self._edge(q, self.at_zero, "at_zero") + self._edge(p, self.slope, "slope")

    def steepest(self, epsilon: float) -> float:
        """(f(e^ε) + e^ε f(e^{−ε}))/(e^ε − 1), ε > 0: the most D_f per total variation where no ratio leaves e^{±ε}."""
        if epsilon > INFINITE_EPSILON:
            return self.exclusive(1.0, 1.0)
        ratio = math.exp(epsilon)  # numerator and denominator are divided through by it
        return (self.f(ratio) / ratio + self.f(1 / ratio)) / -math.expm1(-epsilon)

    def _edge(self, mass: float, limit: float | None, name: str) -> float:
        if mass == 0:
            return 0.0
        if limit is None:
            raise InputError(
                f"{name} of {self.name!r}", limit, "a limit of f, since the laws do not have the same outcomes",
                f"give Divergence(name, f, {name}=...), math.inf where it has none",
            )  # fmt: skip
        return mass * limit


@dataclass(frozen=True, slots=True)
class _Known(Divergence):
    """A divergence with a sum of terms ≥ 0 and a closed ``steepest``: nearly equal laws, small ε lose no digits."""

    terms: Callable[[Floats, Floats], Floats] = np.subtract
    closed: Convex = math.exp

    def between(self, p: Floats, q: Floats) -> float:
        # Terms of a few units in the last place may be negative where the laws are equal.
        both = (p > 0) & (q > 0)
        inner = math.fsum(np.maximum(self.terms(p[both], q[both]), 0.0))
        gone, new = float(np.sum(q[p == 0])), float(np.sum(p[q == 0]))
        return inner + self.exclusive(new, gone)

    def steepest(self, epsilon: float) -> float:
        return self.closed(epsilon)


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    """Terms q (r log r − r + 1) with r = p/q = 1 + s: adding q (1 − r) changes no full sum, and no term is negative."""
    with np.errstate(over="ignore"):
        s = np.minimum((p - q) / q, 1.0)
    near = np.abs(s) < 1e-2
    series = s * s * (1 / 2 - s * (1 / 6 - s * (1 / 12 - s * (1 / 20 - s * (1 / 30 - s * (1 / 42 - s / 56))))))
    plain = p * (np.log(p) - np.log(q)) - (p - q)
    return np.asarray(np.where(near, q * series, plain))


def _kl(t: float) -> float:
    return t * math.log(t) - t + 1 if t > 0 else 1.0


def _reverse_kl(t: float) -> float:
    return t - 1 - math.log(t) if t > 0 else math.inf


def _itself(epsilon: float) -> float:
    return epsilon


def _chi_squared_steepest(epsilon: float) -> float:
    return 2 * math.sinh(epsilon) if epsilon <= INFINITE_EPSILON else math.inf


# Adding c (t − 1) to f changes no divergence; KL and its reverse take the one that makes every term ≥ 0.
KL = _Known("kl", _kl, 1.0, math.inf, _relative_entropy, _itself)
REVERSE_KL = _Known("reverse_kl", _reverse_kl, math.inf, 1.0, lambda p, q: _relative_entropy(q, p), _itself)
TOTAL_VARIATION = _Known(
    "total_variation", lambda t: abs(t - 1) / 2, 0.5, 0.5, lambda p, q: np.abs(p - q) / 2, lambda epsilon: 1.0
)
CHI_SQUARED = _Known(
    "chi_squared", lambda t: (t - 1) ** 2, 1.0, math.inf, lambda p, q: (p - q) ** 2 / q, _chi_squared_steepest
)
HELLINGER = _Known(
    "hellinger",
    lambda t: (math.sqrt(t) - 1) ** 2,
    1.0,
    1.0,
    lambda p, q: (np.sqrt(p) - np.sqrt(q)) ** 2,
    lambda epsilon: 2 * math.tanh(epsilon / 4),
)
"""Squared Hellinger distance Σ (√p − √q)² = 2 − 2 Σ √(pq), in [0, 2]."""

NAMED = {known.name: known for known in (KL, REVERSE_KL, TOTAL_VARIATION, CHI_SQUARED, HELLINGER)}


def divergence(f: str | Convex | Divergence) -> Divergence:
    """The divergence of this name, or of this convex function of t = p/q; ``InputError`` for an unknown name.

    Names: kl, reverse_kl, total_variation, chi_squared, hellinger (squared, in [0, 2]).

    >>> divergence("kl").name
    'kl'
    """
    if isinstance(f, Divergence):
        return f
    if callable(f):
        return Divergence(getattr(f, "__name__", "f"), f)
    if not isinstance(f, str) or f not in NAMED:
        raise InputError("f", f, f"one of {', '.join(NAMED)}, or a convex function of t = p/q with f(1) = 0")
    return NAMED[f]
