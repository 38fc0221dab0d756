"""The kinds of questions that a plan file can name."""

from __future__ import annotations

from tightrope.errors import InputError
from tightrope.release.derived.correlation import Correlation
from tightrope.release.derived.covariance import Covariance
from tightrope.release.derived.other import Other
from tightrope.release.derived.ratio import Ratio
from tightrope.release.derived.regression import Regression
from tightrope.release.derived.share import Share
from tightrope.release.derived.top import Top
from tightrope.release.derived.variance import StandardDeviation, Variance
from tightrope.release.quantiles.quantile import Quantile
from tightrope.release.questions.count import Count
from tightrope.release.questions.count_distinct import CountDistinct
from tightrope.release.questions.histogram import Histogram
from tightrope.release.questions.mean import Mean
from tightrope.release.questions.node import Question
from tightrope.release.questions.sum import Sum

KNOWN: tuple[type[Question], ...] = (
    Count,
    CountDistinct,
    Sum,
    Mean,
    Histogram,
    Quantile,
    Share,
    Ratio,
    Variance,
    StandardDeviation,
    Covariance,
    Correlation,
    Regression,
    Top,
    Other,
)
KINDS: dict[str, type[Question]] = {kind.kind: kind for kind in KNOWN}
"""By name; ``register`` adds to it."""


def register(kind: type[Question]) -> None:
    """Let plan files ask questions of this kind; raises ``InputError`` where the name is another kind's."""
    if KINDS.setdefault(kind.kind, kind) is not kind:
        raise InputError("kind", kind.kind, "a name that no other kind of question has", "rename the new kind")
