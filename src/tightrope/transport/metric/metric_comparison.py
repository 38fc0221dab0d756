"""Coupling, optimal metric map and planar Laplace on the same data: what each costs and what each hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.metric.metric_optimum import optimal_metric
from tightrope.transport.metric.metric_privacy import MetricMechanism, expected_loss, metric_epsilon
from tightrope.transport.metric.planar_noise import grid_distances, planar_laplace


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One mechanism: expected distance over all people, ε per cell of distance, and what tells the groups apart.

    ``point_epsilon`` is ε of ε·d privacy, within the worst group for a coupling (∞: a value may be told from its
    neighbour). ``group_total_variation`` and ``group_epsilon`` (D_∞) speak of the outputs of any two groups, one draw.
    """

    name: str
    loss: float
    point_epsilon: float
    group_total_variation: float
    group_epsilon: float


def compare_on_grid(
    groups: Mapping[Any, ArrayLike], shape: tuple[int, int], epsilon: float, *, metric: str = "euclidean"
) -> list[ComparisonRow]:
    """The three mechanisms for groups of equal size with laws on a grid (row by row), with one ε per cell of distance.

    The coupling hides the group and nothing else; the metric maps hide the place, and of the group what ε hides.
    Raises ``InputError`` as the mechanisms do, and for fewer than two groups.

    >>> rows = compare_on_grid({"a": [0.6, 0.2, 0.2, 0.0], "b": [0.0, 0.2, 0.2, 0.6]}, (2, 2), 1.0)
    >>> [row.name for row in rows], round(rows[0].group_total_variation, 12)
    (['coupling', 'optimal', 'planar laplace'], 0.0)
    """
    if not isinstance(groups, Mapping) or len(groups) < 2:
        raise InputError("groups", groups, "a mapping with the laws of at least two groups")
    cost = grid_distances(shape, metric)
    laws = {group: Law.of(f"law of {group!r}", law, len(cost)).floats for group, law in groups.items()}
    everyone = np.mean(list(laws.values()), axis=0)
    best = optimal_metric(everyone / everyone.sum(), cost, epsilon)
    maps = {"optimal": best.mechanism, "planar laplace": planar_laplace(shape, epsilon, metric=metric)}
    rows = [_of_map(name, found, (laws, everyone), cost) for name, found in maps.items()]
    return [_of_coupling(CouplingMechanism.fit(laws, cost), cost), *rows]


def _of_coupling(mechanism: CouplingMechanism, cost: Floats) -> ComparisonRow:
    loss = float(np.mean(list(mechanism.loss.values())))
    point = max(metric_epsilon(tables, cost) for tables in mechanism.tables.values())
    return ComparisonRow("coupling", loss, point, *_groups_apart(mechanism, list(mechanism.groups)))


def _of_map(name: str, found: MetricMechanism, data: tuple[dict[Any, Any], Any], cost: Floats) -> ComparisonRow:
    laws, everyone = data
    apart = _groups_apart(found.matrix, list(laws.values()))
    return ComparisonRow(name, expected_loss(found.matrix, everyone, cost), found.epsilon, *apart)


def _groups_apart(mechanism: Any, sides: list[Any]) -> tuple[float, float]:
    pairs = list(combinations(sides, 2))
    names = ("total_variation", "max")
    variation, largest = (distribution_privacy(mechanism, pairs, name).epsilon for name in names)
    return variation, largest
