"""Nodes for the moments of a Gaussian on a subset: curves from μ/2 outwards (``docs/proofs/sampled-gaussian.md``).

M(z) = 1 + ∫_{x>μ/2} φ (g (g^z − 1) + g^{−z} − 1) dx. The first part is taken on x = μ/2 + β log(1 + e^{τ + iα}), which
leaves the real axis at an angle, levels off at the height αβ and is analytic in τ; the second on the conjugate. With
βμ ≤ 1, |g| ≥ 1 on all of the strip between, so that for y > 0 neither part is larger there than on the real axis. The
linear term is ∫ φ (g − 1) log g, of one sign on the real axis. Where the law is cut, the first curve ends on the axis.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tightrope.errors import PrecisionError
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.sampled.line_moment import MomentLine
from tightrope.privacy.sampled.shifted_line import (
    ANGLE,
    CUT_OFF_NATS,
    LEVEL,
    MOST_NODES,
    QUADRATURE_NATS,
    SHORT,
    TAIL,
    Curve,
    Power,
    softplus,
)

NEAREST = -22.0
"""τ from which on x is told from μ/2: the integrand is of second order there, in e^τ, and so is what is cut off."""

PANEL = 0.25
GAUSS = np.polynomial.legendre.leggauss(16)


def power_of(mu: float, rate: float, c: float, cut: float) -> Power:
    """Of the larger part, g^{c+1}."""
    return Power(mu, rate, max(c + 1, 0.0), 1, cut)


def subset_line(power: Power, log_moment: float | None) -> MomentLine:
    """Nodes for real z up to c where ``log_moment`` is None; else for all z = c + iy, y > 0, log M(c) being known."""
    beta = min(LEVEL, 1 / power.mu)
    top = math.pi * beta / 2
    # On the strip's far side φ is larger, and where the curve is steep an x counts by its whole neighbourhood.
    step = 2 * math.pi * ANGLE / (QUADRATURE_NATS + top**2 / 2 + power.mu / 2 + 4)
    angle = 0.0 if log_moment is None else ANGLE
    high = power.ends()[1]
    above = _curve(power, (beta, step, angle), high, ends_there=high == power.cut)
    below = _curve(power, (beta, step, angle), TAIL + power.mu, ends_there=False)
    real = below if angle == 0 else _curve(power, (beta, step, 0.0), TAIL + power.mu, ends_there=False)
    weight = np.exp(real.log_weight).real
    terms, gone = (weight * real.gain * real.loss).real, _beyond(power)
    relative = real.blurred + 2 * real.moved / np.maximum(np.abs(real.loss), 1e-300) + 8
    return MomentLine(
        np.concatenate([above.log_weight + above.loss, below.log_weight.conj()]),
        np.concatenate([above.loss, -below.loss.conj()]),
        np.concatenate([above.blurred, below.blurred]) + len(above.x) + len(below.x) + 8,
        np.concatenate([above.moved, below.moved]),
        complex(math.fsum(terms) - gone[1]),
        float(terms @ relative) * ROUND_OFF + 1e-12 * gone[1] + 16 * math.exp(-QUADRATURE_NATS) * power.rate**2,
        max(1 - float(np.sum(weight * (2 + real.gain.real))), 0.0),
        16 * math.exp(-QUADRATURE_NATS) * (1 + (power.mu * power.rate) ** 2),
        math.nan if log_moment is None else log_moment,
        gone[0],
    )


def _curve(power: Power, shape: tuple[float, float, float], high: float, *, ends_there: bool) -> Curve:
    """From μ/2 to ``high``, β, the step of τ and the angle α being given; it is left where it is cut, or goes on."""
    beta, step, angle = shape
    length = (high - power.mu / 2) / beta
    farthest = length + (SHORT if ends_there else CUT_OFF_NATS / 20)  # at the cut the integrand is of first order
    if not (farthest - NEAREST) / step <= MOST_NODES:
        raise PrecisionError(f"a moment of {power!r} on a subset needs {farthest / step:.3g} points")
    tau = step * np.arange(math.floor(NEAREST / step), math.ceil(farthest / step) + 1)
    first = np.asarray(tau + complex(0.0, angle), dtype=np.complex128)
    away = softplus(first)
    log_slope = first - away
    if ends_there:  # away = s(w) − s(w − T) and its slope is e^w (1 − e^{−T}) / (1 + e^w)(1 + e^{w−T})
        late = softplus(np.asarray(first - length))
        away, log_slope = away - late, log_slope - late + math.log(-math.expm1(-length))
    return Curve.of(power, power.mu / 2 + beta * away, math.log(step * beta) + log_slope, beta * away)


def _beyond(power: Power) -> tuple[float, float]:
    """∫ φ g beyond the cut, in closed form, and ∫ φ g log g, by Gauss's rule: it falls by e^{−10} a panel at most."""
    if power.cut == math.inf:
        return 0.0, 0.0
    mass = power.rate * special.ndtr(power.mu - power.cut) + (1 - power.rate) * special.ndtr(-power.cut)
    panels = power.cut + PANEL * np.arange(math.ceil(TAIL / PANEL))
    x = (panels[:, None] + PANEL * (GAUSS[0] + 1) / 2).ravel()
    density = np.exp(power.log_size(x) + (1 - power.real) * power.log_g(x))
    weight = np.tile(GAUSS[1] * PANEL / 2, len(panels))
    return float(mass), float((weight * density) @ power.log_g(x))
