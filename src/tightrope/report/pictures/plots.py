"""Pictures for a paper or a notebook: matplotlib figures, drawn without a screen.

Each function returns a new Figure that belongs to no window and to no global state: save it with ``savefig``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, MissingExtraError
from tightrope.report.words import attacker
from tightrope.report.words.answers import Answer, Row, read_answer
from tightrope.report.words.document import as_number, number
from tightrope.report.words.wording import heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tightrope.design.compare.frontier import Frontier, Point
    from tightrope.design.compare.gaussian_price import Price

MOST_GROUPS = 60
INK, ACCENT, QUIET = "#1c2430", "#17627f", "#76808c"


def tradeoff_curve(certificate: Mapping[str, object]) -> Figure:
    """Bound on the true- against the false-positive rate of any attacker, with the diagonal of a coin flip.

    Raises InputError where the certificate states no guarantee, MissingExtraError without matplotlib.
    """
    points = attacker.curve(certificate)
    if not points:
        raise _nothing("certificate", certificate, "a certificate with epsilon and delta, total_variation or a profile")
    figure, axes = _axes(4.2, 4.2, "false-positive rate", "true-positive rate, at most")
    rates, caught = zip(*points, strict=True)
    axes.fill_between(rates, rates, caught, color=ACCENT, alpha=0.12, linewidth=0)
    axes.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1, label="coin flip")
    axes.plot(rates, caught, color=ACCENT, linewidth=2, label="best attacker")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="lower right", frameon=False)
    return figure


def tradeoff_curves(profiles: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Trade-off curves of several ways to account for one loss: type-II against type-I error, one line a name.

    Each way is given by points (ε, δ), which bound the curve from below. Raises InputError where there are no points,
    MissingExtraError without matplotlib.
    """
    if not profiles or not all(profiles.values()):
        remedy = "give {'exact': [(0, 0.1), (1, 1e-5)]}"
        raise InputError("profiles", profiles, "a dictionary from names to points (epsilon, delta)", remedy)
    figure, axes = _axes(5.2, 4.6, "type-I error (false alarms)", "type-II error (members missed), at least")
    for (name, points), (style, colour) in zip(profiles.items(), cycle(_LINES), strict=False):
        missed = [1 - attacker.true_positive_rate(points, rate) for rate in _RATES]
        axes.plot(_RATES, missed, linestyle=style, linewidth=1.5, color=colour, label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="upper right", frameon=False, fontsize=8)
    return figure


def privacy_profile(certificate: Mapping[str, object]) -> Figure:
    """δ over ε, δ on a logarithmic axis, with the stated guarantee as a dot.

    Raises InputError where the certificate holds no profile, MissingExtraError without matplotlib.
    """
    points = attacker.profile(certificate)
    if not points:
        raise _nothing("certificate", certificate, "a certificate with a profile")
    figure, axes = _axes(5.2, 4.0, "ε", "δ")
    axes.semilogy(*zip(*points, strict=True), color=ACCENT, linewidth=2)
    epsilon, delta = number(certificate, "epsilon"), number(certificate, "delta")
    if epsilon is not None and delta:
        axes.plot([epsilon], [delta], "o", color=ACCENT)
    return figure


def answers_chart(answer: Mapping[str, object]) -> Figure:
    """The values of one answer with their 95 % intervals: over the keys where these are numbers, else as a list.

    A list shows the first 60 groups that have a value and says how many there are.
    Raises InputError where no value is published, MissingExtraError without matplotlib.
    """
    read = read_answer(answer)
    published = [row for row in read.rows if row.value is not None]
    if not published:
        raise _nothing("answer", answer, "an answer with at least one published value")
    return _along_axis(read, published) if read.on_an_axis else _as_list(read, published)


def _along_axis(answer: Answer, rows: list[Row]) -> Figure:
    keyed = [(key, row) for row in rows if (key := as_number(row.keys[0])) is not None]
    figure, axes = _axes(7.0, 4.0, _plain(answer.by[0]), _plain(heading(answer)))
    axes.errorbar(
        [key for key, _ in keyed], _values(r for _, r in keyed), yerr=_errors([r for _, r in keyed]), **_STYLE
    )
    return figure


def _as_list(answer: Answer, rows: list[Row]) -> Figure:
    shown = rows[:MOST_GROUPS]
    figure, axes = _axes(7.0, 1.2 + 0.24 * len(shown), _plain(heading(answer)), "")
    places = list(range(len(shown)))
    axes.errorbar(_values(shown), places, xerr=_errors(shown), **_STYLE)
    axes.set_yticks(places, [_plain(" · ".join(row.labels)) for row in shown])
    axes.invert_yaxis()
    if len(shown) < len(rows):
        axes.set_title(f"the first {len(shown)} of {len(rows)} groups", loc="left", fontsize=9, color=QUIET)
    return figure


def frontier(found: Frontier) -> Figure:
    """Expected cost against ε on logarithmic axes, a line for each δ, total variation and number of people.

    Lines are noise that exists; the shade below reaches down to the proven limit, which no noise crosses. With people,
    the cost is divided by their number. Raises InputError without points, MissingExtraError without matplotlib.
    """
    if not found.points:
        raise InputError("found", found, "a frontier with points", "see tightrope.design.compare.frontier")
    lines: dict[str, list[Point]] = defaultdict(list)
    for point in found.points:
        lines[_promise(point)].append(point)
    relative = found.points[0].people is not None
    figure, axes = _axes(5.6, 4.4, "ε", f"expected cost ({found.cost_name}){', per person' if relative else ''}")
    for (name, points), colour in zip(lines.items(), cycle(_COLOURS), strict=False):
        epsilons = [point.epsilon for point in points]
        costs, limits = ([getattr(point, side) / (point.people or 1) for point in points] for side in ("cost", "limit"))
        axes.loglog(epsilons, costs, color=colour, linewidth=1.5, marker="o", markersize=3, label=name)
        axes.fill_between(epsilons, limits, costs, color=colour, alpha=0.2, linewidth=0)
    axes.legend(loc="upper right", frameon=False, fontsize=8)
    return figure


def _promise(point: Point) -> str:
    """The name of a line."""
    eta = "" if point.asked_total_variation is None else f", total variation {point.asked_total_variation:g}"
    return f"δ = {point.delta:g}{eta}{'' if point.people is None else f', {point.people:,} people'}"


def noise_laws(laws: Mapping[str, Sequence[float]]) -> Figure:
    """Probabilities of the errors 0, ±1, ±2, … of several noises, one line a name, on a logarithmic axis.

    Each has a colour and a kind of line of its own, and later ones are thinner: laws that coincide are all seen. The
    legend is below the axes.

    ``laws`` maps a name to the probabilities of 0, 1, 2, …, each that of ±x. Raises InputError for an empty mapping,
    MissingExtraError without matplotlib.
    """
    if not laws or not all(len(law) for law in laws.values()):
        raise InputError("laws", laws, "a dictionary from names to probabilities of 0, 1, 2, …")
    figure, axes = _axes(6.4, 5.0, "error", "probability")
    widths = [1.2 + 2.4 * place / len(laws) for place in range(len(laws), 0, -1)]
    kinds = zip(cycle(_LAW_COLOURS), cycle(_LAW_STYLES))
    for (name, law), (colour, style), width in zip(laws.items(), kinds, widths, strict=False):
        shown = [(x, p) for x, p in enumerate(law) if p > _FAINT]
        errors, chances = [x for x, _ in shown], [p for _, p in shown]
        both = [-x for x in errors[:0:-1]] + errors
        heights = chances[:0:-1] + chances
        axes.semilogy(
            both, heights, drawstyle="steps-mid", linestyle=style, color=colour, linewidth=width, label=_plain(name)
        )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8, handlelength=4)
    return figure


def gaussian_price(rows: Sequence[Sequence[Price]]) -> Figure:
    """How many times as much as the least noise Gaussian noise costs, over ε and δ, both logarithmic.

    Raises InputError for fewer than two rows or columns, MissingExtraError without matplotlib.
    """
    if not (len(rows) > 1 and len(rows[0]) > 1):
        raise InputError(
            "rows", rows, "at least two values of epsilon and of delta", "see design.compare.gaussian_price"
        )
    figure, axes = _axes(5.6, 4.4, "ε", "δ")
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
"""As many as there are families; coprime to the number of styles, so that 35 laws differ in colour or line."""
_LAW_STYLES = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 1.5, 1, 1.5)), (0, (2, 1, 1, 1, 1, 1)))
_RATES = [(1 - math.cos(math.pi * i / 240)) / 2 for i in range(241)]
_LINES = (("--", "#b0563b"), ("-.", "#c9962f"), ("--", "#5d7f3a"), (":", INK), ("-", ACCENT))
_STYLE: dict[str, Any] = {"fmt": "o", "color": ACCENT, "markersize": 4, "elinewidth": 1.2, "capsize": 0}


def _axes(width: float, height: float, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", "release") from missing
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure, axes


def _values(rows: Iterable[Row]) -> list[float]:
    return [row.value for row in rows if row.value is not None]


def _errors(rows: list[Row]) -> tuple[list[float], list[float]]:
    """Lengths of the whiskers below and above, 0 where an end is missing."""
    values = _values(rows)
    below = [0.0 if row.lower is None else max(value - row.lower, 0.0) for row, value in zip(rows, values, strict=True)]
    above = [0.0 if row.upper is None else max(row.upper - value, 0.0) for row, value in zip(rows, values, strict=True)]
    return below, above


def _plain(words: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return words.replace("$", r"\$")


def _nothing(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "pass a part of what `tightrope release --json` prints")
