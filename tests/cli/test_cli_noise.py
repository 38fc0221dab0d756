"""tightrope noise, and the calibration behind it."""

from __future__ import annotations

import json

import pytest

from tightrope.certificates import Budget
from tightrope.design.calibration import families, keeps_all, least_size
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.discrete_laplace import discrete_laplace

BUDGETS = [
    (Budget(epsilon=1, delta="1e-6"), 1),
    (Budget(epsilon="0.2", delta="1e-9"), 3),
    (Budget(epsilon=1, delta="1e-6", points=[(0, "0.1")]), 2),
    (Budget(epsilon=4, delta="0.05"), 5),
    (Budget(epsilon=1, delta=0), 2),
]


@pytest.mark.parametrize(("budget", "sensitivity"), BUDGETS)
def test_every_family_keeps_every_point(budget, sensitivity):
    found = [family for family in families(budget, sensitivity=sensitivity) if family.mechanism]
    assert len(found) >= 2
    for family in found:
        for epsilon, delta in budget.points:
            lower = family.mechanism.loss.delta_bounds(float(epsilon)).lower
            assert lower <= float(delta), (family.family, epsilon)


def test_the_size_is_the_least(run):
    """Power: noise a millionth smaller than this would not be found, noise a thousandth smaller breaks the budget."""
    points = [(1.0, 1e-6)]
    found = least_size(lambda size: discrete_laplace(scale=size, sensitivity=3), points, 3.0)
    assert keeps_all(found, points)
    assert not keeps_all(discrete_laplace(scale=found.scale * 0.999, sensitivity=3), points)


def test_where_no_size_will_do():
    with pytest.raises(BudgetRefused, match="no size"):
        least_size(lambda size: discrete_laplace(scale=2.0), [(0.1, 1e-6)], 1.0)


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
