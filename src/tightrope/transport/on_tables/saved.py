"""A fitted coupling mechanism as a document that holds every weight it draws from, and is checked when read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from tightrope.certificates.coupling import (
    AGAIN,
    CouplingDocument,
    GroupColumn,
    GroupPart,
    Origin,
    RowTable,
    read_coupling,
)
from tightrope.engines.labels import Labels, Name
from tightrope.errors import InputError
from tightrope.randomness.choice import TOTAL
from tightrope.transport.costs.costs import Cost
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism
from tightrope.transport.couplings.displacement import moves
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.exact_plan import MOST_MOVED
from tightrope.transport.exact.group_tables import GroupTables
from tightrope.transport.exact.row_tables import RowTables, quantised
from tightrope.transport.on_tables.supports import Support, support_of

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
            support=self.support.part(self.metric),
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
    def read(cls, text: str) -> Self:
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
        _check_output(mechanism, group)
        _check_excluded(mechanism, group)
        _check_loss(mechanism, group, cost)


def _check_output(mechanism: CouplingMechanism, group: Name) -> None:
    gaps = [abs(share - mechanism.target[y]) for y, share in enumerate(mechanism.exact_output_law(group))]
    if not max(gaps) <= TARGET_TOLERANCE:
        raise _tampered(f"output law of {group!r}", f"{float(max(gaps)):.3g} off", "the target, to 2^-100 a point")


def _check_excluded(mechanism: CouplingMechanism, group: Name) -> None:
    """A point without mass does not show in the output law; its row must say nothing about it."""
    law, tables = mechanism.groups[group], mechanism.tables[group]
    whole = quantised(dict(enumerate(mechanism.target.masses)))
    seen: set[int] = set()
    for x, mass in enumerate(law.masses):
        start = int(tables.starts[x])
        if not mass and start not in seen and tables.weights(x) != whole:
            raise _tampered(f"row of point {x}, which {group!r} excludes", "another law", "the target")
        if not mass:
            seen.add(start)


def _check_loss(mechanism: CouplingMechanism, group: Name, cost: Cost) -> None:
    found = moves(mechanism, group, cost)
    loss = found.mean if mechanism.objective == "expected" else found.largest
    if not abs(loss - mechanism.loss[group]) <= LOSS_ERROR * cost.ceiling():
        raise _tampered(f"loss of {group!r}", mechanism.loss[group], f"{loss!r}, that of its weights")


def _tampered(name: str, value: object, expected: str) -> InputError:
    return InputError(name, value, expected, "the file was changed or damaged: fit again")
