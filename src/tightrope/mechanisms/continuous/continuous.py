"""What all real-valued noise laws share: a loss and errors, and a refusal to sample.

A floating-point sample of a continuous law leaks (which outputs are possible depends on the data), so these laws are
for accounting and comparison; their discrete twins are for release.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NoReturn

from tightrope.errors import InputError
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.checks import inner_probability
from tightrope.randomness.source import Source


class Continuous(Mechanism):
    """A symmetric density on the real line."""

    __slots__ = ()

    twin: str
    """Name of the integer law to release with."""

    @abstractmethod
    def _upper_quantile(self, tail: float) -> float:
        """X ≥ 0 with P(X > x) = tail, for 0 < tail ≤ ½."""

    def quantile(self, p: float) -> float:
        """X with P(X ≤ x) = p. Raises ``InputError`` unless 0 < p < 1."""
        p = inner_probability("p", p)
        return self._upper_quantile(1 - p) if p >= 0.5 else -self._upper_quantile(p)

    def half_width(self, confidence: float) -> float:
        """W with P(|X| ≤ w) = confidence."""
        return self._upper_quantile((1 - inner_probability("confidence", confidence)) / 2)

    def sample(self, size: int, randomness: Source | None = None) -> NoReturn:
        """Raises ``InputError``: floating-point samples of a continuous law leak."""
        del randomness
        self._refuse("size", size)

    def release(self, value: Any, randomness: Source | None = None) -> NoReturn:
        """Raises ``InputError``; see ``sample``."""
        del randomness
        self._refuse("value", type(value).__name__)

    def _refuse(self, name: str, value: object) -> NoReturn:
        raise InputError(
            name,
            value,
            "asked of an integer law",
            f"floating-point samples of a continuous law leak; round to integers and use tightrope.{self.twin}",
        )
