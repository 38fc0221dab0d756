"""Figures for a paper or a notebook: matplotlib figures, drawn without a screen.

Each function returns a new Figure without a window or global state: save it with ``savefig``.
"""

from __future__ import annotations

import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tightrope.documents.numbers import time_text
from tightrope.documents.release import AnswerDocument, ReleaseCertificate
from tightrope.errors import InputError, MissingExtraError
from tightrope.numerics.arrays import Floats
from tightrope.reporting.wording import promise
from tightrope.reporting.wording.answers import Answer, Row, shown_answer
from tightrope.reporting.wording.partial_release import PartialAnswer, read_certificate, read_stated_part, stated_number
from tightrope.reporting.wording.promise import true_positive_rate
from tightrope.reporting.wording.sentences import answer_heading
from tightrope.tables.labels import Axis
from tightrope.transport.couplings.mechanism import plan_entries
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tightrope.noise.compare import Frontier, FrontierPoint, GaussianPrice
    from tightrope.transport.solvers.barycenter import DeltaFrontier


class HasAnswerDocument(Protocol):
    """An answer of a release, with the document that states it."""

    @property
    def document(self) -> AnswerDocument:
        """The answer in serializable form."""


MOST_GROUPS = 60
FRONTIER_POINTS = 201
NEGLIGIBLE_DISTANCE = 1e-6
"""A frontier ends where at most this part of its largest distance is left."""
INK, ACCENT, QUIET = "#1c2430", "#17627f", "#76808c"


def tradeoff_curve(certificate: ReleaseCertificate | Mapping[str, object]) -> Figure:
    """Plot the bound on true- against false-positive rates of any attacker, with the diagonal of a coin flip.

    Raises InputError where the certificate states no guarantee, MissingExtraError without matplotlib.
    """
    points = promise.tradeoff_points(read_certificate(certificate))
    if not points:
        raise _empty_chart_error(
            "certificate", certificate, "a certificate with epsilon and delta, total_variation or a profile"
        )
    figure, axes = _new_axes(4.2, 4.2, "false-positive rate", "true-positive rate, at most")
    rates, caught = zip(*points, strict=True)
    axes.fill_between(rates, rates, caught, color=ACCENT, alpha=0.12, linewidth=0)
    axes.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1, label="coin flip")
    axes.plot(rates, caught, color=ACCENT, linewidth=2, label="best attacker")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="lower right", frameon=False)
    return figure


def tradeoff_curves(profiles: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Plot trade-off curves of several accounting methods for one loss: type-II against type-I error, one line a name.

    Each method is given by points (ε, δ), which bound the curve from below. Raises InputError without points,
    MissingExtraError without matplotlib.
    """
    if not profiles or not all(profiles.values()):
        remedy = "give {'exact': [(0, 0.1), (1, 1e-5)]}"
        raise InputError("profiles", profiles, "a dictionary from names to points (epsilon, delta)", remedy)
    figure, axes = _new_axes(5.2, 4.6, "type-I error (false alarms)", "type-II error (members missed), at least")
    for (name, points), (style, color) in zip(profiles.items(), cycle(_LINES), strict=False):
        missed = [1 - promise.true_positive_rate(points, rate) for rate in _RATES]
        axes.plot(_RATES, missed, linestyle=style, linewidth=1.5, color=color, label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="upper right", frameon=False, fontsize=8)
    return figure


def privacy_profile(certificate: ReleaseCertificate | Mapping[str, object]) -> Figure:
    """Plot δ over ε, δ on a logarithmic axis, with the stated guarantee as a dot.

    Raises InputError where the certificate holds no profile, MissingExtraError without matplotlib.
    """
    stated = read_certificate(certificate)
    points = promise.profile_points(stated)
    if not points:
        raise _empty_chart_error("certificate", certificate, "a certificate with a profile")
    figure, axes = _new_axes(5.2, 4.0, "ε", "δ")
    axes.semilogy(*zip(*points, strict=True), color=ACCENT, linewidth=2)
    if stated.epsilon is not None and stated.delta:
        axes.plot([stated.epsilon], [stated.delta], "o", color=ACCENT)
    return figure


def answers_chart(answer: AnswerDocument | Mapping[str, object] | HasAnswerDocument) -> Figure:
    """Plot the values of one answer with their 95 % intervals: over the keys if these are numbers, else as a list.

    ``answer`` is one of a release, its document, or this document as plain data.

    A list shows the first 60 groups that have a value and says how many there are.
    Raises InputError where no value is published, MissingExtraError without matplotlib.
    """
    stated = answer if isinstance(answer, AnswerDocument | Mapping) else getattr(answer, "document", answer)
    read = shown_answer(stated if isinstance(stated, AnswerDocument) else read_stated_part(stated, PartialAnswer))
    published = [row for row in read.rows if row.value is not None]
    if not published:
        raise _empty_chart_error("answer", answer, "an answer with at least one published value")
    heading = _escape_mathtext(answer_heading(read))
    if read.has_numeric_axis:
        keyed = [(key, row) for row in published if (key := stated_number(row.keys[0])) is not None]
        keys, rows = [key for key, _ in keyed], [row for _, row in keyed]
        figure, axes = _new_axes(7.0, 4.0, _escape_mathtext(read.by[0]), heading)
        axes.errorbar(keys, _row_values(rows), yerr=_whisker_lengths(rows), **_STYLE)
        _show_dates(axes.yaxis, read)
        return figure
    shown = published[:MOST_GROUPS]
    figure, axes = _new_axes(7.0, 1.2 + 0.24 * len(shown), heading, "")
    places = list(range(len(shown)))
    axes.errorbar(_row_values(shown), places, xerr=_whisker_lengths(shown), **_STYLE)
    _show_dates(axes.xaxis, read)
    axes.set_yticks(places, [_escape_mathtext(" · ".join(row.key_labels)) for row in shown])
    axes.invert_yaxis()
    if len(shown) < len(published):
        axes.set_title(f"the first {len(shown)} of {len(published)} groups", loc="left", fontsize=9, color=QUIET)
    return figure


def _show_dates(axis: Any, answer: Answer) -> None:
    """Label the ticks of the values with dates if they are dates."""
    if answer.time_unit:
        axis.axes.locator_params(axis=axis.axis_name, nbins=4)
        axis.set_major_formatter(lambda days, _: time_text(days, answer.time_unit))


def plan_frontier(budgets: Sequence[Mapping[str, Any]]) -> Figure:
    """Plot the 95 % margin of error of each planned answer over ε, both on logarithmic axes.

    ``budgets`` are the rows of ``plan.frontier()``; where an answer's error depends on the rows of a group, it has a
    line for each number of rows. Raises InputError if no budget can be met, MissingExtraError without matplotlib.
    """
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    answers = ((row["epsilon"], *answer) for row in budgets for answer in (row["answers"] or {}).items())
    for epsilon, name, widths in answers:
        by_size = widths if isinstance(widths, Mapping) else {"": widths}
        for rows, width in by_size.items():
            label = f"{name}, {int(rows):,} rows" if rows else name
            lines[label] += [(epsilon, width)] if width else []
    lines = {label: points for label, points in lines.items() if points}
    if not lines:
        raise InputError.from_text("budgets", "no budget can be met; plan with a larger epsilon or delta")
    figure, axes = _new_axes(6.4, 4.6, "ε", "95 % margin of error")
    for (label, points), color, style in zip(lines.items(), cycle(_LAW_COLOURS), cycle(_LAW_STYLES), strict=False):
        axes.loglog(*zip(*points, strict=True), color=color, linestyle=style, marker="o", label=_escape_mathtext(label))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8, handlelength=4)
    return figure


def loss_curves(tradeoff: Sequence[tuple[float, float]], profile: Sequence[tuple[float, float]]) -> Figure:
    """Plot a privacy loss: true- against false-positive rate of the best attacker, next to δ over ε.

    ``tradeoff`` has pairs of rates, ``profile`` pairs (ε, δ). Raises MissingExtraError without matplotlib.
    """
    figure, (attack, curve) = _new_figure(8.4, 4.0, columns=2)
    rates, caught = zip(*tradeoff, strict=True)
    attack.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1, label="coin flip")
    attack.plot(rates, caught, color=ACCENT, linewidth=2, label="best attacker")
    attack.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="false-positive rate", ylabel="true-positive rate")
    attack.legend(loc="lower right", frameon=False)
    drawn = [(epsilon, delta) for epsilon, delta in profile if delta > 0]
    if drawn:
        curve.semilogy(*zip(*drawn, strict=True), color=ACCENT, linewidth=2)
    curve.set(xlabel="ε", ylabel="δ")
    return figure


def noise_tails(noises: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Plot P(|X| > x) over x on a logarithmic axis, one line a noise, from pairs (x, probability).

    Raises MissingExtraError without matplotlib.
    """
    figure, axes = _new_axes(5.6, 4.0, "error", "probability of a larger error, at most")
    for (name, tails), color in zip(noises.items(), cycle(_COLOURS), strict=False):
        axes.semilogy(*zip(*tails, strict=True), color=color, linewidth=2, label=_escape_mathtext(name))
    axes.legend(loc="upper right", frameon=False, fontsize=8)
    return figure


def frontier(found: Frontier) -> Figure:
    """Plot expected cost against ε on logarithmic axes, a line for each δ, total variation and number of people.

    Lines are known mechanisms; the shade below reaches down to the proven lower bound for all noise. With people,
    the cost is divided by their number. Raises InputError without points, MissingExtraError without matplotlib.
    """
    if not found.points:
        raise InputError("found", found, "a frontier with points", "see tightrope.noise.compare")
    lines: dict[str, list[FrontierPoint]] = defaultdict(list)
    for point in found.points:
        # The name of a line.
        eta = "" if point.asked_total_variation is None else f", total variation {point.asked_total_variation:g}"
        lines[f"δ = {point.delta:g}{eta}{'' if point.people is None else f', {point.people:,} people'}"].append(point)
    relative = found.points[0].people is not None
    figure, axes = _new_axes(5.6, 4.4, "ε", f"expected cost ({found.cost_name}){', per person' if relative else ''}")
    for (name, points), color in zip(lines.items(), cycle(_COLOURS), strict=False):
        epsilons = [point.epsilon for point in points]
        costs, limits = ([getattr(point, side) / (point.people or 1) for point in points] for side in ("cost", "limit"))
        axes.loglog(epsilons, costs, color=color, linewidth=1.5, marker="o", markersize=3, label=name)
        axes.fill_between(epsilons, limits, costs, color=color, alpha=0.2, linewidth=0)
    axes.legend(loc="upper right", frameon=False, fontsize=8)
    return figure


def noise_laws(laws: Mapping[str, Sequence[float]]) -> Figure:
    """Plot probabilities of the errors 0, ±1, ±2, … of several noises, one line a name, on a logarithmic axis.

    Each has its own color and line style, and later ones are thinner, so that coinciding lines all stay visible. The
    legend is below the axes.

    ``laws`` maps a name to the probabilities of 0, 1, 2, …, each shared by ±x. Raises InputError for an empty mapping,
    MissingExtraError without matplotlib.
    """
    if not laws or not all(len(law) for law in laws.values()):
        raise InputError("laws", laws, "a dictionary from names to probabilities of 0, 1, 2, …")
    figure, axes = _new_axes(6.4, 5.0, "error", "probability")
    widths = [1.2 + 2.4 * place / len(laws) for place in range(len(laws), 0, -1)]
    kinds = zip(cycle(_LAW_COLOURS), cycle(_LAW_STYLES))
    for (name, law), (color, style), width in zip(laws.items(), kinds, widths, strict=False):
        shown = [(x, p) for x, p in enumerate(law) if p > _FAINT]
        errors, chances = [x for x, _ in shown], [p for _, p in shown]
        both = [-x for x in errors[:0:-1]] + errors
        heights = chances[:0:-1] + chances
        axes.semilogy(
            both,
            heights,
            drawstyle="steps-mid",
            linestyle=style,
            color=color,
            linewidth=width,
            label=_escape_mathtext(name),
        )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8, handlelength=4)
    return figure


def gaussian_price(rows: Sequence[Sequence[GaussianPrice]]) -> Figure:
    """Plot the ratio of Gaussian noise to the smallest possible noise over ε and δ, both on logarithmic axes.

    Raises InputError for fewer than two rows or columns, MissingExtraError without matplotlib.
    """
    if not (len(rows) > 1 and len(rows[0]) > 1):
        raise InputError("rows", rows, "at least two values of epsilon and of delta", "see tr.noise.gaussian_price")
    figure, axes = _new_axes(5.6, 4.4, "ε", "δ")
    epsilons, deltas = [price.epsilon for price in rows[0]], [row[0].delta for row in rows]
    values = [[price.lower for price in row] for row in rows]
    lines = axes.contour(epsilons, deltas, values, levels=_PRICES, colors=ACCENT, linewidths=1.2)
    axes.clabel(lines, fmt="%g ×", fontsize=8)
    axes.set(xscale="log", yscale="log")
    return figure


_PRICES = (1.05, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 300, 1000)
_FAINT = 1e-12
_COLOURS = (ACCENT, "#b0563b", "#5d7f3a", "#c9962f", INK)
_LAW_COLOURS = (ACCENT, "#b0563b", "#5d7f3a", "#c9962f", INK, "#8a4f9e", "#c2517f")
"""One color for each family; coprime to the number of styles, so that 35 distributions differ in color or line."""
_LAW_STYLES = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 1.5, 1, 1.5)), (0, (2, 1, 1, 1, 1, 1)))
_RATES = [(1 - math.cos(math.pi * i / 240)) / 2 for i in range(241)]
_LINES = (("--", "#b0563b"), ("-.", "#c9962f"), ("--", "#5d7f3a"), (":", INK), ("-", ACCENT))
_STYLE: dict[str, Any] = {"fmt": "o", "color": ACCENT, "markersize": 4, "elinewidth": 1.2, "capsize": 0}


def _new_axes(width: float, height: float, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    figure, (axes,) = _new_figure(width, height)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    return figure, axes


def _new_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its axes from left to right."""
    figure = _figure_class()(figsize=(width, height), layout="constrained")
    panels = list(figure.subplots(1, columns, squeeze=False)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure, panels


def _figure_class() -> Any:
    """Return the class of figures, which a notebook shows without pyplot; MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "release") from missing

    class NotebookFigure(Figure):
        """A figure that a notebook shows as a picture, without ``%matplotlib``."""

        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return NotebookFigure


def _row_values(rows: Iterable[Row]) -> list[float]:
    return [row.value for row in rows if row.value is not None]


def _whisker_lengths(rows: list[Row]) -> tuple[list[float], list[float]]:
    """Lengths of the whiskers below and above, 0 where an end is missing."""
    values = _row_values(rows)
    below = [0.0 if row.lower is None else max(value - row.lower, 0.0) for row, value in zip(rows, values, strict=True)]
    above = [0.0 if row.upper is None else max(row.upper - value, 0.0) for row, value in zip(rows, values, strict=True)]
    return below, above


def _escape_mathtext(words: str) -> str:
    """Escape text so that matplotlib does not parse it as a formula."""
    return words.replace("$", r"\$")


def _empty_chart_error(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "pass a part of what `tightrope release --json` prints")


# Measured rates of an attacker, and the rates that a claim allows: true against false positives.

CLAIMED = "#b0563b"
PLACES = 241


def attack_curve(false_positive: Floats, true_positive: Floats, claimed: Sequence[tuple[float, float]]) -> Figure:
    """Plot the proven lower bound with the proven area below it; the claim, points (ε, δ), as a broken line.

    If the line is above the broken one, the claim is refuted. Raises MissingExtraError without matplotlib.
    """
    figure, axes = _new_axes(4.6, 4.6, "false-positive rate", "true-positive rate")
    axes.fill_between(false_positive, false_positive, true_positive, color=ACCENT, alpha=0.12, linewidth=0)
    axes.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1, label="coin flip")
    axes.plot(false_positive, true_positive, color=ACCENT, linewidth=2, label="proven, at least")
    if claimed:
        rates = (1 - np.cos(np.linspace(0, np.pi, PLACES))) / 2
        allowed = [true_positive_rate(claimed, rate) for rate in rates.tolist()]
        axes.plot(rates, allowed, color=CLAIMED, linestyle=(0, (5, 2)), linewidth=1.5, label="claimed, at most")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="lower right", frameon=False)
    return figure


def delta_frontier_chart(found: DeltaFrontier, *, unit: str, delta: float = 0.0) -> Figure:
    """Plot the least mean distance of a partial coupling against δ, with the point of one ``delta``.

    The line is attained by mechanisms; the shade reaches down to the proven lower bound. It ends at the δ from which
    values stay as they are. Raises MissingExtraError without matplotlib.
    """
    figure, axes = _new_axes(
        4.6, 3.6, "total variation between groups (δ)", f"mean distance\n({_escape_mathtext(unit)})"
    )
    costs = [point.cost for point in found.points]
    negligible = NEGLIGIBLE_DISTANCE * (costs[0] - costs[-1])
    end = next(point.delta for point in found.points if point.cost - costs[-1] <= negligible)
    deltas = np.union1d(np.linspace(0.0, end or 1.0, FRONTIER_POINTS), [point.delta for point in found.points])
    deltas = deltas[deltas <= (end or 1.0)]
    lower, upper = zip(*map(found.cost_bounds, deltas.tolist()), strict=True)
    axes.fill_between(deltas, lower, upper, color=ACCENT, alpha=0.25, linewidth=0)
    axes.plot(deltas, upper, color=ACCENT, linewidth=1.6)
    axes.plot([delta], [found.cost_bounds(delta)[1]], color=AFTER, marker="o", markersize=5, clip_on=False)
    axes.set(xlim=(0, None), ylim=(0, None))
    return figure


# Figures of a coupling: each group before, all groups after, and the flow of mass.
#
# A figure shows the groups' distributions: it is as secret as they are.

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
        return _draw_group_panels(
            saved, partial(_draw_category_bars, saved), (3.6, 0.9 + 0.26 * min(len(support), MOST_BARS))
        )
    if len(support.axes) == 1:
        return _draw_group_panels(saved, partial(_draw_histogram, saved, support.axes[0]), (3.8, 3.2))
    if len(support.axes) == 2:
        return _draw_group_maps(saved, support)
    raise InputError("axes", len(support.axes), "one or two to be drawn")


def _draw_group_panels(saved: SavedCoupling, draw: Callable[[Axes, Any], None], size: tuple[float, float]) -> Figure:
    """Draw one panel for each group, side by side, on common axes."""
    figure, axes = _new_group_figure(saved, 1, size)
    for panel, name in zip(axes[0], _drawn_groups(saved), strict=True):
        draw(panel, name)
        panel.set_title(_group_title(saved, name), fontsize=10, color=INK)
        panel.spines[["top", "right"]].set_visible(False)
        panel.label_outer()
    axes[0][0].legend(frameon=False, fontsize=8, loc="best")
    return figure


def _draw_group_maps(saved: SavedCoupling, cells: Cells) -> Figure:
    """Draw each group above, and below it its outputs with the heaviest flows."""
    from matplotlib.colors import PowerNorm, to_rgba

    broad = 4.6 if len(_drawn_groups(saved)) <= 3 else 3.4
    figure, axes = _new_group_figure(
        saved, 2, (broad, broad * min(max(_height_to_width(cells), 0.3), 2.0) * 0.95 + 0.1)
    )
    laws = {name: saved.mechanism.groups[name].float_masses for name in _drawn_groups(saved)}
    outputs = {name: output_masses(saved, name) for name in laws}
    scale = PowerNorm(0.5, 0, max(float(law.max()) for law in (*laws.values(), *outputs.values())))
    for (name, law), above, below in zip(laws.items(), *axes, strict=True):
        image = _draw_distribution_map(above, cells, law, scale)
        _draw_distribution_map(below, cells, outputs[name], scale)
        # The heaviest flows between different cells, the heavier the darker.
        starts, ends, shares = plan_entries(saved.mechanism, name)
        moved = np.flatnonzero(starts != ends)
        heaviest = moved[np.argsort(-shares[moved], kind="stable")[:MOST_FLOWS]][::-1]
        if len(heaviest):
            (y, x), (v, u) = cells.cell_centers(starts[heaviest]), cells.cell_centers(ends[heaviest])
            strength = np.sqrt(shares[heaviest] / shares[heaviest].max())
            arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.004, "headwidth": 5}
            colors = [to_rgba(AFTER, 0.25 + 0.75 * part) for part in strength.tolist()]
            below.quiver(x, y, u - x, v - y, color=colors, **arrows)
        above.set_title(_group_title(saved, name), fontsize=10, color=INK)
        below.set_xlabel(_escape_mathtext(cells.column_names[1]), color=INK)
    for row, when in zip(axes, ("before", "after"), strict=True):
        row[0].set_ylabel(f"{when}\n{_escape_mathtext(cells.column_names[0])}", color=INK)
    figure.colorbar(image, ax=axes, label="share of the group", shrink=0.8, aspect=30)
    return figure


def output_masses(saved: SavedCoupling, name: Any) -> Floats:
    """Return the distribution of a group's outputs: the target, unless the coupling is partial."""
    mechanism = saved.mechanism
    return mechanism.target.float_masses if mechanism.common_part is None else mechanism.output_distribution(name)


def _height_to_width(cells: Cells) -> float:
    """Height over width of the map."""
    down, across = cells.axes
    return (down.upper - down.lower) / (across.upper - across.lower)


def _draw_distribution_map(panel: Axes, cells: Cells, law: Floats, scale: Any) -> Any:
    """Draw one distribution on the map; empty cells are white."""
    from matplotlib.colors import LinearSegmentedColormap

    down, across = cells.axes
    return panel.imshow(
        law.reshape(cells.grid_shape),
        cmap=LinearSegmentedColormap.from_list("shares", ["#ffffff", "#7fb2c6", INK]),
        norm=scale,
        origin="lower",
        extent=(across.lower, across.upper, down.lower, down.upper),
        aspect="equal" if 1 / STRETCHED <= _height_to_width(cells) <= STRETCHED else "auto",
        interpolation="nearest",
    )


def _draw_histogram(saved: SavedCoupling, axis: Axis, panel: Axes, name: Any) -> None:
    """Draw the group's distribution as bars, its outputs as a line, in shares of people."""
    edges = axis.lower + np.arange(axis.cells + 1) * axis.cell_width
    panel.stairs(saved.mechanism.groups[name].float_masses, edges, fill=True, color=ACCENT, alpha=0.35, label="before")
    panel.stairs(output_masses(saved, name), edges, color=AFTER, linewidth=1.6, label="after")
    panel.set_xlabel(_escape_mathtext(axis.column), color=INK)
    panel.set_ylabel("share of the group", color=INK)


def _draw_category_bars(saved: SavedCoupling, panel: Axes, name: Any) -> None:
    """Draw the categories that are most frequent after the coupling, before and after."""
    law, output = saved.mechanism.groups[name].float_masses, output_masses(saved, name)
    order = np.argsort(-saved.mechanism.target.float_masses, kind="stable")[:MOST_BARS]
    places = np.arange(len(order))
    panel.barh(places - 0.2, law[order], 0.38, color=ACCENT, alpha=0.5, label="before")
    panel.barh(places + 0.2, output[order], 0.38, color=AFTER, label="after")
    panel.set_yticks(places, [_escape_mathtext(str(saved.support.point_names[place])) for place in order])
    panel.set_xlabel("share of the group", color=INK)
    panel.set_ylim(len(order) - 0.4, -0.6)


def _new_group_figure(saved: SavedCoupling, rows: int, size: tuple[float, float]) -> tuple[Figure, Any]:
    """An empty figure, and its axes by row and column."""
    columns, groups = len(_drawn_groups(saved)), len(saved.mechanism.groups)
    figure = _figure_class()(figsize=(size[0] * columns + 1.0, size[1] * rows + 0.4), layout="constrained")
    if columns < groups:
        figure.suptitle(f"the first {columns} of {groups} groups", fontsize=9, color=QUIET)
    return figure, figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)


def _drawn_groups(saved: SavedCoupling) -> list[Any]:
    return list(saved.mechanism.groups)[:MOST_PANELS]


def _group_title(saved: SavedCoupling, name: Any) -> str:
    return f"{_escape_mathtext(saved.group)}: {_escape_mathtext(str(name))}"
