"""The page of a noise: its guarantee, its expected cost, and the lower bound on that cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tightrope.documents.document import TablePart
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.noise import NoiseDocument
from tightrope.documents.numbers import DOWN, MISSING, UP, significant_text
from tightrope.reporting.pages.account_page import Points, attack_section, curve_file
from tightrope.reporting.pages.blocks import Card, DocumentPage, Section, Table, document_file
from tightrope.reporting.wording import method

MOST_ERRORS = 24
"""Errors whose probabilities are listed."""
ALL = 1 << 128
COSTS = {"absolute": "E|X|", "squared": "E X²"}
WHY = {
    "theorem": "The limit is a theorem.",
    "dual": "The limit follows from multipliers in the certificate, by additions and multiplications alone.",
    "single release": "The limit is that of a single answer, which several cannot undercut.",
}
NOISE_VERIFIED = (
    "It sums δ at every ε that was asked for, for every shift, from the weights that are drawn from, and both errors "
    "exactly; a limit with multipliers is proven again, that of several answers is not, and real-valued noise is not "
    "confirmed."
)
NOISE_LIMITS = (
    (
        "How far a person moves an answer is not seen here.",
        "Whoever computes the answer must bound it: the promise holds for that sensitivity.",
    ),
    (
        "The limit speaks of what was asked for.",
        "Noise with a weaker promise, or with another cost in mind, may be smaller.",
    ),
    (
        "What is true of everyone stays true of you.",
        "Statistics about a group can tell something about its members, in the data or not.",
    ),
    ("It speaks of these answers alone.", "Whatever else is published about the same people adds to it."),
)


def noise_view(document: NoiseDocument, points: Points, tables: Sequence[Table]) -> DocumentPage:
    """Return the contents of the page of a noise."""
    own, answers = document.guarantee, document.releases
    each = "one answer" if answers == 1 else f"each of {answers:,} answers"
    laws = (*tables, *([_probability_table(document.table)] if document.table is not None else []))
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
        title=f"Noise for {each} that a person moves by at most {significant_text(document.sensitivity)}",
        explained=document.explanation_parts,
        cards=_noise_cards(document),
        sections=(
            Section(
                "promise",
                "What was asked for, and what is kept",
                tables=(Table(caption, ("ε", "δ, asked for", "δ, kept"), rows, 0),),
            ),
            Section(
                "errors",
                "What it costs",
                (WHY[document.argument.kind],),
                (*found, ("Shape", escape_control_chars(document.shape)), ("Answers", f"{document.releases:,}")),
            ),
            *([Section("laws", "The noise, and what it is compared with", tables=laws)] if laws else []),
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
        "Error on average",
        "E|X|",
        significant_text(document.mean_absolute_error, 4, UP),
        "How far the noise moves an answer, up or down.",
    )
    worst = MISSING if document.worst_error is None else significant_text(document.worst_error, 4, UP)
    most = Card(
        "Largest error",
        "",
        worst,
        "There is no limit." if document.worst_error is None else "The noise never moves an answer by more.",
    )
    if document.gap is None:
        gap = "Nothing is proven to cost less."
    elif document.gap:
        percent = significant_text(100 * document.gap, 3, UP)
        gap = f"No noise with this promise is cheaper by more than {percent} % of the least cost."
    else:
        gap = "No noise with this promise is cheaper by more than nothing at all."
    cost = COSTS.get(document.cost, escape_control_chars(document.cost))
    return (mean, most, Card("Least possible cost", cost, significant_text(document.lower, 4, DOWN), gap))


def _probability_table(table: TablePart) -> Table:
    """Return the probabilities of the smallest errors."""
    weights = [table.center, *table.half[:MOST_ERRORS]]
    longest = max(map(int, weights))
    rows = [["0" if x == 0 else f"±{x}", significant_text(int(weight) / ALL, 6)] for x, weight in enumerate(weights)]
    bars = tuple(100 * int(weight) / longest for weight in weights)
    return Table("How likely the smallest errors are, up and down alike", ("Error", "Probability"), rows, bars=bars)
