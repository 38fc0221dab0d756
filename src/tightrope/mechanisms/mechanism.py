"""What every mechanism declares; accounting, design and reports derive the rest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.numerics.checks import inner_probability, non_negative, positive
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.randomness.bits import Source


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


# What all real-valued noise laws share: a loss and errors, and a refusal to sample.
#
# A floating-point sample of a continuous law leaks (which outputs are possible depends on the data), so these laws
# are for accounting and comparison; their discrete twins are for release.


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


# Sensitivity over scale at both ends of double precision: no noise at all, and noise that hides everything.

LEAST = 1e-300
"""What loses less than this is left out of an account: its formulas would leave double precision."""
LEFT_OUT = "so little is lost that doubles hardly hold it: leave this release out of the account"


def checked(scale: object, sensitivity: object) -> tuple[float, float]:
    """Both as floats: the scale may be 0, which is no noise.

    Raises ``InputError`` for a negative scale, a sensitivity that is not positive, and where the scale is more than
    10³⁰⁰ times the sensitivity.
    """
    size, most = non_negative("scale", scale), positive("sensitivity", sensitivity)
    if not ratio(size, most) >= LEAST:
        raise InputError("scale", size, f"at most 1e300 times the sensitivity, {most:g}", LEFT_OUT)
    return size, most


def not_faint(epsilon: float) -> float:
    """An ε that is 0 or at least 10⁻³⁰⁰; raises ``InputError`` for one between."""
    if not (epsilon == 0 or epsilon >= LEAST):
        raise InputError("epsilon", epsilon, "at least 1e-300", LEFT_OUT)
    return epsilon


def ratio(scale: float, sensitivity: float) -> float:
    """Sensitivity / scale; ∞ where there is no noise, or less than a double can tell."""
    return sensitivity / scale if scale > 0 else math.inf


def disclosed(scale: float) -> PrivacyLoss:
    """The loss of noise that hides nothing: infinite, certainly.

    For a positive scale it is a bound on what has no double: the loss exceeds all of them with a probability that is
    1 to all digits.
    """
    nothing = np.zeros(0)
    law = Atoms(nothing, nothing, 1.0, 1.0, inexact=0.0 if scale == 0 else 2 * ROUND_OFF)
    return PrivacyLoss.of(law, reverse=law)
