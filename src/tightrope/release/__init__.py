"""Plan, charge and release private answers from tables; independent of the report and the command line."""

from tightrope.queries.query import Query
from tightrope.release.answers import Answer, Answers, Comparison
from tightrope.release.plan import Plan
from tightrope.release.session import Session

__all__ = ["Answer", "Answers", "Comparison", "Plan", "Query", "Session"]
