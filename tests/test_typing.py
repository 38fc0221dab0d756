"""What a user's type checker sees of the public names: types, and no Any where one is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tightrope

USES = """
import tightrope as tr
from typing_extensions import assert_type

budget = tr.Budget(epsilon=1, delta="1e-8")
loss = 10 * tr.gaussian(scale=2).loss + tr.laplace(scale=1.0).loss
assert_type(loss, tr.PrivacyLoss)
assert_type(loss.poisson_sample(0.1), tr.PrivacyLoss)
assert_type(loss.total_variation(), float)
assert_type(loss.total_variation_bounds(), tr.Bounds)
session = tr.Session("visits.parquet", privacy_unit="user", max_rows=3, budget=budget)
plan = session.plan([tr.count(by="city"), tr.mean("minutes", bounds=(0, 90))], budget_fraction="0.5")
assert_type(tr.median("minutes", bounds=(0, 90), by="city", weight=4), tr.quantile)
assert_type(tr.maximum("minutes", bounds=(0, 90)), tr.maximum)
tr.gaussian(scale="wide")  # wrong
tr.mean("minutes", bounds=(0, 90), wieght=4)  # wrong
tr.count(by="city", weight="4")  # wrong
tr.regression("minutes", on="age", bounds=(0, 90))  # wrong
tr.Session("visits.parquet", budget=budget)  # wrong
session.plan(tr.count(), budget_fraction="0.5", sahre=1)  # wrong
tr.local.k_randomized_response(1.0, 4).estimate([1, 2, 3])
tr.transport.wasserstein([0.5, 0.5], [0.25, 0.75], tr.transport.line([0.0, 1.0]))
"""


def test_a_user_s_type_checker(tmp_path: Path) -> None:
    file = tmp_path / "uses.py"
    file.write_text(USES)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path / "cache"),
        "uses.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    wrong = [number for number, line in enumerate(USES.splitlines(), 1) if line.endswith("# wrong")]
    found = sorted({int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line})
    assert found == wrong, done.stdout


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(tightrope.__file__).parent / "py.typed").exists()
