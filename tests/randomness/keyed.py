"""A fast repeatable source for tests with very many draws."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tightrope.randomness.bits import Source


class InsecureKeyed(Source):
    """AES-256-CTR under a key that everybody knows; counts the words that were asked for."""

    def __init__(self, seed):
        self.stream = Cipher(algorithms.AES(seed.to_bytes(32, "little")), modes.CTR(bytes(16))).encryptor()
        self.drawn = 0

    def random_words(self, n):
        self.drawn += n
        return np.frombuffer(bytearray(self.stream.update(bytes(8 * n))), dtype="<u8")
