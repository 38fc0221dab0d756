"""Limits below the exact minimax risk of tiny problems, solved as linear programmes."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.optimize import linprog

from tightrope.channels import Channel
from tightrope.channels.extremal import dominating_channel
from tightrope.documents import Guarantee
from tightrope.local import limits

THETAS = np.linspace(0, 1, 21)
ANSWERS = np.linspace(0, 1, 41)


def laws_of_counts(rows: np.ndarray, people: int) -> np.ndarray:
    """For each θ the law of the multiset of n reports: shape [θ, multisets]."""
    one = (1 - THETAS[:, None]) * rows[0] + THETAS[:, None] * rows[1]
    kinds = list(combinations_with_replacement(range(rows.shape[1]), people))
    ways = [math.factorial(people) / math.prod(math.factorial(kind.count(z)) for z in set(kind)) for kind in kinds]
    return np.stack([w * np.prod(one[:, kind], axis=1) for w, kind in zip(ways, kinds, strict=True)], axis=1)


def minimax(rows: np.ndarray, people: int) -> float:
    """min over randomized estimates of max over θ of E (θ̂ − θ)², both on a grid."""
    laws = laws_of_counts(rows, people)
    kinds, answers = laws.shape[1], len(ANSWERS)
    errors = (ANSWERS - THETAS[:, None]) ** 2
    risks = (laws[:, :, None] * errors[:, None, :]).reshape(len(THETAS), -1)
    limit = np.column_stack([risks, np.full(len(THETAS), -1.0)])
    chosen = np.column_stack([np.kron(np.eye(kinds), np.ones(answers)), np.zeros(kinds)])
    target = np.zeros(kinds * answers + 1)
    target[-1] = 1
    found = linprog(target, A_ub=limit, b_ub=np.zeros(len(THETAS)), A_eq=chosen, b_eq=np.ones(kinds))
    return float(found.fun)


CLASSES = [
    Guarantee(0.5),
    Guarantee(1.0),
    Guarantee(3.0),
    Guarantee(1.0, 0.0, 0.2),
    Guarantee(1.0, 0.05, 0.3),
    Guarantee(math.inf, 0.0, 1.0),
]


def test_the_programme_knows_the_open_coin() -> None:
    """One open coin: the minimax estimate is (x + ½)/2, its risk 1/16 everywhere."""
    assert minimax(np.eye(2), 1) == pytest.approx(1 / 16, abs=1e-9)


@pytest.mark.parametrize("privacy", CLASSES)
@pytest.mark.parametrize("people", [1, 2, 4])
def test_no_limit_exceeds_the_minimax_risk(privacy: Guarantee, people: int) -> None:
    """A mean in [0, 1] asked through the channel that dominates the class: what it reaches, the limits allow."""
    best = dominating_channel(privacy) if privacy.epsilon < math.inf else Channel(np.eye(2))
    exact = minimax(best.matrix[:, best.matrix.any(axis=0)], people)
    assert 0 < limits.mean(privacy).risk(people) <= exact
    assert 0 < limits.frequencies(privacy, k=2).risk(people) / 2 <= exact
    assert 0 < limits.moment_mean(privacy, moment=math.inf).risk(people) / 4 <= exact
    assert 0 < limits.ball_mean(privacy, dimension=1).risk(people) / 4 <= exact


@pytest.mark.parametrize("privacy", CLASSES[:3])
def test_a_trivial_channel_leaves_the_whole_risk(privacy: Guarantee) -> None:
    """Nothing is reported: the best answer is ½, and the limits know that no answer errs by more than ¼."""
    silent = Guarantee(0.0)
    assert limits.mean(silent).risk(10**6) <= 0.25
    assert limits.mean(privacy).risk(1) <= limits.mean(silent).risk(1)
    assert limits.moment_mean(silent, moment=2).risk(10**6) <= 1
    assert limits.ball_mean(silent, dimension=3).risk(10**6) <= 1
