"""How large a group must be for an answer to mean something, by the errors that the plan itself states."""

from __future__ import annotations

from bisect import bisect_left

from tightrope.certificates.words.digits import significant
from tightrope.release.questions.accuracy import Accuracy

CLOSE_ENOUGH = 0.05
"""What is close enough: of the rows for a count or a sum, of the declared range for anything else."""
TENTHS = 10, 12, 15, 20, 25, 30, 40, 50, 60, 80
SIZES = (*range(1, 10), *(tenths * 10**power for power in range(8) for tenths in TENTHS))
"""Sizes that are tried."""


def rows_needed(accuracy: Accuracy) -> int | None:
    """The least of ``SIZES`` at which 95 % of answers are ``CLOSE_ENOUGH``; None where none is, or nothing is stated.

    Errors relative to a group fall as it grows, so that a bisection finds it; the answer itself is always checked.
    """
    if not _reach(accuracy, 1):
        return None
    place = bisect_left(SIZES, True, key=lambda rows: _close(accuracy, rows))
    return SIZES[place] if place < len(SIZES) else None


def close_words(accuracy: Accuracy) -> str:
    """What ``CLOSE_ENOUGH`` means for the question."""
    if accuracy.question.counts or accuracy.question.kind == "histogram":
        return "5 % of the group"
    if accuracy.question.kind == "sum":
        return "5 % of the largest sum possible"
    return f"± {significant(CLOSE_ENOUGH * _reach(accuracy, 1), 3)}, a twentieth of the range"


def _close(accuracy: Accuracy, rows: int) -> bool:
    # not accuracy.at: how often so large a group is withheld is an exact fraction of a great many digits
    _, half = accuracy.question.errors(accuracy.named, rows)
    return half <= CLOSE_ENOUGH * _reach(accuracy, rows)


def _reach(accuracy: Accuracy, rows: int) -> float:
    """What an error is compared with; 0 where there is nothing to compare with."""
    question = accuracy.question
    if question.counts or question.kind == "histogram":
        return rows
    ranges = [ends for _, ends in question.ranges if ends is not None]
    if not ranges:
        return 0.0
    low, high = ranges[0]
    return rows * max(abs(low), abs(high)) if question.kind == "sum" else high - low


def rows_words(rows: int | None) -> str:
    """The number for people.

    >>> rows_words(20_000), rows_words(None)
    ('20,000', '–')
    """
    return significant(None if rows is None else float(rows))
