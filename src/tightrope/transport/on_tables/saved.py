"""A fitted coupling mechanism as inert data: JSON that holds every weight it draws from, and is checked when read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from tightrope.engines.axis_cells import Axis
from tightrope.engines.labels import Labels, Name
from tightrope.errors import InputError
from tightrope.randomness.choice import TOTAL
from tightrope.transport.couplings.coupling_mechanism import CouplingMechanism
from tightrope.transport.couplings.least_loss import NAMED_ORDERS
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.group_tables import GroupTables
from tightrope.transport.exact.row_tables import RowTables
from tightrope.transport.on_tables.provenance import Origin
from tightrope.transport.on_tables.saved_checks import check
from tightrope.transport.on_tables.saved_fields import AGAIN, Fields, hexadecimal, parsed
from tightrope.transport.on_tables.supports import Categories, Cells, Support

FORMAT, VERSION = "tightrope coupling", 1


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

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON; whole numbers are hexadecimal text, so that no reader rounds them.

        >>> support = Categories("city", Labels.of(["Bergen", "Oslo"]))
        >>> mechanism = CouplingMechanism.fit({"f": [0.5, 0.5]}, support.cost(), target=[0.25, 0.75])
        >>> data = SavedCoupling(mechanism, support, "sex", "discrete", Origin("public", "mine")).to_data()
        >>> data["target"], SavedCoupling.of(data).mechanism.loss
        (['1', '3'], {'f': 0.25})
        """
        fitted = self.mechanism
        return {
            "format": FORMAT,
            "version": VERSION,
            "support": {**self.support.to_data(), "metric": self.metric},
            "group": {"column": self.group, "names": list(fitted.groups)},
            "objective": fitted.objective,
            "target": _texts(fitted.target.masses),
            "stray": _texts(fitted.stray.as_integer_ratio()),
            "groups": [_group_data(fitted, name) for name in fitted.groups],
            "origin": self.origin.to_data(),
        }

    @classmethod
    def of(cls, data: Any) -> Self:
        """The mechanism in ``to_data``; what it says of itself is recomputed from the weights.

        Raises ``InputError`` for another format or version, data that are malformed, weights that do not add up to
        2¹²⁸, output laws further than 2⁻¹⁰⁰ from the target, rows of excluded points that are not the target, and
        losses that are not those of the weights.
        """
        top = Fields.of("the file", data)
        _known_version(top)
        support, metric = _support(top.inner("support"))
        group, target = top.inner("group"), _law(top, "target", len(support))
        names, cost = _labels(group, "names"), support.cost(metric)
        found = [Fields.of(f"groups[{place}]", one) for place, one in enumerate(_entries(top, "groups"))]
        if len(found) != len(names):
            raise InputError("groups", len(found), f"one for each of {len(names)} names", AGAIN)
        by_name = dict(zip(names.names, found, strict=True))
        mechanism = CouplingMechanism(
            groups={name: _law(one, "law", len(support)) for name, one in by_name.items()},
            target=target,
            tables=GroupTables.of({name: _tables(one, len(support)) for name, one in by_name.items()}),
            loss={name: one.number("loss") for name, one in by_name.items()},
            objective=_objective(top),
            stray=_stray(top),
        )
        check(mechanism, cost)
        return cls(mechanism, support, group.text("column"), metric, Origin.of(top.inner("origin")))

    @classmethod
    def read(cls, text: str) -> Self:
        """``of`` the data in a JSON text."""
        return cls.of(parsed(text, "the file"))


def _group_data(fitted: CouplingMechanism, name: Name) -> dict[str, Any]:
    """The law, the loss, each different table once, and which table each point uses."""
    tables, numbers = fitted.tables[name], dict[int, int]()
    rows: list[dict[str, Any]] = []
    for x, start in enumerate(tables.starts.tolist()):
        if start not in numbers:
            numbers[start] = len(rows)
            weights = tables.weights(x)
            rows.append({"outcomes": list(weights), "weights": _texts(weights.values())})
    return {
        "law": _texts(fitted.groups[name].masses),
        "loss": fitted.loss[name],
        "tables": rows,
        "rows": [numbers[start] for start in tables.starts.tolist()],
    }


def _texts(numbers: Any) -> list[str]:
    return [hexadecimal(number) for number in numbers]


def _known_version(top: Fields) -> None:
    if top.entries.get("format") != FORMAT:
        raise top.wrong("format", repr(FORMAT), "this is not a file of 'tightrope couple fit'")
    if top.whole("version") != VERSION:
        raise top.wrong("version", str(VERSION), "read it with the version of Tightrope that wrote it, or fit again")


def _support(own: Fields) -> tuple[Support, str]:
    kind, metric = own.text("kind"), own.text("metric")
    if kind == "categories":
        return Categories(own.text("column"), _labels(own, "names")), metric
    if kind != "cells":
        raise own.wrong("kind", "'categories' or 'cells'")
    axes = [Fields.of(f"support axes[{place}]", one) for place, one in enumerate(_entries(own, "axes"))]
    return Cells(tuple(map(_axis, axes))), metric


def _axis(own: Fields) -> Axis:
    return Axis(own.text("column"), own.number("lower"), own.number("upper"), own.whole("cells"))


def _labels(own: Fields, key: str) -> Labels:
    return Labels.of(own.listed(key, lambda name: isinstance(name, (str, int)), "names"))


def _entries(own: Fields, key: str) -> list[Any]:
    return own.listed(key, lambda one: isinstance(one, Mapping), "tables")


def _objective(top: Fields) -> Any:
    objective = top.text("objective")
    if objective not in NAMED_ORDERS:
        raise top.wrong("objective", f"one of {list(NAMED_ORDERS)}")
    return objective


def _law(own: Fields, key: str, size: int) -> Law:
    masses = tuple(own.wholes(key))
    if len(masses) != size or not sum(masses) > 0:
        raise InputError(f"{own.place} {key}", f"{len(masses)} masses", f"{size} masses, not all of them 0", AGAIN)
    return Law(masses, sum(masses))


def _stray(top: Fields) -> Fraction:
    parts = top.wholes("stray")
    if len(parts) != 2 or not parts[1] > 0 or not parts[0] <= parts[1]:
        raise top.wrong("stray", "a share of the mass")
    return Fraction(*parts)


def _tables(own: Fields, size: int) -> RowTables:
    tables = [Fields.of(f"{own.place} tables[{place}]", one) for place, one in enumerate(_entries(own, "tables"))]
    weights = [_weights(one, size) for one in tables]
    rows = own.places("rows", len(weights))
    if len(rows) != size:
        raise InputError(f"{own.place} rows", f"{len(rows)} rows", f"{size} rows, one a point", AGAIN)
    return RowTables.of([weights[row] for row in rows], size)


def _weights(own: Fields, size: int) -> dict[int, int]:
    """The weights of one table: ``RowTables`` would scale others to 2¹²⁸, so they must add up to it."""
    outcomes, weights = own.places("outcomes", size), own.wholes("weights")
    if len(outcomes) != len(weights) or len(set(outcomes)) != len(outcomes):
        raise InputError(f"{own.place} outcomes", len(outcomes), f"{len(weights)} different ones", AGAIN)
    if sum(weights) != TOTAL or not min(weights) > 0:
        raise InputError(f"{own.place} weights", f"sum {sum(weights):x}", f"> 0 and {TOTAL:x} in total", AGAIN)
    return dict(zip(outcomes, weights, strict=True))
