"""A fitted coupling mechanism as a document with every sampling weight, verified when read."""

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
from tightrope.numerics.checks import check_positive
from tightrope.numerics.distributions import check_probabilities
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.tables.labels import Labels, Name
from tightrope.transport.costs.costs import Cost
from tightrope.transport.couplings.mechanism import CouplingMechanism, moves
from tightrope.transport.exact.plan import MOST_MOVED, ExactDistribution
from tightrope.transport.exact.tables import GroupTables, RowTables, quantize_weights
from tightrope.transport.guarantees.learned_distributions import learn_laws_privately
from tightrope.transport.on_tables.supports import Categories, Counts, Support, support_from_document

TARGET_TOLERANCE = Fraction(1, 1 << 100)
"""Largest distance of an output distribution from the target at a point: fitted ones are within 2⁻¹²⁸ a point."""
LOSS_ERROR = 1e-9
"""Error of sums of rounded masses, relative to the largest cost."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedCoupling:
    """A mechanism, the names of its points and groups in a table, and the origin of its distributions.

    ``group`` is the column of groups, ``metric`` the distance over the points, ``origin`` as stated. The mechanism's
    memory of persons is not saved: it is as secret as their values.
    """

    mechanism: CouplingMechanism
    support: Support
    group: str
    metric: str
    origin: Origin

    def to_document(self) -> CouplingDocument:
        """Return the document; ``documents.document.to_json_text`` serializes it.

        >>> from tightrope.transport.on_tables.supports import Categories
        >>> support = Categories("city", Labels.from_names(["Bergen", "Oslo"]))
        >>> mechanism = CouplingMechanism.fit({"f": [0.5, 0.5]}, support.transport_cost(), target=[0.25, 0.75])
        >>> origin = Origin.from_kind("public", "mine")
        >>> found = SavedCoupling(mechanism, support, "sex", "discrete", origin).to_document()
        >>> found.target, SavedCoupling.from_document(found).mechanism.loss
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
            target=_hex_texts(fitted.target.masses),
            stray=(f"{above:x}", f"{below:x}"),
            groups=tuple(_group_part(fitted, name) for name in fitted.groups),
            origin=self.origin,
        )

    @classmethod
    def from_document(cls, document: CouplingDocument) -> Self:
        """Return the mechanism in a document; its claims are recomputed from the weights.

        Raises ``InputError`` for weights that do not add up to 2¹²⁸, output distributions further than 2⁻¹⁰⁰ from the
        target, rows of excluded points that differ from the target, and losses that do not match the weights.
        """
        support, metric = support_from_document(document.support), document.support.metric
        cost = support.transport_cost(metric)
        by_name = dict(zip(Labels.from_names(document.group.names).names, document.groups, strict=True))
        groups = {name: _parse_law(f"law of {name!r}", one.law, len(support)) for name, one in by_name.items()}
        target = _parse_law("target", document.target, len(support))
        tables = {name: _parse_tables(name, one, len(support)) for name, one in by_name.items()}
        joined = GroupTables.from_tables(tables)
        loss = {name: one.loss for name, one in by_name.items()}
        above, below = _parse_hex_integers(document.stray)
        if not (below > 0 and above <= below):
            fraction = "/".join(text[:20] for text in document.stray)
            raise InputError("stray", fraction, "a share of the mass", AGAIN)
        mechanism = CouplingMechanism(groups, target, joined, loss, document.objective, Fraction(above, below))
        check_recomputed(mechanism, cost)
        return cls(mechanism, support, document.group.column, metric, document.origin)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the mechanism in a JSON text; raises ``InputError`` for invalid texts."""
        return cls.from_document(read_coupling(text))


def _group_part(fitted: CouplingMechanism, name: Name) -> GroupPart:
    """Return the distribution, the loss, each different table once, and the table of each point."""
    tables, numbers = fitted.tables[name], dict[int, int]()
    rows: list[RowTable] = []
    for x, start in enumerate(tables.starts.tolist()):
        if start not in numbers:
            numbers[start] = len(rows)
            weights = tables.row_weights(x)
            rows.append(RowTable(outcomes=tuple(weights), weights=_hex_texts(weights.values())))
    return GroupPart(
        law=_hex_texts(fitted.groups[name].masses),
        loss=fitted.loss[name],
        tables=tuple(rows),
        rows=tuple(numbers[start] for start in tables.starts.tolist()),
    )


def _hex_texts(numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{number:x}" for number in numbers)


def _parse_hex_integers(texts: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(text, 16) for text in texts)


def _parse_law(name: str, texts: Iterable[str], size: int) -> ExactDistribution:
    masses = _parse_hex_integers(texts)
    if len(masses) != size or not sum(masses) > 0:
        raise InputError(name, f"{len(masses)} masses", f"{size} masses, not all of them 0", AGAIN)
    return ExactDistribution(masses, sum(masses))


def _parse_tables(group: Name, own: GroupPart, size: int) -> RowTables:
    """Return the tables of a group; weights must sum to 2¹²⁸ because ``RowTables`` rescales others."""
    name, tables = f"weights of {group!r}", list[dict[int, int]]()
    for table in own.tables:
        weights = _parse_hex_integers(table.weights)
        if not max(table.outcomes) < size:
            raise InputError(name, max(table.outcomes), f"for points in 0..{size - 1}", AGAIN)
        if sum(weights) != TOTAL or not min(weights) > 0:
            raise InputError(name, f"sum {sum(weights):x}", f"> 0 and {TOTAL:x} in total", AGAIN)
        tables.append(dict(zip(table.outcomes, weights, strict=True)))
    if len(own.rows) != size:
        raise InputError(f"rows of {group!r}", f"{len(own.rows)} rows", f"{size} rows, one a point", AGAIN)
    return RowTables.from_weights([tables[row] for row in own.rows], size)


def check_recomputed(mechanism: CouplingMechanism, cost: Cost) -> None:
    """Raise ``InputError`` unless output distributions, rows of excluded points and losses match the weights."""
    if not mechanism.stray <= Fraction(MOST_MOVED):
        raise _tampered_error("stray", float(mechanism.stray), f"at most {MOST_MOVED:g}")
    for group in mechanism.groups:
        gaps = [abs(share - mechanism.target[y]) for y, share in enumerate(mechanism.exact_output_law(group))]
        if not max(gaps) <= TARGET_TOLERANCE:
            raise _tampered_error(
                f"output law of {group!r}", f"{float(max(gaps)):.3g} off", "the target, to 2^-100 a point"
            )
        # A point without mass does not show in the output distribution; its row must not depend on it.
        law, tables = mechanism.groups[group], mechanism.tables[group]
        whole = quantize_weights(dict(enumerate(mechanism.target.masses)))
        seen: set[int] = set()
        for x, mass in enumerate(law.masses):
            start = int(tables.starts[x])
            if not mass and start not in seen and tables.row_weights(x) != whole:
                raise _tampered_error(f"row of point {x}, which {group!r} excludes", "another law", "the target")
            if not mass:
                seen.add(start)
        found = moves(mechanism, group, cost)
        loss = found.mean if mechanism.objective == "expected" else found.largest
        if not abs(loss - mechanism.loss[group]) <= LOSS_ERROR * cost.cost_upper_bound():
            raise _tampered_error(f"loss of {group!r}", mechanism.loss[group], f"{loss!r}, computed from its weights")


def _tampered_error(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "the file was changed or damaged: fit again")


# Group distributions and their sources: a public table, the protected table itself, or private counts of it.

ASKED_AT = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Values of ε at which the remaining guarantee is recorded."""
PLAIN = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True, eq=False)
class KnownLaws:
    """``laws[group]``, shape [d], over the points of ``support``; ``kind`` and ``learning`` as in ``Origin``."""

    support: Support
    laws: Mapping[Name, Floats]
    kind: Literal["table", "public", "private"]
    learning: Learning | None = None

    def stated_origin(self, target: str) -> Origin:
        """Return the origin that a document states."""
        return Origin.from_kind(self.kind, target, self.learning)


def laws_from_counts(counts: Counts) -> KnownLaws:
    """Return the frequencies of the table's own rows, for a table with the complete protected population.

    Raises ``InputError`` for a group without rows.
    """
    empty = [group for group, cells in counts.cells.items() if not cells.sum() > 0]
    if empty:
        raise InputError("groups", empty, "groups with at least one row that has a value", "leave these out")
    laws = {group: cells / int(cells.sum()) for group, cells in counts.cells.items()}
    return KnownLaws(counts.support, laws, "table")


def private_laws_from_counts(counts: Counts, epsilon: float, *, person: str | None) -> KnownLaws:
    """Return the distributions learned from counts with discrete Laplace noise of scale 1/ε.

    One person moves one count by one. Points and groups must be public. Raises ``InputError`` unless 1e-6 ≤ ε ≤ 40.
    """
    epsilon = check_positive("epsilon", epsilon, "1 is usual")
    if not 1e-6 <= epsilon <= 40:
        raise InputError("epsilon", epsilon, "between 0.000001 and 40", "1 is usual")
    learned = learn_laws_privately(dict(counts.cells), discrete_laplace(scale=1 / epsilon))
    # Only triples with a smaller δ than the previous ones; δ never exceeds η.
    bounds = map(learned.one_draw, ASKED_AT)
    found: list[Triple] = []
    for one in bounds:
        delta = min(one.delta, one.total_variation)
        if not found or delta < found[-1].delta:
            found.append(Triple(epsilon=one.epsilon, delta=delta, total_variation=one.total_variation))
    left = tuple(found)
    who = "each row" if person is None else person
    learning = Learning(epsilon=epsilon, person=who, confidence=1 - learned.failure, left=left)
    return KnownLaws(counts.support, learned.laws_by_group, "private", learning)


def laws_from_entries(entries: Sequence[tuple[str, str, float]], support: Support | None, column: str) -> KnownLaws:
    """Return public distributions from (point, group, mass), each pair once; missing pairs have mass 0.

    ``support`` gives the points; by default they are the categories that the entries name, as values of ``column``.
    Raises ``InputError`` for invalid distributions and unknown points.

    >>> known = laws_from_entries([("Oslo", "f", 0.5), ("Bergen", "f", 0.5), ("Oslo", "m", 1.0)], None, "city")
    >>> known.support.point_names, known.laws["m"].tolist()
    (('Oslo', 'Bergen'), [1.0, 0.0])
    """
    if not entries:
        raise InputError("laws", entries, "a table with at least one line", "columns point, group, mass")
    found = support or Categories(column, Labels.from_names(_parse_names([point for point, _, _ in entries])))
    groups = _parse_names([group for _, group, _ in entries])
    laws = {group: np.zeros(len(found)) for group in groups}
    places = {str(name): place for place, name in enumerate(found.point_names)}
    by_text, seen = {str(group): group for group in groups}, set()
    for point, group, mass in entries:
        if point not in places:
            raise InputError("point", point, f"one of {len(places)} points", "cells are numbered 0, 1, … row by row")
        if (point, group) in seen:
            raise InputError("laws", (point, group), "a point and a group only once")
        seen.add((point, group))
        laws[by_text[group]][places[point]] = mass
    checked = {group: check_probabilities(f"law of {group!r}", law) for group, law in laws.items()}
    return KnownLaws(found, checked, "public")


def align_groups(known: KnownLaws, groups: Sequence[Name]) -> dict[Name, Floats]:
    """Return the distributions for exactly these groups, whose names a table may give as text.

    Raises ``InputError`` if one is missing or there is an additional one.
    """
    by_text = {str(group): law for group, law in known.laws.items()}
    if set(by_text) != {str(group) for group in groups}:
        raise InputError("groups of the laws", sorted(by_text), f"{[str(group) for group in groups]}")
    return {group: by_text[str(group)] for group in groups}


def target_law(known: KnownLaws, target: str) -> NDArray[np.float64] | None:
    """Return the distribution that ``target`` names: "barycenter" (None: fitted later), "uniform", or a group.

    Raises ``InputError`` for other words.
    """
    if target == "barycenter":
        return None
    if target == "uniform":
        return np.full(len(known.support), 1 / len(known.support))
    for group, law in known.laws.items():
        if str(group) == target:
            return law
    raise InputError("target", target, f"'barycenter', 'uniform' or a group, of {[*map(str, known.laws)][:20]}")


def _parse_names(texts: Sequence[str]) -> list[Name]:
    """Return distinct names in order; as integers if all are written as integers."""
    found = list(dict.fromkeys(texts))
    return [int(text) for text in found] if all(map(PLAIN.fullmatch, found)) else list(found)
