"""What the noise will cost, before anything is spent: errors by group size, thresholds, and words for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tightrope.queries.query import Question
from tightrope.queries.statistics import Noise, Vector

SIZES = (30, 100, 1_000, 10_000)
STATEMENT = (
    "Each interval holds the statistic of the rows that were used, after bounding and clamping, with probability at "
    "least 95 % over the noise. What bounding, clamping, dropped NULLs and withheld groups change is not in it."
)
KNOWN = (
    "its groups follow from the question, so every one is shown and none is discovered; None is the group of what is "
    "missing, or below the first edge of a cut"
)


class Lessened(Protocol):
    """The noise in an answer that other answers made more accurate."""

    @property
    def errors(self) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval."""

    @property
    def worst(self) -> float:
        """The largest error; ∞ without a bound."""

    @property
    def note(self) -> str:
        """How, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Accuracy:
    """The errors of one question: its own noises by name, and the key count's where keys are discovered.

    ``lessened``: what is left of them, where other answers are about the same rows; ``beside``: notes on such answers.
    """

    question: Question
    named: Mapping[str, Noise]
    keys: Noise | None
    lessened: Lessened | None = None
    beside: tuple[str, ...] = ()

    @property
    def noises(self) -> tuple[Noise, ...]:
        """Its own noises."""
        return tuple(self.named.values())

    @property
    def threshold(self) -> int | None:
        """A discovered key is shown when its noisy count exceeds this: the largest value of the noise."""
        return None if self.keys is None else self.keys.threshold

    @property
    def uniform(self) -> bool:
        """Whether the errors are the same for every group."""
        return self.question.uniform

    @property
    def worst(self) -> float | None:
        """The largest error; None where there is no bound."""
        worst = self.question.worst(self.named) if self.lessened is None else self.lessened.worst
        return worst if math.isfinite(worst) else None

    def at(self, rows: int) -> dict[str, Any]:
        """Errors and the chance that a group of so many rows is withheld."""
        expected, half = self.lessened.errors if self.lessened else self.question.errors(self.named, rows)
        hidden = 0.0 if self.keys is None else self.keys.at_most(int(self.keys.mechanism.worst_error) - rows)
        withheld = min(1.0, hidden + self.question.withheld(self.named, rows))
        errors = {"expected_absolute_error": _limited(expected), "half_width_95": _limited(half)}
        return {"rows": rows, **errors, "suppressed": withheld}

    def notes(self) -> list[str]:
        """Rules that a reader must know."""
        return [*self._rules(), *([self.lessened.note] if self.lessened else []), *self.beside]

    def _rules(self) -> list[str]:
        if self.question.asked.known:
            return [KNOWN, *self.question.rules]
        if self.threshold is None:
            return list(self.question.rules)
        return [
            f"a group is shown when its noisy count exceeds {self.threshold:,}: smaller ones are withheld",
            "a small group that is shown owes it to high noise: its value tends to be too high, and the interval of a "
            "count allows for that",
            *self.question.rules,
        ]

    def record(self, integers: Mapping[Vector, int]) -> dict[str, float | None]:
        """The value and interval of a group, from its noisy integers by vector."""
        own = {name: integers[noise.vector] for name, noise in self.named.items()}
        return self.question.record(own, self.named)


def _limited(error: float) -> float | None:
    return error if math.isfinite(error) else None
