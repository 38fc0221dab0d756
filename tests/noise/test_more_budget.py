"""More budget never costs more: over ε, δ, sensitivities, costs, shapes, releases and plans; and what is made keeps it.

``TIGHTROPE_BUDGETS=200`` takes so many chains of each kind, all there are at most, with every ε; by default a few.
Every law is checked in fractions against e^ε to 80 digits.
"""

from __future__ import annotations

import math
import os
import random
from fractions import Fraction
from itertools import pairwise, product

import pyarrow as pa
import pytest

import tightrope as tr
from tests.mechanisms.exact_noise import exponential, probability
from tightrope.documents import Budget
from tightrope.documents.document import to_json_text
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.noise.allocation import allocate_noise
from tightrope.noise.least_noise import least_noise
from tightrope.noise.program import certificate, search
from tightrope.noise.program.closed_form import SteepNoise
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SplitBounds
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, worst_verdict

CHAINS = int(os.environ.get("TIGHTROPE_BUDGETS", "0"))
"""Chains of each kind; 0: few."""
SEED = 28
EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 3.0, 6.0, 9.0, 12.0, 14.0, 15.0, 16.0, 18.0, 20.0, 22.0, 25.0, 30.0, 33.0, 36.0, 40.0)
EPSILONS += (60.0, 700.0)
DELTAS = (0.0, 1e-12, 1e-8, 1e-6, 1e-3, 0.1)
CLOSE = 1e-6
"""Relative: what a certificate may leave open, and so what a cost may rise by."""
LONGEST = 3000
"""Cells a side that are gone through in fractions."""
FOUND = 1e-3
"""The same of sizes that are searched for a plan or for several releases."""


def bounded(x):
    return min(x, 40.0) ** 1.5


def excess(table, epsilon, sensitivity):
    """The largest hockey-stick divergence over all shifts, in fractions; of an endless law as far as it is listed."""
    block = 0 if table.tail is None else len(table.tail.block)
    reach = len(table.half) + (4 * sensitivity // block + 2) * block if block else len(table.half)
    p = [probability(table, x) for x in range(reach + sensitivity + 1)]
    gamma = exponential(epsilon)
    shifts = [sensitivity] if all(a >= b for a, b in pairwise(p)) else range(1, sensitivity + 1)
    return max(
        sum(max(Fraction(0), p[abs(x)] - gamma * p[abs(x + d)]) for x in range(-reach, reach + 1)) for d in shifts
    )


def rises(costs, tolerance):
    """Pairs of budgets, the second larger, where the second costs more; and refusals after an answer."""
    seen = [cost for cost in costs if cost is not None]
    refused_later = None in costs[next((i for i, c in enumerate(costs) if c is not None), len(costs)) :]
    return [(a, b) for a, b in pairwise(seen) if b > a * (1 + tolerance)] + (["refused"] if refused_later else [])


def chains(combinations, few):
    """Some of the combinations, each to be gone through with more and more budget."""
    possible = list(combinations)
    return random.Random(SEED).sample(possible, min(CHAINS or few, len(possible)))


def cost_of(make):
    try:
        return make()
    except (InsufficientBudgetError, InputError):
        return None


def single(epsilon, delta, sensitivity, cost, shape, gaps):
    def make():
        noise = least_noise(Budget(epsilon=epsilon, delta=delta), sensitivity=sensitivity, cost=cost, shape=shape)
        if len(noise.table.half) < LONGEST:
            assert excess(noise.table, epsilon, sensitivity) <= Fraction(delta)
        found = noise.certificate
        assert found.lower <= found.upper
        gaps.append((found.gap, epsilon))
        return found.upper

    return cost_of(make)


COMBINATIONS = list(product((1, 2, 3, 10), ("absolute", "squared", bounded), ("unimodal", "any"), DELTAS))


@pytest.mark.parametrize(("sensitivity", "cost", "shape", "delta"), chains(COMBINATIONS, 6))
def test_a_larger_epsilon_never_costs_more(sensitivity, cost, shape, delta):
    gaps = []
    epsilons = EPSILONS if CHAINS else tuple(e for e in EPSILONS if e >= 6)
    costs = [single(e, delta, sensitivity, cost, shape, gaps) for e in epsilons]
    assert not rises(costs, CLOSE)
    assert max(gap for gap, epsilon in gaps if 18 <= epsilon <= 40) <= CLOSE


@pytest.mark.parametrize(
    ("sensitivity", "cost", "shape", "epsilon"),
    chains(product((2, 3, 10), ("absolute", "squared"), ("unimodal", "any"), (1.0, 6.0, 13.0, 18.0, 25.0)), 4),
)
def test_a_larger_delta_never_costs_more(sensitivity, cost, shape, epsilon):
    costs = [single(epsilon, delta, sensitivity, cost, shape, []) for delta in DELTAS]
    assert not rises(costs, CLOSE)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "upper"),
    [(10, 18, 1e-8, 1.676e-6), (10, 20, 1e-8, 2.268e-7), (10, 22, 1e-8, 3.069e-8), (30, 20, 1e-8, 1.917e-6),
     (30, 25, 1e-8, 1.292e-8), (50, 15, 1e-8, 7.801e-4), (50, 18, 1e-8, 3.884e-5), (50, 20, 1e-8, 5.256e-6),
     (50, 25, 1e-8, 3.542e-8)],
)  # fmt: skip
def test_least_noise_of_a_large_epsilon(sensitivity, epsilon, delta, upper):
    noise = least_noise(Budget(epsilon=epsilon, delta=delta), sensitivity=sensitivity, cost="absolute")
    found = noise.certificate
    assert found.lower <= found.upper <= upper
    assert found.gap <= CLOSE
    assert excess(noise.table, epsilon, sensitivity) <= Fraction(delta)
    claims = check_document(to_json_text(found.to_document()))
    assert worst_verdict(claims) == CONFIRMED
    assert [claim.verdict for claim in claims if claim.name == "lower"][-1] == CONFIRMED


def test_the_chain_catches_a_solver_without_the_closed_form(monkeypatch):
    def absent(*_):
        return SteepNoise(None, math.inf, 0.0)

    monkeypatch.setattr(search, "steep_noise", absent)
    monkeypatch.setattr(certificate, "steep_noise", absent)
    costs = [single(epsilon, 1e-8, 10, "absolute", "unimodal", []) for epsilon in (15.0, 18.0, 20.0)]
    assert rises(costs, CLOSE)


@pytest.mark.parametrize(
    ("releases", "sensitivity", "delta"), chains(product((2, 3, 10, 100), (1, 3), (0.0, 1e-8, 1e-3)), 2)
)
def test_a_larger_epsilon_never_costs_more_for_several_releases(releases, sensitivity, delta):
    def make(epsilon):
        noise = least_noise(Budget(epsilon=epsilon, delta=delta), sensitivity=sensitivity, releases=releases)
        found = noise.certificate
        assert found.lower <= found.upper
        assert found.guarantee.delta <= delta
        return found.upper

    costs = [cost_of(lambda e=epsilon: make(e)) for epsilon in (EPSILONS[2:] if CHAINS else (3.0, 20.0, 40.0, 700.0))]
    assert not rises(costs, FOUND)


SPENDS = {
    "count": [NoiseSpec("count", 8, True)],
    "sum": [NoiseSpec("sum", 8, False)],
    "count and sum": [NoiseSpec("count", 8, True), NoiseSpec("sum", 8, False)],
    "discovered": [NoiseSpec("count", 8, True, needs_bound=True)],
}
BOUNDS = [(1, 1, 1), (2, 2, 1), (4, 4, 1), (100, 100, 1), (2, 2, 2), (5, 3, 5)]


@pytest.mark.parametrize(("name", "bounds", "delta"), chains(product(SPENDS, BOUNDS, DELTAS[1:]), 5))
def test_a_larger_epsilon_never_costs_more_in_a_plan(name, bounds, delta):
    unit = CompositionGroup(tuple(SPENDS[name]), SplitBounds(*bounds))

    def make(epsilon):
        found = allocate_noise([unit], Budget(epsilon=epsilon, delta=delta))
        assert found.loss.delta(epsilon) <= delta
        return found.total_error

    costs = [cost_of(lambda e=epsilon: make(e)) for epsilon in EPSILONS[3:]]
    assert costs[-1] is not None
    assert not rises(costs, FOUND)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows"), [(34, "1e-8", 2), (50, "1e-3", 2), (10_000, "1e-8", 2), (40, "1e-8", 100)]
)
def test_a_release_of_a_large_epsilon(epsilon, delta, rows):
    table = pa.table({"unit": [f"a{i // 2}" for i in range(200)]})
    session = tr.Session(table, privacy_unit="unit", max_rows=rows, budget=tr.Budget(epsilon=epsilon, delta=delta))
    answers = session.plan([tr.count()]).release()
    assert answers.certificate_data.epsilon <= epsilon
    assert float(session.spent["budget_fraction"]) <= 1
    assert worst_verdict(check_document(to_json_text(answers.certificate_data))) == CONFIRMED
