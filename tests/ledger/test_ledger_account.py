"""Charges are exact, happen once under a key, are refused beyond a limit, and every refusal is written down."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tests.ledger.conftest import BUDGET, TOTAL, claim, identity
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger import Ledger, Limit
from tightrope.ledger.check import check_ledger
from tightrope.ledger.identity import SeriesClaim
from tightrope.ledger.limits import PERIODS
from tightrope.ledger.state import State, state_after_entry


def test_ten_charges_of_a_tenth_exhaust_one_exactly(account):
    for number in range(10):
        account.charge_release(claim(f"release {number}"))
    assert account.current_state().balance_of("total").fraction_left == 0
    with pytest.raises(InsufficientBudgetError, match=r"a fraction of 0\.1 .* and 0 is left.*was not charged"):
        account.charge_release(claim("one more"))
    assert account.current_state().balance_of("total").spent == 1


def test_thirds_and_sevenths_add_up_exactly(account):
    series = SeriesClaim("weekly", "plan", BUDGET, 7, "{}")
    account.reserve_series(series)
    assert account.current_state().balance_of("total").reserved == 1
    for week in range(7):
        account.charge_release(claim(f"week {week}", "1", noise_record="{}"), "weekly")
    balance = account.current_state().balance_of("total")
    assert (balance.spent, balance.reserved) == (Fraction(1), Fraction(0))
    with pytest.raises(InsufficientBudgetError, match="all 7 releases"):
        account.charge_release(claim("week 8", "1", noise_record="{}"), "weekly")


def test_a_key_is_charged_once_and_belongs_to_one_plan(account):
    first = account.charge_release(claim("march"))
    assert account.charge_release(claim("march")) == first
    assert account.current_state().balance_of("total").spent == Fraction(1, 10)
    with pytest.raises(InputError, match="key"):
        account.charge_release(claim("march", plan="another plan"))


def test_a_refusal_is_an_entry_and_spends_nothing(account):
    account.charge_release(claim("a", "0.7"))
    for way in (account.charge_release, account.check_charge):
        with pytest.raises(
            InsufficientBudgetError, match=r"0\.3 is left\. This attempt was not charged\. Plan with 0\.75"
        ):
            way(claim("b", "0.4"))
    kinds = [entry.kind for entry in account.book.list_entries()]
    assert kinds == ["dataset", "charged", "refused", "refused"]
    assert account.book.list_entries()[-1].body_data["key"] == "b"
    account.charge_release(claim("b", "0.3"))


def test_checking_spends_nothing_and_writes_nothing(account):
    account.check_charge(claim("a"))
    assert [entry.kind for entry in account.book.list_entries()] == ["dataset"]


def test_the_first_answers_that_are_kept_are_the_ones(account):
    account.charge_release(claim("a"))
    assert account.stored_answers("a") is None
    assert account.store_answers("a", "first") == "first"
    assert account.store_answers("a", "second") == "first" == account.stored_answers("a")
    with pytest.raises(InputError, match="charged"):
        account.store_answers("b", "never paid")


def test_what_was_paid_and_never_answered_is_found_by_its_plan(account):
    for key in ("a", "b"):
        account.charge_release(claim(key))
    account.store_answers("b", "seen")
    assert account.unanswered_key("plan") == "a"
    assert account.unanswered_key("another plan") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("privacy_unit", "city"), ("means", "an aircraft"), ("privacy_unit", None)],
)
def test_a_dataset_with_another_privacy_unit_is_refused(opened, account, name, value):
    with pytest.raises(InputError, match=rf"{name}.*another dataset"):
        opened().declare_dataset(identity(**{name: value}), [TOTAL])


def test_a_dataset_with_another_type_of_its_privacy_unit_or_another_promise_is_refused(opened, account):
    other = identity(columns=(("user", "text"), ("town", "text"), ("city", "text")))
    with pytest.raises(InputError, match="'user', which identifies a person, is 'text', but the ledger has 'integer'"):
        opened().declare_dataset(other, [TOTAL])
    with pytest.raises(InputError, match="a declared budget cannot be changed"):
        opened().declare_dataset(identity(), [Limit("total", tr.Budget(epsilon=2, delta="1e-6"))])
    with pytest.raises(InputError, match="one of \\['visits'\\]"):
        opened().open_account("visitors")


def test_one_promise_in_other_words_is_the_same(opened, account):
    words = [
        tr.Budget(epsilon="1.0", delta="0.0000010"),
        tr.Budget(epsilon=1.0, delta=1e-6),
        tr.Budget(points=[(1, "1e-6")]),
    ]
    for budget in words:
        opened().declare_dataset(identity(), [Limit("total", budget)])


def test_the_order_of_columns_is_no_difference(opened, account):
    opened().declare_dataset(identity(columns=(("city", "text"), ("user", "integer"))), [TOTAL])


def test_a_limit_costs_the_least_share_that_covers_every_point():
    limit = Limit("total", tr.Budget(points=[("1", "1e-6"), ("0", "0.1")]))
    assert limit.required_fraction(tr.Budget(points=[("0.25", "2e-7"), ("0", "0.02")])) == Fraction(1, 4)
    assert limit.required_fraction(tr.Budget(points=[("0.25", "2e-7"), ("0", "0.04")])) == Fraction(2, 5)
    assert limit.required_fraction(tr.Budget(epsilon="0.1", delta="1e-7")) is None


def test_a_limit_for_each_year_renews_and_the_whole_never_does(opened):
    day = ["2026-12-31T23:59:59.999+00:00"]
    yearly = Limit("yearly", tr.Budget(epsilon="0.3", delta="3e-7"), every="year")
    account = opened(clock=lambda: day[0]).declare_dataset(identity(), [TOTAL, yearly])
    account.charge_release(claim("a", "0.3"))
    with pytest.raises(InsufficientBudgetError, match="'yearly 2026' and 0 is left"):
        account.charge_release(claim("b", "0.1"))
    day[0] = "2027-01-01T00:00:00.000+00:00"
    account.charge_release(claim("b", "0.3"))
    day[0] = "2026-06-01T00:00:00.000+00:00"  # a clock that goes backwards brings no year back
    with pytest.raises(InsufficientBudgetError, match="'yearly 2027'"):
        account.charge_release(claim("c", "0.1"))
    times = [entry.time for entry in account.book.list_entries()]
    assert times == sorted(times)
    assert account.current_state().balance_of("total").spent == Fraction(3, 5)


def test_an_audience_has_a_limit_of_its_own(opened):
    press = Limit("press", tr.Budget(epsilon="0.2", delta="2e-7"), audience="press")
    account = opened().declare_dataset(identity(), [TOTAL, press])
    account.charge_release(claim("a", "0.2", audience="press"))
    with pytest.raises(InsufficientBudgetError, match="'press'"):
        account.charge_release(claim("b", "0.1", audience="press"))
    with pytest.raises(InsufficientBudgetError, match="'press'"):
        account.charge_release(claim("b", "0.1"))  # what everybody sees, the press sees
    account.charge_release(claim("b", "0.1", audience="board"))
    assert account.current_state().balance_of("total").spent == Fraction(3, 10)


def test_a_series_is_paid_once_in_every_year_that_it_reaches(opened):
    day = ["2026-11-01T00:00:00.000+00:00"]
    yearly = Limit("yearly", tr.Budget(epsilon="0.5", delta="5e-7"), every="year")
    account = opened(clock=lambda: day[0]).declare_dataset(identity(), [TOTAL, yearly])
    account.reserve_series(SeriesClaim("monthly", "plan", BUDGET.scale_by("0.4"), 4, "{}"))
    account.charge_release(claim("november", "0.4", noise_record="{}"), "monthly")
    day[0] = "2027-01-01T00:00:00.000+00:00"
    account.charge_release(claim("january", "0.4", noise_record="{}"), "monthly")
    account.charge_release(claim("february", "0.4", noise_record="{}"), "monthly")
    state = account.current_state()
    assert state.balance_of("yearly 2026").spent == state.balance_of("yearly 2027").spent == Fraction(4, 5)
    assert (state.balance_of("total").spent, state.balance_of("total").reserved) == (Fraction(3, 10), Fraction(1, 10))


@pytest.mark.parametrize("limits", [[], [Limit("press", BUDGET)], [TOTAL, TOTAL], [Limit("total", BUDGET, "year")]])
def test_there_is_one_limit_for_good(opened, limits):
    with pytest.raises(InputError, match="limits"):
        opened().declare_dataset(identity(), limits)


SHARES = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(1, 3), max_denominator=50)
STEPS = st.lists(st.tuples(st.sampled_from(["charge", "reserve", "date"]), SHARES, st.integers(1, 5)), max_size=40)


@given(STEPS)
def test_mixed_histories_are_those_of_a_hand_made_oracle(steps):
    """Exact series and adaptive releases in one history, beside four variables in rationals."""
    half = Limit("half", tr.Budget(epsilon="0.5", delta="1e-6"))
    limits, state = (TOTAL, half), State()
    series: list[list[Fraction | int]] = []
    spent = reserved = Fraction(0)
    for number, (what, share, times) in enumerate(steps):
        text = f"{float(share):.3f}"
        kept, cost = BUDGET.scale_by(text), Fraction(text)
        said = {"kept": kept.to_data(), "audience": None, "time": "2026", "series": None, "times": times}
        fits = 2 * (cost + spent + reserved) <= 1
        if what == "date":
            open_ones = [one for one in series if one[2] < one[1]]
            if not open_ones:
                continue
            one = open_ones[0]
            said["series"] = f"series {one[3]}"
            state = state_after_entry(state, limits, "charged", f"{number}", said)
            one[2] += 1
            spent, reserved = spent + Fraction(one[0], one[1]), reserved - Fraction(one[0], one[1])
        elif not fits:
            with pytest.raises(InsufficientBudgetError):
                state_after_entry(
                    state, limits, {"charge": "charged", "reserve": "reserved"}[what], f"series {number}", said
                )
            continue
        elif what == "charge":
            state, spent = state_after_entry(state, limits, "charged", f"{number}", said), spent + cost
        else:
            state, reserved = state_after_entry(state, limits, "reserved", f"series {number}", said), reserved + cost
            series.append([cost, times, 0, number])
        assert (state.balance_of("total").spent, state.balance_of("total").reserved) == (spent, reserved)
        assert state.balance_of("half").fraction_left == 1 - 2 * (spent + reserved)
        assert State.from_data(state.to_data()) == state


def test_periods_are_prefixes_of_a_time():
    assert {name: "2026-03-01T"[:length] for name, length in PERIODS.items()} == {"year": "2026", "month": "2026-03"}


def test_a_history_is_whole(opened, account):
    account.charge_release(claim("a"))
    account.store_answers("a", "answers")
    account.reserve_series(SeriesClaim("weekly", "plan", BUDGET.scale_by("0.5"), 5, ""))
    account.charge_release(claim("week 1", "0.5"), "weekly")
    with pytest.raises(InputError, match="noise"):
        account.charge_release(claim("week 2", "0.5", noise_record="other"), "weekly")
    with pytest.raises(InsufficientBudgetError):
        account.charge_release(claim("b", "0.5"))
    report = check_ledger(opened())
    assert (report.entries, report.problems) == (6, ())


def test_two_ledgers_are_never_taken_for_one(opened, tmp_path):
    other = Ledger(tmp_path / "other.ledger", create=True)
    assert other.ledger_id != opened().ledger_id
    other.close()


@pytest.mark.parametrize("key", ["k" * 195, "k" * 300, "a\nb", "", "a\u200bb"])
def test_a_series_has_a_key_that_its_dates_can_have(key):
    """Its share was set aside, and no date could ever be released."""
    with pytest.raises(InputError, match="expected key"):
        SeriesClaim(key, "plan", BUDGET.scale_by("0.4"), 10, "{}")


def test_releases_and_dates_of_a_series_have_keys_of_their_own(account):
    account.charge_release(claim("monthly 2/2"))
    with pytest.raises(InputError, match=r"'monthly 2/2', the key of a date of this series, is already a release"):
        account.reserve_series(SeriesClaim("monthly", "plan", BUDGET.scale_by("0.4"), 2, "{}"))
    account.reserve_series(SeriesClaim("weekly", "plan", BUDGET.scale_by("0.4"), 2, "{}"))
    with pytest.raises(InputError, match="reserved for a date of the series 'weekly'"):
        account.charge_release(claim("weekly 2/2"))
    for week in (1, 2):
        account.charge_release(claim(f"weekly {week}/2", "0.4", noise_record="{}"), "weekly")
    balance = account.current_state().balance_of("total")
    assert (balance.spent, balance.reserved) == (Fraction(1, 2), 0)


CLOCKS = {
    "backward by a second": ["2026-05-01T00:00:01.000+00:00", "2026-05-01T00:00:00.000+00:00"],
    "backward by decades": ["2026-05-01T00:00:00.000+00:00", "1970-01-01T00:00:00.000+00:00"],
    "back over New Year": ["2027-01-01T00:00:00.000+00:00", "2026-12-31T23:59:59.999+00:00"],
    "back over a month's end": ["2026-11-01T00:30:00.000+00:00", "2026-10-31T23:30:00.000+00:00"],
    "an hour that comes twice": ["2026-10-25T01:30:00.000+00:00", "2026-10-25T00:30:00.000+00:00"],
    "forth and back": [
        "2026-12-31T23:59:59.999+00:00",
        "2027-01-01T00:00:00.000+00:00",
        "2026-12-31T23:59:59.999+00:00",
    ],
    "a leap day": ["2028-02-29T23:59:59.999+00:00", "2028-02-28T00:00:00.000+00:00"],
}


@pytest.mark.parametrize("every", ["year", "month"])
@pytest.mark.parametrize("clock", CLOCKS)
def test_no_clock_that_goes_back_gives_a_period_twice(opened, every, clock):
    """After each tick as much as is left of the period is taken: never more than all of it."""
    limits = [Limit("total", tr.Budget(epsilon=100, delta="1e-4")), Limit("press", BUDGET, every=every)]
    time = CLOCKS[clock][0]
    account = opened(clock=lambda: time).declare_dataset(identity(), limits)
    for tick in [*CLOCKS[clock], *CLOCKS[clock]]:
        time = tick
        for number in range(3):
            try:
                account.charge_release(claim(f"{account.current_state().releases}: {number}", "0.4"))
            except InsufficientBudgetError:
                break
    periods = {tick[: PERIODS[every]] for tick in CLOCKS[clock]}
    state = account.current_state()
    assert all(balance.spent <= 1 for slot, balance in state.balances.items() if slot != "total")
    assert state.releases <= 2 * len(periods)
    assert check_ledger(Ledger(account.book.display_name)).problems == ()


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/Sao_Paulo", "Asia/Kathmandu"])
def test_a_period_is_that_of_utc_wherever_a_machine_is(opened, zone, monkeypatch):
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        account = opened().declare_dataset(identity(), [TOTAL])
        assert account.declared.time.endswith("+00:00")
        seconds = datetime.datetime.fromisoformat(account.declared.time).timestamp() - time.time()
        assert abs(seconds) < 60
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
