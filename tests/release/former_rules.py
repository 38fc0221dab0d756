"""Plans as earlier planning rules made them, for tests of ledgers that such versions have written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tightrope as tr
from tightrope.release.planner import Planner


def plan_by_former_rule(monkeypatch: pytest.MonkeyPatch, rule: int) -> None:
    """Plan by this rule at the latest, as versions before the next one did."""
    make_draft = Planner.make_draft

    def former_draft(self: Planner, *args: Any) -> Any:
        return make_draft(replace(self, rule=min(self.rule, rule)), *args)

    monkeypatch.setattr(Planner, "make_draft", former_draft)


def resume_killed_release(
    monkeypatch: pytest.MonkeyPatch, rule: int, open_session: Callable[[], tr.Session], questions: list[Any]
) -> tuple[tr.Session, Any]:
    """Charge a release by a former rule without releasing it; return a new session, and the plan that it resumes."""
    with monkeypatch.context() as former:
        plan_by_former_rule(former, rule)
        plan = open_session().plan(questions, budget_fraction="0.25", key="killed")
        plan._account._account.begin_reading(plan._account.claim)  # type: ignore[union-attr]
    session = open_session()
    return session, session.resumed(session.plan(questions, budget_fraction="0.25"))
