"""Where the law of the noise is known, the likelihood ratio is the best score: our own mechanisms, run as they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from tightrope.audit.claims import Claimed
from tightrope.audit.findings import Finding
from tightrope.audit.score_bounds import scores
from tightrope.errors import InputError
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import whole
from tightrope.randomness.source import Source

LISTED = 4096
"""Beyond it all noise is taken as equally probable: any score is valid, and so far out little is seen."""
LOG_OF_NEVER = -1e6
"""The log of a probability of 0: impossible on both inputs speaks for neither."""


def log_ratio(table: NoiseTable, shift: int) -> Callable[[Integers], Floats]:
    """The score of Neyman and Pearson: log P(y = shift + X) − log P(y = X), for integer noise X with this table.

    >>> import tightrope as tr
    >>> log_ratio(tr.discrete_laplace(scale=2).table, 1)(np.array([-3, 1])).round(6).tolist()
    [-0.5, 0.5]
    """
    tails = [table.survival(x) for x in range(min(LISTED, len(table.half) + LISTED // 4) + 1)]
    chances = np.array([float(p) for p in (1 - 2 * tails[0], *(a - b for a, b in pairwise(tails)))])
    logs = np.log(np.maximum(chances, 1e-300))
    logs[chances == 0] = LOG_OF_NEVER

    def score(outputs: Integers) -> Floats:
        found: Floats = _looked_up(logs, outputs - shift) - _looked_up(logs, outputs)
        return found

    return score


def mechanism(
    law: IntegerMechanism,
    *,
    runs: int = 100_000,
    confidence: float = 0.99,
    claim: Claimed | None = None,
    randomness: Source | None = None,
) -> Finding:
    """Draw from a mechanism of whole numbers ``runs`` times on each of two inputs, and compare by likelihood ratio.

    The inputs differ by the mechanism's sensitivity. What is drawn is what ``sample`` draws; its table only says how
    to score. Raises ``InputError`` for a mechanism without a table.

    >>> import tightrope as tr
    >>> law = tr.discrete_laplace(scale=1)
    >>> 0.8 < mechanism(law, runs=20_000).epsilon(0.0) <= 1.0
    True
    """
    if not isinstance(law, IntegerMechanism):
        remedy = "draw from others yourself and give the samples to audit.scores or audit.samples"
        raise InputError("law", law, "a mechanism of whole numbers with a table", remedy)
    size, shift = whole("runs", runs), law.sensitivity
    score = log_ratio(law.table, shift)
    drawn = [np.asarray(law.sample(size, randomness), dtype=np.int64) for _ in range(2)]
    return scores(score(drawn[0] + shift), score(drawn[1]), confidence=confidence, claim=claim, randomness=randomness)


def _looked_up(logs: Floats, noise: Integers) -> Floats:
    found: Floats = logs[np.minimum(np.abs(noise), len(logs) - 1)]
    return found
