"""Random plans over random tables in partitioned folders and in Spark: neighbors differ by what the units declare.

What a release counts before noise, for each unit of privacy: a person's rows must fall into its groups in a way that
the unit's contribution allows, and move each vector by at most its sensitivity a row. Tables are compared with one
person fewer, for everybody in them, and with a hostile person more, who may bring folders and files of their own.
``TIGHTROPE_FOLDERS=400`` and ``TIGHTROPE_SPARK_TABLES=60`` try more tables than CI does.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.tables.every_engine import spark
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, TightropeError
from tightrope.mechanisms.exponential import cell_distances, width_distances
from tightrope.noise.worst_split import SplitBounds
from tightrope.queries.query_group import QueryGroup, group_queries
from tightrope.queries.statistics import NoisyStatistic
from tightrope.release.bias_check import add_diagnostic_counts
from tightrope.release.planner import with_even_errors
from tightrope.release.suggest import bounds_question, rows_question
from tightrope.tables import Table, attach_public_tables, bounding, open_source, public_table
from tightrope.tables.request import GroupTotals

pytestmark = pytest.mark.slow
FOLDERS = int(os.environ.get("TIGHTROPE_FOLDERS", "4"))
SPARK_TABLES = int(os.environ.get("TIGHTROPE_SPARK_TABLES", "0"))
ARROW = pa.schema(
    [
        ("person", "string"),
        ("key", "string"),
        ("city", "string"),
        ("number", "int64"),
        ("flag", "bool"),
        ("day", "date32"),
        ("x", "float64"),
        ("y", "float64"),
    ]
)
KEYS = (
    "a",
    "b",
    "A",
    "\u00e1",
    "a\u0301",
    " a",
    "",
    None,
    'a"b',
    "a=b",
    "a/b",
    "%2F",
    "+",
    "NULL",
    "_a",
    ".a",
    "a\n",
    "1",
)
NUMBERS = (None, 0, 1, 2, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1)
DAYS = (None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1))
VALUES = (
    None,
    math.nan,
    -math.nan,
    math.inf,
    -math.inf,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    -0.0,
    0.0,
    0.25,
    -2.0,
    10.0,
    1e6,
)
PUBLIC = pa.table({"named": ["b", "A", " a", "", None, "a=b"], "region": ["r1", None, "r2", "r1", "r3", "r2"]})
FOLDED = ((), ("key",), ("person",), ("key", "flag"), ("number",), ("day", "key"))
"""The columns that only the names of folders hold."""
DECLARED = {"number": "integer", "day": "date", "flag": "boolean"}
Row = tuple[Any, ...]
Opened = Callable[[Sequence[Row], Path], Table]


def pick(draw: np.random.Generator, some: Sequence[Any]) -> Any:
    return some[int(draw.integers(len(some)))]


def rows_of(draw: np.random.Generator, person: str | None, hostile: bool) -> list[Row]:
    keys = KEYS if hostile else ("a", "b", None)
    found = [
        (
            person,
            pick(draw, keys),
            pick(draw, ("o", "p", "q")),
            pick(draw, NUMBERS if hostile else (0, 1, 2)),
            pick(draw, (True, False, None)),
            pick(draw, DAYS if hostile else DAYS[3:]),
            *(pick(draw, VALUES) if hostile else float(draw.normal(4, 4)) for _ in "xy"),
        )
        for _ in range(int(draw.integers(1, 30 if hostile else 5)))
    ]
    return [*found, *found[:2]] if hostile else found  # equal rows, too


BY = (None, "key", "city", "flag", "number", "month(day)", "x > 3", "cut(x, [0, 5])", "lower(key)", "prefix(key, 1)",
      "region", "case(x < 4, 'low', flag, 'set', None)", "cell(x, -2, 10, 5)",
      "mod(number, 3)", "week(day)", "concat(key, '/', number)", "round(clip(x, -2, 10), 2.5)",
      "upper(suffix(key, 1))")  # fmt: skip
LISTED = {
    "key": ["a", "A", None, "\u00e1", ""],
    "city": ["o", "p"],
    "number": [0, 1, 2**53, None],
    "flag": [True, None],
}
WHERE = (None, None, "x > 2", "x * y < 10", "key in ['a', 'b']", "number / x > 1", "flag or x is None",
         "days(day) > 0", "abs(number) + 1 > 2", "region == 'r1'", "contains(key, 'a') or starts_with(key, city)",
         "days_between('2024-01-01', day) > 0")  # fmt: skip
VALUE = ("x", "number", "x / y", "x * 1000", "abs(x) + y", "min(x, number)", "case(flag, x, y)", "flag",
         "log(x, 10)", "floor(x, 0.5)", "mod(x, 3)")  # fmt: skip
RANGE = {"bounds": (-2, 10)}
DAY_RANGE = "2024-02-01", "2024-04-01"
SECOND = (0, 3)


def question(draw: np.random.Generator, place: int) -> list[tr.Question]:
    said: dict[str, Any] = {"name": f"q{place}", "where": pick(draw, WHERE)}
    one, other = pick(draw, VALUE), pick(draw, ("y", "number", "y / 2"))
    kind = pick(draw, tuple(ASKED))
    names = {name for name in (pick(draw, BY), pick(draw, (None, None, *BY))) if name is not None}
    if names and kind not in ("suggested bounds", "rows of a person"):
        said["by"] = sorted(names)
        listed = {name: LISTED[name] for name in names if name in LISTED}
        if listed and (
            draw.random() < 0.4 or kind in ("median", "median day", "quantile", "quantiles", "median of persons")
        ):
            said["keys"] = listed
    for bound in ("max_rows_per_group", "max_groups"):
        if draw.random() < 0.15:
            said[bound] = int(draw.integers(1, 4))
    found = ASKED[kind](one, other, said)
    return list(found) if isinstance(found, list) else [found]


def several(one: str, _: str, said: dict[str, Any]) -> list[tr.Question]:
    return tr.quantiles(one, [0.2, 0.5, 0.8], bounds=(-2, 10), **{**said, "name": None})


def beside(_: str, __: str, said: dict[str, Any]) -> list[tr.Question]:
    return [tr.count(**said), tr.suppressed_count(**{**said, "name": said["name"] + " other"})]


ASKED: dict[str, Callable[[str, str, dict[str, Any]], Any]] = {
    "count": lambda _, __, said: tr.count(**said),
    "count_distinct": lambda _, __, said: tr.count_distinct(**said),
    "different values": lambda one, _, said: tr.count_distinct(one, **said),
    "different keys": lambda _, __, said: tr.count_distinct("key", **said),
    "sum": lambda one, _, said: tr.sum(one, bounds=(-2, 10), **said),
    "fine sum": lambda one, _, said: tr.sum(one, bounds=(-0.1, 0.3), **said),
    "sums": lambda one, other, said: [
        tr.sum(one, bounds=(-2, 10), **said), tr.sum(other, bounds=(0, 3), **{**said, "name": said["name"] + " 2"})
    ],
    "mean": lambda one, _, said: tr.mean(one, bounds=(-2, 10), **said),
    "share": lambda one, _, said: tr.proportion(f"{one} > 3" if one != "flag" else one, **said),
    "ratio": lambda one, other, said: tr.ratio(one, other, **RANGE, denominator_bounds=SECOND, **said),
    "variance": lambda one, _, said: tr.variance(one, bounds=(-2, 10), **said),
    "standard_deviation": lambda one, _, said: tr.standard_deviation(one, bounds=(-2, 10), **said),
    "covariance": lambda one, other, said: tr.covariance(one, other, **RANGE, other_bounds=SECOND, **said),
    "correlation": lambda one, other, said: tr.correlation(one, other, **RANGE, other_bounds=SECOND, **said),
    "regression": lambda one, other, said: tr.regression(one, on=other, **RANGE, on_bounds=SECOND, **said),
    "histogram": lambda one, _, said: tr.histogram(one, bounds=(-2, 10), width=2, **said),
    "median day": lambda _, __, said: tr.median("day", bounds=DAY_RANGE, **said),
    "histogram of days": lambda _, __, said: tr.histogram("day", width="week", bounds=DAY_RANGE, **said),
    "median": lambda one, _, said: tr.median(one, bounds=(-2, 10), **said),
    "quantile": lambda one, _, said: tr.quantile(one, 0.9, bounds=(-2, 10), **said),
    "quantiles": several,
    "top": lambda _, __, said: tr.top_k(2, **said),
    "other": beside,
    "spread": lambda one, _, said: [
        kind(one, bounds=(-2, 10), **{**said, "name": f"{said['name']} {kind.kind}"})
        for kind in (tr.mean, tr.variance, tr.standard_deviation)
    ],
    "rows of persons": lambda _, __, said: tr.mean("*", per_person="count", bounds=(0, 5), **said),
    "sums of persons": lambda one, _, said: tr.variance(one, per_person="sum", bounds=(-2, 10), **said),
    "bins of persons": lambda _, __, said: tr.histogram("x > 3", per_person="count", edges=[0, 1, 3], **said),
    "median of persons": lambda one, _, said: tr.median(one, per_person="sum", bounds=(-2, 10), **said),
    "share of persons": lambda _, __, said: tr.proportion("x > 3", per_person="any", **said),
    "suggested bounds": lambda one, _, said: bounds_question(one, said["where"], SCHEMA),
    "rows of a person": lambda _, __, said: rows_question(said["where"]),
}  # fmt: skip


def arrow(rows: Sequence[Row], names: Sequence[str] = ARROW.names) -> pa.Table:
    places = [ARROW.names.index(name) for name in names]
    return pa.table(
        [pa.array([row[place] for row in rows], ARROW.field(place).type) for place in places],
        schema=pa.schema([ARROW.field(place) for place in places]),
    )


SCHEMA = attach_public_tables(open_source(arrow([])), public_table(PUBLIC, on={"key": "named"})).schema


def folder_name(name: str, value: object) -> str:
    if value is None:
        return f"{name}=__HIVE_DEFAULT_PARTITION__"
    text = value.isoformat() if isinstance(value, dt.date) else str(value)
    return f"{name}={quote(text.lower() if isinstance(value, bool) else text, safe='')}"


def write_folders(rows: Sequence[Row], root: Path, columns: Sequence[str], alone: bool) -> None:
    """Each person's rows in files of their own, or each folder's rows in one file."""
    kept = [name for name in ARROW.names if name not in columns]
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        place = tuple(folder_name(name, row[ARROW.names.index(name)]) for name in columns)
        parts.setdefault((*place, str(row[0]) if alone else ""), []).append(row)
    for number, (place, own) in enumerate(parts.items()):
        folder = root.joinpath(*place[:-1])
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(arrow(own, kept), folder / f"part-{number}.parquet", row_group_size=7)


def of_folders(columns: Sequence[str], alone: bool) -> Opened:
    def opened(rows: Sequence[Row], root: Path) -> Table:
        write_folders(rows, root, columns, alone)
        return open_source(root, types={name: DECLARED[name] for name in columns if name in DECLARED})

    return opened


def of_spark(columns: Sequence[str], alone: bool) -> Opened:
    """Spark reads the folders, in the schema that is said: the one that it would find is that of the folders' names."""
    types = {"string": "string", "int64": "bigint", "bool": "boolean", "date32[day]": "date", "double": "double"}
    schema = ", ".join(f"{field.name} {types[str(field.type)]}" for field in ARROW)

    def opened(rows: Sequence[Row], root: Path) -> Table:
        """Spark writes an empty text as a missing one, and fails to read a folder that is called otherwise."""
        place = ARROW.names.index("key")
        known = [(*row[:place], row[place] or None, *row[place + 1 :]) if "key" in columns else row for row in rows]
        write_folders(known, root, columns, alone)
        return open_source(spark().read.schema(schema).parquet(str(root)))

    return opened


@dataclass(frozen=True)
class Counted:
    """What a release counts, and all that could be seen besides: the schema, an error, warnings."""

    schema: Any
    exact: tuple[GroupTotals, ...] | None
    error: str
    warned: tuple[str, ...]


def counted(open_one: Opened, rows: Sequence[Row], root: Path, query_groups: Sequence[QueryGroup]) -> Counted:
    root.mkdir()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            table = attach_public_tables(open_one(rows, root), public_table(PUBLIC, on={"key": "named"}))
            requests = [query_group.table_request for query_group in query_groups]
            with table.open_snapshot(requests) as snapshot:
                exact, error = tuple(snapshot.collect_totals(request) for request in requests), ""
        except TightropeError as failure:
            return Counted(None, None, f"{type(failure).__name__}: {failure}".replace(str(root), "ROOT"), ())
    return Counted(table.schema, exact, error, tuple(str(one.message) for one in warned))


def most_rows(change: int, vector: NoisyStatistic) -> int:
    return -(-abs(change) // vector.sensitivity)


def allowed(used: Sequence[int], bounds: SplitBounds) -> bool:
    """Whether so many rows in each group are among what the contribution allows."""
    return (
        max(used, default=0) <= bounds.max_rows_per_group
        and sum(used) <= bounds.rows
        and sum(map(bool, used)) <= bounds.groups
    )


def values(one: GroupTotals, name: str) -> dict[tuple[object, ...], int]:
    return dict(zip(one.keys, one.values[name], strict=True))


def check_unit(query_group: QueryGroup, own: Sequence[NoisyStatistic], one: GroupTotals, other: GroupTotals) -> int:
    """How many integers moved; raises where they move beyond what is declared."""
    keys = list(dict.fromkeys([*one.keys, *other.keys]))
    moves = {}
    for vector in own:
        here, there = values(one, vector.statistic_name), values(other, vector.statistic_name)
        moves[vector] = [here.get(key, 0) - there.get(key, 0) for key in keys]
    bounds = query_group.set_contribution(own)
    if own[0].over_all_groups:
        used = [most_rows(sum(map(abs, moves[vector])), vector) for vector in own]
    elif own[0].choice is not None:
        return check_choices(query_group, own, one, other)
    elif own[0].disjoint_set is not None:
        used = [most_rows(change, vector) for vector in own for change in moves[vector]]
    else:
        used = [max(most_rows(moves[vector][place], vector) for vector in own) for place in range(len(keys))]
    assert allowed(used, bounds), f"{[v.statistic_name for v in own]}: rows {used} beyond {bounds}"
    return sum(map(bool, used))


def check_choices(query_group: QueryGroup, own: Sequence[NoisyStatistic], one: GroupTotals, other: GroupTotals) -> int:
    """The distances of all that can be chosen: a row moves each by at most half of what is charged."""
    assert query_group.cells_per_group is not None and one.keys == other.keys
    (name,) = {vector.statistic_name for vector in own} if len(own) == 1 else {own[0].statistic_name}
    both = [
        np.array(grouped.values[name], dtype=np.int64).reshape(-1, query_group.cells_per_group)
        for grouped in (one, other)
    ]
    used = []
    for here, there in zip(*both, strict=True):
        rows = 0
        for vector in own:
            choice = vector.choice
            assert choice is not None
            excess = [choice.excess_at_edges(cells) for cells in (here, there)]
            if choice.around is None:
                moved = [int(np.max(np.abs(cell_distances(excess[0]) - cell_distances(excess[1]))))]
            else:
                moved = [
                    int(np.max(np.abs(np.subtract(*(width_distances(e, center, 5_000_000) for e in excess)))))
                    for center in range(0, query_group.cells_per_group, query_group.cells_per_group // 10)
                ]
            assert 2 * choice.distance_sensitivity == vector.sensitivity
            rows = max(rows, *(-(-move // choice.distance_sensitivity) for move in moved))
        used.append(rows)
    assert allowed(used, query_group.set_contribution(own)), (
        f"choices: rows {used} beyond {query_group.set_contribution(own)}"
    )
    return sum(map(bool, used))


def check(query_groups: Sequence[QueryGroup], first: Counted, second: Counted) -> int:
    assert (first.error, first.warned) == (second.error, second.warned), f"{first.error!r} {second.error!r}"
    assert first.schema == second.schema
    moved = 0
    for query_group, here, there in zip(query_groups, first.exact or (), second.exact or (), strict=True):
        if query_group.keys is not None:
            assert here.keys == there.keys
        else:
            common = set(here.keys) & set(there.keys)
            orders = [[key for key in one.keys if key in common] for one in (here, there)]
            assert orders[0] == orders[1], "the order of groups"
        moved += sum(check_unit(query_group, own, here, there) for own in query_group.composition_sets)
    return moved


def plan_of(draw: np.random.Generator, schema: Any) -> tuple[QueryGroup, ...]:
    bounds = sorted(int(draw.integers(1, 7)) for _ in range(3))
    own = PrivacyUnit("person", bounds[2], bounds[1], bounds[1])
    questions: list[tr.Question] = []
    while len(questions) < 2:
        try:
            new = question(draw, len(questions))
            group_queries([*questions, *new], own, schema)
        except InputError:
            continue
        questions += new
    # By rule 2 of the planner: questions of the same values share their sums.
    query_groups = with_even_errors(
        group_queries(questions, own, schema, weighted=False), tr.Budget(epsilon=1, delta=1e-8)
    )
    for query_group in query_groups:
        used = {vector for vectors in query_group.vectors_by_query.values() for vector in vectors.values()}
        assert (
            used
            <= set(query_group.noisy_statistics)
            == {vector for own in query_group.composition_sets for vector in own}
        )
    return add_diagnostic_counts(query_groups, Decimal(pick(draw, ("0", "0", "0.2"))), schema)


def attack(draw: np.random.Generator, of: Callable[..., Opened], root: Path, seen: Counter[str]) -> None:
    columns, alone = pick(draw, FOLDED), bool(draw.random() < 0.5)
    open_one = of(columns, alone)
    people = {f"p{number}": rows_of(draw, f"p{number}", draw.random() < 0.4) for number in range(draw.integers(2, 5))}
    rest = rows_of(draw, None, hostile=True) if draw.random() < 0.3 else []
    new = rows_of(draw, "new", hostile=draw.random() < 0.8)
    root.mkdir()
    first = root / "schema"
    first.mkdir()
    schema = attach_public_tables(
        open_one([row for own in people.values() for row in own], first), public_table(PUBLIC, on={"key": "named"})
    ).schema
    query_groups = plan_of(draw, schema)
    every = [row for own in people.values() for row in own] + rest
    base = counted(open_one, every, root / "base", query_groups)
    assert base.exact is not None, base.error
    others = {"added": every + new, **{f"without {p}": [row for row in every if row[0] != p] for p in list(people)[:1]}}
    for name, rows in others.items():
        order = draw.permutation(len(rows))
        seen["moved"] += check(
            query_groups, base, counted(open_one, [rows[i] for i in order], root / name, query_groups)
        )
        seen["neighbors"] += 1
    seen["tables"] += 1
    seen["units"] += sum(len(query_group.composition_sets) for query_group in query_groups)
    seen.update(question.kind for query_group in query_groups for question in query_group.ordered_queries)


def run(tables: int, of: Callable[..., Opened], root: Path, seed: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number in range(tables):
        try:
            attack(np.random.default_rng([seed, number]), of, root / str(number), seen)
        except AssertionError as failure:
            raise AssertionError(f"table {number}: {failure}") from None
    return seen


def test_one_person_moves_no_unit_beyond_what_it_declares_in_partitioned_folders(tmp_path: Path) -> None:
    seen = run(FOLDERS, of_folders, tmp_path, 1)
    assert seen["tables"] == FOLDERS and seen["moved"] > FOLDERS


def test_one_person_moves_no_unit_beyond_what_it_declares_in_folders_that_spark_reads(tmp_path: Path) -> None:
    if not SPARK_TABLES:
        pytest.skip("a minute and more a table: TIGHTROPE_SPARK_TABLES=1")
    seen = run(SPARK_TABLES, of_spark, tmp_path, 2)
    assert seen["tables"] == SPARK_TABLES and seen["moved"] > SPARK_TABLES


def of_arrow(*_: Any) -> Opened:
    return lambda rows, _: open_source(arrow(rows))


@pytest.mark.parametrize(
    "kind", ["spread", "rows of persons", "sums of persons", "bins of persons", "share of persons"]
)
def test_one_person_moves_shared_sums_and_values_of_persons_as_declared(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.ASKED", {kind: ASKED[kind]})
    seen = run(2, of_arrow, tmp_path, 3)
    assert seen["tables"] == 2 and seen["moved"] > 2


def test_a_person_with_two_values_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = bounding.person_rows
    monkeypatch.setattr(f"{__name__}.ASKED", {"rows of persons": ASKED["rows of persons"]})
    monkeypatch.setattr(
        bounding, "person_rows", lambda *parts, wide: (rows := once(*parts, wide=wide)).union(rows, distinct=False)
    )
    with pytest.raises(AssertionError, match="beyond"):
        run(10, of_arrow, tmp_path, 4)


def test_a_person_who_is_not_bounded_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "persons_over_bound", lambda narrow, _: narrow.table.filter(False).select("person"))
    with pytest.raises(AssertionError, match="beyond"):
        run(10, of_folders, tmp_path, 1)
