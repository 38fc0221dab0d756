"""Channels to draw from: dense, sparse, unbounded, nearly constant; and triples to be within."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tightrope.channels import Channel
from tightrope.documents import Guarantee

Rng = np.random.Generator


def law(rng: Rng, size: int) -> NDArray[np.float64]:
    return rng.dirichlet(np.full(size, rng.choice([0.2, 1.0, 5.0])))


def channel(rng: Rng) -> Channel:
    """2 to 5 inputs, 2 to 6 outputs; one entry in five may be zero."""
    inputs, outputs = rng.integers(2, 6), rng.integers(2, 7)
    rows = rng.dirichlet(np.full(outputs, rng.choice([0.3, 1.0, 10.0, 1000.0])), inputs)
    if rng.random() < 0.5:
        rows[rng.random(rows.shape) < 0.2] = 0
        rows[:, 0] += 1e-3
    return Channel(rows / rows.sum(axis=1, keepdims=True))


def exact_triple(made: Channel, epsilon: float) -> Guarantee:
    """The triple of a channel at this ε: its own δ(ε) and η."""
    return Guarantee(epsilon, float(made.profile(epsilon)), made.total_variation)
