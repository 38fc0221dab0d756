"""Perturbing and counting tables: on every engine, every row reports, by the mechanism's own law, and only once."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.tables.every_engine import ENGINES
from tightrope import local
from tightrope.errors import EngineError, InputError, SchemaError, TightropeError
from tightrope.local.collection import (
    perturb_table,
    report_bytes,
    report_schema,
    reports_from_arrow,
    reports_to_arrow,
    tally_table,
)
from tightrope.tables import Table, open_source

K = 11
SHARES = {
    "k-RR": local.k_randomized_response(2.0, K),
    "silent": local.response_with_erasure(2.0, 0.3, K),
    "unary": local.unary_encoding(2.0, K),
    "rappor": local.rappor(4.0, K),
    "subsets": local.subset_selection(2.0, K),
    "hashing": local.hashing(2.0, K),
    "hadamard": local.hadamard(2.0, K),
}
MEANS = {
    "duchi": local.duchi(2.0, bounds=(0.0, 10.0)),
    "piecewise": local.piecewise(2.0, bounds=(0.0, 10.0)),
    "hybrid": local.hybrid(2.0, bounds=(0.0, 10.0)),
}
CITIES = [f"city {number}" for number in range(K)]
N = 20_000
NUMBERS = np.arange(N) % K % 7
PEOPLE = pa.table(
    {
        "city": pa.array([CITIES[number] for number in NUMBERS]).dictionary_encode(),
        "number": pa.array(NUMBERS, pa.int32()),
        "score": pa.array(NUMBERS, pa.float64()),
        "id": pa.array(range(N)),
    }
)
ALPHA = 1e-6
PRIVATE = "Anna Schmidt"
Opened = Callable[[pa.Table], Table]


@pytest.fixture(params=sorted(ENGINES))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    return lambda arrow: ENGINES[request.param](arrow, tmp_path)


def everywhere(*on_all: str, names: Any) -> list[tuple[str, str]]:
    """Engines and mechanisms: all mechanisms on one engine, these on all, one of each form of report."""
    return [(engine, name) for engine in sorted(ENGINES) for name in names if engine == "parquet" or name in on_all]


def reports_of(mechanism: Any, path: Path) -> np.ndarray:
    return reports_from_arrow(mechanism, pq.read_table(path)["report"])


def within(shares: Any, truth: np.ndarray, sigma: np.ndarray) -> bool:
    return bool(np.all(np.abs(shares.value - truth) < 6 * sigma))


@pytest.mark.parametrize(("engine", "name"), everywhere("hashing", "unary", names=SHARES))
def test_shares_of_a_table(engine: str, name: str, tmp_path: Path) -> None:
    mechanism, path = SHARES[name], tmp_path / "out.parquet"
    assert perturb_table(mechanism, ENGINES[engine](PEOPLE, tmp_path), "city", path, categories=CITIES) == N
    tally, reports = tally_table(mechanism, path), reports_of(mechanism, path)
    assert tally.people == N == len(reports)
    assert tally.counts.tolist() == mechanism.tally_reports(reports).counts.tolist()
    assert tally.answered == mechanism.tally_reports(reports).answered
    truth = np.bincount(NUMBERS, minlength=K) / N
    sigma = np.sqrt([mechanism.estimate_variance(share, N) for share in truth])
    assert within(mechanism.estimate_tally(tally), truth, sigma)


@pytest.mark.parametrize(("engine", "name"), everywhere("piecewise", names=MEANS))
def test_means_of_a_table(engine: str, name: str, tmp_path: Path) -> None:
    mechanism, path = MEANS[name], tmp_path / "out.parquet"
    assert perturb_table(mechanism, ENGINES[engine](PEOPLE, tmp_path), "score", path) == N
    tally, reports = tally_table(mechanism, path), reports_of(mechanism, path)
    assert tally.counts.tolist() == np.bincount(reports, minlength=mechanism.possible_report_count).tolist()
    found, direct = mechanism.estimate_tally(tally), mechanism.estimate(reports)
    for end in ("value", "lower", "upper"):
        assert getattr(found, end) == pytest.approx(getattr(direct, end), rel=1e-12)
    assert within(found, NUMBERS.mean(), np.sqrt(mechanism.worst_variance / N))


@pytest.mark.parametrize(("engine", "name"), everywhere("hashing", "subsets", names=SHARES))
def test_reports_are_counted_where_they_are(engine: str, name: str, tmp_path: Path) -> None:
    """On Spark and in files, whatever the engine made of their type."""
    mechanism = SHARES[name]
    reports = mechanism.perturb(NUMBERS[:3000])
    column = reports_to_arrow(mechanism, reports)
    table = pa.table({"answers": column if mechanism.possible_report_count else column.cast(pa.binary())})
    expected = mechanism.tally_reports(reports).counts.tolist()
    assert tally_table(mechanism, ENGINES[engine](table, tmp_path), column="answers").counts.tolist() == expected
    assert tally_table(mechanism, pa.table({"report": column})).counts.tolist() == expected


def test_reports_have_the_mechanisms_law(opened: Opened, tmp_path: Path) -> None:
    mechanism, path = local.response_with_erasure(1.0, 0.3, 4), tmp_path / "out.parquet"
    perturb_table(mechanism, opened(pa.table({"v": [2] * N})), "v", path)
    keep, other, silent = (
        float(p)
        for p in (
            mechanism.true_support_probability,
            mechanism.false_support_probability,
            1 - mechanism.answer_probability,
        )
    )
    expected = np.array([other, other, keep, other, silent]) * N
    assert stats.chisquare(np.bincount(reports_of(mechanism, path), minlength=5), expected).pvalue > ALPHA


def test_two_runs_draw_two_reports(opened: Opened, tmp_path: Path) -> None:
    table, mechanism = opened(PEOPLE), SHARES["k-RR"]
    for name in ("a.parquet", "b.parquet"):
        perturb_table(mechanism, table, "number", tmp_path / name, keep=["id"])
    first, second = (pq.read_table(tmp_path / name).sort_by("id") for name in ("a.parquet", "b.parquet"))
    assert first["id"].to_pylist() == list(range(N))
    same = np.mean(first["report"].to_numpy() == second["report"].to_numpy())
    expected = float(mechanism.true_support_probability**2 + (K - 1) * mechanism.false_support_probability**2)
    assert abs(same - expected) < 6 * np.sqrt(expected / N)


def test_partitions_of_spark_draw_independent_reports(tmp_path: Path) -> None:
    """Each of 8 partitions reports one value; a repeated state would repeat a row of reports."""
    from tests.tables.every_engine import spark

    mechanism = local.hashing(1.0, 1 << 20)
    frame = spark().range(0, 8 * 1000, 1, 8).selectExpr("cast(id div 1000 as int) as part", "5 as v")
    perturb_table(mechanism, frame, "v", tmp_path / "out", keep=["part"])
    back = pq.read_table(tmp_path / "out").to_pandas().groupby("part")["report"].apply(list)
    assert {len(reports) for reports in back} == {1000}
    assert len({tuple(reports[:20]) for reports in back}) == len(back) == 8
    pairs = [(a, b) for a in back for b in back if a is not b]
    assert max(np.mean(np.array(a) == np.array(b)) for a, b in pairs) < 0.01


def test_what_is_no_category_is_a_uniform_one(opened: Opened, tmp_path: Path) -> None:
    sure, path = local.k_randomized_response(40.0, 4), tmp_path / "out.parquet"
    people = pa.table({"v": ["a"] * 1000 + [None] * 2000 + ["zebra"] * 2000})
    assert perturb_table(sure, opened(people), "v", path, categories=list("abcd")) == 5000
    counts = np.bincount(reports_of(sure, path), minlength=4)
    assert stats.chisquare(counts - [1000, 0, 0, 0]).pvalue > ALPHA


def test_whole_numbers_that_are_no_category_are_uniform_ones(tmp_path: Path) -> None:
    sure, odd = local.k_randomized_response(40.0, 2), [2**64 - 1, 2**63, 2, 3, None] * 1000
    for number, column in enumerate([pa.array(odd, pa.uint64()), pa.array([-1, 2, 9, -5, None] * 1000)]):
        path = tmp_path / f"{number}.parquet"
        perturb_table(sure, pa.table({"v": column}), "v", path)
        assert stats.chisquare(np.bincount(reports_of(sure, path), minlength=2)).pvalue > ALPHA


def test_truth_values_are_two_categories(opened: Opened, tmp_path: Path) -> None:
    sure, path = local.binary_with_erasure(40.0, 1.0), tmp_path / "out.parquet"
    perturb_table(sure, opened(pa.table({"v": [True, False, True]})), "v", path)
    assert sorted(reports_of(sure, path).tolist()) == [0, 1, 1]
    with pytest.raises(SchemaError, match="kind integer, but it is boolean"):
        perturb_table(SHARES["k-RR"], opened(pa.table({"v": [True]})), "v", tmp_path / "other.parquet")


def test_numbers_that_are_none_are_in_the_middle_and_far_ones_at_an_end(opened: Opened, tmp_path: Path) -> None:
    mechanism, path = local.duchi(40.0, bounds=(0.0, 10.0)), tmp_path / "out.parquet"
    odd = [float("inf"), -float("inf"), 99.0, -99.0, None, float("nan")] * 2000
    perturb_table(mechanism, opened(pa.table({"v": odd})), "v", path)
    counts = np.bincount(reports_of(mechanism, path), minlength=2)
    assert stats.binomtest(int(counts[1]) - 4000, 4000).pvalue > ALPHA


@pytest.mark.parametrize("column", ["number", "score"])
def test_every_kind_of_number_has_a_mean(column: str, tmp_path: Path) -> None:
    assert perturb_table(MEANS["duchi"], PEOPLE, column, tmp_path / "out.parquet") == N


def test_reports_are_compact(tmp_path: Path) -> None:
    sizes = {name: report_bytes(mechanism) for name, mechanism in {**SHARES, **MEANS}.items()}
    assert sizes == {
        **dict.fromkeys(["k-RR", "silent", "hadamard", "duchi"], 1),
        **dict.fromkeys(["unary", "rappor", "subsets", "hashing"], 2),
        **dict.fromkeys(["piecewise", "hybrid"], 4),
    }
    wide = local.k_randomized_response(1.0, 1024)
    perturb_table(wide, PEOPLE, "number", tmp_path / "out.parquet")
    assert pq.read_schema(tmp_path / "out.parquet").field("report").type == pa.uint16()
    assert (tmp_path / "out.parquet").stat().st_size < 2 * N


@pytest.mark.parametrize(
    ("column", "options", "error", "says"),
    [
        ("city", {}, SchemaError, "kind integer, but it is text"),
        ("number", {"categories": CITIES}, SchemaError, "kind text, but it is integer"),
        ("score", {}, SchemaError, "but it is number"),
        ("town", {}, SchemaError, "columns: 'city'"),
        ("city", {"categories": CITIES[1:]}, InputError, "k=11"),
        ("city", {"categories": CITIES[1:] + CITIES[1:2]}, InputError, "without repetitions"),
        ("city", {"categories": CITIES, "keep": ["city"]}, InputError, "itself would be published"),
        ("number", {"keep": ["report"]}, InputError, "unlike each other"),
    ],
)
def test_requests_that_are_refused(column: str, options: dict[str, Any], error: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=says):
        perturb_table(SHARES["k-RR"], PEOPLE, column, tmp_path / "out.parquet", **options)
    assert list(tmp_path.iterdir()) == []


def test_mechanisms_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="categories"):
        perturb_table(MEANS["duchi"], PEOPLE, "score", tmp_path / "out.parquet", categories=CITIES)
    with pytest.raises(InputError, match="reports of one column"):
        perturb_table(local.vector_mean(1.0, 3), PEOPLE, "score", tmp_path / "out.parquet")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="but it is text"):
        perturb_table(MEANS["duchi"], PEOPLE, "city", tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("k-RR", pa.array([1, None])),
        ("k-RR", pa.array([1.0])),
        ("k-RR", pa.array([1, 11])),
        ("k-RR", pa.array([-1])),
        ("unary", pa.array([b"\x00"])),
        ("unary", pa.array([b"\x00\xff"])),
        ("unary", pa.array([b"\x00\x00", None])),
        ("unary", pa.array([1])),
        ("subsets", pa.array([b"\xff\x00"])),
        ("duchi", pa.array([2])),
    ],
)
def test_reports_that_nobody_made(name: str, column: pa.Array) -> None:
    with pytest.raises(InputError) as refusal:
        tally_table({**SHARES, **MEANS}[name], pa.table({"report": column}))
    assert refusal.value.__cause__ is None


def test_a_wrong_report_in_a_spark_table_is_an_engine_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        tally_table(SHARES["k-RR"], ENGINES["spark"](pa.table({"report": [1, 999]}), tmp_path))


def test_no_error_shows_a_value(tmp_path: Path) -> None:
    for column in (pa.array([PRIVATE.encode()]), pa.array([PRIVATE]), pa.array([[PRIVATE]])):
        for attempt in (
            lambda column=column: tally_table(SHARES["unary"], pa.table({"report": column})),
            lambda column=column: perturb_table(
                SHARES["k-RR"], pa.table({"v": column}), "v", tmp_path / "out.parquet", categories=list(range(K))
            ),
        ):
            with pytest.raises(TightropeError) as refusal:
                attempt()
            assert PRIVATE not in "".join(traceback.format_exception(refusal.value))


def test_schemas_say_what_is_written(tmp_path: Path) -> None:
    for name, mechanism in SHARES.items():
        perturb_table(mechanism, open_source(PEOPLE), "number", tmp_path / f"{name}.parquet")
        assert pq.read_schema(tmp_path / f"{name}.parquet").equals(report_schema(mechanism))


def test_a_mean_of_fewer_than_two_reports_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2"):
        MEANS["duchi"].estimate_tally(MEANS["duchi"].tally_reports(np.array([1], dtype=np.uint8)))
