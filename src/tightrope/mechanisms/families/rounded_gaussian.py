"""The whole number nearest to a Gaussian: the optimum of one release for Gaussian trade-offs (theory §4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr

from tightrope.mechanisms.families.family import NORMAL, Family, Several, Sized
from tightrope.mechanisms.families.weights import Need, Weights, cells
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism, Tabulated
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.arrays import Floats

TAIL = 13.2
"""Deviations beyond which a rounded Gaussian has less than 2⁻¹²⁸."""


@dataclass(frozen=True, slots=True)
class RoundedGaussian(Family):
    """In plans the discrete Gaussian stands for it: where plans are wide, they are alike."""

    name: ClassVar[str] = "rounded Gaussian"
    bounded: ClassVar[bool] = True
    planned: ClassVar[bool] = False

    def weights(self, size: float, need: Need) -> Weights:
        return Weights(_cells(size * need.shift * NORMAL))

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return Tabulated(NoiseTable.from_probabilities(_cells(size)), need.shift)

    def guess(self, epsilon: float, need: Need) -> float:
        return float(need.shift)

    def laws(self, asked: Several) -> Sequence[Sized]:
        reach = math.sqrt(2 * asked.depth)

        def weights(size: float) -> Floats:
            edges = log_ndtr((0.5 - np.arange(1, cells(reach * size) + 1)) / size)  # P(X ≥ k), k = 1, 2, …
            inner = np.exp(edges[:-1]) * -np.expm1(edges[1:] - edges[:-1])
            return np.concatenate([[1 - 2 * math.exp(edges[0])], inner])

        return (Sized(weights, asked.gaussian_scale),)


def _cells(scale: float) -> Floats:
    edges = (np.arange(math.ceil(TAIL * scale) + 2) - 0.5) / scale
    tails = ndtr(-edges)
    return np.asarray(tails[:-1] - tails[1:])
