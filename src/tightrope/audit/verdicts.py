"""Refuted, or not refuted and what would have been: an audit's answer to a claim."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from tightrope.audit.claims import Points
from tightrope.audit.power import LAWS, least_seen
from tightrope.audit.rates import Rates
from tightrope.certificates.budget import product
from tightrope.report.words.digits import DOWN, UP, significant


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a claim δ(``epsilon``) ≤ ``delta``, at ``confidence``.

    ``proven_delta`` and ``proven_epsilon`` are the lower bounds found there: on δ at that ε, on ε at that δ. Of several
    points it is the one that is exceeded most. ``could_have_seen``: where nothing is refuted, by the name of a law the
    least ε at the δ of the claim's first point (total variation, where its ε is 0) that this test refutes at least
    half of the time, with as many runs and scores that are likelihood ratios; ∞ where no ε is.
    """

    refuted: bool
    confidence: float
    epsilon: float
    delta: float
    proven_epsilon: float
    proven_delta: float
    could_have_seen: dict[str, float]
    seen_of: str

    def __str__(self) -> str:
        if self.refuted:
            proven = significant(self.proven_delta, 3, DOWN)
            told = f"delta({self.epsilon:.6g}) <= {self.delta:.6g} was claimed, delta >= {proven}"
            return f"refuted at {in_percent(self.confidence)}: {told}"
        least = {law: size for law, size in self.could_have_seen.items() if math.isfinite(size)}
        seen = ", ".join(f"{significant(size, 3, UP)} ({law})" for law, size in least.items())
        told = f"could have seen {self.seen_of} >= {seen}" if seen else "could have seen nothing: more runs"
        return f"not refuted at {in_percent(self.confidence)}; {told}"


def judged(rates: Rates, points: Points, runs: tuple[int, int], confidence: float, failure: float) -> Verdict:
    """The verdict on points (ε, δ), from bounds that hold together."""
    epsilon, delta = max(points, key=lambda point: rates.delta(point[0]) - point[1])
    proven = rates.delta(epsilon)
    refuted = proven > delta
    seen = {} if refuted else {law.name: least_seen(law, points, runs, failure) for law in LAWS}
    return Verdict(refuted, confidence, epsilon, delta, rates.epsilon(delta), proven, seen, seen_of(points))


def seen_of(points: Points) -> str:
    """What the numbers of ``could_have_seen`` are."""
    epsilon, delta = points[0]
    return f"epsilon at delta = {delta:g}" if epsilon > 0 else "total variation"


def in_percent(confidence: float) -> str:
    """All of its digits: it must not be rounded to certainty.

    >>> in_percent(0.99), in_percent(0.999999999999)
    ('99 %', '99.9999999999 %')
    """
    digits = f"{product(Decimal(100), Decimal(repr(confidence))):f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} %"
