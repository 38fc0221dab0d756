"""The promise of a release in plain words: what an attacker can gain, what ε and δ mean, who is protected."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.certificates.printable import A_PERSON, noun, printable
from tightrope.report.words.attacker import attack_success
from tightrope.report.words.digits import UP, one_in, percent, significant
from tightrope.report.words.document import Json, number, part, text

_LIMITS = (
    ("rows_per_person", "row", ""),
    ("groups_per_person", "group", ""),
    ("rows_per_group", "row", " in each group"),
)


@dataclass(frozen=True, slots=True)
class Promise:
    """The words at the top of the page. ``fill``: how far the bar goes from a coin flip to certainty, in percent."""

    noun: str
    """What a person is."""
    human: bool
    """Whether a reader may be one."""
    guess: str
    about: str
    success: str
    fill: float
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
    means = printable(text(neighbours, "means")) or A_PERSON
    human = means == A_PERSON
    return Promise(
        noun=noun(means),
        human=human,
        guess="whether you are in the data" if human else f"whether {means} is in the data",
        about="you or about everyone else" if human else f"it or about every other {noun(means)}",
        success=percent(success, UP) if success is not None else "",
        fill=0.0 if success is None else min(max(200 * success - 100, 0.0), 100.0),
        epsilon=significant(epsilon, 3, UP) if epsilon is not None else "",
        epsilon_meaning=_epsilon_meaning(epsilon, "your data" if human else f"the data of {means}"),
        delta=significant(delta, 2, UP) if delta is not None else "",
        delta_meaning=_delta_meaning(delta),
        protected=printable(text(neighbours, "statement")).rstrip("."),
        facts=_facts(neighbours, means),
    )


def _epsilon_meaning(epsilon: float | None, whose: str) -> str:
    """e^ε in words.

    >>> _epsilon_meaning(1.0, "your data")
    'With your data or without it, no result becomes more than 2.72 times as likely.'
    """
    if epsilon is None:
        return ""
    factor = significant(math.exp(min(epsilon, 700.0)), 3, UP)
    return f"With {whose} or without it, no result becomes more than {factor} times as likely."


def _delta_meaning(delta: float | None) -> str:
    if delta is None:
        return ""
    if delta <= 0:
        return "This limit holds without any exception."
    return f"The slack in that limit: a probability of at most {one_in(delta)}."


def _facts(neighbours: Json, means: str) -> list[str]:
    """How much of one person can enter the answers."""
    if not neighbours:
        return []
    person = printable(text(neighbours, "person"))
    limits = [(number(neighbours, key), unit, where) for key, unit, where in _LIMITS]
    shown = [f"at most {_counted(limit, unit)} {means}{where}" for limit, unit, where in limits if limit and person]
    return [f"one {noun(means)}: {f'all rows with the same “{person}”' if person else 'one row of the table'}", *shown]


def _counted(limit: float, unit: str) -> str:
    return f"{significant(limit)} {unit if limit == 1 else unit + 's'}"
