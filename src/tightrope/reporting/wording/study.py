"""A study in which nobody was trusted, in words and lines: the same for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tightrope.documents.numbers import DOWN, UP, decimals_for, fixed, percent, significant, times
from tightrope.documents.study import Estimate, FindingsDocument
from tightrope.reporting.wording.answers import label

MEMOISE = (
    "Who is asked the same again must send the same report again: a copy says nothing new, however often it is sent."
)


@dataclass(frozen=True, slots=True)
class Written:
    """An estimate as it is written; ``shaped`` holds the consistent share, or nothing where none was asked for."""

    name: str
    value: str
    half_width: str
    lower: str
    upper: str
    people: str
    shaped: tuple[str, ...]


def estimates(document: FindingsDocument) -> Sequence[Estimate]:
    """Every estimate of a document, in its order; shares in percent."""
    return [_in_percent(one) for one in document.estimates] if document.shares else document.estimates


def lines(document: FindingsDocument) -> list[Written]:
    """Every estimate in as many digits as its interval leaves meaning, the ends rounded outwards."""
    found = estimates(document)
    decimals = decimals_for([_half_width(one) for one in found])
    return [_estimate_text(one, decimals, " %" if document.shares else "") for one in found]


def _in_percent(one: Estimate) -> Estimate:
    shaped = None if one.consistent is None else 100 * one.consistent
    return replace(one, value=100 * one.value, lower=100 * one.lower, upper=100 * one.upper, consistent=shaped)


def _half_width(one: Estimate) -> float:
    """The longer side of the interval."""
    return max(one.upper - one.value, one.value - one.lower, 0.0)


def _estimate_text(one: Estimate, decimals: int, unit: str) -> Written:
    return Written(
        name="" if one.category is None else label(one.category),
        value=fixed(one.value, decimals) + unit,
        half_width=fixed(_half_width(one), decimals, UP) + unit,
        lower=fixed(one.lower, decimals, DOWN) + unit,
        upper=fixed(one.upper, decimals, UP) + unit,
        people=fixed(one.people, 0),
        shaped=() if one.consistent is None else (fixed(one.consistent, decimals) + unit,),
    )


def interval_words(document: FindingsDocument) -> str:
    """What the intervals hold, and how often."""
    often = percent(document.confidence)
    if not document.shares:
        return f"The interval holds the mean of the population that people were drawn from with {often}."
    whose = "the true share among those who reported"
    below = "An estimate may lie below 0: that is what keeps sums and averages right."
    if document.simultaneous:
        return f"All intervals together hold {whose} with {often}, for any number of reports. {below}"
    return f"Each interval holds {whose} with {often}, by itself. {below}"


def effort_words(document: FindingsDocument) -> str:
    """How many people it took for the error, and how many it takes at least."""
    people, least, error = document.effort.people, document.effort.least_people, document.effort.error
    if document.shares:
        what = f"shares are off by {significant(100 * error, 2, UP)} percentage points or less, whatever the population"
        over = "root mean square over all categories; a large share may be off by more, a rare one by less"
    else:
        what = f"the mean is off by {significant(error, 2, UP)} or less, whatever the population"
        over = "root mean square"
    reached = f"With {fixed(people, 0)} {'person' if people == 1 else 'people'} {what} ({over})."
    if least == 0:
        return f"{reached} Nobody need be asked for that: a guess that needs no report is off by no more."
    if least == 1:
        return f"{reached} How few people could do is not known: the proven limit says nothing here."
    promise = "No mechanism with this privacy, known or not, can promise that with fewer than"
    return f"{reached} {promise} {limits_words(document)}."


def limits_words(document: FindingsDocument) -> str:
    """Both limits, or the one that holds for both kinds of mechanisms."""
    alone, in_turn = document.effort.least_people, document.effort.least_people_interactive
    seen = "who may see earlier reports"
    if alone == in_turn:
        return f"{fixed(in_turn, 0)} people {seen}"
    return f"{fixed(alone, 0)} people who do not see each other's reports, or {fixed(in_turn, 0)} {seen}"


def privacy_words(document: FindingsDocument) -> list[str]:
    """What one report says about the person who made it."""
    told = document.privacy
    return [
        f"epsilon {significant(told.epsilon, 4, UP)}, delta 0: {odds_words(told.epsilon)}",
        f"total variation {significant(told.total_variation, 3, UP)}: who guesses between two answers is right at most "
        f"{percent(told.attack_success, UP)} of the time; a coin is right 50 %.",
    ]


def odds_words(epsilon: float) -> str:
    """e^ε in words.

    >>> odds_words(1.0)
    'no report is more than 2.72 times as likely from one answer as from another, without exception.'
    """
    return (
        f"no report is more than {times(epsilon)} times as likely from one answer as from another, without exception."
    )


def bits_words(bits: int) -> str:
    """How large a report is.

    >>> bits_words(1), bits_words(1200)
    ('1 bit', '1,200 bits')
    """
    return f"{bits:,} bit{'' if bits == 1 else 's'}"


def repeated_words(document: FindingsDocument) -> list[str]:
    """What asking again would do: with a copy nothing, with fresh reports what the accountant says."""
    rows = [row for row in repeated(document) if row.reports != "1"]
    fresh = [f"of {row.reports}, epsilon {row.epsilon} at delta {row.delta} ({row.success} right)" for row in rows]
    return [MEMOISE, f"Fresh reports add up: {'; '.join(fresh)}."]


@dataclass(frozen=True, slots=True)
class Repeated:
    """What so many fresh reports of one person say, as it is written."""

    reports: str
    epsilon: str
    delta: str
    success: str


def repeated(document: FindingsDocument) -> list[Repeated]:
    """The composition of several reports of the same person."""
    return [
        Repeated(
            reports=fixed(one.reports, 0),
            epsilon=significant(one.epsilon, 3, UP),
            delta=significant(one.delta, 2, UP),
            success=percent(one.attack_success, UP),
        )
        for one in document.privacy.repeated
    ]
