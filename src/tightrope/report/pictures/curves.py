"""The two curves of the privacy section, as polylines in a square of 100 by 100 (y grows downwards)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.certificates.words.digits import percent
from tightrope.report.pictures.scale import DecadeScale, Scale, Tick
from tightrope.report.words.attacker import Point, catches, curve, profile
from tightrope.report.words.document import Json, number

DEEPEST_DECADE = -40
TICK_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A polyline with its axes and the points that are marked on it (in percent from the left and the top)."""

    line: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    marks: list[tuple[float, float]]


def tradeoff(certificate: Json) -> Curve | None:
    """True- against false-positive rate of the best attacker; None without any guarantee."""
    points = curve(certificate)
    if not points:
        return None
    ticks = [Tick(100 * share, percent(share)) for share in TICK_SHARES]
    marks = [(100 * c.false_positive_rate, 100 - 100 * c.true_positive_rate) for c in catches(certificate)]
    return Curve(_line([(100 * x, 100 - 100 * y) for x, y in points]), ticks, ticks, marks)


def privacy_profile(certificate: Json) -> Curve | None:
    """δ(ε) over a logarithmic axis, the stated guarantee marked; None with fewer than two points."""
    points = [(epsilon, delta) for epsilon, delta in profile(certificate) if delta >= 10.0**DEEPEST_DECADE]
    if len(points) < 2 or points[0][0] == points[-1][0]:
        return None
    epsilons, deltas = _axes(points)
    placed = [(epsilons.at(x), 100 - deltas.at(y)) for x, y in points]
    stated = number(certificate, "epsilon"), number(certificate, "delta")
    return Curve(_line(placed), epsilons.ticks(5), deltas.ticks(6), _mark(stated, epsilons, deltas))


def _axes(points: Sequence[Point]) -> tuple[Scale, DecadeScale]:
    smallest = math.floor(math.log10(min(delta for _, delta in points)) + 1e-9)
    return Scale(0.0, max(epsilon for epsilon, _ in points)), DecadeScale(min(smallest, -1), 0)


def _mark(stated: tuple[float | None, float | None], x: Scale, y: DecadeScale) -> list[tuple[float, float]]:
    epsilon, delta = stated
    if epsilon is None or delta is None or delta < 10.0**y.low or not 0 <= epsilon <= x.high:
        return []
    return [(x.at(epsilon), 100 - y.at(delta))]


def _line(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
