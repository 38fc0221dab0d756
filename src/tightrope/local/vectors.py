"""Means of vectors in a ball: each person names one of a few public directions, more often one that is near.

The directions of a report come in pairs ±u from a public seed. For any directions, exactly M of the 2H are *near* a
person's vector, and each near one is reported with one probability, each other one with another: the privacy is that of
two whole numbers, and no float has a say in it. For many directions this is PrivUnit (Bhowmick et al. 2018) with its
best cap (Asi, Feldman, Talwar 2022); one pair is the mechanism of Duchi, Jordan and Wainwright (2018).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
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
from tightrope.local.parts.values import check_categories, check_reals, report_rows
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.rounding import round_outward as coordinates_rounded
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import uniform_below

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss

# Directions that a person and the collector make alike from a public number, so that a report need not hold them.


def seeded_directions(seeds: Words, numbers: Integers, dimension: int) -> Floats:
    """Direction ``numbers[i]`` of ``seeds[i]``: a unit vector, shape [n, dimension].

    A Gaussian vector, divided by its length, from the SHAKE-128 stream of (seed, number): uniform on the sphere if that
    stream is indistinguishable from random bits, and to the rounding of floats. The seeds are public, and the
    privacy of a report does not depend on this.

    >>> seeds = np.array([7, 7, 8], dtype=np.uint64)
    >>> found = seeded_directions(seeds, np.array([0, 1, 0]), 3)
    >>> again = seeded_directions(seeds, [0] * 3, 3)
    >>> np.round(np.sum(found * found, axis=1), 12).tolist(), bool(np.all(found[0] == again[0]))
    ([1.0, 1.0, 1.0], True)
    """
    names = np.stack([seeds, np.asarray(numbers, dtype=np.uint64)], axis=1).astype("<u8").tobytes()
    rows = range(0, len(names), 16)
    stream = b"".join([hashlib.shake_128(names[at : at + 16]).digest(8 * dimension) for at in rows])
    words = np.frombuffer(stream, dtype="<u8").reshape(-1, dimension)
    normal = ndtri(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def axes_of(vectors: Floats) -> Floats:
    """Unit vectors of the same directions, shape [n, d]; the first axis for the zero vector.

    Never divides by a length of 0, and no square underflows.

    >>> axes_of(np.array([[3e-200, 4e-200], [0.0, 0.0]])).round(12).tolist()
    [[0.6, 0.8], [1.0, 0.0]]
    """
    largest = np.max(np.abs(vectors), axis=1, keepdims=True, initial=0.0)
    level = vectors / np.where(largest > 0, largest, 1.0)
    level[largest[:, 0] == 0, 0] = 1.0
    return np.asarray(level / np.linalg.norm(level, axis=1, keepdims=True))


# How far the directions that lie nearest to a line go along it: order statistics of a coordinate of the sphere.

NODES = 512
FARTHEST_ANGLE = 10.0
"""The angle from the equator, in units of 1 / √(d − 1), beyond which a coordinate is taken as 0: chance e⁻⁵⁰."""


@dataclass(frozen=True, slots=True, eq=False)
class NearestMoments:
    """Of ``of`` independent uniform directions u, the M with the largest |⟨u, v⟩| for a fixed unit vector v:
    ``mean[M − 1]`` is E of the mean of |⟨u, v⟩| over them, ``square[M − 1]`` the mean of its square, shape [of] each.
    """

    of: int
    mean: Floats
    square: Floats


def nearest_moments(dimension: int, of: int) -> NearestMoments:
    """By Gauss–Legendre quadrature in the angle, to a relative error below 1e−12.

    A direction is among the M nearest when at most M − 1 of the other ones are nearer: so the mean is
    (of / M) E[X P(Bin(of − 1, P(X' > X)) ≤ M − 1)], X = |⟨u, v⟩|, and X² ~ Beta(½, (d − 1)/2).

    >>> ratio = math.exp(math.lgamma(50.5) - math.lgamma(50))
    >>> round(float(nearest_moments(100, 1).mean[0]) * math.sqrt(math.pi) * ratio, 12)
    1.0
    """
    size = np.arange(1, of + 1)
    if dimension == 1:
        return NearestMoments(of, np.ones(of), np.ones(of))
    # Nodes and weights of E over |angle from the equator|, whose density is proportional to cos^(d − 2).
    points, weights = np.polynomial.legendre.leggauss(NODES)
    half = min(math.pi / 2, FARTHEST_ANGLE / math.sqrt(dimension - 1)) / 2
    angles_angle = (points + 1) * half
    log_density = (dimension - 2) * np.log(np.cos(angles_angle)) - betaln(0.5, (dimension - 1) / 2) + math.log(2)
    angle, weight = angles_angle, np.exp(log_density) * weights * half
    reach = np.sin(angle)
    nearer = 1 - betainc(0.5, (dimension - 1) / 2, reach**2)
    chosen = bdtr((size - 1)[:, None], of - 1, nearer) * weight
    return NearestMoments(of, of / size * (chosen @ reach), of / size * (chosen @ reach**2))


MOST_DIMENSIONS = 1 << 20
MOST_VECTOR_PAIRS = 1 << 12
NUMBERS_AT_ONCE = 1 << 20
"""Coordinates of directions held at once."""
SMALLEST_RADIUS = 1e-100
"""Its square and the square of its inverse are still floats."""
LONGER = 1e-9
"""By how much, relatively, a vector may be longer than the radius: unit vectors are not of length 1 in floats."""


@dataclass(frozen=True, slots=True)
class BallMean(LocalMechanism):
    """The mean of vectors of length ≤ ``radius``; ``near`` of 2 ``pairs`` directions, together with chance
    ``inside`` / 2⁶⁴.

    A report is a row (seed, direction): direction 2h is u_h of the seed, 2h + 1 is −u_h. It stands for the vector of
    length ``length`` in that direction, which is the person's on average. A shorter vector is first replaced by one of
    the two of length ``radius`` on its line, so that it is right on average.
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
        """The number of directions that are not near."""
        return 2 * self.pairs - self.near

    @property
    def change_probabilities(self) -> Change:
        """The near directions of −x are among the others of x: two vectors may have none in common."""
        chance = Fraction(self.inside, WORD)
        return chance, (1 - chance) * self.near / self.other_count

    @property
    def report_bits(self) -> int:
        """The number of bits in a report."""
        return 64 + (2 * self.pairs - 1).bit_length()

    @property
    def worst_squared_error(self) -> float:
        """E |estimate − mean|² of one person: ``length``² − |mean|², and so largest where the mean is 0.

        Of n people who are drawn from a population it is the n-th part, exactly.
        """
        return self.length**2

    def variance_at(self, vector: ArrayLike) -> Floats:
        """Variance of each coordinate of a decoded report of a person with this vector, shape [dimension].

        ``length``² (a + (s − a) v²) − x², v = x / |x| and a = (1 − s) / (d − 1), where s = ``along`` is the mean square
        of a report's direction along x, over ``length``². They add up to ``length``² − |x|².
        """
        scaled = self._scale_vectors(np.asarray(vector)[None])
        second = self.length**2 * self._coordinate_square_mean(axes_of(scaled) ** 2)
        return np.asarray(second[0] - (self.radius * scaled[0]) ** 2)

    def _coordinate_square_mean(self, square: Floats) -> Floats:
        """E of a squared coordinate of a report's direction, from the person's."""
        across = (1 - self.along) / (self.dimension - 1) if self.dimension > 1 else self.along
        return np.asarray(across + (self.along - across) * square)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Rows (seed, direction), shape [n, 2], for vectors of shape [n, dimension].

        Raises ``InputError`` for other shapes, and unless all are numbers and no vector is longer than the radius.
        """
        vectors, randomness = self._scale_vectors(values), randomness or Stream()
        out = np.empty((len(vectors), 2), dtype=np.uint64)
        step = max(1, NUMBERS_AT_ONCE // (self.pairs * self.dimension))
        for start in range(0, len(vectors), step):
            out[start : start + step] = self._randomize_vectors(vectors[start : start + step], randomness)
        return out

    def _randomize_vectors(self, vectors: Floats, randomness: Source) -> Words:
        people = len(vectors)
        towards = np.minimum(np.linalg.norm(vectors, axis=1), 1.0) / 2 + 0.5
        side = 2.0 * round_randomly(towards, randomness.random_words(people)) - 1
        seeds = randomness.random_words(people)
        order = self._order_directions(axes_of(vectors) * side[:, None], seeds)
        near, far = uniform_below(self.near, people, randomness), uniform_below(self.other_count, people, randomness)
        is_inside = randomness.random_words(people) < np.uint64(self.inside)
        place = np.where(is_inside, near, self.near + far)
        return np.stack([seeds, order[np.arange(people), place].astype(np.uint64)], axis=1)

    def _order_directions(self, axes: Floats, seeds: Words) -> Integers:
        """All directions of each seed, the ``near`` nearest to the person's axis first, shape [n, 2 pairs].

        Each row is a permutation for any rounding of floats, as privacy requires.
        """
        people = len(seeds)
        numbers = np.tile(np.arange(self.pairs), people)
        vectors = seeded_directions(np.repeat(seeds, self.pairs), numbers, self.dimension)
        shadows = np.einsum("nhd,nd->nh", vectors.reshape(people, self.pairs, self.dimension), axes)
        pairs = np.argsort(-np.abs(shadows), axis=1, kind="stable")
        nearer = 2 * pairs + (np.take_along_axis(shadows, pairs, axis=1) < 0)
        return np.concatenate([nearer, nearer ^ 1], axis=1)

    def _scale_vectors(self, values: ArrayLike) -> Floats:
        """Vectors over the radius, shape [n, dimension]."""
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[1] != self.dimension or array.dtype.kind not in "iuf":
            expected = f"real numbers of shape [n, {self.dimension}]"
            raise InputError("type and shape of values", (str(array.dtype), array.shape), expected)
        with np.errstate(over="ignore"):  # too long is too long
            scaled = array.astype(np.float64) / self.radius
            long = int(np.count_nonzero(~(np.linalg.norm(scaled, axis=1) <= 1 + LONGER)))
        if long:
            remedy = "shorten them, or widen the radius before anybody reports"
            raise InputError(f"vectors longer than {self.radius:g}", long, f"0 of {len(array)}", remedy)
        return scaled

    def decode_reports(self, reports: ArrayLike) -> Floats:
        """Vectors whose expectation is the vector of the person who reported, shape [n, dimension]."""
        rows = self._report_rows(reports)
        direction = rows[:, 1].astype(np.int64)
        sign = np.where(direction & 1, -self.length, self.length)
        return seeded_directions(rows[:, 0], direction >> 1, self.dimension) * sign[:, None]

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """The mean, without bias, with an interval for each coordinate, shape [dimension].

        The intervals speak of the population that people come from; for the people themselves they are a little too
        wide. Normal: they need some hundred reports. The variance is taken to be at least what the mechanism adds.
        Raises ``InputError`` for fewer than two reports, and for reports that the mechanism cannot produce.
        """
        rows = self._report_rows(reports)
        if len(rows) < 2:
            raise InputError("number of reports", len(rows), "at least 2", "one report has no spread")
        width = simultaneous_z_score(confidence, of=self.dimension if simultaneous else 1)
        value, square = self._report_moments(rows)
        variance = np.maximum((square - value**2) * len(rows) / (len(rows) - 1), self.least_spread(value))
        half = width * np.sqrt(variance / len(rows))
        return Shares(value, value - half, value + half, len(rows), confidence, simultaneous)

    def least_spread(self, value: Floats) -> Floats:
        """The least variance of a coordinate of a report in any population with this mean, or the end next to it.

        E[v²] ≥ E[|x|]² ≥ mean² for a coordinate x = |x| v of the people's vectors, in units of the radius.
        """
        mean = np.clip(value, -self.radius, self.radius)
        return self.length**2 * self._coordinate_square_mean((mean / self.radius) ** 2) - mean**2

    def _report_moments(self, rows: Words) -> tuple[Floats, Floats]:
        """Means of the decoded reports and of their squares."""
        total, square = np.zeros(self.dimension), np.zeros(self.dimension)
        for part in self._decoded_blocks(rows):
            total += part.sum(axis=0)
            square += np.sum(part**2, axis=0)
        return total / len(rows), square / len(rows)

    def _decoded_blocks(self, rows: Words) -> Iterator[Floats]:
        step = max(1, NUMBERS_AT_ONCE // self.dimension)
        for start in range(0, len(rows), step):
            yield self.decode_reports(rows[start : start + step])

    def _report_rows(self, reports: ArrayLike) -> Words:
        rows = report_rows(reports, 2)
        check_categories("directions of reports", rows[:, 1], 2 * self.pairs)
        if rows.dtype.kind == "i" and len(rows) and int(rows[:, 0].min()) < 0:
            raise InputError("seeds of reports below 0", int(np.count_nonzero(rows[:, 0] < 0)), "0")
        return rows.astype(np.uint64)


def ball_mean(epsilon: float, dimension: int, *, radius: float = 1.0, directions: int = 16) -> BallMean:
    """The mean of vectors in a Euclidean ball around 0, ε-LDP for any two of them.

    A person looks at this many pairs of ``directions`` and reports one direction of them, in 64 bits and a few. More
    take the device longer and have a smaller error: at ε = 1 the error of 16 is 2 % above the least, at ε = 4 11 %, at
    ε = 6 25 % (5 % for 100). How many are *near* is chosen for the least error. ε above 40 is taken as 40.
    Unbiased, and with exactly the error that it states, for uniform directions (``seeded_directions`` says in what
    sense they are). For a cube, where each coordinate has its own bounds, there is ``vector_mean``.

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
    epsilon, size, ball = (
        checked_epsilon(epsilon),
        check_integer("dimension", dimension),
        check_positive("radius", radius),
    )
    if not size <= MOST_DIMENSIONS:
        raise InputError("dimension", dimension, f"at most {MOST_DIMENSIONS}", "project the vectors first")
    if not check_integer("directions", directions) <= MOST_VECTOR_PAIRS:
        raise InputError("directions", directions, f"at most {MOST_VECTOR_PAIRS}", "more hardly lower the error")
    if not SMALLEST_RADIUS <= ball <= 1 / SMALLEST_RADIUS:
        raise InputError("radius", radius, "between 1e-100 and 1e100", "change the unit of the vectors")
    # How many are near and with what chance; a report's mean and mean square along the person's axis.
    # All directions add up to 0, so the others are −c M / (2H − M) along the axis where the near ones are c.
    found, sizes = nearest_moments(size, directions), np.arange(1, directions + 1)
    odds = math.exp(min(epsilon, LARGEST_STEP))
    gains = found.mean * sizes / (sizes * odds + 2 * directions - sizes)
    best_near = int(np.argmax(gains)) + 1
    others = 2 * directions - best_near
    best_inside = favored_weight(epsilon, Fraction(others, best_near))
    chance, mean = Fraction(best_inside, WORD), float(found.mean[best_near - 1])
    square, every = float(found.square[best_near - 1]), 1 / size
    rest = (2 * directions * every - best_near * square) / others
    best_projection = mean * float(chance - (1 - chance) * best_near / others)
    near, inside, projection, along = (
        best_near,
        best_inside,
        best_projection,
        float(chance) * square + float(1 - chance) * rest,
    )
    return BallMean(epsilon, size, ball, directions, near, inside, ball / projection, along)


# Means of vectors in a cube: each person reports a few neighboring coordinates, beginning at a random one.

PER_COORDINATE = 2.5
"""The ε a coordinate should have at least (Wang et al. 2019, §4.2; it concerns variance only)."""


@dataclass(frozen=True, slots=True)
class VectorMean:
    """``count`` of ``dimension`` coordinates, neighbors in a circle, each through ``part``.

    A report is a row: where it begins, then a number of ``part`` for each coordinate. The beginning is uniform whatever
    the vector is, so it tells nothing.
    """

    epsilon: float
    dimension: int
    count: int
    part: Mixture

    @property
    def loss(self) -> PrivacyLoss:
        """``count`` reports of one number each: two vectors may differ in all coordinates."""
        return self.count * self.part.loss

    @property
    def guarantee(self) -> Guarantee:
        """The realized (ε, 0, η) of all ``count`` numbers, rounded up."""
        epsilon = coordinates_rounded(self.count * self.part.guarantee.epsilon, "up")
        return Guarantee(epsilon, 0.0, min(1.0, self.loss.total_variation()))

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint32]:
        """Rows, shape [n, 1 + count], for vectors of shape [n, dimension]; raises ``InputError`` for other shapes, and
        unless all numbers lie between the ends.
        """
        vectors, randomness = self._check_vectors(values), randomness or Stream()
        begin = uniform_below(self.dimension, len(vectors), randomness)
        out = np.empty((len(vectors), 1 + self.count), dtype=np.uint32)
        out[:, 0] = begin
        for place in range(self.count):
            chosen = vectors[np.arange(len(vectors)), (begin + place) % self.dimension]
            out[:, 1 + place] = self.part.perturb(chosen, randomness)
        return out

    def _check_vectors(self, values: ArrayLike) -> Floats:
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[1] != self.dimension or array.dtype.kind not in "iuf":
            expected = f"real numbers of shape [n, {self.dimension}]"
            raise InputError("type and shape of values", (str(array.dtype), array.shape), expected)
        check_reals(
            "values", array.ravel(), self.part.lower, self.part.upper
        )  # all of them, not those that are asked for
        return array.astype(np.float64)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """The mean of each coordinate among those who reported it, shape [dimension].

        Each is unbiased: who reports it is random. Raises ``InputError`` where fewer than two people reported one.
        """
        rows = self._report_rows(reports)
        where = (rows[:, :1] + np.arange(self.count)) % self.dimension
        decoded = np.stack([self.part.decode_reports(column) for column in rows[:, 1:].T], axis=1)
        width = simultaneous_z_score(confidence, of=self.dimension if simultaneous else 1)
        # Mean and variance of the reports on each coordinate, and how many there are.
        means_where = where.ravel()
        means_decoded = decoded.ravel()
        means_people = np.bincount(means_where, minlength=self.dimension)
        if not np.all(means_people > 1):
            fewest = int(means_people.min())
            raise InputError(
                "reports of a coordinate", fewest, "at least 2", "ask more people, or for fewer coordinates"
            )
        means_value = np.bincount(means_where, means_decoded, self.dimension) / means_people
        means_square = np.bincount(means_where, (means_decoded - means_value[means_where]) ** 2, self.dimension) / (
            means_people - 1
        )
        value, square, people = np.asarray(means_value), np.asarray(means_square), means_people
        least = np.array([self.part.least_spread(one) for one in value.tolist()])
        half = width * np.sqrt(np.maximum(square, least) / people)
        return Shares(value, value - half, value + half, len(rows), confidence, simultaneous)

    def _report_rows(self, reports: ArrayLike) -> NDArray[np.int64]:
        rows = report_rows(reports, 1 + self.count)
        check_categories("first coordinates", rows[:, 0], self.dimension)
        return rows.astype(np.int64)


def vector_mean(
    epsilon: float, dimension: int, *, bounds: tuple[float, float] = (-1.0, 1.0), count: int | None = None
) -> VectorMean:
    """The mean of vectors in a cube, all of whose coordinates lie in ``bounds``, ε-LDP for any two of them.

    For vectors of bounded length there is ``ball_mean``: its squared error grows with the dimension, this one with the
    dimension's square (at ε = 1 and 100 coordinates it is 66 times as large, on unit vectors).

    ``count`` coordinates a person, by default ε / 2.5 of them but one at least, each by ``hybrid`` with ε / count.
    Raises ``InputError`` unless ε > 0 is finite, dimension ≥ 1 and 1 ≤ count ≤ dimension.

    >>> import numpy as np
    >>> mechanism = vector_mean(1.0, 3)
    >>> rows = mechanism.perturb(np.tile([0.5, 0.0, -0.5], (9000, 1)))
    >>> mechanism.estimate(rows).value.shape, mechanism.loss.delta(1.0)
    ((3,), 0.0)
    """
    epsilon, size = checked_epsilon(epsilon), check_integer("dimension", dimension)
    usual = max(1, min(size, int(epsilon / PER_COORDINATE)))
    number = usual if count is None else check_integer("count", count)
    if not number <= size:
        raise InputError("count", count, f"at most dimension={size}", "nobody has more coordinates to report")
    return VectorMean(epsilon, size, number, hybrid(epsilon / number, bounds=bounds))
