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
            f"{self.value!r} like the loss it is added to",
            "losses of different neighbouring relations do not add up; restate both for the same relation",
        )
