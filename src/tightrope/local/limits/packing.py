"""Fano's method: many parameters, one of which was drawn, and reports that say too little about which."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from tightrope.channels import information
from tightrope.errors import InputError
from tightrope.local.limits.constraint import Constraint
from tightrope.local.limits.limit import Cost, Limit, falls_to
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import non_negative, probability, whole
from tightrope.numerics.laws import stochastic
from tightrope.numerics.search import crossing


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """M laws of one person's value, one for each parameter, any two parameters at least a separation apart.

    ``log_count`` = log M, nats; ``information`` an upper bound on I(V; X) of a uniform V, ``capacity`` on any V;
    ``distance`` an upper bound on TV(P_v, R) to one reference R for every v. Made by ``of`` from laws, shape
    [M, values], or from numbers where there are too many.

    >>> packing = Packing.of([[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]])
    >>> round(packing.log_count, 9), round(packing.distance, 12)
    (1.098612289, 0.1)
    """

    log_count: float
    information: float
    capacity: float
    distance: float
    laws: Floats | None = None

    @classmethod
    def of(cls, laws: ArrayLike) -> Packing:
        """From the laws; the reference is their average."""
        rows = stochastic(laws)
        if len(rows) < 2:
            raise InputError("laws", rows.shape, "at least two laws, shape [M, values]")
        centre = rows.mean(axis=0)
        prior = np.full(len(rows), 1 / len(rows))
        shared = information.mutual_information(rows, prior)
        capacity = float(information.capacity(rows).upper)
        distance = min(1.0, float(np.max(np.abs(rows - centre).sum(axis=1)) / 2))
        return cls(math.log(len(rows)), shared, capacity, distance, rows)

    @classmethod
    def known(cls, *, log_count: float, information: float, distance: float) -> Packing:
        """From numbers: ``information`` bounds KL(P_v‖R) for every v, so the capacity too."""
        shown = non_negative("information", information)
        return cls(non_negative("log_count", log_count), shown, shown, probability("distance", distance))


@dataclass(frozen=True, slots=True)
class Fano(Limit):
    """ℓ(τ) p ≤ risk, p the least probability of a wrong guess of V that Fano's inequality allows (AAC Lemma 4).

    ``h(p) + p log(M−1) ≥ log M − I(V; Zⁿ)``, solved for p instead of weakened. The information of n reports is at most
    n κ I(V; X), n max_v KL(M_v‖M_R) for a reference R (golden formula), and (1 − (1−κ)ⁿ) log M. With ``interactive``
    mechanisms (each may depend on earlier reports) I(V; X) is replaced by its maximum over priors, and the last bound
    is left out.
    """

    constraint: Constraint
    packing: Packing
    separation: float
    cost: Cost
    interactive: bool = False

    def information(self, people: int) -> float:
        """An upper bound on I(V; Zⁿ), nats."""
        count = whole("people", people)
        kappa, packing = self.constraint.kl_contraction, self.packing
        one = packing.capacity if self.interactive else packing.information
        bounds = [count * kappa * one, count * self.constraint.spread(packing.distance, packing.laws)]
        if not self.interactive:
            contracted = 1.0 if kappa >= 1 else -math.expm1(count * math.log1p(-kappa))
            bounds.append(contracted * min(packing.log_count, count * one))
        return min(packing.log_count, *bounds)

    def risk(self, people: int) -> float:
        return falls_to(self.cost(self.separation / 2) * least_error(self.packing.log_count, self.information(people)))


def least_error(log_count: float, information: float) -> float:
    """The least p ≥ 0 with h(p) + p log(M−1) ≥ log M − I, from below.

    >>> round(least_error(math.log(4), 0.0), 6), least_error(math.log(2), 1.0)
    (0.75, 0.0)
    """
    missing = log_count - information
    if not missing > 0:
        return 0.0
    count_less_one = log_count + math.log1p(-math.exp(-log_count)) if log_count < 40 else log_count

    def excess(p: float) -> float:
        return missing - float(entr(p) + entr(1 - p)) - p * count_less_one

    return crossing(excess, 0.0, -math.expm1(-log_count), side="fails", relative=1e-14)
