"""All that a plan file says, read key by key: misspelled keys and values of the wrong type are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from tightrope.certificates.document import Counted, Part
from tightrope.certificates.places import placed
from tightrope.certificates.reading import tip
from tightrope.errors import PlanError, listed, nearest
from tightrope.release.documents.sections import (
    BudgetSection,
    LedgerSection,
    LookupSection,
    PersonSection,
    SourceSection,
    Text,
)
from tightrope.release.kinds import KINDS
from tightrope.release.questions.asked import ENTRIES, RENAMED
from tightrope.release.questions.node import Question

ELSEWHERE = "max", "min"
NOT_YET = 'this kind is not offered: say kind = "quantile", where q = 0.5 is the median and q = 0.99 nearly the largest'
MEDIAN = "median"
"""A quantile without ``q``."""
OTHER_SHARE = 'another share than a half is asked for with kind = "quantile"'


class PlanDocument(Part, frozen=True, kw_only=True):
    """All that a plan file says. The entries of a question are those of its kind (``release.questions``)."""

    document: Literal["plan"] = "plan"
    version: Literal[1] = 1
    title: Text | None = None
    description: Text | None = None
    origin: Text | None = None
    publisher: Text | None = None
    date: Text | None = None
    contact: Text | None = None
    expected_rows: Counted | None = None
    where: Annotated[Text, tip('say where = "distance > 500"')] | None = None
    source: SourceSection
    person: PersonSection
    budget: BudgetSection
    lookup: tuple[LookupSection, ...] = ()
    ledger: LedgerSection = LedgerSection()
    question: Annotated[
        tuple[dict[str, Any], ...], Meta(min_length=1), tip("write [[question]] with double brackets, once or more")
    ]

    def __post_init__(self) -> None:
        self.questions()

    def questions(self) -> tuple[Question, ...]:
        """What is asked; raises ``InputError`` that names the question."""
        return tuple(_question(f"question {number}", entry) for number, entry in enumerate(self.question, start=1))


def _question(place: str, entry: Mapping[str, Any]) -> Question:
    kind = entry.get("kind")
    kinds = (*KINDS, MEDIAN)
    if kind not in kinds:
        remedy = NOT_YET if kind in ELSEWHERE else nearest(kind, kinds)
        raise PlanError(f"{place} kind", kind, f"one of {listed(kinds)}", remedy)
    node = KINDS["quantile" if kind == MEDIAN else kind]
    known = ("kind", *(key for key in node.entries if (kind, key) != (MEDIAN, "q")), *ENTRIES)
    for key in entry:
        if key not in known:
            remedy = OTHER_SHARE if (kind, key) == (MEDIAN, "q") else nearest(key, known)
            raise PlanError(f"key in {place}, a {kind}", key, f"one of {listed(known)}", remedy)
    with placed(place, RENAMED):
        return node.from_entry(entry)
