"""The default source."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tightrope.randomness import bits
from tightrope.randomness.bits import MIN_STREAM_WORDS, ZEROS, Stream


@pytest.mark.parametrize(
    "n", [0, 1, MIN_STREAM_WORDS - 1, MIN_STREAM_WORDS, MIN_STREAM_WORDS + 1, len(ZEROS) // 8 + 5, 300_001]
)
def test_as_many_words_as_asked(n):
    words = Stream().random_words(n)
    assert words.shape == (n,)
    assert words.dtype == np.uint64


def test_never_repeats_within_or_between_calls():
    words = np.concatenate([Stream().random_words(n) for n in (100, 1000, 50_000, 50_000)])
    assert len(np.unique(words)) == len(words)


def test_it_is_the_key_stream_of_aes(monkeypatch):
    """NIST SP 800-38A defines the mode: block i is the cipher of counter + i."""
    secret = bytes(range(48))
    monkeypatch.setattr(os, "urandom", lambda n: secret[:n])
    words = Stream().random_words(MIN_STREAM_WORDS)
    block = Cipher(algorithms.AES(secret[:32]), modes.ECB()).encryptor()  # noqa: S305 - counter mode, spelt out
    counters = [(int.from_bytes(secret[32:]) + i).to_bytes(16) for i in range(MIN_STREAM_WORDS // 2)]
    assert words.tobytes() == block.update(b"".join(counters))


def test_every_key_is_used_for_a_bounded_number_of_words(monkeypatch):
    asked = []
    monkeypatch.setattr(bits, "WORDS_PER_KEY", 1000)
    true = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or true(n))
    words = Stream().random_words(2500)
    assert asked == [48, 48, 48]
    assert len(np.unique(words)) == 2500


def test_few_words_come_from_the_operating_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: b"\1" * n)
    assert set(Stream().random_words(MIN_STREAM_WORDS - 1).tolist()) == {0x0101010101010101}


@pytest.mark.parametrize("n", [64, 4096])
def test_failing_randomness_is_an_error(monkeypatch, n):
    def broken(n):
        raise NotImplementedError("no randomness")

    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(NotImplementedError):
        Stream().random_words(n)


def test_it_keeps_nothing_between_calls():
    assert Stream() == Stream()
    assert not Stream.__slots__


def _in_child(pipe):
    pipe.send(Stream().random_words(1000).tolist())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking a process that has threads
def test_forked_processes_draw_other_words():
    Stream().random_words(1000)
    context = multiprocessing.get_context("fork")
    found = []
    for _ in range(2):
        here, there = context.Pipe()
        child = context.Process(target=_in_child, args=(there,))
        child.start()
        found += here.recv()
        child.join()
    found += Stream().random_words(1000).tolist()
    assert len(set(found)) == 3000


def test_threads_draw_other_words():
    with ThreadPoolExecutor(4) as pool:
        found = np.concatenate(list(pool.map(Stream().random_words, [40_000] * 8)))
    assert len(np.unique(found)) == len(found)


def test_every_bit_is_fair():
    words = Stream().random_words(1 << 20)
    ones = np.array([int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    assert np.abs(ones - (1 << 19)).max() < 6 * 512
