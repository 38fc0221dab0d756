"""The promise of a release as data and in words: what is kept, what an attacker gains, whose rows are hidden."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tightrope.certificates.budget import Budget, at_most
from tightrope.certificates.printable import printable
from tightrope.certificates.words.explained import Attack

if TYPE_CHECKING:
    from tightrope.privacy.loss import PrivacyLoss
    from tightrope.release.questions.tasks import Person


def attack_success(loss: PrivacyLoss) -> float:
    """(1 + η)/2, rounded up."""
    return min(1.0, math.nextafter((1 + loss.total_variation()) / 2, 2.0))


def attacker(loss: PrivacyLoss, person: Person) -> str:
    """What an attacker could gain, in words; percentages are rounded up."""
    return str(Attack.on(person.protected.guess, attack_success(loss)))


def guarantee_data(loss: PrivacyLoss, budget: Budget) -> dict[str, Any]:
    """ε at the stated δ, η, attack success: rounded to the private side, and as exact decimal strings."""
    delta, proven = float(budget.delta), at_most(budget.delta)
    epsilon, eta = _least(loss, budget, proven), loss.total_variation()
    return {
        "epsilon": epsilon,
        "epsilon_exact": str(Decimal(epsilon)),
        "delta": delta,
        "delta_exact": str(budget.delta),
        "total_variation": eta,
        "total_variation_exact": str(Decimal(eta)),
        "attack_success": attack_success(loss),
    }


def _least(loss: PrivacyLoss, budget: Budget, delta: float) -> float:
    """ε at δ, never above what was asked for and is kept: a search for it ends some roundings above."""
    kept = [epsilon for epsilon, most in budget.rounded if most <= delta and loss.delta(epsilon) <= most]
    return min([loss.epsilon(delta), *kept])


def neighbours_data(person: Person) -> Mapping[str, Any]:
    """What the guarantee protects, as data and in a sentence."""
    if person.column is None:
        return {
            "relation": "add-remove",
            "person": None,
            "means": person.means,
            "rows_per_person": 1,
            "rows_per_group": 1,
            "groups_per_person": 1,
            "statement": f"Adding or removing one row (each row is {person.means})",
        }
    whose = "their rows" if person.human else "its rows"
    return {
        "relation": "add-remove",
        "person": person.column,
        "means": person.means,
        "rows_per_person": person.rows,
        "rows_per_group": person.rows_per_group,
        "groups_per_person": person.groups,
        "statement": f"Adding or removing one {person.noun} (a value of {printable(person.column)}) with all {whose}",
    }
