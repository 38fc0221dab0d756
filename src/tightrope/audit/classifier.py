"""Where a run gives several numbers, or one whose law is not known: a classifier learns the score on half of the runs.

The only door to scikit-learn (``pip install 'tightrope[audit]'``).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.audit.claims import Claimed
from tightrope.audit.findings import Finding
from tightrope.audit.score_bounds import scores
from tightrope.errors import InputError, MissingExtraError
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

FEWEST = 20
"""Runs of each input, so that half of them can be learned from."""


class Classifier(Protocol):
    """What scikit-learn calls a classifier."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and their classes."""

    def predict_proba(self, X: Any) -> Any:
        """The chance of each class for each row, shape [n, 2]."""


def samples(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    classifier: Classifier | None = None,
    randomness: Source | None = None,
) -> Finding:
    """What two samples of outputs prove, each output a row of numbers: shapes [n, k] and [m, k].

    A random half of the runs trains a classifier to tell the inputs apart, the other half is scored by it and goes to
    ``audit.scores``: what was learned, however badly, is fixed before the bounds are taken, so they hold.
    ``classifier`` is anything with ``fit`` and ``predict_proba``; by default scikit-learn's boosted trees, which need
    the extra ``audit`` (``MissingExtraError``). For doubles give ``audit.float_columns`` of them: their last bits may
    tell more than their values.
    """
    rows = [_rows("first", first), _rows("second", second)]
    if rows[0].shape[1] != rows[1].shape[1]:
        raise InputError("second", f"{rows[1].shape[1]} columns", f"{rows[0].shape[1]} columns, as in first")
    source = randomness or Stream()
    (learned, scored), (learned_too, scored_too) = (_halves(part, source) for part in rows)
    model = _boosted_trees() if classifier is None else classifier
    model.fit(np.concatenate([learned, learned_too]), np.repeat([1, 0], [len(learned), len(learned_too)]))
    one, other = (np.asarray(model.predict_proba(part))[:, 1] for part in (scored, scored_too))
    return scores(one, other, confidence=confidence, claim=claim, randomness=randomness)


def _boosted_trees() -> Classifier:
    """Without anything drawn: no early stopping, and bins from all rows up to 200 000."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError as missing:
        raise MissingExtraError("scikit-learn", "audit") from missing
    model: Classifier = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    return model


def _rows(name: str, values: ArrayLike) -> NDArray[np.float64]:
    expected = "a table of numbers, one row a run"
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(name, "something else", expected) from None
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) < FEWEST or not np.isfinite(table).all():
        raise InputError(name, f"shape {table.shape}", f"{expected}, finite, at least {FEWEST} runs")
    return table


def _halves(rows: NDArray[np.float64], source: Source) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    order = np.argsort(source.words(len(rows)), kind="stable")
    return rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
