"""From unbiased estimates to a distribution: what is gained in shape is lost in truth on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.local.parts.estimates import Shares
from tightrope.numerics.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Biased:
    """Shares ≥ 0 that add up to 1, shape [k]: **biased**, rare values upwards, so it has no intervals.

    Do not average these over groups or days: average the unbiased ones, then project.
    """

    value: Floats


def on_simplex(shares: Shares) -> Biased:
    """The distribution nearest to the estimates: (f − t)₊ with t such that it adds up to 1.

    Its squared error is at most that of the estimates, for every true distribution, since a projection on a convex set
    only brings things together. A function of the reports: it costs no privacy.

    Raises ``InputError`` for anything but estimates, at least one and all finite.

    >>> on_simplex(Shares(np.array([0.9, 0.4, -0.3]), np.zeros(3), np.ones(3), 100)).value.round(9).tolist()
    [0.75, 0.25, 0.0]
    """
    if not isinstance(shares, Shares) or np.ndim(shares.value) != 1 or not np.size(shares.value):
        raise InputError("type of shares", type(shares).__name__, "estimated Shares of one value or more")
    strange = int(np.count_nonzero(~np.isfinite(shares.value)))
    if strange:
        raise InputError("shares that are not finite", strange, f"0 of {len(shares.value)}")
    falling = np.sort(shares.value)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    threshold = excess[np.flatnonzero(falling > excess)[-1]]
    return Biased(np.maximum(shares.value - threshold, 0.0))
