"""What the page of a study is given: one frozen value a section, so that the template only places text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.documents.escaping import printable
from tightrope.documents.numbers import UP, Guesses, percent, significant, times
from tightrope.documents.study import FindingsDocument, StudyDocument
from tightrope.documents.wording import Explained
from tightrope.reporting.charts.page_charts import Dot, Dots, ListChart, Scale, Tick, hundred, scale_of
from tightrope.reporting.pages.account_page import Points, attack_section
from tightrope.reporting.pages.blocks import Attached, Card, DocumentPage, Section, Table, document_file
from tightrope.reporting.wording import method, study
from tightrope.reporting.wording.answers import label
from tightrope.reporting.wording.method import ATTACKER, LIMIT, WHAT_ONE_SENDS, Method

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
    told, mechanism = document.privacy, document.mechanism
    if document.shares:
        asked = "How large a share of the people gave each answer. Nobody's answer was collected."
    else:
        asked = "The average of one number a person. Nobody's number was collected."
    # People, for the error that this study reaches: by this mechanism, by the best one known, by any.
    rows = [(f"This study: {document.mechanism.name}", document.effort.people, True)]
    if document.effort.best != document.mechanism.name:
        rows.append((f"The best known: {document.effort.best}", document.effort.best_people, False))
    rows.append(("Any mechanism whatsoever: at least", document.effort.least_people, False))
    scale = Scale(0.0, max(people for _, people, _ in rows))
    return StudyPage(
        title=document.title.strip(),
        shares=document.shares,
        asked=asked,
        reports=_reports(document.reports, document.answered),
        estimates=_estimates(document),
        effort=study.effort_words(document),
        bars=[Bar(who, f"{people:,}", scale.at(people), ours) for who, people, ours in rows],
        privacy=PrivacyView(
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
        ),
        explained=document.explained,
        attached=(document_file(document, "findings.json", "all estimates, every digit"),),
        method=Method.of([WHAT_ONE_SENDS, ATTACKER, LIMIT]),
    )


def _estimates(document: FindingsDocument) -> EstimatesView:
    found, lines = study.estimates(document), study.lines(document)
    # Dots with whiskers along one axis of shares that starts at 0 or below; None for fewer than two.
    chart_found = found[:MOST_LINES]
    if len(chart_found) < 2:
        chart = None
    else:
        ends = [end for one in chart_found for end in (one.value, one.lower, one.upper)]
        wide = scale_of([0.0, *ends])
        scale = Scale(0.0, wide.high) if min(ends) >= 0 else wide
        ticks = [Tick(tick.at, f"{tick.label} %") for tick in scale.ticks(TICKS)]
        dots = [Dot(scale.at(one.value), scale.at(one.lower), scale.at(one.upper), False, False) for one in chart_found]
        chart = ListChart("grid", scale.at(0.0), ticks, list(dots))
    return EstimatesView(
        lines=lines[:MOST_LINES],
        chart=chart,
        confidence=percent(document.confidence),
        interval=study.interval_words(document),
        hidden=max(0, len(lines) - MOST_LINES),
    )


def _reports(reports: int, answered: int) -> str:
    """How many reports there are, and how many of them say nothing.

    >>> _reports(1200, 800)
    '1,200 reports, 400 of them silent'
    """
    silent = reports - answered
    return f"{reports:,} reports" + (f", {silent:,} of them silent" if silent else "")


# The page of a study before anybody is asked: what each person is promised, and what it will take.

MOST_ANSWERS = 60
STUDY_FILE_VERIFIED = (
    "A study file states a promise and no number to confirm. “tightrope local perturb” refuses a mechanism that does "
    "not keep it, and the findings of the study state the exact probabilities from which anybody can compute it "
    "again."
)
LIMITS = (
    ("Who reports is not hidden.", "That somebody took part, when, and from which address is outside of the report."),
    ("A changed answer shows.", "Each further answer of the same person spends as much again."),
    (
        "The mechanism must run where the answer is.",
        "A table that a collector already holds is not protected from the collector.",
    ),
    (
        "What is true of everyone stays true of you.",
        "Statistics about a group can tell something about its members, asked or not.",
    ),
)


def plan_view(document: StudyDocument, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Everything the page of a study shows that was not run yet."""
    eta = float(document.most_total_variation)
    taken = (Section("effort", "What it takes", tables=tuple(tables)),) if tables else ()
    most = times(document.epsilon)
    epsilon = f"No report is more than {most} times as likely from one answer as from another, without exception."
    found = [("Question", document.question), ("Mechanism", printable(document.mechanism))]
    if document.categories is not None:
        found.append(("Answers", _answers(document.categories)))
    if document.between is not None:
        found.append(("Bounds", " to ".join(significant(end, 9) for end in document.between)))
    if document.total_variation is not None:
        found.append(("Total variation, capped at", percent(document.total_variation, UP)))
    return DocumentPage(
        kind="Study without trust",
        title=document.title.strip() or ("Shares of answers" if document.question == "distribution" else "A mean"),
        explained=document.explained,
        cards=(
            Card("Privacy loss of one report", "ε", significant(document.epsilon, 4, UP), epsilon),
            Card(
                "Total variation",
                "η",
                significant(eta, 3, UP),
                "How much the reports of two people with different answers differ, at most.",
            ),
        ),
        sections=(
            Section("study", "The study", facts=tuple(found)),
            *taken,
            attack_section((document.epsilon, 0.0), eta, points, ()),
        ),
        method=method.Method.of([method.WHAT_ONE_SENDS, method.ATTACKER, method.LIMIT]),
        attached=(document_file(document, "study.json", "the study: people and collector share it"),),
        verified=STUDY_FILE_VERIFIED,
        limits=LIMITS,
        independent=False,
    )


def _answers(names: Sequence[str | int]) -> str:
    """The answers between commas, the first of many.

    >>> _answers(("tea", 7))
    'tea, 7'
    """
    first = ", ".join(label(name) for name in names[:MOST_ANSWERS])
    return first if len(names) <= MOST_ANSWERS else f"{first}, … ({len(names):,} in all)"
