"""The bar of long work: on standard error of a terminal, and from one second on."""

from __future__ import annotations

import io
import sys
import time

import pytest

from tightrope.cli import output
from tightrope.cli.output import show_progress
from tightrope.numerics.progress import with_progress


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, *, seconds: float, terminal: bool = True) -> str:
    """What four steps write that take these seconds together."""
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with show_progress("Choosing the noise ..."):
        for _ in with_progress(range(4)):
            time.sleep(seconds / 4)
    return stream.getvalue()


def test_a_terminal_shows_the_task_at_once_and_the_bar_late(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = shown(monkeypatch, seconds=0.4)
    assert "Choosing the noise ..." in quick
    assert "━" not in quick
    monkeypatch.setattr(output, "SECONDS_BEFORE_BAR", 0.1)
    slow = shown(monkeypatch, seconds=0.8)
    assert "━" in slow
    assert "0:00:00" in slow


def test_other_streams_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "SECONDS_BEFORE_BAR", 0.0)
    assert shown(monkeypatch, seconds=0.3, terminal=False) == ""


def test_the_bar_is_gone_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt), show_progress("Choosing the noise ..."):
        raise KeyboardInterrupt
    assert stream.getvalue().endswith("\x1b[2K")
    assert list(with_progress(range(2))) == [0, 1]
