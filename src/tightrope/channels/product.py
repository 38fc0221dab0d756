"""Randomized response with erasure as a channel, and products of such channels, without their matrices."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

from tightrope.accounting.bounds import Bounds
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.channels import kernel
from tightrope.channels.channel import LARGEST_PRODUCT, Channel
from tightrope.channels.kernel import DivergenceCurve, Kernel, shannon_entropy
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_non_negative, check_probability
from tightrope.numerics.distributions import SUM_TOLERANCE


class SymmetricKernel(Kernel):
    """Base class of channels where every pair of rows is ``row_pair`` with renamed outputs, or is dominated by it."""

    __slots__ = ()

    @property
    @abstractmethod
    def row_pair(self) -> Channel:
        """Two rows that dominate every pair; outputs with equal ratio are merged."""

    @property
    def epsilon(self) -> float:
        return self.row_pair.epsilon

    @property
    def kl_contraction(self) -> float:
        return self.row_pair.kl_contraction

    def _hockey_stick_curve(self) -> DivergenceCurve:
        return self.row_pair._hockey_stick_curve()


MAX_PAIR_OUTPUTS = 1 << 20
"""Largest number of outputs of the pair, after outputs with equal ratio are merged."""
PAIR_LOSS_TOLERANCE = 1e-14
"""Losses closer than this are merged."""
MAX_JOINT_OUTPUTS = 1 << 26
"""Largest number of entries of a joint distribution."""


@dataclass(frozen=True, slots=True)
class ProductChannel(SymmetricKernel):
    """Independent reports of several attributes, all of which may differ between two people.

    Input (x_1, …, x_n) in row-major order. Two rows that agree in an attribute are dominated by two that do not; where
    they differ, each factor has the same, symmetric dominating pair: one product of these pairs covers all cases.
    Raises ``InputError`` for an empty product.

    >>> from tightrope.channels import SymmetricChannel
    >>> large, small = (SymmetricChannel.randomized_response(0.5, size) for size in (1000, 10))
    >>> twice = large.product_with(small)
    >>> round(twice.epsilon, 12), twice.input_count
    (1.0, 10000)
    """

    factors: tuple[SymmetricChannel, ...]

    def __post_init__(self) -> None:
        if not self.factors:
            raise InputError("factors", self.factors, "at least one channel")

    @property
    def input_count(self) -> int:
        return math.prod(factor.input_count for factor in self.factors)

    @property
    def output_count(self) -> int:
        return math.prod(factor.output_count for factor in self.factors)

    @property
    def row_pair(self) -> Channel:
        """The product of the factors' pairs: Kronecker, row by row.

        Outputs of equal ratio are merged and outputs of probability 0 left out: they would multiply.
        """
        joint = self.factors[0].row_pair.matrix
        for factor in self.factors[1:]:
            rows = np.stack([np.outer(a, b).ravel() for a, b in zip(joint, factor.row_pair.matrix, strict=True)])
            rows = rows[:, rows.any(axis=0)]
            with np.errstate(divide="ignore"):
                losses = np.log(rows[0]) - np.log(rows[1])
            order = np.argsort(losses)
            starts = _group_starts(losses[order])
            if not len(starts) <= MAX_PAIR_OUTPUTS:
                expected = f"at most {MAX_PAIR_OUTPUTS}"
                raise InputError("outputs of the pair", len(starts), expected, "take fewer different factors")
            joint = np.asarray(np.add.reduceat(rows[:, order], starts, axis=1))
        return Channel(joint)

    @property
    def epsilon(self) -> float:
        """The sum of the factors' ε: all factors can have their worst report at once."""
        return math.fsum(factor.epsilon for factor in self.factors)

    @property
    def loss(self) -> PrivacyLoss:
        """The composition of the factors' losses."""
        return sum((factor.loss for factor in self.factors[1:]), self.factors[0].loss)

    def output_distribution(self, p: Floats) -> Floats:
        """Return the joint distribution of the reports, an attribute at a time; ``InputError`` beyond 2²⁶ reports."""
        if not self.output_count <= MAX_JOINT_OUTPUTS:
            raise InputError(
                "outputs",
                self.output_count,
                f"at most {MAX_JOINT_OUTPUTS} for a joint distribution",
                "use each attribute alone",
            )
        joint = p.reshape([factor.input_count for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            joint = np.apply_along_axis(factor.output_distribution, axis, joint)
        return joint.ravel()

    def channel_capacity(self) -> Bounds:
        """Return the sum of the capacities of the factors."""
        limits = [factor.channel_capacity() for factor in self.factors]
        return Bounds(sum(low for low, _ in limits), sum(high for _, high in limits))

    def _mutual_information(self, p: Floats) -> float:
        """Return H(Z) − Σ_i H(Z_i | X_i): given the attributes, the reports are independent."""
        conditional_entropy = math.fsum(factor.conditional_entropy for factor in self.factors)
        return max(0.0, shannon_entropy(self.output_distribution(p)) - conditional_entropy)

    def _hockey_stick_curve(self) -> DivergenceCurve:
        """Return the curve of the pair; merging outputs adds ``PAIR_LOSS_TOLERANCE`` per factor to its error."""
        curve = self.row_pair._hockey_stick_curve()
        return replace(curve, error=curve.error + PAIR_LOSS_TOLERANCE * len(self.factors))


def _group_starts(losses: Floats) -> NDArray[np.intp]:
    """Return the start of each group of nearly equal losses; every group is at most ``PAIR_LOSS_TOLERANCE`` wide.

    ``losses`` ascend; infinite ones stay alone.
    """
    with np.errstate(invalid="ignore"):
        is_close = np.diff(losses, prepend=-math.inf) <= PAIR_LOSS_TOLERANCE
        # Each chain of close losses is cut into cells of the tolerance's width.
        chain_starts = np.flatnonzero(~is_close)
        distance = (losses - losses[chain_starts[np.cumsum(~is_close) - 1]]) / PAIR_LOSS_TOLERANCE
    cells = np.where(is_close, np.floor(distance), 0.0)
    return np.flatnonzero(~is_close | (np.diff(cells, prepend=0.0) > 0))


MAX_DOMAIN_SIZE = 1 << 53
"""Floats represent every integer up to this one."""


@dataclass(frozen=True, slots=True)
class SymmetricChannel(SymmetricKernel):
    """Randomized response: x is reported with probability ``keep``, each other value with ``other``, else it is erased.

    keep + (k − 1) other + erased = 1; ``erased`` is output k. Every pair of rows looks like (keep, other, …) against
    (other, keep, …), so there are closed forms in k. Raises ``InputError`` unless 2 ≤ k ≤ 2⁵³ and the probabilities
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
        k = _check_domain(self.k)
        parts = (
            check_probability("keep", self.keep),
            check_non_negative("other", self.other),
            check_probability("erased", self.erased),
        )
        total = math.fsum((parts[0], (k - 1) * parts[1], parts[2]))
        if not abs(total - 1) <= SUM_TOLERANCE:
            raise InputError(
                "keep + (k - 1) other + erased", total, "1 within 1e-9", "other is the probability of each other value"
            )
        for name, part in zip(("keep", "other", "erased"), parts, strict=True):
            object.__setattr__(self, name, part / total)

    @classmethod
    def randomized_response(cls, epsilon: float, k: int) -> SymmetricChannel:
        """Return the channel with keep = e^ε / (e^ε + k − 1) and erased = 0.

        κ = (e^ε − 1)² / ((e^ε + k − 1)(e^ε + 1)) (theory §5).

        >>> round(SymmetricChannel.randomized_response(1.3, 10).kl_contraction, 9)
        0.12044526
        """
        count = _check_domain(k)
        shrunk = math.exp(-check_non_negative("epsilon", epsilon))
        whole_weight = 1 + (count - 1) * shrunk
        return cls(count, 1 / whole_weight, shrunk / whole_weight)

    @property
    def input_count(self) -> int:
        return self.k

    @property
    def output_count(self) -> int:
        return self.k + (self.erased > 0)

    @property
    def row_pair(self) -> Channel:
        """Two rows over the outputs: the first value, the second, any other or erased."""
        rest = (self.k - 2) * self.other + self.erased
        return Channel([[self.keep, self.other, rest], [self.other, self.keep, rest]])

    def output_distribution(self, p: Floats) -> Floats:
        """Return the distribution of reports. Linear in ``p``: ``ProductChannel`` passes parts with other sums."""
        total = p.sum()
        reported = self.other * total + (self.keep - self.other) * p
        return np.append(reported, self.erased * total) if self.erased > 0 else reported

    def channel_capacity(self) -> Bounds:
        """Return bounds on the capacity, which is I(X; Z) at the uniform prior.

        That is keep log(keep/m) + (k − 1) other log(other/m), m = (1 − erased)/k.
        """
        m = (1 - self.erased) / self.k
        value = float(rel_entr(self.keep, m) + (self.k - 1) * rel_entr(self.other, m))
        return Bounds(max(0.0, value * (1 - 1e-12) - 1e-14), value * (1 + 1e-12) + 1e-14)

    def to_channel(self) -> Channel:
        """Return the channel as a matrix; ``InputError`` beyond 2²⁶ entries."""
        if not self.k * self.output_count <= LARGEST_PRODUCT:
            raise InputError(
                "k",
                self.k,
                f"such that the matrix has at most {LARGEST_PRODUCT} entries",
                "use this channel without a matrix",
            )
        matrix = np.full((self.k, self.output_count), self.other)
        np.fill_diagonal(matrix, self.keep)
        if self.erased > 0:
            matrix[:, -1] = self.erased
        return Channel(matrix)

    def erase(self, alpha: float) -> SymmetricChannel:
        """Return the channel whose reports are erased with probability ``alpha``; both erasures are one output.

        >>> round(SymmetricChannel(2, 0.75, 0.25).erase(0.5).total_variation, 12)
        0.25
        """
        left = 1 - check_probability("alpha", alpha)
        return SymmetricChannel(self.k, left * self.keep, left * self.other, 1 - left * (1 - self.erased))

    def product_with(self, *others: SymmetricChannel) -> ProductChannel:
        """Return the channel of several attributes, each with its own symmetric channel; see ``ProductChannel``."""
        return ProductChannel((self, *others))

    @property
    def conditional_entropy(self) -> float:
        """H(Z | X) in nats: the same for every input."""
        parts = entr(np.array([self.keep, self.other, self.erased]))
        return float(parts[0] + (self.k - 1) * parts[1] + parts[2])

    def _mutual_information(self, p: Floats) -> float:
        """Return H(Z) − H(Z | X) in nats."""
        return max(0.0, kernel.shannon_entropy(self.output_distribution(p)) - self.conditional_entropy)


def _check_domain(k: object) -> int:
    size = check_integer("k", k, at_least=2, remedy="k is the number of values")
    if not size <= MAX_DOMAIN_SIZE:
        raise InputError("k", "more than 2^53" if size >> 64 else size, "at most 2^53", "hash the values into fewer")
    return size
