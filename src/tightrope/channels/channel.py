"""A channel as a matrix: one row an input, one column a report."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tightrope.channels import information, row_pairs
from tightrope.channels.envelope import Curve
from tightrope.channels.kernel import Kernel, checked_inputs
from tightrope.channels.le_cam import kl_contraction
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import probability
from tightrope.numerics.laws import stochastic
from tightrope.privacy.curves.bounds import Bounds

LARGEST_PRODUCT = 1 << 26
"""Entries of a product: 512 MiB."""
EFFORT = 3e9
"""Differences p − γq that may be formed to find the kinks of the profile: some ten seconds."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Channel(Kernel):
    """A row-stochastic matrix, shape [inputs, outputs]: entry (x, z) is the probability that x is reported as z.

    Rows whose sum is within 1e−9 of one are renormalised. A column of zeros is an output that never happens: it is
    kept and counts for nothing. Raises ``InputError`` for an empty matrix, NaN, negative entries and other sums.

    >>> survey = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(survey.epsilon, 12), survey.total_variation, round(survey.kl_contraction, 12)
    (1.098612288668, 0.5, 0.25)
    """

    matrix: Floats

    def __init__(self, matrix: ArrayLike) -> None:
        object.__setattr__(self, "matrix", stochastic(matrix))

    @property
    def inputs(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def outputs(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def epsilon(self) -> float:
        """Largest log-ratio within a column, a few units in the last place exact; ∞ where it is unbounded."""
        return row_pairs.largest_loss(self.matrix)

    @property
    def kl_contraction(self) -> float:
        return kl_contraction(self.matrix)

    @property
    def maximal_leakage(self) -> float:
        """Log Σ_z max_x K(z|x): by what factor one report helps to guess any function of the input (GI-v1 App. J).

        Sibson's information of order ∞, in nats. For two inputs it is log(1 + η), η the total variation.

        >>> round(math.exp(Channel([[0.75, 0.25], [0.25, 0.75]]).maximal_leakage), 12)
        1.5
        """
        return math.log(math.fsum(self.matrix.max(axis=0)))

    def push(self, p: Floats) -> Floats:
        return np.asarray(p @ self.matrix)

    def capacity(self) -> Bounds:
        return information.capacity(self.matrix)

    def __matmul__(self, other: Channel) -> Channel:
        """First this channel, then ``other`` on its report: neither privacy nor contraction gets worse.

        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> (noisy @ noisy).matrix.tolist()
        [[0.625, 0.375], [0.375, 0.625]]
        """
        if not isinstance(other, Channel):
            return NotImplemented
        checked_inputs(self.outputs, other.inputs)
        return Channel(self.matrix @ other.matrix)

    def erase(self, alpha: float) -> Channel:
        """The channel whose report is withheld with probability ``alpha``: one more output, the last (GI Thm 7).

        η, κ and every f-divergence shrink by 1 − α; ε stays, unless α = 1. Raises ``InputError`` unless 0 ≤ α ≤ 1.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).erase(0.5).matrix[0].tolist()
        [0.375, 0.125, 0.5]
        """
        lost = probability("alpha", alpha)
        return Channel(np.column_stack([(1 - lost) * self.matrix, np.full(self.inputs, lost)]))

    def product(self, other: Channel) -> Channel:
        """Two people, or two attributes, reported independently: input (x, x′) is x · other.inputs + x′.

        Raises ``InputError`` where the matrix would have more than 2²⁶ entries.

        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).product(Channel([[1.0], [1.0]])).outputs
        2
        """
        if not isinstance(other, Channel):
            raise InputError("other", other, "a Channel", "a SymmetricChannel has its own product, and dense()")
        size = self.matrix.size * other.matrix.size
        if not size <= LARGEST_PRODUCT:
            remedy = "symmetric channels have a product without a matrix: SymmetricChannel.product"
            raise InputError("entries of the product", size, f"at most {LARGEST_PRODUCT}", remedy)
        return Channel(np.kron(self.matrix, other.matrix))

    def _information(self, p: Floats) -> float:
        return information.mutual_information(self.matrix, p)

    def _curve(self) -> Curve:
        rows = self.matrix[:, self.matrix.any(axis=0)]
        return Curve(
            lambda gamma: row_pairs.worst(rows, gamma),
            largest=row_pairs.largest_finite_loss(rows),
            exclusive=row_pairs.largest_exclusive_mass(rows),
            error=1.2e-16 * (24 + math.log2(rows.shape[1])),
            most=max(100, int(EFFORT / (len(rows) * rows.size))),
        )
