"""What it will be known of bounding and clamping, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tightrope.release.questions.tasks import Task
from tightrope.release.questions.vector import Noise


def planned_costs(tasks: Sequence[Task], noises: Sequence[Sequence[Noise]], part: Decimal) -> dict[str, Any] | None:
    """The part of the budget and the half-width of every count; None where nothing of it is counted."""
    pairs = zip(tasks, noises, strict=True)
    found = [(task, noise) for task, own in pairs for noise in own if noise.vector in task.tallies]
    if not found:
        return None
    counts = [
        {
            "answers": task.answered_by(noise.vector),
            "statistic": noise.vector.spend.statistic,
            "half_width_95": noise.half_width(),
        }
        for task, noise in found
    ]
    return {"share": str(part), "counts": counts}
