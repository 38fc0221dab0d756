"""Tables to answers: plan before spending, charge before releasing; knows no page and no command."""

from tightrope.release.answers import Answer, Answers
from tightrope.release.derived.correlation import correlation
from tightrope.release.derived.covariance import covariance
from tightrope.release.derived.other import other
from tightrope.release.derived.ratio import ratio
from tightrope.release.derived.regression import regression
from tightrope.release.derived.share import share
from tightrope.release.derived.top import top
from tightrope.release.derived.variance import standard_deviation, variance
from tightrope.release.plan import Plan
from tightrope.release.quantiles.quantile import median, quantile, quantiles
from tightrope.release.questions.count import count
from tightrope.release.questions.count_distinct import count_distinct
from tightrope.release.questions.histogram import histogram
from tightrope.release.questions.mean import mean
from tightrope.release.questions.node import Question
from tightrope.release.questions.sum import sum
from tightrope.release.session import Session

__all__ = [
    "Answer",
    "Answers",
    "Plan",
    "Question",
    "Session",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "histogram",
    "mean",
    "median",
    "other",
    "quantile",
    "quantiles",
    "ratio",
    "regression",
    "share",
    "standard_deviation",
    "sum",
    "top",
    "variance",
]
