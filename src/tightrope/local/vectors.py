"""Means of vectors in a ball or a cube.

In a ball each person reports one of a few public directions, more often one that is near the person's vector.

The directions of a report come in pairs ±u from a public seed. For any directions, exactly M of the 2H are *near* a
person's vector; all near ones are reported with one probability, and all others with another. So the privacy loss is
computed exactly from two integers. For many directions this is PrivUnit (Bhowmick et al. 2018) with its
best cap (Asi, Feldman, Talwar 2022); one pair is the mechanism of Duchi, Jordan and Wainwright (2018).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betainc, betaln, ndtri

from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.local.mechanisms.bounded_mean import Mixture, hybrid
from tightrope.local.mechanisms.means import round_randomly
from tightrope.local.parts.estimates import Shares, simultaneous_z_score
from tightrope.local.parts.losses import WORD, Change, LocalMechanism, checked_epsilon, favored_weight
from tightrope.local.parts.values import check_categories, check_reals, check_report_array
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.rounding import round_outward
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import uniform_below

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss


def seeded_directions(seeds: Words, numbers: Integers, dimension: int) -> Floats:
    """Return direction ``numbers[i]`` of ``seeds[i]`` for each i: unit vectors, shape [n, dimension].

    The person and the collector compute the same directions, so a report need not contain them. Each is a Gaussian
    vector, divided by its length, from the SHAKE-128 stream of (seed, number): uniform on the sphere, up to rounding,
    if that stream is indistinguishable from random bits. The seeds are public; the privacy of a report does not depend
    on this.

    >>> seeds = np.array([7, 7, 8], dtype=np.uint64)
    >>> directions = seeded_directions(seeds, np.array([0, 1, 0]), 3)
    >>> again = seeded_directions(seeds, [0] * 3, 3)
    >>> np.round(np.sum(directions * directions, axis=1), 12).tolist(), bool(np.all(directions[0] == again[0]))
    ([1.0, 1.0, 1.0], True)
    """
    keys = np.stack([seeds, np.asarray(numbers, dtype=np.uint64)], axis=1).astype("<u8").tobytes()
    rows = range(0, len(keys), 16)
    stream = b"".join([hashlib.shake_128(keys[at : at + 16]).digest(8 * dimension) for at in rows])
    words = np.frombuffer(stream, dtype="<u8").reshape(-1, dimension)
    normal = ndtri(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def normalize_vectors(vectors: Floats) -> Floats:
    """Return unit vectors with the same directions, shape [n, d]; the first axis for the zero vector.

    Works for all lengths: squares do not underflow, and no length is divided by 0.

    >>> normalize_vectors(np.array([[3e-200, 4e-200], [0.0, 0.0]])).round(12).tolist()
    [[0.6, 0.8], [1.0, 0.0]]
    """
    largest = np.max(np.abs(vectors), axis=1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0, largest, 1.0)
    scaled[largest[:, 0] == 0, 0] = 1.0
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


NODES = 512
FARTHEST_ANGLE = 10.0
"""The angle from the equator, in units of 1 / √(d − 1), at which the quadrature ends: the rest has mass e⁻⁵⁰."""


@dataclass(frozen=True, slots=True, eq=False)
class NearestMoments:
    """Moments of the M of ``pairs`` independent uniform directions u with the largest |⟨u, v⟩|, for a unit vector v.

    ``mean[M − 1]`` is the expected mean of |⟨u, v⟩| over them, ``square[M − 1]`` that of ⟨u, v⟩², shape [pairs] each.
    """

    pairs: int
    mean: Floats
    square: Floats


def nearest_direction_moments(dimension: int, pairs: int) -> NearestMoments:
    """Return the moments by Gauss–Legendre quadrature in the angle, to a relative error below 1e−12.

    A direction is among the M nearest if at most M − 1 of the others are nearer: so the mean is
    (pairs / M) E[X P(Bin(pairs − 1, P(X' > X)) ≤ M − 1)], X = |⟨u, v⟩|, and X² ~ Beta(½, (d − 1)/2).

    >>> ratio = math.exp(math.lgamma(50.5) - math.lgamma(50))
    >>> round(float(nearest_direction_moments(100, 1).mean[0]) * math.sqrt(math.pi) * ratio, 12)
    1.0
    """
    count = np.arange(1, pairs + 1)
    if dimension == 1:
        return NearestMoments(pairs, np.ones(pairs), np.ones(pairs))
    # Nodes and weights of E over |angle from the equator|, whose density is proportional to cos^(d − 2).
    points, weights = np.polynomial.legendre.leggauss(NODES)
    half = min(math.pi / 2, FARTHEST_ANGLE / math.sqrt(dimension - 1)) / 2
    angle = (points + 1) * half
    log_density = (dimension - 2) * np.log(np.cos(angle)) - betaln(0.5, (dimension - 1) / 2) + math.log(2)
    weight = np.exp(log_density) * weights * half
    x = np.sin(angle)
    nearer = 1 - betainc(0.5, (dimension - 1) / 2, x**2)
    among_nearest = bdtr((count - 1)[:, None], pairs - 1, nearer) * weight
    return NearestMoments(pairs, pairs / count * (among_nearest @ x), pairs / count * (among_nearest @ x**2))


MOST_DIMENSIONS = 1 << 20
MOST_VECTOR_PAIRS = 1 << 12
NUMBERS_AT_ONCE = 1 << 20
"""Coordinates of directions held at once."""
SMALLEST_RADIUS = 1e-100
"""Its square and the square of its inverse are still floats."""
LENGTH_TOLERANCE = 1e-9
"""Relative tolerance for lengths above the radius: unit vectors in floats may be longer than 1."""


@dataclass(frozen=True, slots=True)
class BallMean(LocalMechanism):
    """A mechanism for the mean of vectors of length ≤ ``radius``.

    A report is a row (seed, direction): direction 2h is u_h of the seed, 2h + 1 is −u_h, for ``pairs`` values of h.
    With probability ``inside`` / 2⁶⁴ it is a uniform one of the ``near`` nearest directions, otherwise a uniform other
    one. The report stands for the vector of length ``length`` in that direction, whose expectation is the person's
    vector. A shorter vector is first replaced by one of the two vectors of length ``radius`` on its line, with the same
    mean. ``along``: the mean square of a report's direction along the person's axis.
    """

    epsilon: float
    dimension: int
    radius: float
    pairs: int
    near: int
    inside: int
    length: float
    along: float

    @property
    def other_count(self) -> int:
        """Number of directions that are not near."""
        return 2 * self.pairs - self.near

    @property
    def report_change_probabilities(self) -> Change:
        """The change between two vectors without common near directions, such as x and −x."""
        chance = Fraction(self.inside, WORD)
        return chance, (1 - chance) * self.near / self.other_count

    @property
    def report_bits(self) -> int:
        """The number of bits in a report."""
        return 64 + (2 * self.pairs - 1).bit_length()

    @property
    def worst_squared_error(self) -> float:
        """E |estimate − mean|² for one person, ``length``² − |mean|², at its largest, where the mean is 0.

        For n people who are drawn from a population the error is exactly 1/n of this.
        """
        return self.length**2

    def variance_at(self, vector: ArrayLike) -> Floats:
        """Return the variance of each coordinate of a decoded report for this vector, shape [dimension].

        It is ``length``² (a + (s − a) v²) − x² with v = x / |x|, s = ``along`` and a = (1 − s) / (d − 1). The variances
        add up to ``length``² − |x|².
        """
        scaled = self._scale_vectors(np.asarray(vector)[None])
        second = self.length**2 * self._coordinate_square_mean(normalize_vectors(scaled) ** 2)
        return np.asarray(second[0] - (self.radius * scaled[0]) ** 2)

    def _coordinate_square_mean(self, square: Floats) -> Floats:
        """Return the mean square of a coordinate of a report's direction, given that of the person's coordinate."""
        across = (1 - self.along) / (self.dimension - 1) if self.dimension > 1 else self.along
        return np.asarray(across + (self.along - across) * square)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Return rows (seed, direction), shape [n, 2], for vectors of shape [n, dimension].

        Raises ``InputError`` for other shapes, for entries that are not numbers, and for vectors longer than the
        radius.
        """
        vectors, randomness = self._scale_vectors(values), randomness or Stream()
        out = np.empty((len(vectors), 2), dtype=np.uint64)
        step = max(1, NUMBERS_AT_ONCE // (self.pairs * self.dimension))
        for start in range(0, len(vectors), step):
            out[start : start + step] = self._randomize_vectors(vectors[start : start + step], randomness)
        return out

    def _randomize_vectors(self, vectors: Floats, randomness: Source) -> Words:
        people = len(vectors)
        same_side = np.minimum(np.linalg.norm(vectors, axis=1), 1.0) / 2 + 0.5
        side = 2.0 * round_randomly(same_side, randomness.random_words(people)) - 1
        seeds = randomness.random_words(people)
        order = self._order_directions(normalize_vectors(vectors) * side[:, None], seeds)
        near, far = uniform_below(self.near, people, randomness), uniform_below(self.other_count, people, randomness)
        is_inside = randomness.random_words(people) < np.uint64(self.inside)
        rank = np.where(is_inside, near, self.near + far)
        return np.stack([seeds, order[np.arange(people), rank].astype(np.uint64)], axis=1)

    def _order_directions(self, axes: Floats, seeds: Words) -> Integers:
        """Return all directions of each seed, the ``near`` nearest to the person's axis first, shape [n, 2 pairs].

        Each row is a permutation, also with rounding errors: privacy depends on this.
        """
        people = len(seeds)
        numbers = np.tile(np.arange(self.pairs), people)
        vectors = seeded_directions(np.repeat(seeds, self.pairs), numbers, self.dimension)
        projections = np.einsum("nhd,nd->nh", vectors.reshape(people, self.pairs, self.dimension), axes)
        pairs = np.argsort(-np.abs(projections), axis=1, kind="stable")
        nearer = 2 * pairs + (np.take_along_axis(projections, pairs, axis=1) < 0)
        return np.concatenate([nearer, nearer ^ 1], axis=1)

    def _scale_vectors(self, values: ArrayLike) -> Floats:
        """Return the vectors divided by the radius, shape [n, dimension]; raises ``InputError`` for invalid ones."""
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[1] != self.dimension or array.dtype.kind not in "iuf":
            expected = f"real numbers of shape [n, {self.dimension}]"
            raise InputError("type and shape of values", (str(array.dtype), array.shape), expected)
        with np.errstate(over="ignore"):  # an infinite length is too long
            scaled = array.astype(np.float64) / self.radius
            too_long = int(np.count_nonzero(~(np.linalg.norm(scaled, axis=1) <= 1 + LENGTH_TOLERANCE)))
        if too_long:
            remedy = "shorten them, or use a larger radius before people report"
            raise InputError(f"vectors longer than {self.radius:g}", too_long, f"0 of {len(array)}", remedy)
        return scaled

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Return vectors whose expectations are the vectors of the people who reported, shape [n, dimension]."""
        rows = self._report_rows(reports)
        direction = rows[:, 1].astype(np.int64)
        sign = np.where(direction & 1, -self.length, self.length)
        return seeded_directions(rows[:, 0], direction >> 1, self.dimension) * sign[:, None]

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """Return the unbiased mean, with an interval for each coordinate, shape [dimension].

        The intervals are for the mean of the population that people are drawn from; for that of the people themselves
        they are a little too wide. They are normal, for about a hundred reports or more. The variance is at least
        ``least_report_variance``.
        Raises ``InputError`` for fewer than two reports, and for reports that the mechanism cannot produce.
        """
        rows = self._report_rows(reports)
        if len(rows) < 2:
            raise InputError("number of reports", len(rows), "at least 2", "one report has no spread")
        z_score = simultaneous_z_score(confidence, of=self.dimension if simultaneous else 1)
        value, square = self._report_moments(rows)
        variance = np.maximum((square - value**2) * len(rows) / (len(rows) - 1), self.least_report_variance(value))
        half = z_score * np.sqrt(variance / len(rows))
        return Shares(value, value - half, value + half, len(rows), confidence, simultaneous)

    def least_report_variance(self, value: Floats) -> Floats:
        """Return the least variance of a coordinate of a report in any population with this mean, clipped to the ball.

        In units of the radius, E[v²] ≥ mean², where v is the coordinate of a person's direction.
        """
        mean = np.clip(value, -self.radius, self.radius)
        return self.length**2 * self._coordinate_square_mean((mean / self.radius) ** 2) - mean**2

    def _report_moments(self, rows: Words) -> tuple[Floats, Floats]:
        """Return the means of the decoded reports and of their squares."""
        total, square = np.zeros(self.dimension), np.zeros(self.dimension)
        step = max(1, NUMBERS_AT_ONCE // self.dimension)
        for start in range(0, len(rows), step):
            block = self.decode_reports(rows[start : start + step])
            total += block.sum(axis=0)
            square += np.sum(block**2, axis=0)
        return total / len(rows), square / len(rows)

    def _report_rows(self, reports: ArrayLike) -> Words:
        rows = check_report_array(reports, 2)
        check_categories("directions of reports", rows[:, 1], 2 * self.pairs)
        if rows.dtype.kind == "i" and len(rows) and int(rows[:, 0].min()) < 0:
            raise InputError("seeds of reports below 0", int(np.count_nonzero(rows[:, 0] < 0)), "0")
        return rows.astype(np.uint64)


def ball_mean(epsilon: float, dimension: int, *, radius: float = 1.0, directions: int = 16) -> BallMean:
    """Return a mechanism for the mean of vectors in a Euclidean ball around 0, ε-LDP.

    A person computes this many pairs of ``directions`` and reports one of them, in 64 bits and a few. More directions
    take longer and have a smaller error: with 16 it is 2 % above the least at ε = 1, 11 % at ε = 4, and 25 % at ε = 6
    (5 % with 100). The number of *near* directions is that with the least error. ε above 40 is taken as 40. Estimates
    are unbiased, and the stated error is exact, for uniform directions (see ``seeded_directions``). For a cube, where
    each coordinate has its own bounds, there is ``vector_mean``.

    Raises ``InputError`` unless ε > 0 is finite, 1 ≤ dimension ≤ 2²⁰, 1e−100 ≤ radius ≤ 1e100 and
    1 ≤ directions ≤ 4096.

    >>> import numpy as np
    >>> mechanism = ball_mean(1.0, 3)
    >>> rows = mechanism.perturb(np.tile([0.6, 0.0, -0.8], (9000, 1)))
    >>> mechanism.estimate(rows).value.shape, mechanism.loss.delta(1.0)
    ((3,), 0.0)
    >>> round(mechanism.worst_squared_error, 2)
    17.07
    """
    epsilon, size = checked_epsilon(epsilon), check_integer("dimension", dimension)
    ball = check_positive("radius", radius)
    if not size <= MOST_DIMENSIONS:
        raise InputError("dimension", dimension, f"at most {MOST_DIMENSIONS}", "project the vectors first")
    if not check_integer("directions", directions) <= MOST_VECTOR_PAIRS:
        raise InputError(
            "directions", directions, f"at most {MOST_VECTOR_PAIRS}", "more directions hardly reduce the error"
        )
    if not SMALLEST_RADIUS <= ball <= 1 / SMALLEST_RADIUS:
        raise InputError("radius", radius, "between 1e-100 and 1e100", "change the unit of the vectors")
    # The number of near directions for which the mean along the person's axis is largest. All directions add up to 0:
    # if the near ones have the mean c along the axis, the others have −c M / (2H − M).
    moments, counts = nearest_direction_moments(size, directions), np.arange(1, directions + 1)
    odds = math.exp(min(epsilon, LARGEST_STEP))
    near = int(np.argmax(moments.mean * counts / (counts * odds + 2 * directions - counts))) + 1
    others = 2 * directions - near
    inside = favored_weight(epsilon, Fraction(others, near))
    # The mean and the mean square of a report's direction along the axis; 1/d is the mean square of all directions.
    chance, near_square = Fraction(inside, WORD), float(moments.square[near - 1])
    projection = float(moments.mean[near - 1]) * float(chance - (1 - chance) * near / others)
    other_square = (2 * directions * (1 / size) - near * near_square) / others
    along = float(chance) * near_square + float(1 - chance) * other_square
    return BallMean(epsilon, size, ball, directions, near, inside, ball / projection, along)


EPSILON_PER_COORDINATE = 2.5
"""Smallest ε for each coordinate if several are reported (Wang et al. 2019, §4.2; it affects only the variance)."""


@dataclass(frozen=True, slots=True)
class VectorMean:
    """A mechanism for the mean of vectors in a cube: each person reports ``count`` coordinates, each by ``part``.

    A report is a row: the first coordinate's index, then a report of ``part`` for it and for each of the following
    coordinates (cyclically). The index is uniform for every vector, so it reveals nothing.
    """

    epsilon: float
    dimension: int
    count: int
    part: Mixture

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of ``count`` reports of one number each: two vectors may differ in all coordinates."""
        return self.count * self.part.loss

    @property
    def guarantee(self) -> Guarantee:
        """The realized (ε, 0, η) of all ``count`` numbers, rounded up."""
        epsilon = round_outward(self.count * self.part.guarantee.epsilon, "up")
        return Guarantee(epsilon, 0.0, min(1.0, self.loss.total_variation()))

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint32]:
        """Return rows, shape [n, 1 + count], for vectors of shape [n, dimension].

        Raises ``InputError`` for other shapes, and unless all numbers lie in the bounds.
        """
        vectors, randomness = self._check_vectors(values), randomness or Stream()
        first = uniform_below(self.dimension, len(vectors), randomness)
        out = np.empty((len(vectors), 1 + self.count), dtype=np.uint32)
        out[:, 0] = first
        for offset in range(self.count):
            chosen = vectors[np.arange(len(vectors)), (first + offset) % self.dimension]
            out[:, 1 + offset] = self.part.perturb(chosen, randomness)
        return out

    def _check_vectors(self, values: ArrayLike) -> Floats:
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[1] != self.dimension or array.dtype.kind not in "iuf":
            expected = f"real numbers of shape [n, {self.dimension}]"
            raise InputError("type and shape of values", (str(array.dtype), array.shape), expected)
        # All coordinates are checked, so that an error does not depend on which are reported.
        check_reals("values", array.ravel(), self.part.lower, self.part.upper)
        return array.astype(np.float64)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """Return the mean of each coordinate among those who reported it, shape [dimension].

        It is unbiased, since the reporters are random. Raises ``InputError`` if fewer than two people reported one.
        """
        rows = self._report_rows(reports)
        coordinate = ((rows[:, :1] + np.arange(self.count)) % self.dimension).ravel()
        decoded = np.stack([self.part.decode_reports(column) for column in rows[:, 1:].T], axis=1).ravel()
        z_score = simultaneous_z_score(confidence, of=self.dimension if simultaneous else 1)
        # Number, mean and variance of the reports of each coordinate.
        people = np.bincount(coordinate, minlength=self.dimension)
        if not np.all(people > 1):
            remedy = "ask more people, or for fewer coordinates"
            raise InputError("reports of a coordinate", int(people.min()), "at least 2", remedy)
        value = np.asarray(np.bincount(coordinate, decoded, self.dimension) / people)
        squares = np.bincount(coordinate, (decoded - value[coordinate]) ** 2, self.dimension)
        least = np.array([self.part.least_report_variance(mean) for mean in value.tolist()])
        half = z_score * np.sqrt(np.maximum(squares / (people - 1), least) / people)
        return Shares(value, value - half, value + half, len(rows), confidence, simultaneous)

    def _report_rows(self, reports: ArrayLike) -> NDArray[np.int64]:
        rows = check_report_array(reports, 1 + self.count)
        check_categories("first coordinates", rows[:, 0], self.dimension)
        return rows.astype(np.int64)


def vector_mean(
    epsilon: float, dimension: int, *, bounds: tuple[float, float] = (-1.0, 1.0), count: int | None = None
) -> VectorMean:
    """Return a mechanism for the mean of vectors in a cube, whose coordinates lie in ``bounds``, ε-LDP.

    For vectors of bounded length use ``ball_mean``: its squared error is proportional to the dimension, this one to the
    square of it (at ε = 1 and 100 coordinates it is 66 times as large, on unit vectors).

    Each person reports ``count`` coordinates (default ε / 2.5, at least one), each by ``hybrid`` with ε / count.
    Raises ``InputError`` unless ε > 0 is finite, dimension ≥ 1 and 1 ≤ count ≤ dimension.

    >>> import numpy as np
    >>> mechanism = vector_mean(1.0, 3)
    >>> rows = mechanism.perturb(np.tile([0.5, 0.0, -0.5], (9000, 1)))
    >>> mechanism.estimate(rows).value.shape, mechanism.loss.delta(1.0)
    ((3,), 0.0)
    """
    epsilon, size = checked_epsilon(epsilon), check_integer("dimension", dimension)
    default = max(1, min(size, int(epsilon / EPSILON_PER_COORDINATE)))
    number = default if count is None else check_integer("count", count)
    if not number <= size:
        raise InputError("count", count, f"at most dimension={size}", "a vector has no more coordinates")
    return VectorMean(epsilon, size, number, hybrid(epsilon / number, bounds=bounds))
