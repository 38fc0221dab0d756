"""The page of a noise: its guarantee, its expected cost, and the lower bound on that cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.noise import NoiseDocument
from tightrope.documents.numbers import DOWN, MISSING, UP, significant_text
from tightrope.reporting.pages.account_page import FACTS_NOT_HIDDEN, Points, attack_section, curve_file
from tightrope.reporting.pages.blocks import Card, DocumentPage, Section, Table, document_file
from tightrope.reporting.wording import method

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
