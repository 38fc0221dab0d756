"""Every noise at one budget, side by side with the least there is: for whole-number and for real-valued answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from tightrope.certificates.budget import Budget
from tightrope.certificates.noise import NoiseCertificate
from tightrope.design.calibration.calibrate import calibrate
from tightrope.design.calibration.calibration import Calibrated, Points, families, least_size
from tightrope.design.least_noise import LeastNoise, least_noise
from tightrope.design.noise_limits import NoiseLimits, noise_limits
from tightrope.design.program.noise_request import Promise
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.continuous.gaussian import gaussian
from tightrope.mechanisms.continuous.laplace import laplace
from tightrope.mechanisms.continuous.staircase import staircase
from tightrope.mechanisms.continuous.truncated_laplace import truncated_laplace
from tightrope.mechanisms.integer.integer_mechanism import Tabulated
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.tables.table import NoiseTable

TAIL = 13.2
"""Deviations beyond which a rounded Gaussian has less than 2⁻¹²⁸."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whole-number noise of every family and the least one with its certificate; real-valued laws and their limits.

    ``certificate.lower`` is proven for every whole-number noise, ``limits.lower`` for every real-valued one.
    """

    whole: tuple[Calibrated, ...]
    certificate: NoiseCertificate
    real: tuple[tuple[str, Mechanism], ...]
    limits: NoiseLimits
    cost: str

    def cost_of(self, noise: Mechanism) -> float:
        """E|X| or E X²."""
        return noise.mean_absolute_error if self.cost == "absolute" else noise.mean_squared_error


def compare(budget: Budget, *, sensitivity: int = 1, cost: str = "absolute") -> Comparison:
    """All families at a budget for one answer, with the proven limits; ``cost`` is "absolute" or "squared".

    Whole-number laws are the tables that would be sampled, rounding included. Real-valued laws are for comparison: they
    have no sampler. Neighbours: whatever the sensitivity speaks of. Raises ``InputError`` for another cost.

    >>> found = compare(Budget(epsilon=1, delta=1e-6))
    >>> found.whole[0].family, round(found.certificate.upper / found.certificate.lower, 9)
    ('least noise (closed form)', 1.0)
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'", "least_noise takes any non-decreasing function")
    points = Promise.of(budget).points
    least = least_noise(budget, sensitivity=sensitivity, cost=cost)
    whole = list(families(budget, sensitivity=sensitivity))
    if sensitivity > 1 and isinstance(least, LeastNoise):
        whole.insert(0, Calibrated("least noise (program)", Tabulated(least.table, sensitivity)))
    if budget.delta > 0:
        whole.append(_tried("rounded Gaussian", lambda: rounded_gaussian(points, sensitivity)))
    return Comparison(
        tuple(whole),
        least.certificate,
        tuple(_real_laws(budget, points, sensitivity)),
        noise_limits(budget, sensitivity=sensitivity, cost=cost),
        cost,
    )


def rounded_gaussian(points: Points, sensitivity: int) -> Tabulated:
    """A normal law rounded to whole numbers, at its least scale: at sensitivity 1 the least noise for μ-GDP (§4.1)."""

    def build(scale: float) -> Tabulated:
        edges = (np.arange(math.ceil(TAIL * scale) + 2) - 0.5) / scale
        tails = ndtr(-edges)
        cells = tails[:-1] - tails[1:]
        return Tabulated(NoiseTable.from_probabilities(cells), sensitivity)

    found = least_size(build, points, float(sensitivity))
    return Tabulated(found.table, sensitivity)


def _tried(name: str, search: Callable[[], Tabulated]) -> Calibrated:
    try:
        return Calibrated(name, search())
    except (InputError, BudgetRefused) as error:
        return Calibrated(name, None, str(error))


def _real_laws(budget: Budget, points: Points, sensitivity: int) -> list[tuple[str, Mechanism]]:
    """Real-valued laws at their least size."""
    delta = min(delta for _, delta in points)
    makers: dict[str, Callable[[float], Mechanism]] = {
        "Laplace": lambda size: laplace(scale=size, sensitivity=sensitivity),
        "staircase": lambda size: staircase(epsilon=sensitivity / size, sensitivity=sensitivity),
    }
    if delta > 0:
        makers["truncated Laplace"] = lambda size: truncated_laplace(
            epsilon=sensitivity / size, delta=min(delta, 0.5), sensitivity=sensitivity
        )
        makers["analytic Gaussian"] = lambda size: gaussian(scale=size, sensitivity=sensitivity)
    found = []
    for name, make in makers.items():
        try:
            size = calibrate(lambda size, make=make: make(size).loss, budget, smallest=sensitivity / 500).parameter  # type: ignore[misc]
        except (InputError, BudgetRefused):
            continue
        found.append((name, make(size)))
    return found
