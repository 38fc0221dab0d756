"""What the noise will cost, before anything is spent: errors by group size, thresholds, and words for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tightrope.mechanisms.integer.widened import Widened
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.release.questions.question import Question
from tightrope.release.questions.tasks import Vector, factor, step_of

SIZES = (30, 100, 1_000, 10_000)
CONFIDENCE = 0.95
SUM_CONFIDENCE, COUNT_CONFIDENCE = 0.96, 0.99
STATEMENT = (
    "Each interval holds the statistic of the rows that were used, after bounding and clamping, with probability at "
    "least 95 % over the noise. What bounding, clamping, dropped NULLs and withheld groups change is not in it."
)


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one vector: the integer law that runs, and the size of its unit."""

    vector: Vector
    family: str
    table: NoiseTable
    shift: int

    @property
    def mechanism(self) -> Widened:
        """The table stretched to the vector's units."""
        return Widened(self.table, factor(self.vector.sensitivity, self.shift))

    @property
    def step(self) -> float:
        """Natural units of one integer."""
        return step_of(self.vector.measure.fixed_point)

    @property
    def mean_absolute(self) -> float:
        """E|X| in natural units."""
        return self.mechanism.mean_absolute_error * self.step

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Natural units within which the noise stays that often."""
        return self.mechanism.half_width(confidence) * self.step

    @property
    def worst(self) -> float:
        """Largest |X| in natural units; ∞ without a bound."""
        return self.mechanism.worst_error * self.step

    def at_most(self, x: int) -> float:
        """P(X ≤ x) of a count's noise."""
        law = self.mechanism
        return float(1 - law.survival(x)) if x >= 0 else float(law.survival(-x - 1))

    def to_data(self, why: str) -> dict[str, Any]:
        """For plans and reports."""
        return {
            "statistic": self.vector.spend.statistic,
            "family": self.family,
            "why": why,
            "mean_absolute_error": self.mean_absolute,
            "half_width_95": self.half_width(),
            "worst_error": finite_or_none(self.worst),
            "unit": f"{self.step:g}",
        }


def finite_or_none(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The errors of one question: its own noises (sum; usable values), and the key count where keys are discovered."""

    question: Question
    noises: tuple[Noise, ...]
    keys: Noise | None

    @property
    def threshold(self) -> int | None:
        """A discovered key is shown when its noisy count exceeds this: the largest value of the noise."""
        return None if self.keys is None else int(self.keys.mechanism.worst_error)

    def at(self, people: int) -> dict[str, Any]:
        """Errors and the chance that a group of so many rows is withheld."""
        expected, half = self._errors(people)
        withheld = 0.0 if self.keys is None else self.keys.at_most(int(self.keys.mechanism.worst_error) - people)
        if self.question.kind == "mean":
            withheld = min(1.0, withheld + self.noises[1].at_most(-people))
        return {"people": people, "expected_absolute_error": expected, "half_width_95": half, "suppressed": withheld}

    def _errors(self, rows: int) -> tuple[float, float]:
        """E|error| and the 95 % half-width; of a mean, for values that lie halfway from the middle to an end."""
        if self.question.kind != "mean":
            return self.noises[0].mean_absolute, self.noises[0].half_width()
        low, high = self.question.between or (0.0, 0.0)
        reach = (high - low) / 2
        centred = rows * reach / 2
        total, usable = self.noises
        expected = (total.mean_absolute + usable.mean_absolute * reach / 2) / rows
        lower, upper = mean_interval(centred, float(rows), self.noises, reach)
        return min(expected, reach), (upper - lower) / 2

    @property
    def uniform(self) -> bool:
        """Whether the errors are the same for every group."""
        return self.question.kind != "mean"

    def notes(self) -> list[str]:
        """Rules that a reader must know."""
        notes = []
        if self.threshold is not None:
            notes.append(f"a group is shown when its noisy count exceeds {self.threshold}: smaller ones are withheld")
            notes.append("a small group that is shown owes it to high noise: there the interval tends to lie too high")
        if self.question.kind == "mean":
            notes.append("where the noisy count is below 1 the mean is withheld and the interval is the whole range")
        if self.question.kind == "count":
            notes.append("counts are not clipped: a small group may come out negative")
        return notes


def mean_interval(total: float, usable: float, noises: tuple[Noise, ...], reach: float) -> tuple[float, float]:
    """Bounds on the centred mean s/n: |s − total| and |n − usable| are both within their widths 95 % of the time.

    The sum may fail 4 % of the time and the count 1 %: the count moves a mean less. n ≥ 1, |s/n| ≤ reach; rounding to
    the grid moves a value by at most half a step.
    """
    wide, off = noises[0].half_width(SUM_CONFIDENCE), noises[1].half_width(COUNT_CONFIDENCE)
    fewest, most = max(1.0, usable - off), max(1.0, usable + off)
    low, high = total - wide, total + wide
    lower = low / (fewest if low < 0 else most)
    upper = high / (most if high < 0 else fewest)
    rounding = noises[0].step
    return max(-reach, lower - rounding), min(reach, upper + rounding)
