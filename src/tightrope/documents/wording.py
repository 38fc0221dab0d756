"""Sentences that explain a guarantee; reports and terminals add theirs in `reporting.wording.promise`.

Every sentence holds for each attacker and rounds to the side of more risk. δ is added to a limit: it is not "the chance
that the limit fails", for which a limit on ε alone would not be enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from tightrope.documents import numbers
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import (
    DOWN,
    NEAREST,
    UP,
    Guesses,
    Number,
    one_in_text,
    percent_text,
    rounded_decimal,
    significant_text,
    times_text,
)
from tightrope.documents.privacy_unit import POPULATION, PrivacyUnit


def title_with_bound(title: str, bound: str) -> str:
    """Return a title for readers, with a capital letter, and the bound on the rows that the answer uses.

    >>> title_with_bound("number of rows", "using at most 3 rows per person")
    'Number of rows (using at most 3 rows per person)'
    """
    shown = title[:1].upper() + title[1:]
    return f"{shown} ({bound})" if bound else shown


WIDEST_INTERVAL = 0.5
"""A share with a wider interval than this is not stated."""
LARGEST_LIMIT = 0.1
"""A share that may be 0 is stated if its upper limit is at most this: a larger limit is mostly noise."""
SMALLEST_SHARE, ZERO_PERCENT, HUNDRED_PERCENT = 0.001, "0 %", "100 %"
"""Smaller shares are not distinguished from 0, so intervals that reach below it are cut off there."""


def share_text(share: float, lower: float, upper: float, subject: str) -> str:
    """Return a share with its interval in words, rounded outwards; empty if the noise is too large to say anything.

    An end that was cut off is left out, because it would read as certain.

    >>> share_text(0.03, 0.024, 0.036, "it"), share_text(0.0, 0.0, 0.0, "it"), share_text(0.2, 0.0, 0.45, "it")
    ('about 3.0 % of it (2.4 % to 3.6 %)', 'at most 0.1 % of it', '')
    >>> share_text(1.0, 0.97, 1.0, "it")
    'at least 97 % of it'
    """
    if not upper - lower <= WIDEST_INTERVAL:
        return ""
    first, last = (
        share_percent(min(lower, 1 - SMALLEST_SHARE), DOWN),
        share_percent(max(upper, SMALLEST_SHARE), UP),
    )
    if first == ZERO_PERCENT:
        return f"at most {last} of {subject}" if upper <= LARGEST_LIMIT else ""
    if last == HUNDRED_PERCENT:
        return f"at least {first} of {subject}"
    return f"about {share_percent(share)} of {subject} ({first} to {last})"


def share_percent(share: float, rounding: str = NEAREST) -> str:
    """Return a share as a percentage, with one decimal below 10 %.

    >>> share_percent(0.8912), share_percent(0.0312), share_percent(0.0), share_percent(0.0312, UP)
    ('89 %', '3.1 %', '0 %', '3.2 %')
    """
    places = 0 if share >= 0.1 else 1
    percent = f"{rounded_decimal(share, places + 2, rounding):.{places}%}".replace("%", " %")
    return ZERO_PERCENT if percent == "0.0 %" else percent


LOSSES_ADD_UP = "Other releases about the same people add to the privacy loss."
RANDOM_GUESSING = "random guessing: 50 %"
NOTHING = "These numbers give no protection: they allow publishing who is in the data."
ABOUT_YOU = POPULATION.format(one="you", whether="you are in the data or not")
INPUTS = "These numbers do not define what one person is, or which inputs are neighbors: this must be stated with them."


@dataclass(frozen=True, slots=True)
class AttackWording:
    """An attacker's success rate: the number, and the words before and after it."""

    before: str
    success: str
    after: str = f"of the time ({RANDOM_GUESSING})."

    @classmethod
    def from_guess(cls, guess: str, success: Number, seen: str = "") -> AttackWording:
        """Return the wording for an attacker who guesses something; ``seen`` precedes the guess.

        >>> print(AttackWording.from_guess("whether you are in the data", 0.7311))  # doctest: +NORMALIZE_WHITESPACE
        An attacker who guesses whether you are in the data is right at most 73.2 % of the time
        (random guessing: 50 %).
        """
        return cls(f"An attacker who {seen}guesses {guess} is right at most", percent_text(success, UP))

    def __str__(self) -> str:
        return f"{self.before} {self.success} {self.after}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A guarantee in plain words: the attacker's success rate, further sentences, and the picture of 100 guesses.

    ``attack`` and ``guesses`` are None if the numbers give no protection.
    """

    attack: AttackWording | None
    sentences: tuple[str, ...]
    guesses: Guesses | None

    def __str__(self) -> str:
        words = " ".join(map(str, (*([] if self.attack is None else [self.attack]), *self.sentences)))
        return words if self.guesses is None else f"{words}\n\n{self.guesses}"


def protected_group_text(about: str) -> str:
    """Return the statement that the guarantee holds for every attacker, whatever they know about these."""
    return (
        f"This holds for every attacker who starts with even odds, whatever else they know about {about}, and however "
        "much they can compute."
    )


# The meaning of δ: every text for users that explains it takes its words from here.

DELTA_NAME = "additional probability"
DELTA_MEANING = "This probability is added to the bound of ε; a complete loss of privacy is at most this likely."
ZERO_DELTA_MEANING = "The bound of ε holds without exception."
DELTA_ADVICE = (
    "Choose delta well below one over the number of people: 1e-8 suits up to a million people, 1e-10 a hundred million."
)
DELTA_SIZE_ADVICE = "choose a value much smaller than 1/(number of people), such as 1e-8"
DELTA_TOO_LARGE = "with this probability everything about a person may be revealed"


def added_probability_text(delta: Number | None) -> str:
    """Return the addition of δ to a limit by ε, empty if δ is 0; None: a δ that is stated next to it.

    >>> added_probability_text(1e-8), added_probability_text(None), added_probability_text(0.0)
    (', plus a probability of at most 1 in 100 million', ', plus δ', '')
    """
    if delta is None:
        return ", plus δ"
    return f", plus a probability of at most {one_in_text(delta)}" if delta > 0 else ""


def large_delta_text(delta: Number) -> str:
    """Return what a large δ allows.

    >>> large_delta_text(0.001)
    'delta 0.001 is large: with 1,000 people it allows publishing all data of one of them, chosen at random'
    """
    people = f"with {int(1 / delta):,} people it allows publishing all data of one of them, chosen at random"
    return f"delta {float(delta):g} is large: {people}"


def likelihood_limit_text(epsilon: Number, delta: Number, inputs: tuple[str, str, str]) -> str:
    """Return the limit of ε and δ in words; ``inputs``: what is compared, and the two inputs.

    >>> inputs = ("set of answers", "with your data", "without")
    >>> print(likelihood_limit_text(1.0, 1e-8, inputs))  # doctest: +NORMALIZE_WHITESPACE
    Any set of answers is at most 2.72 times as likely with your data as without, plus a probability
    of at most 1 in 100 million, and vice versa (ε = 1, δ = 1 × 10⁻⁸).
    >>> likelihood_limit_text(0.0, 0.0, inputs)
    'Any set of answers is exactly as likely with your data as without (ε = 0, δ = 0).'
    """
    compared, first, second = inputs
    if epsilon == float("inf"):
        return f"These numbers do not limit how many times as likely a result can be {first} as {second}."
    numbers = f"(ε = {significant_text(epsilon, 3, UP)}, δ = {significant_text(delta, 2, UP)})"
    if epsilon == 0 and delta == 0:
        return f"Any {compared} is exactly as likely {first} as {second} {numbers}."
    factor = f"{times_text(epsilon)} times " if epsilon else ""
    addition = added_probability_text(delta)
    return f"Any {compared} is at most {factor}as likely {first} as {second}{addition}, and vice versa {numbers}."


def explain_numbers(epsilon: float, delta: float, success: Number) -> Explanation:
    """Explain a guarantee by itself, without a privacy unit."""
    if success == 1 and (epsilon == float("inf") or delta == 1):
        return Explanation(None, (NOTHING,), None)
    guess = "which of two inputs it came from, such as the data with you and the data without you,"
    attack = AttackWording.from_guess(guess, success, "sees the output and ")
    sentences = (
        protected_group_text("you or about everyone else"),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, TWO_INPUTS),
        INPUTS,
        ABOUT_YOU,
        LOSSES_ADD_UP,
    )
    return Explanation(attack, sentences, Guesses.from_success(success))


def explain_release(epsilon: float, delta: float, success: float, privacy_unit: PrivacyUnit, seen: str) -> Explanation:
    """Explain a release: its guarantee, the protected people, and its limits."""
    sentences = (
        protected_group_text(privacy_unit.attacker_knowledge_text),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, ("set of answers", f"with {privacy_unit.data_owner_text}", "without")),
        privacy_unit.unit_text,
        privacy_unit.population_text,
        f"The guarantee covers only this release; other releases about the same "
        f"{'people' if privacy_unit.is_human else 'data'} add to the privacy loss.",
    )
    return Explanation(
        AttackWording.from_guess(privacy_unit.guess_text, success, f"sees {seen} and "),
        sentences,
        Guesses.from_success(success),
    )


TWO_INPUTS = ("set of outputs", "under one input", "under the other")
ONE_ROW = "The guarantee protects one row; a person with several rows has less protection."
GUESS_BY_RELATION = {
    "add-remove": ("which of two inputs it came from, the data with one row or the data without it,", ONE_ROW),
    "replace-one": (
        "which of two inputs it came from, the data with one row or the data with another row in its place,",
        ONE_ROW,
    ),
    "zero-out": (
        "which of two inputs it came from, the data with one row or the data with its contribution set to zero,",
        ONE_ROW,
    ),
    "local": ("which of two answers of one person it came from,", "It covers all reports of that person together."),
}
"""What an attacker guesses, and what the guarantee covers, by neighboring relation."""
LOCAL_MODEL = (
    "This holds for everyone who starts with even odds, including the collector, whatever else they know and however "
    "much they can compute: each answer is randomized by the person who gives it, before it is sent."
)
ONE_REPORT = (
    "It covers one report: a person who is asked the same question again must send the same report again, because new "
    "reports add to the privacy loss. It does not hide that a person took part."
)
ONE_OUTPUT = "It covers one output per value: randomizing and releasing a value again reveals more."
HIDES_GROUP_ONLY = "It hides only the group: the output can still reveal the value, and the person."


def explain_account(epsilon: float, delta: float, success: Number, neighbors: str, condition: str) -> Explanation:
    """Explain composed steps; ``condition`` is the condition in their statement."""
    without_inputs = explain_numbers(epsilon, delta, success)
    if without_inputs.attack is None:
        return without_inputs
    fallback = "which of two inputs it came from, such as the data with you and the data without you,", INPUTS
    guess, inputs = GUESS_BY_RELATION.get(neighbors, fallback)
    sentences = (
        protected_group_text("everyone in the data"),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, TWO_INPUTS),
        inputs,
        escape_control_chars(condition),
        ABOUT_YOU,
        LOSSES_ADD_UP,
    )
    return Explanation(
        AttackWording.from_guess(guess, success, "sees the output and "), sentences, without_inputs.guesses
    )


@dataclass(frozen=True, slots=True)
class ErrorWording:
    """Errors of a noise: its mean, the least mean of any noise that meets the budget, and its largest error."""

    mean: float
    least: float | None
    worst: float | None
    whole: bool

    @property
    def error_text(self) -> str:
        """Return the errors, rounded up, and the least error of any noise, rounded down."""
        limit = "" if self.worst is None else f", and by at most {significant_text(self.worst, 3, UP)}"
        mean_text = f"The noise changes an answer by {significant_text(self.mean, 3, UP)} on average{limit}."
        if not self.least:
            return mean_text
        kind = "integer-valued noise" if self.whole else "noise"
        least = significant_text(self.least, 3, DOWN)
        return f"{mean_text} No {kind} that meets this budget changes it by less than {least} on average."


def explain_noise(
    triple: tuple[float, float, float], sensitivity: float, answers: int, errors: ErrorWording
) -> Explanation:
    """Explain answers with this noise, each of which differs between two inputs by at most ``sensitivity``."""
    epsilon, delta, eta = triple
    success = numbers.attack_success_rate(eta)
    without_inputs = explain_numbers(epsilon, delta, success)
    if without_inputs.attack is None:
        return without_inputs
    per_answer, seen = ("", "the noisy answer") if answers == 1 else (" each", f"all {answers:,} noisy answers")
    limit = f"{significant_text(sensitivity)}{per_answer}"
    inputs = f"which of two inputs they came from, whose true answers differ by at most {limit},"
    guess = inputs.replace("they came", "it came") if answers == 1 else inputs
    sentences = (
        protected_group_text("the data"),
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, TWO_INPUTS),
        "The code that computes the answers must ensure that one person changes each of them by at most "
        f"{significant_text(sensitivity)}.",
        errors.error_text,
        ABOUT_YOU,
        LOSSES_ADD_UP,
    )
    return Explanation(AttackWording.from_guess(guess, success, f"sees {seen} and "), sentences, without_inputs.guesses)


def explain_report(epsilon: float, delta: float, total_variation: Number) -> Explanation:
    """Explain one report in a study in the local model."""
    success = numbers.attack_success_rate(total_variation)
    attack = AttackWording(
        "An attacker who sees your report and guesses which of two answers you gave is right at most",
        percent_text(success, UP),
    )
    sentences = (
        LOCAL_MODEL,
        Guesses.from_success(success).picture_text,
        likelihood_limit_text(epsilon, delta, ("set of reports", "from one answer", "from another")),
        ONE_REPORT,
        POPULATION.format(one="you", whether="you take part or not"),
    )
    return Explanation(attack, sentences, Guesses.from_success(success))


def explain_coupling(
    gap: Fraction, left: Sequence[float], confidence: float, laws: str, *, delta: float = 0.0
) -> Explanation:
    """Explain one output of a coupling; ``gap``: the largest distance of output distributions from their target.

    ``left``: total variations of which each holds, all with the ``confidence``, if distributions were learned with
    noise; ``laws``: the distributions that the coupling was fitted to. ``delta``: the mass by which the outputs of two
    groups may differ.
    """
    guess = "An attacker who sees one output value and guesses which of two groups it came from is right"
    if left:
        success = numbers.attack_success_rate(max(min(left), delta))
        attack = AttackWording(f"{guess} at most", percent_text(success, UP))
        sentences: tuple[str, ...] = (
            f"The distributions were learned with noise, so this holds with {percent_text(confidence, DOWN)} "
            "confidence, for every attacker who starts with even odds.",
            Guesses.from_success(success).picture_text,
        )
        return Explanation(attack, (*sentences, ONE_OUTPUT, HIDES_GROUP_ONLY), Guesses.from_success(success))
    fitted = f"This holds if the values of each group have the distributions that the coupling was fitted to: {laws}."
    if delta > 0:
        success = numbers.attack_success_rate(delta)
        sentences = (
            fitted,
            Guesses.from_success(success).picture_text,
            f"The output distributions of all groups have a common part: at least {percent_text(1 - delta, DOWN)} of "
            "the outputs of each group are drawn from it.",
            "If values have other distributions, outputs of two groups differ in total variation by at most the "
            "sum of the errors of their distributions more.",
        )
        attack = AttackWording(f"{guess} at most", percent_text(success, UP))
        return Explanation(attack, (*sentences, ONE_OUTPUT, HIDES_GROUP_ONLY), Guesses.from_success(success))
    rounding = ""
    if gap:
        above = Context(prec=30, rounding=UP).divide(Decimal(gap.numerator), Decimal(gap.denominator))
        rounding = f", up to one guess in {one_in_text(above).removeprefix('1 in ')}, because of rounding"
    attack = AttackWording(guess, "50 %", f"of the time, as in random guessing{rounding}.")
    sentences = (
        fitted,
        "Then the output has the same distribution in every group, and no attacker who starts with even odds does "
        "better, however much they can compute.",
        "If values have other distributions, the output can reveal the group: outputs of two groups then differ in "
        "total variation by at most the sum of the errors of their distributions.",
    )
    return Explanation(attack, (*sentences, ONE_OUTPUT, HIDES_GROUP_ONLY), Guesses(0))
