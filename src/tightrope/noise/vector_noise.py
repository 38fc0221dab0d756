"""Noise for a vector of integers: the least of several candidates, for bounds by L1, L2 and L∞ (theory §4.3).

A person changes a vector by v with ‖v‖₁ ≤ l1, ‖v‖₂ ≤ l2, ‖v‖∞ ≤ linf; coordinates get independent noise.
- Gaussian noise: its loss depends on ‖v‖₂ alone. Rounded to integers it is post-processing of a normal distribution, so
  l2/scale-GDP holds in any dimension. Best if a change is spread over many coordinates, or if only l2 is given.
- Other noise: its loss depends on how the change is split. All ways in which whole rows may fall into coordinates are
  enumerated (``worst_split``): best for few rows.
- If linf = 1, the worst change shifts l1 coordinates by one each. These are l1 releases of sensitivity 1, for which
  the weights themselves are optimized (``composed_noise``).
- Noise in the shape of a box for up to 16 coordinates: its loss depends on ‖v‖∞ alone (``box_table``), and it needs no
  δ. Best if all coordinates may change by as much.
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
from tightrope.mechanisms.discrete.box_table import MOST_DIMENSIONS, BoxTable
from tightrope.mechanisms.discrete.gaussian_sampling import SMALLEST, LargeGaussian
from tightrope.mechanisms.discrete.integer_mechanism import TableMechanism, add_noise, count_entries
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
        squared = math.inf if l2 is None else math.floor(check_positive("l2", l2) ** 2 * (1 + 1e-12))
        largest = math.inf if linf is None else check_integer("linf", linf)
        total = math.inf if l1 is None else check_integer("l1", l1)
        if not squared >= 1:
            raise InputError("l2", l2, "at least 1", "a change below 1 changes no whole number")
        largest = min(largest, total, math.isqrt(int(squared)) if squared < math.inf else math.inf)
        l1_from_l2 = min(squared, math.isqrt(int(squared) * dimension)) if squared < math.inf else math.inf
        total = min(total, dimension * largest, l1_from_l2)
        squared = min(squared, total * largest, dimension * largest**2)
        return cls(dimension, int(total), int(squared), int(largest))


@dataclass(frozen=True, slots=True)
class BoxMechanism(Mechanism):
    """Joint noise for all coordinates of a vector, each changed by at most ``sensitivity``; errors are of one of them.

    Draws and releases are of whole vectors: the noise of a single coordinate is not private by itself.
    """

    table: BoxTable
    sensitivity: int

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the whole vector."""
        return self.table.loss(self.sensitivity)

    @property
    def mean_absolute_error(self) -> float:
        """E|X_i|."""
        return self.table.mean_absolute

    @property
    def mean_squared_error(self) -> float:
        """E X_i²."""
        return float(self.table.exact_mean_squared)

    @property
    def worst_error(self) -> float:
        """The largest |X_i|; ∞ for a box without a limit."""
        return self.table.largest_magnitude

    def quantile(self, p: float) -> int:
        """Return the smallest x with P(X_i ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return self.table.quantile(p)

    def half_width(self, confidence: float) -> int:
        """Return the smallest w with P(|X_i| ≤ w) ≥ confidence."""
        return self.table.half_width(confidence)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """Return ``size`` numbers, whole vectors one after the other; ``InputError`` unless they are whole vectors."""
        vectors, rest = divmod(check_integer("size", size, at_least=0), self.table.dimension)
        if rest:
            raise InputError("size", size, f"a multiple of {self.table.dimension}, the dimension", "draw whole vectors")
        return self.table.draw_points(vectors, randomness).ravel()

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Return vectors + noise; the last axis of ``value`` has the coordinates."""
        size = count_entries(value)
        if np.shape(value)[-1:] != (self.table.dimension,):
            raise InputError(
                "value", np.shape(value), f"vectors of {self.table.dimension} integers", "release them whole"
            )
        return add_noise(value, self.sample(size, randomness))


@dataclass(frozen=True, slots=True)
class VectorNoise:
    """Noise for every coordinate, independent or in the shape of a box; ``loss`` is the loss of the whole vector.

    ``bound_name`` is the bound that was used; ``candidates`` has the E X² of one coordinate for each bound, or the
    reason why it failed.
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
        """Return values + noise, shape [dimension]; ``InputError`` for another shape or anything but integers."""
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
    searches: dict[str, Callable[[Budget, VectorChange], tuple[Mechanism, PrivacyLoss]]] = {
        "L2": _noise_by_l2,
        "L1, one each" if change.linf == 1 else "L1, every split": _noise_by_l1,
    }
    if 1 < change.dimension <= MOST_DIMENSIONS:
        searches["L∞, in a box"] = _noise_by_linf
    found: dict[str, tuple[Mechanism, PrivacyLoss]] = {}
    candidates: dict[str, float | str] = {}
    for name, search in searches.items():
        try:
            found[name] = search(budget, change)
            candidates[name] = found[name][0].mean_squared_error
        except (InsufficientBudgetError, InputError) as error:
            candidates[name] = str(error)
    if not found:
        raise InsufficientBudgetError("; ".join(f"{name}: {reason}" for name, reason in candidates.items()))
    bound_name = min(found, key=lambda name: found[name][0].mean_squared_error)
    return VectorNoise(*found[bound_name], bound_name, change, candidates)


def _noise_by_l2(budget: Budget, change: VectorChange) -> tuple[Mechanism, PrivacyLoss]:
    """Return discrete Gaussian noise: a change by d is dominated by a normal pair with distance d/√(scale² − ½)."""
    l2 = math.sqrt(change.l2_squared)
    calibration = calibrate(
        lambda scale: PrivacyLoss.from_distribution(
            GaussianLossDistribution(l2 / math.sqrt(scale**2 - 0.5) * (1 + 2.0**-48))
        ),
        budget,
        smallest=SMALLEST,
        largest=1e9,
    )
    return LargeGaussian.from_scale(calibration.parameter, change.linf), calibration.loss


def _noise_by_l1(budget: Budget, change: VectorChange) -> tuple[Mechanism, PrivacyLoss]:
    """Return noise for the worst way in which whole rows may fall into coordinates."""
    if change.linf == 1:
        # Releases of sensitivity 1, one for each coordinate that can change; fewer changes are dominated.
        noise = TableMechanism(composed_noise(budget, releases=change.l1).table)
        return noise, change.l1 * noise.loss
    # The pointwise maximum of whole profiles over all splits.
    split_bounds = SplitBounds(change.l1, change.linf, min(change.dimension, change.l1))
    allocation = allocate_noise([CompositionGroup((NoiseSpec("vector", 8, whole_rows=True),), split_bounds)], budget)
    return TableMechanism(allocation.selections[0][0].scalar_table, change.linf), allocation.loss


def _noise_by_linf(budget: Budget, change: VectorChange) -> tuple[Mechanism, PrivacyLoss]:
    """Return joint noise for which all coordinates may change by ``linf`` at once: the corner of a box."""
    spec = NoiseSpec("vector", 8, whole_rows=True, dimension=change.dimension)
    group = CompositionGroup((spec,), SplitBounds(change.linf, change.linf, 1))
    allocation = allocate_noise([group], budget)
    table = allocation.selections[0][0].table
    assert isinstance(table, BoxTable)  # noqa: S101 - the noise of several numbers
    return BoxMechanism(table, change.linf), allocation.loss
