"""Spark: without a session of our own nothing is read, so nothing can be charged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tightrope.errors import InputError
from tightrope.tables.backends import spark


class Old:
    """A connection that has no second session."""

    conf = SimpleNamespace(get=lambda *_: "false")


class Unfinished(Old):
    def newSession(self) -> Any:  # noqa: N802 - Spark's name
        raise NotImplementedError("private words")


class Frame:
    def __init__(self, session: Any) -> None:
        self.sparkSession = session

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked of the frame")


@pytest.mark.parametrize("session", [Old(), Unfinished()], ids=["missing", "not implemented"])
def test_a_session_that_opens_no_second_one_is_refused_before_rows_are_read(monkeypatch, session):
    monkeypatch.setattr(spark, "_lazy_frame", lambda *_: Frame(session))
    with (
        pytest.raises(InputError, match=r"second one .*classic session") as refusal,
        spark.snapshot_session(None, None),
    ):
        pass
    assert "private words" not in str(refusal.value)
