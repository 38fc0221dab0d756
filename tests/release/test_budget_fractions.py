"""Fractions that are no decimals add up to the whole budget, and nothing printed is above the fraction that is paid."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import charged_fraction, decimal_fraction, printed_float_at_most
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger import Claim, Ledger, Limit
from tightrope.ledger.check import check_ledger
from tightrope.ledger.identity import Identity
from tightrope.release.accounts import ChargeAttempt, SessionCharges
from tightrope.release.settings import guarantee_data

TABLE = pyarrow.table({"x": [1, 2, 3] * 200})
BUDGET = tr.Budget(epsilon=1, delta="1e-6")
epsilons = st.decimals("0.001", "100", places=6)
deltas = st.decimals("1e-12", "0.01", places=15).filter(lambda delta: delta > 0)
forms = st.sampled_from([float, Fraction, lambda ratio: f"{ratio.numerator}/{ratio.denominator}"])


@given(st.integers(1, 1000), forms, epsilons, deltas)
def test_equal_parts_add_up_to_the_whole(count, form, epsilon, delta):
    whole, part = tr.Budget(epsilon=epsilon, delta=delta), form(Fraction(1, count))
    charged = charged_fraction(decimal_fraction(part))
    assert count * charged == 1
    scaled = whole.scale_by(part)
    for (e, d), (whole_e, whole_d) in zip(scaled.points, whole.points, strict=True):
        assert Fraction(whole_e) * charged * (1 - Fraction(1, 10**15)) <= Fraction(e) <= Fraction(whole_e) * charged
        assert Fraction(d) <= Fraction(whole_d) * charged
    assert Fraction(scaled.delta) <= Fraction(whole.delta) * charged


@given(st.integers(1, 1000), st.data(), forms)
def test_unequal_parts_are_charged_as_they_are(count, data, form):
    first = data.draw(st.integers(1, count))
    rest = [Fraction(first, count), Fraction(count - first, count)]
    assert [charged_fraction(decimal_fraction(form(part))) for part in rest if part] == [part for part in rest if part]


def test_what_floats_leave_is_a_ratio_too():
    assert charged_fraction(decimal_fraction(1 - 2 / 3)) == Fraction(1, 3)
    assert charged_fraction(decimal_fraction(0.1 + 0.2)) == Fraction(3, 10)
    assert decimal_fraction(0.1 + 0.2) == Decimal("0.3")


@pytest.mark.parametrize("count", [3, 7, 11, 49, 97, 1000])
@pytest.mark.parametrize("form", [float, Fraction])
def test_the_account_of_a_session_takes_all_parts_and_no_more(count, form):
    account = SessionCharges()
    charge = charged_fraction(decimal_fraction(form(Fraction(1, count))))
    for plan in range(count):
        account.charge_attempt(ChargeAttempt(plan, charge))
    assert account.total_charged() == 1
    with pytest.raises(InsufficientBudgetError, match="0 is left"):
        account.charge_attempt(ChargeAttempt("one more", Fraction(1, 10**30)))


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize(("part", "count"), [(1 / 3, 3), (Fraction(1, 3), 3), (1 / 7, 7), ("1/11", 11), (1 / 11, 11)])
def test_releases_with_equal_parts_spend_the_whole_budget(part, count):
    session = tr.Session(TABLE, privacy_unit=None, budget=BUDGET)
    for _ in range(count):
        plan = session.plan([tr.count()], budget_fraction=part)
        certificate = json.loads(json.dumps(plan.release().to_data()["certificate"]))
        paid = Fraction(1, count)
        assert Fraction(certificate["budget_fraction"]) <= paid
        assert Fraction(repr(certificate["epsilon"])) <= paid * Fraction(BUDGET.points[0][0])
        assert Fraction(repr(certificate["delta"])) <= paid * Fraction(BUDGET.delta)
        for epsilon, delta in certificate["budget"]["points"]:
            assert Fraction(epsilon) <= paid
            assert Fraction(delta) <= paid * Fraction(BUDGET.delta)
    assert session.spent["budget_fraction"] == "1"
    assert session.spent["points"] == [["1", "0.000001"]]
    with pytest.raises(InsufficientBudgetError, match=r"0 is left"):
        session.plan([tr.count()], budget_fraction=part).release()


def test_a_refusal_names_a_fraction_that_can_be_planned_with():
    account = SessionCharges()
    account.charge_attempt(ChargeAttempt("first", Fraction(1, 3)))
    with pytest.raises(InsufficientBudgetError, match=r"2/3 is left\. .*budget_fraction='2/3' or less"):
        account.check_attempt(ChargeAttempt("second", Fraction(3, 4)))
    account.charge_attempt(ChargeAttempt("third", charged_fraction(decimal_fraction("2/3"))))
    assert account.total_charged() == 1


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(4, 3), "4/3", "1/0", "1/", -1 / 3, 0.0, 1.01, True, None, 1j])
def test_what_is_no_fraction_of_a_budget_is_refused(wrong):
    with pytest.raises(InputError, match="budget_fraction"):
        BUDGET.scale_by(wrong)


@pytest.mark.parametrize("text", ["0.25", "0.1", "0.3333333333", "0." + "3" * 39 + "4", "0." + "6" * 30])
def test_decimals_stay_exact(text):
    assert decimal_fraction(text) == Decimal(text)
    assert charged_fraction(Decimal(text)) == Fraction(text)


@given(epsilons, deltas, st.integers(1, 1000), st.data())
@settings(max_examples=60, deadline=None)
def test_printed_guarantees_are_at_most_the_paid_fraction(epsilon, delta, count, data):
    part = Fraction(data.draw(st.integers(1, count)), count)
    budget = tr.Budget(epsilon=epsilon, delta=delta).scale_by(part)
    paid = (Fraction(epsilon) * part, Fraction(delta) * part)
    scale = 1e9 / float(epsilon)  # noise so large that the loss meets every such budget
    loss = PrivacyLoss.from_distribution(GaussianLossDistribution(1 / scale))
    printed = guarantee_data(loss, budget)
    assert Fraction(repr(printed["epsilon"])) <= paid[0]
    assert Fraction(repr(printed["delta"])) <= paid[1]
    assert Fraction(printed["delta_exact"]) <= paid[1]
    assert Fraction(repr(printed_float_at_most(budget.points[0][0]))) <= paid[0]


def account_of(place: Path, *more: Limit):
    identity = Identity("people", (("x", "integer"),), PrivacyUnit(None, 1, 1, 1))
    return Ledger(place, create=True).declare_dataset(identity, [Limit("total", BUDGET), *more])


@pytest.mark.parametrize("count", [3, 7, 11])
def test_a_ledger_takes_all_parts_and_no_more(tmp_path, count):
    press = Limit("press", tr.Budget(epsilon=2, delta="2e-6"))
    account = account_of(tmp_path / "l.ledger", press)
    part = decimal_fraction(1 / count)
    kept, ratio = BUDGET.scale_by(1 / count), charged_fraction(part)
    for number in range(count):
        entry = account.charge_release(Claim(f"release {number}", "plan", kept, fraction=ratio))
        assert account.fraction_charged(entry) == Fraction(1, count)
    state = account.current_state()
    assert state.balance_of("total").fraction_left == 0
    assert state.balance_of("press").fraction_left == Fraction(1, 2)
    with pytest.raises(InsufficientBudgetError, match="0 is left"):
        account.charge_release(Claim("one more", "plan", BUDGET.scale_by("1e-9")))
    assert check_ledger(Ledger(tmp_path / "l.ledger")).problems == ()


def test_a_stated_fraction_never_lowers_a_charge(tmp_path):
    account = account_of(tmp_path / "l.ledger")
    entry = account.charge_release(Claim("a", "plan", BUDGET.scale_by("0.5"), fraction=Fraction(1, 3)))
    assert account.fraction_charged(entry) == Fraction(1, 2)


def test_entries_of_decimal_fractions_are_as_before(tmp_path):
    account = account_of(tmp_path / "l.ledger")
    entry = account.charge_release(Claim("a", "plan", BUDGET.scale_by("0.25")))
    assert set(entry.body_data) == {"plan", "kept", "recipe", "audience", "time", "series"}


@pytest.mark.usefixtures("planned_once")
def test_sessions_of_a_ledger_share_thirds(tmp_path):
    place = tmp_path / "people.ledger"
    for number in range(3):
        session = tr.Session.open(TABLE, privacy_unit=None, budget=BUDGET, ledger=place, dataset="people")
        released = session.plan([tr.count()], budget_fraction=1 / 3, key=f"month {number}").release()
        entry = released.to_data()["certificate"]["entry"]
        assert (entry["budget_fraction"], entry["left"]) == ("1/3", ["2/3", "1/3", "0"][number])
    assert session.spent["budget_fraction"] == "1"
    again = session.plan([tr.count()], budget_fraction=1 / 3, key="month 0").release()
    assert again.to_data()["certificate"]["entry"]["number"] < entry["number"]
    assert check_ledger(Ledger(place)).problems == ()
