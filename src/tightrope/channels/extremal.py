"""Channels that attain the upper bounds of ``suprema``: optimal private mechanisms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tightrope.channels.channel import Channel
from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.numerics.distributions import normalize_distribution


def dominating_channel(guarantee: Guarantee) -> Channel:
    """Return the dominating pair of an (ε, δ, η) guarantee: a channel with two inputs and five outputs (GI eqs. 43–44).

    ``(δ, c e^ε, 1 − η − c, c, 0)`` with ``c = (η − δ)/(e^ε − 1)`` and its reverse. Every (ε, δ, η)-LDP channel on two
    inputs is this one followed by another (Blackwell).

    >>> best = dominating_channel(Guarantee(1.0, 0.05, 0.3))
    >>> round(best.kl_contraction, 6), round(best.total_variation, 12), round(best.contraction(math.e), 12)
    (0.165529, 0.3, 0.05)
    """
    delta = guarantee.delta
    low, high = _side_masses(guarantee)
    row = [delta, high, max(0.0, 1 - delta - high - low), low, 0.0]
    return Channel([row, row[::-1]])


def binary_with_erasure(p0: ArrayLike, p1: ArrayLike, guarantee: Guarantee) -> Channel:
    """Return the binary mechanism with erasure (GI eq. 31): the bit p1(x) > p0(x) through the dominating channel.

    It attains ``TV(M0, M1) = η TV(p0, p1)``, the largest for the triple (GI Prop. 2), for these two
    distributions, shape [inputs] each. Raises ``InputError`` for invalid distributions.

    >>> made = binary_with_erasure([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], Guarantee(1.0, 0.0, 0.3))
    >>> round(made.output_divergence("total_variation", [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]) / 0.3, 12)
    0.3
    """
    first = normalize_distribution("p0", p0)
    second = normalize_distribution("p1", p1, len(first))
    return Channel(dominating_channel(guarantee).matrix[(second > first).astype(np.intp)])


def three_input_channel(guarantee: Guarantee) -> Channel:
    """Return a channel with three inputs that attains every bound of ``suprema.between_outputs``.

    For δ = 0 and η ≤ (e^ε−1)/(e^ε+2) only. Its rows are those of the dominating channel and ``(s, s, 1 − 2s)`` with ``s
    = η/(e^ε−1)``. Two distributions at total variation t, whose common part is the third input, have likelihood ratios
    1 + t(e^ε − 1) in both directions (``docs/proofs/channels.md``). At the largest such η it is ternary randomized
    response. Raises ``InputError`` for other triples.

    >>> best = three_input_channel(Guarantee(1.0, 0.0, 0.3))
    >>> round(best.epsilon, 9), round(best.total_variation, 9)
    (1.0, 0.3)
    """
    most = math.expm1(guarantee.epsilon) / (math.exp(guarantee.epsilon) + 2)
    if guarantee.delta != 0 or not guarantee.total_variation <= most * (1 + 1e-12):
        raise InputError("guarantee", guarantee, f"one with delta=0 and total_variation <= {most:.6g}")
    low, high = _side_masses(guarantee)
    rest = max(0.0, 1 - low - high)
    return Channel([[high, low, rest], [low, high, rest], [low, low, 1 - 2 * low]])


def _side_masses(guarantee: Guarantee) -> tuple[float, float]:
    """Return (η − δ)/(e^ε − 1) and e^ε times that, without overflow; (0, 0) at ε = 0, where η = δ."""
    if guarantee.epsilon == 0:
        return 0.0, 0.0
    shrunk = math.exp(-guarantee.epsilon)
    high = (guarantee.total_variation - guarantee.delta) / -math.expm1(-guarantee.epsilon)
    return high * shrunk, high
