"""Brackets of a falling function that fall themselves: every answer agrees with all that were given before.

Two brackets of one profile at neighbouring ε may differ by their roundings, and then an upper end can rise by some
units in the last place. The truth falls, so an end may be lowered to that of a smaller ε, or raised to that of a larger
one, and stay on its side. What was once answered at an ε is answered again.
"""

from __future__ import annotations

from bisect import bisect_left
from threading import Lock


class Monotone:
    """Answers so far, by ascending ε."""

    __slots__ = ("_answers", "_lock")

    def __init__(self) -> None:
        self._answers: list[tuple[float, float, float]] = []
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Monotone], tuple[()]]:
        """A copy in another process knows nothing yet."""
        return Monotone, ()

    def __deepcopy__(self, memo: object) -> Monotone:
        """Nor does one in this process."""
        del memo
        return Monotone()

    def known(self, epsilon: float) -> tuple[float, float] | None:
        """The bracket that was answered at this very ε."""
        with self._lock:
            place = bisect_left(self._answers, (epsilon,))
            found = self._answers[place] if place < len(self._answers) else None
        return found[1:] if found is not None and found[0] == epsilon else None

    def settled(self, epsilon: float, low: float, high: float) -> tuple[float, float]:
        """The bracket between those of its neighbours, which is kept.

        >>> falling = Monotone()
        >>> falling.settled(1.0, 0.1, 0.2), falling.settled(2.0, 0.05, 0.21), falling.settled(1.0, 0.0, 1.0)
        ((0.1, 0.2), (0.05, 0.2), (0.1, 0.2))
        """
        with self._lock:
            place = bisect_left(self._answers, (epsilon,))
            if place < len(self._answers):
                after = self._answers[place]
                if after[0] == epsilon:
                    return after[1], after[2]
                low, high = max(low, after[1]), max(high, after[2])
            if place > 0:
                before = self._answers[place - 1]
                low, high = min(low, before[1]), min(high, before[2])
            self._answers.insert(place, (epsilon, low, high))
            return low, high
