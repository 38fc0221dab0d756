"""Loops report the completed fraction, to the listener around them alone."""

from __future__ import annotations

import threading

import pandas as pd
import pytest

import tightrope as tr
from tightrope.numerics.progress import listen_to_progress, with_progress


def test_without_a_listener_a_loop_is_only_a_loop() -> None:
    assert list(with_progress("abc", before=2, after=3)) == ["a", "b", "c"]


def test_a_fraction_never_decreases_and_a_loop_may_end_early() -> None:
    fractions: list[float] = []
    with listen_to_progress(fractions.append):
        for number in with_progress(range(4), before=1, after=5):
            if number == 2:
                break
        for _ in with_progress(range(10)):
            pass
    assert fractions[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert fractions == sorted(fractions)
    assert fractions[-1] == 0.9


def test_a_loop_after_an_error_begins_at_the_level_of_its_own() -> None:
    fractions: list[float] = []
    with listen_to_progress(fractions.append):
        for _ in with_progress(range(2)):
            with pytest.raises(ZeroDivisionError):
                for _ in with_progress(range(2)):
                    raise ZeroDivisionError
    assert fractions == [0.0, 0.0, 0.5, 0.5]


def test_other_threads_and_what_follows_report_nothing() -> None:
    fractions: list[float] = []
    with listen_to_progress(fractions.append):
        other = threading.Thread(target=lambda: list(with_progress(range(3))))
        other.start()
        other.join()
    list(with_progress(range(3)))
    assert fractions == []


def test_planning_reports_its_progress_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """In a notebook nothing listens, and nothing is printed."""
    fractions: list[float] = []
    table = pd.DataFrame({"a": [1, 2], "p": [1, 2]})
    session = tr.Session(table, privacy_unit="p", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-6))
    with listen_to_progress(fractions.append):
        plan = session.plan([tr.count(), tr.sum("a", bounds=(0, 1))])
    assert len(fractions) > 5
    assert fractions == sorted(fractions)
    assert 0.5 < fractions[-1] <= 1
    fractions.clear()
    with listen_to_progress(fractions.append):
        plan.draft.accuracy_table()
    assert len(fractions) > 5
    session.plan([tr.count(), tr.sum("a", bounds=(0, 1))])
    assert capfd.readouterr() == ("", "")
