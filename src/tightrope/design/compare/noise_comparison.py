"""Every noise at one budget, side by side with the least there is: for whole-number and for real-valued answers."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.budget import Budget
from tightrope.certificates.noise import NoiseCertificate
from tightrope.design.calibration.calibrate import calibrate
from tightrope.design.calibration.calibration import Calibrated, Points, families
from tightrope.design.least_noise import LeastNoise, least_noise
from tightrope.design.noise_limits import NoiseLimits, noise_limits
from tightrope.design.program.noise_reference import levels_of
from tightrope.design.program.noise_request import Promise
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.families.family import RealTwin
from tightrope.mechanisms.families.registry import offered
from tightrope.mechanisms.integer.integer_mechanism import Tabulated
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.tables.integer_tables import COARSER
from tightrope.numerics.checks import whole

MOST_COMPARED_CELLS = 1 << 15
"""Families are searched through some tens of tables each: for wider ones that takes minutes."""


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
    have no sampler. Neighbours: whatever the sensitivity speaks of. Raises ``InputError`` for another cost, and where
    the noise would be so wide that families take minutes.

    >>> found = compare(Budget(epsilon=1, delta=1e-6))
    >>> found.whole[0].family, round(found.certificate.upper / found.certificate.lower, 9)
    ('least noise (closed form)', 1.0)
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'", "least_noise takes any non-decreasing function")
    points = Promise.of(budget).points
    width = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    widest = max((levels_of(*point) for point in points if point[1] > 0), default=0.0)
    if not widest * width <= MOST_COMPARED_CELLS:
        raise InputError("epsilon", points[-1][0], f"enough for noise of {MOST_COMPARED_CELLS} cells a side", COARSER)
    least = least_noise(budget, sensitivity=sensitivity, cost=cost)
    laws = list(families(budget, sensitivity=sensitivity))
    if sensitivity > 1 and isinstance(least, LeastNoise):
        laws.insert(0, Calibrated("least noise (program)", Tabulated(least.table, sensitivity)))
    return Comparison(
        tuple(laws),
        least.certificate,
        tuple(_real_laws(budget, points, sensitivity)),
        noise_limits(budget, sensitivity=sensitivity, cost=cost),
        cost,
    )


def _real_laws(budget: Budget, points: Points, sensitivity: int) -> list[tuple[str, Mechanism]]:
    """The families' real-valued twins at their least size."""
    delta = min(delta for _, delta in points)
    twins = [family.real for family in offered() if family.real and (delta > 0 or not family.bounded)]
    found = []
    for twin in twins:

        def make(size: float, twin: RealTwin = twin) -> Mechanism:
            return twin.make(size, sensitivity, delta)

        try:
            size = calibrate(lambda size, make=make: make(size).loss, budget, smallest=sensitivity / 500).parameter  # type: ignore[misc]
        except (InputError, BudgetRefused):
            continue
        found.append((twin.name, make(size)))
    return found
