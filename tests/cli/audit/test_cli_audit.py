"""tightrope audit: from files and functions to bounds, verdicts and pictures."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

FUNCTIONS = """
import numpy as np

def noisy(which, runs):
    return np.random.default_rng(which).laplace(which, 1.0, runs)

def rows(which, runs):
    return np.random.default_rng(which).normal(which, 1.0, (runs, 2))

def broken(which, runs):
    return 1 / 0

def nothing(which, runs):
    return None

number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "functions_to_audit", raising=False)
    (tmp_path / "functions_to_audit.py").write_text(FUNCTIONS)
    draw = np.random.default_rng(3)
    lines = [f"{which},{draw.laplace(which):.17g}" for which in (1, 0) * 10_000]
    (tmp_path / "scores.csv").write_text("\n".join(["input,score", *lines]))
    included = draw.random(1_000) < 0.5
    right = draw.random(1_000) < 0.9
    canaries = [f"{int(inside)},{int(inside == guess)}" for inside, guess in zip(included, right, strict=True)]
    (tmp_path / "canaries.csv").write_text("\n".join(["included,score", *canaries]))
    return tmp_path


@pytest.mark.usefixtures("here")
def test_bounds_of_a_file_as_json(run):
    shown = run("audit", "scores.csv", "--json")
    found = json.loads(shown.out)
    assert (shown.code, found["runs"], found["confidence"]) == (0, [10_000, 10_000], 0.99)
    bounds = {row["delta"]: row["at_least"] for row in found["epsilon"]}
    assert 0.8 < bounds[0.0] <= 1 and bounds[0.1] < bounds[0.001]
    assert 0.35 < found["total_variation"] < 1 - math.exp(-0.5)
    assert found["attack_success"] == (1 + found["total_variation"]) / 2
    assert len(found["curve"]["true_positive_rate"]) > 5 and "verdict" not in found


@pytest.mark.usefixtures("here")
def test_a_claim_that_is_too_good_is_refuted_with_exit_code_1(run):
    shown = run("audit", "scores.csv", "--epsilon", "0.7", "--delta", "0.001")
    assert shown.code == 1
    assert "The claim is refuted at 99 % confidence: claimed delta(0.7) <= 0.001, proven delta(0.7) >= 0." in " ".join(
        shown.out.split()
    )
    assert "the best attacker guesses the input correctly at least" in shown.out


@pytest.mark.usefixtures("here")
def test_a_claim_that_holds_is_not_refuted_and_what_was_visible_is_said(run):
    """The halves are new every time: at this confidence a claim that holds is refuted once in 1e12 times."""
    sure = ("--confidence", "0.999999999999")
    shown = run("audit", "scores.csv", "--epsilon", "1", "--delta", "0.001", "--json", *sure)
    verdict = json.loads(shown.out)["verdict"]
    assert shown.code == 0 and not verdict["refuted"]
    assert 1 < verdict["least_detectable"]["randomized response"] < 1.5
    assert verdict["text"].startswith(
        "not refuted at 99.9999999999 % confidence; this test would refute the claim with probability at least 1/2 if "
        "the true epsilon at delta = 0.001 were at least 1."
    )


@pytest.mark.usefixtures("here")
def test_one_run_with_canaries(run):
    found = json.loads(run("audit", "canaries.csv", "--guesses", "800", "--json").out)
    assert (found["canaries"], found["guesses"]) == (1_000, 800)
    assert 0.85 < found["correct"] / 800 < 0.95 and 1.7 < found["epsilon"][0]["at_least"] < 2.4
    shown = run("audit", "canaries.csv", "--guesses", "800", "--epsilon", "1")
    assert shown.code == 1 and "of 800 guesses about 1,000 canaries in one run are correct" in shown.out
    run("audit", "canaries.csv").refused_with("guesses", "before looking at the data")
    run("audit", "canaries.csv", "--guesses", "800", "--plot", "a.png").refused_with("no ROC curve")


@pytest.mark.usefixtures("here")
def test_a_function_is_run_and_only_where_it_is_asked_for(run):
    shown = run("audit", "--python", "functions_to_audit:noisy", "--runs", "5000", "--json")
    assert json.loads(shown.out)["runs"] == [5_000, 5_000]
    assert str(Path.cwd()) not in sys.path
    run("audit", "functions_to_audit:noisy").refused_with("cannot be read", "--python MODULE:FUNCTION")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "name, words",
    [
        ("functions_to_audit:broken", "the function raised ZeroDivisionError"),
        ("functions_to_audit:nothing", "an array of shape ()"),
        ("functions_to_audit:number", "has no function number"),
        ("functions_to_audit", "mechanism:noisy"),
        ("no_such_module:noisy", "importing no_such_module failed"),
        ("functions_to_audit:a b", "mechanism:noisy"),
    ],
)
def test_functions_that_are_none_are_refused(run, name, words):
    run("audit", "--python", name).refused_with("python", words)


@pytest.mark.usefixtures("here")
def test_several_numbers_a_run_and_last_bits_go_through_a_classifier(run):
    pytest.importorskip("sklearn")
    rows = json.loads(run("audit", "--python", "functions_to_audit:rows", "--runs", "4000", "--json").out)
    assert 0.25 < rows["total_variation"] < 0.53  # seven standard deviations to either side
    bits = run("audit", "--python", "functions_to_audit:noisy", "--runs", "6000", "--doubles", "--epsilon", "1")
    assert bits.code == 1  # noise added as doubles: ε = 1 is claimed, and the last bits give more away
    run("audit", "--python", "functions_to_audit:rows", "--doubles").refused_with("needs one number per run")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture(run, here, ending):
    shown = run("audit", "scores.csv", "--epsilon", "0.5", "--plot", f"curve.{ending}")
    assert shown.code == 1 and (here / f"curve.{ending}").stat().st_size > 2_000
    run("audit", "scores.csv", "--plot", "curve.txt").refused_with("plot", ".png")
    run("audit", "scores.csv", "--plot", "no/such/folder.png").refused_with("plot")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "header"),
        ("input,score", "at least one row"),
        ("a,b\n1,2", "header"),
        ("1,secret\n0,2", "line 1"),
        ("input,score\n1,secret", "line 2"),
        ("input,score\n1,2\n1", "line 3"),
        ("input,score\n7,0.5", "line 2"),
        ("input,score\n1,0.5", "per run"),
        ("input,score\n1,0.5\n0,nan", "NaN"),
    ],
)
def test_files_that_are_none_are_refused_without_a_value(run, here, text, words):
    (here / "bad.csv").write_text(text)
    shown = run("audit", "bad.csv")
    shown.refused_with(words)
    assert "secret" not in shown.err


@pytest.mark.usefixtures("here")
def test_one_source_is_needed(run):
    run("audit").refused_with("no samples are given; give a CSV file of samples, or --python")
    run("audit", "scores.csv", "--python", "functions_to_audit:noisy").refused_with("cannot be combined")
    run("audit", "scores.csv", "--confidence", "1").refused_with("confidence")
    run("audit", "scores.csv", "--epsilon", "-1").refused_with("epsilon")


@pytest.mark.usefixtures("here")
def test_options_that_do_not_fit_the_samples(run, here):
    run("audit", "canaries.csv", "--guesses", "5000").refused_with("--guesses 5000", "number of canaries, 1,000")
    run("audit", "scores.csv", "--guesses", "10").refused_with("--guesses", "only for canaries")
    (here / "two.csv").write_text("included,score,other\n1,2,3\n", encoding="utf-8")
    run("audit", "two.csv", "--guesses", "1").refused_with("exactly one column of scores; this one has 2")
    (here / "gap.csv").write_text("input,score\n\n\n1,x\n", encoding="utf-8")
    run("audit", "gap.csv").refused_with("line 4 of gap.csv")


@pytest.mark.usefixtures("here")
def test_few_right_guesses_prove_no_success_of_an_attacker(run):
    shown = " ".join(run("audit", "canaries.csv", "--guesses", "200").out.split())
    assert "One run says little about total variation" in shown and "correctly at least" not in shown
