"""Quantiles: each person tells, of one random level of a binary tree of bins, which node the value is in."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.mechanisms.local_hashing import Hashing, hashing
from tightrope.local.mechanisms.response import Response, k_randomized_response
from tightrope.local.parts.estimates import Shares, deviations
from tightrope.local.parts.losses import Change, Declared, joined
from tightrope.local.parts.odds import checked_epsilon
from tightrope.local.parts.values import between as checked_between
from tightrope.local.parts.values import categories, reals, report_rows
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import inner_probability, whole
from tightrope.randomness.integers import below
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

if TYPE_CHECKING:
    pass

MOST_LEVELS = 16
Oracle = Response | Hashing


@dataclass(frozen=True, slots=True)
class QuantileTree(Declared):
    """2^L bins of equal width in [lower, upper]; ``levels[l]`` asks for the node among the 2^(l+1) of level l + 1.

    A report is a row: the level, which is uniform whatever the value is, and the report of that level's mechanism.
    """

    epsilon: float
    lower: float
    upper: float
    levels: tuple[Oracle, ...]

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return 1 << len(self.levels)

    @property
    def changed(self) -> Change:
        """Two values may differ at every level; the level is everybody's to see."""
        return joined(*((Fraction(1, len(self.levels)), oracle.changed) for oracle in self.levels))

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint32]:
        """Rows (level, report), shape [n, 2]; raises ``InputError`` unless all values lie in [lower, upper]."""
        numbers, randomness = reals("values", values, self.lower, self.upper), randomness or Stream()
        scaled = (numbers - self.lower) / (self.upper - self.lower) * self.bins
        leaves = np.minimum(scaled.astype(np.int64), self.bins - 1)
        out = np.empty((len(leaves), 2), dtype=np.uint32)
        out[:, 0] = below(len(self.levels), len(leaves), randomness)
        for level, oracle in enumerate(self.levels):
            chosen = out[:, 0] == level
            out[chosen, 1] = oracle.perturb(leaves[chosen] >> (len(self.levels) - level - 1), randomness)
        return out

    def below_edges(self, reports: ArrayLike) -> tuple[Floats, Floats]:
        """Shares of the people below each inner edge 1..bins − 1, and their standard deviations, shape [bins − 1] each.

        An edge is the sum of the nodes that end there, one a level at most; people of different levels are different,
        so variances add up: that of the reports, and f (1 − f) a person for who happens to be asked for which level.
        They are taken at the estimated shares, within [0, 1].
        """
        rows = self._rows(reports)
        edges = np.arange(1, self.bins)
        share, variance = np.zeros(len(edges)), np.zeros(len(edges))
        for level, oracle in enumerate(self.levels):
            node = edges >> (len(self.levels) - level - 1)
            left = np.flatnonzero(node & 1)
            found = oracle.estimate(rows[rows[:, 0] == level, 1])
            values = found.value[node[left] - 1]
            other, own = (float(v) for v in oracle.variances)
            share[left] += values
            likely = np.clip(values, 0.0, 1.0)
            variance[left] += (other + (own - other) * likely + likely * (1 - likely)) / found.people
        return share, np.sqrt(variance)

    def _rows(self, reports: ArrayLike) -> NDArray[np.int64]:
        rows = report_rows(reports, 2)
        fewest = int(np.bincount(categories("levels", rows[:, 0], len(self.levels)), minlength=len(self.levels)).min())
        if not fewest:
            raise InputError("reports of a level", 0, "at least 1", "ask more people, or use fewer bins")
        return rows.astype(np.int64)

    def estimate(self, reports: ArrayLike, at: ArrayLike = 0.5, *, confidence: float = 0.95) -> Shares:
        """The quantiles ``at``, shape of ``at``, with intervals.

        The lower end begins the last bin before which every edge is surely too low, that is has an upper bound below
        p; the upper end likewise: so a quantile is missed at either side with probability (1 − confidence) / 2.
        The value is the middle between the first edge that is estimated at p or above and the last one below.
        Raises ``InputError`` unless every p is strictly between 0 and 1.
        """
        share, error = self.below_edges(reports)
        half = deviations(confidence) * error
        wanted = [inner_probability("at", p) for p in np.asarray(at).ravel().tolist()]
        found = np.array([self._quantile(p, share, half) for p in wanted]).reshape(-1, 3)
        value, lower, upper = (column.reshape(np.shape(at)) for column in found.T)
        return Shares(value, lower, upper, len(np.asarray(reports)), confidence)

    def _quantile(self, p: float, share: Floats, half: Floats) -> tuple[float, float, float]:
        """Value and ends. F is 0 at the first edge and 1 at the last, for sure."""
        middle, low, high = (np.concatenate([[0.0], part, [1.0]]) for part in (share, share - half, share + half))
        high[0], low[-1] = 0.0, 1.0
        first, last = int(np.argmax(high >= p)) - 1, int(np.flatnonzero(low < p)[-1]) + 1
        estimate = (int(np.argmax(middle >= p)) + int(np.flatnonzero(middle < p)[-1])) / 2
        return self._edge(estimate), self._edge(max(first, 0)), self._edge(min(last, self.bins))

    def _edge(self, number: float) -> float:
        return self.lower + (self.upper - self.lower) * number / self.bins


def quantiles(epsilon: float, *, between: tuple[float, float], levels: int = 10) -> QuantileTree:
    """Quantiles of numbers in ``between``, to bins of width / 2^levels, ε-LDP (Cormode, Kulkarni, Srivastava 2019).

    Each level has the better of randomised response and hashing. Raises ``InputError`` unless ε > 0 is finite,
    lower < upper and 1 ≤ levels ≤ 16.

    >>> import numpy as np
    >>> mechanism = quantiles(2.0, between=(0.0, 100.0), levels=5)
    >>> found = mechanism.estimate(mechanism.perturb(np.linspace(0, 100, 20_000)), [0.25, 0.5])
    >>> bool(np.all((found.lower <= found.value) & (found.value <= found.upper)))
    True
    """
    epsilon, depth = checked_epsilon(epsilon), whole("levels", levels)
    if not depth <= MOST_LEVELS:
        raise InputError("levels", levels, f"at most {MOST_LEVELS}", "finer bins than that drown in noise")
    return QuantileTree(
        epsilon, *checked_between(between), tuple(_level(epsilon, 2 << level) for level in range(depth))
    )


def _level(epsilon: float, k: int) -> Oracle:
    pair: tuple[Oracle, Oracle] = (k_randomized_response(epsilon, k), hashing(epsilon, k))
    return min(pair, key=lambda oracle: oracle.mean_variance)
