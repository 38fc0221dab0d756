"""What a session is told beside its source, keyword by keyword."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict, Unpack

from tightrope.certificates.budget import Budget
from tightrope.engines import Lookup
from tightrope.errors import InputError, listed, nearest
from tightrope.release.stated.people import Given


class Settings(TypedDict):
    """What ``Session`` takes beside its source."""

    person: Given
    budget: Budget
    rows_per_person: NotRequired[int | None]
    rows_per_group: NotRequired[int | None]
    groups_per_person: NotRequired[int | None]
    table: NotRequired[str | None]
    types: NotRequired[Mapping[str, str] | None]
    lookup: NotRequired[Lookup | Sequence[Lookup]]


class Settled(TypedDict):
    """The same, each of them said."""

    person: Given
    budget: Budget
    rows_per_person: int | None
    rows_per_group: int | None
    groups_per_person: int | None
    table: str | None
    types: Mapping[str, str] | None
    lookup: Lookup | Sequence[Lookup]


REQUIRED: Mapping[str, tuple[str, str]] = {
    "person": ("the column that says whose row it is, or None", "say person=None only where each row is a person"),
    "budget": ("a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)"),
}
"""What has to be said: what it is, and how."""
RECORDED = frozenset({"ledger", "dataset", "limits", "audience", "note"})
"""Settings of ``Session.open`` alone."""


def settled(**said: Unpack[Settings]) -> Settled:
    """Every setting, by default as ``spelled_out`` has it.

    Raises ``InputError`` for one that is not known, one that has to be said and is not, and a budget that is none.
    """
    for name in said:
        if name not in Settled.__annotations__:
            known = tuple(Settled.__annotations__)
            remedy = "tr.Session.open charges a ledger" if name in RECORDED else nearest(name, known)
            raise InputError("setting", name, f"one of {listed(known)}", remedy)
    for name, (expected, remedy) in REQUIRED.items():
        if name not in said:
            raise InputError(name, None, f"said: {expected}", remedy)
    return spelled_out(**said)


def spelled_out(
    *,
    person: Given,
    budget: Budget,
    rows_per_person: int | None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    lookup: Lookup | Sequence[Lookup] = (),
) -> Settled:
    """Every setting, by default as it is here; raises ``InputError`` for a budget that is none."""
    if not isinstance(budget, Budget):
        raise InputError("budget", budget, "a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)")
    return {
        "person": person,
        "budget": budget,
        "rows_per_person": rows_per_person,
        "rows_per_group": rows_per_group,
        "groups_per_person": groups_per_person,
        "table": table,
        "types": types,
        "lookup": lookup,
    }


def signature(*first: str) -> inspect.Signature:
    """What ``help`` shows of a function that takes settings after these."""
    own = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in first]
    return inspect.Signature([*own, *inspect.signature(spelled_out).parameters.values()])
