"""Pictures of a coupling: each group before, all groups after, and where the mass goes.

A picture shows the groups' laws: it is as secret as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.engines.axis_cells import Axis
from tightrope.errors import InputError, MissingExtraError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.report.pictures.plots import ACCENT, INK, QUIET
from tightrope.transport.couplings.displacement import flows
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS, MOST_FLOWS, MOST_BARS = 6, 50, 25
AFTER = "#b0563b"
STRETCHED = 4.0
"""Maps whose sides differ by more than this fill their panel instead of keeping their shape."""


def coupling_picture(saved: SavedCoupling) -> Figure:
    """Maps with flows for two axes, histograms for one, bars for categories; the first six groups.

    Raises ``InputError`` for more than two axes, ``MissingExtraError`` without matplotlib.
    """
    support = saved.support
    if not isinstance(support, Cells):
        return _panels(saved, partial(_bars, saved), (3.6, 0.9 + 0.26 * min(len(support), MOST_BARS)))
    if len(support.axes) == 1:
        return _panels(saved, partial(_histogram, saved, support.axes[0]), (3.8, 3.2))
    if len(support.axes) == 2:
        return _maps(saved, support)
    raise InputError("axes", len(support.axes), "one or two to be drawn")


def _panels(saved: SavedCoupling, draw: Callable[[Axes, Any], None], size: tuple[float, float]) -> Figure:
    """One panel a group, side by side, on common axes."""
    figure, axes = _figure(saved, 1, size)
    for panel, name in zip(axes[0], _shown(saved), strict=True):
        draw(panel, name)
        panel.set_title(_title(saved, name), fontsize=10, color=INK)
        panel.spines[["top", "right"]].set_visible(False)
        panel.label_outer()
    axes[0][0].legend(frameon=False, fontsize=8, loc="best")
    return figure


def _maps(saved: SavedCoupling, cells: Cells) -> Figure:
    """Above, each group as it is; below, what all of them become, and the heaviest ways there."""
    from matplotlib.colors import PowerNorm

    broad = 4.6 if len(_shown(saved)) <= 3 else 3.4
    figure, axes = _figure(saved, 2, (broad, broad * min(max(_proportion(cells), 0.3), 2.0) * 0.95 + 0.1))
    target = saved.mechanism.target.floats
    laws = {name: saved.mechanism.groups[name].floats for name in _shown(saved)}
    scale = PowerNorm(0.5, 0, max(float(target.max()), *(float(law.max()) for law in laws.values())))
    for (name, law), above, below in zip(laws.items(), *axes, strict=True):
        image = _map(above, cells, law, scale)
        _map(below, cells, target, scale)
        _arrows(below, cells, flows(saved.mechanism, name))
        above.set_title(_title(saved, name), fontsize=10, color=INK)
        below.set_xlabel(_label(cells.columns[1]), color=INK)
    for row, when in zip(axes, ("before", "after"), strict=True):
        row[0].set_ylabel(f"{when}\n{_label(cells.columns[0])}", color=INK)
    figure.colorbar(image, ax=axes, label="share of the group", shrink=0.8, aspect=30)
    return figure


def _proportion(cells: Cells) -> float:
    """Height over width of the map."""
    down, across = cells.axes
    return (down.upper - down.lower) / (across.upper - across.lower)


def _map(panel: Axes, cells: Cells, law: Floats, scale: Any) -> Any:
    """One law on the map, white where there is nobody."""
    from matplotlib.colors import LinearSegmentedColormap

    down, across = cells.axes
    return panel.imshow(
        law.reshape(cells.shape),
        cmap=LinearSegmentedColormap.from_list("shares", ["#ffffff", "#7fb2c6", INK]),
        norm=scale,
        origin="lower",
        extent=(across.lower, across.upper, down.lower, down.upper),
        aspect="equal" if 1 / STRETCHED <= _proportion(cells) <= STRETCHED else "auto",
        interpolation="nearest",
    )


def _arrows(panel: Axes, cells: Cells, found: tuple[Integers, Integers, Floats]) -> None:
    """The heaviest flows between different cells, the heavier the darker."""
    starts, ends, shares = found
    moved = np.flatnonzero(starts != ends)
    heaviest = moved[np.argsort(-shares[moved], kind="stable")[:MOST_FLOWS]][::-1]
    if not len(heaviest):
        return
    from matplotlib.colors import to_rgba

    (y, x), (v, u) = cells.centres(starts[heaviest]), cells.centres(ends[heaviest])
    strength = np.sqrt(shares[heaviest] / shares[heaviest].max())
    colours = [to_rgba(AFTER, 0.25 + 0.75 * part) for part in strength.tolist()]
    panel.quiver(
        x, y, u - x, v - y, color=colours, angles="xy", scale_units="xy", scale=1, width=0.004, headwidth=5
    )  # fmt: skip


def _histogram(saved: SavedCoupling, axis: Axis, panel: Axes, name: Any) -> None:
    """The group's own law as bars, the common target as a line, in shares of people."""
    edges = axis.lower + np.arange(axis.cells + 1) * axis.width
    panel.stairs(saved.mechanism.groups[name].floats, edges, fill=True, color=ACCENT, alpha=0.35, label="before")
    panel.stairs(saved.mechanism.target.floats, edges, color=AFTER, linewidth=1.6, label="after")
    panel.set_xlabel(_label(axis.column), color=INK)
    panel.set_ylabel("share of the group", color=INK)


def _bars(saved: SavedCoupling, panel: Axes, name: Any) -> None:
    """The categories that are most frequent afterwards, before and after."""
    law, target = saved.mechanism.groups[name].floats, saved.mechanism.target.floats
    order = np.argsort(-target, kind="stable")[:MOST_BARS]
    places = np.arange(len(order))
    panel.barh(places - 0.2, law[order], 0.38, color=ACCENT, alpha=0.5, label="before")
    panel.barh(places + 0.2, target[order], 0.38, color=AFTER, label="after")
    panel.set_yticks(places, [_label(str(saved.support.names[place])) for place in order])
    panel.set_xlabel("share of the group", color=INK)
    panel.set_ylim(len(order) - 0.4, -0.6)


def _figure(saved: SavedCoupling, rows: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """An empty figure, and its axes by row and column."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "release") from missing
    columns, groups = len(_shown(saved)), len(saved.mechanism.groups)
    figure = Figure(figsize=(size[0] * columns + 1.0, size[1] * rows + 0.4), layout="constrained")
    if columns < groups:
        figure.suptitle(f"the first {columns} of {groups} groups", fontsize=9, color=QUIET)
    return figure, figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)


def _shown(saved: SavedCoupling) -> list[Any]:
    return list(saved.mechanism.groups)[:MOST_PANELS]


def _title(saved: SavedCoupling, name: Any) -> str:
    return f"{_label(saved.group)}: {_label(str(name))}"


def _label(words: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return words.replace("$", r"\$")
