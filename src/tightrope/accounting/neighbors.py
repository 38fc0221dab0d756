"""Which change of the data a privacy loss speaks of."""

from __future__ import annotations

from enum import StrEnum

from tightrope.errors import InputError


class Neighbours(StrEnum):
    """Neighbouring relation. ``UNSPECIFIED``: whatever the stated sensitivity speaks of; it joins any other."""

    UNSPECIFIED = "unspecified"
    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    LOCAL = "local"

    def with_other(self, other: Neighbours) -> Neighbours:
        """The relation of a composition of two losses; raises ``InputError`` when they contradict.

        >>> Neighbours.UNSPECIFIED.with_other(Neighbours.LOCAL).value
        'local'
        """
        if other in (self, Neighbours.UNSPECIFIED):
            return self
        if self is Neighbours.UNSPECIFIED:
            return other
        raise InputError(
            "neighbours",
            other.value,
            f"{self.value!r} like the loss it is composed with",
            "losses of different neighbouring relations do not add up; restate both for the same relation",
        )

    def sampled(self, by: str, needed: Neighbours) -> Neighbours:
        """The relation of this loss run on a sample, which ``by`` draws and which speaks of ``needed``.

        Raises ``InputError`` where the loss is stated for another relation.

        >>> Neighbours.UNSPECIFIED.sampled("subset_sample", Neighbours.REPLACE_ONE).value
        'replace-one'
        """
        if self in (needed, Neighbours.UNSPECIFIED):
            return needed
        remedy = f"{by} says what a sample does for {CHANGED[needed]}; this loss speaks of {CHANGED[self]}"
        raise InputError("neighbours", self.value, f"{needed.value!r}, or {Neighbours.UNSPECIFIED.value!r}", remedy)


CHANGED = {
    Neighbours.UNSPECIFIED: "whatever its sensitivity speaks of",
    Neighbours.ADD_REMOVE: "a record that is added or removed",
    Neighbours.REPLACE_ONE: "a record that is replaced",
    Neighbours.LOCAL: "the value that one person reports",
}
"""What is changed, in words."""
