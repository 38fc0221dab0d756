"""What must hold of a mechanism that was read: it does what it says, computed from the weights that are drawn from."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tightrope.errors import InputError
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism, Group
from tightrope.transport.couplings.displacement import moves
from tightrope.transport.exact.exact_plan import MOST_MOVED
from tightrope.transport.exact.row_tables import quantised

TARGET_TOLERANCE = Fraction(1, 1 << 100)
"""How far an output law may be from the target at a point: fitted ones are within 2⁻¹²⁸ a point of the support."""
LOSS_ERROR = 1e-9
"""Relative to the largest cost: what sums of rounded masses may be off."""


def check(mechanism: CouplingMechanism, cost: Any) -> None:
    """Raise ``InputError`` unless output laws, rows of excluded points and losses are what a fit would have made."""
    if not mechanism.stray <= Fraction(MOST_MOVED):
        raise _tampered("stray", float(mechanism.stray), f"at most {MOST_MOVED:g}")
    for group in mechanism.groups:
        _check_output(mechanism, group)
        _check_excluded(mechanism, group)
        _check_loss(mechanism, group, cost)


def _check_output(mechanism: CouplingMechanism, group: Group) -> None:
    gaps = [abs(share - mechanism.target[y]) for y, share in enumerate(mechanism.exact_output_law(group))]
    if not max(gaps) <= TARGET_TOLERANCE:
        raise _tampered(f"output law of {group!r}", f"{float(max(gaps)):.3g} off", "the target, to 2^-100 a point")


def _check_excluded(mechanism: CouplingMechanism, group: Group) -> None:
    """A point without mass does not show in the output law; its row must say nothing about it."""
    law, tables = mechanism.groups[group], mechanism.tables[group]
    whole = quantised(dict(enumerate(mechanism.target.masses)))
    seen: set[int] = set()
    for x, mass in enumerate(law.masses):
        start = int(tables.starts[x])
        if not mass and start not in seen and tables.weights(x) != whole:
            raise _tampered(f"row of point {x}, which {group!r} excludes", "another law", "the target")
        if not mass:
            seen.add(start)


def _check_loss(mechanism: CouplingMechanism, group: Group, cost: Any) -> None:
    found = moves(mechanism, group, cost)
    loss = found.mean if mechanism.objective == "expected" else found.largest
    if not abs(loss - mechanism.loss[group]) <= LOSS_ERROR * cost.ceiling():
        raise _tampered(f"loss of {group!r}", mechanism.loss[group], f"{loss!r}, that of its weights")


def _tampered(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "the file was changed or damaged: fit again")
