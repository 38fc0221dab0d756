"""Lower bounds on the cost of noise for several releases, from the sum of scores of all answers.

``ScoreTest`` limits a weighted mean of the drops: ∫ d(c)/μ(c) dc ≤ L over levels c up to ½, with a concave μ > 0. In
terms of the tails h_x = P(X ≥ x) of integer noise of sensitivity 1,

    ∫ d/μ dc ≥ ¼ Σ_x (h_x − h_{x+2})²/μ((h_x + h_{x+1} + h_{x+2})/3),

which is convex, and the cost is linear: a convex program, whose dual proves the bound (docs/proofs/composed-noise.md).

1. The weight 1/μ and the test (``ReferenceNoise``, ``LevelWeight``, ``find_score_cut``).
2. The program and its dual (``ScoreBound``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy

from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.documents.noise import Argument, NoiseCertificate
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.composed.composed_bound import (
    LARGEST_EXPONENT,
    ComposedBound,
    ScoreTest,
    largest_scale,
    level_cap,
    threshold_slopes,
)
from tightrope.noise.program.certificate import CertificateBuilder, CostBound, certified_cost, table_certificate
from tightrope.noise.program.closed_form import round_down
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

# 1. The weight and the test. Nothing here has to be accurate except ``segment_integrals`` and the caps.

SMALLEST_LEVEL = 1e-7
"""Smaller levels of the reference noise are ignored."""
SCORE_STEP = 1e-9
"""Scores of the reference noise grow by at least this from cell to cell."""
LEVELS_PER_CELL = 12
"""Levels in each cell between which μ is linear."""
TAIL_PARTS = (0.0, 0.1, 0.3, 0.6)
"""Levels below the last cell, as fractions of its lower end."""
FEW_RELEASES = 20
FEW_SCORES, MANY_SCORES = (5, 3), (6,)
"""The numbers of positive scores that are tried, for few and for more releases.

More scores are sharper, but leave more to the choice of drops in each step.
"""
LAST_LEVELS = 1e-4, 5e-5
"""The lower end of the last cell, for few and for more releases."""
MATCHING_STEPS = 8
MATCHING_RATE = 0.7
"""Steps in which the weights are matched to the slopes of the test, and the part of the mismatch that each corrects."""
SMALLEST_SLOPE = 1e-6
"""Smaller slopes, relative to the largest, are not matched."""
INNERMOST_PART = 0.1
"""μ at level 0, as a fraction of its value at the next knot."""
LEAST_BEND = 1e-9
"""Slopes of μ fall by at least this in all, relative to its largest value, so that rounded values are concave."""
INTEGRAL_ERROR = 1e-11
"""Upper bound on the relative error of integrals over a cell."""
LIMIT_STEPS = (1.005, 1.01, 1.015, 1.02, 1.025, 1.03, 1.035, 1.04, 1.05, 1.06, 1.075, 1.1, 1.15, 1.25)
"""Limits that are tried for the weighted drops, relative to those of the reference noise."""


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceNoise:
    """The noise that the test is best against: at normal quantiles of levels c, log (drop/φ) and scores."""

    quantiles: Floats
    log_ratios: Floats
    scores: Floats

    @classmethod
    def from_probabilities(cls, half: Floats) -> Self:
        """Return the reference for P(X = 0), P(X = 1), …"""
        tails = np.append(np.cumsum(half[::-1])[::-1], 0.0)
        levels, logs = (tails[:-1] + tails[1:]) / 2, np.log(np.maximum(half, 1e-300))
        scores = np.concatenate([[0.0], (logs[:-2] - logs[2:]) / 2])
        quantiles = normal_quantiles(levels[:-1])
        is_used = levels[:-1] > SMALLEST_LEVEL
        rising = np.maximum.accumulate(scores[is_used]) + SCORE_STEP * np.arange(is_used.sum())
        used = quantiles[is_used]
        return cls(used, logs[:-1][is_used] + used**2 / 2, rising)

    def drops(self, levels: Floats) -> Floats:
        """Return the drops at these levels."""
        quantiles = normal_quantiles(levels)
        return np.asarray(np.exp(np.interp(quantiles, self.quantiles, self.log_ratios) - quantiles**2 / 2))

    def equal_scores(self, last_level: float, count: int) -> Floats:
        """Return ``count`` + 1 levels from ½ down, between which the score grows equally."""
        last = float(np.interp(normal_quantiles(np.array([last_level]))[0], self.quantiles, self.scores))
        levels = scipy.special.ndtr(-np.interp(np.linspace(0, last, count + 1), self.scores, self.quantiles))
        levels[0], levels[-1] = 0.5, last_level
        return np.asarray(levels)


def normal_quantiles(levels: Floats) -> Floats:
    """Return z with P(Z ≥ z) = c for standard normal Z."""
    return np.asarray(-scipy.special.ndtri(levels))


@dataclass(frozen=True, slots=True, eq=False)
class LevelWeight:
    """The weight 1/μ of levels from 0 to ½: μ is concave, linear between ``knots``; cells end at ``edges``.

    ``slopes`` are those of a smooth concave function through the values at the knots.
    """

    knots: Floats
    values: Floats
    slopes: Floats
    edges: tuple[int, ...]

    @classmethod
    def from_values(cls, knots: Floats, values: Floats, edges: tuple[int, ...]) -> Self:
        """Return a weight with a concave μ near the values."""
        widths = np.diff(knots)
        chords = scipy.optimize.isotonic_regression(np.diff(values) / widths, weights=widths, increasing=False).x
        chords = np.maximum(chords, 0.0) + LEAST_BEND * values.max() * np.linspace(1, 0, len(chords))
        slopes = np.concatenate([chords[:1], (chords[1:] + chords[:-1]) / 2, chords[-1:]])
        steps = (slopes[1:] + slopes[:-1]) / 2 * widths
        return cls(knots, values[0] + np.concatenate([[0.0], np.cumsum(steps)]), slopes, edges)

    @property
    def is_regular(self) -> bool:
        """Whether μ is positive, exactly concave, and at most 1000 times as large at the next knot.

        So integrals are accurate.
        """
        if not ((self.values[:-1] > 0).all() and (self.values[1:] < 1e3 * self.values[:-1]).all()):
            return False
        knots, values = (list(map(Fraction, array.tolist())) for array in (self.knots, self.values))
        slopes = [(v - u) / (b - a) for (a, b), (u, v) in zip(pairwise(knots), pairwise(values), strict=True)]
        return slopes[-1] >= 0 and all(a >= b for a, b in pairwise(slopes))

    @property
    def segment_integrals(self) -> tuple[Floats, Floats]:
        """The integrals of 1/μ and of c/μ between knots, with relative errors below ``INTEGRAL_ERROR``."""
        widths, sums = np.diff(self.knots), self.values[1:] + self.values[:-1]
        ratios = np.diff(self.values) / sums
        is_flat = ratios < 1e-3
        square, bent = ratios * ratios, np.where(is_flat, 0.5, ratios)
        factors = np.where(is_flat, 1 + square * (1 / 3 + square / 5), np.arctanh(bent) / bent)
        plain = 2 * widths / sums * factors
        centered = widths**2 / sums * np.where(is_flat, -ratios * (1 / 3 + square / 5), (1 - factors) / bent)
        return plain, (self.knots[1:] + self.knots[:-1]) / 2 * plain + centered

    def cell_sums(self, segments: Floats) -> Floats:
        """Return the sums of the segments of each cell, from the cell at ½ down."""
        return np.asarray(np.add.reduceat(segments, self.edges[:-1])[::-1])

    @property
    def cell_levels(self) -> tuple[Floats, Floats]:
        """λ_j = ∫ 1/μ over each cell, and its mean level, from the cell at ½ down."""
        plain, first = map(self.cell_sums, self.segment_integrals)
        return plain, first / plain

    def cell_drops(self, drops: Floats) -> Floats:
        """Return about the mean drop in each cell, from the drops at the knots."""
        plain = self.segment_integrals[0]
        return self.cell_sums((drops[1:] + drops[:-1]) / 2 * plain) / self.cell_sums(plain)

    @property
    def tail_limit(self) -> float:
        """An upper bound on ∫ d/μ below the last cell, where d ≤ 2c."""
        return float(2 * self.segment_integrals[1][: self.edges[0]].sum()) * (1 + INTEGRAL_ERROR)

    def tangents(self, levels: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the smooth μ at these levels, its slopes, and its second derivatives."""
        index = np.clip(np.searchsorted(self.knots, levels, side="right") - 1, 0, len(self.knots) - 2)
        bends = (np.diff(self.slopes) / np.diff(self.knots))[index]
        beyond = levels - self.knots[index]
        slopes = self.slopes[index] + bends * beyond
        return self.values[index] + (self.slopes[index] + slopes) / 2 * beyond, slopes, bends


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCut:
    """A proven limit: the weighted drops ∫ d/μ of every noise, over the cells, are below ``limit``."""

    weight: LevelWeight
    test: ScoreTest
    limit: float

    @property
    def total_limit(self) -> float:
        """The limit to ∫ d/μ over all levels, rounded up."""
        return (self.limit + self.weight.tail_limit) * (1 + 4 * ROUND_OFF)


def find_score_cut(
    point: tuple[float, float], count: int, score_count: int, reference: ReferenceNoise
) -> ScoreCut | None:
    """Return the limit to the drops by the test that is best against this noise; None if none is proven."""
    start = reference_weight(reference, LAST_LEVELS[count > FEW_RELEASES], score_count)
    if not start.is_regular:
        return None
    weight, scale, threshold = matched_test(reference, start, point, count)
    weights, levels = weight.cell_levels
    ends = (levels * (1 - INTEGRAL_ERROR), np.minimum(levels * (1 + INTEGRAL_ERROR), 0.5))
    caps = np.array([level_cap(low, high, point, count) for low, high in zip(*ends, strict=True)])
    test = ScoreTest(point, count, threshold, ends, weights * (1 + INTEGRAL_ERROR), caps)
    reached = scale * float(weights @ weight.cell_drops(reference.drops(weight.knots)))
    limit = test.least_excluded(reached, LIMIT_STEPS)
    return None if math.isinf(limit) else ScoreCut(weight, test, limit)


def reference_weight(reference: ReferenceNoise, last_level: float, score_count: int) -> LevelWeight:
    """Return the weight 1/density of the reference noise, with cells of equal scores."""
    ends = reference.equal_scores(last_level, score_count)[::-1]
    inner = [np.linspace(a, b, LEVELS_PER_CELL, endpoint=False) for a, b in pairwise(ends)]
    knots = np.concatenate([np.array(TAIL_PARTS) * last_level, *inner, [0.5]])
    values = reference.drops(knots)
    values[0] = values[1] * INNERMOST_PART
    edges = tuple(len(TAIL_PARTS) + LEVELS_PER_CELL * cell for cell in range(score_count + 1))
    return LevelWeight.from_values(knots, values, edges)


def matched_test(
    reference: ReferenceNoise, weight: LevelWeight, point: tuple[float, float], count: int
) -> tuple[LevelWeight, float, int]:
    """Return a weight whose λ_j are about proportional to the slopes of the test, and its scale and threshold."""
    drops_at_knots = reference.drops(weight.knots)
    logs, least_spread = np.zeros(len(weight.edges) - 1), math.inf
    best, scale, threshold = weight, 0.0, 1
    for _ in range(MATCHING_STEPS):
        weights, levels = weight.cell_levels
        drops = weight.cell_drops(drops_at_knots)
        new_scale, new_threshold = largest_scale(levels, drops, point, count)
        slopes = threshold_slopes(levels, new_scale * drops, math.exp(point[0]), count, new_threshold)
        mismatch = np.log(np.maximum(slopes, SMALLEST_SLOPE * slopes.max()) / weights)
        if not np.ptp(mismatch) < least_spread:
            break
        best, scale, threshold, least_spread = weight, new_scale, new_threshold, float(np.ptp(mismatch))
        logs += (MATCHING_RATE if logs.any() else 1.0) * mismatch
        factors = np.interp(normal_quantiles(weight.knots[1:]), normal_quantiles(levels), logs - logs[0])
        values = drops_at_knots * np.exp(-np.concatenate([factors[:1], factors]))
        values[0] = values[1] * INNERMOST_PART
        weight = LevelWeight.from_values(weight.knots, values, weight.edges)
        if not weight.is_regular:
            break
    return best, scale, threshold


# 2. The program: the least cost of tails h ≥ 0 with C(h) ≤ L, and the dual that proves it.

ROOT_STEPS = 12
"""Steps in the search of the price at which C(h) = L."""
NEWTON_STEPS = 60
NEWTON_TOLERANCE = 1e-13
LONGEST_TABLE = 4000
"""For noise with larger errors the bound is not computed."""
MORE_TAILS = 10
"""Tails beyond the largest error of the noise at hand."""
IGNORED_TAIL = 1e-12
"""Smaller tails of the noise at hand are ignored."""


@dataclass(frozen=True, slots=True, eq=False)
class TailProgram:
    """Cost plus price times C(h), as a function of the tails h_1, h_2, …, h_N."""

    weight: LevelWeight
    cost_slopes: Floats
    drop_rows: Floats
    level_rows: Floats

    @classmethod
    def from_costs(cls, weight: LevelWeight, cost_slopes: Floats) -> Self:
        """Return the program; h_0 = 1 − h_1 by symmetry."""
        rows = np.ones((len(cost_slopes) + 1, 1))
        drops, levels = rows * np.array([1.0, 0.0, -1.0]), rows * np.full(3, 1 / 3)
        drops[0], levels[0] = (0.0, -1.0, -1.0), (0.0, 0.0, 1 / 3)
        return cls(weight, cost_slopes, drops, levels)

    def drops_and_levels(self, tails: Floats) -> tuple[Floats, Floats]:
        """Return h_x − h_{x+2} and the level between for x = 0, …, N."""
        windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([[0.0], tails, [0.0, 0.0]]), 3)
        drops, levels = (windows * self.drop_rows).sum(axis=1), (windows * self.level_rows).sum(axis=1)
        drops[0], levels[0] = drops[0] + 1, levels[0] + 1 / 3
        return drops, levels

    def weighted_drops(self, tails: Floats) -> float:
        """Return C(h)."""
        drops, levels = self.drops_and_levels(tails)
        return float((drops**2 / self.weight.tangents(levels)[0]).sum() / 4)

    def value(self, tails: Floats, price: float) -> float:
        return float(self.cost_slopes @ tails) + price * self.weighted_drops(tails)

    def derivatives(self, tails: Floats, price: float) -> tuple[Floats, Floats]:
        """Return the gradient and the upper bands of the Hessian."""
        drops, levels = self.drops_and_levels(tails)
        values, slopes, bends = self.weight.tangents(levels)
        ratios = drops / values
        first = price / 2 * ratios
        second = -price / 4 * ratios**2 * slopes
        local = first[:, None] * self.drop_rows + second[:, None] * self.level_rows
        gradient, count = self.cost_slopes.copy(), len(tails)
        bands = np.zeros((3, count + 3))
        mixed = self.drop_rows - (ratios * slopes)[:, None] * self.level_rows
        curvature = price / (2 * values)
        bent = -price / 4 * ratios**2 * bends
        total = np.zeros(count + 3)
        for one in range(3):
            total[one : one + count + 1] += local[:, one]
            for other in range(one, 3):
                entry = curvature * mixed[:, one] * mixed[:, other]
                entry = entry + bent * self.level_rows[:, one] * self.level_rows[:, other]
                bands[2 - other + one, other : other + count + 1] += entry
        return gradient + total[1 : count + 1], bands[:, 1 : count + 1]

    def least_tails(self, start: Floats, price: float) -> Floats:
        """Return the tails of least value, by Newton's method on those that are positive."""
        tails, value = start, self.value(start, price)
        for _ in range(NEWTON_STEPS):
            gradient, bands = self.derivatives(tails, price)
            is_fixed = (tails <= 0) & (gradient > 0)
            bands[2, is_fixed] = 1.0
            for offset in (1, 2):
                row = bands[2 - offset, offset:]
                row[is_fixed[offset:] | is_fixed[:-offset]] = 0.0
            bands[2] += 1e-12 * bands[2].max()
            move = scipy.linalg.solveh_banded(bands, np.where(is_fixed, 0.0, -gradient))
            size, moved = 1.0, np.maximum(tails + move, 0.0)
            while (new_value := self.value(moved, price)) > value and size > 1e-6:
                size /= 2
                moved = np.maximum(tails + size * move, 0.0)
            if not new_value < value * (1 - NEWTON_TOLERANCE):
                break
            tails, value = moved, new_value
        return tails

    def priced_tails(self, start: Floats, limit: float) -> tuple[Floats, float]:
        """Return tails with C(h) near the limit, and the price at which they have the least value."""
        tails = start
        price = 2 * float(self.cost_slopes @ tails) / self.weighted_drops(tails)
        for _ in range(ROOT_STEPS):
            tails = self.least_tails(tails, price)
            ratio = self.weighted_drops(tails) / limit
            if abs(ratio - 1) < 1e-6:
                break
            price *= ratio**3
        return tails, price


def dual_rows(weight: LevelWeight, drops: Floats, levels: Floats) -> list[list[float]]:
    """Return κ, α and β for each x, with α + β c ≥ μ(c): drop²/μ ≥ 2κ drop − κ² (α + β level)."""
    values, slopes, _ = weight.tangents(levels)
    bases = values - slopes * levels
    excess = weight.values[None, :] - (bases[:, None] + slopes[:, None] * weight.knots[None, :])
    bases = bases + np.maximum(excess.max(axis=1), 0.0) + 1e-14 * weight.values.max()
    return [
        list(row) for row in zip(np.maximum(drops / values, 0.0).tolist(), bases.tolist(), slopes.tolist(), strict=True)
    ]


def dual_bound(
    rows: Sequence[Sequence[float]], price: float, limit: float, cost_slopes: Sequence[Fraction]
) -> Fraction:
    """Return a lower bound on Σ cost_slopes[x − 1] h_x, exactly, for all tails 0 ≤ h_x ≤ ½ with C(h) ≤ ``limit``."""
    exact_price = Fraction(price)
    bound = -exact_price * Fraction(limit)
    slopes = [Fraction(0), *cost_slopes]
    slopes += [Fraction(0)] * (len(rows) + 2 - len(slopes))
    for x, row in enumerate(rows):
        kappa, base, slope = map(Fraction, row)
        level_part = exact_price * kappa**2 / 4
        bound -= level_part * base
        drop_part = exact_price * kappa / 2
        third = level_part * slope / 3
        slopes[x] += drop_part - third
        slopes[x + 1] -= third
        slopes[x + 2] -= drop_part + third
    bound += slopes[0]
    slopes[1] -= slopes[0]
    return bound + sum((min(slope, Fraction(0)) for slope in slopes[1:]), Fraction(0)) / 2


SCORED = (
    "Levels are c = (P(X >= w) + P(X >= w + 1))/2, with ties split at random, and drops d = P(X >= w) - P(X >= w + 1). "
    "The measure dc/mu, with mu linear between its values at levels, has the cells between levels[edges]; cell j, from "
    "1/2 down, has the mean level c_j and the mean drop D_j <= caps[j]. An answer scores j or more with probability "
    "c_j + D_j/2 and -j or less with c_j - D_j/2; the reverse for the neighboring table. So the sum T of the scores of "
    "count answers has P(T >= threshold) - e^epsilon P(T <= -threshold) <= delta; by branch and bound, the integral of "
    "d/mu over the cells is below limit. With h_x = P(X >= x), the integral over all levels is at least sum_x (h_x - "
    "h_(x+2))^2/(4 mu((h_x + h_(x+1) + h_(x+2))/3)), each term at least (2 k drop - k^2 (a + b level))/4 for rows [k, "
    "a, b] with a + b c >= mu(c). With price as its multiplier, phi(0) + 2 sum_x (phi(x) - phi(x-1)) h_x is at least "
    "the lower bound. Proof: docs/proofs/composed-noise.md."
)
LEAST_COUNT, MAX_COUNT = 7, 1000
"""Fewer releases are better served by counts, and of more only the first are scored."""


@dataclass(frozen=True, eq=False)
class ScoreBound:
    """The lower bound on the cost of each of several releases by scores that are best against a table."""

    single_bound: CostBound
    releases: int
    table: NoiseTable

    @cached_property
    def proof(self) -> tuple[float, Argument] | None:
        """The lower bound, rounded down, and its argument; None if there is none."""
        points = self.single_bound.privacy_target.without_cap_point.points
        counted = [(epsilon, delta) for epsilon, delta in points if delta > 0 and epsilon <= LARGEST_EXPONENT]
        is_supported = self.single_bound.sensitivity == 1 and self.releases >= LEAST_COUNT and bool(counted)
        if not (is_supported and self.table.tail is None and len(self.table.half) <= LONGEST_TABLE):
            return None
        count, point = min(self.releases, MAX_COUNT), min(counted, key=lambda point: gaussian_mu(*point))
        half = np.array([self.table.center, *self.table.half], dtype=np.float64)
        half /= 2 * half.sum() - half[0]
        tails, reference = np.cumsum(half[::-1])[::-1][1:], ReferenceNoise.from_probabilities(half)
        score_counts = FEW_SCORES if count <= FEW_RELEASES else MANY_SCORES
        cuts = (find_score_cut(point, count, score_count, reference) for score_count in score_counts)
        proofs = [self._bound_from_cut(cut, tails) for cut in cuts if cut is not None]
        return max(proofs, key=lambda proof: proof[0], default=None)

    def _bound_from_cut(self, cut: ScoreCut, tails: Floats) -> tuple[float, Argument]:
        """Return the bound that follows from the limit to the drops; ``tails`` are where the search starts."""
        start = np.concatenate([tails[tails > IGNORED_TAIL], np.zeros(MORE_TAILS)])
        costs = [Fraction(cost) for cost in self.single_bound.error_costs(len(start) + 2).tolist()]
        slopes = [2 * (b - a) for a, b in pairwise(costs)]
        program = TailProgram.from_costs(cut.weight, np.array([float(slope) for slope in slopes[: len(start)]]))
        best, price = program.priced_tails(start, cut.total_limit)
        rows = dual_rows(cut.weight, *program.drops_and_levels(best))
        bound = round_down(costs[0] + dual_bound(rows, price, cut.total_limit, slopes))
        test = cut.test
        numbers: dict[str, Any] = {
            "points": [list(test.point)],
            "count": test.count,
            "threshold": test.threshold,
            "levels": cut.weight.knots.tolist(),
            "values": cut.weight.values.tolist(),
            "edges": list(cut.weight.edges),
            "caps": test.caps.tolist(),
            "limit": cut.limit,
            "price": price,
            "rows": rows,
        }
        return bound, Argument("theorem", SCORED, numbers)


@dataclass(frozen=True)
class ComposedProof(CertificateBuilder):
    """Builds the certificate of noise for several releases under one budget."""

    bound: ComposedBound

    def build_certificate(self, table: NoiseTable) -> NoiseCertificate:
        single_bound, releases = self.bound.single_bound, self.bound.releases
        upper = certified_cost(table, single_bound.cost)
        return table_certificate(
            table, single_bound, self.bound_and_argument(table), upper, "unimodal", releases=releases
        )

    def bound_and_argument(self, table: NoiseTable) -> tuple[float, Argument]:
        """Return the larger of the bounds by counts and by scores, and its argument."""
        counted = self.bound.lower_bound
        scored = ScoreBound(self.bound.single_bound, self.bound.releases, table).proof
        return scored if scored is not None and scored[0] > counted else (counted, self.bound.bound_argument)
