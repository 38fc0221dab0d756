"""Repeated collection: the same person gives the same report for the same value."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tightrope.errors import InputError
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.losses import checked_epsilon
from tightrope.numerics.checks import check_inner_probability, check_integer, check_non_negative
from tightrope.numerics.root_finding import find_crossing
from tightrope.randomness.bits import Source

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Memoized:
    """One person's side of a collection that asks again and again; ``memory`` maps values to reports.

    Fresh reports of one value could be averaged: k of them spend k times the loss. A report that is made once and
    repeated is a copy, which says nothing new: any number of repetitions spends what one report does, and c different
    values spend c times that. **This hides what the values are, not when they change**: another report proves another
    value. So ``loss`` compares two histories that repeat themselves at the same times; against a history with other
    repetitions – a value that never changed against one that did – nothing is promised, at any ε. Where changes are
    sensitive, report afresh and pay for every report. The memory is as secret as the values are; without it (a new
    device) values are reported afresh, and that counts as a new value.
    """

    mechanism: FrequencyOracle | MeanOracle
    memory: dict[int | float, NDArray[Any]] = field(default_factory=dict, repr=False)

    def report(self, value: float, randomness: Source | None = None) -> NDArray[Any]:
        """The report for ``value``, of shape [1] or [1, words]; made on the first call with this value.

        Raises ``InputError`` unless it is one number that the mechanism takes; the message does not show it.

        >>> from tightrope.local.mechanisms.response import k_randomized_response
        >>> person = Memoized(k_randomized_response(1.0, 1000))
        >>> len({int(person.report(7)[0]) for _ in range(100)})
        1
        """
        if not isinstance(value, numbers.Real):
            raise InputError("type of value", type(value).__name__, "one number", "one person reports one value a call")
        if value not in self.memory:
            self.memory[value] = self.mechanism.perturb([value], randomness)
        return self.memory[value].copy()

    def loss(self, distinct: int) -> PrivacyLoss:
        """The privacy loss of any number of reports: two histories of at most this many ``distinct`` values each, equal
        values at the same times in both. Histories that differ in *when* the value changes are not covered.
        """
        return check_integer("distinct", distinct) * self.mechanism.loss

    @property
    def loss_so_far(self) -> PrivacyLoss:
        """The loss of what this person has reported so far, by the number of values in memory; as ``loss`` says.

        Of private state: it is for the person's own eyes.
        """
        return len(self.memory) * self.mechanism.loss


# What a trusted shuffler adds: reports without names hide each other.
#
# Feldman, McMillan, Talwar 2021 ("Hiding among the clones"), for any ε₀-local mechanism of n people whose reports are
# shuffled. Their Theorem 3.2: the two neighboring outcomes – one person's value changed – are post-processings of
#
#     (A + Δ, C − A + 1 − Δ)  and  (A + 1 − Δ, C − A + Δ),   C ~ Bin(n − 1, e^{−ε₀}), A ~ Bin(C, ½), Δ ~ Bernoulli(p)
#
# with p = e^{ε₀} / (e^{ε₀} + 1). δ(ε) of this pair is computed here from binomial tails, with an allowance for their
# rounding. It holds only where the collector sees the shuffled reports and nothing else: a local guarantee does not
# need that trust.

CLONE_DEVIATIONS = 9.0
"""Standard deviations of numbers of clones that are looked at one by one."""
GROUPS_OF_CLONES = 400
"""Groups of numbers of clones: each is counted as its smallest, which hides least."""
TAIL_ROUNDING = 1e-11
"""Relative error of binomial tails, at most."""
SHUFFLING_MARGIN = 1e-9
"""Relative allowance for the rest of the rounding, and relative width at which a search ends."""
OVERFLOWING_EPSILON = 700.0


def shuffled_delta(epsilon: float, *, local_epsilon: float, people: int) -> float:
    """An upper bound on δ(ε) of the shuffled reports of this many people, each ``local_epsilon``-LDP.

    Neighbors: one person's value is replaced. ε ≥ 0. Raises ``InputError`` for other numbers, or fewer than 2 people.

    >>> shuffled_delta(0.1, local_epsilon=1.0, people=10_000) < 1e-6
    True
    """
    level, local = check_non_negative("epsilon", epsilon), checked_epsilon(local_epsilon)
    others = check_integer("people", people, at_least=2, remedy="nobody hides among no others") - 1
    if level >= local:
        return 0.0
    if level > OVERFLOWING_EPSILON:  # e^ε overflows; the bound stays valid: shuffling this many has no effect
        return -math.expm1(level - local)
    # The smallest number of each group, its probability, and the probability of all numbers below the first group.
    # Fewer clones hide less: the pair for c + 1 is that for c with one more fair coin, a post-processing.
    chance = math.exp(-local)
    mean, spread = others * chance, math.sqrt(others * chance * (1 - chance))
    first = max(0, math.floor(mean - CLONE_DEVIATIONS * spread) - 1)
    last = min(others, math.ceil(mean + CLONE_DEVIATIONS * spread) + 1)
    clones_fewest = np.unique(np.linspace(first, last, GROUPS_OF_CLONES).astype(np.int64))
    low, high = clones_fewest - 1, np.append(clones_fewest[1:] - 1, others)
    up = stats.binom.cdf(high, others, chance) - stats.binom.cdf(low, others, chance)
    down = stats.binom.sf(low, others, chance) - stats.binom.sf(high, others, chance)
    masses = np.where(clones_fewest < mean, up, down)  # differences of small numbers: of the nearer tail
    fewest, chances, missed = (
        clones_fewest.astype(np.float64),
        masses,
        float(stats.binom.cdf(first - 1, others, chance)),
    )
    # δ of the pair for each number of clones, rounding included.
    # Of a' in the first place, P is p a' + (1−p)(m−a') and Q is (1−p) a' + p (m−a'), times the same, with m = C + 1.
    # So P > e^ε Q from some k on, and δ = S(k−1) u − S(k) v for S(j) = P(Bin(C, ½) ≥ j), u = p − e^ε (1−p) and v =
    # e^ε p − (1−p).
    share, grown = 1 / (1 + math.exp(-local)), math.exp(level)
    u, v = share - grown * (1 - share), grown * share - (1 - share)
    pair_deltas_first = np.floor((fewest + 1) * (v / (u + v))) + 1
    above, at = (stats.binom.sf(pair_deltas_first - shift, fewest, 0.5) for shift in (2, 1))
    gains = np.asarray(np.maximum(above * u - at * v, 0.0) + TAIL_ROUNDING * (above + at) * grown)
    return min(1.0, float(np.dot(chances, gains)) * (1 + SHUFFLING_MARGIN) + missed)


def shuffled_epsilon(delta: float, *, local_epsilon: float, people: int) -> float:
    """The least ε, to 10⁻⁹ of itself from above, for which ``shuffled_delta`` is at most δ; never above the local one.

    >>> round(shuffled_epsilon(1e-6, local_epsilon=1.0, people=10_000), 3)
    0.053
    """
    wanted, high = check_inner_probability("delta", delta), checked_epsilon(local_epsilon)
    if shuffled_delta(0.0, local_epsilon=local_epsilon, people=people) <= wanted:
        return 0.0

    def delta_excess(epsilon: float) -> float:
        delta = shuffled_delta(epsilon, local_epsilon=local_epsilon, people=people)
        return math.log(delta / wanted) if delta > 0 else -math.inf

    return find_crossing(delta_excess, 0.0, high, side="passes", relative=SHUFFLING_MARGIN / 2)


def shuffled_closed_form(delta: float, *, local_epsilon: float, people: int) -> float:
    """Their Theorem 3.1: log(1 + tanh(ε₀/2) (8 √(e^{ε₀} log(4/δ) / n) + 8 e^{ε₀} / n)); looser than the above.

    Raises ``InputError`` unless ε₀ ≤ log(n / (16 log(2/δ))), where it holds.

    >>> shuffled_closed_form(1e-6, local_epsilon=1.0, people=10_000) < 0.4
    True
    """
    wanted, local = check_inner_probability("delta", delta), checked_epsilon(local_epsilon)
    count = check_integer("people", people, at_least=2)
    most = math.log(count) - math.log(16 * math.log(2 / wanted))
    if not local <= most:
        raise InputError("local_epsilon", local_epsilon, f"at most {most:.6g} for so many people", "ask more people")
    each = max(math.exp(local - math.log(count)), 1e-300)  # where it underflows, ε is not 0
    spread = 8 * math.sqrt(each * math.log(4 / wanted)) + 8 * each
    return math.log1p(math.tanh(local / 2) * spread) * (1 + 1e-12)
