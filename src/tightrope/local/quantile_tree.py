"""Quantiles: each person tells, of one random level of a binary tree of bins, which node the value is in."""

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
from tightrope.local.parts.losses import Change, LocalMechanism, checked_epsilon, join_changes
from tightrope.local.parts.values import check_bounds as checked_between
from tightrope.local.parts.values import check_categories, check_reals, report_rows
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, inner_probability
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below

# One law from the noisy shares of all levels of a binary tree: where a node is asked for, and its parts are, too.
#
# A node's share is estimated by the people of its own level, and by the people of each level below from its parts:
# ``means`` joins them, each by its variance. Two children differ from halves of their parent by plus and minus d =
# (mean of the left − mean of the right) / 2, so the shares below edges are found by halving: F(middle) = (F(left end)
# + F(right end)) / 2 + d, from F = 0 and F = 1 at the two ends. With equal variances in a level that is least squares
# (Hay, Rastogi, Miklau, Suciu 2010). A level says ``LevelNoise`` of itself.


@dataclass(frozen=True, slots=True)
class LevelNoise:
    """A sum Σ w_v (estimate of v) over a level's nodes has at most the variance Σ w_v² (``base`` + ``slope`` f_v)."""

    base: float
    slope: float


@dataclass(frozen=True, slots=True, eq=False)
class HalfMoments:
    """Ends of all nodes of a level: what a person of level l in the node weighs at the ``left`` and the ``right`` one,
    [l, nodes]; and the second moments of the estimates there, [nodes] each.
    """

    left: Floats
    right: Floats
    of_left: Floats
    of_both: Floats
    of_right: Floats


def below_edges(shares: Sequence[Floats], noises: Sequence[LevelNoise]) -> Floats:
    """Shares below the inner edges 1..2^L − 1, unbiased, from the estimates of levels with 2, 4, …, 2^L nodes.

    >>> two, four = np.array([0.4, 0.6]), np.array([0.1, 0.3, 0.2, 0.4])
    >>> below_edges([two, four], [LevelNoise(1.0, 0.0)] * 2).round(12).tolist()
    [0.1, 0.4, 0.6]
    """
    own = _node_weights(noises)
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


def edge_variances(bins: Floats, noises: Sequence[LevelNoise]) -> Floats:
    """Upper bounds on the variances of ``below_edges``, shape [2^L − 1], where the bins have the shares ``bins``.

    An estimate is a sum over people of what they weigh, ± α_l / 2 in the two children of a node that is halved and
    nothing elsewhere: so those of the two ends are constant in a node, and moments follow by halving, too.
    """
    own, depth = _node_weights(noises), len(noises)
    zero = np.zeros((depth, 1))
    ends, found = HalfMoments(zero, zero, *np.zeros((3, 1))), np.zeros(2)
    for level in range(depth):
        # How much each level counts in the means of this one, shape [levels]; they add up to 1.
        out, left = np.zeros(len(own)), 1.0
        for deeper in range(level, len(own)):
            out[deeper] = left * own[deeper]
            left *= 1 - own[deeper]
        # Σ (base + slope f) over the parts of each node of this level, in each level below it, [levels, nodes].
        nodes = 2 << level
        shares = bins.reshape(nodes, -1).sum(axis=1)
        rows = [
            noise.base * 2.0 ** max(below - level, 0) + noise.slope * shares if below >= level else np.zeros(nodes)
            for below, noise in enumerate(noises)
        ]
        # The ends of the children: F(middle) = (F(left) + F(right)) / 2 + d, d of weight `step` and −`step`.
        step = out[:, None] / 2
        measure = np.array(rows)
        middle = (ends.left + ends.right) / 2
        total, balance = measure[:, ::2] + measure[:, 1::2], measure[:, ::2] - measure[:, 1::2]
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
        found = np.append(np.stack([found[:-1], ends.of_right[::2]], axis=1).ravel(), 0.0)
    return np.asarray(found[1:-1])


def _node_weights(noises: Sequence[LevelNoise]) -> list[float]:
    """Weights of a node's own estimate relative to the sum of its children's means, by level."""
    own, spread = [1.0], noises[-1].base
    for noise in reversed(noises[:-1]):
        parts = 2 * spread
        own.append(parts / (parts + noise.base))
        spread = noise.base * own[-1]
    return own[::-1]


def _interleave_children(first: Floats, second: Floats) -> Floats:
    """Numbers of left and right children in turn, along the last axis."""
    return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)


MOST_LEVELS = 16
Oracle = Response | Hashing


@dataclass(frozen=True, slots=True)
class QuantileTree(LocalMechanism):
    """2^L bins of equal width in [lower, upper]; ``levels[l]`` asks for the node among the 2^(l+1) of level l + 1.

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
    def change_probabilities(self) -> Change:
        """Two values may differ at every level; the level is everybody's to see."""
        return join_changes(*((Fraction(1, len(self.levels)), oracle.change_probabilities) for oracle in self.levels))

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint32]:
        """Rows (level, report), shape [n, 2]; raises ``InputError`` unless all values lie in [lower, upper]."""
        numbers, randomness = check_reals("values", values, self.lower, self.upper), randomness or Stream()
        scaled = (numbers - self.lower) / (self.upper - self.lower) * self.bin_count
        leaves = np.minimum(scaled.astype(np.int64), self.bin_count - 1)
        out = np.empty((len(leaves), 2), dtype=np.uint32)
        out[:, 0] = uniform_below(len(self.levels), len(leaves), randomness)
        for level, oracle in enumerate(self.levels):
            chosen = out[:, 0] == level
            out[chosen, 1] = oracle.perturb(leaves[chosen] >> (len(self.levels) - level - 1), randomness)
        return out

    def below_edges(self, reports: ArrayLike) -> tuple[Floats, Floats]:
        """Shares of the people below each inner edge 1..bins − 1, unbiased, and their standard deviations, shape
        [bins − 1] each. All levels are combined into consistent counts; the deviations are for people from a
        population.
        """
        share, noises = self._join_levels(reports)
        return share, self._edge_errors(_nearest_monotone(share), noises)

    def cumulative_shares(self, reports: ArrayLike) -> tuple[Floats, Floats]:
        """The same shares as a distribution has them: rising from 0 to 1 (the nearest such, least squares).

        Rising shares are no further from the truth than unbiased ones are, all together, but each may be biased.
        """
        share, noises = self._join_levels(reports)
        rising = _nearest_monotone(share)
        return rising, self._edge_errors(rising, noises)

    def _join_levels(self, reports: ArrayLike) -> tuple[Floats, list[LevelNoise]]:
        rows = self._report_rows(reports)
        heard = [rows[rows[:, 0] == level, 1] for level in range(len(self.levels))]
        noises = [_level_noise(oracle, len(part)) for oracle, part in zip(self.levels, heard, strict=True)]
        found = [oracle.estimate(part).value for oracle, part in zip(self.levels, heard, strict=True)]
        return below_edges(found, noises), noises

    @staticmethod
    def _edge_errors(rising: Floats, noises: list[LevelNoise]) -> Floats:
        return np.asarray(np.sqrt(edge_variances(np.diff(rising, prepend=0.0, append=1.0), noises)))

    def _report_rows(self, reports: ArrayLike) -> NDArray[np.int64]:
        rows = report_rows(reports, 2)
        fewest = int(
            np.bincount(check_categories("levels", rows[:, 0], len(self.levels)), minlength=len(self.levels)).min()
        )
        if not fewest:
            raise InputError("reports of a level", 0, "at least 1", "ask more people, or use fewer bins")
        return rows.astype(np.int64)

    def estimate(self, reports: ArrayLike, at: ArrayLike = 0.5, *, confidence: float = 0.95) -> Shares:
        """The quantiles ``at``, shape of ``at``, with intervals.

        The value is the middle of the bin in which ``cumulative_shares`` passes p. The ends are the first edge that may
        be at p or above and the last one that may be below, by its shares and their deviations: so a quantile is missed
        at either side with probability (1 − confidence) / 2. Raises ``InputError`` unless every p is strictly between 0
        and 1.
        """
        share, error = self.cumulative_shares(reports)
        half = simultaneous_z_score(confidence) * error
        wanted = [inner_probability("at", p) for p in np.asarray(at).ravel().tolist()]
        found = np.array([self._quantile_interval(p, share, half) for p in wanted]).reshape(-1, 3)
        value, lower, upper = (column.reshape(np.shape(at)) for column in found.T)
        return Shares(value, lower, upper, len(np.asarray(reports)), confidence)

    def _quantile_interval(self, p: float, share: Floats, half: Floats) -> tuple[float, float, float]:
        """Value and ends. F is 0 at the first edge and 1 at the last, for sure."""
        middle, low, high = (np.concatenate([[0.0], part, [1.0]]) for part in (share, share - half, share + half))
        high[0], low[-1] = 0.0, 1.0
        first, last = int(np.argmax(high >= p)) - 1, int(np.flatnonzero(low < p)[-1]) + 1
        passed = int(np.argmax(middle >= p))
        return self._edge_value(passed - 0.5), self._edge_value(first), self._edge_value(last)

    def _edge_value(self, number: float) -> float:
        return self.lower + (self.upper - self.lower) * number / self.bin_count


def quantiles(epsilon: float, *, bounds: tuple[float, float], levels: int = 10) -> QuantileTree:
    """Quantiles of numbers in ``bounds``, to bins of width / 2^levels, ε-LDP (Cormode, Kulkarni, Srivastava 2019).

    Each level has the better of randomized response and hashing. Raises ``InputError`` unless ε > 0 is finite,
    lower < upper and 1 ≤ levels ≤ 16.

    >>> import numpy as np
    >>> mechanism = quantiles(2.0, bounds=(0.0, 100.0), levels=5)
    >>> found = mechanism.estimate(mechanism.perturb(np.linspace(0, 100, 20_000)), [0.25, 0.5])
    >>> bool(np.all((found.lower <= found.value) & (found.value <= found.upper)))
    True
    """
    epsilon, depth = checked_epsilon(epsilon), check_integer("levels", levels)
    if not depth <= MOST_LEVELS:
        raise InputError("levels", levels, f"at most {MOST_LEVELS}", "finer bins than that drown in noise")
    return QuantileTree(
        epsilon, *checked_between(bounds), tuple(_best_level_mechanism(epsilon, 2 << level) for level in range(depth))
    )


def _nearest_monotone(share: Floats) -> Floats:
    """The nearest rising sequence within [0, 1]."""
    return np.asarray(np.clip(isotonic_regression(share).x, 0.0, 1.0))


def _level_noise(oracle: Oracle, people: int) -> LevelNoise:
    """Of a level's estimates, for people from a population: r (1 − r) a report, r = q + (p − q) f the chance of
    support.

    The categories of a response exclude each other: Var Σ w_v [report is v] = Σ w² r − (Σ w r)². Supports by hashing
    are taken as independent of each other.
    """
    keep, other = float(oracle.true_support_probability), float(oracle.false_support_probability)
    gain = keep - other
    if isinstance(oracle, Response):
        return LevelNoise(other / gain**2 / people, 1 / gain / people)
    return LevelNoise(other * (1 - other) / gain**2 / people, (1 - 2 * other) / gain / people)


def _best_level_mechanism(epsilon: float, k: int) -> Oracle:
    pair: tuple[Oracle, Oracle] = (k_randomized_response(epsilon, k), hashing(epsilon, k))
    return min(pair, key=lambda oracle: oracle.mean_variance)
