"""Entropy, mutual information and capacity (Blahut–Arimoto with a certified gap) of a matrix, in nats."""

from __future__ import annotations

import numpy as np
from scipy.special import entr, rel_entr

from tightrope.numerics.arrays import Floats
from tightrope.privacy.curves.bounds import Bounds

GAP = 1e-12
"""Where the iteration stops, relative to the capacity."""
ROUNDS = 3_000
LONGER = 1.3
"""By how much a step that gained grows."""
LONGEST_STEP = 1e6


def entropy(p: Floats) -> float:
    """H(p) = −Σ p log p.

    >>> round(entropy(np.array([0.5, 0.5])), 12)
    0.69314718056
    """
    return float(entr(p).sum())


def mutual_information(rows: Floats, prior: Floats) -> float:
    """I(X; Z) = Σ_x p(x) KL(K(x)‖pK)."""
    return max(0.0, float(prior @ gains(rows, prior)))


def gains(rows: Floats, prior: Floats) -> Floats:
    """KL(K(x)‖pK) for each input x, shape [inputs]; ∞ where pK misses an output of K(x)."""
    return np.asarray(rel_entr(rows, prior @ rows).sum(axis=1), dtype=np.float64)


def capacity(rows: Floats) -> Bounds:
    """The maximum over priors of I(X; Z), between I at a prior and max_x KL(K(x)‖pK) (Blahut–Arimoto; Gallager).

    Any prior gives valid bounds. The iteration p ← p e^{t KL(K(x)‖pK)} brings them together, t = 1 where a longer step
    loses: to 1e−12 relative, or as far as ``ROUNDS`` go – the gap is in the answer. Rounding is added on both sides.

    >>> low, high = capacity(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> round(low, 9) == round(high, 9) == 0.130812036
    True
    """
    prior, step = np.full(len(rows), 1 / len(rows)), 1.0
    gain = gains(rows, prior)
    low, high = float(prior @ gain), float(gain.max())
    for _ in range(ROUNDS):
        if high - low <= GAP * high + 1e-16:
            break
        moved = _moved(prior, gain, step)
        new = gains(rows, moved)
        value = float(moved @ new)
        if value < low and step > 1:
            step = 1.0
            continue
        prior, gain, low, step = moved, new, max(low, value), min(step * LONGER, LONGEST_STEP)
        high = min(high, float(gain.max()))
    rounding = 4e-16 * (rows.shape[1] + len(rows)) * (1 + high)
    return Bounds(max(0.0, low - rounding), high + rounding)


def _moved(prior: Floats, gain: Floats, step: float) -> Floats:
    """The prior with more weight where reports say more. Weights stay above 0: what is gone would never return."""
    weights = np.maximum(prior * np.exp(step * (gain - gain.max())), 1e-300)
    return np.asarray(weights / weights.sum())
