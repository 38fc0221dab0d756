"""What silences a library is the process's: threads that come and go leave it as it was, and stay silent inside."""

from __future__ import annotations

import logging
import threading
import warnings

import pytest

from tightrope.errors import EngineError
from tightrope.tables.engine_calls import engine_call

SPARK = "SQLQueryContextLogger"


def noisy() -> None:
    warnings.warn("fetch_arrow_table is deprecated", DeprecationWarning, stacklevel=1)


def test_threads_that_overlap_stay_silent_and_restore() -> None:
    """A enters, B enters, A leaves, B warns: with a state for each thread B's warning was an error, and A's stayed."""
    first, second = threading.Event(), threading.Event()
    found: list[object] = []

    def early() -> None:
        first.set()
        assert second.wait(10)

    def late() -> None:
        second.set()
        one.join(10)
        noisy()
        found.append(logging.getLogger(SPARK).disabled)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        one = threading.Thread(target=engine_call, args=("wait", early))
        one.start()
        assert first.wait(10)
        engine_call("warn", late)
        assert warnings.filters == before
    assert found == [True]
    assert not logging.getLogger(SPARK).disabled


def test_other_warnings_pass() -> None:
    with pytest.raises(EngineError, match="UserWarning"):
        engine_call("warn", lambda: warnings.warn("something else", UserWarning, stacklevel=1))
