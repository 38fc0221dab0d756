"""Quantiles from a binary tree of bins: each person reports the node of the value at one random level.

A node's share is estimated from the people of its own level, and, as the sum over its parts, from the people of each
level below; these estimates are averaged with weights by variance. The means of two children differ from half of their
parent's by ±d, d = (mean of the left − mean of the right) / 2. So the shares below edges follow by halving: F(middle) =
(F(left end) + F(right end)) / 2 + d, from F = 0 and F = 1 at the two ends. With equal variances in a level this is
least squares (Hay, Rastogi, Miklau, Suciu 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from tightrope.errors import InputError
from tightrope.local.mechanisms.local_hashing import Hashing, hashing
from tightrope.local.mechanisms.response import Response, k_randomized_response
from tightrope.local.parts.estimates import Shares, simultaneous_z_score
from tightrope.local.parts.losses import Change, LocalMechanism, checked_epsilon, join_report_changes
from tightrope.local.parts.values import check_bounds, check_categories, check_reals, check_report_array
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_inner_probability, check_integer
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below

Oracle = Response | Hashing
MOST_LEVELS = 16


@dataclass(frozen=True, slots=True)
class LevelNoise:
    """A bound on variances in a level: Var Σ w_v (estimate of v) ≤ Σ w_v² (``base`` + ``slope`` f_v)."""

    base: float
    slope: float

    @classmethod
    def from_oracle(cls, oracle: Oracle, people: int) -> LevelNoise:
        """Return the bound for a level's estimates, for people drawn from a population.

        A report supports v with probability r = q + (p − q) f_v. The categories of a response exclude each other:
        Var Σ w_v [report is v] = Σ w² r − (Σ w r)². Supports by hashing are treated as independent.
        """
        keep, other = float(oracle.true_support_probability), float(oracle.false_support_probability)
        gain = keep - other
        if isinstance(oracle, Response):
            return cls(other / gain**2 / people, 1 / gain / people)
        return cls(other * (1 - other) / gain**2 / people, (1 - 2 * other) / gain / people)


@dataclass(frozen=True, slots=True, eq=False)
class HalfMoments:
    """Estimates of F at the ends of all nodes of a level.

    ``left``, ``right``: weight of a person of level l, in this node, in the estimate at each end, shape [levels,
    nodes]. ``of_left``, ``of_both``, ``of_right``: second moments of the two estimates, shape [nodes] each.
    """

    left: Floats
    right: Floats
    of_left: Floats
    of_both: Floats
    of_right: Floats


def shares_below_edges(shares: Sequence[Floats], noises: Sequence[LevelNoise]) -> Floats:
    """Return the unbiased shares below the inner edges 1..2^L − 1, from estimates of levels with 2, 4, …, 2^L nodes.

    >>> two, four = np.array([0.4, 0.6]), np.array([0.1, 0.3, 0.2, 0.4])
    >>> shares_below_edges([two, four], [LevelNoise(1.0, 0.0)] * 2).round(12).tolist()
    [0.1, 0.4, 0.6]
    """
    node_weights = _node_weights(noises)
    means, mean = [], shares[-1]
    for level in range(len(shares) - 1, -1, -1):
        if level < len(shares) - 1:
            own = node_weights[level]
            mean = own * shares[level] + (1 - own) * mean.reshape(-1, 2).sum(axis=1)
        means.append(mean)
    edges = np.array([0.0, 1.0])
    for mean in reversed(means):
        pairs = mean.reshape(-1, 2)
        middle = (edges[:-1] + edges[1:] + pairs[:, 0] - pairs[:, 1]) / 2
        edges = np.append(np.stack([edges[:-1], middle], axis=1).ravel(), 1.0)
    return np.asarray(edges[1:-1])


def edge_variances(bins: Floats, noises: Sequence[LevelNoise]) -> Floats:
    """Return upper bounds on the variances of ``shares_below_edges`` if the bins have the shares ``bins``.

    The shape is [2^L − 1].

    An estimate is a weighted sum over people. Halving a node changes the weights by ± α_l / 2 in its two children only.
    So the weights in the estimates at the ends of a node are constant in the node, and second moments follow by halving
    too.
    """
    node_weights, depth = _node_weights(noises), len(noises)
    zero = np.zeros((depth, 1))
    ends, variances = HalfMoments(zero, zero, *np.zeros((3, 1))), np.zeros(2)
    for level in range(depth):
        # The weight of each level in the means of this one, shape [levels]; weights add up to 1.
        level_weights, remaining = np.zeros(depth), 1.0
        for deeper in range(level, depth):
            level_weights[deeper] = remaining * node_weights[deeper]
            remaining *= 1 - node_weights[deeper]
        # Σ (base + slope f) over the parts of each node of this level, for each level from this one, [levels, nodes].
        nodes = 2 << level
        shares = bins.reshape(nodes, -1).sum(axis=1)
        rows = [
            noise.base * 2.0 ** max(below - level, 0) + noise.slope * shares if below >= level else np.zeros(nodes)
            for below, noise in enumerate(noises)
        ]
        # The ends of the children: F(middle) = (F(left) + F(right)) / 2 + d, d of weight `step` and −`step`.
        step = level_weights[:, None] / 2
        part_sums = np.array(rows)
        middle = (ends.left + ends.right) / 2
        total, balance = part_sums[:, ::2] + part_sums[:, 1::2], part_sums[:, ::2] - part_sums[:, 1::2]
        with_left = (ends.of_left + ends.of_both) / 2 + np.sum(step * balance * ends.left, axis=0)
        with_right = (ends.of_both + ends.of_right) / 2 + np.sum(step * balance * ends.right, axis=0)
        average = (ends.of_left + 2 * ends.of_both + ends.of_right) / 4
        of_middle = average + np.sum(step * (2 * balance * middle + step * total), axis=0)
        ends = HalfMoments(
            left=_interleave_children(ends.left, middle - step),
            right=_interleave_children(middle + step, ends.right),
            of_left=_interleave_children(ends.of_left, of_middle),
            of_both=_interleave_children(with_left, with_right),
            of_right=_interleave_children(of_middle, ends.of_right),
        )
        variances = np.append(np.stack([variances[:-1], ends.of_right[::2]], axis=1).ravel(), 0.0)
    return np.asarray(variances[1:-1])


def _node_weights(noises: Sequence[LevelNoise]) -> list[float]:
    """Return for each level the weight of a node's own estimate; the sum of its children's means has the rest."""
    weights, variance = [1.0], noises[-1].base
    for noise in reversed(noises[:-1]):
        children_variance = 2 * variance
        weights.append(children_variance / (children_variance + noise.base))
        variance = noise.base * weights[-1]
    return weights[::-1]


def _interleave_children(first: Floats, second: Floats) -> Floats:
    """Return the numbers of left and right children alternately, along the last axis."""
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class QuantileTree(LocalMechanism):
    """2^L bins of equal width in [lower, upper]; ``levels[l]`` is for the 2^(l+1) nodes of level l + 1.

    A report is a row: the level, which is uniform for every value, and the report of that level's mechanism.
    """

    epsilon: float
    lower: float
    upper: float
    levels: tuple[Oracle, ...]

    @property
    def bin_count(self) -> int:
        """The number of bins."""
        return 1 << len(self.levels)

    @property
    def report_change_probabilities(self) -> Change:
        """The change for two values that differ at every level; the level is public."""
        return join_report_changes(
            *((Fraction(1, len(self.levels)), oracle.report_change_probabilities) for oracle in self.levels)
        )

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint32]:
        """Return rows (level, report), shape [n, 2]; ``InputError`` unless all values lie in [lower, upper]."""
        numbers, randomness = check_reals("values", values, self.lower, self.upper), randomness or Stream()
        scaled = (numbers - self.lower) / (self.upper - self.lower) * self.bin_count
        leaves = np.minimum(scaled.astype(np.int64), self.bin_count - 1)
        out = np.empty((len(leaves), 2), dtype=np.uint32)
        out[:, 0] = uniform_below(len(self.levels), len(leaves), randomness)
        for level, oracle in enumerate(self.levels):
            chosen = out[:, 0] == level
            out[chosen, 1] = oracle.perturb(leaves[chosen] >> (len(self.levels) - level - 1), randomness)
        return out

    def shares_below_edges(self, reports: ArrayLike) -> tuple[Floats, Floats]:
        """Return the unbiased shares of people below the inner edges 1..bins − 1, and their standard deviations.

        Shape [bins − 1] each. All levels are combined into consistent shares; the deviations are for people who are
        drawn from a population.
        """
        share, noises = self._join_levels(reports)
        return share, self._edge_errors(_nearest_monotone(share), noises)

    def cumulative_shares(self, reports: ArrayLike) -> tuple[Floats, Floats]:
        """Return the nearest non-decreasing shares in [0, 1] (least squares), and their standard deviations.

        Their total squared error is at most that of the unbiased ones, but each may be biased.
        """
        share, noises = self._join_levels(reports)
        monotone = _nearest_monotone(share)
        return monotone, self._edge_errors(monotone, noises)

    def _join_levels(self, reports: ArrayLike) -> tuple[Floats, list[LevelNoise]]:
        rows = self._report_rows(reports)
        level_reports = [rows[rows[:, 0] == level, 1] for level in range(len(self.levels))]
        pairs = list(zip(self.levels, level_reports, strict=True))
        noises = [LevelNoise.from_oracle(oracle, len(part)) for oracle, part in pairs]
        shares = [oracle.estimate(part).value for oracle, part in pairs]
        return shares_below_edges(shares, noises), noises

    @staticmethod
    def _edge_errors(monotone: Floats, noises: list[LevelNoise]) -> Floats:
        return np.asarray(np.sqrt(edge_variances(np.diff(monotone, prepend=0.0, append=1.0), noises)))

    def _report_rows(self, reports: ArrayLike) -> NDArray[np.int64]:
        rows = check_report_array(reports, 2)
        levels = check_categories("levels", rows[:, 0], len(self.levels))
        if not np.bincount(levels, minlength=len(self.levels)).min():
            raise InputError("reports of a level", 0, "at least 1", "ask more people, or use fewer bins")
        return rows.astype(np.int64)

    def estimate(self, reports: ArrayLike, at: ArrayLike = 0.5, *, confidence: float = 0.95) -> Shares:
        """Return the quantiles ``at`` with intervals, each with the shape of ``at``.

        The value is the middle of the bin in which ``cumulative_shares`` reaches p. The ends are the first edge whose
        share may be p or more and the last one whose share may be below p, from their standard deviations: so the
        quantile is outside of either end with probability (1 − confidence) / 2. Raises ``InputError`` unless every p is
        strictly between 0 and 1.
        """
        share, error = self.cumulative_shares(reports)
        half = simultaneous_z_score(confidence) * error
        levels = [check_inner_probability("at", p) for p in np.asarray(at).ravel().tolist()]
        intervals = np.array([self._quantile_interval(p, share, half) for p in levels]).reshape(-1, 3)
        value, lower, upper = (column.reshape(np.shape(at)) for column in intervals.T)
        return Shares(value, lower, upper, len(np.asarray(reports)), confidence)

    def _quantile_interval(self, p: float, share: Floats, half: Floats) -> tuple[float, float, float]:
        """Return the value and the ends; F is exactly 0 at the first edge and 1 at the last."""
        middle, low, high = (np.concatenate([[0.0], part, [1.0]]) for part in (share, share - half, share + half))
        high[0], low[-1] = 0.0, 1.0
        first, last = int(np.argmax(high >= p)) - 1, int(np.flatnonzero(low < p)[-1]) + 1
        reached = int(np.argmax(middle >= p))
        return self._edge_value(reached - 0.5), self._edge_value(first), self._edge_value(last)

    def _edge_value(self, number: float) -> float:
        return self.lower + (self.upper - self.lower) * number / self.bin_count


def quantiles(epsilon: float, *, bounds: tuple[float, float], levels: int = 10) -> QuantileTree:
    """Return a mechanism for quantiles in bins of width / 2^levels, ε-LDP (Cormode, Kulkarni, Srivastava 2019).

    Each level has the better of randomized response and hashing. Raises ``InputError`` unless ε > 0 is finite,
    lower < upper and 1 ≤ levels ≤ 16.

    >>> import numpy as np
    >>> mechanism = quantiles(2.0, bounds=(0.0, 100.0), levels=5)
    >>> answer = mechanism.estimate(mechanism.perturb(np.linspace(0, 100, 20_000)), [0.25, 0.5])
    >>> bool(np.all((answer.lower <= answer.value) & (answer.value <= answer.upper)))
    True
    """
    epsilon, depth = checked_epsilon(epsilon), check_integer("levels", levels)
    if not depth <= MOST_LEVELS:
        raise InputError("levels", levels, f"at most {MOST_LEVELS}", "the noise hides finer bins")
    lower, upper = check_bounds(bounds)
    mechanisms: list[Oracle] = []
    for k in (2 << level for level in range(depth)):
        candidates: tuple[Oracle, Oracle] = (k_randomized_response(epsilon, k), hashing(epsilon, k))
        mechanisms.append(min(candidates, key=lambda oracle: oracle.mean_variance))
    return QuantileTree(epsilon, lower, upper, tuple(mechanisms))


def _nearest_monotone(share: Floats) -> Floats:
    """Return the nearest non-decreasing sequence in [0, 1]."""
    return np.asarray(np.clip(isotonic_regression(share).x, 0.0, 1.0))
