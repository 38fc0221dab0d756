"""The identity of a dataset, and the claims on its budget: one release, or a series of equal ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from tightrope.documents.budget import Budget
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError

MAX_NAME_LENGTH = 200
MAX_KEY_LENGTH = 200
IDENTITY_REMEDY = "use the same, or declare another dataset (privacy losses about the same people add up nevertheless)"
UNIT_KIND_REMEDY = (
    "persons would be told apart in another way; declare the same type, or declare another dataset (privacy losses "
    "about the same people add up nevertheless)"
)
DEFAULT_KINDS = ("text", "other")
"""The kinds of columns without a declared type: of CSV files and folder names, and of pandas objects."""
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
    """One declaration of a dataset: its name and privacy unit, and the columns and contribution bounds of a session.

    The name and the privacy unit identify the dataset: tables that share them are one dataset, in which the same people
    are protected. ``columns`` are names and kinds, in any order; later declarations may have others. ``unit`` is the
    privacy unit with the session's bounds; later declarations may have others, too. ``untyped`` are the columns without
    a declared type, such as those of a CSV file, which are text by default. ``unit_columns`` are the columns that an
    expression as the privacy unit reads.
    Raises ``InputError`` for a name that is empty, too long, or cannot be printed.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    unit: PrivacyUnit
    untyped: tuple[str, ...] = ()
    unit_columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and 0 < len(self.name) <= MAX_NAME_LENGTH and self.name.isprintable()):
            expected = f"a name of 1 to {MAX_NAME_LENGTH} characters"
            raise InputError("dataset", self.name, expected, "for example dataset='visits 2026'")
        object.__setattr__(self, "columns", tuple(sorted((str(name), str(kind)) for name, kind in self.columns)))
        for name in ("untyped", "unit_columns"):
            object.__setattr__(self, name, tuple(sorted(getattr(self, name))))

    def to_data(self) -> dict[str, Any]:
        """Return the identity as data for JSON."""
        unit = {key: getattr(self.unit, name) for name, key in UNIT_KEYS.items()}
        columns = [list(column) for column in self.columns]
        names = {"untyped": list(self.untyped), "unit_columns": list(self.unit_columns)}
        return {"name": self.name, "columns": columns, **names, **unit}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the identity from the data of ``to_data``.

        Version 0.1 did not record which columns had no declared type, so all of its text columns count as such.
        """
        columns = tuple((name, kind) for name, kind in data["columns"])
        untyped = data.get("untyped", [name for name, kind in columns if kind in DEFAULT_KINDS])
        unit = PrivacyUnit(**{name: data[key] for name, key in UNIT_KEYS.items()})
        return cls(data["name"], columns, unit, tuple(untyped), tuple(data.get("unit_columns", ())))

    def is_similar_to(self, other: Identity) -> bool:
        """Return whether both may be the same table: columns of the same names, and the same privacy unit."""
        names, other_names = ([name for name, _ in columns] for columns in (self.columns, other.columns))
        return (names, self.unit.column) == (other_names, other.unit.column)

    def check_same_as(self, other: Identity) -> None:
        """Raise ``InputError`` if the other declaration contradicts this recorded one.

        They must have the same name and the same privacy unit, computed from columns of the same kinds: another one
        could protect less than a person. Other columns with a declared type must have the same type in both, because
        they are otherwise probably columns of different tables. Contribution bounds may differ.
        """
        compared = (
            ("dataset", self.name, other.name),
            ("privacy_unit", self.unit.column, other.unit.column),
            ("means", self.unit.means, other.unit.means),
        )
        for name, recorded, declared in compared:
            if recorded != declared:
                raise InputError.from_text(
                    name, f"{declared!r}, but the ledger has {recorded!r} for this dataset; {IDENTITY_REMEDY}"
                )
        kinds, other_kinds = dict(self.columns), dict(other.columns)
        if other.unit.column is not None:
            # The text of an expression may also be the name of a column, in one of both tables.
            for column in dict.fromkeys((other.unit.column, *other.unit_columns)):
                if kinds.get(column) != other_kinds.get(column):
                    found, recorded = other_kinds.get(column, "no column"), kinds.get(column, "no column")
                    raise InputError.from_text(
                        "privacy_unit",
                        f"{column!r}, which identifies {other.unit.means}, is {found!r}, but the ledger has "
                        f"{recorded!r} for it; {UNIT_KIND_REMEDY}",
                    )
        untyped = {*self.untyped, *other.untyped}
        for column, kind in other.columns:
            if column not in untyped and kinds.get(column, kind) != kind:
                raise InputError.from_text(
                    "columns",
                    f"the column {column!r} is {kind!r}, but the ledger has {kinds[column]!r} for it in this dataset; "
                    f"{IDENTITY_REMEDY}",
                )


@dataclass(frozen=True, slots=True)
class Claim:
    """One release that meets ``guarantee``. Under one ``key`` a plan is charged once, even if it is retried.

    ``plan`` is the digest of the whole plan: a key cannot be used for another plan. ``noise_record`` is the noise as
    data (``ledger.noise_record``), from which ``check`` computes the guarantee again; empty without noise data.
    ``audience``: who sees the answers, None if they are public. ``questions`` is the digest without the noise:
    ``plan`` also covers figures that floating-point rounding can change from one machine to another.
    ``fraction``: the fraction of the whole budget that is charged if it is not a decimal, such as 1/3; ``guarantee`` is
    rounded down from it.
    """

    key: str
    plan: str
    guarantee: Budget
    noise_record: str = ""
    audience: str | None = None
    questions: str = ""
    fraction: Fraction | None = None

    def __post_init__(self) -> None:
        _check_key(self.key, MAX_KEY_LENGTH)


@dataclass(frozen=True, slots=True)
class SeriesClaim:
    """``times`` releases of one plan, declared together; composed exactly, they meet ``guarantee``.

    ``description`` is the plan in words, with which a refusal says how another plan differs.
    """

    key: str
    plan: str
    guarantee: Budget
    times: int
    noise_record: str
    audience: str | None = None
    fraction: Fraction | None = None
    description: Mapping[str, Any] | None = None

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
