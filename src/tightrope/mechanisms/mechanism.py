"""The interface of a mechanism; accounting, design and reports derive everything else from it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.display import Displayed, Rounded, Shown, Summary, reporting_package
from tightrope.errors import InputError
from tightrope.numerics.checks import check_inner_probability, check_non_negative, check_positive
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.randomness.bits import Source

if TYPE_CHECKING:
    from tightrope.display import Figure

PLOTTED_TAILS = tuple(10.0 ** (-digits / 4) for digits in range(1, 37))
"""Probabilities of larger errors at which continuous noise is drawn."""


class Mechanism(Displayed, ABC):
    """A noise distribution for a declared sensitivity: its privacy loss, its errors, its sampler.

    Errors refer to the noise X itself: E|X|, E X², sup |X|.
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
        """The largest possible |X|; ``math.inf`` if unbounded."""

    @abstractmethod
    def quantile(self, p: float) -> float:
        """Return the smallest x with P(X ≤ x) ≥ p, for 0 < p < 1."""

    @abstractmethod
    def half_width(self, confidence: float) -> float:
        """Return the smallest w with P(|X| ≤ w) ≥ confidence: the interval answer ± w has that coverage."""

    def text_summary(self) -> Summary:
        """Return the errors of the noise."""
        facts: list[tuple[str, Shown]] = [
            ("expected absolute error", Rounded(self.mean_absolute_error, "up")),
            ("standard deviation", Rounded(math.sqrt(self.mean_squared_error), "up")),
            ("95 % margin of error", Rounded(self.half_width(0.95), "up")),
            ("maximum error", Rounded(self.worst_error, "up") if math.isfinite(self.worst_error) else "unbounded"),
        ]
        sensitivity = getattr(self, "sensitivity", None)
        return Summary("" if sensitivity is None else f"sensitivity {sensitivity:g}", facts)

    def plot(self) -> Figure:
        """Draw the probability of a larger error, |X| > x, on a logarithmic axis, as a matplotlib figure.

        Raises ``MissingExtraError`` without matplotlib.
        """
        tails = [(float(self.half_width(1 - tail)), tail) for tail in PLOTTED_TAILS]
        figure: Figure = reporting_package().plots.noise_tails({type(self).__name__: tails})
        return figure

    @abstractmethod
    def sample(self, size: int, randomness: Source | None = None) -> NDArray[Any]:
        """Return ``size`` independent draws of X, shape [size]; by default from the operating system."""

    @abstractmethod
    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Return ``value`` + X, with fresh noise for every entry of an array."""


# Common base of all real-valued noise: a loss and errors, but no sampling.
#
# A floating-point sample of a continuous distribution leaks (the set of possible outputs depends on the data), so these
# mechanisms are for accounting and comparison; use the discrete versions for release.


class ContinuousMechanism(Mechanism):
    """A mechanism with a symmetric density on the real line."""

    __slots__ = ()

    integer_counterpart: str
    """Name of the integer mechanism to use for release in its place."""

    @abstractmethod
    def _upper_quantile(self, tail: float) -> float:
        """Return x ≥ 0 with P(X > x) = tail, for 0 < tail ≤ ½."""

    def quantile(self, p: float) -> float:
        """Return x with P(X ≤ x) = p. Raises ``InputError`` unless 0 < p < 1."""
        p = check_inner_probability("p", p)
        return self._upper_quantile(1 - p) if p >= 0.5 else -self._upper_quantile(p)

    def half_width(self, confidence: float) -> float:
        """Return w with P(|X| ≤ w) = confidence."""
        return self._upper_quantile((1 - check_inner_probability("confidence", confidence)) / 2)

    def sample(self, size: int, randomness: Source | None = None) -> NoReturn:
        """Raise ``InputError``: floating-point samples of a continuous distribution leak."""
        del randomness
        self._refuse_sampling("size", size)

    def release(self, value: Any, randomness: Source | None = None) -> NoReturn:
        """Raise ``InputError``; see ``sample``."""
        del randomness
        self._refuse_sampling("value", type(value).__name__)

    def _refuse_sampling(self, name: str, value: object) -> NoReturn:
        raise InputError(
            name,
            value,
            "requested from an integer mechanism",
            f"floating-point samples of continuous noise leak; round to integers and use "
            f"tightrope.{self.integer_counterpart}",
        )


# Sensitivity over scale at both ends of double precision: no noise at all, and noise that hides everything.

LEAST = 1e-300
"""Smaller losses are rejected: their formulas would leave double precision."""
LEFT_OUT = "the loss is too small for double precision: leave this release out of the account"


def check_noise_size(scale: object, sensitivity: object) -> tuple[float, float]:
    """Return both as floats; the scale may be 0, for no noise.

    Raises ``InputError`` for a negative scale, a sensitivity that is not positive, and a scale of more than 10³⁰⁰ times
    the sensitivity.
    """
    noise_scale, max_change = check_non_negative("scale", scale), check_positive("sensitivity", sensitivity)
    if not sensitivity_ratio(noise_scale, max_change) >= LEAST:
        raise InputError("scale", noise_scale, f"at most 1e300 times the sensitivity, {max_change:g}", LEFT_OUT)
    return noise_scale, max_change


def check_smallest_epsilon(epsilon: float) -> float:
    """Return an ε that is 0 or at least 10⁻³⁰⁰; raises ``InputError`` for values between."""
    if not (epsilon == 0 or epsilon >= LEAST):
        raise InputError("epsilon", epsilon, "at least 1e-300", LEFT_OUT)
    return epsilon


def sensitivity_ratio(scale: float, sensitivity: float) -> float:
    """Return sensitivity / scale; ∞ if scale = 0 or the ratio overflows."""
    return sensitivity / scale if scale > 0 else math.inf


def full_disclosure_loss(scale: float) -> PrivacyLoss:
    """Return the loss of a mechanism that discloses the data: infinite with probability 1.

    For a positive scale it is an upper bound: the loss exceeds every double with a probability that rounds to 1.
    """
    nothing = np.zeros(0)
    law = Atoms(nothing, nothing, 1.0, 1.0, relative_mass_error=0.0 if scale == 0 else 2 * ROUND_OFF)
    return PrivacyLoss.from_distribution(law, reverse=law)
