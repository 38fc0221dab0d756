"""The least μ for which μ-GDP provably dominates a loss: exact for bounded losses, none for others."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.laws.law import LossLaw

CUT = 2000
"""Cells of a bounded law: its chords decide how much μ is too large, never whether it is large enough."""
TRUSTED = 1e-9
"""Masses must add up to one this closely; what is missing is charged as their relative error."""


def squared_mu(direction: Composition) -> float | None:
    """Σ n μ_i², rounded up; None where a law is not dominated by any Gaussian that we can prove."""
    mus = [(gaussian_mu(law), n) for law, n in zip(direction.laws, direction.counts, strict=True)]
    known = [n * mu * mu for mu, n in mus if mu is not None]
    total = math.fsum(known) * (1 + 1e-15)
    return total if len(known) == len(mus) and math.isfinite(total) else None


@lru_cache(maxsize=1024)
def gaussian_mu(law: LossLaw) -> float | None:
    """μ of one law (theory §2, F4; ``docs/proofs/filters.md``).

    The trade-off function of a law with finitely many bounded losses is a polygon; the Gaussian one is convex, so it
    lies below wherever it does at the corners. At the corner behind loss l that is Φ⁻¹(P(L > l)) − Φ⁻¹(Q(L > l)) ≤ μ.
    """
    if isinstance(law, GaussianLaw):
        return law.mu
    bounded = math.isfinite(law.largest) and math.isfinite(law.reverse().largest)
    if not bounded or law.infinite_mass > 0 or law.opposite_mass > 0:
        return None
    return _of_atoms(_atoms(law))


def _atoms(law: LossLaw) -> Atoms:
    """Atoms as they are; anything else by the ends of its cells, which dominate it."""
    if isinstance(law, Atoms):
        return law
    width = max(law.largest + law.reverse().largest, 1e-12)
    cells = law.cells(width / CUT)
    return Atoms.gather(*cells.ends(), infinite_mass=cells.infinite_mass, slack=cells.slack)


def _of_atoms(law: Atoms) -> float | None:
    q = law.masses * np.exp(np.minimum(-law.losses, 700.0))
    missing = abs(math.fsum(law.masses) - 1) + abs(math.fsum(q) - 1)
    if not missing <= TRUSTED or law.infinite_mass > 0:
        return None
    error = missing + 2 * law.slack + 4 * ROUND_OFF * (len(q) + float(np.max(np.abs(law.losses), initial=0.0)))
    corners = _quantile(law.masses) - _quantile(q)
    return (max(0.0, float(np.max(corners, initial=0.0))) + 8 * error) * (1 + 1e-14)


def _quantile(masses: Floats) -> Floats:
    """Φ⁻¹ of the mass above each corner, from whichever tail is the smaller: relative errors stay small."""
    above, below = np.cumsum(masses[::-1])[::-1][1:], np.cumsum(masses)[:-1]
    return np.where(above <= below, ndtri(np.minimum(above, 0.5)), -ndtri(np.minimum(below, 0.5)))
