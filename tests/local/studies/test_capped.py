"""Mechanisms under a total variation: the cap is kept, and no privacy that it leaves is wasted."""

from __future__ import annotations

import pytest

from tightrope.local import compare, plan
from tightrope.local.mechanisms.response import response_with_erasure
from tightrope.local.studies.planning import DISTRIBUTION, MEAN, cap_total_variation, options_within


@pytest.mark.parametrize("name", [*DISTRIBUTION, *MEAN])
@pytest.mark.parametrize("eta", [0.01, 0.1, 0.35, 0.9])
def test_the_cap_is_kept_and_used(name, eta):
    def make(epsilon):
        return DISTRIBUTION[name](epsilon, 20) if name in DISTRIBUTION else MEAN[name](epsilon)

    found = cap_total_variation(make, 2.0, eta)
    assert found.guarantee.total_variation <= eta
    assert found.guarantee.epsilon <= 2.0
    if make(2.0).guarantee.total_variation > eta:
        assert found.guarantee.total_variation > eta * (1 - 1e-3)  # sizes and digits jump
    else:
        assert found == make(2.0)


def test_a_cap_that_is_kept_anyway_changes_nothing():
    """Subset selection of 51 categories at ε = 1 has η = 0.238, far below tanh(½) = 0.462."""
    free = plan("distribution", epsilon=1.0, people=1000, k=51)
    assert plan("distribution", epsilon=1.0, people=1000, k=51, total_variation=0.25).option == free.option
    assert (
        plan("mean", epsilon=1.0, people=1000, total_variation=0.47).option
        == plan("mean", epsilon=1.0, people=1000).option
    )


def test_the_plan_takes_the_best_way_to_keep_the_cap():
    by_epsilon = plan("distribution", epsilon=1.0, people=1000, k=51, total_variation=0.2).option
    assert by_epsilon.name == "subset_selection"
    assert by_epsilon.mechanism.mean_variance < response_with_erasure(1.0, 0.2, 51).mean_variance / 3
    assert (
        plan("distribution", epsilon=3.0, people=1000, k=51, total_variation=0.2).option.name == "response_with_erasure"
    )


@pytest.mark.parametrize(("question", "k"), [("distribution", 20), ("mean", None)])
def test_options_are_those_without_a_cap_where_it_is_wide(question, k):
    wide = {option.name: option for option in options_within(question, 1.0, 0.9, k)}
    assert all(wide[option.name] == option for option in compare(question, epsilon=1.0, k=k))
