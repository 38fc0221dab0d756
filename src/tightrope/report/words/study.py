"""A study in which nobody was trusted, in words and lines: the same for the terminal and for the page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.report.words.answers import label
from tightrope.report.words.attacker import attack_success
from tightrope.report.words.digits import DOWN, MISSING, UP, decimals_for, fixed, percent, significant
from tightrope.report.words.document import Json, number, part, parts, text

SHARES_QUESTION = "distribution"
MEMOISE = (
    "Who is asked the same again must send the same report again: a copy says nothing new, however often it is sent."
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number that was estimated: its category (None for a mean) and the ends of its interval."""

    category: object
    value: float | None
    lower: float | None
    upper: float | None
    people: float | None
    consistent: float | None

    @property
    def half_width(self) -> float | None:
        """The longer side of the interval."""
        if self.value is None or self.lower is None or self.upper is None:
            return None
        return max(self.upper - self.value, self.value - self.lower, 0.0)


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


def is_shares(document: Json) -> bool:
    """Whether shares of categories were asked for, and not a mean."""
    return text(document, "question") == SHARES_QUESTION


def estimates(document: Json) -> list[Estimate]:
    """Every estimate of a document, in its order; shares in percent."""
    times = 100.0 if is_shares(document) else 1.0
    return [_estimate(source, times) for source in parts(document, "estimates")]


def lines(document: Json) -> list[Written]:
    """Every estimate in as many digits as its interval leaves meaning, the ends rounded outwards."""
    found = estimates(document)
    decimals = decimals_for([one.half_width for one in found if one.half_width is not None])
    return [_written(one, decimals, " %" if is_shares(document) else "") for one in found]


def _estimate(source: Json, times: float) -> Estimate:
    value, lower, upper, shaped = (_times(source, key, times) for key in ("value", "lower", "upper", "consistent"))
    return Estimate(source.get("category"), value, lower, upper, number(source, "people"), shaped)


def _times(source: Json, key: str, times: float) -> float | None:
    value = number(source, key)
    return None if value is None else value * times


def _written(one: Estimate, decimals: int, unit: str) -> Written:
    return Written(
        name="" if one.category is None else label(one.category),
        value=_with(unit, one.value, decimals),
        half_width=_with(unit, one.half_width, decimals, UP),
        lower=_with(unit, one.lower, decimals, DOWN),
        upper=_with(unit, one.upper, decimals, UP),
        people=fixed(one.people, 0),
        shaped=() if one.consistent is None else (_with(unit, one.consistent, decimals),),
    )


def _with(unit: str, value: float | None, decimals: int, *rounding: str) -> str:
    return MISSING if value is None else fixed(value, decimals, *rounding) + unit


def interval_words(document: Json) -> str:
    """What the intervals hold, and how often."""
    often = percent(number(document, "confidence"))
    if not is_shares(document):
        return f"The interval holds the mean of the population that people were drawn from with {often}."
    whose = "the true share among those who reported"
    below = "An estimate may lie below 0: that is what keeps sums and averages right."
    if document.get("simultaneous") is True:
        return f"All intervals together hold {whose} with {often}, for any number of reports. {below}"
    return f"Each interval holds {whose} with {often}, by itself. {below}"


def effort_words(document: Json) -> str:
    """How many people it took for the error, and how many it takes at least; empty where it is not stated."""
    effort = part(document, "effort")
    people, least, error = (number(effort, key) for key in ("people", "least_people", "error"))
    if people is None or least is None or error is None:
        return ""
    if is_shares(document):
        what = f"shares are off by {significant(100 * error, 2, UP)} percentage points or less, whatever the population"
        over = "root mean square over all categories; a large share may be off by more, a rare one by less"
    else:
        what = f"the mean is off by {significant(error, 2, UP)} or less, whatever the population"
        over = "root mean square"
    reached = f"With {fixed(people, 0)} {'person' if people == 1 else 'people'} {what} ({over})."
    if least <= 1:
        return f"{reached} How few people could do is not known: the proven limit says nothing here."
    return (
        f"{reached} No mechanism with this privacy, known or not, can promise that with fewer than {fixed(least, 0)} "
        f"people who do not see each other's reports."
    )


def privacy_words(document: Json) -> list[str]:
    """What one report says about the person who made it."""
    privacy = part(document, "privacy")
    epsilon, eta, success = number(privacy, "epsilon"), number(privacy, "total_variation"), attack_success(privacy)
    if epsilon is None or eta is None or success is None:
        return []
    return [
        f"epsilon {significant(epsilon, 4, UP)}, delta 0: {odds_words(epsilon)}",
        f"total variation {significant(eta, 3, UP)}: who guesses between two answers is right at most "
        f"{percent(success, UP)} of the time; a coin is right 50 %.",
    ]


def odds_words(epsilon: float) -> str:
    """e^ε in words.

    >>> odds_words(1.0)
    'no report is more than 2.72 times as likely from one answer as from another, without exception.'
    """
    factor = significant(math.exp(min(epsilon, 700.0)), 3, UP)
    return f"no report is more than {factor} times as likely from one answer as from another, without exception."


def bits_words(document: Json) -> str:
    """How large a report is.

    >>> bits_words({"mechanism": {"report_bits": 1}})
    '1 bit'
    """
    bits = number(part(document, "mechanism"), "report_bits")
    return f"{fixed(bits, 0)} bit{'' if bits == 1 else 's'}"


def repeated_words(document: Json) -> list[str]:
    """What asking again would do: with a copy nothing, with fresh reports what the accountant says."""
    rows = [row for row in repeated(document) if row.reports != "1"]
    fresh = [f"of {row.reports}, epsilon {row.epsilon} at delta {row.delta} ({row.success} right)" for row in rows]
    return [MEMOISE, *([f"Fresh reports add up: {'; '.join(fresh)}."] if fresh else [])]


@dataclass(frozen=True, slots=True)
class Repeated:
    """What so many fresh reports of one person say, as it is written."""

    reports: str
    epsilon: str
    delta: str
    success: str


def repeated(document: Json) -> list[Repeated]:
    """The composition of several reports of the same person."""
    return [_repeated(source) for source in parts(part(document, "privacy"), "repeated")]


def _repeated(source: Json) -> Repeated:
    return Repeated(
        reports=fixed(number(source, "reports"), 0),
        epsilon=significant(number(source, "epsilon"), 3, UP),
        delta=significant(number(source, "delta"), 2, UP),
        success=percent(number(source, "attack_success"), UP),
    )
