"""The limit on the squared error of all shares that meets the mechanisms: van Trees with a Dirichlet prior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tightrope.certificates.guarantee import Guarantee
from tightrope.local.limits.fisher.alone import alone
from tightrope.local.limits.fisher.columns import Columns
from tightrope.local.limits.fisher.dirichlet import concentration, prior_information
from tightrope.local.limits.fisher.in_turn import in_turn
from tightrope.local.limits.fisher.near_uniform import risk_near_uniform
from tightrope.local.limits.limit import LOWERED, Limit, falls_to, fewest_people, people_beyond
from tightrope.local.limits.spikes import Spikes
from tightrope.local.limits.van_trees import ProportionLimit
from tightrope.numerics.checks import positive, whole

TRIED = 10
"""Numbers of categories m ≤ k that are tried first; then as many around the best."""
CLOSE_NEIGHBOURS = 1.1
"""Neighbours within this ratio are not parted further: the bound hardly changes between them."""
NARROWER = (1.0, 1.4, 2.0)
FEWER = (1.0, 0.7)
"""For people who see earlier reports, whose prior is best narrower and on fewer categories: times a and m."""

Score = Callable[[int, float, float], float]
"""Of m, the trace and the prior's information."""


@dataclass(frozen=True, slots=True)
class FrequenciesLimit(Limit):
    """E Σ_j (p̂_j − p_j)² over k frequencies, worst case over p: the best over m ≤ k and a of a bound for m of them.

    ``(m−1)²/(n T_m(a) + J_m(a))``, Dirichlet(a, …, a) on m categories: J its information, T the largest trace of
    information of one report, averaged over it (``docs/proofs/shares.md``). Non-interactive mechanisms: each person
    may run another one, but does not see the others' reports. With ``interactive`` sequentially interactive ones: each
    may see all reports before the own. For δ > 0 weaker bounds around the uniform law. Where people are few for so many
    categories ``Spikes`` say more; the better bound is taken.
    """

    guarantee: Guarantee
    k: int
    interactive: bool = False

    def __post_init__(self) -> None:
        whole("k", self.k, at_least=2, remedy="k is the number of values")

    @property
    def guess(self) -> float:
        """Of 1/k for every share; worst where one share is 1."""
        return 1 - 1 / self.k

    def risk(self, people: int) -> float:
        count = whole("people", people)
        return max(self._spread(count), falls_to(self._spikes().risk(count)))

    def _spread(self, people: int) -> float:
        """By van Trees: shares that are all alike."""
        if self.guarantee.delta > 0:
            return falls_to(self._near_uniform(people))
        return falls_to(self._best(lambda m, trace, known: (m - 1) ** 2 / (people * trace + known)))

    def _spikes(self) -> Spikes:
        return Spikes(self.guarantee, self.k, self.interactive)

    def people(self, risk: float) -> int:
        target = positive("risk", risk)
        if target >= self.guess:
            return 0
        least = fewest_people(self._spikes().risk, target / LOWERED)
        if self.guarantee.delta > 0:
            return fewest_people(self.risk, target, from_=least)
        excluded = self._best(lambda m, trace, known: _excluded((m - 1) ** 2 / target - known, trace))
        return max(least, people_beyond(excluded, target))

    def _best(self, score: Score) -> float:
        m, a = best_prior(self.guarantee, self.k, score)
        if not self.interactive:
            return _scored(self.guarantee, score, m, a)
        narrower = max((a * factor for factor in NARROWER), key=lambda one: self._in_turn(score, m, one))
        sizes = {max(2, round(m * factor)) for factor in FEWER}
        return max(self._in_turn(score, size, narrower) for size in sizes)

    def _in_turn(self, score: Score, m: int, a: float) -> float:
        return score(m, in_turn(Columns.of(self.guarantee, m), a), prior_information(m, a))

    def _near_uniform(self, people: int) -> float:
        """Two categories are a proportion θ: their error is twice that of θ."""
        sizes = {self.k, *np.unique(np.geomspace(2, self.k, 60).astype(int)).tolist()}
        near = partial(risk_near_uniform, self.guarantee, people=people, interactive=self.interactive)
        return max(2 * ProportionLimit(self.guarantee).risk(people), *(near(m) for m in sizes))


def best_prior(guarantee: Guarantee, k: int, score: Score) -> tuple[int, float]:
    """The number of categories and the a with the largest score for people on their own, as far as was tried."""
    tried: dict[int, tuple[float, float]] = {}
    for sizes in _sizes(k, tried):
        for m in sizes:
            a = concentration(partial(_scored, guarantee, score, m))
            tried[m] = (_scored(guarantee, score, m, a), a)
    best = max(tried, key=lambda m: tried[m])
    return best, tried[best][1]


def _sizes(k: int, tried: dict[int, tuple[float, float]]) -> Iterator[list[int]]:
    """Over 2 … k; then between the neighbours of the best, until they are next to it or close."""
    low, high = 2, k
    while True:
        fresh = [m for m in np.unique(np.geomspace(low, high, TRIED).round().astype(int)).tolist() if m not in tried]
        if not fresh:
            return
        yield fresh
        known = sorted(tried)
        at = known.index(max(tried, key=lambda m: tried[m]))
        low, high = known[max(0, at - 1)], known[min(len(known) - 1, at + 1)]
        if high <= low * CLOSE_NEIGHBOURS:
            return


def _scored(guarantee: Guarantee, score: Score, m: int, a: float) -> float:
    return score(m, alone(Columns.of(guarantee, m), a).most, prior_information(m, a))


def _excluded(left: float, trace: float) -> float:
    """left/trace; a report that says nothing leaves all numbers excluded, or none."""
    if trace > 0:
        return left / trace
    return np.inf if left > 0 else 0.0
