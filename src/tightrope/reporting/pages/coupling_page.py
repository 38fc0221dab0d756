"""The page of a coupling: how it hides the group of a value, and how far values move for that."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tightrope.documents.coupling import CategoriesPart, CouplingDocument
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, percent_text, significant_text
from tightrope.reporting.pages.account_page import Points, attack_section
from tightrope.reporting.pages.blocks import Card, DocumentPage, Section, Table, document_file
from tightrope.reporting.wording import method

MOST_POINTS, MOST_GROUPS = 25, 6
"""Distributions with more points or groups are not shown as a table."""
COUPLING_VERIFIED = (
    "For every group it computes the output distribution exactly and compares it with the target. It cannot check that "
    "values have the distributions in the document."
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
    return DocumentPage(
        kind="Coupling",
        title=f"Values independent of “{column}”",
        explained=document.explanation_parts,
        cards=(
            Card("Groups", "", f"{len(document.groups):,}", "All of them have the same output distribution."),
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
        method=method.MethodAppendix.from_statements([method.COUPLED, method.WHAT_IS_LEFT]),
        embedded_files=(document_file(document, "mechanism.json", "all weights that are sampled from"),),
        verified=COUPLING_VERIFIED,
        limits=COUPLING_LIMITS,
        secret=document.origin.kind == "table",
    )


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
    heads = (escape_control_chars(support.column), *map(escape_control_chars, document.group.names), "After")
    return (Table("Distribution of each group before, and of all groups after", heads, rows),)


def _mass_percentages(masses: Sequence[str]) -> list[str]:
    wholes = [int(mass, 16) for mass in masses]
    return [percent_text(mass / sum(wholes)) for mass in wholes]
