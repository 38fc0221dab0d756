"""Who a person is and how much of them counts, as a session is told: checked."""

from __future__ import annotations

import re

from tightrope.certificates.printable import A_PERSON
from tightrope.errors import InputError
from tightrope.numerics.checks import whole
from tightrope.release.questions.tasks import Person

LIMITS = ("rows_per_person", "rows_per_group", "groups_per_person")
MOST = 10**9
"""Rows and groups of a person at most: noise for more would drown any table."""
MEANS = re.compile(r"^an? [^ ].{0,60}$")


Given = str | tuple[str | None, str] | None
"""The column of a person, with what a person is where it is no human; None: each row is one."""


def person_of(given: Given, limits: tuple[int | None, int | None, int | None]) -> Person:
    """The person and their bounds, in the order of ``LIMITS``; raises ``InputError``."""
    person, means = given if isinstance(given, tuple) and len(given) == 2 else (given, A_PERSON)
    if not (isinstance(means, str) and MEANS.fullmatch(means) and means.isprintable()):
        raise InputError("person", means, "a noun with its article behind the column", "('tail', 'an aircraft')")
    rows, per_group, groups = limits
    if person is None:
        for name, value in zip(LIMITS, limits, strict=True):
            if value not in (None, 1):
                remedy = "each row is a person; or name the person column"
                raise InputError(name, value, "left out when person=None", remedy)
        return Person(None, 1, 1, 1, means)
    if not isinstance(person, str) or not person:
        raise InputError("person", person, "the name of a column, or None when each row is a person")
    if rows is None:
        remedy = "how many rows of one person may count at most?"
        raise InputError("rows_per_person", rows, "a whole number >= 1", remedy)
    rows = _bound("rows_per_person", rows)
    return Person(
        person,
        rows,
        rows if per_group is None else _bound("rows_per_group", per_group),
        rows if groups is None else _bound("groups_per_person", groups),
        means,
    )


def _bound(name: str, value: int) -> int:
    if whole(name, value) > MOST:
        raise InputError(name, "a larger one", f"at most {MOST:,}", "how many rows of one person may count at most?")
    return int(value)
