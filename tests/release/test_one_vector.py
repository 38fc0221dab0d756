"""Several columns as one vector: with a noise of its own for each it costs what they cost one by one, and no less.

What each column's range allows, all allow at once: one person may shift every number to the end of its range. So the
worst shift of the vector is that of all its numbers together, which is what composition composes. Less is only where
columns exclude each other (parts of a histogram), or where the noise is not independent: in the shape of that box.
"""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tests.verify.altered import of_version_3
from tightrope.errors import LedgerError
from tightrope.ledger import Ledger
from tightrope.ledger.check import check_ledger
from tightrope.noise.worst_split import CompositionGroup
from tightrope.queries.query_group import group_queries
from tightrope.queries.statistics import Noise
from tightrope.release.draft import JOINT_SUMS, SEPARATE_SUMS, allocate_best_arrangement, list_arrangements
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CHECKED, REFUTED, worst_verdict

FAINT = 1e-13
COLUMNS = ["a", "b", "c", "d"]
EPSILONS = [0.1, 0.5, 1.0, 2.0]
TABLE = pd.DataFrame({**{name: [0.5, -0.5] for name in COLUMNS}, "g": ["u", "v"]})
BUDGET = tr.Budget(epsilon=1, delta=1e-8)
SCHEMA = tr.Session(TABLE, privacy_unit=None, budget=BUDGET).schema


def planned(columns: int) -> tr.Plan:
    table = pd.DataFrame({name: [0.5] for name in COLUMNS})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    return session.plan([tr.sum(name, bounds=(-1, 1), weight=4**i) for i, name in enumerate(COLUMNS[:columns])])


@pytest.mark.parametrize("columns", [2, 4])
def test_gaussian_noise_on_a_vector_costs_what_its_columns_cost_together(columns):
    alone, vector = tr.gaussian(scale=3.0).loss, tr.gaussian(scale=3.0, sensitivity=math.sqrt(columns)).loss
    together = alone * columns
    assert together.delta(EPSILONS) == pytest.approx(vector.delta(EPSILONS), rel=1e-9)


@pytest.mark.parametrize("columns", [2, 4])
def test_pure_noise_on_a_vector_costs_what_its_columns_cost_together(columns):
    """The largest loss: ε = columns · shift / scale, whichever way it is said."""
    together, vector = tr.laplace(scale=4.0).loss * columns, tr.laplace(scale=4.0, sensitivity=columns).loss
    assert together.epsilon(0.0) == pytest.approx(vector.epsilon(0.0), rel=1e-9)


def test_the_planner_composes_exactly_the_loss_of_the_vector_at_the_corner_of_the_box():
    """δ(ε) of the two-dimensional law and its shift by the ends of both ranges, summed outcome by outcome."""
    plan = planned(2)
    masses = [weights(noise) for noises in plan.noises() for noise in noises]
    (one, shift), (other, also) = masses
    here, there = np.outer(one[shift:], other[also:]), np.outer(one[:-shift], other[:-also])
    lost = 1 - here.sum()
    for epsilon in EPSILONS[1:3]:
        wanted = np.maximum(here - math.exp(epsilon) * there, 0.0).sum() + lost
        assert plan.loss.delta(epsilon) == pytest.approx(wanted, rel=1e-6, abs=1e-11)


def weights(noise: Noise) -> tuple[np.ndarray, int]:
    """P(Y = −n), …, P(Y = n) of the table that runs, but for a faint rest, and by how many steps a row shifts it."""
    beyond = noise.noise_tails.table
    half = -np.diff(beyond[beyond > FAINT])
    return np.concatenate([half[::-1], [1 - 2 * beyond[0]], half]), noise.steps_per_row


def test_parts_that_exclude_each_other_cost_one_count():
    table = pd.DataFrame({"a": [0.5]})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    parts = session.plan([tr.histogram("a", edges=[0, 1, 2, 3])]).accuracies()[0].errors_at_size(1)
    alone = session.plan([tr.count()]).accuracies()[0].errors_at_size(1)
    assert parts == alone


def in_a_box(columns: int, **changes: object) -> tr.Plan:
    bounds = {"privacy_unit": None, "budget": tr.Budget(epsilon=1, delta=1e-8), **changes}
    session = tr.Session(TABLE, **bounds)
    return session.plan([tr.sum(name, bounds=(-1, 1), by="g", keys=["u", "v"]) for name in COLUMNS[:columns]])


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_noise_in_the_shape_of_the_box_is_what_theory_has(columns):
    """E|x_i| is (d + 1)/2 · s/ε where independent noise of one size has d · s/ε; the plan says what it saves."""
    plan = in_a_box(columns)
    found = plan.accuracies()[0].errors_at_size(1)["expected_absolute_error"]
    assert found == pytest.approx((columns + 1) / 2, rel=2e-3)
    (apart,) = (one for one in plan.draft.noise_alternatives if one["family"] == SEPARATE_SUMS)
    assert apart["relative_error"] == pytest.approx(2 * columns / (columns + 1), rel=0.02)
    assert {noise.family for noises in plan.noises() for noise in noises} == {f"discrete Laplace in a box of {columns}"}
    assert plan.loss.epsilon(1e-8) <= 1


def test_where_independent_noise_is_smaller_it_stays():
    """Beside many counts all noise is nearly normal, and the corner of a box is far away."""
    counts = [tr.count(where=f"a > {i}", name=f"count {i}") for i in range(40)]
    sums = [tr.sum(name, bounds=(-1, 1)) for name in "ab"]
    plan = tr.Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-4)).plan([*counts, *sums])
    assert not any(noise.vector.joint_noise for noises in plan.noises() for noise in noises)
    assert JOINT_SUMS in {one["family"] for one in plan.draft.noise_alternatives}


@pytest.mark.parametrize(
    "questions",
    [
        [tr.sum("a", bounds=(0, 1)), tr.sum("b", bounds=(0, 1), by="g", keys=["u"])],
        [tr.sum("a", bounds=(0, 1)), tr.sum("b", bounds=(0, 1), where="a > 0")],
        [tr.sum("a", bounds=(0, 1)), tr.sum("b", bounds=(0, 1), weight=4)],
        [tr.sum("a", bounds=(0, 1)), tr.mean("b", bounds=(0, 1))],
        [tr.sum("a", bounds=(0, 1)), tr.count()],
        [tr.variance("a", bounds=(0, 1))],
        [tr.sum("a", bounds=(0, 1), by={"f": "b > 0"}), tr.sum("a", bounds=(0, 1)), tr.sum("b", bounds=(0, 1))],
    ],
    ids=["other groups", "other rows", "other weights", "a mean", "a count", "one question", "total and parts"],
)
def test_what_needs_more_than_the_law_of_one_number_or_other_rows_stays_apart(questions):
    plan = tr.Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8)).plan(questions)
    assert not any(noise.vector.joint_noise for noises in plan.noises() for noise in noises)


def test_more_sums_than_a_box_holds_are_those_of_one_and_some_apart():
    asked = [tr.sum("a", bounds=(0, 1), name=f"sum {i}") for i in range(18)]
    ways = list_arrangements(
        group_queries(asked, tr.Session(TABLE, privacy_unit=None, budget=BUDGET).privacy_unit, SCHEMA), ()
    )
    assert [len(part) for part in ways[1][0].joint_draws_by_set[0]] == [16, 1, 1]


@pytest.mark.parametrize("columns", [2, 4])
def test_at_delta_0_a_box_without_a_limit_has_the_least_error(columns):
    """E|x_i| is (d + 1)/2 · s/ε, where noise for each sum by itself has d · s/ε, or what staircases save."""
    plan = in_a_box(columns, budget=tr.Budget(epsilon=1, delta=0))
    found = plan.accuracies()[0].errors_at_size(1)["expected_absolute_error"]
    assert found == pytest.approx((columns + 1) / 2, rel=2e-3)
    assert {noise.family for noises in plan.noises() for noise in noises} == {f"discrete Laplace in a box of {columns}"}
    assert 1 - 1e-4 < plan.loss.epsilon(0) <= 1
    written = json.loads(json.dumps(plan.release().certificate))
    said = check_document(json.dumps(written))
    assert worst_verdict(said) == CONFIRMED, [claim for claim in said if claim.verdict not in (CONFIRMED, NOT_CHECKED)]


def test_a_lighter_tail_of_an_unbounded_box_is_refuted():
    """Half-widths that become improbable too fast lose more than the certificate states."""
    plan = in_a_box(2, budget=tr.Budget(epsilon=1, delta=0))
    data = of_version_3(json.loads(json.dumps(plan.release().certificate)))
    assert worst_verdict(check_document(json.dumps(data))) == CONFIRMED
    for mechanism in data["mechanisms"]:
        tail = mechanism["table"]["tail"]
        moved = int(tail["escape"]) // 2
        tail.update(
            escape=str(int(tail["escape"]) - moved), block=[str(int(tail["block"][0]) + moved), *tail["block"][1:]]
        )
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED


def test_at_a_large_epsilon_and_delta_0_staircases_stay():
    plan = in_a_box(2, budget=tr.Budget(epsilon=10, delta=0))
    assert not any(noise.vector.joint_noise for noises in plan.noises() for noise in noises)
    assert JOINT_SUMS in {one["family"] for one in plan.draft.noise_alternatives}


def test_answers_with_an_unbounded_box_hold(many=2_000):
    keys = list(range(many))
    table = pd.DataFrame({"k": range(50), "a": [0.0] * 50, "b": [0.0] * 50})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=0))
    plan = session.plan([tr.sum(name, bounds=(-1, 1), by="k", keys=keys) for name in "ab"])
    for frame in (answer.to_pandas() for answer in plan.release()):
        held = ((frame["lower"] <= 0) & (frame["upper"] >= 0)).mean()
        assert 0.93 < held < 0.975


@pytest.mark.parametrize("rows", [1, 3])
def test_intervals_hold_and_numbers_of_a_point_are_large_together(rows):
    """Over 3 000 groups of nothing: coverage of each, and squares that go together, which independent ones do not."""
    many = 3_000
    keys = list(range(many))
    table = pd.DataFrame({"who": range(50), "k": range(50), "a": [0.0] * 50, "b": [0.0] * 50})
    session = tr.Session(table, privacy_unit="who", max_rows=rows, budget=tr.Budget(epsilon=1, delta=1e-8))
    plan = session.plan([tr.sum(name, bounds=(-1, 1), by="k", keys=keys) for name in "ab"])
    frames = [answer.to_pandas() for answer in plan.release()]
    for frame in frames:
        held = ((frame["lower"] <= 0) & (frame["upper"] >= 0)).mean()
        assert 0.93 < held < 0.975
    squares = np.corrcoef(*(frame["value"] ** 2 for frame in frames))[0, 1]
    assert squares > 0.08
    assert abs(np.corrcoef(*(frame["value"] for frame in frames))[0, 1]) < 0.12


@pytest.mark.parametrize("delta", [1e-6, 0])
def test_a_box_in_a_ledger_comes_back_as_it_was(tmp_path, delta):
    """Under discovered keys with a delta, under listed ones and without a limit without."""
    table = pd.DataFrame({"who": range(4_000), "g": ["u", "v"] * 2_000, "a": [0.5] * 4_000, "b": [-0.5] * 4_000})
    keys = {} if delta else {"keys": ["u", "v"]}
    asked = [tr.sum(name, bounds=(-1, 1), by="g", **keys) for name in "ab"]

    def opened():
        place = tmp_path / "people.ledger"
        changes = {"privacy_unit": "who", "max_rows": 1, "budget": tr.Budget(epsilon=2, delta=delta)}
        return tr.Session.open(table, ledger=place, dataset="people", **changes)

    answers = opened().plan(asked, budget_fraction="0.5", key="march").release()
    assert [row["g"] for row in answers[0].rows] == ["u", "v"]
    again = opened().plan(asked, budget_fraction="0.5", key="march").release()
    assert again.to_json() == answers.to_json()
    session = opened()
    series = session.series(session.plan(asked, budget_fraction="0.4"), times=2, key="2026")
    for _ in range(2):
        assert len(series.next().release()) == 2
    report = check_ledger(Ledger(tmp_path / "people.ledger"))
    assert report.guarantees == 2 and report.problems == ()


def test_what_a_box_gives_is_verified_and_forgeries_are_not():
    written = json.loads(json.dumps(in_a_box(3).release().certificate))
    said = check_document(json.dumps(written))
    assert worst_verdict(said) == CONFIRMED, [claim for claim in said if claim.verdict not in (CONFIRMED, NOT_CHECKED)]
    data = of_version_3(written)
    for change in (
        lambda one: one.update(box=2),
        lambda one: one.update(box=None),
        lambda one: one.update(together=9),
        lambda one: one.update(table_steps_per_row=one["table_steps_per_row"] + 1),
        lambda one: one["table"].update(half=[*one["table"]["half"][1:], one["table"]["half"][0]]),
    ):
        forged = copy.deepcopy(data)
        change(forged["mechanisms"][1])
        assert worst_verdict(check_document(json.dumps(forged))) == REFUTED
    forged = copy.deepcopy(data)
    for one in forged["mechanisms"]:
        del one["table"]["half"][len(one["table"]["half"]) // 2 :]
        left = (1 << 128) - int(one["table"]["centre"]) - 2 * sum(map(int, one["table"]["half"]))
        one["table"]["half"][-1] = str(int(one["table"]["half"][-1]) + left // 2)
    assert worst_verdict(check_document(json.dumps(forged))) == REFUTED


def reserved(place):
    table = pd.DataFrame({"who": range(400), "a": [0.5] * 400, "b": [-0.5] * 400})
    changes = {"privacy_unit": "who", "max_rows": 2, "budget": tr.Budget(epsilon=1, delta=1e-6)}
    opened = tr.Session.open(table, ledger=place, dataset="people", **changes)
    return opened.series(opened.plan([tr.sum(name, bounds=(-1, 1)) for name in "ab"]), times=40, key="weeks")


def test_a_series_goes_on_as_it_was_reserved_whatever_is_best_today(tmp_path, monkeypatch):
    """Reserved with noise for each sum by itself, as before there were boxes, or with one: both go on as they are."""
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.draft._with_joint_noise", lambda query_group, _: query_group)
        first = reserved(tmp_path / "apart.ledger").next().release()
    assert len(reserved(tmp_path / "apart.ledger").next().release()) == len(first) == 2
    boxed = reserved(tmp_path / "today.ledger")
    assert len(boxed.next().release()) == 2
    for place in ("apart", "today"):
        assert check_ledger(Ledger(tmp_path / f"{place}.ledger")).problems == ()
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.session._draft_arrangements", lambda _: ())
        with pytest.raises(LedgerError, match="in another way than the noise reserved"):
            reserved(tmp_path / "today.ledger")


def test_many_releases_together_take_the_noise_that_is_best_for_all_of_them(tmp_path):
    """For forty dates noise is nearly normal, and that of a box larger, though for one release it is smaller."""
    series = reserved(tmp_path / "people.ledger")
    plan = series.next()
    assert not any(noise.vector.joint_noise for noises in plan.noises() for noise in noises)


@pytest.mark.parametrize(("epsilon", "rows"), [(1, 32), (0.3, 16), (0.1, 8)])
def test_where_a_box_has_too_many_losses_noise_stays_apart_or_is_verified(epsilon, rows):
    """Once two sums of 32 rows a person took half a minute to plan, and the verifier gave up on what was written."""
    table = pd.DataFrame({"who": range(40), "a": [0.5] * 40, "b": [-0.5] * 40})
    budget = tr.Budget(epsilon=epsilon, delta=1e-8)
    session = tr.Session(table, privacy_unit="who", max_rows=rows, budget=budget)
    answers = session.plan([tr.sum(name, bounds=(-1, 1)) for name in "ab"]).release()
    assert worst_verdict(check_document(json.dumps(answers.certificate))) == CONFIRMED


def test_numbers_of_a_box_over_other_groups_or_rows_are_refuted():
    data = json.loads(json.dumps(in_a_box(3).release().certificate))
    for change in ({"by": []}, {"where": "a > 0"}):
        forged = copy.deepcopy(data)
        forged["mechanisms"][1].update(change)
        assert worst_verdict(check_document(json.dumps(forged))) == REFUTED


@pytest.mark.parametrize(("epsilon", "rows", "columns"), [(20, 16, 2), (40, 1, 3), (1, 1, 3)])
def test_the_arrangement_with_the_smaller_error_is_taken_where_steps_are_coarse(epsilon, rows, columns):
    """Between two steps noise is spread out: a box, whose steps are coarser, was taken where that was all its error."""
    table = pd.DataFrame({"p": [0, 1], **{name: [0.5, -0.5] for name in COLUMNS}})
    session = tr.Session(table, privacy_unit="p", max_rows=rows, budget=tr.Budget(epsilon=epsilon, delta="1e-6"))
    draft = session.plan([tr.sum(name, bounds=(-1, 1)) for name in COLUMNS[:columns]]).draft
    errors = []
    for way in draft.possible_arrangements:
        query_groups, allocation = allocate_best_arrangement((way,), draft.budget)
        noises = replace(draft, query_groups=query_groups, allocation=allocation).noises_by_query_group[0]
        errors.append(sum(noise.mean_absolute * noise.step_size for noise in noises))
    assert sum(noise.mean_absolute * noise.step_size for noise in draft.noises_by_query_group[0]) <= min(errors) * 1.001


def test_what_bounding_costs_takes_no_more_than_its_part_beside_a_box():
    """The tallies were sized beside noise of each sum's own, which takes more of the budget than a box of all."""
    plan = planned(4)
    session = tr.Session(TABLE, privacy_unit=None, budget=BUDGET)
    plan = session.plan([tr.sum(name, bounds=(-1, 1)) for name in COLUMNS], bias_check="0.02")
    assert any(vector.joint_noise for query_group in plan.draft.query_groups for vector in query_group.noisy_statistics)
    units = [unit for query_group in plan.draft.query_groups for unit in query_group.composition_groups]
    counts = [
        unit for unit in units if unit.noise_specs[0].statistic.startswith("rows,") or "values" in str(unit.noise_specs)
    ]

    def relative_loss(unit: CompositionGroup) -> float:
        return sum(unit.split_bounds.most_rows / spec.noise_size for spec in unit.noise_specs)

    assert 0 < sum(map(relative_loss, counts)) <= 0.02 * sum(map(relative_loss, units)) * 1.0001
