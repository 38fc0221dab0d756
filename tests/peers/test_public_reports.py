"""Public bug reports and questions of users of other libraries, as the smallest inputs for ours.

docs/design/reports.md lists them with their sources. Numbers of accounts were computed by a plain FFT of the privacy
loss on a grid of 1e-3 to 1e-5, or have closed forms; those of transport are checked against a plan or a formula.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import tightrope as tr
from tightrope import local, transport
from tightrope.errors import InputError

BOUNDS_OF_EPSILON = {
    "opacus 643": ((3, 0.2, 50, 1 / 48_000), 1.9608),
    "prv_accountant 36": ((0.8, 0.125, 1000, 1e-6), 56.7260),
    "prv_accountant 42": ((1, 0.2, 10, 1e-5), 4.9842),
    "tensorflow privacy 85, 100 epochs": ((4, 0.01, 10_000, 1e-5), 0.94686),
    "tensorflow privacy 85, 400 epochs": ((4, 0.01, 40_000, 1e-5), 2.03304),
    "jax_privacy 287, physical batch": ((1, 0.01, 100, 1e-5), 0.7181),
    "jax_privacy 287, effective batch": ((1, 0.08, 100, 1e-5), 5.6134),
    "google-research federated 25": ((0.5, 2 / 3000, 1000, 1e-5), 2.6213),
    "tensorflow privacy 173": ((1.1, 250 / 60_000, 480, 1e-5), 0.4110),
}


def sampled_gaussians(scale: float, rate: float, steps: int) -> tr.PrivacyLoss:
    return steps * tr.gaussian(scale=scale).loss.poisson_sample(rate)


@pytest.mark.parametrize("source", BOUNDS_OF_EPSILON)
def test_epsilon_of_sampled_gaussians(source):
    (scale, rate, steps, delta), expected = BOUNDS_OF_EPSILON[source]
    bounds = sampled_gaussians(scale, rate, steps).epsilon_bounds(delta)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper
    assert bounds.upper == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [(50, 1e-5, 0.01, 1000), (3, 1e-5, 0.01, 1000), (1, 1e-6, 0.01, 1), (0.1, 1e-5, 0.03, 1000)],
    ids=["opacus 604", "opacus 346", "autodp 2", "private-transformers 15"],
)
def test_calibrated_noise_keeps_its_target(epsilon, delta, rate, steps):
    budget = tr.Budget(epsilon=epsilon, delta=delta)
    scale = tr.calibrate(lambda scale: sampled_gaussians(scale, rate, steps), budget).parameter
    loss = sampled_gaussians(scale, rate, steps)
    assert loss.delta(epsilon) <= delta
    # The search for ε ends on the private side, a few floats above the least one.
    assert epsilon * (1 - 1e-8) <= loss.epsilon(delta) <= epsilon * (1 + 1e-14)


def test_small_losses_are_zero_where_delta_covers_them():
    """TensorFlow Privacy 166: epsilon is zero indeed, because delta exceeds the total variation. Opacus 585."""
    loss = sampled_gaussians(1, 105 / 100_000, 1)
    assert loss.total_variation() == pytest.approx(0.00105 * (2 * norm.cdf(0.5) - 1), rel=1e-12)
    assert loss.epsilon(1e-3) == 0
    assert tr.gaussian(scale=1000).loss.epsilon(0.5) == 0


def test_one_loss_for_linear_outputs_and_a_gaussian_of_delta_zero():
    """google differential-privacy 430: outputs that are multiples of one value; OpenDP 844: delta = 0."""
    outputs = tr.gaussian(scale=1).loss + tr.gaussian(scale=1, sensitivity=0.5).loss
    joint = tr.gaussian(scale=1, sensitivity=math.hypot(1, 0.5)).loss
    assert outputs.epsilon(1e-5) == pytest.approx(joint.epsilon(1e-5), rel=1e-12)
    assert joint.epsilon(0) == math.inf
    epsilon = tr.gaussian(scale=1).loss.epsilon(1e-5)
    assert norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon) == pytest.approx(1e-5, rel=1e-9)


def test_batches_of_a_fixed_size_are_not_poisson_sampled():
    """autodp 3, jax_privacy 121."""
    fixed = (100 * tr.gaussian(scale=1).loss.subset_sample(600, 60_000)).epsilon(1e-5)
    poisson = sampled_gaussians(1, 0.01, 100).epsilon(1e-5)
    assert poisson == pytest.approx(0.71804, abs=1e-5)
    assert fixed == pytest.approx(0.76801, abs=1e-5)


def test_other_compositions():
    """autodp 34 and 35, PipelineDP 539, SmartNoise 537."""
    laplace = (10 * tr.laplace(scale=1).loss.poisson_sample(0.1)).epsilon_bounds(1e-5)
    assert laplace.upper == pytest.approx(1.1742073, abs=1e-6)
    assert laplace.upper - laplace.lower <= 1e-7
    together = 100 * tr.gaussian(scale=20, sensitivity=2).loss
    together += 1000 * tr.gaussian(scale=4, sensitivity=3).loss.poisson_sample(0.01)
    assert together.epsilon(1e-6) == pytest.approx(5.0998, abs=1e-3)
    exponential, any_mechanism = tr.bounded_range(epsilon=0.1).loss, tr.approx_dp(0.1).loss
    assert (10 * exponential).epsilon(1e-5) == pytest.approx(0.557443, abs=1e-5)
    assert (10 * any_mechanism).epsilon(1e-5) == pytest.approx(0.993692, abs=1e-5)
    for delta in (1e-9, 1e-5, 1e-2):
        assert tr.laplace(scale=1).loss.epsilon(delta) == pytest.approx(1 + 2 * math.log1p(-delta), abs=1e-9)


def test_a_budget_names_an_invalid_delta():
    """OpenDP 2437."""
    with pytest.raises(InputError, match="expected delta to be a number"):
        tr.Budget(epsilon=1, delta=1)


def session(unit=None, epsilon: float = 1, delta: float = 1e-8, bounds=None, **columns) -> tr.Session:
    budget = tr.Budget(epsilon=epsilon, delta=delta)
    return tr.Session(pa.table(columns), privacy_unit=unit, budget=budget, **(bounds or {}))


def answer(asked: tr.Session, question):
    return asked.plan([question]).release().answers[0]


def close_to(result, truth: float) -> bool:
    """Within four times its interval: fails by chance in less than one of a million runs."""
    return abs(result.value - truth) <= 4 * max(result.upper - result.value, result.value - result.lower)


def test_groups_of_single_people_are_shown_no_more_often_than_delta():
    """OpenDP 2922: 100 000 groups of one person each; at most 100 are expected at delta = 0.001."""
    groups = answer(session(delta=1e-3, user=[f"u{number}" for number in range(100_000)]), tr.count(by="user"))
    assert len(groups.to_pandas()) <= 160


def test_groups_of_the_same_hundred_people_are_suppressed():
    """SmartNoise 568."""
    users, groups = np.repeat(np.arange(100), 100), np.tile(np.arange(100), 100)
    bounds = {"max_rows": 100, "max_groups": 100, "max_rows_per_group": 1}
    assert len(answer(session("u", u=users, g=groups, bounds=bounds), tr.count(by="g")).to_pandas()) == 0


def test_quantiles_of_repeated_values():
    """diffprivlib 107 and 79, SmartNoise 572."""
    values = np.concatenate([np.full(80_000, 65_000), np.random.default_rng(0).integers(0, 500_000, 20_000)])
    assert close_to(answer(session(epsilon=0.5, x=values), tr.median("x", bounds=(0, 500_000))), 65_000)
    for zeros in (1491, 1492, 100_000):
        assert answer(session(x=[0] * zeros + [1]), tr.median("x", bounds=(0, 1))).value == 0
    asked = session(epsilon=2, x=np.arange(5).repeat(200))
    low, high = asked.plan(tr.quantiles("x", [0.33, 0.66], bounds=(0, 5))).release().answers
    assert (low.value, high.value) == (pytest.approx(1, abs=0.01), pytest.approx(3, abs=0.01))


def test_means_variances_and_regressions():
    """diffprivlib 87 and 104, SmartNoise 203, 547 and 622, google differential-privacy 40."""
    draw = np.random.default_rng(5)
    with_nan = session(epsilon=10, x=np.array([0, 1, 2, 3, 4, np.nan] * 100))
    assert close_to(answer(with_nan, tr.mean("x", bounds=(0, 4))), 2)
    values = draw.uniform(0, 50, 5000)
    assert close_to(answer(session(x=values), tr.variance("x", bounds=(0, 50))), values.var())
    pair = session(epsilon=5, x=values, y=3 * values)
    found = answer(pair, tr.covariance("x", "y", bounds=(0, 50), other_bounds=(0, 150)))
    assert close_to(found, 3 * values.var())
    slopes = draw.uniform(-10, 1, 5000)
    fitted = answer(
        session(epsilon=10, x=slopes, y=2 * slopes + 1), tr.regression("y", "x", bounds=(-21, 5), on_bounds=(-10, 1))
    )
    assert close_to(fitted, 2)
    constant = answer(session(epsilon=0.1, x=[25.0] * 50), tr.standard_deviation("x", bounds=(0, 50)))
    assert 0 <= constant.lower <= constant.value <= constant.upper <= 25
    assert close_to(answer(session(x=np.full(1_000_000, 5)), tr.mean("x", bounds=(0, 10))), 5)


def test_sums_beyond_64_bits_and_odd_ranges():
    """OpenDP 178, 314, 2923 and 2925."""
    large = 2**62
    assert close_to(answer(session(x=np.full(1000, large)), tr.sum("x", bounds=(0, large))), 1000 * large)
    assert close_to(answer(session(x=np.arange(10_000) % 4), tr.sum("x", bounds=(0, 3))), 15_000)
    offset = 2.0**50
    spread = answer(session(x=[offset + 0.25] * 1024), tr.variance("x", bounds=(offset, offset + 1)))
    assert 0 <= spread.value <= 0.02


def test_noise_of_empty_groups_is_drawn_for_each():
    """OpenDP 2344: 600 groups, of which none has a row."""
    keys = [f"k{number}" for number in range(600)]
    counts = answer(session(epsilon=0.1, a=["x"] * 10), tr.count(by="a", keys=keys)).to_pandas()
    assert len(counts) == 600
    assert counts["value"].nunique() > 40


def test_a_histogram_has_less_noise_at_a_larger_epsilon():
    """diffprivlib 99."""
    widths = {}
    for epsilon in (1, 30):
        asked = session(epsilon=epsilon, x=np.random.default_rng(0).normal(100, 15, 1000))
        bins = answer(asked, tr.histogram("x", bounds=(40, 160), width=12)).to_pandas()
        widths[epsilon] = float((bins["upper"] - bins["lower"]).max())
    assert widths[1] >= 4 * max(widths[30], 1)


def test_questions_without_bounds_or_keys():
    """SmartNoise 317 and 344, OpenDP 2573 and 2313."""
    asked = session(x=[1.0], a=["x"])
    with pytest.raises(InputError, match=r"bounds.*missing"):
        asked.plan([tr.sum("x")])
    with pytest.raises(InputError, match="at least one key"):
        asked.plan([tr.count(by="a", keys=[])])
    assert close_to(answer(session(a=["x"] * 1000), tr.count(by=[])), 1000)
    rows = session("u", u=np.repeat(np.arange(1000), 5), bounds={"max_rows": 5})
    with pytest.raises(InputError, match="persons are counted"):
        rows.plan([tr.count(), tr.count_distinct("u")])


def test_local_reports():
    """pure-LDP 11, LDP_Protocols 1, OpenDP 1280."""
    for optimized in (True, False):
        mechanism = local.unary_encoding(0.5, 10, optimized=optimized)
        kept, flipped = float(mechanism.true_support_probability), float(mechanism.false_support_probability)
        assert math.log(kept * (1 - flipped) / (flipped * (1 - kept))) <= 0.5 + 1e-12
    hashing = local.hashing(1.0, 20)
    reports = hashing.perturb([3] * 20_000)
    assert np.array_equal(hashing.estimate(reports).value, hashing.estimate(reports).value)
    rappor = local.rappor(2.0, 8)
    assert rappor.estimate(rappor.perturb([1] * 20_000)).value[1] == pytest.approx(1, abs=0.1)


def uniform(count: int) -> np.ndarray:
    return np.full(count, 1 / count)


def test_transport_with_huge_costs_and_uneven_sizes():
    """POT 229, 93, 190, 12, 114, 126 and pyemd 32, with costs of the same form."""
    costs = np.full((5, 5), 1e32)
    costs[4, :3] = 38
    costs[[0, 1, 2], 4], costs[3, 3], costs[4, 4] = [0.0015, 0.137, 2.465], 5.262, 0
    masses = np.array([0.125] * 4 + [0.5])
    best = 0.125 * (0.0015 + 0.137 + 2.465 + 5.262 + 3 * 38)
    assert transport.wasserstein(masses, masses, costs) == pytest.approx(best, rel=1e-12)
    assert transport.wasserstein(uniform(292), uniform(2), np.ones((292, 2))) == pytest.approx(1, rel=1e-12)
    draw = np.random.default_rng(1)
    for sizes in ((5, 960), (7, 313)):
        found = transport.coupling(uniform(sizes[0]), uniform(sizes[1]), draw.random(sizes))
        assert found.plan.sum() == pytest.approx(1, rel=1e-12)
        assert found.gap <= 1e-12
    assert transport.coupling([0.5, 0.5], [0.2, 0.8], [[0, 1], [1, 0]]).cost == pytest.approx(0.3, rel=1e-12)
    with pytest.raises(InputError, match="one probability for each of 101 points"):
        transport.wasserstein(uniform(100), uniform(100), np.ones((101, 101)))
    exponents = draw.random((2, 625)) * 1000
    tiny = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    cells = np.stack(np.meshgrid(np.arange(25.0), np.arange(25.0)), -1).reshape(-1, 2)
    distances = np.sqrt(((cells[:, None] - cells) ** 2).sum(-1))
    source, target = tiny / tiny.sum(axis=1, keepdims=True)
    assert transport.coupling(source, target, distances).gap <= 1e-9
    costs = [[5**0.5, 8795.2, 10**0.5], [8796.5, 0, 8792.1], [0, 8796.5, 5]]
    assert transport.wasserstein([0.5, 0.5, 0], [0, 0.5, 0.5], costs) == pytest.approx(0.5 * 10**0.5, rel=1e-12)
