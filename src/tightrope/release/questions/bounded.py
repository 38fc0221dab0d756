"""How much of one person is in an answer, in words: a count of bounded rows is not a count of all rows."""

from __future__ import annotations

from tightrope.certificates.printable import printable
from tightrope.engines.request import PersonBounds
from tightrope.release.questions.tasks import Person


def rows_used(bounds: PersonBounds, person: Person, by: tuple[str, ...]) -> str:
    """The rows that an answer is made of.

    >>> rows_used(PersonBounds("tail", 12, 12, 1), Person("tail", 12, 12, 12, "an aircraft"), ())
    'rows, at most 12 of one aircraft'
    >>> rows_used(PersonBounds("id", 4, 2, 3), Person("id", 4, 2, 3), ("city",))
    'rows, at most 4 of one person, 2 of them in one group, in at most 3 groups'
    >>> rows_used(PersonBounds(None, 1, 1, 1), Person(None, 1, 1, 1), ())
    'rows, each of them one person'
    """
    if bounds.person is None:
        return f"rows, each of them one {person.noun}"
    said = [f"rows, at most {bounds.rows:,} of one {person.noun}"]
    if by and bounds.rows_per_group < bounds.rows:
        said.append(f"{bounds.rows_per_group:,} of them in one group")
    if by and bounds.groups < bounds.rows:
        said.append(f"in at most {bounds.groups:,} group{'s' if bounds.groups > 1 else ''}")
    return ", ".join(said)


def bounded_notes(bounds: PersonBounds, person: Person, by: tuple[str, ...]) -> list[str]:
    """What is left out: rows beyond the bound and of nobody; and where a bound on groups is one on the whole table."""
    if bounds.person is None:
        return []
    left_out = f"where one {person.noun} has more rows, the others are left out"
    nobody = f"rows whose {printable(bounds.person)} is NULL, or a float but no whole number below 2^53, are left out"
    said = [f"{left_out}: this speaks of the rows that count, not of the whole table", nobody]
    if not by and bounds.rows < person.rows:
        said.append(f"without groups, the whole table is one group: rows_per_group = {bounds.rows} bounds it")
    return said
