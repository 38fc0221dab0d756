"""Tables to answers: plan before spending, charge before releasing; knows no page and no command."""

from tightrope.release.answers import Answer, Answers
from tightrope.release.plan import Plan
from tightrope.release.quantiles.quantile import median, quantile, quantiles
from tightrope.release.questions.count import count
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
    "count",
    "histogram",
    "mean",
    "median",
    "quantile",
    "quantiles",
    "sum",
]
