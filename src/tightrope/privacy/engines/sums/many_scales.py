"""Copies of several flat laws, summed by a recurrence of positive terms (``docs/proofs/laplace-sum.md``).

Of group i, of width w_i (in units of the widest), n_i of k_i losses are uniform, W = Σ n_i w_i, N = Σ n_i. With Y their
sum and S_{n,p}(t) = (u/2)^p E (Y − t)₊^p / p!, u the unit,
    S_{n,p}(t) = Σ_i n_i ((W − t) S_{n−e_i,p}(t − w_i) + (W + t) S_{n−e_i,p}(t + w_i)) / (2W (N + p)),
positive terms for |t| < W. For t ≤ −W a moment, for t ≥ W nothing. Widths are rounded so that every t is exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.sums.positive_series import (
    binomial,
    likely,
    odd,
    over_factorials,
    powers_for,
    shifted,
    single_moments,
)
from tightrope.privacy.laws.flat import Flat

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
Counts = tuple[int, ...]
MOST_STATES = 600
"""Ways to choose how many losses of each group are uniform."""
MOST_PLACES = 30_000
"""And the places t of all of them."""
WIDEST = 300.0
NARROWEST = 1e-6
"""The least scale, relative to the largest: rounding leaves it nine digits."""


@dataclass(frozen=True)
class ManyScales:
    """``counts`` copies of the ``flats``; places are in units of the widest ε."""

    flats: tuple[Flat, ...]
    counts: Counts

    @property
    def unit(self) -> float:
        return max(flat.epsilon for flat in self.flats)

    @property
    def fineness(self) -> float:
        """Places are multiples of one over this: four times the sum of all widths still has 53 binary digits."""
        return 2.0 ** (51 - math.ceil(math.log2(sum(self.counts))))

    @cached_property
    def widths(self) -> tuple[float, ...]:
        """The scales as places."""
        return tuple(round(flat.epsilon / self.unit * self.fineness) / self.fineness for flat in self.flats)

    @cached_property
    def slack(self) -> float:
        """Nats by which rounding the widths may move the sum."""
        pairs = zip(self.flats, self.widths, self.counts, strict=True)
        moved = sum(n * abs(Fraction(flat.epsilon) - Fraction(w) * Fraction(self.unit)) for flat, w, n in pairs)
        return float(moved) * (1 + 2 * ROUND_OFF)

    def at(self, theta: float) -> tuple[float, float, float]:
        """Log of a factor and what it multiplies to δ₀ at θ units; the relative error."""
        logs = [k * math.log(flat.whole) for flat, k in zip(self.flats, self.counts, strict=True)]
        log_scale = math.fsum(logs) + theta * self.unit / 2
        reach = math.fsum(k * w for k, w in zip(self.counts, self.widths, strict=True)) - theta
        if reach <= 0:
            return log_scale, 0.0, 0.0
        powers = powers_for(reach * self.unit / 2)
        found: list[Floats] = []
        total = 0.0
        for state in _states(self.flats, self.counts, self.widths, powers):
            t = theta + state.shifts
            found.append(state.sums(t, found))
            total += state.value(t, found[-1])
        copies = sum(self.counts)
        roundings = copies * (powers + 2 * len(logs) + 32) + 8 * powers + 200
        return log_scale, total, ROUND_OFF * (roundings + 4 * abs(log_scale) + 4 * math.fsum(map(abs, logs)))


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """How a state follows from one with a uniform loss less: ``copies`` n_i, and the rows of t − w_i and t + w_i."""

    state: int
    copies: int
    down: Indices
    up: Indices


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Given how many losses are uniform: the places t − θ of the others, with chances; moments of the uniform."""

    unit: float
    shifts: Floats
    chances: Floats
    half_width: float
    """W."""
    growth: float
    """E e^{uY/2}."""
    moments: Floats
    inverse: Floats
    """1/(N + p)."""
    links: tuple[_Link, ...]

    def sums(self, t: Floats, before: list[Floats]) -> Floats:
        """S at every t, shape [places, powers]."""
        beyond = t <= -self.half_width
        result = np.zeros((len(t), len(self.inverse)))
        outside = over_factorials(-t[beyond] * self.unit / 2, len(self.inverse))
        result[beyond] = outside @ self.moments
        inside = np.flatnonzero(np.abs(t) < self.half_width)
        if len(inside):
            result[inside] = self._followed(t[inside], inside, before)
        return result

    def _followed(self, t: Floats, rows: Indices, before: list[Floats]) -> Floats:
        low, high = (self.half_width - t)[:, None], (self.half_width + t)[:, None]
        total = np.zeros((len(t), len(self.inverse)))
        for link in self.links:
            last = before[link.state]
            total += link.copies * (low * last[link.down[rows]] + high * last[link.up[rows]])
        return np.asarray(total * (self.inverse / (2 * self.half_width)))

    def value(self, t: Floats, sums: Floats) -> float:
        """E 2 sinh(u (S − θ)/2)₊ with this many uniform losses, times their chance."""
        whole = self.growth * 2 * np.sinh(np.maximum(-t, 0.0) * self.unit / 2)
        return float(self.chances @ np.where(t <= -self.half_width, whole, 2 * np.sum(sums, axis=1)))


@lru_cache(maxsize=8)
def _states(flats: tuple[Flat, ...], counts: Counts, widths: tuple[float, ...], powers: int) -> tuple[_State, ...]:
    """What does not depend on θ, for every way to choose; each after those with less."""
    unit = max(flat.epsilon for flat in flats)
    chances = [binomial(k, flat.odds) for flat, k in zip(flats, counts, strict=True)]
    most = tuple(likely(row) for row in chances)
    place = {n: index for index, n in enumerate(_choices(most))}
    moments = _moments(tuple(single_moments(w * unit / 2, powers) for w in widths), most)
    growths = [math.sinh(w * unit / 2) / (w * unit / 2) for w in widths]
    states = []
    for n in place:
        rest = tuple(k - m for k, m in zip(counts, n, strict=True))
        half_width = math.fsum(m * w for m, w in zip(n, widths, strict=True))
        states.append(
            _State(
                unit,
                _outer_sum([_placed(w, k) for w, k in zip(widths, rest, strict=True)]),
                math.prod(float(row[m]) for row, m in zip(chances, n, strict=True)) * _signs(rest),
                half_width,
                math.prod(growth**m for growth, m in zip(growths, n, strict=True)),
                shifted(moments[n][None, :])[0].copy(),
                1 / (sum(n) + odd(powers)),
                tuple(_link(place, n, rest, i) for i, m in enumerate(n) if m),
            )
        )
    return tuple(states)


def _choices(most: Counts) -> Iterator[Counts]:
    return itertools.product(*(range(m + 1) for m in most))


def _moments(singles: tuple[Floats, ...], most: Counts) -> dict[Counts, Floats]:
    """E (uY/2)^r/r!, r even, for every choice."""
    found = {(0,) * len(most): np.eye(1, len(singles[0]))[0]}
    for n in _choices(most):
        group = next((i for i, m in enumerate(n) if m), None)
        if group is not None:
            found[n] = np.convolve(found[_less(n, group)], singles[group])[: len(singles[0])]
    return found


def _less(n: Counts, group: int) -> Counts:
    return (*n[:group], n[group] - 1, *n[group + 1 :])


def _placed(width: float, count: int) -> Floats:
    """The sum of ``count`` signs times the width, for 0, 1, … minus signs."""
    return np.asarray(width * (count - 2 * np.arange(count + 1)), dtype=np.float64)


def _outer_sum(rows: list[Floats]) -> Floats:
    """Every sum of one number of each row, the last row fastest."""
    whole = np.zeros(1)
    for row in rows:
        whole = np.add.outer(whole, row).ravel()
    return whole


def _signs(rest: Counts) -> Floats:
    """Chances of every number of minus signs, group by group."""
    whole = np.ones(1)
    for count in rest:
        whole = np.multiply.outer(whole, binomial(count, 1.0)).ravel()
    return whole


def _link(place: dict[Counts, int], n: Counts, rest: Counts, group: int) -> _Link:
    """With one loss of the group a sign instead, t − w is one minus sign more and t + w as many."""
    here = np.indices([k + 1 for k in rest]).reshape(len(rest), -1)
    wider = [k + 1 + (i == group) for i, k in enumerate(rest)]
    more = here + (np.arange(len(rest)) == group)[:, None]
    down, up = (np.ravel_multi_index(tuple(rows), wider) for rows in (more, here))
    return _Link(place[_less(n, group)], n[group], down, up)


def fit(flats: tuple[Flat, ...], counts: Counts) -> bool:
    """Whether doubles and a moment of time suffice."""
    states = math.prod(k + 1 for k in counts)
    places = math.prod((k + 1) * (k + 2) // 2 for k in counts)
    reach = math.fsum(k * flat.epsilon for flat, k in zip(flats, counts, strict=True))
    scales = [flat.epsilon for flat in flats]
    near = min(scales) >= NARROWEST * max(scales)
    return near and states <= MOST_STATES and places <= MOST_PLACES and reach <= WIDEST
