"""The pair with the profile of a single step of bounded range, composed as a fixed pair: larger than adaptive steps."""

from __future__ import annotations

from dataclasses import dataclass

import tightrope as tr
from tightrope.mechanisms.exponential import BoundedRangeDistribution
from tightrope.mechanisms.pairs import LossOnly


@dataclass(frozen=True, slots=True)
class RangePair(BoundedRangeDistribution):
    @property
    def offset_range(self) -> None:  # type: ignore[override]
        return None


def range_pair(*, epsilon: float) -> LossOnly:
    return LossOnly(tr.PrivacyLoss.from_distribution(RangePair(epsilon)))
