"""A fitted coupling mechanism as a document with every sampling weight, verified when read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.display import Displayed, Shown, Summary
from tightrope.documents.coupling import (
    AGAIN,
    CommonPart,
    CouplingDocument,
    GroupColumn,
    GroupPart,
    Learning,
    Origin,
    RowTable,
    read_coupling,
)
from tightrope.documents.document import Triple
from tightrope.errors import InputError, quoted_names
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_positive
from tightrope.numerics.distributions import check_probabilities
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.tables.labels import Labels, Name
from tightrope.transport.costs.costs import Cost
from tightrope.transport.couplings.mechanism import CouplingMechanism, move_statistics
from tightrope.transport.exact.plan import MAX_MISSING_MASS, ExactDistribution, exact_delta
from tightrope.transport.exact.tables import GroupTables, RowTables, quantize_weights
from tightrope.transport.guarantees.learned_distributions import learn_laws_privately
from tightrope.transport.on_tables.supports import Categories, Counts, Support, support_from_document
from tightrope.transport.solvers.barycenter import common_part_dual

TARGET_TOLERANCE = Fraction(1, 1 << 100)
"""Largest difference between an output distribution and the target at a point: 2⁻¹²⁸ for fitted mechanisms."""
LOSS_TOLERANCE = 1e-9
"""Largest difference between a stored and a recomputed loss, relative to the largest cost: from rounded masses."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SavedCoupling(Displayed):
    """A mechanism, the names of its points and groups in a table, and the origin of its distributions.

    ``group`` is the column of groups, ``metric`` the distance between the points, ``origin`` the stated one. The
    mechanism's memory of persons is not saved: it is as secret as their values.
    """

    mechanism: CouplingMechanism
    support: Support
    group: str
    metric: str
    origin: Origin

    def text_summary(self) -> Summary:
        """Return the column of groups, the metric and the size of the mechanism, without its distributions."""
        facts: list[tuple[str, Shown]] = [
            ("column of groups", self.group),
            ("metric", self.metric),
            ("distributions", self.origin.kind),
        ]
        return Summary("", [*facts, *self.mechanism.text_summary().facts])

    def to_document(self) -> CouplingDocument:
        """Return the document; ``documents.document.to_json_text`` serializes it.

        >>> from tightrope.transport.on_tables.supports import Categories
        >>> support = Categories("city", Labels.from_names(["Bergen", "Oslo"]))
        >>> mechanism = CouplingMechanism.fit({"f": [0.5, 0.5]}, support.transport_cost(), target=[0.25, 0.75])
        >>> origin = Origin.from_kind("public", "mine")
        >>> found = SavedCoupling(mechanism, support, "sex", "discrete", origin).to_document()
        >>> found.target, SavedCoupling.from_document(found).mechanism.cost_by_group
        (('1', '3'), {'f': 0.25})
        """
        mechanism = self.mechanism
        numerator, denominator = mechanism.unplanned_mass.as_integer_ratio()
        parts = []
        for name, law in mechanism.groups.items():
            # Each different table once, and the number of the table of each point.
            tables, number_by_start = mechanism.tables[name], dict[int, int]()
            rows: list[RowTable] = []
            for x, start in enumerate(tables.starts.tolist()):
                if start not in number_by_start:
                    number_by_start[start] = len(rows)
                    weights = tables.row_weights(x)
                    rows.append(RowTable(outcomes=tuple(weights), weights=_hex_texts(weights.values())))
            row_numbers = tuple(number_by_start[start] for start in tables.starts.tolist())
            part = GroupPart(
                law=_hex_texts(law.masses), loss=mechanism.cost_by_group[name], tables=tuple(rows), rows=row_numbers
            )
            parts.append(part)
        return CouplingDocument(
            document="coupling",
            version=1,
            support=self.support.document_part(self.metric),
            group=GroupColumn(column=self.group, names=tuple(mechanism.groups)),
            objective=mechanism.objective,
            target=_hex_texts(mechanism.target.masses),
            stray=(f"{numerator:x}", f"{denominator:x}"),
            groups=tuple(parts),
            origin=self.origin,
            common_part=mechanism.common_part,
        )

    @classmethod
    def from_document(cls, document: CouplingDocument) -> Self:
        """Return the mechanism in a document; its claims are recomputed from the weights.

        Raises ``InputError`` for weights that do not add up to 2¹²⁸, output distributions further than 2⁻¹⁰⁰ from the
        target, or that share less than 1 − δ with it, rows of excluded points that differ from the target, losses that
        do not match the weights, and a lower bound that the potentials do not prove.
        """
        support, metric = support_from_document(document.support), document.support.metric
        cost = support.transport_cost(metric)
        part_by_group = dict(zip(Labels.from_names(document.group.names).names, document.groups, strict=True))
        groups = {
            name: _parse_law(f"the distribution of {name!r}", part.law, len(support))
            for name, part in part_by_group.items()
        }
        target = _parse_law("target", document.target, len(support))
        tables = {name: _parse_tables(name, part, len(support)) for name, part in part_by_group.items()}
        joined = GroupTables.from_tables(tables)
        loss = {name: part.loss for name, part in part_by_group.items()}
        numerator, denominator = _parse_hex_integers(document.stray)
        if not (denominator > 0 and numerator <= denominator):
            fraction = "/".join(text[:20] for text in document.stray)
            raise InputError("stray", fraction, "a fraction of the mass, between 0 and 1", AGAIN)
        mechanism = CouplingMechanism(
            groups,
            target,
            joined,
            loss,
            document.objective,
            Fraction(numerator, denominator),
            common_part=document.common_part,
        )
        if mechanism.common_part is not None:
            check_common_part(mechanism, mechanism.common_part, cost)
        check_recomputed(mechanism, cost)
        return cls(mechanism, support, document.group.column, metric, document.origin)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the mechanism in a JSON text; raises ``InputError`` for invalid texts."""
        return cls.from_document(read_coupling(text))


def _hex_texts(numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{number:x}" for number in numbers)


def _parse_hex_integers(texts: Iterable[str]) -> tuple[int, ...]:
    return tuple(int(text, 16) for text in texts)


def _parse_law(name: str, texts: Iterable[str], size: int) -> ExactDistribution:
    masses = _parse_hex_integers(texts)
    if len(masses) != size or not sum(masses) > 0:
        raise InputError(name, f"{len(masses)} masses", f"{size} masses, not all of them 0", AGAIN)
    return ExactDistribution(masses, sum(masses))


def _parse_tables(group: Name, part: GroupPart, size: int) -> RowTables:
    """Return the tables of a group; weights must sum to 2¹²⁸ because ``RowTables`` rescales others."""
    name, tables = f"weights of {group!r}", list[dict[int, int]]()
    for table in part.tables:
        weights = _parse_hex_integers(table.weights)
        if not max(table.outcomes) < size:
            raise InputError(name, max(table.outcomes), f"for points in 0..{size - 1}", AGAIN)
        if sum(weights) != TOTAL or not min(weights) > 0:
            raise InputError(name, f"sum {sum(weights):x}", f"> 0 and {TOTAL:x} in total", AGAIN)
        tables.append(dict(zip(table.outcomes, weights, strict=True)))
    if len(part.rows) != size:
        raise InputError(f"rows of {group!r}", f"{len(part.rows)} rows", f"{size} rows, one a point", AGAIN)
    return RowTables.from_weights([tables[row] for row in part.rows], size)


def check_recomputed(mechanism: CouplingMechanism, cost: Cost) -> None:
    """Raise ``InputError`` unless output distributions, rows of excluded points and losses match the weights."""
    if not mechanism.unplanned_mass <= Fraction(MAX_MISSING_MASS):
        raise _tampered_error("stray", float(mechanism.unplanned_mass), f"at most {MAX_MISSING_MASS:g}")
    tolerance = max(TARGET_TOLERANCE, Fraction(mechanism.delta))
    for group in mechanism.groups:
        differences = [
            abs(probability - mechanism.target[y])
            for y, probability in enumerate(mechanism.exact_output_distribution(group))
        ]
        if not max(differences) <= tolerance:
            raise _tampered_error(
                f"output distribution of {group!r}",
                f"{float(max(differences)):.3g} off",
                "the target, to 2^-100 at each point",
            )
        # The output distribution does not depend on the row of a point without mass, so check that it is the target.
        law, tables = mechanism.groups[group], mechanism.tables[group]
        target_weights = quantize_weights(dict(enumerate(mechanism.target.masses)))
        checked_starts: set[int] = set()
        for x, mass in enumerate(law.masses):
            start = int(tables.starts[x])
            if not mass and start not in checked_starts and tables.row_weights(x) != target_weights:
                raise _tampered_error(f"row of point {x}, which {group!r} excludes", "another law", "the target")
            if not mass:
                checked_starts.add(start)
        distances = move_statistics(mechanism, group, cost)
        loss = distances.mean if mechanism.objective == "expected" else distances.largest
        if not abs(loss - mechanism.cost_by_group[group]) <= LOSS_TOLERANCE * cost.cost_upper_bound():
            raise _tampered_error(
                f"loss of {group!r}", mechanism.cost_by_group[group], f"{loss!r}, computed from its weights"
            )


def check_common_part(mechanism: CouplingMechanism, part: CommonPart, cost: Cost) -> None:
    """Raise ``InputError`` unless the outputs share a mass of 1 − δ, exactly, and the potentials prove ``lower``."""
    missing = 1 - mechanism.common_mass
    if not missing <= exact_delta(part.delta):
        raise _tampered_error("common part of the output laws", f"1 - {float(missing)!r}", f"at least 1 - {part.delta}")
    shares, potentials = np.array(part.weights), np.array(part.potentials)
    if not abs(math.fsum(part.weights) - 1) <= LOSS_TOLERANCE:
        raise _tampered_error("weights", part.weights, "fractions that add up to 1")
    laws = np.stack([law.float_masses for law in mechanism.groups.values()])
    cap = mechanism.target.float_masses if part.fixed_target else None
    largest = cost.cost_upper_bound() * (1 + LOSS_TOLERANCE)
    if not (potentials <= shares[:, None] * largest).all():
        raise _tampered_error("potentials", float(potentials.max()), f"at most the largest distance {largest:.6g}")
    proven = common_part_dual(laws, cost, shares, potentials, cap).lower_bound(part.delta)
    mean = math.fsum(
        share * mechanism.cost_by_group[group] for share, group in zip(part.weights, mechanism.groups, strict=True)
    )
    if not part.lower <= min(proven, mean) + LOSS_TOLERANCE * cost.cost_upper_bound():
        raise _tampered_error("lower", part.lower, f"at most {min(proven, mean)!r}, computed from its potentials")


def _tampered_error(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "the file was changed or damaged: fit again")


# Group distributions by source: a public table, the protected table itself, or private counts of it.

RECORDED_EPSILONS = (0.0, 0.1, 0.25, 0.5, 1.0)
"""Values of ε at which the guarantee of a draw is recorded."""
INTEGER_TEXT = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True, eq=False)
class KnownLaws:
    """Each group's distribution ``laws[group]``, shape [d], over the points of ``support``, and its origin.

    ``kind`` and ``learning`` are those of ``Origin``.

    ``unused_rows`` of the ``total_rows`` of a table were not used; both are 0 for other kinds.
    """

    support: Support
    laws: Mapping[Name, Floats]
    kind: Literal["table", "public", "private"]
    learning: Learning | None = None
    unused_rows: int = 0
    total_rows: int = 0

    def stated_origin(self, target: str) -> Origin:
        """Return the origin that a document states."""
        return Origin.from_kind(self.kind, target, self.learning)


def laws_from_counts(counts: Counts) -> KnownLaws:
    """Return the frequencies of the table's own rows, for a table with the complete protected population.

    Raises ``InputError`` for a group without rows.
    """
    empty = [group for group, cells in counts.cells.items() if not cells.sum() > 0]
    if empty:
        names = quoted_names(tuple(map(str, empty)))
        raise InputError.from_text("groups", f"groups without rows that have a listed value: {names}; leave them out")
    laws = {group: cells / int(cells.sum()) for group, cells in counts.cells.items()}
    return KnownLaws(counts.support, laws, "table", unused_rows=counts.unused_rows, total_rows=counts.total_rows)


def private_laws_from_counts(
    counts: Counts, epsilon: float, *, person: str | None, mechanism_delta: float = 0.0
) -> KnownLaws:
    """Return the distributions learned from counts with discrete Laplace noise of scale 1/ε.

    One person moves one count by one. Points and groups must be public. The recorded guarantees are for a coupling with
    ``mechanism_delta``. Raises ``InputError`` unless 1e-6 ≤ ε ≤ 40.
    """
    epsilon = check_positive("epsilon", epsilon, "1 is usual")
    if not 1e-6 <= epsilon <= 40:
        raise InputError("epsilon", epsilon, "between 0.000001 and 40", "1 is usual")
    learned = learn_laws_privately(dict(counts.cells), discrete_laplace(scale=1 / epsilon))
    # Record only triples with a smaller δ than the previous ones; δ is at most η.
    bounds = [learned.one_draw(recorded, mechanism_delta=mechanism_delta) for recorded in RECORDED_EPSILONS]
    triples: list[Triple] = []
    for draw in bounds:
        delta = min(draw.delta, draw.total_variation)
        if not triples or delta < triples[-1].delta:
            triples.append(Triple(epsilon=draw.epsilon, delta=delta, total_variation=draw.total_variation))
    recorded = tuple(triples)
    protected_unit = "each row" if person is None else person
    learning = Learning(epsilon=epsilon, person=protected_unit, confidence=1 - learned.failure, left=recorded)
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
        raise InputError.from_text("laws", "the table has no lines; each line has a point, a group and a mass")
    points = support or Categories(column, Labels.from_names(_parse_names([point for point, _, _ in entries])))
    groups = _parse_names([group for _, group, _ in entries])
    laws = {group: np.zeros(len(points)) for group in groups}
    index_by_text = {str(name): index for index, name in enumerate(points.point_names)}
    by_text, seen_pairs = {str(group): group for group in groups}, set()
    for point, group, mass in entries:
        if point not in index_by_text:
            text = f"is not one of the {len(index_by_text)} points; cells are numbered 0, 1, … row by row"
            raise InputError.from_text(f"point {point!r}", text)
        if (point, group) in seen_pairs:
            raise InputError.from_text(f"point {point!r} of group {group!r}", "occurs twice; list each pair only once")
        seen_pairs.add((point, group))
        laws[by_text[group]][index_by_text[point]] = mass
    checked = {group: check_probabilities(f"the distribution of {group!r}", law) for group, law in laws.items()}
    return KnownLaws(points, checked, "public")


def align_groups(known: KnownLaws, groups: Sequence[Name]) -> dict[Name, Floats]:
    """Return the distributions for exactly these groups, whose names a table may give as text.

    Raises ``InputError`` if one is missing or there is an additional one.
    """
    by_text = {str(group): law for group, law in known.laws.items()}
    if set(by_text) != {str(group) for group in groups}:
        given, expected = (quoted_names(tuple(map(str, names))) for names in (sorted(by_text), groups))
        text = f"the distributions are for the groups {given}, but the mechanism was fitted for {expected}"
        raise InputError.from_text("groups", text)
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
    groups = quoted_names(tuple(map(str, known.laws)), most=20)
    raise InputError.from_text(f"target {target!r}", f"give 'barycenter', 'uniform' or one of the groups: {groups}")


def _parse_names(texts: Sequence[str]) -> list[Name]:
    """Return distinct names in order; as integers if all are written as integers."""
    names = list(dict.fromkeys(texts))
    return [int(text) for text in names] if all(map(INTEGER_TEXT.fullmatch, names)) else list(names)
