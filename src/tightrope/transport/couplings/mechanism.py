"""The coupling mechanism: outputs of every group have the same distribution, at the smallest distortion.

1. Groups of many values (``encode_groups``).
2. Persons whose draws are remembered (``person_names``).
3. Couplings that minimize the maximum cost (``bottleneck_plan``).
4. The parts of a mechanism: target, output distributions, plan and tables.
5. The mechanism (``CouplingMechanism``).
6. The distances by which it moves values (``move_statistics``).
"""

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

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.coupling import CommonPart
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, numeric_array
from tightrope.numerics.checks import check_non_negative, check_probability
from tightrope.numerics.distributions import SUM_TOLERANCE
from tightrope.numerics.root_finding import bisect_integer
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.randomness.bits import Source
from tightrope.transport.costs.costs import Cost, CostLike, as_cost
from tightrope.transport.exact.plan import (
    ExactDistribution,
    ExactPlan,
    coupling_plan_within,
    distributions_with_common_part,
    exact_plan,
)
from tightrope.transport.exact.tables import GroupTables, RowTables
from tightrope.transport.solvers.barycenter import barycenter, partial_barycenter
from tightrope.transport.solvers.optimal import coupling, coupling_of_tiny_cost

# 1. Groups of many values: one name for all, or one name for each value.

GroupName = Any
Codes = NDArray[np.int32]


def encode_groups(group: GroupName, names: Sequence[GroupName], count: int) -> Codes:
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
            raise InputError("group", group, f"one of {list(names)}", "fit it with this group, too") from None
        return np.broadcast_to(np.int32(number), (count,))
    # An object array if numpy would change the names: it turns numbers next to strings into strings and tuples into
    # arrays, and drops NULs at the end of strings.
    types = set(map(type, group)) if isinstance(group, list) else set()
    if len(types) > 1 or tuple in types or (types == {str} and "\0" in "".join(group)):
        objects = np.empty(len(group), dtype=object)
        objects[:] = group
        given = objects
    else:
        given = numeric_array("group", group, "one name, or a name for each value")
    if given.shape != (count,):
        shown = f"groups of shape {given.shape}"
        raise InputError("group", shown, f"one of {list(names)}, or one for each of {count} values")
    codes = _encode_array(given, names)
    unknown = int(np.count_nonzero(codes < 0))
    if unknown:
        expected = f"0 of {count}, each one of {list(names)}"
        raise InputError("unknown groups", unknown, expected, "leave these values out")
    return codes


def _encode_array(given: NDArray[Any], names: Sequence[GroupName]) -> Codes:
    """Return the index of each entry among the names, −1 for others; ``InputError`` for entries without a hash."""
    # Names and values can be compared by numpy if all are strings, or all are 64-bit integers: binary search.
    common_type = {"U": str, "i": int}.get(given.dtype.kind)
    if common_type is not None and all(type(name) is common_type for name in names):
        known_names = np.array(names)
        if known_names.dtype.kind == given.dtype.kind and known_names.tolist() == list(
            names
        ):  # numpy drops NULs at the end
            order = np.argsort(known_names)
            nearest = order[np.minimum(np.searchsorted(known_names, given, sorter=order), len(known_names) - 1)]
            return np.where(known_names[nearest] == given, nearest, -1).astype(np.int32)
    code_by_name = {name: number for number, name in enumerate(names)}
    entries = list(given) if given.dtype.kind in "Mm" else given.tolist()
    try:
        return np.array([code_by_name.get(entry, -1) for entry in entries], dtype=np.int32)
    except TypeError:
        raise InputError("group", "lists or tables", "a name for each value", "names must be hashable") from None


# 2. Persons whose draws are remembered: which names are valid.

EQUAL_TYPES = frozenset({int, str, bytes, UUID})
"""Types whose values are equal exactly if they are the same name."""
EXPECTED_PERSON = "integers, strings, bytes, UUIDs or tuples of them"
PERSON_REMEDY = "1, 1.0 and True are equal, and NaN differs from itself: give every person an integer or a text as name"


def person_names(person: Any, count: int) -> list[Any]:
    """Return the person of each of ``count`` values: one name for all, or a list, tuple or array, shape [count].

    Names are integers, strings, bytes, UUIDs or (in a list) tuples of these. Others are rejected: floats, booleans and
    missing values (None, NaN) could be one name for several people, or several names for one. Raises ``InputError``,
    which reports types and never a name.

    >>> person_names("Ann", 2), person_names([7, "7"], 2)
    (['Ann', 'Ann'], [7, '7'])
    """
    # The names of a list, tuple or array; None if `person` is one name.
    if isinstance(person, (list, tuple)):
        names = [_to_python_scalar(name) for name in person]
    elif not getattr(person, "ndim", 0):
        names = None
    else:
        array: NDArray[Any] = np.asarray(person)
        names = list(array) if array.dtype.kind in "Mm" else array.tolist()
    if names is None:
        return _check_names([_to_python_scalar(person)]) * count
    if len(names) != count:
        raise InputError("person", f"{len(names)} people", f"one person, or one for each of {count} values")
    return _check_names(names)


def _to_python_scalar(name: Any) -> Any:
    """Return a NumPy scalar as a Python object."""
    return name.item() if isinstance(name, np.generic) else name


def _check_names(names: list[Any]) -> list[Any]:
    invalid_types = {kind for kind in map(type, names) if kind not in EQUAL_TYPES}
    if tuple in invalid_types and all(_has_valid_parts(name) for name in names if isinstance(name, tuple)):
        invalid_types.remove(tuple)
    if invalid_types:
        raise InputError(
            "types in person", sorted(kind.__name__ for kind in invalid_types), EXPECTED_PERSON, PERSON_REMEDY
        )
    return names


def _has_valid_parts(name: tuple[Any, ...]) -> bool:
    return all(type(part) in EQUAL_TYPES or (isinstance(part, tuple) and _has_valid_parts(part)) for part in name)


# 3. Couplings with the least maximum cost and, among these, the least mean cost; their marginals are exact.

MAX_PAIRS = 1 << 22
"""For more pairs of points the mean cost is not minimized: the table of costs and exact flows would take too long."""


def bottleneck_plan(law: ExactDistribution, target: ExactDistribution, cost: Cost) -> ExactPlan:
    """Return the coupling of least mean cost among those with the least possible maximum cost r.

    r is exact for the distributions as rationals, so it can be larger than W_∞ computed in floats. Above 2²² pairs of
    points the result minimizes the maximum cost only in floats: the mass of the rounding error may move further.
    """
    bottleneck = coupling(law.float_masses, target.float_masses, cost, p=math.inf)
    if cost.matrix_shape[0] * cost.matrix_shape[1] > MAX_PAIRS:
        return exact_plan(bottleneck.plan, law, target)
    costs = cost.to_matrix()
    forbidden_cost = 1 + 2 * bottleneck.cost * sum(costs.shape)  # more than any detour along pairs of cost at most r
    float_plan = coupling(
        law.float_masses, target.float_masses, np.where(costs <= bottleneck.cost, costs, forbidden_cost)
    ).plan
    plan = coupling_plan_within(costs <= bottleneck.cost, law, target, float_plan)
    if plan is not None:
        return plan
    # The smallest cost above r that suffices for the exact distributions.
    levels = np.unique(costs[costs > bottleneck.cost]).tolist()
    plans: dict[int, ExactPlan] = {len(levels): exact_plan(float_plan, law, target)}  # feasible at the last level

    def has_plan(index: int) -> bool:
        plan = coupling_plan_within(costs <= levels[index], law, target, float_plan)
        if plan is not None:
            plans[index] = plan
        return plan is not None

    return plans[bisect_integer(has_plan, -1, len(levels), side="passes")]


# 4. The parts of an optimal coupling mechanism: distributions, their target, a plan for each group, and its tables.

Objective = Literal["expected", "worst"]
NAMED_ORDERS = {"expected": 1.0, "worst": math.inf}


def parse_group_distributions(groups: Mapping[GroupName, ArrayLike], size: int) -> dict[GroupName, ExactDistribution]:
    """Return each group's distribution over ``size`` points. Raises ``InputError`` for invalid ones."""
    if not isinstance(groups, Mapping) or not groups:
        raise InputError("groups", groups, "a mapping from the name of each group to its distribution")
    return {
        group: ExactDistribution.from_probabilities(f"the distribution of {group!r}", law, size)
        for group, law in groups.items()
    }


def wasserstein_order(objective: str) -> float:
    """Return the order p of the W_p for an objective. Raises ``InputError`` for unknown ones."""
    if not isinstance(objective, str) or objective not in NAMED_ORDERS:
        raise InputError("objective", objective, f"one of {list(NAMED_ORDERS)}", "expected is W_1, worst is W_infinity")
    return NAMED_ORDERS[objective]


def normalize_group_weights(
    laws: Mapping[GroupName, ExactDistribution], weights: Mapping[GroupName, float] | None
) -> list[float]:
    """Return the weight of each group, divided by their sum."""
    if weights is None:
        return [1 / len(laws)] * len(laws)
    if not isinstance(weights, Mapping) or set(weights) != set(laws):
        raise InputError("weights", weights, f"one weight for each of {list(laws)}")
    values = [check_non_negative(f"weight of {group!r}", weights[group]) for group in laws]
    if not sum(values) > 0:
        raise InputError("weights", weights, "weights with a positive sum")
    return [weight / sum(values) for weight in values]


def resolve_target(
    target: Any, laws: Mapping[GroupName, ExactDistribution], cost: Cost, weights: list[float]
) -> ExactDistribution:
    """Return the given distribution, or the one with the least total expected cost to the groups' distributions.

    Raises ``InputError`` unless it is a distribution over the target points of ``cost``.
    """
    size = cost.matrix_shape[1]
    if target is None or (isinstance(target, str) and target == "barycenter"):
        masses = np.maximum(barycenter([law.float_masses for law in laws.values()], cost, weights=weights).law, 0.0)
        return ExactDistribution.from_probabilities(
            "barycenter", np.where(masses < SUM_TOLERANCE / (1000 * size), 0.0, masses), size
        )
    if isinstance(target, str):
        raise InputError("target", target, "a distribution, 'barycenter' or None")
    return ExactDistribution.from_probabilities("target", target, size)


def optimal_plan(law: ExactDistribution, target: ExactDistribution, cost: Cost, order: float) -> ExactPlan:
    """Return an optimal coupling of two distributions with exact marginals."""
    if order == 1:
        return exact_plan(coupling(law.float_masses, target.float_masses, cost).plan, law, target)
    return bottleneck_plan(law, target, cost)


MIN_DELTA = 1e-9
"""A smaller δ > 0 would be within the solver's tolerance."""


def check_delta(delta: float, objective: str) -> float:
    """Return a δ of 0 or from 1e−9 to 1 − 1e−9.

    Raises ``InputError`` for others, and for δ > 0 with another objective than "expected".
    """
    checked = check_probability("delta", delta)
    if checked != 0 and not MIN_DELTA <= checked <= 1 - MIN_DELTA:
        raise InputError("delta", delta, f"0, or between {MIN_DELTA:g} and 1 - {MIN_DELTA:g}")
    if checked != 0 and objective != "expected":
        raise InputError("objective", objective, "'expected' for a delta > 0", "or leave out delta")
    return checked


def fit_common_part(
    laws: Mapping[GroupName, ExactDistribution],
    cost: Cost,
    *,
    delta: float,
    weights: list[float],
    target: ExactDistribution | None,
) -> tuple[ExactDistribution, dict[GroupName, ExactPlan], CommonPart]:
    """Return the target, a coupling of each group with its output distribution, and the certificate.

    The target is by default the common part, divided by its mass.
    """
    float_laws = [law.float_masses for law in laws.values()]
    float_target = None if target is None else target.float_masses
    found = partial_barycenter(float_laws, cost, delta=delta, target=float_target, weights=weights)
    common_target, outputs = distributions_with_common_part(found.common, found.rests, delta, target)
    plans = {
        group: exact_plan(coupling_of_tiny_cost(law.float_masses, output.float_masses, cost).plan, law, output)
        for (group, law), output in zip(laws.items(), outputs, strict=True)
    }
    certificate = CommonPart(
        delta=delta,
        weights=tuple(weights),
        potentials=tuple(tuple(row) for row in found.dual.v.tolist()),
        lower=found.lower,
        fixed_target=target is not None,
    )
    return common_target, plans, certificate


def plan_cost(plan: ExactPlan, cost: Cost, order: float) -> float:
    """Return the mean cost of the exact plan, or its maximum cost."""
    pairs = np.array(list(plan.entries), dtype=np.int64)
    costs = cost.pair_costs(pairs[:, 0], pairs[:, 1])
    if order != 1:
        return float(costs.max())
    return math.fsum((costs * [weight / plan.total for weight in plan.entries.values()]).tolist())


def plan_tables(plan: ExactPlan, law: ExactDistribution, target: ExactDistribution) -> RowTables:
    """Return the rows of the plan as sampling tables; the row of a point without mass is the target distribution."""
    target_weights = dict(enumerate(target.masses))
    return RowTables.from_weights([row or target_weights for row in plan.weights_by_source(len(law))], len(target))


# 5. The mechanism.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CouplingMechanism(Displayed):
    """The map x ↦ y with probability γ_s[x, y] / λ_s[x] for a value x of group s (KM Def. 16, theory §6).

    γ_s couples the group's distribution λ_s with one target μ, so the output has distribution μ for every group:
    exactly if values really have distribution λ_s; see ``approximate_knowledge`` if λ_s is only close. A value that its
    group's distribution excludes is replaced by an independent draw from μ.

    **Partial couplings** (``delta`` > 0) have output distributions P_s ≥ ν with a common part ν of mass 1 − δ, so that
    any two are within δ in total variation, at the least mean distance for such a ν (``common_part``).

    **One value, one draw.** Two draws for one value x show two samples of γ_s[x, ·], which does depend on x and s
    (theory §6: the total variation of k draws can be 1 − 2^{1−k}). Pass ``person`` to repeat the first draw instead: it
    is stored only in ``memory`` of this object, and is as secret as the values.

    **Two values, two draws.** Memory is for copies of one recorded value. If a person has several – visits, purchases –
    give each value its own name, such as ``("Ann", 3)``: two values that agree by chance need two draws, since the
    frequency of agreement depends on the distribution (``docs/proofs/transport.md``).
    """

    groups: dict[GroupName, ExactDistribution]
    target: ExactDistribution
    tables: GroupTables
    cost_by_group: dict[GroupName, float]
    """The mean (or the maximum) transport cost of each group."""
    objective: Objective
    unplanned_mass: Fraction
    """The largest mass, over groups, on pairs outside the optimal float plan: its rounding error."""
    memory: dict[tuple[Any, int], int] = field(default_factory=dict)
    common_part: CommonPart | None = field(default=None)
    """None if all output distributions are the target."""

    def text_summary(self) -> Summary:
        """Return the numbers of groups and points, and the largest loss, without names and distributions."""
        facts: list[tuple[str, Shown]] = [
            ("groups", len(self.groups)),
            ("points", len(self.target)),
            (f"{self.objective} cost of the worst group", Rounded(max(self.cost_by_group.values()), "up")),
        ]
        same = "every group's output has the same distribution"
        return Summary(same if self.common_part is None else "outputs of groups have a common part", facts)

    @classmethod
    def fit(
        cls,
        groups: Mapping[GroupName, ArrayLike],
        cost: CostLike,
        *,
        target: ArrayLike | Literal["barycenter"] | None = None,
        objective: Objective = "expected",
        weights: Mapping[GroupName, float] | None = None,
        delta: float = 0.0,
    ) -> Self:
        """Return the mechanism of least cost: W_1 (``objective="expected"``) or W_∞ (``"worst"``) to the target.

        ``groups``: the distribution of each group over the source points of ``cost``, shape [n]. ``target``: a
        distribution over its target points, shape [m]; by default, or as "barycenter", the one of least total expected
        cost, with ``weights[s]`` for group s (equal by default). Distributions learned from protected data must have
        been learned privately (``learn_laws_privately``): the tables, the target and the losses reveal them.
        ``delta``: all but this mass of each group gets a common distribution, which is below a given target
        (``partial_barycenter``); the outputs of any two groups, and the target, are then within δ in total variation.

        Raises ``InputError`` for invalid distributions, unequal sizes, unknown objectives, weights that do not match,
        and a δ > 0 below 1e−9 or with the objective "worst".

        >>> distances = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
        >>> laws = {"a": [0.5, 0.5, 0.0], "b": [0.0, 0.5, 0.5]}
        >>> mechanism = CouplingMechanism.fit(laws, distances, target=[0.25, 0.5, 0.25])
        >>> mechanism.cost_by_group["a"], mechanism.output_distribution("a").tolist()
        (0.5, [0.25, 0.5, 0.25])
        """
        checked_cost = as_cost(cost)
        laws, order = parse_group_distributions(groups, checked_cost.matrix_shape[0]), wasserstein_order(objective)
        shares, common_part = normalize_group_weights(laws, weights), None
        checked_delta = check_delta(delta, objective)
        if checked_delta == 0:
            common_target = resolve_target(target, laws, checked_cost, shares)
            plans = {group: optimal_plan(law, common_target, checked_cost, order) for group, law in laws.items()}
        else:
            is_free = target is None or (isinstance(target, str) and target == "barycenter")
            fixed_target = None if is_free else resolve_target(target, laws, checked_cost, shares)
            common_target, plans, common_part = fit_common_part(
                laws, checked_cost, delta=checked_delta, weights=shares, target=fixed_target
            )
        cost_by_group = {group: plan_cost(plan, checked_cost, order) for group, plan in plans.items()}
        tables = {group: plan_tables(plan, laws[group], common_target) for group, plan in plans.items()}
        unplanned_mass = max(plan.unplanned_mass for plan in plans.values())
        joined = GroupTables.from_tables(tables)
        return cls(laws, common_target, joined, cost_by_group, objective, unplanned_mass, common_part=common_part)

    def apply(
        self,
        values: ArrayLike,
        group: GroupName,
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
        array = numeric_array("values", values, "integers of shape [k]")
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            shown = f"{array.dtype} of shape {array.shape}"
            raise InputError("values", shown, "integers of shape [k]", "number the points of the support from 0")
        outside = int(np.count_nonzero((array < 0) | (array >= self.tables.points)))
        if outside:
            remedy = "give the support every value that can occur, or map the others to it"
            raise InputError(f"values outside 0..{self.tables.points - 1}", outside, f"0 of {array.size}", remedy)
        points = array.astype(np.int64)
        members = encode_groups(group, list(self.tables), len(points))
        if person is None:
            return self.tables.draw_outcomes(members, points, randomness)
        keys = list(zip(person_names(person, len(points)), points.tolist(), strict=True))
        return self._draw_with_memory(keys, points, members, randomness)

    def _draw_with_memory(
        self, keys: list[tuple[Any, int]], points: Integers, members: Codes, randomness: Source | None
    ) -> Integers:
        """Draw once for each new key; if two threads draw for one key, both return the draw that was stored first."""
        first_index_by_key: dict[tuple[Any, int], int] = {}
        for index, key in enumerate(keys):
            if key not in self.memory:
                first_index_by_key.setdefault(key, index)
        new = np.array(list(first_index_by_key.values()), dtype=np.int64)
        drawn = self.tables.draw_outcomes(members[new], points[new], randomness)
        for key, outcome in zip(first_index_by_key, drawn.tolist(), strict=True):
            self.memory.setdefault(key, outcome)
        return np.array([self.memory[key] for key in keys], dtype=np.int64)

    def exact_output_distribution(
        self, group: GroupName, actual_distribution: ArrayLike | ExactDistribution | None = None
    ) -> list[Fraction]:
        """Return P(output = y) in rationals, from the actual sampling tables; shape [m].

        Values have ``actual_distribution``, by default the group's fitted distribution.
        """
        tables = self._group_table(group)
        if actual_distribution is None:
            law = self.groups[group]
        else:
            law = (
                actual_distribution
                if isinstance(actual_distribution, ExactDistribution)
                else ExactDistribution.from_probabilities("actual_distribution", actual_distribution, len(tables))
            )
        totals = [0] * tables.outcomes
        for x in law.support_points.tolist():
            for y, weight in tables.row_weights(x).items():
                totals[y] += law.masses[x] * weight
        return [Fraction(total, law.total * TOTAL) for total in totals]

    def output_distribution(
        self, group: GroupName, actual_distribution: ArrayLike | ExactDistribution | None = None
    ) -> Floats:
        """Return ``exact_output_distribution``, each probability correctly rounded; shape [m]."""
        return np.array(
            [float(probability) for probability in self.exact_output_distribution(group, actual_distribution)]
        )

    def plan_matrix(self, group: GroupName) -> sparse.csr_array:
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
        """The largest |P(output = y) − μ[y]| over groups and points, exactly: from rounding each row to 2⁻¹²⁸."""
        gaps = (
            abs(share - self.target[y])
            for group in self.groups
            for y, share in enumerate(self.exact_output_distribution(group))
        )
        return max(gaps)

    @property
    def delta(self) -> float:
        """The largest total variation between the outputs of two groups, up to ``target_error`` if it is 0."""
        return 0.0 if self.common_part is None else self.common_part.delta

    @property
    def common_mass(self) -> Fraction:
        """Σ_y min{P_1(y), …, P_S(y), μ(y)} of the output distributions and the target, exactly: at least 1 − δ."""
        outputs = [self.exact_output_distribution(group) for group in self.groups]
        return sum((min(self.target[y], *masses) for y, masses in enumerate(zip(*outputs, strict=True))), Fraction(0))

    def _group_table(self, group: GroupName) -> RowTables:
        try:
            return self.tables[group]
        except (KeyError, TypeError):
            raise InputError("group", group, f"one of {list(self.tables)}", "fit it with this group, too") from None


# 6. Distances by which a coupling mechanism moves the values of one group, from the actual sampling tables.

NEGLIGIBLE_MASS = 2e-12
"""Mass that is ignored: rounding a plan of least mean cost moves at most this much."""


@dataclass(frozen=True, slots=True)
class MoveStatistics:
    """The distances of values from their outputs: ``mean``, and ``largest`` except with probability 2e−12.

    ``unchanged_fraction`` is the fraction of values that stay at their point, 0 if it is at most 2e−12.
    """

    mean: float
    largest: float
    unchanged_fraction: float


def move_statistics(mechanism: CouplingMechanism, group: GroupName, cost: CostLike) -> MoveStatistics:
    """Return E d(X, Y), the least t with P(d(X, Y) > t) ≤ 2e−12, and P(X = Y), for X with the fitted distribution.

    >>> mechanism = CouplingMechanism.fit({"a": [0.5, 0.5]}, [[0, 1], [1, 0]], target=[0.25, 0.75])
    >>> move_statistics(mechanism, "a", [[0, 1], [1, 0]])
    MoveStatistics(mean=0.25, largest=1.0, unchanged_fraction=0.75)
    """
    rows, columns, masses = plan_entries(mechanism, group)
    costs = as_cost(cost).pair_costs(rows, columns)
    by_cost = np.argsort(-costs, kind="stable")
    relevant_costs = costs[by_cost][np.cumsum(masses[by_cost]) > NEGLIGIBLE_MASS]
    staying_mass = math.fsum(masses[rows == columns].tolist())
    unchanged_fraction = min(1.0, staying_mass) if staying_mass > NEGLIGIBLE_MASS else 0.0
    return MoveStatistics(math.fsum((costs * masses).tolist()), float(relevant_costs[0]), unchanged_fraction)


def plan_entries(
    mechanism: CouplingMechanism, group: GroupName
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the entries of the plan γ[x, y] = λ[x] P(y | x): x, y and the mass, shape [k] each, by x and y."""
    entries = sparse.coo_array(mechanism.plan_matrix(group))
    return entries.row.astype(np.int64), entries.col.astype(np.int64), np.asarray(entries.data)
