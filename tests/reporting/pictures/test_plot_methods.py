"""``.plot()`` of losses, noise, plans and answers: figures that a notebook shows as pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.reporting import plots

PNG = b"\x89PNG"
BUDGET = tr.Budget(epsilon=1, delta=1e-6)


def session() -> tr.Session:
    frame = pd.DataFrame({"city": ["a$b$", "<b>"] * 500, "age": range(1000)})
    return tr.Session(frame, privacy_unit=None, budget=BUDGET)


def test_a_loss_is_drawn_by_both_curves() -> None:
    loss = 10 * tr.gaussian(scale=5).loss
    figure = loss.plot(largest_epsilon=2)
    attack, profile = figure.axes
    rates, caught = attack.lines[1].get_data()
    assert caught == pytest.approx(loss.true_positive_rate(rates))
    epsilons, deltas = profile.lines[0].get_data()
    assert np.all(np.diff(deltas) < 0)
    assert max(epsilons) == 2
    assert deltas == pytest.approx(loss.delta(epsilons))
    assert figure._repr_png_().startswith(PNG)


@pytest.mark.parametrize("largest", [0, -1, float("nan"), float("inf")])
def test_an_end_that_is_not_positive_is_refused(largest: float) -> None:
    with pytest.raises(InputError) as refused:
        tr.gaussian(scale=1).loss.plot(largest_epsilon=largest)
    assert refused.value.name == "largest_epsilon"


def test_losses_without_a_finite_epsilon_and_without_any_loss_are_drawn() -> None:
    for loss in (tr.approx_dp(1, delta=0.1).loss, 0 * tr.gaussian(scale=1).loss, tr.laplace(scale=1).loss):
        assert loss.plot()._repr_png_().startswith(PNG)


@pytest.mark.parametrize(
    "noise",
    [
        tr.gaussian(scale=3),
        tr.laplace(scale=2),
        tr.discrete_laplace(scale=2),
        tr.discrete_gaussian(scale=2),
        tr.least_noise(BUDGET, sensitivity=3),
        tr.least_noise(BUDGET, integer=False),
        tr.randomized_response(epsilon=1, k=3),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_noise_is_drawn_by_the_probability_of_larger_errors(noise: tr.noise.Mechanism) -> None:
    (axes,) = noise.plot().axes
    errors, tails = axes.lines[0].get_data()
    assert list(errors) == sorted(errors)
    for error, tail in list(zip(errors, tails, strict=True))[:8]:
        assert error == noise.half_width(1 - tail)


def test_a_plan_is_drawn_by_its_frontier() -> None:
    plan = session().plan([tr.count(), tr.mean("age", bounds=(0, 1000))])
    (axes,) = plan.plot().axes
    lines = {line.get_label(): line.get_data() for line in axes.lines}
    assert set(lines) == {"count", *(f"mean_age, {rows:,} rows" for rows in plan.sizes)}
    for epsilons, widths in lines.values():
        assert list(epsilons) == sorted(epsilons)
        assert list(widths) == sorted(widths, reverse=True)
    assert not plan.charged


def test_no_budget_that_can_be_met_is_an_error() -> None:
    with pytest.raises(InputError):
        plots.plan_frontier([{"epsilon": 1.0, "delta": 0.0, "attack_success": None, "answers": None}])


def test_an_answer_and_its_document_have_the_same_figure() -> None:
    answers = session().plan([tr.count(by="city")]).release()
    drawn = [plots.answers_chart(answers[0]), plots.answers_chart(answers[0].document), answers[0].plot()]
    labels = [[text.get_text() for text in figure.axes[0].get_yticklabels()] for figure in drawn]
    assert labels[0] == labels[1] == labels[2]
    assert set(labels[0]) == {r"a\$b\$", "<b>"}
    assert drawn[0]._repr_png_().startswith(PNG)
