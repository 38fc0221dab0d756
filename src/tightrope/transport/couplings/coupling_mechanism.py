"""The coupling mechanism: every group's values come out with one and the same law, at the least distortion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, array_of
from tightrope.randomness.choice import TOTAL
from tightrope.randomness.source import Source
from tightrope.transport.costs.costs import CostLike, as_cost
from tightrope.transport.couplings import least_loss
from tightrope.transport.couplings.least_loss import Objective
from tightrope.transport.couplings.membership import Codes, codes
from tightrope.transport.couplings.person_names import people
from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.group_tables import GroupTables
from tightrope.transport.exact.row_tables import RowTables

Group = Any


@dataclass(frozen=True, slots=True, eq=False)
class CouplingMechanism:
    """x ↦ y with probability γ_s[x, y] / λ_s[x] for a value x of group s (KM Def. 16, theory §6).

    γ_s couples the group's law λ_s with one target μ, so the output has law μ whatever the group: exactly so where
    λ_s is the law that values really have. ``approximate_knowledge`` says what is left where it is only near.
    A value that its group's law excludes is replaced by a draw from μ: that says nothing about it.

    **One value, one draw.** Two draws for one value x show two samples of γ_s[x, ·], and that law does depend on x and
    s (theory §6: k draws can reveal the group but for 2^{1−k}). Pass ``person`` to repeat the first draw instead: it
    is remembered in ``memory``, in this object and nowhere else, and is as secret as the values.

    **Two values, two draws.** Memory is for copies of one recorded value. Where a person has several – visits,
    purchases – name each, ``("Ann", 3)``: two that agree by chance need two draws, since how often values agree tells
    the law (``docs/proofs/transport.md``).
    """

    groups: dict[Group, Law]
    target: Law
    tables: GroupTables
    loss: dict[Group, float]
    objective: Objective
    stray: Fraction
    memory: dict[tuple[Any, int], int] = field(default_factory=dict, repr=False)

    @classmethod
    def fit(
        cls,
        groups: Mapping[Group, ArrayLike],
        cost: CostLike,
        *,
        target: ArrayLike | Literal["barycenter"] | None = None,
        objective: Objective = "expected",
        weights: Mapping[Group, float] | None = None,
    ) -> Self:
        """The mechanism of least loss: W_1 (``objective="expected"``) or W_∞ (``"worst"``) of each law to the target.

        ``groups``: the law of each group over the source points of ``cost``, shape [n]. ``target``: a law over its
        target points, shape [m]; by default, or as "barycenter", the one of least total expected cost, where group s
        counts ``weights[s]`` times (alike by default). Laws learned from protected data must have been learned
        privately (``learn_laws_privately``): the tables, the target and the losses say what they are.

        Raises ``InputError`` for laws that are none, unequal sizes, unknown objectives, and weights that do not fit.

        >>> distances = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
        >>> laws = {"a": [0.5, 0.5, 0.0], "b": [0.0, 0.5, 0.5]}
        >>> mechanism = CouplingMechanism.fit(laws, distances, target=[0.25, 0.5, 0.25])
        >>> mechanism.loss["a"], mechanism.output_law("a").tolist()
        (0.5, [0.25, 0.5, 0.25])
        """
        table = as_cost(cost)
        laws, order = least_loss.laws_of(groups, table.shape[0]), least_loss.order_of(objective)
        common = least_loss.target_of(target, laws, table, least_loss.shares_of(laws, weights))
        plans = {group: least_loss.plan_of(law, common, table, order) for group, law in laws.items()}
        loss = {group: least_loss.loss_of(plan, table, order) for group, plan in plans.items()}
        tables = {group: least_loss.tables_of(plan, laws[group], common) for group, plan in plans.items()}
        stray = max(plan.stray for plan in plans.values())
        return cls(laws, common, GroupTables.of(tables), loss, objective, stray)

    def apply(
        self,
        values: ArrayLike,
        group: Group,
        *,
        person: Any = None,
        randomness: Source | None = None,
    ) -> Integers:
        """A target point for each of ``values`` (numbers of source points, shape [k]).

        ``group``: the group of all, or a list or array with the group of each, shape [k]. ``person``: whose value each
        is, a list or array of shape [k], or one for all (see ``person_names``). A (person, value) seen before gets what
        it got then, whatever the group said now; without it every entry is a fresh draw, for one release only. The
        memory grows by an entry for each new one.
        Raises ``InputError`` for unknown groups, values that are not in 0..n − 1 and names that are none; it says how
        many, or of which type.

        >>> coin = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [1.0, 0.0]}, [[0, 1], [1, 0]], target=[0.5, 0.5])
        >>> len(set(coin.apply([1] * 50, "a", person="Ann").tolist()))
        1
        >>> coin.apply([0, 1, 1], ["b", "a", "a"]).shape
        (3,)
        """
        places = _places(values, self.tables.points)
        members = codes(group, list(self.tables), len(places))
        if person is None:
            return self.tables.draw(members, places, randomness)
        keys = list(zip(people(person, len(places)), places.tolist(), strict=True))
        return self._remembered(keys, places, members, randomness)

    def _remembered(
        self, keys: list[tuple[Any, int]], places: Integers, members: Codes, randomness: Source | None
    ) -> Integers:
        """A draw for each key that is new, at its first place; of two threads, the first to remember is right."""
        firsts: dict[tuple[Any, int], int] = {}
        for place, key in enumerate(keys):
            if key not in self.memory:
                firsts.setdefault(key, place)
        new = np.array(list(firsts.values()), dtype=np.int64)
        drawn = self.tables.draw(members[new], places[new], randomness)
        for key, outcome in zip(firsts, drawn.tolist(), strict=True):
            self.memory.setdefault(key, outcome)
        return np.array([self.memory[key] for key in keys], dtype=np.int64)

    def exact_output_law(self, group: Group, actual_law: ArrayLike | Law | None = None) -> list[Fraction]:
        """P(output = y) in rationals, from the tables that are drawn from; shape [m].

        Values have ``actual_law``, by default the law that the group was fitted with.
        """
        tables = self._table(group)
        if actual_law is None:
            law = self.groups[group]
        else:
            law = actual_law if isinstance(actual_law, Law) else Law.of("actual_law", actual_law, len(tables))
        totals = [0] * tables.outcomes
        for x in law.support.tolist():
            for y, weight in tables.weights(x).items():
                totals[y] += law.masses[x] * weight
        return [Fraction(total, law.total * TOTAL) for total in totals]

    def output_law(self, group: Group, actual_law: ArrayLike | Law | None = None) -> Floats:
        """``exact_output_law``, each probability correctly rounded; shape [m]."""
        return np.array([float(share) for share in self.exact_output_law(group, actual_law)])

    def table(self, group: Group) -> sparse.csr_array:
        """The plan γ_s[x, y] = λ_s[x] P(y | x) of the tables that are drawn from, shape [n, m]."""
        tables, law = self._table(group), self.groups[group]
        entries = [
            (x, y, float(law[x] * Fraction(weight, TOTAL)))
            for x in law.support.tolist()
            for y, weight in tables.weights(x).items()
        ]
        rows, columns, masses = zip(*entries, strict=True)
        return sparse.csr_array((masses, (rows, columns)), shape=(len(tables), tables.outcomes))

    @property
    def target_error(self) -> Fraction:
        """The largest |P(output = y) − μ[y]| over groups and points, exactly: the rounding to 2⁻¹²⁸ a row."""
        gaps = (
            abs(share - self.target[y]) for group in self.groups for y, share in enumerate(self.exact_output_law(group))
        )
        return max(gaps)

    def _table(self, group: Group) -> RowTables:
        try:
            return self.tables[group]
        except (KeyError, TypeError):
            raise InputError("group", group, f"one of {list(self.tables)}", "fit the mechanism with its law") from None


def _places(values: ArrayLike, size: int) -> Integers:
    array = array_of("values", values, "whole numbers of shape [k]")
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        shown = f"{array.dtype} of shape {array.shape}"
        raise InputError("values", shown, "whole numbers of shape [k]", "number the points of the support from 0")
    outside = int(np.count_nonzero((array < 0) | (array >= size)))
    if outside:
        remedy = "give the support every value that can occur, or map the others to it"
        raise InputError(f"values outside 0..{size - 1}", outside, f"0 of {array.size}", remedy)
    return array.astype(np.int64)
