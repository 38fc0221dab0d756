"""Sources of random words."""

import copy
import pickle

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.randomness.bits import BYTES_AT_ONCE, InsecureSeeded, OperatingSystem, Stream


@pytest.mark.parametrize("n", [0, 1, 5, BYTES_AT_ONCE // 8, BYTES_AT_ONCE // 8 + 3])
def test_operating_system_gives_as_many_words_as_asked(n):
    words = OperatingSystem().random_words(n)
    assert words.shape == (n,)
    assert words.dtype == np.uint64


def test_operating_system_never_repeats():
    words = np.concatenate([OperatingSystem().random_words(1000) for _ in range(3)])
    assert len(np.unique(words)) == 3000


def test_a_seed_repeats_and_calls_differ():
    one, two = InsecureSeeded(5), InsecureSeeded(5)
    first = one.random_words(100)
    assert np.array_equal(first, two.random_words(100))
    assert not np.array_equal(first, one.random_words(100))
    assert not np.array_equal(first, InsecureSeeded(6).random_words(100))


def test_every_bit_of_the_seeded_stream_is_fair():
    words = InsecureSeeded(1).random_words(20_000)
    ones = [int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)]
    assert max(abs(count - 10_000) for count in ones) < 5 * 71


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_nonsense_seeds(seed):
    with pytest.raises(InputError, match="seed"):
        InsecureSeeded(seed)


@pytest.mark.parametrize("source", [OperatingSystem(), Stream(), InsecureSeeded(1)])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_cannot_be_copied_or_sent(source, duplicate):
    with pytest.raises(InputError, match="create a source in the process"):
        duplicate(source)
