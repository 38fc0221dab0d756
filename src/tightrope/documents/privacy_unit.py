"""The privacy unit of a table, with the bounds on what one of them contributes, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.documents.escaping import A_PERSON, escape_control_chars, unit_noun

POPULATION = "Statistics about a population can tell something about {one}, whether {whether}."


def unit_count_text(means: str) -> str:
    """Return the name of a count of privacy units, given their noun with its article: its plural is not declared.

    >>> unit_count_text("an aircraft"), unit_count_text("a person"), unit_count_text("a patient of a clinic")
    ('aircraft count', 'number of persons', 'number of units (each a patient of a clinic)')
    """
    if means == A_PERSON:
        return "number of persons"
    noun = unit_noun(escape_control_chars(means))
    return f"number of units (each {escape_control_chars(means)})" if " " in noun else f"{noun} count"


@dataclass(frozen=True, slots=True)
class PrivacyUnit:
    """Whose presence a guarantee hides: the column that identifies them, their contribution bounds, and a noun.

    ``column`` is None if each row is one. ``means`` is the noun with its article. A bound is None where a document
    does not state it; a session declares all three. These types also hold bounds, for another purpose:

    - ``tables.request.ContributionBounds``: what one request to a database enforces, often less than a session allows.
    - ``noise.worst_split.SplitBounds``: what the accountant composes, which counts cells of groups as groups.
    - ``queries.options.QueryOptions``: the stricter bounds of one query, each optional.
    - The sections of plan files, forms and documents: what a user or a file states, not yet checked against each other.
    """

    column: str | None
    max_rows: int | None = None
    max_rows_per_group: int | None = None
    max_groups: int | None = None
    means: str = A_PERSON

    @property
    def unit_noun(self) -> str:
        """Return the noun of the privacy unit without its article."""
        return unit_noun(self.unit_label)

    @property
    def unit_label(self) -> str:
        """Return the printable noun of the privacy unit."""
        return escape_control_chars(self.means)

    @property
    def is_human(self) -> bool:
        """Return whether the privacy unit is a human."""
        return self.means == A_PERSON

    @property
    def guess_text(self) -> str:
        """Return the statement that an attacker guesses."""
        return "whether you are in the data" if self.is_human else f"whether {self.unit_label} is in the data"

    @property
    def attacker_knowledge_text(self) -> str:
        """Return the words for an attacker with any background knowledge."""
        return "you or about everyone else" if self.is_human else f"it or about every other {self.unit_noun}"

    @property
    def data_owner_text(self) -> str:
        """Return the words for the data that one of the two inputs lacks."""
        return "your data" if self.is_human else f"the data of {self.unit_label}"

    @property
    def rows_words(self) -> str:
        """Return the definition of one person's rows."""
        return (
            f"all rows with the same “{escape_control_chars(self.column)}”" if self.column else "one row of the table"
        )

    @property
    def limits_text(self) -> list[str]:
        """Return the contribution bounds in words. Digests in ledgers contain them, so that they stay the same."""
        bounds = (
            (self.max_rows, "row", ""),
            (self.max_groups, "group", ""),
            (self.max_rows_per_group, "row", " in each group"),
        )
        return [
            f"at most {limit:,} {noun if limit == 1 else noun + 's'} per {self.unit_noun}{where}"
            for limit, noun, where in bounds
            if limit
        ]

    def used_rows_text(self, *, counts_units: bool = False) -> str:
        """Return which rows of each unit an answer uses, for its title; empty if its bounds leave no rows out.

        ``max_groups`` is None for an answer without groups, or if a unit may be in all of them. ``counts_units``: the
        answer counts units, each once per group.

        >>> PrivacyUnit("tail", 60, 20, 3, "an aircraft").used_rows_text()
        'using at most 60 rows per aircraft, 20 per group, in at most 3 groups'
        >>> PrivacyUnit("id", 1).used_rows_text(), PrivacyUnit(None).used_rows_text()
        ('using at most 1 row per person', '')
        >>> PrivacyUnit("id", 4, 1, 4).used_rows_text(counts_units=True)
        'each person counts in at most 4 groups'
        """
        if not self.column or self.max_rows is None or (counts_units and self.max_groups is None):
            return ""
        groups_text = "" if self.max_groups is None else f"in at most {_counted(self.max_groups, 'group')}"
        if counts_units:
            return f"each {self.unit_noun} counts {groups_text}"
        parts = [f"using at most {_counted(self.max_rows, 'row')} per {self.unit_noun}"]
        if self.max_rows_per_group is not None and self.max_rows_per_group < self.max_rows:
            parts.append(f"{self.max_rows_per_group:,} per group")
        if self.max_groups is not None and self.max_groups < self.max_rows:
            parts.append(groups_text)
        return ", ".join(parts)

    @property
    def unit_text(self) -> str:
        """Return the definition of the privacy unit, and which people have less protection.

        >>> PrivacyUnit(None, means="a ship").unit_text
        'A ship means one row of the table; a ship with several rows has less protection.'
        >>> PrivacyUnit("id", 3).unit_text.partition("; ")[0]
        '“You” means all rows with the same “id”, of which at most 3 are used in any one answer'
        """
        subject = "“You”" if self.is_human else f"{self.unit_label[:1].upper()}{self.unit_label[1:]}"
        several = f"values of “{escape_control_chars(self.column)}”" if self.column else "rows"
        limit = (
            f", of which at most {self.max_rows:,} are used in any one answer" if self.column and self.max_rows else ""
        )
        return (
            f"{subject} means {self.rows_words}{limit}; {self.unit_label} with several {several} has less protection."
        )

    @property
    def population_text(self) -> str:
        """Return the statement that statistics can describe the privacy unit even if it is not in the data."""
        if self.is_human:
            return POPULATION.format(one="you", whether="you are in the data or not")
        return POPULATION.format(one=self.unit_label, whether="it is in the data or not")


def _counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 row", "20 rows"."""
    return f"{number:,} {noun}{'s' if number > 1 else ''}"
