"""Tables to answers: plan before spending, charge before releasing."""

from tightrope.release.answers import Answer, Answers
from tightrope.release.plan import Plan
from tightrope.release.questions import Question, count, mean, sum
from tightrope.release.session import Session

__all__ = ["Answer", "Answers", "Plan", "Question", "Session", "count", "mean", "sum"]
