"""Which draw goes into which answer: every vector has its own noise, key counts first, questions in order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.release import build_answers

HUGE = 1_000_000
"""Beyond every threshold, so that all groups are shown."""


@pytest.fixture
def drawn(monkeypatch):
    """Noise that numbers its calls: the first vector gets 1 000 000 everywhere, the second 2 000 000, and so on.

    What is drawn before the charge, to see that it can be, is left out.
    """
    sizes: list[int] = []
    rehearse = build_answers.AnswerBuilder.rehearse_on_zeros

    def forgotten(*everything: object) -> None:
        rehearse(*everything)
        sizes.clear()

    def sample(_: WidenedNoise, size: int) -> np.ndarray:
        sizes.append(size)
        return np.full(size, HUGE * len(sizes))

    monkeypatch.setattr(WidenedNoise, "sample", sample)
    monkeypatch.setattr(build_answers.AnswerBuilder, "rehearse_on_zeros", forgotten)
    return sizes


@pytest.fixture
def opened():
    table = pd.DataFrame({"g": [0, 0, 0, 1, 1], "x": [1.0, 2.0, 3.0, 4.0, None]})
    return tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=3, delta=1e-6))


def values(answers, name):
    return [row["value"] for row in answers[name].rows]


def test_discovered_groups_share_one_count_which_is_drawn_first(opened, drawn):
    questions = [
        tr.sum("x", bounds=(0, 10), by="g"),
        tr.count(by="g"),
        tr.mean("x", bounds=(0, 10), by="g"),
        tr.count(by="g", name="again"),
    ]
    answers = opened.plan(questions).release()
    assert drawn == [2] * 3  # the key count; the mean's sum, which the sum uses, and its usable values
    assert values(answers, "count_by_g") == values(answers, "again") == [HUGE + 3, HUGE + 2]
    usable = [3 * HUGE + 3, 3 * HUGE + 1]
    centered = [-9 + 2 * HUGE * 1e-8, -1 + 2 * HUGE * 1e-8]
    sums = [5 * number + total for total, number in zip(centered, usable, strict=True)]
    assert values(answers, "sum_x_by_g") == pytest.approx(sums, rel=1e-12)
    assert values(answers, "mean_x_by_g") == pytest.approx(
        [5 + total / number for total, number in zip(centered, usable, strict=True)], rel=1e-12
    )


def test_given_groups_have_a_draw_for_each_vector_in_the_order_of_the_questions(opened, drawn):
    questions = [
        tr.count(by="g", keys=[0, 1, 2]),
        tr.count(),
        tr.sum("x", bounds=(0, 10), by="g", keys=[0, 1, 2]),
        tr.count(by="g", keys=[0, 1, 2], name="again"),
    ]
    answers = opened.plan(questions).release()
    assert drawn == [3, 3, 3, 1]  # questions over the same groups are answered together
    assert values(answers, "count_by_g") == [HUGE + 3, HUGE + 2, HUGE]
    assert values(answers, "sum_x_by_g") == pytest.approx([n + 2 * HUGE * 1e-7 for n in (6, 4, 0)])
    assert values(answers, "again") == [3 * HUGE + 3, 3 * HUGE + 2, 3 * HUGE]
    assert values(answers, "count") == [4 * HUGE + 5]


def test_the_certificate_names_the_vectors_in_the_order_of_the_draws(opened):
    questions = [tr.mean("x", bounds=(0, 10), by="g"), tr.count(by="g"), tr.sum("x", bounds=(0, 10))]
    plan = opened.plan(questions)
    statistics = [[noise.vector.noise_spec.statistic for noise in noises] for noises in plan.noises()]
    assert statistics == [["count", "sum", "usable values"], ["sum"]]
