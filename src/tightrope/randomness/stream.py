"""Many random words a second: AES-256 in counter mode, under keys of the operating system that live for one call."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from tightrope.randomness.source import OperatingSystem, Source, Words

FEWEST_WORDS = 512
"""Requests below this many words go to the operating system: keying costs as much as it gives."""
PER_KEY = 1 << 23
"""Words under one key (64 MiB): far below the birthday bound of 2⁶⁴ blocks, where a missing repetition would show."""
KEY, COUNTER = 32, 16
"""Bytes of an AES-256 key and of the first counter."""
ZEROS = bytes(1 << 18)
"""What is encrypted; the encryption of zeros is the key stream."""


@dataclass(frozen=True, slots=True)
class Stream(Source):
    """The default source: the key stream of AES-256-CTR, keyed afresh by ``os.urandom`` in every call.

    Nothing is kept between calls. So a forked process, a restored snapshot or a second thread cannot repeat words,
    and no later break-in finds the key of an earlier call (the library that held it frees its memory; it is not wiped).
    Predicting a word means breaking AES-256 or the operating system's generator. No error is retried: without
    randomness nothing is drawn.

    >>> Stream().words(1000).shape
    (1000,)
    """

    def words(self, n: int) -> Words:
        """The next ``n`` words, shape [n]; read-only where there are few."""
        if n < FEWEST_WORDS:
            return OperatingSystem().words(n)
        out = np.empty(n, dtype=np.uint64)
        for start in range(0, n, PER_KEY):
            _fill(out[start : start + PER_KEY])
        return out


def _fill(out: Words) -> None:
    """Overwrite ``out`` with one key's stream."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    secret = os.urandom(KEY + COUNTER)
    encryptor = Cipher(algorithms.AES(secret[:KEY]), modes.CTR(secret[KEY:])).encryptor()
    target, zeros = out.data.cast("B"), memoryview(ZEROS)
    for start in range(0, len(target), len(zeros)):
        part = target[start : start + len(zeros)]
        encryptor.update_into(zeros[: len(part)], part)
