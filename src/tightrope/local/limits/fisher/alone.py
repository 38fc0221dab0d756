"""The most information of a report whose maker has seen no other report: the maximum outside the expectation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize

from tightrope.local.limits.fisher.columns import Columns
from tightrope.local.limits.fisher.stieltjes import mean_reciprocal
from tightrope.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Trace:
    """``most``: an upper bound on the trace, averaged over the prior; ``price``: of a unit of total variation, ≥ 0."""

    most: float
    price: float


@lru_cache(maxsize=4096)
def alone(columns: Columns, a: float) -> Trace:
    """T_m(a) for people on their own: the prior is Dirichlet(a, …, a), a > 2.

    ``max_d d(m−d)/m · E 1/(u + S) / (u + d/m)``, S ~ Beta(da, (m−d)a); under a total variation the least over ν ≥ 0 of
    ``νη + max_d d(m−d)/m · (E 1/(u + S) − ν/(m−1))₊ / (u + d/m)``. Any ν gives a bound.

    >>> from tightrope.certificates.guarantee import Guarantee
    >>> round(alone(Columns.of(Guarantee(1.0), 7), 1e6).most, 6)  # 7 s(1−s)(e−1)²/(1+s(e−1))² at s = 2/7
    1.897456
    """
    if columns.u == math.inf:
        return Trace(0.0, 0.0)
    first, last = columns.blocks
    dense = columns.densest(first, last)
    telling = mean_reciprocal(columns.u, first * a, (columns.m - first) * a)
    free = float(np.max(dense * telling))
    if columns.eta >= 1:
        return Trace(free, 0.0)
    highest = (columns.m - 1) * float(telling[0])
    found = optimize.minimize_scalar(
        lambda price: _priced(columns, dense, telling, price), bounds=(0.0, highest), method="bounded",
        options={"xatol": 1e-9 * highest},
    )  # fmt: skip
    priced = [Trace(_priced(columns, dense, telling, price), price) for price in (0.0, float(found.x), highest)]
    return min(priced, key=lambda one: one.most)


def _priced(columns: Columns, dense: Floats, telling: Floats, price: float) -> float:
    left = float(np.max(dense * (telling - price / (columns.m - 1))))
    return price * columns.eta + max(0.0, left)
