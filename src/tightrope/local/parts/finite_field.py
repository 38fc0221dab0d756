"""Small finite fields as tables: what exact hashing computes in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.uint16]

LARGEST_ORDER = 256
POLYNOMIALS = {1: 0b11, 2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0b100011011}
"""Irreducible polynomials over two elements, by degree; the tests check that every element has an inverse."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Elements 0..order − 1 with their sums and products, shape [order, order] each."""

    order: int
    sums: Table
    products: Table


def orders() -> list[int]:
    """Orders of the fields that ``field`` makes: primes and powers of two up to 256."""
    return [n for n in range(2, LARGEST_ORDER + 1) if n & (n - 1) == 0 or all(n % d for d in range(2, n))]


@cache
def field(order: int) -> Field:
    """The field with so many elements; ``order`` is one of ``orders()``.

    >>> field(4).products[2].tolist(), field(5).products[2].tolist()
    ([0, 2, 3, 1], [0, 2, 4, 1, 3])
    """
    numbers = np.arange(order)
    if order & (order - 1) == 0:
        sums, products = numbers[:, None] ^ numbers, _carryless(order.bit_length() - 1)
    else:
        sums, products = (numbers[:, None] + numbers) % order, (numbers[:, None] * numbers) % order
    return Field(order, sums.astype(np.uint16), products.astype(np.uint16))


def _carryless(degree: int) -> NDArray[np.int64]:
    """Products of polynomials over two elements, modulo an irreducible one."""
    numbers = np.arange(1 << degree)
    out = np.zeros((len(numbers), len(numbers)), dtype=np.int64)
    power = numbers.copy()
    for place in range(degree):
        out ^= np.where(numbers[:, None] >> place & 1, power, 0)
        power = power << 1
        power = np.where(power >> degree, power ^ POLYNOMIALS[degree], power)
    return out
