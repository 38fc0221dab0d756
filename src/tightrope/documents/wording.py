"""A guarantee in one plain paragraph: the only source of its sentences in all outputs.

Every sentence holds for each attacker and rounds to the side of more risk. δ is added to a limit: it is not "the chance
that the limit fails", for which a limit on ε alone would not be enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from tightrope.documents import numbers
from tightrope.documents.escaping import A_PERSON, escape_control_chars, unit_noun
from tightrope.documents.numbers import DOWN, UP, Guesses, Number, one_in, percent_text, significant_text, times_text

# Who is protected, in words: a reader of the page where a person is a human, else what a person is.


@dataclass(frozen=True, slots=True)
class ProtectedUnit:
    """The privacy unit, the column that identifies it (empty: each row is one), and its contribution bounds."""

    means: str = A_PERSON
    column: str = ""
    rows: int | None = None
    groups: int | None = None
    max_rows_per_group: int | None = None

    @property
    def unit_noun(self) -> str:
        """Return the noun of the privacy unit without its article."""
        return unit_noun(self.unit_label)

    @property
    def unit_label(self) -> str:
        """Return the printable noun of the privacy unit."""
        return escape_control_chars(self.means)

    @property
    def is_human(self) -> bool:
        """Return whether the privacy unit is a human."""
        return self.means == A_PERSON

    @property
    def guess_text(self) -> str:
        """Return the statement that an attacker guesses."""
        return "whether you are in the data" if self.is_human else f"whether {self.unit_label} is in the data"

    @property
    def attacker_knowledge_text(self) -> str:
        """Return the words for an attacker with any background knowledge."""
        return "you or about everyone else" if self.is_human else f"it or about every other {self.unit_noun}"

    @property
    def data_owner_text(self) -> str:
        """Whose data makes the difference."""
        return "your data" if self.is_human else f"the data of {self.unit_label}"

    @property
    def rows_words(self) -> str:
        """Return the definition of one person's rows."""
        return (
            f"all rows with the same “{escape_control_chars(self.column)}”" if self.column else "one row of the table"
        )

    @property
    def limits_text(self) -> list[str]:
        """Return the contribution bounds in words."""
        named = ((self.rows, "row", ""), (self.groups, "group", ""), (self.max_rows_per_group, "row", " in each group"))
        return [
            f"at most {limit:,} {unit if limit == 1 else unit + 's'} {self.unit_label}{where}"
            for limit, unit, where in named
            if limit
        ]

    @property
    def unit_text(self) -> str:
        """Return the definition of the privacy unit, and which people are protected less.

        >>> ProtectedUnit(means="a ship").unit_text
        'A ship is one row of the table; one that has several rows is protected less.'
        >>> ProtectedUnit(column="id", rows=3).unit_text.partition("; ")[0]
        '“You” are all rows with the same “id”, of which at most 3 enter any one answer'
        """
        who = "“You” are" if self.is_human else f"{self.unit_label[:1].upper()}{self.unit_label[1:]} is"
        several = (
            f"stands under several values of “{escape_control_chars(self.column)}”"
            if self.column
            else "has several rows"
        )
        entering = f", of which at most {self.rows:,} enter any one answer" if self.column and self.rows else ""
        less = f"{'who' if self.is_human else 'one that'} {several} is protected less"
        return f"{who} {self.rows_words}{entering}; {less}."


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
class AttackWording:
    """An attacker's success rate: the number, and the words before and after it."""

    before: str
    success: str
    after: str = f"of the time; {COIN}."

    @classmethod
    def from_guess(cls, guess: str, success: Number, seen: str = "") -> AttackWording:
        """An attacker who guesses something, and perhaps what they have seen.

        >>> print(AttackWording.from_guess("whether you are in the data", 0.7311))  # doctest: +NORMALIZE_WHITESPACE
        An attacker who guesses whether you are in the data is right at most 73.2 % of the time;
        a coin is right 50 % of the time.
        """
        return cls(f"An attacker who {seen}guesses {guess} is right at most", percent_text(success, UP))

    def __str__(self) -> str:
        return f"{self.before} {self.success} {self.after}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A promise for everybody: how often a guess is right, what else is to be said, and the picture of 100 guesses.

    ``attack`` and ``guesses`` are None where nothing is promised.
    """

    attack: AttackWording | None
    said: tuple[str, ...]
    guesses: Guesses | None

    def __str__(self) -> str:
        words = " ".join(map(str, (*([] if self.attack is None else [self.attack]), *self.said)))
        return words if self.guesses is None else f"{words}\n\n{self.guesses}"


def protected_group_text(about: str) -> str:
    """Return the words for the protected people."""
    return (
        f"This holds for every attacker who starts from an even chance, whatever else they know about {about}, and "
        "however much they can compute."
    )


def likelihood_limit_text(epsilon: Number, delta: Number, chances: tuple[str, str, str]) -> str:
    """The limit of ε and δ in words; ``chances``: where something is looked for, and what its two chances are.

    >>> chances = ("in the answers", "with your data", "without it")
    >>> print(likelihood_limit_text(1.0, 1e-8, chances))  # doctest: +NORMALIZE_WHITESPACE
    Whatever is looked for in the answers, its chance with your data is at most 2.72 times its
    chance without it, plus 1 in 100 million, and the other way round (ε = 1, δ = 1 × 10⁻⁸).
    >>> likelihood_limit_text(0.0, 0.0, chances)
    'Whatever is looked for in the answers, its chance with your data is its chance without it (ε = 0, δ = 0).'
    """
    where, one, other = chances
    if epsilon == float("inf"):
        return f"How many times as likely a single result can become {one} as {other}, these numbers do not limit."
    numbers = f"(ε = {significant_text(epsilon, 3, UP)}, δ = {significant_text(delta, 2, UP)})"
    start = f"Whatever is looked for {where}, its chance {one} is"
    if epsilon == 0 and delta == 0:
        return f"{start} its chance {other} {numbers}."
    most = f"at most {times_text(epsilon)} times its chance {other}" if epsilon else f"at most its chance {other}"
    slack = f", plus {one_in(delta)}" if delta > 0 else ""
    return f"{start} {most}{slack}, and the other way round {numbers}."


def of_numbers(epsilon: float, delta: float, success: Number) -> Explanation:
    """Explain a guarantee by itself, without a privacy unit."""
    if success == 1 and (epsilon == float("inf") or delta == 1):
        return Explanation(None, (NOTHING,), None)
    guess = "which of two inputs it came from, such as the data with you and the data without you,"
    attack = AttackWording.from_guess(guess, success, "sees what comes out and ")
    said = (
        protected_group_text("you or about everyone else"),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, ("in what comes out", "under one input", "under the other")),
        INPUTS,
        OF_EVERYONE.format(one="you"),
        ADDS,
    )
    return Explanation(attack, said, Guesses.from_success(success))


def of_release(epsilon: float, delta: float, success: float, person: ProtectedUnit, seen: str) -> Explanation:
    """Explain a release: its guarantee, the protected people, and its limits."""
    said = (
        protected_group_text(person.attacker_knowledge_text),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, ("in the answers", f"with {person.data_owner_text}", "without it")),
        person.unit_text,
        OF_EVERYONE.format(one="you" if person.is_human else person.unit_label),
        f"It speaks of this release alone: others about the same {'people' if person.is_human else 'data'} add to it.",
    )
    return Explanation(
        AttackWording.from_guess(person.guess_text, success, f"sees {seen} and "), said, Guesses.from_success(success)
    )


# What an account, a noise, a study and a coupling promise, in one paragraph that a citizen understands.
#
# As in ``explained``: every sentence holds for each attacker and rounds to the side of more risk.

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
"""The guess and the noun of one input, by neighboring relation."""
ON_THEIR_OWN = (
    "This holds against everybody, the collector included, who starts from an even chance, whatever else they know and "
    "however much they can compute: each answer is randomized by the person who gives it, before it leaves them."
)
ONE_REPORT = (
    "It speaks of one report: who is asked the same again must send the same report again, and fresh ones add up. That "
    "somebody took part is not hidden."
)
ONE_DRAW = "It speaks of one draw a value: releasing a value again tells more."
THE_GROUP_ALONE = "It hides the group and nothing else: what is written may still tell the value, and the person."


def of_account(epsilon: float, delta: float, success: Number, neighbors: str, condition: str) -> Explanation:
    """Explain composed steps; ``condition`` is the condition in their statement."""
    plain = of_numbers(epsilon, delta, success)
    if plain.attack is None:
        return plain
    fallback = "which of two inputs it came from, such as the data with you and the data without you,", INPUTS
    guess, inputs = TOLD_APART.get(neighbors, fallback)
    said = (
        protected_group_text("everyone in the data"),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, UNDER),
        inputs,
        escape_control_chars(condition),
        OF_EVERYONE.format(one="you"),
        ADDS,
    )
    return Explanation(AttackWording.from_guess(guess, success, "sees what comes out and "), said, plain.guesses)


@dataclass(frozen=True, slots=True)
class ErrorWording:
    """Errors of a noise: its mean, the least mean of any noise that meets the budget, and its largest error."""

    mean: float
    least: float | None
    worst: float | None
    whole: bool

    @property
    def error_text(self) -> str:
        """The errors, rounded up; what no noise goes below, rounded down."""
        limit = "" if self.worst is None else f" and never by more than {significant_text(self.worst, 3, UP)}"
        moved = f"The noise moves an answer by {significant_text(self.mean, 3, UP)} on average{limit}."
        if not self.least:
            return moved
        other = "whole-number noise" if self.whole else "noise"
        least = significant_text(self.least, 3, DOWN)
        return f"{moved} No {other} that keeps what was asked for moves it by less than {least} on average."


def of_noise(triple: tuple[float, float, float], moved: float, answers: int, errors: ErrorWording) -> Explanation:
    """Explain answers with this noise, each of which two inputs change by at most ``moved``."""
    epsilon, delta, eta = triple
    success = numbers.attack_success_rate(eta)
    plain = of_numbers(epsilon, delta, success)
    if plain.attack is None:
        return plain
    each, seen = ("", "the noisy answer") if answers == 1 else (" each", f"all {answers:,} noisy answers")
    inputs = (
        f"which of two inputs they came from, whose true answers differ by at most {significant_text(moved)}{each},"
    )
    guess = inputs.replace("they came", "it came") if answers == 1 else inputs
    said = (
        protected_group_text("the data"),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, UNDER),
        "How far one person can move an answer is for whoever computes it to see to.",
        errors.error_text,
        OF_EVERYONE.format(one="you"),
        ADDS,
    )
    return Explanation(AttackWording.from_guess(guess, success, f"sees {seen} and "), said, plain.guesses)


def of_report(epsilon: float, delta: float, total_variation: Number) -> Explanation:
    """Explain one report in a study in the local model."""
    success = numbers.attack_success_rate(total_variation)
    attack = AttackWording(
        "Whoever sees your report and guesses between two answers of yours is right at most", percent_text(success, UP)
    )
    said = (
        ON_THEIR_OWN,
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, ("in your report", "from one answer", "from another")),
        ONE_REPORT,
        OF_EVERYONE.format(one="you").replace("in the data or not", "asked or not"),
    )
    return Explanation(attack, said, Guesses.from_success(success))


def of_coupling(gap: Fraction, left: Sequence[float], confidence: float, laws: str) -> Explanation:
    """Explain one value written by a coupling; ``gap``: the largest distance of output laws from their target.

    ``left``: total variations of which each holds, all with the ``confidence``, where laws were learned with noise;
    ``laws`` says whose they are.
    """
    guess = "Whoever sees one value that was written, and guesses which of two groups it came from, is right"
    if left:
        success = numbers.attack_success_rate(min(left))
        attack = AttackWording(f"{guess} at most", percent_text(success, UP))
        said: tuple[str, ...] = (
            f"The laws were learned with noise, so that this holds with a confidence of "
            f"{percent_text(confidence, DOWN)}, "
            "for every attacker who starts from an even chance.",
            Guesses.from_success(success).picture_text,
        )
        return Explanation(attack, (*said, ONE_DRAW, THE_GROUP_ALONE), Guesses.from_success(success))
    rounding = ""
    if gap:
        above = Context(prec=30, rounding=UP).divide(Decimal(gap.numerator), Decimal(gap.denominator))
        rounding = f", but for one guess in {one_in(above).removeprefix('1 in ')}, lost to rounding"
    attack = AttackWording(guess, "50 %", f"of the time, as a coin is{rounding}.")
    said = (
        f"That is so if the values of each group have the laws that it was made for: {laws}.",
        "Then all groups come out alike, and nobody who starts from an even chance does better, whatever they can "
        "compute.",
        "Where values have other laws, what is written may tell the group: by no more than both laws are off together.",
    )
    return Explanation(attack, (*said, ONE_DRAW, THE_GROUP_ALONE), Guesses(0))
