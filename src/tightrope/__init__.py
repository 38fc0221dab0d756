"""Tightrope: the least noise for the privacy you promise - and the proof.

Importing is cheap: each name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.certificates import Budget, Guarantee
    from tightrope.design.calibration.calibrate import calibrate
    from tightrope.design.least_noise import least_noise
    from tightrope.design.noise_limits import noise_limits
    from tightrope.mechanisms.continuous.bounded_range import bounded_range
    from tightrope.mechanisms.continuous.gaussian import gaussian
    from tightrope.mechanisms.continuous.laplace import laplace
    from tightrope.mechanisms.continuous.staircase import staircase
    from tightrope.mechanisms.continuous.truncated_laplace import truncated_laplace
    from tightrope.mechanisms.integer.discrete_gaussian import discrete_gaussian
    from tightrope.mechanisms.integer.discrete_laplace import discrete_laplace
    from tightrope.mechanisms.integer.discrete_staircase import discrete_staircase
    from tightrope.mechanisms.integer.discrete_truncated_laplace import discrete_truncated_laplace
    from tightrope.mechanisms.integer.randomized_response import randomized_response
    from tightrope.mechanisms.pairs import approx_dp, from_pair, from_points, from_profile
    from tightrope.privacy import Bounds, PrivacyLoss
    from tightrope.release import Session, count, mean, sum

__version__ = "0.1.0"

_HOMES = {
    "Bounds": "privacy",
    "Budget": "certificates",
    "Guarantee": "certificates",
    "PrivacyLoss": "privacy",
    "Session": "release",
    "approx_dp": "mechanisms.pairs",
    "bounded_range": "mechanisms.continuous.bounded_range",
    "calibrate": "design.calibration.calibrate",
    "count": "release",
    "discrete_gaussian": "mechanisms.integer.discrete_gaussian",
    "discrete_laplace": "mechanisms.integer.discrete_laplace",
    "discrete_staircase": "mechanisms.integer.discrete_staircase",
    "discrete_truncated_laplace": "mechanisms.integer.discrete_truncated_laplace",
    "from_pair": "mechanisms.pairs",
    "from_points": "mechanisms.pairs",
    "from_profile": "mechanisms.pairs",
    "gaussian": "mechanisms.continuous.gaussian",
    "laplace": "mechanisms.continuous.laplace",
    "least_noise": "design.least_noise",
    "mean": "release",
    "noise_limits": "design.noise_limits",
    "randomized_response": "mechanisms.integer.randomized_response",
    "staircase": "mechanisms.continuous.staircase",
    "sum": "release",
    "truncated_laplace": "mechanisms.continuous.truncated_laplace",
}

_SUBMODULES = ("local", "report", "training", "transport")

__all__ = [
    "Bounds",
    "Budget",
    "Guarantee",
    "PrivacyLoss",
    "Session",
    "approx_dp",
    "bounded_range",
    "calibrate",
    "count",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_staircase",
    "discrete_truncated_laplace",
    "from_pair",
    "from_points",
    "from_profile",
    "gaussian",
    "laplace",
    "least_noise",
    "mean",
    "noise_limits",
    "randomized_response",
    "staircase",
    "sum",
    "truncated_laplace",
]


def __getattr__(name: str) -> Any:
    """Load a public name, or a sub-module, on first use."""
    if name in _SUBMODULES:
        return importlib.import_module(f"tightrope.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'tightrope' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tightrope.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
