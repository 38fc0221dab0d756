"""A channel as a matrix: one row an input, one column a report."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.accounting.bounds import Bounds
from tightrope.channels import kernel
from tightrope.channels.kernel import Curve, Kernel, checked_inputs
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_probability
from tightrope.numerics.distributions import normalize_stochastic_matrix

# The exact contraction coefficient of KL and χ²: max over row pairs and β of the Le Cam divergence (theory §5).
#
# ``LC_β(p, q) = 1 − Σ pq/(βp + (1−β)q) = β(1−β) Σ (p−q)²/(βp + (1−β)q)``, concave in β on [0, 1]: a tangent bounds
# what is left to gain, and pairs that cannot win are dropped. A pair lies between 1 − B and 1 − B², B = Σ √(pq)
# (``docs/proofs/channels.md``), so one matrix product drops most pairs before any search.

CELLS_AT_ONCE = 1 << 21
"""Numbers of a (pairs × outputs) table held at once."""
CLOSE_TO_BEST = 1e-14
"""Pairs whose bound exceeds the best value by less, relatively, are not searched further."""
SPLITTING_ROUNDS = 200

Indices = NDArray[np.intp]


def kl_contraction(rows: Floats) -> float:
    """η_KL = η_χ² of a row-stochastic matrix, to 1e−13 relative; 0 for one row.

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
    least = float(np.max(1 - affinity))
    keep = (1 - affinity) * (1 + affinity) + rounding >= least - rounding
    first, second = first[keep], second[keep]
    low, high = np.zeros(len(first)), np.ones(len(first))
    middle = np.full(len(first), 0.5)
    best = 0.0
    for _ in range(SPLITTING_ROUNDS):
        # LC_β and its derivative in β, shape [pairs] each.
        step = max(1, CELLS_AT_ONCE // rows.shape[1])
        parts = [
            _le_cam_of(rows[first[i : i + step]], rows[second[i : i + step]], middle[i : i + step, None])
            for i in range(0, len(first), step)
        ]
        values, slopes = zip(*parts, strict=True)
        value, slope = np.concatenate(values), np.concatenate(slopes)
        best = max(best, float(value.max()))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
        bound = value + np.maximum(slope * (high - middle), slope * (low - middle))
        open_ = bound > best * (1 + CLOSE_TO_BEST)
        if not np.any(open_):
            break
        first, second, low, high = first[open_], second[open_], low[open_], high[open_]
        middle = (low + high) / 2
    return min(best, 1.0)


def _le_cam_of(p: Floats, q: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return the same for distributions row by row. d/dβ of −pq/m is pq (p − q)/m², m = βp + (1−β)q."""
    mixed = beta * p + (1 - beta) * q
    safe = np.where(mixed > 0, mixed, 1.0)
    gap = p - q
    value = (beta * (1 - beta))[:, 0] * (gap * gap / safe).sum(axis=1)
    slope = ((p / safe) * (q / safe) * gap).sum(axis=1)
    return value, slope


# The worst pair of rows of a matrix: E_γ with its slope, and the largest log-ratio.

NUMBERS_AT_ONCE = 1 << 22
"""Numbers held at once: 32 MiB."""
LARGEST_LOG = 709.0


def worst_pair(rows: Floats, gamma: float) -> tuple[float, float]:
    """The maximum over ordered pairs of E_γ = Σ (p − γ q)₊, and the slope −Σ {q : p > γ q} of a pair that attains it.

    γ ≥ 0; ``rows`` of shape [inputs, outputs]. With one row, the pair is that row twice. The error is at
    most 4u + (outputs) u relative to Σ {p : p > γ q} ≤ 1.
    """
    value, slope = -1.0, 0.0
    # Rows in batches [batch, 1, outputs], so that the table of differences stays within `NUMBERS_AT_ONCE`.
    step = max(1, NUMBERS_AT_ONCE // rows.size)
    for first in (rows[i : i + step, None, :] for i in range(0, len(rows), step)):
        gains = np.maximum(first - gamma * rows[None, :, :], 0.0)
        sums = gains.sum(axis=2)
        best = np.unravel_index(int(np.argmax(sums)), sums.shape)
        if sums[best] > value:
            value = float(sums[best])
            slope = -float(rows[best[1]][gains[best] > 0].sum())
    return min(value, 1.0), slope


def largest_loss(rows: Floats) -> float:
    """The maximum over pairs of rows and outputs of log p/q; ∞ where an output happens in one row, not in another."""
    high, low = rows.max(axis=0), rows.min(axis=0)
    happens = high > 0
    if np.any(low[happens] == 0):
        return math.inf
    return float(np.max(_log_ratio(high[happens], low[happens])))


def largest_finite_loss(rows: Floats) -> float:
    """Return the largest finite log-ratio within a column; 0 if all are infinite."""
    high = rows.max(axis=0)
    low = np.where(rows > 0, rows, math.inf).min(axis=0)
    happens = high > 0
    return float(np.max(_log_ratio(high[happens], low[happens]), initial=0.0))


def _log_ratio(high: Floats, low: Floats) -> Floats:
    """log(high/low) ≥ 0 to full relative accuracy, also near 0, and without overflow."""
    with np.errstate(over="ignore"):
        near = np.log1p((high - low) / low)
    return np.asarray(np.where(np.isfinite(near), near, np.log(high) - np.log(low)))


def largest_exclusive_mass(rows: Floats) -> float:
    """The maximum over ordered pairs of p(q = 0): the probability that a report rules out the other input."""
    zero = (rows == 0).astype(np.float64)
    return min(1.0, float(np.max(rows @ zero.T)))


LARGEST_PRODUCT = 1 << 26
"""Entries of a product: 512 MiB."""
EFFORT = 3e9
"""Differences p − γq that may be formed to find the kinks of the profile: some ten seconds."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Channel(Kernel):
    """A row-stochastic matrix, shape [inputs, outputs]: entry (x, z) is the probability that x is reported as z.

    Rows whose sum is within 1e−9 of one are renormalized. A column of zeros is an output that never happens: it is
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
        """Log Σ_z max_x K(z|x): log-factor by which a report improves guesses of functions of the input (GI-v1 App. J).

        Sibson's information of order ∞, in nats. For two inputs it is log(1 + η), η the total variation.

        >>> round(math.exp(Channel([[0.75, 0.25], [0.25, 0.75]]).maximal_leakage), 12)
        1.5
        """
        return math.log(math.fsum(self.matrix.max(axis=0)))

    def output_distribution(self, p: Floats) -> Floats:
        return np.asarray(p @ self.matrix)

    def channel_capacity(self) -> Bounds:
        return kernel.capacity_bounds(self.matrix)

    def __matmul__(self, other: Channel) -> Channel:
        """Return this channel followed by ``other`` on its report: privacy and contraction are at least as good.

        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> (noisy @ noisy).matrix.tolist()
        [[0.625, 0.375], [0.375, 0.625]]
        """
        if not isinstance(other, Channel):
            return NotImplemented
        checked_inputs(self.output_count, other.input_count)
        return Channel(self.matrix @ other.matrix)

    def erase(self, alpha: float) -> Channel:
        """Return the channel whose report is erased with probability ``alpha``: one more output, the last (GI Thm 7).

        η, κ and every f-divergence shrink by 1 − α; ε stays, unless α = 1. Raises ``InputError`` unless 0 ≤ α ≤ 1.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).erase(0.5).matrix[0].tolist()
        [0.375, 0.125, 0.5]
        """
        lost = check_probability("alpha", alpha)
        return Channel(np.column_stack([(1 - lost) * self.matrix, np.full(self.input_count, lost)]))

    def product_with(self, other: Channel) -> Channel:
        """Return the channel of two independent reports (people or attributes): input (x, x′) is x · other.inputs + x′.

        Raises ``InputError`` where the matrix would have more than 2²⁶ entries.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).product_with(Channel([[1.0], [1.0]])).output_count
        2
        """
        if not isinstance(other, Channel):
            raise InputError("other", other, "a Channel", "a SymmetricChannel has its own product, and dense()")
        size = self.matrix.size * other.matrix.size
        if not size <= LARGEST_PRODUCT:
            remedy = "symmetric channels have a product without a matrix: SymmetricChannel.product"
            raise InputError("entries of the product", size, f"at most {LARGEST_PRODUCT}", remedy)
        return Channel(np.kron(self.matrix, other.matrix))

    def _mutual_information(self, p: Floats) -> float:
        return kernel.mutual_information(self.matrix, p)

    def _contraction_curve(self) -> Curve:
        rows = self.matrix[:, self.matrix.any(axis=0)]
        return Curve(
            lambda gamma: worst_pair(rows, gamma),
            largest=largest_finite_loss(rows),
            exclusive=largest_exclusive_mass(rows),
            error=1.2e-16 * (24 + math.log2(rows.shape[1])),
            most=max(100, int(EFFORT / (len(rows) * rows.size))),
        )
