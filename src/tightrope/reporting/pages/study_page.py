"""Template data of a study page: one frozen value a section, so that the template only places text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, Guesses, percent_text, significant_text, times_text
from tightrope.documents.study import FindingsDocument, StudyDocument
from tightrope.documents.wording import Explanation
from tightrope.reporting.charts.page_charts import (
    Dot,
    GuessDots,
    ListChart,
    Scale,
    Tick,
    guess_dots,
    scale_from_numbers,
)
from tightrope.reporting.pages.account_page import Points, attack_section
from tightrope.reporting.pages.blocks import Card, DocumentPage, EmbeddedFile, Section, Table, document_file
from tightrope.reporting.wording import method, study
from tightrope.reporting.wording.answers import key_text
from tightrope.reporting.wording.method import ATTACKER, LIMIT, WHAT_ONE_SENDS, MethodAppendix

VERIFIED = (
    "Numbers that occur twice must agree. The privacy loss of one report is reported as not confirmed, because the "
    "document does not contain the mechanism's whole table; estimates are not privacy claims."
)
TICKS, DENSE_FROM, SCROLLS_FROM, MOST_LINES = 4, 25, 61, 2_000


@dataclass(frozen=True, slots=True)
class EffortBar:
    """The number of people that one method needs; ``length`` in percent of the longest bar."""

    name: str
    people: str
    length: float
    ours: bool


@dataclass(frozen=True, slots=True)
class EstimatesView:
    """The table of estimates, with a chart inside for several of them; ``hidden_line_count``: the number left out."""

    lines: list[study.EstimateTexts]
    chart: ListChart | None
    confidence: str
    interval: str
    hidden_line_count: int

    @property
    def has_consistent_shares(self) -> bool:
        """Return whether consistent shares are shown."""
        return any(line.consistent_share for line in self.lines)

    @property
    def is_dense(self) -> bool:
        """Return whether lines stand close together."""
        return len(self.lines) >= DENSE_FROM

    @property
    def is_scrollable(self) -> bool:
        """Return whether the table is too long to fit on a screen."""
        return len(self.lines) >= SCROLLS_FROM


@dataclass(frozen=True, slots=True)
class PrivacyView:
    """The section on what reports reveal about a person."""

    guesses: Guesses
    guess_dots: list[GuessDots]
    epsilon: str
    odds: str
    total_variation: str
    repeated_reports: list[study.RepeatedReports]
    memoize: str
    mechanism: str
    report_bits: str
    chances: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class StudyPage:
    """The whole page of a study."""

    title: str
    shares: bool
    question_text: str
    reports: str
    estimates: EstimatesView
    effort: str
    bars: list[EffortBar]
    privacy: PrivacyView
    explained: Explanation
    embedded_files: tuple[EmbeddedFile, ...]
    method: MethodAppendix
    verified: str = VERIFIED
    independent: bool = True

    @property
    def document_filename(self) -> str:
        """The name of the document inside the page."""
        return self.embedded_files[0].name


def study_view(document: FindingsDocument) -> StudyPage:
    """Return the contents of the page of a study."""
    told, mechanism = document.privacy, document.mechanism
    if document.estimates_proportions:
        asked = "The share of each answer among the respondents. Only randomized answers were collected."
    else:
        asked = "The average of one number per person. Only randomized numbers were collected."
    # People needed for the error of this study: with this mechanism, with the best known one, with any.
    rows = [(f"This study: {document.mechanism.name}", document.effort.people, True)]
    if document.effort.best != document.mechanism.name:
        rows.append((f"The best known: {document.effort.best}", document.effort.best_people, False))
    rows.append(("Lower bound for every mechanism", document.effort.least_people, False))
    scale = Scale(0.0, max(people for _, people, _ in rows))
    reports, silent = f"{document.reports:,} reports", document.reports - document.answered
    return StudyPage(
        title=document.title.strip(),
        shares=document.estimates_proportions,
        question_text=asked,
        reports=f"{reports}, {silent:,} of them empty" if silent else reports,
        estimates=_estimates_view(document),
        effort=study.accuracy_sentences(document),
        bars=[EffortBar(who, f"{people:,}", scale.to_percent(people), ours) for who, people, ours in rows],
        privacy=PrivacyView(
            guesses=(guesses := Guesses.from_success(told.attack_success)),
            guess_dots=guess_dots(guesses),
            epsilon=significant_text(told.epsilon, 4, UP),
            odds=study.odds_words(told.epsilon),
            total_variation=significant_text(told.total_variation, 3, UP),
            repeated_reports=study.repeated_reports(document),
            memoize=study.MEMOISE,
            mechanism=mechanism.name,
            report_bits=study.bits_words(mechanism.report_bits),
            chances=[(one.meaning, one.exact, significant_text(one.value, 9)) for one in mechanism.probabilities],
        ),
        explained=document.explanation_parts,
        embedded_files=(document_file(document, "findings.json", "all estimates, with all digits"),),
        method=MethodAppendix.from_statements([WHAT_ONE_SENDS, ATTACKER, LIMIT]),
    )


def _estimates_view(document: FindingsDocument) -> EstimatesView:
    found, lines = study.estimates_in_units(document), study.estimate_lines(document)
    # Dots with whiskers along one axis of shares that starts at 0 or below; None for fewer than two.
    chart_found = found[:MOST_LINES]
    if len(chart_found) < 2:
        chart = None
    else:
        ends = [end for one in chart_found for end in (one.value, one.lower, one.upper)]
        wide = scale_from_numbers([0.0, *ends])
        scale = Scale(0.0, wide.high) if min(ends) >= 0 else wide
        ticks = [Tick(tick.at, f"{tick.label} %") for tick in scale.make_ticks(TICKS)]
        dots = [
            Dot(scale.to_percent(one.value), scale.to_percent(one.lower), scale.to_percent(one.upper), False, False)
            for one in chart_found
        ]
        chart = ListChart("grid", scale.to_percent(0.0), ticks, list(dots))
    return EstimatesView(
        lines=lines[:MOST_LINES],
        chart=chart,
        confidence=percent_text(document.confidence),
        interval=study.interval_words(document),
        hidden_line_count=max(0, len(lines) - MOST_LINES),
    )


# The page of a study before data collection: the promise to each person, and the effort.

MOST_ANSWERS = 60
STUDY_FILE_VERIFIED = (
    "A study file states a guarantee, but contains no number to confirm. “tightrope local perturb” refuses a mechanism "
    "that does not meet the guarantee, and the findings of the study contain the exact probabilities to recompute it."
)
LIMITS = (
    ("Participation is not hidden.", "A report does not hide that a person took part, when, or from which address."),
    ("A changed answer can be noticed.", "Each new answer of the same person adds the same privacy loss again."),
    (
        "The mechanism must run on the person's device.",
        "Answers that a collector already has are not protected from the collector.",
    ),
    (
        "Facts about the population are not hidden.",
        "Statistics can tell something about you, whether you take part or not.",
    ),
)


def plan_view(document: StudyDocument, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Return the contents of the page of a planned study."""
    eta = float(document.most_total_variation)
    taken = (Section("effort", "Number of people", tables=tuple(tables)),) if tables else ()
    most = times_text(document.epsilon)
    epsilon = f"Every report is at most {most} times as likely from one answer as from another (pure ε-LDP)."
    found = [("Question", document.question), ("Mechanism", escape_control_chars(document.mechanism))]
    if document.categories is not None:
        names = document.categories
        answers = ", ".join(key_text(name) for name in names[:MOST_ANSWERS])
        found.append(("Answers", answers + (f", … ({len(names):,} in all)" if len(names) > MOST_ANSWERS else "")))
    if document.bounds is not None:
        found.append(("Bounds", " to ".join(significant_text(end, 9) for end in document.bounds)))
    if document.total_variation is not None:
        found.append(("Total variation, capped at", percent_text(document.total_variation, UP)))
    return DocumentPage(
        kind="Local differential privacy",
        title=document.title.strip() or ("Shares of answers" if document.question == "distribution" else "A mean"),
        explained=document.explanation_parts,
        cards=(
            Card("Privacy loss of one report", "ε", significant_text(document.epsilon, 4, UP), epsilon),
            Card(
                "Total variation",
                "η",
                significant_text(eta, 3, UP),
                "How much the reports of two people with different answers differ, at most.",
            ),
        ),
        sections=(
            Section("study", "The study", facts=tuple(found)),
            *taken,
            attack_section((document.epsilon, 0.0), eta, points, ()),
        ),
        method=method.MethodAppendix.from_statements([method.WHAT_ONE_SENDS, method.ATTACKER, method.LIMIT]),
        embedded_files=(document_file(document, "study.json", "the study file, shared by people and collector"),),
        verified=STUDY_FILE_VERIFIED,
        limits=LIMITS,
        independent=False,
    )
