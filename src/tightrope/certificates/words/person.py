"""Who is protected, in words: a reader of the page where a person is a human, else what a person is."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.certificates.printable import A_PERSON, noun, printable


@dataclass(frozen=True, slots=True)
class Protected:
    """What a person is, the column that names them (empty: each row is one), and how much of one counts, at most."""

    means: str = A_PERSON
    column: str = ""
    rows: int | None = None
    groups: int | None = None
    rows_per_group: int | None = None

    @property
    def noun(self) -> str:
        """What a person is, without its article."""
        return noun(self.shown)

    @property
    def shown(self) -> str:
        """What a person is, as it may be shown."""
        return printable(self.means)

    @property
    def human(self) -> bool:
        """Whether a reader may be one."""
        return self.means == A_PERSON

    @property
    def guess(self) -> str:
        """What an attacker guesses."""
        return "whether you are in the data" if self.human else f"whether {self.shown} is in the data"

    @property
    def about(self) -> str:
        """Whatever an attacker may know."""
        return "you or about everyone else" if self.human else f"it or about every other {self.noun}"

    @property
    def data(self) -> str:
        """Whose data makes the difference."""
        return "your data" if self.human else f"the data of {self.shown}"

    @property
    def rows_words(self) -> str:
        """Which rows are one person's."""
        return f"all rows with the same “{printable(self.column)}”" if self.column else "one row of the table"

    @property
    def limits(self) -> list[str]:
        """How much of one person can enter the answers."""
        named = ((self.rows, "row", ""), (self.groups, "group", ""), (self.rows_per_group, "row", " in each group"))
        return [f"at most {_counted(limit, unit)} {self.shown}{where}" for limit, unit, where in named if limit]

    @property
    def words(self) -> str:
        """What a person is here, and who is protected less.

        >>> Protected(means="a ship").words
        'A ship is one row of the table; one that has several rows is protected less.'
        >>> Protected(column="id", rows=3).words.partition("; ")[0]
        '“You” are all rows with the same “id”, of which at most 3 enter any one answer'
        """
        who = "“You” are" if self.human else f"{self.shown[:1].upper()}{self.shown[1:]} is"
        several = f"stands under several values of “{printable(self.column)}”" if self.column else "has several rows"
        entering = f", of which at most {self.rows:,} enter any one answer" if self.column and self.rows else ""
        less = f"{'who' if self.human else 'one that'} {several} is protected less"
        return f"{who} {self.rows_words}{entering}; {less}."


def _counted(limit: int, unit: str) -> str:
    return f"{limit:,} {unit if limit == 1 else unit + 's'}"
