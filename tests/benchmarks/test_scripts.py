"""Every benchmark runs against the package as it is: first its workers in this process, then the scripts themselves."""

from __future__ import annotations

import importlib
import json
import math
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPTS: dict[str, list[str]] = {
    "accounting": ["--job", "gaussian x100", "--repeat", "1"],
    "audits": ["--runs", "300"],
    "collection": ["--rows", "1000"],
    "composed_noise": ["--budget", "1", "1e-4", "--releases", "1", "2"],
    "executors": ["--rows", "30000", "--executors", "1"],
    "jobs": ["--releases", "2", "--only", "ages"],
    "larger": ["--share", "0.00001", "--job", "plane 10000", "--job", "Hadamard", "--job", "release"],
    "ledger": ["10", "--charges", "4"],
    "local": ["--job", "OUE", "--people", "2000", "--repeat", "1", "--runs", "2"],
    "noise": ["--job", "table of 50", "--size", "10000", "--warm-up", "10000", "--repeat", "1"],
    "release": ["--rows", "3000", "--repeat", "1"],
    "small_rates": ["--only", "0", "--repeat", "1"],
    "studio": ["--only", "wages", "--stops", "2", "--pause", "0"],
    "transport": ["--job", "line 1000", "--job", "metric map 4x4", "--size", "1000", "--repeat", "1"],
}
"""The smallest useful settings."""
PEERS_OPTION = {"accounting", "local", "noise", "transport"}
SEVERAL_SECONDS = set(SCRIPTS) - {"accounting", "small_rates"}


@pytest.fixture
def load_script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a script by name, as if it were started in its folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def are_finite(numbers: dict[str, float], *, but: str = "") -> bool:
    return bool(numbers) and all(math.isfinite(value) for name, value in numbers.items() if name != but)


def test_accounting_workers(load_script: Any) -> None:
    accounting = load_script("accounting")
    for name in ("gaussian x100", "laplace x10", "response x10^4", "noise for advantage 0.1"):
        result = accounting.measure_tool("tightrope", accounting.JOBS[name], 1)
        (_, upper), truth = result["answer"], accounting.JOBS[name].truth
        assert math.isfinite(result["seconds"]) and upper > 0
        assert truth is None or upper == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("name", ["k-RR", "OUE", "hashing", "Hadamard", "subsets"])
def test_local_workers(name: str, load_script: Any) -> None:
    local = load_script("local")
    assert set(local.JOBS) == {"k-RR", "OUE", "hashing", "Hadamard", "subsets"}
    options = Namespace(people=1000, repeat=1, runs=3)
    assert local.measure_rate("tightrope", name, options)["rate"] > 0
    accuracy = local.measure_accuracy(name, options)
    assert 0.5 < accuracy["error"] < 2 and 0.9 < accuracy["coverage"] <= 1


def test_noise_workers(load_script: Any) -> None:
    noise = load_script("noise")
    options = Namespace(size=1000, warm_up=1000, repeat=1)
    for job in noise.JOBS.values():
        rates = noise.measure_rate("tightrope", job, options)
        assert are_finite(rates) and rates["rate"] > 0


def test_transport_workers(load_script: Any) -> None:
    transport = load_script("transport")
    for name, job in transport.make_jobs(100).items():
        small = replace(job, problem=job.small_problem)
        ours = transport.measure_solver(small, "ours", 1)
        assert are_finite(ours, but="gap"), name
        if job.peer == "pot" and job.theirs is not None:
            theirs = transport.measure_solver(small, "pot", 1)["distance"]
            assert ours["distance"] == pytest.approx(theirs, rel=1e-6), name


def test_collection_steps(load_script: Any, tmp_path: Path) -> None:
    collection = load_script("collection")
    collection.make_table(tmp_path / "people.parquet", 100)
    for name in collection.STEPS:
        step = collection.measure_step(name, tmp_path / "people.parquet", tmp_path)
        assert are_finite(step) and step["rows"] == 100, name


def test_release_jobs(load_script: Any, tmp_path: Path) -> None:
    release = load_script("release")
    path = tmp_path / "people.parquet"
    release.write_people(path, 2000)
    for name in ("GROUP BY person", "collect, given keys", release.THREE_QUESTIONS):
        result = release.measure_job(name, path, 1, None)
        assert result["mebibytes"] > 0 and result["wall"][0] > 0, name
    assert math.isfinite(result["answers"][0]["count_error"]) and math.isfinite(result["answers"][0]["median"])


def test_larger_jobs(load_script: Any, tmp_path: Path) -> None:
    larger = load_script("larger")
    for name in ("plane 10000", "table draws", "k-RR", "Hadamard"):
        assert are_finite(larger.measure_job(name, 100, tmp_path)), name


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_settings_exist_for_every_area(name: str, load_script: Any) -> None:
    assert {area.name for area in load_script("all").AREAS} == set(SCRIPTS)
    assert (BENCHMARKS / f"{name}.py").is_file()


def run_script(name: str, options: list[str], results: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options, "--json", str(results)]
    command += ["--peers", sys.executable] if name in PEERS_OPTION else []
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SEVERAL_SECONDS else ()) for name in sorted(SCRIPTS)]
)
def test_scripts_print_numbers_and_no_errors(name: str, tmp_path: Path) -> None:
    if name == "executors" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    process = run_script(name, SCRIPTS[name], tmp_path / "results.json")
    output = process.stdout + process.stderr
    assert process.returncode == 0, output
    assert not re.search(r"Error|Traceback|\bnan\b|\binf\b|\bNone\b", output), output
    lines = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["lines"]
    assert lines and {line["area"] for line in lines} == {name.replace("_", " ")}
    for line in lines:
        assert line["job"] and line["measured"] and math.isfinite(line["ours"]) and line["ours"] >= 0, line


def test_a_worker_that_fails_makes_the_script_fail(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    process = run_script("local", ["--job", "OUE", "--people", "-1", "--repeat", "1", "--runs", "1"], results)
    assert process.returncode == 1
    assert "no answer: OUE, M people a CPU s: tightrope: ValueError" in process.stderr
    assert "not installed" not in process.stderr  # a missing peer is not an error
    assert all(math.isnan(line["ours"]) for line in json.loads(results.read_text(encoding="utf-8"))["lines"])
