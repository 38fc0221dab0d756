"""What the page of a study is given: one frozen value a section, so that the template only places text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.certificates.study import Effort, Estimate, FindingsDocument
from tightrope.certificates.words.digits import UP, percent, significant
from tightrope.certificates.words.explained import Explained
from tightrope.certificates.words.guesses import Guesses
from tightrope.report.pages.attached import Attached, document_file
from tightrope.report.pictures.dots import Dot, ListChart
from tightrope.report.pictures.hundred import Dots, hundred
from tightrope.report.pictures.scale import Scale, Tick, scale_of
from tightrope.report.words import study
from tightrope.report.words.method import ATTACKER, LIMIT, WHAT_ONE_SENDS, Method

VERIFIED = (
    "Numbers that are written twice must agree. What one report tells is left open, because the document does not hold "
    "the mechanism's whole table; estimates are no claim of privacy."
)
TICKS, DENSE_FROM, SCROLLS_FROM, MOST_LINES = 4, 25, 61, 2_000


@dataclass(frozen=True, slots=True)
class Bar:
    """How many people one way takes; ``length`` in percent of the longest."""

    name: str
    people: str
    length: float
    ours: bool


@dataclass(frozen=True, slots=True)
class EstimatesView:
    """The table of estimates, with a chart inside where they are several; ``hidden``: how many are left out."""

    lines: list[study.Written]
    chart: ListChart | None
    confidence: str
    interval: str
    hidden: int

    @property
    def shaped(self) -> bool:
        """Whether consistent shares are shown."""
        return any(line.shaped for line in self.lines)

    @property
    def dense(self) -> bool:
        """Whether lines stand close together."""
        return len(self.lines) >= DENSE_FROM

    @property
    def scrolls(self) -> bool:
        """Whether the table is too long to stand in full on a screen."""
        return len(self.lines) >= SCROLLS_FROM


@dataclass(frozen=True, slots=True)
class PrivacyView:
    """What reports say about a person."""

    guesses: Guesses
    hundred: list[Dots]
    epsilon: str
    odds: str
    total_variation: str
    repeated: list[study.Repeated]
    memoise: str
    mechanism: str
    report_bits: str
    chances: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class StudyPage:
    """The whole page of a study."""

    title: str
    shares: bool
    asked: str
    reports: str
    estimates: EstimatesView
    effort: str
    bars: list[Bar]
    privacy: PrivacyView
    explained: Explained
    attached: tuple[Attached, ...]
    method: Method
    verified: str = VERIFIED
    independent: bool = True

    @property
    def checked(self) -> str:
        """The name of the document inside the page."""
        return self.attached[0].name


def study_view(document: FindingsDocument) -> StudyPage:
    """Everything the page shows of a document."""
    return StudyPage(
        title=document.title.strip(),
        shares=document.shares,
        asked=_asked(document),
        reports=_reports(document.reports, document.answered),
        estimates=_estimates(document),
        effort=study.effort_words(document),
        bars=_bars(document.effort, document.mechanism.name),
        privacy=_privacy(document),
        explained=document.explained,
        attached=(document_file(document, "findings.json", "all estimates, every digit"),),
        method=Method.of([WHAT_ONE_SENDS, ATTACKER, LIMIT]),
    )


def _estimates(document: FindingsDocument) -> EstimatesView:
    found, lines = study.estimates(document), study.lines(document)
    return EstimatesView(
        lines=lines[:MOST_LINES],
        chart=_chart(found[:MOST_LINES]),
        confidence=percent(document.confidence),
        interval=study.interval_words(document),
        hidden=max(0, len(lines) - MOST_LINES),
    )


def _privacy(document: FindingsDocument) -> PrivacyView:
    told, mechanism = document.privacy, document.mechanism
    return PrivacyView(
        guesses=(guesses := Guesses.of(told.attack_success)),
        hundred=hundred(guesses),
        epsilon=significant(told.epsilon, 4, UP),
        odds=study.odds_words(told.epsilon),
        total_variation=significant(told.total_variation, 3, UP),
        repeated=study.repeated(document),
        memoise=study.MEMOISE,
        mechanism=mechanism.name,
        report_bits=study.bits_words(mechanism.report_bits),
        chances=[(one.meaning, one.exact, significant(one.value, 9)) for one in mechanism.probabilities],
    )


def _asked(document: FindingsDocument) -> str:
    if document.shares:
        return "How large a share of the people gave each answer. Nobody's answer was collected."
    return "The average of one number a person. Nobody's number was collected."


def _reports(reports: int, answered: int) -> str:
    """How many reports there are, and how many of them say nothing.

    >>> _reports(1200, 800)
    '1,200 reports, 400 of them silent'
    """
    silent = reports - answered
    return f"{reports:,} reports" + (f", {silent:,} of them silent" if silent else "")


def _chart(found: Sequence[Estimate]) -> ListChart | None:
    """Dots with whiskers along one axis of shares that starts at 0 or below; None for fewer than two."""
    if len(found) < 2:
        return None
    ends = [end for one in found for end in (one.value, one.lower, one.upper)]
    wide = scale_of([0.0, *ends])
    scale = Scale(0.0, wide.high) if min(ends) >= 0 else wide
    ticks = [Tick(tick.at, f"{tick.label} %") for tick in scale.ticks(TICKS)]
    dots = [Dot(scale.at(one.value), scale.at(one.lower), scale.at(one.upper), False, False) for one in found]
    return ListChart("grid", scale.at(0.0), ticks, list(dots))


def _bars(effort: Effort, name: str) -> list[Bar]:
    """People, for the error that this study reaches: by this mechanism, by the best one known, by any."""
    rows = [(f"This study: {name}", effort.people, True)]
    if effort.best != name:
        rows.append((f"The best known: {effort.best}", effort.best_people, False))
    rows.append(("Any mechanism whatsoever: at least", effort.least_people, False))
    scale = Scale(0.0, max(people for _, people, _ in rows))
    return [Bar(who, f"{people:,}", scale.at(people), ours) for who, people, ours in rows]
