"""A bar in a notebook: it moves with planning, and needs no widgets."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tightrope.numerics.progress import with_progress
from tightrope.reporting import progress_bar
from tightrope.reporting.pages import summaries


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the notebook shows, in the order of the updates."""
    pages: list[str] = []

    def display(bar: summaries.NotebookBar, *, display_id: bool) -> object:
        assert display_id
        pages.append(bar._repr_html_())
        return SimpleNamespace(update=lambda changed: pages.append(changed._repr_html_()))

    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(summaries, "SECONDS_BETWEEN_UPDATES", 0.0)
    return pages


def test_a_bar_moves_with_the_loops_inside(shown: list[str]) -> None:
    with progress_bar("<Planning>"):
        for _ in with_progress(range(4)):
            pass
    values = [float(page.split('value="')[1].split('"')[0]) for page in shown]
    assert values == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0]
    assert all(page.endswith("&lt;Planning&gt;") for page in shown)


def test_a_bar_of_a_failed_task_does_not_end_full(shown: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt), progress_bar("Planning"):
        raise KeyboardInterrupt
    assert 'value="1.000"' not in shown[-1]


def test_outside_of_notebooks_and_terminals_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Planning"):
        assert list(with_progress(range(3))) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
