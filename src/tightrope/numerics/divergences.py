"""Definitions of the f-divergences of two distributions: D_f(p‖q) = Σ q f(p/q), with p f'(∞) where q = 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

Convex = Callable[[float], float]

INFINITE_EPSILON = 700.0
"""The largest ε for which e^ε is treated as finite."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A convex f on (0, ∞) with f(1) = 0; ``at_zero`` is f(0⁺), ``slope`` the limit of f(t)/t as t grows.

    The limits matter where one distribution is zero and the other is not. ``None`` means unknown: an ``InputError``
    if it is needed. Convexity is not checked, but all theorems on f-divergences need it.

    >>> triangle = Divergence("triangle", lambda t: (t - 1) ** 2 / (t + 1), at_zero=1.0, slope=1.0)
    >>> round(triangle.divergence_between(np.array([1.0, 0.0]), np.array([0.5, 0.5])), 12)
    0.666666666667
    """

    name: str
    f: Convex
    at_zero: float | None = None
    slope: float | None = None

    def divergence_between(self, p: Floats, q: Floats) -> float:
        """Return D_f(p‖q) of two distributions of shape [n], accurate to a few units in the last place of Σ |terms|."""
        both = (p > 0) & (q > 0)
        inner = math.fsum(y * self.f(x / y) for x, y in zip(p[both].tolist(), q[both].tolist(), strict=True))
        gone = float(np.sum(q[(p == 0)]))
        new = float(np.sum(p[(q == 0)]))
        return inner + self.disjoint_mass_term(new, gone)

    def disjoint_mass_term(self, p: float, q: float) -> float:
        """Return the contribution of mass that only one distribution has: p f'(∞) + q f(0)."""
        return self._edge_value(q, self.at_zero, "at_zero") + self._edge_value(p, self.slope, "slope")

    def steepest_slope(self, epsilon: float) -> float:
        """(f(e^ε) + e^ε f(e^{−ε}))/(e^ε − 1), ε > 0: the largest D_f per total variation for ratios in e^{±ε}."""
        if epsilon > INFINITE_EPSILON:
            return self.disjoint_mass_term(1.0, 1.0)
        ratio = math.exp(epsilon)  # numerator and denominator are divided through by it
        return (self.f(ratio) / ratio + self.f(1 / ratio)) / -math.expm1(-epsilon)

    def _edge_value(self, mass: float, limit: float | None, name: str) -> float:
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
    """A divergence with non-negative terms and a closed form of ``steepest_slope``: accurate for nearly equal inputs
    and small ε.
    """

    terms: Callable[[Floats, Floats], Floats] = np.subtract
    closed: Convex = math.exp

    def divergence_between(self, p: Floats, q: Floats) -> float:
        # Terms of a few units in the last place may be negative where the distributions are equal.
        both = (p > 0) & (q > 0)
        inner = math.fsum(np.maximum(self.terms(p[both], q[both]), 0.0))
        gone, new = float(np.sum(q[p == 0])), float(np.sum(p[q == 0]))
        return inner + self.disjoint_mass_term(new, gone)

    def steepest_slope(self, epsilon: float) -> float:
        return self.closed(epsilon)


def _relative_entropy(p: Floats, q: Floats) -> Floats:
    """Terms q (r log r − r + 1) with r = p/q = 1 + s: adding q (1 − r) keeps the total, and every term is ≥ 0."""
    with np.errstate(over="ignore"):
        s = np.minimum((p - q) / q, 1.0)
    near = np.abs(s) < 1e-2
    series = s * s * (1 / 2 - s * (1 / 6 - s * (1 / 12 - s * (1 / 20 - s * (1 / 30 - s * (1 / 42 - s / 56))))))
    plain = p * (np.log(p) - np.log(q)) - (p - q)
    return np.asarray(np.where(near, q * series, plain))


def _kl_divergence(t: float) -> float:
    return t * math.log(t) - t + 1 if t > 0 else 1.0


def _identity(epsilon: float) -> float:
    return epsilon


# Adding c (t − 1) to f changes no divergence; KL and its reverse take the one that makes every term ≥ 0.
KL = _Known("kl", _kl_divergence, 1.0, math.inf, _relative_entropy, _identity)
REVERSE_KL = _Known(
    "reverse_kl",
    lambda t: t - 1 - math.log(t) if t > 0 else math.inf,
    math.inf,
    1.0,
    lambda p, q: _relative_entropy(q, p),
    _identity,
)
TOTAL_VARIATION = _Known(
    "total_variation", lambda t: abs(t - 1) / 2, 0.5, 0.5, lambda p, q: np.abs(p - q) / 2, lambda epsilon: 1.0
)
CHI_SQUARED = _Known(
    "chi_squared",
    lambda t: (t - 1) ** 2,
    1.0,
    math.inf,
    lambda p, q: (p - q) ** 2 / q,
    lambda epsilon: 2 * math.sinh(epsilon) if epsilon <= INFINITE_EPSILON else math.inf,
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


def resolve_divergence(f: str | Convex | Divergence) -> Divergence:
    """Return the divergence of this name, or of this convex function of t = p/q; ``InputError`` for an unknown name.

    Names: kl, reverse_kl, total_variation, chi_squared, hellinger (squared, in [0, 2]).

    >>> resolve_divergence("kl").name
    'kl'
    """
    if isinstance(f, Divergence):
        return f
    if callable(f):
        return Divergence(getattr(f, "__name__", "f"), f)
    if not isinstance(f, str) or f not in NAMED:
        raise InputError("f", f, f"one of {', '.join(NAMED)}, or a convex function of t = p/q with f(1) = 0")
    return NAMED[f]
