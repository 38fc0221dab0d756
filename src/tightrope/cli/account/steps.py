"""From written steps to the privacy loss of all of them together."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from tightrope.certificates.places import placed

if TYPE_CHECKING:
    from tightrope.certificates.steps import Run
    from tightrope.privacy import PrivacyLoss


def composed(steps: Sequence[Run]) -> PrivacyLoss:
    """The loss of all steps together, with **parameters fixed in advance**; errors say which step they come from."""
    return reduce(add, [_loss(f"step {number}", step) for number, step in enumerate(steps, start=1)])


def _loss(place: str, step: Run) -> PrivacyLoss:
    with placed(place):
        make = getattr(importlib.import_module("tightrope"), step.mechanism)
        once: PrivacyLoss = make(**step.parameters).loss
        if step.poisson_rate is not None:
            once = once.poisson_sample(step.poisson_rate)
        if step.subset is not None:
            m, n = step.subset
            once = once.subset_sample(m, n)  # type: ignore[arg-type]  # it refuses parts of records in its own words
        return step.count * (once if step.erase is None else once.erase(step.erase))
