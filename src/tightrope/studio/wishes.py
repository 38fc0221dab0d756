"""What the page says, as frozen types: no key but these, and no expression anywhere."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta, field

from tightrope.certificates.budget import decimal
from tightrope.certificates.document import Counted, Part
from tightrope.certificates.reading import Reader
from tightrope.errors import InputError

WISHES = Reader("what the page says", "load the page again")
Plain = Annotated[str, Meta(min_length=1, max_length=1_000)]
Many = 200
"""So many questions, groups or columns at most."""
Said = Literal["attack_success", "total_variation", "epsilon"]
SAID: tuple[Said, ...] = ("attack_success", "total_variation", "epsilon")


class Who(Part, frozen=True, kw_only=True):
    """Who a person is: a column and the rows of one person that count, or each row; neither before it is said."""

    column: Plain | None = None
    each_row: bool = False
    rows: Counted | None = None
    rows_per_group: Counted | None = None
    groups: Counted | None = None
    means: Plain | None = None


class Promise(Part, frozen=True, kw_only=True):
    """A promise as it is said; none is said where the plan's own is kept."""

    said: Said
    value: Decimal
    delta: Decimal

    def __post_init__(self) -> None:
        decimal("value", self.value)
        decimal("delta", self.delta)

    def keeps(self, other: Promise) -> bool:
        """Whether what keeps this promise keeps the other one, because it is as strict or stricter."""
        return self.said == other.said and self.value <= other.value and self.delta <= other.delta


class Wish(Part, frozen=True, kw_only=True):
    """One question: chosen from the schema, or (``kept``) one of those of the plan that was opened, by its number."""

    kept: int | None = None
    kind: Plain | None = None
    column: Plain | None = None
    between: tuple[float, float] | None = None
    q: float | None = None
    width: float | None = None
    by: Annotated[tuple[Plain, ...], Meta(max_length=4)] = ()
    keys: Annotated[tuple[str | int | bool, ...], Meta(max_length=Many)] = ()
    weight: float | None = None


class Wishes(Part, frozen=True, kw_only=True):
    """All that the page says."""

    title: Plain | None = None
    who: Who
    promise: Promise | None = None
    share: Decimal | None = None
    questions: Annotated[tuple[Wish, ...], Meta(max_length=Many)] = ()
    types: Annotated[dict[Plain, Plain], Meta(max_length=5_000)] = field(default_factory=dict)
    expected_rows: Counted | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            decimal("share", self.share)


class Agreed(Part, frozen=True, kw_only=True):
    """That somebody read what a release spends, and wants it."""

    ticket: Plain
    agreed: bool

    def __post_init__(self) -> None:
        if not self.agreed:
            raise InputError("agreed", self.agreed, "true", "read what it spends, and agree to it")
