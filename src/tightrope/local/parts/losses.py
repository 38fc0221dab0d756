"""Privacy losses of the local mechanisms, which have three values, +ℓ, 0 and −ℓ, from exact fractions.

For two values of a person, some reports have probability ``up`` under the first and ``down`` under the second, some
have the opposite, and the rest are equally likely. So the two distributions are the dominating pair of a triple (ε, 0,
η) with ε = ℓ = log(up/down) and η = up − down (theory §1).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.channels import Channel, SymmetricChannel
from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import PRIVATE_SIDE
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, ONE, fixed_point_exponential
from tightrope.mechanisms.discrete.table_loss import LOSS_ROUNDING
from tightrope.numerics.checks import check_positive
from tightrope.numerics.rounding import round_outward, to_float

Change = tuple[Fraction, Fraction]
"""Probabilities (up, down), up > down > 0, of reports under the first value; exchanged under the second."""


def join_report_changes(*parts: tuple[Fraction, Change]) -> Change:
    """Return a change that dominates a public random choice among ``parts``, which are (probability, change).

    It is (rη, η) / (r − 1), with the largest odds r and the expected η: this dominates every change with odds ≤ r and
    the same η.

    >>> half, quarter, third = Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)
    >>> join_report_changes((half, (3 * quarter, quarter)), (half, (2 * third, third)))
    (Fraction(5, 8), Fraction(5, 24))
    """
    odds = max(up / down for _, (up, down) in parts)
    eta = sum((probability * (up - down) for probability, (up, down) in parts), Fraction(0))
    return odds * eta / (odds - 1), eta / (odds - 1)


def log_odds(change: Change) -> float:
    """Return log(up / down), to a relative error below 2⁻⁵⁰ (proof in ``table_loss``)."""
    up, down = change
    return math.log1p((up - down) / down)


def loss_of_change(change: Change) -> PrivacyLoss:
    """Return the loss with mass ``up`` at +ℓ, ``down`` at −ℓ and the rest at 0; it is the same in both directions.

    Neighbors are "local": one person's value changes.

    >>> round(loss_of_change((Fraction(3, 4), Fraction(1, 4))).epsilon(0.1), 12)
    0.955511445027
    """
    up, down = change
    loss = log_odds(change)
    masses = np.array([float(down), float(1 - up - down), float(up)])
    atoms = Atoms.merge_losses(np.array([-loss, 0.0, loss]), masses, rounding_error_bound=LOSS_ROUNDING * loss)
    stated = TrueValueOf.MECHANISMS
    return PrivacyLoss.from_distribution(atoms, reverse=atoms, neighbors=Neighbors.LOCAL, true_value_of=stated)


def epsilon_of_change(change: Change) -> float:
    """Return ℓ, rounded up."""
    return round_outward(log_odds(change), "up", error=LOSS_ROUNDING)


def guarantee_of_change(change: Change) -> Guarantee:
    """Return the triple (ℓ, 0, up − down), each rounded up."""
    up, down = change
    return Guarantee(epsilon_of_change(change), 0.0, to_float(up - down, "up"))


class LocalMechanism(ABC):
    """Base class of local mechanisms: the loss and the guarantee follow from ``report_change_probabilities``."""

    __slots__ = ()

    @property
    @abstractmethod
    def report_change_probabilities(self) -> Change:
        """The change between a person's two most distinguishable values; exactly what is sampled."""

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one report, from the integer weights that are sampled; neighbors are "local"."""
        return loss_of_change(self.report_change_probabilities)

    @property
    def guarantee(self) -> Guarantee:
        """The realized (ε, 0, η), rounded up; ε is at most the requested one."""
        return guarantee_of_change(self.report_change_probabilities)


# Probabilities as integers out of 2⁶⁴, rounded so that odds never exceed e^ε.
#
# A uniform 64-bit word u is below T with probability exactly T / 2⁶⁴: a mechanism that compares words with integers has
# exactly the probabilities that its certificate states, without rounding of floats.

WORD = 1 << 64
"""The number of words."""


def checked_epsilon(epsilon: object) -> float:
    """Return a finite ε > 0 as a float; raises ``InputError`` for anything else, ∞ included."""
    return check_positive("epsilon", epsilon, "0 would report nothing and infinity the truth; a typical value is 1")


def fixed_point_exp(epsilon: float) -> int:
    """Return e^{−ε(1 − 2⁻⁴⁸)} in fixed point (``integer_weights.ONE`` is 1), rounded up; ε above 40 is taken as 40."""
    return fixed_point_exponential(Fraction(min(epsilon, LARGEST_STEP) * PRIVATE_SIDE)) + 1


def other_outcome_weight(epsilon: float, k: int, whole: int = WORD) -> int:
    """Return the smallest w with (whole − (k−1) w) / w ≤ e^ε, the weight of each outcome but the favored one.

    Raises ``InputError`` if ε is so small that all outcomes are equally likely.

    >>> w = other_outcome_weight(1.0, 4)
    >>> round((WORD - 3 * w) / w, 12)
    2.718281828459
    """
    decay = fixed_point_exp(epsilon)
    weight = -(-whole * decay // (ONE + (k - 1) * decay))
    if not k * weight < whole:
        raise InputError("epsilon", epsilon, f"large enough to differ from 0 with {k} outcomes", "use a larger epsilon")
    return weight


def odds_advantage(epsilon: float, k: int) -> Fraction:
    """Return (e^ε − 1) / (e^ε + k − 1) for the ε that is built: a rounded response has at most this total variation."""
    decay = fixed_point_exp(epsilon)
    return Fraction(ONE - decay, ONE + (k - 1) * decay)


def favored_weight(epsilon: float, others: Fraction, whole: int = WORD) -> int:
    """Return the largest T with T / (whole − T) ≤ e^ε / others.

    T / whole is the probability of the favored outcomes; the rest is that of ``others`` times as many. Raises
    ``InputError`` if ε is so small that T favors no outcome.

    >>> round(favored_weight(1.0, Fraction(1)) / WORD, 12)
    0.73105857863
    """
    decay, parts = fixed_point_exp(epsilon), Fraction(others)
    top = whole * ONE * parts.denominator // (ONE * parts.denominator + parts.numerator * decay)
    if not top * parts.numerator > (whole - top) * parts.denominator:
        raise InputError(
            "epsilon", epsilon, "large enough to differ from 0 with 64 binary digits", "use a larger epsilon"
        )
    return top


# Mechanisms as channels: one row per value, one column per report, from the exact probabilities that are sampled.

MOST_REPORTS = 1 << 16
"""Largest number of columns of a matrix."""
MOST_ENTRIES = 1 << 24
"""Largest number of entries of a matrix: 128 MiB."""


def check_channel_size(values: int, reports: int) -> None:
    """Raise ``InputError`` if a matrix of values × reports would be too large."""
    remedy = "loss and guarantee need no matrix"
    if not reports <= MOST_REPORTS:
        number = reports if reports < 1 << 64 else "more than 2^64"
        raise InputError("number of different reports", number, f"at most {MOST_REPORTS} for a channel", remedy)
    if not values * reports <= MOST_ENTRIES:
        raise InputError("entries of the channel", values * reports, f"at most {MOST_ENTRIES}", remedy)


def bits_channel(k: int, keep: Fraction, other: Fraction) -> Channel:
    """Return the channel of k independent bits; the report is Σ bit_v 2^v.

    The bit of the person's value is 1 with probability ``keep``, each other bit with ``other``.

    Raises ``InputError`` for more than 2¹⁶ reports.

    >>> bits_channel(2, Fraction(1, 2), Fraction(1, 4)).matrix.tolist()
    [[0.375, 0.375, 0.125, 0.125], [0.375, 0.125, 0.375, 0.125]]
    """
    check_channel_size(k, 1 << min(k, 80))
    rows = np.arange(1 << k)
    ones = np.bitwise_count(rows).astype(np.int64)
    probabilities = [
        [float(own * other**others * (1 - other) ** (k - 1 - others)) for others in range(k)]
        for own in (1 - keep, keep)
    ]
    is_set = rows >> np.arange(k)[:, None] & 1
    return Channel(np.array(probabilities)[is_set, np.minimum(ones - is_set, k - 1)])


def sets_channel(k: int, size: int, keep: Fraction) -> Channel:
    """Return the channel of random sets of ``size`` of k values.

    The person's value is in the set with probability ``keep``; the other elements are uniform.

    Columns are in the order of ``itertools.combinations``. Raises ``InputError`` for more than 2¹⁶ sets.

    >>> sets_channel(3, 1, Fraction(1, 2)).matrix.tolist()
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    """
    check_channel_size(k, comb(k, size))
    with_value, without_value = keep / comb(k - 1, size - 1), (1 - keep) / comb(k - 1, size)
    sets = np.array(list(combinations(range(k), size)))
    matrix = np.full((k, len(sets)), float(without_value))
    matrix[sets, np.arange(len(sets))[:, None]] = float(with_value)
    return Channel(matrix)


__all__ = ["Channel", "SymmetricChannel"]
