"""Keys that are listed bound the groups of a person: nobody is in more groups than there are."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import PlanError
from tightrope.queries.query_group import bounds_for_query

TABLE = pd.DataFrame({"who": [1, 1, 2], "g": ["a", "b", "a"]})


def half_width(keys, **bounds):
    opened = tr.Session(
        TABLE, privacy_unit="who", max_rows=10, max_rows_per_group=1, budget=tr.Budget(epsilon=1, delta=1e-6), **bounds
    )
    (accuracy,) = opened.plan([tr.count(by="g", keys=keys)]).accuracies()
    return accuracy.errors_at_size(100)["half_width_95"]


@pytest.mark.parametrize(("keys", "width"), [(["a", "b", "c"], 9), (["a"], 3)])
def test_three_keys_need_a_third_of_the_noise_of_ten_groups(keys, width):
    assert half_width(keys) == width
    assert half_width(keys, max_groups=len(keys)) == width


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("g", ["a", "b", "a"]),
        ("g", [1, 1]),
        ("g", [1, 1.0]),
        ("g", [0.0, -0.0]),
        (["g", "h"], {"g": ["a", "a"], "h": [1]}),
    ],
)
def test_a_key_that_is_listed_twice_is_refused_and_not_shown(by, keys):
    """Merged silently, an answer had fewer rows than the list: whoever joins them by place joins the wrong ones."""
    with pytest.raises(PlanError, match="equal others") as caught:
        tr.count(by=by, keys=keys)
    assert "'a'" not in str(caught.value)


@given(rows=st.integers(1, 300), per_group=st.integers(1, 300), groups=st.integers(1, 300), keys=st.integers(1, 12))
def test_bounds_never_allow_more_than_was_declared_or_can_be(rows, per_group, groups, keys):
    person = PrivacyUnit("who", rows, per_group, groups)
    listed, found = (bounds_for_query(person, tr.count(by="g", keys=k)) for k in (list(range(keys)), None))
    assert listed.max_groups == min(found.max_groups, keys)
    assert listed.max_rows == min(rows, listed.max_groups * listed.max_rows_per_group) <= found.max_rows


@settings(max_examples=5, deadline=None)
@given(rows=st.sampled_from([3, 20, 60]), groups=st.integers(1, 40), per_group=st.integers(1, 60))
def test_a_tighter_declaration_never_makes_a_plan_impossible(rows, groups, per_group):
    opened = tr.Session(TABLE, privacy_unit="who", max_rows=rows, budget=tr.Budget(epsilon=1, delta=1e-6))
    question = {"max_rows_per_group": per_group, "max_groups": groups}
    (tight,) = opened.plan([tr.count(by="g", **question)]).accuracies()
    (loose,) = opened.plan([tr.count(by="g")]).accuracies()
    assert tight.errors_at_size(10_000)["half_width_95"] <= loose.errors_at_size(10_000)["half_width_95"]
