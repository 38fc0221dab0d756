"""The identity of a dataset: a declared name, its columns, the privacy unit, and its contribution bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from tightrope.documents.budget import Budget
from tightrope.errors import InputError

LONGEST_NAME = 200
REMEDY = "use the same, or declare another dataset (privacy losses about the same people add up nevertheless)"


_KEYS = {
    "privacy_unit": "person",
    "max_rows": "rows_per_person",
    "max_groups": "groups_per_person",
    "max_rows_per_group": "rows_per_group",
}
"""The keys in ledgers, which are kept forever, of fields that have another name in Python."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Two tables with the same identity are one dataset, at two times: the same people are protected in both.

    ``columns`` are names and kinds, in any order. ``privacy_unit`` is the column that names whose row it is, None where
    each row is one. Raises ``InputError`` for a name that is empty, too long, or cannot be printed.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    privacy_unit: str | None
    means: str
    max_rows: int
    max_rows_per_group: int
    max_groups: int

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name) <= LONGEST_NAME and self.name.isprintable()):
            expected = f"a name of 1 to {LONGEST_NAME} characters"
            raise InputError("dataset", self.name, expected, "for example dataset='visits 2026'")
        object.__setattr__(self, "columns", tuple(sorted((str(name), str(kind)) for name, kind in self.columns)))

    def to_data(self) -> dict[str, Any]:
        """Return the identity as data for JSON."""
        data = {_KEYS.get(name, name): value for name, value in asdict(self).items()}
        return {**data, "columns": [list(column) for column in self.columns]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The identity that ``to_data`` wrote."""
        names = {key: name for name, key in _KEYS.items()}
        columns = tuple((name, kind) for name, kind in data["columns"])
        return cls(**{**{names.get(key, key): value for key, value in data.items()}, "columns": columns})

    def is_similar_to(self, other: Identity) -> bool:
        """Return whether both may be the same table: equal columns, with the same column for a person."""
        return (self.columns, self.privacy_unit) == (other.columns, other.privacy_unit)

    def check_same_as(self, other: Identity) -> None:
        """Raise ``InputError`` with the first difference of the other identity from this recorded one."""
        if self.columns != other.columns:
            # Which columns differ, in words; names and kinds only.
            more, less = set(other.columns) - set(self.columns), set(self.columns) - set(other.columns)
            said = [
                f"{sign}{name} ({kind})" for sign, some in (("+", more), ("-", less)) for name, kind in sorted(some)
            ]
            raise InputError.from_text(
                "columns", f"the ledger has other columns for this dataset: {', '.join(said)}; {REMEDY}"
            )
        for name in (field.name for field in fields(self)):
            mine, others = getattr(self, name), getattr(other, name)
            if mine != others:
                raise InputError.from_text(name, f"{others!r}, but the ledger has {mine!r} for this dataset; {REMEDY}")


# What is asked of a ledger: to charge one release, or to reserve a series of equal ones.

LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class Claim:
    """One release that keeps ``kept``. Under one ``key`` a plan is charged once, even if it is retried.

    ``plan`` is the digest of the whole plan: a key cannot be used for another plan. ``recipe`` is the noise as
    data (``ledger.noise_record``), from which ``check`` computes the guarantee again; empty without noise data.
    ``audience``: who sees the answers, None for everybody. ``questions`` is the digest of the plan without its noise:
    ``plan`` also covers figures that floating-point rounding can change from one machine to another.
    """

    key: str
    plan: str
    kept: Budget
    recipe: str = ""
    audience: str | None = None
    questions: str = ""

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

    def release_keys(self) -> list[str]:
        """The keys of its releases.

        >>> SeriesClaim("monthly", "", Budget(epsilon=1, delta="1e-6"), 2, "").release_keys()
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
        raise InputError("key", key, f"a text of 1 to {longest} characters", "for example key='visits, March 2026'")
