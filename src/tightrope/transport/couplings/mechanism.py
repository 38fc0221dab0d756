"""The coupling mechanism: every group's values come out with one and the same law, at the least distortion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, Self
from uuid import UUID

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, array_of
from tightrope.numerics.checks import non_negative
from tightrope.numerics.distributions import SUM_TOLERANCE
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.randomness.bits import Source
from tightrope.transport.costs.costs import Cost, CostLike, as_cost
from tightrope.transport.exact.plan import ExactPlan, Law, exact_plan, plan_within
from tightrope.transport.exact.tables import GroupTables, RowTables
from tightrope.transport.solvers.barycenter import barycenter
from tightrope.transport.solvers.optimal import coupling

# Which group each of many values is from: one name for all, or a name a value.

MembershipGroup = Any
Codes = NDArray[np.int32]


def codes(group: MembershipGroup, names: Sequence[MembershipGroup], count: int) -> Codes:
    """The place in ``names`` of the group of each of ``count`` values, shape [count].

    ``group``: one of the names, or a list or array with one for each value; a tuple is a name. Names are the same where
    Python finds them equal. Raises ``InputError`` for other names – of a list it says how many, since the group of
    a person may be what is to be hidden – and for a list of another length.

    >>> codes("b", ["a", "b"], 3).tolist(), codes(["b", "a", "b"], ["a", "b"], 3).tolist()
    ([1, 1, 1], [1, 0, 1])
    """
    if not (isinstance(group, list) or getattr(group, "ndim", 0) > 0):
        return np.broadcast_to(np.int32(_index_of(group, names)), (count,))
    # The names in an array: in one of objects where numpy would change them.
    if isinstance(group, list) and _is_changed(group):
        mixed = np.empty(len(group), dtype=object)
        mixed[:] = group
        given = mixed
    else:
        given = array_of("group", group, "one name, or a name for each value")
    if given.shape != (count,):
        shown = f"groups of shape {given.shape}"
        raise InputError("group", shown, f"one of {list(names)}, or one for each of {count} values")
    # Whether names and what came are all strings, or all whole numbers of 64 bits, as numpy holds them.
    wanted = {"U": str, "i": int}.get(given.dtype.kind)
    if wanted is None or not all(type(name) is wanted for name in names):
        comparable = False
    else:
        known = np.array(names)
        comparable = known.dtype.kind == given.dtype.kind and known.tolist() == list(
            names
        )  # numpy drops NULs at the end
    found = _searched(given, np.array(names)) if comparable else _listed(given, names)
    unknown = int(np.count_nonzero(found < 0))
    if unknown:
        expected = f"0 of {count}, each one of {list(names)}"
        raise InputError("unknown groups", unknown, expected, "leave these values out")
    return found


def _index_of(group: MembershipGroup, names: Sequence[MembershipGroup]) -> int:
    try:
        return {name: number for number, name in enumerate(names)}[group]
    except (KeyError, TypeError):
        raise InputError("group", group, f"one of {list(names)}", "fit the mechanism with its law") from None


def _is_changed(group: list[Any]) -> bool:
    """Numpy makes strings of numbers beside strings, arrays of tuples, and drops NULs at the ends of strings."""
    kinds = set(map(type, group))
    return len(kinds) > 1 or tuple in kinds or (kinds == {str} and "\0" in "".join(group))


def _listed(given: NDArray[Any], names: Sequence[MembershipGroup]) -> Codes:
    """One by one, whatever the names are; what cannot be hashed is none of them."""
    places = {name: number for number, name in enumerate(names)}
    entries = list(given) if given.dtype.kind in "Mm" else given.tolist()
    try:
        return np.array([places.get(entry, -1) for entry in entries], dtype=np.int32)
    except TypeError:
        raise InputError("group", "lists or tables", "a name for each value", "names are such as keys can be") from None


def _searched(given: NDArray[Any], known: NDArray[Any]) -> Codes:
    """All at once: where each would stand among the sorted names, and whether it is the one that stands there."""
    order = np.argsort(known)
    places = order[np.minimum(np.searchsorted(known, given, sorter=order), len(known) - 1)]
    return np.where(known[places] == given, places, -1).astype(np.int32)


# The names under which answers are remembered: what is one name, and what is none.

EQUAL_TYPES = frozenset({int, str, bytes, UUID})
"""Equal where they are the same, and only there."""
EXPECTED = "made of whole numbers, strings, bytes, UUIDs or tuples of them"
OWN_NAMES = "1, 1.0 and True are equal, NaN is not even equal to itself: give every value a name of its own"


def people(person: Any, count: int) -> list[Any]:
    """Whose value each of ``count`` values is: one name for all, or a list, tuple or array of names, shape [count].

    Names are whole numbers, strings, bytes, UUIDs or (in a list) tuples of these. Others are refused: floats, booleans
    and what is missing (None, NaN) would be one name for several people, or several names for one. Raises
    ``InputError``, which tells types and never a name.

    >>> people("Ann", 2), people([7, "7"], 2)
    (['Ann', 'Ann'], [7, '7'])
    """
    # The names of a list, tuple or array; None where `person` is one name.
    if isinstance(person, (list, tuple)):
        found = [_plain(name) for name in person]
    elif not getattr(person, "ndim", 0):
        found = None
    else:
        array: NDArray[Any] = np.asarray(person)
        found = list(array) if array.dtype.kind in "Mm" else array.tolist()
    if found is None:
        return _checked([_plain(person)]) * count
    if len(found) != count:
        raise InputError("person", f"{len(found)} people", f"one person, or one for each of {count} values")
    return _checked(found)


def _plain(name: Any) -> Any:
    """A number or string of numpy as one of Python."""
    return name.item() if isinstance(name, np.generic) else name


def _checked(found: list[Any]) -> list[Any]:
    odd = {kind for kind in map(type, found) if kind not in EQUAL_TYPES}
    if tuple in odd and all(_is_whole(name) for name in found if isinstance(name, tuple)):
        odd.remove(tuple)
    if odd:
        raise InputError("types in person", sorted(kind.__name__ for kind in odd), EXPECTED, OWN_NAMES)
    return found


def _is_whole(name: tuple[Any, ...]) -> bool:
    return all(type(part) in EQUAL_TYPES or (isinstance(part, tuple) and _is_whole(part)) for part in name)


# Couplings whose largest cost is least, and of these the one whose average is: exact, to the last unit of mass.

MOST_PAIRS = 1 << 22
"""Pairs of points up to which ties are broken; above, the table of costs and exact flows take too long."""


def worst_plan(law: Law, target: Law, cost: Cost) -> ExactPlan:
    """Of the couplings that move no mass further than the least possible largest cost r, one of least average cost.

    r is that of the laws as rationals: where roundings in them need a longer way than W_∞ in floats says, r says so.
    Above 2²² pairs of points any coupling of least r in floats, and what roundings leave over may go further.
    """
    found = coupling(law.floats, target.floats, cost, p=math.inf)
    if cost.shape[0] * cost.shape[1] > MOST_PAIRS:
        return exact_plan(found.plan, law, target)
    costs = cost.matrix()
    far = 1 + 2 * found.cost * sum(costs.shape)  # no detour within r costs as much
    near = coupling(law.floats, target.floats, np.where(costs <= found.cost, costs, far)).plan
    return plan_within(costs <= found.cost, law, target, near) or _further(law, target, costs, found.cost, near)


def _further(law: Law, target: Law, costs: Floats, radius: float, guess: Any) -> ExactPlan:
    """The same within the least level above ``radius`` that is enough for the exact laws."""
    levels = np.unique(costs[costs > radius]).tolist()
    low, high = 0, len(levels) - 1
    best = exact_plan(guess, law, target)  # what the last level is enough for
    while low <= high:
        middle = (low + high) // 2
        tried = plan_within(costs <= levels[middle], law, target, guess)
        if tried is None:
            low = middle + 1
        else:
            best, high = tried, middle - 1
    return best


# The parts of a coupling mechanism of least loss: laws, their target, a plan for each group, and its tables.

Objective = Literal["expected", "worst"]
NAMED_ORDERS = {"expected": 1.0, "worst": math.inf}
LeastLossGroup = Any


def laws_of(groups: Mapping[LeastLossGroup, ArrayLike], size: int) -> dict[LeastLossGroup, Law]:
    """Each group's law over ``size`` points. Raises ``InputError`` where one is none."""
    if not isinstance(groups, Mapping) or not groups:
        raise InputError("groups", groups, "a mapping from the name of each group to its law")
    return {group: Law.of(f"law of {group!r}", law, size) for group, law in groups.items()}


def order_of(objective: str) -> float:
    """The order p of the W_p that an objective means. Raises ``InputError`` for unknown ones."""
    if not isinstance(objective, str) or objective not in NAMED_ORDERS:
        raise InputError("objective", objective, f"one of {list(NAMED_ORDERS)}", "expected is W_1, worst is W_infinity")
    return NAMED_ORDERS[objective]


def shares_of(laws: Mapping[LeastLossGroup, Law], weights: Mapping[LeastLossGroup, float] | None) -> list[float]:
    """How much each group counts, divided by their sum."""
    if weights is None:
        return [1 / len(laws)] * len(laws)
    if not isinstance(weights, Mapping) or set(weights) != set(laws):
        raise InputError("weights", weights, f"one weight for each of {list(laws)}")
    found = [non_negative(f"weight of {group!r}", weights[group]) for group in laws]
    if not sum(found) > 0:
        raise InputError("weights", weights, "weights with a positive sum")
    return [weight / sum(found) for weight in found]


def target_of(target: Any, laws: Mapping[LeastLossGroup, Law], cost: Cost, weights: list[float]) -> Law:
    """The law that was given, or the one of least total expected cost to the groups' laws.

    Raises ``InputError`` for what is no law over the target points of ``cost``.
    """
    size = cost.shape[1]
    if target is None or (isinstance(target, str) and target == "barycenter"):
        found = np.maximum(barycenter([law.floats for law in laws.values()], cost, weights=weights).law, 0.0)
        return Law.of("barycenter", np.where(found < SUM_TOLERANCE / (1000 * size), 0.0, found), size)
    if isinstance(target, str):
        raise InputError("target", target, "a law, 'barycenter' or None")
    return Law.of("target", target, size)


def plan_of(law: Law, target: Law, cost: Cost, order: float) -> ExactPlan:
    """An optimal coupling of two laws, its marginals exact."""
    if order == 1:
        return exact_plan(coupling(law.floats, target.floats, cost).plan, law, target)
    return worst_plan(law, target, cost)


def loss_of(plan: ExactPlan, cost: Cost, order: float) -> float:
    """The mean cost of the exact plan, or its largest cost."""
    pairs = np.array(list(plan.entries), dtype=np.int64)
    costs = cost.pairs(pairs[:, 0], pairs[:, 1])
    if order != 1:
        return float(costs.max())
    return math.fsum((costs * [weight / plan.total for weight in plan.entries.values()]).tolist())


def tables_of(plan: ExactPlan, law: Law, target: Law) -> RowTables:
    """The plan's rows; a point without mass has the target itself."""
    whole = dict(enumerate(target.masses))
    return RowTables.of([row or whole for row in plan.rows(len(law))], len(target))


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
        laws, order = laws_of(groups, table.shape[0]), order_of(objective)
        common = target_of(target, laws, table, shares_of(laws, weights))
        plans = {group: plan_of(law, common, table, order) for group, law in laws.items()}
        loss = {group: loss_of(plan, table, order) for group, plan in plans.items()}
        tables = {group: tables_of(plan, laws[group], common) for group, plan in plans.items()}
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
        array = array_of("values", values, "whole numbers of shape [k]")
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            shown = f"{array.dtype} of shape {array.shape}"
            raise InputError("values", shown, "whole numbers of shape [k]", "number the points of the support from 0")
        outside = int(np.count_nonzero((array < 0) | (array >= self.tables.points)))
        if outside:
            remedy = "give the support every value that can occur, or map the others to it"
            raise InputError(f"values outside 0..{self.tables.points - 1}", outside, f"0 of {array.size}", remedy)
        places = array.astype(np.int64)
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


# How far a coupling mechanism moves the values of one group: from the tables that are drawn from.

NEGLIGIBLE_MASS = 2e-12
"""Mass that does not count: roundings of a plan of least average move as much, anywhere, and leave as much behind."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Distance of a value from its output: on average, and at most but for 2e−12 of the mass.

    ``kept``: the share of values that stay where they are, 0 where it is no more than that mass.
    """

    mean: float
    largest: float
    kept: float


def moves(mechanism: CouplingMechanism, group: Group, cost: CostLike) -> Moves:
    """E d(X, Y), the least t with P(d(X, Y) > t) ≤ 2e−12, and P(X = Y) beyond 2e−12, for X of the law of the fit.

    >>> mechanism = CouplingMechanism.fit({"a": [0.5, 0.5]}, [[0, 1], [1, 0]], target=[0.25, 0.75])
    >>> moves(mechanism, "a", [[0, 1], [1, 0]])
    Moves(mean=0.25, largest=1.0, kept=0.75)
    """
    rows, columns, shares = flows(mechanism, group)
    costs = as_cost(cost).pairs(rows, columns)
    dearest = np.argsort(-costs, kind="stable")
    beyond = costs[dearest][np.cumsum(shares[dearest]) > NEGLIGIBLE_MASS]
    kept = math.fsum(shares[rows == columns].tolist())
    stays = min(1.0, kept) if kept > NEGLIGIBLE_MASS else 0.0
    return Moves(math.fsum((costs * shares).tolist()), float(beyond[0]), stays)


def flows(
    mechanism: CouplingMechanism, group: Group
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The plan γ[x, y] = λ[x] P(y | x) as its entries: x, y and the mass, shape [k] each, by x and y."""
    entries = sparse.coo_array(mechanism.table(group))
    return entries.row.astype(np.int64), entries.col.astype(np.int64), np.asarray(entries.data)
