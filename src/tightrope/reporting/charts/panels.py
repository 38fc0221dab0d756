"""Figures as data until they are drawn: lines, planes and diagrams, as SVG text for a page.

Code that computes a figure returns one of these; matplotlib is loaded only when it is drawn.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#17627f", "#b0563b", "#5d7f3a", "#a3780f", "#6b4a8c", "#1c2430")
STYLES = ("-", "--", "-.", ":")
INK, FAINT = "#1c2430", "#dfe6ea"
WIDTH, HEIGHT = 4.0, 3.4
"""Inches: readable on a one-column page on a phone."""


@dataclass(frozen=True, slots=True)
class Line:
    """A named curve; ``kind`` is "line", "steps" (constant until the next x) or "points"."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves in one pair of axes."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False

    def draw_on(self, axes: Axes) -> None:
        """Draw the curves, with a legend for several of them."""
        looks = zip(cycle(COLOURS), cycle(STYLES), strict=False)
        for line, (color, style) in zip(self.lines, looks, strict=False):
            look: dict[str, Any] = {"color": color, "linestyle": style, "linewidth": 1.6}
            if line.kind == "points":
                look = {"color": color, "linestyle": "none", "marker": "o", "markersize": 4}
            elif line.kind == "steps":
                look["drawstyle"] = "steps-post"
            axes.plot(line.x, line.y, label=_escape_mathtext(line.name), **look)
        axes.set(xlabel=_escape_mathtext(self.x), ylabel=_escape_mathtext(self.y))
        axes.set_xscale("log" if self.log_x else "linear")
        axes.set_yscale("log" if self.log_y else "linear")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color=FAINT, linewidth=0.7)
        if len(self.lines) > 1:
            columns = 1 if max(len(line.name) for line in self.lines) > 24 else 2
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), frameon=False, fontsize=8, ncols=columns)


@dataclass(frozen=True, slots=True)
class Plane:
    """Values over two logarithmic axes, a row for each y: shaded, each cell with its number."""

    title: str
    x: str
    y: str
    at_x: Sequence[float]
    at_y: Sequence[float]
    values: Sequence[Sequence[float]]

    def draw_on(self, axes: Axes) -> None:
        """Draw the cells with their numbers."""
        values = [list(row) for row in self.values]
        largest = max((value for row in values for value in row if math.isfinite(value)), default=1.0) or 1.0
        axes.imshow(values, cmap="YlGnBu", aspect="auto", origin="lower", vmin=0.0, vmax=largest * 2)
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                if math.isfinite(value):
                    axes.text(j, i, f"{value:.3g}", ha="center", va="center", fontsize=7.5, color=INK)
        axes.set_xticks(range(len(self.at_x)), [f"{value:.3g}" for value in self.at_x])
        axes.set_yticks(range(len(self.at_y)), [f"{value:.3g}" for value in self.at_y])
        axes.set(xlabel=_escape_mathtext(self.x), ylabel=_escape_mathtext(self.y))


@dataclass(frozen=True, slots=True)
class Diagram:
    """Named boxes at positions in the unit square, and arrows (from, to, words) between them."""

    title: str
    boxes: Sequence[tuple[str, float, float]]
    arrows: Sequence[tuple[str, str, str]]

    def draw_on(self, axes: Axes) -> None:
        """Draw the boxes and the arrows."""
        places = {name: (x, y) for name, x, y in self.boxes}
        box = {"boxstyle": "round,pad=0.35", "facecolor": "#eef3f5", "edgecolor": COLOURS[0]}
        shown = {
            name: axes.text(
                x, y, _escape_mathtext(name), ha="center", va="center", fontsize=9, color=INK, bbox=box, zorder=3
            )
            for name, (x, y) in places.items()
        }
        for start, end, words in self.arrows:
            ends = {"patchA": shown[start].get_bbox_patch(), "patchB": shown[end].get_bbox_patch()}
            arrow = {"arrowstyle": "-|>", "color": COLOURS[0], "shrinkA": 2, "shrinkB": 2, **ends}
            axes.annotate("", xy=places[end], xytext=places[start], arrowprops=arrow, zorder=4)
            x, y = ((places[start][i] + places[end][i]) / 2 for i in (0, 1))
            axes.text(
                x, y + 0.03, _escape_mathtext(words), ha="center", va="bottom", fontsize=8, color="#576270", zorder=4
            )
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_axis_off()


Drawing = Panel | Plane | Diagram


def render_svg(drawing: Drawing) -> str:
    """Return the figure as an SVG element without a fixed size, named by its title; the same data give the same text.

    Raises ``InputError`` if the argument is not a figure, ``MissingExtraError`` without matplotlib.

    >>> render_svg(Panel("a line", "x", "y", [Line("y = x", [0, 1], [0, 1])])).startswith("<svg")
    True
    """
    if not isinstance(drawing, Drawing):
        raise InputError("drawing", type(drawing).__name__, "a Panel, a Plane or a Diagram")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "release") from missing
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": drawing.title, "font.size": 9}):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(_escape_mathtext(drawing.title), fontsize=9.5, color=INK, loc="left", wrap=True)
        drawing.draw_on(axes)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    # Only the element, as wide as its container, with a name for screen readers.
    text = out.getvalue()
    body = text[text.index("<svg") :].strip()
    body = re.sub(r' (width|height)="[^"]*pt"', "", body, count=2)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    name = drawing.title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return body.replace("<svg", f'<svg role="img" aria-label="{name}"', 1)


def _escape_mathtext(words: str) -> str:
    """Escape text so that matplotlib does not parse it as a formula."""
    return words.replace("$", r"\$")
