"""Claims of a noise certificate: the guarantee and the cost of its table, and the lower bound on the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, arb_poly

from tightrope.verify.claims import (
    BOUND_TOLERANCE,
    CONFIRMED,
    LOOSE_FRACTION,
    NOT_CONFIRMED,
    REFUTED,
    Claim,
    equality_claim,
    limit_claim,
    require_time_left,
    shortest_float_text,
    unchecked_claim,
    upper_bound_claim,
)
from tightrope.verify.loss_grid import Grid, GridDistribution
from tightrope.verify.promises import Ends, exact_interval, refine_claims, smallest_positive
from tightrope.verify.releases import common_spacing
from tightrope.verify.tables import TOTAL_WEIGHT, Noise

POWERS = {"absolute": 1, "squared": 2}
FAINT_TAIL = 2.0**-200
MAX_COUNTED, MAX_COUNTED_CELLS = 1000, 1 << 17
"""For more answers that are counted together, or more tails, the lower bound is not computed."""
MAX_SCORES, MAX_BOXES = 30, 3000
"""For more scores, or after more boxes of drops, the lower bound is not computed."""
FLOAT_ERROR = 2.0**-40
"""Floats are moved by this fraction to the safe side."""


def noise_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of a noise certificate."""
    lower, upper = data["lower"], data["upper"]
    gap = 0.0 if upper == lower else upper / lower - 1 if lower > 0 else None
    claims = [
        limit_claim("version", data["version"], 2, data["version"] > 1 or data.get("table") is None),
        equality_claim("gap", data["gap"], gap),
        limit_claim("lower", lower, upper, lower <= upper),
        *_cost_bound_claims(data),
        unchecked_claim("shape, shape_lower, unimodal_price", "the cost of noise of another shape"),
        unchecked_claim("argument.kind, argument.statement", "text; the proof is in docs/proofs/optimal-noise.md"),
        unchecked_claim("argument.numbers, table.steps", "other numbers may prove the same bound"),
    ]
    if data.get("table") is None:
        why = "the certificate contains no table (version 1, or real-valued noise)"
        return [*claims, Claim("guarantee", str(data["guarantee"]), why, NOT_CONFIRMED)]
    noise, shift = Noise(data["table"]), round(data["sensitivity"])
    if shift != data["sensitivity"] or shift < 1 or data["releases"] < 1:
        return [*claims, Claim("sensitivity", str(data["sensitivity"]), "not an integer", REFUTED)]
    if data["shape"] == "unimodal":
        claims.append(equality_claim("shape", noise.is_unimodal, True))
    claims += _cost_claims(data, noise)
    if data["releases"] == 1:
        return [*claims, *_realized_delta_claims(data, lambda epsilon: (noise.delta(epsilon, shift),) * 2)]
    return claims + _composed_claims(data, noise, shift)


def _composed_claims(data: dict[str, Any], noise: Noise, shift: int) -> list[Claim]:
    """Return the claims about several releases with one noise, composed on grids."""
    # The largest loss of all releases under any shift, beyond which δ is 0; None if it is infinite.
    shifts = [shift] if noise.is_unimodal else range(1, shift + 1)
    infinite = any(noise.one_sided_mass(s) > 0 for s in shifts)
    largest = None if infinite else max(noise.largest_loss(s) for s in shifts) * data["releases"]
    deltas = [data["guarantee"]["delta"], *(point[2] for point in data["realised"])]

    def loss_on_grid(grid: Grid) -> GridDistribution:
        return grid.convolve_power(noise.loss_on_grid(grid, shift), data["releases"])

    def realized_claims(ends: Ends) -> list[Claim]:
        def delta_ends(epsilon: Any) -> tuple[Any, Any]:
            if largest is not None and epsilon >= largest:
                return arb(0), arb(0)
            return ends[0].delta(epsilon), ends[1].delta(epsilon)

        return [*_realized_delta_claims(data, delta_ends)]

    scales = max([data["guarantee"]["epsilon"], *(point[0] for point in data["realised"])]), smallest_positive(*deltas)
    return refine_claims(loss_on_grid, scales, realized_claims, common_spacing(noise.log_ratios))


def _realized_delta_claims(data: dict[str, Any], profile: Callable[[Any], tuple[Any, Any]]) -> Iterator[Claim]:
    """Check the stated δ at every stated ε, and that it is at most the promised one."""

    def delta_claim(name: str, at: float, stated: float) -> Claim:
        return upper_bound_claim(name, exact_interval(stated), *profile(exact_interval(at)))

    guarantee = data["guarantee"]
    yield delta_claim(f"guarantee.delta: delta({guarantee['epsilon']})", guarantee["epsilon"], guarantee["delta"])
    yield delta_claim("guarantee.total_variation: delta(0)", 0.0, guarantee["total_variation"])
    for number, (epsilon, promised, realized) in enumerate(data["realised"]):
        yield delta_claim(f"realized[{number}]: delta({epsilon})", epsilon, realized)
        yield limit_claim(f"realized[{number}]: realized and promised", realized, promised, realized <= promised)
    if data["realised"]:
        points = [(epsilon, realized) for epsilon, _, realized in data["realised"]]
        yield equality_claim("guarantee", (guarantee["epsilon"], guarantee["delta"]) in points, True)


def _cost_claims(data: dict[str, Any], noise: Noise) -> Iterator[Claim]:
    """Check the errors and the cost, computed exactly from the weights."""
    first, second = absolute_and_squared_moments(noise)
    yield equality_claim("mean_absolute_error", data["mean_absolute_error"], float(first))
    yield equality_claim("mean_squared_error", data["mean_squared_error"], float(second))
    reach = max((x for x, weight in enumerate(noise.half, start=1) if weight), default=0)
    yield equality_claim("worst_error", data["worst_error"], None if noise.block else float(reach))
    power = POWERS.get(data["cost"])
    if power is None:
        yield unchecked_claim("upper, lower, cost, argument, gap", "a cost that the document does not contain")
    else:
        exact = fraction_interval(first if power == 1 else second)
        yield upper_bound_claim("upper", exact_interval(data["upper"]), exact, exact)
        yield equality_claim("upper is no larger", bool(exact_interval(data["upper"]) <= exact * (1 + 2.0**-50)), True)


def absolute_and_squared_moments(noise: Noise) -> tuple[Fraction, Fraction]:
    """Return E|X| and E X², exactly; each repetition of an endless tail adds the length of its block."""
    length, ends, start = len(noise.block), sum(noise.block), noise.reach + 1
    first = Fraction(sum(x * w for x, w in enumerate(noise.half, start=1)))
    second = Fraction(sum(x * x * w for x, w in enumerate(noise.half, start=1)))
    if length:
        mean = Fraction(sum(k * w for k, w in enumerate(noise.block)) + noise.escape * length, ends)
        square = Fraction(sum(k * k * w for k, w in enumerate(noise.block)) + noise.escape * length * length, ends)
        square += 2 * noise.escape * length * mean / ends
        first += noise.escape_in * (start + mean)
        second += noise.escape_in * (start * start + 2 * start * mean + square)
    return 2 * first / TOTAL_WEIGHT, 2 * second / TOTAL_WEIGHT


def fraction_interval(value: Fraction) -> Any:
    """Return an interval that contains the fraction."""
    return arb(value.numerator) / value.denominator


def _cost_bound_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Check the lower bound on the cost of any noise, from the numbers of its argument."""
    argument, numbers, power = data["argument"], data["argument"]["numbers"], POWERS.get(data["cost"])
    promised = {(epsilon, delta) for epsilon, delta, _ in data["realised"]}
    if power is None or data.get("table") is None:
        yield unchecked_claim("lower, gap", f"proven by {argument['kind']}; not recomputed for real-valued noise")
        return
    if data["releases"] != 1:
        part = next((part for part in BOUNDS_BY_PART if part in numbers), None)
        if part is None:
            yield unchecked_claim("lower, gap", "the argument is not recomputed for several answers")
            return
        points = {(epsilon, delta) for epsilon, delta in numbers["points"]}
        yield equality_claim("argument.numbers: its points are promised", points <= promised, True)
        bound = BOUNDS_BY_PART[part](numbers, power, round(data["sensitivity"]), data["releases"])
    elif argument["kind"] == "dual":
        points = {(one["epsilon"], one["delta"]) for one in numbers["multipliers"]}
        yield equality_claim("argument.numbers: its points are promised", points <= promised, True)
        bound = _dual_lower_bound(numbers["multipliers"], power, round(data["sensitivity"]))
    elif "points" in numbers:
        points = {(epsilon, delta) for epsilon, delta in numbers["points"]}
        yield equality_claim("argument.numbers: its points are promised", points <= promised, True)
        bound = _points_lower_bound(sorted(points), power, round(data["sensitivity"]))
    else:
        yield unchecked_claim("lower, gap", "the argument is not recomputed")
        return
    # Compare the stated lower bound with the proven one.
    stated, proven = exact_interval(data["lower"]), bound.lower()
    stated_text, finding = f">= {shortest_float_text(stated)}", f"proven: >= {shortest_float_text(proven, -1)}"
    if stated * (1 - BOUND_TOLERANCE**1.5) > proven:
        yield Claim("lower", stated_text, f"{finding}: the stated bound could not be shown", NOT_CONFIRMED)
    else:
        yield Claim("lower", stated_text, finding, REFUTED if stated < proven * (1 - LOOSE_FRACTION) else CONFIRMED)


def _dual_lower_bound(multipliers: list[dict[str, Any]], power: int, sensitivity: int) -> Any:
    """Return the dual bound min_k (r_k + r_−k)/2 − Σ cap δ, for multipliers from 0 to their caps; else −1."""
    values = [[one["left"], *one["values"]] for one in multipliers]
    if any(not 0 <= y <= one["cap"] for one, row in zip(multipliers, values, strict=True) for y in row):
        return arb(-1)
    if any(not 1 <= one["shift"] <= sensitivity for one in multipliers):
        return arb(-1)
    last = max((abs(one["start"]) + len(one["values"]) + one["shift"] + 1 for one in multipliers), default=1)

    def multiplier_at(one: dict[str, Any], k: int) -> Any:
        index = k - one["start"]
        return exact_interval(one["left"] if index < 0 else one["values"][index] if index < len(one["values"]) else 0)

    growth = [exact_interval(one["epsilon"]).exp() for one in multipliers]

    def reduced_cost(k: int) -> Any:
        parts = (
            multiplier_at(one, k) - g * multiplier_at(one, k + one["shift"])
            for one, g in zip(multipliers, growth, strict=True)
        )
        return abs(k) ** power + sum(parts, arb(0))

    payment = sum((exact_interval(one["cap"]) * exact_interval(one["delta"]) for one in multipliers), arb(0))
    smallest = None
    for k in range(last + 2):
        require_time_left()
        value = ((reduced_cost(k) + reduced_cost(-k)) / 2 - payment).lower()
        smallest = value if smallest is None or value < smallest else smallest
    return smallest


def _points_lower_bound(points: list[tuple[float, float]], power: int, sensitivity: int) -> Any:
    """Return the lower bound on the cost that follows from points (ε, δ) alone.

    For sensitivity 1 it is 2 Σ (k^p − (k−1)^p) G_k, with G_1 = max (1 − δ)/(1 + e^ε) and G_(k+1) = max e^−ε (G_k − δ);
    otherwise max (1 − δ) λ over points with λ = 2 Σ_d d^p / (e^ε + 2Δ) ≤ 1, d ≤ Δ, from P(0) ≤ e^ε P(±d) + δ.
    """
    lines = [(exact_interval(epsilon).exp(), exact_interval(delta)) for epsilon, delta in points]
    if sensitivity == 1:
        tail, total, k = max(((1 - delta) / (1 + growth)).lower() for growth, delta in lines), arb(0), 1
        while tail > FAINT_TAIL and k < 1 << 20:
            require_time_left()
            total += 2 * (k**power - (k - 1) ** power) * tail
            tail, k = max(((tail - delta) / growth).lower() for growth, delta in lines), k + 1
        return total
    total = arb(2 * sum(d**power for d in range(1, sensitivity + 1)))
    levels = [(total / (growth + 2 * sensitivity), delta) for growth, delta in lines]
    return max((((1 - delta) * level).lower() for level, delta in levels if level <= 1), default=arb(0))


def _counted_lower_bound(numbers: dict[str, Any], power: int, sensitivity: int, releases: int) -> Any:
    """Return the lower bound for several answers from its lists of tails, if each implies the next; else −1.

    Of k answers, T is the number that are at least x, less the number that are at most −x − Δ: a sum of k steps 1, 0,
    −1 with probabilities p, 1 − p − q, q for one table, and −T for another. P(T ≥ t) − e^ε P(T ≤ −t) ≥ δ excludes that
    P(X ≥ x) ≥ p and P(X ≥ x + Δ) < q.
    """
    count, together, center, half = (numbers[name] for name in ("count", "together", "centre", "half"))
    width = sensitivity * together
    is_counted = 1 <= count <= MAX_COUNTED and 1 <= count * together <= releases and (together == 1 or power == 2)
    is_counted = is_counted and width * max(len(center), len(half)) <= MAX_COUNTED_CELLS
    if not (is_counted and center and all(0 <= tail <= 0.5 for tail in (*center, *half))):
        return arb(-1)
    centers, halves = [exact_interval(tail) for tail in center], [exact_interval(tail) for tail in (0.5, *half)]
    pairs = [(1 - centers[0], centers[0]), *pairwise(centers), *pairwise(halves)]
    if not all(_excludes_tails(p, q, numbers["points"], count) for p, q in pairs):
        return arb(-1)
    inner, total = (width + 1) // 2, arb(0)
    for x in range(1, width * max(len(center), len(half)) + 1):
        period, cell = divmod(x - 1, width)
        tails = center if cell < inner else half
        total += 2 * (x**power - (x - 1) ** power) * exact_interval(tails[period] if period < len(tails) else 0.0)
    return total / together


def _excludes_tails(p: Any, q: Any, points: list[tuple[float, float]], count: int) -> bool:
    """Return whether a point excludes P(X ≥ x) ≥ p with P(X ≥ x + Δ) < q."""
    require_time_left()
    masses = (arb_poly([q, 1 - p - q, p]) ** count).coeffs()
    at_least, at_most = arb(0), arb(0)
    growths = [(exact_interval(epsilon).exp(), exact_interval(delta)) for epsilon, delta in points]
    if any(delta == 0 and q <= p * growth ** (arb(-1) / count) for growth, delta in growths):
        return True
    for t in range(count, 0, -1):
        at_least, at_most = at_least + masses[count + t], at_most + masses[count - t]
        if any(at_least - growth * at_most >= delta > 0 for growth, delta in growths):
            return True
    return False


# Several answers by scores (docs/proofs/composed-noise.md). The levels c = (P(X ≥ w) + P(X ≥ w + 1))/2 have drops d =
# P(X ≥ w) − P(X ≥ w + 1); the measure dc/μ, μ linear between the levels listed, has cells with the mean levels c_j and
# mean drops D_j. An answer scores j or more with probability c_j + D_j/2, −j or less with c_j − D_j/2, or the reverse.


def _score_lower_bound(numbers: dict[str, Any], power: int, sensitivity: int, releases: int) -> Any:
    """Return the lower bound for several answers from a limit to ∫ d/μ; −1 if a part of the argument is wrong."""
    levels, values, edges, caps = (numbers[name] for name in ("levels", "values", "edges", "caps"))
    count, rows = numbers["count"], numbers["rows"]
    is_counted = sensitivity == 1 and 1 <= count <= min(releases, MAX_COUNTED) and _has_cells(numbers)
    if not (is_counted and 0 < len(rows) <= MAX_COUNTED_CELLS and _is_concave(levels, values)):
        return arb(-1)
    segments = [_segment_integrals(*ends) for ends in pairwise(zip(levels, values, strict=True))]
    cells = [segments[start:end] for start, end in pairwise(edges)][::-1]
    weights = [sum((plain for plain, _ in cell), arb(0)) for cell in cells]
    means = [sum((first for _, first in cell), arb(0)) / weight for cell, weight in zip(cells, weights, strict=True)]
    if not all(
        _is_cap(exact_interval(cap), mean, numbers["points"], count) for cap, mean in zip(caps, means, strict=True)
    ):
        return arb(-1)
    if not _ScoredDrops(numbers, weights, means).all_excluded():
        return arb(-1)
    total = exact_interval(numbers["limit"]) + 2 * sum((first for _, first in segments[: edges[0]]), arb(0))
    return _tail_program_bound(rows, exact_interval(numbers["price"]), total, power, levels, values)


BOUNDS_BY_PART: dict[str, Callable[..., Any]] = {
    "centre": _counted_lower_bound,
    "caps": _score_lower_bound,
}


def _has_cells(numbers: dict[str, Any]) -> bool:
    """Return whether the cells are between levels that are listed, up to ½, with a cap each, for one point."""
    edges, cell_count = numbers["edges"], len(numbers["caps"])
    is_scored = 1 <= cell_count <= MAX_SCORES and 1 <= numbers["threshold"] <= numbers["count"] * cell_count
    is_scored = is_scored and len(numbers["points"]) == 1 and numbers["limit"] > 0 < numbers["price"]
    if not (is_scored and len(edges) == cell_count + 1 and len(numbers["levels"]) == len(numbers["values"])):
        return False
    return edges[0] > 0 and edges[-1] == len(numbers["levels"]) - 1 and all(a < b for a, b in pairwise(edges))


def _is_concave(levels: list[float], values: list[float]) -> bool:
    """Return whether μ is positive, concave and non-decreasing for levels from 0 to ½."""
    if not (len(levels) > 1 and levels[0] == 0 and levels[-1] == 0.5 and all(a < b for a, b in pairwise(levels))):
        return False
    points = [(Fraction(level), Fraction(value)) for level, value in zip(levels, values, strict=True)]
    slopes = [(v - u) / (b - a) for (a, u), (b, v) in pairwise(points)]
    return values[0] > 0 and slopes[-1] >= 0 and all(a >= b for a, b in pairwise(slopes))


def _segment_integrals(start: tuple[float, float], end: tuple[float, float]) -> tuple[Any, Any]:
    """Return ∫ dc/μ and ∫ c dc/μ between two levels, where μ is linear."""
    (a, u), (b, v) = (tuple(map(exact_interval, one)) for one in (start, end))
    if start[1] == end[1]:
        return (b - a) / u, (b - a) * (a + b) / (2 * u)
    slope = (v - u) / (b - a)
    plain = (v / u).log() / slope
    return plain, (b - a - (u - a * slope) * plain) / slope


def _is_cap(cap: Any, mean: Any, points: list[tuple[float, float]], count: int) -> bool:
    """Return whether no mean drop at this mean level is larger: P(X ≥ w + 1) ≥ 0, or by counts of answers."""
    return bool(cap >= 2 * mean) or _excludes_tails(mean + cap / 2, mean - cap / 2, points, count)


class _ScoredDrops:
    """Mean drops of cells with a weighted total of at least the limit: all of them break the point (ε, δ).

    If an answer can choose its drops anew, knowing the sum T so far, the least value of P(T ≥ t) − e^ε P(T ≤ −t)
    follows step by step from the end: each step is linear in the drops. A box of drops is excluded if this is at least
    δ, otherwise halved. Values are at most 1 + e^ε; no step increases errors, and its own is below ``step_error``.
    """

    def __init__(self, numbers: dict[str, Any], weights: list[Any], means: list[Any]) -> None:
        (self.epsilon, self.delta), self.limit = numbers["points"][0], numbers["limit"]
        self.count, self.threshold, self.caps = numbers["count"], numbers["threshold"], list(numbers["caps"])
        self.weights = [float(weight) * (1 + FLOAT_ERROR) for weight in weights]
        self.means = [(float(mean) * (1 - FLOAT_ERROR), float(mean) * (1 + FLOAT_ERROR)) for mean in means]
        self.gamma = float(exact_interval(self.epsilon).exp()) * (1 + FLOAT_ERROR)
        self.reach = int(min(self.count * len(means), 4 * self.threshold // 3 + 1))
        step_error = 2.0**-47 * (len(means) + 4) * (1 + self.gamma) * (1 + self.limit / min(self.weights))
        self.allowed = self.delta * (1 + FLOAT_ERROR) + self.count * step_error

    def all_excluded(self) -> bool:
        """Return whether all boxes are excluded, within the limit of time and a number of boxes."""
        boxes, examined = [([0.0] * len(self.caps), self.caps)], 0
        while boxes and examined < MAX_BOXES:
            low, high = boxes.pop()
            slack = sum(w * x for w, x in zip(self.weights, high, strict=True)) * (1 + FLOAT_ERROR) - self.limit
            if slack < 0:
                continue
            least = [
                x * (1 - FLOAT_ERROR) - slack / w * (1 + FLOAT_ERROR) for w, x in zip(self.weights, high, strict=True)
            ]
            low, examined = [max(x, y) for x, y in zip(low, least, strict=True)], examined + 1
            if self._least_value(low, high) >= self.allowed:
                continue
            middle = (len(low) - 1) / 2
            sides = [
                w * (y - x) * (1 + 2 * abs(j - middle))
                for j, (w, x, y) in enumerate(zip(self.weights, low, high, strict=True))
            ]
            j = sides.index(max(sides))
            cut = (low[j] + high[j]) / 2
            boxes += [(low, [*high[:j], cut, *high[j + 1 :]]), ([*low[:j], cut, *low[j + 1 :]], high)]
        return not boxes

    def _least_value(self, low: list[float], high: list[float]) -> float:
        """Return nearly the least P(T ≥ t) − e^ε P(T ≤ −t) of drops in the box that are chosen step by step."""
        sums = range(-self.reach, self.reach + 1)
        values: list[float] = [
            1.0 if s >= self.threshold else -self.gamma if s <= -self.threshold else 0.0 for s in sums
        ]
        rest = max(0.0, self.limit - sum(w * x for w, x in zip(self.weights, low, strict=True)))
        cells = [
            (j, *mean, weight, x, weight * (y - x))
            for j, (mean, weight, x, y) in enumerate(zip(self.means, self.weights, low, high, strict=True))
        ]
        for _ in range(self.count):
            require_time_left()
            padded = [-self.gamma] * len(cells) + values + [values[-1]] * len(cells)
            rises = [b - a for a, b in pairwise(padded)]
            best, values = -self.gamma, []
            for place in range(len(cells), len(padded) - len(cells)):
                best = max(best, padded[place] + self._step_change(rises, place, cells, rest))
                values.append(best)
        return values[self.reach]

    def _step_change(self, rises: list[float], place: int, cells: list[Any], rest: float) -> float:
        """Return the least expected change of the value by one answer."""
        change: float = 0.0
        prices: list[tuple[float, float]] = []
        for j, least_mean, largest_mean, weight, drop, room in cells:
            up, down = rises[place + j], rises[place - j - 1]
            bend, slope = up - down, (up + down) / 2
            change += (least_mean if bend > 0 else largest_mean) * bend + drop * slope
            prices.append((slope / weight, room))
        for price, room in sorted(prices):
            if rest <= 0:
                break
            change += price * min(rest, room)
            rest -= room
        return change


def _tail_program_bound(
    rows: list[list[float]], price: Any, total: Any, power: int, levels: list[float], values: list[float]
) -> Any:
    """Return a lower bound on 2 Σ (x^p − (x−1)^p) h_x if Σ (h_x − h_(x+2))²/(4μ((h_x + h_(x+1) + h_(x+2))/3)) ≤ total.

    A row (k, a, b), with a + b c ≥ μ(c), says that the term of x is at least (2 k drop − k² (a + b level))/4.
    """
    knots = [(exact_interval(level), exact_interval(value)) for level, value in zip(levels, values, strict=True)]
    slopes = [arb(2 * (x**power - (x - 1) ** power)) for x in range(1, len(rows) + 3)]
    slopes, bound = [arb(0), *slopes], -price * total
    for x, row in enumerate(rows):
        require_time_left()
        kappa, base, slope = map(exact_interval, row)
        if not (kappa >= 0 and all(base + slope * level >= value for level, value in knots)):
            return arb(-1)
        square = price * kappa * kappa / 4
        bound -= square * base
        slopes[x] += price * kappa / 2 - square * slope / 3
        slopes[x + 1] -= square * slope / 3
        slopes[x + 2] -= price * kappa / 2 + square * slope / 3
    bound, slopes[1] = bound + slopes[0], slopes[1] - slopes[0]  # h_0 = 1 − h_1
    return bound + sum((slope.lower() for slope in slopes[1:] if not slope >= 0), arb(0)) / 2
