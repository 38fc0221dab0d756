"""Couplings: the distribution of each group's written values equals the target, counted exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from tightrope.verify.claims import (
    CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    at_most,
    check_time,
    equality_claim,
    require_affordable,
    unchecked_claim,
)

DRAWN = 1 << 128
OFF = Fraction(1, 1 << 100)
"""Tolerance of a written probability from the target: weights of 2¹²⁸ are rounded."""
LOSS_ERROR = 1e-9
"""Tolerance of a stated loss, as a part of the largest distance: sums of floats are rounded."""
NEGLIGIBLE = 2e-12
MOST_DRAWN = 1 << 20
"""Weights that are added up for all points of all groups."""
LINE_METRICS, MAP_METRICS = ("cityblock", "euclidean"), ("chebyshev", "cityblock", "euclidean", "sqeuclidean")
Place = tuple[float, ...]
METRICS: dict[str, Callable[[Place, Place], float]] = {
    "chebyshev": lambda a, b: max(abs(p - q) for p, q in zip(a, b, strict=True)),
    "cityblock": lambda a, b: sum(abs(p - q) for p, q in zip(a, b, strict=True)),
    "euclidean": math.dist,
    "sqeuclidean": lambda a, b: sum((p - q) ** 2 for p, q in zip(a, b, strict=True)),
    "discrete": lambda a, b: float(a != b),
}


def coupling_claims(data: dict[str, Any]) -> list[Claim]:
    """Every claim of a coupling, in whole numbers."""
    target, groups = normalized_masses(data["target"]), data["groups"]
    points = len(target)
    weights = 0
    for group in groups:
        # The table of each point, and the target for each point without mass.
        sizes = [len(table["outcomes"]) for table in group["tables"]]
        empty = sum(1 for mass in group["law"] if not mass.strip("0"))
        drawn = sum(sizes[row] for row in group["rows"] if row < len(sizes))
        weights += drawn + points * min(empty, len(sizes)) + points
    require_affordable(weights, MOST_DRAWN, "weights that the points of all groups draw from")
    claims = [
        equality_claim("groups", len(groups), len(data["group"]["names"])),
        *_check_support(data["support"], points),
        *_labels_of("group.names", data["group"]["names"]),
    ]
    # The share of the mass that a fit moved is one, and small.
    above, below = (int(part, 16) for part in data["stray"])
    small = below > 0 and above * 10**9 <= below
    claims.append(equality_claim("stray: a share of the mass, of at most 1e-9", small, True))
    # Laws that were learned say how, and no others.
    learned, private = data["origin"]["learning"] is not None, data["origin"]["kind"] == "private"
    claims.append(equality_claim("origin: learned exactly if private", learned, private))
    for number, group in enumerate(groups):
        claims += _group_claims(f"groups[{number}]", group, target)
        claims += _coupling_loss(f"groups[{number}].loss", group, data["support"], data["objective"])
    claims.append(unchecked_claim("stray, objective", "how far values move: not a privacy claim"))
    claims.append(unchecked_claim("support, group.column, group.names", "names of points, columns and groups"))
    return [*claims, unchecked_claim("origin", "the origin of the distributions, which cannot be recomputed")]


def _check_support(support: dict[str, Any], points: int) -> Iterator[Claim]:
    """Check that the support has as many points as the laws, and valid names or axes."""
    if support["kind"] == "categories":
        yield equality_claim("support.names", len(support["names"]), points)
        yield from _labels_of("support.names", support["names"])
        whole = all(isinstance(name, int) for name in support["names"])
        known: tuple[str, ...] = ("discrete", "cityblock") if whole else ("discrete",)
        yield equality_claim("support.metric", support["metric"] in known, True)
        return
    axes = support["axes"]
    yield equality_claim("support.axes: cells of all", math.prod(axis["cells"] for axis in axes), points)
    yield equality_claim("support.axes: columns", len({axis["column"] for axis in axes}), len(axes))
    parted = []
    for axis in axes:
        holds = axis["lower"] < axis["upper"] < math.inf
        if holds:
            # Half a cell has to exceed the rounding of its range.
            lower, upper = float(axis["lower"]), float(axis["upper"])
            half = (upper - lower) / axis["cells"] / 2
            holds = math.isfinite(half) and lower + half > lower and upper - half < upper
        parted.append(holds)
    yield equality_claim("support.axes: a range for each, that holds its cells", all(parted), True)
    known = LINE_METRICS if len(axes) == 1 else MAP_METRICS
    yield equality_claim("support.metric", support["metric"] in known, True)


def _labels_of(name: str, names: list[Any]) -> Iterator[Claim]:
    """All text or all whole numbers of 64 bits, none twice."""
    kinds = {type(one) for one in names}
    wide = kinds == {int} and not all(-(1 << 63) <= one < 1 << 63 for one in names)
    yield equality_claim(f"{name}: all text or all whole numbers", kinds in ({str}, {int}) and not wide, True)
    yield equality_claim(f"{name}: different ones", len(set(map(str, names))), len(names))


def _coupling_loss(name: str, group: dict[str, Any], support: dict[str, Any], objective: str) -> Iterator[Claim]:
    """Return the loss of the values: the mean distance moved, or the largest except for a probability of 2e-12."""
    place, distance, wide = _distance_tables(support)
    masses, moved = [int(mass, 16) for mass in group["law"]], dict[float, float]()
    whole = sum(masses)
    for x, (mass, row) in check_time(enumerate(zip(masses, group["rows"], strict=True))):
        table, here = group["tables"][row], place(x)
        for y, weight in check_time(zip(table["outcomes"], table["weights"], strict=True)) if mass else ():
            far = distance(here, place(y))
            moved[far] = moved.get(far, 0.0) + mass / whole * (int(weight, 16) / DRAWN)
    found = math.fsum(far * share for far, share in moved.items())
    if objective == "worst":
        beyond = 0.0
        for found in sorted(moved, reverse=True):
            beyond += moved[found]
            if beyond > NEGLIGIBLE:
                break
    holds = abs(found - group["loss"]) <= LOSS_ERROR * wide
    yield Claim(name, repr(group["loss"]), f"= {found:.12g}", CONFIRMED if holds else REFUTED)


def _distance_tables(support: dict[str, Any]) -> tuple[Callable[[int], Place], Callable[[Place, Place], float], float]:
    """Return the position of each point, the distance of two points, and the largest distance."""
    metric = METRICS[support["metric"]]
    if support["kind"] == "categories":
        names = support["names"]
        if support["metric"] == "discrete":
            return lambda x: (float(x),), lambda a, b: float(a != b), 1.0
        values = [float(name) for name in names]
        return lambda x: (values[x],), metric, max(values) - min(values)
    axes = support["axes"]
    if len(axes) == 1:
        lower, width = axes[0]["lower"], (axes[0]["upper"] - axes[0]["lower"]) / axes[0]["cells"]
        return lambda x: (lower + (x + 0.5) * width,), metric, (axes[0]["cells"] - 1) * width
    sizes = [axis["cells"] for axis in axes]

    def cell_coordinates(x: int) -> Place:
        place = []
        for size in reversed(sizes):
            x, here = divmod(x, size)
            place.append(float(here))
        return tuple(reversed(place))

    return cell_coordinates, metric, metric((0.0,) * len(sizes), tuple(float(size - 1) for size in sizes))


def normalized_masses(masses: list[str]) -> list[Fraction]:
    """A law in proportion to masses in hexadecimal."""
    whole = [int(mass, 16) for mass in masses]
    if not sum(whole):
        raise BrokenError("a distribution with total mass 0")
    total = sum(whole)
    return [Fraction(mass, total) for mass in check_time(whole)]


def _group_claims(name: str, group: dict[str, Any], target: list[Fraction]) -> Iterator[Claim]:
    law, tables = normalized_masses(group["law"]), [_outcome_weights(table) for table in group["tables"]]
    yield equality_claim(f"{name}.law", len(law), len(target))
    yield equality_claim(f"{name}.rows", len(group["rows"]), len(target))
    sums = {sum(table.values()) for table in tables}
    yield equality_claim(f"{name}.tables add up to 2^128", sums, {DRAWN})
    yield equality_claim(f"{name}.tables are above 0", all(min(table.values()) > 0 for table in tables), True)
    written = [Fraction(0)] * len(target)
    for mass, row in check_time(zip(law, group["rows"], strict=True)):
        for outcome, weight in check_time(tables[row].items()) if mass else ():
            written[outcome] += mass * Fraction(weight, DRAWN)
    off = max(abs(a - b) for a, b in zip(written, target, strict=True))
    yield at_most(f"{name}: its output distribution is the target", float(off), float(OFF), off <= OFF)
    empty = {row for mass, row in zip(law, group["rows"], strict=True) if not mass}
    gaps = (abs(Fraction(tables[row].get(k, 0), DRAWN) - w) for row in empty for k, w in check_time(enumerate(target)))
    gap = max(gaps, default=Fraction(0))
    yield at_most(f"{name}: points that nobody has tell nothing", float(gap), float(OFF), gap <= OFF)


def _outcome_weights(table: dict[str, Any]) -> dict[int, int]:
    if len(set(table["outcomes"])) != len(table["outcomes"]):
        raise BrokenError("a point occurs twice in one table")
    return dict(zip(table["outcomes"], (int(weight, 16) for weight in table["weights"]), strict=True))
