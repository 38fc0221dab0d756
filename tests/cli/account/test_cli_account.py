"""tightrope account: what a list of steps adds up to."""

from __future__ import annotations

import json
from typing import get_args

import pytest

import tightrope as tr
from tightrope.cli.account import compose_steps
from tightrope.documents.account import STEPS_FILE, Run, Step, StepsDocument, read_account, read_steps
from tightrope.documents.document import to_json_text

STEPS = """
[[step]]
mechanism = "gaussian"
scale = 20
count = 100
[[step]]
mechanism = "laplace"
scale = 5.0
"""


@pytest.fixture
def steps(tmp_path):
    def write(text: str):
        path = tmp_path / "steps.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_it_is_the_sum_of_the_steps(run, steps):
    shown = run("account", steps(STEPS), "--delta", "1e-6", "--epsilon", "1", "--json")
    data = json.loads(shown.out, parse_constant=lambda name: 1 / 0)
    assert to_json_text(read_account(shown.out), ascii_only=True) == shown.out
    assert list(data)[:2] == ["document", "version"]
    loss = 100 * tr.gaussian(scale=20).loss + tr.laplace(scale=5).loss
    assert data["epsilon_at_delta"][0]["epsilon"] == pytest.approx(loss.epsilon(1e-6), rel=1e-9)
    assert data["delta_at_epsilon"][0]["delta"] == pytest.approx(loss.delta(1.0), rel=1e-9)
    for row in (*data["epsilon_at_delta"], *data["delta_at_epsilon"]):
        assert row["lower"] <= row["upper"]
    assert data["total_variation"] == pytest.approx(loss.total_variation(), rel=1e-12)
    assert "fixed in advance" in data["statement"]
    assert data["steps"][0] == {
        "mechanism": "gaussian", "scale": 20, "sensitivity": None, "count": 100, "poisson_rate": None, "subset": None,
        "erase": None,
    }  # fmt: skip
    for row in (*data["epsilon_at_delta"], *data["delta_at_epsilon"]):
        assert row["relative_width"] == (row["upper"] - row["lower"]) / row["upper"]


def test_lists_of_questions(run, steps):
    words = ("--delta", "1e-6", "--delta", "1e-9", "--epsilon", "1", "--epsilon", "2")
    data = json.loads(run("account", steps(STEPS), *words, "--json").out)
    assert [row["delta"] for row in data["epsilon_at_delta"]] == [1e-6, 1e-9]
    assert [row["epsilon"] for row in data["delta_at_epsilon"]] == [1, 2]


def test_text(run, steps):
    shown = run("account", steps(STEPS))
    assert (shown.code, shown.err) == (0, "")
    for words in ("gaussian", "scale 20", "none", "100", "Epsilon at delta", "…", "relative width",
                  "true-positive rate", "Accounting method",
                  "fixed in advance"):  # fmt: skip
        assert words in shown.out
    assert "\x1b" not in shown.out


def test_which_mechanism_has_the_true_value(run, steps, tmp_path):
    printed = " ".join(run("account", steps(STEPS)).out.split())
    assert "that of these mechanisms, on data that differ by the full sensitivity." in printed
    path, page = steps('[[step]]\nmechanism = "approx_dp"\nepsilon = 0.1\ncount = 10\n'), tmp_path / "page.html"
    shown = run("account", path, "--report", page)
    assert "that of the worst mechanisms with these guarantees, such as randomized response;" in " ".join(
        shown.out.split()
    )
    assert "it is the value of the worst mechanism, such as randomized response." in page.read_text(encoding="utf-8")
    run("account", steps(STEPS), "--report", page, "--force")
    assert "randomized response." not in page.read_text(encoding="utf-8")


def test_a_poisson_rate(steps):
    path = steps('[[step]]\nmechanism = "gaussian"\nscale = 1.3\npoisson_rate = 0.01\ncount = 50\n')
    expected = 50 * tr.gaussian(scale=1.3).loss.poisson_sample(0.01)
    found = compose_steps(read_steps(path).step)
    assert found.remove.laws == expected.remove.laws  # δ itself takes seconds
    assert (found.add.laws, found.add.counts) == (expected.add.laws, expected.add.counts)


def test_a_subset_and_an_erasure(run, steps):
    path = steps('[[step]]\nmechanism = "laplace"\nscale = 2\nsubset = [10, 100]\nerase = 0.25\n')
    expected = tr.laplace(scale=2).loss.subset_sample(10, 100).erase(0.25)
    found = compose_steps(read_steps(path).step)
    assert (found.remove.laws, found.neighbors) == (expected.remove.laws, expected.neighbors)
    shown = run("account", path, "--delta", "1e-3")
    for words in ("10 of 100", "25 %", "one row is replaced"):
        assert words in shown.out
    assert json.loads(run("account", path, "--json").out)["steps"][0]["subset"] == [10, 100]


def test_a_pair(steps):
    path = steps('[[step]]\nmechanism = "from_pair"\np = [0.75, 0.25]\nq = [0.25, 0.75]\n')
    assert compose_steps(read_steps(path).step).total_variation() == pytest.approx(0.5, rel=1e-12)


VALUES = {"scale": "2", "epsilon": "0.5", "delta": "1e-6", "points": "[[1, 1e-6], [0.5, 1e-3]]", "sensitivity": "1",
          "gamma": "0.4", "k": "3", "total_variation": "0.2", "p": "[0.7, 0.3]", "q": "[0.6, 0.4]"}  # fmt: skip


@pytest.mark.parametrize("kind", get_args(Step), ids=lambda kind: kind.__struct_config__.tag)
def test_every_mechanism_and_every_parameter(steps, kind):
    own = [name for name in kind.__struct_fields__ if name not in Run.__struct_fields__]
    lines = [f"{parameter} = {VALUES[parameter]}" for parameter in own]
    path = steps("\n".join(["[[step]]", f'mechanism = "{kind.__struct_config__.tag}"', *lines, "count = 2"]))
    document = read_steps(path)
    assert STEPS_FILE.parse_json(to_json_text(document), StepsDocument) == document
    assert list(document.step[0].maker_arguments) == own
    assert 0 < compose_steps(read_steps(path).step).total_variation() < 1


def test_infinite_epsilon_is_null(run, steps):
    path = steps('[[step]]\nmechanism = "approx_dp"\nepsilon = 1\ndelta = 1e-3\n')
    shown = run("account", path, "--delta", "1e-6", "--delta", "0.1", "--json")
    none, some = read_account(shown.out).epsilon_at_delta
    assert (none.epsilon, none.upper) == (None, None)
    assert 0 < some.lower <= some.upper == some.epsilon
    assert "∞" in run("account", path, "--delta", "1e-6").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "[[step]]"),
        ("[step]\nmechanism = 'gaussian'", "double brackets"),
        ("[[steps]]\nscale = 1", "did you mean 'step'?"),
        ("[[step]]\nscale = 1", "step 1 mechanism"),
        ("[[step]]\nmechanism = 'gausian'\nscale = 1", "did you mean 'gaussian'?"),
        ("[[step]]\nmechanism = 'gaussian'\nscal = 1", "did you mean 'scale'?"),
        ("[[step]]\nmechanism = 'gaussian'\nepsilon = 1", "step 1 (gaussian)"),
        ("[[step]]\nmechanism = 'gaussian'", "step 1 scale"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 'one'", "step 1 scale='one'"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = -1.5", "scale=-1.5"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = nan", "scale=nan"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\ncount = 0", "count=0"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\ncount = 1.5", "count=1.5"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\npoisson_rate = 2", "step 1 rate=2"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\n[[step]]\nmechanism = 'laplace'\nscale = -1", "step 2 scale=-1"),
        ("[[step]]\nmechanism = 'from_points'\npoints = 3", "step 1"),
        ("[[step]]\nmechanism = 'from_points'\npoints = []", "points=[]"),
        ("[[step]]\nmechanism = 'randomized_response'\nepsilon = 1\npoisson_rate = 0.1", "neighbors"),
        ("nonsense\nx = 1", "line 1"),
        ("version = 2\n[[step]]\nmechanism = 'gaussian'\nscale = 1", "version=2"),
        ("[[step]]\nmechanism = 3", "step 1 mechanism=3"),
        (
            "[[step]]\nmechanism = 'staircase'\nepsilon = 1\nscale = 2",
            "step 1 (staircase): unknown key",
        ),
        ("step = [3]", "step 1=3"),
        ("[[step]]\nmechanism = 'from_pair'\np = [1, 'a']\nq = [1]", "step 1 p 2='a'"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\nsubset = 3", "say subset = [256, 60000]"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\nsubset = [5, 3]", "step 1 m and n=(5, 3)"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\nsubset = [1.5, 3]", "step 1 m=1.5"),
        (
            "[[step]]\nmechanism = 'gaussian'\nscale = 1\nsubset = [1, 3]\npoisson_rate = 0.1",
            "cannot be combined",
        ),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\nerase = 1.5", "step 1 probability=1.5"),
        ("[[step]]\nmechanism = 'gaussian'\nscale = 1\nerase = 'no'", "step 1 erase='no'"),
        ("[[step]]\nmechanism = 'from_pair'\np = [1]", "step 1 q"),
        ("[[step]]\nmechanism = 'from_pair'\np = [1, 0]\nq = [1]", "step 1 q"),
        ("[[step]]\nmechanism = 'from_pair'\np = [0.5, 0.1]\nq = [0.5, 0.5]", "sum of p"),
    ],
)
def test_nonsense_in_the_file(run, steps, text, said):
    run("account", steps(text)).refused_with(said)


def test_nonsense_on_the_line(run, steps):
    run("account", steps(STEPS), "--delta", "2").refused_with("delta", "2")
    run("account", steps(STEPS), "--delta", "x").refused_with("delta='x'")
    run("account", steps(STEPS), "--epsilon", "inf").refused_with("epsilon='inf'")
    run("account", "nowhere.toml").refused_with("nowhere.toml: no such file", "account --help")


def test_delta_0_of_a_gaussian_is_infinite_at_both_ends(run, steps):
    """Not a lower end of 1.8e308: nothing below infinity is a bound there."""
    shown = run("account", steps(STEPS), "--delta", "0", "--json")
    (row,) = json.loads(shown.out, parse_constant=lambda name: 1 / 0)["epsilon_at_delta"]
    assert row == {"delta": 0.0, "epsilon": None, "lower": None, "upper": None, "relative_width": 0.0}
    assert to_json_text(read_account(shown.out), ascii_only=True) == shown.out
    assert "e+308" not in run("account", steps(STEPS), "--delta", "0").out
