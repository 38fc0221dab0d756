"""One law from the noisy shares of all levels of a binary tree: where a node is asked for, and its parts are, too.

A node's share is estimated by the people of its own level, and by those of each level below from its parts: ``means``
joins them, each by its variance. Two children differ from halves of their parent by plus and minus
d = (mean of the left − mean of the right) / 2, so the shares below edges are found by halving:
F(middle) = (F(left end) + F(right end)) / 2 + d, from F = 0 and F = 1 at the two ends. With equal variances in a level
that is least squares (Hay, Rastogi, Miklau, Suciu 2010). A level says ``Noise`` of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Noise:
    """A sum Σ w_v (estimate of v) over a level's nodes has at most the variance Σ w_v² (``base`` + ``slope`` f_v)."""

    base: float
    slope: float


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Ends of all nodes of a level: what a person of level l in the node weighs at the ``left`` and the ``right`` one,
    [l, nodes]; and the second moments of the estimates there, [nodes] each.
    """

    left: Floats
    right: Floats
    of_left: Floats
    of_both: Floats
    of_right: Floats


def below_edges(shares: Sequence[Floats], noises: Sequence[Noise]) -> Floats:
    """Shares below the inner edges 1..2^L − 1, unbiased, from the estimates of levels with 2, 4, …, 2^L nodes.

    >>> two, four = np.array([0.4, 0.6]), np.array([0.1, 0.3, 0.2, 0.4])
    >>> below_edges([two, four], [Noise(1.0, 0.0)] * 2).round(12).tolist()
    [0.1, 0.4, 0.6]
    """
    own = _weights(noises)
    means, mean = [], shares[-1]
    for level in range(len(shares) - 1, -1, -1):
        if level < len(shares) - 1:
            mean = own[level] * shares[level] + (1 - own[level]) * mean.reshape(-1, 2).sum(axis=1)
        means.append(mean)
    edges = np.array([0.0, 1.0])
    for mean in reversed(means):
        pairs = mean.reshape(-1, 2)
        middle = (edges[:-1] + edges[1:] + pairs[:, 0] - pairs[:, 1]) / 2
        edges = np.append(np.stack([edges[:-1], middle], axis=1).ravel(), 1.0)
    return np.asarray(edges[1:-1])


def variances(bins: Floats, noises: Sequence[Noise]) -> Floats:
    """Upper bounds on the variances of ``below_edges``, shape [2^L − 1], where the bins have the shares ``bins``.

    An estimate is a sum over people of what they weigh, ± α_l / 2 in the two children of a node that is halved and
    nothing elsewhere: so those of the two ends are constant in a node, and moments follow by halving, too.
    """
    own, depth = _weights(noises), len(noises)
    zero = np.zeros((depth, 1))
    ends, found = Halves(zero, zero, *np.zeros((3, 1))), np.zeros(2)
    for level in range(depth):
        ends = _halved(ends, _alphas(own, level)[:, None] / 2, _measure(bins, noises, level))
        found = np.append(np.stack([found[:-1], ends.of_right[::2]], axis=1).ravel(), 0.0)
    return np.asarray(found[1:-1])


def _weights(noises: Sequence[Noise]) -> list[float]:
    """How much a node's own estimate counts beside the sum of its children's means, by level."""
    own, spread = [1.0], noises[-1].base
    for noise in reversed(noises[:-1]):
        parts = 2 * spread
        own.append(parts / (parts + noise.base))
        spread = noise.base * own[-1]
    return own[::-1]


def _alphas(own: Sequence[float], level: int) -> Floats:
    """How much each level counts in the means of this one, shape [levels]; they add up to 1."""
    out, left = np.zeros(len(own)), 1.0
    for below in range(level, len(own)):
        out[below] = left * own[below]
        left *= 1 - own[below]
    return out


def _measure(bins: Floats, noises: Sequence[Noise], level: int) -> Floats:
    """Σ (base + slope f) over the parts of each node of this level, in each level below it, [levels, nodes]."""
    nodes = 2 << level
    shares = bins.reshape(nodes, -1).sum(axis=1)
    rows = [
        noise.base * 2.0 ** max(below - level, 0) + noise.slope * shares if below >= level else np.zeros(nodes)
        for below, noise in enumerate(noises)
    ]
    return np.array(rows)


def _halved(ends: Halves, step: Floats, measure: Floats) -> Halves:
    """The ends of the children: F(middle) = (F(left) + F(right)) / 2 + d, d of weight ``step`` and −``step``."""
    middle = (ends.left + ends.right) / 2
    total, balance = measure[:, ::2] + measure[:, 1::2], measure[:, ::2] - measure[:, 1::2]
    with_left = (ends.of_left + ends.of_both) / 2 + np.sum(step * balance * ends.left, axis=0)
    with_right = (ends.of_both + ends.of_right) / 2 + np.sum(step * balance * ends.right, axis=0)
    average = (ends.of_left + 2 * ends.of_both + ends.of_right) / 4
    of_middle = average + np.sum(step * (2 * balance * middle + step * total), axis=0)
    return Halves(
        left=_woven(ends.left, middle - step),
        right=_woven(middle + step, ends.right),
        of_left=_woven(ends.of_left, of_middle),
        of_both=_woven(with_left, with_right),
        of_right=_woven(of_middle, ends.of_right),
    )


def _woven(first: Floats, second: Floats) -> Floats:
    """Numbers of left and right children in turn, along the last axis."""
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)
