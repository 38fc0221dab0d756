"""A fitted coupling mechanism as a document that holds every weight it draws from, and is checked when read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.documents.coupling import (
    AGAIN,
    CouplingDocument,
    GroupColumn,
    GroupPart,
    Learning,
    Origin,
    RowTable,
    read_coupling,
)
from tightrope.documents.document import Triple
from tightrope.errors import InputError
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import positive
from tightrope.numerics.distributions import probabilities
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.tables.labels import Labels, Name
from tightrope.transport.costs.costs import Cost
from tightrope.transport.couplings.mechanism import CouplingMechanism, moves
from tightrope.transport.exact.plan import MOST_MOVED, Law
from tightrope.transport.exact.tables import GroupTables, RowTables, quantised
from tightrope.transport.guarantees.learned_distributions import learn_laws_privately
from tightrope.transport.on_tables.supports import Categories, Counts, Support, support_of

TARGET_TOLERANCE = Fraction(1, 1 << 100)
"""How far an output law may be from the target at a point: fitted ones are within 2⁻¹²⁸ a point of the support."""
LOSS_ERROR = 1e-9
"""Relative to the largest cost: what sums of rounded masses may be off."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedCoupling:
    """A mechanism, what its points and groups are called in a table, and where its laws came from.

    ``group`` is the column of groups, ``metric`` the distance over the points, ``origin`` is what was stated. What
    the mechanism remembers of persons is not saved: it is as secret as their values.
    """

    mechanism: CouplingMechanism
    support: Support
    group: str
    metric: str
    origin: Origin

    def document(self) -> CouplingDocument:
        """All of it as a document; ``certificates.document.written`` makes text of it.

        >>> from tightrope.transport.on_tables.supports import Categories
        >>> support = Categories("city", Labels.of(["Bergen", "Oslo"]))
        >>> mechanism = CouplingMechanism.fit({"f": [0.5, 0.5]}, support.cost(), target=[0.25, 0.75])
        >>> found = SavedCoupling(mechanism, support, "sex", "discrete", Origin.of("public", "mine")).document()
        >>> found.target, SavedCoupling.of(found).mechanism.loss
        (('1', '3'), {'f': 0.25})
        """
        fitted = self.mechanism
        above, below = fitted.stray.as_integer_ratio()
        return CouplingDocument(
            document="coupling",
            version=1,
            support=self.support.document_part(self.metric),
            group=GroupColumn(column=self.group, names=tuple(fitted.groups)),
            objective=fitted.objective,
            target=_texts(fitted.target.masses),
            stray=(f"{above:x}", f"{below:x}"),
            groups=tuple(_group(fitted, name) for name in fitted.groups),
            origin=self.origin,
        )

    @classmethod
    def of(cls, document: CouplingDocument) -> Self:
        """The mechanism in a document; what it says of itself is recomputed from the weights.

        Raises ``InputError`` for weights that do not add up to 2¹²⁸, output laws further than 2⁻¹⁰⁰ from the target,
        rows of excluded points that are not the target, and losses that are not those of the weights.
        """
        support, metric = support_of(document.support), document.support.metric
        cost = support.cost(metric)
        by_name = dict(zip(Labels.of(document.group.names).names, document.groups, strict=True))
        mechanism = CouplingMechanism(
            groups={name: _law(f"law of {name!r}", one.law, len(support)) for name, one in by_name.items()},
            target=_law("target", document.target, len(support)),
            tables=GroupTables.of({name: _tables(name, one, len(support)) for name, one in by_name.items()}),
            loss={name: one.loss for name, one in by_name.items()},
            objective=document.objective,
            stray=_stray(*document.stray),
        )
        check(mechanism, cost)
        return cls(mechanism, support, document.group.column, metric, document.origin)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """``of`` the document in a JSON text; raises ``InputError`` for what is none, too."""
        return cls.of(read_coupling(text))


def _group(fitted: CouplingMechanism, name: Name) -> GroupPart:
    """The law, the loss, each different table once, and which table each point uses."""
    tables, numbers = fitted.tables[name], dict[int, int]()
    rows: list[RowTable] = []
    for x, start in enumerate(tables.starts.tolist()):
        if start not in numbers:
            numbers[start] = len(rows)
            weights = tables.weights(x)
            rows.append(RowTable(outcomes=tuple(weights), weights=_texts(weights.values())))
    return GroupPart(
        law=_texts(fitted.groups[name].masses),
        loss=fitted.loss[name],
        tables=tuple(rows),
        rows=tuple(numbers[start] for start in tables.starts.tolist()),
    )


def _texts(numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{number:x}" for number in numbers)


def _wholes(texts: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(text, 16) for text in texts)


def _law(name: str, texts: Iterable[str], size: int) -> Law:
    masses = _wholes(texts)
    if len(masses) != size or not sum(masses) > 0:
        raise InputError(name, f"{len(masses)} masses", f"{size} masses, not all of them 0", AGAIN)
    return Law(masses, sum(masses))


def _stray(above: str, below: str) -> Fraction:
    part, whole = _wholes((above, below))
    if not (whole > 0 and part <= whole):
        raise InputError("stray", f"{above[:20]}/{below[:20]}", "a share of the mass", AGAIN)
    return Fraction(part, whole)


def _tables(group: Name, own: GroupPart, size: int) -> RowTables:
    weights = [_weights(f"weights of {group!r}", table, size) for table in own.tables]
    if len(own.rows) != size:
        raise InputError(f"rows of {group!r}", f"{len(own.rows)} rows", f"{size} rows, one a point", AGAIN)
    return RowTables.of([weights[row] for row in own.rows], size)


def _weights(name: str, table: RowTable, size: int) -> dict[int, int]:
    """The weights of one table: ``RowTables`` would scale others to 2¹²⁸, so they must add up to it."""
    weights = _wholes(table.weights)
    if not max(table.outcomes) < size:
        raise InputError(name, max(table.outcomes), f"for points in 0..{size - 1}", AGAIN)
    if sum(weights) != TOTAL or not min(weights) > 0:
        raise InputError(name, f"sum {sum(weights):x}", f"> 0 and {TOTAL:x} in total", AGAIN)
    return dict(zip(table.outcomes, weights, strict=True))


def check(mechanism: CouplingMechanism, cost: Cost) -> None:
    """Raise ``InputError`` unless output laws, rows of excluded points and losses are what a fit would have made."""
    if not mechanism.stray <= Fraction(MOST_MOVED):
        raise _tampered("stray", float(mechanism.stray), f"at most {MOST_MOVED:g}")
    for group in mechanism.groups:
        gaps = [abs(share - mechanism.target[y]) for y, share in enumerate(mechanism.exact_output_law(group))]
        if not max(gaps) <= TARGET_TOLERANCE:
            raise _tampered(f"output law of {group!r}", f"{float(max(gaps)):.3g} off", "the target, to 2^-100 a point")
        # A point without mass does not show in the output law; its row must say nothing about it.
        law, tables = mechanism.groups[group], mechanism.tables[group]
        whole = quantised(dict(enumerate(mechanism.target.masses)))
        seen: set[int] = set()
        for x, mass in enumerate(law.masses):
            start = int(tables.starts[x])
            if not mass and start not in seen and tables.weights(x) != whole:
                raise _tampered(f"row of point {x}, which {group!r} excludes", "another law", "the target")
            if not mass:
                seen.add(start)
        found = moves(mechanism, group, cost)
        loss = found.mean if mechanism.objective == "expected" else found.largest
        if not abs(loss - mechanism.loss[group]) <= LOSS_ERROR * cost.ceiling():
            raise _tampered(f"loss of {group!r}", mechanism.loss[group], f"{loss!r}, that of its weights")


def _tampered(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "the file was changed or damaged: fit again")


# Group laws and where they come from: a public table of laws, the protected table itself, or private counts of it.

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
    empty = [group for group, cells in counts.cells.items() if not cells.sum() > 0]
    if empty:
        raise InputError("groups", empty, "groups with at least one row that has a value", "leave these out")
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
    # Those with a smaller δ than the ones before; δ never exceeds η.
    bounds = map(learned.one_draw, ASKED_AT)
    found: list[Triple] = []
    for one in bounds:
        delta = min(one.delta, one.total_variation)
        if not found or delta < found[-1].delta:
            found.append(Triple(epsilon=one.epsilon, delta=delta, total_variation=one.total_variation))
    left = tuple(found)
    who = "each row" if person is None else person
    learning = Learning(epsilon=epsilon, person=who, confidence=1 - learned.failure, left=left)
    return KnownLaws(counts.support, learned.laws, "private", learning)


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
