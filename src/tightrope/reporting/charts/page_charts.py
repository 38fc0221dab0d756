"""Charts of a report page, as positions in percent: axes, dots with whiskers, the two privacy curves, 100 guesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tightrope.documents.numbers import (
    GUESS_COUNT,
    GUESSES_PER_LINE,
    UP,
    Guesses,
    fixed_text,
    percent_text,
    power_of_ten,
    significant_text,
    time_text,
)
from tightrope.reporting.wording.answers import Answer, Row, printed_answer_row
from tightrope.reporting.wording.partial_release import stated_number
from tightrope.reporting.wording.promise import (
    Certificate,
    Point,
    attack_rates,
    profile_points,
    promised_point,
    tradeoff_points,
)

SMALLEST_MARGIN = 1e-290  # below it, floats are too coarse for ticks


@dataclass(frozen=True, slots=True)
class Tick:
    """A round number on an axis: its position, in percent, and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from ``low`` to ``high``, low < high."""

    low: float
    high: float

    def to_percent(self, value: float) -> float:
        """Return the position of ``value`` in percent of the axis, clamped to the axis.

        >>> Scale(0, 4).to_percent(1), Scale(0, 4).to_percent(9)
        (25.0, 100.0)
        """
        return min(max(100 * (value - self.low) / (self.high - self.low), 0.0), 100.0)

    def make_ticks(self, count: int) -> list[Tick]:
        """Return at most ``count`` + 1 round numbers inside the axis.

        >>> [tick.label for tick in Scale(0, 3100).make_ticks(4)]
        ['0', '1,000', '2,000', '3,000']
        """
        step = round_step((self.high - self.low) / count)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        ticks: list[Tick] = []
        for number in range(first, last + 1):
            value = number * step
            short = decimals <= 6 and abs(value) < 1e7
            label = fixed_text(value, decimals) if short else significant_text(value, 3)
            ticks.append(Tick(self.to_percent(value), label))
        return ticks


@dataclass(frozen=True, slots=True)
class DecadeScale:
    """A logarithmic axis between integer powers of ten, with exponents ``low`` < ``high``."""

    low: int
    high: int

    def to_percent(self, value: float) -> float:
        """Return the position of ``value`` > 0 in percent of the axis, clamped to the axis."""
        return Scale(self.low, self.high).to_percent(math.log10(value))

    def make_ticks(self, count: int) -> list[Tick]:
        """Return powers of ten at equal distances."""
        step = max(1, math.ceil((self.high - self.low) / count))
        exponents = range(self.high, self.low - 1, -step)
        return [Tick(Scale(self.low, self.high).to_percent(e), power_of_ten(e)) for e in exponents]


def value_ticks(scale: Scale, answer: Answer, count: int) -> list[Tick]:
    """Return ticks at round numbers; if the answer's values are times, each is labeled with its date or instant."""
    ticks = scale.make_ticks(count)
    if not answer.time_unit:
        return ticks
    numbers = [scale.low + tick.at / 100 * (scale.high - scale.low) for tick in ticks]
    return [Tick(tick.at, time_text(days, answer.time_unit)) for tick, days in zip(ticks, numbers, strict=True)]


def round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 · 10ⁿ that is not below ``least`` > 0.

    >>> round_step(0.3), round_step(2), round_step(700)
    (0.5, 2.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= least * (1 - 1e-9))


def scale_from_numbers(numbers: Sequence[float], margin: float = 0.04) -> Scale:
    """Return an axis that contains all of ``numbers`` with a margin on both sides, by default 4 % of their range."""
    low, high = min(numbers), max(numbers)
    widths = ((high - low) * margin, abs(high) * 0.1, 1.0)
    added = next(width for width in widths if width >= SMALLEST_MARGIN)
    return Scale(low - added, high + added)


def value_scale(answer: Answer) -> Scale | None:
    """Return the axis of an answer's values, which contains every value and most whiskers.

    Whiskers end at the latest half the spread of all values plus three typical half-widths beyond the smallest or the
    largest value; longer ones are cut there, so that one tiny group does not flatten the picture.
    """
    values = answer.published_values
    if not values:
        return None
    low, high = min(values), max(values)
    reach = (high - low) / 2 + 3 * (median(answer.half_widths) if answer.half_widths else 0.0)
    ends = [end for row in answer.rows if row.value is not None for end in (row.lower, row.upper) if end is not None]
    shown = [min(max(end, low - reach), high + reach) for end in ends]
    numbers = [*values, *shown]
    scale = scale_from_numbers(numbers)
    if not (answer.additive or answer.in_percent):
        return scale
    return Scale(0.0, scale.high) if min(numbers) >= 0 else Scale(scale.low, max(scale.high, 0.0))


# Dots with whiskers: positions of values and 95 % intervals in a chart, in percent of its width or height.

LIST_TICKS, HEIGHT_TICKS, WIDTH_TICKS = 4, 5, 7
MANY_DOTS = 80
NO_KEY_AT = 96.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A value and its interval on the value axis; ``cut_*``: the whisker would reach beyond that end of the axis."""

    at: float
    lower: float
    upper: float
    cut_lower: bool
    cut_upper: bool


@dataclass(frozen=True, slots=True)
class ListChart:
    """One row for each group, the value axis along it.

    ``name``: id of the grid lines, which are drawn once and repeated in every row. ``zero``: position of the value 0,
    from which a line leads to each dot; None without such lines.

    ``bars``: bars instead of lines and dots.
    """

    name: str
    zero: float | None
    ticks: list[Tick]
    dots: list[Dot | None]
    bars: bool = False


@dataclass(frozen=True, slots=True)
class KeyedDot:
    """A dot at its key's position, with its tooltip text; ``no_key``: the group of missing values (key None)."""

    key_at: float
    dot: Dot
    title: str
    no_key: bool


@dataclass(frozen=True, slots=True)
class AxisChart:
    """Numeric groups along the width, the values along the height (percent from the bottom)."""

    key_name: str
    key_ticks: list[Tick]
    value_ticks: list[Tick]
    dots: list[KeyedDot]
    radius: float


def dot_from_row(row: Row, scale: Scale) -> Dot | None:
    """Return the dot of one group; None if its value is suppressed."""
    if row.value is None:
        return None
    lower = row.value if row.lower is None else row.lower
    upper = row.value if row.upper is None else row.upper
    return Dot(
        scale.to_percent(row.value),
        scale.to_percent(lower),
        scale.to_percent(upper),
        lower < scale.low,
        upper > scale.high,
    )


def list_chart(answer: Answer, name: str) -> ListChart | None:
    """Return the chart of groups that are names; None if fewer than two values are published."""
    scale = value_scale(answer)
    if scale is None or len(answer.published_values) < 2:
        return None
    zero = scale.to_percent(0.0) if answer.additive or answer.in_percent else None
    dots = [dot_from_row(row, scale) for row in answer.rows]
    bars = answer.in_percent or (answer.has_bands and answer.additive)
    return ListChart(name, zero, value_ticks(scale, answer, LIST_TICKS), dots, bars)


def axis_chart(answer: Answer) -> AxisChart | None:
    """Return the chart of groups that are numbers; None for other groups, or without published values."""
    values = value_scale(answer)
    if values is None or not answer.has_numeric_axis:
        return None
    numbers = [position for row in answer.rows if (position := stated_number(row.keys[0])) is not None]
    # The key axis; the group of missing values (key None) is drawn to the right of the largest.
    with_no_key = any(row.keys[0] is None for row in answer.rows)
    scale = scale_from_numbers(numbers)
    keys = Scale(scale.low, scale.high + 0.1 * (scale.high - scale.low)) if with_no_key else scale
    dots: list[KeyedDot] = []
    for row in answer.rows:
        dot = dot_from_row(row, values)
        if dot is None:
            continue
        key = stated_number(row.keys[0])
        key_at = NO_KEY_AT if key is None else keys.to_percent(key)
        rounded = printed_answer_row(answer, row)  # as in the table
        title = f"{row.key_labels[0]}: {rounded.value} ({rounded.lower} to {rounded.upper})"
        dots.append(KeyedDot(key_at, dot, title, no_key=key is None))
    return AxisChart(
        key_name=answer.by[0],
        key_ticks=_key_ticks(numbers, keys),
        value_ticks=value_ticks(values, answer, HEIGHT_TICKS),
        dots=dots,
        radius=3.0 if len(dots) <= MANY_DOTS else 2.0,
    )


def _key_ticks(numbers: Sequence[float], scale: Scale) -> list[Tick]:
    """Return ticks at round keys, integers if all keys are; years without a thousands separator."""
    whole = all(number.is_integer() for number in numbers)
    plain = whole and max(abs(number) for number in numbers) < 10_000
    end = scale.to_percent(max(numbers)) + 2
    ticks = [tick for tick in scale.make_ticks(WIDTH_TICKS) if tick.at <= end and not (whole and "." in tick.label)]
    return [Tick(tick.at, tick.label.replace(",", "") if plain else tick.label) for tick in ticks]


# Tables of counts by two columns as heat maps, and the margins of error of many tables as bars.

MOST_HEAT_ROWS, MOST_HEAT_COLUMNS, MOST_PRINTED_COLUMNS = 60, 40, 12
"""Largest heat map; and most columns for which its cells show their numbers."""
HEAT_SHADES = 10


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A cell of a heat map: from 0, the color of the page, to ``HEAT_SHADES``; its value, and the cell in words."""

    shade: int
    value: str
    title: str


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A table by two columns: the one with more values goes down, the other one across."""

    row_name: str
    column_name: str
    column_labels: tuple[str, ...]
    lines: list[tuple[str, list[HeatCell]]]
    """The label and the cells of each row."""
    prints_values: bool


def heat_map(answer: Answer) -> HeatMap | None:
    """Return the heat map of a table of counts by two columns; None for other answers and for larger tables."""
    if answer.kind != "marginals" or len(answer.by) != 2 or len(answer.published_values) < len(answer.rows):
        return None
    labels = [tuple(dict.fromkeys(row.key_labels[axis] for row in answer.rows)) for axis in (0, 1)]
    down, across = (0, 1) if len(labels[0]) >= len(labels[1]) else (1, 0)
    is_small = len(labels[down]) <= MOST_HEAT_ROWS and len(labels[across]) <= MOST_HEAT_COLUMNS
    if not is_small or len(answer.rows) != len(labels[0]) * len(labels[1]):
        return None
    largest = max(0.0, *answer.published_values)
    cells = {}
    for row in answer.rows:
        printed = printed_answer_row(answer, row)
        shade = round(HEAT_SHADES * max(row.value or 0.0, 0.0) / largest) if largest > 0 else 0
        title = f"{', '.join(row.key_labels)}: {printed.value} {printed.plus_minus_text}"
        cells[row.key_labels[down], row.key_labels[across]] = HeatCell(shade, printed.value, title)
    if len(cells) < len(answer.rows):  # two values with one label
        return None
    return HeatMap(
        answer.by[down],
        answer.by[across],
        labels[across],
        [(label, [cells[label, other] for other in labels[across]]) for label in labels[down]],
        prints_values=len(labels[across]) <= MOST_PRINTED_COLUMNS,
    )


@dataclass(frozen=True, slots=True)
class TableMargin:
    """The margin of error of one of several tables, as a bar in percent of the largest one."""

    name: str
    cells: int
    margin: str
    length: float


def table_margin(answer: Answer, largest: float) -> TableMargin:
    """Return the bar of a table, whose columns are its name."""
    margin = answer.error.half_width_95 or 0.0
    name = " × ".join(answer.by) or "total"
    length = Scale(0.0, largest).to_percent(margin) if largest > 0 else 0.0
    return TableMargin(name, len(answer.rows), significant_text(margin, 3, UP), length)


# The two curves of the privacy section, as polylines in a square of 100 by 100 (y grows downwards).

DEEPEST_DECADE = -40
TICK_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A polyline with its axes and marked points (in percent from the left and the top)."""

    line: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    marks: list[tuple[float, float]]
    is_mark_below: bool = False
    """True if the marked point is below the vertical axis, and is drawn at its lower edge."""


def tradeoff_chart(certificate: Certificate) -> Curve | None:
    """Return true- against false-positive rate of the best attacker; None without any guarantee."""
    points = tradeoff_points(certificate)
    if not points:
        return None
    ticks = [Tick(100 * share, percent_text(share)) for share in TICK_SHARES]
    marks = [(100 * c.false_positive_rate, 100 - 100 * c.true_positive_rate) for c in attack_rates(certificate)]
    return Curve(_polyline_points([(100 * x, 100 - 100 * y) for x, y in points]), ticks, ticks, marks)


def privacy_profile_chart(certificate: Certificate) -> Curve | None:
    """Return δ(ε) on a logarithmic axis, with the stated guarantee marked; None with fewer than two points."""
    points = [(epsilon, delta) for epsilon, delta in profile_points(certificate) if delta >= 10.0**DEEPEST_DECADE]
    if len(points) < 2 or points[0][0] == points[-1][0]:
        return None
    promised = promised_point(certificate)
    marked = [] if promised is None else [(promised[0], max(promised[1], 10.0**DEEPEST_DECADE))]
    is_below = promised is not None and promised[1] < 10.0**DEEPEST_DECADE
    # The axes reach to the promised point; a δ of 0 is at the lower edge.
    smallest = math.floor(math.log10(min(delta for _, delta in (*points, *([] if is_below else marked)))) + 1e-9)
    epsilons = Scale(0.0, max(epsilon for epsilon, _ in (*points, *marked)))
    deltas = DecadeScale(min(smallest, -1), 0)
    placed, marks = (
        [(epsilons.to_percent(x), 100 - deltas.to_percent(y)) for x, y in listed] for listed in (points, marked)
    )
    if is_below:  # the chord to δ = 0 leaves the picture just before its end
        placed += marks
    return Curve(_polyline_points(placed), epsilons.make_ticks(5), deltas.make_ticks(6), marks, is_below)


def _polyline_points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)


# The picture of 100 guesses for a page: a path for each kind, a point for each guess, in a box of 250 × 40.
# An attacker guesses between two equally likely possibilities: some guesses are right at random, further ones
# because of what is published.

KINDS = {"●": "coin-right", "◆": "more-right", "○": "wrong"}
"""CSS classes by symbol: guesses right at random, more right ones because of what is published, and wrong ones."""


@dataclass(frozen=True, slots=True)
class GuessDots:
    """The guesses of one kind: its CSS class, the SVG path of its points, and its legend."""

    kind: str
    path: str
    caption: str


def guess_dots(guesses: Guesses) -> list[GuessDots]:
    """Return every kind that occurs, in the order of ``Guesses.legend_entries``; the points fill the box line by line.

    A point is an empty segment (``h0``), which round line caps draw as a dot.

    >>> [(dots.kind, dots.path.count("h0")) for dots in guess_dots(Guesses(24))]
    [('coin-right', 50), ('more-right', 24), ('wrong', 26)]
    """
    points = iter(
        f"M{10 * (at % GUESSES_PER_LINE) + 5} {10 * (at // GUESSES_PER_LINE) + 5}h0" for at in range(GUESS_COUNT)
    )
    return [
        GuessDots(KINDS[sign], "".join(next(points) for _ in range(count)), caption)
        for sign, caption, count in guesses.legend_entries
    ]
