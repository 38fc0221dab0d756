"""Noise for a vector of whole numbers: by L1, by L2 or by L∞, whichever costs least (theory §4.3).

A person changes a vector by v with ‖v‖₁ ≤ l1, ‖v‖₂ ≤ l2, ‖v‖∞ ≤ linf; coordinates get independent noise.
- Gaussian noise loses by ‖v‖₂ alone: rounded to whole numbers it is post-processing of a normal law, so l2/scale-GDP
  holds in any dimension. Best where a change is spread over many coordinates, or nothing but L2 is known.
- Other noise loses more if the same change is in few coordinates, or in many, as the budget has it. All ways in which
  whole rows may fall into coordinates are gone through (``contributions``): best for few rows.
- With linf = 1 the worst change touches l1 coordinates by one each: so many releases of sensitivity 1, for which
  the weights themselves are optimised (``composed_noise``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.discrete.gaussian_sampling import SMALLEST, LargeGaussian
from tightrope.mechanisms.discrete.integer_mechanism import Tabulated
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.noise.allocation import allocate
from tightrope.noise.calibrate import calibrate
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.worst_split import Contribution, Spend, Unit
from tightrope.numerics.checks import positive, whole
from tightrope.randomness.bits import Source


@dataclass(frozen=True, slots=True)
class Change:
    """How much one person may change the vector; what was not said follows from what was."""

    dimension: int
    l1: int
    l2_squared: int
    linf: int

    @classmethod
    def of(cls, dimension: int, l1: int | None, l2: float | None, linf: int | None) -> Change:
        """Consistent bounds; ``InputError`` where none was given.

        For whole numbers ‖v‖∞ ≤ ‖v‖₂ ≤ ‖v‖₁ ≤ ‖v‖₂², ‖v‖₂² ≤ ‖v‖₁‖v‖∞ and ‖v‖₁² ≤ d‖v‖₂².

        >>> Change.of(100, 10, None, 1)
        Change(dimension=100, l1=10, l2_squared=10, linf=1)
        """
        dimension = whole("dimension", dimension)
        if l1 is None and l2 is None and linf is None:
            raise InputError(
                "l1", None, "at least one of l1, l2 and linf", "how much can one person change the vector?"
            )
        square = math.inf if l2 is None else math.floor(positive("l2", l2) ** 2 * (1 + 1e-12))
        most = math.inf if linf is None else whole("linf", linf)
        total = math.inf if l1 is None else whole("l1", l1)
        if not square >= 1:
            raise InputError("l2", l2, "at least 1", "a change below 1 changes no whole number")
        most = min(most, total, math.isqrt(int(square)) if square < math.inf else math.inf)
        by_square = min(square, math.isqrt(int(square) * dimension)) if square < math.inf else math.inf
        total = min(total, dimension * most, by_square)
        square = min(square, total * most, dimension * most**2)
        return cls(dimension, int(total), int(square), int(most))


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """Independent noise for every coordinate; ``loss`` is that of the whole vector.

    ``way`` says by which bound it holds, ``candidates`` what E X² of one coordinate each way needs, or why it fails.
    """

    noise: Mechanism
    loss: PrivacyLoss
    way: str
    change: Change
    candidates: dict[str, float | str] = field(repr=False)

    @property
    def mean_squared_error(self) -> float:
        """E X² of one coordinate."""
        return self.noise.mean_squared_error

    def release(self, values: Any, randomness: Source | None = None) -> NDArray[Any]:
        """Values + noise, shape [dimension]; raises ``InputError`` for another shape or anything but integers."""
        array = np.asarray(values)
        if array.shape != (self.change.dimension,):
            raise InputError("values", array.shape, f"shape ({self.change.dimension},)", "one value a coordinate")
        noisy: NDArray[Any] = self.noise.release(array, randomness)
        return noisy


def vector_noise(
    budget: Budget, *, dimension: int, l1: int | None = None, l2: float | None = None, linf: int | None = None
) -> VectorNoise:
    """The least noise (E X² a coordinate) for which a vector keeps the budget, whatever one person changes.

    Give every bound that holds: a histogram to which a person adds at most 10 rows, one a cell, has l1=10 and linf=1.
    The loss is an upper bound over all such changes, certified from what is sampled; **parameters fixed in advance**.
    Neighbours: whatever the bounds speak of. Raises ``BudgetRefused`` where nothing keeps the budget.

    >>> found = vector_noise(Budget(epsilon=1, delta=1e-6), dimension=1000, l1=10, linf=1)
    >>> found.way, found.mean_squared_error < 159 < found.candidates["L2"]
    ('L1, one each', True)
    """
    change = Change.of(dimension, l1, l2, linf)
    ways: dict[str, Callable[[Budget, Change], tuple[Mechanism, PrivacyLoss]]] = {"L2": _by_l2}
    ways["L1, one each" if change.linf == 1 else "L1, every split"] = _one_each if change.linf == 1 else _every_split
    found: dict[str, tuple[Mechanism, PrivacyLoss]] = {}
    candidates: dict[str, float | str] = {}
    for name, search in ways.items():
        try:
            found[name] = search(budget, change)
            candidates[name] = found[name][0].mean_squared_error
        except (BudgetRefused, InputError) as error:
            candidates[name] = str(error)
    if not found:
        raise BudgetRefused("; ".join(f"{name}: {reason}" for name, reason in candidates.items()))
    way = min(found, key=lambda name: found[name][0].mean_squared_error)
    return VectorNoise(*found[way], way, change, candidates)


def _by_l2(budget: Budget, change: Change) -> tuple[Mechanism, PrivacyLoss]:
    """Exact discrete Gaussian: each coordinate d apart is dominated by a normal pair d/√(scale² − ½) apart."""
    length = math.sqrt(change.l2_squared)
    found = calibrate(
        lambda scale: PrivacyLoss.of(GaussianLaw(length / math.sqrt(scale**2 - 0.5) * (1 + 2.0**-48))),
        budget,
        smallest=SMALLEST,
        largest=1e9,
    )
    return LargeGaussian.of(found.parameter, change.linf), found.loss


def _one_each(budget: Budget, change: Change) -> tuple[Mechanism, PrivacyLoss]:
    """As many releases of sensitivity 1 as coordinates can change; a change of fewer is dominated."""
    found = composed_noise(budget, releases=change.l1)
    noise = Tabulated(found.table)
    return noise, change.l1 * noise.loss


def _every_split(budget: Budget, change: Change) -> tuple[Mechanism, PrivacyLoss]:
    """The pointwise maximum of whole profiles over the ways that whole rows may fall into coordinates."""
    contribution = Contribution(change.l1, change.linf, min(change.dimension, change.l1))
    found = allocate([Unit((Spend("vector", 8, whole_rows=True),), contribution)], budget)
    return Tabulated(found.choices[0][0].plain, change.linf), found.loss
