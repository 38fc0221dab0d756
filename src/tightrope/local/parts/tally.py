"""What a collector keeps of reports: counts that add up, so that any number of reports fits into little memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.numerics.checks import whole


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """``people`` reports, of which ``answered`` say anything, and ``counts[v]``, shape [k], support the value v
    (for means: are the report v).

    Raises ``InputError`` unless 0 ≤ counts ≤ answered ≤ people, all whole numbers. Tallies of disjoint reports add up:

    >>> both = Tally(2, 2, np.array([1, 1])) + Tally(1, 0, np.array([0, 0]))
    >>> both.people, both.answered, both.counts.tolist()
    (3, 2, [1, 1])
    """

    people: int
    answered: int
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        people = whole("people", self.people, at_least=0)
        answered = whole("answered", self.answered, at_least=0)
        if not answered <= people:
            raise InputError("answered", answered, f"at most people={people}")
        counts = np.asarray(self.counts)
        if counts.ndim != 1 or counts.dtype.kind not in "iu":
            raise InputError("type and shape of counts", (str(counts.dtype), counts.shape), "whole numbers, shape [k]")
        if counts.size and not 0 <= int(counts.min()) <= int(counts.max()) <= answered:
            ends = (int(counts.min()), int(counts.max()))
            raise InputError("least and largest count", ends, f"from 0 to answered={answered}")
        object.__setattr__(self, "counts", counts)

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if len(self.counts) != len(other.counts):
            raise InputError("tally", len(other.counts), f"of {len(self.counts)} values like the other one")
        return Tally(self.people + other.people, self.answered + other.answered, self.counts + other.counts)
