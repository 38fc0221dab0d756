"""Texts as numbers, and names that are found among 200 000 people."""

import numpy as np
import pytest

from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.errors import InputError

SHARES = {"Smith": 0.04, "Johnson": 0.03, "Williams": 0.025, "Brown": 0.02, "Jones": 0.02, "Garcia": 0.018}
RARE = "Miller"
BEGINNINGS = ["smi", "joh", "wil", "bro", "jon", "gar", "mil", "mar", "and", "tho", "tay", "moo", "lee", "per", "har"]
"""Shares of 200 000 people, and 1.3 % for the last; the others have 20 000 names, one in ten with a usual beginning."""
PEOPLE = 200_000
SEED = 1


def named(spelling, rng):
    """A number for each person."""
    rare = rng.integers(0, 27**4, size=20_000)
    usual = spelling.encode_texts(BEGINNINGS)
    rare[::10] = usual[rng.integers(0, len(usual), 2000)] + rng.integers(0, 27, 2000)
    out, start = rare[rng.integers(0, len(rare), PEOPLE)], 0
    for name, share in [*SHARES.items(), (RARE, 0.013)]:
        out[start : start + int(share * PEOPLE)] = spelling.encode_texts([name])
        start += int(share * PEOPLE)
    return out


def test_names_that_one_in_77_has_are_found():
    spelling = local.spelling(4)
    people = named(spelling, np.random.default_rng(5))
    m = local.heavy_hitters(2.0, spelling.code_bits)
    found = m.find(m.perturb(people, InsecureKeyed(SEED)))
    names = {name[:4].lower(): share for name, share in [*SHARES.items(), (RARE, 0.013)]}
    assert sorted(spelling.decode_texts(found.values)) == sorted(names)
    for text, low, high in zip(
        spelling.decode_texts(found.values), found.shares.lower, found.shares.upper, strict=True
    ):
        assert 0 < low <= names[text] <= high


def test_there_and_back():
    s = local.spelling(4, alphabet="abñ")
    assert s.code_bits == 8
    assert s.decode_texts(s.encode_texts(["ABÑa", "b", "", "aXb", "abababab", "a\ud800"])) == [
        "abña",
        "b",
        "",
        "a b",
        "abab",
        "a",
    ]
    assert s.encode_texts([]).shape == (0,)
    assert int(s.encode_texts(["ññññ"])[0]) == 4**4 - 1


@pytest.mark.parametrize("alphabet", ["", "aa", "aA", "A", None, 3])
def test_alphabets(alphabet):
    with pytest.raises(InputError, match="alphabet"):
        local.spelling(3, alphabet=alphabet)


@pytest.mark.parametrize("length", [0, 11, 1 << 40, 2.0])
def test_lengths(length):
    with pytest.raises(InputError, match="length"):
        local.spelling(length)
