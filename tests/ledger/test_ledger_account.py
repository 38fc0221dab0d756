"""Charges are exact, happen once under a key, are refused beyond a limit, and every refusal is written down."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tests.ledger.conftest import BUDGET, TOTAL, claim, identity
from tightrope.errors import BudgetRefused, InputError
from tightrope.ledger import Ledger, Limit
from tightrope.ledger.check import check
from tightrope.ledger.identity import SeriesClaim
from tightrope.ledger.limits import PERIODS
from tightrope.ledger.state import State, after


def test_ten_charges_of_a_tenth_exhaust_one_exactly(account):
    for number in range(10):
        account.charge(claim(f"release {number}"))
    assert account.state().balance("total").fraction_left == 0
    with pytest.raises(BudgetRefused, match=r"share of 0\.1 .* and 0 is left.*nothing was spent"):
        account.charge(claim("one more"))
    assert account.state().balance("total").spent == 1


def test_thirds_and_sevenths_add_up_exactly(account):
    series = SeriesClaim("weekly", "plan", BUDGET, 7, "{}")
    account.reserve(series)
    assert account.state().balance("total").reserved == 1
    for week in range(7):
        account.charge(claim(f"week {week}", "1", recipe="{}"), "weekly")
    balance = account.state().balance("total")
    assert (balance.spent, balance.reserved) == (Fraction(1), Fraction(0))
    with pytest.raises(BudgetRefused, match="all 7 releases"):
        account.charge(claim("week 8", "1", recipe="{}"), "weekly")


def test_a_key_is_charged_once_and_belongs_to_one_plan(account):
    first = account.charge(claim("march"))
    assert account.charge(claim("march")) == first
    assert account.state().balance("total").spent == Fraction(1, 10)
    with pytest.raises(InputError, match="key"):
        account.charge(claim("march", plan="another plan"))


def test_a_refusal_is_an_entry_and_spends_nothing(account):
    account.charge(claim("a", "0.7"))
    for way in (account.charge, account.check):
        with pytest.raises(BudgetRefused, match=r"0\.3 is left; plan with 0\.75 of this share or less"):
            way(claim("b", "0.4"))
    kinds = [entry.kind for entry in account.book.entries()]
    assert kinds == ["dataset", "charged", "refused", "refused"]
    assert account.book.entries()[-1].body_data["key"] == "b"
    account.charge(claim("b", "0.3"))


def test_checking_spends_nothing_and_writes_nothing(account):
    account.check(claim("a"))
    assert [entry.kind for entry in account.book.entries()] == ["dataset"]


def test_the_first_answers_that_are_kept_are_the_ones(account):
    account.charge(claim("a"))
    assert account.stored("a") is None
    assert account.answer("a", "first") == "first"
    assert account.answer("a", "second") == "first" == account.stored("a")
    with pytest.raises(InputError, match="charged"):
        account.answer("b", "never paid")


def test_what_was_paid_and_never_answered_is_found_by_its_plan(account):
    for key in ("a", "b"):
        account.charge(claim(key))
    account.answer("b", "seen")
    assert account.unanswered("plan") == "a"
    assert account.unanswered("another plan") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("person", "city"), ("rows_per_person", 4), ("groups_per_person", 1), ("means", "an aircraft"), ("person", None)],
)
def test_a_dataset_with_another_person_or_bounds_is_refused(opened, account, name, value):
    with pytest.raises(InputError, match=rf"{name}.*another dataset"):
        opened().declare(identity(**{name: value}), [TOTAL])


def test_a_dataset_with_other_columns_or_another_promise_is_refused(opened, account):
    other = identity(columns=(("user", "text"), ("town", "text"), ("city", "text")))
    with pytest.raises(InputError, match=r"\+town \(text\), \+user \(text\), -user \(integer\)"):
        opened().declare(other, [TOTAL])
    with pytest.raises(InputError, match="a promise to people is not changed later"):
        opened().declare(identity(), [Limit("total", tr.Budget(epsilon=2, delta="1e-6"))])
    with pytest.raises(InputError, match="one of \\['visits'\\]"):
        opened().account("visitors")


def test_one_promise_in_other_words_is_the_same(opened, account):
    words = [
        tr.Budget(epsilon="1.0", delta="0.0000010"),
        tr.Budget(epsilon=1.0, delta=1e-6),
        tr.Budget(points=[(1, "1e-6")]),
    ]
    for budget in words:
        opened().declare(identity(), [Limit("total", budget)])


def test_the_order_of_columns_is_no_difference(opened, account):
    opened().declare(identity(columns=(("city", "text"), ("user", "integer"))), [TOTAL])


def test_a_limit_costs_the_least_share_that_covers_every_point():
    limit = Limit("total", tr.Budget(points=[("1", "1e-6"), ("0", "0.1")]))
    assert limit.cost(tr.Budget(points=[("0.25", "2e-7"), ("0", "0.02")])) == Fraction(1, 4)
    assert limit.cost(tr.Budget(points=[("0.25", "2e-7"), ("0", "0.04")])) == Fraction(2, 5)
    assert limit.cost(tr.Budget(epsilon="0.1", delta="1e-7")) is None


def test_a_limit_for_each_year_renews_and_the_whole_never_does(opened):
    day = ["2026-12-31T23:59:59.999+00:00"]
    yearly = Limit("yearly", tr.Budget(epsilon="0.3", delta="3e-7"), every="year")
    account = opened(clock=lambda: day[0]).declare(identity(), [TOTAL, yearly])
    account.charge(claim("a", "0.3"))
    with pytest.raises(BudgetRefused, match="'yearly 2026' and 0 is left"):
        account.charge(claim("b", "0.1"))
    day[0] = "2027-01-01T00:00:00.000+00:00"
    account.charge(claim("b", "0.3"))
    day[0] = "2026-06-01T00:00:00.000+00:00"  # a clock that goes backwards brings no year back
    with pytest.raises(BudgetRefused, match="'yearly 2027'"):
        account.charge(claim("c", "0.1"))
    times = [entry.time for entry in account.book.entries()]
    assert times == sorted(times)
    assert account.state().balance("total").spent == Fraction(3, 5)


def test_an_audience_has_a_limit_of_its_own(opened):
    press = Limit("press", tr.Budget(epsilon="0.2", delta="2e-7"), audience="press")
    account = opened().declare(identity(), [TOTAL, press])
    account.charge(claim("a", "0.2", audience="press"))
    with pytest.raises(BudgetRefused, match="'press'"):
        account.charge(claim("b", "0.1", audience="press"))
    with pytest.raises(BudgetRefused, match="'press'"):
        account.charge(claim("b", "0.1"))  # what everybody sees, the press sees
    account.charge(claim("b", "0.1", audience="board"))
    assert account.state().balance("total").spent == Fraction(3, 10)


def test_a_series_is_paid_once_in_every_year_that_it_reaches(opened):
    day = ["2026-11-01T00:00:00.000+00:00"]
    yearly = Limit("yearly", tr.Budget(epsilon="0.5", delta="5e-7"), every="year")
    account = opened(clock=lambda: day[0]).declare(identity(), [TOTAL, yearly])
    account.reserve(SeriesClaim("monthly", "plan", BUDGET.share("0.4"), 4, "{}"))
    account.charge(claim("november", "0.4", recipe="{}"), "monthly")
    day[0] = "2027-01-01T00:00:00.000+00:00"
    account.charge(claim("january", "0.4", recipe="{}"), "monthly")
    account.charge(claim("february", "0.4", recipe="{}"), "monthly")
    state = account.state()
    assert state.balance("yearly 2026").spent == state.balance("yearly 2027").spent == Fraction(4, 5)
    assert (state.balance("total").spent, state.balance("total").reserved) == (Fraction(3, 10), Fraction(1, 10))


@pytest.mark.parametrize("limits", [[], [Limit("press", BUDGET)], [TOTAL, TOTAL], [Limit("total", BUDGET, "year")]])
def test_there_is_one_limit_for_good(opened, limits):
    with pytest.raises(InputError, match="limits"):
        opened().declare(identity(), limits)


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
        kept, cost = BUDGET.share(text), Fraction(text)
        said = {"kept": kept.to_data(), "audience": None, "time": "2026", "series": None, "times": times}
        fits = 2 * (cost + spent + reserved) <= 1
        if what == "date":
            open_ones = [one for one in series if one[2] < one[1]]
            if not open_ones:
                continue
            one = open_ones[0]
            said["series"] = f"series {one[3]}"
            state = after(state, limits, "charged", f"{number}", said)
            one[2] += 1
            spent, reserved = spent + Fraction(one[0], one[1]), reserved - Fraction(one[0], one[1])
        elif not fits:
            with pytest.raises(BudgetRefused):
                after(state, limits, {"charge": "charged", "reserve": "reserved"}[what], f"series {number}", said)
            continue
        elif what == "charge":
            state, spent = after(state, limits, "charged", f"{number}", said), spent + cost
        else:
            state, reserved = after(state, limits, "reserved", f"series {number}", said), reserved + cost
            series.append([cost, times, 0, number])
        assert (state.balance("total").spent, state.balance("total").reserved) == (spent, reserved)
        assert state.balance("half").fraction_left == 1 - 2 * (spent + reserved)
        assert State.from_data(state.to_data()) == state


def test_periods_are_prefixes_of_a_time():
    assert {name: "2026-03-01T"[:length] for name, length in PERIODS.items()} == {"year": "2026", "month": "2026-03"}


def test_a_history_is_whole(opened, account):
    account.charge(claim("a"))
    account.answer("a", "answers")
    account.reserve(SeriesClaim("weekly", "plan", BUDGET.share("0.5"), 5, ""))
    account.charge(claim("week 1", "0.5"), "weekly")
    with pytest.raises(InputError, match="noise"):
        account.charge(claim("week 2", "0.5", recipe="other"), "weekly")
    with pytest.raises(BudgetRefused):
        account.charge(claim("b", "0.5"))
    report = check(opened())
    assert (report.entries, report.problems) == (6, ())


def test_two_ledgers_are_never_taken_for_one(opened, tmp_path):
    other = Ledger(tmp_path / "other.ledger", create=True)
    assert other.id != opened().id
    other.close()


@pytest.mark.parametrize("key", ["k" * 195, "k" * 300, "a\nb", "", "a\u200bb"])
def test_a_series_has_a_key_that_its_dates_can_have(key):
    """Its share was set aside, and no date could ever be released."""
    with pytest.raises(InputError, match="expected key"):
        SeriesClaim(key, "plan", BUDGET.share("0.4"), 10, "{}")


def test_releases_and_dates_of_a_series_have_keys_of_their_own(account):
    account.charge(claim("monthly 2/2"))
    with pytest.raises(InputError, match=r"none of whose dates is released \('monthly 2/2' is\)"):
        account.reserve(SeriesClaim("monthly", "plan", BUDGET.share("0.4"), 2, "{}"))
    account.reserve(SeriesClaim("weekly", "plan", BUDGET.share("0.4"), 2, "{}"))
    with pytest.raises(InputError, match="no date of the series 'weekly'"):
        account.charge(claim("weekly 2/2"))
    for week in (1, 2):
        account.charge(claim(f"weekly {week}/2", "0.4", recipe="{}"), "weekly")
    balance = account.state().balance("total")
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
    account = opened(clock=lambda: time).declare(identity(), limits)
    for tick in [*CLOCKS[clock], *CLOCKS[clock]]:
        time = tick
        for number in range(3):
            try:
                account.charge(claim(f"{account.state().releases}: {number}", "0.4"))
            except BudgetRefused:
                break
    periods = {tick[: PERIODS[every]] for tick in CLOCKS[clock]}
    state = account.state()
    assert all(balance.spent <= 1 for slot, balance in state.balances.items() if slot != "total")
    assert state.releases <= 2 * len(periods)
    assert check(Ledger(account.book.name)).problems == ()


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/Sao_Paulo", "Asia/Kathmandu"])
def test_a_period_is_that_of_utc_wherever_a_machine_is(opened, zone, monkeypatch):
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        account = opened().declare(identity(), [TOTAL])
        assert account.declared.time.endswith("+00:00")
        seconds = datetime.datetime.fromisoformat(account.declared.time).timestamp() - time.time()
        assert abs(seconds) < 60
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
