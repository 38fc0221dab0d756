"""How good a noise is, as data: what it promises, what it costs, and why nothing costs much less."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tightrope.certificates.guarantee import Guarantee


@dataclass(frozen=True, slots=True)
class Argument:
    """Why ``lower`` holds: a theorem, or numbers that anybody can check with additions and multiplications.

    ``kind`` is "theorem", "dual" or "single release"; ``statement`` says what to compute, ``numbers`` what from.
    """

    kind: str
    statement: str
    numbers: dict[str, Any] = field(repr=False)

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON: floats are exact there, whole numbers beyond 2⁵³ are decimal strings."""
        return {"kind": self.kind, "statement": self.statement, "numbers": self.numbers}


@dataclass(frozen=True, slots=True)
class NoiseCertificate:
    """The least expected cost of noise that keeps a promise lies between ``lower`` and ``upper``.

    ``upper`` is what the noise at hand costs, from the integer table that is sampled, rounded up; ``lower`` holds for
    *every* noise of whatever shape, rounded down. ``guarantee`` is what the table realises; ``realised`` has a triple
    (ε, δ promised, δ realised) for every point.

    >>> triple = Guarantee(1.0, 1e-6)
    >>> why = Argument("theorem", "stochastically smallest", {})
    >>> found = NoiseCertificate(0.5, 0.5, triple, (), "absolute", 1, "any", 0.5, 1.0, 9.0, why)
    >>> found.gap, found.unimodal_price
    (0.0, None)
    """

    lower: float
    upper: float
    guarantee: Guarantee
    realised: tuple[tuple[float, float, float], ...]
    cost: str
    sensitivity: float
    shape: str
    mean_absolute_error: float
    mean_squared_error: float
    worst_error: float
    argument: Argument
    unimodal_price: float | None = None
    """Least cost of unimodal noise over the least cost of any, minus one: at most this; None where not computed."""
    shape_lower: float | None = None
    """No noise of the same shape costs less; at least ``lower``."""
    releases: int = 1

    @property
    def gap(self) -> float:
        """Upper / lower − 1: no noise costs less by a larger part of the least cost."""
        if self.upper == self.lower:
            return 0.0
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON; an error without limit is null."""
        triple = self.guarantee
        return {
            "lower": self.lower,
            "upper": self.upper,
            "gap": self.gap if math.isfinite(self.gap) else None,
            "guarantee": {
                "epsilon": triple.epsilon,
                "delta": triple.delta,
                "total_variation": triple.total_variation,
            },
            "realised": [list(point) for point in self.realised],
            "cost": self.cost,
            "sensitivity": self.sensitivity,
            "shape": self.shape,
            "releases": self.releases,
            "mean_absolute_error": self.mean_absolute_error,
            "mean_squared_error": self.mean_squared_error,
            "worst_error": self.worst_error if math.isfinite(self.worst_error) else None,
            "shape_lower": self.shape_lower,
            "unimodal_price": self.unimodal_price,
            "argument": self.argument.to_data(),
        }
