"""Plan, charge and release private answers from tables; independent of the report and the command line."""

from tightrope.queries.query import Query
from tightrope.release.answers import Answer, Answers
from tightrope.release.plan import Plan
from tightrope.release.session import Session

__all__ = ["Answer", "Answers", "Plan", "Query", "Session"]
