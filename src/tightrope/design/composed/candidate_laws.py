"""Laws that compete for the least noise under composition: the classic families, each at its least size.

Sizes are found in floats (``composed_curve``); what wins becomes an integer table and is certified from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from tightrope.design.composed.composed_curve import Indices, Released, normalised
from tightrope.design.composed.composed_question import Question
from tightrope.errors import BudgetRefused
from tightrope.numerics.arrays import Floats

LISTED_NATS = 54.0
"""Weights below e^{−54} of the largest are not listed: in whole numbers of 2⁻¹²⁸ they have losses off the lattice."""
BEYOND = 14.0
"""Nats below δ/k at which tails end while searching."""
LATTICE_VARIANCE = 1e-5
"""Share of the variance of the loss that the lattice of a search may add."""
LAW_WITHIN = 1e-9
"""How near the least size of a law is approached."""
STEP_PARTS = 64
"""The last, partial step of a truncated law has a height in this many parts of a step."""
ENDS = (0.0, 0.3, 0.7, 1.2, 2.0, 3.5, 6.0, 10.0)
"""Where a truncated law may end, in nats beyond the end that uses δ up."""
LONGEST_SIDE = 1 << 17
"""Cells of one side at most."""
MOST_STAIRS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A law that keeps the points in floats: weights of 0, ±1, …, and its E φ(|X|); ``size`` is its own parameter.

    With ``heights`` the law is e^{−heights[|x|]/size}, exactly, in whole numbers.
    """

    name: str
    half: Floats
    cost: float
    size: float
    heights: Indices | None = None


def laplace(question: Question) -> Candidate:
    """e^{−|x|/t}."""
    return of_heights("discrete Laplace", question, lambda size: np.arange(cells(LISTED_NATS * size)))


def staircase(question: Question) -> Candidate:
    """Plateaus as wide as the shift, the first one of the width that costs least."""
    shift = question.shift
    widths = sorted({1 + round(i * (shift - 1) / MOST_STAIRS) for i in range(MOST_STAIRS + 1)})

    def of_width(high: int) -> Candidate:
        return of_heights(
            "discrete staircase",
            question,
            lambda size: shift * ((np.arange(cells(LISTED_NATS * size)) + shift - high) // shift),
        )

    return min(map(of_width, widths), key=lambda found: found.cost)


def truncated_laplace(question: Question) -> Candidate:
    """e^{−|x|/t} up to an end that uses part of δ, and less than that at the end itself: both tuned."""
    size = laplace(question).size
    lost = question.releases * math.tanh(question.shift / size / 2) / question.least_delta
    first = max(math.log(max(lost, 1.0)) * size, 1.0 * question.shift)
    kept: list[Candidate] = []
    for nats in ENDS:
        end = first + nats * size
        for place in sorted({end, math.floor(end) + 0.999}):
            kept += _if_kept(question, place)
    if not kept:
        raise BudgetRefused(f"no end of truncated Laplace noise keeps {list(question.points)}")
    return min(kept, key=lambda found: found.cost)


def _if_kept(question: Question, end: float) -> list[Candidate]:
    """The law that ends there, at its least size; none where no size will do."""
    try:
        return [of_heights("discrete truncated Laplace", question, lambda size: _ended(end), STEP_PARTS)]
    except BudgetRefused:
        return []


def _ended(end: float) -> Indices:
    """Heights, in ``STEP_PARTS`` of a step, up to the cell ⌊end⌋, which is higher by up to a few steps."""
    heights = STEP_PARTS * np.arange(cells(end) + 1, dtype=np.int64)
    heights[-1] += round(-STEP_PARTS * math.log(max(end - math.floor(end), 1e-3)))
    return heights


def gaussian(question: Question) -> Candidate:
    """e^{−x²/2σ²}; its losses lie on the lattice 1/2σ²."""
    scale = math.sqrt(2 * depth(question))
    found = of_weights(
        "discrete Gaussian",
        question,
        lambda size: np.exp(-((np.arange(cells(scale * size)) / size) ** 2) / 2),
        question.gaussian_scale,
    )
    heights = np.arange(cells(math.sqrt(2 * LISTED_NATS) * found.size), dtype=np.int64) ** 2
    return Candidate(found.name, found.half, found.cost, 2 * found.size**2, heights)


def rounded_gaussian(question: Question) -> Candidate:
    """The whole number nearest to a Gaussian: the optimum of one release for Gaussian trade-offs (theory §4.1)."""
    scale = math.sqrt(2 * depth(question))

    def weights(size: float) -> Floats:
        edges = log_ndtr((0.5 - np.arange(1, cells(scale * size) + 1)) / size)  # P(X ≥ k), k = 1, 2, …
        inner = np.exp(edges[:-1]) * -np.expm1(edges[1:] - edges[:-1])
        return np.concatenate([[1 - 2 * math.exp(edges[0])], inner])

    return of_weights("rounded Gaussian", question, weights, question.gaussian_scale)


def depth(question: Question) -> float:
    """−log of the weight at which tails end while searching."""
    return min(LISTED_NATS, BEYOND + math.log(question.releases / question.least_delta))


def cells(count: float) -> int:
    """A number of cells, bounded: ``BudgetRefused`` where it is too large to be listed."""
    if not count < LONGEST_SIDE:
        raise BudgetRefused(f"noise of {count:.3g} cells a side is needed, more than {LONGEST_SIDE}; use coarser units")
    return max(2, math.ceil(count))


def of_heights(name: str, question: Question, heights: Callable[[float], Indices], parts: int = 1) -> Candidate:
    """The law e^{−heights/(parts·size)} of the least size, from the Laplace law that keeps ε by adding up losses."""
    guess = question.releases * question.shift / max(*(e for e, _ in question.points), question.mu)
    size = question.least_size(
        lambda size: Released.of_heights(heights(size), question.shift, 1 / (parts * size)), guess, LAW_WITHIN
    )
    last = heights(size)
    half = normalised(np.exp(-last / (parts * size)))
    return Candidate(name, half, question.expected(half), parts * size, last)


def of_weights(
    name: str, question: Question, weights: Callable[[float], Floats], guess: float, within: float = LAW_WITHIN
) -> Candidate:
    """Any law of one size, on a lattice that is fine enough."""
    step = question.step(LATTICE_VARIANCE)
    size = question.least_size(
        lambda size: Released.of_weights(normalised(weights(size)), question.shift, step), guess, within
    )
    half = normalised(weights(size))
    return Candidate(name, half, question.expected(half), size)
