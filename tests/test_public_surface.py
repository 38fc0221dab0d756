"""The public names are a contract, and importing them costs next to nothing."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable

import pytest

import tightrope as tr
from tightrope.release.answers import Answer, Answers
from tightrope.release.plan import Plan

PROMISED = {
    "Bounds",
    "Budget",
    "Guarantee",
    "PrivacyLoss",
    "Session",
    "approx_dp",
    "calibrate",
    "comparison",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_staircase",
    "discrete_truncated_laplace",
    "from_pair",
    "from_points",
    "from_rdp",
    "from_zcdp",
    "gaussian",
    "laplace",
    "histogram",
    "least_noise",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mixture_of_gaussians",
    "mode",
    "noise_limits",
    "proportion",
    "public_table",
    "quantile",
    "quantiles",
    "randomized_response",
    "ratio",
    "regression",
    "standard_deviation",
    "staircase",
    "sum",
    "suppressed_count",
    "top_k",
    "truncated_laplace",
    "variance",
}
FORMER = {"lookup", "other", "share", "top"}
PARAMETERS = {
    tr.Session: "source privacy_unit budget max_rows max_rows_per_group max_groups table types public_tables",
    tr.Session.plan: "questions where budget_fraction expected_rows margin_of_error key bias_check comparisons",
    tr.count: "where by keys weight name max_rows_per_group max_groups margin_of_error title description unit means "
    "per_person "
    "round_to",
    tr.gaussian: "scale sensitivity",
    tr.staircase: "epsilon sensitivity gamma",
    tr.truncated_laplace: "epsilon delta sensitivity",
    tr.approx_dp: "epsilon delta total_variation",
    tr.mixture_of_gaussians: "sensitivities probabilities scale",
    tr.least_noise: "budget sensitivity cost integer shape releases",
}
BOUNDS = {
    tr.mean: {"bounds"},
    tr.ratio: {"bounds", "denominator_bounds"},
    tr.covariance: {"bounds", "other_bounds"},
    tr.correlation: {"bounds", "other_bounds"},
    tr.regression: {"bounds", "on_bounds"},
}
METHODS = {
    tr.PrivacyLoss: "delta delta_bounds epsilon epsilon_bounds total_variation tradeoff true_positive_rate "
    "gaussian_limit rdp rdp_bounds zcdp zcdp_bounds random_allocation poisson_sample subset_sample group erase method "
    "truncated_poisson_sample neighbors plot",
    tr.Session: "plan spent suggest_bounds suggest_max_rows privacy_unit",
    Plan: "release dry_run answers budget_fraction table frontier plot",
    Answer: "to_pandas to_polars to_arrow value lower upper __arrow_c_stream__ _repr_html_ plot",
    Answers: "certificate comparisons difference ratio bias to_json to_csv to_parquet report",
}
HEAVY = {"duckdb", "ibis", "jinja2", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "scipy", "typer"}


@pytest.mark.parametrize("function", list(PARAMETERS))
def test_parameters_have_their_names_in_their_order(function: Callable[..., object]) -> None:
    parameters = list(inspect.signature(function).parameters)
    assert [name for name in parameters if name != "self"] == PARAMETERS[function].split()


@pytest.mark.parametrize("kind", list(BOUNDS))
def test_bounds_have_the_names_of_their_columns(kind: type) -> None:
    assert BOUNDS[kind] == {name for name in inspect.signature(kind).parameters if name.endswith("bounds")}


@pytest.mark.parametrize("kind", list(METHODS))
def test_methods_have_their_names(kind: type) -> None:
    assert [name for name in METHODS[kind].split() if not hasattr(kind, name)] == []


def test_former_names_are_gone() -> None:
    assert not FORMER & set(tr.__all__)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_all_is_sorted_complete_and_documented() -> None:
    assert tr.__all__ == sorted(set(tr.__all__))
    assert set(tr.__all__) >= PROMISED | {
        "audit",
        "channels",
        "local",
        "noise",
        "reporting",
        "tables",
        "training",
        "transport",
    }
    for name in tr.__all__:
        assert getattr(tr, name).__doc__, name
        assert name in dir(tr)


def test_a_star_import_brings_exactly_the_public_names() -> None:
    brought: dict[str, object] = {}
    exec("from tightrope import *", brought)  # noqa: S102
    assert set(brought) - {"__builtins__"} == set(tr.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="laplac"):
        tr.laplac  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    loaded = run("import sys, tightrope; print(*sorted({name.split('.')[0] for name in sys.modules}))").split()
    assert not HEAVY & set(loaded)


def test_accounting_loads_no_engine_and_no_pictures() -> None:
    code = (
        "import sys, tightrope as tr; tr.laplace(scale=1).loss.delta(1); print(*{n.split('.')[0] for n in sys.modules})"
    )
    assert not (HEAVY - {"numpy", "scipy"}) & set(run(code).split())


def test_importing_costs_less_than_a_twentieth_of_a_second() -> None:
    """Processor time of the import alone, best of three."""
    code = "import time; start = time.process_time(); import tightrope; print(time.process_time() - start)"
    assert min(float(run(code)) for _ in range(3)) < 0.05
