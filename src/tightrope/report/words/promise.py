"""The promise of a release in plain words: what an attacker can gain, what ε and δ mean, who is protected."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.printable import A_PERSON, printable
from tightrope.certificates.words.chances import times
from tightrope.certificates.words.digits import UP, one_in, significant
from tightrope.certificates.words.explained import Attack, everybody
from tightrope.certificates.words.guesses import Guesses
from tightrope.certificates.words.person import Protected
from tightrope.report.words.attacker import attack_success
from tightrope.report.words.document import Json, number, part, text


@dataclass(frozen=True, slots=True)
class Promise:
    """The words at the top of the page; ``attack`` and ``guesses`` are None where it is not stated what one gains."""

    person: Protected
    attack: Attack | None
    guesses: Guesses | None
    everybody: str
    epsilon: str
    epsilon_meaning: str
    delta: str
    delta_meaning: str
    protected: str
    facts: list[str]


def promise(certificate: Json) -> Promise:
    """The promise of a certificate; what it does not state is empty."""
    success = attack_success(certificate)
    epsilon, delta = number(certificate, "epsilon"), number(certificate, "delta")
    neighbours = part(certificate, "neighbours")
    person = _person(neighbours)
    return Promise(
        person=person,
        attack=None if success is None else Attack.on(person.guess, success),
        guesses=None if success is None else Guesses.of(success),
        everybody=everybody(person.about),
        epsilon=significant(epsilon, 3, UP) if epsilon is not None else "",
        epsilon_meaning=_epsilon_meaning(epsilon, delta, person.data),
        delta=significant(delta, 2, UP) if delta is not None else "",
        delta_meaning=_delta_meaning(delta),
        protected=printable(text(neighbours, "statement")).rstrip("."),
        facts=[f"one {person.noun}: {person.rows_words}", *person.limits] if neighbours else [],
    )


def _person(neighbours: Json) -> Protected:
    """Who is protected; limits are those of a person with a column of their own."""
    column, means = text(neighbours, "person"), text(neighbours, "means") or A_PERSON
    limits = (number(neighbours, name) for name in ("rows_per_person", "groups_per_person", "rows_per_group"))
    return Protected(means, column, *(round(limit) if limit and column else None for limit in limits))


def _epsilon_meaning(epsilon: float | None, delta: float | None, whose: str) -> str:
    """e^ε in words, which δ is a part of: read alone, they must not say more than both.

    >>> _epsilon_meaning(1.0, 0.0, "your data")
    'With your data or without it, no result becomes more than 2.72 times as likely.'
    >>> _epsilon_meaning(1.0, 1e-6, "your data")
    'With your data or without it, no result becomes more than 2.72 times as likely, but for the slack δ.'
    """
    if epsilon is None:
        return ""
    slack = "" if delta == 0 else ", but for the slack δ"
    return f"With {whose} or without it, no result becomes more than {times(epsilon)} times as likely{slack}."


def _delta_meaning(delta: float | None) -> str:
    if delta is None:
        return ""
    if delta <= 0:
        return "This limit holds without any exception."
    return f"Added to that limit: a probability of at most {one_in(delta)}."
