"""What an account, a noise, a study and a coupling promise, in one paragraph that a citizen understands.

As in ``explained``: every sentence holds for each attacker and rounds to the side of more risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from tightrope.certificates.printable import printable
from tightrope.certificates.words import chances
from tightrope.certificates.words.digits import DOWN, UP, Number, one_in, percent, significant
from tightrope.certificates.words.explained import (
    ADDS,
    INPUTS,
    OF_EVERYONE,
    Attack,
    Explained,
    everybody,
    odds,
    of_numbers,
)
from tightrope.certificates.words.guesses import Guesses

UNDER = ("in what comes out", "under one input", "under the other")
RECORD = "A record is what stands in one place of the data; whoever has several is protected less."
TOLD_APART = {
    "add-remove": ("which of two inputs it came from, the data with one record or the data without it,", RECORD),
    "replace-one": (
        "which of two inputs it came from, the data with one record or the data with another in its place,",
        RECORD,
    ),
    "local": ("which of two answers of one person it came from,", "It speaks of all reports of that person together."),
}
"""What is guessed and what one input is, by the relation of neighbours."""
ON_THEIR_OWN = (
    "This holds against everybody, the collector included, who starts from an even chance, whatever else they know and "
    "however much they can compute: each answer is randomised by the person who gives it, before it leaves them."
)
ONE_REPORT = (
    "It speaks of one report: who is asked the same again must send the same report again, and fresh ones add up. That "
    "somebody took part is not hidden."
)
ONE_DRAW = "It speaks of one draw a value: releasing a value again tells more."
THE_GROUP_ALONE = "It hides the group and nothing else: what is written may still tell the value, and the person."


def of_account(epsilon: float, delta: float, success: Number, neighbours: str, condition: str) -> Explained:
    """Of steps that were added up; ``condition`` is what their statement says."""
    plain = of_numbers(epsilon, delta, success)
    if plain.attack is None:
        return plain
    fallback = "which of two inputs it came from, such as the data with you and the data without you,", INPUTS
    guess, inputs = TOLD_APART.get(neighbours, fallback)
    said = (
        everybody("everyone in the data"),
        Guesses.of(success).words,
        odds(epsilon, delta, UNDER),
        inputs,
        printable(condition),
        OF_EVERYONE.format(one="you"),
        ADDS,
    )
    return Explained(Attack.on(guess, success, "sees what comes out and "), said, plain.guesses)


@dataclass(frozen=True, slots=True)
class Errors:
    """What a noise costs: its mean, the least mean of any that keeps what was asked for, and its largest error."""

    mean: float
    least: float | None
    worst: float | None
    whole: bool

    @property
    def words(self) -> str:
        """The errors, rounded up; what no noise goes below, rounded down."""
        limit = "" if self.worst is None else f" and never by more than {significant(self.worst, 3, UP)}"
        moved = f"The noise moves an answer by {significant(self.mean, 3, UP)} on average{limit}."
        if not self.least:
            return moved
        other = "whole-number noise" if self.whole else "noise"
        return (
            f"{moved} No {other} that keeps what was asked for moves it by less than {_least(self.least)} on average."
        )


def of_noise(triple: tuple[float, float, float], moved: float, answers: int, errors: Errors) -> Explained:
    """Of so many answers with this noise, each of which two inputs change by at most ``moved``."""
    epsilon, delta, eta = triple
    success = chances.success(eta)
    plain = of_numbers(epsilon, delta, success)
    if plain.attack is None:
        return plain
    each, seen = ("", "the noisy answer") if answers == 1 else (" each", f"all {answers:,} noisy answers")
    inputs = f"which of two inputs they came from, whose true answers differ by at most {significant(moved)}{each},"
    guess = inputs.replace("they came", "it came") if answers == 1 else inputs
    said = (
        everybody("the data"),
        Guesses.of(success).words,
        odds(epsilon, delta, UNDER),
        "How far one person can move an answer is for whoever computes it to see to.",
        errors.words,
        OF_EVERYONE.format(one="you"),
        ADDS,
    )
    return Explained(Attack.on(guess, success, f"sees {seen} and "), said, plain.guesses)


def of_report(epsilon: float, delta: float, total_variation: Number) -> Explained:
    """Of one report in a study in which nobody is trusted."""
    success = chances.success(total_variation)
    attack = Attack(
        "Whoever sees your report and guesses between two answers of yours is right at most", percent(success, UP)
    )
    said = (
        ON_THEIR_OWN,
        Guesses.of(success).words,
        odds(epsilon, delta, ("in your report", "from one answer", "from another")),
        ONE_REPORT,
        OF_EVERYONE.format(one="you").replace("in the data or not", "asked or not"),
    )
    return Explained(attack, said, Guesses.of(success))


def of_coupling(gap: Fraction, left: Sequence[float], confidence: float, laws: str) -> Explained:
    """Of one value that a coupling wrote; ``gap``: how far output laws are from their target, at most.

    ``left``: total variations of which each holds, all with the ``confidence``, where laws were learned with noise;
    ``laws`` says whose they are.
    """
    guess = "Whoever sees one value that was written, and guesses which of two groups it came from, is right"
    if left:
        success = chances.success(min(left))
        attack = Attack(f"{guess} at most", percent(success, UP))
        said: tuple[str, ...] = (
            f"The laws were learned with noise, so that this holds with a confidence of {percent(confidence, DOWN)}, "
            "for every attacker who starts from an even chance.",
            Guesses.of(success).words,
        )
        return Explained(attack, (*said, ONE_DRAW, THE_GROUP_ALONE), Guesses.of(success))
    rounding = (
        "" if not gap else f", but for one guess in {one_in(_decimal(gap)).removeprefix('1 in ')}, lost to rounding"
    )
    attack = Attack(guess, "50 %", f"of the time, as a coin is{rounding}.")
    said = (
        f"That is so if the values of each group have the laws that it was made for: {laws}.",
        "Then all groups come out alike, and nobody who starts from an even chance does better, whatever they can "
        "compute.",
        "Where values have other laws, what is written may tell the group: by no more than both laws are off together.",
    )
    return Explained(attack, (*said, ONE_DRAW, THE_GROUP_ALONE), Guesses(0))


def _decimal(gap: Fraction) -> Decimal:
    """Not below the fraction."""
    from decimal import ROUND_CEILING, Context

    context = Context(prec=30, rounding=ROUND_CEILING)
    return context.divide(Decimal(gap.numerator), Decimal(gap.denominator))


def _least(value: float) -> str:
    return significant(value, 3, DOWN)
