"""What two laws have in common: 1 − δ(ε) = ∫ min(dP, e^ε dQ), and both orders of a pair for what asks for it."""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch

import numpy as np

from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.curves.tradeoff import Order
from tightrope.privacy.engines.choice import choose
from tightrope.privacy.engines.closed_form import ClosedForm
from tightrope.privacy.engines.engine import Engine
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.flat import Flat
from tightrope.privacy.laws.interval import Interval, outward

Directed = tuple[Composition, Engine]
ENGINES_KEPT = 8
"""Engines of reverse orders that are kept."""


@singledispatch
def both(engine: Engine, epsilon: float) -> tuple[Interval, Interval]:
    """Bounds on δ(ε) and on 1 − δ(ε), ε ≥ 0: by subtraction, unless an engine knows better."""
    return _with_rest(engine.delta(epsilon))


@both.register
def _(engine: ClosedForm, epsilon: float) -> tuple[Interval, Interval]:
    place, found, flat = np.array([epsilon]), engine.delta(epsilon), engine.law.flat
    if flat is not None:
        return found, outward(*_flat_overlap(flat, epsilon, engine.law.slack))
    rest = engine.law.overlaps((place, place))
    return _with_rest(found) if rest is None else (found, (float(rest[0][0]), float(rest[1][0])))


def _with_rest(delta: Interval) -> tuple[Interval, Interval]:
    return delta, (outward(1 - delta[1], 0.0)[0], outward(1 - delta[0], 0.0)[1])


def _flat_overlap(flat: Flat, epsilon: float, slack: float) -> tuple[float, float]:
    """∫ min(e^{l/2}, e^{ε − l/2}) of the law tilted by e^{−l/2}, atoms and density, with its error."""
    end, atom, density = flat.epsilon, flat.atom, flat.spread / flat.epsilon
    if epsilon >= end:
        value = 2 * atom * math.cosh(end / 2) + 2 * density * math.sinh(end / 2)
    else:
        below, above = -math.expm1(-(end + epsilon) / 2), -math.expm1((epsilon - end) / 2)
        value = atom * (math.exp(epsilon - end / 2) + math.exp(-end / 2)) + density * math.exp(epsilon / 2) * (
            below + above
        )
    return value, value * (4 * slack + ROUND_OFF * (32 + 2 * (end + epsilon)))


def both_orders(directed: Directed, known: list[Directed]) -> tuple[Order, Order] | None:
    """A direction and its reverse, by an engine that is known where it is for that; None where masses are lost."""
    total, engine = directed
    if not all(law.reversible for law in total.laws if isinstance(law, Atoms)):
        return None
    reverse = total.reverse()
    same = (made for other, made in known if other.laws == reverse.laws and other.counts == reverse.counts)
    back = next(same, None) or _reversed(total)
    return _order(engine, total), _order(back, reverse)


def _order(engine: Engine, total: Composition) -> Order:
    return Order(lambda epsilon: both(engine, epsilon), total.infinite_bounds)


@lru_cache(maxsize=ENGINES_KEPT)
def _reversed(total: Composition) -> Engine:
    return choose(total.reverse())
