"""Ten million reports: no test of an attacker gets above the certified curve, and a chance that is 2 % off does."""

from dataclasses import replace

import numpy as np
import pytest

from tests.local.mechanisms.channel_definitions import MAKERS
from tests.randomness.keyed import InsecureKeyed
from tightrope.local.mechanisms.bounded_mean import duchi, hybrid, piecewise
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.parts.kernels import BinaryDigits

REPORTS = 5_000_000
"""A person each of two values: half of them choose the test, half of them are tested."""
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
CHUNK = 1 << 20
CELLS = 1 << 9
MEANS = {
    "duchi": duchi(1.0),
    "silent duchi": duchi(1.0, total_variation=0.3),
    "piecewise": piecewise(1.0),
    "hybrid": hybrid(1.0),
}


def reports(m, value, size, source):
    """Reports of people with this value; for means the ends of the range, and neighboring reports as one."""
    if not isinstance(m, MeanOracle):
        return m.perturb(np.full(size, value, dtype=np.uint8), source).reshape(-1).astype(np.int64)
    found = m.perturb(np.full(size, (m.lower, m.upper)[min(value, 1)]), source).astype(np.int64)
    return found * min(CELLS, m.possible_report_count) // m.possible_report_count


def histogram(m, value, seed):
    """Occurrences of each report of people with one value; a domain of four makes rows of one word."""
    source, counts = InsecureKeyed(seed), np.zeros(1 << 12, dtype=np.int64)
    for start in range(0, REPORTS // 2, CHUNK):
        counts += np.bincount(reports(m, value, min(CHUNK, REPORTS // 2 - start), source), minlength=len(counts))
    return counts / (REPORTS // 2)


def advantages(m):
    """For each level, P(A) − e^ε Q(A) for the set A that was best on other reports, and its standard deviation."""
    learnt = [histogram(m, value, seed) for value, seed in ((0, 1), (3, 2))]
    tested = [histogram(m, value, seed) for value, seed in ((0, 3), (3, 4))]
    out = []
    for level in LEVELS:
        gamma = np.exp(level)
        chosen = learnt[0] > gamma * learnt[1]
        p, q = (float(t[chosen].sum()) for t in tested)
        out.append((p - gamma * q, np.sqrt((p * (1 - p) + gamma**2 * q * (1 - q)) / (REPORTS // 2)) + 1e-9))
    return out


def excess(m, loss):
    """By how many standard deviations the best test gets above the certified curve, for each level."""
    return [
        (found - loss.delta(level)) / deviation for level, (found, deviation) in zip(LEVELS, advantages(m), strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_no_distinguisher_gets_above_the_curve(name):
    m = MAKERS[name](1.0, 4)
    found = excess(m, m.loss)
    assert max(found) < 4.5
    assert min(found[:4]) > -4.5, "the curve is not what an attacker reaches"


@pytest.mark.slow
@pytest.mark.parametrize("name", MEANS)
def test_no_distinguisher_of_numbers_gets_above_the_curve(name):
    m = MEANS[name]
    found = excess(m, m.loss)
    assert max(found) < 4.5
    assert min(found[:4]) > -4.5 or "duchi" not in name, "the curve is not what an attacker reaches"


PLANTED = {
    "response": lambda m: replace(m, weight=int(m.weight * 0.98)),
    "erasure": lambda m: replace(m, weight=int(m.weight * 0.98)),
    "optimized unary": lambda m: replace(m, own_weight=int(m.own_weight * 1.02)),
    "symmetric unary": lambda m: replace(
        m, digits=BinaryDigits(round(float(m.false_support_probability) * 0.98 * 2**14) | 1, 14)
    ),
    "hashing": lambda m: replace(m, response=replace(m.response, weight=int(m.response.weight * 0.98))),
    "hadamard": lambda m: replace(m, favor=int(m.favor * 1.02)),
    "subsets": lambda m: replace(m, own_weight=int(m.own_weight * 1.02)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_two_per_cent_are_caught(name):
    m = MAKERS[name](1.0, 4)
    assert max(excess(PLANTED[name](m), m.loss)) > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["duchi", "silent duchi"])
def test_two_per_cent_of_a_number_are_caught(name):
    m = MEANS[name]
    planted = replace(m, response=replace(m.response, weight=int(m.response.weight * 0.98)))
    assert max(excess(planted, m.loss)) > 6
