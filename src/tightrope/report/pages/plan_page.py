"""The page of a study before anybody is asked: what each person is promised, and what it will take."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.certificates.printable import printable
from tightrope.certificates.study import StudyDocument
from tightrope.certificates.words.chances import times
from tightrope.certificates.words.digits import UP, percent, significant
from tightrope.report.pages.attached import document_file
from tightrope.report.pages.attack_view import Points, attack_section
from tightrope.report.pages.blocks import Card, DocumentPage, Section, Table
from tightrope.report.words import method
from tightrope.report.words.answers import label

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
    return DocumentPage(
        kind="Study without trust",
        title=document.title.strip() or ("Shares of answers" if document.question == "distribution" else "A mean"),
        explained=document.explained,
        cards=_cards(document, eta),
        sections=(
            Section("study", "The study", facts=_facts(document)),
            *taken,
            attack_section((document.epsilon, 0.0), eta, points, ()),
        ),
        method=method.Method.of([method.WHAT_ONE_SENDS, method.ATTACKER, method.LIMIT]),
        attached=(document_file(document, "study.json", "the study: people and collector share it"),),
        verified=STUDY_FILE_VERIFIED,
        limits=LIMITS,
        independent=False,
    )


def _cards(document: StudyDocument, eta: float) -> tuple[Card, ...]:
    most = times(document.epsilon)
    epsilon = f"No report is more than {most} times as likely from one answer as from another, without exception."
    return (
        Card("Privacy loss of one report", "ε", significant(document.epsilon, 4, UP), epsilon),
        Card(
            "Total variation",
            "η",
            significant(eta, 3, UP),
            "How much the reports of two people with different answers differ, at most.",
        ),
    )


def _facts(document: StudyDocument) -> tuple[tuple[str, str], ...]:
    found = [("Question", document.question), ("Mechanism", printable(document.mechanism))]
    if document.categories is not None:
        found.append(("Answers", _answers(document.categories)))
    if document.between is not None:
        found.append(("Bounds", " to ".join(significant(end, 9) for end in document.between)))
    if document.total_variation is not None:
        found.append(("Total variation, capped at", percent(document.total_variation, UP)))
    return tuple(found)


def _answers(names: Sequence[str | int]) -> str:
    """The answers between commas, the first of many.

    >>> _answers(("tea", 7))
    'tea, 7'
    """
    first = ", ".join(label(name) for name in names[:MOST_ANSWERS])
    return first if len(names) <= MOST_ANSWERS else f"{first}, … ({len(names):,} in all)"
