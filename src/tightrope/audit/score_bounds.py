"""Lower bounds from two samples: of scores, where large ones indicate the first input, or of outputs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tightrope.audit.findings import (
    Claimed,
    Finding,
    Points,
    Rates,
    claimed_points,
    clopper_pearson_lower,
    lower_bounds_by_count,
    upper_bounds_by_count,
)
from tightrope.errors import InputError, MissingExtraError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_inner_probability, check_integer
from tightrope.randomness.bits import Source, Stream

MIN_RUNS_TO_SPLIT = 4
"""Fewest runs of each input for which events are chosen on one half of the runs."""


def bound_chosen_events(
    above: Floats, below: Floats, points: Points, failure: float, randomness: Source | None
) -> Rates | None:
    """Choose a threshold for each point and direction on one half of the runs; bound its rates on the other half.

    All bounds hold together except with probability ``failure``, because the thresholds do not depend on the runs that
    bound them. None if there are too few runs.
    """
    if min(len(above), len(below)) < MIN_RUNS_TO_SPLIT:
        return None
    halves = [_random_halves(sample, randomness or Stream()) for sample in (above, below)]
    (choosing_above, bounding_above), (choosing_below, bounding_below) = halves
    # Choose the threshold whose excess over the point, divided by its standard deviation, is largest.
    first, second = np.sort(choosing_above), np.sort(choosing_below)
    candidates = np.unique(np.concatenate([first, second]))
    true_positive, false_positive = (
        1 - np.searchsorted(sample, candidates, side="right") / len(sample) for sample in (first, second)
    )
    chosen = []
    for epsilon, delta in points:
        for gain, cost in ((true_positive, false_positive), (1 - false_positive, 1 - true_positive)):
            runs = len(first)
            gamma = np.exp(min(epsilon, 700.0))
            variance = _rate_variance(gain, runs) + gamma**2 * _rate_variance(cost, runs)
            excess: Floats = (gain - gamma * cost - delta) / np.sqrt(variance)
            chosen.append(float(candidates[np.argmax(excess)]))
    thresholds = np.array(sorted(set(chosen)))
    failure_per_bound = failure / (2 * len(thresholds))
    counts_above, counts_below = (
        (len(sample) - np.searchsorted(np.sort(sample), thresholds, side="right")).astype(np.int64)
        for sample in (bounding_above, bounding_below)
    )
    found = clopper_pearson_lower(counts_above, len(bounding_above), failure_per_bound)
    not_wrong = clopper_pearson_lower(len(bounding_below) - counts_below, len(bounding_below), failure_per_bound)
    return Rates.from_events(1 - not_wrong, found)


def _random_halves(sample: Floats, randomness: Source) -> tuple[Floats, Floats]:
    """Split the runs (rows) into two random halves; the order of runs may depend on their values."""
    order = np.argsort(randomness.random_words(len(sample)), kind="stable")
    return sample[order[: len(sample) // 2]], sample[order[len(sample) // 2 :]]


def _rate_variance(rate: Floats, runs: int) -> Floats:
    """Return the variance of an observed rate, at least that of a rate of about one in all runs."""
    return np.maximum(rate * (1 - rate), 1 / runs) / runs


MAX_RUNS = 100_000_000
MAX_CONFIDENCE = 1 - 1e-15


def scores(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    randomness: Source | None = None,
) -> Finding:
    """Return the bounds on ε, δ, total variation and the trade-off curve that two samples of scores prove.

    ``first`` and ``second`` are scores of independent runs on the two neighboring inputs, one number per run; any
    number computed from a run's output is a valid score, and a large one should indicate the first input. ±∞ is
    allowed. All bounds hold together with probability ``confidence``, for any two distributions, provided that
    runs are independent of each other (docs/proofs/audit.md).

    The bounds use all thresholds. With a ``claim`` – a ``Budget``, ``Guarantee``, ``PrivacyLoss`` or points (ε, δ) –
    half of the failure probability is used for events that are chosen to refute it on a random half of the runs, and
    bounded on the other half by Clopper and Pearson.

    Raises ``InputError`` for empty samples, more than one axis, NaN, and confidences outside (0, 1).

    >>> found = scores([1, 1, 1, 0] * 500, [1, 0, 0, 0] * 500)  # randomized response at ε = log 3 = 1.0986…
    >>> 0.85 < found.epsilon(0.0) < 1.0986, 0.40 < found.total_variation() < 0.5
    (True, True)
    """
    above, below = _check_sample("first", first), _check_sample("second", second)
    checked_confidence = check_inner_probability("confidence", confidence, "0.99 is usual")
    if not checked_confidence <= MAX_CONFIDENCE:
        raise InputError("confidence", confidence, "at most 1 - 1e-15", "0.99 is usual")
    failure = 1 - checked_confidence
    points = () if claim is None else claimed_points(claim)
    chosen = bound_chosen_events(above, below, points, failure / 2, randomness) if points else None
    threshold_failure = failure if chosen is None else failure / 2
    # The events {score > t} for all t, with bounds that hold together.
    first_scores, second_scores = np.sort(above), np.sort(below)
    thresholds = np.unique(np.concatenate([first_scores, second_scores]))
    found, wrong = (
        len(sample) - np.searchsorted(sample, thresholds, side="right") for sample in (first_scores, second_scores)
    )
    at_all_thresholds = Rates.from_events(
        upper_bounds_by_count(len(second_scores), threshold_failure / 2)[wrong],
        lower_bounds_by_count(len(first_scores), threshold_failure / 2)[found],
    )
    rates = at_all_thresholds if chosen is None else at_all_thresholds.join_hulls(chosen)
    return Finding(rates, (len(above), len(below)), confidence, threshold_failure, points)


def _check_sample(name: str, values: ArrayLike) -> Floats:
    expected = "a list of numbers, one per run"
    try:
        sample = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError.from_text(name, f"expected {expected}") from None
    if sample.ndim != 1 or not 0 < len(sample) <= MAX_RUNS:
        advice = "if each run has several numbers, audit.samples learns a score from them"
        text = f"expected {expected}, at least one; this array has the shape {sample.shape}"
        raise InputError.from_text(name, f"{text}; {advice}")
    if np.isnan(sample).any():
        raise InputError.from_text(name, "NaN is not a score; give runs without an output a score of their own")
    return sample


MAX_LISTED_OUTPUT = 4096
"""Larger noise values are treated as equally probable. The bounds stay valid for any score, and lose little."""
LOG_OF_ZERO = -1e6
"""Stands for log 0, so that an output that is impossible on both inputs has the score 0."""


def log_ratio(table: NoiseTable, shift: int) -> Callable[[Integers], Floats]:
    """Return the likelihood-ratio score y ↦ log P(y = shift + X) − log P(y = X), for integer noise X with this table.

    >>> import tightrope as tr
    >>> log_ratio(tr.discrete_laplace(scale=2).table, 1)(np.array([-3, 1])).round(6).tolist()
    [-0.5, 0.5]
    """
    largest = min(MAX_LISTED_OUTPUT, len(table.half) + MAX_LISTED_OUTPUT // 4)
    tails = [table.survival_probability(x) for x in range(largest + 1)]
    probabilities = np.array([float(p) for p in (1 - 2 * tails[0], *(a - b for a, b in pairwise(tails)))])
    logs = np.log(np.maximum(probabilities, 1e-300))
    logs[probabilities == 0] = LOG_OF_ZERO

    def score_outputs(outputs: Integers) -> Floats:
        score: Floats = _log_probabilities(logs, outputs - shift) - _log_probabilities(logs, outputs)
        return score

    return score_outputs


def mechanism(
    law: IntegerMechanism,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    randomness: Source | None = None,
) -> Finding:
    """Sample an integer-valued mechanism ``runs`` times on each of two inputs, and compare by likelihood ratio.

    The inputs differ by the mechanism's sensitivity. Outputs are drawn by ``sample``; the mechanism's table only gives
    their scores. Raises ``InputError`` for a mechanism without a table.

    >>> import tightrope as tr
    >>> law = tr.discrete_laplace(scale=1)
    >>> 0.8 < mechanism(law, runs=20_000).epsilon(0.0) <= 1.0
    True
    """
    if not isinstance(law, IntegerMechanism):
        remedy = "draw from others yourself and give the samples to audit.scores or audit.samples"
        raise InputError("law", law, "an integer-valued mechanism with a table", remedy)
    size, shift = check_integer("runs", runs), law.sensitivity
    score = log_ratio(law.table, shift)
    drawn = [np.asarray(law.sample(size, randomness), dtype=np.int64) for _ in range(2)]
    return scores(score(drawn[0] + shift), score(drawn[1]), confidence=confidence, claim=claim, randomness=randomness)


def _log_probabilities(logs: Floats, noise: Integers) -> Floats:
    values: Floats = logs[np.minimum(np.abs(noise), len(logs) - 1)]
    return values


MIN_CLASSIFIER_RUNS = 20
"""Fewest runs of each input for which a classifier is trained on one half."""


class Classifier(Protocol):
    """The interface of a scikit-learn classifier."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and their classes."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class for each row, shape [n, 2]."""


def samples(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    classifier: Classifier | None = None,
    randomness: Source | None = None,
) -> Finding:
    """Return the bounds that two samples of outputs prove, one output per row: shapes [n, k] and [m, k].

    A classifier is trained on a random half of the runs to distinguish the inputs; it scores the other half, whose
    scores are passed to ``audit.scores``. The bounds hold for every classifier, because it does not depend on the
    scored runs.

    ``classifier`` is any object with ``fit`` and ``predict_proba``; the default is scikit-learn's boosted trees, which
    need the extra ``audit`` (``MissingExtraError``). Pass doubles as ``audit.float_columns``, because their last bits
    may reveal more than their values.
    """
    rows = [_output_rows("first", first), _output_rows("second", second)]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise InputError("second", f"{rows[1].shape[1]} columns", f"{rows[0].shape[1]} columns, as in first")
    source = randomness or Stream()
    (training_first, scored_first), (training_second, scored_second) = (
        _random_halves(sample, source) for sample in rows
    )
    model = classifier
    if model is None:
        try:
            from sklearn.ensemble import HistGradientBoostingClassifier
        except ImportError as missing:
            raise MissingExtraError("scikit-learn", "audit") from missing
        # Deterministic: no early stopping, and bins from all rows up to 200 000.
        trees: Classifier = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        model = trees
    classes = np.repeat([1, 0], [len(training_first), len(training_second)])
    model.fit(np.concatenate([training_first, training_second]), classes)
    first_scores, second_scores = (
        np.asarray(model.predict_proba(sample))[:, 1] for sample in (scored_first, scored_second)
    )
    return scores(first_scores, second_scores, confidence=confidence, claim=claim, randomness=randomness)


def _output_rows(name: str, values: ArrayLike) -> Floats:
    expected = "a table of numbers, one row per run"
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError.from_text(name, f"expected {expected}") from None
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) < MIN_CLASSIFIER_RUNS or not np.isfinite(table).all():
        raise InputError(name, f"shape {table.shape}", f"{expected}, finite, at least {MIN_CLASSIFIER_RUNS} runs")
    return table


LOWEST_BIT_OF_ZERO = -1100.0
"""The position of the lowest set bit of 0: below the lowest bit of any double."""


def float_columns(values: ArrayLike) -> Floats:
    """Return columns for a classifier: the value, the exponent, and the position of the lowest set bit; shape [n, 3].

    A double is m·2^e with m odd; the last column is e. If noise is drawn as a double and added to the answer, the sums
    lie on grids that depend on the answer, which the value alone does not show.

    >>> float_columns([1.0, 0.75, 1.0 + 2.0**-52]).tolist()
    [[1.0, 1.0, 0.0], [0.75, 0.0, -2.0], [1.0000000000000002, 1.0, -52.0]]
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError("values", f"shape {numbers.shape}", "a list of finite numbers, one per run")
    fraction, exponent = np.frexp(numbers)
    mantissa = np.abs(fraction * 2.0**53).astype(np.int64)
    trailing_zeros = np.log2(np.maximum(mantissa & -mantissa, 1).astype(np.float64))
    lowest_bit = np.where(mantissa == 0, LOWEST_BIT_OF_ZERO, exponent - 53 + trailing_zeros)
    return np.column_stack([numbers, exponent.astype(np.float64), lowest_bit])
