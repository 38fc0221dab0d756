"""A privacy channel given by its matrix: one row for each input, one column for each output."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.accounting.bounds import Bounds
from tightrope.channels import kernel
from tightrope.channels.kernel import DivergenceCurve, Kernel, check_composable
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_probability
from tightrope.numerics.distributions import normalize_stochastic_matrix

MAX_PAIR_ENTRIES = 1 << 21
"""Largest number of entries of a (pairs × outputs) table: 16 MiB."""
MAX_BATCH_ENTRIES = 1 << 22
"""Largest number of entries of a table of differences: 32 MiB."""
RELATIVE_GAP = 1e-14
"""A pair is discarded once its bound exceeds the best value by less than this relative amount."""
MAX_BISECTIONS = 200
"""Largest number of bisections of β."""
LARGEST_PRODUCT = 1 << 26
"""Entries of a product: 512 MiB."""
MAX_DIFFERENCES = 3e9
"""Differences p − γq that may be formed to find the kinks of the profile: about ten seconds."""


def kl_contraction(rows: Floats) -> float:
    """Return η_KL = η_χ² of a row-stochastic matrix, to 1e−13 relative; 0 for one row.

    It is the maximum over pairs of rows and β of the Le Cam divergence (theory §5),
    LC_β(p, q) = 1 − Σ pq/(βp + (1−β)q) = β(1−β) Σ (p−q)²/(βp + (1−β)q). It is concave in β, so the tangent at the
    midpoint bounds the maximum on the rest of the interval; pairs whose bound is below the best value are discarded.
    The value of a pair lies in [1 − B, 1 − B²], B = Σ √(pq) (``docs/proofs/channels.md``), so one matrix product
    discards most pairs before any search.

    >>> rate = kl_contraction(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> round(rate, 15)  # tanh² of half of log 3
    0.25
    """
    first, second = np.triu_indices(len(rows), k=1)
    if len(first) == 0:
        return 0.0
    # Pairs whose upper bound 1 − B² reaches the best lower bound 1 − B; 1 − B = ½ Σ (√p − √q)².
    roots = np.sqrt(rows)
    gram = np.minimum(roots @ roots.T, 1.0)
    affinity = gram[first, second]
    rounding = 4e-16 * rows.shape[1]
    best_lower_bound = float(np.max(1 - affinity))
    keep = (1 - affinity) * (1 + affinity) + rounding >= best_lower_bound - rounding
    first, second = first[keep], second[keep]
    low, high = np.zeros(len(first)), np.ones(len(first))
    middle = np.full(len(first), 0.5)
    best = 0.0
    for _ in range(MAX_BISECTIONS):
        # LC_β and its derivative in β, shape [pairs] each.
        step = max(1, MAX_PAIR_ENTRIES // rows.shape[1])
        parts = [
            _le_cam_and_slope(rows[first[i : i + step]], rows[second[i : i + step]], middle[i : i + step, None])
            for i in range(0, len(first), step)
        ]
        values, slopes = zip(*parts, strict=True)
        value, slope = np.concatenate(values), np.concatenate(slopes)
        best = max(best, float(value.max()))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
        bound = value + np.maximum(slope * (high - middle), slope * (low - middle))
        is_undecided = bound > best * (1 + RELATIVE_GAP)
        if not np.any(is_undecided):
            break
        first, second, low, high = first[is_undecided], second[is_undecided], low[is_undecided], high[is_undecided]
        middle = (low + high) / 2
    return min(best, 1.0)


def _le_cam_and_slope(p: Floats, q: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return LC_β(p, q) and its derivative in β, row by row: p, q of shape [pairs, outputs], β of shape [pairs, 1].

    d/dβ of −pq/m is pq (p − q)/m², m = βp + (1−β)q.
    """
    mixed = beta * p + (1 - beta) * q
    safe = np.where(mixed > 0, mixed, 1.0)
    gap = p - q
    value = (beta * (1 - beta))[:, 0] * (gap * gap / safe).sum(axis=1)
    slope = ((p / safe) * (q / safe) * gap).sum(axis=1)
    return value, slope


def max_hockey_stick_divergence(rows: Floats, gamma: float) -> tuple[float, float]:
    """Return the maximum over ordered pairs of E_γ = Σ (p − γ q)₊, and the slope −Σ {q : p > γ q} of the worst pair.

    γ ≥ 0; ``rows`` of shape [inputs, outputs]. With one row, the pair is that row twice. The absolute error is at most
    (4 + outputs) · 2⁻⁵³.
    """
    value, slope = -1.0, 0.0
    # Rows in batches [batch, 1, outputs], so that the table of differences stays within `MAX_BATCH_ENTRIES`.
    step = max(1, MAX_BATCH_ENTRIES // rows.size)
    for batch in (rows[i : i + step, None, :] for i in range(0, len(rows), step)):
        gains = np.maximum(batch - gamma * rows[None, :, :], 0.0)
        sums = gains.sum(axis=2)
        best = np.unravel_index(int(np.argmax(sums)), sums.shape)
        if sums[best] > value:
            value = float(sums[best])
            slope = -float(rows[best[1]][gains[best] > 0].sum())
    return min(value, 1.0), slope


def largest_loss(rows: Floats) -> float:
    """Return the maximum over pairs of rows and outputs of log p/q.

    It is ∞ if an output is possible for one input and impossible for another.
    """
    high, low = rows.max(axis=0), rows.min(axis=0)
    is_possible = high > 0
    if np.any(low[is_possible] == 0):
        return math.inf
    return float(np.max(_log_ratio(high[is_possible], low[is_possible])))


def largest_finite_loss(rows: Floats) -> float:
    """Return the largest finite log-ratio within a column; 0 if all are infinite."""
    high = rows.max(axis=0)
    low = np.where(rows > 0, rows, math.inf).min(axis=0)
    is_possible = high > 0
    return float(np.max(_log_ratio(high[is_possible], low[is_possible]), initial=0.0))


def _log_ratio(high: Floats, low: Floats) -> Floats:
    """Return log(high/low) ≥ 0 to full relative accuracy, also near 0, and without overflow."""
    with np.errstate(over="ignore"):
        direct = np.log1p((high - low) / low)
    return np.asarray(np.where(np.isfinite(direct), direct, np.log(high) - np.log(low)))


def max_infinity_mass(rows: Floats) -> float:
    """Return the maximum over ordered pairs of p(q = 0): the probability that the output rules out the other input."""
    zero = (rows == 0).astype(np.float64)
    return min(1.0, float(np.max(rows @ zero.T)))


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Channel(Kernel):
    """A row-stochastic matrix, shape [inputs, outputs]: entry (x, z) is the probability that x is reported as z.

    Rows whose sum is within 1e−9 of one are renormalized. A column of zeros is an output that never occurs: it is
    kept and has no effect. Raises ``InputError`` for an empty matrix, NaN, negative entries and other sums.

    >>> survey = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(survey.epsilon, 12), survey.total_variation, round(survey.kl_contraction, 12)
    (1.098612288668, 0.5, 0.25)
    """

    matrix: Floats

    def __init__(self, matrix: ArrayLike) -> None:
        object.__setattr__(self, "matrix", normalize_stochastic_matrix(matrix))

    @property
    def input_count(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def output_count(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def epsilon(self) -> float:
        """Largest log-ratio within a column, exact to a few units in the last place; ∞ if unbounded."""
        return largest_loss(self.matrix)

    @property
    def kl_contraction(self) -> float:
        return kl_contraction(self.matrix)

    @property
    def maximal_leakage(self) -> float:
        """Log Σ_z max_x K(z|x), Sibson's information of order ∞, in nats (GI-v1 App. J).

        It is the log of the largest factor by which seeing the output increases the probability of guessing a function
        of the input. For two inputs it is log(1 + TV), TV the total variation.

        >>> round(math.exp(Channel([[0.75, 0.25], [0.25, 0.75]]).maximal_leakage), 12)
        1.5
        """
        return math.log(math.fsum(self.matrix.max(axis=0)))

    def output_distribution(self, p: Floats) -> Floats:
        return np.asarray(p @ self.matrix)

    def channel_capacity(self) -> Bounds:
        return kernel.capacity_bounds(self.matrix)

    def __matmul__(self, other: Channel) -> Channel:
        """Return this channel followed by ``other`` on its output: privacy and contraction are at least as good.

        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> (noisy @ noisy).matrix.tolist()
        [[0.625, 0.375], [0.375, 0.625]]
        """
        if not isinstance(other, Channel):
            return NotImplemented
        check_composable(self.output_count, other.input_count)
        return Channel(self.matrix @ other.matrix)

    def erase(self, alpha: float) -> Channel:
        """Return the channel whose output is erased with probability ``alpha``: one more output, the last (GI Thm 7).

        Total variation, the contraction coefficient and every f-divergence are multiplied by 1 − α; ε is unchanged for
        α < 1. Raises ``InputError`` unless 0 ≤ α ≤ 1.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).erase(0.5).matrix[0].tolist()
        [0.375, 0.125, 0.5]
        """
        lost = check_probability("alpha", alpha)
        return Channel(np.column_stack([(1 - lost) * self.matrix, np.full(self.input_count, lost)]))

    def product_with(self, other: Channel) -> Channel:
        """Return the channel that applies both independently, for example to two attributes.

        The pair (x, x′) has the index x · k + x′, k the ``input_count`` of the other channel. Raises ``InputError`` if
        the matrix would have more than 2²⁶ entries.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).product_with(Channel([[1.0], [1.0]])).output_count
        2
        """
        if not isinstance(other, Channel):
            raise InputError("other", other, "a Channel", "pass other.to_channel() for a SymmetricChannel")
        size = self.matrix.size * other.matrix.size
        if not size <= LARGEST_PRODUCT:
            limit = f"the product's matrix would have {size:,} entries, more than {LARGEST_PRODUCT:,}"
            raise InputError.from_text("other", f"{limit}; SymmetricChannel.product_with needs no matrix")
        return Channel(np.kron(self.matrix, other.matrix))

    def _mutual_information(self, p: Floats) -> float:
        return kernel.mutual_information(self.matrix, p)

    def _hockey_stick_curve(self) -> DivergenceCurve:
        rows = self.matrix[:, self.matrix.any(axis=0)]
        return DivergenceCurve(
            lambda gamma: max_hockey_stick_divergence(rows, gamma),
            max_loss=largest_finite_loss(rows),
            infinity_mass=max_infinity_mass(rows),
            error=1.2e-16 * (24 + math.log2(rows.shape[1])),
            max_points=max(100, int(MAX_DIFFERENCES / (len(rows) * rows.size))),
        )
