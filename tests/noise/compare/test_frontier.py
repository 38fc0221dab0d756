"""The frontier: limits below costs, and more privacy costs more."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.documents import Budget
from tightrope.errors import InputError
from tightrope.noise.compare import frontier, gaussian_price
from tightrope.reporting.charts import plots


def test_the_error_falls_with_epsilon_and_delta():
    asked = [Budget(epsilon=epsilon, delta=delta) for epsilon in np.array([0.5, 1.0, 2.0]) for delta in (1e-9, 1e-3)]
    found = frontier(asked)
    costs = np.array([point.cost for point in found.points]).reshape(3, 2)
    assert np.all(np.diff(costs, axis=0) < 0)
    assert np.all(np.diff(costs, axis=1) < 0)
    assert all(0 < point.limit <= point.cost for point in found.points)


def test_people_and_total_variation():
    asked = [Budget(epsilon=1, delta=1e-6, total_variation=eta) for eta in (0.2, 0.4)]
    found = frontier(asked, people=[100, 1000], cost="squared")
    assert [p.asked_total_variation for p in found.points] == [0.2, 0.2, 0.4, 0.4]
    assert [p.people for p in found.points] == [100, 1000, 100, 1000]
    assert found.points[0].cost == pytest.approx(3.4346484758853615, rel=1e-9)  # theory's reference
    assert found.points[1].relative_error == found.points[1].cost / 1000
    assert found.points[0].total_variation <= 0.2 * (1 + 1e-9)
    rows = found.to_data()
    assert len(rows) == 4
    assert rows[0]["limit"] <= rows[0]["cost"]


def test_sensitivity_and_releases():
    wide = frontier([Budget(epsilon=1, delta=1e-6)], sensitivity=3)
    many = frontier([Budget(epsilon=1, delta=1e-6)], releases=5, cost="squared")
    assert wide.points[0].cost == pytest.approx(2.860785, rel=1e-6)
    assert many.points[0].cost < 49.7


@pytest.mark.parametrize(
    ("budgets", "people", "said"),
    [
        ([], None, "budgets"),
        ([Budget(epsilon=1, delta=1e-6)] * 10_001, None, "10000"),
        ([(1, 1e-6)], None, "budget"),
        ([Budget(epsilon=1, delta=1e-6)], 0, "people"),
        ([Budget(epsilon=1, delta=1e-6)], [], "people"),
    ],
)
def test_nonsense(budgets, people, said):
    with pytest.raises(InputError, match=said):
        frontier(budgets, people=people)


def test_the_price_of_gaussian_noise():
    rows = gaussian_price(epsilon=[0.5, 1.0, 4.0], delta=[1e-9, 1e-4], cost="squared")
    assert [len(row) for row in rows] == [3, 3]
    for row in rows:
        for price in row:
            assert 1 < price.lower <= price.upper < price.lower * 1.03
    assert rows[0][1].lower > rows[1][1].lower  # a smaller delta makes Gaussian noise dearer
    with pytest.raises(InputError, match="cost"):
        gaussian_price(epsilon=[1.0], delta=[1e-6], cost="cubed")
    with pytest.raises(InputError, match="epsilon"):
        gaussian_price(epsilon=[], delta=[1e-6])


def test_pictures(tmp_path):
    asked = [Budget(epsilon=epsilon, delta=delta) for epsilon in (0.5, 1, 2) for delta in (1e-6, 1e-3)]
    plots.frontier(frontier(asked, people=100)).savefig(tmp_path / "frontier.png")
    plots.gaussian_price(gaussian_price(epsilon=[0.5, 1.0], delta=[1e-6, 1e-3])).savefig(tmp_path / "price.png")
    plots.noise_laws({"coin": [0.5, 0.25]}).savefig(tmp_path / "laws.png")
    assert all((tmp_path / f"{name}.png").stat().st_size > 5000 for name in ("frontier", "price", "laws"))
    with pytest.raises(InputError):
        plots.noise_laws({})
    with pytest.raises(InputError):
        plots.gaussian_price([])


def test_laws_are_told_apart_and_the_legend_is_off_the_curves():
    """Nine laws that coincide: nine pairs of color and line, and the first, thickest, shows behind the others."""
    figure = plots.noise_laws({f"law {i}": [0.5, 0.2, 0.05] for i in range(9)})
    (axes,) = figure.axes
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.lines}
    widths = [line.get_linewidth() for line in axes.lines]
    assert len(looks) == 9
    assert len({color for color, _ in looks}) == 7
    assert widths == sorted(widths, reverse=True)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())
