"""Sessions of one dataset share one budget; a plan is paid once under its key; a series is composed exactly."""

from __future__ import annotations

import datetime
import json
import sqlite3
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest

import tightrope as tr
from tests.release.after_the_charge import fails_after_the_charge
from tightrope.errors import EngineError, InputError, InsufficientBudgetError, LedgerError, LedgerWarning
from tightrope.ledger import Claim, Ledger, Limit
from tightrope.ledger.check import check_ledger
from tightrope.ledger.overview import ledger_overview
from tightrope.release.execution import from_stored_form, noise_record_of, to_stored_form

pytestmark = pytest.mark.usefixtures("planned_once")
BUDGET = tr.Budget(epsilon=1, delta="1e-6")
DAYS = [datetime.date(2026, 1, 1 + day % 3) for day in range(900)]


def table(scale: float = 1.0, **more: list[int]) -> pyarrow.Table:
    columns = {"person": np.arange(900) // 2, "day": DAYS, "x": scale * (np.arange(900) % 7) / 7.0}
    return pyarrow.table({**columns, **more})


TABLE = table()
ASKED = [tr.count(by="day"), tr.mean("x", bounds=(0, 1))]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def session(place: Path, **changes: object) -> tr.Session:
    usual = {"privacy_unit": "person", "max_rows": 2, "budget": BUDGET, "ledger": place, "dataset": "people"}
    return tr.Session.open(changes.pop("source", TABLE), **{**usual, **changes})  # type: ignore[arg-type]


def test_a_second_session_goes_on_where_the_first_ended(place):
    session(place).plan(ASKED, budget_fraction="0.7").release()
    with pytest.raises(InsufficientBudgetError, match=r"0\.3 is left"):
        session(place).plan(ASKED, budget_fraction="0.4").release()
    session(place).plan(ASKED, budget_fraction="0.3").release()
    spent = session(place).spent
    assert (spent["budget_fraction"], spent["points"]) == ("1", [["1", "0.000001"]])
    assert check_ledger(Ledger(place)).problems == ()


def test_a_certificate_names_its_entry(place):
    first = session(place).plan(ASKED, budget_fraction="0.25").release()
    second = session(place).plan(ASKED, budget_fraction="0.25").release()
    entry, ledger = second.certificate_data.entry, Ledger(place)
    assert entry is not None and first.certificate_data.entry is not None
    assert (entry.position, entry.of, entry.budget_fraction, entry.left) == (2, None, "1/4", "1/2")
    assert second.certificate["ledger"].startswith("release 2 of the dataset 'people'; recorded as entry 4 of ledger")
    report = check_ledger(ledger, [entry, first.certificate_data.entry])
    assert (report.certificates, report.guarantees, report.problems) == (2, 1, ())


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy_unit": "day"},
        {"budget": tr.Budget(epsilon=2, delta="1e-6")},
    ],
)
def test_another_person_or_promise_is_refused(place, changes):
    session(place)
    with pytest.raises(InputError, match="ledger has"):
        session(place, **changes)


def test_plans_of_a_dataset_may_use_other_bounds_and_share_its_budget(place):
    """A suggested bound can be used in the ledger that paid for it; each certificate has the bounds of its release."""
    suggested = session(place, max_rows=1).suggest_max_rows(budget_fraction="0.25", key="bound")
    wider = session(place, max_rows=3)
    answers = wider.plan(ASKED, budget_fraction="0.75", key="march").release()
    assert answers.certificate["neighbors"]["max_rows"] == 3
    assert {mechanism["rows"] for mechanism in answers.certificate["mechanisms"]} == {3}
    assert session(place).spent["budget_fraction"] == "1"
    assert check_ledger(Ledger(place), [answers.certificate_data.entry]).problems == ()
    again = session(place, max_rows=3).suggest_max_rows(budget_fraction="0.25", key="bound")
    assert (again.max_rows, again.size) == (suggested.max_rows, suggested.size)
    with pytest.raises(InputError, match="key"):
        session(place, max_rows=2).plan(ASKED, budget_fraction="0.75", key="march").release()


def test_the_same_key_gives_the_same_answers_and_costs_nothing(place):
    answers = session(place).plan(ASKED, budget_fraction="0.5", key="march").release()
    again = session(place).plan(ASKED, budget_fraction="0.50", key="march").release()
    assert again.certificate == answers.certificate
    assert [answer.rows for answer in again] == [answer.rows for answer in answers]
    assert {type(row["day"]) for row in again[0].rows} == {datetime.date}
    assert again.to_json() == answers.to_json()
    assert session(place).spent["budget_fraction"] == "0.5"
    with pytest.raises(InputError, match="key"):
        session(place).plan(ASKED[:1], budget_fraction="0.5", key="march").release()


def test_what_failed_after_the_charge_is_spent_and_closes_the_key(place, monkeypatch):
    plan = session(place).plan(ASKED, budget_fraction="0.5", key="march")
    with monkeypatch.context() as patch:
        fails_after_the_charge(patch, EngineError("no"))
        with pytest.raises(
            EngineError, match=r"the budget was spent, and nothing was published.*charged before it reads"
        ):
            plan.release()
    assert plan.charged
    for again in (plan, session(place).plan(ASKED, budget_fraction="0.5", key="march")):
        with pytest.raises(
            InsufficientBudgetError, match=r"'march' failed while its table was read.*choose another key"
        ):
            again.release()
    assert session(place).spent["budget_fraction"] == "0.5"
    other = session(place)
    assert other.resumed(other.plan(ASKED, budget_fraction="0.5")).release()
    assert session(place).spent["budget_fraction"] == "1"
    assert check_ledger(Ledger(place)).problems == ()


def test_a_charge_pays_for_two_readings_of_killed_processes(place, monkeypatch):
    """A process that is killed writes nothing down: the second reading is, and there is no third."""
    monkeypatch.setattr("tightrope.release.execution.POLL_SECONDS", 0.0)
    for said in ("reads once more at no cost", "choose another key to read again"):
        with monkeypatch.context() as patch:
            fails_after_the_charge(patch, KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt, match=said):
                session(place).plan(ASKED, budget_fraction="0.5", key="march").release()
    with pytest.raises(InsufficientBudgetError, match="both readings of the table that a charge includes"):
        session(place).plan(ASKED, budget_fraction="0.5", key="march").release()
    kinds = [entry.kind for entry in Ledger(place).list_entries()]
    assert kinds == ["dataset", "charged", "retried"]
    assert check_ledger(Ledger(place)).problems == ()
    assert session(place).spent["budget_fraction"] == "0.5"


def test_a_killed_process_is_tried_again_once_at_no_cost(place, monkeypatch):
    with monkeypatch.context() as patch:
        fails_after_the_charge(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            session(place).plan(ASKED, budget_fraction="0.5", key="march").release()
    opened = session(place)
    assert opened.resumed(opened.plan(ASKED, budget_fraction="0.5")).release()
    assert session(place).spent["budget_fraction"] == "0.5"


def test_what_failed_before_the_charge_costs_nothing(place, monkeypatch):
    plan = session(place).plan(ASKED, budget_fraction="0.5")
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.build_answers.Profile", lambda **_: (_ for _ in ()).throw(EngineError("no")))
        with pytest.raises(EngineError, match="nothing was spent"):
            plan.release()
    assert not plan.charged
    assert session(place).spent["budget_fraction"] == "0"


def test_an_audience_and_a_yearly_limit(place):
    from tightrope.ledger import Limit

    limits = [Limit("yearly", tr.Budget(epsilon="0.5", delta="1e-6"), every="year")]
    session(place, limits=limits).plan(ASKED, budget_fraction="0.5").release()
    with pytest.raises(InsufficientBudgetError, match="yearly 20"):
        session(place, limits=limits, audience="press").plan(ASKED, budget_fraction="0.1").release()


def test_twelve_months_declared_together_have_less_noise_than_twelve_twelfths(place):
    """Two questions about 3 rows of a person at epsilon 1 and delta 1e-6: about ± 125 instead of ± 216."""
    keys = [DAYS[0], DAYS[1]]
    questions = [tr.count(by="day", keys=keys), tr.sum("x", bounds=(0, 1), by="day", keys=keys)]
    opened = session(place, max_rows=3)
    twelfth = opened.plan(questions, budget_fraction="0.08")
    series = opened.series(opened.plan(questions, budget_fraction="0.96"), times=12, key="2026")
    alone, together = (plan.accuracies()[0].errors_at_size(100)["half_width_95"] for plan in (twelfth, series.next()))
    assert together < 0.6 * alone


def test_a_series_goes_on_in_later_sessions_with_the_same_noise(place):
    tables = []
    for month in range(3):
        opened = session(place, source=table(month / 3))
        series = opened.series(opened.plan(ASKED, budget_fraction="0.5"), times=3, key="quarter")
        assert series.released == month
        answers = series.next().release()
        tables.append(answers.certificate_data.tables)
        entry = answers.certificate_data.entry
        assert entry is not None and (entry.position, entry.of, entry.budget_fraction) == (month + 1, 3, "1/6")
        assert answers.certificate["ledger"].startswith(f"release {month + 1} of 3;")
    assert tables[0] == tables[1] == tables[2]
    with pytest.raises(InsufficientBudgetError, match="all 3 releases"):
        series.next()
    account = Ledger(place).open_account("people")
    assert account.current_state().balance_of("total").spent == Fraction(1, 2)
    report = check_ledger(Ledger(place))
    assert (report.guarantees, report.problems) == (1, ())
    with pytest.raises(InputError, match="the series 'quarter' has the questions mean_x"):
        opened.series(opened.plan(ASKED[:1], budget_fraction="0.5"), times=3, key="quarter")


def test_a_date_that_was_paid_and_not_answered_comes_first(place, monkeypatch):
    opened = session(place)
    series = opened.series(opened.plan(ASKED, budget_fraction="0.5"), times=2, key="half")
    with monkeypatch.context() as patch:
        fails_after_the_charge(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            series.next().release()
    assert series.released == 1
    series.next().release()
    assert series.released == 1


def test_a_date_whose_reading_failed_is_spent(place, monkeypatch):
    opened = session(place)
    series = opened.series(opened.plan(ASKED, budget_fraction="0.5"), times=2, key="half")
    with monkeypatch.context() as patch:
        fails_after_the_charge(patch, EngineError("no"))
        with pytest.raises(EngineError, match="charged before it reads"):
            series.next().release()
    series.next().release()
    assert series.released == 2


def test_the_ledger_says_which_rule_holds_and_what_planning_would_have_saved(place):
    opened = session(place)
    for _ in range(4):
        opened.plan(ASKED, budget_fraction="0.1").release()
    series = opened.series(opened.plan(ASKED, budget_fraction="0.5"), times=12, key="2026")
    series.next().release()
    said = ledger_overview(Ledger(place).open_account("people"))
    assert [(block["rule"], block["releases"]) for block in said["blocks"]] == [("basic composition", 1)] * 4 + [
        ("exact composition", 12)
    ]
    (limit,) = said["limits"]
    assert (limit["spent"], limit["reserved"], limit["left"]) == ("53/120", "11/24", "0.1")
    assert said["series"] == [{"key": "2026", "released": 1, "times": 12}]
    assert 0 < float(said["planned_together"]["share"]) < 0.9


def test_without_a_ledger_there_is_neither_a_key_nor_a_series():
    plain = tr.Session(TABLE, privacy_unit=None, budget=BUDGET)
    with pytest.raises(InputError, match="key"):
        plain.plan([tr.count()], key="march")
    with pytest.raises(InputError, match="ledger"):
        plain.series(plain.plan([tr.count()]), times=3, key="x")
    assert plain.plan([tr.count()]).release().certificate["entry"] is None


def test_a_plan_with_conditions_and_computed_columns_is_known_again_by_its_key(place):
    questions = [tr.count(by="day", where="x < 0.5"), tr.sum("x", bounds=(0, 1), where=tr.column("x") > 0.25)]
    first = session(place).plan(questions, where="x < 0.9", budget_fraction="0.5", key="march").release()
    again = session(place).plan(questions, where="x < 0.9", budget_fraction="0.5", key="march").release()
    assert again.to_json() == first.to_json()
    with pytest.raises(InputError, match="key"):
        session(place).plan(questions, where="x < 0.8", budget_fraction="0.5", key="march").release()
    assert check_ledger(Ledger(place)).problems == ()


def test_noise_that_does_not_keep_what_was_said_of_it_is_found(place):
    """The power of the check: somebody charges nine tenths of what the noise costs."""
    plan = session(place).plan(ASKED)
    account = Ledger(place).open_account("people")
    account.charge_release(Claim("honest", "plan", BUDGET, noise_record_of(plan.draft).to_text))
    assert check_ledger(Ledger(place)).problems == ()
    other = place.with_name("other.ledger")
    session(other)
    Ledger(other).open_account("people").charge_release(
        Claim("cheat", "plan", BUDGET.scale_by("0.9"), noise_record_of(plan.draft).to_text)
    )
    (found,) = check_ledger(Ledger(other)).problems
    assert "does not meet its stated guarantee" in found


def test_a_release_that_is_interrupted_says_whether_it_was_charged(place, monkeypatch):
    plan = session(place).plan(ASKED, budget_fraction="0.5", key="march")
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.ledger.Account.store_answers", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt, match="the budget was spent, and nothing was published"):
            plan.release()
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.ledger.Account.find_charge", lambda *_: (_ for _ in ()).throw(LedgerError("gone")))
        with pytest.raises(LedgerError, match=r"not known whether the budget was spent.*'march'"):
            plan.release()
    plan.release()
    assert session(place).spent["budget_fraction"] == "0.5"


BY_MOMENTS = Limit("total", BUDGET, rule="moments", releases=12)


def halves(plan) -> list[float]:
    return [accuracy.errors_at_size(100)["half_width_95"] for accuracy in plan.accuracies()]


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    """Twelve releases on a limit by moments, each a twelfth, one by one; the last session and its last certificate."""
    place = tmp_path_factory.mktemp("moments") / "people.ledger"
    asked = [tr.count(by="day", keys=DAYS[:3]), tr.mean("x", bounds=(0, 1))]
    for _ in range(12):
        own = session(place, limits=[BY_MOMENTS])
        plan = own.plan(asked, budget_fraction="0.083333")
        answers = plan.release()
    return place, own, plan, answers, asked


@pytest.mark.slow
def test_twelve_releases_by_moments_need_half_the_noise_of_twelve_twelfths(twelve, tmp_path):
    _, _, plan, _, asked = twelve
    basic = tr.Session(TABLE, privacy_unit="person", max_rows=2, budget=BUDGET).plan(asked, budget_fraction="0.083333")
    (count, _), (count_basic, _) = halves(plan), halves(basic)
    assert (count, count_basic) == (80.0, 144.0)


def test_twelve_shares_fill_the_limit_and_a_thirteenth_is_refused(twelve):
    place, own, _, answers, asked = twelve
    spent = own.spent
    assert 0.99 < float(Fraction(spent["budget_fraction"])) <= 1 and spent["rule"] == "moments"
    with pytest.raises(InsufficientBudgetError, match="This attempt was not charged"):
        own.plan(asked, budget_fraction="0.083333").release()
    assert check_ledger(Ledger(place), [answers.certificate_data.entry]).problems == ()


def test_certificate_and_overview_say_rule_left_and_price(twelve):
    place, _, _, answers, _ = twelve
    (limit,) = answers.certificate_data.entry.limits
    assert (limit.name, limit.rule, limit.left_by_addition) == ("total", "moments", "nothing")
    assert "by moments (nothing under basic composition)" in answers.certificate["ledger"]
    view = ledger_overview(Ledger(place).open_account("people"))
    (shown,) = view["limits"]
    assert (shown["rule"], shown["left"], shown["left_by_addition"]) == ("moments", limit.left, "nothing")
    assert view["blocks"][0]["rule"] == "moments"
    assert 0.8 < view["planned_together"]["epsilon"] < 0.95
    reading = view["running"]
    assert reading["rule"] == "odometer of moments" and 0.8 < reading["epsilon"] < 1.3


def test_what_a_plan_by_moments_keeps_by_itself_is_proven(twelve):
    _, _, plan, _, _ = twelve
    ((epsilon, delta),) = plan.budget.points
    assert delta == Decimal("8.3333E-8")
    assert 1 / 12 < epsilon < 1  # more than a twelfth: that is what adding up would take
    assert plan.loss.delta(float(epsilon)) <= float(delta)


def test_a_series_by_moments_takes_its_share_at_once(place):
    own = session(place, limits=[BY_MOMENTS])
    series = own.series(own.plan([tr.count(by="day", keys=DAYS[:3])], budget_fraction="0.5"), times=6, key="monthly")
    assert Fraction(own.spent["budget_fraction"]) <= Fraction(1, 2)
    series.next().release()
    again = session(place, limits=[BY_MOMENTS])
    other = again.series(again.plan([tr.count(by="day", keys=DAYS[:3])], budget_fraction="0.5"), times=6, key="monthly")
    assert (other.released, other.next().budget) == (1, series.next().budget)
    assert check_ledger(Ledger(place)).problems == ()


@pytest.mark.slow
def test_within_takes_the_least_share_of_moments_that_does(place):
    own = session(place, limits=[BY_MOMENTS])
    asked = [tr.count(by="day", keys=DAYS[:3])]
    plan = own.plan(asked, margin_of_error={"count_by_day": 60})
    assert halves(plan)[0] <= 60 and plan.budget_fraction < Decimal("0.2")
    with pytest.raises(InsufficientBudgetError, match="not enough"):
        own.plan(asked, margin_of_error={"count_by_day": 1}, budget_fraction="0.1")


def test_a_whole_budget_of_another_promise_is_refused(place):
    with pytest.raises(InputError, match="whole budget"):
        session(place, limits=[Limit("total", tr.Budget(epsilon=2, delta="1e-6"), rule="moments", releases=12)])


def test_a_session_that_says_no_rule_is_refused_where_there_is_one(place):
    session(place, limits=[BY_MOMENTS])
    with pytest.raises(InputError, match="by moments for about 12 releases"):
        session(place)


def test_a_certificate_says_what_is_left_of_every_limit(place):
    yearly = Limit("yearly", tr.Budget(epsilon="0.5", delta="5e-7"), every="year")
    own = session(place, limits=[yearly])
    answers = own.series(own.plan(ASKED, budget_fraction="0.25"), times=2, key="half-yearly").next().release()
    year = datetime.datetime.now(datetime.UTC).year
    left = {limit.name: limit.left for limit in answers.certificate_data.entry.limits}
    assert left == {"total": "0.75", f"yearly {year}": "0.5"}
    assert f"0.5 of the limit 'yearly {year}'" in answers.certificate["ledger"]


def test_answers_that_are_damaged_are_not_said_to_be_unpublished(place):
    session(place).plan(ASKED, budget_fraction="0.5", key="march").release()
    with sqlite3.connect(place) as file:
        for trigger in ("update", "delete"):
            file.execute(f"DROP TRIGGER tightrope_documents_{trigger}")
        file.execute("UPDATE tightrope_documents SET content = 'x' WHERE content LIKE '%\"rows\": %'")
    with pytest.raises(LedgerError) as raised:
        session(place).plan(ASKED, budget_fraction="0.5", key="march").release()
    assert "are damaged" in str(raised.value) and "does not help" in str(raised.value)


def test_a_new_dataset_with_the_columns_of_another_is_opened_with_a_word(place):
    session(place)
    with pytest.warns(
        LedgerWarning, match=r"'people', with the same columns and privacy unit as the new dataset 'patients'"
    ):
        session(place, dataset="patients")
    session(place, dataset="patients")  # said once
    session(place, dataset="others", source=table(y=[1] * 900))


def test_instants_of_nanoseconds_come_back_as_they_were():
    for text in ("2026-03-01T12:00:00.123456789", "2026-03-01T12:00:00.000000001+01:00"):
        value = pandas.Timestamp(text)
        assert from_stored_form(json.loads(json.dumps(to_stored_form(value)))) == value
    assert to_stored_form(pandas.Timestamp("2026-03-01T12:00")) == {"datetime": "2026-03-01T12:00:00"}


def test_a_spent_budget_is_said_to_be_spent_and_a_renewing_limit_to_renew(place, tmp_path):
    """Neither is answered by advice to take a larger budget."""
    session(place).plan(ASKED).release()
    with pytest.raises(InsufficientBudgetError, match=r"0 is left.*no further answers from this dataset") as spent:
        session(place).plan(ASKED, budget_fraction="0.1").release()
    yearly = tr.ledger.Limit("yearly", tr.Budget(epsilon="0.5", delta="1e-6"), every="year")
    limited = session(tmp_path / "limited", limits=[yearly])
    limited.plan(ASKED, budget_fraction="0.5").release()
    with pytest.raises(InsufficientBudgetError, match="This limit renews after 'yearly 2") as waiting:
        limited.plan(ASKED, budget_fraction="0.1").release()
    for error in (spent, waiting):
        assert "larger" not in str(error.value)
        assert "computing with them costs nothing" in str(error.value)
