"""Optimal transport, exact and with a proof of optimality; couplings that hide where a value comes from (theory §6).

Importing is cheap: each name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.transport.barycentre import Barycenter, barycenter
    from tightrope.transport.cell_collection import apply_cells
    from tightrope.transport.certificates import Cut, Dual
    from tightrope.transport.collection import PointNames, apply_table
    from tightrope.transport.costs import Cost, Matrix
    from tightrope.transport.coupling_mechanism import CouplingMechanism
    from tightrope.transport.discrete import Discrete
    from tightrope.transport.displacement import Moves, moves
    from tightrope.transport.distances import wasserstein
    from tightrope.transport.distribution_checks import (
        DistributionPrivacy,
        distribution_privacy,
        extended_distribution_privacy,
    )
    from tightrope.transport.distribution_rules import DistributionGuarantee
    from tightrope.transport.graphs import Graph, graph
    from tightrope.transport.lattices import grid
    from tightrope.transport.learned_laws import LearnedLaws, learn_laws, learn_laws_privately
    from tightrope.transport.lifting import lifted, mass_outside
    from tightrope.transport.metric_comparison import ComparisonRow, compare_on_grid
    from tightrope.transport.metric_optimum import OptimalMetric, optimal_metric
    from tightrope.transport.metric_privacy import MetricMechanism, certified, metric_epsilon
    from tightrope.transport.optimal import coupling
    from tightrope.transport.planar_noise import grid_distances, planar_laplace
    from tightrope.transport.point_clouds import Points, points
    from tightrope.transport.real_line import Line, line
    from tightrope.transport.result import Coupling
    from tightrope.transport.saved import SavedCoupling
    from tightrope.transport.single_draws import OneDraw, approximate_knowledge, one_draw
    from tightrope.transport.supports import Categories, Cells

_HOMES = {
    "Barycenter": "barycentre",
    "Categories": "supports",
    "Cells": "supports",
    "ComparisonRow": "metric_comparison",
    "Cost": "costs",
    "Coupling": "result",
    "CouplingMechanism": "coupling_mechanism",
    "Cut": "certificates",
    "Discrete": "discrete",
    "DistributionGuarantee": "distribution_rules",
    "DistributionPrivacy": "distribution_checks",
    "Dual": "certificates",
    "Graph": "graphs",
    "LearnedLaws": "learned_laws",
    "Line": "real_line",
    "Matrix": "costs",
    "MetricMechanism": "metric_privacy",
    "Moves": "displacement",
    "OneDraw": "single_draws",
    "OptimalMetric": "metric_optimum",
    "PointNames": "collection",
    "Points": "point_clouds",
    "SavedCoupling": "saved",
    "apply_cells": "cell_collection",
    "apply_table": "collection",
    "approximate_knowledge": "single_draws",
    "barycenter": "barycentre",
    "certified": "metric_privacy",
    "compare_on_grid": "metric_comparison",
    "coupling": "optimal",
    "distribution_privacy": "distribution_checks",
    "extended_distribution_privacy": "distribution_checks",
    "graph": "graphs",
    "grid": "lattices",
    "grid_distances": "planar_noise",
    "learn_laws": "learned_laws",
    "learn_laws_privately": "learned_laws",
    "lifted": "lifting",
    "line": "real_line",
    "mass_outside": "lifting",
    "metric_epsilon": "metric_privacy",
    "moves": "displacement",
    "one_draw": "single_draws",
    "optimal_metric": "metric_optimum",
    "planar_laplace": "planar_noise",
    "points": "point_clouds",
    "wasserstein": "distances",
}

__all__ = [
    "Barycenter",
    "Categories",
    "Cells",
    "ComparisonRow",
    "Cost",
    "Coupling",
    "CouplingMechanism",
    "Cut",
    "Discrete",
    "DistributionGuarantee",
    "DistributionPrivacy",
    "Dual",
    "Graph",
    "LearnedLaws",
    "Line",
    "Matrix",
    "MetricMechanism",
    "Moves",
    "OneDraw",
    "OptimalMetric",
    "PointNames",
    "Points",
    "SavedCoupling",
    "apply_cells",
    "apply_table",
    "approximate_knowledge",
    "barycenter",
    "certified",
    "compare_on_grid",
    "coupling",
    "distribution_privacy",
    "extended_distribution_privacy",
    "graph",
    "grid",
    "grid_distances",
    "learn_laws",
    "learn_laws_privately",
    "lifted",
    "line",
    "mass_outside",
    "metric_epsilon",
    "moves",
    "one_draw",
    "optimal_metric",
    "planar_laplace",
    "points",
    "wasserstein",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tightrope.transport' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tightrope.transport.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
