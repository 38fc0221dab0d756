"""Several attributes of one person, each through its own symmetric channel, without the product's matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tightrope.channels.channel import Channel
from tightrope.channels.envelope import Curve
from tightrope.channels.information import entropy
from tightrope.channels.similar_rows import Alike
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.privacy.curves.bounds import Bounds
from tightrope.privacy.loss import PrivacyLoss

if TYPE_CHECKING:
    from tightrope.channels.symmetric import SymmetricChannel

MOST_OUTPUTS = 1 << 20
"""Outputs of the pair, after those with equal ratio are one."""
EQUAL = 1e-14
"""Losses closer than this are one."""
MOST_STATES = 1 << 26
"""Entries of a joint law."""


@dataclass(frozen=True, slots=True)
class ProductChannel(Alike):
    """Independent reports of several attributes, all of which may differ between two people.

    Input (x_1, …, x_n) in row-major order. Two rows that agree in an attribute are dominated by two that do not; where
    they differ, each factor looks like its own pair, which is its own mirror: one product of pairs stands for all.
    Raises ``InputError`` for an empty product.

    >>> from tightrope.channels import SymmetricChannel
    >>> twice = SymmetricChannel.randomized_response(0.5, 1000).product(SymmetricChannel.randomized_response(0.5, 10))
    >>> round(twice.epsilon, 12), twice.inputs
    (1.0, 10000)
    """

    factors: tuple[SymmetricChannel, ...]

    def __post_init__(self) -> None:
        if not self.factors:
            raise InputError("factors", self.factors, "at least one channel")

    @property
    def inputs(self) -> int:
        return math.prod(factor.inputs for factor in self.factors)

    @property
    def outputs(self) -> int:
        return math.prod(factor.outputs for factor in self.factors)

    @property
    def pair(self) -> Channel:
        """The product of the factors' pairs."""
        rows = reduce(_joined, (factor.pair.matrix for factor in self.factors))
        return Channel(rows)

    @property
    def epsilon(self) -> float:
        """The sum: every factor may have its worst report at once."""
        return math.fsum(factor.epsilon for factor in self.factors)

    @property
    def loss(self) -> PrivacyLoss:
        """The composition of the factors' losses."""
        return sum((factor.loss for factor in self.factors[1:]), self.factors[0].loss)

    def push(self, p: Floats) -> Floats:
        """One attribute after the other. Raises ``InputError`` beyond 2²⁶ joint reports."""
        if not self.outputs <= MOST_STATES:
            raise InputError(
                "outputs", self.outputs, f"at most {MOST_STATES} for a joint law", "ask each attribute alone"
            )
        joint = p.reshape([factor.inputs for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            joint = np.apply_along_axis(factor.push, axis, joint)
        return joint.ravel()

    def capacity(self) -> Bounds:
        """Capacities of independent channels add up."""
        limits = [factor.capacity() for factor in self.factors]
        return Bounds(sum(low for low, _ in limits), sum(high for _, high in limits))

    def _information(self, p: Floats) -> float:
        """H(Z) − Σ_i H(Z_i | X_i): given the attributes, the reports are independent."""
        known = math.fsum(factor.noise for factor in self.factors)
        return max(0.0, entropy(self.push(p)) - known)

    def _curve(self) -> Curve:
        """Putting outputs together that differ by ``EQUAL`` costs at most that much a factor."""
        curve = self.pair._curve()
        return replace(curve, error=curve.error + EQUAL * len(self.factors))


def _joined(first: Floats, second: Floats) -> Floats:
    """Kronecker product of two pairs of rows, row by row, outputs of equal ratio put together, and none that never
    happen: they would multiply.
    """
    rows = np.stack([np.outer(a, b).ravel() for a, b in zip(first, second, strict=True)])
    rows = rows[:, rows.any(axis=0)]
    with np.errstate(divide="ignore"):
        losses = np.log(rows[0]) - np.log(rows[1])
    order = np.argsort(losses)
    starts = _groups(losses[order])
    if not len(starts) <= MOST_OUTPUTS:
        raise InputError("outputs of the pair", len(starts), f"at most {MOST_OUTPUTS}", "take fewer different factors")
    return np.asarray(np.add.reduceat(rows[:, order], starts, axis=1))


def _groups(losses: Floats) -> NDArray[np.intp]:
    """Where groups of nearly equal losses begin: none is wider than ``EQUAL``, however many follow closely.

    ``losses`` ascend; infinite ones stay alone.
    """
    with np.errstate(invalid="ignore"):
        close = np.diff(losses, prepend=-math.inf) <= EQUAL
        chains = np.flatnonzero(~close)
        beyond = (losses - losses[chains[np.cumsum(~close) - 1]]) / EQUAL
    cells = np.where(close, np.floor(beyond), 0.0)
    return np.flatnonzero(~close | (np.diff(cells, prepend=0.0) > 0))
