"""Which method answers: the first that fits a composition (one direction).

closed form  a single law that knows its profile
recurrence   copies of one triple: positive three-term recurrence
lattice      laws with atoms on one lattice: tilted transform
enumeration  a few copies of small finite laws: every sum of losses
contour      laws with densities: integral through the saddle point
exact sum    up to some hundred copies of one Laplace-type law: positive recurrence
grid         everything else: cells moved onto a lattice, from both sides
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.closed_form import ClosedForm
from tightrope.privacy.engines.contour import contour
from tightrope.privacy.engines.contour.contour import Contour
from tightrope.privacy.engines.engine import Engine
from tightrope.privacy.engines.lattices.gridded import Gridded
from tightrope.privacy.engines.lattices.lattice import Lattice
from tightrope.privacy.engines.lattices.on_lattice import OnLattice, on_lattice
from tightrope.privacy.engines.smoothing.smoothed import smoothed
from tightrope.privacy.engines.sums.enumeration import enumerated, mirrored
from tightrope.privacy.engines.sums.laplace_sum import flat_sum
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition


def choose(total: Composition) -> Engine:
    """The engine that fits; made once and kept by the loss."""
    if not total.laws:
        return OnLattice(Lattice(1.0, (), 0.0), 0.0)
    if total.infinite_mass == 1:
        nearly = 0.0 if total.infinite_bounds[0] == 1 else 8 * ROUND_OFF
        return ClosedForm(Atoms(np.zeros(0), np.zeros(0), 1.0, 1.0, inexact=nearly))
    return _single(total) or on_lattice(total) or _finite(total) or _dense(total)


def _single(total: Composition) -> Engine | None:
    law = total.laws[0] if total.counts == (1,) else None
    return ClosedForm(law) if law is not None and law.profile(np.array([1.0])) is not None else None


def _finite(total: Composition) -> Engine | None:
    finite = enumerated(total)
    if finite is None:
        return None
    return ClosedForm(finite, "enumeration", cache(lambda: mirrored(total)))


def _dense(total: Composition) -> Engine:
    """Laws with densities; the grid stands behind each of the others."""
    last = smoothed(total, Gridded(total))
    if contour.applies(total):
        return Contour(total, last)
    return flat_sum(total, last) or last
