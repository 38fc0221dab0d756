"""What a loss means for an attacker, and how wide its brackets are: shown the same by every command."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.privacy import PrivacyLoss


def attack_table(loss: PrivacyLoss, rates: Sequence[float]) -> list[dict[str, float]]:
    """Upper bounds on the true-positive rate of every attack with one of these false-positive rates."""
    return [{"false_positive_rate": rate, "true_positive_rate": float(loss.true_positive_rate(rate))} for rate in rates]


def show_attack(data: Mapping[str, Any]) -> None:
    """The table, and how often a guess is right; rounded up."""
    from tightrope.cli.output import print_table, say
    from tightrope.report.words.digits import UP, percent, significant

    rates = [[percent(row["false_positive_rate"]), percent(row["true_positive_rate"], UP)] for row in data["attack"]]
    print_table(["false alarms", "members recognised, at most"], rows=rates, left=0)
    right, eta = percent(data["attack_success"], UP), significant(data["total_variation"], 6, UP)
    say(f"total variation {eta}: a guess about membership is right at most {right}.")


def relative_width(bracket: Mapping[str, float]) -> str:
    """How wide a bracket is, relative to its upper end.

    >>> relative_width({"lower": 0.999, "upper": 1.0}), relative_width({"lower": 1.0, "upper": 1.0})
    ('1e-03', '0')
    """
    width = width_of(bracket)
    return "–" if math.isinf(width) else f"{width:.0e}" if width else "0"


def width_of(bracket: Mapping[str, float]) -> float:
    """(upper − lower) / upper; 0 where both ends are equal, ∞ where only the upper one is infinite."""
    lower, upper = bracket["lower"], bracket["upper"]
    if lower == upper:
        return 0.0
    return math.inf if math.isinf(upper) else (upper - lower) / upper
