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

ELSEWHERE = "median", "max", "min"
NOT_YET = 'this kind is not offered: say kind = "quantile", where q = 0.5 is the median and q = 0.99 nearly the largest'


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
    if kind not in tuple(KINDS):
        remedy = NOT_YET if kind in ELSEWHERE else nearest(kind, tuple(KINDS))
        raise PlanError(f"{place} kind", kind, f"one of {listed(tuple(KINDS))}", remedy)
    node = KINDS[kind]
    known = ("kind", *node.entries, *ENTRIES)
    for key in entry:
        if key not in known:
            raise PlanError(f"key in {place}, a {kind}", key, f"one of {listed(known)}", nearest(key, known))
    with placed(place, RENAMED):
        return node.from_entry(entry)
