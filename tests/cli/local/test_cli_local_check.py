"""tightrope local: plans and channels from the command line."""

from __future__ import annotations

import json
import math
import re

import pytest


def test_plan(run):
    words = ("local", "plan", "distribution", "--k", "16", "--epsilon", "1", "--people", "200000")
    found = json.loads(run(*words, "--json").out)
    assert found["least_people"] <= found["people"] == 200_000
    assert found["least_error"] <= found["error"]
    shown = run(*words).out
    assert "Lower bounds that hold for every mechanism" in shown
    assert shown.count("people if people do not see each other's reports") == 1


def test_check(run, tmp_path):
    table = tmp_path / "channel.csv"
    table.write_text("0.75,0.25\n0.25,0.75\n", encoding="utf-8")
    found = json.loads(run("local", "check", table, "--json").out)
    assert found["epsilon"] == pytest.approx(math.log(3))
    assert found["total_variation"] == pytest.approx(0.5)
    assert found["kl_contraction"] == pytest.approx(0.25)
    assert found["capacity"] == pytest.approx(math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    table.write_text("\ufeff0.75,0.25\n\n0.25,0.75\n", encoding="utf-8")  # as spreadsheets write it
    shown = run("local", "check", table)
    assert "right at most 75 % of the time" in shown.out


def test_printed_upper_bounds_are_rounded_up(run, tmp_path):
    path = tmp_path / "matrix.csv"
    path.write_text("0.6666666666666667,0.3333333333333333\n0.3333333333333333,0.6666666666666667\n", encoding="utf-8")
    exact = json.loads(run("local", "check", path, "--json").out)
    printed = " ".join(run("local", "check", path).out.split())
    contraction = re.search(r"KL contraction coefficient: ([0-9.e-]+);.* at most ([0-9.e-]+) times", printed)
    capacity = re.search(r"channel capacity: ([0-9.e-]+) nats", printed)
    assert all(float(number) >= exact["kl_contraction"] for number in contraction.groups())
    assert float(capacity[1]) >= exact["capacity"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n0.5,0.5\n", "numbers"),
        ("0.5,0.6\n0.5,0.5\n", "1"),
        ("0.5,0.5\n1.0\n", "the same number of values"),
        ("", "the file is empty"),
        ("0.5;0.5\n", "commas"),
        ("nan,1\n0.5,0.5\n", ""),
    ],
)
def test_bad_channels(run, tmp_path, text, said):
    table = tmp_path / "channel.csv"
    table.write_text(text, encoding="utf-8")
    run("local", "check", table).refused_with(said)


def test_nonsense(run, tmp_path):
    run("local", "check", tmp_path / "none.csv").refused_with("none.csv", "cannot be read")
    run("local", "plan", "mean", "--epsilon", "1").refused_with("people")
    run("local", "plan", "mean", "--epsilon", "nan", "--people", "5").refused_with("epsilon")
    run("local", "plan", "mode", "--epsilon", "1", "--people", "5").refused_with("question")
    words = ("local", "plan", "mean", "--epsilon", "1", "--people", "5", "--k", "3")
    run(*words, "--bounds", "0,1").refused_with("--k 3: is only for 'distribution'")
    words = ("local", "plan", "distribution", "--epsilon", "1", "--people", "5", "--k", "3")
    run(*words, "--bounds", "0,1").refused_with("--bounds 0,1: is only for 'mean'")


def test_the_question_is_checked_first(run):
    run("local", "plan", "color", "--epsilon", "1").refused_with("unknown question 'color'")
    run("local", "plan", "distributon", "--epsilon", "1").refused_with("did you mean 'distribution'?")
    words = ("local", "plan", "mean", "--epsilon", "1")
    run(*words).refused_with("--people, --error: neither is given")
    run(*words, "--people", "4", "--error", "1").refused_with("both are given")
