"""Tables to answers: plan before spending, charge before releasing; knows no page and no command."""

from tightrope.queries.count import count, count_distinct
from tightrope.queries.histogram import histogram
from tightrope.queries.mean import mean, sum
from tightrope.queries.moments import correlation, covariance, standard_deviation, variance
from tightrope.queries.proportion import share
from tightrope.queries.quantile import median, quantile, quantiles
from tightrope.queries.query import Question
from tightrope.queries.ratio import ratio
from tightrope.queries.regression import regression
from tightrope.queries.top_k import other, top
from tightrope.release.answers import Answer, Answers
from tightrope.release.plan import Plan
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
