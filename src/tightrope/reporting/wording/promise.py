"""The privacy guarantee of a release in plain words: gain of an attacker, meaning of ε and δ, who is protected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tightrope.documents.escaping import A_PERSON, escape_control_chars
from tightrope.documents.numbers import (
    UP,
    Guesses,
    percent_text,
    shortest_decimal,
    significant_text,
    times_text,
)
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.release import ReleaseCertificate
from tightrope.documents.wording import (
    DELTA_MEANING,
    DELTA_NAME,
    ZERO_DELTA_MEANING,
    AttackWording,
    added_probability_text,
    protected_group_text,
)
from tightrope.reporting.wording.partial_release import PartialCertificate, PartialNeighbors, stated_number_pairs

# Bounds on the gain of an attacker, from the points (ε, δ) of a certificate. Neighbors in either order.
#
# Every bound is an upper one: it holds for every attacker, with any background knowledge.

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1)
_SAME_RATE = 1e-9
_ALONG_CHORD = (0.0, 0.5, 0.8, 0.94, 0.98, 0.995, 0.999)

Point = tuple[float, float]
Certificate = ReleaseCertificate | PartialCertificate


@dataclass(frozen=True, slots=True)
class AttackRate:
    """At this false-positive rate, an attacker recognizes at most this share of the people."""

    false_positive_rate: float
    true_positive_rate: float


def attack_rate_text(rate: float) -> str:
    """Return a false- or true-positive rate in percent, rounded up; with at least three significant digits.

    >>> attack_rate_text(0.00214), attack_rate_text(0.001), attack_rate_text(0.5462)
    ('0.214 %', '0.1 %', '54.7 %')
    """
    if rate >= 0.1:
        return percent_text(rate, UP)
    return f"{significant_text(shortest_decimal(rate).scaleb(2), 3, UP)} %"


def guarantee_points(certificate: Certificate) -> list[Point]:
    """Return every (ε, δ) that the certificate states, the total variation as (0, η); ε ≥ 0 and 0 ≤ δ ≤ 1 only."""
    stated = [
        (certificate.epsilon, certificate.delta),
        (0.0, certificate.total_variation),
    ]
    known = [(epsilon, delta) for epsilon, delta in stated if epsilon is not None and delta is not None]
    return [
        (e, d)
        for e, d in [*known, *stated_number_pairs(certificate.profile.epsilon, certificate.profile.delta)]
        if e >= 0 and 0 <= d <= 1
    ]


def true_positive_rate(points: Sequence[Point], false_positive_rate: float) -> float:
    """Return the least of 1, e^ε·α + δ and 1 − e^{−ε}(1 − δ − α) over the points (ε, δ), α the false-positive rate.

    >>> true_positive_rate([(0.0, 0.25)], 0.1)
    0.35
    """
    found = 1.0
    for epsilon, delta in points:
        found = min(found, delta + false_positive_rate * math.exp(min(epsilon, 700.0)))
        found = min(found, 1 - math.exp(-epsilon) * max(0.0, 1 - delta - false_positive_rate))
    return max(found, false_positive_rate)


def certificate_attack_success(certificate: Certificate) -> float | None:
    """Return the largest success probability of a guess with even odds: stated, else (1 + η)/2, else from (ε, δ).

    >>> certificate_attack_success(PartialCertificate(total_variation=0.3))
    0.65
    """
    stated = certificate.attack_success
    if stated is not None and 0 <= stated <= 1:
        return stated
    points = guarantee_points(certificate)
    # (ε, δ) bounds η by 1 − 2(1 − δ)/(1 + e^ε), equal to η itself at ε = 0
    bounds = [(1 + 1 - 2 * (1 - delta) / (1 + math.exp(min(epsilon, 700.0)))) / 2 for epsilon, delta in points]
    return min(bounds) if bounds else None


def attack_rates(certificate: Certificate) -> list[AttackRate]:
    """Return the true-positive rates at 0.1, 1, 5 and 10 % false positives; empty without any guarantee."""
    points = guarantee_points(certificate)
    # The points of the trade-off in the certificate.
    pairs = stated_number_pairs(certificate.tradeoff.false_positive_rate, certificate.tradeoff.true_positive_rate)
    stated = [(false, true) for false, true in pairs if 0 < false <= 1 and 0 <= true <= 1]
    rates: list[AttackRate] = []
    for rate in FALSE_POSITIVE_RATES:
        exact = [true for false, true in stated if abs(false - rate) <= _SAME_RATE]
        if exact or points:
            rates.append(AttackRate(rate, min([*exact, true_positive_rate(points, rate)])))
    return rates


def tradeoff_points(certificate: Certificate) -> list[Point]:
    """Return bounds on (false, true) positive rates from 0 to 1, finer near 0 and 1; empty without any guarantee."""
    points = guarantee_points(certificate)
    if not points:
        return []
    rates = [(1 - math.cos(math.pi * i / 240)) / 2 for i in range(241)]
    return [(rate, true_positive_rate(points, rate)) for rate in rates]


DRAWN_EPSILON = 700
"""Larger ε are not drawn: e^ε is too large for a float."""


def promised_point(certificate: Certificate) -> Point | None:
    """Return the (ε, δ) of the guarantee; None if it is not stated, or too large to draw."""
    epsilon, delta = certificate.epsilon, certificate.delta
    if epsilon is None or delta is None or not (0 <= epsilon <= DRAWN_EPSILON and 0 <= delta <= 1):
        return None
    return epsilon, delta


def profile_points(certificate: Certificate) -> list[Point]:
    """Return the stated (ε, δ) with δ > 0, by ε, and chords between them, for a logarithmic axis.

    δ(ε) is convex in e^ε, so the chord in e^ε lies above it: every point returned is a guarantee. The curve passes
    through the promised point, unless other points show that δ is smaller there.
    """
    known, points = drawn_corners(certificate), list[Point]()
    for (low, start), (high, end) in pairwise(known):
        # From the left end up to but without the right one, closer where log δ falls fastest.
        grown = math.expm1(high - low)
        points += [(low + math.log1p(t * grown), (1 - t) * start + t * end) for t in _ALONG_CHORD]
    return points + known[-1:]


def drawn_corners(certificate: Certificate) -> list[Point]:
    """Return the stated (ε, δ) with δ > 0, by ε, and the promised one if no other shows that δ is smaller there."""
    stated = stated_number_pairs(certificate.profile.epsilon, certificate.profile.delta)
    known = sorted((epsilon, delta) for epsilon, delta in stated if 0 <= epsilon <= DRAWN_EPSILON and 0 < delta <= 1)
    promised = promised_point(certificate)
    if known and promised is not None and promised[1] > 0 and promised[0] not in [epsilon for epsilon, _ in known]:
        before = [delta for epsilon, delta in known if epsilon < promised[0]]
        after = [delta for epsilon, delta in known if epsilon > promised[0]]
        if promised[1] <= min(before, default=1.0) and promised[1] >= max(after, default=0.0):
            return sorted([*known, promised])
    return known


@dataclass(frozen=True, slots=True)
class PrivacyPromise:
    """The words at the top of the page; ``attack`` and ``guesses`` are None if the attacker's gain is not stated."""

    person: PrivacyUnit
    attack: AttackWording | None
    guesses: Guesses | None
    protected_group: str
    epsilon: str
    epsilon_meaning: str
    delta: str
    delta_meaning: str
    delta_name: str
    protected: str
    facts: list[str]


def privacy_promise(certificate: Certificate) -> PrivacyPromise:
    """Return the privacy guarantee of a certificate in words; missing parts are empty."""
    success = certificate_attack_success(certificate)
    epsilon, delta, neighbors = certificate.epsilon, certificate.delta, certificate.neighbors
    # Who is protected; the limits apply to a person identified by a column.
    column = neighbors.privacy_unit or ""
    max_rows, max_rows_per_group, max_groups = (
        round(limit) if limit and column else None
        for limit in (neighbors.max_rows, neighbors.max_rows_per_group, neighbors.max_groups)
    )
    person = PrivacyUnit(column, max_rows, max_rows_per_group, max_groups, neighbors.noun or A_PERSON)
    attack: AttackWording | None = None
    guesses: Guesses | None = None
    if success is not None:
        attack, guesses = AttackWording.from_guess(person.guess_text, success), Guesses.from_success(success)
    epsilon_text = epsilon_meaning = delta_text = delta_meaning = ""
    if epsilon is not None:
        epsilon_text, times = significant_text(epsilon, 3, UP), times_text(epsilon)
        # e^ε in words, with δ included, since the sentence must also be true if read alone.
        added, data = added_probability_text(delta), person.data_owner_text
        epsilon_meaning = (
            f"Any result is at most {times} times as likely with {data} as without{added}, and vice versa."
        )
    if delta is not None:
        delta_text = significant_text(delta, 2, UP)
        delta_meaning = DELTA_MEANING if delta > 0 else ZERO_DELTA_MEANING
    # What a privacy unit is, and its declared limits; one answer can have smaller ones.
    limits = person.used_rows_text().removeprefix("using ")
    limits_text = f"declared limit{'s' if ', ' in limits else ''}: {limits}"
    facts = [f"privacy unit: {person.rows_words}", *([limits_text] if limits else [])]
    return PrivacyPromise(
        person=person,
        attack=attack,
        guesses=guesses,
        protected_group=protected_group_text(person.attacker_knowledge_text),
        epsilon=epsilon_text,
        epsilon_meaning=epsilon_meaning,
        delta=delta_text,
        delta_meaning=delta_meaning,
        delta_name=DELTA_NAME.capitalize(),
        protected=escape_control_chars(neighbors.statement).rstrip("."),
        facts=facts if neighbors != PartialNeighbors() else [],
    )
