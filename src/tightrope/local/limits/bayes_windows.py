"""Bayes limits for many people: the risk is at least what it is when somebody tells in which window Θ lies.

Cut into windows of width about 1/√(nκ), n reports say little about where in its window Θ is, however much they say
about the window: this keeps the rate 1/√(nκ), where the bound for the whole prior falls back to that of open values.
"""

from __future__ import annotations

import numpy as np

from tightrope.local.limits.bayes_problem import Cells
from tightrope.local.limits.limit import Cost
from tightrope.local.limits.rare_event import largest_share
from tightrope.numerics.arrays import Floats

CELLS = 32
"""Cells a window."""
WIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Windows tried, times √(nκ)."""
MOST_WINDOWS = 1 << 15


def risk_within(cells: Cells, windows: int, information: float, cost: Cost) -> float:
    """Σ_w P(w) E ℓ, each at least Σ_j (ℓ(ζ_j) − ℓ(ζ_{j−1})) (1 − p_j): any window of width 2ζ < 2ζ_j touches at most j
    of its cells, and p_j is the largest p with KL(p‖j/cells) ≤ ``information`` · I(Θ; X | w).

    ``cells``: a multiple of ``windows``, all of equal weight; ``information`` = nκ.
    """
    low, high = cells.low.reshape(windows, -1), cells.high.reshape(windows, -1)
    count = low.shape[1]
    shared = information * _shared(cells, windows)
    touched = np.arange(1, count)
    reach = np.stack([np.min(low[:, j:] - high[:, :-j], axis=1) for j in touched], axis=1) / 2
    # One cell may be touched at any radius, j + 1 only from the reach of j on. Infinite outer ends are not used.
    missed = 1 - largest_share(shared[:, None], np.broadcast_to(touched / count, reach.shape))
    costs = np.array([cost(max(value, 0.0)) for value in reach.ravel().tolist()]).reshape(reach.shape)
    steps = np.diff(costs, axis=1, prepend=cost(0.0))
    return float(np.sum(np.maximum(steps, 0.0) * np.maximum(missed, 0.0)) / windows)


def windows_for(information: float) -> list[int]:
    """Numbers of windows worth trying when nκ is this."""
    counts = {int(np.clip(factor * np.sqrt(information), 1, MOST_WINDOWS)) for factor in WIDTHS}
    return sorted(counts)


def _shared(cells: Cells, windows: int) -> Floats:
    """I(Θ; X | window) in nats, shape [windows], from all nodes of its cells."""
    laws = cells.laws.reshape(windows, -1, cells.laws.shape[2])
    weights = np.tile(cells.shares, cells.laws.shape[0] // windows)
    weights = weights / weights.sum()
    centre = np.einsum("wnv,n->wv", laws, weights)[:, None, :]
    ratio = np.log(np.where(laws > 0, laws, 1.0)) - np.log(np.where(laws > 0, centre, 1.0))
    shared: Floats = np.einsum("wnv,n->w", laws * ratio, weights)
    return np.maximum(shared, 0.0) * (1 + 1e-9) + 1e-15
