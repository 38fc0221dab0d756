"""Scores that are learned: vectors, last bits of doubles, classifiers of one's own."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tightrope as tr
from tests.randomness.keyed import InsecureKeyed
from tightrope.errors import InputError, MissingExtraError


class Sum:
    """A classifier that learns nothing."""

    def fit(self, X, y):
        self.learned = len(y)
        return self

    def predict_proba(self, X):
        score = 1 / (1 + np.exp(-X.sum(axis=1)))
        return np.column_stack([1 - score, score])


def test_a_classifier_of_one_s_own_learns_from_half_and_scores_the_rest() -> None:
    draw, model = np.random.default_rng(1), Sum()
    one, other = draw.normal(0.3, 1, (8_000, 3)), draw.normal(0, 1, (8_000, 3))
    found = tr.audit.samples(one, other, classifier=model, randomness=InsecureKeyed(1))
    assert model.learned == 8_000 and found.runs == (4_000, 4_000)
    assert 0.12 < found.total_variation() < tr.gaussian(scale=1 / (0.3 * 3**0.5)).loss.total_variation()


def test_boosted_trees_find_what_no_column_shows_alone() -> None:
    pytest.importorskip("sklearn")
    draw = np.random.default_rng(2)
    one, other = (draw.choice([-1.0, 1.0], (6_000, 2)) for _ in range(2))
    one[:, 1] = np.where(draw.random(6_000) < 0.7, one[:, 0], -one[:, 0])
    found = tr.audit.samples(one, other, randomness=InsecureKeyed(2))
    assert 0.1 < found.total_variation() < 0.2


def test_the_last_bits_of_floating_point_noise_are_found() -> None:
    """0 + X and 1 + X as doubles, X Laplace at ε = 1: the value tells as much as it may, the grid tells more."""
    pytest.importorskip("sklearn")
    draw = np.random.default_rng(3)
    one, other = 1 + draw.laplace(size=8_000), draw.laplace(size=8_000)
    assert not tr.audit.scores(one, other).against([(1, 0)]).refuted
    bits = [tr.audit.float_columns(values) for values in (one, other)]
    found = tr.audit.samples(*bits, claim=[(1, 0.05)], randomness=InsecureKeyed(3))
    assert found.against([(1, 0.05)]).refuted and found.epsilon(0.01) > 3


def test_noise_on_one_grid_shows_nothing_more() -> None:
    pytest.importorskip("sklearn")
    law, unit = tr.discrete_laplace(scale=1024), 2.0**-10
    drawn = [law.sample(8_000, InsecureKeyed(4 + shift)) * unit + shift for shift in (1, 0)]
    bits = [tr.audit.float_columns(values) for values in drawn]
    assert not tr.audit.samples(*bits, randomness=InsecureKeyed(6)).against([(1, 0)]).refuted


def test_columns_say_how_fine_a_double_is() -> None:
    columns = tr.audit.float_columns([0.0, -3.0, 0.1, 5e-324, 2.0**60])
    assert columns[:, 2].tolist() == [-1100, 0, -55, -1074, 60]
    assert columns[:, 0].tolist() == [0.0, -3.0, 0.1, 5e-324, 2.0**60]


@pytest.mark.parametrize("bad", [[[1.0]], [float("nan")], [float("inf")]])
def test_what_are_no_doubles_is_refused(bad) -> None:
    with pytest.raises(InputError):
        tr.audit.float_columns(bad)


@pytest.mark.parametrize(
    "first, second",
    [
        (np.zeros((30, 2)), np.zeros((30, 3))),
        (np.zeros((5, 2)), np.zeros((30, 2))),
        (np.zeros((30, 2, 2)), np.zeros(30)),
    ],
)
def test_what_are_no_samples_is_refused(first, second) -> None:
    with pytest.raises(InputError):
        tr.audit.samples(first, second, classifier=Sum())


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"tightrope\[audit\]"):
        tr.audit.samples(np.zeros(40), np.ones(40))
