"""The pages: one self-contained HTML file each; the script in it only sorts tables, and is optional."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tightrope.documents.account import Account, TrainingAccount
from tightrope.documents.coupling import CouplingDocument
from tightrope.documents.noise import NoiseDocument
from tightrope.documents.study import FindingsDocument, StudyDocument
from tightrope.errors import InputError
from tightrope.reporting.pages.account_page import Points, account_view, training_view
from tightrope.reporting.pages.blocks import DocumentPage, Table, template_environment
from tightrope.reporting.pages.coupling_page import coupling_view
from tightrope.reporting.pages.noise_page import noise_view
from tightrope.reporting.pages.study_page import plan_view, study_view

if TYPE_CHECKING:
    pass

STUDY, DOCUMENT = "study.html.j2", "document.html.j2"


def study_html(document: FindingsDocument) -> str:
    """Return the report of a local-model study as one self-contained HTML page.

    ``document`` is what ``Findings.to_document`` gives, or ``documents.study.read_findings`` of what
    ``tightrope local estimate --json`` prints. Every text in it is escaped; the same document gives the same bytes.
    Raises ``InputError`` for other input, ``MissingExtraError`` without jinja2.
    """
    if not isinstance(document, FindingsDocument):
        remedy = "documents.study.read_findings reads what `tightrope local estimate --json` prints"
        raise InputError("document", type(document).__name__, "findings", remedy)
    return template_environment().get_template(STUDY).render(page=study_view(document)).lstrip()


def document_html(
    document: Account | TrainingAccount | NoiseDocument | StudyDocument | CouplingDocument,
    *,
    curve: Sequence[tuple[float, float]] = (),
    tables: Sequence[Table] = (),
) -> str:
    """Return a self-contained HTML page of a document: its guarantee in words, numbers, curves, formulas, and the file.

    ``document`` is an account, a training account, a noise, a study or a coupling (``tightrope.documents``);
    ``curve`` holds further points (ε, δ), each of them a bound, for the curves of an attacker, and ``tables`` further
    tables. Every text is escaped; the same arguments give the same bytes. Raises ``InputError`` for anything
    else, ``MissingExtraError`` without jinja2.
    """
    view = _VIEWS.get(type(document))
    if view is None:
        remedy = "html takes the result of a release, study_html findings"
        raise InputError("document", type(document).__name__, "an account, a noise, a study or a coupling", remedy)
    return template_environment().get_template(DOCUMENT).render(page=view(document, curve, tables)).lstrip()


_VIEWS: dict[type[Any], Callable[[Any, Points, Sequence[Table]], DocumentPage]] = {
    Account: account_view,
    TrainingAccount: training_view,
    NoiseDocument: noise_view,
    StudyDocument: plan_view,
    CouplingDocument: coupling_view,
}


# The page of the papers: every statement with our number, the paper's, the verdict and the figures.

PAPERS_TEMPLATE = "papers.html.j2"
SHOWN = 4
"""Largest count of numbers in a row that are printed in full."""


@dataclass(frozen=True, slots=True)
class StatementCard:
    """One statement as it is written."""

    item: str
    statement: str
    word: str
    verdict: str
    ours: str
    printed: str
    call: str
    pictures: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class PaperStatements:
    """One paper: its name, its title, its statements."""

    name: str
    title: str
    cards: tuple[StatementCard, ...]


def papers_html(
    results: Sequence[Mapping[str, Any]], pictures: Sequence[Sequence[str]], titles: Mapping[str, str]
) -> str:
    """Return one self-contained HTML page about the papers.

    ``results``: what ``tightrope reproduce --json`` prints under "items"; ``pictures``: for each, its SVG elements, as
    ``report.pictures.panels.svg`` writes them; ``titles``: of the papers by their short names. Texts are escaped, the
    pictures are not. Raises ``MissingExtraError`` without jinja2.
    """
    environment = template_environment()
    from markupsafe import Markup

    cards: list[tuple[str, StatementCard]] = []
    for one, drawn in zip(results, pictures, strict=True):
        verdict = one["verdict"]
        card = StatementCard(
            item=one["item"],
            statement=one["statement"],
            word=verdict.replace(":", " ").split()[0],
            verdict=verdict,
            ours=number_text(one["ours"]),
            printed=number_text(one["printed"]),
            call=one["call"],
            pictures=tuple(Markup(picture) for picture in drawn),  # noqa: S704 - drawn by us, all text in it as paths
        )
        cards.append((one["paper"], card))
    papers = [
        PaperStatements(name, titles[name], tuple(card for _, card in group))
        for name, group in groupby(cards, key=lambda pair: pair[0])
    ]
    counts = {word: sum(card.word == word for _, card in cards) for word in ("agrees", "sharper", "wrong", "not")}
    template = environment.get_template(PAPERS_TEMPLATE)
    return template.render(papers=papers, counts=counts, total=len(cards)).lstrip()


def number_text(values: float | Sequence[float]) -> str:
    """Return one number, or the first few of many, as text.

    >>> number_text(0.46211715726), number_text([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    ('0.4621171573', '1, 2, 3, 4, … (6 values)')
    """
    if isinstance(values, (int, float)):
        return f"{values:.10g}"
    first = ", ".join(f"{value:.6g}" for value in values[:SHOWN])
    return first if len(values) <= SHOWN else f"{first}, … ({len(values)} values)"
