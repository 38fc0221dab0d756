"""The public names are a contract, and importing them costs next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tightrope as tr

PROMISED = {
    "Bounds",
    "Budget",
    "Guarantee",
    "PrivacyLoss",
    "Session",
    "approx_dp",
    "calibrate",
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
    "gaussian",
    "laplace",
    "mean",
    "other",
    "randomized_response",
    "ratio",
    "regression",
    "share",
    "standard_deviation",
    "staircase",
    "sum",
    "top",
    "truncated_laplace",
    "variance",
}
HEAVY = {"duckdb", "ibis", "jinja2", "matplotlib", "numpy", "pandas", "polars", "pyarrow", "scipy", "typer"}


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
