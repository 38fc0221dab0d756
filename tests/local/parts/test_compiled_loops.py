"""Compiled loops and numpy give the same reports and counts for the same words."""

import sys

import numpy as np
import pytest

from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.local.mechanisms.response import Response
from tightrope.local.parts.kernels import PEOPLE_AT_ONCE, count_occurrences, randomize_responses
from tightrope.local.parts.losses import WORD
from tightrope.randomness import loops

PEOPLE = 2 * PEOPLE_AT_ONCE + 4099
MECHANISMS = {
    "two": lambda: local.k_randomized_response(1.0, 2),
    "few": lambda: local.k_randomized_response(0.3, 7),
    "many": lambda: local.k_randomized_response(1.0, 1024),
    "very many": lambda: local.k_randomized_response(3.0, 1 << 31),
    "nearly the truth": lambda: local.k_randomized_response(9.0, 5),
    "silence": lambda: local.response_with_erasure(1.0, 0.1, 300),
    "hashing": lambda: local.hashing(1.0, 1000),
}


@pytest.fixture
def eager(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(loops, "LARGE", 0)
    loops._compile_loop.cache_clear()


def people(m):
    return np.arange(PEOPLE, dtype=np.int64) * 2_654_435_761 % m.k


@pytest.mark.parametrize("name", MECHANISMS)
def test_bit_for_bit(name, eager, monkeypatch):
    m = MECHANISMS[name]()
    fast = m.perturb(people(m), InsecureKeyed(5))
    counted = count_occurrences(fast, 1 << 14) if name not in ("very many", "hashing") else None
    assert loops._compile_loop.cache_info().currsize, "nothing was compiled"
    monkeypatch.setattr(loops, "LARGE", 1 << 60)
    assert np.array_equal(fast, m.perturb(people(m), InsecureKeyed(5)))
    assert not np.array_equal(fast, m.perturb(people(m), InsecureKeyed(6)))
    if counted is not None:
        assert np.array_equal(counted, count_occurrences(fast, 1 << 14))
        assert np.array_equal(counted, np.bincount(fast, minlength=1 << 14))


@pytest.mark.parametrize("name", MECHANISMS)
def test_everything_works_without_numba(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)  # as if it were not installed
    monkeypatch.setattr(loops, "LARGE", 0)
    loops._compile_loop.cache_clear()
    m = MECHANISMS[name]()
    reports = m.perturb(people(m))
    loops._compile_loop.cache_clear()
    assert len(np.unique(reports)) > 1
    assert int(reports.max()) < m.possible_report_count


@pytest.mark.parametrize("k", [2, 3, 1000, 1 << 31])
@pytest.mark.parametrize("weight", [1, 2, 3, 2**20 + 7, None])
def test_words_at_every_edge(k, weight):
    """The loop, as plain Python, and its numpy twin, beside whole numbers without limits."""
    weight = (WORD - 1) // k if weight is None else weight
    m = Response(1.0, k, weight, silence=min(12345, WORD - k * weight))
    edge = (k - 1) * weight
    corners = {0, edge, edge + m.silence, WORD - 1, *(j * weight for j in (1, 2, k // 2, k - 2))}
    words = sorted({min(max(c + d, 0), WORD - 1) for c in corners for d in (-1, 0, 1)})
    value = k - 2
    expected = []
    for u in words:
        quiet = k if u < edge + m.silence else value
        expected.append((value + 1 + u // weight) % k if u < edge else quiet)
    packed, values = np.array(words, dtype=np.uint64), np.full(len(words), value)
    twin, plain = np.empty(len(words), dtype=np.uint64), np.empty(len(words), dtype=np.uint64)
    m._respond_with_numpy(packed, values, twin)
    whole = [np.uint64(n) for n in (weight, k, edge, edge + m.silence)]
    with np.errstate(over="ignore"):
        randomize_responses(packed, values, (whole[0], 1 / weight, *whole[1:]), plain)
    assert twin.tolist() == plain.tolist() == expected
