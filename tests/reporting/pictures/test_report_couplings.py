"""Pictures of couplings: every kind of support, titles that are text, axes and scales that groups share."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest

from tightrope.documents.coupling import Origin
from tightrope.errors import InputError
from tightrope.reporting.charts.plots import MOST_FLOWS, coupling_picture, delta_frontier_chart
from tightrope.tables.labels import Axis, Labels
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Categories, Cells, Support
from tightrope.transport.solvers.barycenter import delta_frontier

MAP = Cells((Axis("lat", 0, 3, 3), Axis("lon", -2, 2, 4)))


def saved(support: Support, groups: int = 2) -> SavedCoupling:
    rng = np.random.default_rng(4)
    laws = {f"${number}_$": rng.dirichlet(np.ones(len(support))) for number in range(groups)}
    mechanism = CouplingMechanism.fit(laws, support.transport_cost(), target=np.full(len(support), 1 / len(support)))
    return SavedCoupling(mechanism, support, "$group", support.default_metric, Origin.from_kind("table", "uniform"))


def drawn(figure: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", dpi=40)
    return file.getvalue()


@pytest.mark.parametrize(
    ("support", "panels"),
    [
        (MAP, 5),
        (Cells((Axis("age", 0, 100, 9),)), 2),
        (Categories("city", Labels.from_names(["a$b$", "Łódź", "c"])), 2),
        (Categories("year", Labels.from_names(range(40))), 2),
        (Cells((Axis("tall", 0, 1000, 3), Axis("narrow", 0, 1, 2))), 5),
    ],
)
def test_every_support_is_drawn(support: Support, panels: int) -> None:
    figure = coupling_picture(saved(support))
    assert len(figure.axes) == panels
    assert drawn(figure).startswith(b"\x89PNG")


def test_maps_show_laws_on_one_scale_and_the_heaviest_flows() -> None:
    found = saved(MAP)
    figure = coupling_picture(found)
    images = [axes.images[0] for axes in figure.axes[:4]]
    assert len({id(image.norm) for image in images}) == 1
    shown = [np.asarray(image.get_array()).ravel() for image in images]
    for law, picture in zip(found.mechanism.groups.values(), shown[:2], strict=True):
        assert picture == pytest.approx(law.float_masses)
    assert shown[2] == pytest.approx(shown[3])
    arrows = [axes.collections for axes in figure.axes[:4]]
    assert [len(one) for one in arrows] == [0, 0, 1, 1]
    assert 0 < arrows[2][0].N <= MOST_FLOWS


def test_nobody_moves() -> None:
    laws = {"a": np.full(12, 1 / 12)}
    still = SavedCoupling(
        CouplingMechanism.fit(laws, MAP.transport_cost(), target=laws["a"]),
        MAP,
        "g",
        "cityblock",
        Origin.from_kind("table", "a"),
    )
    assert not coupling_picture(still).axes[1].collections


def test_six_groups_at_most_and_two_axes() -> None:
    figure = coupling_picture(saved(Cells((Axis("age", 0, 9, 3),)), groups=8))
    assert len(figure.axes) == 6
    assert "6 of 8" in figure.get_suptitle()
    with pytest.raises(InputError, match="one or two"):
        coupling_picture(saved(Cells((MAP.axes[0], MAP.axes[1], Axis("z", 0, 1, 2)))))


def test_partial_couplings_show_each_group_its_own_outputs() -> None:
    rng = np.random.default_rng(5)
    laws = {name: rng.dirichlet(np.full(12, 0.5)) for name in "ab"}
    mechanism = CouplingMechanism.fit(laws, MAP.transport_cost(), delta=0.2)
    found = SavedCoupling(mechanism, MAP, "group", "cityblock", Origin.from_kind("table", "barycenter"))
    shown = [np.asarray(axes.images[0].get_array()).ravel() for axes in coupling_picture(found).axes[2:4]]
    for name, picture in zip("ab", shown, strict=True):
        assert picture == pytest.approx(mechanism.output_distribution(name))
    assert np.abs(shown[0] - shown[1]).sum() / 2 == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("max_points", [3, 100])
def test_a_frontier_falls_from_the_coupling_to_nothing(max_points: int) -> None:
    rng = np.random.default_rng(6)
    laws = rng.dirichlet(np.full(12, 0.5), 2)
    found = delta_frontier(laws, MAP.transport_cost(), max_points=max_points)
    figure = delta_frontier_chart(found, unit="cells $of_1", delta=0.1)
    deltas, costs = figure.axes[0].lines[0].get_data()
    assert (np.diff(np.asarray(deltas)) > 0).all()
    assert (np.diff(np.asarray(costs)) <= 1e-12).all()
    assert np.asarray(costs)[0] == pytest.approx(found.points[0].cost)
    assert np.asarray(costs)[-1] == pytest.approx(0, abs=1e-5)
    point = figure.axes[0].lines[1].get_data()
    assert np.asarray(point).ravel().tolist() == [0.1, found.cost_bounds(0.1)[1]]
    assert drawn(figure).startswith(b"\x89PNG")


def test_a_frontier_of_equal_groups_is_drawn() -> None:
    same = np.full((2, 12), 1 / 12)
    figure = delta_frontier_chart(delta_frontier(same, MAP.transport_cost()), unit="cells")
    assert drawn(figure).startswith(b"\x89PNG")
