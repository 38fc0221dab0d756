"""The loss of a mixture, l ↦ log(1 − q + q e^l), and the way back, each to some roundings of itself.

Elementary functions are taken to be right to two units in the last place (4u). Then e^l − 1, its product or quotient
with q, and log1p of that are off by 12u together, as x / ((1 + x) log1p(x)) ≤ 1 passes on no more than came in.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.law import Ends
from tightrope.privacy.laws.loss_cells import HALF

INNER = 16 * ROUND_OFF
"""Relative error of a mapped loss, that of a rate which is a rounded quotient included."""
LEAST_ERROR = 4 * 5e-324
"""Beside it: what numbers below double precision are off by."""
STEEP = 30.0
"""Beyond this, e^l − 1 is e^l but for roundings of the logarithm."""
OVERFLOW = 1e290
SHIFT = 2.0**300
"""Powers of two are exact: numbers below double precision keep their digits on the way."""


def mixed(loss: Floats, rate: float) -> Floats:
    """log(1 − q + q e^l), to ``INNER`` of itself, for any finite l and 0 < q < 1.

    >>> mixed(np.array([-50.0, 0.0, 1e-20, 1e3]), 1 - 2.0**-30).round(9).tolist()
    [-20.794415417, 0.0, 0.0, 999.999999999]
    """
    loss = np.asarray(loss, dtype=np.float64)
    with np.errstate(over="ignore"):
        half = np.exp(loss / 2)
        steep = (rate * SHIFT) * half * (half / SHIFT) - rate
        growth = np.where(loss > STEEP, steep, rate * np.expm1(np.minimum(loss, STEEP)))
    far = growth > OVERFLOW
    near = (growth > -HALF) | (rate <= HALF)
    plain = np.log1p(np.where(~far & near, growth, 0.0))
    low = np.log(np.where(near, 1.0, (1 - rate) + rate * np.square(np.minimum(half, 1.0))))  # losses below 0 alone
    return np.where(far, loss + math.log(rate), np.where(near, plain, low))


def slope(loss: float, rate: float) -> float:
    """What a change of l at or below ``loss`` is multiplied by at most: q e^l / (1 − q + q e^l) ≤ 1."""
    odds = loss + math.log(rate) - math.log1p(-rate) if rate < 1 else math.inf
    return 1.0 if odds > 0 else math.exp(max(odds, -740.0))


def asked_above(epsilon: Ends, rate: float) -> Ends:
    """ε' = log(1 + (e^ε − 1)/q), ε ≥ 0, from below and above: where a sampled law asks its base."""
    low = _asked_above(epsilon[0], rate)
    high = low if epsilon[0] is epsilon[1] else _asked_above(epsilon[1], rate)
    return _apart(low)[0], _apart(high)[1]


def _asked_above(epsilon: Floats, rate: float) -> Floats:
    with np.errstate(over="ignore"):
        reached = np.expm1(np.minimum(epsilon, STEEP)) / rate
    found = np.log1p(np.minimum(reached, OVERFLOW))
    far = (epsilon > STEEP) | (reached > OVERFLOW)
    if not far.any():
        return np.asarray(found)
    with np.errstate(divide="ignore"):
        tiny = epsilon + np.log(-np.expm1(-epsilon)) - math.log(rate)
    steep = epsilon - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(epsilon, STEEP)))
    return np.where(epsilon > STEEP, steep, np.where(far, tiny, found))


def asked_below(epsilon: Ends, rate: float) -> tuple[Ends, Ends]:
    """Both w = 1 − e^ε (1 − q) = q (1 − y), y = (e^ε − 1)(1 − q)/q, and ε' = ε − log(1 − y), ε ≥ 0, from both sides.

    Where y is one or more, w is 0 and ε' says nothing.
    """
    with np.errstate(over="ignore"):
        least, most = (
            _apart(np.expm1(np.minimum(end, 700.0)) / rate * (1 - rate))[side] for side, end in enumerate(epsilon)
        )
        weights = rate * np.maximum(1 - most, 0.0) * (1 - INNER), rate * np.maximum(1 - least, 0.0) * (1 + INNER)
    low, high = (
        _apart(end - np.log1p(-np.where(y < 1, y, 0.0)))[side]
        for side, (end, y) in enumerate(zip(epsilon, (least, most), strict=True))
    )
    return weights, (low, high)


def _apart(value: Floats) -> Ends:
    """A value ≥ 0 that is off by ``INNER`` of itself, from both sides."""
    return np.maximum(value * (1 - INNER) - LEAST_ERROR, 0.0), np.asarray(value * (1 + INNER) + LEAST_ERROR)
