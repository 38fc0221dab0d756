"""tightrope dpsgd: what a training run costs, and the noise that it needs."""

from __future__ import annotations

import json

import pytest

import tightrope as tr
from tightrope.documents.account import read_training_account
from tightrope.documents.document import to_json_text

RUN = ("--examples", "60000", "--batch", "256", "--delta", "1e-5")
SHORT = ("--examples", "1000", "--batch", "10", "--delta", "1e-4", "--steps", "2000", "--no-compare")


def data(shown):
    assert (shown.code, shown.err) == (0, ""), shown.err
    assert to_json_text(read_training_account(shown.out), ascii_only=True) == shown.out
    return json.loads(shown.out, parse_constant=lambda name: 1 / 0)


def test_the_run_of_the_paper(run):
    found = data(run("dpsgd", *RUN, "--noise", "1.3", "--epochs", "15", "--json"))
    loss = 3515 * tr.gaussian(scale=1.3).loss.poisson_sample(256 / 60_000)
    assert (found["steps"], found["neighbors"], found["sampling"]) == (3515, "add-remove", "poisson")
    assert found["epsilon"] == found["upper"] == pytest.approx(0.86440991689, rel=1e-10)
    assert 0 < found["lower"] <= found["upper"]
    assert found["total_variation"] == pytest.approx(loss.total_variation(), rel=1e-12)
    assert found["attack_success"] == pytest.approx((1 + loss.total_variation()) / 2, rel=1e-12)
    assert found["attack"][1] == {
        "false_positive_rate": 0.001, "true_positive_rate": pytest.approx(0.0021370816, rel=1e-7),
    }  # fmt: skip
    ways = {way["name"]: way for way in found["comparison"]}
    assert ways["exact"]["epsilon"] == found["epsilon"]
    assert ways["Gaussian limit"]["statement"] == "approximate, not a bound"
    for bound in ("moments accountant", "GI Theorem 2", "Kairouz-Oh-Viswanath"):
        assert ways[bound]["epsilon"] > found["epsilon"]
        assert ways[bound]["total_variation"] > found["total_variation"]


def test_the_noise_for_an_epsilon(run):
    found = data(run("dpsgd", *SHORT, "--epsilon", "1.5", "--json"))
    assert found["upper"] == pytest.approx(1.5, rel=1e-7)
    assert found["upper"] <= 1.5
    assert "comparison" not in found


def test_the_noise_for_an_attack_success(run):
    found = data(run("dpsgd", *SHORT, "--attack-success", "0.53", "--json"))
    assert found["total_variation"] <= 0.06
    assert found["total_variation"] == pytest.approx(0.06, rel=1e-7)
    both = data(run("dpsgd", *SHORT, "--attack-success", "0.53", "--epsilon", "0.1", "--json"))
    assert both["noise_multiplier"] > found["noise_multiplier"]
    assert both["upper"] <= 0.1


def test_subsets_are_about_replacing(run):
    words = ("dpsgd", "--examples", "100", "--batch", "100", "--delta", "1e-4", "--steps", "1", "--no-compare")
    found = data(run(*words, "--noise", "4", "--sampling", "subset", "--json"))
    assert found["neighbors"] == "replace-one"
    assert found["epsilon"] == pytest.approx(tr.gaussian(scale=2).loss.epsilon(1e-4), rel=1e-6)  # 2C at 4C of noise
    shown = run(*words, "--noise", "4", "--sampling", "subset")
    assert "twice the clipping norm" in " ".join(shown.out.split())


def test_text(run):
    shown = run("dpsgd", *RUN, "--noise", "1.3", "--epochs", "15")
    assert (shown.code, shown.err) == (0, "")
    for words in ("3,515 steps", "epsilon = 0.86441 at delta = 1e-5", "relative width", "contour", "54.6 %",
                  "true-positive rate", "Ghazi and Issa", "not a bound", "one example is added or removed",
                  "fixed in advance", "shuffled"):  # fmt: skip
        assert words in shown.out, words
    assert "\x1b" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 110


def test_a_picture(run, tmp_path):
    shown = run("dpsgd", *SHORT[:-1], "--noise", "1", "--out", tmp_path / "new")
    assert shown.code == 0
    assert (tmp_path / "new" / "dpsgd.png").read_bytes().startswith(b"\x89PNG")
    assert "dpsgd.png" in shown.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--noise", "1"), "neither is given; give exactly one, for example --epochs 15"),
        (("--noise", "1", "--epochs", "1", "--steps", "1"), "both are given; give exactly one"),
        (("--epochs", "1"), "one of these is required; give --noise"),
        (("--epochs", "1", "--noise", "1", "--epsilon", "1"), "cannot be combined"),
        (("--epochs", "0", "--noise", "1"), "epochs='0'"),
        (("--epochs", "nan", "--noise", "1"), "epochs='nan'"),
        (("--steps", "0", "--noise", "1"), "steps=0"),
        (("--steps", "1.5", "--noise", "1"), "--steps"),
        (("--steps", "1", "--noise", "nan"), "noise=nan"),
        (("--steps", "1", "--noise", "-1"), "noise=-1.0"),
        (("--steps", "1", "--noise", "1", "--sampling", "shuffle"), "'poisson' or 'subset'"),
        (("--steps", "1", "--noise", "1", "--delta", "0"), "--delta 0: must be in (0, 1)"),
        (("--steps", "1", "--noise", "1", "--delta", "nan"), "delta='nan'"),
        (("--steps", "1", "--noise", "1", "--batch", "60001"), "batch=60001"),
        (("--steps", "1", "--noise", "1", "--examples", "0"), "examples=0"),
        (("--steps", "1", "--epsilon", "-1"), "epsilon='-1'"),
        (("--steps", "1", "--attack-success", "0.4"), "attack_success='0.4'"),
    ],
)
def test_nonsense(run, words, said):
    run("dpsgd", *RUN, *words).refused_with(said)
