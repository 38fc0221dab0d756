"""Limits as AAC and Xu–Raginsky print them, to compare with ``LeCam`` and, for the cost |Θ̂ − Θ|, with ``Bayes``."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize

from tightrope.channels.suprema import printed_contraction
from tightrope.documents.budget import Guarantee
from tightrope.local.limits.bayes import BayesProblem
from tightrope.local.limits.limit import Cost, Hypotheses, cost_of
from tightrope.numerics.arrays import Floats

RADII = 2000


def by_two_points(
    pair: Hypotheses, people: int, guarantee: Guarantee, *, separation: float, cost: str | Cost = "squared"
) -> float:
    """AAC Lemma 3 as printed: ½ ℓ(τ) (1 − √(nφ KL/2)), φ = 1 − (1−δ)e^{−ε}, 2τ the separation; 0 where it is negative.

    >>> pair = Hypotheses.of([0.6, 0.4], [0.4, 0.6])
    >>> round(by_two_points(pair, 10, Guarantee(1.0), separation=0.2), 6)
    0.002469
    """
    known = printed_contraction(guarantee) * min(pair.kl, pair.reverse_kl)
    spared = 1 - math.sqrt(people * known / 2) if known < math.inf else 0.0
    return max(0.0, cost_of(cost)(separation / 2) * spared / 2)


def by_information(problem: BayesProblem, people: int, contraction: float = 1.0) -> float:
    """The best of ζ (1 − (c I(Θ; Xⁿ) + log 2)/log(1/L(ζ))): c = 1 is Xu–Raginsky (15), c = φ_n AAC Corollary 3.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(by_information(BetaBernoulli(), 1), 6)  # AAC print 0.0456
    0.045659
    """
    known = contraction * problem.mutual_information(people) + math.log(2)

    def value(radius: Floats) -> Floats:
        ball = problem.ball(radius)
        room = np.where(ball < 1, -np.log(np.minimum(ball, 1 - 1e-16)), 1e-300)
        return np.asarray(radius * (1 - known / room))

    return _best(value, problem.spread)


def by_contraction(problem: BayesProblem, people: int, guarantee: Guarantee) -> float:
    """AAC Theorem 2 as printed: ζ (1 − c I_γ(Θ; Xⁿ) − γ L(ζ)) at γ = e^ε alone, c = δ for one person, φ_n for more.

    >>> from tightrope.local.limits.bayes import BetaBernoulli
    >>> round(by_contraction(BetaBernoulli(), 1, Guarantee(math.log(2), 0.1)), 9)  # I_2 = 0
    0.0625
    """
    gamma = math.exp(guarantee.epsilon)
    share = guarantee.delta if people == 1 else printed_contraction(guarantee, people)
    spared = 1 - share * float(problem.shared(np.array([gamma]), people)[0])
    return _best(lambda radius: np.asarray(radius * (spared - gamma * problem.ball(radius))), problem.spread)


def _best(value: Callable[[Floats], Floats], spread: float) -> float:
    """The largest value over radii, polished; 0 where none is positive."""
    grid = np.linspace(0.0, spread, RADII + 1)[1:]
    found = value(grid)
    at = int(np.argmax(found))
    ends = (float(grid[max(0, at - 1)]), float(grid[min(RADII - 1, at + 1)]))
    polished = optimize.minimize_scalar(lambda z: -float(value(np.array([z]))[0]), bounds=ends, method="bounded")
    return max(0.0, float(found[at]), -float(polished.fun))
