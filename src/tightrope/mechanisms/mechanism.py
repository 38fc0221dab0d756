"""What every mechanism declares; accounting, design and reports derive the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tightrope.randomness.source import Source

if TYPE_CHECKING:
    from tightrope.privacy.loss import PrivacyLoss


class Mechanism(ABC):
    """A noise law for a declared sensitivity: its privacy loss, its errors, its sampler.

    Errors are those of the noise X itself: E|X|, E X², sup |X|.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """A dominating pair for every shift up to the declared sensitivity."""

    @property
    @abstractmethod
    def mean_absolute_error(self) -> float:
        """E|X|."""

    @property
    @abstractmethod
    def mean_squared_error(self) -> float:
        """E X²."""

    @property
    @abstractmethod
    def worst_error(self) -> float:
        """The largest |X| that can happen; ``math.inf`` where there is none."""

    @abstractmethod
    def quantile(self, p: float) -> float:
        """The smallest x with P(X ≤ x) ≥ p, for 0 < p < 1."""

    @abstractmethod
    def half_width(self, confidence: float) -> float:
        """The smallest w with P(|X| ≤ w) ≥ confidence: the answer ± w covers the truth that often."""

    @abstractmethod
    def sample(self, size: int, randomness: Source | None = None) -> NDArray[Any]:
        """``size`` independent draws of X, shape [size]; from the operating system unless a source is given."""

    @abstractmethod
    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """``value`` + X, with fresh noise for every entry of an array."""
