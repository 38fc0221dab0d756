"""e^{−|x|/t} up to a largest value, which uses part of δ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.mechanisms.continuous.truncated_laplace import truncated_laplace
from tightrope.mechanisms.families.family import Family, Heights, Indices, RealTwin, Several
from tightrope.mechanisms.families.laplace import Laplace
from tightrope.mechanisms.families.weights import Need, Weights, cells
from tightrope.mechanisms.integer.discrete_truncated_laplace import discrete_truncated_laplace
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.numerics.arrays import Floats

SHARES = (0.999999, 0.5)
"""Parts of the mass that may be lost which plans let the end of the law use."""
STEP_PARTS = 64
"""The last, partial step of a truncated law has a height in this many parts of a step."""
ENDS = (0.0, 0.3, 0.7, 1.2, 2.0, 3.5, 6.0, 10.0)
"""Where a truncated law may end, in nats beyond the end that uses δ up."""


@dataclass(frozen=True, slots=True)
class TruncatedLaplace(Family):
    """It loses no more than ``share`` of the mass that may be lost.

    In plans a shift of one is served by the closed-form optimum of theory §4.1, which no integer noise beats.
    """

    share: float = 0.5
    name: ClassVar[str] = "discrete truncated Laplace"
    bounded: ClassVar[bool] = True
    hides_keys: ClassVar[bool] = True
    real: ClassVar[RealTwin | None] = RealTwin(
        "truncated Laplace",
        lambda size, sensitivity, delta: truncated_laplace(
            epsilon=sensitivity / size, delta=min(delta, 0.5), sensitivity=sensitivity
        ),
    )

    @property
    def variants(self) -> Sequence[Family]:
        return tuple(map(TruncatedLaplace, SHARES))

    def weights(self, size: float, need: Need) -> Weights:
        allowed = need.infinite_mass * self.share
        if need.shift == 1 and need.parts == (1,):
            return Weights(_optimal(1 / size, allowed))
        scale = max(size * need.shift, 0.026)
        count = math.ceil(need.depth * scale) + need.shift * max(need.parts)  # so many cells are lost at the end
        listed = np.exp(-np.arange(count) / scale)
        return Weights(listed[: _largest(listed, need, allowed) + 1])

    def noise(self, size: float, need: Need) -> IntegerMechanism:
        return discrete_truncated_laplace(epsilon=1 / size, delta=need.infinite_mass, sensitivity=need.shift)

    def laws(self, asked: Several) -> Sequence[Heights]:
        """A law for every end; at the end itself the weight is less than a step down, or not."""
        size = asked.least(*Laplace().laws(asked))
        lost = asked.releases * math.tanh(asked.shift / size / 2) / asked.least_delta
        first = max(math.log(max(lost, 1.0)) * size, 1.0 * asked.shift)
        places = [first + nats * size for nats in ENDS]
        return [_ending(end) for place in places for end in sorted({place, math.floor(place) + 0.999})]


def _ending(end: float) -> Heights:
    return Heights(lambda size: _ended(end), STEP_PARTS)


def _ended(end: float) -> Indices:
    """Heights, in ``STEP_PARTS`` of a step, up to the cell ⌊end⌋, which is higher by up to a few steps."""
    heights = STEP_PARTS * np.arange(cells(end) + 1, dtype=np.int64)
    heights[-1] += round(-STEP_PARTS * math.log(max(end - math.floor(end), 1e-3)))
    return heights


def _largest(listed: Floats, need: Need, allowed: float) -> int:
    """Least N for which the parts' top masses P(X > N − shift) together stay within ``allowed``."""
    total = 2 * math.fsum(listed.tolist()) - 1.0
    reach = len(listed) - 1
    below = np.concatenate([[0.0], np.cumsum(listed)])
    lost = np.zeros(reach + 1)
    ends = np.arange(reach + 1)
    for part, times in Counter(need.parts).items():
        shift = part * need.shift
        top = below[ends + 1] - below[np.maximum(ends + 1 - shift, 0)] + np.where(ends < shift, total, 0.0)
        lost += times * top
    kept = np.flatnonzero(lost / total <= allowed * (1 - 1e-9))
    return int(kept[0]) if len(kept) else reach


def _optimal(epsilon: float, delta: float) -> Floats:
    """p_0 = tanh(ε/2) + 2δ/(1 + e^ε), then e^{−ε} a step, with one last partial step (theory §4.1)."""
    first = (1 - delta) / (1 + math.exp(epsilon))
    tails: list[float] = []
    while first > 0 and len(tails) < 1 << 16:
        tails.append(first)
        first = math.exp(-epsilon) * (first - delta)
    ends = np.array([*tails, 0.0])
    return np.concatenate([[1 - 2 * tails[0]], ends[:-1] - ends[1:]])
