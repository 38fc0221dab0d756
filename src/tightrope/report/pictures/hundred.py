"""The picture of 100 guesses for a page: a path a kind, a point a guess, in a box of 250 × 40."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.words.guesses import HUNDRED, PER_LINE, Guesses

KINDS = {"●": "coin-right", "◆": "more-right", "○": "wrong"}
"""Classes of the three kinds of guesses, by their signs."""


@dataclass(frozen=True, slots=True)
class Dots:
    """The guesses of one kind: what it is called, where its points stand, and what the legend says."""

    kind: str
    path: str
    said: str


def hundred(guesses: Guesses) -> list[Dots]:
    """Every kind that there is, in the order of the text: line by line.

    >>> [(dots.kind, dots.path.count("h0")) for dots in hundred(Guesses(24))]
    [('coin-right', 50), ('more-right', 24), ('wrong', 26)]
    """
    places = iter(f"M{10 * (at % PER_LINE) + 5} {10 * (at // PER_LINE) + 5}h0" for at in range(HUNDRED))
    return [
        Dots(KINDS[sign], "".join(next(places) for _ in range(count)), said) for sign, said, count in guesses.legend
    ]
