"""Which method answers: the first that fits a composition (one direction).

closed form  a single law that knows its profile
recurrence   copies of one triple: positive three-term recurrence
lattice      laws with atoms on one lattice: tilted transform
enumeration  a few copies of small finite laws: every sum of losses
contour      laws with densities: integral through the saddle point
grid         everything else: cells moved onto a lattice, from both sides
"""

from __future__ import annotations

import numpy as np

from tightrope.privacy.atoms import Atoms
from tightrope.privacy.closed_form import ClosedForm
from tightrope.privacy.composition import Composition
from tightrope.privacy.contour import Contour, applies
from tightrope.privacy.enumeration import enumerated
from tightrope.privacy.gridded import Gridded
from tightrope.privacy.interval import Engine
from tightrope.privacy.lattice import Lattice
from tightrope.privacy.on_lattice import OnLattice, on_lattice


def choose(total: Composition) -> Engine:
    """The engine that fits; made once and kept by the loss."""
    if not total.laws:
        return OnLattice(Lattice(1.0, (), 0.0), 0.0)
    if total.infinite_mass == 1:
        return ClosedForm(Atoms(np.zeros(0), np.zeros(0), 1.0, 1.0))
    single = total.laws[0] if total.counts == (1,) else None
    if single is not None and single.profile(np.array([1.0])) is not None:
        return ClosedForm(single)
    lattice = on_lattice(total)
    if lattice is not None:
        return lattice
    finite = enumerated(total)
    if finite is not None:
        return ClosedForm(finite, "enumeration")
    return Contour(total, Gridded(total)) if applies(total) else Gridded(total)
