"""What a dataset is: a declared name, its columns, what a person is in it, and how many of their rows count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from tightrope.documents.budget import Budget
from tightrope.errors import InputError

LONGEST_NAME = 200
REMEDY = "use the same one, or declare another dataset; what both tell about the same people adds up all the same"


@dataclass(frozen=True, slots=True)
class Identity:
    """Two tables with the same identity are one dataset, at two times: the same people are protected in both.

    ``columns`` are names and kinds, in any order. ``person`` is the column that names whose row it is, None where each
    row is one. Raises ``InputError`` for a name that is empty, too long, or cannot be printed.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    person: str | None
    means: str
    rows_per_person: int
    rows_per_group: int
    groups_per_person: int

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name) <= LONGEST_NAME and self.name.isprintable()):
            expected = f"a name of 1 to {LONGEST_NAME} letters"
            raise InputError("dataset", self.name, expected, "say dataset='visits 2026'")
        object.__setattr__(self, "columns", tuple(sorted((str(name), str(kind)) for name, kind in self.columns)))

    def to_data(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**asdict(self), "columns": [list(column) for column in self.columns]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The identity that ``to_data`` wrote."""
        return cls(**{**data, "columns": tuple((name, kind) for name, kind in data["columns"])})

    def alike(self, other: Identity) -> bool:
        """Whether both may well be one table: of the same columns, with the same one for a person."""
        return (self.columns, self.person) == (other.columns, other.person)

    def agree(self, other: Identity) -> None:
        """Raises ``InputError`` that names the first thing in which the other one differs from this, the recorded."""
        if self.columns != other.columns:
            # Which columns differ, in words; names and kinds only.
            more, less = set(other.columns) - set(self.columns), set(self.columns) - set(other.columns)
            said = [
                f"{sign}{name} ({kind})" for sign, some in (("+", more), ("-", less)) for name, kind in sorted(some)
            ]
            raise InputError("columns", ", ".join(said), "those that the ledger has for this dataset", REMEDY)
        for name in (field.name for field in fields(self)):
            mine, others = getattr(self, name), getattr(other, name)
            if mine != others:
                raise InputError(name, others, f"{mine!r}, as the ledger has it for this dataset", REMEDY)


# What is asked of a ledger: to charge one release, or to reserve a series of equal ones.

LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """One release that keeps ``kept``. Under one ``key`` a plan is charged once, however often it is tried.

    ``plan`` is the digest of all that was planned: a key cannot be used for another plan. ``recipe`` is the noise as
    data (``ledger.recipe``), from which ``check`` computes the guarantee again; empty where there is none.
    ``audience``: who sees the answers, None for everybody.
    """

    key: str
    plan: str
    kept: Budget
    recipe: str = ""
    audience: str | None = None

    def __post_init__(self) -> None:
        _check_key(self.key, LONGEST_KEY)


@dataclass(frozen=True, slots=True)
class SeriesClaim:
    """``times`` releases of one plan, declared together: all of them together keep ``kept``, composed exactly."""

    key: str
    plan: str
    kept: Budget
    times: int
    recipe: str
    audience: str | None = None

    def __post_init__(self) -> None:
        _check_key(self.key, LONGEST_KEY - len(f" {self.times}/{self.times}"))

    def dates(self) -> list[str]:
        """The keys of its releases.

        >>> SeriesClaim("monthly", "", Budget(epsilon=1, delta="1e-6"), 2, "").dates()
        ['monthly 1/2', 'monthly 2/2']
        """
        return [date_of_series(self.key, place, self.times) for place in range(1, self.times + 1)]


def date_of_series(key: str, place: int, times: int) -> str:
    """The key of one release of a series."""
    return f"{key} {place}/{times}"


def series_of_date(key: str) -> str | None:
    """The series whose release may have this key.

    >>> series_of_date("monthly 1/2"), series_of_date("March")
    ('monthly', None)
    """
    found = re.fullmatch(r"(.+) [0-9]+/[0-9]+", key)
    return None if found is None else found[1]


def _check_key(key: object, longest: int) -> None:
    if not (isinstance(key, str) and 0 < len(key) <= longest and key.isprintable()):
        raise InputError("key", key, f"a text of 1 to {longest} letters", "say key='visits, March 2026'")
