"""The least noise of one integer release: reference values, bounds, budgets kept at every shift, bad requests."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import exponential, hockey_stick, law
from tests.noise.program.noise_programs import least_by_program
from tightrope.documents import Budget
from tightrope.documents.document import to_json_text
from tightrope.documents.noise import read_noise
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.least_noise import least_noise
from tightrope.noise.program.certificate import THEOREM

REFERENCE = [  # ε, δ, Δ, η, E|X|, E X²: shared/reference/noise.json
    (1, 1e-06, 1, None, 0.8509021157569042, 1.8410998538708114),
    (1, 0.01, 1, None, 0.7984977697207178, 1.5162969664088046),
    (0.5, 0.001, 1, None, 1.8831837780200567, 7.28160499057894),
    (0.1, 0.01, 1, None, 6.494796739559747, 66.20114522285425),
    (1, 1e-06, 3, None, 2.8607846120748923, 17.23656069647663),
    (3, 1e-06, 3, None, 0.5159577156632749, 1.391145346011999),
    (0.5, 0.0001, 5, None, 9.86413636438448, 195.37701627781829),
    (1, 1e-06, 1, 0.46, 0.854252257359406, 1.8483493262272972),
    (1, 1e-06, 1, 0.4, 0.9491707808440216, 2.053746379177634),
    (1, 1e-06, 1, 0.3, 1.1073683199850481, 2.396074800761532),
    (1, 1e-06, 1, 0.2, 1.4327759623809888, 3.4346484758853615),
    (1, 1e-06, 1, 0.1, 2.574578649272904, 9.374246128066309),
]


def spent(table, epsilon, sensitivity):
    """The largest hockey-stick divergence over all shifts, in fractions."""
    p, gamma = law(table, len(table.half)), exponential(epsilon)
    return max(hockey_stick(p, shift, gamma) for shift in range(1, sensitivity + 1))


@pytest.mark.parametrize("cost", ["absolute", "squared"])
@pytest.mark.parametrize(("epsilon", "delta", "sensitivity", "variation", "absolute", "squared"), REFERENCE)
def test_reference_values(epsilon, delta, sensitivity, variation, absolute, squared, cost):
    expected = absolute if cost == "absolute" else squared
    budget = Budget(epsilon=epsilon, delta=delta, total_variation=variation)
    noise = least_noise(budget, sensitivity=sensitivity, cost=cost, shape="any")
    reached = noise.mean_absolute_error if cost == "absolute" else noise.mean_squared_error
    close = 1e-12 if sensitivity == 1 else 1e-8
    assert math.isclose(reached, expected, rel_tol=close)
    found = noise.certificate
    assert found.lower <= expected * (1 + 1e-10) <= found.lower * (1 + 1e-6)
    assert reached <= found.upper <= reached * (1 + 1e-15)
    assert found.gap <= (1e-12 if sensitivity == 1 else 1e-8)


@pytest.mark.parametrize("shape", ["unimodal", "any"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity", "variation"),
    [(1, 1e-6, 3, None), (0.5, 1e-4, 5, None), (1, 0.3, 4, None), (1, 1e-3, 4, 0.2), (3, 1e-9, 2, None),
     (0, 0.02, 3, None)],
)  # fmt: skip
def test_no_shift_exceeds_the_budget_in_fractions(epsilon, delta, sensitivity, variation, shape):
    budget = Budget(points=[(epsilon, delta)], total_variation=variation)
    noise = least_noise(budget, sensitivity=sensitivity, shape=shape, cost="squared")
    assert spent(noise.table, epsilon, sensitivity) <= Fraction(delta)
    if variation is not None:
        assert spent(noise.table, 0, sensitivity) <= Fraction(variation)
    assert noise.loss.delta(epsilon) <= delta
    assert noise.certificate.guarantee.delta <= delta
    assert noise.certificate.gap <= (5e-2 if shape == "unimodal" else 1e-6)


def test_the_default_shape_never_rises_and_says_what_that_costs():
    noise = least_noise(Budget(epsilon=0.5, delta=1e-4), sensitivity=5)
    found = noise.certificate
    assert noise.table.is_unimodal
    assert found.shape == "unimodal"
    assert 1e-6 < found.unimodal_price < 2e-6
    assert found.upper / found.shape_lower - 1 < 1e-9
    assert found.shape_lower > found.lower
    free = least_noise(Budget(epsilon=0.5, delta=1e-4), sensitivity=5, shape="any")
    assert not free.table.is_unimodal
    assert found.lower <= free.mean_absolute_error < noise.mean_absolute_error


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_the_noise_without_delta_never_ends(sensitivity):
    noise = least_noise(Budget(epsilon=1, delta=0), sensitivity=sensitivity)
    assert noise.worst_error == math.inf
    assert noise.loss.delta(1.0) == 0
    assert noise.certificate.guarantee.delta == 0
    assert noise.certificate.gap < 1e-7


@pytest.mark.parametrize("cost", [lambda x: x**0.5, lambda x: 1 + x**1.5, lambda x: x * x * x])
def test_any_cost_is_bounded_from_both_sides(cost):
    for sensitivity, delta in ((1, 1e-3), (3, 1e-3), (2, 0)):
        found = least_noise(Budget(epsilon=1, delta=delta), sensitivity=sensitivity, cost=cost, shape="any").certificate
        assert found.lower <= found.upper <= found.lower * (1 + 2e-6)


def test_a_cost_that_levels_off_has_valid_bounds():
    """Errors beyond 4 cost no more: noise may run away, and the program that leaves that open proves the bound."""
    found = least_noise(Budget(epsilon=1, delta=1e-3), sensitivity=3, cost=lambda x: min(x, 4.0)).certificate
    assert 1 < found.lower <= found.upper < 2.2
    assert found.gap < 1e-3


def test_a_list_of_points_is_kept_together():
    noise = least_noise(Budget(points=[(1, 1e-6), (0.5, 1e-3)], total_variation=0.2), sensitivity=2)
    fifth, thousandth = math.nextafter(0.2, 0), math.nextafter(1e-3, 0)  # the floats 0.2 and 1e-3 are above these
    assert [point[:2] for point in noise.certificate.realized] == [(0.0, fifth), (0.5, thousandth), (1.0, 1e-6)]
    for epsilon, asked, realized in noise.certificate.realized:
        assert spent(noise.table, epsilon, 2) <= Fraction(asked)
        assert float(spent(noise.table, epsilon, 2)) == pytest.approx(realized, rel=1e-9)


def test_decimals_are_kept_as_written():
    noise = least_noise(Budget(epsilon=0.1, delta=Decimal("1e-6")))
    assert spent(noise.table, Decimal("0.1"), 1) <= Fraction(1, 10**6)


def test_the_closed_form_takes_less_than_a_millisecond():
    times = []
    for _ in range(30):
        start = time.process_time()
        least_noise(Budget(epsilon=1, delta=1e-6))
        times.append(time.process_time() - start)
    assert sorted(times)[10] < 1.5e-3  # 0.25 ms on the machine where this was written


@pytest.mark.parametrize(("epsilon", "delta", "sensitivity"), [(1, 1e-6, 10), (0.5, 1e-6, 10), (3, 1e-9, 7)])
def test_ten_units_of_sensitivity_take_less_than_two_seconds(epsilon, delta, sensitivity):
    start = time.process_time()
    found = least_noise(Budget(epsilon=epsilon, delta=delta), sensitivity=sensitivity, shape="any").certificate
    assert time.process_time() - start < 2
    assert found.gap < 1e-6


def test_a_certificate_is_written_and_read_back_equal():
    for sensitivity, kind in ((1, "theorem"), (3, "dual")):
        found = least_noise(Budget(epsilon=1, delta=1e-6), sensitivity=sensitivity).certificate
        assert read_noise(to_json_text(found.to_document())) == found
        assert found.argument.kind == kind
    assert found.argument.statement != THEOREM


def test_anybody_can_check_the_dual_certificate():
    """The statement of the argument, word by word, in fractions."""
    found = least_noise(Budget(epsilon=1, delta=1e-6), sensitivity=3).certificate
    numbers = json.loads(to_json_text(found.to_document()))["argument"]["numbers"]
    costs = [Fraction(c) for c in numbers["costs"]]
    rows = [
        (m, exponential(m["epsilon"]), {m["start"] + i: Fraction(v) for i, v in enumerate(m["values"])})
        for m in numbers["multipliers"]
    ]

    def y(m, values, k):
        return values.get(k, Fraction(m["left"]) if k < m["start"] else Fraction(0))

    def reduced(k):
        return costs[abs(k)] + sum(y(m, v, k) - gamma * y(m, v, k + m["shift"]) for m, gamma, v in rows)

    assert all(0 <= value <= m["cap"] for m, _, values in rows for value in values.values())
    assert all(m["epsilon"] == 1 and m["delta"] == 1e-6 and 1 <= m["shift"] <= 3 for m, _, _ in rows)
    paid = sum(Fraction(m["cap"]) * Fraction(m["delta"]) for m, _, _ in rows)
    reach = len(costs) - 1
    least = min((reduced(k) + reduced(-k)) / 2 for k in range(reach + 1))
    assert Fraction(found.lower) <= least - paid <= Fraction(found.lower) * (1 + Fraction(1, 10**9))


def test_samples_are_the_table():
    noise = least_noise(Budget(epsilon=1, delta=1e-3), sensitivity=2)
    draws = noise.sample(200_000)
    assert np.abs(draws).max() <= noise.worst_error
    assert abs(np.abs(draws).mean() / noise.mean_absolute_error - 1) < 0.02
    assert noise.release(7) - 7 in range(-int(noise.worst_error), int(noise.worst_error) + 1)


budgets = st.tuples(
    st.lists(st.tuples(st.floats(0.2, 4), st.floats(-6, -1).map(lambda x: 10**x)), min_size=1, max_size=3),
    st.none() | st.floats(0.15, 0.6),
)


@given(budgets, st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=220)
def test_the_closed_form_is_the_optimum_of_the_linear_program(budget, power):
    """Two hundred budgets with total variations and lists against an independent dense program."""
    points, variation = budget
    asked = [*points, *([(0.0, variation)] if variation else [])]
    noise = least_noise(Budget(points=points, total_variation=variation))
    reached = noise.mean_absolute_error if power == 1 else noise.mean_squared_error
    cells = int(noise.worst_error) + 2
    assume(cells <= 90)
    optimum = least_by_program(asked, 1, cells, power)
    assert reached == pytest.approx(optimum, rel=2e-6)


@given(budgets, st.data())
@settings(deadline=None, max_examples=60)
def test_no_feasible_noise_is_stochastically_smaller(budget, data):
    """A random law, spread out until it keeps the points: each of its tails is at least that of the least noise."""
    points, variation = budget
    asked = [*points, *([(0.0, variation)] if variation else [])]
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=8, max_size=8)))
    least = optimal_table(asked)
    for share in (1.0, 0.3, 0.1, 0.03):
        other = mixed(least, weights, share)
        if feasible(other, asked):
            break
    else:
        assume(False)
    middle = len(other) // 2
    for k in range(1, middle + 1):
        assert (
            other[: middle - k + 1].sum() + other[middle + k :].sum()
            >= 2 * float(least.survival_probability(k - 1)) - 1e-12
        )


def mixed(least, weights, share):
    """The least noise of 0.7 of every δ's reach, and a share of some lopsided law."""
    size = int(least.largest_magnitude) + 8
    p = np.zeros(2 * size + 1)
    for x in range(-size, size + 1):
        p[x + size] = (
            float(least.survival_probability(abs(x) - 1) - least.survival_probability(abs(x)))
            if x
            else least.center / 2**128
        )
    wide = np.convolve(p, np.ones(5) / 5, mode="same")
    lopsided = np.convolve(p, weights / weights.sum(), mode="same")
    out = (1 - share) * wide + share * lopsided
    return out / out.sum()


def feasible(p, points):
    one, other = np.append(p, 0), np.append(0, p)
    return all(
        max(np.maximum(one - math.exp(e) * other, 0).sum(), np.maximum(other - math.exp(e) * one, 0).sum()) <= d
        for e, d in points
    )


ONE = {"epsilon": 1, "delta": 0}
WIDE = {"epsilon": 1, "delta": 0.1}
NAN = float("nan")
NONSENSE = [
    ({"points": [(0, 0)]}, {}, "epsilon"),
    ({**ONE, "total_variation": 0}, {}, "epsilon"),
    (ONE, {"sensitivity": 0}, "sensitivity"),
    (ONE, {"sensitivity": 10**9}, "sensitivity"),
    (ONE, {"sensitivity": 1.5}, "sensitivity"),
    (ONE, {"sensitivity": NAN}, "sensitivity"),
    ({"epsilon": 1e-5, "delta": 1e-6}, {"sensitivity": 3}, "sensitivity"),
    (ONE, {"cost": "cubed"}, "cost"),
    (WIDE, {"sensitivity": 3, "cost": lambda x: max(0, 3 - x)}, "non-decreasing"),
    (WIDE, {"sensitivity": 3, "cost": lambda x: NAN}, "finite number"),
    (WIDE, {"sensitivity": 3, "cost": lambda x: 1 / x}, "number at"),
    (ONE, {"sensitivity": 3, "cost": math.exp}, "number at"),
    (ONE, {"cost": lambda x: x**5}, "x\\*\\*4"),
    (ONE, {"shape": "round"}, "shape"),
    (ONE, {"releases": 0}, "releases"),
    (ONE, {"releases": 10**7}, "releases"),
    ({"epsilon": 1, "delta": 1e-6}, {"sensitivity": 300, "shape": "any"}, "unimodal"),
]


@pytest.mark.parametrize(("promise", "how", "said"), NONSENSE)
def test_nonsense_is_refused_with_what_to_try(promise, how, said):
    with pytest.raises(InputError, match=said):
        _ = least_noise(Budget(**promise), **how).certificate


def test_a_promise_is_a_budget():
    with pytest.raises(InputError, match=r"budget.*tightrope\.Budget"):
        least_noise({"epsilon": 1, "delta": 1e-6})


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("budget", [Budget(attack_success=0.55, delta=1e-8), Budget(points=[(1, 1e-3)], delta=1e-9)])
def test_the_cap_on_certain_failure_is_kept_and_costs_next_to_nothing(budget, sensitivity):
    """A total variation alone would be kept by giving one person in ten away."""
    noise = least_noise(budget, sensitivity=sensitivity, shape="any")
    assert noise.loss.infinite_mass <= noise.loss.delta(16.0) <= float(budget.delta)
    (epsilon, most), *_ = budget.points
    assert spent(noise.table, epsilon, sensitivity) <= Fraction(most)
    assert noise.certificate.gap < 1e-3
    assert noise.certificate.guarantee.epsilon == 16.0


def test_a_delta_above_the_total_variation_is_lowered_to_it():
    noise = least_noise(Budget(epsilon=1, delta=0.2, total_variation=0.1))
    assert noise.table == optimal_table([(0, math.nextafter(0.1, 0))])
    assert noise.certificate.guarantee.total_variation <= 0.1


def test_an_enormous_epsilon_still_gets_a_valid_certificate():
    for sensitivity in (1, 3):
        found = least_noise(Budget(epsilon=1000, delta=1e-6), sensitivity=sensitivity).certificate
        assert 0 <= found.lower <= found.upper < 1e-8


def test_several_releases():
    """Three answers: 4 % above what counting answers beyond thresholds proves, far above the bound of one release."""
    noise = least_noise(Budget(epsilon=1, delta=1e-6), releases=3, cost="squared")
    found = noise.certificate
    assert found.releases == 3
    assert found.lower > 9 * least_noise(Budget(epsilon=1, delta=1e-6), cost="squared").certificate.lower
    assert found.gap < 0.08
    assert found.guarantee.delta == (3 * noise.loss).delta(1.0)
    assert found.upper <= composed_noise(Budget(epsilon=1, delta=1e-6), releases=3).cost * (1 + 1e-12)


def test_ctrl_c_does_not_wait_for_the_solver():
    """A solver that is busy for a minute is left behind at once; here it is a thread that sleeps."""
    code = (
        "import signal, time, scipy.optimize as o\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job ignores it
        "from tightrope.documents import Budget\n"
        "from tightrope.noise.least_noise import least_noise\n"
        "o.linprog = lambda **_: time.sleep(60)\n"
        "print('ready', flush=True)\n"
        "least_noise(Budget(epsilon=1, delta=1e-6), sensitivity=3)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(0.5)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert time.monotonic() - start < 10
    assert b"KeyboardInterrupt" in said
