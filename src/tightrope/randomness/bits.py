"""Sources of random bits: uniform 64-bit words.

Production code uses :class:`OperatingSystem` or, by default, ``Stream``, which takes its keys from there. A seed
is accepted only by an object whose name says that it is insecure.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError


def check_count(name: str, value: object, at_least: int = 0) -> int:
    """Return ``value`` as an int; raises ``InputError`` unless it is an integer ≥ ``at_least``.

    This folder does not import ``numerics``.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not int(value) >= at_least:
        raise InputError(name, value, f"a whole number >= {at_least}")
    return int(value)


Words = NDArray[np.uint64]

BYTES_AT_ONCE = 1 << 20
"""Bytes requested from the operating system in one call."""


class Source(ABC):
    """A stream of independent, uniform 64-bit words. It cannot be copied or sent to another process."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        """Forbid copying and pickling: a copy of a stream with state would repeat its words, possibly undetected."""
        raise InputError("copy", type(self).__name__, "left alone", "create a source in the process that uses it")

    @abstractmethod
    def random_words(self, n: int) -> Words:
        """Return the next ``n`` words, shape [n]."""


@dataclass(frozen=True, slots=True)
class OperatingSystem(Source):
    """The operating system's cryptographic generator (``os.urandom``) for every word.

    >>> OperatingSystem().random_words(3).shape
    (3,)
    """

    def random_words(self, n: int) -> Words:
        """Return the next ``n`` words, shape [n]; read-only."""
        size = 8 * n
        parts = [os.urandom(min(BYTES_AT_ONCE, size - start)) for start in range(0, size, BYTES_AT_ONCE)]
        return np.frombuffer(b"".join(parts), dtype=np.uint64)


class InsecureSeeded(Source):
    """A repeatable stream, **for tests only**: anyone with the seed can subtract the noise.

    Call number c gives the first 8n bytes of SHAKE-256(seed, c), the same on every machine.

    >>> one, same = (InsecureSeeded(1).random_words(3) for _ in range(2))
    >>> [int(w) % 1000 for w in one] == [int(w) % 1000 for w in same]
    True
    """

    __slots__ = ("_calls", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = str(check_count("seed", seed)).encode()
        self._calls = 0

    def random_words(self, n: int) -> Words:
        """Return the next ``n`` words, shape [n]."""
        self._calls += 1
        stream = hashlib.shake_256(self._seed + b"/" + str(self._calls).encode())
        return np.frombuffer(stream.digest(8 * n), dtype="<u8").astype(np.uint64)


MIN_STREAM_WORDS = 512
"""Requests for fewer words use the operating system's generator directly: creating a key takes as long."""
WORDS_PER_KEY = 1 << 23
"""Words under one key (64 MiB): far below 2⁶⁴ blocks, where missing repetitions become detectable."""
KEY_BYTES, COUNTER_BYTES = 32, 16
"""Bytes of an AES-256 key and of the first counter."""
ZEROS = bytes(1 << 18)
"""The plaintext: the encryption of zeros is the key stream."""


@dataclass(frozen=True, slots=True)
class Stream(Source):
    """The default source: the key stream of AES-256-CTR, keyed afresh by ``os.urandom`` in every call.

    No state is kept between calls. So a forked process, a restored snapshot or a second thread cannot repeat words, and
    a later attacker does not find the key of an earlier call in this object (the library frees its memory, without
    overwriting it). Predicting a word means breaking AES-256 or the operating system's generator. Errors are not
    retried: without randomness the draw fails.

    >>> Stream().random_words(1000).shape
    (1000,)
    """

    def random_words(self, n: int) -> Words:
        """Return the next ``n`` words, shape [n]; read-only if there are fewer than ``MIN_STREAM_WORDS``."""
        if n < MIN_STREAM_WORDS:
            return OperatingSystem().random_words(n)
        out = np.empty(n, dtype=np.uint64)
        for start in range(0, n, WORDS_PER_KEY):
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

            secret = os.urandom(KEY_BYTES + COUNTER_BYTES)
            encryptor = Cipher(algorithms.AES(secret[:KEY_BYTES]), modes.CTR(secret[KEY_BYTES:])).encryptor()
            target, zeros = out[start : start + WORDS_PER_KEY].data.cast("B"), memoryview(ZEROS)
            for offset in range(0, len(target), len(zeros)):
                part = target[offset : offset + len(zeros)]
                encryptor.update_into(zeros[: len(part)], part)
        return out
