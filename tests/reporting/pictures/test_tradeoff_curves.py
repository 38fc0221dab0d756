"""The picture that compares ways of accounting."""

from __future__ import annotations

import pytest

from tightrope.errors import InputError
from tightrope.reporting.charts import plots


def test_one_line_for_each_way_below_what_it_proves():
    figure = plots.tradeoff_curves({"loose": [(0, 0.5)], "tight": [(0, 0.1), (1, 1e-3)]})
    loose, tight = figure.axes[0].get_lines()
    assert [line.get_label() for line in (loose, tight)] == ["loose", "tight"]
    assert all(b >= a for a, b in zip(loose.get_ydata(), tight.get_ydata(), strict=True))
    for rate, missed in zip(loose.get_xdata(), loose.get_ydata(), strict=True):
        assert missed == pytest.approx(max(0.0, 0.5 - rate), abs=1e-12)  # total variation ½: f(t) = ½ − t


def test_more_ways_than_styles_are_all_drawn():
    figure = plots.tradeoff_curves({str(number): [(0, 0.1)] for number in range(9)})
    assert len(figure.axes[0].get_lines()) == 9


@pytest.mark.parametrize("profiles", [{}, {"empty": []}])
def test_nothing_to_draw(profiles):
    with pytest.raises(InputError, match="profiles"):
        plots.tradeoff_curves(profiles)
