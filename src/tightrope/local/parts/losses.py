"""The privacy loss of every mechanism here: three points, +ℓ, 0 and −ℓ, from exact fractions.

Two people's values change the probability of some reports from ``up`` to ``down``, of others from ``down`` to ``up``,
and of the rest not at all; so the pair of laws is the dominating pair of a triple (ε, 0, η) with ε = ℓ = log(up/down)
and η = up − down (theory §1).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np

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


def join_changes(*parts: tuple[Fraction, Change]) -> Change:
    """One change that dominates a public choice among several, each with its probability: the largest odds r, and the
    sum of all η. Its pair (rη, η) / (r − 1) dominates every pair with such odds and η.

    >>> half, quarter, third = Fraction(1, 2), Fraction(1, 4), Fraction(1, 3)
    >>> join_changes((half, (3 * quarter, quarter)), (half, (2 * third, third)))
    (Fraction(5, 8), Fraction(5, 24))
    """
    odds = max(up / down for _, (up, down) in parts)
    eta = sum((share * (up - down) for share, (up, down) in parts), Fraction(0))
    return odds * eta / (odds - 1), eta / (odds - 1)


def log_odds(change: Change) -> float:
    """log(up / down), to a relative error below 2⁻⁵⁰ (``table_loss`` says why)."""
    up, down = change
    return math.log1p((up - down) / down)


def loss_of(change: Change) -> PrivacyLoss:
    """Masses ``up`` at +ℓ, ``down`` at −ℓ and the rest at 0.

    One person changes the own value: neighbors are "local". The laws of both orders of the pair are the same.

    >>> round(loss_of((Fraction(3, 4), Fraction(1, 4))).epsilon(0.1), 12)
    0.955511445027
    """
    up, down = change
    loss = log_odds(change)
    masses = np.array([float(down), float(1 - up - down), float(up)])
    atoms = Atoms.merge_losses(np.array([-loss, 0.0, loss]), masses, slack=LOSS_ROUNDING * loss)
    return PrivacyLoss.from_distribution(atoms, reverse=atoms, neighbors=Neighbors.LOCAL)


def epsilon_of(change: Change) -> float:
    """ℓ, rounded up."""
    return round_outward(log_odds(change), "up", error=LOSS_ROUNDING)


def guarantee_of(change: Change) -> Guarantee:
    """(ℓ, 0, up − down), each rounded up."""
    up, down = change
    return Guarantee(epsilon_of(change), 0.0, to_float(up - down, "up"))


class LocalMechanism(ABC):
    """A mechanism that says what one report changes; what it guarantees follows."""

    __slots__ = ()

    @property
    @abstractmethod
    def change_probabilities(self) -> Change:
        """The change of probability between a person's two most distinguishable values, exactly as sampled."""

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one report, from the whole numbers that are sampled; neighbors are "local"."""
        return loss_of(self.change_probabilities)

    @property
    def guarantee(self) -> Guarantee:
        """The realized (ε, 0, η), rounded up; ε is at most the one that was asked for."""
        return guarantee_of(self.change_probabilities)


# Chances as whole numbers out of 2⁶⁴, rounded so that the odds e^ε are never exceeded.
#
# A uniform 64-bit word u is below T with probability T / 2⁶⁴ exactly: a mechanism that compares words with whole
# numbers has the probabilities that its certificate speaks of, and no float has a say.

WORD = 1 << 64
"""The number of words."""


def checked_epsilon(epsilon: object) -> float:
    """A finite ε > 0 as a float; raises ``InputError`` for anything else, ∞ included."""
    return check_positive("epsilon", epsilon, "0 would report nothing and infinity the truth; a typical value is 1")


def fixed_point_exp(epsilon: float) -> int:
    """e^{−ε(1 − 2⁻⁴⁸)} in fixed point (``integer_weights.ONE`` is 1), rounded up; ε above 40 is taken as 40."""
    return fixed_point_exponential(Fraction(min(epsilon, LARGEST_STEP) * PRIVATE_SIDE)) + 1


def other_weight(epsilon: float, k: int, whole: int = WORD) -> int:
    """Least w with (whole − (k−1) w) / w ≤ e^ε: the weight of each of k − 1 outcomes other than the favored one.

    Raises ``InputError`` where ε is so small that no favor is left.

    >>> w = other_weight(1.0, 4)
    >>> round((WORD - 3 * w) / w, 12)
    2.718281828459
    """
    decay = fixed_point_exp(epsilon)
    weight = -(-whole * decay // (ONE + (k - 1) * decay))
    if not k * weight < whole:
        raise InputError("epsilon", epsilon, f"large enough to be told from 0 among {k} outcomes", "ask for more")
    return weight


def odds_advantage(epsilon: float, k: int) -> Fraction:
    """(e^ε − 1) / (e^ε + k − 1) for the ε that is built: no rounded response has a larger total variation."""
    decay = fixed_point_exp(epsilon)
    return Fraction(ONE - decay, ONE + (k - 1) * decay)


def favored_weight(epsilon: float, others: Fraction, whole: int = WORD) -> int:
    """Most T with T / (whole − T) ≤ e^ε / others: a chance T / whole against ``others`` equal ones that share the rest.

    Raises ``InputError`` where ε is so small that T favors no outcome.

    >>> round(favored_weight(1.0, Fraction(1)) / WORD, 12)
    0.73105857863
    """
    decay, parts = fixed_point_exp(epsilon), Fraction(others)
    top = whole * ONE * parts.denominator // (ONE * parts.denominator + parts.numerator * decay)
    if not top * parts.numerator > (whole - top) * parts.denominator:
        raise InputError("epsilon", epsilon, "large enough to be told from 0 in 64 binary digits", "ask for more")
    return top


# A mechanism as a channel: one row a value, one column a report, from the exact chances that are sampled.
#
# ``Channel`` says of such a matrix what no triple can: contraction, divergences of two populations, capacity.

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


# What a mechanism's ``channel`` is, where people look for it: ``local.Channel`` is ``channels.Channel``.

__all__ = ["Channel", "SymmetricChannel"]
