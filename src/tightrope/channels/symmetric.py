"""k-ary randomised response, with or without erasure, without its k × k matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, rel_entr

from tightrope.channels import information
from tightrope.channels.channel import LARGEST_PRODUCT, Channel
from tightrope.channels.product import ProductChannel
from tightrope.channels.similar_rows import Alike
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import non_negative, probability, whole
from tightrope.numerics.laws import SUM_TOLERANCE
from tightrope.privacy.curves.bounds import Bounds

MOST_VALUES = 1 << 53
"""Up to here floats count every value."""


@dataclass(frozen=True, slots=True)
class SymmetricChannel(Alike):
    """Input x is reported as x with probability ``keep``, as each other one of k with ``other``, withheld else.

    keep + (k − 1) other + erased = 1; ``erased`` is output k. Every pair of rows looks like (keep, other, …) against
    (other, keep, …), so that all is closed form in k. Raises ``InputError`` unless 2 ≤ k ≤ 2⁵³ and the probabilities
    add up to one within 1e−9 (they are then scaled to it).

    >>> million = SymmetricChannel.randomized_response(1.0, 1_000_000)
    >>> round(million.epsilon, 12), f"{million.kl_contraction:.6e}"
    (1.0, '7.940461e-07')
    """

    k: int
    keep: float
    other: float
    erased: float = 0.0

    def __post_init__(self) -> None:
        k = _domain(self.k)
        parts = (probability("keep", self.keep), non_negative("other", self.other), probability("erased", self.erased))
        total = math.fsum((parts[0], (k - 1) * parts[1], parts[2]))
        if not abs(total - 1) <= SUM_TOLERANCE:
            raise InputError(
                "keep + (k - 1) other + erased", total, "1 within 1e-9", "other is the chance of each other one"
            )
        for name, part in zip(("keep", "other", "erased"), parts, strict=True):
            object.__setattr__(self, name, part / total)

    @classmethod
    def randomized_response(cls, epsilon: float, k: int) -> SymmetricChannel:
        """Told truly with probability e^ε / (e^ε + k − 1); κ = (e^ε − 1)² / ((e^ε + k − 1)(e^ε + 1)) (theory §5).

        >>> round(SymmetricChannel.randomized_response(1.3, 10).kl_contraction, 9)
        0.12044526
        """
        count = _domain(k)
        shrunk = math.exp(-non_negative("epsilon", epsilon))
        whole_weight = 1 + (count - 1) * shrunk
        return cls(count, 1 / whole_weight, shrunk / whole_weight)

    @property
    def inputs(self) -> int:
        return self.k

    @property
    def outputs(self) -> int:
        return self.k + (self.erased > 0)

    @property
    def pair(self) -> Channel:
        """Outputs: the first value, the second, any other or none."""
        rest = (self.k - 2) * self.other + self.erased
        return Channel([[self.keep, self.other, rest], [self.other, self.keep, rest]])

    def push(self, p: Floats) -> Floats:
        """Linear in ``p``: a product sends parts of a joint law through it, which do not sum to one."""
        total = p.sum()
        reported = self.other * total + (self.keep - self.other) * p
        return np.append(reported, self.erased * total) if self.erased > 0 else reported

    def capacity(self) -> Bounds:
        """At the uniform prior, by symmetry: keep log(keep/m) + (k − 1) other log(other/m), m = (1 − erased)/k."""
        m = (1 - self.erased) / self.k
        value = float(rel_entr(self.keep, m) + (self.k - 1) * rel_entr(self.other, m))
        return Bounds(max(0.0, value * (1 - 1e-12) - 1e-14), value * (1 + 1e-12) + 1e-14)

    def dense(self) -> Channel:
        """The same as a matrix; ``InputError`` beyond 2²⁶ entries."""
        if not self.k * self.outputs <= LARGEST_PRODUCT:
            raise InputError(
                "k", self.k, f"such that the matrix has at most {LARGEST_PRODUCT} entries", "stay structured"
            )
        matrix = np.full((self.k, self.outputs), self.other)
        np.fill_diagonal(matrix, self.keep)
        if self.erased > 0:
            matrix[:, -1] = self.erased
        return Channel(matrix)

    def erase(self, alpha: float) -> SymmetricChannel:
        """Withheld with probability ``alpha`` more, as ``Channel.erase``; both withholdings are one output.

        >>> round(SymmetricChannel(2, 0.75, 0.25).erase(0.5).total_variation, 12)
        0.25
        """
        left = 1 - probability("alpha", alpha)
        return SymmetricChannel(self.k, left * self.keep, left * self.other, 1 - left * (1 - self.erased))

    def product(self, *others: SymmetricChannel) -> ProductChannel:
        """Several attributes, each reported by its own symmetric channel; see ``ProductChannel``."""
        return ProductChannel((self, *others))

    @property
    def noise(self) -> float:
        """H(Z | X) in nats: the same for every input."""
        parts = entr(np.array([self.keep, self.other, self.erased]))
        return float(parts[0] + (self.k - 1) * parts[1] + parts[2])

    def _information(self, p: Floats) -> float:
        """H(Z) − H(Z | X)."""
        return max(0.0, information.entropy(self.push(p)) - self.noise)


def _domain(k: object) -> int:
    size = whole("k", k, at_least=2, remedy="k is the number of values")
    if not size <= MOST_VALUES:
        raise InputError("k", "more than 2^53" if size >> 64 else size, "at most 2^53", "hash the values into fewer")
    return size
