"""tightrope noise: every family at one budget, side by side."""

from __future__ import annotations

import json

import pytest

from tightrope.documents import Budget
from tightrope.noise.noise_limits import noise_limits


def test_the_closed_form_is_the_best_at_sensitivity_one(run):
    shown = run("noise", "--epsilon", "1", "--delta", "1e-6", "--total-variation", "0.3", "--json")
    rows = {row["family"]: row for row in json.loads(shown.out)["families"]}
    assert rows["least noise (closed form)"]["ratio"] == pytest.approx(1, abs=1e-12)
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
    for words in ("discrete staircase", "discrete Gaussian", "unbounded", "ratio", "E|X|"):
        assert words in shown.out
    assert "closed form" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 110


def test_the_ratio_is_to_a_proven_limit(run):
    """Theory §4.2: the optimum at (1, 1e-6, 3) is 17.236561; real-valued 1.918149 · 9 is not reached by Laplace."""
    found = json.loads(
        run("noise", "--epsilon", "1", "--delta", "1e-6", "--sensitivity", "3", "--cost", "squared", "--json").out
    )
    certificate = found["certificate"]
    assert certificate["lower"] == pytest.approx(17.23656069647663, rel=1e-6)
    assert certificate["argument"]["kind"] == "dual"
    rows = {row["family"]: row for row in found["families"]}
    assert all(row["ratio"] >= 1 for row in rows.values())
    assert rows["least noise (linear program)"]["ratio"] < 1 + 1e-6
    assert rows["rounded Gaussian"]["ratio"] == pytest.approx(9.31, rel=1e-3)
    real = {row["family"]: row["ratio"] for row in found["real_valued"]}
    assert real["analytic Gaussian"] == pytest.approx(9.31, rel=1e-2)
    assert 1 < real["truncated Laplace"] < 1.05
    assert found["limits"]["lower"] <= found["limits"]["upper"]


def test_real_limits_are_those_of_noise_limits(run):
    shown = json.loads(run("noise", "--epsilon", "1", "--delta", "0.3", "--json").out)
    found = noise_limits(Budget(epsilon=1, delta=0.3))
    assert (shown["limits"]["lower"], shown["limits"]["upper"]) == (found.lower, found.upper)
    assert all(row["mean_absolute_error"] >= found.upper * (1 - 1e-9) for row in shown["real_valued"])


def test_several_releases(run):
    words = ("noise", "--epsilon", "1", "--delta", "1e-6", "--releases", "10", "--cost", "squared")
    found = json.loads(run(*words, "--json").out)
    assert found["families"][0]["cost"] <= 158.7
    assert found["certified"][0]["delta"] <= 1e-6
    shown = run(*words)
    assert "for each of 10 answers" in shown.out
    assert "certified from the integer weights" in " ".join(shown.out.split())
    assert 142.3 < found["limits"]["lower"] < found["limits"]["upper"] == found["families"][0]["cost"]
    assert "Gap to the best noise here: factor 1.12" in " ".join(shown.out.split())


def test_a_picture(run, tmp_path):
    assert run("noise", "--epsilon", "1", "--delta", "1e-6", "--plot", tmp_path / "laws.svg").code == 0
    assert (tmp_path / "laws.svg").read_text(encoding="utf-8").startswith("<?xml")
    run("noise", "--epsilon", "1", "--delta", "1e-6", "--plot", tmp_path / "laws.doc").refused_with("plot", ".png")
    run("noise", "--epsilon", "1", "--delta", "1e-6", "--plot", tmp_path / "no" / "laws.png").refused_with("plot")


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_a_delta_that_no_table_can_tell(run, sensitivity):
    """Families doubled a table of 128 bits to gigabytes in search of δ = 10⁻⁴⁰; now they say that none keeps it."""
    found = run("noise", "--epsilon", "1", "--delta", "1e-40", "--sensitivity", str(sensitivity), "--json")
    rows = {row["family"]: row for row in json.loads(found.out)["families"]}
    assert rows["discrete Laplace"]["possible"]
    assert "no size of this noise meets" in rows["discrete Gaussian"]["reason"]


def test_noise_of_a_million_cells_is_refused_with_advice(run):
    run("noise", "--epsilon", "1e-9", "--delta", "1e-6").refused_with("larger budget", "coarser units")


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
        (("--epsilon", "1", "--delta", "1e-6", "--cost", "cubed"), "cost='cubed'"),
        (("--epsilon", "1", "--delta", "1e-6", "--releases", "0"), "releases=0"),
    ],
)
def test_nonsense(run, words, said):
    run("noise", *words).refused_with(said)
