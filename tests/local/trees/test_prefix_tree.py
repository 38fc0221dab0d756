"""Heavy hitters of large domains."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tests.local.mechanisms.channel_definitions import hashed
from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.errors import InputError
from tightrope.local.mechanisms.local_hashing import Hashing

FAMOUS = {0xCAFE_BABE_F00D: 0.3, 0xCAFE_BABE_F00E: 0.15, 0x0000_0000_0001: 0.1}


def scattered(count, bits):
    """Values that nobody shares, all over the domain."""
    mixed = np.arange(count, dtype=np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return (mixed >> np.uint64(64 - bits)).astype(np.int64)


def people(count, bits=48):
    """Famous values, and others that nobody shares."""
    out = scattered(count, bits)
    start = 0
    for value, share in FAMOUS.items():
        out[start : start + int(share * count)] = value % (1 << bits)
        start += int(share * count)
    return out


@pytest.mark.parametrize("hashes", [None, 3, 4])
def test_famous_values_are_found_with_intervals(hashes):
    m = local.heavy_hitters(3.0, 48, hashes=hashes)
    found = m.find(m.perturb(people(60_000), InsecureKeyed(1)))
    assert found.values[:3].tolist() == list(FAMOUS)
    for value, low, high in zip(found.values.tolist(), found.shares.lower, found.shares.upper, strict=True):
        assert low <= FAMOUS.get(value, 0.0) + 1e-9
        assert high >= FAMOUS.get(value, 0.0)
    assert found.examined >= 2 * m.hash_base
    assert found.shares.simultaneous


def test_small_domains_are_one_level():
    m = local.heavy_hitters(2.0, 8)
    assert len(m.levels) == 1
    found = m.find(m.perturb(np.repeat([200, 3], [20_000, 10_000]), InsecureKeyed(2)))
    assert found.values[:2].tolist() == [200, 3]


def test_candidates_are_counted_as_hashing_every_one_would():
    m = local.heavy_hitters(1.0, 30, hashes=4)
    reports = m.perturb(people(3000, 30), InsecureKeyed(3))
    for level, oracle in enumerate(m.levels):
        heard = reports[reports[:, 0] == level, 1].astype(np.int64)[:200]
        prefixes = np.array([5, 77]) if level else np.zeros(1, dtype=np.int64)
        candidates, counts = m._candidate_supports(level, heard, prefixes)
        for place in (0, 1, len(candidates) // 2, len(candidates) - 1):
            value = int(candidates[place])
            by_hand = sum(hashed(oracle, int(r) // 4, value) == int(r) % 4 for r in heard)
            assert counts[place] == by_hand


@pytest.mark.parametrize(("bits", "studies"), [(12, 60), (24, 20)])
def test_what_nobody_has_is_rarely_found(bits, studies):
    """At most (1 − confidence) / 2 of the studies find a value that nobody has; frequent beginnings do not mislead."""
    m, top = local.heavy_hitters(1.0, bits), 1 << bits - 1
    spread = top + np.arange(3000) % (top // 8) * 2  # a few frequent prefixes, and even values alone
    found = [m.find(m.perturb(spread, InsecureKeyed(seed)), confidence=0.8) for seed in range(studies)]
    wrong = sum(bool(np.any(np.isin(f.values, spread, invert=True))) for f in found)
    assert wrong <= stats.binom.isf(1e-10, studies, 0.1)
    assert found[0].values.dtype == np.int64


def test_the_last_level_has_twice_the_people_of_another():
    m = local.heavy_hitters(1.0, 48)
    levels = m.perturb(np.zeros(60_000, dtype=np.int64), InsecureKeyed(9))[:, 0]
    rates = np.bincount(levels.astype(int)) / 60_000
    parts = np.array([1] * (len(m.levels) - 1) + [2]) / (len(m.levels) + 1)
    assert np.all(np.abs(rates - parts) < 7 * np.sqrt(parts * (1 - parts) / 60_000))


def test_most_limits_what_is_kept():
    m = local.heavy_hitters(3.0, 30)
    assert len(m.find(m.perturb(people(40_000, 30)), most=1).values) <= 1


def test_values_beyond_the_domain_are_never_found():
    m = local.heavy_hitters(1.0, 3, hashes=5)
    assert m.levels[-1].k > 8
    found = m.find(m.perturb(np.repeat(np.arange(8), 5000)), most=100)
    assert np.all(found.values < 8)


def test_the_loss_is_one_report():
    m = local.heavy_hitters(2.0, 48)
    assert all(isinstance(oracle, Hashing) for oracle in m.levels)
    assert len({oracle.report_change_probabilities for oracle in m.levels}) == 1
    assert m.guarantee.epsilon <= 2.0
    assert m.loss.delta(2.0) == 0
    assert m.levels[-1].possible_report_count <= 1 << 63


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("bits", [1, 12, 13, 47, 48])
def test_every_size_fits_into_words(epsilon, bits):
    m = local.heavy_hitters(epsilon, bits)
    assert m.levels[-1].k >= 1 << bits
    assert m.levels[-1].possible_report_count <= 1 << 63
    top = (1 << bits) - 1
    assert m.perturb([0, top]).shape == (2, 2)


def test_arguments():
    for bits in (0, 49, 2.0, None):
        with pytest.raises(InputError, match="bits"):
            local.heavy_hitters(1.0, bits)
    with pytest.raises(InputError, match="epsilon"):
        local.heavy_hitters(math.nan, 8)
    m = local.heavy_hitters(1.0, 8)
    with pytest.raises(InputError, match="outside"):
        m.perturb([256])
    with pytest.raises(InputError, match="most"):
        m.find(m.perturb([1, 2]), most=0)
    with pytest.raises(InputError, match="shape of reports"):
        m.find([1, 2])
    with pytest.raises(InputError, match="reports outside"):
        m.find([[0, 1 << 40]])
    with pytest.raises(InputError, match="reports of a level"):
        m.find(np.zeros((0, 2), dtype=np.uint64))


@pytest.mark.parametrize("bits", [1, 9, 13, 17, 20, 21, 48])
def test_what_is_counted_together_is_never_more_than_a_table(bits: int) -> None:
    """At whichever ε: 20 bits at ε = 4 were counted in eight gigabytes once."""
    for epsilon in np.geomspace(0.01, 60, 40):
        tree = local.heavy_hitters(float(epsilon), bits)
        ends = [0, *(level.linear.length for level in tree.levels)]
        assert max(tree.hash_base ** (end - begin + 1) for begin, end in itertools.pairwise(ends)) <= 1 << 25
