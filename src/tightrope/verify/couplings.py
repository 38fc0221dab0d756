"""Claims of couplings: the output distribution of each group equals the target, computed exactly.

Output distributions of a partial coupling share all but a mass δ with the target, and potentials prove its cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from tightrope.verify.claims import (
    CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    equality_claim,
    limit_claim,
    require_affordable,
    unchecked_claim,
    with_time_checks,
)

DRAW_TOTAL = 1 << 128
"""Sum of the weights of a table, from which an output is drawn."""
TARGET_TOLERANCE = Fraction(1, 1 << 100)
"""Tolerance of an output probability: weights out of 2¹²⁸ are rounded."""
LOSS_TOLERANCE = 1e-9
"""Tolerance of a stated loss relative to the largest distance: sums of floats are rounded."""
WORST_LOSS_TAIL = 2e-12
"""Probability of larger distances that the worst-case loss ignores."""
MAX_DRAW_WEIGHTS = 1 << 20
"""Limit on the number of weights, over all points of all groups."""
LINE_METRICS, MAP_METRICS = ("cityblock", "euclidean"), ("chebyshev", "cityblock", "euclidean", "sqeuclidean")
Point = tuple[float, ...]
METRICS: dict[str, Callable[[Point, Point], float]] = {
    "chebyshev": lambda a, b: max(abs(p - q) for p, q in zip(a, b, strict=True)),
    "cityblock": lambda a, b: sum(abs(p - q) for p, q in zip(a, b, strict=True)),
    "euclidean": math.dist,
    "sqeuclidean": lambda a, b: sum((p - q) ** 2 for p, q in zip(a, b, strict=True)),
    "discrete": lambda a, b: float(a != b),
}


class PointDistances(NamedTuple):
    """The position of each point, the distance of two positions, and the largest distance."""

    position: Callable[[int], Point]
    metric: Callable[[Point, Point], float]
    largest: float

    @classmethod
    def from_support(cls, support: dict[str, Any]) -> PointDistances:
        """Return the distances of the points of a support: categories, or the centers of cells."""
        metric = METRICS[support["metric"]]
        if support["kind"] == "categories":
            names = support["names"]
            if support["metric"] == "discrete":
                return cls(lambda x: (float(x),), metric, 1.0)
            values = [float(name) for name in names]
            return cls(lambda x: (values[x],), metric, max(values) - min(values))
        axes = support["axes"]
        if len(axes) == 1:
            lower, width = axes[0]["lower"], (axes[0]["upper"] - axes[0]["lower"]) / axes[0]["cells"]
            return cls(lambda x: (lower + (x + 0.5) * width,), metric, (axes[0]["cells"] - 1) * width)
        sizes = [axis["cells"] for axis in axes]

        def cell_coordinates(x: int) -> Point:
            point = []
            for size in reversed(sizes):
                x, coordinate = divmod(x, size)
                point.append(float(coordinate))
            return tuple(reversed(point))

        return cls(cell_coordinates, metric, metric((0.0,) * len(sizes), tuple(float(size - 1) for size in sizes)))


def coupling_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of a coupling, computed with integers."""
    target, groups = normalized_masses(data["target"]), data["groups"]
    points = len(target)
    weight_count = 0
    for group in groups:
        # Each point with mass reads its table; each row of points without mass is compared with the target.
        sizes = [len(table["outcomes"]) for table in group["tables"]]
        empty = sum(1 for mass in group["law"] if not mass.strip("0"))
        with_mass = sum(sizes[row] for row in group["rows"] if row < len(sizes))
        weight_count += with_mass + points * min(empty, len(sizes)) + points
    require_affordable(weight_count, MAX_DRAW_WEIGHTS, "weights that the points of all groups draw from")
    claims = [
        equality_claim("groups", len(groups), len(data["group"]["names"])),
        *_support_claims(data["support"], points),
        *_label_claims("group.names", data["group"]["names"]),
    ]
    # The moved part of the mass is a fraction, and small.
    numerator, denominator = (int(part, 16) for part in data["stray"])
    is_small = denominator > 0 and numerator * 10**9 <= denominator
    claims.append(equality_claim("stray: a share of the mass, of at most 1e-9", is_small, True))
    # Exactly the private distributions are learned.
    is_learned, is_private = data["origin"]["learning"] is not None, data["origin"]["kind"] == "private"
    claims.append(equality_claim("origin: learned exactly if private", is_learned, is_private))
    distances = PointDistances.from_support(data["support"])
    outputs = []
    for number, group in enumerate(groups):
        tables = []
        for table in group["tables"]:
            if len(set(table["outcomes"])) != len(table["outcomes"]):
                raise BrokenError("a point occurs twice in one table")
            tables.append(dict(zip(table["outcomes"], (int(weight, 16) for weight in table["weights"]), strict=True)))
        outputs.append(output_distribution(group, tables, points))
        claims += _group_claims(f"groups[{number}]", group, tables, target)
        if data.get("common_part") is None:
            difference = max(abs(a - b) for a, b in zip(outputs[-1], target, strict=True))
            name = f"groups[{number}]: its output distribution is the target"
            claims.append(limit_claim(name, float(difference), float(TARGET_TOLERANCE), difference <= TARGET_TOLERANCE))
        claims.append(_coupling_loss_claim(f"groups[{number}].loss", group, tables, distances, data["objective"]))
    if data.get("common_part") is not None:
        claims += CLAIMS_BY_OUTPUT_PART["common_part"](data, outputs, target, distances)
    claims.append(unchecked_claim("stray, objective", "how far values move: not a privacy claim"))
    claims.append(unchecked_claim("support, group.column, group.names", "names of points, columns and groups"))
    return [*claims, unchecked_claim("origin", "the origin of the distributions, which cannot be recomputed")]


def _support_claims(support: dict[str, Any], points: int) -> Iterator[Claim]:
    """Check that the support has as many points as the target, and valid names or axes."""
    if support["kind"] == "categories":
        yield equality_claim("support.names", len(support["names"]), points)
        yield from _label_claims("support.names", support["names"])
        are_integers = all(isinstance(name, int) for name in support["names"])
        metrics: tuple[str, ...] = ("discrete", "cityblock") if are_integers else ("discrete",)
        yield equality_claim("support.metric", support["metric"] in metrics, True)
        return
    axes = support["axes"]
    yield equality_claim("support.axes: cells of all", math.prod(axis["cells"] for axis in axes), points)
    yield equality_claim("support.axes: columns", len({axis["column"] for axis in axes}), len(axes))
    ranges_hold = []
    for axis in axes:
        holds = axis["lower"] < axis["upper"] < math.inf
        if holds:
            # Half a cell has to exceed the rounding of its range.
            lower, upper = float(axis["lower"]), float(axis["upper"])
            half = (upper - lower) / axis["cells"] / 2
            holds = math.isfinite(half) and lower + half > lower and upper - half < upper
        ranges_hold.append(holds)
    yield equality_claim("support.axes: a range for each, that holds its cells", all(ranges_hold), True)
    metrics = LINE_METRICS if len(axes) == 1 else MAP_METRICS
    yield equality_claim("support.metric", support["metric"] in metrics, True)


def _label_claims(name: str, names: list[Any]) -> Iterator[Claim]:
    """Check that labels are all text or all 64-bit integers, and distinct."""
    kinds = {type(label) for label in names}
    too_large = kinds == {int} and not all(-(1 << 63) <= label < 1 << 63 for label in names)
    yield equality_claim(f"{name}: all text or all whole numbers", kinds in ({str}, {int}) and not too_large, True)
    yield equality_claim(f"{name}: different ones", len(set(map(str, names))), len(names))


def _coupling_loss_claim(
    name: str, group: dict[str, Any], tables: list[dict[int, int]], distances: PointDistances, objective: str
) -> Claim:
    """Check the loss: the mean distance moved, or the largest one outside of a probability of 2e-12."""
    masses, probability_by_distance = [int(mass, 16) for mass in group["law"]], dict[float, float]()
    total = sum(masses)
    for x, (mass, row) in with_time_checks(enumerate(zip(masses, group["rows"], strict=True))):
        source = distances.position(x)
        for y, weight in with_time_checks(tables[row].items()) if mass else ():
            moved = distances.metric(source, distances.position(y))
            probability_by_distance[moved] = probability_by_distance.get(moved, 0.0) + mass / total * (
                weight / DRAW_TOTAL
            )
    loss = math.fsum(moved * probability for moved, probability in probability_by_distance.items())
    if objective == "worst":
        tail = 0.0
        for loss in sorted(probability_by_distance, reverse=True):
            tail += probability_by_distance[loss]
            if tail > WORST_LOSS_TAIL:
                break
    holds = abs(loss - group["loss"]) <= LOSS_TOLERANCE * distances.largest
    return Claim(name, repr(group["loss"]), f"= {loss:.12g}", CONFIRMED if holds else REFUTED)


def normalized_masses(masses: list[str]) -> list[Fraction]:
    """Return the distribution proportional to masses in hexadecimal."""
    weights = [int(mass, 16) for mass in masses]
    if not sum(weights):
        raise BrokenError("a distribution with total mass 0")
    total = sum(weights)
    return [Fraction(mass, total) for mass in with_time_checks(weights)]


def output_distribution(group: dict[str, Any], tables: list[dict[int, int]], points: int) -> list[Fraction]:
    """Return the distribution of a group's output, exactly."""
    output = [Fraction(0)] * points
    for mass, row in with_time_checks(zip(normalized_masses(group["law"]), group["rows"], strict=True)):
        for outcome, weight in with_time_checks(tables[row].items()) if mass else ():
            output[outcome] += mass * Fraction(weight, DRAW_TOTAL)
    return output


def common_part_claims(
    data: dict[str, Any], outputs: list[list[Fraction]], target: list[Fraction], distances: PointDistances
) -> Iterator[Claim]:
    """Check that all outputs and the target share a mass of 1 − δ, and the proof of the least mean distance."""
    part, groups = data["common_part"], data["groups"]
    # δ is the smaller of the decimal that is written and of the float that it is read as.
    missing, delta = 1 - sum(map(min, target, *outputs)), float(part["delta"])
    name = "common_part.delta: mass that the output distributions do not share"
    yield limit_claim(name, float(missing), delta, missing <= min(Fraction(delta), Fraction(repr(delta))))
    learning = data["origin"]["learning"]
    left = [] if learning is None else [one["total_variation"] for one in learning["left"]]
    yield equality_claim("origin: what is left includes delta", all(bound >= delta for bound in left), True)
    shapes = [len(part["weights"]), len(part["potentials"]), *map(len, part["potentials"])]
    yield equality_claim("common_part: sizes", shapes, [len(groups), len(groups), *(len(target) for _ in groups)])
    yield equality_claim("common_part.weights add up to 1", abs(math.fsum(part["weights"]) - 1) <= LOSS_TOLERANCE, True)
    yield equality_claim("common_part: the objective is the mean", data["objective"], "expected")
    # Sums of larger potentials would not be exact enough.
    largest = distances.largest * (1 + LOSS_TOLERANCE)
    rows = zip(part["weights"], part["potentials"], strict=True)
    are_small = all(max(row) <= weight * largest for weight, row in rows)
    yield equality_claim("common_part.potentials: at most the largest distance", are_small, True)
    if len(groups) * len(target) ** 2 > MAX_DRAW_WEIGHTS:
        reason = "how small the distance is: not a privacy claim, and too many pairs of points"
        yield unchecked_claim("common_part.lower", reason)
        return
    proven = least_mean_distance(part, groups, target, distances)
    holds = part["lower"] <= proven + LOSS_TOLERANCE * distances.largest
    yield limit_claim("common_part.lower: least mean distance", part["lower"], f"{proven:.12g}", holds)


def least_mean_distance(
    part: dict[str, Any], groups: list[dict[str, Any]], target: list[Fraction], distances: PointDistances
) -> float:
    """Return the lower bound that potentials v prove, at most the mean of the losses.

    Σ_s Σ_x λ_s(x) min_y (w_s d(x, y) − v_s(y)) + min_ν Σ_y ν(y) Σ_s v_s(y), ν of mass 1 − δ, below a fixed target.
    """
    weights, potentials = part["weights"], part["potentials"]
    terms = []
    for weight, row, group in zip(weights, potentials, groups, strict=True):
        for x, mass in with_time_checks(enumerate(normalized_masses(group["law"]))):
            if mass:
                source = distances.position(x)
                moved = (weight * distances.metric(source, distances.position(y)) - v for y, v in enumerate(row))
                terms.append(float(mass) * min(moved))
    missing = 1 - float(part["delta"])
    for price, y in sorted((sum(column), y) for y, column in enumerate(zip(*potentials, strict=True))):
        used = min(missing, float(target[y])) if part["fixed_target"] else missing
        terms.append(used * price)
        missing -= used
    mean = math.fsum(weight * group["loss"] for weight, group in zip(weights, groups, strict=True))
    return min(math.fsum(terms), mean)


CLAIMS_BY_OUTPUT_PART: dict[str, Callable[..., Iterator[Claim]]] = {"common_part": common_part_claims}
"""Claims of a part that few couplings have: an extract of this program for others lacks them, and fails with it."""


def _group_claims(
    name: str, group: dict[str, Any], tables: list[dict[int, int]], target: list[Fraction]
) -> Iterator[Claim]:
    """Check the tables of a group, and that a point without mass draws from the target."""
    distribution = normalized_masses(group["law"])
    yield equality_claim(f"{name}.law", len(distribution), len(target))
    yield equality_claim(f"{name}.rows", len(group["rows"]), len(target))
    sums = {sum(table.values()) for table in tables}
    yield equality_claim(f"{name}.tables add up to 2^128", sums, {DRAW_TOTAL})
    yield equality_claim(f"{name}.tables are above 0", all(min(table.values()) > 0 for table in tables), True)
    empty = {row for mass, row in zip(distribution, group["rows"], strict=True) if not mass}
    gaps = (
        abs(Fraction(tables[row].get(k, 0), DRAW_TOTAL) - w)
        for row in empty
        for k, w in with_time_checks(enumerate(target))
    )
    gap = max(gaps, default=Fraction(0))
    yield limit_claim(
        f"{name}: points that nobody has tell nothing", float(gap), float(TARGET_TOLERANCE), gap <= TARGET_TOLERANCE
    )
