"""Lower bounds for every mechanism and estimator, one file a method, independent of the mechanisms."""

from tightrope.local.limits.bayes import BetaBernoulli, Cells
from tightrope.local.limits.limit import Hypotheses
from tightrope.local.limits.mean import Packing
from tightrope.local.limits.methods import (
    assouad,
    ball_mean,
    bayes,
    fano,
    frequencies,
    le_cam,
    mean,
    moment_mean,
    mutual_information,
    testing,
)

__all__ = [
    "BetaBernoulli",
    "Cells",
    "Hypotheses",
    "Packing",
    "assouad",
    "ball_mean",
    "bayes",
    "fano",
    "frequencies",
    "le_cam",
    "mean",
    "moment_mean",
    "mutual_information",
    "testing",
]
