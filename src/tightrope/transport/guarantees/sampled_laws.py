"""What is left where the laws are the shares of n sampled people: a bound on one draw by Weissman's inequality."""

from __future__ import annotations

import math

from tightrope.numerics.checks import inner_probability, whole
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism
from tightrope.transport.guarantees.divergences import raised
from tightrope.transport.guarantees.learned_laws import TABLE_ROUNDING
from tightrope.transport.guarantees.single_draws import OneDraw, one_draw


def sampled(mechanism: CouplingMechanism, samples: int, *, failure: float = 0.05) -> OneDraw:
    """(0, η, η) with η = min{1, 2t}, t = √((d log 2 + log(S/β)) / (2n)), with probability 1 − β (theory §6).

    Each group's law must be the shares of n independent ``samples`` of that group or more, over d points; S groups.
    Raises ``InputError`` unless n ≥ 1 and 0 < β < 1.

    >>> fitted = CouplingMechanism.fit({"a": [0.5, 0.5], "b": [0.25, 0.75]}, [[0, 1], [1, 0]], target=[0.4, 0.6])
    >>> round(sampled(fitted, 100_000).total_variation, 4)
    0.0101
    """
    samples, failure = whole("samples", samples), inner_probability("failure", failure)
    points, groups = len(next(iter(mechanism.groups.values()))), len(mechanism.groups)
    apart = raised(math.sqrt((points * math.log(2) + math.log(groups / failure)) / (2 * samples)))
    apart = min(1.0, apart + TABLE_ROUNDING)
    return one_draw(epsilon=0.0, total_variations=(apart, apart), deltas=(apart, apart))
