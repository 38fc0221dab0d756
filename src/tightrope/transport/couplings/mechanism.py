"""The coupling mechanism: outputs of every group have the same distribution, at the smallest distortion."""

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
from tightrope.transport.exact.plan import ExactDistribution, ExactPlan, exact_plan, plan_within
from tightrope.transport.exact.tables import GroupTables, RowTables
from tightrope.transport.solvers.barycenter import barycenter
from tightrope.transport.solvers.optimal import coupling

# Groups of many values: one name for all, or one name a value.

MembershipGroup = Any
Codes = NDArray[np.int32]


def encode_groups(group: MembershipGroup, names: Sequence[MembershipGroup], count: int) -> Codes:
    """Return the index in ``names`` of the group of each of ``count`` values, shape [count].

    ``group``: one of the names, or a list or array with one for each value; a tuple is a name. Names are compared with
    Python's equality. Raises ``InputError`` for other names – for a list it reports only how many, since the group of a
    person may be secret – and for a list of another length.

    >>> encode_groups("b", ["a", "b"], 3).tolist(), encode_groups(["b", "a", "b"], ["a", "b"], 3).tolist()
    ([1, 1, 1], [1, 0, 1])
    """
    if not (isinstance(group, list) or getattr(group, "ndim", 0) > 0):
        try:
            number = {name: number for number, name in enumerate(names)}[group]
        except (KeyError, TypeError):
            raise InputError("group", group, f"one of {list(names)}", "fit the mechanism with its law") from None
        return np.broadcast_to(np.int32(number), (count,))
    # An object array if numpy would change the names: it turns numbers next to strings into strings and tuples into
    # arrays, and drops NULs at the end of strings.
    kinds = set(map(type, group)) if isinstance(group, list) else set()
    if len(kinds) > 1 or tuple in kinds or (kinds == {str} and "\0" in "".join(group)):
        mixed = np.empty(len(group), dtype=object)
        mixed[:] = group
        given = mixed
    else:
        given = array_of("group", group, "one name, or a name for each value")
    if given.shape != (count,):
        shown = f"groups of shape {given.shape}"
        raise InputError("group", shown, f"one of {list(names)}, or one for each of {count} values")
    found = _encode_array(given, names)
    unknown = int(np.count_nonzero(found < 0))
    if unknown:
        expected = f"0 of {count}, each one of {list(names)}"
        raise InputError("unknown groups", unknown, expected, "leave these values out")
    return found


def _encode_array(given: NDArray[Any], names: Sequence[MembershipGroup]) -> Codes:
    """Return the index of each entry among the names, −1 for others; ``InputError`` for entries without a hash."""
    # Names and values can be compared by numpy if all are strings, or all are 64-bit integers: binary search.
    kind = {"U": str, "i": int}.get(given.dtype.kind)
    if kind is not None and all(type(name) is kind for name in names):
        known = np.array(names)
        if known.dtype.kind == given.dtype.kind and known.tolist() == list(names):  # numpy drops NULs at the end
            order = np.argsort(known)
            nearest = order[np.minimum(np.searchsorted(known, given, sorter=order), len(known) - 1)]
            return np.where(known[nearest] == given, nearest, -1).astype(np.int32)
    places = {name: number for number, name in enumerate(names)}
    entries = list(given) if given.dtype.kind in "Mm" else given.tolist()
    try:
        return np.array([places.get(entry, -1) for entry in entries], dtype=np.int32)
    except TypeError:
        raise InputError("group", "lists or tables", "a name for each value", "names must be hashable") from None


# Names under which draws are remembered: valid and invalid ones.

EQUAL_TYPES = frozenset({int, str, bytes, UUID})
"""Types whose values are equal only if they are the same."""
EXPECTED = "made of whole numbers, strings, bytes, UUIDs or tuples of them"
OWN_NAMES = "1, 1.0 and True are equal, NaN is not even equal to itself: give every value a name of its own"


def person_names(person: Any, count: int) -> list[Any]:
    """Return the person of each of ``count`` values: one name for all, or a list, tuple or array, shape [count].

    Names are integers, strings, bytes, UUIDs or (in a list) tuples of these. Others are refused: floats, booleans and
    missing values (None, NaN) could be one name for several people, or several names for one. Raises ``InputError``,
    which reports types and never a name.

    >>> person_names("Ann", 2), person_names([7, "7"], 2)
    (['Ann', 'Ann'], [7, '7'])
    """
    # The names of a list, tuple or array; None if `person` is one name.
    if isinstance(person, (list, tuple)):
        found = [_to_python_scalar(name) for name in person]
    elif not getattr(person, "ndim", 0):
        found = None
    else:
        array: NDArray[Any] = np.asarray(person)
        found = list(array) if array.dtype.kind in "Mm" else array.tolist()
    if found is None:
        return _check_names([_to_python_scalar(person)]) * count
    if len(found) != count:
        raise InputError("person", f"{len(found)} people", f"one person, or one for each of {count} values")
    return _check_names(found)


def _to_python_scalar(name: Any) -> Any:
    """Return a NumPy scalar as a Python object."""
    return name.item() if isinstance(name, np.generic) else name


def _check_names(found: list[Any]) -> list[Any]:
    odd = {kind for kind in map(type, found) if kind not in EQUAL_TYPES}
    if tuple in odd and all(_is_whole(name) for name in found if isinstance(name, tuple)):
        odd.remove(tuple)
    if odd:
        raise InputError("types in person", sorted(kind.__name__ for kind in odd), EXPECTED, OWN_NAMES)
    return found


def _is_whole(name: tuple[Any, ...]) -> bool:
    return all(type(part) in EQUAL_TYPES or (isinstance(part, tuple) and _is_whole(part)) for part in name)


# Couplings with the smallest maximum cost, and among them the smallest mean cost: exact, to the last unit of mass.

MOST_PAIRS = 1 << 22
"""Number of pairs of points up to which ties are broken; beyond, the table of costs and exact flows take too long."""


def bottleneck_plan(law: ExactDistribution, target: ExactDistribution, cost: Cost) -> ExactPlan:
    """Return the coupling of least mean cost among those with the least possible maximum cost r.

    r refers to the distributions as rationals, so it can exceed W_∞ computed in floats by what rounding requires. Above
    2²² pairs of points: any coupling of least r in floats, and the rounding remainder may move further.
    """
    found = coupling(law.float_masses, target.float_masses, cost, p=math.inf)
    if cost.matrix_shape[0] * cost.matrix_shape[1] > MOST_PAIRS:
        return exact_plan(found.plan, law, target)
    costs = cost.to_matrix()
    far = 1 + 2 * found.cost * sum(costs.shape)  # no detour within r costs as much
    near = coupling(law.float_masses, target.float_masses, np.where(costs <= found.cost, costs, far)).plan
    plan = plan_within(costs <= found.cost, law, target, near)
    if plan is not None:
        return plan
    # The smallest cost above r that suffices for the exact distributions.
    levels = np.unique(costs[costs > found.cost]).tolist()
    low, high = 0, len(levels) - 1
    best = exact_plan(near, law, target)  # feasible at the last level
    while low <= high:
        middle = (low + high) // 2
        tried = plan_within(costs <= levels[middle], law, target, near)
        if tried is None:
            low = middle + 1
        else:
            best, high = tried, middle - 1
    return best


# The parts of an optimal coupling mechanism: distributions, their target, a plan for each group, and its tables.

Objective = Literal["expected", "worst"]
NAMED_ORDERS = {"expected": 1.0, "worst": math.inf}
LeastLossGroup = Any


def parse_group_laws(groups: Mapping[LeastLossGroup, ArrayLike], size: int) -> dict[LeastLossGroup, ExactDistribution]:
    """Return each group's distribution over ``size`` points. Raises ``InputError`` for invalid ones."""
    if not isinstance(groups, Mapping) or not groups:
        raise InputError("groups", groups, "a mapping from the name of each group to its law")
    return {
        group: ExactDistribution.from_probabilities(f"law of {group!r}", law, size) for group, law in groups.items()
    }


def wasserstein_order(objective: str) -> float:
    """Return the order p of the W_p for an objective. Raises ``InputError`` for unknown ones."""
    if not isinstance(objective, str) or objective not in NAMED_ORDERS:
        raise InputError("objective", objective, f"one of {list(NAMED_ORDERS)}", "expected is W_1, worst is W_infinity")
    return NAMED_ORDERS[objective]


def normalize_group_weights(
    laws: Mapping[LeastLossGroup, ExactDistribution], weights: Mapping[LeastLossGroup, float] | None
) -> list[float]:
    """Return the weight of each group, divided by their sum."""
    if weights is None:
        return [1 / len(laws)] * len(laws)
    if not isinstance(weights, Mapping) or set(weights) != set(laws):
        raise InputError("weights", weights, f"one weight for each of {list(laws)}")
    found = [non_negative(f"weight of {group!r}", weights[group]) for group in laws]
    if not sum(found) > 0:
        raise InputError("weights", weights, "weights with a positive sum")
    return [weight / sum(found) for weight in found]


def resolve_target(
    target: Any, laws: Mapping[LeastLossGroup, ExactDistribution], cost: Cost, weights: list[float]
) -> ExactDistribution:
    """Return the given distribution, or the one with the least total expected cost to the groups' distributions.

    Raises ``InputError`` unless it is a distribution over the target points of ``cost``.
    """
    size = cost.matrix_shape[1]
    if target is None or (isinstance(target, str) and target == "barycenter"):
        found = np.maximum(barycenter([law.float_masses for law in laws.values()], cost, weights=weights).law, 0.0)
        return ExactDistribution.from_probabilities(
            "barycenter", np.where(found < SUM_TOLERANCE / (1000 * size), 0.0, found), size
        )
    if isinstance(target, str):
        raise InputError("target", target, "a law, 'barycenter' or None")
    return ExactDistribution.from_probabilities("target", target, size)


def optimal_plan(law: ExactDistribution, target: ExactDistribution, cost: Cost, order: float) -> ExactPlan:
    """Return an optimal coupling of two distributions with exact marginals."""
    if order == 1:
        return exact_plan(coupling(law.float_masses, target.float_masses, cost).plan, law, target)
    return bottleneck_plan(law, target, cost)


def plan_loss(plan: ExactPlan, cost: Cost, order: float) -> float:
    """Return the mean cost of the exact plan, or its maximum cost."""
    pairs = np.array(list(plan.entries), dtype=np.int64)
    costs = cost.pair_costs(pairs[:, 0], pairs[:, 1])
    if order != 1:
        return float(costs.max())
    return math.fsum((costs * [weight / plan.total for weight in plan.entries.values()]).tolist())


def plan_tables(plan: ExactPlan, law: ExactDistribution, target: ExactDistribution) -> RowTables:
    """Return the rows of the plan; a point without mass gets the target distribution."""
    whole = dict(enumerate(target.masses))
    return RowTables.from_weights([row or whole for row in plan.weights_by_source(len(law))], len(target))


Group = Any


@dataclass(frozen=True, slots=True, eq=False)
class CouplingMechanism:
    """The map x ↦ y with probability γ_s[x, y] / λ_s[x] for a value x of group s (KM Def. 16, theory §6).

    γ_s couples the group's distribution λ_s with one target μ, so the output has distribution μ for every group:
    exactly if values really have distribution λ_s; see ``approximate_knowledge`` if λ_s is only close. A value that its
    group's distribution excludes is replaced by an independent draw from μ.

    **One value, one draw.** Two draws for one value x show two samples of γ_s[x, ·], which does depend on x and s
    (theory §6: the total variation of k draws can be 1 − 2^{1−k}). Pass ``person`` to repeat the first draw instead: it
    is stored only in ``memory`` of this object, and is as secret as the values.

    **Two values, two draws.** Memory is for copies of one recorded value. If a person has several – visits, purchases –
    name each, ``("Ann", 3)``: two that agree by chance need two draws, since the frequency of agreement depends on the
    distribution (``docs/proofs/transport.md``).
    """

    groups: dict[Group, ExactDistribution]
    target: ExactDistribution
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
        """Return the mechanism of least loss: W_1 (``objective="expected"``) or W_∞ (``"worst"``) to the target.

        ``groups``: the distribution of each group over the source points of ``cost``, shape [n]. ``target``: a
        distribution over its target points, shape [m]; by default, or as "barycenter", the one of least total expected
        cost, with ``weights[s]`` for group s (equal by default). Distributions learned from protected data must have
        been learned privately (``learn_laws_privately``): the tables, the target and the losses reveal them.

        Raises ``InputError`` for invalid distributions, unequal sizes, unknown objectives, and weights that do not
        match.

        >>> distances = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
        >>> laws = {"a": [0.5, 0.5, 0.0], "b": [0.0, 0.5, 0.5]}
        >>> mechanism = CouplingMechanism.fit(laws, distances, target=[0.25, 0.5, 0.25])
        >>> mechanism.loss["a"], mechanism.output_law("a").tolist()
        (0.5, [0.25, 0.5, 0.25])
        """
        table = as_cost(cost)
        laws, order = parse_group_laws(groups, table.matrix_shape[0]), wasserstein_order(objective)
        common = resolve_target(target, laws, table, normalize_group_weights(laws, weights))
        plans = {group: optimal_plan(law, common, table, order) for group, law in laws.items()}
        loss = {group: plan_loss(plan, table, order) for group, plan in plans.items()}
        tables = {group: plan_tables(plan, laws[group], common) for group, plan in plans.items()}
        stray = max(plan.stray for plan in plans.values())
        return cls(laws, common, GroupTables.from_tables(tables), loss, objective, stray)

    def apply(
        self,
        values: ArrayLike,
        group: Group,
        *,
        person: Any = None,
        randomness: Source | None = None,
    ) -> Integers:
        """Return a target point for each of ``values`` (indices of source points, shape [k]).

        ``group``: the group of all, or a list or array with the group of each, shape [k]. ``person``: the person of
        each value, a list or array of shape [k], or one for all (see ``person_names``). A (person, value) seen before
        gets the same output as before, for any group; without it every entry is a fresh draw, for one release only. The
        memory grows by an entry for each new one. Raises ``InputError`` for unknown groups, values that are not in 0..n
        − 1 and invalid names; it reports how many, or of which type.

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
        members = encode_groups(group, list(self.tables), len(places))
        if person is None:
            return self.tables.draw_outcomes(members, places, randomness)
        keys = list(zip(person_names(person, len(places)), places.tolist(), strict=True))
        return self._draw_with_memory(keys, places, members, randomness)

    def _draw_with_memory(
        self, keys: list[tuple[Any, int]], places: Integers, members: Codes, randomness: Source | None
    ) -> Integers:
        """Draw for each new key, at its first index; of two threads, the first to store a draw wins."""
        firsts: dict[tuple[Any, int], int] = {}
        for place, key in enumerate(keys):
            if key not in self.memory:
                firsts.setdefault(key, place)
        new = np.array(list(firsts.values()), dtype=np.int64)
        drawn = self.tables.draw_outcomes(members[new], places[new], randomness)
        for key, outcome in zip(firsts, drawn.tolist(), strict=True):
            self.memory.setdefault(key, outcome)
        return np.array([self.memory[key] for key in keys], dtype=np.int64)

    def exact_output_law(self, group: Group, actual_law: ArrayLike | ExactDistribution | None = None) -> list[Fraction]:
        """Return P(output = y) in rationals, from the actual sampling tables; shape [m].

        Values have ``actual_law``, by default the group's fitted distribution.
        """
        tables = self._group_table(group)
        if actual_law is None:
            law = self.groups[group]
        else:
            law = (
                actual_law
                if isinstance(actual_law, ExactDistribution)
                else ExactDistribution.from_probabilities("actual_law", actual_law, len(tables))
            )
        totals = [0] * tables.outcomes
        for x in law.support_points.tolist():
            for y, weight in tables.row_weights(x).items():
                totals[y] += law.masses[x] * weight
        return [Fraction(total, law.total * TOTAL) for total in totals]

    def output_law(self, group: Group, actual_law: ArrayLike | ExactDistribution | None = None) -> Floats:
        """Return ``exact_output_law``, each probability correctly rounded; shape [m]."""
        return np.array([float(share) for share in self.exact_output_law(group, actual_law)])

    def plan_matrix(self, group: Group) -> sparse.csr_array:
        """Return the plan γ_s[x, y] = λ_s[x] P(y | x) of the actual sampling tables, shape [n, m]."""
        tables, law = self._group_table(group), self.groups[group]
        entries = [
            (x, y, float(law[x] * Fraction(weight, TOTAL)))
            for x in law.support_points.tolist()
            for y, weight in tables.row_weights(x).items()
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

    def _group_table(self, group: Group) -> RowTables:
        try:
            return self.tables[group]
        except (KeyError, TypeError):
            raise InputError("group", group, f"one of {list(self.tables)}", "fit the mechanism with its law") from None


# Distances by which a coupling mechanism moves the values of one group: from the actual sampling tables.

NEGLIGIBLE_MASS = 2e-12
"""Mass that is ignored: roundings of a plan of least mean cost move and leave behind up to this much."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Distance of a value from its output: on average, and at most with probability 1 − 2e−12.

    ``kept``: the fraction of values that stay at their point, 0 if it is at most that mass.
    """

    mean: float
    largest: float
    kept: float


def moves(mechanism: CouplingMechanism, group: Group, cost: CostLike) -> Moves:
    """Return E d(X, Y), the least t with P(d(X, Y) > t) ≤ 2e−12, and P(X = Y) beyond 2e−12, for X as fitted.

    >>> mechanism = CouplingMechanism.fit({"a": [0.5, 0.5]}, [[0, 1], [1, 0]], target=[0.25, 0.75])
    >>> moves(mechanism, "a", [[0, 1], [1, 0]])
    Moves(mean=0.25, largest=1.0, kept=0.75)
    """
    rows, columns, shares = plan_entries(mechanism, group)
    costs = as_cost(cost).pair_costs(rows, columns)
    dearest = np.argsort(-costs, kind="stable")
    beyond = costs[dearest][np.cumsum(shares[dearest]) > NEGLIGIBLE_MASS]
    kept = math.fsum(shares[rows == columns].tolist())
    stays = min(1.0, kept) if kept > NEGLIGIBLE_MASS else 0.0
    return Moves(math.fsum((costs * shares).tolist()), float(beyond[0]), stays)


def plan_entries(
    mechanism: CouplingMechanism, group: Group
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the entries of the plan γ[x, y] = λ[x] P(y | x): x, y and the mass, shape [k] each, by x and y."""
    entries = sparse.coo_array(mechanism.plan_matrix(group))
    return entries.row.astype(np.int64), entries.col.astype(np.int64), np.asarray(entries.data)
