"""Events that are chosen against a claim on one half of the runs, and bounded on the other."""

from __future__ import annotations

import numpy as np

from tightrope.audit.bands import safe_share
from tightrope.audit.claims import Points
from tightrope.audit.rates import Rates
from tightrope.numerics.arrays import Floats, Integers
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

FEWEST = 4
"""Runs of either input below which there is nothing to choose from."""


def held_out(above: Floats, below: Floats, points: Points, failure: float, randomness: Source | None) -> Rates | None:
    """For each point and direction the most promising threshold of one half; the bounds of the other half.

    All of them hold together but for a chance of ``failure``: the thresholds are fixed before the runs that bound them
    are looked at. None where there are too few runs.
    """
    if min(len(above), len(below)) < FEWEST:
        return None
    (looked, kept), (looked_too, kept_too) = (_halves(sample, randomness or Stream()) for sample in (above, below))
    thresholds = np.array(_chosen(np.sort(looked), np.sort(looked_too), points))
    each = failure / (2 * len(thresholds))
    found = safe_share(_above(kept, thresholds), len(kept), each)
    wrong = 1 - safe_share(len(kept_too) - _above(kept_too, thresholds), len(kept_too), each)
    return Rates.of(wrong, found)


def _halves(sample: Floats, randomness: Source) -> tuple[Floats, Floats]:
    """Two halves at random: the order of the runs may tell something."""
    order = np.argsort(randomness.words(len(sample)), kind="stable")
    return sample[order[: len(sample) // 2]], sample[order[len(sample) // 2 :]]


def _above(sample: Floats, thresholds: Floats) -> Integers:
    ordered = np.sort(sample)
    return (len(sample) - np.searchsorted(ordered, thresholds, side="right")).astype(np.int64)


def _chosen(one: Floats, other: Floats, points: Points) -> list[float]:
    """Where the excess over each point, in its own standard deviations, is largest, in either direction."""
    places = np.unique(np.concatenate([one, other]))
    found, wrong = (1 - np.searchsorted(sample, places, side="right") / len(sample) for sample in (one, other))
    chosen = []
    for epsilon, delta in points:
        for gain, cost in ((found, wrong), (1 - wrong, 1 - found)):
            chosen.append(float(places[np.argmax(_excess(gain, cost, epsilon, delta, len(one)))]))
    return sorted(set(chosen))


def _excess(gain: Floats, cost: Floats, epsilon: float, delta: float, runs: int) -> Floats:
    """Gain − e^ε cost − δ over its standard deviation; a share is never taken as surer than a run in all."""
    gamma = np.exp(min(epsilon, 700.0))
    spread = _variance(gain, runs) + gamma**2 * _variance(cost, runs)
    excess: Floats = (gain - gamma * cost - delta) / np.sqrt(spread)
    return excess


def _variance(share: Floats, runs: int) -> Floats:
    return np.maximum(share * (1 - share), 1 / runs) / runs
