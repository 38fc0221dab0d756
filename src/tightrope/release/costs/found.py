"""What bounding and clamping cost, from noisy counts: shares with intervals, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tightrope.certificates.printable import printable
from tightrope.certificates.release import Cost
from tightrope.certificates.words.digits import DOWN, NEAREST, UP, rounded
from tightrope.release.costs.tallies import MANY_TIMES, Tally, What, every_row, name_of, rows_of, tallies_of, used_by
from tightrope.release.questions.of_column import shown_end
from tightrope.release.questions.tasks import Person, Task
from tightrope.release.questions.vector import Noise, Vector

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
    every = [_counted(own, found) for own, found in zip(noises, counts, strict=True)]
    pairs = [(task, own) for task, own in zip(tasks, every, strict=True) if own]
    totals = {rows_of(task): own["all"] for task, own in pairs if "all" in own}
    used = {used_by(task): (task, own["used"]) for task, own in pairs if "used" in own}
    rows = {place: (found, totals[rows_of(every_row(task))]) for place, (task, found) in used.items()}
    asked = ((task, own) for task, own in pairs if "all" not in own)
    return tuple(cost for task, own in asked for cost in _of_task(task, own, rows, person))


def _counted(noises: Sequence[Noise], counts: Counts) -> dict[str, Counted]:
    """The counts over all groups by the names of their tallies."""
    found = ((noise, counts[noise.vector]) for noise in noises if noise.vector in counts)
    return {n.vector.name: Counted(value, *n.interval(value, OUTSIDE)) for n, value in found}


Rows = Mapping[object, tuple[Counted, Counted]]
"""How many rows were used, and how many there are."""


def _of_task(task: Task, own: Mapping[str, Counted], rows: Rows, person: Person) -> Iterator[Cost]:
    found = None if task.bounds.person is None else rows.get(used_by(task))
    if found is not None and "used" in own:
        yield _cost(task, Tally("used", None, None), _complement(_share(*found)), _left_out(task, person))
    for tally in tallies_of(task):
        if tally.column is not None and name_of(tally) in own:
            count = own[name_of(tally)]
            share = None if found is None else _share(count, found[0])
            hidden = found is not None and share is None
            yield _cost(task, tally, share, _moved(tally), None if hidden else count)


Shares = tuple[float, float, float]
"""Of a count and of a larger one: the quotient, what it is at least and at most."""


def _share(part: Counted, whole: Counted) -> Shares | None:
    """None where the whole may be nothing, or hardly stands out from its noise: then what is seen is mostly luck.

    No interval is narrower than the noise: one that lies beyond 0 or 1 reaches as far inwards.
    """
    if whole.lower < 1 or whole.upper > STANDS_OUT * whole.lower:
        return None
    noise = (part.upper - part.lower) / 2 / whole.lower
    lower, upper = min(part.lower / whole.upper, 1 - noise), max(part.upper / whole.lower, noise)
    value, lower, upper = (min(max(end, 0.0), 1.0) for end in (part.value / whole.value, lower, upper))
    return value, lower, upper


def _complement(shares: Shares | None) -> Shares | None:
    return None if shares is None else (1 - shares[0], 1 - shares[2], 1 - shares[1])


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
        return _told(what, *shares)
    if found is None:
        return f"the noise is too large to say how many of {what}"
    if found.lower <= 0:
        noise = (found.upper - found.lower + 1) // 2
        return f"at most {max(found.upper, noise, 1):,} of {what}"
    return f"about {found.value:,} of {what} ({found.lower:,} to {found.upper:,})"


def _told(what: str, value: float, lower: float, upper: float) -> str:
    """A share with its interval, ends outwards.

    >>> _told("it", 0.03, 0.024, 0.036), _told("it", 0.0, 0.0, 0.0), _told("it", 1.0, 0.97, 1.0)
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
