"""A local-model study in words and lines: the same for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from tightrope.documents.numbers import (
    DOWN,
    UP,
    decimals_for,
    fixed_text,
    percent_text,
    significant_text,
    terminal_text,
    times_text,
)
from tightrope.documents.study import Estimate, FindingsDocument
from tightrope.documents.wording import RANDOM_GUESSING
from tightrope.reporting.wording.answers import key_text

MEMOISE = (
    "A person who is asked the same question again must send the same report again: copies of a report reveal nothing "
    "more."
)


@dataclass(frozen=True, slots=True)
class EstimateTexts:
    """An estimate as printed; ``consistent_share`` is the consistent share, empty unless requested."""

    name: str
    value: str
    half_width: str
    lower: str
    upper: str
    people: str
    consistent_share: tuple[str, ...]


def estimates_in_units(document: FindingsDocument) -> Sequence[Estimate]:
    """Return every estimate of a document, in its order; shares in percent."""
    if not document.estimates_proportions:
        return document.estimates
    return [
        replace(
            one,
            value=100 * one.value,
            lower=100 * one.lower,
            upper=100 * one.upper,
            consistent=None if one.consistent is None else 100 * one.consistent,
        )
        for one in document.estimates
    ]


def estimate_lines(document: FindingsDocument) -> list[EstimateTexts]:
    """Return every estimate in the digits that are meaningful given its interval, the ends rounded outwards."""
    found = estimates_in_units(document)
    decimals = decimals_for([_half_width(one) for one in found])
    unit = " %" if document.estimates_proportions else ""
    return [
        EstimateTexts(
            name="" if one.category is None else key_text(one.category),
            value=fixed_text(one.value, decimals) + unit,
            half_width=fixed_text(_half_width(one), decimals, UP) + unit,
            lower=fixed_text(one.lower, decimals, DOWN) + unit,
            upper=fixed_text(one.upper, decimals, UP) + unit,
            people=fixed_text(one.people, 0),
            consistent_share=() if one.consistent is None else (fixed_text(one.consistent, decimals) + unit,),
        )
        for one in found
    ]


def _half_width(one: Estimate) -> float:
    """Return the longer side of the interval."""
    return max(one.upper - one.value, one.value - one.lower, 0.0)


def interval_words(document: FindingsDocument) -> str:
    """Return a sentence on what the intervals contain, and with which probability."""
    often = percent_text(document.confidence)
    if not document.estimates_proportions:
        return f"{often} confidence interval for the mean of the population from which people were sampled."
    below = "Estimates can be negative: setting them to 0 would bias sums and averages."
    whose = "the true proportions among the respondents"
    if document.simultaneous:
        return f"Simultaneous {often} confidence intervals for {whose}, valid for any number of reports. {below}"
    return f"{often} confidence intervals for {whose}, each by itself. {below}"


def accuracy_sentences(document: FindingsDocument) -> str:
    """Return sentences on the error with this number of people, and on the lower bound for every mechanism."""
    people, least, error = document.effort.people, document.effort.least_people, document.effort.error
    if document.estimates_proportions:
        what = f"of all proportions is at most {significant_text(100 * error, 2, UP)} percentage points"
        note = " The error of a large proportion can be larger, that of a small one smaller."
    else:
        what, note = f"of the mean is at most {significant_text(error, 2, UP)}", ""
    reached = (
        f"With {fixed_text(people, 0)} {'person' if people == 1 else 'people'}, the root mean square error {what}, for "
        f"any population.{note}"
    )
    if least == 0:
        return f"{reached} No reports are needed for that: a constant guess is already this accurate."
    if least == 1:
        return f"{reached} The lower bound on the number of people is trivial here, so fewer people may be enough."
    return f"{reached} For this accuracy, every mechanism with this guarantee needs at least {limits_words(document)}."


def limits_words(document: FindingsDocument) -> str:
    """Return both lower bounds, or the one that holds for both kinds of mechanisms, and the gap to this study."""
    alone, in_turn = document.effort.least_people, document.effort.least_people_interactive
    factor = f"this study used {significant_text(document.effort.people / in_turn, 3, UP)} times as many"
    if alone == in_turn:
        return f"{fixed_text(in_turn, 0)} people (lower bound; {factor})"
    return (
        f"{fixed_text(alone, 0)} people if they do not see each other's reports (non-interactive), or "
        f"{fixed_text(in_turn, 0)} if they may see earlier reports (sequentially interactive; {factor})"
    )


def privacy_words(document: FindingsDocument) -> list[str]:
    """Return sentences on what one report reveals about the person who made it."""
    told = document.privacy
    return [
        f"epsilon {significant_text(told.epsilon, 4, UP)}, delta 0: {odds_words(told.epsilon)}",
        f"total variation {significant_text(told.total_variation, 3, UP)}: a guess between two answers is right at "
        f"most {percent_text(told.attack_success, UP)} of the time ({RANDOM_GUESSING})",
    ]


def odds_words(epsilon: float) -> str:
    """Return e^ε in words.

    >>> odds_words(1.0)
    'every report is at most 2.72 times as likely from one answer as from another (pure epsilon-LDP).'
    """
    return (
        f"every report is at most {times_text(epsilon)} times as likely from one answer as from another "
        "(pure epsilon-LDP)."
    )


def bits_words(bits: int) -> str:
    """Return the size of a report in words.

    >>> bits_words(1), bits_words(1200)
    ('1 bit', '1,200 bits')
    """
    return f"{bits:,} bit{'' if bits == 1 else 's'}"


def repeated_words(document: FindingsDocument) -> list[str]:
    """Return sentences on repeated collection: copies reveal nothing more, independent reports compose."""
    fresh = [
        f"{row.reports} reports have epsilon {row.epsilon} at delta {terminal_text(one.delta, 2, UP)} (attack success "
        f"at most {row.success})"
        for row, one in zip(repeated_reports(document), document.privacy.repeated, strict=True)
        if one.reports != 1
    ]
    return [MEMOISE, f"Independent reports of one answer compose: {'; '.join(fresh)}."]


@dataclass(frozen=True, slots=True)
class RepeatedReports:
    """Privacy of several independent reports of one person, as text."""

    reports: str
    epsilon: str
    delta: str
    success: str


def repeated_reports(document: FindingsDocument) -> list[RepeatedReports]:
    """Return the composition of several reports of the same person."""
    return [
        RepeatedReports(
            reports=fixed_text(one.reports, 0),
            epsilon=significant_text(one.epsilon, 3, UP),
            delta=significant_text(one.delta, 2, UP),
            success=percent_text(one.attack_success, UP),
        )
        for one in document.privacy.repeated
    ]
