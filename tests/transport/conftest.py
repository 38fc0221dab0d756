"""Mechanisms are tested apart from the solvers: a dense program stands in for them."""

from __future__ import annotations

import pytest

from tests.transport import dense_solvers


@pytest.fixture(autouse=True)
def _dense(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.module.__name__.rsplit(".", 1)[-1].startswith(("test_mechanism", "test_distribution", "test_metric")):
        monkeypatch.setattr("tightrope.transport.solving._solvers", lambda: dense_solvers)
