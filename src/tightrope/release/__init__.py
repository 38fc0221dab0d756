"""Plan, charge and release private answers from tables; independent of the report and the command line."""

from tightrope.queries.count import count, count_distinct
from tightrope.queries.histogram import histogram
from tightrope.queries.mean import mean, sum
from tightrope.queries.moments import correlation, covariance, standard_deviation, variance
from tightrope.queries.proportion import proportion
from tightrope.queries.quantile import median, quantile, quantiles
from tightrope.queries.query import Query
from tightrope.queries.ratio import ratio
from tightrope.queries.regression import regression
from tightrope.queries.top_k import suppressed_count, top_k
from tightrope.release.answers import Answer, Answers
from tightrope.release.plan import Plan
from tightrope.release.session import Session

__all__ = [
    "Answer",
    "Answers",
    "Plan",
    "Query",
    "Session",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "histogram",
    "mean",
    "median",
    "proportion",
    "quantile",
    "quantiles",
    "ratio",
    "regression",
    "standard_deviation",
    "sum",
    "suppressed_count",
    "top_k",
    "variance",
]
