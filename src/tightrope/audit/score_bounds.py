"""Lower bounds from scores: two samples of numbers, large ones speaking for the first input."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tightrope.audit.findings import Claimed, Finding, Points, claimed_points
from tightrope.audit.rates import Rates, at_least, at_most, safe_share
from tightrope.errors import InputError, MissingExtraError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_integer, inner_probability
from tightrope.randomness.bits import Source, Stream

# Events that are chosen against a claim on one half of the runs, and bounded on the other.

FEWEST = 4
"""Runs of either input below which there is nothing to choose from."""


def held_out(above: Floats, below: Floats, points: Points, failure: float, randomness: Source | None) -> Rates | None:
    """Choose a threshold for each point and direction from one half; compute its bounds from the other half.

    All of them hold together but for a chance of ``failure``: the thresholds are fixed before the runs that bound them
    are looked at. None where there are too few runs.
    """
    if min(len(above), len(below)) < FEWEST:
        return None
    (looked, kept), (looked_too, kept_too) = (
        _random_halves(sample, randomness or Stream()) for sample in (above, below)
    )
    # Where the excess over each point, in its own standard deviations, is largest, in either direction.
    one = np.sort(looked)
    other = np.sort(looked_too)
    places = np.unique(np.concatenate([one, other]))
    chosen_found, chosen_wrong = (
        1 - np.searchsorted(sample, places, side="right") / len(sample) for sample in (one, other)
    )
    chosen = []
    for epsilon, delta in points:
        for gain, cost in ((chosen_found, chosen_wrong), (1 - chosen_wrong, 1 - chosen_found)):
            # Gain − e^ε cost − δ over its standard deviation; a share is never taken as surer than a run in all.
            runs = len(one)
            gamma = np.exp(min(epsilon, 700.0))
            spread = _share_variance(gain, runs) + gamma**2 * _share_variance(cost, runs)
            excess: Floats = (gain - gamma * cost - delta) / np.sqrt(spread)
            chosen.append(float(places[np.argmax(excess)]))
    thresholds = np.array(sorted(set(chosen)))
    each = failure / (2 * len(thresholds))
    found = safe_share(_counts_above(kept, thresholds), len(kept), each)
    wrong = 1 - safe_share(len(kept_too) - _counts_above(kept_too, thresholds), len(kept_too), each)
    return Rates.from_events(wrong, found)


def _random_halves(sample: Floats, randomness: Source) -> tuple[Floats, Floats]:
    """Two halves of the runs (rows) at random: their order may tell something."""
    order = np.argsort(randomness.random_words(len(sample)), kind="stable")
    return sample[order[: len(sample) // 2]], sample[order[len(sample) // 2 :]]


def _counts_above(sample: Floats, thresholds: Floats) -> Integers:
    ordered = np.sort(sample)
    return (len(sample) - np.searchsorted(ordered, thresholds, side="right")).astype(np.int64)


def _share_variance(share: Floats, runs: int) -> Floats:
    return np.maximum(share * (1 - share), 1 / runs) / runs


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
    """Return the bounds on ε, δ, total variation and the trade-off curve that two samples of scores prove.

    ``first`` and ``second`` are scores of independent runs on the two neighboring inputs, one number a run; any
    number computed from a run's output is a valid score, and a large one should speak for the first input. ±∞ is
    allowed. All bounds hold together with probability ``confidence``, for any two distributions, provided that
    runs are independent of each other (docs/proofs/audit.md).

    Every threshold counts at once. With a ``claim`` – a ``Budget``, ``Guarantee``, ``PrivacyLoss`` or points (ε, δ) –
    half of the chance to fail goes to events that are chosen against it on a random half of the runs, and
    bounded on the other half by Clopper and Pearson.

    Raises ``InputError`` for empty samples, more than one axis, NaN, and confidences outside (0, 1).

    >>> found = scores([1, 1, 1, 0] * 500, [1, 0, 0, 0] * 500)  # randomized response at ε = log 3 = 1.0986…
    >>> 0.85 < found.epsilon(0.0) < 1.0986, 0.40 < found.total_variation() < 0.5
    (True, True)
    """
    above, below = _check_sample("first", first), _check_sample("second", second)
    sure = inner_probability("confidence", confidence, "0.99 is usual")
    if not sure <= MOST_SURE:
        raise InputError("confidence", confidence, "at most 1 - 1e-15", "0.99 is usual")
    failure = 1 - sure
    points = () if claim is None else claimed_points(claim)
    chosen = held_out(above, below, points, failure / 2, randomness) if points else None
    part = failure if chosen is None else failure / 2
    # The events {score > t} at every t, with what holds for all t together.
    everywhere_failure = part / 2
    one, other = np.sort(above), np.sort(below)
    places = np.unique(np.concatenate([one, other]))
    found, wrong = (len(sample) - np.searchsorted(sample, places, side="right") for sample in (one, other))
    everywhere = Rates.from_events(
        at_most(len(other), everywhere_failure)[wrong], at_least(len(one), everywhere_failure)[found]
    )
    rates = everywhere if chosen is None else everywhere.join_hulls(chosen)
    return Finding(rates, (len(above), len(below)), confidence, part, points)


def _check_sample(name: str, values: ArrayLike) -> Floats:
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


# Where the law of the noise is known, the likelihood ratio is the best score: our own mechanisms, run as they are.

LISTED = 4096
"""Beyond it all noise is taken as equally probable: any score is valid, and so far out little is seen."""
LOG_OF_NEVER = -1e6
"""The log of a probability of 0: impossible on both inputs speaks for neither."""


def log_ratio(table: NoiseTable, shift: int) -> Callable[[Integers], Floats]:
    """The score of Neyman and Pearson: log P(y = shift + X) − log P(y = X), for integer noise X with this table.

    >>> import tightrope as tr
    >>> log_ratio(tr.discrete_laplace(scale=2).table, 1)(np.array([-3, 1])).round(6).tolist()
    [-0.5, 0.5]
    """
    tails = [table.survival_probability(x) for x in range(min(LISTED, len(table.half) + LISTED // 4) + 1)]
    chances = np.array([float(p) for p in (1 - 2 * tails[0], *(a - b for a, b in pairwise(tails)))])
    logs = np.log(np.maximum(chances, 1e-300))
    logs[chances == 0] = LOG_OF_NEVER

    def score_outputs(outputs: Integers) -> Floats:
        found: Floats = _looked_up(logs, outputs - shift) - _looked_up(logs, outputs)
        return found

    return score_outputs


def mechanism(
    law: IntegerMechanism,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    randomness: Source | None = None,
) -> Finding:
    """Draw from a mechanism of whole numbers ``runs`` times on each of two inputs, and compare by likelihood ratio.

    The inputs differ by the mechanism's sensitivity. What is drawn is what ``sample`` draws; its table only says how
    to score. Raises ``InputError`` for a mechanism without a table.

    >>> import tightrope as tr
    >>> law = tr.discrete_laplace(scale=1)
    >>> 0.8 < mechanism(law, runs=20_000).epsilon(0.0) <= 1.0
    True
    """
    if not isinstance(law, IntegerMechanism):
        remedy = "draw from others yourself and give the samples to audit.scores or audit.samples"
        raise InputError("law", law, "a mechanism of whole numbers with a table", remedy)
    size, shift = check_integer("runs", runs), law.sensitivity
    score = log_ratio(law.table, shift)
    drawn = [np.asarray(law.sample(size, randomness), dtype=np.int64) for _ in range(2)]
    return scores(score(drawn[0] + shift), score(drawn[1]), confidence=confidence, claim=claim, randomness=randomness)


def _looked_up(logs: Floats, noise: Integers) -> Floats:
    found: Floats = logs[np.minimum(np.abs(noise), len(logs) - 1)]
    return found


# Where a run gives several numbers, or one whose law is not known: a classifier learns the score on half of the runs.
#
# The only place that imports scikit-learn (``pip install 'tightrope[audit]'``).

CLASSIFIER_FEWEST = 20
"""Runs of each input, so that half of them can be learned from."""


class Classifier(Protocol):
    """The interface of a scikit-learn classifier."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and their classes."""

    def predict_proba(self, X: Any) -> Any:
        """The chance of each class for each row, shape [n, 2]."""


def samples(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    classifier: Classifier | None = None,
    randomness: Source | None = None,
) -> Finding:
    """Return the bounds that two samples of outputs prove, one output a row: shapes [n, k] and [m, k].

    A random half of the runs trains a classifier to tell the inputs apart, the other half is scored by it and goes to
    ``audit.scores``: what was learned, however badly, is fixed before the bounds are taken, so they hold.
    ``classifier`` is anything with ``fit`` and ``predict_proba``; by default scikit-learn's boosted trees, which need
    the extra ``audit`` (``MissingExtraError``). For doubles give ``audit.float_columns`` of them: their last bits may
    tell more than their values.
    """
    rows = [_output_rows("first", first), _output_rows("second", second)]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise InputError("second", f"{rows[1].shape[1]} columns", f"{rows[0].shape[1]} columns, as in first")
    source = randomness or Stream()
    (learned, scored), (learned_too, scored_too) = (_random_halves(part, source) for part in rows)
    model = classifier
    if model is None:
        try:
            from sklearn.ensemble import HistGradientBoostingClassifier
        except ImportError as missing:
            raise MissingExtraError("scikit-learn", "audit") from missing
        # Nothing is drawn: no early stopping, and bins from all rows up to 200 000.
        trees: Classifier = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
        model = trees
    model.fit(np.concatenate([learned, learned_too]), np.repeat([1, 0], [len(learned), len(learned_too)]))
    one, other = (np.asarray(model.predict_proba(part))[:, 1] for part in (scored, scored_too))
    return scores(one, other, confidence=confidence, claim=claim, randomness=randomness)


def _output_rows(name: str, values: ArrayLike) -> Floats:
    expected = "a table of numbers, one row a run"
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, "something else", expected) from None
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) < CLASSIFIER_FEWEST or not np.isfinite(table).all():
        raise InputError(name, f"shape {table.shape}", f"{expected}, finite, at least {CLASSIFIER_FEWEST} runs")
    return table


# Floating-point numbers as columns for a classifier: their value, and how fine they are.

NO_BITS = -1100.0
"""The place of the lowest bit of 0: below the lowest bit of any double."""


def float_columns(values: ArrayLike) -> Floats:
    """The value, the exponent, and the place of the lowest bit that is set: shape [n, 3].

    A double is m·2^e with m odd: the last column is e. Noise that is drawn as a double and added to the answer leaves
    sums on grids that depend on the answer; the value alone does not show it.

    >>> float_columns([1.0, 0.75, 1.0 + 2.0**-52]).tolist()
    [[1.0, 1.0, 0.0], [0.75, 0.0, -2.0], [1.0000000000000002, 1.0, -52.0]]
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError("values", f"shape {numbers.shape}", "a list of finite numbers, one a run")
    fraction, exponent = np.frexp(numbers)
    odd = np.abs(fraction * 2.0**53).astype(np.int64)
    lowest = np.log2(np.maximum(odd & -odd, 1).astype(np.float64))
    place = np.where(odd == 0, NO_BITS, exponent - 53 + lowest)
    return np.column_stack([numbers, exponent.astype(np.float64), place])
