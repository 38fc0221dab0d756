"""Moments of one law on a line Re z = c, relative to M(c): the characteristic function φ of the law tilted by e^{cl}.

Nodes come in rows: y = start + along, so that the phases of a finite law are an outer product. For a finite law φ − 1
is summed from e^{iy(l − m)} − 1, m the tilted mean, so that log φ is known relative to itself near y = 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_log import log1p
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.law import LossLaw

MOST_HALVINGS = 40
NOISE = 1e-13
"""Rounding of moments whose differences bound a variance."""
TINY = 1e-300
CHUNK = 1 << 18
"""Phases held at once: 4 MiB of complex numbers."""
STEEPEST = 600.0


class OnLine(ABC):
    """One law on the line through c."""

    __slots__ = ()

    cumulant: float
    """K(c)."""
    error: float
    """What it is off by."""
    variance: float
    """A bound on E (L − m)² under the tilted law, for some m."""

    @abstractmethod
    def logs(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        """Log φ, on any branch, and a bound on its error: shape [rows, nodes of a row]."""

    def moduli(self, starts: Floats, along: Floats) -> Floats:
        """|φ| from above."""
        logs, errors = self.logs(starts, along)
        return np.exp(np.minimum(logs.real + errors, 0.0))


FEW_TURNS, MOST_TURNS = 1e3, 2.0**26
TURN = math.ldexp(math.floor(math.ldexp(2 * math.pi, 24)), -24)
TURN_REST = 2 * math.pi - TURN + 2.4492935982947064e-16
"""2π less ``TURN``; a double of 2π lacks the last term."""


@dataclass(frozen=True, slots=True, eq=False)
class FiniteOnLine(OnLine):
    """A finite law: tilted masses, which sum to one, at the centred losses."""

    cumulant: float
    error: float
    mean: float
    losses: Floats
    masses: Floats
    variance: float
    inexact: float
    slack: float
    """E of what each loss is off by, where that is known."""
    c: float

    @classmethod
    def of(cls, law: Atoms, c: float) -> FiniteOnLine:
        """K(c) = log(1 − δ_∞ + Σ p (e^{cl} − 1)), and with the largest exponent pulled out where that overflows."""
        exponent = c * law.losses
        top = float(np.max(exponent)) if len(exponent) else 0.0
        weights = law.masses * np.exp(exponent - top)
        whole = float(np.sum(weights))
        cumulant, error = _real(law, c) if abs(top) < STEEPEST else (math.log(whole) + top, 0.0)
        error += ROUND_OFF * 4 * (abs(cumulant) + (abs(top) + len(weights) if abs(top) >= STEEPEST else 0.0))
        tilted = weights / whole
        mean = float(np.dot(tilted, law.losses))
        centred = law.losses - mean
        variance = float(np.dot(tilted, centred**2)) * (1 + 1e-9)
        slack = 0.0 if law.slacks is None else float(np.dot(tilted, law.slacks))
        error += abs(c) * slack * (1 + 1e-9)
        return cls(cumulant, error, mean, centred, tilted, variance, law.inexact + 4 * ROUND_OFF, slack, abs(c))

    def logs(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        rows = max(1, CHUNK // len(self.losses))
        inner = _turned(np.multiply.outer(along, self.losses)).T
        parts = [self._excess(starts[i : i + rows], inner) for i in range(0, len(starts), rows)]
        excess = np.concatenate(parts)
        y = starts[:, None] + along
        logs = log1p(excess)
        size = np.abs(y) * float(np.dot(self.masses, np.abs(self.losses)))
        off = (
            self.slack * (np.abs(y) + 2 * self.c) * (1 + 1e-6)
            + ROUND_OFF * size
            + (ROUND_OFF * (len(self.losses) + 16) + self.inexact) * np.minimum(size, 2.0)
        )
        off = off / np.maximum(np.abs(1 + excess), TINY) + 4 * ROUND_OFF * (np.abs(logs) + np.abs(self.mean * y))
        return logs + 1j * self.mean * y, off

    def _excess(self, starts: Floats, inner: Complexes) -> Complexes:
        """φ − 1 = Σ w (e^{iyl} − 1) from e^{i(y+h)l} − 1 = (e^{iyl} − 1) + e^{iyl} (e^{ihl} − 1)."""
        outer = _turned(np.multiply.outer(starts, self.losses))
        return np.asarray((outer @ self.masses)[:, None] + ((outer + 1) * self.masses) @ inner)


def _turned(angle: Floats) -> Complexes:
    """e^{ia} − 1 = −2 sin²(a/2) + i sin a.

    Large angles are brought near zero first, since sines of these take ten times as long: k · 2π is exact but for its
    last bits, k having 26 and the upper part of 2π 27.
    """
    turns = np.rint(angle / (2 * math.pi))
    if FEW_TURNS < float(np.max(np.abs(turns), initial=0.0)) < MOST_TURNS:
        angle = (angle - turns * TURN) - turns * TURN_REST
    result = np.empty(angle.shape, dtype=np.complex128)
    sine, cosine = np.sin(angle / 2), np.cos(angle / 2)
    result.real = -2 * sine * sine
    result.imag = 2 * sine * cosine
    return result


def _real(law: Atoms, c: float) -> tuple[float, float]:
    growth = np.expm1(c * law.losses)
    excess = float(np.dot(law.masses, growth)) - law.infinite_mass
    size = float(np.dot(law.masses, np.abs(growth))) + law.infinite_mass
    error = (ROUND_OFF * (len(growth) + 8) + law.inexact) * size / max(1 + excess, ROUND_OFF)
    return math.log1p(max(excess, -1 + ROUND_OFF)), error


@dataclass(frozen=True, slots=True, eq=False)
class AnyOnLine(OnLine):
    """A law that knows its K."""

    law: LossLaw
    c: float
    cumulant: float
    error: float
    variance: float

    @classmethod
    def of(cls, law: LossLaw, c: float) -> AnyOnLine:
        """``PrecisionError`` where K is not known."""
        (cumulant,), (error,) = _known(law, np.array([complex(c)]))
        return cls(law, c, float(cumulant.real), float(error), _variance(law, c, float(cumulant.real)))

    def logs(self, starts: Floats, along: Floats) -> tuple[Complexes, Floats]:
        z = np.asarray(self.c + 1j * (starts[:, None] + along), dtype=np.complex128)
        moments, errors = _known(self.law, z.ravel())
        return (moments - self.cumulant).reshape(z.shape), (errors + self.error).reshape(z.shape)


def _known(law: LossLaw, z: Complexes) -> tuple[Complexes, Floats]:
    known = law.enclosed(z)
    if known is None:
        raise PrecisionError(f"{law!r} has no moment function")
    return known


def _variance(law: LossLaw, c: float, at_c: float) -> float:
    """(L − m)² ≤ 2 (cosh s(L − m) − 1)/s², and E cosh s(L − m) = e^{(K(c+s) + K(c−s))/2 − K(c)} for the best m."""
    s = min(abs(c), abs(1 + c)) / 2
    for _ in range(MOST_HALVINGS):
        try:
            moments, errors = _known(law, np.array([c + s + 0j, c - s + 0j]))
        except PrecisionError:
            moments, errors = np.full(2, np.inf + 0j), np.zeros(2)
        bend = float(np.sum(moments.real + errors)) / 2 - at_c
        if bend < 1:
            return 2 * math.expm1(max(bend, 0.0) + NOISE) / s**2
        s /= 2
    raise PrecisionError(f"the losses of {law!r} tilted by c={c:.3g} have no variance")


def uniform_slack(law: LossLaw) -> float:
    """What every loss of the law may be off by, beyond what ``on_line`` accounts for."""
    return 0.0 if isinstance(law, Atoms) and law.slacks is not None else law.slack


def on_line(law: LossLaw, c: float) -> OnLine:
    """The law on the line through c."""
    return FiniteOnLine.of(law, c) if isinstance(law, Atoms) else AnyOnLine.of(law, c)
