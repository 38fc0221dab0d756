"""Pictures of a coupling: each group before, all groups after, and where the mass goes.

A picture shows the groups' laws: it is as secret as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError, MissingExtraError
from tightrope.report.plots import ACCENT, INK, QUIET
from tightrope.transport.moves import flows
from tightrope.transport.saved import SavedCoupling
from tightrope.transport.supports import Cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
MOST_PANELS, MOST_FLOWS, MOST_BARS = 6, 80, 25
AFTER = "#b0563b"
STRETCHED = 4.0
"""Maps whose sides differ by more than this fill their panel instead of keeping their shape."""


def coupling_picture(saved: SavedCoupling) -> Figure:
    """Maps with flows for two axes, histograms for one, bars for categories; the first six groups.

    Raises ``InputError`` for more than two axes, ``MissingExtraError`` without matplotlib.
    """
    if not isinstance(saved.support, Cells):
        return _panels(saved, _bars, 1, (3.6, 0.9 + 0.26 * min(len(saved.support), MOST_BARS)))
    if len(saved.support.axes) == 1:
        return _panels(saved, _histogram, 1, (3.8, 3.2))
    if len(saved.support.axes) == 2:
        return _maps(saved)
    raise InputError("axes", len(saved.support.axes), "one or two to be drawn")


def _panels(saved: SavedCoupling, draw: Callable[..., None], rows: int, size: tuple[float, float]) -> Figure:
    """One panel a group, side by side, on common axes."""
    figure, axes = _figure(saved, rows, size)
    for place, (name, panel) in enumerate(zip(_shown(saved), axes[0], strict=True)):
        draw(panel, saved, name)
        panel.set_title(_title(saved, name), fontsize=10, color=INK)
        panel.spines[["top", "right"]].set_visible(False)
        if not place:
            panel.legend(frameon=False, fontsize=8, loc="best")
    return figure


def _maps(saved: SavedCoupling) -> Figure:
    """Above, each group as it is; below, what all of them become, and the heaviest ways there."""
    from matplotlib.colors import PowerNorm

    wide = len(_shown(saved)) <= 3
    figure, axes = _figure(saved, 2, (4.6, 2.7) if wide else (3.4, 2.1))
    fitted, target = saved.mechanism, saved.mechanism.target.floats
    laws = {name: fitted.groups[name].floats for name in _shown(saved)}
    scale = PowerNorm(0.5, 0, max(float(target.max()), *(float(law.max()) for law in laws.values())))
    for (name, law), above, below in zip(laws.items(), *axes, strict=True):
        image = _map(above, saved, law, scale)
        _map(below, saved, target, scale)
        _arrows(below, saved, name)
        above.set_title(_title(saved, name), fontsize=10, color=INK)
    axes[0][0].set_ylabel(f"before\n{_label(saved.support.columns[0])}", color=INK)
    axes[1][0].set_ylabel(f"after\n{_label(saved.support.columns[0])}", color=INK)
    for panel in axes[1]:
        panel.set_xlabel(_label(saved.support.columns[1]), color=INK)
    figure.colorbar(image, ax=axes, label="share of the group", shrink=0.8, aspect=30)
    return figure


def _map(panel: Axes, saved: SavedCoupling, law: Floats, scale: Any) -> Any:
    """One law on the map, white where there is nobody."""
    from matplotlib.colors import LinearSegmentedColormap

    (down, across), colours = _axes_of(saved), LinearSegmentedColormap.from_list("shares", ["#ffffff", "#7fb2c6", INK])
    tall, broad = down.upper - down.lower, across.upper - across.lower
    shape = "equal" if 1 / STRETCHED <= tall / broad <= STRETCHED else "auto"
    return panel.imshow(
        law.reshape(saved.support.cost(saved.metric).shape[:0] or (down.cells, across.cells)),
        cmap=colours,
        norm=scale,
        origin="lower",
        extent=(across.lower, across.upper, down.lower, down.upper),
        aspect=shape,
        interpolation="nearest",
    )


def _arrows(panel: Axes, saved: SavedCoupling, name: Any) -> None:
    """The heaviest flows between different cells, the heavier the darker."""
    starts, ends, shares = flows(saved.mechanism, name)
    moved = np.flatnonzero(starts != ends)
    heaviest = moved[np.argsort(-shares[moved], kind="stable")[:MOST_FLOWS]][::-1]
    if not len(heaviest):
        return
    (y, x), (v, u) = saved.support.centres(starts[heaviest]), saved.support.centres(ends[heaviest])
    strength = np.sqrt(shares[heaviest] / shares[heaviest].max())
    colours = [(0.69, 0.34, 0.23, 0.25 + 0.75 * float(part)) for part in strength]
    panel.quiver(
        x, y, u - x, v - y, color=colours, angles="xy", scale_units="xy", scale=1, width=0.006, headwidth=4, headlength=5
    )


def _histogram(panel: Axes, saved: SavedCoupling, name: Any) -> None:
    """The group's own law as bars, the common target as a line, in shares of people."""
    (axis,) = _axes_of(saved)
    edges = axis.lower + np.arange(axis.cells + 1) * axis.width
    panel.stairs(saved.mechanism.groups[name].floats, edges, fill=True, color=ACCENT, alpha=0.35, label="before")
    panel.stairs(saved.mechanism.target.floats, edges, color=AFTER, linewidth=1.6, label="after")
    panel.set_xlabel(_label(axis.column), color=INK)
    panel.set_ylabel("share of the group", color=INK)
    panel.label_outer()


def _bars(panel: Axes, saved: SavedCoupling, name: Any) -> None:
    """The most frequent categories, before and after."""
    law, target = saved.mechanism.groups[name].floats, saved.mechanism.target.floats
    order = np.argsort(-target, kind="stable")[:MOST_BARS]
    places = np.arange(len(order))
    panel.barh(places - 0.2, law[order], 0.38, color=ACCENT, alpha=0.5, label="before")
    panel.barh(places + 0.2, target[order], 0.38, color=AFTER, label="after")
    panel.set_yticks(places, [_label(str(saved.support.names[place])) for place in order])
    panel.set_xlabel("share of the group", color=INK)
    panel.set_ylim(len(order) - 0.4, -0.6)
    panel.label_outer()


def _figure(saved: SavedCoupling, rows: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "release") from missing
    columns = len(_shown(saved))
    figure = Figure(figsize=(size[0] * columns + 1.0, size[1] * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    if columns < len(saved.mechanism.groups):
        figure.suptitle(f"the first {columns} of {len(saved.mechanism.groups)} groups", fontsize=9, color=QUIET)
    return figure, axes


def _shown(saved: SavedCoupling) -> list[Any]:
    return list(saved.mechanism.groups)[:MOST_PANELS]


def _axes_of(saved: SavedCoupling) -> Any:
    return getattr(saved.support, "axes")  # noqa: B009


def _title(saved: SavedCoupling, name: Any) -> str:
    return f"{_label(saved.group)}: {_label(str(name))}"


def _label(words: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return words.replace("$", r"\$")
