"""Random distributions, guarantees and channels for testing theorems, from the operating system's randomness."""

from __future__ import annotations

import math

import numpy as np

from tightrope.channels import Channel
from tightrope.documents import Guarantee
from tightrope.numerics.arrays import Floats
from tightrope.randomness.bits import Stream

EXTREME_PROBABILITY = 0.15
"""Probability of deliberately drawing an extreme case: bounds are tight at the extremes."""


def draw_uniforms(*shape: int) -> Floats:
    """Return uniform numbers in (0, 1), of this shape."""
    words = Stream().random_words(int(np.prod(shape)))
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53).reshape(shape)


def draw_between(low: float, high: float) -> float:
    """Return a random number in an interval."""
    return low + (high - low) * float(draw_uniforms(1)[0])


def draw_integer(low: int, high: int) -> int:
    """Return a random integer from low, …, high."""
    return low + int((high - low + 1) * float(draw_uniforms(1)[0]))


def random_distribution(size: int) -> Floats:
    """Return a random distribution on ``size`` points, of random evenness; every point has positive mass."""
    weights = (-np.log(draw_uniforms(size))) ** draw_between(0.3, 4.0) + 1e-9
    return np.asarray(weights / weights.sum())


def random_distributions(count: int, size: int) -> Floats:
    """Return several random distributions on the same points, shape [count, size]."""
    return np.stack([random_distribution(size) for _ in range(count)])


def random_distribution_pair(size: int) -> tuple[Floats, Floats]:
    """Return two random distributions on the same points."""
    return random_distribution(size), random_distribution(size)


def random_guarantee(*, pure: bool = False) -> Guarantee:
    """Return a random valid guarantee (ε, δ, η), η the total variation, which is sometimes at its maximum."""
    epsilon = math.exp(draw_between(math.log(0.05), math.log(4.0)))
    delta = 0.0 if pure else draw_between(0.0, 0.4) ** 2
    largest_eta = delta + (1 - delta) * math.tanh(epsilon / 2)
    smallest_eta = delta + (largest_eta - delta) / 100  # for smaller ones, differences of probabilities have few digits
    eta = largest_eta if _draws_extreme_case() else draw_between(smallest_eta, largest_eta)
    return Guarantee(epsilon, delta, eta)


def random_private_channel(guarantee: Guarantee, inputs: int, outputs: int) -> Channel:
    """Return a random ε-LDP channel with total variation at most η, for which one of the two constraints is tight.

    Rows are mixed with a common distribution until every column has ratios of at most e^ε and no two rows differ by
    more than η.
    """
    deterministic_outputs = [0, 1, *(draw_integer(0, outputs - 1) for _ in range(inputs - 2))]
    rows = np.eye(outputs)[deterministic_outputs] if _draws_extreme_case() else random_distributions(inputs, outputs)
    center = rows.mean(axis=0) if _draws_extreme_case() else random_distribution(outputs)
    ratio = math.exp(guarantee.epsilon)
    allowed = (ratio - 1) * center
    excess = rows.max(axis=0) - ratio * rows.min(axis=0) + allowed
    fraction = float(np.min(np.where(excess > 0, allowed / np.maximum(excess, 1e-300), 1.0)))
    largest_variation = max(float(np.abs(p - q).sum()) / 2 for p in rows for q in rows)
    fraction = min(1.0, fraction, guarantee.total_variation / largest_variation if largest_variation > 0 else 1.0)
    mixed = (1 - fraction) * center + fraction * rows
    return Channel(mixed / mixed.sum(axis=1, keepdims=True))


def random_channel(inputs: int, outputs: int) -> Channel:
    """Return a random channel without a privacy constraint."""
    return Channel(random_distributions(inputs, outputs))


def worst_of(values: list[float]) -> float:
    """Return the largest value, with NaN treated as infinite so that failures are visible."""
    return max(math.inf if math.isnan(value) else value for value in values)


def _draws_extreme_case() -> bool:
    """Return True with probability ``EXTREME_PROBABILITY``."""
    return float(draw_uniforms(1)[0]) < EXTREME_PROBABILITY
