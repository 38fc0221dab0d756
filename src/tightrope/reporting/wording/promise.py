"""The promise of a release in plain words: what an attacker can gain, what ε and δ mean, who is protected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tightrope.documents.escaping import A_PERSON, printable
from tightrope.documents.numbers import UP, Guesses, one_in, significant, times
from tightrope.documents.wording import Attack, Protected, everybody
from tightrope.reporting.wording.document import Json, number, object_at, pairs, text

# What an attacker can gain, as bounds from the points (ε, δ) of a certificate. Neighbours in either order.
#
# Every bound is an upper one: it holds for every attacker, whatever they know.

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1)
_SAME_RATE = 1e-9
_ALONG_CHORD = (0.0, 0.5, 0.8, 0.94, 0.98, 0.995, 0.999)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Catch:
    """At this rate of false alarms, an attacker recognises at most this share of the people."""

    false_positive_rate: float
    true_positive_rate: float

    @property
    def times_chance(self) -> float:
        """How many times as many as a blind guess finds."""
        return self.true_positive_rate / self.false_positive_rate


def guarantee_points(certificate: Json) -> list[Point]:
    """Every (ε, δ) that the certificate states, the total variation as (0, η); ε ≥ 0 and 0 ≤ δ ≤ 1 only."""
    stated = [
        (number(certificate, "epsilon"), number(certificate, "delta")),
        (0.0, number(certificate, "total_variation")),
    ]
    known = [(epsilon, delta) for epsilon, delta in stated if epsilon is not None and delta is not None]
    return [
        (e, d)
        for e, d in [*known, *pairs(object_at(certificate, "profile"), "epsilon", "delta")]
        if e >= 0 and 0 <= d <= 1
    ]


def true_positive_rate(points: Sequence[Point], false_positive_rate: float) -> float:
    """The least of 1, e^ε·α + δ and 1 − e^{−ε}(1 − δ − α) over the points (ε, δ), α the false-positive rate.

    >>> true_positive_rate([(0.0, 0.25)], 0.1)
    0.35
    """
    found = 1.0
    for epsilon, delta in points:
        found = min(found, delta + false_positive_rate * math.exp(min(epsilon, 700.0)))
        found = min(found, 1 - math.exp(-epsilon) * max(0.0, 1 - delta - false_positive_rate))
    return max(found, false_positive_rate)


def attack_success(certificate: Json) -> float | None:
    """How often a guess from an even chance is right, at most: as stated, else (1 + η)/2, else from (ε, δ).

    >>> attack_success({"total_variation": 0.3})
    0.65
    """
    stated = number(certificate, "attack_success")
    if stated is not None and 0 <= stated <= 1:
        return stated
    points = guarantee_points(certificate)
    # (ε, δ) bounds η by 1 − 2(1 − δ)/(1 + e^ε), which is η itself at ε = 0
    bounds = [(1 + 1 - 2 * (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))) / 2 for epsilon, delta in points]
    return min(bounds) if bounds else None


def catches(certificate: Json) -> list[Catch]:
    """The table of true-positive rates at 0.1, 1, 5 and 10 % false positives; empty without any guarantee."""
    # The points of the trade-off that the certificate holds.
    stated_found = pairs(object_at(certificate, "tradeoff"), "false_positive_rate", "true_positive_rate")
    points, stated = (
        guarantee_points(certificate),
        [Catch(false, true) for false, true in stated_found if 0 < false <= 1 and 0 <= true <= 1],
    )
    found = [_catch(rate, points, stated) for rate in FALSE_POSITIVE_RATES]
    return [catch for catch in found if catch is not None]


def curve(certificate: Json) -> list[Point]:
    """The bound on (false, true) positive rates from 0 to 1, finer near 0 and 1; empty without any guarantee."""
    points = guarantee_points(certificate)
    if not points:
        return []
    rates = [(1 - math.cos(math.pi * i / 240)) / 2 for i in range(241)]
    return [(rate, true_positive_rate(points, rate)) for rate in rates]


def profile(certificate: Json) -> list[Point]:
    """The stated (ε, δ) with δ > 0, by ε, and chords between them: what a logarithmic axis can show.

    δ(ε) is convex in e^ε, so the chord in e^ε lies above it: every point returned is a guarantee.
    """
    stated = pairs(object_at(certificate, "profile"), "epsilon", "delta")
    known = sorted((epsilon, delta) for epsilon, delta in stated if 0 <= epsilon <= 700 and 0 < delta <= 1)
    return [point for left, right in pairwise(known) for point in _chord(left, right)] + known[-1:]


def _chord(left: Point, right: Point) -> list[Point]:
    """Points of the chord in e^ε from ``left`` up to but without ``right``, closer where log δ falls fastest."""
    (low, high), (start, end) = zip(left, right, strict=True)
    grown = math.expm1(high - low)
    return [(low + math.log1p(t * grown), (1 - t) * start + t * end) for t in _ALONG_CHORD]


def _catch(rate: float, points: Sequence[Point], stated: Sequence[Catch]) -> Catch | None:
    exact = [catch.true_positive_rate for catch in stated if abs(catch.false_positive_rate - rate) <= _SAME_RATE]
    if not exact and not points:
        return None
    return Catch(rate, min([*exact, true_positive_rate(points, rate)]))


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
    neighbours = object_at(certificate, "neighbours")
    # Who is protected; limits are those of a person with a column of their own.
    column, means = text(neighbours, "person"), text(neighbours, "means") or A_PERSON
    limits = (number(neighbours, name) for name in ("rows_per_person", "groups_per_person", "rows_per_group"))
    person = Protected(means, column, *(round(limit) if limit and column else None for limit in limits))
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
