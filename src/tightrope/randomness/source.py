"""Where random bits come from: uniform 64-bit words.

Production code uses :class:`OperatingSystem` or, by default, ``stream.Stream``, which takes its keys from there. A seed
is accepted only by an object whose name says that it is insecure.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.randomness.counts import count

Words = NDArray[np.uint64]

BYTES_AT_ONCE = 1 << 20
"""Bytes asked of the operating system in one call."""


class Source(ABC):
    """A stream of independent, uniform 64-bit words. It is made where it is used: it cannot be copied or sent."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        """No copies, no pickles: a copy of a stream with a state repeats its words, in another process unseen."""
        raise InputError("copy", type(self).__name__, "left alone", "make a source in the process that draws from it")

    @abstractmethod
    def words(self, n: int) -> Words:
        """The next ``n`` words, shape [n]."""


@dataclass(frozen=True, slots=True)
class OperatingSystem(Source):
    """The operating system's cryptographic generator (``os.urandom``) for every word.

    >>> OperatingSystem().words(3).shape
    (3,)
    """

    def words(self, n: int) -> Words:
        """The next ``n`` words, shape [n]; read-only."""
        size = 8 * n
        parts = [os.urandom(min(BYTES_AT_ONCE, size - start)) for start in range(0, size, BYTES_AT_ONCE)]
        return np.frombuffer(b"".join(parts), dtype=np.uint64)


class InsecureSeeded(Source):
    """A repeatable stream, **for tests only**: whoever knows the seed can subtract the noise.

    Call number c gives the first 8n bytes of SHAKE-256(seed, c), the same on every machine.

    >>> [int(w) % 1000 for w in InsecureSeeded(1).words(3)] == [int(w) % 1000 for w in InsecureSeeded(1).words(3)]
    True
    """

    __slots__ = ("_calls", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = str(count("seed", seed)).encode()
        self._calls = 0

    def words(self, n: int) -> Words:
        """The next ``n`` words, shape [n]."""
        self._calls += 1
        stream = hashlib.shake_256(self._seed + b"/" + str(self._calls).encode())
        return np.frombuffer(stream.digest(8 * n), dtype="<u8").astype(np.uint64)
