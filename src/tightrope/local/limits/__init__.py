"""What no mechanism and no estimator can beat, one file a method; knows none of the mechanisms beside it."""

from tightrope.local.limits.bayes_problem import Cells
from tightrope.local.limits.beta_bernoulli import BetaBernoulli
from tightrope.local.limits.hypotheses import Hypotheses
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
from tightrope.local.limits.packing import Packing

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
