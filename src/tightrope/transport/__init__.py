"""Optimal transport, exact and with a proof of optimality; couplings that hide where a value comes from (theory §6).

Importing is cheap: each name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.transport.costs.costs import Cost, Matrix
    from tightrope.transport.costs.graphs import Graph, graph
    from tightrope.transport.costs.lattices import grid
    from tightrope.transport.costs.point_clouds import Points, points
    from tightrope.transport.costs.real_line import Line, line
    from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism
    from tightrope.transport.couplings.displacement import Moves, moves
    from tightrope.transport.guarantees.distribution_checks import (
        DistributionPrivacy,
        distribution_privacy,
        extended_distribution_privacy,
    )
    from tightrope.transport.guarantees.distribution_rules import DistributionGuarantee
    from tightrope.transport.guarantees.learned_laws import LearnedLaws, learn_laws, learn_laws_privately
    from tightrope.transport.guarantees.lifting import lifted, mass_outside
    from tightrope.transport.guarantees.single_draws import OneDraw, approximate_knowledge, one_draw
    from tightrope.transport.metric.metric_comparison import ComparisonRow, compare_on_grid
    from tightrope.transport.metric.metric_optimum import OptimalMetric, optimal_metric
    from tightrope.transport.metric.metric_privacy import MetricMechanism, certified, metric_epsilon
    from tightrope.transport.metric.planar_noise import grid_distances, planar_laplace
    from tightrope.transport.on_tables.cell_collection import apply_cells
    from tightrope.transport.on_tables.collection import PointNames, apply_table
    from tightrope.transport.on_tables.saved import SavedCoupling
    from tightrope.transport.on_tables.supports import Categories, Cells
    from tightrope.transport.proofs.certificates import Cut, Dual
    from tightrope.transport.proofs.result import Coupling
    from tightrope.transport.solvers.barycentre import Barycenter, barycenter
    from tightrope.transport.solvers.discrete import Discrete
    from tightrope.transport.solvers.distances import wasserstein
    from tightrope.transport.solvers.optimal import coupling

_HOMES = {
    "Barycenter": "solvers.barycentre",
    "Categories": "on_tables.supports",
    "Cells": "on_tables.supports",
    "ComparisonRow": "metric.metric_comparison",
    "Cost": "costs.costs",
    "Coupling": "proofs.result",
    "CouplingMechanism": "couplings.coupling_mechanism",
    "Cut": "proofs.certificates",
    "Discrete": "solvers.discrete",
    "DistributionGuarantee": "guarantees.distribution_rules",
    "DistributionPrivacy": "guarantees.distribution_checks",
    "Dual": "proofs.certificates",
    "Graph": "costs.graphs",
    "LearnedLaws": "guarantees.learned_laws",
    "Line": "costs.real_line",
    "Matrix": "costs.costs",
    "MetricMechanism": "metric.metric_privacy",
    "Moves": "couplings.displacement",
    "OneDraw": "guarantees.single_draws",
    "OptimalMetric": "metric.metric_optimum",
    "PointNames": "on_tables.collection",
    "Points": "costs.point_clouds",
    "SavedCoupling": "on_tables.saved",
    "apply_cells": "on_tables.cell_collection",
    "apply_table": "on_tables.collection",
    "approximate_knowledge": "guarantees.single_draws",
    "barycenter": "solvers.barycentre",
    "certified": "metric.metric_privacy",
    "compare_on_grid": "metric.metric_comparison",
    "coupling": "solvers.optimal",
    "distribution_privacy": "guarantees.distribution_checks",
    "extended_distribution_privacy": "guarantees.distribution_checks",
    "graph": "costs.graphs",
    "grid": "costs.lattices",
    "grid_distances": "metric.planar_noise",
    "learn_laws": "guarantees.learned_laws",
    "learn_laws_privately": "guarantees.learned_laws",
    "lifted": "guarantees.lifting",
    "line": "costs.real_line",
    "mass_outside": "guarantees.lifting",
    "metric_epsilon": "metric.metric_privacy",
    "moves": "couplings.displacement",
    "one_draw": "guarantees.single_draws",
    "optimal_metric": "metric.metric_optimum",
    "planar_laplace": "metric.planar_noise",
    "points": "costs.point_clouds",
    "wasserstein": "solvers.distances",
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
