"""What the page shows of a plan: the promise in words, the errors of its questions, the trade-off curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.certificates.printable import printable
from tightrope.certificates.words.chances import times
from tightrope.certificates.words.digits import UP, one_in, percent, significant
from tightrope.certificates.words.guesses import Guesses
from tightrope.report.words.wording import withheld
from tightrope.studio.needed import close_words, rows_needed, rows_words

if TYPE_CHECKING:
    from tightrope.privacy.loss import PrivacyLoss
    from tightrope.release.documents.plan_file import PlanFile
    from tightrope.release.questions.accuracy import Accuracy

ALARM_RATES = tuple(float(rate) for rate in (1 - np.cos(np.pi * np.arange(13) / 12)) / 2)
"""Rates of false alarms at which the curve is drawn."""
Json = dict[str, Any]


def figures(file: PlanFile) -> Json:
    """All numbers of a plan, computed as ``tightrope plan`` does: reads the schema only, and spends nothing."""
    draft = file.plan().draft
    data = draft.to_data()
    epsilon, eta, success = data["epsilon"], data["total_variation"], data["attack_success"]
    return {
        "attacker": data["attacker"],
        "protected": str(data["neighbours"].get("statement", "")),
        "attack_success": success,
        "success": percent(success, UP),
        "total_variation": percent(eta, UP),
        "epsilon": significant(epsilon, 3, UP),
        "likelier": times(epsilon),
        "guesses": Guesses.of(success).right,
        "delta": significant(data["delta"], 2, UP),
        "slack": one_in(data["delta"]) if data["delta"] > 0 else "never",
        "share": data["share"],
        "answers": [
            _answer(answer, accuracy) for answer, accuracy in zip(data["answers"], draft.accuracies(), strict=True)
        ],
        "curve": _curve(draft.loss),
        "rows_per_person": draft.person.rows if draft.person.column is not None else 1,
    }


def _answer(answer: Json, accuracy: Accuracy) -> Json:
    error, rows = answer["error"], rows_needed(accuracy)
    return {
        "name": printable(answer["name"]),
        "question": answer["question"],
        "meaning": answer["meaning"],
        "groups": answer["keys"],
        "half_width": error["half_width_95"],
        "within": significant(error["half_width_95"], 3, UP),
        "sizes": [
            {
                "rows": significant(float(size["rows"])),
                "within": significant(size["half_width_95"], 3, UP),
                "withheld": withheld(size["suppressed"]),
            }
            for size in error["by_group_size"]
        ],
        "uniform": error["half_width_95"] is not None,
        "needed": rows_words(rows),
        "close": close_words(accuracy),
        "noise": "; ".join(sorted({noise["family"] for noise in answer["noise"]})),
        "notes": list(answer["notes"]),
    }


def _curve(loss: PrivacyLoss) -> list[list[float]]:
    """How many people an attacker recognises at most, at each rate of false alarms."""
    found = loss.true_positive_rate(np.array(ALARM_RATES[1:-1]))
    between = [[rate, float(caught)] for rate, caught in zip(ALARM_RATES[1:-1], found, strict=True)]
    return [[0.0, float(loss.true_positive_rate(0.0))], *between, [1.0, 1.0]]
