"""Group laws and where they come from: a public table of laws, the protected table itself, or private counts of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightrope.certificates.coupling import Learning, Origin
from tightrope.certificates.document import Triple
from tightrope.engines.labels import Labels, Name
from tightrope.errors import InputError
from tightrope.mechanisms.integer.discrete_laplace import discrete_laplace
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import positive
from tightrope.numerics.laws import probabilities
from tightrope.transport.guarantees.learned_laws import learn_laws_privately
from tightrope.transport.guarantees.single_draws import OneDraw
from tightrope.transport.on_tables.counting import Counts
from tightrope.transport.on_tables.supports import Categories, Support

ASKED_AT = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Where the curve of what is left is written down."""
PLAIN = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True, eq=False)
class KnownLaws:
    """``laws[group]``, shape [d], over the points of ``support``; ``kind`` and ``learning`` as in ``Origin``."""

    support: Support
    laws: Mapping[Name, Floats]
    kind: Literal["table", "public", "private"]
    learning: Learning | None = None

    def origin(self, target: str) -> Origin:
        """What a file says of them."""
        return Origin.of(self.kind, target, self.learning)


def of_counts(counts: Counts) -> KnownLaws:
    """The shares of the table's own rows, for a table that holds everybody whom the promise is about.

    Raises ``InputError`` for a group without rows.
    """
    _refuse_empty(counts)
    laws = {group: cells / int(cells.sum()) for group, cells in counts.cells.items()}
    return KnownLaws(counts.support, laws, "table")


def of_private_counts(counts: Counts, epsilon: float, *, person: str | None) -> KnownLaws:
    """The laws learned from counts with discrete Laplace noise of scale 1/ε: one person moves one count by one.

    Points and groups must be public. Raises ``InputError`` unless 1e-6 ≤ ε ≤ 40.
    """
    epsilon = positive("epsilon", epsilon, "1 is usual")
    if not 1e-6 <= epsilon <= 40:
        raise InputError("epsilon", epsilon, "between 0.000001 and 40", "1 is usual")
    learned = learn_laws_privately(dict(counts.cells), discrete_laplace(scale=1 / epsilon))
    left = _better(map(learned.one_draw, ASKED_AT))
    who = "each row" if person is None else person
    learning = Learning(epsilon=epsilon, person=who, confidence=1 - learned.failure, left=left)
    return KnownLaws(counts.support, learned.laws, "private", learning)


def _better(bounds: Iterable[OneDraw]) -> tuple[Triple, ...]:
    """Those with a smaller δ than the ones before; δ never exceeds η."""
    found: list[Triple] = []
    for one in bounds:
        delta = min(one.delta, one.total_variation)
        if not found or delta < found[-1].delta:
            found.append(Triple(epsilon=one.epsilon, delta=delta, total_variation=one.total_variation))
    return tuple(found)


def of_entries(entries: Sequence[tuple[str, str, float]], support: Support | None, column: str) -> KnownLaws:
    """Public laws from (point, group, mass), each pair once; a pair that is missing has no mass.

    ``support`` gives the points; by default they are the categories that the entries name, as values of ``column``.
    Raises ``InputError`` for masses that are no law and points that are none.

    >>> known = of_entries([("Oslo", "f", 0.5), ("Bergen", "f", 0.5), ("Oslo", "m", 1.0)], None, "city")
    >>> known.support.names, known.laws["m"].tolist()
    (('Oslo', 'Bergen'), [1.0, 0.0])
    """
    if not entries:
        raise InputError("laws", entries, "a table with at least one line", "columns point, group, mass")
    found = support or Categories(column, Labels.of(_names([point for point, _, _ in entries])))
    groups = _names([group for _, group, _ in entries])
    laws = {group: np.zeros(len(found)) for group in groups}
    places = {str(name): place for place, name in enumerate(found.names)}
    by_text, seen = {str(group): group for group in groups}, set()
    for point, group, mass in entries:
        if point not in places:
            raise InputError("point", point, f"one of {len(places)} points", "cells are numbered 0, 1, … row by row")
        if (point, group) in seen:
            raise InputError("laws", (point, group), "a point and a group only once")
        seen.add((point, group))
        laws[by_text[group]][places[point]] = mass
    checked = {group: probabilities(f"law of {group!r}", law) for group, law in laws.items()}
    return KnownLaws(found, checked, "public")


def aligned(known: KnownLaws, groups: Sequence[Name]) -> dict[Name, Floats]:
    """The laws for exactly these groups, whose names a table of laws may spell as text.

    Raises ``InputError`` where one is missing or another is there.
    """
    by_text = {str(group): law for group, law in known.laws.items()}
    if set(by_text) != {str(group) for group in groups}:
        raise InputError("groups of the laws", sorted(by_text), f"{[str(group) for group in groups]}")
    return {group: by_text[str(group)] for group in groups}


def target_law(known: KnownLaws, target: str) -> NDArray[np.float64] | None:
    """The law that ``target`` names: "barycenter" (None: the fit finds it), "uniform", or a group.

    Raises ``InputError`` for another word.
    """
    if target == "barycenter":
        return None
    if target == "uniform":
        return np.full(len(known.support), 1 / len(known.support))
    for group, law in known.laws.items():
        if str(group) == target:
            return law
    raise InputError("target", target, f"'barycenter', 'uniform' or a group, of {[*map(str, known.laws)][:20]}")


def _names(texts: Sequence[str]) -> list[Name]:
    """In order, each once; as whole numbers where all are written as such."""
    found = list(dict.fromkeys(texts))
    return [int(text) for text in found] if all(map(PLAIN.fullmatch, found)) else list(found)


def _refuse_empty(counts: Counts) -> None:
    empty = [group for group, cells in counts.cells.items() if not cells.sum() > 0]
    if empty:
        raise InputError("groups", empty, "groups with at least one row that has a value", "leave these out")
