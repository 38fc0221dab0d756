"""tightrope noise: every family at one budget, side by side."""

from __future__ import annotations

import json

import pytest


def test_the_closed_form_is_the_best_at_sensitivity_one(run):
    shown = run("noise", "--epsilon", "1", "--delta", "1e-6", "--total-variation", "0.3", "--json")
    rows = {row["family"]: row for row in json.loads(shown.out)["families"]}
    assert rows["least noise (closed form)"]["ratio"] == 1
    assert all(row["total_variation"] <= 0.3 for row in rows.values())
    assert rows["discrete Laplace"]["worst_error"] is None  # infinite; JSON has no infinity


def test_known_numbers(run):
    """E|X| of the optimum at (1, 1e-6), theory §4.1."""
    rows = json.loads(run("noise", "--epsilon", "1", "--delta", "1e-6", "--json").out)["families"]
    assert rows[0]["mean_absolute_error"] == pytest.approx(0.850902115757, rel=1e-9)
    assert rows[0]["half_width_95"] == 3


def test_text(run):
    shown = run("noise", "--epsilon", "1", "--delta", "1e-6", "--sensitivity", "3")
    assert shown.code == 0
    for words in ("discrete staircase", "discrete Gaussian", "no limit", "ratio", "E|X|"):
        assert words in shown.out
    assert "closed form" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 110


def test_without_delta_some_families_are_impossible(run):
    shown = run("noise", "--epsilon", "1", "--delta", "0")
    assert shown.code == 0
    assert "discrete Gaussian: not possible, needs delta > 0" in " ".join(shown.out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--epsilon", "1"), "--delta"),
        (("--epsilon", "nan", "--delta", "1e-6"), "epsilon='nan'"),
        (("--epsilon", "inf", "--delta", "1e-6"), "epsilon='inf'"),
        (("--epsilon", "-1", "--delta", "1e-6"), "epsilon='-1'"),
        (("--epsilon", "0", "--delta", "1e-6"), "epsilon='0'"),
        (("--epsilon", "one", "--delta", "1e-6"), "epsilon='one'"),
        (("--epsilon", "1", "--delta", "1"), "delta='1'"),
        (("--epsilon", "1", "--delta", "-1e-6"), "delta='-1e-6'"),
        (("--epsilon", "1", "--delta", "1e-6", "--sensitivity", "0"), "sensitivity=0"),
        (("--epsilon", "1", "--delta", "1e-6", "--sensitivity", "1.5"), "--sensitivity"),
        (("--epsilon", "1", "--delta", "1e-6", "--total-variation", "2"), "total_variation='2'"),
    ],
)
def test_nonsense(run, words, said):
    run("noise", *words).refused_with(said)
