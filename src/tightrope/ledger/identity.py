"""The identity of a dataset, and the claims on its budget: one release, or a series of equal ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tightrope.documents.budget import Budget
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError

MAX_NAME_LENGTH = 200
MAX_KEY_LENGTH = 200
IDENTITY_REMEDY = "use the same, or declare another dataset (privacy losses about the same people add up nevertheless)"
UNIT_KEYS = {
    "column": "person",
    "means": "means",
    "max_rows": "rows_per_person",
    "max_rows_per_group": "rows_per_group",
    "max_groups": "groups_per_person",
}
"""The parts of a privacy unit by their keys in ledgers, which never change."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A dataset's declared name, columns, privacy unit and contribution bounds.

    Two tables with the same identity are one dataset at two times: the same people are protected in both.
    ``columns`` are names and kinds, in any order. ``unit`` is the privacy unit with its bounds.
    Raises ``InputError`` for a name that is empty, too long, or cannot be printed.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    unit: PrivacyUnit

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name) <= MAX_NAME_LENGTH and self.name.isprintable()):
            expected = f"a name of 1 to {MAX_NAME_LENGTH} characters"
            raise InputError("dataset", self.name, expected, "for example dataset='visits 2026'")
        object.__setattr__(self, "columns", tuple(sorted((str(name), str(kind)) for name, kind in self.columns)))

    def to_data(self) -> dict[str, Any]:
        """Return the identity as data for JSON."""
        unit = {key: getattr(self.unit, name) for name, key in UNIT_KEYS.items()}
        return {"name": self.name, "columns": [list(column) for column in self.columns], **unit}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the identity from the data of ``to_data``."""
        columns = tuple((name, kind) for name, kind in data["columns"])
        return cls(data["name"], columns, PrivacyUnit(**{name: data[key] for name, key in UNIT_KEYS.items()}))

    def is_similar_to(self, other: Identity) -> bool:
        """Return whether both may be the same table: equal columns and the same privacy unit."""
        return (self.columns, self.unit.column) == (other.columns, other.unit.column)

    def check_same_as(self, other: Identity) -> None:
        """Raise ``InputError`` with the first difference of the other identity from this recorded one."""
        if self.columns != other.columns:
            # Which columns differ, in words; names and kinds only.
            added, missing = set(other.columns) - set(self.columns), set(self.columns) - set(other.columns)
            differences = [
                f"{sign}{name} ({kind})"
                for sign, columns in (("+", added), ("-", missing))
                for name, kind in sorted(columns)
            ]
            raise InputError.from_text(
                "columns", f"the ledger has other columns for this dataset: {', '.join(differences)}; {IDENTITY_REMEDY}"
            )
        compared = [("name", self.name, other.name)]
        compared += [(name, getattr(self.unit, name), getattr(other.unit, name)) for name in UNIT_KEYS]
        for name, recorded, declared in compared:
            if recorded != declared:
                raise InputError.from_text(
                    "privacy_unit" if name == "column" else name,
                    f"{declared!r}, but the ledger has {recorded!r} for this dataset; {IDENTITY_REMEDY}",
                )


@dataclass(frozen=True, slots=True)
class Claim:
    """One release that meets the guarantee ``kept``. Under one ``key`` a plan is charged once, even if it is retried.

    ``plan`` is the digest of the whole plan: a key cannot be used for another plan. ``noise_record`` is the noise as
    data (``ledger.noise_record``), from which ``check`` computes the guarantee again; empty without noise data.
    ``audience``: who sees the answers, None if they are public. ``questions`` is the digest without the noise:
    ``plan`` also covers figures that floating-point rounding can change from one machine to another.
    """

    key: str
    plan: str
    kept: Budget
    noise_record: str = ""
    audience: str | None = None
    questions: str = ""

    def __post_init__(self) -> None:
        _check_key(self.key, MAX_KEY_LENGTH)


@dataclass(frozen=True, slots=True)
class SeriesClaim:
    """``times`` releases of one plan, declared together; composed exactly, they meet ``kept``."""

    key: str
    plan: str
    kept: Budget
    times: int
    noise_record: str
    audience: str | None = None

    def __post_init__(self) -> None:
        _check_key(self.key, MAX_KEY_LENGTH - len(f" {self.times}/{self.times}"))

    def release_keys(self) -> list[str]:
        """Return the keys of its releases.

        >>> SeriesClaim("monthly", "", Budget(epsilon=1, delta="1e-6"), 2, "").release_keys()
        ['monthly 1/2', 'monthly 2/2']
        """
        return [series_release_key(self.key, date, self.times) for date in range(1, self.times + 1)]


def series_release_key(key: str, date: int, times: int) -> str:
    """Return the key of a series' release number ``date``, from 1 on."""
    return f"{key} {date}/{times}"


def series_of_date(key: str) -> str | None:
    """Return the key of the series that a release key belongs to; None if it has another form.

    >>> series_of_date("monthly 1/2"), series_of_date("March")
    ('monthly', None)
    """
    match = re.fullmatch(r"(.+) [0-9]+/[0-9]+", key)
    return None if match is None else match[1]


def _check_key(key: object, longest: int) -> None:
    if not (isinstance(key, str) and 0 < len(key) <= longest and key.isprintable()):
        raise InputError("key", key, f"a text of 1 to {longest} characters", "for example key='visits, March 2026'")
