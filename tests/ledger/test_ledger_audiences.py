"""What one audience has paid for is not another one's for nothing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger import Limit
from tightrope.release import Session

BUDGET = tr.Budget(epsilon=1, delta="1e-6")
LIMITS = [Limit("press", tr.Budget(epsilon="0.01", delta="1e-8"), audience="press")]
ASKED = [tr.count(by="g", keys=["a", "b"])]
FRAME = pd.DataFrame({"g": ["a"] * 500 + ["b"] * 300})


def session(path: Path, audience: str | None) -> Session:
    return Session.open(
        FRAME,
        ledger=path / "own.ledger",
        dataset="d",
        limits=LIMITS,
        audience=audience,
        privacy_unit=None,
        budget=BUDGET,
    )


@pytest.mark.parametrize("other", ["press", None])
def test_a_key_is_its_audience_s(tmp_path: Path, other: str | None) -> None:
    board, press = session(tmp_path, "board"), session(tmp_path, other)
    board.plan(ASKED, budget_fraction="0.5", key="K").release()
    with pytest.raises(InputError, match="for a different audience"):
        press.plan(ASKED, budget_fraction="0.5", key="K").release()
    with pytest.raises(InsufficientBudgetError, match="press"):
        press.plan(ASKED, budget_fraction="0.4", key="L").release()


@pytest.mark.parametrize("other", ["press", None])
def test_a_series_is_its_audience_s(tmp_path: Path, other: str | None) -> None:
    board, press = session(tmp_path, "board"), session(tmp_path, other)
    board.series(board.plan(ASKED, budget_fraction="0.25"), times=2, key="S").next().release()
    with pytest.raises(InputError, match="key"):
        press.series(press.plan(ASKED, budget_fraction="0.25"), times=2, key="S")


def test_what_was_not_answered_is_its_audience_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board, press = session(tmp_path, "board"), session(tmp_path, "press")

    def die(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("tightrope.ledger.account.Account.store_answers", die)
        with pytest.raises(KeyboardInterrupt):
            board.plan(ASKED, budget_fraction="0.5").release()
    assert press._account.unanswered_key(plan_of(press)) is None
    assert board._account.unanswered_key(plan_of(board)) is not None


def plan_of(own: Session) -> str:
    from tightrope.release.execution import release_claim

    return release_claim(own.plan(ASKED, budget_fraction="0.5").draft, "-", own._audience).plan
