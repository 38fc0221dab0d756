"""What is counted beside the questions: rows with and without the bound, values beyond each end, missing fields."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from tightrope.documents.budget import Number, decimal
from tightrope.documents.escaping import printable
from tightrope.documents.numbers import DOWN, NEAREST, UP, rounded
from tightrope.documents.release import Cost
from tightrope.errors import InputError, PlanError
from tightrope.noise.worst_split import Spend, Unit
from tightrope.queries.column_query import shown_end
from tightrope.queries.query_group import Person, Task
from tightrope.queries.statistics import Noise, Vector
from tightrope.tables.expressions.conditions import Case, Compare, Missing, Not
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.leaves import Column, literal
from tightrope.tables.expressions.tree import Tree
from tightrope.tables.request import Measure, PersonBounds
from tightrope.tables.schema import Schema

What = Literal["used", "all", "below", "above", "missing"]
MANY_TIMES = 16
"""All rows of a person are counted up to so many times the bound: beyond it even this count needs one."""
MOST_OF_BUDGET = Decimal("0.5")
"""The part of the budget that they may take stays below it."""
NOISE_SIZES = tuple(sorted({factor * 2**power for power in range(3, 12) for factor in (2, 3)}))
"""Relative sizes of their noise, in eighths: they share a lattice, and larger ones would make all tables long."""
MORE = 4
"""So many times as much is spent on a count of all rows."""
Range = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Tally:
    """What a vector counts, over all groups together; ``column`` where it is about the values of one."""

    what: What
    column: Term | None
    limits: Range


def with_tallies(tasks: Sequence[Task], part: Decimal, schema: Schema) -> tuple[Task, ...]:
    """The tasks with tallies that take at most this part of the budget, by the loss of a person's rows.

    A tally is one integer over all groups. A person adds to it at most the rows that the engine keeps of them:
    ``bounds.rows``, or ``MANY_TIMES`` times as many where all are counted. Where that is one row, it is in one tally
    of a column only. Raises ``PlanError`` for a part that is too small for so many tallies.
    """
    if not part:
        return tuple(tasks)
    spent = sum(_weight(unit) for task in tasks for unit in task.units)
    every = [*tasks, *{rows_of(found): found for found in map(every_row, bounded(tasks))}.values()]
    # The tallies with the noise of what may be spent; a count of all rows, whose noise is largest, gets more of
    # it.
    sized_tasks = _each_once(every, schema)
    sized_spent = spent * float(part / (1 - part))
    shares = sum(_share(own) for task in sized_tasks for own in task.sets if own[0].whole)
    return tuple(_with_noise(task, shares / sized_spent) for task in sized_tasks)


def bounded(tasks: Sequence[Task]) -> list[Task]:
    """Those in which a person may have more rows than count."""
    return [task for task in tasks if task.bounds.person is not None and not task.steps]


def sliver(costs: Number) -> Decimal:
    """The part of the budget as it was asked for; raises ``InputError`` unless it is from 0 on and below a half."""
    part = decimal("costs", costs)
    if not 0 <= part < MOST_OF_BUDGET:
        raise InputError("costs", costs, f"from 0, which counts nothing, to below {MOST_OF_BUDGET}", "0.02 is usual")
    return part


def tallies_of(task: Task) -> tuple[Tally, ...]:
    """All that are counted beside the questions of a task."""
    if not task.served or task.steps:
        return ()
    used = () if task.bounds.person is None else (Tally("used", None, None),)
    ranges = dict.fromkeys(pair for question in task.questions for pair in question.ranges)
    return (*used, *(tally for term, limits in ranges for tally in _of_column(term, limits, task)))


def _of_column(term: Term, limits: Range, task: Task) -> tuple[Tally, ...]:
    """Both ends where there are some; missing fields, but in cells, where rows without a value have no place."""
    ends = () if limits is None else (Tally("below", term, limits), Tally("above", term, limits))
    return (*ends, *(() if task.cells is not None else (Tally("missing", term, limits),)))


def _each_once(tasks: Sequence[Task], schema: Schema) -> list[Task]:
    """Every tally in the first task that has it, about the questions of all that have it."""
    about: dict[object, list[str]] = {}
    for task in tasks:
        for tally in tallies_of(task):
            # The questions whose answers it says something of: for the values of a column those that read it so.
            pair = (tally.column, tally.limits)
            about.setdefault(place_of(tally, task), []).extend(
                [question.asked.name for question in task.questions if tally.column is None or pair in question.ranges]
            )
    left, found = dict(about), []
    for task in tasks:
        own = [(tally, left.pop(place)) for tally in tallies_of(task) if (place := place_of(tally, task)) in left]
        vectors = tuple(_vector(tally, task.bounds.rows, _counted(tally, schema)) for tally, _ in own)
        names = {vector.name: tuple(said) for vector, (_, said) in zip(vectors, own, strict=True)}
        found.append(replace(task, tallies=(*task.tallies, *vectors), about={**task.about, **names}))
    return found


def place_of(tally: Tally, task: Task) -> object:
    """What decides which rows it counts: for the values of a column, not by what they are grouped in cells."""
    return tally, used_by(task) if tally.column is None else (task.where, _chosen(task), _groups(task))


def used_by(task: Task) -> object:
    """What decides which rows a task uses: which there are, and which of a person's are chosen."""
    return rows_of(every_row(task)), _chosen(task)


def _chosen(task: Task) -> object:
    """What decides which rows of a person count: the groups, too, where they bound more than the rows do."""
    bounds = task.bounds
    by_group = bounds.rows_per_group < bounds.rows or (bool(task.by) and bounds.groups < bounds.rows)
    return bounds.rows, (task.by, bounds) if by_group else None


def _groups(task: Task) -> object:
    """The groups that are listed; None where none are, so that every row is in one."""
    by = task.by if task.cells is None else task.by[:-1]
    if task.keys is None or not by:
        return None
    return by, task.keys if task.cells is None else tuple(dict.fromkeys(key[:-1] for key in task.keys))


def every_row(task: Task) -> Task:
    """The rows of the same groups under a bound so many times as large, and nothing but their number."""
    most = task.bounds.rows * MANY_TIMES
    listed = task.keys is not None and bool(task.by)
    by, keys, cells = (task.by, task.keys, task.cells) if listed else ((), ((),), None)
    bounds = PersonBounds(task.bounds.person, most, most, most if listed else 1)
    vector = _vector(Tally("all", None, None), most, None)
    about = {vector.name: tuple(question.asked.name for question in task.questions)}
    return Task(MappingProxyType({}), by, keys, bounds, task.where, cells, None, tallies=(vector,), about=about)


def rows_of(task: Task) -> object:
    """What decides which rows a count of all of them is of."""
    return task.by, task.keys, task.where, task.bounds


def _vector(tally: Tally, rows: int, counted: Tree | None) -> Vector:
    """The count; those of one column share the noise of one where a person has one row, which is in one of them."""
    column = "" if tally.column is None else f" of {printable(str(tally.column))}"
    spend = Spend(f"rows, {tally.what}{column}, over all groups", NOISE_SIZES[-1], True)
    alone = tally.column is None or rows > 1
    label = name_of(tally) if alone else f"values {_of(tally)}"
    return Vector(Measure(name_of(tally), counted, None), spend, rows, exclusive=label, whole=True)


def name_of(tally: Tally) -> str:
    """What its vector is called."""
    return tally.what if tally.column is None else f"{tally.what} {_of(tally)}"


def _of(tally: Tally) -> str:
    """Which column and ends it is about, as no other has it: texts that are shown may be alike where columns differ."""
    return hashlib.sha256(repr((tally.column, tally.limits)).encode()).hexdigest()[:32]


def _counted(tally: Tally, schema: Schema) -> Tree | None:
    """Return an expression that has a value in the rows that are counted, and none in others.

    Truth values are compared as the numbers 0 and 1 that they add to a sum.
    """
    if tally.column is None:
        return None
    own = tally.column if isinstance(tally.column, Tree) else Column(tally.column)
    if tally.what == "missing" or tally.limits is None:
        return Case((Missing(own),), (literal(1), None))
    if own.facts(schema).kind == "boolean":
        own = Case((own, Not(own)), (literal(1), literal(0), None))
    sign, end = ("<", tally.limits[0]) if tally.what == "below" else (">", tally.limits[1])
    return Case((Compare(sign, own, literal(float(end))),), (literal(1), None))


def _weight(unit: Unit) -> float:
    """The loss of one person's rows, relative to others'."""
    return sum(unit.contribution.most_rows / spend.size for spend in unit.spends)


def _share(own: Sequence[Vector]) -> int:
    return MORE if own[0].name == name_of(Tally("all", None, None)) else 1


def _with_noise(task: Task, size: float) -> Task:
    tallies = tuple(_with_size(vector, 8 * size / _share((vector,))) for vector in task.tallies)
    return replace(task, tallies=tallies)


def _with_size(vector: Vector, wanted: float) -> Vector:
    """Relative noise of the next size that is used, in eighths."""
    found = next((size for size in NOISE_SIZES if size >= wanted), None)
    if found is None:
        times = math.ceil(10 * wanted / NOISE_SIZES[-1]) / 10
        expected = "large enough for the counts of so many questions"
        raise PlanError("costs", "too little", expected, f"say {times:g} times as much, or ask fewer questions")
    return replace(vector, spend=replace(vector.spend, eighths=found))


# What bounding and clamping cost, from noisy counts: shares with intervals, and in words.

OUTSIDE = 0.025
"""Each of two counts is outside its interval at most so often."""
TELLS = 0.5
"""A share whose interval is wider than this is not told: it could be nearly anything."""
STANDS_OUT = 3
"""A count stands out from its noise where its interval ends at no more than so many times where it begins."""
LEAST, NONE, ALL = 0.001, "0 %", "100 %"
"""Less is not told apart from nothing, which is never promised: there, intervals that reach below it are cut off."""
KINDS: Mapping[What, Literal["left out", "below", "above", "missing"]] = {
    "used": "left out", "all": "left out", "below": "below", "above": "above", "missing": "missing",
}  # fmt: skip
Counts = Mapping[Vector, int]
"""Noisy counts over all groups."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A noisy count, and what it is at least and at most."""

    value: int
    lower: int
    upper: int


def costs_found(
    tasks: Sequence[Task], noises: Sequence[Sequence[Noise]], counts: Sequence[Counts], person: Person
) -> tuple[Cost, ...]:
    """One statement a task and tally: the share of rows that were left out, of values that were moved or missing."""
    every = [_found_counted(own, found) for own, found in zip(noises, counts, strict=True)]
    pairs = [(task, own) for task, own in zip(tasks, every, strict=True) if own]
    totals = {rows_of(task): own["all"] for task, own in pairs if "all" in own}
    used = {used_by(task): (task, own["used"]) for task, own in pairs if "used" in own}
    rows = {place: (found, totals[rows_of(every_row(task))]) for place, (task, found) in used.items()}
    asked = ((task, own) for task, own in pairs if "all" not in own)
    return tuple(cost for task, own in asked for cost in _of_task(task, own, rows, person))


def _found_counted(noises: Sequence[Noise], counts: Counts) -> dict[str, Counted]:
    """The counts over all groups by the names of their tallies."""
    found = ((noise, counts[noise.vector]) for noise in noises if noise.vector in counts)
    return {n.vector.name: Counted(value, *n.interval(value, OUTSIDE)) for n, value in found}


Rows = Mapping[object, tuple[Counted, Counted]]
"""How many rows were used, and how many there are."""


def _of_task(task: Task, own: Mapping[str, Counted], rows: Rows, person: Person) -> Iterator[Cost]:
    found = None if task.bounds.person is None else rows.get(used_by(task))
    if found is not None and "used" in own:
        shares = _found_share(*found)
        yield _cost(
            task,
            Tally("used", None, None),
            None if shares is None else (1 - shares[0], 1 - shares[2], 1 - shares[1]),
            _left_out(task, person),
        )
    for tally in tallies_of(task):
        if tally.column is not None and name_of(tally) in own:
            count = own[name_of(tally)]
            share = None if found is None else _found_share(count, found[0])
            hidden = found is not None and share is None
            yield _cost(task, tally, share, _moved(tally), None if hidden else count)


Shares = tuple[float, float, float]
"""Of a count and of a larger one: the quotient, what it is at least and at most."""


def _found_share(part: Counted, whole: Counted) -> Shares | None:
    """None where the whole may be nothing, or hardly stands out from its noise: then what is seen is mostly luck.

    No interval is narrower than the noise: one that lies beyond 0 or 1 reaches as far inwards.
    """
    if whole.lower < 1 or whole.upper > STANDS_OUT * whole.lower:
        return None
    noise = (part.upper - part.lower) / 2 / whole.lower
    lower, upper = min(part.lower / whole.upper, 1 - noise), max(part.upper / whole.lower, noise)
    value, lower, upper = (min(max(end, 0.0), 1.0) for end in (part.value / whole.value, lower, upper))
    return value, lower, upper


def _cost(task: Task, tally: Tally, shares: Shares | None, what: str, found: Counted | None = None) -> Cost:
    value, lower, upper = (None, None, None) if shares is None else shares
    if shares is not None and shares[2] - shares[1] > TELLS:
        shares, found = None, None
    return Cost(
        answers=task.about[name_of(tally)],
        kind=KINDS[tally.what],
        column=None if tally.column is None else str(tally.column),
        share=value,
        lower=lower,
        upper=upper,
        statement=_statement(shares, what, found),
    )


def _statement(shares: Shares | None, what: str, found: Counted | None) -> str:
    """The interval in words; an end at which it was cut off is not told, for a value there would read as certain."""
    if shares is not None:
        return _share_text(what, *shares)
    if found is None:
        return f"the noise is too large to say how many of {what}"
    if found.lower <= 0:
        noise = (found.upper - found.lower + 1) // 2
        return f"at most {max(found.upper, noise, 1):,} of {what}"
    return f"about {found.value:,} of {what} ({found.lower:,} to {found.upper:,})"


def _share_text(what: str, value: float, lower: float, upper: float) -> str:
    """A share with its interval, ends outwards.

    >>> _share_text("it", 0.03, 0.024, 0.036), _share_text("it", 0.0, 0.0, 0.0), _share_text("it", 1.0, 0.97, 1.0)
    ('about 3.0 % of it (2.4 % to 3.6 %)', 'at most 0.1 % of it', 'at least 97 % of it')
    """
    low, high = _percent(min(lower, 1 - LEAST), DOWN), _percent(max(upper, LEAST), UP)
    if low == NONE:
        return f"at most {high} of {what}"
    return f"at least {low} of {what}" if high == ALL else f"about {_percent(value)} of {what} ({low} to {high})"


def _left_out(task: Task, person: Person) -> str:
    rows, noun = task.bounds.rows, person.noun
    beyond = f"rows of one {noun} beyond {rows * MANY_TIMES:,} and rows without a usable {noun} are not counted here"
    return f"the rows were not used, for at most {rows:,} of one {noun} count; {beyond}"


def _moved(tally: Tally) -> str:
    column = printable(str(tally.column))
    if tally.what == "missing" or tally.limits is None:
        return f"the fields of {column} were missing or did not fit its type"
    end = shown_end(tally.limits[0] if tally.what == "below" else tally.limits[1])
    return f"the values of {column} were {tally.what} {end} and counted as {end}"


def _percent(share: float, rounding: str = NEAREST) -> str:
    """With one digit below ten percent.

    >>> _percent(0.8912), _percent(0.0312), _percent(0.0), _percent(0.0312, UP)
    ('89 %', '3.1 %', '0 %', '3.2 %')
    """
    places = 0 if share >= 0.1 else 1
    percent = f"{rounded(share, places + 2, rounding):.{places}%}".replace("%", " %")
    return NONE if percent == "0.0 %" else percent


# What it will be known of bounding and clamping, before anything is spent.


def planned_costs(tasks: Sequence[Task], noises: Sequence[Sequence[Noise]], part: Decimal) -> dict[str, Any] | None:
    """The part of the budget and the half-width of every count; None where nothing of it is counted."""
    pairs = zip(tasks, noises, strict=True)
    found = [(task, noise) for task, own in pairs for noise in own if noise.vector in task.tallies]
    if not found:
        return None
    counts = [
        {
            "answers": task.answered_by(noise.vector),
            "statistic": noise.vector.spend.statistic,
            "half_width_95": noise.half_width(),
        }
        for task, noise in found
    ]
    return {"share": str(part), "counts": counts}
