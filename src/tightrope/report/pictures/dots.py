"""Dots with whiskers: where each value and its 95 % interval stand in a chart, in percent of its width or height."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.report.pictures.scale import Scale, Tick, scale_of, value_scale
from tightrope.report.words.answers import Answer, Row
from tightrope.report.words.document import as_number
from tightrope.report.words.interval import shown

LIST_TICKS, HEIGHT_TICKS, WIDTH_TICKS = 4, 5, 7
MANY_DOTS = 80
NO_KEY_AT = 96.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A value and its interval on the value axis; ``cut_*``: the whisker goes on beyond the axis."""

    at: float
    lower: float
    upper: float
    cut_lower: bool
    cut_upper: bool


@dataclass(frozen=True, slots=True)
class ListChart:
    """One line a group, the values along the line. ``name``: of its grid; ``zero``: where stems start, None without."""

    name: str
    zero: float | None
    ticks: list[Tick]
    dots: list[Dot | None]


@dataclass(frozen=True, slots=True)
class PlacedDot:
    """A dot over a numeric axis, with the text that a pointer shows; ``no_key``: the group without a key."""

    along: float
    dot: Dot
    title: str
    no_key: bool


@dataclass(frozen=True, slots=True)
class AxisChart:
    """Numeric groups along the width, the values along the height (percent from the bottom)."""

    key_name: str
    key_ticks: list[Tick]
    value_ticks: list[Tick]
    dots: list[PlacedDot]
    radius: float


def dot_of(row: Row, scale: Scale) -> Dot | None:
    """The dot of one group; None where its value is withheld."""
    if row.value is None:
        return None
    lower = row.value if row.lower is None else row.lower
    upper = row.value if row.upper is None else row.upper
    return Dot(scale.at(row.value), scale.at(lower), scale.at(upper), lower < scale.low, upper > scale.high)


def list_chart(answer: Answer, name: str) -> ListChart | None:
    """The chart of groups that are names; None where fewer than two values are published."""
    scale = value_scale(answer)
    if scale is None or len(answer.values) < 2:
        return None
    zero = scale.at(0.0) if answer.additive else None
    return ListChart(name, zero, scale.ticks(LIST_TICKS), [dot_of(row, scale) for row in answer.rows])


def axis_chart(answer: Answer) -> AxisChart | None:
    """The chart of groups that are numbers; None where they are not, or no value is published."""
    values = value_scale(answer)
    if values is None or not answer.on_an_axis:
        return None
    numbers = [position for row in answer.rows if (position := as_number(row.keys[0])) is not None]
    keys = _key_scale(numbers, any(row.keys[0] is None for row in answer.rows))
    decimals = answer.decimals
    dots = [placed for row in answer.rows if (placed := _placed(row, keys, values, decimals)) is not None]
    return AxisChart(
        key_name=answer.by[0],
        key_ticks=_key_ticks(numbers, keys),
        value_ticks=values.ticks(HEIGHT_TICKS),
        dots=dots,
        radius=4.5 if len(dots) <= MANY_DOTS else 2.5,
    )


def _key_scale(numbers: Sequence[float], with_no_key: bool) -> Scale:
    """The key axis; the group without a key gets a place to the right of the largest."""
    scale = scale_of(numbers)
    return Scale(scale.low, scale.high + 0.1 * (scale.high - scale.low)) if with_no_key else scale


def _key_ticks(numbers: Sequence[float], scale: Scale) -> list[Tick]:
    """Round keys only, whole ones where all keys are; years without a thousands separator."""
    whole = all(number.is_integer() for number in numbers)
    found = [tick for tick in scale.ticks(WIDTH_TICKS) if not whole or "." not in tick.label]
    plain = whole and max(abs(number) for number in numbers) < 10_000
    inside = [tick for tick in found if tick.at <= scale.at(max(numbers)) + 2]
    return [Tick(tick.at, tick.label.replace(",", "") if plain else tick.label) for tick in inside]


def _placed(row: Row, keys: Scale, values: Scale, decimals: int) -> PlacedDot | None:
    dot = dot_of(row, values)
    if dot is None:
        return None
    key = as_number(row.keys[0])
    along = NO_KEY_AT if key is None else keys.at(key)
    said = shown(row, decimals)  # as in the table
    return PlacedDot(along, dot, f"{row.labels[0]}: {said.value} ({said.lower} to {said.upper})", key is None)
