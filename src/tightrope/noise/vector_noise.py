"""Noise for a vector of integers: by L1, by L2 or by L∞, whichever costs least (theory §4.3).

A person changes a vector by v with ‖v‖₁ ≤ l1, ‖v‖₂ ≤ l2, ‖v‖∞ ≤ linf; coordinates get independent noise.
- Gaussian noise loses by ‖v‖₂ alone: rounded to integers it is post-processing of a normal distribution, so
  l2/scale-GDP holds in any dimension. Best where a change is spread over many coordinates, or nothing but L2 is known.
- Other noise loses more if the same change is in few coordinates, or in many, as the budget has it. All ways in which
  whole rows may fall into coordinates are enumerated (``contributions``): best for few rows.
- With linf = 1 the worst change shifts l1 coordinates by one each: l1 releases of sensitivity 1, for which
  the weights themselves are optimized (``composed_noise``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.gaussian_sampling import SMALLEST, LargeGaussian
from tightrope.mechanisms.discrete.integer_mechanism import TableMechanism
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.noise.allocation import allocate_noise
from tightrope.noise.calibrate import calibrate
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SplitBounds
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.randomness.bits import Source


@dataclass(frozen=True, slots=True)
class VectorChange:
    """Bounds on the change of the vector by one person; omitted bounds are derived from the others."""

    dimension: int
    l1: int
    l2_squared: int
    linf: int

    @classmethod
    def from_norms(cls, dimension: int, l1: int | None, l2: float | None, linf: int | None) -> VectorChange:
        """Return consistent bounds; ``InputError`` if all are omitted.

        For integers ‖v‖∞ ≤ ‖v‖₂ ≤ ‖v‖₁ ≤ ‖v‖₂², ‖v‖₂² ≤ ‖v‖₁‖v‖∞ and ‖v‖₁² ≤ d‖v‖₂².

        >>> VectorChange.from_norms(100, 10, None, 1)
        VectorChange(dimension=100, l1=10, l2_squared=10, linf=1)
        """
        dimension = check_integer("dimension", dimension)
        if l1 is None and l2 is None and linf is None:
            raise InputError(
                "l1", None, "at least one of l1, l2 and linf", "how much can one person change the vector?"
            )
        square = math.inf if l2 is None else math.floor(check_positive("l2", l2) ** 2 * (1 + 1e-12))
        most = math.inf if linf is None else check_integer("linf", linf)
        total = math.inf if l1 is None else check_integer("l1", l1)
        if not square >= 1:
            raise InputError("l2", l2, "at least 1", "a change below 1 changes no whole number")
        most = min(most, total, math.isqrt(int(square)) if square < math.inf else math.inf)
        by_square = min(square, math.isqrt(int(square) * dimension)) if square < math.inf else math.inf
        total = min(total, dimension * most, by_square)
        square = min(square, total * most, dimension * most**2)
        return cls(dimension, int(total), int(square), int(most))


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """Independent noise for every coordinate; ``loss`` is the loss of the whole vector.

    ``way`` names the bound that was used, ``candidates`` the E X² of one coordinate for each, or why it fails.
    """

    noise: Mechanism
    loss: PrivacyLoss
    bound_name: str
    change: VectorChange
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
    """Return the least noise (E X² per coordinate) for which a vector meets the budget under any change of one person.

    Give every bound that holds: a histogram to which a person adds at most 10 rows, one a cell, has l1=10 and linf=1.
    The loss is an upper bound over all such changes, certified from what is sampled; **parameters fixed in advance**.
    Neighbors: as defined by the bounds. Raises ``InsufficientBudgetError`` if the budget cannot be met.

    >>> found = vector_noise(Budget(epsilon=1, delta=1e-6), dimension=1000, l1=10, linf=1)
    >>> found.bound_name, found.mean_squared_error < 159 < found.candidates["L2"]
    ('L1, one each', True)
    """
    change = VectorChange.from_norms(dimension, l1, l2, linf)
    ways: dict[str, Callable[[Budget, VectorChange], tuple[Mechanism, PrivacyLoss]]] = {
        "L2": _noise_by_l2,
        "L1, one each" if change.linf == 1 else "L1, every split": _noise_by_l1,
    }
    found: dict[str, tuple[Mechanism, PrivacyLoss]] = {}
    candidates: dict[str, float | str] = {}
    for name, search in ways.items():
        try:
            found[name] = search(budget, change)
            candidates[name] = found[name][0].mean_squared_error
        except (InsufficientBudgetError, InputError) as error:
            candidates[name] = str(error)
    if not found:
        raise InsufficientBudgetError("; ".join(f"{name}: {reason}" for name, reason in candidates.items()))
    way = min(found, key=lambda name: found[name][0].mean_squared_error)
    return VectorNoise(*found[way], way, change, candidates)


def _noise_by_l2(budget: Budget, change: VectorChange) -> tuple[Mechanism, PrivacyLoss]:
    """Exact discrete Gaussian: each coordinate d apart is dominated by a normal pair d/√(scale² − ½) apart."""
    length = math.sqrt(change.l2_squared)
    found = calibrate(
        lambda scale: PrivacyLoss.from_distribution(
            GaussianLossDistribution(length / math.sqrt(scale**2 - 0.5) * (1 + 2.0**-48))
        ),
        budget,
        smallest=SMALLEST,
        largest=1e9,
    )
    return LargeGaussian.from_scale(found.parameter, change.linf), found.loss


def _noise_by_l1(budget: Budget, change: VectorChange) -> tuple[Mechanism, PrivacyLoss]:
    """The worst way in which whole rows may fall into coordinates."""
    if change.linf == 1:
        # Releases of sensitivity 1, one for each coordinate that can change; fewer changes are dominated.
        noise = TableMechanism(composed_noise(budget, releases=change.l1).table)
        return noise, change.l1 * noise.loss
    # The pointwise maximum of whole profiles over all ways.
    contribution = SplitBounds(change.l1, change.linf, min(change.dimension, change.l1))
    found = allocate_noise([CompositionGroup((NoiseSpec("vector", 8, whole_rows=True),), contribution)], budget)
    return TableMechanism(found.selections[0][0].scalar_table, change.linf), found.loss
