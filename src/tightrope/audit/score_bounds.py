"""Lower bounds from scores: two samples of numbers, large ones speaking for the first input."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tightrope.audit.bands import at_least, at_most
from tightrope.audit.claims import Claimed, claimed_points
from tightrope.audit.findings import Finding
from tightrope.audit.held_out import held_out
from tightrope.audit.rates import Rates
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import inner_probability
from tightrope.randomness.source import Source

MOST_RUNS = 100_000_000
MOST_SURE = 1 - 1e-15


def scores(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    randomness: Source | None = None,
) -> Finding:
    """What two samples of scores prove about ε, δ, total variation and the trade-off curve.

    ``first`` and ``second`` are scores of independent runs on the two neighbouring inputs, one number a run; any
    number computed from a run's output is a valid score, and a large one should speak for the first input. ±∞ is
    allowed. All that is found holds together with probability ``confidence``, whatever the two laws are, provided that
    runs are independent of each other (docs/proofs/audit.md).

    Every threshold counts at once. With a ``claim`` – a ``Budget``, ``Guarantee``, ``PrivacyLoss`` or points (ε, δ) –
    half of the chance to fail goes to events that are chosen against it on a random half of the runs, and
    bounded on the other half by Clopper and Pearson.

    Raises ``InputError`` for empty samples, more than one axis, NaN, and confidences outside (0, 1).

    >>> found = scores([1, 1, 1, 0] * 500, [1, 0, 0, 0] * 500)  # randomised response at ε = log 3 = 1.0986…
    >>> 0.85 < found.epsilon(0.0) < 1.0986, 0.40 < found.total_variation() < 0.5
    (True, True)
    """
    above, below = _sample("first", first), _sample("second", second)
    failure = 1 - _confidence(confidence)
    points = () if claim is None else claimed_points(claim)
    chosen = held_out(above, below, points, failure / 2, randomness) if points else None
    part = failure if chosen is None else failure / 2
    everywhere = _everywhere(above, below, part / 2)
    rates = everywhere if chosen is None else everywhere.joined(chosen)
    return Finding(rates, (len(above), len(below)), confidence, part, points)


def _everywhere(above: Floats, below: Floats, failure: float) -> Rates:
    """The events {score > t} at every t, with what holds for all t together."""
    one, other = np.sort(above), np.sort(below)
    places = np.unique(np.concatenate([one, other]))
    found, wrong = (len(sample) - np.searchsorted(sample, places, side="right") for sample in (one, other))
    return Rates.of(at_most(len(other), failure)[wrong], at_least(len(one), failure)[found])


def _sample(name: str, values: ArrayLike) -> Floats:
    expected = "a list of numbers, one a run"
    try:
        sample = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, "something else", expected) from None
    if sample.ndim != 1 or not 0 < len(sample) <= MOST_RUNS:
        remedy = "where a run gives several numbers, audit.samples learns a score from them"
        raise InputError(name, f"shape {sample.shape}", expected, remedy)
    if np.isnan(sample).any():
        raise InputError(name, "NaN", expected, "give runs without an answer a score of their own")
    return sample


def _confidence(value: float) -> float:
    sure = inner_probability("confidence", value, "0.99 is usual")
    if not sure <= MOST_SURE:
        raise InputError("confidence", value, "at most 1 - 1e-15", "0.99 is usual")
    return sure
