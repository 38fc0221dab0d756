"""Filters and the odometer: what they say, what they refuse, and how they compare with fixed compositions."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.laws.losses import pairs, triples
from tightrope.accounting import Neighbors, filters
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.filters import (
    BasicFilter,
    EnvelopeFilter,
    Filter,
    GaussianFilter,
    MenuFilter,
    MomentFilter,
    Odometer,
    TokenFilter,
)
from tightrope.accounting.filters.filter import gaussian_mu
from tightrope.accounting.filters.moments import log_moments
from tightrope.errors import InputError, InsufficientBudgetError

LAPLACE, GAUSS = tr.laplace(scale=10).loss, tr.gaussian(scale=10).loss
PURE, LEAKY = tr.approx_dp(0.1).loss, tr.approx_dp(0.1, delta=1e-3).loss
PLANS = (50 * GAUSS, 30 * tr.discrete_laplace(scale=10).loss, 20 * LEAKY, 10 * GAUSS.poisson_sample(0.3))
GRID = (0.0, 0.05, 0.2, 0.5, 1.0, 1.7)

EVERY: dict[str, Callable[[], Any]] = {
    "tokens": lambda: TokenFilter([PURE, PURE]),
    "menu": lambda: MenuFilter([PURE, LAPLACE], steps=2),
    "envelope": lambda: EnvelopeFilter([PURE, LAPLACE], steps=2),
    "moments": lambda: MomentFilter.fit_to_plan(2 * PURE, delta=1e-6),
    "gaussian": lambda: GaussianFilter(mu=math.sqrt(2) * 0.1253090123),
    "basic": lambda: BasicFilter(epsilon=0.2, delta=0),
}


def delta_of_two(one: tr.PrivacyLoss, other: tr.PrivacyLoss, epsilon: float) -> float:
    """δ(ε) of two single finite losses, atom by atom, in the worse direction; short of the truth by the slack."""
    found = []
    for first, second in ((one.remove, other.remove), (one.add, other.add)):
        (a,), (b,) = first.laws, second.laws
        infinite = a.infinite_mass + b.infinite_mass - a.infinite_mass * b.infinite_mass
        gains = np.maximum(-np.expm1(epsilon - np.add.outer(a.losses, b.losses)), 0.0)
        found.append(infinite + float(np.sum(np.outer(a.masses, b.masses) * gains)))
    return max(found) * (1 - 1e-13) - 1e-14


@pytest.mark.parametrize("name", EVERY)
class TestEveryFilter:
    def test_two_charges_fit_and_a_third_costs_nothing(self, name: str) -> None:
        current: Filter[Any] = EVERY[name]()
        before = [current.delta(e) for e in GRID]
        for _ in range(2):
            assert current.admits(PURE)
            current.charge(PURE)
        assert not current.admits(PURE)
        with pytest.raises(InsufficientBudgetError, match="stop"):
            current.charge(PURE)
        assert [current.delta(e) for e in GRID] == before

    def test_the_guarantee_covers_the_fixed_composition(self, name: str) -> None:
        current, truth = EVERY[name](), 2 * PURE
        for epsilon in (*GRID, -0.3):
            assert current.delta(epsilon) >= truth.delta_bounds(epsilon).lower
        assert current.epsilon(1e-6) >= truth.epsilon_bounds(1e-6).lower

    def test_the_searched_epsilon_is_on_the_private_side(self, name: str) -> None:
        current = EVERY[name]()
        for delta in (1e-9, 1e-4, 0.01):
            epsilon = current.epsilon(delta)
            assert not math.isfinite(epsilon) or current.delta(epsilon) <= delta

    def test_the_statement_says_adaptively(self, name: str) -> None:
        assert "chosen adaptively" in EVERY[name]().statement

    def test_only_losses_are_charged(self, name: str) -> None:
        current = EVERY[name]()
        for nonsense in (None, 1.0, "loss", tr.laplace(scale=1)):
            with pytest.raises(InputError, match="PrivacyLoss"):
                current.charge(nonsense)
            with pytest.raises(InputError, match="PrivacyLoss"):
                current.admits(nonsense)

    def test_nonsense_questions_are_refused(self, name: str) -> None:
        current = EVERY[name]()
        for epsilon in (math.nan, "1"):
            with pytest.raises(InputError, match="epsilon"):
                current.delta(epsilon)
        for delta in (-0.1, 1.1, math.nan):
            with pytest.raises(InputError, match="delta"):
                current.epsilon(delta)

    def test_copies_would_spend_twice(self, name: str) -> None:
        current = EVERY[name]()
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(InputError, match="copy"):
                duplicate(current)

    def test_a_forked_process_cannot_charge(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        current = EVERY[name]()
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert not current.admits(PURE)
        with pytest.raises(InsufficientBudgetError, match="forked"):
            current.charge(PURE)


def test_public_names_are_sorted_and_documented() -> None:
    assert filters.__all__ == sorted(filters.__all__)
    assert all(getattr(filters, name).__doc__ for name in filters.__all__)


def test_relations_do_not_mix() -> None:
    added = tr.PrivacyLoss(PURE.remove, PURE.add, Neighbors.ADD_REMOVE)
    replaced = tr.PrivacyLoss(PURE.remove, PURE.add, Neighbors.REPLACE_ONE)
    current = BasicFilter(epsilon=1, delta=0)
    current.charge(PURE)
    assert current.neighbors is Neighbors.UNSPECIFIED
    current.charge(added)
    assert current.neighbors is Neighbors.ADD_REMOVE
    assert current.loss.neighbors is Neighbors.ADD_REMOVE
    for ask in (current.charge, current.admits):
        with pytest.raises(InputError, match="neighbors"):
            ask(replaced)
    with pytest.raises(InputError, match="neighbors"):
        TokenFilter([added, replaced])
    assert MenuFilter([PURE, replaced], steps=1).neighbors is Neighbors.REPLACE_ONE
    with pytest.raises(InputError, match="neighbors"):
        GaussianFilter(mu=1, neighbors="add-remove")  # type: ignore[arg-type]


def test_threads_together_spend_no_more_than_is_there() -> None:
    current = BasicFilter(epsilon=5, delta=0)
    passed: list[int] = []

    def spend() -> None:
        for _ in range(20):
            try:
                current.charge(PURE)
            except InsufficientBudgetError:
                continue
            passed.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 50


class TestTokens:
    def test_equal_losses_are_the_same_token_however_they_were_made(self) -> None:
        current = TokenFilter([tr.approx_dp(0.3, delta=1e-6).loss, tr.gaussian(scale=3).loss])
        current.charge(tr.gaussian(scale=3).loss)
        current.charge(tr.approx_dp(0.3, delta=1e-6).loss)
        assert current.delta(1) == (tr.gaussian(scale=3).loss + tr.approx_dp(0.3, delta=1e-6).loss).delta(1)

    def test_another_loss_is_refused_and_says_what_to_try(self) -> None:
        current = TokenFilter(3 * [GAUSS])
        for other in (LAPLACE, 2 * GAUSS, tr.gaussian(scale=11).loss, LEAKY):
            assert not current.admits(other)
            with pytest.raises(InsufficientBudgetError, match="MomentFilter"):
                current.charge(other)

    @pytest.mark.parametrize("nonsense", [[], None, PURE, [PURE, 1], "tokens"])
    def test_nonsense(self, nonsense: Any) -> None:
        with pytest.raises(InputError, match="PrivacyLoss"):
            TokenFilter(nonsense)


class TestMenu:
    @pytest.mark.parametrize("make", [MenuFilter, EnvelopeFilter])
    @pytest.mark.parametrize("loss", [PURE, LEAKY, tr.approx_dp(0.4, total_variation=0.05).loss], ids=str)
    def test_a_menu_of_one_is_a_fixed_composition(self, make: Any, loss: tr.PrivacyLoss) -> None:
        current = make([loss], steps=5)
        for epsilon in (0.0, 0.13, 0.3, 0.45):
            low, high = (5 * loss).delta_bounds(epsilon)
            assert low <= current.delta(epsilon) <= high * (1 + 1e-7)

    def test_a_family_of_noise_costs_what_its_worst_member_costs(self) -> None:
        menu = [tr.gaussian(scale=s).loss for s in (5, 10, 20)]
        truth = 10 * menu[0]
        for make in (MenuFilter, EnvelopeFilter):
            bound = make(menu, steps=10).delta(2)
            assert truth.delta_bounds(2).lower <= bound <= truth.delta(2) * 1.001

    def test_both_directions_of_sampled_steps(self) -> None:
        """Removing and adding are different laws; the sampled pair written out is the truth."""
        with_record, without = np.array([0.6, 0.4]), np.array([0.4, 0.6])
        sampled = tr.from_pair(with_record, without).loss.poisson_sample(0.3)
        plain = tr.from_pair(0.3 * with_record + 0.7 * without, without).loss
        skewed = tr.from_pair([0.7, 0.3], [0.6, 0.4]).loss
        bound, envelope = MenuFilter([sampled, skewed], steps=2), EnvelopeFilter([sampled, skewed], steps=2)
        for epsilon in (-0.1, 0.0, 0.1, 0.3):
            fixed = max(delta_of_two(one, other, epsilon) for one in (plain, skewed) for other in (plain, skewed))
            assert fixed <= bound.delta(epsilon) <= envelope.delta(epsilon) * (1 + 1e-6)
            assert bound.delta(epsilon) < 1.3 * fixed + 1e-6

    def test_entries_may_be_compositions(self) -> None:
        bound = MenuFilter([3 * PURE, PURE], steps=2)
        assert (6 * PURE).delta_bounds(0.35).lower <= bound.delta(0.35) <= (6 * PURE).delta(0.35) * (1 + 1e-7)

    @pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (0, 0.01), (2, 1), (50, 0), (400, 0)])
    def test_extreme_entries(self, epsilon: float, delta: float) -> None:
        loss = tr.approx_dp(epsilon, delta=delta).loss
        bound = MenuFilter([loss], steps=2)
        for at in (0.0, 1.0) if epsilon < 3 else (60.0,):
            assert (2 * loss).delta_bounds(at).lower <= bound.delta(at) <= 1
        if epsilon == 0:
            assert bound.delta(0) == pytest.approx((2 * loss).delta(0), rel=1e-9, abs=1e-12)

    def test_nonsense(self) -> None:
        for steps in (0, -1, 2.0, True, None):
            with pytest.raises(InputError, match="steps"):
                MenuFilter([PURE], steps=steps)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="EnvelopeFilter"):
            MenuFilter([PURE], steps=1001)
        for step in (0, -0.1, math.nan, 51):
            with pytest.raises(InputError, match="step"):
                EnvelopeFilter([PURE], steps=1, step=step)
        with pytest.raises(InputError, match="menu"):
            MenuFilter([], steps=1)
        with pytest.raises(InsufficientBudgetError, match="menu"):
            MenuFilter([PURE], steps=1).charge(GAUSS)

    @settings(max_examples=6)
    @given(st.lists(triples() | pairs().map(lambda both: tr.from_pair(*both).loss), min_size=1, max_size=3))
    def test_between_every_fixed_choice_and_the_envelope(self, menu: list[tr.PrivacyLoss]) -> None:
        bound, envelope = MenuFilter(menu, steps=2), EnvelopeFilter(menu, steps=2)
        for epsilon in (-0.7, 0.0, 0.4, 1.5):
            fixed = max(delta_of_two(one, other, epsilon) for one in menu for other in menu)
            assert fixed <= bound.delta(epsilon) <= envelope.delta(epsilon) * (1 + 1e-3) + 1e-6

    @settings(max_examples=10)
    @given(st.lists(triples(), min_size=1, max_size=2), st.integers(1, 3))
    def test_more_steps_cost_more(self, menu: list[tr.PrivacyLoss], steps: int) -> None:
        fewer, more = MenuFilter(menu, steps=steps), MenuFilter(menu, steps=steps + 1)
        for epsilon in (0.0, 0.4, 1.5):
            assert fewer.delta(epsilon) <= more.delta(epsilon) * (1 + 1e-3) + 1e-6


class TestMoments:
    def test_the_formula(self) -> None:
        bound = MomentFilter(order=4, budget=0.5, infinite_mass=1e-9)
        expected = 1e-9 + math.exp(0.5 - 4 * 2) * 4**4 / 5**5
        assert expected <= bound.delta(2) <= expected * (1 + 1e-11)
        assert bound.epsilon(1e-9 / 2) == math.inf
        assert bound.epsilon(bound.delta(2)) == pytest.approx(2, rel=1e-12)
        assert bound.delta(-10) == 1

    @pytest.mark.parametrize("loss", PLANS, ids=str)
    def test_the_filter_around_a_plan_holds_it_and_is_above_it(self, loss: tr.PrivacyLoss) -> None:
        current = MomentFilter.fit_to_plan(loss, delta=0.05)
        current.charge(loss)
        assert not current.admits(loss)
        low, high = loss.epsilon_bounds(0.05)
        assert low <= current.epsilon(0.05) <= 1.5 * high + 0.5
        for epsilon in (0.0, 0.05, 0.2):
            assert current.delta(epsilon) >= loss.delta_bounds(epsilon).lower

    def test_pieces_of_a_plan_fit(self) -> None:
        current = MomentFilter.fit_to_plan(40 * LEAKY, delta=0.1)
        for _ in range(40):
            current.charge(LEAKY)
        assert not current.admits(LEAKY)

    def test_infinite_masses_are_declared(self) -> None:
        current = MomentFilter(order=5, budget=100)
        assert current.admits(PURE)
        with pytest.raises(InsufficientBudgetError, match=r"infinite mass of 0\.001"):
            current.charge(LEAKY)
        assert not MomentFilter(order=5, budget=100, infinite_mass=0.9).admits(tr.approx_dp(0, delta=1).loss)

    def test_both_directions_count(self) -> None:
        """The two orders of this pair have different moments: swapping them changes nothing."""
        one, other = tr.from_pair([0.9, 0.1], [0.5, 0.5]).loss, tr.from_pair([0.5, 0.5], [0.9, 0.1]).loss
        up, down = (float(log_moments(d, (3.0,)).values[0]) for d in (one.remove, one.add))
        assert down > 1.5 * up
        current = MomentFilter(order=3, budget=(up + down) / 2)
        assert not current.admits(one)
        assert not current.admits(other)

    def test_moments_of_laws_without_a_formula_come_from_cells_and_are_above(self) -> None:
        base = tr.laplace(scale=1 / 60).loss
        sampled = base.poisson_sample(0.5).remove
        assert sampled.log_moment(np.array([1 + 0j])) is None
        order, (value,) = 7.0, log_moments(sampled, (7.0,)).values
        cells = base.remove.laws[0].loss_cells(1e-4).poisson_remove(0.5)
        losses, masses = cells.dominating_atoms()
        assert value == pytest.approx(math.log(float(np.dot(masses, np.exp(order * losses)))), rel=1e-4)
        assert value >= math.log(float(np.dot(masses, np.exp(order * losses)))) * (1 - 1e-9)

    @given(pairs(), st.floats(0.2, 30))
    def test_moments_are_at_least_the_sum(self, both: tuple[list[float], list[float]], order: float) -> None:
        p, q = map(np.array, both)
        held = (p > 0) & (q > 0)
        truth = float(np.sum(p[held] ** (1 + order) / q[held] ** order))
        value = float(log_moments(tr.from_pair(p, q).loss.remove, (order,)).values[0])
        assert value >= 0
        assert truth == 0 or value >= math.log(truth)

    def test_nonsense(self) -> None:
        for order in (0, -1, math.nan, math.inf):
            with pytest.raises(InputError, match="order"):
                MomentFilter(order=order, budget=1)
        with pytest.raises(InputError, match="budget"):
            MomentFilter(order=1, budget=-1)
        for mass in (-0.1, 1, math.nan):
            with pytest.raises(InputError, match="infinite_mass"):
                MomentFilter(order=1, budget=1, infinite_mass=mass)
        for delta in (1e-4, 1.0, math.nan):
            with pytest.raises(InputError, match="delta"):
                MomentFilter.fit_to_plan(LEAKY, delta=delta)


class TestGaussian:
    def test_a_hundred_releases_of_a_tenth_make_one(self) -> None:
        current = GaussianFilter(mu=1)
        for _ in range(100):
            current.charge(GAUSS)
        assert not current.admits(tr.gaussian(scale=1e5).loss)
        truth = tr.gaussian(scale=1).loss.delta(1)
        assert truth <= current.delta(1) <= truth * (1 + 1e-9)

    def test_pure_losses_cost_what_dong_roth_and_su_say(self) -> None:
        known = 0.125309012211607581  # 2 Φ⁻¹(e^0.1/(1 + e^0.1)), mpmath
        assert known <= gaussian_mu(PURE.remove.laws[0]) <= known * (1 + 1e-12)
        laplace = gaussian_mu(LAPLACE.remove.laws[0])
        assert laplace is not None
        assert laplace < known

    @settings(max_examples=20)
    @given(pairs())
    def test_the_gaussian_dominates(self, both: tuple[list[float], list[float]]) -> None:
        loss = tr.from_pair(*both).loss
        mus = [gaussian_mu(loss.remove.laws[0]), gaussian_mu(loss.add.laws[0])]
        if loss.infinite_mass:
            assert mus == [None, None]
            return
        assert mus[0] == pytest.approx(mus[1], rel=1e-9, abs=1e-9)
        gaussian = tr.PrivacyLoss.from_distribution(GaussianLossDistribution(max(mus[0] or 0.0, mus[1] or 0.0, 1e-9)))
        for epsilon in (-1.0, -0.2, 0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
            assert loss.delta_bounds(epsilon).lower <= gaussian.delta(epsilon)

    def test_what_no_gaussian_provably_dominates_is_refused(self) -> None:
        current = GaussianFilter(mu=10)
        for other in (LEAKY, GAUSS.poisson_sample(0.1), GAUSS + LEAKY, tr.approx_dp(1000).loss):
            assert not current.admits(other)
            with pytest.raises(InsufficientBudgetError, match="MomentFilter"):
                current.charge(other)
        assert current.admits(GAUSS + 3 * LAPLACE)

    @pytest.mark.parametrize("mu", [0, -1, math.nan, math.inf, None])
    def test_nonsense(self, mu: Any) -> None:
        with pytest.raises(InputError, match="mu"):
            GaussianFilter(mu=mu)


class TestBasic:
    def test_sums_of_triples(self) -> None:
        current = BasicFilter(epsilon=1, delta=1e-2)
        for _ in range(10):
            current.charge(LEAKY)
        assert not current.admits(tr.approx_dp(1e-6).loss)
        assert current.delta(1 + 1e-9) == pytest.approx(0.01, rel=1e-9)
        assert current.epsilon(0.01 * (1 + 1e-9)) == pytest.approx(1, rel=1e-9)

    def test_unbounded_losses_are_read_at_a_delta_declared_beforehand(self) -> None:
        with pytest.raises(InsufficientBudgetError, match="each"):
            BasicFilter(epsilon=1, delta=1e-6).charge(GAUSS)
        current = BasicFilter(epsilon=1.5, delta=1e-6, each=5e-7)
        current.charge(GAUSS)
        current.charge(GAUSS)
        with pytest.raises(InsufficientBudgetError, match="left are"):
            current.charge(GAUSS)

    def test_nonsense(self) -> None:
        for wrong in ({"epsilon": -1}, {"delta": 1}, {"delta": math.nan}, {"each": -1}):
            with pytest.raises(InputError, match=next(iter(wrong))):
                BasicFilter(**{"epsilon": 1, "delta": 0, **wrong})
        with pytest.raises(InsufficientBudgetError, match="infinite"):
            BasicFilter(epsilon=1, delta=0.5).charge(tr.approx_dp(0, delta=1).loss)

    def test_no_budget_at_all(self) -> None:
        current = BasicFilter(epsilon=0, delta=0)
        assert current.delta(0) == 0
        assert not current.admits(PURE)
        assert current.admits(tr.approx_dp(0).loss)


class TestThePage:
    """The table of docs/adaptivity.md: bounds are at most what is printed, and would be less with one digit less."""

    @staticmethod
    def check(found: float, printed: float) -> None:
        assert found <= printed <= found * 1.0011

    def test_the_counterexample(self) -> None:
        menu = [tr.approx_dp(1, total_variation=0.02).loss, tr.approx_dp(0.2).loss]
        self.check(TokenFilter(3 * menu).delta(1.2), 0.006372)
        self.check(MenuFilter(menu, steps=3).delta(1.2), 0.002465)
        self.check(EnvelopeFilter(menu, steps=3).delta(1.2), 0.004802)
        order = 3.3579
        budget = 3 * max(float(log_moments(loss.remove, (order,)).values[0]) for loss in menu)
        self.check(MomentFilter(order=order, budget=budget).delta(1.2), 0.01106)
        mus = [gaussian_mu(loss.remove.laws[0]) or 0.0 for loss in menu]
        self.check(GaussianFilter(mu=math.sqrt(3) * max(mus)).delta(1.2), 0.0236)
        self.check(BasicFilter(epsilon=3, delta=0).delta(1.2), 0.7952)

    def test_a_hundred_gaussian_steps(self) -> None:
        menu = [tr.gaussian(scale=s).loss for s in (20, 40)]
        self.check((100 * menu[0]).epsilon(1e-6), 2.255)
        self.check(TokenFilter(100 * menu).epsilon(1e-6), 2.549)
        self.check(MenuFilter(menu, steps=100).epsilon(1e-6), 2.255)
        self.check(EnvelopeFilter(menu, steps=100).epsilon(1e-6), 2.255)
        self.check(MomentFilter.fit_to_plan(100 * menu[0], delta=1e-6).epsilon(1e-6), 2.42)
        self.check(GaussianFilter(mu=0.5).epsilon(1e-6), 2.255)
        self.check(100 * menu[0].epsilon(1e-8), 23.86)
        self.check(reading(100 * [menu[0]]), 3.139)
        self.check(reading(50 * menu), 2.342)

    def test_fifty_laplace_steps(self) -> None:
        step = tr.discrete_laplace(scale=10).loss
        self.check((50 * step).epsilon(1e-6), 3.173)
        self.check(MomentFilter.fit_to_plan(50 * step, delta=1e-6).epsilon(1e-6), 3.356)
        self.check(GaussianFilter(mu=math.sqrt(50) * (gaussian_mu(step.remove.laws[0]) or 0)).epsilon(1e-6), 4.261)
        self.check(reading(50 * [step]), 4.048)


def reading(losses: list[tr.PrivacyLoss]) -> float:
    odometer = Odometer(delta=1e-6)
    for loss in losses:
        odometer.charge(loss)
    return odometer.reading


class TestOdometer:
    def test_it_starts_at_zero_and_only_rises(self) -> None:
        odometer = Odometer(delta=1e-6)
        read = [odometer.reading]
        for step in range(30):
            odometer.charge(GAUSS if step % 2 else LAPLACE)
            read.append(odometer.reading)
        assert read[0] == 0
        assert all(before <= after for before, after in itertools.pairwise(read))

    def test_small_pure_losses_just_add_up(self) -> None:
        odometer = Odometer(delta=1e-6)
        for _ in range(3):
            odometer.charge(PURE)
        assert odometer.reading == pytest.approx(0.3, rel=1e-12)

    def test_the_formula(self) -> None:
        odometer = Odometer(delta=1e-6, orders=[8, 16])
        for _ in range(25):
            odometer.charge(GAUSS)
        expected = min((0.25 * z * (1 + z) / 2 + math.log(2 / 1e-6)) / z for z in (8, 16))
        assert odometer.reading == pytest.approx(expected, rel=1e-12)
        assert odometer.reading >= (25 * GAUSS).epsilon(1e-6)

    def test_infinite_masses_take_their_part_of_delta(self) -> None:
        odometer = Odometer(delta=0.01, infinite_mass=0.0025, orders=[8.0])
        odometer.charge(LEAKY)
        odometer.charge(LEAKY)
        with pytest.raises(InsufficientBudgetError, match=r"add up to 0\.003"):
            odometer.charge(LEAKY)
        for _ in range(200):
            odometer.charge(PURE)
        assert odometer.reading >= math.log(1 / 0.0075) / 8
        assert odometer.delta == 0.01

    def test_the_statement_says_when_it_holds(self) -> None:
        odometer = Odometer(delta=1e-6)
        odometer.charge(PURE)
        assert "at all times" in odometer.statement
        assert "no (epsilon, delta)" in odometer.statement
        assert "0.1" in odometer.statement

    def test_nonsense(self) -> None:
        for delta in (0, 1, -1, math.nan, None):
            with pytest.raises(InputError, match="delta"):
                Odometer(delta=delta)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="infinite_mass"):
            Odometer(delta=1e-6, infinite_mass=1e-6)
        for orders in ([], [0.0], [math.nan], "12"):
            with pytest.raises(InputError, match="order"):
                Odometer(delta=1e-6, orders=orders)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="copy"):
            copy.copy(Odometer(delta=1e-6))
