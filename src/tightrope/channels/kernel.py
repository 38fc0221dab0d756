"""Base class of channels: privacy, contraction, divergences and information of one report."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, rel_entr

from tightrope.accounting.bounds import Bounds
from tightrope.accounting.curves import evaluate_each
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.mechanisms.pairs import from_points
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_non_negative, check_probability
from tightrope.numerics.distributions import normalize_distribution
from tightrope.numerics.divergences import Convex, Divergence, resolve_divergence

CAPACITY_TOLERANCE = 1e-12
"""The capacity iteration stops at this gap between its bounds, relative to the upper one."""
MAX_ROUNDS = 3_000
STEP_GROWTH = 1.3
"""Growth factor of the step after an improvement."""
LONGEST_STEP = 1e6


def shannon_entropy(p: Floats) -> float:
    """Return H(p) = −Σ p log p in nats.

    >>> round(shannon_entropy(np.array([0.5, 0.5])), 12)
    0.69314718056
    """
    return float(entr(p).sum())


def mutual_information(rows: Floats, prior: Floats) -> float:
    """Return I(X; Z) = Σ_x p(x) KL(K(x)‖pK) in nats."""
    return max(0.0, float(prior @ information_gains(rows, prior)))


def information_gains(rows: Floats, prior: Floats) -> Floats:
    """Return KL(K(x)‖pK) for each input x, shape [inputs]; ∞ if pK misses an output of K(x)."""
    return np.asarray(rel_entr(rows, prior @ rows).sum(axis=1), dtype=np.float64)


def capacity_bounds(rows: Floats) -> Bounds:
    """Return bounds on the capacity, the maximum of I(X; Z) over priors, in nats (Blahut–Arimoto; Gallager).

    Every prior p gives the bounds I(X; Z) and max_x KL(K(x)‖pK). The iteration p ← p e^{t KL(K(x)‖pK)}, with t = 1 if a
    longer step makes it worse, brings them together to 1e−12 relative or for ``MAX_ROUNDS``. Rounding is added on both
    sides.

    >>> low, high = capacity_bounds(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> round(low, 9) == round(high, 9) == 0.130812036
    True
    """
    prior, step = np.full(len(rows), 1 / len(rows)), 1.0
    gain = information_gains(rows, prior)
    low, high = float(prior @ gain), float(gain.max())
    for _ in range(MAX_ROUNDS):
        if high - low <= CAPACITY_TOLERANCE * high + 1e-16:
            break
        # The prior with more weight on more informative inputs. Weights stay above 0: a weight of 0 would persist.
        weights = np.maximum(prior * np.exp(step * (gain - gain.max())), 1e-300)
        new_prior = np.asarray(weights / weights.sum())
        new_gain = information_gains(rows, new_prior)
        value = float(new_prior @ new_gain)
        if value < low and step > 1:
            step = 1.0
            continue
        prior, gain, low, step = new_prior, new_gain, max(low, value), min(step * STEP_GROWTH, LONGEST_STEP)
        high = min(high, float(gain.max()))
    rounding = 4e-16 * (rows.shape[1] + len(rows)) * (1 + high)
    return Bounds(max(0.0, low - rounding), high + rounding)


# The upper envelope g(γ) of the profiles of all pairs of rows is convex and piecewise linear. Tangents at both ends of
# an interval meet at a point c between them: if g(c) lies on the tangents, c is the only kink inside and the interval
# is done; otherwise it is split at c, the interval with the largest gap first. Chords between points of a convex curve
# lie on or above it: so the points dominate the envelope whenever the search stops (``docs/proofs/channels.md``).

ROOT_STEPS = 200
CURVE_TOLERANCE = 1e-14
"""Intervals whose chord is this close to the curve are not split."""
LARGEST_LOSS = 600.0
"""Larger losses count as infinite."""
SMALLEST_LOSS = 1e-12
"""A smaller largest loss is raised to this, so that the points differ."""
ROUNDING_FACTOR = 1 + 4e-15
LOG_RATIO_ERROR = 1e-15
"""Largest error of a log-ratio from normalizing two rows: a few units of 2⁻⁵³."""

Evaluate = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class DivergenceCurve:
    """The envelope γ ↦ max E_γ as γ ↦ (value, slope), with its properties."""

    at: Evaluate
    max_loss: float
    """The largest finite loss, in nats: beyond it the envelope is ``infinity_mass``."""
    infinity_mass: float
    """The largest probability, over pairs of rows, of outputs that are impossible for the other input."""
    error: float
    """A bound on the rounding of each value."""
    max_points: int
    """Largest number of points; if there are more kinks, chords replace the rest: still dominating, less tight."""


@dataclass(frozen=True, slots=True, order=True)
class _Point:
    """γ with the value and a slope of the envelope there."""

    gamma: float
    value: float
    slope: float


def dominating_loss(curve: DivergenceCurve) -> PrivacyLoss:
    """Return the loss whose profile is the envelope, for both directions; neighbors are local."""
    top = min(max(curve.max_loss * ROUNDING_FACTOR, SMALLEST_LOSS), LARGEST_LOSS) if curve.max_loss > 0 else 0.0
    # The last point: the envelope is `infinity_mass` there, unless losses exceed `LARGEST_LOSS`.
    gamma = math.exp(top)
    if top < LARGEST_LOSS:
        end = _Point(gamma, min(1.0, curve.infinity_mass * ROUNDING_FACTOR), 0.0)
    else:
        end = _Point(gamma, min(1.0, curve.at(gamma)[0] + curve.error), 0.0)
    # Points of the curve from start to end, with all kinks or as many as `max_points` allows.
    start = _Point(1.0, *curve.at(1.0))
    points = [start]
    intervals = _tangent_interval(start, end)
    while intervals and len(points) < curve.max_points:
        _, meeting, left, right = heapq.heappop(intervals)
        middle = _Point(meeting, *curve.at(meeting))
        points.append(middle)
        if middle.value - (left.value + left.slope * (meeting - left.gamma)) > CURVE_TOLERANCE:
            for part in _tangent_interval(left, middle) + _tangent_interval(middle, right):
                heapq.heappush(intervals, part)
    raised = [
        (math.log(p.gamma) * ROUNDING_FACTOR, min(1.0, p.value + curve.error)) for p in points if p.gamma < end.gamma
    ]
    loss = from_points([*raised, (top, end.value)]).loss
    return PrivacyLoss(loss.remove, loss.add, Neighbors.LOCAL)


def least_epsilon(curve: DivergenceCurve, delta: float) -> float:
    """Return the smallest ε ≥ 0 with envelope ≤ δ, rounded up; ∞ if δ is below ``infinity_mass``.

    Newton steps from γ = 1 stay below the root of the convex decreasing curve and reach it on a linear piece.
    """
    if delta >= 1:
        return 0.0
    if delta < curve.infinity_mass * ROUNDING_FACTOR:
        return _round_up_log_ratio(curve.max_loss) if curve.infinity_mass <= delta else math.inf
    gamma = 1.0
    for _ in range(ROOT_STEPS):
        value, slope = curve.at(gamma)
        excess = value + curve.error - delta
        if excess <= 0:
            return math.log(gamma) * ROUNDING_FACTOR
        if slope == 0 or math.log(gamma) >= curve.max_loss:
            break
        gamma *= 1 + max(1e-15, excess / -slope / gamma)
    return _round_up_log_ratio(curve.max_loss)


def _round_up_log_ratio(largest: float) -> float:
    """Return an upper bound on the exact log-ratio of entries that were divided by their row's sum; 0 stays 0."""
    return largest * ROUNDING_FACTOR + LOG_RATIO_ERROR if largest > 0 else 0.0


def _tangent_interval(left: _Point, right: _Point) -> list[tuple[float, float, _Point, _Point]]:
    """Return [(− gap, γ, ends)]: both tangents meet at γ, ``gap`` below the chord; [] if the gap is tiny."""
    width, bend = right.gamma - left.gamma, right.slope - left.slope
    rise = right.value - left.value
    if not bend > 0:
        return []
    along = (right.slope * width - rise) / bend
    gap = along * (rise / width - left.slope)
    inside = left.gamma * (1 + 1e-15) < left.gamma + along < right.gamma * (1 - 1e-15)
    return [(-gap, left.gamma + along, left, right)] if inside and gap > CURVE_TOLERANCE else []


class Kernel(ABC):
    """A channel from ``inputs`` to ``outputs``: a distribution of reports for each true value (AAC §II, theory §5).

    Suprema are over ordered pairs of inputs: neighbors are "local". Losses in nats.
    """

    __slots__ = ()
    __array_ufunc__ = None  # ``channel @ array`` is rejected instead of tried entry by entry

    @property
    @abstractmethod
    def input_count(self) -> int:
        """Number of values a person may have."""

    @property
    @abstractmethod
    def output_count(self) -> int:
        """Number of possible reports, including reports of probability 0."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Least ε with (ε, 0)-LDP: the largest log-ratio within a column; ∞ if a report is impossible for an input."""

    @property
    @abstractmethod
    def kl_contraction(self) -> float:
        """η_KL = η_χ² = max over pairs of rows of max_β LC_β: the largest preserved fraction of a KL divergence."""

    @abstractmethod
    def output_distribution(self, p: Floats) -> Floats:
        """Return the distribution of the report if the input has distribution ``p``, shape [inputs] → [outputs]."""

    @abstractmethod
    def _hockey_stick_curve(self) -> DivergenceCurve:
        """Return the curve γ ↦ max over ordered pairs of E_γ."""

    @abstractmethod
    def _mutual_information(self, p: Floats) -> float:
        """Return I(X; Z) in nats for X with distribution ``p``."""

    @abstractmethod
    def channel_capacity(self) -> Bounds:
        """Return bounds on the capacity, the maximum of I(X; Z) over priors, in nats."""

    def profile(self, epsilon: ArrayLike) -> float | Floats:
        """Return δ(ε) = max over ordered pairs of rows of E_{e^ε} (AAC Theorem 3), for any real ε; arrays give arrays.

        The absolute error is a few units of 2⁻⁵³; for a rounded-up bound use ``.loss`` or ``.guarantee``. Raises
        ``InputError`` if ε is not finite.

        >>> from tightrope.channels import Channel
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).profile([0.0, 2.0]).tolist()
        [0.5, 0.0]
        """
        at = self._hockey_stick_curve().at
        return evaluate_each(
            "epsilon", epsilon, lambda e: np.array([at(math.exp(min(x, 709.0)))[0] for x in e.tolist()])
        )

    @property
    def loss(self) -> PrivacyLoss:
        """A dominating pair of every pair of rows: its profile is the pointwise maximum of theirs, up to rounding and,
        for large matrices, chords over a convex curve. Neighbors: local; ``k * loss`` is k reports of one person.

        >>> from tightrope.channels import Channel
        >>> round((2 * Channel([[0.75, 0.25], [0.25, 0.75]]).loss).total_variation(), 12)
        0.5
        """
        return dominating_loss(self._hockey_stick_curve())

    def contraction(self, gamma: float) -> float:
        """Return η_γ = max over pairs of E_γ, γ ≥ 0: for γ ≥ 1 the contraction coefficient of E_γ (AAC Theorem 3).

        >>> from tightrope.channels import Channel
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).contraction(2)
        0.25
        """
        return self._hockey_stick_curve().at(check_non_negative("gamma", gamma))[0]

    @property
    def total_variation(self) -> float:
        """Dobrushin's coefficient: the largest total variation between two rows. Every f-divergence contracts by it."""
        return self.contraction(1)

    def guarantee(self, delta: float) -> Guarantee:
        """Return the triple (ε, δ, η) of this channel: least ε at this δ, rounded up, and its total variation.

        ε = ∞ if δ is below the mass of reports that are impossible for an input; a δ above η becomes η. Raises
        ``InputError`` unless 0 ≤ δ ≤ 1.

        >>> from tightrope.channels import Channel
        >>> round(Channel([[0.75, 0.25], [0.25, 0.75]]).guarantee(0.25).epsilon, 12)
        0.69314718056
        """
        curve = self._hockey_stick_curve()
        target = check_probability("delta", delta)
        eta = min(1.0, curve.at(1.0)[0] + curve.error)
        return Guarantee(least_epsilon(curve, target), target, eta)

    def output_divergence(self, f: str | Convex | Divergence, p0: ArrayLike, p1: ArrayLike) -> float:
        """Return D_f(p0 K ‖ p1 K), the divergence of reports for two distributions of the inputs, shape [inputs] each.

        ``f``: kl, reverse_kl, total_variation, chi_squared, hellinger (squared, in [0, 2]), a convex function of
        t = p/q, or a ``Divergence`` with its limits at 0 and ∞. Raises ``InputError`` for invalid distributions, or if
        a limit is needed and was not given.

        >>> from tightrope.channels import Channel
        >>> Channel([[0.75, 0.25], [0.25, 0.75]]).output_divergence("chi_squared", [1, 0], [0.5, 0.5])
        0.25
        """
        first, second = self._input_distribution("p0", p0), self._input_distribution("p1", p1)
        return resolve_divergence(f).divergence_between(
            self.output_distribution(first), self.output_distribution(second)
        )

    def mutual_information(self, prior: ArrayLike) -> float:
        """Return I(X; Z) in nats: the average information of a report about the value, given the prior.

        >>> from tightrope.channels import Channel
        >>> round(Channel([[0.75, 0.25], [0.25, 0.75]]).mutual_information([0.5, 0.5]), 12)
        0.130812035941
        """
        return self._mutual_information(self._input_distribution("prior", prior))

    def information_limit(self, prior: ArrayLike) -> float:
        """Return κ H(X) ≥ I(X; Z), κ = ``kl_contraction`` (AAC Corollary 5 with the coefficient of this channel)."""
        return self.kl_contraction * shannon_entropy(self._input_distribution("prior", prior))

    def _input_distribution(self, name: str, values: ArrayLike) -> Floats:
        return normalize_distribution(name, values, self.input_count)


def check_composable(outputs: int, inputs: int) -> None:
    """Raise ``InputError`` unless the outputs of the first channel are the inputs of the second."""
    if outputs != inputs:
        raise InputError(
            "inputs of the second channel",
            inputs,
            f"{outputs}, the outputs of the first",
            "first @ second: left to right",
        )
