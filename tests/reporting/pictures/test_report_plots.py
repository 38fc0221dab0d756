"""Figures draw what the document says, without a screen and without global state."""

from __future__ import annotations

import io
import sys

import pytest

from tests.reporting import released
from tightrope.errors import InputError, MissingExtraError
from tightrope.reporting.charts import plots

pytest.importorskip("matplotlib")


def test_tradeoff_curve_ends_at_one_and_stays_above_the_diagonal() -> None:
    axes = plots.tradeoff_curve(released.certificate()).axes[0]
    x, y = axes.lines[-1].get_data()
    assert (x[0], x[-1], y[-1]) == (0, 1, 1) and all(y >= x)


def test_privacy_profile_is_logarithmic_and_marks_the_guarantee() -> None:
    axes = plots.privacy_profile(released.certificate()).axes[0]
    assert axes.get_yscale() == "log"
    found = released.certificate()
    assert [list(data) for data in axes.lines[-1].get_data()] == [[found["epsilon"]], [found["delta"]]]


def test_numeric_groups_stand_over_their_keys() -> None:
    answer = released.answer("income")
    axes = plots.answers_chart(answer).axes[0]
    shown = [row["educ"] for row in answer["rows"] if row["value"] is not None]
    assert shown[:9] == list(range(8, 17))
    assert list(axes.lines[0].get_xdata()) == shown


def test_long_lists_are_cut_and_say_so() -> None:
    axes = plots.answers_chart(released.cut("areas", 540)).axes[0]
    assert len(axes.get_yticks()) == 60
    assert axes.get_title(loc="left") == "the first 60 of 540 groups"


def test_names_are_never_read_as_formulas() -> None:
    answer = released.rows_by("k", [released.row(1, 1, k="$\\bad{$"), released.row(2, 1, k="b")]) | {
        "question": "x $\\frac$"
    }
    plots.answers_chart(answer).savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("draw", [plots.tradeoff_curve, plots.privacy_profile, plots.answers_chart])
def test_nothing_to_draw_is_said(draw: object) -> None:
    with pytest.raises(InputError, match="expected"):
        draw({})  # type: ignore[operator]


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        plots.tradeoff_curve(released.certificate())
