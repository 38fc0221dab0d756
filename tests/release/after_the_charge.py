"""Faults after the charge, as if a machine failed there: all that is done then was tried on nothing before."""

from __future__ import annotations

import pytest

from tightrope.release import build_answers


def fails_after_the_charge(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """A release ends with this exception when it draws: what comes before, the rehearsal too, goes well."""
    rehearse = build_answers.AnswerBuilder.rehearse_on_zeros

    def drawn(*_: object) -> None:
        raise error

    def rehearsed(*words: object) -> None:
        rehearse(*words)  # type: ignore[arg-type]
        patch.setattr(build_answers, "_noisy_groups", drawn)

    patch.setattr(build_answers.AnswerBuilder, "rehearse_on_zeros", rehearsed)
