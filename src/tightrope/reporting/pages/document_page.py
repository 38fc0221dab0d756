"""Pages of documents other than releases: one self-contained HTML file each.

The script in it only sorts tables, and is optional.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tightrope.documents.account import Account, TrainingAccount
from tightrope.documents.coupling import CategoriesPart, CouplingDocument
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.noise import NoiseDocument
from tightrope.documents.numbers import DOWN, MISSING, UP, percent_text, significant_text
from tightrope.documents.study import FindingsDocument, StudyDocument
from tightrope.errors import InputError
from tightrope.reporting.pages.account_page import (
    FACTS_NOT_HIDDEN,
    Points,
    account_view,
    attack_section,
    curve_file,
    training_view,
)
from tightrope.reporting.pages.blocks import Card, DocumentPage, Section, Table, document_file, template_environment
from tightrope.reporting.pages.study_page import plan_view, study_view
from tightrope.reporting.wording import method

# The page of a coupling.

MOST_POINTS, MOST_GROUPS = 25, 6
"""Distributions with more points or groups are not shown as a table."""
COUPLING_VERIFIED = (
    "For every group it computes the output distribution exactly and compares it with the target. It cannot check that "
    "values have the distributions in the document."
)
PARTIAL_VERIFIED = (
    "It computes the output distributions exactly, compares what they share with the stated mass, and recomputes the "
    "lower bound on the mean distance. It cannot check that values have the distributions in the document."
)
COUPLING_LIMITS = (
    ("It hides the group, not the person.", "An output can still identify a person, for example by a rare value."),
    (
        "Values must have the distributions that it was fitted to.",
        "Otherwise outputs reveal the group, by at most the errors of these distributions.",
    ),
    ("One output per value.", "Randomizing a value again reveals more: use the same output for it."),
    (
        "Facts about the population are not hidden.",
        "The common distribution can tell something about all groups together.",
    ),
)


def coupling_view(document: CouplingDocument, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Return the contents of the page of a coupling."""
    learned = document.origin.learning
    left = () if learned is None else tuple((one.epsilon, one.delta) for one in learned.left)
    eta = None if learned is None else min(one.total_variation for one in learned.left)
    attack = () if eta is None else (attack_section(left[0], eta, [*left[1:], *points], ()),)
    support = document.support
    if isinstance(support, CategoriesPart):
        places = len(support.names)
    else:
        places = math.prod(axis.cells for axis in support.axes)
    rows = [
        [escape_control_chars(name), significant_text(group.loss, 4, UP), f"{len(group.tables):,}"]
        for name, group in zip(document.group.names, document.groups, strict=True)
    ]
    kind = "mean" if document.objective == "expected" else "maximum"
    column = escape_control_chars(document.group.column)
    distances = Table("Each group", (column, f"{kind.capitalize()} distance", "Number of sampling tables"), rows)
    largest = max((group.loss for group in document.groups), default=0.0)
    title, alike, verified, statement = coupling_texts(document)
    return DocumentPage(
        kind="Coupling",
        title=title,
        explained=document.explanation_parts,
        cards=(
            Card("Groups", "", f"{len(document.groups):,}", alike),
            Card("Points", "", f"{places:,}", f"Distances: {escape_control_chars(document.support.metric)}."),
            Card(
                "Distance",
                "",
                significant_text(largest, 3, UP),
                f"The largest {kind} distance of a group.",
            ),
        ),
        sections=(
            Section(
                "secrecy",
                "Who may see this",
                (SECRECY[document.origin.kind],),
                _coupling_facts(document),
            ),
            Section(
                "groups",
                "Distances between values and outputs",
                (UNITS_OF[document.objective],),
                tables=(distances, *tables, *_distribution_tables(document)),
            ),
            *attack,
        ),
        method=method.MethodAppendix.from_statements([statement, method.WHAT_IS_LEFT]),
        embedded_files=(document_file(document, "mechanism.json", "all weights that are sampled from"),),
        verified=verified,
        limits=COUPLING_LIMITS,
        secret=document.origin.kind == "table",
    )


def coupling_texts(document: CouplingDocument) -> tuple[str, str, str, method.Statement]:
    """Return the title, what groups have in common, what is verified, and the mechanism."""
    part, column = document.common_part, escape_control_chars(document.group.column)
    if part is None:
        alike = "All of them have the same output distribution."
        return f"Values independent of “{column}”", alike, COUPLING_VERIFIED, method.COUPLED
    alike = f"They share at least {percent_text(1 - part.delta, DOWN)} of their outputs."
    return f"Values nearly independent of “{column}”", alike, PARTIAL_VERIFIED, method.PARTIALLY_COUPLED


SECRECY = {
    "table": "This page and the file contain the exact distributions of the groups: protect them like the table.",
    "public": "This page and the file are as public as the distributions that were given.",
    "private": "This page and the file contain only what the budget below protects: they may be shared.",
}
LAWS = {"table": "those of the table", "public": "given", "private": "learned with noise"}
UNITS_OF = {
    "expected": "The mean distance in a group is as small as possible.",
    "worst": "The maximum distance in a group is as small as possible.",
}


def _coupling_facts(document: CouplingDocument) -> tuple[tuple[str, str], ...]:
    support, learned = document.support, document.origin.learning
    columns = [support.column] if isinstance(support, CategoriesPart) else [axis.column for axis in support.axes]
    found = [
        ("Values", ", ".join(map(escape_control_chars, columns))),
        ("Group", escape_control_chars(document.group.column)),
        ("Target", escape_control_chars(document.origin.target)),
        ("Distributions", LAWS[document.origin.kind]),
    ]
    if document.common_part is not None:
        delta, lower = document.common_part.delta, document.common_part.lower
        found += [
            ("Total variation between groups (δ)", significant_text(delta, 6, UP)),
            ("Least mean distance over groups with this δ", significant_text(lower, 6, DOWN)),
        ]
    if learned is not None:
        found += [
            ("ε spent on learning", significant_text(learned.epsilon, 6, UP)),
            ("Privacy unit", escape_control_chars(learned.person)),
            ("Confidence", percent_text(learned.confidence)),
        ]
    return tuple(found)


def _distribution_tables(document: CouplingDocument) -> tuple[Table, ...]:
    """Return the groups' distributions next to their common target, if that is short."""
    support = document.support
    if (
        not isinstance(support, CategoriesPart)
        or len(support.names) > MOST_POINTS
        or len(document.groups) > MOST_GROUPS
    ):
        return ()
    columns = [_mass_percentages(group.law) for group in document.groups] + [_mass_percentages(document.target)]
    rows = [[escape_control_chars(name), *parts] for name, *parts in zip(support.names, *columns, strict=True)]
    caption, after = "Distribution of each group before, and of all groups after", "After"
    if document.common_part is not None:
        caption, after = "Distribution of each group before, and of the target, which outputs share", "Target"
    heads = (escape_control_chars(support.column), *map(escape_control_chars, document.group.names), after)
    return (Table(caption, heads, rows),)


def _mass_percentages(masses: Sequence[str]) -> list[str]:
    wholes = [int(mass, 16) for mass in masses]
    return [percent_text(mass / sum(wholes)) for mass in wholes]


# The page of a noise certificate.

MOST_ERRORS = 24
"""Errors whose probabilities are listed."""
ALL = 1 << 128
COSTS = {"absolute": "E|X|", "squared": "E X²"}
WHY = {
    "theorem": "The lower bound is a theorem.",
    "dual": "The lower bound follows from multipliers in the certificate, by additions and multiplications alone.",
    "single release": "The lower bound is that of a single answer; several answers cannot have less.",
}
NOISE_VERIFIED = (
    "It recomputes δ at every requested ε, for every shift, and both errors, exactly, from the weights that are "
    "sampled from. A lower bound with multipliers is proven again; that of several answers is not, and real-valued "
    "noise is reported as not confirmed."
)
NOISE_LIMITS = (
    (
        "The sensitivity must be ensured.",
        "The guarantee holds only if the code that computes the answers ensures the stated sensitivity.",
    ),
    (
        "The lower bound is for the requested budget and cost.",
        "Noise for a weaker guarantee, or for another cost, may be smaller.",
    ),
    FACTS_NOT_HIDDEN,
    ("It covers only these answers.", "Other releases about the same people add to the privacy loss."),
)


def noise_view(document: NoiseDocument, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Return the contents of the page of a noise."""
    own, answers = document.guarantee, document.releases
    each = "one answer" if answers == 1 else f"each of {answers:,} answers"
    laws = tuple(tables)
    if document.table is not None:  # the probabilities of the smallest errors
        weights = [int(weight) for weight in (document.table.center, *document.table.half[:MOST_ERRORS])]
        lines = [["0" if x == 0 else f"±{x}", significant_text(weight / ALL, 6)] for x, weight in enumerate(weights)]
        bars = tuple(100 * weight / max(weights) for weight in weights)
        laws += (Table("Probabilities of the smallest errors", ("Error", "Probability"), lines, bars=bars),)
    rows = [
        [significant_text(e, 6), significant_text(allowed, 6), significant_text(kept, 6, UP)]
        for e, allowed, kept in document.realized
    ]
    caption = "δ at each ε, of all answers together" if document.releases > 1 else "δ at each ε"
    cost = COSTS.get(document.cost, escape_control_chars(document.cost))
    found = [
        ("E|X|", significant_text(document.mean_absolute_error, 6, UP)),
        ("√E X²", significant_text(math.sqrt(document.mean_squared_error), 6, UP)),
        (f"{cost} of this noise", significant_text(document.upper, 9, UP)),
        (f"{cost} of any noise, at least", significant_text(document.lower, 9, DOWN)),
    ]
    if document.shape_lower is not None:
        found.append((f"{cost} of any noise of this shape, at least", significant_text(document.shape_lower, 9, DOWN)))
    return DocumentPage(
        kind="Noise certificate",
        title=f"Noise for {each} with sensitivity {significant_text(document.sensitivity)}",
        explained=document.explanation_parts,
        cards=_noise_cards(document),
        sections=(
            Section(
                "promise",
                "Requested and achieved privacy",
                tables=(Table(caption, ("ε", "δ, requested", "δ, achieved"), rows, 0),),
            ),
            Section(
                "errors",
                "Accuracy",
                (WHY[document.argument.kind],),
                (*found, ("Shape", escape_control_chars(document.shape)), ("Answers", f"{document.releases:,}")),
            ),
            *([Section("laws", "The noise, and other noise for comparison", tables=laws)] if laws else []),
            attack_section((own.epsilon, own.delta), own.total_variation, points, ()),
        ),
        method=method.MethodAppendix.from_statements(
            [method.INPUTS, method.PROFILE, method.ATTACKER, method.TABLE_OF_NOISE, method.LEAST]
        ),
        embedded_files=(document_file(document, "noise-certificate.json", "the certificate"), *curve_file(points)),
        verified=NOISE_VERIFIED,
        limits=NOISE_LIMITS,
    )


def _noise_cards(document: NoiseDocument) -> tuple[Card, ...]:
    mean = Card(
        "Mean absolute error",
        "E|X|",
        significant_text(document.mean_absolute_error, 4, UP),
        "How much the noise changes an answer, on average.",
    )
    worst = MISSING if document.worst_error is None else significant_text(document.worst_error, 4, UP)
    most = Card(
        "Maximum error",
        "",
        worst,
        "Unbounded." if document.worst_error is None else "The noise changes an answer by at most this.",
    )
    if document.gap is None:
        gap = "No lower bound is proven."
    elif document.gap:
        gap = f"Relative optimality gap of this noise: at most {significant_text(document.gap, 2, UP)}."
    else:
        gap = "This noise has exactly this cost: it is optimal."
    cost = COSTS.get(document.cost, escape_control_chars(document.cost))
    return (mean, most, Card("Lower bound on the cost", cost, significant_text(document.lower, 4, DOWN), gap))


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
