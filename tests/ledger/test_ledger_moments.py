"""Limits by moments: nothing overspends them, costs are what an oracle says, and their rule is for life."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger.conftest import BUDGET, TOTAL, identity
from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger import Claim, Limit, chain
from tightrope.ledger.check import check_ledger
from tightrope.ledger.identity import SeriesClaim
from tightrope.ledger.limits import BASIC_PREFIX
from tightrope.ledger.moments import Moments
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import State, charge_covers_noise, moment_costs, state_after_entry
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SelectedNoise, SplitBounds

BY_MOMENTS = Limit("total", BUDGET, rule="moments", releases=52)
PROMISES = st.builds(
    Budget,
    epsilon=st.sampled_from(["0.01", "0.3", "1", "4", "50"]),
    delta=st.sampled_from(["1e-12", "1e-6", "0.001"]),
)


@cache
def recipe(epsilon: float = 0.02) -> str:
    """One count of one row a person."""
    spend, table = NoiseSpec("count", 8, True), optimal_table([(epsilon, 1e-9)])
    unit = CompositionGroup((spend,), SplitBounds(1, 1, 1))
    return NoiseRecord((unit,), ((SelectedNoise(spend, "least noise (closed form)", 1, table),),), None).to_text


def claim(key: str, epsilon: float = 0.02, **more: str) -> Claim:
    return Claim(key, "plan", Budget(epsilon=epsilon, delta="1e-9"), recipe(epsilon), **more)


@pytest.fixture
def account(opened):
    return opened().declare_dataset(identity(), [BY_MOMENTS])


@given(PROMISES, st.integers(1, 1000))
def test_what_is_fixed_keeps_every_point_by_an_oracle_of_fifty_digits(budget, releases):
    """δ_∞ + e^{B − zε} max_u (1 − u)u^z, the maximum found by itself."""
    fixed = Moments.choose_for(budget, releases)
    assert fixed.keeps_budget(budget)
    with mpmath.workdps(50):
        z, nats = mpmath.mpf(str(fixed.order)), mpmath.mpf(str(fixed.budget))
        top = z / (1 + z)
        for epsilon, delta in budget.points:
            peak = (1 - top) * top**z
            bound = mpmath.mpf(str(fixed.infinite_mass)) + mpmath.exp(nats - z * mpmath.mpf(str(epsilon))) * peak
            assert bound <= mpmath.mpf(str(delta))
            assert bound > mpmath.mpf(str(delta)) * mpmath.mpf("0.998")  # nothing is given away


@given(PROMISES, st.integers(1, 1000))
def test_a_little_more_would_not_keep_it(budget, releases):
    fixed = Moments.choose_for(budget, releases)
    grain = Decimal(1) / 512
    assert not Moments(fixed.order, fixed.budget + grain, fixed.infinite_mass).keeps_budget(budget)
    assert not Moments(fixed.order, fixed.budget, 4 * fixed.infinite_mass).keeps_budget(budget)
    assert not Moments(fixed.order + Decimal("0.1"), fixed.budget, fixed.infinite_mass).keeps_budget(budget)  # no float


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("times", [1, 7])
def test_a_charge_is_what_an_oracle_says_of_the_integer_weights(epsilon, times):
    """K(z) in fifty digits, from weights over 2^128, with the largest losses infinite from wherever that takes least.

    Both directions, for the noise is symmetric.
    """
    ((share),) = moment_costs([BY_MOMENTS], recipe(epsilon), times, None).values()
    moments = BY_MOMENTS.moments
    assert share is not None and moments is not None
    table = optimal_table([(epsilon, 1e-9)])
    weights = [*reversed(table.half), table.center, *table.half]
    with mpmath.workdps(50):
        z, whole = mpmath.mpf(str(moments.order)), mpmath.mpf(2) ** 128
        atoms = sorted((mpmath.mpf(a) / b, a / whole) for a, b in zip(weights[1:], weights[:-1], strict=True))
        finite = [mpmath.mpf(0)]
        for ratio, mass in atoms:
            finite.append(finite[-1] + mass * ratio**z)
        beyond = [
            weights[0] / whole + mpmath.fsum(mass for _, mass in atoms[place:]) for place in range(len(atoms) + 1)
        ]
        nats, failure = mpmath.mpf(str(moments.budget)), mpmath.mpf(str(moments.infinite_mass))
        pairs = zip(finite[1:], beyond[1:], strict=True)
        exact = min(max(times * mpmath.log(moment) / nats, times * lost / failure) for moment, lost in pairs)
        charged = mpmath.mpf(Fraction(share).numerator) / Fraction(share).denominator
        assert exact < charged < exact * (1 + mpmath.mpf("1e-6")) + mpmath.mpf("1e-11")


def test_rare_large_losses_may_count_as_infinite():
    """Noise for ε = 0.1 gives away 1.4 nats with probability 10⁻⁹: a moment alone would charge six times as much."""
    moments = BY_MOMENTS.moments
    assert moments is not None
    loss = NoiseRecord.from_text(recipe(0.1)).loss_of_separate_releases()
    assert 5 * moments.required_fraction(loss) < moments._fraction_for_pair(loss.remove)


def test_many_small_releases_fit_where_their_shares_would_not_add_up(account):
    """0.02 fifty times is all of ε = 1; by moments a hundred fit and more."""
    for number in range(100):
        account.charge_release(claim(f"release {number}"))
    state = account.current_state()
    assert state.balance_of(BASIC_PREFIX + "total").spent == 2
    assert 0 < state.balance_of("total").fraction_left < 1
    assert check_ledger(account_ledger(account)).problems == ()


def account_ledger(account):
    from tightrope.ledger import Ledger

    return Ledger(account.book.display_name)


def test_what_was_charged_is_exact_and_the_last_is_refused(account):
    entry = account.charge_release(claim("first"))
    cost = Fraction(entry.body_data["costs"]["total"])
    fit = int(1 / cost)
    for number in range(1, fit):
        account.charge_release(claim(f"release {number}"))
    assert account.current_state().balance_of("total").spent == fit * cost <= 1
    with pytest.raises(InsufficientBudgetError, match="This attempt was not charged"):
        account.charge_release(claim("one more"))
    assert account.find_refusal(claim("one more")) is not None
    assert account.find_refusal(claim("release 1")) is None
    assert [entry.kind for entry in account.book.list_entries()].count("refused") == 1


def test_a_limit_has_one_rule_for_life(opened, account):
    account.charge_release(claim("a"))
    for other in (TOTAL, Limit("total", BUDGET, rule="moments", releases=12)):
        with pytest.raises(InputError, match=r"by moments for about 52 releases.*cannot be changed"):
            opened().declare_dataset(identity(), [other])
    with pytest.raises(InputError, match="no such limit"):
        more = Limit("yearly", BUDGET, "year", rule="moments", releases=12)
        opened().declare_dataset(identity(), [BY_MOMENTS, more])
    assert (
        opened()
        .declare_dataset(identity(), [Limit("total", BUDGET, rule="moments", releases=52)])
        .current_state()
        .releases
        == 1
    )


def test_a_rule_is_not_added_to_a_ledger_that_has_charges(opened):
    basic = opened().declare_dataset(identity(), [TOTAL])
    basic.charge_release(claim("a"))
    with pytest.raises(InputError, match="cannot be changed"):
        opened().declare_dataset(identity(), [BY_MOMENTS])


def test_of_two_that_declare_different_rules_at_once_the_second_is_told(opened, monkeypatch):
    one, other = opened(), opened()
    seen, read = iter([None]), other.book.read_transaction
    monkeypatch.setattr(
        other.book, "read_transaction", lambda work: next(seen, read(work))
    )  # it looked before the first one wrote
    one.declare_dataset(identity(), [BY_MOMENTS]).charge_release(claim("a"))
    with pytest.raises(InputError, match="by moments for about 52 releases"):
        other.declare_dataset(identity(), [TOTAL])


def test_the_recorded_order_counts_and_not_what_would_be_chosen_today(opened, monkeypatch):
    recorded = opened().declare_dataset(identity(), [BY_MOMENTS]).limits[0].moments
    other = Moments.choose_for(BUDGET, 3)
    assert other != recorded
    monkeypatch.setattr(Moments, "choose_for", classmethod(lambda *_: other))
    today = Limit("total", BUDGET, rule="moments", releases=52)
    assert today.moments == other
    assert opened().declare_dataset(identity(), [today]).limits[0].moments == recorded


def test_noise_without_a_name_is_not_charged(account):
    with pytest.raises(InputError, match="a limit by moments adds up"):
        account.charge_release(Claim("a", "plan", BUDGET.scale_by("0.1")))


def test_noise_that_a_limit_can_never_hold_is_refused_and_written_down(opened):
    strict = Limit("total", Budget(points=[(1, "1e-6")], delta=0), rule="moments", releases=12)
    account = opened().declare_dataset(identity(), [strict])
    with pytest.raises(InsufficientBudgetError, match="its log moments do not cover this noise"):
        account.charge_release(claim("a"))
    assert account.book.list_entries()[-1].kind == "refused"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"rule": "exact"}, "rule"),
        ({"rule": "moments"}, "releases"),
        ({"releases": 12}, "releases"),
        ({"rule": "moments", "releases": 0}, "releases"),
        ({"rule": "moments", "releases": 2.5}, "releases"),
        ({"rule": "moments", "releases": 20_000}, "releases"),
        ({"name": "+total"}, "limit"),
    ],
)
def test_a_rule_that_is_none_is_refused(changes, name):
    with pytest.raises(InputError, match=name):
        Limit(**{"name": "total", "budget": BUDGET, **changes})


def test_a_promise_without_delta_has_no_moments():
    with pytest.raises(InputError, match="needs delta > 0"):
        Limit("total", Budget(epsilon=1, delta=0), rule="moments", releases=12)


def test_moments_that_do_not_keep_the_promise_are_no_limit():
    loose = BY_MOMENTS.to_data() | {"moments": {"order": "20.75", "budget": "11", "infinite_mass": "2.5E-7"}}
    with pytest.raises(InputError, match="moments"):
        Limit.from_data(loose)


def test_a_limit_is_what_was_written_down():
    yearly = Limit("press", BUDGET, "year", "press", rule="moments", releases=12)
    read = Limit.from_data(yearly.to_data())
    assert (read, read.moments) == (yearly, yearly.moments)
    assert "rule" not in TOTAL.to_data()  # ledgers of basic limits read as they always did


def test_a_yearly_limit_by_moments_renews_beside_a_basic_whole(opened):
    day = ["2026-12-31T23:59:59.999+00:00"]
    yearly = Limit("yearly", Budget(epsilon="0.3", delta="1e-7"), every="year", rule="moments", releases=52)
    account = opened(clock=lambda: day[0]).declare_dataset(identity(), [TOTAL, yearly])
    account.charge_release(claim("a"))
    share = account.current_state().balance_of("yearly 2026").spent
    day[0] = "2027-01-01T00:00:00.000+00:00"
    account.charge_release(claim("b"))
    state = account.current_state()
    assert state.balance_of("yearly 2027").spent == share == state.balance_of("yearly 2026").spent
    assert state.balance_of("total").spent == Fraction(1, 25)
    assert state.balance_of(f"{BASIC_PREFIX}yearly 2027").spent == Fraction(1, 15)


def test_a_series_inside_is_reserved_at_once_and_its_dates_cost_nothing_more(account):
    kept = Budget(epsilon="0.2", delta="1e-8")
    account.reserve_series(SeriesClaim("weekly", "plan", kept, 10, recipe()))
    reserved = account.current_state().balance_of("total").reserved
    assert reserved == Fraction(moment_costs([BY_MOMENTS], recipe(), 10, None)["total"])
    for week in range(10):
        account.charge_release(Claim(f"week {week}", "plan", kept, recipe()), "weekly")
    balance = account.current_state().balance_of("total")
    assert (balance.spent, balance.reserved) == (reserved, 0)
    assert check_ledger(account_ledger(account)).problems == ()


def test_check_finds_a_charge_that_is_too_small(account):
    """An honest chain around a dishonest number: the sums are right, the noise is not what was paid."""
    entry = account.charge_release(claim("a", 0.1))
    said = {**entry.body_data, "costs": {"total": "1/1000000"}}
    state = state_after_entry(State(), account.limits, "charged", "b", said)
    state = state_after_entry(account.current_state(), account.limits, "charged", "b", said)

    def work(connection):
        return (
            made := chain.append_entry(connection, "visits", "charged", "b", entry.time, (said, state.to_data()))
        ), made

    account.book.write_entry(work)
    (problem,) = check_ledger(account_ledger(account)).problems
    assert "moments of the noise" in problem


@pytest.mark.parametrize("said", [{"costs": {}}, {"recipe": ""}])
def test_check_finds_a_charge_that_says_no_moments_or_no_noise(account, said):
    entry = account.charge_release(claim("a", 0.1))
    body = {**entry.body_data, **said}

    def work(connection):
        return (
            made := chain.append_entry(connection, "visits", "charged", "b", entry.time, (body, entry.state_data))
        ), made

    account.book.write_entry(work)
    assert any("entry 3" in problem for problem in check_ledger(account_ledger(account)).problems)


def test_what_is_charged_covers_what_is_computed_again():
    for epsilon in (0.02, 0.1, 0.5):
        share = moment_costs([BY_MOMENTS], recipe(epsilon), 3, None)["total"]
        assert share is not None and BY_MOMENTS.moments is not None
        assert charge_covers_noise(BY_MOMENTS.moments, recipe(epsilon), 3, share)
        assert not charge_covers_noise(
            BY_MOMENTS.moments, recipe(epsilon), 3, str(Fraction(share) * Fraction(999, 1000))
        )


YEARLY = Limit("yearly", Budget(epsilon="0.5", delta="1e-7"), every="year", rule="moments", releases=10)
BLOCKS = st.tuples(
    st.sampled_from(["charged", "reserved", "date"]),
    st.sampled_from([0.02, 0.1, 0.5]),
    st.integers(1, 5),
    st.sampled_from(["2026", "2027"]),
    st.sampled_from([None, "press"]),
)


@settings(max_examples=60)
@given(st.lists(BLOCKS, max_size=40))
def test_no_sequence_of_charges_overspends(blocks):
    """Sums of log moments and masses, kept by hand beside the ledger's shares, never pass what was fixed."""
    press = Limit("press", Budget(epsilon="0.3", delta="1e-7"), audience="press", rule="moments", releases=20)
    limits, state = (BY_MOMENTS, YEARLY, press), State()
    sums: dict[str, Fraction] = {}
    series: list[tuple[str, str, float, int]] = []
    for number, (kind, epsilon, times, year, audience) in enumerate(sorted(blocks, key=lambda block: block[3])):
        key = f"key {number}"
        costs = moment_costs(limits, recipe(epsilon), times if kind == "reserved" else 1, audience)
        kept = Budget(epsilon=epsilon, delta="1e-9").to_data()
        said = {"kept": kept, "audience": audience, "time": year, "series": None, "times": times, "costs": costs}
        if kind == "date":
            said["series"] = series[-1][0] if series else "none"
        try:
            state = state_after_entry(state, limits, "reserved" if kind == "reserved" else "charged", key, said)
        except InsufficientBudgetError:
            continue
        if kind == "reserved":
            series.append((key, year, epsilon, times))
        if kind != "date":
            for limit in limits:
                if limit.applies_to(audience):
                    slot = limit.slot_at(year)
                    many = times if kind == "reserved" else 1
                    needed = limit.moments.required_fraction(
                        NoiseRecord.from_text(recipe(epsilon)).loss_of_separate_releases(many)
                    )
                    sums[slot] = sums.get(slot, Fraction(0)) + needed
        assert all(
            balance.fraction_left >= 0 for slot, balance in state.balances.items() if not slot.startswith(BASIC_PREFIX)
        )
        assert all(total <= 1 - state.balance_of(slot).fraction_left for slot, total in sums.items())
    assert State.from_data(state.to_data()) == state


def test_the_moments_of_what_is_charged_keep_the_promise_by_the_accountant(account):
    """What fits, planned in advance, is within the promise by the exact accountant: the filter's bound is above it."""
    cost = Fraction(account.charge_release(claim("a")).body_data["costs"]["total"])
    fit = int(1 / cost)
    together = NoiseRecord.from_text(recipe()).loss_of_separate_releases(fit)
    assert together.delta(1.0) <= 1e-6
    assert together.delta(0.8) > 1e-6  # and not far above
