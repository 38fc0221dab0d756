"""Every kind of several noisy numbers, values to try it on, and what it would say without noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import tightrope as tr
from tightrope.queries.accuracy import Accuracy
from tightrope.queries.query import Query
from tightrope.queries.statistics import draw_joint_points
from tightrope.tables import FixedProduct

RANGES = {"bounds": (0.0, 10.0)}
SECOND = (0.0, 100.0)
COLUMNS = {"x": np.ndarray, "y": np.ndarray, "b": np.ndarray}
Columns = Mapping[str, "np.ndarray[Any, Any]"]


def columns(people: int, alike: float = 0.6) -> dict[str, np.ndarray[Any, Any]]:
    """Two columns that are alike so far, inside their ranges, and one that is true now and then."""
    draw = np.random.default_rng(people)
    first, second = draw.normal(0, 1, (2, people))
    x = np.clip(5 + 1.5 * first, 0, 10)
    y = np.clip(60 + 15 * (alike * first + (1 - alike**2) ** 0.5 * second), 0, 100)
    return {"x": x, "y": y, "b": draw.random(people) < 0.1}


@dataclass(frozen=True)
class Kind:
    """A question and the truth of it."""

    ask: Callable[..., Query]
    truth: Callable[[Columns], float]


def _slope(c: Columns) -> float:
    return float(np.cov(c["x"], c["y"], ddof=0)[0, 1] / c["y"].var())


KINDS = {
    "proportion": Kind(lambda **k: tr.proportion("b", **k), lambda c: float(c["b"].mean())),
    "ratio": Kind(
        lambda **k: tr.ratio("x", "y", **RANGES, denominator_bounds=SECOND, **k),
        lambda c: float(c["x"].sum() / c["y"].sum()),
    ),
    "variance": Kind(lambda **k: tr.variance("x", bounds=(0, 10), **k), lambda c: float(c["x"].var())),
    "standard_deviation": Kind(
        lambda **k: tr.standard_deviation("x", bounds=(0, 10), **k), lambda c: float(c["x"].std())
    ),
    "covariance": Kind(
        lambda **k: tr.covariance("x", "y", **RANGES, other_bounds=SECOND, **k),
        lambda c: float(np.cov(c["x"], c["y"], ddof=0)[0, 1]),
    ),
    "correlation": Kind(
        lambda **k: tr.correlation("x", "y", **RANGES, other_bounds=SECOND, **k),
        lambda c: float(np.corrcoef(c["x"], c["y"])[0, 1]),
    ),
    "regression": Kind(lambda **k: tr.regression("x", on="y", **RANGES, on_bounds=SECOND, **k), _slope),
}
TABLE = pd.DataFrame({"who": [1, 2], "g": ["a", "b"], "x": [1.0, 2.0], "y": [1.0, 2.0], "b": [True, False]})


def accuracy_of(question: Query, *, epsilon: str = "1") -> Accuracy:
    """Its noise, each row a person."""
    opened = tr.Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon=epsilon, delta="1e-6"))
    return opened.plan([question]).accuracies()[0]


def exact(accuracy: Accuracy, values: Columns) -> dict[str, int]:
    """The integers of one group, as the engine would count them."""
    found = {}
    for name, noise in accuracy.noises_by_name.items():
        measure = noise.vector.measure
        used = [values[column] for column in measure.measured_terms]
        fixed = measure.fixed_point
        if fixed is None:
            found[name] = len(used[0])
            continue
        many = len(fixed.factors) if isinstance(fixed, FixedProduct) else 1
        found[name] = sum(fixed.to_units(*map(float, row)) for row in zip(*used[:many], strict=True))
    return found


def draws_of(accuracy: Accuracy, runs: int) -> dict[str, np.ndarray[Any, Any]]:
    """The noise of each of its numbers, as it is drawn."""
    noise = {
        name: own.noise_mechanism.sample(runs)
        for name, own in accuracy.noises_by_name.items()
        if not own.vector.joint_noise
    }
    box = {name: own for name, own in accuracy.noises_by_name.items() if own.vector.joint_noise}
    return noise | dict(zip(box, draw_joint_points(list(box.values()), runs) if box else (), strict=True))


def records(accuracy: Accuracy, integers: Mapping[str, int], runs: int) -> list[dict[str, Any]]:
    """Records under fresh noise of the operating system."""
    noise = draws_of(accuracy, runs)
    return [
        dict(
            accuracy.question.estimate(
                {name: integers[name] + int(noise[name][run]) for name in integers}, accuracy.noises_by_name
            )
        )
        for run in range(runs)
    ]


def holds(record: Mapping[str, Any], truth: float, lower: str = "lower", upper: str = "upper") -> bool:
    """Whether the interval holds the truth; an end that is missing has no limit."""
    low, high = record[lower], record[upper]
    return (low is None or low <= truth) and (high is None or truth <= high)
