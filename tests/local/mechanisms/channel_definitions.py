"""Channels of the mechanisms from their definitions, with fractions: what papers say, from the realized chances.

A channel is a list of rows {report: probability}; a report is a number, or the word of packed bits.
"""

from fractions import Fraction
from itertools import combinations, product
from math import comb

from tightrope import local
from tightrope.local.mechanisms.local_hashing import Hashing
from tightrope.local.mechanisms.response import Response
from tightrope.local.mechanisms.subset import Hadamard, SubsetSelection
from tightrope.local.mechanisms.unary import UnaryEncoding

MAKERS = {
    "response": local.k_randomized_response,
    "erasure": lambda epsilon, k: local.response_with_erasure(epsilon, 0.1, k),
    "optimized unary": local.unary_encoding,
    "symmetric unary": lambda epsilon, k: local.unary_encoding(epsilon, k, optimized=False),
    "hashing": local.hashing,
    "hashing into 3": lambda epsilon, k: local.hashing(epsilon, k, hashes=3),
    "hadamard": local.hadamard,
    "subsets": local.subset_selection,
    "subsets of two": lambda epsilon, k: local.subset_selection(epsilon, k, size=2),
}


def response_rows(m):
    silence = 1 - m.true_support_probability - (m.k - 1) * m.false_support_probability
    return [
        {**{y: m.true_support_probability if x == y else m.false_support_probability for y in range(m.k)}, m.k: silence}
        for x in range(m.k)
    ]


def unary_rows(m):
    def chance(row, x):
        out = Fraction(1)
        for v in range(m.k):
            one = m.true_support_probability if v == x else m.false_support_probability
            out *= one if row >> v & 1 else 1 - one
        return out

    return [{row: chance(row, x) for row in range(1 << m.k)} for x in range(m.k)]


def digits(number, base, length):
    return [number // base**j % base for j in range(length)]


def hashed(m, seed, value):
    """The sum of products of digits; over two or four elements by hand, else modulo a prime."""
    g, length = m.linear.order, m.linear.length
    pairs = list(zip(digits(seed, g, length), digits(value, g, length), strict=True))
    if g == 4:
        times = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]]
        out = 0
        for a, b in pairs:
            out ^= times[a][b]
        return out
    assert all(g % d for d in range(2, g))
    return sum(a * b for a, b in pairs) % g


def hashing_rows(m):
    g, seeds = m.linear.order, m.linear.seed_count
    keep, other = m.response.true_support_probability / seeds, m.response.false_support_probability / seeds
    return [
        {s * g + y: keep if y == hashed(m, s, x) else other for s in range(seeds) for y in range(g)} for x in range(m.k)
    ]


def hadamard_rows(m):
    size = 1 << m.bits
    inside, outside = m.true_support_probability / (size // 2), (1 - m.true_support_probability) / (size // 2)
    return [{y: outside if ((x + 1) & y).bit_count() % 2 else inside for y in range(size)} for x in range(m.k)]


def subset_rows(m):
    w, others = m.size, m.k - 1
    inside, outside = (
        m.true_support_probability / comb(others, w - 1),
        (1 - m.true_support_probability) / comb(others, w),
    )
    sets = list(combinations(range(m.k), w))
    return [{sum(1 << v for v in s): inside if x in s else outside for s in sets} for x in range(m.k)]


ROWS = {
    Response: response_rows,
    UnaryEncoding: unary_rows,
    Hashing: hashing_rows,
    Hadamard: hadamard_rows,
    SubsetSelection: subset_rows,
}


def supports(m, report, value):
    """Whether a report supports a value."""
    if isinstance(m, (UnaryEncoding, SubsetSelection)):
        return bool(report >> value & 1)
    if isinstance(m, Hashing):
        return hashed(m, report // m.linear.order, value) == report % m.linear.order
    if isinstance(m, Hadamard):
        return ((value + 1) & report).bit_count() % 2 == 0
    return report == value


def rows_of(m):
    return ROWS[type(m)](m)


def profile(p, q, gamma):
    """E_γ of two rows, exactly."""
    return sum(max(p[y] - gamma * q[y], Fraction(0)) for y in p)


def pairs(m):
    return list(product(range(m.k), repeat=2))
