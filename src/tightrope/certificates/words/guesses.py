"""The picture of 100 guesses: how many a coin gets right, how many more an attacker may, how many stay wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tightrope.certificates.words.digits import Number, named

HUNDRED, COIN, PER_LINE = 100, 50, 25


@dataclass(frozen=True, slots=True)
class Guesses:
    """Of 100 guesses from an even chance, on average: 50 that a coin gets right, at most ``more``, the rest wrong."""

    more: int

    @classmethod
    def of(cls, success: Number) -> Guesses:
        """For an attacker who is right so often at most; whole guesses, rounded up, whatever the thread's context.

        >>> Guesses.of(0.731), Guesses.of(0.5), Guesses.of(1.0)
        (Guesses(more=24), Guesses(more=0), Guesses(more=50))
        """
        return cls(min(max(math.ceil(Fraction(named(success)) * HUNDRED) - COIN, 0), HUNDRED - COIN))

    @property
    def right(self) -> int:
        """How many are right, at most."""
        return COIN + self.more

    @property
    def wrong(self) -> int:
        """How many are wrong, at least."""
        return HUNDRED - self.right

    @property
    def legend(self) -> tuple[tuple[str, str, int], ...]:
        """Each kind that there is: its sign, what it says, how many."""
        kinds = (
            ("●", f"{COIN} right: so many a coin gets right", COIN),
            ("◆", f"{self.more} more right, at most: what is published helps", self.more),
            ("○", f"{self.wrong} wrong, at least", self.wrong),
        )
        return tuple(kind for kind in kinds if kind[2])

    @property
    def words(self) -> str:
        """The picture in a sentence.

        >>> Guesses(24).words
        'Of 100 such guesses, at most 74 are right on average; of 100 throws of a coin, 50.'
        """
        return f"Of {HUNDRED} such guesses, at most {self.right} are right on average; of 100 throws of a coin, {COIN}."

    def __str__(self) -> str:
        signs = "".join(sign * count for sign, _, count in self.legend)
        lines = [" ".join(signs[start : start + PER_LINE]) for start in range(0, HUNDRED, PER_LINE)]
        return "\n".join([*lines, "", *(f"{sign} {said}" for sign, said, _ in self.legend)])
