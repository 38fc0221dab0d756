"""A mechanism as a channel: one row a value, one column a report, from the exact chances that are sampled.

``Channel`` says of such a matrix what no triple can: contraction, divergences of two populations, capacity.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np

from tightrope.channels import Channel
from tightrope.errors import InputError

MOST_REPORTS = 1 << 16
"""Columns of a matrix."""
MOST_ENTRIES = 1 << 24
"""Entries of a matrix: 128 MiB."""


def checked_size(values: int, reports: int) -> None:
    """Raises ``InputError`` where a matrix of values × reports would be too large."""
    remedy = "loss and guarantee need no matrix"
    if not reports <= MOST_REPORTS:
        shown = reports if reports < 1 << 64 else "more than 2^64"
        raise InputError("number of different reports", shown, f"at most {MOST_REPORTS} for a channel", remedy)
    if not values * reports <= MOST_ENTRIES:
        raise InputError("entries of the channel", values * reports, f"at most {MOST_ENTRIES}", remedy)


def of_bits(k: int, keep: Fraction, other: Fraction) -> Channel:
    """K independent bits, the own one 1 with chance ``keep``, the others with ``other``; report Σ bit_v 2^v.

    Raises ``InputError`` for more than 2¹⁶ reports.

    >>> of_bits(2, Fraction(1, 2), Fraction(1, 4)).matrix.tolist()
    [[0.375, 0.375, 0.125, 0.125], [0.375, 0.125, 0.375, 0.125]]
    """
    checked_size(k, 1 << min(k, 80))
    rows = np.arange(1 << k)
    ones = np.bitwise_count(rows).astype(np.int64)
    chance = [
        [float(own * other**others * (1 - other) ** (k - 1 - others)) for others in range(k)]
        for own in (1 - keep, keep)
    ]
    is_set = rows >> np.arange(k)[:, None] & 1
    return Channel(np.array(chance)[is_set, np.minimum(ones - is_set, k - 1)])


def of_sets(k: int, size: int, keep: Fraction) -> Channel:
    """Sets of ``size`` of k values, with the own one in them with chance ``keep``, otherwise uniform.

    Columns are in the order of ``itertools.combinations``. Raises ``InputError`` for more than 2¹⁶ sets.

    >>> of_sets(3, 1, Fraction(1, 2)).matrix.tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """
    checked_size(k, comb(k, size))
    inside, outside = keep / comb(k - 1, size - 1), (1 - keep) / comb(k - 1, size)
    sets = np.array(list(combinations(range(k), size)))
    matrix = np.full((k, len(sets)), float(outside))
    matrix[sets, np.arange(len(sets))[:, None]] = float(inside)
    return Channel(matrix)
