"""Random laws, triples and channels to try a theorem on, from the operating system's randomness."""

from __future__ import annotations

import math

import numpy as np

from tightrope.channels import Channel
from tightrope.documents import Guarantee
from tightrope.numerics.arrays import Floats
from tightrope.randomness.bits import Stream

RARE = 0.15
"""How often something extreme is drawn on purpose: bounds are met at the edges."""


def uniforms(*shape: int) -> Floats:
    """Uniform in (0, 1), of this shape."""
    words = Stream().words(int(np.prod(shape)))
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)


def between(low: float, high: float) -> float:
    """One number in an interval."""
    return low + (high - low) * float(uniforms(1)[0])


def whole(low: int, high: int) -> int:
    """One of low, …, high."""
    return low + int((high - low + 1) * float(uniforms(1)[0]))


def law(size: int) -> Floats:
    """A law on so many points, of any evenness; every point has some mass."""
    weights = (-np.log(uniforms(size))) ** between(0.3, 4.0) + 1e-9
    return np.asarray(weights / weights.sum())


def laws(count: int, size: int) -> Floats:
    """Several laws on the same points, shape [count, size]."""
    return np.stack([law(size) for _ in range(count)])


def pair(size: int) -> tuple[Floats, Floats]:
    """Two laws on the same points."""
    return law(size), law(size)


def triple(*, pure: bool = False) -> Guarantee:
    """(ε, δ, η), each anywhere it may be; η at its largest now and then."""
    epsilon = math.exp(between(math.log(0.05), math.log(4.0)))
    delta = 0.0 if pure else between(0.0, 0.4) ** 2
    most = delta + (1 - delta) * math.tanh(epsilon / 2)
    least = delta + (most - delta) / 100  # below, differences of probabilities have few digits
    eta = most if _rarely() else between(least, most)
    return Guarantee(epsilon, delta, eta)


def private_channel(guarantee: Guarantee, inputs: int, outputs: int) -> Channel:
    """A random ε-LDP channel with total variation at most η, on the edge of one of the two constraints.

    Rows are pulled towards their mean until every column keeps the ratio e^ε and no two rows differ by more than η.
    """
    sure = [0, 1, *(whole(0, outputs - 1) for _ in range(inputs - 2))]
    rows = np.eye(outputs)[sure] if _rarely() else laws(inputs, outputs)
    centre = rows.mean(axis=0) if _rarely() else law(outputs)
    ratio = math.exp(guarantee.epsilon)
    room = (ratio - 1) * centre
    needed = rows.max(axis=0) - ratio * rows.min(axis=0) + room
    share = float(np.min(np.where(needed > 0, room / np.maximum(needed, 1e-300), 1.0)))
    apart = max(float(np.abs(p - q).sum()) / 2 for p in rows for q in rows)
    share = min(1.0, share, guarantee.total_variation / apart if apart > 0 else 1.0)
    mixed = (1 - share) * centre + share * rows
    return Channel(mixed / mixed.sum(axis=1, keepdims=True))


def any_channel(inputs: int, outputs: int) -> Channel:
    """A channel that need not be private at all."""
    return Channel(laws(inputs, outputs))


def worst_of(values: list[float]) -> float:
    """The largest, NaN counting as infinite: nothing that went wrong may look small."""
    return max(math.inf if math.isnan(value) else value for value in values)


def _rarely() -> bool:
    return float(uniforms(1)[0]) < RARE
