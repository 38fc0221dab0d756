"""The promise of a release in plain words: what an attacker can gain, what ε and δ mean, who is protected."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.report.words.attacker import attack_success
from tightrope.report.words.digits import UP, one_in, percent, significant
from tightrope.report.words.document import Json, number, part, text

_LIMITS = (
    ("rows_per_person", "row a person"),
    ("groups_per_person", "group a person"),
    ("rows_per_group", "row a person in each group"),
)


@dataclass(frozen=True, slots=True)
class Promise:
    """The words at the top of the page. ``fill``: how far the bar goes from a coin flip to certainty, in percent."""

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
    return Promise(
        success=percent(success, UP) if success is not None else "",
        fill=0.0 if success is None else min(max(200 * success - 100, 0.0), 100.0),
        epsilon=significant(epsilon, 3, UP) if epsilon is not None else "",
        epsilon_meaning=_epsilon_meaning(epsilon),
        delta=significant(delta, 2, UP) if delta is not None else "",
        delta_meaning=_delta_meaning(delta),
        protected=text(neighbours, "statement").rstrip("."),
        facts=_facts(neighbours),
    )


def _epsilon_meaning(epsilon: float | None) -> str:
    """e^ε in words.

    >>> _epsilon_meaning(1.0)
    'With your data or without it, no result becomes more than 2.72 times as likely.'
    """
    if epsilon is None:
        return ""
    factor = significant(math.exp(min(epsilon, 700.0)), 3, UP)
    return f"With your data or without it, no result becomes more than {factor} times as likely."


def _delta_meaning(delta: float | None) -> str:
    if delta is None:
        return ""
    if delta <= 0:
        return "This limit holds without any exception."
    return f"The slack in that limit: a probability of at most {one_in(delta)}."


def _facts(neighbours: Json) -> list[str]:
    """How much of one person can enter the answers."""
    if not neighbours:
        return []
    person = text(neighbours, "person")
    limits = [(number(neighbours, key), unit) for key, unit in _LIMITS]
    shown = [f"at most {_counted(limit, unit)}" for limit, unit in limits if limit and person]
    return [f"one person: {f'all rows with the same “{person}”' if person else 'one row of the table'}", *shown]


def _counted(limit: float, unit: str) -> str:
    noun, _, rest = unit.partition(" ")
    return f"{significant(limit)} {noun if limit == 1 else noun + 's'} {rest}"
