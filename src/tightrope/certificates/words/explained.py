"""A promise in one paragraph that a citizen understands: the one source of its sentences, wherever they are shown.

Every sentence holds for each attacker and rounds to the side of more risk. δ is added to a limit: it is not "the chance
that the limit fails", for which a limit on ε alone would not be enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.words.chances import times
from tightrope.certificates.words.digits import UP, Number, one_in, percent, significant
from tightrope.certificates.words.guesses import Guesses
from tightrope.certificates.words.person import Protected

ADDS = "Whatever else comes out about the same people adds to it."
COIN = "a coin is right 50 % of the time"
NOTHING = "These numbers promise nothing: they allow what is published to say outright who is in the data."
OF_EVERYONE = (
    "It is no promise that nothing can be learned about {one}: what is true of everyone is true of {one} as well, in "
    "the data or not."
)
INPUTS = (
    "What one person is, and which inputs are kept from being told apart, stands with whoever states these numbers."
)


@dataclass(frozen=True, slots=True)
class Attack:
    """How often a guess is right: the number, and the words before and behind it."""

    before: str
    success: str
    after: str = f"of the time; {COIN}."

    @classmethod
    def on(cls, guess: str, success: Number, seen: str = "") -> Attack:
        """An attacker who guesses something, and perhaps what they have seen.

        >>> print(Attack.on("whether you are in the data", 0.7311))  # doctest: +NORMALIZE_WHITESPACE
        An attacker who guesses whether you are in the data is right at most 73.2 % of the time;
        a coin is right 50 % of the time.
        """
        return cls(f"An attacker who {seen}guesses {guess} is right at most", percent(success, UP))

    def __str__(self) -> str:
        return f"{self.before} {self.success} {self.after}"


@dataclass(frozen=True, slots=True)
class Explained:
    """A promise for everybody: how often a guess is right, what else is to be said, and the picture of 100 guesses.

    ``attack`` and ``guesses`` are None where nothing is promised.
    """

    attack: Attack | None
    said: tuple[str, ...]
    guesses: Guesses | None

    def __str__(self) -> str:
        words = " ".join(map(str, (*([] if self.attack is None else [self.attack]), *self.said)))
        return words if self.guesses is None else f"{words}\n\n{self.guesses}"


def everybody(about: str) -> str:
    """For whom the limit holds."""
    return (
        f"This holds for every attacker who starts from an even chance, whatever else they know about {about}, and "
        "however much they can compute."
    )


def odds(epsilon: Number, delta: Number, chances: tuple[str, str, str]) -> str:
    """The limit of ε and δ in words; ``chances``: where something is looked for, and what its two chances are.

    >>> print(odds(1.0, 1e-8, ("in the answers", "with your data", "without it")))  # doctest: +NORMALIZE_WHITESPACE
    Whatever is looked for in the answers, its chance with your data is at most 2.72 times its chance without it, plus
    1 in 100 million, and the other way round (ε = 1, δ = 1 × 10⁻⁸).
    >>> odds(0.0, 0.0, ("in the answers", "with your data", "without it"))
    'Whatever is looked for in the answers, its chance with your data is its chance without it (ε = 0, δ = 0).'
    """
    where, one, other = chances
    if epsilon == float("inf"):
        return f"How many times as likely a single result can become {one} as {other}, these numbers do not limit."
    numbers = f"(ε = {significant(epsilon, 3, UP)}, δ = {significant(delta, 2, UP)})"
    start = f"Whatever is looked for {where}, its chance {one} is"
    if epsilon == 0 and delta == 0:
        return f"{start} its chance {other} {numbers}."
    most = f"at most {times(epsilon)} times its chance {other}" if epsilon else f"at most its chance {other}"
    slack = f", plus {one_in(delta)}" if delta > 0 else ""
    return f"{start} {most}{slack}, and the other way round {numbers}."


def of_numbers(epsilon: float, delta: float, success: Number) -> Explained:
    """Of a guarantee by itself, which does not say what a person is."""
    if success == 1 and (epsilon == float("inf") or delta == 1):
        return Explained(None, (NOTHING,), None)
    guess = "which of two inputs it came from, such as the data with you and the data without you,"
    attack = Attack.on(guess, success, "sees what comes out and ")
    said = (
        everybody("you or about everyone else"),
        Guesses.of(success).words,
        odds(epsilon, delta, ("in what comes out", "under one input", "under the other")),
        INPUTS,
        OF_EVERYONE.format(one="you"),
        ADDS,
    )
    return Explained(attack, said, Guesses.of(success))


def of_release(epsilon: float, delta: float, success: float, person: Protected, seen: str) -> Explained:
    """Of a release: what it promises to whom, and what it does not."""
    said = (
        everybody(person.about),
        Guesses.of(success).words,
        odds(epsilon, delta, ("in the answers", f"with {person.data}", "without it")),
        person.words,
        OF_EVERYONE.format(one="you" if person.human else person.shown),
        f"It speaks of this release alone: others about the same {'people' if person.human else 'data'} add to it.",
    )
    return Explained(Attack.on(person.guess, success, f"sees {seen} and "), said, Guesses.of(success))
