"""The neighboring relation: the change of the data that a privacy loss refers to."""

from __future__ import annotations

from enum import StrEnum

from tightrope.errors import InputError


class Neighbors(StrEnum):
    """Neighboring relation. ``UNSPECIFIED``: the one that the stated sensitivity refers to; combines with any other."""

    UNSPECIFIED = "unspecified"
    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    ZERO_OUT = "zero-out"
    LOCAL = "local"

    def with_other(self, other: Neighbors) -> Neighbors:
        """Return the relation of a composition of two losses; raises ``InputError`` when they contradict.

        >>> Neighbors.UNSPECIFIED.with_other(Neighbors.LOCAL).value
        'local'
        """
        if other in (self, Neighbors.UNSPECIFIED):
            return self
        if self is Neighbors.UNSPECIFIED:
            return other
        raise InputError(
            "neighbors",
            other.value,
            f"{self.value!r} like the loss it is composed with",
            "losses of different neighboring relations do not add up; restate both for the same relation",
        )

    def common_group_size(self, size: int, other: Neighbors, other_size: int) -> int:
        """Return the number of records that change together in a composition of losses for groups of these sizes.

        A loss of unspecified neighbors and of size 1 combines with any other. Raises ``InputError`` for other sizes
        that differ.

        >>> Neighbors.UNSPECIFIED.common_group_size(1, Neighbors.ADD_REMOVE, 4)
        4
        """
        if size == other_size or (self, size) == (Neighbors.UNSPECIFIED, 1):
            return other_size
        if (other, other_size) == (Neighbors.UNSPECIFIED, 1):
            return size
        expected = f"{size} like the loss it is composed with"
        raise InputError("group size", other_size, expected, "call group with the same size for every sampled loss")

    def for_sample(self, by: str, needed: Neighbors) -> Neighbors:
        """Return the relation of this loss run on a sample drawn by ``by``, which requires the relation ``needed``.

        Raises ``InputError`` if the loss is stated for another relation.

        >>> Neighbors.UNSPECIFIED.for_sample("subset_sample", Neighbors.REPLACE_ONE).value
        'replace-one'
        """
        if self in (needed, Neighbors.UNSPECIFIED):
            return needed
        remedy = f"{by} says what a sample does for {CHANGED[needed]}; this loss speaks of {CHANGED[self]}"
        raise InputError("neighbors", self.value, f"{needed.value!r}, or {Neighbors.UNSPECIFIED.value!r}", remedy)


CHANGED = {
    Neighbors.UNSPECIFIED: "whatever its sensitivity speaks of",
    Neighbors.ADD_REMOVE: "a record that is added or removed",
    Neighbors.REPLACE_ONE: "a record that is replaced",
    Neighbors.ZERO_OUT: "a record whose contribution is set to zero",
    Neighbors.LOCAL: "the value that one person reports",
}
"""The change of the data, in words."""
