"""What a loss means for an attacker: shown the same by every command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tightrope.certificates.account import Gained
    from tightrope.privacy import PrivacyLoss


def gained(loss: PrivacyLoss, rates: Sequence[float], statement: str) -> Gained:
    """What every attack gains at most: upper bounds on its true-positive rate at these false-positive rates."""
    from tightrope.certificates.account import Attack, Gained

    eta = float(loss.total_variation())
    attacks = [
        Attack(false_positive_rate=rate, true_positive_rate=float(loss.true_positive_rate(rate))) for rate in rates
    ]
    return Gained(
        total_variation=eta,
        attack_success=(1 + eta) / 2,
        attack=tuple(attacks),
        neighbours=loss.neighbours.value,
        engine=loss.engine,
        statement=statement,
    )


def show_attack(found: Gained) -> None:
    """The table, and how often a guess is right; rounded up."""
    from tightrope.certificates.words.digits import UP, percent, significant
    from tightrope.cli.output import print_table, say

    rates = [[percent(row.false_positive_rate), percent(row.true_positive_rate, UP)] for row in found.attack]
    print_table(["false alarms", "members recognised, at most"], rows=rates, left=0)
    right, eta = percent(found.attack_success, UP), significant(found.total_variation, 6, UP)
    say(f"total variation {eta}: a guess about membership is right at most {right}.")
