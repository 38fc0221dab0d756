"""The best attack on neighboring tables, thousands of times: what it reaches stays under the certified curve.

Two tables that differ by one hostile person go the way of every release: they are bounded and counted by the engine,
and `answering` adds noise and withholds groups. A release draws once for each group; here each group that the person
changes stands there thousands of times, under keys of their own, so that one call is as many releases. What the person
does not change has the same law in both tables and tells nothing. The attacker knows both tables and all noise, and
looks at everything that is drawn, of which answers are computed: no test of answers sees more.

The attack is that of Neyman and Pearson: the log-likelihood ratio of what is seen, above ε. Its success in T less e^ε
times that in the other is at most δ(ε), for any event; Clopper and Pearson bound both frequencies, each beyond its
bound with probability ``BY_LUCK``: together, over all checks, less than 1e-9.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tightrope as tr
from tightrope.ledger import Limit
from tightrope.mechanisms.discrete.box_table import BOX_PRECISION, BoxTable, point_weights
from tightrope.mechanisms.exponential import ExponentialChoice, cell_distances, half_widths, width_distances
from tightrope.noise.marginals import selection
from tightrope.queries.marginals import group as marginal_groups
from tightrope.queries.marginals.group import MarginalGroup
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import Noise
from tightrope.release import build_answers
from tightrope.release.draft import NoisePlan
from tightrope.release.marginals import select_measurements
from tightrope.release.suggest import bounds_question, rows_question
from tightrope.tables import Column, Schema, bounding, open_source
from tightrope.tables.request import GroupTotals

pytestmark = pytest.mark.slow
RELEASES = int(os.environ.get("TIGHTROPE_RELEASES", "5000"))
AT_ONCE = 20_000
BY_LUCK = 1e-13
BUDGETS = {"narrow": tr.Budget(epsilon=0.3, delta=1e-3), "wide": tr.Budget(epsilon=0.5, delta=1e-2)}
EPSILONS = (0.0, 0.25, 0.5, 0.8, 1.0)
"""In parts of the budget's."""
RANGES = {"bounds": (-2, 10)}
SECOND = (0, 3)
LISTED = {"by": "key", "keys": ["a", "b"]}
SCHEMA = Schema((Column("person", "integer"), Column("key", "text"), Column("x", "number"), Column("y", "number")))
KINDS: dict[str, list[Any]] = {
    "count": [tr.count(**LISTED)],
    "count_distinct": [tr.count_distinct(**LISTED)],
    "different values": [tr.count_distinct("x", **LISTED)],
    "sum": [tr.sum("x", bounds=(-2, 10), **LISTED)],
    "sums": [tr.sum("x", bounds=(-2, 10), **LISTED), tr.sum("y", bounds=(0, 3), **LISTED)],
    "mean": [tr.mean("x", bounds=(-2, 10), **LISTED)],
    "proportion": [tr.proportion("x > 3", **LISTED)],
    "ratio": [tr.ratio("x", "y", **RANGES, denominator_bounds=SECOND, **LISTED)],
    "standard_deviation": [tr.standard_deviation("x", bounds=(-2, 10), **LISTED)],
    "covariance": [tr.covariance("x", "y", **RANGES, other_bounds=SECOND, **LISTED)],
    "correlation": [tr.correlation("x", "y", **RANGES, other_bounds=SECOND, **LISTED)],
    "regression": [tr.regression("x", on="y", **RANGES, on_bounds=SECOND, **LISTED)],
    "histogram": [tr.histogram("x", bounds=(-2, 10), width=4)],
    "median": [tr.median("x", bounds=(-2, 10))],
    "extremes": [tr.minimum("x", bounds=(-2, 10)), tr.maximum("x", bounds=(-2, 10))],
    "quantiles": tr.quantiles("x", [0.2, 0.4, 0.6, 0.8], bounds=(-2, 10)),
    "top": [tr.top_k(1, by="key")],
    "mode": [tr.mode("key")],
    "discovered": [tr.count(by="key"), tr.mean("x", bounds=(-2, 10), by="key")],
    "several": [tr.count(**LISTED), tr.median("x", bounds=(-2, 10)), tr.sum("y", bounds=(0, 3))],
    "variance": [tr.variance("x", bounds=(-2, 10), **LISTED)],
    "quantile": [tr.quantile("x", 0.9, bounds=(-2, 10), **LISTED)],
    "histogram by": [tr.histogram("x", bounds=(-2, 10), width=4, by="key")],
    "other": [tr.count(by="key"), tr.suppressed_count(by="key")],
    "bias counts": [tr.sum("x", bounds=(-2, 10), **LISTED)],
    "suggested bounds": [bounds_question("x", None, SCHEMA)],
    "suggested rows": [rows_question(None)],
    "marginals": [tr.marginals(["key", {"high": "x > 3"}, {"many": "y > 1"}], keys={"key": ["a", "b"]})],
    "by moments": [tr.count(**LISTED), tr.mean("x", bounds=(-2, 10), **LISTED)],
}
FEWER = {"quantile": 8, "median": 2, "several": 2, "extremes": 4}
"""This many times fewer releases in CI, where choices are made one by one; a planted bug needs 2 000 to be caught."""
ALIKE = ("histogram", "median", "extremes", "quantiles", "several", "suggested bounds", "suggested rows")
DISCOVERED = ("top", "discovered", "histogram by", "other")
PERSONS = {"one group": ["a"] * 9, "two groups": ["a", "b"] * 5, "a group of their own": ["new"] * 9}
"""The keys of a hostile person's rows: many more than may count, all at the end of every range."""


def persons(kind: str) -> list[list[str]]:
    """Those whom the questions tell apart."""
    return list(PERSONS.values())[: 1 if kind in ALIKE else 3 if kind in DISCOVERED else 2]


def table(newcomer: Sequence[str]) -> pd.DataFrame:
    """Sixty people with two rows each, and the newcomer."""
    draw = np.random.default_rng(14)
    rows = {
        "person": np.repeat(np.arange(60), 2),
        "key": np.tile(["a", "b"], 60),
        "x": draw.normal(4, 2, 120),
        "y": draw.uniform(0, 3, 120),
    }
    own = {"person": 99, "key": list(newcomer), "x": 1e9 + np.arange(len(newcomer)), "y": 1e9}
    return pd.concat([pd.DataFrame(rows), pd.DataFrame(own)]) if newcomer else pd.DataFrame(rows)


@cache
def drafted(kind: str, budget: str) -> NoisePlan:
    said: dict[str, Any] = {"privacy_unit": "person", "max_rows": 2, "budget": BUDGETS[budget]}
    if kind == "by moments":
        with tempfile.TemporaryDirectory() as folder:
            limit = Limit("total", BUDGETS[budget], rule="moments", releases=4)
            ledger = Path(folder) / "ledger"
            session = tr.Session.open(table([]), ledger=ledger, dataset="people", limits=[limit], **said)
            return session.plan(KINDS[kind], budget_fraction="0.25").draft
    session = tr.Session(table([]), **said)
    return session.plan(KINDS[kind], bias_check="0.3" if kind == "bias counts" else 0).draft


Place = tuple[object, ...]


@dataclass(frozen=True)
class Seen:
    """What releases show at one place, a group or a block of one: exact integers and noisy ones by vector.

    ``shown[i]``: whether release i shows the place. ``exact`` is None where the table has no such group.
    """

    exact: Mapping[str, tuple[int, ...]] | None
    noisy: Mapping[str, np.ndarray[Any, Any]]
    shown: np.ndarray[Any, Any]


def changed(
    query_group: QueryGroup, tables: Sequence[GroupTotals]
) -> list[tuple[Place, list[dict[str, tuple[int, ...]] | None]]]:
    """The places that differ, and what each table has there: cells by blocks, for choices all of them."""
    size = 1
    if query_group.cells_per_group:
        size = (
            query_group.cells_per_group
            if chooses(query_group)
            else max(vector.block or 1 for vector in query_group.noisy_statistics)
        )
    found: list[dict[Place, dict[str, tuple[int, ...]]]] = []
    for one in tables:
        parts = range(0, len(one.keys), size)
        found.append({one.keys[i]: {name: v[i : i + size] for name, v in one.values.items()} for i in parts})
    places = dict.fromkeys([*found[0], *found[1]])
    return [(p, [f.get(p) for f in found]) for p in places if found[0].get(p) != found[1].get(p)]


def chooses(query_group: QueryGroup) -> bool:
    return query_group.noisy_statistics[0].choice is not None


def chosen(noises: tuple[Noise, ...], exact: Mapping[str, tuple[int, ...]], times: int) -> Seen:
    """So many choices from one group's counts, one after the other as ``answering`` makes them."""
    noisy = {noise.vector.statistic_name: np.zeros((times, 1)) for noise in noises}
    counts = {noise: np.array(exact[noise.vector.statistic_name]) for noise in noises}
    for release in range(times):
        found: dict[Any, Any] = {}
        for noise in noises:
            found[noise.vector] = noise.choose_cell(counts[noise], found)
            noisy[noise.vector.statistic_name][release] = found[noise.vector]
    return Seen(exact, noisy, np.ones(times, dtype=bool))


def log_choices(noises: tuple[Noise, ...], seen: Seen, exact: Mapping[str, tuple[int, ...]]) -> np.ndarray[Any, Any]:
    """Of each release: the sum over its answers, each a choice of a value and one of a width."""
    pairs = zip(noises[::2], noises[1::2], strict=True)
    found: np.ndarray[Any, Any] = np.sum([log_pair(pair, seen, exact) for pair in pairs], axis=0)
    return found


def log_pair(noises: tuple[Noise, Noise], seen: Seen, exact: Mapping[str, tuple[int, ...]]) -> np.ndarray[Any, Any]:
    """Of each release: the logarithm of its cell's share of all weights, and of its width's beside that cell."""
    value, width = noises
    cells, widths = (seen.noisy[noise.vector.statistic_name][:, 0].astype(int) for noise in noises)
    excesses = [noise.choice.excess_at_edges(np.array(exact[noise.vector.statistic_name])) for noise in noises]
    found: np.ndarray[Any, Any] = log_shares(value, cell_distances(excesses[0]))[cells]
    target = width.choice.target_excess(width.choice_distribution, len(excesses[1]) - 1)
    known = half_widths(len(excesses[1]) - 1)
    for cell in np.unique(cells):
        own = cells == cell
        shares = log_shares(width, width_distances(excesses[1], int(cell), target))
        found[own] += shares[np.searchsorted(known, widths[own])]
    return found


def log_shares(noise: Noise, distances: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    weights = np.array(noise.choice_distribution.candidate_weights(distances), dtype=np.float64)
    found: np.ndarray[Any, Any] = np.log(weights / weights.sum())
    return found


def released(
    query_group: QueryGroup, noises: tuple[Noise, ...], exact: Mapping[str, tuple[int, ...]] | None, times: int
) -> Seen:
    """So many releases of one place, by what releases whole tables."""
    if exact is None:
        return Seen(None, {}, np.zeros(times, dtype=bool))
    if chooses(query_group):
        return chosen(noises, exact, times)
    size = len(next(iter(exact.values())))
    keys = tuple((release, cell) for release in range(times) for cell in range(size))
    grouped = GroupTotals(keys, {name: values * times for name, values in exact.items()})
    groups = (
        build_answers._noisy_cells_by_group(size, noises, grouped)
        if query_group.cells_per_group
        else build_answers._noisy_groups(query_group, noises, grouped)
    )
    places = np.array([key[0] for key, _ in groups], dtype=np.int64)
    shown = np.zeros(times, dtype=bool)
    shown[places] = True
    noisy = {}
    for noise in noises:
        width = size // (noise.vector.block or 1)
        noisy[noise.vector.statistic_name] = np.zeros((times, width))
        drawn = [found[noise.vector] for _, found in groups]
        noisy[noise.vector.statistic_name][places] = np.array(drawn, dtype=np.float64).reshape(len(groups), width)
    return Seen(exact, noisy, shown)


def log_chance(noise: Noise, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """log P(X = x): linear between the points of the table (``Widened``); −∞ beyond its end or its first 4 000."""
    law = points(noise)
    y, s = np.divmod(np.abs(x), noise.noise_mechanism.factor)
    y = np.minimum(y, len(law) - 2).astype(np.int64)
    part = s / noise.noise_mechanism.factor
    with np.errstate(divide="ignore"):
        found: np.ndarray[Any, Any] = np.log((1 - part) * law[y] + part * law[y + 1])
    return found


def log_point(noises: Sequence[Noise], x: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """log P(X_1 = x_1, …): between the points of the box linear in each number."""
    table = noises[0].table
    assert isinstance(table, BoxTable)
    weights, whole = point_weights(table._radius_weights, table.dimension, BOX_PRECISION)
    law = np.array([weight / whole for weight in weights] + [0.0, 0.0])
    cells = [np.divmod(one, noise.noise_mechanism.factor) for noise, one in zip(noises, x, strict=True)]
    total = np.zeros(len(x[0]))
    for corner in itertools.product((0, 1), repeat=len(noises)):
        share, far = np.ones(len(total)), np.zeros(len(total))
        for up, (y, s), noise in zip(corner, cells, noises, strict=True):
            part = s / noise.noise_mechanism.factor
            share *= part if up else 1 - part
            far = np.maximum(far, np.abs(y + up))
        total += share * law[np.minimum(far, len(law) - 1).astype(np.int64)]
    found: np.ndarray[Any, Any] = np.log(total)
    return found


@cache
def points(noise: Noise) -> np.ndarray[Any, Any]:
    """P(Y = 0), P(Y = 1), … of the table."""
    inner = noise.table
    reach = int(inner.largest_magnitude) if isinstance(inner, BoxTable) else len(inner.half)
    survival = [inner.survival_probability(y) for y in range(min(4_000, reach + 1_000) + 1)]
    chances = [1 - 2 * survival[0], *(a - b for a, b in itertools.pairwise(survival))]
    return np.array([float(p) for p in chances] + [0.0, 0.0])


def log_likelihood(query_group: QueryGroup, noises: tuple[Noise, ...], seen: Seen, exact: Any) -> np.ndarray[Any, Any]:
    """Of each release at one place, were it made from ``exact``."""
    hidden = (~seen.shown).astype(float)
    with np.errstate(divide="ignore"):
        if exact is None:
            return np.log(hidden)
        if chooses(query_group):
            return log_choices(noises, seen, exact)
        found = np.zeros(len(hidden))
        box = [noise for noise in noises if noise.vector.joint_noise]
        if box and seen.noisy:
            found += log_point(
                box, [seen.noisy[n.vector.statistic_name][:, 0] - exact[n.vector.statistic_name][0] for n in box]
            )
        for noise in noises:
            if noise in box:
                continue
            block = noise.vector.block or 1
            counts = np.array(exact[noise.vector.statistic_name], dtype=np.float64).reshape(-1, block).sum(axis=1)
            if seen.noisy:
                found += log_chance(noise, seen.noisy[noise.vector.statistic_name] - counts).sum(axis=1)
        withheld = [
            np.log(noise.lower_tail_probability(int(noise.key_threshold) - exact[noise.vector.statistic_name][0]))
            for noise in noises
            if noise.vector == query_group.key_count and noise.key_threshold is not None
        ]
        return np.where(seen.shown, found, withheld[0] if withheld else -np.inf)


def counted(draft: NoisePlan, newcomer: Sequence[str]) -> list[tuple[GroupTotals, ...]]:
    """What the engine counts for each query group, without the newcomer and with them."""
    opened = [open_source(one) for one in (table([]), table(newcomer))]
    return [
        tuple(one.collect_totals(query_group.table_request) for one in opened) for query_group in draft.query_groups
    ]


def losses(draft: NoisePlan, integers: Sequence[tuple[GroupTotals, ...]], times: int) -> np.ndarray[Any, Any]:
    """log P(seen | its own table) − log P(seen | the other), of so many releases of each, shape [2, times]."""
    total = np.zeros((2, times))
    for query_group, every, tables in zip(draft.query_groups, draft.noises_by_query_group, integers, strict=True):
        if isinstance(query_group, MarginalGroup):
            total += marginal_losses(query_group, every, tables, times)
            continue
        noises = tuple(noise for noise in every if not noise.vector.over_all_groups)
        whole = tuple(noise for noise in every if noise.vector.over_all_groups)
        hidden = {noise: np.zeros((2, times), dtype=np.int64) for noise in whole}
        for _, exact in changed(query_group, tables):
            for own in (0, 1):
                seen = released(query_group, noises, exact[own], times)
                both = [log_likelihood(query_group, noises, seen, one) for one in (exact[own], exact[1 - own])]
                total[own] += np.where(np.isneginf(both[1]), np.inf, both[0] - both[1])
                for noise in whole:
                    counted = noise.vector in query_group.diagnostic_counts or ~seen.shown
                    hidden[noise][own] += counted * (in_all(noise, exact[own]) - in_all(noise, exact[1 - own]))
        for noise, more in hidden.items():
            for own in (0, 1):
                total[own] += log_ratio(noise, more[own])
    return total


def marginal_losses(
    group: MarginalGroup, noises: tuple[Noise, ...], tables: tuple[GroupTotals, ...], times: int
) -> np.ndarray[Any, Any]:
    """The same of all integers of the measurements, from which the tables are computed; those that do not differ say
    nothing."""
    exact, total = [group.measured_integers(one) for one in tables], np.zeros((2, times))
    for noise in noises:
        both = np.array([one[noise.vector] for one in exact])
        for cell in np.flatnonzero(both[0] != both[1]):
            for own in (0, 1):
                value, other = both[own, cell], both[1 - own, cell]
                drawn = np.array(build_answers._add_noise(noise, (int(value),) * times), dtype=np.float64)
                from_other = log_chance(noise, drawn - other)
                total[own] += np.where(np.isneginf(from_other), np.inf, log_chance(noise, drawn - value) - from_other)
    return total


def in_all(noise: Noise, exact: Mapping[str, tuple[int, ...]] | None) -> int:
    return 0 if exact is None else sum(exact[noise.vector.statistic_name])


def log_ratio(noise: Noise, more: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of one number over all groups, so much larger in its own table than in the other, drawn as ``answering`` does."""
    drawn = np.array(build_answers._add_noise(noise, tuple(more.tolist())), dtype=np.float64)
    own, other = log_chance(noise, drawn - more), log_chance(noise, drawn)
    found: np.ndarray[Any, Any] = np.where(np.isneginf(other), np.inf, own - other)
    return found


def proven(above: int, beyond: int, times: int, epsilon: float) -> float:
    """A lower bound on P(event) − e^ε P'(event), from how often it was seen in either."""
    at_least = stats.beta.ppf(BY_LUCK, above, times - above + 1) if above else 0.0
    at_most = stats.beta.isf(BY_LUCK, beyond + 1, times - beyond) if beyond < times else 1.0
    return float(at_least - np.exp(epsilon) * at_most)


def excesses(draft: NoisePlan, integers: Sequence[tuple[GroupTotals, ...]], times: int) -> Iterator[float]:
    """By how much each attack is proven to reach beyond the certified curve: above 0, the promise is broken."""
    parts = [losses(draft, integers, min(AT_ONCE, times - done)) for done in range(0, times, AT_ONCE)]
    found = np.concatenate(parts, axis=1)
    for part in EPSILONS:
        epsilon = part * float(draft.budget.epsilon or 0)
        for own in (0, 1):
            above, beyond = int((found[own] > epsilon).sum()), int((-found[1 - own] > epsilon).sum())
            yield proven(above, beyond, times, epsilon) - draft.loss.delta(epsilon)


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of the same distances are added up once: what is drawn beside them is drawn each time."""
    added, known = ExponentialChoice.cumulative_weights, {}

    def ends(self: ExponentialChoice, distances: np.ndarray[Any, Any]) -> list[int]:
        key = self, distances.tobytes()
        if key not in known:
            known[key] = added(self, distances)
        return known[key]

    monkeypatch.setattr(ExponentialChoice, "cumulative_weights", ends)


@pytest.mark.parametrize("kind", KINDS)
def test_no_attack_reaches_beyond_the_certified_curve(kind: str) -> None:
    assert len(BUDGETS) * len(KINDS) * len(PERSONS) * len(EPSILONS) * 4 * BY_LUCK < 1e-9
    drafts = [drafted(kind, budget) for budget in BUDGETS]
    for newcomer in persons(kind):
        integers = counted(drafts[0], newcomer)
        times = RELEASES if "TIGHTROPE_RELEASES" in os.environ else RELEASES // FEWER.get(kind, 1)
        assert all(max(excesses(draft, integers, times)) <= 0 for draft in drafts)


def too_little(noise: Noise, exact: tuple[int, ...]) -> list[int]:
    """0.8 of the noise, rounded up or down by chance: rounded to the nearest, small noise would stay what it is."""
    draws = np.asarray(noise.noise_mechanism.sample(len(exact)), dtype=np.float64)
    less = np.floor(0.8 * draws + np.random.default_rng().random(len(draws))).astype(np.int64)
    return [value + draw for value, draw in zip(exact, less.tolist(), strict=True)]


def drafted_for_half_the_rows(monkeypatch: pytest.MonkeyPatch) -> NoisePlan:
    """A plan of marginals whose noise and certificate are those of one row, where two count."""
    counted_rows = selection.measurement_contribution
    for module in (selection, marginal_groups):
        monkeypatch.setattr(module, "measurement_contribution", lambda one, rows: counted_rows(one, (rows + 1) // 2))
    select_measurements.cache_clear()
    session = tr.Session(table([]), privacy_unit="person", max_rows=2, budget=BUDGETS["wide"])
    draft = session.plan(KINDS["marginals"]).draft
    select_measurements.cache_clear()
    return draft


def test_marginals_for_half_the_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = drafted_for_half_the_rows(monkeypatch)
    assert max(excesses(draft, counted(draft, PERSONS["one group"]), 20_000)) > 0


@pytest.mark.parametrize("kind", ["count", "sum", "mean", "marginals"])
def test_too_little_noise_is_caught(kind: str, monkeypatch: pytest.MonkeyPatch, times: int = 200_000) -> None:
    """The promise is broken by so much that chance hides it once in 1e9 runs at most: six standard deviations."""
    monkeypatch.setattr(build_answers, "_add_noise", too_little)
    draft = drafted(kind, "wide")
    assert max(excesses(draft, counted(draft, PERSONS["one group"]), times)) > 0


def test_numbers_of_a_box_that_are_drawn_one_by_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number has its law; to whom knows that they are independent, all tell more at ε than was certified: 13 %."""

    def apart(noises: tuple[Noise, ...], exact: GroupTotals) -> dict[Any, list[int]]:
        drawn = [answering_point(noises, exact) for _ in noises]
        return {noise.vector: one[noise.vector] for noise, one in zip(noises, drawn, strict=True)}

    session = tr.Session(table([]), privacy_unit="person", max_rows=2, budget=tr.Budget(epsilon=2, delta=1e-6))
    draft = session.plan(KINDS["sums"]).draft
    assert all(noise.vector.joint_noise for noise in draft.noises_by_query_group[0])
    answering_point = build_answers._add_joint_noise
    monkeypatch.setattr(build_answers, "_add_joint_noise", apart)
    monkeypatch.setitem(globals(), "log_point", lambda box, x: sum(map(log_chance, box, x)))
    assert max(excesses(draft, counted(draft, PERSONS["one group"]), 20_000)) > 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("suggested rows", "quantile", "variance")])
def test_rows_that_are_not_bounded_are_caught(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a person with 45 rows: what a choice costs for so few as 9 stays below what it is charged as, for 2."""
    monkeypatch.setattr(bounding, "persons_over_bound", lambda narrow, _: narrow.table.filter(False).select("person"))
    draft = drafted(kind, "wide")
    assert max(excesses(draft, counted(draft, PERSONS["one group"] * 5), 2_000)) > 0
