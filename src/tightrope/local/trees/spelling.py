"""Short texts as whole numbers with as few bits as their alphabet allows: fewer candidates, so rarer ones are found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.local.trees.prefix_tree import MOST_BITS
from tightrope.numerics.checks import whole

LATIN = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Spelling:
    """The first ``length`` letters of a text, in base len(alphabet) + 1, small letters alone; digit 0 is anything else
    and the end.
    """

    length: int
    alphabet: str

    @property
    def bits(self) -> int:
        """What ``heavy_hitters`` asks for."""
        return int(((len(self.alphabet) + 1) ** self.length - 1).bit_length())

    def numbers(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """A number for each text, shape [n].

        >>> spelling(3).texts(spelling(3).numbers(["Ohio", "to", "5x"]))
        ['ohi', 'to', ' x']
        """
        places = {letter: number for number, letter in enumerate(self.alphabet, start=1)}
        return np.array([self._number(text, places) for text in texts], dtype=np.int64)

    def _number(self, text: str, places: dict[str, int]) -> int:
        number = 0
        for letter in text.lower()[: self.length].ljust(self.length):
            number = number * (len(self.alphabet) + 1) + places.get(letter, 0)
        return number

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """The beginnings that the numbers stand for; what is not in the alphabet is a blank."""
        base, letters = len(self.alphabet) + 1, " " + self.alphabet
        places = [base**place for place in range(self.length - 1, -1, -1)]
        return ["".join(letters[int(number) // place % base] for place in places).rstrip() for number in numbers]


def spelling(length: int = 6, *, alphabet: str = LATIN) -> Spelling:
    """How texts become numbers for ``heavy_hitters``: six Latin letters are 29 bits, where their bytes are 48.

    Raises ``InputError`` unless the alphabet has letters, small ones, each once, and the numbers have at most 48 bits.

    >>> spelling(6).bits
    29
    """
    size = whole("length", length)
    if not isinstance(alphabet, str) or not 0 < len(alphabet) == len(set(alphabet.lower()) & set(alphabet)):
        raise InputError("alphabet", alphabet, "different letters, small ones", "capital letters count as small ones")
    found = Spelling(size, alphabet)
    if size > MOST_BITS or not found.bits <= MOST_BITS:
        raise InputError("length", length, f"short enough for {MOST_BITS} bits", "take fewer letters")
    return found
